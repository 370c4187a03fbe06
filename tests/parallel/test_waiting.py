"""A wait that takes long says for what, where the state of a run or a launch is shown. No cluster is needed here."""

import pytest

import lab
from lab.data import Loader, digits
from lab.nn import mlp
from lab.optim import SGD
from lab.parallel.cluster.launching import Launch
from lab.parallel.ranks.hops import AtHop
from lab.parallel.training import cluster_job
from lab.parallel.training.cluster_job import ClusterJob
from lab.parallel.training.steering import At, Held
from lab.training import Countdown, Run
from lab.training.trainer import Training
from widgets.controls.run_controls import RunControls


class Script:
    """A launch that goes through states, one at each look for words; and keeps what the job said of its wait then."""

    def __init__(self, job, *moments):
        self.job, self.moments, self.said = job, list(moments), []
        self.state, self.waits_for, self.workers = "waiting", "", ()

    def hear(self, seconds):
        self.said.append(self.job.waits_for)
        moment = self.moments.pop(0)
        if isinstance(moment, dict):
            vars(self).update(moment)
            return []
        return [(0, moment)]

    def wait(self, seconds):
        return False

    def catch_up(self):
        return True


@pytest.fixture
def job(monkeypatch):
    monkeypatch.setattr(cluster_job, "SAYS", 0.0)
    model, data = mlp(64, 4, 10, rng=0), digits()[0]
    training = Training(model=model, loader=Loader(data, 64), validation=None, loss=lab.cross_entropy,
                        optimizer=SGD(model.parameters(), 0.1), n_epochs=1, measure_every=0)  # fmt: skip
    return ClusterJob(training, None, units=("hop",), world_size=2, timeout=60.0)


RUNNING = {"state": "running", "waits_for": "", "workers": ("a", "b")}


def test_a_run_says_what_it_waits_for_until_its_ranks_have_begun(job):
    reason = "2 ranks wanted, 0 of 4 workers free, others held by digits"
    job._launch = launch = Script(job, {}, {"waits_for": reason}, RUNNING, Held(0, 0, None, None))
    assert job.waits_for == ""
    job._listen(lambda: job._held >= 0)
    assert launch.said == [
        "waiting for workers",
        "waiting for workers",
        f"waiting for workers: {reason}",
        "waiting for 2 ranks to begin: each loads the lab and the model",
    ]
    assert job.waits_for == ""


def test_before_there_is_a_launch_workers_are_waited_for(job):
    job._since = 1e-9
    assert job.waits_for == "waiting for 2 workers to start"


def test_a_step_that_does_not_end_is_what_is_waited_for_and_a_hop_that_is_held_is_not(job):
    job.hopping.step(1, "hop")
    held = AtHop(job.hopping._hold, 0, "all_reduce", "ring", 0, 2, job.hopping._n_allowed)
    job._launch = script = Script(job, {}, held, {}, Held(1, 0, None, None))
    vars(script).update(RUNNING)
    job.step, job._held = 4, 0
    job._listen(lambda: job._held >= 1)
    step = "waiting for the ranks to end step 5; one that does not answer is named after 60 s"
    assert script.said == [step, step, "", ""]


def test_the_first_step_takes_longer_and_it_is_said_why(job):
    job._launch = script = Script(job, {}, Held(1, 1, None, None))
    vars(script).update(RUNNING)
    job._held = 0
    job._listen(lambda: job._held >= 1)
    assert script.said == ["waiting for the first step of the ranks: each loads its kernels, or compiles them"] * 2


def test_words_of_ranks_that_run_ahead_end_the_wait(job):
    job._launch = Script(job, At(0, 3))
    vars(job._launch).update(RUNNING)
    job._held = 0
    job._listen(lambda: job.step == 3)
    assert (job.step, job.waits_for) == (3, "")


def test_a_short_wait_is_not_worth_a_word(job, monkeypatch):
    monkeypatch.setattr(cluster_job, "SAYS", 60.0)
    job._launch = launch = Script(job, {}, Held(0, 0, None, None))
    job._listen(lambda: job._held >= 0)
    assert launch.said == ["", ""]


class Waiting(Countdown):
    """A countdown that says that it waits."""

    waits_for = "waiting for 2 ranks to begin"


def test_the_text_of_a_run_and_its_controls_say_what_it_waits_for():
    run = Run(Waiting(3), name="slow", paused=True)
    assert run.wait_until("paused", timeout=10)
    assert repr(run) == "Run 'slow': paused (waiting for 2 ranks to begin), step 0 of 3"
    controls = RunControls(run)
    assert controls.text.endswith("step 0 of 3: waiting for 2 ranks to begin")
    run.resume()
    run.wait()
    assert (run.waits_for, repr(run)) == ("", "Run 'slow': finished, step 3 of 3")


def test_a_launch_that_waits_for_the_end_of_a_rank_says_for_which():
    launch = Launch.__new__(Launch)
    launch.run, launch.state, launch.waits_for = "run-1", "running", "waiting for the end of rank 1"
    assert repr(launch) == "<Launch run-1: running, waiting for the end of rank 1>"

