"""Views, player and controls in a real JupyterLab: step, seek, choose a node, pause and stop a training."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.harness import LabPage
from tests.browser.shots import Shots
from tests.browser.waiting import says

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

Open = Callable[..., LabPage]

GRAPH = """
import lab
from widgets import GraphView, Player, dashboard
x, y = lab.tensor(2.0, requires_grad=True, name="x"), lab.tensor(3.0, requires_grad=True, name="y")
with lab.record(detail="value") as rec:
    z = x * y + x
    z.backward()
player = Player(GraphView(rec))
player
"""
TRAIN = """
import lab
from lab import nn
from widgets import dashboard
train, test = lab.data.digits()
model = nn.Sequential(nn.Linear(64, 32, rng=0), nn.Tanh(), nn.Linear(32, 10, rng=1))
run = lab.fit(model, train, validation=test, epochs=1_000_000, measure_every=10)
board = dashboard(run)
board
"""

EXPLODE = """
import lab
from widgets import dashboard
train, _ = lab.data.digits()
model = lab.nn.Linear(64, 1, rng=0)
sgd = lab.optim.SGD(model.parameters(), learning_rate=0.01)
data = train.inputs, train.targets[:, None].astype("float32")
run = lab.fit(model, data, loss=lab.nn.mse, optimizer=sgd, epochs=1_000_000)
dashboard(run)
"""


def button(lab: LabPage, name: str) -> Locator:
    return lab.page.get_by_role("button", name=name, exact=True)


def test_a_graph_is_stepped_and_each_picture_is_what_was_recorded(lab_page: Open, shots: Shots):
    lab = lab_page(GRAPH)
    assert lab.cell_errors() == []
    says(lab.page, "1 of 7: v₁ = x * y = 6.0 was computed.")
    nodes = lab.page.locator(".lab-scene .lab-node[data-key]")
    expect(nodes).to_have_count(3)
    expect(lab.page.locator(".lab-search").first, "three boxes are found by looking").to_be_hidden()
    expect(lab.page.locator("[data-lab-twin] svg").first).to_be_hidden()
    lab.theme("JupyterLab Light")
    shots(lab.page.locator(".jp-OutputArea").first, "graph-1")
    for stop in range(2, 8):
        button(lab, "Step").click()
        says(lab.page, f"{stop} of 7")
        if stop in (2, 4, 5):
            shots(lab.page.locator(".jp-OutputArea").first, f"graph-{stop}")
    expect(nodes).to_have_count(4)
    expect(lab.page.locator(".lab-scene").first).to_contain_text("grad +4.0")
    lab.page.get_by_role("slider", name="Moment").focus()
    for stop in (6, 5, 4):
        lab.page.keyboard.press("ArrowLeft")
        says(lab.page, f"{stop} of 7")
    says(lab.page, "4 of 7: v₂ = v₁ + x sends 1.0 to v₁, 1.0 to x.")
    key = lab.kernel("print(z.node.parents[0].id)")
    lab.page.locator(f'.lab-node[data-key="#{key}"]').click()
    lab.page.wait_for_function("() => document.querySelector('.lab-inspector')?.textContent.includes('ct * y')")
    lab.theme("JupyterLab Dark")
    shots(lab.page.locator(".jp-OutputArea").first, "graph-dark")
    assert lab.errors == []


def test_playing_ends_by_itself(lab_page: Open):
    lab = lab_page(GRAPH)
    lab.kernel("player.transport.speed = 5.0")
    button(lab, "Play").click()
    says(lab.page, "7 of 7")
    lab.until("print(player.transport.playing)", "False")
    expect(button(lab, "Play")).to_be_visible()
    assert lab.errors == []


def test_a_training_is_paused_stepped_and_stopped_from_its_controls(lab_page: Open, shots: Shots):
    lab = lab_page(TRAIN)
    assert lab.cell_errors() == []
    lab.page.wait_for_function("() => document.querySelectorAll('.lab-plot .scatterlayer .trace').length >= 2")
    button(lab, "Pause").click()
    says(lab.page, "paused")
    lab.until("print(run.state)", "paused")
    step = int(lab.kernel("print(run.progress[0])"))
    button(lab, "Step").click()
    lab.until("print(run.progress[0])", str(step + 1))
    lab.until("print(board.loss.position == len(run.recording))", "True")
    lab.theme("JupyterLab Light")
    shots(lab.page.locator(".jp-OutputArea").first, "training")
    lab.theme("JupyterLab Dark")
    shots(lab.page.locator(".jp-OutputArea").first, "training-dark")
    slider = lab.page.get_by_role("slider", name="Learning rate")
    expect(slider).to_have_attribute("aria-valuetext", "0.001")
    expect(lab.page.get_by_role("progressbar", name="Progress")).to_have_attribute("aria-valuetext", re.compile("."))
    slider.focus()
    lab.page.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "0.0011")
    lab.until("print(run.hyperparameters['learning_rate'] > 0.001)", "True")
    button(lab, "Stop").click()
    says(lab.page, "stopped")
    assert lab.errors == []


def test_an_exploded_training_is_named_and_one_click_goes_back(lab_page: Open, shots: Shots):
    lab = lab_page(EXPLODE)
    lines = "document.querySelectorAll('.lab-plot .scatterlayer .trace').length"
    lab.page.wait_for_function(f"() => {lines} >= 3")
    rate = lab.page.get_by_role("slider").first
    rate.focus()
    lab.page.keyboard.press("End")
    says(lab.page, "paused: ")
    state = lab.page.get_by_role("status").first
    expect(state).to_contain_text(re.compile("nan|inf"))
    expect(state).to_contain_text("at step ")
    expect(state, "the operation in which it began").to_contain_text("first nan or inf")
    assert lab.page.evaluate(lines) >= 3, "nothing blanks"
    lab.theme("JupyterLab Light")
    button(lab, "Back to sound state").focus()
    ring = "getComputedStyle(document.activeElement).outlineWidth"
    lab.page.wait_for_function(f"() => {ring} === '2px'")  # the focus can be seen
    shots(lab.page.locator(".jp-OutputArea").first, "exploded")
    lab.page.keyboard.press("Enter")
    says(lab.page, "Back at step ")
    says(lab.page, "lower it, then go on")
    lab.until("import numpy as np; print(all(np.isfinite(p.numpy()).all() for p in model.parameters()))", "True")
    expect(button(lab, "Back to sound state")).to_be_hidden()
    at = int(lab.kernel("print(run.progress[0])"))
    rate.focus()
    lab.page.keyboard.press("Home")
    lab.until("print(run.hyperparameters['learning_rate'] < 0.01)", "True")
    button(lab, "Resume").click()
    lab.until(f"print(run.state, run.progress[0] > {at} + 50)", "running True")
    assert lab.page.evaluate(lines) >= 3
    button(lab, "Stop").click()
    says(lab.page, "stopped")
    assert lab.errors == []


def test_a_page_that_is_reloaded_while_the_training_runs_has_its_views_back_and_they_stay_live(lab_page: Open):
    lab = lab_page(TRAIN, fresh=True)  # a shared page that was reloaded twice waits for ever for its next cell
    lab.page.wait_for_function("() => document.querySelectorAll('.lab-plot .scatterlayer .trace').length >= 2")
    lab.reload()
    last = "document.querySelector('.lab-plot')?._fullData?.[0].x.slice(-1)[0]"
    lab.page.wait_for_function(f"() => {last} > 0")
    shown = lab.page.evaluate(last)
    lab.page.wait_for_function(f"shown => {last} > shown", arg=shown)
    button(lab, "Pause").click()
    says(lab.page, "paused")
    lab.until("print(run.state)", "paused")
    button(lab, "Stop").click()
    says(lab.page, "stopped")
    assert lab.errors == []


MANY = """
from IPython.display import display
from ipywidgets.widgets.widget import _instances
more = [dashboard(run) for _ in range(8)]
for other in more:
    display(other.widget)
