"""A schedule says in which order a rank of a pipeline does its forwards and backwards: one generator each.

It says nothing of messages: what an action needs follows from its stage. As text it is one line a rank: "F0 F1 B0 B1".
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from lab.checks import whole
from lab.errors import ScheduleError
from lab.parallel.paper.calling import Nothing, Own, misfit, name_of
from lab.words import kind_of, one_of, shown

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

MOST_ACTIONS = 100_000
"""Of all ranks together; so many are proved in seconds. 64 ranks and 64 micro-batches have 8,192."""

HOW = "def schedule(rank, n_ranks, n_micro): yield Action(...)"
"""How a schedule of one's own begins, for hints."""

Table = tuple[tuple[Action, ...], ...]
"""The order of every rank."""


def require_schedule(order: object) -> None:
    """Refuse what is no function.

    Raises:
        ScheduleError: so it is.

    Example:
        >>> require_schedule(None)
        Traceback (most recent call last):
        lab.errors.ScheduleError: a schedule is a name, a generator function or a table
        given: schedule=None
        hint:  'naive', 'gpipe', '1f1b', or parse_table(text); def schedule(rank, n_ranks, n_micro): yield Action(...)
    """
    if callable(order):
        return
    hint = f"{', '.join(map(repr, SCHEDULES))}, or parse_table(text); {HOW}"
    if inspect.isgenerator(order):
        hint = "give the function itself, without calling it: the lab asks it for the actions of every rank"
    raise ScheduleError("a schedule is a name, a generator function or a table", given=f"schedule={shown(order)}",
                        hint=hint)  # fmt: skip


def schedule(name: str) -> Callable[[S], S]:
    """Enter a schedule in `SCHEDULES`, unchanged.

    Raises:
        ScheduleError: a name that is no text, or what is entered is no function.

    Example:
        >>> list(SCHEDULES)
        ['naive', 'gpipe', '1f1b']
    """
    _require_name(name)

    def enter(order: S) -> S:
        require_schedule(order)
        SCHEDULES[name] = order
        return order

    return enter


def _require_name(name: object) -> None:
    if not (isinstance(name, str) and name):
        raise ScheduleError("a schedule is entered by its name", given=f"name={shown(name)}", hint='@schedule("mine")')


