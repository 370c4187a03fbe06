"""Cards: the front of predictions and exercises in a notebook, without a browser."""

from __future__ import annotations

from typing import Any

import ipywidgets as ipw
import numpy as np
import pytest

from lab.errors import ArgumentError, PredictionError
from lab.teach import EXERCISES, Progress
from widgets import Lesson, Lines, tangent
from widgets.cards import KEPT, GapCard, PredictCard
from widgets.plots import lines


@pytest.fixture
def lesson() -> Lesson:
    return Lesson("00", progress=Progress(None))


def asked(lesson: Lesson, answer: float = 4.0, **options: Any) -> PredictCard:
    return lesson.predict("slope", "of x * x at 2", answer=lambda: answer, **options)


def words(card: GapCard) -> str:
    return str(card.words.text)


def test_a_card_says_not_yet_then_committed_then_the_gap(lesson):
    card = asked(lesson)
    assert "Not yet" in card.status.text
    card.input.value = "3"
    card.button.click()
    assert "Committed: 3. Now run on." in card.status.text
    gap = lesson.reveal("slope")
    assert "You said 3, it is 4: 1 too low." in words(gap)
    assert "You said 3, it is 4: 1 too low." in card.status.text


def test_a_reveal_before_the_commitment_waits_and_follows(lesson):
    card = asked(lesson)
    gap = lesson.reveal("slope")
    assert "Not yet: first say what you expect." in words(gap)
    assert gap.host.layout.display == "none"
    assert "4" not in gap.text
    card.input.value = "4"
    card.button.click()
    assert "You said 4, and so it is." in words(gap)
    assert gap.host.layout.display != "none"


def test_a_revealed_card_is_locked(lesson):
    card = asked(lesson)
    card.commit(3)
    lesson.reveal("slope")
    assert card.input.disabled
    assert card.button.disabled
    with pytest.raises(PredictionError, match="has been revealed"):
        card.commit(4)


def test_a_wrong_entry_is_answered_in_the_card(lesson):
    card = asked(lesson)
    card.input.value = "a lot"
    card.button.click()
    assert "a prediction is a number here" in card.status.text
    card.input.value = "4"
    card.button.click()
    assert "Committed: 4" in card.status.text


def test_enter_in_the_field_commits_to_what_is_written_there_and_leaving_it_does_not(lesson):
    card = asked(lesson)
    card.input.value = "5"
    assert card.prediction.guess is None, "it was left, and not entered"
    card.input._handle_custom_msg({"event": "submit"}, [])
    assert card.prediction.guess == 5
    card.input._handle_custom_msg({"event": "submit"}, [])  # the page says Enter before it says what is written
    card.input.value = "4"
    assert card.prediction.guess == 4


def test_an_answer_that_has_not_run_yet_keeps_the_commitment(lesson):
    ran: list[float] = []
    card = lesson.predict("slope", "", answer=lambda: ran[0])
    card.commit(4)
    gap = lesson.reveal("slope")
    assert "the code that answers this has not run" in words(gap)
    ran.append(4.0)
    assert "and so it is" in lesson.reveal("slope").text


def test_choices_need_no_plot_and_nothing_is_chosen_beforehand(lesson):
    card = lesson.predict("who", "wins", answer=lambda: "x", choices=("x", "y"))
    assert card.input.value is None
    card.button.click()
    assert "not one of the choices" in card.status.text
    card.input.value = "y"
    card.button.click()
    gap = lesson.reveal("who")
    assert gap.host is None
    assert gap.text == "You said y, it is x."


def test_asking_again_keeps_what_was_said_and_the_gaps_in_the_page(lesson):
    card = asked(lesson)
    card.commit(3)
    gap = lesson.reveal("slope")
    again = asked(lesson, answer=5.0)
    assert again.input.value == "3"
    assert "You said 3, it is 5: 2 too low." in words(gap)
    assert card.comm is None


def test_running_cells_again_leaves_few_widgets_behind(lesson):
    lesson.progress.said("00", "slope", 3.0)

    def n_widgets_after_both_cells() -> int:
        asked(lesson)
        lesson.reveal("slope")
        return len(ipw.widgets.widget._instances)

    for _ in range(KEPT):
        n_widgets_after_both_cells()
    assert n_widgets_after_both_cells() == n_widgets_after_both_cells()


def test_revealing_what_was_not_asked_says_what_was(lesson):
    asked(lesson)
    with pytest.raises(ArgumentError, match="asked so far: slope"):
        lesson.reveal("slop")


