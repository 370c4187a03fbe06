"""The command line as a user meets it: real processes, exit codes, plain terminals."""

import contextlib
import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from lab import __main__ as cli
from lab import __version__, doctor, kernels, opener, parallel
from lab.cli.arguments import ON_LOSS, SCHEDULES
from lab.cli.keeping import Keeper, Pace
from lab.cli.verbs import parser
from lab.errors import KernelError
from lab.events import RankStarted, Recording, StepFinished, TrainingResumed, bus, record
from lab.events.recording import LIMIT
from lab.parallel.cluster import memory
from lab.parallel.training import restarts
from tests.support import free_port, without_root_powers
from widgets.export.facts import facts_of
from widgets.export.report import report_page

ROOT = Path(__file__).parent.parent


def run(*words, preexec_fn=None, **environment):
    """`python -m lab WORDS` with no terminal, in an environment where None removes a variable."""
    merged = {name: value for name, value in (os.environ | environment).items() if value is not None}
    return subprocess.run([sys.executable, "-m", "lab", *words], cwd=ROOT, env=merged, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, preexec_fn=preexec_fn)


VERBS = ("open", "train", "replay", "diff", "gallery", "trace", "export", "doctor", "warm")


@pytest.mark.parametrize("verb", [(), *((verb,) for verb in VERBS)])
def test_help_is_given_on_80_columns_and_says_how_it_was_called(verb):
    done = run(*verb, "--help", COLUMNS="80")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(" ".join(["usage: python -m lab", *verb, "[-h]"]))
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_examples_of_a_help_can_be_typed_and_its_names_of_schedules_are_all(capsys):
    for verb in ((), *((verb,) for verb in VERBS)):
        with pytest.raises(SystemExit, match="0"):
            cli.main([*verb, "--help"])
        for line in re.findall(r"^  autodiff-lab (.*?)(?:   .*)?$", capsys.readouterr().out, re.MULTILINE):
            if not line.endswith("--help"):
                assert parser().parse_args(line.split()).load
    assert tuple(parallel.SCHEDULES) == SCHEDULES
    assert restarts.ON_LOSS == ON_LOSS


@pytest.mark.parametrize("words", [(), ("shut",), ("open", "--port", "many"), ("doctor", "now")])
def test_a_wrong_command_is_2_with_three_lines(words):
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    problem, given, hint = done.stderr.splitlines()
    assert problem.startswith("python -m lab")
    assert given == f"given: {' '.join(['python -m lab', *words])}"
    assert hint.startswith("hint:  python -m lab")
    assert hint.endswith("--help lists what can be said")


@pytest.mark.parametrize(("words", "problem", "hint"), [
    ("train --wokers 4", " train: there is no option --wokers", "did you mean --workers? autodiff-lab train --help"),
    ("train --workers 2 --micor=4", " train: there is no option --micor", "did you mean --micro? autodiff-lab train -"),
    ("train -w 4", " train: there is no option -w", "autodiff-lab train --help"),
    ("replay run.rec --repot page.html", " replay: there is no option --repot", "did you mean --report? autodiff-lab"),
    ("trace run.rec --fast --out a.json", " trace: there is no option --fast", "autodiff-lab trace --help"),
    ("open --prot 1", " open: there is no option --prot", "did you mean --port? autodiff-lab open --help"),
    ("doctor --now", " doctor: there is no option --now", "autodiff-lab doctor --help"),
    ("doctor now", " doctor: unrecognized arguments: now", "autodiff-lab doctor --help"),
    ("--verison", ": there is no option --verison", "did you mean --version? autodiff-lab --help"),
    ("--workers 4 train", ": there is no option --workers", "autodiff-lab --help"),
    ("trian", ": argument VERB: invalid choice: 'trian'", "did you mean train? autodiff-lab --help"),
    ("train --parallel pipline", " train: argument --parallel: invalid choice: 'pipline'", "did you mean pipeline? "),
    ("diff a.rec", " diff: the following arguments are required: B", "autodiff-lab diff --help"),
    ("train --re a.html", " train: ambiguous option: --re could match --report, --record", "autodiff-lab train --help"),
])  # fmt: skip
def test_what_is_not_known_leads_to_the_help_of_its_verb_and_to_what_was_meant(words, problem, hint, capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(words.split())
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"autodiff-lab{problem}")
    assert lines[1] == f"given: autodiff-lab {words}"
    assert lines[2].startswith(f"hint:  {hint}")


