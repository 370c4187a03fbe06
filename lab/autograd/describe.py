"""What `help(lab.tanh)` says: a docstring made from the op's record, so that it cannot differ from what the op does.

Made when the name is first asked for. The example's result comes from the record's reference, so nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lab.autograd.tensor import wrap
from lab.ops.composite import Composite
from lab.ops.primitive import Op
from lab.ops.sample import Sample

_PARAMETERS = {
    "a_max": "upper bound: a number, an array or a tensor, None for none",
    "a_min": "lower bound: a number, an array or a tensor, None for none",
    "alpha": "a number: minus the limit far below 0",
    "approximate": '"none", or "tanh" for the approximation by a hyperbolic tangent',
    "axis": "an axis, counted from either end; where several make sense, a tuple of them or None for all",
    "axes": "the axes in their new order",
    "axis_name": "the name that an enclosing vmap gave its axis, or of an axis of ranks",
    "by": "by how many places, a whole number",
    "op": "sum, mean, max or min",
    "pairs": "(from, to) of each that moves, as ((0, 1), (1, 0))",
    "root": "the number of a member",
    "tiled": "join them along an axis that x has, instead of a new one",
    "dtype": "dtype of the result",
    "index": "what stands between brackets: integers, slices, None, Ellipsis, arrays of integers or booleans",
    "decimals": "digits behind the point; negative for tens, hundreds",
    "keepdims": "leave the reduced axes in the result, with length 1",
    "axis1": "the first of two axes",
    "axis2": "the second of two axes",
    "bias": "a number for each channel of the result, or None",
    "batch": "how many first axes of the operands are aligned with each other",
    "causal": "whether a place sees itself and what is before it only",
    "constant_values": "what is put around, with mode constant: a number, or a pair (before, after) for each axis",
    "append": "what to join at the end before the differences are taken",
    "correction": "another name of ddof",
    "ddof": "what is subtracted from the number of entries before dividing by it",
    "delta": "where squares turn linear",
    "descending": "the largest first",
    "destination": "where they go, a number or a tuple",
    "dilation": "from one entry of the kernel to the next: a whole number, or one for each axis",
    "diff.n": "how often the differences are taken",
    "epsilon": "what is added to the variance",
    "groups": "into how many groups channels fall; each sees its own only",
    "indices_or_sections": "the number of parts, or where to cut",
    "k": "the diagonal: 0 the main one, above it positive",
    "kernel": "entries of a window: a whole number, or one for each axis",
    "largest": "the largest, or else the smallest entries",
    "mask": "booleans, True where to look",
    "batch_norm.mean": "that of each channel where it is not the batch's",
    "mode": "constant, edge, reflect, symmetric or wrap",
    "n": "number of classes",
    "n_groups": "how many groups the channels make",
    "negative_slope": "a number: the slope below 0",
    "order": "how many times it is differentiated",
    "offset": "the diagonal: 0 the main one, above it positive",
    "ord": "which norm: None, 1, 2, inf, -inf, 0 or any p of vectors; fro, 1, -1, inf, -inf of matrices",
    "output_padding": "below the stride: which of the sizes that a convolution would make equal",
    "padding": 'zeros around: a whole number, one for each axis, a pair (before, after) for each, "same" or "valid"',
    "pad_width": "how many entries to put around: a number, a pair (before, after), or a pair for each axis",
    "prepend": "what to join at the front before the differences are taken",
    "rate": "the share that becomes 0",
    "reduction": "mean, sum, or none for the loss of each",
    "repeats": "how often, a number or one for each entry along the axis",
    "reps": "how often along each axis",
    "scale": "what the scores are multiplied with; None for 1 / sqrt(d)",
    "segment_sum.n": "number of segments",
    "shift": "by how many places, a number or one for each axis",
    "size": "length of the axes of the result, None for the smallest that fits",
    "source": "the axes to move, a number or a tuple",
    "stride": "from one window to the next: a whole number, or one for each axis; None, for pooling, is the kernel",
    "subscripts": "a letter for each axis of each operand, commas between operands, those of the result behind ->",
    "tensordot.axes": "how many axes, or two lists of them",
    "topk.k": "how many entries",
    "variance": "that of each channel where it is not the batch's",
    "wrap_index.n": "length of the axis",
    "shape": "shape of the result",
}
LARGEST = 12
"""Entries of an operand in an example."""


def describe(op: Op | Composite) -> str:
    """The docstring of an op: what it is, formula, parameters, the rule of each edge, an example that runs.

    Example:
        >>> from lab.ops import PRIMITIVES
        >>> describe(PRIMITIVES["sqrt"]).splitlines()[2:4]
        ['Formula:', '    out = sqrt(x)']
    """
    return op.doc + "\n\n" + "\n".join(_lines(op))


def _lines(op: Op | Composite) -> Iterator[str]:
    if isinstance(op, Op) and op.formula:
        yield from ("Formula:", f"    out = {op.formula}")
    if op.defaults:
        yield "Args:"
        for name, default in op.defaults.items():
            leads = isinstance(op, Composite) and name == op.leading
            yield f"    {name}: {_meaning(op.name, name)}" + ("." if leads else f"; {default!r} unless given.")
    if isinstance(op, Composite):
        yield from ("Gradient:", "    that of the operations it is made of, which the graph shows.")
    else:
        yield "Gradient, from the cotangent `ct` of the result:"
        for i, argument in enumerate(op.arguments):
            yield f"    {argument.lstrip('*')}: {op.rule_text(i) or 'none'}"
    if isinstance(op, Op) and op.elementwise:
        yield "Shapes:"
        several = f"    {', '.join(op.arguments)}: broadcast, trailing axes first."
        yield several if len(op.arguments) > 1 else "    result: the shape of x."
    if shown := _example(op):
        yield from ("Example:", *(f"    {line}" for line in shown))


def _meaning(op: str, parameter: str) -> str:
    return _PARAMETERS.get(f"{op}.{parameter}") or _PARAMETERS.get(parameter, "a parameter")


def _example(op: Op | Composite) -> list[str]:
    def size(sample: Sample) -> int:
        return max(int(np.prod(shape)) for shape in sample.shapes)

    for sample in op.samples:
        if op.reference is None or not 1 < size(sample) <= LARGEST or any(k[0] not in "fbip" for k in sample.kinds):
            continue
        operands = list(_operands(sample))
        try:
            with np.errstate(all="raise", under="ignore"):
                result = op.reference(*operands, **sample.params)
        except (FloatingPointError, np.linalg.LinAlgError):  # not defined there, as arcsin(3)
            operands = [x.round(2) for x in sample.draw()]
            result = op.reference(*operands, **sample.params)
        several = isinstance(result, list | tuple)
        shown = getattr(result, "_make", type(result))(map(_shown, result)) if several else _shown(result)
        lines = repr(shown).splitlines()
        if all(line.strip() for line in lines):  # a docstring's example ends at a blank line
            return [">>> import lab", f">>> {_call(op, sample, operands)}", *lines]
    return []


def _shown(result: Any) -> Any:
    array = np.asarray(result)
    return wrap(array + 0.0 if array.dtype.kind == "f" else array)  # a reference may say -0


def _call(op: Op | Composite, sample: Sample, operands: list[Any]) -> str:
    words = [f"lab.tensor({x.tolist()})" for x in operands]
    if isinstance(op, Composite) and op.sequence:
        words = [f"[{', '.join(words)}]"]
    params = dict(sample.params)
    if isinstance(op, Composite) and op.leading:
        words.insert(0, repr(params.pop(op.leading)))
    return f"lab.{op.name}({', '.join(words + [f'{n}={v!r}' for n, v in params.items()])})"


def _operands(sample: Sample) -> Iterator[Any]:
    kinds = sample.kinds * len(sample.shapes) if len(sample.kinds) == 1 else sample.kinds
    signed = bool(np.ravel(sample.domain)[0] <= -2)
    for i, (shape, kind) in enumerate(zip(sample.shapes, kinds, strict=True)):
        yield _operand(shape, kind, i, signed=signed)


def _operand(shape: tuple[int, ...], kind: str, number: int, *, signed: bool) -> Any:
    count = np.arange(int(np.prod(shape))).reshape(shape)
    if kind == "b":
        return count % 2 == 0
    if kind[0] == "i":
        return count % int(kind[1:])
    if kind == "p":
        return np.ones(shape) + np.eye(shape[-1])
    minus = (count + number) % 2 == 1 if signed else False
    return (0.5 + number + 0.5 * count) * np.where(minus, -1, 1)
