"""The stand-alone page, opened from disk with the network cut."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.browser.harness import PATIENCE_MS
from tests.browser.shots import Shots
from tests.browser.waiting import faults, still
from tests.slices import sliced
from widgets.export.page import Frame, write_page
from widgets.live.library import bundle
from widgets.pictures import theme
from widgets.pictures.chart import Chart
from widgets.pictures.patch import apply, diff
from widgets.pictures.scene import Edge, Node, Scene, Token
from widgets.pictures.theme import COLOURS

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600), sliced("opened")]

NASTY = "</script><img src=x onerror=alert(1)>🧠\u202eabc\0"


def scene(i: int) -> Scene:
    nodes = (
        Node("x", 120, 40, 86, 52, "x", "3.0", kind="leaf"),
        Node("y", 320, 40, 86, 52, "y", "4.0", kind="leaf"),
        Node("m", 220, 150 + 4 * i, 110, 68, f"x * y at {i}", "12.0", f"grad {i}.0" if i > 2 else "", state="active"),
        Node("__proto__", 450, 150, 160, 52, NASTY, "any text", state="done"),
    )
    edges = (
        Edge("a", "x", "m", label="3.0", state="forward"),
        Edge("b", "y", "m", state="backward" if i > 2 else "idle"),
    )
    return Scene(
        nodes, edges, (Token("a", 0, 300),), "Run: a product.", "product", (("leaf", "a tensor"), ("backward", ""))
    )


def chart(i: int) -> Chart:
    x = np.arange(10.0 * (i + 1))
    figure = go.Figure(go.Scatter(x=x, y=np.exp(-x / 20), name="train"), layout=theme.axes("step", "loss"))
    return Chart(figure, "Run: the loss falls.", "loss")


FRAMES = [Frame(f"step {i} of 5", (scene(i), chart(i)), f"frame {i} in words") for i in range(6)]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(tmp_path_factory.mktemp("page") / "page.html", FRAMES, "A product, step by step", "Recorded run.")


class Opened:
    def __init__(self, context: BrowserContext, path: Path) -> None:
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.trouble: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def ready(self) -> Page:
        self.page.wait_for_selector("body[data-lab-ready]")
        self.page.wait_for_selector(".lab-plot .xtick text", state="attached")
        return self.page


@pytest.fixture(params=["light", "dark"])
def opened(browser: Browser, path: Path, request: pytest.FixtureRequest) -> Iterator[Opened]:
    context = browser.new_context(color_scheme=request.param, offline=True, viewport={"width": 1100, "height": 1000})
    yield Opened(context, path)
    context.close()


SHOWN = """() => [
    document.querySelector('.lab-node[data-key="#m"] .lab-label')?.textContent,
    document.querySelector('.lab-plot')._fullData?.[0].x.length,
    document.querySelector('.lab-step').textContent,
    document.querySelector('.lab-text-twin').textContent,
]"""


def wait_frame(page: Page, i: int) -> None:
    """Wait until scene, chart, label and words are all those of frame i."""
    wanted = [f"x * y at {i}", 10 * (i + 1), f"step {i} of 5", f"frame {i} in words"]
    page.wait_for_function(f"wanted => JSON.stringify(({SHOWN})()) === JSON.stringify(wanted)", arg=wanted)


def test_it_plays_steps_seeks_and_goes_back_with_the_network_cut(opened: Opened, shots: Shots, path: Path):
    page = opened.ready()
    wait_frame(page, 0)
    page.get_by_role("button", name="step", exact=True).click()
    wait_frame(page, 1)
    slider = page.get_by_role("slider", name="frame")
    slider.focus()
    page.keyboard.press("End")
    wait_frame(page, 5)
    page.keyboard.press("ArrowLeft")
    wait_frame(page, 4)
    page.get_by_role("button", name="step back").click()
    wait_frame(page, 3)
    assert page.locator('.lab-node[data-key="#m"] .lab-gradient').text_content() == "grad 3.0"
    page.get_by_role("button", name="first frame").click()
    wait_frame(page, 0)
    assert page.locator('.lab-node[data-key="#m"] .lab-gradient').count() == 0
    page.get_by_label("speed").select_option("4")
    page.get_by_role("button", name="play", exact=True).click()
    wait_frame(page, 5)
    page.get_by_role("button", name="play", exact=True).wait_for()
    shots(page, f"page-{page.evaluate('document.body.dataset.labTheme')}")
    assert [url for url in opened.requests if not url.startswith("blob:")] == [path.as_uri()]
    assert opened.trouble == []


def test_it_has_no_fault_that_axe_finds(opened: Opened):
    assert faults(opened.ready()) == []


def test_the_keyboard_alone_plays_it_and_walks_the_graph(opened: Opened):
    page = opened.ready()
    name = """() => { const e = document.activeElement;
                      return e.getAttribute("aria-label") || e.labels?.[0]?.firstChild.textContent || e.tagName; }"""
    order = []
    for _ in range(16):
        page.keyboard.press("Tab")
        order.append(page.evaluate(name))
    for wanted in ("theme", "size", "play", "step", "frame", "speed", "zoom in"):
        assert wanted in order
    assert sum(said.startswith(("x,", "y,")) for said in order) == 1, "a graph is one stop of the tab key"
    assert "svg" not in order, "and the picture around its boxes is none"
    page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    wait_frame(page, 1)
    page.keyboard.press("End")
    wait_frame(page, 5)
    page.keyboard.press("Home")
    wait_frame(page, 0)


@pytest.mark.parametrize("chosen", ["light", "dark", "high contrast"])
def test_a_theme_can_be_chosen_and_given_back_to_the_system(opened: Opened, chosen: str):
    page = opened.ready()
    shown = "() => document.querySelector('.lab-scene').dataset.labTheme"
    system = page.evaluate(shown)
    theme = {"high contrast": "contrast-dark" if system == "dark" else "contrast"}.get(chosen, chosen)
    page.get_by_label("theme").select_option(chosen)
    page.wait_for_function(f"theme => ({shown})() === theme", arg=theme)
    ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    surface = COLOURS[theme]["surface"]
    assert ground == f"rgb({int(surface[1:3], 16)}, {int(surface[3:5], 16)}, {int(surface[5:], 16)})"
    page.get_by_label("theme").select_option("as the system")
    page.wait_for_function(f"theme => ({shown})() === theme", arg=system)


def test_who_asked_for_more_contrast_gets_it(browser: Browser, path: Path):
    context = browser.new_context(contrast="more", color_scheme="dark", offline=True)
    page = Opened(context, path).ready()
    assert page.evaluate("() => document.body.dataset.labTheme") == "contrast-dark"
    context.close()


def test_on_a_projector_type_and_lines_are_larger_everywhere(opened: Opened):
    page = opened.ready()
    still(page)  # a chart is drawn twice at first
    sizes = """() => [".lab-caption", ".lab-legend", ".lab-step", ".lab-plot .xtick text", ".lab-node .lab-label"]
        .map(name => document.querySelector(name).getBoundingClientRect().height)"""
    before = page.evaluate(sizes)
    page.get_by_label("size").select_option("projector")
    page.wait_for_function(f"before => ({sizes})().every((height, i) => height > 1.15 * before[i])", arg=before)
    width = "() => parseFloat(getComputedStyle(document.querySelector('.lab-plot .js-line')).strokeWidth)"
    page.wait_for_function(f"({width})() === 3")
    assert opened.trouble == []


def test_each_control_shows_where_the_keyboard_is(opened: Opened):
    page = opened.ready()
    unseen = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, .lab-plot, .lab-node[tabindex='0']")]
            .filter(e => !e.disabled && e.getClientRects().length).filter(e => {
              const before = getComputedStyle(e).outlineStyle + [...e.children].map(c => getComputedStyle(c).stroke);
              e.focus({ focusVisible: true });
              return getComputedStyle(e).outlineStyle + [...e.children].map(c => getComputedStyle(c).stroke) === before;
            }).map(e => e.outerHTML.slice(0, 90))"""
    )
    assert unseen == []


