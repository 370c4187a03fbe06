"""Writing into a Tensor in place: only where no history would be left wrong, and every node that saved it notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lab import ops
from lab.autograd import mutation
from lab.autograd.attach import attach
from lab.autograd.between import tell_written
from lab.autograd.interpreter import Tracer
from lab.autograd.operators import plain_index
from lab.autograd.tape import Leaf
from lab.autograd.tensor import Tensor, _concrete
from lab.config import STATE
from lab.errors import DTypeError, GradientError, ShapeError, UnsupportedError


def _writable(self: Tensor) -> Any:
    if type(self) is not Tensor:
        raise UnsupportedError(
            "in-place writes are not possible inside a transform", given=repr(self), hint="compute a new value instead"
        )
    if self.node is not None and STATE.get().frozen < 0:
        what = "a leaf that requires a gradient" if isinstance(self.node, Leaf) else "a tensor that was computed"
        raise GradientError(
            "an in-place write would leave its history wrong",
            given=what,
            hint="write under lab.no_grad(), or compute a new tensor",
        )
    if not self.value.flags.writeable:  # a view that NumPy made read-only, as broadcast_to does
        self.value = self.value.copy()
    return self.value


def _plain(values: Any) -> Any:
    """What is written: never something whose gradient would be lost by it."""
    if isinstance(values, Tracer):
        raise UnsupportedError(
            f"a value inside {values.interp.word} is not written into an array that outlives it",
            given=repr(values),
            hint="return it instead, or make the array of its parts: lab.stack, lab.concatenate, lab.where",
        )
    if isinstance(values, Tensor):
        if values.requires_grad and STATE.get().frozen < 0:
            raise GradientError(
                "a tensor that requires a gradient is not written into another in silence",
                given=repr(values),
                hint="use lab.where or lab.concatenate, or write values.detach()",
            )
        return _concrete(values)
    return values


def _assign(self: Tensor, values: Any) -> Tensor:
    """Write values into this tensor, in place; nodes that saved it will notice.

    Example:
        >>> import lab
        >>> t = lab.tensor([1.0, 2.0]); t.assign([3.0, 4.0])
        tensor([3., 4.])
    """
    _setitem(self, ..., values)
    return self


def _setitem(self: Tensor, index: Any, values: Any) -> None:
    target, source = _writable(self), _plain(values)
    _check_cast(source, target)
    try:
        target[plain_index(index)] = source
    except (ValueError, IndexError) as why:
        raise ShapeError(
            "values do not fit where they are written", given=f"{np.shape(source)} into {target.shape}", hint=str(why)
        ) from None
    _written(self)


def _written(self: Tensor) -> None:
    mutation.mark(self.value)
    if isinstance(self.node, Leaf):
        tell_written(self.node, self.value)


def _check_cast(source: Any, target: Any) -> None:
    """Refuse what would be cut off: 0.5 into integers; a Python number takes the dtype of what it is written into.

    Raises:
        DTypeError: so it is.
    """
    dtype = np.result_type(source) if isinstance(source, np.ndarray | np.generic) else np.asarray(source).dtype
    order = "biuf"
    if dtype.kind in order and order.index(dtype.kind) > order.index(target.dtype.kind):
        if dtype.kind in "iu" and target.dtype.kind in "iu":
            return
        raise DTypeError(
            f"{dtype} values do not fit into {target.dtype}",
            given=f"{source!r}"[:60],
            hint="make the tensor with dtype=float, or convert first: values.astype(int)",
        )


def _in_place(ufunc: np.ufunc, apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Tensor, other: Any) -> Any:
        traced = isinstance(self, Tracer) or isinstance(other, Tracer)
        tracked = self.node is not None or (isinstance(other, Tensor) and other.node is not None)
        if traced or (tracked and STATE.get().frozen < 0 and not isinstance(self.node, Leaf)):
            return apply(self, other)  # Python rebinds the name: right gradients, and no write
        target = _writable(self)
        source = _plain(other)
        _check_cast(source, target)
        try:
            ufunc(target, source, out=target, casting="same_kind")
        except TypeError as why:
            raise DTypeError(
                f"the result does not fit into {target.dtype}",
                given=f"{ufunc.__name__} of {target.dtype} and {np.asarray(source).dtype}",
                hint=f"make the tensor with dtype=float; NumPy says: {why}",
            ) from None
        except ValueError as why:
            raise ShapeError(
                "values do not fit where they are written",
                given=f"{np.shape(source)} into {target.shape}",
                hint=str(why),
            ) from None
        _written(self)
        return self

    return method


for _word, _ufunc, _op in (
    ("add", np.add, ops.add),
    ("sub", np.subtract, ops.subtract),
    ("mul", np.multiply, ops.multiply),
    ("truediv", np.true_divide, ops.divide),
):
    setattr(Tensor, f"__i{_word}__", _in_place(_ufunc, _op.apply))
attach(assign=_assign, __setitem__=_setitem)
