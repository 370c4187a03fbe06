"""Slices of matrices: something of every row runs each day, over the days all of it, and nothing is left out unsaid."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.slices import chosen

ROOT = Path(__file__).parent.parent
FILE = """
import pytest
from tests.slices import sliced

@sliced("theme")
@pytest.mark.parametrize("theme", ["light", "dark", "contrast"])
@pytest.mark.parametrize("view", range(4))
def test_a_view(view, theme):
    assert (view, theme) != (2, "dark"), "broken"

@sliced("look", together=True)
@pytest.mark.parametrize("look", "ab")
@pytest.mark.parametrize("view", range(3))
def test_a_look(view, look):
    pass

def test_alone():
    pass
"""


@given(st.integers(1, 40), st.integers(0, 10**6), st.none() | st.integers(1, 50))
def test_each_slice_has_something_and_as_many_slices_as_a_row_is_cut_into_have_each_cell_once(length, turn, every):
    slices = [chosen(length, turn + day, every) for day in range(min(every or length, length))]
    assert all(slices)
    assert sorted(place for taken in slices for place in taken) == list(range(length))


@pytest.fixture
def run(tmp_path):
    """Runs pytest on the file, with the house's conftest; what it says."""

    def run(*words, place="test_matrix.py", number="0", text=FILE):
        (tmp_path / "test_matrix.py").write_text(text, "utf-8")
        command = [sys.executable, "-m", "pytest", "-v", "-c", str(ROOT / "pyproject.toml"), f"--rootdir={tmp_path}",
                   "-p", "tests.conftest", "-p", "no:cacheprovider"]  # fmt: skip
        environment = {**os.environ, "LAB_SLICE": number, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([*command, *words, place], cwd=tmp_path, env=environment, capture_output=True, text=True,
                              check=False)  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    return run


def ran(said, test):
    """Which cells of a test ran, and how they ended."""
    lines = [line.split() for line in said.splitlines() if f"::{test}[" in line and "%]" in line]
    return {words[0].partition("[")[2].rstrip("]"): words[1] for words in lines}


def test_each_view_is_looked_at_each_day_all_themes_over_three_days_and_what_is_broken_is_found(run):
    seen, statuses = [], set()
    for day in range(3):
        status, said = run(number=str(day))
        cells = ran(said, "test_a_view")
        assert sorted(cell[0] for cell in cells) == [*"0123"]
        assert "4 of 12 cells, by theme: test_matrix.py::test_a_view" in said
        assert "3 of 6 cells, by look: test_matrix.py::test_a_look" in said
        assert f"slice {day} (again: LAB_SLICE={day}; all: --whole) of 2 matrices" in said
        assert "11 deselected" in said
        assert len({cell.strip("0123-") for cell in ran(said, "test_a_look")}) == 1, "one look for all"
        assert status == any(how == "FAILED" for how in cells.values())
        statuses.add(status)
        seen += cells
    assert len(seen) == len(set(seen)) == 12
    assert statuses == {0, 1}


def test_words_choose_among_all_cells(run):
    for day in "01":
        status, said = run("-k", "dark", number=day)
        assert (status, len(ran(said, "test_a_view"))) == (1, 4)


def test_all_of_it_runs_where_the_whole_is_asked_for_or_a_cell_by_its_name(run):
    status, said = run("--whole")
    assert (status, len(ran(said, "test_a_view"))) == (1, 12)
    assert "every cell of 2 matrices" in said
    name = next(cell for cell, how in ran(said, "test_a_view").items() if how == "FAILED")
    for day in "012":
        status, said = run(place=f"test_matrix.py::test_a_view[{name}]", number=day)
        assert ran(said, "test_a_view") == {name: "FAILED"}


def test_a_wrong_number_and_a_parameter_that_is_none_are_told(run):
    status, said = run(number="today")
    assert status == 4
    assert "LAB_SLICE is not the number of a slice\ngiven: 'today'\nhint:" in said.replace("ERROR: ", "")
    status, said = run(text=FILE.replace('sliced("theme")', 'sliced("theme", "colour")'))
    assert status == 4
    assert "is taken by a parameter that it has not" in said
    assert "given: colour" in said
