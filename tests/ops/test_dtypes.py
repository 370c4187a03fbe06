"""Dtypes are NumPy's, in every interpreter: promotion, Python numbers that stay weak, integers and booleans."""

import itertools

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, DTypeError, LabError
from lab.ops import PRIMITIVES
from tests.numerics import array, close

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"]
BINARY = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.true_divide, "power": np.power,
          "maximum": np.maximum, "less": np.less, "equal": np.equal}  # fmt: skip


def both(numpy_call, lab_call):
    """Equal dtype and values, or both refuse: NumPy with a TypeError or a ValueError, the lab in three lines."""
    try:
        expected = numpy_call()
    except (TypeError, ValueError, OverflowError):
        with pytest.raises(LabError) as caught:
            lab_call()
        assert caught.value.given
        return
    found = lab_call()
    assert found.dtype == expected.dtype
    close(found, expected, rtol=1e-6)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(("left", "right"), list(itertools.product(DTYPES, DTYPES)))
def test_promotion_of_tensors_is_numpys(name, left, right):
    x, y = np.ones(3, left), np.ones(1, right)
    op = PRIMITIVES[name]
    both(lambda: BINARY[name](x, y), lambda: op(lab.tensor(x), lab.tensor(y)))
    both(lambda: BINARY[name](x, y), lambda: op(lab.tensor(x), y))
    both(lambda: BINARY[name](x, y), lambda: lab.jit(op)(x, y))
    both(lambda: BINARY[name](x, y), lambda: lab.vmap(op, in_axes=(0, None))(x[None], y)[0])


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [True, 2, 2.5, -1, np.float32(2), np.float64(2), np.int64(2)], ids=repr)
def test_numbers_beside_a_tensor_promote_as_in_numpy(name, dtype, number):
    x = np.ones(3, dtype)
    op, ufunc = PRIMITIVES[name], BINARY[name]
    for numpy_call, call in ((lambda: ufunc(x, number), lambda t: op(t, number)),
                             (lambda: ufunc(number, x), lambda t: op(number, t))):  # fmt: skip
        both(numpy_call, lambda: call(lab.tensor(x)))  # noqa: B023 - called at once
        both(numpy_call, lambda: lab.jit(call)(x))  # noqa: B023
        both(numpy_call, lambda: lab.vmap(call)(x))  # noqa: B023
        if x.dtype.kind == "f":
            both(numpy_call, lambda: lab.jvp(call, (x,), (x,))[0])  # noqa: B023
            both(numpy_call, lambda: lab.vjp(call, x)[0])  # noqa: B023


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_narrow_floats_stay_narrow_beside_python_numbers_everywhere(dtype):
    def f(x):
        y = lab.relu(2.0 * x + 1) / 3 - 0.5
        y = lab.where(y > 0.1, y, 0.0) ** 2 + lab.maximum(y, 0.25) + 2**x + lab.mean(x) + x.sum() / 2
        return lab.softmax(y) * 1.5 - lab.log_softmax(y) + lab.logsumexp(y)

    x = np.array([0.5, -1.0, 2.0], dtype)
    calls = {
        "eager": lambda: f(lab.tensor(x)),
        "tape": lambda: f(lab.tensor(x, requires_grad=True)),
        "jit": lambda: lab.jit(f)(x),
        "vmap": lambda: lab.vmap(f)(x[None]),
        "jvp value": lambda: lab.jvp(f, (x,), (x,))[0],
        "jvp tangent": lambda: lab.jvp(f, (x,), (x,))[1],
        "vjp value": lambda: lab.vjp(f, x)[0],
        "vjp": lambda: lab.vjp(f, x)[1](x)[0],
        "grad": lambda: lab.grad(lambda x: f(x).sum())(x),
        "grad of grad": lambda: lab.grad(lambda x: lab.grad(lambda x: f(x).sum())(x).sum())(x),
        "jit of grad": lambda: lab.jit(lab.grad(lambda x: f(x).sum()))(x),
        "grad of jit": lambda: lab.grad(lambda x: lab.jit(f)(x).sum())(x),
        "vmap of grad": lambda: lab.vmap(lab.grad(lambda x: f(x).sum()))(x[None]),
        "grad of vmap": lambda: lab.grad(lambda x: lab.vmap(f)(x).sum())(x[None]),
        "jvp of grad": lambda: lab.jvp(lab.grad(lambda x: f(x).sum()), (x,), (x,))[1],
    }
    assert {name: str(call().dtype) for name, call in calls.items()} == dict.fromkeys(calls, dtype)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float16"])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_reductions_of_other_dtypes_are_numpys(name, dtype):
    x = np.array([[1, 0, 1], [0, 1, 1]], dtype)
    expected = getattr(np, name)(x, axis=1)
    for found in (PRIMITIVES[name](lab.tensor(x), axis=1), lab.jit(lambda x: PRIMITIVES[name](x, axis=1))(x),
                  lab.vmap(PRIMITIVES[name])(x)):  # fmt: skip
        assert found.dtype == expected.dtype
        close(found, expected)


