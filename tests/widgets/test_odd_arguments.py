"""What nobody should give: None, a text, a list, an array, a recording. Views and players say so in three lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lab.errors import LabError
from lab.training import Countdown, Run
from tests.widgets.golden import product_plus_x, recorded, two_steps_of_descent
from widgets import DifferenceView, GraphView, LossView, Player, RingView, RunControls, SideBySide, export_page
from widgets.live.look import Look

REC = product_plus_x()
ODD = {
    "None": None, "a text": "nothing", "a list": [], "a dict": {}, "half": 2.5, "nan": float("nan"), "bytes": b"x",
    "an array": np.zeros(3), "a recording": REC, "a class": GraphView, "a view": GraphView(REC), "a path": Path("x"),
}  # fmt: skip
NUMBERS = {"half", "nan"}


def calls():
    """Each function with what is no odd argument of it."""
    view, player, both = GraphView(REC), Player(REC), SideBySide(REC, recorded(two_steps_of_descent()), view=GraphView)
    player.bookmark("here")
    for name in ("find", "select", "pin", "fold_box"):
        yield f"GraphView.{name}", getattr(view, name), {"a text"}
    yield "GraphView.light", lambda odd: view.light(odd, "1"), set()
    yield "GraphView.show_pass", view.show_pass, {"None"}
    yield "GraphView(most)", lambda odd: GraphView(REC, most=odd), set()
    yield "GraphView(limit)", lambda odd: GraphView(REC, limit=odd), set()
    yield "GraphView(direction)", lambda odd: GraphView(REC, direction=odd), set()
    yield "RingView(collective)", lambda odd: RingView(REC, collective=odd), {"None"}
    for name in ("picture_at", "text_at", "sentence_at"):
        yield f"View.{name}", getattr(LossView(REC), name), set()
    for what in (view, player, both):
        yield f"{type(what).__name__}.export", what.export, set()
    yield "export_page", lambda odd: export_page(odd, view), set()
    for name in ("seek", "go_to", "remove_bookmark", "frames"):
        yield f"Player.{name}", getattr(player, name), set()
    yield "Player.loop", player.loop, set()
    yield "Player.loop(last)", lambda odd: player.loop(0, odd), {"None"}
    yield "Player.rename_bookmark", lambda odd: player.rename_bookmark(odd, "note"), set()
    yield "Player(bookmarks)", lambda odd: Player(REC, bookmarks=odd), {"None"}
    yield "Player(speed)", lambda odd: Player(REC, speed=odd), {"half"}
    yield "SideBySide(view)", lambda odd: SideBySide(REC, REC, view=odd), {"None", "a class"}
    yield "SideBySide(names)", lambda odd: SideBySide(REC, REC, names=odd), set()
    yield "DifferenceView(names)", lambda odd: DifferenceView(REC, REC, names=odd), {"None"}
    yield "RunControls", RunControls, set()
    run = Run(Countdown(2), paused=True)
    run.stop()
    run.join()
    yield "RunControls(hyperparameters)", lambda odd: RunControls(run, hyperparameters=odd), {"a list"}
    yield "Run.break_on(nonfinite)", lambda odd: run.break_on(nonfinite=odd), set()
    yield "Look", Look, set()


CASES = [
    pytest.param(call, odd, id=f"{name} of {what}")
    for name, call, fine in calls()
    for what, odd in ODD.items()
    if what not in fine
]


@pytest.mark.parametrize(("call", "odd"), CASES)
def test_an_odd_argument_is_refused_in_three_lines(call, odd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LabError) as why:
        call(odd)
    problem, given, hint = str(why.value).splitlines()
    assert (given[:7], hint[:7]) == ("given: ", "hint:  ")
    assert problem
    assert len(given) < 200
    assert not list(tmp_path.iterdir()), "nothing was written"


def test_a_bookmark_file_is_saved_at_a_path_only():
    for odd in (None, 3, [], b"x"):
        with pytest.raises(LabError, match="a file is named by its path"):
            Player(REC).save_bookmarks(odd)
