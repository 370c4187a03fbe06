"""A learner in the open lesson: what they see, press and type, by the code of the cell that they look at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator

from tests.browser.harness import KERNEL, RUNNING, VIEWPORT, LabPage, LabServer

LESSONS = Path(__file__).parents[2] / "notebooks"

RESTING = f"() => {KERNEL}.status === 'idle' && !{RUNNING}"


class Learner:
    """What a learner sees and does in the open lesson."""

    def __init__(self, lab: LabPage) -> None:
        self.lab, self.page = lab, lab.page

    def cell(self, code: str) -> Locator:
        """The cell whose code contains this."""
        sources: list[str] = self.page.evaluate(
            "() => window.jupyterapp.shell.currentWidget.content.widgets.map(c => c.model.sharedModel.getSource())"
        )
        (number,) = [i for i, source in enumerate(sources) if code in source]
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number)

    def press(self, code: str, button: str) -> None:
        """Press a button in the output of a cell."""
        self.button(code, button).click()

    def button(self, code: str, name: str) -> Locator:
        """A button by its name, as a screen reader says it."""
        return self.cell(code).get_by_role("button", name=name, exact=True)

    def status(self, code: str) -> Locator:
        """The line that a screen reader speaks when it changes."""
        return self.cell(code).get_by_role("status").first

    def predict(self, name: str, value: str) -> None:
        """Type a prediction and commit to it, by keyboard alone."""
        self.cell(f'lesson.predict("{name}"').get_by_role("textbox").last.click()
        self.page.keyboard.type(value)
        self.page.keyboard.press("Tab")
        self.page.keyboard.press("Enter")

    def kernel(self, expression: str) -> Any:
        """The value of an expression in the kernel."""
        return json.loads(self.lab.kernel(f"import json; print(json.dumps({expression}))"))

    def nodes(self, code: str) -> dict[str, tuple[str, ...]]:
        """Label, second and third line of every box in a cell's graph, by label."""
        rows: list[list[str]] = (
            self.cell(code)
            .locator(".lab-node[data-key]")
            .evaluate_all(
                """boxes => boxes.filter(b => !b.closest('[hidden]')).map(b =>
                 ['label', 'sublabel', 'gradient'].map(c => b.querySelector('.lab-' + c)?.textContent ?? ''))"""
            )
        )
        return {label: tuple(rest) for label, *rest in rows}

    def charts(self, code: str) -> list[dict[str, dict[str, list[float]]]]:
        """The lines of every chart in a cell's output, by name, as plotly holds them in the page."""
        found: list[dict[str, dict[str, list[float]]]] = (
            self.cell(code)
            .locator(".lab-plot")
            .evaluate_all(
                """plots => plots.map(p => Object.fromEntries((p._fullData ?? []).map(t =>
                 [t.name, { x: Array.from(t.x ?? []), y: Array.from(t.y ?? []) }])))"""
            )
        )
        return found

    def watch_lines(self, code: str, n: int) -> None:
        """Wait until the first chart of a cell has `n` lines."""
        handle = self.cell(code).locator(".lab-plot").first.element_handle()
        self.page.wait_for_function("([plot, n]) => plot._fullData?.length === n", arg=[handle, n])

    def rest(self) -> None:
        """Wait until every cell has run."""
        self.page.wait_for_function(RESTING)

    def run(self, code: str) -> None:
        """Run a cell by keyboard and wait for it."""
        self.cell(code).locator(".cm-content").click()
        self.page.keyboard.press("Shift+Enter")
        self.rest()

    def type(self, code: str, text: str) -> None:
        """Type something else into a cell, run it, and wait for it."""
        self.cell(code).locator(".cm-content").click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(text)
        self.page.keyboard.press("Shift+Enter")
        self.rest()

    def choose(self, name: str, choice: str) -> None:
        """Commit to one of the choices of a prediction."""
        card = self.cell(f'"{name}",')
        card.get_by_label(choice).check()
        card.get_by_role("button", name="Commit").click()

    def said(self, code: str) -> str:
        """The text of a cell's output."""
        return self.cell(code).locator(".jp-OutputArea-output").last.inner_text()


@contextmanager
def in_lesson(
    browser: Browser, server: LabServer, name: str, *, change: tuple[str, str] | None = None
) -> Iterator[Learner]:
    """Someone in a lesson that is open and has not run yet, without progress; its workers end with it.

    Args:
        name: of the lesson's notebook.
        change: what stands in it once, and what shall stand there instead.
    """
    text = (LESSONS / name).read_text("utf-8")
    if change:
        assert text.count(change[0]) == 1
        text = text.replace(*change)
    (server.root / name).write_text(text, "utf-8")
    (server.root / "my_progress.json").unlink(missing_ok=True)
    lab = LabPage(browser.new_page(viewport=VIEWPORT), server, name)
    try:
        lab.open()
        yield Learner(lab)
        if "lesson.cluster(" in text:
            lab.kernel("cluster.close()")
    finally:
        lab.close()


def shoot_all(learner: Learner, theme: str, name: str, shots: Path) -> int:
    """Every output in one theme, one picture each; how many there are."""
    learner.lab.theme(f"JupyterLab {theme}")
    page = learner.page
    page.set_viewport_size({"width": 1280, "height": 1700})  # the tallest output in one picture
    page.wait_for_function(
        "mode => [...document.querySelectorAll('.lab-root')].every(r => r.dataset.labTheme === mode)", arg=theme.lower()
    )
    page.wait_for_function("() => !document.getAnimations().length")
    outputs = page.locator(".jp-Notebook .jp-CodeCell:has(.jp-OutputArea-output)")
    for i in range(outputs.count()):
        outputs.nth(i).scroll_into_view_if_needed()
        outputs.nth(i).screenshot(path=str(shots / f"{name}_{theme.lower()}_{i:02}.png"))
        box = outputs.nth(i).bounding_box()
        assert box is not None
        assert box["height"] > 20
    return outputs.count()
