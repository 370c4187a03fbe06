"""jit: what it caches and by which key, what becomes an input, and that replaying is the same as running."""

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, ConcretizationError, LabError
from lab.events import OpRecorded
from lab.graph.compiled import Compiled
from tests.numerics import close


def counted(f):
    """f and the number of times that its Python code ran."""
    runs = []

    def g(*args, **kwargs):
        runs.append(1)
        return f(*args, **kwargs)

    return g, runs


def test_the_code_runs_once_for_each_structure_shape_and_dtype():
    f, runs = counted(lambda x: x * 2.0)
    g = lab.jit(f)
    for x in (1.0, 2.0, np.float64(3.0), np.array(4.0), lab.tensor(5.0)):
        close(g(x), 2.0 * float(x))
    assert len(runs) == len(g.cache) == 2  # a Python number is another kind than an array
    g(np.ones(2))
    g(np.float32(1.0))
    g(np.ones(2))
    assert len(runs) == len(g.cache) == 4


def test_python_numbers_are_arguments_and_not_constants():
    f, runs = counted(lambda x, n: x * n)
    g = lab.jit(f)
    close(g(1.0, 2.0), 2.0)
    close(g(1.0, 3.0), 3.0)
    assert len(runs) == 1


def test_what_is_captured_becomes_an_input():
    w = lab.tensor([1.0, 2.0])
    f, runs = counted(lambda x: (x * w).sum())
    g = lab.jit(f)
    close(g(np.ones(2)), 3.0)
    w[0] = 5.0
    close(g(np.ones(2)), 7.0)
    assert len(runs) == 1
    leaf = lab.tensor([1.0, 2.0], requires_grad=True)
    h = lab.jit(lambda x: (x * leaf * leaf).sum())
    h(np.ones(2)).backward()
    close(leaf.grad, [2.0, 4.0])
    with lab.no_grad():
        leaf += 1.0
    leaf.zero_grad()
    h(np.ones(2)).backward()
    close(leaf.grad, [4.0, 6.0])
    close(h(np.ones(2)), 13.0)


def test_an_array_that_is_captured_is_a_constant_copied_into_the_graph():
    c = np.array([1.0, 2.0])
    g = lab.jit(lambda x: (x * c).sum())
    close(g(np.ones(2)), 3.0)
    c[0] = 100.0
    close(g(np.ones(2)), 3.0)


def test_a_captured_value_of_an_enclosing_transform_is_not_cached():
    @lab.jit
    def g(y):
        return y * holder[0]

    holder = [None]

    def f(x):
        holder[0] = x
        return g(2.0) * x

    for x in (3.0, 5.0, 7.0):
        close(lab.grad(f)(x), 4.0 * x)
        close(lab.jvp(f, (x,), (1.0,))[1], 4.0 * x)
    close(lab.vmap(f)(np.array([1.0, 2.0])), [2.0, 8.0])
    close(lab.jit(f)(3.0), 18.0)
    assert len(g.cache) == 0
    holder[0] = lab.tensor(10.0)
    close(g(2.0), 20.0)
    assert len(g.cache) == 1


def test_jit_inside_other_transforms_and_the_other_way_round():
    f = lab.jit(lambda x: lab.sin(x) * x)
    close(lab.grad(f)(1.0), np.cos(1.0) + np.sin(1.0))
    close(lab.grad(lab.grad(f))(1.0), 2 * np.cos(1.0) - np.sin(1.0))
    close(lab.vmap(lab.grad(f))(np.ones(2)), [np.cos(1.0) + np.sin(1.0)] * 2)
    close(lab.jit(lab.jit(f))(1.0), np.sin(1.0))
    close(lab.jit(lambda x: lab.grad(f)(x) + f(x))(1.0), np.cos(1.0) + 2 * np.sin(1.0))


def test_jit_under_no_grad_and_outside_of_it_share_a_graph_and_track_as_asked():
    f, runs = counted(lambda x: x * x)
    g = lab.jit(f)
    x = lab.tensor(3.0, requires_grad=True)
    with lab.no_grad():
        assert g(x).requires_grad is False
    y = g(x)
    assert y.requires_grad
    y.backward()
    close(x.grad, 6.0)
    with lab.no_grad():
        close(g(x), 9.0)
    assert len(runs) == 1


