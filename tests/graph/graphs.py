"""The graphs that every test over graphs goes through: each sample of the op table, and its gradient."""

import numpy as np
from hypothesis import strategies as st

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


UNARY = ["negative", "exp", "tanh", "absolute", "square", "reciprocal"]
BINARY = ["add", "subtract", "multiply", "divide", "maximum"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan, 3.0]


@st.composite
def programs(draw):
    """Some lines, each an op of values that are there: (op, operands), an operand a number of a line or a constant."""
    lines: list[tuple[str, list]] = []
    for n in range(2, 2 + draw(st.integers(1, 14))):
        operand = st.one_of(st.integers(0, n - 1), st.sampled_from(SPECIAL))
        kind = draw(st.sampled_from(["unary", "binary", "binary", "binary", "transpose", "reshape", "matmul", "where"]))
        if kind == "unary":
            lines.append((draw(st.sampled_from(UNARY)), [draw(st.integers(0, n - 1))]))
        elif kind == "binary":
            lines.append((draw(st.sampled_from(BINARY)), [draw(st.integers(0, n - 1)), draw(operand)]))
        elif kind == "where":
            lines.append(("where", [draw(st.integers(0, n - 1)), draw(operand), draw(st.integers(0, n - 1))]))
        elif kind == "matmul":
            lines.append(("matmul", [draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1))]))
        else:
            lines.append((kind, [draw(st.integers(0, n - 1))]))
    return lines


def executed(lines, x, y):
    values = [x, y]
    for name, operands in lines:
        a, *rest = [values[o] if isinstance(o, int) else o for o in operands]
        if name == "where":
            values.append(lab.where(a > 0.0, *rest))
        elif name == "transpose":
            values.append(lab.transpose(a))
        elif name == "reshape":
            values.append(lab.reshape(lab.reshape(a, shape=(9,)), shape=(3, 3)))
        else:
            values.append(getattr(lab, name)(a, *rest))
    return values[-1], values[len(values) // 2]
