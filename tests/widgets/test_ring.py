"""RingView: what stands on the picture after each step is what the ranks of a run held, sent and received."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import lab
from lab.parallel import COLLECTIVES, check_plan, chunks_of, run_local, simulate_arrays
from lab.parallel.paper.collectives.halving import power_below
from tests.widgets.golden_ranks import collective, ranks_of, told
from tests.widgets.looking import cells, moving, node, recorded, scenes, stops
from widgets import RingView
from widgets.pictures import theme
from widgets.pictures.measure import text_width
from widgets.pictures.tree import tree_of
from widgets.views.collective import paper

WORLDS = [1, 2, 3, 4, 5, 8]
PLANS = list(COLLECTIVES)


# --- what is drawn ---


def test_a_ring_of_three_step_by_step_with_the_numbers_of_the_run():
    view = RingView(recorded("all_reduce", "ring", ranks_of(3)))
    start, first, second, third, fourth, end = scenes(view)
    assert cells(start) == {f"r{r}.{k}": (f"{10.0 * r + k + 1}", f"{r}") for r in range(3) for k in range(3)}
    assert moving(start) == {}
    assert moving(first) == {
        "0>1": ("forward", "c2 += 3.0"), "1>2": ("forward", "c0 += 11.0"), "2>0": ("forward", "c1 += 22.0"),
    }  # fmt: skip
    assert cells(first)["r1.2"] == ("16.0", "0+1")
    assert cells(first)["r1.1"] == ("12.0", "1")
    assert cells(second)["r0.0"] == ("33.0", "all 3")
    assert (node(second, "r0.0").state, node(second, "r0.2").state) == ("done", "idle")
    assert node(first, "r0.1").state == "active"
    assert set(moving(third).values()) == {("store", "c0 = 33.0"), ("store", "c1 = 36.0"), ("store", "c2 = 39.0")}
    assert set(cells(fourth).values()) == {("33.0", "all 3"), ("36.0", "all 3"), ("39.0", "all 3")}
    assert cells(end) == cells(fourth)
    assert moving(end) == {}


def test_each_stop_says_what_happened():
    view = RingView(recorded("all_reduce", "ring", ranks_of(2)))
    assert [view.sentence_at(p) for p in stops(view)] == [
        "2 ranks entered all_reduce by ring; each holds its own part.",
        "Step 1 of 2: rank 0 adds c0 = 11.0 from rank 1, rank 1 adds c1 = 2.0 from rank 0.",
        "Step 2 of 2: rank 0 stores c1 = 14.0 from rank 1, rank 1 stores c0 = 12.0 from rank 0.",
        "All 2 ranks left after 2 steps: every rank holds the sum of all parts; each sent 16 B.",
    ]
    *lines, times = view.text_at(len(view.recording)).splitlines()[1:]
    assert lines == [
        "rank 0: c0 12.0 (0+1), c1 14.0 (0+1); sent 16 B of 16 B by the text-book",
        "rank 1: c0 12.0 (0+1), c1 14.0 (0+1); sent 16 B of 16 B by the text-book",
        "Text-book: each rank sends 2(n − 1)/n = 1 buffer; 2(n − 1) = 2 steps.",
        "Links: 2 links, each carried 16 B.",
    ]
    assert times.startswith("Time: steps were over ")


@pytest.mark.parametrize("n", WORLDS)
@pytest.mark.parametrize(("operation", "algorithm"), PLANS)
def test_after_the_last_step_every_cell_is_what_lock_step_computes(operation, algorithm, n):
    arrays = ranks_of(n, chunks_of(COLLECTIVES[operation, algorithm], n))
    view = RingView(recorded(operation, algorithm, arrays))
    at = stops(view)
    ended = view.picture_at(at[-1])
    held = simulate_arrays(COLLECTIVES[operation, algorithm], arrays)
    plan = view._plan(view.state_at(at[-1]))
    if plan.compact:
        assert [node(ended, f"r{rank}.all").state for rank in range(n)] == ["done"] * n
    for rank, k in itertools.product(range(n), range(len(plan.pieces) if not plan.compact else 0)):
        value = held[rank][plan.pieces[k].start : plan.pieces[k].stop]
        shown = node(ended, f"r{rank}.{k}")
        assert shown.label in ({" ".join(map(str, value)), f"µ {value.mean():.1f}"} if value.size else {"empty"})
        assert shown.state in ({"done"} if plan.wanted[rank][k] else {"idle", "active"})
    assert len(at) == 2 + (check_plan(operation, algorithm, n).steps if n > 1 else 0)
    assert all(tree_of(view.picture_at(p))["type"] == "scene" for p in at)


@pytest.mark.parametrize("n", range(2, 9))
@pytest.mark.parametrize(("operation", "algorithm"), PLANS)
def test_the_text_book_says_what_the_plan_on_paper_sends(operation, algorithm, n):
    halved = (operation, algorithm) == ("all_reduce", "halving")
    report = check_plan(operation, algorithm, n, power_below(n) if halved else None)
    shares = [paper.share(operation, algorithm, rank, 0, n) for rank in range(n)]
    assert shares == pytest.approx([chunks / report.n_chunks for chunks in report.chunks_sent])
    assert paper.steps(operation, algorithm, n) == report.steps
    found = paper.costs_of(operation, algorithm, n)
    if found is not None and found[0] == algorithm:  # and so do the formulas
        assert found[1].steps.of(n) == report.steps
        assert found[1].root.of(n) == pytest.approx(shares[0])
        assert found[1].others is None or [found[1].others.of(n)] * (n - 1) == pytest.approx(shares[1:])


@pytest.mark.parametrize("n", [2, 4])
def test_the_bars_end_where_the_tick_of_the_text_book_is(n):
    view = RingView(recorded("all_reduce", "ring", ranks_of(n)))
    start, end = scenes(view)[0], scenes(view)[-1]
    for scene, full in ((start, False), (end, True)):
        marks = {mark.id: mark for mark in scene.marks}
        for rank in range(n):
            used, book = marks[f"r{rank}.used"], marks[f"r{rank}.book"]
            assert (used.x + used.width == pytest.approx(book.x)) == full
            assert marks[f"r{rank}.sent"].text == (f"sent {16 * (n - 1)} B" if full else "sent 0 B")


def test_the_root_of_a_naive_sum_sends_most_and_stands_above():
    view = RingView(recorded("all_reduce", "naive", ranks_of(4)))
    end = scenes(view)[-1]
    marks = {mark.id: mark.text for mark in end.marks}
    assert [marks[f"r{rank}.share"] for rank in range(4)] == ["3×", "1×", "1×", "1×"]
    assert "rank 0 sends n − 1 = 3 buffers, the others 1" in marks["book"]
    assert all(node(end, "r0").y < node(end, f"r{rank}").y for rank in (1, 2, 3))
    assert view.sentence_at(len(view.recording)).endswith("rank 0 sent most, 96 B.")


def test_another_root_plays_rank_0():
    view = RingView(told(collective("broadcast", "flat", ranks_of(4, 2), root=2)))
    end = scenes(view)[-1]
    assert set(cells(end).values()) == {("21.0 22.0", "2")}
    assert node(scenes(view)[0], "r2.0").state == "done"
    said = view.sentence_at(len(view.recording))
    assert said == "All 4 ranks left after 3 steps: every rank holds what rank 2 had; rank 2 sent most, 48 B."


def test_chunks_of_many_numbers_show_their_mean_and_say_their_norm():
    arrays = [np.full(400, rank + 1.0) for rank in range(2)]
    scene = scenes(RingView(recorded("all_reduce", "ring", arrays)))[-1]
    assert node(scene, "r0.1").label == "µ 3.0"
    assert "200 numbers of mean 3.0 and norm 42.43, parts of all 2 ranks" in node(scene, "r0.1").aria
    assert "their mean µ" in scene.caption


def test_without_values_whose_parts_are_in_it_is_all_that_is_said():
    with lab.record(detail="shape") as rec:
        run_local("all_reduce", "ring", ranks_of(4))
    scene = scenes(RingView(rec))[2]
    assert cells(scene)["r0.1"] == ("", "of 0+2+3")
    assert moving(scene)["0>1"] == ("forward", "+= c2")
    assert "its numbers were not recorded" in scene.caption


def test_a_size_that_does_not_divide_and_a_chunk_without_numbers():
    arrays = [np.arange(3.0) + rank for rank in range(4)]
    end = scenes(RingView(recorded("all_reduce", "ring", arrays)))[-1]
    assert [node(end, f"r2.{k}").label for k in range(4)] == ["empty", "6.0", "10.0", "14.0"]


def test_nan_is_trouble():
    arrays = [np.array([1.0, np.nan]), np.ones(2)]
    end = scenes(RingView(recorded("all_reduce", "ring", arrays)))[-1]
    assert (node(end, "r0.0").state, node(end, "r0.1").state, node(end, "r1.1").label) == ("done", "trouble", "nan")


@pytest.mark.parametrize("n", [2, 3, 4, 6])
@pytest.mark.parametrize("scale", [1.0, 1e-7, -1234.5])
def test_all_cells_of_a_picture_write_equal_numbers_alike_with_four_digits(n, scale):
    view = RingView(recorded("all_reduce", "ring", [np.full(2 * n, scale * 10.0**rank) for rank in range(n)]))
    labels = [text for scene in scenes(view) for text, _ in cells(scene).values()]
    assert len({text.startswith("µ ") for text in labels}) == 1, labels
    total = sum(scale * 10.0**rank for rank in range(n))
    assert theme.short(total) in labels[-1], labels[-1]
    for scene in scenes(view):
        for cell in scene.nodes:
            assert "." not in cell.id or text_width(cell.label, 14.0, bold=True) <= cell.width


def test_a_whole_number_and_its_neighbour_look_alike():
    view = RingView(recorded("all_reduce", "ring", [np.full(40, v) for v in (1.0, 10.0, 100.0, 1000.0)]))
    labels = {text for scene in scenes(view) for text, _ in cells(scene).values()}
    assert {"µ 1.0", "µ 10.0", "µ 1,000.0", "µ 1,111.0"} <= labels
    assert not [text for text in labels if "e" in text]
