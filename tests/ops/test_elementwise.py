"""Elementwise ops where they are delicate: edges, kinks, singular points, huge and tiny arguments; their parameters.

The table of ops tests the ordinary points (`test_table.py`). Second opinions here are NumPy, scipy and autograd (HIPS).
"""

import math

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
from autograd.scipy import special as aspecial
from scipy import special

import lab
from lab.errors import ArgumentError, FormulaError, LabError
from lab.events import OpRecorded
from lab.kernels import loops
from lab.ops import PRIMITIVES, elementwise
from tests.numerics import array, close

EDGES = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -3.7, np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324, -5e-324, 710.0])
SCIPY = {
    "erf": special.erf, "erfc": special.erfc, "sigmoid": special.expit, "log_sigmoid": special.log_expit,
    "xlogy": special.xlogy, "softplus": lambda x: np.logaddexp(x, 0), "relu": lambda x: np.maximum(x, 0),
    "sinc": np.sinc, "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip
VALUES = {
    op.name: getattr(np, op.name, None) or SCIPY[op.name]
    for op in PRIMITIVES.values()
    if op.elementwise and op.name != "where" and (hasattr(np, op.name) or op.name in SCIPY)
}


def slope_at(f, *xs, argnum=0):
    with np.errstate(all="ignore"):
        return lab.grad(lambda *xs: lab.sum(f(*xs)), argnums=argnum)(*xs)


# --- values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("name", VALUES)
def test_edges_are_those_of_numpy_or_scipy(name, dtype):
    op = PRIMITIVES[name]
    with np.errstate(all="ignore"):
        x = EDGES.astype(dtype)
        xs = np.meshgrid(*[x] * len(op.arguments))
        found = op(*map(lab.tensor, xs))
        wanted = np.asarray(VALUES[name](*xs))
    if name in SCIPY and dtype == "float16":  # scipy gives float64 or float32
        wanted = wanted.astype(dtype)
    assert found.dtype == wanted.dtype
    eps = 0 if wanted.dtype == bool else float(np.finfo(wanted.dtype).eps)
    atol = 2 * eps if name == "sinc" else float(np.finfo(wanted.dtype).tiny) * 4 if eps else 0
    close(found, wanted, rtol=4 * eps, atol=atol)


def test_the_tail_of_gelu_keeps_its_digits():
    x = np.array([-30.0, -10.0, -5.0, -1.0, 0.0, 1.0, 10.0, 1e10])
    close(lab.gelu(x), x * special.ndtr(x), rtol=1e-12, atol=0)  # x / sqrt(2) is rounded, and exp(-x * x / 2) sees it
    close(lab.gelu(x.astype("float32")), x * special.ndtr(x), rtol=1e-5, atol=1e-44)
    close(slope_at(lab.gelu, x), special.ndtr(x) + x * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi), rtol=1e-12, atol=0)
    close(lab.gelu(x, approximate="tanh"), lab.gelu(x), atol=1e-3)
    assert lab.gelu(lab.tensor([1, 2])).dtype == np.float64
    assert lab.gelu(lab.tensor(np.ones(2, "float16"))).dtype == np.float16


def test_without_numba_erf_is_that_of_the_standard_library(monkeypatch):
    x = np.linspace(-3, 3, 7)
    compiled = lab.erf(x), lab.gelu(x), lab.erfc(x.astype("float32"))
    monkeypatch.setattr(loops, "have_compiler", lambda: False)
    close(lab.erf(x), compiled[0], rtol=0)
    close(lab.gelu(x), compiled[1], rtol=1e-15)
    close(lab.erfc(x.astype("float32")), compiled[2], rtol=1e-6)


def test_an_entry_does_not_depend_on_the_array_around_it():
    x = np.random.default_rng(0).normal(size=1001).astype("float32")
    for f in (lab.erf, lab.erfc, lab.gelu):
        whole = f(x)
        close(np.array([f(v) for v in x[:50]]), whole[:50], rtol=0)
        close(f(x[::7]), whole[::7], rtol=0)
        close(f(np.broadcast_to(x[:3], (2, 3))), np.stack([whole[:3]] * 2), rtol=0)


# --- slopes ---------------------------------------------------------------------------------------------------------

KNOWN = {name: getattr(anp, name) for name in (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh",
    "cosh", "tanh", "arcsinh", "arctanh", "sqrt", "square", "sinc", "arctan2", "logaddexp", "power", "maximum",
    "minimum", "reciprocal", "absolute",
)} | {"erf": aspecial.erf, "erfc": aspecial.erfc, "sigmoid": aspecial.expit}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_slopes_agree_with_autograd(name):
    op = PRIMITIVES[name]
    xs = [np.array([0.2, 0.4, 0.9]), np.array([0.7, 0.3, 0.8])][: len(op.arguments)]
    for i in range(len(xs)):
        first = autograd.elementwise_grad(KNOWN[name], i)
        close(slope_at(op, *xs, argnum=i), first(*xs), rtol=1e-12)
        second = lambda *xs, i=i: slope_at(op, *xs, argnum=i)  # noqa: E731
        if name not in ("maximum", "minimum"):
            close(slope_at(second, *xs), autograd.elementwise_grad(first, 0)(*xs), rtol=1e-10, atol=1e-10)


NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("f", "xs", "slopes"),
    [
        # autograd (HIPS) gives nan at 0 ** y for y < 1, torch and JAX what stands here
        (lab.power, (0.0, 0.0), (0.0, 0.0)),
        (lab.power, (0.0, 1.0), (1.0, 0.0)),
        (lab.power, (0.0, 2.0), (0.0, 0.0)),
        (lab.power, (0.0, 0.5), (INF, 0.0)),
        (lab.power, (0.0, -1.0), (-INF, -INF)),
        (lab.power, (-2.0, 3.0), (12.0, NAN)),
        (lab.power, (-2.0, -2.0), (0.25, NAN)),
        (lab.power, (INF, 0.0), (0.0, INF)),
        (lab.power, (NAN, 2.0), (NAN, NAN)),
        (lab.hypot, (0.0, 0.0), (0.0, 0.0)),
        (lab.hypot, (3e300, 4e300), (0.6, 0.8)),
        (lab.arctan2, (3e300, 4e300), (0.16e-300, -0.12e-300)),
        (lab.arctan2, (0.0, -1.0), (-1.0, 0.0)),
        (lab.logaddexp, (-INF, 1.0), (0.0, 1.0)),
        (lab.logaddexp, (-INF, -INF), (0.5, 0.5)),
        (lab.logaddexp, (INF, 1.0), (1.0, 0.0)),
        (lab.logaddexp, (INF, INF), (0.5, 0.5)),
        (lab.logaddexp, (1000.0, 1000.0), (0.5, 0.5)),
        (lab.xlogy, (0.0, 0.0), (0.0, 0.0)),
        (lab.xlogy, (0.0, 2.0), (np.log(2.0), 0.0)),
        (lab.xlogy, (2.0, 0.0), (-INF, INF)),
        (lab.maximum, (1.0, 1.0), (0.5, 0.5)),
    ],
)
def test_slopes_at_edges_of_two_operands(f, xs, slopes):
    close([array(slope_at(f, *xs, argnum=i)) for i in (0, 1)], slopes)


@pytest.mark.parametrize(
    ("f", "x", "slope"),
    [
        (lab.cbrt, 0.0, INF), (lab.cbrt, -8.0, 1 / 12), (lab.sqrt, 0.0, INF), (lab.rsqrt, 0.0, -INF),
        (lab.arcsin, 1.0, INF), (lab.arccos, -1.0, -INF), (lab.arccosh, 1.0, INF), (lab.arctanh, 1.0, INF),
        (lab.arcsinh, 1e200, 1e-200), (lab.arccosh, 1e200, 1e-200), (lab.arctan, 1e200, 0.0),
        (lab.expm1, -50.0, np.exp(-50.0)), (lab.log_sigmoid, -800.0, 1.0), (lab.log_sigmoid, 40.0, np.exp(-40.0)),
        (lab.softplus, -800.0, 0.0), (lab.softplus, 800.0, 1.0), (lab.silu, -800.0, 0.0), (lab.silu, 800.0, 1.0),
        (lab.absolute, 0.0, 0.0), (lab.sinc, 0.0, 0.0), (lab.sinc, 1e-9, -np.pi**2 / 3 * 1e-9),
        (lab.erf, 0.0, 2 / np.sqrt(np.pi)), (lab.erfc, 30.0, 0.0), (lab.elu, -800.0, 0.0), (lab.elu, 0.0, 1.0),
        (lab.gelu, 0.0, 0.5), (lab.gelu, 100.0, 1.0), (lab.gelu, -100.0, 0.0), (lab.exp2, 3.0, 8 * np.log(2.0)),
    ],
)  # fmt: skip
def test_slopes_at_edges_of_one_operand(f, x, slope):
    close(slope_at(f, x), slope, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", ["sign", "floor", "ceil", "rint", "trunc", "round"])
def test_steps_have_slope_zero(name):
    close(slope_at(lambda x: getattr(lab, name)(x) * x, 2.6), float(getattr(np, name)(2.6)))
    close(lab.grad(getattr(lab, name))(2.6), 0.0)


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 2.5])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_short_cuts_of_power_are_its_formula(exponent, dtype):
    x, y = np.array([0.3, 1.0, 2.5], dtype), np.array(exponent, dtype)
    close(lab.power(x, y), np.power(x, y), rtol=1e-6 if dtype == "float32" else 1e-15)
    close(lab.power(x, exponent), np.power(x, y), rtol=1e-6 if dtype == "float32" else 1e-15)
    rule, ct = PRIMITIVES["power"].rules[0], np.ones(3, dtype)
    found = rule.eager(ct, None, x, y)
    assert found.dtype == dtype
    close(found, rule.general(ct, None, x, y), rtol=1e-6 if dtype == "float32" else 1e-14)
    close(found, rule.eager(ct, None, x, np.full(3, y)), rtol=1e-6 if dtype == "float32" else 1e-14)


