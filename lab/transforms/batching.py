"""vmap: a function of one example applied to all of them at once, without a loop or a batch axis in its code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab import tree
from lab.autograd.batch import Batch
from lab.autograd.interpreter import FRAMES, Tracer
from lab.autograd.tensor import Tensor, wrap
from lab.config import STATE, using
from lab.errors import ArgumentError, ShapeError
from lab.ops import broadcast_to, transpose
from lab.shapes import normal_axes


def vmap(
    f: Callable[..., Any], in_axes: int | Sequence[int | None] | None = 0, out_axes: int = 0, *, axis_name: str = ""
) -> Callable[..., Any]:
    """Map a function over an axis of its arguments.

    Args:
        f: a function of tensors or containers of them.
        in_axes: the mapped axis of each argument (of all its leaves), None for an argument that all members share.
        out_axes: where the mapped axis goes in every output.
        axis_name: lets collectives (`lab.all_reduce`) inside f meet the other members.

    Raises:
        ShapeError: mapped axes of different lengths, or an axis that an argument does not have.
        ArgumentError: nothing is mapped.

    Example:
        >>> import lab
        >>> lab.vmap(lambda x: x * x)(lab.tensor([1.0, 2.0, 3.0]))
        tensor([1., 4., 9.])
        >>> lab.vmap(lambda x: x / lab.all_reduce(x, axis_name="i"), axis_name="i")(lab.tensor([1.0, 3.0]))
        tensor([0.25, 0.75])
    """

    def mapped(*args: Any) -> Any:
        axes = (in_axes,) * len(args) if isinstance(in_axes, int | None) else tuple(in_axes)
        if len(axes) != len(args):
            raise ArgumentError("in_axes needs one entry for each argument", given=f"{len(axes)} for {len(args)}")
        flat, structure = tree.flatten(list(args))
        leaf_axes = [a for x, a in zip(args, axes, strict=True) for _ in tree.flatten(x)[0]]
        values = [x if isinstance(x, Tensor) else wrap(np.asarray(x)) for x in flat]
        sizes = [
            v.shape[normal_axes(a, v.ndim, op="vmap")[0]]
            for v, a in zip(values, leaf_axes, strict=True)
            if a is not None
        ]
        if not sizes:
            raise ArgumentError(
                "vmap has nothing to map over", given=f"in_axes={in_axes}", hint="give an axis to some argument"
            )
        if len(set(sizes)) > 1:
            raise ShapeError(
                "vmap needs mapped axes of one length",
                given=", ".join(map(str, sizes)),
                hint="use in_axes=None for shared arguments",
            )
        interp = Batch(sizes[0])
        inputs = [
            x if a is None else Tracer(interp, _front(v, a)) for x, v, a in zip(flat, values, leaf_axes, strict=True)
        ]
        state = STATE.get()
        frames = (*FRAMES.get(), (axis_name, interp)) if axis_name else FRAMES.get()
        named = (*state.axes, (axis_name, interp.size)) if axis_name else state.axes
        token = FRAMES.set(frames)
        try:
            with using(transforms=state.transforms + 1, axes=named):
                out = f(*tree.unflatten(structure, inputs))
        finally:
            FRAMES.reset(token)
            interp.alive = False
        return tree.map_leaves(lambda o: _result(o, interp, out_axes), out)

    return mapped


def _front(value: Any, axis: int) -> Any:
    (axis,) = normal_axes(axis, value.ndim)
    return value if axis == 0 else transpose(value, axes=(axis, *(i for i in range(value.ndim) if i != axis)))


def _result(out: Any, interp: Batch, axis: int) -> Any:
    if isinstance(out, Tracer) and out.interp is interp:
        value = out.value
    else:  # the same for all members
        same = out if isinstance(out, Tensor) else wrap(np.asarray(out))
        value = broadcast_to(same, shape=(interp.size, *same.shape))
    value = value if isinstance(value, Tensor) else wrap(value)
    (axis,) = normal_axes(axis, value.ndim, op="vmap")
    return value if axis == 0 else transpose(value, axes=(*range(1, axis + 1), 0, *range(axis + 1, value.ndim)))
