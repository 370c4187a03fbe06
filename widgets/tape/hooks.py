"""Whether a hook changed a gradient: then it is not the sum of what came back, and the picture must say so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.autograd.observe import statistics

if TYPE_CHECKING:
    from widgets.tape.tape import Seen

COARSE = 2.0**-7
"""Relative spacing where NumPy does not know the type (bfloat16)."""


def changed_by_hook(gradient: Seen, came: Sequence[Seen | None], dtype: str) -> Seen | None:
    """The sum of what came back where the gradient differs from it by more than rounding; None where it does not.

    Where entries are not known, or nothing came back (the gradient was given), there is nothing to compare.
    """
    parts = [_entries(seen) for seen in came]
    whole = _entries(gradient)
    if not parts or whole is None or any(part is None or part.shape != whole.shape for part in parts):
        return None
    with np.errstate(all="ignore"):
        total = np.sum(parts, axis=0)
        room = 16 * (len(parts) + 1) * _spacing(dtype) * np.sum(np.abs(parts), axis=0)
        same = ~np.isfinite(total) | ~np.isfinite(whole) | (np.abs(whole - total) <= room)
    return None if same.all() else _described(gradient, total)


def summed(came: Sequence[Seen | None]) -> Seen | None:
    """The sum of what came back; None where some of it is not known."""
    parts = [_entries(seen) for seen in came]
    if not parts or any(part is None or part.shape != parts[0].shape for part in parts):
        return None
    with np.errstate(all="ignore"):
        total = np.sum(parts, axis=0)
    like = came[0]
    return None if like is None else _described(like, total)._replace(value=total)


def _entries(seen: Seen | None) -> Any:
    """In float64; the only entry of an array is its mean."""
    if seen is None or (seen.value is None and seen.size != 1):
        return None
    return np.asarray(seen.mean if seen.value is None else seen.value, np.float64).reshape(seen.shape)


def _spacing(dtype: str) -> float:
    return float(np.finfo(dtype).eps) if dtype in ("float16", "float32", "float64") else COARSE


def _described(like: Seen, total: Any) -> Seen:
    low, high, mean, norm, n_nonfinite = statistics(total)
    return type(like)(like.shape, low, high, mean, norm, n_nonfinite, None)
