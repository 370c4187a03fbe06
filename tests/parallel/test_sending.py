"""Code that travels keeps its name: a cell's is that of its prompt, and a rank's traceback shows the learner's line."""

import linecache
import pickle

import pytest

import lab
from lab.errors import MeshError, RankError, RunError
from lab.optim import SGD
from lab.parallel import DataParallel
from lab.parallel.paper.calling import place_of
from lab.parallel.transport.sending import dumps, line_of, name_of
from tests.parallel.trainings import SOON, some_digits

FILE = "/tmp/ipykernel_71/332220231.py"
SOURCE = """\
def divides(comm):
    return 1 / (comm.rank - 2)
def differs(comm):
    import numpy as np
    comm.all_reduce_(np.ones(4 + comm.rank % 2))
from lab import nn, ops
class Steep(nn.Module):
    def __init__(self):
        self.linear = nn.Linear(64, 10, rng=0)
    def forward(self, x):
        return ops.log(self.linear(x) - 1e9)
"""


@pytest.fixture
def cell(monkeypatch):
    """Functions as a notebook's kernel makes them: from a file that is not there, its lines in the cache."""
    monkeypatch.setitem(linecache.cache, FILE, (len(SOURCE), None, SOURCE.splitlines(keepends=True), FILE))
    scope = {"__name__": "__main__"}
    exec(compile(SOURCE, FILE, "exec"), scope)
    return scope


def test_code_of_a_cell_is_named_by_it_and_its_lines_are_known_at_home(cell):
    copy = pickle.loads(dumps(cell["divides"]))
    assert copy.__code__.co_filename == name_of(FILE) == "cell"
    assert line_of("cell", 2) == "return 1 / (comm.rank - 2)"


def test_a_place_is_told_as_a_person_names_it():
    assert place_of("C:\\work\\model.py", 3) == "model.py:3"
    assert place_of("cell In [2]", 3) == "cell In [2], line 3"
    assert place_of("/home/me/cells.py", 3) == "cells.py:3"


def test_a_rank_that_raises_in_a_cell_is_told_with_cell_and_line(cluster, cell):
    with pytest.raises(RankError, match="raised on rank 2 of 4 at cell, line 2") as caught:
        cluster.launch(cell["divides"])
    assert 'File "cell", line 2, in divides\n    return 1 / (comm.rank - 2)\n' in caught.value.traceback
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_calls_that_differ_are_told_with_cell_and_line_and_nothing_twice(cluster, cell):
    with pytest.raises(MeshError, match=r"float64\[4\] at cell, line 5") as caught:
        cluster.launch(cell["differs"])
    (note,) = caught.value.__notes__
    assert note.startswith("On rank ")
    assert "make different calls" not in note


def test_a_nan_of_a_model_of_a_cell_is_told_with_cell_and_line(cluster, cell):
    model = cell["Steep"]()
    run = lab.fit(model, some_digits(64), epochs=1, optimizer=SGD(model.parameters(), 0.1), on=DataParallel(cluster, 2))
    with pytest.raises(RunError) as caught:
        run.wait(SOON)
    assert caught.value.given == "first nan or inf in log (cell, line 11)"
    run.stop()
    assert run.wait(SOON).state == "stopped"
