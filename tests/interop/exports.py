"""What is exported by the tests: every sample of the op table, its gradient, and whole models."""

from collections.abc import Callable

import numpy as np

import lab
from lab.graph import Graph
from lab.graph.execute import run_arrays
from lab.graph.passes import stages
from lab.ops import PRIMITIVES
from tests.graph.graphs import CASES, SPECIAL, of_gradient, of_sample

Case = tuple[str, Graph, list]
F = np.float32


def ops_of(graph: Graph) -> set[str]:
    return {e.op.name for inner in graph.walk() for e in inner.equations}


def table(skip=()) -> list[Case]:
    """Each op of the table on its samples and in its gradient, but for those whose graphs hold an op of `skip`."""
    made = []
    for name, i in CASES:
        for kind, found in (("value", of_sample(name, i)), ("gradient", of_gradient(name, i))):
            if found is not None and not ops_of(found[0]) & set(skip):
                made.append((f"{name}-{i}-{kind}", *found))
    return made


def single(names) -> list[Case]:
    """The samples of some ops in float32, where their gradient needs no op but them."""
    made = []
    for name in names:
        for i, sample in enumerate(PRIMITIVES[name].samples):
            xs = sample.draw(dtype="float32")
            f = lambda *xs, op=PRIMITIVES[name], params=sample.params: op(*xs, **params)  # noqa: E731
            made.append((f"{name}-{i}-float32", *with_values(f, *xs)))
    return made


def special(skip=()) -> list[Case]:
    """Every elementwise op on nan, infinities, zeros of both signs, and numbers that overflow."""
    xs = np.array([*SPECIAL, 1e300, -1e300, 1e-300, 30.0, -30.0])
    grid = [np.array(a) for a in np.broadcast_arrays(xs[:, None], xs[None, :], xs[::-1, None])]
    made = []
    for op in PRIMITIVES.values():
        if op.elementwise and op.name not in {"where", "sinc_slope", *skip}:
            f = lambda *a, op=op: op(*a)  # noqa: E731
            made.append((f"{op.name} of special numbers", *with_values(f, *grid[: len(op.arguments)])))
    return made


def with_values(f: Callable, *xs) -> tuple[Graph, list]:
    graph = lab.make_graph(f)(*xs)
    return graph, [*xs, *(np.asarray(c.value) for c in graph.captured)]


def expected(graph: Graph, xs: list) -> list:
    with np.errstate(all="ignore"):
        return run_arrays(graph, xs)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(F)


def labels(n=6):
    return np.random.default_rng(1).integers(0, 10, n)


def train_step(ps, x, y):
    """One step of momentum for a perceptron of two layers: forward, backward and update."""

    def loss(ps):
        return lab.cross_entropy(lab.relu(x @ ps[0] + ps[1]) @ ps[2] + ps[3], y)

    value, slopes = lab.value_and_grad(loss)(ps)
    return value, [p - 0.1 * lab.stop_gradient(g) for p, g in zip(ps, slopes, strict=True)]


def convnet():
    nn = lab.nn
    return nn.Sequential(nn.Conv2d(1, 4, 3, rng=0), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 10, rng=0))


def models() -> list[Case]:
    ps = [draw(8, 5), draw(5, seed=1), draw(5, 10, seed=2), draw(10, seed=3)]
    mlp, net, cell = lab.nn.mlp(64, 16, 10, rng=0), convnet(), lab.nn.LSTMCell(3, 4, rng=0)
    block = lab.nn.TransformerBlock(8, 2, rng=0)

    def lstm(x):
        def turn(state, row):
            new = cell(row, state)
            return new, new[0]

        return lab.scan(turn, (draw(2, 4), draw(2, 4)), x)

    def collatz(x):
        def turn(y):
            return lab.cond(y[0] > 3.0, lambda z: z + x, lambda z: z * 2.0, y)

        return lab.while_loop(lambda y: lab.any(y < 50.0), turn, x)

    return [
        ("digits MLP", *with_values(mlp, draw(6, 64))),
        ("gradient of the MLP", *with_values(lab.grad(lambda x: lab.cross_entropy(mlp(x), labels())), draw(6, 64))),
        ("convnet", *with_values(net, draw(2, 1, 8, 8))),
        ("gradient of the convnet", *with_values(lab.grad(lambda x: lab.sum(net(x) ** 2)), draw(2, 1, 8, 8))),
        ("transformer block", *with_values(block, draw(2, 5, 8))),
        ("gradient of the block", *with_values(lab.grad(lambda x: lab.sum(block(x) ** 2)), draw(2, 5, 8))),
        ("LSTM", *with_values(lstm, draw(5, 2, 3))),
        ("gradient of the LSTM", *with_values(lab.grad(lambda x: lab.sum(lstm(x)[1])), draw(5, 2, 3))),
        ("train step", *with_values(lambda *ps: train_step(list(ps), draw(6, 8), labels()), *ps)),
        ("loops and branches", *with_values(collatz, draw(3) ** 2 + F(1))),
    ]


def after_passes() -> list[Case]:
    """The train step after each pass, fusion among them."""
    _, graph, xs = models()[-2]
    return [(f"train step after {s.name or 'nothing'}", s.graph, xs) for s in stages(graph)]
