# %% [markdown]
# # Pipeline: why do four ranks wait for each other?
#
# A network too large for one machine is cut into pieces, one for each rank. But the second piece needs what the first
# one computed. Who works, who waits, and does the order of the work matter?
#
# *Working through takes 20 to 30 minutes. Running all cells takes about 40 seconds and 850 MB.*

# %%
import numpy as np

import lab
from lab.parallel import Action, Paced, Pipeline, check_schedule, parse_table, split
from widgets import Lesson, Lines, PipelineView, Player

lesson = Lesson("15")

# %% [markdown]
# ## Four pieces
#
# The digits network, seven layers long, cut into four **stages**. The next cell only looks at the cut.

# %%
def network():
    sizes = [(64, 64), (64, 64), (64, 64), (64, 10)]
    layers = [lab.nn.Linear(*size, rng=i) for i, size in enumerate(sizes)]
    return lab.nn.Sequential(*(x for layer in layers[:-1] for x in (layer, lab.nn.Tanh())), layers[-1])


split(network(), 4)

# %% [markdown]
# Four workers, one for each stage. **Forward**, an activation goes from stage 0 to stage 3. **Backward**, a gradient
# comes from stage 3 to stage 0. Each batch is cut into 8 **micro-batches** that follow each other.

# %%
cluster = lesson.cluster(4)

# %% [markdown]
# Our stages are so small that messages would take longer than work. So this is a **paced device**: a forward lasts at
# least 20 ms and a backward 40 ms, as if stages were large. The pictures say "paced".

# %%
train, test = lab.data.digits()
few = lab.data.Dataset(train.inputs[:128], train.targets[:128])


def pipelined(order):
    on = Pipeline(cluster, schedule=order, n_micro=8, paced=Paced(forward_ms=20, backward_ms=40))
    return lab.fit(network(), few, epochs=1, batch_size=128, on=on, measure_every=0)


# %% [markdown]
# ## One at a time
#
# The simplest order: a micro-batch goes forwards through all stages and back, then the next one begins.

# %%
lesson.predict("waiting, one at a time", "share of their time in which the four ranks wait", unit="%", tolerance=3,
               answer=lambda: 100 * slow.bubble)  # fmt: skip

# %%
one_by_one = pipelined("naive")
await one_by_one
Player(PipelineView(one_by_one))

# %%
slow = check_schedule("naive", n_ranks=4, n_micro=8)
lesson.reveal("waiting, one at a time")

# %% [markdown]
# ## All forwards, then all backwards
#
# Stage 0 need not wait: it can take the next micro-batch at once. This order is called GPipe. What is left of the
# waiting is called the **bubble**.

# %%
lesson.predict("waiting, GPipe", "share of their time in which the four ranks wait", unit="%", tolerance=3,
               answer=lambda: 100 * quick.bubble)  # fmt: skip

# %%
gpipe = pipelined("gpipe")
await gpipe
Player(PipelineView(gpipe))

# %%
quick = check_schedule("gpipe", n_ranks=4, n_micro=8)
lesson.reveal("waiting, GPipe")
