"""Long lines made short for drawing, keeping their peaks and gaps, their moving mean, and a mark at a step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from widgets.pictures.chart import Chart

Numbers = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

POINTS = 2000
"""More points than pixels only cost time: 10,000 take three times as long to draw as 2,000."""
FEW = 30
"""So few points get markers."""


def decimated(y: Numbers, most: int = POINTS) -> Indices:
    """Which points to draw of a long line: smallest and largest of each bucket, and one of its gaps if it has any.

    Example:
        >>> y = np.zeros(10_000); y[1234] = 1.0; y[5000] = np.nan
        >>> kept = decimated(y)
        >>> len(kept) <= 2 * 2000, 1234 in kept, 5000 in kept
        (True, True, True)
    """
    n = len(y)
    if n <= most:
        return np.arange(n)
    buckets = most // 2
    size = -(-n // buckets)
    grid: Any = np.full(buckets * size, np.nan)
    grid[:n] = y
    grid = grid.reshape(buckets, size)
    gap = ~np.isfinite(grid)
    offset = np.arange(buckets) * size
    low = np.where(gap, np.inf, grid).argmin(axis=1) + offset
    high = np.where(gap, -np.inf, grid).argmax(axis=1) + offset
    holes = (gap.argmax(axis=1) + offset)[gap.any(axis=1)]
    kept = np.unique(np.concatenate([[0, n - 1], low, high, holes]))
    return kept[kept < n]


def upright(chart: Chart, step: int, name: str) -> Chart:
    """The chart with a dotted line at a step, as high as what is drawn on the upper axes.

    Example:
        >>> import plotly.graph_objects as go
        >>> chart = upright(Chart(go.Figure(go.Scatter(x=[1, 2], y=[0.5, np.nan]))), 2, "here")
        >>> list(chart.figure.data[-1].x), [float(y) for y in chart.figure.data[-1].y]
        ([2, 2], [0.5, 0.5])
    """
    import plotly.graph_objects as go

    drawn = [np.asarray(t.y, np.float64) for t in chart.figure.data if t.y is not None and t.yaxis in (None, "y")]
    seen = np.concatenate([np.empty(0), *drawn])
    seen = seen[np.isfinite(seen)]
    low, high = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)
    line = go.Scatter(
        x=[step, step], y=[low, high], name=f"{name}, step {step}", mode="lines+markers",
        marker={"symbol": "diamond", "size": 9}, line={"dash": "dot", "width": 1.5},
    )  # fmt: skip
    return replace(chart, figure=go.Figure([*chart.figure.data, line], chart.figure.layout))


def moving_mean(y: Numbers, at: Indices, window: int) -> Numbers:
    """Mean of the last `window` finite entries up to each index in `at`; nan where there is none.

    Example:
        >>> moving_mean(np.array([1.0, 3.0, np.nan, 5.0]), np.array([1, 2, 3]), 2)
        array([2., 3., 5.])
    """
    finite = np.isfinite(y)
    n = _window_sums(finite.astype(np.float64), at, window)
    total = _window_sums(np.where(finite, y, 0.0), at, window)
    mean: Numbers = np.divide(total, n, out=np.full(len(at), np.nan), where=n > 0)
    return mean


def _window_sums(y: Numbers, at: Indices, window: int) -> Numbers:
    """Sum of the last `window` entries up to each index in `at`.

    Summed within blocks as long as the window, from their begin and from their end: any window is an end of one and a
    begin of the next. In a sum from the first entry on, one of 1e31 would leave no digits for all that follow.
    """
    blocks = np.zeros((len(y) // window + 2, window))  # the first is what is before the first entry
    blocks.ravel()[window : window + len(y)] = y
    upto = np.cumsum(blocks, axis=1).ravel()
    since = np.cumsum(blocks[:, ::-1], axis=1)[:, ::-1].ravel()
    first = at + 1
    sums: Numbers = upto[at + window] + np.where(first % window == 0, 0.0, since[first])
    return sums
