"""Plans as values: what a hop may be, compiled rows, where a chunk lies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lab
from lab.errors import MeshError, PlanError
from lab.events.catalogue import ChunkMoved, CollectiveStarted
from lab.parallel import (
    COLLECTIVES,
    Recv,
    Send,
    block,
    check_plan,
    chunks_of,
    collective,
    compile_plan,
    elements,
    plan_of,
    run_local,
    simulate_arrays,
)
from lab.parallel.paper.collectives.direct import others
from lab.parallel.paper.collectives.double_tree import two_trees
from lab.parallel.paper.collectives.moving import partner
from lab.parallel.paper.plans import CHUNKS_PER_RANK, MAX_STEPS, plan_steps, steps_of
from tests.parallel.cuts import cuts

RING = COLLECTIVES["all_reduce", "ring"]


@given(st.integers(1, 64), st.integers(1, 70), st.integers(0, 300))
def test_blocks_and_chunks_tile_the_buffer_and_differ_by_at_most_one(world_size, n_chunks, n_elements):
    blocks = [block(owner, world_size, n_chunks) for owner in range(world_size)]
    assert [c for start, stop in blocks for c in range(start, stop)] == list(range(n_chunks))
    parts = [elements(c, c + 1, n_chunks, n_elements) for c in range(n_chunks)]
    assert [i for part in parts for i in range(part.start, part.stop)] == list(range(n_elements))
    sizes = [part.stop - part.start for part in parts]
    assert max(sizes) - min(sizes) <= 1
    start, stop = blocks[-1]
    whole = elements(start, stop, n_chunks, n_elements)
    assert whole.stop - whole.start == sum(sizes[start:stop])


def decoded(rows):
    """The steps that have hops, from compiled rows."""
    kinds = (lambda p, a, b, at: Send(p, a, b), lambda p, a, b, at: Recv(p, a, b, False, None if at == a else at),
             lambda p, a, b, at: Recv(p, a, b, True, None if at == a else at))  # fmt: skip
    steps = {}
    for step, kind, *hop in rows.tolist():
        steps.setdefault(step, []).append(kinds[kind](*hop))
    return {at: tuple(hops) for at, hops in steps.items()}


@pytest.mark.parametrize("key", COLLECTIVES, ids="-".join)
@pytest.mark.parametrize("n_chunks", [1, 3, 5, 8])
def test_compiled_rows_say_what_the_generator_says(key, n_chunks):
    (n_chunks,) = cuts(key[0], 5, [n_chunks])
    for rank in range(5):
        rows = compile_plan(COLLECTIVES[key], rank, 5, n_chunks)
        assert rows.dtype == np.int64
        assert rows.shape[1] == 6
        steps = steps_of(COLLECTIVES[key], rank, 5, n_chunks)
        assert decoded(rows) == {at: step for at, step in enumerate(steps) if step}


def test_a_plan_is_compiled_once_and_its_rows_cannot_be_changed():
    calls = []

    def plan(rank, world_size, n_chunks):
        calls.append(rank)
        yield Send(1 - rank, 0, n_chunks), Recv(1 - rank, 0, n_chunks, False)

    first = compile_plan(plan, 0, 2)
    assert compile_plan(plan, 0, 2, 2) is first
    assert calls == [0]
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 7


def test_a_world_of_one_has_no_rows():
    for plan in COLLECTIVES.values():
        assert compile_plan(plan, 0, 1).shape == (0, 6)


def test_another_root_turns_the_plan_around_the_circle():
    broadcast = COLLECTIVES["broadcast", "flat"]
    assert compile_plan(broadcast, 2, 4, 1, root=2)[:, 2].tolist() == [3, 0, 1]
    assert [compile_plan(broadcast, rank, 4, 1, root=2)[:, 2].tolist() for rank in (3, 0, 1)] == [[2], [2], [2]]


@pytest.mark.parametrize("key", COLLECTIVES, ids="-".join)
def test_sender_and_receiver_of_a_hop_name_the_same_step(key):
    for n_chunks in cuts(key[0], 5, [1, 4, 5, 9]):
        steps = [steps_of(COLLECTIVES[key], rank, 5, n_chunks) for rank in range(5)]
        sent = {(at, rank, h.peer, h.start, h.stop) for rank, own in enumerate(steps)
                for at, step in enumerate(own) for h in step if isinstance(h, Send)}  # fmt: skip
        received = {(at, h.peer, rank, h.start, h.stop) for rank, own in enumerate(steps)
                    for at, step in enumerate(own) for h in step if isinstance(h, Recv)}  # fmt: skip
        assert sent == received


@pytest.mark.parametrize("key", COLLECTIVES, ids="-".join)
def test_only_those_who_add_many_at_once_have_two_receives_of_a_step_meet_in_a_chunk(key):
    meet = False
    for rank in range(6):
        for step in steps_of(COLLECTIVES[key], rank, 6):
            places = [chunk for hop in step if isinstance(hop, Recv) for chunk in range(*hop.place)]
            meet |= len(places) > len(set(places))
    assert meet == (key in {("all_reduce", "direct"), ("reduce_scatter", "direct"), ("all_reduce", "double_tree")})


def test_a_single_hop_is_a_step_and_numpys_integers_are_numbers():
    def plan(rank, world_size, n_chunks):
        yield Send(np.int64(1), np.int32(0), 2)

    assert steps_of(plan, 0, 2) == [(Send(1, 0, 2),)]


def endless(rank, world_size, n_chunks):
    while True:
        yield ()


WRONG = {
    "not a rank": (lambda: Send(4, 0, 1), """rank 0, step 1: sends to rank 4, which does not exist
