"""Memory over forward and backward: what the tape saves grows with every operation, and falls as backward comes by.

A checkpoint forgets what a function saved and replays it: less is held at a time, and more operations run. Bytes are
those that Python's allocator and NumPy report to `tracemalloc`, looked at after each operation and each backward node.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

from lab.autograd.backward import Walk
from lab.autograd.tensor import Tensor
from lab.errors import ArgumentError, GradientError
from lab.events import ORIGIN, Event, Recording, bus, record
from lab.events.catalogue import MemoryBegun, MemorySampled, OpRecorded, PeakFound
from lab.events.gate import Gate, Passing
from lab.experiments.subject import subject

KINDS: tuple[type[Event], ...] = (MemoryBegun, MemorySampled, PeakFound)
_NUMBERS = count(1)


class Sample(NamedTuple):
    """What was held after one operation or node.

    Attributes:
        phase: "forward", "replay" or "backward".
        op: its name.
        n_bytes: more than before the run.
    """

    phase: str
    op: str
    n_bytes: int


class Memory(NamedTuple):
    """What one function held.

    Attributes:
        samples: in order.
        peak: the most, also between two samples.
        kept: between forward and backward: the graph with what it saved.
    """

    samples: tuple[Sample, ...]
    peak: int
    kept: int

    @property
    def n_replayed(self) -> int:
        """Operations that ran again for backward."""
        return sum(s.phase == "replay" for s in self.samples)


class Memories(NamedTuple):
    """What `measure_memory` found.

    Attributes:
        ways: by name.
        recording: of the experiment, for MemoryView.
    """

    ways: dict[str, Memory]
    recording: Recording

    def __repr__(self) -> str:
        words = (f"{name} {m.peak / 2**20:.3g} MiB, {m.n_replayed} replayed" for name, m in self.ways.items())
        return f"<peaks: {'; '.join(words)}>"


def measure_memory(**ways: Callable[[], Tensor]) -> Memories:
    """Run functions forward and back, and see how much memory is held after each operation and each backward node.

    MemoryView draws it. Each function runs once before, unmeasured, so that what is only made once is made; gradients
    of leaves are afterwards what they were.

    Args:
        ways: functions without arguments that return one number, by the name that they have in the picture.

    Raises:
        ArgumentError: none, or not a function.
        GradientError: a function returns something that backward cannot walk.

    Example:
        >>> import lab, numpy as np
        >>> x = lab.tensor(np.linspace(0.0, 1.0, 50_000), requires_grad=True)
        >>> def chain(x):
        ...     for _ in range(4):
        ...         x = lab.sin(x)
        ...     return x
        >>> pieces = lab.checkpoint(chain)
        >>> found = lab.measure_memory(
        ...     plain=lambda: chain(chain(chain(x))).sum(), checkpointed=lambda: pieces(pieces(pieces(x))).sum()
        ... )
        >>> found.ways["checkpointed"].peak < found.ways["plain"].peak, found.ways["checkpointed"].n_replayed
        (True, 12)
    """
    if not ways:
        raise ArgumentError(
            "measure_memory needs a function", given="none", hint="lab.measure_memory(plain=lambda: f(x).sum())"
        )
    made = dict[str, Memory]()
    for name, f in ways.items():
        subject(f, 0, "measure_memory")
        _measured(f, _Meter(""))
        made[name] = _measured(f, _Meter(f"memory {next(_NUMBERS)}"))
    with record(kinds=KINDS) as rec:
        rec.meta["title"] = ", ".join(ways)
        bus.emit(MemoryBegun(tuple(ways)))
        for name, memory in made.items():
            for number, sample in enumerate(memory.samples, 1):
                bus.emit(MemorySampled(name, number, *sample))
            n_ops = sum(s.phase != "backward" for s in memory.samples)
            bus.emit(PeakFound(name, memory.peak, n_ops, memory.n_replayed))
    return Memories(made, rec)


class _Meter(Gate):
    """A gate that holds nobody: it looks at the memory when something passes."""

    def __init__(self, run: str) -> None:
        super().__init__(run)
        self.walks, self.before = False, 0
        self.samples: list[Sample] = []

    def passed(self, passing: Passing) -> None:
        forward = "replay" if self.walks else "forward"
        phase = forward if passing.unit == "op" else "backward"
        self.samples.append(Sample(phase, passing.op, tracemalloc.get_traced_memory()[0] - self.before))


def _measured(f: Callable[[], Tensor], meter: _Meter) -> Memory:
    """One run forward and back; a meter without a name looks at nothing."""
    with _metered(meter):
        out: Any = f()
        node = getattr(out, "node", None)
        if not isinstance(out, Tensor) or node is None:
            raise GradientError(
                "measure_memory needs functions that return one number with a graph", given=f"{out!r}"[:60],
                hint="lambda: f(x).sum(), with an x that has requires_grad=True",
            )  # fmt: skip
        kept = tracemalloc.get_traced_memory()[0] - meter.before
        with _put_back(node):
            meter.walks = True
            out.backward()
        peak = tracemalloc.get_traced_memory()[1] - meter.before if meter.run else 0
    return Memory(tuple(meter.samples), peak, kept)


@contextmanager
def _metered(meter: _Meter) -> Iterator[None]:
    """In a run of its own, so that nobody else's recording fills and nobody else's gate is touched."""
    if not meter.run:
        yield
        return
    began = not tracemalloc.is_tracing()
    token = ORIGIN.set(ORIGIN.get()._replace(run=meter.run))
    try:
        with record(kinds=[OpRecorded], detail="shape", sources=False):
            bus.set_gate(meter.run, meter)
            if began:
                tracemalloc.start()
            tracemalloc.reset_peak()
            meter.before = tracemalloc.get_traced_memory()[0]
            yield
    finally:
        if began:
            tracemalloc.stop()
        bus.set_gate(meter.run, None)
        ORIGIN.reset(token)


@contextmanager
def _put_back(node: Any) -> Iterator[None]:
    """No leaf has a gradient at first, as in a fresh step; afterwards each has what it had."""
    leaves = [*Walk(node).leaves.values()]
    before = [leaf.grad for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    try:
        yield
    finally:
        for leaf, gradient in zip(leaves, before, strict=True):
            leaf.grad = gradient
