"""A program over the rows of arrays as a value: elementwise steps; sums and maxima along rows, down them and of all.

Softmax, layer norm, a loss with its gradient, a bias with its activation and the sums of their gradients are programs
like this. The source of its one loop goes row by row, in phases: what a row's sum is needed for comes in a later phase
over the same row, which is in the cache by then.
"""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from lab.errors import KernelError
from lab.kernels.chain import DTYPES, LAYOUTS, Step, Value, Writer, local

REDUCTIONS = ("sum", "max", "min")
OVER = ("columns", "rows", "all", "cycle")
"""What a reduction adds up: the entries of each row, the rows of each column, everything, the rows of one turn."""


class Reduce(NamedTuple):
    """One reduction: `name` is the sum, the maximum or the minimum of the value `of`."""

    name: str
    kind: str
    of: str
    over: str


class Match(NamedTuple):
    """`name` holds in the column that the integer `of` of the row names, and nowhere else."""

    name: str
    of: str


class Pick(NamedTuple):
    """`name` is the entry of the value `of` in the column that the integer `at` of the row names."""

    name: str
    of: str
    at: str


class Cast(NamedTuple):
    """`name` is `of` in another dtype."""

    name: str
    of: str
    dtype: str


Line: TypeAlias = Step | Reduce | Match | Pick | Cast


@dataclass(frozen=True)
class Program:
    """Steps over arrays of rows and columns.

    Attributes:
        inputs: (name, dtype, layout) of each; float32, float64 or bool, of a column also int64. One of a "cycle" of n
            has an entry for each row from 0 to n - 1, then for the n rows after them again.
        lines: in order; a line may use inputs and lines before it.
        outputs: names of the values that are written.

    Raises:
        KernelError: a dtype, a name, a layout or a formula that a loop cannot hold.

    Example:
        >>> from lab.kernels.formula import Formula
        >>> sums = Program((("x", "float32", "full"),), (Reduce("s", "sum", "x", "columns"),
        ...     Step("y", Formula("x / s"), ("x", "s"), ("x", "s"))), ("y",))
        >>> sums.layout("s"), sums.layout("y"), sums.phase("y")
        ('column', 'full', 1)
    """

    inputs: tuple[tuple[str, str, str], ...]
    lines: tuple[Line, ...]
    outputs: tuple[str, ...]

    def __post_init__(self) -> None:
        names = [name for name, _, _ in self.inputs] + [line.name for line in self.lines]
        bad = [name for name in names if not name.isidentifier() or keyword.iskeyword(name) or not name.isascii()]
        if bad or len(set(names)) != len(names):
            raise KernelError("names in a program are different identifiers", given=", ".join(names))
        if not self.outputs or not set(self.outputs) <= {line.name for line in self.lines}:
            raise KernelError("the outputs of a program are names of its lines", given=", ".join(self.outputs))
        about: dict[str, About] = {}
        for name, dtype, layout in self.inputs:
            if layout not in (*LAYOUTS, "cycle") or (dtype == "int64" and layout != "column"):
                raise KernelError("a program needs a layout for each input", given=f"{name}: {dtype} {layout}")
            about[name] = known_of_input(dtype, layout)
        for line in self.lines:
            about[line.name] = describe(line, about)
        object.__setattr__(self, "_about", about)
        steps = [line.name for line in self.lines if not isinstance(line, Reduce) and about[line.name].layout == "row"]
        if set(steps) & set(self.outputs):
            raise KernelError("a value of one for each column is no output, but a sum", given=", ".join(steps))

    def about(self, name: str) -> About:
        """What is known of a value."""
        found: dict[str, About] = self._about  # type: ignore[attr-defined]
        return found[name]

    def layout(self, name: str) -> str:
        """How a value lies: entry by entry, one for each column (row), each row (column), each of a cycle, or one."""
        return self.about(name).layout

    def phase(self, name: str) -> int:
        """In which pass over a row it is there."""
        return self.about(name).phase

    @property
    def output_dtypes(self) -> tuple[str, ...]:
        """The dtype of each output, as NumPy would give it."""
        return tuple(self.about(name).dtype for name in self.outputs)


