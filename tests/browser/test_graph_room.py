"""GraphView with its controls in a real JupyterLab: the list of passes, one that has not begun, where buttons are."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.harness import LabPage
from tests.browser.shots import Shots
from tests.browser.waiting import still

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

Open = Callable[..., LabPage]

DEEP = """
import lab
import numpy as np
from lab.nn import mlp
from widgets import GraphView, Player
rng = np.random.default_rng(0)
model, inputs, labels = mlp(64, *[16] * 12, 10, rng=0), rng.normal(size=(8, 64)), rng.integers(0, 10, 8)
with lab.record() as rec:
    for _ in range(3):
        lab.cross_entropy(model(inputs), labels).backward()
view = GraphView(rec)
player = Player(view)
player
"""
BLOCKS = """
import lab
import numpy as np
from lab.nn import Linear, Sequential, TransformerBlock
from widgets import GraphView
model = Sequential(*(TransformerBlock(16, 4, rng=i) for i in range(8)), Linear(16, 10, rng=9))
with lab.record() as rec:
    (model(np.ones((2, 4, 16), np.float32)) ** 2).sum().backward()
GraphView(rec)
"""
DONE = {
    "Start": ("player.transport.index", "0"),
    "End": ("player.transport.index == player.transport.last", "True"),
    "Open all": ("view.large.everything", "True"),
    "Close all": ("view.large.everything", "False"),
}
"""What the kernel says once it has heard a button."""
IN_STAGE = """key => {
    const node = document.querySelector(`.lab-node[data-key="${key}"]`)?.getBoundingClientRect();
    const stage = document.querySelector(".lab-stage").getBoundingClientRect();
    return Boolean(node) && node.width > 100 && node.left >= stage.left && node.right <= stage.right
        && node.top >= stage.top && node.bottom <= stage.bottom;
}"""
"""Whether a node can be seen whole, and read."""


def press(lab: LabPage, name: str) -> None:
    """Press a button, and wait for the kernel: of two widgets it may hear the second first."""
    lab.page.get_by_role("button", name=name, exact=True).click()
    value, known = DONE[name]
    lab.until(f"print({value})", known)


def test_a_pass_that_has_not_begun_says_so_on_the_stage_and_the_next_picture_is_fit_again(lab_page: Open, shots: Shots):
    lab = lab_page(DEEP)
    page, stage = lab.page, lab.page.locator(".lab-stage").first
    passes = page.get_by_label("Pass")

    def choose(name: str) -> None:
        passes.select_option(name)
        expect(passes.locator("option:checked")).to_have_text(name)
        lab.until("print(view.large.chosen)", str(int(name) - 1) if name.isdigit() else "None")

    first = lab.kernel("print(view.large.groups.ops[0])")
    press(lab, "End")
    press(lab, "Open all")
    choose("1")
    press(lab, "Start")
    choose("3")
    expect(stage).to_have_attribute("data-instead", "pass 3 has not begun here")
    expect(page.locator(".lab-node")).to_have_count(0)
    assert stage.evaluate("e => getComputedStyle(e, '::after').content") == '"pass 3 has not begun here"'
    still(page)
    height = stage.evaluate("e => e.clientHeight")
    for theme in ("Light", "Dark"):
        lab.theme(f"JupyterLab {theme}")
        shots(lab.page.locator(".jp-OutputArea").first, f"unbegun-{theme.lower()}")
    choose("newest")
    page.wait_for_function(IN_STAGE, arg=f"#{first}")
    still(page)
    assert stage.evaluate("e => e.clientHeight") == height, "the page does not jump"
    shots(lab.page.locator(".jp-OutputArea").first, "unbegun-and-back")
    assert lab.errors == []


def test_a_reader_who_was_far_out_in_what_is_closed_then_sees_all_that_is_left(lab_page: Open, shots: Shots):
    lab = lab_page(DEEP)
    page = lab.page
    lab.kernel("player.to_end(); view.open_all()")
    page.wait_for_function("() => document.querySelectorAll('.lab-node').length > 20")
    expect(page.locator(".lab-minimap").first).to_be_visible()
    still(page)
    around = page.locator(".lab-minimap").first.bounding_box()
    assert around is not None
    y = around["y"] + around["height"] / 2
    page.mouse.move(around["x"] + 20, y)
    page.mouse.down()
    page.mouse.move(around["x"] + around["width"] - 20, y, steps=4)
    page.mouse.up()
    lab.kernel("import json")
    for name in ("Close all", "Start"):
        press(lab, name)
        expect(page.get_by_role("button", name="Open all", exact=True)).to_be_visible()
        there = "[n.id for n in view.picture_at(view.position).nodes if n.kind != 'constant']"
        for key in json.loads(lab.kernel(f"print(json.dumps({there}))")):
            page.wait_for_function(IN_STAGE, arg=f"#{key}")
        shots(lab.page.locator(".jp-OutputArea").first, f"far-out-{name.split()[0].lower()}")
    assert lab.errors == []


def test_the_buttons_stand_under_the_graph_however_much_is_told_of_a_box(lab_page: Open, shots: Shots):
    lab = lab_page(DEEP)
    page = lab.page
    weight = lab.kernel("player.to_end(); view.open_all(); print(view.large.groups.leaves[0])")
    page.locator(f'.lab-node[data-key="#{weight}"]').click()
    expect(page.get_by_text("Why this gradient?")).to_be_visible()
    still(page)
    parts = page.locator(".lab-scene"), page.get_by_role("button", name="Path forward"), page.locator(".lab-inspector")
    graph, button, told = [box for part in parts if (box := part.first.bounding_box()) is not None]
    assert 0 <= button["y"] - (graph["y"] + graph["height"]) < 16
    assert told["x"] >= graph["x"] + graph["width"], "the details stand beside the graph"
    for theme in ("Light", "Dark"):
        lab.theme(f"JupyterLab {theme}")
        shots(lab.page.locator(".jp-OutputArea").first, f"under-the-graph-{theme.lower()}")
    assert lab.errors == []


FIVE = """
import lab
import numpy as np
from widgets import GraphView
x = lab.tensor([2.0, 1.0, 0.0], requires_grad=True, name="x")
with lab.record(detail="value") as rec, np.errstate(all="ignore"):
    (lab.log(x * x) * 2.0 + 1.0).sum().backward()
