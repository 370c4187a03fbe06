"""vmap: a function of one example applied to all of them at once, without a loop or a batch axis in its code."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from lab import tree
from lab.autograd.batch import Batch
from lab.autograd.interpreter import FRAMES, Tracer
from lab.config import STATE, using
from lab.errors import ArgumentError, ShapeError
from lab.ops import broadcast_to, transpose
from lab.shapes import normal_axes
from lab.transforms.arguments import axes_of, function, returned, taken


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, *, axis_name: str = "") -> Callable[..., Any]:
    """Map a function over an axis of its arguments.

    Args:
        f: a function of tensors or containers of them.
        in_axes: the mapped axis, counted from either end; None for what all members share. One for all arguments, or a
            tuple with one for each, or with containers of axes for the leaves of an argument. Keyword arguments are
            mapped over axis 0.
        out_axes: where the mapped axis goes; one for every output, or a container of them.
        axis_name: lets collectives inside f meet the other members: all_reduce, all_gather, reduce_scatter, broadcast,
            all_to_all, shift, permute; axis_index and axis_size tell who is there.

    Raises:
        ShapeError: mapped axes of different lengths, or an axis that an argument does not have.
        ArgumentError: nothing is mapped, or axes that do not fit the arguments.

    Example:
        >>> import lab
        >>> lab.vmap(lambda x: x * x)(lab.tensor([1.0, 2.0, 3.0]))
        tensor([1., 4., 9.])
        >>> lab.vmap(lambda x: x / lab.all_reduce(x, axis_name="i"), axis_name="i")(lab.tensor([1.0, 3.0]))
        tensor([0.25, 0.75])
    """
    function(f, "vmap")

    @functools.wraps(f)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        flat, structure = tree.flatten((args, kwargs))
        axes = in_axes_of(in_axes, args) + [0] * len(tree.flatten(kwargs)[0])
        values = [x if a is None else taken(x, "vmap") for x, a in zip(flat, axes, strict=True)]
        interp = Batch(size_of(values, axes, in_axes), axis_name)
        given = zip(flat, values, axes, strict=True)
        inputs = [x if a is None else Tracer(interp, _front(v, a), a) for x, v, a in given]
        out = _run(interp, f, *tree.unflatten(structure, inputs))
        outs, out_structure = tree.flatten(out)
        places = axes_of(out_axes, out, "out_axes", none=False)
        return tree.unflatten(out_structure, [_result(o, interp, a) for o, a in zip(outs, places, strict=True)])

    return mapped


def in_axes_of(in_axes: Any, args: tuple[Any, ...]) -> list[int | None]:
    """The mapped axis of each leaf of positional arguments.

    Raises:
        ArgumentError: axes that do not fit the arguments.

    Example:
        >>> in_axes_of((0, None), ((1.0, 2.0), 3.0))
        [0, 0, None]
    """
    axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    if isinstance(axes, tuple) and len(axes) != len(args):
        raise ArgumentError(
            "in_axes needs one entry for each argument",
            given=f"{len(axes)} for {len(args)}",
            hint="in_axes=(0, None): one for each positional argument",
        )
    return axes_of(axes, args, "in_axes", none=True)


def size_of(values: list[Any], axes: list[int | None], in_axes: Any, word: str = "vmap") -> int:
    """The length of the mapped axes.

    Raises:
        ShapeError: they differ, or an argument has no such axis.
        ArgumentError: nothing is mapped.

    Example:
        >>> import numpy as np
        >>> size_of([np.ones((2, 3)), 1.0], [-1, None], (-1, None))
        3
    """
    sizes = [v.shape[normal_axes(a, v.ndim, op=word)[0]] for v, a in zip(values, axes, strict=True) if a is not None]
    if not sizes:
        raise ArgumentError(
            f"{word} has nothing to map over", given=f"in_axes={in_axes}", hint="give an axis to some argument"
        )
    if len(set(sizes)) > 1:
        raise ShapeError(
            f"{word} needs mapped axes of one length",
            given=", ".join(map(str, sizes)),
            hint="use in_axes=None for shared arguments",
        )
    return int(sizes[0])


def _run(interp: Batch, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    state, name = STATE.get(), interp.axis_name
    if name and any(name == other for other, _ in state.axes):
        raise ArgumentError("an axis has this name already", given=repr(name), hint="choose another name")
    frames = (*FRAMES.get(), (name, interp)) if name else FRAMES.get()
    token = FRAMES.set(frames)
    try:
        with using(transforms=state.transforms + 1, axes=(*state.axes, (name, interp.size)) if name else state.axes):
            return f(*args, **kwargs)
    finally:
        FRAMES.reset(token)
        interp.alive = False


def _front(value: Any, axis: int) -> Any:
    (axis,) = normal_axes(axis, value.ndim)
    return value if axis == 0 else transpose(value, axes=(axis, *(i for i in range(value.ndim) if i != axis)))


def _result(out: Any, interp: Batch, axis: int | None) -> Any:
    if isinstance(out, Tracer) and out.interp is interp:
        value = returned(out.value, "vmap")
    else:  # the same for all members
        same = returned(out, "vmap")
        value = broadcast_to(same, shape=(interp.size, *same.shape))
    (axis,) = normal_axes(axis, value.ndim, op="vmap")
    return value if axis == 0 else transpose(value, axes=(*range(1, axis + 1), 0, *range(axis + 1, value.ndim)))
