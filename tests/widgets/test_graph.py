"""GraphView: what stands on the picture at each stop of z = x * y + x, and how it behaves when there is too much."""

from __future__ import annotations

import math

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import lab
from lab.events import OpRecorded, fields_of
from tests.widgets.golden import FORWARD, leaf, op, product_plus_x, recorded, rule, stored, walk
from widgets.tape.tape import Tape
from widgets.views.graph.inspector import inspected
from widgets.views.graph.parts import MOST_TONE
from widgets.views.graph.view import GraphView


def at_stop(view: GraphView, k: int):
    return view.picture_at(int(view.stop_positions(view.recording)[k]))


def node(scene, name):
    return {n.id: n for n in scene.nodes}[name]


def edge(scene, name):
    return {e.id: e for e in scene.edges}[name]


def test_the_stops_are_operations_then_the_steps_of_the_walk():
    view = GraphView(product_plus_x())
    sentences = [view.sentence_at(int(p)) for p in view.stop_positions(view.recording)]
    assert sentences == [
        "v₁ = x * y = 6.0 was computed.",
        "v₂ = v₁ + x = 8.0 was computed.",
        "Backward starts at v₂: its gradient is 1.0.",
        "v₂ = v₁ + x sends 1.0 to v₁, 1.0 to x.",
        "v₁ = x * y sends 3.0 to x, 2.0 to y.",
        "y: gradient 2.0.",
        "x: gradient 4.0.",
    ]


def test_the_graph_grows_and_nothing_moves():
    view = GraphView(product_plus_x())
    first, last = at_stop(view, 0), at_stop(view, -1)
    assert {n.id for n in first.nodes} == {"1", "2", "3"}
    assert {n.id for n in last.nodes} == {"1", "2", "3", "4"}
    for n in first.nodes:
        assert node(last, n.id)[1:5] == n[1:5]
    assert first.extent == last.extent


def test_a_forward_stop_carries_the_operands_values_as_tokens():
    scene = at_stop(GraphView(product_plus_x()), 0)
    assert [(t.edge, t.backward) for t in scene.tokens] == [("3.0", False), ("3.1", False)]
    assert (edge(scene, "3.0").label, edge(scene, "3.1").label) == ("2.0", "3.0")
    assert node(scene, "3").state == "new"
    assert edge(scene, "3.0").state == "forward"


def test_a_backward_stop_carries_the_contributions_back():
    scene = at_stop(GraphView(product_plus_x()), 4)
    assert [(t.edge, t.backward) for t in scene.tokens] == [("3.0", True), ("3.1", True)]
    assert (edge(scene, "3.0").label, edge(scene, "3.1").label) == ("3.0", "2.0")
    assert node(scene, "3").state == "active"
    assert edge(scene, "4.0").state == "done"
    assert edge(scene, "4.0").label == "1.0"


def test_no_gradient_yet_is_not_gradient_zero():
    rec = recorded([*leaf(1, "x", 0.0), *op(2, "square", (1,), 0.0), *stored(1, 0.0)])
    view = GraphView(rec)
    assert node(view.picture_at(4), "1").gradient == ""
    assert "no gradient yet" in node(view.picture_at(4), "1").aria
    assert node(view.picture_at(len(rec)), "1").gradient == "grad 0.0"


def test_a_leaf_waits_while_more_gradient_is_to_come():
    view = GraphView(product_plus_x())
    assert node(at_stop(view, 3), "1").state == "waiting"
    assert node(at_stop(view, 3), "1").gradient == ""
    assert node(at_stop(view, -1), "1").gradient == "grad +4.0"
    assert node(at_stop(view, -1), "1").state == "active"


def test_the_sign_of_a_gradient_is_in_its_colour_and_in_its_text():
    rec = recorded(
        [*leaf(1, "x", 2.0), *leaf(2, "y", 2.0), *op(3, "subtract", (1, 2), 0.0), *stored(2, -1.0), *stored(1, 1.0)]
    )
    scene = GraphView(rec).picture_at(len(rec))
    assert scene.palette == "diverging"
    assert (node(scene, "1").tone, node(scene, "1").gradient) == (MOST_TONE, "grad +1.0")
    assert (node(scene, "2").tone, node(scene, "2").gradient) == (-MOST_TONE, "grad −1.0")


