"""Ctrl-C, and the interrupt button of a notebook: all ranks stop, wherever they are, and the next launch works."""

import asyncio
import threading
from time import perf_counter_ns

import pytest

from lab import fit
from lab.errors import RunError
from lab.events import CollectiveFinished, RankFinished, RankStarted, ReplicaAdvanced, record
from lab.optim import SGD
from lab.parallel import DataParallel
from tests.parallel import programs
from tests.parallel.trainings import network, some_digits
from tests.support import interrupt_within

pytestmark = pytest.mark.slow

SLACK = 30.0
"""Seconds that a machine may be busy with other things: more is no slow machine, but somebody who waits."""


@pytest.fixture(autouse=True)
def the_next_launch_works_on_the_same_workers(cluster):
    before = {pid for _, pid in cluster.launch(programs.where, world_size=4)}
    yield
    assert {pid for _, pid in cluster.launch(programs.where, world_size=4)} == before


def when_all_ranks(rec, kind):
    """Wait until each rank has told at least one event of a kind."""
    patience = threading.Event()
    for _ in range(2000):
        if {event.rank for event in rec if isinstance(event, kind)} >= {0, 1, 2, 3}:
            return
        patience.wait(0.02)
    raise AssertionError(f"not all ranks told of {kind.__name__}")


def ends(rec, after_ns):
    """How each rank ended, and how many seconds after the interrupt the last one did."""
    finished = [event for event in rec if isinstance(event, RankFinished)]
    return {event.rank: event.state for event in finished}, (max(e.time_ns for e in finished) - after_ns) / 1e9


@pytest.mark.parametrize(
    ("program", "kind"),
    [(programs.adds_for_ever, CollectiveFinished), (programs.computes_for_ever, CollectiveFinished)],
    ids=["all-reduce", "compute"],
)
def test_an_interrupt_while_a_cell_waits_stops_all_ranks(cluster, program, kind):
    at = []
    with record(kinds=[RankStarted, kind, RankFinished]) as rec:
        running = cluster.start(program)

        def interrupt():
            when_all_ranks(rec, kind)
            at.append(perf_counter_ns())
            interrupt_within(type(running).result)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            running.result()
        thread.join()
        assert running.wait(30)
    states, seconds = ends(rec, at[0])
    assert states == dict.fromkeys(range(4), "stopped")
    assert seconds < 1.0 + SLACK
    with pytest.raises(RunError, match="the launch was stopped"):
        running.result()


def test_an_interrupted_await_stops_all_replicas_of_a_training(cluster):
    async def notebook():
        run = fit(model, some_digits(100, "float64"), batch_size=50, epochs=100_000, on=DataParallel(cluster),
                  optimizer=SGD(model.parameters(), learning_rate=0.01))  # fmt: skip

        async def cell():
            await run

        task = asyncio.ensure_future(cell())
        await asyncio.to_thread(when_all_ranks, rec, ReplicaAdvanced)
        at.append(perf_counter_ns())
        task.cancel()  # what ipykernel does on an interrupt
        with pytest.raises((asyncio.CancelledError, KeyboardInterrupt)):
            await task
        return await asyncio.to_thread(run.wait, 30)

    model, at = network("float64"), []
    with record(run="*", kinds=[RankStarted, ReplicaAdvanced, RankFinished]) as rec:
        assert asyncio.run(notebook()).state == "stopped"
    states, seconds = ends(rec, at[0])
    assert set(states) == {0, 1, 2, 3}
    assert set(states.values()) <= {"stopped", "finished"}
    assert seconds < 1.0 + SLACK
