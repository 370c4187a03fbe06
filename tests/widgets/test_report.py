"""A report is made from its recording and from nothing else: the sections that it has events for, and what ran."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from lab.errors import ViewError
from lab.events import (
    ActionStarted,
    BackwardStarted,
    Batch,
    ChunkMoved,
    CollectiveFinished,
    CollectiveStarted,
    Evaluated,
    Event,
    HyperparameterChanged,
    Origin,
    RankLost,
    RankStarted,
    Recording,
    RunFinished,
    RunStarted,
    StepFinished,
    record,
)
from lab.events.bus import Row
from lab.events.event import values_of
from lab.parallel import run_local
from tests.widgets.golden import falling, recorded, training
from tests.widgets.golden_cluster import launch_of
from tests.widgets.golden_pipeline import pipeline
from tests.widgets.golden_ranks import collective as collective_of
from tests.widgets.golden_ranks import ranks_of, trained
from tests.widgets.golden_ranks import told as ranks_told
from widgets.export import report as reports
from widgets.export.facts import facts_of
from widgets.export.film import brief
from widgets.export.report import Section, report, report_page
from widgets.pictures.scene import Node, Scene
from widgets.view import View

ROOT = Path(__file__).parents[2]
RING = (CollectiveStarted, CollectiveFinished, ChunkMoved)


def told(*rows: tuple[int, int, Event]) -> Recording:
    """A recording of events given as (rank, time, event), in the order in which they came."""
    made = Recording(run="*")
    made.receive(
        Batch([Row(type(e), time, Origin(rank, "r"), values_of(e)) for rank, time, e in rows], range(len(rows)))
    )
    return made


def moved(collective: int) -> ChunkMoved:
    return ChunkMoved(collective, 0, 0, 1, 0, 1, True, 8_000_000)


class Moves(View[tuple[Event, ...]]):
    """Every chunk that moved, in the order in which the view was told."""

    listens = (ChunkMoved, CollectiveStarted)
    stops = (ChunkMoved,)

    def start(self) -> tuple[Event, ...]:
        return ()

    def fold(self, state: tuple[Event, ...], event: Event) -> tuple[Event, ...]:
        return (*state, event)

    def picture(self, state: tuple[Event, ...]) -> Scene:
        return Scene((Node("n", 40, 20, 80, 40, f"{len(state)} events"),))

    def text(self, state: tuple[Event, ...]) -> str:
        return f"{len(state)} events"


# --- the page


class Page(HTMLParser):
    """The elements of a page with their attributes, and the words between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def test_the_page_has_title_language_landmark_headings_and_facts():
    recording = training(falling(60))
    recording.meta["title"] = "Digits <on> 4 workers"
    page = Page(report_page(recording))
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("main")) == 1
    assert page.words.count("Digits <on> 4 workers") == 2  # title and heading
    (section,) = page.all("section")
    assert section["aria-labelledby"] in {h["id"] for h in page.all("h2")}
    assert len(page.all("dt")) == len(page.all("dd")) == len(facts_of(recording))


def test_a_report_is_small_and_asks_for_nothing_beside_it():
    text = report_page(training(falling(5000)))
    assert len(text.encode()) < 6_000_000
    page = Page(text)
    assert not [a for _, a in page.found if {"src", "href", "action"} & a.keys()]
    assert "default-src 'none'" in text


def test_the_loss_opens_at_its_end_also_without_javascript_with_all_that_came_after_the_last_step():
    text = report_page(training(falling(60)))
    opens = int(re.search(r'data-opens="(\d+)"', text)[1])
    assert opens == 59
    static = text.split('id="lab-static"')[1].split("</main>")[0]
    assert re.search(r"Step 60 of 60: loss [\d.]+, finished\.", static)
    assert "test at step 60" in static


@pytest.mark.parametrize("name", ["training", "ring", "pipeline", "cluster", "replicas"])
def test_every_section_opens_at_the_last_state_of_the_run(name):
    recording = RECORDINGS[name]()
    players = [a for a in Page(report_page(recording)).all("div") if a.get("class") == "lab-player"]
    assert players
    for player in players:
        [section] = [each for each in reports.SECTIONS if each.title == player["data-name"]]
        frames = reports._part(section, recording).frames
        assert player["data-opens"] == str(len(frames) - 1)
        assert frames[-1].text == brief(section.view(recording).text_at(len(recording)))
        n, of = frames[-1].label.split(" of ")
        assert n == of


