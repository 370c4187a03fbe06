"""The relay by itself: what it takes, sends, drops and counts, and the one order that is made of all ranks."""

import threading
from concurrent.futures import Future
from time import perf_counter_ns

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.events import (
    EVENTS,
    ActionFinished,
    Bus,
    ChunkMoved,
    CollectiveStarted,
    Detail,
    OpRecorded,
    Origin,
    RankStarted,
    Recording,
    RunStateChanged,
    StepFinished,
    event,
)
from lab.events.bus import Row
from lab.events.event import Event
from lab.parallel.news import merge as merges
from lab.parallel.news import relay as relays
from lab.parallel.news.feed import Feed, Sent
from lab.parallel.news.merge import PATIENCE_NS, Merge
from lab.parallel.news.relay import FOREVER_NS, Parcel, Relay, Watch, pack, this_process, unpack, watch_of

OURS = Origin(2, "run")


def watch(*kinds, detail=Detail.SHAPE):
    return Watch(frozenset(kind.__name__ for kind in kinds), detail, False, "elsewhere")


def state(step):
    return Row(RunStateChanged, step, OURS, (step, "running"))


# --- what is asked for


def test_nobody_who_listens_asks_for_nothing():
    assert watch_of(Bus()) is None


def test_who_takes_all_is_spared_the_operations_of_ranks_and_who_names_them_gets_them():
    bus = Bus()
    bus.attach(Recording(detail="statistics", sources=False))
    asked = watch_of(bus)
    assert asked.kinds == {name for name, kind in EVENTS.items() if not kind.per_operation}
    assert asked[1:] == (Detail.STATISTICS, False, this_process())
    bus.attach(Recording(detail="value", kinds=[OpRecorded]))
    asked = watch_of(bus)
    assert asked.kinds == {name for name, kind in EVENTS.items() if not kind.per_operation} | {"OpRecorded"}
    assert asked[1:3] == (Detail.VALUE, True)


def test_a_listener_to_nothing_asks_for_nothing():
    bus = Bus()
    bus.attach(Recording(kinds=[]))
    assert watch_of(bus) is None


# --- parcels


@pytest.fixture
def Sneezed():
    """A kind without fields, for one test."""

    @event
    class Sneezed(Event):
        pass

    yield Sneezed
    EVENTS.pop("Sneezed", None)


def test_rows_survive_a_parcel_with_arrays_defaults_left_out_and_kinds_without_fields(Sneezed):
    rows = [
        Row(CollectiveStarted, 1, OURS, (0, "all_reduce", "ring", 32, 4, 4, np.arange(4.0))),
        Row(CollectiveStarted, 2, OURS, (1, "all_reduce", "ring", 32, 4, 4)),
        Row(Sneezed, 3, OURS, ()),
        Row(StepFinished, 4, OURS, (1, 0, float("nan"), 64, 2.5)),
        Row(Sneezed, 5, OURS, ()),
    ]
    bus, rec = Bus(), Recording(run="*", detail="value")
    again = unpack(pack(rows), OURS)
    assert [row[:3] for row in again] == [row[:3] for row in rows]
    bus.attach(rec)
    for row in again:
        bus.append(row)
    bus.detach(rec)
    assert [type(e).__name__ for e in rec] == ["CollectiveStarted"] * 2 + ["Sneezed", "StepFinished", "Sneezed"]
    assert rec[0].value.tolist() == [0, 1, 2, 3]
    assert rec[1].value is None


def test_a_kind_that_is_not_known_here_becomes_one_by_its_fields(Sneezed):
    body = pack([Row(Sneezed, 1, OURS, ())])
    del EVENTS["Sneezed"]
    [row] = unpack(body, OURS)
    assert row[0] is not Sneezed
    assert row[0].__name__ == "Sneezed"


def test_nothing_is_packed_as_nothing():
    assert pack([]) == b""
    assert unpack(b"", OURS) == []


# --- the relay


class Home:
    """Takes parcels while it is open."""

    def __init__(self):
        self.parcels, self.open, self.came = [], True, threading.Event()

    def __call__(self, parcel):
        if self.open:
            self.parcels.append(parcel)
            if parcel.n_rows:
                self.came.set()
        return self.open

    @property
    def steps(self):
        return [row[3][0] for parcel in self.parcels for row in unpack(parcel.body, OURS)]


def emitted(bus, step, origin=OURS):
    bus.append(Row(RunStateChanged, perf_counter_ns(), origin, (step, "running")))


def test_a_relay_sends_the_events_of_its_rank_and_no_others():
    bus, home = Bus(), Home()
    relay = Relay(watch(RunStateChanged), OURS, home, bus)
    relay.start()
    emitted(bus, 1)
    emitted(bus, 2, Origin(2, "run"))  # equal, but of another launch in the same process
    bus.append(Row(StepFinished, 3, OURS, (1, 0, 0.5, 64, 2.5)))
    emitted(bus, 4)
    home.came.wait()
    relay.close()
    assert home.steps == [1, 4]
    assert relay.n_parcels == len(home.parcels)
    assert relay.n_events == 2
    assert home.parcels[-1].until_ns == FOREVER_NS
    assert bus.listeners == ()


