# %% [markdown]
# # All-reduce: how few bytes make four gradients equal?
#
# Four processes train copies of one network. Each has a gradient of its own, and each needs the sum of all four.
# Something has to be sent. How little is enough?
#
# *Working through takes 25 to 40 minutes. Running all cells takes about 40 seconds and 350 MB.*

# %%
import numpy as np

import lab
from lab.parallel import COLLECTIVES, LINKS, Recv, Send, check_plan, predict
from widgets import Lesson, Lines, Player, RingView, TimesView

lesson = Lesson("10")

# %% [markdown]
# ## Four processes
#
# The next cell starts four **workers**: processes with a memory of their own. What one of them has, the others do not
# see, unless it is sent to them.
#
# `lesson.cluster(4)` is `lab.parallel.Cluster(4)`, started once however often you run the cell.

# %%
cluster = lesson.cluster(4)

# %% [markdown]
# All four run the same function. Each is told its number, its **rank**: 0, 1, 2 or 3.
#
# Rank r fills 4 numbers with 1, 10, 100 or 1,000. So every sum shows whose parts are in it: 1,001 is rank 0 and rank 3.
# `all_reduce_` shall make 1,111 of them on every rank. The `plan` says how.

# %%
def program(comm, plan):
    mine = np.full(4, 10**comm.rank)
    comm.all_reduce_(mine, plan)
    return mine


# %% [markdown]
# ## The simple way
#
# All send their numbers to rank 0. Rank 0 adds them up and sends the sum to all. A number takes 8 bytes, so 4 numbers
# are 32 bytes.

# %%
lesson.predict("bytes of rank 0", "sent the simple way", answer=lambda: sent_simply[0], unit="B")

# %% [markdown]
# Run it, on the four workers; with `time_limit=30` a program that does not end is ended after 30 seconds. The picture
# is made of what they reported: press **Step** and watch the sums grow. µ marks the mean of a chunk of several numbers.
# Each message left a record, with its sender and its bytes: the cell below it adds them up.

# %%
with lab.record(detail="value") as simple:
    cluster.launch(program, "naive", time_limit=30)
Player(RingView(simple))

# %%
def bytes_sent(recording):
    moved = recording.columns(lab.events.ChunkMoved)
    return np.bincount(moved["src"], moved["n_bytes"], minlength=4).astype(int).tolist()


sent_simply = bytes_sent(simple)
sent_simply

# %%
lesson.reveal("bytes of rank 0")

# %% [markdown]
# ## Build it: a first plan
#
# A **plan** says, for one rank, what it does step by step. The buffer is cut into `n_chunks` chunks, counted from 0.
#
# - `Send(peer, start, stop)`: chunks start to stop (not included) go to another rank.
# - `Recv(peer, start, stop, reduce=True)`: chunks come in and are added; with `reduce=False` they are stored.
#
# Here the simple way is only half done. Run the check, then mend it.

# %%
def my_first_plan(rank, world_size, n_chunks):
    for peer in range(1, world_size):
        if rank == peer:
            yield Send(0, 0, n_chunks)
        if rank == 0:
            yield Recv(peer, 0, n_chunks, reduce=True)


lesson.check(my_first_plan)

# %% [markdown]
# ## The ring
#
# Rank 0 sends three times what the others send, and they wait for it. Better: cut the buffer into four chunks, one for
# each rank to care for. Every rank sends only to its right neighbour, one chunk at a time, and all send at once.

# %%
lesson.predict("bytes of each rank", "sent in the ring, for the same buffer", answer=lambda: sent_in_ring[0], unit="B")

# %%
with lab.record(detail="value") as ring:
    cluster.launch(program, "ring", time_limit=30)
Player(RingView(ring))

# %%
sent_in_ring = bytes_sent(ring)
sent_in_ring

# %%
lesson.reveal("bytes of each rank")

# %% [markdown]
# ## Why so few
#
# n ranks, n chunks. First half, **reduce-scatter**: n - 1 steps in which chunks travel on and are added up. Then each
# rank has one finished chunk. Second half, **all-gather**: n - 1 steps in which finished chunks travel on.
#
# One n-th of the buffer in each of 2 (n - 1) steps: **2 (n - 1) / n** buffers from each rank. No plan needs less.

# %%
lesson.predict("buffers", "sent by each rank of a ring of 16", answer=lambda: in_ring[-1], tolerance=0.01)

# %%
def busiest(algorithm):
    plans = [check_plan("all_reduce", algorithm, n) for n in range(1, 17)]
    return [max(plan.chunks_sent) / plan.n_chunks for plan in plans]


simply, in_ring = busiest("naive"), busiest("ring")
Lines("ranks", "buffers sent by the busiest rank", first=1, simple=simply, ring=in_ring)

# %%
lesson.reveal("buffers")

# %% [markdown]
# The simple way gets worse with every rank that joins. The ring stays below two buffers, whether 4 ranks or 4,000.
#
# ## Break it: leave out the second half
#
# Four ranks hold 4 numbers each, 16 in all. How many of them are not 1,111 if everybody stops after the first half?

# %%
lesson.predict("wrong numbers", "of 16, without the all-gather", answer=lambda: n_wrong)

# %%
with lab.record(detail="value") as broken:
    halves = np.stack(cluster.launch(program, COLLECTIVES["reduce_scatter", "ring"], time_limit=30))
