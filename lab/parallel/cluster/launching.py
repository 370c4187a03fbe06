"""A launch: lease the workers, start a rank on each, wait for all, and tell what went wrong as one error.

It runs in a thread of its own, so that a notebook can stop it, and so that Ctrl-C in a waiting cell ends all ranks.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import CancelledError
from contextvars import copy_context
from time import monotonic
from typing import TYPE_CHECKING, Any

from lab.checks import number, whole
from lab.config import STATE, State
from lab.errors import ArgumentError, LabError, LostRankError, MeshError, RunError
from lab.events.bus import bus
from lab.events.catalogue import RankLost
from lab.events.event import ORIGIN, Origin
from lab.parallel.cluster.following import Following
from lab.parallel.cluster.need import Need, ended_for_memory, forewarn_ranks, n_ended_by_system
from lab.parallel.cluster.rank import Outcome, Ticket
from lab.parallel.cluster.verdict import error_of, outcome_of, results_of
from lab.parallel.cluster.versions import differences, versions
from lab.parallel.news.feed import SETTLE
from lab.parallel.ranks.hearing import Hearing
from lab.parallel.ranks.mailbox import Outbox
from lab.parallel.transport import sending
from lab.parallel.transport.throttle import Throttle, require_throttle
from lab.words import one_of, shown

if TYPE_CHECKING:
    from distributed import Client

    from lab.parallel.cluster.dask_side.client import ClientSide

log = logging.getLogger("lab.parallel")

TRANSPORTS = ("auto", "shared", "unix", "tcp")
SAY_LIMIT = 1 << 20
"""Bytes of one message to a rank."""
PAYLOAD_LIMIT = 64 << 20
"""Bytes of program and arguments, over all ranks: they travel through the scheduler."""


def counted_ranks(ranks: Sequence[int]) -> str:
    """Ranks by their numbers.

    Example:
        >>> counted_ranks([1]), counted_ranks([0, 2])
        ('rank 1', 'ranks 0, 2')
    """
    return f"rank{'s' if len(ranks) != 1 else ''} {', '.join(map(str, ranks))}"


def require_transport(transport: object) -> None:
    """Refuse what is no transport.

    Raises:
        ArgumentError: so it is.
    """
    if not (isinstance(transport, str) and transport in TRANSPORTS):
        raise ArgumentError("there is no such transport", given=f"transport={shown(transport)}",
                            hint=one_of(transport, TRANSPORTS))  # fmt: skip


def transport_for(wanted: str, hosts: AbstractSet[object]) -> str:
    """What ranks on these hosts are told: "auto" only where it is for them to find out what they have in common.

    Raises:
        MeshError: memory is to be shared between hosts.

    Example:
        >>> transport_for("auto", {"a"}), transport_for("auto", {"a", "b"}), transport_for("unix", {"a"})
        ('auto', 'tcp', 'unix')
    """
    if wanted == "shared" and len(hosts) > 1:
        raise MeshError("ranks on several hosts share no memory", given=f"transport='shared' on {len(hosts)} hosts",
                        hint='transport="auto" takes what there is: TCP between hosts')  # fmt: skip
    return "tcp" if wanted == "auto" and len(hosts) > 1 else wanted


class Launch:
    """One run of a program on all its ranks.

    Attributes:
        run: its name, unique. Events of its ranks carry the name of the run in which it was launched (`ORIGIN`).
        workers: address of each rank's worker, once it has them.
        state: "waiting" for workers, "running", "finished", "stopped" or "failed".
        waits_for: why it still waits for workers, as arithmetic; when it comes to its end, for which ranks.
        of_run: name of the run in which it was launched, "" for none.
        lost_s: when it was heard that a rank was lost, by `time.monotonic`; 0 before.
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
        n_started: int = 0,
        throttle: Throttle | None = None,
        keeps: Sequence[str] = (),
        shelf: str = "",
        need: Need | None = None,
    ) -> None:
        require_transport(transport)
        self._throttle = require_throttle(throttle)
        if world_size is not None:
            world_size = whole("world_size", world_size, least=1, hint="one rank per worker; None takes all workers")
        for name, seconds in (("timeout", timeout), ("time_limit", time_limit)):
            if seconds is not None and not number(name, seconds, hint="in seconds") > 0:
                raise ArgumentError("a time-out is a positive number of seconds", given=f"{name}={shown(seconds)}",
                                    hint="60 is usual")  # fmt: skip
        wait = number("wait", wait, hint="in seconds; 0 does not wait for workers")
        require_running(client)
        self.run, self.state, self.waits_for = f"run-{secrets.token_hex(6)}", "waiting", ""
        self.workers: tuple[str, ...] = ()
        self.of_run = ORIGIN.get().run
        self._payload, self._n_started = _pickled(program, args), n_started
        self._client, self._world_size, self._timeout = client, world_size, timeout
        self._time_limit, self._wait, self._transport = time_limit, wait, transport
        self._keeps, self._shelf, self._need = tuple(keeps), shelf, need
        self._n_ended = n_ended_by_system()
        self.lost_s = 0.0
        self._wake, self._done, self._stopped = threading.Event(), threading.Event(), False
        self._generation = 0
        self._mail = Outbox()
        self._results: list[Any] = []
        self._rehearsals: list[Any] = []  # of spares that load what the ranks have
        self._error: BaseException | None = None
        self._following: Following | None = None  # once it has workers
        self._hearing: Hearing | None = None  # once it has workers
        thread = threading.Thread(target=copy_context().run, args=(self._live,), name=f"lab-{self.run}", daemon=True)
        thread.start()
        self._thread = thread

    def __repr__(self) -> str:
        return f"<Launch {self.run}: {self.state}{', ' + self.waits_for if self.waits_for else ''}>"

    def result(self, timeout: float | None = None) -> list[Any]:
        """What the program returned, by rank; waits for it. Ctrl-C while waiting stops all ranks.

        Raises:
            RankError: the program raised on a rank.
            LostRankError: a rank died or does not answer.
            MeshError: the ranks do not fit together, or there are too few workers.
            RunError: it was stopped, or has not ended within `timeout` seconds (it runs on).
        """
        __tracebackhide__ = True  # in a notebook: what counts is the learner's cell
        try:
            if not self._done.wait(timeout):
                raise RunError("the launch has not ended yet", given=repr(self), hint="wait longer, or stop() it")
        except KeyboardInterrupt:
            self.stop()
            self._done.wait(SETTLE)
            raise
        self._thread.join()
        if self._error is not None:
            raise self._error.with_traceback(None)  # the frames of our own thread tell a learner nothing
        return self._results

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended, at most `timeout` seconds; whether it has."""
        return self._done.wait(timeout)

    def catch_up(self, timeout: float = SETTLE) -> bool:
        """Wait until the events that ranks emitted before this call have come, at most so long; whether they have."""
        return self._following is None or self._following.catch_up(timeout)

    def hear(self, timeout: float) -> list[tuple[int, Any]]:
        """What ranks have told by `comm.home.put`, and who: in the order of each rank, each word once.

        Waits for the first word at most `timeout` seconds, less where there is nobody to wait for: before the launch
        has workers, and when it has ended.
        """
        if self._hearing is None or self._done.wait(0):
            self._done.wait(min(timeout, 0.02))
            return []
        try:
            return self._hearing.hear(timeout)
        except (OSError, CancelledError):  # the scheduler has gone: the launch will say so
            self._done.wait(min(timeout, 0.02))
            return []

    def say(self, message: object, rank: int = 0) -> None:
        """Put a message into a rank's `comm.mailbox`: in the order of saying, milliseconds later, without waiting.

        What is said before the ranks have begun is kept for them. A rank that ends without looking never sees it.

        Raises:
            RunError: the launch has ended.
            ArgumentError: there is no such rank, or the message is too large or cannot be sent.
        """
        import cloudpickle

        world_size = len(self.workers) or self._world_size
        if rank < 0 or (world_size is not None and rank >= world_size):
            raise ArgumentError("there is no such rank", given=f"rank={rank} of {world_size or 'all workers'}",
                                hint="ranks are 0 to world_size - 1")  # fmt: skip
        try:
            pickled = cloudpickle.dumps(message)
        except Exception as error:
            raise ArgumentError(
                "the message cannot be sent",
                given=f"{type(error).__name__}: {error}",
                hint="say numbers, texts, arrays and what holds them",
            ) from error
        if len(pickled) > SAY_LIMIT:
            raise ArgumentError(
                "the message is too large",
                given=f"{len(pickled) / 2**20:.1f} MiB of at most 1",
                hint="it goes through the scheduler; large data belongs in the arguments",
            )
        try:
            heard = self._mail.put(rank, pickled)
        except OSError as error:
            raise RunError("the client is closed, and nobody listens", given=error, hint="launch again") from error
        if not heard:
            raise RunError("the launch has ended, and nobody listens", given=repr(self), hint="say it while it runs")

    def still_there(self) -> list[str]:
        """The workers of its ranks that the cluster still has.

        Raises:
            OSError: the scheduler has gone.
        """
        from lab.parallel.cluster.dask_side.client import ClientSide

        seen = {fields["worker"] for fields in ClientSide(self._client).look()}
        return [worker for worker in self.workers if worker in seen]

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
            unconnected = isinstance(error, OSError) or self._client.status != "running"
            self._error = _gone(self._client, error) if unconnected and not isinstance(error, LabError) else error
            self.state = "stopped" if self._stopped else "failed"
        finally:
            self._mail.close()
            self.waits_for = ""
            self._done.set()
            if self._hearing is not None:
                self._hearing.close()

    def _go(self) -> list[Any]:
        from lab.parallel.cluster.dask_side.client import ClientSide

        side = ClientSide(self._client)
        try:
            side.install()
        except (ImportError, AttributeError) as error:
            require_running(self._client)  # a Client that is closed meanwhile has no scheduler to be asked
            raise MeshError(
                "the cluster cannot load the lab",
                given=error,
                hint="install autodiff-lab on the scheduler and on all workers",
            ) from error
        futures: list[Any] = []
        try:
            return self._attend(side, self._lease(side), futures)
        finally:
            try:
                side.release(self.run, futures + self._rehearsals)
                if self._following is not None:
                    self._following.released()
            except OSError as error:
                log.warning("the scheduler has gone: %s", error)

    def _lease(self, side: ClientSide) -> dict[str, Any]:
        until, name = monotonic() + self._wait, ORIGIN.get().run or "a launch"
        while True:
            answer = side.ask(self.run, self._world_size, self._n_started, name, self._timeout, self._keeps,
                              self._shelf)  # fmt: skip
            if answer["state"] == "granted":
                return answer
            if answer["state"] == "refused" or monotonic() > until:
                hint = f"world_size={answer['n_now']} works now" if answer["n_now"] else "launch with fewer ranks"
                hint += ", or start more workers" + (" or wait longer" if answer["state"] == "queued" else "")
                raise MeshError("there are not enough workers", given=answer["reason"], hint=hint)
            if answer["reason"] != self.waits_for:
                self.waits_for = answer["reason"]
                log.info("%s waits: %s", self.run, self.waits_for)
            if self._wake.wait(0.05):
                raise RunError("the launch was stopped while it waited for workers", given=self.waits_for,
                               hint="launch again when others have ended")  # fmt: skip

    def _attend(self, side: ClientSide, lease: dict[str, Any], futures: list[Any]) -> list[Any]:
        self._generation, self.workers = int(lease["generation"]), tuple(lease["workers"])
        self.state, self.waits_for, self._hearing = "running", "", Hearing(lambda: side.hear(self.run))
        found = {worker: about["versions"] for worker, about in zip(self.workers, lease["about"], strict=True)}
        if table := differences(versions(), found):
            raise MeshError("workers have other versions than this process", given=table,
                            hint="install the same versions everywhere, and restart the workers")  # fmt: skip
        if len(self._payload) * len(self.workers) > PAYLOAD_LIMIT:
            raise ArgumentError("program and arguments are too large to be sent to all ranks",
                                given=f"{len(self._payload) / 2**20:.1f} MiB for each of {len(self.workers)} ranks",
                                hint="make or load the data in the program, on each rank")  # fmt: skip
        if self._need is not None and not self._keeps:  # who goes on has begun with as much
            forewarn_ranks(self._need, [about["memory_limit"] for about in lease["about"]])
        transport = transport_for(self._transport, {about["host"] for about in lease["about"]})
        watching, secret = side.watch(self.run, self._wake.set), secrets.token_bytes(32)
        origins = [Origin(rank, ORIGIN.get().run) for rank in range(len(self.workers))]
        following = self._following = Following(side, self.run, self.workers, lease["about"], origins)
        outcomes: dict[int, Outcome] = {}
        try:
            for origin, worker in zip(origins, self.workers, strict=True):
                ticket = Ticket(self.run, origin, following.watch, lease["generation"], origin.rank, len(self.workers),
                                transport, self._timeout, self._throttle, self._payload, secret)  # fmt: skip
                futures.append(side.submit(ticket, worker, self._wake.set))
            self._rehearsals = [side.rehearse(self.run, self._payload, spare) for spare in lease["spares"]]
            self._mail.open(lambda rank, message: side.say(self.run, rank, message))
            outcomes = self._collect(side, futures, watching)
        finally:
            following.finish(outcomes)
        if (results := results_of(outcomes, len(futures))) is not None:
            return results
        if watching.done() and watching.exception() is not None:
            raise _gone(self._client, watching.exception())
        cause = watching.result() if watching.done() else {}
        if cause.get("kind") == "gone":  # our client said goodbye, and this came before its end
            require_running(self._client)
        unended = side.unended(self.run) if len(outcomes) < len(futures) else []
        error = error_of(cause, outcomes, len(futures), self.run, unended)
        if isinstance(error, LostRankError) and cause.get("kind") == "lost":
            error = ended_for_memory(error, cause["worker"], side.memory(cause["worker"]), len(futures), self._need,
                                     n_ended_by_system() - self._n_ended)  # fmt: skip
        if isinstance(error, LostRankError) and error.rank >= 0 and bus.listeners:
            bus.emit(RankLost(self._generation, error.rank, self.workers[error.rank], error.problem))
        raise error

    def _collect(self, side: ClientSide, futures: list[Any], watching: Any) -> dict[int, Outcome]:
        """The outcomes of all ranks, or, when the run ended early, of those that can still tell."""
        outcomes: dict[int, Outcome] = {}
        limit = monotonic() + self._time_limit if self._time_limit is not None else float("inf")
        told = False
        settle = float("inf")
        while True:
            for rank, future in enumerate(futures):
                if rank not in outcomes and future.done():
                    outcomes[rank] = outcome_of(rank, future)
            now = monotonic()
            if watching.done() and settle == float("inf"):
                settle, self.lost_s = now + SETTLE, now
            if self._stopped or watching.done():
                left = [rank for rank in range(len(futures)) if rank not in outcomes]
                self.waits_for = f"waiting for the end of {counted_ranks(left)}" if left else ""
            if len(outcomes) == len(futures) or now >= settle:
                return outcomes
            if watching.done() and self._knows_enough(watching, outcomes, len(futures)):
                return outcomes
            if (self._stopped or now >= limit) and not told:
                told = True
                if self._stopped:
                    side.end(self.run, "stopped", "the launch was stopped")
                elif self._time_limit is not None:
                    side.limit(self.run, self._time_limit)
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


def require_running(client: Client) -> None:
    """Refuse a client that nothing can be asked through.

    Raises:
        MeshError: it is closed, or its scheduler has gone.
    """
    if client.status != "running":
        raise _gone(client)


def _gone(client: Client, error: BaseException | None = None) -> MeshError:
    if client.status in {"closing", "closed"}:
        return MeshError("the connection to the cluster is closed", given=f"a Client that is {client.status}",
                         hint="make another Cluster(), or another Client")  # fmt: skip
    return MeshError("the scheduler has gone", given=error or f"a Client that is {client.status}",
                     hint="its ranks have ended or soon will; start a cluster again")  # fmt: skip


def _pickled(program: Callable[..., Any], args: tuple[object, ...]) -> bytes:
    if not callable(program):
        raise ArgumentError("a program is a function", given=type(program).__name__, hint="launch(program, *args)")
    state = STATE.get()
    shipped = State(kinks=state.kinks, dtype=state.dtype, anomaly=state.anomaly)
    try:
        return sending.dumps((program, args, shipped))
    except Exception as error:
        raise ArgumentError(
            "the program or an argument cannot be sent to workers",
            given=f"{type(error).__name__}: {error}",
            hint="open files, locks and connections stay at home: make them there",
        ) from error
