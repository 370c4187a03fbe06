"""Recordings of ranks for the tests of views: events in the order in which lock step makes them, or in another one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import contextmanager

import numpy as np

import lab
from lab.events import Bus, ChunkMoved, CollectiveFinished, CollectiveStarted, Event, Recording
from lab.events.event import ORIGIN, Array, Origin
from lab.parallel import Hop, elements, plan_of
from lab.parallel.paper.lockstep import lockstep
from lab.parallel.paper.plans import steps_of

Told = tuple[int, Event]
"""An event and the rank that tells it."""


@contextmanager
def as_rank(rank: int):
    token = ORIGIN.set(Origin(rank, ""))
    yield
    ORIGIN.reset(token)


def told(events: Iterable[Told], **options: object) -> Recording:
    """A Recording of events of several ranks."""
    bus, rec = Bus(), Recording(run="*", **options)  # type: ignore[arg-type]
    bus.attach(rec)
    for rank, event in events:
        with as_rank(rank):
            bus.emit(event)
    bus.detach(rec)
    return rec


def collective(
    operation: str, algorithm: str, arrays: Sequence[Array], *, number: int = 0, values: bool = True, root: int = 0
) -> list[Told]:
    """What the ranks of one collective tell, in lock step."""
    n, size = len(arrays), arrays[0].size
    held = [np.array(a).reshape(-1) for a in arrays]
    about = number, operation, algorithm, held[0].nbytes, n, n
    events: list[Told] = [
        (rank, CollectiveStarted(*about, held[rank].copy() if values else None)) for rank in range(n)
    ]

    def turned(rank: int) -> int:
        return (rank + root) % n

    def put(hop: Hop, payload: Array) -> None:
        dst, mine = turned(hop.dst), held[turned(hop.dst)][elements(hop.start, hop.stop, n, size)]
        mine[...] = mine + payload if hop.reduce else payload
        event = ChunkMoved(
            number, hop.step, turned(hop.src), dst, hop.start, hop.stop, hop.reduce, mine.nbytes,
            mine.copy() if values else None,
        )  # fmt: skip
        events.append((dst, event))

    steps = [steps_of(plan_of(operation, algorithm), rank, n) for rank in range(n)]
    lockstep(steps, lambda rank, send: held[turned(rank)][elements(send.start, send.stop, n, size)].copy(), put)
    events += [(rank, CollectiveFinished(*about)) for rank in range(n)]
    return events


def ranks_of(n: int, size: int | None = None) -> list[Array]:
    """Rank r holds 10 r + 1, 10 r + 2, ...: sums are easy to check by hand."""
    return [10.0 * rank + np.arange(1.0, (size or n) + 1) for rank in range(n)]


def in_batches(events: Sequence[Told], order: Sequence[int]) -> list[Told]:
    """The same events as if each rank's came in one batch, ranks in this order."""
    return [(rank, event) for rank in order for teller, event in events if teller == rank]


def trained(world_size: int) -> Recording:
    """A real data-parallel training on ranks that are threads: a small network on digits, 5 steps, the last of 2."""
    from lab.events import record
    from lab.parallel import run_ranks
    from lab.parallel.training.packing import packed
    from lab.training.trainer import Training
    from tests.parallel.trainings import OPTIMIZERS, network, some_digits, tells_all

    module = network()
    loader = lab.data.Loader(some_digits(42), 10, rng=0)
    optimizer = OPTIMIZERS["sgd"](module.parameters())
    sent = packed(Training(module, loader, None, lab.cross_entropy, optimizer, n_epochs=1, measure_every=0))
    with record(detail="value") as rec:
        run_ranks(tells_all, sent, "", "ring", world_size=world_size)
    return rec
