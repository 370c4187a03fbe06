"""A tracer in its smallest form, for lesson 07: a stand-in for a number that writes down what is done with it.

Where Python asks the stand-in whether it is true, as an `if` does, it can only answer for the example that it has; the
tape notes that it was asked.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    ">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le,
}  # fmt: skip


class Symbol:
    """A stand-in for a number: its place on a tape, and the number that it has in the example."""

    def __init__(self, tape: Tape, place: int, value: Any) -> None:
        self.tape, self.place, self.value = tape, place, value

    def __repr__(self) -> str:
        return f"v{self.place}"

    def __bool__(self) -> bool:
        self.tape.asked.append((self.place, bool(self.value)))
        return bool(self.value)

    def __add__(self, other: Any) -> Symbol:
        return self.tape.write("+", self, other)

    def __radd__(self, other: Any) -> Symbol:
        return self.tape.write("+", other, self)

    def __sub__(self, other: Any) -> Symbol:
        return self.tape.write("-", self, other)

    def __rsub__(self, other: Any) -> Symbol:
        return self.tape.write("-", other, self)

    def __mul__(self, other: Any) -> Symbol:
        return self.tape.write("*", self, other)

    def __rmul__(self, other: Any) -> Symbol:
        return self.tape.write("*", other, self)

    def __truediv__(self, other: Any) -> Symbol:
        return self.tape.write("/", self, other)

    def __rtruediv__(self, other: Any) -> Symbol:
        return self.tape.write("/", other, self)

    def __neg__(self) -> Symbol:
        return self.tape.write("*", -1.0, self)

    def __gt__(self, other: Any) -> Symbol:
        return self.tape.write(">", self, other)

    def __lt__(self, other: Any) -> Symbol:
        return self.tape.write("<", self, other)

    def __ge__(self, other: Any) -> Symbol:
        return self.tape.write(">=", self, other)

    def __le__(self, other: Any) -> Symbol:
        return self.tape.write("<=", self, other)


class Tape:
    """What a function did with one number.

    Args:
        f: a function of a number, made of + - * / and comparisons.
        example: the number that it is run with.

    Attributes:
        rows: an operation with two operands for each place from 1 on; the input has place 0.
        asked: (place, truth) for each time that a truth was asked for.
        out: what the function gave.

    Example:
        >>> Tape(lambda x: 2.0 * x if x > 0.0 else -x, 3.0)
        v1 = v0 > 0.0  (asked, and True)
        v2 = 2.0 * v0
        gives v2
    """

    def __init__(self, f: Callable[[Any], Any], example: float) -> None:
        self.rows: list[tuple[str, Any, Any]] = []
        self.asked: list[tuple[int, bool]] = []
        self.out = f(Symbol(self, 0, example))

    def write(self, op: str, a: Any, b: Any) -> Symbol:
        """One more row, and the stand-in for what comes out."""
        value = _OPS[op](*(x.value if isinstance(x, Symbol) else x for x in (a, b)))
        self.rows.append((op, a, b))
        return Symbol(self, len(self.rows), value)

    def run(self, x: float) -> Any:
        """What the operations give for another number. The function does not run."""
        values = self._values(x)
        return values[self.out.place] if isinstance(self.out, Symbol) else self.out

    def holds(self, x: float) -> bool:
        """Whether every truth that the function asked for is the same for this number."""
        values = self._values(x)
        return all(bool(values[place]) == truth for place, truth in self.asked)

    def _values(self, x: float) -> list[Any]:
        values: list[Any] = [x]
        for op, a, b in self.rows:
            values.append(_OPS[op](*(values[y.place] if isinstance(y, Symbol) else y for y in (a, b))))
        return values

    def __repr__(self) -> str:
        asked = dict(self.asked)
        lines = [
            f"v{n} = {a} {op} {b}" + (f"  (asked, and {asked[n]})" if n in asked else "")
            for n, (op, a, b) in enumerate(self.rows, 1)
        ]
        return "\n".join([*lines, f"gives {self.out}"])
