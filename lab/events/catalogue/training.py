"""What a training run tells: its beginning and end, each step, and what was measured or set at a step.

A run in one process and a run on many ranks tell the same.
"""

from __future__ import annotations

from lab.events.event import Event, event


@event
class RunStarted(Event):
    """A training run began."""

    name: str
    n_steps: int
    """Planned number of optimiser steps; 0 when unknown."""
    n_epochs: int
    n_parameters: int
    model: str
    """One-line description of the model."""
    optimizer: str


@event
class RunStateChanged(Event):
    """A run went to "running", "paused", "stopping"."""

    step: int
    state: str


@event
class SnapshotWritten(Event):
    """The state of a training was written to disk, whole: `lab.fit(..., resume=path)` goes on from there."""

    step: int
    path: str
    n_bytes: int
    elapsed_ms: float


@event
class StepFinished(Event):
    """One optimiser step is done; `loss` is of the batch before the update."""

    step: int
    epoch: int
    loss: float
    n_examples: int
    elapsed_ms: float
    """Of this step alone: forward, backward, update."""


@event
class LossScaled(Event):
    """A step in mixed precision: its loss was multiplied by `scale` before backward, the next by `next_scale`."""

    step: int
    scale: float
    next_scale: float
    is_skipped: bool
    """A gradient overflowed: the step changed no parameter, on any rank; in a round of Local SGD, some rank's step."""


@event
class Evaluated(Event):
    """Loss and accuracy over a whole split ("train", "test")."""

    step: int
    epoch: int
    split: str
    loss: float
    accuracy: float
    """Share of right answers, 0 to 1; nan where accuracy has no meaning."""
    n_examples: int


@event
class ParameterMeasured(Event):
    """Norm and histogram of a parameter ("value") or its gradient ("gradient") at a step."""

    step: int
    name: str
    role: str
    n_entries: int
    norm: float
    minimum: float
    maximum: float
    n_nonfinite: int
    edges: tuple[float, ...]
    """Bin edges of the histogram, one more than `counts`; empty when no entry is finite."""
    counts: tuple[int, ...]


@event
class LayerMeasured(Event):
    """What a layer gave at a step, for the batch that was learned from, and the gradient that came back to that.

    Mean and deviation are over finite entries; nan if there are none.
    """

    step: int
    name: str
    """Path of the module, as "1" or "encoder.0"; "" if it is the whole model."""
    kind: str
    """Its class, as "ReLU"."""
    n_entries: int
    mean: float
    deviation: float
    n_nonfinite: int
    n_units: int
    """Entries for one example."""
    n_dead: int
    """Units that are 0 for every example of the batch."""
    gradient_norm: float
    """Of the gradient of the loss with respect to what it gave; nan where none came back."""


@event
class HyperparameterChanged(Event):
    """A hyperparameter was set, at the start or by hand while training ran."""

    step: int
    name: str
    value: float


@event
class RunFinished(Event):
    """A run ended: "finished", "stopped" or "failed"; `reason` is the failure's first line."""

    name: str
    state: str
    n_steps: int
    elapsed_ms: float
    reason: str
