"""Micro-batches give the gradient of the batch, whatever they count; the usual mistakes give another."""

import math
import tracemalloc

import numpy as np
import pytest

import lab
from lab.data import Batch, Dataset, Loader, digits
from lab.errors import ArgumentError, RunError, ShapeError, UnsupportedError
from lab.nn import BatchNorm1d, Embedding, Linear, Sequential, mlp
from lab.optim import SGD, Adam
from lab.parallel import DataParallel, Pipeline
from lab.training import Accumulation, Counted, evaluate
from lab.training.accumulation import NO_DIVISION, OF_MEANS, accumulation_of
from lab.training.trainer import Training

pytestmark = pytest.mark.usefixtures("no_run_outlives_its_test")
N_TOKENS, N_LETTERS = 7, 11


def network(dtype="float64"):
    with lab.settings(dtype=dtype):
        return mlp(64, 32, 10, rng=0)


def some_digits(n, dtype="float64"):
    train = digits("train")
    return Dataset(train.inputs[:n].astype(dtype), train.targets[:n])


def mean_over_tokens(prediction, targets):
    """-1 is padding."""
    is_token = targets >= 0
    each = lab.cross_entropy(prediction, np.maximum(targets, 0), reduction="none")
    return (each * is_token).sum() / is_token.sum()


OVER_TOKENS = Counted(mean_over_tokens, lambda targets: (targets >= 0).sum(axis=1))


def sentences(n, rng=0):
    """Letters, and the letters after them; most of a row may be padding."""
    rng = np.random.default_rng(rng)
    inputs = rng.integers(0, N_LETTERS, (n, N_TOKENS))
    lengths = rng.integers(1, N_TOKENS + 1, n)
    targets = np.where(np.arange(N_TOKENS) < lengths[:, None], rng.integers(0, N_LETTERS, (n, N_TOKENS)), -1)
    return Dataset(inputs, targets)


def reader():
    with lab.settings(dtype="float64"):
        return Sequential(Embedding(N_LETTERS, 5, rng=0), Linear(5, N_LETTERS, rng=1))


def gradient(model, data, accumulation, loss=lab.cross_entropy, n=None):
    """What the first step finds."""
    training = Training(model, Loader(data, n or len(data), rng=0), None, loss, SGD(model.parameters(), 0.1),
                        n_epochs=1, measure_every=0, accumulation=accumulation)  # fmt: skip
    training.begin("alone")
    assert training.advance() is None
    return np.concatenate([group.gradients for group in training.optimizer.groups]), training.last_loss


# --- the right mean


@pytest.mark.parametrize("n_parts", [2, 3, 4, 50, 51, 200])  # more parts than examples: some are empty
def test_the_gradient_and_the_loss_are_those_of_the_batch(n_parts):
    expected, loss = gradient(network(), some_digits(50), Accumulation(1))
    found, its_loss = gradient(network(), some_digits(50), Accumulation(n_parts))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    assert its_loss == pytest.approx(loss, abs=1e-14)


@pytest.mark.parametrize("n_parts", [2, 3, 8])
def test_a_loss_over_tokens_is_weighed_by_tokens(n_parts):
    expected, loss = gradient(reader(), sentences(23), Accumulation(1), OVER_TOKENS)
    found, its_loss = gradient(reader(), sentences(23), Accumulation(n_parts), OVER_TOKENS)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    assert its_loss == pytest.approx(loss, abs=1e-14)
    by_examples, _ = gradient(reader(), sentences(23), Accumulation(n_parts), mean_over_tokens)
    assert np.abs(by_examples - expected).max() > 1e-4


def test_a_micro_batch_that_counts_nothing_changes_nothing():
    data = sentences(12)
    targets = data.targets.copy()
    targets[4:8] = -1
    data = Dataset(data.inputs, targets)
    loader = Loader(data, 12, shuffle=False)
    found = {}
    for n_parts in (1, 3):
        model = reader()
        training = Training(model, loader, None, OVER_TOKENS, SGD(model.parameters(), 0.1), n_epochs=1, measure_every=0,
                            accumulation=Accumulation(n_parts))  # fmt: skip
        assert training.advance() is None
        found[n_parts] = training.optimizer.groups[0].gradients.copy()
    np.testing.assert_allclose(found[3], found[1], rtol=0, atol=1e-14)


def test_a_batch_that_counts_nothing_is_told_as_no_number():
    data = Dataset(np.zeros((4, N_TOKENS), int), np.full((4, N_TOKENS), -1))
    model = reader()
    training = Training(model, Loader(data, 4), None, OVER_TOKENS, SGD(model.parameters(), 0.1), n_epochs=1,
                        measure_every=0, accumulation=Accumulation(2))  # fmt: skip
    with np.errstate(invalid="ignore"):  # as in the thread of a run
        assert isinstance(training.advance(), RunError)


def test_a_run_with_micro_batches_stays_near_the_one_without_over_all_its_steps_and_rewinds_to_the_same_bits():
    train = some_digits(103)
    ends = []
    for accumulate in (1, 4, Accumulation(4)):
        model = network()
        lab.fit(model, train, epochs=3, batch_size=50, accumulate=accumulate).wait()
        ends.append(np.concatenate([v.ravel() for v in model.state_dict().values()]))
    np.testing.assert_allclose(ends[1], ends[0], rtol=0, atol=1e-11)
    assert ends[1].tobytes() == ends[2].tobytes()


