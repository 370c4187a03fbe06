"""CostView: time of a whole Jacobian in three ways, against inputs and against outputs, and where the lines cross."""

from __future__ import annotations

from typing import Any

from lab.events import CostBegun, CostMeasured, CrossingFound, Event
from lab.words import counted
from widgets.pictures import theme
from widgets.pictures.theme import short
from widgets.views.experiments.experiment import ExperimentView, Place, Rows, of

WAYS = ("numeric", "forward", "reverse")
PANELS = {"inputs": ("x", "y"), "outputs": ("x2", "y2")}
SYMBOLS = ("circle", "square", "diamond")


class CostView(ExperimentView):
    """What whole Jacobians cost, as `lab.measure_cost` measured it.

    Args:
        source: what that returned, or a Recording of it.

    Example:
        >>> import lab
        >>> found = lab.measure_cost(sizes=[1, 16], fixed=4, repeats=1)
        >>> len(CostView(found).picture_at(len(found.recording)).figure.data) >= 6
        True
    """

    listens = (CostBegun, CostMeasured, CrossingFound)
    stops = (CostMeasured,)
    title = "Cost of a Jacobian"
    shows = "the cost of whole Jacobians by inputs and outputs"
    write = "CostView(lab.measure_cost())"

    def drawn(self, rows: Rows) -> tuple[Any, str]:
        import plotly.graph_objects as go

        measured, begun = of(rows, CostMeasured), of(rows, CostBegun)[0]
        figure = go.Figure(layout=_layout(begun.fixed))
        times = [e.elapsed_ms for e in measured] or [1.0]
        for sweep, (x, y) in PANELS.items():  # panel by panel, as plotly keeps them
            for k, way in enumerate(WAYS):
                mine = [e for e in measured if (e.sweep, e.way) == (sweep, way)]
                figure.add_scatter(
                    x=[_size(e) for e in mine], y=[e.elapsed_ms for e in mine], xaxis=x, yaxis=y,
                    name=way, showlegend=sweep == "inputs", mode="lines+markers", meta={"like": k},
                    line={"dash": theme.DASHES[k]}, marker={"symbol": SYMBOLS[k], "size": 7},
                    hovertext=[f"{way}: {_passes(e)}" for e in mine],
                )  # fmt: skip
            for crossing in (e for e in of(rows, CrossingFound) if e.sweep == sweep):
                other = crossing.slower if crossing.faster == "reverse" else crossing.faster
                figure.add_scatter(
                    x=[crossing.at] * 2, y=[min(times), max(times)], xaxis=x, yaxis=y, mode="lines", showlegend=False,
                    name=_told(crossing), line={"dash": "dot", "width": 1.5}, meta={"like": WAYS.index(other)},
                )  # fmt: skip
        return figure, _caption(rows)

    def place_of(self, event: Event, rows: Rows) -> Place | None:
        if not isinstance(event, CostMeasured):
            return None
        return Place(_size(event), event.elapsed_ms, PANELS[event.sweep][0][1:])

    def told(self, rows: Rows) -> str:
        measured = of(rows, CostMeasured)
        if not measured:
            return "Nothing is measured yet."
        lines = [
            _line(measured[-1]),
            *(f"F{_told(e)[1:]}." for e in of(rows, CrossingFound)),
            *map(_line, measured[:-1]),
        ]
        return "\n".join(lines)


def _size(e: CostMeasured) -> int:
    return e.n_inputs if e.sweep == "inputs" else e.n_outputs


def _passes(e: CostMeasured) -> str:
    walks = f" and {e.walks:,} backward" if e.walks else ""
    return f"{e.runs:,} forward{walks}"


def _line(e: CostMeasured) -> str:
    shape = f"{counted(e.n_inputs, 'input')}, {counted(e.n_outputs, 'output')}"
    return f"{shape}, {e.way}: {short(e.elapsed_ms)} ms, passes: {_passes(e)}."


def _told(e: CrossingFound) -> str:
    return f"from {e.at:.3g} {e.sweep} on {e.faster} is cheaper than {e.slower}"


def _layout(fixed: int) -> dict[str, Any]:
    log = {"type": "log", "exponentformat": "power"}
    return theme.axes(
        f"inputs ({fixed} outputs)", "ms", height=400,
        xaxis={**log, "domain": [0.0, 0.45], "dtick": "D2"}, yaxis=log,
        xaxis2={**log, "domain": [0.55, 1.0], "title": {"text": f"outputs ({fixed} inputs)"}, "dtick": "D2",
                "zeroline": False, "anchor": "y2", "automargin": True},
        yaxis2={**log, "anchor": "x2", "matches": "y", "zeroline": False, "automargin": True},
    )  # fmt: skip


def _caption(rows: Rows) -> str:
    begun = of(rows, CostBegun)[0]
    words = (
        f"Time of a whole Jacobian of {begun.function}, median of {begun.repeats}. Numeric and forward run the"
        " function for each input, reverse runs it once and walks back for each output."
    )
    crossings = "; ".join(map(_told, of(rows, CrossingFound)))
    words += f" Dotted: {crossings}." if crossings else ""
    return words + (" Single operations were recorded meanwhile, which makes all slower." if begun.told else "")