@pytest.mark.parametrize("words", [["train", "--record=-x.rec", "--epo", "1"], ["diff", "--", "-a", "-b"]])
def test_words_that_only_look_like_options_are_none(words):
    assert parser().parse_args(words).load


def test_a_wrong_number_is_told_by_the_verb_and_its_argument(capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["train", "--batch-size", "0"])
    assert capsys.readouterr().err == (
        "autodiff-lab train: argument --batch-size: a whole number of at least 1, not '0'\n"
        "given: autodiff-lab train --batch-size 0\n"
        "hint:  autodiff-lab train --help lists what can be said\n"
    )


@pytest.fixture(scope="module")
def cut(tmp_path_factory):
    """A folder with a recording and the first nine tenths of its file."""
    folder = tmp_path_factory.mktemp("cut")
    with record() as rec:
        for at in range(20_000):
            bus.emit(StepFinished(at, 0, 1.0, 4, 1.0))
    rec.save(folder / "whole.rec")
    data = (folder / "whole.rec").read_bytes()
    (folder / "cut.rec").write_bytes(data[: len(data) * 9 // 10])
    return folder


@pytest.mark.parametrize(("verb", "out", "refused", "salvaged", "does"), [
    ("replay cut.rec", "--report page.html", 1, 0, "makes the page of"),
    ("trace cut.rec", "--out trace.json", 1, 0, "writes the trace of"),
    ("diff whole.rec cut.rec", "--html difference.html", 2, 1, "compares"),
    ("diff cut.rec whole.rec", "--html difference.html", 2, 1, "compares"),
])  # fmt: skip
def test_a_cut_recording_serves_as_far_as_it_goes_with_salvage(
    cut, tmp_path, capsys, monkeypatch, verb, out, refused, salvaged, does
):
    monkeypatch.chdir(cut)
    option, name = out.split()
    words = [*verb.split(), option, str(tmp_path / name)]
    assert cli.main(words) == refused
    hint = capsys.readouterr().err.splitlines()[2]
    assert hint == f"hint:  the same command with --salvage {does} the part before the damage"
    assert list(tmp_path.iterdir()) == []
    assert cli.main([*words, "--salvage"]) == salvaged
    assert (tmp_path / name).exists()


@pytest.mark.parametrize(("out", "why"), [
    ("nowhere/gallery.html", "No such file or directory"), ("folder.html", "Is a directory"),
    ("pipe.html", "it is a device, a pipe or a socket, and no file"),
])  # fmt: skip
def test_a_gallery_that_cannot_be_written_is_refused_before_anything_runs(tmp_path, capsys, out, why):
    (tmp_path / "folder.html").mkdir()
    os.mkfifo(tmp_path / "pipe.html")
    assert cli.main(["gallery", "--out", str(tmp_path / out)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[0] == "the gallery cannot be written"
    assert why in said.err.splitlines()[1]


def test_a_gallery_is_a_page(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["gallery", "--out", "gallery.svg"])
    assert left.value.code == 2
    assert "a page has a name that ends in .html" in capsys.readouterr().err


def test_version_is_the_packages():
    assert run("--version").stdout == f"autodiff-lab {__version__}\n"


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
    assert (done.returncode, done.stdout) == (0, f"autodiff-lab {__version__}\n")
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


INTERRUPTED = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
IN_A_CALLBACK = f"""
class Left:
    def __del__(self):
        {"; ".join(INTERRUPTED.splitlines())}
Left()
"""


@pytest.mark.parametrize("verb", [*VERBS, "--version", "tran"])
def test_ctrl_c_while_a_verb_imports_is_130_and_one_line(tmp_path, verb):
    (tmp_path / "argparse.py").write_text(INTERRUPTED)  # the first that is imported for all of them
    done = run(verb, PYTHONPATH=f"{tmp_path}")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\nStopped.\n")


@pytest.mark.parametrize("interrupt", [INTERRUPTED, IN_A_CALLBACK], ids=["plainly", "in a callback"])
@pytest.mark.parametrize("module", ["logging", "numpy"])
def test_ctrl_c_is_130_from_the_import_of_the_lab_to_that_of_numpy(tmp_path, module, interrupt):
    (tmp_path / f"{module}.py").write_text(interrupt)
    done = run("train", PYTHONPATH=f"{tmp_path}")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\nStopped.\n")


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None, signal.default_int_handler])
def test_who_handles_ctrl_c_keeps_it_and_has_it_back(handler, capsys):
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(SystemExit):
            cli.main(["--version"])
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_importing_the_lab_as_a_library_leaves_ctrl_c_alone():
    code = "import signal, lab, lab.__main__; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "True\n"


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


# train and replay


@pytest.mark.parametrize(("words", "complaint"), [
    ("train --workers -1", "argument --workers: a whole number of at least 0, not '-1'"),
    ("train --epochs 0", "argument --epochs: a whole number of at least 1, not '0'"),
    ("train --learning-rate nan", "argument --learning-rate: a positive number, not 'nan'"),
    ("train --learning-rate fast", "argument --learning-rate: a positive number, not 'fast'"),
    ("train --data cats", "argument --data: invalid choice: 'cats'"),
    ("train --report page.svg", "argument --report: a page has a name that ends in .html, not 'page.svg'"),
    ("train --parallel pipeline", "--parallel pipeline needs --workers 2 or more"),
    ("train --parallel pipeline --workers 1", "--parallel pipeline needs --workers 2 or more"),
    ("train --workers 2 --parallel pipeline --schedule mine", "--schedule is one of naive, gpipe, 1f1b, not 'mine'"),
    ("train --schedule gpipe", "--schedule needs --parallel pipeline"),
    ("train --workers 2 --micro 4", "--micro needs --parallel pipeline"),
    ("train --paced", "--paced needs --parallel pipeline"),
    ("train --report a.html --record ./a.html", "--report and --record need a file each"),
    ("replay", "the following arguments are required: RECORDING, --report"),
])
def test_a_training_that_cannot_be_meant_is_2_with_the_reason(words, complaint, capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(words.split())
    assert left.value.code == 2
    assert complaint in capsys.readouterr().err


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with the report and the recording of one epoch, and what was said."""
    folder = tmp_path_factory.mktemp("trained")
    done = run("train", "--epochs", "2", "--report", str(folder / "a.html"), "--record", str(folder / "a.rec"))
    assert (done.returncode, done.stderr) == (0, "")
    return folder, done.stdout


def test_training_logs_each_evaluation_where_no_line_can_move(trained):
    folder, out = trained
    *steps, result, recording, report = out.splitlines()
    assert [line.split(":")[0] for line in steps] == ["Step 0 of 46", "Step 23 of 46", "Step 46 of 46"]
    assert all(re.search(r"test loss [\d.]+, accuracy [\d.]+ %$", line) for line in steps)
    assert result.startswith("Result 'digits': finished after 46 steps")
    assert recording == f"The recording is in {folder / 'a.rec'}"
    assert report == f"The report is in {folder / 'a.html'}"
    assert "\r" not in out
    assert sorted(path.name for path in folder.iterdir()) == ["a.html", "a.rec"]


def test_a_replay_makes_the_same_page_byte_for_byte(trained, tmp_path):
    folder, _ = trained
    done = run("replay", str(folder / "a.rec"), "--report", str(tmp_path / "again.html"), PYTHONHASHSEED="7",
               TZ="Asia/Tokyo", LC_ALL="C")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Training on digits, in one process" in done.stdout
    assert (tmp_path / "again.html").read_bytes() == (folder / "a.html").read_bytes()


def test_the_recording_of_a_training_says_how_it_was_made_and_nothing_of_this_machine(trained):
    folder, _ = trained
    meta = Recording.load(folder / "a.rec").meta
    words = "autodiff-lab train --data digits --workers 0 --parallel data --epochs 2 --batch-size 64"
    assert meta["command"] == f"{words} --learning-rate 0.001"
    assert {"lab", "python", "numpy", "numba", "distributed", "plotly"} <= meta.keys()
    assert str(folder) not in str(meta)


def test_training_moves_one_line_on_a_terminal(tmp_path):
    here, there = pty.openpty()
    with subprocess.Popen([sys.executable, "-m", "lab", "train", "--epochs", "3"], cwd=ROOT, stdin=there, stdout=there,
                          stderr=there, env=os.environ | {"TERM": "xterm", "COLUMNS": "60"}) as process:
        os.close(there)
        seen = b""
        with contextlib.suppress(OSError):  # so a terminal says that everybody has gone
            while part := os.read(here, 4096):
                seen += part
    os.close(here)
    assert process.returncode == 0
    moving = [line for line in seen.decode().split("\r") if line.startswith("[")]
    assert moving
    assert all(re.match(r"\[#* *\] step \d+ of 69", line) and len(line) < 60 for line in moving)
    assert "Step 23" not in seen.decode()
    assert "finished after 69 steps" in seen.decode().splitlines()[-1]


def begun(*words):
    """A training of its own process group that has done its first epoch."""
    process = subprocess.Popen([sys.executable, "-m", "lab", "train", *words], cwd=ROOT, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert any(line.startswith("Step 23") for line in process.stdout)
    return process


def test_ctrl_c_is_130_and_what_was_recorded_is_written(tmp_path):
    page, record = tmp_path / "a.html", tmp_path / "a.rec"
    with begun("--epochs", "100000", "--report", str(page), "--record", str(record)) as process:
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, err) == (130, "\nStopped.\n")
    assert f"The report is in {page}" in out
    recording = Recording.load(record)
    assert recording[-1].state == "stopped"
    assert len(recording.positions(StepFinished)) >= 23
    assert report_page(recording).encode() == page.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.rec"]


def members(session):
    """The processes of a session: a training and all that it started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, its_session, *_ = entry.read_text().rpartition(")")[2].split()
            if int(its_session) == session and state != "Z":
                found.append(int(entry.parent.name))
    return found


def left_behind_by(process):
    """What of its session is still there when each has had time to see that its parent has gone."""
    for pid in members(process.pid):
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            select.select([handle], [], [], 30)
            os.close(handle)
    return members(process.pid)


def workers_of(record):
    """The process ids of the ranks of a training, from its recording once it has ended."""
    return dict(zip(*(Recording.load(record).columns(RankStarted)[name].tolist() for name in ("rank", "pid")),
                    strict=True))


def sections(page):
    return re.findall(r'data-name="([^"]+)"', page.read_text())


def test_training_on_workers_is_reported_and_replayed_byte_for_byte_without_home_terminal_or_locale(tmp_path):
    page, record, again = (tmp_path / name for name in ("a.html", "a.rec", "again.html"))
    page.with_name("home").write_text("not a folder")
    done = run("train", "--workers", "2", "--epochs", "1", "--report", str(page), "--record", str(record),
               HOME=str(tmp_path / "home"), LC_ALL="C", LANG="C", TERM=None, PYTHONIOENCODING="ascii", PYTHONUTF8="0",
               PYTHONDONTWRITEBYTECODE="1", XDG_CACHE_HOME=None)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Starting 2 workers ...\nStep 0 of 23: test loss")
    assert "Result 'digits': finished after 23 steps" in done.stdout
    assert run("replay", str(record), "--report", str(again)).returncode == 0
    assert page.read_bytes() == again.read_bytes()
    assert page.stat().st_size < 6_000_000
    assert {"Loss", "One all-reduce"} <= set(sections(page))
    recording = Recording.load(record)
    assert dict(facts_of(recording))["Ranks"] == "2 on 2 worker processes"
    assert recording.dropped == 0
    assert not [kind for kind in recording.kinds if kind.per_operation]


def test_training_as_a_paced_pipeline_is_reported_as_one(tmp_path):
    page = tmp_path / "a.html"
    words = "train --workers 2 --parallel pipeline --schedule gpipe --micro 4 --paced 1 --epochs 1 --report"
    done = run(*words.split(), str(page))
    assert (done.returncode, done.stderr) == (0, "")
    assert "One step of the pipeline" in sections(page)
    text = page.read_text()
    assert "2 stages, 4 micro-batches, paced: no measure of this machine" in text
    assert "--schedule gpipe --micro 4 --paced 1.0" in text


def test_ctrl_c_stops_all_ranks_and_what_they_recorded_is_written(tmp_path):
    page, record = tmp_path / "a.html", tmp_path / "a.rec"
    with begun("--workers", "2", "--epochs", "100000", "--report", str(page), "--record", str(record)) as process:
        os.killpg(process.pid, signal.SIGINT)  # a terminal tells every process of the group
        out, err = process.communicate()
    assert (process.returncode, err) == (130, "\nStopped.\n")
    assert f"The report is in {page}" in out
    assert left_behind_by(process) == []
    assert Recording.load(record)[-1].state == "stopped"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.rec"]


def test_ctrl_c_while_workers_start_is_quiet_and_leaves_nothing(tmp_path):
    words = [sys.executable, "-m", "lab", "train", "--workers", "2", "--report", str(tmp_path / "a.html")]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, start_new_session=True) as process:
        assert process.stdout.readline() == "Starting 2 workers ...\n"
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate()
    said = err.removeprefix("Stopping ... (once more to stop at once)\n")  # not before the first of them starts
    assert (process.returncode, out, said) == (130, "", "\nStopped.\n")
    assert left_behind_by(process) == []
    assert list(tmp_path.iterdir()) == []


def test_a_killed_rank_is_named_and_what_was_recorded_is_written(tmp_path):
    record = tmp_path / "a.rec"
    words = ("--workers", "2", "--on-loss", "stop", "--epochs", "100000", "--record", str(record))
    with begun(*words) as process:
        ranks = [pid for pid in members(process.pid) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(ranks[0], signal.SIGKILL)
        out, err = process.communicate()
    assert process.returncode == 1
    assert err.count("\n") == 3, err
    problem, given, hint = err.splitlines()
    lost = {pid: rank for rank, pid in workers_of(record).items()}[ranks[0]]
    assert f"rank {lost}" in problem + given
    assert hint.startswith("hint:")
    assert "Traceback" not in err
    assert f"The recording is in {record}" in out
    assert Recording.load(record)[-1].state == "failed"
    assert left_behind_by(process) == []


def test_a_training_outlives_a_killed_rank_and_says_so(tmp_path):
    record = tmp_path / "a.rec"
    with begun("--workers", "2", "--epochs", "60", "--record", str(record)) as process:
        ranks = [pid for pid in members(process.pid) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(ranks[0], signal.SIGKILL)
        out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert "Result 'digits': finished after 1380 steps" in out
    resumed = next(event for event in Recording.load(record) if isinstance(event, TrainingResumed))
    assert f"Rank {resumed.lost_rank} was lost: on from step {resumed.step} with 2 ranks" in out
    assert left_behind_by(process) == []


@pytest.mark.parametrize(("words", "said"), [
    ("--on-loss shrink", "--on-loss needs --workers 2 or more"),
    ("--on-loss stop --workers 2 --parallel pipeline", "--on-loss needs --parallel data"),
])
def test_on_loss_is_for_ranks_that_hold_the_whole_model(words, said, capsys):
    with pytest.raises(SystemExit):
        cli.main(["train", *words.split()])
    assert said in capsys.readouterr().err


def test_a_scheduler_that_is_not_there_is_told_in_three_lines(capsys):
    assert cli.main(["train", "--scheduler", f"tcp://127.0.0.1:{free_port()}"]) == 1
    said = capsys.readouterr()
    assert said.err.startswith("the scheduler cannot be reached\n")
    assert len(said.err.splitlines()) == 3


@pytest.mark.parametrize(("words", "free", "problem", "hint"), [
    ("--workers 1000", None, "so many workers are not started on one machine",
     "--workers 64 at most; --scheduler ADDRESS uses a cluster that is there"),
    ("--workers 4", 200, "there is too little memory for 4 workers",
     "--workers 1, or close other notebooks; a recorded run can be looked at without workers"),
    ("--workers 6 --parallel pipeline", None, "there are fewer layers than workers",
     "--workers 5 at most, or --parallel data"),
])
def test_more_workers_than_there_can_be_are_refused_in_the_words_of_the_command_line(
    words, free, problem, hint, monkeypatch, capsys
):
    here = memory.Room(free * memory.MB, 512 * memory.MB, memory.CONTAINER) if free else None
    monkeypatch.setattr(memory, "room", lambda: here)
    assert cli.main(["train", *words.split()]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert [err.splitlines()[0], err.splitlines()[2]] == [problem, f"hint:  {hint}"]


def test_a_training_killed_at_any_moment_leaves_the_old_report_whole(tmp_path):
    page = tmp_path / "a.html"
    page.write_text("old")
    with begun("--epochs", "100000", "--report", str(page)) as process:
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert page.read_text() == "old"


@pytest.mark.parametrize("words", [(), ("--workers", "2")])
def test_a_training_that_is_killed_leaves_a_recording_that_says_so(tmp_path, words):
    record, page = tmp_path / "a.rec", tmp_path / "a.html"
    with begun(*words, "--epochs", "100000", "--record", str(record)) as process:
        while not record.exists():
            assert process.stdout.readline()
        process.kill()
    assert left_behind_by(process) == []
    recording = Recording.load(record)
    n_steps = len(recording.positions(StepFinished))
    assert n_steps > 0
    assert recording.dropped == 0
    done = run("replay", str(record), "--report", str(page))
    assert (done.returncode, done.stderr) == (0, "")
    said = f"The run 'digits' had not ended when this was written: its last step here is {n_steps} of 2300000\n"
    assert said in done.stdout
    assert dict(facts_of(recording))["Ended"] == "not in this recording"
    assert "Loss" in sections(page)


@pytest.mark.parametrize("rate", [10.0, 1000.0, 100_000.0])
def test_what_keeping_a_recording_costs_stays_within_two_percent_of_the_training(rate):
    """Events come at a rate, and each costs 4 us whenever all are written; it is looked ten times a second, an hour."""
    pace, written = Pace(), []
    for tick in range(36_000):
        now = tick / 10
        n_events = min(int(rate * now), LIMIT)
        if pace.due(now, n_events):
            pace.wrote(now, n_events, cost=4e-6 * n_events)
            written.append(now)
            assert pace.spent <= max(0.02 * now, 0.2 if not written[1:] else 0.0) + 1e-9
    assert min(b - a for a, b in pairwise(written)) > 1.99
    assert written[-1] > 1800  # of a long training at least half is there


def test_a_training_of_some_thousand_events_a_second_is_kept_before_they_are_known_to_cost_little():
    pace = Pace()
    assert not pace.due(2.0, 200_000)
    assert pace.due(2.0, 20_000)
    pace.wrote(2.0, 20_000, cost=0.1)
    assert not pace.due(4.5, 45_000)


def test_a_recording_that_cannot_be_kept_is_tried_again_at_the_end(tmp_path, caplog):
    recording = Recording()
    record = tmp_path / "missing" / "a.rec"
    keeper = Keeper(recording, record)
    keeper._start -= 100
    keeper.look()
    assert caplog.records == []  # no step was recorded
    bus.attach(recording)
    bus.emit(StepFinished(1, 0, 0.5, 64, 1.0))
    bus.detach(recording)
    keeper.look()
    assert "tried again at the end of the training: the recording could not be saved" in caplog.text
    record.parent.mkdir()
    keeper._start -= 100
    keeper.look()
    assert not record.exists()


@pytest.mark.parametrize(("name", "why"), [
    ("missing/a", "No such file or directory"), ("file/a", "Not a directory"), ("folder", "Is a directory"),
    ("locked/a", "Permission denied"),
])
@pytest.mark.parametrize(("option", "what", "ending"), [("--report", "report", ".html"), ("--record", "recording", "")])
def test_a_file_that_cannot_be_written_is_refused_before_the_training(tmp_path, name, why, option, what, ending):
    (tmp_path / "file").write_text("mine")
    (tmp_path / f"folder{ending}").mkdir()
    (tmp_path / "locked").mkdir(0o555)
    path = tmp_path / f"{name}{ending}"
    done = run("train", option, str(path), preexec_fn=without_root_powers)
    assert (done.returncode, done.stdout) == (1, "")
    hint = "make the folder, make room, or name another place"
    assert done.stderr == f"the {what} cannot be written\ngiven: {path}: {why}\nhint:  {hint}\n"


def with_little_room():
    """Runs in the child: no file may have more than 1 MB, as on a disk that is nearly full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))


def test_too_little_room_is_told_before_the_training_and_nothing_is_left(tmp_path):
    done = run("train", "--report", str(tmp_path / "a.html"), preexec_fn=with_little_room)
    assert (done.returncode, done.stdout) == (1, "")
    assert "a.html: File too large (room for 6 MiB is wanted)\n" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_later_costs_the_report_and_not_the_recording(tmp_path, monkeypatch, capsys):
    def full(recording, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("widgets.export.report.report", full)
    page, record = tmp_path / "a.html", tmp_path / "a.rec"
    page.write_text("old")
    assert cli.main(["train", "--epochs", "1", "--report", str(page), "--record", str(record)]) == 1
    assert capsys.readouterr().err == (
        f"the report could not be written\ngiven: {page}: No space left on device\n"
        "hint:  a file that was there before is unchanged\n"
    )
    assert page.read_text() == "old"
    assert len(Recording.load(record).positions(StepFinished)) == 23


def test_a_run_whose_loss_is_no_number_is_told_in_three_lines_and_still_reported(tmp_path, capsys):
    record = tmp_path / "a.rec"
    assert cli.main(["train", "--learning-rate", "1e30", "--record", str(record)]) == 1
    said = capsys.readouterr()
    problem, given, hint = said.err.splitlines()
    assert problem == "the loss became nan at step 2"
    assert "first nan or inf in matmul" in given
    assert hint == "hint:  a smaller --learning-rate than 1e+30"
    assert Recording.load(record)[-1].state == "stopped"


def test_a_file_that_is_no_recording_is_refused(tmp_path, capsys):
    (tmp_path / "a.rec").write_text("not a recording")
    assert cli.main(["replay", str(tmp_path / "a.rec"), "--report", str(tmp_path / "a.html")]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 3
    assert not (tmp_path / "a.html").exists()


def test_a_recording_without_a_training_gives_no_report(tmp_path, capsys):
    Recording().save(tmp_path / "a.rec")
    assert cli.main(["replay", str(tmp_path / "a.rec"), "--report", str(tmp_path / "a.html")]) == 1
    assert capsys.readouterr().err.startswith("there is nothing in this recording that a report shows\n")
    assert not (tmp_path / "a.html").exists()


def test_the_doctor_can_speak_where_not_even_numpy_is_installed():
    code = "import sys; sys.modules['numpy'] = None; from lab.__main__ import main; main(['doctor'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert set(table(done.stdout)) == set(doctor.CHECKS)


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
    monkeypatch.setattr(doctor, "TWO_RANKS", "print(3)")
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
    monkeypatch.setattr(memory, "room", lambda: memory.Room(300 * memory.MB, 512 * memory.MB, memory.CONTAINER))
    with pytest.raises(doctor.Ailment, match=r"300 MB of 512 are free \(limit of the container\)") as caught:
        doctor.memory()
    assert not caught.value.serious
    assert "900 MB" in caught.value.cure


def test_doctor_says_why_workers_do_not_start(monkeypatch):
    monkeypatch.setattr(doctor, "TWO_RANKS", "raise OSError('no worker could be born')")
    with pytest.raises(doctor.Ailment, match="OSError: no worker could be born") as caught:
        doctor.cluster()
    assert not caught.value.serious
    monkeypatch.setattr(doctor, "TWO_RANKS", "print(4)")
    with pytest.raises(doctor.Ailment, match="two ranks gave '4', not 3"):
        doctor.cluster()


def test_doctor_waits_for_workers_no_longer_than_it_says_and_leaves_nothing(monkeypatch, tmp_path):
    code = f"import os, signal; os.mkdir({str(tmp_path / 'pid')!r} + str(os.getpid())); signal.pause()"
    monkeypatch.setattr(doctor, "TWO_RANKS", code)
    monkeypatch.setattr(doctor, "PATIENCE_S", 2)
    with pytest.raises(doctor.Ailment, match="two workers did not start within 2 s"):
        doctor.cluster()
    for path in tmp_path.iterdir():
        assert not Path("/proc", path.name.removeprefix("pid")).exists()


def test_doctor_notes_that_there_are_no_unix_sockets(monkeypatch):
    monkeypatch.delattr(doctor.socket, "AF_UNIX")
    with pytest.raises(doctor.Ailment, match="none on this platform") as caught:
        doctor.unix_sockets()
    assert (caught.value.serious, caught.value.cure.split(" instead")[0]) == (False, "ranks use TCP on 127.0.0.1")


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
