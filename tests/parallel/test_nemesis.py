"""Ranks are struck in every phase of a training: nothing blocks, no bit is wrong, nothing is left behind."""

import random
from pathlib import Path

import numpy as np
import pytest

import lab
from lab.errors import LostRankError
from lab.events import RankLost, RankStarted, TrainingResumed
from lab.optim import SGD
from lab.parallel import DataParallel
from tests.parallel import nemesis, programs
from tests.parallel.nemesis import Blow
from tests.parallel.trainings import SOON, network, parameters, some_digits
from tests.slices import sliced

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_run_outlives_its_test", "the_next_launch_works")]

WORLD, N_STEPS = 3, 12
PATIENCE = {"kill": 60.0, "stop": 3.0, "pause": 60.0}


def begun(cluster, snapshot=None, **options):
    module = network()
    run = lab.fit(module, some_digits(120), batch_size=40, epochs=4, measure_every=0, paused=True,
                  validation=some_digits(50), optimizer=SGD(module.parameters(), 0.05, momentum=0.9),
                  snapshot=snapshot, snapshot_every=5, on=DataParallel(cluster, WORLD, **options))  # fmt: skip
    return module, run


@pytest.fixture(scope="module")
def undisturbed(session_cluster):
    """The parameters that the run without a blow ends with."""
    module, run = begun(session_cluster)
    run.resume()
    run.wait(SOON)
    return parameters(module)


def workers_of(run):
    assert run.wait_until("paused", timeout=SOON)
    newest = {event.rank: event.worker for event in run.recording if isinstance(event, RankStarted)}
    return [newest[rank] for rank in range(WORLD)]


def pid_of(cluster, worker):
    [pid] = cluster.client.run(programs.own_pid, workers=[worker]).values()
    return pid


def struck(cluster, blow, rank, **options):
    """A run in which that blow falls on a rank."""
    options |= {"timeout": PATIENCE[blow.kind]}
    if blow.phase in nemesis.PHASES[:2]:
        before = cluster.start(programs.where, world_size=WORLD)  # the next launch gets the same workers
        before.result()
        cluster.client.run(nemesis.arm, blow, workers=[before.workers[rank]])
        module, run = begun(cluster, **options)
    else:
        module, run = begun(cluster, **options)
        cluster.client.run(nemesis.arm, blow, workers=[workers_of(run)[rank]])
    run.resume()
    return module, run


def check(cluster, module, run, witness, phase, undisturbed, *, n_blows=1, n_losses=1):
    assert [blow["phase"] for blow in nemesis.witnesses(witness)] == [phase] * n_blows
    nemesis.check_story(run.recording, N_STEPS, n_losses)
    np.testing.assert_array_equal(parameters(module), undisturbed)
    cluster.client.wait_for_workers(4, timeout=60)
    kept = cluster.client.run(nemesis.kept_runs, on_error="ignore")  # one that was stopped may be restarted only now
    assert set(map(tuple, kept.values())) == {()}


@sliced("rank", "kind")
@pytest.mark.parametrize("kind", nemesis.KINDS)
@pytest.mark.parametrize("rank", range(WORLD))
@pytest.mark.parametrize("phase", nemesis.PHASES)
def test_a_blow_in_any_phase_changes_no_bit(cluster, undisturbed, tmp_path, phase, rank, kind):
    witness = tmp_path / "witness"
    snapshot, writes = tmp_path / "state", phase == "disk write"
    rank = 0 if writes else rank  # who writes
    module, run = struck(cluster, Blow(phase, kind, 5, str(witness)), rank, snapshot=snapshot if writes else None)
    assert run.wait(SOON).n_steps == N_STEPS
    assert {path.name for path in tmp_path.iterdir()} == ({"witness", "state"} if writes else {"witness"})
    check(cluster, module, run, witness, phase, undisturbed, n_losses=int(kind != "pause"))
    lost = [event.lost_rank for event in run.recording if isinstance(event, RankLost)]
    assert lost == ([rank] if kind != "pause" else [])


def test_the_death_of_a_worker_without_a_rank_is_no_loss(cluster, undisturbed, tmp_path):
    witness = tmp_path / "witness"
    module, run = begun(cluster)
    ranks = workers_of(run)
    [bystander] = set(cluster.client.scheduler_info(n_workers=-1)["workers"]) - set(ranks)
    blow = Blow("bystander", "kill", 5, str(witness), pid_of(cluster, bystander))
    cluster.client.run(nemesis.arm, blow, workers=[ranks[1]])
    run.resume()
    assert run.wait(SOON).n_steps == N_STEPS
    check(cluster, module, run, witness, "bystander", undisturbed, n_losses=0)


