"""RingView: what stands on the picture after each step is what the ranks told, in whatever order they told it."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import lab
from lab.errors import ViewError
from lab.events import CollectiveStarted, RankLost, RankStarted
from lab.parallel import COLLECTIVES, Recv, Send, check_plan, run_local, run_ranks, simulate_arrays
from tests.widgets.golden_ranks import collective, in_batches, ranks_of, told
from widgets import Player, RingView
from widgets.pictures.tree import tree_of
from widgets.views import paper
from widgets.views.calls import Calls

WORLDS = [1, 2, 3, 4, 5, 8]
PLANS = list(COLLECTIVES)


def stops(view):
    return [int(p) for p in view.stop_positions(view.recording)]


def scenes(view):
    return [view.picture_at(p) for p in stops(view)]


def node(scene, name):
    return {n.id: n for n in scene.nodes}[name]


def cells(scene):
    return {n.id: (n.label, n.sublabel) for n in scene.nodes if "." in n.id}


def moving(scene):
    return {e.id: (e.state, e.label) for e in scene.edges if e.state != "idle"}


def recorded(operation, algorithm, arrays):
    """A real run, on ranks that are threads."""
    with lab.record(detail="value") as rec:
        run_local(operation, algorithm, arrays)
    return rec


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
    assert view.text_at(len(view.recording)).splitlines()[1:] == [
        "rank 0: c0 12.0 (0+1), c1 14.0 (0+1); sent 16 B of 16 B by the text-book",
        "rank 1: c0 12.0 (0+1), c1 14.0 (0+1); sent 16 B of 16 B by the text-book",
        "Text-book: each rank sends 2(n − 1)/n = 1 buffer; 2(n − 1) = 2 steps.",
    ]


@pytest.mark.parametrize("n", WORLDS)
@pytest.mark.parametrize(("operation", "algorithm"), PLANS)
def test_after_the_last_step_every_cell_is_what_lock_step_computes(operation, algorithm, n):
    arrays = ranks_of(n)
    view = RingView(recorded(operation, algorithm, arrays))
    at = stops(view)
    ended = view.picture_at(at[-1])
    held = simulate_arrays(COLLECTIVES[operation, algorithm], arrays)
    plan = view._plan(view.state_at(at[-1]))
    for rank, k in itertools.product(range(n), range(len(plan.pieces))):
        value = held[rank][plan.pieces[k].start : plan.pieces[k].stop]
        shown = node(ended, f"r{rank}.{k}")
        assert shown.label in {" ".join(map(str, value)), f"µ {value.mean():.1f}"}
        assert shown.state in ({"done"} if plan.wanted[rank][k] else {"idle", "active"})
    assert len(at) == 2 + (check_plan(operation, algorithm, n).steps if n > 1 else 0)
    assert all(tree_of(view.picture_at(p))["type"] == "scene" for p in at)


@pytest.mark.parametrize("n", range(2, 9))
@pytest.mark.parametrize(("operation", "algorithm"), PLANS)
def test_the_text_book_says_what_the_plan_on_paper_sends(operation, algorithm, n):
    report = check_plan(operation, algorithm, n)
    shares = [paper.share(operation, algorithm, rank, 0, n) for rank in range(n)]
    assert shares == pytest.approx([chunks / n for chunks in report.chunks_sent])
    assert paper.COSTS[operation, algorithm].steps.of(n) == report.steps


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
    assert cells(scene)["r0.1"] == ("0+2+3", "")
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


# --- in whatever order it was told ---


@pytest.mark.parametrize(
    ("operation", "algorithm"), [("all_reduce", "ring"), ("all_reduce", "naive"), ("broadcast", "flat")]
)
def test_batches_of_ranks_in_any_order_give_the_same_pictures(operation, algorithm):
    events = collective(operation, algorithm, ranks_of(4))
    wanted = scenes(RingView(told(events)))
    for order in itertools.permutations(range(4)):
        view = RingView(told(in_batches(events, order)))
        assert all(a < b for a, b in itertools.pairwise(stops(view)))
        assert [(cells(s), moving(s)) for s in scenes(view)] == [(cells(s), moving(s)) for s in wanted]


@pytest.mark.parametrize("seed", range(20))
def test_any_order_that_keeps_each_rank_s_own_gives_the_same_pictures(seed):
    events = collective("all_reduce", "ring", ranks_of(3))
    rng, queues = random.Random(seed), [[e for e in events if e[0] == rank] for rank in range(3)]
    mixed = []
    while any(queues):
        mixed.append(rng.choice([queue for queue in queues if queue]).pop(0))
    wanted, got = (RingView(told(e)) for e in (events, mixed))
    assert [cells(s) for s in scenes(got)] == [cells(s) for s in scenes(wanted)]
    assert [got.sentence_at(p) for p in stops(got)] == [wanted.sentence_at(p) for p in stops(wanted)]


@pytest.mark.parametrize("number", [None, 0, 2])
def test_folding_many_equals_folding_one_by_one(number):
    events = collective("all_reduce", "ring", ranks_of(3))
    events += [(1, RankLost(1, 2, "w", "gone")), *collective("broadcast", "flat", ranks_of(3), number=2)]
    rec = told(events)
    view = RingView(rec)
    view._number = number
    from widgets.fold import Stretch

    one = view.start()
    for k, event in enumerate(rec, 1):
        one = view.fold(one, event)
        for cut in (0, k // 2):
            many = view.fold_many(view.fold_many(view.start(), Stretch(rec, 0, cut)), Stretch(rec, cut, k))
            assert many == one


def test_folding_never_changes_the_state_it_extends():
    rec = told(collective("all_reduce", "ring", ranks_of(3)))
    view = RingView(rec)
    first, second = (list(itertools.accumulate(rec, view.fold, initial=view.start())) for _ in range(2))
    assert first == second


# --- which collective ---


def three_calls():
    """A program that sums twice, with a broadcast between and a barrier at the end."""

    def program(comm):
        x = np.full(4, comm.rank + 1.0)
        comm.all_reduce_(x)
        comm.agree(np.zeros(1))
        comm.broadcast_(x)
        comm.all_reduce_(x, "naive")
        comm.barrier()

    with lab.record(detail="value") as rec:
        run_ranks(program, world_size=2)
        run_ranks(program, world_size=3)
    return rec


def heading(view):
    return next(m.text for m in view.picture_at(len(view.recording)).marks if m.id == "call")


def test_the_latest_that_is_no_barrier_is_shown_and_any_can_be_chosen():
    rec = three_calls()
    assert heading(RingView(rec)).startswith("all_reduce by naive: 3 ranks")
    shown = [heading(RingView(rec, collective=k)) for k in range(8)]
    assert [text.split(",")[0] for text in shown] == [
        f"{name}: {n} ranks" for n in (2, 3)
        for name in ("all_reduce by ring", "broadcast by flat", "all_reduce by naive", "barrier by naive")
    ]  # fmt: skip
    assert heading(RingView(rec, collective=-1)) == shown[-1]
    first = RingView(rec, collective=0)
    assert first.sentence_at(stops(first)[1]).startswith("Step 1 of 2: rank 0 adds c0")


def test_one_that_is_not_there_is_refused_in_three_lines():
    with pytest.raises(ViewError, match="no such collective") as caught:
        RingView(three_calls(), collective=8)
    assert len(str(caught.value).splitlines()) == 3


def test_choosing_another_takes_the_player_along():
    rec = three_calls()
    view = RingView(rec, collective=0)
    player = Player(view)
    assert player.text.startswith("1 of 4: 2 ranks entered all_reduce by ring")
    view.choose(5)
    assert player.text.startswith("1 of 4: 3 ranks entered broadcast by flat")
    player.to_end()
    view.choose(4)
    assert player.text.startswith("6 of 6: All 3 ranks left")


def test_the_buttons_go_from_call_to_call():
    view = RingView(three_calls(), collective=0)
    controls, _ = view.widget.children
    back, on, words = controls.children
    assert (back.disabled, words.value) == (True, "collective 1 of 8")
    on.click()
    assert (back.disabled, words.value) == (False, "collective 2 of 8")
    assert heading(view).startswith("broadcast")
    view.dispose()


def test_a_rank_that_enters_the_next_launch_first_belongs_to_it():
    """Generations tell launches apart even if their worlds are alike and the first one broke off."""
    first = [(r, RankStarted(1, 3, "w", 1)) for r in range(3)] + collective("all_reduce", "ring", ranks_of(3))[:2]
    second = [(r, RankStarted(2, 3, "w", 1)) for r in range(3)]
    rec = told(first + second + in_batches(collective("all_reduce", "ring", ranks_of(3)), (2, 0, 1)))
    calls = Calls(rec)
    calls.update()
    assert [(c.number, c.first) for c in (calls[0], calls[1])] == [(0, 3), (0, 8)]
    assert RingView(rec).sentence_at(len(rec)).startswith("All 3 ranks left")
    assert RingView(rec, collective=0).sentence_at(len(rec)).startswith("2 of 3 ranks entered")


def test_a_thousand_collectives_keep_the_memory_of_one():
    events = [e for k in range(1000) for e in collective("all_reduce", "ring", ranks_of(2), number=k)]
    view = RingView(told(events))
    at = stops(view)
    assert len(at) == 4
    assert view.sentence_at(at[-1]).startswith("All 2 ranks left")
    assert len(view.state_at(at[-1]).hops) == 4


# --- not all of it ---


def test_nothing_recorded_says_how_to_record():
    rec = told([])
    view = RingView(rec)
    assert view.picture_at(0).nodes == ()
    assert view.text_at(0).startswith("No collective was recorded")
    assert Player(view).text.startswith("1 of 1: No collective was recorded")


def test_while_recording_the_newest_is_shown_and_who_is_missing_is_named():
    with lab.record(detail="value") as rec:
        view = RingView(rec)
        assert view.text_at(0) == "No collective yet: the first comm.all_reduce_ of a rank shows here."
        events = collective("all_reduce", "ring", ranks_of(4))
        from lab.events import bus
        from tests.widgets.golden_ranks import as_rank

        def emit(some):
            for rank, event in some:
                with as_rank(rank):
                    bus.emit(event)
            return view.sentence_at(len(rec))

        assert emit(events[:1]) == "1 of 4 ranks entered all_reduce by ring; ranks 1, 2 and 3 are not here yet."
        assert node(view.picture_at(len(rec)), "r3").state == "waiting"
        assert "r3.0" not in cells(view.picture_at(len(rec)))
        assert emit(events[1:6]).startswith("Step 1 of 6: rank")
        assert emit(events[6:-2]) == "2 of 4 ranks left all_reduce."
        assert emit(events[-2:]).startswith("All 4 ranks left")


def test_one_rank_alone_has_nothing_to_move():
    view = RingView(recorded("all_reduce", "ring", [np.ones(3)]))
    assert view.sentence_at(stops(view)[-1]) == "One rank: every rank holds the sum of all parts, without a step."
    assert "nothing moves" in scenes(view)[-1].caption
    assert all(n.state == "done" for n in scenes(view)[-1].nodes)


def test_a_lost_rank_is_drawn_as_lost_and_the_collective_as_not_ended():
    events = collective("all_reduce", "ring", ranks_of(4))[:10]
    view = RingView(told([*events, (0, RankLost(1, 2, "w", "the worker left"))]))
    last = scenes(view)[-1]
    assert node(last, "r2").state == "trouble"
    assert "lost" in {mark.text for mark in last.marks}
    assert view.sentence_at(stops(view)[-1]) == "Rank 2 was lost (the worker left): all_reduce by ring did not end."


def double(rank, world_size, n_chunks):
    """A wrong plan: everything is added twice."""
    for _ in range(2):
        yield Send((rank + 1) % world_size, 0, n_chunks), Recv((rank - 1) % world_size, 0, n_chunks, reduce=True)


def test_a_wrong_plan_that_ran_is_said_to_be_no_sum():
    with lab.record(detail="value") as rec:
        run_local("all_reduce", double, ranks_of(3))
    view = RingView(rec)
    end = scenes(view)[-1]
    assert node(end, "r0.0").state == "trouble"
    assert "All 3 ranks left, but this is no all_reduce: rank 0 holds" in view.sentence_at(len(rec))
    assert cells(end)["r0.0"][1] == "0+1+2+2"


def test_sixteen_ranks_say_how_many_chunks_are_complete():
    view = RingView(recorded("all_reduce", "ring", ranks_of(16)))
    at = scenes(view)
    assert [node(at[k], "r3.all").label for k in (0, 15, 31)] == ["0 of 16", "1 of 16", "16 of 16"]
    assert len(at) == 32
    assert tree_of(at[-1])["nodes"]


@pytest.mark.parametrize("n", [2, 8])
def test_no_card_changes_its_place_while_it_plays(n):
    at = scenes(RingView(recorded("all_reduce", "ring", ranks_of(n))))
    places = [{m.id: m[1:5] for m in scene.nodes} for scene in at]
    assert all(place == places[0] for place in places)
    assert len({scene.extent for scene in at}) == 1


@pytest.mark.parametrize(("n", "algorithm"), [(2, "ring"), (4, "naive"), (8, "ring")])
def test_words_are_not_longer_than_their_room(n, algorithm):
    from widgets.pictures.measure import text_width

    for scene in scenes(RingView(recorded("all_reduce", algorithm, ranks_of(n)))):
        for cell in (m for m in scene.nodes if "." in m.id):
            assert text_width(cell.label, 14, bold=True) <= cell.width
            assert text_width(cell.sublabel, 12) <= cell.width
        names = {m.id: m for m in scene.nodes}
        for edge in scene.edges:
            a, b = names[edge.source], names[edge.target]
            if abs(a.y - b.y) < 1 and not edge.bends:
                assert text_width(edge.label, 12) <= abs(a.x - b.x) - a.width


def test_events_that_were_lost_are_told():
    rec = told(collective("all_reduce", "ring", ranks_of(2)), limit=7)
    assert "events were lost on the way" in RingView(rec).picture_at(len(rec)).caption


def test_a_call_that_never_began_in_the_part_that_is_looked_at_says_so():
    rec = three_calls()
    view = RingView(rec, collective=6)
    assert view.text_at(1).startswith("At this moment the collective that is shown (number 6) has not begun.")
    assert CollectiveStarted in view.listens
