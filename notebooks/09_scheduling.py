# %% [markdown]
# # Scheduling: what may run at the same time?
#
# A graph says what each operation needs, not when it runs. Two cores could do two at once; a thread could fetch the
# next batch while this one is learned from. How much sooner is all done, and at what price?
#
# *Working through takes 30 to 50 minutes. Running all cells takes about 30 seconds and 330 MB.*

# %%
import os

import numpy as np

import lab
from lab.graph.dependencies import costs_of, needs_of
from lab.graph.dependencies import critical_path as path_of
from lab.graph.grouping import GRAIN_MS
from lab.teach.lanes import Drawn, end_of, in_turn, paced, twice
from widgets import Lesson, Lines, PrefetchView, ScheduleView

lesson = Lesson("09")
{"cores of this machine": os.cpu_count()}

# %% [markdown]
# ## What waits for what
#
# An equation waits for those whose results it reads, and for nothing else. Which of these could begin at once, if there
# were threads enough? And then?

# %%
def branches(x, y):
    return (lab.sin(x) @ y) * (lab.tanh(y) @ x) + lab.exp(x)


x, y = np.random.default_rng(0).normal(size=(2, 384, 384))
graph = lab.make_graph(branches)(x, y)
graph

# %% [markdown]
# ## The longest chain
#
# Seven other equations, with whole milliseconds: `needs[k]` are those for which k waits. One thread takes the sum of
# all, the **work**. How long do a hundred threads take?

# %%
small_needs = ((), (), (), (2,), (0,), (1, 3), (4, 5))
small_costs = (3, 3, 1, 4, 2, 2, 1)
lesson.predict("the time", "that a hundred threads take for these seven", answer=lambda: span, unit="ms")

# %%
span = end_of(in_turn(small_needs, small_costs, 100), small_costs)
Drawn(in_turn(small_needs, small_costs, 100), small_costs)

# %%
lesson.reveal("the time")

# %% [markdown]
# A letter is a millisecond, a is equation 0. No number of threads beats the costliest chain in which each waits for the
# one before: the **critical path**. Return it, for any graph, as a list of numbers. The stub takes all equations.

# %%
def critical_path(needs, costs):
    return list(range(len(needs)))


lesson.check(critical_path)

# %% [markdown]
# The path's cost is the **span**. m threads are at most m times as fast, and at most **work / span**.
#
# Threads that never rest while something is ready need at most **work / m + span** (Brent): either all m work, for
# work / m at most, or one rests, and then the path gets shorter. Here for the graph above, with reckoned costs.

# %%
needs, costs = needs_of(graph), costs_of(graph)
work, longest = sum(costs), sum(costs[k] for k in path_of(needs, costs))
counts = range(1, 9)
on_paper = [work / end_of(in_turn(needs, costs, m), costs) for m in counts]
brent = [work / (work / m + longest) for m in counts]
at_most = [min(m, work / longest) for m in counts]
Lines("threads", "times as fast", first=1, at_most=at_most, on_paper=on_paper, at_least_by_Brent=brent)

# %% [markdown]
# ## Who goes first?
#
# Of what is ready, which? A good rule: the highest **priority**, the cost of the longest chain that begins with an
# equation. Write such a *list scheduler*: whenever a thread is free it takes the next. Return for each equation
# `(thread, start)`. Another rule passes, too; the check says what it costs.

# %%
def list_schedule(needs, costs, priority, n_threads):
    places, now = [], 0
    for k in range(len(needs)):
        places.append((0, now))
        now += costs[k]
    return places


lesson.check(list_schedule)

# %% [markdown]
# Never idle means at most (2 - 1/m) times the best. **Why**: while a thread rests, the path gets shorter, so
# m · end ≤ work + (m - 1) · span; but m · best ≥ work, and best ≥ span.
#
# ## Better code
#
# Nine equations in three threads, the lowest number first (R. Graham, 1966). Then somebody writes better code: each
# takes one millisecond less.

