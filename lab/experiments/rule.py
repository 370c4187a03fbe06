"""A rule of one's own held against differences, entry by entry: `check_grads`, told so that it can be seen as a map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lab.events import Event, Recording, bus, record
from lab.events.catalogue import FaultFound, JacobianCompared, RuleCheckBegun
from lab.transforms.checking import MODES, check_grads
from lab.transforms.report import Check, GradientReport

KINDS: tuple[type[Event], ...] = (RuleCheckBegun, JacobianCompared, FaultFound)
MOST = 32
"""Rows and columns that are told of a Jacobian."""


class RuleCheck(NamedTuple):
    """What `measure_rule` found.

    Attributes:
        report: of check_grads; it prints well.
        recording: of the experiment, for RuleView.
    """

    report: GradientReport
    recording: Recording

    def __repr__(self) -> str:
        return repr(self.report)


def measure_rule(
    f: Callable[..., Any], args: Sequence[Any], *, order: int = 1, modes: Sequence[str] = MODES
) -> RuleCheck:
    """Hold the derivatives of a function against differences and tell every entry; nothing is raised for a wrong one.

    RuleView draws where they differ: a sum that is forgotten, a product that is transposed or has a wrong sign has its
    own pattern. A rule whose result does not have the shape of its argument is refused, as it is in training.
    The arguments are those of `check_grads`, which does the work; what is right is told first, the operation at fault,
    checked alone, last.

    Raises:
        ArgumentError: modes or an order that do not exist, nothing to differentiate.

    Example:
        >>> import lab
        >>> wrong = lab.custom_vjp(lab.sin).defvjp(lambda x: (lab.sin(x), x), lambda x, ct: (ct * lab.sin(x),))
        >>> found = lab.measure_rule(wrong, (lab.tensor([0.5, 2.0]),), modes=("rev",))
        >>> found.report.ok, [type(e).__name__ for e in found.recording]
        (False, ['RuleCheckBegun', 'JacobianCompared', 'JacobianCompared', 'FaultFound'])
    """
    report = check_grads(f, args, order, modes, raises=False)
    with record(kinds=KINDS) as rec:
        rec.meta["title"] = report.name
        bus.emit(RuleCheckBegun(report.name, report.tolerance))
        for check in sorted(report.checks, key=lambda check: not check.ok):
            _tell(report.name, check)
        if report.fault is not None:
            _tell(report.fault.op, report.fault.check)
            bus.emit(FaultFound(report.fault.op, report.fault.argument, report.fault.where))
    return RuleCheck(report, rec)


def _tell(what: str, check: Check) -> None:
    """Tell a comparison: as much of it as is told, with the worst entry within."""
    rows, columns = map(_window, np.unravel_index(_worst(check), check.errors.shape), check.errors.shape)

    def part(a: Any) -> tuple[float, ...]:
        return tuple(np.asarray(a[rows, columns], np.float64).ravel().tolist())

    bus.emit(JacobianCompared(
        what, check.words, check.ok, check.arguments[columns], check.results[rows],
        part(check.expected), part(check.actual), part(check.errors),
    ))  # fmt: skip


def _worst(check: Check) -> int:
    return int(np.argmax(np.nan_to_num(check.errors, nan=np.inf, posinf=np.inf))) if check.errors.size else 0


def _window(place: Any, n: int) -> slice:
    """At most MOST of n places, with this one in the middle if there are more.

    Example:
        >>> _window(3, 10), _window(90, 100), _window(50, 100)
        (slice(0, 10, None), slice(68, 100, None), slice(34, 66, None))
    """
    start = int(min(max(0, place - MOST // 2), max(0, n - MOST)))
    return slice(start, min(n, start + MOST))