RECORDINGS = {
    "training": lambda: training(falling(300)),
    "ring": lambda: ranks_told(collective_of("all_reduce", "ring", ranks_of(4))),
    "pipeline": lambda: pipeline("1f1b", 3, 4, n_steps=2),
    "cluster": lambda: launch_of(4),
    "replicas": lambda: trained(2),
}
AGAIN = """
import pathlib, sys
from lab import Recording
from widgets.export.report import report
for path in pathlib.Path(sys.argv[1]).glob("*.rec"):
    report(Recording.load(path), path.with_suffix(sys.argv[2]))
"""


def test_the_same_recording_gives_the_same_bytes_from_its_file_in_another_process(tmp_path):
    for name, made in RECORDINGS.items():
        recording = made()
        recording.save(tmp_path / f"{name}.rec")
        report(recording, tmp_path / f"{name}.html")
    for seed, zone in (("1", "Asia/Kathmandu"), ("2", "America/Lima")):  # orders of sets differ, and so does the clock
        elsewhere = os.environ | {"PYTHONHASHSEED": seed, "TZ": zone, "HOME": "/nonexistent"}
        subprocess.run([sys.executable, "-c", AGAIN, tmp_path, f".{seed}.html"], cwd=ROOT, env=elsewhere, check=True)
    for name in RECORDINGS:
        here, first, second = ((tmp_path / f"{name}{end}").read_bytes() for end in (".html", ".1.html", ".2.html"))
        assert (name, first == second) == (name, True)
        assert (name, here == first) == (name, True)


def test_a_section_is_there_if_the_recording_has_all_of_its_events(monkeypatch):
    needs = (StepFinished, ChunkMoved)
    monkeypatch.setattr(reports, "SECTIONS", [*reports.SECTIONS, Section("Moves", "Chunks.", Moves, needs)])
    steps, moves = (0, 1, StepFinished(1, 0, 0.5, 8, 1.0)), (1, 2, moved(0))
    assert "<h2" in report_page(told(steps))
    assert "Moves" not in report_page(told(steps))
    both = report_page(told(steps, moves))
    assert [a["data-name"] for a in Page(both).all("div") if a.get("class") == "lab-player"] == ["Loss", "Moves"]
    assert 'id="lab-frames-2"' in both
    assert "Chunks." in both


def test_a_section_whose_view_finds_nothing_is_left_out(monkeypatch):
    nothing = Section("Nothing", "Finds nothing.", lambda recording: None, (StepFinished,))
    monkeypatch.setattr(reports, "SECTIONS", [*reports.SECTIONS, nothing])
    assert "Nothing" not in report_page(told((0, 1, StepFinished(1, 0, 0.5, 8, 1.0))))


def test_the_all_reduce_of_a_report_is_the_last_that_all_ranks_completed():
    with record(kinds=RING) as recording:
        run_local("all_reduce", "ring", [np.ones(6, np.float32)] * 3)
        run_local("all_reduce", "naive", [np.ones(6, np.float32)] * 3)
        run_local("broadcast", "flat", [np.ones(6, np.float32)] * 3)
    text = report_page(recording)
    assert [a["data-name"] for a in Page(text).all("div") if a.get("class") == "lab-player"] == ["One all-reduce"]
    assert "all_reduce naive" in text.split('id="lab-static"')[0].split("</dl>")[0]
    assert len(reports._an_all_reduce(recording).stop_positions(recording)) == 6  # in, two each gather and spread, left
    with record(kinds=RING) as recording:
        run_local("broadcast", "flat", [np.ones(6, np.float32)] * 3)
    with pytest.raises(ViewError, match="nothing in this recording"):
        report_page(recording)


def test_a_long_section_says_what_it_left_out(monkeypatch):
    monkeypatch.setattr(reports, "SECTIONS", [Section("Moves", "Chunks.", Moves, (ChunkMoved,))])
    text = report_page(told(*((0, t, moved(t)) for t in range(1000))))
    assert "Chunks. 300 of 1,000 stops, evenly chosen." in text


