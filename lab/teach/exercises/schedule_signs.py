"""Signs of mistakes in a schedule: what it does wrong in every pipeline of two and more ranks."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import takewhile

from lab.errors import ScheduleError
from lab.parallel.paper.check_schedule import check_schedule
from lab.parallel.paper.schedules import KINDS, Action, Table
from lab.teach.exercise import Seen
from lab.teach.plain import Plain

Sign = Callable[[Seen], bool]
Shows = Callable[[Table, int], bool]
"""Takes the actions of every rank, and the number of micro-batches."""


def read(value: Plain) -> Table | None:
    """The actions of every rank from what `list_actions` gave; None if it is something else."""
    if not isinstance(value, tuple) or not all(isinstance(actions, tuple) for actions in value):
        return None
    flat = [action for actions in value for action in actions]
    if not all(isinstance(action, tuple) and [*map(type, action)] == [str, int, int] for action in flat):
        return None
    return tuple(tuple(Action(*action) for action in actions) for actions in value)


def sign(shows: Shows) -> Sign:
    """A sign that has to show in every pipeline."""

    @wraps(shows)
    def everywhere(seen: Seen) -> bool:
        pipelines = [(case[1], None if a.failure else read(a.value)) for case, a in seen if case[0] > 1]
        return all(table is not None and known(table) and shows(table, n_micro) for n_micro, table in pipelines)

    return everywhere


def known(table: Table) -> bool:
    """Every action is a forward or a backward; what others would come to nobody can say."""
    return all(action.kind in KINDS for actions in table for action in actions)


def runs(table: Table, n_micro: int) -> bool:
    """It is a right order, whatever it costs."""
    try:
        check_schedule(table, len(table), n_micro)
    except ScheduleError:
        return False
    return True


def _kinds(table: Table) -> list[str]:
    return ["".join(action.kind for action in actions) for actions in table]


def _first_forwards(table: Table) -> list[int]:
    return [len(list(takewhile("F".__eq__, kinds))) for kinds in _kinds(table)]


def _warms_up(table: Table, n_micro: int, by: int) -> bool:
    """Each rank begins with its forwards of 1F1B and `by` more."""
    n = len(table)
    expected = [min(max(n - rank - 1 + by, 0) + 1, n_micro) for rank in range(n)]
    return runs(table, n_micro) and _first_forwards(table) == expected


@sign
def foreign_stage(table: Table, n_micro: int) -> bool:
    """Some action is on a stage that is not the rank's."""
    return any(action.stage != rank for rank, actions in enumerate(table) for action in actions)


@sign
def counts_from_one(table: Table, n_micro: int) -> bool:
    """There is a micro-batch number n_micro."""
    return any(action.micro == n_micro for actions in table for action in actions)


@sign
def backward_too_early(table: Table, n_micro: int) -> bool:
    """Some backward comes before the forward of the same micro-batch."""
    return any(
        a.kind == "B" and a._replace(kind="F") in actions[i:] for actions in table for i, a in enumerate(actions)
    )


@sign
def backwards_missing(table: Table, n_micro: int) -> bool:
    """All forwards are there, some backwards are not."""
    forwards, backwards = ([kinds.count(kind) for kinds in _kinds(table)] for kind in "FB")
    return set(forwards) == {n_micro} and min(backwards) < n_micro == max(*backwards, n_micro)


@sign
def twice(table: Table, n_micro: int) -> bool:
    """Some action is there twice."""
    return any(len(set(actions)) < len(actions) for actions in table)


@sign
def left_out(table: Table, n_micro: int) -> bool:
    """Some rank has too few actions."""
    return any(len(actions) < 2 * n_micro for actions in table)


@sign
def forwards_first(table: Table, n_micro: int) -> bool:
    """It runs, and on every rank all forwards come before all backwards."""
    return runs(table, n_micro) and set(_kinds(table)) == {"F" * n_micro + "B" * n_micro}


@sign
def one_at_a_time(table: Table, n_micro: int) -> bool:
    """It runs, and on every rank each forward is followed by its backward."""
    return runs(table, n_micro) and set(_kinds(table)) == {"FB" * n_micro}


@sign
def warm_up_grows(table: Table, n_micro: int) -> bool:
    """Rank r begins with r + 1 forwards."""
    return _first_forwards(table) == [min(rank + 1, n_micro) for rank in range(len(table))]


@sign
def warm_up_equal(table: Table, n_micro: int) -> bool:
    """It runs, and all ranks begin with equally many forwards."""
    return runs(table, n_micro) and len(set(_first_forwards(table))) == 1


@sign
def warm_up_long(table: Table, n_micro: int) -> bool:
    """Every rank sends one forward more ahead than 1F1B."""
    return _warms_up(table, n_micro, 1)


@sign
def warm_up_short(table: Table, n_micro: int) -> bool:
    """Every rank sends one forward less ahead than 1F1B."""
    return _warms_up(table, n_micro, -1)


@sign
def warm_up_beyond(table: Table, n_micro: int) -> bool:
    """It runs where there are as many micro-batches as ranks; with fewer it names some that are not there."""
    beyond = any(action.micro >= n_micro for actions in table for action in actions)
    return not beyond and runs(table, n_micro) if n_micro >= len(table) else beyond


@sign
def hangs(table: Table, n_micro: int) -> bool:
    """Everything is there, but it cannot run."""
    return all(len(actions) == len(set(actions)) == 2 * n_micro for actions in table) and not runs(table, n_micro)
