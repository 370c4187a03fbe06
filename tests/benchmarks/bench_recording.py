"""Figures of the Recording: cost of an event, size of the file, time to save, open and seek a million events.

Run: python tests/benchmarks/bench_recording.py [n_events]. Medians, and the best of all repetitions, in one process.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from lab.events import Batch, Bus, Detail, Event, GradientStored, OpRecorded, Recording, StepFinished, ValueSeen

F32 = np.dtype("float32")
NAMES = ("matmul", "add", "relu", "mul")


def timed(what: str, run: Callable[[], object], n: int, repeat: int = 9, unit: float = 1e9) -> None:
    """Print median and best time of `run` for each of n."""
    times = []
    for _ in range(repeat):
        start = perf_counter()
        run()
        times.append((perf_counter() - start) / n * unit)
    name = {1e9: "ns", 1e3: "ms"}[unit]
    print(f"{what:58} {median(times):9.1f} {name}   best {min(times):9.1f} {name}")


class Nothing:
    """A listener that does nothing."""

    detail = Detail.SHAPE
    sources = False

    def wants(self, kind: type[Event]) -> bool:
        return True

    def receive(self, batch: Batch) -> None:
        """Nothing."""

    def lost(self, n_events: int) -> None:
        """Nothing."""

    def detached(self, why: BaseException) -> None:
        """Nothing."""


def emit_operations(bus: Bus, n: int, constants: tuple[str, ...] = (), file: str = "", line: int = 0) -> None:
    """Emit n events as a small network does: shapes, names and lines repeat, nodes grow."""
    for i in range(n):
        shape = (64, 32) if i & 4 else (64, 10)
        bus.emit_row(OpRecorded, i, NAMES[i & 3], (i - 1, i - 2), shape, F32, 0, constants, "layers.0", file, line)


def main(n_events: int) -> None:
    """Print all figures."""
    n = 100_000
    for what, listener in (("no-op listener", Nothing()), ("Recording", Recording(run="*", limit=10**9))):
        bus = Bus()
        bus.attach(listener)
        timed(f"emit + deliver OpRecorded to a {what}, each", lambda bus=bus: emit_operations(bus, n), n)
    bus = Bus()
    bus.attach(Recording(run="*", limit=10**9))
    timed("same with source line and constants", lambda: emit_operations(bus, n, ("2.0", ""), __file__, 40), n)

    bus, batches = Bus(), list[Batch]()
    keeper = Nothing()
    keeper.receive = batches.append  # type: ignore[method-assign]
    bus.attach(keeper)
    emit_operations(bus, 4096)
    bus.detach(keeper)
    rows, rec, seq = [row for batch in batches for row in batch.rows], Recording(run="*", limit=10**9), [0]

    def append() -> None:
        rec.receive(Batch(rows, range(seq[0], seq[0] + 4096)))
        seq[0] += 4096

    timed("append a batch of 4096 OpRecorded, each row", append, 4096, repeat=101)

    bus, rec = Bus(), Recording(run="*", limit=10**9, detail="value")
    bus.attach(rec)
    value = np.ones(4, np.float32)
    per_turn = 25
    for turn in range(n_events // per_turn):
        emit_operations(bus, 8, ("", "2.0"), __file__, 40 + turn % 9)
        for node in range(8):
            seen = value if turn % 8 == 0 else None
            bus.emit_row(ValueSeen, node, "value", -1, -1, (4,), 0.0, 1.0, 0.5, turn * 0.1, 0, seen)
            bus.emit_row(GradientStored, turn * 8 + node, False)
        bus.emit_row(StepFinished, turn, turn // 100, 1 / (turn + 1), 64, 2.0)
    bus.detach(rec)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.lab"
        timed(f"save {len(rec):,} events", lambda: rec.save(path), 1, 3, 1e3)
        size = path.stat().st_size
        print(f"{'size of the file':58} {size / 1e6:9.1f} MB   {size / len(rec):.1f} B an event")
        loaded = Recording.load(path)
        timed(f"open {len(rec):,} events", lambda: Recording.load(path), 1, 5, 1e3)

        def seek() -> None:
            for start in range(0, len(loaded), len(loaded) // 50):
                stop = start + 20_000
                loaded.columns(StepFinished, start, stop)["loss"].sum()
                columns = loaded.columns(OpRecorded, start, stop)
                columns["node"], columns["op"], columns["parents"].values, columns["file"]
                loaded.positions(StepFinished)

        timed("seek: 50 slices of 20,000 positions, each", seek, 50, 5, 1e3)
        timed(
            "read all columns of all kinds", lambda: [list(loaded.columns(k).values()) for k in loaded.kinds], 1, 5, 1e3
        )
        timed("rec[i], each", lambda: [loaded[i] for i in range(0, len(loaded), len(loaded) // 1000)], 1000)
        timed("iterate 20,000 events, each", lambda: [e for e, _ in zip(loaded, range(20_000), strict=False)], 20_000)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
