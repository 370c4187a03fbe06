"""Lesson 01 in a real JupyterLab: four generations train side by side, and a mistake by hand is named and mended."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.learner import ran_from_clean, shoot_all
from tests.browser.waiting import eventually
from tests.slices import sliced

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

LESSON = "01_four_generations.ipynb"
TASKS = ("linear_backward", "run_graph", "one_step")
DIFFERENCES = "slopes = lab.numeric_gradient("
GRAPH = "with lab.record() as seen:"
PASSES = "display(PassesView(found))"
CURVES = 'Lines("step", "loss", **losses)'
TIMES = "fastest = min(seconds"
WAYS = ("by hand", "define, then run", "eager", "traced")


def same(drawn: list[float], counted: list[int]) -> None:
    assert drawn == counted


def test_the_lesson_runs_from_clean_without_answers_and_says_not_yet(learner):
    ran_from_clean(learner)


@pytest.mark.parametrize("name", TASKS)
def test_every_stub_is_answered_by_name(learner, name):
    learner.stub_is_named(name)


def test_an_error_of_a_run_names_the_cell_that_wrote_the_equation_down(learner):
    said = learner.said("with lesson.refusal() as why:")
    expect(said).to_contain_text("cross_entropy met a label outside the classes")
    number = learner.number("with lab.Graph() as sheet:")
    prompt = learner.page.evaluate(
        f"() => window.jupyterapp.shell.currentWidget.content.widgets[{number}].model.executionCount"
    )
    expect(said).to_contain_text(f"made by cell In [{prompt}], line 3")
    expect(learner.said("with lesson.refusal() as no:")).to_contain_text("lab.cond or lab.where for if")
    assert learner.kernel("eagerly.item() > loss_of(weights, *batches[0]).item()")


def test_what_ran_is_drawn_and_a_box_tells_its_line(learner):
    cell = learner.cell(GRAPH)
    assert {label.split(" ")[0] for label in learner.nodes(GRAPH)} >= {"w1", "b1", "w2", "b2"}
    cell.locator(".lab-node[data-key]", has_text="cross_entropy").click()
    expect(cell).to_contain_text("return lab.cross_entropy(")


def test_every_pass_is_drawn_and_the_loops_that_run_are_opened(learner):
    kernels = learner.kernel("[row.n_kernels for row in found.rows]")
    eventually(learner.page, lambda: same(learner.charts(PASSES)[0]["kernels"]["y"], kernels))
    assert kernels[-1] < kernels[0] / 2
    cell = learner.cell(PASSES)
    cell.get_by_text("loop0", exact=True).click()
    expect(cell.locator("details[open]")).to_contain_text("for row in range(")


def test_predictions_are_answered_by_the_runs(learner):
    learner.choose("the label", "while the graph is written")
    learner.told("the label", "it is in the run, naming the line that wrote it.")
    learner.predict("Python's runs", "25")
    learner.told("Python's runs", "You said 25, it is 1: 24 too high.")
    learner.choose("an if", "it is refused")
    learner.told("an if", "and so it is.")
    learner.choose("the fastest", learner.kernel("fastest"))
    learner.told("the fastest", "and so it is.")


def test_a_mistake_by_hand_is_named_and_three_ways_agree_without_it(learner):
    learner.hint_opens("linear_backward", "what comes back from the rows adds up")
    apart = learner.kernel("apart")
    assert apart["by hand"] > 1e-3
    assert learner.kernel("losses['by hand'][-1] < losses['eager'][-1]")  # as the text says of the stub
    assert max(apart[name] for name in WAYS[1:]) < 1e-5


def test_answers_that_are_typed_pass_and_all_four_train_alike(learner):
    for name in TASKS:
        learner.solve(name)
    for code in ("class Linear:", DIFFERENCES, "def begin_traced():", CURVES, TIMES):
        learner.run(code)
    assert learner.kernel("max(float(np.abs(h - s).max()) for h, s in zip(by_hand, slopes))") < 1e-7
    assert max(learner.kernel("apart").values()) < 1e-5

    def drawn() -> None:
        (chart,) = learner.charts(CURVES)
        ends = [chart[name]["y"][-1] for name in WAYS]
        assert ends == pytest.approx([ends[0]] * 4, abs=1e-5)
        assert ends[0] < 0.25 * chart["eager"]["y"][0]

    eventually(learner.page, drawn)
    assert learner.lab.cell_errors() == []


@sliced("theme")
@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_output_is_there_in_light_and_dark(learner, theme, shots):
    assert shoot_all(learner, theme, "lesson_01", shots) >= 17
    assert learner.lab.errors == []
