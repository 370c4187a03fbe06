"""Training in 16 bits: the scale that is sought, steps that are not made, and the accuracy that comes of it."""

import math
from itertools import pairwise

import numpy as np
import pytest

import lab
from lab.data import Dataset, Loader, digits
from lab.errors import ArgumentError, RunError, UnsupportedError
from lab.events import LossScaled, StepFinished
from lab.nn import Linear, Module, mlp
from lab.optim import SGD, Adam
from lab.parallel import DataParallel, Pipeline
from lab.precision import LossScale, Mixed, Scaler
from lab.precision.scaling import LEAST, MOST, mixed_of
from lab.training.trainer import Training

pytestmark = pytest.mark.usefixtures("no_run_outlives_its_test")


def trained(precision, *, epochs=6, on=None, accumulate=1, learning_rate=2e-3, **more):
    train, test = digits()
    model = mlp(64, 32, 10, rng=0)
    run = lab.fit(model, train, validation=test, epochs=epochs, batch_size=64, precision=precision, on=on,
                  accumulate=accumulate, optimizer=Adam(model.parameters(), learning_rate), **more)  # fmt: skip
    return run, run.wait(), np.concatenate([v.ravel() for v in model.state_dict().values()])


def scales(run):
    return [event for event in run.recording if isinstance(event, LossScaled)]


class Amplified(Module):
    """The gradient of its weights is `factor` times as large as its loss lets one think."""

    def __init__(self, factor):
        super().__init__()
        self.linear, self.factor = Linear(64, 10, rng=0), factor

    def forward(self, x):
        return self.linear(x * self.factor) / self.factor


def stepwise(model, precision, n, *, factor_of_data=1.0, optimizer=None):
    train, _ = digits()
    data = Dataset(train.inputs[:512] * np.float32(factor_of_data), train.targets[:512])
    training = Training(model, Loader(data, 64, rng=0), None, lab.cross_entropy,
                        optimizer or SGD(model.parameters(), 0.1), n_epochs=n, measure_every=0,
                        precision=mixed_of(precision))  # fmt: skip
    training.begin("alone")
    return training


# --- what it comes to


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_digits_are_learned_as_well_as_in_float32(dtype):
    _, plain, _ = trained(None)
    _, narrow, weights = trained(dtype)
    assert weights.dtype == np.float32
    assert abs(narrow.accuracy - plain.accuracy) < 0.015
    assert narrow.loss == pytest.approx(plain.loss, rel=0.15)


def test_a_run_is_the_same_bits_again_whole_or_from_a_snapshot(tmp_path):
    rule = Mixed("float16", LossScale(2.0**24, interval=5))
    run, _, weights = trained(rule, epochs=3)
    again, _, same = trained(rule, epochs=3)
    assert weights.tobytes() == same.tobytes()
    assert [e.scale for e in scales(run)] == [e.scale for e in scales(again)]
    path = tmp_path / "digits.snapshot"
    trained(rule, epochs=1, snapshot=path)
    resumed, _, later = trained(rule, epochs=3, resume=path)
    assert later.tobytes() == weights.tobytes()
    assert [e.scale for e in scales(resumed)] == [e.scale for e in scales(run)][-len(scales(resumed)) :]


# --- the scale


def test_the_scale_grows_after_steps_without_overflow_and_falls_at_one_which_is_not_made():
    model = mlp(64, 32, 10, rng=0)
    training = stepwise(model, Mixed("float16", LossScale(2.0**24, interval=3)), 2)
    with lab.record(kinds=[LossScaled, StepFinished]) as rec, np.errstate(over="ignore", invalid="ignore"):
        for _ in range(16):
            before = model.state_dict()
            assert training.advance() is None
            [told] = [e for e in rec if isinstance(e, LossScaled) and e.step == training.step]
            after = model.state_dict()
            moved = any((before[name] != after[name]).any() for name in before)
            assert moved != told.is_skipped
    told = [e for e in rec if isinstance(e, LossScaled)]
    assert [e.step for e in told] == list(range(1, 17)) == [e.step for e in rec if isinstance(e, StepFinished)]
    assert told[0].is_skipped
    assert all(e.next_scale == e.scale / 2 for e in told if e.is_skipped)
    assert any(e.next_scale == 2 * e.scale for e in told)
    assert all(b.scale == a.next_scale for a, b in pairwise(told))
    assert training.optimizer.n_steps == 16 - sum(e.is_skipped for e in told)


