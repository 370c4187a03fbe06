"""Lesson 04: the usual dual number is right along one direction, and wrong, as the lesson says, inside itself."""

import pytest

import lab
from lab.teach.dual import Dual
from lab.teach.exercises.duals import FORMULAS, through


@pytest.mark.parametrize("text", FORMULAS)
def test_a_dual_number_says_what_jvp_says(text):
    value, tangent = lab.jvp(FORMULAS[text], (0.7, 1.2), (1.5, -0.5))
    assert through(Dual, text, (0.7, 1.5), (1.2, -0.5)) == pytest.approx((value.item(), tangent.item()))


def test_nested_dual_numbers_mix_up_their_tangents_and_the_lab_does_not():
    def slope(f, x):
        return f(Dual(x, 1.0)).tangent

    assert slope(lambda x: x * Dual(slope(lambda y: x + y, 1.0)), 1.0) == 2.0
    assert lab.grad(lambda x: x * lab.grad(lambda y: x + y)(1.0))(1.0).item() == 1.0
