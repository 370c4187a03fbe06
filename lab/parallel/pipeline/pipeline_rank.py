"""One rank of a pipeline: it carries out its actions of a schedule, one after another, for real.

A forward takes an activation and makes the next one, a backward takes the gradient of that and makes the gradient of
what came in. Who waits for whom follows from the schedule alone, which has been checked before.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns
from typing import NamedTuple

import numpy as np

from lab.autograd import Leaf, Tensor, wrap
from lab.data import Batch
from lab.errors import ArgumentError
from lab.events.bus import bus
from lab.events.catalogue import ActionFinished, ActionStarted
from lab.parallel.paper.schedules import Action, Table
from lab.parallel.paper.ticks import Tick, ticks_of
from lab.parallel.pipeline.handover import Handover, Parcel
from lab.parallel.pipeline.pacing import Device
from lab.parallel.pipeline.stages import Stage, micro_batches
from lab.parallel.ranks.runtime import Comm
from lab.parallel.ranks.ticks import Ticks
from lab.training.diagnosis import unlearnable
from lab.training.evaluate import Loss, loss_of
from lab.words import kind_of


class Live(NamedTuple):
    """An activation that waits for its backward: what came into the stage and what came out, with the tape between."""

    came: Tensor
    made: Tensor


class PipelineRank:
    """Carries out one rank's actions.

    Args:
        stages: all of the model; the rank keeps those with number % world_size == rank.
        table: the order of every rank, which `check_schedule` has accepted.

    Attributes:
        stages: by number, those of this rank.
        n_live: activations that it holds: forwards whose backward is still to come.
        ticks: holds it, with all others, in front of each tick of the schedule; None does not, and costs nothing.
    """

    def __init__(
        self,
        comm: Comm,
        stages: Sequence[Stage],
        loss: Loss,
        table: Table,
        n_micro: int,
        device: Device | None = None,
    ) -> None:
        self.stages = {stage.number: stage for stage in stages if stage.number % comm.world_size == comm.rank}
        self._last, self._loss, self._n_micro = len(stages) - 1, loss, n_micro
        self._table, self._order = table, table[comm.rank]
        self._handover, self._device = Handover(comm, len(stages)), device or Device()
        self._live: dict[tuple[int, int], Live] = {}
        self.ticks: Ticks | None = None

    @property
    def n_live(self) -> int:
        return len(self._live)

    def step(self, batch: Batch) -> float:
        """All forwards and backwards of a batch; adds to the gradients of this rank's parameters.

        Each micro-batch counts by its share of the examples, so the gradients are those of the mean over the batch.
        Micro-batches without examples are left out on all ranks.

        Shapes:
            batch: the whole one on each rank; the inputs are read by the first stage, the targets by the last.
        Returns:
            The loss of the batch on the rank of the last stage, 0 elsewhere: the sum over all ranks is the loss.
        """
        n_examples, total = len(batch.inputs), 0.0
        parts = micro_batches(n_examples, self._n_micro)
        held = self._held(sum(rows.stop > rows.start for rows in parts))
        for action in self._order:
            rows = parts[action.micro]
            share = (rows.stop - rows.start) / n_examples
            if not share:
                continue
            if held is not None:
                held.reach(action)
            taken = self._take(action)
            if held is not None:
                held.begin(action)
            if action.kind == "F":
                total += share * self._forward(action, Batch(batch.inputs[rows], batch.targets[rows]), taken)
            else:
                self._backward(action, share, taken)
        if held is not None:
            held.end()
        return total

    def _held(self, n_micro: int) -> Timetable | None:
        """What holds this rank in a step of so many micro-batches, None if nobody wants that."""
        if self.ticks is None:
            self._device.clock = perf_counter_ns
            return None
        self._device.clock = self.ticks.clock
        n_ranks = len(self._table)
        return Timetable(self.ticks, ticks_of(self._table, n_micro, chunks_per_rank=(self._last + 1) // n_ranks))

    def _take(self, action: Action) -> Parcel:
        """What comes from the stage before, or after; a stage at the end has nothing to wait for."""
        ends = 0 if action.kind == "F" else self._last
        return (None, 0) if action.stage == ends else self._handover.take(action)

    def _forward(self, action: Action, micro: Batch, taken: Parcel) -> float:
        stage, value, after_ns = self.stages[action.stage], micro.inputs, taken[1]
        if action.stage:
            assert taken[0] is not None  # a forward always makes something
            value = taken[0]
        came = wrap(value, Leaf() if action.stage and value.dtype.kind == "f" else None)
        start_ns = self._begin(action, after_ns)
        if action.stage == self._last:
            _, made = loss_of(lambda _: stage(came), self._loss, micro)
        else:
            made = _one_tensor(stage, stage(came))
        self._live[action.stage, action.micro] = Live(came, made)
        end_ns = self._end(action, start_ns)
        if action.stage == self._last:
            return float(made.item())
        self._handover.give(made.value, action, end_ns)
        return 0.0

    def _backward(self, action: Action, share: float, taken: Parcel) -> None:
        ct, after_ns = (np.asarray(share), 0) if action.stage == self._last else taken
        start_ns = self._begin(action, after_ns)
        came, made = self._live.pop((action.stage, action.micro))
        if action.stage == self._last and not made.requires_grad:
            raise unlearnable()
        if ct is not None and made.requires_grad:  # neither is so where nothing before or behind can learn
            made.backward(ct)
        end_ns = self._end(action, start_ns)
        if action.stage:
            found = came.node.grad if isinstance(came.node, Leaf) else None
            self._handover.give(found, action, end_ns)

    def _begin(self, action: Action, after_ns: int) -> int:
        start_ns = self._device.begin(action.kind, after_ns)
        if bus.listeners:
            bus.emit(ActionStarted(*action, self._device.paced))
        return start_ns

    def _end(self, action: Action, start_ns: int) -> int:
        end_ns = self._device.end(action.kind, start_ns)
        if bus.listeners:
            bus.emit(ActionFinished(*action, self._device.paced, start_ns, end_ns, self.n_live))
        return end_ns


class Timetable:
    """The ticks of one step, as one rank goes through them: action by action."""

    def __init__(self, ticks: Ticks, table: Sequence[Tick]) -> None:
        self._ticks, self._n = ticks, len(table)
        self._of = {action: at for at, tick in enumerate(table) for action in tick if action is not None}
        ticks.begin(table)

    def reach(self, action: Action) -> None:
        """Wait until all ticks before that of the action have begun: then what it needs will come."""
        self._ticks.reach(self._of[action])

    def begin(self, action: Action) -> None:
        """Wait until the tick of the action may begin."""
        self._ticks.reach(self._of[action] + 1)

    def end(self) -> None:
        """Rest in the ticks that are left: who goes on to the end of the step must not wait there for one held."""
        self._ticks.reach(self._n)


def _one_tensor(stage: Stage, made: object) -> Tensor:
    if isinstance(made, Tensor):
        return made
    layer = stage.first + len(stage.layers) - 1
    raise ArgumentError("a stage hands on one tensor", given=f"{kind_of(made)} from layer {layer}",
                        hint="let the layer return a tensor, or cut elsewhere: another n_stages")  # fmt: skip
