"""RootLinkView: bytes on the link of the root against the number of ranks, of broadcasts and all-reduces."""

from __future__ import annotations

from typing import Any

from lab.events import Event, RootLinkBegun, RootLinkMeasured
from lab.words import counted
from widgets.pictures import theme
from widgets.views.experiments.experiment import ExperimentView, Place, Rows, of
from widgets.views.words import n_bytes

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")


class RootLinkView(ExperimentView):
    """What rank 0 sends and receives, as `lab.measure_root_link` counted it.

    Args:
        source: what that returned, or a Recording of it.

    Example:
        >>> import lab
        >>> found = lab.measure_root_link([2, 4], plans=[("all_reduce", "ring")])
        >>> RootLinkView(found).sentence_at(len(found.recording))
        'all_reduce by ring, 4 ranks: 3 buffers on the link of rank 0 (sent 19.7 KiB, received 19.7 KiB).'
    """

    listens = (RootLinkBegun, RootLinkMeasured)
    stops = (RootLinkMeasured,)
    title = "Link of the root"
    shows = "bytes on the link of the root by ranks"
    write = "RootLinkView(lab.measure_root_link())"

    def drawn(self, rows: Rows) -> tuple[Any, str]:
        import plotly.graph_objects as go

        whole, measured = of(rows, RootLinkBegun)[0].n_bytes, of(rows, RootLinkMeasured)
        figure = go.Figure(layout=theme.axes("ranks", "buffers sent and received by rank 0", height=420,
                                             xaxis={"dtick": 1}, yaxis={"rangemode": "tozero"}))  # fmt: skip
        for k, (operation, algorithm) in enumerate(dict.fromkeys((e.operation, e.algorithm) for e in measured)):
            mine = [e for e in measured if (e.operation, e.algorithm) == (operation, algorithm)]
            figure.add_scatter(
                x=[e.world_size for e in mine], y=[_bytes(e) / whole for e in mine], name=f"{operation}, {algorithm}",
                mode="lines+markers", meta={"like": k}, line={"dash": "solid" if operation == "broadcast" else "dash"},
                marker={"symbol": SYMBOLS[k % len(SYMBOLS)], "size": 8}, hovertext=[_line(e, whole) for e in mine],
            )  # fmt: skip
        caption = (
            f"What is on the link of rank 0, in both directions, when {n_bytes(whole)} go from it to all (broadcast,"
            " solid) or are summed on all (all-reduce, dashed); counted hop by hop in runs on threads. The root of a"
            " flat broadcast sends to each rank, that of a naive sum also receives from each; a ring stays below 4"
            " buffers."
        )
        return figure, caption

    def place_of(self, event: Event, rows: Rows) -> Place | None:
        if not isinstance(event, RootLinkMeasured):
            return None
        return Place(event.world_size, _bytes(event) / of(rows, RootLinkBegun)[0].n_bytes)

    def told(self, rows: Rows) -> str:
        whole, measured = of(rows, RootLinkBegun)[0].n_bytes, of(rows, RootLinkMeasured)
        return "\n".join(_line(e, whole) for e in measured[::-1]) or "Nothing is counted yet."


def _bytes(e: RootLinkMeasured) -> int:
    return e.sent_bytes + e.received_bytes


def _line(e: RootLinkMeasured, whole: int) -> str:
    amount = _bytes(e) / whole
    words = f"{amount:.3g} buffer{'s' * (amount != 1)} on the link of rank 0"
    both = f"sent {n_bytes(e.sent_bytes)}, received {n_bytes(e.received_bytes)}"
    return f"{e.operation} by {e.algorithm}, {counted(e.world_size, 'rank')}: {words} ({both})."
