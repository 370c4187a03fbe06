"""The pieces of a schedule's picture: bars in lanes, the arrows of a bar, the critical path, axis and words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from lab.events import EquationRan
from lab.words import counted
from widgets.layout.lanes import BAR, HEAD, WIDTH, Lanes
from widgets.pictures.measure import text_width
from widgets.pictures.scene import Edge, Mark, Node
from widgets.views.schedule.moment import GraphRun
from widgets.views.words import milliseconds, share

THIN = 1.0
"""Pixels; a narrower bar is still drawn so wide."""
MOST_BARS = 400
"""The longest so many equations have bars; the rest of a longer graph would be narrower than a pixel."""


def bars_of(run: GraphRun, path: Sequence[int], board: Lanes) -> list[Node]:
    """The equations as bars; those on the critical path have a strong outline."""
    shown = sorted(run.ran, key=lambda e: e.start_ns - e.stop_ns)[:MOST_BARS]
    keep, on_path = {e.number for e in shown}, set(path)
    return [_bar(e, e.number in on_path, board) for e in run.ran if e.number in keep]


def _bar(e: EquationRan, critical: bool, board: Lanes) -> Node:
    start, stop = e.start_ns / 1e6, e.stop_ns / 1e6
    x = board.x(start)
    width = max(board.x(stop) - x, THIN)
    label = e.op if text_width(e.op, 11, bold=True) <= width - 6 else ""
    waits = f", after {_numbers(e.needs)}" if e.needs else ""
    aria = (
        f"equation {e.number}, {e.op}: {milliseconds(stop - start)} from {milliseconds(start)} on, thread"
        f" {e.lane}{waits}{', on the critical path' * critical}: {e.text}"
    )
    state = "active" if critical else "idle"
    return Node(f"e{e.number}", x + width / 2, board.middle(e.lane), width, BAR, label, "", "", "forward_span", state,
                aria=aria)  # fmt: skip


def _numbers(needs: Sequence[int]) -> str:
    listed = [str(n) for n in needs[:6]]
    return ", ".join([*listed, *([f"{len(needs) - 6} more"] if len(needs) > 6 else [])])


def arrows_of(run: GraphRun, path: Sequence[int], focus: int | None, board: Lanes) -> list[Edge]:
    """What the bar in focus waited for and what waits for it; without one the arrows along the critical path."""
    by_number = {e.number: e for e in run.ran}
    if focus is not None and focus in by_number:
        pairs = [(j, focus) for j in by_number[focus].needs if j in by_number]
        pairs += [(focus, e.number) for e in run.ran if focus in e.needs]
    else:
        pairs = list(pairwise(path))
    return [_arrow(by_number[a], by_number[b], board, b == focus) for a, b in pairs]


def _arrow(a: EquationRan, b: EquationRan, board: Lanes, comes_in: bool) -> Edge:
    """From bar to bar, to the second from the side of the first; within a lane in an arc below: no bar hides it."""
    side = -1.0 if a.lane < b.lane else 1.0
    over = a.stop_ns + b.start_ns if a.lane == b.lane else b.start_ns + b.stop_ns
    bends = ((board.x(over / 2e6), board.middle(b.lane) + side * (BAR / 2 + 13.0)),)
    return Edge(f"n{a.number}-{b.number}", f"e{a.number}", f"e{b.number}", bends, "", "forward" if comes_in else "idle")


def marks_of(run: GraphRun, lines: Sequence[str], board: Lanes) -> list[Mark]:
    """Words, axis, names of the lanes."""
    return [*_words(lines), *_axis(board), *_lanes(run, board)]


def _words(lines: Sequence[str]) -> Iterator[Mark]:
    for k, line in enumerate(lines):
        yield Mark(f"line{k}", "text" if k else "heading", 0, 9 + 18 * k, WIDTH, 0, line)


def _axis(board: Lanes) -> Iterator[Mark]:
    for k, (x, text) in enumerate(board.ticks()):
        yield Mark(f"tick{k}", "grid", x, HEAD, 0, board.bottom - HEAD)
        yield Mark(f"time{k}", "text", x, HEAD - 9, 0, 0, f"{text} ms" if k == 0 else text, "middle")


def _lanes(run: GraphRun, board: Lanes) -> Iterator[Mark]:
    for lane in range(board.n):
        yield Mark(f"lane{lane}", "heading", 0, board.middle(lane), 0, 0, f"thread {lane}")


def lines_of(run: GraphRun) -> list[str]:
    """Two lines above the lanes; what is known at the end is said at the end."""
    if run.finished is None:
        return [f"{run.name}: {len(run.ran)} of {counted(run.begun.n_equations, 'equation')} so far"]
    account, elapsed = run.account, run.finished.elapsed_ns / 1e6
    busy = f"{share(run.utilisation)} of the time of {counted(run.begun.n_threads, 'thread')} in equations"
    parts = f"work {milliseconds(account.work_ms)} / critical path {milliseconds(account.critical_ms)}"
    bound = f"{parts} = {account.bound:.2f}: no number of threads is more times as fast as one"
    return [f"{run.name}: {milliseconds(elapsed)}, {busy}", bound]
