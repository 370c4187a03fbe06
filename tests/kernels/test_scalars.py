"""The lab's own float32 functions: how far from the true value over every exponent, and what nan and inf become."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

from lab.kernels import Chain, Formula, Step, fuse, numpy_namespace, scalar_namespace
from lab.kernels import scalars as lone
from lab.kernels.formula import ARITY, FUNCTIONS

TRUTHS = {"isnan", "isinf", "isfinite", "logical_not"}
UNARY = sorted(name for name in FUNCTIONS if ARITY.get(name, 1) == 1 and name not in TRUTHS)


def long_erfc(x: np.ndarray) -> np.ndarray:
    """scipy's erfc has lost up to 500 ulp at x = 26, where exp(-x**2) magnifies the rounding of the square."""
    wide = np.exp(-(np.maximum(x, 0.5).astype(np.longdouble) ** 2)) * special.erfcx(np.maximum(x, 0.5))
    return np.where(x > 0.5, wide.astype(float), special.erfc(x))


TRUE_VALUE = {**numpy_namespace(), "erf": special.erf, "erfc": long_erfc}
STATED_ULPS = {
    "exp": 1.0, "expm1": 1.5, "tanh": 2.5, "sigmoid": 2.5, "log": 1.0, "log1p": 1.5, "sqrt": 0.5,
    "sin": 1.0, "cos": 1.0, "tan": 1.0, "sinh": 2.0, "cosh": 2.0, "arcsin": 1.0, "arccos": 1.0, "arctan": 1.0,
    "arcsinh": 2.0, "arccosh": 2.0, "arctanh": 2.0, "exp2": 1.0, "log2": 1.0, "log10": 2.0, "cbrt": 1.0,
    "erf": 2.0, "erfc": 4.0, **dict.fromkeys(("abs", "sign", "floor", "ceil", "rint", "trunc"), 0.0),
}  # fmt: skip
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-45, -1e-45, 3.4e38, -3.4e38, 88.72, 88.73, -103.9, -104.1]


def compiled(function: str, dtype: str) -> Any:
    return fuse(Chain((("x", dtype),), (Step("y", Formula(f"{function}(x)"), ("x",), ("x",)),), ("y",)))


def dense() -> np.ndarray:
    """A million float32: random bits, every exponent, and the ranges where the functions bend."""
    bits = np.random.default_rng(0).integers(0, 2**32, 500_000, dtype=np.uint32).view(np.float32)
    steps = np.geomspace(1e-45, 3e38, 150_001)
    ranges = [np.linspace(-110, 95, 300_001), np.linspace(-1, 1, 200_001), steps, -steps, SPECIAL]
    return np.concatenate([bits, *(np.asarray(r).astype(np.float32) for r in ranges)])


X = dense()


@pytest.mark.parametrize("function", UNARY)
def test_float32_is_within_the_stated_ulps_of_the_true_value(function: str) -> None:
    with np.errstate(all="ignore"):
        exact = TRUE_VALUE[function](X.astype(np.float64))
        rounded = exact.astype(np.float32)
        (found,) = compiled(function, "float32")(X)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(rounded))
        finite = np.isfinite(rounded) & np.isfinite(found)
        np.testing.assert_array_equal(found[~finite], rounded[~finite])
        error = np.abs(found[finite].astype(np.float64) - exact[finite]) / np.spacing(np.abs(rounded[finite]))
    assert error.max() <= STATED_ULPS[function], X[finite][error.argmax()]


@pytest.mark.parametrize("function", UNARY)
def test_float64_is_within_four_ulps_of_numpy(function: str) -> None:
    x = np.concatenate([np.linspace(-50, 50, 20_001), np.geomspace(1e-300, 1e300, 2001), SPECIAL])
    with np.errstate(all="ignore"):
        wanted = TRUE_VALUE[function](x)
        (found,) = compiled(function, "float64")(x)
        finite = np.isfinite(wanted)
        np.testing.assert_array_equal(found[~finite], wanted[~finite])
        error = np.abs(found[finite] - wanted[finite]) / np.spacing(np.abs(wanted[finite]))
    assert error.max() <= 4.0, x[finite][error.argmax()]


@pytest.mark.parametrize("function", UNARY)
def test_plain_python_runs_the_same_function(function: str) -> None:
    x = np.array([-2.5, -0.3, -1e-9, 0.0, 1e-9, 0.4, 3.0, 80.0], np.float32)
    with np.errstate(all="ignore"):
        (wanted,) = compiled(function, "float32")(x)
        found = np.array([scalar_namespace()[function](v) for v in x], np.float32)
    np.testing.assert_array_max_ulp(found[~np.isnan(found)], wanted[~np.isnan(wanted)], 2)


@pytest.mark.parametrize("function", ["exp", "expm1", "tanh", "sigmoid", "log", "log1p", "sqrt", "sin", "floor"])
def test_the_value_does_not_depend_on_the_place_in_the_array(function: str) -> None:
    x = np.random.default_rng(1).uniform(0.1, 5, 37).astype(np.float32)
    (whole,) = compiled(function, "float32")(x)
    single = np.concatenate([compiled(function, "float32")(x[i : i + 1])[0] for i in range(x.size)])
    np.testing.assert_array_equal(single, whole)


def test_both_namespaces_know_every_function_of_a_formula() -> None:
    assert set(numpy_namespace()) == set(scalar_namespace()) == set(FUNCTIONS)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_numpy_sigmoid_keeps_dtype_nan_and_small_values(dtype: str) -> None:
    y = numpy_namespace()["sigmoid"](np.array([np.nan, -80.0, 0.0, np.inf, -np.inf], dtype))
    assert y.dtype == dtype
    np.testing.assert_allclose(y, [np.nan, 1.8048513878454153e-35, 0.5, 1.0, 0.0], rtol=1e-5)


def test_the_exponential_below_zero_is_within_one_ulp_and_flushes_only_what_is_not_normal() -> None:
    x = np.concatenate([np.linspace(-87.3, 0, 2001), [-88.5, -1e30, -np.inf, np.nan]]).astype(np.float32)
    found = np.array([lone.exp_below_zero(v) for v in x])
    exact = np.exp(x.astype(float))
    assert (np.abs(found - exact)[:-4] <= np.spacing(exact.astype(np.float32))[:-4]).all()
    np.testing.assert_array_equal(found[-4:], [0, 0, 0, np.nan])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_orders_rise_with_the_numbers_and_lead_back_to_them(dtype: str) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    x = np.array([-np.inf, -3e38, -1, -tiny, 0.0, tiny, 1, 1.5, 3e38, np.inf, np.nan], dtype)
    orders = [lone.order(v) for v in x]
    assert orders == sorted(set(orders))
    np.testing.assert_array_equal([lone.ordered(n) for n in orders], x)
