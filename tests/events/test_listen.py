"""lab.listen: a function told of events in its own thread, whatever it does."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator

import pytest

import lab
from lab.config import STATE, using
from lab.errors import ArgumentError
from lab.events import (
    Bus,
    Detail,
    Event,
    GradientStored,
    Listening,
    OpRecorded,
    Recording,
    RunStateChanged,
    bus,
    listen,
    record,
)
from lab.events.bus import BATCH

WAIT = 30.0


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def emit(bus: Bus, *nodes: int) -> None:
    for node in nodes:
        bus.emit_row(GradientStored, node, False)


def test_it_is_told_everything_in_order_in_a_thread_of_its_own() -> None:
    bus, seen, threads = Bus(), [], set()

    def tell(event: Event) -> None:
        seen.append(event)
        threads.add(threading.current_thread())

    with listen(tell, source=bus) as listening:
        emit(bus, *range(3 * BATCH))
    assert [e.seq for e in seen] == list(range(3 * BATCH))
    assert threading.current_thread() not in threads
    assert len(threads) == 1
    assert (listening.dropped, listening.failed) == (0, None)
    assert bus.listeners == ()


def test_it_is_told_soon_though_nobody_flushes() -> None:
    bus, told = Bus(), threading.Event()
    with listen(lambda event: told.set(), source=bus):
        emit(bus, 1)
        assert told.wait(WAIT)


def test_it_is_told_only_the_kinds_that_it_wants() -> None:
    bus, seen = Bus(), list[Event]()
    with listen(seen.append, kinds=[RunStateChanged], detail="value", source=bus):
        assert not bus.operations
        emit(bus, 1)
        bus.emit(RunStateChanged(1, "paused"))
    assert seen == [RunStateChanged(1, "paused")]


def test_it_asks_for_the_detail_and_the_sources_that_it_was_given() -> None:
    bus = Bus()
    with listen(print, source=bus):
        assert (bus.detail, bus.sources, bus.operations) == (Detail.SHAPE, False, True)
    with listen(print, detail="value", sources=True, source=bus):
        assert (bus.detail, bus.sources) == (Detail.VALUE, True)
    with pytest.raises(ArgumentError, match="no level of detail"):
        listen(print, detail="everything", source=bus)


def test_one_that_raises_is_told_no_more_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    bus, seen = Bus(), list[Event]()

    def fail(event: Event) -> None:
        raise ValueError("mine")

    with caplog.at_level(logging.WARNING), listen(seen.append, source=bus), listen(fail, source=bus) as bad:
        emit(bus, 1, 2, 3)
        bad._thread.join(WAIT)
        emit(bus, 4)
    assert len(seen) == 4
    assert str(bad.failed) == "mine"
    assert "failed and is told nothing more" in caplog.text
    assert "ended by ValueError" in repr(bad)


@pytest.mark.parametrize("why", [SystemExit, KeyboardInterrupt])
def test_one_that_wants_to_end_the_program_ends_only_itself(why: type[BaseException]) -> None:
    bus = Bus()

    def leave(event: Event) -> None:
        raise why

    listening = listen(leave, source=bus)
    emit(bus, 1)
    listening._thread.join(WAIT)
    assert isinstance(listening.failed, why)
    assert bus.listeners == ()


def test_one_that_sleeps_costs_the_computation_nothing_and_what_it_missed_is_counted() -> None:
    bus, inside, go_on, n_told = Bus(), threading.Event(), threading.Event(), 0

    def sleep(event: Event) -> None:
        nonlocal n_told
        n_told += 1
        inside.set()
        go_on.wait()

    with listen(sleep, limit=BATCH, source=bus) as listening:
        emit(bus, 0)
        assert inside.wait(WAIT)
        emit(bus, *range(1, 20 * BATCH))  # returns, though the function is stuck
        bus.flush()
        assert sum(map(len, listening._waiting)) <= BATCH
        assert listening.dropped >= 18 * BATCH
        go_on.set()
    assert n_told + listening.dropped == 20 * BATCH
    assert n_told <= 2 * BATCH


def test_closing_gives_up_on_one_that_is_stuck_and_counts_what_it_was_not_told() -> None:
    bus, inside, go_on = Bus(), threading.Event(), threading.Event()

    def stick(event: Event) -> None:
        inside.set()
        go_on.wait()

    listening = listen(stick, source=bus)
    emit(bus, *range(10))
    assert inside.wait(WAIT)
    emit(bus, *range(10))
    listening.close(timeout=0.01)
    assert bus.listeners == ()
    assert listening.dropped == 19  # at once, not when the function comes back
    go_on.set()
    listening._thread.join(WAIT)
    assert listening.dropped == 19
    listening.close()


def test_it_may_close_itself() -> None:
    bus, seen = Bus(), list[int]()
    ready = threading.Event()

    def once(event: Event) -> None:
        ready.wait()
        seen.append(event.seq)
        listening.close()

    listening: Listening = listen(once, source=bus)
    emit(bus, 1, 2)
    ready.set()
    listening._thread.join(WAIT)
    assert seen == [0]
    assert listening.dropped == 1


def test_it_sees_the_settings_of_where_it_was_opened() -> None:
    bus, seen = Bus(), list[str]()
    with using(dtype="float64"):
        listening = listen(lambda event: seen.append(STATE.get().dtype), source=bus)
    emit(bus, 1)
    listening.close()
    assert seen == ["float64"]


def test_a_batch_that_comes_twice_is_told_once() -> None:
    bus, seen = Bus(), list[int]()
    with listen(lambda event: seen.append(event.seq), source=bus) as listening:
        receive = listening.receive

        def again(batch: object) -> None:
            receive(batch)  # type: ignore[arg-type]
            receive(batch)  # type: ignore[arg-type]

        listening.receive = again  # type: ignore[method-assign,assignment]
        emit(bus, 1, 2)
    assert seen == [0, 1]


def test_losses_of_the_bus_are_counted() -> None:
    with listen(print, source=Bus()) as listening:
        listening.lost(3)
    assert listening.dropped == 3
    assert repr(listening) == "<Listening of print: closed, 3 dropped>"


def test_a_function_that_computes_with_tensors_does_not_hear_itself_nor_its_like() -> None:
    x, seen, told = lab.tensor(2.0, requires_grad=True), list[str](), threading.Event()

    def double(event: Event) -> None:
        seen.append(event.op)  # type: ignore[attr-defined]
        (x + x) * 2.0
        told.set()

    with record(kinds=[OpRecorded]) as mine, listen(double, kinds=[OpRecorded]), listen(double, kinds=[OpRecorded]):
        lab.exp(x)
        assert told.wait(WAIT)
    bus.flush()
    assert seen == ["exp", "exp"]
    assert [e.op for e in mine] == ["exp"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: listen(3), r"listen needs a function of one event\ngiven: 3\nhint:  lab.listen\(print\)"),  # type: ignore[arg-type]
        (lambda: listen(print, kinds=["a"]), r"kinds holds kinds of events\ngiven: 'a'\nhint:  classes"),  # type: ignore[list-item]
        (lambda: Recording(kinds="OpRecorded"), r"kinds holds kinds of events\ngiven: 'OpRecorded'"),  # type: ignore[arg-type]
        (lambda: Recording(kinds=[int]), r"kinds holds kinds of events\ngiven: <class 'int'>"),  # type: ignore[list-item]
    ],
)
def test_what_is_no_function_or_no_kind_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()
    assert bus.listeners == ()
