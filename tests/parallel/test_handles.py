"""Calls that are started and waited for later: their order, their turn, their errors, and what is forgotten."""

import re
import threading

import numpy as np
import pytest

from lab.errors import ArgumentError, LostRankError, MeshError, RankError
from lab.events import ChunkMoved, CollectiveFinished, CollectiveStarted, record
from lab.parallel import Recv, Send, run_ranks
from tests.parallel import programs
from tests.parallel.trainings import SOON


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_many_calls_under_way_give_what_they_give_one_by_one(n):
    def program(comm, started):
        arrays = [np.random.default_rng(comm.rank + 10 * i).normal(size=(50, i)) for i in range(8)]
        if started:
            handles = [comm.start("all_reduce_", array, op="mean") for array in arrays]
            for handle, array in zip(reversed(handles), reversed(arrays), strict=True):
                assert handle.wait() is array
        else:
            for array in arrays:
                comm.all_reduce_(array, op="mean")
        return arrays

    for got, want in zip(*(run_ranks(program, s, world_size=n) for s in (True, False)), strict=True):
        for array, wanted in zip(got, want, strict=True):
            np.testing.assert_array_equal(array, wanted)


STARTS = [
    ("all_reduce_", lambda c: (np.full(3, c.rank),), [3, 3, 3]),
    ("broadcast_", lambda c: (np.full(3, c.rank), 1), [1, 1, 1]),
    ("reduce_", lambda c: (np.full(3, c.rank), 0), {0: [3, 3, 3], 1: [1, 1, 1], 2: [2, 2, 2]}),
    ("reduce_scatter", lambda c: (np.arange(3),), {0: [0], 1: [3], 2: [6]}),
    ("all_gather", lambda c: (np.array(c.rank),), [0, 1, 2]),
    ("gather", lambda c: (np.array(c.rank), 2), {2: [0, 1, 2]}),
    ("scatter", lambda c: (np.arange(3) if c.rank == 1 else None, 1), {0: [0], 1: [1], 2: [2]}),
    ("all_to_all", lambda c: (np.arange(3) + 10 * c.rank,), {0: [0, 10, 20], 1: [1, 11, 21], 2: [2, 12, 22]}),
    ("barrier", lambda c: (), None),
]


@pytest.mark.parametrize(("name", "arguments", "want"), STARTS, ids=[row[0] for row in STARTS])
def test_every_collective_can_be_started(name, arguments, want):
    def program(comm):
        handle = comm.start(name, *arguments(comm))
        result = handle.wait()
        assert handle.result is result
        assert handle.done
        return None if result is None else result.tolist()

    got = run_ranks(program, world_size=3)
    assert got == [want.get(rank) if isinstance(want, dict) else want for rank in range(3)]


def test_start_returns_before_the_others_have_come_and_is_done_when_they_have():
    come = threading.Event()

    def program(comm):
        if comm.rank == 0:
            handle = comm.start("all_reduce_", np.ones(2))
            before = handle.done
            come.set()
            handle.wait()
            return before, handle.done
        assert come.wait(SOON)  # it is not waited for in start
        comm.all_reduce_(np.ones(2))
        return None

    assert run_ranks(program, world_size=2)[0] == (False, True)


def test_a_call_that_is_waited_for_takes_its_turn_behind_those_that_were_started():
    def program(comm):
        order = []
        handles = [comm.start("all_reduce_", np.full(100_000, i)) for i in range(3)]
        total = comm.all_reduce_(np.ones(1))[0]
        order.append([handle.done for handle in handles])
        if comm.rank == 0:
            comm.send(np.ones(1), 1)
        else:
            comm.recv(np.ones(1), 0)
        return total, order, [handle.wait()[0] for handle in handles]

    assert run_ranks(program, world_size=2) == [(2.0, [[True] * 3], [0, 2, 4])] * 2


def test_started_calls_of_groups_and_of_all_keep_their_order():
    def program(comm):
        pair = comm.split(comm.rank % 2)
        handles = [part.start("all_reduce_", np.array([10.0**comm.rank])) for part in (pair, comm) * 3]
        return [handle.wait()[0] for handle in handles]

    odd, even = 1010.0, 101.0
    assert run_ranks(program, world_size=4) == [[even, 1111.0] * 3, [odd, 1111.0] * 3] * 2


def test_the_array_belongs_to_the_call_until_it_is_waited_for():
    def program(comm):
        array = np.zeros(4)
        handle = comm.start("all_reduce_", array)
        with pytest.raises(ValueError, match="read-only"):
            array += 1
        for call in (comm.all_reduce_, lambda a: comm.start("reduce_", a), lambda a: comm.all_gather(a[1:]),
                     lambda a: comm.send(a, 1 - comm.rank)):  # fmt: skip
            with pytest.raises(ArgumentError, match="belongs to a call that has not been waited for") as told:
                call(array)
            assert re.search(r"given: all_reduce ring float64\[4\] at test_handles.py:\d+\n", str(told.value))
        handle.wait()
        array += 1
        comm.all_reduce_(array)
        return array.tolist()

    assert run_ranks(program, world_size=2) == [[2.0] * 4] * 2


def test_an_array_that_is_not_contiguous_is_written_when_the_call_ends():
    def program(comm):
        array = np.arange(12.0).reshape(3, 4).T[::2]
        comm.start("all_reduce_", array, op="max").wait()
        return array.tolist()

    assert run_ranks(program, world_size=2) == [np.arange(12.0).reshape(3, 4).T[::2].tolist()] * 2


def test_a_call_that_is_only_read_from_leaves_the_array_free_at_once():
    def program(comm):
        array = np.full(2, comm.rank)
        handle = comm.start("all_gather", array)
        array += 100
        return handle.wait().tolist()

    assert run_ranks(program, world_size=2) == [[[0, 0], [1, 1]]] * 2


