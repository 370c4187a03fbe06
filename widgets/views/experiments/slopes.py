"""SlopesView: a function around a kink with the fan of slopes that touch it, and which of them is taken by whom."""

from __future__ import annotations

from math import ceil, isfinite, isinf, isnan, sqrt
from typing import Any

import numpy as np

from lab.config import KINKS
from lab.events import ChoiceKnown, Event, SlopesBegun, SlopesMeasured
from widgets.pictures import theme
from widgets.pictures.theme import short
from widgets.views.experiments.experiment import ExperimentView, Place, Rows, of

BETWEEN = 3
"""Slopes of the fan that are drawn between those of the two sides."""
ACROSS = 3
"""Panels that stand in one row; more are a square."""
GAP, SPACE = 0.14, 0.4
"""Of a panel's room: what is left for the labels of the next one, and below it."""
FUNCTION, LEFT, RIGHT, TAKEN = range(4)


class SlopesView(ExperimentView):
    """The slopes on both sides of a point, as `lab.measure_slopes` measured them; several entries, each in a panel.

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
        n_entries = max(len(measured), self._n_entries(rows))
        if n_entries > 1:
            return _panels(measured, n_entries), _caption(measured, [])
        choices = of(rows, ChoiceKnown)
        figure = go.Figure(layout=_layout(measured[0], len(_taken(measured[0])) + len(choices)))
        _fan(figure, measured[0])
        if any(map(isfinite, (measured[0].left, measured[0].right, *measured[0].taken))):
            _takers(figure, measured[0], choices)
        return figure, _caption(measured, choices)

    def _n_entries(self, rows: Rows) -> int:
        """How many entries this experiment looks at by the end of the recording, so that no panel moves."""
        begun, measured = (np.asarray(self.recording.columns(k)["seq"]) for k in (SlopesBegun, SlopesMeasured))
        end = min(begun[begun > rows[0].seq], default=np.inf)
        return int(((measured > rows[0].seq) & (measured < end)).sum())

    def place_of(self, event: Event, rows: Rows) -> Place | None:
        entries = [e.entry for e in of(rows, SlopesMeasured)]
        if isinstance(event, ChoiceKnown):
            return Place(event.library, event.slope, "2") if entries == [event.entry] else None
        if not isinstance(event, SlopesMeasured) or event.entry not in entries:
            return None
        return Place(event.at, event.value, _axes(entries.index(event.entry)))

    def told(self, rows: Rows) -> str:
        lines = [_line(e) for e in reversed(of(rows, SlopesMeasured))]
        facts = of(rows, ChoiceKnown)
        lines += [f"{e.library} by {e.entry}: {short(e.slope)} ({e.source}; it did not run)." for e in facts]
        return "\n".join(lines) or "Nothing is measured yet."


def _axes(panel: int) -> str:
    """The number of a panel's axes, as plotly has it."""
    return str(panel + 1) if panel else ""


def _taken(e: SlopesMeasured) -> dict[str, float]:
    """What the lab takes, by the words under a mark; one mark where all conventions agree."""
    if len(set(map(short, e.taken))) == 1:
        return {"lab": e.taken[0]}
    return {f"lab {name}": slope for name, slope in zip(KINKS, e.taken, strict=True)}


def _panels(measured: list[SlopesMeasured], n: int) -> Any:
    """A fan for each entry, in rows, all on the same scale."""
    import plotly.graph_objects as go

    across = n if n <= ACROSS else ceil(sqrt(n))
    down = ceil(n / across)
    wide, tall = 1.0 / (across - GAP), 1.0 / (down - SPACE)  # from panel to panel
    more: dict[str, Any] = {}
    figure = go.Figure()
    for k, e in enumerate(measured):
        _fan(figure, e, _axes(k), named=not k)
    ys = [y for trace in figure.data for y in trace.y if y is not None and isfinite(y)] or [0.0, 1.0]
    room = 0.05 * (max(ys) - min(ys)) or 0.5
    for k in range(n):
        left, top = k % across * wide, 1.0 - k // across * tall
        title = f"{measured[k].entry}: {_kind(measured[k])}" if k < len(measured) else ""
        more[f"xaxis{_axes(k)}"] = {"domain": [left, min(1.0, left + wide * (1 - GAP))], "zeroline": False,
                                    "anchor": f"y{_axes(k)}", "title": {"text": title}, "nticks": 5}  # fmt: skip
        more[f"yaxis{_axes(k)}"] = {"domain": [max(0.0, top - tall * (1 - SPACE)), top], "anchor": f"x{_axes(k)}",
                                    "range": [min(ys) - room, max(ys) + room], "zeroline": False, "nticks": 5,
                                    "title": {"text": "" if k % across else "value"}, "automargin": True}  # fmt: skip
    figure.update_layout(theme.axes("", "", height=120 + 220 * down, **more))
    return figure


