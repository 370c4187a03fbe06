"""RewriteView: what a pass did to each equation, side by side, from the events alone."""

from itertools import pairwise

import numpy as np
import pytest

import lab
from lab.events import GraphMade, PassesBegun, PassFinished
from lab.experiments.passes import graph_made
from lab.graph.parsing import parse
from lab.graph.passes import PASSES
from tests.widgets.golden import recorded
from widgets import RewriteView
from widgets.views.experiments.rewrite.step import Step, lines_of


def passed(number, name):
    return PassFinished(number, name, 3 - number, 4, 100, 5.0, 0.1, 0, 0, 0, "")


def story(graph, *names):
    """A recording of these passes over a graph."""
    events = [PassesBegun("f", ("as traced", *names), 1, False)]
    events += [graph_made(0, "as traced", graph), passed(0, "as traced")]
    for number, name in enumerate(names, 1):
        graph = PASSES[name](graph)
        events += [graph_made(number, name, graph), passed(number, name)]
    return recorded(events)


def step_of(before, after):
    return Step(*(lines_of(graph_made(0, "", graph)) for graph in (before, after)))


TWICE = """graph(a:f64[2]) { let
    b:f64[2] = exp(a)
    c:f64[2] = exp(a)
    d:f64[2] = tanh(a)
    e:f64[2] = add(b, c)
  in (e) }"""


def test_what_is_merged_goes_into_what_stands_for_it():
    graph = parse(TWICE)
    step = step_of(graph, PASSES["common subexpressions"](graph))
    assert step.left == ["kept", "into", "kept", "kept"]
    assert step.right == ["changed", "kept", "changed"]  # b stands for c, too, and e reads it twice
    assert [(i, j) for i, j, changed in step.links if changed] == [(1, 0)]


def test_what_nobody_reads_is_left_out():
    graph = parse(TWICE)
    step = step_of(graph, PASSES["dead code"](graph))
    assert step.left == ["kept", "kept", "gone", "kept"]
    assert set(step.right) == {"kept"}


def test_what_is_fused_goes_into_an_equation_that_is_new():
    graph = PASSES["dead code"](parse(TWICE))
    step = step_of(graph, PASSES["fusion"](graph))
    assert step.left == ["into"] * 3
    assert step.right == ["new"]
    assert [(i, j) for i, j, _ in step.links] == [(0, 0), (1, 0), (2, 0)]
    assert step.after[0].short == "e = fused exp, add"


def test_what_runs_earlier_or_later_is_told_apart_from_what_stays():
    graph = lab.make_graph(lambda x: tuple(lab.sum(y) for y in [x @ x, x @ x, x @ x]))(np.ones((4, 4)))
    step = step_of(graph, PASSES["ordering"](graph))
    assert sorted(step.left) == sorted(step.right)
    assert 0 < step.left.count("moved") < len(step.left)


def test_a_buffer_and_an_equation_made_again_are_seen():
    def f(x):
        a = lab.exp(x)
        return a @ ((a @ x) @ (x @ x))

    graph = lab.make_graph(f)(np.ones((9, 9)))
    again = PASSES["rematerialization"](graph)
    step = step_of(graph, again)
    assert step.right.count("new") == 1
    assert {i for i, _, changed in step.links if changed} == {0}
    assert "changed" in step_of(again, PASSES["memory planning"](again)).right


@pytest.fixture
def view():
    return RewriteView(story(parse(TWICE), "common subexpressions", "dead code", "fusion"))


def test_a_mark_and_a_colour_tell_what_became_of_a_row(view):
    stops = view.stop_positions(view.recording)
    picture = view.picture_at(int(stops[1]))
    states = {n.id: n.state for n in picture.nodes}
    assert [states[f"a{i}"] for i in range(4)] == ["idle", "waiting", "idle", "idle"]
    assert [states[f"b{j}"] for j in range(3)] == ["done", "idle", "done"]
    assert dict(picture.legend).keys() == {"waiting", "done", "store"}
    ways = {e.id: e.state for e in picture.edges if e.id.startswith("p")}
    assert ways == {"p0-0": "idle", "p1-0": "store", "p2-1": "idle", "p3-2": "idle"}
    assert [m.text for m in picture.marks if m.kind == "heading"] == ["0 as traced", "1 common subexpressions"]


def test_a_row_says_its_equation_and_its_line(view):
    def f(x):
        return lab.exp(x) * 2.0

    rec = lab.measure_passes(f, np.ones(3), repeats=1).recording
    said = [n.aria for n in RewriteView(rec).picture_at(len(rec)).nodes]
    assert any("exp" in words and "test_rewrite_view.py" in words for words in said)
    nodes = {n.id: n for n in view.picture_at(int(view.stop_positions(view.recording)[2])).nodes}
    assert nodes["a1"].aria == "before, equation 2 of 3: d:f64[2] = tanh(a), left out"


def test_the_words_are_the_difference_of_the_texts(view):
    stops = view.stop_positions(view.recording)
    assert view.text_at(int(stops[1])).splitlines()[1:] == [
        "  b:f64[2] = exp(a)", "- c:f64[2] = exp(a)", "  d:f64[2] = tanh(a)", "- e:f64[2] = add(b, c)",
        "+ e:f64[2] = add(b, b)",
    ]  # fmt: skip
    caption = view.picture_at(int(stops[1])).caption
    assert "kernels 3 → 2" in caption
    assert "µs a run, measured 5.0 → 5.0" in caption


def test_the_rows_of_a_side_keep_their_order_and_do_not_overlap(view):
    for stop in view.stop_positions(view.recording):
        picture = view.picture_at(int(stop))
        for side in "ab":
            ys = [n.y for n in picture.nodes if n.id.startswith(side)]
            assert all(below - above > 25 for above, below in pairwise(ys))
        assert all(n.y + n.height / 2 <= picture.extent[1] for n in picture.nodes)


def test_a_pass_that_only_gives_buffers_or_an_order_is_told_by_what_it_changed():
    graph = lab.make_graph(lambda x: tuple(lab.sum(y) for y in [x @ x, x @ x, x @ x]))(np.ones((4, 4)))
    view = RewriteView(story(graph, "ordering", "memory planning"))
    captions = [view.picture_at(int(stop)).caption for stop in view.stop_positions(view.recording)]
    assert captions[1].startswith("Ordering: ")
    assert "equations moved." in captions[1]
    assert captions[2].startswith("Memory planning: 3 equations changed in place.")


def test_of_a_large_graph_what_changed_is_shown_and_it_is_said():
    def f(x):
        for k in range(100):
            x = lab.tanh(x) @ x if k != 50 else lab.tanh(x) * 1.0
        return x

    view = RewriteView(story(lab.make_graph(f)(np.ones((2, 2))), "algebra"))
    picture = view.picture_at(len(view.recording))
    assert 0 < len(picture.nodes) < 20
    assert any("equations; " in m.text and m.text.endswith("shown: near changes") for m in picture.marks)
    assert "waiting" in {n.state for n in picture.nodes}


def test_a_recording_of_before_there_were_graphs_in_it_says_so():
    rec = recorded([PassesBegun("f", ("as traced",), 1, False), passed(0, "as traced")])
    view = RewriteView(rec)
    assert "not their graphs" in view.picture_at(2).caption
    assert "not their graphs" in view.text_at(2)
    assert not [e for e in rec if isinstance(e, GraphMade)]
