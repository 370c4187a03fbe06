"""What learners type: wrong answers with the words that tell them, and right ones in several forms."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import Any

import numpy as np

import lab
from lab.parallel import Action, Recv, Send
from lab.teach import EXERCISES, SOLUTIONS
from lab.teach.tiny import Tape
from tests.teach import compiling, generations, micro_batches, sharding, threads


def typed(source: str, name: str) -> Any:
    """A function as if typed into a notebook: its module is __main__, and its globals are the notebook's."""
    scope: dict[str, Any] = {"__name__": "__main__", "np": np, "lab": lab, "Send": Send, "Recv": Recv, "Action": Action,
                             "Tape": Tape, "replace": replace}
    exec(compile(textwrap.dedent(source), "<cell>", "exec"), scope)
    return scope[name]


def multiply(body: str) -> str:
    return f"def multiply_rule(ct, x, y):\n    {body}\n"


def loop(*body: str, rounds: str = "range(n_steps)", before: str = "") -> str:
    inner = "".join(f"        {line}\n" for line in body)
    first = f"    {before}\n" if before else ""
    return f"def training_loop(loss, optimizer, n_steps):\n{first}    for _ in {rounds}:\n{inner}"


def first_plan(body: str) -> str:
    return f"def my_first_plan(rank, world_size, n_chunks):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"


def plan(body: str) -> str:
    return f"def my_all_reduce(rank, world_size, n_chunks):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"


def ring(
    first: str = "world_size - 1", second: str = "world_size - 1", mine: str = "rank - step",
    theirs: str = "rank - step - 1", then: str = "rank + 1 - step", thence: str = "rank - step", adds: str = "True",
    stores: str = "False", right: str = "(rank + 1) % world_size", left: str = "(rank - 1) % world_size",
) -> str:  # fmt: skip
    """The ring as the lesson leads to it, with one expression typed otherwise."""
    halves = [(first, mine, theirs, adds), (second, then, thence, stores)]
    lines = [f"right, left = {right}, {left}"]
    for rounds, send, recv, reduce in halves:
        lines.append(f"for step in range({rounds}):")
        lines.append(f"    mine, theirs = ({send}) % n_chunks, ({recv}) % n_chunks")
        lines.append(f"    yield Send(right, mine, mine + 1), Recv(left, theirs, theirs + 1, reduce={reduce})")
    return plan("\n".join(lines))


def order(body: str) -> str:
    return f"def my_schedule(rank, n_ranks, n_micro):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"


def one_f_one_b(warmup: str = "min(n_ranks - rank - 1, n_micro)", cool: str = "n_micro - warmup",
                pair: str = '"F", rank, warmup + m', back: str = '"B", rank, m') -> str:  # fmt: skip
    """1F1B as the lesson leads to it, with one expression typed otherwise."""
    return order(f"""
        warmup = {warmup}
        for m in range(warmup):
            yield Action("F", rank, m)
        for m in range(n_micro - warmup):
            yield Action({pair})
            yield Action({back})
        for m in range({cool}, n_micro):
            yield Action("B", rank, m)
    """)


def share(body: str) -> str:
    return f"def bubble(n_ranks, n_micro):\n    {body}\n"


def kind(*body: str, rest: str = "") -> str:
    """The class of lesson 03 with another product."""
    lines = textwrap.indent("\n".join(body), " " * 8)
    return SOLUTIONS["Value"].partition("    def __mul__")[0] + f"    def __mul__(self, other):\n{lines}\n{rest}"


def product(rule: str, parents: str = "(self, other)") -> str:
    return kind(f"return Value(self.data * other.data, {parents}, {rule})")


def on_arrays(body: str) -> str:
    return f"def unbroadcast(ct, shape):\n    {body}\n"


def weights(expression: str) -> str:
    return f"def my_init(n_in, n_out, rng):\n    return {expression}\n"


def dead(expression: str) -> str:
    return f"def dead_share(outputs):\n    return {expression}\n"


def difference(name: str, expression: str) -> str:
    return f"def {name}(f, x, h):\n    return {expression}\n"


def extrapolated(expression: str) -> str:
    return f"def richardson(whole, half):\n    return {expression}\n"


def softmax(expression: str) -> str:
    return f"def softmax_rule(p, ct):\n    return {expression}\n"


def dual(method: str, tangent: str) -> str:
    """The class of lesson 04 with another tangent of a product or a sine."""
    head, line, rest = SOLUTIONS["Dual"].partition(f"    def {method}")
    signature, _, after = rest.partition("return Dual(")
    value, _, after = after.partition(", ")
    return f"{head}{line}{signature}return Dual({value}, {tangent}){after[after.index(chr(10)) :]}"


def jacobian(body: str) -> str:
    rows = "[lab.jvp(f, (x,), (direction,))[1].numpy() for direction in np.eye(x.size)]"
    return f"def jacobian(f, x):\n    rows = {rows}\n    return {body}\n"


def hvp(body: str) -> str:
    return f"def hvp(f, x, v):\n    return {body}\n"


def evaluation(inner: str, last: str = "return total / len(batches)", before: str = "total = 0.0") -> str:
    return f"def mean_loss(loss_of, batches):\n    {before}\n    for batch in batches:\n        {inner}\n    {last}\n"


def most(expression: str) -> str:
    return f"def most_held(n, k):\n    return {expression}\n"


def checkpointed(forward: str = "return f(*args), args", backward: str = "return lab.vjp(f, *args)[1](ct)",
                 last: str = "return lab.custom_vjp(f).defvjp(forward, backward)") -> str:  # fmt: skip
    """The checkpoint of lesson 06 with another forward or backward."""
    return (f"def my_checkpoint(f):\n    def forward(*args):\n        {forward}\n"
            f"    def backward(args, ct):\n        {backward}\n    {last}\n")  # fmt: skip


def swapped(name: str, *pairs: tuple[str, str]) -> str:
    """The solution with some of its words typed otherwise."""
    source = SOLUTIONS[name]
    for old, new in pairs:
        assert old in source
        source = source.replace(old, new)
    return source


def taped(loop: str, last: str = "tapes.append(Tape(f, x)); return tapes[-1].run(x)", start: str = "[]") -> str:
    """The exercise `traced` of lesson 07 with other lines in its middle."""
    return (f"def traced(f):\n    tapes = {start}\n    def call(x):\n{textwrap.indent(loop, ' ' * 8)}\n"
            f"        {last}\n    return call\n")  # fmt: skip


def halved(expression: str) -> str:
    return f"def halvings(x):\n    return {expression}\n"


def turned(test: str = "s[0] > 1.0", body: str = "(s[0] / 2.0, s[1] + 1.0)", start: str = "(x, 0.0)") -> str:
    return halved(f"lab.while_loop(lambda s: {test}, lambda s: {body}, {start})")


