"""DifferenceView: the first event in which two runs differ, with what both did just before and what each did next.

Both recordings are compared rank by rank; a player steps through the rows until the two part.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from lab.errors import ViewError
from lab.events import Comparison, Event, Recording, around, compare
from widgets.fold import Events, Positions, Stretch
from widgets.landmarks import Landmarks
from widgets.pictures.scene import Node, Scene
from widgets.view import View, names_of, recording_of
from widgets.views.difference.parts import Row, extent_of, marks_of, nodes_of, rows_of


class DifferenceView(View[int]):
    """Two runs beside each other, around the first event in which they differ.

    Args:
        a, b: recordings or runs.
        tolerance: how far numbers may lie apart, as a share of the larger one; 0: not in a single bit.
        names: what to call them; if not given their titles, or "a" and "b".

    Raises:
        ViewError: a source that is no recording.

    Example:
        >>> import lab
        >>> def run(weight):
        ...     x = lab.tensor(2.0, requires_grad=True, name="x")
        ...     with lab.record() as rec:
        ...         lab.tanh(x * weight)
        ...     return rec
        >>> print(DifferenceView(run(3.0), run(4.0)).text_at(0).splitlines()[1])
        3 in a, 4 in b.
    """

    listens: ClassVar[tuple[type[Event], ...]] = ()
    title = "First difference"
    opens_at_end: ClassVar[bool] = True

    def __init__(self, a: Any, b: Any, *, tolerance: float = 0.0, names: tuple[str, str] | None = None) -> None:
        super().__init__(a)
        found = recording_of(b, type(self).__name__)
        for recording in (self.recording, found):
            if not isinstance(recording, Recording):
                raise ViewError("a difference is seen between two recordings", given=type(recording).__name__,
                                hint="DifferenceView(rec_a, rec_b)")  # fmt: skip
        self.first: Recording = self.recording  # type: ignore[assignment]  # checked above
        self.second: Recording = found  # type: ignore[assignment]
        self.tolerance = tolerance
        titles = [rec.meta.get("title", "") for rec in (self.first, self.second)]
        called = f"a: {titles[0]}" if titles[0] else "a", f"b: {titles[1]}" if titles[1] else "b"
        self.names = called if names is None else names_of(names)
        self._known: tuple[tuple[int, int], Comparison, list[Row]] | None = None

    @property
    def comparison(self) -> Comparison:
        """What was compared, and found."""
        return self._found()[0]

    def _found(self) -> tuple[Comparison, list[Row]]:
        """The comparison and the rows around its difference, made anew when a recording has grown."""
        lengths = len(self.first), len(self.second)
        if self._known is None or self._known[0] != lengths:
            found = compare(self.first, self.second, tolerance=self.tolerance)
            rows: list[Row] = []
            if found.difference is not None:
                rows = rows_of(around(self.first, self.second, found.difference), found.difference)
            self._known = lengths, found, rows
        return self._known[1:]

    # --- the fold: how far the first recording has been read

    def start(self) -> int:
        return 0

    def fold(self, state: int, event: Event) -> int:
        return state + 1

    def fold_many(self, state: int, stretch: Stretch) -> int:
        return stretch.stop

    def stop_positions(self, events: Events) -> Positions:
        """After each row of the first recording, up to the difference."""
        _, rows = self._found()
        at = next((k for k, row in enumerate(rows) if row.unlike), -1)
        stops = [row.a.position + 1 for row in rows[: at + 1] if row.a is not None]
        return np.array(stops or [len(self.first)], np.int64)

    def landmarks(self, events: Events) -> Landmarks:
        """The difference."""
        found, _ = self._found()
        where = -1 if found.difference is None else found.difference.a.position
        at = np.array([where] if where >= 0 else [], np.int64)
        return Landmarks.of([("first difference", at, np.full(len(at), -1))])

    # --- the picture

    def picture(self, state: int) -> Scene:
        found, rows = self._found()
        first, *_ = found.text.splitlines()
        if found.difference is None:
            words = " ".join(found.text.splitlines()[1:])
            n = found.n_events
            agree = f"{n:,} event{'s' * (n != 1)} agree" if n else "nothing to compare"
            node = Node("same", 170, 48, 320, 72, "No difference", agree, kind="group",
                        state="done", aria=first)  # fmt: skip
            return Scene((node,), caption=f"{first} {words}", title=self.title, extent=(340, 96))
        nodes = nodes_of(rows, found.difference, state)
        marks = marks_of(rows, found.difference, self.names)
        legend = (("done", "in both"), ("trouble", "the first difference"), ("idle", "what each did next"))
        shown = {node.state for node in nodes}
        return Scene(
            tuple(nodes), caption=" ".join(found.text.splitlines()), title=self.title,
            legend=tuple(pair for pair in legend if pair[0] in shown and pair[0] != "idle"),
            extent=extent_of(rows), marks=tuple(marks),
        )  # fmt: skip

    def text(self, state: int) -> str:
        found, rows = self._found()
        nodes = [] if found.difference is None else nodes_of(rows, found.difference, state)
        return "\n".join([found.text, *(f"{n.aria}{' (differs)' * (n.state == 'trouble')}" for n in nodes)])
