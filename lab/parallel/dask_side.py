"""The one file that touches what `distributed` does not promise: handlers, broadcast, restart of a worker.

On the scheduler a plugin leases workers, lets ranks meet, learns of deaths and tells all members; on each worker a
plugin keeps the seats of ranks. Control only: no array passes here.
"""
# ruff: noqa: TID253 -- this file is imported when the first cluster is used, and by nobody else

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distributed import Client, Scheduler, SchedulerPlugin, Worker, WorkerPlugin, get_worker
from distributed.comm.addressing import get_address_host

from lab.parallel.lease import Leases
from lab.parallel.rank import Outcome, Ticket, run_rank
from lab.parallel.seats import Seat, Seats
from lab.parallel.versions import versions

NAME = f"lab {versions()['lab']}"
GRACE = 2.0
"""Seconds that a rank has to end after its run has; then its worker is restarted."""
NUDGE = 0.5
"""Seconds after which a rank that computes on is interrupted."""
ANSWERS = 0.3
"""Seconds in which a worker that is not stopped says where its rank is."""


def _host_identity() -> str:
    """Equal for processes that can reach each other by unix sockets: one host, one network namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}/{os.stat('/proc/self/ns/net').st_ino}"  # noqa: PTH116 -- a link into the kernel
    except OSError:  # no Linux
        return socket.gethostname()


# --- the scheduler ---------------------------------------------------------------------------------------------------


@dataclass
class _Run:
    client: str
    generation: int
    members: tuple[str, ...]
    addresses: dict[int, str] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    cause: dict[str, Any] | None = None
    met: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)


class SchedulerSide(SchedulerPlugin):
    """Leases, meetings, and the word that goes to all when one is lost."""

    name = NAME
    idempotent = True

    async def start(self, scheduler: Scheduler) -> None:
        self.scheduler, self.leases = scheduler, Leases()
        self.runs: dict[str, _Run] = {}
        self.about: dict[str, dict[str, Any]] = {}
        self.has_nanny: dict[str, bool] = {}
        self.n_generations = 0
        self.tasks: set[asyncio.Task[Any]] = set()
        for handler in (self.lab_ask, self.lab_watch, self.lab_end, self.lab_release, self.lab_meet, self.lab_ready,
                        self.lab_late, self.lab_ended):  # fmt: skip
            scheduler.handlers[handler.__name__] = handler
        for address in scheduler.workers:
            self.add_worker(scheduler, address)

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()

    def _later(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        self.leases.arrived(worker)
        self.has_nanny[worker] = bool(scheduler.workers[worker].nanny)

    def remove_worker(self, scheduler: Scheduler, worker: str, *, stimulus_id: str, **kwargs: Any) -> None:
        self.leases.left(worker, returns=self.has_nanny.pop(worker, False))
        self.about.pop(worker, None)
        for name, run in list(self.runs.items()):
            if worker in run.members:
                rank = run.members.index(worker)
                self._end(name, "lost", f"rank {rank} was lost: its worker {worker} is gone", rank)

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        for name in [name for name, run in self.runs.items() if run.client == client]:
            self._end(name, "gone", "the notebook that launched the run has gone", -1)
            self._later(self.lab_release(name))

    # --- asked by workers

    async def lab_ready(self, worker: str, about: dict[str, Any]) -> None:
        self.about[worker] = about
        self.leases.ready(worker)

    async def lab_meet(self, run: str, rank: int, address: str, seconds: float) -> dict[str, Any]:
        if (known := self.runs.get(run)) is None or known.cause:
            return {"state": "over"}
        known.addresses[rank] = address
        if len(known.addresses) == len(known.members):
            known.met.set()
        try:
            await asyncio.wait_for(known.met.wait(), seconds)
        except TimeoutError:
            missing = sorted(set(range(len(known.members))) - set(known.addresses))
            self._end(run, "late", f"ranks {missing} did not come: their workers are busy, or cannot start them",
                      missing[0])  # fmt: skip
        return {"state": "over"} if known.cause else {"state": "met", "addresses": list(known.addresses.items())}

    async def lab_end(self, run: str, kind: str, why: str, rank: int = -1) -> None:
        self._end(run, kind, why, rank)

    async def lab_late(self, run: str, rank: int, call: str, peers: list[int], may_wait: bool) -> None:
        if (known := self.runs.get(run)) is None or known.cause:
            return
        answers = await self._tell(known.members, "lab_where", {"run": run})
        places = dict(enumerate(answers[worker] for worker in known.members))
        silent = [r for r, place in places.items() if place is None and r not in known.ended]
        outside = {r: place["collective"] for r, place in places.items() if place and not place["inside"]}
        if silent:
            about, why = silent[0], f"ranks {silent} do not answer"
        elif may_wait:
            return
        elif outside:
            about = min(outside, key=lambda r: (outside[r], r))
            why = f"rank {about} has not made this call"
        else:
            about, why = min(peers, default=-1), f"ranks {list(peers)} are late"
        self._end(run, "late", f"{why}: rank {rank} waited too long in {call}", about)

    async def lab_ended(self, run: str, rank: int, worker: str) -> None:
        self.leases.free(run, worker)
        if known := self.runs.get(run):
            known.ended.add(rank)

    # --- asked by clients

    async def lab_ask(self, run: str, client: str, world_size: int | None) -> dict[str, Any]:
        answer = self.leases.ask(run, world_size)
        if answer.state == "granted":
            self.n_generations += 1
            self.runs[run] = _Run(client, self.n_generations, answer.workers)
            if client not in self.scheduler.clients:  # it died while it asked
                self.remove_client(self.scheduler, client)
        return {"state": answer.state, "workers": list(answer.workers), "reason": answer.reason,
                "generation": self.n_generations, "about": [self.about[w] for w in answer.workers]}  # fmt: skip

    async def lab_watch(self, run: str) -> dict[str, Any]:
        if (known := self.runs.get(run)) is None:
            return {}
        await known.over.wait()
        return known.cause or {}

    async def lab_release(self, run: str) -> None:
        self.leases.forget(run)
        if known := self.runs.pop(run, None):
            known.over.set()
            known.met.set()
            cause = known.cause or {"kind": "stopped", "why": "the run is over", "rank": -1}
            still = await self._tell(known.members, "lab_ring", _ring(run, cause))
            for worker in known.members:
                if still[worker] is False:  # it never had a rank of this run, or has not any more
                    self.leases.free(run, worker)
            if any(holder == run for holder in self.leases.holders.values()):
                self._later(self._restart_who_stays(run))

    # --- what follows

    def _end(self, name: str, kind: str, why: str, rank: int) -> None:
        run = self.runs.get(name)
        if run is None or run.cause:
            return
        run.cause = {"kind": kind, "why": why, "rank": rank, "worker": run.members[rank] if rank >= 0 else ""}
        run.over.set()
        run.met.set()
        self._later(self._tell(run.members, "lab_ring", _ring(name, run.cause)))
        self._later(self._restart_who_stays(name))

    async def _restart_who_stays(self, run: str) -> None:
        await asyncio.sleep(GRACE)
        stuck = [w for w, holder in self.leases.holders.items() if holder == run and self.has_nanny.get(w)]
        if stuck:
            # A nanny needs up to 9 s to be rid of a stopped process. With less time the scheduler gives the worker up,
            # and its nanny with it: it never comes back.
            await self.scheduler.restart_workers(workers=stuck, timeout=30, wait_for_workers=False, on_error="return",
                                                 stimulus_id=f"lab-restart-{time.time()}")  # fmt: skip

    async def _tell(self, workers: tuple[str, ...], op: str, message: dict[str, Any]) -> dict[str, Any]:
        """Each worker's answer, None without one; a worker that is stopped holds up nobody."""

        async def tell(worker: str) -> Any:
            if worker not in self.scheduler.workers:  # nobody to connect to, and connecting is tried for long
                return None
            asked = asyncio.ensure_future(ask(worker))
            self.tasks.add(asked)  # it lives on when we wait no longer: a stopped worker hears it when it awakes
            asked.add_done_callback(self.tasks.discard)
            # `wait` and not `wait_for`: it returns in time also when the connection cannot be cancelled quickly.
            await asyncio.wait({asked}, timeout=ANSWERS)
            return asked.result() if asked.done() else None

        async def ask(worker: str) -> Any:
            try:
                return await getattr(self.scheduler.rpc(worker), op)(**message)
            except OSError:  # it died
                return None

        return dict(zip(workers, await asyncio.gather(*map(tell, workers)), strict=True))


