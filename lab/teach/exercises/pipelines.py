"""Exercises of lesson 15: the share of time that a pipeline waits, and a schedule that keeps few activations alive.

A schedule is judged as a plan is: its actions are listed in the learner's process, and proved and timed here on paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from lab.errors import LabError, ScheduleError
from lab.parallel.paper.check_schedule import ScheduleReport, check_schedule
from lab.parallel.paper.schedules import Action, Schedule, one_f_one_b, table_of
from lab.teach.exercise import Case, Check, Exercise, Mutant, Seen, Wrong
from lab.teach.exercises import schedule_signs as signs
from lab.teach.plain import Plain

BUBBLE = Exercise(
    name="bubble",
    task="Return the share of time, 0 to 1, in which a pipeline of n_ranks waits when it works on n_micro pieces.",
    stub='''\
def bubble(n_ranks, n_micro):
    return n_ranks / n_micro
''',
    arguments=("n_ranks", "n_micro"),
    results=("share of time",),
    answer=lambda p, m: (p - 1) / (m + p - 1),
    checks=(
        Check("the pipeline of the picture", [(4, 8)]),
        Check("one rank alone, which never waits", [(1, 8)]),
        Check("one piece alone", [(4, 1)]),
        Check("other numbers", [(2, 3), (8, 64)]),
    ),
    mutants=(
        Mutant("it is ranks over pieces", lambda p, m: p / m, "what does one rank alone wait for?"),
        Mutant("the waiting is compared with the work, not with the whole time", lambda p, m: (p - 1) / m,
               "a share of the whole: all the time is m pieces of work and p - 1 of waiting"),
        Mutant("there is one wait too many: the ranks are p, the gaps between them p - 1", lambda p, m: p / (m + p),
               "how long does the last rank wait for its first piece?"),
        Mutant("the whole time is a piece too long", lambda p, m: (p - 1) / (m + p),
               "count the columns of the picture for one direction: when is the last rank done?"),
        Mutant("the share of work is given, not that of waiting", lambda p, m: m / (m + p - 1),
               "the two shares make 1 together"),
        Mutant("the share is given as a percentage", lambda p, m: 100 * (p - 1) / (m + p - 1),
               "a share lies between 0 and 1"),
        Mutant("ranks and pieces have changed places", lambda p, m: (m - 1) / (m + p - 1),
               "with more pieces the share gets smaller"),
        Mutant("the pieces are left out: this is the naive pipeline", lambda p, m: (p - 1) / p,
               "with one piece all ranks but one wait; what do more pieces change?"),
    ),
    hints=(
        "how long does the last rank wait before its first piece comes?",
        "p - 1 pieces of waiting, m pieces of work: which share of the two together is waiting?",
    ),
)  # fmt: skip

PIPELINES = ((4, 8), (2, 4), (3, 6), (4, 2), (1, 3))
"""(n_ranks, n_micro); the picture's first, then one with fewer pieces than ranks, and one rank alone."""


LIMIT = 1_000
"""Actions of one rank that are looked at; there are 16 in the picture."""


def list_actions(order: Schedule, n_ranks: int, n_micro: int) -> Plain:
    """Every rank's actions as plain tuples (kind, stage, micro).

    Example:
        >>> list_actions(one_f_one_b, 1, 1)
        ((('F', 0, 0), ('B', 0, 0)),)
    """
    at = 0

    def told(rank: int, n_ranks: int, n_micro: int, *, chunks_per_rank: int = 1) -> Iterable[Action]:
        nonlocal at
        at = rank
        made: Any = order(rank, n_ranks, n_micro)
        return _few(made, rank) if isinstance(made, Iterable) else made

    try:
        table = table_of(told, n_ranks, n_micro)
    except LabError as why:
        own = why.__cause__
        if own is None:
            raise
        own.add_note(f"on rank {at}")  # what the learner's lines raised tells more than that they did
        raise own from None
    return tuple(tuple(tuple(action) for action in actions) for actions in table)


