"""Every exercise: the right answer in any form passes, wrong ones are named, and nothing a learner writes does harm."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from lab.errors import LabError
from lab.teach import EXERCISES, SOLUTIONS, guard, worker
from tests.slices import sliced
from tests.teach.answers import RIGHT, WRONG, multiply, plan, typed

SLACK = 20.0
"""Bound of liveness on a busy machine: starting an interpreter, and ending it."""


def check(name: str, source: str, **options):
    return EXERCISES[name].check(typed(source, name), **options)


@pytest.fixture
def at_home(monkeypatch):
    """Runs functions that are known to do no harm in this process: one process for each would take minutes."""

    def run(function, cases, *, call, timeout):
        path = function.__code__.co_filename if hasattr(function, "__code__") else ""
        rows = [json.loads(json.dumps(worker.run_case(call, function, case, path))) for case in cases]
        return [guard._answer(row, path) for row in rows]

    monkeypatch.setattr("lab.teach.exercise.run_guarded", run)


@sliced("source", "words", every=3)
@pytest.mark.parametrize(("name", "source", "words"), WRONG, ids=[f"{n}-{w}" for n, _, w in WRONG])
def test_a_typical_wrong_answer_is_told_by_name(name, source, words, request):
    if "end" not in words.split():
        request.getfixturevalue("at_home")
    feedback = check(name, source)
    assert not feedback.passed
    assert words in feedback.text
    assert "AssertionError" not in feedback.text
    assert feedback.hint
    assert feedback.hint.count("\n") == 0


@pytest.mark.parametrize("name", EXERCISES)
def test_each_exercise_is_tried_with_ten_wrong_answers_and_knows_five_by_name(name):
    assert sum(n == name for n, _, _ in WRONG) >= 10
    assert len(EXERCISES[name].mutants) >= 5


@pytest.mark.parametrize(("name", "i"), [(n, i) for n, e in EXERCISES.items() for i in range(len(e.mutants))])
def test_every_mutant_fails_and_is_recognised_as_itself(name, i, at_home):
    mutant = EXERCISES[name].mutants[i]
    feedback = EXERCISES[name].check(mutant.function)
    assert not feedback.passed
    assert feedback.mutant == mutant.name
    assert feedback.hint == mutant.hint


@pytest.mark.parametrize(("name", "source"), RIGHT)
def test_a_right_answer_passes_in_any_form_and_passed_says_what_was_checked(name, source):
    feedback = check(name, source)
    assert feedback.passed, feedback.text
    assert f"right in {feedback.n_cases} cases" in feedback.text
    assert feedback.n_cases == sum(len(c.cases) for c in EXERCISES[name].checks)
    assert all(c.claim in feedback.text for c in EXERCISES[name].checks)
    assert "all passed" not in feedback.text


@pytest.mark.parametrize("name", EXERCISES)
def test_the_stub_runs_and_is_told_kindly_what_is_missing(name):
    feedback = check(name, EXERCISES[name].stub)
    assert not feedback.passed
    assert feedback.mutant


def test_an_action_of_no_kind_is_told_and_nothing_else_is_guessed(at_home):
    feedback = check("my_schedule", "def my_schedule(rank, n_ranks, n_micro):\n    yield Action('X', rank, 0)\n")
    assert "there is no kind 'X'" in feedback.problem
    assert not feedback.mutant
    assert feedback.hint == '"F" is forward, "B" is backward'


def test_a_wrong_weight_is_told_by_its_place_in_good_grammar(at_home):
    body = "def training_loop(loss, optimizer, n_steps):\n    for _ in range(n_steps + 2):\n"
    steps = "".join(f"        {line}\n" for line in ("optimizer.zero_grad()", "loss().backward()", "optimizer.step()"))
    assert "entry [0] of the vector of weights at the end is wrong" in check("training_loop", body + steps).text


EQUAL_TO_ALL = """
class Yes:
    def __eq__(self, other): return True
    def __array__(self, *a, **k): return np.ones(2)
    def __float__(self): return 1.0
    def __iter__(self): return iter((self, self))
    def __len__(self): return 2
    def __reduce__(self): return (print, ("owned",))
    def __repr__(self): raise ValueError("no")
