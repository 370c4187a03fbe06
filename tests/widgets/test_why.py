"""Why this gradient, in pictures: paths as a scene, entries as a heat map, the sum in words, what cannot be said."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, GradientError, ViewError
from lab.events import Recording
from lab.nn import mlp
from tests.widgets.golden import product_plus_x
from widgets.asking.grid import grid
from widgets.asking.words import account, page, product_words, sum_words
from widgets.live import pacer
from widgets.pictures.theme import MINUS, short
from widgets.views.graph.view import GraphView
from widgets.views.why.view import WhyView


def network():
    rng = np.random.default_rng(0)
    w1 = lab.tensor(rng.normal(size=(3, 4)), requires_grad=True, name="w1")
    w2 = lab.tensor(rng.normal(size=(4, 2)), requires_grad=True, name="w2")
    with lab.record() as rec:
        lab.cross_entropy(lab.tanh(rng.normal(size=(6, 3)) @ w1) @ w2, np.array([0, 1, 1, 0, 1, 0])).backward()
    return w1, w2, rec


def numbers(text):
    """The summands and the sum of "0.31 + 0.12 − rest 0.02 = 0.41"."""
    left, right = text.replace(MINUS, "-").split(" = ")
    signed = re.sub(r" ([+-]) (?:[a-z ]+ )?", r" \1", left).split(" ")
    return [float(value) for value in signed], float(right)


@pytest.mark.parametrize("index", list(np.ndindex(3, 4)))
def test_the_sum_that_is_shown_adds_up_as_one_would_add_it(index):
    w1, _, rec = network()
    parts, total = numbers(sum_words(lab.why(w1, index, recording=rec)))
    assert len(parts) == 6
    assert sum(parts) == pytest.approx(total, abs=4e-3 * max(map(abs, parts)))
    assert total == pytest.approx(float(w1.grad.numpy()[index]), rel=2e-2, abs=1e-3 * max(map(abs, parts)))


def test_each_path_is_written_with_factors_that_multiply_to_its_share():
    w1, _, rec = network()
    for path in lab.why(w1, recording=rec).paths:
        share, factors = product_words(path).replace(MINUS, "-").split(" = ")
        assert np.prod([float(f) for f in factors.split(" · ")]) == pytest.approx(float(share), rel=4e-3)


def test_an_arrow_is_as_wide_as_what_goes_along_it_and_says_the_local_derivative():
    w1, _, rec = network()
    view = WhyView(rec, w1, (0, 1))
    scene = view.picture_at(len(rec))
    why = lab.why(w1, (0, 1), recording=rec)
    assert view.question.answer == why
    into = [e for e in scene.edges if e.target == f"{why.paths[0].places[-1].node}:"]
    assert len(into) == len({p.places[-2] for p in why.paths})
    shares = {f"{p.places[-2].node}:{','.join(map(str, p.places[-2].entry))}": 0.0 for p in why.paths}
    for p in why.paths:
        shares[f"{p.places[-2].node}:{','.join(map(str, p.places[-2].entry))}"] += p.share
    order = sorted(into, key=lambda e: e.width)
    assert [e.source for e in order] == sorted(shares, key=lambda name: abs(shares[name]))
    labels = {e.label for e in scene.edges}
    assert f"× {why.paths[0].factors[0]:.4g}".replace("-", MINUS) in labels
    rest = next(n for n in scene.nodes if n.label == "other paths")
    assert float(rest.sublabel.replace(MINUS, "-")) == pytest.approx(why.rest, rel=1e-2)
    assert sum_words(why) in scene.caption


def test_a_chosen_path_lights_up_and_nothing_else_does():
    w1, _, rec = network()
    view = WhyView(rec, w1)
    assert view.widget is not None
    assert view.picture_at(len(rec)).lit == frozenset()
    view._panel.paths.value = 1
    scene = view.picture_at(len(rec))
    path = view.question.answer.paths[1]
    assert len(scene.lit) == 2 * len(path.places) - 1
    assert scene.lit <= {n.id for n in scene.nodes} | {e.id for e in scene.edges}
    assert "tanh" in view._panel.words.value
    view._panel.paths.value = -1
    assert view.picture_at(len(rec)).lit == frozenset()
    view.dispose()


def test_the_same_operand_twice_is_two_arrows():
    x = lab.tensor(3.0, requires_grad=True, name="x")
    with lab.record() as rec:
        (x * x).backward()
    scene = WhyView(rec, x).picture_at(len(rec))
    assert [(e.label, e.source == scene.nodes[0].id) for e in scene.edges] == [("× 3.0", True), ("× 3.0", True)]


def test_a_long_path_is_drawn_with_its_middle_left_out_and_the_factors_still_multiply():
    x = lab.tensor(1.0, requires_grad=True, name="x")
    with lab.record() as rec:
        y = x
        for k in range(200):
            y = y * (1.0 + 0.01 * (k % 3))
        y.backward()
    view = WhyView(rec, x)
    scene = view.picture_at(len(rec))
    assert len(scene.nodes) == 19
    factors = [float(e.label.removeprefix("× ").replace(MINUS, "-")) for e in scene.edges]
    assert np.prod(factors) == pytest.approx(float(x.grad), rel=1e-2)
    assert any(n.sublabel == "steps left out" for n in scene.nodes)
    assert "more" in view.text_at(len(rec))


def deep():
    model = mlp(16, *[8] * 6, 4, rng=0)
    inputs, labels = np.random.default_rng(0).normal(size=(8, 16)), np.arange(8) % 4
    with lab.record() as rec:
        lab.cross_entropy(model(inputs), labels).backward()
    return rec


def test_a_gradient_that_is_spread_over_many_paths_says_so_and_is_drawn_layer_by_layer():
    rec = deep()
    view = WhyView(rec, "0.weight")
    told = lab.why("0.weight", recording=rec)
    scene, text = view.picture_at(len(rec)), view.text_at(len(rec))
    part = 100 * sum(p.share for p in told.paths) / told.gradient
    words = f"{told.n_all:,} paths; the top 5 carry {short(float(f'{part:.2g}'))} % of the gradient"
    assert words in text
    assert scene.caption.startswith(words)
    frames = [node for node in scene.nodes if node.kind == "frame"]
    assert [frame.label for frame in frames] == [layer.name for layer in told.layers]
    for frame in frames:
        boxes = [n for n in scene.nodes if n.id.startswith(f"{frame.id}.")]
        total = sum(float(box.sublabel.replace(MINUS, "-")) for box in boxes)
        assert total == pytest.approx(told.gradient, abs=0.51e-4 * len(boxes)), "the numbers that are shown add up"
        assert all(abs(box.y - frame.y) + box.height / 2 <= frame.height / 2 for box in boxes)
    assert view.widget is not None
    view.question.chosen = 0
    assert {"leaf", "output", "group"} <= {n.kind for n in view.picture_at(len(rec)).nodes}, "a path is drawn as before"
    assert view.picture_at(len(rec)).lit
    view.dispose()


def test_the_lines_of_paths_have_room_in_their_list_and_the_words_below_have_all_of_it():
    rec = deep()
    view = WhyView(rec, "0.weight")
    assert view.widget is not None
    lines = [label for label, _ in view._panel.paths.options]
    assert max(map(len, lines)) <= 38
    assert all("…" in line for line in lines[1:])
    assert view._panel.words.value.count("<li>") == len(lab.why("0.weight", recording=rec).layers)
    view.dispose()


def test_hooks_walks_and_what_was_before_are_said_in_the_picture():
    x = lab.tensor([1.0, 2.0], requires_grad=True, name="x")
    with lab.record() as rec:
        y = x * 3.0
        y.register_hook(lambda g: g * 10)
        y.sum().backward()
        (x * 2.0).sum().backward()
    view = WhyView(rec, x, 0)
    assert "hook 27" in view.picture_at(len(rec)).caption
    text = view.text_at(len(rec))
    assert "a hook changed what had come back" in text
    assert "the sum of 2 walks" in text
    assert any("hook" in n.label for n in view.picture_at(len(rec)).nodes)


def test_it_follows_a_recording_and_says_what_there_is_not_yet():
    w = lab.tensor([1.0, 2.0], requires_grad=True, name="w")
    with lab.record() as rec:
        view = WhyView(rec, "w", 1)
        assert view.text_at(len(rec)).startswith("No gradient yet")
        (w * w).sum().backward()
        assert "= 4" in view.text_at(len(rec))
        w.zero_grad()
        assert "cleared since" in view.text_at(len(rec))
    assert [view.sentence_at(int(p))[:24] for p in view.stop_positions(rec)] == [
        "Gradient of w[1]: 2 + 2 ", "Its gradient was cleared",
    ]  # fmt: skip


def test_wrong_questions_are_told_in_the_picture_and_at_once_where_that_is_possible():
    w1, _, rec = network()
    with pytest.raises(ViewError, match="no such entry"):
        WhyView(rec, w1, (9, 9))
    assert "no tensor of that name" in WhyView(rec, "nobody").picture_at(len(rec)).caption
    with pytest.raises(GradientError, match="this tensor has no gradient"):
        WhyView(rec, lab.tensor(1.0))
    with lab.record(detail="shape") as bare:
        (w1 * w1).sum().backward()
    words = WhyView(bare, w1).picture_at(len(bare)).caption
    assert words.startswith("The recording holds no values: ")
    assert ". Hint: with lab.record(" in words


def test_without_a_tensor_the_first_that_has_a_gradient_is_explained():
    w1, _, rec = network()
    assert WhyView(rec).text_at(len(rec)) == WhyView(rec, w1).text_at(len(rec))
    assert WhyView(Recording()).text_at(0).startswith("No gradient yet")


def test_a_file_of_a_run_is_explained_by_name(tmp_path):
    w1, _, rec = network()
    rec.save(tmp_path / "run.lab")
    loaded = Recording.load(tmp_path / "run.lab")
    again, first = (v.picture_at(len(rec)) for v in (WhyView(loaded, "w1", (1, 2)), WhyView(rec, w1, (1, 2))))
    assert (again.nodes, again.edges, again.caption) == (first.nodes, first.edges, first.caption)
    with pytest.raises(ArgumentError, match="is not in a recording from a file"):
        WhyView(loaded, w1)
    page = WhyView(loaded, "w1").export(tmp_path / "why.html").read_text("utf-8")
    assert "matmul[" in page


# --- entries -----------------------------------------------------------------------------------------------------


def test_every_entry_of_a_small_gradient_is_a_box_with_its_number():
    gradient = np.array([[0.5, -1.0, np.nan], [0.0, 0.25, 1e-7]])
    scene = grid(gradient, (1, 1), "w")
    assert [n.id for n in scene.nodes] == ["0,0", "0,1", "0,2", "1,0", "1,1", "1,2"]
    assert scene.selected == "1,1"
    assert [n.sublabel for n in scene.nodes] == ["0.5", f"{MINUS}1.0", "nan", "0.0", "0.25", f"1e{MINUS}7"]
    assert [n.state for n in scene.nodes][2] == "trouble"
    assert scene.nodes[1].tone == -0.75
    assert scene.nodes[1].aria == f"entry 0, 1: gradient {MINUS}1.0"


def test_of_a_large_one_the_window_around_the_entry_is_shown():
    gradient = np.arange(2 * 20 * 30.0).reshape(2, 20, 30)
    scene = grid(gradient, (1, 17, 9), "w")
    assert scene.nodes[0].id == "1,16,8"
    assert len(scene.nodes) == 4 * 8
    assert "a part of 2×20×30" in scene.caption
    assert grid(np.array(2.0), (), "w").nodes[0].aria == "the only entry: gradient 2.0"


# --- beside the graph --------------------------------------------------------------------------------------------


def test_the_inspector_asks_about_the_selected_node_and_lights_the_path_in_the_graph():
    w1, _, rec = network()
    view = GraphView(rec)
    assert view.widget is not None
    panel = view._why
    assert panel.widget.layout.display == "none"
    view.select(str(w1.node.id))
    assert panel.widget.layout.display == ""
    panel.grid._received(None, {"select": "#2,3"}, [])
    plain = lab.why(w1, (2, 3), recording=rec)
    assert [path.share for path in view.question.answer.paths] == [path.share for path in plain.paths]
    assert replace(view.question.answer, paths=plain.paths) == plain
    panel.paths.value = 0
    path = view.question.path
    lit = view.picture_at(view.position).lit
    assert {str(p.node) for p in path.places} <= lit
    assert len(lit) == 2 * len(path.places) - 1
    view.select("")
    assert view.picture_at(view.position).lit == frozenset()
    assert panel.widget.layout.display == "none"
    view.dispose()


def test_the_inspector_calls_nodes_as_the_graph_does():
    _, _, rec = network()
    view = GraphView(rec)
    assert view.widget is not None
    nodes = view.picture_at(len(rec)).nodes
    second = next(n for n in nodes if n.label.startswith("v₂ = "))
    view.select(second.id)
    assert view.question.answer.entry.startswith("v₂[")
    assert view._why.grid._wanted["caption"].startswith("Gradient of v₂")
    view._why.paths.value = 0
    assert "<td" in view._why.words.value
    assert "v₃ " in view._why.words.value
    assert "(node" not in view._why.words.value
    view.dispose()


def test_in_a_graph_of_groups_the_boxes_that_the_path_runs_through_light_up():
    model = lab.nn.Sequential(*(lab.nn.Linear(3, 3, rng=k) for k in range(6)), lab.nn.Tanh())
    with lab.record() as rec:
        (model(np.ones((2, 3), np.float32)) ** 2).mean().backward()
    view = GraphView(rec, most=5)
    assert view.widget is not None
    view.select(str(model.parameters()[0].node.id))
    assert view.picture_at(view.position).lit == frozenset()
    view._why.paths.value = 0
    scene = view.picture_at(view.position)
    boxes = {n.id for n in scene.nodes}
    assert len(scene.lit & boxes) > 2
    assert len(scene.lit & {e.id for e in scene.edges}) > 1
    assert scene.lit <= boxes | {e.id for e in scene.edges}
    view.dispose()


def test_while_a_run_goes_on_an_answer_of_before_is_taken_away_and_given_again_at_its_end():
    x = lab.tensor([1.0, 2.0], requires_grad=True, name="x")
    with lab.record() as rec:
        (x * x).sum().backward()
        view = GraphView(rec)
        assert view.widget is not None
        pacer.forget(view._tick)
        view.select(str(x.node.id))
        assert view.question.answer.gradient == 4
        (x * 3.0).sum().backward()
        view._tick()
        assert view.question.answer is None
        assert "The run went on" in view._why.words.value
        x.zero_grad()
        (x * 5.0).sum().backward()
    view._tick()
    assert view.question.answer.gradient == 5
    view.dispose()


def test_a_live_picture_rests_twenty_times_as_long_as_a_search_took_and_is_right_at_the_end():
    w = lab.tensor([1.0, 2.0], requires_grad=True, name="w")
    with lab.record() as rec:
        view = WhyView(rec, "w", 1)
        assert view.widget is not None
        pacer.forget(view._tick)  # the test ticks
        (w * w).sum().backward()
        view._rests_until = 0.0
        view._tick()
        assert view.question.answer.gradient == 4
        view._rests_until = float("inf")
        (w * 3.0).sum().backward()
        view._tick()
        assert view.question.answer.gradient == 4
    view._tick()
    assert view.question.answer.gradient == 7
    view.dispose()


def test_an_entry_that_is_not_there_is_refused_and_the_one_before_stays():
    w1, _, rec = network()
    view = WhyView(rec, w1, (0, 1))
    assert view.widget is not None
    for typed, said in (("7, 7", "no such entry"), ("a", "An entry is a whole number"), ("1", "no such entry")):
        view._panel.entry.value = typed
        assert said in view._panel.words.value
        assert view.question.answer.index == (0, 1)
        assert view._panel.entry.value == "0, 1"
    view._panel.entry.value = "[2, 0]"
    assert view.question.answer.index == (2, 0)
    assert "no such" not in view._panel.words.value
    view.dispose()


def test_the_inspector_asks_as_of_the_moment_that_is_shown():
    rec = product_plus_x(2)
    view = GraphView(rec)
    assert view.widget is not None
    view.select("1")
    assert view.question.answer.notes
    ends = [int(p) for p in view.stop_positions(rec)]
    view.show(ends[len(ends) // 2])
    assert view.question.answer is None or not view.question.answer.notes
    view.dispose()


def test_names_and_code_of_a_stranger_are_text():
    x = lab.tensor([1.0, 2.0], requires_grad=True, name="<img src=x onerror=alert(1)>")
    with lab.record() as rec:
        (x * x).sum().backward()
    why = lab.why(x, recording=rec)
    html = page(why, 0, lambda _file, _line: "<script>")
    assert "<img" not in html
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "<img" in account(why)  # plain text is left as it is


def test_closing_a_view_closes_its_panel():
    from ipywidgets.widgets.widget import _instances

    w1, _, rec = network()
    WhyView(rec, w1).widget  # noqa: B018 - the library comes with the first
    before = len(_instances)
    view = WhyView(rec, w1)
    assert view.widget is not None
    assert len(_instances) > before
    view.dispose()
    assert len(_instances) == before


@pytest.mark.parametrize("index", ["x", (9, 9), (0,), 1.5, (0, "y"), True])
def test_an_entry_that_cannot_be_is_refused_when_the_view_is_made(index):
    w = lab.tensor(np.ones((2, 3)), requires_grad=True, name="w")
    with lab.record(detail="value") as rec:
        (w * w).sum().backward()
    with pytest.raises(ViewError) as caught:
        WhyView(rec, "w", index)
    assert len(str(caught.value).splitlines()) == 3
    assert WhyView(rec, "w", (-1, np.int64(2))).answer(WhyView(rec, "w").state_at(len(rec))).index == (1, 2)


def test_an_entry_that_the_gradient_turns_out_not_to_have_is_told_not_raised():
    w = lab.tensor(np.ones((2, 3)), requires_grad=True, name="w")
    with lab.record(detail="value") as rec:
        view = WhyView(rec, "w", (9, 9))
        assert view.widget is not None
        (w * w).sum().backward()
    view.show(len(rec))
    assert view._panel.entry.value == "0, 0"
    assert "no such entry" in view.text_at(len(rec))
    view.dispose()
