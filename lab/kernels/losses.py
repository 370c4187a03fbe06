"""Softmax cross-entropy in two passes over a row of logits, and its gradient in three; a row stays in the cache.

Forward keeps nothing: backward computes exp again, which costs less than writing and reading a second array of the
logits' size. Taking the largest logit off first, and not in the end as the usual logsumexp does, keeps all digits: the
float32 rounding error does not grow with the logits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.errors import ShapeError
from lab.kernels.ahead import ask_for_row
from lab.kernels.arguments import Labels, Matrix, OutMatrix, OutVector, Vector
from lab.kernels.kernel import SUMMING, helper, kernel
from lab.kernels.scalars import exp_below_zero, log, order, ordered

BLOCK = 4096
"""Entries that are summed in the array's own dtype before the sum goes on in float64."""


def forward_twin(logits: NDArray[Any], labels: NDArray[Any], losses: NDArray[Any]) -> int:
    """`softmax_cross_entropy` in NumPy."""
    n, c = logits.shape
    wrong = np.flatnonzero((labels < 0) | (labels >= c))
    if wrong.size:
        return int(wrong[0])
    if not n:
        return -1
    with np.errstate(all="ignore"):
        shifted = logits - logits.max(axis=1)[:, None]
        sums = np.exp(shifted).sum(axis=1, dtype=np.float64).astype(logits.dtype)
        losses[:] = np.log(sums) - shifted[np.arange(n), labels]
    return -1


def backward_twin(logits: NDArray[Any], labels: NDArray[Any], ct: NDArray[Any], out: NDArray[Any]) -> None:
    """`softmax_cross_entropy_gradient` in NumPy."""
    if not len(labels):
        return
    with np.errstate(all="ignore"):
        np.exp(logits - logits.max(axis=1)[:, None], out=out)
        out /= out.sum(axis=1, dtype=np.float64).astype(out.dtype)[:, None]
        out[np.arange(len(labels)), labels] -= 1
        out *= ct[:, None]


def _forward_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    logits = (rng.standard_normal((size, 10)) * 5).astype(dtype)
    return logits, rng.integers(0, 10, size), np.zeros(size, dtype)


def _backward_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    logits, labels, _ = _forward_sample(rng, dtype, size)
    return logits, labels, rng.standard_normal(size).astype(dtype), np.zeros_like(logits)


# The helpers take a row as an array of its own and count from 0: an index that might be negative, for all that numba
# knows, is checked, and a loop with a check runs one entry at a time (4 times as long).


@helper()
def largest_of(row: NDArray[Any]) -> Any:
    """The largest entry; nan, or any entry, where one is nan.

    It is sought among integers: the largest of floats LLVM seeks one by one as long as nan counts (4 times as long).
    """
    top = order(row[0])
    for j in range(row.size):
        top = max(top, order(row[j]))
    return ordered(top)


@helper(fastmath=SUMMING)
def sum_of_exp(x: NDArray[Any], top: Any) -> Any:
    """Sum of exp(x - top), in the dtype of x, for a top that is the largest or nan."""
    part = x.dtype.type(0)
    for j in range(x.size):
        part += exp_below_zero(x[j] - top)
    return part


@helper(fastmath=SUMMING)
def sum_of(x: NDArray[Any]) -> Any:
    """Sum in the dtype of x."""
    part = x.dtype.type(0)
    for j in range(x.size):
        part += x[j]
    return part


@helper(fastmath=SUMMING)
def write_exp(x: NDArray[Any], out: NDArray[Any], top: Any) -> Any:
    """The same, and each of them to `out`.

    Two loops: in one that writes and sums, LLVM takes `out` for a part of `x` where it lies close behind, and then adds
    in another order. The bits would hang on where the arrays are.
    """
    for j in range(x.size):
        out[j] = exp_below_zero(x[j] - top)
    return sum_of(out)


@helper()
def multiply_by(out: NDArray[Any], factor: Any) -> None:
    """Multiply every entry."""
    for j in range(out.size):
        out[j] *= factor


@kernel(twin=forward_twin, sample=_forward_sample)
def softmax_cross_entropy(logits: Matrix, labels: Labels, losses: OutVector) -> int:
    """Write -log softmax(logits)[label] of each row to `losses`.

    Shapes:
        logits: (n, c) with c >= 1; labels: (n,) integers; losses: (n,), written.

    Returns:
        -1, or the number of the first row whose label is outside 0 .. c - 1; then nothing is to be used.

    Example:
        >>> losses = np.zeros(1)
        >>> softmax_cross_entropy(np.array([[0.0, 0.0]]), np.array([1]), losses)
        -1
        >>> bool(np.isclose(losses[0], np.log(2)))
        True
    """
    n, c = logits.shape
    if labels.size != n or losses.size != n:
        raise ShapeError("softmax_cross_entropy needs one label and one loss for each row of logits")
    for row in range(n):
        label = labels[row]
        if label < 0 or label >= c:
            return row
        top = largest_of(logits[row])
        ask_for_row(logits, row + 1)
        total = 0.0
        for start in range(0, c, BLOCK):
            total += sum_of_exp(logits[row, start : min(start + BLOCK, c)], top)
        losses[row] = log(logits.dtype.type(total)) - (logits[row, label] - top)
    return -1


@kernel(twin=backward_twin, sample=_backward_sample)
def softmax_cross_entropy_gradient(logits: Matrix, labels: Labels, ct: Vector, out: OutMatrix) -> None:
    """Write (softmax(logits) - onehot(label)) * ct of each row to `out`.

    Shapes:
        logits, out: (n, c); labels, ct: (n,). `ct` is the gradient with respect to each row's loss: 1 / n in every row
        for the mean over a batch.

    Example:
        >>> out = np.zeros((1, 2))
        >>> softmax_cross_entropy_gradient(np.zeros((1, 2)), np.array([1]), np.ones(1), out)
        >>> out
        array([[ 0.5, -0.5]])
    """
    n, c = logits.shape
    if labels.size != n or ct.size != n or out.shape != logits.shape:
        raise ShapeError("softmax_cross_entropy_gradient needs one label and ct for each row of logits")
    for row in range(n):
        top = largest_of(logits[row])
        ask_for_row(logits, row + 1)
        total = 0.0
        for start in range(0, c, BLOCK):
            stop = min(start + BLOCK, c)
            total += write_exp(logits[row, start:stop], out[row, start:stop], top)
        label, scale = labels[row], logits.dtype.type(total)
        is_class = 0 <= label < c  # forward has said so, but who knows what was written since
        own = out[row, label] / scale if is_class else scale
        scale = ct[row] / scale
        multiply_by(out[row], scale)
        if is_class:
            out[row, label] = (own - 1) * ct[row]