"""


def test_a_page_of_hundreds_of_widgets_that_is_reloaded_during_a_training_has_them_all_and_hears_each_click(
    lab_page: Open,
):
    lab = lab_page(TRAIN, MANY, fresh=True)  # hundreds of widgets that close flood a shared one
    assert int(lab.kernel("print(len(_instances))")) > 400
    lab.reload()
    lab.page.wait_for_function("() => document.querySelectorAll('.lab-plot .scatterlayer').length >= 18")
    assert "model not found" not in (lab.page.locator("body").text_content() or "")
    button(lab, "Pause").last.click()
    lab.until("print(run.state)", "paused")
    button(lab, "Resume").first.click()
    lab.until("print(run.state)", "running")
    lab.kernel("run.stop()")
    assert lab.errors == []


LATE = """
from threading import Thread
from widgets.live import restore
states = restore.states
def late():
    answer = states()
    run.stop()
    run.join(30)
    tells = Thread(target=board.controls.refresh)  # as the pacer does; not the thread that answers, which ends with it
    tells.start()
    tells.join()
    return answer
restore.states = late
"""


def test_what_happens_while_a_page_is_loaded_is_told_once_it_listens(lab_page: Open):
    lab = lab_page(TRAIN, fresh=True)
    lab.kernel(LATE)
    lab.reload()
    says(lab.page, "stopped")
    expect(button(lab, "Pause")).to_be_disabled()
    lab.kernel("restore.states = states")
    assert lab.errors == []
