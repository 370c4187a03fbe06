"""Exercise of lesson 07: a loop whose end depends on values, written so that a graph can hold it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab.errors import ExerciseError
from lab.graph.execute import run
from lab.graph.make import make_graph
from lab.ops import floor, log, maximum, where
from lab.teach.exercise import Check, Exercise, Mutant
from lab.teach.exercises.expressions import says
from lab.teach.plain import Plain
from lab.transforms.control import cond, fori_loop, while_loop


def in_a_graph(f: Callable[[Any], Any], xs: Sequence[float]) -> Plain:
    """What the graph of a function, traced at the first number, gives for each of them: the rest, and the count."""
    graph = make_graph(f)(np.float64(xs[0]))
    if len(graph.outputs) != 2:
        raise ExerciseError("two numbers should come out", given=f"{len(graph.outputs)}", hint="return x, n")
    outs = [run(graph, [np.float64(x), *graph.captured]) for x in xs]
    return tuple(float(np.asarray(o.numpy() if hasattr(o, "numpy") else o)) for out in outs for o in out)


def _loop(test: Any = lambda s: s[0] > 1.0, body: Any = lambda s: (s[0] / 2.0, s[1] + 1.0), n: float = 0.0) -> Any:
    return lambda x: while_loop(test, body, (x, n))


def _in_python(x: Any) -> Any:
    n = 0.0
    while x > 1.0:
        x, n = x / 2.0, n + 1.0
    return x, n


def _counted_after(x: Any) -> Any:
    return while_loop(lambda x: x > 1.0, lambda x: x / 2.0, x), 1.0


def _by_logarithm(x: Any) -> Any:
    n = where(x > 1.0, floor(log(maximum(x, 1.0)) / np.log(2.0)), 0.0)
    return x / 2.0**n, n


HALVINGS = Exercise(
    name="halvings",
    task="Halve x while it is above 1; return what is left and how often, by a loop that a graph can hold.",
    stub='''\
def halvings(x):
    n = 0.0
    while x > 1.0:
        x, n = x / 2.0, n + 1.0
    return x, n
''',
    arguments=("xs",),
    results=("rest", "number of halvings"),
    answer=_loop(),
    call=in_a_graph,
    checks=(
        Check("the number that was traced", [((6.0,),)]),
        Check("other numbers through the same graph", [((6.0, 100.0, 3.0),)]),
        Check("no turn at all, and the edge", [((0.5, 1.0, 2.0, 1.5),), ((1e6, 0.0),)]),
    ),
    mutants=(
        Mutant("Python decides when the loop ends", _in_python,
               "lab.while_loop(test, body, (x, n)): test and body each take the pair",
               says("the value of a traced variable was asked for")),
        Mutant("one turn too many, for 1 itself", _loop(test=lambda s: s[0] >= 1.0), "while x is above 1: >, not >="),
        Mutant("the loop goes on while x is below 1", lambda x: while_loop(
               lambda s: s[0] < 1.0, lambda s: (s[0] * 2.0, s[1] + 1.0), (x, 0.0), max_steps=50),
               "the test says when to go on, as that of while does"),
        Mutant("the turns are not counted", _loop(body=lambda s: (s[0] / 2.0, s[1])),
               "n, too, is handed from turn to turn"),
        Mutant("the count is set, not carried", _counted_after,
               "what changes in a turn belongs into the carry: (x, n)"),
        Mutant("the count begins at 1", _loop(n=1.0), "before the first turn nothing was halved"),
        Mutant("it is one turn, not a loop", lambda x: cond(x > 1.0, lambda x: (x / 2.0, 1.0 + 0.0 * x),
               lambda x: (x, 0.0 * x), x), "lab.while_loop goes on until its test fails"),
        Mutant("the number of turns is fixed", lambda x: fori_loop(
               0, 2, lambda i, s: (s[0] / 2.0, s[1] + 1.0), (x, 0.0)),
               "how many turns there are depends on x: lab.while_loop"),
        Mutant("rest and count have changed places", lambda x: _loop()(x)[::-1], "return x, n: the rest first"),
        Mutant("the logarithm is rounded down, and more than 1 is left", _by_logarithm,
               "6 is halved three times, not twice: a loop counts for itself, or round up"),
    ),
    hints=(
        "lab.while_loop(test, body, start) gives the last carry; here a carry is the pair (x, n)",
        "test = lambda s: s[0] > 1.0, and body gives a pair again",
        "return lab.while_loop(lambda s: s[0] > 1.0, lambda s: (s[0] / 2.0, s[1] + 1.0), (x, 0.0))",
    ),
    show=lambda case: f"A graph that was made for {case[0][0]:g}, run for {', '.join(f'{x:g}' for x in case[0])}",
)  # fmt: skip
