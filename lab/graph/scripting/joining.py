"""Two values that become one: what a name holds after the two ways of an if, or before and after a turn of a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lab import tree
from lab.autograd.tensor import Tensor
from lab.graph.ir import Atom
from lab.graph.regions import COND
from lab.graph.scripting.desk import Desk, Env, Unset, closed
from lab.graph.scripting.numbers import ScriptTrace, is_numeric, is_soft, met, spec
from lab.graph.values import key_of


class MismatchError(Exception):
    """Two values that cannot be one value of a graph; its text says how they differ."""


class Out(NamedTuple):
    """One result of a branch: what each way gives, and whether it stands for a number."""

    then: Atom
    otherwise: Atom
    soft: bool


def words(x: Any) -> str:
    """A value in an error: its kind, and no more."""
    if not is_numeric(x):
        return type(x).__name__ if x is not None else "None"
    found = spec(x)
    return f"{found.dtype} {found.shape}" if isinstance(x, Tensor) or found.shape else f"{x!r}"


def common(a: Any, b: Any) -> np.dtype[Any]:
    """The dtype of a value that may be either: that of both, or of the one that is no number of Python.

    Raises:
        MismatchError: another shape, or another dtype.
    """
    if not (is_numeric(a) and is_numeric(b)) or spec(a).shape != spec(b).shape:
        raise MismatchError(f"{words(a)} and {words(b)}")
    dtype, soft = met([a, b]), is_soft(a) and is_soft(b)
    if not soft and any(spec(x).dtype != dtype and not is_soft(x) for x in (a, b)):
        raise MismatchError(f"{words(a)} and {words(b)}")
    return dtype


def atom(trace: ScriptTrace, x: Any, dtype: np.dtype[Any]) -> Atom:
    """A value as a result of the graph of a trace."""
    if isinstance(x, Tensor):
        return trace.atom(x if x.dtype == dtype else trace.cast(x, dtype), "a script")
    return trace.atom(np.asarray(x, dtype), "a script")


def is_same(a: Any, b: Any) -> bool:
    """Whether two values are one constant, which need not go through a graph."""
    if a is b:
        return True
    plain = type(a) is type(b) and isinstance(a, bool | int | float | np.generic | str)
    return plain and key_of(a) == key_of(b)


class Branch:
    """An if whose condition is known only when the graph runs: both ways are read, each into a graph of its own."""

    def __init__(self, desk: Desk, then: Callable[[], Any], otherwise: Callable[[], Any]) -> None:
        self.desk, self.outs = desk, list[Out]()
        self.traces = desk.fresh(), desk.fresh()
        self.results = []
        for trace, way in zip(self.traces, (then, otherwise), strict=True):
            with desk.inside(trace):
                self.results.append(way())

    def joined(self, a: Any, b: Any) -> Callable[[list[Any]], Any]:
        """Two values of the two ways as one: a function that finds it among the results of the region.

        Raises:
            MismatchError: they cannot be.
        """
        left, structure = tree.flatten(a)
        right, other = tree.flatten(b)
        if structure != other:
            raise MismatchError(f"{words(a)} and {words(b)}")
        begin = len(self.outs)
        try:
            parts = [self._leaf(x, y) for x, y in zip(left, right, strict=True)]
        except MismatchError:
            del self.outs[begin:]
            raise
        return lambda outs: tree.unflatten(structure, [part(outs) for part in parts])

    def _leaf(self, a: Any, b: Any) -> Callable[[list[Any]], Any]:
        if is_same(a, b):
            return lambda outs: a
        dtype, soft = common(a, b), is_soft(a) and is_soft(b)
        made = []
        for trace, x in zip(self.traces, (a, b), strict=True):
            with self.desk.inside(trace):
                made.append(atom(trace, x, dtype))
        self.outs.append(Out(made[0], made[1], soft))
        k = len(self.outs) - 1
        return lambda outs: outs[k]

    def write(self, test: Any) -> list[Any]:
        """Write the region; its results."""
        if not self.outs:
            return []
        ways = [o.then for o in self.outs], [o.otherwise for o in self.outs]
        fixed, (then, otherwise) = closed(self.traces, ((), ()), ways)
        soft = [o.soft for o in self.outs]
        return self.desk.region(COND, [test, *fixed], soft, then=then, otherwise=otherwise)


def choose(desk: Desk, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """The value of one of two ways.

    Raises:
        MismatchError: their values are not of one kind.
    """
    branch = Branch(desk, then, otherwise)
    part = branch.joined(*branch.results)
    return part(branch.write(test))


def merged(branch: Branch, test: Any, names: list[str], where: str) -> Env:
    """What each of these names holds after a branch whose ways gave environments; `Unset` where they do not agree."""
    then, otherwise = branch.results
    found: dict[str, Any] = {}
    for name in names:
        a, b = then.get(name), otherwise.get(name)
        if isinstance(a, Unset) or isinstance(b, Unset) or name not in then or name not in otherwise:
            held = a if isinstance(a, Unset) else b if isinstance(b, Unset) else None
            found[name] = held or Unset(f"{name} is set in one way of the if at {where} only", f"set {name} before it")
            continue
        try:
            found[name] = branch.joined(a, b)
        except MismatchError as why:
            found[name] = Unset(
                f"{name} is not the same kind of value in both ways of the if at {where}: {why}",
                "the same shape and dtype in both, as by lab.broadcast_to or .astype",
            )
    outs = branch.write(test)
    return {name: part if isinstance(part, Unset) else part(outs) for name, part in found.items()}
