"""Exercises of lesson 10: a first plan for an all-reduce, then one that sends as little as can be.

A plan is judged by what it does: its sends and receives are listed in the learner's process and proved here on paper,
so a ring, a tree and a halving-doubling are equally right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from lab.errors import LabError, PlanError
from lab.parallel.paper.check_plan import PlanReport, check_plan
from lab.parallel.paper.plans import Plan, Recv, Send, Step, steps_of
from lab.teach.exercise import Case, Check, Exercise, Mutant, Seen, Wrong
from lab.teach.exercises import plan_signs as signs
from lab.teach.plain import Plain

LIMIT = 1_000
"""Hops of one rank that are looked at; a ring of 8 has 28."""

WORLDS = ((4,), (2,), (8,))
"""The picture's first. Powers of two, so that plans that halve are right answers, too."""


def list_hops(plan: Plan, world_size: int) -> Plain:
    """Every rank's steps as plain tuples: (adds, peer, start, stop), where adds is None for a send.

    Example:
        >>> list_hops(lambda rank, n, k: [Send(1, 0, k)] if rank == 0 else [Recv(0, 0, k, reduce=False)], 2)
        ((((None, 1, 0, 2),),), (((False, 0, 0, 2),),))
    """
    return tuple(tuple(map(_plainly, _steps(plan, rank, world_size))) for rank in range(world_size))


def _plainly(step: Step) -> tuple[tuple[bool | None, int, int, int], ...]:
    return tuple(
        (hop.reduce if isinstance(hop, Recv) else None, int(hop.peer), int(hop.start), int(hop.stop)) for hop in step
    )


def _steps(plan: Plan, rank: int, world_size: int) -> list[Step]:
    def begun(rank: int, world_size: int, n_chunks: int) -> Any:
        made: Any = plan(rank, world_size, n_chunks)
        return _few(made, rank) if isinstance(made, Iterable) else made

    begun.__name__ = getattr(plan, "__name__", "plan")
    try:
        return steps_of(begun, rank, world_size)
    except LabError as why:
        own = why.__cause__
        if own is None:
            raise
        own.add_note(f"on rank {rank}")  # what the learner's lines raised tells more than that they did
        raise own from None


def _few(steps: Iterable[Any], rank: int) -> Iterator[Any]:
    n_hops = 0
    for step in steps:
        n_hops += max(len(step), 1) if isinstance(step, tuple | list) else 1
        if n_hops > LIMIT:
            raise PlanError("the plan does not come to an end", given=f"rank {rank} has more than {LIMIT:,} hops",
                            hint="look for a loop whose condition never becomes false", rank=rank)  # fmt: skip
        yield step


def is_all_reduce(case: Case, value: Plain, *, reference: str | None = None) -> Wrong | None:
    """Every rank ends with the part of every rank, each counted once."""
    report = _proved(case, value, reference)
    return report if isinstance(report, Wrong) else None


def looks_like_a_ring(case: Case, value: Plain) -> Wrong | None:
    """The same; a wrong plan is compared with the ring that it resembles most."""
    return is_all_reduce(case, value, reference="ring")


def sends_little(case: Case, value: Plain) -> Wrong | None:
    """No rank sends more than 2 (n - 1) / n of the buffer."""
    report = _proved(case, value, "ring")
    if isinstance(report, Wrong):
        return report
    n = report.world_size
    busiest = max(range(n), key=report.chunks_sent.__getitem__)
    sent, bound = report.chunks_sent[busiest], 2 * (n - 1)
    if sent <= bound:
        return None
    return Wrong(
        f"On {n} ranks: the sums are right, but rank {busiest} sends {_buffers(sent, n)}, "
        f"expected at most {_buffers(bound, n)}.",
        f"chunks sent by each rank: {', '.join(map(str, report.chunks_sent))}, in {report.steps} steps; "
        f"the buffer has {n} chunks",
        hint="who sends most, and which of these chunks had their receiver already, or could come from somebody else?",
    )


def _proved(case: Case, value: Plain, reference: str | None) -> PlanReport | Wrong:
    (n,) = case
    steps = signs.read(value)
    if steps is None:
        return Wrong(f"On {n} ranks: this is no plan.", str(value)[:200], "steps made of Send and Recv")
    if not _paired(steps):
        reference = None  # what nobody takes or nobody sends is wrong in any plan: no need to ask which was meant
    try:
        return check_plan("all_reduce", lambda rank, n, k: steps[rank], n, reference=reference)
    except PlanError as why:
        return Wrong(f"On {n} ranks: {why.problem}.", why.given, "", why.hint)


def _paired(steps: list[list[Step]]) -> bool:
    """Between any two ranks there are as many sends as receives."""
    flat = [(rank, hop) for rank, own in enumerate(steps) for step in own for hop in step]
    sent = Counter((rank, hop.peer) for rank, hop in flat if isinstance(hop, Send))
    return sent == Counter((hop.peer, rank) for rank, hop in flat if isinstance(hop, Recv))


