"""Training on pipelines of real workers: equal to one process, steered like any run, and what can go wrong."""

import os
import signal
import time
from functools import partial

import numpy as np
import pytest

import lab
from lab.config import settings
from lab.data import Batch, Loader
from lab.errors import (
    ArgumentError,
    GradientError,
    LostRankError,
    MeshError,
    RankError,
    RunError,
    ScheduleError,
    UnsupportedError,
)
from lab.events import ActionFinished, ActivationMoved, Evaluated, ParameterMeasured, RankLost, RunStarted, StepFinished
from lab.kernels.blas import one_blas_thread
from lab.nn import Linear, Module, Sequential, Tanh, cross_entropy, mlp
from lab.optim import SGD, Adam, Cosine, RMSprop
from lab.parallel import SCHEDULES, check_schedule, parse_table
from lab.parallel.pipeline.pacing import Paced
from lab.parallel.pipeline.pipeline import Pipeline
from lab.parallel.pipeline.stages import micro_batches
from lab.training.evaluate import loss_of
from tests.parallel.pipelines import assert_spans_follow, spans
from tests.slices import sliced

pytestmark = pytest.mark.slow

SOON = 100.0
OPTIMIZERS = {"momentum": partial(SGD, learning_rate=0.1, momentum=0.9), "adam": partial(Adam, learning_rate=0.01)}
UNEVEN = {"batch_size": 11, "epochs": 4}
"""Of 50 examples: batches of 11, 11, 11, 11 and 6. 20 steps; neither 8 nor 5 micro-batches divide, and 6 are fewer."""


def data_of(dtype="float32"):
    rng = np.random.default_rng(7)
    return rng.normal(size=(50, 6)).astype(dtype), rng.integers(0, 3, 50)


def network(dtype="float32"):
    with settings(dtype=dtype):
        return mlp(6, 8, 8, 8, 3, activation=Tanh, rng=0)


def fit(on, model=None, *, dtype="float32", optimizer="momentum", **options):
    model = model or network(dtype)
    made = OPTIMIZERS[optimizer](model.parameters()) if isinstance(optimizer, str) else optimizer
    options = UNEVEN | {"measure_every": 0, "optimizer": made} | options
    return model, lab.fit(model, data_of(dtype), on=on, **options)


def vector(model):
    return np.concatenate([p.numpy().ravel() for p in model.parameters()])


def paused(run):
    assert run.wait_until("paused", timeout=SOON)
    return run


def stopped(*runs):
    for run in runs:
        run.stop()
        assert run.wait_until("stopped", timeout=SOON)


# --- the numbers -------------------------------------------------------------------------------------------------


@sliced("optimizer")
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("n_stages", [2, 4])
@pytest.mark.parametrize("schedule", sorted(SCHEDULES))
def test_in_float64_it_equals_one_process_over_20_steps(cluster, schedule, n_stages, optimizer):
    on = Pipeline(cluster, schedule=schedule, n_stages=n_stages, n_micro=5)
    piped, run = fit(on, dtype="float64", optimizer=optimizer)
    plain, alone = fit(None, dtype="float64", optimizer=optimizer)
    assert run.wait(SOON).n_steps == alone.wait(SOON).n_steps == 20
    assert run.result.loss == pytest.approx(alone.result.loss, rel=1e-12, abs=0)
    np.testing.assert_allclose(vector(piped), vector(plain), rtol=1e-12, atol=1e-12)


def test_a_schedule_and_clipping_by_the_norm_of_all_stages_are_those_of_one_process(cluster):
    found = []
    for on in (Pipeline(cluster, n_stages=3, n_micro=5), None):
        model = network("float64")
        optimizer = RMSprop(model.parameters(), Cosine(0.01, 20), momentum=0.5, clip_norm=0.1)
        run = fit(on, model, dtype="float64", optimizer=optimizer)[1]
        assert run.wait(SOON).n_steps == 20
        found.append((vector(model), run.hyperparameters["learning_rate"]))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9, atol=1e-12)
    assert found[0][1] == found[1][1] == 0.0


