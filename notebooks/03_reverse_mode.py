# %% [markdown]
# # Reverse mode: can forty lines find every gradient?
#
# PyTorch's engine fills thousands of files. Many articles show one of forty lines that gives the same gradients. You
# build it here in five steps, each with a check, and see where forty lines are not enough.
#
# *Working through takes 40 to 60 minutes. Running all cells takes about 15 seconds and 250 MB.*

# %%
import timeit

import numpy as np

import lab
from lab.teach.usual import Value as Usual
from widgets import GraphView, Lesson, Player

lesson = Lesson("03")

# %% [markdown]
# ## The question
#
# One function, which any engine can run: it needs only `+` and `*`, and uses **s** twice. The lab runs it first. Press
# **Step**: forward it draws what it keeps, then it walks back. When does it come to s?

# %%
def f(x, y):
    s = x + y
    return s + s * x


a, b = lab.tensor(2.0, requires_grad=True, name="x"), lab.tensor(3.0, requires_grad=True, name="y")
with lab.record(detail="value") as both_ways:
    z = f(a, b)
    z.backward()
Player(GraphView(both_ways))

# %% [markdown]
# ## Step 1: a value that remembers
#
# An engine has to keep that picture. So each value keeps its `parents`, and a `rule`: it takes `ct`, the value's
# gradient, and gives one **part** for each parent.
#
# The sum does it already. The product forgets. Run the check, then mend `__mul__`.

# %%
class Value:
    def __init__(self, data, parents=(), rule=lambda ct: ()):
        self.data, self.grad = data, 0.0
        self.parents, self.rule = parents, rule

    def __add__(self, other):
        return Value(self.data + other.data, (self, other), lambda ct: (ct, ct))

    def __mul__(self, other):
        return Value(self.data * other.data)


lesson.check(Value)

# %% [markdown]
# ## Every path, or every value?
#
# Slopes multiply along a path, and paths add up. So one could follow every path from the result down to x.
#
# Double x, double that, and so on, 15 times: 16 values.

# %%
lesson.predict("arrivals at x", "of a walk that follows every path through 15 doublings", answer=lambda: arrivals)

# %%
def doubled(x, n):
    for _ in range(n):
        x = x + x
    return x


def arrivals_at(leaf, value):
    return (value is leaf) + sum(arrivals_at(leaf, parent) for parent in value.parents)


start = Value(1.0)
arrivals = arrivals_at(start, doubled(start, 15))

# %%
lesson.reveal("arrivals at x")

# %% [markdown]
# ## Step 2: the order
#
# Every doubling doubles the paths, but adds one value. So an engine goes to each **value** once, when all its parts
# have arrived: after everything that uses it. The lab came to s, which is x + y, last of all.
#
# `backward_order(root)` lists everything that root depends on: root first, and every value **before its parents**.
# The stub writes down a value as soon as it finds it.

# %%
def backward_order(root):
    order = []

    def visit(value):
        if value not in order:
            order.append(value)
            for parent in value.parents:
                visit(parent)

    visit(root)
    return order


lesson.check(backward_order)

# %% [markdown]
# ## Step 3: the walk
#
# Begin with gradient 1 at the result. Go through the order, ask each rule, and hand its parts to the parents. The stub
# writes each part over what was there.

# %%
def walk(order):
    order[0].grad = 1.0
    for value in order:
        for parent, part in zip(value.parents, value.rule(value.grad)):
            parent.grad = part


lesson.check(walk)

# %% [markdown]
# Three steps are an engine. Run the same `f` on it: are the gradients those of the lab?

# %%
x, y = Value(2.0), Value(3.0)
walk(backward_order(f(x, y)))
{"yours": (x.grad, y.grad), "the lab's": (a.grad.item(), b.grad.item())}

# %% [markdown]
# ## What is wrong with it?
#
# `Usual` is this engine in one piece: your three steps, as they stand in many articles. First fault: call `backward`
# **twice** on z = x * y + x, where x = 2, y = 3. One walk gives x the gradient 4, so two should leave 8 in `x.grad`.

# %%
lesson.predict("x.grad", "of the usual engine after two walks", answer=lambda: after_two)

# %%
def walked_twice(kind, backward):
    x, y = kind(2.0), kind(3.0)
    z = x * y + x
    backward(z)
    backward(z)
    return x.grad


after_two = walked_twice(Usual, Usual.backward)

# %%
lesson.reveal("x.grad")

# %% [markdown]
# x * y still held the 1 of the first walk, so the second handed down 2. x and y may add up from walk to walk; values
# **in the middle** must not.
#
# Second fault: arrays. w has 3 numbers and is used for each of 4 rows. How many numbers has its gradient?

# %%
lesson.predict("numbers in w.grad", "for x * w with shapes (4, 3) and (3,)", answer=lambda: n_entries)

# %%
rows, w = Usual(np.ones((4, 3))), Usual(np.array([1.0, 2.0, 3.0]))
(rows * w).backward()
n_entries = w.grad.size
w.grad

# %%
lesson.reveal("numbers in w.grad")

# %% [markdown]
# A step along this gradient would turn w into 12 numbers, and nobody would say so.
#
# Third fault: a long computation, 10,000 sums in a row.

# %%
lesson.predict(
    "the long sum",
    "of 10,000 operations, walked back by the usual engine",
    answer=lambda: "an error" if found == "RecursionError" else "right" if found == 10_001 else "wrong",
    choices=("right", "wrong", "an error"),
)

