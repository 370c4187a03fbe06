"""SlopesView: a function around a kink with the fan of slopes that touch it, and which of them is taken by whom."""

from __future__ import annotations

from math import isfinite, isinf, isnan
from typing import Any

from lab.config import KINKS
from lab.events import ChoiceKnown, Event, SlopesBegun, SlopesMeasured
from widgets.pictures import theme
from widgets.pictures.theme import short
from widgets.views.experiments.experiment import ExperimentView, Place, Rows, of

BETWEEN = 3
"""Slopes of the fan that are drawn between those of the two sides."""
FUNCTION, LEFT, RIGHT, TAKEN = range(4)


class SlopesView(ExperimentView):
    """The slopes on both sides of a point, as `lab.measure_slopes` measured them; of several entries the latest.

    Args:
        source: what that returned, or a Recording of it.

    Example:
        >>> import lab
        >>> found = lab.measure_slopes(lab.relu, 0.0)
        >>> print(SlopesView(found).sentence_at(len(found.recording)))
        By x at 0.0: from the left 0.0, from the right 1.0; the lab takes 0.0 (or 0.5, 1.0).
    """

    listens = (SlopesBegun, SlopesMeasured, ChoiceKnown)
    stops = (SlopesMeasured, ChoiceKnown)
    title = "Slopes at a kink"
    shows = "the slopes on both sides of a kink"
    write = "SlopesView(lab.measure_slopes(lab.relu, 0.0))"

    def drawn(self, rows: Rows) -> tuple[Any, str]:
        import plotly.graph_objects as go

        measured = of(rows, SlopesMeasured)
        if not measured:
            return go.Figure(layout=theme.blank(theme.axes())), "Nothing is measured yet."
        now = measured[-1]
        choices = [e for e in of(rows, ChoiceKnown) if e.entry == now.entry]
        figure = go.Figure(layout=_layout(now, len(_taken(now)) + len(choices)))
        figure.add_scatter(x=now.xs, y=now.ys, mode="lines", line={"width": 3}, name="function",
                           meta={"like": FUNCTION})  # fmt: skip
        _fan(figure, now)
        if any(map(isfinite, (now.left, now.right, *now.taken))):
            _takers(figure, now, choices)
        return figure, _caption(now, choices)

    def place_of(self, event: Event, rows: Rows) -> Place | None:
        latest = of(rows, SlopesMeasured)[-1:]
        if not latest or getattr(event, "entry", "") != latest[0].entry:
            return None
        return Place(event.library, event.slope, "2") if isinstance(event, ChoiceKnown) else Place(
            latest[0].at, latest[0].value
        )  # fmt: skip

    def told(self, rows: Rows) -> str:
        lines = [_line(e) for e in reversed(of(rows, SlopesMeasured))]
        facts = of(rows, ChoiceKnown)
        lines += [f"{e.library} by {e.entry}: {short(e.slope)} ({e.source}; it did not run)." for e in facts]
        return "\n".join(lines) or "Nothing is measured yet."


def _taken(e: SlopesMeasured) -> dict[str, float]:
    """What the lab takes, by the words under a mark; one mark where all conventions agree."""
    if len(set(e.taken)) == 1:
        return {"lab": e.taken[0]}
    return {f"lab {name}": slope for name, slope in zip(KINKS, e.taken, strict=True)}