def test_an_unwaited_handle_at_the_end_is_an_error_that_names_its_line():
    def program(comm):
        comm.start("all_reduce_", np.ones(2))  # this line
        comm.start("barrier")

    with pytest.raises(MeshError) as told:
        run_ranks(program, world_size=2)
    (line,) = programs.lines_of(program, "this line")
    assert "ended its program without waiting for 2 calls" in told.value.problem
    assert f"all_reduce ring float64[2] at test_handles.py:{line}; barrier at test_handles.py" in told.value.given
    assert "wait()" in told.value.hint


def test_what_a_started_call_raises_is_raised_by_wait_and_by_the_next_call():
    def program(comm, then):
        handle = comm.start("all_reduce_", np.ones(3 + comm.rank))
        second = comm.start("barrier")
        errors = []
        for act in (handle.wait, second.wait, comm.barrier) if then == "wait" else (comm.barrier, handle.wait):
            try:
                act()
            except MeshError as error:
                errors.append(str(error))
        assert len(errors) == (3 if then == "wait" else 2)
        assert all(handle.done for handle in (handle, second))
        raise ZeroDivisionError(errors[0])

    for then in ("wait", "call"):
        with pytest.raises((RankError, MeshError)) as told:
            run_ranks(program, then, world_size=2)
        assert "float64[3]" in str(told.value)
        assert "float64[4]" in str(told.value)


def test_an_error_that_nobody_waited_for_surfaces_at_the_end():
    def program(comm):
        comm.start("all_reduce_", np.ones(3 + comm.rank))

    with pytest.raises(MeshError, match=r"make different calls|without waiting"):
        run_ranks(program, world_size=2)


def test_a_started_call_runs_into_the_time_out_as_others_do():
    over = threading.Event()

    def program(comm):
        if comm.rank == 0:
            try:
                comm.start("barrier").wait()
            finally:
                over.set()
        else:
            assert over.wait(SOON)

    with pytest.raises(LostRankError, match=r"rank 0 waited more than 0.3 s for ranks \[1\]"):
        run_ranks(program, world_size=2, timeout=0.3)


def test_a_rank_that_raises_with_calls_under_way_ends_all_and_leaves_no_thread():
    def program(comm):
        handle = comm.start("all_reduce_", np.ones(5)) if comm.rank != 1 else None
        if handle is None:
            raise ValueError("bad luck")
        handle.wait()

    with pytest.raises(RankError, match="rank 1 raised ValueError"):
        run_ranks(program, world_size=3)
    assert not [t.name for t in threading.enumerate() if t.name.startswith("lab-progress")]


def test_a_rank_that_raises_beside_its_own_call_ends_it():
    def program(comm):
        if comm.rank == 0:
            comm.start("barrier")
            raise ValueError("bad luck")
        while True:
            comm.mailbox.wait(0.05)
            comm.links.alarm.check()

    with pytest.raises(RankError, match="rank 0 raised ValueError"):
        run_ranks(program, world_size=2)


def test_a_program_computes_while_its_call_is_carried_out():
    """A plan asks for its steps in the thread that carries it out: while it waits there, the program goes on."""
    gate, seen = threading.Event(), []

    def slowly(rank, world_size, n_chunks):
        yield Send(1 - rank, 0, n_chunks), Recv(1 - rank, 0, n_chunks, True)

    def program(comm):
        comm.mailbox.put("begun")
        handle = comm.start("all_reduce_", np.ones(3), slowly) if comm.rank == 0 else None
        if comm.rank == 0:
            seen.append(handle.done)  # the other rank has not come yet: it waits for this line
            gate.set()
        else:
            assert gate.wait(SOON)
            handle = comm.start("all_reduce_", np.ones(3), slowly)
        return handle.wait().tolist()

    assert run_ranks(program, world_size=2) == [[2.0] * 3] * 2
    assert seen == [False]


def test_what_cannot_be_started_is_refused_in_the_line_of_the_start():
    def program(comm):
        for name, told in (("all_reduce", "did you mean 'all_reduce_'?"), (3, "operation=3"), ("send", "one of all_")):
            with pytest.raises(ArgumentError, match=re.escape(told)):
                comm.start(name, np.ones(2))
        with pytest.raises(ArgumentError, match="no such reduction"):
            comm.start("all_reduce_", np.ones(2), op="avg")
        return repr(comm.start("barrier").wait())

    assert run_ranks(program, world_size=2) == ["None", "None"]


def test_events_of_started_calls_are_those_of_calls():
    def program(comm, started):
        if started:
            comm.start("all_reduce_", np.ones(4)).wait()
        else:
            comm.all_reduce_(np.ones(4))

    told = []
    for started in (True, False):
        with record(kinds=[CollectiveStarted, ChunkMoved, CollectiveFinished]) as seen:
            run_ranks(program, started, world_size=3)
        told.append(sorted((e.rank, type(e).__name__, getattr(e, "step", -1), e.collective) for e in seen))
    assert told[0] == told[1]


def test_workers_start_calls_and_forget_none(cluster, the_next_launch_works):
    assert cluster.launch(programs.starts_calls, 20, world_size=4) == [[6.0 + 4 * i for i in range(20)]] * 4
    with pytest.raises(MeshError, match="without waiting for 1 call"):
        cluster.launch(programs.forgets_a_call, world_size=4)


def test_a_worker_killed_in_a_started_call_is_named(cluster, the_next_launch_works):
    with pytest.raises(LostRankError) as told:
        cluster.launch(programs.dies_in_a_started_call, 1, world_size=4)
    assert told.value.rank == 1
