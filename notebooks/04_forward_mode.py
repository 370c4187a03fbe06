# %% [markdown]
# # Forward mode: how much of a Jacobian does one pass know?
#
# Reverse mode walks back. But a slope can also travel **with** the numbers, forward, and nothing has to be kept. What
# is that good for? Jacobians, second derivatives without their matrix, and many examples at once.
#
# *Working through takes 35 to 55 minutes. Running all cells takes about 15 seconds and 300 MB.*

# %%
import timeit

import numpy as np

import lab
from lab.teach.dual import Dual as Usual
from widgets import DualView, Lesson, Lines, Player, VmapView

lesson = Lesson("04")

# %% [markdown]
# ## A number with a tangent
#
# Let x move at speed x′. Then x is really x + x′ε, where ε is so small that ε² is 0. That pair is a **dual number**; x′
# is its **tangent**.
#
# Multiply (x + x′ε)(y + y′ε): what stands before ε? And how fast does sin x move? The sum is right already. Mend the
# other two.

# %%
class Dual:
    def __init__(self, value, tangent=0.0):
        self.value, self.tangent = value, tangent

    def __add__(self, other):
        return Dual(self.value + other.value, self.tangent + other.tangent)

    def __mul__(self, other):
        return Dual(self.value * other.value, self.tangent * other.tangent)

    def sin(self):
        return Dual(np.sin(self.value), self.tangent)


lesson.check(Dual)

# %% [markdown]
# ## One pass, one direction
#
# `lab.jvp` does the same for arrays: it takes where x and y are, and how fast each moves. Here x = 0 and y = 3; x moves
# at 2, y at 5. How fast does z = x · y + sin x move?

# %%
lesson.predict("the speed of z", "where x = 0 moves at 2 and y = 3 moves at 5", answer=lambda: speed.item())

# %%
def f(x, y):
    return x * y + x.sin()


with lab.record(detail="value") as forward:
    value, speed = lab.jvp(f, (0.0, 3.0), (2.0, 5.0))
Player(DualView(forward))

# %%
lesson.reveal("the speed of z")

# %% [markdown]
# Press **Step**: value and tangent come together, and there is no way back. Your own numbers, through the same `f`:

# %%
z = f(Dual(0.0, 2.0), Dual(3.0, 5.0))
{"yours": (float(z.value), float(z.tangent)), "the lab's": (value.item(), speed.item())}

# %% [markdown]
# ## Columns
#
# A function of many numbers that gives many has a table of slopes, the **Jacobian**: a row for each result, a column
# for each input. Let one input move, at speed 1: the tangents are one column.
#
# The stub goes along every input. What is wrong with its table?

# %%
def jacobian(f, x):
    tangents = [lab.jvp(f, (x,), (direction,))[1].numpy() for direction in np.eye(x.size)]
    return np.array(tangents)


lesson.check(jacobian)

# %% [markdown]
# ## Rows
#
# `lab.vjp` is the walk back of lesson 03. It runs once and gives `back`: start with 1 at one result, and it gives one
# **row**. Here are two rows, beside your three columns.

# %%
mix, point = np.array([[1.0, 2.0], [0.0, 1.0], [-1.0, 0.5]]), np.array([1.0, -2.0, 0.5])


def three_to_two(x):
    return lab.tanh(x @ mix)


values, back = lab.vjp(three_to_two, point)
rows = [back(result)[0].numpy() for result in np.eye(2)]
{"by rows": np.array(rows), "by columns": jacobian(three_to_two, point)}

# %% [markdown]
# So there are two ways to fill the table: `lab.jacfwd` by columns, `lab.jacrev` by rows. Which is cheaper for 4 inputs
# and 1,000 results?

# %%
lesson.predict(
    "the cheaper way",
    "to the Jacobian of a layer with 4 inputs and 1,000 results",
    answer=lambda: "jacfwd" if times["4 to 1000"]["jacfwd"] < times["4 to 1000"]["jacrev"] else "jacrev",
    choices=("jacfwd", "jacrev"),
)

# %%
def milliseconds(run):
    return round(1e3 * min(timeit.repeat(run, number=1, repeat=5)), 2)


def both_ways(n_in, n_out):
    weights, x = rng.normal(size=(n_in, n_out)), rng.normal(size=n_in)
    ways = {"jacfwd": lab.jacfwd, "jacrev": lab.jacrev}
    return {name: milliseconds(lambda way=way: way(lambda x: lab.tanh(x @ weights))(x)) for name, way in ways.items()}


rng = np.random.default_rng(0)
times = {"4 to 1000": both_ways(4, 1000), "1000 to 4": both_ways(1000, 4)}
times

# %%
lesson.reveal("the cheaper way")

# %% [markdown]
# Columns are as many as inputs, rows as many as results: take the fewer. Both give the same table, and a loss has one
# row: its gradient.
#
# ## Second derivatives
#
# A gradient is a function from n numbers to n. Its Jacobian is the **Hessian**. By columns, of what was made by rows:
# forward over reverse.

# %%
def bowl(x):
    return lab.tanh(x).sum() * (x * x).sum()


lab.jacfwd(lab.jacrev(bowl))(np.array([0.5, -1.0, 2.0]))

