"""`doctor`: can the lab work on this machine? One function a check, each failure with its cure.

A check returns what it found, or raises Ailment. Only an ailment that stops the lab is a failure; the others are notes.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from lab import __version__, opener
from lab.memory import DEFAULT_MB
from lab.memory import VARIABLE as KEPT_MB

MIB = 1 << 20
LESSON_MB = 900
"""Notebook server, kernel and four workers at most, in all; `tests/benchmarks memory` measures."""
PATIENCE_S = 30
"""How long two workers may take to start: 2 s on a machine at rest."""

SETTINGS: dict[str, tuple[str, str]] = {
    "LAB_LOG": ("", "level of the lab's messages on stderr, read at `import lab`: debug, info, warning or error"),
    "LAB_CACHE_DIR": ("", "folder for compiled kernels; empty is XDG_CACHE_HOME, ~/.cache, or the temporary folder"),
    "LAB_PROGRESS": (
        "my_progress.json",
        "file with the answers to the lessons, in the folder of the notebook; empty keeps nothing",
    ),
    KEPT_MB: (
        str(DEFAULT_MB),
        "megabytes of freed memory that stay with the process; 0 leaves glibc's allocator alone",
    ),
    "LAB_CHROMIUM": ("", "path of the browser that the browser tests drive"),
}
"""Every environment variable the lab reads: its default and what it does."""


class Ailment(Exception):  # noqa: N818 - caught here and shown as a line of the table, never an error of the user's
    """What is wrong, and what to do about it."""

    def __init__(self, found: str, cure: str, *, serious: bool = True) -> None:
        super().__init__(found)
        self.found, self.cure, self.serious = found, cure, serious


class Result(NamedTuple):
    """One line of the table; `state` is "ok", "note" or "FAIL", and `cure` is empty when all is well."""

    state: str
    name: str
    found: str
    cure: str = ""


TWO_RANKS = """
import numpy as np
from lab.parallel import Cluster

with Cluster(2) as cluster:
    print(int(cluster.launch(lambda comm: comm.all_reduce_(np.array([1.0 + comm.rank]))[0])[0]))
"""
CLUSTER_CURE = "see memory, loopback and temporary files above; until then everything without workers can be used"

CHECKS: dict[str, Callable[[], str]] = {}


def check(name: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Put a function into the table of checks."""

    def register(function: Callable[[], str]) -> Callable[[], str]:
        CHECKS[name] = function
        return function

    return register


def report() -> int:
    """Print the table of checks and the settings; 1 when a check failed, else 0."""
    print(f"autodiff-lab {__version__} on {platform.platform()}")
    failed = False
    for result in examine():
        print(f"{result.state:<5} {result.name:<16} {result.found}", flush=True)
        if result.cure:
            print(f"      {'':<16} cure: {result.cure}")
        failed |= result.state == "FAIL"
    print("\nSettings (environment variables)")
    for name, (value, source, meaning) in settings().items():
        print(f"      {name:<16} {value or '-'} ({source}): {meaning}")
    print("\nSomething above needs its cure before the lab can work." if failed else "\nThe lab can work here.")
    return int(failed)


def examine() -> Iterator[Result]:
    """Run every check, one after another; whatever a check raises becomes a line of the table."""
    for name, function in CHECKS.items():
        try:
            yield Result("ok", name, function())
        except Ailment as ailment:
            yield Result("FAIL" if ailment.serious else "note", name, ailment.found, ailment.cure)
        except Exception as error:  # noqa: BLE001 - a broken machine breaks in ways nobody listed, and the table goes on
            yield Result("FAIL", name, f"{type(error).__name__}: {error}", "report this line to the project")


def settings() -> dict[str, tuple[str, str, str]]:
    """Value, source and meaning of every LAB_* variable; one that the lab does not know is listed too.

    Example:
        >>> settings()["LAB_CHROMIUM"][1] in {"default", "environment"}
        True
    """
    table = {}
    for name, (default, meaning) in SETTINGS.items():
        table[name] = (os.environ.get(name, default), "environment" if name in os.environ else "default", meaning)
    for name in sorted(set(os.environ) - set(SETTINGS)):
        if name.startswith("LAB_"):
            table[name] = (os.environ[name], "environment", "not a setting of the lab: a spelling mistake?")
    return table


