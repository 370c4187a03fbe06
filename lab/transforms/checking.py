"""check_grads: is the derivative of a function right, where is it wrong, and which rule made it so.

Every entry is compared with differences in float64, at every order and in both modes. Where that fails, each operation
of the recorded graph is checked alone, by the same means, on the operands that it had; the first to fail is at fault.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab.autograd.interpreter import Tracer
from lab.autograd.observe import array_of, user_frame
from lab.autograd.reverse import Reverse
from lab.autograd.tape import Node
from lab.autograd.tensor import Tensor, wrap
from lab.checks import whole
from lab.errors import ArgumentError, GradientError
from lab.events.cells import cell_of
from lab.ops.primitive import Op
from lab.ops.random import repeating
from lab.transforms.arguments import function
from lab.transforms.gradients import run
from lab.transforms.problem import Problem, differences
from lab.transforms.report import Array, Check, Entry, Fault, GradientReport

MODES = ("fwd", "rev")
JUMP = 30.0
"""A slope that grows so much by the shorter step is none."""


def check_grads(
    f: Callable[..., Any], args: Sequence[Any], order: int = 2, modes: Sequence[str] = MODES, *, raises: bool = True
) -> GradientReport:
    """Compare the derivatives of f with differences, entry by entry.

    Random keys that f draws are those of its first call each time, or there would be nothing to compare.

    Args:
        f: takes floats, or containers with them, returns tensors or containers; what is no float stays as it is.
        args: a tuple with its arguments. Differences are taken in float64 whatever their dtype; an entry may be off by
            1e-6 of itself (or of a tenth of the largest, if that is more), in float32 by 1e-3, in float16 by 3e-2.
        order: 2 also checks the derivative of the derivative, along random directions, in all pairs of modes.
        modes: "fwd" (jvp), "rev" (vjp) or both.
        raises: raise if something is wrong; else look at `report.ok`.

    Returns:
        A report that prints well: worst entries, kinks, and the rule at fault with its source line.

    Raises:
        GradientError: a derivative is wrong; its `report` tells more.
        ArgumentError: modes or an order that do not exist, nothing to differentiate.

    Example:
        >>> import lab
        >>> lab.check_grads(lambda x: lab.sin(x) * x, (lab.tensor([0.5, 2.0]),)).ok
        True
        >>> wrong = lab.custom_vjp(lab.sin).defvjp(lambda x: (lab.sin(x), x), lambda x, ct: (ct * lab.sin(x),))
        >>> report = lab.check_grads(lambda x: wrong(2.0 * x), (0.5,), order=1, modes=("rev",), raises=False)
        >>> report.fault.op, round(report.worst.expected, 4), round(report.worst.actual, 4)
        ('custom sin', 1.0806, 1.6829)
    """
    function(f, "check_grads")
    if set(modes) - set(MODES) or not {*modes}:
        raise ArgumentError("check_grads knows two modes", given=repr(modes)[:60], hint='modes=("fwd", "rev")')
    order = whole("order", order, least=1, hint="order=1 or order=2")
    if not isinstance(args, tuple | list):
        raise ArgumentError(
            "check_grads needs a tuple of arguments", given=type(args).__name__, hint="lab.check_grads(f, (x, y))"
        )
    problem = Problem.of(repeating(f), args)
    checks = _checks(problem, order, modes)
    fault = None if all(c.ok for c in checks) else _fault(problem, order, modes)
    report = GradientReport(getattr(f, "__name__", type(f).__name__), tuple(checks), fault, problem.tolerance)
    if raises and not report.ok:
        raise _error(report)
    return report


# --- one comparison -----------------------------------------------------------------------------------------------


def _checks(problem: Problem, order: int, modes: Sequence[str], of: str = "", depth: int = 1) -> list[Check]:
    """The comparisons of all orders and modes; a higher order of what is wrong already says nothing new."""
    expected, slack, sides = differences(problem)
    checks = [_compared(problem, mode, of, depth, expected, slack, sides) for mode in modes]
    if order > 1 and all(c.ok for c in checks):
        for mode in modes:
            derived = problem.derived(mode, np.random.default_rng(depth))
            checks += _checks(derived, order - 1, modes, f" of {mode}{of}", depth + 1)
    return checks


def _compared(
    problem: Problem, mode: str, of: str, depth: int, expected: Array, slack: Array, sides: Callable[..., Any]
) -> Check:
    actual = problem.jacobian(mode)
    rtol = problem.tolerance
    finite = np.where(np.isfinite(expected), np.abs(expected), 0.0)
    allowed = rtol * np.maximum(finite, 0.1 * np.max(finite, initial=0.0)) + slack
    with np.errstate(all="ignore"):
        errors = np.where(actual == expected, 0.0, np.abs(actual - expected) / allowed)
    edge = ~np.isfinite(expected)  # there a rule is infinite: in its row and its column that is multiplied by 0
    errors[(edge.any(axis=1, keepdims=True) | edge.any(axis=0, keepdims=True)) & np.isnan(actual)] = 0.0
    expected, notes = expected.copy(), []
    for j, i in np.argwhere(~(errors <= 1.0) | np.isnan(slack)).tolist():
        left, right, noise, before = sides(j, i)
        low, high = min(left, right), max(left, right)
        room = 1e-3 * max(abs(low), abs(high)) + noise
        entry = Entry(problem.names[i], problem.out_names[j], float(expected[j, i]), float(actual[j, i]), left, right)
        if not (np.isfinite(low) and np.isfinite(high)):
            notes.append(entry._replace(note="at an edge of its domain"))
            errors[j, i] = 0.0
        elif max(-low, high) > JUMP * (before + noise):
            notes.append(entry._replace(note="at a kink" if depth > 1 else "at a jump"))
            errors[j, i] = 0.0
        elif high - low > 2.0 * room:
            notes.append(entry._replace(note="at a kink"))
            allowed_here = depth > 1 or low - room <= actual[j, i] <= high + room  # any slope between the two will do
            errors[j, i] = 0.0 if allowed_here else np.inf
        else:
            expected[j, i] = (low + high) / 2.0
            off = abs(actual[j, i] - expected[j, i])
            errors[j, i] = off / room if off else 0.0
    return Check(f"{mode}{of}", depth, tuple(problem.names), tuple(problem.out_names), expected, actual, errors,
                 tuple(notes))  # fmt: skip


# --- whose fault --------------------------------------------------------------------------------------------------


class _Recorder(Reverse):
    """A tape that also remembers the operands of every operation, and the line that asked for it."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[tuple[Op, tuple[Any, ...], dict[str, Any], str]] = []

    def noted(self, node: Node, operands: Sequence[Any], out: Any) -> None:
        frame = user_frame()
        file = frame.f_code.co_filename if frame else ""
        line = f"{cell_of(file) or file}, line {frame.f_lineno}" if frame else ""
        self.log.append((node.op, tuple(operands), node.params, line))