# %%
nine = ((), (), (), (), (3,), (3,), (3,), (3,), (0,))
takes = (3, 2, 2, 2, 4, 4, 4, 4, 9)
before = end_of(in_turn(nine, takes, 3), takes)
Drawn(in_turn(nine, takes, 3), takes)

# %%
lesson.predict(
    "better code",
    "whose equations each take a millisecond less: all is done",
    answer=lambda: "sooner" if end < before else "later" if end > before else "as soon as before",
    choices=("sooner", "as soon as before", "later"),
)

# %%
less = [cost - 1 for cost in takes]
end = end_of(in_turn(nine, less, 3), less)
Drawn(in_turn(nine, less, 3), less)

# %%
lesson.reveal("better code")

# %% [markdown]
# i, the longest, has to wait: who was free sooner took something else. Try `in_turn(nine, takes, 4)`: a fourth thread
# hurts, too. The bound still holds.
#
# ## Real threads
#
# The graph from above, its products on one BLAS thread each, in one thread and in two.

# %%
lesson.predict(
    "two threads",
    "running this graph, beside one",
    answer=lambda: "no faster" if gain < 1.1 else "up to 1.6 times as fast" if gain < 1.6 else "nearly twice as fast",
    choices=("no faster", "up to 1.6 times as fast", "nearly twice as fast"),
)

# %%
threads = lab.measure_schedule(branches, x, y, threads=(1, 2), repeats=7)
one, two = threads.rows[-2:]
gain = one.run_ms / two.run_ms
ScheduleView(threads)

# %%
lesson.reveal("two threads")

# %% [markdown]
# Where a lane is empty, nothing was ready for its thread. But bars also get longer when both work: two threads need two
# free cores, and what else do they share?
#
# The same task twice, in a row and in two threads: how many times as fast?

# %%
large, target = np.linspace(0, 1, 2_000_000), np.empty((2, 2_000_000))
tasks = {
    "a loop of Python": lambda i: sum(j * j for j in range(100_000)),
    "sines": lambda i: np.sin(large[:300_000]),
    "a copy of 16 MB": lambda i: np.copyto(target[i], large),
}
done = {name: twice(task) for name, task in tasks.items()}
hand_over = min(both.hand_over for both in done.values())
gains = {name: round(both.in_a_row / both.in_two_threads, 2) for name, both in done.items()}
{"times as fast": gains, "µs to hand over nothing": round(1e6 * hand_over), "µs of the grain": round(1e3 * GRAIN_MS)}

# %% [markdown]
# Python's own steps hold one lock, the **GIL**: a loop gains nothing. NumPy lets go of it, so sines can gain, if two
# cores are free. A copy computes nothing, and both threads wait for the same memory. Below 1, threads are slower.
#
# ## Too small to hand over
#
# To hand over nothing takes its time, too (above). Two tasks of n sines each, for more and more n: from where on is a
# thread worth it?

# %%
sizes = [4**i for i in range(2, 10)]
pairs = [twice(lambda i, n=n: np.sin(large[:n]), repeats=25) for n in sizes]
two_threads = [both.in_a_row / both.in_two_threads for both in pairs]
Lines("sines in a task, as a power of 4", "times as fast", first=2, two_threads=two_threads, in_a_row=[1] * len(sizes))

# %% [markdown]
# It is worth it where the lines have crossed; on one core, or where others need the second, they never do. So the lab
# joins small equations until a task takes as long as the **grain**.
#
# ## The next batch
#
# A step loads a batch, preprocesses it and computes. A second thread can load **and** preprocess, `depth` batches
# ahead. What does a step take, in the long run?

# %%
def step_ms(load, preprocess, compute, depth):
    return load + preprocess + compute


lesson.check(step_ms)

