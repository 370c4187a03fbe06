"""checkpoint: the same gradients from less memory, on every tape; and what it notices."""

import tracemalloc

import numpy as np
import pytest

import lab
from lab.errors import GradientError
from tests.numerics import array, close

N = 4096


def block(x):
    return lab.sin(lab.exp(lab.tanh(x)) * x)


def chain(x, step, n=8):
    for _ in range(n):
        x = step(x)
    return x.sum()


def peak_of_backward(step):
    x = lab.tensor(np.linspace(0.1, 1.0, N), requires_grad=True)
    tracemalloc.start()
    chain(x, step).backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, array(x.grad)


def test_memory_falls_and_the_gradient_keeps_its_bits():
    plain, expected = peak_of_backward(block)
    less, found = peak_of_backward(lab.checkpoint(block))
    assert np.array_equal(found, expected)
    assert plain > 8 * 4 * 8 * N  # 8 blocks of at least 4 saved arrays
    assert less < 0.6 * plain
    x = lab.tensor(np.ones(N), requires_grad=True)
    assert lab.saved_values(chain(x, lab.checkpoint(block))).n_bytes == 7 * 8 * N  # what goes into all but the first
    assert lab.saved_values(chain(x, block)).n_bytes == (8 * 4 - 1) * 8 * N


def test_memory_falls_under_grad_too():
    def peak(step):
        tracemalloc.start()
        lab.grad(lambda x: chain(x, step))(np.linspace(0.1, 1.0, N))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(lab.checkpoint(block)) < 0.6 * peak(block)


def test_the_function_runs_once_more_for_each_walk():
    calls = []
    f = lab.checkpoint(lambda x: calls.append(1) or block(x))
    x = lab.tensor(np.ones(3), requires_grad=True)
    y = f(x).sum()
    assert len(calls) == 1
    y.backward(retain_graph=True)
    first = array(x.grad)
    assert len(calls) == 2
    y.backward()
    assert len(calls) == 3
    close(x.grad, 2.0 * first)
    with pytest.raises(GradientError, match="freed by an earlier backward"):
        y.backward()
    with lab.no_grad():
        assert not f(x).requires_grad
    assert len(calls) == 4


def test_what_it_closes_over_gets_its_gradient():
    w, x = lab.tensor([2.0, 3.0], requires_grad=True), lab.tensor([0.5, 1.0], requires_grad=True)
    lab.checkpoint(lambda x: lab.sin(w * x))(x).sum().backward()
    close(w.grad, np.cos([1.0, 3.0]) * [0.5, 1.0])
    close(x.grad, np.cos([1.0, 3.0]) * [2.0, 3.0])
    close(lab.grad(lambda w: lab.checkpoint(lambda x: w * x * x)(3.0))(2.0), 9.0)


def test_containers_several_results_and_keyword_arguments():
    @lab.checkpoint
    def f(p, *, by):
        """Documented."""
        return {"a": lab.exp(p["x"]) * by, "b": (p["y"] ** 2, 7, None)}

    assert f.__doc__ == "Documented."
    p = {"x": lab.tensor(1.0, requires_grad=True), "y": lab.tensor(2.0, requires_grad=True)}
    out = f(p, by=3.0)
    assert out["b"][1:] == (7, None)
    (out["a"] + out["b"][0]).backward()
    close(p["x"].grad, 3.0 * np.e)
    close(p["y"].grad, 4.0)


def test_checkpoints_inside_checkpoints():
    calls = []
    inner = lab.checkpoint(lambda x: calls.append("inner") or block(x))
    outer = lab.checkpoint(lambda x: calls.append("outer") or block(inner(inner(x))))
    x = lab.tensor(np.linspace(0.1, 1.0, 3), requires_grad=True)
    outer(x).sum().backward()
    close(x.grad, array(lab.grad(lambda x: block(block(block(x))).sum())(x.numpy())))
    assert calls.count("outer") == 2
    assert calls.count("inner") == 6  # two in the first run, two in the second, and each once more by itself


NESTINGS = {
    "grad": lambda f: lab.grad(f),
    "grad of grad": lambda f: lab.grad(lab.grad(f)),
    "third": lambda f: lab.grad(lab.grad(lab.grad(f))),
    "jvp": lambda f: lambda x: lab.jvp(f, (x,), (1.0,))[1],
    "forward over reverse": lambda f: lambda x: lab.jvp(lab.grad(f), (x,), (1.0,))[1],
    "reverse over forward": lambda f: lab.grad(lambda x: lab.jvp(f, (x,), (1.0,))[1]),
    "hessian": lambda f: lab.hessian(f),
    "vmap of grad": lambda f: lambda x: lab.vmap(lab.grad(f))(lab.stack([x, 2.0 * x])),
    "grad of vmap": lambda f: lab.grad(lambda x: lab.vmap(f)(lab.stack([x, 2.0 * x])).sum()),
    "jit": lambda f: lab.jit(f),
    "jit of grad": lambda f: lab.jit(lab.grad(f)),
    "grad of jit": lambda f: lab.grad(lab.jit(f)),
    "linearize": lambda f: lambda x: lab.linearize(f, x)[1](1.0),
}


