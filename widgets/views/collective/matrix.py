"""The matrix layout: who sent how much to whom, and beside it whose parts each rank holds, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator

from lab.words import counted
from widgets.pictures.measure import text_width
from widgets.pictures.scene import Mark, Node
from widgets.views.collective.grid import ABOVE, LEFT, Grid, grid_of
from widgets.views.collective.parts import TONE, card_aloud, card_state, carried, cell_of, counted_of, fate_mark
from widgets.views.collective.plan import LEGIBLE, Plan
from widgets.views.collective.right import complete
from widgets.views.collective.state import Collective, Holdings, Hop, links_of
from widgets.views.collective.words import parts, written
from widgets.views.words import n_bytes


def nodes_of(state: Collective, plan: Plan, held: Holdings) -> Iterator[Node]:
    """Rank by rank: its name, what it sent to each other, what it holds."""
    grid, links = grid_of(plan.drawn, len(plan.pieces)), links_of(state.hops)
    most = max(links_of(plan.hops).values(), default=1)
    moving: dict[tuple[int, int], list[Hop]] = {}
    for hop in () if state.finished else held.hops:
        moving.setdefault((hop.event.src, hop.event.dst), []).append(hop)
    for rank in range(grid.n):
        yield _head(state, plan, held, grid, rank)
        for src, dst in sorted(pair for pair in plan.pairs if pair[0] == rank):
            yield _link(grid, src, dst, links.get((src, dst), 0), most, moving.get((src, dst), []), state, plan)
        if rank in state.began:
            yield from _holds(state, plan, held, grid, rank)


def _head(state: Collective, plan: Plan, held: Holdings, grid: Grid, rank: int) -> Node:
    y = grid.link_at(rank, 0)[1]
    return Node(f"r{rank}", (LEFT - 6) / 2, y, LEFT - 8, grid.link[1] - 2, "", kind="device",
                state=card_state(state, plan, held, rank), aria=card_aloud(state, held, rank))  # fmt: skip


def _link(grid: Grid, src: int, dst: int, sent: int, most: int, hops: list[Hop], state: Collective,
          plan: Plan) -> Node:  # fmt: skip
    """A cell of the first grid: bytes so far, and what moves now or how many steps that took."""
    steps = len({hop.step for hop in state.hops if (hop.src, hop.dst) == (src, dst)})
    names = ", ".join(carried(hop, plan) for hop in hops)
    sign = "+=" if hops and hops[0].event.reduces else "="
    label, below = n_bytes(sent) if sent else "", counted(steps, "step") if steps else ""
    if hops:
        below = f"{sign} {names}"
    aria = f"rank {src} to rank {dst}: {n_bytes(sent)} in {counted(steps, 'step')}"
    if hops:
        value = written(hops[0].payload, 1e9) if len(hops) == 1 else ""
        aria += f", now {names} {sign}{f' {value}' if value else ''}"
    width, height = grid.link
    texts = [label, label.removesuffix("B").replace(" ", "")] if grid.worded else []
    label = next((text for text in texts if text_width(text, 14, bold=True) <= width - 6), "")
    return Node(f"{src}>{dst}", *grid.link_at(src, dst), width - 3, height - 3, label, below * grid.roomy,
                kind="constant", state="active" if hops else "idle", tone=TONE * sent / most, aria=aria)  # fmt: skip


def _holds(state: Collective, plan: Plan, held: Holdings, grid: Grid, rank: int) -> Iterator[Node]:
    width, height = grid.piece
    size = width - 3, height - 3
    if grid.n_pieces != len(plan.pieces):
        node = counted_of(state, plan, held, rank, range(len(plan.pieces)), grid.piece_at(rank, 0), size)
        yield node._replace(label=f"{node.label} complete"[: 99 * grid.worded], sublabel="")
        return
    for k, cell in enumerate(held.cells[rank]):
        node = cell_of(state, plan, rank, k, cell, grid.piece_at(rank, k), size)
        if not grid.roomy:  # one line: whose parts
            n = sum(map(bool, cell.counts))
            short = "all" if complete(cell, plan, rank, k) and n == len(cell.counts) else parts(cell.counts)
            fits = text_width(short, 14, bold=True) <= size[0] - 8
            label = short if fits else f"{n}/{len(cell.counts)}"
            node = node._replace(label=label * grid.worded, sublabel="")
        yield node


def marks_of(state: Collective, plan: Plan, held: Holdings) -> Iterator[Mark]:
    """Names of rows and columns, and totals."""
    grid = grid_of(plan.drawn, len(plan.pieces))
    (x, y), (a, b) = grid.first, grid.second
    yield Mark("links", "heading", 0, y - ABOVE + 8, text="Bytes sent from row to column")
    yield Mark("holds", "heading", a - LEFT, b - ABOVE + 8, text="Whose parts each rank holds")
    received = [sum(hop.n_bytes for hop in state.hops if hop.dst == rank) for rank in range(grid.n)]
    stride = 1 if grid.worded else 8
    for rank in range(grid.n):
        row = grid.link_at(rank, 0)[1]
        if rank % stride == 0:
            yield Mark(f"to{rank}", "text", grid.link_at(0, rank)[0], y - 10, text=f"{rank}", anchor="middle")
        yield Mark(f"r{rank}", "text", LEFT - 16, row, text=f"rank {rank}" if grid.worded else f"{rank}", anchor="end")
        yield Mark(f"of{rank}", "text", a - 10, grid.piece_at(rank, 0)[1], text=f"rank {rank}", anchor="end")
        if not grid.worded:
            continue
        sent = n_bytes(held.sent.get(rank, 0))
        yield Mark(f"r{rank}.sent", "text", x + grid.n * grid.link[0] + 6, row, text=sent)
        yield Mark(f"r{rank}.came", "text", grid.link_at(0, rank)[0], y + grid.n * grid.link[1] + 10,
                   text=n_bytes(received[rank]), anchor="middle")  # fmt: skip
        if word := fate_mark(state, plan, held, rank):
            yield Mark(f"r{rank}.fate", word[0], x + 6, row, text=word[1])
    if grid.worded:
        yield Mark("sent", "text", x + grid.n * grid.link[0] + 6, y - 10, text="sent")
        yield Mark("came", "text", x - 10, y + grid.n * grid.link[1] + 10, text="received", anchor="end")
    for k, piece in enumerate(plan.pieces if 1 < grid.n_pieces == len(plan.pieces) <= LEGIBLE else ()):
        yield Mark(f"c{k}", "text", grid.piece_at(0, k)[0], b - 10, text=piece.name.partition("–")[0], anchor="middle")
    for at in range(grid.n + 1):
        across, down = x + at * grid.link[0] - 1.5, y + at * grid.link[1] - 1.5
        yield Mark(f"h{at}", "grid", x - 1.5, down, grid.n * grid.link[0], 0)
        yield Mark(f"v{at}", "grid", across, y - 1.5, 0, grid.n * grid.link[1])
