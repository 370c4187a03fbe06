"""grad, value_and_grad, vjp and jvp: what they take, return, refuse, and how they nest."""

import dataclasses
import math
from typing import NamedTuple

import numpy as np
import pytest

import lab
from lab.errors import (
    ArgumentError,
    ConcretizationError,
    GradientError,
    LabError,
    ShapeError,
    TracerLeakError,
    TransformError,
    UnsupportedError,
)
from tests.numerics import array, close


class Pair(NamedTuple):
    a: object
    b: object


@dataclasses.dataclass
class Layer:
    w: object
    b: object


# --- perturbation confusion -----------------------------------------------------------------------------------------


def test_the_classics_of_perturbation_confusion():
    close(lab.grad(lambda x: x * lab.grad(lambda y: x + y)(1.0))(1.0), 1.0)
    close(lab.grad(lambda x: x * lab.grad(lambda y: x * y)(2.0))(3.0), 6.0)
    close(lab.grad(lambda x: x * lab.jvp(lambda y: x * y, (2.0,), (1.0,))[1])(3.0), 6.0)
    d = lambda f: lambda x: lab.jvp(f, (x,), (1.0,))[1]  # noqa: E731
    close(d(lambda x: x * d(lambda y: x + y)(1.0))(1.0), 1.0)
    close(d(lambda x: d(lambda y: x * y)(x))(3.0), 1.0)
    close(lab.vmap(lambda x: lab.grad(lambda y: x * y)(1.0))(np.arange(3.0)), [0.0, 1.0, 2.0])
    close(lab.grad(lambda x: lab.vmap(lambda y: x * y)(np.arange(3.0)).sum())(2.0), 3.0)

    def shift(offset):  # Siskind and Pearlmutter's: a closure that keeps a value of the outer level
        return lambda f: lambda x: f(x + offset)

    close(d(lambda s: d(shift(s)(lab.sin))(1.0))(0.0), -np.sin(1.0))
    close(lab.grad(lambda s: lab.grad(shift(s)(lab.sin))(1.0))(0.0), -np.sin(1.0))
    close(d(lambda s: lab.grad(shift(s)(lab.sin))(1.0))(0.0), -np.sin(1.0))


def test_high_orders_of_the_exponential_and_of_a_power():
    f = lab.exp
    for _ in range(5):
        f = lab.grad(f)
    close(f(0.5), np.exp(0.5))
    g = lambda x: x**5  # noqa: E731
    for _ in range(5):
        g = lab.grad(g)
    close(g(2.0), 120.0)


def test_a_leaf_of_the_plain_tape_inside_grad_is_a_constant_and_stays_tracked():
    w = lab.tensor(3.0, requires_grad=True)
    g = lab.grad(lambda x: w * x * x)(2.0)
    close(g, 12.0)
    g.backward()  # dg/dw = 2 x
    close(w.grad, 4.0)


def test_backward_on_the_value_of_a_functional_transform_reaches_the_leaves():
    w = lab.tensor(3.0, requires_grad=True)
    value, gradient = lab.value_and_grad(lambda x: w * x)(2.0)
    (value + gradient).backward()
    close(w.grad, 3.0)


def test_no_grad_outside_and_inside():
    with lab.no_grad():
        close(lab.grad(lambda x: x * x)(3.0), 6.0)
        close(lab.grad(lab.grad(lambda x: x**3))(2.0), 12.0)

    def f(x):
        with lab.no_grad():
            c = x * x
        return c * x

    close(lab.grad(f)(3.0), 9.0)
    close(lab.grad(lab.grad(f))(3.0), 0.0)

    def g(x):
        with lab.no_grad():
            c = lab.grad(lambda y: y**3)(x)
        return c * x

    close(lab.grad(g)(2.0), 12.0)


def test_leaked_tracers_are_refused():
    held = []
    for transform in (lab.grad, lab.vmap, lab.jit, lab.make_graph, lambda f: lambda x: lab.jvp(f, (x,), (x,)),
                      lambda f: lambda x: lab.vjp(f, x)):  # fmt: skip
        held.clear()
        transform(lambda x: held.append(x) or lab.sum(x))(np.ones(2))
        for use in (lambda t: t * 2.0, lab.exp, lambda t: lab.where(True, t, t), lambda t: t[0]):
            with pytest.raises(TracerLeakError, match="a value from inside a finished transform") as caught:
                use(held[0])
            assert caught.value.hint


