"""Collectives as ops on the batch axis: values against NumPy, derivatives against differences, several axes."""

import re

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, DTypeError, ShapeError, TransformError, UnsupportedError
from tests.numerics import close

N = 3
X = np.random.default_rng(0).normal(size=(N, 6, 2))
PAIRS = ((0, 2), (2, 1))


def tiles(x, axis=0):
    return np.concatenate(list(x), axis=axis)


def permuted(x):
    out = np.zeros_like(x)
    for src, dst in PAIRS:
        out[dst] = x[src]
    return out


def swapped(x, axis=0):
    """What all members have after an all-to-all along an axis of theirs."""
    blocks = [np.array_split(row, N, axis=axis) for row in x]
    return np.stack([np.concatenate([blocks[src][dst] for src in range(N)], axis=axis) for dst in range(N)])


def scattered(total, axis=0):
    return np.stack(np.array_split(total, N, axis=axis))


def for_all(value):
    return np.broadcast_to(value, (N, *value.shape))


CASES = {
    "sum": (lambda x: lab.all_reduce(x, axis_name="i"), lambda x: for_all(x.sum(0))),
    "mean": (lambda x: lab.all_reduce(x, axis_name="i", op="mean"), lambda x: for_all(x.mean(0))),
    "max": (lambda x: lab.all_reduce(x, axis_name="i", op="max"), lambda x: for_all(x.max(0))),
    "min": (lambda x: lab.all_reduce(x, axis_name="i", op="min"), lambda x: for_all(x.min(0))),
    "gather": (lambda x: lab.all_gather(x, axis_name="i"), for_all),
    "gather at 1": (lambda x: lab.all_gather(x, axis=1, axis_name="i"), lambda x: for_all(np.moveaxis(x, 0, 1))),
    "gather at -1": (lambda x: lab.all_gather(x, axis=-1, axis_name="i"), lambda x: for_all(np.moveaxis(x, 0, -1))),
    "gather tiles": (lambda x: lab.all_gather(x, axis_name="i", tiled=True), lambda x: for_all(tiles(x))),
    "gather tiles at -1": (lambda x: lab.all_gather(x, axis=-1, axis_name="i", tiled=True),
                           lambda x: for_all(tiles(x, 1))),
    "scatter": (lambda x: lab.reduce_scatter(x, axis_name="i"), lambda x: scattered(x.sum(0))),
    "scatter mean": (lambda x: lab.reduce_scatter(x, axis_name="i", op="mean"), lambda x: scattered(x.mean(0))),
    "scatter max": (lambda x: lab.reduce_scatter(x, axis_name="i", op="max"), lambda x: scattered(x.max(0))),
    "scatter at -2": (lambda x: lab.reduce_scatter(x, axis=-2, axis_name="i"), lambda x: scattered(x.sum(0))),
    "scatter at 1": (lambda x: lab.reduce_scatter(x.T, axis=1, axis_name="i"),
                     lambda x: scattered(x.sum(0).T, 1)),
    "broadcast": (lambda x: lab.broadcast(x, root=1, axis_name="i"), lambda x: for_all(x[1])),
    "broadcast from the last": (lambda x: lab.broadcast(x, root=-1, axis_name="i"), lambda x: for_all(x[-1])),
    "all to all": (lambda x: lab.all_to_all(x, axis_name="i"), swapped),
    "all to all at 1": (lambda x: lab.all_to_all(x.T, axis=1, axis_name="i"),
                        lambda x: swapped(np.swapaxes(x, 1, 2), 1)),
    "permute": (lambda x: lab.permute(x, pairs=PAIRS, axis_name="i"), permuted),
    "shift": (lambda x: lab.shift(x, axis_name="i"), lambda x: np.roll(x, 1, axis=0)),
    "shift back by two": (lambda x: lab.shift(x, by=-2, axis_name="i"), lambda x: np.roll(x, -2, axis=0)),
    "index": (lambda x: x * lab.axis_index("i"), lambda x: x * np.arange(N)[:, None, None]),
    "size": (lambda x: x * lab.axis_size("i"), lambda x: x * N),
}  # fmt: skip
SMOOTH = [name for name in CASES if "max" not in name and "min" not in name]
each = pytest.mark.parametrize("name", CASES)
each_smooth = pytest.mark.parametrize("name", SMOOTH)


def program(name):
    return lab.vmap(CASES[name][0], axis_name="i")


@each
def test_every_member_gets_what_numpy_says(name):
    expected = CASES[name][1](X)
    close(program(name)(X), expected)
    close(lab.jit(program(name))(X), expected)
    close(lab.vmap(lab.jit(CASES[name][0]), axis_name="i")(X), expected)


@each_smooth
def test_what_all_members_share_is_each_members_own(name):
    same = np.broadcast_to(X[0], X.shape)
    close(lab.vmap(lambda _, x: CASES[name][0](x), (0, None), axis_name="i")(np.ones(N), lab.tensor(X[0])),
          CASES[name][1](same))  # fmt: skip


@each_smooth
def test_a_tape_below_the_batch_and_one_above_it_agree_with_differences(name):
    f = lambda x: lab.sin(CASES[name][0](lab.sin(x)))  # noqa: E731
    whole = lambda x: lab.vmap(f, axis_name="i")(x).sum()  # noqa: E731
    lab.check_grads(whole, (X,), order=2)
    # each member's loss summed: what comes back to a member are the cotangents of all members
    above = lab.vmap(lab.grad(lambda x: f(x).sum()), axis_name="i")(X)
    close(above, lab.grad(whole)(X), rtol=1e-10, atol=1e-12)
    direction = np.random.default_rng(1).normal(size=X.shape)
    pushed = lambda x, t: lab.jvp(f, (x,), (t,))[1]  # noqa: E731
    close(lab.vmap(pushed, axis_name="i")(X, direction), lab.jvp(lab.vmap(f, axis_name="i"), (X,), (direction,))[1])


