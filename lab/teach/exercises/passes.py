"""Exercises of lesson 08: two passes over graphs, dead code and common subexpressions.

What a pass made is asked as the compiler asks it: is the graph legal, are the results the same bits, nan, inf and the
sign of zero included, and how many equations are left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from lab.errors import ExerciseError, GraphError
from lab.graph.execute import run_arrays
from lab.graph.ir import Equation, Graph, Literal, Var
from lab.graph.rewriting import renumbered
from lab.graph.verify import verify
from lab.teach.exercise import Case, Check, Exercise, Mutant, Wrong
from lab.teach.exercises.programs import graph_of, numbers
from lab.teach.plain import Plain
from lab.words import counted, kind_of

Change = Callable[[Any], Any]


class Passed(NamedTuple):
    """What a pass made of a graph."""

    problem: str
    """What is wrong with it, "" if it computes the same."""
    given: str
    n_equations: int
    text: str
    """Of the graph, with its variables numbered anew; "" if something is wrong."""

    @classmethod
    def read(cls, said: str) -> Passed:
        """From one text, by lines: as texts answers are compared whole."""
        problem, given, n, text = said.split("\n", 3)
        return cls(problem, given, int(n), text)


def passed_through(change: Change, name: str) -> Plain:
    """What a pass makes of the graph of this name: a `Passed`, as one text.

    Raises:
        ExerciseError: it gives no graph.

    Example:
        >>> Passed.read(passed_through(lambda graph: graph, "exp(x) * y"))[:3]
        ('', '', 2)
    """
    before = graph_of(name)
    after = change(before)
    if not isinstance(after, Graph):
        raise ExerciseError("the pass gave no graph", given=kind_of(after),
                            hint="it ends with return replace(graph, equations=...)")  # fmt: skip
    problem, given = _wrong_with(before, after)
    text = "" if problem else str(renumbered(after))
    return "\n".join([problem, given.partition("\n")[0], str(len(after.equations)), text])


def _wrong_with(before: Graph, after: Graph) -> tuple[str, str]:
    """What is wrong with the second graph, which shall compute what the first does."""
    if after.inputs != before.inputs or len(after.outputs) != len(before.outputs):
        ends = f"{counted(len(after.inputs), 'input')}, {counted(len(after.outputs), 'output')}"
        return "the graph takes or gives something else than before", ends
    try:
        verify(after)
    except GraphError as why:
        return f"the graph is not legal: {why.problem.partition(': ')[2]}", why.given
    for arrays in numbers():
        with np.errstate(all="ignore"):
            pairs = zip(run_arrays(before, arrays), run_arrays(after, arrays), strict=True)
        for k, (old, new) in enumerate(pairs):
            if not _same_bits(old, new):
                place = tuple(int(i[0]) for i in np.nonzero(~_alike(old, new)))
                what = f"entry {list(place)} of output {k} is {new[place]!s}, and was {old[place]!s}"
                return "the graph computes something else", what
    return "", ""


def _alike(old: Any, new: Any) -> Any:
    return ((old == new) & (np.signbit(old) == np.signbit(new))) | (np.isnan(old) & np.isnan(new))


def _same_bits(old: Any, new: Any) -> bool:
    return bool(np.shape(old) == np.shape(new) and np.all(_alike(old, new)))


def _judged(answer: Change) -> Callable[[Case, Plain], Wrong | None]:
    """A judge: the graph computes the same, and has no more equations than the answer leaves."""

    def judge(case: Case, value: Plain) -> Wrong | None:
        found, best = Passed.read(value), len(answer(graph_of(case[0])).equations)
        if found.problem:
            return Wrong(f"{_shown(case)}: {found.problem}.", found.given, "the same results, bit for bit")
        if found.n_equations > best:
            left = counted(found.n_equations, "equation")
            return Wrong(f"{_shown(case)}: more could go.", f"{left} left", f"{best}")
        return None

    return judge


def _shown(case: Case) -> str:
    return f"For the graph of {case[0]}"


# --- dead code -------------------------------------------------------------------------------------------------------


def _read_later(
    graph: Graph, *, first: slice = slice(None), operands: slice = slice(None), results: slice = slice(None)
) -> Graph:
    """The answer, with switches for some ways to get it wrong."""
    read, kept = set(graph.outputs[first]), list[Equation]()
    for e in reversed(graph.equations):
        if read.intersection(e.outs[results]):
            kept.append(e)
            read.update(e.inputs[operands])
    return replace(graph, equations=tuple(reversed(kept)))


def _forwards(graph: Graph) -> Graph:
    read = set(graph.outputs)
    return replace(graph, equations=tuple(e for e in graph.equations if read.intersection(e.outs)))


def _read_by_any(graph: Graph) -> Graph:
    read = {a for e in graph.equations for a in e.inputs} | set(graph.outputs)
    return replace(graph, equations=tuple(e for e in graph.equations if read.intersection(e.outs)))


def _turned_round(graph: Graph) -> Graph:
    return replace(graph, equations=_read_later(graph).equations[::-1])


def _inputs_too(graph: Graph) -> Graph:
    new = _read_later(graph)
    read = {a for e in new.equations for a in e.inputs} | set(new.outputs)
    return replace(new, inputs=tuple(v for v in new.inputs if v in read))


def _the_rest(graph: Graph) -> Graph:
    needed = {e.outs for e in _read_later(graph).equations}
    return replace(graph, equations=tuple(e for e in graph.equations if e.outs not in needed))


DEAD_CODE = Exercise(
    name="dead_code",
    task="Return the graph without the equations that no output needs.",
    stub='''\
def dead_code(graph):
    kept = []
    for e in graph.equations:
        kept.append(e)
    return replace(graph, equations=tuple(kept))
''',
    arguments=("graph",),
    results=("graph",),
    answer=_read_later,
    call=passed_through,
    show=_shown,
    checks=(
        Check("an equation that nobody reads", [("exp(x) * y",), ("exp(x) * y, and tanh(x) unread",)],
              _judged(_read_later)),
        Check("what only dead equations read", [("x + y, and a chain unread",)], _judged(_read_later)),
        Check("several outputs, an input given back, a loop with two results",
              [("two outputs",), ("x itself, and a product unread",), ("the count of a loop",)], _judged(_read_later)),
        Check("graphs at random", [(f"random program {seed}",) for seed in range(8)], _judged(_read_later)),
    ),
    mutants=(
        Mutant("nothing is left out", lambda graph: graph,
               "keep an equation only if one of its results is read: by an output, or by an equation that is kept"),
        Mutant("the equations that make what others read are left out", _forwards,
               "a kept equation reads its operands: walk from the end, so that readers come before makers"),
        Mutant("what only dead equations read is kept", _read_by_any,
               "a reader counts only if it is needed itself: walk from the end"),
        Mutant("the equations stay in the order of the walk", _turned_round,
               "the walk goes from the end: turn what you kept round again"),
        Mutant("only the first output counts", lambda graph: _read_later(graph, first=slice(1)),
               "begin with every output: set(graph.outputs)"),
        Mutant("only the last output counts", lambda graph: _read_later(graph, first=slice(-1, None)),
               "begin with every output: set(graph.outputs)"),
        Mutant("only first operands are followed", lambda graph: _read_later(graph, operands=slice(1)),
               "an equation reads all of e.inputs"),
        Mutant("only the first result of an equation is looked at", lambda graph: _read_later(graph, results=slice(1)),
               "a loop has several results: any(v in read for v in e.outs)"),
        Mutant("inputs are left out, too", _inputs_too,
               "callers give every input, read or not: change only what is between inputs and outputs"),
        Mutant("what is needed is left out, and the rest is kept", _the_rest,
               "keep the equations whose results are in the set of what is read"),
    ),
    hints=(
        "whether a result is needed is known when all of its readers are: which way should the loop go?",
        "from the end: a set that begins with the outputs, and grows by the operands of what is kept",
    ),
)  # fmt: skip

# --- common subexpressions -------------------------------------------------------------------------------------------

Key = Callable[[Equation, Equation], Any]


def _merged(
    graph: Graph, key: Key = lambda old, now: now.key(), *, given: bool = True, inside: bool = True, last: bool = False
) -> Graph:
    """The answer: by another key of the old equation and the renamed one, or without renaming somewhere."""
    first: dict[Any, tuple[Var, ...]] = {}
    stands: dict[Any, Any] = {}
    kept = []
    for e in graph.equations:
        now = replace(e, inputs=tuple(stands.get(a, a) for a in e.inputs))
        found = key(e, now)
        if found in first:
            stands.update(zip(e.outs, first[found], strict=True))
        else:
            if last:
                first.clear()
            first[found] = e.outs
            kept.append(now if inside else e)
    outputs = tuple(stands.get(a, a) for a in graph.outputs) if given else graph.outputs
    return replace(graph, equations=tuple(kept), outputs=outputs)


def _part(*parts: int) -> Key:
    return lambda old, now: tuple(now.key()[k] for k in parts)


def _in_any_order(_: Equation, now: Equation) -> Any:
    op, inputs, params = now.key()
    return op, frozenset(inputs), params


def _as_numbers(_: Equation, now: Equation) -> Any:
    inputs = tuple(a.value if isinstance(a, Literal) and a.weak else a for a in now.inputs)
    return now.op.name, inputs, now.key()[2]


def _any_draw(_: Equation, now: Equation) -> Any:
    op, inputs, params = now.key()
    return op, () if op.startswith("random") else inputs, params


COMMON = Exercise(
    name="common",
    task="Return the graph with what is computed twice computed once.",
    stub='''\
def common(graph):
    first, stands, kept = {}, {}, []
    for e in graph.equations:
        now = replace(e, inputs=tuple(stands.get(a, a) for a in e.inputs))
        kept.append(now)
    outputs = tuple(stands.get(a, a) for a in graph.outputs)
    return replace(graph, equations=tuple(kept), outputs=outputs)
''',
    arguments=("graph",),
    results=("graph",),
    answer=_merged,
    call=passed_through,
    show=_shown,
    checks=(
        Check("one value computed twice", [("exp(x) * exp(x)",), ("exp(x) + exp(y)",)], _judged(_merged)),
        Check("its readers, and theirs", [("tanh(exp(x)) * tanh(exp(x))",), ("exp(x), given twice",)],
              _judged(_merged)),
        Check("another op, order, parameter, sign of zero, key of random numbers",
              [("exp(x) * tanh(x)",), ("(x - y) * (y - x)",), ("sums by rows and by columns",),
               ("1 / (x * 0) and 1 / (x * -0)",), ("random numbers by two keys",)], _judged(_merged)),
        Check("graphs at random", [(f"random program {seed}",) for seed in range(8, 16)], _judged(_merged)),
    ),
    mutants=(
        Mutant("nothing is merged", lambda graph: graph,
               "look now.key() up in first; if it is there, its results stand for those of e"),
        Mutant("operands are not compared", lambda graph: _merged(graph, _part(0, 2)),
               "exp(x) and exp(y) are two values: the key needs op, operands and parameters"),
        Mutant("parameters are not compared", lambda graph: _merged(graph, _part(0, 1)),
               "a sum over axis 0 is not one over axis 1: the key needs e.params, too"),
        Mutant("ops are not compared", lambda graph: _merged(graph, _part(1, 2)),
               "exp(x) is not tanh(x): the key needs op, operands and parameters"),
        Mutant("operands are compared by the names that they had before", lambda graph: _merged(
               graph, lambda old, now: old.key()), "two readers of one merged value have equal operands only once these"
               " are renamed: take the key of now"),
        Mutant("outputs keep the names of values that are gone", lambda graph: _merged(graph, given=False),
               "an output may be a value that was merged: it has to be renamed as operands are"),
        Mutant("readers keep the names of values that are gone", lambda graph: _merged(graph, inside=False),
               "keep now, whose operands are renamed, and not e"),
        Mutant("the order of operands does not count", lambda graph: _merged(graph, _in_any_order),
               "x - y is not y - x"),
        Mutant("0 and -0 count as one", lambda graph: _merged(graph, _as_numbers),
               "Python says 0.0 == -0.0, but 1 / 0.0 and 1 / -0.0 differ: e.key() tells them apart"),
        Mutant("random numbers by different keys are merged", lambda graph: _merged(graph, _any_draw),
               "the key of a draw is an operand: other keys, other numbers"),
        Mutant("only the equation right before is compared", lambda graph: _merged(graph, last=True),
               "the first may be anywhere before: a dict holds all of them"),
    ),
    hints=(
        "two equations compute the same if op, operands and parameters are equal: a dict finds the first of them",
        "now.key() is such a key; stands says for a variable which other one stands for it",
        "if it is there: stands.update(zip(e.outs, first[key])), else first[key] = e.outs, and keep now",
    ),
)  # fmt: skip
