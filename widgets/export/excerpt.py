"""Excerpts: of a long recording of many ranks the events of one step, in the order of their times.

Ranks run ahead of one another and their events come in batches, so a stretch of positions is no step. What one rank
tells is in order: a step is a stretch for each rank, from one event of that rank to another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lab.events import (
    ActionStarted,
    Batch,
    CollectiveFinished,
    CollectiveStarted,
    Event,
    Origin,
    Recording,
    ReplicaAdvanced,
    Row,
)
from lab.events.event import values_of
from widgets.fold import Events


class Window(NamedTuple):
    """The positions first <= p <= last of what one rank told."""

    first: int
    last: int


def excerpt(recording: Events, kinds: Sequence[type[Event]], windows: Mapping[int, Window]) -> Recording:
    """A recording of the events of these kinds that stand in their rank's window, by time.

    Events at one time keep their order.
    """
    found: list[tuple[int, int]] = []
    for kind in kinds:
        rows = recording.columns(kind)
        for position, time_ns, rank in zip(rows["position"], rows["time_ns"], rows["rank"], strict=True):
            window = windows.get(int(rank))
            if window and window.first <= position <= window.last:
                found.append((int(time_ns), int(position)))
    events = [recording[position] for _, position in sorted(found)]
    rows_of = [Row(type(e), e.time_ns, Origin(e.rank, e.run), values_of(e)) for e in events]
    made = Recording(run="*", sources=False)
    if rows_of:
        made.receive(Batch(rows_of, range(len(rows_of))))
    return made


def one_training_step(recording: Events) -> dict[int, Window]:
    """Where each rank tells of the first step that all of them completed, from taking its shard to the update."""
    rows = recording.columns(ReplicaAdvanced)
    return _windows(_marks(rows, rows["step"], rows["phase"]), "shard", "updated")


def one_all_reduce(recording: Events) -> dict[int, Window]:
    """Where each rank tells of the first all-reduce that all of them completed."""
    marks: dict[int, dict[tuple[int, str], int]] = {}
    for kind, phase in ((CollectiveStarted, "began"), (CollectiveFinished, "ended")):
        rows = recording.columns(kind)
        phases = [phase if operation == "all_reduce" else "" for operation in rows["operation"]]
        for rank, found in _marks(rows, rows["collective"], phases).items():
            marks.setdefault(rank, {}).update(found)
    return _windows(marks, "began", "ended")


def one_flush(recording: Events) -> dict[int, Window]:
    """Where each rank of a pipeline tells of the first batch: from its first action to that on the next batch."""
    rows = recording.columns(ActionStarted)
    firsts: dict[int, tuple[str, int, int]] = {}
    seen: dict[int, list[int]] = {}
    for rank, position, *action in zip(*(rows[x] for x in ("rank", "position", "kind", "stage", "micro")), strict=True):
        if firsts.setdefault(int(rank), tuple(action)) == tuple(action):
            seen.setdefault(int(rank), []).append(int(position))
    end = len(recording)
    return {rank: Window(at[0], at[1] - 1 if len(at) > 1 else end) for rank, at in sorted(seen.items())}


def _marks(
    rows: Mapping[str, Sequence[int]], numbers: Sequence[int], phases: Sequence[str]
) -> dict[int, dict[tuple[int, str], int]]:
    """For each rank where it first says (number, phase)."""
    marks: dict[int, dict[tuple[int, str], int]] = {}
    for rank, position, number, phase in zip(rows["rank"], rows["position"], numbers, phases, strict=True):
        marks.setdefault(int(rank), {}).setdefault((int(number), str(phase)), int(position))
    return marks


def _windows(marks: Mapping[int, Mapping[tuple[int, str], int]], first: str, last: str) -> dict[int, Window]:
    """The stretch of each rank for the smallest number of which all ranks have both phases; {} if there is none."""
    numbers = [{n for n, phase in mine if phase == last and (n, first) in mine} for mine in marks.values()]
    common = set.intersection(*numbers) if numbers else set()
    if not common:
        return {}
    n = min(common)
    return {rank: Window(mine[n, first], mine[n, last]) for rank, mine in sorted(marks.items())}