def _require_text(text: object) -> None:
    if not isinstance(text, str):
        raise ScheduleError("a table is read from text", given=f"text={shown(text)}",
                            hint='parse_table("F0 F1 B0 B1"), a line for each rank')  # fmt: skip


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
        ScheduleError: no schedule has this name, a size below 1 or that is not whole, more than `MOST_ACTIONS`, a
            function of other arguments, one that raises by itself (which is the cause), or something that yields no
            actions.

    Example:
        >>> print(format_table(table_of("gpipe", 2, 2)))
        F0 F1 B0 B1
        F0 F1 B0 B1
    """
    if isinstance(order, str):
        if order not in SCHEDULES:
            raise ScheduleError("there is no such schedule", given=shown(order),
                                hint=f"{one_of(order, SCHEDULES)}, a function, or parse_table(text)")  # fmt: skip
        order = SCHEDULES[order]
    require_schedule(order)
    n_ranks, n_micro, chunks_per_rank = sizes_of(n_ranks, n_micro, chunks_per_rank)
    return tuple(_actions(order, rank, n_ranks, n_micro, chunks_per_rank) for rank in range(n_ranks))


def sizes_of(n_ranks: object, n_micro: object, chunks_per_rank: object) -> tuple[int, int, int]:
    """The three sizes of a pipeline as whole numbers.

    Raises:
        ScheduleError: one is not whole or below 1, or together they are more than can be proved in seconds.
    """
    named = (("n_ranks", n_ranks), ("n_micro", n_micro), ("chunks_per_rank", chunks_per_rank))
    sizes = [whole(n, value, least=1, hint=f"for example {n}=4", error=ScheduleError) for n, value in named]
    if (n_actions := 2 * math.prod(sizes)) > MOST_ACTIONS:
        many = shown(n_actions) if n_actions >= 10**15 else f"{n_actions:,}"
        raise ScheduleError("a schedule of so many actions takes too long to prove",
                            given=f"{many} actions: {', '.join(f'{name}={shown(value)}' for name, value in named)}",
                            hint=f"at most {MOST_ACTIONS:,}; of more, formulas tell the costs: the bubble of gpipe and "
                            "1f1b is (p - 1) / (m + p - 1) for p ranks and m micro-batches")  # fmt: skip
    return sizes[0], sizes[1], sizes[2]


def _actions(order: Schedule, rank: int, n_ranks: int, n_micro: int, chunks_per_rank: int) -> tuple[Action, ...]:
    more = {} if chunks_per_rank == 1 else {"chunks_per_rank": chunks_per_rank}  # a learner's may do without it
    name = name_of(order)
    if wrong := misfit(order, 3):
        raise ScheduleError(f"{name!r} is no schedule of three arguments", given=wrong, hint=HOW)
    own = Own("schedule", name, "action", order, (rank, n_ranks, n_micro), more)
    # One more than there can be: an endless schedule is told by what it does twice.
    actions = own.takes(2 * n_micro * chunks_per_rank + 1)
    if isinstance(actions, Nothing):
        raise ScheduleError("the schedule gave no actions", given=f"{kind_of(actions.made)} for rank {rank}",
                            hint='a schedule is a generator: it says `yield Action("F", rank, m)`')  # fmt: skip
    return tuple(_looked_at(action, rank, at) for at, action in enumerate(actions))


def table_from(rows: object) -> Table:
    """A table of one's own, each action of it looked at by itself; the numbers of NumPy become Python's.

    Raises:
        ScheduleError: it is no row of actions for each rank.

    Example:
        >>> table_from([[Action("F", 0, 0), Action("B", 0, 0)]])
        ((Action(kind='F', stage=0, micro=0), Action(kind='B', stage=0, micro=0)),)
    """
    for rank, row in enumerate(rows if isinstance(rows, tuple | list) else [rows]):
        if not isinstance(row, tuple | list) or isinstance(row, Action):
            raise ScheduleError("a table has a row of actions for each rank", given=f"{shown(row)} for rank {rank}",
                                hint='parse_table("F0 B0") reads one from text, a line for each rank')  # fmt: skip
    assert isinstance(rows, tuple | list)
    return tuple(tuple(_looked_at(action, rank, at) for at, action in enumerate(row)) for rank, row in enumerate(rows))


def _looked_at(action: object, rank: int, at: int) -> Action:
    if not isinstance(action, Action):
        raise ScheduleError("a schedule is made of actions", given=f"rank {rank} yields {shown(action)}",
                            hint='yield Action("F", rank, m) or Action("B", rank, m)')  # fmt: skip
    kind: object = action.kind
    stage: object = action.stage
    micro: object = action.micro
    if not (isinstance(kind, str) and kind in KINDS):
        raise ScheduleError(f"rank {rank}, action {at}: there is no kind {shown(kind)}", given=shown(action),
                            hint='"F" is forward, "B" is backward')  # fmt: skip
    if type(stage) is type(micro) is int:
        return action
    if not (_is_whole(stage) and _is_whole(micro)):
        raise ScheduleError(f"rank {rank}, action {at}: stage and micro-batch are whole numbers", given=shown(action),
                            hint="both are counted from 0: divide by //")  # fmt: skip
    return Action(kind, int(action.stage), int(action.micro))


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def format_table(table: Sequence[Sequence[Action]]) -> str:
    """One line a rank; the stage is named only where it is not the line's own ("4F0"); "-" for a rank that rests.

    Raises:
        ScheduleError: it is no row of actions for each rank.

    Example:
        >>> print(format_table([[Action("F", 0, 0), Action("F", 2, 0)], []]))
        F0 2F0
        -
    """

    def word(action: Action, rank: int) -> str:
        return str(action) if action.stage != rank else f"{action.kind}{action.micro}"

    looked_at = table_from(table)
    return "\n".join(" ".join(word(action, rank) for action in row) or "-" for rank, row in enumerate(looked_at))


def parse_table(text: str) -> Table:
    """Read what `format_table` writes. Empty lines and indentation do not count.

    Raises:
        ScheduleError: no text, or a word that is no action.

    Example:
        >>> parse_table("F0 B0")
        ((Action(kind='F', stage=0, micro=0), Action(kind='B', stage=0, micro=0)),)
    """
    _require_text(text)
    lines = [line.split() for line in text.splitlines() if line.strip()]
    return tuple(tuple(_read(word, rank) for word in words if words != ["-"]) for rank, words in enumerate(lines))


def _read(word: str, rank: int) -> Action:
    found = re.fullmatch(r"([0-9]{0,9})([FB])([0-9]{1,9})", word)
    if not found:
        raise ScheduleError(f"rank {rank}: {shown(word)} is no action", given=f"in line {rank + 1}",
                            hint="F0 is the forward of micro-batch 0, B0 its backward, 4F0 one on stage 4")  # fmt: skip
    stage, kind, micro = found.groups()
    return Action(kind, int(stage) if stage else rank, int(micro))
