"""Clock: where the views of one recording are in time, and how that moves: stop by stop, mark by mark, in a loop.

Stops are the events that mean something to the views, marks the ones that a reader looks for. No widget is known here:
whoever shows something overrides `_show`.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

import numpy as np

from lab.errors import ViewError
from lab.words import shown
from widgets.fold import Positions, Prefix, merged
from widgets.player.transport import Transport, checked_speed, pace
from widgets.view import View

FIRST_MOVE_S = 0.2
"""A click on Play is answered at once."""
MARKS_EVERY_S = 1.0
"""While a recording grows its marks are looked for at most so often: those that are known stay where they are."""


class Clock:
    """One time for several views.

    Args:
        views: at least one.
        speed: 1.0 is one stop a second.

    Raises:
        ViewError: no view, or views of different recordings.
    """

    def __init__(self, views: Sequence[View[Any]], speed: float) -> None:
        self.views = list(views)
        if not self.views:
            raise ViewError(
                "a player needs something to play", given="no view", hint="Player(rec) or Player(GraphView(rec))"
            )
        self.recording = self.views[0].recording
        self._require_one_clock()
        self._length = self._length_now()
        self.transport = Transport(self._stops())
        self.transport.speed = checked_speed(speed)
        if self.live:
            self.transport.to_end()
        elif all(v.opens_at_end for v in self.views):
            self.transport.seek(self.transport.last)
        self._lock = threading.RLock()
        self._halt: threading.Event | None = None
        self._idle = threading.Event()
        self._idle.set()
        self._marks: dict[int, str] | None = None
        self._marked: Positions | None = None
        self._marks_at = 0.0
        for v in self.views:
            v.players.add(self)

    def _require_one_clock(self) -> None:
        if any(v.recording is not self.recording for v in self.views):
            raise ViewError(
                "the views of one player must show one recording",
                given=f"{len({id(v.recording) for v in self.views})} recordings",
                hint="one Player for each recording, or SideBySide(a, b) for two that are alike",
            )

    @property
    def live(self) -> bool:
        """Whether more may come."""
        return any(v.recording.live for v in self.views)

    def _length_now(self) -> int:
        """Events that there are: as long as this stays, stops and marks do."""
        return len(self.recording)

    def _show(self) -> None:
        """Called after it moved."""

    # --- transport ---

    def play(self) -> None:
        """Move from stop to stop until the end, or until `pause`."""
        with self._lock:
            starts_over = self.transport.index == self.transport.last
            first = None if starts_over else FIRST_MOVE_S  # the first stop, shown only now, is to be looked at
            self.transport.play()
            if self._halt is None:
                self._halt = threading.Event()
                self._idle.clear()
                context = contextvars.copy_context()  # so that what is printed lands in the cell that plays
                threading.Thread(
                    target=context.run, args=(self._run, self._halt, first), name="lab-player", daemon=True
                ).start()
        self._show()

    def pause(self) -> None:
        """Stay where it is."""
        with self._lock:
            self.transport.playing = False
        self._show()

    def toggle(self) -> None:
        """Pause if it plays, else play."""
        if self.transport.playing:
            self.pause()
        else:
            self.play()

    def step(self) -> None:
        """One stop forward."""
        self._go(self.transport.index + 1)

    def back(self) -> None:
        """One stop back."""
        self._go(self.transport.index - 1)

    def seek(self, index: int) -> None:
        """Go to stop `index`, counted from 0; one that is not there becomes the nearest."""
        _stop("index", index)
        self._go(index)

    def to_end(self) -> None:
        """Go to the newest stop; while the recording is live, follow it."""
        with self._lock:
            self._grow()
            self.transport.to_end()
        self._show()

    def _go(self, index: int) -> None:
        with self._lock:
            self.transport.playing = False
            self._grow()
            self.transport.seek(index)
        self._show()

    def wait(self, timeout: float) -> bool:
        """Block until nothing plays, at most `timeout` seconds; True if nothing does."""
        return self._idle.wait(timeout)

    def _run(self, halt: threading.Event, first: float | None) -> None:
        """The thread that moves while playing."""
        try:
            while not halt.wait(first or pace(len(self.transport.stops), self.transport.speed).seconds):
                first = None
                with self._lock:
                    self.transport.tick()
                self._show()
                with self._lock:
                    if not self.transport.playing:
                        self._halt = None
                        return
        finally:
            self._idle.set()

    # --- marks and loop ---

    @property
    def marks(self) -> Mapping[int, str]:
        """Stops that have landmarks, with their names: training steps, backward walks, collectives; of many some."""
        if self._marks is None:
            self._marks_at = monotonic()
            self._marks, self._marked = self._find_marks()
        return self._marks

    def _find_marks(self) -> tuple[dict[int, str], Positions]:
        """Names of at most some hundred marked stops, and all marked stops."""
        stops = self.transport.stops
        names: dict[int, str] = {}
        events = Prefix(self.recording, self._length)
        found = {type(v): v.landmarks(events) for v in self.views}.values()
        for landmarks in found:
            for stop, name in landmarks.named_at(stops).items():
                known = names.get(stop)
                names[stop] = name if known is None or name in known else f"{known}, {name}"
        return dict(sorted(names.items())), merged(*(np.unique(marks.at(stops)) for marks in found))

    def mark_after(self) -> int | None:
        """The next stop that has a mark, None if none comes."""
        return self._neighbour(1)

    def mark_before(self) -> int | None:
        """The stop before that has a mark, None if there is none."""
        return self._neighbour(-1)

    def _neighbour(self, way: int) -> int | None:
        if not self.marks or self._marked is None:
            return None
        index = self.transport.index
        k = (
            int(np.searchsorted(self._marked, index, side="right"))
            if way > 0
            else int(np.searchsorted(self._marked, index)) - 1
        )
        return int(self._marked[k]) if 0 <= k < len(self._marked) else None

    def next_mark(self) -> None:
        """Go to the next landmark, e.g. the next training step."""
        self._go_if(self.mark_after())

    def previous_mark(self) -> None:
        """Go to the landmark before."""
        self._go_if(self.mark_before())

    def _go_if(self, index: int | None) -> None:
        if index is not None:
            self._go(index)

    def loop(self, first: int = 0, last: int | None = None) -> None:
        """Let `play` repeat the stops from `first` to `last`, counted from 0; without arguments all of them."""
        for name, stop in (("first", first), ("last", 0 if last is None else last)):
            _stop(name, stop)
        with self._lock:
            self._grow()
            self.transport.repeat(first, self.transport.last if last is None else last)
        self._show()

    def end_loop(self) -> None:
        """Let `play` go on to the end again."""
        with self._lock:
            self.transport.loop = self.transport.loop_start = None
        self._show()

    def mark_loop(self) -> None:
        """What the button does: first the beginning of a loop is here, then its end is, then there is none."""
        with self._lock:
            self.transport.mark_loop()
        self._show()

    # --- stops ---

    def _stops(self) -> Positions:
        known = Prefix(self.recording, self._length)
        return merged(*(v.stop_positions(known) for v in self.views))

    def _grow(self) -> None:
        n = self._length_now()
        if n != self._length:
            self._length = n
            self._take(self._stops())

    def _take(self, stops: Positions) -> None:
        self.transport.grown(stops)
        if not self.live or monotonic() - self._marks_at > MARKS_EVERY_S:
            self._marks = None

    def stops_changed(self) -> None:
        """A view shows something else: its stops are others. Who was at the end stays there, others begin."""
        with self._lock:
            self._length = self._length_now()
            at_last, stops = self.transport.index == self.transport.last, self._stops()
            self.transport.playing = False
            self.transport.loop = self.transport.loop_start = None
            self._take(stops)
            self.transport.index = self.transport.last if at_last else 0
        self._show()

    def _halt_for_good(self) -> None:
        """End the thread that plays."""
        with self._lock:
            self.transport.playing = False
            if self._halt is not None:
                self._halt.set()
                self._halt = None


def _stop(name: str, index: Any) -> None:
    """Refuse what is no number of a stop."""
    if not isinstance(index, (int, np.integer)):
        raise ViewError("stops have whole numbers", given=f"{name}={shown(index)}",
                        hint="they are counted from 0: player.seek(0) is the first")  # fmt: skip
