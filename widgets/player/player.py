"""Player: play, pause, step, back and seek through a recording, with one picture or several that show the same moment.

Stops are the events that mean something to the views. Looking back never disturbs what is recorded; one button returns
to its end.
"""

from __future__ import annotations

import contextvars
import math
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.errors import ViewError
from widgets.fold import Positions, merged
from widgets.live.showing import close, display_twice
from widgets.player.transport import Transport, pace
from widgets.view import View, recording_of

if TYPE_CHECKING:
    from widgets.export.page import Frame

SPEEDS: tuple[tuple[str, float], ...] = (("slow", 0.5), ("normal", 1.0), ("fast", 2.0), ("very fast", 5.0))
FIRST_MOVE_S = 0.2
"""A click on Play is answered at once."""


class Player:
    """Controls over one or several views of one recording. The last line of a cell displays it.

    Args:
        sources: views, or a recording or run (a GraphView or LossView is made for it).
        speed: 1.0 is one stop a second.

    Raises:
        ViewError: no source, or views of different recordings.

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

    def __init__(self, *sources: Any, speed: float = 1.0) -> None:
        self.views = views_of(sources)
        if not self.views:
            raise ViewError("a player needs something to play", hint="Player(rec) or Player(GraphView(rec))")
        self.recording = self.views[0].recording
        if any(v.recording is not self.recording for v in self.views):
            raise ViewError(
                "the views of one player must show one recording", hint="make one Player for each recording"
            )
        self._length = len(self.recording)
        self.transport = Transport(self._stops())
        self.transport.speed = checked_speed(speed)
        if self.recording.live:
            self.transport.to_end()
        self._lock = threading.RLock()
        self._halt: threading.Event | None = None
        self._idle = threading.Event()
        self._idle.set()
        self._widget: Any = None
        self._controls: dict[str, Any] = {}
        self._moving = False
        for v in self.views:
            v.players.append(self._stops_changed)

    # --- transport ---

    def play(self) -> None:
        """Move from stop to stop until the end, or until `pause`."""
        with self._lock:
            starts_over = self.transport.index == len(self.transport.stops) - 1
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

    def step(self) -> None:
        """One stop forward."""
        self._go(self.transport.index + 1)

    def back(self) -> None:
        """One stop back."""
        self._go(self.transport.index - 1)

    def seek(self, index: int) -> None:
        """Go to stop `index`, counted from 0."""
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

    def _stops(self) -> Positions:
        return merged(*(v.stop_positions(self.recording) for v in self.views))

    def _grow(self) -> None:
        n = len(self.recording)
        if n != self._length:
            self._length = n
            self.transport.grown(self._stops())

    def _stops_changed(self) -> None:
        """A view shows something else: its stops are others. Who was at the end stays there, others begin."""
        with self._lock:
            at_last, stops = self.transport.index == len(self.transport.stops) - 1, self._stops()
            self.transport.playing = False
            self.transport.grown(stops)
            self.transport.index = len(self.transport.stops) - 1 if at_last else 0
        self._show()

    @property
    def speed(self) -> float:
        """How fast `play` moves: 1.0 is one stop a second."""
        return self.transport.speed

    @speed.setter
    def speed(self, speed: float) -> None:
        self.transport.speed = checked_speed(speed)
        if "Speed" in self._controls and self.transport.speed in dict(SPEEDS).values():
            self._controls["Speed"].value = self.transport.speed

    # --- what is seen ---

    @property
    def text(self) -> str:
        """Where the player is and what happened there, in one line."""
        t = self.transport
        sentences = [v.sentence_at(t.position) for v in self.views]
        return f"{t.index + 1} of {len(t.stops)}: {' '.join(sentences)}"

    @property
    def widget(self) -> Any:
        """Controls above pictures, as an ipywidgets DOMWidget."""
        with self._lock:
            if self._widget is None:
                self._widget = self._build()
        return self._widget

    def _build(self) -> Any:
        import ipywidgets as ipw

        from widgets.live import pacer
        from widgets.live.buttons import button
        from widgets.live.spoken import Spoken

        def made(name: str, icon: str, tooltip: str, action: Any, style: str = "") -> Any:
            self._controls[name] = button(name, icon, tooltip, action, style=style)
            return self._controls[name]

        buttons = [
            made("Start", "fast-backward", "To the first stop", lambda: self.seek(0)),
            made("Back", "step-backward", "One stop back", self.back),
            made("Step", "step-forward", "One stop forward", self.step, "primary"),
            made("Play", "play", "Play from here, or pause", self._toggle),
            made("End", "fast-forward", "To the newest stop; follows while recording", self.to_end),
        ]
        slider = ipw.IntSlider(description="Moment", min=1, max=1, layout=ipw.Layout(flex="1 1 240px"))
        slider.observe(self._slid, "value")
        chosen = self.transport.speed if self.transport.speed in dict(SPEEDS).values() else 1.0
        speed = ipw.Dropdown(
            description="Speed", options=SPEEDS, value=chosen,
            tooltip="How fast Play moves", layout=ipw.Layout(width="180px"),
        )  # fmt: skip
        speed.observe(self._sped, "value")
        self._controls |= {"Stop": slider, "Speed": speed, "text": Spoken()}
        pictures = [v.widget for v in self.views]
        for v in self.views:
            v.hold()
        self._show()
        if self.recording.live:
            pacer.every(self._tick)
        row = ipw.Layout(display="flex", flex_flow="row wrap", align_items="center", width="100%")
        return ipw.VBox([ipw.Box([*buttons, slider, speed], layout=row), self._controls["text"], *pictures])

    def _toggle(self) -> None:
        if self.transport.playing:
            self.pause()
        else:
            self.play()

    def _slid(self, change: Mapping[str, Any]) -> None:
        if not self._moving:
            self.seek(int(change["new"]) - 1)

    def _sped(self, change: Mapping[str, Any]) -> None:
        self.transport.speed = float(change["new"])

    def _show(self) -> None:
        """Bring pictures and controls to where the transport is."""
        with self._lock:
            if not self._controls:
                return
            t, c = self.transport, self._controls
            for v in self.views:
                v.show(t.position)
            self._moving = True
            try:
                c["Stop"].max = len(t.stops)
                c["Stop"].value = t.index + 1
                c["Play"].description, c["Play"].icon = ("Pause", "pause") if t.playing else ("Play", "play")
                c["Back"].disabled = c["Start"].disabled = t.index == 0
                c["Step"].disabled = t.index == len(t.stops) - 1
                c["End"].description = "Live" if self.recording.live else "End"
                c["text"].text = self._safe_text()
            finally:
                self._moving = False

    def _safe_text(self) -> str:
        try:
            return self.text
        except Exception as why:  # noqa: BLE001 - the view shows its error itself; the controls go on
            return f"{self.transport.index + 1} of {len(self.transport.stops)}: {type(why).__name__}: {why}"

    def _tick(self) -> None:
        """While live: more stops, and the newest picture if that is what the reader looks at."""
        from lab.events import bus
        from widgets.live import pacer

        live = self.recording.live
        if live:
            bus.flush()
        if len(self.recording) != self._length or not live:
            with self._lock:
                self._grow()
            self._show()
        if not live:
            pacer.forget(self._tick)

    def dispose(self) -> None:
        """Stop playing and take everything out of the page and the kernel."""
        from widgets.live import pacer

        pacer.forget(self._tick)
        with self._lock:
            self.transport.playing = False
            if self._halt is not None:
                self._halt.set()
                self._halt = None
            self._controls = {}
            widget, self._widget = self._widget, None
        for v in self.views:
            v.dispose()
        if widget is not None:
            close(widget)

    def frames(self, most: int = 300) -> list[Frame]:
        """Stops as frames of a stand-alone page: at most `most`, the first, the last, and evenly between.

        There are fewer where each of them is large, so that the file is written in seconds and stays small.
        """
        from widgets.export.film import frames_of

        return frames_of(self.views, self.transport.stops, most)

    def export(self, path: str | Path) -> Path:
        """Write these views to a file that needs neither kernel nor network.

        A name that ends in .svg gives a picture that moves by itself (of the first view), .html a page that plays.
        What is too long for a file is left out evenly, and the file says so.

        Raises:
            ViewError: another ending, or a folder that is not there.
        """
        from widgets.export.film import written

        return written(path, self.views, self.transport.stops)

    def __repr__(self) -> str:
        t = self.transport
        return f"Player({', '.join(map(repr, self.views))}, stop {t.index + 1} of {len(t.stops)})"

    def _ipython_display_(self) -> None:
        svg = "".join(v.svg() for v in self.views)
        display_twice(self.widget, self.views[0].host, svg, self._safe_text())


def checked_speed(speed: Any) -> float:
    """The speed, if one can play at it."""
    if isinstance(speed, (int, float)) and 0 < speed < math.inf:
        return float(speed)
    raise ViewError("the speed of a player is a positive number", given=repr(speed), hint="1.0 is one stop a second")


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
