# %% [markdown]
# # Watching gradients: why does a deep network not learn?
#
# Ten layers, real digits, code without a fault: and after training it guesses. Nothing says why. Where is the
# gradient lost, and what brings it back?
#
# *Working through takes 25 to 40 minutes. Running all cells takes about 20 seconds and 350 MB.*

# %%
import numpy as np

import lab
from lab.nn import Linear, ReLU, Sequential, Sigmoid, Tanh
from widgets import GradientView, LayersView, Lesson, Lines, LossView, Player

lesson = Lesson("05")

# %% [markdown]
# ## Ten layers
#
# 64 pixels, nine layers of 64 units, 10 digits. Only the **activation** between the layers and the **init**, the rule
# that draws the first weights, will change.

# %%
train, test = lab.data.digits()


def deep(activation, init, n_layers=10):
    rng, layers = np.random.default_rng(0), []
    for _ in range(n_layers - 1):
        layers += [Linear(64, 64, init=init, rng=rng), activation()]
    return Sequential(*layers, Linear(64, 10, init=init, rng=rng))


# %% [markdown]
# How large is the gradient of each layer's weights, before any training? One walk back tells: per layer the root of the
# mean square, over 256 digits.

# %%
def gradient_sizes(model):
    loss = lab.cross_entropy(model(lab.tensor(train.inputs[:256])), train.targets[:256])
    loss.backward()
    weights = [layer.weight for layer in model if isinstance(layer, Linear)]
    return [float(np.sqrt((weight.grad.numpy() ** 2).mean())) for weight in weights]


# %% [markdown]
# ## Vanishing
#
# A sigmoid is steepest at 0, with slope 1/4. Slopes along a path multiply, and from the last layer to the first there
# are nine sigmoids.
#
# Say the last layer's gradient is 10ⁿ times as large as the first's. What is n?

# %%
lesson.predict("n", "for sigmoid: ten layers, a factor of 10 to the n", answer=lambda: n_zeros, tolerance=0.5)

# %%
with_sigmoid = np.log10(gradient_sizes(deep(Sigmoid, "xavier")))
with_tanh = np.log10(gradient_sizes(deep(Tanh, "xavier")))
n_zeros = with_sigmoid[-1] - with_sigmoid[0]
Lines("layer", "log10 of the gradient", first=1, sigmoid=with_sigmoid.tolist(), tanh=with_tanh.tolist())

# %%
lesson.reveal("n")

# %% [markdown]
# Layer by layer the gradient gets about four times smaller: that is the slope of a sigmoid, nine times over. tanh has
# slope 1 at 0, and its curve is flat.
#
# ## What it does to training
#
# Both networks get five rounds through the digits, with Adam. How many of 100 new digits will the sigmoids get right?

# %%
lesson.predict("right digits", "of 100, with sigmoid", answer=lambda: 100 * result.accuracy, tolerance=3)

# %%
vanishing = lab.fit(deep(Sigmoid, "xavier"), train, validation=test, epochs=5)
result = await vanishing
LossView(vanishing)

# %%
lesson.reveal("right digits")

# %% [markdown]
# A guess is right once in ten. The loss stays where ten equal guesses put it, at ln 10 = 2.3, and nothing ever
# failed. Only the gradients tell: choose the first layer's weight, then the last one's.

# %%
GradientView(vanishing)

# %% [markdown]
# Or all layers at once, in the order in which they run, at the first step and the last. What goes forward keeps its
# size; what comes back falls over five powers of ten.

# %%
LayersView(vanishing)

# %%
steady = lab.fit(deep(Tanh, "xavier"), train, validation=test, epochs=5)
await steady

# %% [markdown]
# ## Exploding
#
# Now relu: slope 1, or 0. Draw the weights from a normal distribution with spread 1, which sounds harmless. What does
# the first layer's gradient do?

