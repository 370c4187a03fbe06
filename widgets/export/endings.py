"""The endings that files of pictures can have, and what each of them holds: here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from lab import checks
from lab.errors import ViewError
from lab.files import replacing

ENDINGS: Final[Mapping[str, str]] = {
    ".html": "is a page that plays in any browser",
    ".svg": "moves by itself",
    ".png": "is the picture as it is now",
}


def writable(path: str | Path) -> Path:
    """The path, if a file of a kind that can be written can stand there.

    Raises:
        ViewError: no path, another ending than those of `ENDINGS`, or a folder that is not there.

    Example:
        >>> writable("picture.PNG").name
        'picture.PNG'
        >>> writable("picture.pdf")
        Traceback (most recent call last):
        lab.errors.ViewError: pictures are written as .html, .svg or .png
        given: picture.pdf
        hint:  .html is a page that plays in any browser, .svg moves by itself, .png is the picture as it is now
    """
    path = checks.path(path, hint='for example "picture.html"', error=ViewError)
    if path.suffix.lower() not in ENDINGS:
        *first, last = ENDINGS
        raise ViewError(f"pictures are written as {', '.join(first)} or {last}", given=path.name or str(path),
                        hint=", ".join(f"{ending} {what}" for ending, what in ENDINGS.items()))  # fmt: skip
    if not path.parent.is_dir():
        raise ViewError("the folder to write into is not there", given=path.parent, hint="make it, or name another")
    return path


@contextmanager
def file_at(path: str | Path) -> Iterator[BinaryIO]:
    """The file to write a picture into; what was there before stays until all is written.

    Raises:
        ViewError: it cannot be written there: a folder that takes no files, a full disk.
    """
    try:
        with replacing(path) as file:
            yield file
    except OSError as why:
        raise ViewError("the file cannot be written", given=f"{path}: {why.strerror or why}",
                        hint="another folder, or more room on the disk") from why  # fmt: skip
