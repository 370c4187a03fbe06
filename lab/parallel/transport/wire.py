"""What goes over a connection: a header of fixed size before each piece of an array, which says whose call it is.

A receiver knows what must come next; a header that says something else names both calls before a byte is believed.
"""

from __future__ import annotations

import functools
import hashlib
import struct
import sys
from types import FrameType
from typing import NamedTuple

from lab.errors import MeshError
from lab.parallel.paper.calling import place_of

MAGIC = b"lab1"
COLLECTIVE, POINT, GOODBYE, WAITING = 1, 2, 3, 4
"""Kinds of message: a hop of a collective; a `send`; the program of the sender has ended; it has waited for a while in
a collective, which carries nothing and tells which."""

_LAYOUT = struct.Struct("<4sBxxxIxxxxQqQ8s128s16x")
HEADER = _LAYOUT.size  # 192: what follows a header in a buffer is aligned for any dtype, and its numbers are words
MAX_BYTES = 1 << 40
"""No piece is longer; a header that claims more is damaged."""
COUNT_BITS = 32
"""Of a collective's number: how many its group has made. The bits above are of the group, 0 for all ranks."""


class Call(NamedTuple):
    """One call of a rank's program, as its peers must make it too.

    Attributes:
        number: of the collective, counted from 0 on every rank, above the first number of its group; the tag of a
            `send`.
        text: what was called, with dtype and size: equal on all ranks.
        place: file and line of the caller, which may differ.
    """

    number: int
    text: str
    place: str

    def __str__(self) -> str:
        return f"{self.text} at {self.place}" if self.place else self.text


class Header(NamedTuple):
    """A header as it was read."""

    kind: int
    generation: int
    number: int
    tag: int
    n_bytes: int
    mark: bytes
    words: str


@functools.lru_cache(maxsize=4096)
def _words(text: str, place: str) -> tuple[bytes, bytes]:
    mark = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return mark, (f"{text} at {place}" if place else text).encode("utf-8", "replace")[:128]


def mark_of(call: Call) -> bytes:
    """Eight bytes that are equal where the calls agree."""
    return _words(call.text, call.place)[0]


def pack(kind: int, generation: int, call: Call, n_bytes: int) -> bytes:
    """The header of a piece of `n_bytes` bytes.

    Example:
        >>> header = pack(COLLECTIVE, 3, Call(7, "barrier", "cell.py:2"), 40)
        >>> len(header) == HEADER, unpack(header, 3, peer=1).words
        (True, 'barrier at cell.py:2')
    """
    mark, words = _words(call.text, call.place)
    number, tag = (0, call.number) if kind == POINT else (call.number, 0)
    return _LAYOUT.pack(MAGIC, kind, generation, number, tag, n_bytes, mark, words)


def unpack(data: bytes | bytearray | memoryview, generation: int, *, peer: int) -> Header:
    """Read a header.

    Raises:
        MeshError: it is none of ours, or of another generation.
    """
    magic, kind, theirs, number, tag, n_bytes, mark, words = _LAYOUT.unpack(data)
    if magic != MAGIC or kind not in {COLLECTIVE, POINT, GOODBYE, WAITING} or n_bytes > MAX_BYTES:
        raise MeshError(f"what rank {peer} sent is no message of the lab", given="a damaged header",
                        hint="something else writes to this connection; launch again")  # fmt: skip
    if theirs != generation:
        raise MeshError(f"rank {peer} belongs to another launch", given=f"generation {theirs}, ours is {generation}",
                        hint="an older launch has not ended there; launch again")  # fmt: skip
    return Header(kind, theirs, number, tag, n_bytes, mark, words.rstrip(b"\0").decode("utf-8", "replace"))


_ROOM = {__file__}
"""Files of this room whose frames were met: a look at their names is enough the next time."""
_NOT_THE_CALLER = ("lab.parallel.", "contextlib.", "dask.", "distributed.", "concurrent.", "threading.", "contextvars.")
"""Modules below and above a program: what calls a program is not what made the call."""


def place_of_caller() -> str:
    """File name and line of the innermost frame outside of this room, "" if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file not in _ROOM:
            if not f"{frame.f_globals.get('__name__', '')}.".startswith(_NOT_THE_CALLER):
                return _place(file, frame.f_lineno)
            _ROOM.add(file)
        frame = frame.f_back
    return ""


def is_of_program(frame: FrameType) -> bool:
    """Whether a call that this frame makes is made by the program itself, and not by this room for it."""
    return frame.f_code.co_filename not in _ROOM and not f"{frame.f_globals.get('__name__', '')}.".startswith(
        _NOT_THE_CALLER
    )


_place = functools.lru_cache(maxsize=4096)(place_of)
