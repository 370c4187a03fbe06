"""The parallel executor: an equation runs as soon as what it waits for has run, in whatever thread is free.

NumPy lets go of the interpreter's lock within its large operations, so that two of them run on two cores. Of what is
ready the task goes first that has the longest chain behind it. The passes before are those that keep every bit: fused
into one loop, or written out in other sums, there would be little left to run beside each other.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Sequence
from concurrent.futures import Future, wait
from functools import cached_property
from typing import Any

import numpy as np

from lab.graph.dependencies import Needs, costs_of, followers_of, needs_of, priorities
from lab.graph.execute import Calls, Replaying, calls_of
from lab.graph.grouping import GRAIN_MS, Tasks, grouped
from lab.graph.ir import Graph
from lab.graph.passes import optimized
from lab.graph.pool import handed
from lab.graph.telling import Span, now, tell
from lab.kernels.cores import n_cores

EXACT = ("constant folding", "algebra", "common subexpressions", "dead code")
"""The passes that a graph goes through: no bit of any result is another after them, the sign of a nan aside."""


class Scheduled:
    """A graph that runs on several threads; results are bit for bit those of running it equation by equation.

    Args:
        graph: as it was given.
        n_threads: that of the caller among them; None: as many as there are cores.
        grain: milliseconds below which tasks are put together.

    Example:
        >>> import lab
        >>> graph = lab.make_graph(lambda x, y: (x @ y) + (y @ x))(np.ones((200, 200)), np.ones((200, 200)))
        >>> scheduled = Scheduled(graph, n_threads=2)
        >>> scheduled.arrays([np.ones((200, 200)), np.ones((200, 200))])[0][0, 0]
        np.float64(400.0)
        >>> scheduled.tasks.members, scheduled.tasks.needs
        (((0,), (1,), (2,)), ((), (), (0, 1)))
    """

    def __init__(self, graph: Graph, n_threads: int | None = None, grain: float = GRAIN_MS) -> None:
        self.graph, self.grain = graph, grain
        self.n_threads = n_cores() if n_threads is None else n_threads

    @cached_property
    def optimized(self) -> Graph:
        """What runs."""
        return optimized(self.graph, EXACT)

    @cached_property
    def needs(self) -> Needs:
        """What its equations wait for."""
        return needs_of(self.optimized)

    @cached_property
    def tasks(self) -> Tasks:
        """What is handed to threads."""
        return grouped(self.needs, costs_of(self.optimized), self.grain)

    @cached_property
    def calls(self) -> Calls:
        """Its equations, ready to run."""
        return calls_of(self.optimized)

    @cached_property
    def _ranks(self) -> tuple[tuple[float, ...], Needs]:
        return priorities(self.tasks.needs, self.tasks.costs), followers_of(self.tasks.needs)

    def arrays(self, arrays: Sequence[Any]) -> list[Any]:
        """The outputs for arrays; none of them shares memory with an input or with another output."""
        return self._given(self._run(self.calls.slots(arrays), None))

    def told(self, arrays: Sequence[Any]) -> list[Any]:
        """The same, telling of each equation."""
        spans: list[Span] = []
        slots, begun = self.calls.slots(arrays), now()
        outs = self._given(self._run(slots, spans))
        tell("parallel", self.optimized, self.needs, spans, begun, self.n_threads)
        return outs

    def _run(self, slots: list[Any], spans: list[Span] | None) -> list[Any]:
        n_lanes = min(self.n_threads, len(self.tasks.members))
        if n_lanes < 2 or sum(self.tasks.costs) < 2 * self.grain:  # nobody to hand it to, or not worth it
            for k in range(len(self.calls.calls)):
                _apply(self.calls, k, 0, slots, spans)
        else:
            _Run(self.tasks, *self._ranks, self.calls, slots, spans).on(n_lanes)
        return slots

    def _given(self, slots: list[Any]) -> list[Any]:
        """The outputs; what is an input, a constant, a view or given twice is copied."""
        outs: list[Any] = []
        passed = {*self.calls.starts, *range(self.optimized.n_vars, len(slots))}
        for place in self.calls.ends:
            array = np.asarray(slots[place])
            fresh = place not in passed and array.base is None and array.flags.owndata
            outs.append(array if fresh else array.copy())
            passed.add(place)
        return outs


def _apply(calls: Calls, k: int, lane: int, slots: list[Any], spans: list[Span] | None) -> None:
    if spans is None:
        calls.calls[k].apply(slots)
    else:
        start = now()
        calls.calls[k].apply(slots)
        spans.append((k, lane, start, now()))


class _Run:
    """One run: the tasks that are ready, and the threads that take them.

    The caller works, too, as lane 0; so a run goes on where no thread of the pool is free, and may begin another.
    """

    def __init__(
        self,
        tasks: Tasks,
        priority: Sequence[float],
        followers: Needs,
        calls: Calls,
        slots: list[Any],
        spans: list[Span] | None,
    ) -> None:
        self.tasks, self.priority, self.followers = tasks, priority, followers
        self.calls, self.slots, self.spans = calls, slots, spans
        self.missing = [len(waits) for waits in tasks.needs]
        self.ready = [(-priority[t], t) for t, waits in enumerate(tasks.needs) if not waits]
        heapq.heapify(self.ready)
        self.n_left = len(tasks.members)
        self.over = False
        self.why: BaseException | None = None
        self.changed = threading.Condition()

    def on(self, n_lanes: int) -> None:
        """Run all tasks; return when no thread is at work for it any more.

        Raises:
            Exception: whatever an equation raised first, in whichever thread.
        """
        helpers: list[Future[None]] = []
        try:
            helpers += [handed(self.help, lane) for lane in range(1, n_lanes)]
            self.work(0)
        finally:
            idle = [helper.cancel() for helper in helpers]
            if self.n_left:  # interrupted, or something was raised: who is at work ends after the equation he is at
                self.stop(None)
                wait([helper for helper, is_idle in zip(helpers, idle, strict=True) if not is_idle])
        if self.why is not None:
            raise self.why

    def help(self, lane: int) -> None:
        """The work of a thread of the pool, which outlives whatever is raised in it."""
        try:
            self.work(lane)
        except BaseException as why:  # noqa: BLE001 - raised again in the caller's thread
            self.stop(why)

    def work(self, lane: int) -> None:
        """Take tasks until none is left."""
        while (task := self._next()) is not None:
            for k in self.tasks.members[task]:
                if self.over:
                    return
                _apply(self.calls, k, lane, self.slots, self.spans)
            self._done(task)

    def stop(self, why: BaseException | None) -> None:
        """Have nobody begin another equation."""
        with self.changed:
            self.over, self.why = True, self.why or why
            self.changed.notify_all()

    def _next(self) -> int | None:
        with self.changed:
            while not self.ready and self.n_left and not self.over:
                self.changed.wait()
            return heapq.heappop(self.ready)[1] if self.ready and not self.over else None

    def _done(self, task: int) -> None:
        with self.changed:
            self.n_left -= 1
            for f in self.followers[task]:
                self.missing[f] -= 1
                if not self.missing[f]:
                    heapq.heappush(self.ready, (-self.priority[f], f))
            if self.n_left:
                self.changed.notify(len(self.ready) - 1)  # one of them is for who has just done this one
            else:
                self.changed.notify_all()


def scheduling(graph: Graph) -> Replaying:
    """What runs a graph on several threads on arrays, and by its ops on everything else."""
    scheduled = graph.once("scheduled", Scheduled)
    return Replaying(graph, scheduled.arrays, scheduled.told)
