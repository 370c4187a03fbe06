"""Containers: flattened, rebuilt, compared; every kind, nested in every other."""

import collections
import dataclasses
from typing import NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import given

from lab import tree
from lab.errors import ArgumentError


class Point(NamedTuple):
    x: object
    y: object


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object
    b: object = None


@dataclasses.dataclass(slots=True)
class Checked:
    a: object
    total: object = dataclasses.field(init=False, default=0)

    def __post_init__(self):
        if self.a is Ellipsis:
            raise ValueError("not that")


leaves = st.integers() | st.text(max_size=2)
trees = st.recursive(
    leaves | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple)
    | st.dictionaries(st.text(max_size=2), inner, max_size=3) | st.builds(Point, inner, inner)
    | st.builds(Frozen, inner, inner) | st.builds(Checked, inner),
    max_leaves=10,
)  # fmt: skip


@given(trees)
def test_rebuilding_gives_back_what_was_flattened(x):
    found, structure = tree.flatten(x)
    assert tree.unflatten(structure, found) == x
    assert len(found) == structure.n_leaves == len(tree.paths(x))
    assert hash(structure) == hash(tree.flatten(x)[1])


@given(trees)
def test_mapping_keeps_the_structure(x):
    mapped = tree.map_leaves(lambda leaf: [leaf], x)
    assert tree.flatten(tree.map_leaves(lambda leaf: 0, x))[1] == tree.flatten(x)[1]
    assert len(tree.flatten(mapped)[0]) == len(tree.flatten(x)[0])


@given(trees)
def test_a_single_entry_spreads_over_all_leaves_and_a_full_container_leaf_by_leaf(x):
    n = len(tree.flatten(x)[0])
    assert tree.spread("axis", x, lambda p: p == "axis") == ["axis"] * n
    numbered = tree.unflatten(tree.flatten(x)[1], list(range(n)))
    assert tree.spread(numbered, x, lambda p: isinstance(p, int)) == list(range(n))


def test_rebuilding_a_dataclass_does_not_run_its_checks():
    structure = tree.flatten(Checked(1))[1]
    assert tree.unflatten(structure, [Ellipsis, 5]).total == 5


def test_paths_read_like_code():
    x = {"layers": [Point(1, (2,)), Frozen(3)], "b": None}
    assert tree.paths(x) == ["['layers'][0].x", "['layers'][0].y[0]", "['layers'][1].a"]
    assert tree.paths(5) == [""]


def test_dicts_are_visited_in_sorted_order():
    assert tree.flatten({"b": 1, "a": 2}) == tree.flatten({"a": 2, "b": 1})


def test_unknown_containers_are_leaves():
    for x in ({1, 2}, collections.OrderedDict(a=1), "text", range(3), Point):
        assert tree.flatten(x)[0] == [x]


def test_a_registered_class_is_opened():
    class Box:
        def __init__(self, items, label):
            self.items, self.label = items, label

    tree.register(Box, lambda b: ([(f".{i}", x) for i, x in enumerate(b.items)], b.label),
                  lambda label, items: Box(list(items), label))  # fmt: skip
    try:
        found, structure = tree.flatten({"box": Box([1, [2]], "mine")})
        assert found == [1, 2]
        made = tree.unflatten(structure, [10, 20])["box"]
        assert (made.items, made.label) == ([10, [20]], "mine")
        assert tree.paths({"box": Box([1], "")}) == ["['box'].0"]
    finally:
        del tree._REGISTERED[Box]


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: tree.unflatten(tree.flatten([1, 2])[1], [1]), "leaves do not fit the container"),
        (lambda: tree.map_leaves(max, [1, 2], [1]), "containers differ in structure"),
        (lambda: tree.flatten({1: 0, "a": 0}), "the keys of a dict in an argument cannot be sorted"),
        (lambda: tree.spread([1], (2,), lambda p: p == 1, word="axes"), "axes does not fit the container"),
        (lambda: tree.spread({"a": 1}, {"b": 1}, lambda p: p == 1), "the prefix does not fit the container"),
    ],
)
def test_misfits_are_explained(call, problem):
    with pytest.raises(ArgumentError, match=problem) as caught:
        call()
    assert caught.value.given
