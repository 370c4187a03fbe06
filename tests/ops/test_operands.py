"""What an op says to an operand that it cannot take: three lines, never a NumPy traceback, never an object array."""

import fractions

import numpy as np
import pytest
import scipy.sparse

import lab
from lab.errors import ArgumentError, DTypeError, LabError, ShapeError, UnsupportedError
from tests.numerics import close

T = lab.tensor([1.0, 2.0])
STRANGE = [None, "2", b"2", object(), {}, {1.0}, 1j, [1.0, "a"], [[1.0], [1.0, 2.0]], [None], np.array(["a", "b"]),
           np.array([object(), 1]), np.datetime64("2020-01-01"), fractions.Fraction(1, 2),
           lambda x: x, slice(2)]  # fmt: skip


def test_an_integer_to_a_negative_power_is_told_what_to_write():
    for call in (lambda: lab.tensor([2]) ** -1, lambda: lab.power(np.array([2]), np.array([-1]))):
        with pytest.raises(ArgumentError, match=r"hint:  integers hold no fractions: write 2\.0 \*\* -1"):
            call()


@pytest.mark.parametrize("strange", STRANGE, ids=lambda x: f"{type(x).__name__}-{str(x)[:12]!r}")
def test_strange_operands_are_refused_in_three_lines(strange):
    for call in (
        lambda: T + strange,
        lambda: strange * T,
        lambda: lab.maximum(T, strange),
        lambda: lab.exp(strange),
        lambda: lab.matmul(T, strange),
        lambda: lab.where(strange, T, T),
        lambda: lab.sum(strange),
        lambda: lab.concatenate([T, strange]),
        lambda: lab.jit(lambda x: x + strange)(T),
        lambda: lab.vmap(lambda x: x + strange)(T),
        lambda: lab.grad(lambda x: (x * strange).sum())(T),
        lambda: lab.jvp(lambda x: strange - x, (T,), (T,)),
    ):
        with pytest.raises(LabError) as caught:
            call()
        assert str(caught.value).count("\n") >= 1
        assert caught.value.given


def test_complex_and_sparse_operands_are_refused():
    for strange in (np.array([1j, 2]), 1j, scipy.sparse.eye(2), scipy.sparse.eye_array(2).tocsr()):
        for call in (lambda: T + strange, lambda: T @ strange, lambda: lab.maximum(strange, T)):  # noqa: B023
            with pytest.raises(UnsupportedError, match=r"cannot take this argument|takes numbers only"):
                call()


def test_equality_with_what_is_no_number_is_identity():
    assert (T == None) is False  # noqa: E711 - the subject of the test
    assert (T != "x") is True
    assert T in [None, T]
    close(T == [1.0, 3.0], [True, False])


def test_lists_of_numbers_are_arrays_and_lists_of_tensors_are_explained():
    close(lab.add(T, [1, 2]), [2.0, 4.0])
    close([1, 2] * T, [1.0, 4.0])
    with pytest.raises(UnsupportedError, match="a list that contains tensors") as caught:
        lab.add(T, [T[0], 1.0])
    assert "lab.stack" in caught.value.hint


