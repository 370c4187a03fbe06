"""The one thing that every wait of a rank listens to besides its peers: a flag, a reason, and a descriptor for `poll`.

Whoever learns that the group has ended (a peer died, another rank raised, Stop was pressed) rings it, from any thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import numpy as np

from lab.errors import LabError, LostRankError, MeshError

KINDS = ("lost", "late", "stuck", "raised", "stopped", "gone")
"""Why a group ends: a rank died; ranks did not answer in time; ranks wait for each other; a rank raised; Stop; the
notebook or scheduler left."""


class Alarm:
    """Rings once; the first reason stays.

    Attributes:
        fd: readable from the ring on, for `poll`.
        flag: its first word is 1 from the ring on, for a loop that is compiled.
        kind: one of KINDS, "" before the ring.
        why: the reason in words.
        rank: whom it is about, -1 if nobody.

    Example:
        >>> alarm = Alarm()
        >>> alarm.ring("lost", "rank 2 was killed", rank=2), alarm.ring("stopped", "too late"), alarm.kind
        (True, False, 'lost')
        >>> alarm.close()
    """

    def __init__(self) -> None:
        self.kind, self.why, self.rank = "", "", -1
        self._lock = threading.Lock()
        self._rung = threading.Event()
        self._closed = False
        self._callbacks: list[Callable[[], object]] = []
        self.flag = np.zeros(8, np.int64)  # a cache line
        if hasattr(os, "eventfd"):
            self.fd = self._write_end = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        else:  # macOS before Python has eventfd there
            self.fd, self._write_end = os.pipe()

    def ring(self, kind: str, why: str, *, rank: int = -1) -> bool:
        """End every wait; False if it had rung before or is closed."""
        with self._lock:  # also against close(): a number written to after it was closed may be somebody else's file
            if self.kind or self._closed:
                return False
            self.why, self.rank, self.kind = why, rank, kind
            self.flag[0] = 1
            os.write(self._write_end, (1).to_bytes(8, "little"))
            callbacks, self._callbacks = self._callbacks, []
        self._rung.set()
        for callback in callbacks:
            callback()
        return True

    def on_ring(self, callback: Callable[[], object]) -> None:
        """Call `callback` at the ring, at once if it has rung."""
        with self._lock:
            if not self.kind:
                self._callbacks.append(callback)
                return
        callback()

    def wait(self, seconds: float) -> bool:
        """Whether it rang within `seconds`."""
        return self._rung.wait(seconds)

    def check(self) -> None:
        """Raise the reason if it has rung; one attribute test if not."""
        if self.kind:
            raise self.error()

    def error(self) -> LabError:
        """The reason as an exception."""
        if self.kind in {"lost", "late"}:
            hint = "the group has ended; launch again"
            return LostRankError(self.why, given=f"rank {self.rank}", rank=self.rank, hint=hint)
        return MeshError(self.why, given=self.kind, hint="the group has ended, and so did this rank")

    def close(self) -> None:
        """Give the descriptors back."""
        with self._lock:
            if not self._closed:
                self._closed = True
                for fd in {self.fd, self._write_end}:
                    os.close(fd)
