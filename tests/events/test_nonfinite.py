"""first_nonfinite: the operation in which nan or infinity began, its line, and what went in."""

from __future__ import annotations

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, RecordingError
from lab.events import Recording, first_nonfinite


def leaf(value, name="x"):
    return lab.tensor(value, requires_grad=True, name=name)


def recorded(f, detail="value"):
    with lab.record(detail=detail) as rec, np.errstate(all="ignore"):
        f()
    return rec


def test_a_value_is_told_with_its_operation_line_and_the_range_of_what_went_in():
    x = leaf([2.0, 0.5, -1.0])
    found = first_nonfinite(recorded(lambda: lab.exp(lab.log(x * 2.0)) + 1.0))
    assert found.role == "value"
    assert (found.place.op, found.n_entries, found.what) == ("log", 1, "1 nan of 3 entries")
    assert found.text.splitlines()[0] == "first nan or infinity: 1 nan of 3 entries in log"
    assert found.text.splitlines()[1].startswith("at line ")
    assert "lab.log(x * 2.0)" in found.place.text
    assert found.text.splitlines()[2] == "with multiply from -2.0 to 4.0"
    assert (found.operands[0].minimum, found.operands[0].maximum) == (-2.0, 4.0)


def test_a_rule_that_makes_it_is_told_with_the_gradient_that_came_in():
    x = leaf([4.0, 0.0])
    found = first_nonfinite(recorded(lambda: (lab.sqrt(x) * 3.0).sum().backward()))
    assert (found.role, found.place.op, found.what) == ("contribution", "sqrt", "1 infinity of 2 entries")
    assert str(found.incoming) == "incoming gradient 3.0"
    assert [str(r) for r in found.operands] == ["x from 0.0 to 4.0"]


def test_what_a_leaf_brought_is_its_own():
    x = leaf([1.0, np.nan, np.inf])
    found = first_nonfinite(recorded(lambda: x * 2.0))
    assert found.text == "first nan or infinity: 1 nan and 1 infinity of 3 entries in leaf x"
    assert found.operands == ()


def test_a_constant_is_told_as_it_was():
    found = first_nonfinite(recorded(lambda: leaf(1.0) / 0.0))
    assert [str(r) for r in found.operands] == ["x 1.0", "constant 0"]


def test_statistics_are_enough_and_nan_is_not_told_from_infinity():
    x = leaf(np.linspace(-1.0, 1.0, 10_000))
    for detail in ("statistics", "value"):  # too many entries to be kept
        found = first_nonfinite(recorded(lambda: lab.log(x), detail))
        assert found.what == "5000 not finite of 10000 entries"


def test_forward_mode_is_looked_at_too():
    found = first_nonfinite(recorded(lambda: lab.jvp(lambda x: lab.sqrt(x) + 1.0, (0.0,), (1.0,))))
    assert (found.role, found.place.op) == ("tangent", "sqrt")
    assert [str(r) for r in found.operands] == ["x 0.0"]


def test_where_everything_is_finite_there_is_none():
    assert first_nonfinite(recorded(lambda: leaf(1.0) * 2.0)) is None
    assert first_nonfinite(Recording()) is None


def test_a_recording_without_values_says_how_to_get_them():
    rec = recorded(lambda: lab.log(leaf(-1.0)), detail="shape")
    with pytest.raises(RecordingError) as caught:
        first_nonfinite(rec)
    assert str(caught.value).splitlines() == [
        "this recording holds no values to look at", 'given: a recording of detail "shape"',
        'hint:  record again with lab.record(detail="statistics")',
    ]  # fmt: skip
    with pytest.raises(ArgumentError, match="looked for in a recording"):
        first_nonfinite([1.0])


def test_a_recording_says_the_same_after_it_was_saved(tmp_path):
    x = leaf([4.0, 0.0])
    rec = recorded(lambda: (lab.sqrt(x) * 3.0).sum().backward())
    path = tmp_path / "broken.lab"
    rec.save(path)
    assert first_nonfinite(Recording.load(path)).text == first_nonfinite(rec).text