def test_without_a_scale_small_gradients_are_lost_and_with_one_they_are_those_of_float32():
    """Gradients of about 1e-8 are below half of float16's smallest number, 6e-8."""
    found = {}
    for name, precision in (("float32", None), ("unscaled", Mixed("float16", None)), ("scaled", "float16")):
        model = Amplified(1.0)
        training = stepwise(model, precision, 1)
        training.loss = lambda prediction, targets: lab.cross_entropy(prediction, targets) * 1e-6
        assert training.advance() is None
        found[name] = training.optimizer.groups[0].gradients.copy()
    assert np.count_nonzero(found["unscaled"]) < np.count_nonzero(found["float32"]) / 2
    error = np.abs(found["scaled"] - found["float32"]).max() / np.abs(found["float32"]).max()
    assert error < 0.01


def test_a_gradient_that_is_no_number_at_any_scale_is_told_in_the_end():
    model = mlp(64, 32, 10, rng=0)
    training = stepwise(model, Mixed("float16", LossScale(2.0**-20)), 4, factor_of_data=1)
    training.loss = lambda prediction, targets: lab.sqrt(lab.cross_entropy(prediction, targets) * 0)
    with np.errstate(all="ignore"):
        found = [training.advance() for _ in range(5)]
    assert found[:4] == [None] * 4
    assert isinstance(found[4], RunError)
    assert "a gradient became nan or inf" in str(found[4])


def test_an_overflow_in_forward_is_no_matter_of_the_scale_and_names_its_operation():
    training = stepwise(Amplified(1.0), "float16", 1, factor_of_data=1e6)
    with np.errstate(all="ignore"):
        error = training.advance()
    assert isinstance(error, RunError)
    assert "the loss became" in str(error)
    assert "first nan or inf in matmul" in str(error)
    assert math.isnan(training.last_loss)


def test_a_fixed_scale_changes_nothing_where_nothing_is_lost():
    ends = [trained(Mixed("bfloat16", scale), epochs=2)[2] for scale in (None, LossScale(2.0**10, growth=1, backoff=1))]
    np.testing.assert_allclose(ends[1], ends[0], rtol=0, atol=1e-6)


def test_rewinding_takes_the_scale_back_too():
    training = stepwise(mlp(64, 32, 10, rng=0), Mixed("float16", LossScale(2.0**24, interval=100)), 2)
    with np.errstate(all="ignore"):
        for _ in range(4):
            training.advance()
    assert training.scaler.scale < 2.0**24
    training.rewind()
    assert training.scaler == Scaler(2.0**24)


def test_a_scale_stays_in_bounds():
    rule = LossScale(2.0**30, growth=1024, interval=1)
    scaler = Scaler(rule.initial)
    for _ in range(5):
        scaler = scaler.after(rule, is_finite=True)
    assert scaler.scale == MOST
    for _ in range(100):
        scaler = scaler.after(rule, is_finite=False)
    assert scaler.scale == LEAST


# --- together with the rest


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_micro_batches_find_nearly_the_same(dtype):
    _, whole, _ = trained(dtype, epochs=3)
    _, parts, _ = trained(dtype, epochs=3, accumulate=4)
    assert abs(whole.accuracy - parts.accuracy) < 0.02


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda: Mixed("float8"), ArgumentError, "a narrow format is float16 or bfloat16"),
        (lambda: Mixed("float16", scale=1024.0), ArgumentError, "a scale is a LossScale, or None"),
        (lambda: LossScale(initial=0.0), ArgumentError, "initial is out of range"),
        (lambda: LossScale(backoff=2.0), ArgumentError, "backoff is out of range"),
        (lambda: LossScale(growth=0.5), ArgumentError, "growth is out of range"),
        (lambda: LossScale(interval=0), ArgumentError, "interval"),
        (lambda: LossScale(initial=math.nan), ArgumentError, "initial"),
        (lambda: trained("half"), ArgumentError, "a narrow format is float16 or bfloat16"),
        (lambda: trained("float16", on=Pipeline(n_stages=2)), UnsupportedError, "a pipeline computes in the dtype"),
    ],
)
def test_what_cannot_be_is_refused_in_three_lines(call, kind, says):
    with pytest.raises(kind, match=says) as caught:
        call()
    assert [line.split(":")[0] for line in str(caught.value).splitlines()[1:]] == ["given", "hint"]


@pytest.mark.slow
def test_worker_processes_skip_together_and_hold_the_same_scale():
    rule = Mixed("float16", LossScale(2.0**24, interval=5))
    one, alone, _ = trained(rule, epochs=2)
    two, ranks, _ = trained(rule, epochs=2, on=DataParallel(world_size=2))
    assert [(e.step, e.scale, e.is_skipped) for e in scales(two)][:2] == [
        (e.step, e.scale, e.is_skipped) for e in scales(one)][:2]  # fmt: skip
    assert any(e.is_skipped for e in scales(two))
    assert abs(ranks.accuracy - alone.accuracy) < 0.03
