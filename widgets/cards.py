"""Cards of a lesson: a question with a place to commit, and later the gap between what was said and what came.

`Lesson` is what a notebook holds: `lesson.predict(name, ...)`, `lesson.reveal(name)`, `lesson.check(function)`.
"""

from __future__ import annotations

import html
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as ipw

from lab.errors import ArgumentError, LabError
from lab.teach import Lesson as PureLesson
from lab.teach import Prediction, Progress
from lab.teach.lesson import find
from lab.teach.predict import Value, shown, unit_words
from widgets.live.buttons import free_of_blocked_cell, ringed
from widgets.live.host import ChartHost
from widgets.live.spoken import Spoken
from widgets.pictures.chart import Chart
from widgets.pictures.twin import svg_of
from widgets.plots import gap, lines

TICK, CROSS, DOTS, GAP = "\u2713", "\u2717", "\u2026", "\u2194"

KEPT = 4
"""So many gaps of one prediction stay alive in the page."""
SOON = 1.0
"""Seconds within which what a field says belongs to the Enter before it."""

Plot = Callable[[Prediction], Chart]
"""Draws a prediction; `guess` and `outcome` are None as long as there is nothing to draw."""


class Lesson(PureLesson):
    """A lesson in a notebook: its questions and checks as cards, and the learner's answers in one small file.

    Example:
        >>> from lab.teach import Progress
        >>> lesson = Lesson("00", progress=Progress(None))
        >>> card = lesson.predict("slope", "of x * x at 3", answer=lambda: 6.0)
        >>> card.commit(5)
        >>> lesson.reveal("slope").text
        'You said 5, it is 6: 1 too low.'
    """

    def __init__(self, name: str, *, progress: Progress | None = None) -> None:
        super().__init__(name, progress=progress)
        self._cards: dict[str, PredictCard] = {}

    def predict(
        self,
        name: str,
        question: str,
        *,
        answer: Callable[[], object],
        unit: str = "",
        tolerance: float = 1e-6,
        choices: Sequence[str] = (),
        plot: Plot = gap,
    ) -> PredictCard:
        """Ask before the code runs; `reveal(name)`, in a later cell, lays prediction and answer side by side.

        Args:
            name: a short name, e.g. "dz/dx"; what was committed is kept under it.
            question: the rest of the question.
            answer: gives the answer once the code has run.
            unit: unit of the number.
            tolerance: how near counts as right.
            choices: the possible answers, if it is not a number.
            plot: draws guess and answer, e.g. `tangent(f, at=3)`.
        """
        asked = self.prediction(name, question, answer=answer, unit=unit, tolerance=tolerance, choices=choices)
        card = PredictCard(self, name, asked, plot)
        if name in self._cards:  # the cell was run again
            card.adopt(self._cards[name])
        self._cards[name] = card
        return card

    def reveal(self, name: str) -> GapCard:
        """The gap between prediction and answer, drawn; "not yet" as long as nothing was committed.

        Raises:
            ArgumentError: no such question was asked.
        """
        return find(self._cards, name).reveal()

    def _repr_html_(self) -> str:
        cell = "<td style='text-align:left'>{}</td>".format
        rows = "".join(f"<tr>{''.join(cell(html.escape(text)) for text in row)}</tr>" for row in self.summary())
        where = (
            f"kept in {html.escape(self.progress.path.name)}" if self.progress.path else "kept until the kernel ends"
        )
        note = f"<p>{html.escape(self.progress.notice)}</p>" if self.progress.notice else ""
        return f"<table><caption>Your answers, {where}</caption>{rows}</table>{note}"

    def __repr__(self) -> str:
        return "\n".join(f"{what}: {state}" for what, state in self.summary()) or f"Lesson {self.name}, not begun"