given: Send(peer=4, start=0, stop=1)
hint:  ranks are 0 to 3: take the neighbour modulo world_size"""),
    "below 0": (lambda: Recv(-1, 0, 1, True), "rank 0, step 1: receives from rank -1, which does not exist"),
    "itself": (lambda: Send(0, 0, 1), "rank 0, step 1: sends to itself"),
    "not a chunk": (lambda: Send(1, 4, 5), "rank 0, step 1: sends chunks from 4 up to 5, which do not exist"),
    "backwards": (lambda: Send(1, 2, 1), "rank 0, step 1: sends chunks from 2 up to 1, which do not exist"),
    "a word for reduce": (
        lambda: Recv(1, 0, 1, reduce="no"), "rank 0, step 1: receives with a reduce that is neither True nor False",
    ),
    "a fraction of a place": (
        lambda: Recv(1, 0, 1, False, 0.5), "rank 0, step 1: receives with a place that is not whole",
    ),
    "not a place": (lambda: Recv(1, 0, 2, False, 3), "rank 0, step 1: receives to places from 3 up to 5"),
    "a place below 0": (lambda: Recv(1, 0, 2, False, -1), "rank 0, step 1: receives to places from -1 up to 1"),
    "a fraction": (lambda: Send(1, 0.5, 1), "rank 0, step 1: sends with a number that is not whole"),
    "another thing": (lambda: (1, 0, 1), "rank 0, step 1: a step is made of Send and Recv"),
    "nothing": (lambda: None, "rank 0, step 1: a step is made of Send and Recv\ngiven: None"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_hop_that_no_rank_could_do_is_named(name):
    hop, text = WRONG[name]

    def plan(rank, world_size, n_chunks):
        yield (Send(1, 0, 1),)
        yield hop()

    with pytest.raises(PlanError) as caught:
        compile_plan(plan, 0, 4)
    assert str(caught.value).startswith(text)
    assert (caught.value.rank, caught.value.step) == (0, 1)


def test_a_hop_of_no_chunks_is_left_out_and_its_step_kept():
    def plan(rank, world_size, n_chunks):
        yield (Send(1, 1, 1),)
        yield (Send(1, 0, 1),)

    assert compile_plan(plan, 0, 2).tolist() == [[1, 0, 1, 0, 1, 0]]


def swap(rank, world_size, n_chunks):
    """Chunk 0 of the one becomes chunk 1 of the other."""
    yield Send(1 - rank, 0, 1), Recv(1 - rank, 0, 1, reduce=False, at=1)


def test_a_chunk_may_be_stored_in_another_place_than_it_had():
    assert compile_plan(swap, 0, 2).tolist() == [[0, 0, 1, 0, 1, 0], [0, 1, 1, 0, 1, 1]]
    arrays = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]
    want = [[1.0, 3.0], [3.0, 1.0]]
    assert [x.tolist() for x in simulate_arrays(swap, arrays)] == want
    assert [x.tolist() for x in run_local("shift", swap, arrays)] == want


def test_a_place_that_is_the_chunks_own_is_no_other_place():
    def plan(rank, world_size, n_chunks):
        yield Send(1 - rank, 0, 1), Recv(1 - rank, 0, 1, reduce=False, at=np.int64(0))

    assert steps_of(plan, 0, 2) == [(Send(1, 0, 1), Recv(1, 0, 1, False))]


@pytest.mark.parametrize("run", [simulate_arrays, lambda plan, arrays: run_local("shift", plan, arrays)])
def test_chunks_of_two_sizes_do_not_change_places(run):
    with pytest.raises(MeshError, match="must have one size\ngiven: 3 elements in 2 chunks\nhint:  pad the array to 4"):
        run(swap, [np.ones(3), np.ones(3)])


def test_a_plan_may_want_more_chunks_than_there_are_ranks():
    def pieces(rank, world_size, n_chunks):
        yield from ((Send(1 - rank, c, c + 1), Recv(1 - rank, c, c + 1, reduce=True)) for c in range(n_chunks))

    before = dict(COLLECTIVES)
    collective("all_reduce", "pieces of this test", chunks_per_rank=4)(pieces)
    try:
        assert chunks_of(pieces, 2) == 8
        assert len(compile_plan(pieces, 0, 2)) == 16
        assert (len(steps_of(pieces, 0, 2)), plan_steps(pieces, 2)) == (8, 8)
        assert check_plan("all_reduce", pieces, 2).n_chunks == 8
        assert len(steps_of(pieces, 0, 2, 3)) == 3
        with lab.record() as rec:
            results = run_local("all_reduce", "pieces of this test", [np.arange(16.0)] * 2)
        assert [x.tolist() for x in results] == [(2 * np.arange(16.0)).tolist()] * 2
        assert {event.n_chunks for event in rec if isinstance(event, CollectiveStarted)} == {8}
        moved = [event for event in rec if isinstance(event, ChunkMoved) and event.dst == 0]
        assert [(e.start, e.value.tolist()) for e in moved] == [(c, [4.0 * c, 4.0 * c + 2]) for c in range(8)]
    finally:
        COLLECTIVES.clear()
        COLLECTIVES.update(before)
        CHUNKS_PER_RANK.pop(pieces)


def test_chunks_for_each_rank_are_at_least_one():
    with pytest.raises(PlanError, match="chunks_per_rank is a whole number of at least 1\ngiven: chunks_per_rank=0"):
        collective("all_reduce", "none", chunks_per_rank=0)


def test_a_plan_without_yield_and_one_without_end_are_refused():
    with pytest.raises(PlanError, match="gave no steps\ngiven: None for rank 0\nhint:  a plan is a generator"):
        compile_plan(lambda rank, world_size, n_chunks: None, 0, 2)
    with pytest.raises(PlanError, match=f"come to an end\ngiven: rank 0 of 2 ranks has more than {MAX_STEPS:,} steps"):
        compile_plan(endless, 0, 2)


@pytest.mark.parametrize(
    ("rank", "world_size", "n_chunks", "said"),
    [
        (2, 2, 2, "the rank is none of this world\ngiven: rank=2, world_size=2\nhint:  ranks are 0 to 1"),
        (-1, 2, 2, "rank is a whole number of at least 0\ngiven: rank=-1\nhint:  ranks are 0 to 1"),
        (1, 1, 1, "the rank is none of this world\ngiven: rank=1, world_size=1\nhint:  the only rank is 0"),
        (0, 0, 1, "world_size is a whole number of at least 1\ngiven: world_size=0\nhint:  for example world_size=4"),
        (0, 2, 0, "n_chunks is a whole number of at least 1\ngiven: n_chunks=0\nhint:  for example n_chunks=4"),
        (0, 2, 2**80, "a buffer is not cut into so many chunks\ngiven: n_chunks=1,208,925,819,614,629,174,706,176"),
    ],
)
def test_a_rank_outside_its_world_is_refused_by_the_argument_that_is_wrong(rank, world_size, n_chunks, said):
    with pytest.raises(PlanError) as caught:
        compile_plan(RING, rank, world_size, n_chunks)
    assert str(caught.value).startswith(said)


def test_an_unknown_plan_is_answered_by_the_known_ones():
    with pytest.raises(PlanError, match="there is no plan 'star' for 'broadcast'\ngiven: known: flat, pipelined, tree"):
        plan_of("broadcast", "star")
    with pytest.raises(PlanError, match="there is no plan 'ring' for 'all_recude'\ngiven: known: all_gather, all_r"):
        plan_of("all_recude", "ring")
    assert plan_of("all_reduce", "ring") is RING
    assert plan_of("all_reduce", endless) is endless


def test_a_learners_own_error_is_not_hidden():
    def plan(rank, world_size, n_chunks):
        yield (Send(1 // 0, 0, 1),)

    with pytest.raises(PlanError, match="raised ZeroDivisionError on rank 0 of 2 ranks, step 0: ") as caught:
        compile_plan(plan, 0, 2)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("n", [*range(1, 18), 33, 64, 1023, 1024])
def test_whoever_has_two_children_in_one_of_two_trees_has_none_in_the_other(n):
    first, second = two_trees(n)
    for tree in (first, second):
        assert sorted(child for own in tree.children for child in own) == [r for r in range(n) if tree.parent[r] != r]
        assert sum(parent == rank for rank, parent in enumerate(tree.parent)) == 1
        assert max(map(len, tree.children)) <= 2
        assert tree.depth == (n - 1).bit_length()
    assert max(len(a) + len(b) for a, b in zip(first.children, second.children, strict=True)) <= 2


@pytest.mark.parametrize("n", range(1, 18))
def test_in_a_tournament_all_meet_once_and_nobody_plays_twice_in_a_turn(n):
    turns = [[partner(rank, turn, n) for rank in range(n)] for turn in range(n - 1 + n % 2)]
    assert all(turn[peer] == rank for turn in turns for rank, peer in enumerate(turn))
    met = [{turn[rank] for turn in turns} - {rank} for rank in range(n)]
    assert met == [set(range(n)) - {rank} for rank in range(n)]


@pytest.mark.parametrize("n", range(1, 10))
def test_those_who_talk_directly_never_meet_at_a_third(n):
    goes = [others(rank, n)[0] for rank in range(n)]
    comes = [others(rank, n)[1] for rank in range(n)]
    assert all(comes[peer][turn] == rank for rank in range(n) for turn, peer in enumerate(goes[rank]))
