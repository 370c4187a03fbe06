"""What micro-batches cost and save: memory, time and gradient of a step by their size, the updates being the same.

What backward needs is kept for one micro-batch at a time, so memory falls with their size; below some size the time
rises, since each operation costs something whatever it is given.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lab.checks import whole
from lab.data import Dataset, Loader, as_dataset
from lab.errors import ArgumentError
from lab.events import AccumulationBegun, AccumulationMeasured, Recording, bus, record
from lab.nn import Module, cross_entropy
from lab.optim import SGD
from lab.training.accumulation import Accumulation
from lab.training.evaluate import Loss
from lab.training.trainer import Training
from lab.words import counted, shown

SIZES = (256, 128, 64, 32, 16)
HINT = "micro_batch_sizes=(256, 64, 16)"
RATE = 1e-3


class Cut(NamedTuple):
    """What was measured with micro-batches of one size; fields as of the event AccumulationMeasured."""

    micro_batch: int
    n_micro: int
    peak_bytes: int
    elapsed_ms: float
    fastest_ms: float
    slowest_ms: float
    difference: float


class Cuts(NamedTuple):
    """What `measure_accumulation` found.

    Attributes:
        rows: one for each size, descending.
        limit: bytes that a step may hold, None for any number.
        recording: of the experiment, for AccumulationView.
    """

    rows: tuple[Cut, ...]
    limit: int | None
    recording: Recording

    @property
    def fitting(self) -> tuple[Cut, ...]:
        """Those that hold no more than the limit."""
        return tuple(row for row in self.rows if self.limit is None or row.peak_bytes <= self.limit)

    def __repr__(self) -> str:
        first, last = self.rows[0], self.rows[-1]
        limit = "" if self.limit is None else f", {len(self.fitting)} of {counted(len(self.rows), 'size')} fit"
        held = f"{first.peak_bytes / 2**20:.3g} to {last.peak_bytes / 2**20:.3g} MiB"
        times = f"{first.elapsed_ms:.3g} to {last.elapsed_ms:.3g} ms"
        return f"<micro-batches of {first.micro_batch} to {last.micro_batch} examples: {held}, {times}{limit}>"


def measure_accumulation(
    make: Callable[[], Module], data: Dataset | Sequence[npt.ArrayLike],
    micro_batch_sizes: Sequence[int] = SIZES, *, batch_size: int = 256, loss: Loss = cross_entropy,
    limit: int | None = None, rounds: int = 3, steps: int = 3,
) -> Cuts:  # fmt: skip
    """Measure real steps on one batch that is cut into micro-batches of several sizes; AccumulationView draws them.

    Memory is what `tracemalloc` sees of Python and NumPy in a step of its own, which is not timed. Nothing enforces the
    limit: a step that holds more is marked. In each round every size has its turn, so a busy moment hits all.

    Args:
        make: makes the model, alike each time.
        data: a Dataset or a pair (inputs, targets), of which the first `batch_size` are taken.
        micro_batch_sizes: examples in a micro-batch, at most; parts of a batch differ by one.
        loss: a mean over examples, or `Counted`.
        limit: bytes that a step may hold beyond parameters, their gradients and what the optimiser keeps.
        steps: of a size in a round that are timed; one more, before all, is not.

    Raises:
        ArgumentError: sizes that are none, or fewer examples than a batch has.
        RunError: the loss of a step is no finite number.

    Example:
        >>> import lab
        >>> train, _ = lab.data.digits()
        >>> found = lab.measure_accumulation(lambda: lab.nn.mlp(64, 256, 256, 10, rng=0), train, (256, 64), rounds=1)
        >>> [(row.micro_batch, row.n_micro) for row in found.rows], found.rows[1].peak_bytes < found.rows[0].peak_bytes
        ([(256, 1), (64, 4)], True)
    """
    batch_size = whole("batch_size", batch_size, least=1)
    rounds, steps = whole("rounds", rounds, least=1), whole("steps", steps, least=1)
    limit = None if limit is None else whole("limit", limit, least=1, hint="in bytes: 4 << 20 is 4 MiB")
    batch, told = _batch(as_dataset(data), batch_size), bool(bus.listeners)
    numbers = [-(-batch_size // size) for size in _sizes(micro_batch_sizes, batch_size)]
    subjects = [_Subject(make(), batch, loss, n, 2 + rounds * steps) for n in numbers]
    expected = subjects[0].gradient if numbers[0] == 1 else _Subject(make(), batch, loss, 1, 1).gradient
    peaks = [subject.peak() for subject in subjects]
    for _ in range(rounds):
        for subject in subjects:
            subject.time(steps)
    rows = tuple(_row(subject, peak, expected, batch_size) for subject, peak in zip(subjects, peaks, strict=True))
    with record(kinds=(AccumulationBegun, AccumulationMeasured)) as rec:
        rec.meta["title"] = "steps by size of the micro-batches"
        bus.emit(AccumulationBegun(batch_size, limit or 0, rounds * steps, told))
        for row in rows:
            bus.emit(AccumulationMeasured(*row))
    return Cuts(rows, limit, rec)


class _Subject:
    """A training with micro-batches of one size, and what was found of it."""

    def __init__(self, model: Module, batch: Dataset, loss: Loss, n: int, n_steps: int) -> None:
        self.n, self.times = n, list[float]()
        loader = Loader(batch, len(batch), rng=0)
        self._training = Training(model, loader, None, loss, SGD(model.parameters(), RATE), n_epochs=n_steps,
                                  measure_every=0, accumulation=Accumulation(n))  # fmt: skip
        self.step()
        self.gradient = np.concatenate([group.gradients for group in self._training.optimizer.groups])

    def step(self) -> None:
        if (trouble := self._training.advance()) is not None:
            raise trouble

    def peak(self) -> int:
        with _traced():
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            self.step()
            return tracemalloc.get_traced_memory()[1] - before

    def time(self, steps: int) -> None:
        for _ in range(steps):
            start = perf_counter()
            self.step()
            self.times.append(1e3 * (perf_counter() - start))


def _row(subject: _Subject, peak: int, expected: npt.NDArray[Any], batch_size: int) -> Cut:
    largest = float(np.abs(expected).max())
    apart = float(np.abs(subject.gradient - expected).max())
    return Cut(-(-batch_size // subject.n), subject.n, peak, median(subject.times), min(subject.times),
               max(subject.times), apart / largest if largest else apart)  # fmt: skip


def _sizes(sizes: object, batch_size: int) -> list[int]:
    """Each size once, descending; no two that cut the batch alike."""
    if not isinstance(sizes, list | tuple) or not sizes:
        raise ArgumentError("micro_batch_sizes are numbers of examples", given=f"micro_batch_sizes={shown(sizes)}",
                            hint=HINT)  # fmt: skip
    found = {whole("micro_batch_size", size, least=1, hint=HINT) for size in sizes}
    if max(found) > batch_size:
        raise ArgumentError("a micro-batch is a part of the batch", given=f"{max(found)} of {batch_size} examples",
                            hint=f"at most {batch_size}, or a larger batch_size")  # fmt: skip
    return sorted({-(-batch_size // size): size for size in sorted(found)}.values(), reverse=True)


def _batch(data: Dataset, batch_size: int) -> Dataset:
    if len(data) < batch_size:
        raise ArgumentError("there are fewer examples than a batch has", given=f"{counted(len(data), 'example')}, "
                            f"batch_size={batch_size}", hint="a smaller batch_size")  # fmt: skip
    return Dataset(*data.take(slice(batch_size)), data.name)


@contextmanager
def _traced() -> Iterator[None]:
    """Whoever traced before goes on."""
    began = not tracemalloc.is_tracing()
    if began:
        tracemalloc.start()
    try:
        yield
    finally:
        if began:
            tracemalloc.stop()
