"""Few entries: the largest of each rank, or some that chance takes, the same on all ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.checks import whole
from lab.errors import ArgumentError
from lab.parallel.compression.hook import Compressor, Shapes, Vector
from lab.parallel.ranks.runtime import Comm
from lab.words import shown


def _few(share: object, n: int) -> int:
    return max(1, round(float(share) * n))  # type: ignore[arg-type]  # it was checked


def _require_share(share: object) -> None:
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise ArgumentError("the share of entries that are sent is between 0 and 1", given=f"share={shown(share)}",
                            hint="0.01 sends one of a hundred")  # fmt: skip


@dataclass(frozen=True)
class TopK(Compressor):
    """Each rank sends its largest entries and where they are: 8 bytes each, to all others (Lin and others, ICLR 2018).

    Args:
        share: of the entries that are sent.

    Raises:
        ArgumentError: no share.

    Example:
        >>> from lab.parallel import run_ranks
        >>> def program(comm):
        ...     gradient, memory = np.array([3.0, 1.0, -2.0, 0.5], np.float32), {}
        ...     TopK(0.5)(comm, gradient, memory, [(4,)])
        ...     return gradient.tolist(), memory["residual"].tolist()
        >>> run_ranks(program, world_size=2)[0]
        ([6.0, 0.0, -4.0, 0.0], [0.0, 1.0, 0.0, 0.5])
    """

    share: float = 0.01

    def __init__(self, share: float = 0.01, error_feedback: bool = True) -> None:
        _require_share(share)
        object.__setattr__(self, "share", share)
        object.__setattr__(self, "error_feedback", error_feedback)

    def send(self, comm: Comm, gradient: Vector, memory: dict[str, Any], shapes: Shapes) -> Vector:
        n, k = len(gradient), _few(self.share, len(gradient))
        places = np.sort(np.argpartition(np.abs(gradient), n - k)[n - k :]).astype(np.int32)
        values = gradient[places]
        mine = np.zeros_like(gradient)
        mine[places] = values
        all_places, all_values = comm.all_gather(places), comm.all_gather(values)
        gradient[...] = 0
        for its_places, its_values in zip(all_places, all_values, strict=True):  # each has a place once
            gradient[its_places] += its_values
        return mine


@dataclass(frozen=True)
class RandomK(Compressor):
    """All ranks send the same entries, other ones in each step: no places travel, and a plan sums them.

    Args:
        share: of the entries that are sent.
        seed: of the choice, which also hangs on the step.

    Raises:
        ArgumentError: no share, or no seed.

    Example:
        >>> from lab.parallel import run_ranks
        >>> def program(comm):
        ...     gradient = np.ones(100, np.float32)
        ...     RandomK(0.25)(comm, gradient, {}, [(100,)])
        ...     return int((gradient == 2).sum()), int((gradient == 0).sum())
        >>> run_ranks(program, world_size=2)[0]
        (25, 75)
    """

    share: float = 0.01
    seed: int = 0

    def __init__(self, share: float = 0.01, seed: int = 0, error_feedback: bool = True) -> None:
        _require_share(share)
        seed = whole("seed", seed, least=0, hint="seed=0")
        for name, value in (("share", share), ("seed", seed), ("error_feedback", error_feedback)):
            object.__setattr__(self, name, value)

    def send(self, comm: Comm, gradient: Vector, memory: dict[str, Any], shapes: Shapes) -> Vector:
        step = memory["step"] = memory.get("step", -1) + 1
        n, k = len(gradient), _few(self.share, len(gradient))
        places = np.sort(np.random.default_rng([self.seed, step]).choice(n, k, replace=False))
        values = gradient[places]
        mine = np.zeros_like(gradient)
        mine[places] = values
        comm.all_reduce_(values)
        gradient[...] = 0
        gradient[places] = values
        return mine
