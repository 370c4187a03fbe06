"""The ranks of a launch as a named axis, for collectives that are ops: the same function that runs under vmap."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, cast

import numpy as np

from lab.config import STATE, using
from lab.errors import ArgumentError, TransformError
from lab.ops.members import MEMBERS, Members, Pairs
from lab.ops.pairing import circle
from lab.ops.rows import add_rows
from lab.parallel.paper.plans import COLLECTIVES, Plan, Recv, Send, Step
from lab.parallel.ranks.runtime import Comm
from lab.words import counted, shown

RANKS = "ranks"
"""The name of the axis of all ranks, if no other is chosen."""

IN_ORDER = "naive"
"""The plan of an all-reduce that adds in the order of ranks, as a batch axis adds in the order of its members."""


class OfRanks:
    """The ranks of a Comm as the members of an axis."""

    def __init__(self, comm: Comm, algorithm: str | Plan) -> None:
        self._comm, self._algorithm = comm, algorithm

    @property
    def index(self) -> int:
        """The number of this rank."""
        return self._comm.rank

    def all_reduce(self, x: Any, op: str) -> Any:
        """The sum over all ranks by the chosen plan, in a new array."""
        return self._comm.all_reduce_(np.array(x), self._algorithm, op=op)

    def all_gather(self, x: Any) -> Any:
        """Around the ring."""
        return self._comm.all_gather(np.asarray(x))

    def reduce_scatter(self, x: Any, op: str) -> Any:
        """By the chosen plan, if it has such a name; else blocks are swapped, and each rank adds in the order of ranks.

        That sends as few bytes as a ring does.
        """
        algorithm = self._algorithm
        if op in {"max", "min"} or (isinstance(algorithm, str) and ("reduce_scatter", algorithm) in COLLECTIVES):
            plan = algorithm if isinstance(algorithm, str) and algorithm != IN_ORDER else "ring"
            return self._comm.reduce_scatter(x, plan, op=op)
        n = self._comm.world_size
        mine = add_rows(self._comm.all_to_all(x).reshape(n, len(x) // n, *x.shape[1:]))
        return mine / n if op == "mean" else mine

    def broadcast(self, x: Any, root: int) -> Any:
        """From one rank to the others, one after the other."""
        return self._comm.broadcast_(np.array(x), root)

    def all_to_all(self, x: Any) -> Any:
        """A tournament."""
        return self._comm.all_to_all(x)

    def permute(self, x: Any, pairs: Pairs) -> Any:
        """By the plan "shift" where each rank gives to the next, else by a plan of these pairs."""
        comm, x = self._comm, np.array(x)
        if pairs == circle(1, comm.world_size):
            comm.run_(x, "shift", "direct")
            return x
        comm.run_(x, "permute", moving(pairs))
        return x if comm.rank in {dst for _, dst in pairs} else np.zeros_like(x)


@lru_cache(maxsize=256)
def moving(pairs: Pairs) -> Plan:
    """The plan of a permutation: all that moves does so in one step.

    Example:
        >>> from lab.parallel import run_local
        >>> [int(x[0]) for x in run_local("permute", moving(((0, 2), (1, 1))), [np.array([r]) for r in range(3)])]
        [0, 1, 0]
    """

    def direct(rank: int, world_size: int, n_chunks: int) -> Iterator[Step]:
        out = [Send(dst, 0, n_chunks) for src, dst in pairs if src == rank != dst]
        back = [Recv(src, 0, n_chunks, reduce=False) for src, dst in pairs if dst == rank != src]
        if out or back:
            yield (*out, *back)

    return direct


@contextmanager
def axis(comm: Comm, name: str = RANKS, algorithm: str | Plan = IN_ORDER) -> Iterator[None]:
    """Let collectives that are ops, as `lab.all_reduce(x, axis_name=name)`, meet the ranks of `comm`.

    Forward, and in the order of the tape backward; so all ranks run the same program. `comm` may be a group.

    Args:
        algorithm: of sums. "naive" adds in the order of ranks, as `vmap(axis_name=...)` does, and gives the same bits;
            others, as "ring", are faster on large arrays.

    Raises:
        ArgumentError: the axis has a name already.

    Example:
        >>> import lab
        >>> from lab.parallel import run_ranks
        >>> def program(comm):
        ...     with axis(comm, "ranks"):
        ...         return lab.grad(lambda x: lab.all_reduce(x * x, axis_name="ranks"))(float(comm.rank))
        >>> [float(g) for g in run_ranks(program, world_size=3)]
        [0.0, 6.0, 12.0]
    """
    with _bound(name, comm.world_size, OfRanks(comm, algorithm)):
        yield


@contextmanager
def several(name: str, n_members: int, n_ranks: int) -> Iterator[None]:
    """An axis of more members than ranks, whose size is known and along which nobody meets."""
    with _bound(name, n_members, cast("Members", Several(n_members, n_ranks))):
        yield


class Several:
    """The members of such an axis."""

    def __init__(self, n_members: int, n_ranks: int) -> None:
        self._given = f"{n_members} members on {counted(n_ranks, 'rank')}"

    def __getattr__(self, _what: str) -> Any:
        raise TransformError("members meet only where each has a rank of its own", given=self._given,
                             hint="as many ranks as members; or vmap inside f over a second axis")  # fmt: skip


@contextmanager
def _bound(name: str, size: int, members: Members) -> Iterator[None]:
    state = STATE.get()
    if type(name) is not str or not name:
        raise ArgumentError("the name of an axis is a text", given=f"name={shown(name)}", hint='axis(comm, "ranks")')
    if any(name == other for other, _ in state.axes):
        raise ArgumentError("an axis has this name already", given=repr(name), hint="choose another name")
    token = MEMBERS.set({**MEMBERS.get(), name: members})
    try:
        with using(axes=(*state.axes, (name, size))):
            yield
    finally:
        MEMBERS.reset(token)
