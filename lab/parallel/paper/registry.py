"""The table of all plans by operation and algorithm: how one gets in, and how it is found."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar

from lab.errors import PlanError
from lab.parallel.paper.hop import Plan, require_count
from lab.words import nearest, one_of, shown

P = TypeVar("P", bound=Plan)

COLLECTIVES: dict[tuple[str, str], Plan] = {}
"""Every plan by (operation, algorithm), e.g. ("all_reduce", "ring")."""

CHUNKS_PER_RANK: dict[Plan, int] = {}
"""Of plans that want more than one; `chunks_of` reads it."""

HOW = "def plan(rank, world_size, n_chunks): yield Send(...), Recv(...)"
"""How a plan of one's own begins, for hints."""


def collective(operation: str, algorithm: str, *, chunks_per_rank: int = 1) -> Callable[[P], P]:
    """Enter a plan in `COLLECTIVES`, unchanged.

    Args:
        chunks_per_rank: into how many chunks for each rank the plan wants the buffer cut; what `chunks_of` tells.

    Raises:
        PlanError: a name that is no text, what is entered is no function, chunks that are not at least 1.

    Example:
        >>> from lab.parallel import COLLECTIVES
        >>> sorted(algorithm for operation, algorithm in COLLECTIVES if operation == "broadcast")
        ['flat', 'pipelined', 'tree']
    """
    _require_name("operation", operation)
    _require_name("algorithm", algorithm)
    many = require_count("chunks_per_rank", chunks_per_rank, least=1)

    def enter(plan: P) -> P:
        require_plan(plan)
        COLLECTIVES[operation, algorithm] = plan
        if many > 1:
            CHUNKS_PER_RANK[plan] = many
        return plan

    return enter


def chunks_of(plan: Plan, world_size: int) -> int:
    """Into how many chunks a plan wants the buffer cut where nobody says otherwise: one for each rank, or more.

    Raises:
        PlanError: no function, or a world without ranks.

    Example:
        >>> from lab.parallel import COLLECTIVES
        >>> chunks_of(COLLECTIVES["broadcast", "tree"], 3), chunks_of(COLLECTIVES["broadcast", "pipelined"], 3)
        (3, 12)
    """
    require_plan(plan)
    world_size = require_count("world_size", world_size, least=1)
    return world_size * CHUNKS_PER_RANK.get(plan, 1)


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
        known, operations = algorithms(operation), sorted({name for name, _ in COLLECTIVES})
        given = f"known: {', '.join(known or operations)}"
        meant = nearest(plan, known)
        ask = f"did you mean {meant!r}? Else name" if meant else "name"
        hint = f"{ask} one of these, or give the plan itself: a generator function"
        raise PlanError(f"there is no plan {shown(plan)} for {shown(operation)}", given=given,
                        hint=hint if known else one_of(operation, operations))  # fmt: skip
    return known_plan


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def algorithms(operation: object) -> list[str]:
    """The names of the plans for an operation; none for what is no operation.

    Example:
        >>> from lab.parallel import COLLECTIVES
        >>> algorithms("broadcast")
        ['flat', 'pipelined', 'tree']
    """
    return sorted(algorithm for known, algorithm in COLLECTIVES if isinstance(operation, str) and known == operation)


def require_plan(plan: object, operation: object = None) -> None:
    """Refuse what is no function, and a callable that could not be kept beside what was made of it.

    Raises:
        PlanError: so it is.

    Example:
        >>> require_plan(None, "reduce")
        Traceback (most recent call last):
        lab.errors.PlanError: a plan is a name or a generator function
        given: plan=None
        hint:  'flat', 'tree'; your own: def plan(rank, world_size, n_chunks): yield Send(...), Recv(...)
    """
    if not callable(plan):
        names = ", ".join(map(repr, algorithms(operation)))
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