def keyed(
    array: str = "(a.shape, a.dtype.str)", rest: str = "type(a) if type(a) in (int, float) else (type(a), a)"
) -> str:
    kind = f"{array} if isinstance(a, np.ndarray) else {rest}"
    return f"def cache_key(args):\n    return tuple({kind} for a in args)\n"


CLEARING = """\
    for value in order:
        if value.parents:
            value.grad = 0.0
"""

DEEP_ORDER = SOLUTIONS["backward"].partition(CLEARING)[0].partition("\n")[2]

AS_FOUND = """
def backward_order(root):
    order, todo = [], [root]
    while todo:
        value = todo.pop(0)
        if value not in order:
            order.append(value)
            todo += value.parents
    return order
"""

ZERO, BACK, STEP = "optimizer.zero_grad()", "loss().backward()", "optimizer.step()"

WRONG = [
    *generations.WRONG,
    *threads.WRONG,
    *sharding.WRONG,
    *micro_batches.WRONG,
    *compiling.WRONG,
    ("multiply_rule", multiply("return ct * x, ct * y"), "swapped"),
    ("multiply_rule", multiply("return y, x"), "ct is left out"),
    ("multiply_rule", multiply("return ct, ct"), "rule is that of addition"),
    ("multiply_rule", multiply("return ct + y, ct + x"), "added where it has to be multiplied"),
    ("multiply_rule", multiply("return ct * x * y, ct * x * y"), "the product itself"),
    ("multiply_rule", multiply("return ct * y"), "only one gradient"),
    ("multiply_rule", multiply("return -(ct * y), -(ct * x)"), "the sign is turned"),
    ("multiply_rule", multiply("return ct / y, ct / x"), "divides"),
    ("multiply_rule", multiply("ct * y, ct * x"), "It returned nothing"),
    ("multiply_rule", multiply("return ct * z, ct * x"), "name 'z' is not defined"),
    ("multiply_rule", "def multiply_rule(ct, x):\n    return ct, ct\n", "takes 2 positional arguments"),
    ("multiply_rule", multiply("return 'ct * y', 'ct * x'"), "gradient of x is wrong"),
    ("multiply_rule", multiply("return ct * y, ct * x, 0"), "number of results is wrong"),
    ("multiply_rule", multiply("return ct * y, float(np.sum(ct * x))"), "shape of the gradient of y is wrong"),
    ("multiply_rule", multiply("yield ct * y\n    yield ct * x"), "It has `yield`: it must `return`."),
    ("training_loop", loop(BACK, STEP), "never cleared"),
    ("training_loop", loop(BACK, STEP, before=ZERO), "never cleared"),
    ("training_loop", loop(BACK, ZERO, STEP), "step finds no gradient"),
    ("training_loop", loop(ZERO, BACK), "weights never move"),
    ("training_loop", loop(STEP, ZERO, BACK), "step finds no gradient"),
    ("training_loop", loop(ZERO, BACK, STEP, rounds="range(1, n_steps)"), "one step too few"),
    ("training_loop", loop(ZERO, BACK, STEP, "return"), "stops after the first step"),
    ("training_loop", loop(ZERO, BACK, STEP, rounds="[0]"), "exactly one step"),
    ("training_loop", loop(ZERO, BACK, BACK, STEP), "counts twice"),
    ("training_loop", loop(ZERO, BACK, STEP, STEP), "counts twice"),
    ("training_loop", loop(ZERO, "value.backward()", STEP, before="value = loss()"), "one graph is used for all"),
    ("training_loop", loop(ZERO, BACK, STEP, rounds="range(n_steps + 1)"), "one step too many"),
    ("training_loop", loop(ZERO, "loss.backward()", STEP), "has no attribute 'backward'"),
    # --- lesson 02
    ("forward_difference", difference("forward_difference", "f(x + h) - f(x)"), "not divided by the step"),
    ("forward_difference", difference("forward_difference", "(f(x) - f(x - h)) / h"), "looks back"),
    ("forward_difference", difference("forward_difference", "(f(x + h) - f(x - h)) / (2 * h)"), "both sides"),
    ("forward_difference", difference("forward_difference", "(f(x) - f(x + h)) / h"), "sign is turned"),
    ("forward_difference", difference("forward_difference", "(f(x + h) - f(x)) / (2 * h)"), "divides by 2 h"),
    ("forward_difference", difference("forward_difference", "(f(x + h) - f(x)) * h"), "multiplies by the step"),
    ("forward_difference", difference("forward_difference", "f(x + h) - f(x) / h"), "only f(x) is divided"),
    ("forward_difference", difference("forward_difference", "f(x + h) / h"), "is not taken away"),
    ("forward_difference", difference("forward_difference", "f(h) / h"), "function of the difference"),
    ("forward_difference", difference("forward_difference", "(f(x + 1e-7) - f(x)) / 1e-7"), "step of its own"),
    ("forward_difference", difference("forward_difference", "(f(x + h) - f(x)) / x"), "the slope is wrong"),
    ("forward_difference", difference("forward_difference", "f(x + h), f(x)"), "the slope is wrong"),
    ("central_difference", difference("central_difference", "(f(x + h) - f(x)) / h"), "forward only"),
    ("central_difference", difference("central_difference", "(f(x) - f(x - h)) / h"), "looks back only"),
    ("central_difference", difference("central_difference", "(f(x + h) - f(x - h)) / h"), "it divides by h"),
    ("central_difference", difference("central_difference", "(f(x + h) - f(x - h)) / 2 * h"), "multiplies by h"),
    ("central_difference", difference("central_difference", "f(x + h) - f(x - h)"), "not divided by the step"),
    ("central_difference", difference("central_difference", "(f(x - h) - f(x + h)) / (2 * h)"), "sign is turned"),
    ("central_difference", difference("central_difference", "(f(x + h) + f(x - h)) / (2 * h)"), "are added"),
    ("central_difference", difference("central_difference", "(f(x + h / 2) - f(x - h / 2)) / h"), "half as far"),
    ("central_difference", difference("central_difference", "(f(x + 2*h) - f(x - 2*h)) / (4*h)"), "twice as far"),
    ("central_difference", difference("central_difference", "(f(x + 1e-5) - f(x - 1e-5)) / 2e-5"), "step of its own"),
    ("central_difference", difference("central_difference", "(f(x + h) - f(x - h)) / (2 * k)"),
     "name 'k' is not defined"),
    ("richardson", extrapolated("(whole + half) / 2"), "mean of the two"),
    ("richardson", extrapolated("half"), "as it was"),
    ("richardson", extrapolated("2 * half - whole"), "half as large"),
    ("richardson", extrapolated("(4 * whole - half) / 3"), "are swapped"),
    ("richardson", extrapolated("4 * half - whole"), "not divided by 3"),
    ("richardson", extrapolated("(4 * half - whole) / 4"), "divided by 4"),
    ("richardson", extrapolated("half - (half - whole) / 3"), "wrong way"),
    ("richardson", extrapolated("(4 * half + whole) / 5"), "weights are added"),
    ("richardson", extrapolated("half - whole"), "distance of the two"),
    ("richardson", extrapolated("(16 * half - whole) / 15"), "a sixteenth"),
    ("richardson", extrapolated("(4 * half - whole) // 3"), "the slope is wrong"),
    ("softmax_rule", softmax("ct * p * (1 - p)"), "on its own x alone"),
    ("softmax_rule", softmax("p * (ct - ct * p)"), "on its own x alone"),
    ("softmax_rule", softmax("p * ct"), "the sum is forgotten"),
    ("softmax_rule", softmax("p * (ct - ct.sum())"), "without its weights"),
    ("softmax_rule", softmax("p * (ct - np.mean(ct * p))"), "mean is taken for the sum"),
    ("softmax_rule", softmax("ct - ct @ p"), "last factor p is left out"),
    ("softmax_rule", softmax("p * (ct @ p - ct)"), "sign is turned"),
    ("softmax_rule", softmax("p * (1 - p)"), "ct is left out"),
    ("softmax_rule", softmax("-p * (ct @ p)"), "diagonal is forgotten"),
    ("softmax_rule", softmax("np.diag(p) - np.outer(p, p)"), "whole Jacobian"),
    ("softmax_rule", softmax("(ct * p).sum()"), "the shape of the gradient of x is wrong"),
    # --- lesson 03
    ("Value", kind("return Value(self.data * other.data)"), "forgets what it was made of"),
    ("Value", kind("out = Value(self.data * other.data)", "out.rule = lambda ct: (ct * other.data, ct * self.data)",
                   "return out"), "forgets what it was made of"),
    ("Value", product("lambda ct: (ct * self.data, ct * other.data)"), "two parts are swapped"),
    ("Value", product("lambda ct: (ct * other.data, ct * self.data)", "(other, self)"), "two parts are swapped"),
    ("Value", product("lambda ct: (other.data, self.data)"), "ct is left out"),
    ("Value", product("lambda ct: (ct, ct)"), "rule is that of addition"),
    ("Value", product("(other.data, self.data)"), "worked out at once"),
    ("Value", product("lambda ct: ct * other.data"), "only one part"),
    ("Value", product("lambda ct: None"), "one part for each parent"),
    ("Value", product("lambda ct: (ct * other.data, ct * self.data)", "(self.data, other.data)"), "numbers are kept"),
    ("Value", kind("Value(self.data * other.data, (self, other))"), "made, but not returned"),
    ("Value", kind("self.grad += other.data", "other.grad += self.data", "return Value(self.data * other.data, (self, "
                   "other), lambda ct: (ct * other.data, ct * self.data))"), "on the way forward"),
    ("Value", kind("return self.data * other.data"), "'float' object has no attribute 'parents'"),
    ("Value", swapped("Value", ("self.data + other.data", "self.data - other.data")), "the value is wrong"),
    ("backward_order", EXERCISES["backward_order"].stub, "written down when it is found"),
    ("backward_order", swapped("backward_order", ("[::-1]", "")), "that is the way forward"),
    ("backward_order", swapped("backward_order", ("if value not in order:", "if True:")), "once for each path"),
    ("backward_order", swapped("backward_order", ("order[::-1]", "[v for v in order[::-1] if v.parents]")),
     "without parents are left out"),
    ("backward_order", swapped("backward_order", ("order[::-1]", "order[-2::-1]")), "root itself is left out"),
    ("backward_order", "def backward_order(root):\n    return [root, *set(root.parents)]\n", "own parents are there"),
    ("backward_order", swapped("backward_order", ("return order[::-1]", "order.reverse()")), "it returned nothing"),
    ("backward_order", swapped("backward_order", ("append(value)", "append(value.data)")), "is not one of the values"),
    ("backward_order", AS_FOUND, "written down when it is found"),
    ("backward_order", "def backward_order(root):\n    while root.parents:\n        pass\n", "did not come to an end"),
    ("backward_order", "def backward_order(root):\n    return root\n", "it gave no list"),
    ("walk", EXERCISES["walk"].stub, "written over what came from another path"),
    ("walk", swapped("walk", ("order[0].grad = 1.0", "pass")), "nothing arrives"),
    ("walk", swapped("walk", ("parent.grad = parent.grad + part", "value.grad += part")), "nothing arrives"),
    ("walk", swapped("walk", ("= 1.0", "= order[0].data")), "starts with the number of the result"),
    ("walk", swapped("walk", ("rule(value.grad)", "rule(1.0)")), "asked with ct = 1"),
    ("walk", swapped("walk", ("in order", "in reversed(order)")), "order is turned round"),
    ("walk", swapped("walk", ("parent.grad + part", "(parent.grad or 1.0) * part")), "are multiplied"),
    ("walk", swapped("walk", ("value.rule(value.grad)):", "value.rule(value.grad)[:1]):")), "only the first parent"),
    ("walk", swapped("walk", ("value.rule(value.grad)", "value.rule")), "'function' object is not iterable"),
    ("walk", swapped("walk", ("order[0].grad", "root.grad")), "name 'root' is not defined"),
    ("unbroadcast", EXERCISES["unbroadcast"].stub, "only the first entry is kept"),
    ("unbroadcast", on_arrays("return ct"), "nothing is summed"),
    ("unbroadcast", swapped("unbroadcast", (".sum(", ".mean(")), "takes the mean"),
    ("unbroadcast", swapped("unbroadcast", ("if n == 1", "if n == 0")), "axes of length 1 are forgotten"),
    ("unbroadcast", swapped("unbroadcast", (", keepdims=True", "")), "axes of length 1 are summed away"),
    ("unbroadcast", swapped("unbroadcast", ("axis=0", "axis=-1")), "last axes are summed"),
    ("unbroadcast", on_arrays("return ct.reshape(shape)"), "cannot reshape array"),
    ("unbroadcast", on_arrays("return np.resize(ct, shape)"), "the rest is lost"),
    ("unbroadcast", on_arrays("return ct.sum(axis=0)"), "whatever the shapes are"),
    ("unbroadcast", on_arrays("return ct.sum()"), "shape of the gradient is wrong"),
    ("unbroadcast", on_arrays("return ct if ct.shape == shape else np.full(shape, ct.sum())"), "the sum of all"),
    ("unbroadcast", on_arrays("ct.sum(axis=0)"), "It returned nothing"),
    ("backward", EXERCISES["backward"].stub, "still hold what the last walk left there"),
    ("backward", swapped("backward", (CLEARING, "")), "still hold what the last walk left there"),
    ("backward", swapped("backward", ("        if value.parents:\n            value.grad", "        value.grad")),
     "x and y are cleared, too"),
    ("backward", swapped("backward", ("if value.parents", "if not value.parents")), "in the middle are not"),
    ("backward", swapped("backward", ("reversed(order)", "order")),
     "order is not turned round"),
    ("backward", swapped("backward", ("parent.grad + part", "part")), "written over what came from another path"),
    ("backward", swapped("backward", ("root.grad = 1.0", "pass")), "does not start with 1"),
    ("backward", EXERCISES["backward"].stub.replace("    root.grad = 1.0\n", CLEARING + "    root.grad = 1.0\n"),
     "goes down by calling itself"),
    ("backward", swapped("backward", (DEEP_ORDER, "    order = order_of(root)\n"), ("reversed(order)", "order"))
     + AS_FOUND.replace("backward_order", "order_of"), "which they are found"),
    ("backward", SOLUTIONS["backward"] + "    for value in order:\n        value.parents = ()\n"
     "        value.rule = lambda ct: ()\n", "finds nothing"),
    ("backward", swapped("backward", ("todo.pop()", "todo[-1]")), "did not come to an end"),
    # --- lesson 04
    ("Dual", dual("__mul__", "self.tangent * other.tangent"), "of a product are multiplied"),
    ("Dual", dual("__mul__", "self.tangent * other.value"), "only x moves"),
    ("Dual", dual("__mul__", "self.tangent * self.value + other.tangent * other.value"), "wrong factors are paired"),
    ("Dual", dual("__mul__", "self.tangent * other.value - self.value * other.tangent"), "are subtracted"),
    ("Dual", dual("__mul__", "self.tangent + other.tangent"), "of a product are added"),
    ("Dual", dual("sin", "self.tangent"), "passes its tangent on unchanged"),
    ("Dual", dual("sin", "np.cos(self.value)"), "left out of the sine"),
    ("Dual", dual("sin", "np.sin(self.tangent)"), "sine of the tangent"),
    ("Dual", dual("sin", "np.cos(self.tangent)"), "cosine of the tangent"),
    ("Dual", dual("sin", "-np.cos(self.value) * self.tangent"), "sign of the cosine"),
    ("Dual", dual("sin", "0.0").replace("return Dual(np.sin(self.value), 0.0)", "np.sin(self.value)"), "gave no Dual"),
    ("jacobian", jacobian("np.array(rows)"), "columns and rows are swapped"),
    ("jacobian", jacobian("lab.jvp(f, (x,), (np.ones_like(x),))[1]"), "all inputs move at once"),
    ("jacobian", jacobian("np.stack([f(x).numpy() for _ in x], axis=1)"), "the values are stacked"),
    ("jacobian", jacobian("np.concatenate(rows)"), "end to end"),
    ("jacobian", jacobian("np.stack(rows[:1], axis=1)"), "only the first input moves"),
    ("jacobian", jacobian("np.stack(rows, axis=1) * x"), "the direction is x itself"),
    ("jacobian", jacobian("np.stack(rows, axis=1)[::-1]"), "turned round, too"),
    ("jacobian", jacobian("np.sum(rows, axis=0)"), "all inputs move at once"),
    ("jacobian", jacobian("-np.stack(rows, axis=1)"), "entry [0, 0] of the Jacobian is wrong"),
    ("jacobian", jacobian("np.stack(row, axis=1)"), "name 'row' is not defined"),
    ("hvp", hvp("lab.hessian(f)(x) @ v"), "it makes the whole matrix"),
    ("hvp", hvp("lab.grad(f)(x)"), "it is the gradient"),
    ("hvp", hvp("lab.jvp(f, (x,), (v,))[1]"), "slope of f along v"),
    ("hvp", hvp("lab.grad(f)(x) * v"), "gradient is multiplied by v"),
    ("hvp", hvp("lab.jvp(lab.grad(f), (v,), (x,))[1]"), "x and v are swapped"),
    ("hvp", hvp("lab.jvp(lab.grad(f), (x,), (np.ones_like(x),))[1]"), "v is left out"),
    ("hvp", hvp("lab.jvp(lab.grad(f), (x,), (x * v,))[1]"), "v times x is the direction"),
    ("hvp", hvp("(v * lab.jvp(lab.grad(f), (x,), (v,))[1]).sum()"), "v times H times v"),
    ("hvp", hvp("lab.jvp(lab.grad(f), (x,), (v,))[0]"), "it is the gradient"),
    ("hvp", hvp("lab.jvp(lab.grad(f), (x,), (v,))"), "the product is wrong"),
    # --- lesson 05
    ("my_init", EXERCISES["my_init"].stub, "same for every width"),
    ("my_init", weights("rng.normal(size=(n_in, n_out))"), "same for every width"),
    ("my_init", weights("rng.normal(size=(n_in, n_out)) / n_in * 2"), "variance is taken for the spread"),
    ("my_init", weights("rng.normal(size=(n_in, n_out)) / n_in**0.5"), "half that relu takes away"),
    ("my_init", weights("rng.uniform(-1, 1, (n_in, n_out)) * (3 / n_in)**0.5"), "half that relu takes away"),
    ("my_init", weights("rng.uniform(-1, 1, (n_in, n_out)) * (2 / n_in)**0.5"), "bound of a uniform draw"),
    ("my_init", weights("rng.uniform(0, 1, (n_in, n_out))"), "no weight is negative"),
    ("my_init", weights("np.zeros((n_in, n_out))"), "all weights are 0"),
    ("my_init", weights("np.ones((n_in, n_out)) / n_in"), "copies of one"),
    ("my_init", weights("rng.normal(size=(n_in, 1)) * np.ones(n_out)"), "copies of one"),
    ("my_init", weights("rng.normal(size=n_in)"), "the weights have another shape"),
    ("my_init", weights("(8 / n_in)**0.5 * rng.normal(size=(n_in, n_out))"), "the signal explodes"),
    ("my_init", weights("random.normal(size=(n_in, n_out))"), "name 'random' is not defined"),
    ("dead_share", dead("(outputs == 0).mean()"), "share of zeros"),
    ("dead_share", dead("(outputs == 0).any(axis=0).mean()"), "rests once"),
    ("dead_share", dead("(outputs == 0).all(axis=1).mean()"), "examples are counted"),
    ("dead_share", dead("(outputs == 0).all(axis=0).sum()"), "dead units are counted"),
    ("dead_share", dead("(outputs > 0).any(axis=0).mean()"), "those that live"),
    ("dead_share", dead("100 * (outputs == 0).all(axis=0).mean()"), "percentage"),
    ("dead_share", dead("(outputs[0] == 0).mean()"), "only the first example"),
    ("dead_share", dead("(outputs == 0).all(axis=0).sum() / len(outputs)"), "number of examples"),
    ("dead_share", dead("(outputs == 0).all(axis=0)"), "the shape of the share of dead units is wrong"),
    ("dead_share", dead("(outputs < 0).all(axis=0).mean()"), "share of dead units is wrong"),
    # --- lesson 10
    ("my_first_plan", first_plan("if rank: yield Send(0, 0, n_chunks)\nelse: yield tuple(Recv(p, 0, n_chunks, True)"
                                 " for p in range(1, world_size))"), "does not come back"),
    ("my_first_plan", SOLUTIONS["my_first_plan"].replace("reduce=True", "reduce=False"), "stored where it has to be"),
    ("my_first_plan", SOLUTIONS["my_first_plan"].replace("reduce=False", "reduce=True"), "added once more"),
    ("my_first_plan", SOLUTIONS["my_first_plan"].replace("range(1,", "range("), "sends to itself"),
    ("my_first_plan", SOLUTIONS["my_first_plan"].replace("world_size)", "world_size - 1)"), "left out"),
    ("my_first_plan", SOLUTIONS["my_first_plan"].replace("n_chunks)", "1)").replace("n_chunks,", "1,")
        .replace("world_size, 1)", "world_size, n_chunks)"), "never travels"),
    ("my_first_plan", first_plan("yield Send(rank + 1, 0, n_chunks)\nyield Recv(rank - 1, 0, n_chunks, True)"),
     "not there"),
    ("my_first_plan", first_plan("for p in range(1, world_size):\n    if rank == 0: yield Recv(p, 0, n_chunks, True)"),
     "one side of the hops"),
    ("my_first_plan", first_plan("for p in range(world_size):\n    if p != rank: yield Recv(p, 0, n_chunks, True)\n"
                                 "for p in range(world_size):\n    if p != rank: yield Send(p, 0, n_chunks)"),
     "waits before it sends"),
    ("my_first_plan", first_plan("return Send(0, 0, n_chunks)"), "a step is made of Send and Recv"),
    ("my_first_plan", first_plan("pass"), "gave no steps"),
    ("my_first_plan", first_plan("yield 0, n_chunks"), "a step is made of Send and Recv"),
    ("my_first_plan", first_plan("if rank: yield Send(0, 0, n_chunks + 1)"), "which do not exist"),
    ("my_first_plan", first_plan("while True: yield ()"), "does not come to an end"),
    ("my_first_plan", first_plan("yield Send(1 / rank, 0, n_chunks)"), "division by zero (on rank 0)"),
    ("my_all_reduce", ring(right="rank + 1", left="rank - 1"), "modulo world_size"),
    ("my_all_reduce", ring().replace(" % n_chunks", ""), "runs out of its range"),
    ("my_all_reduce", ring().replace("mine + 1", "(mine + 1) % n_chunks"), "runs out of its range"),
    ("my_all_reduce", ring(second="0"), "all-gather is missing"),
    ("my_all_reduce", ring(adds="False"), "stored where it has to be added"),
    ("my_all_reduce", ring(stores="True"), "added once more"),
    ("my_all_reduce", ring(theirs="rank - step", thence="rank + 1 - step"), "one off"),
    ("my_all_reduce", ring(thence="rank - step - 1"), "one off"),
    ("my_all_reduce", ring(left="(rank + 1) % world_size"), "wrong direction"),
    ("my_all_reduce", ring(first="world_size", then="rank - step", thence="rank - step - 1"), "one step too many"),
    ("my_all_reduce", ring(second="world_size"), "a chunk travels for nothing"),
    ("my_all_reduce", ring(second="world_size - 2"), "a step too early"),
    ("my_all_reduce", ring(first="world_size - 2", second="world_size - 2"), "a step too early"),
    ("my_all_reduce", ring(mine="rank", theirs="rank - 1"), "same chunk is sent in every step"),
    ("my_all_reduce", ring(then="rank - step", thence="rank - step - 1"), "begins with a chunk that is not finished"),
    ("my_all_reduce", SOLUTIONS["my_first_plan"].replace("my_first_plan", "my_all_reduce"), "through one rank"),
    ("my_all_reduce", plan("right, left = (rank + 1) % world_size, (rank - 1) % world_size\n"
                           "for step in range(world_size - 1):\n"
                           "    yield Send(right, 0, n_chunks), Recv(left, 0, n_chunks, True)"), "whole buffers"),
    ("my_all_reduce", ring().replace("), Recv", ")\n        yield Recv").replace("    yield Send", "    yield Send")
        .replace("yield Send(right, mine, mine + 1)\n        yield Recv(left, theirs, theirs + 1, reduce=True)",
                 "yield Recv(left, theirs, theirs + 1, reduce=True)\n        yield Send(right, mine, mine + 1)"),
     "waits before it sends"),
    ("my_all_reduce", ring().replace(", Recv(left, theirs, theirs + 1, reduce=True)", "")
        .replace(", Recv(left, theirs, theirs + 1, reduce=False)", ""), "one side of the hops"),
    ("my_all_reduce", ring(right="(rank + 1) / world_size"), "with a number that is not whole"),
    ("my_all_reduce", plan("if rank == 2: raise ValueError('no')\nyield ()"), "no (on rank 2)"),
    ("my_all_reduce", plan("while rank: pass\nyield ()"), "did not come to an end"),
    ("my_first_plan", first_plan("if rank == 0: yield Recv(1, 0, n_chunks)"), "reduce=True or reduce=False?"),
    ("my_first_plan", first_plan("yield Send(1, 0)"), "a Send does not say all: stop is missing"),
    ("my_all_reduce", plan("yield Send((rank + 1) % world_size, 0, 1)"),
     "not yet. On 4 ranks: rank 0, step 0: sent chunk 0 to rank 1, which never takes it."),
    # --- lesson 06
    ("mean_loss", evaluation("total = total + loss_of(batch)"), "every graph behind it"),
    ("mean_loss", evaluation("losses.append(loss_of(batch))", "return lab.stack(losses).mean()", "losses = []"),
     "every graph behind it"),
    ("mean_loss", evaluation("losses.append(loss_of(batch))", "return sum(one.item() for one in losses) / len(losses)",
                             "losses = []"), "only at the end"),
    ("mean_loss", evaluation("total = total + loss_of(batch)", "return total.detach() / len(batches)"),
     "only at the end"),
    ("mean_loss", evaluation("loss = loss_of(batch); loss.backward(); total += loss.item()"), "leaves a gradient"),
    ("mean_loss", evaluation("total += loss_of(batch).item()", "return total"), "not divided"),
    ("mean_loss", evaluation("total = loss_of(batch).item()", "return total"), "only the last batch counts"),
    ("mean_loss", evaluation("total = loss_of(batch).item()"), "and then divided"),
    ("mean_loss", evaluation("total += loss_of(batch).item()", "total / len(batches)"), "It returned nothing"),
    ("mean_loss", evaluation("total = (total + loss_of(batch).item()) / len(batches)", "return total"),
     "divided in every round"),
    ("mean_loss", evaluation("total += loss_of(batch).item()").replace("in batches:", "in batches[1:]:"),
     "first batch is left out"),
    ("mean_loss", evaluation("total.append(loss_of(batch).item())", "return total", "total = []"), "all the losses"),
    ("mean_loss", evaluation("total += loss_of(batch)['loss']"), "an index does not fit"),
    ("mean_loss", evaluation("loss_of(batch)", "return 'small'"), "the mean is wrong"),
    ("my_checkpoint", SOLUTIONS["my_checkpoint"].replace("return f(*args), args", "out, back = lab.vjp(f, *args)\n"
        "        return out, back").replace("def backward(args, ct):\n        out, back = lab.vjp(f, *args)",
                                           "def backward(back, ct):"), "all that f saved is kept"),
    ("my_checkpoint", "def my_checkpoint(f):\n    return f\n", "all that f saved is kept"),
    ("my_checkpoint", checkpointed("out, back = lab.vjp(f, *args); return out, (args, back)",
                                   "return lab.vjp(f, *args[0])[1](ct)"), "kept all the same"),
    ("my_checkpoint", checkpointed("lab.vjp(f, *args); return f(*args), args"), "more than once in the forward"),
    ("my_checkpoint", checkpointed(backward="return [lab.vjp(f, *args)[1](ct)[i] for i in range(len(args))]"),
     "again for each argument"),
    ("my_checkpoint", checkpointed("out = f(*args); return out, [out] * len(args)"), "in place of the arguments"),
    ("my_checkpoint", checkpointed(backward="return lab.vjp(f, *args)[1](lab.tensor(np.ones(ct.shape)))"),
     "ct is left out"),
    ("my_checkpoint", checkpointed(backward="return [ct] * len(args)"), "passed on as it came"),
    ("my_checkpoint", checkpointed("out, back = lab.vjp(f, *args); return out, back(np.ones(out.shape))",
                                   "return [slope * ct for slope in args]"), "slopes are taken in the forward"),
    ("my_checkpoint", checkpointed(
        backward="return [s * ct for s in lab.vjp(f, *args)[1](np.ones(ct.shape))]"), "multiplied behind the walk"),
    ("my_checkpoint", checkpointed(last="return lab.no_grad()(f)"), "nothing is recorded"),
    ("my_checkpoint", checkpointed(last="return forward"), "what comes out has no gradient"),
    ("my_checkpoint", checkpointed(last="lab.custom_vjp(f).defvjp(forward, backward)"), "gave no function"),
    ("my_checkpoint", checkpointed(last="return lab.custom_vjp(f)"), "has no rule yet"),
    ("my_checkpoint", checkpointed("return f(*args)"), "(the result, what bwd needs)"),
    ("my_checkpoint", checkpointed(backward="return lab.vjp(f, *args)[1](ct)[0]"), "bwd of"),
    ("most_held", most("1 + n"), "nothing is forgotten"),
    ("most_held", most("n"), "multiplied"),
    ("most_held", most("k - 1 + n // k"), "x is left out"),
    ("most_held", most("n / k"), "inputs of the pieces are left out"),
    ("most_held", most("n // k + 1"), "only one input is kept"),
    ("most_held", most("k"), "the piece that runs is left out"),
    ("most_held", most("k + n // k + 1"), "counted twice"),
    ("most_held", most("n + k"), "run again at once"),
    ("most_held", most("max(k, n // k)"), "larger of both"),
    ("most_held", most("2 * n ** 0.5"), "least over all k"),
    ("most_held", most("n - k"), "taken away"),
    ("most_held", most("'few'"), "the number of arrays is no number"),
    ("most_held", "def most_held(n, k):\n    k + n // k\n", "It returned nothing"),
    # --- lesson 07
    ("traced", taped("if not tapes: tapes.append(Tape(f, x))", "return tapes[0].run(x)"), "is burned in"),
    ("traced", taped("tape = Tape(f, x)", "return tape.run(x)"), "traced in every call"),
    ("traced", taped("if not (tapes and tapes[-1].holds(x)): tapes.append(Tape(f, x))", "return tapes[-1].run(x)"),
     "only the newest tape"),
    ("traced", taped("if tapes and tapes[0].holds(x): return tapes[0].run(x)"), "only the first tape"),
    ("traced", taped("if x not in tapes: tapes[x] = Tape(f, x)", "return tapes[x].run(x)", "{}"), "a tape of its own"),
    ("traced", taped("for tape in tapes:\n    if not tape.asked or not tape.holds(x):\n        return tape.run(x)"),
     "the truths do not hold"),
    ("traced", taped("for tape in tapes:\n    if tape.holds(x):\n        return tape"), "the result 2 is wrong"),
    ("traced", taped("for tape in tapes:\n    if tape.holds(x):\n        tape.run(x)"), "is wrong"),
    ("traced", taped("for tape in tapes:\n    if tape.holds(x): return tape.run(x)", "tapes.append(Tape(f, x))"),
     "is wrong"),
    ("traced", taped("if not any(tape.holds(x) for tape in tapes): tapes.append(Tape(f, x)); return Tape(f, x).run(x)",
                     "return next(tape for tape in tapes if tape.holds(x)).run(x)"), "is made twice"),
    ("traced", "def traced(f):\n    Tape(f, 1.0)\n", "gave no function"),
    ("traced", "def traced(f):\n    return f\n", "traced in every call"),
    ("halvings", EXERCISES["halvings"].stub, "Python decides"),
    ("halvings", turned("s[0] >= 1.0"), "for 1 itself"),
    ("halvings", turned(body="(s[0] / 2.0, s[1])"), "turns are not counted"),
    ("halvings", turned(start="(x, 1.0)"), "begins at 1"),
    ("halvings", halved("lab.while_loop(lambda x: x > 1.0, lambda x: x / 2.0, x), 1.0"), "set, not carried"),
    ("halvings", halved("lab.cond(x > 1.0, lambda x: (x / 2.0, 1.0 + 0 * x), lambda x: (x, 0 * x), x)"), "not a loop"),
    ("halvings", halved("lab.fori_loop(0, 2, lambda i, s: (s[0] / 2.0, s[1] + 1.0), (x, 0.0))"), "turns is fixed"),
    ("halvings", turned().replace("(x, 0.0))", "(x, 0.0))[::-1]"), "changed places"),
    ("halvings", halved("lab.while_loop(lambda x: x > 1.0, lambda x: x / 2.0, x)"), "two numbers should come out"),
    ("halvings", turned(body="s[0] / 2.0"), "given:"),
    ("halvings", turned(body="(s[0] / 3.0, s[1] + 1.0)"), "the rest is wrong"),
    ("cache_key", keyed("np.shape(a)", "np.shape(a)"), "only shapes count"),
    ("cache_key", keyed("type(a)", "type(a)"), "only types count"),
    ("cache_key", keyed("(a.ndim, a.dtype.str)"), "number of axes"),
    ("cache_key", keyed("(a.size, a.dtype.str)"), "number of entries"),
    ("cache_key", keyed("(a.shape, a.dtype.str, a.tobytes())"), "numbers of arrays count"),
    ("cache_key", keyed(rest="(type(a), a)"), "value of a number"),
    ("cache_key", keyed(rest="type(a)"), "by their type only"),
    ("cache_key", keyed("a.shape"), "dtypes are forgotten"),
    ("cache_key", keyed(rest="type(a) if isinstance(a, (int, float)) else a"), "True counts as a number"),
    ("cache_key", "def cache_key(args):\n    return [np.shape(a) for a in args]\n", "cannot look that key up"),
    ("cache_key", "def cache_key(args):\n    return args\n", "cannot look that key up"),
    ("cache_key", "def cache_key(args):\n    return len(args)\n", "only the number of arguments"),
    ("cache_key", "def cache_key(args):\n    (tuple(np.shape(a) for a in args))\n", "number of arguments"),
    # --- lesson 15
    ("bubble", share("return 'a lot'"), "the share of time is no number"),
    ("bubble", share("return n_ranks / n_micro"), "ranks over pieces"),
    ("bubble", share("return (n_ranks - 1) / n_micro"), "compared with the work"),
    ("bubble", share("return n_ranks / (n_micro + n_ranks)"), "one wait too many"),
    ("bubble", share("return (n_ranks - 1) / (n_micro + n_ranks)"), "a piece too long"),
    ("bubble", share("return n_micro / (n_micro + n_ranks - 1)"), "share of work"),
    ("bubble", share("return 100 * (n_ranks - 1) / (n_micro + n_ranks - 1)"), "percentage"),
    ("bubble", share("return (n_micro - 1) / (n_micro + n_ranks - 1)"), "changed places"),
    ("bubble", share("return 1 - 1 / n_ranks"), "naive pipeline"),
    ("bubble", share("return (n_ranks - 1) // (n_micro + n_ranks - 1)"), "share of time is wrong"),
    ("bubble", share("(n_ranks - 1) / (n_micro + n_ranks - 1)"), "It returned nothing"),
    ("bubble", share("return (n_ranks - 1) / (n_micro - n_ranks + 3)"), "share of time is wrong"),
    ("my_schedule", order("for m in range(n_micro): yield Action('F', rank, m)\n"
                          "for m in reversed(range(n_micro)): yield Action('B', rank, m)"), "GPipe"),
    ("my_schedule", order("for m in range(n_micro):\n    yield Action('F', rank, m)\n    yield Action('B', rank, m)"),
     "one micro-batch at a time"),
    ("my_schedule", order("for m in range(n_micro):\n    yield Action('B', rank, m)\n    yield Action('F', rank, m)"),
     "before its own forward"),
    ("my_schedule", one_f_one_b(pair='"B", rank, m', back='"F", rank, warmup + m'), "before its own forward"),
    ("my_schedule", one_f_one_b(warmup="min(n_ranks - rank, n_micro)"), "one too long"),
    ("my_schedule", one_f_one_b(warmup="min(max(n_ranks - rank - 2, 0), n_micro)"), "one too short"),
    ("my_schedule", one_f_one_b(warmup="min(rank, n_micro)"), "warm-up grows"),
    ("my_schedule", one_f_one_b(warmup="min(n_ranks - 1, n_micro)"), "warm up equally"),
    ("my_schedule", one_f_one_b(cool="n_micro"), "no cool-down"),
    ("my_schedule", one_f_one_b(cool="n_micro - warmup - 1"), "goes through twice"),
    ("my_schedule", one_f_one_b().replace("range(warmup)", "range(1, warmup)"), "left out"),
    ("my_schedule", one_f_one_b(pair='"F", 0, warmup + m', back='"B", 0, m'), "stage of another"),
    ("my_schedule", one_f_one_b().replace(", m)", ", m + 1)").replace("+ m)", "+ m + 1)"), "counted from 1"),
    ("my_schedule", one_f_one_b(warmup="0 if rank == 0 else n_micro"), "wait for each other"),
    ("my_schedule", order("for m in range(n_micro):\n    yield 'F', rank, m"), "a schedule is made of actions"),
    ("my_schedule", order("while True: yield Action('F', rank, 0)"), "does not come to an end"),
    ("my_schedule", one_f_one_b(warmup="n_ranks - rank - 1"), "no more micro-batches"),
]  # fmt: skip
"""(exercise, what is typed, words of the answer)"""

