"""autocast does to each op what its record says, in every transform, and gradients come back in float32."""

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError
from lab.nn import Embedding, Linear, Sequential, mlp
from lab.ops import PRIMITIVES, Op
from lab.precision import BFLOAT16, FLOAT16, FORMATS, autocast, format_of
from tests.ops.table import SAMPLED

NARROW = tuple(FORMATS)
STRICT = {"float16": 4e-3, "bfloat16": 3e-2}
"""Relative errors of a few operations, of the largest entry."""


def singles(op, sample):
    """Its operands, floats in float32."""
    return [x.astype(np.float32) if x.dtype.kind == "f" else x for x in sample.draw(0)]


def of_floats(op, sample):
    xs = singles(op, sample)
    return any(x.dtype == np.float32 for x in xs) and "dtype" not in sample.params


CASES = [c for c in SAMPLED if isinstance(c.values[0], Op) and not c.values[0].collective and of_floats(*c.values)]
"""Functions that are made of ops are cast as these."""


@pytest.mark.parametrize("narrow", NARROW)
@pytest.mark.parametrize(("op", "sample"), CASES)
def test_every_op_gives_what_its_class_says_near_the_value_in_float32(op, sample, narrow):
    xs = singles(op, sample)
    plain = np.asarray(op(*xs, **sample.params))
    with np.errstate(all="ignore"):
        found = autocast(lambda *xs: op(*xs, **sample.params), narrow)(*xs)
    assert isinstance(found, lab.Tensor)
    if plain.dtype.kind != "f":
        assert found.dtype == plain.dtype
        return
    halves = op.precision == "narrow" and narrow == "float16"
    assert found.dtype == (np.float16 if halves else plain.dtype)
    size = max(float(np.max(np.abs(plain), initial=0)), 1e-3)
    if op.precision != "narrow":
        np.testing.assert_array_equal(found.numpy(), plain)
    else:
        np.testing.assert_allclose(found.numpy(), plain, rtol=0, atol=STRICT[narrow] * size)


@pytest.mark.parametrize("narrow", NARROW)
@pytest.mark.parametrize(("op", "sample"), [c for c in CASES if any(c.values[0].rules)])
def test_gradients_of_parameters_are_float32_through_every_op(op, sample, narrow):
    xs = singles(op, sample)
    leaves = [lab.tensor(x, requires_grad=True) if x.dtype == np.float32 else x for x in xs]
    with np.errstate(all="ignore"):
        out = autocast(lambda: op(*leaves, **sample.params), narrow)()
        if out.dtype.kind != "f" or not out.requires_grad:
            return
        out.sum().backward()
    for leaf in leaves:
        if isinstance(leaf, lab.Tensor) and leaf.grad is not None:
            assert leaf.grad.dtype == np.float32


def test_a_product_is_narrow_and_what_follows_too_until_a_sum_wants_float32():
    w = lab.tensor(np.ones((3, 3), np.float32), requires_grad=True)
    b = lab.tensor(np.ones(3, np.float32), requires_grad=True)
    seen = {}

    def f(x):
        seen["product"] = x @ w
        seen["bias"] = seen["product"] + b
        seen["relu"] = lab.relu(seen["bias"])
        seen["exp"] = lab.exp(seen["relu"] * 0.1)
        seen["mixed"] = seen["exp"] + seen["relu"]
        return seen["mixed"].sum()

    autocast(f)(np.ones((2, 3), np.float32)).backward()
    assert {name: str(value.dtype) for name, value in seen.items()} == {
        "product": "float16", "bias": "float16", "relu": "float16", "exp": "float32", "mixed": "float32"}  # fmt: skip
    assert w.grad.dtype == b.grad.dtype == np.float32


def test_bfloat16_holds_its_own_numbers_and_no_others_wherever_float16_would():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(8, 8)).astype(np.float32)
    seen = []

    def f(x):
        seen.append(x @ w)
        seen.append(seen[-1] + w[0])
        seen.append(lab.reshape(seen[-1] * seen[-2], (-1,)))
        return seen[-1]

    autocast(f, "bfloat16")(rng.normal(size=(8, 8)).astype(np.float32))
    for value in seen:
        bits = np.asarray(value.value.numpy()).view(np.uint32)
        assert not (bits & 0xFFFF).any()  # the lower half of a float32


def test_float64_is_left_alone():
    x, w = np.ones((2, 3)), np.full((3, 2), 0.1)
    assert autocast(lambda x: x @ w)(x).numpy().tolist() == (x @ w).tolist()


def test_what_is_made_of_parameters_alone_is_narrow_as_well():
    a, b = (lab.tensor(np.ones((3, 3), np.float32), requires_grad=True) for _ in range(2))
    assert autocast(lambda: a @ b)().dtype == np.float16
    assert (a @ b).dtype == np.float32


@pytest.mark.parametrize("narrow", NARROW)
def test_a_network_with_integers_in_front_is_narrow_behind_its_first_product(narrow):
    model = Sequential(Embedding(7, 5, rng=0), Linear(5, 4, rng=1))
    found = autocast(model, narrow)(np.array([[1, 2, 6]]))
    assert found.dtype == format_of(narrow).dtype
    np.testing.assert_allclose(found.numpy(), model(np.array([[1, 2, 6]])).numpy(), atol=0.02)


# --- in every transform


def network():
    return mlp(6, 5, 3, rng=0)


X = np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32)


def scalar(model):
    return lambda x: (model(x) ** 2).mean()


