"""A pipeline and a cluster on a page from disk and in a notebook: stepped through, each picture as it was recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.harness import PATIENCE_MS, LabPage
from tests.browser.shots import Shots
from tests.browser.waiting import faults, still
from tests.slices import sliced
from tests.widgets.golden_cluster import lost
from tests.widgets.golden_pipeline import ran
from widgets import ClusterView, Player
from widgets.pictures.geometry import hatch
from widgets.pictures.scene import SPANS
from widgets.views.pipeline.view import PipelineView

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def opened(browser: Browser, path: Path, scheme: str = "light") -> tuple[Page, list[str]]:
    context = browser.new_context(color_scheme=scheme, offline=True, viewport={"width": 1060, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    trouble: list[str] = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda message: trouble.append(message.text))
    page.goto(path.as_uri())
    page.wait_for_selector("body[data-lab-ready]")
    return page, trouble


@pytest.fixture(scope="module")
def view() -> PipelineView:
    return PipelineView(ran("1f1b", 4, 4))


BARS = """() => Object.fromEntries([...document.querySelectorAll("[role=option][data-kind$=_span]")].map(g => {
    const box = g.querySelector(".lab-box").getBBox();
    const place = g.getAttribute("transform").match(/[-\\d.]+/g).map(Number);
    return [g.dataset.key, [g.dataset.kind, g.dataset.state, place[0], box.width, g.getAttribute("aria-label")]];
}))"""


def test_each_step_shows_the_spans_the_messages_and_the_words_of_the_run(
    browser: Browser, tmp_path: Path, shots: Shots
):
    view = PipelineView(ran("1f1b", 3, 2))
    player = Player(view)
    page, trouble = opened(browser, player.export(tmp_path / "pipeline.html"))
    step = page.get_by_role("button", name="step", exact=True)
    for k, stop in enumerate(player.transport.stops):
        if k:
            step.click()
        words = view.text_at(int(stop))
        page.wait_for_function("w => document.querySelector('.lab-text-twin').textContent === w", arg=words)
        still(page)
        scene = view.picture_at(int(stop))
        bars = {f"#{n.id}": n for n in scene.nodes if n.kind in SPANS}
        drawn = page.evaluate(BARS)
        assert drawn.keys() == bars.keys()
        for key, (kind, state, x, width, aria) in drawn.items():
            node = bars[key]
            assert (kind, state) == (node.kind, node.state)
            assert aria.startswith(node.aria)
            assert x == pytest.approx(node.x, abs=0.1)
            assert width == pytest.approx(node.width, abs=0.1)
        lively = {f"#{e.id}": e.label for e in scene.edges if e.state != "idle"}
        moving = page.locator(".lab-edge[data-key]:not([data-state=idle])")
        assert {e.get_attribute("data-key") for e in moving.all()} == set(lively)
        assert page.locator(".lab-mark-shape, .lab-mark-words").count() == len(scene.marks)
        if k == len(player.transport.stops) // 2:
            shots(page, "pipeline-between")
    assert trouble == []
    page.context.close()


def test_bars_and_marks_of_the_plan_are_hatched_as_in_the_svg(browser: Browser, tmp_path: Path, view: PipelineView):
    page, _ = opened(browser, view.export(tmp_path / "pipeline.html"))
    page.get_by_role("slider", name="frame").focus()
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelectorAll('[role=option][data-kind=backward_span]').length === 16")
    scene = view.picture_at(len(view.recording))
    for node in scene.nodes:
        if node.kind == "backward_span":
            drawn = page.locator(f'.lab-node[data-key="#{node.id}"] .lab-hatch').get_attribute("d")
            assert drawn == hatch(round(node.width, 1), round(node.height, 1))
    for mark in scene.marks:
        if mark.kind == "ideal_backward":
            drawn = page.locator(f'.lab-mark-shape[data-key="#{mark.id}"] .lab-hatch').get_attribute("d")
            assert drawn == hatch(round(mark.width, 1), round(mark.height, 1), 5.0)
    assert page.evaluate("() => document.querySelectorAll('.lab-marks[aria-hidden=true]').length") == 2
    page.context.close()


def test_the_keyboard_walks_from_stage_to_stage_and_to_the_bars(browser: Browser, tmp_path: Path, view: PipelineView):
    page, _ = opened(browser, view.export(tmp_path / "pipeline.html"))
    page.get_by_role("slider", name="frame").focus()
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelectorAll('[role=option][data-kind=backward_span]').length === 16")
    page.locator('.lab-node[data-key="#s0"]').focus()
    page.keyboard.press("ArrowRight")
    here = "() => document.activeElement.getAttribute('aria-label')"
    assert page.evaluate(here).startswith("stage 1, all done, holds no activations")
    page.keyboard.press("End")
    assert page.evaluate(here).startswith("rank ")
    page.context.close()


@sliced("scheme")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault(browser: Browser, tmp_path: Path, view: PipelineView, scheme: str, shots: Shots):
    for kind in (view, ClusterView(lost())):
        page, trouble = opened(browser, kind.export(tmp_path / "page.html"), scheme)
        page.get_by_role("slider", name="frame").focus()
        page.keyboard.press("End")
        assert faults(page) == []
        shots(page, f"{kind.title.lower()}-end-{scheme}")
        assert trouble == []
        page.context.close()


def test_a_lost_rank_is_told_on_its_card(browser: Browser, tmp_path: Path):
    view = ClusterView(lost())
    page, _ = opened(browser, view.export(tmp_path / "cluster.html"))
    page.get_by_role("slider", name="frame").focus()
    page.keyboard.press("End")
    card = page.locator('.lab-node[data-key="#w1"]')
    page.wait_for_function("() => document.querySelector('.lab-node[data-key=\"#w1\"]').dataset.state === 'trouble'")
    said = card.get_attribute("aria-label") or ""
    assert "holds rank 1: lost. its process was killed (signal 9)" in said
    card.hover()
    expect(page.locator(".lab-tip")).to_contain_text("its process was killed (signal 9)")
    page.context.close()


PACED = """
import lab
from tests.widgets.golden_pipeline import ran
from lab.parallel.pipeline.pacing import Paced
from widgets import PipelineView, Player
rec = ran("gpipe", 2, 2, paced=Paced(forward_ms=5, backward_ms=10))
player = Player(PipelineView(rec))
player
"""


def test_in_a_notebook_it_is_stepped_and_says_that_it_is_paced(lab_page: Callable[..., LabPage], shots: Shots):
    lab = lab_page(PACED)
    lab.page.wait_for_selector("[role=option][data-kind=forward_span]")
    expect(lab.page.locator(".lab-provenance")).to_contain_text("no measure of this machine")
    for n in (2, 3, 4):
        lab.page.get_by_role("button", name="Step", exact=True).click()
        bars = "[role=option][data-kind$=_span]:not([data-state=waiting])"
        lab.page.wait_for_function(f"() => document.querySelectorAll('{bars}').length === {n}")
    drawn = lab.page.evaluate(BARS)
    known = lab.kernel("print([n.id for n in player.views[0].picture_at(player.transport.position).nodes])")
    assert all(repr(key.removeprefix("#")) in known for key in drawn)
    shots(lab.page, "pipeline-notebook")
    assert lab.errors == []
