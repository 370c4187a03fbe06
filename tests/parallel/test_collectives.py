"""The plans of the house against their text-books, as wrong plans of learners, and with sums of float32."""

import numpy as np
import pytest

from lab.errors import PlanError
from lab.parallel import COLLECTIVES, Recv, Send, check_plan, chunks_of, hierarchical, simulate_arrays
from lab.parallel.paper.collectives.halving import power_below
from lab.parallel.paper.plans import algorithms, steps_of
from lab.parallel.paper.textbook import COSTS
from tests.slices import sliced

ALWAYS = [2, 3, 4, 5, 6, 7, 8, 9, 16, 64]
KEYS = [pytest.param(*key, id="-".join(key)) for key in COLLECTIVES]


def test_every_plan_is_in_the_text_book():
    assert set(COSTS) == set(COLLECTIVES)


def costs_as_the_text_book_says(operation, algorithm, n):
    """Steps, buffers that each rank sends, and those over the busiest link; what is halved is cut so that it can be."""
    halved = (operation, algorithm) == ("all_reduce", "halving")
    n_chunks = power_below(n) if halved else chunks_of(COLLECTIVES[operation, algorithm], n)
    report, book = check_plan(operation, algorithm, n, n_chunks), COSTS[operation, algorithm]
    assert report.steps == book.steps(n)
    assert [sent / n_chunks for sent in report.chunks_sent] == pytest.approx([book.sent(r, n) for r in range(n)])
    assert max(report.links.values()) / n_chunks == pytest.approx(book.link(n))
    size = report.bytes_sent(8 * n_chunks, 4)
    assert size == tuple(32 * sent for sent in report.chunks_sent)
    assert sum(report.bytes_by_link(8 * n_chunks, 4).values()) == sum(size)


@pytest.mark.parametrize(("operation", "algorithm"), KEYS)
def test_a_plan_costs_what_the_text_book_says(operation, algorithm):
    for n in ALWAYS:
        costs_as_the_text_book_says(operation, algorithm, n)


@pytest.mark.slow
@sliced("n", every=8)
@pytest.mark.parametrize("n", [n for n in range(2, 65) if n not in ALWAYS])
@pytest.mark.parametrize(("operation", "algorithm"), KEYS)
def test_a_plan_costs_what_the_text_book_says_in_every_world_up_to_64(operation, algorithm, n):
    costs_as_the_text_book_says(operation, algorithm, n)


