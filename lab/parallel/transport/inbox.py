"""What arrives from one peer: half a header, half a piece, and messages whose `recv` has not been called yet."""

from __future__ import annotations

import socket
from collections import deque

import numpy as np

from lab.errors import MeshError
from lab.events.event import Array
from lab.parallel.transport.wire import HEADER, Header, unpack

PIECE = 1 << 18
"""Bytes that are added at once: they are still in the cache when they come out of the socket."""
STASHED = 1 << 28
"""Bytes of messages from one peer that may wait for their `recv`."""


class Inbox:
    """Reads one message after the other, as far as the socket goes.

    Attributes:
        header: of the message that is being read, None between messages.
    """

    def __init__(self, peer: int, generation: int) -> None:
        self.peer = peer
        self.header: Header | None = None
        self._generation = generation
        self._head, self._n_head = memoryview(bytearray(HEADER)), 0
        self._left = 0  # bytes of the body that have not come
        self._hole = memoryview(b"")  # where the next bytes go: the rest of a target, of the scratch, or of a stash
        self._target: Array | None = None  # what the scratch is added to
        self._n_added = 0
        self._scratch = np.empty(PIECE, np.uint8)
        self._kept: dict[int, deque[tuple[Header, bytearray]]] = {}
        self._n_kept = 0
        self._keeping: bytearray | None = None

    def read_header(self, sock: socket.socket) -> bool:
        """Whether the header is complete.

        Raises:
            EOFError: the peer hung up.
            MeshError: the header is damaged.
        """
        self._n_head += _read(sock, self._head[self._n_head :])
        if self._n_head < HEADER:
            return False
        self._n_head = 0
        self.header = unpack(self._head, self._generation, peer=self.peer)
        self._left = self.header.n_bytes
        return True

    def into(self, target: Array, *, add: bool) -> None:
        """The body shall be stored in `target` (1-D, as long as the body), or added to it."""
        self._keeping, self._n_added = None, 0
        self._target = target if add else None
        self._hole = memoryview(self._scratch if add else target.view(np.uint8))  # type: ignore[arg-type]

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

    def read_body(self, sock: socket.socket) -> bool:
        """Read once; whether the body is complete."""
        if self._left:
            n_read = _read(sock, self._hole[: self._left])
            self._hole, self._left = self._hole[n_read:], self._left - n_read
            if self._target is not None and (not self._left or not self._hole):
                self._add(self._target)
        return not self._left

    def _add(self, target: Array) -> None:
        whole = memoryview(self._scratch)  # type: ignore[arg-type]
        piece = self._scratch[: len(whole) - len(self._hole)].view(target.dtype)
        into = target[self._n_added : self._n_added + len(piece)]
        np.add(into, piece, out=into)
        self._n_added, self._hole = self._n_added + len(piece), whole

    def finish(self) -> bool:
        """Close the message; False if it went to the stash."""
        header, self.header = self.header, None
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
