# %% [markdown]
# # Pipeline: why do four ranks wait for each other?
#
# A network that is too large for one machine is cut into pieces, one for each rank. But the second piece needs what the
# first one computed. Who works, who waits, and does the order of the work matter?
#
# *Working through takes 20 to 30 minutes. Running all cells takes about 60 seconds and 700 MB.*

# %%
import lab
from lab.parallel import Action, Paced, Pipeline, check_schedule, parse_table, split
from widgets import Lesson, Lines, PipelineView, Player

lesson = Lesson("15")

# %% [markdown]
# ## Four pieces
#
# A network for digits, cut into four **stages**. The cell only looks at the cut.

# %%
def network():
    layers = [lab.nn.Linear(64, 64, rng=0), lab.nn.Tanh(), lab.nn.Linear(64, 64, rng=1), lab.nn.Tanh()]
    layers += [lab.nn.Linear(64, 64, rng=2), lab.nn.Tanh(), lab.nn.Linear(64, 10, rng=3)]
    return lab.nn.Sequential(*layers)


split(network(), 4)

# %% [markdown]
# Now four **workers**, processes with a memory of their own: rank r has stage r and nothing else. An **activation**
# goes forward from rank 0 to rank 3, and a gradient comes back.

# %%
cluster = lesson.cluster(4)

# %% [markdown]
# The same training twice: in one process, and on the four ranks. Each batch is cut into 8 **micro-batches**. Will
# the weights come out alike?

# %%
lesson.predict(
    "the weights",
    "of four ranks beside those of one process",
    answer=lambda: "the same bits" if gap == 0 else "equal to 4 digits" if gap < 1e-4 else "different",
    choices=("the same bits", "equal to 4 digits", "different"),
)

# %%
train, test = lab.data.digits()
whole, pieces = network(), network()
await lab.fit(whole, train, epochs=1)
await lab.fit(pieces, train, epochs=1, on=Pipeline(cluster, n_micro=8))

# %%
pairs = zip(whole.parameters(), pieces.parameters(), strict=True)
gap = max(float(abs(a.numpy() - b.numpy()).max()) for a, b in pairs)
gap

# %%
lesson.reveal("the weights")

# %% [markdown]
# The gradients of 8 micro-batches are added in another order than those of one batch, and rounded. That is all.
#
# ## One at a time
#
# So only the time differs. These stages are so small that messages take longer than work; on a **paced** device a
# forward lasts at least 20 ms and a backward 40 ms, as if they were large.

# %%
few = lab.data.Dataset(train.inputs[:256], train.targets[:256])


def pipelined(order):
    on = Pipeline(cluster, schedule=order, n_micro=8, paced=Paced(forward_ms=20, backward_ms=40))
    return lab.fit(network(), few, epochs=1, batch_size=128, on=on, measure_every=0)


# %% [markdown]
# Two steps of training, and the picture shows the second. The simplest order: a micro-batch goes forward through all
# stages and back, then the next begins. How much of their time do the four ranks wait?
#
# Your answer is laid beside the plan on paper, with exactly 20 and 40 ms. A real run also waits for messages and for
# whatever else the machine does; what it measured is shown, too.

# %%
lesson.predict("waiting", "in percent, one micro-batch at a time", answer=lambda: waits_simply, unit="%", tolerance=1)

# %%
one_by_one = pipelined("naive")
await one_by_one
Player(PipelineView(one_by_one))

# %%
def waiting(run):
    done = run.recording.columns(lab.events.ActionFinished)
    start, end = done["start_ns"][-64:], done["end_ns"][-64:]  # of the last step
    return 100 * (1 - (end - start).sum() / (4 * (end.max() - start.min())))


def on_paper(order):
    return 100 * check_schedule(order, n_ranks=4, n_micro=8, forward=20, backward=40).bubble


waits_simply = on_paper("naive")
{"on paper": waits_simply, "measured": float(waiting(one_by_one))}

# %%
lesson.reveal("waiting")

# %% [markdown]
# ## All forward, then all back
#
# While rank 0 waits for its gradient it can send the next micro-batch ahead. In this order, called GPipe, all 8 go
# forward first. What is left of the waiting is called the **bubble**.

# %%
lesson.predict("the bubble", "in percent, with GPipe", answer=lambda: waits_gpipe, unit="%", tolerance=1)

# %%
gpipe = pipelined("gpipe")
await gpipe
PipelineView(gpipe)

# %%
waits_gpipe = on_paper("gpipe")
{"on paper": waits_gpipe, "measured": float(waiting(gpipe))}

# %%
lesson.reveal("the bubble")

# %% [markdown]
# ## Build it: the bubble
#
# Count in the picture: the last rank waits for its first micro-batch until the n - 1 others are done, and has nothing
# to do while the last gradients travel back. Write the share of time that is lost, 0 to 1.

# %%
def bubble(n_ranks, n_micro):
    return n_ranks / n_micro


lesson.check(bubble)

# %%
sizes = range(1, 33)
reports = [check_schedule("gpipe", n_ranks=4, n_micro=m) for m in sizes]
Lines("micro-batches", "share of waiting", first=1, four_ranks=[report.bubble for report in reports])

# %% [markdown]
# More micro-batches, less waiting. What does it cost? A rank keeps each activation until its gradient has come back.
# Look at the grey steps below the bars.

# %%
lesson.predict("activations", "that rank 0 keeps at once, with GPipe", answer=lambda: kept)

# %%
done = gpipe.recording.columns(lab.events.ActionFinished)
kept = int(done["n_live"][done["rank"] == 0].max())

# %%
lesson.reveal("activations")

# %% [markdown]
# ## Build it: your own order
#
# Eight micro-batches, eight activations, on every rank. Do better: rank r may keep at most `n_ranks - r`, and the
# whole must not take longer. `Action("F", rank, m)` is the forward of micro-batch m, "B" its backward.

# %%
def my_schedule(rank, n_ranks, n_micro):
    for m in range(n_micro):
        yield Action("F", rank, m)
    for m in range(n_micro):
        yield Action("B", rank, m)


lesson.check(my_schedule)

# %% [markdown]
# Now the ranks follow your order. Compare the grey steps with those above.

# %%
own = pipelined(my_schedule)
await own
PipelineView(own)

# %% [markdown]
# ## Break it: an order that hangs
#
# An order can be written as text, one line for each rank. Here rank 0 wants its first gradient back before it sends the
# second micro-batch, and rank 1 wants the second micro-batch first. It is refused before anything starts. The refusal
# puts the stage first: 0B0 is, on stage 0, the backward (B) of micro-batch 0.

# %%
with lesson.refusal() as why:
    hangs = parse_table("F0 B0 F1 B1\nF0 F1 B0 B1")
    lab.fit(network(), few, on=Pipeline(cluster, schedule=hangs, n_stages=2, n_micro=2))
why

# %% [markdown]
# ## Where this is used
#
# Large language models are trained this way, together with copies whose gradients are made equal (lesson 10). The order
# that keeps few activations is called 1F1B: one forward, one backward.
#
# - A pipeline computes what one process computes; only the time differs.
# - Of n ranks' time with m micro-batches, (n - 1) / (m + n - 1) is waiting.
# - The order decides how many activations are kept: backward as soon as you can.
#
# The four workers stay, so that you can go back and try more. They end with the kernel. To free their memory sooner run
# `cluster.close()`; `cluster = lesson.cluster(4)` then starts new ones.

# %%
lesson
