"""Recordings at the edge, in every view: explained by a sentence, never by a traceback and never by a blank."""

from __future__ import annotations

import json
import re
import zipfile

import numpy as np
import pytest

import widgets
from lab.errors import RecordingError, ViewError
from lab.events import (
    Event,
    LeafUsed,
    OpRecorded,
    Recording,
    RunFinished,
    RunStarted,
    StepFinished,
    event,
    saving,
)
from lab.events.bus import Batch, Row
from lab.events.event import Origin, values_of
from tests.slices import sliced
from tests.widgets.golden import falling, product_plus_x, recorded, training
from tests.widgets.golden_cluster import launch_of, lost
from tests.widgets.golden_pipeline import pipeline
from tests.widgets.golden_ranks import collective, ranks_of, told, trained
from widgets import DifferenceView, GraphView, LossView, Player, View, WhyView
from widgets.pictures.chart import Chart

VIEWS = {
    name: kind for name in widgets.__all__
    if isinstance(kind := getattr(widgets, name), type) and issubclass(kind, View) and kind is not View
}  # fmt: skip


@event
class Stranger(Event):
    """Of a kind that no view knows."""

    number: int


def salvaged(rec, tmp_path):
    """What can be read of its file after the disk lost the last third; chunks are small, so some are whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saving, "_CHUNK", 4)
        rec.save(tmp_path / "whole.rec")
    data = (tmp_path / "whole.rec").read_bytes()
    (tmp_path / "cut.rec").write_bytes(data[: len(data) * 2 // 3])
    return Recording.load(tmp_path / "cut.rec", salvage=True)


def begun(rec, n):
    """The first events of a recording."""
    part = Recording(run="*", detail="value")
    part.receive(Batch(rows_of(rec[:n]), range(n)))
    return part


def rows_of(events):
    return [Row(type(e), e.time_ns, Origin(e.rank, e.run), values_of(e)) for e in events]


class Hurried(Recording):
    """A recording that has grown by some events whenever anybody asks for its end, as one of a run in a thread may."""

    def __init__(self, whole, by):
        super().__init__(run="*", detail="value")
        self._coming, self._by = rows_of(whole), by

    def _fetch(self):
        n, rows = self._store.n, self._coming[: self._by]
        if rows:
            self._coming = self._coming[self._by :]
            self.receive(Batch(rows, range(n, n + len(rows))))
        return self._store.n

    @property
    def live(self):
        return bool(self._coming)


WHOLE = {
    "graph": product_plus_x,
    "training": lambda: training(falling(40)),
    "pipeline": lambda: pipeline("1f1b", 3, 4),
    "ring": lambda: told(collective("all_reduce", "ring", ranks_of(3))),
    "replicas": lambda: trained(2),
    "launch": lambda: launch_of(3),
}
EDGES = {
    "empty": lambda _: recorded([]),
    "of strangers": lambda _: recorded([Stranger(k) for k in range(5)]),
    "a run that failed at once": lambda _: recorded([
        RunStarted("digits", 9, 1, 10, "m", "o"), RunFinished("digits", "failed", 0, 1.0, "ShapeError: no")]),
    "a run that only began": lambda _: recorded([RunStarted("digits", 9, 1, 10, "m", "o")]),
    "ranks that were lost": lambda _: lost(),
    "full after two events": lambda _: recorded(list(training(falling(9))), limit=2),
    **{f"salvaged {name}": lambda path, make=make: salvaged(make(), path) for name, make in WHOLE.items()},
    **{f"a begun {name}": lambda _, make=make: begun(make(), len(make()) // 3) for name, make in WHOLE.items()},
    **{f"one event of a {name}": lambda _, make=make: begun(make(), 1) for name, make in WHOLE.items()},
}  # fmt: skip

NOTHING_TO_COMPARE = ("a begun launch", "one event of a launch")
"""Two looks at workers: they differ from run to run, so no difference is looked for."""


def made(kind, rec):
    if kind is DifferenceView:
        return kind(rec, rec)
    if kind is WhyView:
        return kind(rec, "x")
    return kind(rec)


@sliced("edge", every=3)
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("name", VIEWS)
def test_every_view_explains_a_recording_at_the_edge(name, edge, tmp_path):
    rec = EDGES[edge](tmp_path)
    view = made(VIEWS[name], rec)
    if name == "DifferenceView" and edge in NOTHING_TO_COMPARE:
        with pytest.raises(RecordingError, match="no kind of events in common") as caught:
            view.picture_at(len(rec))
        assert len(str(caught.value).splitlines()) == 3
        assert "no kind of events in common" in view.svg()
        return
    for position in sorted({0, min(1, len(rec)), len(rec) // 2, len(rec)}):
        picture, words = view.picture_at(position), view.text_at(position)
        drawn = len(picture.figure.data) if isinstance(picture, Chart) else len(picture.nodes) + len(picture.marks)
        assert words
        assert drawn or len(picture.caption) > 20, "a blank"
        said = picture.caption.replace("ErrorView", "")  # a name, no complaint
        assert "Error" not in said or "ShapeError" in said
        assert "Traceback" not in words
    assert "<svg" in view.svg("dark")
    assert re.match(r"(\d+) of \1\b" if view.opens_at_end else "1 of ", Player(view).text)


@pytest.mark.parametrize("name", [n for n in VIEWS if n not in ("WhyView", "DifferenceView")])
def test_an_ended_recording_without_events_is_told_with_the_way_to_get_some(name):
    words = VIEWS[name](recorded([])).picture_at(0).caption
    calls = ("lab.fit(", "launch(", "requires_grad=True", "lab.jvp(", "lab.vmap(", "lab.measure_",
             "lab.parallel.measure_", "lab.compare_", "lab.jit(")  # fmt: skip
    assert any(call in words for call in calls), words


@pytest.mark.parametrize(("whole", "shown_by"), [
    ("graph", "GraphView"), ("training", "LossView"), ("pipeline", "PipelineView"), ("ring", "RingView"),
])  # fmt: skip
@pytest.mark.parametrize("name", [n for n in VIEWS if n not in ("WhyView", "DifferenceView", "ClusterView")])
def test_who_takes_the_wrong_view_is_told_the_right_one(name, whole, shown_by):
    rec = WHOLE[whole]()
    picture = VIEWS[name](rec).picture_at(len(rec))
    drawn = len(picture.figure.data) if isinstance(picture, Chart) else len(picture.nodes)
    known = {"GraphView": ("LossView", "RingView", "PipelineView")}.get(name, (shown_by,))
    assert drawn or any(other in picture.caption for other in known), picture.caption


@pytest.mark.parametrize("whole", WHOLE)
def test_what_was_salvaged_is_said_on_every_picture(whole, tmp_path):
    rec = salvaged(WHOLE[whole](), tmp_path)
    assert rec.dropped > 0
    for name, kind in VIEWS.items():
        if name not in ("WhyView", "DifferenceView"):
            words = kind(rec).picture_at(len(rec)).provenance
            assert f"salvaged from a damaged file, {rec.dropped:,} later events are lost" in words, name
            assert "salvaged" in kind(rec).svg(), name


def test_what_found_no_room_is_said_with_a_hint():
    rec = recorded(list(training(falling(9))), limit=4)
    words = LossView(rec).picture_at(4).provenance
    assert f"not whole, {rec.dropped:,} events were dropped (lab.record(limit=...) takes more)" in words


def test_a_whole_recording_says_nothing_of_the_kind():
    svg = GraphView(product_plus_x()).svg()
    assert "not whole" not in svg
    assert "salvaged" not in svg


@pytest.mark.parametrize("name", VIEWS)
def test_the_path_of_a_file_is_no_recording_but_one_is_told_how_to_open_it(name):
    with pytest.raises(ViewError) as caught:
        made(VIEWS[name], "run.rec")
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert "lab.Recording.load('run.rec')" in lines[2]


def test_a_recording_of_a_newer_lab_is_told_to_be_one(tmp_path):
    product_plus_x().save(tmp_path / "a.rec")
    with zipfile.ZipFile(tmp_path / "a.rec") as old, zipfile.ZipFile(tmp_path / "b.rec", "w") as new:
        for member in old.infolist():
            data = old.read(member)
            if member.filename == old.namelist()[0]:
                data = json.dumps(json.loads(data) | {"schema": 99}).encode()
            new.writestr(member.filename, data)
    with pytest.raises(RecordingError, match="newer lab") as caught:
        Recording.load(tmp_path / "b.rec")
    assert str(caught.value).splitlines()[2] == "hint:  upgrade autodiff-lab to open it"


def huge(n, kind, make):
    """A recording of n events, in batches as they come from a run."""
    rec, origin = Recording(run="*", limit=3_000_000), Origin(0, "")
    for start in range(0, n, 50_000):
        rows = [Row(kind, k, origin, make(k)) for k in range(start, min(n, start + 50_000))]
        rec.receive(Batch(rows, range(start, start + len(rows))))
    return rec


HUGE = [200_000, pytest.param(2_000_000, marks=pytest.mark.soak)]
"""A hundred times what any view draws; and in a soak ten times as many, which take the same code as much longer."""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("n", HUGE)
def test_a_huge_number_of_operations_is_opened_and_what_is_left_out_is_said(n):
    rec = huge(n, OpRecorded, lambda k: (k + 1, "sin", (k,), (3,), "float64", 0))
    view = GraphView(rec)
    scene = view.picture_at(len(rec))
    assert 0 < len(scene.nodes) < 2_000
    assert "more operations came after" in view.text_at(len(rec)) + scene.caption
    for name, kind in VIEWS.items():
        if name not in ("WhyView", "DifferenceView", "GraphView"):
            assert kind(rec).picture_at(len(rec)).caption
    assert Player(view).text.startswith("1 of ")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("n", HUGE)
def test_a_huge_number_of_steps_is_one_curve_of_few_points(n):
    rec = huge(n, StepFinished, lambda k: (k + 1, 0, 1.0 / (k + 1), 64, 1.0))
    view = LossView(rec)
    chart = view.picture_at(len(rec))
    assert sum(len(np.asarray(trace.y)) for trace in chart.figure.data) < 20_000
    assert str(n) in view.text_at(len(rec)).replace(",", "")
    assert LeafUsed not in rec.kinds


@pytest.mark.parametrize("whole", WHOLE)
@pytest.mark.parametrize("name", [n for n in VIEWS if n != "DifferenceView"])
def test_a_recording_that_grows_while_it_is_read_is_read_as_one_length(name, whole):
    recording = WHOLE[whole]()
    for by in (1, 7):
        rec = Hurried(recording, by)
        view = made(VIEWS[name], rec)
        player = Player(view)
        while rec.live:
            player.to_end()
            assert player.transport.position <= len(rec)
            assert max(player.marks, default=0) <= player.transport.last
            view.picture_at(player.transport.position)
        player.to_end()
        same = made(VIEWS[name], begun(recording, len(recording)))
        assert player.transport.stops.tolist() == Player(same).transport.stops.tolist()
        assert view.text_at(len(rec)) == same.text_at(len(rec))
