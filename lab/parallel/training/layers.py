"""Layers that do on ranks what one process cannot do alike: those that look at the whole batch, and random ones.

What they shall do is chosen (`DataParallel(batch_norm=..., random=...)`); until then both are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from lab.errors import ArgumentError
from lab.nn import Module
from lab.nn.batchnorm import BatchNorm1d
from lab.nn.dropout import Dropout
from lab.parallel.compression.hook import CommHook
from lab.parallel.ranks.axis import RANKS, axis
from lab.parallel.ranks.member import CONTROL
from lab.parallel.ranks.runtime import Comm
from lab.words import one_of, shown

SYNCHRONIZED = "synchronized"
BATCH_NORM = (SYNCHRONIZED, "local")
RANDOM = ("per rank",)


class Chosen(NamedTuple):
    """What was chosen for such layers, and for sums of gradients; "" and 0 are nothing."""

    batch_norm: str = ""
    random: str = ""
    shards: int = 0
    """Virtual ones, of any world."""
    bucket_bytes: int = 0
    sync: str = ""
    comm_hook: CommHook | None = None


NOTHING = Chosen()


def chosen(batch_norm: object, random: object, shards: int = 0, bucket_bytes: int = 0, sync: str = "",
           comm_hook: CommHook | None = None) -> Chosen:  # fmt: skip
    """The choice, if it is one.

    Raises:
        ArgumentError: there is no such way.

    Example:
        >>> chosen("local", None).batch_norm
        'local'
    """
    for name, value, ways in (("batch_norm", batch_norm, BATCH_NORM), ("random", random, RANDOM)):
        if value is not None and not (isinstance(value, str) and value in ways):
            raise ArgumentError(f"there is no such way for {name}=", given=f"{name}={shown(value)}",
                                hint=one_of(value, ways))  # fmt: skip
    return Chosen(str(batch_norm or ""), str(random or ""), shards, bucket_bytes, sync, comm_hook)


def modules_of(model: object) -> list[Module]:
    """All modules of a model; none where it is another function."""
    return [module for _, module in model.named_modules()] if isinstance(model, Module) else []


@contextmanager
def at_rest(model: object, choice: Chosen) -> Iterator[None]:
    """Meanwhile, layers for which something was chosen do as they do in use: example by example, and nothing random."""
    kinds = (*((BatchNorm1d,) if choice.batch_norm else ()), *((Dropout,) if choice.random else ()))
    layers = [module for module in modules_of(model) if kinds and isinstance(module, kinds)]
    were = [layer.training for layer in layers]
    try:
        for layer in layers:
            layer.training = False
        yield
    finally:
        for layer, was in zip(layers, were, strict=True):
            layer.training = was


class Layers:
    """The layers of one rank's copy, as they were chosen to be.

    Attributes:
        meet: whether ranks meet within a forward and its backward; then all of them must make both.
    """

    def __init__(self, comm: Comm, model: object, choice: Chosen) -> None:
        modules = modules_of(model)
        self._model = model
        self._comm, self._norms = comm, [m for m in modules if isinstance(m, BatchNorm1d)] if choice.batch_norm else []
        self.meet = bool(self._norms) and choice.batch_norm == SYNCHRONIZED
        for norm in self._norms:
            norm.axis_name = RANKS if self.meet else ""
        self._draws = Draws(modules, comm.rank) if choice.random else None

    def together(self) -> AbstractContextManager[None]:
        """The ranks meet within it, where layers ask for that."""
        return axis(self._comm, algorithm="ring") if self.meet else nullcontext()

    def apart(self) -> AbstractContextManager[None]:
        """Within it, layers that meet do as in use, with running statistics."""
        return at_rest(self._model, Chosen(SYNCHRONIZED)) if self.meet else nullcontext()

    def begin(self, step: int, part: int | None = None) -> None:
        """A step begins, or the part of it with this number: random layers draw what belongs to it."""
        if self._draws is not None:
            self._draws.at(step, part)

    def end(self, share: float) -> None:
        """A step ends: running statistics of each rank's own examples become their mean, weighted, on all ranks."""
        if not self._norms or self.meet:
            return
        running = [value for norm in self._norms for value in (norm.running_mean, norm.running_var)]
        words = np.concatenate([value.value.astype(np.float64) for value in running]) * share
        for start in range(0, len(words), CONTROL):
            words[start : start + CONTROL] = self._comm.agree(words[start : start + CONTROL].copy())
        ends = np.cumsum([value.size for value in running])
        for value, part in zip(running, np.split(words, ends[:-1]), strict=True):
            value.value = part.astype(value.dtype)


class Draws:
    """The generators of a model's modules: what they draw depends on their seed, the rank and the step alone.

    So ranks draw differently, and a step that is done again, by this rank or by one in its place, draws the same.
    """

    def __init__(self, modules: list[Module], rank: int) -> None:
        found = {id(v): v for m in modules for v in vars(m).values() if isinstance(v, np.random.Generator)}
        self._generators, self._rank = list(found.values()), rank
        self._seeds = [int(generator.integers(2**63)) for generator in self._generators]

    def at(self, step: int, part: int | None = None) -> None:
        """Draw what belongs to this step from now on, and to a numbered part of it instead of the rank."""
        who = self._rank if part is None else part
        for number, (generator, seed) in enumerate(zip(self._generators, self._seeds, strict=True)):
            bits: Any = type(generator.bit_generator)
            generator.bit_generator.state = bits(np.random.SeedSequence([seed, number, who, step])).state
