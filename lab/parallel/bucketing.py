"""How long a step of data-parallel training takes by the size of its buckets: lowest in between, where links are slow.

Small buckets pay for each message, large ones leave nothing to hide: the last of them begins when backward has ended.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lab.checks import whole
from lab.data import Dataset, Loader, as_dataset
from lab.errors import ArgumentError
from lab.events import (
    BucketsBegun,
    BucketStepTold,
    BucketsTimed,
    LaneBusy,
    Recording,
    StepFinished,
    bus,
    record,
)
from lab.events.event import ORIGIN, Origin
from lab.kernels.cores import n_cores
from lab.nn import Module, cross_entropy
from lab.optim import SGD
from lab.parallel.paper.plans import plan_of
from lab.parallel.ranks.mailbox import Mailbox
from lab.parallel.ranks.threads import run_ranks
from lab.parallel.training.buckets import buckets_of
from lab.parallel.training.data_parallel import train_replica
from lab.parallel.training.layers import Chosen
from lab.parallel.training.packing import packed
from lab.parallel.training.steering import Order
from lab.parallel.transport.throttle import Throttle, require_throttle
from lab.training.trainer import Training
from lab.words import counted, shown

if TYPE_CHECKING:
    from lab.parallel.cluster.cluster import Cluster
    from lab.parallel.ranks.runtime import Comm

Array = npt.NDArray[Any]
SIZES = (*(4**k for k in range(6, 11)), None)
"""4 KiB to 1 MiB, and all at once."""
KINDS = (BucketsBegun, BucketsTimed, LaneBusy, BucketStepTold)
HINT = "sizes=[16384, 65536, None]"


class Span(NamedTuple):
    """A lane of a rank was busy; fields as of the event LaneBusy."""

    rank: int
    lane: str
    kind: str
    bucket: int
    n_bytes: int
    start_ms: float
    stop_ms: float


class Bucketed(NamedTuple):
    """What was measured with buckets of one size.

    Attributes:
        bucket_bytes: None for all at once.
        n_buckets: into which the gradient was cut.
        elapsed_ms: of a step, the median.
        steps_ms: of each step that was counted.
        spans: lanes of the step that came nearest to the median.
    """

    bucket_bytes: int | None
    n_buckets: int
    elapsed_ms: float
    steps_ms: tuple[float, ...]
    spans: tuple[Span, ...]


class Buckets(NamedTuple):
    """What `measure_buckets` found.

    Attributes:
        rows: one for each size, ascending; all at once comes last.
        throttle: of the links, if they were slowed.
        recording: of the experiment, for BucketView.
    """

    rows: tuple[Bucketed, ...]
    throttle: Throttle | None
    recording: Recording

    @property
    def best(self) -> Bucketed:
        """The row whose step was shortest."""
        return min(self.rows, key=lambda row: row.elapsed_ms)

    def __repr__(self) -> str:
        size = self.best.bucket_bytes
        best = "all at once" if size is None else f"{size:,} bytes"
        links = f", links of {self.throttle}" if self.throttle else ""
        return f"<buckets of {counted(len(self.rows), 'size')}: best {best}, {self.best.elapsed_ms:.3g} ms{links}>"


class _Step(NamedTuple):
    """One that was counted."""

    elapsed_ms: float
    spans: tuple[Span, ...]


def measure_buckets(
    make: Callable[[], Module], data: Dataset | Sequence[npt.ArrayLike], sizes: Sequence[int | None] = SIZES, *,
    on: int | Cluster = 2, batch_size: int = 128, algorithm: str = "ring", throttle: Throttle | None = None,
    rounds: int = 3, steps: int = 4,
) -> Buckets:  # fmt: skip
    """Time real steps of data-parallel training with buckets of several sizes; BucketView draws them.

    A step is timed on rank 0, from its batch to its update. In each round every size has its turn, so a busy moment of
    the machine hits all. The same batch is trained on again and again.

    Args:
        make: makes the model.
        data: a Dataset or a pair (inputs, classes), of which the first `batch_size` are taken.
        sizes: bytes of a bucket; None is all at once: one bucket, whose sum begins when backward has ended.
        on: so many threads of this process, or a Cluster, whose workers are the ranks.
        batch_size: examples of the global batch.
        algorithm: with "all_reduce" a key of COLLECTIVES.
        throttle: makes the links slow, so that there is something to hide on one machine.
        rounds: in each of them a size runs once.
        steps: of a size in a round that are counted; one more, before them, is not.

    Raises:
        ArgumentError: sizes that are none, or fewer examples than a batch has.
        PlanError: no such algorithm.

    Example:
        >>> import lab
        >>> train, _ = lab.data.digits()
        >>> found = lab.measure_buckets(lambda: lab.nn.mlp(64, 32, 10, rng=0), train, [2048, None], rounds=1)
        >>> [(row.bucket_bytes, row.n_buckets, len(row.steps_ms)) for row in found.rows]
        [(2048, 2, 4), (None, 1, 4)]
    """
    wanted, throttle = _sizes(sizes), require_throttle(throttle)
    plan_of("all_reduce", algorithm)
    rounds, steps = whole("rounds", rounds, least=1), whole("steps", steps, least=1)
    training = _training(make, as_dataset(data), whole("batch_size", batch_size, least=1), steps + 1)
    groups, told = training.optimizer.groups, bool(bus.listeners)
    whole_bytes = sum(group.values.nbytes for group in groups)
    payload, taken, world_size = packed(training), dict[int | None, list[_Step]](), 0
    for _ in range(rounds):
        for size in wanted:
            ranks = _launched(on, throttle, payload, algorithm, size or whole_bytes)
            world_size = len(ranks)
            taken.setdefault(size, []).extend(_steps_of(ranks))
    rows = tuple(_row(size, len(buckets_of(groups, size or whole_bytes)), taken[size]) for size in wanted)
    where = "threads" if isinstance(on, int) else "workers"
    begun = BucketsBegun(world_size, where, n_cores(), rounds * steps, batch_size, whole_bytes, algorithm,
                         str(throttle) if throttle else "", told)  # fmt: skip
    return Buckets(rows, throttle, _told(begun, rows))


def _sizes(sizes: object) -> list[int | None]:
    """Each size once, ascending, with all at once behind."""
    if not isinstance(sizes, list | tuple) or not sizes:
        raise ArgumentError("sizes are numbers of bytes, or None for all at once", given=f"sizes={shown(sizes)}",
                            hint=HINT)  # fmt: skip
    numbers = {whole("size", size, least=1, hint=HINT) for size in sizes if size is not None}
    return [*sorted(numbers), *([None] if None in sizes else [])]


def _training(make: Callable[[], Module], data: Dataset, batch_size: int, n_steps: int) -> Training:
    inputs, targets = data.inputs, data.targets
    if len(inputs) < batch_size:
        raise ArgumentError("there are fewer examples than a batch has",
                            given=f"{counted(len(inputs), 'example')}, batch_size={batch_size}",
                            hint="a smaller batch_size")  # fmt: skip
    model = make()
    loader = Loader(Dataset(inputs[:batch_size], targets[:batch_size]), batch_size, rng=0)
    return Training(model, loader, None, cross_entropy, SGD(model.parameters(), 1e-3), n_epochs=n_steps,
                    measure_every=0)  # fmt: skip


def _launched(on: int | Cluster, throttle: Throttle | None, *args: Any) -> list[tuple[dict[int, float], list[Any]]]:
    if isinstance(on, int):
        return run_ranks(trains, *args, world_size=whole("on", on, least=2), throttle=throttle)
    return on.launch(trains, *args, throttle=throttle)


def trains(
    comm: Comm, payload: bytes, algorithm: str, bucket_bytes: int
) -> tuple[dict[int, float], list[tuple[int, Span]]]:
    """The program of a rank: by step its milliseconds, which rank 0 alone tells, and the spans of this rank's lanes."""
    comm.mailbox = Mailbox()
    comm.mailbox.put(Order(1, "go", math.inf))
    with record(kinds=(LaneBusy, StepFinished)) as rec:
        train_replica(comm, payload, "buckets", algorithm, choice=Chosen(bucket_bytes=bucket_bytes))
    took, spans = dict[int, float](), list[tuple[int, Span]]()
    for e in rec:
        if e.rank == comm.rank and isinstance(e, StepFinished):
            took[e.step] = e.elapsed_ms
        elif e.rank == comm.rank and isinstance(e, LaneBusy):
            spans.append((e.step, Span(e.rank, e.lane, e.kind, e.bucket, e.n_bytes, e.start_ms, e.stop_ms)))
    return took, spans