def what_it_costs(seen: Seen) -> str:
    """Steps and the busiest rank's share, for the worlds of 4 and 8 ranks."""
    told: dict[int, str] = {}
    for (n,), answer in seen:
        report = _proved((n,), answer.value, None)
        if n >= 4 and isinstance(report, PlanReport):
            most = _buffers(max(report.chunks_sent), n)
            told[n] = f"{report.steps} steps on {n} ranks, and the busiest rank sends {most}"
    return f"What it costs: {'; '.join(told.values())}."


def _buffers(n_chunks: int, world_size: int) -> str:
    share = n_chunks / world_size
    return f"{share:.4g} {'buffer' if share == 1 else 'buffers'}"


def _on(case: Case) -> str:
    return f"On {case[0]} {'rank' if case[0] == 1 else 'ranks'}"


def _naive(
    rank: int, world_size: int, n_chunks: int, *, there: bool = True, back: bool = True, add: bool = True,
    again: bool = False, first: int = 1, last: int = 0, parts: int | None = None, talks: bool = True,
) -> Iterator[Send | Recv]:  # fmt: skip
    """All to rank 0 and back, with a switch for each way to get it wrong."""
    stop = n_chunks if parts is None else parts
    for phase in ["there"] * there + ["back"] * back:
        for peer in range(first, world_size - last):
            to, reduce = (0, add) if phase == "there" else (peer, again)
            other = peer if to == 0 else 0
            if rank == other and talks:
                yield Send(to, 0, stop)
            if rank == to:
                yield Recv(other, 0, stop, reduce)


def _wrong_naive(**switches: Any) -> Plan:
    return lambda rank, n, k: _naive(rank, n, k, **switches)


def _waits_first(rank: int, world_size: int, n_chunks: int) -> Iterator[Send | Recv]:
    others = [peer for peer in range(world_size) if peer != rank]
    yield from (Recv(peer, 0, n_chunks, True) for peer in others)
    yield from (Send(peer, 0, n_chunks) for peer in others)


MY_FIRST_PLAN = Exercise(
    name="my_first_plan",
    task="Write any plan after which every rank holds the sum of all buffers.",
    stub='''\
def my_first_plan(rank, world_size, n_chunks):
    for peer in range(1, world_size):
        if rank == peer:
            yield Send(0, 0, n_chunks)
        if rank == 0:
            yield Recv(peer, 0, n_chunks, reduce=True)
''',
    arguments=("world_size",),
    results=("the steps of every rank",),
    answer=_wrong_naive(),
    call=list_hops,
    checks=(
        Check("every rank ends with the sum, on 4 ranks", WORLDS[:1], is_all_reduce),
        Check("the same on 2 and 8 ranks", WORLDS[1:], is_all_reduce),
        Check("a rank alone has nothing to send", [(1,)], is_all_reduce),
    ),
    mutants=(
        Mutant("the sum is made but does not come back", _wrong_naive(back=False),
               "rank 0 knows the sum now. Who tells the others?", signs.only_one_rank_has_it),
        Mutant("a part of the buffer never travels", _wrong_naive(parts=1),
               "chunks 0 to n_chunks: stop is one past the last", signs.chunks_left_at_home),
        Mutant("one rank is left out", _wrong_naive(last=1),
               "range(1, world_size) ends with the last rank: does yours?", signs.a_rank_left_out),
        Mutant("what arrives is stored where it has to be added", _wrong_naive(add=False),
               "Recv(..., reduce=True) adds to what is there, reduce=False writes over it", signs.nothing_is_added),
        Mutant("the finished sum is added once more on its way back", _wrong_naive(again=True),
               "the sum replaces what a rank had: reduce=False", signs.added_again),
        Mutant("a rank sends to itself", _wrong_naive(first=0),
               "rank 0 has its own part already: with which peer does the loop begin?", signs.says("itself")),
        Mutant("a rank names a neighbour that is not there", lambda rank, n, k: [Send(rank + 1, 0, k)],
               "ranks are 0 to world_size - 1", signs.says("which does not exist")),
        Mutant("one side of the hops is missing", _wrong_naive(talks=False),
               "a hop takes two: a Send on one rank and a Recv on the other", signs.one_side_is_missing),
        Mutant("every rank waits before it sends", _waits_first,
               "somebody has to send first; what is yielded in one step happens at once", signs.all_wait_first),
    ),
    hints=(
        "begin with 2 ranks: rank 1 sends, rank 0 adds. What is missing then?",
        "a second loop goes the way back: rank 0 sends to each peer, and the peer stores",
    ),
    show=_on,
    remark=what_it_costs,
)  # fmt: skip


def _ring(
    rank: int, world_size: int, n_chunks: int, *, steps: tuple[int, int] = (0, 0),
    adds: tuple[bool, bool] = (True, False), begin: int = 1, late: int = 1, back: bool = False, still: bool = False,
    whole: bool = False, apart: bool = False, wrap: bool = True, around: bool = True, one_sided: bool = False,
) -> Iterator[Step | Send | Recv]:  # fmt: skip
    """The ring, with a switch for each way to get it wrong; `steps` are those too many in each half."""
    n = world_size
    right, left = ((rank + 1) % n, (rank - 1) % n) if wrap else (rank + 1, rank - 1)
    for phase in (0, 1):
        for step in range(max(n - 1 + steps[phase], 0)):
            mine = rank + phase * begin - (0 if still else step)
            theirs = mine - late
            send, recv = (c % n_chunks if around else c for c in (mine, theirs))
            hops: Step = (
                Send(right, *((0, n_chunks) if whole else (send, send + 1))),
                Recv(right if back else left, *((0, n_chunks) if whole else (recv, recv + 1)), adds[phase]),
            )
            yield from reversed(hops) if apart else [hops[: 1 if one_sided else 2]]