"""
TRICKS = {
    "equal to everything": EQUAL_TO_ALL + multiply("return Yes(), Yes()"),
    "equal to everything, as the pair": EQUAL_TO_ALL + multiply("return Yes()"),
    "a float equal to all": "class F(float):\n    def __eq__(self, o): return True\n" + multiply("return F(0), F(0)"),
    "an array equal to all": "class A(np.ndarray):\n    def __eq__(self, o): return np.True_\n"
    + multiply("zero = np.zeros(np.shape(x)).view(A); return zero, zero"),
    "not a number": multiply("return np.nan * x, np.nan * y"),
    "an array of objects": EQUAL_TO_ALL + multiply("return np.array([Yes(), Yes()], dtype=object)"),
    "patching the comparison": multiply(
        "import lab.teach.exercise as e; e.first_difference = lambda *a: None; return 0.0, 0.0"
    ),
}


@pytest.mark.parametrize("trick", TRICKS)
def test_a_trick_does_not_pass(trick):
    feedback = check("multiply_rule", TRICKS[trick])
    assert not feedback.passed
    assert "gradient of x is wrong" in feedback.text or "number of results is wrong" in feedback.text


def test_a_check_takes_along_what_the_function_uses_and_nothing_of_it_changes_later():
    scope = {"__name__": "__main__"}
    helper = "factor = 1.0\ndef helper(ct, a): return factor * ct * a\n"
    source = helper + multiply("return helper(ct, y), helper(ct, x)")
    exec(source, scope)
    function = scope["multiply_rule"]
    assert EXERCISES["multiply_rule"].check(function).passed
    scope["ct"] = scope["x"] = scope["EXERCISES"] = scope["check"] = None  # names of the notebook that are used again
    assert EXERCISES["multiply_rule"].check(function).passed


def test_hints_come_one_at_a_time_from_vague_to_plain_and_the_last_stays():
    exercise = EXERCISES["multiply_rule"]
    answer = typed(multiply("return 7.0 + 0 * x, 8.0 + 0 * y"), "multiply_rule")
    hints = [exercise.check(answer, n_hints_seen=n).hint for n in range(len(exercise.hints) + 1)]
    assert hints == [*exercise.hints, exercise.hints[-1]]


HARM = {
    "while True: pass": "did not come to an end",
    "import time; time.sleep(3600)": "did not come to an end",
    "while True: print('flood')": "did not come to an end",
    "return multiply_rule(ct, x, y)": "calls itself without end",
    "import os; os._exit(3)": "exit code 3",
    "raise SystemExit": "called exit",
    "raise KeyboardInterrupt": "KeyboardInterrupt",
    "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)": "SIGSEGV",
    "return [0.0] * (1 << 30)": "too much memory",
    "return np.zeros(1 << 40)": "too much memory",
    "return np.zeros(20_000_000), 0": "too large to compare",
    "return 1 / 0": "ZeroDivisionError",
    "raise type('Odd', (Exception,), {'__str__': lambda self: 1 / 0})()": "its text cannot be shown",
}


@pytest.mark.parametrize("body", HARM)
def test_whatever_a_function_does_is_answered_by_name_within_its_time(body):
    timeout = 1.0 if "end" in HARM[body].split() else SLACK
    started = time.monotonic()
    feedback = check("multiply_rule", multiply(body), timeout=timeout)
    assert time.monotonic() - started < timeout + SLACK
    assert not feedback.passed
    assert HARM[body] in feedback.text
    assert check("multiply_rule", SOLUTIONS["multiply_rule"]).passed


@pytest.mark.parametrize(
    ("body", "words"),
    {
        "held = []\nwhile True: held.append([0] * 1_000_000)": "too much memory",
        "while True: print('flood')": "did not come to an end",
        "while True: yield ()": "the plan does not come to an end",
        "while True: yield [Send(1, 0, 1)] * 100_000": "the plan does not come to an end",
        "yield ()\nimport os; os._exit(3)": "exit code 3",
        "yield ()\nyield from my_all_reduce(rank, world_size, n_chunks)": "calls itself without end",
    }.items(),
)
def test_whatever_a_generator_does_is_answered_by_name(body, words):
    feedback = check("my_all_reduce", plan(body), timeout=1.0 if words.startswith("did not") else SLACK)
    assert words in feedback.text
    assert feedback.hint


def test_a_timed_out_function_leaves_no_process_behind(tmp_path):
    mark = tmp_path / "children"
    source = f"""
    def multiply_rule(ct, x, y):
        import subprocess, sys
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with open({str(mark)!r}, "a") as file: file.write(f"{{child.pid}} ")
        child.wait()
    """
    feedback = check("multiply_rule", source, timeout=3.0)
    assert "did not come to an end" in feedback.text
    for pid in map(int, mark.read_text().split()):
        deadline = time.monotonic() + SLACK
        while _runs(pid):
            assert time.monotonic() < deadline


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_function_ends_with_the_kernel_that_checks_it(tmp_path):
    mark = tmp_path / "pid"
    program = f"""
