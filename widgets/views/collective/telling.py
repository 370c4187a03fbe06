"""What a collective says in sentences: what happened last, the caption, and who holds what."""

from __future__ import annotations

from lab.parallel import COLLECTIVES
from lab.parallel.paper.plans import plan_steps
from lab.words import counted
from widgets.layout.ring import MOST_IN_ROWS
from widgets.layout.tree import depth
from widgets.views.collective import paper
from widgets.views.collective.grid import grid_of
from widgets.views.collective.parts import by_sender, carried, fate
from widgets.views.collective.plan import MOST_RANKS, Plan
from widgets.views.collective.right import complete, exact, overflowed, wrong
from widgets.views.collective.state import Cell, Collective, Holdings, links_of
from widgets.views.collective.words import aloud, parts, written
from widgets.views.words import milliseconds, n_bytes, why_lost

TOLD = 4
"""So many hops of a step are told one by one."""
MOST_LINKS, MOST_TIMES = 64, 12
"""So many are told one by one."""

BARRIERS = {
    "": "A barrier is a gather of one byte on rank 0 and a broadcast of it: nobody leaves before all are there. ",
    "dissemination": "In a barrier each rank tells those 1, 2, 4 ... after it of whom it has heard: nobody leaves "
    "before all are there. ",
}
"""What a barrier is, by algorithm."""

RESULTS = {
    "all_reduce": "every rank holds the sum of all parts",
    "reduce": "rank {root} holds the sum of all parts",
    "broadcast": "every rank holds what rank {root} had",
    "reduce_scatter": "every rank holds the sum of all parts in its own chunk",
    "all_gather": "every rank holds every rank's chunk",
    "gather": "rank {root} holds every rank's chunk",
    "scatter": "every rank holds its own chunk of what rank {root} had",
    "send_recv": "one rank holds what rank {root} had",
    "shift": "every rank holds what the rank before it had",
    "all_to_all": "every rank holds one chunk of each rank, in the order of ranks",
    "barrier": "every rank knows that all others came here",
}


def total(state: Collective, plan: Plan) -> int:
    """Number of steps of the whole collective, 0 while it is not known."""
    n, on_paper = plan.about.world_size, COLLECTIVES.get((plan.about.operation, plan.about.algorithm))
    known = plan_steps(on_paper, n) if on_paper is not None and n <= MOST_RANKS else 0
    return max(known, len(plan.steps)) if known or state.finished else 0


def moment(state: Collective, plan: Plan, *, over: bool) -> str:
    """Short: "start", "step 3 of 6", "end"."""
    if over or state.broken:
        return "end"
    n = len(state.steps)
    of = total(state, plan)
    return (f"step {n} of {of}" if of else f"step {n}") if n else "start"


def sentence(state: Collective, plan: Plan, held: Holdings, which: str = "") -> str:
    """What happened last; `which` of several collectives it is."""
    about, n = plan.about, plan.about.world_size
    what = "the barrier" if about.operation == "barrier" else f"{about.operation} by {about.algorithm}"
    if state.broken:
        return _broken(state, what, _within(which))
    if state.finished:
        return _ended(state, plan, held) + _afterwards(state)
    if state.hops:
        of = total(state, plan)
        return f"Step {len(state.steps)}{f' of {of}' if of else ''}: {_moves(plan, held)}."
    missing = [rank for rank in range(n) if rank not in state.began]
    if missing:
        waits = f"{_named(missing)} {'are' if len(missing) > 1 else 'is'} not here yet"
        return f"{len(state.began)} of {n} ranks entered {what}; {waits}."
    if n == 1:
        return f"One rank entered {what}: nothing has to move."
    return f"{n} ranks entered {what}; each holds its own part."


def _broken(state: Collective, what: str, where: str = "") -> str:
    """Who was lost or raised, where and why, and what became of the others."""
    causes = [f"rank {rank} was lost{where}{_because(rank, why)}" for rank, why in sorted(state.lost.items())]
    causes += [f"rank {rank} failed{where}{_because(rank, why)}" for rank, why in sorted(state.failed.items())]
    told = ", ".join(causes) or "the launch was ended"
    others = sorted(state.stopped - state.lost.keys())
    were = f"; {_named(others)} {'were' if len(others) > 1 else 'was'} ended with it" if causes and others else ""
    return f"{told[0].upper()}{told[1:]}: {what} did not end{were}."


def _within(which: str) -> str:
    """In which of several collectives: " in collective 5,124" of "collective 5,124 of 5,124"."""
    return f" in {which.partition(' of ')[0]}" if which else ""


