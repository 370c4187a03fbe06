"""Compiled graphs give what the ops give: every op of the table, its gradient, whole steps of training."""

import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lab
from lab.graph.codegen import generate
from lab.graph.compiled import Compiled, run_compiled
from lab.graph.execute import run_arrays
from lab.graph.passes import optimized
from lab.kernels import rowloop
from tests.graph.graphs import CASES, IDS, SPECIAL, executed, of_gradient, of_sample, programs
from tests.slices import sliced

F = np.float32


def close(a, b, *, rtol: float = 1e-11) -> None:
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    finite = np.isfinite(b) if b.dtype.kind == "f" else np.ones(b.shape, bool)
    np.testing.assert_array_equal(np.isfinite(a) if a.dtype.kind == "f" else finite, finite)
    scale = np.abs(b[finite]).max(initial=0.0) if b.dtype.kind == "f" else 0.0
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * scale, equal_nan=True)


@sliced("i", every=2, together=True)
@pytest.mark.parametrize(("name", "i"), CASES, ids=IDS)
def test_every_op_and_its_gradient_compiled_is_what_it_is_eager(name, i, monkeypatch):
    # The loops in NumPy: that numba gives the same for a program is tested with fewer of them, as each takes a second.
    monkeypatch.setattr(rowloop, "have_compiler", lambda: False)
    monkeypatch.setattr(rowloop, "_loops", {})
    for made in (of_sample(name, i), of_gradient(name, i)):
        if made:
            graph, xs = made
            for _ in range(2):  # the second run in the buffers of the first
                for a, b in zip(run_compiled(graph, xs), run_arrays(graph, xs), strict=True):
                    close(a, b)


