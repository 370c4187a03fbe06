"""Errors: three lines, one tree, catchable as what Python has for it, and able to travel."""

import ast
import inspect
import pickle
from pathlib import Path

import pytest

from lab import errors
from lab.errors import LabError

KINDS = [e for _, e in inspect.getmembers(errors, inspect.isclass) if issubclass(e, LabError)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_is_three_lines_and_survives_a_pickle(kind):
    made = kind("the problem", given=(3, 4), hint="what to try")
    assert str(made) == "the problem\ngiven: (3, 4)\nhint:  what to try"
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is kind
    assert (again.problem, again.given, again.hint) == (made.problem, made.given, made.hint)
    assert str(kind("the problem")) == "the problem"
    assert kind.__doc__


def test_python_code_can_catch_them_by_pythons_classes():
    assert issubclass(errors.ShapeError, ValueError)
    assert issubclass(errors.DTypeError, TypeError)
    assert issubclass(errors.GradientError, RuntimeError)
    assert issubclass(errors.ExerciseError, AssertionError)


def test_a_given_of_nothing_takes_no_line_and_zero_is_something():
    assert str(LabError("p", hint="h")) == "p\nhint:  h"
    assert str(LabError("p", given=0)) == "p\ngiven: 0"


SPOKEN_TO_DEVELOPERS = {"kernels"}
"""Rooms whose errors reach who writes kernels and formulas, not who uses the lab."""


def raised_in(path):
    """(line, problem, names of its keywords) of each LabError that is made in a file."""
    names = {kind.__name__ for kind in KINDS}
    for call in ast.walk(ast.parse(path.read_text())):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in names and call.args:
            problem = ast.unparse(call.args[0]).removeprefix("f").strip("'\"")
            yield call.lineno, problem, {k.arg for k in call.keywords}


def test_every_error_that_the_lab_raises_has_its_three_lines():
    root = Path(errors.__file__).parent
    found = [
        (f"{path.relative_to(root)}:{line}", problem, keywords)
        for path in sorted(root.rglob("*.py"))
        if path.parent.name not in SPOKEN_TO_DEVELOPERS
        for line, problem, keywords in raised_in(path)
    ]
    assert len(found) > 150
    lacking = [(where, problem) for where, problem, keywords in found if None not in keywords
               and not {"given", "hint"} <= keywords]  # fmt: skip
    assert lacking == []


def test_errors_of_ranks_travel_with_their_rank_and_traceback():
    wrong = pickle.loads(pickle.dumps(errors.PlanError("p", given="g", hint="h", rank=2, step=1)))
    assert (wrong.rank, wrong.step, str(wrong)) == (2, 1, "p\ngiven: g\nhint:  h")
    lost = pickle.loads(pickle.dumps(errors.LostRankError("p", rank=3)))
    assert (lost.rank, str(lost)) == (3, "p")
    failed = pickle.loads(pickle.dumps(errors.RankError("p", rank=1, traceback="Traceback: here")))
    assert (failed.rank, failed.traceback, failed.__notes__) == (1, "Traceback: here", ["Traceback: here"])
    assert errors.RankError("p").traceback == ""
