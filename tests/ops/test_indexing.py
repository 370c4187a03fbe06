"""Indices of every kind, known, traced and mapped, as NumPy reads and writes them."""

import re

import numpy as np
import pytest

import lab
from lab.errors import LabError
from tests.numerics import array, close

X = np.random.default_rng(0).normal(size=(4, 3, 2, 5))
I = np.array([0, 2, -1, 0])  # noqa: E741
J = np.array([[1], [0]])
K = np.array([1, 0, 1, 1])
MASK = np.array([True, False, True, True])
ALL = slice(None)


class Given:
    """A part of an index that is an operand of the function."""

    def __init__(self, array):
        self.array = np.asarray(array)


CASES = {
    "one": (Given(I),),
    "second axis": (ALL, Given(J)),
    "apart": (Given(I), ALL, Given(K)),
    "together": (Given(I), Given(J % 2)),
    "behind dots": (..., Given(K)),
    "a number counts as an array": (0, ALL, Given(K)),
    "a slice and a new axis": (slice(1, 3), Given(I % 3), None, Given(K)),
    "a new axis first": (None, Given(I), 0),
    "a single integer": (Given(1), ALL, 0),
    "beside a list": (ALL, Given(I % 3), [0, 1, 0, 1]),
    "beside a mask": (MASK, ALL, Given(K[:3])),
    "backwards": (slice(None, None, -1), None, Given(I % 3), ..., Given(K)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_index_of_tensors_is_numpys_known_traced_and_mapped(case):
    rng = np.random.default_rng(1)
    plain = tuple(p.array if isinstance(p, Given) else p for p in case)
    given = [p.array for p in case if isinstance(p, Given)]

    def index(operands):
        rest = iter(operands)
        return tuple(next(rest) if isinstance(p, Given) else p for p in case)

    def read(x, *operands):
        return x[index(operands)]

    def update(x, values, *operands):
        return lab.index_update(x, values, index(operands))

    def add(x, values, *operands):
        return lab.index_add(x, values, index(operands))

    def both(operands):
        return [np.stack([i, i]) for i in operands]

    expected = X[plain]
    values, ct = rng.normal(size=expected.shape), rng.normal(size=X.shape)
    close(read(lab.tensor(X), *map(lab.tensor, given)), expected)
    close(lab.jit(read)(X, *given), expected)
    close(lab.vmap(read)(np.stack([X, 2 * X]), *both(given)), np.stack([expected, 2 * expected]))
    mapped = lab.vmap(lambda *operands: read(lab.tensor(X), *operands))(*both(given))
    close(mapped, np.stack([expected, expected]))

    added, written = X.copy(), X.copy()
    np.add.at(added, plain, values)
    written[plain] = values
    ones = (None,) * len(given)
    for f, result in ((update, written), (add, added)):
        close(f(lab.tensor(X), values, *map(lab.tensor, given)), result)
        close(lab.jit(f)(X, values, *given), result)
        close(lab.vmap(f, in_axes=(0, None, *ones))(np.stack([X, X]), values, *given), np.stack([result, result]))
        grad = lab.grad(lambda x, v, *operands: lab.sum(f(x, v, *operands) * ct), argnums=(0, 1))  # noqa: B023
        for traced, eager in zip(lab.jit(grad)(X, values, *given), grad(X, values, *map(lab.tensor, given)),
                                 strict=True):  # fmt: skip
            close(traced, eager)

    back = np.zeros_like(X)
    np.add.at(back, plain, values)
    close(lab.jit(lab.grad(lambda x, *operands: lab.sum(read(x, *operands) * values)))(X, *given), back)


def test_a_value_that_is_overwritten_gets_no_gradient():
    grad = lab.grad(lambda v: lab.sum(lab.index_update(np.zeros(3), v, ([0, 2, 0],)) * np.array([1.0, 2.0, 3.0])))
    close(grad(np.array([5.0, 6.0, 7.0])), np.array([0.0, 3.0, 1.0]))


def test_a_graph_reads_a_captured_index_again():
    where = lab.tensor([0, 1])
    f = lab.jit(lambda x: x[where])
    close(f(np.array([1.0, 2.0, 3.0])), np.array([1.0, 2.0]))
    where.assign([2, 2])
    close(f(np.array([1.0, 2.0, 3.0])), np.array([3.0, 3.0]))


def test_float16_is_added_in_float32():
    found = lab.segment_sum(np.ones(4000, np.float16), np.zeros(4000, int), n=1)
    assert (found.dtype, array(found)[0]) == (np.float16, 4000.0)
    leaf = lab.tensor(np.ones(1, np.float16), requires_grad=True)
    leaf[np.zeros(4000, int)].sum().backward()
    assert leaf.grad.item() == 4000.0


@pytest.mark.parametrize(
    "index", [[0, -1, 0], np.array([[1], [-40]]), ([3, 3],), (ALL, [0, 0]), ([0, 5], [1, 1]), np.array(2)]
)
def test_few_rows_of_a_large_table_are_added_where_they_came_from(index):
    table = np.zeros((40, 3))
    ct = np.random.default_rng(0).normal(size=table[index].shape)
    expected = table.copy()
    np.add.at(expected, index, ct)
    close(lab.scatter_add(ct, index=index, shape=table.shape), expected)
    close(
        lab.scatter_add(ct.astype(np.float16), index=index, shape=(40, 3)),
        expected.astype(np.float16),
        rtol=1e-2,
        atol=1e-2,
    )
    with pytest.raises(LabError, match="an index does not fit the array"):
        lab.scatter_add(np.ones(1), index=[-41], shape=(40,))


def test_empty_arrays_are_read_and_written():
    none = np.zeros(0, int)
    assert lab.take(X, none, axis=1).shape == (4, 0, 2, 5)
    assert lab.take_along_axis(X[:0], np.zeros((0, 2, 2, 5), int), axis=1).shape == (0, 2, 2, 5)
    close(lab.index_update(X, np.zeros((0, 3, 2, 5)), none), X)
    close(lab.segment_sum(np.zeros((0, 2)), none, n=3), np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lab.jit(lambda x, i: x[i])(X, np.array([9])), "an index does not fit the array\ngiven: ind"),
        (lambda: lab.jit(lambda x, i: x[i, :, i])(X, np.array([9])), "an index does not fit the array\ngiven: ind"),
        (lambda: lab.vmap(lambda x, i: x[i])(X, np.array([3, 0, 0, 0])), "an index does not fit the array"),
        (lambda: lab.vmap(lambda x, i: x[i, i])(X[None], np.array([3])), "an index does not fit the array"),
        (lambda: lab.jit(lambda x, i: x[i, i])(X[:, :0], np.array([0])), "an index does not fit the array"),
        (lambda: lab.jit(lambda x, i: x[i : i + 2])(X, 1), "the ends of a slice must be known"),
        (lambda: lab.vmap(lambda x, i: x[:i])(X, I), "the ends of a slice must be known"),
        (lambda: lab.jit(lambda x, n: lab.repeat(x, n))(X, 2), "a value inside jit is not made an array"),
        (lambda: lab.jit(lambda x: x[x > 0])(X), "how many entries a mask selects is not known"),
        (lambda: lab.vmap(lambda x: x[x > 0])(X), "how many entries a mask selects is not known"),
        (lambda: lab.jit(lambda x, i: x[i * 1.0])(X, I), "an index is made of integers"),
        (lambda: lab.jit(lambda x, i: x[i, 0, 0, 0, 0])(X, I), "an index does not fit the array\ngiven: 5 parts"),
        (lambda: lab.jit(lambda x, i: x[i, 0, True])(X, I), "True and False do not index beside a traced index"),
        (lambda: lab.jit(lambda x, i: x[i, [0, 1, 1]])(X, I), "an index does not fit the array"),
        (lambda: lab.tensor(X)[lab.tensor([0.5])], "an index does not fit the array"),
        (lambda: lab.index_update(np.array([1, 2]), 0.5, 0), "float64 values do not fit into int64"),
        (lambda: lab.index_add(np.array([1, 2]), 0.5, 7), "an index does not fit the array"),
        (lambda: lab.take(X, [0], axis=7), "take over an axis that the array does not have"),
        (lambda: lab.take(X, I, axis=0, batch=1), "take aligns the first axes of its operands"),
        (lambda: lab.segment_sum(X, [0, 1]), "segment_sum needs a segment for each slice"),
        (lambda: lab.put_along_axis(X[0, 0, :1], [[0], [0], [0]], 1.0), "put_along_axis writes into the shape of x"),
        (lambda: lab.put_along_axis(X, I * 1.0, 1.0, axis=None), "put_along_axis needs integer indices"),
    ],
)  # fmt: skip
def test_an_index_that_does_not_fit_is_explained(call, message):
    with pytest.raises(LabError, match=re.escape(message)) as caught:
        call()
    assert caught.value.given
    assert caught.value.hint
