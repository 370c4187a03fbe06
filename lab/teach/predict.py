"""A prediction: said before seeing, then laid beside what happened.

The order is the lesson: `reveal` is locked until `commit`, and what was revealed can no longer be predicted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lab.errors import ArgumentError, PredictionError

Value = float | str
"""What is predicted: a number, or one of the choices."""

UNITS: Mapping[str, tuple[str, ...]] = {
    "B": ("bytes", "byte", "Bytes", "Byte"), "kB": (), "KiB": (), "MB": (), "MiB": (), "bits": ("bit", "b"),
    "%": ("percent", "per cent"), "s": ("seconds", "second", "sec"), "ms": ("milliseconds", "millisecond"),
    "steps": ("step",),
}  # fmt: skip
"""Units that a learner may write behind a number, each with its names, the first of which stands in sentences."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A prediction beside the answer.

    Attributes:
        guess, answer: what was said, what came.
        gap: guess minus answer; nan for choices.
        right: within the tolerance, or the same choice.
        unit: unit of all three.
    """

    guess: Value
    answer: Value
    gap: float
    right: bool
    unit: str = ""

    @property
    def text(self) -> str:
        """One sentence.

        Example:
            >>> Outcome(3.0, 4.0, -1.0, False).text
            'You said 3, it is 4: 1 too low.'
        """
        said = f"You said {shown(self.guess, self.unit)}"
        if self.right:
            same = shown(self.guess, self.unit) == shown(self.answer, self.unit)
            return f"{said}, and so it is." if same else f"{said}, it is {shown(self.answer, self.unit)}: close enough."
        if math.isnan(self.gap):
            return f"{said}, it is {shown(self.answer, self.unit)}."
        return (
            f"{said}, it is {shown(self.answer, self.unit)}: "
            f"{shown(abs(self.gap), self.unit)} too {'low' if self.gap < 0 else 'high'}."
        )


def shown(value: Value, unit: str = "", digits: int = 4) -> str:
    """A value as a person writes it: whole numbers in full, others to four digits, with its unit.

    Example:
        >>> shown(2.0), shown(0.123456, "s"), shown(12345.0, "B"), shown(-0.5)
        ('2', '0.1235 s', '12,345 B', '−0.5')
    """
    if isinstance(value, str):
        return value
    form = ",.0f" if float(value).is_integer() and abs(value) < 10**15 else f",.{digits}g"
    return f"{value:{form}} {unit}".rstrip().replace("-", "\N{MINUS SIGN}")


def unit_words(unit: str) -> str:
    """A unit in a sentence.

    Example:
        >>> unit_words("B"), unit_words("%"), unit_words("rows")
        ('bytes', 'percent', 'rows')
    """
    return next(iter(UNITS.get(unit, ())), unit)


class Prediction:
    """One question, to be answered before the code that answers it has run.

    Args:
        question: what is asked, without the question's number.
        answer: called when the answer is revealed; gives a number, or one of `choices`. It may fail as long as the code
            that it reads has not run: then the prediction stays committed, and nothing is revealed.
        unit: unit of the number.
        tolerance: a number is right if it is as near as this to the answer.
        choices: the possible answers, if it is not a number.

    Raises:
        ArgumentError: fewer than two choices, or a negative tolerance.

    Example:
        >>> slope = Prediction("the slope of x * x at 3", answer=lambda: 6.0)
        >>> slope.commit(5)
        >>> slope.reveal().text
        'You said 5, it is 6: 1 too low.'
    """

    def __init__(
        self,
        question: str,
        *,
        answer: Callable[[], object],
        unit: str = "",
        tolerance: float = 1e-6,
        choices: Sequence[str] = (),
    ) -> None:
        if len(choices) == 1:
            hint = "without choices it is a number"
            raise ArgumentError("a prediction needs at least two choices", given=repr(tuple(choices)), hint=hint)
        if not tolerance >= 0:
            raise ArgumentError("the tolerance of a prediction is a distance", given=repr(tolerance), hint="0 or more")
        self.question, self.unit, self.tolerance, self.choices = question, unit, tolerance, tuple(choices)
        self._answer = answer
        self._guess: Value | None = None
        self._outcome: Outcome | None = None

    @property
    def guess(self) -> Value | None:
        """What was committed; None before."""
        return self._guess

    @property
    def outcome(self) -> Outcome | None:
        """What was revealed; None before."""
        return self._outcome

    def commit(self, value: object) -> None:
        """Say what will come. May be changed until the answer is revealed.

        Raises:
            PredictionError: the answer has been revealed.
            ArgumentError: not a finite number, or not one of the choices.
        """
        if self._outcome is not None:
            raise PredictionError(
                "this prediction has been revealed, so it can no longer be changed",
                given=self._outcome.text,
                hint="what would you predict for other numbers? Ask yourself before you run them",
            )
        self._guess = self._checked(value)

    def reveal(self) -> Outcome:
        """Lay the prediction beside the answer.

        Raises:
            PredictionError: nothing was committed yet, or the code that gives the answer has not run.
        """
        if self._outcome is not None:
            return self._outcome
        if self._guess is None:
            raise PredictionError(
                "not yet: first say what you expect", given=self.question, hint="commit a prediction, then look again"
            )
        try:
            answer = self._checked(self._answer())
        except Exception as why:
            raise PredictionError(
                "not yet: the code that answers this has not run",
                given=f"{self.question} ({type(why).__name__}: {why})",
                hint="run the cells below, then look again",
            ) from why
        if isinstance(answer, str) or isinstance(self._guess, str):
            self._outcome = Outcome(self._guess, answer, math.nan, self._guess == answer, self.unit)
        else:
            gap = self._guess - answer
            self._outcome = Outcome(self._guess, answer, gap, abs(gap) <= self.tolerance, self.unit)
        return self._outcome

    def _checked(self, value: object) -> Value:
        if self.choices:
            if value not in self.choices:
                raise ArgumentError("that is not one of the choices", given=repr(value), hint=", ".join(self.choices))
            return str(value)
        number = number_of(self._without_unit(value))
        if not math.isfinite(number):
            raise ArgumentError("a prediction is a number here", given=repr(value), hint="for example 2, -0.5 or 1/3")
        return number

    def _without_unit(self, value: object) -> object:
        """The number alone of a text that ends in this prediction's unit; another unit is refused."""
        found = re.fullmatch(r"(.*\d)\s*([A-Za-z%][A-Za-z% ]*)", value.strip()) if isinstance(value, str) else None
        if found is None or not math.isfinite(number_of(found[1])):
            return value
        known = (self.unit, *UNITS.get(self.unit, ()))
        if found[2] in known:
            return found[1]
        if any(found[2] in (unit, *names) for unit, names in UNITS.items()):
            what = f"is a number in {unit_words(self.unit)}" if self.unit else "is a plain number, without a unit"
            raise ArgumentError(
                f"this prediction {what}", given=repr(value),
                hint=f"for example {found[1]}{f' {self.unit}' if self.unit else ''}, if that is what you expect",
            )  # fmt: skip
        return value


def number_of(value: object) -> float:
    """The number that somebody meant: also a fraction, and with a decimal comma; nan for what is none.

    Example:
        >>> number_of("1/4"), number_of("0,5"), number_of(2)
        (0.25, 0.5, 2.0)
    """
    try:
        if not isinstance(value, str):
            return float(value)  # type: ignore[arg-type]
        over, *under = (_decimal(part) for part in value.split("/"))
        if not all(map(math.isfinite, [over, *under])) or len(under) > 1:
            return math.nan
        return over / under[0] if under else over
    except (TypeError, ValueError, ZeroDivisionError):
        return math.nan


def _decimal(text: str) -> float:
    return float(text.replace("\u2212", "-").replace(",", "." if text.count(",") == 1 and "." not in text else ","))
