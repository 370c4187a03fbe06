"""Lesson 00 in a real JupyterLab: what a learner does in it, and whether the page shows what ran in the kernel."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.harness import KERNEL, PATIENCE_MS, LabServer
from tests.browser.learner import Learner, in_lesson, ran_from_clean, shoot_all
from tests.browser.lesson_page import page_of, plays_without_a_network
from tests.browser.waiting import eventually
from tests.slices import sliced

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LESSON = "00_start_here.ipynb"
MAX_BYTES = 8_000_000
"""From the kernel to the browser, for opening and running all of it."""


@pytest.fixture(scope="module")
def learner(browser: Browser, server: LabServer) -> Iterator[Learner]:
    """The lesson, opened and run: while it trained it was paused, stepped, changed and stopped."""
    # So long that it cannot end by itself before a slow machine has pressed all buttons.
    with in_lesson(browser, server, LESSON, change=("epochs=150", "epochs=20_000")) as someone:
        someone.page.evaluate(  # not awaited: the training below is handled while the cells run
            "() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }"
        )
        paused_at.append(train_by_hand(someone))
        someone.lab.rest()
        yield someone


paused_at: list[int] = []
"""The step of the pause."""


def train_by_hand(learner: Learner) -> int:
    """Pause, step, set the learning rate and stop, while the cell below awaits the run; the step of the pause."""
    cell = learner.cell("dashboard(run)")
    where = cell.locator(".widget-label", has_text=re.compile(r"^step \d"))
    learner.press("dashboard(run)", "Pause")
    expect(cell.get_by_text("paused").first).to_be_visible(timeout=PATIENCE_MS)
    expect(learner.button("dashboard(run)", "Resume")).to_be_visible()
    at = number_in(where)
    learner.press("dashboard(run)", "Step")
    expect(where).to_have_text(re.compile(rf"^step {at + 1:,} of"), timeout=PATIENCE_MS)
    slider = cell.get_by_role("slider").first
    slider.focus()
    learner.page.keyboard.press("ArrowRight")
    learner.press("dashboard(run)", "Step")
    expect(where).to_have_text(re.compile(rf"^step {at + 2:,} of"), timeout=PATIENCE_MS)
    learner.press("dashboard(run)", "Resume")
    expect(learner.button("dashboard(run)", "Pause")).to_be_visible(timeout=PATIENCE_MS)
    learner.press("dashboard(run)", "Stop")
    expect(cell.get_by_text("stopped").first).to_be_visible(timeout=PATIENCE_MS)
    return at


def number_in(where: Locator) -> int:
    text = where.text_content() or ""
    return int(re.sub(r"\D", "", text.partition("of")[0]))


def test_the_lesson_runs_from_clean_without_answers_and_says_not_yet(learner):
    ran_from_clean(learner)


def test_little_is_fetched_from_the_kernel(learner):
    assert 100_000 < learner.lab.received < MAX_BYTES


def test_stepping_to_the_end_shows_the_values_and_gradients_of_the_kernel(learner):
    code = "Player(GraphView(both_ways))"
    cell = learner.cell(code)
    n_stops = learner.kernel("len(GraphView(both_ways).stop_positions(both_ways))")
    for stop in range(2, n_stops + 1):
        learner.press(code, "Step")
        expect(cell.get_by_text(re.compile(rf"^{stop} of {n_stops}: "))).to_be_visible()
    numbers = learner.kernel("{t.name: [t.item(), t.grad.item()] for t in (x, y)}")

    def shows_them() -> None:
        shown = learner.nodes(code)
        for name, (value, gradient) in numbers.items():
            said = re.sub(r"[^\d.eE-]", "", shown[name][1].replace("grad", ""))
            assert (float(shown[name][0]), said and float(said)) == (value, gradient)

    def shows_no_gradient() -> None:
        assert not any("grad" in third for _, third in learner.nodes(code).values())

    eventually(learner.page, shows_them)
    learner.press(code, "Start")
    expect(cell.get_by_text(re.compile(rf"^1 of {n_stops}: "))).to_be_visible()
    eventually(learner.page, shows_no_gradient)


def test_every_box_of_the_training_step_is_in_the_recording(learner):
    code = "Player(GraphView(one_step"
    learner.press(code, "End")
    n_ops, n_leaves = learner.kernel(
        "[len(one_step.positions(k)) for k in (lab.events.OpRecorded, lab.events.LeafUsed)]"
    )
    boxes = learner.cell(code).locator(".lab-node[data-key]")

    def all_are_there() -> None:
        kinds = boxes.evaluate_all("boxes => boxes.map(b => b.dataset.kind)")
        assert sum(kind in ("op", "output") for kind in kinds) == n_ops
        assert kinds.count("leaf") == n_leaves

    eventually(learner.page, all_are_there)


def test_the_training_step_can_be_read_and_the_view_follows_what_happens(learner, shots):
    code = "Player(GraphView(one_step"
    learner.press(code, "Start")
    cell = learner.cell(code).element_handle()
    n_stops = learner.kernel("len(GraphView(one_step).stop_positions(one_step))")
    for width, height in ((1024, 700), (1280, 900)):
        learner.page.set_viewport_size({"width": width, "height": height})
        for stop in range(1, n_stops + 1):
            if stop > 1:
                learner.press(code, "Step")
            expect(learner.cell(code).get_by_text(re.compile(rf"^{stop} of {n_stops}: "))).to_be_visible()
            learner.page.wait_for_function(
                """cell => {
                    const stage = cell.querySelector(".lab-stage").getBoundingClientRect();
                    const nodes = [...cell.querySelectorAll(".lab-node[data-state=new], .lab-node[data-state=active]")];
                    const size = text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a;
                    return nodes.length && nodes.every(node => {
                        const box = node.querySelector(".lab-box").getBoundingClientRect();
                        return box.top >= stage.top && box.bottom <= stage.bottom
                            && box.left >= stage.left && box.right <= stage.right
                            && [...node.querySelectorAll("text")].every(text => size(text) > 10.5);
                    });
                }""",
                arg=cell,
            )
        shots(learner.cell(code), f"training_step_{width}")
        learner.press(code, "Start")


def test_a_click_on_a_box_tells_its_rules_as_the_table_of_operations_has_them(learner):
    code = "GraphView(forward)"
    cell = learner.cell(code)
    cell.locator(".lab-node[data-key]", has_text="x * y").click()
    for rule in learner.kernel("[lab.ops.PRIMITIVES['multiply'].rule_text(i) for i in (0, 1)]"):
        expect(cell.get_by_text(rule).first).to_be_visible()
    expect(cell.get_by_text("z = x * y + x").last).to_be_visible()
    prompt = cell.locator(".jp-InputPrompt").text_content() or ""
    expect(cell.get_by_text(f"cell In [{re.sub(r'[^0-9]', '', prompt)}], line 4")).to_be_visible()


def test_predictions_are_committed_by_keyboard_and_the_gap_is_what_the_kernel_says(learner):
    gap_x, gap_y = (learner.status(f'lesson.reveal("{name}")') for name in ("dz/dx", "dz/dy"))
    expect(gap_x).to_contain_text("Not yet")
    learner.predict("dz/dx", "4")
    expect(gap_x).to_contain_text("You said 4, and so it is.")
    learner.predict("dz/dy", "3")
    expect(gap_y).to_contain_text("You said 3, it is 2: 1 too high.")
    learner.watch_lines('lesson.reveal("dz/dy")', 3)
    (chart,) = learner.charts('lesson.reveal("dz/dy")')
    assert chart["your prediction"]["x"] == [3]
    assert chart["the run"]["x"] == [learner.kernel("y.grad.item()")]
    learner.until("json.load(open('my_progress.json'))['lessons']['00']['predictions']['dz/dy']['value']", 3)


def test_a_predicted_slope_is_drawn_as_a_tangent_beside_the_true_one(learner):
    cell = learner.cell("plot=tangent")
    learner.field("plot=tangent").fill("10")
    cell.get_by_role("button", name="Commit").click()
    learner.watch_lines('lesson.reveal("dloss/dw")', 3)
    (chart,) = learner.charts('lesson.reveal("dloss/dw")')
    slopes = {name: (line["y"][-1] - line["y"][0]) / (line["x"][-1] - line["x"][0]) for name, line in chart.items()}
    assert slopes["your prediction"] == pytest.approx(10)
    assert slopes["the run"] == pytest.approx(learner.kernel("w.grad.item()"))


def test_what_is_no_number_is_answered_in_the_card_and_can_be_mended(learner):
    learner.predict("u.grad", "a lot")
    cell = learner.cell('lesson.predict("u.grad"')
    expect(cell.get_by_text("a prediction is a number here")).to_be_visible()
    learner.field('lesson.predict("u.grad"').fill("24")
    cell.get_by_role("button", name="Commit").click()
    learner.told("u.grad", "You said 24, and so it is.")


def test_a_prediction_can_be_committed_while_a_cell_blocks_the_kernel(learner):
    learner.page.evaluate(
        f"""code => new Promise(begun => {{
            const future = {KERNEL}.requestExecute({{ code, store_history: false }});
            future.onIOPub = message => message.header.msg_type === "stream" && begun();
            window.blocked = future.done;
        }})""",
        """
