"""Fifty views come and go in a real page: elements, listeners and models go back to where they were."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.harness import LabPage

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

SETUP = """
import gc, weakref
import ipywidgets as ipw
import ipywidgets.widgets.widget as w
import lab
from IPython.display import display
from lab.nn import Tanh, mlp
from lab.parallel import run_ranks
from widgets import *
from widgets.live.pacer import PACER

x = lab.tensor(2.0, requires_grad=True, name="x")
with lab.record() as graph:
    (x * x + x).backward()

def program(comm):
    import numpy as np
    comm.all_reduce_(np.arange(4.0))
with lab.record() as ring:
    run_ranks(program, world_size=3)

train, _ = lab.data.digits()
run = lab.fit(mlp(64, 8, 10, activation=Tanh, rng=0), train, epochs=1)
run.wait()

def made(k):
    makes = (lambda: GraphView(graph), lambda: LossView(run), lambda: GradientView(run), lambda: RingView(ring),
             lambda: DataParallelView(ring), lambda: PipelineView(ring), lambda: ClusterView(ring),
             lambda: WhyView(graph, "x"), lambda: ContributionView(graph), lambda: DualView(graph),
             lambda: VisitsView(graph), lambda: BroadcastView(graph), lambda: VmapView(graph), lambda: LayersView(run),
             lambda: Player(GraphView(graph)),
             lambda: DifferenceView(graph, graph))
    return makes[k % len(makes)]()

def n_pictures(widget):
    return hasattr(widget, "accepts") + sum(map(n_pictures, getattr(widget, "children", ())))
"""
FIRST = "first = [made(k) for k in range(10)]; kept = ipw.VBox([v.widget for v in first]); display(kept)"
OPEN = "views = [made(k) for k in range(10)]; many = ipw.VBox([v.widget for v in views]); display(many)"
CLOSE = """
for view in views: view.dispose()
many.layout.close(); many.close()
del many, views, view
gc.collect()
"""
RUN = """code => {
    const cell = window.jupyterapp.shell.currentWidget.content.activeCell;
    cell.model.sharedModel.setSource(code);
    return window.jupyterapp.commands.execute("notebook:run-cell").then(() => null);
}"""
NODES_KEPT = 60
"""Of a view, all of them emptied boxes: ipywidgets keeps 5 for each of its own widgets that were closed. A view that
was kept whole would have hundreds."""
DRAWN = """n => {
    const all = [...document.querySelectorAll(".lab-root")];
    return all.length === n && all.every(root => root.matches(".lab-scene") || root.querySelector(".main-svg"));
}"""


def counts(lab: LabPage) -> dict[str, int]:
    """What Chromium itself counts, after its garbage was collected."""
    session = lab.page.context.new_cdp_session(lab.page)
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    found = session.send("Memory.getDOMCounters")
    session.detach()
    return {name: int(found[name]) for name in ("nodes", "jsEventListeners")}


def test_fifty_views_that_were_closed_leave_nothing_in_page_and_kernel(lab_page: Callable[..., LabPage]):
    lab = lab_page(SETUP, FIRST, fresh=True)
    assert lab.cell_errors() == []
    n_kept = int(lab.kernel("print(n_pictures(kept))"))
    lab.page.wait_for_function(DRAWN, arg=n_kept)
    lab.page.evaluate("() => window.jupyterapp.commands.execute('notebook:insert-cell-below')")
    models = "print(len(w._instances), sum(tick.ref() is not None for tick in PACER._ticks))"

    def come_and_go() -> tuple[list[int], dict[str, int]]:
        """Ten views, one of each kind: anywidget gives each 2 seconds to begin, and a busy page may not begin 100."""
        lab.page.evaluate(RUN, OPEN)
        lab.page.wait_for_function(DRAWN, arg=2 * n_kept)
        lab.kernel(CLOSE)
        lab.page.wait_for_function(DRAWN, arg=n_kept)
        lab.page.evaluate(RUN, "None")  # the output that held them goes, too
        return [int(n) for n in lab.kernel(models).split()], counts(lab)

    before, seen = come_and_go()  # what is made once and kept, as plotly's measuring elements, is there now
    for _ in range(5):
        after, left = come_and_go()
    assert all(n <= m for n, m in zip(after, before, strict=True)), (before, after)
    assert left["jsEventListeners"] - seen["jsEventListeners"] < 25, (seen, left)
    assert left["nodes"] - seen["nodes"] < 50 * NODES_KEPT, (seen, left)
    assert lab.errors == []
