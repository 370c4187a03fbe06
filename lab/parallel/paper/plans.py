"""A plan says who sends which chunk to whom: a generator of steps, each a few sends and receives of one rank.

It holds no data and knows no transport, so the same plan is checked on paper, run on workers and drawn on the screen.
What it yields is looked at here, and made into rows of numbers for an executor.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lab.errors import PlanError
from lab.parallel.paper.calling import Nothing, Own, line_where, misfit, name_of
from lab.parallel.paper.hop import Plan, Recv, Send, Step, block, chunks, elements, require_count
from lab.parallel.paper.registry import (
    CHUNKS_PER_RANK,
    COLLECTIVES,
    HOW,
    algorithms,
    chunks_of,
    collective,
    plan_of,
    require_plan,
)
from lab.words import counted, kind_of, shown

__all__ = [
    "CHUNKS_PER_RANK",
    "COLLECTIVES",
    "HOW",
    "Plan",
    "Recv",
    "Send",
    "Step",
    "algorithms",
    "block",
    "chunks",
    "chunks_of",
    "collective",
    "compile_plan",
    "elements",
    "plan_of",
    "plan_steps",
    "require_count",
    "require_plan",
    "steps_of",
]

MAX_STEPS = 100_000
"""So many steps of one rank are read; a ring of 64 ranks has 126."""

MAX_CHUNKS = 2**31
"""Into so many chunks a buffer may be cut: a compiled plan keeps them as 64-bit numbers."""

WRITTEN = {"Send": "Send(peer, start, stop)", "Recv": "Recv(peer, start, stop, reduce=True)"}
"""How hops are written, for hints."""

Rows = npt.NDArray[np.int64]

SEND, STORE, REDUCE = 0, 1, 2
"""Kinds in the second column of compiled rows."""

COLUMNS = 6
"""Of compiled rows: step, kind, peer, start, stop, at."""


def steps_of(plan: Plan, rank: int, world_size: int, n_chunks: int | None = None) -> list[Step]:
    """All steps of one rank, each hop looked at by itself. Hops of no chunk are left out, their steps are kept.

    Args:
        n_chunks: into how many chunks the buffer is cut; `chunks_of` the plan if not given.

    Raises:
        PlanError: no generator, other arguments, no end, an error of its own (which is the cause), a hop that does not
            say all, or one that no rank could do: to itself, to a rank or of a chunk that does not exist.

    Example:
        >>> def pass_on(rank, world_size, n_chunks):
        ...     yield Send((rank + 1) % world_size, 0, n_chunks), Recv((rank - 1) % world_size, 0, n_chunks, False)
        >>> steps_of(pass_on, 0, 3, 1)
        [(Send(peer=1, start=0, stop=1), Recv(peer=2, start=0, stop=1, reduce=False))]
    """
    require_plan(plan)
    rank, world_size, n_chunks = _sizes(plan, rank, world_size, n_chunks)
    name = name_of(plan)
    if wrong := misfit(plan, 3):
        raise PlanError(f"{name!r} is no plan of three arguments", given=wrong, hint=HOW)
    try:
        steps = Own("plan", name, "step", plan, (rank, world_size, n_chunks), {}).takes(MAX_STEPS + 1)
    except PlanError as why:
        _refuse_lacking(why, name, rank, world_size)
        raise
    if isinstance(steps, Nothing):
        raise PlanError(f"plan {name!r} gave no steps", given=f"{kind_of(steps.made)} for rank {rank}",
                        hint="a plan is a generator: it says `yield Send(...), Recv(...)`")  # fmt: skip
    if len(steps) > MAX_STEPS:
        raise PlanError(f"plan {name!r} does not come to an end",
                        given=f"rank {rank} of {counted(world_size, 'rank')} has more than {MAX_STEPS:,} steps",
                        hint="look for a loop whose condition never becomes false", rank=rank)  # fmt: skip
    return [_looked_at(step, at, rank, world_size, n_chunks) for at, step in enumerate(steps)]


def _sizes(plan: Plan, rank: object, world_size: object, n_chunks: object) -> tuple[int, int, int]:
    """The three arguments of a plan, as they have to be; no chunks given are as many as it wants."""
    n_ranks = require_count("world_size", world_size, least=1)
    at = _rank("rank", rank, n_ranks)
    n_cuts = chunks_of(plan, n_ranks) if n_chunks is None else require_count("n_chunks", n_chunks, least=1)
    if n_cuts > MAX_CHUNKS:
        raise PlanError("a buffer is not cut into so many chunks", given=f"n_chunks={n_cuts:,}",
                        hint=f"n_chunks={n_ranks} is one for each rank; at most {MAX_CHUNKS:,}")  # fmt: skip
    return at, n_ranks, n_cuts


def _rank(name: str, value: object, world_size: int) -> int:
    hint = f"ranks are 0 to {world_size - 1}" if world_size > 1 else "the only rank is 0"
    found = require_count(name, value, least=0, hint=hint)
    if found >= world_size:
        given = f"{name}={shown(found)}, world_size={world_size}"
        raise PlanError(f"the {name} is none of this world", given=given, hint=hint)
    return found


def _refuse_lacking(told: PlanError, name: str, rank: int, world_size: int) -> None:
    """Refuse a hop that was written with too few words, if that is what was raised; with the learner's lines."""
    why = told.__cause__
    lacks = re.match(r"(Send|Recv)\.__new__\(\) missing .*?: (.*)", str(why)) if isinstance(why, TypeError) else None
    if why is None or not lacks:
        return
    hop, names = lacks[1], lacks[2].replace("'", "")
    where = f"plan {name!r} on rank {rank} of {counted(world_size, 'rank')}, {line_where(why) or 'no line of yours'}"
    if names == "reduce":
        made = PlanError("a Recv does not say whether it adds: reduce=True or reduce=False?", given=where,
                         hint="reduce=True adds what comes in, reduce=False stores it", rank=rank)  # fmt: skip
    else:
        made = PlanError(f"a {hop} does not say all: {names} is missing", given=where,
                         hint=f"yield {WRITTEN[hop]}", rank=rank)  # fmt: skip
    raise made.with_traceback(why.__traceback__) from None


