"""Loops whose turns are counted or decided when the graph runs: what is carried from turn to turn, and the region."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from lab import tree
from lab.autograd.interpreter import Tracer
from lab.autograd.tensor import Tensor
from lab.graph.ir import Atom, Var
from lab.graph.regions import SCAN, WHILE
from lab.graph.scripting.desk import Desk, Env, Unset, closed
from lab.graph.scripting.joining import MismatchError, atom, words
from lab.graph.scripting.numbers import ScriptTrace, is_numeric, is_soft, spec
from lab.ops import cast
from lab.shapes import Spec


class Start(NamedTuple):
    """A value before the first turn, with the dtype in which it is carried; `soft`: as a number of Python."""

    value: Any
    dtype: np.dtype[Any]
    soft: bool

    def entering(self, trace: ScriptTrace) -> Tracer:
        """The input of the graph of a turn that stands for it."""
        made = trace.new(Spec(spec(self.value).shape, self.dtype))
        return trace.soften(made) if self.soft else made

    def operand(self, desk: Desk) -> Any:
        """It as an operand of the region."""
        if not isinstance(self.value, Tensor):
            return np.asarray(self.value, self.dtype)
        x = desk.lift(self.value)
        number = isinstance(x, Tracer) and x.weak  # a number itself: the turns want an array
        return cast(x, dtype=self.dtype) if number or x.dtype != self.dtype else x

    def widened(self, x: Any) -> Start:
        """It as what a turn gives back may follow on: itself, where that fits.

        A number gives way to the dtype of x, as `total = 0` does to the floats that are added to it.

        Raises:
            MismatchError: nothing fits both.
        """
        if not is_numeric(x) or spec(x).shape != spec(self.value).shape:
            raise MismatchError(f"{words(self.value)}, then {words(x)}")
        dtype = spec(x).dtype
        if dtype == self.dtype:
            return self if is_soft(x) or not self.soft else self._replace(soft=False)
        if self.soft and is_soft(x):
            wide = np.result_type(self.dtype, dtype)
            return self if wide == self.dtype else self._replace(dtype=wide)
        hard, number = (dtype, self.dtype) if self.soft else (self.dtype, dtype)
        if not (self.soft or is_soft(x)) or np.result_type(hard, number.type(0).item()) != hard:
            raise MismatchError(f"{words(self.value)}, then {words(x)}")
        return self._replace(dtype=hard, soft=False)


class Carried(NamedTuple):
    """What a name holds from turn to turn."""

    structure: tree.Structure
    starts: tuple[Start, ...]


class Turn(NamedTuple):
    """One turn as a graph that is still open."""

    trace: ScriptTrace
    own: list[Var]
    outputs: list[Atom]


@dataclass
class Loop:
    """A loop that becomes a region.

    Attributes:
        names: what a turn assigns.
        turn: `turn(env, row)` does one turn on an environment.
        test: `test(env)` is the condition; None: one turn for each row.
        rows: what is scanned, a tensor, or the numbers of a range.
        where: "file:line".
        carried: by name; shrinks until a turn gives back what it took.
        unset: the other names that a turn assigns, with the reason why nobody may read them before they are set.
        hidden: those of the carried that no turn may read before it sets them; after the last they have a value.
    """

    desk: Desk
    names: Sequence[str]
    turn: Callable[[Env, Any], None]
    test: Callable[[Env], Any] | None
    rows: Any
    where: str
    carried: dict[str, Carried] = field(default_factory=dict)
    unset: dict[str, Unset] = field(default_factory=dict)
    hidden: dict[str, Unset] = field(default_factory=dict)

    def write(self, env: Env) -> None:
        """Write the region, and put what the names hold after it into the environment."""
        for name in self.names:
            self._begin(name, env)
        turn = self._turned(env)
        while turn is None:  # each time something was widened or dropped, so it ends
            turn = self._turned(env)
        starts = [s for c in self.carried.values() for s in c.starts]
        outs = iter(self._region(env, turn, [s.operand(self.desk) for s in starts], [s.soft for s in starts]))
        for name, c in self.carried.items():
            env[name] = tree.unflatten(c.structure, [next(outs) for _ in c.starts])
        env.update(self.unset)

    def _begin(self, name: str, env: Env) -> None:
        value = env.get(name)
        leaves, structure = tree.flatten(value)
        if name not in env:
            problem = f"{name} is set in the loop at {self.where} only, which may take no turn"
            found = self.unset if self.rows is None else self.hidden  # there is a turn for each row, and there are rows
            found[name] = Unset(problem, f"set {name} before the loop")
        elif isinstance(value, Unset):
            self.unset[name] = value
        elif not leaves or not all(map(is_numeric, leaves)):
            self._drop(name, f"{words(value)} before it")
        else:
            self.carried[name] = Carried(structure, tuple(Start(x, spec(x).dtype, is_soft(x)) for x in leaves))

    def _drop(self, name: str, why: str) -> None:
        self.carried.pop(name, None)
        self.hidden.pop(name, None)
        self.unset[name] = Unset(
            f"{name} is not the same kind of value in every turn of the loop at {self.where}: {why}",
            f"start {name} with the shape and dtype that a turn gives it",
        )

    def _entered(self, env: Env, trace: ScriptTrace) -> tuple[Env, list[Var]]:
        """The environment in which a turn begins, and the inputs of its graph."""
        inner, own = {**env, **self.unset}, []
        for name, c in self.carried.items():
            values = [s.entering(trace) for s in c.starts]
            own += [v.extra for v in values]
            inner[name] = tree.unflatten(c.structure, values)
        return inner | self.hidden, own

    def _turned(self, env: Env) -> Turn | None:
        """One turn read into a trace; None if what it carries had to be changed for it."""
        trace = self.desk.fresh()
        inner, own = self._entered(env, trace)
        row = None if self.rows is None else _row(trace, self.rows)
        with self.desk.inside(trace):
            self.turn(inner, row)
            steady = [self._settled(name, inner[name]) for name in (*self.carried, *self.hidden)]
            if not all(steady):
                return None
            outputs = [
                atom(trace, x, start.dtype)
                for name, c in self.carried.items()
                for x, start in zip(tree.flatten(inner[name])[0], c.starts, strict=True)
            ]
        return Turn(trace, own if row is None else [*own, row.extra], outputs)

    def _settled(self, name: str, value: Any) -> bool:
        """Whether a turn gave back what it took; if not, the start is widened or the name dropped."""
        leaves, structure = tree.flatten(value)
        known = self.carried.get(name)
        if isinstance(value, Unset) or not all(map(is_numeric, leaves)) or (known and known.structure != structure):
            self._drop(name, value.problem if isinstance(value, Unset) else f"then {words(value)}")
            return False
        if known is None:  # nobody sees with what it begins
            kinds = [(spec(x), is_soft(x)) for x in leaves]
            starts = tuple(Start(np.zeros(s.shape, s.dtype), s.dtype, soft) for s, soft in kinds)
            self.carried[name] = Carried(structure, starts)
            return False
        try:
            wide = tuple(start.widened(x) for start, x in zip(known.starts, leaves, strict=True))
        except MismatchError as why:
            self._drop(name, str(why))
            return False
        self.carried[name] = Carried(structure, wide)
        return all((w.dtype, w.soft) == (s.dtype, s.soft) for w, s in zip(wide, known.starts, strict=True))

    def _region(self, env: Env, turn: Turn, starts: list[Any], soft: list[bool]) -> list[Any]:
        if self.test is None:
            fixed, (body,) = closed([turn.trace], [turn.own], [turn.outputs])
            n = {"n_fixed": len(fixed), "n_carry": len(starts), "length": len(self.rows), "reverse": False}
            return self.desk.region(SCAN, [*fixed, *starts, self.rows], soft, body=body, **n)
        asked = self.desk.fresh()
        inner, own = self._entered(env, asked)
        with self.desk.inside(asked):
            test = asked.atom(self.test(inner), "a condition")
        fixed, (tested, body) = closed([asked, turn.trace], [own, turn.own], [[test], turn.outputs])
        return self.desk.region(WHILE, [*fixed, *starts], soft, test=tested, body=body, n_fixed=len(fixed))


def _row(trace: ScriptTrace, rows: Any) -> Tracer:
    """What a turn gets of what is scanned; the numbers of a range are those of Python."""
    like = spec(rows)
    made = trace.new(Spec(like.shape[1:], like.dtype))
    return trace.soften(made) if isinstance(rows, np.ndarray) else made
