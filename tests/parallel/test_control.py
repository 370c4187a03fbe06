"""A run on ranks is handled like any other: held, stepped, changed, sent back, stopped; a lost rank ends it cleanly."""

import os
import random
import threading
from functools import partial
from time import perf_counter

import numpy as np
import pytest
from distributed import Client

import lab
from lab import ops
from lab.data import Dataset
from lab.errors import LostRankError, MeshError, RunError
from lab.events import (
    ChunkMoved,
    CollectiveFinished,
    CollectiveStarted,
    Evaluated,
    HyperparameterChanged,
    ParameterMeasured,
    ReplicaAdvanced,
    RunStateChanged,
    StepFinished,
)
from lab.nn import Linear, mlp
from lab.optim import SGD
from lab.parallel import DataParallel, Pipeline
from tests.parallel.trainings import OPTIMIZERS, SOON, kill, network, parameters, some_digits
from tests.support import interrupt_within

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_run_outlives_its_test")]

ENDLESS = 100_000
SLACK = 8.0  # seconds, for a machine that does other things


def begun(on, *, n=100, batch_size=50, epochs=ENDLESS, dtype="float64", optimizer="momentum", module=None, **more):
    """A run that is paused before its first step, and its model."""
    module = module or network(dtype)
    data = more.pop("data", None) or some_digits(n, dtype)
    run = lab.fit(module, data, batch_size=batch_size, epochs=epochs, on=on, paused=True,
                  optimizer=OPTIMIZERS[optimizer](module.parameters()), **more)  # fmt: skip
    return paused(run), module


def paused(run):
    assert run.wait_until("paused", timeout=SOON), run
    return run


def passes(run, seconds):
    """Let time go by, in which the run must not end."""
    assert not run.wait_until("finished", "stopped", "failed", timeout=seconds), run


def near(a, b):
    return np.abs(parameters(a) - parameters(b)).max() < 1e-9


def failing(run):
    """What the run fails with, and how many seconds that takes."""
    start = perf_counter()
    with pytest.raises(LostRankError) as caught:
        run.wait(SOON)
    assert run.state == "failed"
    return caught.value, perf_counter() - start


# --- handling ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world_size", [1, 3])
def test_every_handle_does_what_it_does_to_a_run_here(cluster, world_size):
    """The same is done to both; whenever they are paused they have done the same steps and hold the same model."""
    validation = some_digits(40, "float64")
    (here, mine), (there, theirs) = (
        begun(on, validation=validation) for on in (None, DataParallel(cluster, world_size))
    )
    start = parameters(mine)

    def both(act):
        for run in (here, there):
            act(run)
            paused(run)
        assert here.progress == there.progress
        assert here.hyperparameters == there.hyperparameters
        assert near(mine, theirs)
        return here.progress[0]

    assert both(lambda run: run.step(3)) == 3
    assert both(lambda run: run.set("learning_rate", 0.2)) == 3
    assert both(lambda run: run.step()) == 4
    both(lambda run: run.set("momentum", 0.0))
    assert both(lambda run: run.step(2)) == 6
    both(lambda run: run.set("learning_rate", 0.01))
    assert both(lambda run: run.step()) == 7
    assert both(lambda run: run.rewind()) == 6
    assert both(lambda run: run.step(2)) == 8
    for run in (here, there):
        run.stop()
    assert (here.wait(SOON).n_steps, there.wait(SOON).n_steps) == (8, 8)
    assert here.result.accuracy == there.result.accuracy
    assert near(mine, theirs)
    for run in (here, there):
        run.rewind()
    assert here.progress == there.progress == (8, 2 * ENDLESS)
    assert not np.array_equal(parameters(theirs), start)


@pytest.mark.parametrize("on", [DataParallel, partial(Pipeline, n_micro=4, n_stages=3)])
def test_parameters_that_are_edited_during_a_pause_go_to_the_ranks(cluster, on):
    """Also those before the first step, and of a model that is larger than what one order carries."""

    def edited(on):
        with lab.settings(dtype="float64"):
            module = mlp(64, 600, 10, rng=0)
        run, _ = begun(on, module=module, epochs=6)
        for n_steps, factor in ((1, 0.5), (2, 0.7)):
            with lab.no_grad():
                for p in module.parameters():
                    p *= factor
            run.step(n_steps)
            paused(run)
        seen = parameters(module)
        module.load_state_dict({name: 0.9 * value for name, value in module.state_dict().items()})
        run.resume()
        assert run.wait(SOON).n_steps == 12
        return seen, parameters(module)

    for here, there in zip(edited(None), edited(on(cluster)), strict=True):
        np.testing.assert_allclose(there, here, rtol=0, atol=1e-9)


