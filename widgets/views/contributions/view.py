"""ContributionView: the backward walk rule by rule: gradient that came in × local derivative = contribution, summed up.

Each stop is one rule that ran. On the right stands what has come back so far to each value that it reaches: a value
that was used several times waits until all of it is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from lab.autograd.recorded import Recorded
from lab.autograd.reread import Rules
from lab.events import BackwardStarted, Event, RuleApplied
from widgets.fold import Events, Positions, Stretch, merged
from widgets.pictures.scene import Scene
from widgets.tape import wording
from widgets.tape.stops import after_rules, settled
from widgets.tape.tape import LISTENS, Tape
from widgets.view import View
from widgets.views.contributions.ledger import MOST_ROWS, Step, n_rules, products_of, sum_of, walk_of
from widgets.views.contributions.picture import scene_of
from widgets.views.nothing import nothing_for

KEPT = 100_000
"""Nodes that are kept of a recording."""
WRITE = (
    "x = lab.tensor(2.0, requires_grad=True); with lab.record() as rec: (x * x).backward(); then ContributionView(rec)"
)


class Moment(NamedTuple):
    """The tape, and the node whose rules ran last in the latest walk; -1 before the first."""

    tape: Tape
    rule: int = -1


class ContributionView(View[Moment]):
    """A backward walk, one rule at a time, with its numbers: local derivative × incoming gradient, and running sums.

    Args:
        source: a Recording of detail "value" with forward and backward.

    Example:
        >>> import lab
        >>> x, y = lab.tensor(2.0, requires_grad=True, name="x"), lab.tensor(3.0, requires_grad=True, name="y")
        >>> with lab.record() as rec:
        ...     (x * y + x).backward()
        >>> print(ContributionView(rec).text_at(len(rec)))
        Rule 2 of 2, v₁ = x * y: the gradient that came in is 1.0.
        To x: ∂v₁/∂x = 3.0, rule ct * y, 3.0 × 1.0 = 3.0. Gradient of x: 1.0 + 3.0 = 4.0, complete.
        To y: ∂v₁/∂y = 2.0, rule ct * x, 2.0 × 1.0 = 2.0. Gradient of y: 2.0, complete.
    """

    listens = LISTENS
    stops = (BackwardStarted, RuleApplied)
    title = "Contributions"

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self._rules: tuple[int, Rules] | None = None

    def start(self) -> Moment:
        return Moment(Tape())

    def fold(self, state: Moment, event: Event) -> Moment:
        tape, rule = state.tape.folded(event, KEPT), state.rule
        if isinstance(event, BackwardStarted):
            rule = -1
        elif isinstance(event, RuleApplied) and event.node in tape.entries:
            rule = event.node
        return Moment(tape, rule)

    def fold_many(self, state: Moment, stretch: Stretch) -> Moment:
        tape, rule = state.tape.folded_many(stretch, KEPT), state.rule
        began = max(stretch.positions(BackwardStarted).tolist(), default=-1)
        nodes = np.asarray(stretch.columns(RuleApplied)["node"])[stretch.positions(RuleApplied) > began].tolist()
        ran = next((node for node in reversed(nodes) if node in tape.entries), -1 if began >= 0 else rule)
        return Moment(tape, ran)

    def stop_positions(self, events: Events) -> Positions:
        """After the start of each walk, and after each rule with all that it sent."""
        return merged(settled(events, (BackwardStarted,)), after_rules(events))

    # --- the picture ---

    def picture(self, state: Moment) -> Scene:
        step = self._step(state)
        return Scene(caption=self._why_empty(state), title=self.title) if step is None else scene_of(step, self.title)

    def text(self, state: Moment) -> str:
        step = self._step(state)
        return self._why_empty(state) if step is None else step.account()

    def ids_of(self, event: Event, state: Moment, scene: Scene) -> Iterable[str]:
        """The rule that sent something and where it went, or the sum of the node."""
        node, source = getattr(event, "node", -1), getattr(event, "source", -1)
        return {f"sum{node}", f"{source}.{getattr(event, 'argument', -1)}", *(["in"] if node == state.rule else [])}

    def _step(self, state: Moment) -> Step | None:
        tape = state.tape
        entry = tape.entries.get(state.rule if state.rule >= 0 else tape.root)
        if not tape.n_walks or entry is None:
            return None
        called = wording.names(tape.entries)
        walk = walk_of(tape, state.rule)
        products = products_of(tape, entry, self._read(), called) if state.rule >= 0 else []
        shown = products[:MOST_ROWS]
        what = wording.formula(entry, called)
        return Step(
            entry.node, what, called[entry.node], wording.short(entry.gradient), *n_rules(tape, walk), shown,
            [sum_of(tape, target, walk, called) for target in dict.fromkeys(p.target for p in shown)],
            len(products) - len(shown),
        )  # fmt: skip

    def _read(self) -> Rules:
        """The rules of the recording as far as it goes."""
        n = len(self.recording)
        if self._rules is None or self._rules[0] != n:
            self._rules = n, Rules(Recorded(self.recording))
        return self._rules[1]

    def _why_empty(self, state: Moment) -> str:
        if state.tape.n_walks:
            return "A backward walk ran, but not what it walks over: its forward ran before the recording began."
        if self.recording.live or len(self.recording.positions(BackwardStarted)):
            return "No backward walk yet: each rule that runs will be a step."
        return nothing_for("ContributionView", "a backward walk, rule by rule", WRITE, self.recording)