view = GraphView(rec)
view
"""


def test_a_small_graph_has_the_width_and_stays_where_it_is_when_a_box_is_chosen(lab_page: Open, shots: Shots):
    lab = lab_page(FIVE)
    page = lab.page
    page.wait_for_function("() => document.querySelectorAll('.lab-node').length > 5")
    still(page)
    scene, told = page.locator(".lab-scene").first, page.locator(".lab-inspector").first
    before, beside = scene.bounding_box(), told.bounding_box()
    assert before is not None
    assert beside is not None
    assert beside["y"] >= before["y"] + before["height"], "an empty inspector takes no width"
    smallest = page.evaluate(
        "() => Math.min(...[...document.querySelectorAll('.lab-node text')].map(e => e.getBoundingClientRect().height))"
    )
    shots(page.locator(".jp-OutputArea").first, "small-graph")
    assert smallest >= 10.5, "of a line of text, whose letters are somewhat lower"
    page.locator(".lab-node").nth(1).click()
    expect(told).to_contain_text("gradient")
    still(page)
    assert scene.bounding_box() == before
    shots(page.locator(".jp-OutputArea").first, "small-graph-chosen")
    assert lab.errors == []


def test_a_search_says_in_which_boxes_that_is_what_the_kernel_counts_and_brings_one_of_them_into_sight(
    lab_page: Open, shots: Shots
):
    lab = lab_page(DEEP)
    page = lab.page
    lab.kernel("player.to_end()")
    field, count = page.get_by_label("find nodes").first, page.locator(".lab-search output").first
    lit = "import json; print(json.dumps(sorted(view.picture_at(view.position).lit)))"
    field.fill("8x16")
    lab.until("print(view.large.found)", "8x16")
    expect(page.locator(".lab-caption").first).to_contain_text("match “8x16”")
    n = len(json.loads(lab.kernel(lit)))
    expect(count).to_have_text(f"in {n} group{'s' * (n > 1)}")
    field.press("Enter")
    expect(count).to_have_text(f"group 1 of {n}")
    shots(page.locator(".jp-OutputArea").first, "search-in-groups")
    field.fill("no such thing")
    expect(count).to_have_text("none found")
    lab.kernel("view.open_all()")
    page.wait_for_function("() => document.querySelectorAll('.lab-node').length > 20")
    still(page)
    field.fill("cross_entropy")
    expect(count).to_have_text("in 1 box")
    (loss,) = json.loads(lab.kernel(lit))
    page.wait_for_function(IN_STAGE, arg=f"#{loss}")
    field.press("Escape")
    expect(count).to_have_text("")
    assert lab.errors == []


def test_a_group_that_is_opened_in_a_wide_stage_can_be_read_and_the_mini_map_shows_where_it_is(
    lab_page: Open, shots: Shots
):
    lab = lab_page(BLOCKS)
    page = lab.page
    page.set_viewport_size({"width": 1600, "height": 1000})
    still(page)
    scale = "() => Number(document.querySelector('.lab-svg > g').getAttribute('transform').match(/scale\\(([^)]+)/)[1])"
    for n, name in enumerate(("layers × 8", "layer 0"), 1):
        group = page.locator(".lab-node[data-kind=group]").filter(has=page.get_by_text(name, exact=True))
        key = group.get_attribute("data-key")
        group.locator(".lab-fold").click()
        expect(page.locator(".lab-node[data-kind=frame]")).to_have_count(n)
        still(page)
        shots(page.locator(".jp-OutputArea").first, f"opened-in-a-wide-stage-{n}")
        assert page.evaluate(scale) >= 0.6, "letters of 7 pixels at least"
        expect(page.locator(".lab-node:focus")).to_have_attribute("data-key", key or "")
        places = ".lab-stage", ".lab-node:focus .lab-fold"
        held, corner = (page.locator(place).first.bounding_box() for place in places)
        assert held is not None
        assert corner is not None
        assert held["x"] < corner["x"] < held["x"] + held["width"], "what was opened is where the reader looks"
    expect(page.locator(".lab-minimap").first).to_be_visible()
    assert lab.errors == []
