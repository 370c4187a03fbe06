"""CompareCollectives: two collectives step beside step, each as its own view draws it, and what both took so far."""

from __future__ import annotations

import numpy as np
import pytest

import lab
from lab.errors import ViewError
from lab.parallel import run_ranks
from tests.widgets.golden_ranks import collective, ranks_of, told
from tests.widgets.looking import cells, node, recorded, scenes, stops
from widgets import CollectiveView, CompareCollectives
from widgets.pictures.tree import tree_of


def both(comm, *algorithms):
    for algorithm in algorithms:
        comm.all_reduce_(ranks_of(comm.world_size)[comm.rank], algorithm)
        comm.barrier()


def ran(*algorithms, n=4):
    with lab.record(detail="value") as rec:
        run_ranks(both, *algorithms, world_size=n)
    return rec


def table(scene):
    return [[mark.text for mark in scene.marks if mark.id.startswith(f"words{side}.")] for side in (0, 1)]


def bars(scene, row):
    return [mark.width for mark in scene.marks if mark.id in (f"used0.{row}", f"used1.{row}")]


@pytest.mark.parametrize(("one", "two"), [("ring", "tree"), ("tree", "ring")])
def test_step_stands_beside_step_and_who_has_fewer_is_over(one, two):
    rec = ran(one, two)
    view = CompareCollectives(rec)
    singles = [scenes(CollectiveView(rec, collective=k)) for k in (0, 2)]
    got = scenes(view)
    assert len(got) == 8 == max(map(len, singles))
    for k, scene in enumerate(got):
        for side, single in zip("ab", singles, strict=True):
            mine = {name[2:]: cell for name, cell in cells(scene).items() if name.startswith(f"{side}:")}
            assert mine == cells(single[min(k, len(single) - 1)])
        assert tree_of(scene)["type"] == "scene"


def test_the_table_has_steps_bytes_and_time_so_far():
    start, *_, end = scenes(CompareCollectives(ran("ring", "naive")))
    assert [column[:3] for column in table(start)] == [["0", "0 B", "0 B"]] * 2
    assert [column[:3] for column in table(end)] == [["6", "48 B", "48 B"], ["6", "96 B", "32 B"]]
    assert all(column[3].endswith("ms") for column in table(end))
    assert bars(end, 1)[0] == pytest.approx(bars(end, 1)[1] / 2)
    assert "they began with the same numbers" in end.caption


def test_the_words_name_both_and_what_they_took():
    view = CompareCollectives(ran("ring", "tree"))
    first, ring, tree, *_ = view.text_at(len(view.recording)).splitlines()
    assert first.count("All 4 ranks left after") == 2
    assert ring.startswith("all_reduce by ring: 6 steps, most that a rank sent 48 B, most over a link 48 B, time ")
    assert tree.startswith("all_reduce by tree: 4 steps, most that a rank sent 64 B, most over a link 32 B, time ")


@pytest.mark.parametrize("swapped", [False, True])
def test_two_recordings_are_compared_on_the_clock_of_the_longer(swapped):
    recordings = [recorded("all_reduce", name, ranks_of(4)) for name in ("direct", "ring")]
    view = CompareCollectives(*(reversed(recordings) if swapped else recordings))
    assert view.recording is recordings[1]
    assert len(stops(view)) == 8
    last = scenes(view)[-1]
    names = [next(m.text for m in last.marks if m.id == f"name{side}") for side in (0, 1)]
    assert names == (["all_reduce by ring", "all_reduce by direct"] if swapped else
                     ["all_reduce by direct", "all_reduce by ring"])  # fmt: skip


def test_other_buffers_are_told():
    for arrays, words in (
        ([x + 1 for x in ranks_of(3)], "they began with other numbers"),
        (ranks_of(3, 6), "their buffers differ in size"),
        (ranks_of(4), "one has 3 ranks, the other 4"),
    ):
        a, b = told(collective("all_reduce", "ring", ranks_of(3))), told(collective("all_reduce", "naive", arrays))
        assert words in scenes(CompareCollectives(a, b))[-1].caption


def test_boxes_of_the_two_pictures_lie_beside_or_below_each_other():
    for n in (2, 4, 8):
        last = scenes(CompareCollectives(ran("ring", "tree", n=n)))[-1]
        left, right = ([b for b in last.nodes if b.id.startswith(side)] for side in ("a:", "b:"))
        assert (max(b.x + b.width / 2 for b in left) <= min(b.x - b.width / 2 for b in right)
                or max(b.y + b.height / 2 for b in left) <= min(b.y - b.height / 2 for b in right))  # fmt: skip
        assert max(b.x for b in last.nodes) < last.extent[0]
        assert max(b.y for b in last.nodes) < last.extent[1]
        assert node(last, "a:r0").aria.startswith("rank 0, sent ")


def test_a_recording_with_one_collective_says_how_to_get_two():
    view = CompareCollectives(recorded("all_reduce", "ring", [np.ones(2)] * 2))
    assert "two collectives of ranks beside each other" in view.picture_at(len(view.recording)).caption


def test_something_else_than_two_collectives_is_refused_in_three_lines():
    for odd in (3, (1,), (0, 1, 2)):
        with pytest.raises(ViewError, match="two collectives are compared") as caught:
            CompareCollectives(ran("ring", "tree", n=2), collectives=odd)
        assert len(str(caught.value).splitlines()) == 3
