# %% [markdown]
# # Start here: which way should a weight move?
#
# A network is wrong about a digit. Thousands of weights took part: which way should each of them move, and how far?
# One walk backward through the computation answers for all of them at once.
#
# *Working through takes 20 to 35 minutes. Running all cells takes about 40 seconds and 700 MB.*

# %%
import lab
from widgets import DataParallelView, GraphView, Lesson, Lines, Player, dashboard, tangent

lesson = Lesson("00")

# %% [markdown]
# ## The question
#
# Two numbers, one formula. While it runs, the lab writes down each operation: that record is the **graph** below.
# It was drawn from the run, not by hand. Results are numbered as they come, v₁, v₂ and so on: the last one is z.

# %%
x = lab.tensor(2.0, requires_grad=True, name="x")
y = lab.tensor(3.0, requires_grad=True, name="y")
with lab.record(detail="value") as forward:
    z = x * y + x
GraphView(forward)

# %% [markdown]
# If x grew by a tiny bit, by how many times that bit would z grow? That number is the **gradient** of x, written dz/dx.
#
# Say what you expect before you see it. A wrong prediction teaches more than a right one.

# %%
lesson.predict("dz/dx", "for z = x * y + x, where x = 2 and y = 3", answer=lambda: x.grad.item())

# %%
lesson.predict("dz/dy", "for the same z", answer=lambda: y.grad.item())

# %% [markdown]
# ## The walk backward
#
# `z.backward()` starts at z with gradient 1 and goes against the arrows. Press **Step** and watch: which rule runs
# first? What does each arrow carry? Click a box to see its value, its rule and its line of code.

# %%
x.zero_grad(), y.zero_grad()
with lab.record(detail="value") as both_ways:
    z = x * y + x
    z.backward()
Player(GraphView(both_ways))

# %%
lesson.reveal("dz/dx")

# %%
lesson.reveal("dz/dy")

# %% [markdown]
# ## The rule
#
# Along one path slopes **multiply**: a product passes on `ct`, the gradient that comes in from the side of z (short for
# cotangent), times the *other* factor.
# Where paths meet they **add up**: x is used twice, so it gets 3 from the product and 1 from the sum.
#
# These are the rules that ran, read from the table of operations:

# %%
product = lab.ops.PRIMITIVES["multiply"]
{argument: product.rule_text(i) for i, argument in enumerate(product.arguments)}

# %% [markdown]
# ## One number, one curve
#
# Now the computation of the textbook, y = 2x² + 1, with `w` for x, because from here on it is a **weight**,
# and what it gives is a **loss**: the number that training makes small.

# %%
lesson.predict(
    "dloss/dw",
    "the slope of loss = 2 * w**2 + 1 at w = 3",
    answer=lambda: w.grad.item(),
    plot=tangent(lambda w: 2 * w**2 + 1, at=3.0),
)

# %%
w = lab.tensor(3.0, requires_grad=True, name="w")
with lab.record(detail="value") as parabola:
    loss = 2 * w**2 + 1
    loss.backward()
Player(GraphView(parabola))

# %%
lesson.reveal("dloss/dw")

# %% [markdown]
# The square passes on 2w, the factor 2 doubles it: 4w. The sum with 1 changes nothing.
#
# The slope is positive, so a **smaller** w makes the loss smaller. That is the answer to the question at the top.
#
# ## A second walk
#
# Gradients are *added* to `.grad`, not written over it: that is what lets paths add up. What if we walk twice?

# %%
lesson.predict("u.grad", "after 2 * u**2 + 1 ran twice, forward and backward, at u = 3", answer=lambda: u.grad.item())

# %%
u = lab.tensor(3.0, requires_grad=True, name="u")
for _ in range(2):
    twice = 2 * u**2 + 1
    twice.backward()
u.grad

# %%
lesson.reveal("u.grad")

# %% [markdown]
# ## Break it: forget to clear
#
# Training repeats three things: clear the gradients, walk backward, step against the slope.
# Leave out the first. What happens to the loss?

# %%
lesson.predict(
    "the last loss",
    "of 30 steps without zero_grad, beside the same steps with it",
    answer=lambda: "lower" if kept[-1] < cleared[-1] else "higher" if kept[-1] > cleared[-1] else "equal",
    choices=("lower", "equal", "higher"),
)

