"""Packing a function that was typed into a notebook, so that another process can run it.

pickle sends functions by name, and a notebook's functions have no module to be found in; so their code object travels,
with the globals that the code really loads, and nothing else of the notebook.
"""

from __future__ import annotations

import dis
import importlib
import io
import marshal
import pickle
import sys
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any

from lab.errors import ExerciseError

_CLASS_MACHINERY = {"__dict__", "__weakref__", "__module__", "__doc__", "__slots__"}


def pack(value: object) -> bytes:
    """Bytes of any value that may hold notebook functions; `pickle.loads` in a process with `lab` rebuilds it.

    Raises:
        ExerciseError: it needs something that cannot travel: an open file, a thread, a running training.

    Example:
        >>> pickle.loads(pack(lambda x: x + 1))(2)
        3
    """
    try:
        return _dumps(value)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError) as why:
        raise ExerciseError(
            "your function uses something that a check cannot take along",
            given=f"{type(why).__name__}: {why}",
            hint="let the function use only its arguments, and make inside it what it needs",
        ) from why


def _dumps(value: object) -> bytes:
    buffer = io.BytesIO()
    _Packer(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


class _Packer(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, ModuleType):
            return importlib.import_module, (obj.__name__,)
        if isinstance(obj, FunctionType) and not _importable(obj):
            return _reduce_function(obj)
        if isinstance(obj, type) and not _importable(obj):
            body = {k: v for k, v in vars(obj).items() if k not in _CLASS_MACHINERY and not _is_slot(v)}
            return _make_class, (type(obj), obj.__name__, obj.__bases__), body, None, None, _fill_class
        if isinstance(obj, staticmethod | classmethod):
            return type(obj), (obj.__func__,)
        if isinstance(obj, property):
            return property, (obj.fget, obj.fset, obj.fdel, obj.__doc__)
        return NotImplemented


def _is_slot(member: object) -> bool:
    return type(member) is MemberDescriptorType  # the class is rebuilt without slots: its objects behave alike


def _importable(obj: Any) -> bool:
    module = sys.modules.get(obj.__module__)
    return obj.__module__ != "__main__" and getattr(module, obj.__qualname__, None) is obj


def globals_used(code: CodeType) -> Iterator[str]:
    """Names of the globals that a code object loads, inner functions included.

    Example:
        >>> sorted(globals_used((lambda x: np.exp(x.grad)).__code__))
        ['np']
    """
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from globals_used(constant)


def _reduce_function(f: FunctionType) -> tuple[Any, ...]:
    used = {name: f.__globals__[name] for name in sorted(set(globals_used(f.__code__))) if name in f.__globals__}
    cells = [c.cell_contents for c in f.__closure__ or ()]
    state = {"globals": used, "defaults": f.__defaults__, "kwdefaults": f.__kwdefaults__, "cells": cells}
    return _make_function, (marshal.dumps(f.__code__), f.__name__, len(cells)), state, None, None, _fill_function


def _make_function(code: bytes, name: str, n_cells: int) -> FunctionType:
    # Made empty and filled later: by then pickle knows the object, so a function may mention itself.
    scope: dict[str, Any] = {"__builtins__": __builtins__, "__name__": "__main__"}
    return FunctionType(marshal.loads(code), scope, name, None, tuple(CellType() for _ in range(n_cells)))  # noqa: S302


def _fill_function(f: FunctionType, state: dict[str, Any]) -> None:
    f.__globals__.update(state["globals"])
    f.__defaults__, f.__kwdefaults__ = state["defaults"], state["kwdefaults"]
    for cell, value in zip(f.__closure__ or (), state["cells"], strict=True):
        cell.cell_contents = value


def _make_class(meta: type, name: str, bases: tuple[type, ...]) -> type:
    made: type = meta(name, bases, {"__module__": "__main__"})
    return made


def _fill_class(made: type, body: dict[str, Any]) -> None:
    for key, value in body.items():
        setattr(made, key, value)
