"""A page in a narrow window, as on a phone or beside another: what is too wide for it begins readable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import plotly.graph_objects as go
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.harness import PATIENCE_MS
from tests.browser.shots import Shots
from tests.browser.test_ranks import ring_of_four
from tests.browser.waiting import still
from tests.slices import sliced
from widgets.export.page import Frame, write_page
from widgets.pictures.chart import Chart
from widgets.pictures.scene import Edge, Node, Scene
from widgets.pictures.theme import axes

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600), sliced("narrow")]


def wide(active: int, n: int = 12) -> Scene:
    nodes = tuple(
        Node(f"n{k}", 60 + 160 * k, 40, 110, 50, f"value {k}", f"{k}.0", state="active" if k == active else "idle")
        for k in range(n)
    )
    edges = tuple(Edge(f"e{k}", f"n{k}", f"n{k + 1}") for k in range(n - 1))
    legend = (("op", "an operation"),)
    return Scene(nodes, edges, caption="Wide.", title="wide", legend=legend, extent=(160 * n - 40, 80))


SMALL = Scene((Node("a", 60, 40, 110, 50, "a"), Node("b", 300, 40, 110, 50, "b")), title="small", extent=(360, 80))
FRAMES = [Frame("at rest", (wide(-1), SMALL)), Frame("at 11", (wide(11), SMALL)), Frame("over", (wide(-1), SMALL))]
SHOWN = """() => [...document.querySelectorAll(".lab-scene")].map(scene => {
  const stage = scene.querySelector(".lab-stage"), box = stage.getBoundingClientRect();
  const inside = [...scene.querySelectorAll(".lab-node[data-key]")].filter(node => {
    const own = node.querySelector(".lab-box").getBoundingClientRect();
    return own.left >= box.left && own.right <= box.right;
  });
  return { inside: inside.map(node => node.dataset.key.slice(1)), more: stage.dataset.more,
           hint: getComputedStyle(stage, "::after").content, map: !scene.querySelector(".lab-minimap").hidden,
           high: scene.querySelector(".lab-label").getBoundingClientRect().height };
})"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(tmp_path_factory.mktemp("narrow") / "page.html", FRAMES, "Wide")


