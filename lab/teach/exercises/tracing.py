"""Exercise of lesson 07: a function is traced for each way through it, and answers from tapes whose truths hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lab.errors import ExerciseError
from lab.teach.exercise import Check, Exercise, Mutant
from lab.teach.plain import Plain
from lab.teach.tiny import Tape


def _turned(x: Any) -> Any:
    if x > 0.0:
        return 2.0 * x
    return 1.0 - x


def _middle(x: Any) -> Any:
    if x > 0.0:
        x = x - 1.0
        if x > 2.0:
            return x * x
    return x + 10.0


def _halved(x: Any) -> Any:
    while x > 1.0:
        x = x / 2.0
    return x


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "3 x + 1": lambda x: 3.0 * x + 1.0,
    "2 x for x > 0, else 1 - x": _turned,
    "two ifs, the second inside the first": _middle,
    "x halved while it is above 1": _halved,
}
"""By its text: a function of a number that Python runs."""


def with_numbers(traced: Callable[[Callable[[Any], Any]], Any], text: str, xs: Sequence[float]) -> Plain:
    """What a traced function gives for numbers one after the other, and how often the function itself ran.

    Raises:
        ExerciseError: there is no function to call.
    """
    f, runs = FUNCTIONS[text], list[float]()

    def counted(x: Any) -> Any:
        runs.append(1.0)
        return f(x)

    call = traced(counted)
    if not callable(call):
        raise ExerciseError("traced gave no function", given=f"{call!r}"[:100], hint="it ends with return call")
    return tuple(call(x) for x in xs), len(runs)


def _looked_up(f: Any, *, holds: Callable[[Tape, float], bool], newest: bool = False, last: bool = False) -> Any:
    """The answer, with a switch for each way to get it wrong."""
    tapes = list[Tape]()

    def call(x: float) -> Any:
        for tape in tapes[-1:] if last else tapes[:1] if newest else tapes:
            if holds(tape, x):
                return tape.run(x)
        tapes.append(Tape(f, x))
        return tapes[-1].run(x)

    return call


def _burned(f: Any) -> Any:
    tapes = list[Tape]()

    def call(x: float) -> Any:
        if not tapes:
            tapes.append(Tape(f, x))
        return tapes[0].run(x)

    return call


def _by_number(f: Any) -> Any:
    known: dict[float, Tape] = {}

    def call(x: float) -> Any:
        if x not in known:
            known[x] = Tape(f, x)
        return known[x].run(x)

    return call


def _of_the_example(f: Any) -> Any:
    tapes = list[tuple[Tape, float]]()

    def call(x: float) -> Any:
        for tape, example in tapes:
            if tape.holds(x):
                return tape.run(example)
        tapes.append((Tape(f, x), x))
        return tapes[-1][0].run(x)

    return call


def _traced_twice(f: Any) -> Any:
    tapes = list[Tape]()

    def call(x: float) -> Any:
        if not any(tape.holds(x) for tape in tapes):
            tapes.append(Tape(f, x))
            return Tape(f, x).run(x)
        return next(tape for tape in tapes if tape.holds(x)).run(x)

    return call


def _first_truth(tape: Tape, x: float) -> bool:
    before, tape.asked = tape.asked, tape.asked[:1]
    try:
        return tape.holds(x)
    finally:
        tape.asked = before


def _numbers(case: tuple[Any, ...]) -> str:
    return f"For f = {case[0]}, called with {', '.join(f'{x:g}' for x in case[1])}"


TRACED = Exercise(
    name="traced",
    task="Return a function that answers from a tape whose truths hold for x, and makes a new one only if none does.",
    stub='''\
def traced(f):
    tapes = []

    def call(x):
        if not tapes:
            tapes.append(Tape(f, x))
        return tapes[0].run(x)

    return call
''',
    arguments=("f", "xs"),
    results=("result", "number of runs of f"),
    answer=lambda f: _looked_up(f, holds=Tape.holds),
    call=with_numbers,
    checks=(
        Check("one tape where nothing is asked", [("3 x + 1", (1.0, 2.0, 1.0, -3.0))]),
        Check("both ways of an if, in turn", [("2 x for x > 0, else 1 - x", (3.0, -3.0, 4.0, -4.0, 5.0))]),
        Check("an if inside an if", [("two ifs, the second inside the first", (2.0, 7.0, -1.0, 8.0, 2.5, -2.0))]),
        Check("a loop: a tape for each number of turns",
              [("x halved while it is above 1", (3.0, 0.5, 10.0, 3.5, 9.0))]),
    ),
    mutants=(
        Mutant("the branch of the first number is burned in", _burned,
               "tape.holds(x) says whether a tape is good for x"),
        Mutant("f is traced in every call", lambda f: lambda x: Tape(f, x).run(x),
               "keep the tapes, and look among them"),
        Mutant("only the newest tape is looked at", lambda f: _looked_up(f, holds=Tape.holds, last=True),
               "numbers that take turns would trace in every call: look through all tapes"),
        Mutant("only the first tape is looked at", lambda f: _looked_up(f, holds=Tape.holds, newest=True),
               "look through all tapes, `for tape in tapes`"),
        Mutant("every number has a tape of its own", _by_number,
               "a tape is good for all numbers for which its truths hold"),
        Mutant("only the first truth is compared", lambda f: _looked_up(f, holds=_first_truth),
               "the second if may go another way: all truths must hold"),
        Mutant("tapes are used for which the truths do not hold", lambda f: _looked_up(
               f, holds=lambda tape, x: not tape.asked or not tape.holds(x)),
               "use a tape if tape.holds(x), and not if it does not"),
        Mutant("the result is that of an earlier number", _of_the_example, "run the tape with x: tape.run(x)"),
        Mutant("a new tape is made twice", _traced_twice, "keep the new tape, and run the one that was kept"),
    ),
    hints=(
        "a number for which a tape's truths hold goes the same way through f: then the tape is right",
        "for tape in tapes: if tape.holds(x): return tape.run(x)",
        "behind that loop: append Tape(f, x), and run it",
    ),
    show=_numbers,
)  # fmt: skip
