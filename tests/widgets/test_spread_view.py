"""SpreadView and what it draws: replicas that sum gradients stay equal to the bit, others drift apart."""

from __future__ import annotations

import pytest

import lab
from lab.errors import ArgumentError
from lab.events import SpreadBegun, SpreadMeasured
from tests.widgets.golden import recorded
from widgets import SpreadView
from widgets.pictures.twin import svg_of


@pytest.fixture(scope="module")
def found():
    train, _ = lab.data.digits()
    return lab.measure_spread(
        lambda: lab.nn.mlp(64, 8, 10, rng=0), (train.inputs, train.targets), (1, 4, 0), world_size=3, steps=9
    )


def largest(found, every):
    return [row.largest for row in found.rows if row.every == every]


def test_replicas_that_sum_their_gradients_have_the_same_bits_after_each_step(found):
    assert largest(found, 1) == [0.0] * 9


def test_an_average_brings_replicas_together_and_they_drift_apart_again(found):
    assert [apart == 0 for apart in largest(found, 4)] == [k % 4 == 0 for k in range(1, 10)]


def test_replicas_that_never_talk_drift_further_and_further(found):
    apart = largest(found, 0)
    assert 0 < apart[0] < apart[3] < apart[-1]
    assert apart[:3] == largest(found, 4)[:3]


def test_each_line_is_what_was_measured(found):
    chart = SpreadView(found).picture_at(len(found.recording))
    assert [trace.name for trace in chart.figure.data] == [
        "gradients summed", "averaged every 4 steps", "never synchronised",
    ]  # fmt: skip
    for trace, every in zip(chart.figure.data, (1, 4, 0), strict=True):
        assert list(trace.y) == largest(found, every)
    assert "Gradients summed: exactly 0 at every step." in chart.caption
    assert "never synchronised" in svg_of(chart, "dark")


def test_the_words_say_the_last_measurement_first():
    rec = recorded([SpreadBegun(2, 3, 8, 0.1), SpreadMeasured(1, 1, 0.0, 2.0), SpreadMeasured(0, 1, 0.25, 2.0)])
    view = SpreadView(rec)
    assert view.sentence_at(1) == "Nothing is measured yet."
    assert view.sentence_at(2) == "Step 1, gradients summed: all replicas have the same bits."
    assert view.sentence_at(3) == "Step 1, never synchronised: 0.25 apart."


def test_too_few_examples_for_all_ranks_are_refused():
    train, _ = lab.data.digits()
    with pytest.raises(ArgumentError, match="every rank needs a batch of its own"):
        lab.measure_spread(lambda: None, (train.inputs[:10], train.targets[:10]))
