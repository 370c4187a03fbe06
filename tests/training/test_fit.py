import math
import threading

import numpy as np
import pytest

from lab import ops
from lab.autograd import no_grad, tensor
from lab.data import digits, moons
from lab.errors import ArgumentError, DataError, GradientError, RunError, ShapeError, UnsupportedError
from lab.events import (
    Evaluated,
    HyperparameterChanged,
    ParameterMeasured,
    RunFinished,
    RunStarted,
    StepFinished,
    bus,
)
from lab.nn import BatchNorm1d, Linear, Module, Sequential, mlp, mse
from lab.optim import SGD, Adam, Exponential, RMSprop, clip_by_global_norm
from lab.parallel import DataParallel, Pipeline
from lab.training import evaluate, fit

SOON = 100.0
TRAIN, TEST = moons(120, rng=0), moons(60, rng=1)


def model():
    return mlp(2, 8, 2, rng=0)


def bits(module):
    return {name: value.tobytes() for name, value in module.state_dict().items()}


def paused(run):
    assert run.wait_until("paused", timeout=SOON)
    return run


# --- that it learns ----------------------------------------------------------------------------------------------


def test_a_small_network_reads_handwritten_digits():
    train, test = digits()
    network = mlp(64, 128, 128, 10, rng=0)
    run = fit(network, train, validation=test, epochs=15, optimizer=Adam(network.parameters(), learning_rate=2e-3))
    result = run.wait(SOON)
    assert result.accuracy >= 0.95
    assert result.accuracy == evaluate(network, test).accuracy


def test_a_function_can_be_fitted_without_classes():
    x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
    network = mlp(1, 16, 1, rng=0)
    run = fit(
        network, (x, x**2), validation=(x, x**2), loss=mse, epochs=150, optimizer=Adam(network.parameters(), 0.01)
    )
    result = run.wait(SOON)
    assert evaluate(network, (x, x**2), loss=mse).loss < 0.005
    assert math.isnan(result.accuracy)


# --- that it is repeatable ---------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    ends = []
    for seed in (0, 0, 1):
        network = model()
        fit(network, TRAIN, epochs=3, rng=seed).wait(SOON)
        ends.append(bits(network))
    assert ends[0] == ends[1] != ends[2]


def test_pausing_stepping_and_being_watched_do_not_change_the_bits():
    plain, handled = model(), model()
    fit(plain, TRAIN, validation=TEST, epochs=3, batch_size=32, measure_every=0).wait(SOON)
    run = fit(handled, TRAIN, validation=TEST, epochs=3, batch_size=32, measure_every=1, paused=True)
    for _ in range(3):
        paused(run).step()
    paused(run).resume()
    run.wait(SOON)
    assert bits(handled) == bits(plain)


def test_fit_is_the_loop_one_would_write():
    ours, by_hand = model(), model()
    fit(ours, TRAIN, epochs=2, batch_size=50, rng=3, optimizer=SGD(ours.parameters(), 0.1)).wait(SOON)

    from lab.data import Loader

    optimizer, loader = SGD(by_hand.parameters(), 0.1), Loader(TRAIN, 50, rng=3)
    for _ in range(2):
        for inputs, targets in loader:
            optimizer.zero_grad()
            ops.cross_entropy(by_hand(tensor(inputs)), targets).backward()
            optimizer.step()
    assert bits(ours) == bits(by_hand)


def test_a_schedule_and_clipping_are_those_of_the_loop_one_would_write():
    ours, by_hand, schedule = model(), model(), Exponential(0.05, factor=0.9)
    optimizer = RMSprop(ours.parameters(), schedule, clip_norm=0.05)
    run = fit(ours, TRAIN, epochs=2, batch_size=50, rng=3, optimizer=optimizer)
    n_steps = run.wait(SOON).n_steps

    from lab.data import Loader

    optimizer, loader, norms = RMSprop(by_hand.parameters()), Loader(TRAIN, 50, rng=3), []
    for inputs, targets in (batch for _ in range(2) for batch in loader):
        optimizer.zero_grad()
        ops.cross_entropy(by_hand(tensor(inputs)), targets).backward()
        norms.append(clip_by_global_norm(optimizer.parameters, 0.05))
        optimizer.learning_rate = schedule(len(norms) - 1)
        optimizer.step()
    assert max(norms) > 0.05
    for p, q in zip(ours.parameters(), by_hand.parameters(), strict=True):
        assert np.allclose(p.numpy(), q.numpy(), atol=1e-6)
    assert run.hyperparameters["learning_rate"] == schedule(n_steps)
    assert run.recording[0].optimizer.startswith("RMSprop(learning_rate=Exponential(rate=0.05, factor=0.9), beta=")