# %% [markdown]
# Now 8 ms to load, 4 to preprocess, 10 to compute. These stages only wait, as for a disk and a device, so cores do not
# matter. Your answer is laid beside the plan; what is measured has the delays of this machine, too.

# %%
lesson.predict("a step", "with one batch ahead", answer=lambda: plan[1], unit="ms")

# %%
depths, plan = [0, 1, 2, 4, 8], [8 + 4 + 10, *[max(8 + 4, 10)] * 4]
steady = [paced([8] * 30, depth, preprocess_ms=4, compute_ms=10) for depth in depths]
yours = [step_ms(8, 4, 10, depth) for depth in depths]
Lines("place of the depth in 0, 1, 2, 4, 8", "ms a step", measured=steady, plan=plan, yours=yours)

# %%
lesson.reveal("a step")

# %% [markdown]
# Not the sum, but the slower thread. More depth changes nothing: whoever is slower has no time to get ahead.
#
# Another disk needs 1 ms mostly, and 71 ms each tenth time: 8 ms on average, as before. Does depth help now?

# %%
lesson.predict(
    "a disk that stutters",
    "at depth 8, beside depth 1",
    answer=lambda: "faster" if uneven[-1] < 0.93 * uneven[1] else "as slow",
    choices=("faster", "as slow"),
)

# %%
stutter = [*[1] * 9, 71] * 3
uneven = [paced(stutter, depth, preprocess_ms=4, compute_ms=10) for depth in depths]
Lines("place of the depth in 0, 1, 2, 4, 8", "ms a step", steady=steady, stuttering=uneven)

# %%
lesson.reveal("a disk that stutters")

# %% [markdown]
# Batches in the queue last while a slow one comes; more than that is memory for nothing.
#
# Real work: files are unpacked, images moved about, a network learns. From the stages at depth 0 your `step_ms` says
# the rest.

# %%
real = lab.measure_prefetch((0, 1, 2, 4), n_items=8)
PrefetchView(real, depth=1)

# %%
first = real.rows[0]
stages = first.load_ms / 8, first.preprocess_ms / 8, first.compute_ms / 8
reckoned = [step_ms(*stages, row.depth) for row in real.rows]
loops = [row.elapsed_ms / 8 for row in real.rows]
Lines("place of the depth in 0, 1, 2, 4", "ms a step", measured=loops, yours=reckoned)

# %% [markdown]
# Now the stages compute, and want a core and the lock: without a free one it stays near the sum.
#
# ## Asynchrony and its price
#
# Two batches are loaded, the third is broken. The loader finds out while the loop is at the first; the loop is told in
# its turn, behind the second. And the numbers?

# %%
def files():
    yield from ("first", "second")
    raise lab.errors.DataError("a file cannot be read", given="0 bytes", hint="fetch it again")


n_given = 0
with lesson.refusal() as why:
    for _ in lab.data.Prefetch(files(), depth=2):
        n_given += 1
why.error.add_note(f"the loop had {n_given} batches before")
why

# %%
in_threads, eager = lab.jit(branches, executor="parallel"), branches(lab.tensor(x), lab.tensor(y))
runs = [in_threads(x, y).numpy() for _ in range(5)]
{
    "five runs in threads have the bits of eager": all(np.array_equal(run, eager.numpy()) for run in runs),
    "the last loss at each depth": {row.depth: row.loss for row in real.rows},
}

# %% [markdown]
# The same bits: each equation reads the same inputs, and **one** thread updates the weights. If two did without
# waiting, a gradient could come from weights that are gone. It is **stale**, and no two runs are alike: for a later
# lesson.
#
# ## Where this is used
#
# `DataLoader(prefetch_factor=2)` and `tf.data` load ahead; graph runtimes keep queues of what is ready.
#
# - Work / span bounds what threads gain; cores, lock and memory say what is left.
# - Never idle: at most 2 - 1/m times the best.
# - Prefetch makes a sum a maximum; depth pays only where times vary.

# %%
lesson
