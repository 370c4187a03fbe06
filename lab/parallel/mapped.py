"""pmap: vmap whose members are ranks, threads of this process or workers.

Each rank gets its part of the arguments, runs the function, and what they return is stacked. A gradient goes back by
another pmap, of the function's pullback, which runs the function again: so collectives meet on the way back, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lab import tree
from lab.autograd.interpreter import Tracer
from lab.autograd.tensor import Tensor, wrap
from lab.checks import whole
from lab.config import STATE
from lab.errors import ArgumentError, LabError, LostRankError, MeshError, RankError, ShapeError, UnsupportedError
from lab.ops.moving import moveaxis
from lab.ops.rows import add_rows
from lab.parallel.cluster.cluster import Cluster, launch
from lab.parallel.paper.plans import Plan
from lab.parallel.ranks.axis import IN_ORDER, RANKS, axis, several
from lab.parallel.ranks.runtime import Comm
from lab.parallel.ranks.threads import run_ranks
from lab.shapes import normal_axes
from lab.transforms import custom_vjp, vjp, vmap
from lab.transforms.arguments import axes_of, function, returned, taken
from lab.transforms.batching import in_axes_of, size_of
from lab.words import counted, shown

Axes = Sequence[int | None]


def pmap(
    f: Callable[..., Any], on: Any = None, axis_name: str = RANKS, in_axes: Any = 0, out_axes: Any = 0, *,
    algorithm: str | Plan = IN_ORDER, timeout: float = 60.0,
) -> Callable[..., Any]:  # fmt: skip
    """Map a function over an axis of its arguments, each member on a rank of its own.

    It gives what `vmap` with the same axes gives, to the bit where f adds in a settled order: collectives do by the
    plan "naive"; a matrix product of many members at once may add otherwise than that of one. With several members for
    each rank, each rank runs `vmap` over its own, and collectives over the axis are refused.

    Args:
        f: a function of tensors or containers of them; all ranks run the same code. Arguments travel whole.
        on: a number of threads; a Cluster, a Client or a scheduler's address for workers; without it a thread for each
            member. A Cluster gives as many ranks as it has workers, but at most one for each member.
        axis_name: what collectives inside f, as `lab.all_reduce`, call the ranks.
        in_axes, out_axes: as of `vmap`.
        algorithm: of all-reduces inside f.
        timeout: seconds that a rank may wait for others while nothing moves.

    Raises:
        ShapeError: members cannot be dealt to the ranks; ranks return different shapes.
        RankError: f raised on a rank.
        UnsupportedError: an argument is traced or mapped, or a result would lose its gradient.

    Example:
        >>> import lab
        >>> lab.pmap(lambda x: x / lab.all_reduce(x, axis_name="ranks"))(lab.tensor([1.0, 3.0]))
        tensor([0.25, 0.75])
        >>> lab.grad(lambda x: lab.pmap(lambda x: x * x, 2)(x).sum())(lab.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([2., 4., 6., 8.])
    """
    function(f, "pmap")
    ranks = Ranks(on, axis_name, algorithm, timeout)

    @functools.wraps(f)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        flat, structure = tree.flatten((args, kwargs))
        axes = in_axes_of(in_axes, args) + [0] * len(tree.flatten(kwargs)[0])
        values = [x if a is None else taken(x, "pmap") for x, a in zip(flat, axes, strict=True)]

        def of_leaves(*leaves: Any) -> list[Any]:
            args, kwargs = tree.unflatten(structure, leaves)
            outs, out_structure = tree.flatten(f(*args, **kwargs))
            return [out_structure, *outs]

        call = MappedCall(of_leaves, axes, size_of(values, axes, in_axes, "pmap"), ranks)
        out_structure, outs = call(values)
        places = axes_of(out_axes, tree.unflatten(out_structure, outs), "out_axes", none=False)
        return tree.unflatten(out_structure, [_moved(o, a) for o, a in zip(outs, places, strict=True)])

    return mapped


class MappedCall(NamedTuple):
    """A function of leaves, as each member calls it: it returns the structure of its result, then the leaves of it."""

    f: Callable[..., list[Any]]
    axes: Axes
    n_members: int
    ranks: Ranks

    def __call__(self, values: list[Any]) -> tuple[Any, list[Any]]:
        """The structure, and the leaves of all members: rows in front; with a derivative."""
        places = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
        found: list[Any] = []

        def filled(tensors: Sequence[Any]) -> list[Any]:
            full = list(values)
            for i, tensor in zip(places, tensors, strict=True):
                full[i] = tensor
            return full

        def pmap(*tensors: Any) -> list[Any]:
            found[:], outs = self._meet(filled(tensors))
            return outs

        def bwd(kept: tuple[Any, ...], cts: list[Any]) -> tuple[Any, ...]:
            back = self._back(filled(kept), cts)
            return tuple(back.get(i) for i in places)

        run = custom_vjp(pmap)
        run.defvjp(lambda *tensors: (run(*tensors), tensors), bwd)
        outs = run(*(values[i] for i in places))
        return found[0], outs

    def _meet(self, values: list[Any]) -> tuple[list[Any], list[Any]]:
        if traced := [v for v in values if isinstance(v, Tracer)]:
            raise UnsupportedError("pmap runs at once, and cannot be traced or mapped", given=repr(traced[0]),
                                   hint="vmap or jit inside: lab.pmap(lab.jit(f))")  # fmt: skip
        n = self.ranks.number(self.n_members)
        bare = [wrap(v.value) if isinstance(v, Tensor) else v for v in values]
        return _stacked(self.ranks.run(Part(self.f, bare, self.axes, self.n_members, self.ranks), n))

    def _back(self, values: list[Any], cts: list[Any]) -> dict[int, Any]:
        """The cotangents of what is differentiated, by place: what all members share gets the sum of theirs."""
        floats = [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.dtype.kind == "f"]
        pullback, axes = Pullback(self.f, floats, len(values)), [*self.axes, *[0] * len(cts)]
        _, found = MappedCall(pullback, axes, self.n_members, self.ranks)([*values, *cts])
        rows = ((i, self.axes[i], x) for i, x in zip(floats, found, strict=True))
        return {i: add_rows(x) if a is None else _moved(x, a) for i, a, x in rows}


class Pullback:
    """What a member does on the way back: its arguments, then the cotangents of its results."""

    def __init__(self, f: Callable[..., list[Any]], floats: list[int], n_values: int) -> None:
        self.f, self.floats, self.n_values = f, floats, n_values

    def __call__(self, *leaves: Any) -> list[Any]:
        values, cts = list(leaves[: self.n_values]), list(leaves[self.n_values :])

        def of_floats(*floats: Any) -> list[Any]:
            for i, x in zip(self.floats, floats, strict=True):
                values[i] = x
            return self.f(*values)[1:]

        _, pull = vjp(of_floats, *(values[i] for i in self.floats))
        return [None, *pull(cts)]


def _stacked(parts: list[list[Any]]) -> tuple[list[Any], list[Any]]:
    """The structure of a result, and the rows of all ranks below each other.

    Raises:
        ShapeError: ranks returned what does not fit together.
    """
    kinds = [(part[0], [(x.shape[1:], x.dtype) for x in part[1:]]) for part in parts]
    for rank, kind in enumerate(kinds):
        if kind != kinds[0]:
            words = [", ".join(f"{dtype}{list(shape)}" for shape, dtype in leaves) or "nothing" for _, leaves in
                     (kinds[0], kind)]  # fmt: skip
            raise ShapeError(f"rank {rank} returned something else than rank 0", given=f"{words[0]}; {words[1]}",
                             hint="what depends on the rank may be values, not shapes or containers")  # fmt: skip
    return parts[0][:1], [wrap(np.concatenate(rows)) for rows in zip(*(part[1:] for part in parts), strict=True)]


class Ranks:
    """Where a function is mapped, and how its ranks meet."""

    def __init__(self, on: Any, axis_name: str, algorithm: str | Plan, timeout: float) -> None:
        self.on, self.axis_name, self.algorithm, self.timeout = on, axis_name, algorithm, timeout
        if isinstance(on, bool) or not (on is None or isinstance(on, int | str | Cluster) or hasattr(on, "scheduler")):
            raise ArgumentError("pmap runs on threads or workers", given=f"on={shown(on)}",
                                hint="a number of threads, or a Cluster, a Client, a scheduler's address")  # fmt: skip
        if isinstance(on, int):
            whole("on", on, least=1, hint="a number of threads, as on=4")

    def number(self, n_members: int) -> int:
        """How many ranks share so many members.

        Raises:
            ShapeError: some would have more than others.

        Example:
            >>> Ranks(4, "ranks", "naive", 60.0).number(6)
            Traceback (most recent call last):
            lab.errors.ShapeError: pmap deals the same number of members to each rank
            given: 6 members for 4 ranks: 6 = 4 * 1 + 2
            hint:  pad the axis to 8, or take 3 ranks
        """
        on = self.on
        n = on if isinstance(on, int) else n_members
        if isinstance(on, Cluster) and on.n_started:
            n = min(n_members, on.n_started)
        each, rest = divmod(n_members, n) if n else (0, 0)
        if rest:
            fits = max(k for k in range(1, n) if n_members % k == 0)
            raise ShapeError(
                "pmap deals the same number of members to each rank",
                given=f"{counted(n_members, 'member')} for {counted(n, 'rank')}: {n_members} = {n} * {each} + {rest}",
                hint=f"pad the axis to {n * (each + 1)}, or take {counted(fits, 'rank')}",
            )
        return n

    def run(self, part: Part, n: int) -> list[Any]:
        """What the part of each rank returned."""
        if self.on is None or isinstance(self.on, int):
            return run_ranks(_named, part, world_size=n, timeout=self.timeout)
        return launch(_plain, part, client=self.on, world_size=n, timeout=self.timeout)


class Part:
    """What every rank gets: the function, all arguments, and which of their entries are whose."""

    def __init__(
        self, f: Callable[..., list[Any]], leaves: list[Any], axes: Axes, n_members: int, ranks: Ranks
    ) -> None:
        self.f, self.leaves, self.axes, self.n_members = f, leaves, axes, n_members
        self.axis_name, self.algorithm = ranks.axis_name, ranks.algorithm

    def run(self, comm: Comm) -> list[Any]:
        """The structure of what f returns, and its leaves as arrays, one row for each member of this rank."""
        each = self.n_members // comm.world_size
        mine = [x if a is None else _block(x, a, comm.rank, each) for x, a in zip(self.leaves, self.axes, strict=True)]
        if each == 1:
            with axis(comm, self.axis_name, self.algorithm):
                structure, *outs = self.f(*(x if a is None else x[0] for x, a in zip(mine, self.axes, strict=True)))
            return [structure, *(_kept(out)[None] for out in outs)]
        found: list[Any] = []

        def of_member(*leaves: Any) -> list[Any]:
            found[:], outs = (made := self.f(*leaves))[:1], made[1:]
            return outs

        with several(self.axis_name, self.n_members, comm.world_size):
            outs = vmap(of_member, in_axes=tuple(None if a is None else 0 for a in self.axes))(*mine)
        return [*found, *map(_kept, outs)]


def _plain(comm: Comm, part: Part) -> list[Any]:
    return part.run(comm)


def _named(comm: Comm, part: Part) -> list[Any]:
    """On a thread: an error of the lab's says on which rank it was; workers' errors do."""
    try:
        return part.run(comm)
    except (MeshError, LostRankError):
        raise
    except LabError as error:
        raise RankError(f"f raised {type(error).__name__} on rank {comm.rank} of {comm.world_size}",
                        given=str(error).replace("\n", "; "), rank=comm.rank,
                        hint="its traceback stands above") from error  # fmt: skip


def _block(x: Tensor, a: int, rank: int, each: int) -> Tensor:
    """The members of a rank, in front."""
    rows = np.moveaxis(np.asarray(x.value), a, 0)
    return wrap(np.array(rows[rank * each : (rank + 1) * each]))


def _kept(out: Any) -> Any:
    """A leaf of a result as an array that can travel."""
    value = returned(out, "pmap")
    if type(value) is not Tensor or (value.node is not None and STATE.get().frozen < 0):
        raise UnsupportedError(
            "a result of pmap would lose its gradient on the way",
            given=repr(value),
            hint="give what is differentiated as an argument, take lab.grad inside f, or call under lab.no_grad()",
        )
    return np.asarray(value.value)


def _moved(out: Any, a: int | None) -> Any:
    (at,) = normal_axes(a, out.ndim, op="pmap")
    return out if at == 0 else moveaxis(out, 0, at)
