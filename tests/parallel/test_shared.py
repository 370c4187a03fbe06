"""Collectives through shared memory: the bits of paper, plans that need room, dtypes, what else goes on meanwhile."""

import itertools
import os
import select
import socket
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from lab.errors import ArgumentError, MeshError
from lab.events import CollectiveStarted, record
from lab.kernels import mover as compiling
from lab.kernels import passing
from lab.parallel import COLLECTIVES, Recv, Send, simulate_arrays
from lab.parallel.ranks import shared as executing
from lab.parallel.ranks.threads import run_local, run_ranks
from lab.parallel.transport import handing, region, sockets
from lab.parallel.transport.alarm import Alarm
from lab.parallel.transport.handing import share
from lab.parallel.transport.region import Layout
from tests.slices import sliced

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", "c8", "c16", ">f4", ">i2"]


def parts(world_size, size, dtype="f8"):
    values = [np.random.default_rng(rank).normal(size=size) * 50 for rank in range(world_size)]
    return [np.abs(x).astype(dtype) if np.dtype(dtype).kind in "u?" else x.astype(dtype) for x in values]


def agrees_with_paper(plan, arrays, **options):
    want = simulate_arrays(plan, arrays)
    for got, wanted in zip(run_local("all_reduce", plan, arrays, transport="shared", **options), want, strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)


@pytest.fixture
def small_cells(monkeypatch):
    monkeypatch.setattr(region, "CELL", 256)
    monkeypatch.setattr(region, "SLOTS", 3)


@sliced("dtype")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("world_size", [2, 3])
def test_every_dtype_gives_the_bits_of_paper(dtype, world_size, small_cells):
    agrees_with_paper(COLLECTIVES["all_reduce", "ring"], parts(world_size, 1003, dtype))


@sliced("world_size")
@pytest.mark.parametrize("world_size", range(1, 9))
@pytest.mark.parametrize(("operation", "algorithm"), COLLECTIVES)
def test_every_plan_gives_the_bits_of_paper_when_its_chunks_go_in_many_cells(
    operation, algorithm, world_size, small_cells
):
    arrays = parts(world_size, 6_720, "f4")
    want = simulate_arrays(COLLECTIVES[operation, algorithm], arrays)
    got = run_local(operation, algorithm, arrays, transport="shared")
    for one, wanted in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, wanted)


def test_the_loop_in_plain_python_gives_the_same_bits(monkeypatch, small_cells):
    monkeypatch.setattr(executing, "mover", lambda: passing.move)
    agrees_with_paper(COLLECTIVES["all_reduce", "ring"], parts(3, 1003, "f4"))
    agrees_with_paper(swap, parts(2, 1003, "i8"))
    agrees_with_paper(all_send_before_any_receives, parts(2, 1003, "f8"))


def swap(rank, world_size, n_chunks):
    """The whole buffer goes both ways at once: what comes may not overtake what goes."""
    yield Send(1 - rank, 0, n_chunks), Recv(1 - rank, 0, n_chunks, True)


def swap_crosswise(rank, world_size, n_chunks):
    """As `swap`, each chunk of which waits for a send that stands behind another one."""
    first, second = (0, 1) if rank == 0 else (1, 0)
    yield (Send(1 - rank, first, first + 1), Send(1 - rank, second, second + 1),
           Recv(1 - rank, second, second + 1, True), Recv(1 - rank, first, first + 1, True))  # fmt: skip


def all_send_before_any_receives(rank, world_size, n_chunks):
    """Sends never wait, so both may come first."""
    yield Send(1 - rank, 0, n_chunks)
    yield Recv(1 - rank, 0, n_chunks, True)
    yield Send(1 - rank, 0, n_chunks)
    yield Recv(1 - rank, 0, n_chunks, False)


def each_to_each_in_a_circle(rank, world_size, n_chunks):
    """Everybody sends all of it to all, and adds what comes in an order that is another one on each rank."""
    others = [(rank + distance) % world_size for distance in range(1, world_size)]
    yield tuple(Send(peer, 0, n_chunks) for peer in others) + tuple(Recv(peer, 0, n_chunks, True) for peer in others)


@pytest.mark.parametrize("size", [10, 1_000, 20_000])
@pytest.mark.parametrize("plan", [swap, swap_crosswise, all_send_before_any_receives])
def test_plans_of_two_that_need_more_room_than_a_queue_has_come_to_their_end(plan, size, small_cells):
    agrees_with_paper(plan, parts(2, size))


