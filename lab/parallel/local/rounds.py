"""Training in rounds: each rank makes steps of its own, then all meet, and what they have become is one again.

Within a round no rank waits for another. At its end they agree on the losses of its steps and on who met trouble, and
hear the next order; so an order takes effect at the end of a round, and a round is done by all ranks or by none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lab.errors import RunError
from lab.events import Event, LossScaled, ReplicaMet, StepFinished, bus
from lab.events.gate import clock
from lab.optim.flat import Vector
from lab.parallel.local.local_rank import LocalRank
from lab.parallel.local.meetings import Meeting, Rhythm
from lab.parallel.ranks.member import CONTROL
from lab.parallel.ranks.runtime import Comm
from lab.parallel.training.replicas import first_of
from lab.parallel.training.steering import N_WORDS, Steering
from lab.precision.scaling import Scaler
from lab.training.bounds import beyond
from lab.training.job import BreakpointError
from lab.training.standing import Standing
from lab.training.trainer import Training

Numbers = npt.NDArray[np.float64]


class Met(NamedTuple):
    """What the ranks agree on at the end of a round.

    Attributes:
        culprit: the first that met trouble, -1 if none did.
        losses: of the round's steps, each the mean over the whole batch.
        scalers: of the ranks' losses.
        is_unused: whether some rank has met no gradient of some parameter.
    """

    culprit: int
    losses: Numbers
    scalers: tuple[Scaler, ...]
    is_unused: bool


class LocalTraining(Training):
    """One rank's copy of a training: its step, for whoever leads it, is a round. `join` before it begins."""

    def join(
        self, comm: Comm, steering: Steering, rank: LocalRank, rhythm: Rhythm, meeting: Meeting, within: Meeting | None
    ) -> None:
        """Its place among the ranks.

        Args:
            meeting: of all ranks.
            within: of this rank's group, if there are groups.
        """
        self.comm, self._steering, self.rhythm = comm, steering, rhythm
        self.replica = self._rank = rank
        self._meeting, self._within = meeting, within
        self._noted = list[Event]()
        self._is_alone = self._owes_a_look = False
        self._parted = self._arrived = 0.0

    def advance(self) -> RunError | None:
        """A round: the steps until all ranks meet, and their meeting. All of it is done, on all ranks, or nothing."""
        began, stop = self.standing(), self.rhythm.next_of_all(self.step, self.n_steps)
        self._rank.set_out()
        self._noted.clear()
        tell, self.tell, self._is_alone = self.tell, self._noted.append, True
        start = self._parted = clock()
        try:
            trouble = self._go_alone(began, stop)
        finally:
            self.tell, self._is_alone = tell, False
        met = self._meet(trouble, stop - began.step)
        if met.is_unused:
            self._rank.refuse_unused()
        if met.culprit >= 0:
            return self._undone(began, stop, self._rank.told_by(trouble, met.culprit))
        self._average(self._meeting, began.optimizer.values, self._rank.shares, stop - began.step)
        self._rank.meet_layers()
        self._end_round(began.scaler, met, start)
        return None

    def rewind(self) -> None:
        """To the last sound state; an outer momentum begins anew."""
        super().rewind()
        self._batches = self.loader.epoch(self.epoch, self.step % len(self.loader))  # a round may end within an epoch
        for velocity in self._meeting.velocities:
            velocity[...] = 0

    # --- alone --------------------------------------------------------------------------------------------------------

    def _go_alone(self, began: Standing, stop: int) -> RunError | None:
        """The steps of a round, with the meetings of this rank's group in between; ends early where one meets trouble.

        Who is in a group with it ends early, too: they would wait for it.
        """
        anchor, shares, first = began.optimizer.values, np.zeros(self.comm.world_size), self.step
        while self.step < stop:
            until = min(self.rhythm.next(self.step, self.n_steps), stop)
            trouble = self._steps(until)
            if self._within is None or self._within.is_troubled(trouble is not None):
                return trouble
            if until < stop:
                self._average(self._within, anchor, self._rank.shares - shares, until - first)
                anchor = [group.values.copy() for group in self.optimizer.groups]
                shares, first = self._rank.shares.copy(), until
        return None

    def _steps(self, until: int) -> RunError | None:
        trouble = None
        while self.step < until and trouble is None:
            trouble = super().advance()
        self._arrived = clock()
        return trouble

    def _look_back(self) -> None:
        """Not while it is alone: what is evaluated, and gone back to, is what all ranks have."""
        if self._is_alone:
            self._owes_a_look = True
        else:
            super()._look_back()

    def _beyond(self, step: int, loss: float, norm: float) -> BreakpointError | None:
        """Of this rank's own loss and gradient; a round that is done again passes as a whole."""
        return beyond(self._bounds, {"loss": loss, "gradient": norm}, step) if step > self._broke_at else None

    # --- together -----------------------------------------------------------------------------------------------------

    def _meet(self, trouble: RunError | None, n_steps: int) -> Met:
        """Agree once, whatever happened; who met trouble has fewer losses, and nobody looks at them."""
        n, rank = self.comm.world_size, self._rank
        words = np.zeros(1 + 3 * n + n_steps)
        words[0] = bool(rank.unused) or rank.unused is None
        flags, scales, good = words[1:].reshape(-1)[: 3 * n].reshape(3, n)
        flags[rank.rank], scales[rank.rank], good[rank.rank] = trouble is not None, *self.scaler
        words[1 + 3 * n : 1 + 3 * n + len(rank.losses)] = rank.losses[:n_steps]
        words = self._agreed(words)
        flags, scales, good = words[1 : 1 + 3 * n].reshape(3, n)
        scalers = tuple(Scaler(float(scale), int(many)) for scale, many in zip(scales, good, strict=True))
        return Met(first_of(flags), words[1 + 3 * n :], scalers, bool(words[0]))

    def _agreed(self, words: Numbers) -> Numbers:
        """The sums over all ranks; the next order comes with the first of them."""
        first = CONTROL - N_WORDS
        parts = [self._steering.agree(words[:first])]
        parts += [self.comm.agree(words[at : at + CONTROL].copy()) for at in range(first, len(words), CONTROL)]
        return np.concatenate(parts)

    def _undone(self, began: Standing, stop: int, trouble: RunError) -> RunError:
        """The round is to be done again, from its beginning."""
        self.stand(began)
        self.optimizer.zero_grad()
        self._owes_a_look = False
        if isinstance(trouble, BreakpointError):
            self._broke_at = stop
        return trouble

    def _average(self, meeting: Meeting, began: Sequence[Vector], shares: Numbers, n_steps: int) -> None:
        far = meeting.average_(began, shares)
        alone, met = self._arrived - self._parted, clock() - self._arrived
        if bus.listeners and any(listener.wants(ReplicaMet) for listener in bus.listeners):
            bus.emit(ReplicaMet(self.step, n_steps, meeting.group, far, meeting.n_bytes, 1000 * alone, 1000 * met))
        self._parted = clock()

    def _end_round(self, before: Scaler, met: Met, start: float) -> None:
        """Tell the steps in their order, with what all ranks have in common; the meetings are the last one's."""
        steps = [event for event in self._noted if isinstance(event, StepFinished)]
        met_ms = 1000 * (clock() - start) - sum(event.elapsed_ms for event in steps)
        self.last_loss = float(met.losses[-1])
        for event, loss in zip(steps, met.losses.tolist(), strict=True):
            elapsed_ms = event.elapsed_ms + (met_ms if event is steps[-1] else 0.0)
            self._say(StepFinished(event.step, event.epoch, loss, event.n_examples, elapsed_ms))
        if self.precision is not None and self.precision.rule is not None:
            self.scaler = min(met.scalers)  # at the lowest scale no rank's gradients overflow
            self._say(LossScaled(self.step, before.scale, self.scaler.scale, self.scaler.scale < before.scale))
        if self._owes_a_look:
            self._owes_a_look = False
            self._look_back()
