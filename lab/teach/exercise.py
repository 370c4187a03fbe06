"""An exercise: a stub to fill in, checks that name the first wrong thing, and the wrong answers that people give.

A mutant is a wrong answer that runs. A learner whose results agree with a mutant's in every case made that mistake,
whatever the code looks like; results are all that is compared, so a right answer in another form passes.
"""

from __future__ import annotations

import contextlib
import html
import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from lab.errors import ExerciseError
from lab.teach.guard import Answer, run_guarded
from lab.teach.plain import Plain, decode, describe, encode, first_difference

Function = Callable[..., Any]


class Check(NamedTuple):
    """One property with the cases that try it, in the order in which a learner should meet them."""

    claim: str
    """What must hold, to follow "checked:", e.g. "the numbers of the picture"."""
    cases: Sequence[tuple[Any, ...]]
    """Arguments of each call."""


class Mutant(NamedTuple):
    """A known wrong answer."""

    name: str
    """The mistake in a few words, e.g. "the two factors are swapped"."""
    function: Function
    hint: str
    """What to think about, without the solution."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a check found. Its text is what the learner reads.

    Attributes:
        exercise: name of the exercise.
        passed: every case of every check was right.
        checked: claims that held, in order, and `n_cases`, the number of calls that were right.
        problem: the first wrong thing, "" if passed.
        given: the call and the learner's value.
        expected: what should have come.
        mutant: name of the recognised mistake, or "".
        hint: one hint.
        printed: the beginning of what the function printed.
    """

    exercise: str
    passed: bool
    checked: tuple[str, ...] = ()
    n_cases: int = 0
    problem: str = ""
    given: str = ""
    expected: str = ""
    mutant: str = ""
    hint: str = ""
    printed: str = ""

    @property
    def text(self) -> str:
        """All of it, in a few lines."""
        if self.passed:
            return f"{self.exercise}: right in {self.n_cases} cases. Checked: {'; '.join(self.checked)}."
        rows = [f"{self.exercise}: not yet. {self.problem}"]
        rows += [f"given:    {self.given}"] * bool(self.given) + [f"expected: {self.expected}"] * bool(self.expected)
        rows += [f"this is what comes out when {self.mutant}"] * bool(self.mutant)
        rows += [f"hint:     {self.hint}"] * bool(self.hint)
        return "\n".join(rows)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return feedback_html(self)


def feedback_html(feedback: Feedback) -> str:
    """The text as HTML that needs no kernel: the hint is folded away, and opens by click or by Enter.

    Example:
        >>> "Checked" in feedback_html(Feedback("multiply_rule", passed=True, checked=("numbers",), n_cases=3))
        True
    """
    say, name = html.escape, html.escape(feedback.exercise)
    printed = f"<p>It printed:</p><pre>{say(feedback.printed)}</pre>" if feedback.printed else ""
    if feedback.passed:
        items = "".join(f"<li>{say(claim)}</li>" for claim in feedback.checked)
        return _box("pass", f"\u2713 {name}: right in {feedback.n_cases} cases", f"Checked:<ul>{items}</ul>{printed}")
    grid = "display:grid;grid-template-columns:max-content 1fr;gap:0 1em"
    rows = [f"<p>{say(feedback.problem)}</p>", f"<dl style='{grid}'>"]
    rows += [f"<dt>given</dt><dd><code>{say(feedback.given)}</code></dd>"] * bool(feedback.given)
    rows += [f"<dt>expected</dt><dd><code>{say(feedback.expected)}</code></dd>"] * bool(feedback.expected)
    rows += ["</dl>"]
    rows += [f"<p>This is what comes out when <b>{say(feedback.mutant)}</b>.</p>"] * bool(feedback.mutant)
    rows += [f"<details><summary>One hint</summary><p>{say(feedback.hint)}</p></details>"] * bool(feedback.hint)
    return _box("fail", f"\u2717 {name}: not yet", "".join(rows) + printed)


def _box(kind: str, head: str, body: str) -> str:
    colour = "var(--jp-success-color1, #2e7d32)" if kind == "pass" else "var(--jp-warn-color1, #b34700)"
    style = f"border-left:4px solid {colour};padding:2px 12px"
    return f"<div role='status' style='{style}'><p><b>{head}</b></p>{body}</div>"


def call_plainly(function: Function, *arguments: object) -> object:
    """How most exercises call the learner's function."""
    return function(*arguments)


