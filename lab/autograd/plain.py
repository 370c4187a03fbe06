"""Applying an op at the plain level in general: any operands, no shortcuts.

Whatever is no Tensor becomes an array of numbers or is refused; a Tensor comes out if a Tensor went in, else an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.autograd.observe import observe_op
from lab.autograd.tape import record
from lab.autograd.tensor import Tensor, wrap
from lab.autograd.watching import watched
from lab.config import STATE
from lab.errors import ArgumentError, DTypeError, LabError, ShapeError, UnsupportedError
from lab.events.bus import bus
from lab.ops.primitive import Op
from lab.shapes import Spec


def apply_plain(op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Level 0 in general: Tensors, arrays, numbers and lists in; a Tensor out if a Tensor went in, else an array.

    Raises:
        UnsupportedError: an argument that is no array of numbers.
    """
    arrays = tuple(operand(op, a) for a in args)
    try:
        out = op.forward(*arrays, **params)
    except Exception as why:  # noqa: BLE001 - whatever NumPy says is said again in the lab's words
        raise explain(op, arrays, params, why) from None
    if not any(type(a) is Tensor for a in args):
        return out
    out = np.asarray(out)
    parents = tuple(a.node if type(a) is Tensor else None for a in args)
    if not any(p is not None for p in parents) or not any(op.rules) or out.dtype.kind != "f" or STATE.get().frozen >= 0:
        return wrap(out)
    node = record(op, parents, arrays, out, params)
    if STATE.get().watched and (staged := watched(op, args, params, node)) is not None:
        return staged
    if bus.operations:
        observe_op(op, node, tuple(args), out)
    return wrap(out, node)


def operand(op: Op, x: Any) -> Any:
    """An operand as an array of numbers, or a number.

    Raises:
        UnsupportedError: it is neither.
    """
    if isinstance(x, Tensor):
        return x.value
    if isinstance(x, np.ndarray):
        if hasattr(x, "filled"):
            raise UnsupportedError(
                f"{op.name} does not know masked arrays", given=type(x).__name__, hint="x.filled(0.0), and lab.where"
            )
        if x.dtype.kind not in "fiub":
            raise UnsupportedError(
                f"{op.name} takes numbers only", given=f"an array of {x.dtype}", hint="convert first: x.astype(float)"
            )
        return np.asarray(x)
    if isinstance(x, np.generic):  # before float: np.float64 is one, but not weak
        return operand(op, np.asarray(x))
    if isinstance(x, bool | int | float):
        return x if op.elementwise else np.asarray(x)
    if isinstance(x, list | tuple):
        if any(isinstance(e, Tensor) for e in x):
            raise UnsupportedError(
                f"{op.name} got a list that contains tensors",
                given=repr(x)[:60],
                hint="join them with lab.stack or lab.concatenate",
            )
        try:
            return operand(op, np.asarray(x))
        except (ValueError, TypeError):
            raise UnsupportedError(
                f"{op.name} needs numbers in a rectangular arrangement",
                given=repr(x)[:60],
                hint="rows of one length, without text or None",
            ) from None
    raise UnsupportedError(
        f"{op.name} cannot take this argument",
        given=f"{type(x).__name__}",
        hint="tensors, arrays and numbers are understood",
    )


def explain(op: Op, arrays: tuple[Any, ...], params: dict[str, Any], why: Exception) -> Exception:
    """A LabError for what NumPy said: the shape rule's, where the operands show the reason, else NumPy's words as hint.

    Errors that the user asked for (`np.errstate(all="raise")`, warnings as errors) and lack of memory stay as they are.
    """
    if isinstance(why, LabError | FloatingPointError | Warning | MemoryError):
        return why
    specs = [Spec(a.shape, a.dtype) if isinstance(a, np.ndarray) else a for a in arrays]
    try:
        op.shape(*specs, **params)
    except LabError as better:
        return better
    except Exception:  # noqa: BLE001, S110 - a shape rule that fails in NumPy, as the op did, has nothing to add
        pass
    kind = DTypeError if isinstance(why, TypeError) else ShapeError if isinstance(why, IndexError) else ArgumentError
    words = [f"{s.dtype} {s.shape}" if isinstance(s, Spec) else repr(s) for s in specs]
    settings = "".join(f"; {name}={value!r}"[:60] for name, value in params.items())
    hint = next((better for said, better in _ADVICE.items() if said in str(why)), str(why))
    return kind(f"{op.name} cannot take these operands", given=" and ".join(words) + settings, hint=hint)


_ADVICE = {"negative integer powers": "integers hold no fractions: write 2.0 ** -1, or x.astype(float) ** -1"}
"""What to do, where NumPy says only what is wrong."""
