"""Lesson 03: the usual engine is right where it claims to be and wrong where the lesson says, and a class can be
checked."""

import pickle

import numpy as np
import pytest

from lab.teach import EXERCISES, SOLUTIONS, Lesson, Progress, usual
from lab.teach.exercises.expressions import LONG, ONCE, ROOTS, TWICE, gradients
from lab.teach.exercises.walks import walk_all
from lab.teach.pack import pack
from lab.teach.source import source_of
from tests.teach.answers import PARTS, typed


@pytest.mark.parametrize("text", ONCE)
def test_the_usual_engine_agrees_with_the_lab_for_one_walk(text):
    assert walk_all(usual.Value.backward, text, 2.0, 3.0) == pytest.approx(gradients(text, 2.0, 3.0))


@pytest.mark.parametrize("text", TWICE)
def test_the_usual_engine_is_wrong_when_values_are_walked_again(text):
    assert walk_all(usual.Value.backward, text, 2.0, 3.0) != pytest.approx(gradients(text, 2.0, 3.0))


def test_the_usual_engine_calls_itself_too_deep_for_a_long_computation():
    x, y = usual.Value(2.0), usual.Value(3.0)
    (root,) = ROOTS[LONG](x, y)
    with pytest.raises(RecursionError):
        root.backward()


def test_the_lab_agrees_with_central_differences_where_it_is_the_oracle():
    for text in ONCE:
        (above,), (below,) = ROOTS[text](2 + 1e-4, 3.0), ROOTS[text](2 - 1e-4, 3.0)
        assert gradients(text, 2.0, 3.0)[0] == pytest.approx((above - below) / 2e-4)


def test_a_class_travels_with_slots_properties_and_static_methods():
    kind = pickle.loads(pack(typed(PARTS, "Value")))
    product = kind(2.0) * kind(3.0)
    assert (product.number, list(product.rule(10.0))) == (6.0, [20.0, 30.0])  # its parents stand the other way round


def test_a_class_of_a_notebook_is_found_in_its_cell_and_its_stub_is_no_try(tmp_path):
    stub = tmp_path / "cell.py"
    stub.write_text(f"before = 1\n\n{EXERCISES['Value'].stub}\n\nafter = 2\n")
    scope = {"__name__": "__main__", "np": np}
    exec(compile(stub.read_text(), str(stub), "exec"), scope)
    assert source_of(scope["Value"]) == EXERCISES["Value"].stub
    lesson = Lesson("03", progress=Progress(None))
    assert not lesson.check(scope["Value"]).passed
    assert dict(lesson.summary())["exercise Value"] == "not yet tried"
    assert lesson.check(typed(SOLUTIONS["Value"], "Value")).passed
    assert dict(lesson.summary())["exercise Value"] == "passed"


def test_an_error_in_a_class_shows_the_learners_own_line(tmp_path):
    cell = tmp_path / "cell.py"
    cell.write_text(EXERCISES["Value"].stub.replace("Value(self.data * other.data)", "Value(self.data / 0)"))
    scope = {"__name__": "__main__"}
    exec(compile(cell.read_text(), str(cell), "exec"), scope)
    assert "in the line  return Value(self.data / 0)" in EXERCISES["Value"].check(scope["Value"]).text


@pytest.mark.parametrize("thing", [len, int, 3, type("Made", (), {})])
def test_what_was_not_written_in_a_file_has_no_source(thing):
    assert source_of(thing) == ""
