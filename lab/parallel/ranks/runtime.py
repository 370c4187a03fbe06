"""What a rank's program sees of the others: `comm`, with its rank, the world's size, and the calls that all make.

The same Comm serves ranks on workers and ranks that are threads of one process (`threads.py`), over the same sockets.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from lab.errors import ArgumentError
from lab.events.event import Array
from lab.parallel.paper.plans import Plan
from lab.parallel.ranks.groups import group_of, require_members
from lab.parallel.ranks.handles import Handle, Job
from lab.parallel.ranks.jobs import Jobs, Rows
from lab.parallel.ranks.member import AnyArray
from lab.parallel.ranks.operands import whole_number
from lab.parallel.transport.wire import place_of_caller
from lab.words import one_of, shown

STARTED = ("all_reduce_", "broadcast_", "reduce_", "reduce_scatter", "all_gather", "gather", "scatter", "all_to_all",
           "barrier")  # fmt: skip
"""Calls that `start` takes."""


class Comm(Jobs):
    """One rank's connection to all others of its launch, for one thread: a second call at once is refused.

    Every rank makes the same calls in the same order, with equal shapes and dtypes. After a call that raised MeshError
    or LostRankError in the middle no call works any more: each raises MeshError with the first problem.

    `op` is "sum", "mean" (the sum, divided once; not of whole numbers), "max" or "min", in which nan stays nan.
    `algorithm` is with the operation a key of COLLECTIVES, or a plan of your own; the bits of a sum depend on it.
    """

    def __repr__(self) -> str:
        return f"Comm(rank={self.rank}, world_size={self.world_size}{f', group {self.name}' if self.name else ''})"

    def all_reduce_(self, array: AnyArray, algorithm: str | Plan = "ring", *, op: str = "sum") -> AnyArray:
        """Sum `array` over all ranks, in place; every rank gets the same bits, which depend on the algorithm.

        Shapes:
            array: any shape and numeric dtype, equal on all ranks; the result is `array` itself.
        Args:
            algorithm: with "all_reduce" a key of COLLECTIVES, or a plan of your own.
            op: "sum", "mean", "max" or "min".
        Raises:
            MeshError: ranks make different calls.
            LostRankError: a rank died, or nothing moved for the time-out of the launch.
        Example:
            >>> from lab.parallel import run_local, run_ranks
            >>> [float(x.sum()) for x in run_local("all_reduce", "ring", [np.ones(4)] * 3)]
            [12.0, 12.0, 12.0]
            >>> run_ranks(lambda comm: float(comm.all_reduce_(np.ones(1) * comm.rank, op="max")[0]), world_size=3)
            [2.0, 2.0, 2.0]
        """
        if not self._again.made(frame := sys._getframe(1), array, algorithm, op):
            self._all_reduce_(array, algorithm, op=op).run()
            self._again.remember(frame, array, algorithm, op)
        return array

    def broadcast_(self, array: AnyArray, root: int = 0, algorithm: str | Plan = "flat") -> AnyArray:
        """Make `array` what it is on rank `root`, in place.

        Shapes:
            array: any shape and any dtype without objects (also text, times and records), equal on all ranks; the
                result is `array` itself.
        Raises:
            ArgumentError: there is no such root.
            MeshError, LostRankError: as `all_reduce_`.
        Example:
            >>> from lab.parallel import run_local
            >>> [x.tolist() for x in run_local("broadcast", "flat", [np.full(2, rank) for rank in range(3)], root=1)]
            [[1, 1], [1, 1], [1, 1]]
        """
        return self._broadcast_(array, root, algorithm).run()

    def reduce_(self, array: AnyArray, root: int = 0, algorithm: str | Plan = "flat", *, op: str = "sum") -> AnyArray:
        """Sum `array` over all ranks, in place on rank `root`; the arrays of the others stay what they are.

        Example:
            >>> from lab.parallel import run_ranks
            >>> run_ranks(lambda comm: comm.reduce_(np.array([comm.rank]), root=1).tolist(), world_size=3)
            [[0], [3], [2]]
        """
        return self._reduce_(array, root, algorithm, op=op).run()

    def reduce_scatter(self, array: Rows, algorithm: str | Plan = "ring", *, op: str = "sum") -> Rows:
        """Sum `array` over all ranks; each gets its block of the sum, as `np.array_split` cuts the first axis.

        Shapes:
            array: at least one axis, equal on all ranks; result: new, the rows of this rank.
        Example:
            >>> from lab.parallel import run_ranks
            >>> run_ranks(lambda comm: comm.reduce_scatter(np.arange(5)).tolist(), world_size=3)
            [[0, 3], [6, 9], [12]]
        """
        return self._reduce_scatter(array, algorithm, op=op).run()

    def all_gather(self, array: Rows, algorithm: str | Plan = "ring", *, rows: int | None = None) -> Rows:
        """The arrays of all ranks, on every rank.

        Shapes:
            array: equal on all ranks; result: new, stacked, (world_size, ...). With `rows`, `array` is this rank's
                block of so many rows, as from `reduce_scatter`, and the result is all of them.
        Example:
            >>> from lab.parallel import run_ranks
            >>> run_ranks(lambda comm: comm.all_gather(np.array([comm.rank, 7])).tolist(), world_size=2)
            [[[0, 7], [1, 7]], [[0, 7], [1, 7]]]
            >>> def program(comm):
            ...     return comm.all_gather(np.array_split(np.arange(5), comm.world_size)[comm.rank], rows=5).tolist()
            >>> run_ranks(program, world_size=3)[2]
            [0, 1, 2, 3, 4]
        """
        return self._all_gather(array, algorithm, rows=rows).run()

    def gather(self, array: Rows, root: int = 0, algorithm: str | Plan = "flat") -> Rows | None:
        """The arrays of all ranks, stacked, on rank `root`; None on the others.

        Shapes:
            array: equal on all ranks; result: new, (world_size, ...).
        Example:
            >>> from lab.parallel import run_ranks
            >>> [x is not None and x.tolist() for x in
            ...  run_ranks(lambda comm: comm.gather(np.array([comm.rank]), root=1), world_size=2)]
            [False, [[0], [1]]]
        """
        return self._gather(array, root, algorithm).run()

    def scatter(self, array: Rows | None, root: int = 0, algorithm: str | Plan = "flat") -> Rows:
        """Each rank's block of `array` of rank `root`, as `np.array_split` cuts the first axis.

        Shapes:
            array: on the root at least one axis, any number of rows; None on the others, who learn shape and dtype
                from it. Result: new, the rows of this rank.
        Example:
            >>> from lab.parallel import run_ranks
            >>> run_ranks(lambda comm: comm.scatter(None if comm.rank else np.arange(5)).tolist(), world_size=3)
            [[0, 1], [2, 3], [4]]
        """
        return self._scatter(array, root, algorithm).run()

    def all_to_all(self, array: Rows, algorithm: str | Plan = "direct") -> Rows:
        """Block r of `array` goes to rank r; what comes from rank r is block r of the result.

        Shapes:
            array: its first axis a multiple of world_size, equal on all ranks; result: new, the same shape.
        Example:
            >>> from lab.parallel import run_ranks
            >>> run_ranks(lambda comm: comm.all_to_all(np.array([0, 1]) + 10 * comm.rank).tolist(), world_size=2)
            [[0, 10], [1, 11]]
        """
        return self._all_to_all(array, algorithm).run()

    def barrier(self, algorithm: str | Plan = "dissemination") -> None:
        """Wait until every rank is here."""
        self._barrier(algorithm).run()

    def run_(
        self, array: Array, operation: str, algorithm: str | Plan, *, root: int = 0, op: str = "sum"
    ) -> None:
        """Run any plan of COLLECTIVES, or one of your own, on `array`, in place, as on paper: chunks stay in place.

        `root` is the rank that plays rank 0 of the plan; the others follow around the circle.
        """
        self._in_place(array, operation, algorithm, root=root, op=op).run()

    def start(self, operation: str, *args: Any, **options: Any) -> Handle[Any]:
        """Begin a call and return at once: `start("all_reduce_", array).wait()` does what `all_reduce_(array)` does.

        Calls that were started are carried out one after the other in the order of their start, in a thread of their
        own, and all other calls wait for their turn behind them. So every rank has to make its calls, started or not,
        in the same order. Each has to be waited for before the program ends. An array that is changed in place belongs
        to the call until then: it cannot be written to meanwhile, and what is read from it may be anything.

        Args:
            operation: name of a method: all_reduce_, broadcast_, reduce_, reduce_scatter, all_gather, gather, scatter,
                all_to_all or barrier; its arguments follow.
        Raises:
            ArgumentError: there is no such call, or the array belongs to another one that has not been waited for.
            MeshError, LostRankError: an earlier call failed. What this one raises is raised by `wait`.
        Example:
            >>> from lab.parallel import run_ranks
            >>> def program(comm):
            ...     gradients = [np.full(2, float(layer + comm.rank)) for layer in range(3)]
            ...     handles = [comm.start("all_reduce_", gradient, op="mean") for gradient in gradients]
            ...     return [handle.wait().tolist() for handle in handles]
            >>> run_ranks(program, world_size=2)[0]
            [[0.5, 0.5], [1.5, 1.5], [2.5, 2.5]]
        """
        if operation not in STARTED:
            raise ArgumentError("there is no such call to start", given=f"operation={shown(operation)}",
                                hint=one_of(operation, STARTED))  # fmt: skip
        job: Job[Any] = getattr(self, f"_{operation}")(*args, **options)
        return self._desk.start(job)

    def group(self, ranks: Sequence[int], name: str = "") -> Self:
        """Some of these ranks as a Comm of their own; only its members call this, and send nothing by it.

        Its events carry its name and the numbers that ranks have in the launch.

        Args:
            ranks: ascending; the first of them is rank 0 of the group.
            name: for messages and pictures; the members, if not given.
        Raises:
            ArgumentError: this rank is none of them, one is there twice, or they do not ascend.
        Example:
            >>> from lab.parallel import run_ranks
            >>> def program(comm):
            ...     pair = comm.group([0, 1] if comm.rank < 2 else [2, 3])
            ...     return pair.rank, int(pair.all_reduce_(np.array([comm.rank]))[0])
            >>> run_ranks(program, world_size=4)
            [(0, 1), (1, 1), (0, 5), (1, 5)]
        """
        members = require_members(ranks, self.rank, self.world_size)
        if not isinstance(name, str):
            raise ArgumentError("the name of a group is a text", given=f"name={shown(name)}", hint='name="columns"')
        group = group_of([self.ranks[member] for member in members], name, self._desk.made)
        return type(self)(members.index(self.rank), len(members), self.links, self.mailbox, self.home,
                          group=group, desk=self._desk)  # fmt: skip

    def split(self, colour: int | None, name: str = "") -> Self | None:
        """All ranks with the same colour as a Comm of their own; None for who gives None. All ranks call this.

        Example:
            >>> from lab.parallel import run_ranks
            >>> run_ranks(lambda comm: comm.split(comm.rank % 2).ranks, world_size=4)
            [(0, 2), (1, 3), (0, 2), (1, 3)]
        """
        seen = np.zeros((self.world_size, 2), np.int64)
        if colour is not None:
            seen[self.rank] = 1, whole_number(colour, "colour")
        self._silently("split", place_of_caller(), seen.reshape(-1), "all_reduce", "naive")
        if colour is None:
            return None
        members = [rank for rank, (there, theirs) in enumerate(seen.tolist()) if there and theirs == colour]
        return self.group(members, name)
