"""`open`: copies of the lessons in a folder of the user's, and a JupyterLab for them that only this machine can reach.

What was copied is remembered by its hash, so that a lesson the user has changed can be told from one that is only old.
"""

from __future__ import annotations

import hashlib
import http
import http.client
import json
import logging
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from lab.errors import ArgumentError, LabError
from lab.files import replacing

DEFAULT_FOLDER = "autodiff-lab-lessons"
MANIFEST = ".autodiff-lab.json"
PACKAGE = Path(__file__).resolve().parent

log = logging.getLogger("lab.opener")


def checkout() -> Path | None:
    """Root of the project's working copy when the lab runs from one, None when it is installed."""
    root = PACKAGE.parent
    return root if (root / "pyproject.toml").is_file() and (root / "notebooks").is_dir() else None


def lessons() -> list[Path]:
    """The lessons that came with the lab, in their order.

    Example:
        >>> all(path.suffix == ".ipynb" for path in lessons())
        True
    """
    root = checkout()
    return sorted((root / "notebooks" if root else PACKAGE / "lessons").glob("*.ipynb"))


def prepare(folder: Path | None) -> Path:
    """The folder to open: a checkout's own notebooks, or `folder` with a copy of every lesson.

    Args:
        folder: where the user's copies are; None is DEFAULT_FOLDER here, or the notebooks of a checkout.

    Raises:
        ArgumentError: the folder cannot be made or written.
    """
    root = checkout()
    if folder is None and root is not None:
        return root / "notebooks"
    folder = folder or Path(DEFAULT_FOLDER)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = copy_lessons({path.name: path.read_bytes() for path in lessons()}, folder)
    except OSError as error:
        raise ArgumentError(
            "the lessons cannot be copied",
            given=f"{folder}: {error.strerror}",
            hint="name another folder: autodiff-lab open FOLDER",
        ) from error
    for name in written:
        print(f"{folder / name}")
    return folder.resolve()


def copy_lessons(originals: Mapping[str, bytes], folder: Path) -> list[str]:
    """Bring every lesson into `folder` without touching one that the user changed; returns the names written.

    A lesson that is missing, or is still what an earlier version of the lab put there, gets the new content. Where the
    user's differs, the new content goes beside it as NAME.new.ipynb, if it is news: not what was copied before.
    """
    manifest_path = folder / MANIFEST
    manifest = _read_manifest(manifest_path)
    written = []

    def place(name: str, content: bytes) -> None:
        target, new = folder / name, _hash(content)
        copied, present = manifest.get(name), _hash(target.read_bytes()) if target.exists() else None
        if present == new:
            manifest[name] = new
        elif present is None or present == copied:
            _write(target, content)
            manifest[name] = new
            written.append(name)
        elif copied != new:
            place(f"{target.stem}.new{target.suffix}", content)

    for name, content in originals.items():
        place(name, content)
    _write(manifest_path, json.dumps(manifest, indent=1, sort_keys=True).encode())
    return written


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_manifest(path: Path) -> dict[str, str]:
    """What was copied earlier; a damaged file counts as none, and then every lesson present counts as changed."""
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_bytes())
    except ValueError:
        log.warning("%s is damaged: lessons that differ are taken as yours", path)
        return {}
    return {str(name): str(value) for name, value in content.items()} if isinstance(content, dict) else {}


def _write(path: Path, content: bytes) -> None:
    """Atomic: a full disk or a kill leaves the old file, never half a new one."""
    with replacing(path) as file:
        file.write(content)


