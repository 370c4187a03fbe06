# %% [markdown]
# # Memory: what must a network remember to learn?
#
# A gradient walks back over numbers that were made on the way forward, so somebody has to keep them. Which ones, for
# how long, who forgets to let go, and how few would do?
#
# *Working through takes 35 to 55 minutes. Running all cells takes about 20 seconds and 300 MB.*

# %%
import time
import tracemalloc

import numpy as np

import lab
from widgets import GraphView, Lesson, Lines, MemoryView

lesson = Lesson("06")

# %% [markdown]
# ## What a rule reads
#
# Click a box: beside it stands the rule that backward will run there. `ct * cos(x)` reads what went in, `ct * out` what
# came out; such an array must stay until then. `ct` alone reads nothing.
#
# x and y are yours, and there anyway. How many more arrays must stay?

# %%
x = lab.tensor(np.linspace(0.1, 1.0, 1000), requires_grad=True)
y = lab.tensor(np.linspace(1.0, 2.0, 1000), requires_grad=True)
with lab.record() as forward:
    z = lab.sin(x * y) + lab.exp(x)
GraphView(forward)

# %%
lesson.predict("kept arrays", "for the backward of z, besides x and y", answer=lambda: kept.n_arrays)

# %%
kept = lab.saved_values(z)
kept

# %%
lesson.reveal("kept arrays")

# %% [markdown]
# A product reads both factors, here your own arrays; a sine what went in; exp its own result; a sum nothing at all.
#
# ## A chain
#
# Eight sines in a row, of 50,000 numbers in an array of 0.4 MB, and then their sum. How many such arrays are held when
# the forward is done, besides the one that you gave?

# %%
lesson.predict("arrays", "held after eight sines and a sum, besides the first", answer=lambda: after_forward)

# %%
given = lab.tensor(np.linspace(0.1, 1.0, 50_000), requires_grad=True)
ARRAY = given.numpy().nbytes


def chain(x, *ops):
    for op in ops:
        x = op(x)
    return x


sines, adds = [lab.sin] * 8, [lambda x: x + 1.0] * 8
turns = [lab.sin, lab.exp] * 4
three = {"sines": sines, "sine_and_exp_in_turn": turns, "adds": adds}
eight = lab.measure_memory(**{name: lambda ops=ops: chain(given, *ops).sum() for name, ops in three.items()})
after_forward = round(eight.ways["sines"].kept / ARRAY)
MemoryView(eight)

# %%
lesson.reveal("arrays")

# %% [markdown]
# The first sine keeps what you gave, which is there anyway; the last result goes when it is summed. On the way back
# each operation lets go as soon as its rule has run.
#
# Sine and exp in turn hold half as much: exp keeps what comes out, and the next sine the **same** array. Additions
# keep nothing.
#
# ## Back twice
#
# After backward nothing is left, unless you ask for it.

# %%
loss = chain(given, *sines).sum()
loss.backward(retain_graph=True)
retained = lab.saved_values(loss).n_arrays
loss.backward()
{"after retain_graph=True": retained, "after backward()": lab.saved_values(loss).n_arrays}

# %% [markdown]
# ## Who holds a graph
#
# A test takes the loss of ten batches, eight sines each, and keeps the losses in a list. Nobody calls backward, so
# nobody lets go. How many MB are held in the end?

# %%
lesson.predict("the list", "of ten losses holds", answer=lambda: curves["losses"][-1], unit="MB", tolerance=3)

# %%
def held(step, n=10):
    kept, curve = [], []
    tracemalloc.start()
    for batch in range(n):
        kept.append(step(batch))
        curve.append(tracemalloc.get_traced_memory()[0] / 1e6)
    tracemalloc.stop()
    return curve


# %%
def loss_of(batch):
    return chain(given, *sines).sum()


def walked(batch):
    loss = loss_of(batch)
    loss.backward()
    return loss


curves = {"losses": held(loss_of), "after_backward": held(walked), "items": held(lambda batch: loss_of(batch).item())}
with lab.no_grad():
    curves["no_grad"] = held(loss_of)
Lines("batches", "MB held", first=1, **curves)

# %%
lesson.reveal("the list")

# %% [markdown]
# A loss is one number, and holds the whole graph behind it. `.item()` is the number alone; under `lab.no_grad()` no
# graph is made; after backward only its skeleton is left (the 0.4 MB are the gradient).
#
# The stub below has a total that is a tensor. Let go of each graph.

# %%
def mean_loss(loss_of, batches):
    total = 0.0
    for batch in batches:
        total = total + loss_of(batch)
    return total / len(batches)


lesson.check(mean_loss)

# %% [markdown]
# ## Forget, and run again
#
# A **checkpoint** of f keeps only what goes in. When backward comes by, f runs again, and what it saves then is needed
# at once.
#
# `lab.custom_vjp` gives f a rule of your own: what `forward` returns second, `backward` gets first. The stub keeps
# `back`, and in it everything. One line stands in the wrong place.

# %%
def my_checkpoint(f):
    def forward(*args):
        out, back = lab.vjp(f, *args)
        return out, back

    def backward(back, ct):
        return back(ct)

    return lab.custom_vjp(f).defvjp(forward, backward)


lesson.check(my_checkpoint)

# %% [markdown]
# Sixteen sines in four pieces, by your checkpoint and by the lab's. Points are operations that run a second time.

# %%
def four_sines(x):
    return chain(x, *[lab.sin] * 4)


ways = {"plain": four_sines, "yours": my_checkpoint(four_sines), "checkpointed": lab.checkpoint(four_sines)}
pieces = lab.measure_memory(**{name: lambda f=f: chain(given, f, f, f, f).sum() for name, f in ways.items()})
MemoryView(pieces)

