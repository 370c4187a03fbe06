"""Predictions and answers of a learner, kept in one small JSON file beside the lessons.

The file is written whole to a temporary neighbour and renamed, so it is never half there; reading it runs no code.
"""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path
from typing import Any, TypedDict

from lab.errors import DataError
from lab.files import replacing

VERSION = 1
MAX_BYTES = 2_000_000
ANEW = "move it away, and a new one begins"
MAX_SOURCE = 10_000
"""Characters of an answer's source text that are kept."""


class Said(TypedDict):
    """A committed prediction."""

    value: float | str


class Tried(TypedDict):
    """An exercise that was checked."""

    passed: bool
    tries: int
    """Different answers that were not right; decides which hint comes next."""
    source: str
    """The last answer's text. It is shown, never run."""


class Chapter(TypedDict):
    """All of one lesson."""

    predictions: dict[str, Said]
    exercises: dict[str, Tried]


class Progress:
    """What a learner did, by lesson.

    Args:
        path: the file; None keeps everything in memory.

    Attributes:
        notice: a sentence for the learner if the file could not be read or written, else "".

    Example:
        >>> progress = Progress(None)
        >>> progress.said("00", "slope", 4.0)
        >>> progress.chapter("00")["predictions"]
        {'slope': {'value': 4.0}}
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.notice = ""
        self._chapters: dict[str, Chapter] = {}
        if path is not None and path.exists():
            try:
                self._chapters = read(path)
            except DataError as why:
                self._set_aside(path, why)

    def chapter(self, lesson: str) -> Chapter:
        """What is known of a lesson; empty for one that was not begun."""
        return self._chapters.setdefault(lesson, {"predictions": {}, "exercises": {}})

    def said(self, lesson: str, question: str, value: float | str) -> None:
        """Keep a committed prediction."""
        self.chapter(lesson)["predictions"][question] = {"value": value}
        self._save(lesson)

    def tried(self, lesson: str, exercise: str, *, passed: bool, source: str, counts: bool = True) -> None:
        """Keep the result of a check; the same wrong answer checked twice counts once, an untouched stub not at all."""
        before = self.chapter(lesson)["exercises"].get(exercise, {"passed": False, "tries": 0, "source": ""})
        source = source[:MAX_SOURCE]
        new = counts and not passed and source != before["source"]
        self.chapter(lesson)["exercises"][exercise] = {
            "passed": passed or before["passed"],
            "tries": before["tries"] + new,
            "source": source,
        }
        self._save(lesson)

    def forget(self, lesson: str) -> None:
        """Begin a lesson anew."""
        self._chapters[lesson] = {"predictions": {}, "exercises": {}}
        self._save(lesson)

    def _save(self, lesson: str) -> None:
        if self.path is None:
            return
        try:
            others = read(self.path) if self.path.exists() else {}  # another notebook may have written meanwhile
            self._chapters = others | {lesson: self.chapter(lesson)}
            write(self.path, self._chapters)
            self.notice = ""
        except (OSError, DataError) as why:
            self.notice = f"Your answers are kept until the kernel ends, but not saved: {why}"

    def _set_aside(self, path: Path, why: DataError) -> None:
        aside = path.with_name(path.name + ".damaged")
        with contextlib.suppress(OSError):  # a folder that cannot be written: the notice still tells it
            path.replace(aside)
        self.notice = f"The file with your answers could not be read and was set aside as {aside.name}: {why.problem}"


def write(path: Path, chapters: dict[str, Chapter]) -> None:
    """Write all lessons, atomically."""
    data = {"format": "autodiff-lab progress", "version": VERSION, "lessons": chapters}
    with replacing(path) as file:
        file.write(json.dumps(data, indent=1, allow_nan=False).encode())


def read(path: Path) -> dict[str, Chapter]:
    """Read and check the lessons of a file.

    Raises:
        DataError: too large, no JSON, another program's, of a newer version, or not in its form.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DataError("a progress file is small", given=f"{path.name}: {path.stat().st_size} bytes", hint=ANEW)
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as why:
        if isinstance(why, DataError):
            raise
        raise DataError("this is not a progress file", given=f"{path.name}: {why}", hint=ANEW) from why
    if not isinstance(data, dict) or data.get("format") != "autodiff-lab progress":
        raise DataError("this is not a progress file", given=path.name, hint=ANEW)
    if data.get("version") != VERSION:
        raise DataError("this progress file is of another version of the lab", given=f"version {data.get('version')!r}",
                        hint=f"this lab reads version {VERSION}")  # fmt: skip
    lessons = data.get("lessons")
    if not isinstance(lessons, dict) or not all(_is_chapter(c) for c in lessons.values()):
        raise DataError("this progress file is damaged", given=path.name, hint=ANEW)
    return lessons


def _is_chapter(c: Any) -> bool:
    return (
        isinstance(c, dict)
        and set(c) == {"predictions", "exercises"}
        and isinstance(c["predictions"], dict)
        and isinstance(c["exercises"], dict)
        and all(_is_said(p) for p in c["predictions"].values())
        and all(_is_tried(e) for e in c["exercises"].values())
    )


def _is_said(p: Any) -> bool:
    if not isinstance(p, dict) or set(p) != {"value"}:
        return False
    v = p["value"]
    return isinstance(v, str) or (type(v) in (int, float) and math.isfinite(v))


def _is_tried(e: Any) -> bool:
    kinds = {"passed": bool, "tries": int, "source": str}
    return isinstance(e, dict) and set(e) == set(kinds) and all(type(e[k]) is t for k, t in kinds.items())
