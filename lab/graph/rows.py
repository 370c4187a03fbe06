"""How the values of a part of a graph lie along the rows and columns of one space, and the program over rows they make.

What may stand in one loop follows from the space (`spaces.py`) alone, so that the pass that forms the parts and the
code that compiles them agree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lab.errors import KernelError
from lab.graph.ir import Atom, Equation, Graph, Literal, Var
from lab.graph.spaces import REDUCTIONS, Space, space_of
from lab.kernels.chain import Step
from lab.kernels.formula import Formula
from lab.kernels.rowwise import About, Cast, Line, Match, Pick, Program, Reduce, describe, known_of_input
from lab.shapes import normal_axes

FLOATS = ("float32", "float64")
HELD = (*FLOATS, "bool")
"""Dtypes of values in a loop; labels of int64 are compared with the number of the column."""
ALIASES = ("broadcast_to", "expand_dims", "reshape")
"""Ops that only say how their operand lies."""
NEGATED = Formula("-x")


class Part:
    """Some equations in order, as far as they fit one space.

    Attributes:
        space: rows and columns.
        layouts: by number of a variable that is made here how it lies; "end" for what is there after all rows.
        lines: what the program does.
        operands: variables from outside, each with its layout.
    """

    def __init__(self, space: Space, makers: Mapping[int, Equation]) -> None:
        self.space, self._makers = space, makers
        self.layouts: dict[int, str] = {}
        self.equations: list[Equation] = []
        self.lines: list[Line] = []
        self.operands: dict[Var, str] = {}
        self.aliases: list[Equation] = []
        self._about: dict[str, About] = {}

    def copy(self) -> Part:
        """Another one that can be changed."""
        new = Part(self.space, self._makers)
        new.layouts, new.equations = dict(self.layouts), list(self.equations)
        new.lines, new.operands, new.aliases = list(self.lines), dict(self.operands), list(self.aliases)
        new._about = dict(self._about)
        return new

    def take(self, e: Equation) -> bool:
        """Add an equation, if it fits; whether it did."""
        if len(e.outs) != 1 or not all(n for n in e.out.spec.shape):
            return False
        mark = len(self.lines), len(self.aliases), dict(self.operands)
        try:
            layout = self._layout_made(e)
        except KernelError:
            layout = ""
        if not layout:
            del self.lines[mark[0] :], self.aliases[mark[1] :]
            self.operands = mark[2]
            return False
        self.layouts[e.out.number] = layout
        self.equations.append(e)
        return True

    def _layout_made(self, e: Equation) -> str:
        """How the result lies, whose lines are added; "" if the equation does not fit."""
        if e.op.name in REDUCTIONS:
            return self._reduce(e)
        return self._pick(e) if e.op.name == "nll" else self._step(e)

    # --- operands ---

    def _operand(self, a: Atom, layout: str) -> str | float | None:
        """The name or the number of an operand that is to lie like this; None if it does not."""
        if isinstance(a, Literal):
            value = np.asarray(a.value)
            return value.reshape(-1)[0].item() if value.size and np.all(value == value.reshape(-1)[0]) else None
        seen = []
        while a.number not in self.layouts:
            maker = self._makers.get(a.number)
            if maker is None or maker.op.name not in ALIASES or not isinstance(maker.inputs[0], Var):
                break
            below = maker.inputs[0]
            if maker.op.name == "broadcast_to":
                layout = self._layout(below, layout)
            elif math.prod(below.spec.shape) != math.prod(a.spec.shape) or layout == "full":
                break
            if not layout:
                return None
            seen.append(maker)
            a = below
        if a.number in self.layouts:
            return str(a) if self.layouts[a.number] == layout and self._add_aliases(seen) else None
        if a.weak or a.spec.dtype.name not in (*HELD, "int64") or self.operands.get(a, layout) != layout:
            return None
        self._add_aliases(seen)
        self.operands[a] = layout
        self._about.setdefault(str(a), known_of_input(a.spec.dtype.name, layout))
        return str(a)

    def _add_aliases(self, seen: list[Equation]) -> bool:
        self.aliases += [e for e in reversed(seen) if e not in self.aliases]
        return True

    def _layout(self, v: Var, wanted: str) -> str:
        """How what is broadcast lies, if the result lies as wanted."""
        if wanted == "full":
            return self.space.layout(v.spec.shape)
        if wanted == "column" and self.space.is_column(v.spec.shape):
            return "column"
        if v.spec.size == 1:
            return "single"
        return "row" if wanted == "row" and v.spec.size == self.space.n_columns else ""

    # --- equations ---

    def _reduce(self, e: Equation) -> str:
        x, n = e.inputs[0], len(e.inputs[0].spec.shape)
        if not isinstance(x, Var) or x.spec.dtype.name not in FLOATS or e.out.spec.dtype != x.spec.dtype:
            return ""
        axes, name = normal_axes(e.params["axis"], n), str(e.out)
        if tuple(x.spec.shape) == self.space.shape:
            of = self._operand(x, "full")
            over = self.space.over(axes)
        elif self.space.is_column(x.spec.shape) and axes == tuple(range(n)):
            of, over = self._operand(x, "column"), "all"
        else:
            return ""
        if not isinstance(of, str) or not over or (e.op.name != "sum" and over != "columns"):
            return ""
        self._enter(Reduce(name, e.op.name, of, over))
        return "column" if over == "columns" else "end"

    def _pick(self, e: Equation) -> str:
        """The entry of each row that a label names, with its sign changed."""
        x, labels = e.inputs
        fits = isinstance(x, Var) and isinstance(labels, Var) and e.params["reduction"] == "none"
        if not fits or tuple(x.spec.shape) != self.space.shape or x.spec.dtype.name not in FLOATS:
            return ""
        if labels.spec.dtype != np.int64 or not self.space.is_column(labels.spec.shape):
            return ""
        of, at = self._operand(x, "full"), self._operand(labels, "column")
        if not isinstance(of, str) or not isinstance(at, str):
            return ""
        self._enter(Pick(f"{e.out}_", of, at))
        self._enter(Step(str(e.out), NEGATED, ("x",), (f"{e.out}_",)))
        return "column"

    def _step(self, e: Equation) -> str:
        """How the result of an elementwise equation lies; "" if it does not fit."""
        shape = tuple(e.out.spec.shape)
        if e.out.spec.dtype.name not in HELD:
            return ""
        if math.prod(shape) == 1 and any(self._is_end(a) for a in e.inputs):
            layout = "end"
        elif shape == self.space.shape:
            layout = "full"
        elif self.space.is_column(shape):
            layout = "column"
        else:
            return ""
        if e.op.name == "one_hot":
            return self._one_hot(e, layout)
        if not e.op.formula and e.op.name != "cast":
            return ""
        return layout if self._written(e, layout, typed=False) or self._written(e, layout, typed=True) else ""

    def _written(self, e: Equation, layout: str, *, typed: bool) -> bool:
        """Add the line of an elementwise equation; False if it makes something else than the equation does.

        Args:
            typed: constants keep their dtype, and do not give way to that of what they meet.
        """
        arguments = [self._argument(a, layout, typed) for a in e.inputs]
        if any(a is None for a in arguments):
            return False
        given = tuple(a for a in arguments if a is not None)
        name, dtype = str(e.out), e.out.spec.dtype.name
        if e.op.name == "cast":
            if not isinstance(given[0], str):
                return False
            line: Line = Cast(name, given[0], dtype)
        else:
            words = (*e.op.arguments, *e.params)
            line = Step(name, Formula(e.op.formula), words, (*given, *map(float, e.params.values())))
        made = describe(line, self._about)
        if made.dtype != dtype or made.layout != {"end": "single"}.get(layout, layout):
            return False
        self._enter(line)
        return True

    def _is_end(self, a: Atom) -> bool:
        return isinstance(a, Var) and self.layouts.get(a.number) == "end"

    def _argument(self, a: Atom, layout: str, typed: bool) -> Any:
        """An operand as an argument of a step: a name, or a number; None if it does not lie beside the result."""
        if layout == "end" and self._is_end(a):
            return str(a)
        own = "single" if layout == "end" and a.spec.size == 1 else self._layout_of(a, layout)
        if not own or (isinstance(a, Var) and a.spec.dtype.name not in HELD):
            return None
        found = self._operand(a, own)
        fixed = isinstance(a, Literal) and not a.weak and a.spec.dtype.kind == "f" and found is not None
        return a.spec.dtype.type(found) if typed and fixed else found

    def _layout_of(self, a: Atom, layout: str) -> str:
        """How an operand lies beside a result that lies like this."""
        if isinstance(a, Literal) or a.spec.size == 1:
            return "single" if not (isinstance(a, Var) and self.layouts.get(a.number) == "column") else "column"
        if layout == "full":
            return self.space.layout(a.spec.shape)
        if self.space.is_column(a.spec.shape):
            return "column"
        return "cycle" if self.space.layout(a.spec.shape) == "cycle" else ""

    def _one_hot(self, e: Equation, layout: str) -> str:
        labels, dtype = e.inputs[0], e.out.spec.dtype.name
        if layout != "full" or not isinstance(labels, Var) or labels.spec.dtype != np.int64 or dtype not in FLOATS:
            return ""
        of = self._operand(labels, "column") if self.space.is_column(labels.spec.shape) else None
        if not isinstance(of, str):
            return ""
        self._enter(Match(f"{e.out}_", of))
        self._enter(Cast(str(e.out), f"{e.out}_", dtype))
        return "full"

    def _enter(self, line: Line) -> About:
        """Add a line; what is known of what it makes."""
        made = describe(line, self._about)
        self._about[line.name] = made
        self.lines.append(line)
        return made

    def program(self, outputs: Sequence[Var]) -> Program:
        """The program that makes these of its values."""
        inputs = tuple((str(v), v.spec.dtype.name, layout) for v, layout in self.operands.items())
        return Program(inputs, tuple(self.lines), tuple(map(str, outputs)))


def part_of(body: Graph) -> Part:
    """The equations of the graph inside a fused equation, as a part.

    Raises:
        KernelError: they do not fit one space.
    """
    makers = {v.number: e for e in body.equations for v in e.outs}
    real = [e for e in body.equations if e.op.name not in ALIASES]
    for e in real:
        part = Part(space_of(e, makers), makers)
        if all(part.take(other) for other in real):
            return part
    given = str(body).splitlines()[0]
    raise KernelError("equations that do not fit one loop", given=given, hint="they run one by one")
