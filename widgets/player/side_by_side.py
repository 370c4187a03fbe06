"""SideBySide: two recordings of the same thing on one clock, and where they differ first.

Step k stands beside step k, and between two steps stop beside stop: a run that does more has the other wait. From the
first difference on, what shows it is lit in both pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.errors import RecordingError, ViewError
from lab.events import Comparison, Recording, compare
from lab.words import shown
from widgets.fold import Positions, Prefix, merged
from widgets.player.alignment import Pairs, aligned
from widgets.player.player import Player, views_of
from widgets.view import Spot, View, names_of, recording_of

if TYPE_CHECKING:
    from widgets.export.page import Frame


class SideBySide(Player):
    """Two views of two recordings under one player. Places of bookmarks are those of the first.

    Args:
        a, b: recordings or runs.
        view: what makes the view of each, e.g. `GraphView`; if not given, what a Player would take.
        names: what to call them.
        tolerance: how far numbers may lie apart and count as equal, as a share.
        speed: 1.0 is one stop a second.

    Raises:
        ViewError: the views stop nowhere in common, or a source is no recording.

    Example:
        >>> import lab
        >>> def run(weight):
        ...     x = lab.tensor(2.0, requires_grad=True, name="x")
        ...     with lab.record() as rec:
        ...         lab.tanh(x * weight).backward()
        ...     return rec
        >>> both = SideBySide(run(3.0), run(4.0))
        >>> both.marks
        {0: 'first difference', 2: 'backward walk 1'}
    """

    def __init__(
        self,
        a: Any,
        b: Any,
        *,
        view: Callable[[Any], View[Any]] | None = None,
        names: tuple[str, str] = ("a", "b"),
        tolerance: float = 0.0,
        speed: float = 1.0,
    ) -> None:
        for source in (a, b):
            if isinstance(source, View):
                raise ViewError(
                    "two recordings are shown side by side, not two views", given=type(source).__name__,
                    hint=f"SideBySide(a, b, view={type(source).__name__})",
                )  # fmt: skip
        sources = [recording_of(source, "SideBySide") for source in (a, b)]
        views = views_of((a, b)) if view is None else [_made(view, source) for source in sources]
        if type(views[0]) is not type(views[1]):
            raise ViewError(
                "these two recordings have no view in common", given=" and ".join(type(v).__name__ for v in views),
                hint="say which: SideBySide(a, b, view=GraphView)",
            )  # fmt: skip
        self.names, self.tolerance = names_of(names), tolerance
        self._pairs: Pairs = np.zeros((1, 2), np.int64)
        self._compared: tuple[tuple[int, int], Comparison | None, str] | None = None
        super().__init__(*views, speed=speed)

    def _require_one_clock(self) -> None:
        """Two clocks are what this is for."""

    def _lengths(self) -> tuple[int, int]:
        return len(self.views[0].recording), len(self.views[1].recording)

    def _length_now(self) -> int:
        return sum(self._lengths())

    def _stops(self) -> Positions:
        known = [(v, Prefix(v.recording, n)) for v, n in zip(self.views, self._lengths(), strict=True)]
        stops = [v.stop_positions(events) for v, events in known]
        marks = [v.landmarks(events) for v, events in known]
        self._pairs = aligned((stops[0], stops[1]), (marks[0], marks[1]))
        return self._pairs[:, 0]

    def _positions(self) -> Sequence[int]:
        positions: list[int] = self._pairs[self.transport.index].tolist()
        return positions

    def _moments(self) -> Positions:
        return self._pairs

    # --- where they differ ---

    @property
    def comparison(self) -> Comparison | None:
        """What the comparison of the two found; None where they have nothing that can be compared."""
        lengths = self._lengths()
        if self._compared is None or self._compared[0] != lengths:
            found, words = None, ""
            try:
                first, second = (v.recording for v in self.views)
                if isinstance(first, Recording) and isinstance(second, Recording):
                    found = compare(first, second, tolerance=self.tolerance)
                    words = found.said(self.names)
            except RecordingError as why:
                words = str(why)
            self._compared = lengths, found, words
        return self._compared[1]

    def _words(self) -> str:
        """What is known of the difference."""
        assert self.comparison is not None or self._compared is not None, "asking for the comparison makes it"
        return self._compared[2] if self._compared is not None else ""

    @property
    def first_unlike(self) -> int | None:
        """The stop at which the first difference is seen, None if there is none."""
        found = self.comparison
        if found is None or found.difference is None:
            return None
        places = found.difference.a.position, found.difference.b.position
        seen = np.zeros(len(self._pairs), dtype=bool)
        for column, place in enumerate(places):
            if place >= 0:
                seen |= self._pairs[:, column] > place
        return int(seen.argmax()) if seen.any() else len(seen) - 1

    def _find_marks(self) -> tuple[dict[int, str], Positions]:
        first = self.views[0]
        landmarks = first.landmarks(Prefix.now(first.recording))
        names, marked = landmarks.named_at(self.transport.stops), landmarks.at(self.transport.stops)
        at = self.first_unlike
        if at is not None:
            names[at] = ", ".join(filter(None, ("first difference", names.get(at, ""))))
            marked = np.append(marked, at)
        return dict(sorted(names.items())), merged(np.sort(marked))

    def _spot(self) -> None:
        """From the first difference on, each picture lights what shows it."""
        found = self.comparison.difference if self.comparison is not None else None
        places = (-1, -1) if found is None else (found.a.position, found.b.position)
        for view, place, last in zip(self.views, places, self._pairs[-1].tolist(), strict=True):
            since = min(place + 1, last)  # what comes after the last stop is seen there
            view.spot = Spot(place, since, "first difference") if place >= 0 else None

    def _show(self) -> None:
        self._spot()
        super()._show()

    # --- what is seen ---

    @property
    def text(self) -> str:
        """Where both are, what happened there, and what is known of their difference."""
        t, at = self.transport, self.first_unlike
        moment = " ".join(
            f"{name}: {v.sentence_at(p)}" for name, v, p in zip(self.names, self.views, self._positions(), strict=True)
        )
        known = (
            "" if at is None else ("alike so far", "first difference", "they differ")[(t.index >= at) + (t.index > at)]
        )
        return f"{t.index + 1} of {len(t.stops)}{f', {known}' * bool(known)}: {moment}\n{self._words()}".rstrip()

    def _pictures(self) -> list[Any]:
        import ipywidgets as ipw

        columns = []
        for name, view in zip(self.names, self.views, strict=True):
            head = ipw.Label(value=name, style={"font_weight": "bold"})
            columns.append(ipw.VBox([head, view.widget], layout=ipw.Layout(flex="1 1 420px", min_width="0")))
        row = ipw.Layout(display="flex", flex_flow="row wrap", align_items="flex-start", width="100%")
        return [ipw.Box(columns, layout=row)]

    def frames(self, most: int = 300) -> list[Frame]:
        """Stops as frames of a stand-alone page, both pictures in each."""
        from widgets.export.film import frames_of

        self._spot()
        return frames_of(self.views, self._moments(), most, self.marks, self._notes(), self.names)

    def export(self, path: str | Path, *, theme: str | None = None, scale: float | None = None) -> Path:
        """Write a page that plays both, without kernel or network; .svg and .png as in `Player.export`."""
        from widgets.export.film import written

        self._spot()
        about, at = self._words(), self.transport.index
        return written(path, self.views, self._moments(), self.marks, self._notes(), self.names, about, at=at,
                       theme=theme, scale=scale)  # fmt: skip

    def __repr__(self) -> str:
        t = self.transport
        return f"SideBySide({self.views[0]!r}, {self.views[1]!r}, stop {t.index + 1} of {len(t.stops)})"


def _made(view: object, source: Any) -> View[Any]:
    """The view of one of them."""
    made = view(source) if callable(view) else None
    if not isinstance(made, View):
        raise ViewError("`view` makes the view of a recording", given=f"view={shown(view)}", hint="as view=GraphView")
    return made