def test_a_transform_that_fails_leaves_no_live_tracer():
    held = []

    def f(x):
        held.append(x)
        raise ZeroDivisionError

    for transform in (lab.grad, lab.vmap, lab.jit, lambda f: lambda x: lab.jvp(f, (x,), (x,))):
        with pytest.raises(ZeroDivisionError):
            transform(f)(np.ones(2))
        with pytest.raises(TracerLeakError):
            held[-1] * 2.0


# --- containers -----------------------------------------------------------------------------------------------------


def test_containers_in_and_out_of_grad():
    def f(p, q):
        return (p["w"] * q.a).sum() + q.b[0] * p["b"] + (p["none"] is None) * 1.0

    p = {"w": np.ones(2), "b": 3.0, "none": None}
    q = Pair(np.array([5.0, 6.0]), [2.0, ()])
    gp, gq = lab.grad(f, argnums=(0, 1))(p, q)
    close(gp["w"], [5.0, 6.0])
    close(gp["b"], 2.0)
    assert gp["none"] is None
    assert isinstance(gq, Pair)
    close(gq.a, [1.0, 1.0])
    close(gq.b[0], 3.0)
    assert gq.b[1] == ()
    layer = lab.grad(lambda m: (m.w * m.b).sum())(Layer(np.array([1.0, 2.0]), 3.0))
    assert isinstance(layer, Layer)
    close(layer.w, [3.0, 3.0])
    close(layer.b, 3.0)


def test_containers_in_and_out_of_vjp_jvp_vmap_and_jit():
    def f(p):
        return {"sum": p.a + p.b, "pair": (p.a * p.b, [p.a])}

    p = Pair(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    out, back = lab.vjp(f, p)
    assert isinstance(out["pair"], tuple)
    (ct,) = back({"sum": np.ones(2), "pair": (np.ones(2), [np.zeros(2)])})
    assert isinstance(ct, Pair)
    close(ct.a, [4.0, 5.0])
    close(ct.b, [2.0, 3.0])
    value, tangent = lab.jvp(f, (p,), (Pair(np.ones(2), np.zeros(2)),))
    close(value["sum"], [4.0, 6.0])
    close(tangent["pair"][0], [3.0, 4.0])
    close(tangent["pair"][1][0], [1.0, 1.0])
    mapped = lab.vmap(f)(p)
    close(mapped["pair"][0], [3.0, 8.0])
    jitted = lab.jit(f)
    close(jitted(p)["sum"], [4.0, 6.0])
    close(jitted(p)["pair"][1][0], p.a)
    assert len(jitted.cache) == 1


def test_the_gradient_of_a_function_with_auxiliary_output():
    (value, aux), g = lab.value_and_grad(lambda x: (x * x, {"twice": 2.0 * x, "text": "kept"}), has_aux=True)(3.0)
    close(value, 9.0)
    close(aux["twice"], 6.0)
    assert aux["text"] == "kept"
    close(g, 6.0)
    g, aux = lab.grad(lambda x: (x * x, x), has_aux=True)(3.0)
    close(g, 6.0)
    close(aux, 3.0)
    close(aux * 2.0, 6.0)  # no leaked tracer
    inner = lab.grad(lambda x: lab.grad(lambda y: (x * y * y, y), has_aux=True)(x)[0])
    close(inner(3.0), 12.0)


def test_argnums_name_arguments_also_from_the_end():
    f = lambda x, y, z: x * y**2 * z**3  # noqa: E731
    close(lab.grad(f, argnums=1)(2.0, 3.0, 1.0), 12.0)
    close(lab.grad(f, argnums=-1)(2.0, 3.0, 1.0), 54.0)
    assert isinstance(lab.grad(f, argnums=(0,))(2.0, 3.0, 1.0), tuple)
    close(lab.grad(f, argnums=(2, 0))(2.0, 3.0, 1.0)[1], 9.0)
    close(lab.grad(lambda x, *, scale: x * scale)(2.0, scale=5.0), 5.0)
    close(lab.grad(lambda x, n: x**n)(2.0, 3), 12.0)  # an integer that is not differentiated


# --- what a function may return --------------------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [3.0, 3, np.float32(3), np.array(3.0), lab.tensor(3.0), np.array([[3.0]])],
                         ids=lambda c: type(c).__name__)  # fmt: skip