def requirements() -> dict[str, str]:
    """Lowest version of every run-time dependency that applies on this machine, as pyproject.toml or the wheel says."""
    root = opener.checkout()
    if root is not None:
        lines: list[str] = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    else:
        lines = importlib.metadata.requires("autodiff-lab") or []
    found = (re.match(r"([\w.-]+)\s*>=\s*([\d.]+)\s*(;.*extra\s*==)?", line) for line in lines)
    return {match[1]: match[2] for match in found if match and not match[3]}


def _numbers(version: str) -> tuple[int, ...]:
    """The release part of a version: "9.2.0rc1" is (9, 2, 0)."""
    release = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, release[0].split("."))) if release else ()


def _install(what: str) -> str:
    return f'{sys.executable} -m pip install --upgrade "{what}"'


@check("Python")
def python() -> str:
    """The interpreter that the lab runs in."""
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < (3, 11):  # noqa: UP036 - pip refuses, a checkout does not
        raise Ailment(found, "install Python 3.11 or newer")
    return found


@check("packages")
def packages() -> str:
    """Every dependency is here, and new enough."""
    missing, found = [], []
    for name, lowest in requirements().items():
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            if name != "fast-sugiyama":  # no wheel for some machines; the plain layout stands in
                missing.append((name, lowest, "missing"))
            continue
        found.append(f"{name} {version}")
        if _numbers(version) < _numbers(lowest):
            missing.append((name, lowest, version))
    if missing:
        wanted = '" "'.join(f"{name}>={lowest}" for name, lowest, _ in missing)
        raise Ailment(
            ", ".join(f"{name} {version} (needs {lowest})" for name, lowest, version in missing), _install(wanted)
        )
    return ", ".join(found)


@check("numba")
def numba() -> str:
    """The compiler of the kernels works, not just imports."""
    if importlib.util.find_spec("numba") is None:
        raise Ailment("not installed: kernels run as plain Python, slowly", _install("numba"))
    start = time.perf_counter()
    try:
        from numba import njit

        answer = njit()(_triple)(14)
    except Exception as error:
        raise Ailment(f"cannot compile: {type(error).__name__}: {error}", _install("numba")) from error
    if answer != 42:
        raise Ailment(f"compiled 3 * 14 to {answer}", _install("numba"))
    return f"compiles ({time.perf_counter() - start:.1f} s with its import)"


def _triple(x: int) -> int:
    return 3 * x


@check("kernel cache")
def kernel_cache() -> str:
    """Compiled kernels can be kept, where nobody else can put code into them."""
    from lab import kernels

    folder, wanted = kernels.cache_folder(), os.environ.get("LAB_CACHE_DIR")
    if wanted and not folder.is_relative_to(Path(wanted).absolute()):
        raise Ailment(
            f"{folder}, because {wanted} cannot be written or is open to others",
            f"chmod 700 {wanted}, or set LAB_CACHE_DIR to another folder of yours",
            serious=False,
        )
    if not folder.name.startswith("kernels-"):  # the stand-in of a process that found no folder to keep kernels in
        raise Ailment(
            "kernels are compiled anew by every process: no folder of yours can be written",
            "set LAB_CACHE_DIR to a folder that only you can write",
            serious=False,
        )
    return str(folder)


@check("home folder")
def home() -> str:
    """Jupyter keeps settings there; without it they last until the lab closes."""
    cure = "set HOME to a folder of yours, if settings should outlive the lab"
    try:
        folder = Path.home()
    except RuntimeError as error:
        raise Ailment("none: HOME is not set and this user has no entry", cure, serious=False) from error
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise Ailment(f"{folder} cannot be written", cure, serious=False)
    return str(folder)


