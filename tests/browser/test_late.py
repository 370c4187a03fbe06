"""Widgets whose page is so busy that anywidget gives them up before they begin: they come, and follow their kernel."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.harness import LabPage
from tests.browser.test_leaks import RUN

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

Open = Callable[..., LabPage]

BUSY = """
const patient = AbortSignal.timeout;
AbortSignal.timeout = (ms) => patient.call(AbortSignal, ms === 2000 ? 0 : ms);
"""
"""What a page that blocks for 2 seconds does to each model that begins then: its time is over before its code came."""
VIEWS = """
import ipywidgets as ipw
import lab
from widgets import GraphView, LossView, Player
x = lab.tensor(2.0, requires_grad=True, name="x")
with lab.record() as rec:
    (x * x + x).backward()
run = lab.fit(lab.nn.mlp(64, 8, 10, rng=0), lab.data.digits()[0], epochs=1, paused=True)
player, graph, loss = Player(GraphView(rec)), GraphView(rec), LossView(run)
many = ipw.VBox([player.widget, graph.widget, loss.widget])
many
"""
NODES = """() => [...document.querySelectorAll(".lab-scene")].filter(root => root.checkVisibility())
    .map(root => root.querySelectorAll(".lab-node[data-key]").length)"""


def follow(lab: LabPage) -> None:
    """Pictures, words, slider and a click, in both directions."""
    page = lab.page
    for stop, (n_player, words) in enumerate([(2, "1 of "), (3, "2 of ")]):
        lab.kernel(f"player.seek({stop})")
        page.wait_for_function(f"n => ({NODES})()[0] === n", arg=n_player)
        expect(page.locator(".lab-player-box [role=status]").first).to_contain_text(words)
        expect(page.get_by_role("slider", name="Moment")).to_have_value(str(stop + 1))
    node = page.locator(".lab-scene:visible").nth(1).locator(".lab-node[data-key]").first
    node.click()
    lab.until("print(bool(graph.selected))", "True")
    lab.kernel("graph.select('')")


def test_widgets_that_begin_too_late_for_anywidget_come_and_follow_their_kernel_also_after_a_reload(lab_page: Open):
    lab = lab_page("'a cell'", fresh=True)
    page = lab.page
    page.add_init_script(BUSY)
    page.evaluate(BUSY.replace("const patient", "window.patient").replace("patient.call", "window.patient.call"))
    page.evaluate(RUN, VIEWS)
    page.wait_for_function(f"() => `${{({NODES})()}}` === '2,3' && document.querySelector('.lab-plot .main-svg')")
    assert lab.late, "the limit was hit"
    follow(lab)
    lab.kernel("run.step(3)")
    page.wait_for_function("() => document.querySelector('.lab-chart .lab-caption').textContent.length > 0")
    lab.reload()
    page.wait_for_function(f"() => `${{({NODES})()}}` === '3,3'")
    follow(lab)
    expect(page.get_by_text("could not be drawn")).to_have_count(0)
    lab.kernel("run.stop()")
