"""What the derivative of a function of one number really is, to more digits than a float has, and how that is known."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from lab.errors import ArgumentError, GradientError, LabError
from lab.transforms.expressions import symbolic

DIGITS = 50
LEVELS = 12
"""Rows of the table of differences: the first step is 1/4, each is half the one before."""
GOOD = 1e-14
"""Two neighbours of the table must agree to this for its entry to be called the truth."""


class Truth(NamedTuple):
    """A derivative.

    Attributes:
        value: exact as far as it is known.
        source: how it is known, in words.
    """

    value: Fraction
    source: str

    def error(self, estimate: float) -> float:
        """How far an estimate is from it, relative to it, or absolute where it is 0; nan for one that is no number.

        Example:
            >>> Truth(Fraction(2), "given").error(3.0), Truth(Fraction(0), "given").error(0.25)
            (0.5, 0.25)
        """
        if not np.isfinite(estimate):
            return float("nan")
        return float(abs(Fraction(float(estimate)) - self.value) / (abs(self.value) or 1))


def truth_of(f: Callable[[Any], Any], x: Any, given: Any = None) -> Truth:
    """The derivative of f at a NumPy number: given, else by sympy to 50 digits, else by differences in longdouble.

    Raises:
        ArgumentError: what is given is no number.
        GradientError: it cannot be found out.

    Example:
        >>> import lab
        >>> truth_of(lab.exp, np.float64(0.0))
        Truth(value=Fraction(1, 1), source='sympy, 50 digits')
    """
    if given is not None:
        return Truth(_fraction(given), "given")
    found = _by_algebra(f, x)
    if found is not None:
        return Truth(found, f"sympy, {DIGITS} digits")
    eps = float(np.finfo(np.longdouble).eps)  # on some machines no better than a float's
    return Truth(_by_differences(f, x), f"differences extrapolated in longdouble, eps {eps:.0e}")


def _fraction(given: Any) -> Fraction:
    try:
        return Fraction(given) if isinstance(given, int | str | Decimal | Fraction) else Fraction(float(given))
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise ArgumentError(
            "truth is the derivative as a number", given=repr(given)[:60],
            hint='truth="0.5403023058681398" keeps its digits',
        ) from None  # fmt: skip


def _by_algebra(f: Callable[[Any], Any], x: Any) -> Fraction | None:
    """By sympy, where the function is made of ops that have formulas."""
    try:
        slope = symbolic(f, float(x)).diff()
        (symbol,) = slope.symbols
        import sympy

        value = sympy.sympify(slope.expression.subs(symbol, sympy.Rational(*x.as_integer_ratio()))).evalf(DIGITS)
        return Fraction(str(value))
    except (LabError, TypeError, ValueError, AttributeError, RecursionError):  # no number, or a circle, as of floor
        return None


def _by_differences(f: Callable[[Any], Any], x: Any) -> Fraction:
    """Romberg's table of central differences in the longest float of NumPy (Ridders 1982)."""
    kind, rows = np.longdouble, list[list[Any]]()
    try:
        with np.errstate(all="ignore"):
            for k in range(LEVELS):
                h = kind(0.25) / kind(2) ** k
                row = [(_long(f(kind(x) + h)) - _long(f(kind(x) - h))) / (2 * h)]
                for j, before in enumerate(rows[-1] if rows else (), 1):
                    row.append(row[-1] + (row[-1] - before) / (kind(4) ** j - 1))
                rows.append(row)
    except (LabError, TypeError) as why:
        raise _unknown(str(why).partition("\n")[0]) from None
    gaps = [(abs(b - a), b) for row in rows for a, b in pairwise(row) if np.isfinite(b)]
    gap, best = min(gaps, key=lambda pair: pair[0], default=(kind(np.inf), kind(0)))
    if not gap <= GOOD * max(abs(best), kind(1)):
        raise _unknown("differences do not settle: there may be a kink or a jump")
    return Fraction(*best.as_integer_ratio())


def _long(out: Any) -> Any:
    if getattr(out, "dtype", None) != np.longdouble:
        kind = getattr(out, "dtype", type(out).__name__)
        raise TypeError(f"asked with the digits of a longdouble it answers with those of a {kind}")
    return np.asarray(getattr(out, "value", out)).reshape(())[()]


def _unknown(why: str) -> GradientError:
    return GradientError(
        "measure_errors cannot find out the true derivative of this function", given=why[:120],
        hint="give it, as truth=..., or write the function in lab ops or NumPy functions",
    )  # fmt: skip