# %% [markdown]
# For n weights that is n × n numbers. But one often needs only the Hessian times a direction v: how the gradient
# changes along v. The stub makes the whole matrix for it, and the check has half a million weights.

# %%
def hvp(f, x, v):
    return lab.hessian(f)(x) @ v


lesson.check(hvp)

# %% [markdown]
# A gradient costs a few runs, however many weights there are. With 512 of them: how much more does the Hessian times
# one direction cost, done without the matrix?

# %%
lesson.predict(
    "the product",
    "of a Hessian of 512 weights and a direction costs",
    answer=lambda: "a few gradients" if share < 20 else "about 512 gradients" if share < 5000 else "more",
    choices=("a few gradients", "about 512 gradients", "more"),
)

# %%
def costs(n):
    x, v = rng.normal(size=n), rng.normal(size=n)
    ways = lambda: lab.grad(bowl)(x), lambda: lab.hvp(bowl, (x,), (v,)), lambda: lab.hessian(bowl)(x)
    return [milliseconds(way) for way in ways]


measured = [costs(2**k) for k in range(4, 10)]
gradient, product, matrix = ([max(ms, 0.01) for ms in column] for column in zip(*measured))
share = product[-1] / gradient[-1]
Lines("weights, as a power of 2", "ms", first=4, gradient=gradient, product=product, matrix=matrix)

# %%
lesson.reveal("the product")

# %% [markdown]
# ## Many at once
#
# You write a function of one example; `vmap` runs it **once**, for all. So your loop over directions becomes one line.
# Each direction gives a column, and `out_axes=1` lays them side by side: this is `jacfwd`.

# %%
lab.vmap(lambda direction: lab.jvp(three_to_two, (point,), (direction,))[1], out_axes=1)(np.eye(3))

# %% [markdown]
# And what happens to the shapes inside? Four examples of 3 numbers come as **columns**, so the shape is (3, 4). What
# shape has the result?

# %%
lesson.predict(
    "the shape",
    "of vmap(one, in_axes=1) on (3, 4), where one goes from 3 numbers to 2",
    answer=lambda: f"{out.shape}",
    choices=("(2,)", "(2, 4)", "(4, 2)", "(4, 3)"),
)

# %%
weights = lab.tensor(rng.normal(size=(3, 2)))


def one(x):
    return lab.tanh(x / x.sum()) @ weights


with lab.record() as mapped:
    out = lab.vmap(one, in_axes=1)(rng.normal(size=(3, 4)))
VmapView(mapped)

# %%
lesson.reveal("the shape")

# %% [markdown]
# Each operation gets one more axis, in front. That is where it stays in the result, unless `out_axes` says otherwise.
#
# ## A gradient for each example
#
# Transforms nest. `grad` of the loss of one digit, then `vmap` over 64 digits, with the same weights for all (`None`).

# %%
lesson.predict(
    "the gradients",
    "of 64 digits for weights of shape (64, 10), one gradient each",
    answer=lambda: f"{each.shape}",
    choices=("(64, 10)", "(64, 64, 10)", "(64, 64, 64, 10)"),
)

# %%
digits = lab.data.digits()[0]
pixels, wanted = digits.inputs[:64].astype(float), np.eye(10)[digits.targets[:64]]


def loss(layer, x, t):
    return ((x @ layer - t) ** 2).sum()


layer = lab.tensor(rng.normal(size=(64, 10)) / 8)
each = lab.vmap(lab.grad(loss), in_axes=(None, 0, 0))(layer, pixels, wanted)
at_once = lab.grad(loss)(layer, pixels, wanted)
apart = float(abs(each.sum(axis=0).numpy() - at_once.numpy()).max())
{"shape": each.shape, "their sum, less the gradient of all": apart}

# %%
lesson.reveal("the gradients")

# %% [markdown]
# ## One tangent too many
#
# What if one derivative stands inside another? At x = 1 and y = 1:
#
# d/dx of x · (d/dy of x + y). The inner slope is 1, so it is d/dx of x, which is 1. `Usual` is your class, as many
# articles have it. What does it say?

# %%
lesson.predict("the outer slope", "by the usual dual numbers", answer=lambda: confused)

# %%
def slope(f, x):
    return f(Usual(x, 1.0)).tangent


confused = slope(lambda x: x * Usual(slope(lambda y: x + y, 1.0)), 1.0)
right = lab.grad(lambda x: x * lab.grad(lambda y: x + y)(1.0))(1.0)
{"dual numbers": confused, "lab.grad": right.item()}

# %%
lesson.reveal("the outer slope")

# %% [markdown]
# Inside, x still carries the tangent of the outer derivative, and the inner one takes it for its own: **perturbation
# confusion**. The lab marks each tangent with the derivative that it belongs to.
#
# ## Where this is used
#
# `torch.func` and JAX have the same transforms. Products with a Hessian drive Newton's method on networks and find how
# sharp a minimum is; a gradient for each example clips what one person's data may change.
#
# - Forward: one direction a pass, a column; reverse: one result a walk, a row.
# - The Hessian times a direction is a jvp of a gradient, and costs a few of them.
# - Write it for one; `vmap` runs it for many.

# %%
lesson
