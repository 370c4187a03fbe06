"""View: a pure fold over a recording and a picture of its state; the base class makes it live, replayable, exportable.

A view of one's own says what it `listens` to and defines `start`, `fold`, `picture` and `text`. A view that fails shows
its error in place of the picture: it never breaks the cell, nor the computation that it watches.
"""

from __future__ import annotations

import logging
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from lab.errors import LabError, ViewError
from lab.events import Event, bus
from lab.words import shown
from widgets.fold import Events, Fold, Positions, Stretch, merged
from widgets.landmarks import Landmarks, landmarks_of
from widgets.live.showing import close, display_twice, ended, failure, of_its_time
from widgets.pictures.chart import Chart
from widgets.pictures.scene import Scene, lit_up
from widgets.provenance import Provenance, provenance_of

log = logging.getLogger("widgets.view")

S = TypeVar("S")
Picture = Scene | Chart


class Spot(NamedTuple):
    """An event that stands out: its place, after how many events it is seen at the earliest, and what to call it."""

    place: int
    since: int
    name: str


class Replays(Protocol):
    """What a view asks of a player."""

    def stops_changed(self) -> None:
        """The view stops elsewhere now."""


class View(ABC, Generic[S]):
    """A picture of a recording.

    The last line of a cell displays it. While the recording is live it follows; `Player(view)` plays and seeks.

    Args:
        source: a Recording, or anything with one in `.recording` (a Run).

    Attributes:
        names_file: whether the line below a picture names the file from which its recording was loaded.
        spot: an event whose boxes stand out from then on, as the first in which two runs differ; None for none.

    Raises:
        ViewError: a source without a recording.

    Example:
        >>> from lab.events import StepFinished
        >>> from widgets.pictures.scene import Node
        >>> class Steps(View[int]):
        ...     listens = (StepFinished,)
        ...     def start(self): return 0
        ...     def fold(self, state, event): return state + 1
        ...     def picture(self, state): return Scene((Node("n", 40, 20, 80, 40, f"{state} steps"),))
        ...     def text(self, state): return f"{state} steps"
    """

    listens: ClassVar[tuple[type[Event], ...]] = ()
    """The kinds that `fold` is given."""
    stops: ClassVar[tuple[type[Event], ...]] = ()
    """The kinds after which a player stops; empty: those of `listens`."""
    title: ClassVar[str] = "View"
    opens_at_end: ClassVar[bool] = False
    """Whether a player and an exported page show its last stop first."""

    def __init__(self, source: Any) -> None:
        self.recording = recording_of(source, type(self).__name__)
        self.position = 0
        self.names_file = True
        self.spot: Spot | None = None
        self._told: tuple[object, Provenance] | None = None
        self._complaint = ""
        self._fold: Fold[S] | None = None
        self._lock = threading.RLock()
        self._following = True
        self._widget: Any = None
        self._host: Any = None
        self._draws_charts = False
        self.players: weakref.WeakSet[Replays] = weakref.WeakSet()  # a player that nobody has any more is not told

    # --- what a view defines; pure ---

    @abstractmethod
    def start(self) -> S:
        """The state before the first event."""

    @abstractmethod
    def fold(self, state: S, event: Event) -> S:
        """The state after one more event of `listens`; never changes `state`."""

    def fold_many(self, state: S, stretch: Stretch) -> S:
        """The state after a stretch of the recording; equals folding its events one by one, and may be faster."""
        for event in stretch.of(self.listens):
            state = self.fold(state, event)
        return state

    @abstractmethod
    def picture(self, state: S) -> Picture:
        """What is drawn."""

    @abstractmethod
    def text(self, state: S) -> str:
        """The picture in words: the first line says what happened last, the others the whole state."""

    def stop_positions(self, events: Events) -> Positions:
        """Where a player stops: for each stop how many events have been folded then, ascending."""
        return merged(*(events.positions(kind) for kind in self.stops or self.listens)) + 1

    def landmarks(self, events: Events) -> Landmarks:
        """What a reader looks for, marked on the timeline of a player: steps, backward walks and collectives."""
        return landmarks_of(events)

    def stops_changed(self) -> None:
        """Tell the players of this view that it stops elsewhere now, as after a choice of what is shown."""
        for player in tuple(self.players):
            player.stops_changed()

    # --- any position ---

    def state_at(self, position: int) -> S:
        """The state after the first `position` events."""
        if not isinstance(position, (int, np.integer)):
            raise ViewError("a moment of a recording is a number of events", given=f"position={shown(position)}",
                            hint=f"0 to {len(self.recording)}; len(view.recording) is its end")  # fmt: skip
        if self._fold is None:
            self._fold = Fold(self, self.recording)
        return self._fold.at(min(position, len(self.recording)))

    def picture_at(self, position: int, *, live: bool = False) -> Picture:
        """The picture after the first `position` events, with where its numbers are from.

        Args:
            live: it is to be followed by others while the recording grows, and says so.

        Raises:
            ViewError: the view failed, with its own error as the cause.
            LabError: it cannot show this recording, and says why.
        """
        try:
            state = self.state_at(position)
            picture, (made, words) = self.picture(state), self._provenance(live)
            if self.spot is not None and position >= self.spot.since:
                picture = self.spotlit(picture, state, self.spot)
            if position >= len(self.recording) and not self.recording.live:
                picture = ended(picture)
            return replace(picture, made=made, provenance=words)
        except LabError:  # three lines of its own say what is wrong
            raise
        except Exception as why:
            raise ViewError(
                f"{type(self).__name__} failed",
                given=f"{type(why).__name__}: {why}{self._culprit()}",
                hint="only this picture is affected",
            ) from why

    def _culprit(self) -> str:
        """The event that could not be folded, in words; "" if the picture failed."""
        place = self._fold.culprit() if self._fold is not None else None
        return "" if place is None else f", at event {place + 1:,}, {type(self.recording[place]).__name__}"

    def spotlit(self, picture: Picture, state: S, spot: Spot) -> Picture:
        """The picture with what shows an event standing out; as it was where nothing shows it."""
        event = self.recording[spot.place]
        return lit_up(picture, self.ids_of(event, state, picture)) if isinstance(picture, Scene) else picture

    def ids_of(self, event: Event, state: S, scene: Scene) -> Iterable[str]:
        """Ids of the nodes and edges that show an event; those that are not drawn do no harm."""
        return ()

    def _provenance(self, live: bool) -> Provenance:
        key = len(self.recording), self.recording.live, live, self.names_file
        if self._told is None or self._told[0] != key:
            self._told = key, provenance_of(self.recording, live=live, file=self.names_file)
        return self._told[1]

    def text_at(self, position: int) -> str:
        """The words for the picture after the first `position` events."""
        return self.text(self.state_at(position))

    def sentence_at(self, position: int) -> str:
        """The first line of the words: what happened last."""
        return self.text_at(position).partition("\n")[0]

    # --- the live picture ---

    @property
    def host(self) -> Any:
        """The widget that draws the picture (without what `build` puts around it)."""
        if self._host is None:
            from widgets.live.host import ChartHost, SceneHost

            self.position = len(self.recording)
            picture, text = self._drawn(self.position)
            self._draws_charts = isinstance(picture, Chart)
            kind = ChartHost if self._draws_charts else SceneHost
            try:
                self._host = kind(picture, text)
            except ViewError as why:  # it contradicts itself
                self._host = kind(*self._failure(why))
        return self._host

    @property
    def widget(self) -> Any:
        """The view as an ipywidgets DOMWidget, to be composed in `ipw.VBox`; made once, at the first look."""
        with self._lock:
            if self._widget is None:
                self._widget = self.build()
                self.follow()
            return self._widget

    def build(self) -> Any:
        """Make the widget. A view with controls of its own puts them around `self.host`."""
        return self.host

    def shown(self) -> None:
        """Called after another position or state was shown; for what `build` put around the picture."""

    def show(self, position: int) -> None:
        """Show the picture after the first `position` events. A failing view shows its error."""
        with self._lock:
            self.position = position
            if self._host is not None:
                try:
                    self._host.show(*self._drawn(position))
                except ViewError as why:  # it contradicts itself, or is of another kind than the first
                    self._host.show(*self._failure(why))
                try:
                    self.shown()
                except Exception as why:  # noqa: BLE001 - it is told, and the picture goes on
                    self._complain("the controls around a picture could not follow it", why)

    def hold(self) -> None:
        """Stop following the live end; a player does so when the reader looks at the past."""
        self._following = False

    def follow(self) -> None:
        """Show the newest state, and go on doing so while the recording is live."""
        from widgets.live import pacer

        self._following = True
        self._catch_up()
        if self.recording.live:
            self.host.keeps = self  # the pacer holds it weakly; what a page shows follows, though no variable has it
            pacer.forget(self._tick)
            pacer.every(self._tick)

    def dispose(self) -> None:
        """Stop following and take the picture out of the page and the kernel."""
        from widgets.live import pacer

        pacer.forget(self._tick)
        with self._lock:
            widget, self._widget, self._host = self._widget or self._host, None, None
        if widget is not None:
            close(widget)

    def _tick(self) -> None:
        """About 15 times a second while live: fold what is new, draw it."""
        from widgets.live import pacer

        live = self.recording.live  # asked before: what came before the end is drawn after it
        if live:
            bus.flush()
        if self._following:
            self._catch_up()
        if not live:
            pacer.forget(self._tick)
            self.show(self.position)  # it is not live any more, and says so
            if (host := self._host) is not None:
                host.keeps = None

    def _catch_up(self) -> None:
        n = len(self.recording)
        if n != self.position:
            self.show(n)

    def _drawn(self, position: int, *, live: bool = True) -> tuple[Picture, str]:
        """Picture and words, or the error in their place."""
        try:
            return self.picture_at(position, live=live), self.text_at(position)
        except Exception as why:  # noqa: BLE001 - it is told in place of the picture
            return self._failure(why)

    def _failure(self, why: BaseException) -> tuple[Picture, str]:
        """The error in place of the picture, and its words."""
        self._complain("a view failed; what it watches goes on", why)
        return failure(why, chart=self._draws_charts), f"This picture failed: {why}"

    def _complain(self, what: str, why: BaseException) -> None:
        """To the log, once for each reason: a live view fails 15 times a second."""
        if self._complaint != str(why):
            self._complaint = str(why)
            log.error(what, exc_info=why)

    def tick_failed(self, why: BaseException) -> None:
        """It is not called any more because it raised: say so in place of the picture."""
        said = ViewError(
            f"{type(self).__name__} stopped following", given=f"{type(why).__name__}: {why}",
            hint=f"this is no picture of its {len(self.recording):,} events; view.follow() tries again",
        )  # fmt: skip
        with self._lock:
            if self._host is not None:
                self._host.show(*self._failure(said))

    # --- still pictures ---

    def svg(self, theme: str = "light") -> str:
        """The picture of the end of the recording as SVG, in one of the themes of `widgets.pictures.theme.THEMES`."""
        from widgets.pictures.twin import svg_of

        live = self.recording.live
        picture = self._drawn(len(self.recording), live=False)[0]
        return svg_of(of_its_time(picture) if live else picture, theme)

    def export(self, path: str | Path, *, theme: str | None = None, scale: float | None = None) -> Path:
        """Write the view to a file that needs neither kernel nor network; the ending says what it is.

        Args:
            path: .html for a page that plays the stops, .svg for a picture that moves through them by itself, .png for
                the picture as it is shown now, or at the end of the recording where it is not shown.
            theme: of .svg and .png: light if not given, or another of `widgets.pictures.theme.THEMES`.
            scale: of .png: pixels of the file for one of the notebook; 2 if not given, which is 192 to an inch.

        Raises:
            ViewError: another ending, no such folder, theme or scale; or a PNG without resvg (`pip install resvg_py`).
        """
        from widgets.export.endings import writable
        from widgets.export.film import require_drawn
        from widgets.export.png import SCALE, write_png

        path = writable(path)
        if path.suffix.lower() != ".png":
            from widgets.player import Player

            return Player(self).export(path, theme=theme, scale=scale)
        require_drawn(".png", theme, scale)
        shown = len(self.recording) if self._host is None else self.position
        scale = SCALE if scale is None else scale
        return write_png(path, [self._drawn(shown, live=False)[0]], theme=theme or "light", scale=scale)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.recording):,} events{', live' if self.recording.live else ''})"

    def _ipython_display_(self) -> None:
        """Two outputs: a still twin for readers without a kernel, hidden by the live widget that comes second."""
        display_twice(self.widget, self.host, self.svg(), self._drawn(self.position)[1])


