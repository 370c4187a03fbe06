"""BucketView: the lanes of a data-parallel step at one size of its buckets, and the time of a step against the size."""

from __future__ import annotations

from typing import Any

from lab.events import BucketsBegun, BucketStepTold, BucketsTimed, Event, LaneBusy
from lab.words import counted
from widgets.fold import Stretch
from widgets.pictures import theme
from widgets.views.experiments.experiment import ExperimentView, Place, Rows, of
from widgets.views.words import milliseconds, n_bytes

LANES = ("compute", "communication")
LOOKS: dict[str, tuple[str, dict[str, Any], str]] = {
    "differentiate": ("forward and backward", {"width": 11, "dash": "solid"}, "square"),
    "bucket": ("all-reduce of a bucket", {"width": 7, "dash": "solid"}, "line-ns-open"),
    "wait": ("waits for buckets", {"width": 3, "dash": "dot"}, "circle-open"),
}
"""By the kind of a span: what it is called, its line, the mark at both of its ends."""
BELOW: dict[str, Any] = {"xaxis": "x2", "yaxis": "y2"}


class BucketView(ExperimentView):
    """Steps by the size of their buckets, as `lab.measure_buckets` measured them.

    The slider goes over the sizes: above are the lanes of a step at that size, below it is marked on the curve.

    Args:
        source: what that returned, or a Recording of it.

    Example:
        >>> import lab
        >>> train, _ = lab.data.digits()
        >>> data = train.inputs, train.targets
        >>> found = lab.measure_buckets(lambda: lab.nn.mlp(64, 8, 10, rng=0), data, [512, None], rounds=1)
        >>> print(BucketView(found).sentence_at(len(found.recording)).split(":")[0])
        All at once (1 bucket)
    """

    listens = (BucketsBegun, BucketsTimed, LaneBusy, BucketStepTold)
    stops = (BucketStepTold,)
    title = "Size of the buckets"
    shows = "steps by the size of their buckets"
    write = "BucketView(lab.measure_buckets(make_model, train))"

    def fold(self, state: Rows, event: Event) -> Rows:
        """Lanes of a training, before any measurement began, are none of it."""
        return super().fold(state, event) if state or isinstance(event, BucketsBegun) else state

    def fold_many(self, state: Rows, stretch: Stretch) -> Rows:
        return super().fold_many(state, stretch) if state or len(stretch.positions(BucketsBegun)) else state

    def drawn(self, rows: Rows) -> tuple[Any, str]:
        import plotly.graph_objects as go

        begun, timed, told = of(rows, BucketsBegun)[0], of(rows, BucketsTimed), of(rows, BucketStepTold)
        places = _places(begun, timed)
        figure = go.Figure(layout=_layout(begun, timed))
        spans = _spans(rows)
        for kind in LOOKS:
            figure.add_trace(_lane([e for e in spans if e.kind == kind], kind))
        figure.add_scatter(
            x=[places[e.bucket_bytes] for e in timed], y=[e.elapsed_ms for e in timed], name="median step",
            mode="lines+markers", marker={"symbol": "circle", "size": 7}, hovertext=[_line(e) for e in timed], **BELOW,
        )  # fmt: skip
        if (chosen := _chosen(timed, told)) is not None:
            figure.add_scatter(
                x=[places[chosen.bucket_bytes]], y=[chosen.elapsed_ms], name="shown above", mode="markers",
                marker={"symbol": "diamond-open", "size": 16, "line": {"width": 2}}, hovertext=[_line(chosen)], **BELOW,
            )  # fmt: skip
        return figure, _caption(rows, chosen)

    def place_of(self, event: Event, rows: Rows) -> Place | None:
        if not isinstance(event, BucketsTimed | BucketStepTold):
            return None
        timed = of(rows, BucketsTimed)
        point = next((e for e in timed if e.bucket_bytes == event.bucket_bytes), None)
        places = _places(of(rows, BucketsBegun)[0], timed)
        return Place(places[point.bucket_bytes], point.elapsed_ms, "2") if point else None

    def told(self, rows: Rows) -> str:
        timed = of(rows, BucketsTimed)
        chosen = _chosen(timed, of(rows, BucketStepTold))
        first = [chosen] if chosen else []
        lines = [_line(e) for e in (*first, *(e for e in timed if e is not chosen))]
        lines[len(first) : len(first)] = [_hidden(_spans(rows))] if first else []
        return "\n".join(lines) or "Nothing is measured yet."


def _spans(rows: Rows) -> list[LaneBusy]:
    """Those of the step that was told last."""
    ends = [i for i, row in enumerate(rows) if isinstance(row, BucketStepTold)]
    if not ends:
        return []
    return of(rows[ends[-2] if len(ends) > 1 else 0 : ends[-1]], LaneBusy)


