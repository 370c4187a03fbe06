"""What the Trace Event Format asks of a file, as far as we write it: the rules of Perfetto and chrome://tracing.

Written from its definition: which phases there are, which fields each needs, that slices of a track nest, that arrows
have both ends, later not before earlier, and end in slices.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections import Counter, defaultdict
from itertools import pairwise

NEEDS = {
    "X": {"name", "cat", "ts", "dur", "pid", "tid"}, "i": {"name", "ts", "pid", "tid", "s"},
    "C": {"name", "ts", "pid", "args"}, "s": {"name", "cat", "id", "ts", "pid", "tid"},
    "f": {"name", "cat", "id", "ts", "pid", "tid"}, "M": {"name", "pid", "args"},
}  # fmt: skip
NAMED = {"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index",
         "thread_sort_index": "sort_index"}  # fmt: skip


def faults_of(text: str) -> list[str]:
    """What is wrong with a trace, in words; nothing where nothing is."""
    trace = json.loads(text, parse_constant=lambda name: f"not JSON: {name}")
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        return ["no list of traceEvents"]
    events = trace["traceEvents"]
    faults = [fault for event in events for fault in faults_of_event(event)]
    return faults or [*unnamed(events), *crossing(events), *astray(events)]


def faults_of_event(event: dict) -> list[str]:
    phase = event.get("ph")
    if phase not in NEEDS:
        return [f"phase {phase!r}"]
    found = [f"{phase} without {name}: {event}" for name in NEEDS[phase] - set(event)]
    for name in ("ts", "dur"):
        value = event.get(name, 0.0)
        if not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
            found.append(f"{name} is {value!r}: {event}")
    if not all(isinstance(event.get(name, 1), int) and event.get(name, 1) >= 0 for name in ("pid", "tid")):
        found.append(f"pid and tid are numbers: {event}")
    if not isinstance(event["name"], str) or not event["name"]:
        found.append(f"no name: {event}")
    args = event.get("args", {})
    if phase == "C" and not (args and all(type(v) in (int, float) and math.isfinite(v) for v in args.values())):
        found.append(f"a counter counts: {event}")
    if phase == "i" and event.get("s") not in ("g", "p", "t"):
        found.append(f"scope: {event}")
    if phase == "M" and set(args) != {NAMED.get(event["name"])}:
        found.append(f"metadata: {event}")
    return found


def unnamed(events: list[dict]) -> list[str]:
    named = {(e["name"], e["pid"], e["tid"]) for e in events if e["ph"] == "M"}
    used = {(e["pid"], e["tid"]) for e in events if e["ph"] != "M"}
    found = [f"process {pid} has no name" for pid in {pid for pid, _ in used} if ("process_name", pid, 0) not in named]
    found += [f"track {track} has no name" for track in used if ("thread_name", *track) not in named]
    several = Counter(tid for _, tid in used)
    return [*found, *(f"track {tid} is in {n} processes" for tid, n in several.items() if n > 1)]


def nanoseconds(us: float) -> int:
    return round(us * 1000)


def slices(events: list[dict]) -> dict[tuple[int, int], list[tuple[int, int, str]]]:
    """For each track its slices: begin, end, name; the longer of two that begin together first."""
    found = defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            begin = nanoseconds(e["ts"])
            found[e["pid"], e["tid"]].append((begin, begin + nanoseconds(e["dur"]), e["name"]))
    return {track: sorted(rows, key=lambda row: (row[0], -row[1])) for track, rows in found.items()}


def crossing(events: list[dict]) -> list[str]:
    """Slices that neither nest nor follow each other."""
    found = []
    for track, rows in slices(events).items():
        above: list[tuple[int, int, str]] = []
        for row in rows:
            while above and above[-1][1] <= row[0]:
                above.pop()
            if above and row[1] > above[-1][1]:
                found.append(f"on track {track} {row} crosses {above[-1]}")
            above.append(row)
    return found


def astray(events: list[dict]) -> list[str]:
    """Arrows without both ends, that go back in time, or whose ends lie in no slice."""
    ends = defaultdict(dict)
    found = []
    for e in events:
        if e["ph"] in "sf":
            if e["ph"] in ends[e["id"]]:
                found.append(f"two ends of one kind: {e}")
            ends[e["id"]][e["ph"]] = e
    tracks = slices(events)
    begins = {track: [row[0] for row in rows] for track, rows in tracks.items()}
    for number, pair in ends.items():
        if set(pair) != {"s", "f"}:
            found.append(f"arrow {number} has one end")
            continue
        start, end = pair["s"], pair["f"]
        if (start["name"], start["cat"]) != (end["name"], end["cat"]) or end["ts"] < start["ts"]:
            found.append(f"arrow {number}: {start} {end}")
        if end.get("bp") != "e":
            found.append(f"arrow {number} ends in the next slice")
        for e in (start, end):
            at, track = nanoseconds(e["ts"]), (e["pid"], e["tid"])
            near = tracks.get(track, [])[: bisect_right(begins.get(track, []), at)]
            if not any(a <= at < b or a == at == b for a, b, _ in reversed(near)):
                found.append(f"no slice around {e}")
    return found


def alike(rows: list[tuple[int, int, str]]) -> bool:
    """Whether slices follow each other without overlap."""
    return all(a[1] <= b[0] for a, b in pairwise(rows))
