"""Determinants and their slopes in plain NumPy, as an exported file brings them along."""

from __future__ import annotations

from typing import Any

import numpy as np


def cofactors(a: Any) -> Any:
    """Determinants with a row and a column taken out, with their signs; of singular matrices, too."""
    turn, values, back, sign, finite = decomposed(a)
    n = values.shape[-1]
    others = np.prod(np.where(np.eye(n, dtype=bool), 1.0, values[..., None, :]), axis=-1)
    return np.where(finite, sign * ((turn * others[..., None, :]) @ back), np.nan).astype(turn.dtype)


def det_slope(direction: Any, a: Any) -> Any:
    """How the cofactors change along a direction."""
    turn, values, back, sign, finite = decomposed(a)
    n = values.shape[-1]
    i, j, k = np.ogrid[:n, :n, :n]
    others = np.prod(np.where((k == i) | (k == j), 1.0, values[..., None, None, :]), axis=-1)
    others = np.where(np.eye(n, dtype=bool), 0.0, others)
    inner = np.swapaxes(turn, -1, -2) @ direction @ np.swapaxes(back, -1, -2)
    found = -others * np.swapaxes(inner, -1, -2)
    line = np.arange(n)
    found[..., line, line] = (others @ inner[..., line, line, None])[..., 0]
    return np.where(finite, sign * (turn @ found @ back), np.nan).astype(np.result_type(direction, a))


def decomposed(a: Any) -> Any:
    """The singular value decomposition, its handedness, and which matrices are finite."""
    a = np.asarray(a)
    finite = np.isfinite(a).all(axis=(-2, -1), keepdims=True)
    turn, values, back = np.linalg.svd(np.where(finite, a, np.zeros((), a.dtype)))
    sign = np.sign(np.linalg.det(turn) * np.linalg.det(back))[..., None, None]
    return turn, values, back, sign, finite


def symmetric(a: Any) -> Any:
    """The symmetric part of matrices."""
    return (a + np.swapaxes(a, -1, -2)) / 2
