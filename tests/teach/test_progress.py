"""Progress is one small file: whole or not there, read without running anything, and never in the way of the lesson."""

import json
import os
from pathlib import Path

import pytest

from lab.errors import ArgumentError, DataError
from lab.teach import EXERCISES, Lesson, Progress
from lab.teach.lesson import default_path
from lab.teach.progress import read


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "my_progress.json"


def test_what_was_committed_and_checked_is_there_in_the_next_session(path):
    lesson = Lesson("00", progress=Progress(path))
    lesson.prediction("slope", "the slope", answer=lambda: 4.0)
    lesson.commit("slope", 3)

    def multiply_rule(ct, x, y):
        return ct * y, ct * x

    assert lesson.check(multiply_rule).passed

    again = Lesson("00", progress=Progress(path))
    prediction = again.prediction("slope", "the slope", answer=lambda: 4.0)
    assert prediction.guess == 3
    assert again.progress.chapter("00")["exercises"]["multiply_rule"]["passed"]
    assert "def multiply_rule" in again.progress.chapter("00")["exercises"]["multiply_rule"]["source"]
    assert again.summary()[0] == ("slope", "committed, not yet revealed")
    prediction.reveal()
    assert again.summary() == [
        ("slope", "You said 3, it is 4: 1 too low."),
        ("exercise multiply_rule", "passed"),
    ]


def test_hints_advance_with_different_wrong_answers_and_not_with_the_same_one(path):
    lesson = Lesson("00", progress=Progress(path))

    def multiply_rule(ct, x, y):
        return 7.0 + 0 * x, 8.0

    first = lesson.check(multiply_rule).hint
    assert lesson.check(multiply_rule).hint == first

    def multiply_rule(ct, x, y):
        return 7.5 + 0 * x, 8.0

    assert lesson.check(multiply_rule).hint != first


def test_an_untouched_stub_is_no_try_and_does_not_hide_the_last_answer(path, monkeypatch):
    lesson = Lesson("00", progress=Progress(path))

    def multiply_rule(ct, x, y):
        return 7.0 + 0 * x, 8.0

    def check(source):
        monkeypatch.setattr("lab.teach.lesson.source_of", lambda _: source)
        lesson.check(multiply_rule)
        return read(path)["00"]["exercises"]["multiply_rule"]

    stub = EXERCISES["multiply_rule"].stub
    assert check(stub + "\n")["tries"] == 0
    assert lesson.summary() == [("exercise multiply_rule", "not yet tried")]
    assert check("mine") == {"passed": False, "tries": 1, "source": "mine"}
    assert check(stub) == {"passed": False, "tries": 1, "source": "mine"}
    assert lesson.summary() == [("exercise multiply_rule", "not yet, 1 try")]


def test_a_passed_exercise_stays_passed(path):
    progress = Progress(path)
    progress.tried("00", "multiply_rule", passed=True, source="a")
    progress.tried("00", "multiply_rule", passed=False, source="b")
    assert read(path)["00"]["exercises"]["multiply_rule"] == {"passed": True, "tries": 1, "source": "b"}


def test_two_notebooks_write_their_lessons_into_one_file(path):
    one, two = Progress(path), Progress(path)
    one.said("00", "slope", 4.0)
    two.said("01", "slope", 5.0)
    one.said("00", "other", 6.0)
    assert set(read(path)) == {"00", "01"}


def test_a_question_that_has_changed_is_asked_again(path):
    Progress(path).said("00", "slope", 4.0)
    lesson = Lesson("00", progress=Progress(path))
    assert lesson.prediction("slope", "up or down?", answer=lambda: "up", choices=("up", "down")).guess is None


def test_a_lesson_can_be_begun_anew(path):
    progress = Progress(path)
    progress.said("00", "slope", 4.0)
    progress.forget("00")
    assert read(path)["00"]["predictions"] == {}


def with_lessons(lessons: str) -> str:
    return f'{{"format": "autodiff-lab progress", "version": 1, "lessons": {lessons}}}'


BAD = {
    "empty": "",
    "no json": "{",
    "another program's": '{"a": 1}',
    "a list": "[]",
    "newer": '{"format": "autodiff-lab progress", "version": 99, "lessons": {}}',
    "deep": "[" * 200_000,
    "nan": with_lessons('{"00": {"predictions": {"a": {"value": NaN}}, "exercises": {}}}'),
    "a flag for a number": with_lessons('{"00": {"predictions": {"a": {"value": true}}, "exercises": {}}}'),
    "strange": with_lessons('{"00": {"predictions": [], "exercises": {}}}'),
    "no tries": with_lessons('{"00": {"predictions": {}, "exercises": {"a": {"passed": true}}}}'),
    "large": " " * 2_000_001,
    "no text": "\udcff",
}


@pytest.mark.parametrize("kind", BAD)
def test_a_damaged_file_is_refused_set_aside_and_kept(kind, path):
    path.write_text(BAD[kind], errors="surrogateescape")
    with pytest.raises(DataError):
        read(path)
    progress = Progress(path)
    assert "set aside as my_progress.json.damaged" in progress.notice
    assert path.with_name("my_progress.json.damaged").read_bytes() == BAD[kind].encode(errors="surrogateescape")
    progress.said("00", "slope", 4.0)
    assert read(path)["00"]["predictions"] == {"slope": {"value": 4.0}}


def test_a_write_that_fails_midway_leaves_the_old_file_whole(path, monkeypatch):
    progress = Progress(path)
    progress.said("00", "slope", 4.0)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    progress.said("00", "slope", 5.0)
    assert "not saved" in progress.notice
    assert "No space left" in progress.notice
    assert read(path)["00"]["predictions"]["slope"]["value"] == 4.0
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_folder_that_is_not_there_does_not_stop_the_lesson(tmp_path):
    progress = Progress(tmp_path / "gone" / "my_progress.json")
    progress.said("00", "slope", 4.0)
    assert progress.chapter("00")["predictions"]["slope"]["value"] == 4.0
    assert "not saved" in progress.notice


def test_text_of_learners_comes_back_as_it_was(path):
    text = "\U0001f600 \u202e </script> __proto__ \u0000 \ud7ff"
    Progress(path).tried("00", "multiply_rule", passed=False, source=text)
    assert Progress(path).chapter("00")["exercises"]["multiply_rule"]["source"] == text
    json.loads(path.read_text(), parse_constant=pytest.fail)


def test_the_place_of_the_file_can_be_named(monkeypatch, tmp_path):
    monkeypatch.setenv("LAB_PROGRESS", str(tmp_path / "a.json"))
    assert default_path() == tmp_path / "a.json"
    monkeypatch.setenv("LAB_PROGRESS", "")
    assert default_path() is None
    monkeypatch.delenv("LAB_PROGRESS")
    monkeypatch.chdir(tmp_path)
    assert default_path() == tmp_path / "my_progress.json"


def test_a_check_of_an_unknown_name_lists_the_names_there_are():
    def multiplyrule(ct, x, y):
        return ct

    with pytest.raises(ArgumentError, match="the function keeps the name of its stub: multiply_rule"):
        Lesson("00", progress=Progress(None)).check(multiplyrule)


def test_committing_to_an_unknown_question_says_which_were_asked():
    with pytest.raises(ArgumentError, match="asked so far: none"):
        Lesson("00", progress=Progress(None)).commit("slope", 1)
