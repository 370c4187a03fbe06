# %% [markdown]
# # The compiler: what of a graph is waste?
#
# A graph that is known as a whole can be rewritten before it runs. A compiler is a row of small functions, each from a
# graph to a graph: a **pass**. You write two of them, and plan memory by hand.
#
# *Working through takes 35 to 55 minutes. Running all cells takes about 35 seconds and 350 MB.*

# %%
import time
from dataclasses import replace

import numpy as np
from IPython.display import display

import lab
from lab.graph.execute import run_arrays
from lab.graph.passes import PASSES, algebra, graph_pass
from widgets import Lesson, MemoryPlanView, PassesView, Player, RewriteView

lesson = Lesson("08")

# %% [markdown]
# ## Read it as a text
#
# Below stands a graph as it was traced: inputs, equations in an order in which they can run, outputs. Nobody writes
# such code, but helpers called twice and leftovers of an experiment add up to it.
#
# Cross out what you would not compute. How many equations are left?

# %%
def wasteful(x, w):
    lab.exp(x).sum()  # a leftover
    h = lab.tanh(x @ w) * 1.0
    up, down = lab.exp(h), lab.exp(-lab.negative(h))
    return up / (down + 2.0 * 1.0)


rng = np.random.default_rng(0)
x, w = rng.normal(size=(64, 64)), rng.normal(size=(64, 64))
lab.make_graph(wasteful)(x, w)

# %%
lesson.predict("equations left", "before any two are fused", answer=lambda: n_left)

# %%
found = lab.measure_passes(wasteful, x, w)
(n_left,) = {row.n_equations for row in found.rows[-5:]}
steps = Player(RewriteView(found))
steps.seek(6)  # common subexpressions
display(PassesView(found), steps)

# %%
lesson.reveal("equations left")

# %% [markdown]
# Step through the passes: on the left the graph before, on the right after. Algebra makes `-(-h)` h, and `h * 1` h; so
# both exp have one operand, and **common subexpressions** keeps one of them. **Dead code** drops the leftover. Then
# **fusion** makes one loop of all that is elementwise: a kernel is what is called once. Results keep every bit until
# then.
#
# ## Dead code
#
# A graph is a value: `graph.inputs`, `graph.equations`, `graph.outputs`. An equation e has `e.outs`, `e.op` and
# `e.inputs`. Nothing is changed in place; `replace` makes another one.
#
# Drop every equation that no output needs.

# %%
def dead_code(graph):
    kept = []
    for e in graph.equations:
        kept.append(e)
    return replace(graph, equations=tuple(kept))


lesson.check(dead_code)

# %% [markdown]
# ## Common subexpressions
#
# If two equations compute the same, the results of the first **stand for** those of the second, in whatever reads
# them. The stub renames already, but finds nothing. `now.key()` holds all that two such equations share.

# %%
def common(graph):
    first, stands, kept = {}, {}, []
    for e in graph.equations:
        now = replace(e, inputs=tuple(stands.get(a, a) for a in e.inputs))
        kept.append(now)
    outputs = tuple(stands.get(a, a) for a in graph.outputs)
    return replace(graph, equations=tuple(kept), outputs=outputs)


lesson.check(common)

# %% [markdown]
# Now put them into the compiler, in the places of the lab's own. `graph_pass` enters a pass into the table, and lets
# the lab check each graph that it makes. At the end of the cell the table is as it was.

# %%
before = dict(PASSES)
try:
    graph_pass("common subexpressions")(common)
    graph_pass("dead code")(dead_code)
    mine = lab.measure_passes(wasteful, x, w)
finally:
    PASSES.update(before)
PassesView(mine)

# %%
counts = {"yours": [r.n_equations for r in mine.rows], "the lab's": [r.n_equations for r in found.rows]}
{**counts, "the same at last": mine.compiled.optimized == found.compiled.optimized}

# %% [markdown]
# With the stubs nothing goes in these two passes; with right ones the same graph is left as with the lab's. A pass that
# breaks a graph is refused by name: a value may be read but made nowhere, for example.
#
# ## Algebra that keeps every bit
#
# On paper all six of these hold: x * 1 = x, x + 0 = x, x - 0 = x, x * 0 = 0, x - x = 0, x / 4 = x * 0.25. Floats have
# nan, inf and two zeros. For how many do both sides have the same bits, whatever x is?

