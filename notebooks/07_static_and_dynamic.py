# %% [markdown]
# # Static and dynamic: what does a graph keep of a program?
#
# Python decides while it runs. A graph is made first, and then runs without Python: it can be compiled, saved, sent
# away. Two ways lead from one to the other, by running a function and by reading it. What does each of them lose?
#
# *Working through takes 30 to 45 minutes. Running all cells takes about 20 seconds and 250 MB.*

# %%
import numpy as np

import lab
from lab.teach.tiny import Tape
from widgets import BuildView, CallsView, CaptureView, Lesson, RetraceView

lesson = Lesson("07")

# %% [markdown]
# ## A trace
#
# `lab.make_graph` runs a function once, on stand-ins that have a shape but no numbers, and writes down each operation.
# This one has a loop, an `if` and a product. How many equations will its graph have?

# %%
def powers(x, bias=True):
    total = x
    for _ in range(3):
        total = total * x
    if bias:
        total = total + 1.0
    return total


# %%
lesson.predict("equations", "in the graph of powers at 2.0", answer=lambda: n_equations)

# %%
traced_powers = lab.make_graph(powers)(2.0)
n_equations = len(traced_powers.equations)
traced_powers

# %%
lesson.reveal("equations")

# %% [markdown]
# Python went around its loop and took its `if`. Only what it did to x was written down: three products and a sum.
#
# ## What is burned in
#
# So all that is not an operation happens once, while tracing. Here the function also counts how often Python ran it,
# and uses a number from outside, which changes between the calls.

# %%
lesson.predict("the last call", "f(1.0) after rate became 5.0", answer=lambda: results[-1])

# %%
rate, runs = 2.0, []


def scaled(x):
    runs.append("once")
    return rate * x


f = lab.jit(scaled)
results = [f(1.0).item(), f(2.0).item()]
rate = 5.0
results.append(f(1.0).item())
{"results": results, "Python ran it": len(runs)}

# %%
lesson.reveal("the last call")

# %% [markdown]
# Nothing failed, and the number is old. A tensor from outside would have been an input of the graph; a number of Python
# is a constant in it.
#
# ## A branch on a shape
#
# The graph of three entries is used for two. What comes out for [3, 6], where Python would give [30, 60]?

# %%
lesson.predict(
    "two entries",
    "through the graph of three",
    answer=lambda: {"equal": "30 and 60", "wrong": "something else"}.get(two_entries, "an error"),
    choices=("30 and 60", "something else", "an error"),
)

# %%
def normed(x):
    if x.shape[0] > 2:
        return x / x.shape[0]
    return 10.0 * x


by_shape = lab.compare_captures(normed, np.array([3.0, 6.0, 9.0]), np.array([3.0, 6.0]))
two_entries = by_shape.traced[1].verdict
CaptureView(by_shape)

# %%
lesson.reveal("two entries")

# %% [markdown]
# The marks before the lines say who came by. The trace has the line of three entries, and the 3 in it.
#
# `lab.jit` is right all the same: it looks its graphs up by shape, and traces again for a new one. You write such a key
# below.
#
# ## A branch on a value
#
# A value is not in the key. So a stand-in that is asked for its value refuses.

# %%
def size(x):
    if x > 0.0:
        return 2.0 * x
    return 1.0 - x


with lesson.refusal() as why:
    lab.jit(size)(3.0)
why

# %% [markdown]
# ## A tracer of your own
#
# `Tape` is a tracer of a hundred lines or so. Its stand-ins carry the number of an example, and answer an `if` with it;
# but the tape notes what was asked.
#
# `tape.run(x)` repeats the operations for another x. `tape.holds(x)` tells whether x would have given the same answers.

# %%
tape = Tape(size, 3.0)
{
    "tape": str(tape).splitlines(),
    "run(-3.0)": tape.run(-3.0), "size(-3.0)": size(-3.0),
    "holds(-3.0)": tape.holds(-3.0),
}

# %% [markdown]
# The stub keeps one tape for all, so the first branch is burned in. Make it notice: use a tape that holds, and make a
# new one only where none does.

# %%
def traced(f):
    tapes = []

    def call(x):
        if not tapes:
            tapes.append(Tape(f, x))
        return tapes[0].run(x)

    return call


lesson.check(traced)

# %% [markdown]
# This is how `torch.compile` works: it calls the answers that must hold *guards*. It pays where there are few ways
# through a function. A loop that ends by values has one for each number of turns. How many tapes do 1 to 100 need?

# %%
def halved(x):
    while x > 1.0:
        x = x / 2.0
    return x


ways = {tuple(Tape(halved, float(n)).asked) for n in range(1, 101)}
len(ways)

