"""Random keys in traced functions: drawn anew at each call, as the function itself draws them."""

import threading

import numpy as np
import pytest

import lab
from lab.errors import GraphError, LabError, ShapeError, TransformError, UnsupportedError
from lab.graph.execute import run
from lab.interop import export_numpy
from tests.numerics import array, close

EXECUTORS = ["interpreted", "compiled", "parallel"]
each = pytest.mark.parametrize("executor", EXECUTORS)
X = np.random.default_rng(0).normal(size=(5, 4))


def state(rng):
    """What a generator will draw next."""
    return rng.bit_generator.state


def alike(make, transform, *args, n=4):
    """What `make(rng)` gives runs n times as it is and transformed, with the same numbers and the same states."""
    one, two = np.random.default_rng(7), np.random.default_rng(7)
    plain, other = make(one), transform(make(two))
    results = []
    for _ in range(n):
        wanted, found = plain(*args), other(*args)
        assert lab.tree.flatten(wanted)[1] == lab.tree.flatten(found)[1]
        for a, b in zip(lab.tree.flatten(wanted)[0], lab.tree.flatten(found)[0], strict=True):
            close(array(a), array(b))
        assert state(one) == state(two)
        results.append(array(lab.tree.flatten(wanted)[0][0]))
    assert any(not np.array_equal(results[0], one) for one in results)
    return other


def noisy(rng):
    return lambda x: lab.tanh(lab.dropout(x, lab.random_key(rng))) * 2.0


@each
def test_a_jitted_function_draws_a_key_at_each_call_as_it_does_without(executor):
    made = alike(noisy, lambda f: lab.jit(f, executor=executor), X)
    assert len(made.cache) == 1
    assert made.hits == 3


@each
def test_several_generators_and_keys_that_nobody_reads_move_on_as_without(executor):
    other = [np.random.default_rng(1), np.random.default_rng(1)]

    def make(rng):
        second = other.pop()

        def f(x):
            later = lab.random_key(rng)
            lab.random_key(second)
            first = lab.dropout(x, lab.random_key(second))
            lab.random_key(rng)
            return lab.dropout(x, later), first, lab.random_uniform(lab.random_key(rng), shape=3)

        return f

    alike(make, lambda f: lab.jit(f, executor=executor), X)


@each
def test_parameters_that_are_captured_stand_between_the_keys(executor):
    w, b = lab.tensor(np.ones(4)), lab.tensor(np.full(4, 2.0))

    def make(rng):
        return lambda x: lab.dropout(lab.dropout(x, lab.random_key(rng)) * w, lab.random_key(rng)) + b

    alike(make, lambda f: lab.jit(f, executor=executor), X)


def test_fresh_entropy_is_fresh_at_each_call():
    f = lab.jit(lambda x: lab.dropout(x, lab.random_key()))
    found = {array(f(np.ones(200))).tobytes() for _ in range(4)}
    assert len(found) == 4
    assert len(f.cache) == 1


def test_a_seed_makes_the_same_key_at_each_call_and_no_input():
    f = lab.jit(lambda x: lab.dropout(x, lab.random_key(3)))
    close(f(X), f(X))
    close(f(X), lab.dropout(X, lab.random_key(3)))
    (cached,) = f.cache.values()
    assert not cached.graph.captured


@pytest.mark.parametrize("of", [np.random.PCG64, lambda seed: np.random.Generator(np.random.Philox(seed))])
def test_a_bit_generator_moves_on_too(of):
    one, two = of(5), of(5)
    f = lab.jit(lambda x: lab.dropout(x, lab.random_key(two)))
    for _ in range(3):
        close(lab.dropout(X, lab.random_key(one)), f(X))


def in_a_circle(x):
    """A function whose generator is held by a function that holds itself."""
    rng = np.random.default_rng(0)

    def turn(n, x):
        return turn(n - 1, x) if n else lab.dropout(x, lab.random_key(rng))

    return turn(2, x)


