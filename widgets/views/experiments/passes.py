"""PassesView: a graph on its way through the compiler: kernels, bytes and time after each pass, and what it did."""

from __future__ import annotations

from typing import Any

from lab.events import Event, PassesBegun, PassFinished
from lab.words import counted
from widgets.pictures import theme
from widgets.pictures.theme import short
from widgets.views.experiments.experiment import ExperimentView, Place, Rows, of

PANELS = (("kernels", ""), ("kB", "2"), ("µs", "3"))
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
        >>> view.sentence_at(5).split(";")[0]
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
        figure = go.Figure(layout=_layout(len(begun.passes)))
        for k, (_, axis) in enumerate(PANELS):
            figure.add_scatter(
                x=[e.number for e in done], y=[_values(e)[k] for e in done], name=PANELS[k][0],
                xaxis=f"x{axis}", yaxis=f"y{axis}", mode="lines+markers", showlegend=False, meta={"like": 0},
                line={"dash": theme.DASHES[0]}, hovertext=[f"{e.name}: {did(e)}" for e in done],
            )  # fmt: skip
        return figure, _caption(begun, done)

    def place_of(self, event: Event, rows: Rows) -> Place | None:
        if not isinstance(event, PassFinished):
            return None
        return Place(event.number, event.n_kernels)

    def told(self, rows: Rows) -> str:
        done = of(rows, PassFinished)
        if not done:
            return "No pass has finished yet."
        last = done[-1]
        lines = last.text.splitlines()
        cut = [f"... {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
        return "\n".join([pass_line(last), *lines[:MOST_LINES], *cut, *map(pass_line, done[:-1])])


def _values(e: PassFinished) -> tuple[float, float, float]:
    return e.n_kernels, e.n_bytes / 1e3, e.run_us


def did(e: PassFinished) -> str:
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


def pass_line(e: PassFinished) -> str:
    """A pass in a sentence: what it did, and what is left."""
    inside = f" ({e.n_equations:,} equations)" if e.n_equations != e.n_kernels else ""
    return (
        f"{e.name}: {did(e)}; {counted(e.n_kernels, 'kernel')}{inside}, {short(e.n_bytes / 1e3)} kB,"
        f" {short(e.run_us)} µs a run."
    )


def _caption(begun: PassesBegun, done: list[PassFinished]) -> str:
    words = f"{pass_line(done[-1])} " if done else ""
    words += (
        f"The way of {begun.function} through the compiler:"
        f" {', '.join(f'{i} {name}' for i, name in enumerate(begun.passes))}. Kernels are equations that compute, a"
        f" fused one counts once; kB read and written are computed from shapes; time is measured, median of"
        f" {begun.repeats}: equation by equation, and compiled at last."
    )
    return words + (" Single operations were recorded meanwhile, which makes all slower." if begun.told else "")


def _layout(n: int) -> dict[str, Any]:
    """One above the other: kernels, bytes, time; along the passes by number."""
    panels: dict[str, Any] = {}
    for k, (words, axis) in enumerate(PANELS):
        top, lowest = 1.0 - 0.36 * k, k == len(PANELS) - 1
        panels[f"yaxis{axis}"] = {
            "domain": [top - 0.28, top], "title": {"text": words}, "rangemode": "tozero", "zeroline": False,
            "anchor": f"x{axis}", "automargin": True, "nticks": 4,
        }  # fmt: skip
        panels[f"xaxis{axis}"] = {
            "range": [-0.3, n - 0.7], "dtick": 1, "anchor": f"y{axis}", "showticklabels": lowest, "zeroline": False,
            "title": {"text": "pass" if lowest else ""}, **({"matches": "x"} if k else {}),
        }  # fmt: skip
    return theme.axes("", "", height=460, **panels)
