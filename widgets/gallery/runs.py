"""What the gallery shows: small runs of everything that there is a view for, each recorded when it is first asked for.

Nothing is made up: a graph is built, a network trained, and four worker processes add, train and pass on activations.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np

from lab.autograd.tensor import tensor
from lab.autograd.visits import count_visits
from lab.data import digits
from lab.events import Recording, record
from lab.nn import Transformer, TransformerBlock, cross_entropy, mlp
from lab.ops import exp, sqrt, tanh
from lab.training import fit
from lab.transforms import jvp, vmap
from widgets.gallery.on_ranks import OnRanks


def _one_step(seed: int) -> Recording:
    rng = np.random.default_rng(0)
    inputs, targets = rng.normal(size=(6, 4)).astype(np.float32), rng.integers(0, 3, 6)
    model = mlp(4, 8, 3, rng=seed)
    with record(detail="value") as rec:
        cross_entropy(model(tensor(inputs)), targets).backward()
    rec.meta["title"] = f"seed {seed}"
    return rec


class Runs(OnRanks):
    """Recordings by name; the workers are started for the first that needs them, and end with the block.

    Args:
        say: told in a line what is done now.

    Example:
        >>> with Runs(lambda line: None) as runs:
        ...     runs.graph[-1].root == runs.graph[-2].node
        False
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *why: object) -> None:
        self._stack.close()

    @cached_property
    def nothing(self) -> Recording:
        """What a view is given before anything happened."""
        return Recording()

    @cached_property
    def transformer(self) -> Recording:
        """A small transformer of six blocks, forwards and back: some 250 operations."""
        self._say("A small transformer, forwards and back ...")
        rng = np.random.default_rng(0)
        tokens, targets = rng.integers(0, 27, (2, 8)), rng.integers(0, 27, 16)
        model = Transformer(27, 16, n_blocks=6, n_heads=2, n_places=8, rng=0)
        with record(detail="statistics") as rec:
            cross_entropy(model(tokens).reshape(16, 27), targets).backward()
        rec.meta["title"] = "a transformer of six blocks"
        return rec

    @cached_property
    def block(self) -> Recording:
        """One block of it."""
        self._say("One block of a transformer ...")
        x = tensor(np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32), requires_grad=True, name="x")
        model = TransformerBlock(16, 2, rng=0)
        with record(detail="statistics") as rec:
            model(x).sum().backward()
        rec.meta["title"] = "a transformer block"
        return rec

    @cached_property
    def graph(self) -> Recording:
        """Two leaves, a product, a sum, and the walk back."""
        self._say("Building a small graph and walking it back ...")
        x, y = tensor(2.0, requires_grad=True, name="x"), tensor(-3.0, requires_grad=True, name="y")
        with record(detail="value") as rec:
            (x * y + x.tanh()).backward()
        rec.meta["title"] = "x * y + tanh(x)"
        return rec

    @cached_property
    def forward(self) -> Recording:
        """The same function in forward mode, along x."""
        self._say("The same graph in forward mode ...")
        with record(detail="value") as rec:
            jvp(lambda x, y: x * y + tanh(x), (2.0, -3.0), (1.0, 0.0))
        rec.meta["title"] = "x * y + tanh(x) along x"
        return rec

    @cached_property
    def visits(self) -> Recording:
        """Four squarings in a row, walked back in topological order and path by path."""
        self._say("Counting visits with the topological order and without ...")
        y = tensor(1.1, requires_grad=True, name="x")
        with record(detail="value") as rec:
            for _ in range(4):
                y = y * y
            for order in ("topological", "path"):
                count_visits(y, order)
        rec.meta["title"] = "four squarings"
        return rec

    @cached_property
    def stretched(self) -> Recording:
        """A bias along one axis, a scale of each row and one number for all, and the sums on the way back."""
        self._say("Broadcasting shapes, and summing gradients back to them ...")
        x = tensor([[1.0, 2.0, 3.0], [-1.0, 0.5, 2.0]], requires_grad=True, name="x")
        bias = tensor([0.5, 0.0, -0.5], requires_grad=True, name="bias")
        gain, scale = tensor([[2.0], [3.0]], requires_grad=True, name="gain"), tensor(0.5, requires_grad=True, name="s")
        with record(detail="value") as rec:
            (((x + bias) * gain) * scale).sum().backward()
        rec.meta["title"] = "(x + bias) * gain * s"
        return rec

    @cached_property
    def mapped(self) -> Recording:
        """A layer and a normalisation, written for one example, over columns of five."""
        self._say("Mapping a function of one example over five ...")
        w, examples = tensor(np.arange(12.0).reshape(3, 4) / 6), tensor(np.linspace(-1.0, 1.0, 20).reshape(4, 5))

        def layer(x: Any) -> Any:
            h = exp(w @ x)
            return h / h.sum()

        with record(detail="value") as rec:
            vmap(layer, in_axes=1)(examples)
        rec.meta["title"] = "a softmax layer over five examples"
        return rec

    @cached_property
    def twice(self) -> Recording:
        """A gradient computed as a graph, and walked back itself."""
        self._say("Walking a gradient back once more ...")
        x = tensor(2.0, requires_grad=True, name="x")
        with record(detail="value") as rec:
            (x * x * x).backward(create_graph=True)
            slope, x.grad = x.grad, None
            assert slope is not None
            slope.backward()
        rec.meta["title"] = "second derivative of x * x * x"
        return rec

    @cached_property
    def broken(self) -> Recording:
        """The root of a square: at 0 its slope is infinite, and infinity times 0 is nan."""
        self._say("Making a gradient infinite ...")
        x = tensor([2.0, 1.0, 0.0], requires_grad=True, name="x")
        with record(detail="value") as rec, np.errstate(all="ignore"):
            (sqrt(x * x) - 1.0).sum().backward()
        rec.meta["title"] = "sum(sqrt(x * x) - 1)"
        return rec

    @cached_property
    def network(self) -> Recording:
        """One step of a small network: forward, loss, backward."""
        self._say("One step of a small network ...")
        return _one_step(seed=0)

    @cached_property
    def sibling(self) -> Recording:
        """The same from another seed."""
        self._say("The same network from another seed ...")
        return _one_step(seed=1)

    @cached_property
    def training(self) -> Recording:
        """The digits in this process."""
        self._say("Training a network on digits ...")
        train, test = digits()
        run = fit(mlp(64, 64, 10, rng=0), train, validation=test, epochs=8, name="digits-mlp")
        run.wait()
        return run.recording
