"""Bookmarks: places of a recording with a note, kept in a file beside it, so that a teacher can prepare them.

The file knows which recording it belongs to by the events before the last bookmark's end: beside another one it is
refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab import checks
from lab.errors import ViewError
from lab.events import EVENTS, Event
from lab.files import replacing
from widgets.fold import Events

FORMAT = "autodiff-lab bookmarks"
SCHEMA = 1
MOST = 1000
"""Bookmarks of one recording."""
LONGEST_NOTE = 500
"""Letters; a longer note is cut."""
MOST_BYTES = 4 * 2**20
_HINT = "bookmarks are written by player.save_bookmarks(path)"


class Bookmark(NamedTuple):
    """A place with a note. It is a position and no stop, so that it is valid for every view of the recording."""

    position: int
    """How many events have been folded there."""
    note: str


def noted(note: object) -> str:
    r"""A note on one line, cut where it is too long.

    Example:
        >>> noted("  the gradient \n explodes here ")
        'the gradient explodes here'
    """
    line = " ".join(str(note).split())
    return line if len(line) <= LONGEST_NOTE else f"{line[: LONGEST_NOTE - 1]}…"


def save(path: str | PathLike[str], bookmarks: Iterable[Bookmark], events: Events) -> None:
    """Write bookmarks to a file, whole or not at all.

    Raises:
        ViewError: the folder is missing, the disk full ...; a file that was there before is as it was.
    """
    path = checks.path(path, hint='for example "run.marks"', error=ViewError)
    n = len(events)
    written = {
        "format": FORMAT,
        "schema": SCHEMA,
        "events": n,
        "digest": digest(events, n),
        "bookmarks": [{"position": b.position, "note": b.note} for b in bookmarks],
    }
    try:
        with replacing(path) as file:
            file.write((json.dumps(written, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "replace"))
    except (OSError, ValueError) as why:
        raise ViewError(
            "the bookmarks could not be saved", given=f"{path}: {getattr(why, 'strerror', None) or why}",
            hint="make the folder, make room, or name another place",
        ) from why  # fmt: skip


def load(path: str | PathLike[str], events: Events) -> list[Bookmark]:
    """The bookmarks of a file, in order of their places.

    Raises:
        ViewError: no such file, no bookmarks, or those of another recording.
    """
    path = checks.path(path, hint=_HINT, error=ViewError)
    try:
        found = json.loads(_read(path))
    except (OSError, ValueError, RecursionError) as why:
        raise ViewError(
            "the bookmarks could not be read", given=f"{path}: {getattr(why, 'strerror', None) or why}", hint=_HINT
        ) from why
    return _checked(found, str(path), events)


def _read(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise ValueError("it is no file")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES:,} bytes")
    return data


def _checked(found: Any, path: str, events: Events) -> list[Bookmark]:
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ViewError("this file holds no bookmarks", given=path, hint=_HINT)
    n, listed = found.get("events"), found.get("bookmarks")
    if not isinstance(found.get("schema"), int) or found["schema"] > SCHEMA:
        raise ViewError(
            "the bookmarks were written by a newer lab", given=f"{path}: schema {found.get('schema')!r}",
            hint="upgrade autodiff-lab to open them",
        )  # fmt: skip
    if type(n) is not int or n < 0 or not isinstance(listed, list) or len(listed) > MOST:
        raise ViewError("the bookmarks are damaged", given=f"{path}: no list of at most {MOST:,}", hint=_HINT)
    made = []
    for k, entry in enumerate(listed):
        match entry:
            case {"position": int(position), "note": str(note)} if type(position) is int and 0 <= position <= n:
                made.append(Bookmark(position, noted(note)))
            case _:
                raise ViewError(
                    "the bookmarks are damaged", given=f"{path}: number {k + 1} is no place with a note", hint=_HINT
                )
    if len(events) < n:
        raise ViewError(
            "the bookmarks belong to another recording, or to more of this one",
            given=f"{path}: made over {n:,} events, this recording has {len(events):,}",
            hint="open them beside the recording for which they were made",
        )
    if digest(events, n) != found.get("digest"):
        raise ViewError(
            "the bookmarks belong to another recording", given=f"{path}: the first {n:,} events are others",
            hint="open them beside the recording for which they were made",
        )  # fmt: skip
    return sorted(made)


def digest(events: Events, n: int) -> str:
    """What tells the first n events of a recording from those of any other: their kinds, places and times."""
    seen = sha256()
    kinds: Iterable[type[Event]] = getattr(events, "kinds", EVENTS.values())
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        columns = events.columns(kind, 0, n)
        if len(columns["position"]):
            seen.update(kind.__name__.encode())
            for name in ("position", "time_ns"):
                seen.update(np.ascontiguousarray(columns[name], "<i8").tobytes())
    return seen.hexdigest()