# %% [markdown]
# ## Read, not run
#
# `lab.script` takes the other way: it reads the source. An `if` on a value becomes a `cond` with both branches, a
# `while` a loop in the graph. One graph for every number.
#
# From 6, Collatz's rule takes 8 steps to 1. How many from 27, by the graph that was read for 6?

# %%
lesson.predict("steps", "from 27 to 1, by the script", answer=lambda: steps_of_27)

# %%
def collatz(x):
    n = 0.0 * x
    while x > 1.0:
        if x - 2.0 * lab.floor(x / 2.0) > 0.0:
            x = 3.0 * x + 1.0
        else:
            x = x / 2.0
        n = n + 1.0
    return n


# %%
by_value = lab.compare_captures(collatz, 6.0, 27.0, 1.0)
steps_of_27 = float(by_value.scripted[1].result)
CaptureView(by_value)

# %%
lesson.reveal("steps")

# %% [markdown]
# The trace stopped at the `while`. The script has every line, also the ones that no input came by.
#
# Reading has a price, too: what no graph can say is refused, with its line, although Python would run it.

# %%
def remembered(x):
    seen = [2.0 * y for y in x]
    return sum(seen)


with lesson.refusal() as why_not:
    lab.script(remembered)
why_not

# %% [markdown]
# ## Say it yourself
#
# Between the two: trace, but say by `lab.cond` and `lab.while_loop` what shall stay open.
# `lab.while_loop(test, body, start)` hands a *carry* from turn to turn: here the pair (x, n).

# %%
def halvings(x):
    n = 0.0
    while x > 1.0:
        x, n = x / 2.0, n + 1.0
    return x, n


lesson.check(halvings)

# %%
def rest(x):
    return lab.while_loop(lambda y: y > 1.0, lambda y: y / 2.0, x)


numbers = lab.tensor([3.0, 10.0, 0.5])
{"rest": lab.jit(lab.vmap(rest))(numbers), "slope": lab.jit(lab.vmap(lab.grad(rest)))(numbers)}

# %% [markdown]
# A graph with a loop in it is a graph like any other: it differentiates, and `vmap` runs it for many at once, each as
# many turns as it needs.
#
# ## The key
#
# A jitted function looks up its graph by a key of the arguments. Too much in the key, and it traces again and again;
# too little, and it answers from a graph that is not for these.
#
# Arrays and numbers of Python go into the graph as inputs; it fixes their shapes and types. Texts and flags are decided
# while tracing.

# %%
def cache_key(args):
    return tuple(np.shape(a) for a in args)


lesson.check(cache_key)

# %% [markdown]
# Two epochs of 1,500 digits in batches of 64, jitted. The last batch of an epoch is smaller. How often is it traced?

# %%
lesson.predict("traces", "in two epochs of 24 batches", answer=lambda: n_traces)

# %%
rng = np.random.default_rng(0)
pixels, weights = rng.normal(size=(1500, 64)).astype("float32"), rng.normal(size=(64, 10)).astype("float32")


def layer(x, w):
    return lab.tanh(x @ w).mean()


jitted = lab.jit(layer)
with lab.record(kinds=[lab.events.Traced, lab.events.CacheHit]) as epochs:
    for start in [*range(0, 1500, 64)] * 2:
        jitted(pixels[start : start + 64], weights)
n_traces = len(jitted.misses)
RetraceView(epochs)

# %%
lesson.reveal("traces")

# %% [markdown]
# ## What it costs, what it saves
#
# The first call of a compiled function traces it, sends the graph through passes, and compiles loops (or finds them in
# a cache from earlier; the first of a session also loads LLVM). Before you run the cell: after how many calls has that
# paid?

# %%
def loss(w, x):
    return (lab.tanh(x @ w) ** 2).mean()


CallsView(lab.measure_calls(lab.value_and_grad(loss), *[(weights, pixels[:64])] * 12))

# %% [markdown]
# And if the graph is made in every step? Define by run does that: it records what runs, so any Python is allowed, in
# every step another. A trace for each step costs more; a graph that is kept costs nothing but its run.

# %%
BuildView(lab.measure_build(loss, weights, pixels[:64]))

# %% [markdown]
# ## Where this is used
#
# PyTorch and this lab define by run, and capture where it pays. `jax.jit` and `torch.compile` trace; `torch.jit.script`
# and TensorFlow's AutoGraph read the source.
#
# - A trace holds what one run did: numbers, shapes and branches of Python are burned in.
# - A script holds what the source says, and refuses what no graph can say.
# - A key, or guards, decide when a graph will do.

# %%
lesson
