"""`diff` on the command line: three lines, an exit code that says it too, and a page."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lab
from lab import __main__ as cli

ROOT = Path(__file__).parent.parent


def product(weight=3.0, nudge=0.0):
    x = lab.tensor(np.arange(3.0) * (1 + nudge), requires_grad=True, name="x")
    with lab.record() as rec:
        lab.tanh(x * weight)
    return rec


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    for name, rec in (("a", product()), ("same", product()), ("other", product(4.0)), ("near", product(nudge=1e-12))):
        rec.save(folder / f"{name}.rec")
    return folder


def diff(folder, *words):
    words = [str(folder / w) if w.endswith((".rec", ".html")) else w for w in words]
    return subprocess.run(
        [sys.executable, "-m", "lab", "diff", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_the_same_is_0_and_told_in_three_lines(files):
    done = diff(files, "a.rec", "same.rec")
    assert (done.returncode, done.stderr) == (0, "")
    first, *rest = done.stdout.splitlines()
    assert first == f"No difference: {len(product())} events of 1 rank agree, numbers bit for bit."
    assert len(rest) == 2


def test_a_difference_is_1_with_operation_rank_line_and_both_values(files):
    done = diff(files, "a.rec", "other.rec")
    assert (done.returncode, done.stderr) == (1, "")
    line = next(
        k for k, text in enumerate(Path(__file__).read_text("utf-8").splitlines(), 1) if "lab.tanh(x * w" in text
    )
    place = f"line {line} of test_cli_diff.py: lab.tanh(x * weight)"
    assert done.stdout.splitlines() == [
        f"First difference on rank 0: the constants of multiply ({place}).",
        "3 in a, 4 in b.",
        "2 events of rank 0 agreed before.",
    ]


def test_a_tolerance_is_respected(files):
    assert diff(files, "a.rec", "near.rec").returncode == 1
    done = diff(files, "a.rec", "near.rec", "--tolerance", "1e-9")
    assert done.returncode == 0
    assert "numbers to a share of 1e-09" in done.stdout


def test_a_page_is_written_where_one_is_wanted(files, tmp_path):
    assert cli.main(["diff", str(files / "a.rec"), str(files / "other.rec"), "--html", str(tmp_path / "d.html")]) == 1
    assert "First difference on rank 0" in (tmp_path / "d.html").read_text("utf-8")
    assert cli.main(["diff", str(files / "a.rec"), str(files / "same.rec"), "--html", str(tmp_path / "s.html")]) == 0
    assert "No difference" in (tmp_path / "s.html").read_text("utf-8")


def test_what_cannot_be_read_is_2_in_three_lines(files, tmp_path, capsys):
    (tmp_path / "cut.rec").write_bytes((files / "a.rec").read_bytes()[:-200])
    (tmp_path / "foreign.rec").write_text("hello")
    for name in ("none.rec", "cut.rec", "foreign.rec"):
        assert cli.main(["diff", str(files / "a.rec"), str(tmp_path / name)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert len(err.splitlines()) == 3


def test_recordings_with_nothing_in_common_are_2(files, tmp_path, capsys):
    with lab.record(kinds=[lab.events.StepFinished]) as rec:
        pass
    rec.save(tmp_path / "b.rec")
    assert cli.main(["diff", str(files / "a.rec"), str(tmp_path / "b.rec")]) == 2
    assert "no kind of events in common" in capsys.readouterr().err


def test_a_page_that_cannot_be_written_is_told_before_the_work(files, tmp_path, capsys):
    words = ["diff", str(files / "a.rec"), str(files / "same.rec"), "--html", str(tmp_path / "no" / "d.html")]
    assert cli.main(words) == 2
    assert "the page cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--tolerance", "much"], ["--tolerance", "-1"], ["--html", "page.txt"], []])
def test_a_wrong_command_is_2_with_three_lines(files, wrong, capsys):
    given = [str(files / "a.rec"), *([str(files / "same.rec")] if wrong else []), *wrong]
    with pytest.raises(SystemExit) as left:
        cli.main(["diff", *given])
    assert left.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("autodiff-lab diff: ")
    assert len(error.splitlines()) == 3
