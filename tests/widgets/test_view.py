"""View: fold and picture make it live, replayable and exportable, and its own failure stays its own."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest

from lab import (
    checkpoint,
    count_visits,
    jvp,
    measure_cost,
    measure_errors,
    measure_memory,
    measure_rule,
    measure_slopes,
    measure_swell,
    record,
    relu,
    sin,
    tensor,
    vmap,
)
from lab.errors import ViewError
from lab.events import LayerMeasured, LeafUsed, Recording, RunStateChanged, StepFinished, bus
from tests.widgets.golden import falling, product_plus_x, recorded, training
from widgets.fold import KEYFRAMES, Fold, Stretch
from widgets.live import pacer
from widgets.pictures.scene import Node, Scene
from widgets.player import Player
from widgets.view import View
from widgets.views.broadcast.view import BroadcastView
from widgets.views.contributions.view import ContributionView
from widgets.views.dual.view import DualView
from widgets.views.experiments.cost import CostView
from widgets.views.experiments.errors import ErrorView
from widgets.views.experiments.memory import MemoryView
from widgets.views.experiments.rule import RuleView
from widgets.views.experiments.slopes import SlopesView
from widgets.views.experiments.swell import SwellView
from widgets.views.graph.view import GraphView
from widgets.views.layers.view import LayersView
from widgets.views.training.gradient import GradientView
from widgets.views.training.loss import LossView
from widgets.views.visits.view import VisitsView
from widgets.views.vmap.view import VmapView
from widgets.views.why.view import WhyView


class Steps(View[int]):
    """How many steps; fails at a step that the test names."""

    listens = (StepFinished,)
    fails_at = -1
    shown_states: list[int]

    def start(self):
        return 0

    def fold(self, state, event):
        if state + 1 == self.fails_at:
            raise ValueError("no picture of the unlucky number")
        return state + 1

    def picture(self, state):
        return Scene((Node("n", 40, 20, 80, 40, f"{state} steps"),), caption="steps of a run")

    def text(self, state):
        return f"{state} steps\nand no more"


def step(k: int) -> StepFinished:
    return StepFinished(k, 0, 1.0, 1, 1.0)


def pushed() -> Recording:
    with record() as rec:
        jvp(lambda x, y: x * y + x, (2.0, 3.0), (1.0, 0.5))
    return rec


def visited() -> Recording:
    y = tensor(1.5, requires_grad=True, name="x")
    with record() as rec:
        y = y * y
        y = y * y
        for order in ("topological", "path", "topological"):
            count_visits(y, order)
    return rec


def tried() -> Recording:
    return measure_errors(sin, 1.0, steps=[1e-12, 1e-8, 1e-4]).recording


def priced() -> Recording:
    return measure_cost(sizes=[1, 2], fixed=2, repeats=1).recording


def swollen() -> Recording:
    return measure_swell(sin, 3).recording


def stretched() -> Recording:
    x, b = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True), tensor([1.0, 0.5, 2.0], requires_grad=True)
    with record() as rec:
        (x * b).sum().backward()
    return rec


def mapped() -> Recording:
    with record() as rec:
        vmap(lambda x: x / x.sum() + 1.0)(tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    return rec


def kinked() -> Recording:
    return measure_slopes(relu, 0.0).recording


def judged() -> Recording:
    return measure_rule(lambda x: relu(x) * x, (tensor([1.0, -2.0]),)).recording


def held() -> Recording:
    x = tensor([1.0, 2.0], requires_grad=True)
    return measure_memory(plain=lambda: sin(x).sum(), again=lambda: checkpoint(sin)(x).sum()).recording


def layered() -> Recording:
    rows = [(0.0, 1.0, 0, 8, 0, 0.5), (0.4, 0.6, 0, 8, 2, 1.0), (0.1, 0.3, 0, 4, 0, 2.0)]
    layers = zip(("0", "1", "2"), ("Linear", "ReLU", "Linear"), rows, strict=True)
    told = [(name, kind, 64, *row) for name, kind, row in layers]
    return recorded([LayerMeasured(step, *row) for step in (1, 11, 21) for row in told])


GOLDEN = [
    (GraphView, product_plus_x()), (GraphView, product_plus_x(3)), (GraphView, recorded([])),
    (GraphView, training(falling(20))),
    (LossView, training(falling(45))), (LossView, recorded([])), (LossView, product_plus_x()),
    (GradientView, training(falling(45))), (GradientView, recorded([])), (Steps, training(falling(9))),
    (partial(WhyView, tensor="x"), product_plus_x()), (partial(WhyView, tensor="x"), product_plus_x(3)),
    (ContributionView, product_plus_x()), (ContributionView, product_plus_x(3)), (ContributionView, recorded([])),
    (ContributionView, training(falling(9))),
    (DualView, pushed()), (DualView, recorded([])), (DualView, product_plus_x()),
    (VisitsView, visited()), (VisitsView, recorded([])), (VisitsView, product_plus_x()),
    (ErrorView, tried()), (ErrorView, recorded([])), (ErrorView, product_plus_x()),
    (CostView, priced()), (CostView, recorded([])), (CostView, tried()),
    (SwellView, swollen()), (SwellView, recorded([])), (SwellView, tried()),
    (BroadcastView, stretched()), (BroadcastView, recorded([])), (BroadcastView, product_plus_x()),
    (VmapView, mapped()), (VmapView, recorded([])), (VmapView, product_plus_x()),
    (SlopesView, kinked()), (SlopesView, recorded([])), (SlopesView, tried()),
    (RuleView, judged()), (RuleView, recorded([])), (RuleView, tried()),
    (MemoryView, held()), (MemoryView, recorded([])), (MemoryView, tried()),
    (LayersView, layered()), (LayersView, recorded([])), (LayersView, training(falling(9))),
    (WhyView, recorded([])), (WhyView, training(falling(9))), (WhyView, product_plus_x()),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "rec"), GOLDEN)
def test_any_view_folds_any_golden_recording_in_any_cut(kind, rec):
    view = kind(rec)
    whole = view.state_at(len(rec))
    for cut in {0, 1, len(rec) // 3, len(rec) // 2, len(rec)}:
        state = view.fold_many(view.start(), Stretch(rec, 0, cut))
        state = view.fold_many(state, Stretch(rec, cut, len(rec)))
        assert view.text(state) == view.text(whole)
    assert view.text(whole)
    assert view.picture(whole).caption
    assert (len(view.stop_positions(rec)) == 0) == (not any(len(rec.positions(k)) for k in view.stops or view.listens))


def test_events_of_other_kinds_are_not_given_to_fold():
    rec = recorded([step(1), RunStateChanged(1, "paused"), LeafUsed(1, "x", (), "float64"), step(2)])
    assert Steps(rec).state_at(4) == 2


def test_a_fold_keeps_few_keyframes_and_seeks_from_the_nearest():
    folded = []

    class Count:
        def start(self):
            return 0

        def fold_many(self, state, stretch):
            folded.append(stretch.stop - stretch.start)
            return state + stretch.stop - stretch.start

    fold = Fold(Count(), range(100_000))  # type: ignore[arg-type]
    assert fold.at(100_000) == 100_000
    assert 2 <= len(fold.keyframes) <= KEYFRAMES
    folded.clear()
    assert [fold.at(p) for p in (77_777, 3, 99_999)] == [77_777, 3, 99_999]
    assert sum(folded) <= 3 * (100_000 // 32 + 1)


def test_keyframes_stay_few_while_a_live_recording_grows():
    class Growing(list):
        pass

    class Count:
        def start(self):
            return 0

        def fold_many(self, state, stretch):
            return state + stretch.stop - stretch.start

    events = Growing()
    fold = Fold(Count(), events)  # type: ignore[arg-type]
    for _ in range(300):
        events.extend([0] * 1000)
        assert fold.at(len(events)) == len(events)
    assert len(fold.keyframes) <= KEYFRAMES
    assert fold.at(150_001) == 150_001


def test_a_view_takes_a_run_for_its_recording():
    class Run:
        recording = training(falling(5))

    assert LossView(Run()).state_at(10**6).step.array.tolist() == [1, 2, 3, 4, 5]


def test_a_failing_view_shows_its_error_in_place_of_the_picture():
    view = Steps(training(falling(9)))
    view.fails_at = 5
    with pytest.raises(ViewError, match="Steps failed"):
        view.picture_at(len(view.recording))
    widget = view.widget
    assert "no picture of the unlucky number" in view.host.get_state()["picture"]
    view.show(3)
    view.dispose()
    assert widget is not None


def test_a_failing_chart_shows_its_error_in_the_same_host(monkeypatch):
    view = LossView(training(falling(9)))
    assert view.widget is not None
    monkeypatch.setattr(view, "picture", lambda state: 1 / 0)
    view.show(5)
    pacer.PACER.pump()
    assert "division by zero" in view.host._tree(*view._drawn(5))["caption"]
    view.dispose()


def test_a_failing_view_never_breaks_what_it_watches():
    rec = Recording(run="*")
    bus.attach(rec)
    view = Steps(rec)
    view.fails_at = 3
    try:
        assert view.widget is not None
        for k in range(6):
            bus.emit(step(k))
        view._tick()
        assert len(rec) == 6
        assert "failed" in view._drawn(6)[1]
    finally:
        rec.close()
        view.dispose()


@pytest.mark.parametrize("n", [5, 700, 2000])
def test_a_failing_view_names_the_event_at_which_it_failed(n, caplog):
    view = Steps(recorded([RunStateChanged(0, "running"), *map(step, range(2000))]))
    view.fails_at = n
    for _ in range(3):
        words = view._drawn(len(view.recording))[1]
    assert f"ValueError: no picture of the unlucky number, at event {n + 1:,}, StepFinished" in words
    assert caplog.text.count("a view failed") == 1


def test_a_picture_that_contradicts_itself_is_told_in_its_place_and_the_next_is_drawn(monkeypatch):
    view = Steps(training(falling(9)))
    twice = Scene((Node("n", 0, 0, 9, 9, "a"), Node("n", 50, 0, 9, 9, "b")))
    with monkeypatch.context() as patch:
        patch.setattr(view, "picture", lambda state: twice)
        for told in (view.host, view.show(3), view.host):
            assert view.host._wanted["text"].startswith("This picture failed: "), told
            assert view.host._wanted["title"] == "failed view"
    view.show(len(view.recording))
    assert view.host._wanted["text"] == "9 steps\nand no more"
    view.dispose()


def test_a_view_that_cannot_follow_says_why_in_place_of_its_picture(monkeypatch):
    rec = Recording(run="*")
    bus.attach(rec)
    view = Steps(rec)
    assert view.widget is not None
    monkeypatch.setattr(view, "_catch_up", lambda: 1 / 0)
    with pacer.PACER._turn:
        for tick in pacer.PACER._ticks:
            tick.due = 0.0
        pacer.PACER.pump()
    assert "Steps stopped following" in view.host._wanted["text"]
    assert "ZeroDivisionError" in view.host._wanted["text"]
    rec.close()
    view.dispose()


def test_a_live_view_folds_only_what_is_new():
    rec = Recording(run="*")
    bus.attach(rec)
    view = Steps(rec)
    folded = []
    fold = view.fold
    view.fold = lambda state, event: (folded.append(event.step), fold(state, event))[1]  # type: ignore[method-assign]
    try:
        assert view.widget is not None
        for k in range(3):
            bus.emit(step(k))
            view._tick()
    finally:
        rec.close()
    view._tick()
    assert view.position == 3
    assert folded == [0, 1, 2]
    view.dispose()


def test_a_live_view_is_brought_up_to_date_by_the_pacer():
    rec = Recording(run="*")
    bus.attach(rec)
    view, drawn = Steps(rec), threading.Event()
    view.shown = lambda: drawn.set() if view.position == 2 else None  # type: ignore[method-assign]
    try:
        assert view.widget is not None
        bus.emit(step(1))
        bus.emit(step(2))
        assert drawn.wait(30)
    finally:
        rec.close()
        view.dispose()


def test_a_view_that_holds_does_not_follow():
    rec = Recording(run="*")
    bus.attach(rec)
    view = Steps(rec)
    try:
        assert view.widget is not None
        view.hold()
        bus.emit(step(1))
        view._tick()
        assert view.position == 0
        view.follow()
        assert view.position == 1
    finally:
        rec.close()
        view.dispose()


def test_the_same_widget_is_given_each_time_and_composes_in_a_box():
    import ipywidgets as ipw

    view = GraphView(product_plus_x())
    box = ipw.VBox([view.widget])
    assert view.widget is box.children[0]
    view.dispose()
    box.close()


def test_a_view_is_displayed_as_a_still_twin_and_a_widget_in_two_outputs(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    view = GraphView(product_plus_x())
    view._ipython_display_()
    assert [sorted(data) for data in shown] == [
        ["text/html", "text/plain"], ["application/vnd.jupyter.widget-view+json", "text/plain"],
    ]  # fmt: skip
    assert "<svg" in shown[0]["text/html"]
    assert f'data-lab-twin="{view.host.twin}"' in shown[0]["text/html"]
    assert "x = 2.0, gradient 4.0" in shown[1]["text/plain"]
    view.dispose()


def test_every_view_has_a_still_twin():
    for kind, rec in GOLDEN:
        assert kind(rec).svg().startswith("<svg")


def test_an_exported_page_has_a_frame_for_each_stop(tmp_path: Path):
    view = GraphView(product_plus_x())
    frames = Player(view).frames()
    assert [f.label for f in frames] == [f"{k} of 7" for k in range(1, 8)]
    assert frames[4].text.startswith("v₁ = x * y sends 3.0 to x")
    page = view.export(tmp_path / "graph.html")
    assert "<script" in page.read_text(encoding="utf-8")


def test_selecting_a_node_fills_the_inspector_and_marks_the_node():
    view = GraphView(product_plus_x())
    box = view.widget
    view.host._received(None, {"select": "#3"}, [])
    assert view.picture_at(view.position).selected == "3"
    assert "ct * y" in box.children[1].children[0].value
    view.dispose()


def test_choosing_a_parameter_changes_the_histogram():
    view = GradientView(training(falling(30)))
    box = view.widget
    choice = box.children[0]
    assert choice.options == ("0.weight", "0.bias")
    choice.value = "0.bias"
    assert view.chosen(view.state_at(view.position)) == "0.bias"
    assert choice.description
    view.dispose()


def test_disposing_leaves_no_widget_behind():
    from ipywidgets.widgets.widget import _instances

    before = set(_instances)
    for kind, rec in GOLDEN:
        view = kind(rec)
        assert view.widget is not None
        view.dispose()
    kept = [_instances[k] for k in set(_instances) - before]
    assert [w for w in kept if type(w).__name__ != "Library"] == []