def test_a_loop_of_ones_own_does_the_same_in_three_lines():
    model, data = network(), some_digits(48)
    expected, _ = gradient(network(), data, Accumulation(1))
    for part in np.split(Loader(data, 48, rng=0).order(0), 4):
        loss = lab.cross_entropy(model(lab.tensor(data.inputs[part])), data.targets[part]) * (len(part) / 48)
        loss.backward()
    found = np.concatenate([np.ravel(p.grad.numpy()) for p in model.parameters()])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


# --- the mistakes


def test_without_division_the_gradient_is_as_many_times_as_large_as_there_are_equal_parts():
    expected, _ = gradient(network(), some_digits(48), Accumulation(1))
    found, _ = gradient(network(), some_digits(48), Accumulation(4, mean=NO_DIVISION))
    np.testing.assert_allclose(found, 4 * expected, rtol=0, atol=1e-13)


def test_a_mean_of_means_is_right_for_equal_parts_alone():
    expected, _ = gradient(network(), some_digits(48), Accumulation(1))
    found, _ = gradient(network(), some_digits(48), Accumulation(4, mean=OF_MEANS))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    expected, _ = gradient(network(), some_digits(50), Accumulation(1))
    found, _ = gradient(network(), some_digits(50), Accumulation(4, mean=OF_MEANS))
    assert np.abs(found - expected).max() > 1e-5


def test_the_loss_that_is_told_is_that_of_the_batch_with_a_mistake_too():
    _, loss = gradient(network(), some_digits(50), Accumulation(1))
    for mean in (OF_MEANS, NO_DIVISION):
        _, told = gradient(network(), some_digits(50), Accumulation(4, mean=mean))
        assert told == pytest.approx(loss, abs=1e-14)


# --- what it is for, and what it is not


def test_backward_keeps_a_micro_batch_at_a_time():
    data = some_digits(1024)
    peaks = []
    for n_parts in (1, 8):
        with lab.settings(dtype="float64"):
            model = mlp(64, 256, 256, 10, rng=0)
        training = Training(model, Loader(data, 1024), None, lab.cross_entropy, SGD(model.parameters(), 0.1),
                            n_epochs=2, measure_every=0, accumulation=Accumulation(n_parts))  # fmt: skip
        assert training.advance() is None  # all kernels are there
        tracemalloc.start()
        assert training.advance() is None
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] / 3


def test_layers_that_normalise_over_the_batch_do_so_over_the_micro_batch():
    with lab.settings(dtype="float64"):
        models = [Sequential(Linear(64, 16, rng=0), BatchNorm1d(16), Linear(16, 10, rng=1)) for _ in range(2)]
    whole, _ = gradient(models[0], some_digits(48), Accumulation(1))
    parts, _ = gradient(models[1], some_digits(48), Accumulation(4))
    assert np.abs(whole - parts).max() > 1e-4


def test_a_loss_that_is_no_number_in_one_micro_batch_changes_nothing_and_is_told():
    data = some_digits(48)
    inputs = data.inputs.copy()
    inputs[40] = np.nan
    model = network()
    before = np.concatenate([v.ravel() for v in model.state_dict().values()])
    loader = Loader(Dataset(inputs, data.targets), 48)
    training = Training(model, loader, None, lab.cross_entropy, Adam(model.parameters()), n_epochs=1, measure_every=0,
                        accumulation=Accumulation(4))  # fmt: skip
    training.begin("alone")
    error = training.advance()
    assert isinstance(error, RunError)
    assert "the loss became nan at step 1" in str(error)
    assert np.concatenate([v.ravel() for v in model.state_dict().values()]).tobytes() == before.tobytes()


def test_the_mean_over_what_is_counted_is_that_of_an_evaluation_too():
    data, model = sentences(50), reader()
    whole = evaluate(model, data, loss=OVER_TOKENS)
    assert evaluate(model, data, loss=OVER_TOKENS, batch_size=7).loss == pytest.approx(whole.loss, abs=1e-14)
    assert math.isnan(evaluate(model, Dataset(data.inputs, np.full_like(data.targets, -1)), loss=OVER_TOKENS).loss)


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda: accumulation_of(0), ArgumentError, "accumulate"),
        (lambda: accumulation_of(2.5), ArgumentError, "accumulate"),
        (lambda: accumulation_of("4"), ArgumentError, "accumulate"),
        (lambda: Accumulation(4, mean="of sums"), ArgumentError, "there is no such mean of micro-batches"),
        (lambda: Counted(lab.cross_entropy, 3), ArgumentError, "count is a function"),
        (lambda: Counted(None, len), ArgumentError, "loss is a function"),
        (lambda: Counted(len, np.sign).counts(np.array([-1.0])), ArgumentError, "an example counts 0 or more"),
        (lambda: Counted(len, np.sum).counts(np.ones(3)), ShapeError, "a number for each example"),
        (lambda: lab.fit(network(), some_digits(9), accumulate=True), ArgumentError, "accumulate"),
        (lambda: lab.fit(network("float32"), some_digits(9, "f4"), accumulate=2, on=Pipeline(n_stages=2)),
         UnsupportedError, "a pipeline cuts each batch itself"),
        (lambda: DataParallel(sync="never"), ArgumentError, "gradients are summed once a step"),
        (lambda: DataParallel(sync="micro-batch", bucket_bytes=10), ArgumentError, "in its own way"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_three_lines(call, kind, says):
    with pytest.raises(kind, match=says) as caught:
        call()
    assert [line.split(":")[0] for line in str(caught.value).splitlines()[1:]] == ["given", "hint"]


def test_an_empty_batch_has_parts_that_count_nothing():
    parts = list(Accumulation(3).parts(Batch(np.empty((0, 2)), np.empty(0))))
    assert [(part.share, part.counted, part.is_last) for part in parts] == [(0.0, 0.0, False)] * 3
