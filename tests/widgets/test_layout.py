"""Layered layout: nothing overlaps, edges run forward, the same input gives the same places."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import ViewError
from widgets.layout.dag import MAX_NODES, Placement, layered


@st.composite
def graphs(draw: st.DrawFn, most: int = 200) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
    rng = draw(st.randoms(use_true_random=False))
    n = draw(st.integers(1, most))
    sizes = [(rng.uniform(20, 160), rng.uniform(16, 80)) for _ in range(n)]
    edges = []
    for t in range(1, n):
        for _ in range(rng.choice([0, 1, 1, 2, 2, 3])):
            nearest = max(0, t - rng.choice([3, 10, 200]))
            edges.append((rng.randrange(nearest, t), t))
    return sizes, edges


def overlapping(placed: Placement, sizes: list[tuple[float, float]]) -> list[tuple[int, int]]:
    centres, halves = np.asarray(placed.centres).reshape(-1, 2), np.asarray(sizes).reshape(-1, 2) / 2
    apart = np.abs(centres[:, None] - centres) - (halves[:, None] + halves)
    near = np.triu((apart < -1e-6).all(axis=2), 1)
    return [(int(i), int(j)) for i, j in np.argwhere(near)]


def through(a, b, box) -> bool:
    """Whether the segment from a to b meets the box (Liang and Barsky)."""
    first, last = 0.0, 1.0
    for k in (0, 1):
        step = b[k] - a[k]
        for edge, sign in ((box[k], 1), (box[k + 2], -1)):
            if step == 0:
                if sign * (a[k] - edge) < 0:
                    return False
                continue
            at = (edge - a[k]) / step
            if step * sign > 0:
                first = max(first, at)
            else:
                last = min(last, at)
    return first < last


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("direction", ["right", "down"])
@settings(max_examples=25, deadline=None)
@given(graph=graphs())
def test_boxes_never_overlap_and_edges_run_forward_within_the_picture(graph, direction, fast):
    sizes, edges = graph
    placed = layered(sizes, edges, direction=direction, fast=fast)
    assert overlapping(placed, sizes) == []
    along = 0 if direction == "right" else 1
    for (s, t), bends in zip(edges, placed.bends, strict=True):
        path = [placed.centres[s], *bends, placed.centres[t]]
        assert all(a[along] < b[along] for a, b in pairwise(path))
    for (x, y), (w, h) in zip(placed.centres, sizes, strict=True):
        assert x - w / 2 >= -1e-6
        assert x + w / 2 <= placed.width + 1e-6
        assert y - h / 2 >= -1e-6
        assert y + h / 2 <= placed.height + 1e-6


@settings(max_examples=40, deadline=None)
@given(graph=graphs(most=30), fast=st.booleans())
def test_no_edge_runs_through_a_box_that_is_not_its_own(graph, fast):
    sizes, edges = graph
    placed = layered(sizes, edges, fast=fast)
    boxes = [
        (x - w / 2 + 1, y - h / 2 + 1, x + w / 2 - 1, y + h / 2 - 1)
        for (x, y), (w, h) in zip(placed.centres, sizes, strict=True)
    ]
    for (s, t), bends in zip(edges, placed.bends, strict=True):
        path = [placed.centres[s], *bends, placed.centres[t]]
        for a, b in pairwise(path):
            assert [k for k, box in enumerate(boxes) if k not in (s, t) and through(a, b, box)] == []


def test_the_largest_graph_allowed_is_placed():
    sizes = [(100.0, 50.0)] * MAX_NODES
    edges = [(max(0, t - 1 - t * 7 % 40), t) for t in range(1, MAX_NODES)]
    for fast in (True, False):
        assert overlapping(layered(sizes, edges, fast=fast), sizes) == []


def test_the_same_edge_twice_bends_apart():
    placed = layered([(40, 20), (40, 20)], [(0, 1), (0, 1)])
    (a,), (b,) = placed.bends
    assert a[1] < 10 < b[1]


def test_isolated_nodes_are_placed_below_the_rest():
    sizes = [(40.0, 20.0)] * 4
    placed = layered(sizes, [(0, 1)])
    assert overlapping(placed, sizes) == []
    assert min(placed.centres[i][1] for i in (2, 3)) > max(placed.centres[i][1] for i in (0, 1))


def test_an_empty_graph_has_no_size():
    assert layered([], []) == Placement((), (), 0.0, 0.0)


PROGRAM = """
from widgets.layout.dag import layered
edges = [(max(0, t - 1 - t * 7 % 13), t) for t in range(1, 80)] + [(t // 2, t) for t in range(5, 80, 3)]
print(layered([(60.0 + i % 7, 30.0) for i in range(80)], edges))
"""


def test_two_processes_place_the_same_graph_alike():
    runs = [
        subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True) for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout != ""


def test_a_source_stands_just_before_its_first_use():
    placed = layered([(40.0, 20.0)] * 4, [(0, 1), (1, 2), (3, 2)])
    assert placed.centres[3][0] == placed.centres[1][0]


def test_the_layout_is_complete_without_fast_sugiyama(monkeypatch):
    monkeypatch.setitem(sys.modules, "fast_sugiyama", None)
    sizes = [(40.0, 20.0)] * 5
    placed = layered(sizes, [(0, 2), (1, 2), (2, 3), (0, 3), (3, 4), (0, 4)])
    assert overlapping(placed, sizes) == []


def test_ordering_removes_the_crossing_of_a_small_graph():
    edges = [(0, 3), (1, 2)]  # drawn in the order of ids the two edges would cross
    for fast in (True, False):
        placed = layered([(40.0, 20.0)] * 5, [*edges, (2, 4), (3, 4)], fast=fast)
        y = [c[1] for c in placed.centres]
        assert (y[0] - y[1]) * (y[3] - y[2]) > 0


@pytest.mark.parametrize(
    ("sizes", "edges", "message"),
    [
        ([(1, 1)] * 501, [], "a picture shows at most 500 nodes"),
        ([(1, 1)] * 2, [(0, 2)], "an edge names a node that is not there"),
        ([(1, 1)] * 2, [(0, 1), (1, 0)], "a graph with a cycle has no layers"),
    ],
)
def test_what_cannot_be_placed_is_refused(sizes, edges, message):
    with pytest.raises(ViewError, match=message):
        layered(sizes, edges)