@check("temporary files")
def temporary() -> str:
    """Some folder takes temporary files."""
    try:
        folder = tempfile.gettempdir()
        with tempfile.NamedTemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free // MIB
    except OSError as error:
        raise Ailment(str(error), "set TMPDIR to a folder that can be written and has room") from error
    if free < 200:
        raise Ailment(f"{folder}, only {free} MiB free", "make room, or set TMPDIR to another folder", serious=False)
    return f"{folder}, {free} MiB free"


@check("loopback")
def loopback() -> str:
    """JupyterLab listens on 127.0.0.1."""
    try:
        with socket.socket() as door:
            door.bind(("127.0.0.1", 0))
            return f"127.0.0.1:{door.getsockname()[1]} can be bound"
    except OSError as error:
        raise Ailment(str(error), "bring up the loopback interface: ip link set lo up") from error


@check("lessons")
def lessons() -> str:
    """The notebooks came along."""
    found = opener.lessons()
    if not found:
        raise Ailment("none", "in a checkout: make notebooks; otherwise install autodiff-lab again")
    return f"{len(found)} in {found[0].parent}"


@check("memory")
def memory() -> str:
    """What is free: of the machine's, or of what this container may use."""
    from lab.parallel.cluster import memory as forewarning

    here = forewarning.room()
    if here is None:
        return "unknown on this platform"
    if here.free < LESSON_MB * forewarning.MB:
        cure = f"close other notebooks: a lesson with four workers takes up to {LESSON_MB} MB"
        raise Ailment(str(here), cure, serious=False)
    return str(here)


@check("shared memory")
def shared_memory() -> str:
    """Ranks on one machine pass arrays through it."""
    folder = Path("/dev/shm")
    if not folder.is_dir():
        return "no /dev/shm on this platform"
    cure = "start the container with --shm-size=256m; without, ranks use sockets"
    if not os.access(folder, os.W_OK):
        raise Ailment("/dev/shm cannot be written", cure, serious=False)
    free = shutil.disk_usage(folder).free // MIB
    if free < 64:
        raise Ailment(f"/dev/shm has {free} MiB free", cure, serious=False)
    return f"/dev/shm, {free} MiB free"


@check("unix sockets")
def unix_sockets() -> str:
    """Ranks on one machine talk through them."""
    cure = "ranks use TCP on 127.0.0.1 instead, a little slower; nothing to do"
    if not hasattr(socket, "AF_UNIX"):
        raise Ailment("none on this platform", cure, serious=False)
    try:
        with socket.socket(socket.AF_UNIX) as door, socket.socket(socket.AF_UNIX) as caller:
            door.bind("")  # Linux chooses an abstract name, which no folder need hold
            door.listen()
            caller.connect(door.getsockname())
    except OSError as error:
        raise Ailment(str(error), cure, serious=False) from error
    return "can be used"


@check("cluster")
def cluster() -> str:
    """Two workers start on this machine, and their ranks find each other."""
    start = time.perf_counter()
    root = opener.checkout()  # whose folder need not be where the doctor was called
    found = [str(root)] if root else []
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*found, *filter(None, [os.environ.get("PYTHONPATH")])])}
    child = subprocess.Popen(  # noqa: S603 - in a process of its own: whatever goes wrong there ends with it
        [sys.executable, "-c", TWO_RANKS], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True)  # fmt: skip
    try:
        out, err = child.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise Ailment(f"two workers did not start within {PATIENCE_S} s", CLUSTER_CURE, serious=False) from None
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
    if out.strip() != "3":
        lines = [line for line in err.splitlines() if line.strip()] or [f"two ranks gave {out.strip()!r}, not 3"]
        raise Ailment(lines[-1][:200], CLUSTER_CURE, serious=False)
    return f"two workers sum over their sockets ({time.perf_counter() - start:.1f} s with their start)"


@check("processors")
def processors() -> str:
    """How many the lab may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{usable} usable ({platform.machine()})"


@check("Chromium")
def chromium() -> str:
    """Only the project's own browser tests need it."""
    names = (os.environ.get("LAB_CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, (shutil.which(name) for name in names if name)), None)
    if found is None:
        raise Ailment("not found", "only the browser tests need it; `make test` brings it", serious=False)
    return found