def _kind(e: SlopesMeasured) -> str:
    """What there is at the place, for the title of a panel."""
    if isnan(e.left) and isnan(e.right):
        return "no slopes"
    if not (isfinite(e.left) and isfinite(e.right)):
        return f"left {_said(e.left)}, right {_said(e.right)}"
    alike = abs(e.left - e.right) <= 1e-6 * max(1.0, abs(e.left), abs(e.right))
    return f"slope {short(e.right)}" if alike else f"kink, {short(e.left)} to {short(e.right)}"


def _fan(figure: Any, e: SlopesMeasured, axes: str = "", *, named: bool = True) -> None:
    """The function and lines through the point: slopes of both sides, some between them, those that are taken.

    Args:
        axes: number of the axes.
        named: whether the legend names them.
    """
    where = {"xaxis": f"x{axes}", "yaxis": f"y{axes}"} if axes else {}
    figure.add_scatter(x=e.xs, y=e.ys, mode="lines", line={"width": 3}, name="function", meta={"like": FUNCTION},
                       showlegend=named, **where)  # fmt: skip
    reach = e.xs[-1] - e.at
    low, high = sorted((e.left, e.right)) if isfinite(e.left) and isfinite(e.right) else (0.0, 0.0)
    between = [low + (high - low) * (k + 1) / (BETWEEN + 1) for k in range(BETWEEN)] if high > low else []
    lines = [(slope, "between", "", "dot", 1.0, LEFT) for slope in between]
    lines += [(e.left, "left", "", "dash", 2.0, LEFT), (e.right, "right", "", "dashdot", 2.0, RIGHT)]
    lines += [(s, "lab takes", name.removeprefix("lab").strip(), "solid", 1.5, TAKEN) for name, s in _taken(e).items()]
    told = set[str]() if named else {"left", "right", "lab takes"}
    for slope, name, end, dash, width, colour in lines:
        if not (isfinite(slope) or (isinf(slope) and isfinite(e.value))):
            continue
        upright = [min(y for y in e.ys if isfinite(y)), max(y for y in e.ys if isfinite(y))]
        across = isfinite(slope)
        words = {"text": ["", end], "textposition": "top left", "mode": "lines+text"} if end else {"mode": "lines"}
        figure.add_scatter(
            x=[e.at - reach, e.at + reach] if across else [e.at] * 2,
            y=[e.value - slope * reach, e.value + slope * reach] if across else upright,
            name=name, line={"dash": dash, "width": width}, meta={"like": colour}, **words, **where,
            showlegend=name not in told and name != "between", hovertext=f"{end} slope {short(slope)}".lstrip(),
        )  # fmt: skip
        told.add(name)


def _takers(figure: Any, e: SlopesMeasured, choices: list[ChoiceKnown]) -> None:
    """Who takes which slope, between the slopes of the two sides."""
    taken = {**_taken(e), **{c.library: c.slope for c in choices}}
    names = [name if isfinite(slope) else f"{name}: {short(slope)}" for name, slope in taken.items()]
    where = {"xaxis": "x2", "yaxis": "y2", "showlegend": False}
    for slope, name, dash, colour in ((e.left, "slope left", "dash", LEFT), (e.right, "slope right", "dashdot", RIGHT)):
        if isfinite(slope):
            figure.add_scatter(
                x=names, y=[slope] * len(names), mode="lines", name=name, line={"dash": dash}, meta={"like": colour},
                **where,
            )  # fmt: skip
    sources = {c.library: c.source for c in choices}
    figure.add_scatter(
        x=names, y=[s if isfinite(s) else None for s in taken.values()], mode="markers", name="taken",
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
    default, *others = dict.fromkeys("no number (nan)" if isnan(slope) else short(slope) for slope in e.taken)
    more = f" (or {', '.join(others)})" if others else ""
    return (
        f"By {e.entry} at {short(e.at)}: from the left {_said(e.left)}, from the right {_said(e.right)};"
        f" the lab takes {default}{more}."
    )


def _said(slope: float) -> str:
    return "none" if isnan(slope) else short(slope)


def _caption(measured: list[SlopesMeasured], choices: list[ChoiceKnown]) -> str:
    e = measured[-1]
    words = _line(e) if len(measured) == 1 else f"By {len(measured)} entries; each panel is the function along one."
    if any(_kind(e).startswith("kink") for e in measured):
        words += " At a kink every slope between touches the function."
    if any(len(_taken(e)) > 1 for e in measured):
        words += " lab.settings(kinks=...) chooses what the lab takes."
    by_slope: dict[float, list[str]] = {}
    for c in choices:
        by_slope.setdefault(c.slope, []).append(c.library)
    facts = "; ".join(f"{', '.join(names)}: {short(slope)}" for slope, names in by_slope.items())
    words += f" From documentation and source, not run: {facts}." if facts else ""
    return words