def test_parcels_vouch_for_times_that_grow_and_lie_before_their_sending():
    bus, home = Bus(), Home()
    relay = Relay(watch(RunStateChanged), OURS, home, bus)
    relay.start()
    for step in range(5):
        emitted(bus, step)
        home.came.wait()
        home.came.clear()
    now = perf_counter_ns()
    relay.close()
    untils = [parcel.until_ns for parcel in home.parcels]
    assert untils == sorted(untils)
    assert untils[4] < now


def test_an_idle_rank_still_says_that_there_was_nothing():
    said = threading.Event()
    relay = Relay(watch(RunStateChanged), OURS, lambda parcel: said.set() or True, Bus())
    relay.start()
    said.wait()
    relay.close()
    assert relay.n_parcels >= 1


def test_while_there_is_no_room_at_home_events_wait_and_what_finds_none_here_is_counted(monkeypatch):
    monkeypatch.setattr(relays, "RING", 10)
    bus, home = Bus(), Home()
    home.open = False
    relay = Relay(watch(RunStateChanged), OURS, home, bus)
    relay.start()
    for step in range(30):
        emitted(bus, step)
        bus.flush()
    home.open = True
    relay.close()
    n_lost = sum(parcel.n_lost for parcel in home.parcels)
    assert len(home.steps) + n_lost == 30
    assert 10 <= len(home.steps) <= 20  # one ring on its way, one that waits
    assert home.steps == sorted(home.steps)
    assert relay.n_events == 30


def test_arrays_have_room_by_their_bytes(monkeypatch):
    monkeypatch.setattr(relays, "RING_BYTES", 1000)
    bus, home = Bus(), Home()
    relay = Relay(watch(ChunkMoved, detail=Detail.VALUE), OURS, home, bus)
    bus.attach(relay)
    for _ in range(5):
        bus.append(Row(ChunkMoved, 1, OURS, (0, 0, 0, 1, 0, 1, True, 400, np.zeros(50))))
    relay._thread.start()
    relay.close()
    assert sum(parcel.n_rows for parcel in home.parcels) == 2
    assert sum(parcel.n_lost for parcel in home.parcels) == 3


def test_a_way_home_that_fails_costs_the_program_nothing_and_all_is_counted():
    bus, failed = Bus(), threading.Event()

    def post(parcel):
        failed.set()
        raise OSError("the scheduler is gone")

    relay = Relay(watch(RunStateChanged), OURS, post, bus)
    relay.start()
    emitted(bus, 0)
    failed.wait()
    for step in range(1, 1000):
        emitted(bus, step)
        bus.relieve()
    relay.close()
    assert relay.n_parcels == 0
    assert relay.n_events == 1000


def test_a_way_home_that_hangs_holds_up_the_end_no_longer_than_said(monkeypatch):
    monkeypatch.setattr(relays, "LAST_WORD", 0.05)
    bus, free = Bus(), threading.Event()
    relay = Relay(watch(RunStateChanged), OURS, lambda parcel: free.wait(), bus)
    relay.start()
    for step in range(7):
        emitted(bus, step)
    relay.close()
    assert relay.n_events == 7
    free.set()
    relay._thread.join()


def test_drops_of_the_worker_s_own_bus_are_told():
    bus, home = Bus(), Home()
    relay = Relay(watch(RunStateChanged), OURS, home, bus)
    relay.start()
    bus.lose(3)
    emitted(bus, 1)
    relay.close()
    assert sum(parcel.n_lost for parcel in home.parcels) == 3


# --- one order


def rows_of(rank, *times):
    return [Row(RankStarted, time_ns, Origin(rank, "run"), (1, 2, "", 0)) for time_ns in times]


def test_nothing_is_shown_before_every_rank_has_told_as_much():
    merge = Merge([0, 0])
    merge.take(0, 100, rows_of(0, 10, 90))
    assert merge.ready(now_ns=100) == []
    merge.take(1, 50, rows_of(1, 20, 40))
    assert [row.time_ns for row in merge.ready(now_ns=100)] == [10, 20, 40]
    merge.take(1, FOREVER_NS, [])
    assert [row.time_ns for row in merge.ready(now_ns=100)] == [90]


def test_a_silent_rank_is_waited_for_only_so_long():
    merge = Merge([0, 0])
    merge.take(0, 100, rows_of(0, 10, 90))
    assert [row.time_ns for row in merge.ready(now_ns=10 + PATIENCE_NS)] == [10]


def test_a_flood_is_not_held_back(monkeypatch):
    monkeypatch.setattr(merges, "HELD", 100)
    merge = Merge([0, 0])
    merge.take(0, 1, rows_of(0, *range(101)))
    assert len(merge.ready(now_ns=0)) == 101


def test_the_rest_comes_in_order_too():
    merge = Merge([0, 0])
    merge.take(0, 1, rows_of(0, 5, 9))
    merge.take(1, 1, rows_of(1, 3, 7))
    assert [row.time_ns for row in merge.rest()] == [3, 5, 7, 9]
    assert merge.rest() == []


