"""The cluster panel: its buttons act on real workers, on those that were meant, while other threads train."""

from __future__ import annotations

import threading

import pytest

import lab
from lab.errors import ViewError
from lab.events import RankLost, TrainingResumed, WorkerHandled
from lab.parallel import Cluster, DataParallel
from widgets import ClusterPanel

SOON = 60.0


@pytest.fixture(scope="module")
def cluster():
    with Cluster(2) as running:
        yield running


@pytest.fixture
def panel(cluster):
    cluster.client.wait_for_workers(2, timeout=SOON)
    made = ClusterPanel(cluster)
    yield made
    made.dispose()


def until(true, panel):
    """Look until it is true, and give others their turn."""
    looks = threading.Event()
    for _ in range(int(SOON / 0.05)):
        panel.refresh()
        if true():
            return
        looks.wait(0.05)
    raise AssertionError(panel.text)


def click(panel, act, row=None):
    """As the page says it."""
    more = {} if row is None else {"worker": row["worker"], "pid": row["pid"]}
    panel._rows._received(panel._rows, {"act": act, **more}, [])


def rows(panel):
    assert panel.widget is not None
    until(lambda: len(panel._rows.rows) == 2, panel)
    return panel._rows.rows


def labels(row):
    return [label for _, _, label, _ in row["acts"]]


def test_every_worker_has_a_row_whose_buttons_say_whom_they_strike(cluster, panel):
    assert {row["pid"] for row in rows(panel)} == set(cluster.processes().values())
    for row in rows(panel):
        assert labels(row) == ["Kill", "Stop", "Slow"]
        assert all(f"process {row['pid']}" in title for _, _, _, title in row["acts"])


def test_a_stopped_worker_is_drawn_so_and_goes_on(cluster, panel):
    row = rows(panel)[0]
    click(panel, "stop", row)
    until(lambda: labels(panel._rows.rows[0]) == ["Kill", "Go on", "Slow"], panel)
    assert panel._rows.rows[0]["words"] == "stopped"
    assert "stopped by hand" in panel.text
    assert "By hand: worker 0 stopped" in panel.view.picture_at(len(panel.view.recording)).caption
    click(panel, "go_on", row)
    until(lambda: labels(panel._rows.rows[0]) == ["Kill", "Stop", "Slow"], panel)
    assert cluster.hands.state_of(row["worker"]) is None


def test_a_slowed_worker_is_drawn_so_and_runs_at_full_speed_again(cluster, panel):
    row = rows(panel)[1]
    click(panel, "slow", row)
    assert cluster.hands.state_of(row["worker"]).share == 0.25
    until(lambda: labels(panel._rows.rows[1]) == ["Kill", "Stop", "Full speed"], panel)
    click(panel, "go_on", row)
    assert cluster.hands.state_of(row["worker"]) is None


def test_a_click_for_a_process_that_has_gone_touches_nobody_and_says_so(cluster, panel):
    row, before = rows(panel)[0], cluster.processes()
    click(panel, "kill", {**row, "pid": 1})
    assert "that worker has gone, and another has its place" in panel.text
    assert cluster.processes() == before


def test_the_panel_of_somebody_elses_cluster_has_no_buttons_for_workers(cluster):
    theirs = ClusterPanel(Cluster(client=cluster.client))
    try:
        assert theirs.widget is not None
        until(lambda: len(theirs.view.now.workers) == 2, theirs)
        assert theirs._rows.rows == []
        assert [disabled for *_, disabled in theirs._rows.whole] == [True, True]
        click(theirs, "kill", {"worker": next(iter(cluster.processes())), "pid": 7})
        assert "no such worker was started here" in theirs.text
    finally:
        theirs.dispose()


def test_a_rank_that_is_killed_by_click_while_a_cell_waits_is_replaced_and_the_training_goes_on(cluster, panel):
    train, _ = lab.data.digits()
    model = lab.nn.mlp(64, 16, 10, rng=0)
    run = lab.fit(model, train, epochs=40, batch_size=128, on=DataParallel(cluster))
    until(lambda: run.progress[0] > 3, panel)
    row = rows(panel)[1]
    assert row["words"].startswith("rank ")
    waiting = threading.Thread(target=run.wait)
    waiting.start()
    click(panel, "kill", row)
    waiting.join(SOON)
    assert run.state == "finished"
    kinds = [type(e) for e in run.recording if isinstance(e, (WorkerHandled, RankLost, TrainingResumed))]
    assert kinds == [WorkerHandled, RankLost, TrainingResumed]
    until(lambda: any(r.replaces for r in panel.view.now.ranks.values()), panel)


def test_the_recording_of_the_panel_is_begun_anew_from_where_it_was(panel, monkeypatch):
    assert panel.widget is not None
    until(lambda: len(panel.view.now.workers) == 2, panel)
    before = panel.view.now
    monkeypatch.setattr("widgets.panel.heard.MOST", 0)
    assert dict(panel.view.now.ranks) == dict(before.ranks)
    assert list(panel.view.now.workers) == list(before.workers)


def test_workers_are_started_and_ended_by_click():
    panel = ClusterPanel(n_workers=1)
    try:
        assert panel.widget is not None
        assert [disabled for *_, disabled in panel._rows.whole] == [False, True]
        click(panel, "start")
        until(lambda: panel._state == "up" and len(panel._rows.rows) == 1, panel)
        assert panel.cluster.launch(lambda comm: comm.world_size) == [1]
        click(panel, "close")
        until(lambda: panel._state == "none", panel)
        assert panel.cluster is None
        assert panel._rows.rows == []
        assert panel.text.startswith("No workers.")
    finally:
        panel.dispose()


def test_what_is_no_cluster_is_refused():
    with pytest.raises(ViewError, match="the panel is of a cluster"):
        ClusterPanel("tcp://127.0.0.1:8786")
