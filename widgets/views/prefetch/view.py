"""PrefetchView: what is loaded, preprocessed and computed when, a lane for each stage, a slider for the depth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from lab.events import Event, PrefetchBegun, PrefetchMeasured, PrefetchRunBegun, StageRan
from lab.words import counted
from widgets.fold import Events, Positions
from widgets.layout.lanes import BAR, HEAD, WIDTH, Lanes
from widgets.pictures.measure import text_width
from widgets.pictures.scene import Mark, Node, Scene
from widgets.view import View
from widgets.views.nothing import nothing_for
from widgets.views.words import milliseconds, share

STAGES = ("load", "preprocess", "compute")
WRITE = "PrefetchView(lab.measure_prefetch())"
THIN = 1.0
"""Pixels; a narrower bar is still drawn so wide."""
ANY = -1
"""The depth of a loop that did not say its depth."""


class Loop(NamedTuple):
    """A loop over all items, as far as it has been told."""

    depth: int
    spans: tuple[StageRan, ...] = ()
    measured: PrefetchMeasured | None = None


@dataclass(frozen=True, slots=True)
class Loops:
    """All loops so far."""

    loops: tuple[Loop, ...] = ()
    begun: PrefetchBegun | None = None

    def with_event(self, event: Event) -> Loops:
        """One more event."""
        match event:
            case PrefetchBegun():
                return Loops((), event)
            case PrefetchRunBegun():
                return Loops((*self.loops, Loop(event.depth)), self.begun)
            case StageRan():
                again = any((s.stage, s.item) == (event.stage, event.item) for s in self._last.spans)
                loops = (*self.loops, Loop(ANY)) if again or not self.loops else self.loops
                return Loops((*loops[:-1], loops[-1]._replace(spans=(*loops[-1].spans, event))), self.begun)
            case PrefetchMeasured() if self.loops:
                return Loops((*self.loops[:-1], self.loops[-1]._replace(measured=event)), self.begun)
        return self

    @property
    def _last(self) -> Loop:
        return self.loops[-1] if self.loops else Loop(ANY)


class PrefetchView(View[Loops]):
    """Stages of loading over time, one loop at a time; all loops of a recording have one time axis.

    Args:
        source: what `lab.measure_prefetch` returned, or a Recording with StageRan events.
        depth: show the loop of this depth, of those recorded the nearest; None is the latest.

    Example:
        >>> import lab
        >>> found = lab.measure_prefetch((0, 2), n_items=3, batch_size=32, repeats=1)
        >>> PrefetchView(found, depth=0).sentence_at(3)
        'Batch 0 went through load.'
    """

    listens = (PrefetchBegun, PrefetchRunBegun, StageRan, PrefetchMeasured)
    stops = (StageRan, PrefetchMeasured)
    title = "Prefetch"
    opens_at_end = True

    def __init__(self, source: Any, *, depth: int | None = None) -> None:
        super().__init__(source)
        self.depth = depth
        self._slider: Any = None

    def start(self) -> Loops:
        return Loops()

    def fold(self, state: Loops, event: Event) -> Loops:
        return state.with_event(event)

    @property
    def depths(self) -> list[int]:
        """The depths of which the recording has a loop."""
        found: list[int] = self.recording.columns(PrefetchRunBegun)["depth"].tolist()
        return found

    @property
    def nearest(self) -> int | None:
        """Of these the one that is chosen; None is the latest loop."""
        if self.depth is None or not self.depths:
            return None
        wanted = self.depth
        return min(self.depths, key=lambda depth: abs(depth - wanted))

    def chosen(self, state: Loops) -> Loop | None:
        """The loop that is shown."""
        depth = self.nearest
        loops = [loop for loop in state.loops if depth in (None, loop.depth)] or state.loops
        return loops[-1] if loops else None

    def picture(self, state: Loops) -> Scene:
        loop = self.chosen(state)
        if loop is None:
            return Scene(caption=self._why_empty(), title=self.title)
        board = Lanes(len(STAGES), self._end_ms())
        bars = [_bar(span, board) for span in loop.spans]
        marks = [
            *(Mark(f"line{k}", "text" if k else "heading", 0, 9 + 18 * k, WIDTH, 0, line)
              for k, line in enumerate(_lines(loop, state))),
            *(Mark(f"lane{k}", "heading", 0, board.middle(k), 0, 0, stage) for k, stage in enumerate(STAGES)),
        ]  # fmt: skip
        for k, (x, text) in enumerate(board.ticks()):
            marks.append(Mark(f"tick{k}", "grid", x, HEAD, 0, board.bottom - HEAD))
            marks.append(Mark(f"time{k}", "text", x, HEAD - 9, 0, 0, f"{text} ms" if k == 0 else text, "middle"))
        legend = (("forward_span", "a batch, by its number"),)
        words = (
            "Each bar is a batch in a stage. Without prefetch one stage waits for the other; with it the next batches"
            " are loaded and preprocessed in a thread of their own while the loop computes, at most so many ahead as"
            " the depth says."
        )
        return Scene(tuple(bars), (), (), words, self.title, legend if bars else (), extent=board.extent,
                     marks=tuple(marks))  # fmt: skip

    def _end_ms(self) -> float:
        """Where the time axis ends: with the longest of all loops that are recorded."""
        stops = self.recording.columns(StageRan)["stop_ns"]
        return float(stops.max()) / 1e6 if len(stops) else 0.0

    def ids_of(self, event: Event, state: Loops, scene: Scene) -> Iterable[str]:
        return (f"{event.stage}{event.item}",) if isinstance(event, StageRan) else ()

    def text(self, state: Loops) -> str:
        loop = self.chosen(state)
        if loop is None:
            return self._why_empty()
        lines = [_sentence(loop, state), *_lines(loop, state)[1:]]
        for stage in STAGES:
            mine = [s for s in loop.spans if s.stage == stage]
            took = ", ".join(f"{s.item} {milliseconds((s.stop_ns - s.start_ns) / 1e6)}" for s in mine)
            lines.append(f"{stage}: {took or 'nothing yet'}")
        done = [loop.measured for loop in state.loops if loop.measured is not None]
        lines += [f"depth {m.depth}: {milliseconds(m.elapsed_ms)} a loop in silence" for m in done]
        return "\n".join(lines)

    def stop_positions(self, events: Events) -> Positions:
        """After each stage of each batch; of a depth that was chosen, within its loop."""
        every, begins, depth = super().stop_positions(events), events.positions(PrefetchRunBegun), self.nearest
        if depth is None:
            return every
        k = len(self.depths) - 1 - self.depths[::-1].index(depth)
        end = begins[k + 1] if k + 1 < len(begins) else len(events)
        within: Positions = every[(every > begins[k]) & (every <= end)]
        return within

    def _why_empty(self) -> str:
        if self.recording.live:
            return "No batch went through a stage yet: each will be a bar."
        return nothing_for("PrefetchView", "a loop over prefetched batches", WRITE, self.recording)

    # --- controls ---

    def build(self) -> Any:
        """The picture with a slider of the depth above it, where loops of several were recorded."""
        import ipywidgets as ipw

        from widgets.live.slider import Slider

        if len(self.depths) < 2:
            return self.host
        shown = self.depths[-1] if self.nearest is None else self.nearest
        self._slider = Slider(description="Prefetch depth", value=shown, min=min(self.depths), max=max(self.depths),
                              step=1, tooltip="Depth whose loop is shown")  # fmt: skip
        self._slider.observe(self._choose, "value")
        return ipw.VBox([self._slider, self.host])

    def _choose(self, change: Mapping[str, Any]) -> None:
        self.depth = round(change["new"])
        if self.nearest is not None and self.nearest != change["new"]:
            self._slider.value = self.nearest  # comes here again
            return
        self.stops_changed()
        self.show(len(self.recording))


def _bar(span: StageRan, board: Lanes) -> Node:
    start, stop = span.start_ns / 1e6, span.stop_ns / 1e6
    x = board.x(start)
    width = max(board.x(stop) - x, THIN)
    label = str(span.item) if text_width(str(span.item), 11, bold=True) <= width - 2 else ""
    thread = "in the loop" if span.lane == 0 else "ahead of the loop"
    aria = f"batch {span.item}, {span.stage}: {milliseconds(stop - start)} from {milliseconds(start)} on, {thread}"
    lane = STAGES.index(span.stage) if span.stage in STAGES else len(STAGES) - 1
    return Node(f"{span.stage}{span.item}", x + width / 2, board.middle(lane), width, BAR, label, "", "",
                "forward_span", aria=aria)  # fmt: skip


def _sentence(loop: Loop, state: Loops) -> str:
    """What happened last."""
    if loop.measured is not None:
        line = _lines(loop, state)[0]
        return f"{line[:1].upper()}{line[1:]}."
    if not loop.spans:
        return f"A loop begins, depth {loop.depth}."
    last = loop.spans[-1]
    return f"Batch {last.item} went through {last.stage}."


def _lines(loop: Loop, state: Loops) -> list[str]:
    """Two lines above the lanes."""
    name = "a loop" if loop.depth == ANY else f"depth {loop.depth}"
    m = loop.measured
    if m is None:
        return [f"{name}: {counted(len(loop.spans), 'stage')} of batches so far"]
    stages = m.load_ms + m.preprocess_ms + m.compute_ms
    cores = f", on {counted(state.begun.n_cores, 'core')}" if state.begun is not None else ""
    hidden = max(0.0, 1.0 - m.told_ms / stages) if stages else 0.0
    first = f"{name}: {milliseconds(m.told_ms)} for {milliseconds(stages)} of stages, {share(hidden)} overlapped{cores}"
    times = zip(STAGES, (m.load_ms, m.preprocess_ms, m.compute_ms), strict=True)
    parts = ", ".join(f"{stage} {milliseconds(took)}" for stage, took in times)
    return [first, f"{parts}; a loop in silence took {milliseconds(m.elapsed_ms)}"]
