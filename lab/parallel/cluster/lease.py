"""Who may use which workers: all ranks of a run get their workers at once, or the run waits in a queue, or is refused.

Pure bookkeeping over names and a clock; the scheduler plugin tells it what happens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

ASKS = 3.0
"""Seconds after which a run that does not ask any more has left the queue."""
RETURNS = 60.0
"""Seconds for which a worker that was lost, and has somebody to restart it, still counts as one that will be there."""


@dataclass(frozen=True)
class Answer:
    """What a run is told: "granted" with its workers by rank, "queued" or "refused" with the arithmetic."""

    state: str
    workers: tuple[str, ...] = ()
    reason: str = ""
    n_now: int = 0
    """So many ranks would be granted at once."""


@dataclass
class Leases:
    """The workers of a cluster and the runs on them.

    Example:
        >>> leases = Leases()
        >>> for name in "abc": leases.ready(name)
        >>> leases.ask("one", 2).workers, leases.ask("two", 2).reason
        (('a', 'b'), '2 ranks wanted, 1 of 3 workers free, others held by one')
        >>> leases.free("one", "a"); leases.free("one", "b"); leases.ask("two", 2).workers
        ('a', 'b')
    """

    clock: Callable[[], float] = monotonic
    workers: dict[str, bool] = field(default_factory=dict)
    """Every worker by address, in the order of their coming; True when it is ready for ranks."""
    holders: dict[str, str] = field(default_factory=dict)
    """The run that each busy worker works for."""
    names: dict[str, str] = field(default_factory=dict)
    """What a learner calls the runs that hold workers."""
    lost: list[float] = field(default_factory=list)
    """When workers were lost that somebody restarts."""
    stuck: set[str] = field(default_factory=set)
    """Workers whose rank does not end though its run has, and that nobody restarts."""
    queue: dict[str, float] = field(default_factory=dict)
    """Waiting runs in their order, and when they asked last."""
    paused: set[str] = field(default_factory=set)
    """Workers that begin nothing, for their memory is nearly full."""
    n_spares: int = 0
    """So many workers stand by: they are for who has lost some, whichever workers those are."""

    def arrived(self, worker: str) -> None:
        """A worker joined; it is not ready yet."""
        if worker not in self.workers:
            self.workers[worker] = False
            if self.lost:
                self.lost.pop(0)

    def ready(self, worker: str) -> None:
        """A worker can take a rank."""
        self.arrived(worker)
        self.workers[worker] = True

    def left(self, worker: str, *, returns: bool) -> None:
        """A worker is gone; `returns` if something will replace it."""
        if self.workers.pop(worker, None) is not None and returns:
            self.lost.append(self.clock())
        self.holders.pop(worker, None)
        self.stuck.discard(worker)

    def stays(self, run: str, worker: str) -> None:
        """A worker cannot be ended and still works for a run that is over: nobody waits for it."""
        if self.holders.get(worker) == run:
            self.stuck.add(worker)

    def free(self, run: str, worker: str) -> None:
        """A worker does not work for a run any more."""
        if self.holders.get(worker) == run:
            del self.holders[worker]
            self.stuck.discard(worker)

    def forget(self, run: str) -> None:
        """A run does not wait any more."""
        self.queue.pop(run, None)

    def ask(
        self, run: str, world_size: int | None, n_started: int = 0, name: str = "", keeps: Sequence[str] = ()
    ) -> Answer:
        """Workers for all ranks of a run, in the order of asking; `None` means all workers that there are now.

        So many workers as `n_started` were there once, the spares not counted: whoever is missing is waited for. Others
        who want them are told the `name` of who has them.

        `keeps` names the worker of each rank, "" for one that is new: a run that goes on after a loss wants those back
        whom it had, comes before all who wait, and waits itself for who is missing, whether anybody brings them or not.
        """
        if keeps:
            return self._ask_again(run, name, keeps)
        now = self.clock()
        self.lost = [when for when in self.lost if now - when < RETURNS]
        self.queue = {name: asked for name, asked in self.queue.items() if now - asked < ASKS}
        n_workers = max(len(self.workers) + len(self.lost) - self.n_spares, n_started)
        usable = len(self.workers) - len(self.stuck) - self.n_spares
        wanted = (n_started or max(usable, 0) or n_workers) if world_size is None else world_size
        free = self._free()[: max(n_workers - len(self.holders), 0)]
        if wanted < 1 or wanted > n_workers - len(self.stuck):  # never, however long it waits
            self.forget(run)
            told = f"{_n(wanted, 'rank')} wanted, {_n(n_workers, 'worker')}"
            told += f" and {_n(self.n_spares, 'spare')}" if self.n_spares else ""
            if 1 <= wanted <= n_workers:
                told = self._arithmetic(wanted, len(free), n_workers)
            return Answer("refused", reason=told, n_now=0 if self.queue else len(free))
        self.queue[run] = now
        ahead = list(self.queue).index(run)
        if len(free) < wanted or ahead:
            reason = self._arithmetic(wanted, len(free), n_workers)
            reason += f", {_n(ahead, 'run')} before this one" if ahead else ""
            return Answer("queued", reason=reason, n_now=0 if ahead else len(free))
        return self._grant(run, name, tuple(free[:wanted]))

    def _ask_again(self, run: str, name: str, keeps: Sequence[str]) -> Answer:
        """The workers of a run that lost some: those that it had, and new ones in the places of the lost."""
        known = [worker if worker in self.workers and worker not in self.stuck else "" for worker in keeps]
        free = self._free()
        others = [worker for worker in free if worker not in known]
        n_new = known.count("")
        if len(others) < n_new or not set(known) - {""} <= set(free):
            n_there = len(set(free) & set(known)) + min(n_new, len(others))
            n_workers = len(self.workers) + len(self.lost) - self.n_spares
            reason = self._arithmetic(len(keeps), n_there, max(n_workers, len(keeps)))
            return Answer("queued", reason=reason)
        new = iter(others)
        return self._grant(run, name, tuple(worker or next(new) for worker in known))

    def _free(self) -> list[str]:
        taken = self.holders.keys() | self.paused
        return [name for name, is_ready in self.workers.items() if is_ready and name not in taken]

    def standing_by(self) -> list[str]:
        """The workers that would be the next in the places of lost ones."""
        free = self._free()
        return free[max(len(free) - self.n_spares, 0) :]

    def _grant(self, run: str, name: str, chosen: tuple[str, ...]) -> Answer:
        self.forget(run)
        self.names = {holder: self.names[holder] for holder in self.holders.values()} | {run: name or run}
        self.holders.update(dict.fromkeys(chosen, run))
        return Answer("granted", chosen)

    def _arithmetic(self, wanted: int, n_free: int, n_workers: int) -> str:
        """Why a run does not get what it wants."""
        reason = f"{_n(wanted, 'rank')} wanted, {n_free} of {_n(n_workers, 'worker')} free"
        if n_unready := sum(not is_ready for is_ready in self.workers.values()):
            reason += f", {n_unready} without the lab or still starting"
        if n_paused := len(self.paused - self.holders.keys()):
            reason += f", {n_paused} paused: {'its' if n_paused == 1 else 'their'} memory is nearly full"
        named = {self.names[holder]: None for worker, holder in self.holders.items() if worker not in self.stuck}
        if named:
            reason += f", others held by {' and '.join(named)}"
        for worker in self.workers:
            if worker in self.stuck:
                reason += f", worker {worker} still runs a rank that was to end; it has no nanny: kill it or restart it"
        if (n_missing := n_workers + self.n_spares - len(self.workers)) > 0:
            reason += f", {n_missing} lost and not yet back"
        return reason


def _n(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
