"""Exercise of lesson 01: forward, backward and update as one graph, traced once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lab import tree
from lab.autograd import tensor
from lab.errors import ExerciseError
from lab.ops import mean, tanh
from lab.teach.exercise import Case, Check, Exercise, Mutant
from lab.teach.exercises.expressions import says
from lab.teach.plain import Plain
from lab.transforms import jit, value_and_grad
from lab.transforms.compilation import Jitted
from lab.words import counted

Loss = Callable[..., Any]
Step = Callable[..., Any]

LOSSES: dict[str, Loss] = {
    "mean((w * x + b - t)**2)": lambda w, x, t: mean((w[0] * x + w[1] - t) ** 2),
    "mean(tanh(x * w) * b - t)": lambda w, x, t: mean(tanh(x * w[0]) * w[1] - t),
}
"""By its text: a loss of two weights and a batch."""

X, T = np.array([0.5, -1.0, 2.0]), np.array([1.0, 0.0, 3.0])


def three_steps(one_step: Callable[[Loss], Step], text: str, *rates: float) -> Plain:
    """What three steps give: their losses, both weights after them, and how often Python ran the loss meanwhile.

    Raises:
        ExerciseError: there is no jitted step, or it gives something else than loss and weights.

    Example:
        >>> losses, w, b, n_runs = three_steps(_one_step, "mean((w * x + b - t)**2)", 0.1, 0.1, 0.1)
        >>> bool(losses[2] < losses[0]), n_runs
        (True, 1)
    """
    runs = []

    def loss(weights: Any, x: Any, t: Any) -> Any:
        runs.append(text)
        return LOSSES[text](weights, x, t)

    step, weights, losses = one_step(loss), [tensor(0.5), tensor(-0.25)], []
    if not callable(step):
        raise ExerciseError("one_step gave no function", given=f"{step!r}"[:100], hint="it ends with `return ...`")
    for rate in rates:
        value, weights = _pair(step(weights, rate, X, T))
        losses.append(value)
    if not isinstance(step, Jitted):
        everything = len(runs) == len(rates)
        what = "Python runs all of it in each step" if everything else "Python still runs a part of each step"
        given = f"a plain {type(step).__name__}; Python ran the loss {counted(len(runs), 'time')} in {len(rates)} steps"
        raise ExerciseError(what, given=given, hint="the step itself has to be jitted: return lab.jit(step)")
    return np.array(losses), *(float(w) for w in weights), len(runs)


def _pair(result: Any) -> tuple[float, list[Any]]:
    """The loss and the weights that a step gave."""
    if isinstance(result, tuple | list) and len(result) == 2:
        value, weights = (tree.flatten(part)[0] for part in result)
        if len(value) == 1 and len(weights) == 2 and all(np.shape(w) == () for w in (*value, *weights)):
            return float(value[0]), weights
    raise ExerciseError("a step gives the loss and the new weights", given=f"{result!r}"[:100],
                        hint="return value, [new weight for each weight]")  # fmt: skip


def _step(
    loss: Loss, new: Callable[[Any, Any, Any], Any] = lambda w, rate, s: w - rate * s, first_only: bool = False
) -> Step:
    """The step, not jitted, with a switch for ways to get it wrong."""

    def step(weights: Any, rate: Any, *batch: Any) -> Any:
        value, slopes = value_and_grad(loss)(weights, *batch)
        moved = [new(w, rate, s) for w, s in zip(weights, slopes, strict=True)]
        return value, [moved[0], weights[1]] if first_only else moved

    return step


def _one_step(loss: Loss) -> Step:
    return jit(_step(loss))


def _with(**switches: Any) -> Callable[[Loss], Step]:
    return lambda loss: jit(_step(loss, **switches))


def _slopes_only(loss: Loss) -> Step:
    slopes_of = jit(value_and_grad(loss))

    def step(weights: Any, rate: Any, *batch: Any) -> Any:
        value, slopes = slopes_of(weights, *batch)
        return value, [w - rate * s for w, s in zip(weights, slopes, strict=True)]

    return step


def _loss_after(loss: Loss) -> Step:
    def step(weights: Any, rate: Any, *batch: Any) -> Any:
        moved = _step(loss)(weights, rate, *batch)[1]
        return loss(moved, *batch), moved

    return jit(step)


def _runs_again(loss: Loss) -> Step:
    return jit(lambda weights, rate, *batch: (loss(weights, *batch), _step(loss)(weights, rate, *batch)[1]))


def _weights_only(loss: Loss) -> Step:
    return jit(lambda *args: _step(loss)(*args)[1])


def _case(text: str, *rates: float) -> Case:
    return text, *rates


_LINE, _CURVE = LOSSES

ONE_STEP = Exercise(
    name="one_step",
    task="Return a jitted step: (weights, rate, *batch) -> the loss and the new weights.",
    stub='''\
def one_step(loss):
    slopes_of = lab.jit(lab.value_and_grad(loss), executor="compiled")

    def step(weights, rate, *batch):
        value, slopes = slopes_of(weights, *batch)
        return value, [w - rate * s for w, s in zip(weights, slopes)]

    return step
''',
    arguments=("loss", "rate 1", "rate 2", "rate 3"),
    results=("list of losses in three steps", "first weight after three steps", "second weight after three steps",
             "number of times that Python ran the loss in three steps"),
    answer=_one_step,
    call=three_steps,
    checks=(
        Check("three steps of a line", [_case(_LINE, 0.1, 0.1, 0.1)]),
        Check("another loss", [_case(_CURVE, 0.1, 0.1, 0.1)]),
        Check("a rate that changes needs no new graph", [_case(_LINE, 0.2, 0.1, 0.05)]),
    ),
    mutants=(
        Mutant("only the slopes are a graph: Python makes the update", _slopes_only,
               "move lab.jit one level out: from the slopes to the step", says("Python still runs a part")),
        Mutant("no graph is kept", _step, "return lab.jit(step): made once, before the first step",
               says("Python runs all of it")),
        Mutant("it walks uphill", _with(new=lambda w, rate, s: w + rate * s),
               "the slope shows where the loss grows: against it"),
        Mutant("the rate is left out", _with(new=lambda w, rate, s: w - s), "rate * slope, as in lesson 00"),
        Mutant("the weights stay as they are", _with(new=lambda w, rate, s: w),
               "a jitted step cannot write into its arguments: it returns the new weights"),
        Mutant("the slopes come back in place of the weights", _with(new=lambda w, rate, s: s),
               "what comes back goes in at the next step: w - rate * s"),
        Mutant("only the first weight is moved", _with(first_only=True), "zip(weights, slopes) has them all"),
        Mutant("the loss is that of the new weights", _loss_after,
               "lab.value_and_grad gives the loss with its slopes: of the weights that came in"),
        Mutant("the loss is written into the graph twice", _runs_again,
               "lab.value_and_grad gives both: the loss and its slopes"),
        Mutant("the loss is left out", _weights_only, "return value, [...]", says("the loss and the new weights")),
    ),
    hints=(
        "what does Python still do in each step of the stub?",
        "lab.value_and_grad may stand inside of a function that is jitted",
        'slopes_of = lab.value_and_grad(loss), and in the end return lab.jit(step, executor="compiled")',
    ),
    show=lambda case: f"For the loss {case[0]} and rates {', '.join(f'{rate:g}' for rate in case[1:])}",
)  # fmt: skip
