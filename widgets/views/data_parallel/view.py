"""DataParallelView: the classical figure of data-parallel training, drawn from what the replicas of a run did.

A column for each replica: its shard, its loss, its gradient, the all-reduce between all of them, the same sum, the same
update. A stop is a phase of a step that all replicas have reached.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lab.events import (
    ActionFinished,
    ChunkMoved,
    Event,
    RankFinished,
    RankLost,
    RankStarted,
    ReplicaAdvanced,
    StepFinished,
)
from widgets.fold import Events, Positions, Stretch
from widgets.pictures.scene import Scene
from widgets.view import View
from widgets.views.data_parallel.moment import Moment, moment_of, stops_of
from widgets.views.data_parallel.parts import (
    ROWS,
    SHOWN_FROM,
    edges_of,
    extent,
    legend_of,
    marks_of,
    nodes_of,
    tokens_of,
)
from widgets.views.data_parallel.replicas import PHASES, Replicas
from widgets.views.data_parallel.telling import account, caption, heading, sentence
from widgets.views.nothing import nothing_for

WRITE = "run = lab.fit(model, train, on=DataParallel(cluster)), then DataParallelView(run)"


class DataParallelView(View[Replicas]):
    """Replicas side by side, phase by phase: shards, losses, gradients, the all-reduce, the update that is the same.

    Args:
        source: a Run of `lab.fit(..., on=DataParallel(...))`, or a Recording of such a training.

    Example:
        >>> from lab.events import Recording
        >>> DataParallelView(Recording()).text_at(0).partition(":")[0]
        'DataParallelView shows a training on replicas, phase by phase, and none was recorded. To get one'
    """

    listens = (RankStarted, ReplicaAdvanced, ChunkMoved, RankLost, RankFinished)
    stops = (ReplicaAdvanced,)
    title = "Data parallel"

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self._newest: tuple[int, Replicas] | None = None

    def start(self) -> Replicas:
        return Replicas()

    def fold(self, state: Replicas, event: Event) -> Replicas:
        return state.folded(event)

    def fold_many(self, state: Replicas, stretch: Stretch) -> Replicas:
        return state.folded_many(stretch)

    def stop_positions(self, events: Events) -> Positions:
        """Where the last rank reaches a phase, a rank is lost, and where the recording ends within a step."""
        return stops_of(events)

    def picture(self, state: Replicas) -> Scene:
        moment = self._moment(state)
        if not moment.replicas:
            return Scene(caption=self._why_empty(), title=self.title)
        nodes = list(nodes_of(moment))
        edges = edges_of(moment, nodes)
        words = caption(moment, n_dropped=getattr(self.recording, "dropped", 0))
        marks = tuple(marks_of(moment, heading(moment)))
        return Scene(
            tuple(nodes), tuple(edges), tokens_of(edges), words, self.title, legend_of(nodes), extent=extent(moment),
            marks=marks,
        )  # fmt: skip

    def ids_of(self, event: Event, state: Replicas, scene: Scene) -> Iterable[str]:
        """The boxes of the phase that a replica reached, as long as its step is shown; of others its own box."""
        rank = event.lost_rank if isinstance(event, RankLost) else event.rank
        if isinstance(event, ReplicaAdvanced):
            if event.step != self._moment(state).step:
                return ()
            reached = PHASES.index(event.phase)
            return [f"{name}{rank}" for name, phase in zip(ROWS, SHOWN_FROM, strict=True) if phase == reached]
        return [f"{'reduce' if hasattr(event, 'collective') else 'model'}{rank}"]

    def text(self, state: Replicas) -> str:
        moment = self._moment(state)
        return "\n".join([sentence(moment), *account(moment)]) if moment.replicas else self._why_empty()

    def _moment(self, state: Replicas) -> Moment:
        n = len(self.recording)
        if self._newest is None or self._newest[0] != n:
            self._newest = n, self.state_at(n)
        return moment_of(state, self._newest[1])

    def _why_empty(self) -> str:
        if len(self.recording.positions(ReplicaAdvanced)):
            return "At this moment no replica had taken its examples yet."
        if self.recording.live:
            return "No replica yet: each will show the examples that it takes."
        words = nothing_for("DataParallelView", "a training on replicas, phase by phase", WRITE, self.recording)
        ranks, steps, actions = (len(self.recording.positions(k)) for k in (RankStarted, StepFinished, ActionFinished))
        return words + (' DataParallel(..., told="steps") keeps none.' if ranks and steps and not actions else "")
