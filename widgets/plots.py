"""Plots in which a prediction and its answer stand together: on a number line, or as two tangents."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.teach import Prediction
from lab.teach.predict import shown
from widgets.pictures import theme
from widgets.pictures.chart import Chart

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_TICKS = 12
"""Places of a line that all have their number."""
YOU, IT = "your prediction", "the run"
"""Names of the two in every legend."""


def gap(prediction: Prediction) -> Chart:
    """Guess and answer on a number line.

    Example:
        >>> p = Prediction("the slope", answer=lambda: 4.0)
        >>> p.commit(3); _ = p.reveal()
        >>> len(gap(p).figure.data)
        3
    """
    import plotly.graph_objects as go

    guess, answer = _numbers(prediction)
    figure = go.Figure(layout=theme.axes(prediction.unit, "", height=130, yaxis={"visible": False, "range": [-1, 1]}))
    if guess is None or answer is None:
        return _unrevealed(figure, prediction)
    figure.add_scatter(x=[guess, answer], y=[0, 0], mode="lines", line={"width": 3, "dash": "dot"}, name="gap")
    figure.add_scatter(x=[guess], y=[0], mode="markers", marker={"symbol": "x", "size": 13}, name=YOU)
    figure.add_scatter(x=[answer], y=[0], mode="markers", marker={"symbol": "circle", "size": 13}, name=IT)
    return _finished(figure, prediction)


def tangent(f: Callable[[Any], Any], *, at: float, reach: float = 1.5) -> Callable[[Prediction], Chart]:
    """A plot of `f` in which a predicted slope and the true one are lines through the point (at, f(at)).

    Args:
        f: takes and returns arrays.
        at: where the slope is asked for.
        reach: half the width of the plot.

    Example:
        >>> p = Prediction("the slope", answer=lambda: 12.0)
        >>> [t.name for t in tangent(lambda x: 2 * x**2 + 1, at=3.0)(p).figure.data]
        ['f(x)']
    """

    def plot(prediction: Prediction) -> Chart:
        import plotly.graph_objects as go

        x = np.linspace(at - reach, at + reach, 60)
        name = next(iter(inspect.signature(f).parameters))
        figure = go.Figure(layout=theme.axes(name, f"f({name})", height=300))
        figure.add_scatter(x=x, y=np.asarray(f(x)), mode="lines", line={"dash": "solid"}, name=f"f({name})")
        guess, answer = _numbers(prediction)
        if guess is None or answer is None:
            return _unrevealed(figure, prediction)
        for slope, who, dash in ((guess, YOU, "dot"), (answer, IT, "dash")):
            figure.add_scatter(x=x, y=f(at) + slope * (x - at), mode="lines", line={"dash": dash}, name=who)
        return _finished(figure, prediction)

    return plot


def lines(xtitle: str, ytitle: str, series: Mapping[str, Sequence[float]], *, first: int = 0) -> Chart:
    """Lists of numbers as lines, told apart by dashes as well as by colour; x counts from `first`.

    Example:
        >>> lines("step", "loss", {"good": [3.0, 2.0]}).caption
        'loss by step: good from 3 to 2'
    """
    import plotly.graph_objects as go

    few = max(map(len, series.values()), default=0) <= MOST_TICKS  # there is no place between two of them
    figure = go.Figure(layout=theme.axes(xtitle, ytitle, height=300, xaxis={"dtick": 1} if few else {}))
    for i, (name, ys) in enumerate(series.items()):
        dash = theme.DASHES[i % len(theme.DASHES)]
        x, label = list(range(first, first + len(ys))), name.replace("_", " ")
        figure.add_scatter(x=x, y=list(ys), mode="lines", line={"dash": dash}, name=label)
    ends = (f"{n.replace('_', ' ')} from {shown(ys[0])} to {shown(ys[-1])}" for n, ys in series.items() if len(ys))
    return Chart(figure, f"{ytitle} by {xtitle}: {'; '.join(ends)}", ytitle)


def _numbers(prediction: Prediction) -> tuple[float | None, float | None]:
    outcome = prediction.outcome
    if outcome is None or isinstance(outcome.guess, str) or isinstance(outcome.answer, str):
        return None, None
    return outcome.guess, outcome.answer


def _unrevealed(figure: go.Figure, prediction: Prediction) -> Chart:
    figure.add_annotation(text="not yet", x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False, font={"size": 16})
    return Chart(figure, "Not yet: commit to a prediction first.", prediction.question)


def _finished(figure: go.Figure, prediction: Prediction) -> Chart:
    assert prediction.outcome is not None
    return Chart(figure, f"{prediction.outcome.text} The answer comes from the run above.", prediction.question)
