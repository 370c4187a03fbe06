"""Collectives as jobs: arguments are looked at in the line of the call, what is sent is sent when the job has its turn.

A rank that waits for its calls runs the job at once; one that starts them has a thread run it (`handles.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lab.errors import ArgumentError
from lab.events.event import Array
from lab.parallel.paper.plans import Plan
from lab.parallel.ranks.blocks import (
    HEADING,
    Blocks,
    heading_of,
    read_heading,
    require_even_rows,
    require_number_of_rows,
    require_rows,
    require_share,
)
from lab.parallel.ranks.handles import Job
from lab.parallel.ranks.member import AnyArray, Member
from lab.parallel.ranks.operands import (
    combine_of,
    divide,
    flat_of,
    kind_in_words,
    kind_of_array,
    put_back,
    require_numbers,
)
from lab.parallel.transport.wire import place_of_caller
from lab.words import shown

Rows = npt.NDArray[Any]

ROOTED = {"broadcast", "reduce", "gather", "scatter"}
"""Operations of which the root is a part, also when it is 0."""
REDUCING = ("all_reduce", "reduce", "reduce_scatter")
"""Operations that have an `op`."""


class Jobs(Member):
    """The collectives of a Member, ready to be made."""

    def _in_place(self, array: AnyArray, operation: str, algorithm: str | Plan, *, root: int = 0, op: str = "sum",
                  keeps: bool = False) -> Job[AnyArray]:  # fmt: skip
        """A plan on `array` itself; where it `keeps` what it has, on a copy."""
        root, (plan, name) = self._require_peer(root, "root"), self._plan(operation, algorithm)
        kind = kind_of_array(array)
        self._desk.require_free(array)
        combine, target = self._combine(operation, op, array), array.view()  # writable while it belongs to the call
        adds = operation != "broadcast" or self._waves(plan, root).adds
        flat = flat_of(array, writes=not keeps, adds=adds)
        flat = flat.copy() if keeps else flat
        text, place = _text(operation, name, kind, root, op), place_of_caller()

        def run() -> AnyArray:
            self._collective(operation, name, text, place, flat, plan, root=root, combine=combine)
            if not keeps:
                divide(flat, op, self.world_size)
                put_back(flat, target)
            return array

        return Job(f"{text} at {place}", run, None if keeps else array)

    def _in_buffer(self, buffer: AnyArray, operation: str, algorithm: str | Plan, kind: str, *, root: int = 0,
                   op: str = "sum", place: str = "") -> Job[AnyArray]:  # fmt: skip
        """A plan on a buffer of the call's own."""
        plan, name = self._plan(operation, algorithm)
        combine = self._combine(operation, op, buffer)
        require_numbers(buffer, adds=operation in REDUCING or self._waves(plan, root).adds)
        text, place = _text(operation, name, kind, root, op), place or place_of_caller()

        def run() -> AnyArray:
            self._collective(operation, name, text, place, buffer.reshape(-1), plan, root=root, combine=combine)
            return buffer

        return Job(f"{text} at {place}", run)

    def _all_reduce_(self, array: AnyArray, algorithm: str | Plan = "ring", *, op: str = "sum") -> Job[AnyArray]:
        return self._in_place(array, "all_reduce", algorithm, op=op)

    def _broadcast_(self, array: AnyArray, root: int = 0, algorithm: str | Plan = "flat") -> Job[AnyArray]:
        return self._in_place(array, "broadcast", algorithm, root=root)

    def _reduce_(self, array: AnyArray, root: int = 0, algorithm: str | Plan = "flat", *, op: str = "sum"
                 ) -> Job[AnyArray]:  # fmt: skip
        return self._in_place(array, "reduce", algorithm, root=root, op=op, keeps=self.rank != root)

    def _reduce_scatter(self, array: Any, algorithm: str | Plan = "ring", *, op: str = "sum") -> Job[Rows]:
        kind = self._read(array, "reduce_scatter")
        self._combine("reduce_scatter", op, array)  # told of the caller's array, not of the buffer
        blocks = Blocks(len(array), self.world_size)
        buffer = blocks.buffer(array.dtype, *array.shape[1:])
        job = self._in_buffer(buffer, "reduce_scatter", algorithm, kind, op=op)
        blocks.deal(array, buffer)

        def run() -> Rows:
            mine = job.run()[self.rank, : blocks.rows_of(self.rank)].copy()
            divide(mine, op, self.world_size)
            return mine

        return Job(job.words, run)

    def _all_gather(self, array: Any, algorithm: str | Plan = "ring", *, rows: int | None = None) -> Job[Rows]:
        kind = self._read(array, "all_gather" if rows is not None else "")
        if rows is None:
            return self._in_buffer(self._stacked(array, self.rank), "all_gather", algorithm, kind)
        blocks = Blocks(require_number_of_rows(rows), self.world_size)
        require_share(array, blocks, self.rank)
        buffer = blocks.buffer(array.dtype, *array.shape[1:])
        buffer[self.rank, : len(array)] = array
        kind = kind_in_words(array.dtype, (blocks.n_rows, *array.shape[1:]))
        job = self._in_buffer(buffer, "all_gather", algorithm, f"{kind} in blocks")
        return Job(job.words, lambda: blocks.joined(job.run()))

    def _gather(self, array: Any, root: int = 0, algorithm: str | Plan = "flat") -> Job[Rows | None]:
        root, kind = self._require_peer(root, "root"), self._read(array)
        place = (self.rank - root) % self.world_size  # in the plan the root is rank 0, the others follow it
        job = self._in_buffer(self._stacked(array, place), "gather", algorithm, kind, root=root)

        def run() -> Rows | None:
            buffer = job.run()
            return np.roll(buffer, root, axis=0) if self.rank == root else None

        return Job(job.words, run)

    def _scatter(self, array: Any, root: int = 0, algorithm: str | Plan = "flat") -> Job[Rows]:
        root, place = self._require_peer(root, "root"), place_of_caller()
        self._plan("scatter", algorithm)  # refused here, not in the middle
        if self.rank == root:
            self._read(array, "scatter")
            require_numbers(array, adds=False)
            array = array.copy()
        elif array is not None:
            raise ArgumentError("only the root has what is scattered", given=f"rank {self.rank}: {shown(array, 40)}",
                                hint=f"None on all ranks but {root}")  # fmt: skip

        def run() -> Rows:
            heading = heading_of(array) if self.rank == root else np.zeros(HEADING, np.uint8)
            self._silently(f"scatter root {root}", place, heading, "broadcast", "flat", root)
            dtype, shape = read_heading(heading)
            blocks = Blocks(shape[0], self.world_size)
            buffer = blocks.buffer(dtype, *shape[1:])
            if self.rank == root:
                blocks.deal(array, buffer, root)
            self._in_buffer(buffer, "scatter", algorithm, kind_in_words(dtype, shape), root=root, place=place).run()
            return buffer[(self.rank - root) % self.world_size, : blocks.rows_of(self.rank)].copy()

        return Job(f"scatter root {root} at {place}", run)

    def _all_to_all(self, array: Any, algorithm: str | Plan = "direct") -> Job[Rows]:
        kind = self._read(array)
        require_even_rows(array, self.world_size)
        return self._in_buffer(array.copy(order="C"), "all_to_all", algorithm, kind)

    def _barrier(self, algorithm: str | Plan = "dissemination") -> Job[None]:
        (plan, name), place = self._plan("barrier", algorithm), place_of_caller()
        text = "barrier" if algorithm == "dissemination" else f"barrier {name}"
        token = np.zeros(1, np.int8)

        def run() -> None:
            self._collective("barrier", name, text, place, token, plan, held=False)

        return Job(f"{text} at {place}", run)

    def _combine(self, operation: str, op: str, array: Array) -> str:
        if op != "sum" and operation not in REDUCING:
            raise ArgumentError(f"{operation} reduces nothing", given=f"op={shown(op)}",
                                hint=f"{', '.join(REDUCING)} take an op")  # fmt: skip
        return combine_of(op, array)

    def _read(self, array: Any, cuts: str = "") -> str:
        """In words what is only read; refused if it is no array, or the call `cuts` it and cannot."""
        kind = kind_of_array(array)
        if cuts:
            require_rows(array, cuts)
        self._desk.require_free(array)
        return kind

    def _stacked(self, array: Any, place: int) -> Rows:
        """A place for the array of each rank, with this rank's in its `place`."""
        require_numbers(array, adds=False)
        buffer = np.zeros((self.world_size, *array.shape), array.dtype)
        buffer[place] = array
        return buffer


def _text(operation: str, name: str, kind: str, root: int, op: str) -> str:
    """What is equal on all ranks that make the call."""
    said = "" if op == "sum" else f"{op} "
    return f"{operation} {name} {said}{kind}" + (f" root {root}" if root or operation in ROOTED else "")
