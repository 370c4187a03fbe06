"""Typical wrong plans of learners, each told its first wrong hop; and right ones of another form, which pass."""

import pytest

from lab.errors import PlanError
from lab.parallel import Recv, Send, check_plan, simulate_arrays


def ring(rank, n, k):
    """A ring that a learner might write, one chunk a rank, as lists that a mutant can change."""
    right, left = (rank + 1) % n, (rank - 1) % n

    def hop(send, recv, reduce):
        return [Send(right, send % n, send % n + 1), Recv(left, recv % n, recv % n + 1, reduce)]

    return ([hop(rank - s, rank - s - 1, True) for s in range(n - 1)]
            + [hop(rank - s + 1, rank - s, False) for s in range(n - 1)])  # fmt: skip


def mutant(change):
    return lambda rank, n, k: [tuple(step) for step in change(ring(rank, n, k), rank, n)]


def each(change):
    """Change every hop of every step."""
    return mutant(lambda steps, rank, n: [[change(hop, rank, n) for hop in step] for step in steps])


def always_one(hop, chunk):
    return hop._replace(start=chunk, stop=chunk + 1)


def sends_chunk_0(steps, rank, n):
    if rank == 2:
        steps[1][0] = Send(3, 0, 1)
    return steps


# Name: the plan, what is said without a reference, what is said beside the ring of the house.
MUTANTS = {
    "the neighbour is not taken modulo the world": (
        each(lambda hop, rank, n: hop._replace(peer=rank + 1) if isinstance(hop, Send) else hop),
        "rank 3, step 0: sends to rank 4, which does not exist",
        "rank 3, step 0: sends to rank 4, which does not exist"),
    "nothing is ever added": (
        each(lambda hop, rank, n: hop._replace(reduce=False) if isinstance(hop, Recv) else hop),
        "rank 0, step 0: stored chunk 3 from rank 3 over the part of rank 0",
        "rank 0, step 0: stored chunk 3 from rank 3, expected to add it"),
    "finished sums are added once more": (
        each(lambda hop, rank, n: hop._replace(reduce=True) if isinstance(hop, Recv) else hop),
        "rank 0, step 3: added chunk 0 from rank 3, so that the part of rank 0 counts twice",
        "rank 0, step 3: added chunk 0 from rank 3, expected to store it"),
    "there is no all-gather": (
        mutant(lambda steps, rank, n: steps[:n - 1]),
        "rank 0 ends with the part of rank 0 in chunk 0, expected the parts of ranks 0 to 3",
        "rank 0, step 3: sent nothing, expected chunk 1 to rank 1"),
    "the last step is missing": (
        mutant(lambda steps, rank, n: steps[:-1]),
        "rank 0 ends with the parts of ranks 0, 2 and 3 in chunk 2, expected the parts of ranks 0 to 3",
        "rank 0, step 5: sent nothing, expected chunk 3 to rank 1"),
    "the reduce-scatter is one step short": (
        mutant(lambda steps, rank, n: steps[:n - 2] + steps[n - 1:]),
        "rank 0, step 2: stored chunk 0 from rank 3 over the part of rank 0",
        "rank 0, step 2: sent chunk 1, expected chunk 2"),
    "one rank sends a wrong chunk": (
        mutant(sends_chunk_0),
        "rank 2, step 1: sent chunk 0, but rank 3 waits for chunk 1",
        "rank 2, step 1: sent chunk 0, expected chunk 1"),
    "the same chunk is sent in every step": (
        each(lambda hop, rank, n: always_one(hop, rank if isinstance(hop, Send) else (rank - 1) % n)),
        "rank 0, step 3: stored chunk 3 from rank 3 over the parts of ranks 0 and 3",
        "rank 0, step 1: sent chunk 0, expected chunk 3"),
    "all wait before they send": (
        mutant(lambda steps, rank, n: [[hop] for send, recv in steps for hop in (recv, send)]),
        "rank 0, step 0: waits for chunk 3 from rank 3, which waits in step 0 for chunk 2 from rank 2",
        "rank 0, step 0: sent nothing, expected chunk 0 to rank 1"),
    "nobody receives": (
        mutant(lambda steps, rank, n: [step[:1] for step in steps]),
        "rank 0, step 0: sent chunk 0 to rank 1, which never takes it",
        "rank 0, step 0: received nothing, expected chunk 3 from rank 3"),
    "it receives from the side to which it sends": (
        each(lambda hop, rank, n: hop._replace(peer=(rank + 1) % n)),
        "rank 0, step 0: waits for chunk 3 from rank 1, which waits in step 0 for chunk 0 from rank 2",
        "rank 0, step 0: received chunk 3 from rank 1, expected from rank 3"),
    "rank 3 leaves early": (
        mutant(lambda steps, rank, n: steps[:2] if rank == 3 else steps),
        "rank 0, step 2: waits for chunk 1 from rank 3, which has nothing more to send there",
        "rank 3, step 2: sent nothing, expected chunk 1 to rank 0"),
}  # fmt: skip


