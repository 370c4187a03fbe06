"""Player: play, pause, step, seek and repeat a recording, with one picture or several that show the same moment.

Bookmarks are the reader's own places, with notes; they can be kept beside the recording. Looking back never disturbs
what is recorded; one button returns to its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lab import checks
from lab.errors import ViewError
from lab.words import shown
from widgets.fold import Positions
from widgets.live.showing import close, display_twice
from widgets.player import bookmarks as book
from widgets.player.bookmarks import Bookmark, noted
from widgets.player.clock import Clock
from widgets.player.transport import checked_speed
from widgets.view import View, recording_of

if TYPE_CHECKING:
    from widgets.export.page import Frame


class Player(Clock):
    """Controls over one or several views of one recording. The last line of a cell displays it.

    Args:
        sources: views, or a recording or run (a GraphView or LossView is made for it).
        speed: 1.0 is one stop a second.
        bookmarks: a file that `save_bookmarks` wrote for this recording.

    Raises:
        ViewError: no source, views of different recordings, or bookmarks that cannot be read or belong to another one.

    Example:
        >>> import lab
        >>> x = lab.tensor(2.0, requires_grad=True, name="x")
        >>> with lab.record() as rec:
        ...     (x * x).backward()
        >>> player = Player(rec)
        >>> player.step()
        >>> player.text
        '2 of 4: Backward starts at v₁: its gradient is 1.0.'
    """

    def __init__(self, *sources: Any, speed: float = 1.0, bookmarks: str | PathLike[str] | None = None) -> None:
        super().__init__(views_of(sources), speed)
        self.bookmarks: list[Bookmark] = [] if bookmarks is None else book.load(bookmarks, self.recording)
        self.removed: Bookmark | None = None
        self._widget: Any = None
        self._controls: dict[str, Any] = {}

    # --- bookmarks ---

    def bookmark(self, note: str = "") -> Bookmark:
        """Keep this moment, with a note; where it is kept already, that note becomes this one.

        Raises:
            ViewError: there are too many.
        """
        made = Bookmark(self.transport.position, noted(note))
        for number, known in enumerate(self.bookmarks):
            if self.transport.stop_of(known.position) == self.transport.index:
                if made.note:
                    self.rename_bookmark(number, note)
                return self.bookmarks[number]
        if len(self.bookmarks) >= book.MOST:
            raise ViewError(
                "a recording has room for so many bookmarks only", given=f"{book.MOST:,}",
                hint="remove some: player.remove_bookmark(0)",
            )  # fmt: skip
        with self._lock:
            self.bookmarks = sorted([*self.bookmarks, made])
        self._show()
        return made

    def go_to(self, number: int) -> None:
        """Go to a bookmark, counted from 0."""
        self._go(self.transport.stop_of(self._bookmark(number).position))

    def rename_bookmark(self, number: int, note: str) -> None:
        """Give a bookmark another note."""
        changed = self._bookmark(number)._replace(note=noted(note))
        with self._lock:
            self.bookmarks = sorted([*self.bookmarks[:number], changed, *self.bookmarks[number + 1 :]])
        self._show()

    def remove_bookmark(self, number: int) -> None:
        """Forget a bookmark; `restore_bookmark` has the last one back."""
        self.removed = self._bookmark(number)
        with self._lock:
            self.bookmarks = [b for k, b in enumerate(self.bookmarks) if k != number]
        self._show()

    def restore_bookmark(self) -> None:
        """Put back the bookmark that was removed last; without one nothing happens."""
        with self._lock:
            gone, self.removed = self.removed, None
            self.bookmarks = sorted([*self.bookmarks, *([] if gone is None else [gone])])
        self._show()

    def _bookmark(self, number: object) -> Bookmark:
        if isinstance(number, (int, np.integer)) and 0 <= number < len(self.bookmarks):
            return self.bookmarks[number]
        raise ViewError(
            "there is no such bookmark", given=f"number {shown(number)} of {len(self.bookmarks)}",
            hint="they are counted from 0: player.bookmarks",
        )  # fmt: skip

    def save_bookmarks(self, path: str | PathLike[str]) -> None:
        """Write the bookmarks to a file, to be kept beside the recording: `Player(rec, bookmarks=path)` opens it.

        Raises:
            ViewError: the folder is missing, the disk full ...; a file that was there before is as it was.
        """
        book.save(path, self.bookmarks, self.recording)

    # --- what is seen ---

    @property
    def speed(self) -> float:
        """How fast `play` moves: 1.0 is one stop a second."""
        return self.transport.speed

    @speed.setter
    def speed(self, speed: float) -> None:
        self.transport.speed = checked_speed(speed)
        if "Speed" in self._controls:
            from widgets.player.controls import SPEEDS

            if self.transport.speed in dict(SPEEDS).values():
                self._controls["Speed"].value = self.transport.speed

    @property
    def text(self) -> str:
        """Where the player is and what happened there, in one line."""
        t = self.transport
        sentences = [v.sentence_at(p) for v, p in zip(self.views, self._positions(), strict=True)]
        return f"{t.index + 1} of {len(t.stops)}: {' '.join(sentences)}"

    @property
    def widget(self) -> Any:
        """Controls above pictures, as an ipywidgets DOMWidget."""
        with self._lock:
            if self._widget is None:
                self._widget = self._build()
        return self._widget

    def _build(self) -> Any:
        from widgets.live import pacer
        from widgets.player.controls import made_for, panel

        self._controls = made_for(self)
        pictures = self._pictures()
        for v in self.views:
            v.hold()
        self._show()
        if self.live:
            pacer.every(self._tick)
        return panel(self._controls, pictures)

    def to_end(self) -> None:
        """Go to the newest stop; while the recording is live, follow it, also after something kept it from that."""
        from widgets.live import pacer

        super().to_end()
        if self._widget is not None and self.live:
            pacer.forget(self._tick)
            pacer.every(self._tick)

    def _pictures(self) -> list[Any]:
        """The widgets below the controls."""
        return [v.widget for v in self.views]

    def _positions(self) -> Sequence[int]:
        """How many events each view has folded at the current stop."""
        return [self.transport.position] * len(self.views)

    def _show(self) -> None:
        """Bring pictures and controls to where the transport is."""
        with self._lock:
            if not self._controls:
                return
            from widgets.player.controls import refresh

            for v, position in zip(self.views, self._positions(), strict=True):
                v.show(position)
            refresh(self._controls, self, self._safe_text())

    def _safe_text(self) -> str:
        try:
            return self.text
        except Exception as why:  # noqa: BLE001 - the view shows its error itself; the controls go on
            return f"{self.transport.index + 1} of {len(self.transport.stops)}: {type(why).__name__}: {why}"

    def _tick(self) -> None:
        """While live: more stops, and the newest picture if that is what the reader looks at."""
        from lab.events import bus
        from widgets.live import pacer

        live = self.live
        if live:
            bus.flush()
        if self._length_now() != self._length or not live:
            with self._lock:
                self._grow()
                self._marks = self._marks if live else None  # all of them, at last
            self._show()
        if not live:
            pacer.forget(self._tick)

    def tick_failed(self, why: BaseException) -> None:
        """It is not called any more because it raised: say so where its words are."""
        with self._lock:
            if self._controls:
                self._controls["text"].text = f"The player stopped following: {type(why).__name__}: {why}"

    def dispose(self) -> None:
        """Stop playing and take everything out of the page and the kernel."""
        from widgets.live import pacer

        pacer.forget(self._tick)
        self._halt_for_good()
        with self._lock:
            self._controls = {}
            widget, self._widget = self._widget, None
        for v in self.views:
            v.dispose()
        if widget is not None:
            close(widget)

    def frames(self, most: int = 300) -> list[Frame]:
        """Stops as frames of a stand-alone page: at most `most`, the first, the last, and evenly between.

        There are fewer where each of them is large, so that the file is written in seconds and stays small. Those with
        a bookmark are always among them.
        """
        from widgets.export.film import frames_of

        most = checks.whole("most", most, least=1, error=ViewError)
        return frames_of(self.views, self._moments(), most, self.marks, self._notes())

    def _moments(self) -> Positions:
        """For each stop how many events have been folded then, for all views or for each."""
        return self.transport.stops

    def _notes(self) -> dict[int, str]:
        notes: dict[int, str] = {}
        for b in self.bookmarks:
            stop = self.transport.stop_of(b.position)
            notes[stop] = " · ".join(filter(None, (notes.get(stop, ""), b.note))) or "bookmark"
        return notes

    def export(self, path: str | Path, *, theme: str | None = None, scale: float | None = None) -> Path:
        """Write these views to a file that needs neither kernel nor network.

        A name that ends in .svg gives a picture that moves by itself (of the first view), .html a page that plays, with
        the marks and bookmarks, .png all views at the stop where the player is. What is too long for a file is left out
        evenly, and the file says so.

        Args:
            theme, scale: as in `View.export`.

        Raises:
            ViewError: as `View.export`.
        """
        from widgets.export.film import written

        at = self.transport.index
        return written(path, self.views, self._moments(), self.marks, self._notes(), at=at, theme=theme, scale=scale)

    def __repr__(self) -> str:
        t = self.transport
        return f"Player({', '.join(map(repr, self.views))}, stop {t.index + 1} of {len(t.stops)})"

    def _ipython_display_(self) -> None:
        svg = "".join(v.svg() for v in self.views)
        display_twice(self.widget, self.views[0].host, svg, self._safe_text())


def views_of(sources: Sequence[Any]) -> list[View[Any]]:
    """The views among `sources`; a bare recording or run gets a LossView if it has training steps, else a GraphView."""
    from lab.events import StepFinished
    from widgets.views.graph.view import GraphView
    from widgets.views.training.loss import LossView

    made: list[View[Any]] = []
    for source in sources:
        if isinstance(source, View):
            made.append(source)
        elif hasattr(source, "pause") or len(recording_of(source, "Player").positions(StepFinished)):
            made.append(LossView(source))
        else:
            made.append(GraphView(source))
    return made