def test_a_run_shows_the_rate_of_its_schedule_goes_back_with_it_and_lets_a_hand_take_over():
    network, schedule = model(), Exponential(0.1, factor=0.5)
    run = fit(network, TRAIN, epochs=9, batch_size=50, optimizer=SGD(network.parameters(), schedule), paused=True)
    for step in range(4):
        assert paused(run).hyperparameters["learning_rate"] == schedule(step)
        run.step()
    paused(run).rewind()
    assert (run.progress[0], run.hyperparameters["learning_rate"]) == (3, schedule(3))
    run.set("learning_rate", 0.25)
    run.step(2)
    assert paused(run).hyperparameters["learning_rate"] == 0.25
    run.stop()


# --- what it tells -----------------------------------------------------------------------------------------------


def test_the_events_tell_the_training():
    network = model()
    run = fit(network, TRAIN, validation=TEST, epochs=2, batch_size=50, name="moons", measure_every=3)
    result = run.wait(SOON)
    rec = run.recording
    started, finished = rec[0], rec[-1]
    assert (type(started), type(finished)) == (RunStarted, RunFinished)
    assert (started.name, started.n_steps, started.n_epochs, started.n_parameters) == ("moons", 6, 2, 42)
    assert started.model == "Sequential( 0: Linear(2, 8) 1: ReLU() 2: Linear(8, 2) )"
    assert started.optimizer.startswith("Adam(learning_rate=0.001,")
    steps = rec.columns(StepFinished)
    assert steps["step"].tolist() == [1, 2, 3, 4, 5, 6]
    assert steps["epoch"].tolist() == [0, 0, 0, 1, 1, 1]
    assert steps["n_examples"].tolist() == [50, 50, 20] * 2
    assert (steps["elapsed_ms"] > 0).all()
    seen = rec.columns(Evaluated)
    assert (seen["step"].tolist(), seen["epoch"].tolist()) == ([0, 3, 6], [0, 1, 2])
    assert seen["split"].tolist() == ["test"] * 3
    assert (seen["loss"][-1], seen["accuracy"][-1]) == (
        evaluate(network, TEST).loss,
        evaluate(network, TEST).accuracy,
    )
    assert (result.n_epochs, result.loss) == (2, steps["loss"][-1])
    assert finished.elapsed_ms == result.elapsed_ms > 0
    assert rec.columns(HyperparameterChanged)["name"].tolist()[0] == "learning_rate"


def test_parameters_and_gradients_are_measured_every_few_steps():
    run = fit(model(), TRAIN, epochs=2, batch_size=50, measure_every=2)
    run.wait(SOON)
    seen = run.recording.columns(ParameterMeasured)
    assert sorted(set(seen["step"].tolist())) == [1, 3, 5]
    names = ["0.weight", "0.weight", "0.bias", "0.bias", "2.weight", "2.weight", "2.bias", "2.bias"]
    assert seen["name"].tolist() == names * 3
    assert seen["role"].tolist() == ["value", "gradient"] * 12


def test_a_measurement_is_of_what_the_step_found():
    network = model()
    weight = network[0].weight.numpy().copy()
    run = fit(network, TRAIN, epochs=1)
    run.wait(SOON)
    first = next(e for e in run.recording if type(e) is ParameterMeasured)
    assert (first.name, first.role, first.n_entries) == ("0.weight", "value", 16)
    assert first.norm == pytest.approx(np.linalg.norm(weight))
    assert (first.minimum, first.maximum) == (weight.min(), weight.max())


@pytest.mark.parametrize("measure_every", [0, 1])
def test_nothing_is_measured_when_nobody_wants_it(measure_every):
    run = fit(model(), TRAIN, epochs=1, measure_every=measure_every, paused=True)
    paused(run)
    if measure_every:
        bus.detach(run.recording)
    run.resume()
    run.wait(SOON)
    assert not len(run.recording.positions(ParameterMeasured))


# --- what can be changed meanwhile -------------------------------------------------------------------------------


