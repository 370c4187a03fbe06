"""What a plan is made of: sends and receives of chunks, and where a chunk lies in a buffer."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from lab.checks import whole
from lab.errors import PlanError
from lab.words import shown


class Send(NamedTuple):
    """Chunks `start` to `stop` (not included) of this rank go to `peer`, as they were when the step began."""

    peer: int
    start: int
    stop: int


class Recv(NamedTuple):
    """Chunks `start` to `stop` (not included) come from `peer`, and are added to those here or stored over them.

    They keep their places in the buffer, or go to those that begin with chunk `at`.

    Example:
        >>> Recv(1, 0, 2, reduce=True), Recv(1, 0, 2, reduce=False, at=4)
        (Recv(peer=1, start=0, stop=2, reduce=True), Recv(peer=1, start=0, stop=2, reduce=False, at=4))
        >>> Recv(1, 0, 2, reduce=False, at=4).place
        (4, 6)
    """

    peer: int
    start: int
    stop: int
    reduce: bool
    at: int | None = None

    @property
    def place(self) -> tuple[int, int]:
        """First chunk and end of where it is stored or added."""
        first = self.start if self.at is None else self.at
        return first, first + self.stop - self.start

    def __repr__(self) -> str:
        moved = "" if self.at is None else f", at={self.at!r}"
        return f"Recv(peer={self.peer!r}, start={self.start!r}, stop={self.stop!r}, reduce={self.reduce!r}{moved})"


Step = tuple[Send | Recv, ...]
"""What a rank does at once. Sends never wait; the step ends when all receives are in, applied in the order written."""

Plan = Callable[[int, int, int], Iterable[Step | Send | Recv]]
"""`plan(rank, world_size, n_chunks)` yields the steps of one rank; a single hop counts as a step of its own."""


def require_count(name: str, value: object, *, least: int, hint: str = "") -> int:
    """`lab.checks.whole` for ranks, chunks and their like.

    Raises:
        PlanError: it is no whole number, or is below `least`.

    Example:
        >>> require_count("world_size", 0, least=1)
        Traceback (most recent call last):
        lab.errors.PlanError: world_size is a whole number of at least 1
        given: world_size=0
        hint:  for example world_size=4
    """
    return whole(name, value, least=least, hint=hint or f"for example {name}=4", error=PlanError)


def block(owner: int, world_size: int, n_chunks: int) -> tuple[int, int]:
    """First chunk and end of the chunks that rank `owner` (taken modulo the world) answers for: its fair share.

    Raises:
        PlanError: a number that is not whole, a world without ranks, fewer chunks than none.

    Example:
        >>> [block(owner, 4, 6) for owner in range(4)], block(-1, 4, 4)
        ([(0, 1), (1, 3), (3, 4), (4, 6)], (3, 4))
    """
    # Asked for each hop of each rank: what is as it should be costs 0.1 us.
    if not (type(owner) is type(world_size) is type(n_chunks) is int and world_size > 0 <= n_chunks):
        owner, world_size = _any_whole("owner", owner), require_count("world_size", world_size, least=1)
        n_chunks = require_count("n_chunks", n_chunks, least=0)
    owner %= world_size
    return n_chunks * owner // world_size, n_chunks * (owner + 1) // world_size


def elements(start: int, stop: int, n_chunks: int, n_elements: int) -> slice:
    """Where chunks `start` to `stop` lie in a flat buffer of any size; chunks differ by at most one element.

    Raises:
        PlanError: a number that is not whole or below 0, or no chunks at all.

    Example:
        >>> [elements(chunk, chunk + 1, 4, 10) for chunk in range(4)]
        [slice(0, 2, None), slice(2, 5, None), slice(5, 7, None), slice(7, 10, None)]
    """
    if not (type(start) is type(stop) is type(n_chunks) is type(n_elements) is int and start >= 0 <= stop
            and n_chunks > 0 <= n_elements):  # fmt: skip
        start, stop = require_count("start", start, least=0), require_count("stop", stop, least=0)
        n_chunks = require_count("n_chunks", n_chunks, least=1)
        n_elements = require_count("n_elements", n_elements, least=0)
    return slice(n_elements * start // n_chunks, n_elements * stop // n_chunks)


def _any_whole(name: str, value: object) -> int:
    """`value` as an int, also below 0."""
    try:
        found = None if isinstance(value, bool | np.ndarray) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        found = None
    if found is None:
        raise PlanError(f"{name} is a whole number", given=f"{name}={shown(value)}", hint=f"for example {name}=0")
    return found


def chunks(start: int, stop: int) -> str:
    """In words: "chunk 3", "chunks 0 to 2", "no chunk"."""
    if stop - start > 1:
        return f"chunks {start} to {stop - 1}"
    return f"chunk {start}" if stop > start else "no chunk"
