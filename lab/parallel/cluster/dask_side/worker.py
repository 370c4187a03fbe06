"""On each worker: the seats of ranks, and the words between them and the scheduler."""
# ruff: noqa: TID253 -- this file is imported when the first cluster is used, and by nobody else

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Coroutine
from typing import Any

from distributed import Worker, WorkerPlugin, get_worker
from distributed.comm.addressing import get_address_host

from lab.kernels.mover import mover
from lab.parallel.cluster.dask_side.names import NAME, host_identity
from lab.parallel.cluster.rank import Outcome, Ticket, run_rank
from lab.parallel.cluster.seats import Seat, Seats
from lab.parallel.cluster.versions import versions
from lab.parallel.news.clocks import Reading, read
from lab.parallel.news.relay import Parcel
from lab.parallel.ranks.shelves import SHELVES
from lab.parallel.transport.tunnel import contexts_of

NUDGE = 0.5
"""Seconds after which a rank that computes on is interrupted."""


class WorkerSide(WorkerPlugin):
    """The seats of a worker, and the words between its ranks and the scheduler: a `rank.Control`."""

    name = NAME
    idempotent = True

    async def setup(self, worker: Worker) -> None:
        self.worker: Any = worker  # half of what is used here has no types
        self.seats = Seats()
        self.address = worker.address
        self.host = get_address_host(worker.address) if "://" in worker.address else ""
        if worker.address.startswith("inproc"):
            self.host = "127.0.0.1"
        self.contexts = contexts_of(worker.security) if worker.address.startswith("tls:") else None
        self.alone = bool(worker.nanny) and worker.state.nthreads == 1
        worker.handlers["lab_ring"] = self.lab_ring
        worker.handlers["lab_forget"] = self.lab_forget
        worker.handlers["lab_where"] = self.lab_where
        worker.handlers["lab_clock"] = self.lab_clock
        worker.stream_handlers["lab_say"] = self.seats.say
        if worker.nanny and threading.current_thread() is threading.main_thread():
            # A terminal and Jupyter send Ctrl-C to every process of the group. The ranks are stopped by the scheduler's
            # word, the worker by its nanny; dying of the signal would cost the learner the whole cluster.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        if worker.nanny:  # a process of its own: what its ranks need is there, or on its way, when the first one comes
            threading.Thread(target=mover, name="lab-load", daemon=True).start()
        about = {"versions": versions(), "host": host_identity(), "pid": os.getpid()}
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

    def lab_forget(self, shelf: str) -> bool:
        return SHELVES.forget(shelf)

    def lab_where(self, run: str) -> tuple[str, str, list[int]]:
        seat = self.seats.at(run)
        return seat.where() if seat else ("absent", "", [])

    def lab_clock(self) -> Reading:
        return read()

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

    def post(self, run: str, rank: int, parcel: Parcel) -> bool:
        word = self.worker.scheduler.lab_post(run=run, rank=rank, parcel=tuple(parcel), n_bytes=len(parcel.body))
        return bool(asyncio.run_coroutine_threadsafe(word, self.worker.loop.asyncio_loop).result())

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

    def late(self, run: str, rank: int, call: str, peers: list[int]) -> None:
        self._say(self.worker.scheduler.lab_late(run=run, rank=rank, call=call, peers=peers))

    def tell(self, run: str, rank: int, word: bytes) -> None:
        message = {"op": "lab_tell", "run": run, "rank": rank, "word": word}
        self.worker.loop.asyncio_loop.call_soon_threadsafe(self.worker.batched_send, message)

    def ended(self, run: str, rank: int) -> None:
        self._say(self.worker.scheduler.lab_ended(run=run, rank=rank, worker=self.worker.address))


def task(ticket: Ticket) -> Outcome:
    """What Dask runs: one rank, in the thread of its task."""
    control = get_worker().plugins[NAME]
    assert isinstance(control, WorkerSide)
    return run_rank(ticket, control)