RECURSIVE = """
def training_loop(loss, optimizer, n_steps):
    if n_steps > 0:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        training_loop(loss, optimizer, n_steps - 1)
"""
DIRECT = """
def my_first_plan(rank, world_size, n_chunks):
    others = [peer for peer in range(world_size) if peer != rank]
    yield [Send(peer, 0, n_chunks) for peer in others] + [Recv(peer, 0, n_chunks, True) for peer in others]
"""
DOUBLING = """
def my_first_plan(rank, world_size, n_chunks):
    distance = 1
    while distance < world_size:
        yield Send(rank ^ distance, 0, n_chunks), Recv(rank ^ distance, 0, n_chunks, reduce=True)
        distance *= 2
"""
TREE = """
def my_first_plan(rank, world_size, n_chunks):
    distances = [d for d in (1, 2, 4, 8) if d < world_size]
    for up, order in ((True, distances), (False, distances[::-1])):
        for d in order:
            if rank % (2 * d) == d:
                yield Send(rank - d, 0, n_chunks) if up else Recv(rank - d, 0, n_chunks, reduce=False)
            elif rank % (2 * d) == 0:
                yield Recv(rank + d, 0, n_chunks, reduce=True) if up else Send(rank + d, 0, n_chunks)
"""
HALVING = """
def my_all_reduce(rank, world_size, n_chunks):
    start, stop, distance, ranges = 0, n_chunks, world_size // 2, []
    while distance:
        middle = (start + stop) // 2
        keep, give = ((start, middle), (middle, stop))[::-1 if rank & distance else 1]
        yield Send(rank ^ distance, *give), Recv(rank ^ distance, *keep, reduce=True)
        ranges.append((rank ^ distance, keep, give))
        (start, stop), distance = keep, distance // 2
    for peer, kept, given in reversed(ranges):
        yield Send(peer, *kept), Recv(peer, *given, reduce=False)
"""
BOTH_WAYS = """
def my_all_reduce(rank, world_size, n_chunks):
    steps = []
    for half in (0, 1):
        for step in range(world_size - 1):
            mine = (rank + step - half) % n_chunks
            theirs = (mine + 1) % n_chunks
            steps.append((Send((rank - 1) % world_size, mine, mine + 1),
                          Recv((rank + 1) % world_size, theirs, theirs + 1, half == 0)))
    return steps
"""
BY_NEED = """
def my_schedule(rank, n_ranks, n_micro, chunks_per_rank=1):
    most, done, order = n_ranks - rank, [0, 0], []
    while done[1] < n_micro:
        forward = done[0] < n_micro and done[0] - done[1] < most
        order.append(Action("F" if forward else "B", rank, done[not forward]))
        done[not forward] += 1
    return order
"""

