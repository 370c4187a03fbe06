"""Every view of differentiation draws and tells arrays that are empty, of no axis, or hold nan and infinities."""

from __future__ import annotations

import numpy as np
import pytest

import lab
from widgets import (
    BroadcastView,
    ContributionView,
    DifferenceView,
    DualView,
    GraphView,
    VisitsView,
    VmapView,
    WhyView,
)

NAN, INF = float("nan"), float("inf")
ARRAYS = {
    "empty": np.zeros((0, 3)), "without columns": np.zeros((2, 0)), "no axis": np.array(2.0),
    "nan": np.array([[1.0, NAN, 2.0]]), "all nan": np.full((2, 3), NAN), "infinite": np.array([INF, -INF, 1.0]),
    "nan of no axis": np.array(NAN),
    "infinity of no axis": np.array(-INF), "zero": np.zeros(3), "huge": np.array([1e308, -1e308]),
}  # fmt: skip
VIEWS = {
    "graph": GraphView, "contributions": ContributionView, "broadcast": BroadcastView, "visits": VisitsView,
    "dual": DualView, "vmap": VmapView, "why": lambda rec: WhyView(rec, "x"),
    "difference": lambda rec: DifferenceView(rec, made(np.array([1.0, 2.0, 3.0]))),
}  # fmt: skip


def made(value):
    """A recording with all ways to differentiate a function of an array that is broadcast, forward and back."""
    x = lab.tensor(value, requires_grad=True, name="x")

    def f(x):
        return lab.sum(lab.log(x) * lab.exp(-x) + lab.tensor(3.0) / x)

    with np.errstate(all="ignore"), lab.record(detail="value") as rec:
        y = f(x)
        lab.count_visits(y)
        lab.count_visits(y, "path")
        y.backward()
        lab.jvp(f, (value,), (np.ones_like(value),))
        if value.ndim:
            lab.vmap(lambda row: lab.sin(row) * row)(value) if len(value) else None
    return rec


@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.parametrize("name", ARRAYS)
def test_a_view_draws_and_tells_it_at_every_stop(kind, name):
    view = VIEWS[kind](made(ARRAYS[name]))
    for position in {0, *map(int, view.stop_positions(view.recording)), len(view.recording)}:
        assert view.picture_at(position) is not None
        assert view.text_at(position)
    assert "failed" not in view.svg()
