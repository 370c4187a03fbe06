"""Two launches on real workers: alike however their ranks interleave, and a rank that differs is named."""

import numpy as np
import pytest

import lab
from lab.events import EVENTS, OpRecorded, WorkerSeen, compare

pytestmark = pytest.mark.slow


def learns(comm, odd_rank):
    """Three steps of a small training, the gradients summed; one rank has a slightly other example."""
    w = lab.tensor(np.linspace(-1, 1, 6), requires_grad=True, name="w")
    for step in range(3):
        x = np.random.default_rng(10 * comm.rank + step).standard_normal(6)
        if comm.rank == odd_rank and step == 1:
            x[4] += 0.25
        loss = lab.mean(lab.tanh(w * lab.tensor(x)))
        loss.backward()
        gradient = comm.all_reduce_(w.grad.numpy().copy())
        w = lab.tensor(w.numpy() - 0.1 * gradient, requires_grad=True, name="w")


def recorded(cluster, odd_rank):
    named = [kind for kind in EVENTS.values() if kind is not WorkerSeen]  # operations of ranks come to who names them
    with lab.record(kinds=named) as rec:
        cluster.launch(learns, odd_rank)
    return rec


def test_the_rank_that_was_perturbed_is_found_at_its_operation_and_line(cluster, tmp_path):
    alike, also, odd = (recorded(cluster, odd_rank) for odd_rank in (-1, -1, 2))
    found = compare(alike, also)
    assert found.difference is None
    assert found.ranks == (0, 1, 2, 3)
    assert len(alike.columns(OpRecorded)["node"]) == 4 * 3 * 3
    for name, rec in (("a", alike), ("b", odd)):
        rec.save(tmp_path / name)
    difference = compare(*(lab.Recording.load(tmp_path / name) for name in "ab")).difference
    assert difference is not None
    assert (difference.rank, difference.op, difference.field) == (2, "multiply", "value")
    assert difference.a.place.text == "loss = lab.mean(lab.tanh(w * lab.tensor(x)))"
    assert set(difference.later) == {0, 1, 3}
