"""Every lesson: runs alone and from clean with solutions (without: in a browser), and keeps to a lesson's measure."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from lab.teach import EXERCISES, SOLUTIONS, Progress
from tests.pairing import generated, sources
from tests.slices import sliced

ROOT = Path(__file__).parent.parent
LESSONS = [pytest.param(path, id=path.stem) for path in sources()]
SECONDS = 240
"""Bound of liveness for one cell on a busy machine."""


def lesson(path: Path) -> nbformat.NotebookNode:
    return generated(path.read_text("utf-8"))


def code_cells(notebook: nbformat.NotebookNode) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def solved(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The lesson as a learner leaves it who got everything right."""
    for cell in notebook.cells:
        for name, solution in SOLUTIONS.items():
            cell.source = cell.source.replace(EXERCISES[name].stub.rstrip(), solution.rstrip())
    return notebook


@pytest.fixture
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder without progress, and a kernel that finds this lab."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("LAB_PROGRESS", raising=False)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return tmp_path


def run(notebook: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    here = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=here).execute()
    return notebook


def said(notebook: nbformat.NotebookNode) -> str:
    """All text of all outputs."""
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return "\n".join(str(output.get("data", {}).get("text/plain", output.get("text", ""))) for output in outputs)


@pytest.mark.parametrize("path", LESSONS)
def test_a_lesson_runs_from_clean_without_answers_in_a_browser(path):
    """Where everything is that a learner does then: no second run here."""
    tests = (ROOT / "tests" / "browser" / f"test_lesson_{path.stem[:2]}.py").read_text("utf-8")
    assert f'LESSON = "{path.stem}.ipynb"' in tests
    assert "    ran_from_clean(learner)\n" in tests


@pytest.mark.slow
@pytest.mark.timeout(600)
@sliced("path", "times", every=4)  # its answers are typed in a browser each day; here each lesson every other day
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("path", LESSONS)
def test_a_lesson_runs_with_solutions_and_every_cell_once_or_twice(path, times, clean):
    notebook = solved(lesson(path))
    cells = [nbformat.from_dict({**cell, "id": f"{cell.id}-{n}"}) for cell in notebook.cells for n in range(times)]
    notebook.cells = [cell for cell in cells if cell.cell_type == "code"]
    progress = Progress(clean / "my_progress.json")
    for name, choice in predictions_of(notebook).items():
        progress.said(path.stem[:2], name, choice or 1.0)
    text = said(run(notebook, clean))
    assert text.count(": right in ") == len(exercises_of(notebook))
    assert ": not yet. " not in text
    assert text.count("You said ") >= times * len(predictions_of(notebook))


def predictions_of(notebook: nbformat.NotebookNode) -> dict[str, str]:
    """Name of each prediction, with its first choice if it has choices."""
    found = {}
    for tree in map(ast.parse, set(code_cells(notebook))):
        for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) == "lesson.predict"):
            options = {k.arg: k.value for k in call.keywords}
            found[ast.literal_eval(call.args[0])] = ast.literal_eval(options.get("choices", ast.Constant([""])))[0]
    return found


def exercises_of(notebook: nbformat.NotebookNode) -> list[str]:
    return re.findall(r"lesson\.check\((\w+)\)", "\n".join(code_cells(notebook)))


@pytest.mark.parametrize("path", LESSONS)
def test_a_lesson_asks_three_predictions_before_the_code_that_answers_and_has_two_checks(path):
    cells = code_cells(lesson(path))
    asked = {m: i for i, cell in enumerate(cells) for m in re.findall(r"lesson\.predict\(\s*\"([^\"]+)\"", cell)}
    shown = {m: i for i, cell in enumerate(cells) for m in re.findall(r"lesson\.reveal\(\"([^\"]+)\"\)", cell)}
    assert len(asked) >= 3
    assert asked.keys() == shown.keys()
    assert all(shown[name] > asked[name] + 1 for name in asked), "code runs between question and answer"
    assert len(exercises_of(lesson(path))) >= 2


