"""LossView: what a run's loss looks like, where nan began, and that a million steps are folded by columns."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lab
from lab.events import Evaluated, RunFinished, RunStarted, StepFinished
from tests.widgets.golden import falling, recorded, training
from widgets.explosion import LATEST, TIMES, has_exploded
from widgets.fold import Stretch
from widgets.pictures.tree import tree_of
from widgets.views.series import Series
from widgets.views.training.lines import POINTS, decimated, moving_mean
from widgets.views.training.loss import LossView


def lines(view: LossView, position: int | None = None) -> dict[str, object]:
    chart = view.picture_at(len(view.recording) if position is None else position)
    return {trace.name: trace for trace in chart.figure.data}


def test_the_batch_line_is_the_loss_of_each_step():
    losses = falling(60)
    batch = lines(LossView(training(losses)))["batch"]
    assert batch.x.tolist() == list(range(1, 61))
    assert np.allclose(batch.y, losses)


def test_the_axis_has_room_for_what_is_shown_from_the_first_frame_to_the_last():
    """Left to plotly while nothing was there, it kept the range of an empty plot if the next frame was the last."""
    view = LossView(training(falling(60)))
    ends = []
    for position in range(len(view.recording) + 1):
        low, high = view.picture_at(position).figure.layout.xaxis.range
        assert low == 0
        assert high >= len(view.state_at(position).step)
        ends.append(high)
    assert ends[-1] == pytest.approx(60 * 1.02)


def test_each_split_has_its_marks_and_accuracy_its_own_axis():
    traces = lines(LossView(training(falling(60))))
    assert traces["test loss"].x.tolist() == [10, 20, 30, 40, 50, 60]
    assert traces["test accuracy"].yaxis == "y2"
    assert (traces["test loss"].marker.symbol, traces["test loss"].mode) == ("circle", "lines+markers")


def test_many_evaluations_are_a_line_of_few_points():
    traces = lines(LossView(training(falling(9_000), every=1)))
    assert traces["test loss"].mode == "lines"
    assert len(traces["test loss"].x) <= 2 * POINTS


def test_nan_and_infinity_are_gaps_with_a_mark_and_a_name():
    losses = [1.0, 0.5, math.inf, math.nan, 0.4]
    view = LossView(training(losses))
    batch = lines(view)["batch"]
    assert np.isnan(np.asarray(batch.y)).tolist() == [False, False, True, True, False]
    chart = view.picture_at(len(view.recording))
    assert "First nan or infinite loss at step 3" in chart.caption
    assert list(lines(view)["nan or inf, step 3"].x) == [3, 3]
    assert "2 such steps are drawn as gaps" in view.text_at(len(view.recording))


def test_a_gap_survives_decimation_and_strict_json():
    losses = falling(30_000)
    losses[12_345] = math.nan
    view = LossView(training(losses, every=10**9))
    assert "12,346" in view.picture_at(len(view.recording)).caption
    batch = lines(view)["batch"]
    assert np.isnan(np.asarray(batch.y)).any()
    assert tree_of(view.picture_at(len(view.recording)))["type"] == "chart"


def test_a_long_line_is_drawn_with_few_points_that_keep_its_peaks():
    losses = np.asarray(falling(100_000))
    losses[54_321] = 99.0
    view = LossView(training(losses.tolist(), every=10**9))
    batch = lines(view)["batch"]
    assert len(batch.x) <= 2 * POINTS
    assert np.nanmax(np.asarray(batch.y)) == 99.0


@given(st.lists(st.floats(width=32), min_size=1, max_size=300), st.integers(4, 40))
def test_decimation_keeps_ends_extremes_and_order(values, most):
    y = np.asarray(values, np.float64)
    kept = decimated(y, most)
    assert kept[0] == 0
    assert kept[-1] == len(y) - 1
    assert all(a < b for a, b in pairwise(kept.tolist()))
    finite = y[np.isfinite(y)]
    if len(finite):
        drawn = y[kept][np.isfinite(y[kept])]
        assert drawn.min() == finite.min()
        assert drawn.max() == finite.max()
    assert np.isfinite(y).all() == np.isfinite(y[kept]).all()


def test_the_moving_mean_is_the_mean_of_the_last_finite_entries():
    y = np.asarray([*falling(50), math.nan, *falling(10)])
    at = np.arange(len(y))
    slow = [np.nanmean(y[max(0, k - 6) : k + 1]) for k in at]
    assert np.allclose(moving_mean(y, at, 7), slow)


@pytest.mark.parametrize("losses", [[], [1.0], [math.nan], falling(57), [1.0, math.inf, 2.0]])
def test_folding_many_equals_folding_one_by_one(losses):
    rec = training(losses)
    view = LossView(rec)
    one = view.start()
    for k, event in enumerate(rec, 1):
        one = view.fold(one, event)
        assert view.fold_many(view.start(), Stretch(rec, 0, k)) == one


def test_the_last_stop_has_the_last_test_and_the_end_of_the_run():
    run = lab.fit(lab.nn.mlp(64, 4, 10, rng=0), lab.data.digits()[0], validation=lab.data.digits()[1], epochs=2)
    run.wait()
    view = LossView(run)
    stops = view.stop_positions(run.recording)
    assert len(stops) == len(run.recording.positions(StepFinished))
    assert view.text_at(int(stops[-1])) == view.text_at(len(run.recording))
    first, *between, _ = (run.recording.positions(Evaluated) + 1).tolist()
    assert first < stops[0]
    assert set(between) <= set(stops.tolist()), "each test is seen with the step before it"


def test_of_several_runs_the_latest_is_shown():
    rec = recorded([
        RunStarted("a", 2, 1, 1, "m", "SGD"), StepFinished(1, 0, 5.0, 1, 1.0),
        RunStarted("b", 3, 1, 1, "m", "SGD"), StepFinished(1, 0, 7.0, 1, 1.0),
    ])  # fmt: skip
    view = LossView(rec)
    assert view.state_at(len(rec)).loss.array.tolist() == [7.0]
    assert view.text_at(len(rec)).startswith("Step 1 of 3: loss 7.0")
    assert view.text_at(2).startswith("Step 1 of 2: loss 5.0")


def test_nothing_yet_is_said():
    view = LossView(training([1.0]))
    assert view.text_at(0) == view.picture_at(0).caption == "Loss of a training run: nothing was measured yet."
    words = LossView(recorded([])).text_at(0)
    assert words.startswith("LossView shows the loss of a training, step by step, and none was recorded. To get one:")


def test_a_run_that_ended_before_its_first_step_says_why():
    begun, failed = RunStarted("digits", 3, 1, 10, "m", "o"), RunFinished("digits", "failed", 0, 9.0, "ShapeError: no")
    words = LossView(recorded([begun, failed])).text_at(2)
    assert words == "The run digits failed before its first step: ShapeError: no."
    assert LossView(recorded([begun])).text_at(1) == "The run digits began, and no step of it is in this recording."


def test_an_exploding_loss_is_drawn_on_a_logarithmic_axis():
    chart = LossView(training([1.0] * 20 + [1e9] * 3)).picture_at(10**6)
    assert chart.figure.layout.yaxis.type == "log"


def test_seeking_in_a_long_recording_folds_from_a_keyframe():
    view = LossView(training(falling(50_000), every=10**9))
    folded: list[int] = []
    fold_many = view.fold_many

    def counted(state, stretch):
        folded.append(stretch.stop - stretch.start)
        return fold_many(state, stretch)

    view.fold_many = counted  # type: ignore[method-assign]
    assert len(view.state_at(50_001).step) == 50_000
    folded.clear()
    assert len(view.state_at(40_001).step) == 40_000
    assert sum(folded) <= 50_002 / 32 + 256


@given(st.lists(st.lists(st.floats(allow_nan=False), max_size=5), max_size=8))
def test_branches_of_a_series_never_disturb_each_other(pieces):
    made, expected = [Series()], [[]]
    for k, piece in enumerate(pieces):
        base = (k * 7) % len(made)
        made.append(made[base].extended(piece))
        expected.append(expected[base] + piece)
    for series, numbers in zip(made, expected, strict=True):
        assert series.array.tolist() == numbers


def test_the_caption_names_only_the_lines_that_are_there():
    def caption(rec):
        return LossView(rec).picture_at(len(rec)).caption

    assert caption(training([2.0, 1.0])) == "Loss of each batch."
    assert caption(training(falling(60))).endswith("thick: its moving mean; dashed: whole splits.")
    assert "log scale, because it exploded" in caption(training([*falling(60), *[1e9] * 5]))
    assert "log scale, because it has a spike of 1e9 at step 61" in caption(training([*falling(60), 1e9]))
    bumpy = [2.3, *[0.5] * 9, *[1e-3] * 60, 1.0, *[1e-3] * 9]
    assert "log scale, because it fell to less than a hundredth" in caption(training(bumpy)), "1.0 is below the first"
    assert "log scale, because it fell to less than a hundredth" in caption(training([9.0, 5.0, *[1e-3] * 60]))


def test_the_axis_of_steps_is_always_given_and_shows_the_whole_of_a_finished_run():
    rec = training(falling(115))
    view = LossView(rec)
    for position in range(len(rec) + 1):
        layout = view.picture_at(position).figure.layout
        state = view.state_at(position)
        assert layout.xaxis.range[0] == 0
        assert layout.xaxis.range[1] > max([0, *state.step.array.tolist()])
    assert layout.xaxis.range == layout.xaxis2.range == (0, pytest.approx(115 * 1.02))


def test_a_run_that_was_taken_up_again_begins_where_it_went_on():
    rec = recorded([RunStarted("a", 0, 1, 1, "m", "SGD"), *(StepFinished(k, 0, 1.0, 1, 1.0) for k in (501, 502))])
    assert LossView(rec).picture_at(len(rec)).figure.layout.xaxis.range == (500, pytest.approx(502.04))


SPIKED = [*[0.2, 0.3] * 1500, 1e10, 1e20, 1e31, *[0.2, 0.3] * 1000]


def test_the_moving_mean_is_sound_again_as_soon_as_a_spike_has_left_its_window():
    mean = lines(LossView(training(SPIKED, every=10**9)))["mean of 125"]
    after = np.asarray(mean.x) > 3003 + 125
    assert after.any()
    np.testing.assert_allclose(np.asarray(mean.y)[after], 0.25, atol=1e-3)


@pytest.mark.parametrize("window", [1, 2, 5, 7, 40])
def test_a_moving_mean_is_that_of_each_window_by_itself(window):
    y = np.random.default_rng(window).normal(size=31) * 10.0 ** np.arange(31)[::-1]
    y[[3, 4, 20]] = np.nan, np.inf, np.nan
    parts = [y[max(0, k + 1 - window) : k + 1] for k in range(31)]
    wanted = [p[np.isfinite(p)].mean() if np.isfinite(p).any() else np.nan for p in parts]
    np.testing.assert_allclose(moving_mean(y, np.arange(31), window), wanted, rtol=1e-12)


def test_a_spike_does_not_rule_the_axis_and_where_it_is_cut_is_said():
    chart = LossView(training(SPIKED, every=10**9)).picture_at(10**9)
    low, high = chart.figure.layout.yaxis.range
    assert 10**low < 0.2
    assert 10**high == pytest.approx(100)
    assert "log scale, because it has a spike of 1e31 at step 3,003, cut at 100" in chart.caption
    chart = LossView(training([*SPIKED[:3003], *[1e31] * 5, *SPIKED[3003:]], every=10**9)).picture_at(10**9)
    assert "log scale, because it exploded: up to 1e31 at step 3,003, cut at 100" in chart.caption
    assert LossView(training([1.0] * 20 + [1e9] * 3)).picture_at(10**6).figure.layout.yaxis.range is None


def went_back():
    """Ten steps, of which the last three are taken back and done again."""
    again = [*range(1, 11), *range(8, 13)]
    losses = [*[1.0] * 7, 50.0, 60.0, 70.0, *[0.5] * 5]
    steps = [StepFinished(k, 0, loss, 1, 1.0) for k, loss in zip(again, losses, strict=True)]
    return recorded([RunStarted("a", 12, 1, 1, "m", "SGD"), *steps])


def test_a_run_that_went_back_has_a_gap_a_mark_and_a_mean_of_its_own():
    traces = lines(LossView(went_back()))
    batch = traces["batch"]
    assert np.flatnonzero(np.isnan(batch.y)).tolist() == [10]
    assert list(traces["back to step 7"].x) == [10, 8, None]
    assert traces["mean of 5"].y.tolist()[-5:] == [0.5] * 5, "nothing of what was taken back"
    twice = recorded([*went_back(), *(StepFinished(k, 0, 0.5, 1, 1.0) for k in (9, 10))])
    assert "went back, 2 times" in lines(LossView(twice))


def test_one_definition_says_what_an_explosion_is():
    over = TIMES * 2.0 + 1
    assert has_exploded(np.array([2.0, 1.0, *[over] * LATEST, 1.0]))
    assert not has_exploded(np.array([2.0, 1.0, *[over] * (LATEST - 1), 1.0, over]))
    assert not has_exploded(np.array([]))
