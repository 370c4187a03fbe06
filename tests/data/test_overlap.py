"""What prefetch is worth: every depth trains the same network, and the picture is drawn of the loops that were told."""

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError
from lab.events import PrefetchBegun, PrefetchMeasured, PrefetchRunBegun, Recording, StageRan
from widgets import PrefetchView

N = 5


@pytest.fixture(scope="module")
def found():
    return lab.measure_prefetch((0, 1, 3), n_items=N, batch_size=64, repeats=1)


def of(rec, kind):
    return [e for e in rec if isinstance(e, kind)]


def test_every_depth_ends_at_the_same_loss_to_the_last_bit(found):
    assert [row.depth for row in found.rows] == [0, 1, 3]
    assert len({row.loss for row in found.rows}) == 1
    assert np.isfinite(found.rows[0].loss)
    assert "core" in repr(found)


def test_each_depth_has_a_loop_that_is_told_whole(found):
    rec = found.recording
    assert rec[0] == PrefetchBegun(found.n_cores, N, (0, 1, 3), 1)
    assert [e.depth for e in of(rec, PrefetchRunBegun)] == [0, 1, 3]
    assert of(rec, PrefetchMeasured) == [PrefetchMeasured(*row) for row in found.rows]
    spans = of(rec, StageRan)
    assert len(spans) == 3 * 3 * N
    for k, row in enumerate(found.rows):
        mine = spans[k * 3 * N : (k + 1) * 3 * N]
        for stage, took in (("load", row.load_ms), ("preprocess", row.preprocess_ms), ("compute", row.compute_ms)):
            assert took == pytest.approx(sum((e.stop_ns - e.start_ns) / 1e6 for e in mine if e.stage == stage))
        assert max(e.stop_ns for e in mine) / 1e6 <= row.told_ms


def test_a_bar_for_each_batch_in_each_stage_on_one_time_axis_for_all_depths(found):
    rec = found.recording
    end = max(e.stop_ns for e in of(rec, StageRan))
    for k, depth in enumerate((0, 1, 3)):
        scene = PrefetchView(found, depth=depth).picture_at(len(rec))
        bars = {node.id: node for node in scene.nodes}
        mine = of(rec, StageRan)[k * 3 * N : (k + 1) * 3 * N]
        assert bars.keys() == {f"{e.stage}{e.item}" for e in mine}
        for e in mine:
            bar = bars[f"{e.stage}{e.item}"]
            assert (bar.x - bar.width / 2 - 96.0) / 784.0 == pytest.approx(e.start_ns / end, abs=1e-9)
            assert bar.width == pytest.approx(max(1.0, 784.0 * (e.stop_ns - e.start_ns) / end))
        assert len({bar.y for bar in scene.nodes}) == 3
        heads = [m.text for m in scene.marks if m.kind == "heading"]
        assert heads[1:] == ["load", "preprocess", "compute"]
        assert heads[0].startswith(f"depth {depth}: ")


def test_a_depth_that_is_chosen_is_played_alone(found):
    view = PrefetchView(found, depth=1)
    stops = view.stop_positions(found.recording)
    assert [len(view.picture_at(int(p)).nodes) for p in stops] == [*range(1, 3 * N + 1), 3 * N]
    assert view.sentence_at(int(stops[0])) == "Batch 0 went through load."
    assert "Depth 1: " in view.sentence_at(int(stops[-1]))
    assert "depth 3: " in view.text_at(len(found.recording))


def test_the_slider_picks_the_recorded_loop_that_is_nearest(found):
    view = PrefetchView(found)
    view.widget  # noqa: B018 - made at the first look
    slider = view._slider
    assert (slider.min, slider.max, slider.value) == (0.0, 3.0, 3.0)
    slider.value = 0.0
    assert view.nearest == 0
    slider.value = 2.0
    assert (view.nearest, slider.value) == (1, 1.0)
    assert "Depth 1: " in view.sentence_at(len(found.recording))


def test_a_loop_of_ones_own_is_shown_and_the_next_begins_anew():
    batches = lab.data.Prefetch(range(3), depth=2, work=str)
    with lab.record(kinds=[StageRan]) as rec:
        for _ in range(2):
            list(batches)
    view = PrefetchView(rec)
    assert len(view.picture_at(9).nodes) == 9
    assert len(view.picture_at(10).nodes) == 1
    assert len(view.picture_at(18).nodes) == 9


def test_a_recording_without_loops_says_how_to_get_one():
    assert "measure_prefetch" in PrefetchView(Recording()).text_at(0)


@pytest.mark.parametrize("call", [
    lambda: lab.measure_prefetch(()),
    lambda: lab.measure_prefetch(2),
    lambda: lab.measure_prefetch((0, -1)),
    lambda: lab.measure_prefetch((0,), n_items=0),
    lambda: lab.measure_prefetch((0,), batch_size=10**6),
])  # fmt: skip
def test_bad_arguments_are_said_in_three_lines(call):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 3
