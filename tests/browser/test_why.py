"""Why this gradient, in a real JupyterLab: an entry is clicked, typed and reached by keys; a path lights up."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.harness import LabPage
from tests.browser.shots import Shots

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

Open = Callable[..., LabPage]

NET = """
import lab
import numpy as np
from widgets import GraphView, WhyView
rng = np.random.default_rng(0)
w1 = lab.tensor(rng.normal(size=(3, 4)), requires_grad=True, name="w1")
w2 = lab.tensor(rng.normal(size=(4, 2)), requires_grad=True, name="w2")
inputs, labels = rng.normal(size=(6, 3)), rng.integers(0, 2, 6)
with lab.record() as rec:
    hidden = lab.tanh(inputs @ w1)
    lab.cross_entropy(hidden @ w2, labels).backward()
"""
WHY = f"{NET}\nview = WhyView(rec, w1, (0, 1))\nview"
GRAPH = f"{NET}\nview = GraphView(rec)\nview"


def shown(lab: LabPage, text: str) -> None:
    """Wait until this can be read."""
    lab.page.wait_for_function("text => document.body.innerText.includes(text)", arg=text)


def test_the_paths_of_an_entry_are_drawn_and_another_entry_is_chosen(lab_page: Open, shots: Shots):
    lab = lab_page(WHY)
    assert lab.cell_errors() == []
    sums = "from widgets.asking.words import sum_words; print(sum_words(lab.why(w1, {}, recording=rec)))"
    shown(lab, lab.kernel(sums.format("(0, 1)")).strip())
    for theme in ("Light", "Dark"):
        lab.theme(f"JupyterLab {theme}")
        shots(lab.page.locator(".jp-OutputArea").first, f"why-{theme.lower()}")
    lab.page.locator('.lab-node[data-key="#2,3"]').click()
    shown(lab, lab.kernel(sums.format("(2, 3)")).strip())
    lab.page.keyboard.press("ArrowLeft")
    lab.page.keyboard.press("Enter")
    shown(lab, lab.kernel(sums.format("(2, 2)")).strip())
    entry = lab.page.get_by_role("textbox", name="Entry")
    entry.fill("1, 0")
    entry.press("Enter")
    shown(lab, lab.kernel(sums.format("(1, 0)")).strip())
    entry.fill("9, 9")
    entry.press("Enter")
    shown(lab, "The gradient has no such entry")
    lab.page.get_by_role("listbox", name="Paths").select_option(index=2)
    lab.until("print(len(view.picture_at(len(rec)).lit))", "9")
    for theme in ("Light", "Dark"):
        lab.theme(f"JupyterLab {theme}")
        shots(lab.page.locator(".jp-OutputArea").first, f"why-path-{theme.lower()}")
    assert lab.errors == []


def test_an_entry_is_asked_about_beside_the_graph(lab_page: Open, shots: Shots):
    lab = lab_page(GRAPH)
    assert lab.cell_errors() == []
    expect(lab.page.get_by_role("listbox", name="Paths")).to_be_hidden()
    key = lab.kernel("print(w1.node.id)").strip()
    lab.page.locator(f'.lab-node[data-key="#{key}"]').click()
    shown(lab, "Why this gradient?")
    lab.page.locator('.lab-node[data-key="#1,2"]').click()
    lab.until("print(view.question.answer.index)", "(1, 2)")
    lab.page.get_by_role("listbox", name="Paths").select_option(index=1)
    lab.until("print(len(view.picture_at(len(rec)).lit))", "9")
    for theme in ("Light", "Dark"):
        lab.theme(f"JupyterLab {theme}")
        shots(lab.page.locator(".jp-OutputArea").first, f"graph-why-{theme.lower()}")
    assert lab.errors == []
