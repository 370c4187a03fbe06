"""Python's operators and NumPy's methods on a Tensor.

The operators are the closures of `apply.py` themselves, not methods that call them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lab import ops
from lab.autograd.apply import install
from lab.autograd.attach import attach, kinds
from lab.autograd.tensor import Tensor, _concrete, entry
from lab.errors import ConcretizationError, ShapeError, UnsupportedError
from lab.ops.positions import select
from lab.ops.primitive import Op

install()


def _swapped(apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: apply(other, self)


_OPERATORS = {
    "add": ops.add, "sub": ops.subtract, "mul": ops.multiply, "truediv": ops.divide, "pow": ops.power,
    "matmul": ops.matmul,
}  # fmt: skip
for _word, _op in _OPERATORS.items():
    # The closures themselves, not methods that call them: 60 ns a call.
    setattr(Tensor, f"__{_word}__", _op.apply)
    setattr(Tensor, f"__r{_word}__", _swapped(_op.apply))


def _compared(op: Op) -> Callable[[Tensor, Any], Any]:
    """== and != by entries; beside what is no number (None, a string) they are Python's, so that `t in list` works."""

    def method(self: Tensor, other: Any) -> Any:
        numbers = isinstance(other, Tensor | np.ndarray | bool | int | float | np.generic | list | tuple)
        return op.apply(self, other) if numbers else NotImplemented

    return method


for _word, _op in {
    "lt": ops.less, "le": ops.less_equal, "gt": ops.greater, "ge": ops.greater_equal, "eq": ops.equal,
    "ne": ops.not_equal, "neg": ops.negative, "abs": ops.absolute,
}.items():  # fmt: skip
    setattr(Tensor, f"__{_word}__", _compared(_op) if _word in {"eq", "ne"} else _op.apply)


def _logical(op: Op, sign: str) -> Callable[[Tensor, Any], Any]:
    """&, | and ^ of masks, by ops that mean the same on booleans."""

    def method(self: Tensor, other: Any) -> Any:
        for x in (self, other):
            if np.result_type(getattr(x, "dtype", type(x))) != np.bool_:
                raise UnsupportedError(
                    f"{sign} is for masks of booleans",
                    given=kinds((self, other)),
                    hint="compare first: (x > 0) & (x < 1)",
                )
        return op.apply(self, other)

    return method


def _invert(self: Tensor) -> Any:
    if self.dtype != np.bool_:
        raise UnsupportedError("~ is for masks of booleans", given=str(self.dtype), hint="compare first: ~(x > 0)")
    return ops.logical_not.apply(self)


# == is elementwise, identity still counts
attach(__hash__=object.__hash__, __pos__=lambda self: self, __invert__=_invert)
for _word, _op, _sign in (("and", ops.logical_and, "&"), ("or", ops.logical_or, "|"), ("xor", ops.logical_xor, "^")):
    setattr(Tensor, f"__{_word}__", _logical(_op, _sign))
    setattr(Tensor, f"__r{_word}__", _logical(_op, _sign))


# --- methods -----------------------------------------------------------------------------------------------------


for _record in ops.records():
    if _record.method:
        setattr(Tensor, _record.name, _record.apply)
attach(abs=ops.absolute.apply, pow=ops.power.apply)  # torch's other names


def _reshape(self: Tensor, *shape: Any) -> Any:
    """The same entries in another shape: t.reshape(2, -1) or t.reshape((2, -1))."""
    return ops.reshape.apply(
        self, shape=tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    )


def _transpose(self: Tensor, *axes: Any) -> Any:
    """The axes in another order, reversed without arguments."""
    order = tuple(axes[0]) if len(axes) == 1 and isinstance(axes[0], tuple | list) else axes
    return ops.transpose.apply(self, axes=order or None)


def _astype(self: Tensor, dtype: Any) -> Any:
    """The same values in another dtype; differentiable."""
    return ops.cast.apply(self, dtype=dtype)


def _getitem(self: Tensor, index: Any) -> Any:
    parts = index if type(index) is tuple else (index,)
    if any(isinstance(p, Tensor) for p in parts):
        return select(self, index)
    try:
        return ops.getitem.apply(self, index=index)
    except ConcretizationError as why:
        if not any(isinstance(p, slice) for p in parts):
            raise
        raise ConcretizationError(
            "the ends of a slice must be known", given=why.given,
            hint="lab.take(x, start + np.arange(n), axis=0) reads n entries from a start that is computed",
        ) from None  # fmt: skip


def plain_index(index: Any) -> Any:
    """An index with its tensors made arrays."""
    parts = index if isinstance(index, tuple) else (index,)
    plain = tuple(_known(p) if isinstance(p, Tensor) else p for p in parts)
    return plain if isinstance(index, tuple) else plain[0]


def _known(index: Tensor) -> Any:
    try:
        return np.asarray(_concrete(index))
    except ConcretizationError as why:
        raise ConcretizationError(
            why.problem, given=f"an index: {why.given}", hint="inside a transform: lab.index_update(x, values, index)"
        ) from None


def _len(self: Tensor) -> int:
    if not self.ndim:
        raise ShapeError("a tensor without axes has no length", given=repr(self), hint="use .item()")
    return self.shape[0]


def _iter(self: Tensor) -> Iterator[Any]:
    for i in range(len(self)):
        yield self[i]


def _scalar(kind: Callable[[Any], Any]) -> Callable[[Tensor], Any]:
    return lambda self: kind(entry(self))


def _index(self: Tensor) -> int:
    if self.dtype.kind not in "iu" or self.ndim:
        raise UnsupportedError("an index is a single integer", given=repr(self), hint="use int(t) or t.astype(int)")
    return int(entry(self))


def _bool(self: Tensor) -> bool:
    if self.size != 1:
        raise ShapeError(
            "the truth of a tensor of several entries is ambiguous", given=f"shape {self.shape}", hint="reduce it first"
        )
    return bool(entry(self))


def _refused(problem: str, hint: str) -> Callable[..., Any]:
    def method(self: Tensor, *others: Any) -> Any:
        raise UnsupportedError(problem, given=kinds((self, *others)), hint=hint)

    return method


_WHOLE = _refused("// of tensors is not among the operations", "lab.floor(x / y), whose slope is 0")
_REST = _refused("% of tensors is not among the operations", "x - y * lab.floor(x / y)")
_BOTH = _refused("divmod of tensors is not among the operations", "q = lab.floor(x / y), then x - y * q")
attach(__floordiv__=_WHOLE, __rfloordiv__=_WHOLE, __mod__=_REST, __rmod__=_REST, __divmod__=_BOTH, __rdivmod__=_BOTH)
attach(__round__=_refused("a tensor is not rounded", "round(x.item(), 2) for one number, f'{x:.2f}' to print it"))
attach(reshape=_reshape, transpose=_transpose, astype=_astype, T=property(ops.transpose.apply),
       mT=property(ops.matrix_transpose))  # fmt: skip
attach(__getitem__=_getitem, __len__=_len, __iter__=_iter)
attach(__float__=_scalar(float), __int__=_scalar(int), __bool__=_bool, __index__=_index)