def test_no_grad_inside_a_jitted_function_stops_gradients():
    def f(x):
        with lab.no_grad():
            c = x * x
        return c * x

    close(lab.grad(lab.jit(f))(3.0), 9.0)
    x = lab.tensor(3.0, requires_grad=True)
    lab.jit(f)(x).backward()
    close(x.grad, 9.0)
    close(lab.jit(lab.grad(f))(3.0), 9.0)


def test_keywords_are_arguments():
    f, runs = counted(lambda x, *, scale, shift=None: x * scale)
    g = lab.jit(f)
    close(g(2.0, scale=3.0), 6.0)
    close(g(2.0, scale=4.0), 8.0)
    close(g(2.0, scale=4.0, shift=1.0), 8.0)
    assert len(runs) == 2
    close(lab.grad(lambda x: g(x, scale=3.0))(2.0), 3.0)


def test_the_settings_and_the_named_axes_are_part_of_the_key():
    f, runs = counted(lambda x: lab.relu(x))
    g = lab.jit(lab.grad(f))
    found = []
    for kinks in ("zero", "half", "one", "zero"):
        with lab.settings(kinks=kinks):
            found.append(g(0.0).item())
    assert found == [0.0, 0.5, 1.0, 0.0]
    assert len(runs) == 3
    h = lab.jit(lambda x: x * lab.all_reduce(1.0, axis_name="i"))
    close(lab.vmap(h, axis_name="i")(np.ones(2)), [2.0, 2.0])
    close(lab.vmap(h, axis_name="i")(np.ones(3)), [3.0, 3.0, 3.0])


def test_errors_of_a_replay_are_those_of_the_ops():
    g = lab.jit(lambda x, n: x**n)
    g(np.array([2]), np.array([2]))
    with pytest.raises(ArgumentError, match="power cannot take these operands"):
        g(np.array([2]), np.array([-2]))


def test_a_failing_trace_is_not_cached():
    calls = []

    def f(x):
        calls.append(1)
        if len(calls) == 1:
            raise ZeroDivisionError
        return x

    g = lab.jit(f)
    with pytest.raises(ZeroDivisionError):
        g(1.0)
    close(g(1.0), 1.0)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: lab.jit(lambda x: "text")(1.0), "the result of a traced function cannot take this argument"),
        (lambda: lab.jit(lambda x: x)("text"), "jit takes numbers only"),
        (lambda: lab.jit(lambda x: x)(object()), "jit takes numbers only"),
        (lambda: lab.jit(lambda x: x)([[1.0], [1.0, "a"]]), "jit takes numbers only"),
        (lambda: lab.make_graph(lambda x: x)("text"), "a traced function cannot take this argument"),
    ],
)
def test_misuse_is_explained(call, problem):
    with pytest.raises(LabError) as caught:
        call()
    assert caught.value.problem.startswith(problem)
    assert caught.value.given


@pytest.mark.parametrize("transform", [lab.jit, lab.grad, lab.vmap])
def test_the_self_of_a_decorated_method_is_refused_with_what_to_write(transform):
    class Plain:
        @transform
        def f(self, x):
            return (x * 2.0).sum()

    with pytest.raises(LabError, match=rf"hint:  of a method write self.f = lab.{transform.__name__}\(self.f\) in"):
        Plain().f(np.ones(2))

    class Written:
        def __init__(self):
            self.f = transform(self.f)

        def f(self, x):
            return (x * 2.0).sum()

    assert np.asarray(Written().f(np.ones((2, 1)))).shape in ((), (2,), (2, 1))


