"""What ran, in a dozen lines of words: read from the events of a recording and its meta, and from nowhere else."""

from __future__ import annotations

import math
from typing import Any

from lab.events import (
    ActionStarted,
    ChunkMoved,
    CollectiveStarted,
    Evaluated,
    Event,
    HyperparameterChanged,
    RankLost,
    RankStarted,
    Recording,
    RunFinished,
    RunStarted,
    StepFinished,
)
from widgets.pictures.theme import short

VERSIONS = ("lab", "python", "numpy", "numba", "distributed", "plotly")
SHOWN_OF_META = ("data", "command", "schedule", "note")


def facts_of(recording: Recording) -> list[tuple[str, str]]:
    """Names and values, in the order of reading; what the recording does not tell is left out.

    Example:
        >>> facts_of(Recording())[0]
        ('Events', '0')
    """
    found = [*_outcome(recording), *_ranks(recording)]
    lost = f", {recording.dropped:,} dropped" if recording.dropped else ""
    lost += f", {recording.dropped_values:,} arrays dropped" if recording.dropped_values else ""
    found.append(("Events", f"{len(recording):,}{lost}"))
    found += _what_trained(recording)
    meta = recording.meta
    found += [(name.capitalize(), meta[name]) for name in SHOWN_OF_META if meta.get(name)]
    versions = ", ".join(f"{name} {meta[name]}" for name in VERSIONS if meta.get(name))
    found += [("Versions", versions)] if versions else []
    found += [("Recorded", meta["created"].replace("T", " ").replace("+00:00", " UTC"))] if meta.get("created") else []
    return found


def _outcome(recording: Recording) -> list[tuple[str, str]]:
    found = []
    start, end = _last(recording, RunStarted), _last(recording, RunFinished)
    step, test = _last(recording, StepFinished), _last(recording, Evaluated)
    if test:
        share = "" if math.isnan(test.accuracy) else f"{test.accuracy:.1%}, ".replace("%", " %")
        found.append((f"On the {test.split} data", f"{share}loss {short(test.loss)} at step {test.step:,}"))
    if step:
        of = f" of {start.n_steps:,}" if start and start.n_steps else ""
        found += [("Steps", f"{step.step:,}{of}"), ("Final loss", short(step.loss))]
    if end:
        why = f": {end.reason}" if end.reason else ""
        found.append(("Ended", f"{end.state} after {end.elapsed_ms / 1000:.1f} s{why}"))
    elif start:
        found.append(("Ended", "not in this recording"))
    return found


def _what_trained(recording: Recording) -> list[tuple[str, str]]:
    found = []
    if start := _last(recording, RunStarted):
        found += [("Parameters", f"{start.n_parameters:,}"), ("Model", start.model), ("Optimiser", start.optimizer)]
    rows = recording.columns(HyperparameterChanged)
    settings = zip(rows["step"], rows["name"], rows["value"], strict=True)
    changed = [f"{name} {short(float(value))} from step {step}" for step, name, value in settings if step]
    return [*found, ("Changed by hand", ", ".join(changed))] if changed else found


def _ranks(recording: Recording) -> list[tuple[str, str]]:
    found = []
    ranks = recording.columns(RankStarted)
    if len(ranks["rank"]):
        processes = len({*zip(ranks["worker"], ranks["pid"], strict=True)})
        found.append(("Ranks", f"{ranks['world_size'][-1]} on {processes} worker process{'es' * (processes > 1)}"))
    elif len(recording.positions(StepFinished)):
        found.append(("Ranks", "none: trained in one process"))
    calls, hops = recording.columns(CollectiveStarted), recording.columns(ChunkMoved)
    kinds = dict.fromkeys(zip(calls["operation"], calls["algorithm"], strict=True))
    if kinds:
        names = ", ".join(f"{operation} {algorithm}" for operation, algorithm in kinds)
        found.append(("Collectives", f"{names}: {int(hops['n_bytes'].sum()) / 1e6:,.1f} MB moved"))
    actions = recording.columns(ActionStarted)
    if len(actions["stage"]):
        paced = ", paced: no measure of this machine" if any(actions["paced"]) else ""
        n_stages, n_micro = max(actions["stage"]) + 1, max(actions["micro"]) + 1
        found.append(("Pipeline", f"{n_stages} stages, {n_micro} micro-batches{paced}"))
    lost = recording.columns(RankLost)
    found += [("Ranks lost", ", ".join(map(str, lost["lost_rank"])))] if len(lost["lost_rank"]) else []
    return found


def _last(recording: Recording, kind: type[Event]) -> Any:
    positions = recording.positions(kind)
    return recording[int(positions[-1])] if len(positions) else None
