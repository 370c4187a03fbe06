"""Computations that both engines run, the learner's and the lab's, and what the lab says about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lab.autograd import Tensor, tensor
from lab.teach.exercise import Case, Seen, Wrong
from lab.teach.plain import Plain, describe, first_difference

Roots = Callable[[Any, Any], list[Any]]
"""Takes x and y of any engine; the values from which to walk back, one after the other."""

DEPTH = 5_000
"""Operations in a row: several times as many as Python lets a function call itself."""


def _two_ends(x: Any, y: Any) -> list[Any]:
    u = x * y
    return [u + x, u * u]


def _long(x: Any, y: Any) -> list[Any]:
    for _ in range(DEPTH):
        y = y + x
    return [y]


ONCE: dict[str, Roots] = {
    "x + y": lambda x, y: [x + y],
    "x * y": lambda x, y: [x * y],
    "x * x": lambda x, y: [x * x],
    "x * y + x": lambda x, y: [x * y + x],
    "x + x * y": lambda x, y: [x + x * y],
    "(x + y) * (x + y)": lambda x, y: [(s := x + y) * s],
    "s + s * x, where s = x + y": lambda x, y: [(s := x + y) + s * x],
    "s * x + s, where s = x + y": lambda x, y: [(s := x + y) * x + s],
}
"""One walk from one end, by the formula."""

MIDDLE = tuple(text for text in ONCE if "where s" in text)
"""Where a value in the middle is used early and late: there the order of the walk matters."""

TWICE = ("x * y + x, walked twice", "(x + y) * (x + y), walked twice", "u + x and then u * u, where u = x * y")
"""More than one walk."""

LONG = f"y + x + x + ..., {DEPTH:,} times"
"""Longer than recursion goes."""

ROOTS: dict[str, Roots] = ONCE | {
    TWICE[0]: lambda x, y: [x * y + x] * 2,
    TWICE[1]: lambda x, y: [(s := x + y) * s] * 2,
    TWICE[2]: _two_ends,
    LONG: _long,
}
"""Every computation, by its text."""


def gradients(text: str, x: float, y: float) -> tuple[float, float]:
    """What the lab's own engine has in `x.grad` and `y.grad` after all the walks.

    Example:
        >>> gradients("x * y + x", 2.0, 3.0)
        (4.0, 2.0)
    """
    a, b = tensor(x, requires_grad=True), tensor(y, requires_grad=True)
    for root in ROOTS[text](a, b):
        root.backward(retain_graph=True)
    return _number(a.grad), _number(b.grad)


def _number(grad: Tensor | None) -> float:
    return 0.0 if grad is None else grad.item()


def as_the_lab(case: Case, value: Plain) -> Wrong | None:
    """The gradients of x and y are those of the lab's engine."""
    if value is None:
        return None
    difference = first_difference(value, gradients(*case), NAMES, 1e-9)
    if difference is None:
        return None
    what, got, wanted = difference
    return Wrong(f"{where(case)}: {what} is wrong.", got, f"{wanted}, as the lab's engine has it")


NAMES = ("gradient of x", "gradient of y")


def where(case: Case) -> str:
    """A case in words."""
    text, x, y = case[:3]
    return f"For {text} with x = {describe(x)}, y = {describe(y)}"


def says(words: str) -> Callable[[Seen], bool]:
    """A sign: an error with these words in some case."""
    return lambda seen: any(words in answer.message for _, answer in seen)


def only(texts: Iterable[str], call: Callable[..., Plain], wrong: Callable[..., object]) -> Callable[[Seen], bool]:
    """A sign: for the computations of these texts the results are those of `wrong`."""
    chosen = frozenset(texts)

    def shows(seen: Seen) -> bool:
        rows = [(case, answer) for case, answer in seen if case[0] in chosen]
        return all(not a.failure and first_difference(a.value, call(wrong, *c), (), 1e-9) is None for c, a in rows)

    return shows