@pytest.mark.parametrize("narrow", NARROW)
def test_transforms_inside_and_outside_agree(narrow):
    model = network()
    f = scalar(model)
    eager = autocast(f, narrow)(X)
    assert lab.jit(autocast(f, narrow))(X).numpy() == eager.numpy()
    assert autocast(lab.jit(f), narrow)(X).numpy() == eager.numpy()
    assert lab.checkpoint(autocast(f, narrow))(X).numpy() == eager.numpy()
    assert autocast(lab.checkpoint(f), narrow)(X).numpy() == eager.numpy()
    outside = lab.grad(autocast(f, narrow))(X)
    inside = autocast(lab.grad(f), narrow)(X)
    assert outside.dtype == inside.dtype == np.float32
    np.testing.assert_allclose(inside.numpy(), outside.numpy(), rtol=0.05, atol=2e-3)
    rows = lab.vmap(lambda row: autocast(model, narrow)(row))(X)
    np.testing.assert_array_equal(rows.numpy(), autocast(model, narrow)(X).numpy())
    _, tangent = lab.jvp(autocast(f, narrow), (X,), (X,))
    assert float(tangent.item()) == pytest.approx(float((outside.numpy() * X).sum()), rel=0.05)


def test_a_checkpointed_function_gives_the_same_gradient_bits():
    model, grads = network(), []
    f = scalar(model)
    for way in (autocast(f), autocast(lab.checkpoint(f)), lab.checkpoint(autocast(f))):
        for p in model.parameters():
            p.grad = None
        way(X).backward()
        grads.append(np.concatenate([p.grad.numpy().ravel() for p in model.parameters()]))
    np.testing.assert_array_equal(grads[1], grads[0])
    np.testing.assert_array_equal(grads[2], grads[0])


def test_the_graph_shows_each_cast_and_its_plan_says_what_numpy_computes():
    text = str(lab.make_graph(autocast(lambda x, w: (x @ w).sum()))(X, np.ones((6, 2), np.float32)))
    assert text.count("cast(") == 3
    assert "f16[4,2] = matmul" in text


def test_nothing_is_narrow_after_it_or_in_other_threads():
    import threading

    x, w = np.ones((2, 2), np.float32), lab.tensor(np.ones((2, 2), np.float32), requires_grad=True)
    seen = []

    def f(x):
        thread = threading.Thread(target=lambda: seen.append((w @ w).dtype))
        thread.start()
        thread.join()
        return x @ w

    autocast(f)(x)
    assert seen == [np.float32]
    assert (w @ w).dtype == np.float32


def test_containers_go_in_and_come_out():
    out = autocast(lambda batch: {"y": batch["x"] @ batch["w"], "n": 3})({"x": X, "w": np.ones((6, 1), np.float32)})
    assert out["y"].dtype == np.float16
    assert out["n"] == 3


# --- the formats


def test_the_windows_are_those_of_the_formats_themselves():
    import ml_dtypes

    info = np.finfo(np.float16)
    assert (FLOAT16.smallest, FLOAT16.smallest_normal, FLOAT16.largest) == (
        info.smallest_subnormal, info.smallest_normal, info.max)  # fmt: skip
    brain = ml_dtypes.finfo(ml_dtypes.bfloat16)
    assert (BFLOAT16.smallest, BFLOAT16.smallest_normal, BFLOAT16.largest) == (
        float(brain.smallest_subnormal), float(brain.smallest_normal), float(brain.max))  # fmt: skip
    assert (FLOAT16.fraction_bits, BFLOAT16.fraction_bits) == (info.nmant, brain.nmant)


def test_products_of_float16_are_summed_in_float32_and_rounded_once():
    a = np.full((1, 4096), 1.0, np.float16)
    assert (lab.tensor(a) @ lab.tensor(a.T)).item() == 4096  # added in float16 it would stay at 2,048
    big = np.full((1, 2), 60000, np.float16)
    assert np.isinf((lab.tensor(big) @ lab.tensor(np.ones((2, 1), np.float16))).item())


@pytest.mark.parametrize("shapes", [((3, 4), (4, 2)), ((2, 3, 4), (4, 2)), ((2, 3, 4), (2, 4, 2)), ((4,), (4, 2))])
def test_gradients_of_products_of_float16_are_near_those_of_float32(shapes):
    rng = np.random.default_rng(0)
    xs = [rng.normal(size=shape).astype(np.float16) for shape in shapes]
    found = []
    for dtype in (np.float16, np.float32):
        leaves = [lab.tensor(x.astype(dtype), requires_grad=True) for x in xs]
        (leaves[0] @ leaves[1]).sum().backward()
        found.append([leaf.grad for leaf in leaves])
    for half, single in zip(*found, strict=True):
        assert half.dtype == np.float16
        np.testing.assert_allclose(half.numpy(), single.numpy(), rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: autocast(3), "autocast needs a function"),
        (lambda: autocast(abs, "float8"), "a narrow format is float16 or bfloat16"),
        (lambda: autocast(abs, np.float16), "a narrow format is float16 or bfloat16"),
    ],
)
def test_what_cannot_be_is_refused_in_three_lines(call, says):
    with pytest.raises(ArgumentError, match=says) as caught:
        call()
    assert [line.split(":")[0] for line in str(caught.value).splitlines()[1:]] == ["given", "hint"]


def test_every_op_has_a_class():
    assert {op.precision for op in PRIMITIVES.values()} == {"follow", "narrow", "wide"}
    narrow = {op.name for op in PRIMITIVES.values() if op.precision == "narrow"}
    assert {"matmul", "conv", "conv_transpose", "contract"} <= narrow
