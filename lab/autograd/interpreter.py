"""The one interpreter switch: the arguments decide what applying an op means.

A transform wraps its inputs in Tracers that carry its level. The highest level among the arguments applies the op,
peels its own layer, and calls the op again on what is below. There is no stack: perturbations cannot be confused.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from itertools import count
from typing import Any, ClassVar

import numpy as np

from lab.autograd.plain import apply_plain, operand
from lab.autograd.tensor import Tensor, _concrete, entry
from lab.config import STATE
from lab.errors import TracerLeakError, UnsupportedError
from lab.ops.members import MEMBERS
from lab.ops.primitive import Op

_levels = count(1)  # one counter for all threads: drawing from it is atomic


def newest_level() -> int:
    """A level above every transform that was started so far, and below every later one."""
    return next(_levels)


class Interpreter:
    """What one transform does with ops. Subclasses define `apply`.

    Attributes:
        level: position in the nesting, from a global counter: younger transforms are above older ones.
        alive: False once the transform ended; its tracers then refuse to be used.
        quiet: it tells listeners nothing: what runs under it is only written into a graph, which tells when it runs.
        differentiates: a number read out of its tracers would be a constant where a derivative is wanted.
    """

    word: ClassVar[str] = "transform"
    differentiates: ClassVar[bool] = False

    def __init__(self) -> None:
        self.level = next(_levels)
        self.alive = True
        self.quiet = False

    @property
    def ended(self) -> bool:
        """Whether its tracers must not be used: the transform is over, and nothing is run again as if it were not."""
        return not self.alive and not STATE.get().revived

    def apply(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Peel this level from the arguments, apply the op below, wrap the result."""
        raise TypeError(f"{type(self).__name__} does not say what applying an op means")

    def concrete(self, tracer: Tracer) -> Any:
        """The value one layer below, for code that needs numbers; raises where they are not known."""
        return tracer.value

    def read(self, tracer: Tracer, word: str) -> None:
        """Refuse to hand the value to code outside the lab, through which no gradient comes back.

        Not where nothing would be lost: after the end, under `no_grad`, or where the value is not known anyway.

        Raises:
            UnsupportedError: so it is.
        """
        if not (self.differentiates and self.alive and STATE.get().frozen < self.level):
            return
        _concrete(tracer)  # one that is traced or mapped below says so
        raise UnsupportedError(
            f"{word} would lose the gradient of a value inside {self.word}",
            given=repr(tracer),
            hint="use the lab's functions (lab.sin for math.sin), or x.detach() if you mean it",
        )

    def is_weak(self, tracer: Tracer) -> bool:
        """Whether it stands for a Python number, whose dtype gives way."""
        return False

    def shape_of(self, tracer: Tracer) -> tuple[int, ...]:
        """Shape as the traced function sees it."""
        return tuple(tracer.value.shape)

    def leaked(self, tracer: Tracer, where: str) -> TracerLeakError:
        """The error for one of its values that outlived it."""
        return TracerLeakError(
            "a value from inside a finished transform was used after its end",
            given=f"a value of {self.word} in {where}",
            hint="return it from the function instead of storing it outside",
        )


class Tracer(Tensor):
    """A value above the plain level.

    Attributes:
        interp: the transform that it belongs to.
        value: the value one layer below: an array, a Tensor, a Tracer of a lower level (a Spec while tracing a graph).
        extra: what the transform knows of it: a tape node, a tangent, a variable.
    """

    __slots__ = ("extra", "interp")
    interp: Interpreter
    extra: Any

    def __init__(self, interp: Interpreter, value: Any, extra: Any = None) -> None:
        self.value, self.node = value, None
        self.interp, self.extra = interp, extra

    @property
    def shape(self) -> tuple[int, ...]:
        return self.interp.shape_of(self)

    @property
    def dtype(self) -> Any:
        return self.value.dtype

    @property
    def weak(self) -> bool:
        """Whether it stands for a Python number, whose dtype gives way."""
        return self.interp.is_weak(self)

    def numpy(self) -> Any:
        self.interp.read(self, ".numpy()")
        return super().numpy()

    def item(self) -> Any:
        self.interp.read(self, ".item()")
        return super().item()

    def __float__(self) -> float:
        self.interp.read(self, "float()")
        return float(entry(self))

    def __repr__(self) -> str:
        return f"<value inside {self.interp.word}: {self.dtype} {self.shape}>"


FRAMES: ContextVar[tuple[tuple[str, Interpreter], ...]] = ContextVar("lab_axis_frames", default=())
"""The active `vmap(axis_name=...)` axes, outermost first."""


INSIDE: ContextVar[Interpreter | None] = ContextVar("lab_inside", default=None)
"""The trace of the branch or the turn whose code runs now: what that code does with values from outside happens inside,
too, or a branch that is not taken would be computed all the same.
"""

_NUMBERS = frozenset({Tensor, float, int, bool})


def bind(op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Apply an op where some argument is a Tracer, or the op meets the members of a named axis.

    Raises:
        TracerLeakError: a tracer of a transform that has ended.
    """
    top: Interpreter | None = None
    for a in args:
        kind = type(a)
        if kind in _NUMBERS or (kind is np.ndarray and a.dtype.kind in "fiub"):
            continue
        if not isinstance(a, Tracer):  # something that has to be made an array, or refused
            return bind(op, tuple(x if isinstance(x, Tensor) else operand(op, x) for x in args), params)
        if not a.interp.alive and a.interp.ended:
            raise a.interp.leaked(a, op.name)
        if top is None or a.interp.level > top.level:
            top = a.interp
    if top is not None and (inside := INSIDE.get()) is not None and inside.level > top.level:
        top = inside
    if op.collective:
        top = _meeting(params["axis_name"], top)
    if top is None:
        return apply_plain(op, args, params)
    return top.apply(op, args, params)


def _meeting(axis_name: str, top: Interpreter | None) -> Interpreter | None:
    """What applies a collective: its axis counts as an argument; ranks meet when a graph runs, not while it is made."""
    for name, frame in FRAMES.get():
        if name == axis_name and (top is None or frame.level > top.level):
            top = frame
    trace = STATE.get().staging
    if axis_name in MEMBERS.get() and trace is not None and trace.alive and (top is None or trace.level > top.level):
        return trace  # type: ignore[no-any-return]
    return top


def newest(values: Sequence[Any]) -> Interpreter | None:
    """The highest interpreter among some values, None if all are plain: for what is applied, but is no op.

    Raises:
        TracerLeakError: a tracer of a transform that has ended.
    """
    top: Interpreter | None = None
    for a in values:
        if isinstance(a, Tracer):
            if a.interp.ended:
                raise a.interp.leaked(a, "a function")
            if top is None or a.interp.level > top.level:
                top = a.interp
    if top is not None and (inside := INSIDE.get()) is not None and inside.level > top.level:
        return inside
    return top
