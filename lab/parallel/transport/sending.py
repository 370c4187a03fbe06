"""Programs on their way to workers: pickled with the names of the cells that they were typed into.

cloudpickle gives all code that travels one and the same file name. But a rank's traceback, and what the ranks say of
each other's calls, shall name the learner's cell and line; so code keeps its name, and a cell's is that of its prompt.
"""

from __future__ import annotations

import functools
import io
import linecache
from collections import ChainMap
from types import CodeType
from typing import Any, ClassVar

from lab.events.cells import cell_of

NAMELESS = "<dynamic-code>"
_FILES: dict[str, str] = {}
"""The file behind the name of each cell whose code was sent: at home its lines can be read."""


def dumps(value: object) -> bytes:
    """Pickle a value that may hold functions of a notebook or a script; `pickle.loads` reads it.

    Example:
        >>> import pickle
        >>> code = compile("def f(): return 1", "/home/me/model.py", "exec")
        >>> scope = {"__name__": "__main__"}
        >>> exec(code, scope)
        >>> pickle.loads(dumps(scope["f"])).__code__.co_filename
        '/home/me/model.py'
    """
    buffer = io.BytesIO()
    _pickler()(buffer).dump(value)
    return buffer.getvalue()


@functools.cache
def _pickler() -> Any:
    from cloudpickle import CloudPickler

    reduce = CloudPickler.dispatch_table[CodeType]

    def named(code: CodeType) -> Any:
        make, arguments = reduce(code)
        return make, tuple(name_of(code.co_filename) if a == NAMELESS else a for a in arguments)

    class Pickler(CloudPickler):  # type: ignore[misc]
        dispatch_table: ClassVar[Any] = ChainMap({CodeType: named}, CloudPickler.dispatch_table)

    return Pickler


def name_of(file: str) -> str:
    """What the code of this file is called on workers."""
    cell = cell_of(file)
    if cell:
        _FILES[cell] = file
    return cell or file


def line_of(file: str, line: int) -> str:
    """The text of a line of code that was sent; "" if it is not known here."""
    return linecache.getline(_FILES.get(file, file), line).strip()
