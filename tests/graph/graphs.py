"""The graphs that every test over graphs goes through: each sample of the op table, and its gradient."""

import numpy as np

import lab
from lab.graph import Graph
from lab.ops import PRIMITIVES

CASES = [(op.name, i) for op in PRIMITIVES.values() for i in range(len(op.samples)) if not op.collective]
IDS = [f"{name}-{i}" for name, i in CASES]


def of_sample(name: str, i: int) -> tuple[Graph, list]:
    """The graph of an op on its sample, and values for its inputs."""
    op = PRIMITIVES[name]
    sample = op.samples[i]
    xs = list(sample.draw())
    graph = lab.make_graph(lambda *xs: op(*xs, **sample.params))(*xs)
    return graph, [*xs, *(c.value for c in graph.captured)]


def of_gradient(name: str, i: int) -> tuple[Graph, list] | None:
    """The graph of the gradient of a weighted sum of it, by every operand that has one; None where none has."""
    op = PRIMITIVES[name]
    sample = op.samples[i]
    xs = list(sample.draw())
    kinds = sample.kinds * len(xs) if len(sample.kinds) == 1 else sample.kinds
    by = [k for k in range(len(xs)) if kinds[k] in "fp" and op.rule(k)]
    out = np.asarray(op.forward(*xs, **{**op.defaults, **{n: f() for n, f in op.fixed.items()}, **sample.params}))
    if not by or out.dtype.kind != "f":
        return None
    weights = np.linspace(0.5, 1.5, out.size).reshape(out.shape)

    def loss(*xs):
        return lab.sum(op(*xs, **sample.params) * weights)

    graph = lab.make_graph(lab.grad(loss, tuple(by)))(*xs)
    return graph, [*xs, *(c.value for c in graph.captured)]
