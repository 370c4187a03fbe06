"""Every pass leaves the result of every graph unchanged, and its graph legal; each does what it is for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lab
from lab.errors import ArgumentError, GraphError
from lab.graph.execute import run_arrays
from lab.graph.ir import Graph, Literal
from lab.graph.parsing import parse
from lab.graph.passes import ORDER, PASSES, graph_pass, optimized, stages
from lab.graph.passes.algebra import RULES, relaxed_algebra
from lab.graph.verify import verify
from tests.graph.graphs import CASES, IDS, SPECIAL, executed, of_gradient, of_sample, programs
from tests.slices import sliced

LOOSE = {"transposes into products", "decomposition", "fusion"}
"""Passes after which sums may be taken in another order."""


def same(before: Graph, after: Graph, xs: list, *, exact: bool = True) -> None:
    with np.errstate(all="ignore"):
        pairs = zip(run_arrays(before, xs), run_arrays(after, xs), strict=True)
        for a, b in pairs:
            assert a.dtype == b.dtype
            if exact:
                np.testing.assert_array_equal(a, b)
                assert np.array_equal(np.signbit(a), np.signbit(b)) or np.isnan(a).any()
            else:
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@sliced("i", every=2)
@pytest.mark.parametrize(("name", "i"), CASES, ids=IDS)
def test_every_pass_leaves_every_op_and_its_gradient_unchanged(name, i):
    for made in (of_sample(name, i), of_gradient(name, i)):
        if made:
            graph, xs = made
            for pass_name, change in PASSES.items():
                same(graph, change(graph), xs, exact=pass_name not in LOOSE)
            same(graph, optimized(graph), xs, exact=False)


@settings(max_examples=150, deadline=None)
@given(lines=programs(), seed=st.integers(0, 99), dtype=st.sampled_from(["float64", "float32"]))
def test_every_pass_leaves_random_programs_unchanged(lines, seed, dtype):
    rng = np.random.default_rng(seed)
    xs = [rng.choice([*SPECIAL, 1.5, -2.5], size=(3, 3)).astype(dtype) for _ in range(2)]
    graph = lab.make_graph(lambda x, y: executed(lines, x, y))(*xs)
    for name, change in PASSES.items():
        after = change(graph)
        if name not in LOOSE:
            same(graph, after, xs)
    without = [name for name in ORDER if name not in LOOSE]
    same(graph, optimized(graph, without), xs)


def test_each_stage_is_kept_and_says_what_its_equations_stand_for():
    def f(x):
        return lab.exp(x) * lab.exp(x) * 1.0 + lab.exp(lab.tensor(0.0).numpy())

    start = lab.make_graph(f)(np.ones(3))
    path = stages(start)
    assert [s.name for s in path] == ["", *ORDER]
    assert path[0].graph == start
    by_name = {s.name: s.graph for s in path}
    assert len(by_name["transposes into products"].equations) == 3  # exp, its square, plus one
    shared = [e for e in by_name["common subexpressions"].equations if e.sources]
    assert [len(e.sources) for e in shared] == [2]
    assert [len(e.sources) for e in by_name["fusion"].equations] == [3]
    known = {v.number for v in start.variables()}
    assert all(n in known for s in path[1:2] for e in s.graph.equations for n in e.sources)


def test_passes_go_into_branches_and_loops():
    graph = parse("""
    graph(a:bool[] b:f64[]) { let
        c:f64[] = cond(a, b) {
            then = graph(a:f64[]) { let
                b:f64[] = multiply(a, 1.0)
                c:f64[] = exp(a)
              in (b) }
            otherwise = graph(a:f64[]) { let in (a) }
        }
      in (c) }""")
    then = optimized(graph).equations[0].params["then"]
    assert then.equations == ()
    assert run_arrays(optimized(graph), [np.asarray(True), np.asarray(2.0)])[0] == 2.0


def test_a_pass_that_breaks_a_graph_is_named():
    graph = lab.make_graph(lambda x: lab.exp(lab.exp(x)))(1.0)
    try:
        broken = graph_pass("broken")(lambda g: Graph(g.inputs, g.equations[1:], g.outputs))
        with pytest.raises(GraphError, match="not legal after broken"):
            broken(graph)
        narrowed = graph_pass("narrowed")(lambda g: Graph(g.inputs, g.equations, g.outputs[:0]))
        with pytest.raises(GraphError, match="narrowed made a graph that takes or gives something else"):
            narrowed(graph)
    finally:
        del PASSES["broken"], PASSES["narrowed"]
    with pytest.raises(ArgumentError, match="no pass has that name"):
        stages(graph, ["magic"])


SIMPLIFIED = [
    ("x * 1 -> x", "multiply(a, 1.0)", 0), ("x / 1 -> x", "divide(a, 1.0)", 0), ("x - 0 -> x", "subtract(a, 0.0)", 0),
    ("x + (-0) -> x", "add(a, -0.0)", 0), ("x ** 1 -> x", "power(a, 1)", 0), ("x ** 2 -> x * x", "power(a, 2)", 1),
    ("x * (-1) -> -x", "multiply(a, -1.0)", 1), ("x / 2**k -> x * 2**-k", "divide(a, 4.0)", 1),
    ("max(x, x) -> x", "maximum(a, a)", 0), ("where(c, x, x) -> x; where(True, x, y) -> x", "where(b, a, a)", 0),
    ("cast to its own dtype -> x", "cast(a, dtype='float64')", 0),
    ("to its own shape -> x", "reshape(a, shape=(2,2))", 0),
    ("every entry once, in order -> reshape", "getitem(a, index=(slice(None, None, None), slice(0, 2, 1)))", 0),
]  # fmt: skip


@pytest.mark.parametrize(("says", "equation", "left"), SIMPLIFIED, ids=[s for s, _, _ in SIMPLIFIED])
def test_the_rules_of_algebra_apply(says, equation, left):
    assert says in {r.says for r in RULES}
    graph = parse(f"graph(a:f64[2,2] b:bool[2,2]) {{ let c:f64[2,2] = {equation} in (c) }}")
    assert len(optimized(graph, ["algebra", "dead code"]).equations) == left


KEPT = ["add(a, 0.0)", "subtract(a, -0.0)", "multiply(a, 0.0)", "subtract(a, a)", "divide(a, 3.0)", "divide(a, 0.0)",
        "divide(a, inf)", "maximum(a, 1.0)", "add(a, nan)"]  # fmt: skip


@pytest.mark.parametrize("equation", KEPT)
def test_what_would_change_a_bit_is_left_alone(equation):
    graph = parse(f"graph(a:f64[2,2]) {{ let b:f64[2,2] = {equation} in (b) }}")
    assert optimized(graph) == graph


def test_a_column_taken_from_one_column_and_put_back_is_a_reshape():
    def column(x):
        return lab.exp(x[:, 0]).sum()

    x = np.linspace(0.0, 1.0, 6).reshape(6, 1)
    graph = lab.make_graph(lab.grad(column))(x)
    assert {"getitem", "scatter_add"} <= {e.op.name for e in graph.equations}
    less = optimized(graph, ["algebra"])
    assert not {"getitem", "scatter_add"} & {e.op.name for e in less.equations}
    assert np.array_equal(run_arrays(less, [x])[0], run_arrays(graph, [x])[0])


@pytest.mark.parametrize("index", [(slice(None, None, -1), 0), ([1, 0], 0), (slice(None), slice(None, None, -1))])
def test_an_index_that_turns_the_order_is_kept(index):
    x = np.arange(2.0).reshape(2, 1)
    graph = optimized(lab.make_graph(lambda x: x[index])(x), ["algebra"])
    assert np.array_equal(run_arrays(graph, [x])[0], x[index])


def test_a_number_that_widens_or_broadcasts_is_not_dropped():
    for text in ("graph(a:f32[2]) { let b:f64[2] = multiply(a, 1.0:f64[]) in (b) }",
                 "graph(a:f64[2]) { let b:f64[3,2] = multiply(a, f64[3,1]{1.0, 1.0, 1.0}) in (b) }"):  # fmt: skip
        graph = parse(text)
        assert optimized(graph) == graph


def test_relaxed_rules_are_applied_only_when_asked_for():
    graph = lab.make_graph(lambda x: (x * 2.0 * 3.0 + 0.0) - (x - x))(np.ones(2))
    assert len(optimized(graph, ["algebra", "dead code"]).equations) == 5
    relaxed = optimized(relaxed_algebra(graph), ["dead code"])
    verify(relaxed)
    assert len(relaxed.equations) == 2
    np.testing.assert_allclose(run_arrays(relaxed, [np.array([1.0, 2.0])])[0], [6.0, 12.0])


def test_constants_are_folded_but_a_small_graph_does_not_become_a_large_file():
    graph = lab.make_graph(lambda x: x + lab.broadcast_to(np.ones(()), shape=(100, 100)))(np.ones((100, 100)))
    assert optimized(graph, ["constant folding"]) == graph
    graph = lab.make_graph(lambda x: x + lab.exp(np.zeros(3)))(np.ones(3))
    (only,) = optimized(graph, ["constant folding"]).equations
    assert isinstance(only.inputs[1], Literal)


@pytest.mark.parametrize("n_axes", [2, 3, 4])
def test_transposes_go_into_products(n_axes):
    shape = (2, 5)[: n_axes - 2]
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(*shape, 3, 4)), rng.normal(size=(*shape, 6, 4))

    def f(x, y):
        return x @ lab.swapaxes(y, -1, -2)

    graph = lab.make_graph(f)(x, y)
    after = optimized(graph)
    assert [e.op.name for e in after.equations] == ["contract"]
    same(graph, after, [x, y], exact=False)
    gradient = lab.make_graph(lab.grad(lambda x, y: lab.sum(f(x, y) ** 2), (0, 1)))(x, y)
    after = optimized(gradient)
    same(gradient, after, [x, y], exact=False)