@each
def test_another_mapped_axis_goes_along(name):
    """Inside, outside and on both sides of the axis that meets."""
    f, many = CASES[name][0], np.stack([X, X[::-1] * 2.0, X + 1.0], axis=1)
    expected = np.stack([CASES[name][1](many[:, k]) for k in range(3)], axis=1)
    close(lab.vmap(lab.vmap(f), axis_name="i")(many), expected)
    close(lab.vmap(lab.vmap(f, axis_name="i"), in_axes=1, out_axes=1)(many), expected)
    close(lab.vmap(lab.vmap(f, axis_name="j"), axis_name="i")(many), expected)
    close(lab.vmap(lab.vmap(f, in_axes=1), axis_name="i")(np.moveaxis(many, 1, 2)), expected)


def test_axes_are_named_and_nest():
    x = np.arange(6.0).reshape(2, 3)

    def f(x):
        rows = lab.all_gather(x, axis_name="rows")
        return lab.shift(rows, axis_name="columns").sum() + 10.0 * lab.axis_index("rows") + lab.axis_index("columns")

    found = lab.vmap(lab.vmap(f, axis_name="columns"), axis_name="rows")(x)
    close(found, np.roll(x.sum(0), 1) + 10.0 * np.arange(2)[:, None] + np.arange(3))


@pytest.mark.parametrize("size", [5, 9, 100])
@pytest.mark.parametrize("shape", [(), (7,), (3, 5)])
def test_sums_are_added_in_the_order_of_members(size, shape):
    x = np.random.default_rng(size).normal(size=(size, *shape)).astype(np.float32)
    total = np.array(x[0])
    for row in x[1:]:
        total = np.float32(1) * (total + row)
    found = lab.vmap(lambda x: lab.all_reduce(x, axis_name="i"), axis_name="i")(x)
    np.testing.assert_array_equal(found[0].numpy(), total)
    jitted = lab.jit(lab.vmap(lambda x: lab.all_reduce(x * 1.0, axis_name="i"), axis_name="i"))(x)
    np.testing.assert_array_equal(jitted[-1].numpy(), total)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "bool"])
def test_what_moves_keeps_its_dtype(dtype):
    x = (X > 0).astype(dtype)
    for name in CASES:
        if name not in ("mean", "scatter mean", "index", "size", "sum", "scatter", "scatter at 1", "scatter at -2"):
            assert program(name)(x).dtype == dtype, name


def test_a_max_over_members_has_its_derivative_by_a_gather():
    f = lambda x: lab.all_reduce(x, axis_name="i", op="max")  # noqa: E731
    for call in (lab.grad(f), lambda x: lab.jvp(f, (x,), (x,))[1]):
        with pytest.raises(UnsupportedError, match="all_reduce has no derivative with op='max'"):
            lab.vmap(call, axis_name="i")(np.ones(3))
    g = lambda x: lab.max(lab.all_gather(x, axis_name="i"), axis=0)  # noqa: E731
    close(lab.vmap(lab.grad(g), axis_name="i")(np.array([1.0, 4.0, 4.0])), [0.0, 1.5, 1.5])


def in_axis(f):
    return lambda: lab.vmap(f, axis_name="i")(X)


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (in_axis(lambda x: lab.reduce_scatter(x, axis=1, axis_name="i")), ShapeError, "2 = 3 * 0 + 2"),
        (in_axis(lambda x: lab.all_to_all(x, axis=1, axis_name="i")), ShapeError, "pad the axis to 3"),
        (in_axis(lambda x: lab.all_gather(x, axis=3, axis_name="i")), ShapeError, "all_gather over an axis"),
        (in_axis(lambda x: lab.all_reduce(x, axis_name="i", op="prod")), ArgumentError, "op='prod'"),
        (in_axis(lambda x: lab.all_reduce(x > 0, axis_name="i")), DTypeError, "adds no truths"),
        (in_axis(lambda x: lab.all_reduce(2, axis_name="i", op="mean")), DTypeError, "no mean of whole numbers"),
        (in_axis(lambda x: lab.broadcast(x, root=3, axis_name="i")), ArgumentError, "root=3 of 3 members"),
        (in_axis(lambda x: lab.permute(x, pairs=((0, 3),), axis_name="i")), ArgumentError, "members are 0 to 2"),
        (in_axis(lambda x: lab.permute(x, pairs=((0, 1), (0, 2)), axis_name="i")), ArgumentError, "0 gives twice"),
        (lambda: lab.axis_size("i"), TransformError, "axis_size needs the other members"),
        (lambda: lab.axis_index("i"), TransformError, "axis_index needs the other members"),
        (lambda: lab.shift(X, axis_name="i"), TransformError, "needs the other members of an axis"),
        (lambda: lab.all_gather(X, axis_name="i"), TransformError, "all_gather needs the other members"),
    ],
)
def test_what_cannot_be_is_told(call, kind, said):
    with pytest.raises(kind, match=re.escape(said)) as caught:
        call()
    assert caught.value.hint
