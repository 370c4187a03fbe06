"""What is remembered of a computation: a Leaf for each tensor that the user made, a Node for each operation.

Nodes carry increasing ids, so that any order by id is a topological order; they point at their parents only, so that a
graph that is dropped is freed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import count
from typing import Any, ClassVar, TypeAlias

import numpy as np

from lab.ops.primitive import PRIMITIVES, Op
from lab.shapes import Spec, folded_axes

next_id: Callable[[], int] = count(1).__next__
"""Ids of nodes and times of mutations: one clock, so that "recorded after the last mutation" is one comparison."""


class Leaf:
    """A tensor that requires a gradient and was not computed.

    Attributes:
        id: smaller than the id of every node computed from it.
        grad: None (no gradient yet), an array, or a Tensor after `create_graph`.
        hooks: called with the gradient; what they return, unless None, replaces it.
        name: given by the user, or the path of a parameter.
        generation: the bus generation to which it announced itself last.
    """

    __slots__ = ("generation", "grad", "hooks", "id", "name")

    def __init__(self, name: str = "") -> None:
        self.id = next_id()
        self.grad: Any = None
        self.hooks: list[Callable[[Any], Any]] | None = None
        self.name = name
        self.generation = -1


class Node:
    """One operation that ran.

    Attributes:
        id: larger than the ids of its parents.
        op: its record.
        parents: for each operand its node, None where nothing is tracked.
        saved: (output, *operands) as far as a wanted rule reads them, None elsewhere; None once freed by a walk. Read
            once in a walk: under `checkpoint` it is computed when it is iterated over.
        fit: for each operand the Spec that its gradient must be brought to, None where it fits; None if all do.
        params: parameters of the op, empty for most.
        hooks: called with the cotangent.
        where: "file, line n" in anomaly mode, else "".
    """

    __slots__ = ("fit", "hooks", "id", "op", "params", "parents", "saved", "where")

    generation: ClassVar[int] = 1 << 62
    """A leaf announces itself to new listeners; a node never needs to."""

    id: int
    op: Op
    parents: tuple[AnyNode | None, ...]
    saved: Iterable[Any] | None
    fit: tuple[Spec | None, ...] | None
    params: dict[str, Any]
    hooks: list[Callable[[Any], Any]] | None
    where: str


class NodeOfTwo(Node):
    """One operation on two operands: it holds its parents itself.

    Python's collector then has one object to look at where there were two, and in a large graph that is where the time
    goes.

    Attributes:
        a, b: the parents.
    """

    __slots__ = ("a", "b")
    a: AnyNode | None
    b: AnyNode | None

    @property
    def parents(self) -> tuple[AnyNode | None, ...]:
        """The parents as of any node."""
        return self.a, self.b

    @parents.setter
    def parents(self, both: tuple[AnyNode | None, ...]) -> None:
        self.a, self.b = both


AnyNode: TypeAlias = Leaf | Node

NO_PARAMS: dict[str, Any] = {}


def fit_of(
    parents: tuple[AnyNode | None, ...], args: tuple[Any, ...], out: Any, elementwise: bool
) -> tuple[Spec | None, ...] | None:
    """What the gradient of each tracked operand must be brought to, seen that the rules give it the dtype of `out`.

    Those of elementwise ops give it the shape of `out`, too; others the right one.
    """
    shape, dtype, fits = out.shape, out.dtype, False
    specs: list[Spec | None] = [None] * len(args)
    for i, parent in enumerate(parents):  # not a generator: that takes as long again
        if parent is not None:
            a = args[i]
            if (elementwise and a.shape != shape) or (a.dtype is not dtype and a.dtype != dtype):
                specs[i] = Spec(a.shape, a.dtype)
                fits = True
    return tuple(specs) if fits else None


def saved_of(op: Op, parents: tuple[AnyNode | None, ...], args: tuple[Any, ...], out: Any) -> tuple[Any, ...]:
    """(output, *operands) as far as the rules of the tracked operands read them."""
    reads_out, reads = False, [""] * len(args)
    for i, parent in enumerate(parents):
        rule = op.rule(i)
        if parent is None or rule is None:
            continue
        reads_out = reads_out or rule.reads_out
        for j in range(len(args)):
            word = rule.reads[0 if op.variadic else j] if rule.reads else ""
            if word == "value" or (word == "like" and reads[j] == ""):
                reads[j] = word
    kept = [
        firm(a, out)
        if word == "value"
        else Spec(a.shape, np.dtype(a.dtype))
        if word == "like" and hasattr(a, "dtype")
        else None
        for a, word in zip(args, reads, strict=True)
    ]
    return (out if reads_out else None, *kept)


def firm(a: Any, out: Any) -> Any:
    """An operand as its rules read it: a Python number becomes an array of the output's dtype.

    In a rule it may meet other numbers only, and what NumPy makes of those would not be weak any more.
    """
    if type(a) is float or type(a) is int:
        return np.asarray(a, out.dtype)
    return PRIMITIVES["cast"](a, dtype=out.dtype) if getattr(a, "weak", False) else a


def record(
    op: Op, parents: tuple[AnyNode | None, ...], args: tuple[Any, ...], out: Any, params: dict[str, Any]
) -> Node:
    """The general way to make a node: any number of operands, any kind of values."""
    node: Node = object.__new__(NodeOfTwo if len(parents) == 2 else Node)
    node.id = next_id()
    node.op, node.parents, node.params = op, parents, params
    node.saved = saved_of(op, parents, args, out)
    node.fit = fit_of(parents, args, out, op.elementwise)
    node.hooks, node.where = None, ""
    return node


BLOCK, FEW = 4096, 1 << 16
"""Numbers that are added up in a row, and entries of a matrix whose rows are, by a product with ones."""


@lru_cache(maxsize=64)
def ones_of(n: int, dtype: np.dtype[Any]) -> Any:
    """So many ones, made once."""
    return np.ones(n, dtype)


def _added_up(ct: Any, axes: tuple[int, ...]) -> Any:
    """The sum over axes. That of a bias is a product with ones: NumPy's takes four times as long."""
    if ct.dtype.char in "fd" and len(ct) <= BLOCK:
        if axes == (0,) and ct.ndim == 2 and ct.size <= FEW:
            return ones_of(len(ct), ct.dtype).dot(ct)
        if axes == (0, 2, 3) and ct.ndim == 4 and ct.flags.c_contiguous:  # images with channels
            n, c, h, w = ct.shape
            if 0 < h * w <= BLOCK:
                sums = ct.reshape(n * c, h * w).dot(ones_of(h * w, ct.dtype))
                return ones_of(n, ct.dtype).dot(sums.reshape(n, c))
    return np.add.reduce(ct, axis=axes, dtype=np.float32 if ct.dtype.char == "e" else None)  # as in `sum`


def fold_eager(ct: Any, spec: Spec) -> Any:
    """A cotangent array brought to the shape and dtype of its operand."""
    if ct.shape != spec.shape:
        axes = folded_axes(ct.shape, spec.shape)
        if axes:
            ct = _added_up(ct, axes)
        ct = ct.reshape(spec.shape) if ct.shape != spec.shape else ct
    return ct if ct.dtype == spec.dtype else np.asarray(ct).astype(spec.dtype)
