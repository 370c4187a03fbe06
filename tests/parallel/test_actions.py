"""A training on a pipeline of real workers is stepped tick by tick, and does what it is asked meanwhile."""

import threading
from time import perf_counter

import numpy as np
import pytest

import lab
from lab.errors import LostRankError, RunError
from lab.events import ActionFinished, ActionStarted, StepFinished
from lab.parallel import DataParallel, Pipeline, check_schedule
from lab.parallel.paper.ticks import ticks_of
from tests.parallel.pipelines import spans
from tests.parallel.trainings import SOON, kill, network, parameters, some_digits
from widgets import RunControls
from widgets.pictures.scene import SPANS
from widgets.views.pipeline.view import PipelineView

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_run_outlives_its_test")]


def paused(run):
    assert run.wait_until("paused", timeout=SOON), run
    return run


def begun(cluster, schedule="1f1b", n_micro=2, **options):
    on = cluster if cluster is None else Pipeline(cluster, schedule=schedule, n_stages=2, n_micro=n_micro, **options)
    model = network("float64")
    run = lab.fit(model, some_digits(100, "float64"), batch_size=50, epochs=2, on=on, paused=True)
    return paused(run), model


def has_trained(run):
    """Workers that did so once have what a first step waits for, which may be longer than a rank of a test waits."""
    run.resume()
    run.wait(SOON)


def n_done(run):
    return len(run.recording.positions(ActionFinished))


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
def test_each_click_does_one_tick_of_the_schedule_and_the_training_learns_the_same(cluster, schedule):
    alone, plain = begun(None)
    has_trained(alone)
    run, model = begun(cluster, schedule, n_micro=3)
    assert run.units == ("step", "action")
    ticks = ticks_of(check_schedule(schedule, 2, 3).order, 3)
    for n in range(1, len(ticks)):
        run.step(of="action")
        assert paused(run).reason.startswith(f"held before tick {n + 1} of {len(ticks)}: next ")
        assert run.is_inside
        assert set(spans(run.recording)) == {action for tick in ticks[:n] for action in tick if action}
        assert len(run.recording.positions(ActionStarted)) == n_done(run)
        assert run.progress[0] == 0
    run.step(of="action")
    assert (paused(run).progress[0], run.reason, run.is_inside) == (1, "", False)
    run.step(3, of="action")
    assert f"before tick 4 of {len(ticks)}" in paused(run).reason
    run.step()
    assert paused(run).progress[0] == 2
    run.step(of="action")
    paused(run)
    run.resume()
    assert run.wait(SOON).n_steps == 4
    np.testing.assert_allclose(parameters(model), parameters(plain), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("verb", ["stop", "rewind"])
def test_a_pipeline_that_is_held_does_what_the_run_is_asked(cluster, verb):
    run, _ = begun(cluster)
    run.step(2, of="action")
    paused(run)
    getattr(run, verb)()
    if verb == "stop":
        assert run.wait(SOON).state == "stopped"
    else:
        assert paused(run).progress[0] == 0
        run.step(of="action")
        assert "before tick 2" in paused(run).reason


def test_a_pipeline_is_held_for_longer_than_its_ranks_would_wait_and_that_is_no_time_of_its_step(cluster):
    has_trained(begun(cluster)[0])
    run, _ = begun(cluster, timeout=1.0)
    begin = perf_counter()
    run.step(of="action")
    paused(run)
    since = perf_counter()
    assert not run.wait_until("failed", timeout=2.5)
    held = perf_counter() - since
    run.step()
    paused(run)
    [step] = [event for event in run.recording if isinstance(event, StepFinished)]
    assert step.elapsed_ms / 1000 <= perf_counter() - begin - held
    times = [time for span in spans(run.recording).values() for time in span]
    assert (max(times) - min(times)) / 1e6 <= step.elapsed_ms
    run.stop()
    assert run.wait(SOON).elapsed_ms / 1000 <= perf_counter() - begin - held


@pytest.mark.usefixtures("the_next_launch_works")
@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_is_killed_while_it_is_held_ends_the_run_by_its_usual_error(cluster, rank):
    run, _ = begun(cluster)
    run.step(of="action")
    paused(run)
    kill(cluster, run._job._launched.workers[rank])
    with pytest.raises(LostRankError, match=f"rank {rank}"):
        run.wait(SOON)
    assert run.state == "failed"


def test_what_a_pipeline_cannot_be_stepped_by_is_refused_with_what_it_can(cluster):
    run, _ = begun(cluster)
    for unit, words in (("op", "operation"), ("node", "node of the backward walk"), ("hop", "step of a collective")):
        with pytest.raises(RunError) as caught:
            run.step(of=unit)
        assert str(caught.value).splitlines() == [
            f"{run.name} cannot be stepped by {words}", "given: its operations run on workers",
            "hint:  it knows 'step', 'action'",
        ]  # fmt: skip
    run.stop()
    copies = lab.fit(network(), some_digits(100), on=DataParallel(cluster, world_size=2), paused=True)
    with pytest.raises(RunError, match="cannot be stepped by action of a pipeline"):
        copies.step(of="action")


def test_the_page_shows_the_pipeline_as_far_as_it_is_and_leaves_the_run_when_it_is_closed(cluster):
    run, _ = begun(cluster)
    run.step()  # a complete step is there, which a pipeline under way would show else
    paused(run)
    controls = RunControls(run)
    assert ("pipeline action", "action") in controls.widget.children[0].children[5].options
    controls._parts["by"].value = "action"
    for n in range(1, 6):
        before = n_done(run)
        controls._step()
        assert paused(run).is_inside
        controls.refresh()
        assert n_done(run) > before
        view = controls._step_picture.view
        assert isinstance(view, PipelineView)
        scene = view.picture_at(len(run.recording))
        assert len([node for node in scene.nodes if node.kind in SPANS]) == n_done(run) - 8
        assert f"held before tick {n + 1} of 6" in controls.text
    controls._step()
    assert paused(run).progress[0] == 2
    controls.refresh()
    assert view.text_at(len(run.recording)).startswith("Step 2 is over: 8 actions")
    run.step(of="action")
    paused(run)
    controls.dispose()  # the page is closed while the run is held: whoever has the run goes on
    run.resume()
    assert run.wait(SOON).state == "finished"
    for thread in threading.enumerate():
        if thread.name == "lab-pacer":  # lingers for a second
            thread.join(SOON)
