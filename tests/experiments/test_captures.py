"""A function beside its trace and its script: which lines ran, what was burned in, and which results are equal."""

import sys

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError
from lab.events import CaptureCompared, CapturesBegun, GraphCaptured
from widgets import CaptureView
from widgets.pictures.twin import svg_of

THRESHOLD = 2


def signed(x):
    if x > 0.0:
        return 2.0 * x
    return -x


def halved(x):
    if x.shape[0] > THRESHOLD:
        return x / x.shape[0]
    return 10.0 * x


def added(x):
    total = 0.0 * x[0]
    for i in range(x.shape[0]):
        total = total + x[i]
    return total


def verdicts(given):
    return [g.verdict for g in given]


def test_a_branch_on_a_value_is_refused_by_the_trace_and_kept_by_the_script():
    found = lab.compare_captures(signed, 3.0, -3.0)
    assert found.trace.graph is None
    assert "the value of a traced variable was asked for" in found.trace.why
    assert found.trace.lines == (2,)
    assert repr(found) == "<trace refused, script equal for 2 of 2 inputs>"
    caption = CaptureView(found).picture_at(len(found.recording)).caption
    assert "The trace of input 1 is refused. The script is equal for 2 of 2." in caption
    assert verdicts(found.traced) == ["none", "none"]
    assert verdicts(found.scripted) == ["equal", "equal"]
    assert found.script.graph.equations[-1].op.name == "cond"
    assert [g.result for g in found.eager] == ["6.0", "3.0"]
    assert [g.lines for g in found.eager] == [(2, 3), (2, 4)]
    assert set(found.script.lines) == {2, 3, 4}


def test_a_branch_on_a_shape_is_burned_in_and_the_result_of_another_is_wrong():
    found = lab.compare_captures(halved, np.array([3.0, 6.0, 9.0]), np.array([3.0, 6.0]))
    assert verdicts(found.traced) == ["equal", "wrong"]
    assert verdicts(found.scripted) == ["equal", "equal"]
    assert [g.lines for g in found.eager] == [(2, 3), (2, 4)]
    view = CaptureView(found)
    text = view.text_at(len(found.recording))
    assert "Input 2, [3., 6.], by the trace of input 1: [1., 2.], another value" in text
    assert "(line 4 not in the trace, line 3 burned in)." in text


def test_a_graph_that_does_not_fit_an_input_is_an_error_in_words():
    found = lab.compare_captures(added, np.ones(3), np.ones(2))
    assert verdicts(found.traced) == ["equal", "error"]
    assert "index" in found.traced[1].result
    assert verdicts(found.scripted) == ["equal", "equal"]


def test_what_a_script_cannot_read_is_refused_in_its_words():
    found = lab.compare_captures(lambda x: x * 2.0, 1.0)
    assert found.script.graph is None
    assert "cannot read a lambda" in found.script.why
    assert (verdicts(found.traced), verdicts(found.scripted)) == (["equal"], ["none"])


def test_an_error_of_the_function_is_told_and_a_graph_that_gives_a_value_then_is_wrong():
    def picky(x):
        if x.shape[0] == 2:
            raise ValueError("two are too few")
        return x * 2.0

    found = lab.compare_captures(picky, np.ones(3), np.ones(2))
    assert found.eager[1][:2] == ("ValueError: two are too few", "error")
    assert verdicts(found.traced) == ["equal", "wrong"]
    assert verdicts(found.scripted) == ["equal", "error"]


def test_a_script_itself_and_a_function_without_a_source_are_looked_at_too():
    assert verdicts(lab.compare_captures(lab.script(signed), 1.0).scripted) == ["equal"]
    found = lab.compare_captures(lab.tanh, 1.0)
    assert verdicts(found.traced) == ["equal"]
    assert found.recording[0].lines == ()


def test_containers_are_compared_leaf_by_leaf_and_float32_with_its_tolerance():
    def several(p):
        return {"twice": p["x"] * 2.0, "n": p["x"].shape[0]}

    found = lab.compare_captures(several, {"x": np.ones(3, np.float32)}, {"x": np.ones(2, np.float32)})
    assert verdicts(found.traced) == ["equal", "wrong"]


def test_who_watches_lines_already_goes_on_watching():
    before = sys.gettrace()
    lab.compare_captures(signed, 1.0)
    assert sys.gettrace() is before


def test_the_recording_tells_the_graphs_and_then_input_by_input():
    rec = lab.compare_captures(signed, 3.0, -3.0).recording
    assert isinstance(rec[0], CapturesBegun)
    assert rec[0].lines[0] == "def signed(x):"
    assert [(e.way, e.ok) for e in rec if isinstance(e, GraphCaptured)] == [("trace", False), ("script", True)]
    told = [(e.number, e.way) for e in rec if isinstance(e, CaptureCompared)]
    assert told == [(n, way) for n in (0, 1) for way in ("eager", "trace", "script")]


def test_the_picture_marks_the_lines_and_the_results():
    found = lab.compare_captures(signed, 3.0, -3.0)
    scene = CaptureView(found).picture_at(len(found.recording))
    nodes = {n.id: n for n in scene.nodes}
    assert {n for n in nodes if n.startswith("l3.")} == {"l3.0", "l3.3"}  # for input 1, and in the script
    assert (nodes["eager1"].label, nodes["script1"].sublabel, nodes["script1"].state) == ("3.0", "equal", "done")
    assert (nodes["trace0"].sublabel, nodes["trace0"].state) == ("no graph", "waiting")
    words = [m.text for m in scene.marks]
    assert "if x > 0.0:" in words
    code = {m.text: m.x for m in scene.marks if m.kind == "code"}
    letter = (code["return 2.0 * x"] - code["if x > 0.0:"]) / 4  # as in an editor: all letters are as wide
    assert code["if x > 0.0:"] - code["def signed(x):"] == pytest.approx(4 * letter)
    assert "monospace" in svg_of(scene)
    assert "trace of input 1: refused" in words
    assert "is refused at line 2, if x > 0.0: the value" in CaptureView(found).text_at(len(found.recording))


@pytest.mark.parametrize("call", [lambda: lab.compare_captures("f", 1.0), lambda: lab.compare_captures(signed)])
def test_bad_arguments_are_said_in_three_lines(call):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 3
