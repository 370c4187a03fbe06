import json
import math

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import ViewError
from widgets.pictures.chart import Chart
from widgets.pictures.patch import apply, diff
from widgets.pictures.scene import Edge, Node, Scene, Token
from widgets.pictures.tree import MOST_CHARACTERS, tree_of

LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)
KEYS = st.sampled_from(["a", "b", "12", "__proto__", "constructor", ""])
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=10
)
ROOTS = st.dictionaries(KEYS, TREES, max_size=4)


@given(ROOTS, ROOTS)
def test_a_patch_turns_the_old_tree_into_the_new_and_leaves_the_old_alone(old, new):
    before = json.dumps(old)
    assert apply(old, diff(old, new)) == new
    assert json.dumps(old) == before


@given(ROOTS)
def test_equal_trees_have_an_empty_patch(tree):
    assert diff(tree, json.loads(json.dumps(tree))) == []


def test_unchanged_parts_are_shared():
    old = {"nodes": {"#a": {"x": 1}, "#b": {"x": 2}}}
    new = apply(old, [[["nodes", "#a", "x"], 5]])
    assert new["nodes"]["#b"] is old["nodes"]["#b"]
    assert old["nodes"]["#a"]["x"] == 1


def test_a_patch_from_elsewhere_cannot_leave_the_tree():
    assert apply({"a": 1}, [[["__proto__", "x"], 1], [["constructor"], 2]]) == {"a": 1}


def curve(n: int) -> Chart:
    x = np.arange(float(n))
    return Chart(go.Figure(go.Scatter(x=x, y=np.sin(x))))


def test_a_curve_that_grew_sends_only_its_new_points():
    old, new = tree_of(curve(2000)), tree_of(curve(2010))
    ops = diff(old, new)
    assert apply(old, ops) == new
    assert len(json.dumps(ops)) < 500


def test_one_changed_node_among_many_sends_one_field():
    nodes = tuple(Node(str(i), i, 0, 64, 36, "x") for i in range(500))
    changed = (*nodes[:7], nodes[7]._replace(state="active"), *nodes[8:])
    assert diff(tree_of(Scene(nodes)), tree_of(Scene(changed))) == [[["nodes", "#7", "state"], "active"]]


def test_a_figure_loses_its_template_and_what_json_cannot_say():
    tree = tree_of(Chart(go.Figure(go.Scatter(x=[1, 2, 3], y=[1.0, math.nan, math.inf]))))
    assert "template" not in tree["layout"]
    assert tree["data"][0]["y"] == [1.0, None, None]
    json.dumps(tree, allow_nan=False)


def test_an_edge_to_nowhere_is_refused_by_name():
    with pytest.raises(ViewError, match="an edge names a node that the scene does not have"):
        tree_of(Scene((Node("a", 0, 0, 1, 1, "a"),), (Edge("e", "a", "b"),)))


def test_a_token_on_no_edge_is_refused_by_name():
    with pytest.raises(ViewError, match="a token names an edge"):
        tree_of(Scene((Node("a", 0, 0, 1, 1, "a"),), (), (Token("e"),)))


def test_two_nodes_with_one_id_are_refused_by_name():
    with pytest.raises(ViewError, match="two nodes of a scene have the same id"):
        tree_of(Scene((Node("a", 0, 0, 1, 1, "a"), Node("a", 5, 0, 1, 1, "b"))))


def test_places_that_are_no_numbers_do_not_reach_the_browser():
    tree = tree_of(Scene((Node("a", math.nan, math.inf, 10, 10, "a", tone=math.nan),)))
    assert (tree["nodes"]["#a"]["x"], tree["nodes"]["#a"]["y"]) == (0.0, 0.0)
    assert "tone" not in tree["nodes"]["#a"]


def test_a_name_of_a_hundred_megabytes_is_cut_with_a_note():
    label = tree_of(Scene((Node("a", 0, 0, 10, 10, "x" * 10**6),)))["nodes"]["#a"]["label"]
    assert len(label) < MOST_CHARACTERS + 100
    assert "1000000 characters" in label


def test_a_tree_made_from_an_earlier_one_is_the_same_and_its_difference_too():
    rng = np.random.default_rng(0)
    nodes = [Node(str(k), k, 0, 40, 20, str(k)) for k in range(300)]
    edges = [Edge(f"e{k}", str(k), str(k + 1)) for k in range(299)]
    scene = Scene(tuple(nodes), tuple(edges))
    before = scene, tree_of(scene)
    for turn in range(30):
        if turn % 3 == 0:
            nodes.append(Node(f"n{turn}", 0, 0, 40, 20, "new"))
            edges.append(Edge(f"f{turn}", "0", f"n{turn}"))
        if turn % 7 == 6:
            nodes.pop()
            edges = [e for e in edges if e.target != f"n{turn - turn % 3}"]
        for k in rng.integers(0, len(nodes), 3):
            nodes[k] = nodes[k]._replace(label=f"{turn}.{k}")
        edges[turn] = edges[turn]._replace(state="done")
        scene = Scene(tuple(nodes), tuple(edges))
        shared, plain = tree_of(scene, before), tree_of(scene)
        assert shared == plain
        ops = diff(before[1], shared)
        assert apply(before[1], ops) == plain
        assert len(ops) < 12
        before = scene, shared


def test_a_tree_made_from_an_earlier_one_is_checked_too():
    a, b = Node("a", 0, 0, 40, 20, "a"), Node("b", 0, 0, 40, 20, "b")
    first = Scene((a, b), (Edge("e", "a", "b"),))
    with pytest.raises(ViewError, match="an edge names a node"):
        tree_of(Scene((a, b), (Edge("e", "a", "b"), Edge("f", "a", "gone"))), (first, tree_of(first)))
    with pytest.raises(ViewError, match="an edge names a node"):
        tree_of(Scene((a,), first.edges), (first, tree_of(first)))
    with pytest.raises(ViewError, match="two nodes"):
        tree_of(Scene((a, b, a), first.edges), (first, tree_of(first)))