def _fault(problem: Problem, order: int, modes: Sequence[str]) -> Fault | None:
    """The first operation that is wrong by itself, None if none is: then what is wrong is between them."""
    recorder = _Recorder()
    run(recorder, problem.flat, [recorder.leaf(wrap(x)) for x in problem.xs])
    for op, operands, params, line in recorder.log:
        arrays = [array_of(a) if isinstance(a, Tensor) else a for a in operands]
        if any(isinstance(a, Tracer) for a in operands) or op.collective:
            continue
        alone = Problem.of(_named(op, params), arrays)
        for check in _checks(alone, order, modes):
            if not check.ok:
                return Fault(op.name, check.worst.argument, line, check)
    return None


def _named(op: Op, params: dict[str, Any]) -> Callable[..., Any]:
    """An op as a function of its operands, whose names it keeps."""

    def alone(*operands: Any) -> Any:
        return op(*operands, **params)

    if not op.variadic:
        kind = inspect.Parameter.POSITIONAL_ONLY
        names = [n if n.isidentifier() else f"argument_{i}" for i, n in enumerate(op.arguments)]
        alone.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])  # type: ignore[attr-defined]
    return alone


def _error(report: GradientReport) -> GradientError:
    check, worst, fault = report.wrong, report.worst, report.fault
    hint = "each operation alone is right: a value is cut off between them, as by stop_gradient, detach() or .numpy()"
    if fault is not None:
        bad = fault.check.worst
        where = f", at {fault.where}" if fault.where else ""
        rule = f"the rule of {fault.op} is at fault, for {fault.argument}{where}"
        hint = f"{rule}: {bad.actual:.6g} for {bad.expected:.6g}"
    error = GradientError(
        f"check_grads found a wrong derivative of {report.name}, in {check.words}",
        given=f"{worst.words}: {worst.actual:.6g}, differences say {worst.expected:.6g}",
        hint=hint,
    )
    error.report = report  # type: ignore[attr-defined]
    return error