def test_a_generator_that_the_function_makes_is_made_at_each_call():
    def f(x):
        rng = np.random.default_rng(0)
        return lab.dropout(lab.dropout(x, lab.random_key(rng)), lab.random_key(rng))

    g = lab.jit(f)
    for _ in range(3):
        close(f(X), g(X))
    assert not g.cache
    h = lab.jit(lambda x: lab.nn.Dropout(0.5, rng=1)(x))
    for _ in range(3):
        close(lab.nn.Dropout(0.5, rng=1)(X), h(X))
    again = lab.jit(in_a_circle)
    for _ in range(3):
        close(in_a_circle(X), again(X))
    fresh = lab.jit(lambda x: lab.dropout(x, lab.random_key(np.random.default_rng())))
    assert not np.array_equal(array(fresh(X)), array(fresh(X)))


@each
@pytest.mark.parametrize(
    "under",
    [
        lambda f: lab.grad(lambda x: f(x).sum()),
        lambda f: lab.vmap(f),
        lambda f: lab.vmap(lab.grad(lambda x: f(x).sum())),
        lambda f: lab.checkpoint(f),
        lambda f: lab.grad(lambda x: lab.checkpoint(lambda x: f(lab.checkpoint(f)(x)))(x).sum()),
        lambda f: lab.value_and_grad(lambda x: (f(x) * f(x)).sum()),
        lambda f: lab.grad(lambda x: lab.grad(lambda x: (f(x) ** 3).sum())(x).sum()),
        lambda f: lambda x: lab.jvp(f, (x,), (np.ones_like(X),)),
        lambda f: lambda x: f(lab.jit(f)(x)) + f(x),
    ],
)
def test_under_other_transforms_inside_jit_the_keys_are_those_of_the_plain_call(executor, under):
    alike(lambda rng: under(noisy(rng)), lambda f: lab.jit(f, executor=executor), X)


@pytest.mark.parametrize(
    "around",
    [
        lambda f: lab.jit(lambda x: lab.jit(f)(x)),
        lambda f: lab.checkpoint(lab.jit(f)),
        lambda f: lab.jit(lab.checkpoint(lab.jit(f))),
        lambda f: lab.jit(lambda x: lab.jit(f)(X) + 0.0 * x),
    ],
)
def test_a_jitted_function_inside_others_draws_where_they_do(around):
    alike(noisy, around, X)


def test_a_short_way_inside_a_trace_does_not_burn_in_its_keys():
    def make(rng):
        inner = lab.jit(noisy(rng))
        return lambda x: inner(X) + x

    alike(make, lab.jit, X)  # the first plain call has made the inner graph already


@each
def test_gradients_of_a_recorded_call_are_of_the_mask_that_was_drawn(executor):
    rng = np.random.default_rng(0)
    f = lab.jit(lambda x: lab.dropout(x, lab.random_key(rng)), executor=executor)
    for _ in range(3):
        x = lab.tensor(np.ones(50), requires_grad=True)
        y = f(x)
        y.sum().backward()
        close(x.grad, y)


def test_a_checkpoint_around_a_jitted_function_runs_it_again_with_its_keys():
    rng = np.random.default_rng(0)
    g = lab.jit(lambda x: lab.exp(lab.dropout(x, lab.random_key(rng))))
    for _ in range(3):
        x = lab.tensor(np.ones(50), requires_grad=True)
        before = np.random.default_rng()
        before.bit_generator.state = state(rng)
        lab.checkpoint(g)(x).sum().backward()
        mask = array(lab.dropout(np.ones(50), lab.random_key(before)))
        close(x.grad, np.exp(mask) * mask)
        assert state(before) == state(rng)


def test_nothing_is_drawn_before_the_graph_runs():
    rng = np.random.default_rng(0)
    start = state(rng)
    f = lab.jit(noisy(rng))
    f.prepare(X)
    graph = lab.make_graph(noisy(rng))(X)
    assert state(rng) == start
    assert [v.spec.dtype for v in graph.inputs] == [np.dtype(float), np.dtype(np.uint64)]
    assert "a key of Generator(PCG64) for each run, at " in repr(graph.captured[0])
    assert "test_keys.py" in repr(graph.captured[0])
    lab.graph.verify(graph)
    again = np.random.default_rng(0)
    for _ in range(2):
        (out,) = run(graph, [X, *graph.captured])
        close(out, noisy(again)(X))


