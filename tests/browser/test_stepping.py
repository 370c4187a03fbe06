"""Into a step of a training from the page: operation by operation, node by node, on to a breakpoint."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.harness import LabPage
from tests.browser.shots import Shots
from tests.browser.test_views import button
from tests.browser.waiting import says
from tests.slices import sliced
from widgets.controls.run_controls import UNIT_WORDS

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

Open = Callable[..., LabPage]

STEPPED = """
import lab
from widgets import RunControls
train, test = lab.data.digits()
model = lab.nn.mlp(64, 16, 10, rng=0)
run = lab.fit(model, train, epochs=1_000_000, batch_size=32, paused=True)
controls = RunControls(run)
controls
"""


def choose(lab: LabPage, name: str, label: str) -> None:
    lab.page.get_by_label(name, exact=True).select_option(label=label)


def step_by(lab: LabPage, unit: str) -> None:
    """Choose what a click on Step lets pass, and wait for the kernel: it may hear the click first."""
    choose(lab, "Step by", UNIT_WORDS[unit])
    lab.until("print(controls._parts['by'].value)", unit)


@sliced("theme")
@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_one_steps_into_a_training_and_sees_each_operation_and_gradient(lab_page: Open, shots: Shots, theme: str):
    lab = lab_page(STEPPED)
    lab.theme(theme)
    says(lab.page, "‖ paused")
    step_by(lab, "op")
    for n in range(1, 4):
        button(lab, "Step").click()
        lab.until("print(0 if run.graph is None else len(run.graph.positions(lab.events.OpRecorded)))", str(n))
    says(lab.page, "held after relu of module 1")
    nodes = lab.page.locator(".lab-scene .lab-node[data-key]")
    expect(lab.page.locator(".lab-scene").first).to_contain_text("relu")
    n_forward = nodes.count()
    step_by(lab, "node")
    for _ in range(3):
        before = lab.kernel("print(run.reason)")
        button(lab, "Step").click()
        lab.until(f"print(run.reason != {before!r} and run.state)", "paused")
    says(lab.page, "held after the backward rule of")
    expect(lab.page.locator(".lab-scene").first).to_contain_text("grad")
    expect(nodes.nth(n_forward)).to_be_attached()
    shots(lab.page.locator(".jp-OutputArea").first, f"stepping-{theme.rsplit(maxsplit=1)[-1].lower()}")
    choose(lab, "Break on", "gradient norm above")
    lab.page.get_by_label("Bound or place", exact=True).fill("0")
    button(lab, "Add").click()
    says(lab.page, "held after")
    button(lab, "gradient above 0").wait_for()
    button(lab, "Resume").click()
    says(lab.page, "the norm of the gradient of step")
    shots(lab.page.locator(".jp-OutputArea").first, f"breakpoint-{theme.rsplit(maxsplit=1)[-1].lower()}")
    button(lab, "gradient above 0").click()
    button(lab, "gradient above 0").wait_for(state="detached")
    button(lab, "Resume").click()
    says(lab.page, "▶ running")
    button(lab, "Pause").dblclick()  # its second click would be one on Resume
    says(lab.page, "‖ paused")
    button(lab, "Resume").wait_for()
    assert lab.kernel("print(run.state)") == "paused", "whatever the second click said is heard before this question"
    button(lab, "Stop").click()
    says(lab.page, "■ stopped")
    assert lab.cell_errors() == []
    assert lab.errors == []


def test_a_bound_typed_before_a_slow_kernel_answers_is_kept(lab_page: Open):
    lab = lab_page(STEPPED)
    says(lab.page, "‖ paused")
    kernel = int(lab.kernel("import os; print(os.getpid())"))
    os.kill(kernel, signal.SIGSTOP)
    try:
        choose(lab, "Break on", "gradient norm above")
        lab.page.get_by_label("Bound or place", exact=True).fill("0")
    finally:
        os.kill(kernel, signal.SIGCONT)
    lab.page.get_by_text("a number, as 10", exact=True).wait_for()
    button(lab, "Add").click()
    button(lab, "gradient above 0").wait_for()
    lab.kernel("run.stop()")
    assert lab.cell_errors() == []
    assert lab.errors == []


def test_what_is_put_right_after_a_refusal_is_what_the_next_click_adds(lab_page: Open, shots: Shots):
    lab = lab_page(STEPPED)
    lab.theme("JupyterLab Light")
    says(lab.page, "‖ paused")
    field = lab.page.get_by_label("Bound or place", exact=True)
    choose(lab, "Break on", "operation or module")
    field.fill("reluu")
    field.press("Enter")
    says(lab.page, "did you mean 'relu'")
    kernel = int(lab.kernel("import os; print(os.getpid())"))
    os.kill(kernel, signal.SIGSTOP)  # a busy kernel, to which text and click come together
    try:
        field.fill("relu")
        button(lab, "Add").dblclick()
    finally:
        os.kill(kernel, signal.SIGCONT)
    button(lab, "forward through 'relu'").wait_for()
    lab.page.wait_for_function("() => !document.body.textContent.includes('did you mean')")
    lab.page.wait_for_function("() => document.querySelector('.lab-breakpoints input').value === ''")
    for text in ("tanh", "matmul"):
        field.fill(text)
        field.press("Enter")
        button(lab, f"forward through '{text}'").wait_for()
    lab.kernel("run.step(); run.wait_until('paused', timeout=60)")
    lab.kernel("run.clear_breakpoint(\"forward through 'relu'\"), run.clear_breakpoint(\"forward through 'matmul'\")")
    lab.kernel("run.step(2); run.wait_until('paused', timeout=60)")
    button(lab, "forward through 'tanh' (not in the last step)").wait_for()
    choose(lab, "Break on", "loss above")
    for bound in ("-1", "-2"):
        field.fill(bound)
        button(lab, "Add").click()
        button(lab, f"loss above −{bound[1:]}").wait_for()
    says(lab.page, "loss above −2 takes the place of loss above −1")
    shots(lab.page.locator(".jp-OutputArea").first, "breakpoints-light")
    lab.theme("JupyterLab Dark")
    shots(lab.page.locator(".jp-OutputArea").first, "breakpoints-dark")
    button(lab, "loss above −2").click()
    button(lab, "loss above −2").wait_for(state="detached")
    expect(button(lab, "forward through 'tanh' (not in the last step)")).to_be_focused()
    lab.page.keyboard.press("Enter")
    button(lab, "forward through 'tanh' (not in the last step)").wait_for(state="detached")
    expect(button(lab, "Add")).to_be_focused()
    button(lab, "Stop").click()
    lab.page.wait_for_function("() => document.querySelector('.lab-breakpoints input').disabled")
    assert lab.cell_errors() == []
    assert lab.errors == []


ON_RANKS = """
import lab
from lab.parallel import Cluster, DataParallel
from widgets import RunControls
cluster = Cluster(2)
run = lab.fit(lab.nn.mlp(64, 16, 10, rng=0), lab.data.digits()[0], epochs=3, paused=True, on=DataParallel(cluster))
controls = RunControls(run)
controls
"""


def test_one_steps_through_the_all_reduce_of_real_workers_and_sees_each_chunk_come(lab_page: Open, shots: Shots):
    lab = lab_page(ON_RANKS, fresh=True)
    lab.theme("JupyterLab Light")
    says(lab.page, "‖ paused")
    step_by(lab, "hop")
    button(lab, "Step").click()
    says(lab.page, "held before step 2 of 2 of the ring all-reduce")
    lab.kernel("def added(): c = run.recording.columns(lab.events.ChunkMoved); return c['step'][c['reduces']].tolist()")
    lab.until("print(sorted(added()))", "[0, 0]")  # before it, the parameters of the beginning were broadcast
    lab.page.locator(".lab-scene .lab-node[data-key]").first.wait_for()
    shots(lab.page.locator(".jp-OutputArea").first, "stepping-ranks")
    button(lab, "Step").click()
    lab.until("print(run.progress[0])", "1")
    button(lab, "Resume").click()
    says(lab.page, "finished")
    lab.kernel("cluster.close()")
    assert lab.cell_errors() == []
    assert lab.errors == []


ON_STAGES = """
import lab
from lab.parallel import Cluster, Pipeline
from widgets import RunControls
cluster = Cluster(2)
model = lab.nn.mlp(64, 32, 32, 10, rng=0)
on = Pipeline(cluster, n_stages=2, n_micro=4)
run = lab.fit(model, lab.data.digits()[0], batch_size=200, epochs=2, paused=True, on=on)
controls = RunControls(run)
controls
"""


def test_one_steps_a_pipeline_of_real_workers_by_its_actions_and_its_picture_grows(lab_page: Open, shots: Shots):
    lab = lab_page(ON_STAGES, fresh=True)
    lab.theme("JupyterLab Light")
    says(lab.page, "‖ paused")
    step_by(lab, "action")
    bars = lab.page.locator("[role=option][data-kind$=_span]")
    for tick, n_bars in ((2, 1), (3, 3), (4, 4), (5, 6), (6, 8)):
        button(lab, "Step").click()
        says(lab.page, f"held before tick {tick} of 10")
        lab.page.wait_for_function(
            "n => document.querySelectorAll('[role=option][data-kind$=_span]').length === n", arg=n_bars
        )
        lab.until("print(len(run.recording.positions(lab.events.ActionFinished)))", str(n_bars))
    shots(lab.page.locator(".jp-OutputArea").first, "stepping-pipeline-light")
    for tick in (7, 8, 9, 10):
        button(lab, "Step").click()
        says(lab.page, f"held before tick {tick} of 10")
    button(lab, "Step").click()
    lab.until("print(run.progress[0])", "1")
    button(lab, "Step").click()
    says(lab.page, "held before tick 2 of 10")
    lab.page.wait_for_function("() => document.querySelectorAll('[role=option][data-kind$=_span]').length === 1")
    button(lab, "Step").click()
    says(lab.page, "held before tick 3 of 10: next B0 on rank 1; rank 0 rests")
    lab.theme("JupyterLab Dark")
    expect(bars).to_have_count(3)
    shots(lab.page.locator(".jp-OutputArea").first, "stepping-pipeline-dark")
    button(lab, "Resume").click()
    says(lab.page, "finished")
    lab.kernel("cluster.close()")
    assert lab.cell_errors() == []
    assert lab.errors == []
