"""RetraceView and what a jitted function tells: hits and misses in their order, and why each trace was made."""

from __future__ import annotations

import numpy as np
import pytest

import lab
from lab.events import CacheHit, StepFinished, Traced, bus
from tests.widgets.golden import recorded
from widgets import RetraceView

X = np.ones((4, 3))


def told(*kinds, run):
    with lab.record(kinds=kinds or (Traced, CacheHit)) as rec:
        run()
    return rec


def test_a_call_tells_a_trace_with_its_reason_or_a_hit_with_its_graph():
    f = lab.jit(lab.tanh)
    rec = told(run=lambda: [f(x) for x in (X, X, X[:2], X)])
    rows = [(type(e).__name__, e.graph) for e in rec]
    assert rows == [("Traced", 1), ("CacheHit", 1), ("Traced", 2), ("CacheHit", 1)]
    assert [e.reason for e in rec if isinstance(e, Traced)] == [m.reason for m in f.misses]
    assert "(2, 3), before" in rec[2].reason
    assert (rec[0].n_equations, rec[0].kept, rec[0].elapsed_ms > 0) == (1, True, True)


def test_a_function_of_ones_own_is_told_with_its_line():
    def here(x):
        return x + 1.0

    rec = told(run=lambda: lab.jit(here)(X))
    assert (rec[0].function, rec[0].file, rec[0].line) == ("here", __file__, here.__code__.co_firstlineno)


def test_nothing_is_told_to_who_listens_to_other_kinds(monkeypatch):
    f = lab.jit(lab.tanh)
    emitted = []
    monkeypatch.setattr(type(bus), "emit", lambda self, event: emitted.append(event))
    told(StepFinished, run=lambda: [f(X), f(X)])
    assert (emitted, f.hits, len(f.misses)) == ([], 1, 1)


def test_a_graph_that_is_good_for_one_call_is_number_0_and_the_next_call_says_so():
    def around(y):  # the graph of a function that closes over a value of an enclosing transform serves one call
        f = lab.jit(lambda x: x * y)
        f(2.0)
        return f(2.0)

    rec = told(run=lambda: lab.grad(around)(3.0))
    assert [(e.graph, e.kept) for e in rec] == [(0, False), (0, False)]
    assert [e.reason for e in rec] == ["the first call", "the graph before was good for its own call only"]
    nodes = RetraceView(rec).picture_at(2).nodes
    assert [n.state for n in nodes if n.id.startswith("c")] == ["trouble", "trouble"]


def trace(graph, reason="the first call", line=1):
    return Traced("f", "cell.py", line, graph, reason, 3, 0.5, graph > 0)


def hit(graph, line=1):
    return CacheHit("f", "cell.py", line, graph)


def test_hits_of_one_graph_in_a_row_are_one_box_in_the_row_of_that_graph():
    rec = recorded([trace(1), hit(1), hit(1), trace(2, "x: float64 (4,), before float64 (3,)"), hit(1)])
    scene = RetraceView(rec).picture_at(len(rec))
    nodes = {n.id: n for n in scene.nodes}
    assert [(nodes[f"c{k}"].label, nodes[f"c{k}"].sublabel) for k in range(4)] == [
        ("1", "traced"), ("2–3", "2 hits"), ("4", "traced"), ("5", "1 hit"),
    ]  # fmt: skip
    assert nodes["c0"].y == nodes["c1"].y == nodes["c3"].y == nodes["g0"].y
    assert nodes["c2"].y == nodes["g1"].y
    assert [nodes[f"c{k}"].state for k in range(4)] == ["new", "done", "new", "done"]
    words = [m.text for m in scene.marks]
    assert "traced in call 4, because x: float64 (4,), before float64 (3,)" in words
    assert "5 calls: 3 hits, 2 traced" in words


def test_the_words_say_what_the_last_call_met_and_then_every_graph():
    rec = recorded([trace(1), hit(1)])
    view = RetraceView(rec)
    assert view.sentence_at(1) == "Call 1 of f: traced, because it is the first call; 3 equations, 0.5 ms."
    assert view.text_at(2).splitlines() == [
        "Call 2 of f: hit, graph 1 is used again.",
        "2 calls: 1 hit, 1 traced.",
        "f, graph 1 (call 1, the first call): 3 equations, 0.5 ms",
    ]


def test_a_hit_whose_trace_was_not_recorded_has_a_row_that_says_so():
    rec = recorded([hit(2), hit(2)])
    view = RetraceView(rec)
    assert "traced before this recording" in view.text_at(2)
    assert [n.sublabel for n in view.picture_at(2).nodes if n.id.startswith("c")] == ["2 hits"]


def test_functions_of_one_name_on_two_lines_have_graphs_of_their_own():
    rec = recorded([trace(1, line=1), trace(1, line=9), hit(1, line=1)])
    scene = RetraceView(rec).picture_at(3)
    place = {n.id: n.y for n in scene.nodes}
    assert place["c2"] == place["c0"] != place["c1"]


@pytest.mark.parametrize("n", [1, 50, 200])
def test_what_is_traced_in_every_call_is_drawn_as_far_as_there_is_room(n):
    rec = recorded([trace(1) for _ in range(n)])
    view = RetraceView(rec)
    scene = view.picture_at(n)
    assert sum(node.id.startswith("g") for node in scene.nodes) == min(n, 8)
    assert f"{n} call" in view.text_at(n)
    assert ("Not drawn" in scene.caption) == (n > 8)


def test_folding_at_once_and_one_by_one_gives_the_same():
    rec = recorded([*(trace(1) for _ in range(3)), *(hit(1) for _ in range(700))])
    view, state = RetraceView(rec), RetraceView(rec).start()
    for event in rec:
        state = view.fold(state, event)
    assert view.state_at(len(rec)) == state