def _because(rank: int, why: str) -> str:
    """A reason in brackets, without a repetition of what is said already."""
    why = why_lost(rank, why)
    return f" ({why})" if why else ""


def _afterwards(state: Collective) -> str:
    """What went wrong after all had left."""
    ends = [(rank, "was lost", why) for rank, why in sorted(state.lost.items())]
    ends += [(rank, "failed", why) for rank, why in sorted(state.failed.items())]
    return "".join(f" Afterwards rank {rank} {end}{_because(rank, why)}." for rank, end, why in ends)


def _named(ranks: list[int]) -> str:
    """Ranks in words."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def _moves(plan: Plan, held: Holdings) -> str:
    told = []
    for (dst, src), hops in by_sender(held.hops)[:TOLD]:
        name = ", ".join(carried(hop, plan) for hop in hops)
        value = written(hops[0].payload, 1e9) if len(hops) == 1 else ""
        verb = "adds" if hops[0].event.reduces else "stores"
        told.append(f"rank {dst} {verb} {name}{f' = {value}' if value else ''} from rank {src}")
    more = len(by_sender(held.hops)) - len(told)
    return ", ".join(told) + (f", and {more} more such hops" if more else "")


def _ended(state: Collective, plan: Plan, held: Holdings) -> str:
    n = plan.about.world_size
    if len(state.finished) < n:
        return f"{len(state.finished)} of {n} ranks left {plan.about.operation}."
    faults = [
        f"rank {rank} holds {parts(cell.counts)} in {plan.pieces[k].name}"
        for rank, cells in held.cells.items()
        for k, cell in enumerate(cells)
        if wrong(cell, plan, rank, k, ended=True)
    ]
    if faults:
        more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
        return f"All {n} ranks left, but this is no {plan.about.operation}: {faults[0]}{more}."
    if burst := _overflow(state, plan, held):
        return f"All {n} ranks left, but {burst}."
    result = RESULTS.get(plan.about.operation, "every rank has left").format(root=plan.root)
    if n == 1:
        return f"One rank: {result}, without a step."
    return f"All {n} ranks left after {len(plan.steps)} step{'s' * (len(plan.steps) != 1)}: {result}; {_sent(held)}."


def _overflow(state: Collective, plan: Plan, held: Holdings) -> str:
    """The first sum that its type cannot hold, "" if there is none."""
    for rank, cells in held.cells.items():
        for k, cell in enumerate(cells):
            if cell.value is None or not overflowed(state, plan, cell, k):
                continue
            total = exact(state, plan, cell, k)
            assert total is not None
            held_there, due = (written(value, 1e9) for value in (cell.value, total))
            held_there += f" in {plan.pieces[k].name}"
            return (
                f"the sum overflowed: rank {rank} holds {held_there}, where the parts add up to {due},"
                f" which {cell.value.dtype} cannot hold"
            )
    return ""


def _sent(held: Holdings) -> str:
    amounts = sorted(set(held.sent.values()))
    if len(amounts) == 1:
        return f"each sent {n_bytes(amounts[0])}"
    most = max(held.sent, key=lambda rank: held.sent[rank])
    return f"rank {most} sent most, {n_bytes(amounts[-1])}"


def account(state: Collective, plan: Plan, held: Holdings) -> list[str]:
    """Who holds what, a line for each rank, and what the text-book says."""
    lines = []
    for rank, cells in sorted(held.cells.items())[:MOST_RANKS]:
        if rank not in state.began:
            lines.append(f"rank {rank}: not here yet")
            continue
        if plan.compact:
            done = [piece for k, piece in enumerate(plan.pieces) if complete(cells[k], plan, rank, k)]
            n = sum(piece.stop - piece.start for piece in done)
            holds = f"{n} of {plan.pieces[-1].stop} chunks complete"
        else:
            holds = ", ".join(_holds(piece.name, cell) for piece, cell in zip(plan.pieces, cells, strict=True))
        expected = plan.expected(rank)
        book = "" if expected is None else f" of {n_bytes(expected)} by the text-book"
        book += f"; {fate(state, rank)}" if rank in state.broken else ""
        lines.append(f"rank {rank}: {holds}; sent {n_bytes(held.sent.get(rank, 0))}{book}")
    book = paper.sentence(plan.about.operation, plan.about.algorithm, plan.root, plan.about.world_size)
    lines += [f"Text-book: {book}."] * bool(book and plan.alike)
    if state.hops:
        lines += [f"Links: {_links(state)}.", f"Time: {_times(state)}."]
    return lines


def _links(state: Collective) -> str:
    """Bytes by link."""
    links = links_of(state.hops)
    amounts = set(links.values())
    if len(amounts) == 1:
        each = "each" if len(links) > 1 else f"{min(links)[0]} to {min(links)[1]}"
        return f"{counted(len(links), 'link')}, {each} carried {n_bytes(amounts.pop())}"
    told = [f"{src} to {dst} {n_bytes(sent)}" for (src, dst), sent in sorted(links.items())]
    more = f" and {len(told) - MOST_LINKS} more" if len(told) > MOST_LINKS else ""
    return f"{', '.join(told[:MOST_LINKS])}{more}"


def _times(state: Collective) -> str:
    """When steps were over, as far as the ranks told it."""
    first, ends = min(event.time_ns for event in state.began.values()), dict[int, int]()
    for hop in state.hops:
        ends[hop.step] = max(ends.get(hop.step, 0), hop.time_ns)
    told = [milliseconds((ends[step] - first) / 1e6) for step in state.steps]
    if len(told) > MOST_TIMES:
        told = [*told[: MOST_TIMES - 1], "…", told[-1]]
    left = f"; all had left after {milliseconds((state.left_ns - first) / 1e6)}" if state.left_ns else ""
    return f"steps were over {', '.join(told)} after the first rank entered{left}"


def _holds(name: str, cell: Cell) -> str:
    value = aloud(cell.value) if cell.value is not None else ""
    what = value or "the buffer" if name == "x" else f"{name} {value}".rstrip()
    return f"{what} ({parts(cell.counts)})"


def caption(state: Collective, plan: Plan, held: Holdings, *, n_dropped: int, which: str = "", other: str = "") -> str:
    """The point of the picture, and of several collectives which one it shows, and how another is shown."""
    n = plan.about.world_size
    name = plan.about.operation.replace("_", "-").capitalize()
    source = f"{name} ({which}). " if which else ""
    if state.lost or state.failed:
        source += (_broken(state, name, _within(which)) if state.broken else _afterwards(state).strip()) + " "
    if plan.about.operation == "barrier" and n > 1:
        source += BARRIERS.get(plan.about.algorithm, BARRIERS[""])
    if n == 1:
        return f"{source}One rank alone holds everything already, so nothing moves.{other}"
    known = any(cell.value is not None for cells in held.cells.values() for cell in cells)
    many = any(cell.value is not None and cell.value.size > 1 for cells in held.cells.values() for cell in cells)
    if plan.compact:
        cell = "it is said how many chunks of each rank are complete"
    elif known:
        cell = f"each cell is a chunk: its number{'s, or their mean µ,' * many} and below it whose parts are in it"
    else:
        cell = "each cell is a chunk and says whose parts are in it; its numbers were not recorded"
    if plan.layout == "matrix":
        if known and not plan.compact and max(n, len(plan.pieces)) > MOST_IN_ROWS:
            cell = "each cell is a chunk and says whose parts are in it"
        grid = grid_of(plan.drawn, len(plan.pieces))
        one, two = ("on the left", "on the right") if grid.second[1] == grid.first[1] else ("above", "below")
        told = ", and the steps it took or what moves now" * grid.roomy
        grids = f"Each cell {one} is a link: bytes so far{told}; {two} {cell}."
        return f"{source}{grids}{_more(state, plan, n_dropped)}{other}"
    tick = ", with a tick where the text-book ends" * (plan.expected(0) is not None and len(plan.trees) < 2)
    more = f"{_trees(plan)}{_more(state, plan, n_dropped)}"
    return f"{source}{cell[0].upper()}{cell[1:]}; the bars are bytes sent (× the buffer){tick}.{more}{other}"


def _trees(plan: Plan) -> str:
    """How deep the trees are that the hops make."""
    if not plan.trees:
        return ""
    deep = [depth(grown.parents) for grown in plan.trees]
    if len(deep) == 1:
        return f" The hops make a tree of {counted(deep[0] + 1, 'level')}."
    return f" The hops make two trees of {deep[0] + 1} and {deep[1] + 1} levels, each for its own chunks."


def _more(state: Collective, plan: Plan, n_dropped: int) -> str:
    """What is not there."""
    n = plan.about.world_size
    more = f" {n - MOST_RANKS} more ranks are not drawn." * (n > MOST_RANKS)
    more += f" {state.n_left_out:,} later hops are not shown." * (state.n_left_out > 0)
    return more + f" {n_dropped:,} events were lost on the way: sums may be more complete than shown." * (n_dropped > 0)
