"""What a launch asks of a cluster, through any Client."""
# ruff: noqa: TID253 -- this file is imported when the first cluster is used, and by nobody else

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from importlib.machinery import ModuleSpec
from time import monotonic, perf_counter_ns
from typing import Any, TypeVar

from distributed import Client
from distributed.client import ClosedClientError

from lab.parallel.cluster.dask_side.scheduler import SchedulerSide
from lab.parallel.cluster.dask_side.worker import WorkerSide, task
from lab.parallel.cluster.preparing import rehearse
from lab.parallel.cluster.rank import Ticket
from lab.parallel.cluster.versions import differences, versions
from lab.parallel.news.clocks import ENOUGH, ROUNDS, Reading, RoundTrip, read
from lab.parallel.news.feed import Arrivals
from lab.parallel.news.relay import Parcel

T = TypeVar("T")

LOOKS = 0.5
"""Seconds between two looks whether a scheduler that has not answered yet has gone."""


class ClientSide:
    """What `launch` asks of a cluster, through any Client: each question raises OSError when that has no scheduler."""

    def __init__(self, client: Client) -> None:
        self.client: Any = client

    def install(self) -> None:
        """Put the plugins on the scheduler and on all workers, present and future; once is enough.

        Raises:
            ImportError: somebody has no lab; a table of whom, for workers.
        """
        self.client.register_plugin(SchedulerSide())
        try:
            self.client.register_plugin(WorkerSide())
        except Exception as error:
            # What a worker raised comes as a bare Exception with its text. Only a function that every Python has can
            # be run there to find out more.
            found = self.client.run(importlib.util.find_spec, "lab", on_error="return")
            without = {worker: {"lab": "none"} for worker, spec in found.items() if not isinstance(spec, ModuleSpec)}
            if not without:
                raise
            raise ImportError(differences({"lab": versions()["lab"]}, without)) from error

    def ask(
        self, run: str, world_size: int | None, n_started: int, name: str, patience: float,
        keeps: Sequence[str] = (), shelf: str = "",
    ) -> dict[str, Any]:  # fmt: skip
        """Workers for a run, or its place in the queue; one of them that is silent for `patience` seconds ends it.

        `keeps` are the workers that it had, "" for one that was lost; what its ranks put on the `shelf` is dropped when
        this client goes.
        """
        mine = {"run": run, "client": self.client.id, "name": name, "patience": patience,
                "keeps": list(keeps), "shelf": shelf}  # fmt: skip
        return dict(self._ask("lab_ask", **mine, world_size=world_size, n_started=n_started))

    def watch(self, run: str, wake: Callable[[], object]) -> Any:
        """A future of why the run ended before its program did; `wake` is called when it is known."""
        watching = self._begin(lambda: self.client.scheduler.lab_watch(run=run))
        watching.add_done_callback(lambda _: wake())
        return watching

    def unended(self, run: str) -> list[str]:
        """Workers whose ranks could not be ended; asked when the run is over, answered when they had the time to."""
        return list(self._ask("lab_unended", run=run))

    def memory(self, worker: str) -> tuple[int, int] | None:
        """What a worker that has gone had when it was ended for its memory, and its limit; None if it was not."""
        found = self._ask("lab_memory", worker=worker)
        return (int(found[0]), int(found[1])) if found else None

    def fetch(self, run: str, seconds: float = 5.0) -> Future[Arrivals]:
        """A future of what ranks have posted; it waits for it, at most so long."""

        async def fetch() -> Arrivals:
            arrived = await self.client.scheduler.lab_fetch(run=run, seconds=seconds)
            return [(rank, Parcel(*fields)) for rank, *fields in arrived]

        return self._begin(fetch)

    def hear(self, run: str, seconds: float = 5.0) -> Future[list[tuple[int, bytes]]]:
        """A future of what ranks have told; it waits for it, at most so long."""

        async def hear() -> list[tuple[int, bytes]]:
            return [(rank, word) for rank, word in await self.client.scheduler.lab_hear(run=run, seconds=seconds)]

        return self._begin(hear)

    def look(self) -> list[dict[str, Any]]:
        """How all workers are: the fields of their WorkerSeen."""
        return list(self._ask("lab_look"))

    def spare(self, n_spares: int) -> None:
        """Have so many of the workers stand by for lost ones."""
        self._ask("lab_spare", n_spares=n_spares)

    def forget(self, shelf: str) -> None:
        """Drop what ranks have put on a shelf."""
        self._ask("lab_forget", shelf=shelf)

    def round_trips(self, workers: Sequence[str]) -> list[list[RoundTrip]]:
        """Some questions after the time to each worker; none for one that does not answer."""

        async def ask(worker: str) -> list[RoundTrip]:
            trips: list[RoundTrip] = []
            until = monotonic() + ENOUGH
            while len(trips) < ROUNDS and monotonic() < until:
                asked = read()
                answered = await self.client.scheduler.lab_clock(worker=worker)
                if answered is None:
                    break
                trips.append(RoundTrip(asked, Reading(*answered), perf_counter_ns()))
            return trips

        async def ask_all() -> list[list[RoundTrip]]:
            return list(await asyncio.gather(*map(ask, workers)))

        return self._answer(ask_all)

    def end(self, run: str, kind: str, why: str) -> None:
        """End a run on all ranks."""
        self._ask("lab_end", run=run, kind=kind, why=why)

    def limit(self, run: str, seconds: float) -> None:
        """End a run that took longer than so many seconds on all ranks."""
        self._ask("lab_limit", run=run, seconds=seconds)

    def say(self, run: str, rank: int, message: bytes) -> None:
        """Send a pickled message to a rank: one way, in order, without waiting.

        Raises:
            OSError: the client is closed.
        """
        try:
            self.client._send_to_scheduler({"op": "lab_say", "run": run, "rank": rank, "message": message})
        except ClosedClientError as error:
            raise OSError(str(error)) from error

    def release(self, run: str, futures: list[Any]) -> None:
        """Give the workers back, and forget the tasks."""
        self._ask("lab_release", run=run)
        self.client.cancel(futures)

    def submit(self, ticket: Ticket, worker: str, wake: Callable[[], object]) -> Any:
        """Start a rank on its worker, there and nowhere else; `wake` is called when it has ended."""
        future = self.client.submit(
            task, ticket, key=f"lab-{ticket.run}-rank-{ticket.rank}", workers=[worker], allow_other_workers=False,
            pure=False, retries=0, priority=1000,
        )  # fmt: skip
        future.add_done_callback(lambda _: wake())
        return future

    def rehearse(self, run: str, payload: bytes, spare: str) -> Any:
        """Have a spare load what the ranks of a run have loaded; nobody waits for it."""
        return self.client.submit(rehearse, payload, key=f"lab-{run}-on-{spare}", workers=[spare],
                                  allow_other_workers=False, pure=False, retries=0)  # fmt: skip

    # --- how it is asked

    def _begin(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Work for the client's loop, and the future of what comes of it."""

        async def begin() -> T:
            if self.client.scheduler is None:
                raise OSError("the client is closed")
            return await work()

        self._look_for_scheduler()
        return asyncio.run_coroutine_threadsafe(begin(), self.client.loop.asyncio_loop)

    def _answer(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What comes of such work. Not `client.sync`: that tries for 30 s to reach a scheduler that has gone."""
        answer = self._begin(work)
        while True:
            try:
                return answer.result(LOOKS)
            except TimeoutError:
                if answer.done():
                    raise
                self._look_for_scheduler()

    def _ask(self, handler: str, **message: Any) -> Any:
        return self._answer(lambda: getattr(self.client.scheduler, handler)(**message))

    def _look_for_scheduler(self) -> None:
        if self.client.status != "running":
            raise OSError(f"the client is {self.client.status}")
