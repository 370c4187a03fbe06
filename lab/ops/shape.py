"""Ops that move entries and compute nothing: reshape, transpose, broadcast, concatenate, stack, cast."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from lab.errors import DTypeError, ShapeError, UnsupportedError
from lab.ops.composite import composite
from lab.ops.primitive import PRIMITIVES, primitive
from lab.ops.sample import Sample
from lab.shapes import Spec, broadcast, folded_axes, normal_axes, one_axis, resolve_reshape


@primitive(
    linear="each",
    samples=[
        Sample(((2, 3),), {"shape": (3, 2)}),
        Sample(((2, 3),), {"shape": (-1,)}),
        Sample(((),), {"shape": (1, 1)}),
    ],
    error_samples=[(((2, 3),), {"shape": (4,)}, "reshape must keep the number of entries")],
    reference=lambda x, shape: np.ravel(x).reshape(shape),
    numpy={np.reshape: None},
)
def reshape(x: Any, *, shape: Any = (-1,)) -> Any:
    """The same entries in another shape; one dimension may be -1."""
    return np.reshape(x, resolve_reshape(np.shape(x), shape if isinstance(shape, tuple | list) else (shape,)))


@reshape.vjp(text="ct in the shape of x")
def _reshape_vjp(ct: Any, _out: Any, x_like: Any, *, shape: Any) -> Any:
    return reshape(ct, shape=x_like.shape)


reshape.rules[0].eager = lambda ct, _out, x_like, **_: ct.reshape(x_like.shape)  # type: ignore[union-attr]


@reshape.shaped
def _reshape_shape(x: Spec, *, shape: Any) -> Spec:
    return Spec(resolve_reshape(x.shape, shape if isinstance(shape, tuple | list) else (shape,)), x.dtype)


@reshape.batching
def _reshape_batch(size: int, _mapped: tuple[bool, ...], x: Any, *, shape: Any) -> Any:
    wanted = resolve_reshape(x.shape[1:], shape if isinstance(shape, tuple | list) else (shape,))
    return reshape(x, shape=(size, *wanted))


def _order(axes: Any, ndim: int) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(ndim))[::-1]
    order = tuple(a + ndim if a < 0 else a for a in axes)
    if sorted(order) != list(range(ndim)):
        raise ShapeError(
            "transpose needs each axis once",
            given=f"axes {tuple(axes)} of {ndim} axes",
            hint="axes=(1, 0) swaps the axes of a matrix",
        )
    return order


@primitive(
    linear="each",
    samples=[Sample(((2, 3),)), Sample(((2, 3, 4),), {"axes": (1, -1, 0)}), Sample(((),))],
    error_samples=[(((2, 3),), {"axes": (0, 0)}, "transpose needs each axis once")],
    reference=lambda x, axes=None: np.moveaxis(x, range(x.ndim), np.argsort(axes) if axes else range(x.ndim)[::-1])
    if axes is None or min(axes) >= 0 else np.einsum(x, [0, 1, 2], [1, 2, 0]),
    numpy={np.transpose: None},
)  # fmt: skip
def transpose(x: Any, *, axes: Any = None) -> Any:
    """The axes in another order; without `axes` reversed."""
    return np.transpose(x, _order(axes, np.ndim(x)))


@transpose.vjp(text="ct with its axes put back")
def _transpose_vjp(ct: Any, _out: Any, _x: Any, *, axes: Any) -> Any:
    order = _order(axes, ct.ndim)
    return transpose(ct, axes=tuple(map(order.index, range(ct.ndim))))


@transpose.shaped
def _transpose_shape(x: Spec, *, axes: Any) -> Spec:
    return Spec(tuple(x.shape[i] for i in _order(axes, x.ndim)), x.dtype)


@transpose.batching
def _transpose_batch(_size: int, _mapped: tuple[bool, ...], x: Any, *, axes: Any) -> Any:
    return transpose(x, axes=(0, *(a + 1 for a in _order(axes, x.ndim - 1))))


def _target(shape: tuple[int, ...], wanted: Any) -> tuple[int, ...]:
    target = tuple(wanted) if isinstance(wanted, tuple | list) else (wanted,)
    if broadcast(shape, target, op="broadcast_to") != target:
        raise ShapeError("broadcast_to cannot take axes away", given=f"{shape} to {target}", hint="reduce or index it")
    return target


@primitive(
    linear="each",
    samples=[
        Sample(((3,),), {"shape": (2, 3)}),
        Sample(((2, 1),), {"shape": (4, 2, 3)}),
        Sample(((),), {"shape": (2,)}),
    ],
    error_samples=[
        (((2,),), {"shape": (3,)}, "broadcast_to cannot broadcast its operands"),
        (((2, 3),), {"shape": (3,)}, "broadcast_to cannot take axes away"),
    ],
    reference=lambda x, shape: x + np.zeros(shape),
    numpy={np.broadcast_to: None},
)
def broadcast_to(x: Any, *, shape: Any = ()) -> Any:
    """The entries repeated along new axes and along axes of length 1."""
    return np.broadcast_to(x, _target(np.shape(x), shape))


@broadcast_to.vjp(text="sum of ct over the repeated axes")
def _broadcast_vjp(ct: Any, _out: Any, x_like: Any, *, shape: Any) -> Any:
    return fold(ct, x_like.shape)


@broadcast_to.shaped
def _broadcast_shape(x: Spec, *, shape: Any) -> Spec:
    return Spec(_target(x.shape, shape), x.dtype)


@broadcast_to.batching
def _broadcast_batch(size: int, _mapped: tuple[bool, ...], x: Any, *, shape: Any) -> Any:
    target = _target(tuple(x.shape[1:]), shape)
    aligned = reshape(x, shape=(size, *(1,) * (len(target) + 1 - x.ndim), *x.shape[1:]))
    return broadcast_to(aligned, shape=(size, *target))


def fold(ct: Any, shape: tuple[int, ...]) -> Any:
    """Sum a cotangent over the axes along which an operand of `shape` was broadcast."""
    if ct.shape == shape:
        return ct
    axes = folded_axes(ct.shape, shape)
    if axes:
        ct = PRIMITIVES["sum"](ct, axis=axes)
    return ct if ct.shape == shape else reshape(ct, shape=shape)


@primitive(
    linear="each",
    samples=[Sample(((2, 3),), {"axis": 0}), Sample(((2, 3),), {"axis": -1}), Sample(((),), {"axis": 0})],
    error_samples=[(((3,),), {"axis": -3}, "expand_dims over an axis")],
    reference=lambda x, axis: x[np.newaxis] if axis == 0 else x[..., np.newaxis],
    numpy={np.expand_dims: None},
)
def expand_dims(x: Any, *, axis: Any = 0) -> Any:
    """A new axis of length 1, or several; they count in the result."""
    return np.expand_dims(x, _new_axes(axis, np.ndim(x)))


def _new_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    more = len(axis) if isinstance(axis, tuple | list) else 1
    if axis is None:
        return (one_axis(axis, ndim + 1, op="expand_dims"),)
    return normal_axes(axis, ndim + more, op="expand_dims")


@expand_dims.vjp(text="ct without the new axis")
def _expand_vjp(ct: Any, _out: Any, x_like: Any, *, axis: Any) -> Any:
    return reshape(ct, shape=x_like.shape)


@expand_dims.batching
def _expand_batch(_size: int, _mapped: tuple[bool, ...], x: Any, *, axis: Any) -> Any:
    return expand_dims(x, axis=tuple(a + 1 for a in _new_axes(axis, x.ndim - 1)))


@primitive(
    linear="joint",
    samples=[Sample(((2, 3), (1, 3))), Sample(((2, 3), (2, 1), (2, 2)), {"axis": -1}), Sample(((0,), (2,)))],
    error_samples=[
        (((2, 3), (2, 2)), {"axis": 0}, "concatenate needs equal shapes but for the joined axis"),
        (((2,), ()), {"axis": 0}, "concatenate needs equal shapes but for the joined axis"),
        (((3,), (2,)), {"axis": -2}, "concatenate over an axis"),
    ],
    reference=lambda *xs, axis=0: np.r_[*xs] if xs[0].ndim == 1 or axis == 0 else np.hstack(xs),
)
def concatenate(*xs: Any, axis: int = 0) -> Any:
    """Arrays joined along an existing axis."""
    shapes = [np.shape(x) for x in xs]
    along = one_axis(axis, len(shapes[0]), op="concatenate")
    if len({(len(s), s[:along], s[along + 1 :]) for s in shapes}) > 1:
        raise ShapeError(
            "concatenate needs equal shapes but for the joined axis",
            given=f"{' and '.join(map(str, shapes))}, axis {axis}",
            hint="lab.stack joins along a new axis",
        )
    return np.concatenate(xs, axis=axis)


@concatenate.vjp(text="the part of ct that came from x")
def _concatenate_vjp(ct: Any, _out: Any, *xs_like: Any, argument: int, axis: int) -> Any:
    sizes = [x.shape[axis] for x in xs_like]
    start = sum(sizes[:argument])
    along = one_axis(axis, ct.ndim, op="concatenate")
    where = (*(slice(None),) * along, slice(start, start + sizes[argument]))
    return PRIMITIVES["getitem"](ct, index=where)


@concatenate.batching
def _concatenate_batch(size: int, mapped: tuple[bool, ...], *xs: Any, axis: int) -> Any:
    full = [x if m else broadcast_to(x, shape=(size, *x.shape)) for x, m in zip(xs, mapped, strict=True)]
    return concatenate(*full, axis=one_axis(axis, full[0].ndim - 1, op="concatenate") + 1)


@composite(
    sequence=True,
    samples=[Sample(((2, 3), (2, 3))), Sample(((2,), (2,), (2,)), {"axis": -1}), Sample(((), ()))],
    error_samples=[(((2,), (3,)), {}, "stack needs tensors of one shape"),
                   (((2,), (2,)), {"axis": 2}, "expand_dims over an axis")],
    reference=lambda *xs, axis=0: np.stack(xs, axis),
    numpy={np.stack: None},
)  # fmt: skip
def stack(tensors: Any, axis: int = 0) -> Any:
    """Tensors of one shape joined along a new axis."""
    parts = listed(tensors, "stack")
    shapes = {np.shape(p) for p in parts}
    if len(shapes) != 1:
        raise ShapeError(
            "stack needs tensors of one shape",
            given=str(sorted(shapes)) if shapes else "an empty list",
            hint="lab.concatenate joins along an axis; reshape brings them to one shape",
        )
    return concatenate(*(expand_dims(p, axis=axis) for p in parts), axis=axis)


def listed(tensors: Any, word: str) -> list[Any]:
    """The operands of a function that takes a sequence of them."""
    if not isinstance(tensors, Iterable):
        raise UnsupportedError(
            f"{word} needs a sequence of tensors", given=type(tensors).__name__, hint=f"lab.{word}([a, b])"
        )
    return list(tensors)


def _numeric(dtype: Any) -> np.dtype[Any]:
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError as why:
        raise DTypeError("cast needs a dtype", given=repr(dtype), hint=str(why)) from None
    if found.kind not in "fiub":
        raise DTypeError(
            "cast makes floats, integers or booleans", given=str(found), hint='as "float32", "int64" or "bool"'
        )
    return found


@primitive(
    linear="each",
    samples=[Sample(((2, 3),), {"dtype": "float64"}), Sample(((),), {"dtype": "float64"})],
    reference=lambda x, dtype: x.astype(dtype),
)
def cast(x: Any, *, dtype: Any = "float32") -> Any:
    """The same values in another dtype; the gradient comes back in the operand's."""
    return np.asarray(x).astype(_numeric(dtype))


