"""`export`: a saved graph becomes a file of NumPy or of ONNX, or three lines say why not."""

import numpy as np
import onnx
import pytest

import lab
from lab import __main__ as cli
from lab.graph import save
from lab.ops import PRIMITIVES


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.graph"
    save(lab.make_graph(lab.nn.mlp(3, 4, 2, rng=0))(np.ones((1, 3), np.float32)), path)
    return path


def test_a_saved_graph_becomes_a_file_of_either_form(model, tmp_path, capsys):
    assert cli.main(["export", str(model), "--out", str(tmp_path / "model.py")]) == 0
    assert cli.main(["export", str(model), "--to", "onnx", "--out", str(tmp_path / "model.onnx")]) == 0
    assert "np.maximum" in (tmp_path / "model.py").read_text()
    assert len(onnx.load(tmp_path / "model.onnx").graph.initializer) == 5
    assert capsys.readouterr().out.splitlines()[0] == "5 equations, 1 input"


def test_what_cannot_be_exported_is_told_in_three_lines(model, tmp_path, capsys):
    save(lab.make_graph(PRIMITIVES["inv"])(np.eye(2)), model)
    out = tmp_path / "model.onnx"
    assert cli.main(["export", str(model), "--to", "onnx", "--out", str(out)]) == 1
    problem, given, _ = capsys.readouterr().err.splitlines()
    assert (problem, given) == ("inv cannot be written in ONNX", "given: ONNX has no decomposition of matrices")
    assert not out.exists()
    assert cli.main(["export", str(tmp_path / "none.graph"), "--out", str(out)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 3
