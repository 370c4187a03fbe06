"""When each message of a plan starts and arrives: two ways to the same times, of which one is fast and one is general.

The rules: a rank sends one message at a time, in the order written, and receives one at a time, the one first that was
ready first; both at once. It begins a step when all receives of the one before are in and added, in the order written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from lab.parallel.paper.cost import Floats
from lab.parallel.paper.messages import Messages


class Times(NamedTuple):
    """Of each message, in seconds."""

    start: Floats
    stop: Floats
    done: Floats
    """When it was added, too."""


def in_waves(messages: Messages, n_ranks: int, moving: Floats, adding: Floats) -> Times | None:
    """All ranks at once, step by step, as columns; None where that would not be the order of the rules.

    It is, if no message is ready before one of an earlier step that goes to the same rank.
    """
    if not len(messages):
        return Times(moving, moving, moving)
    if not messages.in_waves:
        return None
    order = np.lexsort((messages.sent_as, messages.sent_in))
    step, number = messages.sent_in[order], messages.sent_as[order]
    cuts = np.flatnonzero((np.diff(step) != 0) | (np.diff(number) != 0)) + 1
    start, stop, done = (np.zeros(len(messages)) for _ in range(3))
    free_out, free_in, ready_last, ended = (np.zeros(n_ranks) for _ in range(4))
    posted, last_step = ended.copy(), -1
    for wave in np.split(order, cuts):
        src, dst = messages.src[wave], messages.dst[wave]
        if messages.sent_in[wave[0]] != last_step:
            posted, last_step = ended.copy(), messages.sent_in[wave[0]]
        ready = np.maximum(posted[src], free_out[src])
        if (ready < ready_last[dst]).any():
            return None
        ready_last[dst] = ready
        start[wave] = np.maximum(ready, free_in[dst])
        stop[wave] = free_out[src] = free_in[dst] = start[wave] + moving[wave]
        done[wave] = ended[dst] = np.maximum(stop[wave], ended[dst]) + adding[wave]
    return Times(start, stop, done)


ARRIVED, ADDED = 0, 1


class Events:
    """The same by a queue of events, for plans of any order and for ranks that share cores.

    Takes some microseconds a message.

    Args:
        moving: seconds of each message on its way.
        adding: seconds for adding it, 0 where it is stored.
        n_cores: how many ranks can add at the same time.
    """

    def __init__(self, messages: Messages, n_ranks: int, moving: Floats, adding: Floats, n_cores: int) -> None:
        self._src, self._dst = messages.src.tolist(), messages.dst.tolist()
        self._moving, self._adding = moving.tolist(), adding.tolist()
        self._turn = list(zip(messages.received_in.tolist(), messages.received_as.tolist(), strict=True))
        self._program = _programs(messages, n_ranks)
        self._outbox: list[deque[int]] = [deque() for _ in range(n_ranks)]
        self._expected: list[deque[int]] = [deque() for _ in range(n_ranks)]
        self._asking: list[list[tuple[float, tuple[int, int], int]]] = [[] for _ in range(n_ranks)]
        self._receives, self._adds = [False] * n_ranks, [False] * n_ranks
        self._asked: set[int] = set()
        self._for_a_core: deque[int] = deque()
        self._free_cores = n_cores
        self._clock: list[tuple[float, int, int]] = []
        self.start, self.stop, self.done = ([-1.0] * len(messages) for _ in range(3))

    def run(self) -> Times | None:
        """All times; None if ranks wait for each other for ever."""
        self._go_on(range(len(self._program)), 0.0)
        while self._clock:
            now, touched = self._clock[0][0], []
            while self._clock and self._clock[0][0] == now:
                _, kind, message = heappop(self._clock)
                touched.append(self._dst[message])
                (self._arrived if kind == ARRIVED else self._added)(message, now)
            self._go_on(touched, now)
        if any(self._expected) or -1.0 in self.done:
            return None
        return Times(np.array(self.start), np.array(self.stop), np.array(self.done))

    def _go_on(self, ranks: range | list[int], now: float) -> None:
        for rank in ranks:
            self._advance(rank, now)
        for rank in self._asked:
            if self._asking[rank] and not self._receives[rank]:
                _, _, message = heappop(self._asking[rank])
                self._receives[rank], self.start[message] = True, now
                heappush(self._clock, (now + self._moving[message], ARRIVED, message))
        self._asked.clear()

    def _advance(self, rank: int, now: float) -> None:
        """Take what has come, and begin steps, until the rank has to wait."""
        expected = self._expected[rank]
        while not self._adds[rank]:
            if not expected:
                step = next(self._program[rank], None)
                if step is None:
                    return
                if step[0]:
                    is_idle = not self._outbox[rank]
                    self._outbox[rank].extend(step[0])
                    if is_idle:
                        self._ask(rank, now)
                expected.extend(step[1])
            elif self.stop[expected[0]] < 0:
                return
            elif self._adding[expected[0]]:
                self._adds[rank] = True
                self._for_a_core.append(expected.popleft())
                self._take_cores(now)
            else:
                self.done[expected.popleft()] = now

    def _ask(self, rank: int, now: float) -> None:
        message = self._outbox[rank][0]
        heappush(self._asking[self._dst[message]], (now, self._turn[message], message))
        self._asked.add(self._dst[message])

    def _arrived(self, message: int, now: float) -> None:
        src, dst = self._src[message], self._dst[message]
        self.stop[message], self._receives[dst] = now, False
        self._asked.add(dst)
        self._outbox[src].popleft()
        if self._outbox[src]:
            self._ask(src, now)

    def _added(self, message: int, now: float) -> None:
        self.done[message], self._adds[self._dst[message]] = now, False
        self._free_cores += 1
        self._take_cores(now)

    def _take_cores(self, now: float) -> None:
        while self._for_a_core and self._free_cores:
            message = self._for_a_core.popleft()
            self._free_cores -= 1
            heappush(self._clock, (now + self._adding[message], ADDED, message))


def _programs(messages: Messages, n_ranks: int) -> list[Iterator[tuple[list[int], list[int]]]]:
    """The steps of each rank that have hops: numbers of the messages that it sends, and of those that it receives."""
    steps: list[dict[int, tuple[list[int], list[int]]]] = [{} for _ in range(n_ranks)]
    for side, (rank, step, number) in enumerate((
        (messages.src, messages.sent_in, messages.sent_as),
        (messages.dst, messages.received_in, messages.received_as),
    )):  # fmt: skip
        order = np.lexsort((number, step))
        for who, when, message in zip(rank[order].tolist(), step[order].tolist(), order.tolist(), strict=True):
            steps[who].setdefault(when, ([], []))[side].append(message)
    return [iter([own[at] for at in sorted(own)]) for own in steps]
