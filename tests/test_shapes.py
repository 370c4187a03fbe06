"""Broadcasting and axes against NumPy, for random shapes."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from lab.errors import ShapeError
from lab.shapes import Spec, broadcast, folded_axes, kept, normal_axes, reduced, resolve_reshape

shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)


@given(st.lists(shapes, max_size=3))
def test_broadcast_is_numpys(many):
    try:
        expected = np.broadcast_shapes(*many)
    except ValueError:
        with pytest.raises(ShapeError, match="cannot broadcast its operands"):
            broadcast(*many)
    else:
        assert broadcast(*many) == expected


@given(shapes, st.data())
def test_reduced_is_numpys(shape, data):
    axes = data.draw(st.none() | st.integers(-5, 5) | st.lists(st.integers(-5, 5), max_size=3).map(tuple))
    keepdims = data.draw(st.booleans())
    try:
        expected = np.zeros(shape).sum(axis=axes, keepdims=keepdims).shape
    except ValueError:
        with pytest.raises(ShapeError):
            reduced(shape, axes, keepdims)
        return
    if shape == () and axes in {0, -1}:  # NumPy lets them pass for a single number
        with pytest.raises(ShapeError):
            reduced(shape, axes, keepdims)
        return
    assert reduced(shape, axes, keepdims) == expected
    assert kept(shape, axes) == np.zeros(shape).sum(axis=axes, keepdims=True).shape


@given(shapes, st.data())
def test_a_gradient_summed_over_the_folded_axes_fits_its_operand(wide, data):
    cut = data.draw(st.integers(0, len(wide)))
    narrow = tuple(1 if data.draw(st.booleans()) else d for d in wide[cut:])
    folded = np.ones(wide).sum(axis=folded_axes(wide, narrow))
    assert folded.reshape(narrow).shape == narrow
    assert folded.sum() == np.prod(wide)


@given(shapes, st.lists(st.integers(-1, 6), max_size=3))
def test_resolve_reshape_is_numpys(shape, wanted):
    try:
        expected = np.zeros(shape).reshape(wanted).shape
    except ValueError:
        with pytest.raises(ShapeError, match="reshape"):
            resolve_reshape(shape, wanted)
    else:
        assert resolve_reshape(shape, wanted) == expected


def test_messages_show_what_was_given():
    with pytest.raises(ShapeError) as caught:
        broadcast((3, 4), (3, 2), op="add")
    assert str(caught.value) == (
        "add cannot broadcast its operands\ngiven: (3, 4) and (3, 2)\nhint:  trailing dimensions must be equal or 1"
    )
    with pytest.raises(ShapeError, match="sum over an axis that the array does not have\ngiven: axis 3 of 2 axes"):
        normal_axes(3, 2, op="sum")
    with pytest.raises(ShapeError, match="an axis must be an integer"):
        normal_axes("x", 2, op="sum")
    with pytest.raises(ShapeError, match="an axis must be an integer"):
        normal_axes((0, 1.5), 2, op="sum")


def test_numpy_integers_are_axes():
    assert normal_axes(np.int64(-1), 3) == (2,)
    assert normal_axes([np.int32(0), 2], 3) == (0, 2)


def test_a_spec_counts_its_entries():
    spec = Spec((2, 0, 3), np.dtype("f8"))
    assert (spec.ndim, spec.size) == (3, 0)
    assert Spec((), np.dtype("f8")).size == 1
