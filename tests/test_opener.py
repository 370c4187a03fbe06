"""`open`: a lesson that the user changed is never overwritten, and the server is reachable from this machine only."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

from lab import opener
from lab.errors import ArgumentError, LabError
from tests.support import fetch, free_port, listening_on, without_root_powers

ROOT = Path(__file__).parent.parent


def test_lessons_are_copied_once(tmp_path):
    assert opener.copy_lessons({"00.ipynb": b"one"}, tmp_path) == ["00.ipynb"]
    assert opener.copy_lessons({"00.ipynb": b"one"}, tmp_path) == []
    assert (tmp_path / "00.ipynb").read_bytes() == b"one"


def test_a_lesson_nobody_touched_is_brought_up_to_date(tmp_path):
    opener.copy_lessons({"00.ipynb": b"one"}, tmp_path)
    assert opener.copy_lessons({"00.ipynb": b"two"}, tmp_path) == ["00.ipynb"]
    assert (tmp_path / "00.ipynb").read_bytes() == b"two"


def test_a_changed_lesson_is_kept_and_old_news_is_no_news(tmp_path):
    opener.copy_lessons({"00.ipynb": b"one"}, tmp_path)
    (tmp_path / "00.ipynb").write_bytes(b"mine")
    assert opener.copy_lessons({"00.ipynb": b"one"}, tmp_path) == []
    assert (tmp_path / "00.ipynb").read_bytes() == b"mine"


def test_a_new_version_goes_beside_a_changed_lesson(tmp_path):
    opener.copy_lessons({"00.ipynb": b"one"}, tmp_path)
    (tmp_path / "00.ipynb").write_bytes(b"mine")
    assert opener.copy_lessons({"00.ipynb": b"two"}, tmp_path) == ["00.new.ipynb"]
    assert opener.copy_lessons({"00.ipynb": b"two"}, tmp_path) == []
    assert (tmp_path / "00.ipynb").read_bytes() == b"mine"
    assert (tmp_path / "00.new.ipynb").read_bytes() == b"two"


def test_a_changed_new_version_is_kept_too(tmp_path):
    for content in (b"one", b"two", b"three"):
        opener.copy_lessons({"00.ipynb": content}, tmp_path)
        for path in tmp_path.glob("*.ipynb"):
            path.write_bytes(path.read_bytes() + b" and mine")
    assert (tmp_path / "00.ipynb").read_bytes().startswith(b"one and mine")


def test_a_file_of_the_users_that_we_never_copied_is_kept(tmp_path):
    (tmp_path / "00.ipynb").write_bytes(b"mine")
    assert opener.copy_lessons({"00.ipynb": b"one"}, tmp_path) == ["00.new.ipynb"]
    assert (tmp_path / "00.ipynb").read_bytes() == b"mine"


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b"\xff\xfe"])
def test_a_damaged_manifest_never_costs_the_user_a_file(tmp_path, damage):
    opener.copy_lessons({"00.ipynb": b"one"}, tmp_path)
    (tmp_path / "00.ipynb").write_bytes(b"mine")
    (tmp_path / opener.MANIFEST).write_bytes(damage)
    assert opener.copy_lessons({"00.ipynb": b"two"}, tmp_path) == ["00.new.ipynb"]
    assert (tmp_path / "00.ipynb").read_bytes() == b"mine"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    opener.copy_lessons({"00.ipynb": b"one"}, tmp_path)
    before = sorted(tmp_path.iterdir())

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        opener.copy_lessons({"00.ipynb": b"two"}, tmp_path)
    assert (tmp_path / "00.ipynb").read_bytes() == b"one"
    assert sorted(tmp_path.iterdir()) == before


class Sessions(RuleBasedStateMachine):
    """A user edits and deletes, the lab is upgraded and opened: what the user wrote last is always still there."""

    names = Bundle("names")

    def __init__(self):
        super().__init__()
        import tempfile

        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        self.originals, self.written, self.edits = {}, {}, 0

    def teardown(self):
        self.temporary.cleanup()

    @initialize(target=names)
    def first(self):
        return "00.ipynb"

    @rule(target=names, number=st.integers(1, 3))
    def add_lesson(self, number):
        return f"{number:02}.ipynb"

    @rule(name=names, version=st.integers(0, 3))
    def upgrade(self, name, version):
        self.originals[name] = f"version {version}".encode()

    @rule(name=names, new=st.integers(0, 2))
    def edit(self, name, new):
        path = self.folder / f"{name.removesuffix('.ipynb')}{'.new' * new}.ipynb"
        if path.exists():
            self.edits += 1
            self.written[path] = f"mine {self.edits}".encode()
            path.write_bytes(self.written[path])

    @rule(name=names)
    def delete(self, name):
        (self.folder / name).unlink(missing_ok=True)
        self.written.pop(self.folder / name, None)

    @rule()
    def damage_manifest(self):
        (self.folder / opener.MANIFEST).write_bytes(b"{")

    @rule()
    def open(self):
        opener.copy_lessons(self.originals, self.folder)
        for path, content in self.written.items():
            assert path.read_bytes() == content
        for name, content in self.originals.items():
            assert (self.folder / name).exists()
            present = {path.read_bytes() for path in self.folder.glob(f"{name.removesuffix('.ipynb')}*.ipynb")}
            assert content in present or any(text.startswith(b"mine") for text in present)


TestSessions = Sessions.TestCase


def test_a_checkout_opens_its_own_notebooks():
    assert opener.prepare(None) == ROOT / "notebooks"


def test_a_folder_gets_copies_even_in_a_checkout(tmp_path):
    folder = opener.prepare(tmp_path / "deep" / "down")
    assert sorted(path.name for path in folder.glob("*.ipynb")) == [path.name for path in opener.lessons()]


def test_a_folder_that_is_a_file_is_refused_in_three_lines(tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(ArgumentError, match=r"cannot be copied\ngiven: .*taken.*\nhint:  name another folder"):
        opener.prepare(tmp_path / "taken")


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(LabError, match="no lesson to open"):
        opener.serve(tmp_path)


def test_a_display_is_a_display(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert not opener.has_display()
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert opener.has_display()
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("SSH_CONNECTION", "1")
    assert not opener.has_display()


@contextmanager
def opened(folder, port, home, **more):
    """`python -m lab open` in an ASCII world with an unwritable home: the process and its address, ended afterwards."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "XDG"))}
    environment |= {"HOME": str(home), "LC_ALL": "C", "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"} | more
    command = [sys.executable, "-m", "lab", "open", "--no-browser", f"--port={port}", str(folder)]
    with subprocess.Popen(command, cwd=folder.parent, env=environment, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=without_root_powers) as process:
        try:
            for line in process.stdout:
                if address := re.search(r"http://\S+", line):
                    yield process, address[0]
                    return
            pytest.fail(process.stderr.read())
        finally:
            process.kill() if process.poll() is None else None


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "terminate"])
def test_the_lab_opens_on_this_machine_only_and_leaves_nothing(tmp_path, number, code):
    folder, home, first = tmp_path / "Übung", tmp_path / "home", free_port()
    home.mkdir()
    home.chmod(0o555)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first))
        taken.listen()
        with opened(folder, first, home) as (process, address):
            host, port = re.match(r"http://([\d.]+):(\d+)/lab/tree/", address).groups()
            assert host == "127.0.0.1"
            assert int(port) != first
            base, token = address.split("lab/tree/")[0], address.split("token=")[1]
            assert len(token) >= 32
            contents = json.loads(fetch(f"{base}api/contents?token={token}"))["content"]
            assert {item["name"] for item in contents} == {path.name for path in opener.lessons()}
            assert b"jupyter-config-data" in fetch(address)
            for wrong in (f"{base}api/contents", f"{base}api/contents?token={'0' * 48}"):
                with pytest.raises(urllib.error.HTTPError, match="403"):
                    fetch(wrong)
            assert listening_on(int(port)) == {"127.0.0.1"}
            process.send_signal(number)
            out, err = process.communicate(timeout=100)
            assert process.returncode == code
            assert "Traceback" not in out + err
            assert "home folder cannot be written" in err
    assert listening_on(int(port)) == set()
    assert list(home.iterdir()) == []


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_opening_and_closing_again_and_again_leaves_nothing(tmp_path, soak):
    folder, home = tmp_path / "lessons", tmp_path / "home"
    home.mkdir()
    home.chmod(0o555)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    for number in [signal.SIGINT, signal.SIGTERM] * soak:
        with opened(folder, free_port(), home, TMPDIR=str(temporary)) as (process, address):
            port = int(address.split(":")[2].split("/")[0])
            process.send_signal(number)
            process.communicate(timeout=100)
        assert listening_on(port) == set()
        assert list(temporary.iterdir()) == []
