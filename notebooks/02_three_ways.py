# %% [markdown]
# # Three ways to differentiate: what does a slope cost, and which digits of it are right?
#
# A slope can be had from values, from algebra, or from the code that ran. On paper all three agree. On a machine one
# loses half of its digits, one grows without end, and one does neither.
#
# *Working through takes 35 to 55 minutes. Running all cells takes about 15 seconds and 300 MB.*

# %%
import numpy as np

import lab
from widgets import CostView, ErrorView, GraphView, Lesson, Player, RuleView, SlopesView, SwellView

lesson = Lesson("02")

# %% [markdown]
# ## The function
#
# All three ways get this one. Change it if you like, here or later: any smooth function of one number will do.

# %%
def f(x):
    return x * lab.exp(lab.sin(x))


at = 1.0
f(at)

# %% [markdown]
# ## First way: values
#
# A slope is rise over run. So ask `f` twice, at x and a step further on. The stub forgets something: run the check,
# then mend it.

# %%
def forward_difference(f, x, h):
    return f(x + h) - f(x)


lesson.check(forward_difference)

# %% [markdown]
# One side is not fair: where the curve bends up, the slope to the right is too steep. Look as far to the left as to
# the right, and the bend cancels.

# %%
def central_difference(f, x, h):
    return (f(x + h) - f(x)) / h


lesson.check(central_difference)

# %% [markdown]
# ## How short a step?
#
# The textbook lets h go to 0: the shorter, the better. A machine keeps 16 digits. Which h is best here? Say n, for
# h = 10ⁿ.

# %%
lesson.predict("n", "of the best step 10ⁿ of a forward difference", answer=lambda: n_best, tolerance=1)

# %% [markdown]
# Now try 73 steps, with every method, each held against 50 right digits. Both axes are logarithmic: ten times lower is
# one more digit. And where is a central difference best: at a longer step, or a shorter one?

# %%
errors = lab.measure_errors(f, at)
n_best = np.log10(errors.best["forward"])
ErrorView(errors)

# %%
lesson.reveal("n")

# %% [markdown]
# Each curve is a **V**. On the right the step is too long: it sees the bend, and the error grows as h, or as h² for the
# central difference. On the left f(x + h) and f(x) agree in nearly all digits: taking one from the other leaves
# rounding, divided by a tiny h.
#
# ## A better V
#
# A central error is e with step h, and a quarter of e with h / 2. Two estimates, one unknown: get rid of it. Below the
# check all methods take a long step of 1/100, the complex one an absurdly short step.

# %%
def richardson(whole, half):
    return (whole + half) / 2


lesson.check(richardson)

# %%
forward, central = forward_difference(f, at, 0.01), central_difference(f, at, 0.01)
better = richardson(central, central_difference(f, at, 0.005))
sideways = lab.numeric_gradient(f, at, method="complex", h=1e-200)
estimates = {"forward": forward, "central": central, "richardson": better, "complex": sideways}
{way: abs(float(slope) - errors.truth) for way, slope in estimates.items()}

# %% [markdown]
# The **complex step** goes sideways, to x + ih: the slope is in the imaginary part, alone, and nothing is taken from
# anything. So its curve has no left side. But every operation has to know complex numbers, and each input takes a run.
#
# ## Second way: algebra
#
# No step, so no error of a step: write f as an expression, and apply the rules of school.

# %%
formula = lab.symbolic(f)
nested = lab.symbolic(lambda x: lab.sin(lab.sin(lab.sin(x))))
{formula: formula.diff(), nested: nested.diff()}

# %% [markdown]
# An expression is a tree: what is used twice is written twice. The derivative of sin(sin(sin x)) has 8 operations:
# 3 cosines, 3 sines and 2 products. And if sin stands 8 deep in itself?

# %%
lesson.predict("operations", "in the derivative of sin(sin(...)), 8 deep", answer=lambda: n_written, tolerance=5)

# %%
swell = lab.measure_swell(lab.sin, 8)
n_written = swell.rows[-1].n_ops
SwellView(swell)

# %%
lesson.reveal("operations")

# %% [markdown]
# sin grows with the square of the depth. Let x be used twice, as in 4x(1 − x), and the tree grows by a factor each
# time. The **tape** of the run grows by the same few operations.