def test_a_python_number_among_the_arguments_stays_weak():
    x = np.ones(2, "float32")
    g = lab.jit(lambda x, n: x * n + n)
    assert g(x, 2.0).dtype == g(x, 2).dtype == np.float32
    close(g(x, 3.0), [6.0, 6.0])
    assert g(x, np.float64(2.0)).dtype == np.float64
    assert len(g.cache) == 3
    h = lab.jit(lambda x, n, k: x * n + k)
    h(x, 2.0, 3)
    assert str(next(iter(h.cache.values())).graph).startswith("graph(a:f32[2] b:float c:int)")
    powers = lab.jit(lambda x, n: lab.grad(lambda x: (x**n).sum())(x))
    assert powers(x, 3.0).dtype == np.float32
    close(powers(2 * x, 3.0), [12.0, 12.0])
    close(powers(2 * x, 2.0), [4.0, 4.0])
    assert lab.jit(lambda x, n: lab.jvp(lambda x: x**n, (x,), (x,))[1])(x, 3.0).dtype == np.float32
    assert lab.grad(lambda x: g(x, 2.0).sum())(x).dtype == np.float32
    assert lab.vmap(lambda x: g(x, 2.0))(x).dtype == np.float32


def test_the_results_of_two_calls_share_no_memory():
    g = lab.jit(lambda x: (x * 1.0, lab.tensor(2.0) * 1.0, 3.0, np.ones(2)))
    a, b = g(np.ones(2)), g(np.ones(2))
    for x, y in zip(a, b, strict=True):
        assert not np.shares_memory(x.value, y.value)
        x.assign(0.0)
    close(g(np.ones(2))[3], [1.0, 1.0])
    close(g(np.ones(2))[2], 3.0)


def test_a_replay_tells_listeners_what_running_tells_them():
    f = lambda x: lab.exp(x) * x + 1.0  # noqa: E731
    x = lab.tensor(2.0, requires_grad=True)
    heard = []
    for g in (f, lab.jit(f)):
        g(x)
        with lab.record(kinds=[OpRecorded], sources=False) as rec:
            g(x)
        heard.append([e.op for e in rec])
    assert heard[0] == heard[1] == ["exp", "multiply", "add"]


def test_a_jitted_function_keeps_its_name_and_shows_its_graphs():
    @lab.jit
    def my_function(x):
        """My words."""
        return lab.tanh(x)

    assert my_function.__name__ == "my_function"
    assert my_function.__doc__ == "My words."
    my_function(1.0)
    (entry,) = my_function.cache.values()
    assert "tanh" in str(entry.graph)


def test_each_trace_says_why_the_graphs_before_would_not_do():
    f = lab.jit(lambda x, ps: x * ps["w"] + ps["b"])
    ps = {"w": np.ones(3), "b": 1.0}
    f(np.ones(3), ps)
    f(np.ones(3), ps)
    f(np.ones((2, 3)), ps)
    f(np.ones(3), {**ps, "w": np.ones(3, np.float32)})
    f(np.ones(3), {**ps, "b": 1})
    with lab.settings(kinks="half"):
        f(np.ones(3), ps)
    assert [m.reason for m in f.misses] == [
        "the first call",
        "x: float64 (2, 3), before float64 (3,)",
        "ps['w']: float32 (3,), before float64 (3,)",
        "ps['b']: a Python int, before a Python float",
        "kinks: half, before zero",
    ]
    assert f.hits == 1
    assert all(m.kept and m.n_equations == 2 and m.elapsed_ms > 0 for m in f.misses)
    assert repr(f) == "<jitted <lambda>: 5 graphs, 1 hit, 5 traced>"


def test_other_containers_and_graphs_of_one_call_are_reasons_too():
    f = lab.jit(lambda x: x[0] * 2.0)
    f([1.0])
    f((1.0,))
    assert f.misses[1].reason == "the arguments stand in other containers, or others were given"

    def around(y):
        inner = lab.jit(lambda x: x * y)
        inner(1.0)
        value = inner(1.0)
        seen.append(inner.misses)
        return value

    seen: list = []
    lab.grad(around)(2.0)
    assert [m.kept for m in seen[0]] == [False, False]
    assert [m.reason for m in seen[0]] == ["the first call", "the graph before was good for its own call only"]


def test_a_method_can_be_jitted():
    class Line(lab.nn.Module):
        def __init__(self):
            self.w = lab.nn.parameter(np.array([2.0]))

        @lab.jit
        def forward(self, x):
            return x * self.w

    close(Line()(np.array([3.0])), [6.0])