def micro_batch_by_micro_batch(optimizer, n_steps, n_micro):
    """One process: the same micro-batches through the same layers, gradients added in the order of the schedules."""
    model = network()
    made, loader = OPTIMIZERS[optimizer](model.parameters()), Loader(data_of(), UNEVEN["batch_size"], rng=0)
    batches = (batch for epoch in range(n_steps) for batch in loader.epoch(epoch))
    with one_blas_thread():
        for _, batch in zip(range(n_steps), batches, strict=False):
            made.zero_grad()
            for rows in micro_batches(len(batch.inputs), n_micro):
                if share := (rows.stop - rows.start) / len(batch.inputs):
                    _, loss = loss_of(model, cross_entropy, Batch(*(a[rows] for a in batch)))
                    loss.backward(share)
            made.step()
    return vector(model)


@sliced("optimizer")
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("n_stages", [2, 4])
@pytest.mark.parametrize("schedule", sorted(SCHEDULES))
def test_in_float32_it_has_the_bits_of_the_same_additions_in_one_process(cluster, schedule, n_stages, optimizer):
    piped, run = fit(Pipeline(cluster, schedule=schedule, n_stages=n_stages), optimizer=optimizer)
    assert run.wait(SOON).n_steps == 20
    np.testing.assert_array_equal(vector(piped), micro_batch_by_micro_batch(optimizer, 20, n_micro=8))


@sliced("optimizer")
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("n_stages", [2, 4])
def test_in_float32_it_stays_near_one_process_over_10_steps(cluster, n_stages, optimizer):
    piped, run = fit(Pipeline(cluster, n_stages=n_stages), optimizer=optimizer, epochs=2)
    plain, alone = fit(None, optimizer=optimizer, epochs=2)
    assert run.wait(SOON).n_steps == alone.wait(SOON).n_steps == 10
    assert np.linalg.norm(vector(piped) - vector(plain)) <= 1e-5 * np.linalg.norm(vector(plain))


def test_one_stage_one_micro_batch_is_training_in_one_process_bit_for_bit(cluster):
    piped, run = fit(Pipeline(cluster, n_stages=1, n_micro=1), optimizer="adam")
    plain, alone = fit(None, optimizer="adam")
    assert run.wait(SOON).loss == alone.wait(SOON).loss
    np.testing.assert_array_equal(vector(piped), vector(plain))


def test_stages_without_parameters_train(cluster):
    model = Sequential(Tanh(), Linear(6, 4, rng=0), Tanh(), Linear(4, 3, rng=1))
    other = Sequential(Tanh(), Linear(6, 4, rng=0), Tanh(), Linear(4, 3, rng=1))
    for each, on in ((model, Pipeline(cluster, n_stages=4, n_micro=1)), (other, None)):
        fit(on, each, optimizer="adam")[1].wait(SOON)
    np.testing.assert_array_equal(vector(model), vector(other))  # one micro-batch: no other additions


def test_parameters_of_a_loss_are_trained_by_the_last_stage(cluster):
    def trained(on):
        model, scale = network(), lab.tensor(np.float32(2.0), requires_grad=True, name="scale")
        optimizer = SGD([scale, *model.parameters()], 0.1)
        run = lab.fit(model, data_of(), loss=lambda logits, y: cross_entropy(logits * scale, y), optimizer=optimizer,
                      on=on, **UNEVEN)  # fmt: skip
        run.wait(SOON)
        return scale.item(), vector(model)

    (mine, piped), (theirs, plain) = trained(Pipeline(cluster, n_stages=3, n_micro=1)), trained(None)
    assert mine == theirs != 2.0
    np.testing.assert_array_equal(piped, plain)


