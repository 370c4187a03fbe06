"""The command line as a user meets it: real processes, exit codes, plain terminals."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab import __main__ as cli
from lab import doctor, kernels, opener
from lab.errors import KernelError

ROOT = Path(__file__).parent.parent


def run(*words, **environment):
    """`python -m lab WORDS` with no terminal, in an environment where None removes a variable."""
    merged = {name: value for name, value in (os.environ | environment).items() if value is not None}
    return subprocess.run([sys.executable, "-m", "lab", *words], cwd=ROOT, env=merged, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)


@pytest.mark.parametrize("verb", [(), ("open",), ("doctor",), ("warm",)])
def test_help_is_given(verb):
    done = run(*verb, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: autodiff-lab")


@pytest.mark.parametrize("words", [(), ("shut",), ("open", "--port", "many"), ("doctor", "now")])
def test_a_wrong_command_is_2_with_the_usage(words):
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: autodiff-lab" in done.stderr


def test_version_is_the_packages():
    assert run("--version").stdout == f"autodiff-lab {cli.__version__}\n"


def test_warm_compiles_with_progress_and_says_where():
    done = run("warm")
    assert (done.returncode, done.stderr) == (0, "")
    *progress, last = done.stdout.splitlines()
    assert progress
    assert all(line.startswith("Kernels [") and "\r" not in line for line in progress)
    total = len(progress) - 1  # one line before each kernel, and one at the end
    assert progress[-1].startswith(f"Kernels [{'#' * 20}] {total}/{total}")
    assert last == f"The compiled kernels are in {kernels.cache_folder()}"


def test_warm_moves_one_line_on_a_terminal(monkeypatch, capsys):
    def two(progress):
        progress(1, 2, "first")
        progress(2, 2, "second")

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(kernels, "warm", two)
    assert cli.main(["warm"]) == 0
    line, *_ = capsys.readouterr().out.split("\n")
    assert line.count("\r") == 2
    assert line.rstrip().endswith("2/2 second")


def test_an_error_of_the_lab_is_its_three_lines_and_1(monkeypatch, capsys):
    def fail(progress):
        raise KernelError("the cache cannot be written", given="/nowhere", hint="set HOME")

    monkeypatch.setattr(kernels, "warm", fail)
    assert cli.main(["warm"]) == 1
    assert capsys.readouterr().err == "the cache cannot be written\ngiven: /nowhere\nhint:  set HOME\n"


def test_an_unknown_log_level_is_named_and_no_reason_to_stop():
    done = run("--version", LAB_LOG="loud")
    assert (done.returncode, done.stdout) == (0, f"autodiff-lab {cli.__version__}\n")
    assert done.stderr == "WARNING lab: LAB_LOG=loud is not a level: it can be debug, info, warning, error\n"


@pytest.mark.parametrize(("level", "shown"), [("debug", "DEBUG lab.x: hello\n"), ("WARNING", ""), ("", ""), (None, "")])
def test_the_log_is_shown_from_the_level_that_was_set_wherever_the_lab_is_imported(level, shown):
    code = "import lab, logging; logging.getLogger('lab.x').debug('hello')"
    environment = os.environ | {"LAB_LOG": level or ""}
    if level is None:
        del environment["LAB_LOG"]
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stderr) == (0, shown)


def test_every_variable_that_the_lab_reads_is_a_setting():
    sources = [path.read_text("utf-8") for room in ("lab", "widgets") for path in (ROOT / room).rglob("*.py")]
    read = {name for source in sources for name in re.findall(r"""environ(?:\.get\(|\[)["'](LAB_\w+)""", source)}
    assert read == set(doctor.SETTINGS)


@pytest.mark.parametrize("port", ["99999", "-1", "65536", "8e3", ""])
def test_a_port_that_there_is_not_is_refused(port):
    done = run("open", "--port", port)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"a port is a number from 0 (any free one) to 65535, not {port!r}" in done.stderr


def test_ctrl_c_is_130_without_a_traceback(monkeypatch, capsys):
    monkeypatch.setattr(kernels, "warm", lambda progress: os.kill(os.getpid(), signal.SIGINT))
    assert cli.main(["warm"]) == 130
    assert capsys.readouterr().err == "\nStopped.\n"


def test_a_reader_that_leaves_early_causes_no_traceback():
    with subprocess.Popen([sys.executable, "-m", "lab", "doctor"], cwd=ROOT, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_open_reports_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "taken").write_text("mine")
    done = run("open", "--no-browser", str(tmp_path / "taken"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("the lessons cannot be copied\ngiven: ")


def test_a_name_that_the_terminal_cannot_show_is_escaped(tmp_path):
    (tmp_path / "Übung").write_text("mine")
    done = run("open", "--no-browser", str(tmp_path / "Übung"), LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 1
    assert "bung: File exists" in done.stderr
    assert "Traceback" not in done.stderr


# doctor


def table(text):
    """The lines of the doctor's table by name: state and the rest."""
    rows = [line.split(maxsplit=1) for line in text.splitlines() if line.startswith(("ok ", "note ", "FAIL "))]
    return {next(name for name in doctor.CHECKS if rest.startswith(name)): state for state, rest in rows}


def test_doctor_passes_here_with_every_check():
    done = run("doctor")
    states = table(done.stdout)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert list(states) == list(doctor.CHECKS)
    assert set(states.values()) <= {"ok", "note"}
    assert done.stdout.endswith("The lab can work here.\n")


def test_doctor_works_without_home_terminal_or_locale(tmp_path):
    unwritable = tmp_path / "file"
    unwritable.write_text("not a folder")
    done = run("doctor", HOME=str(unwritable), LC_ALL="C", LANG="C", TERM=None, PYTHONIOENCODING="ascii",
               PYTHONUTF8="0", PYTHONDONTWRITEBYTECODE="1", XDG_CACHE_HOME=None)
    assert done.returncode == 0, done.stdout + done.stderr
    assert table(done.stdout)["home folder"] == "note"
    assert "cure: set HOME" in done.stdout


def test_a_user_without_a_home_is_a_note_and_jupyter_gets_a_folder(monkeypatch, capsys):
    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody)
    with pytest.raises(doctor.Ailment, match="HOME is not set") as caught:
        doctor.home()
    assert not caught.value.serious
    with opener._usable_home() as environment:
        folder = Path(environment["HOME"])
        assert folder.stat().st_mode & 0o777 == 0o700
        assert all(Path(environment[name]).is_relative_to(folder) for name in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR"))
    assert not folder.exists()
    assert "cannot be written" in capsys.readouterr().err


def test_doctor_names_an_old_package_and_its_cure(monkeypatch, capsys):
    real = doctor.importlib.metadata.version
    old = {"ipykernel": "7.3.9"}
    monkeypatch.setattr(doctor.importlib.metadata, "version", lambda name: old.get(name) or real(name))
    assert cli.main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "FAIL  packages         ipykernel 7.3.9 (needs 7.4)" in out
    assert f'cure: {sys.executable} -m pip install --upgrade "ipykernel>=7.4"' in out
    assert out.endswith("Something above needs its cure before the lab can work.\n")


def test_doctor_names_a_missing_package_but_not_the_optional_one(monkeypatch):
    def none_of_them(name):
        raise doctor.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor.importlib.metadata, "version", none_of_them)
    with pytest.raises(doctor.Ailment, match=r"numpy missing \(needs [\d.]+\)") as caught:
        doctor.packages()
    assert "fast-sugiyama" not in str(caught.value)


def test_doctor_says_that_numba_is_missing_or_broken(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", object())
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: name)
    with pytest.raises(doctor.Ailment, match="cannot compile: ImportError"):
        doctor.numba()
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(doctor.Ailment, match="not installed"):
        doctor.numba()


def test_doctor_notes_a_kernel_cache_that_others_can_write(tmp_path):
    tmp_path.chmod(0o777)
    done = run("doctor", LAB_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert table(done.stdout)["kernel cache"] == "note"
    assert f"cure: chmod 700 {tmp_path}" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_doctor_notes_that_kernels_cannot_be_kept(monkeypatch, tmp_path):
    monkeypatch.delenv("LAB_CACHE_DIR", raising=False)
    monkeypatch.setattr(kernels, "cache_folder", lambda: tmp_path / "kernels-1")
    assert doctor.kernel_cache() == str(tmp_path / "kernels-1")
    monkeypatch.setattr(kernels, "cache_folder", lambda: tmp_path)
    with pytest.raises(doctor.Ailment, match="compiled anew") as caught:
        doctor.kernel_cache()
    assert "LAB_CACHE_DIR" in caught.value.cure


def test_doctor_says_when_no_folder_takes_temporary_files(monkeypatch):
    def nowhere():
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(doctor.tempfile, "gettempdir", nowhere)
    with pytest.raises(doctor.Ailment, match="No usable temporary directory"):
        doctor.temporary()


def test_doctor_notes_little_memory(monkeypatch):
    monkeypatch.setattr(doctor, "_cgroup_limit", lambda name: 512 * doctor.MIB)
    with pytest.raises(doctor.Ailment, match=r"512 MiB \(limit of the container\)") as caught:
        doctor.memory()
    assert not caught.value.serious


def test_doctor_says_that_the_lessons_are_missing(monkeypatch):
    monkeypatch.setattr(opener, "lessons", list)
    with pytest.raises(doctor.Ailment, match="none") as caught:
        doctor.lessons()
    assert caught.value.serious


def test_a_check_that_breaks_is_a_line_and_the_table_goes_on(monkeypatch):
    monkeypatch.setattr(doctor, "CHECKS", {"odd": lambda: 1 // 0, "even": lambda: "2"})
    odd, even = doctor.examine()
    assert (odd.state, odd.found) == ("FAIL", "ZeroDivisionError: integer division or modulo by zero")
    assert even == ("ok", "even", "2", "")


def test_settings_say_where_they_come_from_and_name_a_misspelling(monkeypatch):
    monkeypatch.setenv("LAB_LOG", "debug")
    monkeypatch.setenv("LAB_LGO", "debug")
    monkeypatch.delenv("LAB_CHROMIUM", raising=False)
    table = doctor.settings()
    assert table["LAB_LOG"][:2] == ("debug", "environment")
    assert table["LAB_CHROMIUM"][:2] == ("", "default")
    assert "spelling mistake" in table["LAB_LGO"][2]


@pytest.mark.parametrize(("older", "newer"), [("7.3.9", "7.4"), ("9.2.0rc1", "9.10"), ("0.9.13", "0.10")])
def test_versions_are_compared_as_numbers(older, newer):
    assert doctor._numbers(older) < doctor._numbers(newer)