def test_integer_powers_are_numpys():
    x = np.array([-3, 0, 2, 5])
    close(lab.tensor(x) ** 3, x**3)
    close(lab.tensor(x) ** 0, x**0)
    close(lab.tensor(x) ** 2.0, x**2.0)
    close(lab.tensor(x) ** np.array([0, 1, 2, 3]), x ** np.array([0, 1, 2, 3]))
    assert (lab.tensor(x) ** 2).dtype == np.int64
    close(lab.grad(lambda x: (x ** np.array([0, 1, 2, 3])).sum())(x.astype(float)), [0.0, 1.0, 4.0, 75.0])


@pytest.mark.parametrize("order", range(1, 7))
def test_sinc_is_smooth_at_zero_to_every_order(order):
    f = lab.sinc
    for _ in range(order):
        f = lab.grad(f)
    # sin(u) / u is the sum of (-1)**k u**(2k) / (2k + 1)!, and its n-th derivative at 0 is 0 or (-1)**(n/2) / (n + 1)
    close(f(0.0), 0.0 if order % 2 else (-1) ** (order // 2) * np.pi**order / (order + 1), rtol=1e-12)
    near, x = (order + 1) / np.pi, 0.3  # where the series ends, and the recurrence begins
    close(lab.sinc_slope(near * (1 - 1e-12), order), lab.sinc_slope(near * (1 + 1e-12), order), rtol=1e-8, atol=1e-8)
    h = 1e-5
    lower = lambda x: lab.sinc_slope(np.array(x), order - 1)  # noqa: E731
    close(lab.sinc_slope(x, order), (lower(x + h) - lower(x - h)) / (2 * h), rtol=1e-6)


def test_curvature_where_a_branch_is_not_taken():
    second = lambda f: lab.grad(lab.grad(f))  # noqa: E731
    close(second(lambda x: lab.logaddexp(x, 1.0))(1.0), 0.25)
    close(second(lambda x: lab.logaddexp(x, -INF))(1.0), 0.0)
    close(second(lambda x: lab.hypot(x, 0.0))(0.0), 0.0)
    close(second(lambda x: lab.xlogy(x, x))(2.0), 0.5)
    close(lab.grad(lambda y: lab.grad(lab.xlogy)(0.0, y))(2.0), 0.5)
    close(second(lambda x: x**3)(0.0), 0.0)
    close(lab.grad(second(lambda x: x**3))(0.0), 6.0)


def test_kinks_of_rectifiers_follow_the_convention():
    for kinks, share in (("zero", 0.0), ("half", 0.5), ("one", 1.0)):
        with lab.settings(kinks=kinks):
            close(lab.grad(lambda x: lab.leaky_relu(x, 0.2))(0.0), 0.2 + share * 0.8)
            close(lab.grad(lambda x: lab.elu(x, alpha=3.0))(0.0), 3.0 - share * 2.0)
            close(lab.grad(lab.elu)(0.0), 1.0)


# --- clip -----------------------------------------------------------------------------------------------------------


def test_clip_is_numpys():
    x = np.array([-2.0, -0.5, 0.0, 3.0, np.nan, np.inf])
    t = lab.tensor(x)
    for bounds in ((-1.0, 1.0), (None, 1.0), (-1.0, None), (None, None), (1.0, -1.0), (np.zeros(6), 2)):
        close(lab.clip(t, *bounds), np.clip(x, *bounds))
        close(np.clip(t, *bounds), np.clip(x, *bounds))
    close(np.clip(t, min=-1.0), np.clip(x, -1.0, None))
    close(t.clip(-1, 1), x.clip(-1, 1))
    assert lab.clip(lab.tensor([1, 5]), 2, None).dtype == np.int64
    assert lab.clip(np.ones(2, "float32"), 0.0, 0.5).dtype == np.float32
    assert lab.clip(x) is not x


def test_clip_passes_gradients_inside_to_its_bounds_outside_and_shares_ties():
    x, low, high = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]), -1.0, np.array(1.0)
    grads = lab.grad(lambda *xs: lab.clip(*xs).sum(), argnums=(0, 1, 2))(x, low, high)
    close(grads[0], [0.0, 0.5, 1.0, 0.5, 0.0])
    close(grads[1], 1.5)
    close(grads[2], 1.5)
    close(lab.grad(lambda x: lab.clip(x).sum())(x), np.ones(5))


