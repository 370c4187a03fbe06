# %% [markdown]
# # Four generations: what does a framework do for you?
#
# One network, one step of training, written four times: as people wrote it in 2013, in 2015, in 2017 and today. All
# four give the same numbers. Who finds the gradient, when is there a graph, and where does an error show up?
#
# *Working through takes 30 to 50 minutes. Running all cells takes about 15 seconds (30 the first time) and 280 MB.*

# %%
import time
from statistics import median

import numpy as np
from IPython.display import display

import lab
from widgets import GraphView, Lesson, Lines, PassesView

lesson = Lesson("01")

# %% [markdown]
# ## The step
#
# Real digits in batches of 256, a network of 64, 32 and 10 values in a row, softmax and cross-entropy, and plain SGD:
# each weight minus rate times slope. All four begin with these weights.

# %%
train, _ = lab.data.digits()
batches = [(train.inputs[i : i + 256], train.targets[i : i + 256]) for i in range(0, 1280, 256)]
rng = np.random.default_rng(0)
shapes = {"w1": (64, 32), "b1": (32,), "w2": (32, 10), "b2": (10,)}
start = [(rng.normal(size=shape) / 8).astype("float32") for shape in shapes.values()]
RATE = 0.5

# %%
lesson.predict(
    "the fastest",
    "of the four, once each has done its first step",
    answer=lambda: fastest,
    choices=("by hand", "define, then run", "eager", "traced"),
)

# %% [markdown]
# ## First: everything by hand
#
# **Caffe** (2013) had layers. Each had a forward and a backward, and people derived the second on paper.
#
# A layer makes `x @ w + b` of a batch x. Back comes `ct`, the gradient of that result; wanted are those of x, w and b.
# The stub runs, and a network with it learns. Is it right?

# %%
def linear_backward(ct, x, w):
    return ct @ w.T, x.T @ ct, ct


lesson.check(linear_backward)

# %% [markdown]
# Here it stands in its layer, which keeps its x until backward. Beside it the two others; the last divides by the
# size of the batch, so no other does.

# %%
class Linear:
    def __init__(self, w, b):
        self.w, self.b = w, b

    def forward(self, x):
        self.x = x
        return x @ self.w + self.b

    def backward(self, ct):
        ct, self.w_grad, self.b_grad = linear_backward(ct, self.x, self.w)
        return ct


# %%
class Relu:
    def forward(self, x):
        self.on = x > 0
        return x * self.on

    def backward(self, ct):
        return ct * self.on


# %%
class SoftmaxLoss:
    def forward(self, scores, labels):
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        self.shares, self.wanted = e / e.sum(axis=1, keepdims=True), np.eye(10, dtype="f4")[labels]
        return -np.log((self.shares * self.wanted).sum(axis=1)).mean()

    def backward(self):
        return (self.shares - self.wanted) / len(self.shares)


# %%
def there_and_back(layers, x, t):
    *inner, last = layers
    for layer in inner:
        x = layer.forward(x)
    loss, ct = last.forward(x, t), last.backward()
    for layer in reversed(inner):
        ct = layer.backward(ct)
    return loss


def layers_of(weights):
    w1, b1, w2, b2 = weights
    return [Linear(w1, b1), Relu(), Linear(w2, b2), SoftmaxLoss()]


# %%
def begin_by_hand():
    first, _, second, _ = layers = layers_of(start)

    def step(x, t):
        loss = there_and_back(layers, x, t)
        for layer in first, second:
            layer.w = layer.w - RATE * layer.w_grad
            layer.b = layer.b - RATE * layer.b_grad
        return float(loss)

    return step


# %% [markdown]
# Who notices a mistake on paper? Only a second way to the same number: change each of the 2,410 weights a little and
# look at the loss. Right is about 1e-10; what is larger by far is wrong.

# %%
some = train.inputs[:16].astype(float), train.targets[:16]
doubles = [w.astype(float) for w in start]
there_and_back(layers := layers_of(doubles), *some)
by_hand = [slope for layer in layers[:3:2] for slope in (layer.w_grad, layer.b_grad)]
slopes = lab.numeric_gradient(lambda weights: there_and_back(layers_of(weights), *some), doubles)
{name: f"{np.abs(hand - slope).max():.0e}" for name, hand, slope in zip(shapes, by_hand, slopes)}

