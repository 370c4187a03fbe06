"""Softmax cross-entropy in one pass over the logits, and its gradient in another.

Forward keeps two numbers a row, the largest logit and the sum of exp(logit - largest), instead of the probabilities:
backward computes exp again, which costs less than writing and reading a second array of the logits' size, and it
keeps more digits than the usual logsumexp, whose float32 rounding error grows with the logits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.errors import ShapeError
from lab.kernels.arguments import Labels, Matrix, OutMatrix, OutVector, Vector
from lab.kernels.kernel import SUMMING, helper, kernel
from lab.kernels.scalars import exp, log

BLOCK = 4096
"""Entries that are summed in the array's own dtype before the sum goes on in float64."""


def forward_twin(
    logits: NDArray[Any], labels: NDArray[Any], losses: NDArray[Any], largest: NDArray[Any], sums: NDArray[Any]
) -> int:
    """`softmax_cross_entropy` in NumPy."""
    n, c = logits.shape
    wrong = np.flatnonzero((labels < 0) | (labels >= c))
    if wrong.size:
        return int(wrong[0])
    if not n:
        return -1
    with np.errstate(all="ignore"):
        largest[:] = logits.max(axis=1)
        shifted = logits - largest[:, None]
        sums[:] = np.exp(shifted).sum(axis=1, dtype=np.float64)
        losses[:] = np.log(sums) - shifted[np.arange(n), labels]
    return -1


def backward_twin(
    logits: NDArray[Any],
    labels: NDArray[Any],
    largest: NDArray[Any],
    sums: NDArray[Any],
    ct: NDArray[Any],
    out: NDArray[Any],
) -> None:
    """`softmax_cross_entropy_gradient` in NumPy."""
    with np.errstate(all="ignore"):
        np.divide(np.exp(logits - largest[:, None]), sums[:, None], out=out)
        out[np.arange(len(labels)), labels] -= 1
        out *= ct[:, None]


def _forward_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    logits = (rng.standard_normal((size, 10)) * 5).astype(dtype)
    return logits, rng.integers(0, 10, size), *(np.zeros(size, dtype) for _ in range(3))


def _backward_sample(rng: np.random.Generator, dtype: str, size: int) -> tuple[Any, ...]:
    logits, labels, losses, largest, sums = _forward_sample(rng, dtype, size)
    forward_twin(logits, labels, losses, largest, sums)
    return logits, labels, largest, sums, rng.standard_normal(size).astype(dtype), np.zeros_like(logits)


@helper(fastmath=SUMMING)
def sum_of_exp(logits: NDArray[Any], row: int, top: Any, start: int, stop: int) -> Any:
    """Sum of exp(logit - top) over columns start .. stop - 1 of a row, in the dtype of the logits."""
    part = logits.dtype.type(0)
    for j in range(start, stop):
        part += exp(logits[row, j] - top)
    return part


@kernel(twin=forward_twin, sample=_forward_sample)
def softmax_cross_entropy(
    logits: Matrix, labels: Labels, losses: OutVector, largest: OutVector, sums: OutVector
) -> int:
    """Write -log softmax(logits)[label] of each row to `losses`; what backward needs to `largest` and `sums`.

    Shapes:
        logits: (n, c) with c >= 1; labels: (n,) integers; losses, largest, sums: (n,), written.

    Returns:
        -1, or the number of the first row whose label is outside 0 .. c - 1; then nothing is to be used.

    Example:
        >>> losses, largest, sums = np.zeros(1), np.zeros(1), np.zeros(1)
        >>> softmax_cross_entropy(np.array([[0.0, 0.0]]), np.array([1]), losses, largest, sums)
        -1
        >>> bool(np.isclose(losses[0], np.log(2)))
        True
    """
    n, c = logits.shape
    if labels.size != n or losses.size != n or largest.size != n or sums.size != n:
        raise ShapeError("softmax_cross_entropy needs one label, loss, largest and sum for each row of logits")
    for row in range(n):
        label = labels[row]
        if label < 0 or label >= c:
            return row
        top = logits[row, 0]
        for j in range(1, c):
            top = max(top, logits[row, j])
        total = 0.0
        for start in range(0, c, BLOCK):
            total += sum_of_exp(logits, row, top, start, min(start + BLOCK, c))
        largest[row] = top
        sums[row] = total
        losses[row] = log(sums[row]) - (logits[row, label] - top)
    return -1


@kernel(twin=backward_twin, sample=_backward_sample)
def softmax_cross_entropy_gradient(
    logits: Matrix, labels: Labels, largest: Vector, sums: Vector, ct: Vector, out: OutMatrix
) -> None:
    """Write (softmax(logits) - onehot(label)) * ct of each row to `out`.

    Shapes:
        logits, out: (n, c); labels, largest, sums, ct: (n,). `largest` and `sums` come from `softmax_cross_entropy`,
        `ct` is the gradient with respect to each row's loss: 1 / n in every row for the mean over a batch.

    Example:
        >>> out = np.zeros((1, 2))
        >>> largest, sums, ct = np.zeros(1), np.full(1, 2.0), np.ones(1)
        >>> softmax_cross_entropy_gradient(np.zeros((1, 2)), np.array([1]), largest, sums, ct, out)
        >>> out
        array([[ 0.5, -0.5]])
    """
    n, c = logits.shape
    if labels.size != n or largest.size != n or sums.size != n or ct.size != n or out.shape != logits.shape:
        raise ShapeError("softmax_cross_entropy_gradient needs one label, largest, sum and ct for each row of logits")
    for row in range(n):
        top = largest[row]
        for j in range(c):
            out[row, j] = exp(logits[row, j] - top) / sums[row] * ct[row]
        label = labels[row]
        if 0 <= label < c:  # forward has said so, but who knows what was written since
            out[row, label] = (exp(logits[row, label] - top) / sums[row] - 1) * ct[row]
