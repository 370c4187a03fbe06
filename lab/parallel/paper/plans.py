"""A plan says who sends which chunk to whom: a generator of steps, each a few sends and receives of one rank.

It holds no data and knows no transport, so the same plan is checked on paper, run on workers and drawn on the screen.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from lab.errors import PlanError
from lab.parallel.paper.calling import misfit
from lab.words import kind_of


class Send(NamedTuple):
    """Chunks `start` to `stop` (not included) of this rank go to `peer`, as they were when the step began."""

    peer: int
    start: int
    stop: int


class Recv(NamedTuple):
    """Chunks `start` to `stop` (not included) come from `peer`, and are added to those here or stored over them."""

    peer: int
    start: int
    stop: int
    reduce: bool


Step = tuple[Send | Recv, ...]
"""What a rank does at once. Sends never wait; the step ends when all receives are in, applied in the order written."""

Plan = Callable[[int, int, int], Iterable[Step | Send | Recv]]
"""`plan(rank, world_size, n_chunks)` yields the steps of one rank; a single hop counts as a step of its own."""

P = TypeVar("P", bound=Plan)

COLLECTIVES: dict[tuple[str, str], Plan] = {}
"""Every plan by (operation, algorithm), e.g. ("all_reduce", "ring")."""

MAX_STEPS = 100_000
"""So many steps of one rank are read; a ring of 64 ranks has 126."""

WRITTEN = {"Send": "Send(peer, start, stop)", "Recv": "Recv(peer, start, stop, reduce=True)"}
"""How hops are written, for hints."""

Rows = npt.NDArray[np.int64]

SEND, STORE, REDUCE = 0, 1, 2
"""Kinds in the second column of compiled rows."""


def collective(operation: str, algorithm: str) -> Callable[[P], P]:
    """Enter a plan in `COLLECTIVES`, unchanged.

    Example:
        >>> from lab.parallel import COLLECTIVES
        >>> sorted(algorithm for operation, algorithm in COLLECTIVES if operation == "all_reduce")
        ['naive', 'ring']
    """

    def enter(plan: P) -> P:
        COLLECTIVES[operation, algorithm] = plan
        return plan

    return enter


def plan_of(operation: str, plan: str | Plan) -> Plan:
    """The plan of this name for an operation, or the plan itself.

    Raises:
        PlanError: no plan has this name.
    """
    if not isinstance(plan, str):
        return plan
    if (operation, plan) not in COLLECTIVES:
        known = ", ".join(f"{o} {a}" for o, a in sorted(COLLECTIVES))
        raise PlanError(f"there is no plan {plan!r} for {operation!r}", given=f"known: {known}",
                        hint="name one of these, or give the plan itself: a generator function")  # fmt: skip
    return COLLECTIVES[operation, plan]


def name_of(plan: Plan) -> str:
    """The name of a plan for messages."""
    return str(getattr(plan, "__name__", plan))


def block(owner: int, world_size: int, n_chunks: int) -> tuple[int, int]:
    """First chunk and end of the chunks that rank `owner` (taken modulo the world) answers for: its fair share.

    Example:
        >>> [block(owner, 4, 6) for owner in range(4)], block(-1, 4, 4)
        ([(0, 1), (1, 3), (3, 4), (4, 6)], (3, 4))
    """
    owner %= world_size
    return n_chunks * owner // world_size, n_chunks * (owner + 1) // world_size


def elements(start: int, stop: int, n_chunks: int, n_elements: int) -> slice:
    """Where chunks `start` to `stop` lie in a flat buffer of any size; chunks differ by at most one element.

    Example:
        >>> [elements(chunk, chunk + 1, 4, 10) for chunk in range(4)]
        [slice(0, 2, None), slice(2, 5, None), slice(5, 7, None), slice(7, 10, None)]
    """
    return slice(n_elements * start // n_chunks, n_elements * stop // n_chunks)


def chunks(start: int, stop: int) -> str:
    """In words: "chunk 3", "chunks 0 to 2", "no chunk"."""
    if stop - start > 1:
        return f"chunks {start} to {stop - 1}"
    return f"chunk {start}" if stop > start else "no chunk"


def steps_of(plan: Plan, rank: int, world_size: int, n_chunks: int | None = None) -> list[Step]:
    """All steps of one rank, each hop looked at by itself. Hops of no chunk are left out, their steps are kept.

    Args:
        n_chunks: into how many chunks the buffer is cut; one for each rank if not given.

    Raises:
        PlanError: no generator, other arguments, no end, a hop that does not say all, or one that no rank could do:
            to itself, to a rank or of a chunk that does not exist.

    Example:
        >>> def pass_on(rank, world_size, n_chunks):
        ...     yield Send((rank + 1) % world_size, 0, n_chunks), Recv((rank - 1) % world_size, 0, n_chunks, False)
        >>> steps_of(pass_on, 0, 3, 1)
        [(Send(peer=1, start=0, stop=1), Recv(peer=2, start=0, stop=1, reduce=False))]
    """
    n_chunks = world_size if n_chunks is None else n_chunks
    for name, value in (("rank", rank), ("world_size", world_size), ("n_chunks", n_chunks)):
        require_whole(name, value)
    if not (0 <= rank < world_size and n_chunks >= 1):
        raise PlanError("a plan needs a rank of its world and at least one chunk",
                        given=f"rank {rank}, world_size {world_size}, n_chunks {n_chunks}",
                        hint="0 <= rank < world_size, n_chunks >= 1")  # fmt: skip
    if wrong := misfit(plan, 3):
        raise PlanError(f"{name_of(plan)!r} is no plan of three arguments", given=wrong,
                        hint="def plan(rank, world_size, n_chunks): yield Send(...), Recv(...)")  # fmt: skip
    try:
        made: Any = plan(rank, world_size, n_chunks)
        steps = list(islice(made, MAX_STEPS + 1)) if isinstance(made, Iterable) else None
    except TypeError as why:
        _refuse_lacking(why, rank)
        raise
    if steps is None:
        raise PlanError(f"plan {name_of(plan)!r} gave no steps", given=f"{kind_of(made)} for rank {rank}",
                        hint="a plan is a generator: it says `yield Send(...), Recv(...)`")  # fmt: skip
    if len(steps) > MAX_STEPS:
        raise PlanError(f"plan {name_of(plan)!r} does not come to an end",
                        given=f"rank {rank} has more than {MAX_STEPS:,} steps",
                        hint="look for a loop whose condition never becomes false", rank=rank)  # fmt: skip
    return [_looked_at(step, at, rank, world_size, n_chunks) for at, step in enumerate(steps)]


def require_whole(name: str, value: object) -> None:
    """Refuse a number of ranks or chunks that is not whole.

    Raises:
        PlanError: so it is.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise PlanError(f"{name} is a whole number", given=f"{name}={value!r}", hint=f"for example {name}=4")


