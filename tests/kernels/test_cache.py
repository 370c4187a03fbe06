"""Faults of the kernel cache, with real folders, real files and real processes: whatever happens, kernels compute."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.kernels import cache

pytestmark = pytest.mark.slow  # each test starts one process or more, and most of them compile
ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, logging, os, sys
notices = []
class Keep(logging.Handler):
    def emit(self, record): notices.append(record.getMessage())
logging.getLogger("lab.kernels").addHandler(Keep())
import numpy as np
import lab.kernels as lk
from lab.kernels import Chain, Formula, Step, fuse
assert "numba" not in sys.modules, "importing the kernels imports numba"
{before}
p, g, v = np.ones(3), np.ones(3), np.zeros(3)
lk.sgd(p, g, v, 0.5, 0.9, 0.0, False)
lk.sgd(p, g, v, 0.5, 0.9, 0.0, False)
for_numba = Formula("exp(x) + sinc_slope(x, 1)")  # of which no machine code is written without it
y = fuse(Chain((("x", "float64"),), (Step("y", for_numba, ("x",), ("x",)),), ("y",)))(np.zeros(2))[0]
print(json.dumps(dict(p=p.tolist(), y=y.tolist(), notices=notices, how=lk.KERNELS["sgd"].compiled.get("float64"),
                      folder=str(lk.cache_folder()) if lk.have_numba() else "")))
"""
RIGHT = {"p": [-0.45] * 3, "y": [1.0, 1.0]}


def start(before: str = "", **environment: str | None) -> subprocess.Popen[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("LAB_", "XDG_"))} | {"PYTHONPATH": str(ROOT)}
    for name, value in environment.items():
        env.pop(name, None)
        if value is not None:
            env[name] = value
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM.replace("{before}", textwrap.dedent(before))],
        env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=110)
    assert process.returncode == 0, err
    said = [line for line in err.splitlines() if "kernel cache" not in line]
    assert not said, err
    found: dict[str, Any] = json.loads(out)
    assert [round(x, 12) for x in found["p"]] == RIGHT["p"]
    assert found["y"] == RIGHT["y"]
    return found


def run(before: str = "", **environment: str | None) -> dict[str, Any]:
    return finish(start(before, **environment))


def files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file())


