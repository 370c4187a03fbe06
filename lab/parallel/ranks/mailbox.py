"""What whoever launched a program says to a rank while it runs: put from any thread, taken between two steps.

At the rank a Mailbox; where it is said an Outbox, which keeps it until the ranks have workers.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any


class Mailbox:
    """Messages to one rank, in the order in which they were put.

    Args:
        decode: makes of what was put what is taken, in the taker's thread; messages from afar come pickled.

    Example:
        >>> box = Mailbox()
        >>> box.put("pause")
        >>> box.take(int), box.take(str), box.take(str), box.wait(0.0)
        ([], ['pause'], [], False)
    """

    def __init__(self, decode: Callable[[object], object] = lambda message: message) -> None:
        self._decode = decode
        self._messages: deque[object] = deque()
        self._n_open = 0  # of them that are decoded, from the left
        self._changed = threading.Condition()

    def put(self, message: object) -> None:
        """Add a message; never waits."""
        with self._changed:
            self._messages.append(message)
            self._changed.notify_all()

    def take(self, kind: type[Any] = object) -> list[Any]:
        """All messages of a kind that came since the last time; costs 50 ns when there are none."""
        if not self._messages:
            return []
        with self._changed:
            self._open()
            taken = [message for message in self._messages if isinstance(message, kind)]
            others = [message for message in self._messages if not isinstance(message, kind)]
            self._messages.clear()
            self._messages.extend(others)
            self._n_open = len(others)
        return taken

    def wait(self, seconds: float, kind: type = object) -> bool:
        """Wait until there is a message of a kind, at most so long; whether there is one."""

        def is_there() -> bool:
            self._open()
            return any(isinstance(message, kind) for message in self._messages)

        with self._changed:
            return self._changed.wait_for(is_there, seconds)

    def _open(self) -> None:
        """Decode what came since the last look. The lock is held."""
        for i in range(self._n_open, len(self._messages)):
            self._messages[i] = self._decode(self._messages[i])
        self._n_open = len(self._messages)


class Outbox:
    """Messages on their way to ranks: kept until the ranks have workers, refused when the launch has ended.

    Example:
        >>> box, sent = Outbox(), []
        >>> box.put(0, b"early")
        True
        >>> box.open(lambda rank, message: sent.append(message))
        >>> box.close()
        >>> sent, box.put(0, b"late")
        ([b'early'], False)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._send: Callable[[int, bytes], None] | None = None
        self._kept: list[tuple[int, bytes]] = []
        self._closed = False

    def put(self, rank: int, message: bytes) -> bool:
        """Send or keep it; whether it may still be heard."""
        with self._lock:
            if self._send is None:
                self._kept.append((rank, message))
            elif not self._closed:
                self._send(rank, message)
            return not self._closed

    def open(self, send: Callable[[int, bytes], None]) -> None:
        """Send what was kept, and what comes from now on."""
        with self._lock:
            for rank, message in self._kept:
                send(rank, message)
            self._send, self._kept = send, []

    def close(self) -> None:
        """Refuse what comes from now on."""
        with self._lock:
            self._closed, self._kept = True, []