def test_the_learning_rate_changes_between_two_steps():
    network = model()
    run = fit(network, TRAIN, epochs=2, batch_size=50, optimizer=SGD(network.parameters(), 0.1), paused=True)
    paused(run).step()
    paused(run).set("learning_rate", 0.0)
    run.step()
    held = bits(network) if paused(run) else {}
    run.step()
    assert bits(network) == held if paused(run) else False
    changed = [e for e in run.recording if type(e) is HyperparameterChanged and e.name == "learning_rate"]
    bus.flush()
    changed = [e for e in run.recording if type(e) is HyperparameterChanged and e.name == "learning_rate"]
    assert [(e.step, e.value) for e in changed] == [(0, 0.1), (1, 0.0)]
    with pytest.raises(ArgumentError, match="learning_rate is out of range\ngiven: -1"):
        run.set("learning_rate", -1)


def test_an_interrupt_leaves_the_parameters_of_a_complete_step():
    class InterruptsMain(Linear):
        run, done = None, False

        def forward(self, x):
            import _thread

            if self.run is not None and self.run._watchers and not self.done:
                self.done = True
                _thread.interrupt_main()
            return super().forward(x)

    network, twin = InterruptsMain(2, 2, rng=0), Linear(2, 2, rng=0)
    network.run = run = fit(network, TRAIN, epochs=10**9)
    with pytest.raises(KeyboardInterrupt):
        run.wait(SOON)
    n = run.result.n_steps
    again = fit(twin, TRAIN, epochs=10**9, paused=True)
    again.step(n)
    assert paused(again).progress[0] == n
    assert bits(twin) == bits(network)


# --- when numbers stop being numbers -----------------------------------------------------------------------------


def exploding():
    network = model()
    optimizer = SGD(network.parameters(), 0.1)
    return network, fit(network, TRAIN, validation=TEST, epochs=6, batch_size=40, optimizer=optimizer, paused=True)


def test_a_loss_that_is_no_number_pauses_before_the_parameters_suffer():
    network, run = exploding()
    paused(run).step(4)
    paused(run).set("learning_rate", 1e30)
    run.resume()
    with pytest.raises(RunError) as caught:
        run.wait(SOON)
    step = run.progress[0] + 1
    assert caught.value.problem == f"the loss became nan at step {step}"
    assert caught.value.given.startswith("first nan or inf in ")
    assert caught.value.hint.startswith("run.rewind() returns to step 3; then run.set('learning_rate'")
    assert run.reason == caught.value.problem
    assert all(np.isfinite(value).all() for value in network.state_dict().values())


def test_rewinding_returns_to_the_last_sound_evaluation_and_training_goes_on():
    network, run = exploding()
    paused(run).step(3)
    at_three = bits(network) if paused(run) else None
    run.set("learning_rate", 1e30)
    run.resume()
    with pytest.raises(RunError):
        run.wait(SOON)
    run.rewind()
    assert (run.state, run.progress, run.reason) == ("paused", (3, 18), "")
    assert bits(network) == at_three
    run.set("learning_rate", 0.1)
    run.resume()
    result = run.wait(SOON)
    assert (result.state, result.n_steps) == ("finished", 18)
    untroubled = model()
    fit(untroubled, TRAIN, epochs=6, batch_size=40, optimizer=SGD(untroubled.parameters(), 0.1)).wait(SOON)
    assert bits(network) == bits(untroubled)


def test_rewinding_brings_running_statistics_back_too():
    network = Sequential(Linear(2, 8, rng=0), BatchNorm1d(8), Linear(8, 2, rng=1))
    optimizer = SGD(network.parameters(), 0.1)
    run = fit(network, TRAIN, validation=TEST, epochs=6, batch_size=40, optimizer=optimizer, paused=True)
    paused(run).step(3)
    at_three = bits(network) if paused(run) else None
    assert network[1].training
    run.set("learning_rate", 1e38)
    run.resume()
    with pytest.raises(RunError):
        run.wait(SOON)
    assert bits(network) != at_three
    run.rewind()
    assert (run.progress[0], bits(network)) == (3, at_three)
    run.stop()


def test_a_state_whose_loss_exploded_is_none_to_come_back_to():
    network, run = exploding()
    paused(run).step(3)
    at_three = bits(network) if paused(run) else None
    run.set("learning_rate", 300.0)
    run.step(9)
    paused(run)
    bus.flush()
    losses = run.recording.columns(StepFinished)["loss"]
    assert np.isfinite(losses).all()
    assert losses[-1] > 3 * losses[0]
    run.rewind()
    assert run.progress[0] == 3
    assert bits(network) == at_three
    run.stop()


