"""The bus: order, isolation of listeners, threads, interrupts."""

from __future__ import annotations

import dis
import logging
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

import pytest

import lab.events
from lab.errors import ArgumentError
from lab.events import (
    BackwardFinished,
    Batch,
    Bus,
    Detail,
    Event,
    GradientStored,
    OpRecorded,
    Recording,
    RunStateChanged,
    StepFinished,
    event,
)
from lab.events.bus import BATCH


class Keeping:
    """A listener that keeps events; `act` runs inside of each delivery."""

    def __init__(
        self,
        act: Callable[[Batch], object] = lambda batch: None,
        *,
        detail: Detail = Detail.SHAPE,
        sources: bool = False,
        kinds: tuple[type[Event], ...] = (),
    ) -> None:
        self.act, self.detail, self.sources, self.kinds = act, detail, sources, kinds
        self.events: list[Event] = []
        self.n_lost = 0
        self.why: BaseException | None = None

    def wants(self, kind: type[Event]) -> bool:
        return not self.kinds or kind in self.kinds

    def receive(self, batch: Batch) -> None:
        self.act(batch)
        self.events += batch

    def lost(self, n_events: int) -> None:
        self.n_lost += n_events

    def detached(self, why: BaseException) -> None:
        self.why = why

    @property
    def nodes(self) -> list[int]:
        return [e.node for e in self.events if isinstance(e, GradientStored)]


def emit(bus: Bus, *nodes: int) -> None:
    for node in nodes:
        bus.emit_row(GradientStored, node, False)


def test_events_come_in_order_with_their_envelope() -> None:
    bus, a = Bus(), Keeping()
    bus.attach(a)
    emit(bus, 5, 6, 7)
    assert a.events == []
    bus.flush()
    assert a.nodes == [5, 6, 7]
    assert [e.seq for e in a.events] == [0, 1, 2]
    assert a.events[0].time_ns <= a.events[2].time_ns
    assert (a.events[0].rank, a.events[0].run) == (0, "")


def test_a_listener_hears_only_what_was_emitted_while_it_was_attached() -> None:
    bus, early, late = Bus(), Keeping(), Keeping()
    bus.attach(early)
    emit(bus, 1)
    bus.attach(late)
    emit(bus, 2)
    bus.detach(early)
    emit(bus, 3)
    bus.flush()
    assert early.nodes == [1, 2]
    assert late.nodes == [2, 3]
    assert [e.seq for e in late.events] == [1, 2]


def test_attaching_twice_delivers_once() -> None:
    bus, a = Bus(), Keeping()
    bus.attach(a)
    bus.attach(a)
    emit(bus, 1)
    bus.flush()
    assert a.nodes == [1]


def test_nothing_is_kept_when_nobody_listens() -> None:
    bus = Bus()
    emit(bus, *range(3 * BATCH))
    assert len(bus._pending) <= BATCH
    a = Keeping()
    bus.attach(a)
    bus.detach(a)
    assert a.events == []
    assert bus._pending == []


def test_only_listeners_to_operations_raise_the_detail() -> None:
    bus = Bus()
    steps = Keeping(detail=Detail.VALUE, sources=True, kinds=(StepFinished,))
    bus.attach(steps)
    assert (bus.operations, bus.detail, bus.sources) == (False, Detail.SHAPE, False)
    operations = Keeping(detail=Detail.STATISTICS, sources=True, kinds=(OpRecorded,))
    bus.attach(operations)
    assert (bus.operations, bus.detail, bus.sources) == (True, Detail.STATISTICS, True)
    bus.detach(operations)
    assert (bus.operations, bus.detail, bus.sources) == (False, Detail.SHAPE, False)
    assert bus.listeners == (steps,)