def _is_plain(hop: object, rank: int, world_size: int, n_chunks: int) -> bool:
    """Whether a hop is as it should be, and of Python's own numbers: true of most, and told in half a microsecond."""
    if type(hop) is Send:
        peer, start, stop = hop
    elif type(hop) is Recv and {type(hop.reduce)} == {bool} and hop.at is None:
        peer, start, stop = hop[:3]
    else:
        return False
    whole = {type(peer), type(start), type(stop)} == {int}  # a learner's may be anything
    return whole and 0 <= peer < world_size and peer != rank and 0 <= start <= stop <= n_chunks


def _looked_at(step: object, at: int, rank: int, world_size: int, n_chunks: int) -> Step:
    if type(step) is tuple and all(_is_plain(hop, rank, world_size, n_chunks) for hop in step):
        return step if all(hop.stop > hop.start for hop in step) else tuple(h for h in step if h.stop > h.start)
    where = f"rank {rank}, step {at}"
    hops = (step,) if isinstance(step, Send | Recv) else step
    if not (isinstance(hops, tuple | list) and all(isinstance(hop, Send | Recv) for hop in hops)):
        raise PlanError(f"{where}: a step is made of Send and Recv", given=shown(step),
                        hint=f"yield {WRITTEN['Send']}, {WRITTEN['Recv']}",
                        rank=rank, step=at)  # fmt: skip
    return tuple(hop for hop in (_hop(hop, where, rank, at, world_size, n_chunks) for hop in hops)
                 if hop.stop > hop.start)  # fmt: skip


def _hop(hop: Send | Recv, where: str, rank: int, at: int, world_size: int, n_chunks: int) -> Send | Recv:
    verb, to = ("sends", "to") if isinstance(hop, Send) else ("receives", "from")

    def wrong(what: str, hint: str) -> PlanError:
        return PlanError(f"{where}: {verb} {what}", given=shown(hop), hint=hint, rank=rank, step=at)

    try:
        peer, start, stop = map(operator.index, hop[:3])
    except TypeError:
        raise wrong("with a number that is not whole", "ranks and chunks are whole numbers: divide by //") from None
    if isinstance(hop, Recv) and not isinstance(hop.reduce, bool | np.bool_):
        raise wrong("with a reduce that is neither True nor False", "reduce=True adds, reduce=False stores")
    if not 0 <= peer < world_size:
        raise wrong(f"{to} rank {peer}, which does not exist",
                    f"ranks are 0 to {world_size - 1}: take the neighbour modulo world_size")  # fmt: skip
    if peer == rank:
        raise wrong(f"{to} itself", "what a rank has already need not travel; a world of one rank has no steps")
    if not 0 <= start <= stop <= n_chunks:
        raise wrong(f"chunks from {start} up to {stop}, which do not exist",
                    f"chunks are 0 to {n_chunks - 1}: modulo n_chunks? stop is one past the last")  # fmt: skip
    if isinstance(hop, Send):
        return Send(peer, start, stop)
    return Recv(peer, start, stop, bool(hop.reduce), _at(hop.at, start, stop, n_chunks, wrong))