# %% [markdown]
# ## Second: define, then run
#
# **Theano** (2007) and **TensorFlow** (2015) let you write down the forward only. Nothing is computed: a
# **placeholder** stands for numbers that come later, a **variable** for numbers that stay. From what was written the
# framework finds the gradients, and writes them down below.

# %%
def loss_of(weights, x, t):
    w1, b1, w2, b2 = weights
    return lab.cross_entropy(lab.relu(x @ w1 + b1) @ w2 + b2, t)


with lab.Graph() as sheet:
    x, t = lab.placeholder((256, 64), name="x"), lab.placeholder(256, "int64", name="t")
    variables = [lab.variable(w, name=name) for name, w in zip(shapes, start)]
    loss = loss_of(variables, x, t)
    learn = [lab.assign(w, w - RATE * s) for w, s in zip(variables, lab.gradients(loss, variables))]
sheet

# %% [markdown]
# The first six equations are yours, down to `cross_entropy`; the others the framework wrote. Shapes are known, so a
# wrong one is refused in the line that writes it. Numbers are not.
#
# A **session** runs what is fetched. Label 7 shall be a 10, which is no digit. When does the error come, and what does
# it name?

# %%
lesson.predict(
    "the label",
    "a 10 among labels from 0 to 9",
    answer=lambda: "in the run, naming the line that wrote it" if why.error.__notes__ else "in the run, naming nothing",
    choices=("while the graph is written", "in the run, naming nothing", "in the run, naming the line that wrote it"),
)

# %%
labels = batches[0][1].copy()
labels[7] = 10
with lesson.refusal() as why:
    lab.Session(sheet).run(loss, feed={x: batches[0][0], t: labels})
why

# %%
lesson.reveal("the label")

# %% [markdown]
# An error on Tuesday, in a line that ran on Monday; a debugger stops in the session, where all operations look alike.
#
# ## Build one
#
# Such a framework is a class and a function. A node keeps its operation and its inputs; a placeholder has none.
# `run_graph` gives a list with the number of each fetch. The stub computes s in `s * s` twice, and so all below it. In
# one run every node shall be computed **once**.

# %%
class Node:
    def __init__(self, op=None, *inputs):
        self.op, self.inputs = op, inputs

    def __add__(self, other):
        return Node(lambda a, b: a + b, self, other)

    def __sub__(self, other):
        return Node(lambda a, b: a - b, self, other)

    def __mul__(self, other):
        return Node(lambda a, b: a * b, self, other)


# %%
def run_graph(fetches, feed):
    def value_of(node):
        if node in feed:
            return feed[node]
        return node.op(*[value_of(parent) for parent in node.inputs])

    return [value_of(node) for node in fetches]


lesson.check(run_graph)

# %% [markdown]
# ## Third: define by run
#
# **Chainer** (2015) and **PyTorch** (2017) compute each line at once, and write down meanwhile what ran: the graph is
# a record. `print`, `if` and `breakpoint()` work anywhere in `loss_of`, since everything in it is a number.

# %%
def begin_eager():
    sgd = lab.optim.SGD([lab.tensor(w, requires_grad=True) for w in start], RATE)

    def step(x, t):
        sgd.zero_grad()
        loss = loss_of(sgd.parameters, x, t)
        loss.backward()
        sgd.step()
        return loss.item()

    return step


with lab.record() as seen:
    begin_eager()(*batches[0])
GraphView(seen, direction="down")

# %% [markdown]
# Click a box: it tells the line that ran, and the rule that led back. After backward the graph is gone, and the next
# step builds it again: the price of the third generation.
#
# ## Fourth: trace, then transform
#
# **JAX** (2018) and torch.compile (2023) take both. You write what could run at once. At its first call the function
# is run with **tracers** in place of arrays; the graph that they leave, slopes and all, is compiled and kept.

# %%
lesson.predict("Python's runs", "of the body of a jitted function, in 25 calls", answer=lambda: n_runs)

# %%
def counted(weights, x, t):
    runs.append("once more")
    return loss_of(weights, x, t)


runs = []
jitted = lab.jit(lab.value_and_grad(counted))
for batch in batches * 5:
    jitted(start, *batch)
n_runs = len(runs)
jitted

# %%
lesson.reveal("Python's runs")

# %% [markdown]
# What Python does in it, it does while tracing: a `print` speaks once, and shows a tracer.
#
# And an `if`? `careful` pulls the weights to zero as long as the loss is above 1, as it is in the first call. It runs
# eagerly, and then jitted: what does it do there?