@pytest.mark.parametrize(("n", "size"), [(4, 1), (4, 2), (4, 4), (6, 2), (6, 3), (12, 4), (64, 4), (7, 7)])
def test_groups_of_any_size_that_divides_are_as_right(n, size):
    report = check_plan("all_reduce", hierarchical(size), n)
    assert report.steps == 2 * (size - 1) + 2 * (n // size - 1)
    assert set(report.chunks_sent) == {2 * (n - 1)}
    far = [sent for (src, dst), sent in report.links.items() if src // size != dst // size]
    assert max(far, default=0) == (2 * (n // size - 1) if n > size else 0)  # of n chunks: 1 / size of a ring's


def test_groups_that_do_not_divide_the_world_are_refused():
    with pytest.raises(PlanError, match="groups of one size\ngiven: group_size=4, world_size=6\nhint:  a divisor"):
        check_plan("all_reduce", hierarchical(4), 6)
    with pytest.raises(PlanError, match="group_size is a whole number of at least 1\ngiven: group_size=0"):
        hierarchical(0)
    assert hierarchical(4) is hierarchical(4)


def test_an_all_to_all_of_blocks_that_differ_is_refused():
    with pytest.raises(PlanError, match="must have one size\ngiven: n_chunks=5, world_size=4\nhint:  a multiple"):
        check_plan("all_to_all", lambda rank, n, k: (), 4, 5)
    with pytest.raises(PlanError, match="swaps blocks of one size\ngiven: n_chunks=5, world_size=4"):
        check_plan("all_to_all", "direct", 4, 5)
    with pytest.raises(PlanError, match="swaps blocks of one size"):
        steps_of(COLLECTIVES["all_to_all", "direct"], 0, 4, 5)


def test_an_all_to_all_is_a_transposition_of_blocks():
    arrays = [np.array([10 * rank + owner for owner in range(5)]) for rank in range(5)]
    np.testing.assert_array_equal(simulate_arrays(COLLECTIVES["all_to_all", "direct"], arrays), np.array(arrays).T)


# --- bits ---


def halves_of_halves(arrays):
    """(0+1) + (2+3) ..."""
    while len(arrays) > 1:
        arrays = [a + b for a, b in zip(arrays[::2], arrays[1::2], strict=True)]
    return arrays[0]


def over_virtual_shards(algorithm, world_size):
    """The bits of a sum of eight shards, of which each rank holds as many and adds its own first."""
    rng = np.random.default_rng(5)
    shards = [(rng.normal(size=999) * 10.0 ** rng.integers(-3, 4, 999)).astype(np.float32) for _ in range(8)]
    share = 8 // world_size
    own = [halves_of_halves(shards[rank * share : (rank + 1) * share]) for rank in range(world_size)]
    results = simulate_arrays(COLLECTIVES["all_reduce", algorithm], own)
    assert len({result.tobytes() for result in results}) == 1
    return results[0].tobytes()


SAME = {"tree", "halving", "doubling"}


@pytest.mark.parametrize("algorithm", algorithms("all_reduce"))
def test_with_virtual_shards_the_bits_of_trees_do_not_depend_on_the_world_and_those_of_others_do(algorithm):
    bits = {over_virtual_shards(algorithm, world_size) for world_size in (1, 2, 4, 8)}
    assert (len(bits) == 1) == (algorithm in SAME)


def test_trees_halving_and_doubling_have_the_same_bits():
    assert len({over_virtual_shards(algorithm, 8) for algorithm in SAME}) == 1


# --- what learners get wrong ---


def mutant(operation, algorithm, change):
    """The plan of the house with its steps changed: `change(steps, rank, n)`, where a step is a list."""

    def plan(rank, n, k):
        steps = [list(step) for step in COLLECTIVES[operation, algorithm](rank, n, k)]
        return [tuple(step) for step in change(steps, rank, n)]

    return plan


def each(change):
    return lambda steps, rank, n: [[change(hop, rank, n) for hop in step] for step in steps]


def stores(hop, rank, n):
    return hop._replace(reduce=False) if isinstance(hop, Recv) else hop


def adds(hop, rank, n):
    return hop._replace(reduce=True) if isinstance(hop, Recv) else hop


def in_its_old_place(hop, rank, n):
    return hop._replace(at=None) if isinstance(hop, Recv) else hop


def in_the_next_place(hop, rank, n):
    return hop._replace(at=(hop.place[0] + 1) % n) if isinstance(hop, Recv) else hop


def one_further(hop, rank, n):
    return hop._replace(peer=(hop.peer + 1) % n)


def without(at):
    return lambda steps, rank, n: steps[:at] + steps[at + 1 :]


def waits_first(steps, rank, n):
    return [[hop] for step in steps for hop in sorted(step, key=lambda hop: isinstance(hop, Send))]


def rests(who):
    return lambda steps, rank, n: [] if rank == who else steps


def forgets_a_fold(steps, rank, n):
    return steps[1:] if rank in (1, 5) else steps


WRONG = {
    "naive stores": ("all_reduce", "naive", each(stores), 4,
        "rank 0, step 0: stored chunk 0 from rank 1 over the part of rank 0"),
    "a tree adds on the way down": ("all_reduce", "tree", each(adds), 4,
        "rank 2, step 2: added chunk 0 from rank 0, so that the parts of ranks 2 and 3 count twice"),
    "two trees, of which one rank rests": ("all_reduce", "double_tree", rests(3), 4,
        "rank 2, step 0: waits for chunk 0 from rank 3, which has nothing more to send there"),
    "halving without a step": ("all_reduce", "halving", without(1), 4,
        "rank 0, step 1: stored chunk 1 from rank 2 over the parts of ranks 0 and 1"),
    "halving whose extra ranks are forgotten": ("all_reduce", "halving", forgets_a_fold, 6,
        "rank 5, step 4: stored chunk 0 from rank 1 over the part of rank 5"),
    "doubling without a step": ("all_reduce", "doubling", without(0), 4,
        "rank 0 ends with the parts of ranks 0 and 2 in chunk 0, expected the parts of ranks 0 to 3"),
    "doubling that waits first": ("all_reduce", "doubling", waits_first, 4,
        "rank 0, step 0: waits for chunks 0 to 3 from rank 1, which waits in step 0 for chunks 0 to 3 from rank 0"),
    "groups that add what they gather": ("all_reduce", "hierarchical", each(adds), 4,
        "rank 0, step 2: added chunk 1 from rank 2, so that the parts of ranks 0 and 1 count twice"),
    "direct without the second half": ("all_reduce", "direct", without(1), 3,
        "rank 0 ends with the part of rank 0 in chunk 1, expected the parts of ranks 0 to 2"),
    "direct that stores": ("all_reduce", "direct", each(stores), 3,
        "rank 0, step 0: stored chunk 0 from rank 2 over the part of rank 0"),
    "a broadcast tree that adds": ("broadcast", "tree", each(adds), 4,
        "rank 2, step 0: added chunk 0 from rank 0, expected to store it"),
    "a chain with a gap": ("broadcast", "pipelined", rests(1), 3,
        "rank 2, step 1: waits for chunk 0 from rank 1, which has nothing more to send there"),
    "a tree that does not add": ("reduce", "tree", each(stores), 4,
        "rank 0, step 0: stored chunk 0 from rank 1 over the part of rank 0"),
    "a block is summed only in half of the world": ("reduce_scatter", "halving", without(1), 4,
        "rank 0 ends with the parts of ranks 0 and 2 in chunk 0, expected the parts of ranks 0 to 3"),
    "blocks are replaced": ("reduce_scatter", "direct", each(stores), 3,
        "rank 0, step 0: stored chunk 0 from rank 2 over the part of rank 0"),
    "gathering adds": ("all_gather", "bruck", each(adds), 4,
        "rank 0, step 0: added chunk 1 from rank 1, expected to store it"),
    "gathering directly adds": ("all_gather", "direct", each(adds), 3,
        "rank 0, step 0: added chunk 2 from rank 2, expected to store it"),
    "a gather that leaves out a rank": ("gather", "flat", lambda steps, rank, n: steps[:-1], 3,
        "rank 0 ends with the part of rank 0 in chunk 2, expected the part of rank 2"),
    "a gather that adds": ("gather", "tree", each(adds), 4,
        "rank 0, step 0: added chunk 1 from rank 1, expected to store it"),
    "a scatter that adds": ("scatter", "flat", each(adds), 3,
        "rank 1, step 0: added chunk 1 from rank 0, expected to store it"),
    "a scatter that stops half way": ("scatter", "tree", lambda steps, rank, n: steps[:-1], 4,
        "rank 1 ends with the part of rank 1 in chunk 1, expected the part of rank 0"),
    "what is exchanged keeps its place": ("all_to_all", "direct", each(in_its_old_place), 3,
        "rank 1, step 0: stored chunk 1 from rank 2 over the part of rank 1"),
    "what is exchanged goes to a wrong place": ("all_to_all", "direct", each(in_the_next_place), 3,
        "rank 2, step 0: stored chunk 2 from rank 1 over the part of rank 2"),
    "what is exchanged is added": ("all_to_all", "direct", each(adds), 3,
        "rank 1, step 0: added chunk 1 from rank 2 to chunk 2, expected to store it"),
    "a barrier that does not ask everybody": ("barrier", "dissemination", without(1), 4,
        "rank 0 ends with the parts of ranks 0 and 3 in chunk 0, expected the parts of ranks 0 to 3"),
    "a barrier that forgets": ("barrier", "dissemination", each(stores), 4,
        "rank 0, step 0: stored chunk 0 from rank 3 over the part of rank 0"),
    "a barrier to which one does not come": ("barrier", "dissemination", rests(2), 4,
        "rank 0, step 1: waits for chunks 0 to 3 from rank 2, which has nothing more to send there"),
    "nobody sends": ("send_recv", "direct", rests(0), 3,
        "rank 2, step 0: waits for chunks 0 to 2 from rank 0, which has nothing more to send there"),
    "a shift by nothing for those who receive": ("shift", "direct", each(one_further), 5,
        "rank 0, step 0: receives from itself"),
    "sums in places of their own": ("all_reduce", "naive",
        each(lambda hop, rank, n: hop._replace(stop=1, at=1) if isinstance(hop, Recv) else hop._replace(stop=1)), 2,
        "rank 0, step 0: added chunk 0 from rank 1 to chunk 1, where it does not belong"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_form_of_each_plan_is_told_its_first_wrong_hop(name):
    operation, algorithm, change, n, said = WRONG[name]
    with pytest.raises(PlanError) as caught:
        check_plan(operation, mutant(operation, algorithm, change), n)
    assert caught.value.problem == said
    assert caught.value.given
    assert caught.value.hint


def test_every_plan_has_a_wrong_form_here_or_among_the_wrong_rings():
    rings = {(operation, "ring") for operation in ("all_reduce", "reduce_scatter", "all_gather")}
    flat = {("reduce", "flat"), ("broadcast", "flat")}  # the two halves of naive
    assert {wrong[:2] for wrong in WRONG.values()} | rings | flat == set(COLLECTIVES)


def test_what_has_to_move_is_told_to_say_where():
    with pytest.raises(PlanError, match="hint:  at= says in which place a chunk is stored"):
        check_plan("all_to_all", mutant("all_to_all", "direct", each(in_its_old_place)), 3)
