"""Every exercise: the right answer in any form passes, wrong ones are named, and nothing a learner writes does harm."""

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from lab.errors import LabError
from lab.teach import EXERCISES, SOLUTIONS

SLACK = 20.0
"""Bound of liveness on a busy machine: starting an interpreter, and ending it."""


def typed(source: str, name: str):
    """A function as if typed into a notebook: its module is __main__, and its globals are the notebook's."""
    scope = {"__name__": "__main__", "np": np}
    exec(compile(textwrap.dedent(source), "<cell>", "exec"), scope)
    return scope[name]


def check(name: str, source: str, **options):
    return EXERCISES[name].check(typed(source, name), **options)


def multiply(body: str) -> str:
    return f"def multiply_rule(ct, x, y):\n    {body}\n"


def loop(*body: str, rounds: str = "range(n_steps)", before: str = "") -> str:
    inner = "".join(f"        {line}\n" for line in body)
    first = f"    {before}\n" if before else ""
    return f"def training_loop(loss, optimizer, n_steps):\n{first}    for _ in {rounds}:\n{inner}"


ZERO, BACK, STEP = "optimizer.zero_grad()", "loss().backward()", "optimizer.step()"

WRONG = [  # what learners type, and the words that tell them
    ("multiply_rule", multiply("return ct * x, ct * y"), "swapped"),
    ("multiply_rule", multiply("return y, x"), "ct is left out"),
    ("multiply_rule", multiply("return ct, ct"), "rule is that of addition"),
    ("multiply_rule", multiply("return ct + y, ct + x"), "added where it has to be multiplied"),
    ("multiply_rule", multiply("return ct * x * y, ct * x * y"), "the product itself"),
    ("multiply_rule", multiply("return ct * y"), "only one gradient"),
    ("multiply_rule", multiply("return -(ct * y), -(ct * x)"), "the sign is turned"),
    ("multiply_rule", multiply("return ct / y, ct / x"), "divides"),
    ("multiply_rule", multiply("ct * y, ct * x"), "It returned nothing"),
    ("multiply_rule", multiply("return ct * z, ct * x"), "name 'z' is not defined"),
    ("multiply_rule", "def multiply_rule(ct, x):\n    return ct, ct\n", "takes 2 positional arguments"),
    ("multiply_rule", multiply("return 'ct * y', 'ct * x'"), "gradient of x is wrong"),
    ("multiply_rule", multiply("return ct * y, ct * x, 0"), "number of results is wrong"),
    ("multiply_rule", multiply("return ct * y, float(np.sum(ct * x))"), "its shape is wrong"),
    ("training_loop", loop(BACK, STEP), "never cleared"),
    ("training_loop", loop(BACK, STEP, before=ZERO), "never cleared"),
    ("training_loop", loop(BACK, ZERO, STEP), "step finds no gradient"),
    ("training_loop", loop(ZERO, BACK), "weights never move"),
    ("training_loop", loop(STEP, ZERO, BACK), "step finds no gradient"),
    ("training_loop", loop(ZERO, BACK, STEP, rounds="range(1, n_steps)"), "one step too few"),
    ("training_loop", loop(ZERO, BACK, STEP, "return"), "stops after the first step"),
    ("training_loop", loop(ZERO, BACK, STEP, rounds="[0]"), "exactly one step"),
    ("training_loop", loop(ZERO, BACK, BACK, STEP), "counts twice"),
    ("training_loop", loop(ZERO, BACK, STEP, STEP), "counts twice"),
    ("training_loop", loop(ZERO, "value.backward()", STEP, before="value = loss()"), "one graph is used for all"),
    ("training_loop", loop(ZERO, BACK, STEP, rounds="range(n_steps + 1)"), "one step too many"),
    ("training_loop", loop(ZERO, "loss.backward()", STEP), "has no attribute 'backward'"),
]


@pytest.mark.parametrize(("name", "source", "words"), WRONG, ids=[f"{n}-{w}" for n, _, w in WRONG])
def test_a_typical_wrong_answer_is_told_by_name(name, source, words):
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
def test_every_mutant_fails_and_is_recognised_as_itself(name, i):
    mutant = EXERCISES[name].mutants[i]
    feedback = EXERCISES[name].check(mutant.function)
    assert not feedback.passed
    assert feedback.mutant == mutant.name
    assert feedback.hint == mutant.hint


RECURSIVE = """
def training_loop(loss, optimizer, n_steps):
    if n_steps > 0:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        training_loop(loss, optimizer, n_steps - 1)
"""
RIGHT = [
    *SOLUTIONS.items(),
    ("training_loop", RECURSIVE),
    ("multiply_rule", multiply("return [y * ct, x * ct]")),
    ("multiply_rule", multiply("return np.stack([np.multiply(y, ct), np.multiply(x, ct)])")),
    ("multiply_rule", "def multiply_rule(ct, x, y):\n    other = lambda a: ct * a\n    return other(y), other(x)\n"),
    ("training_loop", loop(BACK, STEP, ZERO)),
]


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
