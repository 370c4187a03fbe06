"""The error of a difference against its step: a V between a curve that is seen and digits that cancel.

The automatic derivative has no step: its error is a floor, as is that of the complex step once that is short enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lab.errors import ArgumentError, GradientError, LabError
from lab.events import Event, Recording, bus, record
from lab.events.catalogue import BestStepFound, ErrorMeasured, ErrorsBegun, MethodRefused
from lab.experiments.slopes import side
from lab.experiments.subject import one_number, place, subject
from lab.experiments.truth import truth_of
from lab.transforms.gradients import grad
from lab.transforms.numeric import METHODS, ORDERS, best_step, numeric_gradient

KINDS: tuple[type[Event], ...] = (ErrorsBegun, ErrorMeasured, BestStepFound, MethodRefused)
STEPS = tuple(float(h) for h in np.logspace(-18, 0, 73))
"""Four for each power of ten, from what vanishes in 1.0 up to 1."""


class StepErrors(NamedTuple):
    """What `measure_errors` found.

    Attributes:
        truth: the derivative.
        source: how it is known.
        steps: the steps that were tried.
        errors: for each method its error at each step.
        automatic: the error of the automatic derivative; nan where it cannot run the function.
        best: for each method its best step.
        refused: methods that cannot run the function, with the reason.
        recording: of the experiment, for ErrorView.
    """

    truth: float
    source: str
    steps: tuple[float, ...]
    errors: Mapping[str, tuple[float, ...]]
    automatic: float
    best: Mapping[str, float]
    refused: Mapping[str, str]
    recording: Recording

    def __repr__(self) -> str:
        found = ((m, self.errors[m][self.steps.index(h)], h) for m, h in self.best.items())
        best = ", ".join(f"{method} {error:.1e} at h = {h:.1e}" for method, error, h in found)
        return f"<errors against {self.truth:.6g} ({self.source}): {best}; automatic {self.automatic:.1e}>"


def measure_errors(f: Callable[[Any], Any], x: Any, *, truth: Any = None, steps: Sequence[float] = STEPS) -> StepErrors:
    """Differentiate a function of a number by every method with many steps, and hold each against the truth.

    ErrorView draws it: error against step, on logarithmic axes.

    Args:
        f: takes a number and returns one; in ops of the lab or NumPy functions.
        x: where; a number, f is evaluated in its dtype, for a whole number in float64.
        truth: the derivative, if you know it: a number, a Decimal, or a string with all digits. Else it is worked out
            by sympy, or where that cannot be, by extrapolated differences in longdouble.
        steps: the steps to try, ascending.

    Raises:
        ArgumentError: x is no single number, a step is none, or f gives another value each time.
        GradientError: there is a kink or no finite value, or the derivative is not known and cannot be found out.

    Example:
        >>> import lab
        >>> found = lab.measure_errors(lab.sin, 1.0, steps=[1e-12, 1e-8, 1e-4])
        >>> found.source, found.best["forward"], found.automatic < 1e-15
        ('sympy, 50 digits', 1e-08, True)
    """
    number = place(x, "measure_errors").reshape(())[()]
    _steady(subject(f, 1, "measure_errors"), number)
    steps = _ascending(steps)
    if truth is None:
        _smooth(f, float(number))
    known = truth_of(f, number, truth)
    errors, best, refused = {}, {}, {}
    with record(kinds=KINDS) as rec:
        rec.meta["title"] = name = getattr(f, "__name__", type(f).__name__)
        eps = float(np.finfo(number.dtype).eps)
        bus.emit(ErrorsBegun(name, float(number), str(number.dtype), eps, float(known.value), known.source))

        def measured(method: str, h: float, estimate: Any) -> float:
            error = known.error(float(estimate))
            bus.emit(ErrorMeasured(method, h, float(estimate), error))
            return error

        for method in METHODS:
            try:
                with np.errstate(all="ignore"):  # of a step that vanishes in x: nan says it
                    found = [measured(method, h, numeric_gradient(f, number, method, h)) for h in steps]
            except LabError as why:
                refused[method] = _refused(method, why)
                continue
            errors[method], k = tuple(found), _best(steps, found)
            if k is not None:
                best[method] = steps[k]
                bus.emit(BestStepFound(method, steps[k], found[k], *_theory(method, number)))
        automatic = float("nan")
        try:
            automatic = measured("automatic", float("nan"), grad(f)(number).numpy())
        except LabError as why:
            refused["automatic"] = _refused("automatic", why)
    return StepErrors(float(known.value), known.source, steps, errors, automatic, best, refused, rec)


def _ascending(steps: Any) -> tuple[float, ...]:
    """The steps, if they are some."""
    try:
        taken = tuple(map(float, steps))
    except (TypeError, ValueError):
        taken = ()
    if not taken or not all(0 < h < np.inf for h in taken) or sorted(taken) != list(taken):
        raise ArgumentError(
            "steps are positive numbers, ascending", given=repr(steps)[:60], hint="steps=[1e-8, 1e-4]"
        )  # fmt: skip
    return taken


def _steady(f: Callable[[Any], Any], at: Any) -> None:
    """Refuse what has no derivative to ask for: another value each time, or none."""
    first, again = (one_number(f, at, "measure_errors") for _ in range(2))
    if not np.isfinite(first):
        raise GradientError(
            "measure_errors needs a place where the function is finite", given=f"at {at!s} it is {first}",
            hint="another x",
        )  # fmt: skip
    if first != again:
        raise ArgumentError(
            "measure_errors needs a function that gives the same for the same", given=f"{first!r}, then {again!r}",
            hint="draw random numbers before, and close over them",
        )  # fmt: skip


def _smooth(f: Callable[[Any], Any], at: float) -> None:
    """Refuse a kink: algebra gives it a derivative (of |x| at 0 it is 0), and there is none."""

    def along(step: float) -> float:
        return one_number(f, np.float64(at + step), "measure_errors")

    left, right = (side(along, along(0.0), sign, reach=max(1.0, abs(at))) for sign in (-1.0, 1.0))
    scale = max([1.0, *(abs(s) for s in (left, right) if np.isfinite(s))])
    if abs(left - right) > 1e-4 * scale:  # false for nan: what does not settle is no proof
        raise GradientError(
            "measure_errors needs a derivative, and at a kink there is none",
            given=f"slopes {left:.6g} and {right:.6g} on the two sides of {at:.6g}",
            hint="another x; lab.measure_slopes(f, x) looks at the kink",
        )


def _best(steps: Sequence[float], errors: Sequence[float]) -> int | None:
    """The step with the smallest error: the largest of those within a factor of 2, since one may be small by luck.

    Example:
        >>> _best([1.0, 2.0, 4.0, 8.0, 16.0], [8.0, 0.0, 9.0, 2.0, 1.0]), _best([1.0], [float("nan")])
        (4, None)
    """
    h, found = np.asarray(steps), np.asarray(errors)
    near = np.abs(np.log2(h[:, None] / h)) <= 1.0 + 1e-9
    worst = np.where(near, found, 0.0).max(axis=1)  # nan where one of them is
    sound = np.flatnonzero(np.isfinite(worst))
    return int(max(sound, key=lambda k: (-worst[k], k))) if len(sound) else None  # of equals the longest step


def _refused(method: str, why: LabError) -> str:
    problem, given = [*str(why).splitlines(), ""][:2]
    reason = f"{problem} ({given.partition(':')[2].strip()})"
    bus.emit(MethodRefused(method, reason))
    return reason


def _theory(method: str, x: Any) -> tuple[float, str]:
    if method not in ORDERS:
        return float("nan"), ""
    return best_step(method, x), f"{'|x| ' if abs(x) > 1 else ''}eps^(1/{round(1 / ORDERS[method])})"