def test_constants_have_zero_gradients_and_tangents(constant):
    f = lambda x: constant  # noqa: E731
    g = lab.grad(f)(np.ones(2))
    close(g, [0.0, 0.0])
    value, tangent = lab.jvp(f, (np.ones(2),), (np.ones(2),))
    close(value, constant)
    close(tangent, np.zeros(np.shape(array(constant))))
    close(lab.jit(f)(1.0), constant)
    close(lab.vmap(f)(np.ones(2)), np.broadcast_to(array(constant), (2, *np.shape(array(constant)))))
    _, back = lab.vjp(f, np.ones(2))
    close(back(np.ones(np.shape(array(constant))))[0], [0.0, 0.0])
    assert str(lab.make_graph(f)(1.0)).count("=") == 0


def test_an_input_returned_as_it_is():
    x = np.array([1.0, 2.0])
    close(lab.jvp(lambda x: x, (x,), (3 * x,))[1], 3 * x)
    close(lab.vjp(lambda x: x, x)[1](x)[0], x)
    close(lab.jit(lambda x: x)(x), x)
    close(lab.vmap(lambda x: x)(x), x)
    close(lab.grad(lambda x: x)(2.0), 1.0)
    a, b = lab.vjp(lambda x: (x, x), x)[1]((x, x))[0], 2 * x
    close(a, b)


def test_unused_arguments_have_zero_gradients_of_their_shape_and_dtype():
    gx, gy = lab.grad(lambda x, y: x.sum(), argnums=(0, 1))(np.ones(2), np.ones((3, 1), "float32"))
    close(gx, [1.0, 1.0])
    close(gy, np.zeros((3, 1)))
    assert gy.dtype == np.float32


def test_the_value_returned_shares_nothing_with_the_argument():
    x = np.array([1.0, 2.0])
    (g,) = lab.vjp(lambda t: t, x)[1](x)
    g[0] = 9.0
    close(x, [1.0, 2.0])
    t = lab.tensor([1.0, 2.0])
    out = lab.jit(lambda t: t)(t)
    out[0] = 9.0
    close(t, [1.0, 2.0])
    for out in (lab.vmap(lambda t: t)(x), lab.jvp(lambda t: t, (x,), (x,))[0], lab.jit(lambda t: t)(x),
                lab.vmap(lambda t: t * 1.0)(t)):  # fmt: skip
        out[0] = 9.0
        close(x, [1.0, 2.0])
        close(t, [1.0, 2.0])


def test_vjp_can_be_pulled_back_again_and_again():
    _, back = lab.vjp(lambda x: lab.exp(x) * x, 1.0)
    for ct in (1.0, 2.0, 1.0):
        close(back(ct)[0], ct * 2 * np.e)
    close(lab.vmap(lambda ct: back(ct)[0])(np.array([1.0, 2.0])), [2 * np.e, 4 * np.e])
    close(lab.grad(lambda ct: back(ct)[0])(1.0), 2 * np.e)


def test_a_pulled_back_function_of_an_outer_transform_is_refused_after_its_end():
    held = []
    lab.grad(lambda x: held.append(lab.vjp(lambda y: x * y, 2.0)[1]) or x)(3.0)
    with pytest.raises(TracerLeakError):
        held[0](1.0)


def test_zero_size_arrays():
    close(lab.grad(lambda x: x.sum())(np.ones((0, 3))), np.ones((0, 3)))
    close(lab.jvp(lab.exp, (np.ones(0),), (np.ones(0),))[1], np.ones(0))
    close(lab.vmap(lambda x: x.sum())(np.ones((2, 0))), [0.0, 0.0])
    close(lab.vmap(lambda x: x * 2.0)(np.ones((0, 2))), np.ones((0, 2)))
    close(lab.jit(lambda x: x.sum())(np.ones(0)), 0.0)


