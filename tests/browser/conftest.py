"""One JupyterLab server and one Chromium for all browser tests; screenshots are taken if $LAB_SHOTS names a folder.

Opening a page and starting a kernel costs more than most tests, so tests share one notebook: each writes its own cells
into it. A test that fails takes the notebook down with it, and the next one opens another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.harness import VIEWPORT, LabPage, LabServer, launch
from tests.browser.learner import Learner, in_lesson
from tests.browser.shots import Shots

FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember which tests failed."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


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
def shots() -> Shots:
    return Shots(os.environ.get("LAB_SHOTS", ""))


class Desk:
    """The notebook that tests share."""

    def __init__(self, browser: Browser, server: LabServer) -> None:
        self.browser, self.server = browser, server
        self.shared: LabPage | None = None

    def open(self, name: str, *cells: str) -> LabPage:
        """A new notebook in a new page with a new kernel."""
        lab = LabPage(self.browser.new_page(viewport=VIEWPORT), self.server, name)
        lab.write(*cells)
        lab.open()
        return lab

    def use(self, *cells: str) -> LabPage:
        """The shared notebook, with these cells in place of all others."""
        if self.shared is None:
            self.shared = self.open("shared.ipynb", *cells)
        else:
            self.shared.rewrite(*cells)
        return self.shared

    def clear(self) -> None:
        """End the shared notebook."""
        lab, self.shared = self.shared, None
        if lab is not None:
            lab.close()


@pytest.fixture(scope="session")
def desk(browser: Browser, server: LabServer) -> Iterator[Desk]:
    made = Desk(browser, server)
    yield made
    made.clear()


@pytest.fixture
def lab_page(desk: Desk, request: pytest.FixtureRequest) -> Iterator[Callable[..., LabPage]]:
    """A notebook made of the given cells, run; `fresh` for a page and a kernel of its own."""
    own: list[LabPage] = []

    def make(*cells: str, run: bool = True, fresh: bool = False) -> LabPage:
        if fresh:
            own.append(desk.open(f"{request.node.name[:60].replace('[', '_').replace(']', '')}.ipynb", *cells))
        lab = own[-1] if fresh else desk.use(*cells)
        if run:
            lab.run_all()
        return lab

    yield make
    for lab in own:
        lab.close()
    if request.node.stash.get(FAILED, False):
        desk.clear()


@pytest.fixture(scope="module")
def learner(request: pytest.FixtureRequest, browser: Browser, server: LabServer) -> Iterator[Learner]:
    """In the LESSON of the module, opened and run as it is: the stubs are there, nothing was predicted."""
    with in_lesson(browser, server, request.module.LESSON) as someone:
        someone.lab.run_all()
        yield someone
