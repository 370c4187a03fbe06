"""RingView where not all is well or not all is there: nothing yet, ranks missing, lost, wrong, or too many."""

from __future__ import annotations

import numpy as np
import pytest

import lab
from lab.events import RankFinished, RankLost, bus
from lab.parallel import Recv, Send, run_local, run_ranks
from tests.widgets.golden_ranks import as_rank, collective, ranks_of, told
from tests.widgets.looking import cells, node, recorded, scenes, stops
from widgets import Player, RingView
from widgets.pictures.measure import text_width
from widgets.pictures.tree import tree_of

# --- not all of it ---


def test_nothing_recorded_says_how_to_record():
    rec = told([])
    view = RingView(rec)
    assert view.picture_at(0).nodes == ()
    assert view.text_at(0).startswith("RingView shows a collective of ranks")
    assert Player(view).text.startswith("1 of 1: RingView shows a collective of ranks")


def test_while_recording_the_newest_is_shown_and_who_is_missing_is_named():
    with lab.record(detail="value") as rec:
        view = RingView(rec)
        assert view.text_at(0) == "No collective yet: the first comm.all_reduce_ of a rank shows here."
        events = collective("all_reduce", "ring", ranks_of(4))
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


def test_a_rank_that_left_is_not_judged_before_all_have_told_what_they_did():
    """Each rank's events come in batches of their own, so those of one that left may be there before another's."""
    events = collective("all_reduce", "ring", ranks_of(3))
    of_one = [(rank, event) for rank, event in events if rank == 1]
    late = [pair for pair in events if pair not in of_one]
    for n in (0, len(late) // 2, len(late) - 1):
        scene = scenes(RingView(told([*of_one, *late[:n]])))[-1]
        assert {node.state for node in scene.nodes} & {"trouble"} == set(), n
    end = scenes(RingView(told([*of_one, *late])))[-1]
    assert {node(end, f"r{rank}").state for rank in range(3)} == {"done"}


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


# --- a launch that failed ---


def test_who_raised_is_drawn_and_told_and_that_the_others_were_ended():
    events = collective("all_reduce", "ring", ranks_of(4))[:10]
    failed = (2, RankFinished(1, "failed", 1.0, "ValueError: bad luck"))
    stopped = [(rank, RankFinished(1, "stopped", 1.0, "LostRankError: rank 2 raised")) for rank in (0, 1, 3)]
    view = RingView(told([*events, failed, *stopped]))
    last = scenes(view)[-1]
    assert [node(last, f"r{rank}").state for rank in range(4)] == ["stopped", "stopped", "trouble", "stopped"]
    words = {mark.id: mark.text for mark in last.marks}
    assert [words[f"r{rank}.fate"] for rank in range(4)] == ["was ended", "was ended", "failed", "was ended"]
    assert view.sentence_at(stops(view)[-1]) == (
        "Rank 2 failed (ValueError: bad luck): all_reduce by ring did not end; ranks 0, 1 and 3 were ended with it."
    )
    assert "failed" not in view.sentence_at(stops(view)[0])


def test_a_rank_that_raised_after_all_had_left_is_told_too():
    events = collective("all_reduce", "ring", ranks_of(2))
    view = RingView(told([*events, (1, RankFinished(1, "failed", 1.0, "ValueError: late"))]))
    said = view.sentence_at(stops(view)[-1])
    assert said.startswith("All 2 ranks left")
    assert said.endswith("Afterwards rank 1 failed (ValueError: late).")


def test_buffers_that_differ_are_refused_and_the_picture_says_so():
    with lab.record(detail="value") as rec, pytest.raises(lab.LabError):
        run_ranks(lambda comm: comm.all_reduce_(np.ones(4 + comm.rank)), world_size=4)
    view = RingView(rec)
    end = scenes(view)[-1]
    words = {mark.id: mark.text for mark in end.marks}
    assert words["call"] == "all_reduce by ring: 4 ranks, buffers that differ, 32 B to 56 B"
    assert "book" not in words
    assert [n.state for n in end.nodes if "." not in n.id].count("trouble") >= 1
    assert "did not end" in view.sentence_at(len(rec))


def test_a_rank_is_not_said_to_be_lost_twice():
    events = collective("all_reduce", "ring", ranks_of(2))[:3]
    view = RingView(told([*events, (0, RankLost(1, 1, "w", "rank 1 was lost: its worker left"))]))
    assert view.sentence_at(stops(view)[-1]) == "Rank 1 was lost (its worker left): all_reduce by ring did not end."


# --- sums that are not right ---


def never_done(rank, world_size, n_chunks):
    """A plan that stops after its first step."""
    yield Send((rank + 1) % world_size, rank, rank + 1), Recv(
        (rank - 1) % world_size, (rank - 1) % world_size, (rank - 1) % world_size + 1, reduce=True
    )


def test_a_card_is_complete_only_if_each_of_its_chunks_is():
    with lab.record(detail="value") as rec:
        run_local("all_reduce", never_done, ranks_of(4))
    end = scenes(RingView(rec))[-1]
    assert {node(end, f"r{rank}").state for rank in range(4)} == {"trouble"}
    assert dict(end.legend)["trouble"] == "unfinished"
    assert "done" not in dict(end.legend)
    assert {mark.text for mark in end.marks if mark.id.endswith(".fate")} == {"unfinished"}


@pytest.mark.parametrize(
    ("array", "held", "due"),
    [(np.full(4, 100, np.int8), "−112", "400.0"), (np.full(4, 30000, np.float16), "∞", "120,000.0")],
)
def test_a_sum_that_its_type_cannot_hold_has_overflowed(array, held, due):
    with np.errstate(over="ignore"):
        view = RingView(told(collective("all_reduce", "ring", [array] * 4)))
    end = scenes(view)[-1]
    assert (node(end, "r0").state, node(end, "r0.0").state) == ("trouble", "trouble")
    assert dict(end.legend)["trouble"] == "overflowed"
    said = view.sentence_at(len(view.recording))
    assert said.startswith("All 4 ranks left, but the sum overflowed: rank 0 holds")
    assert f"holds {held} in c0, where the parts add up to {due}, which {array.dtype} cannot hold" in said


def test_integers_that_fit_have_not_overflowed():
    view = RingView(recorded("all_reduce", "ring", [np.full(4, 31, np.int8)] * 4))
    assert node(scenes(view)[-1], "r0").state == "done"
    assert "every rank holds the sum" in view.sentence_at(len(view.recording))


def test_long_numbers_are_shortened_by_powers_of_ten_and_complex_ones_stay_complex():
    powers = scenes(RingView(recorded("all_reduce", "ring", [np.full(8, 10.0**rank) for rank in range(8)])))
    assert [node(powers[0], f"r{rank}.0").label for rank in (4, 5, 7)] == ["10,000.0", "100,000.0", "1e7"]
    for scene in powers:
        for cell in (m for m in scene.nodes if "." in m.id):
            assert text_width(cell.label, 14, bold=True) <= cell.width - 26
    imaginary = scenes(RingView(recorded("all_reduce", "ring", [np.ones(4) * 1j] * 2)))
    assert node(imaginary[0], "r0.0").label == "1j 1j"


def test_the_moment_before_a_collective_names_which_one_it_is():
    two = [collective("all_reduce", "ring", ranks_of(2), number=number) for number in (0, 1)]
    rec = told([*two[0], *two[1]])
    words = "At this moment no rank has entered the collective that is shown (collective 2 of 2) yet."
    assert RingView(rec).text_at(0) == words


def test_a_plan_of_ones_own_is_measured_with_the_text_book_on_the_scale_of_the_ring():
    with lab.record(detail="value") as rec:
        run_local("all_reduce", never_done, ranks_of(4))
    own = {mark.id: mark for mark in scenes(RingView(rec))[-1].marks}
    ring = {mark.id: mark for mark in scenes(RingView(recorded("all_reduce", "ring", ranks_of(4))))[-1].marks}
    assert own["book"].text == "Text-book: by ring, each rank sends 2(n − 1)/n = 1.5 buffers; 2(n − 1) = 6 steps."
    assert own["r0.book"].x - own["r0.track"].x == ring["r0.book"].x - ring["r0.track"].x
    assert own["r0.used"].width == pytest.approx(ring["r0.used"].width / 6)
