import importlib
import re
from pathlib import Path

import pytest

import lab
from lab.cli.verbs import parser
from lab.training.registry import stop_all

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")

SAID = r"^([^#\n]+?) *# (\(?tensor\([^:\n]*\)|\[[^\]\n]*\])(?::.*)?$"
"""A line of code, and the value that stands behind it as a comment."""
LESSON = r"^\| (\d\d) \| \[[^\]]+\]\((notebooks/\d\d_\w+\.py)\) \| [^|]+\? [^|]+ \| (\d+ to \d+) \|$"
"""A row of the table of lessons: number, file, minutes."""


@pytest.mark.slow
def test_the_code_of_the_readme_runs_and_gives_what_it_says(capsys):
    # as in a notebook: what is defined here travels to workers by value
    shown = []
    scope = {"__name__": "__main__", "display": lambda *views: shown.extend(views)}
    try:
        for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
            exec(block, scope)
            for source, said in re.findall(SAID, block, re.MULTILINE):
                assert repr(eval(source, scope)) == said
        scope["run"].wait(timeout=60)
        assert scope["run"].result.accuracy > 0.9
    finally:
        stop_all(timeout=30)  # a reader looks into a paused run for as long as it pleases
    assert all(run.ended for run in lab.runs())
    assert [scope[name].result.state for name in ("copies", "stages")] == ["finished", "finished"]
    assert "tanh(a)" in capsys.readouterr().out
    assert [len(view.picture_at(len(view.recording)).nodes) > 1 for view in shown] == [True] * 3


def test_every_file_that_the_readme_names_is_there():
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(links) >= 4
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_lesson_is_in_the_table_with_its_minutes():
    rows = re.findall(LESSON, README, re.MULTILINE)
    lessons = sorted((ROOT / "notebooks").glob("[0-9]*.py"))
    assert [path for _, path, _ in rows] == [f"notebooks/{path.name}" for path in lessons]
    for (number, _, minutes), path in zip(rows, lessons, strict=True):
        assert path.name.startswith(number)
        assert f"{minutes} minutes" in path.read_text("utf-8")


def test_every_verb_and_option_that_the_readme_shows_is_one(capsys):
    for line in re.findall(r"^autodiff-lab ([^#\n]+)", README, re.MULTILINE):
        parser().parse_args(line.split())
    for option in re.findall(r"`(--[^`]+)`", README.replace("\n", " ")):
        words = option.replace("ADDRESS", "tcp://127.0.0.1:1").split()
        assert parser().parse_args(["train", *words]).load
    assert capsys.readouterr().err == ""


def test_every_name_that_the_readme_uses_is_public():
    for room, name in re.findall(r"`(lab(?:\.parallel)?|widgets)\.([A-Za-z_]+)", README):
        assert hasattr(importlib.import_module(room), name), f"{room}.{name}"
