"""An exercise: a stub to fill in, checks that name the first wrong thing, and the wrong answers that people give.

Only results are looked at, never code, so a right answer in another form passes. A result is right if it equals the
exercise's own, or if a judge says so; a mistake is known by results that equal a mutant's, or by the sign it leaves.
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
from lab.teach.boxes import box, definitions
from lab.teach.guard import Answer, run_guarded
from lab.teach.plain import Foreign, Plain, decode, describe, encode, first_difference
from lab.words import kind_of

Function = Callable[..., Any]


Case = tuple[Any, ...]
"""Arguments of one call."""


class Wrong(NamedTuple):
    """The first wrong thing about a result, in a sentence, with what is there, what was expected, and a hint."""

    problem: str
    given: str = ""
    expected: str = ""
    hint: str = ""


Judge = Callable[[Case, Plain], Wrong | None]
"""Says what is wrong with the result of a case; None if it is right."""

Seen = Sequence[tuple[Case, Answer]]
"""What a learner's function did in every case."""


class Check(NamedTuple):
    """One property with the cases that try it, in the order in which a learner should meet them."""

    claim: str
    """What must hold, to follow "checked:", e.g. "the numbers of the picture"."""
    cases: Sequence[Case]
    judge: Judge | None = None
    """For tasks with many right answers; without it a result has to equal that of the exercise's own answer."""


class Mutant(NamedTuple):
    """A known wrong answer."""

    name: str
    """The mistake in a few words, e.g. "the two factors are swapped"."""
    function: Function
    hint: str
    """What to think about, without the solution."""
    sign: Callable[[Seen], bool] | None = None
    """What gives the mistake away; without it, results that equal those of `function` in every case."""


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
        remark: what else there is to say about a right answer, e.g. what it costs.
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
    remark: str = ""

    @property
    def text(self) -> str:
        """All of it, in a few lines."""
        if self.passed:
            right = f"{self.exercise}: right in {self.n_cases} cases. Checked: {'; '.join(self.checked)}."
            return f"{right}\n{self.remark}" if self.remark else right
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
        more = f"<p>{say(feedback.remark)}</p>" if feedback.remark else ""
        head = f"\u2713 {name}: right in {feedback.n_cases} cases"
        return box("pass", head, f"Checked:<ul>{items}</ul>{more}{printed}")
    told = {"given": feedback.given, "expected": feedback.expected}
    rows = [f"<p>{say(feedback.problem)}</p>", definitions(told)]
    rows += [f"<p>This is what comes out when <b>{say(feedback.mutant)}</b>.</p>"] * bool(feedback.mutant)
    rows += [f"<details><summary>One hint</summary><p>{say(feedback.hint)}</p></details>"] * bool(feedback.hint)
    return box("fail", f"\u2717 {name}: not yet", "".join(rows) + printed)


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
        answer: a right answer, the oracle of every check without a judge; never shown.
        checks: properties with cases, tried in order.
        mutants: known wrong answers.
        hints: from vague to plain; a learner gets one at a time.
        call: how a case calls the function; builds there what cannot travel.
        tolerance: relative and absolute.
        show: a case in words, for the messages; without it the call with its arguments.
        remark: what to add to a right answer, from what it did in every case.
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
    show: Callable[[Case], str] | None = None
    remark: Callable[[Seen], str] | None = None

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
            return self._failed("check was given no function", kind_of(function), "the function itself",
                                f"write check({self.name}), without brackets behind the name")  # fmt: skip
        cases = [case for check in self.checks for case in check.cases]
        try:
            answers = run_guarded(function, cases, call=self.call, timeout=timeout)
        except ExerciseError as why:
            return self._failed(why.problem, why.given, "", why.hint)
        return self._judge(cases, answers, n_hints_seen)

    def _judge(self, cases: Sequence[Case], answers: Sequence[Answer], n_hints_seen: int) -> Feedback:
        held: list[str] = []
        n_right = 0
        for check in self.checks:
            for case in check.cases:
                wrong = self._wrong(check, case, answers[n_right])
                if wrong:
                    mutant = self._recognise(cases, answers)
                    hint = mutant.hint if mutant else wrong.hint or self._hint(n_hints_seen)
                    failed = self._failed(wrong.problem, wrong.given, wrong.expected, hint, answers[n_right].printed)
                    return replace(failed, checked=tuple(held), n_cases=n_right, mutant=mutant.name if mutant else "")
                n_right += 1
            held.append(check.claim)
        printed = next((a.printed for a in answers if a.printed), "")
        remark = self.remark(list(zip(cases, answers, strict=True))) if self.remark else ""
        return Feedback(self.name, True, tuple(held), n_right, printed=printed, remark=remark)

    def _wrong(self, check: Check, case: Case, answer: Answer) -> Wrong | None:
        if answer.failure:
            return self._failure(case, answer)
        if check.judge is not None:
            return check.judge(case, answer.value)
        expected = plain(self.call, self.answer, case)
        if answer.value is None and expected is not None:
            return Wrong("It returned nothing.", f"{self._shown(case)} is None", ", ".join(self.results),
                         "a function gives back what stands behind `return`")  # fmt: skip
        if isinstance(answer.value, Foreign) and answer.value.type == "generator":
            return Wrong("It has `yield`: it must `return`.", f"{self._shown(case)} is a generator",
                         ", ".join(self.results), "replace `yield` by `return`")  # fmt: skip
        if isinstance(answer.value, str) and isinstance(expected, float | int):
            return Wrong(f"Tried {check.claim}: the {self.results[0]} is no number.",
                         f"{self._shown(case)}: {describe(answer.value)}", describe(expected))  # fmt: skip
        difference = first_difference(answer.value, expected, self.results, self.tolerance)
        if difference is None:
            return None
        what, got, wanted = difference
        return Wrong(f"Tried {check.claim}: {what} is wrong.", f"{self._shown(case)}: {got}", wanted)

    def _failure(self, case: Case, answer: Answer) -> Wrong:
        call, where = self._shown(case), f"  in the line  {answer.line}" if answer.line else ""
        if answer.told:  # one of our own errors: it says itself what is wrong
            given, hint = answer.told
            return Wrong(f"{call}: {answer.message}.", f"{given}{where}", "", hint)
        problem, hint = FAILURES.get(answer.failure, ("It raised an error.", ""))
        what = answer.message.partition("\n")[0]
        given = f"{call}: {what}" if answer.failure in FAILURES else f"{call}: {answer.failure}: {what}"
        return Wrong(problem, f"{given}{where}", f"a result: {', '.join(self.results)}", hint)

    def _recognise(self, cases: Sequence[Case], answers: Sequence[Answer]) -> Mutant | None:
        """The mutant whose sign is there, or that does the same in every case: the same result, or the same error."""
        if any(a.failure in ENDED or (a.value is None and not a.failure) for a in answers):
            return None
        seen = list(zip(cases, answers, strict=True))
        return next((m for m in self.mutants if (m.sign(seen) if m.sign else self._does_as(m, seen))), None)

    def _does_as(self, mutant: Mutant, seen: Seen) -> bool:
        return all(
            _same(plain(self.call, mutant.function, case), f"raised {a.failure}" if a.failure else a.value,
                  self.tolerance)
            for case, a in seen
        )  # fmt: skip

    def _hint(self, n_seen: int) -> str:
        return self.hints[min(n_seen, len(self.hints) - 1)] if self.hints else ""

    def _shown(self, case: Case) -> str:
        if self.show:
            return self.show(case)
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


def plain(call: Function, function: Function, case: Case) -> Plain:
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
