"""On the scheduler: who may use which workers, where ranks meet, and the word that goes to all when one is lost."""
# ruff: noqa: TID253 -- this file is imported when the first cluster is used, and by nobody else

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from distributed import Scheduler, SchedulerPlugin

from lab.parallel.cluster.blame import Place, blame, places_in_words
from lab.parallel.cluster.dask_side.ends import Ends
from lab.parallel.cluster.dask_side.names import NAME
from lab.parallel.cluster.lease import Leases
from lab.parallel.cluster.silence import LOOK, QUIET, Silence

GRACE = 2.0
"""Seconds that a rank has to end after its run has; then its worker is restarted."""
MAILBAG = 16 << 20
"""Bytes of events of one run that wait here for its client; then its ranks have to wait."""
ANSWERS = 0.3
"""Seconds in which a worker that is not stopped answers."""
PLACES = 3.0
"""Seconds in which it says where its rank is: who is to blame hangs on it, and a machine may be busy."""


@dataclass
class _Run:
    client: str
    generation: int
    members: tuple[str, ...]
    patience: float
    """Seconds for which a worker may be silent."""
    addresses: dict[int, str] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    cause: dict[str, Any] | None = None
    parcels: list[tuple[Any, ...]] = field(default_factory=list)
    """Events of ranks on their way home: rank and fields of a Parcel, unread."""
    n_bytes: int = 0
    posted: asyncio.Event = field(default_factory=asyncio.Event)
    words: list[tuple[int, bytes]] = field(default_factory=list)
    """What ranks have told and the client has not yet heard, by rank, pickled."""
    told: asyncio.Event = field(default_factory=asyncio.Event)
    met: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    graced: asyncio.Event = field(default_factory=asyncio.Event)
    """It is over, and its ranks have ended or have had the time to."""


