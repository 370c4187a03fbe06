"""LossView: loss against training step, with its moving mean, whole-split evaluations, and where the first nan was.

A million steps are folded by columns and drawn as about two thousand points that keep every peak.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lab.events import Evaluated, Event, RunFinished, RunStarted, StepFinished
from widgets.explosion import has_exploded, over
from widgets.fold import Events, Positions, Stretch, merged
from widgets.landmarks import Landmarks
from widgets.pictures import theme
from widgets.pictures.chart import Chart
from widgets.view import Picture, Spot, View
from widgets.views.nothing import nothing_for
from widgets.views.series import Series
from widgets.views.training.lines import FEW, decimated, moving_mean, upright

WIDE = 100
"""Losses that differ by more than this factor from their median want a log scale."""
USUAL, ABOVE = 0.95, 100.0
"""Of a logarithmic axis so many times what that share of the losses is below is shown; rare ones beyond are cut."""
SYMBOLS = ("circle", "diamond", "square", "cross")


class Test(NamedTuple):
    """One evaluation of a whole split."""

    step: int
    split: str
    loss: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Curve:
    """The state of a LossView.

    Attributes:
        step, loss: of every finished step.
        tests: every evaluation.
        first_bad: the first step whose loss was nan or infinite, -1 if none.
        n_bad: how many there were.
        n_steps: planned, 0 when unknown.
        name: of the run.
        end: "" while it runs, then how it ended.
        reason: why it failed.
    """

    step: Series = field(default_factory=Series)
    loss: Series = field(default_factory=Series)
    tests: tuple[Test, ...] = ()
    first_bad: int = -1
    n_bad: int = 0
    n_steps: int = 0
    name: str = ""
    end: str = ""
    reason: str = ""

    def extended(self, steps: Any, losses: Any) -> Curve:
        """With more steps."""
        bad = ~np.isfinite(np.asarray(losses, dtype=np.float64))
        first = int(steps[int(np.argmax(bad))]) if self.first_bad < 0 and bad.any() else self.first_bad
        return replace(
            self, step=self.step.extended(steps), loss=self.loss.extended(losses), first_bad=first,
            n_bad=self.n_bad + int(bad.sum()),
        )  # fmt: skip

WRITE = "run = lab.fit(model, train), then LossView(run)"


class LossView(View[Curve]):
    """Loss against training step, and accuracy where it was measured; of several runs in one recording the latest."""

    listens = (RunStarted, StepFinished, Evaluated, RunFinished)
    stops = (StepFinished,)
    title = "Loss"

    def start(self) -> Curve:
        return Curve()

    def stop_positions(self, events: Events) -> Positions:
        """After each step with the tests that follow it, the last one with the end of the run."""
        steps = events.positions(StepFinished)
        if not len(steps):
            return super().stop_positions(events)
        rest = merged(events.positions(Evaluated), events.positions(RunFinished))
        last = np.append(-1, rest)[np.searchsorted(rest, np.append(steps[1:], sys.maxsize))]
        stops: Positions = np.maximum(steps, last) + 1
        return stops

    def landmarks(self, events: Events) -> Landmarks:
        """Where it was tested: every stop is a step already."""
        tests = events.columns(Evaluated)
        where, splits = tests["position"], np.asarray(tests["split"])
        names = dict.fromkeys(splits)
        groups = [(f"{name} at step", where[splits == name], tests["step"][splits == name]) for name in names]
        return Landmarks.of(groups) if groups else super().landmarks(events)

    def fold(self, state: Curve, event: Event) -> Curve:
        match event:
            case RunStarted():
                return Curve(n_steps=event.n_steps, name=event.name)
            case StepFinished():
                return state.extended([event.step], [event.loss])
            case Evaluated():
                return replace(state, tests=(*state.tests, Test(event.step, event.split, event.loss, event.accuracy)))
            case RunFinished():
                return replace(state, end=event.state, reason=event.reason)
        return state

    def fold_many(self, state: Curve, stretch: Stretch) -> Curve:
        begun = stretch.positions(RunStarted)
        if len(begun):  # only what came after the last beginning counts
            state = self.fold(state, stretch.events[int(begun[-1])])
            stretch = stretch._replace(start=int(begun[-1]) + 1)
        steps = stretch.columns(StepFinished)
        if len(steps["step"]):
            state = state.extended(steps["step"], steps["loss"])
        rows = stretch.columns(Evaluated)
        tests = map(Test, *(list(rows[name]) for name in ("step", "split", "loss", "accuracy")))
        state = replace(state, tests=(*state.tests, *tests)) if len(rows["step"]) else state
        for event in stretch.of((RunFinished,)):
            state = self.fold(state, event)
        return state

    def picture(self, state: Curve) -> Chart:
        import plotly.graph_objects as go

        if not len(state.step) and not state.tests:
            words = self._why_empty(state)
            return Chart(go.Figure(layout=theme.blank(_layout(state, accuracy=False))), words, self.title)
        traces = _loss_lines(state)
        accuracy = [t for t in state.tests if math.isfinite(t.accuracy)]
        splits = list(dict.fromkeys(t.split for t in state.tests))
        for k, split in enumerate(splits):
            traces.append(_split_line(split, "loss", k, state))
            if any(t.split == split for t in accuracy):
                traces.append(_split_line(split, "accuracy", k, state))
        if len(begins := _begins(state)) > 1:
            traces.append(_ways_back(state, begins[1:]))
        return Chart(go.Figure(traces, _layout(state, bool(accuracy))), _caption(state), self.title)

    def spotlit(self, picture: Picture, state: Curve, spot: Spot) -> Picture:
        """A line at the step of the event."""
        step = getattr(self.recording[spot.place], "step", -1)
        there = len(state.step) > 0 and state.step.array[0] <= step <= state.step.array[-1]
        return upright(picture, step, spot.name) if isinstance(picture, Chart) and there else picture

    def _why_empty(self, state: Curve) -> str:
        if state.end:
            reason = f": {state.reason}" if state.reason else ""
            return f"The run {state.name} {state.end} before its first step{reason}."
        if self.recording.live or len(self.recording.positions(StepFinished)):
            return "Loss of a training run: nothing was measured yet."
        if len(self.recording.positions(RunStarted)):
            return f"The run {state.name} began, and no step of it is in this recording."
        return nothing_for("LossView", "the loss of a training, step by step", WRITE, self.recording)

    def text(self, state: Curve) -> str:
        if not len(state.step):
            return "No steps yet." if self.recording.live or state.tests else self._why_empty(state)
        step, loss = int(state.step.array[-1]), float(state.loss.array[-1])
        of = f" of {state.n_steps:,}" if state.n_steps else ""
        lines = [f"Step {step:,}{of}: loss {theme.short(loss)}{_ending(state)}."]
        lines.extend(_trouble(state))
        latest = {t.split: t for t in state.tests}
        for split, t in latest.items():
            share = f", accuracy {t.accuracy:.1%}" if math.isfinite(t.accuracy) else ""
            lines.append(f"{split} at step {t.step:,}: loss {theme.short(t.loss)}{share}")
        finite = state.loss.array[np.isfinite(state.loss.array)]
        if len(finite):
            lines.append(f"{len(state.step):,} steps, smallest loss {theme.short(float(finite.min()))}")
        return "\n".join(lines)


def _loss_lines(state: Curve) -> list[Any]:
    import plotly.graph_objects as go

    y, begins = state.loss.array, _begins(state)
    kept = decimated(y)
    if len(begins) > 1:
        kept = np.unique(np.concatenate([kept, begins, begins[1:] - 1]))
    gaps = np.searchsorted(kept, begins[1:])  # nothing was between where it left and where it went on
    x = np.insert(state.step.array[kept].astype(np.int32), gaps, state.step.array[begins[1:]].astype(np.int32))
    drawn = np.insert(np.where(np.isfinite(y[kept]), y[kept], np.nan), gaps, np.nan).astype(np.float32)
    window = _window(state)
    smooth = len(y) >= 2 * window
    mode = "lines" if len(kept) > FEW else "lines+markers"  # a line of one point cannot be seen
    lines = [go.Scatter(x=x, y=drawn, name="batch", mode=mode, line={"width": 1}, opacity=0.75 if smooth else 1.0)]
    if smooth:
        ends = np.append(begins[1:], len(y))
        mean = np.concatenate([
            moving_mean(y[a:b], kept[(kept >= a) & (kept < b)] - a, window) for a, b in zip(begins, ends, strict=True)
        ])  # fmt: skip
        mean[~np.isfinite(y[kept])] = np.nan  # a mean drawn through a gap would hide it
        mean = np.insert(mean, gaps, np.nan).astype(np.float32)
        lines.append(go.Scatter(x=x, y=mean, name=f"mean of {window}", mode="lines", line={"width": 2.5}))
    if state.first_bad >= 0:
        seen = drawn[np.isfinite(drawn)]
        low, high = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)
        lines.append(go.Scatter(
            x=[state.first_bad, state.first_bad], y=[low, high], name=f"nan or inf, step {state.first_bad:,}",
            mode="lines+markers", marker={"symbol": "x", "size": 9}, line={"dash": "dot", "width": 1.5},
        ))  # fmt: skip
    return lines


def _begins(state: Curve) -> npt.NDArray[np.int64]:
    """Where a stretch of steps begins: at the first, and wherever the run had gone back to a state before."""
    return np.append(0, np.flatnonzero(np.diff(state.step.array) <= 0) + 1)


def _ways_back(state: Curve, begins: npt.NDArray[np.int64]) -> Any:
    """A dotted way from the step that a run had come to, to the one with which it went on."""
    import plotly.graph_objects as go

    step, loss, n = state.step.array.astype(int), state.loss.array, len(begins)
    name = f"back to step {step[begins[0]] - 1:,}" if n == 1 else f"went back, {n} times"
    return go.Scatter(
        x=[place for k in begins for place in (int(step[k - 1]), int(step[k]), None)],
        y=[height for k in begins for height in (float(loss[k]), float(loss[k]), None)],
        name=name, mode="lines+markers", marker={"symbol": "triangle-left", "size": 9},
        line={"dash": "dot", "width": 1.5},
    )  # fmt: skip


def _split_line(split: str, what: str, k: int, state: Curve) -> Any:
    import plotly.graph_objects as go

    rows = [t for t in state.tests if t.split == split]
    y = np.array([t.loss if what == "loss" else t.accuracy for t in rows])
    kept = decimated(y)
    return go.Scatter(
        x=np.array([t.step for t in rows], np.int32)[kept],
        y=np.where(np.isfinite(y[kept]), y[kept], np.nan).astype(np.float32),
        name=f"{split} {what}",
        mode="lines" if len(kept) > FEW else "lines+markers",
        xaxis="x" if what == "loss" else "x2",
        yaxis="y" if what == "loss" else "y2",
        line={"dash": theme.DASHES[(k + 1) % len(theme.DASHES)], "width": 1.5},
        marker={"symbol": SYMBOLS[k % len(SYMBOLS)], "size": 8},
        cliponaxis=False,  # a mark on an axis is seen whole
    )


def _layout(state: Curve, accuracy: bool) -> dict[str, Any]:
    more: dict[str, Any] = {"yaxis": {"type": "log" if _spans(state) else "linear", "exponentformat": "power"}}
    if top := _cut(state):
        more["yaxis"] |= {"range": [math.log10(_finite(state).min() / 2), math.log10(top)], "dtick": 1}
    # Never plotly's own range: of two axes that match, it may keep the one that it gave to an empty chart.
    more["xaxis"] = {"range": _steps_shown(state), "tickformat": ",d"}
    if accuracy:
        more["yaxis"]["domain"] = [0.44, 1.0]
        more["yaxis2"] = {
            "title": {"text": "accuracy"}, "domain": [0.0, 0.34], "range": [0, 1.02], "tickformat": ".0%",
            "zeroline": False,
        }  # fmt: skip
        more["height"] = 460
        more["xaxis2"] = {
            "title": {"text": "step"},
            "matches": "x",
            "anchor": "y2",
            "zeroline": False,
            **more["xaxis"],
        }
        more["xaxis"] = {**more["xaxis"], "title": {"text": ""}}
    return theme.axes("step", "loss", **more)


def _steps_shown(state: Curve) -> list[float]:
    """Where the axis of steps begins and ends: 0, or where a run was taken up again, and a little after the last."""
    tested = [t.step for t in state.tests]
    first, last = (int(state.step.array[0]), int(state.step.array[-1])) if len(state.step) else (1, 0)
    begin, last = min([max(0, first - 1), *tested]), max([last, *tested])
    planned = state.n_steps if not state.end else 0  # what a stopped run did not do needs no room
    end = max(last, _room(last, planned) if planned else 1)
    return [begin, begin + (end - begin) * 1.02]


def _room(done: int, planned: int) -> int:
    """Steps that the axis shows: more than were done, so that it moves seldom, and never more than are planned.

    Example:
        >>> _room(10, 3000), _room(100, 3000), _room(2000, 3000)
        (64, 256, 3000)
    """
    return int(min(planned, max(64, 2 ** math.ceil(math.log2(max(1, done) * 1.3)))))


def _ending(state: Curve) -> str:
    return f", {state.end}" if state.end else ""


def _trouble(state: Curve) -> list[str]:
    lines = []
    if state.first_bad >= 0:
        lines.append(
            f"First nan or infinite loss at step {state.first_bad:,}; {state.n_bad:,} such steps are drawn as gaps."
        )
    if state.end == "failed":
        lines.append(f"The run failed: {state.reason}")
    return lines


def _caption(state: Curve) -> str:
    trouble = " ".join(_trouble(state))
    smooth = len(state.loss.array) >= 2 * _window(state)
    lines = ["thin: loss of each batch; thick: its moving mean" if smooth else "loss of each batch"]
    lines += ["dashed: whole splits"] if state.tests else []
    lines += [f"log scale, because it {_span(state)}"] if _spans(state) else []
    if top := _cut(state):
        most = "" if _largest(state) in lines[-1] else f": up to {_largest(state)}"
        lines[-1] += f"{most}, cut at {theme.short(top).removesuffix('.0')}"
    words = "; ".join(lines)
    return f"{words[0].upper()}{words[1:]}.{' ' if trouble else ''}{trouble}"


def _window(state: Curve) -> int:
    """Steps of the moving mean."""
    return max(5, len(state.loss.array) // 40)


def _spans(state: Curve) -> bool:
    """Whether the largest loss would press most others flat."""
    y = _finite(state)
    return len(y) > 0 and bool(y.min() > 0) and float(y.max()) > WIDE * float(np.median(y))


def _span(state: Curve) -> str:
    """What made the losses so different."""
    if has_exploded(state.loss.array):
        return "exploded"
    y = _finite(state)
    return f"has a spike of {_largest(state)}" if over(y, y[0]).any() else "fell to less than a hundredth"


def _largest(state: Curve) -> str:
    """The largest loss, and at which step it was."""
    y = np.where(np.isfinite(state.loss.array), state.loss.array, -np.inf)
    k = int(y.argmax())
    return f"{theme.short(float(y[k]))} at step {int(state.step.array[k]):,}"


def _cut(state: Curve) -> float:
    """Where a logarithmic axis ends on which a few losses would leave no room for the others; 0 where it shows all."""
    if not _spans(state):
        return 0.0
    y = _finite(state)
    top = 10.0 ** math.ceil(math.log10(ABOVE * float(np.quantile(y, USUAL))))
    return top if y.max() > 10 * top else 0.0


def _finite(state: Curve) -> npt.NDArray[np.float64]:
    y = state.loss.array
    return y[np.isfinite(y)]
