"""Ranks as threads, over sockets and in shared memory: sums, messages, disagreements, what a broken wire does."""

import contextlib
import os
import re
import socket
import threading

import numpy as np
import pytest

from lab.errors import ArgumentError, DTypeError, LostRankError, MeshError, RankError
from lab.events import ChunkMoved, CollectiveFinished, CollectiveStarted, record
from lab.parallel import COLLECTIVES, Recv, Send, simulate_arrays
from lab.parallel.paper.operations import PLACES
from lab.parallel.ranks import execute as executing
from lab.parallel.ranks import threads
from lab.parallel.ranks.runtime import Comm
from lab.parallel.transport import region
from lab.parallel.transport.alarm import Alarm
from lab.parallel.transport.sockets import Links
from lab.parallel.transport.wire import COLLECTIVE, HEADER, MAX_BYTES, POINT, Call, Header, pack, unpack
from tests.slices import sliced


@pytest.fixture(params=threads.TRANSPORTS, autouse=True)
def way(request):
    """Each test twice: collectives over sockets, and through shared memory; all else goes over sockets anyway."""
    _WAY[:] = [request.param]


_WAY = []


def run_ranks(*args, **options):
    return threads.run_ranks(*args, transport=_WAY[0], **options)


def run_local(*args, **options):
    return threads.run_local(*args, transport=_WAY[0], **options)


def cut_small(monkeypatch, n_bytes):
    """Arrays of a few KiB go in many segments, of many cells."""
    monkeypatch.setattr(executing, "SEGMENT", n_bytes)
    monkeypatch.setattr(region, "CELL", 256)
    monkeypatch.setattr(region, "SLOTS", 3)