def test_a_call_that_fails_has_drawn_once():
    one, two = np.random.default_rng(0), np.random.default_rng(0)
    make = lambda rng: lambda x, i: lab.dropout(x, lab.random_key(rng))[i]  # noqa: E731
    f, g = make(one), lab.jit(make(two))
    for i in (1, 2, 30, 3):
        index = np.asarray(i)
        if i == 30:
            with pytest.raises((IndexError, ShapeError), match="index"):
                f(X, index)
            with pytest.raises((IndexError, ShapeError), match="index"):
                g(X, index)
        else:
            close(f(X, index), g(X, index))
        assert state(one) == state(two)


def test_the_numbers_of_a_key_cannot_be_read_while_a_function_is_traced():
    rng = np.random.default_rng(0)
    for read in (lambda key: int(key[0]), np.asarray, lambda key: np.random.Philox(key=key)):
        with pytest.raises(LabError, match=r"while the graph is being made|is not made an array"):
            lab.jit(lambda x, read=read: x + 0.0 * (read(lab.random_key(rng)) is None))(1.0)


# --- branches and loops -------------------------------------------------------------------------------------------

REGIONS = {
    "cond": lambda f: lambda x: lab.cond(x.sum() > 0.0, f, lambda x: x, x),
    "scan": lambda f: lambda x: lab.scan(lambda c, _: (f(c), None), x, None, length=3)[0],
    "while_loop": lambda f: lambda x: lab.while_loop(lambda c: c.sum() < 3.0, lambda c: f(c) + 1.0, x),
    "max_steps": lambda f: lambda x: lab.while_loop(lambda c: c.sum() < 3.0, lambda c: f(c) + 1.0, x, max_steps=3),
    "fori_loop": lambda f: lambda x: lab.fori_loop(0, 3, lambda _, c: f(c), x),
    "checkpoint": lambda f: lambda x: lab.fori_loop(0, 3, lambda _, c: lab.checkpoint(f)(c), x),
    "jit": lambda f: lambda x: lab.fori_loop(0, 3, lambda _, c: lab.jit(f)(c), x),
}


@pytest.mark.parametrize("around", REGIONS.values(), ids=REGIONS)
def test_a_branch_or_a_turn_in_a_graph_refuses_to_draw(around):
    rng = np.random.default_rng(0)
    before = state(rng)
    with pytest.raises(UnsupportedError, match=r"cannot draw a random key\ngiven: a key of Generator.*\nhint: "):
        lab.jit(around(noisy(rng)))(X)
    assert state(rng) == before
    around(noisy(rng))(X)  # by plain code it may
    seeded = around(noisy(3))
    close(seeded(X), lab.jit(seeded)(X))


def test_a_key_that_is_drawn_before_goes_into_branches_and_loops():
    def make(rng):
        def f(x):
            key, keys = lab.random_key(rng), lab.stack([lab.random_key(rng) for _ in range(3)])
            x = lab.cond(x.sum() > 1e9, lambda x: x, lambda x: lab.dropout(x, key), x)
            return lab.scan(lambda c, k: (lab.dropout(c + 1.0, k), c.sum()), x, keys)

        return f

    for executor in EXECUTORS:
        alike(make, lambda f, executor=executor: lab.jit(f, executor=executor), X)
        alike(lambda rng: lab.grad(lambda x: make(rng)(x)[0].sum()), lambda f, e=executor: lab.jit(f, executor=e), X)


def test_a_scan_without_rows_draws_nothing():
    rng = np.random.default_rng(0)
    before = state(rng)
    drop = lambda c, _: (lab.dropout(c, lab.random_key(rng)), c)  # noqa: E731
    f = lambda x: lab.scan(drop, x, np.ones((0, 2)))  # noqa: E731
    for g in (f, lab.jit(f)):
        assert g(X)[1].shape == (0, *X.shape)
        close(g(X)[0], X)
    assert state(rng) == before


def test_a_function_with_a_rule_of_its_own_takes_its_key_as_an_argument():
    rng = np.random.default_rng(0)

    @lab.custom_vjp
    def f(x):
        return lab.dropout(x, lab.random_key(rng))

    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct,))
    with pytest.raises(TransformError, match="not among its arguments\ngiven: <a key of Generator"):
        lab.jit(lambda x: f(x * 2.0))(X)


# --- sheets, scripts, files ---------------------------------------------------------------------------------------