def test_unary_functions_of_integers_and_booleans_are_numpys():
    for op in PRIMITIVES.values():
        if op.elementwise and len(op.arguments) == 1 and isinstance(getattr(np, op.name, None), np.ufunc):
            for dtype in ("bool", "int8", "int64"):
                x = np.array([1, 0], dtype)
                with np.errstate(all="ignore"):
                    both(lambda: getattr(np, op.name)(x), lambda: op(lab.tensor(x)))  # noqa: B023 - called at once


def test_relu_and_sigmoid_of_integers():
    close(lab.relu(lab.tensor([-1, 2])), [0, 2])
    assert lab.relu(lab.tensor([-1, 2])).dtype == np.int64
    assert lab.sigmoid(lab.tensor([-1, 2])).dtype == np.float64


def test_sigmoid_keeps_narrow_floats():
    for dtype in ("float16", "float32"):
        assert lab.sigmoid(lab.tensor(np.zeros(3, dtype))).dtype == dtype
        assert lab.sigmoid(lab.tensor(np.zeros((), dtype))).dtype == dtype


def test_integers_divide_to_floats():
    found = lab.tensor([1, 3]) / 2
    assert found.dtype == np.float64
    close(found, [0.5, 1.5])
    close(1 / lab.tensor([2, 4]), [0.5, 0.25])


def test_a_negative_power_of_integers_is_refused():
    for call in (lambda: lab.tensor([1, 2]) ** -1, lambda: lab.jit(lambda x: x**-1)(np.array([1, 2])),
                 lambda: lab.vmap(lambda x: x**-1)(np.array([1, 2]))):  # fmt: skip
        with pytest.raises(ArgumentError, match="power cannot take these operands") as caught:
            call()
        assert "fractions" in caught.value.hint


def test_a_difference_of_booleans_is_refused():
    t = lab.tensor([True, False])
    for call in (lambda: t - t, lambda: lab.jit(lambda x: x - x)(t), lambda: lab.vmap(lambda x: x - x)(t),
                 lambda: t.numpy() - t, lambda: -t):  # fmt: skip
        with pytest.raises(DTypeError, match="is not defined for these dtypes"):
            call()


def test_two_to_the_power_of_a_tensor():
    t = lab.tensor(3.0, requires_grad=True)
    out = 2**t
    out.backward()
    close(out, 8.0)
    close(t.grad, 8.0 * np.log(2.0))
    assert (2 ** lab.tensor(np.float32(3))).dtype == np.float32


def test_a_number_out_of_range_is_refused_by_name():
    for call in (lambda: lab.tensor(np.zeros(2, "int8")) + 300, lambda: lab.tensor(np.zeros(2, "uint8")) * -1,
                 lambda: 10**400 * lab.tensor([1.0])):  # fmt: skip
        with pytest.raises(ArgumentError, match="cannot take these operands") as caught:
            call()
        assert "int" in caught.value.hint


