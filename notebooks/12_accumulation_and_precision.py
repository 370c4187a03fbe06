# %% [markdown]
# # Accumulation: can a small memory take a large batch?
#
# A step on 256 images needs more memory than there is. Gradients can be added, so do it in parts and update once. What
# does that save, what does it cost, and how do you notice that the parts were weighed wrongly?
#
# *Working through takes 25 to 40 minutes. Running all cells takes about 45 seconds and 720 MB.*

# %%
import numpy as np

import lab
from lab.parallel import DataParallel
from lab.training import Counted
from widgets import AccumulationView, Lesson, MeansView

lesson = Lesson("12")

# %%
cluster = lesson.cluster(4)

# %% [markdown]
# ## A step in four parts
#
# A small convolutional network and 256 images of digits, 28 x 28 pixels. Once as one batch, once as four
# **micro-batches** of 64: forward and backward for each, gradients are added, then one update.

# %%
lesson.predict("the memory", "of the step in four parts, of that of the whole", answer=lambda: percent, unit="%",
               tolerance=5)  # fmt: skip

# %%
images = lab.data.digits28("train")


def network():
    return lab.nn.convnet(28, (1, 8, 16), 10, rng=0)


two = lab.measure_accumulation(network, images, (256, 64), rounds=1)
whole, parts = two.rows
percent = round(100 * parts.peak_bytes / whole.peak_bytes)
two

# %%
lesson.reveal("the memory")

# %% [markdown]
# What backward needs is kept for 64 images instead of 256. But gradients and parameters stay whole, so it is a little
# more than a quarter.
#
# ## Smaller and smaller
#
# Say the limit is 8 MiB. Which micro-batches fit? And what happens to the time, if the work stays the same?

# %%
lesson.predict("the time", "of a step in 128 micro-batches of 2 images, beside that of the whole batch, is",
               choices=["shorter", "the same within 30 %", "longer"], answer=lambda: time)  # fmt: skip

# %%
sizes = lab.measure_accumulation(network, images, (256, 64, 16, 4, 2), limit=8 << 20)
ratio = sizes.rows[-1].elapsed_ms / sizes.rows[0].elapsed_ms
time = "shorter" if ratio < 0.7 else "the same within 30 %" if ratio <= 1.3 else "longer"
AccumulationView(sizes)

# %%
lesson.reveal("the time")

# %% [markdown]
# Each operation costs something, however small its arrays are. So the best micro-batch is the largest that fits. The
# gradient is the same but for rounding.
#
# ## Build it: the fewest parts
#
# `fixed` bytes are there anyway, each example of a micro-batch takes `per_example` more.

# %%
def fewest_parts(n_examples, fixed, per_example, limit):
    return 1


lesson.check(fewest_parts)

# %% [markdown]
# ## Lines of text
#
# Lines are short and long. They are filled up with padding, and a loss is a mean over **tokens**, here characters,
# without the padding. Eight lines are a batch, each line is a micro-batch.

# %%
lines, _ = lab.data.lines(n_places=48)
lengths = (lines.targets >= 0).sum(axis=1)
[(lab.data.spelled(row[1:n]), int(n)) for row, n in zip(lines.inputs[40:44], lengths[40:44], strict=True)]

# %%
def over_tokens(scores, targets):
    is_token = targets >= 0
    each = lab.cross_entropy(scores, np.maximum(targets, 0), reduction="none")
    return (each * is_token).sum() / is_token.sum()


loss = Counted(over_tokens, lambda targets: (targets >= 0).sum(axis=1))

# %% [markdown]
# ## Build it: what a part weighs
#
# `counts` are the tokens of each micro-batch. What must its mean loss be multiplied by? The stub takes the mean of the
# means.

# %%
def shares(counts):
    return [1 / len(counts) for _ in counts]


lesson.check(shares)

# %% [markdown]
# ## Break it: two mistakes
#
# Four trainings on the same batches: whole; in micro-batches weighed by count; the mean of their means; and their sum
# without any division.

