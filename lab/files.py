"""Writing a file whole or not at all: beside it first, flushed to disk, then renamed into its place."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """An open file that becomes `path` when the block ends well; when it raises, `path` is as it was.

    A link stays a link, and permissions of a file that was there stay too.

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
    beside = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with beside.open("xb") as file:
            if target.exists():
                beside.chmod(stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    finally:
        with contextlib.suppress(OSError):  # it is gone when all went well
            beside.unlink()
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
