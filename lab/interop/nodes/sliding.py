"""Convolutions and poolings: ONNX's own where onnxruntime has them, else products of matrices over gathered windows."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from lab.interop.nodes.building import Call
from lab.interop.nodes.table import emits
from lab.ops.fitting import plan_back, plan_of, plan_weight
from lab.ops.windows import Windows, windows


class Shapes(NamedTuple):
    """What a convolution has, by whatever of the three ops it is written.

    Attributes:
        plan: the windows over the image.
        n, groups, c, o: examples; groups, and for each of them channels of the image and of the windows.
    """

    plan: Windows
    n: int
    groups: int
    c: int
    o: int

    @property
    def entries(self) -> int:
        """Entries of a window in one group."""
        return self.c * math.prod(self.plan.kernel)

    @property
    def n_windows(self) -> int:
        return math.prod(self.plan.out)

    @property
    def padded(self) -> tuple[int, ...]:
        """The axes with what stands around."""
        return tuple(b + s + a for b, s, a in zip(self.plan.before, self.plan.size, self.plan.after, strict=True))

    def places(self) -> Any:
        """For each kernel entry and each window its number in the padded, flattened image: (kernel, windows)."""
        numbers = np.arange(math.prod(self.padded)).reshape(self.padded)
        axes = [np.add.outer(np.arange(k) * d, np.arange(m) * s) for k, d, m, s in
                zip(self.plan.kernel, self.plan.dilation, self.plan.out, self.plan.stride, strict=True)]  # fmt: skip
        n = len(axes)
        grid = tuple(a.reshape([a.shape[0] if i == j else a.shape[1] if i == j + n else 1 for i in range(2 * n)])
                     for j, a in enumerate(axes))  # fmt: skip
        return numbers[grid].reshape(math.prod(self.plan.kernel), self.n_windows)


def _shapes(c: Call) -> Shapes:
    p, first, second = c.e.params, c.spec(0).shape, c.spec(1).shape
    tail = p["groups"], p["stride"], p["padding"], p["dilation"]
    groups = int(p["groups"][0] if isinstance(p["groups"], tuple | list) else p["groups"])
    if c.e.op.name == "conv":
        return Shapes(plan_of(first, second, *tail), first[0], groups, second[1], second[0] // groups)
    if c.e.op.name == "conv_transpose":
        return Shapes(plan_back(first, second, p["size"], *tail), first[0], groups, second[1], second[0] // groups)
    plan = plan_weight(first, second, p["kernel"], *tail)
    return Shapes(plan, first[0], groups, first[1] // groups, second[1] // groups)


def _columns(c: Call, s: Shapes) -> str:
    """The windows of the image as columns: (n, groups, entries, windows)."""
    nodes, ndim = c.nodes, len(s.plan.size) + 2
    pads = np.array([0, 0, *s.plan.before, 0, 0, *s.plan.after], np.int64)
    assert pads.size == 2 * ndim
    x = nodes.node("Pad", c.x(0, c.out.dtype), nodes.constant(pads)) if pads.any() else c.x(0, c.out.dtype)
    flat = nodes.reshape(x, (s.n, s.groups * s.c, math.prod(s.padded)))
    seen = nodes.node("Gather", flat, nodes.constant(s.places()), axis=2)
    return nodes.reshape(seen, (s.n, s.groups, s.entries, s.n_windows))


def _attributes(s: Shapes) -> dict[str, Any]:
    return {"kernel_shape": list(s.plan.kernel), "strides": list(s.plan.stride), "dilations": list(s.plan.dilation),
            "pads": [*s.plan.before, *s.plan.after], "group": s.groups}  # fmt: skip


@emits("conv")
def _conv(c: Call) -> str:
    s, nodes = _shapes(c), c.nodes
    if c.out.dtype == np.float32:
        return nodes.node("Conv", *c.xs(np.float32), **_attributes(s))
    kernels = nodes.reshape(c.x(1, c.out.dtype), (s.groups, s.o, s.entries))
    return nodes.reshape(nodes.node("MatMul", kernels, _columns(c, s)), c.out.shape)


@emits("conv_weight")
def _conv_weight(c: Call) -> str:
    s, nodes = _shapes(c), c.nodes
    outs = nodes.reshape(c.x(1, c.out.dtype), (s.n, s.groups, s.o, s.n_windows))
    columns = nodes.node("Transpose", _columns(c, s), perm=[0, 1, 3, 2])
    return nodes.reshape(nodes.reduce("Sum", nodes.node("MatMul", outs, columns), [0]), c.out.shape)


@emits("conv_transpose")
def _conv_transpose(c: Call) -> str:
    s, nodes = _shapes(c), c.nodes
    least = [(m - 1) * t + d * (k - 1) + 1 for m, t, d, k in
             zip(s.plan.out, s.plan.stride, s.plan.dilation, s.plan.kernel, strict=True)]  # fmt: skip
    more = [p - n for p, n in zip(s.padded, least, strict=True)]
    if c.out.dtype == np.float32 and all(m < t for m, t in zip(more, s.plan.stride, strict=True)):
        return nodes.node("ConvTranspose", *c.xs(np.float32), output_padding=more, **_attributes(s))
    kernels = nodes.reshape(c.x(1, c.out.dtype), (s.groups, s.o, s.entries))
    outs = nodes.reshape(c.x(0, c.out.dtype), (s.n, s.groups, s.o, s.n_windows))
    columns = nodes.node("MatMul", nodes.node("Transpose", kernels, perm=[0, 2, 1]), outs)
    rows, places = s.n * s.groups * s.c, s.places().reshape(-1)
    zeros = nodes.expand(nodes.constant(0, c.out.dtype), (rows, math.prod(s.padded)))
    where = nodes.expand(nodes.constant(places[None]), (rows, places.size))
    values = nodes.reshape(columns, (rows, places.size))
    full = nodes.node("ScatterElements", zeros, where, values, axis=1, reduction="add")
    image = nodes.reshape(full, (s.n, s.groups * s.c, *s.padded))
    inner = zip(s.plan.before, s.plan.size, strict=True)
    starts, ends = (np.array(v, np.int64) for v in zip(*((b, b + m) for b, m in inner), strict=True))
    axes = np.arange(2, 2 + len(starts))
    return nodes.node("Slice", image, *map(nodes.constant, (starts, ends, axes)))


@emits("max_pool", "argmax_pool", "max_pool_back")
def _pool(c: Call) -> str:
    p, nodes, image = c.e.params, c.nodes, len(c.e.inputs) - 1
    stride = p["kernel"] if p["stride"] is None else p["stride"]
    plan = windows("max_pool", c.spec(image).shape[2:], p["kernel"], stride, p["padding"])
    attributes: dict[str, Any] = {"kernel_shape": list(plan.kernel), "strides": list(plan.stride),
                                  "pads": [*plan.before, *plan.after]}  # fmt: skip
    x = c.x(image, c.out.dtype if c.e.op.name == "max_pool" else None)
    if c.e.op.name == "max_pool":
        return nodes.node("MaxPool", x, **attributes)
    numbers = nodes.several("MaxPool", 2, x, **attributes)[1]  # counted through all images
    size = math.prod(plan.size)
    places = nodes.node("Mod", numbers, nodes.constant(size, np.int64))
    if c.e.op.name == "argmax_pool":
        return places
    images, n = math.prod(c.out.shape[:2]), math.prod(plan.out)
    zeros = nodes.expand(nodes.constant(0, c.out.dtype), (images, size))
    added = nodes.node("ScatterElements", zeros, nodes.reshape(places, (images, n)),
                       nodes.reshape(c.x(0, c.out.dtype), (images, n)), axis=1, reduction="add")  # fmt: skip
    return nodes.reshape(added, c.out.shape)
