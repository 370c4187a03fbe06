"""A learner in the open lesson: what they see, press and type, by the code of the cell that they look at."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, expect

from lab.teach import EXERCISES, SOLUTIONS
from tests.browser.harness import VIEWPORT, LabPage, LabServer
from tests.browser.shots import Shots
from tests.browser.waiting import still

LESSONS = Path(__file__).parents[2] / "notebooks"
CELLS = "window.jupyterapp.shell.currentWidget.content.widgets"


class Learner:
    """What a learner sees and does in the open lesson."""

    def __init__(self, lab: LabPage) -> None:
        self.lab, self.page = lab, lab.page

    def number(self, code: str) -> int:
        """The number of the cell whose code contains this."""
        sources: list[str] = self.page.evaluate(f"() => {CELLS}.map(c => c.model.sharedModel.getSource())")
        (number,) = [i for i, source in enumerate(sources) if code in source]
        return number

    def cell(self, code: str) -> Locator:
        """The cell whose code contains this."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(self.number(code))

    def press(self, code: str, button: str) -> None:
        """Press a button in the output of a cell."""
        self.button(code, button).click()

    def button(self, code: str, name: str) -> Locator:
        """A button by its name, as a screen reader says it."""
        return self.cell(code).get_by_role("button", name=name, exact=True)

    def status(self, code: str) -> Locator:
        """The line that a screen reader speaks when it changes."""
        return self.cell(code).get_by_role("status").first

    def field(self, code: str) -> Locator:
        """Where a prediction is written; the code of its cell is written in a text box, too."""
        return self.cell(code).locator(".jp-OutputArea").get_by_role("textbox")

    def told(self, name: str, words: str) -> None:
        """Wait until this is said of a prediction where the answer is revealed."""
        expect(self.status(f'lesson.reveal("{name}")')).to_contain_text(words)

    def predict(self, name: str, value: str) -> None:
        """Type a prediction and commit to it, by keyboard alone."""
        self.field(f'lesson.predict("{name}"').click()
        self.page.keyboard.type(value)
        self.page.keyboard.press("Tab")
        self.page.keyboard.press("Enter")

    def kernel(self, expression: str) -> Any:
        """The value of an expression in the kernel."""
        return json.loads(self.lab.kernel(f"import json; print(json.dumps({expression}))"))

    def until(self, expression: str, value: Any) -> None:
        """Wait until an expression has this value in the kernel."""
        self.lab.until(f"import json; print({expression} == {value!r})", "True")

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
        self.page.wait_for_function(
            """([i, n]) => document.querySelectorAll(".jp-Notebook .jp-Cell")[i]
                 .querySelector(".lab-plot")?._fullData?.length === n""",
            arg=[self.number(code), n],
        )

    def run(self, code: str) -> None:
        """Run a cell by keyboard and wait for it."""
        self.cell(code).locator(".cm-content").click()
        self._run(self.number(code))

    def type(self, code: str, text: str) -> None:
        """Type something else into a cell, run it, and wait for it."""
        number = self.number(code)
        self.cell(code).locator(".cm-content").click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(text)
        self._run(number)

    def _run(self, number: int) -> None:
        """Run the cell in which the cursor is."""
        count = f"{CELLS}[{number}].model.executionCount"
        before = self.page.evaluate(f"() => {count}")
        self.page.keyboard.press("Shift+Enter")
        self.page.wait_for_function(f"before => {count} && {count} !== before", arg=before)
        self.lab.rest()

    def choose(self, name: str, choice: str) -> None:
        """Commit to one of the choices of a prediction."""
        card = self.cell(f'"{name}",')
        card.get_by_label(choice).check()
        card.get_by_role("button", name="Commit").click()

    def said(self, code: str) -> Locator:
        """The output of a cell, the last if there are many."""
        return self.cell(code).locator(".jp-OutputArea-output").last

    def answer(self, name: str, source: str) -> Locator:
        """Type an answer into the cell of its stub and check it; what the check says."""
        check = f"lesson.check({name})"
        self.type(check, f"{source}\n\n{check}")
        return self.said(check)

    def solve(self, name: str) -> Locator:
        """Type the solution, and see that it is right in every case; what the check says."""
        said = self.answer(name, SOLUTIONS[name])
        expect(said).to_contain_text(right(name))
        return said

    def stub_is_named(self, name: str) -> None:
        """A check says of the stub which known mistake it is."""
        said = self.said(f"lesson.check({name})")
        expect(said).to_contain_text(f"{name}: not yet")
        mistakes = "|".join(re.escape(mutant.name) for mutant in EXERCISES[name].mutants)
        expect(said).to_contain_text(re.compile(mistakes))

    def hint_opens(self, name: str, words: str) -> None:
        """The hint of a check opens by keyboard, and says this."""
        cell = self.cell(f"lesson.check({name})")
        cell.locator("summary").focus()
        self.page.keyboard.press("Enter")
        expect(cell.get_by_text(words)).to_be_visible()


def ran_from_clean(learner: Learner) -> None:
    """See that a lesson that was run as it is, without progress, went well in kernel and page, and says "not yet"."""
    outputs = learner.page.evaluate(f"() => {CELLS}.flatMap(c => c.model.outputs?.toJSON() ?? [])")
    sources = learner.page.evaluate(f"() => {CELLS}.map(c => c.model.sharedModel.getSource())")
    text = "\n".join(str(output.get("data", {}).get("text/plain", "")) for output in outputs)
    assert "Not yet: first say what you expect." in text
    assert text.count(": not yet. ") == len(re.findall(r"lesson\.check\(\w+\)", "\n".join(sources)))
    assert ": right in " not in text
    assert [o for o in outputs if o["output_type"] in ("stream", "error")] == [], "nothing prints, nothing fails"
    assert learner.lab.errors == []
    assert learner.lab.foreign == []


def right(name: str) -> str:
    """How a check begins when all of its cases are right."""
    return f"{name}: right in {sum(len(check.cases) for check in EXERCISES[name].checks)} cases"


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


def shoot_all(learner: Learner, theme: str, name: str, shots: Shots) -> int:
    """Every output in one theme, one picture each; how many there are."""
    learner.lab.theme(f"JupyterLab {theme}")
    page = learner.page
    page.set_viewport_size({"width": 1280, "height": 1700})  # the tallest output in one picture
    page.wait_for_function(
        "mode => [...document.querySelectorAll('.lab-root')].every(r => r.dataset.labTheme === mode)", arg=theme.lower()
    )
    still(page)
    outputs = page.locator(".jp-Notebook .jp-CodeCell:has(.jp-OutputArea-output)")
    heights: list[float] = outputs.evaluate_all("all => all.map(e => e.getBoundingClientRect().height)")
    assert min(heights) > 20
    for i in range(len(heights)):
        shots(outputs.nth(i), f"{name}_{theme.lower()}_{i:02}")
    return len(heights)
