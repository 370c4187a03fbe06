"""Files that a verb leaves behind: refused before the work if they cannot be, written whole or not at all after it."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from pathlib import Path

from lab.errors import ArgumentError, LabError
from lab.events import Recording
from lab.files import require_room

MIB = 1 << 20
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
REPORT_ROOM = 6 * MIB
"""A report is smaller, whatever was recorded."""
RECORDING_ROOM = 4 * MIB
"""Of ten epochs of digits on four workers; longer trainings need more, and are told at their end."""


def require_writable(path: Path | None, what: str, n_bytes: int) -> None:
    """Refuse a file that could not be written now; None is no file.

    Raises:
        ArgumentError: its folder is missing or read-only, the disk is full, or a folder has this name.

    Example:
        >>> require_writable(Path("nowhere/report.html"), "report", 1)
        Traceback (most recent call last):
        lab.errors.ArgumentError: the report cannot be written
        given: nowhere/report.html: No such file or directory
        hint:  make the folder, make room, or name another place
    """
    if path is None:
        return
    try:
        require_room(path, n_bytes)
    except OSError as error:
        room = f" (room for {n_bytes / MIB:.0f} MiB is wanted)" if error.errno in NO_ROOM else ""
        given = f"{path}: {error.strerror or error}{room}"
        raise ArgumentError(f"the {what} cannot be written", given=given,
                            hint="make the folder, make room, or name another place") from error  # fmt: skip


def write(recording: Recording, *, report: Path | None = None, record: Path | None = None) -> bool:
    """Write what was asked for and tell of each file; whether all went well. One that fails does not stop the other."""
    saved = tried("recording", record, recording.save)
    return tried("report", report, lambda path: _report(recording, path)) and saved


def _report(recording: Recording, path: Path) -> None:
    from widgets.export.report import report

    report(recording, path)


def tried(what: str, path: Path | None, save: Callable[[Path], None]) -> bool:
    """Write a file and tell of it, or why it could not be; whether all went well. None is no file."""
    if path is None:
        return True
    try:
        save(path)
    except LabError as error:
        print(error, file=sys.stderr)
        return False
    except OSError as error:
        hint = "a file that was there before is unchanged"
        print(ArgumentError(f"the {what} could not be written", given=f"{path}: {error.strerror or error}", hint=hint),
              file=sys.stderr)  # fmt: skip
        return False
    print(f"The {what} is in {path}", flush=True)
    return True
