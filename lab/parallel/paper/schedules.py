"""A schedule says in which order a rank of a pipeline does its forwards and backwards: one generator each.

It says nothing of messages: what an action needs follows from its stage. As text it is one line a rank: "F0 F1 B0 B1".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from lab.errors import LabError, ScheduleError
from lab.parallel.paper.calling import line_where, misfit
from lab.words import kind_of

KINDS = {"F": "forward", "B": "backward"}
"""The kinds of actions."""


class Action(NamedTuple):
    """One micro-batch goes through one stage: kind "F" forwards, "B" backwards."""

    kind: str
    stage: int
    micro: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.micro}"


class Schedule(Protocol):
    """The order of one rank. Stage s lives on rank s % n_ranks, so a rank has `chunks_per_rank` stages."""

    def __call__(self, rank: int, n_ranks: int, n_micro: int, *, chunks_per_rank: int = 1) -> Iterable[Action]: ...


S = TypeVar("S", bound=Schedule)

SCHEDULES: dict[str, Schedule] = {}
"""Every schedule by name."""

Table = tuple[tuple[Action, ...], ...]
"""The order of every rank."""


def schedule(name: str) -> Callable[[S], S]:
    """Enter a schedule in `SCHEDULES`, unchanged.

    Example:
        >>> list(SCHEDULES)
        ['naive', 'gpipe', '1f1b']
    """

    def enter(order: S) -> S:
        SCHEDULES[name] = order
        return order

    return enter


@schedule("naive")
def naive(rank: int, n_ranks: int, n_micro: int, *, chunks_per_rank: int = 1) -> Iterator[Action]:
    """One micro-batch at a time, there and back: one rank works, all others wait."""
    stages = range(rank, n_ranks * chunks_per_rank, n_ranks)
    for m in range(n_micro):
        yield from (Action("F", stage, m) for stage in stages)
        yield from (Action("B", stage, m) for stage in reversed(stages))


@schedule("gpipe")
def gpipe(rank: int, n_ranks: int, n_micro: int, *, chunks_per_rank: int = 1) -> Iterator[Action]:
    """All forwards, then all backwards; every micro-batch is alive in between (Huang et al., arXiv:1811.06965)."""
    stages = range(rank, n_ranks * chunks_per_rank, n_ranks)
    yield from (Action("F", stage, m) for stage in stages for m in range(n_micro))
    yield from (Action("B", stage, m) for stage in reversed(stages) for m in range(n_micro))


@schedule("1f1b")
def one_f_one_b(rank: int, n_ranks: int, n_micro: int, *, chunks_per_rank: int = 1) -> Iterator[Action]:
    """Warm up, then alternate one forward with one backward; at most n_ranks - rank are alive (arXiv:2006.09503)."""
    if chunks_per_rank != 1:
        raise ScheduleError("1f1b gives each rank one stage", given=f"chunks_per_rank={chunks_per_rank}",
                            hint="naive and gpipe take several stages a rank")  # fmt: skip
    warmup = min(n_ranks - rank - 1, n_micro)
    yield from (Action("F", rank, m) for m in range(warmup))
    for m in range(n_micro - warmup):
        yield Action("F", rank, warmup + m)
        yield Action("B", rank, m)
    yield from (Action("B", rank, m) for m in range(n_micro - warmup, n_micro))


def table_of(order: Schedule | str, n_ranks: int, n_micro: int, *, chunks_per_rank: int = 1) -> Table:
    """The order of every rank.

    Args:
        order: a schedule, or its name in `SCHEDULES`.

    Raises:
        ScheduleError: no schedule has this name, a size below 1 or that is not whole, a function of other arguments,
            one that raises, or something that yields no actions.

    Example:
        >>> print(format_table(table_of("gpipe", 2, 2)))
        F0 F1 B0 B1
        F0 F1 B0 B1
    """
    if isinstance(order, str):
        if order not in SCHEDULES:
            raise ScheduleError("there is no such schedule", given=repr(order), hint=f"one of {', '.join(SCHEDULES)}, "
                                "a function, or parse_table(text)")  # fmt: skip
        order = SCHEDULES[order]
    require_sizes(n_ranks, n_micro, chunks_per_rank)
    return tuple(_actions(order, rank, n_ranks, n_micro, chunks_per_rank) for rank in range(n_ranks))


def require_sizes(n_ranks: object, n_micro: object, chunks_per_rank: object) -> None:
    """Refuse a pipeline of nothing, and of half a rank.

    Raises:
        ScheduleError: so it is.
    """
    for name, value in (("n_ranks", n_ranks), ("n_micro", n_micro), ("chunks_per_rank", chunks_per_rank)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise ScheduleError(f"{name} is a whole number", given=f"{name}={value!r}", hint=f"for example {name}=4")
        if value < 1:
            raise ScheduleError("a pipeline needs at least one rank, one micro-batch and one stage a rank",
                                given=f"{n_ranks} ranks, {n_micro} micro-batches, {chunks_per_rank} stages a rank",
                                hint="each of the three is 1 or more")  # fmt: skip


def _actions(order: Schedule, rank: int, n_ranks: int, n_micro: int, chunks_per_rank: int) -> tuple[Action, ...]:
    more = {} if chunks_per_rank == 1 else {"chunks_per_rank": chunks_per_rank}  # a learner's may do without it
    name = getattr(order, "__name__", repr(order)[:40])
    if wrong := misfit(order, 3):
        raise ScheduleError(f"{name!r} is no schedule of three arguments", given=wrong,
                            hint='def schedule(rank, n_ranks, n_micro): yield Action("F", rank, m)')  # fmt: skip
    try:
        made: Any = order(rank, n_ranks, n_micro, **more)
        # One more than there can be: an endless schedule is told by what it does twice.
        actions = tuple(islice(made, 2 * n_micro * chunks_per_rank + 1)) if isinstance(made, Iterable) else None
    except LabError:
        raise
    except Exception as why:
        where = line_where(why)
        raise ScheduleError(f"the schedule {name!r} raised {type(why).__name__} on rank {rank}: {why}",
                            given=where or f"{n_ranks} ranks, {n_micro} micro-batches",
                            hint="the error above is its own") from why  # fmt: skip
    if actions is None:
        raise ScheduleError("the schedule gave no actions", given=f"{kind_of(made)} for rank {rank}",
                            hint='a schedule is a generator: it says `yield Action("F", rank, m)`')  # fmt: skip
    for action in actions:
        if not isinstance(action, Action):
            raise ScheduleError("a schedule is made of actions", given=f"rank {rank} yields {action!r}",
                                hint='yield Action("F", rank, m) or Action("B", rank, m)')  # fmt: skip
    return actions


def format_table(table: Sequence[Sequence[Action]]) -> str:
    """One line a rank; the stage is named only where it is not the line's own ("4F0"); "-" for a rank that rests.

    Example:
        >>> print(format_table([[Action("F", 0, 0), Action("F", 2, 0)], []]))
        F0 2F0
        -
    """

    def word(action: Action, rank: int) -> str:
        return str(action) if action.stage != rank else f"{action.kind}{action.micro}"

    return "\n".join(" ".join(word(action, rank) for action in row) or "-" for rank, row in enumerate(table))


def parse_table(text: str) -> Table:
    """Read what `format_table` writes. Empty lines and indentation do not count.

    Raises:
        ScheduleError: a word that is no action.

    Example:
        >>> parse_table("F0 B0")
        ((Action(kind='F', stage=0, micro=0), Action(kind='B', stage=0, micro=0)),)
    """
    lines = [line.split() for line in text.splitlines() if line.strip()]
    return tuple(tuple(_read(word, rank) for word in words if words != ["-"]) for rank, words in enumerate(lines))


def _read(word: str, rank: int) -> Action:
    found = re.fullmatch(r"([0-9]{0,9})([FB])([0-9]{1,9})", word)
    if not found:
        raise ScheduleError(f"rank {rank}: {word!r} is no action", given=f"in line {rank + 1}",
                            hint="F0 is the forward of micro-batch 0, B0 its backward, 4F0 one on stage 4")  # fmt: skip
    stage, kind, micro = found.groups()
    return Action(kind, int(stage) if stage else rank, int(micro))
