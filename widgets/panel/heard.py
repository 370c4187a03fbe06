"""What the panel hears: the events of one cluster, whatever run they belong to, and a picture of the latest state.

A recording would grow with each step of a training as long as the notebook lives, so it is begun anew from the state
that it had come to.
"""

from __future__ import annotations

from typing import ClassVar

from lab.events import Event, Recording, WorkerHandled, WorkerSeen
from lab.events.bus import Batch, bus
from lab.events.catalogue import RankLost, RankStarted
from lab.events.event import fields_of
from widgets.views.cluster.gang import CALLS, LISTENS, Gang
from widgets.views.cluster.view import ClusterView

MOST = 20_000
"""Events of one recording."""
RUN = "cluster panel"
"""The run of the panel's own looks: no recording of a lesson takes them."""


class OfOneCluster(Recording):
    """Takes the events of runs whose ranks are on some workers, and what was seen of these.

    Args:
        addresses: of the workers; more may be added at any time.
    """

    def __init__(self, addresses: set[str]) -> None:
        super().__init__(kinds=(*LISTENS, *CALLS), run="*", sources=False, detail="shape")
        self._addresses, self._runs = addresses, set[str]()

    def receive(self, batch: Batch) -> None:
        kept = [i for i in range(len(batch.rows)) if self._is_ours(batch, i)]
        super().receive(Batch([batch.rows[i] for i in kept], [batch.seqs[i] for i in kept]))

    def go_on_from(self, other: OfOneCluster) -> None:
        """Know the runs that another one knows."""
        self._runs |= other._runs

    def _is_ours(self, batch: Batch, i: int) -> bool:
        kind, _, origin, values = batch.rows[i]
        if not issubclass(kind, (WorkerSeen, WorkerHandled, RankStarted, RankLost)):
            return origin.run in self._runs
        ours = values[list(fields_of(kind)).index("worker")] in self._addresses
        if kind is RankStarted and ours:
            self._runs.add(origin.run)
        elif kind is RankStarted:
            self._runs.discard(origin.run)
        return ours


class PanelView(ClusterView):
    """The workers of a cluster, now: a ClusterView that also says in which collective each rank is."""

    listens: ClassVar[tuple[type[Event], ...]] = (*LISTENS, *CALLS)

    def __init__(self, addresses: set[str]) -> None:
        self._base, self._addresses = Gang(), addresses
        self._heard = OfOneCluster(addresses)
        super().__init__(self._heard)
        bus.attach(self._heard)

    def start(self) -> Gang:
        return self._base

    @property
    def now(self) -> Gang:
        """The latest state."""
        bus.flush()
        with self._lock:
            if len(self.recording) > MOST:
                self._begin_anew()
            return self.state_at(len(self.recording))

    def _begin_anew(self) -> None:
        self._base = self.state_at(len(self.recording))
        old, self._heard = self._heard, OfOneCluster(self._addresses)
        self._heard.go_on_from(old)
        self.recording = self._heard
        bus.attach(self._heard)
        old.close()
        self._fold, self.position = None, 0

    def end(self) -> None:
        """Hear nothing more."""
        self._heard.close()