Player(RingView(broken))

# %%
n_wrong = int((halves != 1111).sum())
halves

# %%
lesson.reveal("wrong numbers")

# %% [markdown]
# Every rank is wrong, each in another place: only the chunk that it cares for is finished.
#
# ## Build it: your own all-reduce
#
# The stub is that first half. `mine` is the chunk that goes out, `theirs` the one that comes in. Add the second half,
# or write something quite different: no rank may send more than 2 (n - 1) / n of the buffer.
#
# The check runs your plan on paper. The cell after it runs it on the four workers: do they all end with 1,111?

# %%
def my_all_reduce(rank, world_size, n_chunks):
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    for step in range(world_size - 1):
        mine, theirs = (rank - step) % n_chunks, (rank - step - 1) % n_chunks
        yield Send(right, mine, mine + 1), Recv(left, theirs, theirs + 1, reduce=True)


lesson.check(my_all_reduce)

# %%
with lab.record(detail="value") as own:
    results = np.stack(cluster.launch(program, my_all_reduce, timeout=10, time_limit=30))
Player(RingView(own))

# %% [markdown]
# ## Fewer steps
#
# The ring sends little, but in 2 (n - 1) steps. A **tree** adds on the way up to rank 0 and hands down, whole buffers
# each time. **Halving-doubling** swaps half of what is left with a partner, then doubles it back. In **direct**, each
# rank fetches its chunk from all others at once, as from shared memory.
#
# Steps and buffers of the busiest of 16 ranks, as a checker counts them on paper:

# %%
def cost(algorithm):
    plan = check_plan("all_reduce", algorithm, 16)
    return plan.steps, max(plan.chunks_sent) / plan.n_chunks


names = ["naive", "ring", "tree", "halving", "direct"]
costs = {name: cost(name) for name in names}
costs

# %% [markdown]
# ## When which
#
# A message takes **α** seconds, however small, and **β** more for each byte. Many steps cost α, many bytes cost β.
#
# Think of 16 machines on 10 Gbit/s Ethernet: α is 30 µs, a µs is good for 1,250 bytes. Each has 1 KiB to be summed.
# The curves are simulated from 1 KiB to 1 MiB: nothing is sent.

# %%
lesson.predict("the faster one", "of ring and tree, for 1 KiB", choices=["ring", "tree"],
               answer=lambda: fastest[1024])  # fmt: skip

# %%
def simulated(name):
    return [1e3 * predict(("all_reduce", name), 16, 4**k, LINKS["ethernet_10g"]).total_s for k in range(5, 11)]


on_paper = {name: simulated(name) for name in ("ring", "tree", "halving")}
fastest = {4**k: min(("ring", "tree"), key=lambda name: on_paper[name][k - 5]) for k in range(5, 11)}
Lines("size: 4 to the power of", "ms", first=5, **on_paper)

# %%
lesson.reveal("the faster one")

# %% [markdown]
# Small: few steps win. Large: few bytes win. In between lines cross. On this paper halving has both; its partners are
# far apart, though, and a real network has links that they would share. A ring needs neighbours only.
#
# And here? Your four workers, measured (solid) and simulated (dashed). Who waits for a core is slower than paper.

# %%
plans, sizes = ["ring", "tree", "halving", "direct"], [1 << 10, 1 << 16, 1 << 22]
measured = lab.measure_collectives(cluster, plans, sizes, repeats=3)
TimesView(measured)

# %% [markdown]
# ## Float sums depend on the order
#
# (a + b) + c is rounded in other places than a + (b + c). Each plan adds in an order of its own. How far are a ring and
# a halving apart, and do the four ranks of each have the same bits?

# %%
def floats(comm, plan):
    mine = np.random.default_rng(comm.rank).normal(size=1000).astype(np.float32)
    return comm.all_reduce_(mine, plan)


by_ring, by_halving = (np.stack(cluster.launch(floats, p, time_limit=30)) for p in ("ring", "halving"))
apart = float(abs(by_ring - by_halving).max())
alike = bool((by_ring == by_ring[0]).all() and (by_halving == by_halving[0]).all())
apart, alike

# %% [markdown]
# ## A plan that hangs
#
# Here everybody waits before it sends. Real workers would wait, too, until their time is up; so ask on paper first.

# %%
def all_wait(rank, world_size, n_chunks):
    yield Recv((rank - 1) % world_size, 0, 1, reduce=True)
    yield Send((rank + 1) % world_size, 0, 1)


with lesson.refusal() as why:
    check_plan("all_reduce", all_wait, 4)
why

# %% [markdown]
# ## Where this is used
#
# NCCL, MPI and Gloo make the gradients of PyTorch's and JAX's copies equal in this way, with rings and with trees.
# The next lesson trains on them.
#
# - All-reduce: every rank ends with the sum over all ranks.
# - A ring is two halves, reduce-scatter and all-gather, of n - 1 steps each.
# - Each rank sends 2 (n - 1) / n of the buffer, less than two, however many ranks there are.
# - Small buffers want few steps, large ones few bytes; another order of additions gives other last digits.
#
# The four workers stay, so that you can go back and try more. They end with the kernel. To free their memory sooner run
# `cluster.close()`; `cluster = lesson.cluster(4)` then starts new ones.

# %%
lesson