@pytest.mark.parametrize(("name", "complaint"), [
    ("a.svg", "a report is a page"), ("a.txt", "pictures are written as"), ("no/a.html", "the folder to write into"),
])  # fmt: skip
def test_a_report_goes_only_where_a_page_can_stand(tmp_path, name, complaint):
    with pytest.raises(ViewError, match=complaint):
        report(training(falling(3)), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_recording_that_no_section_shows_is_refused_and_named():
    with pytest.raises(ViewError, match="there is nothing in this recording that a report shows") as caught:
        report_page(recorded([BackwardStarted(0, 1, 0)]))
    assert "1 BackwardStarted" in caught.value.given


def collective(number: int, operation: str = "all_reduce") -> list[Event]:
    about = (number, operation, "ring", 64, 2, 2)
    return [CollectiveStarted(*about), moved(number), CollectiveFinished(*about)]


# --- what ran


def facts(*events: Event, **meta: str) -> dict[str, str]:
    recording = recorded(events)
    recording.meta.update(meta)
    return dict(facts_of(recording))


STARTED = RunStarted("digits", 230, 10, 26_122, "mlp(64, 128, 128, 10)", "Adam(0.001)")


def test_the_facts_say_what_ran_and_how_it_ended():
    found = facts(
        STARTED, HyperparameterChanged(0, "learning_rate", 0.001), HyperparameterChanged(40, "learning_rate", 0.01),
        StepFinished(229, 9, 0.5, 64, 1.0), StepFinished(230, 9, 0.0301, 64, 1.0),
        Evaluated(230, 9, "test", 0.1, 0.975, 360), RunFinished("digits", "finished", 230, 1500.0, ""),
        command="autodiff-lab train", python="3.11.7", numpy="2.4.6", numba="0.68.1",
    )  # fmt: skip
    assert (found["Model"], found["Parameters"]) == ("mlp(64, 128, 128, 10)", "26,122")
    assert found["Optimiser"] == "Adam(0.001)"
    assert found["Changed by hand"] == "learning_rate 0.01 from step 40"
    assert found["Steps"] == "230 of 230"
    assert found["Final loss"] == "0.0301"
    assert found["On the test data"] == "97.5 %, loss 0.1 at step 230"
    assert found["Ended"] == "finished after 1.5 s"
    assert found["Ranks"] == "none: trained in one process"
    assert found["Command"] == "autodiff-lab train"
    assert found["Versions"].endswith("python 3.11.7, numpy 2.4.6, numba 0.68.1")


def test_a_failure_an_accuracy_that_means_nothing_and_an_open_end_are_said_as_they_are():
    failed = facts(STARTED, RunFinished("digits", "failed", 3, 100.0, "rank 2 was lost"))
    assert failed["Ended"] == "failed after 0.1 s: rank 2 was lost"
    assert facts(STARTED)["Ended"] == "not in this recording"
    assert facts(Evaluated(1, 0, "test", 0.25, float("nan"), 9))["On the test data"] == "loss 0.25 at step 1"


def test_the_facts_of_ranks_count_workers_bytes_and_losses():
    began = [RankStarted(1, 4, f"tcp://127.0.0.1:{rank}", 100 + rank) for rank in range(4)]
    found = facts(*began, *collective(0), *collective(1), RankLost(1, 2, "tcp://127.0.0.1:2", "killed"))
    assert found["Ranks"] == "4 on 4 worker processes"
    assert found["Collectives"] == "all_reduce ring: 16.0 MB moved"
    assert found["Ranks lost"] == "2"


def test_a_paced_pipeline_is_called_paced():
    actions = [ActionStarted(kind, stage, micro, True) for kind in "FB" for stage in range(2) for micro in range(8)]
    found = facts(RankStarted(1, 2, "", 7), *actions)
    assert found["Pipeline"] == "2 stages, 8 micro-batches, paced: no measure of this machine"
    assert found["Ranks"] == "2 on 1 worker process"


def test_dropped_events_are_told():
    recording = recorded([STARTED] * 5, limit=3)
    assert dict(facts_of(recording))["Events"] == "3, 2 dropped"
