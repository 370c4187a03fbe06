"""The wheel, installed into an environment of its own: what it carries, and that it works far from any checkout."""

import email
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from lab.kernels.cache import cache_folder
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
    borrowing(folder)
    command(sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--no-deps", "--no-index",
            wheel, cwd=folder)
    return folder


def borrowing(folder):
    """Make an environment of its own in which only what the tests have is installed, and not the lab."""
    venv.create(folder, symlinks=True, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    # A line of a .pth file is a path; .pth files over there are not read, so the checkout stays out of reach.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))


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


@pytest.fixture
def nearly_warm(tmp_path):
    """A folder for temporary files in which all kernels are compiled but a few: those must be compiled and kept."""
    command(sys.executable, "-m", "lab", "warm", cwd=ROOT)
    kernels = tmp_path / f"autodiff-lab-{os.geteuid()}" / cache_folder().name
    kernels.parent.mkdir(mode=0o700)
    shutil.copytree(cache_folder(), kernels)
    kernels.chmod(0o700)
    missing = sorted(kernels.iterdir())[::20]
    for path in missing:
        path.unlink()
    return missing


def test_a_read_only_installation_and_home_work(installed, nearly_warm, tmp_path):
    assert nearly_warm
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
    assert [path for path in nearly_warm if path.exists()]


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
    text += '[project.optional-dependencies]\npng = ["resvg_py>=0.5"]\n'
    assert dependencies.lowest(text) == ["numpy==2.1", "fast==0.5; sys_platform != 'linux'"]
    assert dependencies.lowest(text, extra="png") == ["resvg_py==0.5"]


def test_the_image_pins_every_dependency_and_what_it_stands_on():
    wanted = {pin.split("==")[0] for pin in dependencies.lowest((ROOT / "pyproject.toml").read_text("utf-8"))}
    extra = dependencies.lowest((ROOT / "pyproject.toml").read_text("utf-8"), extra="png")  # PNG works on Binder, too
    wanted |= {pin.split("==")[0] for pin in extra}
    assert "resvg_py" in wanted
    assert wanted | {"dask", "llvmlite", "hatchling"} == {pin.split("==")[0] for pin in image_pins()}


def image_pins():
    return dependencies.pinned((ROOT / "binder" / "environment.yml").read_text("utf-8"))


def test_an_environment_has_the_versions_that_it_was_made_from():
    assert dependencies.differing(dependencies.made_from()) == []


def test_a_pin_that_differs_from_what_is_installed_is_named_with_both():
    here = importlib.metadata.version("numpy")
    pins = [f"numpy=={here}", "numpy==0.1", "no-such-thing==1.0; sys_platform != 'win32'"]
    assert dependencies.differing(pins) == [f"numpy 0.1 pinned, {here} here", "no-such-thing 1.0 pinned, none here"]


def test_the_image_takes_only_python_from_conda():
    lines = (ROOT / "binder" / "environment.yml").read_text("utf-8").splitlines()
    start = lines.index("dependencies:")
    assert [line.split("=")[0] for line in lines[start + 1 : start + 4]] == ["  - python", "  - pip", "  - pip:"]
    assert all(re.fullmatch(r"      - [\w-]+==[\w.]+", line) for line in lines[start + 4 :])


def test_repo2docker_would_build_the_image_from_our_three_files():
    recipe = command(sys.executable, "-m", "repo2docker", "--no-build", "--debug", ".", cwd=ROOT)
    python = re.search(r"- python=(\S+)", (ROOT / "binder" / "environment.yml").read_text("utf-8"))[1]
    assert f"-2epy-2d{python.replace('.', '-2e')}-2d" in recipe  # it has a lock file for this Python
    before, copied, after = recipe.partition("COPY --chown=0:0 src/ ${REPO_DIR}/")
    assert copied
    # The slow layer depends on the pins alone, so that a change of the lab does not rebuild it.
    assert "COPY --chown=0:0 src/binder/environment.yml ${REPO_DIR}/binder/environment.yml" in before
    assert 'env update -p ${NB_PYTHON_PREFIX} --file "binder/environment.yml"' in before
    assert "./binder/postBuild" in after
    assert 'ENV R2D_ENTRYPOINT="${REPO_DIR}/binder/start"' in after


def test_what_the_image_runs_may_be_run_and_stops_at_the_first_error():
    for name in ("postBuild", "start"):
        path = ROOT / "binder" / name
        assert path.stat().st_mode & 0o111 == 0o111
    post_build, start = ((ROOT / "binder" / name).read_text("utf-8").splitlines() for name in ("postBuild", "start"))
    assert next(line for line in post_build if not line.startswith("#")) == "set -euo pipefail"
    assert start[-1] == 'exec "$@"'


def test_the_image_is_finished_by_post_build_and_its_start_finds_the_kernels_compiled(tmp_path):
    checkout, place = tmp_path / "checkout", tmp_path / "place"
    for name in command("git", "ls-files", cwd=ROOT).splitlines():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    borrowing(place)
    path = f"{place / 'bin'}:{os.environ['PATH']}"
    environment = {"PATH": path, "LAB_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": ""}
    command(checkout / "binder" / "postBuild", cwd=checkout, **environment)

    def compiled():
        return {file.name: file.stat().st_mtime_ns for file in (tmp_path / "cache").rglob("*") if file.is_file()}

    before = compiled()
    assert before
    out = command(checkout / "binder" / "start", "python", "-c", TRAIN, cwd=tmp_path, **environment)
    assert out.split()[:2] == ["generic", str(next(place.glob("lib/python*/site-packages")) / "lab" / "__init__.py")]
    assert compiled() == before


TRAIN = """
import os, lab
train, test = lab.data.digits()
result = lab.fit(lab.nn.mlp(64, 16, 10, rng=0), train, validation=test, epochs=1).wait()
print(os.environ["NUMBA_CPU_NAME"], lab.__file__, result)
"""


@pytest.mark.parametrize("target", ["lab", "test", "quick", "full", "soak", "lint", "bench", "notebooks", "clean"])
def test_the_makefile_knows_its_targets(target):
    command("make", "--dry-run", target, f"PYTHON={sys.executable}", cwd=ROOT, MAKEFLAGS="")


@pytest.mark.parametrize("python", ["/nonexistent/python3", "false"])
def test_the_makefile_says_what_python_it_needs(python):
    done = subprocess.run(["make", "--dry-run", "quick", f"PYTHON={python}"], cwd=ROOT, capture_output=True, text=True,
                          env=os.environ | {"MAKEFLAGS": ""}, check=False)
    assert done.returncode == 2
    assert "name a Python 3.11 or newer" in done.stderr
