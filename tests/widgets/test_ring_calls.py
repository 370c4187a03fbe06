"""RingView: events in any order give the same pictures; of many collectives one is shown, and any can be chosen."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import lab
from lab.errors import ViewError
from lab.events import RankLost, RankStarted, record
from lab.parallel import run_ranks
from tests.widgets.golden_ranks import collective, in_batches, ranks_of, told
from tests.widgets.looking import cells, moving, scenes, stops
from widgets import Player, RingView
from widgets.fold import Stretch
from widgets.views.collective.calls import Calls

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
        for name in ("all_reduce by ring", "broadcast by flat", "all_reduce by naive", "barrier by dissemination")
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


def test_a_call_that_never_began_in_the_part_that_is_looked_at_says_so():
    rec = three_calls()
    view = RingView(rec, collective=6)
    assert view.text_at(1) == (
        "At this moment no rank has entered the collective that is shown (collective 7 of 8) yet."
    )


def test_the_caption_says_which_of_several_collectives_it_is():
    one, other = (collective(name, way, ranks_of(2), number=k)
                  for k, (name, way) in enumerate([("all_reduce", "ring"), ("broadcast", "flat")]))  # fmt: skip
    alone, both = told(one), told([*one, *other])
    assert RingView(alone).picture_at(len(alone)).caption.startswith("Each cell ")
    first, last = (RingView(both, collective=k) for k in (0, 1))
    assert first.picture_at(len(both)).caption.startswith("All-reduce (collective 1 of 2). Each cell ")
    assert last.picture_at(len(both)).caption.startswith("Broadcast (collective 2 of 2). Each cell ")
    assert "in a notebook" not in RingView(alone).picture_at(len(alone)).caption
    assert " RingView(rec, collective=1) shows the second in a notebook." in first.picture_at(len(both)).caption
    assert " RingView(rec, collective=0) shows the first in a notebook." in last.picture_at(len(both)).caption


def test_a_barrier_is_called_so_and_told_by_what_it_is_made_of():
    with record() as rec:
        run_ranks(lambda comm: comm.barrier(), world_size=2)
    view = RingView(rec)
    entered = view.text_at(int(view.stop_positions(rec)[0])).splitlines()[0]
    assert "entered the barrier" in entered
    assert "dissemination" not in entered
    assert view.picture_at(len(rec)).caption.startswith("In a barrier each rank tells those 1, 2, 4 ... after it")


@pytest.mark.parametrize("n_told", [3, 8])
def test_after_a_loss_the_collective_is_shown_in_which_the_rank_was_lost_and_named(n_told):
    broken = collective("all_reduce", "ring", ranks_of(3), number=1)[:n_told]
    view = RingView(told([*collective("all_reduce", "ring", ranks_of(3)), *broken,
                          (0, RankLost(0, 1, "w", "killed"))]))  # fmt: skip
    assert view._call().number == 1
    said = "Rank 1 was lost in collective 2 (killed): "
    assert view.sentence_at(len(view.recording)).startswith(said)
    assert said in view.picture_at(len(view.recording)).caption


def test_a_rank_that_was_lost_between_two_collectives_is_told_with_the_last_one():
    view = RingView(told([*collective("all_reduce", "ring", ranks_of(3)), (0, RankLost(0, 1, "w", "killed"))]))
    for words in (view.sentence_at(len(view.recording)), view.picture_at(len(view.recording)).caption):
        assert "Afterwards rank 1 was lost (killed)." in words


def test_calls_of_groups_are_left_out_and_do_not_disturb_those_of_all():
    def program(comm):
        pair = comm.split(comm.rank % 2)
        pair.all_reduce_(np.ones(4))
        comm.all_reduce_(np.ones(8))
        pair.all_reduce_(np.ones(4))

    with lab.record() as rec:
        run_ranks(program, world_size=4)
    view = RingView(rec)
    assert view.sentence_at(int(view.stop_positions(rec)[-1])).startswith("All 4 ranks left after 6 steps")
    assert heading(RingView(rec, collective=-1)) == heading(RingView(rec, collective=0)) == heading(view)