@pytest.fixture
def wire():
    """The links of rank 0 and the bare other end of its only connection."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    alarm = Alarm()
    links = Links(0, {1: ours}, alarm, generation=7, timeout=5.0)
    yield links, theirs, alarm
    links.close()
    theirs.close()
    alarm.close()


def parts(world_size, size, dtype="f8"):
    return [np.random.default_rng(rank).normal(size=size).astype(dtype) for rank in range(world_size)]


@sliced("dtype")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("size", [0, 1, 7, 1000])
@pytest.mark.parametrize("world_size", [1, 2, 3, 5, 8])
@pytest.mark.parametrize(("operation", "algorithm"), COLLECTIVES)
def test_every_plan_gives_the_bits_that_it_gives_on_paper(operation, algorithm, world_size, size, dtype):
    if operation in PLACES:
        size *= world_size  # blocks that change places have one size
    arrays = parts(world_size, size, dtype)
    want = simulate_arrays(COLLECTIVES[operation, algorithm], arrays)
    want = want[0] if isinstance(want, tuple) else want
    for got, wanted in zip(run_local(operation, algorithm, arrays), want, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_segments_change_no_bit(monkeypatch):
    arrays = parts(3, 100_003, "f4")
    whole = run_local("all_reduce", "ring", arrays)
    cut_small(monkeypatch, 1000)
    for a, b in zip(whole, run_local("all_reduce", "ring", arrays), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_receive_does_not_overtake_a_send_of_the_same_chunk():
    def swap(rank, world_size, n_chunks):
        yield Send(1 - rank, 0, n_chunks), Recv(1 - rank, 0, n_chunks, False)

    a, b = run_local("shift", swap, [np.zeros(1_000_000), np.ones(1_000_000)])
    assert (a == 1).all()
    assert (b == 0).all()


def test_receives_of_one_step_are_added_in_the_order_written():
    def gather(rank, world_size, n_chunks):
        yield tuple(Recv(peer, 0, n_chunks, True) for peer in (2, 1)) if rank == 0 else (Send(0, 0, n_chunks),)

    big = [np.float32([1.0]), np.float32([2**24]), np.float32([-(2**24)])]
    assert run_local("reduce", gather, big)[0] == (big[0] + big[2]) + big[1]


@pytest.mark.parametrize("root", [0, 1, 2])
def test_broadcast_from_any_root(root):
    got = run_local("broadcast", "flat", [np.full(3, rank) for rank in range(3)], root=root)
    assert [x.tolist() for x in got] == [[root] * 3] * 3


def test_bytes_sent_are_those_of_the_formula():
    def program(comm):
        comm.all_reduce_(np.ones(12_000, np.float32))
        return comm.links.n_sent

    assert run_ranks(program, world_size=4) == [2 * 3 * 12_000] * 4  # 2 (n - 1) / n of 48,000 bytes


def test_one_event_for_each_hop_also_when_it_goes_in_segments(monkeypatch):
    cut_small(monkeypatch, 4000)
    with record() as seen:
        run_local("all_reduce", "ring", parts(3, 10_000, "f4"))
    moved = [e for e in seen if isinstance(e, ChunkMoved)]
    assert sorted((e.step, e.src, e.dst, e.reduces) for e in moved) == sorted(
        (step, rank, (rank + 1) % 3, step < 2) for step in range(4) for rank in range(3)
    )
    assert sum(e.n_bytes for e in moved) == 4 * 40_000
    assert all(e.rank == e.dst for e in moved)
    assert sum(isinstance(e, CollectiveStarted) for e in seen) == 3
    assert sum(isinstance(e, CollectiveFinished) for e in seen) == 3


def test_messages_find_their_recv_by_tag_whatever_the_order():
    def program(comm):
        if comm.rank == 0:
            for tag in range(5):
                comm.send(np.full((300, 1000), tag, np.float64), 1, tag)
        comm.barrier()
        if comm.rank == 1:
            return [comm.recv(np.empty((300, 1000)), 0, tag).max() for tag in reversed(range(5))]
        return None

    assert run_ranks(program, world_size=2)[1] == [4, 3, 2, 1, 0]


def test_both_may_send_much_before_they_receive():
    def program(comm):
        out = np.full(3_000_000, comm.rank, np.float64)
        comm.send(out, 1 - comm.rank)
        out[:] = -1  # a copy was sent
        return comm.recv(np.empty(3_000_000), 1 - comm.rank).max()

    assert run_ranks(program, world_size=2) == [1, 0]


def test_what_waits_to_go_out_is_copied_once_however_many_sends_follow(wire):
    links, _, _ = wire
    comm = Comm(0, 2, links)
    comm.send(np.ones(1_000_000), 1, tag=0)
    comm.send(np.ones(1_000_000), 1, tag=1)
    waiting = [part.obj for part in links._outbox[1]]
    comm.send(np.ones(1_000_000), 1, tag=2)
    after = [part.obj for part in links._outbox[1]]
    assert len(after) > len(waiting) > 2
    assert all(part is kept for part, kept in zip(after, waiting, strict=False))


@pytest.mark.parametrize(
    "call",
    [
        lambda comm: comm.all_reduce_(np.ones(3 + comm.rank)),
        lambda comm: comm.all_reduce_(np.ones((4, 3) if comm.rank else (3, 4))),
        lambda comm: comm.all_reduce_(np.ones(3, "f4" if comm.rank else "i4")),
        lambda comm: comm.all_reduce_(np.ones(3), "naive" if comm.rank else "ring"),
        lambda comm: comm.barrier() if comm.rank else comm.all_reduce_(np.ones(1)),
        lambda comm: comm.send(np.ones(3), 0) if comm.rank else comm.recv(np.ones(4), 1),
        lambda comm: comm.barrier() if comm.rank else comm.recv(np.ones(4), 1),
    ],
    ids=["size", "shape", "dtype", "algorithm", "operation", "message", "kind"],
)
def test_calls_that_differ_are_named_with_both_ranks_and_lines(call):
    told = r"ranks 0 and 1 make different calls\ngiven: (rank \d: .* at test_sockets.py:\d+(; )?){2}"
    with pytest.raises(MeshError, match=told):
        run_ranks(call, world_size=2)


def two_sides_differ(rank, n, k):
    """Rank 0 sends a chunk in its second step, and rank 1 waits for both."""
    yield (Send(1, 0, 2), Recv(1, 0, 2, True)) if rank == 0 else (Recv(0, 0, 2, True), Send(0, 0, 2))
    yield Send(1, 0, 1) if rank == 0 else Recv(0, 0, 2, False)


def test_a_hop_whose_two_sides_name_different_chunks_is_told_in_bytes_and_with_its_step():
    told = (r"rank 1 expects 32 bytes of rank 0, which sends 16\n"
            r"given: step 1 on rank 1 of all_reduce two_sides_differ float64\[4\] at test_sockets.py:\d+\n"
            r"hint:  the plan's two sides name different chunks: check_plan\(...\) names the hop")  # fmt: skip
    with pytest.raises(MeshError, match=told):
        run_ranks(lambda comm: comm.all_reduce_(np.ones(4), two_sides_differ), world_size=2)


def one_receive_too_many(rank, n, k):
    yield Send(1, 0, k) if rank == 0 else Recv(0, 0, k, True)
    if rank == 1:
        yield Recv(0, 0, k, True)


def test_a_receive_whose_send_comes_only_in_the_next_call_is_told_by_the_numbers_of_both_calls():
    told = (r"ranks 0 and 1 make different calls\n"
            r"given: rank 1: .*; rank 0: .* \(calls number 0 and 1\)\n"
            r"hint:  a plan whose sends and receives do not pair does so: check_plan\(...\) names the hop")  # fmt: skip

    def program(comm):
        for _ in range(2):
            comm.all_reduce_(np.ones(4), one_receive_too_many)

    with pytest.raises(MeshError, match=told):
        run_ranks(program, world_size=2)


def test_a_rank_that_ended_is_named_by_who_waits_for_it():
    with pytest.raises(MeshError, match="rank 1 has ended its program, and rank 0 waits for it"):
        run_ranks(lambda comm: comm.rank or comm.recv(np.ones(1), 1), world_size=2)


@pytest.mark.parametrize(
    "first",
    [
        lambda comm: comm.all_reduce_(np.ones(3 + comm.rank)),
        lambda comm: comm.send(np.ones(3), 0) if comm.rank else comm.recv(np.ones(4), 1),
        lambda comm: comm.agree(np.ones(3 + comm.rank)),
    ],
    ids=["collective", "message", "agreement"],
)
@pytest.mark.parametrize(
    "then",
    [
        lambda comm: None,
        lambda comm: comm.barrier(),
        lambda comm: comm.agree(np.ones(1)),
        lambda comm: comm.send(np.ones(3), 1 - comm.rank),
        lambda comm: comm.recv(np.ones(3), 1 - comm.rank),
    ],
    ids=["end", "barrier", "agree", "send", "recv"],
)
def test_a_mismatch_that_was_caught_is_what_the_next_call_raises(first, then):
    def program(comm):
        with contextlib.suppress(MeshError):
            first(comm)
        then(comm)

    told = r"ranks 0 and 1 make different calls\ngiven: rank \d: .*\nhint:  rank \d caught this error and went on"
    with pytest.raises(MeshError, match=told):
        run_ranks(program, world_size=2)


@pytest.mark.parametrize("then", [lambda comm: None, lambda comm: comm.barrier()], ids=["end", "barrier"])
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_broadcasts_from_different_roots_are_told_with_both_roots(world_size, then):
    def program(comm):
        comm.broadcast_(np.ones(3), root=comm.rank)
        then(comm)

    told = (
        r"ranks (\d) and (\d) make different calls\n"
        r"given: rank (\d): broadcast flat float64\[3\] root \3 at test_sockets.py:\d+; "
        r"rank (\d): broadcast flat float64\[3\] root \4 at test_sockets.py:\d+"
    )
    with pytest.raises(MeshError, match=told):
        run_ranks(program, world_size=world_size)


def test_one_rank_with_another_root_is_told_also_where_all_have_what_they_wait_for():
    def program(comm):
        comm.broadcast_(np.ones(3), root=0 if comm.rank == 0 else 1)

    with pytest.raises(MeshError, match=r"make different calls\ngiven: .*root [01] at .*root [01] at "):
        run_ranks(program, world_size=3)


def test_a_sum_that_is_too_large_is_inf_without_a_warning():
    def program(comm):
        with np.errstate(all="raise"):
            large = comm.all_reduce_(np.full(200_000, 60_000, np.float16))
            short = comm.all_reduce_(np.array([np.inf if comm.rank else -np.inf, 1.5e308]))
        return bool(np.isinf(large).all()), str(short)

    assert run_ranks(program, world_size=2) == [(True, "[nan inf]")] * 2


def test_a_peer_that_was_lost_is_named_again_after_that_was_caught(wire):
    links, theirs, _ = wire
    theirs.close()
    comm = Comm(0, 2, links)
    with pytest.raises(LostRankError, match="rank 1 hung up"):
        comm.recv(np.ones(1), 1)
    with pytest.raises(MeshError, match=r"rank 1 hung up\ngiven: rank 0 was in message with tag 0"):
        comm.barrier()
    assert comm.inside.startswith("message with tag 0")


def test_a_call_that_was_broken_off_is_what_the_next_call_raises(wire, monkeypatch):
    links, _, _ = wire

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(links, "receive", interrupted)
    comm = Comm(0, 2, links)
    with pytest.raises(KeyboardInterrupt):
        comm.recv(np.ones(1), 1)
    with pytest.raises(MeshError, match=r"a call of rank 0 was broken off\ngiven: KeyboardInterrupt\nhint"):
        comm.barrier()


def test_a_second_thread_that_calls_at_once_is_refused_and_harms_nothing(wire):
    links, theirs, _ = wire
    comm = Comm(0, 2, links)
    real, refused = links._poll, []

    class Asleep:
        def __getattr__(self, name):
            return getattr(real, name)

        def poll(self, milliseconds):
            if not refused:  # the first call sleeps: another thread tries all calls
                thread = threading.Thread(target=others)
                thread.start()
                thread.join()
                word = pack(POINT, 7, Call(0, "message with tag 0, float64[1]", ""), 8)
                theirs.sendall(word + np.ones(1).tobytes())
            return real.poll(milliseconds)

    def others():
        calls = (comm.barrier, lambda: comm.agree(np.ones(1)), lambda: comm.send(np.ones(1), 1),
                 lambda: comm.recv(np.ones(1), 1), links.leave)  # fmt: skip
        for call in calls:
            with pytest.raises(MeshError) as caught:
                call()
            refused.append(str(caught.value).splitlines())

    links._poll = Asleep()
    assert comm.recv(np.zeros(1), 1) == [1.0]
    assert len(refused) == 5
    assert {lines[0] for lines in refused} == {"two calls of rank 0 at once"}
    assert "barrier at test_sockets.py:" in refused[0][1]
    assert "while it is in message with tag 0, float64[1] at test_sockets.py:" in refused[0][1]
    assert {lines[2] for lines in refused} == {"hint:  a Comm belongs to one thread, and to one call at a time"}
    assert comm.collective == 0


def test_a_rank_that_raises_ends_all_and_is_named():
    with pytest.raises(RankError, match="rank 2 raised ZeroDivisionError") as caught:
        run_ranks(lambda comm: comm.barrier() if comm.rank < 2 else 1 / 0, world_size=3)
    assert caught.value.rank == 2


def test_nothing_for_too_long_is_an_error_that_names_the_call(wire):
    links, _, _ = wire
    links.timeout = 0.05
    told = r"rank 0 waited more than 0.05 s for ranks \[1\]\ngiven: in barrier"
    with pytest.raises(LostRankError, match=told) as caught:
        Comm(0, 2, links).barrier()
    assert caught.value.rank == 1


def test_a_pause_of_the_waiter_itself_is_no_time_out(wire, monkeypatch):
    """Suspended for an hour between two looks: the peer was too, and answers when both awake."""
    from lab.parallel.transport import sockets

    links, theirs, _ = wire
    clock = iter([0.0, 0.0, 3600.0, 3600.1])
    real, n_polls = links._poll, 0

    class Sleepy:
        def __getattr__(self, name):
            return getattr(real, name)

        def poll(self, milliseconds):
            nonlocal n_polls
            n_polls += 1
            if n_polls == 2:
                theirs.sendall(pack(POINT, 7, Call(0, "message with tag 0, float64[1]", ""), 8) + np.ones(1).tobytes())
            return real.poll(0 if n_polls == 1 else milliseconds)

    monkeypatch.setattr(sockets, "monotonic", lambda: next(clock, 3600.2))
    monkeypatch.setattr(links, "_poll", Sleepy())
    assert Comm(0, 2, links).recv(np.zeros(1), 1) == [1.0]


@pytest.mark.parametrize(
    "words",
    [
        b"x" * HEADER,
        pack(9, 7, Call(0, "barrier", ""), 1),
        pack(COLLECTIVE, 7, Call(0, "barrier", ""), MAX_BYTES + 1),
        pack(COLLECTIVE, 6, Call(0, "barrier", ""), 1),
    ],
    ids=["garbage", "kind", "length", "generation"],
)
def test_a_damaged_or_foreign_header_is_refused_before_a_byte_is_stored(wire, words):
    links, theirs, _ = wire
    theirs.sendall(words + bytes(100))
    target = np.ones(1)
    with pytest.raises(MeshError, match=r"no message of the lab|belongs to another launch"):
        Comm(0, 2, links).recv(target, 1)
    assert target[0] == 1


def test_a_message_that_claims_to_be_huge_is_not_allocated(wire):
    links, theirs, _ = wire
    theirs.sendall(pack(POINT, 7, Call(3, "message", ""), 1 << 39))
    with pytest.raises(MeshError, match="has sent more than 256 MiB that nobody receives"):
        Comm(0, 2, links).recv(np.ones(1), 1, tag=0)


def test_a_header_comes_through_byte_by_byte(wire):
    links, theirs, _ = wire
    message = pack(POINT, 7, Call(0, "message with tag 0, float64[2]", "there"), 16) + np.arange(2.0).tobytes()

    def drip():
        for i in range(len(message)):
            theirs.sendall(message[i : i + 1])

    thread = threading.Thread(target=drip)
    thread.start()
    assert Comm(0, 2, links).recv(np.zeros(2), 1).tolist() == [0.0, 1.0]
    thread.join()


def sums_of_a_peer(n_calls, dtype, size):
    """What rank 1 sends for so many naive sums of ones: the bytes of all calls at once."""
    message = b""
    for number in range(n_calls):
        call = Call(number, f"all_reduce naive {np.dtype(dtype)}[{size}]", "there.py:1")
        message += pack(COLLECTIVE, 7, call, np.dtype(dtype).itemsize * size) + np.ones(size, dtype).tobytes()
    return message


@pytest.mark.parametrize(("dtype", "size"), [("f8", 5), ("i1", 3), ("f4", 0), ("f8", 3000), ("c16", 20_000)])
@pytest.mark.parametrize("n_bytes", [1, 100, 5000, 1 << 30])
def test_sums_are_right_however_the_bytes_come(wire, dtype, size, n_bytes):
    links, theirs, _ = wire
    comm, message = Comm(0, 2, links), sums_of_a_peer(3, dtype, size)
    n_bytes = max(n_bytes, len(message) // 2000)  # a drip, and not for ever

    def drip():
        for start in range(0, len(message), n_bytes):
            theirs.sendall(message[start : start + n_bytes])

    def drain():
        while left[0] > 0:
            left[0] -= len(theirs.recv(1 << 16))

    left = [len(message)]
    threads = [threading.Thread(target=drip), threading.Thread(target=drain)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        assert (comm.all_reduce_(np.full(size, 2, dtype), "naive") == 3).all()
    for thread in threads:
        thread.join()


def test_a_message_before_a_sum_waits_for_its_recv(wire):
    links, theirs, _ = wire
    word = pack(POINT, 7, Call(4, "message with tag 4, float64[2]", "there"), 16) + np.arange(2.0).tobytes()
    theirs.sendall(word + sums_of_a_peer(1, "f8", 5) + word)
    comm = Comm(0, 2, links)
    assert (comm.all_reduce_(np.full(5, 2.0), "naive") == 3).all()
    for _ in range(2):
        assert comm.recv(np.zeros(2), 1, tag=4).tolist() == [0.0, 1.0]


def test_an_alarm_is_heard_between_looks_and_in_a_sleep(wire):
    links, _, alarm = wire
    links._spins = 10**9  # never sleeps
    threading.Timer(0.01, alarm.ring, ("stopped", "Stop was pressed")).start()
    with pytest.raises(MeshError, match="Stop was pressed"):
        Comm(0, 2, links).all_reduce_(np.ones(3), "naive")


def test_ranks_look_before_they_sleep_only_where_each_can_have_a_core(monkeypatch):
    from lab.parallel.transport import sockets

    for n_cores, spins in [(1, 0), (2, sockets.SPINS), (8, sockets.SPINS)]:
        monkeypatch.setattr(sockets, "n_cores", lambda n=n_cores: n)
        assert run_ranks(lambda comm: comm.links._spins, world_size=2) == [spins] * 2


def test_headers_survive_packing():
    call = Call(12, "all_reduce ring float32[3]", "cell ü.py:3")
    assert unpack(pack(COLLECTIVE, 2, call, 12), 2, peer=0)[:5] == Header(COLLECTIVE, 2, 12, 0, 12, b"", "")[:5]
    assert unpack(pack(COLLECTIVE, 2, call, 12), 2, peer=0).words == "all_reduce ring float32[3] at cell ü.py:3"


def test_a_peer_that_hangs_up_is_lost_unless_the_alarm_knows_better(wire):
    links, theirs, alarm = wire
    theirs.close()
    with pytest.raises(LostRankError, match="rank 1 hung up"):
        Comm(0, 2, links).recv(np.ones(1), 1)
    alarm.ring("lost", "rank 3 was lost", rank=3)
    with pytest.raises(LostRankError, match="rank 3 was lost"):
        Comm(0, 2, links).recv(np.ones(1), 1)


def test_the_alarm_ends_a_wait_at_once(wire):
    links, _, alarm = wire
    links.timeout = 1000.0
    threading.Timer(0.01, alarm.ring, ("stopped", "Stop was pressed")).start()
    with pytest.raises(MeshError, match="Stop was pressed"):
        Comm(0, 2, links).recv(np.ones(1), 1)


def test_an_alarm_rings_once_and_not_after_it_was_closed():
    alarm, heard = Alarm(), []
    alarm.on_ring(lambda: heard.append("before"))
    assert alarm.ring("raised", "rank 1 raised", rank=1)
    assert not alarm.ring("stopped", "too late")
    alarm.on_ring(lambda: heard.append("after"))
    assert heard == ["before", "after"]
    assert alarm.why == "rank 1 raised"
    alarm.close()
    alarm.close()
    other = Alarm()
    other.close()
    assert not other.ring("stopped", "nobody is there")


def test_a_forked_child_does_not_hold_the_connection(wire):
    links, theirs, _ = wire
    read_end, write_end = os.pipe()
    child = os.fork()  # no other thread of ours runs now
    if child == 0:
        fds = [sock.fileno() for sock in links._sockets.values()]
        os.write(write_end, b"closed" if fds == [-1] else b"open")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read_end, 10) == b"closed"
    os.close(read_end)
    os.close(write_end)
    theirs.sendall(pack(POINT, 7, Call(0, "message with tag 0, float64[1]", ""), 8) + np.ones(1).tobytes())
    assert Comm(0, 2, links).recv(np.zeros(1), 1) == [1.0]  # the parent's lives on


def test_arrays_that_cannot_be_written_or_are_none_are_refused(wire):
    comm = Comm(0, 2, wire[0])
    frozen = np.ones(3)
    frozen.setflags(write=False)
    with pytest.raises(ArgumentError, match="cannot be written to"):
        comm.recv(frozen, 1)
    with pytest.raises(ArgumentError, match=r"NumPy arrays\ngiven: float"):
        comm.all_reduce_(1.0)
    with pytest.raises(ArgumentError, match=r"no such root\ngiven: root=2, world_size=2"):
        comm.broadcast_(np.ones(1), root=2)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda c: c.all_reduce_(np.ma.ones(3)), "given: MaskedArray\nhint:  np.asarray makes one, without the mask"),
        (lambda c: c.broadcast_(matrix()), "NumPy arrays\ngiven: matrix\nhint:  np.asarray makes one"),
        (lambda c: c.send(matrix(), 1), "NumPy arrays\ngiven: matrix\nhint:  np.asarray makes one"),
        (lambda c: c.agree([1, 2]), "NumPy arrays\ngiven: list\nhint:  np.asarray makes one"),
        (lambda c: c.send(np.ones(1), 1, tag="x"), "the tag is a whole number\ngiven: tag='x'\nhint:  an int"),
        (lambda c: c.send(np.ones(1), 1, tag=2**70), f"no such tag\ngiven: tag={2**70}\nhint:  tags are -2**63"),
        (
            lambda c: c.recv(np.ones(1), 1, tag=-(2**63) - 1),
            f"no such tag\ngiven: tag={-(2**63) - 1}\nhint:  tags are -2**63",
        ),
        (lambda c: c.recv(np.ones(1), 1.0), "the peer is a whole number\ngiven: peer=1.0\nhint:  an int"),
        (lambda c: c.broadcast_(np.ones(1), root="0"), "the root is a whole number\ngiven: root='0'\nhint:  an int"),
        (lambda c: c.all_reduce_(np.ones(1), algorithm=3), "a name or a plan\ngiven: algorithm=3\nhint:  "),
    ],
)
def test_arguments_that_no_call_can_take_are_refused_in_three_lines(wire, call, told):
    comm = Comm(0, 2, wire[0])
    with pytest.raises(ArgumentError, match=re.escape(told)):
        call(comm)
    comm.send(np.ones(1), 1)  # nothing was begun: the next call works


def matrix():
    return np.ones((2, 2)).view(np.matrix)


@pytest.mark.parametrize("dtype", ["U3", "S2", "M8[s]", "m8[ns]", [("a", "i4"), ("b", "f8", 2)], "?", ">c16"])
def test_a_broadcast_takes_every_dtype_without_objects(dtype):
    def program(comm):
        array = np.zeros(70, dtype) if comm.rank else numbers.astype(dtype)
        return comm.broadcast_(array[::2])

    numbers = np.arange(70)
    with record() as seen:
        got = run_ranks(program, world_size=3)
    for array in got:
        np.testing.assert_array_equal(array, numbers.astype(dtype)[::2])
    assert sum(isinstance(e, CollectiveFinished) for e in seen) == 3


@pytest.mark.parametrize("world_size", [1, 2])
def test_text_is_not_summed_on_any_rank(world_size):
    def program(comm):
        with pytest.raises(DTypeError, match=r"ranks exchange numbers\ngiven: dtype <U1"):
            comm.all_reduce_(np.array(["a"]), "naive")

    run_ranks(program, world_size=world_size)


def test_tags_may_be_whole_numbers_of_any_kind():
    def program(comm):
        if comm.rank == 0:
            comm.send(np.ones(1), np.int64(1), tag=np.uint8(7))
            comm.send(np.zeros(1), 1, tag=2**63 - 1)
            return None
        return float(comm.recv(np.zeros(1), 0, 2**63 - 1)[0]), float(comm.recv(np.zeros(1), 0, 7)[0])

    assert run_ranks(program, world_size=2)[1] == (0.0, 1.0)
