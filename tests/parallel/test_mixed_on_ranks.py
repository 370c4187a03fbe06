"""Overflow and nan on one rank alone: all ranks skip, or stop, in the same step (fault F25)."""

import math

import numpy as np
import pytest

import lab
from lab.data import Dataset, Loader
from lab.events import LossScaled, record
from lab.nn import mlp
from lab.optim import Adam
from lab.parallel import run_ranks
from lab.parallel.ranks.mailbox import Mailbox
from lab.parallel.training.data_parallel import train_replica
from lab.parallel.training.layers import Chosen
from lab.parallel.training.packing import packed, unpacked
from lab.parallel.training.steering import Held, Order
from lab.precision import LossScale, Mixed
from lab.training.trainer import Training
from tests.parallel.trainings import parameters, some_digits

pytestmark = [pytest.mark.usefixtures("no_run_outlives_its_test")]
WAYS = {"plain": Chosen(), "buckets": Chosen(bucket_bytes=1000), "any world": Chosen(shards=4),
        "micro-batch": Chosen(sync="micro-batch")}  # fmt: skip


def training(change=None, scale=2.0**10):
    data = some_digits(64)
    inputs = data.inputs.copy()
    if change is not None:
        change(inputs)
    model = mlp(64, 32, 10, rng=0)
    return Training(model, Loader(Dataset(inputs, data.targets), 16, shuffle=False), None, lab.cross_entropy,
                    Adam(model.parameters(), 2e-3), n_epochs=2, measure_every=0,
                    precision=Mixed("float16", LossScale(scale, interval=1000)))  # fmt: skip


def trains(comm, payload, choice):
    """Where this rank ends, the trouble that it had to tell, and its events."""
    comm.mailbox, said = Mailbox(), []
    comm.mailbox.put(Order(1, "go", math.inf))

    class Home:
        def put(self, word):
            if isinstance(word, Held) and word.trouble is not None:
                said.append((word.step, str(word.trouble)))
                comm.mailbox.put(Order(2, "stop"))

    comm.home = Home()
    with record(kinds=[LossScaled]) as rec:
        standing = train_replica(comm, payload, "run", "ring", choice=choice)
    copy = unpacked(payload)
    copy.stand(standing)
    return parameters(copy.model), standing.step, standing.scaler, said, [e for e in rec if e.rank == comm.rank]


@pytest.mark.parametrize("way", WAYS)
def test_an_overflow_on_one_rank_has_all_skip_the_step(way):
    def loud(inputs):
        inputs[20] *= 3000  # in the second batch, on the second of four ranks: its gradient overflows

    ranks = run_ranks(trains, packed(training(loud, scale=2.0**12)), WAYS[way], world_size=4)
    for found, step, scaler, said, _ in ranks:
        np.testing.assert_array_equal(found, ranks[0][0])
        assert np.isfinite(found).all()
        assert (step, said) == (8, [])
        assert scaler == ranks[0][2]
        assert scaler.scale < 2.0**12
    told = ranks[0][4]
    assert [e.step for e in told] == list(range(1, 9))
    assert told[1].is_skipped
    assert not told[0].is_skipped
    assert [rank[4] for rank in ranks[1:]] == [[]] * 3  # rank 0 tells what all have in common


@pytest.mark.parametrize("way", WAYS)
def test_nan_in_the_data_of_one_rank_stops_all_in_the_same_step_and_names_it(way):
    def spoilt(inputs):
        inputs[20, 3] = np.nan

    ranks = run_ranks(trains, packed(training(spoilt)), WAYS[way], world_size=4)
    assert [rank[1] for rank in ranks] == [1] * 4
    [(step, words)] = ranks[0][3]
    assert step == 1
    assert "at step 2 on rank 1" in words
    assert "hold nan or inf in their inputs" in words
