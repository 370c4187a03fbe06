import gc
import logging
import threading
from contextvars import ContextVar

import pytest

from widgets.live.pacer import BYTES_PER_SECOND, MESSAGES_PER_SECOND, Budget, Pacer


class Clock:
    """Time that moves when the test says so."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Fake:
    """A host that always has something to send."""

    def __init__(self, size: int = 100, acknowledges: bool = True) -> None:
        self.size, self.sent, self.acknowledges, self.ahead = size, 0, acknowledges, 0

    def send_now(self) -> int:
        self.sent += 1
        self.ahead += not self.acknowledges
        return self.size


def run(pacer: Pacer, clock: Clock, hosts: list[Fake], seconds: float) -> None:
    end = clock.now + seconds
    while clock.now < end:
        for host in hosts:
            pacer.request(host)
        clock.now += min(max(pacer.pump() or 0.0, 0.001), 0.05)


def test_fifty_hosts_together_stay_within_the_messages_of_a_second():
    clock = Clock()
    pacer, hosts = Pacer(clock, thread=False), [Fake() for _ in range(50)]
    run(pacer, clock, hosts, 10.0)
    total = sum(host.sent for host in hosts)
    assert 0.9 * 10 * MESSAGES_PER_SECOND <= total <= 10 * MESSAGES_PER_SECOND + 10


def test_every_host_gets_its_turn():
    clock = Clock()
    pacer, hosts = Pacer(clock, thread=False), [Fake() for _ in range(50)]
    run(pacer, clock, hosts, 10.0)
    counts = [host.sent for host in hosts]
    assert max(counts) - min(counts) <= 2


def test_large_pictures_stay_within_the_bytes_of_a_second():
    clock = Clock()
    pacer, hosts = Pacer(clock, thread=False), [Fake(50_000)]
    run(pacer, clock, hosts, 10.0)
    assert 8 * BYTES_PER_SECOND <= hosts[0].sent * 50_000 <= 12 * BYTES_PER_SECOND


def test_a_browser_that_never_acknowledges_gets_ever_fewer_pictures_and_never_none():
    clock = Clock()
    pacer, hosts = Pacer(clock, thread=False), [Fake(acknowledges=False)]
    run(pacer, clock, hosts, 10.0)
    assert hosts[0].sent == 2 + 5, "two ahead, then after 0.2, 0.4, 0.8, 1.6, 3.2 seconds"
    run(pacer, clock, hosts, 50.0)
    assert 7 + 9 <= hosts[0].sent <= 7 + 11, "one in five seconds"


def test_one_that_answers_again_gets_all_it_can_take():
    clock = Clock()
    pacer, host = Pacer(clock, thread=False), Fake(acknowledges=False)
    run(pacer, clock, [host], 60.0)
    host.ahead, host.acknowledges, before = 0, True, host.sent
    pacer.acknowledged()
    run(pacer, clock, [host], 1.0)
    assert host.sent - before > 20


def test_what_ticks_does_so_seldom_while_no_page_keeps_up():
    clock = Clock()
    pacer, silent, lively = Pacer(clock, thread=False), Fake(acknowledges=False), Fake()
    ticks = []
    keep = lambda: ticks.append(clock.now)  # noqa: E731 - held weakly
    pacer.every(keep)
    run(pacer, clock, [silent], 10.0)
    alone, ticks[:] = len(ticks), []
    run(pacer, clock, [silent, lively], 10.0)
    assert alone < 35
    assert len(ticks) > 100


def test_one_silent_browser_does_not_slow_the_others():
    clock = Clock()
    pacer, silent, lively = Pacer(clock, thread=False), Fake(acknowledges=False), Fake()
    run(pacer, clock, [silent, lively], 10.0)
    assert lively.sent > 3 * silent.sent


def test_the_first_picture_goes_at_once():
    pacer, host = Pacer(Clock(), thread=False), Fake()
    pacer.request(host)
    pacer.pump()
    assert host.sent == 1
    assert pacer.pump() is None


def test_a_host_that_nobody_has_any_more_is_forgotten():
    pacer, host = Pacer(Clock(), thread=False), Fake()
    pacer.request(host)
    del host
    gc.collect()
    assert pacer.pump() is None


def test_a_callback_ticks_about_fifteen_times_a_second_until_it_is_forgotten():
    clock, calls = Clock(), []
    pacer = Pacer(clock, thread=False)

    def tick() -> None:
        calls.append(clock.now)

    pacer.every(tick)
    run(pacer, clock, [], 2.0)
    assert 28 <= len(calls) <= 32
    pacer.forget(tick)
    assert pacer.pump() is None


def test_a_slow_callback_takes_a_third_of_the_time_at_most():
    clock, calls = Clock(), []
    pacer = Pacer(clock, thread=False)

    def slow() -> None:
        calls.append(clock.now)
        clock.now += 0.1

    pacer.every(slow)
    run(pacer, clock, [], 9.0)
    assert 28 <= len(calls) <= 31


def test_a_callback_that_raises_is_let_go_with_a_notice_and_the_others_go_on(caplog):
    clock, calls = Clock(), []
    pacer = Pacer(clock, thread=False)

    def broken() -> None:
        raise ValueError("the view is wrong")

    def sound() -> None:
        calls.append(1)

    pacer.every(broken)
    pacer.every(sound)
    with caplog.at_level(logging.ERROR, logger="widgets.live.pacer"):
        run(pacer, clock, [], 1.0)
    assert len(calls) > 10
    assert caplog.text.count("A live picture failed") == 1
    assert "the view is wrong" in caplog.text


class Broken(Fake):
    """A host that nothing can be sent to, and a view that cannot follow."""

    said = ""

    def send_now(self) -> int:
        raise ValueError("no page takes this")

    send_failed = tick_failed = lambda self, why: setattr(self, "said", str(why))

    def tick(self) -> None:
        raise ValueError("the view is wrong")


def test_a_host_that_cannot_send_is_told_and_the_others_go_on(caplog):
    clock, broken, sound = Clock(), Broken(), Fake()
    pacer = Pacer(clock, thread=False)
    run(pacer, clock, [broken, sound], 1.0)
    assert sound.sent > 10
    assert broken.said == "no page takes this"
    assert "could not be sent; the others go on" in caplog.text


def test_whose_callback_raises_is_told_so_that_one_sees_it(caplog):
    clock, broken = Clock(), Broken()
    pacer = Pacer(clock, thread=False)
    pacer.every(broken.tick)
    run(pacer, clock, [], 0.5)
    assert broken.said == "the view is wrong"
    assert caplog.text.count("A live picture failed") == 1
    broken.tick_failed = lambda why: 1 / 0
    pacer.every(broken.tick)
    run(pacer, clock, [], 0.5)
    assert "could not say so" in caplog.text


def test_callbacks_of_objects_are_held_weakly():
    class View:
        def tick(self) -> None:
            pass

    pacer, view = Pacer(Clock(), thread=False), View()
    pacer.every(view.tick)
    assert pacer.pump() is not None
    del view
    gc.collect()
    assert pacer.pump() is None


def test_callbacks_see_the_context_of_who_asked():
    where: ContextVar[str] = ContextVar("where", default="nowhere")
    seen = []

    def tick() -> None:
        seen.append(where.get())

    pacer = Pacer(Clock(), thread=False)
    token = where.set("cell 7")
    pacer.every(tick)
    where.reset(token)
    pacer.pump()
    assert seen == ["cell 7"]


def test_the_thread_sends_and_ends_when_there_is_nothing_left():
    sent = threading.Event()

    class Host(Fake):
        def send_now(self) -> int:
            sent.set()
            return super().send_now()

    pacer, host = Pacer(), Host()
    pacer.request(host)
    assert sent.wait(30)
    thread = pacer._thread
    if thread is not None:  # it may have ended already
        thread.join(30)
        assert not thread.is_alive()
    assert pacer._thread is None
    sent.clear()
    pacer.request(host)
    assert sent.wait(30)


@pytest.mark.parametrize("debt", [0.5, 3.0])
def test_a_budget_waits_off_its_debt(debt):
    budget = Budget(rate=2.0, burst=1.0)
    budget.spend(1.0 + debt, now=0.0)
    assert budget.wait(now=0.0) == pytest.approx(debt / 2.0)
    assert budget.wait(now=debt / 2.0 + 1e-6) == 0.0
