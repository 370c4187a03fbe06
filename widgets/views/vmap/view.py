"""VmapView: a function of one member, run for all at once.

Each row is an operation: its axes as the function sees them, and with that of the members; beside it what ran instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lab.events import Event, OpBatched
from widgets.pictures.scene import Scene
from widgets.tape.stops import before_newer
from widgets.view import View
from widgets.views.nothing import nothing_for
from widgets.views.vmap.members import Members
from widgets.views.vmap.picture import Plan, planned, scene_of

WRITE = "with lab.record() as rec: lab.vmap(f)(xs); then VmapView(rec)"


class VmapView(View[Members]):
    """The operations of a mapped function, for one member and for all; of several vmaps the newest is drawn.

    Args:
        source: a Recording with source lines.

    Example:
        >>> import lab
        >>> w = lab.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> def f(x): return lab.tanh(x / x.sum()) @ w
        >>> with lab.record() as rec:
        ...     out = lab.vmap(f)(lab.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]))
        >>> print(VmapView(rec).text_at(3))
        4 members. v₂ = x / v₁: one 2, all 4×2; reshape 4×1, divide 4×2.
        x: one 2, all 4×2; axis 0 is mapped
        v₁ = sum(x): one scalar, all 4; sum(axis=(1,)) 4
        v₂ = x / v₁: one 2, all 4×2; reshape 4×1, divide 4×2
    """

    listens = (OpBatched,)
    title = "vmap"

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self._planned: tuple[tuple[int, int], Plan] | None = None

    def start(self) -> Members:
        return Members()

    def fold(self, state: Members, event: Event) -> Members:
        return state.folded(event)

    def picture(self, state: Members) -> Scene:
        if not state.rows:
            return Scene(caption=self._why_empty(), title=self.title)
        with self._lock:
            plan = self._plan(state)
        return scene_of(state, plan, self.title)

    def text(self, state: Members) -> str:
        return state.account() if state.rows else self._why_empty()

    def ids_of(self, event: Event, state: Members, scene: Scene) -> Iterable[str]:
        """The row of a value."""
        node = getattr(event, "node", -1)
        return {n.id for n in scene.nodes if n.id.partition(".")[0] in (f"{node}", f"{node}one", f"{node}all")}

    def _plan(self, state: Members) -> Plan:
        """Where the columns stand, decided for the whole of a vmap, so that nothing jumps."""
        key = state.level, len(self.recording)
        if self._planned is None or self._planned[0] != key:
            end = self.state_at(before_newer(self.recording, OpBatched, state.level))
            self._planned = key, planned(end)
        return self._planned[1]

    def _why_empty(self) -> str:
        if self.recording.live or len(self.recording.positions(OpBatched)):
            return "No vmap yet: each operation that it runs adds a row."
        return nothing_for("VmapView", "a vmap", WRITE, self.recording)
