"""ClusterView: a card for each worker says what was seen of it, and a lost rank is explained."""

from __future__ import annotations

import numpy as np
import pytest

import lab
from lab.events import ClockAligned, RankFinished, RankLost, RankStarted, TrainingResumed, WorkerHandled, WorkerSeen
from tests.widgets.golden import recorded, training
from tests.widgets.golden_cluster import MIB, address, beginning, launch_of, lost, seen
from tests.widgets.golden_pipeline import recorded_by_ranks
from tests.widgets.looking import recorded as looked_at
from widgets import ClusterView, Player
from widgets.fold import Stretch
from widgets.pictures.tree import tree_of
from widgets.pictures.twin import svg_of


def cards(view, position=None):
    scene = view.picture_at(len(view.recording) if position is None else position)
    return {node.id: node for node in scene.nodes}, {mark.id: mark for mark in scene.marks}


@pytest.mark.parametrize("rec", [launch_of(4), lost(), launch_of(16, n_workers=16)], ids=["ended", "lost", "sixteen"])
def test_folding_many_equals_folding_one_by_one(rec):
    view = ClusterView(rec)
    one = view.start()
    for k, event in enumerate(rec, 1):
        one = view.fold(one, event)
        assert view.fold_many(view.start(), Stretch(rec, 0, k)) == one


def test_a_card_says_rank_state_process_memory_and_clock():
    nodes, marks = cards(ClusterView(launch_of(2, n_workers=3)))
    assert (marks["who1"].text, marks["state1"].text) == ("rank 1", "finished")
    assert marks["name1"].text == "worker 1 · 127.0.0.1:40001"
    assert marks["pid1"].text == "pid 1001 · cpu 36 %"
    assert marks["memory1"].text == "350 of 900 MiB"
    assert marks["used1"].width / marks["track1"].width == pytest.approx(350 / 900)
    assert marks["note1"].text == "clock: as the launcher's"
    words = "Worker 1, tcp://127.0.0.1:40001, leased to run-1, holds rank 1: finished. pid 1001"
    assert nodes["w1"].aria.startswith(words)
    assert (marks["who2"].text, marks["state2"].text, nodes["w2"].state) == ("no rank", "idle", "idle")
    assert marks["head"].text == "launch 1: 2 ranks on 2 of 3 workers"


def test_each_state_has_its_mark_and_word():
    nodes, marks = cards(ClusterView(lost()))
    found = {key: (nodes[f"w{key}"].state, marks[f"state{key}"].text) for key in range(6)}
    assert found[0] == ("stopped", "stopped")
    assert found[1] == ("trouble", "lost, gone")
    assert found[3] == ("waiting", "stopped, paused")
    assert found[4] == ("idle", "idle")
    running, _ = cards(ClusterView(lost()), 14)
    assert running["w0"].state == "active"


def test_a_lost_rank_is_explained_on_its_card_in_the_caption_and_in_words():
    rec = lost()
    view = ClusterView(rec)
    _, marks = cards(view)
    assert (marks["note1"].kind, marks["note1"].text) == ("warning", "its process was killed (signal 9)")
    caption = view.picture_at(len(rec)).caption
    assert "Ranks: 3 stopped, 1 lost. Rank 1 was lost: its process was killed (signal 9)." in caption
    assert "Strangers refused at data ports: 2." in caption
    assert "right to within 42 µs" in caption
    at = int(rec.positions(RankLost)[0]) + 1
    assert view.sentence_at(at) == "Rank 1 was lost: its process was killed (signal 9)."
    assert "2 strangers refused, the latest: it spoke HTTP" in view.text_at(len(rec))
    assert "clock off by −1.3 ms, known to ± 42 µs" in view.text_at(len(rec))


def test_nearly_full_memory_is_marked_and_no_limit_has_no_bar():
    rec = recorded_by_ranks([(0, 0, seen(0, used=800)), (0, 0, seen(1, used=100)), (0, 0, seen(2, limit=0))])
    _, marks = cards(ClusterView(rec))
    assert [marks[f"used{k}"].kind for k in (0, 1)] == ["full", "used"]
    assert "track2" not in marks
    assert marks["memory2"].text == "180 MiB, no limit"