def _at(at: object, start: int, stop: int, n_chunks: int, wrong: Callable[[str, str], PlanError]) -> int | None:
    """The place of what is moved, None where it stays what it was."""
    if at is None:
        return None
    try:
        first = operator.index(at)  # type: ignore[arg-type]  # whether it can is the question
    except TypeError:
        raise wrong("with a place that is not whole", "ranks and chunks are whole numbers: divide by //") from None
    if not 0 <= first <= first + stop - start <= n_chunks:
        raise wrong(f"to places from {first} up to {first + stop - start}, which do not exist",
                    f"chunks are 0 to {n_chunks - 1}; leave `at` out where chunks keep their places")  # fmt: skip
    return None if first == start else int(first)


def compile_plan(plan: Plan, rank: int, world_size: int, n_chunks: int | None = None, *, root: int = 0) -> Rows:
    """The steps of one rank as whole numbers, for an executor: made once for each plan, rank and world.

    Nothing depends on the size of the buffer: `elements` finds a chunk's place in one.

    Args:
        n_chunks: `chunks_of` the plan if not given.
        root: the rank that plays the plan's rank 0; the others follow around the circle.

    Returns:
        Read-only (n_hops, 6): step, kind (0 send, 1 store, 2 reduce), peer, start, stop, and the first chunk of where
        it is stored, which is `start` but for a `Recv` with another `at`.

    Raises:
        PlanError: as `steps_of`; a root that is no rank. That the ranks fit together is the business of `check_plan`.

    Example:
        >>> from lab.parallel import COLLECTIVES
        >>> compile_plan(COLLECTIVES["all_reduce", "ring"], 0, 2).tolist()
        [[0, 0, 1, 1, 2, 1], [0, 2, 1, 0, 1, 0], [1, 0, 1, 0, 1, 0], [1, 1, 1, 1, 2, 1]]
    """
    require_plan(plan)
    rank, world_size, n_chunks = _sizes(plan, rank, world_size, n_chunks)
    root = _rank("root", root, world_size)
    return _compiled(plan, rank, world_size, n_chunks, root)


@lru_cache(maxsize=256)
def plan_steps(plan: Plan, world_size: int, root: int = 0) -> int:
    """How many steps a plan has, on whichever rank it has most, cut into `chunks_of` it.

    Example:
        >>> from lab.parallel import COLLECTIVES
        >>> plan_steps(COLLECTIVES["all_reduce", "ring"], 4)
        6
    """
    compiled = (compile_plan(plan, rank, world_size, root=root) for rank in range(world_size))
    return max((int(rows[-1, 0]) + 1 for rows in compiled if len(rows)), default=0)


@lru_cache(maxsize=1024)  # a learner's redefined function is another key; old ones fall out
def _compiled(plan: Plan, rank: int, world_size: int, n_chunks: int, root: int) -> Rows:
    steps = steps_of(plan, (rank - root) % world_size, world_size, n_chunks)
    rows = np.array(list(_rows(steps, world_size, root)), np.int64).reshape(-1, COLUMNS)
    rows.setflags(write=False)
    return rows


def _rows(steps: list[Step], world_size: int, root: int) -> Iterator[tuple[int, int, int, int, int, int]]:
    for number, step in enumerate(steps):
        for hop in step:
            kind = SEND if isinstance(hop, Send) else REDUCE if hop.reduce else STORE
            first = hop.start if isinstance(hop, Send) else hop.place[0]
            yield number, kind, (hop.peer + root) % world_size, hop.start, hop.stop, first
