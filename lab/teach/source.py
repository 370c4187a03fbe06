"""Where the lines of a learner's function or class stand, and what they say."""

from __future__ import annotations

import ast
import inspect
import linecache
from types import CodeType


def code_of(thing: object) -> CodeType | None:
    """The code of a function; of a class that of its first method; None of what was not written in Python.

    Example:
        >>> code_of(code_of).co_name, code_of(len)
        ('code_of', None)
    """
    members = vars(thing).values() if isinstance(thing, type) else (thing,)
    codes = (getattr(member, "__code__", None) for member in members)
    return next((code for code in codes if isinstance(code, CodeType)), None)


def source_of(thing: object) -> str:
    """The text of a function or a class, or "" where it cannot be found.

    Example:
        >>> source_of(source_of).splitlines()[0]
        'def source_of(thing: object) -> str:'
    """
    try:
        return _class_source(thing) if isinstance(thing, type) else inspect.getsource(thing)  # type: ignore[arg-type]
    except (OSError, TypeError, SyntaxError):
        return ""


def _class_source(thing: type) -> str:
    # `inspect` looks for the file of a class's module: a notebook has none. But the methods know their cell.
    code = code_of(thing)
    text = "".join(linecache.getlines(code.co_filename)) if code else ""
    found = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ClassDef) and n.name == thing.__name__]
    return f"{ast.get_source_segment(text, found[-1])}\n" if found else ""