def test_no_arguments_to_differentiate_in_an_empty_container():
    assert lab.grad(lambda p: lab.tensor(1.0))({}) == {}
    assert lab.jvp(lambda p: 1.0, ({},), ({},))[1].item() == 0.0


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "problem"),
    [
        (lambda: lab.grad(lambda x: x * x)(3), TransformError, "grad needs float inputs"),
        (lambda: lab.grad(lambda x: x)(True), TransformError, "grad needs float inputs"),
        (lambda: lab.grad(lambda x: x)(lab.tensor([1, 2])), TransformError, "grad needs float inputs"),
        (lambda: lab.grad(lambda x: x)("a"), TransformError, "grad needs float inputs"),
        (lambda: lab.grad(lambda x: x)(object()), TransformError, "grad needs float inputs"),
        (lambda: lab.grad(lambda x: x)([[1.0], "a"]), TransformError, "grad needs float inputs"),
        (lambda: lab.grad(lambda x: x)(1j), TransformError, "grad needs float inputs"),
        (lambda: lab.grad(lambda x: x * x)(np.ones(3)), GradientError, "grad needs a function that returns one number"),
        (lambda: lab.grad(lambda x: (x, x))(1.0), GradientError, "grad needs a function that returns one number"),
        (lambda: lab.grad(lambda x: None)(1.0), GradientError, "grad needs a function that returns one number"),
        (lambda: lab.grad(lambda x: "text")(1.0), LabError, "grad needs a function that returns one number"),
        (lambda: lab.grad(lambda x: x > 0.0)(1.0), GradientError, "grad needs a function that returns a float"),
        (lambda: lab.grad(lambda x: x.astype(int))(1.0), GradientError, "grad needs a function that returns a float"),
        (
            lambda: lab.grad(lambda x: x, has_aux=True)(1.0),
            GradientError,
            "has_aux needs a function that returns a pair",
        ),
        (lambda: lab.grad(lambda x: x, argnums=1)(1.0), ArgumentError, "argnums names an argument that was not given"),
        (lambda: lab.grad(lambda x: x)(), ArgumentError, "argnums names an argument that was not given"),
        (lambda: lab.grad(lambda x: x, argnums=(0, 0))(1.0), ArgumentError, "argnums names an argument twice"),
        (lambda: lab.grad(lambda x: x, argnums="x")(1.0), ArgumentError, "argnums is an integer or several"),
        (lambda: lab.grad(3), ArgumentError, "grad needs a function"),
        (lambda: lab.vmap(None), ArgumentError, "vmap needs a function"),
        (lambda: lab.jit(3), ArgumentError, "jit needs a function"),
        (lambda: lab.vjp(3, 1.0), ArgumentError, "vjp needs a function"),
        (lambda: lab.jvp(3, (1.0,), (1.0,)), ArgumentError, "jvp needs a function"),
        (lambda: lab.make_graph(3), ArgumentError, "make_graph needs a function"),
        (lambda: lab.vjp(lambda x: x, 1), TransformError, "vjp needs float inputs"),
        (lambda: lab.vjp(lambda x: x, 1.0)[1](np.ones(2)), ShapeError, "a cotangent has the shape of its value"),
        (lambda: lab.vjp(lambda x: (x, x), 1.0)[1](1.0), ArgumentError, "cotangents must have the structure"),
        (lambda: lab.vjp(lambda x: x, 1.0)[1]("a"), LabError, "a cotangent must be numbers"),
        (lambda: lab.jvp(lambda x: x, (1,), (1,)), TransformError, "jvp needs float inputs"),
        (lambda: lab.jvp(lambda x: x, (1.0,), (np.ones(2),)), ShapeError, "a tangent has the shape of its value"),
        (lambda: lab.jvp(lambda x: x, (1.0,), ()), ArgumentError, "tangents must have the structure of the primals"),
        (lambda: lab.jvp(lambda x: x, (1.0,), ("a",)), LabError, "a tangent must be numbers"),
        (lambda: lab.jvp(lambda x: x, 1.0, 1.0), ArgumentError, "jvp needs tuples"),
        (lambda: lab.grad(lambda x: x)({1: 1.0, "a": 2.0}), ArgumentError, "the keys of a dict"),
    ],
)
def test_misuse_is_explained(call, kind, problem):
    with pytest.raises(kind, match=problem) as caught:
        call()
    assert isinstance(caught.value, LabError)
    assert caught.value.given


