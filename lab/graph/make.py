"""Tracing: run a function on values that have only a shape and a dtype, and write down each op as an equation."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar

import numpy as np

from lab import tree
from lab.autograd.interpreter import INSIDE, Interpreter, Tracer
from lab.autograd.observe import user_frame
from lab.autograd.plain import operand
from lab.autograd.tape import Node, next_id
from lab.autograd.tensor import Tensor
from lab.config import STATE, using
from lab.errors import ArgumentError, ConcretizationError, DTypeError
from lab.events.cells import told_place
from lab.graph.ir import Atom, Equation, Graph, Literal, Var
from lab.graph.keys import Draw, Region, drawing
from lab.ops import stop_gradient
from lab.ops.primitive import Op
from lab.ops.random import DRAWING, Drawing, moves, new_key
from lab.shapes import Spec

TRACING: ContextVar[bool] = ContextVar("lab_tracing", default=False)
"""Whether a function runs to be traced: values that it closes over may then be hidden, whatever its arguments are."""

ORIGIN: ContextVar[str] = ContextVar("lab_origin", default="")
"""Where the equation comes from that is run again to be traced again: what is written for it comes from there, too."""


class Trace(Interpreter):
    """One trace: `Tracer.value` is a Spec, `Tracer.extra` the variable.

    Attributes:
        born: nodes of the tape with a smaller number were there before it.
    """

    word: ClassVar[str] = "jit"
    known: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self.equations: list[Equation] = []
        self.captured: dict[int, tuple[Var, Any]] = {}
        self.constants: dict[int, tuple[Any, Literal]] = {}
        self.n_vars = 0
        self.born = next_id()

    def new(self, spec: Spec, *, weak: bool = False) -> Tracer:
        """A tracer with a fresh variable."""
        self.n_vars += 1
        return Tracer(self, spec, Var(self.n_vars - 1, spec, weak))

    def argument(self, x: Any, *, weak: bool) -> Tracer:
        """A tracer for an argument of this kind."""
        value = x if isinstance(x, Tensor) else operand(_ARGUMENT, x)
        dtype = np.dtype(value.dtype) if hasattr(value, "dtype") else np.asarray(value).dtype
        if dtype.kind == "O":
            raise DTypeError(
                "no dtype holds this whole number", given=repr(x)[:60], hint="a float, if its last digits do not matter"
            )
        return self.new(Spec(tuple(np.shape(value)), dtype), weak=weak)

    def take(self, rng: Any) -> Any:
        """A key that the traced function draws: an input, as it is drawn when the graph runs; a seed's is known now."""
        if not moves(rng):
            return new_key(rng)
        draw, key = Draw(rng, self.here()), self.new(Draw.spec)
        self.captured[id(draw)] = key.extra, draw
        return key

    def is_weak(self, tracer: Tracer) -> bool:
        return bool(tracer.extra.weak)

    def concrete(self, tracer: Tracer) -> Any:
        raise ConcretizationError(
            "the value of a traced variable was asked for while the graph is being made",
            given=f"a value of shape {tracer.shape} and dtype {tracer.dtype}, at {told_place(_here())}",
            hint="lab.cond or lab.where for if, lab.while_loop or lab.scan for loops, or lab.script(f) for both",
        )

    def apply(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        inputs = tuple(self._atom(op, a) for a in args)
        specs = [operand_spec(op, a) for a in inputs]
        made: Any = op.shape(*specs, **params)
        outs = self._write(op, inputs, made if op.several else (made,), params)
        if STATE.get().frozen >= self.level and (op.several or any(op.rules)):
            outs = tuple(map(self._stopped, outs))
        return outs if op.several else outs[0]

    def _stopped(self, out: Tracer) -> Tracer:
        """`no_grad` inside the traced function is part of what it means, so it is written down."""
        return self._write(stop_gradient, (out.extra,), (out.value,), {})[0] if out.dtype.kind == "f" else out

    def _write(
        self, op: Op, inputs: tuple[Atom, ...], specs: Sequence[Spec], params: dict[str, Any]
    ) -> tuple[Tracer, ...]:
        outs = tuple(map(self.new, specs))
        params = {k: np.dtype(v).name if isinstance(v, np.dtype | type) else v for k, v in params.items()}
        self.equations.append(Equation(op, inputs, tuple(o.extra for o in outs), params, self.here()))
        return outs

    def here(self) -> str:
        """"file:line" of the code that applies an op now."""
        return _here()

    def atom(self, a: Any, where: str) -> Atom:
        """What stands in the graph for a value; an error says where it was met."""
        return self._atom(Place(where), a)

    def _atom(self, op: Any, a: Any) -> Atom:
        if isinstance(a, Tracer) and a.interp is self:
            var: Var = a.extra
            return var
        if isinstance(a, Tensor):  # from outside: its value may change between calls, so it becomes an input
            if id(a) not in self.captured:
                self.n_vars += 1
                spec = Spec(tuple(a.shape), np.dtype(a.dtype))
                self.captured[id(a)] = Var(self.n_vars - 1, spec, weak=isinstance(a, Tracer) and a.weak), a
            return self.captured[id(a)][0]
        if isinstance(a, bool | int | float):
            return Literal(a)
        array = np.array(operand(op, a))
        array.flags.writeable = False
        known = self.constants.get(id(a))
        if known is not None and known[1].value.dtype == array.dtype and np.array_equal(known[1].value, array):
            return known[1]  # read again, and not changed meanwhile: one constant, not two
        made = Literal(array)
        self.constants[id(a)] = a, made
        return made


def is_weak(x: Any) -> bool:
    """Whether x is a Python number, whose dtype gives way to that of what it meets."""
    return type(x) is float or type(x) is int


def operand_spec(op: Op, a: Atom) -> Any:
    """What a shape rule is given: a Spec, or for an elementwise op a number for what is one."""
    if isinstance(a, Var):
        return a.spec.dtype.type(1).item() if a.weak and op.elementwise else a.spec
    return Spec(a.value.shape, a.value.dtype) if isinstance(a.value, np.ndarray) else a.value


def _here() -> str:
    if again := ORIGIN.get():
        return again
    frame = user_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def trace(
    f: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    weak: bool,
    hides: bool = True,
    region: bool = False,
    runs: bool = True,
) -> tuple[Graph, tree.Structure]:
    """The graph of a function at arguments of these shapes, and the structure of what it returns.

    Args:
        weak: whether Python numbers among the arguments keep giving way to other dtypes, or count as arrays.
        hides: whether branches and loops inside are written down; not where they turn on values that are known.
        region: f is a branch or a turn: what it does with values from outside stands in its graph, too.
        runs: whether that branch or turn will ever run; where not, what it draws does not matter.
    """
    flat, structure = tree.flatten((tuple(args), dict(kwargs)))
    interp = Trace()
    tracers = [interp.argument(x, weak=weak and is_weak(x)) for x in flat]
    token = TRACING.set(TRACING.get() or hides)
    outside = INSIDE.set(interp if region else INSIDE.get())
    keys: Drawing | None = interp if hides else DRAWING.get()
    try:
        state = STATE.get()
        staging = using(transforms=state.transforms + 1, staging=interp if hides else state.staging)
        with staging, drawing(Region(runs=runs) if region else keys):
            positional, named = tree.unflatten(structure, tracers)
            out = f(*positional, **named)
        outs, out_structure = tree.flatten(out)
        outputs = tuple(interp._atom(_RETURN, o) for o in outs)
    finally:
        TRACING.reset(token)
        INSIDE.reset(outside)
        interp.alive = False
    extra = list(interp.captured.values())
    inputs = tuple(t.extra for t in tracers) + tuple(var for var, _ in extra)
    return Graph(inputs, tuple(interp.equations), outputs, tuple(value for _, value in extra)), out_structure


def serves_again(graph: Graph) -> bool:
    """Whether a graph may be kept for later calls, as far as what it captured tells.

    Not if it captured a value of an enclosing transform: the next call would use a dead tracer. Nor if it captured what
    the traced function made of leaves of its own, which nobody but the graph has; nor if it draws keys of a generator
    that the function made: the next call makes its own. What it makes of parameters from
    outside (`w.T`) stands in the graph; what is made of tensors without a gradient alone is a constant, as NumPy's
    arrays are.

    Example:
        >>> import lab
        >>> def own(x):
        ...     return x @ (lab.tensor([[1.0], [2.0]], requires_grad=True) * 2.0)
        >>> w = lab.tensor([[1.0, 2.0]], requires_grad=True)
        >>> [serves_again(trace(f, [np.ones((1, 2))], {}, weak=False)[0]) for f in (lambda x: x @ w.T, own)]
        [True, False]
    """
    captured = graph.captured
    if any(isinstance(c, Tracer) for c in captured):
        return False
    if _draws_alone(captured):
        return False
    return all(_owners(captured, i) > _ONE for i in range(len(captured)) if isinstance(captured[i].node, Node))


def _draws_alone(captured: tuple[Any, ...]) -> bool:
    """Whether it draws from a generator that nobody else has."""
    draws = [c for c in captured if type(c) is Draw and c.rng is not None]
    counts = Counter(id(c.rng) for c in draws)
    for collected in (False, True):  # what the function left behind may still hold it in a circle
        if draws and collected:
            gc.collect()
        if any(_owners((c.rng,), 0) <= counts[id(c.rng)] + _ONE for c in draws):
            return True
    return False


def _owners(values: tuple[Any, ...], i: int) -> int:
    return sys.getrefcount(values[i])


_ONE = _owners((object(),), 0)
"""What Python counts for an object that one tuple holds, while it is asked."""


def trace_specs(f: Callable[..., Any], specs: Sequence[Spec]) -> Graph:
    """The graph of a function of arrays of these shapes and dtypes, which uses nothing else.

    Example:
        >>> import lab
        >>> trace_specs(lab.tanh, [Spec((2,), np.dtype("float32"))])
        graph(a:f32[2]) { let
            b:f32[2] = tanh(a)
          in (b) }
    """
    ones = [np.broadcast_to(np.ones((), spec.dtype), spec.shape) for spec in specs]
    return trace(f, ones, {}, weak=False)[0]


class Place:
    """Where a value that is no number was met, in place of the op that errors name."""

    elementwise = False

    def __init__(self, name: str) -> None:
        self.name = name


_RETURN: Any = Place("the result of a traced function")
_ARGUMENT: Any = Place("a traced function")


def make_graph(f: Callable[..., Any]) -> Callable[..., Graph]:
    """A function that, instead of running f, returns its graph for arguments of these shapes and dtypes.

    Tensors that f uses from outside are the last inputs (`Graph.captured`); numbers count as arrays. A random key that
    f draws is such an input, too: nothing is drawn now, and what runs the graph draws it.

    Raises:
        ConcretizationError: f asks for the value of a traced variable (if, while, float).

    Example:
        >>> import lab
        >>> print(lab.make_graph(lambda x: lab.tanh(x) * 2.0)(1.0))
        graph(a:f64[]) { let
            b:f64[] = tanh(a)
            c:f64[] = multiply(b, 2.0)
          in (c) }
    """
    if not callable(f):
        raise ArgumentError("make_graph needs a function", given=repr(f)[:60], hint="lab.make_graph(f)(x), f itself")

    def make(*args: Any, **kwargs: Any) -> Graph:
        return trace(f, args, kwargs, weak=False)[0]

    return make
