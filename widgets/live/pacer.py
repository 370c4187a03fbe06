"""One pacer for the whole kernel: decides which picture is sent when, so that all widgets together stay in a budget.

A flood of messages is dropped silently on its way to the browser, and takes the reply of the running cell with it. So
pacing is a rule of correctness: at most 30 messages and 300 kB a second, the latest picture wins, each host at most 2
pictures ahead. A page that cannot keep up gets fewer: the more pictures it owes an answer to, the longer it has.
"""

from __future__ import annotations

import contextvars
import logging
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable
from inspect import ismethod
from typing import Protocol

log = logging.getLogger("widgets.live.pacer")

MESSAGES_PER_SECOND = 30.0
BYTES_PER_SECOND = 300_000.0
TICKS_PER_SECOND = 15.0
MOST_AHEAD = 2
"""Pictures that a host may be ahead of the browser's acknowledgements."""
SILENT_AFTER = 0.2
"""Seconds without an acknowledgement after which a host goes on, at first: a hidden tab never does. Each picture
that is sent so doubles them, since it may as well be a page that has too much to draw."""
MOST_SILENT = 5.0
"""Seconds that they grow to."""
SLOW_TICKS_PER_SECOND = 2.0
"""Of the callbacks, while no page keeps up: what they say has to be drawn, too."""
LINGER = 1.0
"""Seconds that the thread waits for new work before it ends."""

Callback = Callable[[], object]


class Sender(Protocol):
    """What the pacer asks of a host."""

    def send_now(self) -> int:
        """Send the newest picture; returns the bytes that it took, 0 when there was nothing to send."""

    @property
    def ahead(self) -> int:
        """Messages sent and not yet acknowledged."""


class Budget:
    """A bucket that fills at `rate` a second up to `burst`; spending may leave a debt that is waited off.

    Example:
        >>> budget = Budget(rate=10.0, burst=1.0)
        >>> budget.wait(now=0.0); budget.spend(2.0, now=0.0); budget.wait(now=0.0)
        0.0
        0.1
    """

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._level, self._at = burst, float("-inf")

    def _fill(self, now: float) -> None:
        self._level = min(self.burst, self._level + max(0.0, now - self._at) * self.rate)
        self._at = now

    def wait(self, now: float) -> float:
        """Seconds until something may be sent."""
        self._fill(now)
        return max(0.0, -self._level / self.rate) if self._level <= 0 else 0.0

    def spend(self, amount: float, now: float) -> None:
        """Take `amount`, be it more than there is."""
        self._fill(now)
        self._level -= amount


class _Tick:
    """A callback of `every`, held weakly: a view that nobody has any more stops being called."""

    def __init__(self, callback: Callback) -> None:
        self.ref: Callable[[], Callback | None] = (
            weakref.WeakMethod(callback) if ismethod(callback) else weakref.ref(callback)
        )
        self.context = contextvars.copy_context()
        self.due = 0.0


