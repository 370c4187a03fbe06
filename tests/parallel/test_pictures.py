"""Pictures of real workers: what ClusterView and PipelineView show of a launch and of a training is what happened."""

import numpy as np
import pytest

import lab
from lab.events import ActionFinished, ClockAligned, RankStarted, Recording, WorkerSeen, bus
from lab.nn import Tanh, mlp
from lab.parallel import check_schedule, launch
from lab.parallel.pipeline.pacing import Paced
from lab.parallel.pipeline.pipeline import Pipeline
from tests.parallel import programs
from widgets import ClusterView, PipelineView

pytestmark = pytest.mark.slow


def test_the_cards_are_the_workers_and_their_ranks(cluster):
    with lab.record() as rec:
        launch(programs.where, client=cluster.client, world_size=3)
    view = ClusterView(rec)
    state = view.state_at(len(rec))
    started = [rec[int(p)] for p in rec.positions(RankStarted)]
    assert {rank: state.ranks[rank].worker for rank in state.ranks} == {e.rank: e.worker for e in started}
    assert {rank.state for rank in state.ranks.values()} == {"finished"}
    looks = [rec[int(p)] for p in rec.positions(WorkerSeen)]
    assert set(state.workers) == {e.worker for e in looks}
    assert len(state.workers) == 4
    assert len(rec.positions(ClockAligned)) == 3
    scene = view.picture_at(len(rec))
    marks = {mark.id: mark.text for mark in scene.marks}
    assert marks["head"].endswith(": 3 ranks on 3 of 4 workers")
    called = sorted(text for key, text in marks.items() if key.startswith("who"))
    assert called == ["no rank", "rank 0", "rank 1", "rank 2"]
    assert sum(key.startswith("track") for key in marks) == 4


def test_the_gantt_of_a_training_is_that_of_its_workers(cluster):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(24, 6)).astype("float32"), rng.integers(0, 3, 24)
    rec = Recording(run="*")
    bus.attach(rec)
    on = Pipeline(cluster, schedule="1f1b", n_micro=4, n_stages=2, paced=Paced(forward_ms=10, backward_ms=20))
    lab.fit(mlp(6, 8, 3, activation=Tanh, rng=0), data, batch_size=12, epochs=1, on=on).wait()
    bus.detach(rec)
    view = PipelineView(rec)
    assert len(rec.positions(ActionFinished)) == 2 * 16
    moment = view.moment(view.state_at(len(rec)))
    assert moment.over
    assert moment.number == 2
    assert moment.report.order == moment.plan.order == check_schedule("1f1b", 2, 4).order
    assert moment.report.peak_live == (2, 1)
    assert moment.report.bubble >= moment.plan.bubble - 1e-9
    assert "no measure of this machine" in view.picture_at(len(rec)).provenance