def _ring(run: str, cause: dict[str, Any]) -> dict[str, Any]:
    return {"run": run, "kind": cause["kind"], "why": cause["why"], "rank": cause["rank"]}


# --- the worker ------------------------------------------------------------------------------------------------------


class WorkerSide(WorkerPlugin):
    """The seats of a worker, and the words between its ranks and the scheduler: a `lab.parallel.rank.Control`."""

    name = NAME
    idempotent = True

    async def setup(self, worker: Worker) -> None:
        self.worker: Any = worker  # half of what is used here has no types
        self.seats = Seats()
        self.address = worker.address
        self.host = get_address_host(worker.address) if "://" in worker.address else ""
        if worker.address.startswith("inproc"):
            self.host = "127.0.0.1"
        worker.handlers["lab_ring"] = self.lab_ring
        worker.handlers["lab_where"] = self.lab_where
        if worker.nanny and threading.current_thread() is threading.main_thread():
            # A terminal and Jupyter send Ctrl-C to every process of the group. The ranks are stopped by the scheduler's
            # word, the worker by its nanny; dying of the signal would cost the learner the whole cluster.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        about = {"versions": versions(), "host": _host_identity(), "pid": os.getpid()}
        await worker.scheduler.lab_ready(worker=worker.address, about=about)

    def teardown(self, worker: Worker) -> None:
        self.seats.ring_all("gone", "the worker closes, or has lost its scheduler")

    # --- asked by the scheduler

    def lab_ring(self, run: str, kind: str, why: str, rank: int) -> bool:
        still = self.seats.ring(run, kind, why, rank)
        if still:
            asyncio.get_running_loop().call_later(NUDGE, self._nudge, run)
        return still

    def _nudge(self, run: str) -> None:
        if seat := self.seats.at(run):
            seat.interrupt()

    def lab_where(self, run: str) -> dict[str, object] | None:
        seat = self.seats.at(run)
        return seat.where() if seat else None

    # --- asked by ranks, in their threads

    def _ask(self, seat: Seat, seconds: float, question: Coroutine[Any, Any, Any]) -> Any:
        """An answer of the scheduler, the alarm's reason, or TimeoutError."""
        asked = asyncio.run_coroutine_threadsafe(question, self.worker.loop.asyncio_loop)
        done = threading.Event()
        asked.add_done_callback(lambda _: done.set())
        seat.alarm.on_ring(done.set)
        done.wait(seconds)
        if not asked.done():
            asked.cancel()
            seat.alarm.check()
        return asked.result(0)

    def meet(self, run: str, rank: int, address: str, seat: Seat, timeout: float) -> dict[int, str]:
        scheduler = self.worker.scheduler
        asked = scheduler.lab_meet(run=run, rank=rank, address=address, seconds=timeout)
        answer = self._ask(seat, timeout + 5, asked)  # the scheduler gives up first, and says who is missing
        if answer["state"] == "over":
            seat.alarm.wait(1.0)
            seat.alarm.ring("stopped", "the run is over")
            seat.alarm.check()
        return dict(answer["addresses"])

    def _say(self, word: Coroutine[Any, Any, Any]) -> None:
        """Tell the scheduler something, without waiting for it."""

        async def say() -> None:
            try:
                await word
            except OSError:  # the scheduler is gone, and this worker soon will be
                self.seats.ring_all("gone", "the scheduler has gone")

        asyncio.run_coroutine_threadsafe(say(), self.worker.loop.asyncio_loop)

    def report(self, run: str, rank: int, kind: str, why: str, about: int) -> None:
        self._say(self.worker.scheduler.lab_end(run=run, kind=kind, why=why, rank=about))

    def late(self, run: str, rank: int, call: str, peers: list[int], may_wait: bool) -> None:
        self._say(self.worker.scheduler.lab_late(run=run, rank=rank, call=call, peers=peers, may_wait=may_wait))

    def ended(self, run: str, rank: int) -> None:
        self._say(self.worker.scheduler.lab_ended(run=run, rank=rank, worker=self.worker.address))