def test_times_are_brought_into_our_clock_with_the_fields_that_are_times():
    merge = Merge([1000, 0])
    merge.take(0, FOREVER_NS, [Row(ActionFinished, 1500, Origin(0), ("F", 1, 0, False, 1200, 1400, 1))])
    merge.take(1, FOREVER_NS, [])
    [row] = merge.ready(now_ns=0)
    assert row.time_ns == 500
    assert row.values == ("F", 1, 0, False, 200, 400, 1)


@given(st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, 50), max_size=4)), max_size=20))
def test_whatever_comes_in_time_comes_out_sorted_once_and_in_each_rank_s_order(parcels):
    clocks, offsets = [0, 0, 0], [7, 0, -3]
    merge, shown, n_given = Merge(offsets), [], 0
    for rank, steps in parcels:
        times = []
        for step in steps:
            clocks[rank] += step
            times.append(clocks[rank] + offsets[rank])
        merge.take(rank, clocks[rank] + offsets[rank], rows_of(rank, *times))
        clocks[rank] += 1
        n_given += len(times)
        shown += merge.ready(now_ns=0)
    shown += merge.rest()
    assert len(shown) == n_given
    assert [row.time_ns for row in shown] == sorted(row.time_ns for row in shown)


# --- the feed


def answered(arrivals):
    future = Future()
    future.set_result(arrivals)
    return future


def parcel_of(rows, *, until_ns=FOREVER_NS, n_lost=0):
    return Parcel(until_ns, len(rows), n_lost, pack(rows))


def feed_of(bus, answers, n_ranks=2):
    origins = [Origin(rank, "run") for rank in range(n_ranks)]
    return Feed(lambda: next(answers), Merge([0] * n_ranks), origins, source=bus)


@pytest.fixture
def heard():
    bus, rec = Bus(), Recording(run="*")
    bus.attach(rec)
    return bus, rec


def test_a_feed_puts_on_the_bus_what_comes_in_order_and_tells_what_was_lost(heard):
    bus, rec = heard
    now = perf_counter_ns()
    answers = iter([
        answered([(1, parcel_of(rows_of(1, now + 2, now + 4), n_lost=5))]),
        answered([]),
        answered([(0, parcel_of(rows_of(0, now + 1, now + 3)))]),
        *[Future()] * 100,
    ])
    feed = feed_of(bus, answers)
    feed.start()
    feed.finish({0: Sent(1, 2), 1: Sent(1, 7)}, patient=True)
    bus.detach(rec)
    assert [(e.time_ns - now, e.rank) for e in rec] == [(1, 0), (2, 1), (3, 0), (4, 1)]
    assert {e.run for e in rec} == {"run"}
    assert rec.dropped == 5


def test_a_feed_that_hears_nothing_more_ends_and_gives_what_it_has(heard, monkeypatch):
    monkeypatch.setattr("lab.parallel.news.feed.SETTLE", 0.1)
    bus, rec = heard
    feed = feed_of(bus, iter([answered([(0, parcel_of(rows_of(0, 1), until_ns=0))]), *[Future()] * 100]))
    feed.start()
    feed.finish({0: Sent(1, 1), 1: Sent(1, 4)}, patient=True)
    feed._thread.join()
    bus.detach(rec)
    assert len(rec) + rec.dropped == 1 + 4  # of rank 1 nothing came


@pytest.mark.parametrize("error", [OSError("the scheduler is gone"), ValueError("nonsense")])
def test_a_feed_that_fails_ends_without_a_word_to_the_launch(heard, error):
    bus, rec = heard
    failed = Future()
    failed.set_exception(error)
    feed = feed_of(bus, iter([failed]))
    feed.start()
    feed.finish({0: Sent(3, 10)}, patient=True)
    bus.detach(rec)
    assert (len(rec), rec.dropped) == (0, 10)


def test_without_listeners_a_feed_leaves_nothing_on_the_bus():
    bus = Bus()
    feed = feed_of(bus, iter([answered([(0, parcel_of(rows_of(0, 1)))]), *[Future()] * 100]))
    feed.start()
    feed.finish({0: Sent(1, 1)}, patient=True)
    assert len(bus._pending) == 0


def test_a_parcel_vouches_for_no_time_from_which_something_is_still_to_be_told():
    bus, sent = Bus(), []
    relay = Relay(watch(RunStateChanged), OURS, lambda parcel: sent.append(parcel) or True, bus)
    bus.attach(relay)
    assert not bus.prompt
    bus.late_ns = perf_counter_ns() - 10**9
    bus.append(state(1))
    assert relay._next(last=False).until_ns < bus.late_ns
    since, bus.late_ns = bus.late_ns, 0
    relay._unsent = None
    bus.append(state(2))
    assert relay._next(last=False).until_ns > since


def test_one_listener_that_wants_to_hear_at_once_is_enough():
    bus = Bus()
    bus.attach(Relay(watch(RunStateChanged), OURS, lambda _: True, bus))
    assert not bus.prompt
    bus.attach(recording := Recording())
    assert bus.prompt
    bus.detach(recording)
    assert not bus.prompt
