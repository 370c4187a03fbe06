"""SpreadView: how far replicas are apart, step by step, by how they are synchronised."""

from __future__ import annotations

from typing import Any

from lab.events import Event, SpreadBegun, SpreadMeasured
from lab.parallel.spread import way
from lab.words import counted
from widgets.pictures import theme
from widgets.pictures.theme import short
from widgets.views.experiments.experiment import ExperimentView, Place, Rows, of

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")


class SpreadView(ExperimentView):
    """The largest difference of a parameter between two replicas, as `lab.measure_spread` measured it.

    Args:
        source: what that returned, or a Recording of it.

    Example:
        >>> import lab
        >>> train, _ = lab.data.digits()
        >>> data = train.inputs, train.targets
        >>> found = lab.measure_spread(lambda: lab.nn.mlp(64, 8, 10, rng=0), data, every=[1], world_size=2, steps=4)
        >>> SpreadView(found).sentence_at(len(found.recording))
        'Step 4, gradients summed: all replicas have the same bits.'
    """

    listens = (SpreadBegun, SpreadMeasured)
    stops = (SpreadMeasured,)
    title = "Spread of replicas"
    shows = "how far replicas are apart"
    write = "SpreadView(lab.measure_spread(make_model, train))"

    def drawn(self, rows: Rows) -> tuple[Any, str]:
        import plotly.graph_objects as go

        begun, measured = of(rows, SpreadBegun)[0], of(rows, SpreadMeasured)
        figure = go.Figure(layout=theme.axes(
            "step", "largest difference of a parameter", height=420, xaxis={"range": [0, begun.steps * 1.02]},
            yaxis={"rangemode": "tozero"},
        ))  # fmt: skip
        for k, every in enumerate(dict.fromkeys(e.every for e in measured)):
            mine = [e for e in measured if e.every == every]
            figure.add_scatter(
                x=[e.step for e in mine], y=[e.largest for e in mine], name=way(every), mode="lines+markers",
                line={"dash": theme.DASHES[k % len(theme.DASHES)]}, cliponaxis=False,
                marker={"symbol": SYMBOLS[k % len(SYMBOLS)], "size": 6}, hovertext=[_line(e) for e in mine],
            )  # fmt: skip
        return figure, _caption(begun, measured)

    def place_of(self, event: Event, rows: Rows) -> Place | None:
        return Place(event.step, event.largest) if isinstance(event, SpreadMeasured) else None

    def told(self, rows: Rows) -> str:
        measured = of(rows, SpreadMeasured)
        last = {e.every: e for e in measured}
        return "\n".join(_line(e) for e in reversed(last.values())) or "Nothing is measured yet."


def _line(e: SpreadMeasured) -> str:
    apart = f"{short(e.largest)} apart" if e.largest else "all replicas have the same bits"
    return f"Step {e.step}, {way(e.every)}: {apart}."


def _caption(begun: SpreadBegun, measured: list[SpreadMeasured]) -> str:
    said = [f"{counted(begun.world_size, 'replica')}, each with its own {begun.batch_size} examples a step."]
    for every in dict.fromkeys(e.every for e in measured):
        mine = [e for e in measured if e.every == every]
        most = max(mine, key=lambda e: e.largest)
        name = way(every)
        told = f"{short(most.largest)} at step {most.step} at most" if most.largest else "exactly 0 at every step"
        said.append(f"{name[0].upper()}{name[1:]}: {told}.")
    return " ".join(said)
