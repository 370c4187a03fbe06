"""How the axes of operands meet those of a result: which are stretched forward, which are summed over on the way back.

Pure text and numbers from a Tape. What is summed over is asked of `lab.shapes.folded_axes`, as the engine does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from lab.shapes import folded_axes
from lab.words import counted
from widgets.tape import wording
from widgets.tape.tape import Entry, Tape

Shape = tuple[int, ...]


class Axis(NamedTuple):
    """One axis of the result, and what an operand has there: None where it has no such axis."""

    have: int | None
    wide: int
    summed: bool
    """Whether the gradient is summed over it."""

    @property
    def forward(self) -> tuple[str, str]:
        """What becomes of the operand's axis: "1 → 4", "stretched"."""
        if not self.summed:
            return str(self.wide), ""
        return f"{'–' if self.have is None else self.have} → {self.wide}", self.word

    @property
    def backward(self) -> tuple[str, str]:
        """What becomes of the gradient's axis: "4 → 1", "summed"."""
        if not self.summed:
            return str(self.wide), ""
        return f"{self.wide} → {'–' if self.have is None else self.have}", "summed"

    @property
    def word(self) -> str:
        """Why it had to be stretched."""
        return "new axis" if self.have is None else "stretched"


class Operand(NamedTuple):
    """An operand beside the result."""

    number: int
    name: str
    shape: Shape
    axes: list[Axis]
    value: str
    sent: str
    """Its share of the gradient, after the sums; "" where none was sent (yet)."""
    wanted: bool
    """Whether a gradient goes back to it."""

    @property
    def summed(self) -> tuple[int, ...]:
        """The axes of the result over which its gradient is summed."""
        return tuple(k for k, axis in enumerate(self.axes) if axis.summed)

    @property
    def n_uses(self) -> int:
        """How often each of its entries is used."""
        return math.prod(self.axes[k].wide for k in self.summed)

    def account(self, backward: bool) -> str:
        """The operand in words."""
        own = wording.shape(self.shape)
        head = self.name if self.name.endswith(own) else f"{self.name}, {own}"
        if not self.summed:
            told = f"{head}: used as it is"
        else:
            where = ", ".join(f"axis {k} {self.axes[k].forward[0]} ({self.axes[k].word})" for k in self.summed)
            told = f"{head}: {where}, each entry used {counted(self.n_uses, 'time')}"
        if not backward:
            return f"{told}."
        if not self.wanted:
            return f"{told}. No gradient is wanted."
        over = f"summed over {'axes' if len(self.summed) > 1 else 'axis'} {', '.join(map(str, self.summed))}"
        how = f"{over} to {own}" if self.summed else "of that shape already"
        return f"{told}. Its gradient is {how}{f': {self.sent}' if self.sent else ''}."


class Case(NamedTuple):
    """One operation that broadcasts, on the way forward or back."""

    node: int
    what: str
    """ "v₁ = x + b"."""
    shape: Shape
    operands: list[Operand]
    backward: bool
    value: str
    gradient: str

    @property
    def heading(self) -> str:
        """Which moment it is."""
        if self.backward:
            return f"Backward of {self.what}: gradients are summed"
        return f"{self.what}: operands are stretched to {wording.shape(self.shape)}"

    def account(self) -> str:
        """The case in words."""
        came = f" The gradient that came in is {self.gradient}." if self.backward and self.gradient else ""
        return "\n".join([f"{self.heading}.{came}", *(o.account(self.backward) for o in self.operands)])


def meets(op: str) -> bool:
    """Whether operands of this op meet axis by axis, so that they may be stretched."""
    record = wording.record(op)
    return op == "broadcast_to" or (record is not None and record.elementwise and len(record.arguments) > 1)


def shape_in(text: str) -> Shape | None:
    """The shape in the words for an operand that is not tracked: () of a number, None where nothing is known.

    Example:
        >>> shape_in("(4, 1) float64"), shape_in("2.5"), shape_in("")
        ((4, 1), (), None)
    """
    if not text or text == "?":
        return None
    found = re.match(r"\(([\d, ]*)\) ", text)
    return tuple(int(n) for n in found.group(1).split(",") if n.strip()) if found else ()


def stretches(
    shape: Shape, parents: tuple[int, ...], constants: tuple[str, ...], shape_of: Callable[[int], Shape | None]
) -> bool:
    """Whether an operand is stretched; a mere number is not counted: no gradient goes back to it."""
    told = zip(parents, constants or ("",) * len(parents), strict=False)
    known = [shape_of(p) if p >= 0 else shape_in(text) or None for p, text in told]
    return any(own is not None and fits(own, shape) and bool(folded_axes(shape, own)) for own in known)


def fits(own: Shape, shape: Shape) -> bool:
    """Whether an operand of this shape can have been stretched to that of the result."""
    return len(own) <= len(shape) and all(n in (1, wide) for n, wide in zip(own[::-1], shape[::-1], strict=False))


def case_of(tape: Tape, entry: Entry, called: Mapping[int, str], backward: bool) -> Case:
    """The case of an operation, with what the latest walk sent if it is on the way back."""
    what = f"{called[entry.node]} = {wording.expression(entry, called)}"
    gradient = wording.short(entry.gradient) if backward else ""
    operands = list(_operands(tape, entry, called, backward))
    return Case(entry.node, what, entry.shape, operands, backward, wording.short(entry.value), gradient)


def _operands(tape: Tape, entry: Entry, called: Mapping[int, str], backward: bool) -> Iterator[Operand]:
    targets = tape.targets.get(entry.node, ()) if backward else ()
    seen = entry.operands or (None,) * len(entry.parents)
    texts = entry.constants or ("",) * len(entry.parents)
    for i, (parent, name) in enumerate(zip(entry.parents, wording.operands(entry, called), strict=True)):
        own = tape.entries[parent].shape if parent in tape.entries else shape_in(texts[i])
        if own is None or not fits(own, entry.shape):
            continue
        summed, extra = folded_axes(entry.shape, own), len(entry.shape) - len(own)
        axes = [Axis(own[k - extra] if k >= extra else None, n, k in summed) for k, n in enumerate(entry.shape)]
        wanted = i < len(targets) and targets[i] != -1
        sent = wording.short(tape.contributions.get((entry.node, i))) if wanted else ""
        yield Operand(i, wording.clipped(name), own, axes, wording.short(seen[i]), sent, wanted)
