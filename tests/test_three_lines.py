"""What the README promises: an error says what is wrong, what was given, and what to try."""

import ast
from pathlib import Path

import pytest

from lab import errors

ROOT = Path(__file__).parent.parent
ROOMS = ("data", "experiments", "nn", "optim", "teach", "training")
FILES = [path for room in ROOMS for path in sorted((ROOT / "lab" / room).glob("*.py"))]
FILES += [ROOT / "lab" / name for name in ("checks.py", "config.py", "opener.py")] + [ROOT / "widgets" / "cards.py"]
KINDS = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.LabError)}


def made_in(path: Path) -> list[ast.Call]:
    """Every place of a file where an error of the lab is made."""
    calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in KINDS]


def test_the_scan_finds_errors():
    assert sum(len(made_in(path)) for path in FILES) > 50


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_error_has_its_three_lines(path):
    short = [f"line {call.lineno}" for call in made_in(path) if {"given", "hint"} - {k.arg for k in call.keywords}]
    assert not short
