"""The table of executors: what a graph is run by, by name. All take and give the same, and tell the same events."""

from __future__ import annotations

from collections.abc import Callable

from lab.errors import ArgumentError
from lab.graph.compiled import compiling
from lab.graph.execute import Replaying, replayer
from lab.graph.ir import Graph
from lab.graph.scheduled import scheduling

Executor = Callable[[Graph], Replaying]

EXECUTORS: dict[str, Executor] = {"interpreted": replayer, "compiled": compiling, "parallel": scheduling}
"""Equation by equation with NumPy; in fused loops over buffers that are kept; or beside each other in threads."""


def executor_of(name: object) -> Executor:
    """The executor of a name.

    Raises:
        ArgumentError: there is none.

    Example:
        >>> executor_of("quick")
        Traceback (most recent call last):
        lab.errors.ArgumentError: no executor has that name
        given: 'quick'
        hint:  interpreted, compiled or parallel
    """
    if not isinstance(name, str) or name not in EXECUTORS:
        *most, last = EXECUTORS
        raise ArgumentError("no executor has that name", given=repr(name), hint=f"{', '.join(most)} or {last}")
    return EXECUTORS[name]