# %%
lesson.predict("rules", "of the six that keep every bit", answer=lambda: n_exact)

# %%
v = np.array([1.5, -0.0, 0.0, 5e-324, np.inf, -np.inf, np.nan])
with np.errstate(invalid="ignore"):
    sides = {"x * 1 = x": (v * 1.0, v), "x + 0 = x": (v + 0.0, v), "x - 0 = x": (v - 0.0, v)}
    sides |= {"x * 0 = 0": (v * 0.0, v[2]), "x - x = 0": (v - v, v[2]), "x / 4 = x * 0.25": (v / 4.0, v * 0.25)}
same = {
    says: (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b) for says, (a, b) in sides.items()
}
exact = {says: bool(bits.all()) for says, bits in same.items()}
n_exact = sum(exact.values())
{says: "every bit" if exact[says] else f"not for {v[~bits].tolist()}" for says, bits in same.items()}

# %%
lesson.reveal("rules")

# %% [markdown]
# The lab's table says of each rule under which condition it is allowed. Those that are not exact wait for somebody who
# asks for them, as `-ffast-math` does in C. Here is someone who should not: a test for nan and inf.

# %%
def finite(x):
    return x - x == 0.0


plain = lab.make_graph(finite)(v)
fast = algebra.relaxed_algebra(plain)
with np.errstate(invalid="ignore"):
    told = {"as written": run_arrays(plain, [v]), "relaxed": run_arrays(fast, [v])}
conditions = {rule.says: rule.allowed for rule in algebra.RULES if not rule.exact}
told, conditions

# %% [markdown]
# ## Fusion
#
# Seven times `y * 0.9 + 0.1` on a million floats of 4 bytes: fourteen operations. Each reads 4 MB and writes 4 MB,
# together 112 MB. How many MB move if one loop does all fourteen to a number while it has it?

# %%
def chain(y):
    for _ in range(7):
        y = y * 0.9 + 0.1
    return y


million = rng.normal(size=1_000_000).astype("float32")
lesson.predict("MB fused", "moved by one loop", answer=lambda: moved[1], unit="MB")

# %%
fused = lab.measure_passes(chain, million, repeats=3)
moved = [fused.rows[k].n_bytes / 1e6 for k in (0, -1)]
assert moved[0] == 14 * 8
display(PassesView(fused))
fused.compiled

# %%
lesson.reveal("MB fused")

# %% [markdown]
# Is that all there is to gain? A copy of the array reads 4 MB and writes 4 MB, too: its time gives the bandwidth of
# this machine's memory (or of its largest cache). Bytes over bandwidth is a floor under every time: the **roofline**.

