"""How a group comes by its shared memory: rank 0 offers a descriptor, each answers, and what all can do is decided.

A rank that cannot take part (no numba, no memory) says so, and then all use their sockets.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
from collections.abc import Mapping
from time import monotonic

from lab.errors import LostRankError, MeshError
from lab.kernels.mover import mover
from lab.parallel.transport.alarm import Alarm
from lab.parallel.transport.region import Region, enter, make

YES, NO = b"Y", b"N"


def share(rank: int, sockets: Mapping[int, socket.socket], alarm: Alarm, timeout: float) -> tuple[Region | None, str]:
    """The region of this group, the same for all ranks, or None and why there is none.

    Raises:
        LostRankError: a rank went away, or did not answer in time.
        MeshError, LostRankError: the alarm's reason.
    """
    if sys.platform != "linux":
        return None, "only Linux has memory without a name that can be handed over"
    meeting = _Meeting(rank, sockets, alarm, monotonic() + timeout)
    region, fd, why = None, -1, "" if mover() is not None else f"rank {rank} has no compiled executor"
    try:
        if rank:
            fd = meeting.take_descriptor()
        elif not why:
            fd, why = _made(len(sockets) + 1)
        if not why and fd >= 0:
            region, why = _entered(fd, rank, len(sockets) + 1)
        if meeting.decide(region is not None, fd):
            kept, region = region, None
            return kept, ""
        return None, why or "another rank cannot take part"
    finally:
        if fd >= 0:
            os.close(fd)
        if region is not None:
            region.close()


def _made(world_size: int) -> tuple[int, str]:
    try:
        return make(world_size), ""
    except MeshError as error:
        return -1, f"{error.problem} ({error.given})"


def _entered(fd: int, rank: int, world_size: int) -> tuple[Region | None, str]:
    try:
        return enter(fd, rank, world_size), ""
    except (OSError, ValueError) as error:
        return None, f"rank {rank} cannot map it ({error})"


class _Meeting:
    def __init__(self, rank: int, sockets: Mapping[int, socket.socket], alarm: Alarm, until: float) -> None:
        self.rank, self.sockets, self.alarm, self.until = rank, sockets, alarm, until

    def take_descriptor(self) -> int:
        """What rank 0 offers; -1 for nothing."""
        sock = self.sockets[0]
        self._await(0)
        word, fds, _, _ = socket.recv_fds(sock, 1, 1)
        if not word:
            raise self._lost(0)
        for fd in fds:
            os.set_inheritable(fd, False)
        return fds[0] if fds else -1

    def decide(self, can: bool, fd: int) -> bool:
        """Whether all can; every rank gets the same answer."""
        if self.rank:
            self._say(0, YES if can else NO)
            return self._hear(0) == YES
        for peer, sock in self.sockets.items():
            with self._losing(peer):
                if can:
                    socket.send_fds(sock, [YES], [fd])
                else:
                    sock.send(NO)
        answers = [self._hear(peer) for peer in self.sockets]
        verdict = YES if can and all(answer == YES for answer in answers) else NO
        for peer in self.sockets:
            self._say(peer, verdict)
        return verdict == YES

    def _say(self, peer: int, word: bytes) -> None:
        with self._losing(peer):
            self.sockets[peer].send(word)

    def _hear(self, peer: int) -> bytes:
        self._await(peer)
        with self._losing(peer):
            if word := self.sockets[peer].recv(1):
                return word
        raise self._lost(peer)

    def _await(self, peer: int) -> None:
        poll = select.poll()
        poll.register(self.sockets[peer], select.POLLIN)
        poll.register(self.alarm.fd, select.POLLIN)
        while True:
            self.alarm.check()
            found = {fd for fd, _ in poll.poll(max(self.until - monotonic(), 0.0) * 1000)}
            if self.sockets[peer].fileno() in found:
                return
            if not found:
                raise self._lost(peer)

    def _losing(self, peer: int) -> contextlib.AbstractContextManager[object]:
        return _Losing(self, peer)

    def _lost(self, peer: int) -> LostRankError:
        if self.alarm.wait(0.5):  # the scheduler knows the first cause
            self.alarm.check()
        return LostRankError(
            f"rank {peer} did not come to the shared memory",
            rank=peer,
            given=f"rank {self.rank} waited for its word",
            hint="its worker may have died",
        )


class _Losing(contextlib.AbstractContextManager[object]):
    def __init__(self, meeting: _Meeting, peer: int) -> None:
        self.meeting, self.peer = meeting, peer

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, OSError):
            raise self.meeting._lost(self.peer) from error