@each
def test_a_session_draws_at_each_run_what_it_fetches(executor):
    rng, plain = np.random.default_rng(0), np.random.default_rng(0)
    with lab.Graph() as g:
        x = lab.placeholder(X.shape, "float64", name="x")
        w = lab.variable(np.ones(4), name="w")
        y = lab.dropout(x * w, lab.random_key(rng)).sum()
        slope = lab.gradients(y, w)
    with lab.Session(g, executor=executor) as s:
        for _ in range(3):
            found, ct = s.run([y, slope], feed={x: X})
            key = lab.random_key(plain)
            close(found, lab.dropout(X, key).sum())
            close(ct, lab.grad(lambda w, key=key: lab.dropout(X * w, key).sum())(np.ones(4)))
            assert state(rng) == state(plain)


RNG = np.random.default_rng(0)
LAYER = lab.nn.Dropout(0.5, rng=3)


def scripted(x):
    unread = lab.random_key(RNG)  # noqa: F841 - it moves the generator on
    if x.sum() > 1e9:
        x = x * 2.0
    return LAYER(lab.dropout(x, lab.random_key(RNG)))


def refused(x):
    return lab.dropout(x, lab.random_key(RNG)) if x.sum() > 1e9 else x


@each
def test_a_script_draws_at_each_call(executor):
    f = lab.script(scripted, executor=executor)
    f.graph(X)
    start, layer = state(RNG), state(LAYER.rng)
    found = [array(f(X)) for _ in range(3)]
    ends = state(RNG), state(LAYER.rng)
    RNG.bit_generator.state, LAYER.rng.bit_generator.state = start, layer
    for one in found:
        close(one, scripted(X))
    assert ends == (state(RNG), state(LAYER.rng))
    with pytest.raises(LabError, match="cannot draw a random key"):
        lab.script(refused)(X)


@pytest.mark.parametrize(
    ("verb", "leave"),
    [("saved", lambda g, path: lab.graph.save(g, path)), ("exported", lambda g, path: export_numpy(g, path))],
)
def test_a_graph_that_draws_cannot_leave(tmp_path, verb, leave):
    graph = lab.make_graph(noisy(np.random.default_rng(0)))(X)
    with pytest.raises(GraphError, match=f"draws random keys cannot be {verb}\ngiven: 1 key; .*test_keys.py.*\nhint:"):
        leave(graph, tmp_path / "f.file")
    leave(lab.make_graph(lambda x, key: lab.dropout(x, key))(X, lab.random_key(0)), tmp_path / "f.file")


def test_a_formula_of_a_function_that_draws_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(GraphError, match="cannot be written as an expression"):
        lab.symbolic(lambda x: x * lab.random_uniform(lab.random_key(rng)))


def test_measurements_of_a_function_that_draws_are_those_of_any():
    f = noisy(np.random.default_rng(0))
    assert lab.measure_schedule(f, X, repeats=1).rows
    assert lab.measure_plan(f, X).rows
    assert lab.measure_passes(f, X, repeats=1).rows


def test_threads_that_call_a_jitted_function_draw_for_themselves():
    f = lab.jit(lambda x: lab.dropout(x, lab.random_key(None)))
    f(np.ones(100))
    found = []
    threads = [threading.Thread(target=lambda: found.append(array(f(np.ones(100))).tobytes())) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(found)) == 4


# --- differences


def masked(rng):
    return lambda x: lab.dropout(x * 2.0, lab.random_key(rng)).sum()


@pytest.mark.parametrize("wrap", [lambda f: f, lab.jit])
def test_a_check_of_gradients_draws_the_same_keys_for_each_difference(wrap):
    x, rng, once = np.linspace(1, 2, 12).reshape(3, 4), np.random.default_rng(5), np.random.default_rng(5)
    report = lab.check_grads(wrap(masked(rng)), (x,))
    assert report.ok
    assert not any(check.notes for check in report.checks)
    masked(once)(x)
    assert rng.bit_generator.state == once.bit_generator.state


@pytest.mark.parametrize("method", ["forward", "central", "complex", "richardson"])
def test_numeric_derivatives_draw_the_same_keys_for_each_difference(method):
    x = np.linspace(1, 2, 12).reshape(3, 4)
    slopes = lab.numeric_jacobian(lambda x: masked(np.random.default_rng(5))(x), x, method=method)
    assert 0 in slopes
    np.testing.assert_allclose(lab.numeric_jacobian(masked(np.random.default_rng(5)), x, method=method), slopes)