class Card(ipw.VBox):
    """A widget with a still twin for readers without a kernel: two outputs, of which the live one hides the other."""

    @property
    def text(self) -> str:
        """The card in words."""
        raise ArgumentError("a card says itself what it shows", given=type(self).__name__, hint="define text")

    def twin(self) -> str:
        """The card as HTML that needs no kernel."""
        return f"<p>{html.escape(self.text)}</p>"

    def dispose(self) -> None:
        """Take the card and all in it out of the page and the kernel."""
        todo = [self]
        while todo:
            widget = todo.pop()
            todo += getattr(widget, "children", ())
            parts = (widget.layout, getattr(widget, "style", None))  # widgets of their own, which `close` leaves behind
            widget.close()
            for part in parts:
                if part is not None:
                    part.close()

    def _hide_twin(self) -> ipw.HTML:
        # A rule that is in the page only as long as the widget is: no script, and the twin comes back by itself.
        return ipw.HTML(f"<style>[data-lab-twin='{self.model_id}']{{display:none}}</style>")

    def _ipython_display_(self) -> None:
        from IPython.display import display

        still = f"<div data-lab-twin='{self.model_id}'>{self.twin()}</div>"
        display({"text/html": still, "text/plain": self.text}, raw=True)  # type: ignore[no-untyped-call]
        bundle = self._repr_mimebundle_()
        data = dict(bundle[0] if isinstance(bundle, tuple) else bundle)
        display(data | {"text/plain": self.text}, raw=True)  # type: ignore[no-untyped-call]


class PredictCard(Card):
    """A question, an input, a button; "not yet" until something was committed."""

    def __init__(self, lesson: PureLesson, name: str, prediction: Prediction, plot: Plot) -> None:
        self.lesson, self.name, self.prediction, self._plot = lesson, name, prediction, plot
        self._gaps: list[GapCard] = []
        self._lock = threading.Lock()
        self._error = ""
        self._since_enter = -math.inf
        self.input = _input(prediction, name)
        self.button = ipw.Button(description="Commit", tooltip=f"Commit to your prediction of {name}")
        self.status = Spoken()
        question = ipw.HTML(f"<b>Predict {html.escape(name)}</b> {html.escape(prediction.question)}")
        super().__init__()
        unit = [ipw.Label(unit_words(prediction.unit))] if prediction.unit else []
        way = "column" if prediction.choices else "row wrap"
        row = ipw.Box([self.input, *unit, self.button], layout=ipw.Layout(display="flex", flex_flow=way, width="100%"))
        self.children = (question, row, self.status, self._hide_twin())
        self.button.on_click(self._clicked)
        self.input.on_msg(self._entered)
        self.input.observe(self._left, "value")
        self._refresh()

    @property
    def text(self) -> str:
        """Question and state in words."""
        return f"Predict {self.name} {self.prediction.question}. {self._state()}"

    def commit(self, value: object) -> None:
        """Commit, as the button does.

        Raises:
            ArgumentError: not a number, or not one of the choices.
            PredictionError: the answer has been revealed.
        """
        with self._lock:
            self.lesson.commit(self.name, value)
            self._refresh()

    def adopt(self, before: PredictCard) -> None:
        """Take the place of an earlier card: gaps that are in the page follow this one."""
        self._gaps, before._gaps = before._gaps, []
        for card in self._gaps:
            card.prediction = self.prediction
        before.dispose()
        self._refresh()

    def reveal(self) -> GapCard:
        """A card with the gap; without a commitment it says "not yet", and follows when there is one."""
        card = GapCard(self.prediction, self._plot)
        while len(self._gaps) >= KEPT:  # of cells that were run again
            self._gaps.pop(0).dispose()
        self._gaps.append(card)
        card.refresh()
        self._refresh()
        return card

    def _clicked(self, _button: object) -> None:
        try:
            self._error = ""
            self.commit(self.input.value)
        except LabError as why:
            self._error = f"{why.problem} ({why.given}); {why.hint}"
            self._refresh()

    def _entered(self, _input: object, content: object, _buffers: object) -> None:
        """Enter was pressed in the field, which says so before it says what is written there."""
        if isinstance(content, dict) and content.get("event") == "submit":
            self._since_enter = time.monotonic()
            if str(self.input.value).strip():
                self._clicked(self.input)

    def _left(self, _change: object) -> None:
        if time.monotonic() - self._since_enter < SOON:
            self._clicked(self.input)

    def _state(self) -> str:
        p = self.prediction
        if self._error:
            return self._error
        if p.outcome is not None:
            return p.outcome.text
        if p.guess is None:
            return "Not yet: say what you expect, then run on."
        return f"Committed: {shown(p.guess, p.unit, 6)}.{' Now run on.' * isinstance(p.guess, float)}"

    def _refresh(self) -> None:
        for card in self._gaps:
            card.refresh()
        locked = self.prediction.outcome is not None
        self.input.disabled = self.button.disabled = locked
        self.status.text = f"{CROSS if self._error else _mark(self.prediction)} {self._state()}"
        for widget in (self.input, self.button):
            free_of_blocked_cell(widget)


