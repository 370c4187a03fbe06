"""What is made again instead of kept: the same bits, less alive at once, and a budget that is met or refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lab
from lab.errors import ArgumentError, GraphError
from lab.graph.compiled import Compiled
from lab.graph.execute import run_arrays
from lab.graph.ir import Graph
from lab.graph.parsing import parse
from lab.graph.passes import ORDER, stages
from lab.graph.passes.alive import peak
from lab.graph.passes.memory import footprint
from lab.graph.passes.rematerialization import lowered, rematerialized, work_of
from lab.graph.verify import verify
from tests.graph.graphs import SPECIAL, executed, programs


def gelu_network(n_layers, width=16, rows=64):
    """The gradient of layers with gelu, whose rule reads what went in: much is kept that is cheap to make."""

    def loss(x, *ws):
        for w in ws:
            x = lab.gelu(x @ w)
        return lab.sum(x * x)

    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(rows, width)), *(rng.normal(size=(width, width)) / 4 for _ in range(n_layers))]
    return lab.make_graph(lab.grad(loss, tuple(range(1, n_layers + 1))))(*arrays), arrays


def ordered(graph: Graph) -> Graph:
    return stages(graph, ORDER[:-1])[-1].graph


@settings(max_examples=60, deadline=None)
@given(lines=programs(), seed=st.integers(0, 99), share=st.sampled_from([0.3, 0.6, 0.9]))
def test_random_programs_give_the_same_bits_and_have_no_higher_peak(lines, seed, share):
    rng = np.random.default_rng(seed)
    xs = [rng.choice([*SPECIAL, 1.5], size=(3, 3)) for _ in range(2)]
    graph = lab.make_graph(lambda x, y: executed(lines, x, y))(*xs)
    after = lowered(graph, int(share * peak(graph)))
    verify(after)
    assert peak(after) <= peak(graph)
    with np.errstate(all="ignore"):
        pairs = zip(run_arrays(graph, xs), run_arrays(after, xs), strict=True)
        assert all(a.tobytes() == b.tobytes() for a, b in pairs)


def test_the_gradient_of_gelu_layers_takes_less_and_gives_the_same_bits():
    graph, arrays = gelu_network(6)
    full = Compiled(graph)
    size = footprint(full.stages[-2].graph)
    tight = Compiled(graph, budget=int(0.8 * size))
    names = [s.name for s in tight.stages]
    assert names[-3:] == ["ordering", "rematerialization", "memory planning"]
    before, after = tight.stages[-3].graph, tight.stages[-2].graph
    assert peak(after) < peak(before)
    assert footprint(after) <= 0.8 * size < footprint(before)
    for a, b in zip(full.arrays(arrays), tight.arrays(arrays), strict=True):
        assert a.tobytes() == b.tobytes()


def test_what_is_made_again_says_what_it_stands_for():
    graph = ordered(gelu_network(4)[0])
    after = rematerialized(graph, int(0.8 * footprint(graph)))
    known = {v.number: e for e in graph.equations for v in e.outs}
    again = [e for e in after.equations if not any(v.number in known for v in e.outs)]
    assert again
    for e in again:
        assert e.sources
        assert {known[n].op for n in e.sources} == {e.op}
        assert {known[n].origin for n in e.sources} == {e.origin}


def test_a_budget_that_is_large_enough_changes_nothing():
    graph = ordered(gelu_network(2)[0])
    assert rematerialized(graph, footprint(graph)) is graph


def test_a_budget_out_of_reach_is_refused_with_the_lowest_plan_which_is_then_reached():
    graph = ordered(gelu_network(3)[0])
    with pytest.raises(GraphError, match="no memory plan within the budget was found") as caught:
        rematerialized(graph, 100)
    assert len(str(caught.value).splitlines()) == 3
    lowest = int(str(caught.value).split("lowest plan takes ")[1].split(" bytes")[0].replace(",", ""))
    assert footprint(rematerialized(graph, lowest)) == lowest


def test_a_view_of_what_is_made_again_is_made_again_too():
    graph = parse("""graph(a:f64[8,8]) { let
        b:f64[8,8] = exp(a)
        c:f64[8,8] = transpose(b, axes=None)
        d:f64[8,8] = matmul(b, a)
        e:f64[8,8] = matmul(d, d)
        f:f64[8,8] = matmul(e, d)
        g:f64[8,8] = matmul(c, f)
      in (g) }""")
    after = lowered(graph, 0)
    assert [e.op.name for e in after.equations].count("exp") == 2
    assert [e.op.name for e in after.equations].count("transpose") == 1  # the first is needed by nobody now
    assert peak(after) < peak(graph)


def test_random_numbers_come_again_from_their_key_and_products_never_run_twice():
    def f(x, key):
        mask = lab.random_uniform(key, shape=(8, 8)) > 0.5
        y = lab.where(mask, x @ x, 0.0)
        return lab.sum(lab.where(mask, y @ y @ y, 0.0))

    x, key = np.random.default_rng(0).normal(size=(8, 8)), lab.random_key(3)
    graph = lab.make_graph(f)(x, key)
    after = lowered(graph, 0)
    names = [e.op.name for e in after.equations]
    assert names.count("matmul") == 3
    assert names.count("random_uniform") == 2
    assert run_arrays(after, [x, key])[0].tobytes() == run_arrays(graph, [x, key])[0].tobytes()


def test_what_meets_other_ranks_is_never_made_again():
    graph = parse("graph(a:f64[8]) { let b:f64[8] = all_reduce(a, axis_name='r', op='sum') c:f64[8] = exp(b) in (c) }")
    assert [work_of(e) for e in graph.equations] == [None, 8]


def test_a_user_asks_for_a_budget_where_a_function_is_jitted():
    def f(x):
        a = lab.exp(x)
        return lab.sum(a @ ((a @ x) @ (x @ x)))

    x = np.random.default_rng(0).normal(size=(32, 32)) / 8
    size = footprint(ordered(lab.make_graph(f)(x)))
    tight = lab.jit(f, executor="compiled", memory_budget=size - 1_000)
    assert float(tight(x)) == float(lab.jit(f, executor="compiled")(x))
    with pytest.raises(GraphError, match="no memory plan within the budget was found"):
        lab.jit(f, executor="compiled", memory_budget=100)(x)
    with pytest.raises(ArgumentError, match="only a compiled graph has a memory budget"):
        lab.jit(f, memory_budget=100)
    with pytest.raises(ArgumentError, match="memory_budget is a whole number"):
        lab.jit(f, executor="compiled", memory_budget=1e6)
