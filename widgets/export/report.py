"""A report: one page about one recording, that plays each view for which the recording has events.

The page is made from the recording and from nothing else, so the file of a recording gives the same bytes again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab.errors import ViewError
from lab.events import (
    ActionFinished,
    ChunkMoved,
    CollectiveFinished,
    Event,
    RankStarted,
    Recording,
    ReplicaAdvanced,
    StepFinished,
)
from widgets.export.endings import file_at, writable
from widgets.export.facts import facts_of
from widgets.export.film import frames_of, stops_of
from widgets.export.page import Part, page_of
from widgets.fold import Positions
from widgets.view import View
from widgets.views.cluster.view import ClusterView
from widgets.views.collective.calls import LOOK_BACK, Calls
from widgets.views.collective.ring import RingView
from widgets.views.data_parallel.view import DataParallelView
from widgets.views.pipeline.view import PipelineView
from widgets.views.training.loss import LossView


class Section(NamedTuple):
    """A view of a report; it opens at the end of the run.

    Attributes:
        title: its heading.
        about: one sentence that says what to look for.
        view: makes the view of a recording, None if there is nothing in it to look at.
        needs: kinds of events; without one of each the section is left out.
        stops: which of the view's stops it has; all if not given.
    """

    title: str
    about: str
    view: Callable[[Recording], View[Any] | None]
    needs: tuple[type[Event], ...]
    stops: Callable[[Positions], Positions] | None = None


def _first_and_last(stops: Positions) -> Positions:
    """Two steps of data-parallel training from the beginning and two from the end: each has four phases."""
    return stops if len(stops) <= 16 else np.append(stops[:8], stops[-8:])


def _last_step(recording: Recording) -> View[Any] | None:
    """The pipeline in the last step that was finished."""
    steps = recording.columns(StepFinished)["step"]
    return PipelineView(recording, step=int(steps[-1])) if len(steps) else PipelineView(recording)


def _an_all_reduce(recording: Recording) -> View[Any] | None:
    """The last all-reduce that all ranks completed; a long recording is not searched to its beginning."""
    calls = Calls(recording)
    calls.update()
    for call in map(calls.__getitem__, range(len(calls) - 1, max(-1, len(calls) - 1 - LOOK_BACK), -1)):
        if calls.started(call).operation == "all_reduce" and calls.complete(call):
            return RingView(recording, collective=call.place)
    return None


SECTIONS: list[Section] = [
    Section("Loss", "How well it learned: the loss of every step, and loss and accuracy on data that it never saw.",
            LossView, (StepFinished,)),
    Section("Data parallel", "Every rank takes its shard of the batch, all sum their gradients, and all make the same "
            "update: the first two steps, and the last two.", DataParallelView, (ReplicaAdvanced,),
            stops=_first_and_last),
    Section("One step of the pipeline", "Micro-batches go through the stages and gradients come back. Bars show what "
            "each rank did when, beside what the order would ideally take.", _last_step, (ActionFinished,)),
    Section("One all-reduce", "Hop by hop: whose parts of the sum each rank holds, and how many bytes it sent.",
            _an_all_reduce, (ChunkMoved, CollectiveFinished)),
    Section("The workers", "Which worker held which rank, what it took of memory and processor, and how its clock "
            "stood to that of the launcher.", ClusterView, (RankStarted,)),
]  # fmt: skip
"""What a report can show, in its order: add a view here, and every report that has its events shows it."""


def report(recording: Recording, path: str | Path) -> Path:
    """Write a report of a recording, whole or not at all; returns its path.

    Args:
        path: a name that ends in .html.

    Raises:
        ViewError: another ending, a folder that is not there, or a recording without events that any section shows.
        OSError: the disk is full, or the folder cannot be written.

    Example:
        >>> import tempfile
        >>> from lab.training import Countdown, Run
        >>> run = Run(Countdown(3))
        >>> _ = run.wait()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     report(run.recording, f"{folder}/report.html").name
        'report.html'
    """
    path = writable(path)
    if path.suffix.lower() != ".html":
        raise ViewError("a report is a page", given=path.name, hint="a name that ends in .html")
    page = report_page(recording).encode("utf-8")
    with file_at(path) as file:
        file.write(page)
    return path


def report_page(recording: Recording) -> str:
    """The report as text.

    Raises:
        ViewError: the recording has no events that any section shows.
    """
    parts = [part for section in SECTIONS if (part := _part(section, recording))]
    if not parts:
        raise ViewError("there is nothing in this recording that a report shows", given=repr(recording),
                        hint="record a training: lab.fit(...), or python -m lab train --record")  # fmt: skip
    title = recording.meta.get("title") or "A recorded training"
    return page_of(parts, title, "Every picture on this page is drawn from events of a run that took place.",
                   facts_of(recording))  # fmt: skip


def _part(section: Section, recording: Recording) -> Part | None:
    """The section as a player, None if the recording has nothing for it."""
    if any(not len(recording.positions(kind)) for kind in section.needs):
        return None
    view = section.view(recording)
    if view is None:
        return None
    view.names_file = False  # the page is the same whether the recording was just made or loaded from a file
    stops = stops_of([view])
    if section.stops is not None:
        stops = section.stops(stops)
    stops = np.append(stops[:-1], len(recording))  # what came after the last stop, as an evaluation, belongs to it
    frames = frames_of([view], stops)
    left_out = "" if len(frames) == len(stops) else f" {len(frames)} of {len(stops):,} stops, evenly chosen."
    return Part(frames, section.title, section.about + left_out, opens_at_end=True)
