"""How far replicas are apart, step by step: with gradients summed in each step, parameters seldom averaged, or neither.

Ranks that add the same sum to the same parameters have the same bits for ever. Ranks that go their own way drift apart,
and an average every few steps brings them together again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lab.autograd import tensor
from lab.checks import number, whole
from lab.data import Dataset, as_dataset
from lab.errors import ArgumentError
from lab.events import Recording, SpreadBegun, SpreadMeasured, bus, record
from lab.nn import Module, cross_entropy
from lab.optim.flat import FlatParameters
from lab.parallel.ranks.runtime import Comm
from lab.parallel.ranks.threads import run_ranks
from lab.words import counted, shown

Array = npt.NDArray[Any]


class Apart(NamedTuple):
    """What was measured after a step; fields as of the event SpreadMeasured."""

    every: int
    step: int
    largest: float
    loss: float


class Spread(NamedTuple):
    """What `measure_spread` found.

    Attributes:
        rows: one for each way and step.
        recording: of the experiment, for SpreadView.
    """

    rows: tuple[Apart, ...]
    recording: Recording

    def __repr__(self) -> str:
        last = {row.every: row.largest for row in self.rows}
        return f"<spread of replicas: {', '.join(f'{way(k)} {apart:.3g}' for k, apart in last.items())}>"


def way(every: int) -> str:
    """What a way to synchronise is called.

    Example:
        >>> way(1), way(8), way(0)
        ('gradients summed', 'averaged every 8 steps', 'never synchronised')
    """
    if every == 1:
        return "gradients summed"
    return f"averaged every {every} steps" if every else "never synchronised"


def measure_spread(
    make: Callable[[], Module], data: Dataset | Sequence[npt.ArrayLike], every: Sequence[int] = (1, 8, 0), *,
    world_size: int = 4, steps: int = 32, batch_size: int = 32, learning_rate: float = 0.1,
) -> Spread:  # fmt: skip
    """Train replicas on ranks, and measure after each step the largest difference of a parameter between two of them.

    SpreadView draws it. Every rank has its own examples and steps by plain gradient descent.

    Args:
        make: makes the model, the same on every rank.
        data: a Dataset or a pair (inputs, targets).
        every: 1 sums the gradients in each step, k averages the parameters every k steps, 0 does neither.
        world_size: number of ranks, threads of this process.
        batch_size: examples of one rank in one step.

    Raises:
        ArgumentError: there is no such way, or too few examples.

    Example:
        >>> import lab
        >>> train, _ = lab.data.digits()
        >>> found = lab.measure_spread(lambda: lab.nn.mlp(64, 8, 10, rng=0), train, steps=3)
        >>> [max(row.largest for row in found.rows if row.every == k) > 0 for k in (1, 8, 0)]
        [False, True, True]
    """
    ways = [whole("every", k, least=0, hint="every=(1, 8, 0)") for k in every]
    world_size, steps = whole("world_size", world_size, least=2), whole("steps", steps, least=1)
    batch_size, rate = whole("batch_size", batch_size, least=1), number("learning_rate", learning_rate, hint="0.1")
    pair = (found := as_dataset(data)).inputs, found.targets
    if not ways or len(pair[0]) < world_size * batch_size:
        raise ArgumentError("every rank needs a batch of its own, and a way to synchronise",
                            given=f"{counted(len(pair[0]), 'example')} for {world_size} ranks, every={shown(every)}",
                            hint="a smaller batch_size, or fewer ranks")  # fmt: skip
    rows = list[Apart]()
    with record(kinds=(SpreadBegun, SpreadMeasured)) as rec:
        rec.meta["title"] = "spread of replicas"
        bus.emit(SpreadBegun(world_size, steps, batch_size, rate))
        for k in ways:
            per_rank = run_ranks(_trains, make, pair, k, steps, batch_size, rate, world_size=world_size)
            for step, told in enumerate(zip(*per_rank, strict=True), 1):
                rows.append(Apart(k, step, told[0][0], float(np.mean([loss for _, loss in told]))))
                bus.emit(SpreadMeasured(*rows[-1]))
    return Spread(tuple(rows), rec)


def _trains(
    comm: Comm, make: Callable[[], Module], data: tuple[Array, Array], every: int, steps: int, size: int, rate: float
) -> list[tuple[float, float]]:
    """The program of a rank: after each step how far the replicas are apart, and its loss."""
    model = make()
    flat, told = FlatParameters(list(model.parameters())), list[tuple[float, float]]()
    for step in range(steps):
        rows = ((step * comm.world_size + comm.rank) * size + np.arange(size)) % len(data[0])
        loss = cross_entropy(model(tensor(data[0][rows])), data[1][rows])
        for leaf in flat.leaves:
            leaf.grad = None
        loss.backward()
        flat.gather()
        if every == 1:
            comm.all_reduce_(flat.gradients, op="mean")
        flat.values -= rate * flat.gradients
        if every > 1 and (step + 1) % every == 0:
            comm.all_reduce_(flat.values, op="mean")
        told.append((_largest(comm, flat.values), float(loss.value)))
    return told


def _largest(comm: Comm, values: Array) -> float:
    """The largest difference of one parameter between two ranks."""
    high, low = values.copy(), values.copy()
    comm.all_reduce_(high, op="max")
    comm.all_reduce_(low, op="min")
    return float((high - low).max())