def _chosen(timed: list[BucketsTimed], told: list[BucketStepTold]) -> BucketsTimed | None:
    return next((e for e in timed if told and e.bucket_bytes == told[-1].bucket_bytes), None)


def _places(begun: BucketsBegun, timed: list[BucketsTimed]) -> dict[int, int]:
    """Where each size stands; all at once to the right of them all, for no bucket is larger."""
    most = max((begun.n_bytes, *(e.bucket_bytes for e in timed)))
    return {e.bucket_bytes: e.bucket_bytes or 4 * most for e in timed}


def _row(e: LaneBusy) -> int:
    return len(LANES) * e.rank + LANES.index(e.lane)


def _lane(spans: list[LaneBusy], kind: str) -> Any:
    import plotly.graph_objects as go

    name, line, symbol = LOOKS[kind]
    x, y, words = list[float | None](), list[int | None](), list[str]()
    for e in spans:
        x += [e.start_ms, e.stop_ms, None]
        y += [_row(e), _row(e), None]
        size = f" {e.bucket}, {n_bytes(e.n_bytes)}" if e.bucket >= 0 else ""
        words += [f"rank {e.rank}, {name}{size}: {milliseconds(e.stop_ms - e.start_ms)}"] * 3
    return go.Scatter(x=x, y=y, name=name, mode="lines+markers", line=line, hovertext=words, cliponaxis=False,
                      marker={"symbol": symbol, "size": 9})  # fmt: skip


def _size(bucket_bytes: int) -> str:
    return f"buckets of {n_bytes(bucket_bytes)}" if bucket_bytes else "all at once"


def _line(e: BucketsTimed) -> str:
    size, spread = _size(e.bucket_bytes), f"{milliseconds(e.fastest_ms)} to {milliseconds(e.slowest_ms)}"
    number = counted(e.n_buckets, "bucket")
    return f"{size[0].upper()}{size[1:]} ({number}): {milliseconds(e.elapsed_ms)} a step, {spread}."


def _hidden(spans: list[LaneBusy]) -> str:
    """How much of the sums of rank 0 ran while it computed."""
    mine = [e for e in spans if e.rank == 0]
    back = max((e.stop_ms for e in mine if e.kind == "differentiate"), default=0.0)
    sums = [e for e in mine if e.kind == "bucket"]
    total = sum(e.stop_ms - e.start_ms for e in sums)
    behind = sum(max(0.0, min(e.stop_ms, back) - e.start_ms) for e in sums)
    return f"Rank 0 summed for {milliseconds(total)}, of which {milliseconds(behind)} behind its computation."


def _layout(begun: BucketsBegun, timed: list[BucketsTimed]) -> dict[str, Any]:
    n_rows = len(LANES) * begun.world_size
    names = [name for rank in range(begun.world_size) for name in (f"rank {rank}", "sums")]
    places = _places(begun, timed)
    sizes = {at: n_bytes(size) if size else "all at once" for size, at in places.items()}
    ticks = {"tickvals": list(sizes), "ticktext": list(sizes.values())} if sizes else {}
    tops = [e.elapsed_ms for e in timed]
    return theme.axes(
        "ms since the step began", "", height=380 + 26 * n_rows, xaxis={"rangemode": "tozero", "anchor": "y"},
        yaxis={"domain": [0.56, 1.0], "range": [n_rows - 0.5, -0.5], "tickvals": list(range(n_rows)),
               "ticktext": names},
        xaxis2={"title": {"text": "bytes of a bucket"}, "type": "log", "anchor": "y2", "zeroline": False, **ticks},
        yaxis2={"title": {"text": "ms of a step"}, "domain": [0.0, 0.36], "anchor": "x2", "zeroline": False,
                "automargin": True, "range": [0.0, 1.1 * max(tops, default=1.0)]},
    )  # fmt: skip


def _caption(rows: Rows, chosen: BucketsTimed | None) -> str:
    begun, timed = of(rows, BucketsBegun)[0], of(rows, BucketsTimed)
    who = "threads of one process" if begun.where == "threads" else "worker processes"
    links = f"links slowed to {begun.throttle}" if begun.throttle else "links as fast as they are"
    ranks, cores = counted(begun.world_size, "rank"), counted(begun.n_cores, "core")
    how = f"a gradient of {n_bytes(begun.n_bytes)}, summed by {begun.algorithm}"
    words = [f"{ranks}, {who} on {cores}, {links}; {how}: medians of {counted(begun.repeats, 'step')}."]
    if chosen is not None:
        words += [f"Above, {_size(chosen.bucket_bytes)}: {milliseconds(chosen.elapsed_ms)}.", _hidden(_spans(rows))]
    if timed:
        best = min(timed, key=lambda e: e.elapsed_ms)
        words.append(f"Best: {_size(best.bucket_bytes)}, {milliseconds(best.elapsed_ms)}.")
    return " ".join([*words, *(["Somebody recorded meanwhile, which makes all slower."] if begun.told else [])])
