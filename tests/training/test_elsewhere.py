"""A job whose steps others do, who run ahead: what the run's thread asks of it, and when."""

import math

import numpy as np
import pytest

import lab
from lab.autograd import Tensor
from lab.data import Dataset, moons
from lab.errors import RunError
from lab.nn import Linear, mlp
from lab.optim import SGD
from lab.training import Countdown, Run
from lab.training.replica import Alone, Verdict
from lab.training.trainer import Training

SOON = 100.0


class Elsewhere(Countdown):
    """Does ten steps at once where it may run ahead, and writes down what it is asked."""

    def __init__(self, n):
        super().__init__(n)
        self.asked, self.ahead = [], False

    def _note(self, what):
        if self.asked[-1:] != [what]:
            self.asked.append(what)

    def run_ahead(self):
        self._note("ahead")
        self.ahead = True

    def hold(self):
        self._note("hold")
        self.ahead = False

    def advance(self):
        self._note("advance")
        for _ in range(min(10, self.n) if self.ahead else 1):
            super().advance()

    def result(self, *about):
        self._note("result")
        return super().result(*about)

    def close(self):
        self._note("close")


def paused(run):
    assert run.wait_until("paused", timeout=SOON)
    return run


def test_granted_steps_are_counted_and_free_ones_run_ahead():
    job = Elsewhere(35)
    run = paused(Run(job, paused=True))
    assert job.asked == ["hold"]
    run.step(3)
    assert paused(run).progress[0] == 3
    assert job.asked == ["hold", "advance", "hold"]
    run.resume()
    assert run.wait(SOON).n_steps == 35
    assert job.asked[3:] == ["ahead", "advance", "result", "close"]


def test_who_waits_for_a_pause_waits_until_what_ran_ahead_is_held():
    job = Elsewhere(10**9)
    run = Run(job)
    run.pause()
    n_steps = paused(run).progress[0]
    run.step()
    assert paused(run).progress[0] == n_steps + 1
    assert not job.ahead
    run.stop()
    run.wait(SOON)


def test_steps_that_are_granted_to_a_running_job_are_counted_after_it_is_held():
    job = Elsewhere(10**9)
    run = Run(job)
    run.step()
    n_steps = paused(run).progress[0]
    assert n_steps % 10 == 1
    run.step()
    run.resume()
    run.pause()
    paused(run)
    assert not job.ahead
    run.stop()
    run.wait(SOON)


def test_a_job_that_was_at_its_end_when_it_was_held_is_finished_and_not_paused():
    class Ends(Elsewhere):
        def hold(self):
            while self.n:
                Countdown.advance(self)

    run = Run(Ends(7), paused=True)
    assert run.wait(SOON).state == "finished"
    assert run.progress == (7, 7)


@pytest.mark.parametrize("where", ["begin", "advance", "hold", "result"])
def test_a_job_is_closed_however_it_fails(where):
    job = Elsewhere(10**9 if where != "result" else 3)

    def fails(*_):
        raise ConnectionError("the others have gone")

    setattr(job, where, fails)
    run = Run(job, paused=where == "hold")
    with pytest.raises(ConnectionError, match="the others have gone"):
        run.wait(SOON)
    assert (run.state, job.asked[-1]) == ("failed", "close")


def test_what_is_lost_during_a_pause_is_noticed_then():
    class Lost(Elsewhere):
        n_looks = 0

        def hold(self):
            self.n_looks += 1
            if self.n_looks == 2:
                raise ConnectionError("the others have gone")

    run = Run(Lost(5), paused=True)
    with pytest.raises(ConnectionError):
        run.wait(SOON)
    assert run.state == "failed"


# --- the one step, and what replicas put into it -----------------------------------------------------------------

DATA = moons(40, rng=0)


def training(module, replica=None):
    loader = lab.data.Loader(DATA, 20, rng=0)
    return Training(module, loader, DATA, lab.cross_entropy, SGD(module.parameters(), 0.1),
                    n_epochs=5, measure_every=0, replica=replica)  # fmt: skip


class Spoils(Alone):
    """Finite gradients whose sum is not."""

    world_size = 2

    def reduce(self, groups):
        groups[0].gradients[0] = np.inf

    def told(self, trouble, culprit):
        assert culprit == 0
        return trouble


def test_a_sum_of_gradients_that_overflows_is_nobodys_fault_and_spoils_nothing():
    module = mlp(2, 8, 2, rng=0)
    job = training(module, Spoils())
    job.begin("run")
    before = module.state_dict()
    trouble = job.advance()
    assert isinstance(trouble, RunError)
    assert str(trouble).splitlines()[:2] == [
        "a gradient became nan or inf at step 1", "given: each rank's own is finite, their sum is not"
    ]  # fmt: skip
    assert all(np.array_equal(before[name], now) for name, now in module.state_dict().items())


class Empty(Alone):
    """A replica without examples: the others have them all."""

    rank, world_size = 1, 2

    def take(self, step, batch, counts=None):
        return type(batch)(*(rows[:0] for rows in batch))

    def agree(self, loss):
        assert math.isnan(loss)
        return Verdict(0.25)

    def reduce(self, groups):
        for group in groups:
            assert not group.gradients.any()
            group.gradients[...] = 1.0

    def shared(self, numbers):
        return [0.5] * len(numbers)


def test_a_replica_without_examples_makes_the_same_update():
    module = mlp(2, 8, 2, rng=0)
    before = module.state_dict()
    job = training(module, Empty())
    job.begin("run")
    assert job.advance() is None
    assert (job.step, job.last_loss, job.accuracy) == (1, 0.25, 0.5)
    for name, value in module.state_dict().items():
        np.testing.assert_allclose(value, before[name] - 0.1, atol=1e-6)


def test_a_training_stands_where_another_copy_stands_and_goes_on_with_the_same_bits():
    first, second = training(mlp(2, 8, 2, rng=0)), training(mlp(2, 8, 2, rng=1))
    first.begin("run")
    second.begin("run")
    for _ in range(3):  # in the middle of an epoch
        first.advance()
    second.stand(first.standing())
    assert (second.step, second.last_loss, second.accuracy) == (3, first.last_loss, first.accuracy)
    for job in (first, second):
        job.advance()
        job.advance()
    a, b = first.model.state_dict(), second.model.state_dict()
    assert all(np.array_equal(a[name], b[name]) for name in a)
    for job in (first, second):
        job.rewind()
    assert first.step == second.step == 4


def test_the_measured_gradient_is_the_one_that_is_applied():
    from lab.events import ParameterMeasured, record

    class Doubles(Alone):
        def reduce(self, groups):
            for group in groups:
                group.gradients *= 2

    norms = []
    for replica in (Alone(), Doubles()):
        job = training(Linear(2, 2, rng=0), replica)
        job.measure_every = 1
        job.begin("run")
        with record(kinds=[ParameterMeasured]) as rec:
            job.advance()
        norms.append([event.norm for event in rec if event.role == "gradient"])
    assert norms[1] == pytest.approx([2 * norm for norm in norms[0]])
    assert isinstance(job.parameters[0], Tensor)
    assert isinstance(DATA, Dataset)