def test_two_kills_one_in_the_recovery_of_the_other_are_two_restarts(cluster, undisturbed, tmp_path):
    witness = tmp_path / "witness"
    module, run = begun(cluster)
    ranks = workers_of(run)
    cluster.client.run(nemesis.arm, Blow("compute", "kill", 5, str(witness)), workers=[ranks[1]])
    cluster.client.run(nemesis.arm, Blow("compute", "kill", 6, str(witness)), workers=[ranks[2]])
    run.resume()
    assert run.wait(SOON).n_steps == N_STEPS
    check(cluster, module, run, witness, "compute", undisturbed, n_blows=2, n_losses=2)


def test_a_kill_in_the_meeting_after_a_kill_is_another_restart(cluster, undisturbed, tmp_path):
    witness = tmp_path / "witness"
    module, run = begun(cluster)
    ranks = workers_of(run)
    cluster.client.run(nemesis.arm, Blow("compute", "kill", 5, str(witness)), workers=[ranks[1]])
    cluster.client.run(nemesis.arm, Blow("in rendezvous", "kill", 0, str(witness)), workers=[ranks[2]])
    run.resume()
    assert run.wait(SOON).n_steps == N_STEPS
    assert [blow["phase"] for blow in nemesis.witnesses(witness)] == ["compute", "in rendezvous"]
    np.testing.assert_array_equal(parameters(module), undisturbed)
    losses = [event.lost_rank for event in run.recording if isinstance(event, RankLost)]
    assert losses == [1, 2]
    [resumed] = [event for event in run.recording if isinstance(event, TrainingResumed)]
    assert resumed.restart == 2  # the ranks never went on between the two


def test_more_losses_than_allowed_end_the_run_with_one_clear_error(cluster, tmp_path):
    witness = tmp_path / "witness"
    module, run = begun(cluster, max_restarts=1)
    ranks = workers_of(run)
    before = parameters(module)
    cluster.client.run(nemesis.arm, Blow("compute", "kill", 5, str(witness)), workers=[ranks[1]])
    cluster.client.run(nemesis.arm, Blow("compute", "kill", 6, str(witness)), workers=[ranks[2]])
    run.resume()
    with pytest.raises(LostRankError) as caught:
        run.wait(SOON)
    problem, given, hint = str(caught.value).splitlines()
    assert problem.startswith("rank 2 was lost: its worker tcp://")
    assert given == "given: loss number 2 of the run, which outlives 1 (max_restarts=1)"
    assert hint == "hint:  the model is as it was at the last pause; a larger max_restarts= outlives more"
    np.testing.assert_array_equal(parameters(module), before)


@pytest.mark.parametrize("is_written", [False, True])
def test_when_all_ranks_are_killed_the_run_goes_on_from_disk_or_from_the_last_pause(
    cluster, undisturbed, tmp_path, is_written
):
    witness = tmp_path / "witness"
    module, run = begun(cluster, snapshot=tmp_path / "state" if is_written else None)
    ranks = workers_of(run)
    run.step(2)
    assert run.wait_until("paused", timeout=SOON)
    cluster.client.run(nemesis.arm, Blow("compute", "kill", 8, str(witness)), workers=ranks)
    run.resume()
    assert run.wait(SOON).n_steps == N_STEPS
    nemesis.check_story(run.recording, N_STEPS, 1)
    [resumed] = [event for event in run.recording if isinstance(event, TrainingResumed)]
    assert (resumed.step, resumed.source) == ((5, "disk") if is_written else (2, "launcher"))
    np.testing.assert_array_equal(parameters(module), undisturbed)
    cluster.client.wait_for_workers(4, timeout=60)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_blows_drawn_at_random_change_no_bit(cluster, undisturbed, tmp_path, soak):
    first = random.SystemRandom().randrange(1 << 30)
    for seed in range(first, first + 20 * soak):
        drawn = random.Random(seed)
        phase, rank, step = drawn.choice(nemesis.PHASES), drawn.randrange(WORLD), drawn.randrange(1, N_STEPS + 1)
        print(f"seed {seed}: {phase}, rank {rank}, step {step}")
        witness = Path(tmp_path, f"witness-{seed}")
        module, run = struck(cluster, Blow(phase, "kill", step, str(witness)), rank)
        assert run.wait(SOON).n_steps == N_STEPS
        check(cluster, module, run, witness, phase, undisturbed)