def _wrong_ring(**switches: Any) -> Plan:
    return lambda rank, n, k: _ring(rank, n, k, **switches)


MY_ALL_REDUCE = Exercise(
    name="my_all_reduce",
    task="Write an all-reduce in which no rank sends more than 2 (n - 1) / n of the buffer, for 2, 4 and 8 ranks.",
    stub='''\
def my_all_reduce(rank, world_size, n_chunks):
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    for step in range(world_size - 1):
        mine, theirs = (rank - step) % n_chunks, (rank - step - 1) % n_chunks
        yield Send(right, mine, mine + 1), Recv(left, theirs, theirs + 1, reduce=True)
''',
    arguments=("world_size",),
    results=("the steps of every rank",),
    answer=_ring,
    call=list_hops,
    checks=(
        Check("every rank ends with the sum, on 4 ranks", WORLDS[:1], looks_like_a_ring),
        Check("the same on 2 and 8 ranks", WORLDS[1:], looks_like_a_ring),
        Check("no rank sends more than 2 (n - 1) / n of the buffer", WORLDS, sends_little),
        Check("a rank alone has nothing to send", [(1,)], is_all_reduce),
    ),
    mutants=(
        Mutant("a neighbour is not taken modulo world_size", _wrong_ring(wrap=False),
               "the right neighbour of the last rank is rank 0", signs.says("which does not exist")),
        Mutant("a chunk number runs out of its range", _wrong_ring(around=False),
               "take chunks modulo n_chunks; stop is the chunk plus one, without modulo",
               signs.says("which do not exist")),
        Mutant("one side of the hops is missing", _wrong_ring(one_sided=True),
               "a hop takes two: a Send on one rank and a Recv on the other", signs.one_side_is_missing),
        Mutant("every rank waits before it sends", _wrong_ring(apart=True),
               "yield the Send and the Recv in the same step: yield Send(...), Recv(...)", signs.all_wait_first),
        Mutant("it receives from the side to which it sends (wrong direction)", _wrong_ring(back=True),
               "in a ring all send to one side: from which side does it come then?", signs.wrong_direction),
        Mutant("everything goes through one rank", _wrong_naive(),
               "the sums are right, but rank 0 does all the work: give every rank a chunk to answer for",
               signs.one_rank_does_it_all),
        Mutant("whole buffers travel where one chunk would do", _wrong_ring(whole=True, adds=(True, False)),
               "cut the buffer: each rank sends one chunk in each step", signs.whole_buffers),
        Mutant("what arrives is stored where it has to be added", _wrong_ring(adds=(False, False)),
               "in the first half sums grow: Recv(..., reduce=True)", signs.nothing_is_added),
        Mutant("the all-gather is missing: the sums are made, but not handed round", _wrong_ring(steps=(0, -99)),
               "after world_size - 1 steps each rank has one finished chunk. How do the others get it?",
               signs.not_handed_round),
        Mutant("finished sums are added once more", _wrong_ring(adds=(True, True)),
               "in the second half nothing grows: reduce=False", signs.added_again),
        Mutant("the reduce half has one step too many", _wrong_ring(steps=(1, 0), begin=0),
               "a chunk that meets n ranks is added n - 1 times: how many steps are that?", signs.adds_too_often),
        Mutant("the same chunk is sent in every step", _wrong_ring(still=True),
               "what came in the last step is what goes out in this one", signs.same_chunk_again),
        Mutant("the chunk that is expected is one off from the chunk that the neighbour sends", _wrong_ring(late=0),
               "put rank - 1 into the formula of what is sent: that is what the left neighbour sends to you",
               signs.one_chunk_off),
        Mutant("a half ends a step too early", _wrong_ring(steps=(0, -1)),
               "for 4 ranks each half has 3 steps", signs.a_step_short),
        Mutant("the all-gather begins with a chunk that is not finished", _wrong_ring(begin=0),
               "which chunk did you add to last? That one is finished: hand it on first", signs.begins_unfinished),
        Mutant("there is a step too many: the sums are right, but a chunk travels for nothing",
               _wrong_ring(steps=(0, 1)), "who has which chunk after 2 (n - 1) steps?", signs.a_step_too_many),
    ),
    hints=(
        "two halves of world_size - 1 steps: in the first the sums grow, in the second they are handed round",
        "in the second half each rank first sends the chunk that it finished: which one did it add to last?",
        "the second half is the first with every chunk number one higher, and with reduce=False",
    ),
    show=_on,
    remark=what_it_costs,
)  # fmt: skip