@cast.vjp(text="ct in the dtype of x")
def _cast_vjp(ct: Any, _out: Any, x_like: Any, *, dtype: Any) -> Any:
    return cast(ct, dtype=x_like.dtype)


@cast.shaped
def _cast_shape(x: Spec, *, dtype: Any) -> Spec:
    return Spec(x.shape, _numeric(dtype))


@cast.batching
def _cast_batch(_size: int, _mapped: tuple[bool, ...], x: Any, *, dtype: Any) -> Any:
    return cast(x, dtype=dtype)


def _grid(dtype: Any) -> np.dtype[Any]:
    if dtype != "bfloat16":
        raise DTypeError("round_to knows bfloat16", given=repr(dtype), hint='cast makes "float16" and the others')
    import ml_dtypes  # NumPy has no bfloat16; loaded when one is wanted

    found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return found


def _rounded_by_hand(x: Any, dtype: str = "bfloat16") -> Any:
    """To the nearest number of eight binary digits, to the even one of two."""
    fraction, exponent = np.frexp(x)
    return np.ldexp(np.rint(fraction * 256) / 256, exponent).astype(x.dtype)


@primitive(
    samples=[Sample(((2, 3),), differentiable=()), Sample(((),), differentiable=())],
    error_samples=[(((2,),), {"dtype": "float8"}, "round_to knows bfloat16")],
    reference=_rounded_by_hand,
)
def round_to(x: Any, *, dtype: str = "bfloat16") -> Any:
    """Each number as the nearest one of a format that NumPy does not have, in its own dtype; so is the gradient."""
    x = np.asarray(x)
    return x.astype(_grid(dtype)).astype(x.dtype)


@round_to.vjp(text="ct rounded as well")
def _round_to_vjp(ct: Any, _out: Any, _x: Any, *, dtype: str) -> Any:
    return round_to(ct, dtype=dtype)


@round_to.jvp
def _round_to_jvp(tangents: tuple[Any, ...], _out: Any, _x: Any, *, dtype: str) -> Any:
    return round_to(tangents[0], dtype=dtype)


@round_to.shaped
def _round_to_shape(x: Spec, *, dtype: str) -> Spec:
    _grid(dtype)
    return x


@round_to.batching
def _round_to_batch(_size: int, _mapped: tuple[bool, ...], x: Any, *, dtype: str) -> Any:
    return round_to(x, dtype=dtype)


@primitive(samples=[Sample(((2, 3),), differentiable=())], reference=lambda x: x)
def stop_gradient(x: Any) -> Any:
    """The value, with nothing flowing back through it."""
    return np.asarray(x)


@stop_gradient.shaped
def _stop_shape(x: Spec) -> Spec:
    return x


@stop_gradient.batching
def _stop_batch(_size: int, _mapped: tuple[bool, ...], x: Any) -> Any:
    return stop_gradient(x)