def test_a_listener_gets_only_the_kinds_that_it_wants_with_their_numbers() -> None:
    bus, a = Bus(), Keeping(kinds=(RunStateChanged,))
    bus.attach(a)
    emit(bus, 1, 2)
    bus.emit(RunStateChanged(3, "paused"))
    bus.flush()
    assert a.events == [RunStateChanged(3, "paused")]
    assert a.events[0].seq == 2


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), MemoryError()])
def test_a_failing_listener_is_let_go_with_a_notice_and_the_others_miss_nothing(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(batch: Batch) -> None:
        raise error

    bus, before, bad, after = Bus(), Keeping(), Keeping(fail), Keeping()
    for listener in (before, bad, after):
        bus.attach(listener)
    with caplog.at_level(logging.WARNING):
        emit(bus, *range(2 * BATCH))
        bus.flush()
    assert before.nodes == after.nodes == list(range(2 * BATCH))
    assert bad.why is error
    assert bad not in bus.listeners
    assert caplog.text.count("was detached") == 1


def test_a_listener_that_fails_again_when_told_so_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    class Worse(Keeping):
        def receive(self, batch: Batch) -> None:
            raise ValueError("once")

        def detached(self, why: BaseException) -> None:
            raise ValueError("twice")

    bus, after = Bus(), Keeping()
    bus.attach(Worse())
    bus.attach(after)
    emit(bus, 1)
    bus.flush()
    assert after.nodes == [1]
    assert "failed again" in caplog.text


def test_what_a_listener_emits_waits_for_the_next_flush() -> None:
    def go_on(batch: Batch) -> None:
        if len(a.events) < 2:
            emit(bus, len(a.events) + 2)
            bus.flush()

    bus, a, b = Bus(), Keeping(go_on), Keeping()
    bus.attach(a)
    bus.attach(b)
    emit(bus, 1)
    bus.flush()
    assert a.nodes == b.nodes == [1]
    bus.flush()
    bus.flush()
    assert a.nodes == b.nodes == [1, 2, 3]


def test_listeners_may_attach_and_detach_in_a_delivery() -> None:
    bus, second, third = Bus(), Keeping(), Keeping()

    def swap(batch: Batch) -> None:
        bus.detach(second)
        bus.detach(first)
        bus.attach(third)

    first = Keeping(swap)
    bus.attach(first)
    bus.attach(second)
    emit(bus, 1, 2)
    bus.flush()
    emit(bus, 3)
    bus.flush()
    assert first.nodes == second.nodes == [1, 2]
    assert third.nodes == [3]


def test_threads_emit_at_once_and_each_event_comes_once_in_the_order_of_its_thread() -> None:
    bus, a, n_threads, n_each = Bus(), Keeping(), 4, 3 * BATCH
    bus.attach(a)
    start = threading.Barrier(n_threads)

    def work(number: int) -> None:
        start.wait()
        emit(bus, *range(number, n_threads * n_each, n_threads))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(n_threads)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    bus.detach(a)
    assert sorted(a.nodes) == list(range(n_threads * n_each))
    assert [e.seq for e in a.events] == list(range(n_threads * n_each))
    for number in range(n_threads):
        own = [node for node in a.nodes if node % n_threads == number]
        assert own == sorted(own)


def test_who_emits_does_not_wait_for_a_delivery_in_another_thread_and_the_overflow_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit = 2 * BATCH
    monkeypatch.setattr(sys.modules["lab.events.bus"], "LIMIT", limit)  # the package calls the bus itself `bus`
    started, go_on = threading.Event(), threading.Event()

    def block(batch: Batch) -> None:
        started.set()
        go_on.wait()

    bus, slow = Bus(), Keeping(block)
    bus.attach(slow)
    emit(bus, -1)
    thread = threading.Thread(target=bus.flush)
    thread.start()
    started.wait()
    emit(bus, *range(limit + 10))  # returns, though the listener is stuck
    go_on.set()
    thread.join()
    bus.detach(slow)
    assert slow.n_lost == 11
    assert slow.nodes == list(range(-1, limit - 1))


class Interrupt:
    """Raises KeyboardInterrupt at the n-th place in the files of a folder where the interpreter looks for signals."""

    def __init__(self, at: int, folder: str) -> None:
        self.left, self.folder = at, folder
        self.before: dict[FrameType, str] = {}
        self.codes: dict[CodeType, bytes] = {}

    def __call__(self, frame: FrameType, what: str, argument: object) -> Interrupt | None:
        if not frame.f_code.co_filename.startswith(self.folder):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if what == "opcode":
            before = self.before.get(frame, "")
            code = self.codes.setdefault(frame.f_code, frame.f_code.co_code if frame.f_code not in self.codes else b"")
            self.before[frame] = dis.opname[code[frame.f_lasti]]
            if before.startswith(("CALL", "JUMP_BACKWARD", "RESUME")):
                self.left -= 1
                if self.left == 0:
                    raise KeyboardInterrupt
        return self


@pytest.mark.parametrize("warm", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_an_interrupt_anywhere_in_a_delivery_neither_loses_nor_doubles_an_event(warm: bool) -> None:
    folder = str(Path(lab.events.__file__).parent)
    at, interrupted = 0, True
    while interrupted:
        at += 1
        bus, rec, other = Bus(), Recording(run="*"), Recording(run="*", kinds=[BackwardFinished])
        bus.attach(rec)
        bus.attach(other)
        if warm:
            emit(bus, 0)
            bus.emit_row(BackwardFinished, 0, 0, 0, "")
            bus.flush()
        bus.emit_row(BackwardFinished, 1, 1, 0, "")
        emit(bus, 1, 2)
        sys.settrace(Interrupt(at, folder))
        try:
            bus.flush()
            interrupted = False
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        emit(bus, 3)
        bus.flush()
        n_before = 2 * warm
        assert [e.seq for e in rec] == list(range(n_before + 4)), f"interrupted at place {at}"
        last = [BackwardFinished(1, 1, 0, ""), *(GradientStored(i, False) for i in (1, 2, 3))]
        assert rec[n_before:] == last, f"interrupted at place {at}"
        assert rec.columns(GradientStored, n_before)["node"].tolist() == [1, 2, 3], f"interrupted at place {at}"
        assert [e.root for e in other] == [0, 1][not warm :], f"interrupted at place {at}"
        assert bus._pending == []
    assert at > 100


def test_a_batch_is_a_sequence() -> None:
    bus, batches = Bus(), []
    bus.attach(Keeping(batches.append))
    emit(bus, 1, 2, 3)
    bus.flush()
    (batch,) = batches
    assert batch[1] == GradientStored(2, False)
    assert [e.node for e in batch[1:]] == [2, 3]
    assert batch[1:][0].seq == 1


def test_detail_has_the_names_that_users_write() -> None:
    assert Detail.named("value") is Detail.VALUE
    assert Detail.named(Detail.SHAPE) is Detail.SHAPE
    with pytest.raises(ArgumentError, match="no level of detail\ngiven: 'all'\nhint:  one of \"shape\""):
        Detail.named("all")


def test_an_event_with_a_field_that_no_column_holds_is_refused() -> None:
    with pytest.raises(TypeError, match="no columnar form"):

        @event
        class Wrong(Event):
            what: dict[str, int]

    with pytest.raises(TypeError, match="the envelope has this name"):

        @event
        class WrongToo(Event):
            rank: int

    with pytest.raises(TypeError, match="the envelope has this name"):

        @event
        class WrongInFiles(Event):
            origin: str


def test_the_bus_travels_by_name_and_no_other_bus_travels_at_all():
    import pickle

    assert pickle.loads(pickle.dumps(lab.events.bus)) is lab.events.bus
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(Bus())
