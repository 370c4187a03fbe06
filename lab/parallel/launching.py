"""A launch: lease the workers, start a rank on each, wait for all, and tell what went wrong as one error.

It runs in a thread of its own, so that a notebook can stop it, and so that Ctrl-C in a waiting cell ends all ranks.
"""

from __future__ import annotations

import linecache
import logging
import pickle
import secrets
import threading
import traceback
from collections.abc import Callable
from contextvars import copy_context
from time import monotonic
from typing import TYPE_CHECKING, Any

from lab.config import STATE, State
from lab.errors import ArgumentError, LostRankError, MeshError, PlanError, RankError, RunError
from lab.events.bus import bus
from lab.events.catalogue import RankLost
from lab.parallel.rank import Hook, Outcome, Ticket
from lab.parallel.versions import differences, versions

if TYPE_CHECKING:
    from distributed import Client

    from lab.parallel.dask_side import ClientSide

log = logging.getLogger("lab.parallel")

TRANSPORTS = ("auto", "unix", "tcp")
PAYLOAD_LIMIT = 64 << 20
"""Bytes of program and arguments, over all ranks: they travel through the scheduler."""
SETTLE = 1.0
"""Seconds to wait for the ranks' own words after it is known why the run ended."""


class Launch:
    """One run of a program on all its ranks.

    Attributes:
        run: its name, unique; events of its ranks carry it.
        workers: address of each rank's worker, once it has them.
        state: "waiting" for workers, "running", "finished", "stopped" or "failed".
        waits_for: why it still waits, as arithmetic.
    """

    def __init__(
        self,
        program: Callable[..., Any],
        args: tuple[object, ...],
        client: Client,
        *,
        world_size: int | None,
        timeout: float,
        time_limit: float | None,
        wait: float,
        transport: str,
        hook: Hook | None,
    ) -> None:
        if transport not in TRANSPORTS:
            hint = f"one of {', '.join(TRANSPORTS)}"
            raise ArgumentError("there is no such transport", given=repr(transport), hint=hint)
        if not timeout > 0:
            raise ArgumentError("a time-out is a positive number of seconds", given=timeout, hint="60 is usual")
        self.run, self.state, self.waits_for = f"run-{secrets.token_hex(6)}", "waiting", ""
        self.workers: tuple[str, ...] = ()
        self._payload = _pickled(program, args, hook)
        self._client, self._world_size, self._timeout = client, world_size, timeout
        self._time_limit, self._wait, self._transport = time_limit, wait, transport
        self._wake, self._done, self._stopped = threading.Event(), threading.Event(), False
        self._generation = 0
        self._results: list[Any] = []
        self._error: BaseException | None = None
        thread = threading.Thread(target=copy_context().run, args=(self._live,), name=f"lab-{self.run}", daemon=True)
        thread.start()
        self._thread = thread

    def __repr__(self) -> str:
        return f"<Launch {self.run}: {self.state}{', ' + self.waits_for if self.state == 'waiting' else ''}>"

    def result(self, timeout: float | None = None) -> list[Any]:
        """What the program returned, by rank; waits for it. Ctrl-C while waiting stops all ranks.

        Raises:
            RankError: the program raised on a rank.
            LostRankError: a rank died or does not answer.
            MeshError: the ranks do not fit together, or there are too few workers.
            RunError: it was stopped, or has not ended within `timeout` seconds (it runs on).
        """
        try:
            if not self._done.wait(timeout):
                raise RunError("the launch has not ended yet", given=repr(self), hint="wait longer, or stop() it")
        except KeyboardInterrupt:
            self.stop()
            self._done.wait(SETTLE)
            raise
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._results

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended, at most `timeout` seconds; whether it has."""
        return self._done.wait(timeout)

    def stop(self) -> None:
        """End all ranks; returns at once."""
        self._stopped = True
        self._wake.set()

    # --- in the thread of the launch

    def _live(self) -> None:
        try:
            self._results = self._go()
            self.state = "finished"
        except BaseException as error:  # noqa: BLE001 -- raised again by result()
            self._error = error
            self.state = "stopped" if self._stopped else "failed"
        finally:
            self._done.set()

    def _go(self) -> list[Any]:
        from lab.parallel.dask_side import ClientSide

        side = ClientSide(self._client)
        try:
            side.install()
        except (ImportError, AttributeError) as error:
            raise MeshError("the cluster cannot load the lab", given=error,
                            hint="install autodiff-lab on the scheduler and on all workers") from error
        lease = self._lease(side)
        futures: list[Any] = []
        try:
            return self._attend(side, lease, futures)
        finally:
            try:
                side.release(self.run, futures)
            except OSError as error:
                log.warning("the scheduler has gone: %s", error)

    def _lease(self, side: ClientSide) -> dict[str, Any]:
        until = monotonic() + self._wait
        while True:
            answer = side.ask(self.run, self._world_size)
            if answer["state"] == "granted":
                return answer
            if answer["state"] == "refused" or monotonic() > until:
                hint = "launch with fewer ranks, start more workers, or wait until others end"
                raise MeshError("there are not enough workers", given=answer["reason"], hint=hint)
            if answer["reason"] != self.waits_for:
                self.waits_for = answer["reason"]
                log.info("%s waits: %s", self.run, self.waits_for)
            if self._wake.wait(0.05):
                raise RunError("the launch was stopped while it waited for workers", given=self.waits_for,
                               hint="launch again when others have ended")  # fmt: skip

    def _attend(self, side: ClientSide, lease: dict[str, Any], futures: list[Any]) -> list[Any]:
        self.workers, self.state, self._generation = tuple(lease["workers"]), "running", int(lease["generation"])
        found = {worker: about["versions"] for worker, about in zip(self.workers, lease["about"], strict=True)}
        if table := differences(versions(), found):
            raise MeshError("workers have other versions than this process", given=table,
                            hint="install the same versions everywhere, and restart the workers")  # fmt: skip
        if len(self._payload) * len(self.workers) > PAYLOAD_LIMIT:
            raise ArgumentError("program and arguments are too large to be sent to all ranks",
                                given=f"{len(self._payload) / 2**20:.1f} MiB for each of {len(self.workers)} ranks",
                                hint="make or load the data in the program, on each rank")  # fmt: skip
        transport = self._transport
        if transport == "auto":
            transport = "unix" if len({about["host"] for about in lease["about"]}) == 1 else "tcp"
        watching, secret = side.watch(self.run, self._wake.set), secrets.token_bytes(32)
        for rank, worker in enumerate(self.workers):
            ticket = Ticket(self.run, lease["generation"], rank, len(self.workers), transport, self._timeout,
                            self._payload, secret)  # fmt: skip
            futures.append(side.submit(ticket, worker, self._wake.set))
        outcomes = self._collect(side, futures, watching)
        if len(outcomes) == len(futures) and all(outcome.state == "finished" for outcome in outcomes.values()):
            return [pickle.loads(outcomes[rank].value) for rank in range(len(futures))]  # noqa: S301 -- our own ranks'
        if watching.done() and watching.exception() is not None:
            raise MeshError("the scheduler has gone", given=watching.exception(),
                            hint="its ranks have ended or soon will; start a cluster again")  # fmt: skip
        raise self._error_of(watching.result() if watching.done() else {}, outcomes)

    def _collect(self, side: ClientSide, futures: list[Any], watching: Any) -> dict[int, Outcome]:
        """The outcomes of all ranks, or, when the run ended early, of those that can still tell."""
        outcomes: dict[int, Outcome] = {}
        limit = monotonic() + self._time_limit if self._time_limit is not None else float("inf")
        told = False
        settle = float("inf")
        while True:
            for rank, future in enumerate(futures):
                if rank not in outcomes and future.done():
                    outcomes[rank] = _outcome_of(rank, future)
            now = monotonic()
            if watching.done() and settle == float("inf"):
                settle = now + SETTLE
            if len(outcomes) == len(futures) or now >= settle:
                return outcomes
            if watching.done() and self._knows_enough(watching, outcomes, len(futures)):
                return outcomes
            if (self._stopped or now >= limit) and not told:
                told = True
                if self._stopped:
                    side.end(self.run, "stopped", "the launch was stopped")
                else:
                    side.end(self.run, "late", f"the launch took longer than {self._time_limit:g} s")
            until = min(settle, limit if not told else float("inf"))
            self._wake.wait(None if until == float("inf") else max(until - now, 0.0))
            self._wake.clear()

    @staticmethod
    def _knows_enough(watching: Any, outcomes: dict[int, Outcome], world_size: int) -> bool:
        if watching.exception() is not None:
            return True
        cause = watching.result()
        missing = set(range(world_size)) - set(outcomes)
        return missing <= {cause.get("rank", -1)} if cause.get("kind") in {"lost", "late"} else not missing

    def _error_of(self, cause: dict[str, Any], outcomes: dict[int, Outcome]) -> BaseException:
        kind, why, rank = cause.get("kind", ""), cause.get("why", ""), cause.get("rank", -1)
        raised = outcomes.get(rank) if kind == "raised" else None
        raised = raised or next((o for o in outcomes.values() if o.state == "failed" and kind in {"", "raised"}), None)
        if raised is not None:
            return _raised(raised, len(self.workers))
        if kind == "lost" or (kind == "late" and rank >= 0):
            if bus.listeners:
                bus.emit(RankLost(self._generation, rank, self.workers[rank], why))
            return LostRankError(why, rank=rank, given=f"{len(self.workers)} ranks, {self.run}",
                                 hint="the other ranks have ended; the cluster goes on, launch again")  # fmt: skip
        if kind in {"stopped", "late"}:
            return RunError(why, given=self.run, hint="all ranks have ended; launch again")
        told = "; ".join(o.summary for o in outcomes.values() if o.summary)
        return MeshError(why or "the ranks ended without a word", given=told, hint="launch again")


def _pickled(program: Callable[..., Any], args: tuple[object, ...], hook: Hook | None) -> bytes:
    import cloudpickle

    if not callable(program):
        raise ArgumentError("a program is a function", given=type(program).__name__, hint="launch(program, *args)")
    state = STATE.get()
    shipped = State(kinks=state.kinks, dtype=state.dtype, anomaly=state.anomaly)
    try:
        return bytes(cloudpickle.dumps((program, args, hook, shipped)))
    except Exception as error:
        raise ArgumentError("the program or an argument cannot be sent to workers",
                            given=f"{type(error).__name__}: {error}",
                            hint="open files, locks and connections stay at home: make them there") from error


def _outcome_of(rank: int, future: Any) -> Outcome:
    if future.status == "finished":
        outcome = future.result()
        assert isinstance(outcome, Outcome)
        return outcome
    error = future.exception() if future.status == "error" else None
    return Outcome(rank, "stopped", summary=f"its task is {future.status}" + (f": {error}" if error else ""))


def _raised(outcome: Outcome, world_size: int) -> BaseException:
    """What a rank raised, as it is raised here: with the traceback of the rank, cells' lines filled in."""
    frames = traceback.StackSummary.from_list(
        [(file, line, name, text or linecache.getline(file, line).strip()) for file, line, name, text in outcome.frames]
    )
    text = f"On rank {outcome.rank}:\n{''.join(frames.format())}{outcome.summary}"
    error: BaseException | None = pickle.loads(outcome.error) if outcome.error else None  # noqa: S301 -- our own rank's
    if isinstance(error, MeshError | LostRankError | PlanError):
        error.add_note(text)
        return error
    place = f" at {outcome.frames[-1][0].rpartition('/')[2]}:{outcome.frames[-1][1]}" if outcome.frames else ""
    made = RankError(
        f"the program raised on rank {outcome.rank} of {world_size}{place}",
        given=outcome.summary.replace("\n", "; "), hint="all ranks were ended; the traceback of this rank follows",
        rank=outcome.rank, traceback=text,
    )  # fmt: skip
    made.__cause__ = error
    return made
