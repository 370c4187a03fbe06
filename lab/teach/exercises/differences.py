"""Exercises of lesson 02: a slope from values of a function alone, one-sided, two-sided and extrapolated.

The steps are long, so that each difference has a value of its own, far from the derivative and from the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lab.teach.exercise import Case, Check, Exercise, Mutant, Seen
from lab.teach.plain import Plain, describe

FUNCTIONS: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "3 * x + 1": (lambda x: 3 * x + 1, lambda x: 3.0),
    "x * x": (lambda x: x * x, lambda x: 2 * x),
    "x ** 3": (lambda x: x**3, lambda x: 3 * x * x),
    "sin(x)": (math.sin, math.cos),
}
"""Functions and their derivatives, by the formula."""


def on_a_function(difference: Callable[..., object], text: str, x: float, h: float) -> object:
    """What a difference says of the function of this formula.

    Example:
        >>> on_a_function(lambda f, x, h: (f(x + h) - f(x)) / h, "x * x", 3.0, 0.5)
        6.5
    """
    return difference(FUNCTIONS[text][0], x, h)


def _shown(name: str) -> Callable[[Case], str]:
    def show(case: Case) -> str:
        text, x, h = case
        return f"For f(x) = {text}: {name}(f, {describe(x)}, {describe(h)})"

    return show


def _takes_its_own_step(seen: Seen) -> bool:
    """Wherever h is long, the derivative comes out all the same."""
    return all(not a.failure and _near(a.value, FUNCTIONS[text][1](x)) for (text, x, _), a in seen)


def _near(value: Plain, slope: float) -> bool:
    return isinstance(value, float) and abs(value - slope) < 1e-3


_CHECKS = (
    Check("a straight line", [("3 * x + 1", 2.0, 0.5), ("3 * x + 1", -1.0, 0.25)]),
    Check("a parabola", [("x * x", 3.0, 0.5), ("x * x", -2.0, 1.0)]),
    Check("at x = 0", [("sin(x)", 0.0, 0.5), ("x ** 3", 0.0, 1.0)]),
    Check("curves and other steps", [("x ** 3", 2.0, 0.1), ("sin(x)", 1.0, 0.3)]),
)  # fmt: skip


def _forward(f: Any, x: float, h: float) -> float:
    return float((f(x + h) - f(x)) / h)


def _central(f: Any, x: float, h: float) -> float:
    return float((f(x + h) - f(x - h)) / (2 * h))


def _backward(f: Any, x: float, h: float) -> float:
    return float((f(x) - f(x - h)) / h)


FORWARD_DIFFERENCE = Exercise(
    name="forward_difference",
    task="Return the slope of f between x and x + h.",
    stub='''\
def forward_difference(f, x, h):
    return f(x + h) - f(x)
''',
    arguments=("text", "x", "h"),
    results=("slope",),
    answer=_forward,
    call=on_a_function,
    checks=_CHECKS,
    mutants=(
        Mutant("the rise is not divided by the step", lambda f, x, h: f(x + h) - f(x),
               "a slope is rise over run: how long is the run?"),
        Mutant("it looks back, to x - h", _backward, "forward: from x to x + h"),
        Mutant("it looks to both sides", _central, "that is better, and comes next: here from x to x + h"),
        Mutant("the sign is turned", lambda f, x, h: -_forward(f, x, h),
               "where a function rises, f(x + h) is the larger one, and the slope is positive"),
        Mutant("it divides by 2 h", lambda f, x, h: _forward(f, x, h) / 2,
               "from x to x + h it is one step, not two"),
        Mutant("it multiplies by the step", lambda f, x, h: _forward(f, x, h) * h * h,
               "rise over run: the step stands below the line"),
        Mutant("the brackets are missing: only f(x) is divided", lambda f, x, h: f(x + h) - f(x) / h,
               "division comes before subtraction: (f(x + h) - f(x)) / h"),
        Mutant("the value at x is not taken away", lambda f, x, h: f(x + h) / h,
               "how much did f rise? For that it takes two values"),
        Mutant("the function of the difference is taken", lambda f, x, h: f((x + h) - x) / h,
               "f is asked twice, at x + h and at x, and then one takes the difference"),
        Mutant("a step of its own is taken in place of h", lambda f, x, h: _forward(f, x, 1e-6),
               "the step is an argument: use h", _takes_its_own_step),
    ),
    hints=(
        "a slope is rise over run",
        "the rise is f(x + h) - f(x), the run is h",
    ),
    show=_shown("forward_difference"),
)  # fmt: skip

CENTRAL_DIFFERENCE = Exercise(
    name="central_difference",
    task="Return the slope of f between x - h and x + h.",
    stub='''\
def central_difference(f, x, h):
    return (f(x + h) - f(x)) / h
''',
    arguments=("text", "x", "h"),
    results=("slope",),
    answer=_central,
    call=on_a_function,
    checks=_CHECKS,
    mutants=(
        Mutant("it looks forward only", _forward, "as far to the left as to the right: from x - h to x + h"),
        Mutant("it looks back only", _backward, "as far to the right as to the left: from x - h to x + h"),
        Mutant("it divides by h", lambda f, x, h: 2 * _central(f, x, h),
               "how far is it from x - h to x + h?"),
        Mutant("the brackets are missing: it divides by 2 and multiplies by h",
               lambda f, x, h: (f(x + h) - f(x - h)) / 2 * h, "the run is 2 h as a whole: / (2 * h)"),
        Mutant("the rise is not divided by the step", lambda f, x, h: f(x + h) - f(x - h),
               "a slope is rise over run: how long is the run?"),
        Mutant("the sign is turned", lambda f, x, h: -_central(f, x, h),
               "where a function rises, f(x + h) is the larger one, and the slope is positive"),
        Mutant("the two values are added", lambda f, x, h: (f(x + h) + f(x - h)) / (2 * h),
               "a rise is a difference"),
        Mutant("it steps half as far to each side", lambda f, x, h: _central(f, x, h / 2),
               "from x - h to x + h: a whole h to each side"),
        Mutant("it steps twice as far to each side", lambda f, x, h: _central(f, x, 2 * h),
               "from x - h to x + h: one h to each side"),
        Mutant("a step of its own is taken in place of h", lambda f, x, h: _central(f, x, 1e-5),
               "the step is an argument: use h", _takes_its_own_step),
    ),
    hints=(
        "the rise from x - h to x + h, over the way between them",
        "(f(x + h) - f(x - h)) over 2 h",
    ),
    show=_shown("central_difference"),
)  # fmt: skip


def _pair(slope: float, curve: float, h: float) -> Case:
    """Estimates with steps h and h / 2, whose error is curve * h^2."""
    return slope + curve * h * h, slope + curve * h * h / 4


RICHARDSON = Exercise(
    name="richardson",
    task="Given central differences with steps h and h / 2, return the slope without the error that grows as h * h.",
    stub='''\
def richardson(whole, half):
    return (whole + half) / 2
''',
    arguments=("whole", "half"),
    results=("slope",),
    answer=lambda whole, half: (4 * half - whole) / 3,
    checks=(
        Check("errors of 4 and 1 around a slope of 2.5", [_pair(2.5, 4.0, 1.0)]),
        Check("other errors, too low and too high", [_pair(2.25, -0.8, 0.5), _pair(-1.2, 3.0, 0.1)]),
        Check("both right already", [(5.5, 5.5)]),
        Check("a slope of 0", [_pair(0.0, 1.0, 1.0)]),
    ),
    mutants=(
        Mutant("it is the mean of the two", lambda w, h: (w + h) / 2,
               "both err to the same side: the truth lies not between them, but beyond the better one"),
        Mutant("it is the better one of the two, as it was", lambda w, h: h,
               "its error is a quarter of the other's: take that away, too"),
        Mutant("the error is taken to be half as large with half the step", lambda w, h: 2 * h - w,
               "that holds for a forward difference. A central one errs as h * h: half the step, a quarter of it"),
        Mutant("the two are swapped", lambda w, h: (4 * w - h) / 3, "which of them has the smaller error?"),
        Mutant("it is not divided by 3", lambda w, h: 4 * h - w,
               "4 truths minus 1 truth are 3 of them"),
        Mutant("it is divided by 4", lambda w, h: (4 * h - w) / 4, "4 truths minus 1 truth are 3 of them"),
        Mutant("it goes the wrong way", lambda w, h: h - (h - w) / 3,
               "going from whole to half came nearer: go on in that direction"),
        Mutant("the weights are added", lambda w, h: (4 * h + w) / 5,
               "a mean with weights lies between the two, and the truth does not"),
        Mutant("it is the distance of the two", lambda w, h: h - w, "that is three quarters of the error of whole"),
        Mutant("the error is taken to shrink to a sixteenth", lambda w, h: (16 * h - w) / 15,
               "it grows as h * h: half the step has a quarter of it"),
    ),
    hints=(
        "whole = slope + e, and half = slope + e / 4: two equations, and e has to go",
        "4 * half - whole has no e any more: how many slopes is it?",
        "(4 * half - whole) / 3",
    ),
)  # fmt: skip