def test_values_are_known_under_grad_and_jvp_but_not_under_vmap_and_jit():
    f = lambda x: x * x if x > 1.0 else -x  # noqa: E731
    close(lab.grad(f)(2.0), 4.0)
    close(lab.grad(f)(0.5), -1.0)
    close(lab.jvp(f, (2.0,), (1.0,))[1], 4.0)
    close(lab.grad(lambda x: x * int(x))(3.0), 3.0)
    for transform in (lab.vmap, lab.jit, lab.make_graph):
        for use in (f, lambda x: x * float(x), lambda x: x.item(), lambda x: x[int(x)], lambda x: x.numpy(),
                    lambda x: f"{x:.2f}", lambda x: np.ones(3)[x.astype(int)]):  # fmt: skip
            with pytest.raises((ConcretizationError, LabError)) as caught:
                transform(use)(np.ones(2) if transform is lab.vmap else 1.0)
            assert isinstance(caught.value, LabError)


def test_a_concretization_error_names_the_line_and_a_way_out():
    def f(x):
        return x if x > 0.0 else -x

    with pytest.raises(ConcretizationError, match="the value of a traced variable") as caught:
        lab.jit(f)(1.0)
    assert f"{__file__}:{f.__code__.co_firstlineno + 1}" in caught.value.given
    assert "lab.where" in caught.value.hint


def test_an_error_inside_grad_is_the_users_own():
    with pytest.raises(KeyError, match="mine"):
        lab.grad(lambda x: {}["mine"])(1.0)


@pytest.mark.parametrize(
    ("lossy", "word"),
    [
        (lambda x: math.sin(x), r"float\(\)"),
        (lambda x: x * math.exp(x), r"float\(\)"),
        (lambda x: x * float(x), r"float\(\)"),
        (lambda x: x * x.item(), r"\.item\(\)"),
        (lambda x: x * x.numpy(), r"\.numpy\(\)"),
        (lambda x: lab.grad(lambda y: y * x.item())(x), r"\.item\(\)"),
    ],
)
def test_a_number_through_which_no_gradient_comes_back_is_refused_under_grad_and_jvp(lossy, word):
    hint = r"[\s\S]*hint:  use the lab's functions \(lab.sin for math.sin\), or x.detach\(\)"
    with pytest.raises(UnsupportedError, match=f"^{word} would lose the gradient of a value inside grad{hint}"):
        lab.grad(lossy)(2.0)
    with pytest.raises(UnsupportedError, match=f"^{word} would lose the gradient of a value inside jvp"):
        lab.jvp(lossy, (2.0,), (1.0,))


@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (lambda x: x * math.sin(x.detach()), math.sin(2.0)),
        (lambda x: x * x.detach().item(), 2.0),
        (lambda x: x * x if x > 1 else x, 4.0),
        (lambda x: 3.0 * x if x else x, 3.0),
        (lambda x: x * int(x), 2.0),
        (lambda x: x * len(f"{x:.2f}"), 4.0),
    ],
)
def test_what_is_detached_decides_or_prints_is_read_under_grad_as_ever(f, slope):
    assert lab.grad(f)(2.0).item() == pytest.approx(slope)
    assert lab.jvp(f, (2.0,), (1.0,))[1].item() == pytest.approx(slope)


def test_under_no_grad_and_on_the_ordinary_tape_numbers_are_read_as_ever():
    def f(x):
        with lab.no_grad():
            seen.append(x.item())
        return x * x

    seen = []
    assert lab.grad(f)(2.0).item() == 4.0
    assert seen == [2.0]
    assert float(lab.tensor(2.0, requires_grad=True) * 2.0) == 4.0