def error_of(plan, **options):
    with pytest.raises(PlanError) as caught:
        check_plan("all_reduce", plan, 4, **options)
    assert caught.value.given
    assert caught.value.hint
    assert str(caught.value).count("\n") == 2
    assert caught.value.rank in range(4)
    return caught.value


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_plan_is_told_its_first_wrong_hop(name):
    plan, alone, beside = MUTANTS[name]
    assert error_of(plan).problem == alone
    assert error_of(plan, reference="ring").problem == beside


def test_an_error_says_what_was_there_and_what_came():
    error = error_of(MUTANTS["finished sums are added once more"][0])
    assert error.given == "rank 0 had the part of rank 0 in chunk 0, the parts of ranks 0 to 3 came"
    assert error.hint == "a finished sum is stored (reduce=False); or it goes around one step too far"
    assert (error.rank, error.step) == (0, 3)


def test_beside_a_reference_the_error_keeps_what_goes_wrong():
    plan, alone, _ = MUTANTS["the same chunk is sent in every step"]
    assert error_of(plan, reference="ring").given == alone


def mirrored(plan):
    """The same ring the other way round."""

    def other(rank, n, k):
        for step in plan(-rank % n, n, k):
            yield tuple(h._replace(peer=-h.peer % n, start=-h.start % n, stop=-h.start % n + 1) for h in step)

    return other


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("plan", [ring, mirrored(ring)], ids=["with the clock", "against it"])
def test_a_right_plan_of_another_form_passes(world_size, plan):
    as_plan = lambda rank, n, k: map(tuple, plan(rank, n, k))  # noqa: E731
    assert check_plan("all_reduce", as_plan, world_size, reference="ring").steps == 2 * (world_size - 1)


def test_a_wrong_ring_against_the_clock_is_compared_with_one_against_the_clock():
    plan = mirrored(MUTANTS["one rank sends a wrong chunk"][0])
    assert error_of(plan, reference="ring").problem == "rank 2, step 1: sent chunk 0, expected chunk 3"


def test_a_tree_is_as_right_as_a_ring():
    def doubling(rank, n, k):
        distance = 1
        while distance < n:
            yield Send(rank ^ distance, 0, k), Recv(rank ^ distance, 0, k, True)
            distance *= 2

    assert check_plan("all_reduce", doubling, 8, reference="ring").steps == 3


def test_scratch_that_no_promise_covers_may_hold_anything():
    def reduces_into_rank_1_first(rank, n, k):
        """Rank 1 counts rank 0 twice, and nobody looks."""
        if rank == 0:
            yield Send(1, 0, k), Recv(1, 0, k, True)
            yield (Send(1, 0, k),)
        if rank == 1:
            yield (Send(0, 0, k),)
            yield (Recv(0, 0, k, True),)
            yield (Recv(0, 0, k, True),)

    check_plan("reduce", reduces_into_rank_1_first, 2)
    with pytest.raises(
        PlanError, match="rank 1, step 2: added chunk 0 from rank 0, so that the parts of ranks 0 and 1 count"
    ):
        check_plan("all_reduce", reduces_into_rank_1_first, 2)


def test_a_broadcast_that_adds_is_told_to_store():
    def plan(rank, n, k):
        yield tuple(Send(peer, 0, k) for peer in range(1, n)) if rank == 0 else (Recv(0, 0, k, True),)

    with pytest.raises(PlanError, match="rank 1, step 0: added chunk 0 from rank 0, expected to store it"):
        check_plan("broadcast", plan, 3)


def test_a_broadcast_that_forgets_a_rank_is_told_which():
    def plan(rank, n, k):
        if rank == 0:
            yield (Send(1, 0, k),)
        if rank == 1:
            yield (Recv(0, 0, k, False),)

    with pytest.raises(PlanError) as caught:
        check_plan("broadcast", plan, 3)
    assert str(caught.value) == (
        "rank 2 ends with the part of rank 2 in chunk 0, expected the part of rank 0\n"
        "given: no hop brings it this chunk\n"
        "hint:  is there a step too few, or one of the two phases missing?"
    )


def test_a_plan_that_cannot_run_is_refused_by_the_oracle_too():
    import numpy as np

    with pytest.raises(PlanError, match="waits for chunk"):
        simulate_arrays(MUTANTS["all wait before they send"][0], [np.ones(4)] * 4)
