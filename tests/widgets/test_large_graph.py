"""GraphView of graphs that nobody reads whole: nothing is lost when groups close, and nothing jumps when they grow."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lab
from lab import nn
from lab.errors import ViewError
from lab.events import OpRecorded
from lab.nn import Transformer, TransformerBlock, cross_entropy, mlp
from tests.widgets.golden import leaf, recorded
from widgets.fold import Stretch
from widgets.pictures.geometry import edge_shape
from widgets.pictures.measure import text_width
from widgets.pictures.scene import Node
from widgets.pictures.theme import short
from widgets.pictures.tree import tree_of
from widgets.views.graph.group import Group
from widgets.views.graph.view import GraphView


def transformer(n_blocks: int = 3, n_passes: int = 1, backward: bool = True):
    model = Transformer(27, 8, n_blocks=n_blocks, n_heads=2, n_places=8, rng=0)
    tokens = np.random.default_rng(0).integers(0, 27, (2, 4))
    with lab.record(detail="statistics") as rec:
        for _ in range(n_passes):
            loss = cross_entropy(model(tokens), tokens)
            if backward:
                loss.backward()
                model.zero_grad()
    return rec


def loop(n: int = 40):
    rng = np.random.default_rng(0)
    w = lab.tensor(rng.normal(size=(4, 4)) * 0.3, requires_grad=True, name="W")
    u = lab.tensor(rng.normal(size=(3, 4)), requires_grad=True, name="U")
    with lab.record(detail="statistics") as rec:
        h = np.zeros((2, 4))
        for _ in range(n):
            h = np.tanh(rng.normal(size=(2, 3)) @ u + h @ w)
        (h * h).sum().backward()
    return rec


TRANSFORMER, LOOP = transformer(), loop()


def end(view):
    return view.picture_at(len(view.recording))


def labels(scene):
    return [n.label for n in scene.nodes]


def box(scene, label):
    return next(n for n in scene.nodes if n.label == label)


def opened(view, *names):
    """Open groups by name, one after the other."""
    for name in names:
        view.fold_box(box(end(view), name).id)
    return end(view)


def nothing_is_lost(view):
    """Every node of the pass is seen in a box that is drawn, and the edges are the full ones between those boxes."""
    scene, large = end(view), view.large
    board, state = large._board, view.state_at(len(view.recording))
    there = {n.id for n in scene.nodes}
    wanted: Counter[tuple[str, str]] = Counter()
    for node in board.root.nodes:
        assert board.seen[node] in there
        for i, p in enumerate(state.entries[node].parents):
            if p in state.entries:
                assert board.seen[p] in there
                ends = board.seen[p], board.seen[node]
            else:
                ends = f"c{node}.{i}", board.seen[node]
            if ends[0] != ends[1] and ends[0] in there:
                wanted[ends] += 1
            elif ends[0] not in there:
                assert ends[1] != str(node)  # a constant is drawn beside its operation wherever that is drawn
    assert {(e.source, e.target) for e in scene.edges} == wanted.keys()
    assert {key: len(link.pairs) for key, link in board.links.items()} == wanted
    tree_of(scene)


def nothing_overlaps(scene):
    """Boxes of one frame stand apart, and each stands in its frame."""
    solid = [n for n in scene.nodes if n.kind != "frame"]
    for k, a in enumerate(solid):
        for b in solid[k + 1 :]:
            apart = abs(a.x - b.x) >= (a.width + b.width) / 2 or abs(a.y - b.y) >= (a.height + b.height) / 2
            assert apart, (a, b)
    for n in scene.nodes:
        assert n.x - n.width / 2 >= 0
        assert n.y - n.height / 2 >= 0
        assert n.x + n.width / 2 <= scene.extent[0]
        assert n.y + n.height / 2 <= scene.extent[1]


# --- what one sees first ---


def test_a_transformer_opens_by_module_with_its_blocks_as_one():
    view = GraphView(TRANSFORMER)
    assert [n.label for n in end(view).nodes if n.kind == "group"] == [
        "token", "place", "blocks × 3", "layer_norm", "head",
    ]  # fmt: skip
    blocks = box(end(view), "blocks × 3")
    assert (blocks.sublabel, blocks.fold, blocks.kind) == ("93 ops, 2×4×8", "closed", "group")
    assert blocks.gradient.startswith("grad norm ")
    assert "93 operations, gives 2×4×8, gradient norm" in blocks.aria
    nothing_is_lost(view)


def test_open_groups_are_called_by_their_names_and_need_no_legend():
    view = GraphView(TRANSFORMER)
    view.open_all()
    marks = dict(end(view).legend)
    assert "frame" not in marks
    assert marks["done"] == "gradient complete"
    assert "gradient complete" not in dict(view.picture_at(40).legend).values()


def test_a_transformer_block_reads_as_one():
    model = TransformerBlock(8, 2, rng=0)
    x = lab.tensor(np.random.default_rng(0).normal(size=(2, 5, 8)), requires_grad=True, name="x")
    with lab.record(detail="statistics") as rec:
        model(x)
    scene = end(GraphView(rec, most=20))
    line = sorted((n for n in scene.nodes), key=lambda n: n.x)
    assert [n.label.partition("= ")[2] or n.label for n in line] == [
        "x", "layer_norm_1", "attention", "x + v₂₃", "layer_norm_2", "mlp", "v₂₄ + v₃₀",
    ]  # fmt: skip
    assert len({n.y for n in line}) == 1
    names = {n.id: n.label.partition(" =")[0] for n in line}
    arrows = {(names[e.source], names[e.target]): e for e in scene.edges}
    assert arrows.keys() == {
        ("x", "layer_norm_1"), ("layer_norm_1", "attention"), ("attention", "v₂₄"), ("x", "v₂₄"),
        ("v₂₄", "layer_norm_2"), ("layer_norm_2", "mlp"), ("mlp", "v₃₁"), ("v₂₄", "v₃₁"),
    }  # fmt: skip
    for ends in ("x", "v₂₄"), ("v₂₄", "v₃₁"):  # past the boxes between, under them
        assert all(y > line[0].y + 33 for _, y in arrows[ends].bends)


def test_edges_between_groups_are_merged_and_counted():
    scene = end(GraphView(TRANSFORMER))
    merged = next(e for e in scene.edges if e.target == box(scene, "blocks × 3").id)
    assert merged.label == "×2"
    assert merged.width > 1.5


def test_a_loop_without_modules_is_one_group_of_its_turns():
    view = GraphView(LOOP)
    assert labels(end(view))[0] == "2 matmul, a… × 40"
    nothing_is_lost(view)
    scene = opened(view, labels(end(view))[0])
    assert [n.label for n in scene.nodes if n.label.startswith("copy")] == [f"copy {k}" for k in range(1, 41)]
    assert {"U", "W"} <= {n.label for n in scene.nodes if n.kind == "leaf"}
    nothing_is_lost(view)
    nothing_overlaps(scene)


def test_a_long_graph_without_modules_or_repetitions_is_shown_in_stretches():
    rng = np.random.default_rng(0)
    names = ["exp", "sin", "tanh", "square", "negative"]
    events = leaf(0, "x", 1.0)
    for k in range(1, 301):
        events.append(OpRecorded(k, names[rng.integers(5)], (k - 1,), (int(rng.integers(1, 99)),), "float64", 0))
    view = GraphView(recorded(events))
    assert labels(end(view))[1] == "ops 1 to 40"
    assert len(end(view).nodes) < 12
    opened(view, "ops 41 to 80")
    nothing_is_lost(view)


def test_a_small_graph_has_no_groups_and_a_reader_can_ask_for_them():
    view = GraphView(loop(3))
    assert not any(n.fold for n in end(view).nodes)
    assert any(n.fold for n in end(GraphView(TRANSFORMER, most=0)).nodes)


def net(n_walks: int = 1):
    """Two hidden layers; every activation is a module of one operation."""
    model = mlp(4, 3, 5, 2, rng=0)
    with lab.record(detail="value") as rec:
        for _ in range(n_walks):
            model(np.ones((6, 4))).sum().backward()
    return rec


def test_a_repeated_pair_of_modules_of_one_list_is_named_once():
    model = mlp(4, *[4] * 6, rng=0)
    with lab.record(detail="statistics") as rec:
        model(np.ones((2, 4))).sum().backward()
    assert labels(end(GraphView(rec, most=10)))[0] == "2 layers × 5"


def test_a_group_of_one_operation_is_drawn_and_told_as_that_operation():
    view = GraphView(net(), most=5)
    scene = end(view)
    relus = [n for n in scene.nodes if "relu" in n.label]
    assert [(n.label, n.kind, n.fold) for n in relus] == [("v₃ = relu(v₂)", "op", ""), ("v₆ = relu(v₅)", "op", "")]
    assert [n.label for n in scene.nodes if n.kind == "group"] == ["layer 0", "layer 2", "layer 4"]
    nothing_is_lost(view)
    assert view.widget is not None
    view.select(relus[0].id)
    assert "relu" in view._panel.value
    assert "came back" in view._panel.value, "what is told of an operation, not of a group"
    assert end(view).selected == relus[0].id
    view.pin(view.selected)
    assert sum("v₃ = relu" in n.label for n in end(view).nodes) == 1, "not beside itself"
    view.dispose()


def test_a_group_of_one_operation_with_a_tensor_of_its_own_stays_a_group():
    model = nn.Sequential(nn.Linear(3, 3, bias=False, rng=0), nn.Tanh())
    with lab.record(detail="value") as rec:
        model(np.ones((2, 3))).sum().backward()
    assert next((n.kind, n.label) for n in end(GraphView(rec, most=1)).nodes) == ("group", "layer 0")


def test_a_formula_without_room_keeps_its_operation_and_is_whole_for_a_reader_who_asks():
    model = nn.Sequential(nn.Linear(64, 16, rng=0), nn.Tanh())
    with lab.record(detail="value") as rec:
        model(np.ones((8, 64))).sum().backward()
    view = GraphView(rec, most=1)
    view.open_all()
    matmul = next(n for n in end(view).nodes if n.aria.startswith("v₁ ="))
    assert matmul.label == "v₁ = da…4 @ we…ht"
    assert matmul.aria.startswith("v₁ = data 8×64 @ weight, 8×16 norm")


def test_a_gradient_that_several_passes_added_to_says_so_beside_the_values_of_one():
    view = GraphView(net(3), most=5)
    view.open_all()
    view.show_pass(0)
    scene = end(view)
    bias = box(scene, "bias")
    entry = view.state_at(len(view.recording)).entries[int(bias.id)]
    norm = short(float(np.linalg.norm(np.add(entry.before, entry.gradient.value))))
    assert (entry.n_summed, bias.gradient) == (3, f"grad sum: norm {norm}")
    assert "added to what was stored before (sum over 3 backward walks)" in bias.aria
    assert "sums over 3 backward walks, not over this pass alone" in scene.caption
    assert "sum over" not in GraphView(net(), most=5).text_at(len(net()))


def test_what_is_not_alike_is_not_called_repeated():
    events = leaf(0, "x", 1.0)
    for k in range(1, 91):
        name = "exp" if k != 50 else "sin"
        events.append(OpRecorded(k, name, (k - 1,), (), "float64", 0, module=f"layers.{(k - 1) // 3}"))
    view = GraphView(recorded(events), most=10)
    assert [n.label for n in end(view).nodes if n.fold] == ["layers", "layers × 16", "layers.16", "layers × 13"]
    nothing_is_lost(view)


# --- opening and closing ---


def test_opening_shows_a_frame_around_what_was_closed_and_closing_gives_the_same_picture():
    view = GraphView(TRANSFORMER)
    before = end(view)
    scene = opened(view, "blocks × 3", "blocks.1", "attention")
    frames = [n for n in scene.nodes if n.kind == "frame"]
    assert [n.label for n in frames] == ["blocks × 3", "blocks.1", "attention"]
    assert all(n.fold == "open" for n in frames)
    for outer, inner in pairwise(frames):
        assert abs(outer.x - inner.x) <= (outer.width - inner.width) / 2
        assert abs(outer.y - inner.y) <= (outer.height - inner.height) / 2
    assert {"query", "key", "value", "output"} <= set(labels(scene))
    nothing_is_lost(view)
    nothing_overlaps(scene)
    view.fold_box(frames[2].id)
    view.fold_box(frames[1].id)
    view.fold_box(frames[0].id)
    assert end(view) == before


def test_all_can_be_opened_and_closed_again():
    view = GraphView(TRANSFORMER)
    before = end(view)
    view.open_all()
    scene = end(view)
    assert not any(n.fold == "closed" for n in scene.nodes)
    assert sum(n.kind in ("op", "output") for n in scene.nodes) == len(TRANSFORMER.positions(OpRecorded))
    nothing_is_lost(view)
    nothing_overlaps(scene)
    view.open_all(False)
    assert end(view) == before


@pytest.mark.parametrize("direction", ["right", "down"])
def test_data_flows_in_one_direction_through_open_groups(direction):
    view = GraphView(TRANSFORMER, direction=direction)
    scene = opened(view, "blocks × 3", "blocks.2")
    nothing_overlaps(scene)
    at = {n.id: (n.x if direction == "right" else n.y) for n in scene.nodes}
    assert all(at[e.source] < at[e.target] for e in scene.edges)


# --- growing ---


@pytest.mark.parametrize("rec", [TRANSFORMER, LOOP], ids=["transformer", "loop"])
def test_folding_many_equals_folding_one_by_one_on_big_recordings(rec):
    view = GraphView(rec)
    many, one = view.fold_many(view.start(), Stretch(rec, 0, len(rec))), view.start()
    for event in rec:
        one = view.fold(one, event)
    assert many == one


@pytest.mark.parametrize("everything", [False, True], ids=["closed", "open"])
@pytest.mark.parametrize("rec", [TRANSFORMER, LOOP], ids=["transformer", "loop"])
def test_a_picture_that_was_followed_equals_one_that_was_opened_late(rec, everything):
    live, late = GraphView(rec), GraphView(rec)
    live.open_all(everything)
    late.open_all(everything)
    for position in range(0, len(rec) + 1, 7):
        live.picture_at(position)
    assert sorted(end(live).nodes) == sorted(end(late).nodes)
    assert sorted(e[:3] + e[4:] for e in end(live).edges) == sorted(e[:3] + e[4:] for e in end(late).edges)
    assert end(live).caption == end(late).caption


def test_nothing_jumps_while_a_graph_grows():
    view = GraphView(TRANSFORMER)
    places = {}
    n_late = 0
    for position in range(0, len(TRANSFORMER), 3):
        view._newest = None
        view.recording = Prefix(TRANSFORMER, position)
        scene = view.picture_at(position)
        if view.large.n_boxes <= view.most:
            continue
        for n in scene.nodes:
            n_late += 1
            assert places.setdefault(n.id, (n.x, n.y)) == (n.x, n.y)
    assert n_late > 100


class Prefix:
    """The first `n` events of a recording that goes on."""

    live = True

    def __init__(self, rec, n):
        self.rec, self.n = rec, n

    def __len__(self):
        return self.n

    def __getitem__(self, where):
        return self.rec[where]

    def columns(self, kind, start=0, stop=None):
        return self.rec.columns(kind, start, self.n if stop is None else min(stop, self.n))

    def positions(self, kind):
        every = self.rec.positions(kind)
        return every[: int(np.searchsorted(every, self.n))]


def test_a_group_is_active_while_something_in_it_happens_and_counts_what_ran():
    view = GraphView(TRANSFORMER)
    middle = int(TRANSFORMER.positions(OpRecorded)[60]) + 1
    scene = view.picture_at(middle)
    blocks = next(n for n in scene.nodes if n.label.startswith("blocks"))
    assert (blocks.label, blocks.state) == ("blocks × 2", "active")
    assert blocks.sublabel.startswith("58 ops")
    assert not any(n.label == "head" for n in scene.nodes)
    assert blocks.gradient == ""
    assert box(end(view), "blocks × 3").state == "done"


def test_a_nan_inside_is_seen_from_outside():
    x = lab.tensor(np.full(4, -1.0), requires_grad=True, name="x")
    with lab.record(detail="statistics") as rec, np.errstate(all="ignore"):
        y = x
        for k in range(70):
            y = np.log(y) if k == 30 else y * 1.0
    scene = end(GraphView(rec))
    assert [n.state for n in scene.nodes if n.fold][-1] == "trouble"


# --- passes ---


@pytest.mark.parametrize("backward", [True, False])
def test_of_several_passes_the_newest_is_drawn_and_the_others_are_told(backward):
    rec = transformer(2, n_passes=3, backward=backward)
    view = GraphView(rec)
    assert "the newest of 3 passes; the others (138 operations) are not drawn" in end(view).caption
    one = end(GraphView(transformer(2)))
    assert [n.label.partition(" ")[2] for n in end(view).nodes if n.fold] == [
        n.label.partition(" ")[2] for n in one.nodes if n.fold
    ]
    nothing_is_lost(view)
    view.show_pass(0)
    assert "number 1 of 3 passes" in end(view).caption
    nothing_is_lost(view)


def test_a_reader_chooses_the_pass_from_a_list_with_a_label_and_a_tip():
    view = GraphView(transformer(2, n_passes=3))
    assert view.widget is not None
    choice = view._passes.widget
    assert (choice.description, choice.layout.display) == ("Pass", None)
    assert choice.tooltip
    assert [label for label, _ in choice.options] == ["newest", "1", "2", "3"]
    assert choice.label == "newest"
    choice.label = "1"
    assert view.large.chosen == 0
    assert "number 1 of 3 passes" in view.host._wanted["caption"]
    view.show_pass(None)
    assert choice.label == "newest", "what was chosen is named: nothing chosen would be a blank list"
    view.show_pass(2)
    choice.label = "newest"
    assert view.large.chosen is None
    view.dispose()


def test_where_all_passes_are_drawn_or_one_was_recorded_there_is_no_list_of_them():
    for rec, most in ((transformer(2, n_passes=3), 2000), (TRANSFORMER, 60)):
        view = GraphView(rec, most=most)
        assert view.widget is not None
        assert view._passes.widget.layout.display == "none"
        view.dispose()


def test_a_pass_that_has_not_begun_at_this_moment_says_so_in_place_of_a_picture():
    view = GraphView(transformer(2, n_passes=3))
    view.show_pass(2)
    scene = view.picture_at(30)
    assert (scene.nodes, scene.edges, scene.instead) == ((), (), "pass 3 has not begun here")
    assert scene.caption.startswith("Pass 3 has not begun at this moment: it is the newest of 3 passes.")
    assert view.text_at(30).splitlines()[1:] == [scene.caption]
    begins = int(view.recording.positions(OpRecorded)[view.large.groups.roots[2].first])
    assert view.picture_at(begins).nodes == ()
    assert len(view.picture_at(begins + 1).nodes) >= 1


def test_a_pass_that_was_not_recorded_is_refused_in_three_lines():
    with pytest.raises(ViewError, match="holds no such pass") as caught:
        GraphView(TRANSFORMER).show_pass(1)
    assert "given: pass 1, 1 recorded" in str(caught.value)


def test_a_player_walks_through_the_passes():
    rec = transformer(2, n_passes=2)
    view = GraphView(rec)
    first = int(rec.positions(OpRecorded)[50])
    assert "number 1 of 2 passes" in view.picture_at(first + 1).caption
    assert "the newest of 2" in end(view).caption


def test_a_pass_that_goes_on_in_the_next_is_one_with_it():
    w = lab.tensor(np.ones(4), requires_grad=True, name="w")
    with lab.record() as rec:
        h = w * 1.0
        for _ in range(8):
            for _ in range(10):
                h = np.tanh(h * w)
            (h * h).sum().backward(retain_graph=True)
            np.exp(w).sum()
    view = GraphView(rec)
    nothing_is_lost(view)


# --- paths, pins, search ---


def test_a_path_forward_lights_what_depends_on_a_value():
    view = GraphView(TRANSFORMER)
    scene = end(view)
    view.light("forward", box(scene, "blocks × 3").id)
    lit = end(view).lit
    assert {n.label for n in scene.nodes if n.id in lit} >= {"blocks × 3", "layer_norm", "head"}
    assert box(scene, "token").id not in lit
    assert sum(e.id in lit for e in scene.edges) == 3
    view.light("", "")
    assert end(view).lit == frozenset()


def test_a_path_back_lights_where_a_gradient_goes():
    view = GraphView(TRANSFORMER)
    scene = end(view)
    view.light("back", box(scene, "blocks × 3").id)
    assert {n.label for n in scene.nodes if n.id in end(view).lit and n.fold} == {"token", "place", "blocks × 3"}


def test_the_way_of_a_gradient_begins_at_the_root_of_the_walk():
    x, y = (lab.tensor(2.0, requires_grad=True, name=n) for n in "xy")
    with lab.record() as rec:
        a = x * y
        b = np.sin(a)
        np.exp(a)
        (b * 2.0).backward()
    view = GraphView(rec)
    view.light("came", str(x.node.id))
    lit = end(view).lit
    assert {str(x.node.id), str(a.node.id), str(b.node.id)} <= lit
    assert str(y.node.id) not in lit
    assert not any(n.id in lit for n in end(view).nodes if n.label.endswith("exp(v₁)"))


def test_a_pinned_node_stays_on_the_picture_when_its_group_is_closed():
    view = GraphView(TRANSFORMER)
    end(view)
    group = next(g for g in view.large.groups.roots[0].within() if g.path == "blocks/1/attention")
    node = str(group.nodes[5])
    view.pin(node)
    scene = end(view)
    assert node in {n.id for n in scene.nodes}
    assert scene.pinned == {node}
    assert "blocks × 3" in labels(scene)
    group = box(scene, "blocks × 3").id
    assert any(e.source == node and e.target == group for e in scene.edges)
    ways = {(e.source, e.target): e.label for e in scene.edges}
    assert ways[group, node].endswith("out")
    assert ways[node, group].endswith("back")
    assert "is pinned: a part of the group beside it;" in scene.caption
    assert "no cycle" in scene.caption
    assert ("pin", "pinned") in scene.legend
    nothing_is_lost(view)
    nothing_overlaps(scene)
    view.pin(node)
    assert node not in {n.id for n in end(view).nodes}
    assert ("pin", "pinned") not in end(view).legend


@pytest.mark.parametrize("direction", ["right", "down"])
def test_arrows_between_a_group_and_its_pinned_parts_have_room_for_their_words(direction):
    view = GraphView(TRANSFORMER, direction=direction)
    end(view)
    attention = next(g for g in view.large.groups.roots[0].within() if g.path == "blocks/1/attention")
    parts = [str(attention.nodes[k]) for k in (3, 5, 9)]
    for node in parts:
        view.pin(node)
    scene = end(view)
    nodes = {n.id: n for n in scene.nodes}
    own = [e for e in scene.edges if {e.source, e.target} <= {*parts, box(scene, "blocks × 3").id}]
    assert len(own) >= 6
    words = []
    for edge in own:
        x, y = edge_shape(edge, nodes).middle
        half = text_width(edge.label, 12) / 2 + 3
        words.append(Node(edge.id, x, y, 2 * half, 18, edge.label))
    solid = [n for n in (*scene.nodes, *words) if n.kind != "frame"]
    for a, b in combinations(solid, 2):
        assert abs(a.x - b.x) >= (a.width + b.width) / 2 or abs(a.y - b.y) >= (a.height + b.height) / 2, (a, b)


def test_a_group_is_as_far_as_its_parts_are_pinned_or_not():
    view = GraphView(TRANSFORMER)
    before = {n.label: n.state for n in end(view).nodes}
    assert before["blocks × 3"] == "done"
    group = next(g for g in view.large.groups.roots[0].within() if g.path == "blocks/1/attention")
    view.pin(str(group.nodes[5]))
    plain = GraphView(TRANSFORMER)
    for position in range(0, len(TRANSFORMER), 20):
        states = {n.label: n.state for n in plain.picture_at(position).nodes}
        shut = next((n for n in view.picture_at(position).nodes if n.label.startswith("blocks")), None)
        if shut is not None and states[shut.label] in ("done", "waiting", "idle"):
            assert shut.state == states[shut.label]
    assert box(end(view), "blocks × 3").state == "done"


def test_a_search_opens_what_it_needs_and_says_how_many_match():
    view = GraphView(TRANSFORMER)
    n_ops = len(TRANSFORMER.positions(OpRecorded))
    view.find("softmax")
    scene = end(view)
    assert scene.caption == f"3 of {n_ops} operations match “softmax”."
    assert len(scene.lit) == 3
    assert all("softmax" in n.label for n in scene.nodes if n.id in scene.lit)
    nothing_is_lost(view)
    view.find("blocks.1 query")
    assert "operations and tensors match" in end(view).caption
    assert len(end(view).lit) == 4
    view.find("")
    assert end(view) == end(GraphView(TRANSFORMER))


def test_a_search_with_many_hits_lights_the_groups_and_counts_them():
    view = GraphView(transformer(6))
    view.find("2x4x8")
    scene = end(view)
    shut = [n.id for n in scene.nodes if n.id in scene.lit and n.fold == "closed"]
    assert scene.caption.endswith(f"match “2x4x8”, {len(view.large.hits) - 1} of them in {len(shut)} closed groups.")
    assert box(scene, "blocks × 6").id in scene.lit
    view.find("no such thing")
    assert end(view).caption.startswith("0 of ")
    view.find("softmax")
    end(view)
    view.fold_box(box(scene, "blocks × 6").id)
    assert end(view).caption.endswith(" operations match “softmax”, in 1 closed group.")


def test_hits_in_passes_that_are_not_drawn_are_counted_apart_and_the_page_learns_for_which_words_boxes_are_lit():
    x = lab.tensor(np.ones(3), requires_grad=True, name="x")
    with lab.record() as rec:
        for _ in range(3):
            y = x
            for _ in range(30):
                y = np.tanh(y) * 2.0
            y.sum().backward()
    view = GraphView(rec, most=20)
    view.find("  sum ")
    scene = end(view)
    assert scene.caption == "3 of 183 operations match “sum”. 2 are in passes that are not drawn."
    assert scene.found == tree_of(scene)["found"] == "sum"
    view.find("")
    assert "found" not in tree_of(end(view))


def test_a_search_and_a_path_light_a_small_graph_too():
    x = lab.tensor(2.0, requires_grad=True, name="x")
    with lab.record() as rec:
        y = np.sin(x)
        np.exp(y)
    view = GraphView(rec)
    view.find("sin")
    assert end(view).lit == {str(y.node.id)}
    assert end(view).caption == "1 of 2 operations match “sin”."
    view.light("back", str(y.node.id))
    assert end(view).lit == {str(x.node.id), str(y.node.id), f"{y.node.id}.0"}


# --- words ---


def test_the_words_of_a_large_graph_are_an_outline():
    view = GraphView(TRANSFORMER)
    opened(view, "blocks × 3", "blocks.1")
    lines = view.text_at(len(TRANSFORMER)).splitlines()
    assert len(lines) < 30
    assert any(line.startswith("    attention: 22 operations") for line in lines)
    view.open_all()
    lines = view.text_at(len(TRANSFORMER)).splitlines()
    assert len(lines) < 50
    assert lines[-1].endswith("more boxes")


def test_the_page_can_open_pin_and_find():
    view = GraphView(TRANSFORMER)
    assert view.widget is not None
    host = view.host
    host._received(None, {"fold": "#" + box(end(view), "blocks × 3").id}, [])
    assert "blocks.1" in labels(end(view))
    host._received(None, {"find": "softmax"}, [])
    assert "match “softmax”" in end(view).caption
    host._received(None, {"select": "#" + box(end(view), "head").id}, [])
    assert "2 operations: matmul, add" in view._panel.value
    buttons = {b.description: b for b in view._buttons.values()}
    assert all(b.tooltip for b in buttons.values())
    buttons["Path back"].click()
    assert end(view).lit
    buttons["Light all"].click()
    assert not end(view).lit
    buttons["Open all"].click()
    assert not any(n.fold == "closed" for n in end(view).nodes)
    view.dispose()


# --- random module trees ---


@st.composite
def module_runs(draw):
    """Operations of random modules, each with operands from what ran before."""
    paths = st.lists(st.sampled_from(["a", "b", "layers", "0", "1", "2"]), max_size=3).map(".".join)
    events, k = leaf(0, "x", 1.0) + leaf(1, "y.weight", 1.0), 2
    for path in draw(st.lists(paths, min_size=1, max_size=14)):
        for name in draw(st.lists(st.sampled_from(["exp", "add"]), min_size=1, max_size=4)):
            n = 1 + (name == "add")
            parents = tuple(draw(st.integers(-1, k - 1)) for _ in range(n))
            events.append(OpRecorded(k, name, parents, (), "float64", 0, ("",) * n, path))
            k += 1
    return events


@settings(max_examples=40, deadline=None)
@given(module_runs(), st.data())
def test_whatever_is_open_nothing_is_lost(events, data):
    rec = recorded(events)
    view = GraphView(rec, most=0)
    for _ in range(4):
        nothing_is_lost(view)
        nothing_overlaps(end(view))
        folds = [n.id for n in end(view).nodes if n.fold]
        ops = [str(n) for n in view.large.groups.ops]
        if folds:
            view.fold_box(data.draw(st.sampled_from(folds)))
        view.pin(data.draw(st.sampled_from(ops)))
    view.open_all()
    nothing_is_lost(view)


@settings(max_examples=30, deadline=None)
@given(module_runs())
def test_groups_that_grew_are_those_of_the_whole(events):
    rec = recorded(events)
    live, late = GraphView(rec, most=0), GraphView(rec, most=0)
    for position in range(len(rec) + 1):
        live.large.grow(live.state_at(position).entries)
    late.large.grow(late.state_at(len(rec)).entries)

    def shape(group: Group):
        return group.id, group.first, group.last, [shape(i) if isinstance(i, Group) else i for i in group.shown_items]

    assert [shape(r) for r in live.large.groups.roots] == [shape(r) for r in late.large.groups.roots]


def test_one_operation_is_one_and_a_run_of_one_has_no_count():
    x = lab.tensor(np.ones(3), requires_grad=True, name="x")
    with lab.record() as rec:
        x * 2.0
    view = GraphView(rec, most=1)
    assert "1 operation, by module" in view.text_at(len(rec))
    assert "× 1" not in view.text_at(len(rec))
