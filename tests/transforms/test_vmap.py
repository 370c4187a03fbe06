"""vmap: axes in and out, what is shared, nesting, and collectives over named axes."""

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import lab
from lab.errors import ArgumentError, ConcretizationError, LabError, ShapeError
from tests.numerics import array, close

X = np.random.default_rng(0).normal(size=(3, 4, 5))


@pytest.mark.parametrize(("axis", "out"), list(itertools.product([0, 1, 2, -1, -2, -3], [0, 1, 2, -1, -2, -3])))
def test_the_axis_in_and_the_axis_out_count_from_either_end(axis, out):
    found = lab.vmap(lambda x: x * 2.0, in_axes=axis, out_axes=out)(X)
    close(found, np.moveaxis(2.0 * X, axis, out))


def test_out_axes_of_scalars_and_of_what_is_not_mapped():
    close(lab.vmap(lambda x: x.sum(), in_axes=-1)(X), X.sum((0, 1)))
    close(lab.vmap(lambda x: lab.tensor([1.0, 2.0]), out_axes=1)(X), [[1.0] * 3, [2.0] * 3])
    close(lab.vmap(lambda x: lab.tensor([1.0, 2.0]), out_axes=-1)(X), [[1.0] * 3, [2.0] * 3])


def test_arguments_may_be_shared_or_mapped_over_different_axes():
    a, b, c = X[0], X[1], np.ones(5)
    found = lab.vmap(lambda a, b, c: a * b + c, in_axes=(0, 1, None))(a, b.T, c)
    close(found, a * b + c)
    close(lab.vmap(lambda p, x: p["w"] * x, in_axes=(None, 0))({"w": 2.0}, c), 2 * c)
    close(lab.vmap(lambda p: p["w"] * p["b"])({"w": a, "b": c[:4]}), a * c[:4, None])
    close(lab.vmap(lambda x, n: x**n, in_axes=(0, None))(c, 3), c)


def test_what_is_shared_may_be_anything():
    close(lab.vmap(lambda x, mode: x if mode == "a" else -x, in_axes=(0, None))(np.ones(2), "b"), [-1.0, -1.0])
    close(lab.grad(lambda x, mode: x if mode == "a" else -x)(1.0, "b"), -1.0)


def test_axes_may_be_given_for_each_leaf_of_a_container():
    p = {"w": X[0], "b": np.ones(5)}
    close(lab.vmap(lambda p: p["w"] + p["b"], in_axes=({"w": 0, "b": None},))(p), X[0] + 1.0)
    close(
        lab.vmap(lambda p, x: p[0] * p[1] * x, in_axes=((0, None), None))((np.arange(3.0), 2.0), 5.0), [0, 10.0, 20.0]
    )


def test_axes_out_may_be_given_for_each_output():
    first, second = lab.vmap(lambda x: (x, x * 2.0), out_axes=(0, 1))(X[0])
    close(first, X[0])
    close(second, 2 * X[0].T)


def test_keywords_are_mapped_over_their_first_axis():
    close(lab.vmap(lambda x, *, scale: x * scale)(np.ones(3), scale=np.arange(3.0)), [0.0, 1.0, 2.0])


def test_nesting_gives_outer_products():
    a, b = np.arange(3.0), np.arange(4.0)
    outer = lab.vmap(lambda x: lab.vmap(lambda y: x * y)(b))(a)
    close(outer, np.outer(a, b))
    close(lab.vmap(lab.vmap(lambda x: x.sum()))(X), X.sum(-1))


@given(st.lists(st.sampled_from([0, 1, None]), min_size=2, max_size=2), st.integers(0, 1), st.integers(1, 4))
def test_a_product_of_matrices_for_every_choice_of_axes(axes, out, size):
    rng = np.random.default_rng(size)
    a, b = rng.normal(size=(2, 3)), rng.normal(size=(3, 2))
    if axes == [None, None]:
        return
    xs = [np.stack([x + i for i in range(size)], axis=axis) if axis is not None else x
          for x, axis in zip((a, b), axes, strict=True)]  # fmt: skip
    found = lab.vmap(lambda a, b: a @ b, in_axes=axes, out_axes=out)(*xs)
    rows = [(a + i * (axes[0] is not None)) @ (b + i * (axes[1] is not None)) for i in range(size)]
    close(found, np.stack(rows, axis=out), rtol=1e-9)