@pytest.mark.parametrize("size", [10, 20_000])
@pytest.mark.parametrize("world_size", [3, 5])
def test_all_that_goes_to_all_comes_to_its_end(world_size, size, small_cells):
    agrees_with_paper(each_to_each_in_a_circle, parts(world_size, size))


def test_several_calls_find_their_own_arrays_and_sizes(small_cells):
    def program(comm):
        sums = []
        for turn in range(40):
            x = np.full(7 * turn, comm.rank + turn, ["f4", "i2", "c8"][turn % 3])
            sums.append(comm.all_reduce_(x, ["ring", "naive"][turn % 2]).sum())
        return sums

    first, *others = run_ranks(program, world_size=3, transport="shared")
    assert first == [7 * turn * (3 + 3 * turn) for turn in range(40)]
    assert all(other == first for other in others)


def test_arrays_that_are_not_aligned_are_added_all_the_same():
    def program(comm):
        raw = np.zeros(8 * 100 + 1, np.uint8)
        x = raw[1:].view(np.float64)
        x[:] = comm.rank + 1
        return comm.all_reduce_(x).sum()

    assert run_ranks(program, world_size=2, transport="shared") == [300.0, 300.0]


def test_messages_go_on_while_a_rank_waits_in_shared_memory():
    """Rank 0 has more on its way to rank 1 than a socket holds, and waits in a collective for it to come."""

    def program(comm):
        if comm.rank == 0:
            comm.send(np.arange(2_000_000.0), 1, tag=3)
            comm.send(np.arange(3.0), 1, tag=4)
        else:
            short = comm.recv(np.empty(3), 0, tag=4)
            long = comm.recv(np.empty(2_000_000), 0, tag=3)
            assert short.sum() == 3.0
            assert long[-1] == 1_999_999
        return float(comm.all_reduce_(np.ones(1))[0])

    assert run_ranks(program, world_size=2, transport="shared") == [2.0, 2.0]


def test_messages_that_come_before_a_collective_ends_are_received_after_it():
    def program(comm):
        if comm.rank == 0:
            comm.send(np.arange(2_000_000.0), 2, tag=3)
            comm.recv(np.empty(1), 2)  # rank 2 is there, and soon waits in the collective, where it reads all of that
        if comm.rank == 2:
            comm.send(np.ones(1), 0)
        comm.all_reduce_(np.ones(1))
        return comm.recv(np.empty(2_000_000), 0, tag=3)[-1] if comm.rank == 2 else None

    assert run_ranks(program, world_size=3, transport="shared")[2] == 1_999_999


def test_a_note_of_a_wait_that_is_over_says_nothing_of_what_the_peer_does_now(monkeypatch):
    monkeypatch.setattr(sockets, "NOTE", 0.0)

    def program(comm):
        mine, numbers = np.zeros(3), np.ones(2)
        if comm.rank == 1:
            comm.agree(numbers)  # waits, and says so
            comm.send(np.arange(3.0), 0)
            comm.agree(numbers)
        else:
            assert select.select([comm.links._sockets[1]], [], [], 10)[0]  # the note is here
            comm.agree(numbers)
            while comm.links.shared.next_header(1) is None:
                os.sched_yield()  # now rank 1 is in the second agreement, and its message behind its first note
            comm.recv(mine, 1)
            comm.agree(numbers)
        return mine.tolist(), numbers.tolist()

    assert run_ranks(program, world_size=2, transport="shared") == [([0, 1, 2], [4, 4]), ([0, 0, 0], [4, 4])]


def test_a_rank_that_ended_is_named_by_who_waits_for_it_in_shared_memory():
    with pytest.raises(MeshError, match="rank 1 has ended its program, and rank 0 waits for it"):
        run_ranks(lambda comm: comm.rank or comm.all_reduce_(np.ones(1)), world_size=2, transport="shared")


def test_who_is_ahead_may_end_before_the_others_have_taken_what_it_sent():
    def program(comm):
        return float(comm.broadcast_(np.full(100_000, comm.rank + 1.0))[-1])

    assert run_ranks(program, world_size=4, transport="shared") == [1.0] * 4


