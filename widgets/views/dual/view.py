"""DualView: forward mode. Each box has a value and, beside it, the tangent: how fast it changes along one direction.

Both are computed in the same pass, operation by operation; nothing is kept for a way back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from lab.events import Event, TangentPushed, ValueSeen
from widgets.fold import Events, Positions
from widgets.pictures.scene import Scene
from widgets.tape.stops import before_newer
from widgets.view import View
from widgets.views.dual.duals import Duals
from widgets.views.dual.picture import Plan, planned, scene_of
from widgets.views.nothing import nothing_for

WRITE = "with lab.record() as rec: lab.jvp(f, (x,), (1.0,)); then DualView(rec)"


class DualView(View[Duals]):
    """Value and tangent through a function, as `lab.jvp` pushed them; of several jvps the newest is drawn.

    Args:
        source: a Recording, best one of detail "value" with source lines.
        direction: "right" or "down".

    Example:
        >>> import lab
        >>> def f(x, y): return x * y + x
        >>> with lab.record() as rec:
        ...     out = lab.jvp(f, (2.0, 3.0), (1.0, 0.0))
        >>> print(DualView(rec).sentence_at(len(rec)))
        v₂ = v₁ + x, 8.0, tangent 4.0.
    """

    listens = (TangentPushed, ValueSeen)
    stops = (TangentPushed,)
    title = "Forward mode"

    def __init__(self, source: Any, *, direction: str = "right") -> None:
        super().__init__(source)
        self.direction = direction
        self._planned: tuple[tuple[int, int], Plan] | None = None

    def start(self) -> Duals:
        return Duals()

    def fold(self, state: Duals, event: Event) -> Duals:
        return state.folded(event)

    def stop_positions(self, events: Events) -> Positions:
        """After each value with its tangent."""
        n = len(events)
        where, seen = events.positions(TangentPushed), events.positions(ValueSeen)
        nodes, about = events.columns(TangentPushed, 0, n)["node"], events.columns(ValueSeen, 0, n)["node"]
        where = where[: len(nodes)]
        node_at = np.full(n + 3, -1, np.int64)
        node_at[seen[: len(about)]] = about
        stops: Positions = where + 1
        for k in (1, 2):
            stops = stops + ((stops == where + k) & (node_at[where + k] == nodes))
        return stops

    # --- the picture ---

    def picture(self, state: Duals) -> Scene:
        if not state.entries:
            return Scene(caption=self._why_empty(), title=self.title)
        with self._lock:
            plan = self._plan(state)
        return scene_of(state, plan, self.title)

    def text(self, state: Duals) -> str:
        return state.account() if state.entries else self._why_empty()

    def ids_of(self, event: Event, state: Duals, scene: Scene) -> Iterable[str]:
        """The box of a value, with its constants."""
        node = getattr(event, "node", -1)
        return [n.id for n in scene.nodes if n.id == str(node) or n.id.startswith(f"c{node}.")]

    def _plan(self, state: Duals) -> Plan:
        """Where the boxes of a jvp stand, decided for the whole of it, so that nothing jumps."""
        key = state.level, len(self.recording)
        if self._planned is None or self._planned[0] != key:
            end = self.state_at(before_newer(self.recording, TangentPushed, state.level))
            self._planned = key, planned(end, self.direction)
        return self._planned[1]

    def _why_empty(self) -> str:
        if self.recording.live or len(self.recording.positions(TangentPushed)):
            return "No jvp yet: each operation that it runs adds a box with value and tangent."
        return nothing_for("DualView", "forward mode", WRITE, self.recording)
