"""NumPy's words on a Tensor: operators, methods, indexing, in-place writes, and the two array protocols.

What the lab does not support raises with the lab's name for it; nothing falls back to an array without gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from lab import ops
from lab.autograd import mutation
from lab.autograd.apply import make_apply
from lab.autograd.interpreter import Tracer
from lab.autograd.tape import Leaf
from lab.autograd.tensor import Tensor, _concrete
from lab.config import STATE
from lab.errors import ConcretizationError, GradientError, ShapeError, UnsupportedError
from lab.ops.primitive import PRIMITIVES, Op

for _op in PRIMITIVES.values():
    _op.apply = make_apply(_op)


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
                    given=_kinds((self, other)),
                    hint="compare first: (x > 0) & (x < 1)",
                )
        return op.apply(self, other)

    return method


def _invert(self: Tensor) -> Any:
    if self.dtype != np.bool_:
        raise UnsupportedError("~ is for masks of booleans", given=str(self.dtype), hint="compare first: ~(x > 0)")
    return ops.equal.apply(self, False)


def _attach(**attributes: Any) -> None:
    """Give Tensor what `tensor.py` declares to the type checker."""
    for name, value in attributes.items():
        setattr(Tensor, name, value)


# == is elementwise, identity still counts
_attach(__hash__=object.__hash__, __pos__=lambda self: self, __invert__=_invert)
for _word, _op, _sign in (("and", ops.multiply, "&"), ("or", ops.maximum, "|"), ("xor", ops.not_equal, "^")):
    setattr(Tensor, f"__{_word}__", _logical(_op, _sign))
    setattr(Tensor, f"__r{_word}__", _logical(_op, _sign))


# --- methods -----------------------------------------------------------------------------------------------------


def _reduction(op: Op) -> Callable[..., Any]:
    def method(self: Tensor, axis: Any = None, keepdims: bool = False) -> Any:
        return op.apply(self, axis=axis, keepdims=keepdims)

    method.__doc__ = op.doc
    return method


for _word, _op in {"sum": ops.sum_, "mean": ops.mean, "max": ops.max_, "min": ops.min_}.items():
    setattr(Tensor, _word, _reduction(_op))
for _word, _op in {
    "exp": ops.exp,
    "log": ops.log,
    "tanh": ops.tanh,
    "sqrt": ops.sqrt,
    "relu": ops.relu,
    "sigmoid": ops.sigmoid,
}.items():
    setattr(Tensor, _word, _op.apply)


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
    return ops.getitem.apply(self, index=_plain_index(index))


def _plain_index(index: Any) -> Any:
    parts = index if isinstance(index, tuple) else (index,)
    plain = tuple(_known(p) if isinstance(p, Tensor) else p for p in parts)
    return plain if isinstance(index, tuple) else plain[0]


def _known(index: Tensor) -> Any:
    try:
        return np.asarray(_concrete(index))
    except ConcretizationError as why:
        raise ConcretizationError(
            why.problem, given=f"an index: {why.given}", hint="use lab.one_hot(index, n=...) @ x instead of x[index]"
        ) from None


def _len(self: Tensor) -> int:
    if not self.ndim:
        raise ShapeError("a tensor without axes has no length", hint="use .item()")
    return self.shape[0]


def _iter(self: Tensor) -> Iterator[Any]:
    for i in range(len(self)):
        yield self[i]


def _scalar(kind: Callable[[Any], Any]) -> Callable[[Tensor], Any]:
    return lambda self: kind(self.item())


def _index(self: Tensor) -> int:
    if self.dtype.kind not in "iu" or self.ndim:
        raise UnsupportedError("an index is a single integer", given=repr(self), hint="use int(t) or t.astype(int)")
    return int(self.item())


def _bool(self: Tensor) -> bool:
    if self.size != 1:
        raise ShapeError(
            "the truth of a tensor of several entries is ambiguous", given=f"shape {self.shape}", hint="reduce it first"
        )
    return bool(self.item())


_attach(reshape=_reshape, transpose=_transpose, astype=_astype, T=property(ops.transpose.apply))
_attach(__getitem__=_getitem, __len__=_len, __iter__=_iter)
_attach(__float__=_scalar(float), __int__=_scalar(int), __bool__=_bool, __index__=_index)


# --- in place ----------------------------------------------------------------------------------------------------


def _writable(self: Tensor) -> Any:
    if type(self) is not Tensor:
        raise UnsupportedError(
            "in-place writes are not possible inside a transform", hint="compute a new value instead"
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
    if isinstance(values, Tensor):
        if (values.requires_grad or type(values) is not Tensor) and STATE.get().frozen < 0:
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
    try:
        target[_plain_index(index)] = source
    except (ValueError, IndexError) as why:
        raise ShapeError(
            "values do not fit where they are written", given=f"{np.shape(source)} into {target.shape}", hint=str(why)
        ) from None
    mutation.mark(target)


def _in_place(ufunc: np.ufunc, apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Tensor, other: Any) -> Any:
        traced = isinstance(self, Tracer) or isinstance(other, Tracer)
        tracked = self.node is not None or (isinstance(other, Tensor) and other.node is not None)
        if traced or (tracked and STATE.get().frozen < 0 and not isinstance(self.node, Leaf)):
            return apply(self, other)  # Python rebinds the name: right gradients, and no write
        target = _writable(self)
        source = _plain(other)
        try:
            ufunc(target, source, out=target, casting="same_kind")
        except (ValueError, TypeError) as why:
            raise ShapeError(
                "values do not fit where they are written",
                given=f"{np.shape(source)} into {target.shape}",
                hint=str(why),
            ) from None
        mutation.mark(target)
        return self

    return method


for _word, _ufunc in {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide}.items():
    setattr(Tensor, f"__i{_word}__", _in_place(_ufunc, _OPERATORS[_word].apply))
_attach(assign=_assign, __setitem__=_setitem)


# --- functions that take lists -----------------------------------------------------------------------------------


def concatenate(tensors: Any, axis: int = 0) -> Any:
    """Tensors joined along an existing axis.

    Args:
        tensors: a sequence of tensors or arrays whose shapes agree but for `axis`.

    Example:
        >>> import lab
        >>> lab.concatenate([lab.tensor([1.0]), lab.tensor([2.0, 3.0])])
        tensor([1., 2., 3.])
    """
    parts = _sequence(tensors, "concatenate")
    if not parts:
        raise ShapeError("concatenate needs at least one tensor", given="an empty list")
    return ops.concatenate.apply(*parts, axis=axis)


def stack(tensors: Any, axis: int = 0) -> Any:
    """Tensors of one shape joined along a new axis.

    Example:
        >>> import lab
        >>> lab.stack([lab.tensor(1.0), lab.tensor(2.0)])
        tensor([1., 2.])
    """
    parts = _sequence(tensors, "stack")
    shapes = {np.shape(p) for p in parts}
    if len(shapes) != 1:
        raise ShapeError("stack needs tensors of one shape", given=str(sorted(shapes)) if shapes else "an empty list")
    return ops.concatenate.apply(*(ops.expand_dims.apply(p, axis=axis) for p in parts), axis=axis)


def _sequence(tensors: Any, word: str) -> list[Any]:
    if not isinstance(tensors, Iterable):
        raise UnsupportedError(
            f"{word} needs a sequence of tensors", given=type(tensors).__name__, hint=f"lab.{word}([a, b])"
        )
    return list(tensors)


# --- NumPy's protocols -------------------------------------------------------------------------------------------

_UFUNCS: dict[Any, Op] = {
    getattr(np, name): op for name, op in PRIMITIVES.items() if isinstance(getattr(np, name, None), np.ufunc)
}


_MASKS: dict[Any, Callable[..., Any]] = {
    np.bitwise_and: Tensor.__and__,
    np.bitwise_or: Tensor.__or__,
    np.bitwise_xor: Tensor.__xor__,
    np.invert: Tensor.__invert__,
}


def _array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    op = _UFUNCS.get(ufunc)
    if ufunc in _MASKS and method == "__call__" and not kwargs:
        return _MASKS[ufunc](*inputs)
    if method == "reduce" and ufunc in _REDUCED and not set(kwargs) - {"axis", "keepdims"}:
        return _REDUCED[ufunc].apply(inputs[0], axis=kwargs.get("axis", 0), keepdims=bool(kwargs.get("keepdims")))
    if method != "__call__" or op is None:
        word = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        raise UnsupportedError(
            f"np.{word} does not work on a tensor",
            given=_kinds(inputs),
            hint=f"lab has {_near(ufunc.__name__)}, or use .numpy()",
        )
    if kwargs:
        raise UnsupportedError(
            f"np.{ufunc.__name__} on a tensor takes no {', '.join(kwargs)}",
            given=_kinds(kwargs.values()),
            hint=f"use lab.{op.name}",
        )
    return op.apply(*inputs)


_REDUCED: dict[Any, Op] = {np.add: ops.sum_, np.maximum: ops.max_, np.minimum: ops.min_}


def _kinds(values: Iterable[Any]) -> str:
    return ", ".join(type(v).__name__ for v in values) or "no positional argument"


def _near(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, PRIMITIVES, n=1)
    return f"lab.{close[0]}" if close else "no function of that name"


def _dot(a: Any, b: Any) -> Any:
    if not np.ndim(a) or not np.ndim(b):
        return ops.multiply.apply(a, b)
    if np.ndim(b) > 2:  # NumPy's dot is another product there
        raise UnsupportedError(
            "np.dot of more than two axes does not work on a tensor", given=_kinds((a, b)), hint="use @"
        )
    return ops.matmul.apply(a, b)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: lambda a, axis=None, keepdims=False: ops.sum_.apply(a, axis=axis, keepdims=keepdims),
    np.mean: lambda a, axis=None, keepdims=False: ops.mean.apply(a, axis=axis, keepdims=keepdims),
    np.max: lambda a, axis=None, keepdims=False: ops.max_.apply(a, axis=axis, keepdims=keepdims),
    np.min: lambda a, axis=None, keepdims=False: ops.min_.apply(a, axis=axis, keepdims=keepdims),
    np.reshape: lambda a, shape: ops.reshape.apply(a, shape=shape),
    np.transpose: lambda a, axes=None: ops.transpose.apply(a, axes=axes),
    np.concatenate: concatenate,
    np.stack: lambda arrays, axis=0: stack(arrays, axis),
    np.where: ops.where.apply,
    np.expand_dims: lambda a, axis: ops.expand_dims.apply(a, axis=axis),
    np.broadcast_to: lambda array, shape: ops.broadcast_to.apply(array, shape=shape),
    np.dot: _dot,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a: a.size,
    np.result_type: lambda *xs: np.result_type(*(x.dtype if isinstance(x, Tensor) else x for x in xs)),
}


def _array_function(self: Tensor, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    found = _FUNCTIONS.get(function)
    name = getattr(function, "__name__", str(function))
    if found is None:
        module = getattr(function, "__module__", "numpy").replace("numpy", "np", 1)
        raise UnsupportedError(
            f"{module}.{name} does not work on a tensor",
            given=_kinds(args),
            hint=f"lab has {_near(name)}, or use .numpy()",
        )
    try:
        return found(*args, **kwargs)
    except TypeError as why:
        if "argument" not in str(why):
            raise
        raise UnsupportedError(
            f"np.{name} on a tensor was called in an unsupported way", given=str(why), hint=f"lab has {_near(name)}"
        ) from None


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    if self.requires_grad or isinstance(self, Tracer):
        raise UnsupportedError(
            "a tensor that requires a gradient is not made an array in silence",
            given=repr(self),
            hint="use lab's functions (lab.stack for a list), or .detach().numpy()",
        )
    if copy is False:
        if dtype is not None and np.dtype(dtype) != self.dtype:
            raise ValueError("a copy is needed to change the dtype")
        return self.numpy()
    return np.array(self.value, dtype=dtype)


_attach(__array_ufunc__=_array_ufunc, __array_function__=_array_function, __array__=_array)