def test_an_optimiser_goes_there_and_comes_back_with_its_state(cluster):
    def trained(middle):
        model = network()
        optimizer = OPTIMIZERS["adam"](model.parameters()[::-1])
        for place in (None, middle, None):
            fit(place, model, optimizer="adam", epochs=1)[1].wait(SOON)
            lab.fit(model, data_of(), optimizer=optimizer, on=place, batch_size=11, epochs=1).wait(SOON)
        return optimizer.n_steps, vector(model)

    (n, piped), (m, plain) = trained(Pipeline(cluster, n_stages=3, n_micro=1)), trained(None)
    assert n == m == 15
    np.testing.assert_array_equal(piped, plain)


# --- what the recording of a real run shows ----------------------------------------------------------------------


@pytest.mark.parametrize(("schedule", "peak"), [("naive", [1] * 4), ("gpipe", [8] * 4), ("1f1b", [4, 3, 2, 1])])
def test_live_activations_on_workers_are_those_that_the_checker_promises(cluster, schedule, peak):
    with lab.record(run="*", kinds=[ActionFinished, ActivationMoved]) as rec:
        fit(Pipeline(cluster, schedule=schedule), epochs=1)[1].wait(SOON)
    rows = rec.columns(ActionFinished)
    found = [int(rows["n_live"][rows["rank"] == rank].max()) for rank in range(4)]
    assert found == peak == list(check_schedule(schedule, 4, 8).peak_live)
    n_micro = 4 * 8 + 6  # of four batches of 11, and of one of 6
    assert len(rows["rank"]) == 4 * 2 * n_micro
    assert len(rec.columns(ActivationMoved)["rank"]) == 3 * 2 * n_micro
    assert rec.dropped == 0


def test_paced_spans_on_workers_follow_the_schedule_and_last_their_time(cluster):
    with lab.record(run="*", kinds=[ActionFinished]) as rec:
        fit(Pipeline(cluster, paced=Paced(3, 6), n_micro=4), epochs=1, batch_size=50)[1].wait(SOON)
    assert all(e.paced and e.end_ns - e.start_ns >= {"F": 3, "B": 6}[e.kind] * 1_000_000 for e in rec)
    assert_spans_follow(spans(rec), check_schedule("1f1b", 4, 4), 4)


def test_a_run_on_a_pipeline_tells_what_an_ordinary_one_does(cluster):
    with lab.record(run="*", kinds=[StepFinished, Evaluated]) as rec:
        model, run = fit(Pipeline(cluster), epochs=2, validation=data_of(), measure_every=5)
        result = run.wait(SOON)
    assert result.accuracy == lab.evaluate(model, data_of()).accuracy
    assert [e.step for e in rec if isinstance(e, StepFinished)] == list(range(1, 11))
    assert [e.step for e in rec if isinstance(e, Evaluated)] == [0, 5, 10]
    started = run.recording.columns(RunStarted)
    assert started["n_parameters"].tolist() == [model.n_parameters]
    measured = run.recording.columns(ParameterMeasured)
    assert set(zip(measured["step"].tolist(), measured["name"].tolist(), measured["role"].tolist(), strict=True)) == {
        (step, name, role) for step in (1, 6) for name, _ in model.named_parameters() for role in ("value", "gradient")
    }


# --- steering ----------------------------------------------------------------------------------------------------