@pytest.mark.parametrize(
    ("call", "kind", "problem"),
    [
        (lambda: T + np.ones(3), ShapeError, "add cannot broadcast its operands"),
        (lambda: np.ones(3) * T, ShapeError, "multiply cannot broadcast its operands"),
        (lambda: lab.add(np.ones(3), np.ones(4)), ShapeError, "add cannot broadcast its operands"),
        (lambda: lab.sum(T, axis=1), ShapeError, "sum over an axis that the array does not have"),
        (lambda: T.mean(axis=(0, 0)), ShapeError, "mean names an axis twice"),
        (lambda: lab.softmax(T, axis=3), ShapeError, "softmax over an axis that the array does not have"),
        (lambda: lab.log_softmax(lab.tensor(1.0)), ShapeError, "log_softmax over an axis that the array does not have"),
        (lambda: lab.expand_dims(T, axis=4), ShapeError, "expand_dims"),
        (lambda: T.max(axis="x"), LabError, "max"),
        (lambda: T.reshape(3), ShapeError, "reshape must keep the number of entries"),
        (lambda: T.reshape(-1, -1), ShapeError, "reshape can work out one dimension only"),
        (lambda: T.reshape("ab"), LabError, "reshape"),
        (lambda: T.transpose(0, 1), ShapeError, "transpose needs each axis once"),
        (lambda: lab.broadcast_to(T, (3,)), ShapeError, "broadcast_to cannot broadcast its operands"),
        (lambda: lab.broadcast_to(lab.tensor(np.ones((2, 3))), (3,)), ShapeError, "broadcast_to"),
        (lambda: lab.softmax(T, axis=None), ShapeError, "softmax works along one axis"),
        (lambda: lab.expand_dims(T, axis=(0, 0)), ShapeError, "expand_dims names an axis twice"),
        (lambda: lab.concatenate([T, T], axis=None), ShapeError, "concatenate works along one axis"),
        (lambda: lab.one_hot(lab.tensor([0]), n=2.5), ArgumentError, "one_hot needs the number of classes"),
        (lambda: lab.random_uniform(lab.random_key(0), dtype="int32"), DTypeError, "random_uniform draws floats"),
        (lambda: T & T, UnsupportedError, "& is for masks of booleans"),
        (lambda: (T > 0) | 1, UnsupportedError, "is for masks of booleans"),
        (lambda: ~T, UnsupportedError, "~ is for masks of booleans"),
        (lambda: T * np.ma.masked_array([1.0, 2.0], [0, 1]), UnsupportedError, "multiply does not know masked arrays"),
        (lambda: lab.tensor(np.ma.masked_array([1.0], [1])), UnsupportedError, "a tensor has no mask"),
        (lambda: lab.tensor(lab.tensor(1.0, requires_grad=True) * 2.0), UnsupportedError, "lab.tensor would cut"),
        (lambda: lab.grad(lambda x: lab.tensor(x) * x)(2.0), UnsupportedError, "lab.tensor would cut the history"),
        (lambda: lab.grad(lambda x: lab.tensor([x, x]).sum())(2.0), UnsupportedError, "a list of tensors is joined"),
        (lambda: T[5], ShapeError, "an index does not fit the array"),
        (lambda: T[0, 0], ShapeError, "an index does not fit the array"),
        (lambda: T["a"], ShapeError, "an index does not fit the array"),
        (lambda: T[1.0], ShapeError, "an index does not fit the array"),
        (lambda: T[np.array([True, False, True])], ShapeError, "an index does not fit the array"),
        (lambda: T @ lab.tensor([1.0, 2.0, 3.0]), ShapeError, "matmul needs the inner dimensions to agree"),
        (lambda: T @ 2.0, ShapeError, "matmul needs the inner dimensions to agree"),
        (lambda: 2.0 @ T, ShapeError, "matmul needs the inner dimensions to agree"),
        (lambda: lab.concatenate([T, lab.tensor(1.0)]), ShapeError, "concatenate"),
        (lambda: lab.concatenate([]), ShapeError, "concatenate needs at least one tensor"),
        (lambda: lab.concatenate([lab.tensor(1.0)]), ShapeError, "concatenate over an axis"),
        (lambda: lab.concatenate(3), UnsupportedError, "concatenate needs a sequence"),
        (lambda: lab.stack([]), ShapeError, "stack needs tensors of one shape"),
        (lambda: lab.stack([T, lab.tensor(1.0)]), ShapeError, "stack needs tensors of one shape"),
        (lambda: T.astype("str"), DTypeError, "cast"),
        (lambda: T.astype("nonsense"), DTypeError, "cast"),
        (lambda: lab.where(T > 1.0), ArgumentError, "where needs condition, x, y"),
        (lambda: lab.exp(T, 3), ArgumentError, "exp got a parameter that it does not have"),
        (lambda: lab.exp(T, axis=3), ArgumentError, "exp got a parameter that it does not have"),
        (lambda: lab.sum(T, axes=0), ArgumentError, "sum got a parameter that it does not have"),
        (lambda: lab.one_hot(lab.tensor([0.5]), n=3), DTypeError, "one_hot needs integer labels"),
        (lambda: lab.cross_entropy(np.zeros((2, 3)), np.array([0, 3])), ShapeError, "cross_entropy met a label"),
        (lambda: lab.cross_entropy(np.zeros((2, 3)), np.array([0, -1])), ShapeError, "cross_entropy met a label"),
        (lambda: lab.cross_entropy(lab.tensor([[1, 2]]), np.array([0])), DTypeError, "cross_entropy needs float"),
        (lambda: lab.all_reduce(T, axis_name="i"), LabError, "all_reduce needs the other members of an axis"),
        (lambda: lab.random_uniform(3, shape=(2,)), ShapeError, "random_uniform needs a key"),
        (lambda: lab.random_key("seed"), ArgumentError, "random_key needs"),
        (lambda: lab.tensor(["a"]), DTypeError, "a tensor holds floats, integers or booleans"),
        (lambda: lab.tensor([[1], [1, 2]]), DTypeError, "a tensor needs numbers in a rectangular arrangement"),
        (lambda: lab.tensor(1.0, dtype="nonsense"), DTypeError, "this is no dtype"),
        (lambda: lab.tensor(1, requires_grad=True), DTypeError, "only floats can require a gradient"),
        (lambda: float(T), ArgumentError, "item\\(\\) needs a single entry"),
        (lambda: bool(T), ShapeError, "the truth of a tensor of several entries is ambiguous"),
        (lambda: len(lab.tensor(1.0)), ShapeError, "a tensor without axes has no length"),
        (lambda: list(lab.tensor(1.0)), ShapeError, "a tensor without axes has no length"),
    ],
)  # fmt: skip
def test_misuse_is_explained(call, kind, problem):
    with pytest.raises(kind, match=problem) as caught:
        call()
    assert isinstance(caught.value, LabError)
    assert caught.value.given or caught.value.hint
    assert caught.value.__cause__ is None  # no NumPy traceback above it