@settings(max_examples=100, deadline=None)
@given(lines=programs(), seed=st.integers(0, 99))
def test_random_programs_compiled_are_what_they_are_eager(lines, seed):
    rng = np.random.default_rng(seed)
    xs = [rng.choice([*SPECIAL, 1.5, -2.5], size=(3, 3)) for _ in range(2)]
    graph = lab.make_graph(lambda x, y: executed(lines, x, y))(*xs)
    compiled = Compiled(graph)
    for loop in compiled.code.loops.values():
        loop.run = loop.twin
    with np.errstate(all="ignore"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(rowloop, "have_compiler", lambda: False)
        for a, b in zip(compiled.arrays(xs), run_arrays(graph, xs), strict=True):
            if np.isfinite(b).all() and np.abs(b).max() < 1e6:
                close(a, b)


def network(ps, x):
    for i in range(0, len(ps), 2):
        x = x @ ps[i] + ps[i + 1]
        x = lab.relu(x) if i + 2 < len(ps) else x
    return x


def descend(ps, x, y):
    loss, gradients = lab.value_and_grad(lambda ps: lab.cross_entropy(network(ps, x), y))(ps)
    return loss, [p - 0.05 * g for p, g in zip(ps, gradients, strict=True)]


def start(dtype=F):
    rng = np.random.default_rng(0)
    ps = []
    for n, m in ((6, 8), (8, 5)):
        ps += [rng.normal(size=(n, m)).astype(dtype), np.zeros(m, dtype)]
    return ps, rng.normal(size=(12, 6)).astype(dtype), rng.integers(0, 5, 12)


@pytest.mark.slow
def test_a_training_compiled_is_the_training_eager():
    ps, x, y = start()
    eager, compiled = ps, ps
    step = lab.jit(descend, executor="compiled")
    for _ in range(20):
        loss, eager = descend(eager, x, y)
        same, compiled = step(compiled, x, y)
        assert abs(float(loss) - float(same)) < 1e-5
    for a, b in zip(eager, compiled, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_norms_and_losses_are_one_loop_forward_and_backward():
    def f(x, scale, shift, w):
        return lab.sum(lab.layer_norm(x, scale, shift) * w)

    rng = np.random.default_rng(1)
    xs = [rng.normal(size=s) for s in ((40, 10), (10,), (10,), (40, 10))]
    graph = lab.make_graph(lab.value_and_grad(f, (0, 1, 2)))(*xs)
    assert [e.op.name for e in optimized(graph).equations] == ["fused"]
    for a, b in zip(run_compiled(graph, xs), run_arrays(graph, xs), strict=True):
        close(a, b, rtol=1e-10)


@pytest.mark.slow
def test_nan_and_inf_come_out_where_they_do_eager():
    def f(x):
        return lab.softmax(x), lab.log_softmax(x), lab.exp(x) - lab.tanh(x), lab.max(x, axis=-1), lab.sum(x)

    x = np.array([[1.0, np.nan, 2.0], [np.inf, 0.0, 1.0], [-np.inf, -np.inf, -np.inf], [-np.inf, 0.0, 1e30]], F)
    graph = lab.make_graph(f)(x)
    with np.errstate(all="ignore"):
        for a, b in zip(run_compiled(graph, [x]), run_arrays(graph, [x]), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, equal_nan=True)


def test_a_label_outside_the_classes_is_said_as_eager():
    ps, x, y = start()
    y = y.copy()
    y[3] = 5
    with pytest.raises(lab.LabError) as eager:
        lab.cross_entropy(network(ps, x), y)
    step = lab.jit(lambda x, y: lab.cross_entropy(network(ps, x), y) * 2.0, executor="compiled")
    with pytest.raises(type(eager.value), match="outside"):
        step(x, y)


def test_outputs_share_no_memory_with_inputs_or_with_the_next_run():
    graph = lab.make_graph(lambda x, y: (x, x.T, (x @ y).T, x @ y, 3.0))(np.ones((2, 2)), np.ones((2, 2)))
    x, y = np.ones((2, 2)), np.ones((2, 2))
    first = run_compiled(graph, [x, y])
    kept = [np.array(a) for a in first]
    second = run_compiled(graph, [2 * x, y])
    x[...] = 7
    for a, b, c in zip(first, kept, second, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.shares_memory(a, c)
        assert not np.shares_memory(a, x)


def test_inputs_may_be_read_only_strided_or_reversed():
    graph = lab.make_graph(lambda x, b: lab.tanh(x + b) * 2.0)(np.ones((3, 4)), np.ones(4))
    x = np.arange(24.0).reshape(4, 6)[:, ::2].T[:, ::-1]
    b = np.broadcast_to(np.float64(0.5), 4)
    np.testing.assert_allclose(run_compiled(graph, [x, b])[0], np.tanh(x + b) * 2.0, rtol=1e-12)


def test_threads_do_not_share_buffers():
    graph = lab.make_graph(lambda x: lab.sum((x @ x) @ x))(np.ones((30, 30)))
    compiled = Compiled(graph)
    wrong = []

    def work(k):
        made = [compiled.arrays([np.full((30, 30), float(k))])[0] for _ in range(50)]
        wrong.extend(m for m in made if abs(m - 810_000.0 * k**3) > 1e-3)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_the_source_can_be_read():
    xs = [np.ones(s, F) for s in ((4, 3), (3, 2), (2,))]
    code = generate(optimized(lab.make_graph(lambda x, w, b: lab.relu(x @ w + b))(*xs)))
    assert "np_dot(a, b, out=d)  # d = matmul(a, b)" in code.source
    assert "loop0(d, c, " in code.source
    (loop,) = code.loops.values()
    assert "for column in range(n_columns):" in loop.source


def test_what_was_compiled_shows_its_source_with_each_loop_folded_and_what_was_not_is_not_compiled_for_it():
    compiled = Compiled(lab.make_graph(lambda x: lab.tanh(x) * 2.0 < 1.0)(np.ones(3)))
    assert repr(compiled) == "<a compiled graph of 3 equations, not yet run>"
    assert compiled._repr_mimebundle_()["text/plain"] == repr(compiled)
    assert "stages" not in vars(compiled)
    compiled.arrays([np.ones(3)])
    assert repr(compiled) == compiled.source == compiled._repr_mimebundle_()["text/plain"]
    page = compiled._repr_mimebundle_(include=["text/html"])["text/html"]
    assert page.count("<details>") == len(compiled.code.loops) == 1
    assert "&lt; f8(1.0)" in page


def test_jit_refuses_an_executor_that_there_is_not():
    with pytest.raises(lab.LabError, match="no executor"):
        lab.jit(lambda x: x, executor="quantum")


def test_the_entries_of_a_transposed_value_are_put_in_a_row_in_every_run():
    graph = lab.make_graph(lambda x: lab.reshape((x @ x).T, shape=(9,)) * np.arange(9.0))(np.ones((3, 3)))
    compiled = Compiled(graph)
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=(3, 3))
        np.testing.assert_allclose(compiled.arrays([x])[0], (x @ x).T.reshape(9) * np.arange(9.0))


def test_one_entry_of_a_kept_buffer_is_read_in_every_run():
    graph = lab.make_graph(lambda x: lab.tanh(lab.exp(x) * 2.0)[1] + lab.sin(x)[-1, None])(np.ones(3))
    for x in (np.ones(3), np.arange(3.0)):
        np.testing.assert_allclose(run_compiled(graph, [x])[0], run_arrays(graph, [x])[0], rtol=1e-12)


@pytest.mark.parametrize("gradient", [False, True])
def test_fourteen_operations_on_a_million_numbers_hold_three_arrays_at_most_beyond_the_input(gradient):
    """Counted in bytes, in the third run, when the caller still holds what the second gave."""

    def f(x):
        y = lab.tanh(x * 1.3 + 0.1)
        z = lab.exp(-(y * y))
        s = lab.sigmoid(z + x)
        out = lab.sqrt(s * s + 1.0) * y - z
        return lab.sum(out) if gradient else out

    x = np.random.default_rng(11).normal(size=10**6).astype(np.float32)
    compiled = Compiled(lab.make_graph(lab.grad(f) if gradient else f)(x))
    compiled.compile()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        held = [compiled.arrays([x])]
        for _ in range(2):
            held[:] = [compiled.arrays([x])]
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak <= 3 * x.nbytes
    assert held[0][0].shape == x.shape


def _turns(x):
    def turn(carry, row):
        h = lab.tanh(carry @ row + carry) * lab.sigmoid(carry)
        return h, lab.exp(h) - 1.0

    def small(y):
        return lab.fori_loop(0, 3, lambda i, z: lab.sin(z) * 1.5 + z, y)

    last, rows = lab.scan(turn, x[0], x)
    grown = lab.while_loop(lambda y: (y * y).sum() < 50.0, lambda y: y * 1.5 + lab.tanh(y), last + 1.0)
    return lab.cond(grown.sum() > 0.0, small, lambda y: lab.cos(y) * y - y, grown).sum() + rows.sum()


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("f", [_turns, lab.grad(_turns)], ids=["value", "gradient"])
def test_what_is_in_branches_and_loops_is_compiled_too(f, sign):
    x = sign * np.linspace(0.1, 1.0, 27).reshape(3, 3, 3)
    compiled = Compiled(lab.make_graph(f)(x))
    wanted = np.asarray(f(x))
    for _ in range(2):
        assert np.allclose(compiled.arrays([x])[0], wanted, rtol=1e-12)
    kinds = {word.split("_")[0] for word in compiled.code.inside}
    assert kinds == {"scan", "while", "cond"} if f is _turns else "scan" in kinds
    assert any(word.startswith("scan") for word in compiled.code.loops)
    assert all(f"# {word}\ndef step(" in compiled.source for word in compiled.code.inside)


def test_a_loop_that_is_run_by_two_threads_has_two_sets_of_buffers():
    compiled = Compiled(lab.make_graph(_turns)(np.ones((3, 3, 3))))
    given = [np.full((3, 3, 3), 0.1 * k) for k in range(1, 9)]
    wanted = [np.asarray(_turns(x)) for x in given]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            found = list(pool.map(lambda x: compiled.arrays([x])[0], given))
            assert np.allclose(found, wanted, rtol=1e-12)


def test_what_goes_wrong_inside_a_loop_is_said_by_the_op():
    step = lab.jit(
        lambda x, i: lab.fori_loop(0, 2, lambda _, y: y + lab.take(x, i, axis=0).sum(), 0.0), executor="compiled"
    )
    assert step(np.ones((3, 2)), np.array([0, 2])).item() == 8.0
    with pytest.raises(lab.LabError):
        step(np.ones((3, 2)), np.array([0, 7]))


def test_an_array_of_another_shape_is_never_read_beyond_its_end():
    compiled = Compiled(lab.make_graph(lambda x, w: lab.tanh(x * w) + 1.0)(np.ones((3, 2)), np.ones((3, 2))))
    with pytest.raises(lab.LabError, match="a compiled graph is for other shapes"):
        compiled.arrays([np.ones((3, 2)), np.ones((1, 2))])
    w = lab.tensor(np.ones((3, 2)))
    step = lab.jit(lambda x: (lab.tanh(x * w) + 1.0).sum(), executor="compiled")
    step(np.zeros((3, 2)))
    w.value = np.full((1, 2), 2.0)
    assert step(np.zeros((3, 2))).item() == 6.0
