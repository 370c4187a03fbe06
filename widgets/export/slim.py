"""Charts made small for files: long lines keep the peaks and gaps that a drawing can show, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from widgets.pictures.chart import Chart
from widgets.pictures.tree import Picture
from widgets.views.training.lines import decimated

P = TypeVar("P", bound=Picture)
COLUMNS = ("x", "y", "text", "customdata")
"""What has an entry for each point."""


def slim(picture: P, most: int) -> P:
    """The picture with at most about `most` points a line; a scene, or a chart of short lines, as it is.

    Example:
        >>> import plotly.graph_objects as go
        >>> long = Chart(go.Figure(go.Scatter(x=list(range(5000)), y=[0.0] * 5000)))
        >>> len(slim(long, 100).figure.data[0].y) <= 102
        True
    """
    if not isinstance(picture, Chart) or all(_length(trace) <= most for trace in picture.figure.data):
        return picture
    import plotly.graph_objects as go

    figure = go.Figure(picture.figure)
    for trace in figure.data:
        n = _length(trace)
        if n <= most:
            continue
        kept = decimated(np.asarray(trace.y, np.float64), most)
        for name in COLUMNS:
            column = getattr(trace, name, None)
            if column is not None and not isinstance(column, str) and len(column) == n:
                trace[name] = np.asarray(column)[kept]
    return replace(picture, figure=figure)


def _length(trace: object) -> int:
    """Points of a line; 0 for anything else."""
    y = getattr(trace, "y", None)
    return len(y) if getattr(trace, "type", "") == "scatter" and y is not None else 0