def test_an_edit_is_kept_by_a_stop_and_undone_by_a_rewind(cluster):
    run, module = begun(DataParallel(cluster, 2))
    start = parameters(module)

    def halve():
        with lab.no_grad():
            for p in module.parameters():
                p *= 0.5

    halve()
    run.rewind()
    np.testing.assert_array_equal(parameters(module), start)
    halve()
    run.stop()
    assert run.wait(SOON).state == "stopped"
    np.testing.assert_array_equal(parameters(module), 0.5 * start)


@pytest.mark.parametrize("verb", ["step", "resume"])
def test_edits_too_large_to_be_sent_hold_the_run_and_say_so(cluster, monkeypatch, verb):
    monkeypatch.setattr("lab.parallel.training.edits.LARGEST", 1000)
    run, module = begun(DataParallel(cluster, 2))
    start = parameters(module)
    with lab.no_grad():
        module.parameters()[0].__imul__(0.5)
    getattr(run, verb)()
    with pytest.raises(RunError, match=r"parameters were changed while .* was paused\ngiven: .*MiB.*\nhint:  run.rew"):
        run.wait(SOON)
    assert (run.state, run.progress[0]) == ("paused", 0)
    run.rewind()
    np.testing.assert_array_equal(parameters(module), start)
    run.step()
    assert paused(run).progress[0] == 1
    run.stop()
    assert run.wait(SOON).n_steps == 1


def test_what_runs_ahead_stands_still_when_it_is_paused_and_the_model_is_of_that_step(cluster):
    run, module = begun(DataParallel(cluster, 2))
    start = parameters(module)
    run.resume()
    while not run.progress[0]:
        passes(run, 0.05)
    np.testing.assert_array_equal(parameters(module), start)  # while it runs, the model here is as it was
    run.pause()
    n_steps = paused(run).progress[0]
    held = parameters(module)
    passes(run, 0.3)
    assert run.progress[0] == n_steps
    np.testing.assert_array_equal(parameters(module), held)
    run.step(3)
    assert paused(run).progress[0] == n_steps + 3
    alike, mine = begun(None)
    alike.step(n_steps + 3)
    paused(alike)
    assert near(mine, module)
    alike.stop()
    run.stop()
    run.wait(SOON)


def test_pausing_and_stepping_do_not_change_the_bits(cluster):
    plain, handled = network(), network()
    on = DataParallel(cluster, 2)
    lab.fit(plain, some_digits(300), epochs=4, batch_size=32, on=on).wait(SOON)
    run = lab.fit(handled, some_digits(300), epochs=4, batch_size=32, on=on, paused=True)
    for n in (1, 2, 3):
        paused(run).step(n)
    paused(run).resume()
    run.pause()
    run.wait_until("paused", "finished", timeout=SOON)
    if not run.ended:
        run.resume()
    assert run.wait(SOON).n_steps == 40
    np.testing.assert_array_equal(parameters(handled), parameters(plain))


def test_granted_steps_may_end_the_run(cluster):
    run, _ = begun(DataParallel(cluster, 2), epochs=2)
    run.step(10)
    assert run.wait(SOON).state == "finished"
    assert run.progress == (4, 4)


def test_a_pause_may_last_longer_than_the_patience_of_the_ranks(cluster):
    run, _ = begun(DataParallel(cluster, 2, timeout=1.0), epochs=4)
    run.step()
    paused(run)
    passes(run, 3.0)
    run.resume()
    assert run.wait(SOON).n_steps == 8


def test_a_run_may_be_stopped_before_it_began_and_the_workers_are_free(cluster):
    run = lab.fit(network(), some_digits(100), epochs=ENDLESS, on=DataParallel(cluster, 4))
    run.stop()
    assert run.wait(SOON).state == "stopped"
    assert lab.fit(network(), some_digits(100), epochs=1, on=DataParallel(cluster, 4)).wait(SOON).n_steps == 2


def test_a_run_that_waits_for_workers_can_be_paused_and_stopped(cluster):
    holds, _ = begun(DataParallel(cluster, 4))
    for is_paused in (True, False):
        module = network()
        before = parameters(module)
        run = lab.fit(module, some_digits(100), epochs=ENDLESS, on=DataParallel(cluster, 2), paused=is_paused)
        while not run._job._launch or not run._job._launched.waits_for:
            passes(run, 0.02)
        assert run._job._launched.waits_for == f"2 ranks wanted, 0 of 4 workers free, others held by {holds.name}"
        run.pause()
        paused(run)
        run.stop()
        assert run.wait(SOON).n_steps == 0
        np.testing.assert_array_equal(parameters(module), before)
    holds.step()
    assert paused(holds).progress[0] == 1
    holds.stop()
    holds.wait(SOON)


