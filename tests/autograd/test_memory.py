"""Graphs of any size: iterative in every step, freed without the collector, while walking."""

import gc
import weakref

import numpy as np
import pytest

import lab
from tests.numerics import close

DEEP = 100_000


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_a_chain_of_100_000_nodes_goes_forward_backward_and_away():
    x = lab.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(DEEP):
        y = y * 1.0
    y.backward()
    close(x.grad, 1.0)
    for _ in range(DEEP):
        y = y + 1.0
    del y  # without backward: the graph is dropped, not walked


def test_a_chain_of_100_000_nodes_under_grad_with_hooks_and_create_graph():
    def f(x):
        for _ in range(DEEP // 10):
            x = x * 1.0
        return x

    close(lab.grad(f)(2.0), 1.0)
    x = lab.tensor(2.0, requires_grad=True)
    x.register_hook(lambda g: g)
    f(x).backward(create_graph=True)
    close(x.grad, 1.0)


def test_a_graph_50_000_wide():
    x = lab.tensor(1.0, requires_grad=True)
    parts = [x * float(i % 3) for i in range(50_000)]
    total = lab.concatenate([p.reshape(1) for p in parts[:1000]]).sum()
    for p in parts[1000:]:
        total = total + p
    total.backward()
    close(x.grad, float(sum(i % 3 for i in range(50_000))))


def test_a_graph_that_is_dropped_is_freed_at_once(no_collector):
    x = lab.tensor([1.0, 2.0], requires_grad=True)
    y = lab.exp(x)
    seen = weakref.ref(y.value), weakref.ref(y)
    z = (y * y).sum()
    del y
    assert seen[1]() is None
    assert seen[0]() is not None  # saved by its node
    del z
    assert seen[0]() is None


def test_backward_frees_saved_arrays_while_it_walks(no_collector):
    x = lab.tensor(np.ones(3), requires_grad=True)
    y = lab.exp(x)
    z = lab.exp(y)
    saved = weakref.ref(z.value)
    alive = []
    y.register_hook(lambda g: alive.append(saved() is not None))
    out = z.sum()
    del z
    out.backward()
    assert alive == [False]


@pytest.mark.parametrize("walk", ["none", "backward", "retain", "failed"])
def test_no_reference_cycles(no_collector, walk):
    x = lab.tensor(np.ones(3), requires_grad=True)
    h = lab.tanh(x * 2.0)
    out = (h @ h + lab.concatenate([h, x]).sum()).sum()
    if walk == "failed":
        h.register_hook(lambda g: g[:1])
    probe = weakref.ref(h)
    del h
    try:
        if walk != "none":
            out.backward(retain_graph=walk == "retain")
    except lab.LabError:
        pass
    del out
    assert probe() is None
    assert gc.collect() == 0


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: lab.grad(f),
        lambda f: lab.grad(lambda x: lab.grad(f)(x).sum()),
        lambda f: lambda x: lab.jvp(f, (x,), (x,)),
        lambda f: lambda x: lab.vmap(lab.grad(lambda s: f(s.reshape(1))))(x),
        lambda f: lambda x: lab.make_graph(f)(x),
    ],
)
def test_transforms_leave_nothing_behind(no_collector, transform):
    def f(x):
        return lab.sum(lab.exp(x) * x)

    run = transform(f)
    run(np.ones(3))
    gc.collect()
    run(np.ones(3))
    assert gc.collect() == 0


def test_tensors_and_nodes_have_slots_and_no_dictionary():
    y = lab.tensor(1.0, requires_grad=True) * 2.0
    assert not hasattr(y, "__dict__")
    assert not hasattr(y.node, "__dict__")
