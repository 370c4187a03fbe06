"""Who is named when a run does not go on: the rank that keeps it up, and no other, whoever waits for it."""

import re

import numpy as np
import pytest

from lab.errors import LostRankError, MeshError, RunError
from lab.parallel import run_local
from lab.parallel.cluster.blame import Place, blame, places_in_words
from lab.parallel.ranks.threads import run_ranks
from lab.parallel.transport import sockets
from tests.parallel import programs
from tests.slices import sliced

LOST, DIFFERENT = LostRankError, MeshError
AT = r" at programs\.py:\d+"
SUM, CAST, POINT = rf"all_reduce ring float64\[3\]{AT}", rf"broadcast flat float64\[3\] root \d{AT}", rf"message .*{AT}"

ROLES = [
    # two ranks
    ("sums, loops", LOST, rf"rank 1 has not made this call: rank 0 waited too long in {SUM}"),
    ("loops, sums", LOST, rf"rank 0 has not made this call: rank 1 waited too long in {SUM}"),
    ("sums, ends", DIFFERENT, rf"rank 1 has ended its program, and rank 0 waits for it\ngiven: rank 0: {SUM}"),
    ("ends, sums", DIFFERENT, rf"rank 0 has ended its program, and rank 1 waits for it\ngiven: rank 1: {SUM}"),
    ("root 1, ends", DIFFERENT, rf"rank 1 has ended its program, and rank 0 waits for it\ngiven: rank 0: {CAST}"),
    ("from 1, loops", LOST, rf"rank 1 has not made this call: rank 0 waited too long in {POINT}"),
    ("sums, stops", LOST, rf"rank 1 does not answer: rank 0 waited too long in {SUM}"),
    ("stops, from 0", LOST, rf"rank 0 does not answer: rank 1 waited too long in {POINT}"),
    ("root 1, root 0", DIFFERENT, rf"ranks 0 and 1 make different calls\ngiven: rank \d: {CAST}; rank \d: {CAST}"),
    ("root 1, sums", DIFFERENT, r"ranks 0 and 1 make different calls\n"),
    ("from 1, sums", DIFFERENT, r"ranks 0 and 1 make different calls\n"),
    ("from 1, from 0", DIFFERENT, rf"ranks \[0, 1\] wait for each other: rank 0 in {POINT}; rank 1 in {POINT}"),
    ("root 1, from 0", DIFFERENT, rf"ranks \[0, 1\] wait for each other: rank 0 in {CAST}; rank 1 in {POINT}"),
    # three
    ("sums, loops, ends", DIFFERENT, r"rank 2 has ended its program, and rank 0 waits for it"),
    ("sums, ends, loops", DIFFERENT, r"rank 1 has ended its program, and rank 0 waits for it"),
    ("from 1, loops, ends", LOST, r"rank 1 has not made this call: rank 0 waited too long"),
    ("from 2, ends, loops", LOST, r"rank 2 has not made this call: rank 0 waited too long"),
    ("ends, from 2, loops", LOST, r"rank 2 has not made this call: rank 1 waited too long"),
    ("from 1, from 2, loops", LOST, r"rank 2 has not made this call: "),
    ("from 1, root 2, loops", LOST, r"rank 2 has not made this call: "),
    ("loops, sums, sums", LOST, rf"rank 0 has not made this call: rank \d waited too long in {SUM}"),
    ("from 1, from 2, ends", DIFFERENT, r"rank 2 has ended its program, and rank 1 waits for it"),
    ("from 1, from 2, stops", LOST, r"rank 2 does not answer: "),
    ("from 1, from 0, loops", DIFFERENT, r"ranks \[0, 1\] wait for each other: "),
    ("loops, from 2, from 1", DIFFERENT, r"ranks \[1, 2\] wait for each other: "),
    ("root 1, root 2, root 0", DIFFERENT, r"ranks \d and \d make different calls"),
    ("root 1, root 0, root 1", DIFFERENT, r"ranks 0 and 1 make different calls|ranks 1 and 2 make different calls"),
    # nobody waits in a call
    ("ends, stops", LOST, r"rank 1 is lost: its worker tcp://\S+ does not answer"),
    ("stops, loops, ends", LOST, r"rank 0 is lost: its worker tcp://\S+ does not answer"),
    ("stops", LOST, r"rank 0 is lost: its worker tcp://\S+ does not answer"),
    ("loops, holds", LOST, r"rank 1 is lost: its worker tcp://\S+ does not answer"),
]


@pytest.fixture
def the_next_launch_works(cluster):
    yield
    assert sorted(rank for rank, _ in cluster.launch(programs.where, world_size=4)) == [0, 1, 2, 3]


