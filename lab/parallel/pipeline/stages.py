"""Stages: a Sequential cut into pieces for the ranks of a pipeline, and a batch cut into micro-batches.

A pipeline is as fast as its slowest stage, so cuts are chosen for even stages; a schedule says who does what when.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from lab.autograd import Tensor
from lab.checks import whole
from lab.errors import ArgumentError, ScheduleError
from lab.nn import Module, Sequential
from lab.parallel.training.shards import shard_of
from lab.words import kind_of


class Stage:
    """Some layers of a Sequential, one after another. The layers are those of the model, and keep their names.

    Attributes:
        number: 0 for the stage that takes the inputs.
        first: index of its first layer in the model.
        layers: at least one.
    """

    def __init__(self, number: int, first: int, layers: Sequence[Module]) -> None:
        self.number, self.first, self.layers = number, first, tuple(layers)

    def __call__(self, x: Any) -> Any:
        """What the last layer makes of what the others made of `x`."""
        for layer in self.layers:
            x = layer(x)
        return x

    def parameters(self) -> list[Tensor]:
        """Those of its layers, each once, in order of definition."""
        found = {id(p): p for layer in self.layers for p in layer.parameters()}
        return list(found.values())

    @property
    def n_bytes(self) -> int:
        """Of its parameters."""
        return sum(p.value.nbytes for p in self.parameters())

    def __repr__(self) -> str:
        layers = ", ".join(f"{i} {type(layer).__name__}" for i, layer in enumerate(self.layers, self.first))
        return f"Stage {self.number}: layers {layers}; {self.n_bytes:,} bytes of parameters"


def split(model: object, n_stages: int) -> list[Stage]:
    """Cut a Sequential into `n_stages` contiguous stages, as even as it goes by bytes of parameters.

    Bytes, since both what a stage costs grows with them: its time (two operations a row for each weight of a matrix)
    and its memory (weights, gradients, state of the optimiser). Least is the sum of the squares of the stages' bytes;
    a layer without parameters stays with the layer before it, where there is a choice.

    Raises:
        ArgumentError: the model is no Sequential, has fewer layers than there shall be stages, or uses a parameter in
            two stages.

    Example:
        >>> from lab.nn import mlp
        >>> for stage in split(mlp(64, 128, 128, 10, rng=0), 3): print(stage)
        Stage 0: layers 0 Linear, 1 ReLU; 33,280 bytes of parameters
        Stage 1: layers 2 Linear, 3 ReLU; 66,048 bytes of parameters
        Stage 2: layers 4 Linear; 5,160 bytes of parameters
    """
    n_stages = whole("n_stages", n_stages, least=1, hint="n_stages=2 cuts the model once")
    if not isinstance(model, Sequential) or type(model).forward is not Sequential.forward:
        hint = "a pipeline cuts between the layers of a Sequential(...); a layer may be a Module of yours"
        raise ArgumentError("only a Sequential can be cut into stages", given=_kind(model), hint=hint)
    if len(model) < n_stages:
        given = f"{n_stages} stages, {len(model)} layers: {n_stages - len(model)} would have none"
        raise ArgumentError("there are fewer layers than stages", given=given,
                            hint=f"at most n_stages={len(model)}, or a model with more layers")  # fmt: skip
    ends = (0, *cuts([sum(p.value.nbytes for p in layer.parameters()) for layer in model], n_stages), len(model))
    stages = [Stage(i, start, model.layers[start:stop]) for i, (start, stop) in enumerate(pairwise(ends))]
    _refuse_shared(stages)
    return stages


def cuts(sizes: Sequence[int], n_parts: int) -> tuple[int, ...]:
    """Where to cut a row of sizes so that the sum of the squares of the parts' sizes is least, the latest such cuts.

    Every part has at least one member; `len(sizes)` is at least `n_parts`.

    Example:
        >>> cuts([8, 0, 16, 0, 1], 2), cuts([8, 0, 16, 0, 1], 3), cuts([1, 1, 1, 1], 2)
        ((2,), (2, 4), (2,))
    """

    @cache
    def best(start: int, n: int) -> tuple[int, tuple[int, ...]]:
        """Least cost of `sizes[start:]` in n parts, and the cuts, negated: so that the least are the latest."""
        if n == 1:
            return sum(sizes[start:]) ** 2, ()
        found = []
        for stop in range(start + 1, len(sizes) - n + 2):
            cost, rest = best(stop, n - 1)
            found.append((sum(sizes[start:stop]) ** 2 + cost, (-stop, *rest)))
        return min(found)

    return tuple(-cut for cut in best(0, n_parts)[1])


def micro_batches(n_examples: int, n_micro: int) -> list[slice]:
    """The rows of each micro-batch: sizes differ by at most one, larger ones first.

    Where there are fewer examples than micro-batches the last ones are empty: a pipeline leaves their actions out.

    Example:
        >>> [part.stop - part.start for part in micro_batches(10, 4)]
        [3, 3, 2, 2]
        >>> micro_batches(1, 2)
        [slice(0, 1, None), slice(1, 1, None)]
    """
    if n_micro < 1:
        raise ScheduleError("a batch is cut into at least one micro-batch", given=f"n_micro={n_micro}",
                            hint="n_micro=8 is usual for 4 stages")  # fmt: skip
    shards = (shard_of(m, n_micro, n_examples) for m in range(n_micro))
    return [slice(shard.start, shard.stop) for shard in shards]


def _refuse_shared(stages: Sequence[Stage]) -> None:
    """A parameter in two stages would have two gradients and two updates, and be two parameters after the first."""
    owner: dict[int, Stage] = {}
    for stage in stages:
        for p in stage.parameters():
            if (other := owner.setdefault(id(p), stage)) is not stage:
                given = f"{p.name or 'a parameter'} in stages {other.number} and {stage.number}"
                raise ArgumentError("two stages cannot share a parameter", given=given,
                                    hint="use fewer stages, so that it lies in one, or DataParallel")  # fmt: skip


def _kind(model: object) -> str:
    if isinstance(model, type):
        return f"the class {model.__name__}"
    own = " with a forward of its own" if isinstance(model, Sequential) else ""
    return f"{kind_of(model)}{own}"
