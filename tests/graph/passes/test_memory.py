"""The memory plan: buffers are shared as far as they can be, and never while somebody needs what is in them."""

import numpy as np
import pytest

import lab
from lab.errors import GraphError
from lab.graph.compiled import Compiled
from lab.graph.execute import run_arrays
from lab.graph.parsing import parse
from lab.graph.passes import optimized
from lab.graph.passes.memory import FRESH, buffer_sizes, lifetimes, memory
from lab.graph.verify import verify
from lab.ops import PRIMITIVES


def chain(n):
    def f(x):
        for _ in range(n):
            x = x @ x
        return x

    return lab.make_graph(f)(np.ones((8, 8)))


@pytest.mark.parametrize("n", [3, 10, 50])
def test_a_chain_of_any_length_takes_two_buffers(n):
    assert buffer_sizes(memory(chain(n))) == {0: 512, 1: 512}


def test_an_elementwise_op_writes_over_the_operand_that_it_reads_last():
    graph = memory(lab.make_graph(lambda x: lab.exp(lab.tanh(x @ x)) @ x)(np.ones((8, 8))))
    assert [e.buffer for e in graph.equations] == [(0,), (0,), (0,), ()]


def test_a_view_keeps_its_buffer_taken():
    def f(x):
        y = x @ x
        t = y.T
        z = (x @ x.T) @ x
        return t @ z

    graph = memory(lab.make_graph(f)(np.ones((8, 8))))
    verify(graph)
    places = {str(e.out): e.buffer for e in graph.equations}
    assert places["b"] == places["c"]  # the view lies in the buffer of what it looks at
    held = {h.var.number: h for h in lifetimes(graph)}
    assert held[1].stop == len(graph.equations) - 1


def test_what_an_op_of_its_own_may_look_at_is_kept_too():
    def f(x):
        d = lab.diagonal(x @ x)
        for _ in range(3):
            x = x @ x
        return d * x

    x = np.random.default_rng(0).normal(size=(4, 4)) / 2
    graph = lab.make_graph(f)(x)
    np.testing.assert_allclose(Compiled(graph).arrays([x])[0], run_arrays(graph, [x])[0], rtol=1e-10)


def test_a_plan_reads_back_and_a_wrong_one_is_refused():
    graph = memory(chain(4))
    again = parse(str(graph))
    assert [e.buffer for e in again.equations] == [e.buffer for e in graph.equations]
    with pytest.raises(GraphError, match="a buffer is written only when nobody needs"):
        parse("graph(a:f64[2,2]) { let b:f64[2,2]@0 = matmul(a, a) c:f64[2,2]@0 = matmul(a, b) d:f64[2,2] = add(b, c) "
              "in (d) }")  # fmt: skip
    with pytest.raises(GraphError, match="a buffer is written only when nobody needs"):
        parse("graph(a:f64[2,2]) { let b:f64[2,2]@0 = matmul(a, a) c:f64[2,2]@0 = transpose(b, axes=None) "
              "d:f64[2,2]@0 = matmul(a, a) e:f64[2,2] = add(c, d) in (e) }")  # fmt: skip


def test_the_buffers_of_a_gradient_are_fewer_than_its_values():
    def loss(x, *ws):
        for w in ws:
            x = lab.tanh(x @ w)
        return lab.sum(x)

    ws = [np.ones((16, 16))] * 6
    graph = optimized(lab.make_graph(lab.grad(loss, tuple(range(1, 7))))(np.ones((16, 16)), *ws))
    values = [h.n_bytes for h in lifetimes(graph)]
    assert sum(buffer_sizes(graph).values()) < 0.7 * sum(values)


@pytest.mark.parametrize("name", sorted(FRESH))
def test_what_is_said_to_be_fresh_shares_no_memory_with_an_operand(name):
    op = PRIMITIVES[name]
    fixed = {**op.defaults, **{n: f() for n, f in op.fixed.items()}}
    for sample in op.samples:
        xs = [np.asarray(x) for x in sample.draw()]
        out = np.asarray(op.forward(*xs, **{**fixed, **sample.params}))
        assert not any(np.shares_memory(out, x) for x in xs)
    one = np.ones((1, 3))
    for axis in [0, ()] if name in ("sum", "mean", "max", "min", "prod", "any", "all", "var", "std") else []:
        assert not np.shares_memory(np.asarray(op.forward(one, **{**fixed, "axis": axis, "keepdims": True})), one)
