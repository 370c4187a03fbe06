"""The graph of a gradient: what a walk computed stands in a frame of its own, and the next walk goes over it."""

from __future__ import annotations

import pytest

import lab
from tests.widgets.golden import product_plus_x
from widgets import GraphView
from widgets.pictures.theme import short


def cubed(x0=2.0, walks=2):
    """x cubed, its first derivative as a graph, and so on."""
    x = lab.tensor(x0, requires_grad=True, name="x")
    with lab.record(detail="value") as rec:
        y = x * x * x
        for k in range(walks):
            y, x.grad = (x.grad, None) if k else (y, None)
            y.backward(create_graph=k < walks - 1)
    return rec


def drawn(view, position=None):
    scene = view.picture_at(len(view.recording) if position is None else position)
    return scene, {n.id: n for n in scene.nodes}


def frames(scene):
    return [n for n in scene.nodes if n.kind == "frame"]


def inside(node, frame):
    return abs(node.x - frame.x) <= (frame.width - node.width) / 2 and (
        abs(node.y - frame.y) <= (frame.height - node.height) / 2
    )


@pytest.mark.parametrize("direction", ["right", "down"])
def test_what_the_first_walk_computed_is_framed_and_nothing_else(direction):
    rec = cubed()
    scene, nodes = drawn(GraphView(rec, direction=direction))
    (frame,) = frames(scene)
    assert frame.label == "backward of v₂"
    entries = GraphView(rec).state_at(len(rec)).entries
    assert [e.op for e in entries.values() if e.within >= 0] == ["multiply"] * 4 + ["add"] * 2
    for entry in entries.values():
        assert inside(nodes[str(entry.node)], frame) == (entry.within >= 0)
    boxes = [n for n in scene.nodes if n.kind != "frame"]
    for k, a in enumerate(boxes):
        for b in boxes[k + 1 :]:
            assert abs(a.x - b.x) >= (a.width + b.width) / 2 or abs(a.y - b.y) >= (a.height + b.height) / 2
    assert all(n.x - n.width / 2 >= -0.5 and n.x + n.width / 2 <= scene.extent[0] + 0.5 for n in scene.nodes)
    assert all(n.y - n.height / 2 >= -0.5 and n.y + n.height / 2 <= scene.extent[1] + 0.5 for n in scene.nodes)


def test_the_second_walk_leaves_the_second_derivative_and_the_result_of_the_first_is_the_first():
    scene, _ = drawn(GraphView(cubed(2.0)))
    byname = {n.label: n for n in scene.nodes if n.kind in ("op", "output") or (n.label == "x" and n.sublabel)}
    assert byname["x"].gradient == f"grad +{short(6 * 2.0)}"
    assert byname["v₈ = v₇ + v₆"].sublabel == short(3 * 2.0**2)
    over = {e.target for e in scene.edges if e.state == "done"}
    assert {n.id for n in scene.nodes if n.label.startswith(("v₃ =", "v₄ =", "v₅ =", "v₆ =", "v₇ =", "v₈ ="))} <= over


def test_what_comes_from_another_part_is_there_by_name_and_carries_its_contribution():
    scene, nodes = drawn(GraphView(cubed()))
    arrows = {e.target: [] for e in scene.edges}
    for e in scene.edges:
        arrows[e.target].append((nodes[e.source].label, nodes[e.source].kind, e.label))
    byname = {n.label: n.id for n in scene.nodes}
    assert arrows[byname["v₃ = 1 * x"]] == [("1", "constant", ""), ("x", "leaf", "4.0")]
    assert arrows[byname["v₄ = 1 * v₁"]] == [("1", "constant", ""), ("v₁", "leaf", "1.0")]
    (frame,) = frames(scene)
    sides = [(inside(nodes[e.source], frame), inside(nodes[e.target], frame)) for e in scene.edges]
    assert all(a == b for a, b in sides)


def test_three_walks_make_two_frames_and_the_second_is_over_the_first():
    scene, _ = drawn(GraphView(cubed(walks=3), most=200))
    first, second = frames(scene)
    assert first.label == "backward of v₂"
    assert first.y + first.height / 2 < second.y - second.height / 2


def test_a_frame_comes_with_its_first_operation_and_nothing_jumps():
    view = GraphView(cubed())
    _, last = drawn(view)
    seen = []
    for p in map(int, view.stop_positions(view.recording)):
        scene, _ = drawn(view, p)
        seen.append(len(frames(scene)))
        assert all((n.x, n.y) == (last[n.id].x, last[n.id].y) for n in scene.nodes)
    assert seen == sorted(seen)
    assert seen[:3] == [0, 0, 0]


def test_words_say_in_which_backward_an_operation_ran():
    rec = cubed()
    lines = GraphView(rec).text_at(len(rec)).splitlines()
    assert "v₁ = x * x = 4.0, gradient 1.0" in lines
    assert "v₃ = 1 * x = 2.0 (in the backward of v₂), gradient 4.0" in lines
    assert "is a graph as well" in GraphView(rec).picture_at(len(rec)).caption


def test_by_module_it_is_a_group_that_opens():
    rec = cubed()
    view = GraphView(rec, most=0)
    scene, _ = drawn(view)
    (group,) = [n for n in scene.nodes if n.kind == "group"]
    assert group.label.startswith("backward")
    assert group.sublabel.startswith("6 ops")
    view.fold_box(group.id)
    scene, _ = drawn(view)
    assert [n.label for n in frames(scene)] == [group.label]


def test_nested_transforms_have_it_too_and_an_ordinary_walk_has_none():
    with lab.record(detail="value") as rec:
        lab.grad(lab.grad(lambda x: x * x * x))(2.0)
    scene, _ = drawn(GraphView(rec))
    assert len(frames(scene)) == 1
    scene, _ = drawn(GraphView(product_plus_x(3)))
    assert not frames(scene)
