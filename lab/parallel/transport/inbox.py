"""What arrives from one peer: a small buffer for headers and short pieces, and messages whose `recv` comes later.

A piece that is longer than the buffer goes from the socket to its place, or past a scratch to be added there.
"""

from __future__ import annotations

import socket
from collections import deque
from typing import Any

import numpy as np

from lab.errors import MeshError
from lab.events.event import Array
from lab.parallel.transport.wire import HEADER, Header, unpack

PIECE = 1 << 18
"""Bytes that are added at once: they are still in the cache when they come out of the socket."""
STASHED = 1 << 28
"""Bytes of messages from one peer that may wait for their `recv`."""
BUFFER = 1 << 14
"""Bytes that are read at once when a header is due: a header and a short piece cost one call of the kernel."""


class Inbox:
    """Reads one message after the other, as far as the socket goes.

    Attributes:
        inside: whether a header has been read and its body has not been finished.
        header: of the message that is being read, if it was not what was foreseen.
    """

    def __init__(self, peer: int, generation: int) -> None:
        self.peer = peer
        self.inside = False
        self.header: Header | None = None
        self._generation = generation
        self._buffer = bytearray(BUFFER)
        self._view = memoryview(self._buffer)
        self._start = self._end = 0  # what has come and was not taken
        self._left = 0  # bytes of the body that have not come
        self._hole = memoryview(b"")  # where the next bytes go: the rest of a target, of the scratch, or of a stash
        self._target: Array | None = None  # what the scratch is combined with
        self._combine: Any = np.add
        self._n_added = 0
        self._scratch = np.empty(PIECE, np.uint8)
        self._whole = memoryview(self._scratch)  # type: ignore[arg-type]  # an array is a buffer
        self._kept: dict[int, deque[tuple[Header, bytearray]]] = {}
        self._n_kept = 0
        self._keeping: bytearray | None = None

    def peek(self, sock: socket.socket) -> Header | None:
        """The next header, which stays the next; None inside of a message.

        Raises:
            BlockingIOError: it has not come, or not all of it.
            EOFError: the peer hung up.
            MeshError: it is damaged.
        """
        if self.inside:
            return None
        if self._end - self._start < HEADER and not self._fill(sock):
            raise BlockingIOError
        return unpack(self._view[self._start : self._start + HEADER], self._generation, peer=self.peer)

    def _fill(self, sock: socket.socket) -> bool:
        """Read once, to the beginning of the buffer; whether there is a header then."""
        if self._start:
            kept = bytes(self._view[self._start : self._end])
            self._buffer[: len(kept)] = kept
            self._start, self._end = 0, len(kept)
        self._end += _read(sock, self._view[self._end :])
        return self._end >= HEADER

    def has_room(self, n_bytes: int) -> bool:
        """Whether so much can be put into the stash."""
        return self._n_kept + n_bytes <= STASHED

    def read_header(self, sock: socket.socket, foreseen: bytes, n_bytes: int) -> bool:
        """Whether the header is complete; `header` says what it is if not the one `foreseen`, of `n_bytes` of body.

        Raises:
            EOFError: the peer hung up.
            MeshError: the header is damaged.
        """
        if self._end - self._start < HEADER and not self._fill(sock):
            return False
        start, self._start = self._start, self._start + HEADER
        if self._buffer.startswith(foreseen, start):
            self.header, self._left = None, n_bytes
        else:
            self.header = unpack(self._view[start : self._start], self._generation, peer=self.peer)
            self._left = self.header.n_bytes
        self.inside = True
        return True

    def take(
        self, sock: socket.socket, foreseen: bytes, octets: memoryview, target: Array | None, combine: Any = np.add
    ) -> bool:
        """Take a whole short message if it is there and is what was foreseen; if not, nothing is lost.

        Raises:
            BlockingIOError: nothing is there.
            EOFError: the peer hung up.
        """
        start, n_bytes = self._start, HEADER + len(octets)
        if self.inside or n_bytes > BUFFER:
            return False
        if not self._end:
            self._end = _read(sock, self._view)
        if self._end - start < n_bytes or not self._buffer.startswith(foreseen, start):
            return False
        body, end = start + HEADER, start + n_bytes
        if target is None:
            octets[:] = self._view[body:end]
        else:
            combine(target, np.frombuffer(self._buffer, target.dtype, len(target), body), out=target)
        self._start, self._end = (end, self._end) if end < self._end else (0, 0)
        return True

    def into(self, octets: memoryview, target: Array | None, combine: Any = np.add) -> None:
        """The body shall be stored in `octets`, which is as long, or combined with `target`."""
        self._keeping, self._n_added = None, 0
        self._target, self._combine = target, combine
        self._hole = octets if target is None else self._whole

    def stash(self) -> None:
        """The body shall wait for its `recv`."""
        assert self.header is not None
        self._n_kept += self.header.n_bytes
        if self._n_kept > STASHED:
            raise MeshError(
                f"rank {self.peer} has sent more than {STASHED >> 20} MiB that nobody receives",
                given=self.header.words,
                hint="call recv in the order of the sends",
            )
        self._keeping, self._target = bytearray(self.header.n_bytes), None
        self._hole = memoryview(self._keeping)

    def drop(self) -> None:
        """The header was all there is of this message, and has been read."""
        self.header, self.inside = None, False
        if self._start == self._end:
            self._start = self._end = 0

    def read_body(self, sock: socket.socket) -> bool:
        """Take what the buffer has, or read once; whether the body is complete."""
        if self._left:
            if n_read := min(self._left, self._end - self._start, len(self._hole)):
                self._hole[:n_read] = self._view[self._start : self._start + n_read]
                self._start += n_read
            else:
                n_read = _read(sock, self._hole[: self._left])
            self._hole, self._left = self._hole[n_read:], self._left - n_read
            if self._target is not None and (not self._left or not self._hole):
                self._add(self._target)
        if self._start == self._end:
            self._start = self._end = 0
        return not self._left

    def _add(self, target: Array) -> None:
        piece = self._scratch[: PIECE - len(self._hole)].view(target.dtype)
        into = target[self._n_added : self._n_added + len(piece)]
        self._combine(into, piece, out=into)
        self._n_added, self._hole = self._n_added + len(piece), self._whole

    def finish(self) -> bool:
        """Close the message; False if it went to the stash."""
        header, self.header, self.inside = self.header, None, False
        if self._keeping is None:
            return True
        assert header is not None
        self._kept.setdefault(header.tag, deque()).append((header, self._keeping))
        self._keeping = None
        return False

    def unstash(self, tag: int) -> tuple[Header, bytearray] | None:
        """The oldest message with this tag that has come already."""
        if not (waiting := self._kept.get(tag)):
            return None
        header, body = waiting.popleft()
        self._n_kept -= header.n_bytes
        return header, body


def _read(sock: socket.socket, hole: memoryview) -> int:
    n_read = sock.recv_into(hole)
    if n_read == 0:
        raise EOFError
    return n_read
