"""The pieces of a collective's picture at one moment: a card for each rank with its chunks, arrows, tokens, bars."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from widgets.layout.ring import Pair
from widgets.pictures.measure import text_width
from widgets.pictures.scene import Edge, Mark, Node, Token
from widgets.views.ring import paper
from widgets.views.ring.collective import Cell, Collective, Holdings, Hop
from widgets.views.ring.plan import CELL, FOOT, PAD, TITLE, Plan
from widgets.views.ring.right import complete, fault, troubles
from widgets.views.ring.words import aloud, in_form, named, parts, parts_aloud, written
from widgets.views.words import n_bytes

TONE = -0.55
"""Of a cell with the parts of all ranks, on the blue side of the diverging palette; deeper would swallow the text."""
TOKENS = 60


def nodes_of(state: Collective, plan: Plan, held: Holdings) -> Iterator[Node]:
    """The cards, each with its cells behind it in reading order."""
    for rank in range(len(plan.circle.centres)):
        x, y = plan.place(rank)
        width, height = plan.card
        status = _card_state(state, plan, held, rank)
        aria = f"rank {rank}, sent {n_bytes(held.sent.get(rank, 0))}{_spoken_state(state, rank)}"
        yield Node(f"r{rank}", x + width / 2, y + height / 2, width, height, "", kind="device", state=status, aria=aria)
        yield from _cells(state, plan, held, rank)


def _card_state(state: Collective, plan: Plan, held: Holdings, rank: int) -> str:
    if rank in state.broken:
        return "trouble" if rank in state.lost or rank in state.failed else "stopped"
    if rank not in state.began:
        return "waiting"
    if rank not in state.finished:
        return "idle"
    return "trouble" if troubles(state, plan, held, rank) else "done"


def _spoken_state(state: Collective, rank: int) -> str:
    if rank in state.broken:
        why = state.lost.get(rank) or state.failed.get(rank)
        return f", {fate(state, rank)}{f': {why}' if why else ''}"
    return "" if rank in state.began else ", not here yet"


def fate(state: Collective, rank: int) -> str:
    """How a rank came to an end without a result, in a word."""
    return "lost" if rank in state.lost else "failed" if rank in state.failed else "was ended"


def _cells(state: Collective, plan: Plan, held: Holdings, rank: int) -> Iterator[Node]:
    if rank not in state.began:
        return
    cells = held.cells[rank]
    if not plan.compact:
        for k, cell in enumerate(cells):
            x, y = plan.cell_place(rank, k)
            yield _cell(state, plan, rank, k, cell, (x + plan.cell / 2, y + CELL / 2))
        return
    x, y = plan.place(rank)
    n = sum(complete(cell, plan, rank, k) and not fault(state, plan, cell, rank, k) for k, cell in enumerate(cells))
    status = "done" if n == len(cells) else "active" if any(cell.came for cell in cells) else "idle"
    label, width = f"{n} of {len(cells)}", plan.card[0] - 2 * PAD
    yield Node(f"r{rank}.all", x + plan.card[0] / 2, y + TITLE + CELL / 2, width, CELL, label, "complete",
               kind="constant", state=status, tone=TONE * n / len(cells),
               aria=f"rank {rank}: {label} chunks complete")  # fmt: skip


def _cell(state: Collective, plan: Plan, rank: int, k: int, cell: Cell, centre: tuple[float, float]) -> Node:
    value, whose = in_form(cell.value, plan.form), parts(cell.counts)
    texts = [whose, f"{sum(map(bool, cell.counts))} of {len(cell.counts)}"]
    if not value:  # a bare number of a rank would be taken for a value
        several = "" if whose.startswith("all") else "rank " if sum(cell.counts) == 1 else "ranks "
        texts = [*([f"of {several}{whose}", f"of {whose}"] if any(cell.counts) else []), *texts]
    whose = next((text for text in texts if text_width(text, 12) <= plan.cell - 4), texts[-1])
    done, bad = complete(cell, plan, rank, k), fault(state, plan, cell, rank, k)
    status = "trouble" if bad else "done" if done else "active" if cell.came else "idle"
    share = 1.0 if done else 0.8 * sum(map(bool, cell.counts)) / max(1, len(cell.counts))
    came = ", came in this step" if cell.came else ""
    told = ", ".join([aloud(cell.value), parts_aloud(cell.counts) + came, *bad])
    aria = f"rank {rank}, {named(plan.pieces[k])}: {told}"
    return Node(f"r{rank}.{k}", *centre, plan.cell, CELL, value, whose, kind="constant",
                state=status, tone=TONE * share, aria=aria)  # fmt: skip


# --- what moves ---


def edges_of(state: Collective, plan: Plan, held: Holdings) -> list[Edge]:
    """An arrow where something moves now, and for each other pair of ranks where something has moved or will."""
    moving: dict[Pair, list[Hop]] = {}
    for hop in () if state.finished else held.hops:
        moving.setdefault((hop.event.src, hop.event.dst), []).append(hop)
    return [
        _edge(pair, plan, moving.get(pair, []))
        for pair in sorted(plan.pairs)
        if pair in moving or (_is_shown(pair, state, plan) and pair[::-1] not in moving)
    ]


def _is_shown(pair: Pair, state: Collective, plan: Plan) -> bool:
    """Of two arrows there and back, which do not move at the same time, the one that comes next, else the last."""
    if plan.crowded and (pair[1] - pair[0]) % len(plan.circle.centres) != 1:
        return False
    if frozenset(pair) in plan.exchanged or pair[::-1] not in plan.pairs:
        return True
    now = max((hop.step for hop in state.hops), default=-1)
    between = sorted((hop.step, (hop.src, hop.dst)) for hop in plan.hops if {hop.src, hop.dst} == set(pair))
    return next((way for step, way in between if step > now), between[-1][1]) == pair


def _edge(pair: Pair, plan: Plan, hops: list[Hop]) -> Edge:
    src, dst = pair
    status = ("forward" if hops[0].event.reduces else "store") if hops else "idle"
    label = _label(hops, plan, src, dst) if hops and not plan.crowded else ""
    return Edge(f"{src}>{dst}", f"r{src}", f"r{dst}", plan.bends[pair], label, status)


def _label(hops: list[Hop], plan: Plan, src: int, dst: int) -> str:
    """What the receiver does, as one would write it: "c2 += 14.0"; shorter where the arrow is."""
    name, sign = ", ".join(carried(hop, plan) for hop in hops), "+=" if hops[0].event.reduces else "="
    (ax, ay), (bx, by) = (plan.circle.centres[rank] for rank in (src, dst))
    room = abs(bx - ax) - plan.card[0] - 20 if abs(ay - by) < 1 and not plan.bends[src, dst] else 120.0
    payload = hops[0].payload if len(hops) == 1 else None
    full = f"{name} {sign} {written(payload, 90)}"
    return full if payload is not None and payload.size == 1 and text_width(full, 12) <= room else f"{sign} {name}"


def carried(hop: Hop, plan: Plan) -> str:
    """The name of what a hop carries: "c2", "c0–c3", "x"."""
    if not hop.pieces:
        return "nothing"
    if len(hop.pieces) == len(plan.pieces):
        return "x"
    first, last = plan.pieces[hop.pieces[0]], plan.pieces[hop.pieces[-1]]
    return first.name if first == last else f"c{first.start}–c{last.stop - 1}"


def tokens_of(edges: list[Edge]) -> tuple[Token, ...]:
    """A disc for what is added, a square for what is stored."""
    moving = [edge for edge in edges if edge.state != "idle"][:TOKENS]
    return tuple(Token(edge.id, duration=800.0, square=edge.state == "store") for edge in moving)


# --- words and bars ---


def marks_of(state: Collective, plan: Plan, held: Holdings, moment: str) -> Iterator[Mark]:
    """The heading, and on each card its title, the names of its chunks, and how much the rank has sent."""
    about, width = plan.about, plan.extent[0]
    ranks = f"{about.world_size} rank{'s' * (about.world_size != 1)}"
    call = f"{about.operation} by {about.algorithm}: {ranks}, {_sizes(plan)}"
    yield Mark("call", "heading", 0, 10, width - 110, text=call)
    yield Mark("moment", "heading", width, 10, text=moment, anchor="end")
    book = paper.sentence(about.operation, about.algorithm, plan.root, about.world_size)
    if book and plan.alike:
        yield Mark("book", "text", 0, 32, width, text=f"Text-book: {book}.")
    for rank in range(len(plan.circle.centres)):
        yield from _card_marks(state, plan, held, rank)


def _sizes(plan: Plan) -> str:
    """How large the buffers are; they may differ, and then the collective is refused."""
    if plan.alike:
        return f"{n_bytes(plan.about.n_bytes)} each"
    return f"buffers that differ, {n_bytes(plan.sizes[0])} to {n_bytes(plan.sizes[1])}"


def _card_marks(state: Collective, plan: Plan, held: Holdings, rank: int) -> Iterator[Mark]:
    sent = held.sent.get(rank, 0)
    (x, y), (width, height) = plan.place(rank), plan.card
    yield Mark(f"r{rank}", "heading", x + PAD, y + 16, text=f"rank {rank}")
    if rank in state.broken:
        end = fate(state, rank)
        kind = "text" if end == "was ended" else "warning"
        yield Mark(f"r{rank}.lost", kind, x + width - PAD - 6, y + 16, text=end, anchor="end")
    elif rank not in state.began:
        yield Mark(f"r{rank}.wait", "text", x + width - PAD - 6, y + 16, text="not here", anchor="end")
    if rank not in state.began:
        return
    if rank in state.finished and rank not in state.broken:
        for word in troubles(state, plan, held, rank)[:1]:
            word = "wrong" if word == "twice in the sum" else word
            yield Mark(f"r{rank}.wrong", "warning", x + width - PAD - 6, y + 16, text=word, anchor="end")
    for k, piece in enumerate(plan.pieces if plan.tag else ()):
        left, above = plan.cell_place(rank, k)
        name = piece.name.partition("–")[0]
        yield Mark(f"r{rank}.c{k}", "text", left - plan.tag, above + CELL / 2, plan.tag, text=name)
    foot, across = y + height - FOOT + 6, width - 2 * PAD
    whole = plan.about.n_bytes
    yield Mark(f"r{rank}.sent", "text", x + PAD, foot, text=f"sent {n_bytes(sent)}")
    if whole and not plan.crowded:
        yield Mark(f"r{rank}.share", "text", x + width - PAD, foot, text=f"{sent / whole:.3g}×", anchor="end")
    room = across / 1.05  # so that a tick at the end has the track on both sides
    yield Mark(f"r{rank}.track", "track", x + PAD, foot + 12, across, 8)
    yield Mark(f"r{rank}.used", "used", x + PAD, foot + 12, max(0.1, room * sent / plan.most), 8)
    expected = plan.expected(rank)
    if expected is not None:
        yield Mark(f"r{rank}.book", "now", x + PAD + room * expected / plan.most, foot + 8, 0, 16)


def legend_of(
    state: Collective, plan: Plan, held: Holdings, nodes: list[Node], edges: list[Edge]
) -> tuple[tuple[str, str], ...]:
    """Words for the marks that are on the picture, and for no others."""
    found = ["lost"] * bool(state.lost) + ["failed"] * bool(state.failed)
    found += [word for rank in held.cells if rank in state.began for word in troubles(state, plan, held, rank)]
    words = {
        "forward": "added to what is there (+=)", "store": "stored over it (=)", "active": "came in this step",
        "done": "complete", "waiting": "not here yet", "stopped": "was ended because of another rank",
        "trouble": " or ".join(dict.fromkeys(found)),
    }  # fmt: skip
    there = {node.state for node in nodes} | {edge.state for edge in edges}
    return tuple((mark, text) for mark, text in words.items() if mark in there and plan.about.world_size > 1)


def by_sender(hops: tuple[Hop, ...]) -> list[tuple[tuple[int, int], list[Hop]]]:
    """The hops of a step by receiver and sender."""
    key = lambda hop: (hop.event.dst, hop.event.src)  # noqa: E731 -- used twice, as it stands
    return [(pair, list(group)) for pair, group in groupby(sorted(hops, key=key), key=key)]
