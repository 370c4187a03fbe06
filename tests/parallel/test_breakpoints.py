"""Bounds on loss and gradient hold a training on ranks before its update, all ranks at the same step."""

import numpy as np
import pytest

import lab
from lab.parallel import DataParallel, Pipeline
from lab.training import stop_all
from tests.parallel.trainings import SOON, network, parameters, some_digits

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def no_run_outlives_its_test():
    yield
    stop_all(SOON)


def held(run):
    assert run.wait_until("paused", timeout=SOON), run
    return run


def begun(on=None):
    model = network("float64")
    run = lab.fit(model, some_digits(100, "float64"), batch_size=50, epochs=2, on=on, paused=True)
    return held(run), model


@pytest.mark.parametrize("bounded", ["loss", "gradient"])
@pytest.mark.parametrize(("strategy", "ranks"), [(DataParallel, "world_size"), (Pipeline, "n_stages")])
def test_a_bound_holds_all_ranks_before_the_update_and_changes_nothing_that_is_learned(
    cluster, strategy, ranks, bounded
):
    alone, model = begun()
    alone.resume()
    alone.wait(SOON)
    run, on_ranks = begun(strategy(cluster, **{ranks: 2}))
    before = parameters(on_ranks)
    name = run.break_on(**{f"{bounded}_above": 0.0})
    run.resume()
    held(run)
    assert run.progress[0] == 0
    assert " of step 1 is above 0, before its update: " in run.reason
    np.testing.assert_array_equal(parameters(on_ranks), before)
    run.resume()
    assert held(run).progress[0] == 1
    run.clear_breakpoint(name)
    run.resume()
    assert run.wait(SOON).n_steps == 4
    np.testing.assert_allclose(parameters(on_ranks), parameters(model), rtol=1e-12, atol=1e-12)