def recording_of(source: Any, who: str) -> Events:
    """The recording that a source is or has.

    Raises:
        ViewError: it is none and has none; `who` wanted it.
    """
    recording: Events = getattr(source, "recording", source)
    reads = all(hasattr(recording, name) for name in ("positions", "columns", "live", "__len__"))
    if not reads or isinstance(source, type):  # a class has the names too
        hint = f"with lab.record() as rec: ...; then {who}(rec), or {who}(run) for what lab.fit returned"
        if isinstance(source, (str, Path)):
            hint = f"{who}(lab.Recording.load({str(source)[:40]!r})) shows a recording from a file"
        raise ViewError(f"{who} shows a recording or a training run", given=wording_of(source), hint=hint)
    return recording


def names_of(names: Any) -> tuple[str, str]:
    """What two recordings are called.

    Raises:
        ViewError: these are not two texts.
    """
    found = tuple(names) if isinstance(names, (tuple, list)) else ()
    if len(found) != 2 or not all(isinstance(name, str) for name in found):
        given = f"names={shown(names)}"
        raise ViewError("two recordings have two names", given=given, hint='as names=("before", "after")')
    return found


def wording_of(thing: Any) -> str:
    """What was given, on one short line.

    Example:
        >>> wording_of(3), wording_of(None)
        ('3 (int)', 'None')
    """
    text = " ".join(repr(thing).split())
    return "None" if thing is None else f"{text[:60]}{'…' * (len(text) > 60)} ({type(thing).__name__})"
