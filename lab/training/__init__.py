"""Training: runs in threads that can be watched, paused, changed and awaited."""

from lab.training.accumulation import Accumulation
from lab.training.calling import step_through
from lab.training.counting import Counted
from lab.training.evaluate import Evaluation, evaluate
from lab.training.fit import fit
from lab.training.job import RECORDED, Countdown, Job
from lab.training.registry import last_run, runs, stop_all
from lab.training.result import Result
from lab.training.run import Run

__all__ = [
    "RECORDED",
    "Accumulation",
    "Countdown",
    "Counted",
    "Evaluation",
    "Job",
    "Result",
    "Run",
    "evaluate",
    "fit",
    "last_run",
    "runs",
    "step_through",
    "stop_all",
]
