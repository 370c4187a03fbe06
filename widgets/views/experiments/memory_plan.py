"""MemoryPlanView: the buffers of a plan over the equations, which values lie in them, and where most is alive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lab.events import Event, MemoryPlanBegun, MemoryPlanMade, RunHeld, ValuePlaced
from lab.words import counted
from widgets.pictures.measure import text_width
from widgets.pictures.scene import Mark, Node, Scene
from widgets.pictures.ticks import nice
from widgets.views.experiments.experiment import Rows, RowsView, of
from widgets.views.experiments.memory import unit_of
from widgets.views.words import n_bytes

WIDTH, LEFT, RIGHT = 900.0, 84.0, 20.0
TOP, TALL = 66.0, 300.0
STRIP, LOW = 34.0, 64.0
"""From the buffers to the level below them, and its height."""
MOST_BARS = 300
"""The largest values are drawn; more nobody tells apart."""
MOST_NUMBERED = 18
LABELLED = 15.0
"""A bar of this height has room for words."""
LEGEND = (
    ("forward_span", "in a buffer that is kept"), ("backward_span", "given out, or made by its op"),
    ("new", "made again"),
)  # fmt: skip


class MemoryPlanView(RowsView):
    """Plans of memory for one graph, as `lab.measure_plan` made them, one after the other on the same scale.

    Bars are values: from the equation that makes one to the last that reads it, in the buffer where it lies. Below them
    is what is alive, with its peak.

    Args:
        source: what that returned, or a Recording of it.

    Example:
        >>> import lab, numpy as np
        >>> found = lab.measure_plan(lambda x: ((x @ x) @ x) @ x, np.ones((64, 64)))
        >>> print(MemoryPlanView(found).sentence_at(5))
        A place for each value: 96 KiB; at most 64 KiB alive, at equation 2 of 3.
    """

    listens = (MemoryPlanBegun, ValuePlaced, MemoryPlanMade, RunHeld)
    stops = (MemoryPlanMade, RunHeld)
    title = "Memory plan"
    shows = "plans of memory"
    write = "MemoryPlanView(lab.measure_plan(f, x))"

    def picture(self, state: Rows) -> Scene:
        made = _shown(state)
        if made is None:
            return Scene(caption=self._why_empty(), title=self.title)
        board = _Board(of(state, MemoryPlanBegun)[0], made)
        values = [e for e in of(state, ValuePlaced) if e.plan == made.plan]
        nodes = [board.bar(e) for e in sorted(values, key=lambda e: -e.n_bytes)[:MOST_BARS]]
        shown = {n.kind for n in nodes} | {n.state for n in nodes}
        left = len(values) - len(nodes)
        words = f" The {MOST_BARS} largest of {len(values)} values are drawn." if left else ""
        return Scene(
            tuple(nodes), caption=_caption(state) + words, title=self.title, extent=(WIDTH, board.bottom + 22),
            legend=tuple(pair for pair in LEGEND if pair[0] in shown), marks=tuple(board.marks(_heading(state, made))),
        )  # fmt: skip

    def told(self, rows: Rows) -> str:
        lines = [_run_line(e) if isinstance(e, RunHeld) else _plan_line(e) for e in _told(rows)]
        made = _shown(rows)
        values = [e for e in of(rows, ValuePlaced) if made is not None and e.plan == made.plan]
        return "\n".join([*reversed(lines), *map(_value_words, values)]) or "No plan is made yet."

    def ids_of(self, event: Event, state: Rows, scene: Scene) -> Iterable[str]:
        """The bar of a value."""
        return (event.value,) if isinstance(event, ValuePlaced) else ()


def _told(rows: Rows) -> list[MemoryPlanMade | RunHeld]:
    return [e for e in rows if isinstance(e, (MemoryPlanMade, RunHeld))]


def _shown(rows: Rows) -> MemoryPlanMade | None:
    """The plan that is drawn: that of the run which was measured last, else the newest."""
    made = {e.plan: e for e in of(rows, MemoryPlanMade)}
    runs = [made[e.way] for e in of(rows, RunHeld) if e.way in made]
    return runs[-1] if runs else next(reversed(made.values()), None)


class _Board:
    """Where things stand for one plan."""

    def __init__(self, begun: MemoryPlanBegun, made: MemoryPlanMade) -> None:
        self.begun, self.made = begun, made
        self.wide = (WIDTH - LEFT - RIGHT) / max(1, begun.most_equations)
        self.scale = TALL / max(1, begun.most_bytes)
        self.level = TOP + TALL + STRIP
        self.bottom = self.level + LOW

    def x(self, equation: int) -> float:
        return LEFT + self.wide * equation

    def y(self, offset: int) -> float:
        return TOP + TALL - self.scale * offset

    def bar(self, e: ValuePlaced) -> Node:
        """One value: as long as it is needed, as high as it has bytes."""
        left, right = self.x(e.start), self.x(min(e.stop + 1, self.made.n_equations))
        tall, width = max(2.0, self.scale * e.n_bytes - 1.0), max(2.0, right - left - 1.0)
        texts = (f"{e.value} {e.op}", e.value) if tall >= LABELLED else ()
        label = next((t for t in texts if text_width(t, 11, bold=True) <= width - 6), "")
        at_peak = e.start <= self.made.peak_at <= e.stop
        state = "new" if e.again else "active" if at_peak else "idle"
        kind = "backward_span" if e.buffer < 0 else "constant" if e.again else "forward_span"
        middle = self.y(e.offset) - self.scale * e.n_bytes / 2
        return Node(e.value, (left + right) / 2, middle, width, tall, label, kind=kind, state=state,
                    aria=_value_words(e))  # fmt: skip

    def marks(self, heading: list[str]) -> Iterator[Mark]:
        """Words, both axes, the level of what is alive and its peak."""
        for k, line in enumerate(heading):
            yield Mark(f"says{k}", "text" if k else "heading", 0, 12 + 20 * k, WIDTH, 0, line)
        yield from self._bytes()
        yield from self._equations()
        made, most = self.made, max(1, self.made.peak_bytes)
        for k, alive in enumerate(made.alive_bytes):
            tall = LOW * alive / most
            kind = "peak" if k == made.peak_at else "level"
            if tall:
                yield Mark(f"alive{k}", kind, self.x(k), self.bottom - tall, self.wide, tall)
        yield Mark("strip", "text", LEFT - 8, self.level + LOW / 2, 0, 0, "alive", "end")
        if made.peak_bytes:
            middle = self.x(made.peak_at) + self.wide / 2
            yield Mark("peak", "level", self.x(made.peak_at), TOP - 4, self.wide, TALL + 8)
            side = "start" if middle < WIDTH / 2 else "end"
            words = f"peak: {n_bytes(made.peak_bytes)} alive"
            yield Mark("peak words", "heading", middle, self.level - 12, 0, 0, words, side)

    def _bytes(self) -> Iterator[Mark]:
        unit, size = unit_of(self.begun.most_bytes)
        step = nice(self.begun.most_bytes / size / 4)
        for k in range(int(self.begun.most_bytes / size / step + 1e-9) + 1):
            y = self.y(round(k * step * size))
            yield Mark(f"at{k}", "grid", LEFT, y, WIDTH - LEFT - RIGHT, 0)
            yield Mark(f"bytes{k}", "text", LEFT - 8, y, 0, 0, f"{k * step:g} {unit}", "end")

    def _equations(self) -> Iterator[Mark]:
        step = max(1, -(-self.made.n_equations // MOST_NUMBERED))
        for k in range(0, self.made.n_equations, step):
            words = f"equation {k + 1}" if not k and step * self.wide > 80 else str(k + 1)
            yield Mark(f"eq{k}", "text", self.x(k) + self.wide / 2, self.bottom + 12, 0, 0, words, "middle")


def _value_words(e: ValuePlaced) -> str:
    place = f"in buffer {e.buffer}" if e.buffer >= 0 else "in no buffer"
    when = f"equation {e.start + 1}" if e.stop <= e.start else f"equations {e.start + 1} to {e.stop + 1}"
    when = when if e.buffer >= 0 else f"from equation {e.start + 1} to the end"
    again, line = ", made again" if e.again else "", e.line.rpartition("/")[2]
    return f"{e.value} = {e.op}: {n_bytes(e.n_bytes)} {place}, {when}{again}{f', {line}' if line else ''}"


def _plan_line(e: MemoryPlanMade) -> str:
    again = f" {counted(e.n_again, 'equation')} {'runs' if e.n_again == 1 else 'run'} again." if e.n_again else ""
    peak = f"at most {n_bytes(e.peak_bytes)} alive, at equation {e.peak_at + 1} of {e.n_equations}"
    return f"{e.plan[:1].upper()}{e.plan[1:]}: {n_bytes(e.n_bytes)}; {peak if e.n_equations else 'no equation'}.{again}"


def _run_line(e: RunHeld) -> str:
    way = "Run equation by equation" if e.way == "equation by equation" else f"Run compiled, {e.way}"
    return f"{way}: held {n_bytes(e.n_bytes)}, measured; {n_bytes(e.planned_bytes)} were expected."


def _heading(rows: Rows, made: MemoryPlanMade) -> list[str]:
    runs = [_run_line(e) for e in of(rows, RunHeld) if e.way == made.plan]
    return [_plan_line(made), *runs[-1:]]


def _caption(rows: Rows) -> str:
    begun, made, runs = of(rows, MemoryPlanBegun)[0], of(rows, MemoryPlanMade), of(rows, RunHeld)
    plans = "; ".join(f"{e.plan} {n_bytes(e.n_bytes)}" for e in made)
    held = "; ".join(f"{e.way} {n_bytes(e.n_bytes)}" for e in runs)
    words = f"Memory of {begun.function} beyond its inputs, computed from shapes: {plans}."
    if held:
        words += f" Measured with tracemalloc: {held}."
    words += " A bar is a value: as high as its bytes, from the equation that makes it to the last that reads it,"
    words += " with a strong outline where it is alive at the peak."
    return words + (" Single operations were recorded meanwhile, which takes memory, too." if begun.told else "")
