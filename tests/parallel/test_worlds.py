"""One program, four worlds: the batch axis, threads, worker processes and paper; the first three agree bit for bit."""

from collections import Counter

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, MeshError, TransformError
from lab.events import record
from lab.events.catalogue import ChunkMoved, CollectiveStarted
from lab.graph.passes import optimized
from lab.ops.pairing import circle
from lab.parallel import Link, axis, pmap, predict, run_ranks
from lab.parallel.ranks.axis import moving
from tests.numerics import close
from tests.parallel.worlds import PROGRAMS, around_the_ring, two_axes

PERMUTED = [circle(-1, 4), ((0, 1), (1, 0))]
"""By the programs, and by their gradients, where that is no shift to the next."""

each = pytest.mark.parametrize("name", PROGRAMS)


def given(n, dtype="float32"):
    """So many members' matrices; their rows can be cut for 1 to 6 of them."""
    return np.random.default_rng(n).normal(size=(n, 60, 3)).astype(dtype)


def on_the_batch_axis(name, x):
    return leaves(lab.vmap(PROGRAMS[name], axis_name="ranks")(x))


def leaves(out):
    return [leaf.numpy() for leaf in lab.tree.flatten(out)[0]]


def agree(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@each
@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("transport", ["sockets", "shared"])
def test_threads_give_the_bits_of_the_batch_axis(name, n, transport):
    x = given(n)

    def program(comm):
        with axis(comm):
            return leaves(PROGRAMS[name](lab.tensor(x[comm.rank])))

    ranks = run_ranks(program, world_size=n, transport=transport)
    agree([np.stack(rows) for rows in zip(*ranks, strict=True)], on_the_batch_axis(name, x))


@each
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_worker_processes_give_the_bits_of_the_batch_axis(name, dtype, cluster):
    x = given(4, dtype)
    agree(leaves(pmap(PROGRAMS[name], cluster)(x)), on_the_batch_axis(name, x))


def hops(events, n, root=0):
    """How often what happened; the root plays rank 0 of the plan."""
    return Counter((e.step, (e.src - root) % n, (e.dst - root) % n, e.reduces, e.n_bytes) for e in events)


@each
def test_paper_has_the_hops_that_were_recorded(name):
    """Each collective of the run, as the simulator sees its plan: who sent to whom, how often and how many bytes."""
    n = 4
    with lab.record(kinds=[CollectiveStarted, ChunkMoved]) as recording:
        pmap(PROGRAMS[name], n)(given(n))
    started = {e.collective: e for e in recording if isinstance(e, CollectiveStarted)}
    assert started
    for number, e in started.items():
        ran = [hop for hop in recording if isinstance(hop, ChunkMoved) and hop.collective == number]
        pairs = tuple(sorted((hop.src, hop.dst) for hop in ran))
        assert e.operation != "permute" or pairs in PERMUTED
        plan = moving(pairs) if e.operation == "permute" else (e.operation, e.algorithm)
        paper = predict(plan, n, e.n_bytes, Link(1e-5, 1e9), n_chunks=e.n_chunks).events
        assert hops(ran, n, root=1 if e.operation == "broadcast" else 0) == hops(paper, n)


def test_a_group_of_ranks_is_an_axis_and_two_of_them_make_a_grid():
    x = given(4)

    def program(comm):
        row, column = comm.split(comm.rank // 2, "rows"), comm.split(comm.rank % 2, "columns")
        with axis(row, "columns"), axis(column, "rows"):
            return leaves(in_a_grid(lab.tensor(x[comm.rank])))

    def in_a_grid(x):
        along = lab.all_reduce(lab.all_gather(x, axis_name="columns"), axis_name="rows")
        return along * lab.axis_index("rows") + lab.axis_index("columns")

    grid = lab.vmap(lab.vmap(in_a_grid, axis_name="columns"), axis_name="rows")(x.reshape(2, 2, 60, 3))
    found = [rows[0] for rows in run_ranks(program, world_size=4)]
    np.testing.assert_array_equal(np.stack(found), grid.numpy().reshape(4, 2, 60, 3))


def test_a_plan_that_adds_in_another_order_gives_other_bits_of_the_same_sum():
    x = given(5)
    by = {plan: pmap(PROGRAMS["mean_of_gradients"], algorithm=plan)(x).numpy() for plan in ("naive", "ring", "tree")}
    close(by["ring"], by["naive"], rtol=1e-5, atol=1e-6)
    assert not np.array_equal(by["ring"], by["naive"])
    assert not np.array_equal(by["tree"], by["ring"])


# --- graphs on a rank -------------------------------------------------------------------------------------------------


def test_a_graph_made_on_a_rank_holds_the_collectives_in_order_and_no_rank_waits_for_its_making():
    def f(x):
        moved = lab.shift(x, axis_name="ranks") * lab.all_reduce(2.0, axis_name="ranks")
        return moved + lab.axis_index("ranks")

    def program(comm):
        with axis(comm):
            if comm.rank == 0:  # alone: whoever met others here would wait for ever
                return [e.op.name for e in lab.make_graph(f)(np.ones(2)).equations]
        return None

    assert run_ranks(program, world_size=2)[0] == ["shift", "all_reduce", "multiply", "member_index", "add"]


def test_no_pass_folds_shares_drops_or_reorders_a_collective():
    def f(x):
        a, b = lab.all_reduce(x, axis_name="ranks"), lab.all_reduce(x, axis_name="ranks")
        lab.broadcast(x, axis_name="ranks")  # nobody reads it, and the others wait for it all the same
        return a + b + lab.all_reduce(1.0, axis_name="ranks")

    def program(comm):
        with axis(comm):
            jitted = lab.jit(f)
            outs = [jitted(np.full(2, float(comm.rank))).numpy() for _ in range(2)]
            [traced] = jitted.cache.values()
            kept = [e.op.name for e in optimized(traced.graph).equations if e.meets]
            return outs, kept

    with lab.record(kinds=[CollectiveStarted]) as recording:
        ranks = run_ranks(program, world_size=3)
    for outs, kept in ranks:
        close(outs[0], np.full(2, 9.0))
        close(outs[1], outs[0], rtol=0)
        assert kept == ["all_reduce", "all_reduce", "broadcast", "all_reduce"]
    assert len({e.collective for e in recording}) == 8


@pytest.mark.parametrize("executor", ["interpreted", "compiled", "parallel"])
def test_every_executor_lets_ranks_meet_in_the_order_of_the_graph(executor):
    x = given(3)

    def program(comm):
        with axis(comm):
            f = lab.jit(PROGRAMS["through_collectives"], executor=executor)
            return [f(lab.tensor(x[comm.rank])).numpy() for _ in range(2)]

    for rank, outs in enumerate(run_ranks(program, world_size=3)):
        for out in outs:
            np.testing.assert_array_equal(out, on_the_batch_axis("through_collectives", x)[0][rank])


def test_one_jitted_function_serves_ranks_that_are_threads_each_with_its_own_index():
    f = lab.jit(lambda x: x + lab.axis_index("ranks") * lab.axis_size("ranks"))

    def program(comm):
        with axis(comm):
            return [f(np.zeros(2)).numpy()[0] for _ in range(2)]

    for n in (2, 3):
        assert run_ranks(program, world_size=n) == [[n * rank] * 2 for rank in range(n)]


# --- what cannot be ---------------------------------------------------------------------------------------------------


def test_backward_after_the_axis_says_that_nobody_is_there():
    def program(comm):
        x = lab.tensor(1.0, requires_grad=True)
        with axis(comm):
            y = lab.all_reduce(x * x, axis_name="ranks")
        with pytest.raises(TransformError, match="all_reduce needs the other members of an axis"):
            y.backward()

    run_ranks(program, world_size=2)


def test_an_axis_has_one_name_for_one_world():
    def program(comm):
        with axis(comm):
            with pytest.raises(ArgumentError, match="an axis has this name already"):
                lab.vmap(two_axes, axis_name="ranks")(np.ones((2, 2)))
            with pytest.raises(ArgumentError, match="an axis has this name already"), axis(comm):
                pass
        with pytest.raises(ArgumentError, match="the name of an axis is a text"), axis(comm, ""):
            pass

    run_ranks(program, world_size=2)


def test_ranks_that_call_other_collectives_are_told():
    def program(comm):
        with axis(comm):
            return lab.all_gather(1.0, axis_name="ranks") if comm.rank else lab.shift(1.0, axis_name="ranks")

    with pytest.raises(MeshError, match="shift direct"):
        run_ranks(program, world_size=2, timeout=5.0)
    with pytest.raises(TransformError, match="axis_size needs the other members"):
        around_the_ring(np.ones(2))


# --- what is told -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "f"),
    [
        (((0, 1), (1, 2), (2, 0)), lambda x: lab.shift(x, axis_name="ranks")),
        (((0, 2), (1, 0), (2, 1)), lambda x: lab.shift(x, by=-1, axis_name="ranks")),
        (((0, 2), (1, 1)), lambda x: lab.permute(x, pairs=((0, 2), (1, 1)), axis_name="ranks")),
        (((2, 0),), lambda x: lab.permute(x, pairs=((2, 0),), axis_name="ranks")),
    ],
    ids=["shift", "shift back", "one keeps its own", "one pair"],
)
def test_what_is_shifted_or_permuted_is_told_chunk_by_chunk(pairs, f):
    x = np.arange(6.0).reshape(3, 2)

    def program(comm):
        with axis(comm):
            return f(lab.tensor(x[comm.rank])).numpy()

    with record(kinds=[ChunkMoved]) as rec:
        found = run_ranks(program, world_size=3)
    np.testing.assert_array_equal(np.stack(found), lab.vmap(f, axis_name="ranks")(x).numpy())
    assert sorted((event.src, event.dst, event.n_bytes) for event in rec) == sorted(
        (src, dst, 16) for src, dst in pairs if src != dst
    )


def test_a_permutation_carries_what_cannot_be_added():
    def program(comm):
        with axis(comm):
            return np.asarray(lab.permute(np.array([comm.rank == 0]), pairs=((0, 1),), axis_name="ranks")).tolist()

    assert run_ranks(program, world_size=2) == [[False], [True]]
