"""A private folder for compiled kernels, and files in it that are whole or not there.

numba's own cache keeps an index beside numbered data files: workers that start together can give one number to two
kernels, and a truncated file raises in every later process. Here each compiled kernel is one file, named by a hash of
everything that it depends on, written aside and renamed, with a checksum in front. What does not fit its checksum is
dropped and made again.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

LOG = logging.getLogger("lab.kernels")
MAGIC = b"lab-kernel-1\n"
_said: set[str] = set()
_lock = threading.Lock()


def say_once(key: str, message: str, *values: object) -> None:
    """Log a warning the first time that `key` comes up in this process."""
    with _lock:
        if key in _said:
            return
        _said.add(key)
    LOG.warning(message, *values)


def cache_folder() -> Path:
    """The folder for this Python, numba and machine: mode 0700, ours; made when it is not there.

    The first place that works out of LAB_CACHE_DIR, XDG_CACHE_HOME (or ~/.cache) and the folder for temporary files.
    The files are pickles, so a place that somebody else could write to is refused; then, and when nothing is
    writable, it is a new private folder that goes when the process ends. Both are said once, as a warning of the
    logger "lab.kernels".

    Example:
        >>> oct(cache_folder().stat().st_mode & 0o777)
        '0o700'
    """
    return _folder(
        os.environ.get("LAB_CACHE_DIR", ""),
        os.environ.get("XDG_CACHE_HOME", ""),
        os.environ.get("HOME", ""),
        os.getpid(),
    )


@cache
def _folder(wanted: str, xdg: str, home: str, pid: int) -> Path:
    for base in _candidates(wanted, xdg, home):
        try:
            folder = _private(_private(base) / f"kernels-{version_key()}")
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except PermissionError as why:
            say_once(f"folder {base}", "kernel cache: %s cannot be used (%s)", base, why)
        except OSError as why:
            say_once(f"folder {base}", "kernel cache: %s cannot be used (%s)", base, why.strerror or why)
    fresh = Path(tempfile.mkdtemp(prefix="autodiff-lab-"))
    atexit.register(_remove_own, fresh, pid)
    say_once("fresh", "kernel cache: kernels are kept in %s until this process ends", fresh)
    return fresh


def _remove_own(folder: Path, pid: int) -> None:
    if os.getpid() == pid:  # a forked child inherits the exit handler, not the folder
        shutil.rmtree(folder, ignore_errors=True)


def _candidates(wanted: str, xdg: str, home: str) -> Iterator[Path]:
    if wanted:
        yield Path(wanted).absolute()
    if Path(xdg).is_absolute():  # the XDG rules: a relative path is to be ignored
        yield Path(xdg) / "autodiff-lab"
    elif os.path.isdir(home):  # noqa: PTH112 - Path.is_dir raises where the folder above may not be read
        yield Path(home) / ".cache" / "autodiff-lab"
    yield Path(tempfile.gettempdir()).absolute() / f"autodiff-lab-{_user()}"


def _user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0


def _private(folder: Path) -> Path:
    """Make `folder` (0700) or check the one that is there.

    Raises:
        PermissionError: it belongs to another user, others may write to it, or it could be swapped by others.
    """
    if not folder.parent.exists():
        _private(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if not hasattr(os, "geteuid"):  # Windows: profile folders are private by their access lists
        return folder
    about, above = folder.lstat(), folder.parent.stat()
    if not stat.S_ISDIR(about.st_mode):
        raise PermissionError("it is no folder of its own")
    if about.st_uid != os.geteuid():
        raise PermissionError(f"it belongs to user {about.st_uid}, not to {os.geteuid()}")
    if about.st_mode & 0o022:
        raise PermissionError(f"others may write to it (mode {about.st_mode & 0o777:04o}); chmod 700 makes it private")
    if above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX:
        raise PermissionError(f"others may replace it: {folder.parent} is writable by everybody")
    return folder


@cache
def version_key() -> str:
    """Hash of what compiled code depends on besides itself: Python, numba, llvmlite and the sources of lab.kernels."""
    from importlib import metadata

    digest = hashlib.sha256(repr((sys.version, sys.platform, sys.maxsize)).encode())
    for package in ("numba", "llvmlite", "numpy"):
        try:
            digest.update(metadata.version(package).encode())
        except metadata.PackageNotFoundError:
            digest.update(b"none")
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


def load(name: str) -> bytes | None:
    """The bytes saved under `name`, or None; a damaged file is removed and reported once."""
    path = cache_folder() / name
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as why:
        say_once(f"read {path}", "kernel cache: %s cannot be read (%s), compiling again", path, why.strerror)
        return None
    head, checksum, payload = raw[: len(MAGIC)], raw[len(MAGIC) : len(MAGIC) + 32], raw[len(MAGIC) + 32 :]
    if head == MAGIC and hashlib.sha256(payload).digest() == checksum:
        return payload
    drop(name, "it is damaged")
    return None


def drop(name: str, why: str) -> None:
    """Remove a file that cannot be used, and say so once."""
    path = cache_folder() / name
    say_once(f"drop {path}", "kernel cache: %s is not used (%s), compiling again", path, why)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        say_once(f"unlink {path}", "kernel cache: %s cannot be removed (%s)", path, error.strerror)


def save(name: str, payload: bytes) -> None:
    """Keep `payload` under `name`: aside first, then renamed, so that readers see all of it or nothing.

    A full or read-only disk is reported once and costs nothing but the next compilation.
    """
    folder = cache_folder()
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix="writing-")
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + hashlib.sha256(payload).digest() + payload)
        Path(temporary).replace(folder / name)
    except OSError as why:
        say_once(f"save {folder}", "kernel cache: nothing can be kept in %s (%s)", folder, why.strerror)
        if temporary:
            Path(temporary).unlink(missing_ok=True)
