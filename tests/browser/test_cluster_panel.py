"""The cluster panel in a real JupyterLab: its buttons strike real workers while a cell blocks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.harness import LabPage
from tests.browser.shots import Shots
from tests.browser.waiting import says
from tests.slices import sliced

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

Open = Callable[..., LabPage]

PANEL = """
import lab
from lab.parallel import DataParallel
from widgets import ClusterPanel
panel = ClusterPanel(n_workers=2)
panel
"""
KERNEL = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel"
TRAINS = """
train, test = lab.data.digits()
model = lab.nn.mlp(64, 16, 10, rng=0)
run = lab.fit(model, train, epochs=1_000_000, batch_size=64, on=DataParallel(panel.cluster))
run.wait()
"""


@sliced("theme")
@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_a_worker_is_stopped_and_killed_by_click_while_a_cell_waits_for_its_training(
    lab_page: Open, shots: Shots, theme: str
):
    lab = lab_page(PANEL)
    lab.theme(theme)
    look = theme.rsplit(maxsplit=1)[-1].lower()
    page = lab.page
    page.get_by_role("button", name="Start 2 worker processes on this machine").click()
    says(page, "The cluster is up: 2 workers.")
    page.evaluate(f"code => {{ {KERNEL}.requestExecute({{ code }}); }}", TRAINS)  # as a cell does, which blocks
    page.get_by_role("button", name="Stop worker 0, rank").wait_for()
    page.get_by_role("button", name="quarter of its time").nth(1).click()
    says(page, "was slowed by hand")
    page.get_by_role("button", name="at full speed").click()
    page.get_by_role("button", name="Stop worker 0, rank").click()
    page.get_by_role("button", name="Let worker 0").first.wait_for()
    says(page, "Worker 0 was stopped by hand.")
    shots(page.locator(".jp-OutputArea").first, f"panel-stopped-{look}")
    page.get_by_role("button", name="go on").click()
    page.get_by_role("button", name="Kill worker 1, rank").focus()
    page.keyboard.press("Enter")
    says(page, "The training went on at step")
    expect(page.locator(".lab-scene").first).to_contain_text("launch 2: 2 ranks on 2 of 2 workers")
    shots(page.locator(".jp-OutputArea").first, f"panel-resumed-{look}")
    page.evaluate(f"() => {KERNEL}.interrupt()")
    page.get_by_role("button", name="End all workers of this cluster").click()
    says(page, "No workers.")
