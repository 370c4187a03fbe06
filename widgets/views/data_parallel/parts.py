"""The picture of data-parallel training at one moment: a column for each replica, a row for each thing of a step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from widgets.layout.ring import along
from widgets.pictures.scene import Edge, Mark, Node, Token
from widgets.pictures.theme import short
from widgets.views.data_parallel.moment import Moment
from widgets.views.data_parallel.replicas import Replica
from widgets.views.words import n_bytes, number

MOST_RANKS = 16
"""More replicas are counted, not drawn."""
HEAD, SIDE, BOX, PITCH = 46.0, 136.0, 44.0, 78.0
ROWS = ("shard", "model", "gradient", "reduce", "sum", "update")
"""Ids of the boxes of a replica, from above."""
SHOWN_FROM = (0, 1, 1, 2, 2, 3)
"""Phase from which on each of them says something."""
WAYS = tuple(pairwise(ROWS))


class Row(NamedTuple):
    """What stands beside a row."""

    title: str
    about: str


TITLES = (
    Row("shard", "of the batch"), Row("model", "loss of its shard"), Row("gradient", "norm of its share"),
    Row("all-reduce", "received chunks"), Row("sum", "norm"), Row("update", "CRC of parameters"),
)  # fmt: skip


def column_width(n: int) -> float:
    """From one replica to the next: as wide as the page allows."""
    return max(104.0, min(156.0, 860.0 / max(1, n)))


def place(k: int, row: int, n: int) -> tuple[float, float]:
    """Centre of a box of the k-th replica that is drawn."""
    return SIDE + (k + 0.5) * column_width(n), HEAD + BOX / 2 + row * PITCH


def nodes_of(moment: Moment) -> Iterator[Node]:
    """The boxes, replica by replica."""
    crew = moment.crew[:MOST_RANKS]
    width = column_width(len(crew)) - 16
    odd = {row: odd_ones(moment, row) for row in (4, 5)}
    for k, rank in enumerate(crew):
        at, gone = moment.replicas.get(rank), rank in moment.lost
        for row, name in enumerate(ROWS):
            reached = at is not None and at.phase >= SHOWN_FROM[row]
            if gone and not reached and row != 1:
                continue
            label, sublabel = _words(moment, rank, at, row) if reached and at is not None else ("", "")
            if row == 1:
                label, sublabel = f"rank {rank}", _fate(moment, rank) or sublabel
            status = _state(moment, rank, at, row, odd.get(row, frozenset()))
            aria = f"rank {rank}, {TITLES[row].title}: {_aloud(moment, rank, at, row)}"
            kind = ("leaf", "device", "op", "constant", "op", "output")[row]
            yield Node(f"{name}{rank}", *place(k, row, len(crew)), width - 20 * (row == 3), BOX, label, sublabel,
                       kind=kind, state=status, aria=aria)  # fmt: skip


def _fate(moment: Moment, rank: int) -> str:
    """How a rank came to an early end, in a word; "" if it did not."""
    words = (("lost", moment.lost), ("failed", moment.failed), ("was ended", moment.stopped))
    return next((word for word, ranks in words if rank in ranks), "")


def _words(moment: Moment, rank: int, at: Replica, row: int) -> tuple[str, str]:
    """The two lines of a box that has something to say."""
    n = at.stop - at.start
    if row == 0:
        return (f"{at.start}–{at.stop - 1}" if n > 1 else f"{at.start}" if n else "none",
                f"{n} example{'s' * (n != 1)}" if n else "no examples")  # fmt: skip
    if row == 1:
        return "", f"loss {number(at.loss)}" if not math.isnan(at.loss) or n else "no loss"
    if row == 2:
        return number(at.contributed), milliseconds(at, 1)
    if row == 3:
        moved = moment.moved(rank)
        if moved is None:
            return "+", "not recorded" if len(moment.crew) > 1 else "no others"
        return f"{moved.n_hops} hop{'s' * (moved.n_hops != 1)}", n_bytes(moved.n_bytes)
    if row == 4:
        return number(at.total), milliseconds(at, 2)
    return f"{at.checksum:08x}", milliseconds(at, 3)


def milliseconds(at: Replica, phase: int) -> str:
    """How long a phase took, "" if it was not told."""
    if phase >= len(at.ms) or math.isnan(at.ms[phase]):
        return ""
    ms = at.ms[phase]
    return f"{ms:.3g} ms" if ms < 999.5 else f"{ms / 1000:.3g} s"


def _state(moment: Moment, rank: int, at: Replica | None, row: int, odd: frozenset[int]) -> str:
    phase = -1 if at is None else at.phase
    if row == 1 and (rank in moment.lost or rank in moment.failed):
        return "trouble"
    if rank in odd or (at is not None and _is_bad(at, row)):
        return "trouble"
    if phase >= SHOWN_FROM[row]:
        if row in {4, 5} and len(moment.crew) > 1 and not moment.late:
            return "done"
        return "active" if SHOWN_FROM[row] == phase and row != 3 else "idle"
    late = rank in moment.late and row == (0, 2, 4, 5)[phase + 1]
    return "waiting" if late else "idle"


def _is_bad(at: Replica, row: int) -> bool:
    """Whether the number in this box is not finite though there should be one."""
    seen = {1: at.loss, 2: at.contributed, 4: at.total}.get(row, 0.0)
    return at.phase >= SHOWN_FROM[row] and at.stop > at.start and not math.isfinite(seen)


def odd_ones(moment: Moment, row: int) -> frozenset[int]:
    """The ranks whose sum (row 4) or parameters (row 5) are not those of the most."""
    told = {
        rank: (at.total if row == 4 else at.checksum)
        for rank, at in moment.replicas.items()
        if at.phase >= SHOWN_FROM[row] and (row == 5 or math.isfinite(at.total))
    }
    if len(set(told.values())) < 2:
        return frozenset()
    common = Counter(told.values()).most_common(1)[0][0]
    return frozenset(rank for rank, value in told.items() if value != common)


def _aloud(moment: Moment, rank: int, at: Replica | None, row: int) -> str:
    if rank in moment.lost and row == 1:
        return f"lost: {moment.lost[rank]}"
    if at is None or at.phase < SHOWN_FROM[row]:
        return "not yet"
    first, second = _words(moment, rank, at, row)
    return ", ".join(filter(None, (first, second)))


# --- what moves ---


def edges_of(moment: Moment, nodes: list[Node]) -> list[Edge]:
    """Down each column, and from rank to rank where chunks of the all-reduce go."""
    there, crew, edges = {node.id for node in nodes}, moment.crew[:MOST_RANKS], []
    for rank in crew:
        at = moment.replicas.get(rank)
        for row, (above, below) in enumerate(WAYS):
            if {f"{above}{rank}", f"{below}{rank}"} <= there:
                lively = at is not None and at.phase == (0, 1, 2, 2, 3)[row]
                edges.append(Edge(f"{above}>{below}{rank}", f"{above}{rank}", f"{below}{rank}", (), "",
                                  "forward" if lively else "idle"))  # fmt: skip
    n = len(moment.crew)
    ring = len(crew) == n > 1 and all((dst - src) % n in {1, n - 1} for src, dst in moment.links)
    for src, dst in sorted(moment.links) if ring else ():
        if {f"reduce{src}", f"reduce{dst}"} <= there:
            moving = any(moment.replicas[r].phase == 2 for r in (src, dst) if r in moment.replicas)
            edges.append(Edge(f"ring{src}>{dst}", f"reduce{src}", f"reduce{dst}", _round(src, dst, n), "",
                              "forward" if moving else "idle"))  # fmt: skip
    return edges


def _round(src: int, dst: int, n: int) -> tuple[tuple[float, float], ...]:
    """The way from the last rank back to the first runs below the boxes between."""
    if abs(src - dst) == 1:
        return ()
    (ax, ay), (bx, _) = place(src, 3, n), place(dst, 3, n)
    inwards = math.copysign(16.0, bx - ax)
    return along(ax + inwards, bx - inwards, ay + BOX / 2 + 13)


def tokens_of(edges: list[Edge]) -> tuple[Token, ...]:
    """Down first, then around."""
    moving = [edge for edge in edges if edge.state == "forward"]
    return tuple(Token(edge.id, duration=700.0) for edge in moving)


# --- words around ---


def marks_of(moment: Moment, title: str) -> Iterator[Mark]:
    """The heading and the names of the rows, with what all replicas have in common."""
    yield Mark("title", "heading", 0, 12, text=title)
    for row, (name, about) in enumerate(TITLES):
        y = HEAD + BOX / 2 + row * PITCH
        yield Mark(f"row{row}", "heading", 0, y - 9, SIDE - 8, text=name)
        kind, words = _common(moment, row) or ("text", about)
        yield Mark(f"row{row}.about", kind, 0, y + 9, SIDE - 8, text=words)


def _common(moment: Moment, row: int) -> tuple[str, str] | None:
    """Whether the ranks agree, for the rows in which they should."""
    if row not in {4, 5} or len(moment.crew) < 2:
        return None
    if odd_ones(moment, row):
        return "warning", "they differ"
    told = [at for at in moment.replicas.values() if at.phase >= SHOWN_FROM[row]]
    if len(told) < len(moment.here) or not told:
        return None
    return "text", f"{'norm' if row == 4 else 'CRC'} equal on all"


def extent(moment: Moment) -> tuple[float, float]:
    """Width and height of the whole."""
    n = len(moment.crew[:MOST_RANKS])
    return SIDE + max(1, n) * column_width(n), HEAD + BOX + PITCH * (len(ROWS) - 1)


def legend_of(nodes: list[Node]) -> tuple[tuple[str, str], ...]:
    """Words for the marks that are on the picture, and for no others."""
    words = {
        "active": "just reached", "done": "the same on all ranks", "waiting": "the others wait for it",
        "trouble": "lost, failed, differs, or not finite",
    }  # fmt: skip
    there = {node.state for node in nodes}
    return tuple((mark, text) for mark, text in words.items() if mark in there)


def spread(values: list[float]) -> str:
    """Several numbers in a few words.

    Example:
        >>> spread([13, 13, 12]), spread([5, 5])
        ('12 to 13', '5')
    """
    low, high = min(values), max(values)
    return short(low) if low == high else f"{short(low)} to {short(high)}"
