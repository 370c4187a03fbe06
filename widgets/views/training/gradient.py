"""GradientView: how large each parameter's gradient is over the steps, and how its entries are spread at the latest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from lab.events import Event, ParameterMeasured, RunStarted, StepFinished
from widgets.fold import Stretch
from widgets.pictures import theme
from widgets.pictures.chart import Chart
from widgets.pictures.ticks import log_axis
from widgets.view import Picture, Spot, View
from widgets.views.nothing import nothing_for, shown_by
from widgets.views.series import Series
from widgets.views.training.lines import FEW, decimated, upright

LINES = 10
"""More lines than this cannot be told apart."""


class Spread(NamedTuple):
    """The histogram of one parameter at one step."""

    step: int
    n_entries: int
    minimum: float
    maximum: float
    n_nonfinite: int
    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Track:
    """One parameter over the steps.

    Attributes:
        step, norm: one entry for each measurement.
        latest: the histogram of the last one.
        first_bad: first step with an entry that was not finite, -1 if none.
    """

    step: Series
    norm: Series
    latest: Spread
    first_bad: int = -1


@dataclass(frozen=True, slots=True)
class Tracks:
    """The state of a GradientView: a Track for each parameter, in order of appearance."""

    by_name: Mapping[str, Track] = field(default_factory=lambda: MappingProxyType({}))

WRITE = "run = lab.fit(model, train), then GradientView(run)"


class GradientView(View[Tracks]):
    """Norms of the gradients by parameter over the steps, and the histogram of the chosen one at the latest step.

    Args:
        source: a Run, or a Recording with ParameterMeasured events.
        role: "gradient", or "value" for the parameters themselves.
    """

    listens = (RunStarted, ParameterMeasured)
    stops = (ParameterMeasured,)
    title = "Gradients"

    def __init__(self, source: Any, *, role: str = "gradient") -> None:
        super().__init__(source)
        self.role, self.selected = role, ""
        self._choice: Any = None

    def start(self) -> Tracks:
        return Tracks()

    def fold(self, state: Tracks, event: Event) -> Tracks:
        if isinstance(event, RunStarted):
            return Tracks()
        if not isinstance(event, ParameterMeasured) or event.role != self.role:
            return state
        bad = event.step if event.n_nonfinite else -1
        return _with(state, event.name, ([event.step], [event.norm]), _spread(event), bad)

    def fold_many(self, state: Tracks, stretch: Stretch) -> Tracks:
        begun = stretch.positions(RunStarted)
        if len(begun):
            state, stretch = Tracks(), stretch._replace(start=int(begun[-1]) + 1)
        columns = stretch.columns(ParameterMeasured)
        mine = np.flatnonzero(np.asarray(columns["role"]) == self.role)
        if not len(mine):
            return state
        names = np.asarray(columns["name"])[mine].astype(str)
        where = columns["position"][mine]
        for name in dict.fromkeys(names.tolist()):
            rows = np.flatnonzero(names == name)
            steps, bad = np.asarray(columns["step"])[mine][rows], np.asarray(columns["n_nonfinite"])[mine][rows] > 0
            norms = np.asarray(columns["norm"])[mine][rows]
            last = stretch.events[int(where[rows[-1]])]
            assert isinstance(last, ParameterMeasured)
            state = _with(state, name, (steps, norms), _spread(last), int(steps[bad.argmax()]) if bad.any() else -1)
        return state

    def stop_positions(self, events: Any) -> Any:
        """After the last measurement of each step."""
        rows = events.columns(ParameterMeasured)
        where, step = rows["position"], np.asarray(rows["step"])
        last = np.append(step[1:] != step[:-1], True) if len(step) else np.empty(0, bool)
        return where[last] + 1

    def chosen(self, state: Tracks) -> str:
        """The parameter whose histogram is shown: the selected one, else the first."""
        return self.selected if self.selected in state.by_name else next(iter(state.by_name), "")

    def picture(self, state: Tracks) -> Chart:
        import plotly.graph_objects as go

        name = self.chosen(state)
        if not name:
            return Chart(go.Figure(layout=theme.blank(_layout(""))), self._why_empty(), self.title)
        shown = [*([] if name in list(state.by_name)[:LINES] else [name]), *state.by_name][:LINES]
        traces = [_norm_line(n, k, state.by_name[n], n == name) for k, n in enumerate(shown)]
        traces.append(_histogram(name, state.by_name[name].latest, shown.index(name)))
        left_out = len(state.by_name) - len(shown)
        more = f" {left_out} more parameters are in the list only." if left_out else ""
        caption = (
            f"Above: norm of each parameter's {self.role} (log scale; a norm of 0 leaves a gap); "
            f"below: its entries in {name} at step {state.by_name[name].latest.step:,}.{more} {_trouble(state)}"
        )
        return Chart(
            go.Figure(traces, _layout(name, self.role, [state.by_name[n].norm.array for n in shown])),
            caption.strip(),
            self.title,
        )

    def spotlit(self, picture: Picture, state: Tracks, spot: Spot) -> Picture:
        """A line at the step of the event."""
        step, tracks = getattr(self.recording[spot.place], "step", -1), state.by_name.values()
        there = any(len(t.step) and t.step.array[0] <= step <= t.step.array[-1] for t in tracks)
        return upright(picture, step, spot.name) if isinstance(picture, Chart) and there else picture

    def _why_empty(self) -> str:
        if self.recording.live or len(self.recording.positions(ParameterMeasured)):
            return "Gradients by parameter: nothing was measured yet."
        if len(self.recording.positions(StepFinished)):
            return (
                "Gradients by parameter: this training measured none. To get them: lab.fit(model, train, "
                f"measure_every=10), then GradientView(run).{shown_by(self.recording, 'GradientView')}"
            )
        return nothing_for("GradientView", "the gradients of a training by parameter", WRITE, self.recording)

    def text(self, state: Tracks) -> str:
        name = self.chosen(state)
        if not name:
            return "Nothing was measured yet." if self.recording.live else self._why_empty()
        track = state.by_name[name]
        norm = theme.short(float(track.norm.array[-1]))
        lines = [f"Step {track.latest.step:,}: norm of the {self.role} of {name} is {norm}.", _trouble(state)]
        for other, t in state.by_name.items():
            bad = (
                f", {t.latest.n_nonfinite:,} of {t.latest.n_entries:,} entries not finite"
                if t.latest.n_nonfinite
                else ""
            )
            dead = ", all entries 0" if t.norm.array[-1] == 0 else ""
            lines.append(f"{other}: norm {theme.short(float(t.norm.array[-1]))}{dead}{bad}")
        return "\n".join(line for line in lines if line)

    # --- controls ---

    def build(self) -> Any:
        """The chart with a list of parameters above it."""
        import ipywidgets as ipw

        from widgets.live.buttons import ringed

        self._choice = ringed(ipw.Dropdown(
            description="Parameter", options=[], tooltip="Parameter whose entries are shown below"
        ))
        self._choice.observe(self._choose, "value")
        box = ipw.VBox([self._choice, self.host])
        self.shown()
        return box

    def _choose(self, change: Mapping[str, Any]) -> None:
        if change["new"] and change["new"] != self.chosen(self.state_at(self.position)):
            self.selected = change["new"]
            self.show(self.position)

    def shown(self) -> None:
        if self._choice is None:
            return
        state = self.state_at(self.position)
        options = tuple(state.by_name)
        if options and tuple(self._choice.options) != options:
            name = self.chosen(state)
            self._choice.options = options
            self._choice.value = name


def _with(state: Tracks, name: str, measured: tuple[Any, Any], latest: Spread, bad: int) -> Tracks:
    old = state.by_name.get(name) or Track(Series(), Series(), latest)
    first = old.first_bad if old.first_bad >= 0 else bad
    track = Track(old.step.extended(measured[0]), old.norm.extended(measured[1]), latest, first)
    return Tracks(MappingProxyType({**state.by_name, name: track}))


def _spread(e: ParameterMeasured) -> Spread:
    return Spread(e.step, e.n_entries, e.minimum, e.maximum, e.n_nonfinite, tuple(e.edges), tuple(e.counts))


def _trouble(state: Tracks) -> str:
    bad = [(t.first_bad, name) for name, t in state.by_name.items() if t.first_bad >= 0]
    step, first = min(bad, key=lambda found: found[0], default=(-1, ""))
    return f"First nan or infinity at step {step:,}, in {first}." if bad else ""


def _norm_line(name: str, k: int, track: Track, chosen: bool) -> Any:
    import plotly.graph_objects as go

    y = track.norm.array
    kept = decimated(y)
    drawn = np.where(np.isfinite(y[kept]) & (y[kept] > 0), y[kept], np.nan).astype(np.float32)
    return go.Scatter(
        x=track.step.array[kept].astype(np.int32), y=drawn, name=name,
        mode="lines" if len(kept) > FEW else "lines+markers",
        line={"width": 3 if chosen else 1.3, "dash": theme.DASHES[k % len(theme.DASHES)]},
    )  # fmt: skip


def _histogram(name: str, spread: Spread, line: int) -> Any:
    """The entries, in the colour of that line above."""
    import plotly.graph_objects as go

    edges = np.asarray(spread.edges, np.float64)
    return go.Bar(
        x=((edges[:-1] + edges[1:]) / 2).astype(np.float32) if len(edges) else [],
        y=np.asarray(spread.counts, np.int32), width=np.diff(edges).astype(np.float32) if len(edges) else None,
        name=f"entries of {name}", xaxis="x2", yaxis="y2", showlegend=False, meta={"like": line},
    )  # fmt: skip


def _layout(name: str, role: str = "gradient", norms: Sequence[Any] = ()) -> dict[str, Any]:
    more: dict[str, Any] = {
        "height": 460,
        "yaxis": {**log_axis(norms), "domain": [0.56, 1.0]},
        "xaxis": {"anchor": "y", "rangemode": "tozero", "tickformat": ",d"},
        "xaxis2": {
            "anchor": "y2",
            "title": {"text": f"entry of the {role} of {name}"},
            "zeroline": True,
            "automargin": True,
            "exponentformat": "power",
        },
        "yaxis2": {"anchor": "x2", "domain": [0.0, 0.34], "title": {"text": "entries"}, "zeroline": False},
        "bargap": 0.02,
    }
    return theme.axes("step", "norm", **more)
