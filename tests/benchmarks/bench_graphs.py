"""Figures of GraphView on graphs of real size: how long one takes to open, and what an update costs while it grows.

Run: python tests/benchmarks/bench_graphs.py. The recordings are of real runs, a transformer and a loop without modules;
they are shown event by event as they came. An update is what the kernel does for one operation: fold, picture, words,
tree, difference, JSON, in CPU time of its thread. Medians, the ninth in ten, and the worst, in one process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from statistics import median, quantiles
from time import perf_counter, thread_time
from typing import Any

import numpy as np

import lab
from lab.events import Event, OpRecorded, Recording
from lab.nn import Transformer, cross_entropy
from widgets.pictures.patch import diff
from widgets.pictures.tree import tree_of
from widgets.views.graph.view import GraphView


def transformer(n_blocks: int) -> Recording:
    """Forward and backward of a decoder: 47 operations and 16 parameters a block."""
    model = Transformer(27, 8, n_blocks=n_blocks, n_heads=2, n_places=8, rng=0)
    tokens = np.random.default_rng(0).integers(0, 27, (2, 4))
    with lab.record(detail="statistics") as rec:
        cross_entropy(model(tokens), tokens).backward()
    return rec


def loop(n: int) -> Recording:
    """Forward and backward of a recurrence, unrolled: four operations a turn, no modules."""
    rng = np.random.default_rng(0)
    w = lab.tensor(rng.normal(size=(4, 4)) * 0.3, requires_grad=True, name="W")
    u = lab.tensor(rng.normal(size=(3, 4)), requires_grad=True, name="U")
    with lab.record(detail="statistics") as rec:
        h = np.zeros((2, 4))
        for _ in range(n):
            h = np.tanh(rng.normal(size=(2, 3)) @ u + h @ w)
        (h * h).sum().backward()
    return rec


class Growing:
    """A recording as it was when it had `n` events."""

    live = True

    def __init__(self, rec: Recording) -> None:
        self.rec, self.n = rec, 0

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, where: Any) -> Any:
        return self.rec[where]

    def columns(self, kind: type[Event], start: int = 0, stop: int | None = None) -> Any:
        return self.rec.columns(kind, start, self.n if stop is None else min(stop, self.n))

    def positions(self, kind: type[Event]) -> Any:
        every = self.rec.positions(kind)
        return every[: int(np.searchsorted(every, self.n))]


class Page:
    """What a host does with a picture, without a browser."""

    def __init__(self, view: GraphView) -> None:
        self.view, self.latest, self.sent, self.n_bytes = view, None, {}, 0
        self.parts: dict[str, list[float]] = {}

    def show(self, n: int) -> float:
        times = [thread_time()]

        def did(what: str) -> None:
            times.append(thread_time())
            self.parts.setdefault(what, []).append(times[-1] - times[-2])

        self.view.recording.n = n
        state = self.view.state_at(n)
        did("fold")
        picture = self.view.picture(state)
        did("picture")
        text = self.view.text(state)
        did("words")
        tree = tree_of(picture, self.latest)
        self.latest, whole = (picture, tree), {**tree, "text": text}
        did("tree")
        ops = diff(self.sent, whole)
        did("difference")
        self.n_bytes = len(json.dumps(ops, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode())
        did("JSON")
        self.sent = whole
        return times[-1] - times[0]


def opened(rec: Recording) -> tuple[float, int, int]:
    """Seconds from the recording to what is sent, and how many boxes and bytes that is."""
    start = perf_counter()
    page = Page(GraphView(finished(rec)))
    page.show(len(rec))
    return perf_counter() - start, len(page.latest[0].nodes), page.n_bytes


def finished(rec: Recording) -> Growing:
    grown = Growing(rec)
    grown.n = len(rec)
    return grown


def growth(rec: Recording, n_nodes: int, forward: bool, open_all: bool, n: int = 200) -> Page:
    """Show `n` updates of a growing recording, up to where it has so many nodes; then the page with its times."""
    view = GraphView(Growing(rec))
    view.open_all(open_all)
    page = Page(view)
    ops = rec.positions(OpRecorded)
    end = int(ops[-1])
    ends = (
        [int(p) + 2 for p in ops if _nodes(rec, int(p)) <= n_nodes][-n:]
        if forward
        else list(range(end + 10, end + 10 + 2 * n, 2))
    )
    page.show(ends[0] - 2)
    page.parts.clear()
    for at in ends:
        page.parts.setdefault("all", []).append(page.show(at))
    return page


def _nodes(rec: Recording, position: int) -> int:
    from lab.events import LeafUsed

    return sum(int(np.searchsorted(rec.positions(kind), position)) for kind in (LeafUsed, OpRecorded))


def told(what: str, times: Sequence[float]) -> None:
    """Print median, ninth in ten and worst in ms."""
    tenth = quantiles(times, n=10)[-1]
    print(f"{what:62} {median(times) * 1e3:8.3f} ms   9 in 10 {tenth * 1e3:8.3f}   worst {max(times) * 1e3:8.3f}")


def main() -> None:
    runs: dict[str, Recording] = {}
    makers: dict[str, Callable[[], Recording]] = {
        "24-block transformer": lambda: transformer(24), "80-block transformer": lambda: transformer(80),
        "loop of 1,250 turns": lambda: loop(1250),
    }  # fmt: skip
    for name, make in makers.items():
        rec = runs[name] = make()
        times = [opened(rec) for _ in range(5)]
        seconds, boxes, n_bytes = sorted(times)[2]
        nodes = _nodes(rec, len(rec))
        print(
            f"open {name}: {nodes:,} nodes, {len(rec):,} events -> {boxes} boxes, {n_bytes:,} B{seconds:8.3f} s",
            flush=True,
        )
    for name, sizes in (("80-block transformer", (500, 5000)), ("loop of 1,250 turns", (500, 5000))):
        for size in sizes:
            for open_all in (False, True):
                for forward in (True, False) if size == sizes[-1] else (True,):
                    page = growth(runs[name], size, forward, open_all)
                    shown = "all open" if open_all else "by module"
                    way = "forward" if forward else "backward"
                    boxes = len(page.latest[0].nodes) if page.latest else 0
                    told(f"{name}, {way}, {size:,} nodes, {shown} ({boxes:,} boxes)", page.parts.pop("all"))
                    if "-v" in sys.argv:
                        for part, times_of in page.parts.items():
                            told(f"    {part}", times_of)


if __name__ == "__main__":
    main()