@dataclass(frozen=True)
class Exercise:
    """A task with its checks.

    Attributes:
        name: the name that the learner's function must have.
        task: one sentence.
        stub: the code that the learner completes; runs as it is, and fails kindly.
        arguments: names of the arguments, for the messages.
        results: names of the results, for the messages.
        answer: a right answer, the oracle of every case; never shown.
        checks: properties with cases, tried in order.
        mutants: known wrong answers.
        hints: from vague to plain; a learner gets one at a time.
        call: how a case calls the function; builds there what cannot travel.
        tolerance: relative and absolute.
    """

    name: str
    task: str
    stub: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    answer: Function
    checks: tuple[Check, ...]
    mutants: tuple[Mutant, ...]
    hints: tuple[str, ...]
    call: Function = call_plainly
    tolerance: float = 1e-6

    def check(self, function: object, *, n_hints_seen: int = 0, timeout: float = 3.0) -> Feedback:
        """Run a learner's function on every case, in a process of its own, and say the first thing that is wrong.

        Args:
            function: the learner's. Nothing else of the notebook is looked at.
            n_hints_seen: how many hints were given before; the next one is given now.
            timeout: seconds for all cases together.

        Example:
            >>> from lab.teach import EXERCISES
            >>> EXERCISES["multiply_rule"].check(lambda ct, x, y: (ct * y, ct * x)).passed
            True
        """
        if not callable(function):
            return self._failed("check was given no function", f"a {type(function).__name__}", "the function itself",
                                f"write check({self.name}), without brackets behind the name")  # fmt: skip
        cases = [case for check in self.checks for case in check.cases]
        try:
            answers = run_guarded(function, cases, call=self.call, timeout=timeout)
        except ExerciseError as why:
            return self._failed(why.problem, why.given, "", why.hint)
        return self._judge(cases, answers, n_hints_seen)

    def _judge(self, cases: Sequence[tuple[Any, ...]], answers: Sequence[Answer], n_hints_seen: int) -> Feedback:
        held: list[str] = []
        n_right = 0
        for check in self.checks:
            for case in check.cases:
                wrong = self._wrong(check, case, answers[n_right])
                if wrong:
                    mutant = self._recognise(cases, answers)
                    hint = mutant.hint if mutant else wrong.hint or self._hint(n_hints_seen)
                    name = mutant.name if mutant else ""
                    return replace(wrong, checked=tuple(held), n_cases=n_right, hint=hint, mutant=name)
                n_right += 1
            held.append(check.claim)
        printed = next((a.printed for a in answers if a.printed), "")
        return Feedback(self.name, passed=True, checked=tuple(held), n_cases=n_right, printed=printed)

    def _wrong(self, check: Check, case: tuple[Any, ...], answer: Answer) -> Feedback | None:
        call = self._shown(case)
        if answer.failure:
            problem, hint = FAILURES.get(answer.failure, ("It raised an error.", ""))
            message = answer.message.partition("\n")[0]  # of the three lines of our own errors, the problem
            given = f"{call}: {message}" if answer.failure in FAILURES else f"{call}: {answer.failure}: {message}"
            given += f"  in the line  {answer.line}" if answer.line else ""
            return self._failed(problem, given, f"a result: {', '.join(self.results)}", hint, answer.printed)
        expected = plain(self.call, self.answer, case)
        if answer.value is None and expected is not None:
            return self._failed("It returned nothing.", f"{call} is None", ", ".join(self.results),
                                "a function gives back what stands behind `return`", answer.printed)  # fmt: skip
        difference = first_difference(answer.value, expected, self.results, self.tolerance)
        if difference is None:
            return None
        what, got, wanted = difference
        return self._failed(f"Tried {check.claim}: {what} is wrong.", f"{call}: {got}", wanted, "", answer.printed)

    def _recognise(self, cases: Sequence[tuple[Any, ...]], answers: Sequence[Answer]) -> Mutant | None:
        """The mutant that does what the learner's function did in every case: the same result, or the same error."""
        if any(a.failure in ENDED or (a.value is None and not a.failure) for a in answers):
            return None
        came = [f"raised {a.failure}" if a.failure else a.value for a in answers]
        for mutant in self.mutants:
            does = (plain(self.call, mutant.function, case) for case in cases)
            if all(_same(d, c, self.tolerance) for d, c in zip(does, came, strict=True)):
                return mutant
        return None

    def _hint(self, n_seen: int) -> str:
        return self.hints[min(n_seen, len(self.hints) - 1)] if self.hints else ""

    def _shown(self, case: tuple[Any, ...]) -> str:
        values = [f"{name}={describe(decode(encode(v)))}" for name, v in zip(self.arguments, case, strict=True)]
        return f"{self.name}({', '.join(values)})"

    def _failed(self, problem: str, given: str, expected: str, hint: str, printed: str = "") -> Feedback:
        return Feedback(self.name, passed=False, problem=problem, given=given, expected=expected, hint=hint,
                        printed=printed)  # fmt: skip


FAILURES: dict[str, tuple[str, str]] = {
    "timeout": ("It did not come to an end.", "look for a loop whose condition never becomes false"),
    "memory": ("It took too much memory.", "does a list or an array grow in every round?"),
    "exit": ("It ended its own process.", "leave a function with `return`, not with exit"),
    "crash": ("It crashed the process it ran in.", "run it on small numbers in a cell of its own first"),
    "start": ("It could not be tried.", "run the cell again; restart the kernel if that does not help"),
    "RecursionError": ("It calls itself without end.", "which case should it answer without calling itself?"),
    "NameError": ("It uses a name that does not exist there.", "is it spelled right, and defined before this cell?"),
    "TypeError": ("It raised an error.", "does it take the arguments of the stub, in their order?"),
}
"""What failed, in the learner's words, with its hint, by `Answer.failure`."""

ENDED = ("timeout", "memory", "exit", "crash", "start")
"""Failures after which there are no more answers."""


def plain(call: Function, function: Function, case: tuple[Any, ...]) -> Plain:
    """The plain value of our own function for a case; a text that no answer equals if it raises."""
    silent = io.StringIO()
    with contextlib.redirect_stdout(silent), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return decode(encode(call(function, *case)))
        except Exception as why:  # noqa: BLE001 - a mutant may fail in a case in which the learner's function did not
            return f"raised {type(why).__name__}"


def _same(a: Plain, b: Plain, tolerance: float) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return type(a) is type(b) and a == b
    return first_difference(b, a, (), tolerance) is None
