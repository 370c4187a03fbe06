"""Memory forewarning: what workers will need beside what is free, so that a start is refused instead of killed.

A container that runs out of memory ends a process without a word. What is free is the least of what the machine has and
of what every control group above us still allows; files in memory do not count, they go when room is needed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lab.errors import MeshError

log = logging.getLogger("lab.parallel")

MB = 10**6
IDLE_MB, BUSY_MB = 55, 130
"""Of one worker that waits, and of one that trains the digits with numba loaded; `tests/benchmarks memory` measures."""
CONTAINER = "limit of the container"
SMALLEST_LIMIT_MB = 256
"""Dask pauses a worker at 80 % of its limit; with less than this it would pause for its imports."""


class Room(NamedTuple):
    """Memory in bytes, and whose limit it is."""

    free: int
    total: int
    whose: str = "this machine"

    def __str__(self) -> str:
        return f"{self.free / MB:,.0f} MB of {self.total / MB:,.0f} are free ({self.whose})"


def room(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> Room | None:
    """The tightest of the machine's memory and the limits of our control groups; None where neither is told."""
    return min((*_machine(proc), *_control_groups(proc, groups)), default=None)


def forewarn(n_workers: int, here: Room | None) -> int | None:
    """Compare the need of so many workers with the room for them; returns the limit of each in bytes, None if unknown.

    Logs a warning if they will not fit once they train.

    Raises:
        MeshError: they do not fit even while they wait.

    Example:
        >>> forewarn(4, Room(free=2_000_000_000, total=4_000_000_000))
        500000000
        >>> forewarn(8, Room(free=300_000_000, total=1_000_000_000, whose="limit of the container"))
        Traceback (most recent call last):
        lab.errors.MeshError: there is too little memory for 8 workers
        given: 8 x 55 = 440 MB while they wait, 8 x 130 = 1,040 MB while they train; 300 MB of 1,000 are free (limit of
        the container)
        hint:  Cluster(2), or close other notebooks; a recorded run can be looked at without workers
    """
    require(n_workers, here)
    if here is None:
        return None
    if n_workers * BUSY_MB * MB > here.free:
        log.warning("memory will be short: %s; %s", _need(n_workers), here)
    return max(SMALLEST_LIMIT_MB * MB, here.free // n_workers)


def require(n_workers: int, here: Room | None, fewer: str = "Cluster({})") -> None:
    """Refuse so many workers if they do not fit even while they wait.

    Args:
        fewer: how to ask for another number of them.

    Raises:
        MeshError: so it is.
    """
    if here is None or n_workers * IDLE_MB * MB <= here.free:
        return
    fitting = here.free // (BUSY_MB * MB)
    hint = f"{fewer.format(fitting)}, or close" if fitting else "close"
    raise MeshError(f"there is too little memory for {n_workers} workers", given=f"{_need(n_workers)}; {here}",
                    hint=f"{hint} other notebooks; a recorded run can be looked at without workers")  # fmt: skip


def _need(n_workers: int) -> str:
    need = f"{n_workers} x {IDLE_MB} = {n_workers * IDLE_MB:,} MB while they wait, "
    return need + f"{n_workers} x {BUSY_MB} = {n_workers * BUSY_MB:,} MB while they train"


def _machine(proc: Path) -> Iterator[Room]:
    try:
        lines = (proc / "meminfo").read_text("ascii").splitlines()
    except OSError:  # not Linux
        return
    found = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines) if rest}
    if "MemAvailable" in found:
        yield Room(found["MemAvailable"], found["MemTotal"])


def _control_groups(proc: Path, groups: Path) -> Iterator[Room]:
    """One for each control group from ours up to the root that has a limit."""
    try:
        lines = (proc / "self" / "cgroup").read_text("utf-8").splitlines()
    except OSError:
        return
    own = {names: path.strip("/") for _, names, path in (line.split(":", 2) for line in lines)}
    second = groups / own.get("", ""), "memory.max", "memory.current", "inactive_file"
    first = next((groups / "memory" / path for names, path in own.items() if "memory" in names.split(",")), None)
    layouts = [second]
    if first:
        layouts.append((first, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"))
    for ours, limit, usage, idle_files in layouts:
        for folder in (ours, *ours.parents):
            if not folder.is_relative_to(groups):
                break
            total, used = _number(folder / limit), _number(folder / usage)
            if total is None or used is None or total >= 2**60:  # "max", or version 1's way to say so
                continue
            free = max(0, total - used + _idle(folder / "memory.stat", idle_files))
            yield Room(free, total, CONTAINER)


def _number(path: Path) -> int | None:
    try:
        text = path.read_text("ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _idle(path: Path, name: str) -> int:
    """Bytes of files in memory that nobody has used for a while."""
    try:
        rows = [line.split() for line in path.read_text("ascii").splitlines()]
    except OSError:
        return 0
    return next((int(row[1]) for row in rows if len(row) == 2 and row[0] == name), 0)