def test_mixed_precision_gradients_come_back_in_each_leafs_dtype():
    x = lab.tensor(np.ones(3, "float16"), requires_grad=True)
    y = lab.tensor(np.ones((2, 1), "float32"), requires_grad=True)
    z = lab.tensor(np.ones((2, 3)), requires_grad=True)
    w = lab.tensor(np.ones((3, 2), "float32"), requires_grad=True)
    (((x * y + z) @ w).sum() + (x / 2).sum() + lab.concatenate([x, z[0]]).sum()).backward()
    assert [str(t.grad.dtype) for t in (x, y, z, w)] == ["float16", "float32", "float64", "float32"]
    close(z.grad, [[3.0, 3, 3], [2, 2, 2]])
    gradients = lab.grad(lambda *xs: ((xs[0] * xs[1] + xs[2]) @ xs[3]).sum(), argnums=(0, 1, 2, 3))(x, y, z, w)
    assert [str(g.dtype) for g in gradients] == ["float16", "float32", "float64", "float32"]


def test_an_integer_operand_takes_no_gradient_and_hinders_none():
    x, n = lab.tensor([1.0, 2.0], requires_grad=True), lab.tensor([3, 4])
    (x * n).sum().backward()
    close(x.grad, [3.0, 4.0])
    close(lab.grad(lambda x: (x * n).sum())(x), [3.0, 4.0])


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0), ()])
def test_empty_and_scalar_tensors_flow_through_the_usual_ops(shape):
    x = lab.tensor(np.ones(shape), requires_grad=True)
    y = lab.relu(x * 2 + 1) ** 2
    total = lab.sum(y) + lab.sum(lab.where(x > 0, y, 0.0)) + lab.concatenate([lab.reshape(y, (-1,)), [1.0]]).sum()
    total.backward()
    close(x.grad, np.full(shape, 36.0))
    close(lab.vmap(lambda x: x * 2)(np.ones((0, 3))), np.ones((0, 3)))


def test_an_empty_matmul_has_zero_gradients():
    a, b = lab.tensor(np.ones((2, 0)), requires_grad=True), lab.tensor(np.ones((0, 3)), requires_grad=True)
    (a @ b).sum().backward()
    assert array(a @ b).tolist() == [[0.0] * 3] * 2
    assert (a.grad.shape, b.grad.shape) == ((2, 0), (0, 3))


@pytest.mark.parametrize(
    ("op", "right"),
    [(lab.sum, 3000.0), (lab.mean, 1.0), (lab.logsumexp, 1.0 + np.log(3000.0))],
)
@pytest.mark.parametrize("axis", [None, 0])
def test_float16_is_summed_wider_than_it_is_kept(op, right, axis):
    x = np.ones((3000, 2) if axis == 0 else (3000,), np.float16)  # 2,048 + 1 is 2,048 in float16
    got = np.asarray(op(x, axis=axis))
    assert got.dtype == np.float16
    assert got.ravel() == pytest.approx(right, rel=1e-3)


def test_the_mean_of_more_entries_than_float16_can_count_is_finite_and_so_is_its_slope():
    x = lab.tensor(np.ones(70_000, np.float16), requires_grad=True)
    y = x.mean()
    y.backward()
    assert (y.item(), y.dtype) == (1.0, np.float16)
    assert x.grad.numpy().sum(dtype=float) == pytest.approx(1.0, rel=1e-2)


def test_softmax_and_cross_entropy_of_many_float16_entries():
    rows = lab.log_softmax(np.zeros((70_000, 1), np.float16), axis=0)
    assert rows[0] == pytest.approx(-np.log(70_000), rel=1e-3)
    assert lab.softmax(np.zeros(70_000, np.float16)).sum(dtype=float) == pytest.approx(1.0, rel=1e-1)
    assert lab.cross_entropy(np.zeros((70_000, 8), np.float16), np.zeros(70_000, int)) == pytest.approx(
        np.log(8), rel=1e-3
    )


def test_a_bias_in_float16_gets_the_whole_sum_of_its_batch():
    bias = lab.tensor(np.zeros(2, np.float16), requires_grad=True)
    (lab.tensor(np.ones((3000, 2), np.float16)) + bias).sum().backward()
    assert bias.grad.numpy().tolist() == [3000.0, 3000.0]
