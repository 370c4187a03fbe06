"""What the gallery shows of ranks: collectives and trainings on worker processes, which start for the first of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.data import digits
from lab.events import OrderMeasured, Recording, record
from lab.nn import mlp
from lab.training import fit
from widgets.gallery.measured import Measured

if TYPE_CHECKING:
    from lab.parallel import Cluster, Comm

N_RANKS = 4
STRUCK_AT = 40
"""The step of a training after which one of its workers is killed."""


def added_up(comm: Comm, operation: str, algorithm: str) -> Any:
    """A program of ranks: rank r brings 10 to the power of r, so that a sum shows whose parts are in it."""
    mine = np.full(32 if algorithm == "double_tree" else 8, float(10**comm.rank))  # two in each chunk
    if operation == "broadcast":
        return comm.broadcast_(mine)
    return comm.all_reduce_(mine, algorithm)


def moved(comm: Comm) -> Any:
    """A program of ranks: every rank has a chunk for each other."""
    mine = np.full(2 * comm.world_size, float(10**comm.rank))
    comm.run_(mine, "all_to_all", "direct")
    return mine


def added_twice(comm: Comm, one: str, other: str) -> None:
    """A program of ranks: the same numbers are added by two algorithms."""
    for algorithm in (one, other):
        comm.all_reduce_(np.full(8, float(10**comm.rank)), algorithm)


class OnRanks(Measured):
    """Recordings of ranks by name.

    Args:
        say: told in a line what is done now.
    """

    def __init__(self, say: Callable[[str], object]) -> None:
        super().__init__(say)
        self._stack = ExitStack()

    @cached_property
    def cluster(self) -> Cluster:
        """Four worker processes."""
        from lab.parallel import Cluster

        self._say(f"Starting {N_RANKS} workers ...")
        return self._stack.enter_context(Cluster(N_RANKS))

    def _collective(self, operation: str, algorithm: str) -> Recording:
        cluster = self.cluster
        name = f"{operation.capitalize().replace('_', '-')}{f' by {algorithm}' if algorithm else ''}"
        self._say(f"{name} on {N_RANKS} workers ...")
        with record(detail="value") as rec:
            cluster.launch(added_up, operation, algorithm, time_limit=60)
        return rec

    @cached_property
    def ring(self) -> Recording:
        """An all-reduce in a ring."""
        return self._collective("all_reduce", "ring")

    @cached_property
    def naive(self) -> Recording:
        """An all-reduce by way of rank 0."""
        return self._collective("all_reduce", "naive")

    @cached_property
    def broadcast(self) -> Recording:
        """What rank 0 has goes to all."""
        return self._collective("broadcast", "")

    @cached_property
    def tree(self) -> Recording:
        """An all-reduce up and down a tree."""
        return self._collective("all_reduce", "tree")

    @cached_property
    def double_tree(self) -> Recording:
        """An all-reduce along two trees."""
        return self._collective("all_reduce", "double_tree")

    @cached_property
    def all_to_all(self) -> Recording:
        """A chunk of each rank for each other."""
        cluster = self.cluster
        self._say(f"All-to-all on {N_RANKS} workers ...")
        with record(detail="value") as rec:
            cluster.launch(moved, time_limit=60)
        return rec

    @cached_property
    def two_ways(self) -> Recording:
        """The same sum by ring and by tree."""
        cluster = self.cluster
        self._say(f"All-reduce by ring and by tree on {N_RANKS} workers ...")
        with record(detail="value") as rec:
            cluster.launch(added_twice, "ring", "tree", time_limit=60)
        return rec

    @cached_property
    def times(self) -> Recording:
        """All-reduce by ring and by tree, with buffers of 1 KiB to 4 MiB."""
        from lab.parallel.timing import SIZES, measure_collectives

        cluster = self.cluster
        self._say(f"All-reduce by size on {N_RANKS} workers ...")
        return measure_collectives(cluster, ("ring", "tree"), SIZES[:-1], world_size=N_RANKS, repeats=3).recording

    @cached_property
    def root_link(self) -> Recording:
        """Broadcasts and all-reduces on 2 to 8 ranks."""
        from lab.parallel.timing import measure_root_link

        self._say("Bytes on the link of rank 0 ...")
        return measure_root_link().recording

    @cached_property
    def replicas(self) -> Recording:
        """Four replicas train on shards of each batch."""
        from lab.parallel import DataParallel

        cluster = self.cluster
        self._say(f"Training on digits, data-parallel on {N_RANKS} workers ...")
        train, test = digits()
        model, on = mlp(64, 32, 10, rng=0), DataParallel(cluster, N_RANKS)
        run = fit(model, train, validation=test, epochs=1, batch_size=128, name="digits-replicas", on=on)
        run.wait()
        return run.recording

    @cached_property
    def spread(self) -> Recording:
        """Replicas that sum gradients, average parameters, or do neither."""
        from lab.parallel.spread import measure_spread

        self._say("Replicas with and without synchronisation ...")
        train, _ = digits()
        return measure_spread(lambda: mlp(64, 16, 10, rng=0), (train.inputs, train.targets)).recording

    @cached_property
    def buckets(self) -> Recording:
        """Steps of two ranks on slow links, with the gradient in buckets of several sizes."""
        from lab.parallel import Throttle
        from lab.parallel.bucketing import measure_buckets

        self._say("Steps by size of the buckets, on slow links ...")
        train, _ = digits()
        slow = Throttle(bytes_per_s=2e8, latency_s=5e-4)
        data = train.inputs, train.targets
        return measure_buckets(lambda: mlp(64, *[256] * 6, 10, rng=0), data, throttle=slow, batch_size=512).recording

    @cached_property
    def orders(self) -> Recording:
        """The same numbers of eight ranks, summed in several orders."""
        from lab.parallel import measure_orders

        self._say("Sums in several orders ...")
        rng = np.random.default_rng(0)
        with record(kinds=[OrderMeasured]) as rec:
            measure_orders([rng.normal(size=1000).astype(np.float32) for _ in range(8)])
        return rec

    @cached_property
    def killed(self) -> Recording:
        """A training of which one worker is killed by hand, and which goes on."""
        from lab.parallel import DataParallel

        cluster = self.cluster
        cluster.client.wait_for_workers(N_RANKS)
        self._say("A worker is killed while it trains ...")
        train, _ = digits()
        on = DataParallel(cluster, N_RANKS, told="replicas")
        run = fit(mlp(64, 16, 10, rng=0), train, epochs=12, batch_size=64, name="digits-killed", on=on)
        struck = Event()
        while run.progress[0] < STRUCK_AT and run.state == "running":
            struck.wait(0.01)
        cluster.hands.kill(next(iter(cluster.processes())))
        run.wait()
        return run.recording

    @cached_property
    def pipeline(self) -> Recording:
        """Four stages on paced devices, so that two cores can play them."""
        from lab.parallel import Paced, Pipeline

        cluster = self.cluster
        self._say(f"A pipeline of {N_RANKS} stages, 1F1B, on paced workers ...")
        (train, _), model = digits(), mlp(64, 48, 32, 24, 10, rng=0)
        on = Pipeline(cluster, schedule="1f1b", n_stages=N_RANKS, n_micro=8, paced=Paced(20, 40))
        first = train.inputs[:256], train.targets[:256]
        run = fit(model, first, epochs=1, batch_size=128, name="digits-pipeline", on=on)
        run.wait()
        return run.recording
