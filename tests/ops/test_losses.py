"""Losses where their numbers are extreme, and a second opinion on their values."""

import numpy as np
import pytest
import scipy.special as sp
import scipy.stats as st

import lab
from lab.errors import LabError
from tests.numerics import close


def test_bce_keeps_its_digits_where_it_is_tiny_and_does_not_overflow():
    x = np.array([40.0, -40.0, 800.0, -800.0, 0.0])
    right = (x > 0).astype(float)
    close(lab.bce_with_logits(x, right, reduction="none"), np.log1p(np.exp(-np.abs(x))), rtol=1e-14)
    close(lab.bce_with_logits(x, 1 - right, reduction="none")[2:4], [800.0, 800.0])
    close(lab.grad(lab.bce_with_logits)(np.zeros(1), np.zeros(1)), [0.5])  # there is no kink at 0


def test_kl_is_scipys_relative_entropy_and_a_target_of_0_counts_nothing():
    p, q = np.array([[0.0, 0.25, 0.75]]), np.array([[0.2, 0.3, 0.5]])
    assert float(lab.kl(np.log(q), p)) == pytest.approx(st.entropy(p[0], q[0]))


def test_huber_is_scipys():
    x = np.linspace(-3, 3, 13)
    close(lab.huber(x, np.zeros(13), delta=0.7, reduction="none"), sp.huber(0.7, x))


def test_cross_entropy_is_nll_of_log_softmax_also_of_impossible_classes():
    x, y = np.array([[1.0, -np.inf, 0.5], [0.0, 2.0, 1.0]]), np.array([2, 1])
    found = lab.nll(lab.log_softmax(x), y, reduction="none")
    close(found, lab.cross_entropy(x, y, reduction="none"))
    close(lab.vmap(lambda row, label: lab.nll(row, label))(lab.log_softmax(x), y), found)


def test_reductions_are_sums_and_means_of_the_losses_of_each():
    x, y = np.random.default_rng(0).normal(size=(6, 4)), np.arange(6) % 4
    each = lab.cross_entropy(x, y, reduction="none")
    close(lab.cross_entropy(x, y, reduction="sum"), lab.sum(each))
    close(lab.cross_entropy(x, y), lab.mean(each))
    weights = np.arange(6.0)
    slope = lab.grad(lambda z: lab.sum(weights * lab.cross_entropy(z, y, reduction="none")))(x)
    close(slope, weights[:, None] * (sp.softmax(x, axis=1) - np.eye(4)[y]))


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: lab.nll(np.zeros((2, 3)), np.array([0, 3])), "nll met a label outside the classes"),
        (lambda: lab.nll(np.zeros((2, 3)), np.array([0, -1])), "nll met a label outside the classes"),
        (lambda: lab.nn.mse(np.zeros((2, 1)), np.zeros(2)), "mse compares equal shapes\ngiven: (2, 1) and (2,)"),
    ],
)
def test_what_does_not_fit_is_refused(call, problem):
    with pytest.raises(LabError) as caught:
        call()
    assert str(caught.value).startswith(problem)