# %%
lesson.predict("the gradient", "of 8 equal micro-batches, added and not divided, is that of the batch times",
               answer=lambda: times, tolerance=0.01)  # fmt: skip

# %%
def reader():
    return lab.nn.Sequential(lab.nn.Embedding(96, 16, rng=0), lab.nn.Linear(16, 96, rng=1))


means = lab.compare_means(reader, lines, 8, loss=loss, batch_size=8, learning_rate=2.0)
MeansView(means)

# %%
def gradient(accumulate):
    model = reader()
    before, full = model[1].weight.numpy().copy(), np.flatnonzero(lengths == 48)[:8]
    some = lab.data.Dataset(lines.inputs[full], lines.targets[full])
    optimizer = lab.optim.SGD(model.parameters(), 1.0)
    lab.fit(model, some, loss=loss, batch_size=8, epochs=1, optimizer=optimizer, accumulate=accumulate).wait()
    return before - model[1].weight.numpy()


undivided = gradient(lab.Accumulation(8, mean="none"))
times = float(np.linalg.norm(undivided) / np.linalg.norm(gradient(1)))
round(times, 2)

# %%
lesson.reveal("the gradient")

# %% [markdown]
# No division is loud: it is a learning rate 8 times as large, and here the loss leaves the frame. The mean of means is
# quiet: it learns, a little off. Look at the lower picture: rounding is at 10⁻⁷, a mistake is far above.
#
# ## What it does to the learning rate
#
# Eight times the batch is an eighth of the updates. Two epochs on digits: batches of 32; 256 as 8 x 32 at the same
# rate; the same at 8 times the rate.

# %%
lesson.predict("the loss", "on digits that were never seen is highest for",
               choices=["32", "8 x 32, same rate", "8 x 32, 8 times the rate"], answer=lambda: highest)  # fmt: skip

# %%
digits, unseen = lab.data.digits()


def learned(batch_size, accumulate, rate):
    model = lab.nn.mlp(64, 32, 10, rng=0)
    optimizer = lab.optim.SGD(model.parameters(), rate)
    lab.fit(model, digits, batch_size=batch_size, accumulate=accumulate, epochs=2, optimizer=optimizer).wait()
    return lab.evaluate(model, unseen).loss


found = {"32": learned(32, 1, 0.1), "8 x 32, same rate": learned(256, 8, 0.1)}
found["8 x 32, 8 times the rate"] = learned(256, 8, 0.8)
highest = max(found, key=found.get)
found

# %%
lesson.reveal("the loss")

# %% [markdown]
# ## On four workers
#
# Each worker cuts its quarter of the batch into 4 micro-batches. Sums over workers need not be made four times: once a
# step gives the same. Torch calls that `no_sync`. How many times the bytes if it is done after every micro-batch?

# %%
lesson.predict("the bytes", "that travel, with a sum after each of 4 micro-batches, beside one sum a step",
               answer=lambda: more, unit="times", tolerance=0.5)  # fmt: skip

# %%
async def travelled(sync):
    on = DataParallel(cluster, sync=sync)
    run = lab.fit(lab.nn.mlp(64, 32, 10, rng=0), digits, batch_size=512, epochs=1, accumulate=4, on=on)
    await run
    return int(run.recording.columns(lab.events.ChunkMoved)["n_bytes"].sum())


# %%
once, each_time = await travelled("step"), await travelled("micro-batch")
more = each_time / once
once, each_time

# %%
lesson.reveal("the bytes")

# %% [markdown]
# ## Where this is used
#
# Large models are trained in this way: `gradient_accumulation_steps` in Hugging Face, `no_sync` in PyTorch,
# micro-batches in pipelines.
#
# - Gradients add, so memory is for a micro-batch, and the update is that of the batch.
# - Weigh by what was counted, once over all: a mean of means is quietly wrong.
# - The batch is larger: fewer updates, so the learning rate has to be thought about again.
#
# The four workers stay, so that you can go back and try more. They end with the kernel. To free their memory sooner run
# `cluster.close()`; `cluster = lesson.cluster(4)` then starts new ones.

# %%
lesson
