"""SwellView: operations in the derivative of f(f(... x)) as an expression, with shared parts, and on the tape."""

from __future__ import annotations

from typing import Any

from lab.events import Event, SwellBegun, SwellMeasured
from widgets.pictures import theme
from widgets.pictures.ticks import log_axis
from widgets.views.experiments.experiment import ExperimentView, Place, Rows, of

LINES = {"n_ops": "expression", "n_ops_shared": "shared parts", "n_gradient": "forward, backward", "n_tape": "tape"}
WIDE = 30
"""Counts that differ by more than this factor stand on a logarithmic axis."""


class SwellView(ExperimentView):
    """How a derivative swells with its depth, as `lab.measure_swell` counted it.

    Args:
        source: what that returned, or a Recording of it.

    Example:
        >>> import lab
        >>> found = lab.measure_swell(lab.sin, 3)
        >>> print(SwellView(found).sentence_at(len(found.recording)))
        Depth 3: 8 operations in the derivative, 7 with shared parts; 3 on the tape, 9 forward and backward.
    """

    listens = (SwellBegun, SwellMeasured)
    stops = (SwellMeasured,)
    title = "Expression swell"
    shows = "how a symbolic derivative swells"
    write = "SwellView(lab.measure_swell(lab.sin, 8))"

    def drawn(self, rows: Rows) -> tuple[Any, str]:
        import plotly.graph_objects as go

        depths = of(rows, SwellMeasured)
        counts = {name: [int(getattr(e, name)) for e in depths] for name in LINES}
        found = [n for line in counts.values() for n in line if n > 0] or [1]
        wide = max(found) > WIDE * min(found)
        kind = log_axis([found]) if wide else {"rangemode": "tozero"}
        figure = go.Figure(layout=theme.axes("depth", "operations", height=360, yaxis=kind, xaxis={"dtick": 1}))
        for k, (name, words) in enumerate(LINES.items()):
            figure.add_scatter(
                x=[e.depth for e in depths], y=counts[name], name=words, mode="lines+markers",
                line={"dash": theme.DASHES[k % len(theme.DASHES)]},
            )  # fmt: skip
        return figure, _caption(rows)

    def place_of(self, event: Event, rows: Rows) -> Place | None:
        return Place(event.depth, event.n_ops) if isinstance(event, SwellMeasured) else None

    def told(self, rows: Rows) -> str:
        return "\n".join(map(_line, reversed(of(rows, SwellMeasured)))) or "Nothing is counted yet."


def _line(e: SwellMeasured) -> str:
    plural = "s" * (e.n_ops != 1)
    return (
        f"Depth {e.depth}: {e.n_ops:,} operation{plural} in the derivative, {e.n_ops_shared:,} with shared parts;"
        f" {e.n_tape:,} on the tape, {e.n_gradient:,} forward and backward."
    )


def _caption(rows: Rows) -> str:
    begun, depths = of(rows, SwellBegun)[0], of(rows, SwellMeasured)
    name = "f" if begun.function == "<lambda>" else begun.function
    words = f"{name} is put into itself. Operations in its derivative, written as one expression, and on the tape."
    if depths:
        words += f" {_line(depths[-1])}"
        written = [e for e in depths if e.expression]
        words += f" At depth {written[-1].depth} it is {written[-1].expression}." if written else ""
        words += " The next may take minutes: it ends here." if depths[-1].n_ops > begun.most else ""
    return words
