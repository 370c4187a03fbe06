"""What a collective operation promises, apart from how a plan keeps it: whose parts end up where.

At the start each rank holds its own part in every chunk. A promise says, for each rank and each block of chunks, whose
parts the rank holds in the end, added up. Chunks keep their places but in the operations of `PLACES`, and parts are
counted once but in those of `AT_LEAST_ONCE`; no more is needed to check a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from lab.errors import PlanError
from lab.parallel.paper.plans import block, require_count
from lab.words import one_of, shown

Promise = Callable[[int, int, int], Iterable[int] | None]
"""`promise(rank, owner, world_size)`: whose parts `rank` holds in the block of `owner`; None: anything may be there."""

Counts = npt.NDArray[np.int64]

OPERATIONS: dict[str, Promise] = {}
"""Every operation by name; its plans are in `COLLECTIVES`."""

PLACES: dict[str, Callable[[int, int], int]] = {"all_to_all": lambda rank, owner: rank}
"""`place(rank, owner)` of operations that move blocks: where what ends in the block of `owner` was in the beginning."""

AT_LEAST_ONCE = {"barrier"}
"""Operations that want to have heard of a part, however often."""


def _operation(promise: Promise) -> Promise:
    OPERATIONS[promise.__name__] = promise
    return promise


@_operation
def all_reduce(rank: int, owner: int, world_size: int) -> Iterable[int]:
    """Every rank ends with the sum over all ranks."""
    return range(world_size)


@_operation
def reduce(rank: int, owner: int, world_size: int) -> Iterable[int] | None:
    """Rank 0 ends with the sum over all ranks."""
    return range(world_size) if rank == 0 else None


@_operation
def broadcast(rank: int, owner: int, world_size: int) -> Iterable[int]:
    """Every rank ends with what rank 0 had."""
    return (0,)


@_operation
def reduce_scatter(rank: int, owner: int, world_size: int) -> Iterable[int] | None:
    """Every rank ends with the sum over all ranks in its own block."""
    return range(world_size) if rank == owner else None


@_operation
def all_gather(rank: int, owner: int, world_size: int) -> Iterable[int]:
    """Every rank ends with the block of each rank."""
    return (owner,)


@_operation
def send_recv(rank: int, owner: int, world_size: int) -> Iterable[int]:
    """The last rank ends with what rank 0 had, the others with their own."""
    return (0,) if rank == world_size - 1 else (rank,)


@_operation
def shift(rank: int, owner: int, world_size: int) -> Iterable[int]:
    """Every rank ends with what the previous rank had."""
    return ((rank - 1) % world_size,)


@_operation
def gather(rank: int, owner: int, world_size: int) -> Iterable[int] | None:
    """Rank 0 ends with the block of each rank."""
    return (owner,) if rank == 0 else None


@_operation
def scatter(rank: int, owner: int, world_size: int) -> Iterable[int] | None:
    """Every rank ends with its own block of what rank 0 had."""
    return (0,) if rank == owner else None


@_operation
def all_to_all(rank: int, owner: int, world_size: int) -> Iterable[int]:
    """Every rank ends with the block of each rank that is meant for it, in the order of ranks."""
    return (owner,)


@_operation
def barrier(rank: int, owner: int, world_size: int) -> Iterable[int]:
    """Every rank ends with the word of all that they have come."""
    return range(world_size)


def require_operation(operation: object) -> None:
    """Refuse what is no operation.

    Raises:
        PlanError: so it is.

    Example:
        >>> require_operation("all_redcue")
        Traceback (most recent call last):
        lab.errors.PlanError: there is no such operation
        given: operation='all_redcue'
        hint:  did you mean 'all_reduce'? One of all_reduce, reduce, broadcast, reduce_scatter, all_gather, ...
    """
    if not isinstance(operation, str) or operation not in OPERATIONS:
        raise PlanError("there is no such operation", given=f"operation={shown(operation)}",
                        hint=one_of(operation, OPERATIONS))  # fmt: skip


def promised(operation: str, world_size: int, n_chunks: int) -> Counts:
    """How often each rank's part is in each chunk of each rank at the end.

    Returns:
        (world_size, n_chunks, world_size): rank, chunk, whose part; -1 where anything may be.

    Raises:
        PlanError: no operation has this name, or a world without ranks or chunks.

    Example:
        >>> promised("reduce_scatter", 2, 2).tolist()
        [[[1, 1], [-1, -1]], [[-1, -1], [1, 1]]]
    """
    require_operation(operation)
    world_size = require_count("world_size", world_size, least=1)
    n_chunks = require_count("n_chunks", n_chunks, least=1)
    counts = np.full((world_size, n_chunks, world_size), -1, np.int64)
    for rank in range(world_size):
        for owner in range(world_size):
            parts = OPERATIONS[operation](rank, owner, world_size)
            if parts is not None:
                here = counts[rank, slice(*block(owner, world_size, n_chunks))]
                here[:] = 0
                here[:, list(parts)] = 1
    return counts


def places(operation: str, world_size: int, n_chunks: int) -> npt.NDArray[np.int64]:
    """Where what is in each chunk of each rank at the end was in the beginning; its own number if it keeps its place.

    Returns:
        (world_size, n_chunks).

    Raises:
        PlanError: as `promised`; blocks that change places and differ in size.

    Example:
        >>> places("all_to_all", 2, 4).tolist(), places("gather", 2, 2).tolist()
        ([[0, 1, 0, 1], [2, 3, 2, 3]], [[0, 1], [0, 1]])
    """
    require_operation(operation)
    world_size = require_count("world_size", world_size, least=1)
    n_chunks = require_count("n_chunks", n_chunks, least=1)
    origin = np.tile(np.arange(n_chunks), (world_size, 1))
    if operation not in PLACES:
        return origin
    if n_chunks % world_size:
        raise PlanError("blocks that change places must have one size",
                        given=f"n_chunks={n_chunks}, world_size={world_size}",
                        hint=f"a multiple of the world size: n_chunks={world_size}")  # fmt: skip
    size = n_chunks // world_size
    blocks = [[PLACES[operation](rank, owner) for owner in range(world_size)] for rank in range(world_size)]
    return (np.array(blocks)[:, :, None] * size + np.arange(size)).reshape(world_size, n_chunks)