# --- parameters of formulas -----------------------------------------------------------------------------------------


def test_a_parameter_is_given_by_place_or_by_name_and_seen_in_pictures():
    x = lab.tensor(np.array([-1.0, 2.0], "float32"), requires_grad=True)
    with lab.record(kinds=[OpRecorded]) as rec:
        lab.leaky_relu(x)
        lab.leaky_relu(x, 0.5)
        y = lab.leaky_relu(x, negative_slope=np.float64(0.25))
    assert [event.params for event in rec] == ["", "negative_slope=0.5", "negative_slope=0.25"]
    assert y.dtype == np.float32  # a number stays weak, whatever its type
    y.sum().backward()
    close(x.grad, [0.25, 1.0])


def test_a_parameter_is_part_of_what_jit_compiled():
    x = np.array([-1.0])
    found = [lab.jit(lambda x, s=s: lab.leaky_relu(x, s))(x) for s in (0.1, 0.2)]
    close(np.concatenate([array(y) for y in found]), [-0.1, -0.2])
    graph = lab.make_graph(lambda x: lab.elu(x, 2.0))(x)
    assert "alpha=2.0" in str(graph)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda x: lab.leaky_relu(x, lab.tensor(0.1)), "negative_slope of leaky_relu is a plain number"),
        (lambda x: lab.elu(x, alpha="a"), "alpha of elu is a plain number"),
        (lambda x: lab.vmap(lambda s: lab.elu(x, s))(np.ones(2)), "alpha of elu is a plain number"),
        (lambda x: lab.grad(lambda s: lab.leaky_relu(x, s).sum())(0.1), "negative_slope of leaky_relu is a plain"),
        (lambda x: lab.elu(x, 1.0, 2.0), "elu got a parameter that it does not have"),
        (lambda x: lab.leaky_relu(x, slope=0.1), "leaky_relu got a parameter that it does not have"),
        (lambda x: lab.sinc_slope(x, 1.5), "the order of a derivative is a whole number"),
        (lambda x: lab.gelu(x, "erf"), "gelu does not know this approximation"),
        (lambda x: lab.clip(x, np.ones(4)), "clip cannot broadcast its operands"),
        (lambda x: lab.round(x, 0.5), "round needs a whole number of decimals"),
    ],
)
def test_what_a_parameter_cannot_be_is_said_by_name(call, problem):
    with pytest.raises(LabError, match=problem) as caught:
        call(lab.tensor([-1.0, 1.0, 2.0]))
    assert isinstance(caught.value, ArgumentError | LabError)
    assert caught.value.given


def test_a_new_op_may_have_parameters_and_constants():
    op = elementwise("scaled_angle", "x", "times * x / pi", ["times / pi"], parameters={"times": 180.0},
                     reference=np.rad2deg, doc="An angle in degrees.")  # fmt: skip
    try:
        close(op(np.pi), 180.0)
        close(lab.grad(lambda x: op(x, times=1.0))(2.0), 1 / np.pi)
        with pytest.raises(FormulaError, match="an argument has the name of a constant"):
            elementwise("bad", "pi", "pi", ["1"], reference=None, doc="")
    finally:
        del PRIMITIVES["scaled_angle"]


# --- spellings ------------------------------------------------------------------------------------------------------


def test_tensors_have_the_methods_of_arrays_and_of_torch():
    t, u = lab.tensor([0.25, 0.5]), lab.tensor([0.5, 0.5])
    for name in ("exp2", "log1p", "sin", "arctan", "sinh", "sqrt", "square", "reciprocal", "floor", "ceil", "trunc",
                 "sign", "isnan", "isfinite", "logical_not", "sinc", "absolute", "negative"):  # fmt: skip
        close(getattr(t, name)(), getattr(np, name)(t.numpy()))
        close(getattr(np, name)(t), getattr(np, name)(t.numpy()))
    for name in ("hypot", "arctan2", "logaddexp", "maximum", "minimum", "greater", "equal", "logical_and"):
        close(getattr(t, name)(u), getattr(np, name)(t.numpy(), u.numpy()))
        close(getattr(np, name)(t, u), getattr(np, name)(t.numpy(), u.numpy()))
    close(t.abs().pow(2), t.numpy() ** 2)
    close(t.round(1), t.numpy().round(1))
    close(np.round(t, 1), t.numpy().round(1))
    close(t.rsqrt() + t.erf() + t.xlogy(u), 1 / np.sqrt(t.numpy()) + special.erf(t.numpy()) + t.numpy() * np.log(0.5))
    assert lab.tensor([15, 3]).round(0).dtype == np.int64