def test_errors_inside_transforms_speak_of_the_shapes_that_the_function_sees():
    for call in (
        lambda: lab.vmap(lambda x, y: x + y)(np.ones((5, 3)), np.ones((5, 4))),
        lambda: lab.grad(lambda x: lab.vmap(lambda x, y: (x + y).sum())(x, np.ones((5, 4))).sum())(np.ones((5, 3))),
        lambda: lab.jit(lab.vmap(lambda x, y: x + y))(np.ones((5, 3)), np.ones((5, 4))),
    ):
        with pytest.raises(ShapeError, match="add cannot broadcast its operands") as caught:
            call()
        assert caught.value.given == "(3,) and (4,)"


def test_floating_point_errors_that_the_user_asked_for_stay_what_they_are():
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        T / 0.0
    with pytest.raises(RuntimeWarning):
        lab.log(lab.tensor([0.0]))


def test_masks_combine():
    x = lab.tensor([-1.0, 0.5, 2.0])
    close((x > 0) & (x < 1), [False, True, False])
    close((x < 0) | (x > 1), [True, False, True])
    close((x > 0) ^ (x > 1), [False, True, False])
    close(~(x > 0), [True, False, False])
    close(np.array([True, True, False]) & (x > 0), [False, True, False])
    close(lab.vmap(lambda x: ~(x > 0) & True)(x), [True, False, False])
    close(lab.jit(lambda x: x[0] * ((x > 0) & (x < 1)))(x), [0.0, -1.0, 0.0])


def test_a_single_number_is_a_shape_and_half_precision_can_be_drawn():
    drawn = lab.random_uniform(lab.random_key(0), shape=3, dtype="float16")
    assert (drawn.shape, drawn.dtype) == ((3,), np.float16)


def test_a_parameter_of_an_op_may_be_positional_or_named():
    x = lab.tensor(np.ones((2, 3)))
    close(lab.sum(x, 0), lab.sum(x, axis=0))
    close(lab.sum(x, 0, True), lab.sum(x, axis=0, keepdims=True))
    close(lab.reshape(x, (3, 2)), lab.reshape(x, shape=(3, 2)))
    close(lab.transpose(x, (1, 0)), x.T)
