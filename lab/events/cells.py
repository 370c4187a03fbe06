"""What a learner calls the code of a notebook's cell: by the prompt beside it, not by a kernel's temporary file."""

from __future__ import annotations

import sys


def cell_of(file: str) -> str:
    """The cell that `file`, the `co_filename` of some code, stands for: "cell In [3]", or "" if it is a real file.

    Of a cell that another kernel ran, as in a loaded recording, the number is not known: "cell".

    Example:
        >>> cell_of("/tmp/ipykernel_71/332220231.py"), cell_of("/home/me/model.py")
        ('cell', '')
    """
    ipython = sys.modules.get("IPython")  # where nobody imported it, there are no cells
    shell = ipython.get_ipython() if ipython is not None else None
    named = shell.compile.format_code_name(file) if shell is not None else None
    if named is not None:
        return f"{named[0].lower()} {named[1].replace('[', ' [')}"
    *folders, name = file.replace("\\", "/").split("/")
    made_up = any(f.startswith("ipykernel_") for f in folders) or name.startswith("<ipython-input-")
    return "cell" if made_up else ""


def told_place(place: str) -> str:
    """A "file:line" as a learner reads it: the cell and its line in a notebook, elsewhere as it is.

    Example:
        >>> told_place("/tmp/ipykernel_71/332220231.py:4"), told_place("/home/me/model.py:4"), told_place("")
        ('cell, line 4', '/home/me/model.py:4', '')
    """
    file, _, line = place.rpartition(":")
    cell = cell_of(file) if line.isdigit() else ""
    return f"{cell}, line {line}" if cell else place