@pytest.mark.parametrize("nesting", NESTINGS.values(), ids=NESTINGS)
def test_every_transform_sees_the_same_function(nesting):
    close(nesting(lab.checkpoint(block))(0.7), array(nesting(block)(0.7)))
    twice = lambda x: lab.checkpoint(lab.checkpoint(block))(block(x)) * x  # noqa: E731
    close(nesting(twice)(0.7), array(nesting(lambda x: block(block(x)) * x)(0.7)))


def test_second_derivatives_of_the_plain_tape():
    x = lab.tensor(0.7, requires_grad=True)
    lab.checkpoint(block)(x).backward(create_graph=True)
    first = x.grad
    close(first, array(lab.grad(block)(0.7)))
    x.zero_grad()
    first.backward()
    close(x.grad, array(lab.grad(lab.grad(block))(0.7)))


def test_the_graph_of_its_gradient_shows_the_second_run():
    names = lambda f: [e.op.name for e in lab.make_graph(lab.grad(f))(0.7).equations]  # noqa: E731
    assert names(block).count("exp") == 1
    assert names(lab.checkpoint(block)).count("exp") == 2


def test_random_keys_are_drawn_again():
    rng = np.random.default_rng(0)
    masks = []

    def drop(x):
        mask = lab.random_uniform(lab.random_key(rng), shape=x.shape) < 0.5
        masks.append(array(mask))
        return lab.where(mask, lab.exp(x), 0.0)

    x = lab.tensor(np.zeros(50), requires_grad=True)
    nested = lab.checkpoint(lambda x: lab.checkpoint(drop)(drop(x)))
    y = nested(x)
    n = len(masks)
    y.sum().backward()
    assert all(np.array_equal(a, b) for a, b in zip(masks[n:], masks[:n], strict=False))
    close(x.grad, np.where(masks[0] & masks[1], np.exp(np.where(masks[0], 1.0, 0.0)), 0.0))
    assert not np.array_equal(lab.random_key(rng), lab.random_key(rng))


@pytest.mark.parametrize("retained", [False, True])
def test_a_second_run_that_differs_is_noticed(retained):
    rng, w = np.random.default_rng(0), lab.tensor([1.0, 2.0], requires_grad=True)
    x = lab.tensor([3.0, 4.0], requires_grad=True)
    drawn = lab.checkpoint(lambda x: lab.exp(x * rng.normal()))(x).sum()
    with pytest.raises(GradientError, match=r"checkpoint ran <lambda> again .* something else") as caught:
        drawn.backward(retain_graph=retained)
    assert "lab.random_key" in caught.value.hint
    assert x.grad is None
    y = lab.checkpoint(lambda x: lab.exp(x) + w)(x).sum()
    with lab.no_grad():
        w -= 1e-3
    with pytest.raises(GradientError, match="something else"):
        y.backward(retain_graph=retained)
    y = lab.checkpoint(lambda x: lab.exp(x))(x).sum()
    with lab.no_grad():
        x -= 1e-3
    with pytest.raises(GradientError) as caught:
        y.backward(retain_graph=retained)
    assert "changed in place" in caught.value.given
    calls = []
    y = lab.checkpoint(lambda x: lab.exp(x) if calls.append(1) or len(calls) == 1 else lab.sin(x))(x).sum()
    with pytest.raises(GradientError) as caught:
        y.backward(retain_graph=retained)
    assert "operations" in caught.value.given


def test_it_can_be_called_under_a_named_axis_and_after_the_end_of_its_transform():
    f = lambda x: lab.checkpoint(lambda x: lab.all_reduce(lab.exp(x), axis_name="i"))(x)  # noqa: E731
    plain = lambda x: lab.all_reduce(lab.exp(x), axis_name="i")  # noqa: E731
    for g in (lambda f: lab.vmap(lab.grad(f), axis_name="i"),
              lambda f: lab.grad(lambda x: lab.vmap(f, axis_name="i")(x).sum())):  # fmt: skip
        close(g(f)(np.array([0.1, 0.2])), array(g(plain)(np.array([0.1, 0.2]))))
    _, back = lab.vjp(lab.checkpoint(block), 0.7)
    close(back(2.0)[0], 2.0 * array(lab.grad(block)(0.7)))
    close(lab.vmap(lambda ct: back(ct)[0])(np.array([1.0, 2.0])), array(lab.grad(block)(0.7)) * [1.0, 2.0])


def test_a_network_is_trained_as_without_it():
    def gradients(wrapper):
        net = lab.nn.Sequential(lab.nn.Linear(3, 4, rng=0), lab.nn.Linear(4, 1, rng=1))
        lab.sum(wrapper(net)(np.ones((2, 3), "float32")) ** 2).backward()
        return [array(p.grad) for p in net.parameters()]

    for a, b in zip(gradients(lab.checkpoint), gradients(lambda net: net), strict=True):
        assert np.array_equal(a, b)
