"""A plan says who sends which chunk to whom: a generator of steps, each a few sends and receives of one rank.

It holds no data and knows no transport, so the same plan is checked on paper, run on workers and drawn on the screen.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from lab.checks import whole
from lab.errors import PlanError
from lab.parallel.paper.calling import Nothing, Own, line_where, misfit, name_of
from lab.words import counted, kind_of, nearest, shown


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

MAX_CHUNKS = 2**31
"""Into so many chunks a buffer may be cut: a compiled plan keeps them as 64-bit numbers."""

HOW = "def plan(rank, world_size, n_chunks): yield Send(...), Recv(...)"
"""How a plan of one's own begins, for hints."""


WRITTEN = {"Send": "Send(peer, start, stop)", "Recv": "Recv(peer, start, stop, reduce=True)"}
"""How hops are written, for hints."""

Rows = npt.NDArray[np.int64]

SEND, STORE, REDUCE = 0, 1, 2
"""Kinds in the second column of compiled rows."""


def require_count(name: str, value: object, *, least: int, hint: str = "") -> int:
    """`lab.checks.whole` for ranks, chunks and their like.

    Raises:
        PlanError: it is no whole number, or is below `least`.

    Example:
        >>> require_count("world_size", 0, least=1)
        Traceback (most recent call last):
        lab.errors.PlanError: world_size is a whole number of at least 1
        given: world_size=0
        hint:  for example world_size=4
    """
    return whole(name, value, least=least, hint=hint or f"for example {name}=4", error=PlanError)


def collective(operation: str, algorithm: str) -> Callable[[P], P]:
    """Enter a plan in `COLLECTIVES`, unchanged.

    Raises:
        PlanError: a name that is no text, or what is entered is no function.

    Example:
        >>> from lab.parallel import COLLECTIVES
        >>> sorted(algorithm for operation, algorithm in COLLECTIVES if operation == "all_reduce")
        ['naive', 'ring']
    """
    _require_name("operation", operation)
    _require_name("algorithm", algorithm)

    def enter(plan: P) -> P:
        require_plan(plan)
        COLLECTIVES[operation, algorithm] = plan
        return plan

    return enter


def _require_name(what: str, name: object) -> None:
    if not (isinstance(name, str) and name):
        raise PlanError("a plan is entered by the names of its operation and its algorithm",
                        given=f"{what}={shown(name)}", hint='@collective("all_reduce", "mine")')  # fmt: skip


def plan_of(operation: str, plan: str | Plan) -> Plan:
    """The plan of this name for an operation, or the plan itself.

    Raises:
        PlanError: no plan has this name, or it is neither a name nor a function.
    """
    if not isinstance(plan, str):
        require_plan(plan, operation)
        return plan
    known_plan = COLLECTIVES.get((operation, plan)) if _is_text(operation) else None
    if known_plan is None:
        known = ", ".join(f"{o} {a}" for o, a in sorted(COLLECTIVES))
        meant = nearest(plan, algorithms(operation))
        ask = f"did you mean {meant!r}? Else name" if meant else "name"
        raise PlanError(f"there is no plan {shown(plan)} for {shown(operation)}", given=f"known: {known}",
                        hint=f"{ask} one of these, or give the plan itself: a generator function")  # fmt: skip
    return known_plan


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def algorithms(operation: object) -> list[str]:
    """The names of the plans for an operation; none for what is no operation.

    Example:
        >>> from lab.parallel import COLLECTIVES
        >>> algorithms("all_reduce")
        ['naive', 'ring']
    """
    return sorted(algorithm for known, algorithm in COLLECTIVES if isinstance(operation, str) and known == operation)


def require_plan(plan: object, operation: object = None) -> None:
    """Refuse what is no function, and a callable that could not be kept beside what was made of it.

    Raises:
        PlanError: so it is.

    Example:
        >>> require_plan(None, "all_reduce")
        Traceback (most recent call last):
        lab.errors.PlanError: a plan is a name or a generator function
        given: plan=None
        hint:  'naive' or 'ring'; your own: def plan(rank, world_size, n_chunks): yield Send(...), Recv(...)
    """
    if not callable(plan):
        names = " or ".join(map(repr, algorithms(operation)))
        hint = f"{names}; your own: {HOW}" if names else HOW
        if isinstance(plan, str):
            hint = f"plan_of(operation, {shown(plan, 30)}) gives the plan of a name; your own: {HOW}"
        elif inspect.isgenerator(plan):
            hint = "give the function itself, without calling it: the lab asks it for the steps of every rank"
        raise PlanError("a plan is a name or a generator function", given=f"plan={shown(plan)}", hint=hint)
    try:
        hash(plan)
    except TypeError:
        raise PlanError("a plan that is no function has to be hashable: what is made of it is kept", given=shown(plan),
                        hint="@dataclass(frozen=True), or a function with three arguments") from None  # fmt: skip


