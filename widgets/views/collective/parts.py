"""The pieces of a collective's picture at one moment: a card for each rank with its chunks, arrows, tokens, bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from widgets.layout.ring import Pair, Point
from widgets.pictures.measure import text_width
from widgets.pictures.scene import Edge, Mark, Node, Token
from widgets.views.collective import paper
from widgets.views.collective.plan import CELL, FOOT, NARROW, PAD, TITLE, Plan
from widgets.views.collective.right import complete, fault, troubles
from widgets.views.collective.state import Cell, Collective, Holdings, Hop
from widgets.views.collective.words import aloud, in_form, named, parts, parts_aloud, written
from widgets.views.words import milliseconds, n_bytes

TONE = -0.55
"""Of a cell with the parts of all ranks, on the blue side of the diverging palette; deeper would swallow the text."""
TOKENS = 60


def nodes_of(state: Collective, plan: Plan, held: Holdings) -> Iterator[Node]:
    """The cards, each with its cells behind it in reading order."""
    for seat in plan.seats:
        (x, y), (width, height), rank = plan.place(seat), plan.card, seat % plan.drawn
        yield Node(f"r{plan.name(seat)}", x + width / 2, y + height / 2, width, height, "", kind="device",
                   state=card_state(state, plan, held, rank), aria=card_aloud(state, held, rank))  # fmt: skip
        yield from _cells(state, plan, held, seat)


def card_aloud(state: Collective, held: Holdings, rank: int) -> str:
    """What a screen reader says of a rank."""
    return f"rank {rank}, sent {n_bytes(held.sent.get(rank, 0))}{_spoken_state(state, rank)}"


def card_state(state: Collective, plan: Plan, held: Holdings, rank: int) -> str:
    """Whether a rank is on its way, has left, or is in trouble."""
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


def _cells(state: Collective, plan: Plan, held: Holdings, seat: int) -> Iterator[Node]:
    rank = seat % plan.drawn
    if rank not in state.began:
        return
    if not plan.compact:
        for at, k in enumerate(plan.on(seat)):
            x, y = plan.cell_place(seat, at)
            yield cell_of(state, plan, rank, k, held.cells[rank][k], (x + plan.cell / 2, y + CELL / 2),
                          (plan.cell, CELL))._replace(id=f"r{plan.name(seat)}.{k}")  # fmt: skip
        return
    x, y = plan.place(seat)
    centre = x + plan.card[0] / 2, y + TITLE + CELL / 2
    yield counted_of(state, plan, held, rank, plan.on(seat), centre, (plan.card[0] - 2 * PAD, CELL))._replace(
        id=f"r{plan.name(seat)}.all"
    )


def counted_of(state: Collective, plan: Plan, held: Holdings, rank: int, pieces: Sequence[int], centre: Point,
               size: Point) -> Node:  # fmt: skip
    """How many of some pieces are complete on a rank, where there are too many to show each."""
    cells = [(plan.pieces[k], k, held.cells[rank][k]) for k in pieces]
    whole = sum(piece.stop - piece.start for piece, _, _ in cells)
    n = sum(piece.stop - piece.start for piece, k, cell in cells
            if complete(cell, plan, rank, k) and not fault(state, plan, cell, rank, k))  # fmt: skip
    status = "done" if n == whole else "active" if any(cell.came for _, _, cell in cells) else "idle"
    label = f"{n} of {whole}"
    return Node(f"r{rank}.all", *centre, *size, label, "complete", kind="constant", state=status,
                tone=TONE * n / whole, aria=f"rank {rank}: {label} chunks complete")  # fmt: skip


def cell_of(state: Collective, plan: Plan, rank: int, k: int, cell: Cell, centre: Point, size: Point) -> Node:
    """What a rank holds in a piece."""
    value, whose = in_form(cell.value, plan.form), parts(cell.counts)
    texts = [whose, f"{sum(map(bool, cell.counts))} of {len(cell.counts)}"]
    if not value:  # a bare number of a rank would be taken for a value
        several = "" if whose.startswith("all") else "rank " if sum(cell.counts) == 1 else "ranks "
        texts = [*([f"of {several}{whose}", f"of {whose}"] if any(cell.counts) else []), *texts]
    whose = next((text for text in texts if text_width(text, 12) <= size[0] - 4), texts[-1])
    done, bad = complete(cell, plan, rank, k), fault(state, plan, cell, rank, k)
    status = "trouble" if bad else "done" if done else "active" if cell.came else "idle"
    share = 1.0 if done else 0.8 * sum(map(bool, cell.counts)) / max(1, len(cell.counts))
    came = ", came in this step" if cell.came else ""
    told = ", ".join([aloud(cell.value), parts_aloud(cell.counts) + came, *bad])
    aria = f"rank {rank}, {named(plan.pieces[k])}: {told}"
    return Node(f"r{rank}.{k}", *centre, *size, value, whose, kind="constant",
                state=status, tone=TONE * share, aria=aria)  # fmt: skip


# --- what moves ---


def edges_of(state: Collective, plan: Plan, held: Holdings) -> list[Edge]:
    """An arrow where something moves now, and for each other pair of ranks where something has moved or will."""
    moving: dict[Pair, list[Hop]] = {}
    for hop in () if state.finished else held.hops:
        for pair in plan.seats_of(hop.event):
            moving.setdefault(pair, []).append(hop)
    return [
        _edge(pair, plan, moving.get(pair, []))
        for pair in sorted(plan.pairs)
        if pair in moving or (_is_shown(pair, state, plan) and pair[::-1] not in moving)
    ]


def _is_shown(pair: Pair, state: Collective, plan: Plan) -> bool:
    """Of two arrows there and back, which do not move at the same time, the one that comes next, else the last."""
    if plan.crowded and not plan.trees and (pair[1] - pair[0]) % plan.drawn != 1:
        return False
    if frozenset(pair) in plan.exchanged or pair[::-1] not in plan.pairs:
        return True
    now = max((hop.step for hop in state.hops), default=-1)
    ways = ((hop.step, way) for hop in plan.hops for way in plan.seats_of(hop))
    between = sorted((step, way) for step, way in ways if set(way) == set(pair))
    return next((way for step, way in between if step > now), between[-1][1]) == pair


def _edge(pair: Pair, plan: Plan, hops: list[Hop]) -> Edge:
    src, dst = pair
    status = ("forward" if hops[0].event.reduces else "store") if hops else "idle"
    tangled = bool(plan.trees and plan.exchanged) and plan.card[0] <= NARROW  # words would lie on each other
    label = _label(hops, plan, src, dst) if hops and not (plan.crowded or tangled) else ""
    a, b = plan.name(src), plan.name(dst)
    return Edge(f"{a}>{b}", f"r{a}", f"r{b}", plan.bends[pair], label, status)


def _label(hops: list[Hop], plan: Plan, src: int, dst: int) -> str:
    """What the receiver does, as one would write it: "c2 += 14.0"; shorter where the arrow is."""
    name, sign = ", ".join(carried(hop, plan) for hop in hops), "+=" if hops[0].event.reduces else "="
    (ax, ay), (bx, by) = (plan.circle.centres[seat] for seat in (src, dst))
    room = abs(bx - ax) - plan.card[0] - 20 if abs(ay - by) < 1 and not plan.bends[src, dst] else 120.0
    payload = hops[0].payload if len(hops) == 1 else None
    full = f"{name} {sign} {written(payload, 90)}"
    return full if payload is not None and payload.size == 1 and text_width(full, 12) <= room else f"{sign} {name}"


def carried(hop: Hop, plan: Plan) -> str:
    """The name of what a hop carries: "c2", "c0–c3", "x"."""
    return _through(plan, hop.pieces[0], hop.pieces[-1]) if hop.pieces else "nothing"


def tokens_of(edges: list[Edge]) -> tuple[Token, ...]:
    """A disc for what is added, a square for what is stored."""
    moving = [edge for edge in edges if edge.state != "idle"][:TOKENS]
    return tuple(Token(edge.id, duration=800.0, square=edge.state == "store") for edge in moving)


# --- words and bars ---


def heading(state: Collective, plan: Plan, moment: str) -> Iterator[Mark]:
    """The heading: what was called, what the text-book says, which moment this is, and when it was."""
    about, width = plan.about, plan.extent[0]
    ranks = f"{about.world_size} rank{'s' * (about.world_size != 1)}"
    call = f"{about.operation} by {about.algorithm}: {ranks}, {_sizes(plan)}"
    yield Mark("call", "heading", 0, 10, width - 110, text=call)
    yield Mark("moment", "heading", width, 10, text=moment, anchor="end")
    book = paper.sentence(about.operation, about.algorithm, plan.root, about.world_size)
    if book and plan.alike:
        yield Mark("book", "text", 0, 32, width - 110, text=f"Text-book: {book}.")
    if state.hops:
        yield Mark("time", "text", width, 32, text=f"after {milliseconds(state.elapsed_ms)}", anchor="end")


def cards_marks(state: Collective, plan: Plan, held: Holdings) -> Iterator[Mark]:
    """On each card its title, the names of its chunks, and how much the rank has sent; above two trees their chunks."""
    for t, grown in enumerate(plan.trees if len(plan.trees) > 1 else ()):
        corners = [plan.place(t * plan.drawn + rank) for rank in range(plan.drawn)]
        left, above = min(x for x, _ in corners), min(y for _, y in corners)
        yield Mark(f"tree{t}", "heading", left, above - 14, text=f"Tree {t + 1}: {listed(plan, grown.pieces)}")
    for seat in plan.seats:
        yield from _card_marks(state, plan, held, seat)


def _sizes(plan: Plan) -> str:
    """How large the buffers are; they may differ, and then the collective is refused."""
    if plan.alike:
        return f"{n_bytes(plan.about.n_bytes)} each"
    return f"buffers that differ, {n_bytes(plan.sizes[0])} to {n_bytes(plan.sizes[1])}"


def listed(plan: Plan, pieces: Sequence[int]) -> str:
    """Some pieces by name, neighbours drawn together."""
    runs: list[list[int]] = []
    for k in pieces:
        if runs and runs[-1][-1] == k - 1:
            runs[-1].append(k)
        else:
            runs.append([k])
    return ", ".join(_through(plan, run[0], run[-1]) for run in runs)


def _through(plan: Plan, first: int, last: int) -> str:
    if (first, last) == (0, len(plan.pieces) - 1):
        return "x"
    one, other = plan.pieces[first], plan.pieces[last]
    return one.name if one == other else f"c{one.start}–c{other.stop - 1}"


def _card_marks(state: Collective, plan: Plan, held: Holdings, seat: int) -> Iterator[Mark]:
    rank, name = seat % plan.drawn, plan.name(seat)
    (x, y), width = plan.place(seat), plan.card[0]
    yield Mark(f"r{name}", "heading", x + PAD, y + 16, text=f"rank {rank}")
    if word := fate_mark(state, plan, held, rank):
        kind, text = word
        yield Mark(f"r{name}.fate", kind, x + width - PAD - 6, y + 16, text=text, anchor="end")
    if rank not in state.began:
        return
    for at, k in enumerate(plan.on(seat) if plan.tag and not plan.compact else ()):
        left, above = plan.cell_place(seat, at)
        yield Mark(f"r{name}.c{k}", "text", left - plan.tag, above + CELL / 2, plan.tag,
                   text=plan.pieces[k].name.partition("–")[0])  # fmt: skip
    yield from _bar(state, plan, held, seat)


def fate_mark(state: Collective, plan: Plan, held: Holdings, rank: int) -> tuple[str, str] | None:
    """Kind and text of the word beside a rank that is not well or not there, if it is so."""
    if rank in state.broken:
        end = fate(state, rank)
        return "text" if end == "was ended" else "warning", end
    if rank not in state.began:
        return "text", "not here"
    if rank in state.finished:
        for word in troubles(state, plan, held, rank)[:1]:
            return "warning", "wrong" if word == "twice in the sum" else word
    return None


def _bar(state: Collective, plan: Plan, held: Holdings, seat: int) -> Iterator[Mark]:
    """How much a rank has sent, in its tree where there are two."""
    rank, name, whole = seat % plan.drawn, plan.name(seat), plan.about.n_bytes
    (x, y), (width, height) = plan.place(seat), plan.card
    sent = held.sent.get(rank, 0)
    if len(plan.trees) > 1:
        sent = sum(hop.n_bytes for hop in state.hops if hop.src == rank and seat in dict(plan.seats_of(hop)))
    foot, across = y + height - FOOT + 6, width - 2 * PAD
    yield Mark(f"r{name}.sent", "text", x + PAD, foot, text=f"sent {n_bytes(sent)}")
    if whole and width > NARROW:
        yield Mark(f"r{name}.share", "text", x + width - PAD, foot, text=f"{sent / whole:.3g}×", anchor="end")
    room = across / 1.05  # so that a tick at the end has the track on both sides
    yield Mark(f"r{name}.track", "track", x + PAD, foot + 12, across, 8)
    yield Mark(f"r{name}.used", "used", x + PAD, foot + 12, max(0.1, room * sent / plan.most), 8)
    expected = plan.expected(rank) if len(plan.trees) < 2 else None
    if expected is not None:
        yield Mark(f"r{name}.book", "now", x + PAD + room * expected / plan.most, foot + 8, 0, 16)


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