class Pacer:
    """Hosts that want to send and callbacks that want to be called, served one after the other by one thread.

    Args:
        clock: seconds, monotonic.
        thread: False in tests: then only `pump` does anything.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, thread: bool = True) -> None:
        self._clock, self._threaded = clock, thread
        self._wanting: OrderedDict[int, weakref.ref[Sender]] = OrderedDict()
        self._sent_at: weakref.WeakKeyDictionary[Sender, float] = weakref.WeakKeyDictionary()
        self._ticks: list[_Tick] = []
        self._messages = Budget(MESSAGES_PER_SECOND, burst=6.0)
        self._bytes = Budget(BYTES_PER_SECOND, burst=BYTES_PER_SECOND)
        self._awake = threading.Condition()
        self._turn = threading.RLock()
        self._thread: threading.Thread | None = None

    def request(self, host: Sender) -> None:
        """`host` has something to send; it will be asked to, soon. Cheap, from any thread, any number of times."""
        with self._awake:
            if id(host) not in self._wanting:
                self._wanting[id(host)] = weakref.ref(host)
                self._wake()

    def acknowledged(self) -> None:
        """A browser has drawn something: somebody may be allowed to send again."""
        with self._awake:
            self._wake()

    def every(self, callback: Callback) -> None:
        """Call `callback` about 15 times a second, less often if it is slow, until it is gone or `forget` is called.

        It is held weakly and called from the pacer's thread in a copy of the caller's context. One that raises is let
        go, with a notice in the log "widgets.live.pacer"; a `tick_failed(why)` of its object says it where one looks.
        """
        with self._awake:
            self._ticks.append(_Tick(callback))
            self._wake()

    def forget(self, callback: Callback) -> None:
        """Stop calling `callback`; nothing happens if it was never known."""
        with self._awake:
            self._ticks = [tick for tick in self._ticks if tick.ref() not in (None, callback)]

    def pump(self) -> float | None:
        """Do what is due now; returns the seconds until something else will be, None if nothing is wanted at all."""
        with self._turn:
            waits = [wait for wait in (self._tick(), self._send()) if wait is not None]
        return min(waits) if waits else None

    def _tick(self) -> float | None:
        with self._awake:
            self._ticks = [tick for tick in self._ticks if tick.ref() is not None]
            ticks = list(self._ticks)
        for tick in ticks:
            begin = self._clock()
            callback = tick.ref()
            if callback is None or begin < tick.due:
                continue
            try:
                tick.context.run(callback)
            except Exception as why:
                log.exception("A live picture failed and is no longer updated; what it watched goes on.")
                self.forget(callback)
                _tell(getattr(callback, "__self__", None), "tick_failed", why)
            end = self._clock()
            rate = TICKS_PER_SECOND if self._keeps_up(end) else SLOW_TICKS_PER_SECOND
            # A picture may take a third of the time at most: the rest belongs to what it watches.
            tick.due = max(begin + 1 / rate, end + 2 * (end - begin))
        with self._awake:
            return min((max(0.0, tick.due - self._clock()) for tick in self._ticks), default=None)

    def _send(self) -> float | None:
        soonest: float | None = None
        with self._awake:
            waiting = list(self._wanting.items())
        for key, ref in waiting:
            host, now = ref(), self._clock()
            if host is None:
                with self._awake:
                    self._wanting.pop(key, None)
                continue
            wait = max(self._messages.wait(now), self._bytes.wait(now), self._host_wait(host, now))
            if wait > 0:
                soonest = wait if soonest is None else min(soonest, wait)
                continue
            with self._awake:  # before sending: a picture that comes meanwhile asks again
                self._wanting.pop(key, None)
            try:
                n_bytes = host.send_now()
            except Exception as why:
                log.exception("A live picture could not be sent; the others go on.")
                _tell(host, "send_failed", why)
                continue
            if n_bytes:
                self._messages.spend(1, now)
                self._bytes.spend(n_bytes, now)
                self._sent_at[host] = now
        with self._awake:
            return 0.0 if soonest is None and self._wanting else soonest

    def _host_wait(self, host: Sender, now: float) -> float:
        if host.ahead < MOST_AHEAD:
            return 0.0
        patience = min(MOST_SILENT, SILENT_AFTER * 2.0 ** min(host.ahead - MOST_AHEAD, 10))
        return max(0.0, self._sent_at.get(host, float("-inf")) + patience - now)

    def _keeps_up(self, now: float) -> bool:
        """Whether some page answers, of those that were sent something lately; so they do if none was."""
        lately = [host for host, sent_at in self._sent_at.items() if now - sent_at < 2 * MOST_SILENT]
        return not lately or any(host.ahead < MOST_AHEAD for host in lately)

    def _wake(self) -> None:
        if self._threaded and self._thread is None:
            context = contextvars.copy_context()
            self._thread = threading.Thread(target=context.run, args=(self._work,), name="lab-pacer", daemon=True)
            self._thread.start()
        self._awake.notify_all()

    def _work(self) -> None:
        while True:
            wait = self.pump()
            with self._awake:
                if wait is None and not self._wanting and not self._ticks and not self._awake.wait(LINGER):
                    self._thread = None
                    return
                if wait:
                    self._awake.wait(wait)


def _tell(whom: object, method: str, why: Exception) -> None:
    """Let it say where one looks that it failed; all that is not ours may fail again."""
    tell = getattr(whom, method, None)
    if tell is None:
        return
    try:
        tell(why)
    except Exception:
        log.exception("A live picture that failed could not say so.")


PACER = Pacer()
"""The one of this kernel."""


def every(callback: Callback) -> None:
    """`PACER.every`: call back about 15 times a second, weakly held, until it is gone or raises."""
    PACER.every(callback)


def forget(callback: Callback) -> None:
    """`PACER.forget`: stop calling back."""
    PACER.forget(callback)
