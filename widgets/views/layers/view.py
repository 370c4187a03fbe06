"""LayersView: mean and deviation of what each layer gives, its share of dead units, and the gradient that comes back.

From left to right as the layers run: a gradient that vanishes or explodes is a slope.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.events import Event, LayerMeasured, RunStarted, StepFinished
from widgets.fold import Events, Positions
from widgets.pictures import theme
from widgets.pictures.chart import Chart
from widgets.pictures.ticks import log_axis
from widgets.view import View
from widgets.views.layers.profiles import Profile, Profiles
from widgets.views.nothing import nothing_for, shown_by

WRITE = "run = lab.fit(model, train), then LayersView(run)"
LINES = {"deviation": ("x", "y"), "gradient norm": ("x2", "y2"), "mean": ("x3", "y3")}
BARS = {"dead units, %": ("x4", "y4")}
"""What is drawn, and on which axes; panel by panel, as plotly keeps them."""
LEFT, RIGHT, UPPER, LOWER = [0.0, 0.4], [0.6, 1.0], [0.62, 1.0], [0.0, 0.38]


class LayersView(View[Profiles]):
    """What each layer gives and what comes back to it, at the newest measured step beside the first.

    Args:
        source: a Run of a model made of modules, or its Recording.

    Example:
        >>> import lab
        >>> from lab.nn import mlp
        >>> train, _ = lab.data.digits()
        >>> run = lab.fit(mlp(64, 16, 10, rng=0), train, epochs=1, measure_every=20)
        >>> _ = run.wait()
        >>> print(LayersView(run).sentence_at(len(run.recording)))
        Step 21: 3 layers.
    """

    listens = (RunStarted, LayerMeasured)
    stops = (LayerMeasured,)
    title = "Layers"
    opens_at_end = True

    def start(self) -> Profiles:
        return Profiles()

    def fold(self, state: Profiles, event: Event) -> Profiles:
        return state.folded(event)

    def stop_positions(self, events: Events) -> Positions:
        """After the last layer of each measured step."""
        where, step = events.positions(LayerMeasured), np.asarray(events.columns(LayerMeasured)["step"])
        where = where[: len(step)]
        last = np.append(step[1:] != step[:-1], True) if len(step) else np.empty(0, bool)
        stops: Positions = where[last] + 1
        return stops

    # --- the picture ---

    def picture(self, state: Profiles) -> Chart:
        import plotly.graph_objects as go

        newest = state.newest
        if not newest.layers:
            return Chart(go.Figure(layout=theme.blank(_layout(0))), self._why_empty(), self.title)
        shown = [newest] if state.first.step == newest.step else [state.first, newest]
        lines = [_line(profile, name, profile is newest) for name in LINES for profile in shown]
        caption = (
            f"By layer, as they run, at step {newest.step}: what each gives, the gradient of the loss with respect to"
            f" that, and the share of its units that are 0 for every example. {newest.verdict()}"
        )
        layout = _layout(len(newest.layers), shown)
        return Chart(go.Figure([*lines, _bars(newest)], layout), caption.strip(), self.title)

    def text(self, state: Profiles) -> str:
        newest = state.newest
        if not newest.layers:
            return self._why_empty()
        head = f"Step {newest.step}: {len(newest.layers)} layer{'s' * (len(newest.layers) != 1)}."
        return "\n".join([f"{head} {newest.verdict()}".strip(), *(layer.account() for layer in newest.layers)])

    def _why_empty(self) -> str:
        if self.recording.live or len(self.recording.positions(LayerMeasured)):
            return "Layers: nothing was measured yet."
        if len(self.recording.positions(StepFinished)):
            return (
                "Layers: this training measured none. It measures a model of modules, in one process:"
                f" lab.fit(model, train, measure_every=10).{shown_by(self.recording, 'LayersView')}"
            )
        return nothing_for("LayersView", "the layers of a training", WRITE, self.recording)


def _line(profile: Profile, name: str, newest: bool) -> Any:
    """One statistic of a step, by layer."""
    import plotly.graph_objects as go

    field = {"deviation": "deviation", "gradient norm": "gradient", "mean": "mean"}[name]
    numbers = np.array([getattr(layer, field) for layer in profile.layers], np.float64)
    (x, y), look = LINES[name], {"width": 2.2 if newest else 1.4, "dash": "solid" if newest else "dot"}
    return go.Scatter(
        x=_places(profile), y=numbers if name == "mean" else _positive(numbers), name=f"step {profile.step}",
        mode="lines+markers", line=look, xaxis=x, yaxis=y, showlegend=name == "deviation", meta={"like": int(newest)},
        text=[layer.label for layer in profile.layers],
    )  # fmt: skip


def _bars(profile: Profile) -> Any:
    """The share of dead units, by layer."""
    import plotly.graph_objects as go

    (x, y), dead = BARS["dead units, %"], np.array([100 * layer.dead for layer in profile.layers])
    return go.Bar(
        x=_places(profile), y=dead, name="dead units", showlegend=False, xaxis=x, yaxis=y, meta={"like": 1},
        hovertext=[layer.label for layer in profile.layers],
    )  # fmt: skip


def _places(profile: Profile) -> list[int]:
    return list(range(1, len(profile.layers) + 1))


def _positive(numbers: Any) -> Any:
    """For a log axis: 0 has no place on it."""
    return np.where(np.isfinite(numbers) & (numbers > 0), numbers, np.nan)


def _layout(n_layers: int, shown: Sequence[Profile] = ()) -> dict[str, Any]:
    title = {name: {"text": name} for name in (*LINES, *BARS)}
    plain: dict[str, Any] = {"zeroline": False, "automargin": True}
    whole = {**plain, "tick0": 1, "dtick": max(1, math.ceil(n_layers / 8))}
    order = {**whole, "title": {"text": "layer"}}
    given = [[layer.deviation for layer in profile.layers] for profile in shown]
    back = [[layer.gradient for layer in profile.layers] for profile in shown]
    log = {**plain, "domain": UPPER}
    return theme.axes(
        "", "", height=520,
        xaxis={**whole, "domain": LEFT, "anchor": "y"}, yaxis={**log, **log_axis(given), "title": title["deviation"]},
        xaxis2={**whole, "domain": RIGHT, "anchor": "y2"},
        yaxis2={**log, **log_axis(back), "anchor": "x2", "title": title["gradient norm"]},
        xaxis3={**order, "domain": LEFT, "anchor": "y3"},
        yaxis3={**plain, "domain": LOWER, "anchor": "x3", "title": title["mean"]},
        xaxis4={**order, "domain": RIGHT, "anchor": "y4"},
        yaxis4={**plain, "domain": LOWER, "anchor": "x4", "range": [0, 100], "title": title["dead units, %"]},
    )  # fmt: skip
