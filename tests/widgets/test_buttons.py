"""Buttons: every icon that is used is silent for screen readers."""

from __future__ import annotations

import threading

from lab.training import Countdown, Run
from tests.widgets.golden import product_plus_x
from widgets.controls import RunControls
from widgets.live.buttons import ICONS, INK, WARNING, button, css
from widgets.live.spoken import Spoken
from widgets.pictures.theme import contrast
from widgets.player import Player


def test_the_style_sheet_gives_each_icon_an_empty_name():
    for icon, letter in ICONS.items():
        assert f'.lab-button .fa-{icon}::before {{ content: "\\{letter}" / ""; }}' in css()


def test_the_style_sheet_comes_with_the_line_that_stands_beside_the_buttons():
    assert css() in Spoken._css


def test_all_buttons_of_players_and_controls_are_made_so():
    player = Player(product_plus_x())
    run = Run(Countdown(1_000_000))
    controls = RunControls(run)
    assert player.widget is not controls.widget
    made = [w for w in (*player._controls.values(), *controls._parts.values()) if hasattr(w, "button_style")]
    assert len(made) == 13
    for one in made:
        assert one.icon in ICONS
        assert "lab-button" in one._dom_classes
    player.toggle()
    assert player._controls["Play"].icon in ICONS
    player.dispose()
    controls.dispose()
    run.stop()


def test_a_button_calls_its_action():
    pressed = threading.Event()
    made = button("Go", "play", "Goes", pressed.set, style="primary")
    made.click()
    assert pressed.is_set()
    assert made.button_style == "primary"


def test_the_way_out_of_trouble_can_be_read():
    assert contrast(WARNING, INK) >= 4.5
    assert f".lab-button.mod-warning {{ background: {WARNING} !important; color: {INK} !important; }}" in css()
