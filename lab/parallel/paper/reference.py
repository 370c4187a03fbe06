"""What a wrong plan should have said: its first difference from a right one that resembles it most.

A ring may run the other way round, or begin with another chunk, and be as right; so a reference is tried in all these
forms, and the form that agrees longest is the one that the learner had in mind.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from lab.parallel.paper.plans import Plan, Recv, Send, Step, chunks, steps_of


class Difference(NamedTuple):
    """Where two plans part."""

    rank: int
    step: int
    text: str


def first_difference(operation: str, steps: list[list[Step]], reference: Plan, n_chunks: int) -> Difference | None:
    """The first hop, by step and then by rank, in which a plan differs from the form of the reference nearest to it.

    Args:
        steps: of each rank of the wrong plan.

    Returns:
        None if the plan is a form of the reference.
    """
    own = [steps_of(reference, rank, len(steps), n_chunks) for rank in range(len(steps))]
    nearest: tuple[tuple[int, int, int], Difference] | None = None
    for form in _forms(own, n_chunks, any_start=operation == "all_reduce"):
        there = _differs(steps, form)
        if there is None:
            return None
        closeness = (there.step, there.rank, _in_common(steps, form))
        if nearest is None or closeness > nearest[0]:
            nearest = closeness, there
    return nearest[1] if nearest else None


def _in_common(steps: list[list[Step]], form: list[list[Step]]) -> int:
    """How many hops are equal, each rank's sends and receives taken in their order, whatever the step."""
    common = 0
    for mine, theirs in zip(steps, form, strict=True):
        for kind in (Send, Recv):
            got, wanted = ([hop for step in own for hop in step if isinstance(hop, kind)] for own in (mine, theirs))
            common += sum(map(operator.eq, got, wanted))
    return common


def _forms(plan: list[list[Step]], n_chunks: int, *, any_start: bool) -> Iterator[list[list[Step]]]:
    """The plan, mirrored or not, beginning with any chunk if no chunk has its place. The plan itself comes first."""
    world_size = len(plan)
    one_each = n_chunks == world_size  # otherwise blocks differ in size, and a shifted plan is another plan
    for sign in (1, -1):
        for shift in range(world_size if one_each and any_start else 1):

            def moved(hop: Send | Recv, sign: int = sign, shift: int = shift) -> Send | Recv:
                peer = sign * hop.peer % world_size
                if hop.stop - hop.start > 1 or not one_each:
                    return hop._replace(peer=peer)
                start = (sign * hop.start + shift) % n_chunks
                return hop._replace(peer=peer, start=start, stop=start + 1)

            if sign == 1 or one_each:
                yield [[tuple(map(moved, step)) for step in plan[sign * rank % world_size]]
                       for rank in range(world_size)]  # fmt: skip


def _differs(steps: list[list[Step]], form: list[list[Step]]) -> Difference | None:
    mine, theirs = ([[(at, step) for at, step in enumerate(own) if step] for own in plan] for plan in (steps, form))
    found = []
    for rank, pairs in enumerate(zip(mine, theirs, strict=True)):
        for (at, got), (_, wanted) in zip_longest(*pairs, fillvalue=(len(steps[rank]), ())):
            if set(got) != set(wanted):
                found.append(Difference(rank, at, f"rank {rank}, step {at}: {_say(got, wanted)}"))
                break
    return min(found, key=lambda there: (there.step, there.rank), default=None)


def _say(got: Step, wanted: Step) -> str:
    """Sends first: what is not sent cannot arrive."""
    for kind in (Send, Recv):
        here = [hop for hop in got if isinstance(hop, kind) and hop not in wanted]
        there = [hop for hop in wanted if isinstance(hop, kind) and hop not in got]
        if here or there:
            return _hop(kind, here[0] if here else None, there[0] if there else None)
    return "the same hop twice, expected once"


def _hop(kind: type[Send | Recv], got: Send | Recv | None, wanted: Send | Recv | None) -> str:
    verb, to = ("sent", "to") if kind is Send else ("received", "from")
    if got is None or wanted is None:
        here, there = (f"{chunks(h.start, h.stop)} {to} rank {h.peer}" if h else "nothing" for h in (got, wanted))
        return f"{verb} {here}, expected {there}"
    if got.peer != wanted.peer:
        return f"{verb} {chunks(got.start, got.stop)} {to} rank {got.peer}, expected {to} rank {wanted.peer}"
    if (got.start, got.stop) != (wanted.start, wanted.stop):
        return f"{verb} {chunks(got.start, got.stop)}, expected {chunks(wanted.start, wanted.stop)}"
    done = "add" if isinstance(wanted, Recv) and wanted.reduce else "store"
    did = "stored" if done == "add" else "added"
    return f"{did} {chunks(got.start, got.stop)} from rank {got.peer}, expected to {done} it"
