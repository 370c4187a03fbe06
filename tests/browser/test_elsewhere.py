"""The same pictures in JupyterLab, in Notebook 7 and as an app in Voila: graph, player, and a training with controls.

The notebook awaits nothing: Voila shows its page when all cells have run, so a cell that waited would never be seen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Page, expect
from playwright.sync_api import TimeoutError as NothingCame

from tests.browser.elsewhere import NotebookServer, VoilaServer
from tests.browser.harness import PATIENCE_MS, VIEWPORT, LabServer

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
run = lab.fit(model, train, validation=test, epochs=2_000)
dashboard(run)""",
]
SPOKEN = "words => [...document.querySelectorAll('[role=status]')].some(e => e.textContent.includes(words))"
POINTS = """() => Math.max(0, ...[...document.querySelectorAll(".lab-plot")]
    .flatMap(plot => (plot._fullData ?? []).map(trace => trace.x?.length ?? 0)))"""
READY = "() => !window.jupyterapp || window.jupyterapp.shell.currentWidget?.sessionContext?.isReady"
"""Where the front end says so: who runs cells before is asked for a kernel, and on a busy machine asked again."""
SERVERS = {"lab": LabServer, "notebook": NotebookServer, "voila": VoilaServer}


@pytest.fixture(params=SERVERS)
def opened(browser: Browser, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The notebook in its front end, all cells run."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, tmp_path / "app.ipynb")
    with SERVERS[request.param](tmp_path) as server:
        page = browser.new_page(viewport=VIEWPORT)
        page.set_default_timeout(PATIENCE_MS)
        page.goto(server.url("app.ipynb"), wait_until="domcontentloaded")
        if request.param != "voila":
            page.wait_for_selector(".jp-Notebook .jp-Cell")
            page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status='idle']")
            page.wait_for_function(READY)
            run_all(page)
        yield page
        page.close()


def run_all(page: Page) -> None:
    """By the menu, as a reader does; again where nothing comes of it: a click before the kernel is there is lost."""
    # Asked of who runs a cell before the kernels of the server are known; at any moment, so a click may meet it.
    asked = page.locator("dialog.jp-Dialog", has_text="Select Kernel")
    accept = asked.locator("button.jp-mod-accept").first  # on a busy machine it asks twice, or hears the second click
    page.add_locator_handler(asked, lambda _: accept.click(), no_wait_after=True)
    for _ in range(8):
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        with contextlib.suppress(NothingCame):
            # A kernel that is chosen in the dialog while cells run forgets the first of them: then all run again.
            page.wait_for_selector(".lab-node[data-key]", state="attached", timeout=PATIENCE_MS / 8)
            return
    raise AssertionError("no cell has run")


def test_graph_player_and_a_training_with_its_controls_live(
    opened: Page, shots: Path, request: pytest.FixtureRequest
):
    page, where = opened, request.node.callspec.id
    page.wait_for_function("() => document.querySelectorAll('.lab-node[data-key]').length === 4 + 3")
    page.get_by_role("button", name="Step", exact=True).first.click()
    page.wait_for_function(SPOKEN, arg="2 of 7")
    page.wait_for_function(f"() => ({POINTS})() > 3")
    page.get_by_role("button", name="Pause", exact=True).click()
    page.wait_for_function(SPOKEN, arg="paused")
    page.screenshot(path=str(shots / f"elsewhere-{where}.png"), full_page=True)
    page.get_by_role("button", name="Stop", exact=True).click()
    page.wait_for_function(SPOKEN, arg="stopped")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_disabled()
    assert page.locator(".jupyter-widgets-error-widget, .jp-RenderedText[data-mime-type*='stderr']").count() == 0