ALONE = {
    "transposed": lambda w: w.T, "doubled": lambda w: w.T * 2.0, "of two": lambda w: (w + w * w).T,
    "by an op of three": lambda w: lab.where(np.array([[True, False]]), w, -w).T,
    "joined": lambda w: lab.stack([w[0], w[0]]).T,
    "linearized": lambda w: lab.linearize(lambda v: v * w.T, w.T)[1](w.T),
    "its own gradient": lambda w: lab.grad(lambda v: (v * v * w).sum())(w).T,
}  # fmt: skip


@pytest.mark.parametrize("executor", ["interpreted", "compiled"])
@pytest.mark.parametrize("made", ALONE.values(), ids=ALONE)
def test_what_is_made_of_captured_parameters_alone_is_part_of_the_graph(made, executor):
    w = lab.tensor([[1.0, 2.0]], requires_grad=True)
    f = lab.jit(lambda x: (x @ made(w)).sum(), executor=executor)
    x = np.array([[1.0, 1.0]])
    for _ in range(3):
        w.zero_grad()
        out = f(x)
        out.backward()
        got = w.grad.numpy().copy()
        w.zero_grad()
        wanted = (lab.tensor(x) @ made(w)).sum()
        wanted.backward()
        close(out, wanted)
        close(got, w.grad)
        with lab.no_grad():
            close(f(x), wanted)
            w += 0.5
    assert [m.kept for m in f.misses] == [True]


def test_a_convolution_that_is_closed_over_is_traced_once():
    layer = lab.nn.Conv2d(1, 2, 3, rng=0)
    f = lab.jit(lambda x: layer(x).sum())
    for x in (np.ones((1, 1, 4, 4), np.float32), np.zeros((1, 1, 4, 4), np.float32)):
        assert f(x).item() == pytest.approx(layer(x).sum().item(), rel=1e-5)
    assert (len(f.misses), f.hits) == (1, 1)


def test_a_branch_on_what_is_made_of_parameters_is_not_burned_in():
    w = lab.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(ConcretizationError, match="was asked for while the graph is being made"):
        lab.jit(lambda x: x * 2.0 if (w * 2.0).sum() > 1.0 else x)(1.0)


def test_a_function_may_have_leaves_of_its_own_and_walk_back_from_them():
    def inner(x):
        v = lab.tensor([1.0, 2.0], requires_grad=True)
        (v * v * 3.0).sum().backward()
        return x * v.grad

    f = lab.jit(inner)
    for _ in range(2):
        close(f(np.ones(2)), [6.0, 12.0])


def test_a_line_of_anomaly_mode_is_kept_while_something_is_traced():
    w = lab.tensor([0.0], requires_grad=True)
    with lab.anomaly_mode():
        out = lab.jit(lambda x: (x * lab.sqrt(w)).sum())(np.ones(1))
        with pytest.raises(lab.LabError):
            (out * 0.0).backward()


def test_a_gradient_that_is_a_constant_is_traced_once():
    f = lab.jit(lab.grad(lambda x: (x * np.arange(3.0)).sum()))
    for _ in range(3):
        close(f(np.ones(3)), np.arange(3.0))
    assert [m.kept for m in f.misses] == [True]


def test_what_was_prepared_is_neither_traced_nor_compiled_again(capsys):
    f = lab.jit(lambda x, y: (lab.tanh(x) * y, (x * y).sum()), executor="compiled")
    prepared = f.prepare(np.ones((3, 2)), np.ones((3, 2)))
    assert capsys.readouterr().out.splitlines()[-1].rsplit("\r", 1)[-1] == "compiled 1 of 1 loop"
    assert all(loop.loaded for loop in prepared.graph.once("compiled", Compiled).code.loops.values())
    f(np.ones((3, 2)), np.zeros((3, 2)))
    assert (len(f.misses), f.hits) == (1, 1)
    assert lab.jit(lambda x: x + 1.0).prepare(1.0).graph.equations[0].op.name == "add"
    with pytest.raises(lab.errors.LabError):
        f.prepare("no number", 1.0)


def test_a_graph_that_could_not_be_compiled_runs_by_its_ops_and_says_so_in_the_log(monkeypatch, caplog):
    def broken(_graph):
        raise RuntimeError("no code today")

    monkeypatch.setattr("lab.graph.compiled.generate", broken)
    assert lab.jit(lambda x: x * 3.0, executor="compiled")(2.0).item() == 6.0
    assert "no code today" in caplog.text