# %% [markdown]
# After the forward three inputs wait; then each piece runs again, and is gone before the next. Yours frees a piece as a
# whole, since `back` might be called once more; the lab's lets go operation by operation.
#
# ## How many pieces?
#
# n operations in k pieces. Count x, too: what waits for backward, and what one piece adds while it runs?

# %%
def most_held(n, k):
    return 1 + n


lesson.check(most_held)

# %% [markdown]
# Many short pieces have many inputs, few long ones hold much when they run. Which k is best for 64 sines?

# %%
lesson.predict("the best k", "for 64 sines", answer=lambda: best_k)

# %%
def peak(f):
    found = lab.measure_memory(way=lambda: f(given).sum())
    return found.ways["way"].peak / ARRAY + 1  # and the one that was given


def in_pieces(n, k):
    piece = lab.checkpoint(lambda x: chain(x, *[lab.sin] * (n // k)))
    return peak(lambda x: chain(x, *[piece] * k))


ks = [2**i for i in range(7)]
peaks = [in_pieces(64, k) for k in ks]
best_k = ks[int(np.argmin(peaks))]
Lines("pieces, as a power of 2", "arrays", measured=peaks, yours=[most_held(64, k) for k in ks])

# %%
lesson.reveal("the best k")

# %% [markdown]
# k + n / k is least at k = √n: 2√n arrays, for one more forward. (Measured are Python's own objects, too.)
#
# ## Pieces in pieces
#
# A piece may be checkpointed inside, too: cut it in half, and the halves in half, down to single sines. What do 64
# sines hold then?

# %%
lesson.predict(
    "the halves",
    "of halves of 64 sines hold",
    answer=lambda: "fewer arrays than 16" if nested[-1] < 15 else "about 16" if nested[-1] < 18 else "more",
    choices=("fewer arrays than 16", "about 16", "more"),
)

# %%
def halves(n):
    if n == 1:
        return lab.sin
    half = halves(n // 2)
    return lab.checkpoint(lambda x: half(half(x)))


sizes = [4, 16, 64]
nested = [peak(halves(n)) for n in sizes]
roots = [in_pieces(n, int(n**0.5)) for n in sizes]
Lines("operations, as a power of 4", "arrays", first=1, sqrt_n_pieces=roots, halves_of_halves=nested)

# %%
lesson.reveal("the halves")

# %%
once_more = lab.measure_memory(halves=lambda: halves(64)(given).sum())
MemoryView(once_more)

# %% [markdown]
# One array more each time that n doubles: 2 + log₂ n. But each sine runs again for each of the log₂ n levels that it
# lies in: 64 · 6 times in all, where √n pieces ran 64 again.
#
# ## The same twice?
#
# A second run must do what the first did. Dropout draws numbers: a checkpoint remembers its keys. From a generator of
# your own come others.

# %%
drop, rng = lab.nn.Dropout(0.5, rng=0), np.random.default_rng(0)
out = lab.checkpoint(lambda x: drop(lab.exp(x)))(x)
x.zero_grad()
out.sum().backward()
{"dropped": int((out.numpy() == 0).sum()), "without a gradient": int((x.grad.numpy() == 0).sum())}

# %%
with lesson.refusal() as why:
    lab.checkpoint(lambda x: lab.exp(x * rng.normal()))(x).sum().backward()
why

# %% [markdown]
# ## A real network
#
# Six blocks of a transformer on 8 texts of 32 places; each block is a piece. `lab.checkpoint` takes along the weights
# that a block has; a rule by `custom_vjp` wants every tensor as an argument.
#
# Which share of the peak is left?

# %%
lesson.predict(
    "the share",
    "of the peak that is left with a checkpoint around each of six blocks",
    answer=lambda: "about a sixth" if share < 0.25 else "about a third" if share < 0.5 else "more than half",
    choices=("about a sixth", "about a third", "more than half"),
)

# %%
blocks = [lab.nn.TransformerBlock(64, 4, rng=i) for i in range(6)]
places = lab.tensor(np.random.default_rng(0).normal(size=(8, 32, 64)).astype("float32"))
checkpointed = [lab.checkpoint(block) for block in blocks]
real = lab.measure_memory(
    plain=lambda: chain(places, *blocks).mean(), checkpointed=lambda: chain(places, *checkpointed).mean()
)
share = real.ways["checkpointed"].peak / real.ways["plain"].peak
MemoryView(real)

# %%
lesson.reveal("the share")

# %%
def step(layers):
    for block in blocks:
        block.zero_grad()
    began = time.perf_counter()
    chain(places, *layers).mean().backward()
    return time.perf_counter() - began, [p.grad.numpy() for block in blocks for p in block.parameters()]


plain, less = zip(*[(step(blocks), step(checkpointed)) for _ in range(3)])
price = min(seconds for seconds, _ in less) / min(seconds for seconds, _ in plain)
same = all(np.array_equal(a, b) for a, b in zip(plain[-1][1], less[-1][1]))
{"time, as a multiple": round(price, 2), "gradients equal, bit for bit": same}

# %% [markdown]
# What is left: one block, the inputs of six, and the gradients of the weights, which grow until the end. The price: a
# forward, about a third of a step, runs once more (times say little where other programs run, too). Nothing is
# approximated: the gradients are the same bits.
#
# ## Where this is used
#
# `torch.utils.checkpoint` and `jax.checkpoint` (also called remat) train models that would not fit otherwise, block by
# block, as here. Evaluations run under `no_grad` everywhere.
#
# - A rule keeps what it reads: read the formula, and you know the memory.
# - A loss in a list is a graph in memory: keep numbers.
# - √n checkpoints: memory falls from n to 2√n, for one more forward.

# %%
lesson
