"""An all-reduce made again from the same line goes a short way, which gives what the long one gives."""

import numpy as np
import pytest

from lab import record
from lab.errors import ArgumentError, LabError, MeshError
from lab.parallel import COLLECTIVES, run_ranks
from lab.parallel.ranks import again


@pytest.fixture
def short_ways(monkeypatch):
    """The results of the calls that went the short way."""
    taken, plain = [], again.run_prepared

    def counted(links, call, *rest):
        taken.append(str(call))
        plain(links, call, *rest)

    monkeypatch.setattr(again, "run_prepared", counted)
    return taken


def over_shared_memory(program, world_size=2):
    return run_ranks(program, world_size=world_size, transport="shared")


@pytest.mark.parametrize("op", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
def test_a_call_made_again_gives_the_same_bits(op, dtype, short_ways):
    def program(comm):
        start = (np.arange(60).reshape(5, 12) % 7 * (comm.rank + 1) / 3).astype(dtype)
        return [comm.all_reduce_(start.copy(), op=op).tobytes() for _ in range(4)]

    results = over_shared_memory(program, 3)
    assert len({each for result in results for each in result}) == 1
    assert len(short_ways) == 3 * 3


def test_calls_are_numbered_on_and_told_with_their_place(short_ways):
    def program(comm):
        for _ in range(3):
            comm.all_reduce_(np.ones(4))
        comm.barrier()
        return comm.collective, comm.links.n_sent

    assert len(set(over_shared_memory(program))) == 1
    assert all(word.startswith("all_reduce ring float64[4] at test_again.py:") for word in short_ways)
    assert len(short_ways) == 4


def test_two_lines_two_sizes_and_two_algorithms_are_four_calls(short_ways):
    def program(comm):
        found = []
        for n, algorithm in [(4, "ring"), (5, "ring"), (4, "halving"), (4, "ring"), (5, "ring"), (4, "halving")]:
            found.append(float(comm.all_reduce_(np.full(n, comm.rank + 1.0), algorithm).sum()))
            found.append(float(comm.all_reduce_(np.full(n, 1.0), algorithm).sum()))
        return found

    once = [12.0, 8.0, 15.0, 10.0, 12.0, 8.0]
    assert over_shared_memory(program) == [once * 2] * 2
    assert len(short_ways) == 2 * 6


def test_a_call_that_somebody_listens_to_is_recorded_as_the_first(short_ways):
    def program(comm):
        for _ in range(2):
            comm.all_reduce_(np.ones(4))

    with record() as recording:
        over_shared_memory(program)
    names = [type(event).__name__ for event in recording]
    assert names.count("CollectiveStarted") == names.count("CollectiveFinished") == 4
    assert not short_ways


def test_an_array_that_cannot_be_written_to_is_refused_the_second_time(short_ways):
    def program(comm):
        array = np.ones(4)
        for turn in range(2):
            array.setflags(write=turn == 0)
            comm.all_reduce_(array)

    with pytest.raises(ArgumentError, match="cannot be written to"):
        over_shared_memory(program)
    assert not short_ways


def test_an_array_with_gaps_is_reduced_the_long_way(short_ways):
    def program(comm):
        arrays = np.ones(4), np.ones(8)[::2], np.ones(4)
        return [comm.all_reduce_(array).tolist() for array in arrays]

    assert over_shared_memory(program) == [[[2.0] * 4] * 3] * 2
    assert len(short_ways) == 2


def test_a_call_made_again_waits_for_those_that_were_started_and_leaves_them_their_arrays(short_ways):
    def program(comm):
        started = np.full(1000, 1.0)
        for turn in range(3):
            comm.all_reduce_(np.ones(4))
            if turn == 1:
                handle = comm.start("all_reduce_", started)
        return float(handle.wait()[0]), comm.collective

    assert over_shared_memory(program) == [(2.0, 4)] * 2
    assert len(short_ways) == 4


def test_an_array_that_belongs_to_a_call_under_way_is_refused(short_ways):
    def program(comm):
        whole = np.ones(8)
        for turn in range(2):
            if turn:
                handle = comm.start("all_reduce_", whole)
            comm.all_reduce_(whole[:4])
        handle.wait()

    with pytest.raises(ArgumentError, match="belongs to a call"):
        over_shared_memory(program)


def test_a_plan_that_was_entered_anew_under_its_name_is_the_one_that_runs(monkeypatch, short_ways):
    def program(comm):
        found = []
        for turn in range(2):
            comm.barrier()
            if turn and comm.rank == 0:
                monkeypatch.setitem(COLLECTIVES, ("all_reduce", "ring"), COLLECTIVES["all_reduce", "direct"])
            comm.barrier()
            found.append(comm.all_reduce_(np.ones(4)).tolist())
        return found

    assert over_shared_memory(program) == [[[2.0] * 4] * 2] * 2
    assert not short_ways


def test_ranks_whose_second_calls_differ_are_told_both():
    def program(comm):
        for turn in range(3):
            if comm.rank == 1 and turn == 2:
                comm.all_reduce_(np.ones(5))
            else:
                comm.all_reduce_(np.ones(4))

    with pytest.raises(MeshError, match="make different calls") as caught:
        over_shared_memory(program)
    assert "float64[4] at test_again.py" in caught.value.given
    assert "float64[5] at test_again.py" in caught.value.given


def test_no_call_works_after_one_that_was_broken_off_on_the_short_way(monkeypatch):
    told = []

    def broken(*_):
        raise ZeroDivisionError

    def program(comm):
        def call():
            comm.all_reduce_(np.ones(4))

        call()
        monkeypatch.setattr(again, "run_prepared", broken)
        with pytest.raises(ZeroDivisionError):
            call()
        with pytest.raises(MeshError) as caught:
            call()
        told.append(caught.value.problem)

    with pytest.raises(LabError):
        over_shared_memory(program)
    assert any("was broken off" in problem for problem in told)  # the other may hear of the end first
