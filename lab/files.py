"""Writing a file whole or not at all: beside it first, flushed to disk, then renamed into its place.

And what every function that takes a path says of one that is none, or where no file can be.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from lab.errors import ArgumentError, FileError, LabError
from lab.words import shown


def path_of(given: object, hint: str) -> Path:
    """What was given as a path, as one.

    Raises:
        ArgumentError: it is none.

    Example:
        >>> path_of("model.graph", "a file").suffix
        '.graph'
    """
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str) or "\0" in os.fspath(given):
        raise ArgumentError("a file is named by its path", given=shown(given), hint=hint)
    return Path(given)


@contextlib.contextmanager
def telling(problem: str, path: Path, hint: str) -> Iterator[None]:
    """What the system says of a file is told in three lines.

    Raises:
        FileError: instead of OSError.

    Example:
        >>> with telling("the letter cannot be read", Path("nowhere"), "write one first"): Path("nowhere").read_text()
        Traceback (most recent call last):
            ...
        lab.errors.FileError: the letter cannot be read
        given: nowhere: No such file or directory
        hint:  write one first
    """
    try:
        yield
    except LabError:
        raise
    except OSError as why:
        raise FileError(problem, given=f"{path}: {why.strerror or why}", hint=hint) from why


def read_whole(path: Path, most: int) -> bytes | None:
    """All bytes of a file, None if there are more than `most`: then none was read.

    Raises:
        OSError: there is no such file, or it may not be read, or it is a folder, a pipe, a device.

    Example:
        >>> read_whole(Path(__file__), most=10) is None
        True
    """
    # Without waiting: a pipe of that name would wait for a writer for ever.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is a folder, a device, a pipe or a socket, and no file", str(path))
        if status.st_size > most:
            return None
        return file.read(status.st_size)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, beside: str = "") -> Iterator[BinaryIO]:
    """An open file that becomes `path` when the block ends well; when it raises, `path` is as it was.

    A link stays a link, and permissions of a file that was there stay too.

    Args:
        beside: what the file is called until then, for the only one who writes there: if that process is killed, the
            next one writes over what it left. A name of its own if not given.

    Raises:
        OSError: the folder is missing or read-only, the disk is full, or what is there is no file that may be written:
            a device, a pipe, a folder, a file without any permission to write; nothing is left beside.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with replacing(Path(folder) / "answer") as file: _ = file.write(b"42")
        ...     [p.name for p in Path(folder).iterdir()]
        ['answer']
    """
    target = Path(os.path.realpath(path))
    _require_replaceable(target)
    unfinished = target.with_name(beside or f".{secrets.token_hex(8)}.part")
    try:
        with unfinished.open("wb" if beside else "xb") as file:
            if target.exists():
                unfinished.chmod(stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(target)
    finally:
        with contextlib.suppress(OSError):  # it is gone when all went well
            unfinished.unlink()
    if os.name == "posix":  # the new name is on disk only when the folder is
        handle = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def require_room(path: str | os.PathLike[str], n_bytes: int) -> None:
    """Find out whether `replacing(path)` would succeed now with so many bytes; leaves nothing behind.

    Raises:
        OSError: the folder is missing or read-only, the disk has less room, or `path` may not be replaced.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     require_room(Path(folder) / "answer", 1000)
        ...     list(Path(folder).iterdir())
        []
    """
    target = Path(os.path.realpath(path))
    _require_replaceable(target)
    beside = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with beside.open("xb") as file:
            if hasattr(os, "posix_fallocate"):  # the size alone would be granted by a full disk too
                os.posix_fallocate(file.fileno(), 0, max(1, n_bytes))  # of 0 it says that the argument is wrong
    finally:
        with contextlib.suppress(OSError):  # it could not be made
            beside.unlink()


def _require_replaceable(target: Path) -> None:
    """Refuse to put a file where something else is. Root could: what is renamed to /dev/null takes its place."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a device, a pipe or a socket, and no file", str(target))
    if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(errno.EACCES, "the file is read-only", str(target))