def queued(cluster, holds, **options):
    """A run that is paused and waits for workers, which all are of another one."""
    run = lab.fit(network(), some_digits(100), epochs=ENDLESS, on=DataParallel(cluster, 2, **options), paused=True)
    while not run._job._launch or not run._job._launched.waits_for:
        passes(run, 0.02)
    assert holds.name in run._job._launched.waits_for
    return run


@pytest.mark.parametrize("is_paused_again", [False, True])
def test_a_step_of_a_run_that_waits_for_workers_can_be_stopped(cluster, is_paused_again):
    holds, _ = begun(DataParallel(cluster, 4))
    run = queued(cluster, holds, wait=8.0)
    run.step(3)
    passes(run, 0.1)
    if is_paused_again:
        run.pause()
        paused(run)
    run.stop()
    result = run.wait(SOON)
    assert (result.state, result.n_steps, run.state) == ("stopped", 0, "stopped")
    holds.stop()
    holds.wait(SOON)


def test_a_step_of_a_run_that_waits_for_workers_is_done_when_it_has_them(cluster):
    holds, _ = begun(DataParallel(cluster, 4))
    run = queued(cluster, holds)
    run.step(2)
    passes(run, 1.0)
    holds.stop()
    holds.wait(SOON)
    assert paused(run).progress[0] == 2
    run.stop()
    assert run.wait(SOON).n_steps == 2


@pytest.mark.parametrize("wait", [0.0, 30.0])
def test_a_stop_before_it_is_known_that_all_workers_are_busy_gives_a_result(cluster, wait):
    holds, _ = begun(DataParallel(cluster, 4))
    for _ in range(5):
        run = lab.fit(network(), some_digits(100), epochs=ENDLESS, on=DataParallel(cluster, 2, wait=wait))
        run.stop()
        assert run.join(SOON)
        if wait or run.state == "stopped":
            assert (run.result.state, run.result.n_steps) == ("stopped", 0)
        else:  # the refusal came before the stop
            with pytest.raises(MeshError, match="there are not enough workers"):
                run.wait(SOON)
    holds.stop()
    holds.wait(SOON)