def task(ticket: Ticket) -> Outcome:
    """What Dask runs: one rank, in the thread of its task."""
    control = get_worker().plugins[NAME]
    assert isinstance(control, WorkerSide)
    return run_rank(ticket, control)


# --- the client ------------------------------------------------------------------------------------------------------


class ClientSide:
    """What `launch` asks of a cluster, through any Client."""

    def __init__(self, client: Client) -> None:
        self.client: Any = client

    def install(self) -> None:
        """Put the plugins on the scheduler and on all workers, present and future; once is enough."""
        self.client.register_plugin(SchedulerSide())
        self.client.register_plugin(WorkerSide())

    def ask(self, run: str, world_size: int | None) -> dict[str, Any]:
        """Workers for a run, or its place in the queue."""
        ask = self.client.scheduler.lab_ask
        return dict(self.client.sync(ask, run=run, client=self.client.id, world_size=world_size))

    def watch(self, run: str, wake: Callable[[], object]) -> Any:
        """A future of why the run ended before its program did; `wake` is called when it is known."""
        watching = asyncio.run_coroutine_threadsafe(
            self.client.scheduler.lab_watch(run=run), self.client.loop.asyncio_loop
        )
        watching.add_done_callback(lambda _: wake())
        return watching

    def end(self, run: str, kind: str, why: str) -> None:
        """End a run on all ranks."""
        self.client.sync(self.client.scheduler.lab_end, run=run, kind=kind, why=why)

    def release(self, run: str, futures: list[Any]) -> None:
        """Give the workers back, and forget the tasks."""
        self.client.sync(self.client.scheduler.lab_release, run=run)
        self.client.cancel(futures)

    def submit(self, ticket: Ticket, worker: str, wake: Callable[[], object]) -> Any:
        """Start a rank on its worker, there and nowhere else; `wake` is called when it has ended."""
        future = self.client.submit(
            task, ticket, key=f"lab-{ticket.run}-rank-{ticket.rank}", workers=[worker], allow_other_workers=False,
            pure=False, retries=0, priority=1000,
        )  # fmt: skip
        future.add_done_callback(lambda _: wake())
        return future
