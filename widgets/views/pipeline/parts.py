"""The pieces of a pipeline's picture at one moment: stages and what moves between them, spans, plan, level, axis."""

from __future__ import annotations

from collections.abc import Iterator

from lab.parallel.paper.check_schedule import Slot
from widgets.layout.gantt import FIRST, LEFT, STAGES, WIDTH, Board, Row, Strand
from widgets.pictures.measure import text_width
from widgets.pictures.scene import Edge, Mark, Node, Token
from widgets.pictures.theme import short
from widgets.views.pipeline.columns import placed_in_ticks
from widgets.views.pipeline.moment import Going, Moment
from widgets.views.pipeline.telling import bubble_lines
from widgets.views.pipeline.trace import Done
from widgets.views.words import milliseconds

THIN, OPEN = 1.0, 6.0
"""Pixels; a narrower bar, and one that is open, is still drawn so wide."""
MOST_NUMBERED = 20
"""Columns of ticks that have a number each."""


def board_of(moment: Moment) -> Board:
    """The coordinates of its board."""
    return Board(moment.n_stages, moment.n_ranks, moment.end)


def stages_of(moment: Moment, board: Board) -> list[Node]:
    """The stages as boxes: what each is at, and the micro-batches whose activations it holds."""
    ranks = {d.stage: d.rank for d in moment.done} | {g.stage: g.rank for g in moment.going}
    made = []
    for stage in range(moment.n_stages):
        box = board.stage(stage)
        state, words = _business(moment, stage)
        held = moment.held(stage)
        rank = ranks.get(stage, stage % moment.n_ranks)
        where = f" on rank {rank}" if moment.n_ranks != moment.n_stages else ""
        aria = f"stage {stage}{where}, {words}, holds {_listed(held) or 'no activations'}"
        label = f"stage {stage}" if box.width > 70 else str(stage)
        made.append(Node(f"s{stage}", *box, label, words, _held(held, box.width), "device", state, aria=aria))
    return made


def _business(moment: Moment, stage: int) -> tuple[str, str]:
    """State and words of a stage."""
    for going in moment.going:
        if going.stage == stage:
            action = f"{going.kind}{going.micro}"
            return ("stopped", f"was at {action}") if moment.cut else ("active", f"runs {action}")
    for done in _newest(moment):
        if done.stage == stage:
            return "done", f"{done.name} done"
    n_done = sum(d.stage == stage for d in moment.done)
    if moment.n_actions and n_done == moment.n_actions // moment.n_stages:
        return "done", "all done"
    return "waiting", "waits"


def _newest(moment: Moment) -> list[Done]:
    """What was done last: one action, or where nothing runs now, as of ranks that are held, all of its tick."""
    if (last := moment.last) is None:
        return []
    if moment.going:
        return [last]
    ticks = moment.done if moment.in_ticks else placed_in_ticks(moment.done, moment.n_stages)
    now = max(tick.end for tick in ticks)
    return [done for done, tick in zip(moment.done, ticks, strict=True) if tick.end == now]


def _held(held: list[int], width: float) -> str:
    """How many micro-batches it holds, and which if there is room."""
    if not held:
        return "holds none"
    text = f"holds {len(held)}: {_listed(held)}"
    return text if text_width(text, 12, bold=True) < width - 14 else f"holds {len(held)}"


def _listed(held: list[int]) -> str:
    """Micro-batches in a few characters.

    Example:
        >>> _listed([0, 1, 2, 3, 6])
        '0–3, 6'
    """
    runs: list[list[int]] = []
    for micro in held:
        if runs and runs[-1][1] == micro - 1:
            runs[-1][1] = micro
        else:
            runs.append([micro, micro])
    return ", ".join(str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}–{b}" for a, b in runs)