class Loops(Linear):
    """Never ends with the second batch, which is smaller, on a worker."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.home = os.getpid()

    def forward(self, x):
        while len(x) == 20 and os.getpid() != self.home:
            pass
        return super().forward(x)


def test_a_step_that_never_ends_is_stopped_by_force_and_its_worker_lives(cluster):
    module = Loops(64, 10, rng=0)
    run, _ = begun(DataParallel(cluster, 1, timeout=1.0), n=84, batch_size=64, module=module)
    run.step()
    assert paused(run).progress[0] == 1
    run.resume()
    passes(run, 0.5)
    run.stop()
    with pytest.raises(RunError, match="the launch was stopped"):
        run.wait(SOON)
    assert run.state == "failed"
    assert lab.fit(network(), some_digits(64), epochs=1, on=DataParallel(cluster, 4)).wait(SOON).n_steps == 1


def test_an_interrupt_of_wait_stops_all_ranks_after_a_complete_step(cluster):
    run, module = begun(DataParallel(cluster, 4))
    run.resume()

    def interrupt():
        while not run.progress[0]:
            passes(run, 0.02)
        interrupt_within(type(run).wait)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run.wait(SOON)
    thread.join()
    assert run.wait_until("stopped", timeout=SOON)
    alike, mine = begun(None)
    alike.step(run.result.n_steps)
    paused(alike).stop()
    assert near(mine, module)
    assert lab.fit(network(), some_digits(100), epochs=1, on=DataParallel(cluster, 4)).wait(SOON).n_steps == 2


def test_whoever_sees_that_a_run_is_paused_finds_all_of_its_steps_in_the_recording_of_all_ranks(cluster):
    run, _ = begun(DataParallel(cluster, 3), validation=some_digits(40, "float64"))
    run.step(2)
    paused(run)
    run.set("learning_rate", 0.5)
    run.step()
    told = list(paused(run).recording)
    assert {event.run for event in told} == {run.name}
    assert [event.step for event in told if type(event) is StepFinished] == [1, 2, 3]
    assert [event.step for event in told if type(event) is Evaluated] == [0, 2]
    changed = [(event.step, event.value) for event in told if type(event) is HyperparameterChanged][3:]
    assert changed == [(2, 0.5)]
    assert {event.rank for event in told if type(event) in {StepFinished, Evaluated, ParameterMeasured}} == {0}
    first = {event.collective for event in told if type(event) is CollectiveStarted and event.operation == "broadcast"}
    assert len(first) == 1
    told = [event for event in told if getattr(event, "collective", None) not in first]
    for kind, n in ((ReplicaAdvanced, 4), (CollectiveStarted, 1), (ChunkMoved, 4), (CollectiveFinished, 1)):
        assert [sum(type(event) is kind and event.rank == rank for event in told) for rank in range(3)] == [3 * n] * 3
    updated = [event for event in told if type(event) is ReplicaAdvanced and event.phase == "updated"]
    sums = [{event.checksum for event in updated if event.step == step} for step in (1, 2, 3)]
    assert [len(each) for each in sums] == [1, 1, 1]  # all three replicas hold the same bits
    assert len(set.union(*sums)) == 3
    assert run.recording.dropped == 0
    story = [getattr(e, "state", e.step) for e in told if type(e) in {StepFinished, RunStateChanged}]
    assert story == ["paused", "running", 1, 2, "paused", "running", 3, "paused"]
    run.stop()
    run.wait(SOON)


@pytest.mark.parametrize(("told", "kinds"), [("steps", set()), ("replicas", {ReplicaAdvanced})])
def test_how_much_of_the_ranks_is_recorded_can_be_chosen(cluster, told, kinds):
    run = lab.fit(network(), some_digits(100), epochs=1, on=DataParallel(cluster, 2, told=told))
    run.wait(SOON)
    assert len(run.recording.positions(StepFinished)) == 2
    assert {type(e) for e in run.recording} & {ReplicaAdvanced, CollectiveStarted, ChunkMoved} == kinds


# --- losing a rank -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_killed_rank_fails_the_run_by_name_and_the_model_is_as_when_last_held(cluster, seed):
    drawn = random.Random(seed)
    rank, moment, n_first = drawn.randrange(4), drawn.uniform(0, 0.3), drawn.randrange(3)
    print(f"seed {seed}: rank {rank} is killed {moment:.3f} s after {n_first} steps")
    run, module = begun(DataParallel(cluster, 4, on_loss="stop"))
    for _ in range(n_first):
        run.step()
        paused(run)
    held = parameters(module)
    run.resume()
    passes(run, moment)
    kill(cluster, run._job._launched.workers[rank])
    error, elapsed = failing(run)
    assert error.rank == rank
    assert f"rank {rank} was lost: its worker tcp://" in str(error)
    print(f"the run had failed {elapsed:.2f} s after the kill")
    assert elapsed < 2 + SLACK
    np.testing.assert_array_equal(parameters(module), held)
    run.rewind()
    assert run.progress[0] == 0
    assert lab.fit(module, some_digits(100, "float64"), epochs=2, on=DataParallel(cluster, 4)).wait(SOON).n_steps == 4


def test_a_rank_that_is_killed_during_a_pause_fails_the_run_too(cluster):
    run, module = begun(DataParallel(cluster, 3, on_loss="stop"))
    run.step(2)
    held = parameters(module) if paused(run) else None
    kill(cluster, run._job._launched.workers[1])
    error, elapsed = failing(run)
    assert error.rank == 1
    assert elapsed < 2 + SLACK
    np.testing.assert_array_equal(parameters(module), held)


# --- losing the way to the cluster ---------------------------------------------------------------------------------


@pytest.mark.parametrize("on", [DataParallel, partial(Pipeline, n_micro=4, n_stages=3)])
@pytest.mark.parametrize("handled", ["running", "paused", "stepping"])
def test_a_client_that_is_closed_under_a_training_is_told_and_leaves_nothing(cluster, on, handled):
    client = Client(cluster.client.scheduler.address)
    run, module = begun(on(client))
    run.step(2)
    held = parameters(module) if paused(run) else None
    if handled != "paused":
        run.resume() if handled == "running" else run.step(ENDLESS)
        while run.progress[0] < 4:
            passes(run, 0.02)
    client.close()
    with pytest.raises(MeshError) as caught:
        run.wait(SOON)
    problem, given, hint = str(caught.value).splitlines()
    assert problem == "the connection to the cluster is closed"
    assert given.startswith("given: a Client that is clos")
    assert hint == "hint:  make another Cluster(), or another Client"
    assert run.state == "failed"
    if handled != "stepping":  # a step that was granted is taken over as it is done
        np.testing.assert_array_equal(parameters(module), held)
    assert lab.fit(module, some_digits(100, "float64"), epochs=1, on=on(cluster)).wait(SOON).n_steps == 2


# --- numbers that are none ---------------------------------------------------------------------------------------


def spoilt(rows):
    data = some_digits(64)
    inputs = data.inputs.copy()
    inputs[rows] = np.nan
    return Dataset(inputs, data.targets)


def rank_of(example, world_size, n=64):
    """Who takes this example in the first batch."""
    place = int(np.flatnonzero(lab.data.Loader(some_digits(n), n, rng=0).order(0) == example)[0])
    return place // (n // world_size)


def test_a_nan_in_the_shard_of_one_rank_holds_all_at_the_same_step_and_names_it(cluster):
    rank = rank_of(5, 4)
    run, module = begun(DataParallel(cluster, 4), data=spoilt([5]), batch_size=64, dtype="float32")
    before = parameters(module)
    run.resume()
    with pytest.raises(RunError) as caught:
        run.wait(SOON)
    assert str(caught.value) == (
        f"the loss became nan at step 1 on rank {rank}\n"
        "given: 1 of 16 examples of the batch hold nan or inf in their inputs\n"
        "hint:  run.stop(); take them out of the data (np.isfinite(inputs) finds them), then fit anew"
    )
    assert (run.state, run.progress[0]) == ("paused", 0)
    np.testing.assert_array_equal(parameters(module), before)
    run.resume()
    with pytest.raises(RunError, match="the loss became nan at step 1"):
        run.wait(SOON)
    run.stop()
    run.wait(SOON)


class SteepAtZero(Linear):
    """The slope of the root at 0 is infinite, its value is not."""

    def forward(self, x):
        return super().forward(x) + ops.sqrt(self.weight[:1, :1] ** 2 * x[:, :1])


def test_a_gradient_that_is_none_on_one_rank_is_held_before_any_update(cluster):
    data = some_digits(64)
    inputs = data.inputs.copy()
    inputs[:, 0] = 1.0
    inputs[7, 0] = 0.0
    module, rank = SteepAtZero(64, 10, rng=0), rank_of(7, 2)
    run, _ = begun(DataParallel(cluster, 2), data=Dataset(inputs, data.targets), batch_size=64, module=module)
    before = parameters(module)
    run.step()
    with pytest.raises(RunError) as caught:
        run.wait(SOON)
    assert caught.value.problem == f"a gradient became nan or inf at step 1 on rank {rank}"
    assert "in the backward rule of sqrt (test_control.py, line " in caught.value.given
    np.testing.assert_array_equal(parameters(module), before)
    run.stop()
    run.wait(SOON)


def test_where_no_line_is_the_users_none_of_what_runs_the_rank_is_named(cluster):
    run, module = begun(DataParallel(cluster, 2))
    with lab.no_grad():
        for p in module.parameters():
            p *= 1e300
    run.step()
    with pytest.raises(RunError) as caught:
        run.wait(SOON)
    assert caught.value.given.startswith("first nan or inf in ")
    assert ".py" not in caught.value.given
    run.stop()
    run.wait(SOON)


def test_an_explosion_is_sent_back_and_training_goes_on_as_if_it_had_not_been(cluster):
    def exploding(on):
        module = network("float64")
        optimizer = SGD(module.parameters(), 0.1)
        run = lab.fit(module, some_digits(120, "float64"), validation=some_digits(40, "float64"), epochs=6,
                      batch_size=40, optimizer=optimizer, on=on, paused=True)  # fmt: skip
        paused(run).step(4)
        paused(run).set("learning_rate", 1e300)
        run.resume()
        with pytest.raises(RunError) as caught:
            run.wait(SOON)
        assert caught.value.hint.startswith("run.rewind() returns to step 3; then run.set('learning_rate'")
        assert run.trouble.problem == run.reason == caught.value.problem
        at = run.progress[0]
        run.rewind()
        assert (run.state, run.progress, run.reason) == ("paused", (3, 18), "")
        run.set("learning_rate", 0.1)
        run.resume()
        assert run.wait(SOON).n_steps == 18
        return module, at, caught.value.problem

    (here, at, problem), (there, at_too, problem_too) = exploding(None), exploding(DataParallel(cluster, 2))
    assert at == at_too
    assert problem_too == f"{problem} on rank 0"
    assert near(here, there)
