"""How a launch lets its listeners follow its ranks: clocks compared, events fetched, workers looked at.

Decided when the ranks have workers: if nobody listens then, nothing is asked of anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from lab.events.bus import Row, bus
from lab.events.catalogue import ClockAligned, WorkerSeen
from lab.events.event import Origin
from lab.parallel.cluster.dask_side.names import host_identity
from lab.parallel.cluster.rank import Outcome
from lab.parallel.news.clocks import align
from lab.parallel.news.feed import Feed, Sent
from lab.parallel.news.merge import Merge
from lab.parallel.news.relay import watch_of
from lab.parallel.news.roll_call import RollCall

if TYPE_CHECKING:
    from lab.parallel.cluster.dask_side.client import ClientSide


class Following:
    """From when the ranks have workers until these are given back.

    Args:
        side: how to ask the cluster.
        run: the lease.
        workers: of each rank.
        about: what each worker said of itself.
        origins: what the events of each rank carry.

    Attributes:
        watch: what the ranks are asked to tell; None if nobody listens.
    """

    def __init__(
        self, side: ClientSide, run: str, workers: Sequence[str], about: Sequence[Mapping[str, Any]],
        origins: Sequence[Origin],
    ) -> None:  # fmt: skip
        self.watch = watch_of(bus)
        self._feed: Feed | None = None
        self._look: Callable[[], object] = lambda: None
        if self.watch is None:
            return
        if WorkerSeen.__name__ in self.watch.kinds:
            self._look = RollCall(side.look)
        self._look()
        here = host_identity()
        trips = side.round_trips(workers)
        clocks = [align(its, same_host=said["host"] == here) for its, said in zip(trips, about, strict=True)]
        for origin, clock in zip(origins, clocks, strict=True):
            bus.append(Row(ClockAligned, perf_counter_ns(), origin, clock))
        merge = Merge([clock.offset_ns for clock in clocks])
        self._feed = Feed(lambda: side.fetch(run), merge, list(origins), self._look)
        self._feed.start()

    def catch_up(self, timeout: float) -> bool:
        """Wait until the events of before this call have come, at most so long; whether they have."""
        return self._feed is None or self._feed.catch_up(timeout)

    def finish(self, outcomes: Mapping[int, Outcome]) -> None:
        """Wait for what those ranks have sent, longer if all is well; count what cannot come."""
        if self._feed is not None:
            well = all(outcome.state == "finished" for outcome in outcomes.values())
            sent = {rank: Sent(outcome.n_parcels, outcome.n_events) for rank, outcome in outcomes.items()}
            self._feed.finish(sent, patient=well)

    def released(self) -> None:
        """The workers were given back: look at them a last time."""
        self._look()