class About(NamedTuple):
    """What is known of a value: dtype, layout, phase, and the source of the step that makes it."""

    dtype: str
    layout: str
    phase: int
    text: str


def known_of_input(dtype: str, layout: str) -> About:
    """What is known of an operand. One of a cycle has one entry for each row, the same again after each turn."""
    return About(dtype, "column" if layout == "cycle" else layout, 0, "")


def describe(line: Line, about: dict[str, About]) -> About:
    """What is known of the value that a line makes.

    Raises:
        KernelError: a loop cannot hold it.
    """
    if isinstance(line, Match):
        return About("bool", "full", about[line.of].phase, f"int32(column) == int32({local(line.of)})")
    if isinstance(line, Pick):
        of = _there(line.of, line, about)
        if of.layout != "full" or about[line.at].dtype != "int64":
            raise KernelError("an entry is picked from what lies entry by entry, by an integer", given=str(line))
        return About(of.dtype, "column", of.phase + 1, "")
    if isinstance(line, Cast):
        return _cast(line, about)
    return _reduction(line, about) if isinstance(line, Reduce) else _step(line, about)


def _there(name: str, line: Line, about: dict[str, About]) -> About:
    """What is known of an operand."""
    known = about.get(name)
    late = known is not None and known.phase == LAST and not (isinstance(line, Step) and known.layout == "single")
    if known is None or late or known.dtype == "int64":
        raise KernelError("a line uses a value that is not there, or no number", given=f"{name} in {line.name}")
    return known


def _cast(line: Cast, about: dict[str, About]) -> About:
    of = _there(line.of, line, about)
    if line.dtype not in DTYPES:
        raise KernelError("a program cannot cast like this", given=str(line))
    text = f"{local(line.of)} != 0" if line.dtype == "bool" else f"{line.dtype}({local(line.of)})"
    return About(line.dtype, of.layout, of.phase, text)


def _reduction(line: Reduce, about: dict[str, About]) -> About:
    of = _there(line.of, line, about)
    if line.kind not in REDUCTIONS or line.over not in OVER:
        raise KernelError("a program cannot reduce like this", given=str(line))
    if of.dtype == "bool" or (line.kind != "sum" and line.over != "columns"):
        raise KernelError("floats are summed in every direction, and compared along rows", given=str(line))
    if of.layout != "full" and (of.layout, line.over) != ("column", "all"):
        raise KernelError("what is reduced lies entry by entry", given=f"{line}: {of.layout}")
    layout = {"columns": "column", "rows": "row", "all": "single", "cycle": "cycle"}[line.over]
    return About(of.dtype, layout, of.phase + 1 if line.over == "columns" else LAST, "")


def _step(line: Step, about: dict[str, About]) -> About:
    scope: dict[str, Value] = {}
    layouts, phase = set(), 0
    for parameter, argument in zip(line.parameters, line.arguments, strict=True):
        if isinstance(argument, np.floating):
            text = f"{'f4' if argument.dtype.itemsize == 4 else 'f8'}({float(argument)!r})"
            scope[parameter] = Value(text, argument.dtype.name)
            layouts.add("single")
            continue
        if not isinstance(argument, str):
            scope[parameter] = Value(repr(argument), None, argument)
            continue
        known = _there(argument, line, about)
        scope[parameter] = Value(local(argument), known.dtype)
        layouts.add(known.layout)
        phase = max(phase, known.phase)
    value = Writer(line.formula, scope).write(line.formula.tree.body)
    if value.dtype is None:
        raise KernelError("a step of a program depends on no array", given=f"{line.name} = {line.formula.text}")
    if phase == LAST and layouts != {"single"}:
        raise KernelError("what is there after all rows meets single numbers alone", given=line.name)
    mixed = "full" in layouts or {"row", "column"} <= layouts
    layout = "full" if mixed else next((k for k in ("row", "column") if k in layouts), "single")
    return About(value.dtype, layout, phase, value.text)


LAST = 1 << 20
"""The phase of what is there only when all rows are done."""
