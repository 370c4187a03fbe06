"""Exercise of lesson 04: a number that takes its tangent along."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lab.errors import ExerciseError
from lab.teach.dual import Dual
from lab.teach.exercise import Case, Check, Exercise, Mutant
from lab.teach.exercises.expressions import only
from lab.teach.plain import Plain, describe

PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "x * y": lambda x, y: x * y,
    "x * x": lambda x, y: x * x,
    "x * y + x": lambda x, y: x * y + x,
}
SINES: dict[str, Callable[[Any, Any], Any]] = {"sin(x)": lambda x, y: x.sin()}
FORMULAS: dict[str, Callable[[Any, Any], Any]] = {
    "x + y": lambda x, y: x + y,
    **PRODUCTS,
    **SINES,
    "sin(x + y)": lambda x, y: (x + y).sin(),
    "x * sin(x * y)": lambda x, y: x * (x * y).sin(),
}
"""By their text; they run on numbers of any kind that know +, * and sin. Those of one method stand apart."""


def through(kind: Callable[[float, float], Any], text: str, x: Case, y: Case) -> Plain:
    """Value and tangent of a formula, for numbers of this kind.

    Raises:
        ExerciseError: the result is no number of this kind.

    Example:
        >>> through(Dual, "x * y + x", (2.0, 1.0), (3.0, 0.0))
        (8.0, 4.0)
    """
    z = FORMULAS[text](kind(*x), kind(*y))
    if not (hasattr(z, "value") and hasattr(z, "tangent")):
        raise ExerciseError("it gave no Dual", given=f"{z!r}"[:100],
                            hint="each method ends with `return Dual(value, tangent)`")  # fmt: skip
    return z.value, z.tangent


def _shown(case: Case) -> str:
    text, x, y = case
    return f"For {text} with x = {describe(x[0])}, y = {describe(y[0])}, tangents {describe(x[1])} and {describe(y[1])}"


def _with(**methods: Callable[..., Any]) -> Any:
    return type("Dual", (Dual,), methods)


def _product(tangent: Callable[[Any, Any], float]) -> Any:
    return _with(__mul__=lambda x, y: Dual(x.value * y.value, tangent(x, y)))


def _sine(tangent: Callable[[Any], float]) -> Any:
    return _with(sin=lambda x: Dual(math.sin(x.value), tangent(x)))


def _mutant(name: str, kind: Any, hint: str) -> Mutant:
    """A mistake in one method, known by the formulas that use that one alone."""
    texts = PRODUCTS if "__mul__" in vars(kind) else SINES
    return Mutant(name, kind, hint, only(texts, through, kind))


DUAL = Exercise(
    name="Dual",
    task="Let a product and a sine carry their tangent.",
    stub='''\
class Dual:
    def __init__(self, value, tangent=0.0):
        self.value, self.tangent = value, tangent

    def __add__(self, other):
        return Dual(self.value + other.value, self.tangent + other.tangent)

    def __mul__(self, other):
        return Dual(self.value * other.value, self.tangent * other.tangent)

    def sin(self):
        return Dual(np.sin(self.value), self.tangent)
''',
    arguments=("text", "x", "y"),
    results=("value", "tangent"),
    answer=Dual,
    call=through,
    checks=(
        Check("a sum", [("x + y", (2.0, 1.0), (3.0, 0.5))]),
        Check("a product, along x, along y, along both", [("x * y", (2.0, 1.0), (3.0, 0.0)),
              ("x * y", (2.0, 0.0), (3.0, 1.0)), ("x * y", (2.0, 1.0), (3.0, 0.5))]),
        Check("a number used twice", [("x * x", (3.0, 1.0), (0.0, 0.0)), ("x * y + x", (2.0, 1.5), (-1.0, 2.0))]),
        Check("a sine", [("sin(x)", (0.5, 1.0), (0.0, 0.0)), ("sin(x)", (2.0, -3.0), (0.0, 0.0)),
              ("sin(x + y)", (0.3, 1.0), (0.4, 2.0))]),
        Check("one inside the other", [("x * sin(x * y)", (0.7, 1.0), (1.2, -0.5))]),
    ),
    mutants=(
        _mutant("the tangents of a product are multiplied", _product(lambda x, y: x.tangent * y.tangent),
                "hold y fast: its tangent is 0. Does x * y then stand still?"),
        _mutant("only x moves in the product", _product(lambda x, y: x.tangent * y.value),
                "y has a tangent, too: what does x * y gain when y moves?"),
        _mutant("the wrong factors are paired in the product",
                _product(lambda x, y: x.tangent * x.value + y.tangent * y.value),
                "when x moves, x * y moves by the other factor"),
        _mutant("the parts of the product are subtracted",
                _product(lambda x, y: x.tangent * y.value - x.value * y.tangent), "both parts add to the product"),
        _mutant("the tangents of a product are added", _product(lambda x, y: x.tangent + y.tangent),
                "that is the rule of a sum: in a product each counts as often as the other factor says"),
        _mutant("the sine passes its tangent on unchanged", _sine(lambda x: x.tangent),
                "how steep is a sine? At 0 it is 1, and elsewhere?"),
        _mutant("the tangent of x is left out of the sine", _sine(lambda x: math.cos(x.value)),
                "cos is the slope of sin; what comes in moves at the speed x.tangent"),
        _mutant("the sine of the tangent is taken", _sine(lambda x: math.sin(x.tangent)),
                "the slope is that at the value: cos(self.value), times the tangent"),
        _mutant("the cosine of the tangent is taken", _sine(lambda x: math.cos(x.tangent)),
                "the slope is that at the value: cos(self.value), times the tangent"),
        _mutant("the sign of the cosine is turned", _sine(lambda x: -math.cos(x.value) * x.tangent),
                "just right of 0 a sine rises"),
    ),
    hints=(
        "(x + x' e) * (y + y' e), where e * e = 0: what stands before e?",
        "product: self.tangent * other.value + self.value * other.tangent",
        "sine: np.cos(self.value) * self.tangent",
    ),
    show=_shown,
)  # fmt: skip
