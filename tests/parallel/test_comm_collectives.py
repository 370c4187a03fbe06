"""Every collective of Comm against NumPy: worlds, shapes, dtypes, reductions, and what is refused."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import ArgumentError, DTypeError, LabError, MeshError, ShapeError
from lab.events import CollectiveFinished, CollectiveStarted, record
from lab.parallel import COLLECTIVES, run_ranks, simulate_arrays
from tests.parallel import programs
from tests.slices import sliced

WORLDS = range(1, 9)
SUMS = {"sum": np.add.reduce, "max": np.maximum.reduce, "min": np.minimum.reduce}


def algorithms(operation):
    return [algorithm for known, algorithm in COLLECTIVES if known == operation]


def rows(n_rows, rank, dtype=np.float64):
    """Small whole numbers, whose sums are exact."""
    return np.random.default_rng(rank).integers(-9, 9, (n_rows, 3)).astype(dtype)


@sliced("n")
@pytest.mark.parametrize("n", WORLDS)
@pytest.mark.parametrize("op", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("algorithm", algorithms("all_reduce"))
def test_all_reduce_gives_every_rank_what_numpy_gives(algorithm, op, n):
    got = run_ranks(lambda comm: comm.all_reduce_(rows(5, comm.rank), algorithm, op=op), world_size=n)
    parts = [rows(5, rank) for rank in range(n)]
    want = np.add.reduce(parts) / n if op == "mean" else SUMS[op](parts)
    for array in got:
        np.testing.assert_array_equal(array, want)


@sliced("n")
@pytest.mark.parametrize("n", WORLDS)
@pytest.mark.parametrize("op", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("algorithm", algorithms("reduce"))
def test_reduce_changes_the_root_alone(algorithm, op, n):
    root = n // 2
    got = run_ranks(lambda comm: comm.reduce_(rows(4, comm.rank), root, algorithm, op=op), world_size=n)
    parts = [rows(4, rank) for rank in range(n)]
    want = np.add.reduce(parts) / n if op == "mean" else SUMS[op](parts)
    for rank, array in enumerate(got):
        np.testing.assert_array_equal(array, want if rank == root else parts[rank])


@sliced("n")
@pytest.mark.parametrize("n", WORLDS)
@pytest.mark.parametrize("n_rows", [0, 1, 7, 16])
@pytest.mark.parametrize("op", ["mean", "max"])
@pytest.mark.parametrize("algorithm", algorithms("reduce_scatter"))
def test_reduce_scatter_gives_each_rank_its_share_of_rows(algorithm, op, n_rows, n):
    got = run_ranks(lambda comm: comm.reduce_scatter(rows(n_rows, comm.rank), algorithm, op=op), world_size=n)
    parts = [rows(n_rows, rank) for rank in range(n)]
    whole = np.add.reduce(parts) / n if op == "mean" else SUMS[op](parts)
    for array, want in zip(got, np.array_split(whole, n), strict=True):
        np.testing.assert_array_equal(array, want)
        assert array.shape == want.shape


@sliced("n")
@pytest.mark.parametrize("n", WORLDS)
@pytest.mark.parametrize("algorithm", algorithms("all_gather"))
def test_all_gather_stacks_what_all_have_and_joins_what_reduce_scatter_cut(algorithm, n):
    def program(comm):
        stacked = comm.all_gather(rows(2, comm.rank), algorithm)
        block = np.array_split(np.arange(11), n)[comm.rank]
        return stacked, comm.all_gather(block, algorithm, rows=11), comm.all_gather(np.array(comm.rank), algorithm)

    for stacked, joined, numbers in run_ranks(program, world_size=n):
        np.testing.assert_array_equal(stacked, [rows(2, rank) for rank in range(n)])
        assert joined.tolist() == list(range(11))
        assert numbers.tolist() == list(range(n))


@sliced("n")
@pytest.mark.parametrize("n", WORLDS)
@pytest.mark.parametrize("algorithm", algorithms("gather"))
def test_gather_and_scatter_are_each_others_ends(algorithm, n):
    root = (n - 1) // 2

    def program(comm):
        whole = comm.gather(rows(2, comm.rank, "f4"), root, algorithm)
        return whole, comm.scatter(None if whole is None else whole.reshape(-1, 3)[:-1], root, algorithm)

    parts = [rows(2, rank, "f4") for rank in range(n)]
    for rank, (whole, share) in enumerate(run_ranks(program, world_size=n)):
        assert (whole is None) == (rank != root)
        if whole is not None:
            np.testing.assert_array_equal(whole, parts)
        np.testing.assert_array_equal(share, np.array_split(np.concatenate(parts)[:-1], n)[rank])
        assert share.dtype == np.float32


@sliced("n")
@pytest.mark.parametrize("n", WORLDS)
@pytest.mark.parametrize("algorithm", algorithms("all_to_all"))
def test_all_to_all_is_the_transpose_of_blocks(algorithm, n):
    got = run_ranks(lambda comm: comm.all_to_all(rows(2 * n, comm.rank), algorithm), world_size=n)
    sent = np.array([rows(2 * n, rank).reshape(n, 2, 3) for rank in range(n)])
    for rank, array in enumerate(got):
        np.testing.assert_array_equal(array, sent[:, rank].reshape(2 * n, 3))


@sliced("n")
@pytest.mark.parametrize("n", WORLDS)
@pytest.mark.parametrize("algorithm", algorithms("barrier"))
def test_nobody_leaves_a_barrier_before_all_have_come(algorithm, n):
    come, seen = [], []

    def program(comm):
        come.append(comm.rank)
        comm.barrier(algorithm)
        seen.append(len(come))

    run_ranks(program, world_size=n)
    assert seen == [n] * n


DTYPES = ["f2", "f4", "f8", "i1", "u2", "i8", "?", "c8", "c16"]


@settings(deadline=None, max_examples=60)
@given(
    shape=st.lists(st.integers(0, 5), max_size=3),
    dtype=st.sampled_from(DTYPES),
    op=st.sampled_from(["sum", "mean", "max", "min"]),
    algorithm=st.sampled_from(algorithms("all_reduce")),
    n=st.integers(1, 5),
    layout=st.sampled_from(["as it is", "reversed", "transposed"]),
)
def test_any_shape_dtype_and_layout_gives_the_bits_of_paper(shape, dtype, op, algorithm, n, layout):
    def part(rank):
        array = np.asarray(np.random.default_rng(rank).normal(size=shape) * 3).astype(dtype)
        array = array[::-1] if layout == "reversed" and shape else array
        return array.T if layout == "transposed" else array

    allowed = not (op == "mean" and np.dtype(dtype).kind in "iub") and not (op in {"max", "min"} and dtype[0] == "c")
    if not allowed:
        with pytest.raises(DTypeError, match=r"\ngiven: op=.*\nhint:  "):
            run_ranks(lambda comm: comm.all_reduce_(part(comm.rank), algorithm, op=op), world_size=n)
        return
    parts = [part(rank) for rank in range(n)]
    got = run_ranks(lambda comm: comm.all_reduce_(part(comm.rank), algorithm, op=op), world_size=n)
    if op in {"sum", "mean"}:
        want = [array / np.asarray(n, array.dtype) if op == "mean" else array
                for array in simulate_arrays(COLLECTIVES["all_reduce", algorithm], parts)]  # fmt: skip
    else:
        want = [SUMS[op](parts)] * n
    for array, wanted in zip(got, want, strict=True):
        np.testing.assert_array_equal(array, wanted)
        assert (array.shape, array.dtype) == (parts[0].shape, parts[0].dtype)


@pytest.mark.parametrize("op", ["max", "min", "sum", "mean"])
def test_nan_stays_nan_in_every_reduction(op):
    got = run_ranks(lambda comm: comm.all_reduce_(np.array([np.nan if comm.rank == 1 else 1.0]), op=op), world_size=3)
    assert all(np.isnan(array).all() for array in got)


REFUSED = [
    (lambda c: c.all_reduce_(np.ones(1), op="avg"), ArgumentError, "no such reduction\ngiven: op='avg'\nhint:  "),
    (lambda c: c.all_reduce_(np.arange(3), op="mean"), DTypeError, "given: op='mean' of int64[3]\nhint:  "),
    (lambda c: c.reduce_scatter(np.ones(2, "c8"), op="max"), DTypeError, "no order\ngiven: op='max' of complex64[2]"),
    (lambda c: c.run_(np.ones(1), "broadcast", "flat", op="max"), ArgumentError, "reduces nothing\ngiven: op='max'"),
    (lambda c: c.reduce_scatter(np.array(1.0)), ShapeError, "there is none\ngiven: float64[]\nhint:  "),
    (lambda c: c.all_to_all(np.ones(3)), ShapeError, "given: 3 rows for 2 ranks\nhint:  pad the first axis to 4 rows"),
    (lambda c: c.all_gather(np.ones(3), rows=5.5), ArgumentError, "rows is a whole number"),
    (lambda c: c.all_gather(np.ones(4), rows=5), ShapeError, "another block than its own\ngiven: 4 rows; of 5"),
    (lambda c: c.scatter(np.ones(3), root=1 - c.rank), ArgumentError, "only the root has what is scattered"),
    (lambda c: c.gather(np.ones(3), root=7), ArgumentError, "no such root\ngiven: root=7"),
    (lambda c: c.gather([1.0]), ArgumentError, "ranks exchange NumPy arrays\ngiven: list"),
    (lambda c: c.all_gather(np.array([None])), DTypeError, "ranks exchange numbers\ngiven: dtype object"),
    (lambda c: c.reduce_scatter(np.array(["a"])), DTypeError, "ranks exchange numbers\ngiven: dtype <U1"),
    (lambda c: c.barrier("dissemnation"), LabError, "did you mean 'dissemination'?"),
]


@pytest.mark.parametrize(("call", "kind", "told"), REFUSED)
def test_what_no_collective_can_take_is_refused_before_anything_is_sent(call, kind, told):
    def program(comm):
        with pytest.raises(kind, match=re.escape(told)):
            call(comm)
        comm.barrier()

    run_ranks(program, world_size=2)


def one_differs(make):
    return [
        lambda comm: make(comm, np.ones(4 if comm.rank else 8)),
        lambda comm: make(comm, np.ones(4, "f4" if comm.rank else "f8")),
        lambda comm: make(comm, np.ones(4)) if comm.rank else comm.barrier(),
    ]


CALLS = [
    *one_differs(lambda comm, array: comm.all_reduce_(array)),
    *one_differs(lambda comm, array: comm.reduce_(array)),
    *one_differs(lambda comm, array: comm.reduce_scatter(array)),
    *one_differs(lambda comm, array: comm.all_gather(array)),
    *one_differs(lambda comm, array: comm.gather(array)),
    *one_differs(lambda comm, array: comm.all_to_all(array)),
    lambda comm: comm.all_reduce_(np.ones(4), op="max" if comm.rank else "sum"),
    lambda comm: comm.gather(np.ones(4), root=comm.rank),
    lambda comm: comm.scatter(np.ones(4) if comm.rank == 0 else None) if comm.rank else comm.barrier(),
]


@pytest.mark.parametrize("program", CALLS)
def test_ranks_that_make_other_calls_are_both_named_with_call_and_line(program):
    with pytest.raises(MeshError) as told:
        run_ranks(program, world_size=2, timeout=20.0)
    given = told.value.given
    assert re.match(r"ranks 0 and 1 make different calls|rank \d has ended its program", told.value.problem)
    assert re.search(r"rank [01]: \w.* at test_comm_collectives.py:\d+", given)
    assert str(told.value).count("\n") == 2


def test_events_of_a_collective_name_it_and_its_chunks():
    with record() as seen:
        run_ranks(lambda comm: comm.all_to_all(np.ones(6)), world_size=3)
    kinds = [type(e) for e in seen if isinstance(e, CollectiveStarted | CollectiveFinished)]
    assert (kinds.count(CollectiveStarted), kinds.count(CollectiveFinished)) == (3, 3)
    assert {(e.operation, e.algorithm, e.n_bytes) for e in seen if isinstance(e, CollectiveStarted)} == {
        ("all_to_all", "direct", 48)
    }


def test_real_workers_do_the_same(cluster):
    want = run_ranks(programs.makes_every_call, world_size=4)
    for got, wanted in zip(cluster.launch(programs.makes_every_call, world_size=4), want, strict=True):
        for array, of_threads in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(array, of_threads)