@pytest.mark.parametrize(
    ("call", "kind", "problem"),
    [
        (lambda: lab.vmap(lambda x, y: x)(np.ones(2), np.ones(3)), ShapeError, "vmap needs mapped axes of one length"),
        (lambda: lab.vmap(lambda x: x)(1.0), ShapeError, "vmap over an axis that the array does not have"),
        (lambda: lab.vmap(lambda x: x, in_axes=2)(np.ones(2)), ShapeError, "vmap over an axis that"),
        (lambda: lab.vmap(lambda x: x, in_axes=None)(np.ones(2)), ArgumentError, "vmap has nothing to map over"),
        (lambda: lab.vmap(lambda: 1.0)(), ArgumentError, "vmap has nothing to map over"),
        (lambda: lab.vmap(lambda x: x, in_axes=(0, 0))(np.ones(2)), ArgumentError, "in_axes needs one entry for each"),
        (lambda: lab.vmap(lambda x: x, in_axes="a")(np.ones(2)), ArgumentError, "in_axes holds integers and None"),
        (lambda: lab.vmap(lambda x: x, in_axes=(1.5,))(np.ones(2)), ArgumentError, "in_axes holds integers and None"),
        (lambda: lab.vmap(lambda x: x, in_axes=({"a": 0},))({"b": np.ones(2)}), ArgumentError, "in_axes"),
        (lambda: lab.vmap(lambda x: x, out_axes=3)(np.ones(2)), ShapeError, "vmap over an axis that"),
        (lambda: lab.vmap(lambda x: x, out_axes=None)(np.ones(2)), ArgumentError, "out_axes holds integers"),
        (lambda: lab.vmap(lambda x: (x, x), out_axes=(0,))(np.ones(2)), ArgumentError, "out_axes"),
        (lambda: lab.vmap(lambda x: "text")(np.ones(2)), LabError, "vmap returns numbers only"),
        (lambda: lab.vmap(lambda x: x)("text"), LabError, "vmap takes numbers only"),
        (lambda: lab.vmap(lambda x: x[0])([np.ones(2), None, object()]), LabError, "vmap takes numbers only"),
        (lambda: lab.vmap(lambda x: lab.all_reduce(x, axis_name="j"), axis_name="i")(np.ones(2)), LabError,
         "all_reduce needs the other members of an axis"),
        (lambda: lab.vmap(lambda x: lab.vmap(lambda y: y, axis_name="i")(x), axis_name="i")(X), ArgumentError,
         "an axis has this name already"),
    ],
)  # fmt: skip
def test_misuse_is_explained(call, kind, problem):
    with pytest.raises(kind, match=problem) as caught:
        call()
    assert caught.value.given


def test_a_mapped_index_reads_an_entry_for_each_member():
    found = lab.vmap(lambda i: lab.tensor([1.0, 2.0])[i])(np.array([1, 0]))
    np.testing.assert_array_equal(found.numpy(), [2.0, 1.0])


def test_an_if_inside_vmap_is_explained():
    with pytest.raises(ConcretizationError, match="the value of a mapped variable") as caught:
        lab.vmap(lambda x: x if x > 0 else -x)(np.ones(3))
    assert "lab.where" in caught.value.hint


def test_random_numbers_are_the_same_as_in_a_loop():
    keys = np.stack([lab.random_key(i) for i in range(3)])
    draw = lambda key: lab.random_uniform(key, shape=(4,))  # noqa: E731
    close(lab.vmap(draw)(keys), [array(draw(k)) for k in keys])
    close(lab.vmap(lambda x: x * draw(keys[0]))(np.ones(2)), np.stack([array(draw(keys[0]))] * 2))
    close(lab.jit(lab.vmap(draw))(keys), [array(draw(k)) for k in keys])


# --- collectives ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_all_reduce_is_the_sum_over_members_for_each_of_them(size):
    x = np.random.default_rng(size).normal(size=(size, 3))
    found = lab.vmap(lambda x: lab.all_reduce(x, axis_name="i"), axis_name="i")(x)
    close(found, np.broadcast_to(x.sum(0), (size, 3)))
    close(lab.vmap(lambda x: lab.all_reduce(2.0, axis_name="i"), axis_name="i")(x), np.full(size, 2.0 * size))


def test_collectives_meet_the_axis_that_they_name():
    x = np.arange(6.0).reshape(2, 3)

    def both(x):
        return lab.all_reduce(x, axis_name="rows") * 100.0 + lab.all_reduce(x, axis_name="columns")

    found = lab.vmap(lab.vmap(both, axis_name="columns"), axis_name="rows")(x)
    close(found, x.sum(0, keepdims=True) * 100.0 + x.sum(1, keepdims=True))


def test_data_parallel_gradients_are_those_of_the_whole_batch():
    rng = np.random.default_rng(0)
    w, data = rng.normal(size=3), rng.normal(size=(4, 5, 3))
    loss = lambda w, d: (lab.tanh(lab.matmul(d, w)) ** 2).sum()  # noqa: E731
    rank = lambda w, d: lab.all_reduce(lab.grad(loss)(w, d), axis_name="dp")  # noqa: E731
    program = lab.vmap(rank, in_axes=(None, 0), axis_name="dp")
    whole = lab.grad(loss)(w, data.reshape(20, 3))
    for found in (program(w, data), lab.jit(program)(w, data)):
        for r in range(4):
            close(found[r], whole, rtol=1e-12)


def test_a_tape_below_the_batch_sees_a_sum():
    x = np.random.default_rng(0).normal(size=3)
    f = lambda x: lab.vmap(lambda x: lab.all_reduce(x * x, axis_name="i"), axis_name="i")(x)[0]  # noqa: E731
    close(lab.grad(f)(x), 2 * x)
    close(lab.jvp(f, (x,), (np.ones(3),))[1], (2 * x).sum())
    close(lab.grad(lambda x: lab.grad(f)(x).sum())(x), np.full(3, 2.0))


def test_a_tape_above_the_batch_gets_the_sum_of_all_members_cotangents():
    x = np.random.default_rng(0).normal(size=3)
    found = lab.vmap(lab.grad(lambda x: lab.all_reduce(x * x, axis_name="i")), axis_name="i")(x)
    close(found, 3 * 2 * x)  # each member's output depends on this member's input
