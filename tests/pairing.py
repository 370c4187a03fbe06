"""The .ipynb of a lesson, made from its percent source: `python -m tests.pairing` writes them all (`make notebooks`).

Nothing in it depends on the day or on the tool's version, so that a diff of an .ipynb shows what changed in the lesson.
"""

import sys
from pathlib import Path

import jupytext
import nbformat

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"


def sources() -> list[Path]:
    """The percent sources of the lessons, in their order."""
    return sorted(NOTEBOOKS.glob("*.py"))


def generated(source: str) -> nbformat.NotebookNode:
    """The notebook of a percent source: no outputs, cells numbered through, the plain kernel of the environment."""
    notebook = jupytext.reads(source, fmt="py:percent")
    notebook.metadata = nbformat.from_dict({
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    })
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number:02}"
    return notebook


def main() -> int:
    """Write NAME.ipynb beside every NAME.py."""
    for path in sources():
        nbformat.write(generated(path.read_text("utf-8")), path.with_suffix(".ipynb"))
        print(path.with_suffix(".ipynb"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
