# %% [markdown]
# # Data parallelism: when are four workers one?
#
# Four copies of a network share a batch. Each finds a gradient of its own examples. What must they tell each other so
# that nobody can see, from the weights, that they were four?
#
# *Working through takes 30 to 45 minutes. Running all cells takes about 50 seconds and 720 MB.*

# %%
import logging
import os
import signal
import time

import numpy as np

import lab
from lab.parallel import DataParallel, Throttle
from widgets import ClusterView, DataParallelView, Lesson, Lines, Player

lesson = Lesson("11")
logging.getLogger("distributed.nanny").setLevel("ERROR")  # a killed worker is told in a picture below

# %%
cluster = lesson.cluster(4)

# %% [markdown]
# ## The same step
#
# Each rank takes a quarter of the batch, finds its gradient, and an all-reduce makes one of the four. Then all update
# alike. Numbers have 64 bits here: about 16 digits.

# %%
lesson.predict("the difference", "of any weight, after 20 steps on 1 and on 4 workers, is at most",
               choices=["0, bit for bit", "1e-12", "1e-3"], answer=lambda: within)  # fmt: skip

# %%
digits, _ = lab.data.digits()
some = lab.data.Dataset(digits.inputs[:250].astype(np.float64), digits.targets[:250])


def begun(on=None, epochs=5, **options):
    with lab.settings(dtype="float64"):
        model = lab.nn.mlp(64, 32, 10, rng=0)
    return model, lab.fit(model, some, batch_size=64, epochs=epochs, on=on, **options)


# %%
alone, one = begun()
copies, four = begun(DataParallel(cluster))
await one
await four
pairs = zip(alone.parameters(), copies.parameters(), strict=True)
apart = max(float(abs(a.numpy() - b.numpy()).max()) for a, b in pairs)
within = "0, bit for bit" if apart == 0 else "1e-12" if apart <= 1e-12 else "1e-3"
apart

# %%
lesson.reveal("the difference")

# %% [markdown]
# The sums are the same, the order of additions is not. Step through what the ranks did: shard, gradient, all-reduce,
# update, and the checksum by which all copies are seen to be alike.

# %%
Player(DataParallelView(four))

# %% [markdown]
# ## Build it: who takes what
#
# The last batch of those 250 examples has 58: four do not divide it. `shard` says which examples, start to stop (not
# included), a rank takes. The stub forgets some.

# %%
def shard(n_examples, rank, world_size):
    size = n_examples // world_size
    return rank * size, (rank + 1) * size


lesson.check(shard)

# %% [markdown]
# ## Means of unequal shards
#
# Rank 0 has three examples with a loss of 1 each, rank 1 has one example with a loss of 5.

# %%
lesson.predict("the loss", "of the whole batch", answer=lambda: whole)

# %%
by_rank = [[1.0, 1.0, 1.0], [5.0]]
whole = float(np.mean(np.concatenate(by_rank)))
mean_of_means = float(np.mean([np.mean(shard) for shard in by_rank]))
whole, mean_of_means

# %%
lesson.reveal("the loss")

# %% [markdown]
# ## Build it: the mean over all
#
# What holds for losses holds for gradients. A rank tells its mean and how many examples it is of; with none, its mean
# is no number.

# %%
def weighted_mean(means, counts):
    return sum(means) / len(means)


lesson.check(weighted_mean)

# %% [markdown]
# ## Break it: nobody tells anybody
#
# Four ranks look for the same three weights, each from examples of its own. All begin alike. The **spread** is how far
# the copies of a weight are apart. First with an all-reduce in every step, then without any.

# %%
lesson.predict("the spread", "with an all-reduce in every step", answer=lambda: spread_together[-1])

# %%
def copy(comm, together):
    rng, w, path = np.random.default_rng(comm.rank), np.zeros(3), []
    for _ in range(40):
        x = rng.normal(size=(8, 3))
        error = x @ (w - [1.0, 2.0, 3.0]) + rng.normal(size=8)
        gradient = x.T @ error / len(x)
        if together:
            comm.all_reduce_(gradient, "ring", op="mean")
        w = w - 0.1 * gradient
        path.append(w)
    return np.array(path)


# %%
def spread(together):
    paths = np.stack(cluster.launch(copy, together, time_limit=30))
    return np.ptp(paths, axis=0).max(axis=1).tolist()