def test_a_player_stops_at_each_look_once_and_at_each_event_of_a_rank():
    stops = Player(ClusterView(launch_of(2, n_workers=3))).transport.stops
    assert len(stops) == 1 + 2 * 2 + 1 + 2


def test_the_next_launch_forgets_the_ranks_before_and_the_workers_that_are_gone():
    rows = beginning(2, 3)
    rows += [(5, 0, seen(1, "gone")), (6, 0, RankLost(1, 1, address(1), "killed"))]
    rows += [beginning(2, 1, generation=2, at=10)[0], (11, 0, RankStarted(2, 2, address(0), 1000))]
    rows += [(12, 1, RankStarted(2, 2, address(7), 1007))]
    view = ClusterView(recorded_by_ranks(rows))
    text = view.text_at(len(view.recording))
    assert text.splitlines()[0] == "Rank 1 of 2 started on worker 2."
    assert address(1) not in text
    assert "lost" not in text
    nodes, marks = cards(view)
    assert len(nodes) == 3
    assert marks["pid2"].text == "pid 1007; nobody looked at it yet"


def test_clocks_of_the_next_launch_are_its_own_and_reasons_stand_on_one_line():
    rows = [*beginning(2, 2), (5, 0, RankFinished(1, "failed", 1.0, "ShapeError: no\ngiven: (2,)\nhint:  transpose"))]
    rows += [(6, 1, RankFinished(1, "stopped", 1.0, "")), *beginning(2, 2, generation=2, at=10)]
    rec = recorded_by_ranks(rows)
    view = ClusterView(rec)
    assert view.text_at(len(rec)).count("clock the same as the launcher") == 2
    assert "failed" not in view.text_at(len(rec))
    at = next(k for k, event in enumerate(rec) if isinstance(event, RankFinished)) + 1
    assert view.sentence_at(at) == "Rank 0 failed: ShapeError: no given: (2,) hint: transpose."


def test_before_the_ranks_start_only_the_workers_are_told():
    rows = [row for row in beginning(2, 3) if not isinstance(row[2], RankStarted)]
    rec = recorded_by_ranks(rows)
    scene = ClusterView(rec).picture_at(len(rec))
    assert scene.marks[0].text == "3 workers, no rank yet"
    assert "Ranks" not in scene.caption
    assert ClusterView(rec).sentence_at(len(rec)) == "The clock of rank 1 was compared: the same as the launcher."


def test_a_worker_that_only_an_error_told_of_has_a_card():
    view = ClusterView(recorded([RankLost(1, 0, address(0), "its worker left")]))
    nodes, marks = cards(view)
    assert nodes["w0"].state == "trouble"
    assert marks["note0"].text == "its worker left"


def test_ranks_that_are_threads_have_cards_too():
    rec = recorded_by_ranks([(0, rank, RankStarted(0, 2, "", 77)) for rank in range(2)])
    nodes, marks = cards(ClusterView(rec))
    assert len(nodes) == 2
    assert marks["name1"].text == "a thread of process 77"
    assert ClusterView(rec).sentence_at(2) == "Rank 1 of 2 started on a thread."


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 9, 13, 16])
def test_cards_stand_apart_inside_the_extent(n):
    scene = ClusterView(launch_of(n, n_workers=n)).picture_at(10_000)
    boxes = [(m.x - m.width / 2, m.y - m.height / 2, m.x + m.width / 2, m.y + m.height / 2) for m in scene.nodes]
    width, height = scene.extent
    assert all(a >= 0 and b >= 0 and c <= width and d <= height for a, b, c, d in boxes)
    for i, (a, b, c, d) in enumerate(boxes):
        for e, f, g, h in boxes[:i]:
            assert c <= e or g <= a or d <= f or h <= b
    tree_of(scene)
    assert svg_of(scene).count(">rank ") == n


@pytest.mark.parametrize(
    ("rec", "words"),
    [
        (recorded([]), "No worker was seen: what was recorded launched nothing, as lab.parallel.launch or"),
        (training([1.0]), "No worker was seen: what was recorded launched nothing"),
    ],
)
def test_an_empty_picture_says_why(rec, words):
    view = ClusterView(rec)
    assert view.text_at(len(rec)).startswith(words)
    assert view.picture_at(len(rec)).caption == view.text_at(len(rec))
    with lab.record() as live:
        assert ClusterView(live).text_at(0) == "Nobody looked at the workers yet: the first launch does."
    assert ClusterView(launch_of(1)).text_at(0) == "No worker was seen up to here."


