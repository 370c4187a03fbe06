"""Recordings that a verb reads: whole, or with --salvage as much of a damaged one as stands whole."""

from __future__ import annotations

from pathlib import Path

from lab.errors import RecordingError
from lab.events import Recording
from lab.events.loading import SALVAGE_HINT


def read(path: Path, *, salvage: bool, does: str) -> Recording:
    """The recording in a file.

    Args:
        does: what the verb does with it, "makes the page of": for the hint.

    Raises:
        RecordingError: it cannot be read; the hint of a damaged one is what can be typed.
    """
    try:
        return Recording.load(path, salvage=salvage)
    except RecordingError as why:
        if why.hint != SALVAGE_HINT:
            raise
        hint = f"the same command with --salvage {does} the part before the damage"
        raise RecordingError(why.problem, given=why.given, hint=hint) from why
