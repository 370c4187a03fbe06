"""CompareCollectives: two algorithms on the same buffers, step beside step, with what each took so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from lab.errors import ViewError
from lab.events import Event
from lab.words import counted, shown
from widgets.fold import Events, Positions, Stretch
from widgets.pictures.scene import Mark, Scene
from widgets.view import View, recording_of
from widgets.views.collective.calls import LOOK_BACK, Calls
from widgets.views.collective.right import same_buffers
from widgets.views.collective.state import Collective, links_of
from widgets.views.collective.view import CollectiveView
from widgets.views.nothing import nothing_for
from widgets.views.words import milliseconds, n_bytes

WRITE = "with lab.record() as rec: launch(program), which calls all_reduce_ twice, then CompareCollectives(rec)"
WIDEST = 1400.0
"""Both pictures beside each other take no more; else one is below the other."""
GAP, ROW, NAME, BAR, WORDS = 60.0, 26.0, 190.0, 130.0, 110.0
"""Between the pictures; of the table at the top the height of a row, the width of names, of a bar and of its words."""


Pair = tuple[CollectiveView, CollectiveView]


class Took(NamedTuple):
    """What a collective took, up to some moment."""

    steps: int
    sent: int
    """Bytes of the rank that sent most."""
    link: int
    """Bytes of the link that carried most."""
    elapsed_ms: float

    def words(self) -> tuple[str, ...]:
        """The same as one says it."""
        return str(self.steps), n_bytes(self.sent), n_bytes(self.link), milliseconds(self.elapsed_ms)


ROWS = ("steps", "most that a rank sent", "most over a link", "time")


class CompareCollectives(View[int]):
    """Two collectives beside each other, step beside step; the one that has fewer is over earlier.

    Args:
        source: a Recording or a Run with both, or with the first.
        other: that of the second, if it is another one.
        collectives: which of the collectives of the recordings, counted from 0, -1 the last; if not given the last two
            that are no barriers, or the latest of each recording.
        layout: of both, as of CollectiveView.

    Raises:
        ViewError: a source that is no recording, not two collectives, or a recording that holds no such.

    Example:
        >>> import lab
        >>> from lab.parallel import run_ranks
        >>> def program(comm):
        ...     for algorithm in ("ring", "naive"):
        ...         comm.all_reduce_(np.arange(4.0) + comm.rank, algorithm)
        >>> with lab.record(detail="value") as rec:
        ...     _ = run_ranks(program, world_size=4)
        >>> CompareCollectives(rec).text_at(len(rec)).splitlines()[1][:67]
        'all_reduce by ring: 6 steps, most that a rank sent 48 B, most over '
    """

    listens: ClassVar[tuple[type[Event], ...]] = ()
    title = "Two collectives"

    def __init__(
        self, source: Any, other: Any = None, *, collectives: tuple[int, int] | None = None, layout: str = "auto"
    ) -> None:
        super().__init__(source)
        asked: Any = collectives
        found = tuple(asked) if isinstance(asked, (tuple, list)) else () if asked is not None else None
        if found is not None and len(found) != 2:
            raise ViewError("two collectives are compared", given=f"collectives={shown(collectives)}",
                            hint="collectives=(0, 1): the first and the second of the recording")  # fmt: skip
        second = self.recording if other is None else recording_of(other, type(self).__name__)
        self._layout = layout
        self._pair: Pair | None = None
        self._calls = Calls(self.recording) if found is None and other is None else None
        self._places: tuple[int, int] | None = None
        one, two = found or (None, None)
        if self._calls is None:
            self._pair = _view(self.recording, one, layout), _view(second, two, layout)
            if len(_stops(self._pair[1])) > len(_stops(self._pair[0])):
                self.recording = second  # the longer one is the clock

    def _both(self) -> Pair | None:
        """The views of the two; of a recording that grows those of its last two so far."""
        if self._calls is not None:
            places = _last_two(self._calls)
            if places is not None and places != self._places:
                one, two = (_view(self.recording, place, self._layout) for place in places)
                self._places, self._pair = places, (one, two)
        return self._pair

    # --- the fold: how far the longer one has been read ---

    def start(self) -> int:
        return 0

    def fold(self, state: int, event: Event) -> int:
        return state + 1

    def fold_many(self, state: int, stretch: Stretch) -> int:
        return stretch.stop

    def stop_positions(self, events: Events) -> Positions:
        """Those of the collective with more steps."""
        both = self._both()
        if both is None:
            return np.empty(0, np.int64)
        longer = max(map(_stops, both), key=len)
        return longer[longer <= len(events)]

    def _moments(self, position: int) -> tuple[tuple[Collective, Collective], tuple[Collective, Collective]] | None:
        """Both as they are after the stops up to a position of the clock, and both as a whole."""
        both = self._both()
        passed = int(np.searchsorted(self.stop_positions(self.recording), position, side="right"))
        if both is None or not passed:
            return None
        places = [_stops(view)[:passed] for view in both]
        if not (len(places[0]) and len(places[1])):
            return None
        now = [view.state_at(int(stops[-1])) for view, stops in zip(both, places, strict=True)]
        whole = [view.state_at(len(view.recording)) for view in both]
        return (now[0], now[1]), (whole[0], whole[1])

    # --- the picture ---

    def picture(self, state: int) -> Scene:
        moments, both = self._moments(state), self._both()
        if moments is None or both is None:
            return Scene(caption=self._why_empty(), title=self.title)
        now, whole = moments
        scenes = [view.picture(moment) for view, moment in zip(both, now, strict=True)]
        top = ROW * (len(ROWS) + 1) + 24.0
        wide = scenes[0].extent[0] + GAP + scenes[1].extent[0] <= WIDEST
        right, down = (scenes[0].extent[0] + GAP, 0.0) if wide else (0.0, scenes[0].extent[1] + GAP)
        one, two = _moved(scenes[0], "a:", 0.0, top), _moved(scenes[1], "b:", right, top + down)
        extent = tuple(max(a, b) for a, b in zip(one.extent, two.extent, strict=True))
        words = f"{'On the left' if wide else 'Above'} {_name(now[0])}, {'on the right' if wide else 'below'} "
        words += f"{_name(now[1])}, step beside step; {same_buffers(*whole)}. Bars: so far, of the larger of both."
        return replace(
            one, nodes=one.nodes + two.nodes, edges=one.edges + two.edges, tokens=one.tokens + two.tokens,
            marks=(*_table(now, whole), *one.marks, *two.marks), extent=(extent[0], extent[1]), title=self.title,
            caption=words, legend=tuple(dict((*one.legend, *two.legend)).items()),
        )  # fmt: skip

    def text(self, state: int) -> str:
        moments, both = self._moments(state), self._both()
        if moments is None or both is None:
            return self._why_empty()
        told = [view.text(moment).splitlines() for view, moment in zip(both, moments[0], strict=True)]
        first = " ".join(lines[0] for lines in told)
        tables = [f"{_name(moment)}: {_listed(moment)}." for moment in moments[0]]
        return "\n".join([first, *tables, *(line for lines in told for line in lines[1:])])

    def _why_empty(self) -> str:
        if self._both() is not None:
            return "At this moment no rank has entered the collectives yet."
        what = "two collectives of ranks beside each other"
        return nothing_for(type(self).__name__, what, WRITE, self.recording)


def _view(recording: Events, place: int | None, layout: str) -> CollectiveView:
    return CollectiveView(recording, collective=place, layout=layout)


def _stops(view: CollectiveView) -> Positions:
    return view.stop_positions(view.recording)


def _last_two(calls: Calls) -> tuple[int, int] | None:
    """The last two collectives that are no barriers."""
    calls.update()
    n, found = len(calls), list[int]()
    for place in range(n - 1, max(-1, n - 1 - LOOK_BACK), -1):
        if calls.started(calls[place]).operation != "barrier":
            found.append(place)
    return (found[1], found[0]) if len(found) > 1 else None


def _name(moment: Collective) -> str:
    about = moment.about
    return f"{about.operation} by {about.algorithm}" if about is not None else "nothing yet"


def _took(moment: Collective) -> Took:
    links, sent = links_of(moment.hops), dict[int, int]()
    for (src, _), moved in links.items():
        sent[src] = sent.get(src, 0) + moved
    most = [max(some.values(), default=0) for some in (sent, links)]
    return Took(len(moment.steps), most[0], most[1], moment.elapsed_ms)


def _listed(moment: Collective) -> str:
    steps, *others = zip(ROWS, _took(moment).words(), strict=True)
    return ", ".join([f"{counted(int(steps[1]), 'step')}", *(f"{name} {words}" for name, words in others)])


def _table(now: tuple[Collective, Collective], whole: tuple[Collective, Collective]) -> Iterator[Mark]:
    """Rows of numbers, two columns of bars."""
    took, ends = [_took(moment) for moment in now], [_took(moment) for moment in whole]
    for side, moment in enumerate(now):
        left = NAME + side * (BAR + WORDS + 30)
        yield Mark(f"name{side}", "heading", left, 10, BAR + WORDS, text=_name(moment))
        for k, words in enumerate(took[side].words()):
            y, most = ROW * (k + 1) + 10, max(end[k] for end in ends) or 1
            yield Mark(f"track{side}.{k}", "track", left, y - 4, BAR, 8)
            yield Mark(f"used{side}.{k}", "used", left, y - 4, max(0.1, BAR * min(1.0, took[side][k] / most)), 8)
            yield Mark(f"words{side}.{k}", "text", left + BAR + 8, y, WORDS, text=words)
    for k, name in enumerate(ROWS):
        yield Mark(f"row{k}", "text", 0, ROW * (k + 1) + 10, text=name)


def _moved(scene: Scene, prefix: str, right: float, down: float) -> Scene:
    """The same scene in another place, with other ids."""
    nodes = tuple(n._replace(id=prefix + n.id, x=n.x + right, y=n.y + down) for n in scene.nodes)
    edges = tuple(
        e._replace(id=prefix + e.id, source=prefix + e.source, target=prefix + e.target,
                   bends=tuple((x + right, y + down) for x, y in e.bends))
        for e in scene.edges
    )  # fmt: skip
    marks = tuple(m._replace(id=prefix + m.id, x=m.x + right, y=m.y + down) for m in scene.marks)
    tokens = tuple(t._replace(edge=prefix + t.edge) for t in scene.tokens)
    extent = scene.extent[0] + right, scene.extent[1] + down
    return replace(scene, nodes=nodes, edges=edges, marks=marks, tokens=tokens, extent=extent)