def test_the_trouble_that_paused_a_run_names_the_operation():
    _, run = exploding()
    assert paused(run).trouble is None
    run.set("learning_rate", 1e30)
    run.resume()
    with pytest.raises(RunError):
        run.wait(SOON)
    assert run.trouble is not None
    assert run.trouble.problem == run.reason
    assert run.trouble.given.startswith("first nan or inf")
    run.rewind()
    assert run.trouble is None
    run.stop()


def test_rewinding_after_the_end_restores_the_last_sound_state():
    network, run = exploding()
    paused(run).step(4)
    paused(run).stop()
    run.wait(SOON)
    run.rewind()
    fresh = model()
    fit(fresh, TRAIN, epochs=1, batch_size=40, optimizer=SGD(fresh.parameters(), 0.1)).wait(SOON)
    assert (bits(network), run.progress) == (bits(fresh), (3, 18))


def test_nan_in_the_data_is_named():
    inputs = TRAIN.inputs.copy()
    inputs[5, 1] = np.nan
    network = model()
    with pytest.raises(RunError, match="the loss became nan at step 1") as caught:
        fit(network, (inputs, TRAIN.targets), batch_size=120).wait(SOON)
    assert caught.value.given == "1 of 120 examples of the batch hold nan or inf in their inputs"
    assert "learning_rate" not in caught.value.hint
    assert caught.value.hint == (
        "run.stop(); take them out of the data (np.isfinite(inputs) finds them), then fit anew"
    )
    assert all(np.isfinite(value).all() for value in network.state_dict().values())


def test_nan_in_the_targets_is_named():
    targets = np.full((120, 2), np.inf, np.float32)
    with pytest.raises(RunError, match=r"120 of 120 examples .* nan or inf in their targets\nhint:  run.stop"):
        fit(model(), (TRAIN.inputs, targets), batch_size=120, loss=mse).wait(SOON)


def test_nan_in_a_parameter_is_named():
    network = model()
    network[2].bias.value[0] = np.inf
    with pytest.raises(RunError, match="are nan or inf, before the first step") as caught:
        fit(network, TRAIN).wait(SOON)
    assert caught.value.given.startswith("1 of 2 entries of parameter 2.bias")
    assert caught.value.hint == "run.stop(); make the model anew, then fit that one"


def test_a_parameter_that_was_spoilt_later_is_one_to_come_back_from():
    network, run = exploding()
    paused(run).step(2)
    paused(run)
    network[2].bias.value[0] = np.nan
    run.resume()
    with pytest.raises(RunError, match=r"2.bias are nan or inf, since an update before\nhint:  run.rewind"):
        run.wait(SOON)


class LogOfSomethingNegative(Module):
    def __init__(self):
        self.linear = Linear(2, 2, rng=0)

    def forward(self, x):
        hidden = self.linear(x)
        return ops.log(hidden - 100.0)


def test_the_operation_that_made_the_first_nan_is_named_with_layer_and_line():
    network = LogOfSomethingNegative()
    with pytest.raises(RunError) as caught:
        fit(network, TRAIN).wait(SOON)
    line = LogOfSomethingNegative.forward.__code__.co_firstlineno + 2
    assert caught.value.given == f"first nan or inf in log (test_fit.py, line {line})"


class SteepAtZero(Module):
    def __init__(self):
        self.linear = Linear(2, 2, rng=0)

    def forward(self, x):
        return ops.sqrt(self.linear(x) * 0.0)


def test_a_gradient_that_is_no_number_is_held_before_the_update_and_its_rule_named():
    network = SteepAtZero()
    before = bits(network)
    with pytest.raises(RunError) as caught:
        fit(network, TRAIN).wait(SOON)
    assert caught.value.problem == "a gradient became nan or inf at step 1"
    assert "in the backward rule of sqrt (test_fit.py, line " in caught.value.given
    assert bits(network) == before


