"""Whether what a rank holds is right: whose parts are in it, and whether its type can hold their sum."""

from __future__ import annotations

import numpy as np

from lab.events.event import Array
from lab.parallel import elements
from widgets.views.collective.plan import Plan
from widgets.views.collective.state import Cell, Collective, Holdings
from widgets.views.collective.words import finite


def complete(cell: Cell, plan: Plan, rank: int, k: int) -> bool:
    """Whether the cell holds what the operation promises for its end."""
    return cell.counts == plan.wanted[rank][k]


def wrong(cell: Cell, plan: Plan, rank: int, k: int, *, ended: bool) -> bool:
    """Whether somebody's part is in it twice, or it is not what was promised once the rank has left."""
    wanted = plan.wanted[rank][k]
    return wanted is not None and (max(cell.counts) > 1 or (ended and cell.counts != wanted))


def exact(state: Collective, plan: Plan, cell: Cell, k: int) -> Array | None:
    """The sum of the parts in a cell in float64 (complex128), None where a rank's numbers are not known."""
    piece, total = plan.pieces[k], None
    for rank, count in enumerate(cell.counts):
        if not count:
            continue
        event = state.began.get(rank)
        if event is None or event.value is None:
            return None
        flat = event.value.reshape(-1)
        own = flat[elements(piece.start, piece.stop, plan.pieces[-1].stop, flat.size)]
        part = count * own.astype(np.complex128 if own.dtype.kind == "c" else np.float64)
        total = part if total is None else total + part
    return total


def overflowed(state: Collective, plan: Plan, cell: Cell, k: int) -> bool:
    """Whether the type of the numbers cannot hold the sum of the parts: integers wrapped, others are infinite."""
    value = cell.value
    if value is None or not plan.alike or sum(cell.counts) < 2 or (value.dtype.kind in "fc" and finite(value)):
        return False
    if value.dtype.kind not in "iufc":
        return False
    total = exact(state, plan, cell, k)
    if total is None or total.shape != value.shape:
        return False
    if value.dtype.kind in "fc":
        return bool((np.isfinite(total) & ~np.isfinite(value)).any())
    signed, bits = value.dtype.kind == "i", 8 * value.dtype.itemsize
    low, beyond = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if signed else (0.0, 2.0**bits)
    sums = np.asarray(total, np.float64)
    return bool(((sums >= beyond) | (sums < low)).any())


def troubles(state: Collective, plan: Plan, held: Holdings, rank: int) -> list[str]:
    """What is not right with a rank's cells, in words; empty where all is well."""
    found: list[str] = []
    for k, cell in enumerate(held.cells[rank]):
        found += fault(state, plan, cell, rank, k)
    return list(dict.fromkeys(found))


def fault(state: Collective, plan: Plan, cell: Cell, rank: int, k: int) -> list[str]:
    """What is not right with a cell, in words, one or none.

    The most telling comes first: parts that are there twice, then parts that are missing, then the numbers.
    """
    over = rank in state.finished and state.is_over  # before, what came of others may not have been told yet
    if wrong(cell, plan, rank, k, ended=over):
        return ["twice in the sum" if max(cell.counts) > 1 else "unfinished"]
    if overflowed(state, plan, cell, k):
        return ["overflowed"]
    return [] if finite(cell.value) else ["not finite"]


def same_buffers(one: Collective, other: Collective) -> str:
    """Whether two collectives began with the same numbers on the same ranks, in words."""
    if one.began.keys() != other.began.keys():
        return f"one has {len(one.began)} ranks, the other {len(other.began)}"
    pairs = [(one.began[rank], other.began[rank]) for rank in one.began]
    if any(a.n_bytes != b.n_bytes for a, b in pairs):
        return "their buffers differ in size"
    if any(a.value is None or b.value is None for a, b in pairs):
        return "their buffers have the same size (numbers were not recorded)"
    alike = all(np.array_equal(a.value, b.value, equal_nan=a.value.dtype.kind in "fc") for a, b in pairs)  # type: ignore[union-attr,arg-type]  # looked at above
    return "they began with the same numbers" if alike else "they began with other numbers"