def _steps_of(ranks: list[tuple[dict[int, float], list[tuple[int, Span]]]]) -> list[_Step]:
    """All steps but the first, which makes buffers."""
    took = ranks[0][0]
    return [
        _Step(took[step], tuple(span for _, spans in ranks for at, span in spans if at == step))
        for step in sorted(took)[1:]
    ]


def _row(size: int | None, n_buckets: int, steps: list[_Step]) -> Bucketed:
    times = [step.elapsed_ms for step in steps]
    middle = median(times)
    nearest = min(steps, key=lambda step: abs(step.elapsed_ms - middle))
    return Bucketed(size, n_buckets, middle, tuple(times), nearest.spans)


def _told(begun: BucketsBegun, rows: Sequence[Bucketed]) -> Recording:
    """The curve, then size by size the lanes of a step, each span as its rank told it."""
    with record(kinds=KINDS) as rec:
        rec.meta["title"] = "steps by size of the buckets"
        bus.emit(begun)
        for row in rows:
            bus.emit(BucketsTimed(row.bucket_bytes or 0, row.n_buckets, row.elapsed_ms, min(row.steps_ms),
                                  max(row.steps_ms)))  # fmt: skip
        for row in rows:
            middle = int(np.argmin([abs(ms - row.elapsed_ms) for ms in row.steps_ms]))
            for span in row.spans:
                _as_rank(span, middle + 1)
            bus.emit(BucketStepTold(row.bucket_bytes or 0, row.steps_ms[middle]))
    return rec


def _as_rank(span: Span, step: int) -> None:
    token = ORIGIN.set(Origin(span.rank, ORIGIN.get().run))
    try:
        bus.emit(LaneBusy(step, *span[1:]))
    finally:
        ORIGIN.reset(token)
