"""A training outlives the loss of a rank: same parameters, same losses, each step once, as if nothing had happened."""

import os
import signal

import numpy as np
import pytest

import lab
from lab.events import RankLost, StepFinished, TrainingResumed
from lab.optim import SGD
from lab.parallel import DataParallel
from tests.parallel.trainings import SOON, network, parameters, some_digits

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_run_outlives_its_test")]


def begun(on, *, epochs=20, paused=False, **more):
    module = network()
    run = lab.fit(module, some_digits(200), batch_size=50, epochs=epochs, measure_every=0,
                  optimizer=SGD(module.parameters(), 0.05, momentum=0.9), on=on, paused=paused, **more)  # fmt: skip
    return module, run


def losses(run):
    return [(event.step, event.loss) for event in run.recording if isinstance(event, StepFinished)]


def kill(cluster, rank, run):
    worker = [event for event in run.recording if type(event).__name__ == "RankStarted" and event.rank == rank][-1]
    os.kill(worker.pid, signal.SIGKILL)


def test_a_killed_rank_is_replaced_and_the_bits_are_those_of_the_run_without_the_kill(cluster):
    whole, undisturbed = begun(DataParallel(cluster), epochs=50)
    undisturbed.wait(SOON)
    module, run = begun(DataParallel(cluster), paused=True, epochs=50)
    run.step(20)
    assert run.wait_until("paused", timeout=SOON)
    run.resume()
    kill(cluster, 2, run)
    assert run.wait(SOON).n_steps == 200
    np.testing.assert_array_equal(parameters(module), parameters(whole))
    assert losses(run) == losses(undisturbed)
    assert [event.lost_rank for event in run.recording if isinstance(event, RankLost)] == [2]
    [resumed] = [event for event in run.recording if isinstance(event, TrainingResumed)]
    print(resumed)
    assert (resumed.restart, resumed.lost_rank, resumed.world_size, resumed.source) == (1, 2, 4, "ranks")


def test_with_fewer_ranks_it_goes_on_at_once_and_sums_in_another_order_only(cluster):
    results = []
    for is_killed in (False, True):
        module = network("float64")
        run = lab.fit(module, some_digits(200, "float64"), batch_size=50, epochs=10, measure_every=0, paused=True,
                      optimizer=SGD(module.parameters(), 0.05, momentum=0.9),
                      on=DataParallel(cluster, on_loss="shrink"))  # fmt: skip
        run.step(5)
        assert run.wait_until("paused", timeout=SOON)
        if is_killed:
            kill(cluster, 0, run)
        run.resume()
        assert run.wait(SOON).n_steps == 40
        results.append((parameters(module), losses(run)))
    assert np.abs(results[0][0] - results[1][0]).max() <= 1e-12
    np.testing.assert_allclose([loss for _, loss in results[0][1]], [loss for _, loss in results[1][1]], atol=1e-12)
    assert [step for step, _ in results[1][1]] == list(range(1, 41))
    [resumed] = [event for event in run.recording if isinstance(event, TrainingResumed)]
    assert (resumed.lost_rank, resumed.world_size) == (0, 3)


def test_a_rank_that_is_killed_in_a_pause_is_replaced_and_every_handle_works_afterwards(cluster):
    whole, undisturbed = begun(DataParallel(cluster, 3), paused=True)
    module, run = begun(DataParallel(cluster, 3), paused=True)
    for each in (undisturbed, run):
        each.step(6)
        assert each.wait_until("paused", timeout=SOON)
        if each is run:
            kill(cluster, 1, run)
        each.set("learning_rate", 0.02)
        each.step(3)
        assert each.wait_until("paused", timeout=SOON)
        each.rewind()
        assert each.progress[0] == 8
        each.resume()
        assert each.wait(SOON).n_steps == 80
    np.testing.assert_array_equal(parameters(module), parameters(whole))
    assert losses(run) == losses(undisturbed)
