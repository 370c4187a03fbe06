"""Ranks are held before each step of a collective: all before the same one, for as long as somebody looks."""

import threading
from time import perf_counter

import numpy as np
import pytest

import lab
from lab.errors import RunError
from lab.events import ChunkMoved, CollectiveFinished, CollectiveStarted, ReplicaAdvanced, StepFinished, record
from lab.parallel import COLLECTIVES, DataParallel, Pipeline, run_ranks
from lab.parallel.paper.plans import plan_steps
from lab.parallel.ranks.hops import Allowed, AtHop, Hops
from lab.parallel.ranks.mailbox import Mailbox
from lab.training import stop_all
from tests.parallel.trainings import SOON, network, parameters, some_digits


def held_ranks(operation, algorithm, n, boxes, told, size=12):
    def program(comm):
        comm.hops = Hops(1, comm.mailbox, comm.links.alarm, told if comm.rank == 0 else None)
        array = np.full(size, 10.0**comm.rank)
        comm.run_(array, operation, algorithm)
        return array

    return run_ranks(program, world_size=n, mailboxes=boxes)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("key", sorted(COLLECTIVES), ids="-".join)
def test_no_chunk_moves_before_its_step_is_allowed_and_the_result_is_the_same(key, n):
    n_steps = plan_steps(COLLECTIVES[key], n)
    plain = run_ranks(lambda comm: _ran(comm, *key), world_size=n)
    boxes, told, results = [Mailbox() for _ in range(n)], Mailbox(), []
    with record(kinds=[ChunkMoved, CollectiveFinished]) as rec:
        thread = threading.Thread(target=lambda: results.append(held_ranks(*key, n, boxes, told)))
        thread.start()
        for allowed in range(n_steps):
            waits(told, allowed, n_steps)
            assert all(event.step < allowed for event in rec if isinstance(event, ChunkMoved))
            assert len(rec.positions(CollectiveFinished)) < n
            for box in boxes:
                box.put(Allowed(1, allowed + 1))
        thread.join(SOON)
    assert not thread.is_alive()
    assert {event.step for event in rec if isinstance(event, ChunkMoved)} <= set(range(n_steps))
    for ours, theirs in zip(results[0], plain, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def _ran(comm, operation, algorithm):
    array = np.full(12, 10.0**comm.rank)
    comm.run_(array, operation, algorithm)
    return array


def waits(told, allowed, n_steps):
    """Rank 0 says that it waits, if it takes part in this step."""
    if told.wait(0.2 if allowed else SOON):
        for word in told.take(AtHop):
            assert word.n_allowed <= allowed
            assert word.n_steps == n_steps


def test_a_word_of_an_older_hold_allows_nothing():
    box = Mailbox()
    box.put(Allowed(1, 5))
    box.put(Allowed(2, 1))
    hops = Hops(2, box, None, None)
    hops.collective(0, "all_reduce", "ring", 2)
    hops.before(0)
    assert not hops._may(1)


# --- a training


@pytest.fixture(autouse=True)
def no_run_outlives_its_test():
    yield
    stop_all(SOON)


def paused(run):
    assert run.wait_until("paused", timeout=SOON), run
    return run


def begun(on=None, **options):
    model = network("float64")
    run = lab.fit(model, some_digits(100, "float64"), batch_size=50, epochs=2, on=on, paused=True, **options)
    return paused(run), model


@pytest.mark.slow
def test_a_training_on_ranks_is_stepped_through_its_all_reduce_and_learns_the_same(cluster):
    alone, model = begun()
    alone.resume()
    alone.wait(SOON)
    run, on_ranks = begun(DataParallel(cluster, world_size=3))
    assert run.units == ("step", "hop")
    run.step(of="hop")
    for n_done in (1, 2, 3):
        paused(run)
        assert run.reason == f"held before step {n_done + 1} of 4 of the ring all-reduce"
        sums = {event.collective for event in run.recording
                if isinstance(event, CollectiveStarted) and event.operation == "all_reduce"}  # fmt: skip
        moved = [event for event in run.recording if isinstance(event, ChunkMoved) and event.collective in sums]
        assert {event.step for event in moved} == set(range(n_done))
        assert len(moved) == 3 * n_done
        assert not any(isinstance(event, StepFinished) for event in run.recording)
        run.step(of="hop")
    paused(run)
    assert (run.progress[0], run.reason) == (1, "")
    run.step(2, of="hop")
    assert "before step 3 of 4" in paused(run).reason
    run.step()
    assert paused(run).progress[0] == 2
    run.step(of="hop")
    paused(run)
    run.resume()
    assert run.wait(SOON).n_steps == 4
    np.testing.assert_allclose(parameters(on_ranks), parameters(model), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["stop", "rewind"])
def test_ranks_that_are_held_in_an_all_reduce_do_what_the_run_is_asked(cluster, verb):
    run, _ = begun(DataParallel(cluster, world_size=2))
    run.step(of="hop")
    paused(run)
    getattr(run, verb)()
    if verb == "stop":
        assert run.wait(SOON).state == "stopped"
    else:
        assert paused(run).progress[0] == 0


@pytest.mark.slow
def test_ranks_can_be_held_for_longer_than_they_would_wait_for_each_other(cluster):
    warm, _ = begun(DataParallel(cluster, world_size=2))
    warm.resume()
    warm.wait(SOON)  # a first step waits for compilers, maybe for longer than a rank of this test waits
    run, _ = begun(DataParallel(cluster, world_size=2, timeout=1.0))
    begin = perf_counter()
    run.step(of="hop")
    paused(run)
    since = perf_counter()
    assert not run.wait_until("failed", timeout=2.5)
    held = perf_counter() - since
    run.resume()
    result = run.wait(SOON)
    assert result.state == "finished"
    took = perf_counter() - begin - held
    told = [event.elapsed_ms for event in run.recording if isinstance(event, StepFinished | ReplicaAdvanced)]
    assert max(told) / 1000 <= took  # time in which ranks were held is no time of their steps
    assert result.elapsed_ms / 1000 <= took


@pytest.mark.slow
def test_what_ranks_cannot_do_is_refused_with_what_they_can(cluster):
    run, _ = begun(DataParallel(cluster, world_size=2))
    with pytest.raises(RunError, match="cannot be stepped by operation"):
        run.step(of="op")
    with pytest.raises(RunError, match="cannot be held at an operation"):
        run.break_on(at="matmul")
    stages, _ = begun(Pipeline(cluster, n_stages=2))
    with pytest.raises(RunError, match="cannot be stepped by step of a collective"):
        stages.step(of="hop")