def serve(folder: Path, *, port: int = 8888, browser: bool = True) -> int:
    """Run JupyterLab on `folder`, opened at its first lesson, until it ends or Ctrl-C; returns its exit code.

    It listens on 127.0.0.1 only, asks for a token made here, and takes the next free port.

    Args:
        folder: the root of what JupyterLab shows.
        port: the first port to try.
        browser: open one, where there is a display; the address is printed in any case.

    Raises:
        LabError: there is no lesson in `folder`.
    """
    first = next(iter(sorted(folder.glob("*.ipynb"))), None)
    if first is None:
        raise LabError("there is no lesson to open", given=str(folder), hint="in a checkout: make notebooks")
    shown = browser and has_display()
    token = secrets.token_hex(24)
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.default_url=/lab/tree/{first.name}",
        f"--ServerApp.open_browser={shown}",
        "--ServerApp.log_level=ERROR",
        "--LabApp.log_level=ERROR",
        # No news and no search for updates: nothing leaves this machine.
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--ServerApp.allow_root=True")  # a container's only user; nothing else can reach the server
    with _usable_home() as home, _running(command, os.environ | home | {"JUPYTER_TOKEN": token}) as server:
        url = _url(server, token, Path(home["JUPYTER_RUNTIME_DIR"]))
        if url:
            print(f"The lab is open at {url}lab/tree/{first.name}?token={token}")
            print(
                "Press Ctrl-C here to close it." if shown else "Open that address in a browser; Ctrl-C closes it.",
                flush=True,
            )
        return server.wait()


def has_display() -> bool:
    """Whether a browser started here would be seen."""
    if sys.platform in {"win32", "darwin"}:
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


@contextmanager
def _usable_home() -> Iterator[dict[str, str]]:
    """Environment variables by which Jupyter finds folders it can write, the user's own where they can be written.

    A home that is missing or read-only (a container, an account without one) is stood in for by a private temporary
    folder: settings and sessions then last as long as the server.
    """
    from jupyter_core.paths import jupyter_config_dir, jupyter_data_dir, jupyter_runtime_dir

    with tempfile.TemporaryDirectory(prefix="autodiff-lab-", ignore_cleanup_errors=True) as temporary:
        found = {"JUPYTER_PREFER_ENV_PATH": "1"}  # the kernel of this environment, whatever the user has elsewhere
        root = checkout()
        if root is not None:  # the kernel starts in another folder and must find the lab all the same
            found["PYTHONPATH"] = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
        try:
            folders = [Path(jupyter_config_dir()), Path(jupyter_data_dir()), Path(jupyter_runtime_dir())]
            usable = all(_can_be_written(folder) for folder in [*folders, Path.home()])
        except (RuntimeError, OSError) as error:  # no HOME and no entry in the list of users
            log.info("no home folder: %s", error)
            usable = False
        if not usable:
            print("Your home folder cannot be written: Jupyter's settings last until the lab closes.", file=sys.stderr)
            folders = [Path(temporary, name) for name in ("config", "data", "runtime")]
            found |= {"HOME": temporary, "IPYTHONDIR": str(Path(temporary, "ipython"))}
            found |= {"JUPYTER_CONFIG_DIR": str(folders[0]), "JUPYTER_DATA_DIR": str(folders[1])}
        yield found | {"JUPYTER_RUNTIME_DIR": str(folders[2])}


def _can_be_written(folder: Path) -> bool:
    """Whether files can be made in `folder`, or it can be made itself."""
    existing = next(parent for parent in [folder, *folder.parents] if parent.exists())
    return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)


@contextmanager
def _running(command: list[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A child in a session of its own, so that Ctrl-C reaches us alone; ended kindly, then firmly, on the way out."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    watched = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, leave) for number in watched}
    log.debug("starting %s", command)
    server = subprocess.Popen(  # noqa: S603 - the words are our own, and no shell reads them
        command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield server
    finally:
        if server.poll() is None:
            server.terminate()
            try:
                server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        for number, handler in before.items():
            signal.signal(number, handler)


def _url(server: subprocess.Popen[bytes], token: str, runtime: Path) -> str:
    """Address of the server with this token, once it answers; "" when it ended before."""
    while True:
        for path in runtime.glob("jpserver-*.json"):
            try:
                info = json.loads(path.read_bytes())
            except (ValueError, OSError):  # being written, or its server has just ended: look again
                continue
            if info.get("token") == token and _answers(info, token):
                return str(info["url"])
        try:
            server.wait(timeout=0.1)
        except subprocess.TimeoutExpired:
            continue
        return ""


def _answers(info: Mapping[str, Any], token: str) -> bool:
    """Whether the server of this file answers: it writes the file first and begins to listen a moment later."""
    connection = http.client.HTTPConnection("127.0.0.1", info["port"], timeout=5)
    try:
        connection.request("GET", info["base_url"] + "api/status", headers={"Authorization": f"token {token}"})
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