def test_a_colour_means_the_same_at_every_stop():
    view = GraphView(product_plus_x())
    assert node(at_stop(view, 2), "4").tone == node(at_stop(view, -1), "4").tone == MOST_TONE / 4


def test_the_main_line_of_a_chain_is_straight_and_constants_stand_aside():
    x = lab.tensor(3.0, requires_grad=True, name="x")
    with lab.record() as rec:
        y = 2 * x**2 + 1
        y.backward()
    scene = GraphView(rec).picture_at(len(rec))
    line = [n.y for n in scene.nodes if n.kind != "constant"]
    assert max(line) - min(line) < 0.5
    assert all(abs(n.y - line[0]) > 30 for n in scene.nodes if n.kind == "constant")


def test_an_operand_that_is_not_tracked_is_a_small_constant_with_its_text():
    rec = recorded(
        [*leaf(1, "x", 3.0), *op(2, "multiply", (-1, 1), 6.0, ("2.0", "")), *rule(2, "multiply", 1.0, {1: (1, 2.0)}, 2)]
    )
    scene = GraphView(rec).picture_at(len(rec))
    constant = node(scene, "c2.0")
    assert (constant.kind, constant.label) == ("constant", "2.0")
    assert constant.height < node(scene, "2").height
    assert node(scene, "2").label == "v₁ = 2.0 * x"
    assert edge(scene, "2.0").state == "none"
    assert edge(scene, "2.1").state == "backward"


def test_the_same_operand_twice_gives_two_arrows_apart():
    rec = recorded([*leaf(1, "x", 3.0), *op(2, "multiply", (1, 1), 9.0)])
    scene = GraphView(rec).picture_at(len(rec))
    assert edge(scene, "2.0").bends != edge(scene, "2.1").bends


def test_a_second_walk_replaces_gradients_and_marks_what_was_added():
    rec = product_plus_x(n_walks=2)
    view = GraphView(rec)
    second = len(rec) - len(walk()) + 1
    begun = view.picture_at(second)
    assert node(begun, "3").gradient == ""
    assert edge(begun, "4.0").label == ""
    assert node(begun, "1").gradient == "grad +4.0"
    assert node(view.picture_at(len(rec)), "1").gradient == "grad 4.0 + 4.0 = 8.0"
    assert "x = 2.0, gradient 4.0, added to the 4.0 stored before: 8.0" in view.text_at(len(rec))
    assert "added to the 4.0 stored before: 8.0" in inspected(view.state_at(len(rec)), "1", rec)


def test_a_gradient_added_to_one_of_which_nothing_is_known_says_so():
    rec = recorded([*leaf(1, "x", 2.0), *op(2, "square", (1,), 4.0), *stored(1, 4.0, accumulated=True)])
    view = GraphView(rec)
    assert node(view.picture_at(len(rec)), "1").gradient == "grad added: +4.0"
    assert "added to what was stored before" in view.text_at(len(rec))


def test_what_came_back_in_an_earlier_walk_is_not_part_of_the_sum():
    x = lab.tensor(3.0, requires_grad=True, name="x")
    with lab.record() as rec:
        (2 * x).backward()
        (x * x).backward()
    html = inspected(GraphView(rec).state_at(len(rec)), str(x.node.id), rec)
    assert "3.0 from v₂ + 3.0 from v₂" in html
    assert "2.0 from v₁" not in html


def test_the_golden_recording_is_what_the_engine_emits():
    x, y = lab.tensor(2.0, requires_grad=True, name="x"), lab.tensor(3.0, requires_grad=True, name="y")
    with lab.record(detail="value") as rec:
        z = x * y + x
        z.backward()
    ids = {x.node.id: 1, y.node.id: 2, z.node.parents[0].id: 3, z.node.id: 4, -1: -1}
    golden = product_plus_x()
    assert [type(e) for e in rec] == [type(e) for e in golden]
    for real, written in zip(rec, golden, strict=True):
        for name in {"node", "root", "source"} & set(fields_of(type(real))):
            assert ids[getattr(real, name)] == getattr(written, name)
        for name in {"op", "name", "role", "argument", "mean", "accumulated", "n_nodes"} & set(fields_of(type(real))):
            assert getattr(real, name) == getattr(written, name)
        for name in {"parents", "targets"} & set(fields_of(type(real))):
            assert tuple(ids[n] for n in getattr(real, name)) == getattr(written, name)


