"""The same pictures in JupyterLab, in Notebook 7 and as an app in Voila: graph, player, and a training with controls.

The notebook awaits nothing: Voila shows its page when all cells have run, so a cell that waited would never be seen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.elsewhere import NotebookServer, VoilaServer
from tests.browser.harness import VIEWPORT, LabPage, LabServer
from tests.browser.shots import Shots
from tests.browser.waiting import says

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

CELLS = [
    """import lab
from widgets import GraphView, Player, dashboard
x = lab.tensor(2.0, requires_grad=True, name="x")
y = lab.tensor(3.0, requires_grad=True, name="y")
with lab.record(detail="value") as rec:
    z = x * y + x
    z.backward()
GraphView(rec)""",
    "Player(GraphView(rec))",
    """train, test = lab.data.digits()
model = lab.nn.Sequential(lab.nn.Linear(64, 16, rng=0), lab.nn.Tanh(), lab.nn.Linear(16, 10, rng=1))
run = lab.fit(model, train, validation=test, epochs=1_000_000)
dashboard(run)""",
]
POINTS = """() => Math.max(0, ...[...document.querySelectorAll(".lab-plot")]
    .flatMap(plot => (plot._fullData ?? []).map(trace => trace.x?.length ?? 0)))"""


@pytest.fixture(params=["lab", "notebook", "voila"])
def opened(browser: Browser, server: LabServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The notebook in its front end, all cells run."""
    with contextlib.ExitStack() as stack:
        others = {"notebook": NotebookServer, "voila": VoilaServer}
        running = stack.enter_context(others[request.param](tmp_path)) if request.param in others else server
        app = LabPage(browser.new_page(viewport=VIEWPORT), running, "app.ipynb")
        app.write(*CELLS)
        if request.param == "voila":
            app.page.goto(running.url(app.name), wait_until="domcontentloaded")
            yield app.page
            app.page.close()
        else:
            app.open()
            app.run_all()
            yield app.page
            app.close()


def test_graph_player_and_a_training_with_its_controls_live(opened: Page, shots: Shots, request: pytest.FixtureRequest):
    page, where = opened, request.node.callspec.id
    page.wait_for_function("() => document.querySelectorAll('.lab-node[data-key]').length === 4 + 3")
    page.get_by_role("button", name="Step", exact=True).first.click()
    says(page, "2 of 7")
    page.wait_for_function(f"() => ({POINTS})() > 3")
    page.get_by_role("button", name="Pause", exact=True).click()
    says(page, "paused")
    shots(page, f"elsewhere-{where}")
    page.get_by_role("button", name="Stop", exact=True).click()
    says(page, "stopped")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_disabled()
    expect(page.locator(".jupyter-widgets-error-widget, .jp-RenderedText[data-mime-type*='stderr']")).to_have_count(0)