PARTS = """
class Value:
    __slots__ = ("data", "grad", "parents", "rule")
    def __init__(self, data, parents=(), rule=lambda ct: ()):
        self.data, self.grad, self.parents, self.rule = data, 0.0, parents, rule
    @property
    def number(self): return self.data
    @staticmethod
    def made(data, pairs): return Value(data, [p for p, _ in pairs], lambda ct: [ct * slope for _, slope in pairs])
    def __add__(self, other): return self.made(self.number + other.number, [(self, 1.0), (other, 1.0)])
    def __mul__(self, other): return self.made(self.number * other.number, [(other, self.data), (self, other.data)])
"""
BY_NEED_OF_USERS = """
def backward_order(root):
    users, todo = {root: 0}, [root]
    while todo:
        for parent in todo.pop().parents:
            if parent not in users:
                users[parent] = 0
                todo.append(parent)
            users[parent] += 1
    todo = [root]
    while todo:
        value = todo.pop()
        yield value
        for parent in value.parents:
            users[parent] -= 1
            if not users[parent]:
                todo.append(parent)
"""
IN_A_DICT = """
def backward(root):
    order = list(dict.fromkeys(order_of(root)))
    gradients = {root: 1.0}
    for value in order:
        ct = gradients.pop(value)
        if not value.parents:
            value.grad = value.grad + ct
        for parent, part in zip(value.parents, value.rule(ct)):
            gradients[parent] = gradients.get(parent, 0.0) + part
"""
UNRECORDED = """
def mean_loss(loss_of, batches):
    with lab.no_grad():
        return lab.stack([loss_of(batch) for batch in batches]).mean()
"""
ON_A_TAPE = """
def my_checkpoint(f):
    @lab.custom_vjp
    def piece(*args): return f(*args)
    def backward(args, ct):
        inputs = [lab.tensor(a.numpy(), requires_grad=True) for a in args]
        f(*inputs).backward(ct)
        return [a.grad for a in inputs]
    piece.defvjp(lambda *args: (f(*args), args), backward)
    return piece
"""

