"""The wheel, installed into an environment of its own: what it carries, and that it works far from any checkout."""

import email
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests import dependencies
from tests.support import fetch, free_port, without_root_powers

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.slow


def command(*words, cwd, **environment):
    done = subprocess.run([*map(str, words)], cwd=cwd, env=os.environ | environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Path of the wheel built from this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    command(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder, cwd=ROOT)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """An environment with the wheel; its dependencies are looked up in the environment of the tests."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, symlinks=True)
    command(sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--no-deps", "--no-index",
            wheel, cwd=folder)
    (site,) = folder.glob("lib/python*/site-packages")
    # A line of a .pth file is a path; .pth files over there are not read, so the checkout stays out of reach.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    return folder


def test_the_wheel_carries_code_types_and_lessons_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    lessons = {f"lab/lessons/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert lessons
    assert {"lab/py.typed", "widgets/py.typed", *lessons} <= names
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"lab", "widgets"}
    assert {name for name in names if name.startswith("lab/lessons/")} == lessons
    assert not [name for name in names if "__pycache__" in name]


def test_every_file_that_git_keeps_of_the_packages_is_in_the_wheel(wheel):
    kept = command("git", "ls-files", "lab", "widgets", cwd=ROOT).split()
    assert set(kept) <= set(zipfile.ZipFile(wheel).namelist())


def test_the_metadata_says_what_pyproject_says(wheel):
    archive = zipfile.ZipFile(wheel)
    name = next(name for name in archive.namelist() if name.endswith("METADATA"))
    metadata = email.message_from_bytes(archive.read(name))
    assert metadata["Name"] == "autodiff-lab"
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata["Requires-Python"] == ">=3.11"
    wanted = {pin.split("==")[0] for pin in dependencies.lowest((ROOT / "pyproject.toml").read_text("utf-8"))}
    required = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert {re.match(r"[\w.-]+", line)[0] for line in required} == wanted


def test_the_installed_lab_passes_its_own_doctor(installed, tmp_path):
    out = command(installed / "bin" / "autodiff-lab", "doctor", cwd=tmp_path, PYTHONPATH="")
    assert f"in {next(installed.glob('lib/python*/site-packages'))}/lab/lessons" in out


def test_a_read_only_installation_and_home_work(installed, tmp_path):
    (site,) = installed.glob("lib/python*/site-packages")
    home = tmp_path / "home"
    home.mkdir()
    rooms = [site / "lab", site / "widgets"]
    locked = [home, site, *rooms, *(path for room in rooms for path in room.rglob("*") if path.is_dir())]
    for folder in locked:
        folder.chmod(0o555)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("XDG", "LAB_"))}
    environment |= {"HOME": str(home), "TMPDIR": str(tmp_path), "PYTHONPATH": "", "LC_ALL": "C"}
    for verb in ("warm", "doctor"):
        done = subprocess.run([installed / "bin" / "autodiff-lab", verb], cwd="/", env=environment, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, preexec_fn=without_root_powers)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    for folder in locked:
        folder.chmod(0o755)
    assert f"note  home folder      {home} cannot be written" in done.stdout
    assert f"ok    kernel cache     {tmp_path}" in done.stdout
    assert list(home.iterdir()) == []


def test_the_installed_lab_opens_copies_of_the_lessons(installed, tmp_path):
    share = Path(sys.prefix, "share", "jupyter")
    environment = os.environ | {"PYTHONPATH": "", "JUPYTERLAB_DIR": str(share / "lab"), "JUPYTER_PATH": str(share)}
    words = [installed / "bin" / "autodiff-lab", "open", "--no-browser", f"--port={free_port()}"]
    with subprocess.Popen(words, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        try:
            address = next((found[0] for line in process.stdout if (found := re.search(r"http://\S+", line))), None)
            assert address, process.stderr.read()
            assert b"jupyter-config-data" in fetch(address)
        finally:
            process.terminate()
    copies = sorted((tmp_path / "autodiff-lab-lessons").glob("*.ipynb"))
    assert [path.name for path in copies] == [path.name for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    where = command(installed / "bin" / "python", "-c", "import lab; print(lab.__file__)", cwd=tmp_path, PYTHONPATH="")
    assert where.startswith(str(installed))


@pytest.mark.parametrize(("code", "complaint"), [
    ("from lab.errors import LabError\nproblem: str = LabError('odd', hint='even').problem\n", None),
    ("from lab.errors import LabError\nLabError(1)\n", "[arg-type]"),
])
def test_a_users_type_checker_reads_our_types(installed, tmp_path, code, complaint):
    (tmp_path / "user.py").write_text(code)
    words = [sys.executable, "-m", "mypy", "--strict", "--python-executable", installed / "bin" / "python", "user.py"]
    done = subprocess.run([*map(str, words)], cwd=tmp_path, env=os.environ | {"PYTHONPATH": "", "MYPYPATH": ""},
                          capture_output=True, text=True, check=False)
    assert complaint in done.stdout if complaint else done.returncode == 0, done.stdout + done.stderr


def test_the_lowest_versions_are_the_bounds_of_pyproject():
    text = '[project]\ndependencies = ["numpy>=2.1", "fast>=0.5; sys_platform != \'linux\'"]\n'
    assert dependencies.lowest(text) == ["numpy==2.1", "fast==0.5; sys_platform != 'linux'"]


def test_the_image_pins_every_dependency():
    pins = dependencies.pinned((ROOT / "binder" / "environment.yml").read_text("utf-8"))
    wanted = {pin.split("==")[0] for pin in dependencies.lowest((ROOT / "pyproject.toml").read_text("utf-8"))}
    assert wanted <= {pin.split("==")[0] for pin in pins}


@pytest.mark.parametrize("target", ["lab", "test", "quick", "full", "soak", "lint", "bench", "notebooks", "clean"])
def test_the_makefile_knows_its_targets(target):
    command("make", "--dry-run", target, f"PYTHON={sys.executable}", cwd=ROOT, MAKEFLAGS="")


@pytest.mark.parametrize("python", ["/nonexistent/python3", "false"])
def test_the_makefile_says_what_python_it_needs(python):
    done = subprocess.run(["make", "--dry-run", "quick", f"PYTHON={python}"], cwd=ROOT, capture_output=True, text=True,
                          env=os.environ | {"MAKEFLAGS": ""}, check=False)
    assert done.returncode == 2
    assert "name a Python 3.11 or newer" in done.stderr
