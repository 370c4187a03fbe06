"""The controls of "why this gradient?": entries to choose from, the paths of the chosen one, and their sum."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from html import escape
from types import MappingProxyType
from typing import Any

import numpy as np

from lab.autograd.explanation import Explanation, Path, Place, gradient_of, why
from lab.errors import LabError
from widgets.asking.grid import grid, index_of
from widgets.asking.words import figures, page, product_words

ALL = -1
ROOM = 34
"""Letters of a path in the list, whose lines cannot wrap: the words below have the whole."""


class Question:
    """Which entry of which gradient is asked about, and the answer: what the panel shows and a picture lights.

    Args:
        recording: of detail "value".
        n_paths: how many paths to give.
        names: what a picture calls the nodes; the answer calls them so, too.
    """

    def __init__(self, recording: Any, n_paths: int = 5, names: Mapping[int, str] = MappingProxyType({})) -> None:
        self.recording, self.n_paths, self.names = recording, n_paths, names
        self.node: int | str | None = None
        self.index: tuple[int, ...] | None = None
        self.at = 0
        self.chosen = ALL
        self.answer: Explanation | None = None
        self.gradient: Any = None
        self.trouble = ""
        self._asked: object = None
        self._lock = threading.RLock()

    def ask(self, node: Any, at: int, index: Any = None) -> None:
        """Ask about an entry (None: the one asked about before, or the largest) as of the first `at` events."""
        with self._lock:  # a live picture asks too, in a thread of its own
            if node != self.node:
                self.node, self.index, self.chosen = node, None, ALL
            if index is not None and index != self.index:
                self.index, self.chosen = index, ALL
            key = node, self.index, at
            if key != self._asked:
                self._asked, self.at = key, at
                self.answer, self.gradient, self.trouble = self._answered()

    def _answered(self) -> tuple[Explanation | None, Any, str]:
        if self.node is None:
            return None, None, ""
        gradient, where = None, {"recording": self.recording, "at": self.at}
        try:
            gradient = gradient_of(self.node, **where)
            return self._named(why(self.node, self.index, n_paths=self.n_paths, **where)), gradient, ""
        except LabError as reason:
            problem = f"{reason.problem[:1].upper()}{reason.problem[1:]}"
            return None, gradient, f"{problem}: {reason.given}. Hint: {reason.hint}"

    def _named(self, answer: Explanation) -> Explanation:
        """The answer with the picture's names in place of numbers of nodes."""

        def named(place: Place) -> Place:
            return place._replace(name=self.names.get(place.node, place.name))

        paths = tuple(path._replace(places=tuple(map(named, path.places))) for path in answer.paths)
        return replace(answer, name=self.names.get(answer.node, answer.name), paths=paths)

    def set_aside(self, reason: str) -> None:
        """Take the answer away, and say why; the next question is answered anew."""
        self.answer, self.gradient, self.trouble, self._asked = None, None, reason, None

    @property
    def path(self) -> Path | None:
        """The path that was chosen."""
        paths = self.answer.paths if self.answer is not None else ()
        return paths[self.chosen] if 0 <= self.chosen < len(paths) else None


class Panel:
    """The question as widgets: `widget` is what to show; `changed` is called when the reader chose.

    Args:
        question: what is asked.
        changed: shows the picture anew.
    """

    def __init__(self, question: Question, changed: Callable[[], object]) -> None:
        import ipywidgets as ipw

        from widgets.live.buttons import pixels, ringed
        from widgets.live.host import SceneHost
        from widgets.pictures.scene import Scene

        self.question, self._changed, self._filling = question, changed, False
        self._notice = ""
        self.grid = SceneHost(Scene(title="Entries of the gradient"))
        self.grid.on_select(self._clicked)
        self.entry = ringed(ipw.Text(
            description="Entry", continuous_update=False, tooltip="Which entry: one number for each axis, as 0, 3",
            layout=ipw.Layout(width="auto"), style={"description_width": pixels(48)},
        ))  # fmt: skip
        self.entry.observe(self._typed, "value")
        self.paths = ringed(ipw.Select(
            description="Paths", rows=6, tooltip="A path lights up in the graph", layout=ipw.Layout(width="auto"),
            style={"description_width": pixels(48)},
        ))  # fmt: skip
        self.paths.observe(self._picked, "value")
        self.words = ipw.HTML()
        self.head = ipw.HTML("<b>Why this gradient?</b>")
        self.widget = ipw.VBox([self.head, self.grid, self.entry, self.paths, self.words])
        self.widget.layout.display = "none"

    def show(self) -> None:
        """Fill the widgets from the question."""
        question = self.question
        seen = question.gradient is not None
        self.widget.layout.display = "" if seen or question.trouble else "none"
        for part in (self.grid, self.entry, self.paths):
            part.layout.display = "" if seen else "none"
        if not seen:
            self.words.value = _refusal(question.trouble)
            return
        answer = question.answer
        index = answer.index if answer is not None else _within(question.index, np.shape(question.gradient))
        self._filling = True
        try:
            name = answer.name if answer is not None else "this"
            self.grid.layout.display = self.entry.layout.display = "" if np.size(question.gradient) > 1 else "none"
            self.grid.show(grid(question.gradient, index, name))
            self.entry.value = ", ".join(map(str, index))
            self._fill_paths(answer)
            source = getattr(question.recording, "source", lambda _file, _line: "")
            said = f"<div role='status'><b>{escape(self._notice)}</b></div>" if self._notice else ""
            trouble = _refusal(question.trouble)
            self.words.value = said + (trouble if answer is None else page(answer, question.chosen, source))
        finally:
            self._filling = False

    def _fill_paths(self, answer: Explanation | None) -> None:
        options: list[tuple[str, int]] = []
        if answer is not None and answer.paths:
            write = figures(answer)
            options = [("all of them", ALL)]
            options += [(f"{k + 1}:  {product_words(path, write, ROOM)}", k) for k, path in enumerate(answer.paths)]
        self.paths.layout.display = "" if options else "none"
        if tuple(options) != tuple(self.paths.options):
            self.paths.options = options
        if options:
            self.paths.value = self.question.chosen

    # --- what the reader does ---

    def _clicked(self, key: str) -> None:
        self._choose(() if key == "only" else index_of(key))

    def _typed(self, change: Any) -> None:
        if self._filling:
            return
        parts = [part.strip() for part in change["new"].strip("[]() ").split(",") if part.strip()]
        try:
            self._choose(tuple(int(part) for part in parts))
        except ValueError:
            self._notice = "An entry is a whole number for each axis, as 0, 3."
            self.show()

    def _choose(self, index: tuple[int, ...]) -> None:
        question, before = self.question, self.question.index
        question.ask(question.node, question.at, index)
        self._notice = question.trouble
        if question.answer is None:  # no such entry: say so, and stay at the one before
            question.index = before
            question.ask(question.node, question.at)
        self.show()
        self._changed()

    def _picked(self, change: Any) -> None:
        if not self._filling and change["new"] is not None:
            self.question.chosen, self._notice = change["new"], ""
            self.show()
            self._changed()


def _within(index: tuple[int, ...] | None, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The entry around which entries are shown: the first where the one that was asked about is not there."""
    fits = index is not None and len(index) == len(shape)
    if index is not None and fits and all(-n <= i < n for i, n in zip(index, shape, strict=True)):
        return index
    return (0,) * len(shape)


def _refusal(words: str) -> str:
    """Why there is no answer, with lines as near to each other as in an answer."""
    return f"<div style='line-height:1.5;overflow-wrap:anywhere'>{escape(words)}</div>"
