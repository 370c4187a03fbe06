"""A Recording for Perfetto (ui.perfetto.dev) and chrome://tracing: ranks as processes, what they did as slices.

Times are those of the recording, in microseconds of the launcher's clock: ranks of other hosts are aligned already.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from lab.errors import ArgumentError
from lab.events import Recording
from lab.files import path_of, replacing, telling
from lab.interop.sources import NO_PLACE
from lab.interop.trace.engine import EngineTeller
from lab.interop.trace.form import Json, Teller, Tracks
from lab.interop.trace.ranks import PipelineTeller, ProgramTeller, ReplicaTeller, RingTeller
from lab.interop.trace.training import TrainingTeller

ENDINGS = (".json", ".json.gz")
TELLERS: tuple[type[Teller], ...] = (
    TrainingTeller, ProgramTeller, ReplicaTeller, RingTeller, PipelineTeller, EngineTeller,
)  # fmt: skip
"""Who tells what: each takes events of its kinds, in order, and gives trace events."""


def save(recording: Recording, path: str | PathLike[str]) -> Path:
    """Write the recording as a trace in the Trace Event Format, whole or not at all; returns its path.

    Args:
        recording: any; a long one is written as it is read, and takes no memory to speak of.
        path: a name that ends in .json, or in .json.gz for a file of a tenth of the size. Both viewers open both.

    Raises:
        ArgumentError: another ending, or nothing to write.
        FileError: the disk is full, the folder missing or read-only.

    Example:
        >>> import lab, tempfile
        >>> x = lab.tensor(2.0, requires_grad=True)
        >>> with lab.record() as rec:
        ...     (x * x).backward()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trace = json.loads(save(rec, f"{folder}/trace.json").read_text())
        >>> [event["name"] for event in trace["traceEvents"] if event["ph"] == "X"]  # doctest: +ELLIPSIS
        ['multiply', 'backward from v...']
    """
    path = path_of(path, hint='interop.trace.save(rec, "trace.json")')
    if not path.name.lower().endswith(ENDINGS):
        raise ArgumentError("a trace is a file of JSON", given=path.name or str(path),
                            hint="a name that ends in .json, or in .json.gz to have it compressed")  # fmt: skip
    if not len(recording):
        raise ArgumentError("there is nothing in this recording to trace", given=repr(recording),
                            hint="record something: lab.record(), or python -m lab train --record")  # fmt: skip
    with telling("the trace cannot be written", path, NO_PLACE), replacing(path) as file:
        if path.suffix.lower() != ".gz":
            for piece in _pieces(recording):
                file.write(piece)
        else:
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0) as packed:
                for piece in _pieces(recording):
                    packed.write(piece)
    return path


def events_of(recording: Recording) -> Iterator[Json]:
    """The trace events, as dictionaries that `json` writes: names of processes and tracks come last.

    Example:
        >>> from lab.events import Bus, StepFinished
        >>> bus, rec = Bus(), Recording()
        >>> bus.attach(rec)
        >>> bus.emit(StepFinished(step=1, epoch=0, loss=0.5, n_examples=64, elapsed_ms=2.0))
        >>> bus.detach(rec)
        >>> [(event["ph"], event["name"]) for event in events_of(rec)][:2]
        [('X', 'step 1'), ('C', 'loss')]
    """
    tracks = Tracks(recording)
    tellers = [kind(tracks) for kind in TELLERS]
    tells: dict[str, Any] = {kind.__name__: teller.tell for teller in tellers for kind in teller.hears}
    for event in recording:
        tracks.last_ns = max(tracks.last_ns, event.time_ns)
        if tell := tells.get(type(event).__name__):
            yield from tell(event)
    for teller in tellers:
        yield from teller.end()
    yield from tracks.names()


def _pieces(recording: Recording) -> Iterator[bytes]:
    """The file, some thousand events at a time."""
    about = {name: text for name, text in recording.meta.items() if text}
    about |= {"clock": "microseconds of the launcher's monotonic clock", "events": f"{len(recording):,}"}
    if recording.dropped:
        about["dropped"] = f"{recording.dropped:,} events are not in the recording"
    yield f'{{"displayTimeUnit":"ms","otherData":{json.dumps(about)},"traceEvents":['.encode()
    block: list[str] = []
    begun = False
    for event in events_of(recording):
        block.append(json.dumps(event, separators=(",", ":"), allow_nan=False))
        if len(block) == 4096:
            yield (",\n" * begun + ",\n".join(block)).encode()
            block, begun = [], True
    if block:
        yield (",\n" * begun + ",\n".join(block)).encode()
    yield b"]}\n"