def test_every_control_of_a_card_has_a_label(lesson):
    for card in (asked(lesson), lesson.predict("who", "wins", answer=lambda: "x", choices=("x", "y"))):
        assert card.input.description == f"I expect {card.name}"
        assert card.button.description == "Commit"
        assert card.name in card.button.tooltip


def test_a_field_says_its_unit_and_takes_a_number_with_it(lesson):
    card = lesson.predict("sent", "by rank 0", answer=lambda: 1096.0, unit="B")
    words = [w.value for row in card.children for w in getattr(row, "children", ()) if isinstance(w, ipw.Label)]
    assert words == ["bytes"]
    assert card.input.placeholder == "a number in bytes"
    card.input.value = "1096 KiB"
    card.button.click()
    assert "this prediction is a number in bytes" in card.status.text
    card.input.value = "1096 bytes"
    card.button.click()
    assert "Committed: 1,096 B. Now run on." in card.status.text
    assert lesson.reveal("sent").text == "You said 1,096 B, and so it is."


def test_a_card_is_displayed_as_a_still_picture_and_a_live_one(lesson, monkeypatch):
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    asked(lesson).commit(3)
    gap = lesson.reveal("slope")
    for card in (gap, Lines("step", "loss", good=[3.0, 2.0])):
        shown.clear()
        card._ipython_display_()
        still, live = shown
        assert "<svg" in still["text/html"]
        assert still["text/plain"] == live["text/plain"] == card.text
        assert "application/vnd.jupyter.widget-view+json" in live


def test_text_of_a_lesson_cannot_become_markup(lesson):
    evil = "<script>alert(1)</script>"
    card = lesson.predict(evil, evil, answer=lambda: 1)
    texts = [card.twin(), lesson._repr_html_(), *(w.value for w in card.children if isinstance(w, ipw.HTML))]
    assert not any("<script>" in text for text in texts)
    feedback = EXERCISES["multiply_rule"].check(lambda ct, x, y: print(evil))
    assert "<script>" not in feedback._repr_html_()


def test_a_tangent_has_the_predicted_slope_and_the_true_one(lesson):
    card = asked(lesson, plot=tangent(lambda x: x * x, at=2.0))
    card.commit(3)
    lines = {trace.name: trace for trace in lesson.reveal("slope").chart().figure.data}
    slopes = {name: np.gradient(np.asarray(line.y), np.asarray(line.x))[0] for name, line in lines.items()}
    assert slopes["your prediction"] == pytest.approx(3)
    assert slopes["the run"] == pytest.approx(4)
    assert len({line.line.dash for line in lines.values()}) == 3, "told apart without colour"


def test_the_summary_counts_what_is_open(lesson):
    asked(lesson).commit(3)
    lesson.reveal("slope")
    lesson.predict("other", "", answer=lambda: 1)
    assert repr(lesson) == "slope: You said 3, it is 4: 1 too low.\nother: not yet committed"
    assert "kept until the kernel ends" in lesson._repr_html_()


def test_looking_at_a_lesson_reveals_nothing_and_locks_nothing(lesson):
    card = asked(lesson)
    card.commit(3)
    for look in (repr(lesson), lesson._repr_html_()):
        assert "slope: committed, not yet revealed" in look.replace("</td><td style='text-align:left'>", ": ")
        assert "it is" not in look
    assert card.prediction.outcome is None
    card.commit(4)
    assert "and so it is" in lesson.reveal("slope").text


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", "", ".", "0 0", "<b>", 0, None, "x" * 65])
def test_a_lesson_has_a_name_that_could_be_a_files(name):
    with pytest.raises(ArgumentError, match="a lesson has a name of letters, digits") as caught:
        Lesson(name, progress=Progress(None))
    assert caught.value.given == repr(name)
    assert caught.value.hint == 'Lesson("00"), as the first cell of the notebook says'


def test_lines_begin_where_they_are_told_to():
    (line,) = lines("ranks", "buffers", {"ring": [1.0, 1.5]}, first=2).figure.data
    assert list(line.x) == [2, 3]
    assert Lines("ranks", "buffers", first=2, ring=[1.0, 1.5]).text == "buffers by ranks: ring from 1 to 1.5"


def test_a_line_of_few_numbers_counts_them_one_by_one():
    few, many = (Lines("layer", "share", first=1, dead=[0.0] * n).picture.figure for n in (3, 100))
    assert (few.layout.xaxis.dtick, many.layout.xaxis.dtick) == (1, None)
