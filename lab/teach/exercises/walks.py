"""Exercises of lesson 03, steps 3 and 5: the walk back through a computation, once, again, and a long way.

The values are those of the usual engine, so that a step can be tried before the others are done; what is right the lab
says, by running the same computation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from lab.errors import ExerciseError
from lab.teach import usual
from lab.teach.exercise import Check, Exercise, Mutant, Seen
from lab.teach.exercises.expressions import (
    DEPTH,
    LONG,
    MIDDLE,
    NAMES,
    ONCE,
    ROOTS,
    TWICE,
    as_the_lab,
    only,
    says,
    where,
)
from lab.teach.plain import Plain


def _walk(
    order: Sequence[Any], *, start: float = 1.0, add: bool = True, passes: bool = True, back: bool = False
) -> None:
    """The walk, with a switch for each way to get it wrong."""
    order[0].grad = start
    for value in reversed(order) if back else order:
        for parent, part in zip(value.parents, value.rule(value.grad if passes else 1.0), strict=True):
            parent.grad = parent.grad + part if add else part


def _multiplies(order: Sequence[Any]) -> None:
    order[0].grad = 1.0
    for value in order:
        for parent, part in zip(value.parents, value.rule(value.grad), strict=True):
            parent.grad = parent.grad * part if parent.grad else part


def _from_the_number(order: Sequence[Any]) -> None:
    _walk(order, start=order[0].data)


def _first_parent(order: Sequence[Any]) -> None:
    order[0].grad = 1.0
    for value in order:
        for parent, part in [*zip(value.parents, value.rule(value.grad), strict=True)][:1]:
            parent.grad = parent.grad + part


def walk_back(walk: Callable[[list[usual.Value]], object], text: str, a: float, b: float) -> Plain:
    """The gradients of x and y after `walk` went through the values of a computation, in a right order."""
    x, y = usual.Value(a), usual.Value(b)
    (root,) = ONCE[text](x, y)
    walk(usual.backward_order(root))
    return x.grad, y.grad


_PATHS = ("x * x", "(x + y) * (x + y)", *MIDDLE)

WALK = Exercise(
    name="walk",
    task="Give every value its gradient: order begins with the result, and every value stands before its parents.",
    stub='''\
def walk(order):
    order[0].grad = 1.0
    for value in order:
        for parent, part in zip(value.parents, value.rule(value.grad)):
            parent.grad = part
''',
    arguments=("text", "x", "y"),
    results=NAMES,
    answer=usual.walk,
    call=walk_back,
    checks=(
        Check("each value used once", [("x * y", 2.0, 3.0), ("x + y", 2.0, 3.0)], as_the_lab),
        Check("a value that is used twice", [("x * y + x", 2.0, 3.0), ("x + x * y", -1.0, 0.5)], as_the_lab),
        Check("many paths", [(text, 1.5, -2.0) for text in _PATHS], as_the_lab),
    ),
    mutants=(
        Mutant("a part is written over what came from another path", lambda order: _walk(order, add=False),
               "x is used twice, and the second part wipes out the first. Where paths meet, parts add up"),
        Mutant("nothing arrives: the walk does not start with 1, or the parts do not go to the parents",
               lambda order: _walk(order, start=0.0),
               "order[0].grad = 1.0, and then each part is added to the .grad of its parent"),
        Mutant("the walk starts with the number of the result", _from_the_number,
               "the result grows exactly as much as itself: start with 1"),
        Mutant("every rule is asked with ct = 1", lambda order: _walk(order, passes=False),
               "what has arrived at a value is in value.grad: hand that to its rule"),
        Mutant("the order is turned round", lambda order: _walk(order, back=True),
               "order begins with the result already"),
        Mutant("parts of different paths are multiplied", _multiplies,
               "slopes multiply along one path; where paths meet they add"),
        Mutant("only the first parent gets its part", _first_parent,
               "a rule gives one part for each parent: zip(value.parents, ...)"),
    ),
    hints=(
        "how often does x * y + x use x? Then how many parts does x get?",
        "parent.grad may already hold a part: add to it",
    ),
    show=where,
)  # fmt: skip


def walk_all(backward: Callable[[usual.Value], object], text: str, a: float, b: float) -> Plain:
    """The gradients of x and y after `backward` has been called for one end after the other.

    Raises:
        ExerciseError: it calls itself more often than Python allows.
    """
    x, y = usual.Value(a), usual.Value(b)
    for root in ROOTS[text](x, y):
        try:
            backward(root)
        except RecursionError:
            raise ExerciseError("it calls itself deeper than Python allows", given=f"{DEPTH:,} operations in a row",
                                hint="keep a list of what is still to be visited") from None  # fmt: skip
    return x.grad, y.grad


def deep_order(root: usual.Value) -> list[usual.Value]:
    """The backward order by a list of what is still to be done, instead of calls."""
    order: dict[usual.Value, None] = {}
    todo = [(root, False)]
    while todo:
        value, parents_done = todo.pop()
        if parents_done:
            order[value] = None
        elif value not in order:
            todo.append((value, True))
            todo.extend((parent, False) for parent in value.parents)
    return [*reversed(order)]


def _found(root: usual.Value, *, last: bool = True, down: bool = False) -> list[usual.Value]:
    """Values in the order in which a list, or calls, find them."""
    order: dict[usual.Value, None] = {}
    todo = [root]
    while todo:
        value = todo.pop(-1 if last else 0)
        if value not in order:
            order[value] = None
            todo.extend(reversed(value.parents) if down else value.parents)
    return [*order]


_FINDERS = (_found, partial(_found, last=False), partial(_found, down=True))


def _middle(order: Iterable[usual.Value]) -> list[usual.Value]:
    return [value for value in order if value.parents]


def _leaves(order: Iterable[usual.Value]) -> list[usual.Value]:
    return [value for value in order if not value.parents]


def _backward(
    root: usual.Value,
    *,
    order_of: Callable[[usual.Value], list[usual.Value]] = deep_order,
    clears: Callable[[Iterable[usual.Value]], Iterable[usual.Value]] = _middle,
    **switches: Any,
) -> None:
    """The whole of it, with a switch for each way to get it wrong."""
    order = order_of(root)
    for value in clears(order):
        value.grad = 0.0
    _walk(order, **switches)


def _wrong(**switches: Any) -> Callable[[usual.Value], None]:
    return lambda root: _backward(root, **switches)


def _once_only(root: usual.Value) -> None:
    order = deep_order(root)
    _backward(root)
    for value in order:
        value.parents, value.rule = (), lambda ct: ()


def _as(**switches: Any) -> Any:
    """The sign of these switches, whatever becomes of the long computation."""
    return only([*ONCE, *TWICE], walk_all, _wrong(**switches))


def _as_found(seen: Seen) -> bool:
    return any(_as(order_of=finder)(seen) for finder in _FINDERS)


BACKWARD = Exercise(
    name="backward",
    task="Walk back from root so that a second walk adds the same again, however many operations there are.",
    stub='''\
def backward(root):
    order = {}

    def visit(value):
        if value not in order:
            for parent in value.parents:
                visit(parent)
            order[value] = True

    visit(root)
    root.grad = 1.0
    for value in reversed(order):
        for parent, part in zip(value.parents, value.rule(value.grad)):
            parent.grad = parent.grad + part
''',
    arguments=("text", "x", "y"),
    results=NAMES,
    answer=_backward,
    call=walk_all,
    checks=(
        Check("one walk", [(text, 2.0, 3.0) for text in ("x * y + x", *MIDDLE)], as_the_lab),
        Check("a second walk adds the same again", [(text, 2.0, 3.0) for text in TWICE[:2]], as_the_lab),
        Check("two ends that share a part", [(TWICE[2], 2.0, 3.0)], as_the_lab),
        Check(f"{DEPTH:,} operations in a row", [(LONG, 2.0, 3.0)], as_the_lab),
    ),
    mutants=(
        Mutant("values in the middle still hold what the last walk left there", _wrong(order_of=usual.backward_order,
               clears=lambda order: ()), "x and y may add up from walk to walk. What is in x * y when the second walk "
               "begins, and who gets it again?", _as(clears=lambda order: ())),
        Mutant("the gradients of x and y are cleared, too", _wrong(clears=lambda order: order),
               "only what has parents is cleared: x and y add up from walk to walk, until somebody says zero_grad",
               _as(clears=lambda order: order)),
        Mutant("x and y are cleared, and the values in the middle are not", _wrong(clears=_leaves),
               "the other way round: what has parents starts again at 0", _as(clears=_leaves)),
        Mutant("the second walk finds nothing", _once_only, "does the first walk take something away?",
               only([*ONCE, *TWICE], walk_all, _once_only)),
        Mutant("a value is walked before all who use it (the order is that in which they are found)",
               _wrong(order_of=_found), "a value comes into the order when all its parents are in it; then turn it "
               "round", _as_found),
        Mutant("the order is not turned round", _wrong(back=True), "begin with the result: reversed(order)",
               _as(back=True)),
        Mutant("a part is written over what came from another path", _wrong(add=False),
               "where paths meet, parts add up", _as(add=False)),
        Mutant("the walk does not start with 1", _wrong(start=0.0), "root.grad = 1.0, after clearing",
               _as(start=0.0)),
        Mutant("it goes down by calling itself: right, but Python stops after about a thousand calls in one another",
               _wrong(order_of=usual.backward_order),
               "keep a list of (value, parents are done): take the last, and put its parents on top of it",
               says("deeper than Python allows")),
    ),
    hints=(
        "two things are wrong: what the first walk leaves behind, and how deep `visit` goes",
        "before the walk: for every value in order that has parents, grad is 0",
        "todo = [(root, False)]; while todo: take one; put it back as (value, True), its parents on top",
    ),
    show=where,
)  # fmt: skip
