"""Arrays as blocks of rows, one for each rank: cut as `np.array_split` cuts, padded to one size on the wire.

A plan cuts a buffer where a multiple of its chunks begins; rows that do not divide begin elsewhere. So each block has a
place of the longest one's size, and the rest of it is zero: at most one row a rank more than there are.
"""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lab.checks import whole
from lab.errors import ArgumentError, DTypeError, ShapeError
from lab.events.event import Array
from lab.parallel.ranks.operands import kind_in_words

HEADING = 1024
"""Bytes in which the dtype and shape of an array must have room."""


class Blocks(NamedTuple):
    """How so many rows are dealt to ranks.

    Example:
        >>> blocks = Blocks(5, 3)
        >>> [blocks.rows_of(rank) for rank in range(3)], blocks.longest
        ([2, 2, 1], 2)
        >>> buffer = blocks.buffer(np.dtype(int))
        >>> blocks.deal(np.arange(5), buffer)
        >>> buffer.tolist(), blocks.joined(buffer).tolist()
        ([[0, 1], [2, 3], [4, 0]], [0, 1, 2, 3, 4])
    """

    n_rows: int
    world_size: int

    @property
    def longest(self) -> int:
        """Rows of the first block."""
        return -(-self.n_rows // self.world_size)

    def rows_of(self, rank: int) -> int:
        """How many rows a rank has."""
        return self.n_rows // self.world_size + (rank < self.n_rows % self.world_size)

    def buffer(self, dtype: np.dtype[Any], *rest: int) -> npt.NDArray[Any]:
        """Places for all blocks: (world_size, longest, *rest), zero."""
        return np.zeros((self.world_size, self.longest, *rest), dtype)

    def deal(self, array: Array, buffer: npt.NDArray[Any], root: int = 0) -> None:
        """Put the block of each rank into its place, that of rank `root` into the first."""
        for rank, block in enumerate(np.array_split(array, self.world_size)):
            buffer[(rank - root) % self.world_size, : len(block)] = block

    def joined(self, buffer: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """All rows, in order."""
        return np.concatenate([buffer[rank, : self.rows_of(rank)] for rank in range(self.world_size)])


def require_rows(array: Array, operation: str) -> None:
    """Refuse an array that has no axis to be cut along.

    Raises:
        ShapeError: so it is.

    Example:
        >>> require_rows(np.array(1.0), "reduce_scatter")
        Traceback (most recent call last):
        lab.errors.ShapeError: reduce_scatter cuts the first axis, and there is none
        given: float64[]
        hint:  array.reshape(1) has one
    """
    if not array.ndim:
        raise ShapeError(f"{operation} cuts the first axis, and there is none",
                         given=kind_in_words(array.dtype, array.shape), hint="array.reshape(1) has one")  # fmt: skip


def require_share(array: Array, blocks: Blocks, rank: int) -> None:
    """Refuse what is not the block of this rank.

    Raises:
        ShapeError: it has another number of rows.
    """
    rows = blocks.rows_of(rank)
    if len(array) != rows:
        raise ShapeError(f"rank {rank} brings another block than its own",
                         given=f"{len(array)} rows; of {blocks.n_rows} on {blocks.world_size} ranks it has {rows}",
                         hint="np.array_split(whole, comm.world_size)[comm.rank]")  # fmt: skip


def require_even_rows(array: Array, world_size: int) -> None:
    """Refuse rows that cannot be dealt in blocks of one size.

    Raises:
        ShapeError: so it is.

    Example:
        >>> require_even_rows(np.ones((5, 2)), 4)
        Traceback (most recent call last):
        lab.errors.ShapeError: all_to_all needs a block of one size for each rank
        given: 5 rows for 4 ranks
        hint:  pad the first axis to 8 rows
    """
    require_rows(array, "all_to_all")
    if n_more := -len(array) % world_size:
        raise ShapeError("all_to_all needs a block of one size for each rank",
                         given=f"{len(array)} rows for {world_size} ranks",
                         hint=f"pad the first axis to {len(array) + n_more} rows")  # fmt: skip


def heading_of(array: Array) -> Array:
    """Dtype and shape of an array as bytes, for ranks that do not know them.

    Raises:
        DTypeError: the names of a record's fields have no room.
    """
    text = io.BytesIO()
    about = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_2_0(text, about)
    if text.tell() > HEADING:
        raise DTypeError("the dtype is too long to be told to the other ranks", given=f"{text.tell()} bytes",
                         hint="shorter names of fields")  # fmt: skip
    heading = np.zeros(HEADING, np.uint8)
    heading[: text.tell()] = np.frombuffer(text.getbuffer(), np.uint8)
    return heading


def read_heading(heading: Array) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Dtype and shape, as `heading_of` told them.

    Example:
        >>> read_heading(heading_of(np.ones((2, 3), np.float32)))
        (dtype('float32'), (2, 3))
    """
    shape, _, dtype = np.lib.format.read_array_header_2_0(io.BytesIO(heading[np.lib.format.MAGIC_LEN :].tobytes()))
    return dtype, shape


def require_number_of_rows(rows: object) -> int:
    """The number of rows that was given with a block.

    Raises:
        ArgumentError: it is none.
    """
    return whole("rows", rows, least=0, hint="of the whole array, as rows=len(whole)", error=ArgumentError)
