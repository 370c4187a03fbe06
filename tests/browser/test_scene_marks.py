"""Frames, corners that open and close, pins, what stands out, search and a kernel that is gone: in a page and live."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.harness import PATIENCE_MS, LabPage
from tests.browser.shots import Shots
from tests.browser.waiting import faults
from tests.slices import sliced
from widgets.export.page import Frame, write_page
from widgets.pictures.scene import Edge, Node, Scene
from widgets.pictures.theme import MARKS
from widgets.pictures.twin import svg_of
from widgets.pictures.twin_nodes import FOLD

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600), sliced("page")]

Open = Callable[..., LabPage]

SCENE = """Scene(
    (Node("f", 300, 130, 420, 190, "encoder", "12 operations", kind="frame", fold="open"),
     Node("x", 40, 140, 80, 52, "x", "3.0", kind="leaf"),
     Node("inner", 290, 150, 240, 100, "block", "4 operations", kind="frame", fold="open"),
     Node("m", 230, 160, 90, 52, "x * w", "12.0"), Node("t", 350, 160, 90, 52, "tanh", "0.9", state="active"),
     Node("g", 620, 140, 120, 52, "decoder", "9 operations", kind="group", fold="closed", state="done"),
     Node("r", 620, 260, 90, 90, "rank 0", "idle", kind="rank"),
     Node("z", 800, 140, 80, 52, "z", "1.8", kind="output")),
    (Edge("xm", "x", "m", label="3.0"), Edge("mt", "m", "t", state="forward"), Edge("tg", "t", "g"),
     Edge("gz", "g", "z"), Edge("rz", "r", "z", label="7.0")),
    title="folded", caption="A value's path.", lit=frozenset({"x", "m", "xm"}), pinned=frozenset({"m", "g", "r"}),
    provenance="recorded on this machine", made="run")"""
FOLDED: Scene = eval(SCENE, {"Scene": Scene, "Node": Node, "Edge": Edge})


@pytest.fixture(params=["light", "dark"])
def page(browser: Browser, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    path = write_page(tmp_path / "marks.html", [Frame("", (FOLDED,))], "Marks")
    context = browser.new_context(color_scheme=request.param, viewport={"width": 1100, "height": 700})
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE_MS)
    trouble: list[str] = []
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.goto(path.as_uri())
    opened.wait_for_selector("body[data-lab-ready]")
    yield opened
    assert trouble == []
    context.close()


def style(page: Page, selector: str, name: str) -> str:
    return str(page.locator(selector).last.evaluate(f"e => getComputedStyle(e).{name}"))


def test_marks_stand_where_the_still_picture_has_them(page: Page, shots: Shots):
    svg = svg_of(FOLDED)
    for kind, shape in (("fold", FOLD["closed"]), ("fold", FOLD["open"]), ("pin", MARKS["pin"])):
        marks = page.locator(f".lab-{kind}:has(path[d='{shape}'])")
        counts = {FOLD["closed"]: 1, FOLD["open"]: 2, MARKS["pin"]: 3}
        assert marks.count() == counts[shape] == svg.count(f'd="{shape}"')
        for place in marks.evaluate_all("marks => marks.map(m => m.getAttribute('transform'))"):
            assert f'transform="{place}"' in svg
    assert page.get_by_text("recorded on this machine").is_visible()
    mode = page.evaluate("document.querySelector('.lab-scene').dataset.labTheme")
    shots(page, f"marks-{mode}")


def test_frames_lie_under_edges_and_hold_their_words_in_the_corner(page: Page):
    order = page.locator(".lab-svg *").evaluate_all(
        """all => all.map(e => e.dataset.key ?? "").filter(key => ["#f", "#inner", "#xm", "#m"].includes(key))"""
    )
    assert order == ["#f", "#inner", "#xm", "#m"]
    box = page.locator('.lab-node[data-key="#f"] .lab-box').bounding_box()
    label = page.locator('.lab-node[data-key="#f"] .lab-label').bounding_box()
    assert box is not None
    assert label is not None
    assert 0 < label["x"] - box["x"] < 50
    assert 0 < label["y"] - box["y"] < 20


def test_what_stands_out_does_so_without_colour(page: Page):
    lit = page.locator("[data-lit]").evaluate_all("all => [...new Set(all.map(e => e.dataset.key).filter(Boolean))]")
    assert sorted(lit) == ["#m", "#x", "#xm"]
    assert style(page, '.lab-node[data-key="#x"]', "opacity") == "1"
    assert float(style(page, '.lab-node[data-key="#z"]', "opacity")) < 0.5
    assert style(page, '.lab-node[data-key="#x"] .lab-box', "strokeWidth") == "3px"
    assert style(page, '.lab-node[data-key="#z"] .lab-box', "strokeWidth") != "3px"
    assert style(page, '.lab-edge[data-key="#xm"] .lab-line', "strokeWidth") == "3.5px"
    assert "stands out" in str(page.locator('.lab-node[data-key="#x"]').get_attribute("aria-label"))


def test_a_page_says_what_is_open_but_offers_no_button_that_nobody_hears(page: Page):
    group = page.locator('.lab-node[data-key="#g"]')
    assert (group.get_attribute("role"), group.get_attribute("aria-expanded")) == ("treeitem", "false")
    assert page.locator('.lab-node[data-key="#f"]').get_attribute("aria-expanded") == "true"
    assert page.locator('.lab-node[data-key="#z"]').get_attribute("aria-expanded") is None
    assert page.locator(".lab-nodes").get_attribute("role") == "tree"
    assert page.locator(".lab-fold:not(.lab-still)").count() == 0
    assert page.locator(".lab-search").is_hidden(), "eight nodes are found by looking"
    group.focus()
    before = page.locator(".lab-svg > g").get_attribute("transform")
    page.keyboard.press("+")
    assert page.locator(".lab-svg > g").get_attribute("transform") != before, "it zooms"


def test_axe_finds_no_fault(page: Page):
    assert faults(page) == []


LIVE = f"""
from widgets.live.host import SceneHost
from widgets.pictures.scene import Edge, Node, Scene
heard = []
host = SceneHost({SCENE})
host.on_fold(lambda key: heard.append("fold " + key))
host.on_pin(lambda key: heard.append("pin " + key))
host
"""

SPOKEN = LIVE.replace(
    "\nhost\n",
    """