def test_no_text_of_a_learner_ran_and_all_of_it_is_there(opened: Opened):
    page = opened.ready()
    assert page.locator("img").count() == 0
    assert page.locator('.lab-node[data-key="#__proto__"]').count() == 1
    said = page.locator('.lab-node[data-key="#__proto__"]').get_attribute("aria-label")
    assert said is not None
    assert NASTY.replace("\0", "\N{REPLACEMENT CHARACTER}") in said
    assert opened.trouble == []


def test_without_javascript_the_first_frame_is_shown(browser: Browser, path: Path):
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator("#lab-static svg").count() == 2
    assert page.get_by_text("frame 0 in words").is_visible()
    context.close()


def test_with_reduced_motion_nothing_glides_and_no_token_moves(browser: Browser, path: Path):
    context = browser.new_context(reduced_motion="reduce", offline=True)
    page = Opened(context, path).ready()
    page.get_by_role("slider", name="frame").focus()
    place = page.evaluate(
        """() => {
             const slider = document.querySelector("input[type=range]");
             slider.value = 6;
             slider.dispatchEvent(new Event("input"));
             return document.querySelector('.lab-node[data-key="#m"]').getAttribute("transform");
           }"""
    )
    assert place == "translate(220.0 170.0)"
    assert page.evaluate(
        """() => {
             const canvas = document.querySelector(".lab-canvas");
             return !canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean);
           }"""
    )
    context.close()