# %%
def long_sum(kind, backward):
    x = total = kind(1.0)
    for _ in range(10_000):
        total = total + x
    try:
        backward(total)
    except RecursionError as error:
        return type(error).__name__
    return x.grad


found = long_sum(Usual, Usual.backward)

# %%
lesson.reveal("the long sum")

# %% [markdown]
# `visit` calls itself once for each operation, and Python allows about a thousand calls in one another.
#
# ## Step 4: what was copied is summed
#
# Broadcasting used w once for each row. Those are four paths, so w gets the **sum** of four parts. `unbroadcast` brings
# a gradient back to the shape that an array had.

# %%
def unbroadcast(ct, shape):
    while ct.ndim > len(shape):
        ct = ct[0]
    return ct


lesson.check(unbroadcast)

# %% [markdown]
# ## Step 5: again, and a long way
#
# Here is the walk in one piece. Mend both: let a second walk add the same again, and go down without calls, with a
# list of what is still to be done. Below the check the faults run again, on both engines: 8 and 10,001 are right.

# %%
def backward(root):
    order = {}

    def visit(value):
        if value not in order:
            for parent in value.parents:
                visit(parent)
            order[value] = True

    visit(root)
    root.grad = 1.0
    for value in reversed(order):
        for parent, part in zip(value.parents, value.rule(value.grad)):
            parent.grad = parent.grad + part


# %%
lesson.check(backward)

# %%
{
    "usual": (after_two, found),
    "yours": (walked_twice(Value, backward), long_sum(Value, backward)),
}

# %% [markdown]
# ## A network on your engine
#
# A network needs a few more operations. Each is one line with one rule. `operation` fits every part to its parent, so
# no rule has to think of shapes.

# %%
def operation(data, parents, rule):
    def fitted(ct):
        return [unbroadcast(np.asarray(part), p.data.shape) for p, part in zip(parents, rule(ct))]

    return Value(data, parents, fitted)


Value.__add__ = lambda a, b: operation(a.data + b.data, (a, b), lambda ct: (ct, ct))
Value.__sub__ = lambda a, b: operation(a.data - b.data, (a, b), lambda ct: (ct, -ct))
Value.__mul__ = lambda a, b: operation(a.data * b.data, (a, b), lambda ct: (ct * b.data, ct * a.data))
Value.__matmul__ = lambda a, b: operation(a.data @ b.data, (a, b), lambda ct: (ct @ b.data.T, a.data.T @ ct))
Value.relu = lambda a: operation(np.maximum(a.data, 0), (a,), lambda ct: (ct * (a.data > 0),))
Value.mean = lambda a: operation(a.data.mean(), (a,), lambda ct: (np.full(a.data.shape, ct / a.data.size),))

# %% [markdown]
# Real digits, 64 of them, and a network of 2,410 weights. It is written once, for any engine. Will both find the same
# gradients?

# %%
def network(pixels, targets, w1, b1, w2, b2):
    error = (pixels @ w1 + b1).relu() @ w2 + b2 - targets
    return (error * error).mean()


train, _ = lab.data.digits()
rng = np.random.default_rng(0)
weights = [rng.normal(size=shape) / 8 for shape in ((64, 32), (32,), (32, 10), (10,))]
arrays = [train.inputs[:64].astype(float), np.eye(10)[train.targets[:64]], *weights]

# %%
lesson.predict(
    "the gradients",
    "of your engine beside those of the lab",
    answer=lambda: "the same bits" if apart == 0 else "equal to 12 digits" if apart < 1e-12 else "different",
    choices=("the same bits", "equal to 12 digits", "different"),
)

# %%
def yours():
    leaves = [Value(array) for array in arrays]
    backward(network(*leaves))
    return [leaf.grad for leaf in leaves[2:]]


def the_labs():
    leaves = [lab.tensor(array, requires_grad=i > 1) for i, array in enumerate(arrays)]
    network(*leaves).backward()
    return [leaf.grad.numpy() for leaf in leaves[2:]]


apart = max(float(abs(a - b).max()) for a, b in zip(yours(), the_labs()))

# %%
lesson.reveal("the gradients")

# %% [markdown]
# And the time? One walk there and back, through this network and through 500 sums of single numbers. Above 1 yours
# takes longer than the lab's.

# %%
def sums(start, back):
    total = start
    for _ in range(500):
        total = total + start
    back(total)


def times_as_long(a, b):
    return round(min(timeit.repeat(a, number=1, repeat=30)) / min(timeit.repeat(b, number=1, repeat=30)), 2)


number = lab.tensor(1.0, requires_grad=True)
one_by_one = times_as_long(lambda: sums(Value(np.ones(())), backward), lambda: sums(number, lab.Tensor.backward))
{"network": times_as_long(yours, the_labs), "single numbers": one_by_one}

# %% [markdown]
# ## Where this is used
#
# On a small network forty lines can even be quicker: they do less. The lab's engine also notices arrays that changed
# since, frees what it kept while it walks, and differentiates its own rules. PyTorch's walk is yours, in C++.
#
# - A value keeps its parents and a rule: one part for each parent.
# - Everything is walked once, after all that use it; where paths meet, parts add up.
# - What was copied on the way forward is summed on the way back.

# %%
lesson
