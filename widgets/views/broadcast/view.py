"""BroadcastView: broadcasting forward, summing backward: which axes were stretched, and which sums undo it.

A stop is an operation of which an operand was stretched, and later the moment when its gradient comes back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from lab.events import Event, LeafUsed, OpRecorded, RuleApplied
from widgets.fold import Events, Positions, Stretch, merged
from widgets.pictures.scene import Scene
from widgets.tape import wording
from widgets.tape.stops import after_rules, settled
from widgets.tape.tape import LISTENS, Tape
from widgets.view import View
from widgets.views.broadcast.axes import Case, Shape, case_of, meets, stretches
from widgets.views.broadcast.picture import scene_of
from widgets.views.nothing import nothing_for, shown_by

KEPT = 100_000
"""Nodes that are kept of a recording."""
WRITE = (
    "x, b = lab.tensor(np.ones((4, 3)), requires_grad=True), lab.tensor(np.ones(3), requires_grad=True);"
    " with lab.record() as rec: (x + b).sum().backward(); then BroadcastView(rec)"
)


class Moment(NamedTuple):
    """The tape, the operation that broadcast last (-1 before the first), and whether its gradient was on its way."""

    tape: Tape
    node: int = -1
    backward: bool = False


class BroadcastView(View[Moment]):
    """Operations whose operands differ in shape: which axes are stretched, and over which the gradient is summed.

    Args:
        source: a Recording, best one of detail "value" with source lines.

    Example:
        >>> import lab
        >>> x = lab.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True, name="x")
        >>> b = lab.tensor([1.0, 1.0, 1.0], requires_grad=True, name="b")
        >>> with lab.record() as rec:
        ...     (x * b).sum().backward()
        >>> print(BroadcastView(rec).text_at(len(rec)))
        Backward of v₁ = x * b: gradients are summed. The gradient that came in is 2×3 norm 2.449.
        x, 2×3: used as it is. Its gradient is of that shape already: 2×3 norm 2.449.
        b, 3: axis 0 – → 2 (new axis), each entry used 2 times. Its gradient is summed over axis 0 to 3: [5.0, ...
    """

    listens = LISTENS
    stops = (OpRecorded, RuleApplied)
    title = "Broadcasting"

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self._found: tuple[int, np.ndarray[Any, np.dtype[np.int64]]] | None = None

    def start(self) -> Moment:
        return Moment(Tape())

    def fold(self, state: Moment, event: Event) -> Moment:
        tape = state.tape.folded(event, KEPT)
        if isinstance(event, OpRecorded | RuleApplied) and _broadcasts(tape, event.node):
            return Moment(tape, event.node, isinstance(event, RuleApplied))
        return state._replace(tape=tape)

    def fold_many(self, state: Moment, stretch: Stretch) -> Moment:
        tape = state.tape.folded_many(stretch, KEPT)
        rows = [
            (int(place), int(node), kind is RuleApplied)
            for kind in (OpRecorded, RuleApplied)
            for place, node in zip(stretch.positions(kind), stretch.columns(kind)["node"], strict=True)
        ]
        for _, node, backward in sorted(rows, reverse=True):
            if _broadcasts(tape, node):
                return Moment(tape, node, backward)
        return state._replace(tape=tape)

    def stop_positions(self, events: Events) -> Positions:
        """After each operation that broadcasts, and after its rules with what they sent; where none does, after all."""
        n = len(events)
        found, stops = self._broadcasting(events, n), []
        for kind, after in ((OpRecorded, settled(events, (OpRecorded,))), (RuleApplied, after_rules(events))):
            nodes = np.asarray(events.columns(kind, 0, n)["node"])
            stops.append(after[: len(nodes)][np.isin(nodes[: len(after)], found)])
        some = merged(*stops)
        return some if len(some) else merged(settled(events, (OpRecorded,)), after_rules(events))

    def _broadcasting(self, events: Events, n: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The nodes of the operations that broadcast, among the first n events."""
        if self._found is None or self._found[0] != n:
            ops, leaves = events.columns(OpRecorded, 0, n), events.columns(LeafUsed, 0, n)
            shapes: dict[int, Shape] = {}
            for rows in (leaves, ops):
                shapes.update(zip(rows["node"].tolist(), map(tuple, rows["shape"]), strict=True))
            names = np.asarray(ops["op"])
            meeting = [name for name in dict.fromkeys(names.tolist()) if meets(name)]
            node, shape = ops["node"], ops["shape"]  # a column is read as a whole: once, not for each operation
            parents, constants = ops["parents"], ops["constants"]
            found = [
                int(node[k])
                for k in np.flatnonzero(np.isin(names, meeting)).tolist()
                if stretches(shape[k], parents[k], constants[k], shapes.get)
            ]
            self._found = n, np.array(found, dtype=np.int64)
        return self._found[1]

    # --- the picture ---

    def picture(self, state: Moment) -> Scene:
        case = self._case(state)
        return Scene(caption=self._why_empty(state), title=self.title) if case is None else scene_of(case, self.title)

    def text(self, state: Moment) -> str:
        case = self._case(state)
        return self._why_empty(state) if case is None else case.account()

    def ids_of(self, event: Event, state: Moment, scene: Scene) -> Iterable[str]:
        """The row of the result, or that of the operand to which something was sent."""
        if getattr(event, "source", -1) == state.node >= 0:
            row = f"o{getattr(event, 'argument', -1)}"
        else:
            row = "out" if getattr(event, "node", -1) == state.node else ""
        return {n.id for n in scene.nodes if n.id.partition(".")[0] == row}

    def _case(self, state: Moment) -> Case | None:
        if state.node < 0:
            return None
        tape = state.tape
        return case_of(tape, tape.entries[state.node], wording.names(tape.entries), state.backward)

    def _why_empty(self, state: Moment) -> str:
        if state.tape.entries and not len(self._broadcasting(self.recording, len(self.recording))):
            words = "No operation broadcasts here: the operands of each have the shape of its result, or are numbers."
            return words + shown_by(self.recording, "BroadcastView")
        if self.recording.live or len(self.recording.positions(OpRecorded)):
            return "No operation has broadcast yet: the first of which an operand is stretched will be drawn."
        return nothing_for("BroadcastView", "operations that broadcast", WRITE, self.recording)


def _broadcasts(tape: Tape, node: int) -> bool:
    entry = tape.entries.get(node)
    if entry is None or not entry.op or not meets(entry.op):
        return False
    shapes = tape.entries
    return stretches(
        entry.shape, entry.parents, entry.constants, lambda p: shapes[p].shape if p in shapes else None
    )  # fmt: skip
