"""Define, then run: a graph that is written down in a `with` block, before any number is there.

As in the frameworks of the second generation: placeholders stand for numbers that come later, variables for numbers
that stay, and operations make values that a Session computes. Underneath is an ordinary trace, open during the block.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from contextvars import ContextVar
from types import TracebackType
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from lab import tree
from lab.autograd.display import mimebundle
from lab.autograd.interpreter import Tracer
from lab.autograd.plain import operand
from lab.autograd.tensor import Tensor
from lab.checks import whole
from lab.config import STATE, using
from lab.errors import ArgumentError, ConcretizationError, DTypeError, GraphError, ShapeError, TracerLeakError
from lab.events.cells import told_place
from lab.graph.cutting import cut
from lab.graph.ir import Atom, Graph, Var
from lab.graph.keys import drawing
from lab.graph.make import Place, Trace
from lab.shapes import Spec

_CURRENT: ContextVar[Building | None] = ContextVar("lab_building", default=None)


class OpenTrace(Trace):
    """The trace of a block; it speaks of sessions and not of functions."""

    word: ClassVar[str] = "lab.Graph"

    def concrete(self, tracer: Tracer) -> Any:
        raise ConcretizationError(
            "a value of a graph has no number before it is run",
            given=f"a value of shape {tracer.shape} and dtype {tracer.dtype}, at {told_place(self.here())}",
            hint="run it in a Session: s.run(value, feed={...}); for a choice use lab.where",
        )

    def leaked(self, tracer: Tracer, where: str) -> TracerLeakError:
        return TracerLeakError(
            "the block of this graph has ended, and nothing more is written into it",
            given=f"a value of shape {tracer.shape} and dtype {tracer.dtype} in {where}",
            hint="compute it inside `with lab.Graph() as g:`; outside only a Session runs it",
        )


class Assign:
    """An assignment that a Session does when it is run: `variable` gets `value`."""

    __slots__ = ("value", "variable")

    def __init__(self, variable: Tracer, value: Atom) -> None:
        self.variable, self.value = variable, value

    def __repr__(self) -> str:
        return f"<assignment to a variable of {self.variable.dtype} {self.variable.shape}>"


class Building:
    """A graph between its first line and its last: what `with lab.Graph() as g:` gives.

    `lab.Graph` itself is a value that never changes, so that it can be the result of every pass; this is the sheet of
    paper on which such a value is written. `g.graph(fetches)` is the value.

    Attributes:
        trace: the open trace.
        placeholders, variables: by name.
        starts: the first value of each variable.

    Example:
        >>> import lab
        >>> with lab.Graph() as g:
        ...     x = lab.placeholder((), "float64", name="x")
        ...     y = lab.tanh(x) * 2.0
        >>> isinstance(g.graph(y), lab.Graph)
        True
        >>> with lab.Session(g) as s:
        ...     s.run(y, feed={x: 0.0})
        tensor(0.)
    """

    def __init__(self) -> None:
        self.trace = OpenTrace()
        self.placeholders: dict[str, Tracer] = {}
        self.variables: dict[str, Tracer] = {}
        self.starts: dict[str, Any] = {}
        self._state: ExitStack | None = None

    def __enter__(self) -> Self:
        if self._state is not None or _CURRENT.get() is not None:
            raise GraphError(
                "one graph is built in one block, and one after the other",
                given="a block inside another" if _CURRENT.get() else "a second block of the same graph",
                hint="with lab.Graph() as g: ..., a new one each time",
            )
        self._state = ExitStack()
        self._state.enter_context(using(transforms=STATE.get().transforms + 1))
        self._state.enter_context(drawing(self.trace))
        token = _CURRENT.set(self)
        self._state.callback(lambda: _CURRENT.reset(token))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.trace.alive = False
        if self._state is not None:
            self._state.close()

    @property
    def inputs(self) -> tuple[Var, ...]:
        """Placeholders and variables, in the order in which they were made."""
        both = [t.extra for t in (*self.placeholders.values(), *self.variables.values())]
        return tuple(sorted(both, key=lambda v: v.number))

    def atom(self, fetch: Any) -> Atom:
        """What stands in the graph for something that can be fetched.

        Raises:
            ArgumentError: it is neither a value nor an assignment of this graph.
        """
        if isinstance(fetch, Assign) and fetch.variable.interp is self.trace:
            return fetch.value
        if isinstance(fetch, Tracer) and fetch.interp is self.trace:
            found: Var = fetch.extra
            return found
        raise ArgumentError(
            "only values and assignments of this graph can be fetched",
            given=repr(fetch)[:60],
            hint="what was computed inside its block, one or several: s.run([loss, train])",
        )

    def graph(self, fetches: Any = None) -> Graph:
        """The Graph of what these fetches need; of all that nothing else uses, without any.

        Example:
            >>> import lab
            >>> with lab.Graph() as g:
            ...     x = lab.placeholder(3, "float32", name="x")
            ...     y = lab.sum(x * x)
            >>> g.graph(y)
            graph(a:f32[3]) { let
                b:f32[3] = multiply(a, a)
                c:f32[] = sum(b, axis=None, keepdims=False)
              in (c) }
        """
        return cut(self.trace, self.inputs, self._ends() if fetches is None else self._atoms(fetches))

    def _atoms(self, fetches: Any) -> list[Atom]:
        return [self.atom(f) for f in tree.flatten(fetches)[0]]

    def _ends(self) -> list[Var]:
        used = {a for e in self.trace.equations for a in e.inputs if isinstance(a, Var)}
        return [v for e in self.trace.equations for v in e.outs if v not in used]

    def __repr__(self) -> str:
        words = [f"placeholder {name} = {t.extra}" for name, t in self.placeholders.items()]
        words += [f"variable {name} = {t.extra}" for name, t in self.variables.items()]
        return "\n".join([", ".join(words), str(self.graph())] if words else [str(self.graph())])

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        return mimebundle(repr(self), f"Graph in building · {len(self.trace.equations)} equations", include, exclude)

    def named(self, name: str, kind: str) -> str:
        """The name if nothing has it, or the first free one of this kind."""
        taken = {*self.placeholders, *self.variables}
        if name in taken:
            raise ArgumentError(
                "a name of a graph stands for one thing", given=f"{name!r} twice", hint="another name, or none"
            )
        return name or next(n for n in (f"{kind}{i}" for i in range(len(taken) + 1)) if n not in taken)


def current(what: str) -> Building:
    """The graph whose block is open.

    Raises:
        GraphError: none is.
    """
    found = _CURRENT.get()
    if found is None:
        hint = f"inside a block: with lab.Graph() as g: {what}(...)"
        raise GraphError(f"{what} belongs to a graph", given="no open graph", hint=hint)
    return found


def placeholder(
    shape: int | Sequence[int | None] | None, dtype: npt.DTypeLike = "float32", *, name: str = ""
) -> Tracer:
    """A value of the open graph that is given when it is run: `s.run(..., feed={x: batch})`.

    Shapes are fixed, the batch's size as well: every shape of a Graph is known before it runs.

    Raises:
        GraphError: no `with lab.Graph()` block is open.
        ShapeError: a length that is not known, or no length.

    Example:
        >>> import lab
        >>> with lab.Graph() as g:
        ...     x = lab.placeholder((4, 3), "float32", name="x")
        >>> x.shape
        (4, 3)
    """
    g = current("lab.placeholder")
    lengths = (shape,) if isinstance(shape, int | np.integer) else shape
    if lengths is None or any(n is None for n in lengths):
        raise ShapeError(
            "the shape of a placeholder is known when the graph is built",
            given=f"{name or 'a placeholder'} of shape {shape}",
            hint="one batch size, as (32, 3); build a second graph for another",
        )
    sizes = tuple(whole("a length of a placeholder", n, least=0, error=ShapeError) for n in lengths)
    name = g.named(name, "placeholder")
    g.placeholders[name] = g.trace.new(Spec(sizes, _dtype(dtype, name)))
    return g.placeholders[name]


def _dtype(dtype: npt.DTypeLike, name: str) -> np.dtype[Any]:
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = np.dtype(object)
    if found.kind not in "fiub":
        raise DTypeError(f"{name} holds numbers", given=repr(dtype)[:60], hint='a dtype of NumPy, as "float32"')
    return found


def variable(value: npt.ArrayLike | Tensor, *, name: str = "") -> Tracer:
    """A value of the open graph that every Session keeps from run to run, beginning with a copy of this one.

    Raises:
        GraphError: no `with lab.Graph()` block is open.
        UnsupportedError: the value is not made of numbers.

    Example:
        >>> import lab
        >>> with lab.Graph() as g:
        ...     w = lab.variable([1.0, 2.0], name="w")
        ...     double = lab.assign(w, w * 2.0)
        >>> s = lab.Session(g)
        >>> s.run(double), s.run(w)
        (tensor([2., 4.]), tensor([2., 4.]))
    """
    g = current("lab.variable")
    start = np.array(value.numpy() if isinstance(value, Tensor) else operand(_VARIABLE, value))
    name = g.named(name, "variable")
    g.starts[name], g.variables[name] = start, g.trace.new(Spec(start.shape, start.dtype))
    return g.variables[name]


def assign(variable: Tracer, value: Any) -> Assign:
    """An assignment, done when a Session runs it: after all that the same run fetches, whose result is the new value.

    Raises:
        ArgumentError: what shall be written is no variable of the open graph.
        ShapeError, DTypeError: the value is not like the variable.

    Example:
        >>> import lab
        >>> with lab.Graph() as g:
        ...     n = lab.variable(0, name="n")
        ...     count = lab.assign(n, n + 1)
        >>> s = lab.Session(g)
        >>> s.run([n, count]), s.run(n)
        ([tensor(0), tensor(1)], tensor(1))
    """
    g = current("lab.assign")
    name = next((n for n, v in g.variables.items() if v is variable), None)
    if name is None:
        raise ArgumentError(
            "only a variable of the open graph can be assigned to",
            given=repr(variable)[:60],
            hint='w = lab.variable(array, name="w"), then lab.assign(w, ...)',
        )
    weak = isinstance(value, bool | int | float | list | tuple)
    atom = g.trace.atom(np.asarray(value, variable.dtype) if weak else value, "lab.assign")
    problem, hint = f"{name} keeps its shape and dtype", "reshape or cast the value, as value.astype(w.dtype)"
    given = f"{atom.spec.dtype} {atom.spec.shape} for {variable.dtype} {variable.shape}"
    if atom.spec.shape != variable.shape:
        raise ShapeError(problem, given=given, hint=hint)
    if atom.spec.dtype != variable.dtype:
        raise DTypeError(problem, given=given, hint=hint)
    return Assign(variable, atom)


_VARIABLE: Any = Place("lab.variable")
