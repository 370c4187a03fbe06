"""The harness itself: what it takes for a page at rest."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.harness import RUNNING, LabPage

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_a_file_browser_beside_the_notebook_is_not_a_running_cell(lab_page: Callable[..., LabPage]):
    lab = lab_page("print('done')", fresh=True, run=False)
    lab.page.evaluate("() => window.jupyterapp.shell.mode = 'multiple-document'")
    lab.command("filebrowser:toggle-main")
    lab.page.locator(".jp-DirListing-item.jp-mod-running").first.wait_for()
    lab.run_all()
    expect(lab.page.locator(".jp-OutputArea-output", has_text="done")).to_be_visible()


def test_a_cell_that_runs_is_counted(lab_page: Callable[..., LabPage]):
    lab = lab_page("import threading; print('begun'); threading.Event().wait()", run=False)
    lab.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    expect(lab.page.locator(".jp-OutputArea-output", has_text="begun")).to_be_visible()
    lab.page.wait_for_function(f"() => {RUNNING} === 1")
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.interrupt()")
    lab.page.wait_for_function(f"() => {RUNNING} === 0")
    assert lab.cell_errors() == ["KeyboardInterrupt: "]
