"""Normalisation, dropout, embedding and attention: what must hold whatever the numbers."""

import autograd
import autograd.numpy as anp
import numpy as np
import pytest

import lab
from lab.errors import LabError
from lab.ops import scaled_dot_product_attention as attention
from tests.numerics import array, close


def draw(*shape, dtype="float64"):
    return np.random.default_rng(3).normal(size=shape).astype(dtype)


# --- normalisation ----------------------------------------------------------------------------------------------------


def by_autograd(x, scale, shift):
    middle = anp.mean(x, axis=-1, keepdims=True)
    return (x - middle) / anp.sqrt(anp.mean((x - middle) ** 2, axis=-1, keepdims=True) + 1e-5) * scale + shift


def test_layer_norm_has_autograds_gradients_in_one_pass_and_in_ops():
    operands, ct = (draw(5, 7), draw(7), draw(2, 7)[1]), draw(5, 7) ** 2
    for i in range(3):
        loss = lambda p, i=i: anp.sum(ct * by_autograd(*operands[:i], p, *operands[i + 1 :]))  # noqa: E731
        expected = autograd.grad(loss)(operands[i])
        leaves = [lab.tensor(v, requires_grad=True) for v in operands]
        lab.layer_norm(*leaves).backward(ct)
        close(leaves[i].grad, expected, rtol=1e-10)
        close(lab.vjp(lab.layer_norm, *operands)[1](ct)[i], expected, rtol=1e-10)


def test_layer_norm_of_float32_keeps_its_digits_far_from_zero():
    x, even = draw(3, 5000, dtype="float32"), (np.ones(5000, "float32"), np.zeros(5000, "float32"))
    far = x + np.float32(1e3)
    exact = lab.standardize(far.astype(float))
    close(lab.layer_norm(far, *even), exact, rtol=1e-3, atol=2e-4)
    assert abs(array(lab.layer_norm(far, *even)).mean()) < 1e-4


def test_norms_of_float16_are_taken_in_float32():
    x = np.full((1, 4000), 200, np.float16)
    x[0, ::2] = 100  # the sum of squares overflows float16
    for found in (lab.standardize(x), lab.layer_norm(x, np.ones(4000, np.float16), np.zeros(4000, np.float16))):
        assert found.dtype == np.float16
        close(np.unique(found), np.array([-1, 1], np.float16))


def test_batch_norm_in_use_is_batch_norm_in_training_when_given_the_batchs_own_moments():
    x, scale, shift = draw(6, 3, 4), draw(3), draw(2, 3)[1]
    trained = lab.batch_norm(x, scale, shift)
    close(lab.batch_norm(x, scale, shift, mean=x.mean((0, 2)), variance=x.var((0, 2))), trained)
    close(array(trained).mean((0, 2)), shift)


def test_group_norm_of_one_group_is_layer_norm_and_of_all_instance_norm():
    x, one, zero = draw(2, 4, 5), np.ones(4), np.zeros(4)
    close(lab.group_norm(x, one, zero), lab.standardize(x, axis=(1, 2)))
    close(lab.group_norm(x, one, zero, n_groups=4), lab.standardize(x, axis=2))


# --- dropout, embedding -----------------------------------------------------------------------------------------------


def test_dropout_keeps_the_mean_and_is_decided_by_its_key():
    key, x = lab.random_key(0), np.ones((200, 200))
    out = lab.dropout(x, key, rate=0.25)
    assert set(np.unique(out)) == {0.0, 1 / 0.75}
    assert float(lab.mean(out)) == pytest.approx(1, abs=0.02)
    close(lab.dropout(x, key, rate=0.25), out)
    close(lab.grad(lambda v: lab.sum(lab.dropout(v, key, rate=0.25)))(x), out)
    assert not np.array_equal(lab.dropout(x, lab.random_key(1), rate=0.25), out)
    close(lab.dropout(x, key, rate=0), x)
    close(lab.dropout(np.array([np.inf, np.nan]), key, rate=1), np.zeros(2))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_an_embedding_gets_the_sum_of_all_uses_of_a_row(dtype):
    table = lab.tensor(draw(4, 3, dtype=dtype), requires_grad=True)
    indices = np.array([[1, 1], [3, 1]])
    lab.sum(lab.embedding(table, indices)).backward()
    close(table.grad, np.array([0, 3, 0, 1], dtype)[:, None] * np.ones(3, dtype))


# --- attention --------------------------------------------------------------------------------------------------------


def test_a_causal_attention_does_not_see_what_comes():
    q, k, v = draw(3, 5, 2)

    def place(keys, i):
        return lab.sum(attention(q, keys, v, causal=True)[i])

    for i in range(5):
        slope = array(lab.grad(place)(k, i))
        assert slope[: i + 1].any() == (i > 0)  # the first sees itself alone, whatever its key
        assert not slope[i + 1 :].any()
    close(attention(q, k, v, causal=True), attention(q, k, v, mask=np.tri(5, dtype=bool)))


def test_who_may_look_nowhere_gets_zero_and_sends_no_gradient():
    q, k, v = draw(3, 2, 2)
    mask = np.array([[True, False], [False, False]])
    out = attention(q, k, v, mask=mask)
    close(out, np.stack([v[0], np.zeros(2)]))
    slopes = lab.grad(lambda *p: lab.sum(attention(*p, mask=mask)), argnums=(0, 1, 2))(q, k, v)
    close(slopes[0], np.zeros((2, 2)))
    close(slopes[2], [[1.0, 1.0], [0.0, 0.0]])


def test_attention_to_large_scores_does_not_overflow():
    q = 1e4 * np.eye(3)
    close(attention(q, q, np.eye(3)), np.eye(3))
    half = (100 * np.eye(3)).astype(np.float16)
    close(attention(half, half, half), half)


def test_a_mask_may_be_mapped():
    q, k, v = draw(3, 4, 2)
    masks = np.stack([np.tri(4, dtype=bool), np.eye(4, dtype=bool)])
    found = lab.vmap(lambda m: attention(q, k, v, mask=m))(masks)
    close(found, np.stack([attention(q, k, v, mask=m) for m in masks]))


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: lab.embedding(np.ones((3, 2)), np.array([3])), "embedding has no row for an index\ngiven: indices 3"),
        (lambda: lab.embedding(np.ones((3, 2)), np.array([-1])), "embedding has no row for an index"),
        (lambda: lab.dropout(np.ones(3), np.ones(2)), "dropout needs a key"),
        (lambda: lab.dropout(np.ones(3, int), lab.random_key(0)), "dropout takes floats"),
    ],
)
def test_what_does_not_fit_is_refused(call, problem):
    with pytest.raises(LabError) as caught:
        call()
    assert str(caught.value).startswith(problem)