# %%
def ms(run, n=9):
    times = []
    for _ in range(n):
        began = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - began))
    return sorted(times)[n // 2]


def heavy(y):
    for _ in range(7):
        y = lab.tanh(y) * 0.9
    return y


# %%
into = million.copy()
bandwidth = 8.0 / ms(lambda: np.copyto(into, million))  # MB a millisecond: GB a second
tanhs = lab.measure_passes(heavy, million, repeats=3)
times = {}
for name, run in {"chain": fused, "heavy": tanhs}.items():
    for way, row in {"apart": run.rows[0], "one loop": run.rows[-1]}.items():
        floor = row.n_bytes / 1e6 / bandwidth
        times[f"{name}, {way}"] = f"{row.run_us / 1e3:.2f} ms, floor {floor:.2f} ms"
{"GB a second": round(bandwidth, 1), **times}

# %% [markdown]
# Both move the same bytes. A time near its floor says that memory was all that the loop waited for. One far above, as
# that of `heavy`, says that the processor had work to do: there fewer bytes cannot help.
#
# ## Loops with sums in them
#
# Softmax needs the largest of a row, then a sum over the row, then a division: three looks at each row. The layer norm
# has a mean, and a mean of squares. How many kernels is such a thing when it is fused?

# %%
lesson.predict("kernels", "of softmax over rows, fused", answer=lambda: softmaxed.rows[-1].n_kernels)

# %%
def softmax(x):
    e = lab.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(x):
    c = x - x.mean(axis=1, keepdims=True)
    return c / lab.sqrt((c * c).mean(axis=1, keepdims=True) + 1e-5)


rows = million[:100_000].reshape(1000, 100)
softmaxed, normed = (lab.measure_passes(f, rows, repeats=3) for f in (softmax, layer_norm))
display({f.recording.meta["title"]: [r.n_kernels for r in f.rows] for f in (softmaxed, normed)})
softmaxed.compiled

# %%
lesson.reveal("kernels")

# %% [markdown]
# One each: a row of a hundred floats stays in the processor's cache while it is looked at three times. Open `loop0`.
#
# ## Places in memory
#
# A product cannot be written over what it is made of. Between its making and its last reading a value needs a place
# of its own; then another may have it. Six values and a result: how many places do the six need?

# %%
def products(x):
    a = x @ x
    b = a @ x
    c = b @ a
    d = c @ x
    e = d @ b
    f = e @ x
    return f @ f


lesson.predict("places", "for the six values a to f", answer=lambda: n_places)

# %%
graph = lab.make_graph(products)(x)
made = [e.out for e in graph.equations][:-1]
lives = [(k, max(n for n, e in enumerate(graph.equations) if var in e.inputs)) for k, var in enumerate(made)]
planned = PASSES["memory planning"](graph)
n_places = len({b for e in planned.equations for b in e.buffer})
lives

# %%
lesson.reveal("places")

# %% [markdown]
# Each pair: the number of the equation that makes it, and of the last that reads it. Draw them as bars: no two bars in
# one place may overlap, not even by an end. The stub gives every value a place of its own.

# %%
def places(lives):
    chosen = []
    for made, last in lives:
        chosen.append(len(chosen))
    return chosen


lesson.check(places)

# %%
{"yours": places(lives), "the lab's": [e.buffer for e in planned.equations], "at once": n_places}

# %% [markdown]
# In the order of making, the first free place is the best there is: a new one is opened only when all are taken, and
# then so many values are needed at once.
#
# ## Time for memory
#
# Another order of the equations may need fewer places. Beyond that only one thing helps: to **make a value again**.
# Four large arrays come from two small ones, and are read early and late. Their memory, by plan and budget:

# %%
def kernels(u, v):
    several = [lab.exp(u * v), lab.tanh(u - v), lab.cos(u + v), lab.exp(-u * u - v)]
    out = several[0]
    for k in several[1:] + several:
        out = out @ k
    return out


u = np.linspace(0.0, 1.0, 256, dtype="float32")
plans = lab.measure_plan(kernels, u[:, None], u)
MemoryPlanView(plans)

# %%
lesson.predict(
    "the bits",
    "of the result, within the lowest budget",
    answer=lambda: "the same" if same_bits else "other last digits",
    choices=("the same", "other last digits"),
)

# %%
budgets = [None, *(row.budget for row in plans.rows if row.budget >= 0)]
jitted = {b: lab.jit(kernels, executor="compiled", memory_budget=b) for b in budgets}
outs = [f(u[:, None], u).numpy() for f in jitted.values()]
same_bits = all(np.array_equal(out, outs[0]) for out in outs)
{b or "without a budget": f"{ms(lambda f=f: f(u[:, None], u), 15):.2f} ms" for b, f in jitted.items()}

# %%
lesson.reveal("the bits")

# %% [markdown]
# Less memory, more work; lesson 06 made the same bargain by hand, with checkpoints. (Times say little where other
# programs run, too.)
#
# ## Where this is used
#
# XLA behind `jax.jit`, and the compiler behind `torch.compile`, have these passes and many more; the C compiler that
# NumPy was built with knows most of them, too.
#
# An all-reduce among ranks (lesson 10) is an equation like others, but none that a pass folds or fuses: it waits for
# others.
#
# - A pass is a function from a graph to a graph, and may be checked after each step.
# - What is allowed is what keeps the bits; everything else needs somebody who asks.
# - Fusion saves bytes, a memory plan saves places; neither saves what has to be computed.

# %%
lesson