def test_pausing_stepping_setting_and_rewinding_are_those_of_any_run(cluster):
    ends = []
    for on in (Pipeline(cluster, n_micro=4), None):
        model, run = fit(on, dtype="float64", paused=True, epochs=3)
        seen = [vector(model)]
        paused(run).step(7)
        while run.progress[0] < 7 or run.state != "paused":
            paused(run)
        seen.append(vector(model))
        run.set("learning_rate", 0.02)
        run.rewind()
        assert run.progress == (5, 15)
        seen.append(vector(model))
        run.resume()
        assert run.wait(SOON).n_steps == 15
        ends.append([*seen, vector(model)])
    for mine, theirs in zip(*ends, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
    assert len({each.tobytes() for each in ends[0]}) == 4


# --- what goes wrong ---------------------------------------------------------------------------------------------


class NotHere(Module):
    """Does something bad in the forward of that number in a process other than the one where it was made."""

    def __init__(self, act, at=0):
        self.home, self.act, self.at, self.n_calls = os.getpid(), act, at, []

    def forward(self, x):
        if os.getpid() != self.home:
            self.n_calls.append(1)
            if len(self.n_calls) > self.at:
                self.act()
        return x


def five_layers(extra, at=2):
    layers = [Linear(6, 8, rng=0), Tanh(), Linear(8, 8, rng=1), Linear(8, 3, rng=2)]
    layers.insert(at, extra)
    return Sequential(*layers)


def bad_luck():
    raise ValueError("bad luck")


@pytest.mark.usefixtures("the_next_launch_works")
def test_a_stage_that_raises_ends_the_run_and_names_its_rank(cluster):
    _, run = fit(Pipeline(cluster, n_stages=4, n_micro=4), five_layers(NotHere(bad_luck, at=5)))
    with pytest.raises(RankError, match="raised on rank 1 of 4") as caught:
        run.wait(SOON)
    assert "ValueError: bad luck" in caught.value.traceback
    assert run.state == "failed"


@pytest.mark.usefixtures("the_next_launch_works")
@pytest.mark.parametrize(("at", "rank"), [(0, 0), (2, 1), (4, 3)])
def test_a_rank_killed_in_the_middle_of_a_step_is_named_within_2_s(cluster, tmp_path, at, rank):
    mark = tmp_path / "killed"

    def kill():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)

    with lab.record(run="*", kinds=[RankLost]) as rec:
        _, run = fit(Pipeline(cluster, n_stages=4, n_micro=4), five_layers(NotHere(kill, at=14), at))
        with pytest.raises(LostRankError, match=f"rank {rank} was lost") as caught:
            run.wait(SOON)
    assert time.time() - mark.stat().st_mtime < 2.0
    assert Pipeline(cluster).stages_of(network()) == 4  # the one that is being restarted counts
    assert caught.value.rank == rank
    assert [e.lost_rank for e in rec] == [rank]
    assert run.state == "failed"


def test_a_schedule_that_would_hang_is_refused_before_anything_starts():
    table = parse_table("F0 B0 F1 B1\nF0 F1 B0 B1")
    with pytest.raises(ScheduleError) as caught:
        fit(Pipeline(n_stages=2, n_micro=2, schedule=table))  # no cluster: none is started
    assert str(caught.value) == (
        "the schedule cannot make progress\n"
        "given: rank 0 waits at 0B0 for 1B0, rank 1 waits at 1F1 for 0F1\n"
        "hint:  one of the two ranks has to do another action first"
    )


def test_what_cannot_be_a_pipeline_is_refused_at_the_call(cluster):
    for on, model, match in [
        (Pipeline(cluster, n_stages=8), None, r"fewer layers than stages\ngiven: 8 stages, 7 layers"),
        (Pipeline(cluster), Linear(6, 3, rng=0), r"only a Sequential can be cut into stages\ngiven: a Linear"),
    ]:
        with pytest.raises(ArgumentError, match=match):
            fit(on, model)
    with pytest.raises(ScheduleError, match="there is no such schedule"):
        fit(Pipeline(cluster, schedule="zigzag"))
    with pytest.raises(ScheduleError, match="for another number of ranks"):
        fit(Pipeline(cluster, schedule=parse_table("F0 B0"), n_micro=1))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_micro": 0}, r"n_micro is a whole number of at least 1\ngiven: n_micro=0\nhint:  n_micro=8"),
        ({"timeout": "a"}, r"timeout is a number\ngiven: timeout='a'\nhint:  in seconds"),
        ({"cluster": 3}, r"cluster= is a Cluster, .*\ngiven: cluster=3\nhint:  Cluster\(4\) starts"),
        ({"paced": 20}, r"paced= takes nominal times\ngiven: paced=20\nhint:  paced=Paced"),
        ({"n_stages": 1.5}, r"n_stages is a whole number of at least 1\ngiven: n_stages=1.5\nhint:  one rank"),
        ({"schedule": 3}, r"schedule= is a name, a function or a table\ngiven: schedule=3\nhint:  "),
    ],
)
def test_an_option_that_is_none_is_refused_where_it_is_written(options, match):
    with pytest.raises(ArgumentError, match=match):
        Pipeline(**options)


