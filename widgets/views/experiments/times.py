"""TimesView: how long collectives take by size, measured and simulated on simple links, and where their lines cross."""

from __future__ import annotations

from typing import Any

from lab.events import CrossingFound, Event, LinkFitted, TimeMeasured, TimesBegun, TimeSimulated
from lab.words import counted
from widgets.pictures import theme
from widgets.pictures.theme import short
from widgets.pictures.ticks import log_axis
from widgets.views.experiments.experiment import ExperimentView, Place, Rows, of
from widgets.views.words import milliseconds, n_bytes

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")


class TimesView(ExperimentView):
    """Times of collectives by size, as `lab.measure_collectives` measured and simulated them.

    Args:
        source: what that returned, or a Recording of it.

    Example:
        >>> import lab
        >>> found = lab.measure_collectives(sizes=[1024, 65536], world_size=2, repeats=1)
        >>> [line.name for line in TimesView(found).picture_at(len(found.recording)).figure.data][:4]
        ['ring', 'ring, simulated', 'tree', 'tree, simulated']
    """

    listens = (TimesBegun, TimeMeasured, LinkFitted, TimeSimulated, CrossingFound)
    stops = (TimeMeasured, LinkFitted, CrossingFound)
    title = "Times of collectives"
    shows = "times of collectives by size"
    write = "TimesView(lab.measure_collectives())"

    def drawn(self, rows: Rows) -> tuple[Any, str]:
        import plotly.graph_objects as go

        measured, simulated = of(rows, TimeMeasured), of(rows, TimeSimulated)
        times = [e.elapsed_ms for e in measured] + [e.elapsed_ms for e in simulated] or [1.0]
        sizes = [e.n_bytes for e in measured] or [1]
        figure = go.Figure(layout=_layout(sizes, times))
        names = list(dict.fromkeys(e.algorithm for e in measured))
        for k, name in enumerate(names):
            mine, paper = ([e for e in some if e.algorithm == name] for some in (measured, simulated))
            figure.add_scatter(
                x=[e.n_bytes for e in mine], y=[e.elapsed_ms for e in mine], name=name, mode="lines+markers",
                meta={"like": k}, marker={"symbol": SYMBOLS[k % len(SYMBOLS)], "size": 8},
                hovertext=[_line(e) for e in mine],
            )  # fmt: skip
            figure.add_scatter(
                x=[e.n_bytes for e in paper], y=[e.elapsed_ms for e in paper], name=f"{name}, simulated", mode="lines",
                meta={"like": k}, line={"dash": "dash"}, hovertext=[_line(e) for e in paper],
            )  # fmt: skip
        for e in of(rows, CrossingFound):
            figure.add_scatter(
                x=[e.at] * 2, y=[min(times), max(times)], mode="lines", name=_told(e), showlegend=False,
                line={"dash": "solid" if e.sweep == "measured" else "dot", "width": 1.5}, meta={"like": 7},
            )  # fmt: skip
        return figure, _caption(rows)

    def place_of(self, event: Event, rows: Rows) -> Place | None:
        if isinstance(event, (TimeMeasured, TimeSimulated)):
            return Place(event.n_bytes, event.elapsed_ms)
        return None

    def told(self, rows: Rows) -> str:
        measured, simulated = of(rows, TimeMeasured), of(rows, TimeSimulated)
        if not measured:
            return "Nothing is measured yet."
        lines = [f"{e.sweep.capitalize()}{_told(e).removeprefix(e.sweep)}." for e in of(rows, CrossingFound)][::-1]
        lines += [_link(e) for e in of(rows, LinkFitted)]
        return "\n".join([*lines, *map(_line, measured[::-1]), *map(_line, simulated)])


def _line(e: TimeMeasured | TimeSimulated) -> str:
    way = "measured" if isinstance(e, TimeMeasured) else "simulated"
    return f"{e.algorithm}, {n_bytes(e.n_bytes)}: {milliseconds(e.elapsed_ms)}, {way}."


def _told(e: CrossingFound) -> str:
    return f"{e.sweep}: from {n_bytes(e.at)} on {e.faster} beats {e.slower}"


def _link(e: LinkFitted) -> str:
    numbers = f"a latency of {1e6 * e.latency_s:.3g} µs and {short(e.bytes_per_s / 1e6)} MB/s"
    fitted = f", fitted to {e.fitted_to} with the smallest and the largest buffer" if e.fitted_to else ", as given"
    return f"Simulated links have {numbers}{fitted}."


def _layout(sizes: list[int], times: list[float]) -> dict[str, Any]:
    powers = [4**k for k in range(1, 20) if min(sizes) <= 4**k <= max(sizes)]
    ticks = {"tickvals": powers, "ticktext": [n_bytes(n) for n in powers]} if len(powers) > 1 else {}
    return theme.axes("bytes of the buffer of a rank", "ms", height=420, xaxis={"type": "log", **ticks},
                      yaxis=log_axis([times]))  # fmt: skip


def _caption(rows: Rows) -> str:
    begun = of(rows, TimesBegun)[0]
    who = "threads of one process" if begun.where == "threads" else "worker processes"
    words = (
        f"{begun.operation} on {begun.world_size} ranks, {who} on {counted(begun.n_cores, 'core')}: solid lines are"
        f" measured, medians of {begun.repeats}."
    )
    for e in of(rows, LinkFitted):
        words += f" Dashed: simulation without waiting for cores. {_link(e)}"
    crossings = of(rows, CrossingFound)
    words += f" Uprights, {'; '.join(map(_told, crossings))}." if crossings else ""
    return words + (" Somebody recorded meanwhile, which makes all slower." if begun.told else "")