class SchedulerSide(SchedulerPlugin):
    """Leases, meetings, and the word that goes to all when one is lost."""

    name = NAME
    idempotent = True

    async def start(self, scheduler: Scheduler) -> None:
        self.scheduler, self.leases, self.ends = scheduler, Leases(), Ends()
        self.runs: dict[str, _Run] = {}
        self.about: dict[str, dict[str, Any]] = {}
        self.has_nanny: dict[str, bool] = {}
        self.shelves: dict[str, str] = {}
        """What ranks keep between launches, by name, and the client that it is kept for."""
        self.n_generations = 0
        self.tasks: set[asyncio.Task[Any]] = set()
        for handler in (
            *(self.lab_ready, self.lab_meet, self.lab_end, self.lab_late, self.lab_ended, self.lab_post),
            *(self.lab_ask, self.lab_watch, self.lab_release, self.lab_fetch, self.lab_look, self.lab_clock),
            *(self.lab_hear, self.lab_limit, self.lab_unended, self.lab_forget, self.lab_spare),
            self.lab_memory,
        ):
            scheduler.handlers[handler.__name__] = handler
        scheduler.stream_handlers |= {"lab_say": self.lab_say, "lab_tell": self.lab_tell}
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
        self.ends.arrived(scheduler.workers[worker])

    def log_event(self, topic: str, msg: Any) -> None:
        self.ends.told(topic, msg)

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
        for shelf in [shelf for shelf, owner in self.shelves.items() if owner == client]:
            self._later(self.lab_forget(shelf))

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

    async def lab_late(self, run: str, rank: int, call: str, peers: list[int]) -> None:
        if (known := self.runs.get(run)) is None or known.cause:
            return
        verdict = blame(rank, call, peers, await self._places(run, known))
        self._end(run, verdict.kind, verdict.why, verdict.rank)

    async def _places(self, run: str, known: _Run) -> dict[int, Place | None]:
        """Where each rank is, None where its worker does not answer."""
        answers = await self._tell(known.members, "lab_where", {"run": run}, PLACES)
        return {
            rank: Place("ended") if rank in known.ended else answer and Place(answer[0], answer[1], tuple(answer[2]))
            for rank, answer in enumerate(answers[worker] for worker in known.members)
        }

    async def lab_ended(self, run: str, rank: int, worker: str) -> None:
        self.leases.free(run, worker)
        if known := self.runs.get(run):
            known.ended.add(rank)
            if known.cause and not self._held_without_nanny(run):
                known.graced.set()

    async def lab_post(self, run: str, rank: int, parcel: tuple[Any, ...], n_bytes: int) -> bool:
        """Keep a parcel for the client; False if there is no room now."""
        if (known := self.runs.get(run)) is None:
            return True  # nobody wants it any more
        if known.n_bytes and known.n_bytes + n_bytes > MAILBAG:
            return False
        known.parcels.append((rank, *parcel))
        known.n_bytes += n_bytes
        known.posted.set()
        return True

    def lab_tell(self, run: str, rank: int, word: bytes, worker: str) -> None:
        """Keep a word for the client; all of them, for they are few."""
        if known := self.runs.get(run):
            known.words.append((rank, word))
            known.told.set()

    # --- asked by clients

    async def lab_ask(
        self, run: str, client: str, name: str, world_size: int | None, n_started: int, patience: float,
        keeps: list[str], shelf: str,
    ) -> dict[str, Any]:  # fmt: skip
        self.leases.paused = {w for w, state in self.scheduler.workers.items() if state.status.name == "paused"}
        answer = self.leases.ask(run, world_size, n_started, name, keeps)
        if answer.state == "granted":
            if shelf:
                self.shelves[shelf] = client
            self.n_generations += 1
            self.runs[run] = _Run(client, self.n_generations, answer.workers, patience)
            self._later(self._watch_over(run))
            if client not in self.scheduler.clients:  # it died while it asked
                self.remove_client(self.scheduler, client)
        return {"state": answer.state, "workers": list(answer.workers), "reason": answer.reason, "n_now": answer.n_now,
                "generation": self.n_generations, "about": [self._about(w) for w in answer.workers],
                "spares": self.leases.standing_by()}  # fmt: skip

    def _about(self, worker: str) -> dict[str, Any]:
        return self.about[worker] | {"memory_limit": int(self.scheduler.workers[worker].memory_limit or 0)}

    async def lab_memory(self, worker: str) -> list[int] | None:
        """What a worker that has gone had when it was ended for its memory, and its limit; None if it was not."""
        return await self.ends.memory(worker)

    async def lab_watch(self, run: str) -> dict[str, Any]:
        if (known := self.runs.get(run)) is None:
            return {}
        await known.over.wait()
        return known.cause or {}

    async def lab_unended(self, run: str) -> list[str]:
        """Workers of a run that is over whose ranks could not be ended; waits until they have had the time to end."""
        if (known := self.runs.get(run)) is None or not known.cause or not self._held_without_nanny(run):
            return []
        await known.graced.wait()
        return self._held_without_nanny(run)

    def _held_without_nanny(self, run: str) -> list[str]:
        return [w for w, holder in self.leases.holders.items() if holder == run and not self.has_nanny.get(w)]

    async def lab_limit(self, run: str, seconds: float) -> None:
        """The time for the whole run is over: end it, and say what each rank did."""
        if (known := self.runs.get(run)) is None or known.cause:
            return
        places = places_in_words(await self._places(run, known))
        self._end(run, "late", f"the launch took longer than {seconds:g} s: {places}", -1)

    async def lab_fetch(self, run: str, seconds: float) -> list[tuple[Any, ...]]:
        """What ranks have posted; waits for it, at most so long."""
        if (known := self.runs.get(run)) is None:
            return []
        with suppress(TimeoutError):
            await asyncio.wait_for(known.posted.wait(), seconds)
        parcels, known.parcels, known.n_bytes = known.parcels, [], 0
        known.posted.clear()
        return parcels

    async def lab_hear(self, run: str, seconds: float) -> list[tuple[int, bytes]]:
        """What ranks have told; waits for it, at most so long."""
        if (known := self.runs.get(run)) is None:
            return []
        with suppress(TimeoutError):
            await asyncio.wait_for(known.told.wait(), seconds)
        words, known.words = known.words, []
        known.told.clear()
        return words

    async def lab_forget(self, shelf: str) -> None:
        """The run has ended for which this was kept."""
        if self.shelves.pop(shelf, None) is not None:
            await self._tell(tuple(self.scheduler.workers), "lab_forget", {"shelf": shelf})

    async def lab_spare(self, n_spares: int) -> None:
        """So many of the workers stand by from now on."""
        self.leases.n_spares = n_spares

    async def lab_look(self) -> list[dict[str, Any]]:
        """How all workers are: the fields of their WorkerSeen."""
        return [self._seen(worker, state) for worker, state in self.scheduler.workers.items()]

    def _seen(self, worker: str, about: Any) -> dict[str, Any]:
        holds, numbers = self.leases.holders.get(worker, ""), about.metrics or {}
        paused = about.status.name == "paused"
        return {
            "worker": worker, "state": "paused" if paused else "leased" if holds else "idle", "holds": holds,
            "pid": int(self.about.get(worker, {}).get("pid", 0)), "memory_bytes": int(numbers.get("memory", 0)),
            "memory_limit_bytes": int(about.memory_limit or 0), "cpu_percent": float(numbers.get("cpu", 0.0)),
        }  # fmt: skip

    async def lab_clock(self, worker: str) -> Any:
        """A worker's Reading of its clocks; None without an answer."""
        return (await self._tell((worker,), "lab_clock", {}))[worker]

    def lab_say(self, run: str, rank: int, message: bytes, client: str) -> None:
        """Passed on to the rank's worker, one way and in order."""
        if (known := self.runs.get(run)) is None or not 0 <= rank < len(known.members):
            return  # it is over; an exception would cut the client's connection
        stream: Any = self.scheduler.stream_comms.get(known.members[rank])
        if stream is not None and not stream.closed():
            stream.send({"op": "lab_say", "run": run, "message": message})

    async def lab_release(self, run: str) -> None:
        self.leases.forget(run)
        if known := self.runs.pop(run, None):
            known.over.set()
            known.met.set()
            known.posted.set()
            known.graced.set()
            await self._free_who_has_none(run, known.cause)
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

    async def _watch_over(self, name: str) -> None:
        """End a run when one of its workers is silent, though no rank waits for it in a call.

        Nobody is asked: a worker of Dask whose event loop turns sends a heartbeat every half second (every few seconds
        in a cluster of hundreds), whatever its rank computes.
        """
        run, silence = self.runs[name], Silence()
        while not run.over.is_set():
            members = ((worker, self.scheduler.workers.get(worker)) for worker in run.members)
            silent = silence.look({worker: about.last_seen for worker, about in members if about is not None})
            for rank, worker in enumerate(run.members):
                if silent.get(worker, 0.0) >= max(run.patience, QUIET):
                    why = f"rank {rank} is lost: its worker {worker} does not answer"
                    self._end(name, "late", why, rank)
                    break
            with suppress(TimeoutError):
                await asyncio.wait_for(run.over.wait(), LOOK)

    async def _free_who_has_none(self, run: str, cause: dict[str, Any] | None) -> None:
        """Take back the workers of a run that is over which never had a rank of it, or have not any more."""
        held = tuple(worker for worker, holder in self.leases.holders.items() if holder == run)
        over = cause or {"kind": "stopped", "why": "the run is over", "rank": -1}
        for worker, has_rank in (await self._tell(held, "lab_ring", _ring(run, over))).items():
            if has_rank is False:
                self.leases.free(run, worker)

    async def _restart_who_stays(self, run: str) -> None:
        await asyncio.sleep(GRACE)
        ended = self.runs.get(run)
        await self._free_who_has_none(run, ended.cause if ended else None)  # it may not have begun its rank by then
        for worker in self._held_without_nanny(run):
            self.leases.stays(run, worker)
        if known := self.runs.get(run):
            known.graced.set()
        stuck = [w for w, holder in self.leases.holders.items() if holder == run and self.has_nanny.get(w)]
        if stuck:
            # A nanny needs up to 9 s to be rid of a stopped process. With less time the scheduler gives the worker up,
            # and its nanny with it: it never comes back.
            await self.scheduler.restart_workers(workers=stuck, timeout=30, wait_for_workers=False, on_error="return",
                                                 stimulus_id=f"lab-restart-{time.time()}")  # fmt: skip

    async def _tell(
        self, workers: tuple[str, ...], op: str, message: dict[str, Any], seconds: float = ANSWERS
    ) -> dict[str, Any]:
        """Each worker's answer, None without one; a worker that is stopped holds up nobody."""

        async def tell(worker: str) -> Any:
            if worker not in self.scheduler.workers:  # nobody to connect to, and connecting is tried for long
                return None
            asked = asyncio.ensure_future(ask(worker))
            self.tasks.add(asked)  # it lives on when we wait no longer: a stopped worker hears it when it awakes
            asked.add_done_callback(self.tasks.discard)
            # `wait` and not `wait_for`: it returns in time also when the connection cannot be cancelled quickly.
            await asyncio.wait({asked}, timeout=seconds)
            return asked.result() if asked.done() else None

        async def ask(worker: str) -> Any:
            try:
                return await getattr(self.scheduler.rpc(worker), op)(**message)
            except OSError:  # it died
                return None

        return dict(zip(workers, await asyncio.gather(*map(tell, workers)), strict=True))


def _ring(run: str, cause: dict[str, Any]) -> dict[str, Any]:
    return {"run": run, "kind": cause["kind"], "why": cause["why"], "rank": cause["rank"]}