def _few(made: Iterable[Any], rank: int) -> list[Any]:
    actions = list(islice(made, LIMIT + 1))
    if len(actions) > LIMIT:
        given = f"rank {rank} has more than {LIMIT:,} actions"
        raise ScheduleError("the schedule does not come to an end", given=given,
                            hint="look for a loop whose condition never becomes false")  # fmt: skip
    return actions


def runs(case: Case, value: Plain) -> Wrong | None:
    """Each micro-batch goes through each stage once each way, and nobody waits for ever."""
    report = _proved(case, value)
    return report if isinstance(report, Wrong) else None


def keeps_few(case: Case, value: Plain) -> Wrong | None:
    """Rank r holds at most n_ranks - r activations."""
    report = _proved(case, value)
    if isinstance(report, Wrong):
        return report
    for rank, live in enumerate(report.peak_live):
        if live > (most := case[0] - rank):
            return Wrong(
                f"{_on(case)}: it runs, but rank {rank} holds {live} activations at once, expected at most {most}.",
                f"activations that each rank holds at most: {', '.join(map(str, report.peak_live))}",
                hint="an activation is held from a forward to its backward: do the backward sooner",
            )
    return None


def wastes_nothing(case: Case, value: Plain) -> Wrong | None:
    """It ends as early as 1F1B does, where a backward takes twice as long as a forward."""
    report = _proved(case, value)
    if isinstance(report, Wrong):
        return report
    best = check_schedule(one_f_one_b, *case)
    if report.makespan <= best.makespan:
        return None
    return Wrong(f"{_on(case)}: it runs, but needs {report.makespan:g} units of time, expected at most "
                 f"{best.makespan:g}.", f"its ranks wait {report.bubble:.0%} of the time, they could wait "
                 f"{best.bubble:.0%}", hint="who waits longest, and which forward could it do meanwhile?")  # fmt: skip


def what_it_costs(seen: Seen) -> str:
    """Bubble and activations of the first pipeline."""
    case, answer = seen[0]
    report = _proved(case, answer.value)
    assert isinstance(report, ScheduleReport)
    return (f"What it costs with {case[0]} ranks and {case[1]} micro-batches: {report.bubble:.0%} of the time is "
            f"waiting, and the ranks hold at most {', '.join(map(str, report.peak_live))} activations.")  # fmt: skip


def _proved(case: Case, value: Plain) -> ScheduleReport | Wrong:
    table = signs.read(value)
    if table is None:
        return Wrong(f"{_on(case)}: this is no schedule.", str(value)[:200], "actions: Action(kind, stage, micro)")
    try:
        return check_schedule(table, *case)
    except ScheduleError as why:
        return Wrong(f"{_on(case)}: {why.problem}.", why.given, "", why.hint)


def _on(case: Case) -> str:
    n_ranks, n_micro = case
    return f"On {n_ranks} rank{'s' * (n_ranks > 1)} with {n_micro} micro-batch{'es' * (n_micro > 1)}"


def _one_f_one_b(
    rank: int, n_ranks: int, n_micro: int, *, warmup: Callable[[int, int], int] = lambda rank, n: n - rank - 1,
    stage: int | None = None, cool: bool = True, first: int = 0, bounded: bool = True,
) -> Iterator[Action]:  # fmt: skip
    """1F1B, with a switch for each way to get it wrong."""
    own = rank if stage is None else stage
    n_warm = max(warmup(rank, n_ranks), 0)
    n_warm = min(n_warm, n_micro) if bounded else n_warm
    yield from (Action("F", own, first + m) for m in range(n_warm))
    for m in range(n_micro - n_warm):
        yield Action("F", own, first + n_warm + m)
        yield Action("B", own, first + m)
    yield from (Action("B", own, first + m) for m in range(max(n_micro - n_warm, 0), n_micro if cool else 0))


def _wrong(**switches: Any) -> Schedule:
    return lambda rank, n_ranks, n_micro, chunks_per_rank=1: _one_f_one_b(rank, n_ranks, n_micro, **switches)