import threading
committed, commit = threading.Event(), lesson.commit
def commit_and_say(name, value):
    commit(name, value)
    committed.set()
lesson.commit = commit_and_say
print("blocked", flush=True)
arrived = committed.wait(300)
""",
    )
    cell = learner.cell('"the last loss",')
    cell.get_by_label("higher").check()
    cell.get_by_role("button", name="Commit").click()
    expect(cell.get_by_text("You said higher, and so it is.")).to_be_visible(timeout=PATIENCE_MS)
    learner.page.evaluate("() => window.blocked.then(() => null)")
    assert learner.kernel("arrived") is True


def test_pause_step_and_stop_left_their_marks_in_the_recording(learner):
    states = learner.kernel("[e.state for e in run.recording if isinstance(e, lab.events.RunStateChanged)]")
    assert "paused" in states
    assert learner.kernel("[run.state, result.state]") == ["stopped", "stopped"]
    changed = learner.kernel(
        "[[e.step, e.value] for e in run.recording if isinstance(e, lab.events.HyperparameterChanged)"
        " and e.name == 'learning_rate']"
    )
    assert changed[-1][1] > changed[0][1]
    assert changed[-1][0] == pytest.approx(paused_at[0] + 1, abs=1)


def test_the_loss_curve_in_the_page_is_the_loss_in_the_recording(learner):
    steps, losses = learner.kernel(
        "[list(map(float, run.recording.columns(lab.events.StepFinished)[c])) for c in ('step', 'loss')]"
    )
    by_step = dict(zip(steps, losses, strict=True))

    def drawn_as_recorded() -> None:
        lines = [line for chart in learner.charts("dashboard(run)") for name, line in chart.items() if name == "batch"]
        assert lines
        drawn = [(x, y) for x, y in zip(lines[0]["x"], lines[0]["y"], strict=True) if y is not None]
        assert len(drawn) > 10
        assert max(x for x, _ in drawn) == max(steps)
        for x, y in drawn:
            assert math.isclose(by_step[x], y, rel_tol=1e-4)

    eventually(learner.page, drawn_as_recorded)


def test_four_workers_trained_the_network_and_the_weights_are_those_of_one_process(learner):
    states = learner.kernel(
        "sorted([e.rank, e.state] for e in four.recording if isinstance(e, lab.events.RankFinished))"
    )
    assert states == [[rank, "finished"] for rank in range(4)]
    assert learner.kernel("four.state") == "finished"
    gap = learner.kernel("apart")
    assert gap < 1e-3
    learner.choose("the weights", "equal to 3 digits" if gap else "the same bits")
    learner.told("the weights", "and so it is.")


def test_the_last_step_of_four_replicas_is_drawn(learner):
    view = learner.cell("DataParallelView(four)")
    expect(view.locator(".lab-node[data-key]").nth(3)).to_be_attached()


def test_a_hint_opens_by_keyboard(learner):
    learner.hint_opens("multiply_rule", "In a product x counts y times")


def test_still_pictures_are_hidden_while_the_live_ones_are_there(learner):
    twins = learner.page.locator("[data-lab-twin]")

    def all_are_hidden() -> None:
        hidden = twins.evaluate_all("twins => twins.map(twin => twin.getClientRects().length === 0)")
        assert len(hidden) >= 10
        assert all(hidden)

    eventually(learner.page, all_are_hidden)


@sliced("theme")
@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_output_is_there_in_light_and_dark(learner, theme, shots):
    assert shoot_all(learner, theme, "lesson_00", shots) >= 20
    assert learner.lab.errors == []


def test_the_lesson_is_a_page_of_less_than_6_mb_that_plays_without_a_network(learner, browser, shots):
    path = page_of(learner)
    assert path.stat().st_size < 6_000_000
    for scheme in ("light", "dark"):
        plays_without_a_network(browser, path, shots, scheme)