def _refuse_lacking(why: TypeError, rank: int) -> None:
    """Refuse a hop that was written with too few words, if that is what was raised; with the learner's lines."""
    lacks = re.match(r"(Send|Recv)\.__new__\(\) missing .*?: (.*)", str(why))
    if not lacks:
        return
    hop, names = lacks[1], lacks[2].replace("'", "")
    if names == "reduce":
        made = PlanError("a Recv does not say whether it adds: reduce=True or reduce=False?", given=f"on rank {rank}",
                         hint="reduce=True adds what comes in, reduce=False stores it", rank=rank)  # fmt: skip
    else:
        made = PlanError(f"a {hop} does not say all: {names} is missing", given=f"on rank {rank}",
                         hint=f"yield {WRITTEN[hop]}", rank=rank)  # fmt: skip
    raise made.with_traceback(why.__traceback__) from None


def _looked_at(step: object, at: int, rank: int, world_size: int, n_chunks: int) -> Step:
    where = f"rank {rank}, step {at}"
    hops = (step,) if isinstance(step, Send | Recv) else step
    if not (isinstance(hops, tuple | list) and all(isinstance(hop, Send | Recv) for hop in hops)):
        raise PlanError(f"{where}: a step is made of Send and Recv", given=repr(step),
                        hint=f"yield {WRITTEN['Send']}, {WRITTEN['Recv']}",
                        rank=rank, step=at)  # fmt: skip
    return tuple(hop for hop in (_hop(hop, where, rank, at, world_size, n_chunks) for hop in hops)
                 if hop.stop > hop.start)  # fmt: skip


def _hop(hop: Send | Recv, where: str, rank: int, at: int, world_size: int, n_chunks: int) -> Send | Recv:
    verb, to = ("sends", "to") if isinstance(hop, Send) else ("receives", "from")

    def wrong(what: str, hint: str) -> PlanError:
        return PlanError(f"{where}: {verb} {what}", given=repr(hop), hint=hint, rank=rank, step=at)

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
    return Send(peer, start, stop) if isinstance(hop, Send) else Recv(peer, start, stop, bool(hop.reduce))


def compile_plan(plan: Plan, rank: int, world_size: int, n_chunks: int | None = None, *, root: int = 0) -> Rows:
    """The steps of one rank as whole numbers, for an executor: made once for each plan, rank and world.

    Nothing depends on the size of the buffer: `elements` finds a chunk's place in one.

    Args:
        n_chunks: one for each rank if not given.
        root: the rank that plays the plan's rank 0; the others follow around the circle.

    Returns:
        Read-only (n_hops, 5): step, kind (0 send, 1 store, 2 reduce), peer, start, stop.

    Raises:
        PlanError: as `steps_of`. That the ranks fit together is the business of `check_plan`.

    Example:
        >>> from lab.parallel import COLLECTIVES
        >>> compile_plan(COLLECTIVES["all_reduce", "ring"], 0, 2).tolist()
        [[0, 0, 1, 1, 2], [0, 2, 1, 0, 1], [1, 0, 1, 0, 1], [1, 1, 1, 1, 2]]
    """
    return _compiled(plan, rank, world_size, world_size if n_chunks is None else n_chunks, root)


@lru_cache(maxsize=256)
def plan_steps(plan: Plan, world_size: int, root: int = 0) -> int:
    """How many steps a plan has, on whichever rank it has most; chunks are one for each rank.

    Example:
        >>> from lab.parallel import COLLECTIVES
        >>> plan_steps(COLLECTIVES["all_reduce", "ring"], 4)
        6
    """
    compiled = (compile_plan(plan, rank, world_size, root=root) for rank in range(world_size))
    return max((int(rows[-1, 0]) + 1 for rows in compiled if len(rows)), default=0)


@lru_cache(maxsize=1024)  # a learner's redefined function is another key; old ones fall out
def _compiled(plan: Plan, rank: int, world_size: int, n_chunks: int, root: int) -> Rows:
    steps = steps_of(plan, (rank - root) % world_size if 0 <= rank < world_size else rank, world_size, n_chunks)
    rows = np.array(list(_rows(steps, world_size, root)), np.int64).reshape(-1, 5)
    rows.setflags(write=False)
    return rows


def _rows(steps: list[Step], world_size: int, root: int) -> Iterator[tuple[int, int, int, int, int]]:
    for at, step in enumerate(steps):
        for hop in step:
            kind = SEND if isinstance(hop, Send) else REDUCE if hop.reduce else STORE
            yield at, kind, (hop.peer + root) % world_size, hop.start, hop.stop