@pytest.mark.slow
@pytest.mark.usefixtures("the_next_launch_works")
@sliced("roles", "kind", "told", every=3)
@pytest.mark.parametrize(("roles", "kind", "told"), ROLES, ids=[roles for roles, _, _ in ROLES])
def test_the_rank_that_keeps_up_the_others_is_named(cluster, roles, kind, told):
    roles = roles.split(", ")
    with pytest.raises(kind) as caught:
        cluster.launch(programs.plays, roles, world_size=len(roles), timeout=1.0)
    assert re.match(told, str(caught.value)), str(caught.value)
    if kind is LostRankError:
        assert caught.value.rank == int(told.split()[1])


@pytest.mark.slow
def test_a_rank_that_computes_longer_than_any_time_out_is_let_alone(cluster):
    assert cluster.launch(programs.plays, ["ends", "computes 8"], world_size=2, timeout=1.0) == [0, 1]


@pytest.mark.slow
def test_a_launch_that_takes_too_long_tells_what_each_rank_did(cluster):
    with pytest.raises(RunError) as caught:
        cluster.launch(programs.plays, ["ends", "loops", "from 1"], world_size=3, time_limit=2.0)
    told = r"the launch took longer than 2 s: rank 1 computes; rank 2 waits in message .*:\d+; rank 0 has ended"
    assert re.match(told, str(caught.value)), str(caught.value)


# --- without a cluster


def test_ranks_that_only_wait_in_different_calls_are_told_at_once():
    given = r"ranks 0 and 1 make different calls\ngiven: rank \d: .*root \d at test_blame.*; rank \d: .* at test_blame"
    with pytest.raises(MeshError, match=given):
        run_ranks(lambda comm: comm.broadcast_(np.ones(2), root=1 - comm.rank), world_size=2, timeout=1000.0)


def test_a_rank_that_waits_long_in_a_call_that_all_make_disturbs_nothing():
    def program(comm):
        for peer in range(3):  # each is late once, for longer than the others keep silent
            if comm.rank == peer:
                comm.mailbox.wait(0.4)
            comm.broadcast_(array := np.full(2, comm.rank), root=peer)
            assert array.tolist() == [peer, peer]
            comm.all_reduce_(array)
        if comm.rank == 0:
            comm.mailbox.wait(0.4)
            comm.send(np.ones(1), 1)
        comm.barrier()
        return float(comm.recv(np.zeros(1), 0)[0]) if comm.rank == 1 else None

    assert run_ranks(program, world_size=3) == [None, 1.0, None]
    assert run_local("broadcast", "flat", [np.zeros(1), np.ones(1)], root=1)[0].tolist() == [1.0]


def test_ranks_that_tell_at_every_wait_in_which_call_they_are_disturb_nothing(monkeypatch):
    """One that only sends reads none of it, up to its end."""
    monkeypatch.setattr(sockets, "NOTE", 0.0)

    def program(comm):
        array = np.zeros(64)
        for step in range(2000):
            comm.broadcast_(np.full(64, float(step)) if comm.rank == 0 else array)
        for step in range(200):
            comm.all_reduce_(array, "naive" if step % 2 else "ring")
            array /= 3
            comm.send(array, (comm.rank + 1) % 3, tag=step)
            comm.recv(array, (comm.rank + 2) % 3, tag=step)
            comm.barrier()
        return array.tolist()

    results = run_ranks(program, world_size=3)
    assert results == [results[1]] * 3


WAITS = {0: Place("waits", "recv at a:1", (1,)), 1: Place("waits", "recv at a:2", (2,))}


def test_whoever_does_not_answer_is_blamed_before_one_that_computes():
    places = {0: Place("waits", "sum at a:1", (1, 2)), 1: Place("computes"), 2: None}
    assert blame(0, "sum at a:1", [1, 2], places).rank == 2


def test_a_wait_for_another_call_tells_both_calls():
    places = WAITS | {1: Place("waits", "send at a:2", (2,)), 2: Place("computes")}
    told = "rank 2 has not made this call: rank 1 waits in send at a:2, and rank 0 waited too long in recv at a:1"
    assert blame(0, "recv at a:1", [1], places).why == told


def test_a_rank_that_nobody_waits_for_is_not_blamed():
    places = WAITS | {2: Place("ended"), 3: Place("computes"), 4: None}
    verdict = blame(0, "recv at a:1", [1], places)
    assert verdict.rank == 2
    assert verdict.why.startswith("rank 2 has ended without making this call")


def test_a_circle_is_told_without_who_leads_to_it():
    places = WAITS | {2: Place("waits", "recv at a:3", (1,))}
    assert blame(0, "recv at a:1", [1], places).why == (
        "ranks [1, 2] wait for each other: rank 1 in recv at a:2; rank 2 in recv at a:3"
    )


def test_of_many_ranks_four_are_told():
    assert places_in_words({rank: Place("computes") for rank in range(9)}).endswith("rank 3 computes; and 5 more")
