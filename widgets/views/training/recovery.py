"""RecoveryView: the loss of a training over time above a lane for each of its ranks: struck, lost, and gone on.

What is on the lanes are events: when a rank ran, when its worker was killed or stopped by hand, when the loss was
known, when all went on and from which step, and when a state was kept on a rank or written to disk.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from lab.events import Event, SnapshotWritten, StateKept, StepFinished
from lab.words import counted
from widgets.fold import Events, Positions, Stretch, merged
from widgets.pictures import theme
from widgets.pictures.chart import Chart
from widgets.view import View
from widgets.views.nothing import nothing_for
from widgets.views.training.lines import decimated
from widgets.views.training.story import RARE, Loss, Story

WRITE = "run = lab.fit(model, train, on=DataParallel(cluster)), a worker is killed, then RecoveryView(run)"
MARKS = {"killed": "x", "stopped": "square", "slowed": "triangle-down", "let go on": "triangle-up"}
MOST_KEPT = 160
"""Marks of kept states: of more, some."""


class RecoveryView(View[Story]):
    """A training on ranks over time: its loss, who ran when, who was lost, and where the training went on.

    Args:
        source: a Run of `lab.fit(..., on=DataParallel(...))`, or a Recording of such a training.

    Example:
        >>> from lab.events import Recording
        >>> RecoveryView(Recording()).text_at(0).partition(", and")[0]
        'RecoveryView shows a training on ranks, with their losses'
    """

    listens: ClassVar[tuple[type[Event], ...]] = (*RARE, StepFinished, StateKept)
    title = "Losses of ranks"
    opens_at_end = True

    def start(self) -> Story:
        return Story()

    def fold(self, state: Story, event: Event) -> Story:
        return state.folded(event)

    def fold_many(self, state: Story, stretch: Stretch) -> Story:
        return state.folded_many(stretch)

    def stop_positions(self, events: Events) -> Positions:
        """After each step, and after each thing that happened to a rank."""
        return merged(*(events.positions(kind) for kind in (*RARE, StepFinished))) + 1

    def picture(self, state: Story) -> Chart:
        import plotly.graph_objects as go

        if not state.spans():
            return Chart(go.Figure(layout=theme.blank(theme.axes())), self._why_empty(), self.title)
        losses = state.outlived()
        traces = [_loss(state, losses), *_lanes(state), *_struck(state), *_lost(state, losses), *_kept(state)]
        return Chart(go.Figure(traces, _layout(state)), " ".join(_account(state, losses)), self.title)

    def text(self, state: Story) -> str:
        if not state.spans():
            return self._why_empty()
        lines = _account(state, state.outlived())
        return "\n".join([lines[-1] if state.outlived() else lines[0], *lines])

    def _why_empty(self) -> str:
        if self.recording.live:
            return "Losses of ranks: none has started yet."
        return nothing_for("RecoveryView", "a training on ranks, with their losses", WRITE, self.recording)


def _loss(state: Story, losses: list[Loss]) -> Any:
    """The loss over time, with a gap where nobody trained."""
    import plotly.graph_objects as go

    kept = decimated(state.losses.array) if len(state.losses) else np.empty(0, np.int64)
    x, y = state.times.array[kept], state.losses.array[kept]
    gaps = np.searchsorted(x, [loss.known for loss in losses], side="right")
    x, y = np.insert(x, gaps, [loss.known for loss in losses]), np.insert(y, gaps, np.nan)
    return go.Scatter(x=x.astype(np.float32), y=y.astype(np.float32), name="loss of the batch", mode="lines",
                      line={"width": 1.5})  # fmt: skip


def _lanes(state: Story) -> list[Any]:
    """Who ran when: a thick line on the lane of the rank."""
    import plotly.graph_objects as go

    x: list[float | None] = []
    y: list[int | None] = []
    for span in state.spans():
        x += [span.start, span.stop if span.stop >= 0 else state.now, None]
        y += [span.rank, span.rank, None]
    return [go.Scatter(x=x, y=y, name="rank runs", mode="lines", line={"width": 9}, opacity=0.6, **_BELOW)]


_BELOW: dict[str, Any] = {"xaxis": "x2", "yaxis": "y2"}


def _struck(state: Story) -> list[Any]:
    """What was done by hand."""
    import plotly.graph_objects as go

    blows = [(event, rank) for event, rank in state.blows() if rank >= 0]
    return [
        go.Scatter(
            x=[state.seconds(e) for e, _ in mine], y=[rank for _, rank in mine], name=f"{action} by hand",
            mode="markers", marker={"symbol": symbol, "size": 12}, **_BELOW,
        )
        for action, symbol in MARKS.items()
        if (mine := [(e, rank) for e, rank in blows if e.action == action])
    ]  # fmt: skip


def _lost(state: Story, losses: list[Loss]) -> list[Any]:
    """When losses were known, and when the training went on."""
    import plotly.graph_objects as go

    if not losses:
        return []
    lanes = sorted({span.rank for span in state.spans()})
    traces = [go.Scatter(x=[loss.known for loss in losses], y=[loss.rank for loss in losses], name="loss is known",
                         mode="markers", marker={"symbol": "diamond", "size": 11}, **_BELOW)]  # fmt: skip
    if went_on := [loss for loss in losses if loss.resumed >= 0]:
        x = [at for loss in went_on for at in (loss.resumed, loss.resumed, None)]
        y = [lane for _ in went_on for lane in (lanes[0] - 0.4, lanes[-1] + 0.4, None)]
        traces.append(go.Scatter(x=x, y=y, name="all go on", mode="lines", line={"dash": "dot", "width": 2}, **_BELOW))
        found = [(loss, _loss_at(state, loss)) for loss in went_on]
        traces.append(go.Scatter(
            x=[loss.resumed for loss, y in found if y is not None], y=[y for _, y in found if y is not None],
            name="goes on from here", mode="markers", marker={"symbol": "triangle-right", "size": 11},
        ))  # fmt: skip
    return traces


def _loss_at(state: Story, loss: Loss) -> float | None:
    """The loss of the first step after the training went on."""
    after = np.flatnonzero(state.times.array > loss.known)
    return float(state.losses.array[after[0]]) if len(after) else None


def _kept(state: Story) -> list[Any]:
    """States that ranks kept in memory, and those that were written to disk."""
    import plotly.graph_objects as go

    traces, n = list[Any](), len(state.kept_times)
    if n:
        some = np.unique(np.linspace(0, n - 1, min(n, MOST_KEPT)).astype(int))
        traces.append(go.Scatter(x=state.kept_times.array[some], y=state.kept_ranks.array[some] + 0.28,
                                 name="state kept", mode="markers", marker={"symbol": "circle", "size": 4},
                                 **_BELOW))  # fmt: skip
    if written := [event for event in state.rare if isinstance(event, SnapshotWritten)]:
        traces.append(go.Scatter(x=[state.seconds(e) for e in written], y=[e.rank - 0.28 for e in written],
                                 name="written to disk", mode="markers", marker={"symbol": "square", "size": 7},
                                 **_BELOW))  # fmt: skip
    return traces


def _layout(state: Story) -> dict[str, Any]:
    ranks = sorted({span.rank for span in state.spans()})
    shown = [0.0, max(state.now, 1e-3) * 1.02]
    return theme.axes(
        "", "loss", height=300 + 34 * len(ranks), xaxis={"range": shown},
        yaxis={"domain": [0.5, 1.0]},
        xaxis2={"title": {"text": "seconds"}, "matches": "x", "anchor": "y2", "zeroline": False, "range": shown},
        yaxis2={"title": {"text": "rank"}, "domain": [0.0, 0.38], "range": [ranks[-1] + 0.6, ranks[0] - 0.6],
                "tickvals": ranks, "zeroline": False},
    )  # fmt: skip


def _account(state: Story, losses: list[Loss]) -> list[str]:
    """The story in sentences."""
    n_ranks = len({span.rank for span in state.spans()})
    steps = f"{counted(len(state.steps), 'step')} in {state.now:.3g} s"
    lost = counted(len(losses), "rank was lost", "ranks were lost")
    return [f"{counted(n_ranks, 'rank')}, {steps}; {lost}.", *map(_told, losses)]


def _told(loss: Loss) -> str:
    """One loss in words.

    Example:
        >>> _told(Loss(1, 2.0, 2.3, 5.5, 37, 37, "ranks"))
        'Rank 1 was struck at 2 s; its loss was known 0.3 s later; all went on 3.2 s after that, from the state of ranks after step 37: no step that was told was done again.'
        >>> _told(Loss(0, -1.0, 2.3)), _told(Loss(1, -1, 1, 2, 3, 5, "disk"))[-45:]
        ('The loss of rank 0 was known at 2.3 s; nothing has gone on yet.', 'k after step 3: steps 4 to 5 were done again.')
    """  # noqa: E501 -- what is printed is one line
    if loss.struck >= 0:
        head = f"Rank {loss.rank} was struck at {loss.struck:.3g} s; its loss was known"
        head += f" {loss.known - loss.struck:.2g} s later; "
    else:
        head = f"The loss of rank {loss.rank} was known at {loss.known:.3g} s; "
    if loss.resumed < 0:
        return f"{head}nothing has gone on yet."
    first, last = loss.repeated
    again = (
        "no step that was told was done again" if first > last
        else f"step {first} was done again" if first == last
        else f"steps {first} to {last} were done again"
    )  # fmt: skip
    where = f"from the state of {loss.source} after step {loss.step:,}" if loss.step else "from the beginning"
    return f"{head}all went on {loss.resumed - loss.known:.2g} s after that, {where}: {again}."
