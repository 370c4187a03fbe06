"""The lessons: each .ipynb is exactly what its percent source makes, without outputs."""

import nbformat
import pytest

from tests.pairing import NOTEBOOKS, generated, sources


def cells(notebook):
    return [(cell.id, cell.cell_type, cell.source, dict(cell.metadata)) for cell in notebook.cells]


def test_there_are_lessons():
    assert sources()


def test_every_notebook_has_its_source_and_every_source_its_notebook():
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == {path.stem for path in sources()}


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.stem)
def test_notebook_and_source_agree(path):
    kept = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    made = generated(path.read_text("utf-8"))
    assert cells(kept) == cells(made), "make notebooks"
    assert kept.metadata == made.metadata, "make notebooks"


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.stem)
def test_notebook_carries_no_outputs(path):
    notebook = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [(cell.id, cell.outputs, cell.execution_count) for cell in code] == [(cell.id, [], None) for cell in code]


def test_generating_twice_gives_the_same_notebook():
    source = "# %% [markdown]\n# # Hello\n\n# %%\nawait run\n"
    assert nbformat.writes(generated(source)) == nbformat.writes(generated(source))
    assert [cell.cell_type for cell in generated(source).cells] == ["markdown", "code"]
