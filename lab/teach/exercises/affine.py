"""Exercise of lesson 01: the backward of one layer, derived by hand, as in the first generation of frameworks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lab.teach.exercise import Case, Check, Exercise, Mutant

Backward = Callable[[Any, Any, Any], Any]


def _case(n: int, n_in: int, n_out: int) -> Case:
    """A batch of n examples for a layer of this size: ct, x and w."""
    rng = np.random.default_rng([n, n_in, n_out])
    return tuple(rng.normal(size=shape).round(2) for shape in ((n, n_out), (n, n_in), (n_in, n_out)))


def _right(ct: Any, x: Any, w: Any) -> Any:
    return ct @ w.T, x.T @ ct, ct.sum(axis=0)


def _bias(gradient: Callable[[Any], Any]) -> Backward:
    """All right but for the bias."""
    return lambda ct, x, w: (ct @ w.T, x.T @ ct, gradient(ct))


def _averages(ct: Any, x: Any, w: Any) -> Any:
    return ct @ w.T, x.T @ ct / len(x), ct.mean(axis=0)


def _leaves_out_ct(ct: Any, x: Any, w: Any) -> Any:
    return _right(np.ones_like(ct), x, w)


LINEAR_BACKWARD = Exercise(
    name="linear_backward",
    task="For x @ w + b with the gradient ct of its result, return the gradients of x, w and b.",
    stub='''\
def linear_backward(ct, x, w):
    return ct @ w.T, x.T @ ct, ct
''',
    arguments=("ct", "x", "w"),
    results=("gradient of x", "gradient of w", "gradient of b"),
    answer=_right,
    checks=(
        Check("one example", [_case(1, 2, 3)]),
        Check("a batch", [_case(4, 3, 2), _case(5, 2, 4)]),
        Check("as many inputs as outputs as examples, where shapes tell nothing", [_case(3, 3, 3)]),
    ),
    mutants=(
        Mutant("the bias has a gradient for each example", _bias(lambda ct: ct),
               "one b was added to every row of the batch: what comes back from the rows adds up"),
        Mutant("the bias gets the mean over the batch", _bias(lambda ct: ct.mean(axis=0)),
               "where paths meet, parts add up. The mean is taken once, in the loss, and ct has it in it already"),
        Mutant("the mean over the batch is taken again", _averages,
               "the loss has divided by the size of the batch: it is in ct. A layer only adds up"),
        Mutant("the bias is summed over the outputs", _bias(lambda ct: ct.sum(axis=1)),
               "b has one number for each output: sum over the examples, which are axis 0"),
        Mutant("all biases get one number", _bias(lambda ct: ct.sum()),
               "b has one number for each output: sum over axis 0 alone"),
        Mutant("the gradient of b is a row of a matrix", _bias(lambda ct: ct.sum(axis=0, keepdims=True)),
               "b has one axis, and so has its gradient: no keepdims"),
        Mutant("the weight is not transposed", lambda ct, x, w: (ct @ w, x.T @ ct, ct.sum(axis=0)),
               "(n, out) must become (n, in), and w is (in, out)"),
        Mutant("the gradient of w lies on its side", lambda ct, x, w: (ct @ w.T, ct.T @ x, ct.sum(axis=0)),
               "a gradient has the shape of what it belongs to: w is (in, out)"),
        Mutant("the incoming gradient ct is left out", _leaves_out_ct,
               "what comes in has to be passed on: ct stands where the result stood"),
        Mutant("the gradients of x and w have changed places", lambda ct, x, w: (x.T @ ct, ct @ w.T, ct.sum(axis=0)),
               "the order is x, w, b"),
    ),
    hints=(
        "write down the shapes: ct is (n, out), x is (n, in), w is (in, out), b is (out,)",
        "b is used once for each of n examples, so it gets the sum of n parts",
        "ct.sum(axis=0)",
    ),
)  # fmt: skip
