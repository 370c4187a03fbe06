"""BucketView and what it draws: real steps with buckets of several sizes, their lanes, and the curve of their times."""

from __future__ import annotations

import contextlib

import pytest

import lab
from lab.errors import ArgumentError
from lab.events import BucketsBegun, BucketStepTold, BucketsTimed, LaneBusy, record
from lab.events.event import ORIGIN, Origin
from lab.parallel import Throttle
from tests.widgets.golden import recorded
from widgets import BucketView, Player
from widgets.pictures.twin import svg_of

SIZES = [1, 1400, None]


def measured(sizes=SIZES, **options):
    train, _ = lab.data.digits()
    options = {"batch_size": 16, "rounds": 2, "steps": 2, **options}
    return lab.measure_buckets(lambda: lab.nn.mlp(64, 32, 10, rng=0), (train.inputs, train.targets), sizes, **options)


@pytest.fixture(scope="module")
def found():
    return measured(throttle=Throttle(latency_s=1e-4))


def ends(found):
    """The places of the slider: after the lanes of each size."""
    return [i + 1 for i, event in enumerate(found.recording) if isinstance(event, BucketStepTold)]


def test_each_size_is_timed_in_each_round_and_cuts_the_gradient_as_training_does(found):
    assert [(row.bucket_bytes, row.n_buckets, len(row.steps_ms)) for row in found.rows] == [
        (1, 4, 4), (1400, 3, 4), (None, 1, 4),
    ]  # fmt: skip
    for row in found.rows:
        assert min(row.steps_ms) <= row.elapsed_ms <= max(row.steps_ms)


def test_each_rank_tells_the_lanes_of_one_step_and_all_buckets_together_are_the_gradient(found):
    for row in found.rows:
        for rank in range(2):
            mine = [span for span in row.spans if span.rank == rank]
            kinds = ["differentiate", "wait", *["bucket"] * row.n_buckets]
            assert [span.kind for span in mine] == kinds
            assert sum(span.n_bytes for span in mine) == 4 * (64 * 32 + 32 + 32 * 10 + 10)


def test_sizes_are_measured_once_each_in_ascending_order_with_all_at_once_behind():
    rows = measured([None, 1400, 1, 1400], rounds=1, steps=1).rows
    assert [row.bucket_bytes for row in rows] == [1, 1400, None]


def test_the_recording_has_the_lanes_under_the_ranks_that_told_them(found):
    lanes = [event for event in found.recording if isinstance(event, LaneBusy)]
    spans = [span for row in found.rows for span in row.spans]
    assert [(e.rank, e.kind, e.bucket, e.stop_ms) for e in lanes] == [
        (s.rank, s.kind, s.bucket, s.stop_ms) for s in spans
    ]  # fmt: skip


def test_whoever_asks_for_nothing_slow_gets_links_as_they_are_and_is_told_if_somebody_recorded():
    with record() as _:
        found = measured([None], rounds=1, steps=1)
    [begun] = [event for event in found.recording if isinstance(event, BucketsBegun)]
    assert (begun.throttle, begun.told, begun.n_bytes) == ("", True, 4 * 2410)
    assert "links as fast as they are" in BucketView(found).picture_at(len(found.recording)).caption


def test_the_slider_shows_the_lanes_of_each_size_below_a_curve_that_stays_whole(found):
    view = BucketView(found)
    for place, row in zip(ends(found), found.rows, strict=True):
        chart = view.picture_at(place)
        traces = {trace.name: trace for trace in chart.figure.data}
        assert list(traces["median step"].y) == [each.elapsed_ms for each in found.rows]
        assert list(traces["shown above"].y) == [row.elapsed_ms]
        sums = [span for span in row.spans if span.kind == "bucket"]
        told = [(span.start_ms, span.stop_ms) for span in sums]
        drawn = list(traces["all-reduce of a bucket"].x)
        assert list(zip(drawn[::3], drawn[1::3], strict=True)) == told
        assert list(traces["all-reduce of a bucket"].y[::3]) == [2 * span.rank + 1 for span in sums]


def test_the_slider_and_its_keys_stop_once_at_each_size(found):
    view = BucketView(found)
    assert list(view.stop_positions(found.recording)) == ends(found)
    player = Player(view)
    player.to_end()
    shown = [player.text]
    for _ in SIZES[1:]:
        player.back()
        shown.append(player.text)
    assert ["All at once" in text.splitlines()[0] for text in shown] == [True, False, False]
    player.dispose()


def test_the_caption_says_the_links_the_repeats_and_the_best_size(found):
    caption = BucketView(found).picture_at(len(found.recording)).caption
    assert "links slowed to any bandwidth, 0.1 ms" in caption
    assert "medians of 4 steps" in caption
    best = {1: "buckets of 1 B", 1400: "buckets of 1.37 KiB", None: "all at once"}[found.best.bucket_bytes]
    assert f"Best: {best}, " in caption


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_still_twin_has_the_lanes_and_the_curve(found, theme):
    still = svg_of(BucketView(found).picture_at(len(found.recording)), theme)
    for words in ("rank 1", "sums", "waits for buckets", "median step", "all at once", "ms of a step"):
        assert words in still


def story(*sizes):
    yield BucketsBegun(2, "threads", 2, 12, 64, 1 << 20, "ring", "", told=False)
    for k, size in enumerate(sizes):
        yield BucketsTimed(size, 4, 10.0 - k, 9.0 - k, 12.0)
    for size in sizes:
        yield LaneBusy(1, "compute", "differentiate", -1, 0, 0.0, 6.0)
        yield LaneBusy(1, "communication", "bucket", 0, 512, 2.0, 8.0)
        yield BucketStepTold(size, 10.0)


@contextlib.contextmanager
def as_rank(rank):
    token = ORIGIN.set(Origin(rank, ""))
    try:
        yield
    finally:
        ORIGIN.reset(token)


def test_the_words_say_the_chosen_size_first_and_what_of_its_sums_was_hidden():
    with as_rank(0):
        rec = recorded(story(4096, 0))
    view = BucketView(rec)
    assert view.text_at(6).splitlines() == [
        "Buckets of 4 KiB (4 buckets): 10 ms a step, 9 ms to 12 ms.",
        "Rank 0 summed for 6 ms, of which 4 ms behind its computation.",
        "All at once (4 buckets): 9 ms a step, 8 ms to 12 ms.",
    ]
    assert view.sentence_at(len(rec)) == "All at once (4 buckets): 9 ms a step, 8 ms to 12 ms."
    assert view.sentence_at(1) == "Nothing is measured yet."


def test_all_at_once_stands_to_the_right_of_every_size():
    with as_rank(0):
        rec = recorded(story(4096, 1 << 24, 0))
    curve = next(t for t in BucketView(rec).picture_at(len(rec)).figure.data if t.name == "median step")
    assert list(curve.x) == sorted(set(curve.x))


def test_lanes_of_a_training_alone_are_no_measurement():
    rec = recorded([LaneBusy(1, "compute", "differentiate", -1, 0, 0.0, 6.0)])
    assert BucketView(rec).text_at(1).startswith("BucketView shows steps by the size of their buckets, and none was")


def test_what_cannot_be_measured_is_refused():
    for problem, call in {
        "numbers of bytes, or None": lambda: measured([]),
        "size": lambda: measured([0]),
        "fewer examples": lambda: measured(batch_size=10**6),
        "on": lambda: measured(on=1),
        "slowed down by a Throttle": lambda: measured(throttle=1e6),
    }.items():
        with pytest.raises(ArgumentError, match=problem):
            call()
