"""CallsView: what the first call of a jitted function takes part by part, against later calls and against no jit."""

from __future__ import annotations

from itertools import accumulate
from math import inf
from statistics import median
from typing import Any

from lab.events import CallMeasured, CallsBegun, CallsPaid, Event
from lab.words import counted
from widgets.pictures import theme
from widgets.pictures.theme import short
from widgets.pictures.ticks import log_axis
from widgets.views.experiments.experiment import ExperimentView, Place, Rows, of

WAYS = ("eager", "jit")
NAMES = {"eager": "as it is", "jit": "jitted"}
SYMBOLS = ("circle", "square")


class CallsView(ExperimentView):
    """First call against later ones, as `lab.measure_calls` measured it.

    Args:
        source: what that returned, or a Recording of it.

    Example:
        >>> import lab, numpy as np
        >>> view = CallsView(lab.measure_calls(lab.tanh, np.ones(3), np.ones(3), executor="interpreted"))
        >>> view.sentence_at(3).split(",")[0]
        'Call 1'
    """

    listens = (CallsBegun, CallMeasured, CallsPaid)
    stops = (CallMeasured, CallsPaid)
    title = "First call and later calls"
    shows = "the first call of a jitted function against later ones"
    write = "CallsView(lab.measure_calls(f, x, x, x))"

    def drawn(self, rows: Rows) -> tuple[Any, str]:
        import plotly.graph_objects as go

        begun, done = of(rows, CallsBegun)[0], of(rows, CallMeasured)
        figure = go.Figure(layout=_layout(begun.n_calls, done))
        for axis in ("", "2"):  # each call by itself, then all so far; panel by panel, as plotly keeps them
            for k, way in enumerate(WAYS):
                took = _took(done, way)
                ms = [*accumulate(took.values())] if axis else [*took.values()]
                figure.add_scatter(
                    x=[*took], y=ms, name=NAMES[way], xaxis=f"x{axis}", yaxis=f"y{axis}", mode="lines+markers",
                    showlegend=not axis, meta={"like": k}, line={"dash": theme.DASHES[k]},
                    marker={"symbol": SYMBOLS[k], "size": 7}, hovertext=[_parts(done, way, n) for n in took],
                )  # fmt: skip
        mine = {e.part: e.elapsed_ms for e in reversed(done) if e.way == "jit" and e.number == 1}  # the first on top
        figure.add_scatter(
            x=[*mine.values()], y=[*mine], name="parts of call 1", xaxis="x3", yaxis="y3", mode="markers",
            showlegend=False, meta={"like": 1}, marker={"symbol": "diamond", "size": 10},
        )  # fmt: skip
        return figure, _caption(rows)

    def place_of(self, event: Event, rows: Rows) -> Place | None:
        if not isinstance(event, CallMeasured):
            return None
        return Place(event.number, _took(of(rows, CallMeasured), event.way)[event.number])

    def told(self, rows: Rows) -> str:
        done, paid = of(rows, CallMeasured), of(rows, CallsPaid)
        lines = [*map(_paid, paid), *([] if paid or not done else [_line(done[-1])])]
        firsts = [_line(e) for e in done if e.number == 1]
        return "\n".join([*lines, *firsts, *_later(done)]) or "No call is measured yet."


def _took(done: list[CallMeasured], way: str) -> dict[int, float]:
    """Milliseconds of each call."""
    took: dict[int, float] = {}
    for e in done:
        if e.way == way:
            took[e.number] = took.get(e.number, 0.0) + e.elapsed_ms
    return took


def _parts(done: list[CallMeasured], way: str, number: int) -> str:
    mine = [e for e in done if (e.way, e.number) == (way, number)]
    return ", ".join(f"{e.part} {short(e.elapsed_ms)} ms" for e in mine)


def _line(e: CallMeasured) -> str:
    about = f" ({e.words})" if e.words else ""
    return f"Call {e.number}, {NAMES[e.way]}, {e.part}: {short(e.elapsed_ms)} ms{about}."


def _later(done: list[CallMeasured]) -> list[str]:
    """The median of later calls of each way, of jit those that found their graph, and what was traced again."""
    traced = {e.number for e in done if e.part == "trace"}
    later = {"eager": [e.elapsed_ms for e in done if e.way == "eager" and e.number > 1],
             "jit": [e.elapsed_ms for e in done if e.way == "jit" and e.number not in traced]}  # fmt: skip
    lines = [f"Later calls, {NAMES[way]}: {short(median(ms))} ms, median of {len(ms)}."
             for way, ms in later.items() if ms]  # fmt: skip
    return [*lines, *(_line(e) for e in done if e.part == "trace" and e.number > 1)]


def _paid(e: CallsPaid) -> str:
    if e.n_calls == inf:
        return "Jit never pays here: a later call takes no less time than the function as it is."
    if e.seen:
        return f"From call {e.n_calls:,.0f} on all jitted calls together have taken less: seen."
    return f"From call {e.n_calls:,.0f} on all jitted calls together would have taken less: computed from medians."


def _caption(rows: Rows) -> str:
    begun = of(rows, CallsBegun)[0]
    words = (
        f"{counted(begun.n_calls, 'call')} of {begun.function}, as it is and jitted ({begun.executor}). Above each call"
        " by itself, in the middle all so far, below the parts of the first jitted call; times are measured."
    )
    words += "".join(f" {_paid(e)}" for e in of(rows, CallsPaid))
    return words + (" Single operations were recorded meanwhile, which makes all slower." if begun.told else "")


def _layout(n: int, done: list[CallMeasured]) -> dict[str, Any]:
    each = [ms for way in WAYS for ms in _took(done, way).values()]
    sums = [ms for way in WAYS for ms in accumulate(_took(done, way).values())]
    parts = [e.elapsed_ms for e in done if e.way == "jit" and e.number == 1]
    axis = {"zeroline": False, "automargin": True}
    calls = {"range": [0.5, n + 0.5], **({"dtick": 1} if n <= 12 else {}), **axis}
    return theme.axes(
        "", "ms a call", height=640,
        xaxis={**calls, "showticklabels": False, "anchor": "y"}, yaxis={**log_axis([each]), "domain": [0.74, 1.0]},
        xaxis2={**calls, "anchor": "y2", "title": {"text": "call"}, "matches": "x"},
        yaxis2={**log_axis([sums]), **axis, "domain": [0.4, 0.66], "anchor": "x2", "title": {"text": "ms so far"}},
        xaxis3={**log_axis([parts]), **axis, "anchor": "y3", "title": {"text": "ms of call 1"}},
        yaxis3={**axis, "domain": [0.0, 0.25], "anchor": "x3", "type": "category"},
    )  # fmt: skip
