"""Exercises of lesson 04: a Jacobian column by column, and a Hessian times a direction without the Hessian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lab.errors import ExerciseError
from lab.teach.exercise import Check, Exercise, Mutant
from lab.teach.exercises.expressions import says
from lab.teach.plain import describe
from lab.transforms import grad, hessian, hvp, jacfwd, jvp

LARGE = 500_000
"""Numbers in a direction for which no machine holds the Hessian: 2 TB."""

_RNG = np.random.default_rng(0)
_TALL, _WIDE = _RNG.normal(size=(2, 4)), _RNG.normal(size=(3, 2))

MAPS: dict[str, Callable[[Any], Any]] = {
    "x @ A": lambda x: x @ _WIDE,
    "tanh(x @ B)": lambda x: (x @ _TALL).tanh(),
    "x * x.sum()": lambda x: x * x.sum(),
}
"""Functions of an array that give an array: from 3 numbers to 2, from 2 to 4, from n to n."""

BOWLS: dict[str, Callable[[Any], Any]] = {
    "(x ** 4).sum()": lambda x: (x**4).sum(),
    "x.sum() ** 4": lambda x: x.sum() ** 4,
    "x[0] ** 3 * x[1]": lambda x: x[0] ** 3 * x[1],
}
"""Functions of an array that give a number."""


def of_a_map(jacobian: Callable[..., object], text: str, *x: float) -> object:
    """What a function says is the Jacobian of this one."""
    from lab.autograd import tensor

    return jacobian(lambda x: MAPS[text](tensor(x) if isinstance(x, np.ndarray) else x), np.array(x))


def _columns(f: Any, x: Any) -> list[Any]:
    return [jvp(f, (x,), (e,))[1].numpy() for e in np.eye(x.size)]


JACOBIAN = Exercise(
    name="jacobian",
    task="Return the Jacobian of f at x: entry [i, j] is the slope of result i by x[j].",
    stub='''\
def jacobian(f, x):
    tangents = [lab.jvp(f, (x,), (direction,))[1].numpy() for direction in np.eye(x.size)]
    return np.array(tangents)
''',
    arguments=("text", "x"),
    results=("Jacobian",),
    answer=lambda f, x: jacfwd(f)(x),
    call=of_a_map,
    checks=(
        Check("3 numbers in, 2 out", [("x @ A", 1.0, -2.0, 0.5)]),
        Check("2 numbers in, 4 out", [("tanh(x @ B)", 0.3, -0.4)]),
        Check("as many out as in", [("x * x.sum()", 1.0, 2.0), ("x * x.sum()", -1.0, 0.5, 3.0)]),
    ),
    mutants=(
        Mutant("it is turned round: columns and rows are swapped", lambda f, x: np.array(_columns(f, x)),
               "each jvp gives one column, and np.array stacks rows"),
        Mutant("all inputs move at once", lambda f, x: jvp(f, (x,), (np.ones_like(x),))[1],
               "then the columns are added: one direction for each input"),
        Mutant("the values are stacked, not the tangents", lambda f, x: np.stack(
               [jvp(f, (x,), (e,))[0].numpy() for e in np.eye(x.size)], axis=1),
               "jvp gives (value, tangent): take the second"),
        Mutant("the columns are laid end to end", lambda f, x: np.concatenate(_columns(f, x)),
               "a table: one column beside the other, np.stack(..., axis=1)"),
        Mutant("only the first input moves", lambda f, x: _columns(f, x)[0][:, None],
               "one column for each input"),
        Mutant("the direction is x itself", lambda f, x: np.stack(
               [jvp(f, (x,), (e * x,))[1].numpy() for e in np.eye(x.size)], axis=1),
               "along input j the direction is 1 there and 0 elsewhere, whatever x is"),
        Mutant("the rows of the table are turned round, too", lambda f, x: np.stack(_columns(f, x), axis=1)[::-1],
               "result 0 is the first row"),
    ),
    hints=(
        "a jvp along input j says how all results change with x[j]: which part of the table is that?",
        "np.stack(tangents, axis=1)",
    ),
    show=lambda case: f"For f(x) = {case[0]} at x = {describe(np.array(case[1:]))}",
)  # fmt: skip


def of_a_bowl(product: Callable[..., object], text: str, n: int) -> object:
    """What a function says is the Hessian of this one, at some x, times some v.

    Raises:
        ExerciseError: it makes a matrix that no memory holds.
    """
    x, v = np.linspace(-1.0, 2.0, n), np.linspace(1.0, 0.5, n)
    try:
        return product(BOWLS[text], x, v)
    except MemoryError:
        raise ExerciseError("it makes the whole matrix", given=f"{n:,} x {n:,} numbers",
                            hint="never make the Hessian: how does the gradient change along v?") from None  # fmt: skip


HVP = Exercise(
    name="hvp",
    task="Return the Hessian of f at x times v, without making the Hessian.",
    stub='''\
def hvp(f, x, v):
    return lab.hessian(f)(x) @ v
''',
    arguments=("text", "n"),
    results=("product",),
    answer=lambda f, x, v: hvp(f, (x,), (v,)),
    call=of_a_bowl,
    checks=(
        Check("a Hessian with a diagonal only", [("(x ** 4).sum()", 3)]),
        Check("one in which all depends on all", [("x.sum() ** 4", 4), ("x[0] ** 3 * x[1]", 2)]),
        Check(f"{LARGE:,} numbers: no machine holds that Hessian", [("(x ** 4).sum()", LARGE)]),
    ),
    mutants=(
        Mutant("it makes the whole matrix", lambda f, x, v: hessian(f)(x) @ v,
               "the gradient is a function, too: push v through lab.grad(f) with lab.jvp", says("whole matrix")),
        Mutant("it is the gradient", lambda f, x, v: grad(f)(x),
               "not the gradient, but how it changes along v: the second result of jvp"),
        Mutant("it is the slope of f along v", lambda f, x, v: jvp(f, (x,), (v,))[1],
               "that is one number. Push v through the gradient of f, not through f"),
        Mutant("the gradient is multiplied by v", lambda f, x, v: grad(f)(x) * v,
               "differentiate twice: jvp of grad"),
        Mutant("x and v are swapped", lambda f, x, v: jvp(grad(f), (v,), (x,))[1],
               "at x, along v: lab.jvp(..., (x,), (v,))"),
        Mutant("v is left out", lambda f, x, v: jvp(grad(f), (x,), (np.ones_like(x),))[1],
               "the direction is v, not all ones"),
        Mutant("v times x is the direction", lambda f, x, v: jvp(grad(f), (x,), (x * v,))[1],
               "the direction is v as it is"),
        Mutant("f is differentiated once more than twice", lambda f, x, v: jvp(
               grad(lambda x: grad(f)(x).sum()), (x,), (v,))[1], "one grad, one jvp"),
        Mutant("it is v times H times v, a number", lambda f, x, v: (jvp(grad(f), (x,), (v,))[1] * v).sum(),
               "H times v has as many numbers as v"),
    ),
    hints=(
        "H times v says how the gradient changes when x moves along v",
        "lab.grad(f) is a function: its jvp along v",
        "lab.jvp(lab.grad(f), (x,), (v,))[1]",
    ),
    show=lambda case: f"For f(x) = {case[0]} of {case[1]:,} numbers",
)  # fmt: skip
