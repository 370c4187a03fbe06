"""A cell of a notebook chooses theme and size of all pictures in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.harness import LabPage

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

CELLS = (
    "from widgets import Look\nlook = Look('contrast', size='projector')\nlook",
    """
import lab
from widgets import GraphView
x = lab.tensor(2.0, requires_grad=True, name="x")
with lab.record() as rec:
    (x * x).backward()
GraphView(rec)
""",
)


def test_a_look_chosen_in_a_cell_holds_for_every_picture_and_can_be_taken_back(
    lab_page: Callable[..., LabPage], shots: Path
):
    lab = lab_page(*CELLS)
    lab.theme("JupyterLab Light")  # whatever the test before has left
    page = lab.page
    shown = """([theme, size]) => { const scene = document.querySelector(".lab-scene");
                                  return scene?.dataset.labTheme === theme && scene.dataset.labSize === size; }"""
    page.wait_for_function(shown, arg=["contrast", "projector"])
    assert page.locator(".lab-provenance").first.is_visible()
    page.screenshot(path=str(shots / "look.png"))
    page.get_by_label("size", exact=True).select_option("normal")
    page.get_by_label("theme", exact=True).select_option("dark")
    page.wait_for_function(shown, arg=["dark", "normal"])
    page.get_by_label("theme", exact=True).select_option("as the system")
    page.wait_for_function(shown, arg=["light", "normal"])