import os
from lab.teach import EXERCISES
def multiply_rule(ct, x, y):
    open({str(mark)!r}, "w").write(str(os.getpid()))
    while True: pass
EXERCISES["multiply_rule"].check(multiply_rule, timeout=600)
"""
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    kernel = subprocess.Popen([sys.executable, "-c", program], env=os.environ | path)
    deadline = time.monotonic() + SLACK
    while not (mark.exists() and mark.read_text()):
        assert time.monotonic() < deadline
    kernel.kill()
    kernel.wait()
    deadline = time.monotonic() + SLACK
    while _runs(int(mark.read_text())):
        assert time.monotonic() < deadline


def test_prints_are_shown_cut_to_size():
    feedback = check("multiply_rule", multiply("print('a' * 5000); return ct, ct"))
    assert feedback.printed.startswith("aaa")
    assert len(feedback.printed) < 2_100
    assert "5001 characters in all" in feedback.printed


def test_an_error_shows_the_learners_own_line(tmp_path):
    cell = tmp_path / "cell.py"
    cell.write_text("def multiply_rule(ct, x, y):\n    half = x / 0\n    return half, half\n")
    scope = {"__name__": "__main__"}
    exec(compile(cell.read_text(), str(cell), "exec"), scope)
    assert "in the line  half = x / 0" in EXERCISES["multiply_rule"].check(scope["multiply_rule"]).text


def test_what_cannot_travel_is_said_in_three_lines():
    lock = __import__("threading").Lock()
    feedback = EXERCISES["multiply_rule"].check(lambda ct, x, y: lock)
    assert not feedback.passed
    assert "cannot take along" in feedback.text
    assert feedback.hint


@pytest.mark.parametrize("answer", [3, None, "multiply_rule"])
def test_what_is_no_function_is_answered_and_not_raised(answer):
    assert "was given no function" in EXERCISES["multiply_rule"].check(answer).text


def test_multiply_rule_is_what_the_engine_does():
    import lab

    for case in (c for k in EXERCISES["multiply_rule"].checks for c in k.cases):
        ct, x, y = (np.asarray(v, float) for v in case)
        a, b = lab.tensor(x, requires_grad=True), lab.tensor(y, requires_grad=True)
        (a * b).backward(lab.tensor(ct))
        expected = EXERCISES["multiply_rule"].answer(ct, x, y)
        np.testing.assert_allclose(a.grad.numpy(), expected[0])
        np.testing.assert_allclose(b.grad.numpy(), expected[1])


def test_feedback_survives_json():
    assert json.loads(json.dumps(check("multiply_rule", SOLUTIONS["multiply_rule"]).text))


def test_the_errors_of_teaching_are_in_the_tree():
    from lab.errors import ExerciseError, PredictionError

    assert issubclass(ExerciseError, LabError)
    assert issubclass(PredictionError, LabError)
