"""A spare stands by: nobody else gets it, it has loaded what ranks have, and it takes a lost one's place at once."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, MeshError
from lab.events import RankLost, RankStarted, TrainingResumed
from lab.optim import SGD
from lab.parallel import Cluster, DataParallel
from lab.parallel.cluster.preparing import prepared_by, rehearse
from lab.parallel.transport.sending import dumps
from tests.parallel import programs
from tests.parallel.trainings import SOON, network, parameters, some_digits

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def spared():
    with Cluster(2, spares=1) as cluster:
        yield cluster


def spare_of(cluster, workers):
    [spare] = set(cluster.client.scheduler_info(n_workers=-1)["workers"]) - set(workers)
    return spare


def test_a_launch_that_names_no_number_leaves_the_spare_and_one_that_wants_it_is_refused(spared):
    assert [rank for rank, _ in spared.launch(programs.where)] == [0, 1]
    with pytest.raises(MeshError, match="there are not enough workers") as caught:
        spared.launch(programs.where, world_size=3)
    assert caught.value.given == "3 ranks wanted, 2 workers and 1 spare"


def test_somebody_elses_cluster_has_the_spares_that_it_has(spared):
    with pytest.raises(ArgumentError) as caught:
        Cluster(client=spared.client, spares=1)
    assert str(caught.value).splitlines() == ["a cluster that is there has the workers that it has",
                                              "given: spares=1", "hint:  give either spares or client"]


def test_less_than_no_spare_is_refused_before_anything_starts():
    with pytest.raises(ArgumentError, match="spares"):
        Cluster(2, spares=-1)


def test_a_spare_takes_the_place_of_a_killed_rank_and_no_bit_changes(spared):
    results = []
    for is_killed in (False, True):
        spared.client.wait_for_workers(3, timeout=60)
        module = network()
        run = lab.fit(module, some_digits(200), batch_size=50, epochs=10, measure_every=0, paused=True,
                      optimizer=SGD(module.parameters(), 0.05, momentum=0.9), on=DataParallel(spared))  # fmt: skip
        run.step(5)
        assert run.wait_until("paused", timeout=SOON)
        ranks = {event.rank: event for event in run.recording if isinstance(event, RankStarted)}
        spare = spare_of(spared, [event.worker for event in ranks.values()])
        if is_killed:
            os.kill(ranks[1].pid, signal.SIGKILL)
        run.resume()
        assert run.wait(SOON).n_steps == 40
        results.append(parameters(module))
    np.testing.assert_array_equal(*results)
    assert [event.lost_rank for event in run.recording if isinstance(event, RankLost)] == [1]
    assert len([event for event in run.recording if isinstance(event, TrainingResumed)]) == 1
    started = [event.worker for event in run.recording if isinstance(event, RankStarted) and event.rank == 1]
    assert started == [ranks[1].worker, spare]


def test_a_spare_has_imported_what_the_model_is_made_of(spared, tmp_path):
    spared.client.wait_for_workers(3, timeout=60)
    (tmp_path / "made_here.py").write_text("from lab.nn import Linear\n\n\nclass Own(Linear):\n    pass\n")

    def there(*, path=str(tmp_path)):
        import sys

        sys.path.append(path)

    def has_it():
        import sys

        return "made_here" in sys.modules

    spared.client.run(there)
    there()
    import made_here

    try:
        model = made_here.Own(64, 10, rng=0)
        run = lab.fit(model, some_digits(100), batch_size=50, epochs=1, paused=True, on=DataParallel(spared))
        assert run.wait_until("paused", timeout=SOON)
        spare = spare_of(spared, [event.worker for event in run.recording if isinstance(event, RankStarted)])
        until = time.monotonic() + SOON
        while not spared.client.run(has_it, workers=[spare])[spare] and time.monotonic() < until:
            threading.Event().wait(0.05)
        assert spared.client.run(has_it, workers=[spare]) == {spare: True}
        run.stop()
    finally:
        sys.path.remove(str(tmp_path))
        del sys.modules["made_here"]


def test_what_a_spare_cannot_load_is_told_of_the_ranks_alone(caplog):
    def impossible(*args):
        raise ImportError(f"no module of {args}")

    program = prepared_by(lambda: None, rehearse=impossible)(lambda comm: None)
    with caplog.at_level("INFO", "lab.parallel"):
        rehearse(dumps((program, (7,), lab.config.State())))
    assert caplog.messages == ["a spare cannot load what the ranks do: no module of (7,)"]