# %%
lesson.predict(
    "the first gradient",
    "of ten layers of relu with weights of spread 1",
    answer=lambda: "vanishes" if exploded[0] < -4 else "explodes" if exploded[0] > 4 else "stays near 1",
    choices=("vanishes", "stays near 1", "explodes"),
)

# %%
def normal(spread):
    return lambda n_in, n_out, rng: spread * rng.normal(size=(n_in, n_out))


exploded = np.log10(gradient_sizes(deep(ReLU, normal(1.0))))
shrunk = np.log10(gradient_sizes(deep(ReLU, normal(0.01))))
curves = {"spread 1": exploded.tolist(), "spread 0.01": shrunk.tolist()}
Lines("layer", "log10 of the gradient", first=1, **curves)

# %%
lesson.reveal("the first gradient")

# %% [markdown]
# A unit adds up 64 products, so each layer makes the signal larger, here about sixfold, and the gradient on its way
# back too. Every layer gets the product of both: the curves are flat, and far off. Between 0.01 and 1 lies a spread
# that keeps the size.
#
# ## Build it: an init
#
# Write `my_init` so that a signal and its gradient pass through many layers of relu. The check tries two widths.

# %%
def my_init(n_in, n_out, rng):
    return 0.01 * rng.normal(size=(n_in, n_out))


lesson.check(my_init)

# %% [markdown]
# Ten layers of relu with your init. With a right one the loss falls, and all layers have gradients of one size.

# %%
own = lab.fit(deep(ReLU, my_init), train, validation=test, epochs=5)
await own
LossView(own)

# %%
yours = np.log10(gradient_sizes(deep(ReLU, my_init)))
Lines("layer", "log10 of the gradient", first=1, **curves, yours=yours.tolist())

# %% [markdown]
# ## Dead units
#
# relu can lose a unit for good: if it gives 0 for **every** example, its slope is 0 for every example, and no gradient
# ever reaches its weights again. Write the share of such units in a layer.

# %%
def dead_share(outputs):
    return (outputs == 0).mean()


lesson.check(dead_share)

# %% [markdown]
# What kills them? One step that goes too far. Four layers, plain SGD, three rounds, and a learning rate of 2. How many
# percent of the last hidden layer will be dead?

# %%
lesson.predict("dead units", "in the last hidden layer", answer=lambda: 100 * after[-1], unit="%", tolerance=5)

# %%
def dead_by_layer(model):
    shares, signal = [], lab.tensor(train.inputs)
    for layer in model:
        signal = layer(signal)
        if isinstance(layer, ReLU):
            shares.append(float((signal.numpy().max(axis=0) == 0).mean()))
    return shares


# %%
too_fast = deep(ReLU, "kaiming", n_layers=4)
before = dead_by_layer(too_fast)
steps = lab.optim.SGD(too_fast.parameters(), learning_rate=2.0)
killing = lab.fit(too_fast, train, validation=test, optimizer=steps, epochs=3)
await killing
after = dead_by_layer(too_fast)
Lines("hidden layer", "share of dead units", first=1, before=before, after=after)

# %%
lesson.reveal("dead units")

# %% [markdown]
# When did they die? Play the measured steps. Here a unit counts as dead if it is 0 for every example of the batch.

# %%
Player(LayersView(killing))

# %% [markdown]
# If one layer is dead as a whole, nothing gets through it: the network gives the same answer to every digit, for ever.
# A smaller step would have kept it alive, or `leaky_relu`, which has a small slope on the left, too.
#
# ## Where this is used
#
# `Linear` of this lab and of PyTorch draws its weights with such a rule (kaiming, after Kaiming He), so you seldom see
# this. Large models add norms and shortcuts past the layers, and log the gradients of every layer.
#
# - Along many layers slopes multiply: a gradient vanishes or explodes.
# - Weights with a variance of 2 / n_in keep its size through relu.
# - Nothing fails when a gradient is lost: watch it by layer.

# %%
lesson
