"""WhyView: why one entry of a gradient is what it is, as the paths from it to the result, with numbers that add up."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from lab.autograd import Tensor
from lab.autograd.asked import number_of
from lab.autograd.explanation import Explanation, gradient_of
from lab.errors import LabError, ViewError
from lab.events import BackwardFinished, Event, GradientCleared, GradientStored, LeafUsed
from widgets.asking.panel import Panel, Question
from widgets.asking.words import account
from widgets.fold import Stretch
from widgets.pictures.scene import Scene
from widgets.view import View
from widgets.views.why.layers import layers_of
from widgets.views.why.picture import scene_of

KINDS = (BackwardFinished, GradientStored, GradientCleared)


class Moment(NamedTuple):
    """How many events of each kind there were: with the recording they say which gradient stands."""

    finished: int = 0
    stored: int = 0
    cleared: int = 0


class WhyView(View[Moment]):
    """The paths that contribute most to one entry of a gradient, from the entry to the result.

    Args:
        source: a Recording of detail "value" with forward and backward.
        tensor: the tensor, its name, or the number of its node; None takes the first leaf that has a gradient.
        index: the entry; None takes the largest.
        n_paths: how many paths to draw.

    Raises:
        ViewError: an index that is none, or that the gradient does not have.

    Example:
        >>> import lab
        >>> x = lab.tensor(3.0, requires_grad=True, name="x")
        >>> with lab.record() as rec:
        ...     (x * x + lab.sin(x)).backward()
        >>> print(WhyView(rec, "x").text_at(len(rec)).splitlines()[0])
        Gradient of x: 3 + 3 − 0.99 = 5.01.
    """

    listens = KINDS
    stops = (BackwardFinished, GradientCleared)
    title = "Why this gradient"

    def __init__(
        self,
        source: Any,
        tensor: Tensor | int | str | None = None,
        index: int | tuple[int, ...] | None = None,
        *,
        n_paths: int = 5,
    ) -> None:
        super().__init__(source)
        self.question = Question(self.recording, n_paths)
        self._tensor = number_of(tensor, self.recording) if isinstance(tensor, Tensor) else tensor
        self._index = self._checked(index)
        self._panel: Panel | None = None
        self._rests_until = 0.0

    def _checked(self, index: Any) -> tuple[int, ...] | None:
        """The entry that is asked for, if there can be one: refused here, not where it is to be shown."""
        if index is None:
            return None
        parts = tuple(index) if isinstance(index, tuple | list) else (index,)
        if not all(isinstance(i, int | np.integer) and not isinstance(i, bool) for i in parts):
            raise ViewError("an entry is named by one whole number for each axis", given=f"index={index!r}"[:80],
                            hint="for example index=(3, 0); None takes the largest entry")  # fmt: skip
        node = self._first_leaf(len(self.recording)) if self._tensor is None else self._tensor
        if node is not None and (shape := self._shape_of(node)) is not None:
            inside = len(parts) == len(shape) and all(-n <= i < n for i, n in zip(parts, shape, strict=True))
            if not inside:
                hint = "one whole number for each axis, counted from 0" if shape else "leave the index out"
                raise ViewError("the gradient has no such entry", given=f"index={index!r} of shape {shape}", hint=hint)
        return tuple(int(i) for i in parts)

    def _shape_of(self, tensor: int | str) -> tuple[int, ...] | None:
        """Of a gradient that was recorded already; None where it is not there yet, or cannot be read."""
        try:
            return tuple(gradient_of(tensor, recording=self.recording).shape)
        except LabError:  # the picture says which
            return None

    def start(self) -> Moment:
        return Moment()

    def fold(self, state: Moment, event: Event) -> Moment:
        return Moment(*(n + isinstance(event, kind) for n, kind in zip(state, KINDS, strict=True)))

    def fold_many(self, state: Moment, stretch: Stretch) -> Moment:
        return Moment(*(n + len(stretch.positions(kind)) for n, kind in zip(state, KINDS, strict=True)))

    def answer(self, state: Moment) -> Explanation | None:
        """The explanation of what stands then; None where there is none, and `question.trouble` says why."""
        ends = [int(self.recording.positions(kind)[n - 1]) + 1 for n, kind in zip(state, KINDS, strict=True) if n]
        at = max(ends, default=0)
        tensor = self._first_leaf(at) if self._tensor is None else self._tensor
        self.question.ask(tensor, at, self.question.index or self._index)
        return self.question.answer

    def _first_leaf(self, at: int) -> int | None:
        stored = set(np.asarray(self.recording.columns(GradientStored, 0, at)["node"]).tolist())
        leaves = np.asarray(self.recording.columns(LeafUsed, 0, at)["node"]).tolist()
        return next((node for node in leaves if node in stored), None)

    def picture(self, state: Moment) -> Scene:
        answer = self.answer(state)
        if answer is None:
            words = self._why_empty(state)
            return Scene((), caption=words, title=self.title)
        if answer.layers and not answer.others and self.question.path is None:
            return layers_of(answer, self.title)
        return scene_of(answer, self.question.path, self.title)

    def ids_of(self, event: Event, state: Moment, scene: Scene) -> Iterable[str]:
        """The boxes of the node that the event is about."""
        about = f"{getattr(event, 'node', -1)}:"
        return [node.id for node in scene.nodes if node.id.startswith(about)]

    def text(self, state: Moment) -> str:
        answer = self.answer(state)
        return account(answer) if answer is not None else self._why_empty(state)

    def _why_empty(self, state: Moment) -> str:
        if state == Moment() or not self.question.trouble:
            return "No gradient yet: the paths are drawn when a backward walk has finished."
        return self.question.trouble

    def build(self) -> Any:
        """The scene with the entries and the paths beside it."""
        import ipywidgets as ipw

        host = self.host
        self._panel = Panel(self.question, lambda: self.show(self.position))
        host.layout.flex, host.layout.min_width = "3 1 420px", "320px"
        beside = ipw.Box(
            [self._panel.widget], layout=ipw.Layout(flex="1 1 300px", min_width="260px", margin="0 0 0 12px")
        )
        self.shown()
        return ipw.Box([host, beside], layout=ipw.Layout(display="flex", flex_flow="row wrap", width="100%"))

    def _catch_up(self) -> None:
        """The newest gradient of a live run, at a twentieth of the time: a search takes as long as many steps."""
        began = perf_counter()
        if self.recording.live and began < self._rests_until:
            return
        super()._catch_up()
        self._rests_until = began + 20 * (perf_counter() - began)

    def shown(self) -> None:
        if self._panel is not None:
            self._panel.show()
