"""What a launch makes of its ranks' outcomes: the results, or one error that names the first cause."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from lab.errors import LostRankError, MeshError, PlanError, RankError, RunError
from lab.parallel.cluster.rank import Outcome
from lab.parallel.paper.calling import place_of
from lab.parallel.transport.sending import line_of


def outcome_of(rank: int, future: Any) -> Outcome:
    """The outcome of a rank's task, which has ended somehow."""
    if future.status == "finished":
        outcome = future.result()
        assert isinstance(outcome, Outcome)
        return outcome
    error = future.exception() if future.status == "error" else None
    return Outcome(rank, "stopped", summary=f"its task is {future.status}" + (f": {error}" if error else ""))


def results_of(outcomes: Mapping[int, Outcome], world_size: int) -> list[Any] | None:
    """What the program returned, by rank; None unless all ranks have finished."""
    if len(outcomes) < world_size or any(outcome.state != "finished" for outcome in outcomes.values()):
        return None
    return [pickle.loads(outcomes[rank].value) for rank in range(world_size)]  # noqa: S301 -- our own ranks'


def error_of(
    cause: Mapping[str, Any], outcomes: Mapping[int, Outcome], world_size: int, run: str, unended: Sequence[str] = ()
) -> BaseException:
    """The error of a launch that did not finish.

    Args:
        cause: what the scheduler knows: kind, why, rank; may be empty.
        outcomes: of the ranks that could still tell.
        unended: addresses of workers whose ranks still run and that nobody restarts.
    """
    stay = "; ".join(f"worker {w} could not be ended and has no nanny: kill or restart it" for w in unended)
    kind, why, rank = cause.get("kind", ""), cause.get("why", ""), cause.get("rank", -1)
    raised = outcomes.get(rank) if kind == "raised" else None
    raised = raised or next((o for o in outcomes.values() if o.state == "failed" and kind in {"", "raised"}), None)
    if raised is not None:
        return _raised(raised, world_size, stay)
    if kind == "lost" or (kind == "late" and rank >= 0):
        return LostRankError(why, rank=rank, given=f"{world_size} ranks, {run}",
                             hint=stay or "the other ranks have ended; the cluster goes on, launch again")  # fmt: skip
    if kind in {"stopped", "late"}:
        return RunError(why, given=run, hint=stay or "all ranks have ended; launch again")
    if kind == "stuck":
        return MeshError(why, given=f"{world_size} ranks, {run}", hint="of two ranks that wait for each other one must "
                         "send before it receives, and all must make the same collectives")  # fmt: skip
    told = "; ".join(o.summary for o in outcomes.values() if o.summary)
    return MeshError(why or "the ranks ended without a word", given=told, hint=stay or "launch again")


def _raised(outcome: Outcome, world_size: int, stay: str) -> BaseException:
    """What a rank raised, as it is raised here: with the traceback of the rank, cells' lines filled in."""
    frames = traceback.StackSummary.from_list(
        [(file, line, name, text or line_of(file, line)) for file, line, name, text in outcome.frames]
    )
    where = f"On rank {outcome.rank}:\n{''.join(frames.format())}"
    error: BaseException | None = pickle.loads(outcome.error) if outcome.error else None  # noqa: S301 -- our own rank's
    if isinstance(error, MeshError | LostRankError | PlanError):
        error.add_note(where.rstrip() + (f"\n{stay}" if stay else ""))
        return error
    place = f" at {place_of(*outcome.place)}" if outcome.place else ""
    made = RankError(
        f"the program raised on rank {outcome.rank} of {world_size}{place}",
        given=outcome.summary.replace("\n", "; "),
        hint=f"{stay or 'all ranks were ended'}; the traceback of this rank follows",
        rank=outcome.rank, traceback=f"{where}{outcome.summary}",
    )  # fmt: skip
    made.__cause__ = error.with_traceback(None) if error is not None else None  # its frames are told above
    return made