def random_tree(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(5 if depth < 3 else 2)
    if kind < 2:
        return rng.choice([None, True, 0, 7, -2.5, "", "text", "12"])
    if kind == 2:
        return [random_tree(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {
        key: random_tree(rng, depth + 1)
        for key in rng.sample(["a", "b", "#12", "#__proto__", "7", ""], rng.randrange(5))
    }


def test_patches_mean_the_same_in_javascript(browser: Browser):
    rng = random.Random(0)
    cases = []
    for _ in range(300):
        old, new = {"root": random_tree(rng)}, {"root": random_tree(rng)}
        cases.append((old, diff(old, new), new))
    ones, more = np.arange(3.0), np.arange(5.0)
    old, new = ({"data": go.Figure(go.Scatter(y=y)).to_dict()["data"]} for y in (ones, more))
    cases.append((old, diff(old, new), new))
    assert all(apply(old, ops) == new for old, ops, new in cases)
    page = browser.new_page()
    results = page.evaluate(
        """async ([code, cases]) => {
             const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
             const { applyPatch } = await import(url);
             return cases.map(([old, ops]) => {
               const before = JSON.stringify(old);
               return [JSON.stringify(applyPatch(old, ops)), JSON.stringify(old) === before];
             });
           }""",
        [bundle("patch.js"), cases],
    )
    page.close()
    for (_, _, new), (after, kept) in zip(cases, results, strict=True):
        assert json.loads(after) == new
        assert kept


def test_a_table_that_is_changed_where_it_stands_says_what_changed(browser: Browser):
    rng = random.Random(1)
    cases = []
    for _ in range(60):
        trees = [{"title": "t", "nodes": {f"#{i}": {"x": 0, "at": {"y": 1}} for i in range(6)}, "edges": {}}]
        for _ in range(4):
            nodes = copy.deepcopy(trees[-1]["nodes"])
            for key in rng.sample(sorted(nodes), rng.randrange(3)):
                rng.choice([nodes[key], nodes[key]["at"]])["x"] = rng.random()
            if rng.random() < 0.4:
                nodes[f"#{rng.random()}"] = {"x": 3, "at": {}}
            if rng.random() < 0.2:
                del nodes[rng.choice(sorted(nodes))]
            trees.append({"title": rng.choice("tu"), "nodes": nodes, "edges": {}})
        cases.append(trees)
    patches = [[diff(old, new) for old, new in pairwise(trees)] for trees in cases]
    page = browser.new_page()
    results = page.evaluate(
        """async ([code, firsts, patches]) => {
             const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
             const { applyPatch, News } = await import(url);
             return firsts.map((first, k) => {
               let tree = first;
               const news = new News(), table = tree.nodes;
               const told = [news.of(table)];
               for (const ops of patches[k]) {
                 const last = tree;
                 tree = applyPatch(tree, ops, true);
                 const fresh = tree !== last || !ops.length;
                 told.push([JSON.stringify(tree), news.of(tree.nodes), tree.nodes === table, fresh]);
               }
               return told;
             });
           }""",
        [
            bundle("patch.js", "news.js"),
            [trees[0] for trees in cases],
            patches,
        ],
    )
    page.close()
    told_all = 0
    for trees, (at_first, *told) in zip(cases, results, strict=True):
        assert at_first is None, "all of it has to be read"
        touched = False
        for (old, new), (after, keys, same_table, fresh_root) in zip(pairwise(trees), told, strict=True):
            assert (json.loads(after), same_table, fresh_root) == (new, True, True)
            changed = {
                key
                for key in old["nodes"].keys() | new["nodes"].keys()
                if old["nodes"].get(key) != new["nodes"].get(key)
            }
            gone = old["nodes"].keys() - new["nodes"].keys()
            if gone or (changed and not touched):
                assert keys is None
            else:
                assert set(keys) == changed
                told_all += 1
            touched = touched or bool(changed)
    assert told_all > 100


SPEAKS = """
window.line = document.createElement("p");
document.body.append(window.line);
window.say = announcer(window.line);
"""


def test_words_for_a_screen_reader_wait_for_rest_but_follow_what_never_rests(browser: Browser):
    page = browser.new_page()
    page.clock.install(time=0)
    page.set_content("<main></main>")
    page.add_script_tag(type="module", content=bundle("common.js") + SPEAKS)
    page.wait_for_function("() => window.say")
    page.clock.pause_at(3_600_000)

    def heard(say: str, after: int) -> str:
        page.evaluate("text => window.say(text)", say)
        page.clock.run_for(after)
        return str(page.evaluate("window.line.textContent"))

    assert heard("first", 1) == "first", "there is nothing to wait for"
    assert heard("second", 299) == "first"
    assert heard("third", 301) == "third", "things have settled"
    steps = [heard(f"step {k}", 100) for k in range(60)]
    assert set(steps[:49]) == {"third"}
    assert steps[-1] not in ("third", "step 59"), "every few seconds it says where things are"
    page.close()