@pytest.fixture(scope="module")
def warmed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with two kernels in it."""
    folder = tmp_path_factory.mktemp("cache") / "lab"
    found = run(LAB_CACHE_DIR=str(folder))
    assert found["how"] == "compiled"
    assert found["notices"] == []
    return folder


@pytest.fixture
def copied(warmed: Path, tmp_path: Path) -> Iterator[Path]:
    target = tmp_path / "lab"
    subprocess.run(["cp", "-a", str(warmed), str(target)], check=True)
    yield target
    subprocess.run(["chmod", "-R", "u+rwX", str(tmp_path)], check=True)


def test_the_second_process_loads_what_the_first_compiled(warmed: Path) -> None:
    before = [(p, p.stat().st_mtime_ns) for p in files(warmed)]
    found = run(LAB_CACHE_DIR=str(warmed))
    assert found["how"] == "loaded"
    assert found["notices"] == []
    assert [(p, p.stat().st_mtime_ns) for p in files(warmed)] == before
    assert len(before) == 2
    assert {p.suffix for p, _ in before} == {".nbc", ".obj"}
    for folder in (warmed, *warmed.iterdir()):
        assert folder.stat().st_mode & 0o777 == 0o700


DAMAGE = {
    "empty": lambda raw: b"",
    "truncated": lambda raw: raw[: len(raw) // 2],
    "one byte short": lambda raw: raw[:-1],
    "one bit flipped": lambda raw: raw[:1000] + bytes([raw[1000] ^ 1]) + raw[1001:],
    "of another tool": lambda raw: b"#!/bin/sh\n" + raw,
    "a whole file with a foreign pickle": lambda raw: _whole(b"\x80\x04K\x01."),
    "a whole file with half a pickle": lambda raw: _whole(raw[len(cache.MAGIC) + 32 :][:1000]),
}


def _whole(payload: bytes) -> bytes:
    import hashlib

    return cache.MAGIC + hashlib.sha256(payload).digest() + payload


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_replaced_and_said_once(copied: Path, damage: Any) -> None:
    whole = {p: p.read_bytes() for p in files(copied)}
    for path, raw in whole.items():
        path.write_bytes(damage(raw))
    found = run(LAB_CACHE_DIR=str(copied))
    assert found["how"] == "compiled"
    assert len(found["notices"]) == len(whole)
    assert all("compiling again" in notice for notice in found["notices"])
    assert files(copied) == sorted(whole)
    for path, raw in whole.items():
        assert path.read_bytes() == _whole(path.read_bytes()[len(cache.MAGIC) + 32 :])
        assert path.read_bytes() != damage(raw)


def test_eight_processes_may_start_at_once_on_an_empty_cache(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    wait = "import lab.kernels.backend; print('ready', file=sys.stderr, flush=True); sys.stdin.readline()"
    processes = [start(wait, LAB_CACHE_DIR=str(folder)) for _ in range(8)]
    for process in processes:
        assert process.stderr is not None
        assert process.stderr.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [finish(process)["notices"] for process in processes] == [[]] * 8
    assert len(files(folder)) == 2, "no leftovers of files that were being written"
    assert run(LAB_CACHE_DIR=str(folder))["how"] == "loaded"


# Root may write anywhere: the program becomes another user once everything is imported (numba imports much when it
# first compiles), because that user may not be allowed to read this Python.
BECOME_NOBODY = """
import tempfile, lab.kernels.backend
lab.kernels.backend.numba.njit(lambda x: np.exp(x))(1.0)
lab.kernels.backend.cache.version_key()
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
"""


def test_nothing_writable_at_all_still_computes_and_says_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    found = run(BECOME_NOBODY, LAB_CACHE_DIR=str(closed / "lab"), XDG_CACHE_HOME=str(closed), HOME=str(closed))
    assert found["how"] in ("compiled", "loaded")
    assert len(found["notices"]) == 2, "one for each place; then the folder for temporary files serves"
    assert all(f"{closed}" in notice and "cannot be used" in notice for notice in found["notices"])


def test_a_read_only_cache_is_not_written_to(copied: Path) -> None:
    for path in (copied, *copied.rglob("*")):
        path.chmod(0o555)
    found = run(BECOME_NOBODY, LAB_CACHE_DIR=str(copied), HOME=None, TMPDIR=str(copied.parent))
    assert "cannot be used" in found["notices"][0]
    assert not found["folder"].startswith(str(copied) + "/")


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_a_folder_that_others_may_write_to_is_refused(copied: Path, mode: int, tmp_path: Path) -> None:
    copied.chmod(mode)
    found = run(LAB_CACHE_DIR=str(copied), XDG_CACHE_HOME=str(tmp_path / "xdg"))
    assert found["how"] == "compiled", "not loaded from there"
    assert len(found["notices"]) == 1
    assert "others may write to it" in found["notices"][0]
    assert found["folder"].startswith(str(tmp_path / "xdg"))


def test_a_folder_inside_one_that_everybody_may_write_to_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    found = run(LAB_CACHE_DIR=str(shared / "lab"), XDG_CACHE_HOME=str(tmp_path / "xdg"))
    assert "others may replace it" in found["notices"][0]
    assert found["folder"].startswith(str(tmp_path / "xdg"))


def test_a_folder_of_another_user_is_refused(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    with pytest.raises(PermissionError, match=f"belongs to user {me}, not to {me + 1}"):
        cache._private(copied)


def test_a_link_in_the_place_of_the_folder_is_refused(copied: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(copied)
    with pytest.raises(PermissionError, match="no folder of its own"):
        cache._private(tmp_path / "link")


def test_a_full_disk_costs_only_the_cache(tmp_path: Path) -> None:
    # A limit on the size of files ends a write as a full disk does (EFBIG for ENOSPC), and needs no mount.
    full = """
    import resource, signal, lab.kernels.backend
    lk.cache_folder()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    """
    found = run(full, LAB_CACHE_DIR=str(tmp_path / "lab"))
    assert found["how"] == "compiled"
    assert len(found["notices"]) == 1, "said once for both kernels"
    assert "nothing can be kept in" in found["notices"][0]
    assert files(tmp_path / "lab") == []


@pytest.mark.parametrize("home", [None, "/nonexistent", "", "/dev/null"])
def test_without_a_home_the_cache_goes_to_the_folder_for_temporary_files(home: str | None, tmp_path: Path) -> None:
    found = run(HOME=home, TMPDIR=str(tmp_path))
    assert found["folder"].startswith(f"{tmp_path}/autodiff-lab-{os.geteuid()}/kernels-")
    assert found["notices"] == []


def test_the_folder_goes_by_lab_cache_dir_then_xdg_then_home(tmp_path: Path) -> None:
    lab, xdg, home = (tmp_path / name for name in ("lab", "xdg", "home"))
    home.mkdir()
    assert next(cache._candidates(str(lab), str(xdg), str(home))) == lab
    assert next(cache._candidates("", str(xdg), str(home))) == xdg / "autodiff-lab"
    assert next(cache._candidates("", "relative", str(home))) == home / ".cache" / "autodiff-lab"


def test_another_version_of_anything_uses_another_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    here = cache.version_key()
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "0.0" if name == "llvmlite" else real(name))
    assert cache.version_key.__wrapped__() != here


def test_another_cpu_uses_another_file(warmed: Path) -> None:
    before = set(files(warmed))
    found = run(LAB_CACHE_DIR=str(warmed), NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")
    assert found["how"] == "compiled"
    made = set(files(warmed)) - before
    for path in made:
        path.unlink()
    assert len(made) == 2


@pytest.mark.parametrize("place", [{"PYTHONDONTWRITEBYTECODE": "1"}, {"LANG": "C", "LC_ALL": "C"}])
def test_odd_environments_compute(place: dict[str, str], warmed: Path) -> None:
    assert run(LAB_CACHE_DIR=str(warmed), **place)["how"] in ("loaded", "compiled")


BLOCK = """
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocker())
assert not lk.have_numba()
"""


def test_without_numba_the_twins_compute_and_no_folder_is_made(tmp_path: Path) -> None:
    found = run(BLOCK + "lk.warm()", LAB_CACHE_DIR=str(tmp_path / "lab"))
    assert found["how"] is None
    assert found["notices"] == []
    assert not (tmp_path / "lab").exists()
