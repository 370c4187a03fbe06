"""What the gallery shows of experiments: each measures something of differentiation when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from lab.autograd.tensor import tensor
from lab.data import ALPHABET, digits28, lines
from lab.data.overlap import measure_prefetch
from lab.events import CacheHit, Recording, Traced, record
from lab.experiments.building import measure_build
from lab.experiments.calls import measure_calls
from lab.experiments.captures import compare_captures
from lab.experiments.cost import measure_cost
from lab.experiments.errors import measure_errors
from lab.experiments.memory import measure_memory
from lab.experiments.passes import measure_passes
from lab.experiments.plan import measure_plan
from lab.experiments.rule import measure_rule
from lab.experiments.schedule import measure_schedule
from lab.experiments.slopes import measure_slopes
from lab.experiments.swell import measure_swell
from lab.nn import Embedding, Linear, Sequential, convnet
from lab.ops import cross_entropy, exp, gelu, layer_norm, maximum, sin, softmax, square, tanh
from lab.training import Counted
from lab.training.means import compare_means
from lab.training.micro_batches import SIZES, measure_accumulation
from lab.transforms import checkpoint, custom_vjp, grad, jit, value_and_grad


def a_layer(x: Any, w: Any) -> Any:
    """One number of a layer, as network code has it."""
    return (tanh(x @ w) ** 2).mean()


def normed(x: Any) -> Any:
    """A mean that is taken of more than two entries only."""
    if x.shape[0] > 2:
        return x / x.shape[0]
    return 10.0 * x


def over_tokens(prediction: Any, targets: Any) -> Any:
    """The mean over what is no padding, -1."""
    is_token = targets >= 0
    each = cross_entropy(prediction, np.maximum(targets, 0), reduction="none")
    return (each * is_token).sum() / is_token.sum()


class Measured:
    """Recordings of experiments by name.

    Args:
        say: told in a line what is done now.

    Example:
        >>> len(Measured(lambda line: None).slopes)
        6
    """

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say

    @cached_property
    def errors(self) -> Recording:
        """Every method with many steps on a function of a number."""
        self._say("Differences with many steps, against the truth ...")
        return measure_errors(lambda x: exp(x) * sin(x) / x, 1.5).recording

    @cached_property
    def cost(self) -> Recording:
        """Jacobians of a small network in three ways."""
        self._say("Jacobians in three ways, with more and more inputs and outputs ...")
        return measure_cost().recording

    @cached_property
    def swell(self) -> Recording:
        """4 x (1 - x), put into itself."""
        self._say("A function put into itself, differentiated by sympy ...")
        return measure_swell(lambda x: 4.0 * x * (1.0 - x), 6).recording

    @cached_property
    def slopes(self) -> Recording:
        """The larger of x and 0 at a tie."""
        self._say("Slopes from both sides of a kink ...")
        return measure_slopes(lambda x: maximum(x, 0.0), 0.0).recording

    @cached_property
    def rule(self) -> Recording:
        """A rule for softmax with the diagonal of its Jacobian only."""
        self._say("A wrong rule against differences ...")

        def diagonal(x: Any) -> Any:
            return softmax(x)

        rule = custom_vjp(diagonal).defvjp(lambda x: (softmax(x), softmax(x)), lambda s, ct: (ct * s * (1.0 - s),))
        x = tensor([0.5, -1.0, 0.25, 2.0])
        return measure_rule(lambda x: rule(2.0 * x), (x,), modes=("rev",)).recording

    @cached_property
    def memory(self) -> Recording:
        """A chain of sines in four pieces, with checkpoints and without."""
        self._say("Memory over forward and backward, with checkpoints and without ...")
        x = tensor(np.linspace(0.0, 1.0, 100_000), requires_grad=True)

        def piece(x: Any) -> Any:
            return sin(sin(sin(sin(x))))

        again = checkpoint(piece)
        return measure_memory(
            plain=lambda: piece(piece(piece(piece(x)))).sum(), checkpoints=lambda: again(again(again(again(x)))).sum()
        ).recording

    @cached_property
    def passes(self) -> Recording:
        """Layer norm, a layer, softmax and loss, with their gradients."""
        self._say("A graph on its way through the compiler ...")
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(64, 32)).astype(np.float32), rng.integers(0, 10, 64)
        w = (rng.normal(size=(32, 10)) / 6.0).astype(np.float32)
        scale, shift, bias = np.ones(32, np.float32), np.zeros(32, np.float32), np.zeros(10, np.float32)

        def network(x: Any, scale: Any, shift: Any, w: Any, bias: Any) -> Any:
            return cross_entropy(layer_norm(x, scale, shift) @ w + bias, y)

        step = value_and_grad(network, (1, 2, 3, 4))
        step.__name__ = "a layer norm, a layer and a loss with their gradients"
        return measure_passes(step, x, scale, shift, w, bias).recording

    @cached_property
    def retraces(self) -> Recording:
        """A layer, called with other shapes and dtypes; then one that is jitted anew for each call."""
        self._say("Jitted functions, called with this and that ...")
        rng = np.random.default_rng(0)
        x, w = rng.normal(size=(64, 8)).astype(np.float32), rng.normal(size=(8, 4)).astype(np.float32)
        layer = jit(a_layer)
        with record(kinds=[Traced, CacheHit]) as rec:
            for batch in (x, x, x, x[:40], x, x.astype(np.float64), x):
                layer(batch, w)
            for _ in range(2):
                jit(normed)(x)
        rec.meta["title"] = "calls of jitted functions"
        return rec

    @cached_property
    def calls(self) -> Recording:
        """A step of a network, compiled: the first call and eleven more."""
        self._say("The first call of a compiled function, and later ones ...")
        rng = np.random.default_rng(0)
        x, w = rng.normal(size=(64, 32)).astype(np.float32), (rng.normal(size=(32, 16)) / 6.0).astype(np.float32)
        step = value_and_grad(a_layer, 1)
        step.__name__ = "a layer and its gradient"
        return measure_calls(step, *[(x, w)] * 12).recording

    @cached_property
    def building(self) -> Recording:
        """The same with a graph that is built in each step, and with one that is kept."""
        self._say("A graph in every step, or one for all ...")
        rng = np.random.default_rng(0)
        x, w = rng.normal(size=(64, 32)).astype(np.float32), (rng.normal(size=(32, 16)) / 6.0).astype(np.float32)
        return measure_build(a_layer, x, w).recording

    @cached_property
    def captures(self) -> Recording:
        """A branch on a shape: a trace of three entries, used for two."""
        self._say("A function traced, and read ...")
        return compare_captures(normed, np.array([3.0, 6.0, 9.0]), np.array([3.0, 6.0])).recording

    @cached_property
    def schedule(self) -> Recording:
        """Four branches of products and elementwise ops, and what they come to."""
        self._say("A graph by every executor, in one thread and in two ...")
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(2, 256, 256)).astype(np.float32)

        def branches(x: Any, y: Any) -> Any:
            return (tanh(x @ y) + exp(-square(y @ x)) @ y + (sin(x) @ y) * (x @ x)).sum()

        branches.__name__ = "three branches of products"
        return measure_schedule(branches, x, y, threads=(2,)).recording

    @cached_property
    def plan(self) -> Recording:
        """Layers with gelu and their gradients, whose memory is planned in several ways."""
        self._say("Memory planned in several ways, and runs measured ...")
        rng = np.random.default_rng(0)
        x = rng.normal(size=(256, 32)).astype(np.float32)
        weights = [(rng.normal(size=(32, 32)) / 6.0).astype(np.float32) for _ in range(3)]

        def network(x: Any, *weights: Any) -> Any:
            for w in weights:
                x = gelu(x @ w)
            return square(x).sum()

        step = grad(network, (1, 2, 3))
        step.__name__ = "the gradients of three layers with gelu"
        return measure_plan(step, x, *weights).recording

    @cached_property
    def accumulation(self) -> Recording:
        """Steps of a convolutional network on images of digits, in micro-batches of several sizes."""
        self._say("Steps by size of the micro-batches ...")
        train, model = digits28("train"), partial(convnet, 28, (1, 8, 16), 10, rng=0)
        return measure_accumulation(model, (train.inputs, train.targets), (*SIZES, 8, 4), limit=8 << 20).recording

    @cached_property
    def means(self) -> Recording:
        """Lines of text, of which each has its number of characters: micro-batches of one line."""
        self._say("Micro-batches weighed rightly and wrongly ...")
        train, _ = lines(n_places=48)
        loss = Counted(over_tokens, lambda targets: (targets >= 0).sum(axis=1))

        def model() -> Sequential:
            return Sequential(Embedding(len(ALPHABET), 16, rng=0), Linear(16, len(ALPHABET), rng=1))

        data = train.inputs, train.targets
        return compare_means(model, data, 8, loss=loss, batch_size=8, learning_rate=2.0).recording

    @cached_property
    def prefetch(self) -> Recording:
        """Digits that are unpacked, moved about and learned from, with a prefetch and without."""
        self._say("Loading, preprocessing and training, one ahead of the other ...")
        return measure_prefetch((0, 2), n_items=8, repeats=1).recording
