"""Fused chains against NumPy: random chains, layouts, dtypes, nan and inf; and the source that a reader sees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import DTypeError, KernelError, ShapeError
from lab.kernels import Chain, Formula, Step, fuse, numpy_namespace
from lab.kernels.chain import source_of
from lab.kernels.formula import ARITY, FUNCTIONS

EXACT = ("x + y", "x - y", "x * y", "x / y", "-x", "abs(x)", "sqrt(abs(x))", "maximum(x, y)", "minimum(x, 0.5)",
         "where(x > y, x, y)", "where(x == 0.0, 0.0, 1.0 / x)", "sign(x)", "floor(x)", "x ** 2", "1.0 - x * y",
         "(x > 0.0) * y",
         "x ** 0.5", "x ** -1", "x / 3", "2 * x + 1")  # fmt: skip
"""Formulas whose every operation NumPy and a loop must round alike."""
ROUNDED = (
    "exp(-abs(x))",
    "tanh(x)",
    "sigmoid(x)",
    "log1p(abs(x))",
    "x * sigmoid(y)",
    "expm1(-abs(x))",
    "x ** 3",
    "x ** 1.5",
)
VALUES = [0.0, -0.0, 1.0, -1.5, 0.1, 3.0, -700.0, 1e-40, 1e30, np.inf, -np.inf, np.nan]


def one(formula: str, *inputs: tuple[str, str], layouts: tuple[str, ...] = ()) -> Chain:
    names = tuple(name for name, _ in inputs)
    return Chain(inputs, (Step("result", Formula(formula), names, names),), ("result",), layouts)


def arrays_for(dtype: str, seed: int = 0, n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    with np.errstate(over="ignore"):
        return tuple(
            np.where(rng.random(n) < 0.4, rng.choice(VALUES, n), rng.standard_normal(n) * 3).astype(dtype) for _ in "xy"
        )


def assert_within(found: np.ndarray, wanted: np.ndarray, ulps: float) -> None:
    assert found.dtype == wanted.dtype
    if found.dtype == bool or not ulps:
        np.testing.assert_array_equal(found, wanted)
        return
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~finite], wanted[~finite])
    unit = np.spacing(np.maximum(np.abs(wanted[finite]), np.finfo(wanted.dtype).tiny))
    assert (np.abs(found[finite] - wanted[finite]) <= ulps * unit).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("formula", EXACT)
def test_a_chain_of_one_exact_formula_has_the_bits_of_numpy(formula: str, dtype: str) -> None:
    x, y = arrays_for(dtype)
    with np.errstate(all="ignore"):
        wanted = Formula(formula).compile(numpy_namespace(), ("x", "y"))(x, y)
    assert_within(fuse(one(formula, ("x", dtype), ("y", dtype)))(x, y)[0], wanted, 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("formula", ROUNDED)
def test_a_chain_of_one_rounded_formula_is_within_eight_ulps_of_numpy(formula: str, dtype: str) -> None:
    x, y = arrays_for(dtype)
    with np.errstate(all="ignore"):
        wanted = Formula(formula).compile(numpy_namespace(), ("x", "y"))(x, y)
    assert_within(fuse(one(formula, ("x", dtype), ("y", dtype)))(x, y)[0], wanted, 8)


@st.composite
def chains(draw: st.DrawFn) -> tuple[Chain, int]:
    """A random chain of exact formulas over inputs of every dtype and layout."""
    layouts = draw(
        st.sampled_from([("full", "full"), ("full", "single"), ("full", "row"), ("column", "full"), ("column", "row")])
    )
    inputs = tuple((name, draw(st.sampled_from(["float32", "float64"]))) for name in ("a", "b"))
    names = [name for name, _ in inputs]
    steps = []
    for k in range(draw(st.integers(1, 6))):
        last = names[-1] if k else "a"
        other = draw(st.sampled_from(names))
        arguments: tuple[str | float, ...] = draw(st.sampled_from([(last, other), (other, last), (last, 0.25)]))
        steps.append(Step(f"s{k}", Formula(draw(st.sampled_from(EXACT))), ("x", "y"), arguments))
        names.append(f"s{k}")
    outputs = tuple(draw(st.lists(st.sampled_from(names[2:]), min_size=1, max_size=3, unique=True)))
    return Chain(inputs, tuple(steps), outputs, layouts), draw(st.integers(0, 10_000))


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Random loops are nothing to keep in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAB_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.mark.usefixtures("own_cache")
@settings(max_examples=25, deadline=None)
@given(chains())
def test_random_chains_have_the_bits_of_their_twin(drawn: tuple[Chain, int]) -> None:
    chain, seed = drawn
    n_rows, n_columns = 3, 7
    sizes = {"full": 21, "single": 1, "row": n_columns, "column": n_rows}
    flat = [
        arrays_for(dtype, seed + i, sizes[layout])[0]
        for i, ((_, dtype), layout) in enumerate(zip(chain.inputs, chain.layouts, strict=True))
    ]
    found = [np.zeros(21, dtype) for dtype in chain.output_dtypes]
    wanted = [np.zeros(21, dtype) for dtype in chain.output_dtypes]
    fused = fuse(chain)
    fused.run(*flat, *found)
    fused.twin(*flat, *wanted)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=fused.source)


def test_a_long_chain_of_rounded_steps_stays_within_its_sum_of_ulps() -> None:
    steps = [Step("s0", Formula("x * 0.5"), ("x",), ("x",))]
    for k, text in enumerate(("sigmoid(x)", "tanh(x)", "exp(x)", "log1p(x)", "x + 1.0", "sqrt(x)"), 1):
        steps.append(Step(f"s{k}", Formula(text), ("x",), (f"s{k - 1}",)))
    chain = Chain((("x", "float32"),), tuple(steps), ("s6",))
    x = np.linspace(-20, 20, 5001).astype(np.float32)
    wanted = np.zeros_like(x)
    fuse(chain).twin(x, wanted)
    assert_within(fuse(chain)(x)[0], wanted, 6)  # contracting steps: errors shrink on their way


@pytest.mark.parametrize("layouts", [("full", "row"), ("full", "column"), ("row", "column"), ("full", "single")])
@pytest.mark.parametrize("shape", [(4, 5), (1, 5), (4, 1), (1, 1), (0, 5), (4, 0), (2, 3, 5)])
def test_broadcast_operands_give_what_numpy_gives(shape: tuple[int, ...], layouts: tuple[str, str]) -> None:
    shapes = {"full": shape, "row": shape[-1:], "column": (*shape[:-1], 1), "single": (1,)}
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shapes[kind]).astype(np.float32) for kind in layouts)
    (found,) = fuse(one("x * y + x", ("x", "float32"), ("y", "float32"), layouts=layouts))(x, y)
    np.testing.assert_array_equal(found, x * y + x)
    assert found.shape == np.broadcast_shapes(x.shape, y.shape)


@pytest.mark.parametrize(
    "formula", ["x > y", "(x > 0.0) * y", "where(x < y, x, 0.0)", "x * y", "maximum(x, y)", "x + 1", "1.0"]
)
@pytest.mark.parametrize("dtypes", [("float32", "float64"), ("bool", "float32"), ("float64", "float32")])
def test_dtypes_are_those_of_numpy_or_the_chain_is_refused(formula: str, dtypes: tuple[str, str]) -> None:
    x, y = np.array([0, 1, 1, 0], dtypes[0]), np.array([0, 1, 2, -1], dtypes[1])
    wanted: Any = Formula(formula).compile(numpy_namespace(), ("x", "y"))(x, y)
    if isinstance(wanted, float) or wanted.dtype not in (np.float32, np.float64, bool):
        with pytest.raises(KernelError):
            one(formula, ("x", dtypes[0]), ("y", dtypes[1]))
        return
    assert_within(fuse(one(formula, ("x", dtypes[0]), ("y", dtypes[1])))(x, y)[0], wanted, 0)


def test_every_function_of_a_formula_can_be_fused() -> None:
    x = np.array([0.25, 0.5, 0.75])
    for name in FUNCTIONS:
        given = {"where": "x > 0.4, x, x", "sinc_slope": "x, 2"}.get(name, ", ".join(["x"] * ARITY.get(name, 1)))
        formula = Formula(f"{name}({given})")
        (found,) = fuse(Chain((("x", "float64"),), (Step("y", formula, ("x",), ("x",)),), ("y",)))(x)
        with np.errstate(invalid="ignore"):  # arccosh
            wanted = formula.compile(numpy_namespace(), ("x",))(x)
        np.testing.assert_allclose(found, wanted, rtol=1e-15)


def test_names_that_mean_something_in_the_loop_are_still_good_names() -> None:
    inputs = (("exp", "float64"), ("k", "float64"), ("v_k", "float64"), ("in_k", "float64"), ("out_y", "float64"))
    formula = Formula("a + 2 * b + 3 * c + 4 * d + exp(e)")
    step = Step("y", formula, ("a", "b", "c", "d", "e"), tuple(name for name, _ in inputs))
    (found,) = fuse(Chain(inputs, (step,), ("y",)))(*(np.full(3, float(v)) for v in (1, 2, 3, 4, 0)))
    np.testing.assert_array_equal(found, 1 + 4 + 9 + 16 + 1)


def test_an_output_may_be_written_over_an_input() -> None:
    x, y = np.arange(100.0), np.arange(100.0)
    wanted = x * y + x
    fuse(one("x * y + x", ("x", "float64"), ("y", "float64"))).run(x, y, x)
    np.testing.assert_array_equal(x, wanted)


def test_an_input_may_be_an_output_and_arrays_with_gaps_are_copied() -> None:
    chain = Chain((("x", "float32"),), (Step("y", Formula("x + 1"), ("x",), ("x",)),), ("x", "y"))
    x = np.arange(12, dtype=np.float32).reshape(3, 4).T
    same, more = fuse(chain)(x)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(more, x + 1)


def test_the_source_reads_like_the_formulas() -> None:
    chain = Chain(
        (("h", "float32"), ("b", "float32"), ("scale", "float64")),
        (
            Step("z", Formula("x + y"), ("x", "y"), ("h", "b")),
            Step("mask", Formula("x > 0.0"), ("x",), ("z",)),
            Step("out", Formula("where(c, x, 0.0) * s"), ("c", "x", "s"), ("mask", "z", "scale")),
        ),
        ("out", "mask"),
        ("full", "row", "single"),
    )
    assert chain.output_dtypes == ("float64", "bool")
    assert source_of(chain).splitlines() == [
        "def fused(in_h, in_b, in_scale, out_out, out_mask):",
        "    scale = in_scale[0]",
        "    n_columns = in_b.size",
        "    n_rows = out_out.size // n_columns if n_columns else 0",
        "    for row in range(n_rows):",
        "        for column in range(n_columns):",
        "            k = row * n_columns + column",
        "            b = in_b[column]",
        "            h = in_h[k]",
        "            z = (h + b)",
        "            mask = (z > f4(0.0))",
        "            out = (f8(where(mask, z, f4(0.0))) * scale)",
        "            out_out[k] = out",
        "            out_mask[k] = mask",
    ]


def test_equal_chains_share_one_loop() -> None:
    assert fuse(one("x + 1.25", ("x", "float64"))) is fuse(one("x + 1.25", ("x", "float64")))
    assert fuse(one("x + 1.25", ("x", "float64"))) is not fuse(one("x + 1.25", ("x", "float32")))


BAD = [
    (lambda: one("x + y", ("x", "float32")), "y is no parameter"),
    (lambda: one("x", ("x", "float16")), "a chain holds float32, float64 and bool"),
    (lambda: one("x", ("class", "float32")), "names in a chain"),
    (lambda: one("x", ("x", "float32"), ("x", "float32")), "names in a chain"),
    (lambda: one("x", ("x", "float32"), layouts=("diagonal",)), "one layout for each input"),
    (lambda: one("exp(1.0) * x", ("x", "float32")), "exp of plain numbers"),
    (lambda: one("x < x < x", ("x", "float32")), "a formula cannot become a loop: Compare"),
    (lambda: one("-x", ("x", "bool")), "arithmetic on bools only"),
    (lambda: one("where(x, x)", ("x", "float32")), "where has another number of arguments"),
    (lambda: Chain((("x", "float32"),), (), ("y",)), "the outputs of a chain"),
    (lambda: Chain((("x", "float32"),), (Step("y", Formula("a"), ("a",), ("z",)),), ("y",)), "not there yet"),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
def test_what_a_loop_cannot_hold_is_refused_when_the_chain_is_made(make: Any, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        make()


def test_arrays_that_do_not_fit_the_chain_are_refused() -> None:
    fused = fuse(one("x + y", ("x", "float32"), ("y", "float32")))
    ones = np.ones((2, 3), np.float32)
    with pytest.raises(DTypeError, match=r"another dtype\ngiven: y float64"):
        fused(ones, np.ones((2, 3)))
    with pytest.raises(ShapeError, match="y is no full operand"):
        fused(ones, np.ones(3, np.float32))
    with pytest.raises(ShapeError, match="another number of arrays"):
        fused(ones)
