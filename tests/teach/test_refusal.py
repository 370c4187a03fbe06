"""Refusals shown as part of a lesson, and the workers that a lesson starts once."""

import pytest

from lab.errors import PlanError
from lab.parallel import Send, check_plan
from lab.teach import Lesson, Progress, Refusal, lesson


def test_what_is_refused_is_shown_in_its_three_lines_and_the_lesson_goes_on():
    with Lesson("10", progress=Progress(None)).refusal() as why:
        check_plan("all_reduce", lambda rank, n, k: [Send(rank, 0, 1)], 2)
    assert isinstance(why.error, PlanError)
    assert repr(why).count("\n") == 2
    assert repr(why).startswith("rank 0, step 0: sends to itself")
    assert "Refused: rank 0, step 0: sends to itself" in why._repr_html_()


def test_a_note_that_says_where_it_came_from_is_shown_below():
    with Refusal() as why:
        error = PlanError("shapes differ", given="2 and 3", hint="make them alike")
        error.add_note("graph: c = add(a, b), made by cell <5>")
        raise error
    assert repr(why).splitlines()[3:] == ["note:  graph: c = add(a, b), made by cell <5>"]
    assert "made by cell &lt;5&gt;" in why._repr_html_()


def test_what_is_not_refused_says_so():
    with Refusal() as why:
        check_plan("all_reduce", "ring", 2)
    assert repr(why) == "Nothing was refused."
    assert "Nothing was refused." in why._repr_html_()


def test_other_errors_are_not_kept_back():
    with pytest.raises(ZeroDivisionError), Refusal():
        raise ZeroDivisionError


def test_texts_of_learners_are_escaped():
    with Refusal() as why:
        raise PlanError("<b>", given="<script>", hint="<i>")
    assert "<script>" not in why._repr_html_()
    assert "<b><b>" not in why._repr_html_()


class Pretended:
    """A cluster without workers."""

    def __init__(self, n_workers):
        self.n_workers, self.client = n_workers, self
        self.status = "running"

    def close(self):
        self.status = "closed"


@pytest.fixture
def pretended(monkeypatch):
    monkeypatch.setattr(lesson, "Cluster", Pretended)
    monkeypatch.setattr(lesson, "_CLUSTERS", {})


def test_workers_are_started_once_whichever_lesson_asks_and_anew_after_they_were_closed(pretended):
    first = Lesson("10", progress=Progress(None)).cluster(4)
    assert Lesson("15", progress=Progress(None)).cluster(4) is first
    first.close()
    again = Lesson("10", progress=Progress(None)).cluster(4)
    assert again is not first
    assert again.status == "running"


def test_another_number_of_workers_takes_the_place_of_the_first(pretended):
    one = Lesson("10", progress=Progress(None))
    four = one.cluster(4)
    assert one.cluster(2).n_workers == 2
    assert four.status == "closed"
