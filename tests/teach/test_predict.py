"""Predictions keep their order: commit, then reveal, then no more."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import ArgumentError, PredictionError
from lab.teach import Prediction


def test_reveal_is_locked_until_something_is_committed():
    p = Prediction("the slope", answer=lambda: 4.0)
    with pytest.raises(PredictionError, match="not yet: first say what you expect"):
        p.reveal()
    assert p.outcome is None


def test_a_revealed_prediction_can_no_longer_be_changed():
    p = Prediction("the slope", answer=lambda: 4.0)
    p.commit(3)
    p.commit(3.5)
    p.reveal()
    with pytest.raises(PredictionError, match="has been revealed") as why:
        p.commit(4)
    assert "You said 3.5, it is 4: 0.5 too low." in str(why.value)
    assert p.guess == 3.5


def test_a_prediction_stays_committed_when_the_code_that_answers_has_not_run():
    ran: list[float] = []
    p = Prediction("the slope", answer=lambda: ran[0])
    p.commit(4)
    with pytest.raises(PredictionError, match="the code that answers this has not run"):
        p.reveal()
    ran.append(4.0)
    assert p.reveal().right


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0, 10))
def test_the_gap_is_guess_minus_answer_and_right_means_within_tolerance(guess, answer, tolerance):
    p = Prediction("x", answer=lambda: answer, tolerance=tolerance)
    p.commit(guess)
    outcome = p.reveal()
    assert outcome.gap == guess - answer
    assert outcome.right == (abs(guess - answer) <= tolerance)
    assert outcome.text.startswith("You said ")


@pytest.mark.parametrize(
    ("said", "number"),
    [("1/3", 1 / 3), (" -3 / 4 ", -0.75), ("3,0", 3.0), ("0,5", 0.5), ("-,5", -0.5), ("1e-3", 1e-3), ("+2", 2.0),
     ("1,5/3", 0.5), ("\u22122", -2.0)],
)  # fmt: skip
def test_a_number_may_be_a_fraction_or_have_a_decimal_comma(said, number):
    p = Prediction("x", answer=lambda: number)
    p.commit(said)
    assert p.guess == number
    assert p.reveal().right


@pytest.mark.parametrize("said", ["1/0", "1/2/3", "1,2,3", "1,000.5", "/", "1/", "2**3", "__import__('os')", "1/inf"])
def test_what_could_be_read_in_two_ways_is_no_number(said):
    with pytest.raises(ArgumentError, match="a prediction is a number here") as caught:
        Prediction("x", answer=lambda: 1).commit(said)
    assert caught.value.hint == "for example 2, -0.5 or 1/3"


@pytest.mark.parametrize("value", ["four", None, math.nan, math.inf, [1]])
def test_what_is_no_number_is_refused_with_an_example(value):
    p = Prediction("x", answer=lambda: 1)
    with pytest.raises(ArgumentError, match="a prediction is a number here"):
        p.commit(value)
    assert p.guess is None


@pytest.mark.parametrize(
    ("unit", "said", "number"),
    [("B", "96 B", 96.0), ("B", "96bytes", 96.0), ("B", " 1/2 byte ", 0.5), ("%", "12,5 %", 12.5),
     ("%", "12 percent", 12.0), ("ms", "1e-3 ms", 1e-3), ("rows", "3 rows", 3.0)],
)  # fmt: skip
def test_a_number_may_stand_before_its_unit(unit, said, number):
    p = Prediction("x", answer=lambda: number, unit=unit)
    p.commit(said)
    assert p.guess == number


@pytest.mark.parametrize(
    ("unit", "said", "words"),
    [("B", "96 KiB", "this prediction is a number in bytes\ngiven: '96 KiB'\nhint:  for example 96 B"),
     ("%", "96 bytes", "this prediction is a number in percent\ngiven: '96 bytes'\nhint:  for example 96 %"),
     ("", "96 B", "this prediction is a plain number, without a unit\ngiven: '96 B'\nhint:  for example 96, if"),
     ("B", "96 parrots", "a prediction is a number here\ngiven: '96 parrots'")],
)  # fmt: skip
def test_another_unit_is_refused_by_name(unit, said, words):
    p = Prediction("x", answer=lambda: 1, unit=unit)
    with pytest.raises(ArgumentError, match=re.escape(words)):
        p.commit(said)
    assert p.guess is None


def test_choices_are_compared_as_they_are_and_others_refused():
    p = Prediction("who", answer=lambda: "x", choices=("x", "y"))
    with pytest.raises(ArgumentError, match="not one of the choices"):
        p.commit("z")
    p.commit("y")
    assert p.reveal().text == "You said y, it is x."


def test_one_choice_is_no_choice():
    with pytest.raises(ArgumentError, match="at least two choices"):
        Prediction("who", answer=lambda: "x", choices=("x",))