# %%
def descend(clear, n_steps=30):
    v = lab.tensor(3.0, requires_grad=True)
    optimizer = lab.optim.SGD([v], learning_rate=0.02)
    losses = []
    for _ in range(n_steps):
        if clear:
            optimizer.zero_grad()
        loss = 2 * v**2 + 1
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %%
cleared, kept = descend(clear=True), descend(clear=False)
Lines("step", "loss", cleared=cleared, never_cleared=kept)

# %%
lesson.reveal("the last loss")

# %% [markdown]
# Each step also walks along all earlier slopes, like a ball that rolls through the valley and up the other side.
#
# ## Build it
#
# Write the rule of multiplication yourself. The stub has the rule of addition: run the check, then mend it.

# %%
def multiply_rule(ct, x, y):
    return ct, ct


lesson.check(multiply_rule)

# %% [markdown]
# Now the loop of training. `loss()` computes the loss from the weights as they are; `optimizer` has `zero_grad()`
# and `step()`. The stub makes the mistake that you have just seen.

# %%
def training_loop(loss, optimizer, n_steps):
    for _ in range(n_steps):
        loss().backward()
        optimizer.step()


lesson.check(training_loop)

# %% [markdown]
# ## The same walk, 4,810 weights
#
# Real handwritten digits, 8 x 8 pixels each, and a network of two layers. One training step on 64 of them has a graph,
# too: the same rules, with arrays in place of numbers.

# %%
train, test = lab.data.digits()


def network():
    return lab.nn.Sequential(lab.nn.Linear(64, 64, rng=0), lab.nn.Tanh(), lab.nn.Linear(64, 10, rng=1))


with lab.record(detail="statistics") as one_step:
    loss = lab.cross_entropy(network()(lab.tensor(train.inputs[:64])), train.targets[:64])
    loss.backward()
Player(GraphView(one_step, direction="down"))

# %%
lesson.predict("right digits", "out of 100 new ones, after training", answer=lambda: 100 * result.accuracy, tolerance=2)

# %% [markdown]
# ## Train it, live
#
# The cell makes a fresh network and trains it in the background. **Pause** it, do one **Step**, go on, move the
# **learning rate**: what happens to loss and gradients? Too far to the right and the loss explodes; a button then
# brings the last sound state back.

# %%
model = network()
optimizer = lab.optim.SGD(model.parameters(), learning_rate=0.05)
run = lab.fit(model, train, validation=test, optimizer=optimizer, epochs=150)
dashboard(run)

# %%
result = await run
result

# %%
lesson.reveal("right digits")

# %% [markdown]
# ## Four copies
#
# Now four **workers**, processes of their own, train together. Each has a copy of the network and takes a quarter of
# every batch: pictures say **replica** and **shard**. Then they add up their gradients, so that all make the same step.
#
# Do they end with the weights that one process finds?

# %%
lesson.predict(
    "the weights",
    "of four workers beside those of one process, after 5 rounds through the data",
    answer=lambda: "the same bits" if apart == 0 else "equal to 3 digits" if apart < 1e-3 else "different",
    choices=("the same bits", "equal to 3 digits", "different"),
)

# %%
cluster = lesson.cluster(4)
copies = network()
four = lab.fit(copies, train, validation=test, epochs=5, on=lab.parallel.DataParallel(cluster))
dashboard(four)

# %%
DataParallelView(four)

# %%
alone = network()
await four
await lab.fit(alone, train, epochs=5)
pairs = zip(alone.parameters(), copies.parameters(), strict=True)
apart = max(float(abs(a.numpy() - b.numpy()).max()) for a, b in pairs)
apart

# %%
lesson.reveal("the weights")

# %% [markdown]
# They add the same numbers in another order, and each sum is rounded: the weights differ in the last digits.
# How the four sums become equal is lesson 10.
#
# ## Where this is used
#
# PyTorch, TensorFlow and JAX do the same walk; they differ in when the graph is made and what is done with it before it
# runs. All of them train copies on many machines as these four workers did.
#
# - Along a path slopes multiply; where paths meet they add.
# - One walk backward gives the gradient of every weight.
# - Clear, walk, step: that is training. Many can do it together if they add up their gradients.
#
# The four workers stay, so that you can go back and try more. They end with the kernel. To free their memory sooner run
# `cluster.close()`; `cluster = lesson.cluster(4)` then starts new ones.

# %%
lesson
