"""measure_accumulation and compare_means: what they measure is what a training does, counted another way."""

import itertools

import numpy as np
import pytest

import lab
from lab.data import Dataset, Loader, digits, lines
from lab.errors import ArgumentError, RunError
from lab.nn import Embedding, Linear, Sequential, mlp
from lab.optim import SGD
from lab.training import Accumulation, Counted
from lab.training.means import BY_COUNT, FASTER, MEAN_OF_MEANS, NO_MEAN, WHOLE_BATCH
from lab.training.trainer import Training

TRAIN = digits("train")


def network():
    return mlp(64, 256, 256, 10, rng=0)


@pytest.fixture(scope="module")
def found():
    sizes = (16, 64, 256, 1024)
    return lab.measure_accumulation(network, TRAIN, sizes, batch_size=1024, limit=3 << 19, rounds=1, steps=2)


def test_sizes_are_measured_once_each_from_the_whole_batch_down(found):
    assert [(row.micro_batch, row.n_micro) for row in found.rows] == [(1024, 1), (256, 4), (64, 16), (16, 64)]


def test_smaller_micro_batches_hold_less_and_no_less_than_the_gradients(found):
    peaks = [row.peak_bytes for row in found.rows]
    assert peaks[0] > 2 * peaks[1] > 2 * peaks[2]
    assert peaks[-1] > 4 * sum(p.size for p in network().parameters())


def test_the_gradient_is_that_of_the_whole_batch_to_rounding(found):
    assert found.rows[0].difference == 0
    assert max(row.difference for row in found.rows) < 1e-5


def test_what_is_above_the_limit_does_not_fit(found):
    assert [row in found.fitting for row in found.rows] == [row.peak_bytes <= 3 << 19 for row in found.rows]
    assert 0 < len(found.fitting) < len(found.rows)
    assert f"{len(found.fitting)} of 4 sizes fit" in repr(found)


def test_a_mean_over_tokens_has_the_whole_batchs_gradient_too():
    train, _ = lines(n_places=24)
    loss = Counted(over_tokens, lambda targets: (targets >= 0).sum(axis=1))
    rows = lab.measure_accumulation(reader, train, (64, 5), batch_size=64, loss=loss, rounds=1, steps=1).rows
    assert rows[1].n_micro == 13
    assert rows[1].difference < 1e-5


def over_tokens(prediction, targets):
    is_token = targets >= 0
    each = lab.cross_entropy(prediction, np.maximum(targets, 0), reduction="none")
    return (each * is_token).sum() / is_token.sum()


def reader():
    return Sequential(Embedding(96, 8, rng=0), Linear(8, 96, rng=1))


def test_losses_are_those_of_a_loop_of_ones_own_with_the_same_mistakes():
    train, _ = lines(n_places=24)
    loss = Counted(over_tokens, lambda targets: (targets >= 0).sum(axis=1))
    with lab.settings(dtype="float64"):
        found = lab.compare_means(reader, train, 4, loss=loss, batch_size=8, learning_rate=0.5, steps=6)
        for way, share in (
            (BY_COUNT, lambda part, all_: (part >= 0).sum() / (all_ >= 0).sum()),
            (MEAN_OF_MEANS, lambda part, all_: 1 / 4),
            (NO_MEAN, lambda part, all_: 1.0),
        ):
            model, losses = reader(), []
            optimizer = SGD(model.parameters(), 0.5)
            for batch in itertools.islice(Loader(train, 8, rng=0).epoch(0), 6):
                losses.append(over_tokens(model(batch.inputs), batch.targets).item())
                optimizer.zero_grad()
                for x, y in zip(np.split(batch.inputs, 4), np.split(batch.targets, 4), strict=True):
                    (over_tokens(model(x), y) * share(y, batch.targets)).backward()
                optimizer.step()
            np.testing.assert_allclose(found.losses(way), losses, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.losses(BY_COUNT), found.losses(WHOLE_BATCH), rtol=0, atol=1e-12)
        assert np.abs(np.subtract(found.losses(MEAN_OF_MEANS), found.losses(WHOLE_BATCH))).max() > 1e-4


def test_without_division_the_learning_rate_is_as_many_times_as_large():
    with lab.settings(dtype="float64"):
        found = lab.compare_means(lambda: mlp(64, 16, 10, rng=0), digits("train"), 4, steps=8)
    np.testing.assert_allclose(found.losses(NO_MEAN), found.losses(FASTER.format(4)), rtol=0, atol=1e-11)


def test_a_training_that_diverges_ends_and_the_others_go_on():
    train, _ = lines(n_places=24)
    loss = Counted(over_tokens, lambda targets: (targets >= 0).sum(axis=1))
    found = lab.compare_means(reader, train, 8, loss=loss, batch_size=8, learning_rate=8.0, steps=40)
    assert len(found.losses(NO_MEAN)) < 40
    assert len(found.losses(BY_COUNT)) == len(found.losses(MEAN_OF_MEANS)) == 40
    assert all(np.isfinite(row.loss) for row in found.rows)


def test_a_loss_that_is_no_number_ends_the_measurement():
    data = Dataset(np.full((8, 64), np.nan, np.float32), np.zeros(8, np.int64))
    with pytest.raises(RunError, match="the loss became nan"):
        lab.measure_accumulation(network, data, (8, 4), batch_size=8)


def test_many_micro_batches_make_one_update():
    model = network()
    training = Training(model, Loader(TRAIN, 64, rng=0), None, lab.cross_entropy, SGD(model.parameters(), 0.1),
                        n_epochs=1, measure_every=0, accumulation=Accumulation(8))  # fmt: skip
    training.advance()
    assert training.optimizer.n_steps == 1


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: lab.measure_accumulation(network, TRAIN, ()), "micro_batch_sizes are numbers"),
        (lambda: lab.measure_accumulation(network, TRAIN, 64), "micro_batch_sizes are numbers"),
        (lambda: lab.measure_accumulation(network, TRAIN, (0,)), "micro_batch_size"),
        (lambda: lab.measure_accumulation(network, TRAIN, (512,)), "a part of the batch"),
        (lambda: lab.measure_accumulation(network, TRAIN, batch_size=2000), "fewer examples than a batch"),
        (lambda: lab.measure_accumulation(network, TRAIN, limit=0), "limit"),
        (lambda: lab.compare_means(network, TRAIN, 1), "n_micro"),
        (lambda: lab.compare_means(network, TRAIN, batch_size=2000), "fewer examples than a batch"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_three_lines(call, says):
    with pytest.raises(ArgumentError, match=says) as caught:
        call()
    assert [line.split(":")[0] for line in str(caught.value).splitlines()[1:]] == ["given", "hint"]
