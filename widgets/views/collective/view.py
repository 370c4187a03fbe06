"""CollectiveView: one collective of a run, step by step: whose parts each rank holds, what moves, what was sent.

Ranks run at their own pace and their events come in an accidental order; so a stop is a step of the plan on all ranks,
and what is shown there is every hop up to that step, whenever it was told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from lab.errors import ViewError
from lab.events import ChunkMoved, CollectiveFinished, CollectiveStarted, Event, RankFinished, RankLost
from lab.words import one_of, shown
from widgets.fold import Events, Positions, Stretch, merged
from widgets.pictures.scene import Edge, Scene
from widgets.view import View
from widgets.views.collective import matrix
from widgets.views.collective.calls import Call, Calls
from widgets.views.collective.parts import cards_marks, edges_of, heading, legend_of, nodes_of, tokens_of
from widgets.views.collective.plan import Plan
from widgets.views.collective.planning import plan_of
from widgets.views.collective.state import MOST_HOPS, Collective, Holdings, holdings
from widgets.views.collective.telling import account, caption, moment, sentence
from widgets.views.collective.trees import LAYOUTS
from widgets.views.nothing import nothing_for

WRITE = "with lab.record() as rec: launch(program), then RingView(rec); or RingView(run) of DataParallel(cluster)"
OF_A_CALL = (CollectiveStarted, ChunkMoved, CollectiveFinished)


class CollectiveView(View[Collective]):
    """One collective of a recording as a ring, as the trees that its hops make, or as a matrix of its links.

    Args:
        source: a Recording, best one of detail "value", or a Run.
        layout: "ring": cards of ranks around a ring, or in a row below the one that talks to all; "tree": at the levels
            of the one or two trees that the hops recorded make (a ring, if they make none); "matrix": bytes from each
            rank to each other, and ranks by chunks; "auto": what suits the hops.
        collective: which of the collectives of the recording, counted from 0 in the order in which they began, -1 the
            last; None: the newest while it is recorded, then the latest that all ranks have left.

    Raises:
        ViewError: the recording has ended and holds no such collective; another layout.

    Example:
        >>> import lab
        >>> from lab.parallel import run_local
        >>> with lab.record() as rec:
        ...     _ = run_local("all_reduce", "ring", [np.ones(2), np.ones(2)])
        >>> view = CollectiveView(rec, layout="matrix")
        >>> [view.sentence_at(int(p)) for p in view.stop_positions(rec)][-1]
        'All 2 ranks left after 2 steps: every rank holds the sum of all parts; each sent 16 B.'
    """

    listens = (*OF_A_CALL, RankLost, RankFinished)
    title = "Collective"
    arranges: ClassVar[bool] = True
    """Whether the reader can choose the layout."""

    def __init__(self, source: Any, *, layout: str = "auto", collective: int | None = None) -> None:
        super().__init__(source)
        if layout not in LAYOUTS:
            raise ViewError("there is no such layout", given=f"layout={shown(layout)}", hint=one_of(layout, LAYOUTS))
        self.layout = layout
        if not (collective is None or isinstance(collective, (int, np.integer))):
            raise ViewError("collectives have whole numbers", given=f"collective={shown(collective)}",
                            hint="0 is the first, -1 the last; None shows the latest")  # fmt: skip
        self.collective = collective
        self._calls = Calls(self.recording)
        self._number: int | None = None
        self._known: tuple[int, int, Collective] = (-1, 0, Collective())  # place of the call, events folded, the state
        self._planned: tuple[Collective, Plan | None] | None = None
        self._chosen: tuple[object, Call | None] = None, None
        self._stops: tuple[Call | None, Positions] = None, np.empty(0, np.int64)
        self._controls: Any = None
        if collective is not None and not self.recording.live and self._call() is None:
            raise ViewError(
                "the recording holds no such collective", given=f"collective={collective}, {len(self._calls)} recorded",
                hint="they are counted from 0 in the order in which they began; None shows the latest",
            )  # fmt: skip

    # --- which collective ---

    def _call(self) -> Call | None:
        self._calls.update()
        key = self._calls.seen, self.recording.live, self.collective
        if self._chosen[0] != key:
            n = len(self._calls)
            if self.collective is None:
                self._chosen = key, self._calls.latest(complete=not self.recording.live)
            else:
                self._chosen = key, self._calls[self.collective] if -n <= self.collective < n else None
        return self._chosen[1]

    def choose(self, collective: int | None) -> None:
        """Show another collective; as the argument of the same name."""
        self.collective = collective
        self.stops_changed()
        self.show(self.position)

    def _whole(self, call: Call) -> Collective:
        """All that is recorded of the chosen collective."""
        place, upto, state = self._known
        if place != call.place or upto > call.bound:
            upto, state = call.first, Collective()
        self._number = call.number
        if upto < call.bound:
            state = self.fold_many(state, Stretch(self.recording, upto, call.bound))
        self._known = call.place, call.bound, state
        return state

    # --- the fold ---

    def start(self) -> Collective:
        return Collective()

    def fold(self, state: Collective, event: Event) -> Collective:
        return state.folded(event, self._number)

    def fold_many(self, state: Collective, stretch: Stretch) -> Collective:
        if self._number is None:
            return super().fold_many(state, stretch)
        for p in merged(*_mine(stretch, self._number), *map(stretch.positions, (RankLost, RankFinished))):
            state = self.fold(state, stretch.events[int(p)])
        return state

    def stop_positions(self, events: Events) -> Positions:
        """One for all who entered, one for each step, one for all who left; as late as the events of all ranks are."""
        call, n = self._call(), len(events)
        if call is None or call.first >= n:  # the newest call may be newer than these events
            return np.empty(0, np.int64)
        call = call._replace(bound=min(call.bound, n))
        if call == self._stops[0]:
            return self._stops[1]
        stretch = Stretch(events, call.first, call.bound)
        entered, moved, left = _mine(stretch, call.number)
        hops = stretch.columns(ChunkMoved)
        steps = hops["step"][hops["collective"] == call.number][:MOST_HOPS]
        moved = moved[:MOST_HOPS]
        last = [entered[-1], *(moved[steps == step][-1] for step in np.unique(steps))]
        whole = self._whole(call)
        if len(left) or whole.broken:
            ended = np.flatnonzero(np.asarray(stretch.columns(RankFinished)["state"]) != "finished")
            gone = merged(stretch.positions(RankLost)[:1], stretch.positions(RankFinished)[ended[:1]])
            gone = gone[: len(whole.broken)]
            last.append(merged(left, gone, moved[-1:])[-1])
        stops = np.maximum.accumulate(np.asarray(last, np.int64)) + 1
        room = np.arange(len(stops))
        # Two steps may be complete at one event, if slow ranks are told late; each is a stop of its own all the same.
        self._stops = call, np.minimum.accumulate((stops - room)[::-1])[::-1] + room
        return self._stops[1]

    def state_at(self, position: int) -> Collective:
        """The collective after the stops up to `position`; what was told too early or late belongs to its step."""
        call = self._call()
        if call is None:
            return Collective()
        stops, whole = self.stop_positions(self.recording), self._whole(call)
        passed = int(np.searchsorted(stops, position, side="right"))
        if not passed:
            return Collective()
        n_steps = min(passed - 1, len(whole.steps))
        return whole.until(n_steps, ended=passed > len(whole.steps) + 1)

    # --- the picture ---

    def picture(self, state: Collective) -> Scene:
        plan = self._plan(state)
        if plan is None or not state.began:
            return Scene(caption=self._why_empty(), title=self.title)
        held = holdings(state, plan.pieces)
        over = len(state.finished) == plan.about.world_size
        marks = [*heading(state, plan, moment(state, plan, over=over))]
        if plan.layout == "matrix":
            nodes, edges = [*matrix.nodes_of(state, plan, held)], list[Edge]()
            marks += matrix.marks_of(state, plan, held)
        else:
            nodes, edges = [*nodes_of(state, plan, held)], edges_of(state, plan, held)
            marks += cards_marks(state, plan, held)
        words = caption(state, plan, held, n_dropped=getattr(self.recording, "dropped", 0), which=self._which(),
                        other=self._other())  # fmt: skip
        return Scene(
            tuple(nodes), tuple(edges), tokens_of(edges), words, self.title,
            legend_of(state, plan, held, nodes, edges), "", "diverging", plan.extent, tuple(marks),
        )  # fmt: skip

    def ids_of(self, event: Event, state: Collective, scene: Scene) -> Iterable[str]:
        """The cards of who took part in it, with their cells, and the way of a hop."""
        if getattr(event, "collective", self._number) != self._number:
            return ()
        ranks, ways = {event.lost_rank if isinstance(event, RankLost) else event.rank}, set[str]()
        if isinstance(event, ChunkMoved):
            ranks, ways = {event.src, event.dst}, {f"{event.src}{tree}>{event.dst}{tree}" for tree in ("", "b")}
        cards = {f"r{rank}{tree}" for rank in ranks for tree in ("", "b")}
        return {*ways, *(node.id for node in scene.nodes if node.id.partition(".")[0] in cards)}

    def text(self, state: Collective) -> str:
        plan = self._plan(state)
        if plan is None or not state.began:
            return self._why_empty()
        held: Holdings = holdings(state, plan.pieces)
        return "\n".join([sentence(state, plan, held, self._which()), *account(state, plan, held)])

    def _plan(self, state: Collective) -> Plan | None:
        """Made from all that is known of the collective that `state` is a moment of."""
        call = self._call()
        whole = self._whole(call) if call is not None else state
        if whole.about is None or (state.about is not None and state.about != whole.about):
            whole = state
        if self._planned is None or self._planned[0] is not whole:
            self._planned = whole, plan_of(whole, self.layout)
        return self._planned[1]

    def _which(self) -> str:
        """Which of several collectives it is; "" of the only one."""
        call, n = self._call(), len(self._calls)
        return f"collective {call.place + 1:,} of {n:,}" if call is not None and n > 1 else ""

    def _other(self) -> str:
        """How another of several collectives is shown; "" of the only one."""
        call, n = self._call(), len(self._calls)
        if call is None or n < 2:
            return ""
        number, word = (0, "first") if call.place else (1, "second")
        return f" {type(self).__name__}(rec, collective={number}) shows the {word} in a notebook."

    def _why_empty(self) -> str:
        if self._call() is not None:
            which = self._which() or "the only one"
            return f"At this moment no rank has entered the collective that is shown ({which}) yet."
        if self.recording.live:
            return "No collective yet: the first comm.all_reduce_ of a rank shows here."
        name, what = type(self).__name__, "a collective of ranks, as comm.all_reduce_, hop by hop"
        return nothing_for(name, what, WRITE.replace("RingView", name), self.recording)

    # --- controls ---

    def build(self) -> Any:
        """The picture below two buttons that go from collective to collective, and the choice of a layout."""
        import ipywidgets as ipw

        from widgets.live.buttons import button, ringed

        back = button("Earlier", "step-backward", "The collective before this one", lambda: self._go(-1))
        on = button("Later", "step-forward", "The collective after this one", lambda: self._go(1))
        self._controls = ipw.HBox([back, on, ipw.Label()], layout=ipw.Layout(align_items="center"))
        self.shown()
        if not self.arranges:
            return ipw.VBox([self._controls, self.host])
        choice = ringed(ipw.Dropdown(description="Layout", options=LAYOUTS, value=self.layout,
                                     tooltip="How ranks are arranged"))  # fmt: skip
        choice.observe(lambda change: self.arrange(change["new"]), "value")
        return ipw.VBox([ipw.HBox([choice, self._controls]), self.host])

    def arrange(self, layout: str) -> None:
        """Show it in another layout."""
        self.layout, self._planned = layout, None
        self.show(self.position)

    def _go(self, by: int) -> None:
        call = self._call()
        if call is not None:
            self.choose(min(max(call.place + by, 0), len(self._calls) - 1))

    def shown(self) -> None:
        if self._controls is None:
            return
        call, n = self._call(), len(self._calls)
        back, on, words = self._controls.children
        self._controls.layout.display = "flex" if n > 1 else "none"
        if call is not None:
            back.disabled, on.disabled = call.place == 0, call.place == n - 1
            words.value = self._which()


def _mine(stretch: Stretch, number: int) -> list[Positions]:
    """Where the events of one call stand, by kind."""
    return [stretch.positions(kind)[stretch.columns(kind)["collective"] == number] for kind in OF_A_CALL]
