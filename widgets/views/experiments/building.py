"""BuildView: a step whose graph is built each time against one that is kept, and all steps so far with what it cost."""

from __future__ import annotations

from math import isinf, isnan
from typing import Any

from lab.events import BuildBegun, BuildMeasured, Event
from widgets.pictures import theme
from widgets.pictures.theme import short
from widgets.pictures.ticks import log_axis
from widgets.views.experiments.experiment import ExperimentView, Place, Rows, of

STEPS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)
"""Steps for which the total is computed."""
SYMBOLS = ("circle", "square", "diamond", "cross")


class BuildView(ExperimentView):
    """What graphs cost that are built each time or once, as `lab.measure_build` measured it.

    Args:
        source: what that returned, or a Recording of it.

    Example:
        >>> import lab, numpy as np
        >>> view = BuildView(lab.measure_build(lambda x: lab.sum(lab.tanh(x) * x), np.ones(3), repeats=1))
        >>> view.sentence_at(2)[:14]
        'Define by run:'
    """

    listens = (BuildBegun, BuildMeasured)
    stops = (BuildMeasured,)
    title = "A graph each step, or once"
    shows = "the cost of building a graph in every step"
    write = "BuildView(lab.measure_build(f, x))"

    def drawn(self, rows: Rows) -> tuple[Any, str]:
        import plotly.graph_objects as go

        begun, done = of(rows, BuildBegun)[0], of(rows, BuildMeasured)
        totals = {e.way: [(e.once_ms + n * e.step_ms) for n in STEPS] for e in done}
        figure = go.Figure(layout=_layout([ms for line in totals.values() for ms in line]))
        for k, e in enumerate(done):
            figure.add_scatter(
                x=[*STEPS], y=totals[e.way], name=e.way, mode="lines+markers", meta={"like": k},
                line={"dash": theme.DASHES[k % len(theme.DASHES)]},
                marker={"symbol": SYMBOLS[k % len(SYMBOLS)], "size": 7},
                hovertext=[f"{e.way}, {n:,} steps" for n in STEPS],
            )  # fmt: skip
        return figure, _caption(begun, done)

    def place_of(self, event: Event, rows: Rows) -> Place | None:
        return Place(1, event.once_ms + event.step_ms) if isinstance(event, BuildMeasured) else None

    def told(self, rows: Rows) -> str:
        done = of(rows, BuildMeasured)
        if not done:
            return "Nothing is measured yet."
        return "\n".join([_line(done[-1]), *map(_line, done[:-1]), *_paid(done)])


def _line(e: BuildMeasured) -> str:
    words = f"{e.way[:1].upper()}{e.way[1:]}: {short(e.step_ms)} ms a step"
    if not isnan(e.graph_ms) and e.graph_ms:
        words += f", of which the graph {short(e.graph_ms)} ms"
    return f"{words}, {short(e.once_ms)} ms once before." if e.once_ms else f"{words}."


def _paid(done: list[BuildMeasured]) -> list[str]:
    """From how many steps on each has taken less than the first way."""
    lines = [
        f"{e.way[:1].upper()}{e.way[1:]} takes less in all from step {int(e.paid_from):,} on than {done[0].way}."
        for e in done[1:]
        if not isinf(e.paid_from)
    ]
    if never := [e.way for e in done[1:] if isinf(e.paid_from)]:
        who = " and ".join([", ".join(never[:-1])] * (len(never) > 1) + never[-1:])
        lines.append(f"{who} never {'takes' if len(never) == 1 else 'take'} less than {done[0].way}.")
    return [line[:1].upper() + line[1:] for line in lines]


def _caption(begun: BuildBegun, done: list[BuildMeasured]) -> str:
    words = (
        f"Value and gradients of {begun.function}. Time before the first step and of a step is measured, median of"
        f" {begun.repeats}; the total of more steps is computed from both."
    )
    words = " ".join([words, *map(_line, done), *_paid(done)])
    return words + (" Single operations were recorded meanwhile, which makes all slower." if begun.told else "")


def _layout(totals: list[float]) -> dict[str, Any]:
    return theme.axes("steps", "ms in all", height=380, xaxis=log_axis([STEPS]), yaxis=log_axis([totals]))
