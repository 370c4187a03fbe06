"""Two recordings on one clock: landmarks fall together, and the first difference is marked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lab
from lab.errors import ViewError
from lab.events import BackwardStarted, Recording, StepFinished, bus
from tests.widgets.golden import product_plus_x, recorded, training
from tests.widgets.golden_cluster import launch_of
from tests.widgets.golden_pipeline import pipeline
from tests.widgets.golden_ranks import collective, ranks_of, told, trained
from tests.widgets.test_player_places import steps_recorded
from tests.widgets.test_view import held, kinked, mapped, priced, pushed, stretched, swollen, tried, visited
from widgets import (
    BroadcastView,
    ClusterView,
    CollectiveView,
    ContributionView,
    CostView,
    DataParallelView,
    DualView,
    ErrorView,
    GradientView,
    GraphView,
    LossView,
    MemoryView,
    PipelineView,
    Player,
    RingView,
    SideBySide,
    SlopesView,
    SwellView,
    VisitsView,
    VmapView,
    WhyView,
)
from widgets.landmarks import Landmarks
from widgets.player.alignment import aligned
from widgets.view import Spot


def run(weight=3.0, more=0):
    """A walk forward and back; `more` operations make it longer."""
    x = lab.tensor(2.0, requires_grad=True, name="x")
    with lab.record() as rec:
        y = x * weight
        for _ in range(more):
            y = lab.tanh(y)
        y.backward()
    return rec


def column(draw, marks, n):
    """Ascending stops and landmarks among them."""
    stops = np.array(sorted(draw(st.sets(st.integers(1, 60), min_size=1, max_size=n))), np.int64)
    at = sorted(draw(st.sets(st.sampled_from(stops.tolist()), max_size=marks)))
    return stops, Landmarks.of([("step", np.array(at, np.int64) - 1, np.arange(1, len(at) + 1))])


@given(st.data())
def test_every_stop_of_both_is_seen_once_in_order_and_common_steps_fall_together(data):
    (a, marks_a), (b, marks_b) = (column(data.draw, 6, 20) for _ in range(2))
    pairs = aligned((a, b), (marks_a, marks_b))
    assert (np.diff(pairs, axis=0) >= 0).all()
    assert (np.diff(pairs, axis=0).sum(axis=1) > 0).all()
    for k, stops in enumerate((a, b)):
        assert set(stops.tolist()) <= set(pairs[:, k].tolist()) <= {0, *stops.tolist()}
    for step in range(min(len(marks_a.positions), len(marks_b.positions))):
        where = [int(np.searchsorted(pairs[:, k], m.positions[step])) for k, m in enumerate((marks_a, marks_b))]
        last = [
            int(np.searchsorted(pairs[:, k], m.positions[step], side="right")) for k, m in enumerate((marks_a, marks_b))
        ]
        assert max(where) < min(last), "one moment shows both"


def test_a_million_stops_are_aligned_by_columns():
    n = 1_000_000
    marks = Landmarks.of([("step", np.arange(0, n, 10), np.arange(n // 10))])
    stops = np.arange(1, n + 1)
    assert np.array_equal(aligned((stops, stops), (marks, marks)), np.stack([stops, stops], axis=1))


def test_a_run_that_does_more_has_the_other_wait_for_its_walk():
    both = SideBySide(run(), run(more=2), view=GraphView)
    assert both.marks == {1: "first difference", 3: "backward walk 1"}
    walk = next(stop for stop, name in both.marks.items() if name == "backward walk 1")
    both.seek(walk)
    starts = [v.recording.columns(BackwardStarted)["position"][0] for v in both.views]
    assert all(p > s for p, s in zip(both._positions(), starts, strict=True))
    both.back()
    assert all(p <= s for p, s in zip(both._positions(), starts, strict=True))


def test_steps_of_two_trainings_stand_beside_each_other():
    both = SideBySide(training([3.0, 2.0, 1.0], every=10**9), training([3.0, 2.0, 1.5, 1.2], every=10**9))
    assert isinstance(both.views[0], LossView)
    assert both.marks == {0: "step 1", 1: "step 2", 2: "first difference, step 3"}
    assert both.first_unlike == 2
    said = []
    for _ in range(4):
        said.append(both.text.splitlines()[0].split(":")[0])
        both.step()
    assert said == ["1 of 4, alike so far", "2 of 4, alike so far", "3 of 4, first difference", "4 of 4, they differ"]
    assert "the loss at step 3." in both.text


def test_recordings_that_are_alike_have_no_difference_marked():
    both = SideBySide(product_plus_x(), product_plus_x())
    assert both.first_unlike is None
    assert "first difference" not in both.marks.values()
    assert "No difference: " in both.text


def test_both_pictures_show_the_same_moment_and_are_taken_away_together():
    both = SideBySide(steps_recorded(2), steps_recorded(2), names=("before", "after"))
    assert both.widget is not None
    both.next_mark()
    both.next_mark()
    assert [v.position for v in both.views] == both._positions()
    heads = [column.children[0].value for column in both.widget.children[3].children]
    assert heads == ["before", "after"]
    both.dispose()


def test_a_page_has_both_pictures_their_names_and_the_difference(tmp_path: Path):
    both = SideBySide(run(), run(4.0), view=GraphView, names=("before", "after"))
    both.bookmark("look")
    frames = both.frames()
    assert [p.caption.split(":")[0] for p in frames[-1].pictures] == ["before", "after"]
    assert frames[0].note == "look"
    page = both.export(tmp_path / "both.html").read_text("utf-8")
    assert "data-wide" in page
    assert "First difference on rank 0: the constants of multiply" in page
    assert "3 in before, 4 in after." in page


def test_one_that_grows_is_followed():
    old, rec = training([3.0, 2.0]), Recording(run="*")
    bus.attach(rec)
    try:
        both = SideBySide(old, rec, view=LossView)
        assert both.live
        for k in (1, 2, 3):
            bus.emit(StepFinished(k, 0, 4.0 - k, 64, 1.0))
        both.to_end()
        assert len(both.transport.stops) == 3
        assert both._positions()[1] == 3
    finally:
        rec.close()


def test_what_cannot_stand_side_by_side_is_refused_in_three_lines():
    for made, problem in (
        (lambda: SideBySide(training([1.0]), run()), "no view in common"),
        (lambda: SideBySide(GraphView(run()), run()), "not two views"),
        (lambda: SideBySide(3, run()), "shows a recording"),
        (lambda: Player(GraphView(run()), GraphView(run())), "must show one recording"),
    ):
        with pytest.raises(ViewError, match=problem) as caught:
            made()
        assert len(str(caught.value).splitlines()) == 3


def test_recordings_with_nothing_in_common_can_still_be_seen():
    with lab.record(kinds=[BackwardStarted]) as rec:
        (lab.tensor(2.0, requires_grad=True) * 3.0).backward()
    both = SideBySide(recorded([StepFinished(1, 0, 1.0, 1, 1.0)], kinds=[StepFinished]), rec, view=GraphView)
    assert both.comparison is None
    assert "no kind of events in common" in both.text


# --- what shows the first difference is lit ---


def lit_at(both, stop):
    both.seek(stop)
    return [v.picture_at(p).lit for v, p in zip(both.views, both._positions(), strict=True)]


def later_unlike(weight):
    """Two operations alike, the third is not."""
    x = lab.tensor(2.0, requires_grad=True, name="x")
    with lab.record() as rec:
        y = lab.tanh(lab.exp(x)) * weight
        y.backward()
    return rec, str(y.node.id)


@pytest.mark.parametrize("most", [60, 0])
def test_the_box_of_the_first_difference_is_lit_from_then_on_and_not_before(most):
    (a, node_a), (b, node_b) = later_unlike(3.0), later_unlike(4.0)
    both = SideBySide(a, b, view=lambda rec: GraphView(rec, most=most))
    assert both.widget is not None
    at = both.first_unlike
    assert at == 2
    assert [lit_at(both, stop) for stop in range(at)] == [[frozenset(), frozenset()]] * at
    # With the constant in which they differ and its arrow, where it has a box of its own.
    lit = [{node, *((f"c{node}.1", f"{node}.1") if most else ())} for node in (node_a, node_b)]
    for stop in range(at, len(both.transport.stops)):
        assert lit_at(both, stop) == lit
        assert [v.host._wanted["lit"] for v in both.views] == [sorted(f"#{name}" for name in own) for own in lit]
    assert [f.pictures[0].lit for f in both.frames()][at - 1 : at + 1] == [frozenset(), lit[0]]
    both.dispose()


def test_what_a_reader_lights_has_precedence_over_the_difference():
    (a, node), (b, _) = later_unlike(3.0), later_unlike(4.0)
    both = SideBySide(a, b, view=GraphView)
    both.to_end()
    both.views[0].find("tanh")
    assert node not in lit_at(both, 4)[0] != frozenset()


def test_a_loss_has_a_line_at_the_step_of_the_first_difference():
    both = SideBySide(training([3.0, 2.0, 1.0], every=10**9), training([3.0, 2.0, 1.5, 1.2], every=10**9))
    both._spot()

    def names(stop):
        pairs = zip(both.views, both._pairs[stop], strict=True)
        return [[t.name for t in v.picture_at(p).figure.data] for v, p in pairs]

    assert names(1) == [["batch"], ["batch"]]
    assert names(2) == [["batch", "first difference, step 3"]] * 2


def test_ranks_of_the_first_difference_are_lit_with_their_cells():
    arrays = ranks_of(3)
    a = told(collective("all_reduce", "ring", arrays), detail="value")
    b = told(collective("all_reduce", "ring", [arrays[0], arrays[1] + 1, arrays[2]]), detail="value")
    both = SideBySide(a, b, view=RingView)
    both._spot()
    lit = lit_at(both, both.first_unlike)[0]
    assert {name.partition(".")[0] for name in lit} == {"r1"}
    assert len(lit) > 1


@pytest.mark.parametrize(
    ("made", "rec"),
    [
        pytest.param(GraphView, product_plus_x, id="graph"),
        pytest.param(lambda rec: GraphView(rec, most=0), product_plus_x, id="large"),
        pytest.param(lambda rec: WhyView(rec, "x"), product_plus_x, id="why"),
        pytest.param(ContributionView, product_plus_x, id="contributions"),
        pytest.param(DualView, pushed, id="dual"),
        pytest.param(BroadcastView, stretched, id="broadcast"),
        pytest.param(VmapView, mapped, id="vmap"),
        pytest.param(VisitsView, visited, id="visits"),
        pytest.param(ErrorView, tried, id="errors"),
        pytest.param(CostView, priced, id="cost"),
        pytest.param(SwellView, swollen, id="swell"),
        pytest.param(SlopesView, kinked, id="slopes"),
        pytest.param(MemoryView, held, id="memory"),
        pytest.param(LossView, lambda: training([3.0, 2.0]), id="loss"),
        pytest.param(GradientView, lambda: training([3.0, 2.0], every=1), id="gradients"),
        pytest.param(RingView, lambda: told(collective("all_reduce", "ring", ranks_of(3))), id="ring"),
        pytest.param(lambda rec: CollectiveView(rec, layout="matrix"),
                     lambda: told(collective("all_reduce", "ring", ranks_of(3))), id="matrix"),
        pytest.param(DataParallelView, lambda: trained(2), id="replicas"),
        pytest.param(PipelineView, pipeline, id="pipeline"),
        pytest.param(ClusterView, lambda: launch_of(2), id="cluster"),
    ],
)
def test_every_view_lights_what_shows_an_event_and_never_fails_at_one(made, rec):
    rec = rec()
    view = made(rec)
    plain = [view.picture_at(int(p)) for p in view.stop_positions(rec)]
    changed = 0
    for place in range(0, len(rec), max(1, len(rec) // 60)):
        view.spot = Spot(place, place + 1, "here")
        stop = int(np.searchsorted(view.stop_positions(rec), place + 1))
        if stop < len(plain):
            changed += view.picture_at(int(view.stop_positions(rec)[stop])) != plain[stop]
    assert changed