# --- what is refused and what fails ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: fit(model(), TRAIN, epochs=0), ArgumentError, "epochs is a whole number of at least 1\ngiven:"),
        (lambda: fit(model(), TRAIN, batch_size=0), ArgumentError, "batch_size is a whole number of at least 1"),
        (lambda: fit(model(), TRAIN, epochs=2.5), ArgumentError, "at least 1\ngiven: epochs=2.5\nhint:  epochs=10"),
        (lambda: fit(model(), TRAIN, epochs="3"), ArgumentError, "at least 1\ngiven: epochs='3'"),
        (lambda: fit(model(), TRAIN, batch_size=2.5), ArgumentError, "given: batch_size=2.5"),
        (lambda: fit(model(), TRAIN, measure_every=-1), ArgumentError, "given: measure_every=-1\nhint:  0 measures"),
        (lambda: fit(model(), TRAIN, rng="a"), ArgumentError, "rng is a seed of 0 or more, a Generator, or None"),
        (
            lambda: fit(model(), TRAIN, loss="mse"),
            ArgumentError,
            "a loss is a function (prediction, targets) -> scalar tensor\ngiven: 'mse'\nhint:  loss=lab.cross_entropy",
        ),
        (
            lambda: fit(model(), TRAIN, optimizer="adam"),
            ArgumentError,
            "the optimizer is none\ngiven: 'adam'\nhint:  optimizer=Adam(model.parameters(), ",
        ),
        (lambda: fit(model(), TRAIN, optimizer=Adam), ArgumentError, "is none\ngiven: the class Adam"),
        (
            lambda: fit(model(), TRAIN, optimizer=Adam(model().parameters())),
            ArgumentError,
            "the optimizer was made for another model\ngiven: Adam(learning_rate=0.001",
        ),
        (lambda: fit(None, TRAIN), ArgumentError, "fit trains a Module\ngiven: None\nhint:  mlp(64, 32, 10)"),
        (lambda: fit(lambda x: x, TRAIN), ArgumentError, "fit trains a Module\ngiven: the function <lambda>"),
        (lambda: fit(Linear, TRAIN), ArgumentError, "fit trains a Module\ngiven: the class Linear"),
        (
            lambda: no_grad()(fit)(model(), TRAIN),
            RunError,
            "training needs gradients\ngiven: fit was called where no_grad switches them off\nhint:  start",
        ),
        (lambda: fit(model(), ([[1.0], [1.0, 2.0]], [0, 1])), DataError, "the inputs are not a rectangle"),
        (lambda: fit(model(), [1]), DataError, "not a data set"),
        (lambda: fit(model(), TRAIN, name=3), ArgumentError, "the name of a run is text\ngiven: name=3\nhint:  for"),
        (
            lambda: fit(model(), TRAIN, on="DataParallel"),
            ArgumentError,
            "on= says where to train\ngiven: 'DataParallel'\nhint:  on=DataParallel(cluster) or on=Pipeline(cluster)",
        ),
        (lambda: fit(model(), TRAIN, on=DataParallel), ArgumentError, "to train\ngiven: the class DataParallel"),
        (
            lambda: fit(model(), TRAIN, on=DataParallel(cluster=3)),
            ArgumentError,
            "cluster= is a Cluster, a Client or a scheduler's address\ngiven: cluster=3\nhint:  Cluster(4) starts",
        ),
        (
            lambda: fit(model(), TRAIN, on=DataParallel(timeout=0)),
            ArgumentError,
            "a time-out is a positive number of seconds\ngiven: timeout=0\nhint:  60 is usual",
        ),
        (lambda: fit(model(), TRAIN, on=DataParallel(timeout=None)), ArgumentError, "given: timeout=None\nhint:  in"),
        (lambda: fit(model(), TRAIN, on=DataParallel(wait="3")), ArgumentError, "given: wait='3'\nhint:  in seconds"),
        (lambda: fit(model(), TRAIN, on=DataParallel(wait=-1)), ArgumentError, "given: wait=-1\nhint:  0 does not"),
        (lambda: fit(model(), TRAIN, on=DataParallel(world_size=2.0)), ArgumentError, "given: world_size=2.0\nhint"),
        (lambda: fit(model(), TRAIN, on=Pipeline(cluster=3)), ArgumentError, "address\ngiven: cluster=3\nhint:  Clu"),
        (
            lambda: fit(model(), TRAIN, on=Pipeline(schedule=3)),
            ArgumentError,
            'schedule= is a name, a function or a table\ngiven: schedule=3\nhint:  schedule="1f1b"',
        ),
        (lambda: Pipeline(schedule=3).check(2), ArgumentError, "a function or a table\ngiven: schedule=3\nhint:  "),
        (lambda: evaluate(None, TEST), ArgumentError, "a model is a Module or a function\ngiven: None\nhint:  mlp("),
        (lambda: evaluate(model(), TEST, loss="mse"), ArgumentError, "a loss is a function (prediction, targets)"),
        (lambda: evaluate(model(), TEST, batch_size=0), ArgumentError, "given: batch_size=0\nhint:  64 is"),
        (lambda: fit(Module(), TRAIN), ArgumentError, "an optimiser needs parameters"),
    ],
)
def test_arguments_are_refused_before_a_thread_starts(make, error, message):
    n_threads = threading.active_count()
    with pytest.raises(error) as caught:
        make()
    assert message in str(caught.value)
    assert threading.active_count() <= n_threads