@pytest.mark.parametrize("path", LESSONS)
def test_a_lesson_keeps_to_its_measure(path):
    notebook = lesson(path)
    lines = [sum(bool(line.strip()) for line in cell.splitlines()) for cell in code_cells(notebook)]
    prose = [len(re.findall(r"\w+", cell.source)) for cell in notebook.cells if cell.cell_type == "markdown"]
    assert 20 <= len(notebook.cells) <= 45
    assert statistics.median(lines) <= 6
    assert max(lines) <= 12
    assert statistics.median(prose) <= 60


@pytest.mark.parametrize("path", LESSONS)
def test_a_lesson_says_how_long_it_takes_and_what_it_needs(path):
    first = lesson(path).cells[0].source
    assert re.search(r"\d+ to \d+ minutes", first)
    assert re.search(r"\d+ seconds", first)
    assert re.search(r"\d+ MB", first)


@pytest.mark.parametrize("path", LESSONS)
def test_a_lesson_shows_the_stubs_of_its_exercises_as_they_are(path):
    shown = functions_of(lesson(path))
    for name in exercises_of(lesson(path)):
        assert shown[name] == [EXERCISES[name].stub.rstrip()]


def functions_of(notebook: nbformat.NotebookNode) -> dict[str, list[str]]:
    """The code of every function and class that a cell defines at its top level; a name may be given more than once."""
    found: dict[str, list[str]] = {}
    for cell in code_cells(notebook):
        for statement in ast.parse(cell).body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                found.setdefault(statement.name, []).append(ast.get_source_segment(cell, statement) or "")
    return found


@pytest.mark.parametrize("path", LESSONS)
def test_a_name_that_a_prediction_waits_for_is_given_once(path):
    """Committed late, after Run All, a prediction still reads the value that its own cell made."""
    cells = code_cells(lesson(path))
    awaited = set()
    for tree in map(ast.parse, cells):
        for call in (n for n in ast.walk(tree) if isinstance(n, ast.keyword) and n.arg == "answer"):
            awaited |= {n.id for n in ast.walk(call.value) if isinstance(n, ast.Name)}
    for name in awaited:
        makers = [c for c in cells if name in stored(c)]
        assert len(makers) == 1, f"{name} is given in {len(makers)} cells"


def stored(cell: str) -> set[str]:
    """Names that a cell binds at its top level."""
    found: set[str] = set()
    for statement in ast.parse(cell).body:
        if not isinstance(statement, ast.FunctionDef | ast.ClassDef):
            found |= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return found


ON_WORKERS = [pytest.param(path, id=path.stem) for path in sources() if "lesson.cluster(" in path.read_text("utf-8")]


def test_the_lessons_of_many_ranks_have_workers():
    assert {param.id for param in ON_WORKERS} >= {"00_start_here", "10_all_reduce", "15_pipeline"}


@pytest.mark.parametrize("path", ON_WORKERS)
def test_a_lesson_leaves_its_workers_to_a_learner_who_goes_back_and_says_how_to_end_them(path):
    notebook = lesson(path)
    assert any(cell.startswith("cluster = lesson.cluster(4)") for cell in code_cells(notebook))
    assert not any("close()" in cell for cell in code_cells(notebook))
    assert "`cluster.close()`" in notebook.cells[-2].source
    assert "`cluster = lesson.cluster(4)`" in notebook.cells[-2].source


@pytest.mark.parametrize("path", LESSONS)
def test_programs_on_ranks_are_launched_with_a_limit_of_time(path):
    for cell in code_cells(lesson(path)):
        for call in (n for n in ast.walk(ast.parse(cell)) if isinstance(n, ast.Call)):
            if ast.unparse(call.func) == "cluster.launch":
                assert "time_limit" in {k.arg for k in call.keywords}, ast.unparse(call)


def test_every_exercise_has_a_solution_and_no_solution_is_left_over():
    assert SOLUTIONS.keys() == EXERCISES.keys()


def test_every_exercise_stands_in_one_lesson():
    assert sorted(name for path in sources() for name in exercises_of(lesson(path))) == sorted(EXERCISES)


@pytest.mark.parametrize("name", EXERCISES)
def test_a_solution_begins_with_the_line_of_its_stub(name):
    first = EXERCISES[name].stub.splitlines()[0]
    assert first.startswith((f"def {name}(", f"class {name}:"))
    assert SOLUTIONS[name].splitlines()[0] == first
    assert SOLUTIONS[name] != EXERCISES[name].stub
