"""What experiments with collectives tell: times by size, a network fitted to them, bytes on the link of the root."""

from __future__ import annotations

from lab.events.event import Event, event


@event
class TimesBegun(Event):
    """`lab.measure_collectives` begins: algorithms on buffers of more and more bytes."""

    operation: str
    world_size: int
    where: str
    """"threads" of one process, or "workers", processes of a cluster."""
    n_cores: int
    """On which ranks of one machine share their time."""
    repeats: int
    told: bool
    """Whether somebody recorded meanwhile, which makes all slower."""


@event
class TimeMeasured(Event):
    """A collective ran, several times."""

    algorithm: str
    n_bytes: int
    elapsed_ms: float
    """Median of the repeats, each until the last rank had left."""


@event
class LinkFitted(Event):
    """A link for simulations: a message of N bytes takes latency + N / bandwidth."""

    latency_s: float
    bytes_per_s: float
    fitted_to: str
    """The algorithm whose smallest and largest buffer it was fitted to; "" if it was given."""


@event
class TimeSimulated(Event):
    """What a collective would take on such links, if ranks had nothing else to wait for."""

    algorithm: str
    n_bytes: int
    elapsed_ms: float


@event
class RootLinkBegun(Event):
    """`lab.measure_root_link` begins: collectives of one buffer on more and more ranks."""

    n_bytes: int
    """Of the buffer of each rank."""


@event
class RootLinkMeasured(Event):
    """What rank 0 sent and received in a collective that ran."""

    operation: str
    algorithm: str
    world_size: int
    sent_bytes: int
    received_bytes: int


@event
class SpreadBegun(Event):
    """`lab.measure_spread` begins: replicas train, and are compared after each step."""

    world_size: int
    steps: int
    batch_size: int
    """Examples of one rank in one step."""
    learning_rate: float


@event
class SpreadMeasured(Event):
    """How far replicas were apart after a step."""

    every: int
    """1: gradients were summed in each step; k: parameters averaged every k steps; 0: neither."""
    step: int
    largest: float
    """Difference of one parameter between two ranks."""
    loss: float
    """Mean over ranks, before the update."""


@event
class BucketsBegun(Event):
    """`lab.measure_buckets` tells what it measured: steps of data-parallel training by the size of their buckets."""

    world_size: int
    where: str
    """"threads" of one process, or "workers", processes of a cluster."""
    n_cores: int
    repeats: int
    """Steps that were counted, of each size."""
    batch_size: int
    """Examples of the global batch."""
    n_bytes: int
    """Of the whole gradient."""
    algorithm: str
    throttle: str
    """How slow the links were made, in words; "" for as fast as they are."""
    told: bool
    """Whether somebody recorded meanwhile, which makes all slower."""


@event
class BucketsTimed(Event):
    """Steps with buckets of one size were timed on rank 0."""

    bucket_bytes: int
    """0 for all at once, after backward."""
    n_buckets: int
    elapsed_ms: float
    """Of a step, the median."""
    fastest_ms: float
    slowest_ms: float


@event
class BucketStepTold(Event):
    """The events LaneBusy since the one before are the lanes of one step: that which came nearest to the median."""

    bucket_bytes: int
    """0 for all at once."""
    elapsed_ms: float
    """Of this step."""
