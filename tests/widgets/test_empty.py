"""A picture with nothing on it says why, and what is not a recording is refused in three lines."""

from __future__ import annotations

import pytest

import lab
import widgets
from lab.errors import ViewError
from lab.events import RunFinished, RunStarted, bus
from tests.widgets.golden import falling, product_plus_x, recorded, training, walk
from tests.widgets.golden_pipeline import pipeline
from tests.widgets.golden_ranks import collective, ranks_of, told
from widgets import (
    DataParallelView,
    GradientView,
    GraphView,
    LossView,
    PipelineView,
    Player,
    RingView,
    RunControls,
    dashboard,
)


def said(rec):
    view = GraphView(rec)
    words = view.text_at(len(rec))
    assert view.picture_at(len(rec)).caption == words == view.sentence_at(len(rec))
    return words


def test_who_forgot_requires_grad_is_told():
    with lab.record() as rec:
        lab.tensor(2.0) * 3.0
    assert "requires_grad=True" in said(rec)


def test_who_looks_at_a_jvp_alone_is_told():
    with lab.record() as rec:
        lab.jvp(lambda x: x * x, (2.0,), (1.0,))
    assert "A jvp keeps no tape" in said(rec)


def test_who_ran_the_forward_before_the_recording_is_told():
    x = lab.tensor(2.0, requires_grad=True)
    y = x * x
    with lab.record() as rec:
        y.backward()
    assert said(rec) == "A backward walk ran, but not what it walks over: its forward ran before the recording began."
    assert Player(rec).text.startswith("1 of ")
    assert said(recorded(walk())).startswith("A backward walk ran")


def test_the_graph_of_a_training_is_told_to_be_its_steps():
    assert "LossView" in said(training(falling(20)))


def test_while_more_may_come_nothing_is_final():
    with lab.record() as rec:
        assert said(rec) == "Nothing was recorded yet: each operation that runs adds a box."
    assert GraphView(product_plus_x()).text_at(0) == "Nothing was recorded yet: each operation that runs adds a box."


@pytest.mark.parametrize("kind", [widgets.VisitsView, LossView, widgets.SlopesView])
def test_an_empty_picture_says_yet_only_while_something_may_come(kind):
    with lab.record() as rec:
        assert "nothing yet" in kind(rec).svg()
    assert "nothing yet" not in kind(rec).svg()
    assert "nothing to show" in kind(rec).svg()


RANKS = {
    PipelineView: "a training on a pipeline, stage by stage, and none was recorded. To get one: run = lab.fit(model, "
    "train, on=Pipeline(cluster)), then PipelineView(run).",
    DataParallelView: "a training on replicas, phase by phase, and none was recorded. To get one: run = lab.fit(model, "
    "train, on=DataParallel(cluster)), then DataParallelView(run).",
    RingView: "a collective of ranks, as comm.all_reduce_, hop by hop, and none was recorded. To get one: with lab."
    "record() as rec: launch(program), then RingView(rec); or RingView(run) of DataParallel(cluster).",
}


@pytest.mark.parametrize("kind", RANKS)
@pytest.mark.parametrize(("rec", "other"), [
    (recorded([]), ""), (training(falling(3)), "LossView"), (pipeline("gpipe", 2, 2), "PipelineView"),
    (told(collective("all_reduce", "ring", ranks_of(2))), "RingView"),
])
def test_a_view_of_ranks_says_what_it_shows_how_to_get_that_and_what_shows_this(kind, rec, other):
    view = kind(rec)
    if other == kind.__name__:
        assert " shows " not in view.text_at(len(rec))
        return
    shown = f" What was recorded is shown by {other}." if other else ""
    assert view.text_at(len(rec)) == f"{kind.__name__} shows {RANKS[kind]}{shown}"
    assert view.picture_at(len(rec)).caption == view.text_at(len(rec))


def test_an_empty_picture_has_room_for_its_words():
    with lab.record() as rec:
        pass
    assert "requires a gradient" in GraphView(rec).svg()


@pytest.mark.parametrize("kind", [GraphView, LossView, GradientView, Player])
@pytest.mark.parametrize("wrong", [3, None, "rec", [1, 2], lab.tensor(2.0)])
def test_what_is_no_recording_is_refused_in_three_lines(kind, wrong):
    with pytest.raises(ViewError, match="shows a recording or a training run") as caught:
        kind(wrong)
    assert len(str(caught.value).splitlines()) == 3
    assert caught.value.__context__ is None


@pytest.mark.parametrize("make", [dashboard, RunControls])
def test_what_is_no_run_has_no_dashboard(make):
    for wrong in (None, 3, product_plus_x()):
        with pytest.raises(ViewError, match="of a training run") as caught:
            make(wrong)
        assert len(str(caught.value).splitlines()) == 3


def test_the_module_lists_its_public_names_and_no_others():
    assert dir(widgets) == sorted(widgets.__all__)


@pytest.mark.parametrize("kind", [GradientView, RingView, DataParallelView, PipelineView])
def test_of_a_run_that_failed_before_its_first_step_every_view_says_so(kind):
    with lab.record() as rec:
        bus.emit(RunStarted("run-4", 10, 1, 0, "", ""))
        bus.emit(RunFinished("run-4", "failed", 0, 1.0, "there are not enough workers: 0 of 4 workers free"))
    told = kind(rec).text_at(len(rec))
    why = "the run run-4 failed before its first step (there are not enough workers: 0 of 4 workers free)."
    assert told.endswith(f": {why}")
    assert "To get one" not in told


@pytest.mark.parametrize("kind", [GraphView, LossView, RingView, Player])
@pytest.mark.parametrize("given", [lab.Recording, lab.training.Run])
def test_a_class_is_no_recording(kind, given):
    with pytest.raises(ViewError, match="given: <class") as caught:
        kind(given)
    assert len(str(caught.value).splitlines()) == 3
