"""Memory over forward and backward: in units of one array it is what the text book draws, checkpoint or not."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, GradientError
from lab.events import MemorySampled, OpRecorded, PeakFound, bus

N = 200_000
UNIT = 8 * N


def sines(x, n):
    for _ in range(n):
        x = lab.sin(x)
    return x


def leaf():
    return lab.tensor(np.linspace(0.0, 1.0, N), requires_grad=True)


def units(memory, phase):
    """What was held after each operation or node of a phase, in arrays; objects of Python are some kilobytes."""
    found = [s.n_bytes / UNIT for s in memory.samples if s.phase == phase and s.op == "sin"]
    assert all(abs(n - round(n)) < 0.05 for n in found)
    return [round(n) for n in found]


def test_without_a_checkpoint_each_operation_adds_an_array_and_each_node_frees_one():
    x = leaf()
    plain = lab.measure_memory(plain=lambda: sines(x, 6).sum()).ways["plain"]
    assert units(plain, "forward") == [1, 2, 3, 4, 5, 6]
    assert units(plain, "backward") == [6, 6, 5, 4, 3, 2]  # of which one or two are gradients on their way
    assert plain.n_replayed == 0
    assert 6 * UNIT <= plain.peak < 8 * UNIT
    assert round(plain.kept / UNIT, 1) == 5  # the first sine keeps x, which was there, and nobody the last result


def test_a_checkpoint_keeps_what_goes_in_and_replays_piece_by_piece():
    x = leaf()
    piece = lab.checkpoint(lambda x: sines(x, 4))
    found = lab.measure_memory(plain=lambda: sines(x, 16).sum(), pieces=lambda: piece(piece(piece(piece(x)))).sum())
    plain, pieces = found.ways["plain"], found.ways["pieces"]
    assert units(pieces, "forward") == [1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6, 4, 5, 6, 7]
    assert pieces.n_replayed == 16
    assert max(units(pieces, "replay")) == 7
    assert plain.peak > 2 * pieces.peak


def test_one_checkpoint_around_all_saves_nothing_at_the_peak():
    x = leaf()
    found = lab.measure_memory(
        plain=lambda: sines(x, 8).sum(), around_all=lambda: lab.checkpoint(lambda x: sines(x, 8))(x).sum()
    )
    assert found.ways["around_all"].peak >= found.ways["plain"].peak - UNIT // 10


def test_samples_follow_the_run_operation_by_operation_and_are_told():
    x = leaf()
    found = lab.measure_memory(plain=lambda: (lab.sin(x) * x).sum())
    told = [e for e in found.recording if isinstance(e, MemorySampled)]
    assert [(e.phase, e.op) for e in told] == [
        ("forward", "sin"), ("forward", "multiply"), ("forward", "sum"),
        ("backward", "sum"), ("backward", "multiply"), ("backward", "sin"),
    ]  # fmt: skip
    assert [e.number for e in told] == [1, 2, 3, 4, 5, 6]
    peak = found.recording[-1]
    assert isinstance(peak, PeakFound)
    assert (peak.n_bytes, peak.n_ops, peak.n_replayed) == (found.ways["plain"].peak, 3, 0)


def test_gradients_of_leaves_and_recordings_of_others_stay_as_they_are():
    x = lab.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    before = x.grad
    with lab.record(kinds=[OpRecorded]) as rec:
        lab.measure_memory(plain=lambda: lab.sin(x).sum())
    assert x.grad.numpy().tolist() == before.numpy().tolist() == [2.0, 4.0]
    assert len(rec) == 2  # of the run before that is not measured; the measured one is a run of its own
    assert not bus.gates
    assert not tracemalloc.is_tracing()


def test_who_traces_memory_already_goes_on_tracing():
    tracemalloc.start()
    try:
        x = leaf()
        found = lab.measure_memory(plain=lambda: sines(x, 2).sum())
        assert tracemalloc.is_tracing()
        assert units(found.ways["plain"], "forward") == [1, 2]
    finally:
        tracemalloc.stop()


def test_a_function_that_fails_leaves_nothing_behind():
    def failing():
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("in the measured run")
        return lab.tensor(1.0, requires_grad=True) * 2.0

    calls = []
    with pytest.raises(ValueError, match="in the measured run"):
        lab.measure_memory(plain=failing)
    assert not bus.gates
    assert not bus.listeners
    assert not tracemalloc.is_tracing()


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: lab.measure_memory(), ArgumentError, "needs a function"),
    (lambda: lab.measure_memory(plain=3), ArgumentError, "needs a function"),
    (lambda: lab.measure_memory(plain=lambda: 3.0), GradientError, "with a graph"),
    (lambda: lab.measure_memory(plain=lambda: leaf() * 2.0), GradientError, "several entries"),
])  # fmt: skip
def test_what_cannot_be_measured_is_refused_in_three_lines(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 3