import ipywidgets as ipw
from widgets.live.spoken import Spoken
ipw.VBox([Spoken(text="▶ running"), host])
""",
)


def shown(lab: LabPage, n: int = 8) -> None:
    lab.page.wait_for_function("n => document.querySelectorAll('.lab-node[data-key]').length >= n", arg=n)


def test_the_kernel_hears_what_shall_be_opened_closed_pinned_and_found(lab_page: Open):
    lab = lab_page(LIVE)
    shown(lab)
    page = lab.page
    corner = '.lab-node[data-key="#{}"] .lab-fold'
    page.locator(corner.format("g")).click()
    lab.until("print(heard)", "['fold g']")
    assert page.locator('.lab-node[data-key="#g"]').get_attribute("aria-selected") == "false", "opened, not chosen"
    page.keyboard.press("+")
    page.keyboard.press("p")
    lab.until("print(heard)", "['fold g', 'fold g', 'pin g']")
    page.locator('.lab-node[data-key="#f"]').focus()
    page.keyboard.press("-")
    lab.until("print(heard[3:])", "['fold f']")
    zoom = page.locator(".lab-svg > g").get_attribute("transform")
    page.keyboard.press("+")
    assert page.locator(".lab-svg > g").get_attribute("transform") != zoom, "nothing to open there: it zooms"
    assert page.locator(".lab-search").is_hidden()
    lab.kernel("host.on_find(lambda text: heard.append('find ' + text)); heard.clear()")
    page.locator(".lab-search").wait_for(state="visible")
    page.keyboard.press("/")
    page.keyboard.type("tanh")
    lab.until("print(heard)", "['find tanh']")
    expect(page.locator(".lab-search output")).to_have_text("1 found")
    page.keyboard.press("Enter")
    assert page.locator("[data-here]").get_attribute("data-key") == "#t"
    page.keyboard.press("Escape")
    lab.until("print(heard)", "['find tanh', 'find ']")
    assert page.locator(".jp-Notebook .jp-Cell").count() == 1, "no key reached the notebook"
    assert lab.errors == []


def test_a_restarted_kernel_is_explained_and_the_picture_stays(lab_page: Open, shots: Shots):
    lab = lab_page(SPOKEN, fresh=True)
    shown(lab)
    gone = lab.page.locator(".lab-gone")
    expect(gone).to_have_text("")
    lab.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart().then(() => null)"
    )
    expect(gone).to_have_text("The kernel was restarted: this is the last picture. Run the cell again.")
    assert gone.get_attribute("role") == "status"
    shown(lab)
    expect(lab.page.locator(".lab-provenance")).to_have_text("Before the restart: recorded on this machine")
    expect(lab.page.locator(".lab-provenance svg"), "no mark says what runs").to_have_count(0)
    words = lab.page.locator("[role=status]", has_text="running")
    expect(words).to_have_text("Before the kernel was restarted: ▶ running")
    expect(lab.page.locator(".lab-fold:not(.lab-still)"), "nobody would hear it").to_have_count(0)
    shots(lab.page.locator(".lab-scene").first, "restarted")
    lab.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'"
    )
    lab.run_all()
    lab.page.wait_for_selector(".lab-fold:not(.lab-still)")
    expect(lab.page.locator(".lab-gone")).to_have_text("")