def _simply(order: str) -> Schedule:
    """What the letters say: "FB" one after the other, "F B" first all forwards, then all backwards."""

    def simple(rank: int, n_ranks: int, n_micro: int, *, chunks_per_rank: int = 1) -> Iterator[Action]:
        for kinds in order.split():
            for m in range(n_micro):
                yield from (Action(kind, rank, m) for kind in kinds)

    return simple


MY_SCHEDULE = Exercise(
    name="my_schedule",
    task="Write an order in which rank r holds at most n_ranks - r activations and no time is wasted.",
    stub='''\
def my_schedule(rank, n_ranks, n_micro):
    for m in range(n_micro):
        yield Action("F", rank, m)
    for m in range(n_micro):
        yield Action("B", rank, m)
''',
    arguments=("n_ranks", "n_micro"),
    results=("the actions of every rank",),
    answer=one_f_one_b,
    call=list_actions,
    checks=(
        Check("every micro-batch goes through every stage once each way, and nobody waits for ever", PIPELINES, runs),
        Check("rank r holds at most n_ranks - r activations", PIPELINES, keeps_few),
        Check("it ends as early as can be with so few activations", PIPELINES, wastes_nothing),
    ),
    mutants=(
        Mutant("a rank runs the stage of another", _wrong(stage=0),
               "a rank runs its own stage: Action(kind, rank, m)", signs.foreign_stage),
        Mutant("micro-batches are counted from 1", _wrong(first=1),
               "the first is 0, the last n_micro - 1", signs.counts_from_one),
        Mutant("a backward stands before its own forward", _simply("BF"),
               "a backward needs what its forward has left behind", signs.backward_too_early),
        Mutant("the last backwards are missing (there is no cool-down)", _wrong(cool=False),
               "what was sent forwards in the warm-up has to come back, too", signs.backwards_missing),
        Mutant("a micro-batch goes through twice",
               lambda rank, n, m: [*_one_f_one_b(rank, n, m), Action("B", rank, m - 1)],
               "how many forwards and backwards has a rank?", signs.twice),
        Mutant("a micro-batch is left out", lambda rank, n, m: _one_f_one_b(rank, n, m - 1),
               "the loops together have to reach every m from 0 to n_micro - 1", signs.left_out),
        Mutant("all forwards come first (GPipe): it runs, but every activation is alive", _simply("F B"),
               "the last rank can do a backward right after its first forward. When can the others?",
               signs.forwards_first),
        Mutant("they do one micro-batch at a time: it runs, but all ranks but one wait", _simply("FB"),
               "rank 0 could do the next forward while it waits for its first backward", signs.one_at_a_time),
        Mutant("the warm-up grows with the rank, it has to shrink", _wrong(warmup=lambda rank, n: rank),
               "the first rank is farthest from the end: who has to send most forwards ahead?",
               signs.warm_up_grows),
        Mutant("all ranks warm up equally", _wrong(warmup=lambda rank, n: n - 1),
               "the last rank needs no warm-up: its first backward can follow its first forward",
               signs.warm_up_equal),
        Mutant("the warm-up is one too long", _wrong(warmup=lambda rank, n: n - rank),
               "the last rank needs no warm-up, the one before it one forward", signs.warm_up_long),
        Mutant("the warm-up is one too short", _wrong(warmup=lambda rank, n: n - rank - 2),
               "rank 0 has n_ranks - 1 others behind it", signs.warm_up_short),
        Mutant("the warm-up goes on when there are no more micro-batches", _wrong(bounded=False),
               "with fewer micro-batches than ranks: min(..., n_micro)", signs.warm_up_beyond),
        Mutant("two ranks wait for each other", lambda rank, n, m: _simply("F B" if rank else "FB")(rank, n, m),
               "take a pencil: what has to be done before each of the two actions, and by whom?", signs.hangs),
    ),
    hints=(
        "a warm-up of forwards, then one forward and one backward in turn, then the backwards that are left",
        "the last rank needs no warm-up, the one before it needs one forward: rank r needs n_ranks - r - 1",
        "never more than n_micro: min(n_ranks - rank - 1, n_micro)",
    ),
    show=_on,
    remark=what_it_costs,
)  # fmt: skip
