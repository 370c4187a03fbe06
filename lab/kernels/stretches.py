"""A pass over a row in several stretches, where what it computes is too deep for the processor to look ahead.

tanh, exp of that, the logistic function of that: each waits for the one before, and the instructions of one turn of
such a loop fill all that a core keeps in flight, so nothing of the next turn is begun meanwhile. Cut behind each of
them, with what goes on kept for some hundred entries in the first cache, fourteen operations on a million numbers take
3.7 ms where one loop takes 6.2; every number stays the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lab.kernels.chain import Step
from lab.kernels.rowwise import Cast, Match, Program

ENTRIES = 512
"""Entries of a stretch: a few values of as many, in float32 or float64, lie in the first cache together."""
MOST = 8
"""Stretches of one pass: each value that goes on from one to the next is an argument of the loop."""
SHORT = frozenset(
    {"abs", "sign", "floor", "ceil", "rint", "trunc", "sqrt", "maximum", "minimum", "where", "isnan", "isinf",
     "isfinite", "logical_not", "logical_and", "logical_or", "logical_xor"}
)  # fmt: skip
"""Functions that are a few instructions."""


class Stretches(NamedTuple):
    """How the passes of a loop are cut.

    Attributes:
        number: of a value that is made in a pass that is cut, in which stretch; values of other passes are not there.
        held: values that a later stretch of the same pass reads.
    """

    number: dict[str, int]
    held: set[str]

    def of(self, name: str) -> int:
        """In which stretch of its pass a value is there."""
        return self.number.get(name, 0)


def operands(line: Step | Match | Cast) -> list[str]:
    """The values that a step reads."""
    return [line.of] if isinstance(line, Match | Cast) else [a for a in line.arguments if isinstance(a, str)]


def is_cheap(line: Step | Match | Cast) -> bool:
    """Whether computing it again costs less than keeping it."""
    if isinstance(line, Match | Cast):
        return True
    return "/" not in line.formula.text and not line.formula.functions - {"where", "maximum", "minimum"}


def stretches_of(program: Program, steps: Mapping[str, Step | Match | Cast], asked: Iterable[str]) -> Stretches:
    """The stretches of a program.

    Args:
        steps: by name those that run entry by entry or once for a row, in order.
        asked: values that are written, kept or summed.

    Example:
        >>> from lab.kernels.formula import Formula
        >>> chain = (Step("y", Formula("tanh(x)"), ("x",), ("x",)), Step("z", Formula("exp(x)"), ("x",), ("y",)))
        >>> program = Program((("x", "float32", "full"),), chain, ("z",))
        >>> stretches_of(program, {"y": chain[0], "z": chain[1]}, ["z"])
        Stretches(number={'y': 0, 'z': 1}, held={'y'})
    """
    full = {name: line for name, line in steps.items() if program.layout(name) not in ("column", "single")}
    number = _numbers(program, full)
    held: set[str] = set()
    asked = [name for name in asked if name in number]
    for at in sorted(set(number.values()), reverse=True):
        reading = [name for name in {*asked, *held} if number[name] == at]
        held |= _read_by(program, full, number, reading)
    return Stretches(number, held)


def _numbers(program: Program, full: Mapping[str, Step | Match | Cast]) -> dict[str, int]:
    """The stretch of each value in a pass where one long function waits for another."""
    depth: dict[str, int] = {}
    deepest: dict[int, int] = {}
    for name, line in full.items():
        phase = program.phase(name)
        below = [depth[a] for a in operands(line) if a in depth and program.phase(a) == phase]
        depth[name] = max(below, default=0) + _is_long(line)
        deepest[phase] = max(deepest.get(phase, 0), depth[name])
    number = {}
    for name, line in full.items():
        most = deepest[program.phase(name)]
        if most > 1:
            number[name] = (depth[name] - _is_long(line)) // -(-(most + 1) // MOST)
    return number


def _is_long(line: Step | Match | Cast) -> bool:
    return isinstance(line, Step) and bool(line.formula.functions - SHORT)


def _read_by(
    program: Program, full: Mapping[str, Step | Match | Cast], number: Mapping[str, int], names: Sequence[str]
) -> set[str]:
    """What values of one stretch read of earlier stretches of the same pass, and is not computed again."""
    found: set[str] = set()
    seen = set(names)
    todo = list(names)
    while todo:
        name = todo.pop()
        for a in operands(full[name]):
            if a not in full or a in seen:
                continue
            seen.add(a)
            earlier = number.get(a, 0) < number[names[0]] and program.phase(a) == program.phase(names[0])
            if earlier and not _is_light(full, a):
                found.add(a)
            else:
                todo.append(a)
    return found


def _is_light(full: Mapping[str, Step | Match | Cast], name: str) -> bool:
    """Whether it is one cheap step from what is read anyway."""
    return is_cheap(full[name]) and not any(is_cheap(full[a]) for a in operands(full[name]) if a in full)
