"""What a run leaves behind: a few numbers, and how it ended."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lab.words import counted


@dataclass(frozen=True)
class Result:
    """How a run ended and how good the model was then.

    Attributes:
        state: "finished" or "stopped".
        loss: of the last batch, before its update; nan without a step.
        accuracy: at the last evaluation on the validation data, 0 to 1; nan where there was none.
        elapsed_ms: time spent on steps and evaluations; pauses do not count.
        value: what the function of `lab.step_through` returned.

    Example:
        >>> Result("digits", "finished", n_steps=230, n_epochs=10, loss=0.031, accuracy=0.975, elapsed_ms=180.0)
        Result 'digits': finished after 230 steps, loss 0.031, accuracy 97.5 %, 0.2 s
    """

    name: str
    state: str
    n_steps: int
    n_epochs: int = 0
    loss: float = math.nan
    accuracy: float = math.nan
    elapsed_ms: float = 0.0
    value: object = None

    def __repr__(self) -> str:
        parts = [f"{self.state} after {counted(self.n_steps, 'step')}"]
        parts += [] if math.isnan(self.loss) else [f"loss {self.loss:.4g}"]
        parts += [] if math.isnan(self.accuracy) else [f"accuracy {self.accuracy:.1%}".replace("%", " %")]
        return f"Result {self.name!r}: {', '.join(parts)}, {self.elapsed_ms / 1000:.1f} s"
