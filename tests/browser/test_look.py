"""A cell of a notebook chooses theme and size of all pictures in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.harness import LabPage
from tests.browser.shots import Shots
from tests.browser.waiting import still

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
    lab_page: Callable[..., LabPage], shots: Shots
):
    lab = lab_page(*CELLS)
    lab.theme("JupyterLab Light")  # whatever the test before has left
    page = lab.page
    shown = """([theme, size]) => { const scene = document.querySelector(".lab-scene");
                                  return scene?.dataset.labTheme === theme && scene.dataset.labSize === size; }"""
    page.wait_for_function(shown, arg=["contrast", "projector"])
    expect(page.locator(".lab-provenance").first).to_be_visible()
    shots(page, "look")
    page.get_by_label("size", exact=True).select_option("normal")
    page.get_by_label("theme", exact=True).select_option("dark")
    page.wait_for_function(shown, arg=["dark", "normal"])
    page.get_by_label("theme", exact=True).select_option("as the system")
    page.wait_for_function(shown, arg=["light", "normal"])


CONTROLS = """
import lab
from widgets import GraphView, Player, RunControls
x, w = lab.tensor([2.0, 3.0], requires_grad=True, name="x"), lab.tensor(3.0, requires_grad=True, name="w")
with lab.record(detail="value") as rec:
    y = (x * w).sum()
    y.backward()
player = Player(GraphView(rec))
player.bookmark("the walk begins")
player.to_end()
player.views[0].select(str(x.node.id))
player
"""
RUN = """
data = lab.data.digits()[0]
run = lab.fit(lab.nn.Linear(64, 10, rng=0), data, epochs=10**6)
run.pause()
RunControls(run)
"""
SIZES = """() => {
  const found = {};
  const texts = document.querySelectorAll(".jp-OutputArea-output .jupyter-widgets *");
  for (const e of texts) {
    const own = e.matches("select, input") ? e.getAttribute("aria-label") || e.tagName
        : [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.data.trim()).join(" ").trim();
    if (!own || !e.getClientRects().length || e.closest("svg, script, style, .lab-live, [type=range]")) continue;
    found[`${e.tagName}.${e.className}: ${own.slice(0, 40)}`] = parseFloat(getComputedStyle(e).fontSize);
  }
  return found;
}"""


def test_on_a_projector_every_panel_and_control_of_a_notebook_grows_with_the_pictures(
    lab_page: Callable[..., LabPage], shots: Shots
):
    lab = lab_page("from widgets import Look\nlook = Look()\nlook", CONTROLS, RUN)
    assert lab.cell_errors() == []
    page = lab.page
    page.wait_for_function("() => document.querySelector('.lab-inspector')?.textContent.includes('came back')")
    page.get_by_role("button", name="Resume").wait_for()
    lab.theme("JupyterLab Light")
    still(page)
    before = page.evaluate(SIZES)
    assert len(before) > 40
    page.get_by_label("size", exact=True).select_option("projector")
    page.wait_for_function("() => document.querySelector('.lab-scene').dataset.labSize === 'projector'")
    still(page)
    after = page.evaluate(SIZES)
    small = {name: (size, after[name]) for name, size in before.items() if name in after and after[name] < 1.4 * size}
    assert small == {}
    for theme in ("Light", "Dark"):
        lab.theme(f"JupyterLab {theme}")
        for k, cell in enumerate(page.locator(".jp-Cell .jp-OutputArea").all()):
            shots(cell, f"projector-{theme.lower()}-{k}")
    page.get_by_label("size", exact=True).select_option("normal")
    lab.kernel("run.stop()")


RING = """e => { const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(e);
                return [outlineStyle, outlineWidth, outlineColor]; }"""


def test_the_focus_of_lists_and_text_fields_is_as_visible_as_that_of_buttons(
    lab_page: Callable[..., LabPage], shots: Shots
):
    lab = lab_page("from widgets import GradientView, Look\nlook = Look()\nlook", CONTROLS, RUN, "GradientView(run)")
    page = lab.page
    fields = [page.get_by_label(name, exact=True).first for name in ("Speed", "Step by", "Break on", "Parameter")]
    fields += [page.get_by_title("The bound, or the place"), page.get_by_label("Entry", exact=True)]
    for theme, ink in (("Light", 0), ("Dark", 255)):
        lab.theme(f"JupyterLab {theme}")
        for field in fields:
            field.focus()
            page.keyboard.press("Shift")  # from now on the focus is that of a keyboard
            style, width, colour = field.evaluate(RING)
            assert (style, width) == ("solid", "2px")
            assert all(abs(int(part) - ink) < 60 for part in colour[4:-1].split(",")[:3]), (theme, colour)
        shots(page, f"focus-{theme.lower()}")
    page.get_by_label("theme", exact=True).select_option("contrast")
    fields[0].focus()
    assert fields[0].evaluate(RING)[:2] == ["solid", "3px"]
    page.get_by_label("theme", exact=True).select_option("as the system")
    lab.theme("JupyterLab Light")
    lab.kernel("run.stop()")
