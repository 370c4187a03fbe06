"""Exercise of lesson 01: define, then run. A node says what would be computed; a run computes what is fetched, once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lab.errors import ExerciseError
from lab.teach.exercise import Case, Check, Exercise, Mutant
from lab.teach.exercises.expressions import says
from lab.teach.plain import Plain, describe

Run = Callable[[Sequence["Node"], Mapping["Node", Any]], Any]


class Node:
    """A value that has no number yet: the operation that would make it, and what that would take.

    Example:
        >>> x, y = Node(), Node()
        >>> run_graph([x * y + x], {x: 2.0, y: 3.0})
        [8.0]
    """

    def __init__(self, op: Callable[..., Any] | None = None, *inputs: Node) -> None:
        self.op: Any = op  # None for a placeholder, which is fed
        self.inputs = inputs

    def __add__(self, other: Node) -> Node:
        return Node(operator.add, self, other)

    def __sub__(self, other: Node) -> Node:
        return Node(operator.sub, self, other)

    def __mul__(self, other: Node) -> Node:
        return Node(operator.mul, self, other)


def run_graph(fetches: Sequence[Node], feed: Mapping[Node, Any]) -> list[Any]:
    """The number of each fetch; every node that they need is computed once."""
    values = dict(feed)

    def value_of(node: Node) -> Any:
        if node not in values:
            values[node] = node.op(*[value_of(parent) for parent in node.inputs])
        return values[node]

    return [value_of(node) for node in fetches]


DOUBLINGS = 12
"""In a row: computed once per use the last would take 2**12 operations."""


def _doubled(x: Node) -> Node:
    for _ in range(DOUBLINGS):
        x = x + x
    return x


def _square(s: Node) -> Node:
    return s * s


GRAPHS: dict[str, Callable[[Node, Node], tuple[Sequence[Node], Mapping[str, Node]]]] = {
    "x * y + x": lambda x, y: ([x * y + x], {}),
    "x - y": lambda x, y: ([x - y], {}),
    "x": lambda x, y: ([x], {}),
    "s * s - s, where s = x + y": lambda x, y: ([_square(s := x + y) - s], {}),
    "x doubled 12 times": lambda x, y: ([_doubled(x)], {}),
    "s * s and s - x, where s = x * y": lambda x, y: ([_square(s := x * y), s - x], {}),
    "x * y + (x + y)": lambda x, y: ([x * y + (x + y)], {}),
    "s * s, where s = x + y is fed": lambda x, y: ([_square(s := x + y)], {"s": s}),
}
"""By its text: what is fetched of two placeholders, and what else is fed."""


def run_twice(run: Run, text: str, first: Sequence[float], second: Sequence[float]) -> Plain:
    """Numbers and count of operations of a run, and of a second one of the same graph with other numbers.

    Raises:
        ExerciseError: a run does not give a number for each fetch.

    Example:
        >>> run_twice(run_graph, "s * s - s, where s = x + y", (1.0, 2.0), (0.0, 0.0))
        (array([6.]), 3, array([0.]), 3)
    """
    x, y = Node(), Node()
    fetches, fed = GRAPHS[text](x, y)
    done: list[Node] = []
    for node in _middle(fetches):
        _count(node, done)
    results: list[Any] = []
    for numbers in (first, second):
        del done[:]
        values = run(fetches, dict(zip((x, y, *fed.values()), numbers, strict=True)))
        results += [_numbers(values, len(fetches)), len(done)]
    return tuple(results)


def _middle(fetches: Sequence[Node]) -> list[Node]:
    """Every node with an operation, once."""
    found: dict[Node, None] = {}
    todo = list(fetches)
    while todo:
        node = todo.pop()
        if node.op is not None and node not in found:
            found[node] = None
            todo.extend(node.inputs)
    return [*found]


def _count(node: Node, done: list[Node]) -> None:
    op = node.op

    def counted(*numbers: Any) -> Any:
        done.append(node)
        return op(*numbers)

    node.op = counted


def _numbers(values: object, n: int) -> Any:
    if not isinstance(values, list | tuple) or len(values) != n:
        raise ExerciseError("a run gives a list with a number for each fetch", given=f"{values!r}"[:100],
                            hint="return [value_of(node) for node in fetches]")  # fmt: skip
    if any(isinstance(value, Node) or callable(value) for value in values):
        raise ExerciseError("a node came back where a number was fetched", given=f"{values!r}"[:100],
                            hint="node.op(*numbers) gives the number")  # fmt: skip
    return np.array([float(value) for value in values])


def _walks(
    *, remembers: bool = False, known: Callable[[dict[Any, Any], Node], bool] = lambda values, node: node in values,
    starts: Callable[[Mapping[Node, Any]], dict[Any, Any]] = dict, name: Callable[[Node], Any] = lambda node: node,
    turned: bool = False, ops_first: bool = False, per_fetch: bool = False,
) -> Run:  # fmt: skip
    """A run with a switch for each way to get it wrong."""
    kept: dict[Any, Any] = {}

    def run(fetches: Sequence[Node], feed: Mapping[Node, Any]) -> list[Any]:
        values = {**starts(feed), **kept} if remembers else starts(feed)

        def value_of(node: Node) -> Any:
            if (node.op is None or not ops_first or node not in feed) and known(values, name(node)):
                return values[name(node)]
            numbers = [value_of(parent) for parent in node.inputs]
            values[name(node)] = node.op(*(numbers[::-1] if turned else numbers))
            return values[name(node)]

        found = []
        for node in fetches:
            values = starts(feed) if per_fetch else values
            found.append(value_of(node))
        kept.update(values)
        return found

    return run


def _per_use(fetches: Sequence[Node], feed: Mapping[Node, Any]) -> list[Any]:
    def value_of(node: Node) -> Any:
        if node in feed:
            return feed[node]
        return node.op(*[value_of(parent) for parent in node.inputs])

    return [value_of(node) for node in fetches]


def _feed_ignored(fetches: Sequence[Node], feed: Mapping[Node, Any]) -> list[Any]:
    return run_graph(fetches, {node: number for node, number in feed.items() if node.op is None})


def _two(text: str, *numbers: float) -> Case:
    return text, numbers, tuple(number + 1.5 for number in numbers)


RUN_GRAPH = Exercise(
    name="run_graph",
    task="Compute the number of each fetch, and every node that they need exactly once in a run.",
    stub='''\
def run_graph(fetches, feed):
    def value_of(node):
        if node in feed:
            return feed[node]
        return node.op(*[value_of(parent) for parent in node.inputs])

    return [value_of(node) for node in fetches]
''',
    arguments=("text", "first", "second"),
    results=("list of numbers that the first run gives", "number of operations in the first run",
             "list of numbers that a run with another feed gives", "number of operations in that run"),
    answer=run_graph,
    call=run_twice,
    checks=(
        Check("the numbers", [_two("x * y + x", 2.0, 3.0), _two("x - y", 5.0, 3.0), _two("x", 7.0, 1.0)]),
        Check("every node once", [_two("s * s - s, where s = x + y", 1.0, 2.0), _two("x doubled 12 times", 1.0, 0.0)]),
        Check("several fetches share what they need", [_two("s * s and s - x, where s = x * y", 2.0, 3.0)]),
        Check("two operations on the same inputs", [_two("x * y + (x + y)", 2.0, 3.0)]),
        Check("a zero is a number, too", [_two("s * s - s, where s = x + y", 0.0, 0.0)]),
        Check("a value that is fed is not computed", [_two("s * s, where s = x + y is fed", 1.0, 2.0, 10.0)]),
    ),
    mutants=(
        Mutant("a node is computed each time that it is used", _per_use,
               "keep what was computed, by node: values = dict(feed), and look there first"),
        Mutant("numbers are kept from run to run", _walks(remembers=True),
               "the next feed is another: begin each run with a fresh dict"),
        Mutant("each fetch begins anew", _walks(per_fetch=True),
               "make the dict once in a run, before the first fetch"),
        Mutant("a zero is taken for something not yet known", _walks(known=lambda values, node: bool(values.get(node))),
               "0.0 is false in Python: ask `node in values`"),
        Mutant("numbers are kept by operation", _walks(name=lambda node: node if node.op is None else node.inputs),
               "two nodes may have the same inputs: the key is the node itself"),
        Mutant("the inputs are turned round", _walks(turned=True),
               "x - y is not y - x: hand them on in the order of node.inputs"),
        Mutant("only placeholders are fed", _feed_ignored,
               "any node may be fed: look into feed before anything is computed"),
        Mutant("the numbers are not what comes back", lambda fetches, feed: list(fetches),
               "a node knows how, not what: call node.op with the numbers of its inputs", says("a node came back")),
        Mutant("one number comes back for all fetches", lambda fetches, feed: run_graph(fetches[:1], feed)[0],
               "a list, with one number for each fetch, in their order", says("a number for each fetch")),
    ),
    hints=(
        "how often does your run compute s in s * s?",
        "values = dict(feed) holds what is known; value_of looks there, and writes there what it computed",
        "if node not in values: values[node] = node.op(...); then return values[node]",
    ),
    show=lambda case: f"For {case[0]}, fed {describe(tuple(case[1]))} and then {describe(tuple(case[2]))}",
)  # fmt: skip
