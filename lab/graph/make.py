"""Tracing: run a function on values that have only a shape and a dtype, and write down each op as an equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from lab import tree
from lab.autograd.interpreter import Interpreter, Tracer, operand
from lab.autograd.observe import _user_frame
from lab.autograd.tensor import Tensor, wrap
from lab.config import STATE, using
from lab.errors import ConcretizationError
from lab.graph.ir import Atom, Equation, Graph, Literal, Var
from lab.ops.primitive import Op
from lab.shapes import Spec


class Trace(Interpreter):
    """One trace: `Tracer.value` is a Spec, `Tracer.extra` the variable."""

    word: ClassVar[str] = "jit"

    def __init__(self) -> None:
        super().__init__()
        self.equations: list[Equation] = []
        self.captured: dict[int, tuple[Var, Any]] = {}
        self.n_vars = 0

    def new(self, spec: Spec) -> Tracer:
        """A tracer with a fresh variable."""
        self.n_vars += 1
        return Tracer(self, spec, Var(self.n_vars - 1, spec))

    def concrete(self, tracer: Tracer) -> Any:
        raise ConcretizationError(
            "the value of a traced variable was asked for while the graph is being made",
            given=f"a value of shape {tracer.shape} and dtype {tracer.dtype}, at {_here()}",
            hint="if, while, float() and print need numbers: use lab.where, or move it out of the traced function",
        )

    def apply(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        inputs = tuple(self._atom(op, a) for a in args)
        specs = [a.spec if isinstance(a, Var) else _spec_of(a.value) for a in inputs]
        out = self.new(op.shape(*specs, **params))
        self.equations.append(Equation(op, inputs, out.extra, dict(params), _here()))
        return out

    def _atom(self, op: Op, a: Any) -> Atom:
        if isinstance(a, Tracer) and a.interp is self:
            var: Var = a.extra
            return var
        if isinstance(a, Tensor):  # from outside: its value may change between calls, so it becomes an input
            if id(a) not in self.captured:
                self.n_vars += 1
                self.captured[id(a)] = Var(self.n_vars - 1, Spec(tuple(a.shape), np.dtype(a.dtype))), a
            return self.captured[id(a)][0]
        if isinstance(a, bool | int | float):
            return Literal(a)
        array = np.array(operand(op, a))
        array.flags.writeable = False
        return Literal(array)


def _spec_of(value: Any) -> Any:
    return Spec(value.shape, value.dtype) if isinstance(value, np.ndarray) else value


def _here() -> str:
    frame = _user_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def trace(f: Callable[..., Any], args: Sequence[Any]) -> tuple[Graph, tree.Structure]:
    """The graph of a function at arguments of these shapes, and the structure of what it returns."""
    flat, structure = tree.flatten(list(args))
    values = [x if isinstance(x, Tensor) else wrap(np.asarray(x)) for x in flat]
    interp = Trace()
    tracers = [interp.new(Spec(tuple(v.shape), np.dtype(v.dtype))) for v in values]
    try:
        with using(transforms=STATE.get().transforms + 1):
            out = f(*tree.unflatten(structure, tracers))
        outs, out_structure = tree.flatten(out)
        outputs = tuple(interp._atom(_RETURN, o) for o in outs)
    finally:
        interp.alive = False
    extra = list(interp.captured.values())
    inputs = tuple(t.extra for t in tracers) + tuple(var for var, _ in extra)
    return Graph(inputs, tuple(interp.equations), outputs, tuple(value for _, value in extra)), out_structure


class _Return:
    name = "the traced function's result"


_RETURN: Any = _Return()


def make_graph(f: Callable[..., Any]) -> Callable[..., Graph]:
    """A function that, instead of running f, returns its graph for arguments of these shapes and dtypes.

    Raises:
        ConcretizationError: f asks for the value of a traced variable (if, while, float).

    Example:
        >>> import lab
        >>> print(lab.make_graph(lambda x: lab.tanh(x) * 2.0)(1.0))
        graph(a:f64[]) { let
            b:f64[] = tanh(a)
            c:f64[] = multiply(b, 2)
          in (c) }
    """

    def make(*args: Any) -> Graph:
        return trace(f, args)[0]

    return make
