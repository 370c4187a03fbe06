"""What experiments with micro-batches tell: memory, time and gradient by size, and losses by how they are weighed."""

from __future__ import annotations

from lab.events.event import Event, event


@event
class AccumulationBegun(Event):
    """`lab.measure_accumulation` tells what it measured: steps on one batch, cut into micro-batches by size."""

    batch_size: int
    limit_bytes: int
    """What a step may hold; 0 if nothing was said."""
    repeats: int
    """Steps of each size that were timed."""
    told: bool
    """Whether somebody recorded meanwhile, which makes all slower."""


@event
class AccumulationMeasured(Event):
    """Steps with micro-batches of one size were measured."""

    micro_batch: int
    """Examples in the largest of them."""
    n_micro: int
    peak_bytes: int
    """The most that a step held at a time, beyond what was held before it."""
    elapsed_ms: float
    """Of a step, the median."""
    fastest_ms: float
    slowest_ms: float
    difference: float
    """The largest difference of an entry from the whole batch's gradient, as a part of the largest entry there."""


@event
class MeansBegun(Event):
    """`lab.compare_means` begins: the same training several times, its micro-batches weighed in several ways."""

    n_micro: int
    batch_size: int
    steps: int
    learning_rate: float


@event
class MeansStepped(Event):
    """One training of them made a step."""

    way: str
    step: int
    loss: float
    """Over what the whole batch counts, before the update."""
