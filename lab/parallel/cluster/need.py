"""The memory that ranks of a training will need: compared with what a worker may take before the first of them begins.

And if a worker was ended for its memory nevertheless, what is said of it: how much it had, of how much, and what was
expected.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lab.errors import LostRankError, MeshError, RankMemoryError
from lab.parallel.cluster.memory import BUSY_MB, MB, room

log = logging.getLogger("lab.parallel")

ENDS = 0.95
"""Part of its limit at which a nanny ends a worker: `distributed.worker.memory.terminate`, if nobody has changed it."""


class Need(NamedTuple):
    """Bytes that each rank of a training needs beside what every worker has.

    Attributes:
        model: parameters, their gradients and what the optimiser keeps of them.
        kept: states to go back to, and to go on from after a loss.
        data: the examples, and the training as it is sent.
        per_example: what a step keeps of each example from forward to backward.
        n_examples: in a batch, over all ranks.
    """

    model: int = 0
    kept: int = 0
    data: int = 0
    per_example: int = 0
    n_examples: int = 0

    @property
    def at_least(self) -> int:
        """Without any step: what is there for certain, the worker with it."""
        return BUSY_MB * MB + self.model + self.kept + self.data

    def of(self, n_ranks: int) -> int:
        """In a step, on the rank with the most examples.

        Example:
            >>> Need(model=20 * MB, per_example=MB, n_examples=64).of(4) // MB
            166
        """
        return self.at_least + self.per_example * -(-self.n_examples // n_ranks)

    def in_words(self, n_ranks: int) -> str:
        """What adds up to that.

        Example:
            >>> Need(20 * MB, 40 * MB, 8 * MB, MB, 64).in_words(4)
            '130 the worker, 20 model and optimiser, 40 states kept, 8 data, 16 a step of 16 examples'
        """
        n = -(-self.n_examples // n_ranks)
        parts = [(BUSY_MB * MB, "the worker"), (self.model, "model and optimiser"), (self.kept, "states kept"),
                 (self.data, "data"), (self.per_example * n, f"a step of {n} examples")]  # fmt: skip
        return ", ".join(f"{_mb(n_bytes)} {what}" for n_bytes, what in parts if n_bytes >= MB // 2)


def forewarn_ranks(need: Need, limits: Sequence[int]) -> None:
    """Compare the need of ranks with what their workers may take; 0 is no limit.

    Logs a warning if it does not fit by the estimate, which may be wrong.

    Raises:
        MeshError: it does not fit even without a step.

    Example:
        >>> forewarn_ranks(Need(model=400 * MB, kept=600 * MB), [1000 * MB, 1000 * MB])
        Traceback (most recent call last):
        lab.errors.MeshError: the training does not fit into the memory of its workers
        given: each of 2 ranks needs 1,130 MB (130 the worker, 400 model and optimiser, 600 states kept), and a worker
        may take 950 MB
        hint:  fewer workers get more each; DataParallel(on_loss="stop") keeps no states; or a smaller model
    """
    limit, n_ranks = min((limit for limit in limits if limit), default=0), len(limits)
    if not limit or need.of(n_ranks) <= ENDS * limit:
        return
    who = f"each of {n_ranks} ranks" if n_ranks > 1 else "the rank"
    given = (f"{who} needs {_mb(need.of(n_ranks))} MB ({need.in_words(n_ranks)}), and a worker may "
             f"take {_mb(ENDS * limit)} MB")  # fmt: skip
    if need.at_least > ENDS * limit:
        hint = 'fewer workers get more each; DataParallel(on_loss="stop") keeps no states; or a smaller model'
        raise MeshError("the training does not fit into the memory of its workers", given=given, hint=hint)
    log.warning("memory will be short: %s", given)


def ended_for_memory(
    loss: LostRankError, worker: str, killed: tuple[int, int] | None, n_ranks: int, need: Need | None, n_others: int = 0
) -> LostRankError:
    """The loss of a rank as it is told: as one for memory, if it was.

    Args:
        killed: bytes that the worker had when its nanny ended it, and its limit; None if that is not known.
        need: what was expected of each rank, if anything was.
        n_others: processes that the system has ended for want of memory since the launch began.

    Example:
        >>> plain = LostRankError("rank 1 was lost: its worker a is gone", given="2 ranks, run-7", rank=1)
        >>> print(ended_for_memory(plain, "a", (310 * MB, 300 * MB), 2, Need(model=80 * MB)))
        rank 1 was lost: its worker a had taken 310 MB of the 300 MB that it may, and was ended
        given: 2 ranks, run-7; 210 MB were expected of each (130 the worker, 80 model and optimiser)
        hint:  a smaller batch or model; or fewer workers, which get more each; the cluster goes on
    """
    if killed is None and not n_others:
        return loss
    problem = f"{loss.problem}, while the system ended a process for want of memory"
    given = f"{loss.given}; {here}" if killed is None and (here := room()) is not None else loss.given
    if killed is not None:
        had, limit = killed
        problem = (f"rank {loss.rank} was lost: its worker {worker} had taken {_mb(had)} MB of the {_mb(limit)} MB "
                   "that it may, and was ended")  # fmt: skip
    if need is not None:
        given += f"; {_mb(need.of(n_ranks))} MB were expected of each ({need.in_words(n_ranks)})"
    return RankMemoryError(problem, given=given, rank=loss.rank, hint="a smaller batch or model; or fewer workers, "
                           "which get more each; the cluster goes on")  # fmt: skip


def n_ended_by_system(proc: Path = Path("/proc")) -> int:
    """Processes that this machine has ended for want of memory since it runs, in a container or not; 0 if unknown."""
    try:
        rows = [line.split() for line in (proc / "vmstat").read_text("ascii").splitlines()]
    except OSError:  # not Linux
        return 0
    return next((int(row[1]) for row in rows if row[0] == "oom_kill"), 0)


def _mb(n_bytes: float) -> str:
    return f"{n_bytes / MB:,.0f}"