def block(owner: int, world_size: int, n_chunks: int) -> tuple[int, int]:
    """First chunk and end of the chunks that rank `owner` (taken modulo the world) answers for: its fair share.

    Raises:
        PlanError: a number that is not whole, a world without ranks, fewer chunks than none.

    Example:
        >>> [block(owner, 4, 6) for owner in range(4)], block(-1, 4, 4)
        ([(0, 1), (1, 3), (3, 4), (4, 6)], (3, 4))
    """
    # Asked for each hop of each rank: what is as it should be costs 0.1 us.
    if not (type(owner) is type(world_size) is type(n_chunks) is int and world_size > 0 <= n_chunks):
        owner, world_size = _any_whole("owner", owner), require_count("world_size", world_size, least=1)
        n_chunks = require_count("n_chunks", n_chunks, least=0)
    owner %= world_size
    return n_chunks * owner // world_size, n_chunks * (owner + 1) // world_size


def elements(start: int, stop: int, n_chunks: int, n_elements: int) -> slice:
    """Where chunks `start` to `stop` lie in a flat buffer of any size; chunks differ by at most one element.

    Raises:
        PlanError: a number that is not whole or below 0, or no chunks at all.

    Example:
        >>> [elements(chunk, chunk + 1, 4, 10) for chunk in range(4)]
        [slice(0, 2, None), slice(2, 5, None), slice(5, 7, None), slice(7, 10, None)]
    """
    if not (type(start) is type(stop) is type(n_chunks) is type(n_elements) is int and start >= 0 <= stop
            and n_chunks > 0 <= n_elements):  # fmt: skip
        start, stop = require_count("start", start, least=0), require_count("stop", stop, least=0)
        n_chunks = require_count("n_chunks", n_chunks, least=1)
        n_elements = require_count("n_elements", n_elements, least=0)
    return slice(n_elements * start // n_chunks, n_elements * stop // n_chunks)


def _any_whole(name: str, value: object) -> int:
    """`value` as an int, also below 0."""
    try:
        found = None if isinstance(value, bool | np.ndarray) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        found = None
    if found is None:
        raise PlanError(f"{name} is a whole number", given=f"{name}={shown(value)}", hint=f"for example {name}=0")
    return found


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
        PlanError: no generator, other arguments, no end, an error of its own (which is the cause), a hop that does not
            say all, or one that no rank could do: to itself, to a rank or of a chunk that does not exist.

    Example:
        >>> def pass_on(rank, world_size, n_chunks):
        ...     yield Send((rank + 1) % world_size, 0, n_chunks), Recv((rank - 1) % world_size, 0, n_chunks, False)
        >>> steps_of(pass_on, 0, 3, 1)
        [(Send(peer=1, start=0, stop=1), Recv(peer=2, start=0, stop=1, reduce=False))]
    """
    require_plan(plan)
    rank, world_size, n_chunks = _sizes(rank, world_size, n_chunks)
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


def _sizes(rank: object, world_size: object, n_chunks: object) -> tuple[int, int, int]:
    """The three arguments of a plan, as they have to be; no chunks given is one for each rank."""
    n_ranks = require_count("world_size", world_size, least=1)
    at = _rank("rank", rank, n_ranks)
    n_cuts = n_ranks if n_chunks is None else require_count("n_chunks", n_chunks, least=1)
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


def _looked_at(step: object, at: int, rank: int, world_size: int, n_chunks: int) -> Step:
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
        PlanError: as `steps_of`; a root that is no rank. That the ranks fit together is the business of `check_plan`.

    Example:
        >>> from lab.parallel import COLLECTIVES
        >>> compile_plan(COLLECTIVES["all_reduce", "ring"], 0, 2).tolist()
        [[0, 0, 1, 1, 2], [0, 2, 1, 0, 1], [1, 0, 1, 0, 1], [1, 1, 1, 1, 2]]
    """
    require_plan(plan)
    rank, world_size, n_chunks = _sizes(rank, world_size, n_chunks)
    root = _rank("root", root, world_size)
    return _compiled(plan, rank, world_size, n_chunks, root)


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
    steps = steps_of(plan, (rank - root) % world_size, world_size, n_chunks)
    rows = np.array(list(_rows(steps, world_size, root)), np.int64).reshape(-1, 5)
    rows.setflags(write=False)
    return rows


def _rows(steps: list[Step], world_size: int, root: int) -> Iterator[tuple[int, int, int, int, int]]:
    for at, step in enumerate(steps):
        for hop in step:
            kind = SEND if isinstance(hop, Send) else REDUCE if hop.reduce else STORE
            yield at, kind, (hop.peer + root) % world_size, hop.start, hop.stop
