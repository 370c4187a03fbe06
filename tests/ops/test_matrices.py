"""Contractions and linear algebra: NumPy's spellings, a second opinion on gradients, and what is at the edge."""

import autograd
import autograd.numpy as anp
import numpy as np
import pytest

import lab
from lab.errors import LabError
from lab.ops import contraction
from tests.numerics import close, numeric_grad


def rng():
    return np.random.default_rng(7)


def definite(*shape):
    x = rng().normal(size=shape)
    return x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])


# --- einsum -----------------------------------------------------------------------------------------------------------

SPELLINGS = {
    "ij,jk->ik": [(2, 3), (3, 4)],
    "ba": [(2, 3)],
    "ii": [(3, 3)],
    "iii->i": [(3, 3, 3)],
    "iij,jk->ik": [(2, 2, 3), (3, 2)],
    "ij->": [(2, 3)],
    "ij,kj->k": [(2, 3), (4, 3)],
    "i,j": [(2,), (3,)],
    "i,i->i": [(3,), (3,)],
    "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)],
    "bij,bj->bi": [(2, 3, 4), (2, 4)],
    "...ij,...jk": [(5, 1, 2, 3), (4, 3, 2)],
    "i...,i...->...": [(2, 3), (2, 1, 3)],
    "ij,ij->ij": [(1, 3), (2, 1)],
    "ab,bc,cd,de->ae": [(2, 3), (3, 4), (4, 2), (2, 3)],
    "a,ab,abc->abc": [(2,), (2, 3), (2, 3, 2)],
    "ij,,j->i": [(2, 3), (), (3,)],
    "->": [()],
    "ij,jk->ki": [(0, 3), (3, 2)],
}  # fmt: skip


@pytest.mark.parametrize("subscripts", SPELLINGS)
def test_einsum_is_numpys_and_its_gradient_is_autograds(subscripts):
    xs = [rng().normal(size=shape) for shape in SPELLINGS[subscripts]]
    expected = np.einsum(subscripts, *xs)
    close(np.einsum(subscripts, *map(lab.tensor, xs)), expected)
    ct = rng().normal(size=expected.shape)
    _, back = lab.vjp(lambda *ys: lab.einsum(subscripts, *ys), *xs)
    for i, found in enumerate(back(ct)):
        alone = lambda x, i=i: anp.sum(ct * anp.einsum(subscripts, *xs[:i], x, *xs[i + 1 :]))  # noqa: E731
        repeats = any(len(set(term)) < len(term) for term in subscripts.split("->")[0].replace("...", "").split(","))
        expected = numeric_grad(alone, xs[i]) if repeats else autograd.grad(alone)(xs[i])  # which autograd refuses
        close(found, expected, rtol=1e-8, atol=1e-9)


def test_einsum_keeps_integers_and_sums_float16_in_float32():
    a = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert lab.einsum("ij->i", a).dtype == np.int32
    assert lab.einsum("i,i", np.ones(5000, np.float16), np.ones(5000, np.float16)) == 5000


def test_einsum_of_no_text_is_told_how_to_begin():
    with pytest.raises(LabError, match="einsum begins with its subscripts"):
        lab.einsum(np.ones(2), np.ones(2))


def test_a_chain_of_products_is_taken_in_the_order_that_costs_least():
    steps = contraction._order("ij,jk,kl->il", ((1000, 2), (2, 1000), (1000, 2)))
    assert [sorted(step) for step in steps] == [[1, 2], [0, 1]]


# --- linear algebra ---------------------------------------------------------------------------------------------------

SECOND_OPINIONS = {
    "inv": (lambda m, a: m.linalg.inv(a), definite(2, 3, 3)),
    "solve": (lambda m, a: m.linalg.solve(a, np.array([1.0, -2.0, 0.5])), definite(3, 3)),
    "solve columns": (lambda m, a: m.linalg.solve(a, np.ones((2, 3, 2))), definite(2, 3, 3)),
    "det": (lambda m, a: m.linalg.det(a), definite(2, 3, 3)),
    "slogdet": (lambda m, a: m.linalg.slogdet(a)[1], definite(2, 3, 3)),
    "cholesky": (lambda m, a: m.linalg.cholesky(a), definite(2, 3, 3)),
    "dot": (lambda m, a: m.dot(a, np.arange(12.0).reshape(2, 3, 2)), definite(3, 3)),
    "tensordot": (lambda m, a: m.tensordot(a, a, ((0, 1), (1, 0))), definite(3, 3)),
    "kron": (lambda m, a: m.kron(a, np.ones((2, 1))), definite(2, 2)),
    "outer": (lambda m, a: m.outer(a[0], a[1]), definite(2, 2)),
    "inner": (lambda m, a: m.inner(a, a), definite(2, 2)),
}


