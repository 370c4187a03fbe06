"""Traces of real workers: processes of a cluster as processes of the trace, with what went between them."""

import json

import numpy as np
import pytest

import lab
from lab.events import ActivationMoved, ChunkMoved, RankStarted, Recording, StepFinished, bus
from lab.interop import perfetto
from lab.nn import Tanh, mlp
from lab.parallel import DataParallel
from lab.parallel.pipeline.pipeline import Pipeline
from tests.interop.trace_format import faults_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("place", ["data", "pipeline"])
def test_a_training_on_workers_is_a_valid_trace_with_an_arrow_for_all_that_moved(cluster, tmp_path, place):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(24, 6)).astype("float32"), rng.integers(0, 3, 24)
    on = DataParallel(cluster) if place == "data" else Pipeline(cluster, n_micro=4, n_stages=2)
    rec = Recording(run="*")
    bus.attach(rec)
    lab.fit(mlp(6, 8, 3, activation=Tanh, rng=0), data, batch_size=12, epochs=1, on=on).wait()
    bus.detach(rec)
    text = perfetto.save(rec, tmp_path / "trace.json").read_text()
    assert faults_of(text) == []
    events = json.loads(text)["traceEvents"]
    names = sorted(e["args"]["name"] for e in events if e["name"] == "process_name")
    ranks = sorted(set(rec.columns(RankStarted)["rank"].tolist()))
    assert names == [*(f"rank {rank}" for rank in ranks), *(n for n in names if n.startswith("training"))]
    assert sum(name.startswith("training") for name in names) == 1
    moved = len(rec.positions(ChunkMoved)) + len(rec.positions(ActivationMoved))
    assert sum(e["ph"] == "s" for e in events) == moved > 0
    assert sum(e["name"].startswith("step ") for e in events) >= len(rec.positions(StepFinished)) == 2
