import os
import stat
import subprocess
import sys

import pytest

from lab.files import replacing, require_room
from tests.support import without_root_powers


def names(folder):
    return [path.name for path in folder.iterdir()]


def test_a_file_is_replaced_whole_and_keeps_its_permissions(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_block_that_raises_leaves_the_old_file_and_nothing_beside_it(tmp_path, error):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def half() -> None:
        with replacing(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        half()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    with replacing(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_full_disk_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    program = (
        "import resource, signal, sys; from lab.files import replacing\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "with replacing(sys.argv[1]) as file: file.write(bytes(100_000))\n"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=False)
    assert "File too large" in done.stderr
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_room_for_nothing_can_be_asked_for(tmp_path):
    require_room(tmp_path / "empty", 0)
    assert names(tmp_path) == []


def test_a_folder_that_cannot_be_written_is_an_error_of_the_system(tmp_path):
    tmp_path.chmod(0o555)
    program = "import sys; from lab.files import replacing\nwith replacing(sys.argv[1]) as file: file.write(b'x')\n"
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "a"],
        capture_output=True, text=True, check=False, preexec_fn=without_root_powers,
    )  # fmt: skip
    assert "PermissionError" in done.stderr
    tmp_path.chmod(0o755)
    assert names(tmp_path) == []


@pytest.mark.parametrize("ask", [lambda path: replacing(path).__enter__(), lambda path: require_room(path, 10)])
def test_what_is_no_file_that_may_be_written_is_not_replaced(tmp_path, ask):
    pipe, precious, folder, link = (tmp_path / name for name in ("pipe", "precious", "folder", "link"))
    os.mkfifo(pipe)
    precious.write_bytes(b"gold")
    precious.chmod(0o400)
    folder.mkdir()
    link.symlink_to(pipe)
    there = sorted(names(tmp_path))
    for path, told in [(pipe, "a pipe"), (link, "a pipe"), (precious, "read-only"), (folder, "directory")]:
        with pytest.raises(OSError, match=told):
            ask(path)
    assert sorted(names(tmp_path)) == there
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert precious.read_bytes() == b"gold"