def ways_of(moment: Moment, board: Board) -> tuple[list[Edge], tuple[Token, ...]]:
    """The ways between stages, activations above to the right, gradients below to the left, and what moves on one."""
    edges, tokens, moved = [], [], moment.moved
    for left in range(moment.n_stages - 1):
        a, b = board.stage(left), board.stage(left + 1)
        middle = (a.x + b.x) / 2
        there, back = ((middle, a.y - 15.0),), ((middle, a.y + 15.0),)
        forth = moved is not None and not moved.backward and moved.src == left
        home = moved is not None and moved.backward and moved.dst == left
        name = f"{'B' if home else 'F'}{moved.micro}" if moved is not None else ""
        edges.append(
            Edge(f"f{left}", f"s{left}", f"s{left + 1}", there, name if forth else "", "forward" if forth else "idle")
        )
        if home:  # a gradient runs back along the way that the activation came
            edges.append(Edge(f"b{left}", f"s{left}", f"s{left + 1}", back, name, "backward"))
        else:
            edges.append(Edge(f"b{left}", f"s{left + 1}", f"s{left}", back))
        if forth or home:
            tokens.append(Token(f"b{left}" if home else f"f{left}", duration=600.0, backward=home))
    return edges, tuple(tokens)


def spans_of(moment: Moment, board: Board) -> list[Node]:
    """The bars of what was measured."""
    every = {backward: _labelled(backward, moment, board) for backward in (False, True)}
    made = [_bar(d, moment, board, every[d.backward]) for d in moment.done]
    now = max((d.end for d in moment.done), default=0.0)
    return made + [_open_bar(going, now, board) for going in moment.going]


def _open_bar(going: Going, now: float, board: Board) -> Node:
    """What is under way up to now; it has the id of the bar that it becomes."""
    row, x = board.row(going.rank).spans, board.x(going.start)
    width = max(board.x(max(now, going.start)) - x, OPEN)
    kind = "backward_span" if going.kind == "B" else "forward_span"
    name = f"{going.stage}{going.kind}{going.micro}"
    aria = f"rank {going.rank}: {going.kind}{going.micro} began after {milliseconds(going.start)}"
    return Node(name, x + width / 2, row.middle, width, row.height, "", "", "", kind, "waiting", aria=aria)