def test_a_wait_in_shared_memory_that_is_too_long_is_told():
    free = threading.Event()

    def program(comm):
        try:
            if comm.rank:
                free.wait(60)
            comm.all_reduce_(np.ones(1))
        finally:
            free.set()

    with pytest.raises(ConnectionError, match=r"rank 0 waited more than 0.3 s for ranks \[1\]"):
        run_ranks(program, world_size=2, transport="shared", timeout=0.3)


@pytest.mark.parametrize("world_size", [1, 2, 3, 8, 16, 64, 256])
def test_a_region_is_never_much_larger_than_its_limit(world_size):
    layout = Layout.of(world_size)
    assert layout.n_bytes < 1.2 * region.MOST + world_size**2 * (3 << 13)
    assert layout.cell % 64 == 0
    assert layout.data % 4096 == 0
    assert layout.slots >= region.LEAST_SLOTS


def test_two_ranks_have_a_full_queue():
    assert (Layout.of(2).slots, Layout.of(2).cell) == (region.SLOTS, region.CELL)
    assert Layout.of(8).slots * Layout.of(8).cell == region.SLOTS * region.CELL


def test_there_is_no_other_transport_for_threads():
    with pytest.raises(ArgumentError, match=r"threads have no such transport\ngiven: transport='shard'"):
        run_ranks(lambda comm: None, world_size=2, transport="shard")


def test_without_numba_shared_memory_is_refused(monkeypatch):
    monkeypatch.setattr("lab.parallel.ranks.threads.mover", lambda: None)
    with pytest.raises(MeshError, match="ranks share no memory without numba"):
        run_ranks(lambda comm: None, world_size=2, transport="shared")


def test_the_executor_is_compiled_once_for_a_process():
    assert compiling.mover() is compiling.mover()
    assert (compiling.mover() is not None) == (sys.platform == "linux")


@pytest.mark.parametrize(("transport", "told"), [("shared", "shared"), ("sockets", "unix")])
def test_the_start_of_a_collective_tells_how_its_chunks_go(transport, told):
    with record() as seen:
        run_ranks(lambda comm: comm.barrier(), world_size=2, transport=transport)
    assert [e.transport for e in seen if isinstance(e, CollectiveStarted)] == [told] * 2


class Together:
    """Ranks that meet over sockets and then ask for memory, each in a thread; `share` of each."""

    def __init__(self, world_size):
        meshes = [{} for _ in range(world_size)]
        for a, b in itertools.combinations(range(world_size), 2):
            meshes[a][b], meshes[b][a] = socket.socketpair()
        self.meshes = meshes

    def share(self):
        alarm, found = Alarm(), {}
        tasks = [threading.Thread(target=lambda r=rank: found.update({r: share(r, self.meshes[r], alarm, 10.0)}))
                 for rank in range(len(self.meshes))]  # fmt: skip
        for task in tasks:
            task.start()
        for task in tasks:
            task.join()
        for sock in itertools.chain.from_iterable(mesh.values() for mesh in self.meshes):
            sock.close()
        alarm.close()
        return [found[rank] for rank in range(len(self.meshes))]


def memory_of_ranks():
    return [line for line in Path("/proc/self/maps").read_text().splitlines() if "lab-ranks" in line]


def test_a_region_is_handed_to_all_and_gone_when_all_have_left():
    regions = [region for region, _ in Together(3).share()]
    regions[0].words[5] = 77
    assert [int(region.words[5]) for region in regions] == [77] * 3
    assert len(memory_of_ranks()) == 3
    for one in regions:
        one.close()
    assert memory_of_ranks() == []


@pytest.mark.parametrize("call", ["ftruncate", "posix_fallocate"])
def test_too_little_memory_is_told_and_nobody_has_any(monkeypatch, call):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, full)
    told = [why for region, why in Together(3).share() if region is None]
    assert told[0].startswith("there is no memory that ranks could share (")
    assert told[1:] == ["another rank cannot take part"] * 2
    assert memory_of_ranks() == []


def test_one_rank_that_cannot_map_it_keeps_all_from_it(monkeypatch):
    real = handing.enter

    def refuses(fd, rank, world_size):
        if rank == 1:
            raise OSError(12, "Cannot allocate memory")
        return real(fd, rank, world_size)

    monkeypatch.setattr(handing, "enter", refuses)
    found = Together(3).share()
    assert [region for region, _ in found] == [None] * 3
    assert "rank 1 cannot map it" in found[1][1]
    assert memory_of_ranks() == []
