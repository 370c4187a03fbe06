"""Every function that takes a path says in three lines what is wrong with one that is none, or where no file can be."""

import os

import numpy as np
import pytest

import lab
from lab.errors import LabError
from lab.interop import export_numpy, export_onnx, perfetto
from widgets import GraphView


def graph():
    return lab.make_graph(lambda x: lab.tanh(x) * 2.0)(np.ones(3))


def recording():
    with lab.record() as rec:
        lab.tanh(lab.tensor(1.0, requires_grad=True))
    return rec


WRITE = {
    "x.graph": lambda path: lab.graph.save(graph(), path),
    "x.py": lambda path: export_numpy(graph(), path),
    "x.onnx": lambda path: export_onnx(graph(), path),
    "x.json": lambda path: perfetto.save(recording(), path),
    "x.rec": lambda path: recording().save(path),
    "x.svg": lambda path: GraphView(recording()).export(path),
}
READ = {"x.graph": lambda path: lab.graph.load(path), "x.rec": lambda path: lab.Recording.load(path)}
NO_PATHS = (3, None, 2.5, ["x"])


def refused(call, path):
    with pytest.raises(LabError) as caught:
        call(path)
    lines = str(caught.value).splitlines()
    assert [line[:6] for line in lines[1:]] == ["given:", "hint: "]
    return lines


@pytest.mark.parametrize("name", WRITE)
def test_what_cannot_be_written_is_told_in_three_lines_and_leaves_nothing(name, tmp_path):
    (tmp_path / name).mkdir()
    refused(WRITE[name], tmp_path / name)
    refused(WRITE[name], str(tmp_path / "missing" / name))
    for path in NO_PATHS:
        refused(WRITE[name], path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", READ)
def test_what_cannot_be_read_is_told_in_three_lines(name, tmp_path):
    refused(READ[name], tmp_path)
    assert "No such file" in refused(READ[name], str(tmp_path / name))[1]
    os.mkfifo(tmp_path / "pipe")
    refused(READ[name], tmp_path / "pipe")
    for path in (*NO_PATHS, "a\0b"):
        refused(READ[name], path)


def test_who_catches_what_the_system_says_catches_it_still(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        lab.graph.load(tmp_path / "missing")
    with pytest.raises(OSError, match="Is a directory"):
        lab.graph.save(graph(), tmp_path)
