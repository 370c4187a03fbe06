"""One JupyterLab server and one Chromium for all browser tests; screenshots go to $LAB_SHOTS, or to a temporary
folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.harness import LabPage, LabServer, launch


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = launch(playwright)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    with LabServer(tmp_path_factory.mktemp("notebooks")) as running:
        yield running


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(os.environ.get("LAB_SHOTS") or tmp_path_factory.mktemp("shots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def lab_page(browser: Browser, server: LabServer, request: pytest.FixtureRequest) -> Iterator[Callable[..., LabPage]]:
    """Opens a notebook made of the given cells, runs it all, and at the end shuts its kernel down."""
    opened: list[LabPage] = []

    def make(*cells: str, run: bool = True) -> LabPage:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        lab = LabPage(page, server, f"{request.node.name[:60].replace('[', '_').replace(']', '')}.ipynb")
        opened.append(lab)
        lab.write(*cells)
        lab.open()
        if run:
            lab.run_all()
        return lab

    yield make
    for lab in opened:
        lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        lab.page.close()
