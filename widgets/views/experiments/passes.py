"""PassesView: a graph on its way through the compiler: kernels, bytes and time after each pass, and what it did."""

from __future__ import annotations

from typing import Any

from lab.events import Event, PassesBegun, PassFinished
from lab.words import counted
from widgets.pictures import theme
from widgets.pictures.theme import short
from widgets.views.experiments.experiment import ExperimentView, Place, Rows, of

PANELS = (("kernels", ""), ("kB read and written", "2"), ("µs a run", "3"))
MOST_LINES = 60
"""Lines of a graph in the text; what is longer is cut, and says so."""


class PassesView(ExperimentView):
    """What the passes made of a graph, as `lab.measure_passes` measured it.

    Args:
        source: what that returned, or a Recording of it.

    Example:
        >>> import lab, numpy as np
        >>> found = lab.measure_passes(lambda x: lab.exp(x) * lab.exp(x), np.ones(3), repeats=1)
        >>> view = PassesView(found)
        >>> view.sentence_at(3).split(";")[0]
        'constant folding: nothing to do'
    """

    listens = (PassesBegun, PassFinished)
    stops = (PassFinished,)
    title = "Pass by pass"
    shows = "what the passes of the compiler did to a graph"
    write = "PassesView(lab.measure_passes(f, x))"

    def drawn(self, rows: Rows) -> tuple[Any, str]:
        import plotly.graph_objects as go

        begun, done = of(rows, PassesBegun)[0], of(rows, PassFinished)
        labels = _labels(begun.passes)
        figure = go.Figure(layout=_layout(labels))
        for k, (_, axis) in enumerate(PANELS):
            figure.add_scatter(
                y=[labels[e.number] for e in done], x=[_values(e)[k] for e in done], name=PANELS[k][0],
                xaxis=f"x{axis}", yaxis="y", mode="lines+markers", showlegend=False, meta={"like": 0},
                line={"dash": theme.DASHES[0]}, hovertext=[f"{e.name}: {_did(e)}" for e in done],
            )  # fmt: skip
        return figure, _caption(begun, done)

    def place_of(self, event: Event, rows: Rows) -> Place | None:
        if not isinstance(event, PassFinished):
            return None
        return Place(event.n_kernels, float(event.number))

    def told(self, rows: Rows) -> str:
        done = of(rows, PassFinished)
        if not done:
            return "No pass has finished yet."
        last = done[-1]
        lines = last.text.splitlines()
        cut = [f"... {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
        return "\n".join([_line(last), *lines[:MOST_LINES], *cut, *map(_line, done[:-1])])


def _labels(passes: tuple[str, ...]) -> list[str]:
    """A name for each, also of one that comes twice."""
    return [name if passes.index(name) == i else f"{name} again" for i, name in enumerate(passes)]


def _values(e: PassFinished) -> tuple[float, float, float]:
    return e.n_kernels, e.n_bytes / 1e3, e.run_us


def _did(e: PassFinished) -> str:
    """What a pass did, in words."""
    if e.number == 0:
        return "the graph that was written down"
    parts = []
    if e.n_merged:
        by = f"{e.n_made:,} new" if e.n_made else "others that are there"
        parts.append(f"{counted(e.n_merged, 'equation')} replaced by {by}")
    elif e.n_made:
        parts.append(f"{counted(e.n_made, 'new equation')}")
    if e.n_gone:
        parts.append(f"{counted(e.n_gone, 'equation')} left out")
    return ", ".join(parts) or ("loops over kept buffers" if e.name == "compiled" else "nothing to do")


def _line(e: PassFinished) -> str:
    inside = f" ({e.n_equations:,} equations)" if e.n_equations != e.n_kernels else ""
    return (
        f"{e.name}: {_did(e)}; {counted(e.n_kernels, 'kernel')}{inside}, {short(e.n_bytes / 1e3)} kB,"
        f" {short(e.run_us)} µs a run."
    )


def _caption(begun: PassesBegun, done: list[PassFinished]) -> str:
    words = (
        f"{begun.function} on its way through the compiler. Kernels are equations that compute, a fused one counts"
        f" once; bytes are computed from shapes; time is measured, median of {begun.repeats}: equation by equation,"
        " and compiled at last."
    )
    words += f" {_line(done[-1])}" if done else ""
    return words + (" Single operations were recorded meanwhile, which makes all slower." if begun.told else "")


def _layout(labels: list[str]) -> dict[str, Any]:
    panels = {}
    for k, (words, axis) in enumerate(PANELS):
        panels[f"xaxis{axis}"] = {
            "domain": [k * 0.35, k * 0.35 + 0.3], "title": {"text": words}, "rangemode": "tozero", "zeroline": False,
            "anchor": "y", "automargin": True, "nticks": 4,
        }  # fmt: skip
    yaxis = {"type": "category", "categoryorder": "array", "categoryarray": labels, "autorange": "reversed",
             "automargin": True, "range": [len(labels) - 0.5, -0.5]}  # fmt: skip
    return theme.axes("kernels", "", height=60 + 30 * len(labels), yaxis=yaxis, **panels)
