"""measure_buckets on worker processes; what threads do of it is tested beside its view."""

import pytest

import lab
from lab.events import BucketsBegun
from lab.parallel import Throttle


@pytest.mark.slow
def test_workers_of_a_cluster_are_measured_as_threads_are(cluster):
    train, _ = lab.data.digits()
    found = lab.measure_buckets(
        lambda: lab.nn.mlp(64, 32, 10, rng=0), (train.inputs, train.targets), [1400, None], on=cluster, batch_size=16,
        throttle=Throttle(latency_s=1e-4), rounds=1, steps=2,
    )  # fmt: skip
    [begun] = [event for event in found.recording if isinstance(event, BucketsBegun)]
    assert (begun.where, begun.throttle, begun.repeats) == ("workers", "any bandwidth, 0.1 ms", 2)
    for row in found.rows:
        assert {span.rank for span in row.spans} == set(range(begun.world_size))
        assert len(row.spans) == begun.world_size * (2 + row.n_buckets)
