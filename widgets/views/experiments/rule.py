"""RuleView: the Jacobian of a rule beside that of differences, and where the two differ, entry by entry."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.events import FaultFound, JacobianCompared, RuleCheckBegun
from lab.words import counted
from widgets.pictures import theme
from widgets.pictures.theme import short
from widgets.views.experiments.experiment import ExperimentView, Rows, of

PANELS = (
    ("by differences", "", (0.0, 0.29)),
    ("by the rule", "2", (0.355, 0.645)),
    ("rule less differences", "3", (0.71, 1.0)),
)
"""Name, number of the axes and room of each map."""
WRITTEN = 36
"""The Jacobians of so few entries have their numbers in them."""


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
        expected, actual, errors = _grids(now)
        both = np.abs(np.concatenate([expected, actual]))
        reach = float(both[np.isfinite(both)].max(initial=0.0)) or 1.0
        off, wrong = actual - expected, ~(errors <= 1.0)
        far = float(np.abs(off[wrong & np.isfinite(off)]).max(initial=0.0)) or reach  # rounding has no colour
        for (name, axis, _), grid, limit in zip(PANELS, (expected, actual, off), (reach, reach, far), strict=True):
            figure.add_heatmap(
                x=now.arguments, y=_rows(now), z=grid, zmin=-limit, zmax=limit, zmid=0.0, name=name,
                showscale=False, showlegend=False, xaxis=f"x{axis}", yaxis=f"y{axis}", xgap=1, ygap=1,
                texttemplate="%{z:.3g}" if grid.size <= WRITTEN and axis != "3" else None,  # there are the marks
            )  # fmt: skip
        bad = np.argwhere(wrong).tolist()
        figure.add_scatter(
            x=[now.arguments[i] for _, i in bad], y=[_rows(now)[j] for j, _ in bad], mode="markers", name="wrong",
            marker={"symbol": "x", "size": 10}, xaxis="x3", yaxis="y3", showlegend=False,
        )  # fmt: skip
        return figure, _caption(rows, now)

    def told(self, rows: Rows) -> str:
        lines = [_line(e) for e in reversed(of(rows, JacobianCompared))]
        faults = [_fault(e) for e in of(rows, FaultFound)]
        return "\n".join([*faults, *lines]) or "Nothing is compared yet."


def _grids(e: JacobianCompared) -> list[Any]:
    shape = len(e.results), len(e.arguments)
    return [np.array(column).reshape(shape) for column in (e.expected, e.actual, e.errors)]


def _rows(e: JacobianCompared) -> list[str]:
    """Names of the rows, short where they all begin alike."""
    return [name.removeprefix("result") or name for name in e.results]


def _line(e: JacobianCompared) -> str:
    expected, actual, errors = _grids(e)
    what = "the function" if e.what == "<lambda>" else e.what
    bad = ~(errors <= 1.0)
    if not bad.any():
        return f"{what} in {e.mode}: all {counted(errors.size, 'entry', 'entries')} right."
    j, i = np.unravel_index(int(np.argmax(np.nan_to_num(errors, nan=np.inf, posinf=np.inf))), errors.shape)
    return (
        f"{what} in {e.mode}: {bad.sum()} of {counted(errors.size, 'entry', 'entries')}"
        f" {'is' if bad.sum() == 1 else 'are'} WRONG; worst: {e.results[j]} by {e.arguments[i]} is"
        f" {short(float(actual[j, i]))}, differences say {short(float(expected[j, i]))}."
    )


def _fault(e: FaultFound) -> str:
    where = e.where.replace("\\", "/").rpartition("/")[2]  # folders say nothing to a reader
    return f"The rule of {e.op} for {e.argument} is at fault{f', at {where}' if where else ''}."


def _caption(rows: Rows, now: JacobianCompared) -> str:
    fault = "".join(f" {_fault(e)}" for e in of(rows, FaultFound))
    return (
        f"{_line(now)}{fault} Rows: results, columns: arguments. Left by differences, in the middle by the rule in the"
        " same colours; right what is between them, with a mark on each wrong entry."
    )


def _layout(e: JacobianCompared) -> dict[str, Any]:
    height = 200 + 28 * min(12, max(2, len(e.results)))
    more: dict[str, Any] = {}
    for name, axis, (low, high) in PANELS:
        flat = {"showgrid": False, "zeroline": False, "type": "category", "automargin": True}
        more[f"xaxis{axis}"] = {**flat, "domain": [low, high], "title": {"text": name}, "anchor": f"y{axis}"}
        more[f"yaxis{axis}"] = {**flat, "anchor": f"x{axis}", "autorange": "reversed", "showticklabels": not axis,
                                "ticks": "" if axis else "outside"}  # fmt: skip
    return theme.axes("", "", height=height, **more)