def test_nan_is_drawn_as_trouble_and_named():
    rec = recorded([*leaf(1, "x", -1.0), *op(2, "log", (1,), math.nan)])
    n = node(GraphView(rec).picture_at(len(rec)), "2")
    assert n.state == "trouble"
    assert "nan" in n.sublabel


def test_what_is_beyond_the_limit_is_counted_in_caption_and_text():
    events = leaf(0, "x", 1.0)
    for k in range(1, 2001):
        events += op(k, "exp", (k - 1,), 1.0)
    view = GraphView(recorded(events), limit=500)
    assert "1,501 more operations came after 500" in view.picture_at(len(view.recording)).caption
    assert "1,501 more operations" in view.text_at(len(view.recording))
    few = GraphView(recorded(events), limit=20)
    assert "he first 19 of 2,000 operations" in few.picture_at(len(few.recording)).caption


@pytest.mark.parametrize("limit", [2, 3, 500])
@pytest.mark.parametrize("n_walks", [0, 1, 3])
def test_folding_many_equals_folding_one_by_one(limit, n_walks):
    rec = product_plus_x(n_walks)
    view = GraphView(rec, limit=limit)
    one = view.start()
    for k, event in enumerate(rec, 1):
        one = view.fold(one, event)
        assert view.state_at(k) == one


def test_folding_never_changes_the_state_it_extends():
    rec = product_plus_x()
    view = GraphView(rec)
    states = [view.start()]
    for event in rec:
        states.append(view.fold(states[-1], event))
    again = [view.start()]
    for event in rec:
        again.append(view.fold(again[-1], event))
    assert states == again
    assert states[0] == Tape()


def test_every_picture_of_every_position_is_drawable():
    from widgets.pictures.tree import tree_of

    view = GraphView(product_plus_x(2))
    for position in range(len(view.recording) + 1):
        assert tree_of(view.picture_at(position))["type"] == "scene"
        assert view.text_at(position)


def test_a_recording_of_shapes_only_still_gives_a_graph():
    rec = recorded([e for e in FORWARD if type(e).__name__ != "ValueSeen"])
    view = GraphView(rec)
    scene = view.picture_at(len(rec))
    assert node(scene, "3").sublabel == "scalar float64"
    assert view.text_at(len(rec)).splitlines()[1] == "x, no gradient yet"


def test_a_walk_whose_nodes_were_not_recorded_draws_nothing_and_breaks_nothing():
    rec = recorded(walk())
    view = GraphView(rec)
    assert view.picture_at(len(rec)).nodes == ()
    assert len(view.stop_positions(rec)) == 5


def test_the_inspector_shows_formula_rule_and_line_with_their_numbers():
    rec = product_plus_x()
    html = inspected(GraphView(rec).state_at(len(rec)), "3", rec)
    assert "v₁ = x * y" in html
    assert "2.0 * 3.0 = 6.0" in html
    assert "ct * y" in html
    assert "1.0 * 3.0 = 3.0" in html
    assert "cell.py, line 3" in html


def test_the_inspector_names_a_cell_by_its_prompt_and_shows_its_line(tmp_path):
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}), ipython_dir=str(tmp_path))
    try:
        shell.compile.get_code_name = lambda raw, code, number: "/tmp/ipykernel_71/332220231.py"
        code = "import lab\nx = lab.tensor(2.0, requires_grad=True)\nwith lab.record() as rec:\n    y = x * x\n"
        shell.run_cell(code, store_history=True)
        rec, node = shell.user_ns["rec"], str(shell.user_ns["y"].node.id)
        html = inspected(GraphView(rec).state_at(len(rec)), node, rec)
        rec.save(tmp_path / "cell.rec")
    finally:
        InteractiveShell.clear_instance()
    assert "cell In [1], line 4" in html
    assert "y = x * x" in html
    elsewhere = lab.Recording.load(tmp_path / "cell.rec")
    html = inspected(GraphView(elsewhere).state_at(len(elsewhere)), node, elsewhere)
    assert "cell, line 4" in html
    assert "y = x * x" in html
    assert "332220231" not in html