spread_together, spread_apart = spread(True), spread(False)
Lines("step", "spread", together=spread_together, apart=spread_apart)

# %%
lesson.reveal("the spread")

# %% [markdown]
# ## Buckets
#
# A backward finds gradients bit by bit. Why wait for the last? What is there can travel in a **bucket** while the rest
# is computed. Large buckets begin late; each small one pays for its latency.
#
# The backward is a pause of 160 ms here, and links are throttled to 20 MB/s and 0.5 ms a message: 2 MiB of gradients.

# %%
lesson.predict("the best", "number of buckets is", choices=["1", "in between", "32"], answer=lambda: best)

# %%
def overlapped(comm, n_buckets):
    start, handles = time.perf_counter(), []
    for bucket in np.array_split(np.ones(1 << 18), n_buckets):
        time.sleep(0.16 / n_buckets)
        handles.append(comm.start("all_reduce_", bucket))
    for handle in handles:
        handle.wait()
    return 1e3 * (time.perf_counter() - start)


# %%
slow = Throttle(bytes_per_s=2e7, latency_s=5e-4)
counts = [1, 2, 4, 8, 16, 32]
took = [max(cluster.launch(overlapped, n, time_limit=60, throttle=slow)) for n in counts]
place = int(np.argmin(took))
best = "1" if place == 0 else "32" if place == 5 else "in between"
Lines("buckets: 2 to the power of", "ms", measured=took)

# %%
lesson.reveal("the best")

# %% [markdown]
# ## A worker dies
#
# Every rank keeps its last two states. When one is lost, another process takes its number and a survivor's state.
#
# Two runs of 200 steps. In the second, the process of rank 2 is killed after step 20: no simulation, `kill -9`.

# %%
lesson.predict("other losses", "of 200, in the run with the kill", answer=lambda: n_other)

# %%
untouched, quiet = begun(DataParallel(cluster), epochs=50)
await quiet
struck, run = begun(DataParallel(cluster), epochs=50, paused=True)
run.step(20)
run.wait_until("paused", timeout=60)
started = run.recording.columns(lab.events.RankStarted)
victim = int(started["pid"][started["rank"] == 2][-1])
run.resume()
os.kill(victim, signal.SIGKILL)
await run

# %%
def losses(run):
    return run.recording.columns(lab.events.StepFinished)["loss"].tolist()


n_other = sum(a != b for a, b in zip(losses(quiet), losses(run), strict=True))
Lines("step", "loss", first=1, untouched=losses(quiet), killed=losses(run))

# %%
lesson.reveal("other losses")

# %% [markdown]
# Who was lost, and who took the place? Step to the loss.

# %%
Player(ClusterView(run))

# %% [markdown]
# ## One is slow
#
# Three ranks need 5 ms for their gradient, the last needs 50 ms. Then comes the all-reduce.

# %%
lesson.predict("a step", "of all four takes as long as", choices=["the fastest", "the mean", "the slowest"],
               answer=lambda: like)  # fmt: skip

# %%
def paced(comm, ms):
    comm.barrier()
    start = time.perf_counter()
    time.sleep(ms[comm.rank] / 1e3)
    comm.all_reduce_(np.ones(1000))
    return 1e3 * (time.perf_counter() - start)


each = cluster.launch(paced, [5, 5, 5, 50], time_limit=30)
nearest = int(np.argmin(abs(np.median(each) - np.array([5, 16.25, 50]))))
like = ["the fastest", "the mean", "the slowest"][nearest]
[round(ms, 1) for ms in each]

# %%
lesson.reveal("a step")

# %% [markdown]
# ## Where this is used
#
# PyTorch's DistributedDataParallel and JAX's pmap train in this way; Horovod brought the ring to it. Where the network
# itself is too large for one machine it is cut, as in the lesson about pipelines.
#
# - Copies that begin alike and update by the same gradient stay alike, bit for bit.
# - A mean over ranks is weighted by their examples.
# - Buckets hide communication behind the backward; too small ones pay latency.
# - A lost rank costs seconds and no result; a slow one costs everybody, in every step.
#
# The four workers stay, so that you can go back and try more. They end with the kernel. To free their memory sooner run
# `cluster.close()`; `cluster = lesson.cluster(4)` then starts new ones.

# %%
lesson
