"""What learners type in lesson 01: wrong answers with the words that tell them, and right ones in several forms."""

from __future__ import annotations

import textwrap

from lab.teach import EXERCISES, SOLUTIONS


def layer(expression: str) -> str:
    return f"def linear_backward(ct, x, w):\n    return {expression}\n"


def run(body: str) -> str:
    """A run whose inner function has another body."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    last = "    return [value_of(node) for node in fetches]\n"
    return f"def run_graph(fetches, feed):\n    values = dict(feed)\n    def value_of(node):\n{inner}\n{last}"


def other(name: str, *changes: tuple[str, str]) -> str:
    """The solution with something else in some places."""
    text = SOLUTIONS[name]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


BY_HAND = """
def run_graph(fetches, feed):
    values, todo = dict(feed), list(fetches)
    while todo:
        node = todo[-1]
        missing = [parent for parent in node.inputs if parent not in values]
        if node not in values and missing:
            todo.extend(missing)
            continue
        if node not in values:
            values[node] = node.op(*map(values.get, node.inputs))
        todo.pop()
    return tuple(values[node] for node in fetches)
"""

CACHED = """
import functools
def run_graph(fetches, feed):
    @functools.cache
    def value_of(node):
        return feed[node] if node in feed else node.op(*map(value_of, node.inputs))
    return list(map(value_of, fetches))
"""

BY_VJP = """
def one_step(loss):
    @lab.jit
    def step(weights, rate, *batch):
        value, back = lab.vjp(lambda weights: loss(weights, *batch), weights)
        (slopes,) = back(1.0)
        return [value, tuple(w - s * rate for w, s in zip(weights, slopes))]
    return step
"""

ON_A_TAPE = """
def one_step(loss):
    def step(weights, rate, *batch):
        inputs = [lab.tensor(w, requires_grad=True) for w in weights]
        value = loss(inputs, *batch)
        value.backward()
        return value.detach(), [w.detach() - rate * w.grad for w in inputs]
    return step
"""

EVERY_TIME = """
def one_step(loss):
    def step(weights, rate, *batch):
        value, slopes = lab.jit(lab.value_and_grad(loss))(weights, *batch)
        return value, [w - rate * s for w, s in zip(weights, slopes)]
    return step
