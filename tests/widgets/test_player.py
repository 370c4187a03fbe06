"""Player: stops, seeks and plays over one recording, live or ended, and ends when it is told to."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lab
from lab.errors import ViewError
from lab.events import OpRecorded, Recording, StepFinished, bus
from tests.widgets.golden import falling, product_plus_x, recorded, training
from widgets.export.film import CHART_FRAMES
from widgets.live import pacer
from widgets.player import Player
from widgets.player.transport import LONGEST_S, SHORTEST_TICK_S, Transport, pace
from widgets.views.experiments.passes import PassesView
from widgets.views.experiments.rewrite.view import RewriteView
from widgets.views.graph.view import GraphView
from widgets.views.training.gradient import GradientView
from widgets.views.training.loss import LossView


def test_stepping_goes_through_the_stops_and_ends_at_the_last():
    player = Player(product_plus_x())
    texts = [player.text]
    for _ in range(10):
        player.step()
        texts.append(player.text)
    assert texts[0] == "1 of 7: v₁ = x * y = 6.0 was computed."
    assert texts[6] == texts[-1] == "7 of 7: x: gradient 4.0."
    player.back()
    assert player.text.startswith("6 of 7")
    player.seek(-3)
    assert player.text.startswith("1 of 7")


@given(st.lists(st.sampled_from(["play", "tick", "seek", "to_end", "grown"]), max_size=40), st.integers(1, 300))
def test_the_transport_never_leaves_its_stops(moves, n):
    t = Transport(np.arange(1, n + 1))
    for k, move in enumerate(moves):
        if move == "seek":
            t.seek((k * 37) % (2 * n) - n // 2)
        elif move == "grown":
            n += 3
            t.grown(np.arange(1, n + 1))
        else:
            getattr(t, move)()
        assert 0 <= t.index < len(t.stops)
        assert t.position == t.index + 1
        assert not (t.at_end and t.index != len(t.stops) - 1)
        assert not (t.playing and t.index == len(t.stops) - 1 and len(t.stops) > 1 and move == "tick")


@pytest.mark.parametrize("n", [1, 7, 60, 1000, 1_000_000])
def test_playing_is_never_faster_than_can_be_drawn_and_never_too_long(n):
    p = pace(n, 1.0)
    assert p.seconds >= SHORTEST_TICK_S
    assert n / p.stride * p.seconds <= LONGEST_S * 1.5


def test_playing_stops_at_the_end_and_leaves_no_thread():
    player = Player(product_plus_x(), speed=1000.0)
    assert player.widget is not None
    player.play()
    assert player.wait(60)
    assert not player.transport.playing
    assert player.transport.index == 6
    assert not [t for t in threading.enumerate() if t.name == "lab-player" and t.is_alive()] or player.wait(60)
    player.dispose()


def test_pausing_and_disposing_end_the_thread():
    player = Player(product_plus_x())
    player.play()
    player.pause()
    assert not player.transport.playing
    player.play()
    player.dispose()
    assert player.wait(60)


def test_playing_from_the_end_starts_over():
    player = Player(product_plus_x())
    player.to_end()
    player.play()
    assert player.transport.index == 0
    player.dispose()


def test_several_views_show_the_same_moment():
    rec = training(falling(30))
    player = Player(LossView(rec), GradientView(rec))
    assert player.widget is not None
    player.seek(15)
    assert [v.position for v in player.views] == [player.transport.position] * 2
    assert "Step 15 of 30" in player.text
    assert "Step 10: norm" in player.text
    player.dispose()


def test_views_of_different_recordings_are_refused():
    with pytest.raises(ViewError, match="must show one recording"):
        Player(GraphView(product_plus_x()), GraphView(product_plus_x()))
    with pytest.raises(ViewError, match="something to play"):
        Player()


def test_a_bare_recording_gets_the_view_that_fits():
    assert isinstance(Player(product_plus_x()).views[0], GraphView)
    assert isinstance(Player(training(falling(5))).views[0], LossView)


def test_an_empty_recording_can_be_opened():
    player = Player(recorded([]))
    assert player.widget is not None
    player.step()
    player.back()
    player.play()
    assert player.wait(60)
    assert player.text.startswith("1 of 1: Nothing was recorded: ")
    player.dispose()


def controls(player):
    return player._controls


def wishes(player, **wish):
    """What a page says."""
    controls(player)["Timeline"]._received(None, wish, [])


def test_every_control_has_a_name_and_a_tooltip():
    player = Player(product_plus_x())
    assert player.widget is not None
    for name, control in controls(player).items():
        if name == "Timeline":
            assert control.label  # and its tooltip, in the page
        elif name != "text":
            assert control.description
            assert control.tooltip
    player.dispose()


def test_a_player_that_something_kept_from_following_does_so_again_when_one_asks_for_the_end(monkeypatch):
    rec = Recording(run="*")
    bus.attach(rec)
    bus.emit(StepFinished(1, 0, 2.0, 1, 1.0))
    player = Player(LossView(rec))
    assert player.widget is not None
    pacer.forget(player._tick)
    player.tick_failed(IndexError("of two lengths"))
    assert "stopped following: IndexError" in controls(player)["text"].text
    controls(player)["End"].click()
    assert controls(player)["text"].text.startswith("1 of 1")
    bus.emit(StepFinished(2, 0, 1.0, 1, 1.0))
    bus.flush()
    pacer.PACER.pump()
    assert controls(player)["text"].text.startswith("2 of 2")
    bus.detach(rec)
    player.dispose()


def test_the_controls_drive_the_pictures():
    player = Player(product_plus_x())
    assert player.widget is not None
    controls(player)["Step"].click()
    assert controls(player)["Timeline"].at == 1
    wishes(player, seek=4)
    assert player.transport.index == 4
    assert player.views[0].position == player.transport.position
    assert controls(player)["text"].text.startswith("5 of 7: v₁ = x * y sends 3.0 to x")
    controls(player)["End"].click()
    assert controls(player)["Step"].disabled
    controls(player)["Start"].click()
    assert controls(player)["Back"].disabled
    controls(player)["Speed"].value = 5.0
    assert player.transport.speed == 5.0
    player.dispose()


def test_a_player_of_views_whose_last_picture_says_it_all_opens_there():
    found = lab.measure_passes(lambda x: lab.exp(x) * lab.exp(x), np.ones(3), repeats=1)
    player = Player(PassesView(found), RewriteView(found))
    assert player.transport.index == player.transport.last
    player.play()
    assert player.transport.index < player.transport.last
    player.dispose()
    assert Player(GraphView(found.recording), PassesView(found)).transport.index == 0


def test_looking_back_while_live_keeps_the_place_and_one_click_returns_to_the_end():
    rec = Recording(run="*")
    bus.attach(rec)

    def emit(k: int) -> None:
        bus.emit(OpRecorded(k, "exp", (k - 1,), (), "float64", 0))
        player._tick()

    player = Player(GraphView(rec))
    try:
        assert player.widget is not None
        for k in range(1, 6):
            emit(k)
        assert player.text.startswith("5 of 5")
        player.back()
        for k in range(6, 9):
            emit(k)
        assert player.text.startswith("4 of 8")
        assert controls(player)["End"].description == "Live"
        controls(player)["End"].click()
        emit(9)
        assert player.text.startswith("9 of 9")
    finally:
        rec.close()
        player._tick()
    assert controls(player)["End"].description == "End"
    player.dispose()


def test_a_failing_view_does_not_stop_the_player(monkeypatch):
    player = Player(product_plus_x())
    assert player.widget is not None
    monkeypatch.setattr(player.views[0], "picture", lambda state: 1 / 0)
    monkeypatch.setattr(player.views[0], "sentence_at", lambda position: 1 / 0)
    player.step()
    assert "division by zero" in controls(player)["text"].text
    player.dispose()


def test_an_exported_page_plays_the_stops(tmp_path: Path):
    player = Player(product_plus_x())
    assert len(player.frames()) == 7
    assert player.export(tmp_path / "play.html").stat().st_size > 1000


def test_a_long_recording_is_exported_as_a_sample_of_its_stops_that_ends_at_the_end():
    frames = Player(training(falling(2000), every=10**9)).frames()
    assert len(frames) == CHART_FRAMES
    assert frames[-1].label == "2000 of 2000"


@pytest.mark.slow
def test_a_million_steps_open_and_seek_by_columns():
    n = 1_000_000
    from lab.events.bus import Batch, Row
    from lab.events.event import Origin

    rec = Recording(run="*")
    where = Origin()
    for start in range(0, n, 100_000):
        rows = [Row(StepFinished, k, where, (k, 0, 1.0 / (1 + k), 64, 1.0)) for k in range(start, start + 100_000)]
        rec.receive(Batch(rows, range(start, start + 100_000)))
    view = LossView(rec)
    folded_alone = []
    view.fold = lambda state, event: folded_alone.append(event)  # type: ignore[method-assign]
    player = Player(view)
    assert player.widget is not None
    for index in (999_999, 5, 500_000):
        player.seek(index)
        assert len(view.state_at(view.position).step) == index + 1
    assert folded_alone == []
    player.dispose()


def test_the_speed_can_be_read_and_set_and_must_be_positive():
    player = Player(product_plus_x(), speed=2.0)
    assert player.speed == 2.0
    player.speed = 0.5
    assert player.transport.speed == 0.5
    for wrong in (0, -1.0, float("nan"), "fast"):
        with pytest.raises(ViewError, match="positive number"):
            player.speed = wrong  # type: ignore[assignment]
