"""A lesson that runs: its predictions and checks, and the learner's progress in it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from lab.errors import ArgumentError
from lab.parallel.cluster.cluster import Cluster
from lab.teach.exercise import Feedback
from lab.teach.exercises import EXERCISES
from lab.teach.predict import Prediction
from lab.teach.progress import Progress
from lab.teach.refusal import Refusal
from lab.teach.source import source_of

T = TypeVar("T")

PROGRESS_FILE = "my_progress.json"
NAME = re.compile(r"[\w-]{1,64}")


class Lesson:
    """Predictions, checks and progress of one lesson.

    Args:
        name: the lesson's number or file name, e.g. "00"; a lesson of your own may have any other.
        progress: where answers are kept; by default the file `my_progress.json` in the current folder, or what the
            environment variable LAB_PROGRESS names ("" keeps nothing on disk).

    Raises:
        ArgumentError: a name that is none.

    Example:
        >>> lesson = Lesson("00", progress=Progress(None))
        >>> prediction = lesson.prediction("slope", "of x * x at 3", answer=lambda: 6)
        >>> lesson.commit("slope", 6)
        >>> prediction.reveal().right
        True
    """

    def __init__(self, name: str, *, progress: Progress | None = None) -> None:
        given: object = name
        if not isinstance(given, str) or not NAME.fullmatch(given):
            raise ArgumentError("a lesson has a name of letters, digits, _ and -", given=repr(name),
                                hint='Lesson("00"), as the first cell of the notebook says')  # fmt: skip
        self.name = name
        self.progress = progress if progress is not None else Progress(default_path())
        self.predictions: dict[str, Prediction] = {}

    def prediction(
        self,
        name: str,
        question: str,
        *,
        answer: Callable[[], object],
        unit: str = "",
        tolerance: float = 1e-6,
        choices: Sequence[str] = (),
    ) -> Prediction:
        """Ask a question; what was committed under its name in an earlier session is committed again."""
        made = Prediction(question, answer=answer, unit=unit, tolerance=tolerance, choices=choices)
        before = self.progress.chapter(self.name)["predictions"].get(name)
        if before is not None:
            try:
                made.commit(before["value"])
            except ArgumentError:  # the question has changed since: ask it again
                del self.progress.chapter(self.name)["predictions"][name]
        self.predictions[name] = made
        return made

    def commit(self, name: str, value: object) -> None:
        """Commit to the prediction of this name, and keep what was said.

        Raises:
            ArgumentError: no prediction has this name, or it cannot have this value.
            PredictionError: the answer has been revealed.
        """
        prediction = find(self.predictions, name)
        prediction.commit(value)
        assert prediction.guess is not None
        self.progress.said(self.name, name, prediction.guess)

    def check(self, function: Callable[..., object] | None = None, *, timeout: float = 3.0) -> Feedback:
        """Check a function against the exercise of its name.

        Raises:
            ArgumentError: no function was given, or no exercise has this name.
        """
        if function is None:
            raise ArgumentError("check was given no function", given="lesson.check()",
                                hint="lesson.check(NAME), with the name of the function above it")  # fmt: skip
        name = getattr(function, "__name__", "")
        if name not in EXERCISES:
            raise ArgumentError("no exercise has this name", given=repr(name) if name else repr(function),
                                hint=f"the function keeps the name of its stub: {', '.join(EXERCISES)}")  # fmt: skip
        before = self.progress.chapter(self.name)["exercises"].get(name)
        source = source_of(function)
        n_seen = before["tries"] - (before["source"] == source) if before else 0
        feedback = EXERCISES[name].check(function, n_hints_seen=max(n_seen, 0), timeout=timeout)
        untouched = source.strip() == EXERCISES[name].stub.strip()  # as Run All finds it
        if not (before and untouched):
            self.progress.tried(self.name, name, passed=feedback.passed, source=source, counts=not untouched)
        return feedback

    def cluster(self, n_workers: int = 4) -> Cluster:
        """`lab.parallel.Cluster(n_workers)`, but started only once, however often the cell is run; anew after `close`.

        Raises:
            MeshError: the workers cannot be started.
        """
        return workers(n_workers)

    def refusal(self) -> Refusal:
        """For what shall be refused: `with lesson.refusal() as why: ...`, and then `why` tells it."""
        return Refusal()

    def summary(self) -> list[tuple[str, str]]:
        """What was asked in this session and how it stands, one row each: (what, state)."""
        rows = [(name, _state(p)) for name, p in self.predictions.items()]
        for name, tried in self.progress.chapter(self.name)["exercises"].items():
            tries = f"{tried['tries']} {'try' if tried['tries'] == 1 else 'tries'}"
            not_yet = f"not yet, {tries}" if tried["tries"] else "not yet tried"
            rows.append((f"exercise {name}", "passed" if tried["passed"] else not_yet))
        return rows


_CLUSTERS: dict[int, Cluster] = {}
"""Those that `workers` started in this process, by their number of workers."""


def workers(n_workers: int) -> Cluster:
    """The workers of this process's lessons; others than these many are closed first: memory is short."""
    found = _CLUSTERS.get(n_workers)
    if found is not None and found.client.status == "running":
        return found
    while _CLUSTERS:
        _CLUSTERS.popitem()[1].close()
    return _CLUSTERS.setdefault(n_workers, Cluster(n_workers))


def find(predictions: Mapping[str, T], name: str) -> T:
    """The prediction of this name.

    Raises:
        ArgumentError: there is none.
    """
    if name not in predictions:
        asked = ", ".join(predictions) or "none"
        raise ArgumentError("no prediction has this name", given=repr(name),
                            hint=f"run the cell that asks it; asked so far: {asked}")  # fmt: skip
    return predictions[name]


def _state(prediction: Prediction) -> str:
    """Only told, never found out: a look at the lesson must not lock what is open."""
    if prediction.outcome is not None:
        return prediction.outcome.text
    return "not yet committed" if prediction.guess is None else "committed, not yet revealed"


def default_path() -> Path | None:
    """Where progress is kept: LAB_PROGRESS, or `my_progress.json` in the current folder; None for LAB_PROGRESS=""."""
    named = os.environ.get("LAB_PROGRESS")
    if named is None:
        return Path.cwd() / PROGRESS_FILE
    return Path(named) if named else None