class GapCard(Card):
    """What was said beside what came, in words and drawn into one plot."""

    def __init__(self, prediction: Prediction, plot: Plot) -> None:
        self.prediction, self._plot = prediction, plot
        self.words = Spoken()
        self.host = None if prediction.choices else ChartHost(self.chart())
        if self.host is not None and prediction.outcome is None:
            self.host.layout.display = "none"  # an empty plot says less than the words
        super().__init__()
        self.children = (self.words, *([self.host] if self.host else []), self._hide_twin())

    @property
    def text(self) -> str:
        """The gap in a sentence, or why there is none yet."""
        try:
            return self.prediction.reveal().text
        except LabError as why:
            return f"{why.problem[:1].upper()}{why.problem[1:]}."

    def chart(self) -> Chart:
        """The plot as it is now."""
        return self._plot(self.prediction)

    def twin(self) -> str:
        drawn = self.host is not None and self.prediction.outcome is not None
        return f"<p>{html.escape(self.text)}</p>" + (svg_of(self.chart()) if drawn else "")

    def refresh(self) -> None:
        """Look again whether there is something to show."""
        text = self.text  # reveals, if it can
        self.words.text = f"{_mark(self.prediction)} {text}"
        if self.host is not None and self.prediction.outcome is not None:
            self.host.show(self.chart(), text)
            self.host.layout.display = ""


class Lines(Card):
    """Lists of numbers as lines of one chart.

    Args:
        xtitle, ytitle: what the axes say.
        first: where x begins.
        series: the numbers of each line, by its name.

    Example:
        >>> Lines("step", "loss", good=[3.0, 2.0], bad=[3.0, 4.0]).text
        'loss by step: good from 3 to 2; bad from 3 to 4'
    """

    def __init__(self, xtitle: str, ytitle: str, *, first: int = 0, **series: Sequence[float]) -> None:
        self._chart = lines(xtitle, ytitle, series, first=first)
        self.host = ChartHost(self._chart)
        super().__init__()
        self.children = (self.host, self._hide_twin())

    @property
    def picture(self) -> Chart:
        """The chart."""
        return self._chart

    @property
    def text(self) -> str:
        """Beginning and end of each line."""
        return self._chart.caption

    def twin(self) -> str:
        return svg_of(self._chart)


def _mark(prediction: Prediction) -> str:
    """Dots for what is open, an arrow between two for a gap, a tick for what was right."""
    if prediction.outcome is None:
        return DOTS if prediction.guess is None else TICK
    return TICK if prediction.outcome.right else GAP


def _input(prediction: Prediction, name: str) -> Any:
    """Where the prediction is said; its label tells of what, for whoever comes to it without the line above."""
    value: Value | None = prediction.guess
    common: dict[str, Any] = {"description": f"I expect {name}", "style": {"description_width": "initial"}}
    if prediction.choices:
        return ringed(ipw.RadioButtons(options=list(prediction.choices), value=value, **common))
    written = "" if value is None else f"{value:g}"
    # Sent when the field is left, not with each key: while one change is on its way the next waits in the page, and
    # a quick click on the button would overtake it. The last digit would be missing in what was committed.
    unit = f" in {unit_words(prediction.unit)}" if prediction.unit else ""
    return ringed(ipw.Text(value=written, placeholder=f"a number{unit}", continuous_update=False,
                    layout=ipw.Layout(width="auto"), **common))  # fmt: skip
