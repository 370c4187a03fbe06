"""Numbers of Python while a graph is made: once a branch or a loop has chosen them, they are values like any other.

In Python `x * i` keeps the dtype of x for every number i. A value of a graph has a dtype of its own; so the trace knows
which values stand for numbers ("soft"), and casts them to the dtype of what they meet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from lab.autograd.interpreter import Tracer
from lab.autograd.tensor import Tensor, _concrete
from lab.errors import ConcretizationError, LabError
from lab.graph.make import Trace, is_weak
from lab.ops import cast
from lab.ops.primitive import Op
from lab.shapes import Spec

ARITHMETIC = frozenset({"absolute", "add", "divide", "multiply", "negative", "power", "subtract"})
"""What Python does with numbers itself: the result is a number again."""


class ScriptTrace(Trace):
    """The trace of a script, of one of its branches, or of a turn of one of its loops.

    Attributes:
        soft: numbers of the variables that stand for numbers of Python.
        lifted: what came from outside, as values of this trace; with what it was, so that no other takes its id.
    """

    word: ClassVar[str] = "lab.script"

    def __init__(self, place: Callable[[], tuple[str, str]]) -> None:
        super().__init__()
        self.place = place
        self.soft: set[int] = set()
        self.lifted: dict[int, tuple[Any, Tracer]] = {}

    def here(self) -> str:
        return self.place()[0]

    def concrete(self, tracer: Tracer) -> Any:
        where, line = self.place()
        raise ConcretizationError(
            f"a number is needed that is known only when the graph runs, at {where}",
            given=line,
            hint="if, while and range take it as it is; what must be fixed is a default or a constant from outside",
        )

    def apply(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        if not op.elementwise:
            return super().apply(op, args, params)
        soft = [is_soft(a) for a in args]
        if all(soft):
            out = super().apply(op, args, params)
            return self.soften(out) if op.name in ARITHMETIC else out
        if any(s and isinstance(a, Tracer) for s, a in zip(soft, args, strict=True)):
            dtype = met(args)
            args = [self.cast(a, dtype) if s and isinstance(a, Tracer) else a for s, a in zip(soft, args, strict=True)]
        return super().apply(op, args, params)

    def cast(self, x: Any, dtype: np.dtype[Any]) -> Any:
        """A value of this trace in another dtype."""
        return super().apply(cast, (x,), {"dtype": dtype})

    def soften(self, tracer: Any) -> Any:
        """Let a value of this trace stand for a number of Python."""
        self.soft.add(tracer.extra.number)
        return tracer

    def lift(self, x: Any) -> Tracer:
        """A tensor from outside as a value of this trace."""
        if id(x) not in self.lifted:
            var: Any = self.atom(x, "a script")
            made = Tracer(self, var.spec, var)
            self.lifted[id(x)] = x, self.soften(made) if is_soft(x) else made
        return self.lifted[id(x)][1]


def is_soft(x: Any) -> bool:
    """Whether a value is a number of Python, or stands for one."""
    if isinstance(x, Tracer):
        return x.weak or (isinstance(x.interp, ScriptTrace) and x.extra.number in x.interp.soft)
    return is_weak(x)


def met(values: Sequence[Any]) -> np.dtype[Any]:
    """The dtype of what these values make together.

    Example:
        >>> met([np.zeros(2, "float32"), 1.0]), met([1, 2.0]), met([np.zeros(2, "int32"), 1.0])
        (dtype('float32'), dtype('float64'), dtype('float64'))
    """
    hard = [spec(x).dtype for x in values if not is_soft(x)]
    soft = [0.0 if spec(x).dtype.kind == "f" else 0 for x in values if is_soft(x)]
    return np.result_type(*hard, *soft) if hard else np.result_type(*map(np.asarray, soft))


def spec(x: Any) -> Spec:
    """Shape and dtype of a tensor, an array or a number."""
    array = x if hasattr(x, "dtype") else np.asarray(x)
    return Spec(tuple(array.shape), np.dtype(array.dtype))


def is_numeric(x: Any) -> bool:
    """Whether a value can go through a graph."""
    if isinstance(x, Tensor | bool | int | float):
        return True
    return isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "fiub"


def is_unknown(x: Any) -> bool:
    """Whether a value is known only when the graph runs."""
    value = x
    while isinstance(value, Tracer):
        if isinstance(value.interp, Trace):
            return True
        value = value.value
    if value is x:
        return False
    try:  # a batch axis hides its values as well
        _concrete(x)
    except LabError:
        return True
    return False