# %%
lesson.predict(
    "an if",
    "on the loss, in a jitted function",
    answer=lambda: "it is refused" if no.error else "it decides in every call",
    choices=("it decides in every call", "the first call decides for all", "it is refused"),
)

# %%
def careful(weights, x, t):
    loss = loss_of(weights, x, t)
    if loss > 1.0:
        loss = loss + 1e-3 * sum((w * w).sum() for w in weights)
    return loss


weights = [lab.tensor(w) for w in start]
eagerly = careful(weights, *batches[0])
with lesson.refusal() as no:
    lab.jit(careful)(weights, *batches[0])
no

# %%
lesson.reveal("an if")

# %% [markdown]
# Nor could a placeholder decide: the graph is made before the loss is known. The branch itself has to be a part of
# it, as `lab.cond`.
#
# Why put up with that? A graph that is known as a whole can be **rewritten**. Loss and slopes go through the compiler,
# pass by pass; point at a dot to read what it did. In **fusion** chains of operations become one loop each, so that an
# array is read once. Below the picture stands what runs then: open a loop.

# %%
found = lab.measure_passes(lab.value_and_grad(loss_of), start, *batches[0])
display(PassesView(found))
found.compiled

# %% [markdown]
# ## Make it one step
#
# The stub compiles loss and slopes; Python makes the update, eight operations in each step. Let **all** of it be one
# graph.

# %%
def one_step(loss):
    slopes_of = lab.jit(lab.value_and_grad(loss), executor="compiled")

    def step(weights, rate, *batch):
        value, slopes = slopes_of(weights, *batch)
        return value, [w - rate * s for w, s in zip(weights, slopes)]

    return step


lesson.check(one_step)

# %% [markdown]
# ## Side by side
#
# Ten times through the batches, each step by all four in turn. They add in different orders, so they agree to five
# digits: one curve is to be seen. And by hand? With a right backward its curve is the same. With the stub's it ends
# even **lower**: each place in the batch got a bias of its own, and learns its labels by heart.

# %%
def begin_session():
    session = lab.Session(sheet)
    return lambda images, labels: session.run([loss, *learn], feed={x: images, t: labels})[0].item()


def begin_traced():
    weights, traced = start, one_step(loss_of)

    def step(x, t):
        nonlocal weights
        loss, weights = traced(weights, RATE, x, t)
        return loss.item()

    return step


# %%
ways = [begin_by_hand, begin_session, begin_eager, begin_traced]
steps = dict(zip(("by hand", "define, then run", "eager", "traced"), [begin() for begin in ways]))
losses, times = {name: [] for name in steps}, {name: [] for name in steps}
for batch in batches * 10:
    for name, step in steps.items():
        began = time.perf_counter()
        losses[name].append(step(*batch))
        times[name].append(time.perf_counter() - began)
Lines("step", "loss", **losses)

# %%
apart = {name: float(np.abs(np.subtract(curve, losses["eager"])).max()) for name, curve in losses.items()}
assert max(apart["define, then run"], apart["traced"]) < 1e-5, "traced went another way: is one_step right?"
seconds = {name: median(spent[1:]) for name, spent in times.items()}
fastest = min(seconds, key=seconds.get)
{n: f"first {1e3 * times[n][0]:.1f} ms, then {1e6 * s:.0f} µs; apart {apart[n]:.0e}" for n, s in seconds.items()}

# %%
lesson.reveal("the fastest")

# %% [markdown]
# The session plays its graph operation by operation; the compiled step has fewer of them, and pays with its first
# call. Try `lab.Session(sheet, executor="compiled")`: a graph is a graph, however it was made. By hand is quick, as
# long as somebody derives it.
#
# | | gradient | graph | easy | hard |
# |---|---|---|---|---|
# | **Caffe** 2013 | on paper | none | every loop is yours | a new layer; mistakes are silent |
# | **Theano** 2007, **TensorFlow** 2015 | found | first | to rewrite, to save | `if`, `print`; errors come late |
# | **Chainer** 2015, **PyTorch** 2017 | found | each time anew | Python as it is | to see the whole |
# | **JAX** 2018, **torch.compile** 2023 | found | once, by a trace | nearly all of it | what it has not seen |
#
# They overlap: Theano found gradients years before Caffe's were derived on paper; TensorFlow runs eagerly since 2019.
#
# - A graph is known before (2), after (3), or after the first time (4).
# - Who computes at once can look and branch; who waits can rewrite.
# - All find the same gradient: check any by a second way.

# %%
lesson