def _labelled(backward: bool, moment: Moment, board: Board) -> int:
    """Which label bars of a kind get, if it fits: 0 their whole name, 1 their number, 2 none.

    All of a kind get the same, so that a missing name is not taken for a missing micro-batch.
    """
    widths = sorted(board.x(d.end) - board.x(d.start) for d in moment.done if d.backward == backward)
    if moment.plan is not None:  # the same from stop to stop
        kind = "B" if backward else "F"
        widths = [board.x(s.stop) - board.x(s.start) for s in moment.plan.slots if s.action.kind == kind]
    room = widths[len(widths) // 2] if widths else 0.0
    number = text_width(str(max((d.micro for d in moment.done), default=0)), 11, bold=True)
    if room >= number + text_width("F", 11, bold=True):
        return 0
    return 1 if room >= number else 2


def _bar(done: Done, moment: Moment, board: Board, which: int) -> Node:
    row, x = board.row(done.rank).spans, board.x(done.start)
    width = max(board.x(done.end) - x, THIN)
    label = _label(done, width, which)
    way = "backward" if done.backward else "forward"
    when = f"{milliseconds(done.end - done.start)} from {milliseconds(done.start)} on"
    if moment.in_ticks:
        when = f"in tick {done.end:.0f}"
    aria = f"rank {done.rank}: {way} of micro-batch {done.micro}, stage {done.stage}, {when}"
    state = "active" if done == moment.last else "idle"
    name = f"{done.stage}{done.name}"
    return Node(name, x + width / 2, row.middle, width, row.height, label, "", "", f"{way}_span", state, aria=aria)


def _label(done: Done, width: float, which: int) -> str:
    """Its name or its number, if there is room inside the bar."""
    texts = ((done.name, str(done.micro)), (str(done.micro),), ())[which]
    return next((t for t in texts if text_width(t, 11, bold=True) <= width), "")


def marks_of(moment: Moment, board: Board) -> list[Mark]:
    """Axis, names of the strands, plan, levels, the line of the moment, and the bubble in numbers."""
    return [*(_columns(board) if moment.in_ticks else _axis(board)), *_numbers(moment), *_strands(moment, board)]


def _axis(board: Board) -> Iterator[Mark]:
    top = FIRST - 8
    for k, (x, text) in enumerate(board.ticks()):
        yield Mark(f"tick{k}", "grid", x, top, 0, board.bottom - top)
        yield Mark(f"time{k}", "text", x, top - 9, 0, 0, f"{text} ms" if k == 0 else text, "middle")


def _columns(board: Board) -> Iterator[Mark]:
    top, n = FIRST - 8, round(board.end)
    step = max(1, -(-n // MOST_NUMBERED))
    for k in range(n + 1):
        yield Mark(f"tick{k}", "grid", board.x(k), top, 0, board.bottom - top)
        if k < n and k % step == 0:
            text = "tick 1" if k == 0 else str(k + 1)
            yield Mark(f"time{k}", "text", board.x(k + 0.5), top - 9, 0, 0, text, "middle")


def _numbers(moment: Moment) -> Iterator[Mark]:
    for k, line in enumerate(bubble_lines(moment)):
        yield Mark(f"bubble{k}", "text" if k else "heading", 0, STAGES + 18 + 19 * k, WIDTH, 0, line)


def _strands(moment: Moment, board: Board) -> Iterator[Mark]:
    highest = max((n for rank in range(moment.n_ranks) for _, n in moment.live(rank)), default=0)
    if moment.report is not None:
        highest = max(highest, *moment.report.peak_live)
    for rank in range(moment.n_ranks):
        row = board.row(rank)
        yield Mark(f"rank{rank}", "heading", 0, row.spans.middle, 0, 0, f"rank {rank}")
        names: tuple[tuple[str, Strand], ...] = ("measured", row.spans), ("ideal", row.plan), ("live", row.level)
        if moment.plan is None:  # it is not known before a step is over, and of no interest in ticks
            names = ("actions" if moment.in_ticks else "measured", row.spans), ("live", row.level)
        for name, strand in names if row.spans.height > 14 else ():
            yield Mark(f"{name}{rank}", "text", LEFT - 8, strand.middle, 0, 0, name, "end")
        yield Mark(f"floor{rank}", "grid", LEFT, row.level.top + row.level.height, board.x(board.end) - LEFT)
        yield from _levels(moment, board, rank, row, highest)
    if moment.plan is not None:
        for slot in moment.plan.slots:
            yield _planned(slot, board)
    if moment.last is not None:
        top = FIRST - 8
        yield Mark("now", "now", board.x(moment.last.end), top, 0, board.bottom - top)


def _planned(slot: Slot, board: Board) -> Mark:
    row, x = board.row(slot.rank).plan, board.x(slot.start)
    kind = "ideal_backward" if slot.action.kind == "B" else "ideal_forward"
    return Mark(f"ideal{slot.action}", kind, x, row.top, board.x(slot.stop) - x, row.height)


def _levels(moment: Moment, board: Board, rank: int, row: Row, highest: int) -> Iterator[Mark]:
    """How many activations the rank holds, as steps, the highest marked."""
    changes = moment.live(rank)
    peak = max((n for _, n in changes), default=0)
    until = moment.last.end if moment.last is not None else max((d.end for d in moment.done), default=0.0)
    for k, (time, n) in enumerate(changes):
        end = changes[k + 1][0] if k + 1 < len(changes) else until
        high = row.level.height * n / max(1, highest)
        width = board.x(end) - board.x(time)
        if n and width > 0:
            kind = "peak" if n == peak else "level"
            yield Mark(f"live{rank}.{k}", kind, board.x(time), row.level.top + row.level.height - high, width, high)
    if changes:
        yield Mark(f"peak{rank}", "text", board.x(board.end) + 8, row.level.middle, 0, 0, f"peak {short(peak)}")
