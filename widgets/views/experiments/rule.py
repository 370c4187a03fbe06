"""RuleView: the Jacobian of a rule beside that of differences, and where the two differ, entry by entry."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from lab.events import FaultFound, JacobianCompared, RuleCheckBegun
from lab.words import counted
from widgets.pictures import theme
from widgets.pictures.theme import MINUS, short
from widgets.views.experiments.experiment import ExperimentView, Rows, of

PANELS = (
    ("by differences", "", (0.0, 0.29)),
    ("by the rule", "2", (0.355, 0.645)),
    ("rule less differences", "3", (0.71, 1.0)),
)
"""Name, number of the axes and room of each map."""
WRITTEN = 36
"""The Jacobians of so few entries have their numbers in them."""


UPON = {"color": "#000000", "line": {"color": "#FFFFFF", "width": 1.5}}
"""How a mark looks that reads on every fill of every theme."""


class RuleView(ExperimentView):
    """A rule held against differences, as `lab.measure_rule` compared them; of several comparisons the latest.

    Args:
        source: what that returned, or a Recording of it.

    Example:
        >>> import lab
        >>> wrong = lab.custom_vjp(lab.sin).defvjp(lambda x: (lab.sin(x), x), lambda x, ct: (ct * lab.sin(x),))
        >>> found = lab.measure_rule(wrong, (lab.tensor([0.5, 2.0]),), modes=("rev",))
        >>> print(RuleView(found).sentence_at(2))
        sin in reverse mode: 2 of 4 entries are WRONG; worst: result[1] by x[1] is 0.9093, differences say −0.4161.
    """

    listens = (RuleCheckBegun, JacobianCompared, FaultFound)
    stops = (JacobianCompared, FaultFound)
    title = "A rule against differences"
    shows = "a rule held against differences"
    write = "RuleView(lab.measure_rule(f, (x,)))"

    def drawn(self, rows: Rows) -> tuple[Any, str]:
        import plotly.graph_objects as go

        compared = of(rows, JacobianCompared)
        if not compared:
            return go.Figure(layout=theme.blank(theme.axes())), "Nothing is compared yet."
        now = compared[-1]
        figure = go.Figure(layout=_layout(now))
        (expected, actual, _), off, (wrong, unknown) = _grids(now), _off(now), _verdict(now)
        for (name, axis, _), grid, limit in zip(PANELS, (expected, actual, off), _limits(now), strict=True):
            axes = {"xaxis": f"x{axis}", "yaxis": f"y{axis}", "showlegend": False}
            written = grid.size <= WRITTEN and axis != "3"  # there are the marks
            texts = [[short(v) if isfinite(v) else "" for v in row] for row in grid.tolist()]
            told = {"text": texts, "texttemplate": "%{text}"}
            figure.add_heatmap(
                x=now.arguments, y=_rows(now), z=grid, zmin=-limit, zmax=limit, zmid=0.0, name=name, showscale=False,
                xgap=1, ygap=1, **(told if written else {}), **axes,
            )  # fmt: skip
            if axis != "3":
                _marks(figure, now, ~np.isfinite(grid), "no number", grid if written else None, "circle-open", axes)
        _marks(figure, now, unknown, "not compared", np.full(off.shape, "?"), "", axes)
        _marks(figure, now, wrong, "wrong", None, "x", axes)
        return figure, _caption(rows, now)

    def told(self, rows: Rows) -> str:
        lines = [_line(e) for e in reversed(of(rows, JacobianCompared))]
        faults = [_fault(e) for e in of(rows, FaultFound)]
        return "\n".join([*faults, *lines]) or "Nothing is compared yet."


def _grids(e: JacobianCompared) -> list[Any]:
    shape = len(e.results), len(e.arguments)
    return [np.array(column).reshape(shape) for column in (e.expected, e.actual, e.errors)]


def _off(e: JacobianCompared) -> Any:
    expected, actual, _ = _grids(e)
    with np.errstate(invalid="ignore"):  # of two infinities
        return actual - expected


def _rows(e: JacobianCompared) -> list[str]:
    """Names of the rows, short where they all begin alike."""
    return [name.removeprefix("result") or name for name in e.results]


def _verdict(e: JacobianCompared) -> tuple[Any, Any]:
    """Which entries are wrong, and which nobody can tell: one of the two has no number."""
    expected, actual, errors = _grids(e)
    wrong = ~(errors <= 1.0)
    return wrong, ~(np.isfinite(expected) & np.isfinite(actual)) & ~wrong


def _limits(e: JacobianCompared) -> tuple[float, float, float]:
    """The number that has the strongest colour in each map; the first two share it."""
    expected, actual, _ = _grids(e)
    both = np.abs(np.concatenate([expected, actual]))
    reach = float(both[np.isfinite(both)].max(initial=0.0)) or 1.0
    off, wrong = _off(e), _verdict(e)[0]
    far = float(np.abs(off[wrong & np.isfinite(off)]).max(initial=0.0)) or reach  # rounding has no colour
    return reach, reach, far


def _marks(
    figure: Any, e: JacobianCompared, where: Any, name: str, words: Any, symbol: str, axes: dict[str, Any]
) -> None:  # fmt: skip
    """Marks on some entries of a map: words, or a symbol where there are none."""
    places = np.argwhere(where)
    look: dict[str, Any] = {"mode": "markers", "marker": {"symbol": symbol, "size": 10, **UPON}}
    if words is not None:
        said = words[where].tolist()
        look = {"mode": "text", "text": [v if isinstance(v, str) else short(v) for v in said]}
    figure.add_scatter(
        x=[e.arguments[i] for _, i in places.tolist()], y=[_rows(e)[j] for j, _ in places.tolist()], name=name,
        **look, **axes,
    )  # fmt: skip


def _line(e: JacobianCompared) -> str:
    _, actual, errors = _grids(e)
    wrong, unknown = _verdict(e)
    total, bad, open_ = counted(errors.size, "entry", "entries"), int(wrong.sum()), int(unknown.sum())
    said = f"all {total} right" if not open_ else f"{errors.size - open_} of {total} right"
    if bad:
        j, i = np.unravel_index(int(np.argmax(np.where(wrong, np.nan_to_num(errors, nan=np.inf), 0.0))), errors.shape)
        said = (
            f"{bad} of {total} {'is' if bad == 1 else 'are'} WRONG; worst: {e.results[j]} by {e.arguments[i]} is"
            f" {short(float(actual[j, i]))}, differences say {short(float(_grids(e)[0][j, i]))}"
        )
    more = f"; {open_} cannot be compared, no number there" if open_ else ""
    return f"{'the function' if e.what == '<lambda>' else e.what} in {e.mode}: {said}{more}."


def _fault(e: FaultFound) -> str:
    where = e.where.replace("\\", "/").rpartition("/")[2]  # folders say nothing to a reader
    return f"The rule of {e.op} for {e.argument} is at fault{f', at {where}' if where else ''}."


def _caption(rows: Rows, now: JacobianCompared) -> str:
    fault = "".join(f" {_fault(e)}" for e in of(rows, FaultFound))
    tolerance = short(of(rows, RuleCheckBegun)[0].tolerance)
    reach, _, far = map(short, _limits(now))
    marks = " ?: not compared." * bool(_verdict(now)[1].any())
    numberless = not all(np.isfinite(grid).all() for grid in _grids(now)[:2])
    marks += " Circles: no number." * (numberless and len(now.expected) > WRITTEN)
    return (
        f"{_line(now)}{fault} Rows: results, columns: arguments. Left by differences, in the middle by the rule in the"
        f" same colours, from {MINUS}{reach} (blue) to {reach} (orange); right what is between them, to {far}, with a"
        f" mark on each wrong entry: it is off by more than {tolerance} of itself or of a tenth of the largest.{marks}"
    )


def _layout(e: JacobianCompared) -> dict[str, Any]:
    height = 200 + 28 * min(12, max(2, len(e.results)))
    more: dict[str, Any] = {}
    for name, axis, (low, high) in PANELS:
        flat = {"showgrid": False, "zeroline": False, "type": "category", "automargin": True}
        more[f"xaxis{axis}"] = {**flat, "domain": [low, high], "title": {"text": name}, "anchor": f"y{axis}",
                                "range": [-0.5, len(e.arguments) - 0.5]}  # fmt: skip
        more[f"yaxis{axis}"] = {**flat, "anchor": f"x{axis}", "range": [len(e.results) - 0.5, -0.5],
                                "showticklabels": not axis, "ticks": "" if axis else "outside"}  # fmt: skip
    return theme.axes("", "", height=height, **more)