# %%
SwellView(lab.measure_swell(lambda x: 4 * x * (1 - x), 6))

# %% [markdown]
# ## Third way: the code that ran
#
# The tape keeps each value once, by name. Walking it back applies the same rules of school, but to **numbers**: nothing
# is written twice, and there is no step. Press **Step** through sin(sin(sin x)).

# %%
x = lab.tensor(at, requires_grad=True, name="x")
with lab.record(detail="value") as automatic:
    lab.sin(lab.sin(lab.sin(x))).backward()
Player(GraphView(automatic))

# %% [markdown]
# ## What it costs
#
# Now many numbers: a network of n inputs and m outputs, and all n × m slopes. Differences run it n times and once more.
# Forward mode (lesson 04) runs it n times, with slopes. Reverse mode runs it once and walks back m times.
#
# With 8 outputs: from how many inputs on is reverse cheaper than forward?

# %%
lesson.predict("inputs", "from which on reverse is cheaper, with 8 outputs", answer=lambda: crossing, tolerance=8)

# %%
costs = lab.measure_cost()
crossing = costs.crossings.get(("inputs", "forward", "reverse"), np.nan)
CostView(costs)

# %%
lesson.reveal("inputs")

# %% [markdown]
# Counting passes says 8; on a machine they do not all take equally long. Differences look cheap while inputs are few:
# a plain run keeps nothing. But a loss has **one** output, so a million weights take one walk.
#
# Here is what you measured. Which way would you take for a network? To check a rule? For a formula in a paper?

# %%
deepest, many = swell.rows[-1], {row.way: row for row in costs.rows if row.n_inputs == 64}
{
    "numeric": {"least error": float(np.nanmin(errors.errors["central"])), "runs for 64 inputs": many["numeric"].runs},
    "symbolic": {"error": 0.0, "operations, 8 deep": deepest.n_ops},
    "forward": {"error": errors.automatic, "runs for 64 inputs": many["forward"].runs},
    "reverse": {"error": errors.automatic, "runs": many["reverse"].runs, "walks for 8 outputs": many["reverse"].walks},
}

# %% [markdown]
# ## Where there is no slope
#
# relu has a kink at 0: slope 0 from the left, 1 from the right, and every line of the fan touches it. A library takes
# one. Differences take another: the middle.

# %%
SlopesView(lab.measure_slopes(lab.relu, 0.0))

# %% [markdown]
# relu(x) − relu(−x) is x, for every x. So what slope does automatic differentiation give at 0?

# %%
lesson.predict("the slope", "of relu(x) - relu(-x) at 0, automatically", answer=lambda: taken)

# %%
straight = lab.measure_slopes(lambda x: lab.relu(x) - lab.relu(-x), 0.0)
taken = straight.entries[0].taken["zero"]
SlopesView(straight)

# %%
lesson.reveal("the slope")

# %% [markdown]
# It differentiates operations one by one, and never sees that kinks cancel.
#
# ## Two ways that check each other
#
# Automatic slopes are only as good as their rules. Here is one of your own, for `softmax`, which makes shares of any
# numbers: `p` is what it gave, `ct` is the gradient of p. Each entry is held against differences: from the pattern,
# what has it forgotten? Mend it, and run all three cells.

# %%
def softmax_rule(p, ct):
    return ct * p * (1 - p)


# %%
def softmax(x):
    e = lab.exp(x)
    return e / e.sum()


softmax_with_rule = lab.custom_vjp(softmax).defvjp(
    lambda x: (softmax(x), softmax(x)), lambda p, ct: (softmax_rule(p, ct),)
)
checked = lab.measure_rule(softmax_with_rule, (lab.tensor([1.0, 2.0, 0.5]),), order=1, modes=("rev",))
RuleView(checked)

# %%
lesson.check(softmax_rule)

# %% [markdown]
# ## Where this is used
#
# Every library tests its rules as you just did: `lab.check_grads`, PyTorch's `gradcheck`. Engineers take the complex
# step through old Fortran. Computer algebra serves formulas; reverse mode trains networks.
#
# - Differences: any function, half of the digits, a run for each input.
# - Algebra: all digits, but trees that swell.
# - Automatic: all digits, the cost of a few runs; at a kink it takes what its rules say.

# %%
lesson
