"""MeansView: losses of a training whose micro-batches are weighed in several ways, and how far the curves parted."""

from __future__ import annotations

from typing import Any

from lab.events import Event, MeansBegun, MeansStepped
from lab.words import counted
from widgets.pictures import theme
from widgets.pictures.theme import short
from widgets.views.experiments.experiment import ExperimentView, Place, Rows, of

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")
BELOW: dict[str, Any] = {"xaxis": "x2", "yaxis": "y2"}
LEAST, MOST = 1e-9, 10.0
"""Ends of the axis of powers of ten; two losses that have the same bits stand at the lower one."""


class MeansView(ExperimentView):
    """Losses by the way in which micro-batches are weighed, as `lab.compare_means` found them.

    Args:
        source: what that returned, or a Recording of it.

    Example:
        >>> import lab
        >>> train, _ = lab.data.digits()
        >>> data = train.inputs, train.targets
        >>> found = lab.compare_means(lambda: lab.nn.mlp(64, 8, 10, rng=0), data, 4, steps=3)
        >>> [line.name for line in MeansView(found).picture_at(len(found.recording)).figure.data][1]
        'weighed by count'
    """

    listens = (MeansBegun, MeansStepped)
    stops = (MeansStepped,)
    title = "Means of micro-batches"
    shows = "losses by how micro-batches are weighed"
    write = "MeansView(lab.compare_means(make_model, train))"

    def drawn(self, rows: Rows) -> tuple[Any, str]:
        import plotly.graph_objects as go

        begun, stepped = of(rows, MeansBegun)[0], of(rows, MeansStepped)
        figure = go.Figure(layout=_layout(begun, stepped))
        ways = _ways(stepped)
        for k, (way, mine) in enumerate(ways.items()):
            look: dict[str, Any] = {
                "line": {"dash": theme.DASHES[k % len(theme.DASHES)]}, "hovertext": [_line(e) for e in mine],
                "marker": {"symbol": SYMBOLS[k % len(SYMBOLS)], "size": 6}, "mode": "lines+markers",
                "meta": {"like": k}, "x": [e.step for e in mine],
            }  # fmt: skip
            figure.add_scatter(y=_within([e.loss for e in mine], _top(stepped)), name=way, **look)
        for k, (way, mine) in list(enumerate(ways.items()))[1:]:
            apart = _apart(stepped, mine)
            figure.add_scatter(
                x=[e.step for e in mine], y=_within([max(LEAST, each) for each in apart], MOST), name=way,
                line={"dash": theme.DASHES[k % len(theme.DASHES)]}, mode="lines", meta={"like": k}, showlegend=False,
                hovertext=[f"{short(each)} from whole batches" for each in apart], **BELOW,
            )  # fmt: skip
        return figure, _caption(begun, stepped)

    def place_of(self, event: Event, rows: Rows) -> Place | None:
        return Place(event.step, event.loss) if isinstance(event, MeansStepped) else None

    def told(self, rows: Rows) -> str:
        ways = _ways(of(rows, MeansStepped))
        return "\n".join(_line(mine[-1]) for mine in reversed(ways.values())) or "Nothing is measured yet."


def _ways(stepped: list[MeansStepped]) -> dict[str, list[MeansStepped]]:
    """The first is whole batches."""
    return {way: [e for e in stepped if e.way == way] for way in dict.fromkeys(e.way for e in stepped)}


def _apart(stepped: list[MeansStepped], mine: list[MeansStepped]) -> list[float]:
    """How far each loss is from that of whole batches at the same step."""
    whole = {e.step: e.loss for e in stepped if e.way == stepped[0].way}
    return [abs(e.loss - whole[e.step]) if e.step in whole else float("nan") for e in mine]


def _line(e: MeansStepped) -> str:
    return f"Step {e.step}, {e.way}: loss {short(e.loss)}."


def _top(stepped: list[MeansStepped]) -> float:
    """Of the axis of losses: one that diverges leaves the frame, or nothing of the others could be seen."""
    return 1.25 * max((e.loss for e in stepped if e.way == stepped[0].way), default=1.0)


def _within(numbers: list[float], top: float) -> list[float | None]:
    return [value if value <= top else None for value in numbers]


def _layout(begun: MeansBegun, stepped: list[MeansStepped]) -> dict[str, Any]:
    least = min((e.loss for e in stepped), default=0.0)
    x = {"range": [0, begun.steps * 1.02], "zeroline": False}
    return theme.axes(
        "", "loss of the batch", height=560, xaxis={**x, "anchor": "y"},
        yaxis={"domain": [0.5, 1.0], "range": [0.9 * least, _top(stepped)]},
        xaxis2={"title": {"text": "step"}, "anchor": "y2", **x},
        yaxis2={"title": {"text": "from whole batches"}, "domain": [0.0, 0.4], "anchor": "x2", "type": "log",
                "exponentformat": "power", "automargin": True, "range": [-9, 1]},
    )  # fmt: skip


def _caption(begun: MeansBegun, stepped: list[MeansStepped]) -> str:
    rate = f"plain gradient descent with a learning rate of {short(begun.learning_rate)}"
    batches = f"The same batches of {begun.batch_size} in {begun.n_micro} micro-batches, {rate}"
    words = [f"{batches}; below, how far each loss is from that of whole batches."]
    for way, mine in list(_ways(stepped).items())[1:]:
        said = f"{way[0].upper()}{way[1:]}: at most {short(max(_apart(stepped, mine)))} apart"
        beyond = ", and leaves the frame" if max(e.loss for e in mine) > _top(stepped) else ""
        ended = f", ended after {counted(len(mine), 'step')}: no finite number" if len(mine) < begun.steps else ""
        words.append(f"{said}{beyond}{ended}.")
    return " ".join(words)