@pytest.mark.parametrize("name", SECOND_OPINIONS)
def test_numpys_spelling_has_autograds_gradient(name):
    f, a = SECOND_OPINIONS[name]
    value = f(np, a)
    close(f(np, lab.tensor(a)), value, rtol=1e-10)
    ct = np.asarray(rng().normal(size=np.shape(value)))
    close(lab.grad(lambda x: lab.sum(ct * f(np, x)))(a), autograd.grad(lambda x: anp.sum(ct * f(anp, x)))(a), rtol=1e-9)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_first_and_second_derivative_of_det_are_right_at_singular_matrices(rank):
    a = rng().normal(size=(3, rank)) @ rng().normal(size=(rank, 3))
    close(lab.grad(lab.det)(a), numeric_grad(np.linalg.det, a), rtol=1e-6, atol=1e-9)
    v = rng().normal(size=(3, 3))
    expected = numeric_grad(lambda x: np.sum(v * lab.cofactors(x)), a)
    found = lab.grad(lambda x: lab.sum(v * lab.grad(lab.det)(x)))(a)
    close(found, expected, rtol=1e-6, atol=1e-8)
    close(lab.jvp(lab.grad(lab.det), (a,), (v,))[1], expected, rtol=1e-6, atol=1e-8)


def test_the_third_derivative_of_det_is_right_where_there_is_an_inverse():
    a, v = definite(3, 3), rng().normal(size=(3, 3))

    def along(x):
        return lab.grad(lambda y: lab.sum(v * lab.grad(lab.det)(y)))(x)

    third = lab.grad(lambda x: lab.sum(v * along(x)))(a)
    close(third, 2 * lab.cofactors(v), rtol=1e-8)  # det(a + t v) has t**3 det(v): d/da of the t**2 part is 2 cof(v)


def test_cofactors_of_nan_are_nan_and_leave_other_matrices_alone():
    a = np.stack([np.eye(2), np.full((2, 2), np.nan)])
    found = lab.cofactors(a)
    close(found[0], np.eye(2))
    assert np.isnan(found[1]).all()


def test_the_logarithm_of_a_determinant_does_not_overflow_and_knows_its_sign():
    a = 1e3 * np.eye(200)
    assert float(lab.logdet(a)) == pytest.approx(200 * np.log(1e3))
    sign, size = lab.slogdet(np.diag([-2.0, 3.0]))
    assert (float(sign), float(size)) == (-1.0, pytest.approx(np.log(6)))
    with np.errstate(invalid="ignore"):
        assert np.isnan(float(lab.logdet(np.diag([-2.0, 3.0]))))


def test_a_matrix_that_is_not_symmetric_is_factored_by_its_symmetric_part():
    a = definite(3, 3) + np.array([[0.0, 0.3, 0], [-0.3, 0, 0], [0, 0, 0]])
    close(lab.cholesky(a), np.linalg.cholesky((a + a.T) / 2))
    slope = np.asarray(lab.grad(lambda x: lab.sum(lab.cholesky(x)))(a))
    close(slope, slope.T)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: lab.inv(np.ones((2, 2))), "inv met a singular matrix\ngiven: shape (2, 2), smallest rank 1"),
        (lambda: lab.solve(np.zeros((2, 2)), np.ones(2)), "solve met a singular matrix"),
        (lambda: lab.cholesky(-np.eye(2)), "cholesky needs positive definite matrices\ngiven: shape (2, 2), smallest"),
        (lambda: lab.grad(lab.logabsdet)(np.ones((2, 2))), "the gradient of log(abs(det)) met a singular matrix"),
        (lambda: np.linalg.eigvalsh(lab.tensor(np.eye(2))), "np.linalg.eigvalsh does not work on a tensor"),
        (lambda: np.einsum("ij", lab.tensor(np.eye(2)), dtype="float32"), "np.einsum on a tensor was called"),
    ],
)
def test_what_has_no_answer_says_why(call, problem):
    with pytest.raises(LabError) as caught:
        call()
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize("f", [lab.inv, lab.det, lab.logdet, lab.cholesky, lab.cofactors], ids=str)
def test_halves_integers_and_empty_matrices_are_taken(f):
    half, whole = lab.tensor(np.eye(2, dtype=np.float16), requires_grad=True), f(np.eye(2, dtype=int))
    out = f(half)
    lab.sum(out).backward()
    assert (out.dtype, half.grad.dtype, whole.dtype) == (np.float16, np.float16, np.float64)
    close(half.grad, half.grad.numpy())
    assert f(np.ones((0, 3, 3))).shape[0] == 0
    assert f(np.ones((0, 0))).size in (0, 1)


def test_a_transposed_matrix_is_numpys_mt():
    a = np.arange(6.0).reshape(1, 2, 3)
    close(lab.tensor(a).mT, a.mT)
