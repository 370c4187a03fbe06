"""Scenes of real size in a page: what is in the document, what is on the canvas, and that every node can be reached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.graphs import scene_of, unrolled_loop
from tests.browser.harness import PATIENCE_MS
from tests.browser.shots import Shots
from tests.browser.waiting import faults, no_rest, still
from tests.slices import sliced
from widgets.export.page import Frame, write_page
from widgets.pictures.scene import Edge, Node, Scene
from widgets.pictures.theme import COLOURS
from widgets.pictures.tree import tree_of

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600), sliced("page")]

WHOLE = scene_of(unrolled_loop(120))
TREE = tree_of(WHOLE)
NODES: dict[str, Any] = TREE["nodes"]


def grown(n: int) -> Scene:
    """The first n nodes, the last three of them active."""
    nodes = tuple(node._replace(state="active") if i >= n - 3 else node for i, node in enumerate(WHOLE.nodes[:n]))
    ids = {node.id for node in nodes}
    edges = tuple(edge for edge in WHOLE.edges if edge.source in ids and edge.target in ids)
    return Scene(nodes, edges, title=WHOLE.title, caption=WHOLE.caption)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    frames = [Frame(f"{len(s.nodes)} nodes", (s,)) for s in (WHOLE, grown(580), grown(583))]
    return write_page(tmp_path_factory.mktemp("large") / "large.html", frames, "A long loop")


@pytest.fixture(params=["light", "dark"])
def page(browser: Browser, path: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    yield from opened(browser, path, request.param)


@pytest.fixture
def light(browser: Browser, path: Path) -> Iterator[Page]:
    yield from opened(browser, path, "light")


def opened(browser: Browser, path: Path, scheme: Any) -> Iterator[Page]:
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1100, "height": 1000})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    trouble: list[str] = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("body[data-lab-ready]")
    yield page
    assert trouble == []
    context.close()


VIEW = """() => {
    const [x, y, k] = document.querySelector(".lab-svg > g").getAttribute("transform").match(/-?[0-9.]+/g).map(Number);
    const stage = document.querySelector(".lab-stage");
    return { x, y, k, w: stage.clientWidth, h: stage.clientHeight };
}"""
DRAWN = """() => Object.fromEntries([...document.querySelectorAll(".lab-node[data-key]")].map(g =>
    [g.dataset.key, [g.querySelector(".lab-label").textContent, g.querySelector(".lab-sublabel").textContent]]))"""
FOCUSED = """() => {
    const node = document.activeElement, box = node.getBoundingClientRect();
    const stage = document.querySelector(".lab-stage").getBoundingClientRect();
    const inside = box.left < stage.right && box.right > stage.left && box.top < stage.bottom && box.bottom > stage.top;
    const said = ["aria-label", "aria-setsize", "aria-posinset"].map(name => node.getAttribute(name));
    return [node.dataset.key, inside, ...said];
}"""


def in_sight(page: Page) -> set[str]:
    """Keys of the nodes whose middle is in the stage, by the tree and the view."""
    v = page.evaluate(VIEW)
    places = {key: (n["x"] * v["k"] + v["x"], n["y"] * v["k"] + v["y"]) for key, n in NODES.items()}
    return {key for key, (x, y) in places.items() if 0 < x < v["w"] and 0 < y < v["h"]}


def nearer(page: Page, k: float = 0.8) -> None:
    """Zoom in until text can be read."""
    button = page.get_by_role("button", name="zoom in")
    while page.evaluate(VIEW)["k"] < k:
        button.click()


def pixel(page: Page, canvas: int, key: str, up: float = 0.0) -> list[int]:
    """Colour on one of the canvases in the middle of a node, or at its upper border."""
    v, n = page.evaluate(VIEW), NODES[key]
    return list(
        page.evaluate(
            """([canvas, x, y]) => {
             const drawn = document.querySelectorAll(".lab-under canvas")[canvas];
             const stage = document.querySelector(".lab-stage").getBoundingClientRect();
             const box = drawn.getBoundingClientRect(), scale = drawn.width / box.width;
             const [px, py] = [(x + stage.left - box.left) * scale, (y + stage.top - box.top) * scale];
             return [...drawn.getContext("2d").getImageData(Math.round(px), Math.round(py), 1, 1).data];
           }""",
            [canvas, n["x"] * v["k"] + v["x"], (n["y"] - up * n["h"] / 2) * v["k"] + v["y"]],
        )
    )


def test_from_afar_all_of_it_is_on_the_canvas_in_the_colours_of_the_theme(page: Page, shots: Shots):
    assert page.locator(".lab-stage[data-far]").count() == 1
    assert page.locator(".lab-node[data-key]").count() == 1, "the one that the tab key reaches"
    assert len(in_sight(page)) == len(NODES)
    mode = page.evaluate("document.querySelector('.lab-scene').dataset.labTheme")
    for key in list(NODES)[5::60]:
        wanted = COLOURS[mode][NODES[key]["kind"]]
        assert pixel(page, 1, key)[:3] == pytest.approx([int(wanted[i : i + 2], 16) for i in (1, 3, 5)], abs=3)
    shots(page, f"large-far-{mode}")
    nearer(page)
    shots(page, f"large-near-{mode}")


def test_near_by_what_is_in_sight_is_in_the_document_as_the_tree_has_it_and_little_else(light: Page):
    nearer(light)
    drawn = light.evaluate(DRAWN)
    assert in_sight(light) <= drawn.keys()
    assert len(drawn) < 150
    assert drawn == {key: [NODES[key]["label"], NODES[key]["sublabel"]] for key in drawn}
    lines = light.evaluate("() => [...document.querySelectorAll('.lab-edge[data-key]')].map(g => g.dataset.key)")
    ends = {key: {edge["s"], edge["t"]} for key, edge in TREE["edges"].items()}
    assert {key for key, both in ends.items() if both & in_sight(light)} <= set(lines)
    assert len(lines) < len(ends) / 2


def test_a_drag_moves_what_is_drawn_and_draws_anew_at_its_end(light: Page):
    nearer(light)
    still(light)
    no_rest(light)  # after a moment without a movement all would be drawn anew
    svg = light.locator(".lab-svg")
    svg.scroll_into_view_if_needed()
    box = svg.bounding_box()
    assert box is not None
    before, was = light.evaluate(VIEW), in_sight(light)
    light.mouse.move(box["x"] + 500, box["y"] + 30)
    light.mouse.down()
    light.mouse.move(box["x"] + 300, box["y"] + 60, steps=2)
    assert light.evaluate(VIEW) == before, "nothing was drawn again"
    assert "translate(-200px, 30px)" in (svg.get_attribute("style") or "")
    light.mouse.up()
    after = light.evaluate(VIEW)
    assert (after["x"], after["y"]) == (pytest.approx(before["x"] - 200, abs=1), pytest.approx(before["y"] + 30, abs=1))
    assert svg.evaluate("e => e.style.transform") == ""
    assert in_sight(light) != was
    assert in_sight(light) <= light.evaluate(DRAWN).keys()


def test_a_long_drag_draws_only_what_comes_into_sight(light: Page):
    nearer(light)
    still(light)
    no_rest(light)  # after a moment without a movement all would be drawn anew
    svg = light.locator(".lab-svg")
    svg.scroll_into_view_if_needed()
    box = svg.bounding_box()
    assert box is not None
    before, was = light.evaluate(VIEW), in_sight(light)
    light.evaluate("() => { for (const g of document.querySelectorAll('.lab-node[data-key]')) g.dataset.old = ''; }")
    light.mouse.move(box["x"] + 900, box["y"] + 60)
    light.mouse.down()
    light.mouse.move(box["x"] + 100, box["y"] + 60, steps=4)
    assert light.evaluate(VIEW) == before, "the plane has moved, and what is on it stays where it is"
    assert "translate(-800px, 0px)" in (svg.get_attribute("style") or "")
    moved = "() => [...document.querySelectorAll('.lab-node[data-old]')].map(g => g.dataset.key)"
    drawn, kept = light.evaluate(DRAWN).keys(), set(light.evaluate(moved))
    light.mouse.up()
    now = in_sight(light)
    assert now <= drawn
    assert now - was, "some came into sight"
    assert now & was <= kept, "and what was in sight was not made again"


def test_what_fades_in_has_no_layer_of_its_own(light: Page):
    step = light.get_by_role("button", name="step", exact=True)
    step.click()
    light.wait_for_selector(f'.lab-node[data-key="#{WHOLE.nodes[579].id}"][data-state=active]')
    still(light)
    session = light.context.new_cdp_session(light)
    session.send("Animation.enable")
    session.send("Animation.setPlaybackRate", {"playbackRate": 0.01})  # so that a busy machine sees it, too
    step.click()
    fading = light.wait_for_function(
        """() => {
             const born = document.getAnimations().filter(a => a.animationName === "lab-born");
             const seen = born.some(a => getComputedStyle(a.effect.target).opacity < 1);
             return seen && born.flatMap(a => a.effect.getKeyframes().flatMap(Object.keys));
           }"""
    ).json_value()
    assert "opacity" not in fading


def test_the_arrow_keys_follow_edges_to_nodes_out_of_sight_and_bring_them_in(light: Page):
    light.locator(".lab-node[tabindex='0']").focus()
    light.keyboard.press("Home")
    keys = list(NODES)
    assert light.evaluate(FOCUSED)[0] == keys[0]
    light.keyboard.press("End")
    key, inside, said, size, place = light.evaluate(FOCUSED)
    assert (key, inside, size, place) == (keys[-1], True, str(len(keys)), str(len(keys)))
    assert said.startswith(f"{NODES[key]['label']}, {NODES[key]['sublabel']}")
    key = max(NODES, key=lambda k: NODES[k]["x"])  # at the end of a strip: what it was made of lies to its left
    click(light, key)
    nearer(light)
    light.locator(".lab-node[tabindex='0']").focus()
    linked = {frozenset((edge["s"], edge["t"])) for edge in TREE["edges"].values()}
    steps, far_away = 0, False
    while NODES[key]["kind"] != "leaf":
        seen = in_sight(light)
        light.keyboard.press("ArrowLeft")
        there, inside, said, size, place = light.evaluate(FOCUSED)
        assert frozenset((key, there)) in linked
        assert inside
        assert said.startswith(f"{NODES[there]['label']}, {NODES[there]['sublabel']}")
        assert (size, place) == (str(len(keys)), str(keys.index(there) + 1))
        key, steps, far_away = there, steps + 1, far_away or there not in seen
    assert steps > 1
    assert far_away, "the weight that it came to was out of sight"


def test_a_search_counts_its_hits_aloud_and_walks_through_them(light: Page):
    hits = [key for key, node in NODES.items() if "tanh" in node["label"]]
    light.locator(".lab-node[tabindex='0']").focus()
    light.keyboard.press("/")
    field, count = light.get_by_role("searchbox", name="find nodes"), light.locator(".lab-search output")
    expect(field).to_be_focused()
    light.keyboard.type("TANH 0")
    light.keyboard.press("Backspace")
    light.keyboard.press("Backspace")
    expect(count).to_have_text(f"{len(hits)} found")
    assert count.get_attribute("aria-live") == "polite"
    for key, n in (("Enter", 1), ("Enter", 2), ("Shift+Enter", 1), ("Shift+Enter", len(hits))):
        light.keyboard.press(key)
        expect(count).to_have_text(f"{n} of {len(hits)}")
        here = light.locator(".lab-node[data-here]")
        assert here.get_attribute("data-key") == hits[n - 1]
        assert hits[n - 1] in in_sight(light)
        assert light.evaluate(VIEW)["k"] >= 0.89, "large enough to be read"
    expect(field).to_be_focused()
    light.keyboard.press("Escape")
    expect(count).to_have_text("")
    assert field.input_value() == ""
    assert light.locator("[data-found], [data-here]").count() == 0
    light.keyboard.type("nothing like it")
    expect(count).to_have_text("none found")


def test_the_mini_map_moves_the_view_and_keys_do_the_same(light: Page):
    light.locator(".lab-minimap").wait_for(state="hidden")
    nearer(light)
    thumb = light.locator(".lab-minimap")
    thumb.wait_for(state="visible")
    assert thumb.get_attribute("aria-hidden") == "true"
    box = thumb.bounding_box()
    assert box is not None
    light.mouse.move(box["x"] + 2, box["y"] + 2)
    light.mouse.down()
    assert list(NODES)[-1] not in in_sight(light)
    light.mouse.move(box["x"] + 2, box["y"] + box["height"] - 2, steps=3)
    light.mouse.up()
    v = light.evaluate(VIEW)
    bottom = max(node["y"] for node in NODES.values()) * v["k"] + v["y"]
    assert 0 < bottom < v["h"]
    light.locator(".lab-node[tabindex='0']").focus()
    light.keyboard.press("Shift+ArrowRight")
    assert light.evaluate(VIEW)["x"] == pytest.approx(v["x"] - 0.2 * v["w"], abs=1)
    light.keyboard.press("f")
    light.wait_for_selector(".lab-stage[data-far]")
    light.wait_for_function("() => document.querySelector('.lab-stage').dataset.more === ''")


def test_however_the_view_is_moved_a_part_of_the_picture_stays_in_it(light: Page):
    nearer(light)
    thumb, stage = (light.locator(name).bounding_box() for name in (".lab-minimap", ".lab-stage"))
    assert thumb is not None
    assert stage is not None
    middle = thumb["x"] + thumb["width"] / 2, thumb["y"] + thumb["height"] / 2
    for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        light.mouse.move(*middle)
        light.mouse.down()
        light.mouse.move(middle[0] + 2 * dx * thumb["width"], middle[1] + 9 * dy * thumb["height"], steps=3)
        light.mouse.up()
        assert in_sight(light), f"the mini-map was dragged by {dx, dy}"
    centre = stage["x"] + stage["width"] / 2, stage["y"] + stage["height"] / 2
    for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        light.keyboard.press("f")
        light.wait_for_function("() => document.querySelector('.lab-stage').dataset.more === ''")
        light.mouse.move(*centre)
        light.mouse.down()
        light.mouse.move(centre[0] + dx * 2000, centre[1] + dy * 2000)
        light.mouse.up()
        assert in_sight(light), f"the picture was dragged by {dx, dy}"
    light.locator(".lab-node[tabindex='0']").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        for _ in range(40):
            light.keyboard.press(f"Shift+{key}")
        assert in_sight(light), f"Shift and {key}"


def click(page: Page, key: str) -> None:
    """Where a node is by the tree and the view, after a look at what the tip says."""
    v, box = page.evaluate(VIEW), page.locator(".lab-stage").bounding_box()
    assert box is not None
    x, y = box["x"] + NODES[key]["x"] * v["k"] + v["x"], box["y"] + NODES[key]["y"] * v["k"] + v["y"]
    page.mouse.move(x, y)
    expect(page.locator(".lab-tip")).to_contain_text(NODES[key]["sublabel"])
    page.mouse.click(x, y)


def test_a_node_on_the_canvas_is_chosen_by_a_click_and_named_by_a_tip(light: Page):
    key = list(NODES)[300]
    click(light, key)
    assert light.evaluate("() => document.activeElement.dataset.key") == key
    assert light.locator(f'.lab-node[data-key="{key}"]').get_attribute("aria-selected") == "true"


def test_a_graph_that_grows_is_followed_and_the_canvas_paints_what_changed(light: Page):
    light.get_by_role("button", name="step", exact=True).click()
    last = f"#{WHOLE.nodes[579].id}"
    light.wait_for_selector(f'.lab-node[data-key="{last}"][data-state=active]')
    light.wait_for_function("() => !document.querySelector('.lab-stage').hasAttribute('data-far')")
    light.locator(".lab-node[tabindex='0']").focus()
    light.keyboard.press("0")
    light.wait_for_function("() => document.querySelector('.lab-stage').dataset.more === ''")
    light.wait_for_selector(".lab-stage[data-far]")
    still(light)
    new = f"#{WHOLE.nodes[582].id}"
    assert pixel(light, 1, new) == [0, 0, 0, 0]
    light.get_by_role("button", name="step", exact=True).click()
    light.wait_for_function("() => document.querySelector('.lab-nodes').getAttribute('aria-label').includes('583')")
    still(light)
    assert pixel(light, 1, new)[3] == 255
    blue = COLOURS["light"]["forward"]
    assert pixel(light, 1, new, up=1.0)[:3] == pytest.approx([int(blue[i : i + 2], 16) for i in (1, 3, 5)], abs=40)
    assert pixel(light, 1, last, up=1.0)[:3] != pytest.approx([int(blue[i : i + 2], 16) for i in (1, 3, 5)], abs=40)


def test_it_has_no_fault_that_axe_finds_near_or_far(page: Page):
    for zoom in (0.0, 0.8):
        nearer(page, zoom)
        assert faults(page) == []


def chain(n: int, apart: float = 150.0) -> Scene:
    """A chain of n boxes in one frame, `n * apart` px long; all use the first one, along one way below them."""
    frame = Node("f", n * apart / 2, 60, n * apart, 110, "all", kind="frame")
    boxes = [Node(f"n{k}", apart * (k + 0.5), 60, 110, 50, f"value {k}") for k in range(n)]
    edges = [Edge(f"e{k}", f"n{k}", f"n{k + 1}") for k in range(n - 1)]
    edges += [Edge(f"u{k}", "n0", f"n{k}", bends=((apart, 105.0), (apart * k, 105.0))) for k in range(2, n)]
    return Scene((frame, *boxes), tuple(edges), title="chain", extent=(n * apart, 120))


SURFACES = """() => [...document.querySelectorAll(".lab-scene canvas")].map(c => [c.width, c.height])"""
FRAMES_ASKED = """() => new Promise(done => {
    const own = window.requestAnimationFrame;
    let asked = 0;
    window.requestAnimationFrame = f => { asked += 1; return own(f); };
    const wait = n => n ? own(() => wait(n - 1)) : done(asked);
    wait(20);
})"""


def test_a_scene_of_300000_px_lies_on_surfaces_of_a_few_stages_begins_readable_and_rests(
    browser: Browser, tmp_path: Path, shots: Shots
):
    path = write_page(tmp_path / "chain.html", [Frame("", (chain(2000),))], "Chain")
    for page in opened(browser, path, "light"):
        stage = page.evaluate(VIEW)
        layers: list[list[dict[str, Any]]] = []
        session = page.context.new_cdp_session(page)
        session.on("LayerTree.layerTreeDidChange", lambda event, to=layers: to.append(event.get("layers", [])))
        session.send("LayerTree.enable")
        assert page.evaluate(VIEW)["k"] == pytest.approx(0.9), "specks on a line would tell nothing"
        page.locator(".lab-node[tabindex='0']").focus()
        for key in ("End", "f", "Home", "f", "f", "End"):
            page.keyboard.press(key)
            still(page)
            for w, h in page.evaluate(SURFACES):
                assert w <= 3 * stage["w"], key
                assert h <= 3 * stage["h"], key
            assert page.locator(".lab-edge").count() < 100, "what lies one on the other is drawn once"
        shots(page, "chain-end")
        assert layers, "there is a plane"
        window = page.viewport_size or {"width": 0, "height": 0}
        for layer in (layer for some in layers for layer in some):
            assert layer["width"] <= max(3.01 * stage["w"], window["width"])
            assert layer["height"] <= max(3.01 * stage["h"], window["height"])
        v = page.evaluate(VIEW)
        assert 300_000 * v["k"] + v["x"] > 0.9 * v["w"], "the view goes no further than the picture"
        assert page.evaluate(FRAMES_ASKED) == 0


def test_all_of_a_long_scene_is_seen_at_a_key_and_its_mini_map_can_be_taken_hold_of(browser: Browser, tmp_path: Path):
    path = write_page(tmp_path / "chain.html", [Frame("", (chain(2000),))], "Chain")
    for page in opened(browser, path, "dark"):
        box = page.locator(".lab-minimap").bounding_box()
        assert box is not None
        assert box["height"] >= 28
        page.locator(".lab-node[tabindex='0']").focus()
        page.keyboard.press("f")
        page.wait_for_function("() => document.querySelector('.lab-stage').dataset.more === ''")
        assert page.evaluate(VIEW)["k"] < 0.01