@pytest.fixture(params=["light", "dark"])
def narrow(browser: Browser, path: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(
        color_scheme=request.param, offline=True, viewport={"width": 500, "height": 800}, reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(path.as_uri())
    page.wait_for_selector("body[data-lab-ready]")
    yield page
    context.close()


def test_in_a_narrow_window_a_wide_picture_begins_readable_says_so_and_is_all_seen_at_a_click(
    narrow: Page, shots: Shots
):
    still(narrow)
    first, small = narrow.evaluate(SHOWN)
    assert first["inside"][0] == "n0"
    assert first["high"] > 11, "the words can be read"
    assert (first["more"], first["map"], first["hint"]) == ("right", True, '"drag to see more"')
    assert (small["inside"], small["more"], small["map"], small["hint"]) == (["a", "b"], "", False, "none")
    shots(narrow, f"narrow-{narrow.evaluate('document.body.dataset.labTheme')}")
    assert narrow.evaluate("document.documentElement.scrollWidth") == 500
    narrow.get_by_role("button", name="fit to view").first.click()
    narrow.wait_for_function(f"() => ({SHOWN})()[0].inside.length === 12")


def test_it_stays_where_it_was_when_nothing_happens_any_more(narrow: Page):
    slider = narrow.get_by_role("slider", name="frame")
    slider.focus()
    for _ in range(2):  # to where something happens, and on
        narrow.keyboard.press("ArrowRight")
        assert narrow.evaluate(SHOWN)[0]["inside"][-1] == "n11"


def test_a_wide_window_shows_all_of_it(narrow: Page):
    narrow.set_viewport_size({"width": 1100, "height": 800})
    narrow.wait_for_function(f"() => ({SHOWN})()[0].inside.length === 12")


def test_on_a_projector_a_wide_picture_begins_as_large_as_it_can_be_read_in_any_window(narrow: Page):
    narrow.set_viewport_size({"width": 1400, "height": 800})
    narrow.get_by_label("size").select_option("projector")
    narrow.wait_for_function("() => document.querySelector('.lab-scene').dataset.labSize === 'projector'")
    narrow.wait_for_function(f"() => ({SHOWN})()[0].more === 'right'")
    still(narrow)
    first, small = narrow.evaluate(SHOWN)
    assert first["high"] > 16
    assert (first["inside"][0], first["map"]) == ("n0", True)
    assert small["inside"] == ["a", "b"]


def test_on_a_projector_all_is_shown_where_it_is_only_a_little_smaller_than_it_should_be(
    browser: Browser, tmp_path: Path
):  # fmt: skip
    page = browser.new_page(viewport={"width": 1500, "height": 800}, reduced_motion="reduce")
    page.set_default_timeout(PATIENCE_MS)
    page.goto(write_page(tmp_path / "page.html", [Frame("", (wide(7, 8),))], "Eight").as_uri())
    page.wait_for_selector("body[data-lab-ready]")
    page.get_by_label("size").select_option("projector")
    page.wait_for_function("() => document.querySelector('.lab-scene').dataset.labSize === 'projector'")
    page.wait_for_function(f"() => ({SHOWN})()[0].inside.length === 8")
    assert page.evaluate(SHOWN)[0]["high"] > 14
    page.close()


RING = """() => {
  const stage = document.querySelector(".lab-stage"), box = stage.getBoundingClientRect();
  const ranks = [...stage.querySelectorAll('.lab-node[data-kind="rank"], .lab-node[data-key]')];
  const inside = ranks.every(node => {
    const own = node.getBoundingClientRect();
    return own.width > 0 && own.left >= box.left && own.right <= box.right && own.bottom <= box.bottom;
  });
  const heading = stage.querySelector('.lab-mark-words[data-kind="heading"]').getBoundingClientRect();
  return { inside, wide: box.width, high: box.height, above: heading.top - box.top, letters: heading.height };
}"""


def test_a_ring_that_becomes_narrow_is_seen_whole_and_its_stage_becomes_low(
    browser: Browser, tmp_path: Path, shots: Shots
):
    page = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page.set_default_timeout(PATIENCE_MS)
    page.goto(ring_of_four().export(tmp_path / "ring.html").as_uri())
    page.wait_for_selector("body[data-lab-ready]")
    still(page)
    wide = page.evaluate(RING)
    page.set_viewport_size({"width": 430, "height": 800})
    page.wait_for_function("w => document.querySelector('.lab-stage').clientWidth < w", arg=wide["wide"])
    page.wait_for_function(f"() => ({RING})().inside")
    still(page)
    narrow = page.evaluate(RING)
    shots(page, "narrow-ring")
    assert narrow["above"] < 30, "no empty room above"
    assert narrow["letters"] > 8
    page.set_viewport_size({"width": 1280, "height": 800})
    page.wait_for_function(f"high => ({RING})().high === high", arg=wide["high"])
    page.close()


LEGEND = """() => {
  const plot = document.querySelector(".lab-plot"), top = plot.getBoundingClientRect().top;
  return { under: plot.querySelector(".legend").getBoundingClientRect().bottom - top, plot: plot._fullLayout._size.t,
           range: JSON.stringify(plot._fullLayout.xaxis.range) };
}"""


@pytest.fixture
def chart(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    traces = [go.Scatter(y=[1000.0, 2000.0 + k, 3000.0], name=f"the line called {k}") for k in range(4)]
    drawn = Chart(go.Figure(traces, layout=axes("step", "loss")), caption="Four lines.", title="Loss")
    page = browser.new_page(viewport={"width": 430, "height": 700}, reduced_motion="reduce")
    page.set_default_timeout(PATIENCE_MS)
    page.goto(write_page(tmp_path / "chart.html", [Frame("all", (drawn,))], "Chart").as_uri())
    page.wait_for_selector(".lab-plot .legend")
    still(page)
    yield page
    page.close()


def test_a_chart_that_becomes_wide_has_its_legend_above_its_curves(chart: Page, shots: Shots):
    assert chart.evaluate(LEGEND)["plot"] > 60, "in a narrow window the legend has two rows"
    chart.set_viewport_size({"width": 1200, "height": 700})
    chart.wait_for_function(f"() => ({LEGEND})().plot < 60")
    still(chart)
    legend = chart.evaluate(LEGEND)
    assert legend["under"] <= legend["plot"] < 60
    shots(chart, "wide-chart")
    ticks = chart.locator(".ytick text").all_text_contents()
    assert "2,000" in ticks, "thousands are written as in the words around it"


def test_the_tools_of_a_chart_are_for_the_mouse_and_say_which_chart_they_are_of(chart: Page):
    plot = chart.locator(".lab-plot")
    plot.focus()
    chart.keyboard.press("Tab")
    assert chart.evaluate("document.activeElement.closest('.lab-plot') === null"), "the chart is one stop"
    before = chart.evaluate(LEGEND)["range"]
    plot.hover()
    chart.get_by_role("button", name="Zoom in: Loss").click()
    chart.wait_for_function(f"before => ({LEGEND})().range !== before", arg=before)
    expect(chart.get_by_role("toolbar", name="tools of Loss")).to_have_count(1)