def test_memory_is_a_binary_number():
    rec = recorded([WorkerSeen(address(0), "idle", "", 1, 3 * MIB // 2, 1024 * MIB, 0.0)])
    assert cards(ClusterView(rec))[1]["memory0"].text == "2 of 1,024 MiB"


def test_ranks_that_are_threads_of_this_process_are_said_to_be():
    rec = looked_at("all_reduce", "ring", [np.ones(4)] * 4)
    words = "No worker has a part in it: the 4 ranks are threads of this process."
    assert ClusterView(rec).text_at(len(rec)) == words


def test_a_rank_is_said_to_be_lost_once():
    rec = recorded([RankLost(1, 1, address(1), "rank 1 was lost: its worker left")])
    view = ClusterView(rec)
    assert view.sentence_at(1) == "Rank 1 was lost: its worker left."
    assert "Rank 1 was lost: rank" not in view.picture_at(1).caption


def test_who_looks_at_a_run_that_is_over_is_told_what_became_of_its_ranks():
    rows = beginning(2, 3)
    rec = recorded_by_ranks([*rows, *((9, r, RankFinished(1, "finished", 2.0, "")) for r in range(2)),
                             *((10, 0, seen(k, "idle")) for k in range(3))])  # fmt: skip
    view = ClusterView(rec)
    told = [view.sentence_at(p) for p in range(1, len(rec) + 1)]
    assert not [words for words in told if "is idle" in words]
    assert "Worker 2 was seen: it is free." in told
    assert told[-1] == "2 ranks finished; worker 1 was given back."
    rec = recorded_by_ranks([*rows, (10, 0, seen(1, "idle"))])
    assert ClusterView(rec).sentence_at(len(rec)) == "Worker 1 was given back."


def test_a_worker_whose_rank_was_killed_is_not_said_to_be_given_back():
    rows = [*beginning(2, 2), (8, 0, RankLost(1, 1, address(1), "killed")), (10, 0, seen(1, "idle"))]
    rec = recorded_by_ranks(rows)
    assert ClusterView(rec).sentence_at(len(rec)) == "Worker 1 lost rank 1 and holds no rank any more."


def test_a_worker_that_was_struck_by_hand_says_so_until_it_is_let_go_on():
    blows = [
        WorkerHandled(address(1), 1001, "slowed", 0.25),
        WorkerHandled(address(0), 1000, "stopped", 0.0),
        WorkerHandled(address(0), 1000, "let go on", 1.0),
    ]
    rec = recorded_by_ranks([*beginning(2, 2), *((5 + k, 0, blow) for k, blow in enumerate(blows))], "digits")
    view, n = ClusterView(rec), len(rec)
    assert view.sentence_at(n - 2) == "Worker 1 was slowed by hand, and runs for 25 % of its time."
    nodes, marks = cards(view, n - 1)
    assert (nodes["w0"].state, marks["state0"].text, marks["state1"].text) == ("waiting", "stopped", "slowed to 25 %")
    assert "By hand: worker 0 stopped, worker 1 slowed to 25 %." in view.picture_at(n - 1).caption
    nodes, marks = cards(view)
    assert (nodes["w0"].state, marks["state0"].text) == ("active", "runs")


def test_a_training_that_went_on_says_from_where_and_who_is_new():
    rows = beginning(2, 2)
    rows += [(5, 0, RankLost(1, 1, address(1), "rank 1 died")), (6, 1, ClockAligned(0, 0, True))]
    rows += [(7, 1, RankStarted(2, 2, address(2), 1002)), (8, 0, TrainingResumed(1, 11, 1, 2, "ranks", 3200.0))]
    view = ClusterView(recorded_by_ranks(rows, "digits"))
    assert view.sentence_at(len(rows)) == (
        "The training went on at step 12, from the state of ranks, 3.2 s after the loss of rank 1."
    )
    assert "in the place of one that was lost" in view.text_at(len(rows))