def test_data_that_do_not_fit_the_model_fail_where_one_waits():
    run = fit(mlp(3, 2, rng=0), TRAIN)
    with pytest.raises(ValueError, match=r"layer '0' Linear\(3, 2\) cannot take this input"):
        run.wait(SOON)
    assert run.state == "failed"


def test_evaluation_leaves_the_mode_and_the_tape_alone():
    class Looks(Linear):
        seen = None

        def forward(self, x):
            self.seen = self.training
            return super().forward(x)

    layer = Looks(2, 2, rng=0)
    found = evaluate(layer, TEST, batch_size=7)
    assert (layer.seen, layer.training, layer.weight.grad) == (False, True, None)
    whole = evaluate(layer, TEST)
    assert found.loss == pytest.approx(whole.loss, rel=1e-6)
    assert found.accuracy == whole.accuracy


def test_an_answer_that_is_no_number_is_not_right():
    layer = Linear(2, 2, rng=0)
    layer.weight.value[...] = np.nan
    assert evaluate(layer, TEST).accuracy == 0


def test_a_model_that_is_being_trained_is_not_trained_twice_at_once():
    network = model()
    run = fit(network, TRAIN, epochs=1000, paused=True)
    with pytest.raises(RunError, match="this model is being trained already"):
        fit(network, TRAIN)
    run.stop()
    run.wait(SOON)
    assert fit(network, TRAIN, epochs=1).wait(SOON).n_steps == 2


def test_two_models_that_share_a_layer_are_not_trained_at_once():
    shared = Linear(2, 2, rng=0)

    class Around(Module):
        def __init__(self):
            self.inner = shared

        def forward(self, x):
            return self.inner(x)

    run = fit(shared, TRAIN, epochs=1000, paused=True)
    with pytest.raises(RunError, match="being trained already"):
        fit(Around(), TRAIN)
    run.stop()
    run.wait(SOON)


class ByNumPy(Linear):
    def forward(self, x):
        return super().forward(x).numpy()


@pytest.mark.parametrize("validation", [None, TEST])
@pytest.mark.parametrize(
    ("make", "loss", "error", "message"),
    [
        (model, lambda p, y: 1.0, UnsupportedError, "the loss must be a tensor\ngiven: float\nhint:  compute"),
        (model, lambda p, y: p.mean().item(), UnsupportedError, "the loss must be a tensor\ngiven: float"),
        (model, lambda p, y: p.mean(axis=0), ShapeError, r"must be a scalar\ngiven: shape \(2,\)"),
        (model, lambda p, y: p.detach().mean(), GradientError, r"this loss cannot be learned from\ngiven: .*\nhint:"),
        (lambda: ByNumPy(2, 2), ops.cross_entropy, UnsupportedError, "the loss must be a tensor\ngiven: float32"),
    ],
)
def test_a_loss_that_cannot_be_learned_from_is_named_where_one_waits(make, loss, error, message, validation):
    with pytest.raises(error, match=message):
        fit(make(), TRAIN, loss=loss, validation=validation).wait(SOON)


def test_a_function_is_trained_by_the_optimizer_that_knows_its_parameters():
    weight = tensor(np.zeros((2, 2), np.float32), requires_grad=True)
    fit(lambda x: x @ weight, TRAIN, optimizer=SGD([weight], 0.1), epochs=1).wait(SOON)
    assert (weight.numpy() != 0).any()


def test_a_regression_has_no_accuracy_even_on_whole_numbers():
    found = evaluate(Linear(2, 1, rng=0), (np.ones((6, 2), np.float32), np.arange(6)), loss=lambda p, y: p.mean())
    assert math.isnan(found.accuracy)
    assert repr(found) == f"Evaluation of 6 examples: loss {found.loss:.4g}"
    assert "accuracy" in repr(evaluate(model(), TEST))


def test_who_differentiates_a_model_that_a_run_changes_meanwhile_is_told_to_pause_it():
    network = model()
    run = fit(network, TRAIN, epochs=1000, paused=True)
    paused(run)
    loss = ops.cross_entropy(network(tensor(TRAIN.inputs)), TRAIN.targets)
    run.step()
    paused(run)
    with pytest.raises(GradientError, match="changed in place after the forward") as caught:
        loss.backward()
    assert caught.value.hint.endswith("where a run trains this model, run.pause() first")
    run.stop()
