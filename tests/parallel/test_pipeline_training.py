"""Training on pipelines of real workers: equal to one process, steered like any run, and what can go wrong."""

import copy
import math
import os
import signal
from functools import partial

import numpy as np
import pytest

import lab
from lab.config import settings
from lab.data import Batch, Loader
from lab.errors import ArgumentError, LostRankError, RankError, RunError, ScheduleError
from lab.nn import Linear, Module, Sequential, Tanh, cross_entropy, mlp
from lab.optim import SGD, Adam
from lab.parallel import SCHEDULES, parse_table
from lab.parallel.pipeline import Pipeline
from lab.parallel.stages import micro_batches
from lab.training.blas import one_blas_thread
from lab.training.evaluate import loss_of
from tests.parallel import programs

SOON = 100.0
OPTIMIZERS = {"momentum": partial(SGD, learning_rate=0.1, momentum=0.9), "adam": partial(Adam, learning_rate=0.01)}


def data_of(n=50, dtype=np.float32):
    rng = np.random.default_rng(7)
    return rng.normal(size=(n, 6)).astype(dtype), rng.integers(0, 3, n)


def network(dtype="float32"):
    with settings(dtype=dtype):
        return mlp(6, 8, 8, 8, 3, activation=Tanh, rng=0)


def train(model, optimizer, *, on, n_steps, data, batch_size=21, n_micro=8, **options):
    """Steps of training; 50 examples make batches of 21, 21 and 8, of which the last has a smaller epoch's end."""
    made = OPTIMIZERS[optimizer](model.parameters())
    run = lab.fit(model, data, optimizer=made, batch_size=batch_size, epochs=100, on=on, paused=True, **options)
    run.step(n_steps)
    assert run.wait_until("paused", timeout=SOON)
    while run.progress[0] < n_steps:
        assert run.wait_until("paused", timeout=SOON)
    run.stop()
    return run.wait(SOON)


def micro_batch_by_micro_batch(model, optimizer, *, n_steps, data, n_micro, batch_size=21):
    """One process, the same examples in the same micro-batches, gradients added in their order."""
    made = OPTIMIZERS[optimizer](model.parameters())
    loader = Loader(data, batch_size, rng=0)
    batches = (batch for epoch in range(n_steps) for batch in loader.epoch(epoch))
    with one_blas_thread():
        for _ in range(n_steps):
            batch = next(batches)
            made.zero_grad()
            for rows in micro_batches(len(batch.inputs), n_micro):
                if share := (rows.stop - rows.start) / len(batch.inputs):
                    loss_of(model, cross_entropy, Batch(*(a[rows] for a in batch)))[1].backward(share)
            made.step()


def bits(model):
    return [p.value.tobytes() for p in model.parameters()]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("n_stages", [2, 4])
@pytest.mark.parametrize("schedule", sorted(SCHEDULES))
def test_in_float64_twenty_steps_are_those_of_one_process(cluster, schedule, n_stages, optimizer):
    piped, plain, data = network("float64"), network("float64"), data_of(dtype=np.float64)
    on = Pipeline(cluster, schedule=schedule, n_stages=n_stages, n_micro=5)
    found = train(piped, optimizer, on=on, n_steps=20, data=data)
    expected = train(plain, optimizer, on=None, n_steps=20, data=data)
    assert found.n_steps == expected.n_steps == 20
    assert found.loss == pytest.approx(expected.loss, rel=1e-12, abs=0)
    for mine, theirs in zip(piped.parameters(), plain.parameters(), strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-12, atol=1e-12)