def test_the_inspector_of_a_leaf_adds_up_what_came_back():
    rec = product_plus_x()
    html = inspected(GraphView(rec).state_at(len(rec)), "1", rec)
    assert "1.0 from v₂ + 3.0 from v₁" in html


def test_the_inspector_says_none_yet_before_the_walk():
    rec = recorded(FORWARD)
    html = inspected(GraphView(rec).state_at(len(rec)), "3", rec)
    assert "none yet" in html
    assert "not run yet" in html


def test_the_inspector_shows_small_arrays_whole_and_large_ones_by_statistics():
    small, large = np.arange(6.0).reshape(2, 3), np.arange(100.0)
    rec = recorded([*leaf(1, "a", small), *leaf(2, "b", large), *op(3, "sum", (2,), 4950.0)])
    state = GraphView(rec).state_at(len(rec))
    assert inspected(state, "1", rec).count("<td") == 6
    assert "0.0 to 99.0, mean 49.5" in inspected(state, "2", rec)


def test_the_inspector_says_that_a_broadcast_operand_gets_a_sum():
    b = lab.tensor(np.zeros(3), requires_grad=True, name="b")
    with lab.record(detail="value") as rec:
        out = np.ones((4, 3)) + b
        out.sum().backward()
    html = inspected(GraphView(rec).state_at(len(rec)), str(out.node.id), rec)
    assert "summed over the axes that were broadcast" in html
    assert "<td style='padding:0 6px;text-align:right'>4.0</td>" in html


def test_names_of_learners_are_escaped_and_clipped():
    name = "</script><b>" + "x" * 10_000
    rec = recorded([*leaf(1, name, 1.0), *op(2, "exp", (1,), 2.0)])
    view = GraphView(rec)
    assert len(node(view.picture_at(len(rec)), "1").label) <= 30
    assert "<b>" not in inspected(view.state_at(len(rec)), "1", rec).replace("<b>value", "").replace("<b>gradient", "")


def test_an_op_that_this_version_does_not_know_is_drawn_by_its_name():
    rec = recorded([*leaf(1, "x", 1.0), *op(2, "warp", (1,), 2.0)])
    view = GraphView(rec)
    assert node(view.picture_at(len(rec)), "2").label == "v₁ = warp(x)"
    assert "warp" in inspected(view.state_at(len(rec)), "2", rec)


def test_a_stop_belongs_to_each_operation_of_a_real_kind():
    rec = product_plus_x()
    assert len(GraphView(rec).stop_positions(rec)) >= len(rec.positions(OpRecorded))


def test_the_caption_says_what_colours_mean_once_there_are_any():
    view = GraphView(product_plus_x())
    assert "Orange" not in at_stop(view, 1).caption
    assert at_stop(view, 2).caption.endswith("Orange: a positive gradient; blue: a negative one.")


def test_the_norm_of_no_entries_is_0():
    x = lab.tensor(np.ones((0, 3)), requires_grad=True, name="x")
    with lab.record() as rec:
        (x * 2.0).sum().backward()
    scene = GraphView(rec).picture_at(len(rec))
    lines = [text for node in scene.nodes for text in (node.sublabel, node.gradient, node.aria)]
    assert any("0×3 norm 0.0" in text for text in lines), lines
    assert not [text for text in lines if "nan" in text]


def test_a_walk_that_stopped_says_why_and_what_runs_afterwards_is_no_part_of_it():
    x = lab.tensor(2.0, requires_grad=True, name="x")

    def refuse(g):
        raise ValueError("mine")

    with lab.record() as rec:
        y = x * 3.0
        y.register_hook(refuse)
        with pytest.raises(ValueError, match="mine"):
            y.backward()
        stopped = len(rec)
        lab.exp(x)
    view = GraphView(rec)
    assert view.sentence_at(stopped) == "Backward from v₁ stopped, no gradient was stored: ValueError: mine."
    assert "stopped before any tensor of yours got a gradient" in view.picture_at(stopped).caption
    assert not [n for n in view.picture_at(len(rec)).nodes if n.kind == "frame"], "exp is the learner's, not backward's"
