"""MemoryView: memory held after each operation and each backward node, and points on what a checkpoint replays."""

from __future__ import annotations

from typing import Any

from lab.events import Event, MemoryBegun, MemorySampled, PeakFound
from lab.words import counted
from widgets.pictures import theme
from widgets.views.experiments.experiment import ExperimentView, Place, Rows, of
from widgets.views.words import n_bytes

UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("bytes", 1))


class MemoryView(ExperimentView):
    """What functions held over forward and backward, as `lab.measure_memory` measured it.

    Args:
        source: what that returned, or a Recording of it.

    Example:
        >>> import lab, numpy as np
        >>> x = lab.tensor(np.ones(50_000), requires_grad=True)
        >>> found = lab.measure_memory(plain=lambda: lab.sin(lab.sin(x)).sum())
        >>> MemoryView(found).sentence_at(3)[:21]
        'plain, forward of sin'
    """

    listens = (MemoryBegun, MemorySampled, PeakFound)
    stops = (MemorySampled, PeakFound)
    title = "Memory over forward and backward"
    shows = "the memory of forward and backward"
    write = "MemoryView(lab.measure_memory(plain=lambda: f(x).sum(), checkpointed=lambda: lab.checkpoint(f)(x).sum()))"

    def drawn(self, rows: Rows) -> tuple[Any, str]:
        import plotly.graph_objects as go

        samples = of(rows, MemorySampled)
        unit, size = unit_of(max((e.n_bytes for e in samples), default=1))
        layout = theme.axes("operation or backward node", unit, height=380, yaxis={"rangemode": "tozero"})
        figure = go.Figure(layout=layout)
        for k, way in enumerate(of(rows, MemoryBegun)[0].ways):
            mine = [e for e in samples if e.way == way]
            look = {"dash": theme.DASHES[k % len(theme.DASHES)], "width": 2}
            figure.add_scatter(
                x=[e.number for e in mine], y=[e.n_bytes / size for e in mine], name=way.replace("_", " "),
                mode="lines", line=look, meta={"like": k}, hovertext=[f"{e.phase}: {e.op}" for e in mine],
            )  # fmt: skip
            again = [e for e in mine if e.phase == "replay"]
            if again:
                figure.add_scatter(
                    x=[e.number for e in again], y=[e.n_bytes / size for e in again], mode="markers",
                    name="replayed", marker={"size": 8}, meta={"like": k},
                    hovertext=[e.op for e in again],
                )  # fmt: skip
            turn = [e.number for e in mine if e.phase == "backward"][:1]
            if turn:
                figure.add_scatter(
                    x=turn * 2, y=[0.0, max(e.n_bytes for e in mine) / size], mode="lines", showlegend=False,
                    name=f"backward of {way} begins", line={"dash": "dot", "width": 1}, meta={"like": k},
                )  # fmt: skip
        return figure, _caption(rows)

    def place_of(self, event: Event, rows: Rows) -> Place | None:
        if not isinstance(event, MemorySampled):
            return None
        return Place(event.number, event.n_bytes / unit_of(max(e.n_bytes for e in of(rows, MemorySampled)))[1])

    def told(self, rows: Rows) -> str:
        lines = [_line(e) for e in reversed(of(rows, PeakFound))]
        samples = of(rows, MemorySampled)
        if samples and not isinstance(rows[-1], PeakFound):
            now = samples[-1]
            lines.insert(0, f"{now.way}, {now.phase} of {now.op}: {n_bytes(now.n_bytes)} are held.")
        return "\n".join(lines) or "Nothing is measured yet."


def unit_of(most: int) -> tuple[str, int]:
    """The unit in which the largest number has at least one digit before the point.

    Example:
        >>> unit_of(3 * 2**20), unit_of(0)
        (('MiB', 1048576), ('bytes', 1))
    """
    return next(((name, size) for name, size in UNITS if most >= size), UNITS[-1])


def _line(e: PeakFound) -> str:
    again = f", {e.n_replayed:,} of them again for backward" if e.n_replayed else ""
    return f"{e.way.replace('_', ' ')}: at most {n_bytes(e.n_bytes)}, {counted(e.n_ops, 'operation')} ran{again}."


def _caption(rows: Rows) -> str:
    words = " ".join(map(_line, of(rows, PeakFound)))
    return (
        "Memory beyond what was held before, after each operation and each node of the walk back, as tracemalloc saw"
        f" it; dotted: backward begins; points: operations that ran again. {words}"
    ).strip()