def test_what_micro_batches_would_change_is_refused_at_the_call(cluster):
    class Centred(Module):
        def forward(self, x):
            return x - x.mean(axis=0)

    with pytest.raises(UnsupportedError, match="answers otherwise when the batch is cut into micro-batches\nhint"):
        fit(Pipeline(cluster), five_layers(Centred()))
    with pytest.raises(UnsupportedError, match=r"must be a mean over examples .*\ngiven: .* its 8 micro-batches\nhint"):
        fit(Pipeline(cluster), loss=lambda x, y: ((x.sum(axis=1) - y) ** 2).sum())


def test_more_stages_than_workers_fail_with_the_arithmetic(cluster):
    _, run = fit(Pipeline(cluster, n_stages=6))
    with pytest.raises(MeshError, match=r"not enough workers\ngiven: 6 ranks wanted, 4 workers"):
        run.wait(SOON)


def test_not_given_there_is_a_stage_on_each_worker_and_no_more_than_layers(cluster):
    for where in (cluster, cluster.client, cluster.client.scheduler.address):
        assert Pipeline(where).stages_of(network()) == 4
    assert Pipeline(cluster).stages_of(mlp(6, 4, 3, rng=0)) == 3
    assert Pipeline().stages_of(network()) == 4
    assert Pipeline(cluster, n_stages=2).stages_of(network()) == 2


@pytest.mark.usefixtures("the_next_launch_works")
def test_a_loss_that_is_no_number_in_one_micro_batch_holds_all_ranks_before_the_step(cluster):
    inputs, targets = data_of()
    model = network()
    inputs[Loader((inputs, targets), 11, rng=0).order(0)[22 + 5]] = np.nan  # an example of the third step
    run = lab.fit(model, (inputs, targets), optimizer=SGD(model.parameters(), 0.1), on=Pipeline(cluster), batch_size=11)
    with pytest.raises(RunError) as caught:
        run.wait(SOON)
    assert str(caught.value).startswith(
        "the loss became nan at step 3\ngiven: 1 of 11 examples of the batch hold nan or inf in their inputs"
    )
    assert run.progress[0] == 2
    good = network()
    alone = lab.fit(good, data_of(), optimizer=SGD(good.parameters(), 0.1), batch_size=11, paused=True)
    paused(alone).step(2)
    while alone.progress[0] < 2 or alone.state != "paused":
        paused(alone)
    np.testing.assert_allclose(vector(model), vector(good), rtol=1e-5)
    stopped(run, alone)


@pytest.mark.usefixtures("the_next_launch_works")
def test_a_gradient_that_is_no_number_is_found_in_its_layer(cluster):
    class Roots(Module):
        def forward(self, x):
            return (x * 0.0).sqrt()  # its slope at 0 is inf

    model = Sequential(Linear(6, 6, rng=0), Roots(), Linear(6, 3, rng=1))
    before = vector(model)
    _, run = fit(Pipeline(cluster, n_stages=3), model)
    with pytest.raises(RunError, match=r"a gradient became nan or inf at step 1\ngiven: first nan or inf in "):
        run.wait(SOON)
    np.testing.assert_array_equal(vector(model), before)
    stopped(run)


@pytest.mark.usefixtures("the_next_launch_works")
def test_a_loss_that_loses_the_gradient_is_told(cluster):
    model = network()
    run = lab.fit(model, data_of(), loss=lambda x, y: cross_entropy(x.detach(), y), on=Pipeline(cluster))
    with pytest.raises(GradientError, match="this loss cannot be learned from") as caught:
        run.wait(SOON)
    assert "On rank 3" in caught.value.__notes__[0]
