"""A run takes one slice of each large matrix of cells, and over the days every cell is taken.

A test that many parameters multiply is marked with those of which one at a time will do:

    @sliced("theme")                          # each exhibit is looked at in every run, in one theme
    @pytest.mark.parametrize("theme", THEMES)
    @pytest.mark.parametrize("exhibit", EXHIBITS)

Cells that differ in nothing but these are a row, and of each row the seed takes one in `every`. The seed is the number
of the day, so that as many days take every cell; LAB_SLICE=NUMBER takes the slice of that number again, `--whole` takes
all cells, and so do `--soak`, `--last-failed`, `-k` and the name of a cell. What is left out is deselected and counted.
"""

from __future__ import annotations

import datetime as dt
import os
import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pytest

VARIABLE = "LAB_SLICE"


class Sliced(NamedTuple):
    """What a mark says."""

    names: tuple[str, ...]
    every: int | None = None
    offset: int = 0
    together: bool = False


def sliced(*names: str, every: int | None = None, offset: int = 0, together: bool = False) -> pytest.MarkDecorator:
    """The mark of a test of which a run takes a slice.

    Args:
        names: the parameters, also of fixtures, of which not every value is needed in every run.
        every: one in so many cells of a row is taken, rather than one alone.
        offset: how far ahead one is of others that are together: two tests that share the cells have 0 and 1.
        together: all rows and all tests take the same values, where a value costs once for all: a page in a theme.
    """
    return pytest.mark.sliced(Sliced(names, every, offset, together))


def seed() -> int:
    """The number of the slice: that of the day, unless LAB_SLICE names another.

    Example:
        >>> import pytest
        >>> with pytest.MonkeyPatch.context() as patch:
        ...     patch.setenv("LAB_SLICE", "7")
        ...     seed()
        7
    """
    given = os.environ.get(VARIABLE, "")
    if not given:
        return dt.datetime.now(dt.UTC).date().toordinal()
    if not given.isdecimal():
        raise pytest.UsageError(
            f"{VARIABLE} is not the number of a slice\ngiven: {given!r}\nhint:  take the one that a run printed"
        )
    return int(given)


def chosen(length: int, turn: int, every: int | None = None) -> list[int]:
    """Which places of a row are taken when it is this turn; in as many turns as are taken apart, each is once.

    Example:
        >>> [chosen(3, turn) for turn in range(4)]
        [[0], [2], [1], [0]]
        >>> [chosen(7, turn, every=3) for turn in range(3)]
        [[0, 3, 6], [2, 5], [1, 4]]
    """
    period = min(every or length, length)
    return [place for place in range(length) if (place + turn) % period == 0]


def is_taken(tests: Sequence[pytest.Item], number: int) -> list[bool]:
    """Of all cells of one test, which ones a slice takes; rows take turns, so that it has something of every value."""
    mark, cells = _mark(tests[0]), places_of(tests)
    if unknown := [name for name in mark.names if any(name not in cell for cell in cells)]:
        raise pytest.UsageError(
            f"a slice of {tests[0].nodeid} is taken by a parameter that it has not\n"
            f"given: {', '.join(unknown)}\nhint:  it has {', '.join(cells[0])}"
        )
    rows: dict[tuple[int, ...], list[int]] = {}
    for i, cell in enumerate(cells):
        rows.setdefault(tuple(k for name, k in sorted(cell.items()) if name not in mark.names), []).append(i)
    first = mark.offset if mark.together else zlib.crc32(tests[0].nodeid.partition("[")[0].encode())
    taken = set()
    for row, (_, places) in enumerate(sorted(rows.items())):
        places.sort(key=lambda i: [cells[i][name] for name in mark.names])
        turn = number + first + (0 if mark.together else row)
        taken.update(places[place] for place in chosen(len(places), turn, mark.every))
    return [i in taken for i in range(len(tests))]


def places_of(tests: Iterable[pytest.Item]) -> list[dict[str, int]]:
    """The place of each cell's values in the order in which they come; a value is one object in all of its cells."""
    order: dict[str, dict[int, int]] = {}
    cells = []
    for test in tests:
        numbers = {name: (order.setdefault(name, {}), id(value)) for name, value in _values(test).items()}
        cells.append({name: known.setdefault(key, len(known)) for name, (known, key) in numbers.items()})
    return cells


def left_out(items: Iterable[pytest.Item], number: int, named: Iterable[str]) -> set[str]:
    """Names of the cells that a slice leaves out; never one that was asked for by its name."""
    asked = {place.replace("\\", "/") for place in named if "[" in place}
    return {
        test.nodeid
        for tests in matrices(items).values()
        for test, taken in zip(tests, is_taken(tests, number), strict=True)
        if not taken and not any(test.nodeid.endswith(name) or name.endswith(test.nodeid) for name in asked)
    }


def matrices(items: Iterable[pytest.Item]) -> dict[str, list[pytest.Item]]:
    """The cells of each marked test, by its name; a test of a marked file without these parameters is none."""
    found: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sliced") and _values(item).keys() & set(_mark(item).names):
            found.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return found


def account(whole: dict[str, int], items: Iterable[pytest.Item]) -> list[str]:
    """A line for each matrix of which something runs: how many of its cells, and by what it is cut."""
    return [
        f"  {len(tests)} of {whole[name]} cells, by {', '.join(_mark(tests[0]).names)}: {name}"
        for name, tests in matrices(items).items()
    ]


def _mark(item: pytest.Item) -> Sliced:
    """What the mark of a test says; that of the test itself comes before that of its file."""
    mark = item.get_closest_marker("sliced")
    assert mark is not None
    return mark.args[0]


def _values(item: pytest.Item) -> dict[str, object]:
    """The value of each parameter."""
    call = getattr(item, "callspec", None)
    return dict(call.params) if call else {}
