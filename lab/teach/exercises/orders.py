"""Exercise of lesson 03, step 2: an order of the walk back in which every value stands before its parents.

There are many right orders, so an answer is judged by what an order must do, and known mistakes by the sign they leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lab.errors import ExerciseError
from lab.teach import usual
from lab.teach.exercise import Case, Check, Exercise, Mutant, Seen, Wrong
from lab.teach.plain import Plain

Graph = tuple[tuple[int, ...], ...]
"""For each value, in the order in which they are made, the numbers of its parents; the last is the result."""

CHAIN: Graph = ((), (0,), (1,))
LATE: Graph = ((), (), (0, 1), (2, 0))
EARLY: Graph = ((), (), (0, 1), (0, 2))
SQUARE: Graph = ((), (0, 0))
DIAMOND: Graph = ((), (0,), (0,), (1, 2), (3, 1))
ASIDE: Graph = ((), (0,), (0,), (1,))
ALONE: Graph = ((),)
DOUBLING: Graph = ((), *((i, i) for i in range(12)))


def listed(backward_order: Callable[[usual.Value], Any], graph: Graph) -> Plain:
    """The numbers of the values, in the order in which the function gives them.

    Raises:
        ExerciseError: it gave something that is no value of the graph, or no list at all.

    Example:
        >>> listed(usual.backward_order, EARLY)
        (3, 2, 1, 0)
    """
    values: list[usual.Value] = []
    for parents in graph:
        values.append(usual.Value(1.0, tuple(values[i] for i in parents), lambda ct: ()))
    order = backward_order(values[-1])
    if order is None:
        raise ExerciseError("it returned nothing", given="None", hint="give back the list: return order")
    if not isinstance(order, Iterable):
        raise ExerciseError("it gave no list", given=repr(order)[:100], hint="give back the list: return order")
    number = {id(value): i for i, value in enumerate(values)}
    found = [*order]
    strangers = [entry for entry in found if id(entry) not in number]
    if strangers:
        raise ExerciseError("something in the order is not one of the values", given=repr(strangers[0])[:100],
                            hint="put the values themselves into the list")  # fmt: skip
    return tuple(number[id(value)] for value in found)


def needed(graph: Graph) -> set[int]:
    """What the result depends on, itself included.

    Example:
        >>> needed(ASIDE)
        {0, 1, 3}
    """
    todo, found = [len(graph) - 1], set[int]()
    while todo:
        found.add(number := todo.pop())
        todo.extend(i for i in graph[number] if i not in found)
    return found


def is_an_order(case: Case, value: Plain) -> Wrong | None:
    """Every value once, the result first, and each before its parents."""
    (graph,) = case
    order: list[int] = [int(i) for i in value]
    told = f"the order: {', '.join(map(_name, order[:12])) or 'nothing'}{', ...' * (len(order) > 12)}"
    twice = next((i for i in order if order.count(i) > 1), None)
    if twice is not None:
        return Wrong(f"{_graph(case)}: {_name(twice)} stands in the order {order.count(twice)} times.", told, "once")
    missing = sorted(needed(graph) - set(order), reverse=True)
    if missing:
        return Wrong(f"{_graph(case)}: {_name(missing[0])} is missing.", told, "every value that the result needs")
    place = {number: i for i, number in enumerate(order)}
    for user in sorted(needed(graph), reverse=True):
        for parent in graph[user]:
            if place[parent] < place[user]:
                return Wrong(f"{_graph(case)}: {_name(parent)} stands before {_name(user)}, which uses it.", told,
                             f"{_name(user)} first: before it has been walked, {_name(parent)} has not got all its "
                             "parts")  # fmt: skip
    return None


def _name(number: int) -> str:
    return f"v{number + 1}"


def _graph(case: Case) -> str:
    (graph,) = case
    made = [
        f"{_name(i)} made of {' and '.join(map(_name, parents))}" if parents else _name(i)
        for i, parents in enumerate(graph[:5])
    ]
    return f"For {', '.join(made)}{', ...' * (len(graph) > 5)}"


def _sign(shows: Callable[[Graph, list[int]], bool]) -> Callable[[Seen], bool]:
    """A sign that has to show wherever the answer is wrong, and somewhere at least."""

    def everywhere(seen: Seen) -> bool:
        if any(answer.failure for _, answer in seen):
            return False
        wrong = [(c[0], [int(i) for i in a.value]) for c, a in seen if is_an_order(c, a.value)]
        return bool(wrong) and all(shows(graph, order) for graph, order in wrong)

    return everywhere


def _right(graph: Graph, order: list[int]) -> bool:
    return is_an_order((graph,), tuple(order)) is None


def _down(root: usual.Value, *, guarded: bool = True, first: bool = False, turned: bool = True) -> list[usual.Value]:
    """Depth first, with a switch for each way to get it wrong."""
    order: list[usual.Value] = []

    def visit(value: usual.Value) -> None:
        if guarded and value in order:
            return
        if first:
            order.append(value)
        for parent in value.parents:
            visit(parent)
        if not first:
            order.append(value)

    visit(root)
    return order[::-1] if turned and not first else order


BACKWARD_ORDER = Exercise(
    name="backward_order",
    task="List everything that root depends on, root first, and every value before its parents.",
    stub='''\
def backward_order(root):
    order = []

    def visit(value):
        if value not in order:
            order.append(value)
            for parent in value.parents:
                visit(parent)

    visit(root)
    return order
''',
    arguments=("graph",),
    results=("order",),
    answer=usual.backward_order,
    call=listed,
    checks=(
        Check("a chain", [(CHAIN,)], is_an_order),
        Check("x used early and late", [(LATE,), (EARLY,)], is_an_order),
        Check("one value twice, and a value alone", [(SQUARE,), (ALONE,)], is_an_order),
        Check("paths that part and meet", [(DIAMOND,), (ASIDE,)], is_an_order),
        Check("4,096 paths", [(DOUBLING,)], is_an_order),
    ),
    mutants=(
        Mutant("a value is written down when it is found, not when all who use it are done",
               lambda root: _down(root, first=True),
               "write a value down after the loop over its parents, and turn the list round at the end",
               _sign(lambda graph, order: set(order) == needed(graph) and len(order) == len(set(order))
                     and order[0] == len(graph) - 1)),
        Mutant("parents stand first: that is the way forward", lambda root: _down(root, turned=False),
               "the walk begins at root: turn the list round",
               _sign(lambda graph, order: _right(graph, order[::-1]))),
        Mutant("a value comes once for each path to it", lambda root: _down(root, guarded=False),
               "before you visit a value, ask whether it has been visited",
               _sign(lambda graph, order: set(order) == needed(graph) and len(order) > len(set(order)))),
        Mutant("values without parents are left out", lambda root: [v for v in _down(root) if v.parents],
               "x and y get a gradient, too",
               _sign(lambda graph, order: _right(graph, [*order, *(i for i, p in enumerate(graph) if not p)]))),
        Mutant("root itself is left out", lambda root: _down(root)[1:], "the walk begins at root",
               _sign(lambda graph, order: _right(graph, [len(graph) - 1, *order]))),
        Mutant("only root and its own parents are there", lambda root: [root, *dict.fromkeys(root.parents)],
               "parents have parents: what is done with root has to be done with each of them",
               _sign(lambda graph, order: set(order) == {len(graph) - 1, *graph[-1]})),
    ),
    hints=(
        "look at x + x * y: when is everything known that x gets?",
        "write a value down after its parents, and turn the whole list round at the end",
    ),
    show=_graph,
)  # fmt: skip
