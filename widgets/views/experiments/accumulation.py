"""AccumulationView: what a step holds and how long it takes, by the size of its micro-batches."""

from __future__ import annotations

from typing import Any

from lab.events import AccumulationBegun, AccumulationMeasured, Event
from lab.words import counted
from widgets.pictures import theme
from widgets.pictures.theme import short
from widgets.views.experiments.experiment import ExperimentView, Place, Rows, of
from widgets.views.experiments.memory import unit_of
from widgets.views.words import milliseconds, n_bytes

BELOW: dict[str, Any] = {"xaxis": "x2", "yaxis": "y2"}


class AccumulationView(ExperimentView):
    """Memory and time of a step by the size of its micro-batches, as `lab.measure_accumulation` measured them.

    Args:
        source: what that returned, or a Recording of it.

    Example:
        >>> import lab
        >>> train, _ = lab.data.digits()
        >>> data = train.inputs, train.targets
        >>> found = lab.measure_accumulation(lambda: lab.nn.mlp(64, 32, 10, rng=0), data, [256, 64], rounds=1)
        >>> print(AccumulationView(found).sentence_at(len(found.recording)).split(":")[0])
        4 micro-batches of 64
    """

    listens = (AccumulationBegun, AccumulationMeasured)
    stops = (AccumulationMeasured,)
    title = "Size of the micro-batches"
    shows = "steps by the size of their micro-batches"
    write = "AccumulationView(lab.measure_accumulation(make_model, train))"

    def drawn(self, rows: Rows) -> tuple[Any, str]:
        import plotly.graph_objects as go

        begun, measured = of(rows, AccumulationBegun)[0], of(rows, AccumulationMeasured)
        unit, size = _unit(begun, measured)
        figure = go.Figure(layout=_layout(begun, measured, unit))
        sizes = [e.micro_batch for e in measured]
        figure.add_scatter(
            x=sizes, y=[e.peak_bytes / size for e in measured], name="held at most", mode="lines+markers",
            marker={"symbol": "circle", "size": 8}, hovertext=[_line(e, begun) for e in measured],
        )  # fmt: skip
        if begun.limit_bytes and sizes:
            above = [e for e in measured if not _fits(e, begun)]
            figure.add_scatter(
                x=[e.micro_batch for e in above], y=[e.peak_bytes / size for e in above], name="above the limit",
                mode="markers", marker={"symbol": "x", "size": 12}, hovertext=[_line(e, begun) for e in above],
            )  # fmt: skip
            figure.add_scatter(
                x=[min(sizes), max(sizes)], y=[begun.limit_bytes / size] * 2, name="limit", mode="lines",
                line={"dash": "dash", "width": 2}, hovertext=[f"limit: {n_bytes(begun.limit_bytes)}"] * 2,
            )  # fmt: skip
        figure.add_scatter(
            x=sizes, y=[e.elapsed_ms for e in measured], name="median step", mode="lines+markers",
            marker={"symbol": "square", "size": 8}, hovertext=[_line(e, begun) for e in measured], **BELOW,
        )  # fmt: skip
        figure.add_scatter(
            x=sizes, y=[e.fastest_ms for e in measured], name="fastest step", mode="lines",
            line={"dash": "dot", "width": 2}, hovertext=[_line(e, begun) for e in measured], **BELOW,
        )  # fmt: skip
        return figure, _caption(begun, measured)

    def place_of(self, event: Event, rows: Rows) -> Place | None:
        if not isinstance(event, AccumulationMeasured):
            return None
        _, size = _unit(of(rows, AccumulationBegun)[0], of(rows, AccumulationMeasured))
        return Place(event.micro_batch, event.peak_bytes / size)

    def told(self, rows: Rows) -> str:
        begun, measured = of(rows, AccumulationBegun)[0], of(rows, AccumulationMeasured)
        return "\n".join(_line(e, begun) for e in reversed(measured)) or "Nothing is measured yet."


def _fits(e: AccumulationMeasured, begun: AccumulationBegun) -> bool:
    return not begun.limit_bytes or e.peak_bytes <= begun.limit_bytes


def _unit(begun: AccumulationBegun, measured: list[AccumulationMeasured]) -> tuple[str, int]:
    return unit_of(max((begun.limit_bytes, *(e.peak_bytes for e in measured))))


def _line(e: AccumulationMeasured, begun: AccumulationBegun) -> str:
    what = f"{counted(e.n_micro, 'micro-batch', 'micro-batches')} of {e.micro_batch}"
    above = "" if _fits(e, begun) else ", above the limit"
    times = f"{milliseconds(e.elapsed_ms)} a step, {milliseconds(e.fastest_ms)} to {milliseconds(e.slowest_ms)}"
    apart = f"gradient {short(e.difference)} from the whole batch's" if e.difference else "the whole batch's gradient"
    return f"{what}: at most {n_bytes(e.peak_bytes)}{above}; {times}; {apart}."


def _layout(begun: AccumulationBegun, measured: list[AccumulationMeasured], unit: str) -> dict[str, Any]:
    sizes, (_, size) = [e.micro_batch for e in measured], _unit(begun, measured)
    most = max((begun.limit_bytes, *(e.peak_bytes for e in measured)), default=0) / size or 1.0
    x = {"type": "log", "zeroline": False, "tickvals": sizes, "ticktext": [str(size) for size in sizes]}
    return theme.axes(
        "", f"{unit} held at most", height=520, xaxis={**x, "anchor": "y"},
        yaxis={"domain": [0.56, 1.0], "range": [0.0, 1.1 * most]},
        xaxis2={"title": {"text": "examples of a micro-batch"}, "anchor": "y2", **x},
        yaxis2={"title": {"text": "ms of a step"}, "domain": [0.0, 0.44], "anchor": "x2", "automargin": True,
                "range": [0.0, 1.1 * max((e.elapsed_ms for e in measured), default=1.0)]},
    )  # fmt: skip


def _caption(begun: AccumulationBegun, measured: list[AccumulationMeasured]) -> str:
    held = "Memory is what a step holds beyond what was held before, as tracemalloc saw it"
    times = f"times are medians of {counted(begun.repeats, 'step')}"
    words = [f"The same {counted(begun.batch_size, 'example')} for each update. {held}; {times}."]
    if begun.limit_bytes and measured:
        fit = [e.micro_batch for e in measured if _fits(e, begun)]
        which = f"micro-batches of {', '.join(map(str, fit))} fit" if fit else "none fits"
        words.append(f"Dashed: a limit of {n_bytes(begun.limit_bytes)}, marked, not enforced: {which}.")
    if measured:
        most = max(e.difference for e in measured)
        words.append(f"Gradients are {short(most)} from the whole batch's at most, as a part of its largest entry.")
    return " ".join([*words, *(["Somebody recorded meanwhile, which makes all slower."] if begun.told else [])])
