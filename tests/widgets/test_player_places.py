"""Marks, loop and bookmarks of a player: what one looks for, repeats, and keeps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lab
from lab.errors import ViewError
from lab.events import CollectiveStarted, Recording, bus
from lab.nn import mlp
from lab.parallel.ranks.threads import run_ranks
from tests.widgets.golden import falling, product_plus_x, recorded, training
from widgets import GraphView, LossView, Player, RingView
from widgets.player.bookmarks import LONGEST_NOTE, MOST_BYTES, Bookmark
from widgets.player.transport import Transport


def steps_recorded(n_steps=3):
    """A real training with its graph: so many steps, each with a forward and a backward walk."""
    rec = Recording(run="*", detail="statistics")
    train, _ = lab.data.digits()
    small = lab.data.Dataset(train.inputs[: 8 * n_steps], train.targets[: 8 * n_steps])
    model = mlp(64, 4, 10, rng=0)
    bus.attach(rec)
    try:
        lab.fit(model, small, epochs=1, batch_size=8).wait()
    finally:
        rec.close()
    return rec


REC = steps_recorded()


def wishes(player, **wish):
    player._controls["Timeline"]._received(None, wish, [])


def test_steps_and_backward_walks_are_marked_where_they_are_seen():
    player = Player(GraphView(REC))
    assert list(player.marks.values()) == [
        "backward walk 1", "step 1", "backward walk 2", "step 2", "backward walk 3", "step 3",
    ]  # fmt: skip
    seen = []
    for _ in range(8):
        player.next_mark()
        seen.append(player.marks[player.transport.index])
    assert seen == [*player.marks.values(), "step 3", "step 3"]
    walk = next(stop for stop, name in player.marks.items() if name == "backward walk 2")
    player.seek(walk)
    assert "Backward starts at" in player.text
    player.previous_mark()
    assert player.marks[player.transport.index] == "step 1"


def test_collectives_are_marked_once_for_all_ranks():
    def twice(comm):
        for _ in range(2):
            comm.all_reduce_(np.ones(4))
        comm.broadcast_(np.ones(4))

    with lab.record(kinds=[*RingView.listens, CollectiveStarted]) as rec:
        run_ranks(twice, world_size=2)
    marks = RingView(rec).landmarks(rec)
    names = [marks.name(k) for k in range(len(marks.positions))]
    assert names == ["all-reduce 0", "all-reduce 1", "broadcast 2"]


def test_a_loss_curve_is_marked_where_it_was_tested():
    player = Player(LossView(training(falling(30))))
    assert player.marks == {9: "test at step 10", 19: "test at step 20", 29: "test at step 30"}
    assert Player(LossView(training(falling(5)))).marks[2] == "step 3"


def test_of_very_many_marks_some_are_drawn_and_all_are_found():
    player = Player(LossView(training(falling(3000), every=10**9)))
    assert len(player.marks) == 400
    player.next_mark()
    assert player.transport.index == 1


def test_a_recording_without_marks_has_no_use_for_their_buttons():
    player = Player(recorded([]))
    assert player.widget is not None
    assert player._controls["Next mark"].disabled
    assert player._controls["Previous mark"].disabled
    player.next_mark()
    assert player.transport.index == 0
    player.dispose()


# --- loop


def test_a_loop_is_repeated_until_it_is_ended():
    t = Transport(np.arange(1, 8))
    t.repeat(2, 4)
    t.play()
    seen = [t.index]
    for _ in range(6):
        t.tick()
        seen.append(t.index)
    assert seen == [2, 3, 4, 2, 3, 4, 2]
    assert t.playing
    t.loop = None
    while t.playing:
        t.tick()
    assert t.index == 6


def test_the_button_marks_the_beginning_then_the_end_then_no_loop():
    player = Player(product_plus_x())
    assert player.widget is not None
    player.seek(4)
    wishes(player, key="l")
    assert (player._controls["Timeline"].loop, player._controls["Loop"].description) == ([4], "Loop to here")
    player.seek(1)
    wishes(player, key="l")
    assert (player._controls["Timeline"].loop, player._controls["Loop"].description) == ([1, 4], "End loop")
    player._controls["Loop"].click()
    assert (player._controls["Timeline"].loop, player._controls["Loop"].description) == ([], "Loop")
    player.mark_loop()
    player.mark_loop()
    assert player.transport.loop == (0, 6)
    player.end_loop()
    player.loop(2)
    assert player.transport.loop == (2, 6)
    player.dispose()


def test_a_player_of_one_stop_has_nothing_to_repeat():
    player = Player(recorded([]))
    player.loop()
    assert player.transport.loop is None


@given(st.lists(st.sampled_from(["play", "tick", "seek", "mark", "grow", "end"]), max_size=40), st.integers(1, 40))
def test_a_loop_stays_within_the_stops_and_playing_within_the_loop(moves, n):
    t = Transport(np.arange(1, n + 1))
    for k, move in enumerate(moves):
        match move:
            case "seek":
                t.seek((k * 37) % (2 * n) - n // 2)
            case "mark":
                t.mark_loop()
            case "grow":
                n += 2
                t.grown(np.arange(1, n + 1))
            case "end":
                t.to_end()
            case _:
                getattr(t, move)()
        assert 0 <= t.index <= t.last
        if t.loop is not None:
            assert 0 <= t.loop[0] < t.loop[1] <= t.last
            if move == "tick" and t.playing:
                assert t.loop[0] <= t.index <= t.loop[1]


# --- bookmarks


def test_bookmarks_are_added_here_listed_gone_to_renamed_and_removed():
    player = Player(product_plus_x())
    assert player.widget is not None
    line = player._controls["Timeline"]
    player.seek(4)
    wishes(player, add="  the product \n sends its parts ")
    player.seek(1)
    player.bookmark("sum")
    assert line.bookmarks == [[1, "sum"], [4, "the product sends its parts"]]
    wishes(player, go=1)
    assert player.transport.index == 4
    wishes(player, rename=[1, "sum", "the sum"])
    assert [b.note for b in player.bookmarks] == ["the sum", "the product sends its parts"]
    wishes(player, remove=[1, "the sum"])
    wishes(player, remove=[1, "the sum"])  # a second click, before the page has heard of the first
    assert line.bookmarks == [[4, "the product sends its parts"]]
    with pytest.raises(ViewError, match="there is no such bookmark") as caught:
        player.go_to(1)
    assert len(str(caught.value).splitlines()) == 3
    for wrong in (
        {"go": 7},
        {"remove": -1},
        {"remove": [9, "x"]},
        {"rename": [9, "x", "y"]},
        {"rename": [4, "x"]},
        {"add": 3},
        {"seek": "x"},
        {"eat": 1},
        {},
        {"key": "x"},
    ):
        wishes(player, **wrong)
    assert len(player.bookmarks) == 1
    player.dispose()


def test_one_moment_has_one_bookmark_whose_note_is_edited():
    player = Player(product_plus_x())
    player.seek(4)
    assert player.bookmark("look") == player.bookmark("") == player.bookmarks[0]
    assert [b.note for b in player.bookmarks] == ["look"]
    assert player.bookmark("look here").note == "look here"
    assert [b.note for b in player.bookmarks] == ["look here"]


def test_a_bookmark_that_was_removed_can_be_put_back_once():
    player = Player(product_plus_x())
    assert player.widget is not None
    line = player._controls["Timeline"]
    for stop, note in ((1, "one"), (4, "a long note")):
        player.seek(stop)
        player.bookmark(note)
    assert line.removed == []
    wishes(player, remove=[4, "a long note"])
    assert (line.bookmarks, line.removed) == ([[1, "one"]], [4, "a long note"])
    wishes(player, undo=True)
    wishes(player, undo=True)
    assert (line.bookmarks, line.removed) == ([[1, "one"], [4, "a long note"]], [])
    player.dispose()


def test_bookmarks_are_kept_beside_a_recording_and_opened_with_it(tmp_path: Path):
    REC.save(tmp_path / "lesson.rec")
    player = Player(GraphView(REC))
    player.seek(5)
    player.bookmark("Here the gradient begins: ∂L/∂x")
    player.step()
    player.bookmark("x" * 2 * LONGEST_NOTE)
    player.save_bookmarks(tmp_path / "lesson.bookmarks.json")
    loaded = Recording.load(tmp_path / "lesson.rec")
    again = Player(GraphView(loaded), bookmarks=tmp_path / "lesson.bookmarks.json")
    assert again.bookmarks == player.bookmarks
    assert len(again.bookmarks[1].note) == LONGEST_NOTE
    again.go_to(0)
    assert again.transport.index == 5
    other_view = Player(LossView(loaded), bookmarks=tmp_path / "lesson.bookmarks.json")
    assert other_view.bookmarks == player.bookmarks


def refused(path, rec) -> str:
    with pytest.raises(ViewError) as caught:
        Player(rec, bookmarks=path)
    text = str(caught.value)
    assert len(text.splitlines()) == 3
    return text


def test_bookmarks_of_another_recording_are_refused(tmp_path: Path):
    path = tmp_path / "b.json"
    player = Player(product_plus_x())
    player.bookmark("here")
    player.save_bookmarks(path)
    assert "belong to another recording\n" in refused(path, product_plus_x(2))
    assert "this recording has 0" in refused(path, recorded([]))


def test_bookmarks_of_a_recording_that_went_on_are_those_of_its_beginning(tmp_path: Path):
    path, rec = tmp_path / "b.json", Recording(run="*")
    x = lab.tensor(2.0, requires_grad=True)
    bus.attach(rec)
    lab.exp(x)
    player = Player(GraphView(rec))
    player.bookmark("first")
    player.save_bookmarks(path)
    lab.tanh(x)
    rec.close()
    assert Player(GraphView(rec), bookmarks=path).bookmarks[0].note == "first"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "could not be read"),
        ("[1, 2", "could not be read"),
        ("[" * 100_000, "could not be read"),
        ("{}", "holds no bookmarks"),
        ("[]", "holds no bookmarks"),
        ({"schema": 99}, "written by a newer lab"),
        ({"schema": "1"}, "written by a newer lab"),
        ({"events": -1}, "are damaged"),
        ({"events": True}, "are damaged"),
        ({"bookmarks": {}}, "are damaged"),
        ({"bookmarks": [{"position": 1}]}, "number 1 is no place with a note"),
        ({"bookmarks": [{"position": True, "note": ""}]}, "number 1 is no place with a note"),
        ({"bookmarks": [{"position": 10**9, "note": ""}]}, "number 1 is no place with a note"),
        ({"bookmarks": [{"position": 0, "note": ""}] * 2000}, "are damaged"),
        ({"digest": "0"}, "belong to another recording"),
        ("x" * (MOST_BYTES + 1), "more than"),
    ],
    ids=str,
)  # fmt: skip
def test_a_file_that_is_damaged_or_hostile_is_refused_in_three_lines(tmp_path: Path, content, said):
    path, rec = tmp_path / "b.json", product_plus_x()
    Player(rec).save_bookmarks(path)
    good = json.loads(path.read_text("utf-8"))
    path.write_text(content if isinstance(content, str) else json.dumps(good | content), "utf-8")
    assert said in refused(path, rec)


def test_a_file_that_is_not_there_or_cannot_be_written_is_told(tmp_path: Path):
    assert "No such file" in refused(tmp_path / "none.json", product_plus_x())
    assert "it is no file" in refused(tmp_path, product_plus_x())
    with pytest.raises(ViewError, match="could not be saved") as caught:
        Player(product_plus_x()).save_bookmarks(tmp_path / "nowhere" / "b.json")
    assert len(str(caught.value).splitlines()) == 3


def test_saving_over_a_file_leaves_nothing_beside(tmp_path: Path):
    player = Player(product_plus_x())
    for note in ("a", "b"):
        player.bookmark(note)
        player.save_bookmarks(tmp_path / "b.json")
    assert [p.name for p in tmp_path.iterdir()] == ["b.json"]


# --- in an exported page


def test_frames_have_marks_and_notes_and_a_bookmark_is_never_left_out():
    player = Player(LossView(training(falling(2000), every=7)))
    player.seek(1234)
    player.bookmark("look")
    player.bookmarks.append(player.bookmarks[0]._replace(note="here"))  # as a file of two may have it
    frames = player.frames()
    assert [f.note for f in frames if f.note] == ["look · here"]
    assert next(f for f in frames if f.note).label == "1235 of 2000"
    assert sum(bool(f.mark) for f in frames) > 50


def test_an_exported_page_carries_them(tmp_path: Path):
    player = Player(GraphView(REC))
    player.bookmarks = [Bookmark(5, "</script> & <b>")]
    page = player.export(tmp_path / "page.html").read_text("utf-8")
    assert page.count("</script>") == 2, "the note is in the packed frames, and ends nothing"
    assert "createTimeline" in page


# --- keys


def test_every_key_does_what_its_tooltip_says():
    player = Player(GraphView(REC))
    assert player.widget is not None
    for key, index in (
        ("ArrowRight", 1),
        ("ArrowLeft", 0),
        ("]", next(iter(player.marks))),
        ("Home", 0),
        ("End", player.transport.last),
    ):
        wishes(player, key=key)
        assert player.transport.index == index
    wishes(player, key="[")
    assert player.transport.index < player.transport.last
    wishes(player, key=" ")
    assert player.transport.playing
    wishes(player, key=" ")
    assert not player.transport.playing
    player.dispose()
    assert player.wait(60)