RIGHT = [
    *SOLUTIONS.items(),
    *generations.RIGHT,
    *threads.RIGHT,
    *sharding.RIGHT,
    *micro_batches.RIGHT,
    *compiling.RIGHT,
    ("forward_difference", difference("forward_difference", "f(x + h) / h - f(x) / h")),
    ("central_difference", difference("central_difference", "((f(x + h) - f(x)) / h + (f(x) - f(x - h)) / h) / 2")),
    ("richardson", extrapolated("half + (half - whole) / 3")),
    ("Dual", dual("__mul__", "other.value * self.tangent + other.tangent * self.value")),
    ("jacobian", jacobian("np.array(rows).T")),
    ("jacobian", jacobian("lab.jacrev(f)(x)")),
    ("hvp", hvp("lab.hvp(f, (x,), (v,))")),
    ("hvp", hvp("lab.grad(lambda x: (lab.grad(f)(x) * v).sum())(x)")),
    ("softmax_rule", softmax("ct @ (np.diag(p) - np.outer(p, p))")),
    ("softmax_rule", softmax("np.array([p[i] * (ct[i] - ct @ p) for i in range(len(p))])")),
    ("my_init", weights("rng.uniform(-1, 1, (n_in, n_out)) * (6 / n_in) ** 0.5")),
    ("my_init", "from lab.nn.init import kaiming\n" + weights("kaiming(n_in, n_out, rng)")),
    ("dead_share", dead("1 - np.count_nonzero(outputs.max(axis=0)) / outputs.shape[1]")),
    ("mean_loss", evaluation("total += float(loss_of(batch).detach())")),
    ("mean_loss", evaluation("loss = loss_of(batch); total += loss.numpy()")),
    ("mean_loss", UNRECORDED),
    ("my_checkpoint", "def my_checkpoint(f): return lab.checkpoint(f)\n"),
    ("my_checkpoint", ON_A_TAPE),
    ("most_held", most("k + n / k")),
    ("traced", taped("for tape in tapes:\n    if tape.holds(x): break\nelse:\n    tape = Tape(f, x)\n"
                     "    tapes.insert(0, tape)", "return tape.run(x)")),
    ("halvings", halved("(x / 2.0 ** (n := lab.maximum(lab.ceil(lab.log2(x)), 0.0)), n)")),
    ("cache_key", keyed("(a.shape, str(a.dtype))", "(type(a), a if isinstance(a, (str, bool)) else None)")),
    ("cache_key", keyed("str((a.shape, a.dtype))", "str((type(a), a if isinstance(a, (str, bool)) else ''))")),
    ("Value", PARTS),
    ("backward_order", BY_NEED_OF_USERS),
    ("backward_order", swapped("backward_order", ("order[::-1]", "reversed(order)"))),
    ("walk", swapped("walk", ("parent.grad = parent.grad + part", "parent.grad += part"))),
    ("unbroadcast", on_arrays("extra = tuple(range(ct.ndim - len(shape)))\n    ones = tuple(i - len(shape) for i, n in"
                              " enumerate(shape) if n == 1)\n    return ct.sum(axis=extra + ones).reshape(shape)")),
    ("backward", BY_NEED_OF_USERS.replace("backward_order", "order_of") + IN_A_DICT),
    ("training_loop", RECURSIVE),
    ("multiply_rule", multiply("return [y * ct, x * ct]")),
    ("multiply_rule", multiply("return np.stack([np.multiply(y, ct), np.multiply(x, ct)])")),
    ("multiply_rule", "def multiply_rule(ct, x, y):\n    other = lambda a: ct * a\n    return other(y), other(x)\n"),
    ("training_loop", loop(BACK, STEP, ZERO)),
    ("my_first_plan", DIRECT),
    ("my_first_plan", DOUBLING),
    ("my_first_plan", TREE),
    ("my_first_plan", SOLUTIONS["my_all_reduce"].replace("my_all_reduce", "my_first_plan")),
    ("my_all_reduce", HALVING),
    ("my_all_reduce", BOTH_WAYS),
    ("my_all_reduce", "from lab.parallel import COLLECTIVES\n" + plan("yield from COLLECTIVES['all_reduce', 'ring']"
                                                                     "(rank, world_size, n_chunks)")),
    ("my_schedule", BY_NEED),
    ("bubble", "from fractions import Fraction\n" + share("return Fraction(n_ranks - 1, n_micro + n_ranks - 1)")),
    ("bubble", "from decimal import Decimal\n" + share("return Decimal(n_ranks - 1) / (n_micro + n_ranks - 1)")),
    ("bubble", share("return np.float32((n_ranks - 1) / (n_micro + n_ranks - 1))")),
    ("bubble", "import lab\n" + share("return lab.tensor(n_ranks - 1.0) / (n_micro + n_ranks - 1)")),
    ("bubble", share("p, m = n_ranks, n_micro\n    return 1 - m / (m + p - 1)")),
]  # fmt: skip
"""(exercise, what is typed)"""