"""

COMPILED = 'return lab.jit(step, executor="compiled")'
KEPT = "kept.update({k: v for k, v in feed.items() if k not in kept}); values = kept"
NEW = "slopes)]\n        return loss(new, *batch), new\n"

WRONG = [
    ("linear_backward", EXERCISES["linear_backward"].stub, "a gradient for each example"),
    ("linear_backward", layer("ct @ w.T, x.T @ ct, ct.mean(axis=0)"), "gets the mean over the batch"),
    ("linear_backward", layer("ct @ w.T, x.T @ ct / len(ct), ct.sum(axis=0) / len(ct)"), "taken again"),
    ("linear_backward", layer("ct @ w.T, x.T @ ct, ct.sum(axis=-1)"), "summed over the outputs"),
    ("linear_backward", layer("ct @ w.T, x.T @ ct, np.sum(ct)"), "all biases get one number"),
    ("linear_backward", layer("ct @ w.T, x.T @ ct, np.ones((1, len(ct))) @ ct"), "a row of a matrix"),
    ("linear_backward", layer("ct @ w, x.T @ ct, ct.sum(axis=0)"), "the weight is not transposed"),
    ("linear_backward", layer("ct @ w.T, (x.T @ ct).T, ct.sum(axis=0)"), "lies on its side"),
    ("linear_backward", layer("w.sum(axis=1) + 0 * x, x.T @ (1 + 0 * ct), (1 + 0 * ct).sum(axis=0)"), "ct is left out"),
    ("linear_backward", layer("x.T @ ct, ct @ w.T, ct.sum(axis=0)"), "have changed places"),
    ("linear_backward", layer("ct @ w.T, x.T @ ct"), "number of results is wrong"),
    ("linear_backward", layer("ct @ w.T, x.T @ ct, b"), "uses a name that does not exist"),
    ("linear_backward", "def linear_backward(ct, x, w):\n    ct @ w.T, x.T @ ct, ct.sum(axis=0)\n", "returned nothing"),
    ("run_graph", EXERCISES["run_graph"].stub, "computed each time that it is used"),
    ("run_graph", other("run_graph", ("(fetches, feed)", "(fetches, feed, kept={})"), ("values = dict(feed)", KEPT)),
     "kept from run to run"),
    ("run_graph", run("values = dict(feed)\ndef look(n):\n    if n not in values:\n        values[n] = "
                      "n.op(*map(look, n.inputs))\n    return values[n]\nreturn look(node)"), "each fetch begins anew"),
    ("run_graph", run("if not values.get(node):\n    values[node] = node.op(*map(value_of, node.inputs))\n"
                      "return values[node]"), "a zero is taken"),
    ("run_graph", run("key = node.inputs or node\nif key not in values:\n    values[key] = "
                      "node.op(*map(value_of, node.inputs))\nreturn values[key]"), "kept by operation"),
    ("run_graph", run("if node not in values:\n    values[node] = node.op(*map(value_of, reversed(node.inputs)))\n"
                      "return values[node]"), "turned round"),
    ("run_graph", other("run_graph", ("dict(feed)", "{n: v for n, v in feed.items() if not n.inputs}")),
     "only placeholders are fed"),
    ("run_graph", run("return node"), "numbers are not what comes back"),
    ("run_graph", other("run_graph", ("[value_of(node) for node in fetches]", "value_of(fetches[0])")),
     "one number comes back"),
    ("run_graph", run("return values[node]"), "KeyError"),
    ("run_graph", run("if node not in values:\n    values[node] = node.op(*node.inputs)\nreturn values[node]"),
     "numbers are not what comes back"),
    ("run_graph", other("run_graph", ("return values[node]", "values[node]")), "unsupported operand"),
    ("one_step", EXERCISES["one_step"].stub, "only the slopes are a graph"),
    ("one_step", other("one_step", (COMPILED, "return step")), "no graph is kept"),
    ("one_step", ON_A_TAPE, "no graph is kept"),
    ("one_step", EVERY_TIME, "no graph is kept"),
    ("one_step", other("one_step", ("w - rate", "w + rate")), "walks uphill"),
    ("one_step", other("one_step", ("rate * s", "s")), "the rate is left out"),
    ("one_step", other("one_step", ("[w - rate * s for", "[w for")), "stay as they are"),
    ("one_step", other("one_step", ("[w - rate * s for", "[s for")), "in place of the weights"),
    ("one_step", other("one_step", ("zip(weights, slopes)]", "zip(weights[:1], slopes)] + weights[1:]")),
     "only the first weight"),
    ("one_step", other("one_step", ("return value, [", "new = ["), ("slopes)]\n", NEW)), "that of the new weights"),
    ("one_step", other("one_step", ("return value,", "return loss(weights, *batch),")), "graph twice"),
    ("one_step", other("one_step", ("return value,", "return")), "the loss is left out"),
    ("one_step", other("one_step", (COMPILED, COMPILED[7:])), "one_step gave no function"),
    ("one_step", other("one_step", ("return value,", "return value.item(),")), "hint"),
]  # fmt: skip
"""(exercise, what is typed, what the check must say)"""

RIGHT = [
    ("linear_backward", layer("ct.dot(w.T), np.einsum('ni,no->io', x, ct), np.ones(len(ct)) @ ct")),
    ("linear_backward", layer("[ct @ w.transpose(), (ct.T @ x).T, sum(ct)]")),
    ("run_graph", BY_HAND),
    ("run_graph", CACHED),
    ("one_step", other("one_step", (', executor="compiled"', ""))),
    ("one_step", BY_VJP),
]
"""(exercise, what is typed)"""
