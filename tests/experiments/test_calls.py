"""First call and later calls: every part that is told was timed, and the call from which on jit has paid is counted."""

import math
import subprocess
import sys

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, ConcretizationError
from lab.events import CallMeasured, CallsBegun, CallsPaid, bus
from lab.experiments.calls import PARTS, breakeven
from tests.widgets.golden import recorded
from widgets import CallsView

X = np.linspace(-1.0, 1.0, 12)


def wave(x):
    return lab.sum(lab.tanh(x) * 2.0 + lab.tanh(x))


@pytest.fixture(scope="module")
def found():
    return lab.measure_calls(wave, X, X, X[:5], X)


def test_a_call_that_traces_has_all_its_parts_and_another_only_its_run(found):
    every = ["trace", "passes", "code", "loops", "run"]
    told = [p for p in found.parts if p.way == "jit" and p.part != "compiler"]
    jit = {n: [p.part for p in told if p.number == n] for n in range(1, 5)}
    assert jit == {1: every, 2: ["run"], 3: every, 4: ["run"]}
    assert [p.part for p in found.parts if p.way == "eager"] == ["run"] * 4
    assert all(p.elapsed_ms > 0 for p in found.parts)


def test_words_tell_of_the_graph_and_of_the_loops(found):
    words = {(p.number, p.part): p.words for p in found.parts if p.way == "jit"}
    assert words[1, "trace"] == "5 equations: the first call"
    assert words[3, "trace"] == "5 equations: x: float64 (5,), before float64 (12,)"
    assert words[1, "loops"].startswith("1 loop: ")
    assert [len(found.jitted.misses), found.jitted.hits] == [2, 2]


def test_the_recording_has_every_part_call_by_call(found):
    rec = found.recording
    assert rec[0] == CallsBegun("wave", "compiled", 4, False)
    assert [e.number for e in rec if isinstance(e, CallMeasured)] == sorted(p.number for p in found.parts)
    assert rec[-1] == CallsPaid(found.paid, found.seen)
    assert "first call" in repr(found)


def test_loading_the_compiler_is_a_part_of_the_first_call_of_a_session_alone():
    code = """
import numpy as np, lab
f = lambda x: lab.tanh(x) * 2.0
for n in (3, 4):
    found = lab.measure_calls(f, np.ones(n))
    print([p.part for p in found.parts if p.way == "jit"])
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert told == [str(list(PARTS)), str([part for part in PARTS if part != "compiler"])]


def test_a_jitted_function_that_is_interpreted_has_no_code():
    found = lab.measure_calls(wave, (X,), executor="interpreted")
    assert [p.part for p in found.parts if p.way == "jit"] == ["trace", "run"]


@pytest.mark.parametrize(
    ("eager", "jit", "paid"),
    [
        ([2.0, 2.0], [1.0, 1.0], (1, True)),
        ([2.0, 2.0, 2.0], [5.0, 0.0, 0.0], (3, True)),
        ([2.0] * 4, [1.0, 9.0, 1.0, 1.0], (8, False)),  # a retrace in the middle took the lead away
        ([2.0, 2.0], [2.0, 2.0], (math.inf, False)),
        ([2.0], [5.0], (math.inf, False)),
    ],
)
def test_paid_is_the_first_call_after_which_jit_stays_ahead(eager, jit, paid):
    assert breakeven(eager, jit, jit[1:]) == paid


def test_somebody_who_records_operations_is_mentioned():
    with lab.record():
        assert bus.operations
        found = lab.measure_calls(wave, X, executor="interpreted")
    assert found.recording[0].told
    assert "makes all slower" in CallsView(found).picture_at(1).caption


def small():
    """Two calls whose times are known."""
    return recorded([
        CallsBegun("f", "compiled", 2, False), CallMeasured(1, "eager", "run", 4.0, ""),
        CallMeasured(1, "jit", "trace", 6.0, "2 equations: the first call"), CallMeasured(1, "jit", "run", 1.0, ""),
        CallMeasured(2, "eager", "run", 4.0, ""), CallMeasured(2, "jit", "run", 0.5, ""), CallsPaid(2.0, True),
    ])  # fmt: skip


def test_the_view_draws_each_call_and_all_so_far():
    rec = small()
    traces = CallsView(rec).picture_at(len(rec)).figure.data
    assert [list(t.y) for t in traces] == [[4.0, 4.0], [7.0, 0.5], [4.0, 8.0], [7.0, 7.5], ["run", "trace"]]
    assert list(traces[4].x) == [1.0, 6.0]


def test_the_view_tells_each_part_and_when_jit_has_paid():
    rec = small()
    view = CallsView(rec)
    assert view.sentence_at(3) == "Call 1, jitted, trace: 6.0 ms (2 equations: the first call)."
    assert view.sentence_at(7) == "From call 2 on all jitted calls together have taken less: seen."
    assert "Later calls, jitted: 0.5 ms, median of 1." in view.text_at(7)
    assert "seen" in view.picture_at(7).caption


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: lab.measure_calls("f", 1.0), ArgumentError),
        (lambda: lab.measure_calls(wave), ArgumentError),
        (lambda: lab.measure_calls(wave, X, executor="fast"), ArgumentError),
        (lambda: lab.measure_calls(lambda x: x if x > 0 else -x, 1.0), ConcretizationError),
    ],
)
def test_bad_arguments_are_said_in_three_lines(call, error):
    with pytest.raises(error) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 3
