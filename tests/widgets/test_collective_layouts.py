"""CollectiveView: the same collective as a ring, as the trees that its hops make, or as a matrix of its links."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import lab
from lab.errors import ViewError
from lab.events import ChunkMoved
from lab.parallel import Recv, Send, block, run_local
from tests.widgets.golden_ranks import collective, ranks_of, told
from tests.widgets.looking import cells, moving, node, recorded, scenes, stops
from widgets import CollectiveView, RingView
from widgets.layout.tree import depth, slots, tree
from widgets.pictures.measure import text_width
from widgets.pictures.tree import tree_of
from widgets.views.collective.state import Piece
from widgets.views.collective.trees import trees_of


def halved(rank, world_size, start, stop, turned):
    """Up and down a tree in which the distance of those that meet doubles; `turned` says who plays which rank."""
    n_levels = max(1, (world_size - 1).bit_length())
    for level, up in [*((k, True) for k in range(n_levels)), *((k, False) for k in reversed(range(n_levels)))]:
        far, place = 1 << level, rank % (2 << level)
        if place == 0 and rank + far < world_size:
            yield (Recv(turned(rank + far), start, stop, True),) if up else (Send(turned(rank + far), start, stop),)
        elif place == far:
            yield (Send(turned(rank - far), start, stop),) if up else (Recv(turned(rank - far), start, stop, False),)
        else:
            yield ()


def grown(rank, world_size, n_chunks):
    return halved(rank, world_size, 0, n_chunks, lambda r: r)


def two_grown(rank, world_size, n_chunks):
    """One half of the buffer along a tree, the other along its mirror image."""
    last, half = world_size - 1, n_chunks // 2
    here = halved(rank, world_size, 0, half, lambda r: r)
    there = halved(last - rank, world_size, half, n_chunks, lambda r: last - r)
    for one, other in zip(here, there, strict=True):
        yield (*one, *other)


def at_once(rank, world_size, n_chunks):
    """Everybody sums its own block from all, then gives it to all."""
    others = [peer for peer in range(world_size) if peer != rank]
    mine = block(rank, world_size, n_chunks)
    yield (*(Send(p, *block(p, world_size, n_chunks)) for p in others), *(Recv(p, *mine, True) for p in others))
    yield (*(Send(p, *mine) for p in others), *(Recv(p, *block(p, world_size, n_chunks), False) for p in others))


def ran(plan, n, size=None):
    with lab.record(detail="value") as rec:
        run_local("all_reduce", plan, ranks_of(n, size))
    return rec


def places(scene):
    return {box.id: (box.x, box.y) for box in scene.nodes if box.kind == "device"}


# --- which layout ---


@pytest.mark.parametrize(
    ("make", "layout"),
    [
        pytest.param(lambda: recorded("all_reduce", "ring", ranks_of(8)), "ring", id="ring"),
        pytest.param(lambda: recorded("all_reduce", "naive", ranks_of(5)), "ring", id="star"),
        pytest.param(lambda: ran(grown, 8), "tree", id="tree"),
        pytest.param(lambda: ran(two_grown, 8), "tree", id="two trees"),
        pytest.param(lambda: ran(at_once, 5), "matrix", id="all at once"),
        pytest.param(lambda: ran(grown, 2), "ring", id="two ranks"),
        pytest.param(lambda: recorded("all_reduce", "ring", ranks_of(1)), "ring", id="one rank"),
    ],
)
def test_the_layout_is_found_from_the_hops(make, layout):
    view = CollectiveView(make())
    assert view._plan(view.state_at(len(view.recording))).layout == layout


def test_a_tree_is_asked_for_in_vain_where_the_hops_make_none():
    rec = recorded("all_reduce", "ring", ranks_of(4))
    end, ring = (scenes(view)[-1] for view in (CollectiveView(rec, layout="tree"), RingView(rec)))
    assert places(end) == places(ring)


def test_another_layout_is_refused_in_three_lines():
    with pytest.raises(ViewError, match="no such layout") as caught:
        CollectiveView(recorded("all_reduce", "ring", ranks_of(2)), layout="rings")
    assert "did you mean 'ring'?" in str(caught.value)


@pytest.mark.parametrize("layout", ["ring", "tree", "matrix"])
@pytest.mark.parametrize("n", [2, 4, 5, 8])
@pytest.mark.parametrize("plan", [grown, two_grown, at_once], ids=["tree", "two trees", "all at once"])
def test_in_every_layout_the_cells_of_the_end_are_the_sums(plan, n, layout):
    view = CollectiveView(ran(plan, n), layout=layout)
    end, sums = scenes(view)[-1], {f"{v:.1f}" for v in sum(ranks_of(n))}
    assert tree_of(end)["type"] == "scene"
    parts = [(label, whose) for name, (label, whose) in cells(end).items() if not name.endswith(".all")]
    assert all(whose in ("0+1" if n == 2 else f"all {n}", "complete") for _, whose in parts)
    assert all(label in sums or label.startswith("µ") or " " in label for label, _ in parts)
    assert all(state == "done" for state in {box.state for box in end.nodes if box.kind == "device"})


# --- trees ---


def test_ranks_stand_at_the_levels_of_the_tree_that_the_hops_made():
    first = scenes(CollectiveView(ran(grown, 8)))[1]
    heights = {rank: places(first)[f"r{rank}"][1] for rank in range(8)}
    levels = {height: k for k, height in enumerate(sorted(set(heights.values())))}
    assert {rank: levels[height] for rank, height in heights.items()} == {
        0: 0, 1: 1, 2: 1, 4: 1, 3: 2, 5: 2, 6: 2, 7: 3,
    }  # fmt: skip
    assert moving(first) == {f"{r + 1}>{r}": ("forward", "+= x") for r in (0, 2, 4, 6)}
    assert "a tree of 4 levels" in first.caption


def test_two_trees_stand_beside_each_other_each_with_its_own_chunks():
    start, first = scenes(CollectiveView(ran(two_grown, 4)))[:2]
    assert {mark.id: mark.text for mark in start.marks if mark.id.startswith("tree")} == {
        "tree0": "Tree 1: c0–c1", "tree1": "Tree 2: c2–c3",
    }  # fmt: skip
    assert {name: whose for name, (_, whose) in cells(first).items()} == {
        "r0.0": "0+1", "r1.0": "1", "r2.0": "2+3", "r3.0": "3", "r0b.1": "0", "r1b.1": "0+1", "r2b.1": "2",
        "r3b.1": "2+3",
    }  # fmt: skip
    assert set(moving(first)) == {"1>0", "3>2", "0b>1b", "2b>3b"}
    at = places(start)
    left, right = ([x for name, (x, _) in at.items() if name.endswith("b") == second] for second in (False, True))
    assert max(left) < min(right)
    assert at["r0"][1] == at["r3b"][1] < at["r3"][1] == at["r0b"][1]


def test_the_bytes_on_the_cards_of_two_trees_add_up_to_what_a_rank_sent():
    view = CollectiveView(ran(two_grown, 4))
    end = scenes(view)[-1]
    sent = {mark.id: int(mark.text.split()[1]) for mark in end.marks if mark.id.endswith(".sent")}
    for rank in range(4):
        assert node(end, f"r{rank}").aria == f"rank {rank}, sent {sent[f'r{rank}.sent'] + sent[f'r{rank}b.sent']} B"


def test_a_piece_whose_ways_make_a_circle_or_miss_a_rank_makes_no_tree():
    def hops(*ways):
        return [ChunkMoved(0, k, src, dst, 0, 2, True, 8) for k, (src, dst) in enumerate(ways)]

    whole = [Piece(0, 2, "x")]
    assert trees_of(hops((1, 0), (2, 1), (0, 2)), 3, whole) == ()
    assert trees_of(hops((1, 0)), 3, whole) == ()
    assert trees_of(hops((1, 0), (1, 0), (3, 2)), 4, whole) == ()
    assert [t.parents for t in trees_of(hops((1, 0), (2, 1)), 3, whole)] == [(-1, 0, 1)]


@pytest.mark.parametrize("root", [0, 3])
def test_the_root_of_a_broadcast_or_a_sum_is_found_from_the_hops(root):
    for operation in ("broadcast", "reduce"):
        view = CollectiveView(told(collective(operation, "flat", ranks_of(5, 2), root=root)), layout="tree")
        end = scenes(view)[-1]
        assert all(places(end)[f"r{root}"][1] < places(end)[f"r{rank}"][1] for rank in range(5) if rank != root)


@pytest.mark.parametrize("seed", range(20))
def test_cards_of_a_tree_cover_nobody_and_children_stand_below_their_parents(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 20))
    order = rng.permutation(n)
    parents = [-1] * n
    for k in range(1, n):
        parents[order[k]] = int(order[rng.integers(0, k)])
    circle = tree(parents, (100.0, 50.0), (20.0, 30.0))
    for (ax, ay), (bx, by) in itertools.combinations(circle.centres, 2):
        assert abs(ax - bx) >= 100 or abs(ay - by) >= 50
    for rank, parent in enumerate(parents):
        assert parent < 0 or circle.centres[rank][1] == circle.centres[parent][1] + 80
    assert circle.width == slots(parents) * 120 - 20
    assert circle.height == (depth(parents) + 1) * 80 - 30


# --- the matrix ---


def test_a_matrix_has_bytes_by_link_and_parts_by_chunk():
    view = CollectiveView(recorded("all_reduce", "ring", ranks_of(3)), layout="matrix")
    start, first, *_, end = scenes(view)
    links = {f"{r}>{(r + 1) % 3}" for r in range(3)}
    assert {box.id for box in start.nodes if ">" in box.id} == links
    assert [node(start, link).label for link in sorted(links)] == ["", "", ""]
    assert (node(first, "0>1").label, node(first, "0>1").sublabel, node(first, "0>1").state) == (
        "8 B", "+= c2", "active",
    )  # fmt: skip
    assert node(first, "0>1").aria == "rank 0 to rank 1: 8 B in 1 step, now c2 += 3.0"
    assert cells(first)["r1.2"] == ("16.0", "0+1")
    assert (node(end, "2>0").label, node(end, "2>0").sublabel) == ("32 B", "4 steps")
    marks = {mark.id: mark.text for mark in end.marks}
    assert [marks[f"r{rank}.{way}"] for rank in range(3) for way in ("sent", "came")] == ["32 B"] * 6
    assert end.edges == end.tokens == ()


@pytest.mark.parametrize("n", [2, 5, 8, 16, 24])
@pytest.mark.parametrize("layout", ["matrix", "auto"])
def test_boxes_cover_nobody_and_words_have_room(n, layout):
    for scene in scenes(CollectiveView(ran(at_once, n), layout=layout)):
        boxes = [box for box in scene.nodes if box.kind == "constant"]
        for box in boxes:
            assert text_width(box.label, 14, bold=True) <= box.width, box
            assert text_width(box.sublabel, 12) <= box.width, box
        corners = {(box.x, box.y) for box in boxes}
        assert len(corners) == len(boxes)
        assert all(0 < box.x < scene.extent[0] and 0 < box.y < scene.extent[1] for box in boxes)


def test_what_is_said_has_bytes_by_link_and_times():
    view = CollectiveView(told(collective("broadcast", "flat", ranks_of(3))))
    *_, links, times = view.text_at(len(view.recording)).splitlines()
    assert links == "Links: 2 links, each carried 24 B."
    assert times.startswith("Time: steps were over ")
    assert "after the first rank entered; all had left after " in times
    after = [float(next(m.text for m in scene.marks if m.id == "time").split()[1]) for scene in scenes(view)[1:]]
    assert after == sorted(after)
    assert all(t > 0 for t in after)


@pytest.mark.parametrize("layout", ["tree", "matrix"])
def test_a_moment_of_a_launch_that_broke_is_drawn(layout):
    events = collective("all_reduce", "naive", ranks_of(4))[:7]
    view = CollectiveView(told(events), layout=layout)
    assert all(tree_of(scene)["nodes"] for scene in scenes(view))
    assert len(stops(view)) >= 3


def test_the_layout_is_chosen_below_the_picture():
    view = CollectiveView(ran(grown, 4))
    choice = view.widget.children[0].children[0]
    assert (choice.description, choice.value) == ("Layout", "auto")
    choice.value = "matrix"
    assert view._plan(view.state_at(len(view.recording))).layout == "matrix"
    view.dispose()
