"""Calling what a learner wrote: whether it takes the arguments, what it yields, and in which line of theirs it raised.

Frames of the lab, of installed packages and of Python itself are no lines of theirs: nobody looks there first.
"""

from __future__ import annotations

import inspect
import linecache
import sysconfig
import traceback
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from lab.errors import LabError, PlanError, ScheduleError
from lab.events.cells import cell_of
from lab.words import counted, said, shown

_OURS = str(Path(__file__).parents[2])
_PYTHON = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
_INSTALLED = {"site-packages", "dist-packages"}


def is_own(file: str) -> bool:
    """Whether a file is the user's: not of the lab, of an installed package, or of Python.

    Example:
        >>> import json
        >>> is_own("/home/me/model.py"), is_own("cell In [2]"), is_own(json.__file__), is_own(__file__)
        (True, True, False, False)
        >>> is_own("/venv/lib/python3.13/site-packages/numpy/_core/numeric.py"), is_own("<frozen runpy>")
        (False, False)
    """
    parts = set(file.replace("\\", "/").split("/"))
    return not (file.startswith((_OURS, *_PYTHON, "<frozen ", "<__array_function__")) or parts & _INSTALLED)


def last_own(places: Iterable[tuple[str, int]]) -> tuple[str, int] | None:
    """The innermost (file, line) in the user's code; the innermost of all where none is; None where nothing is known.

    Example:
        >>> last_own([("/home/me/model.py", 3), ("/venv/lib/python3.13/site-packages/numpy/a.py", 385)])
        ('/home/me/model.py', 3)
    """
    known = list(places)
    return next((place for place in reversed(known) if is_own(place[0])), known[-1] if known else None)


def place_of(file: str, line: int) -> str:
    """A place in code, as a person names it.

    Example:
        >>> place_of("/home/me/model.py", 3), place_of("cell In [2]", 3)
        ('model.py:3', 'cell In [2], line 3')
    """
    name = file.replace("\\", "/").rpartition("/")[2]
    return f"{name}, line {line}" if name.startswith("cell") and not name.endswith(".py") else f"{name}:{line}"


def line_where(error: BaseException) -> str:
    """The user's line in which an error was raised, as "model.py:3: return 1 / 0"; "" if there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    place = last_own((frame.filename, frame.lineno or 0) for frame in frames)
    if place is None or not is_own(place[0]):
        return ""
    text = linecache.getline(*place).strip()
    return f"{place_of(cell_of(place[0]) or place[0], place[1])}{f': {text}' if text else ''}"


def name_of(function: object) -> str:
    """The name of a plan or a schedule for messages.

    Example:
        >>> name_of(misfit), name_of(3)
        ('misfit', '3')
    """
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else shown(function, 40)


def misfit(function: object, n: int) -> str:
    """Why a function cannot be called with `n` arguments by position; "" if it can, or says nothing of its arguments.

    Example:
        >>> misfit(lambda a, b: a, 3), misfit(lambda a, b: a, 2)
        ('it takes (a, b)', '')
    """
    if not callable(function):
        return "it is no function"
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    try:
        signature.bind(*range(n))
    except TypeError:
        return f"it takes {signature}"
    return ""


class Nothing(NamedTuple):
    """What a learner's function gave that cannot be gone through."""

    made: object


class Own(NamedTuple):
    """A plan or a schedule of a learner's, about to be asked for the order of one rank."""

    what: str
    """"plan" or "schedule"."""
    name: str
    unit: str
    """Of what it yields: "step" or "action"."""
    function: Callable[..., Any]
    call: tuple[int, int, int]
    """What it is called with: rank, number of ranks, and the third."""
    more: dict[str, int]
    """By name, beside them."""

    def takes(self, most: int) -> list[Any] | Nothing:
        """The first `most` of what it yields.

        Raises:
            PlanError, ScheduleError: it raised by itself; the error of theirs is the cause.
            LabError: as the lab raised it where no line of theirs was at work.
        """
        got: list[Any] | None = None
        try:
            made = self.function(*self.call, **self.more)
            if not isinstance(made, Iterable):
                return Nothing(made)
            got = []
            for one in islice(made, most):
                got.append(one)  # how many there were is told when the next one raises
        except Exception as why:
            where = line_where(why)
            if isinstance(why, LabError) and not where:
                raise
            raise self._raised(why, where, -1 if got is None else len(got)) from why
        return got

    def _raised(self, why: Exception, where: str, at: int) -> LabError:
        rank, n_ranks, _ = self.call
        place = f"rank {rank} of {counted(n_ranks, 'rank')}" + (f", {self.unit} {at}" if at >= 0 else "")
        text = f": {said(why)}" if said(why) else ""
        problem = f"{self.what} {self.name!r} raised {type(why).__name__} on {place}{text}"
        name = self.name if self.name.isidentifier() else self.what
        more = "".join(f", {key}={value}" for key, value in self.more.items())
        given = where or "no line of yours: what raised it is written elsewhere"
        hint = f"list({name}({', '.join(map(str, self.call))}{more})) in a cell raises it alone, for %debug"
        if self.what == "schedule":
            return ScheduleError(problem, given=given, hint=hint)
        return PlanError(problem, given=given, hint=hint, rank=rank, step=at)
