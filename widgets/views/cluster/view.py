"""ClusterView: the workers of a cluster as cards, with the ranks that they hold, their memory, who was lost and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from lab.events import CollectiveStarted, Event, RankLost, RankStarted, WorkerSeen
from widgets.fold import Events, Positions, Stretch, merged
from widgets.pictures.scene import Mark, Scene
from widgets.view import View
from widgets.views.cluster.gang import LISTENS, Gang, because, clock, short_time
from widgets.views.cluster.parts import cards_of, extent_of, marks_of, memory_words, node_of, state_words

LEGEND = {
    "device": "holds a rank", "op": "without a rank", "active": "runs", "done": "ended",
    "waiting": "paused, or stopped or slowed by hand",
    "stopped": "was ended because of another rank", "trouble": "lost, failed or gone",
}  # fmt: skip


class ClusterView(View[Gang]):
    """Workers and ranks of the latest launch in a recording: state, memory, processor, clock, losses.

    Args:
        source: a Run, or a Recording around a launch.

    Example:
        >>> import lab
        >>> from lab.events import RankStarted, WorkerSeen, bus
        >>> with lab.record() as rec:
        ...     bus.emit(WorkerSeen("tcp://127.0.0.1:5000", "leased", "run-1", 4711, 200 << 20, 900 << 20, 12.0))
        ...     bus.emit(RankStarted(1, 1, "tcp://127.0.0.1:5000", 4711))
        >>> print(ClusterView(rec).text_at(2))
        Rank 0 of 1 started on worker 0.
        rank 0 runs on worker 0 (tcp://127.0.0.1:5000), pid 4711, 200 of 900 MiB, cpu 12 %, clock not compared
    """

    listens: ClassVar[tuple[type[Event], ...]] = LISTENS
    title = "Cluster"

    def start(self) -> Gang:
        return Gang()

    def fold(self, state: Gang, event: Event) -> Gang:
        return state.folded((event,))

    def fold_many(self, state: Gang, stretch: Stretch) -> Gang:
        return state.folded(stretch.of(self.listens))

    def stop_positions(self, events: Events) -> Positions:
        """After each event of a rank, and after each look at all workers."""
        looks = events.positions(WorkerSeen)
        ends = looks[~np.isin(looks + 1, looks)]
        return merged(ends, *(events.positions(kind) for kind in LISTENS if kind is not WorkerSeen)) + 1

    def picture(self, state: Gang) -> Scene:
        cards = cards_of(state)
        if not cards:
            return Scene(caption=self._why_empty(), title=self.title)
        nodes = tuple(node_of(card) for card in cards)
        there = {n.state for n in nodes} | {
            "op" if n.state == "idle" else "device" for n in nodes if n.state != "trouble"
        }
        legend = tuple((mark, words) for mark, words in LEGEND.items() if mark in there)
        extent = extent_of(len(cards))
        head = Mark("head", "heading", 0, 12, extent[0], 0, _headline(state))
        marks = (head, *(mark for card in cards for mark in marks_of(card)))
        return Scene(nodes, caption=_caption(state), title=self.title, legend=legend, extent=extent, marks=marks)

    def ids_of(self, event: Event, state: Gang, scene: Scene) -> Iterable[str]:
        """The card of the worker that holds the rank, or held it."""
        rank = event.lost_rank if isinstance(event, RankLost) else event.rank
        return [f"w{card.number}" for card in cards_of(state) if card.rank == rank]

    def text(self, state: Gang) -> str:
        if not state.workers:
            return self._why_empty()
        lines = [state.last or _headline(state)]
        for card in cards_of(state):
            worker, held = card.worker, card.held
            seen = f", {memory_words(worker)}, cpu {worker.cpu_percent:.0f} %" if worker.n_bytes >= 0 else ""
            where = f"worker {card.number} ({worker.address}), pid {worker.pid}{seen}"
            if held is None:
                lines.append(f"{state_words(card)}: {where}")
                continue
            why = f": {held.reason}" if held.reason else ""
            knocked = f", {held.n_refused} strangers refused, the latest: {held.refused}" if held.n_refused else ""
            call = f", in {held.call}" if held.call else ""
            new = ", in the place of one that was lost" if held.replaces else ""
            what = f"rank {card.rank} {state_words(card)} on {where}{new}{call}"
            lines.append(f"{what}, clock {clock(held)}{knocked}{why}")
        return "\n".join(lines)

    def _why_empty(self) -> str:
        if self.recording.live:
            return "Nobody looked at the workers yet: the first launch does."
        if any(len(self.recording.positions(kind)) for kind in (RankStarted, RankLost)):
            return "No worker was seen up to here."
        n_ranks = self._n_threads()
        if n_ranks:
            return f"No worker has a part in it: the {n_ranks} ranks are threads of this process."
        return "No worker was seen: what was recorded launched nothing, as lab.parallel.launch or lab.fit(on=...) does."

    def _n_threads(self) -> int:
        """Ranks of a recording of run_ranks or run_local, 0 if there are none."""
        sizes = self.recording.columns(CollectiveStarted)["world_size"]
        return int(sizes[-1]) if len(sizes) else 0


def _headline(state: Gang) -> str:
    n_holding = len({r.worker for r in state.ranks.values() if r.worker})
    if not n_holding:
        return f"{len(state.workers)} workers, no rank yet"
    many = "ranks" if state.world_size != 1 else "rank"
    return f"launch {state.generation}: {state.world_size} {many} on {n_holding} of {len(state.workers)} workers"


def _by_hand(state: Gang) -> list[str]:
    return [f"{state.name(address)} {worker.hand}" for address, worker in state.workers.items() if worker.hand]


def _caption(state: Gang) -> str:
    """The point, what went wrong, and how well the clocks agree."""
    states = Counter(r.state for r in state.ranks.values() if r.worker)
    told = ", ".join(f"{n} {'running' if s == 'running' else s}" for s, n in states.items())
    parts = ["Each card is a worker, its bar the memory that it uses of its limit."]
    parts += [f"Ranks: {told}."] if told else []
    parts += [
        f"Rank {rank} was lost{because(r.reason)}." for rank, r in sorted(state.ranks.items()) if r.state == "lost"
    ]
    parts += [f"By hand: {', '.join(done)}."] if (done := _by_hand(state)) else []
    refused = sum(r.n_refused for r in state.ranks.values())
    parts += [f"Strangers refused at data ports: {refused}."] if refused else []
    apart = [r.error_ns for r in state.ranks.values() if r.error_ns >= 0 and not r.same_clock]
    if apart:
        parts.append(f"Times of all ranks are in the launcher's clock, right to within {short_time(max(apart))}.")
    return " ".join(parts)
