"""The runs of this process, so that a reloaded page finds its training and a closing process ends it."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lab.autograd import Tensor
from lab.errors import RunError

if TYPE_CHECKING:
    from lab.training.run import Run

N_KEPT = 20
"""So many ended runs are kept, the newest; each keeps its model alive. Runs that go on are always kept."""

_RUNS: list[Run] = []
_LOCK = threading.Lock()
_NAMES: dict[str, int] = {}


def runs() -> list[Run]:
    """The runs of this process, oldest first.

    Example:
        >>> from lab.training import Countdown, Run
        >>> run = Run(Countdown(2), name="short")
        >>> runs()[-1] is run
        True
    """
    with _LOCK:
        return list(_RUNS)


def last_run() -> Run:
    """The run that started last.

    Raises:
        RunError: nothing has run yet.

    Example:
        >>> from lab.training import Countdown, Run
        >>> run = Run(Countdown(2))
        >>> last_run() is run
        True
    """
    with _LOCK:
        if not _RUNS:
            hint = "run = lab.fit(model, train) starts one"
            raise RunError("nothing has run yet", given="no run in this process", hint=hint)
        return _RUNS[-1]


def unique_name(wanted: str) -> str:
    """`wanted`, with a number behind it if a run of this process had the name before."""
    with _LOCK:
        count = _NAMES[wanted] = _NAMES.get(wanted, 0) + 1
        return wanted if count == 1 else f"{wanted}-{count}"


def refuse_trained(parameters: Sequence[Tensor]) -> None:
    """Two runs on the same parameters would spoil both.

    Raises:
        RunError: a run that has not ended changes one of them.
    """
    wanted = {id(p) for p in parameters}
    for run in runs():
        if not run.ended and wanted & {id(p) for p in run.parameters}:
            raise RunError(
                "this model is being trained already",
                given=repr(run),
                hint="lab.last_run.stop() ends that run, `await` waits for it; or train a fresh model",
            )


def enter(run: Run) -> None:
    """Keep a run that starts, and let the oldest ended ones go."""
    with _LOCK:
        ended = [r for r in _RUNS if r.ended]
        for old in ended[: max(0, len(ended) - N_KEPT + 1)]:
            _RUNS.remove(old)
        _RUNS.append(run)


def stop_all(timeout: float = 2.0, with_ranks: float = 15.0) -> None:
    """Stop all runs without a word, since nobody will wait: a thread that computes while Python closes may crash.

    Args:
        timeout: seconds that each gets.
        with_ranks: seconds for one that says what it waits for, as workers that end.
    """
    live = [run for run in runs() if not run.ended]
    for run in live:
        run.abandon()
    for run in live:
        if not run.join(timeout) and run.waits_for:
            run.join(with_ranks)


def _before_threads_end(callback: Callable[[], object]) -> None:
    """Call it when the program ends, while threads can still begin something: how ranks on a cluster are told to stop.

    Executors refuse work before `atexit` is served. The hook that comes earlier is private to Python; where it is
    missing, such a run ends with errors in the log.
    """
    import concurrent.futures.thread  # noqa: F401 -- now: of those that register, the last is called first

    getattr(threading, "_register_atexit", atexit.register)(callback)


_before_threads_end(stop_all)