def _fan(figure: Any, e: SlopesMeasured) -> None:
    """Lines through the point: the slopes of both sides, some between them, and the one that is taken."""
    reach = e.xs[-1] - e.at
    low, high = sorted((e.left, e.right)) if isfinite(e.left) and isfinite(e.right) else (0.0, 0.0)
    between = [low + (high - low) * (k + 1) / (BETWEEN + 1) for k in range(BETWEEN)] if high > low else []
    lines = [(slope, "between", "dot", 1.0, LEFT) for slope in between]
    lines += [(e.left, "left", "dash", 2.0, LEFT), (e.right, "right", "dashdot", 2.0, RIGHT)]
    lines += [(slope, "lab takes", "solid", 1.5, TAKEN) for slope in _taken(e).values()]
    named = set[str]()
    for slope, name, dash, width, colour in lines:
        if not (isfinite(slope) or (isinf(slope) and isfinite(e.value))):
            continue
        upright = [min(y for y in e.ys if isfinite(y)), max(y for y in e.ys if isfinite(y))]
        across = isfinite(slope)
        figure.add_scatter(
            x=[e.at - reach, e.at + reach] if across else [e.at] * 2,
            y=[e.value - slope * reach, e.value + slope * reach] if across else upright,
            mode="lines", name=name, line={"dash": dash, "width": width}, meta={"like": colour},
            showlegend=name not in named and name != "between", hovertext=f"slope {short(slope)}",
        )  # fmt: skip
        named.add(name)


def _takers(figure: Any, e: SlopesMeasured, choices: list[ChoiceKnown]) -> None:
    """Who takes which slope, between the slopes of the two sides."""
    taken = {**_taken(e), **{c.library: c.slope for c in choices}}
    where = {"xaxis": "x2", "yaxis": "y2", "showlegend": False}
    for slope, name, dash, colour in ((e.left, "slope left", "dash", LEFT), (e.right, "slope right", "dashdot", RIGHT)):
        if isfinite(slope):
            figure.add_scatter(
                x=list(taken), y=[slope] * len(taken), mode="lines", name=name, line={"dash": dash},
                meta={"like": colour}, **where,
            )  # fmt: skip
    sources = {c.library: c.source for c in choices}
    figure.add_scatter(
        x=list(taken), y=[s if isfinite(s) else None for s in taken.values()], mode="markers", name="taken",
        marker={"size": 12, "symbol": "diamond"}, meta={"like": TAKEN},
        hovertext=[sources.get(n, "ran") for n in taken], **where,
    )  # fmt: skip


def _layout(e: SlopesMeasured, n_takers: int) -> dict[str, Any]:
    slopes = [s for s in (e.left, e.right, *e.taken) if isfinite(s)]
    if not slopes:
        return theme.axes(e.entry, "value", height=380)
    low, high = min(slopes), max(slopes)
    room = 0.15 * (high - low) or 0.5
    return theme.axes(
        e.entry, "value", height=380, xaxis={"domain": [0.0, 0.36]},
        xaxis2={"domain": [0.46, 1.0], "anchor": "y2", "type": "category", "automargin": True,
                "range": [-0.5, n_takers - 0.5]},
        yaxis2={"anchor": "x2", "title": {"text": "slope taken"}, "range": [low - room, high + room],
                "zeroline": False, "automargin": True},
    )  # fmt: skip


def _line(e: SlopesMeasured) -> str:
    default, *others = dict.fromkeys(e.taken)
    more = f" (or {', '.join(map(short, others))})" if others else ""
    return (
        f"By {e.entry} at {short(e.at)}: from the left {_said(e.left)}, from the right {_said(e.right)};"
        f" the lab takes {short(default)}{more}."
    )


def _said(slope: float) -> str:
    return "none" if isnan(slope) else short(slope)


def _caption(e: SlopesMeasured, choices: list[ChoiceKnown]) -> str:
    words = _line(e)
    if isfinite(e.left) and isfinite(e.right) and e.left != e.right:
        words += " Every slope between touches the function there."
    if len(set(e.taken)) > 1:
        words += " lab.settings(kinks=...) chooses."
    by_slope: dict[float, list[str]] = {}
    for c in choices:
        by_slope.setdefault(c.slope, []).append(c.library)
    facts = "; ".join(f"{', '.join(names)}: {short(slope)}" for slope, names in by_slope.items())
    words += f" From documentation and source, not run: {facts}." if facts else ""
    return words
