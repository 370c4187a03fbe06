"""lab.script: a Graph from the source of a function. A branch that was not taken is in it, too.

A trace writes down what one run does; `script` reads what the function says. So an `if` on a value becomes a `cond`
with both its ways, a loop a region with one turn, and the same graph serves for every value.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, NamedTuple, overload

import numpy as np

from lab import tree
from lab.autograd.plain import operand
from lab.autograd.tensor import Tensor, wrap
from lab.config import STATE, using
from lab.errors import ArgumentError, ScriptError
from lab.graph.cutting import cut
from lab.graph.executors import Executor, executor_of
from lab.graph.ir import Graph
from lab.graph.keys import drawing
from lab.graph.make import Place, is_weak, serves_again
from lab.graph.scripting.numbers import is_numeric, is_soft
from lab.graph.scripting.reader import Reader
from lab.graph.scripting.source import check, source_of


class Made(NamedTuple):
    """What is kept of the first call with arguments of a kind."""

    graph: Graph
    replay: Callable[[Any], list[Any]]
    structure: tree.Structure


class Script:
    """A function that runs as the Graph of its source; made by `lab.script`.

    Attributes:
        script_of: the function itself.
        cache: what was made so far, by the kinds of the arguments.
    """

    def __init__(self, f: FunctionType, execute: Executor) -> None:
        functools.update_wrapper(self, f)
        self._execute = execute
        self.script_of = f
        self.cache: dict[Any, Made] = {}
        check(source_of(f))

    def __repr__(self) -> str:
        return f"<script {self.script_of.__qualname__}>"

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        """As a method: the object that it is called on is a constant, its tensors are from outside."""
        return self if owner is None else MethodType(self, owner)

    @property
    def code(self) -> str:
        """The source that was read."""
        return source_of(self.script_of).text

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """The Graph for arguments of these kinds; tensors from outside are its last inputs."""
        return self._made(args, kwargs)[0].graph

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made, values = self._made(args, kwargs)
        given = [*values, *made.graph.captured]
        arrays = [a.value for a in given if type(a) is Tensor]
        return tree.unflatten(made.structure, [_owned(o, arrays) for o in made.replay(given)])

    def _made(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Made, list[Any]]:
        """The graph for these arguments, and those of them that go into it."""
        leaves, structure = tree.flatten((args, kwargs))  # as given: defaults are constants of the function
        values = [_value(x) if _is_input(x) else x for x in leaves]
        state = STATE.get()
        key = structure, tuple(map(_kind, values)), state.kinks, state.axes
        try:
            found = self.cache.get(key)
        except TypeError:
            what = ", ".join(type(x).__name__ for x in leaves if not _is_input(x))
            hint = "tensors and numbers; texts, flags and functions are constants"
            raise ArgumentError("a script cannot take this argument", given=what, hint=hint) from None
        if found is None:
            found = _read(self.script_of, values, structure, self._execute)
            if serves_again(found.graph):
                self.cache[key] = found
        return found, [v for v in values if _is_input(v)]


def _is_input(x: Any) -> bool:
    """Whether an argument goes into the graph; a flag does not, it is taken at once."""
    return is_numeric(x) and not isinstance(x, bool)


def _value(x: Any) -> Any:
    return x if isinstance(x, Tensor) or is_weak(x) else wrap(np.asarray(operand(_ARGUMENT, x)))


def _kind(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.shape, x.dtype, is_soft(x)
    return type(x) if _is_input(x) else (type(x), x)


def _owned(out: Any, arrays: list[Any]) -> Any:
    """A result as a tensor; a copy where it is a constant of the graph or may be memory of an input."""
    if not isinstance(out, Tensor):
        return wrap(np.array(out))
    if type(out) is not Tensor or out.node is not None:
        return out
    shared = not out.value.flags.writeable or any(np.may_share_memory(out.value, a) for a in arrays)
    return wrap(np.array(out.value)) if shared else out


def _read(f: FunctionType, values: list[Any], structure: tree.Structure, execute: Executor) -> Made:
    """Read a function for arguments of these kinds."""
    reader = Reader()
    root = reader.trace
    try:
        with using(transforms=STATE.get().transforms + 1), drawing(root):
            own = [root.argument(x, weak=is_soft(x)) if _is_input(x) else x for x in values]
            args, kwargs = tree.unflatten(structure, own)
            outs, out_structure = tree.flatten(reader.inlined(f, args, kwargs))
        if not outs:
            source = source_of(f)
            raise source.refused(source.tree, f"{source.name} gives nothing back", "return a tensor")
        outputs = [root.atom(o, "the result of a script") for o in outs]
    finally:
        root.alive = False
    inputs = [t.extra for x, t in zip(values, own, strict=True) if _is_input(x)]
    part = cut(root, inputs, outputs, whole=True)
    outside = part.inputs[len(part.inputs) - len(part.captured) :]
    graph = Graph((*inputs, *outside), part.equations, part.outputs, part.captured)
    return Made(graph, execute(graph), out_structure)


@overload
def script(f: Any, *, executor: str = "interpreted") -> Script: ...
@overload
def script(*, executor: str) -> Callable[[Any], Script]: ...
def script(f: Any = None, *, executor: str = "interpreted") -> Script | Callable[[Any], Script]:
    """A function that is compiled from its source to a Graph, for each kind of arguments once.

    An `if` on a value becomes a `cond`, `while` a `while_loop`, `for i in range(n)` a `scan` or a `while_loop`; an `if`
    on plain Python values is taken at once, and so is `assert`. Functions of yours that it calls are read as well.

    Tensors, arrays and numbers among the arguments go into the graph; defaults, flags and texts are constants, as are
    numbers and arrays from outside. Tensors from outside are inputs, so that later changes to them are seen.
    `x += y` makes a new value.

    Args:
        f: the function; without it, as in `@lab.script(executor="compiled")`, what takes it.
        executor: what runs the graph, as of `lab.jit`: "interpreted", "compiled" or "parallel".

    Raises:
        ArgumentError: an executor of another name.
        ScriptError: the source cannot be found, or says what no graph can; the text names the line.

    Example:
        >>> import lab
        >>> @lab.script
        ... def clipped(x):
        ...     if x > 1.0:
        ...         return 1.0 + 0.0 * x
        ...     return x
        >>> clipped(3.0), clipped(0.5)
        (tensor(1.), tensor(0.5))
        >>> clipped.graph(3.0).equations[-1].op
        <op cond(*xs, then, otherwise)>
    """
    execute = executor_of(executor)
    if f is None:
        return functools.partial(script, executor=executor)
    if isinstance(f, Script):
        return f if executor == "interpreted" else Script(f.script_of, execute)
    if not isinstance(f, FunctionType):
        hint = "@lab.script above a def" if callable(f) else "lab.script(f) with f itself, not f(x)"
        raise ScriptError("script needs a function of Python", given=repr(f)[:60], hint=hint)
    return Script(f, execute)


_ARGUMENT: Any = Place("a script")
