"""Rows and columns: how the axes of the largest values of a loop part, and how all that it reads lies along them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lab.graph.ir import Atom, Equation, Var
from lab.shapes import Shape, normal_axes

REDUCTIONS = ("sum", "max", "min")


class Space(NamedTuple):
    """Rows and columns.

    Attributes:
        shape: of a value that has an entry for each column of each row.
        split: where its axes part, from the end: those behind are the columns, all others together the rows.
        cycle: so many of the first axes only repeat the rows of a cycle, as the batch does with channels; 0: none do.
    """

    shape: Shape
    split: int = -1
    cycle: int = 0

    @property
    def n_columns(self) -> int:
        return math.prod(self.shape[self.split :])

    @property
    def n_rows(self) -> int:
        return math.prod(self.shape[: self.split])

    @property
    def n_cycle(self) -> int:
        return math.prod(self.shape[self.cycle : self.split])

    def layout(self, shape: Shape) -> str:
        """How an operand of this shape lies beside a full value, "" if it does not.

        Example:
            >>> space = Space((4, 3))
            >>> [space.layout(s) for s in ((4, 3), (3,), (1, 3), (4, 1), (), (4,))]
            ['full', 'row', 'row', 'column', 'single', '']
            >>> Space((8, 4, 5, 5), -2, 1).layout((4, 1, 1))
            'cycle'
        """
        if math.prod(shape) == 1:
            return "full" if tuple(shape) == self.shape else "single"
        padded = (1,) * (len(self.shape) - len(shape)) + tuple(shape)
        head, tail = padded[: self.split], padded[self.split :]
        if padded == self.shape:
            return "full"
        if head == self.shape[: self.split] and math.prod(tail) == 1:
            return "column"
        if tail == self.shape[self.split :] and math.prod(head) == 1:
            return "row"
        turns = (1,) * self.cycle + self.shape[self.cycle : self.split]
        return "cycle" if self.cycle and head == turns and math.prod(tail) == 1 else ""

    def is_column(self, shape: Shape) -> bool:
        """Whether it is the shape of one value for each row, with or without the axes of the columns."""
        rows = self.shape[: self.split]
        return tuple(shape) in (rows, (*rows, *(1,) * -self.split))

    def over(self, axes: Shape) -> str:
        """What a reduction over these axes of a full value adds up, "" if that is nothing here."""
        n = len(self.shape)
        first, last = tuple(range(n + self.split)), tuple(range(n + self.split, n))
        known = {last: "columns", first: "rows", (*first, *last): "all"}
        if self.cycle:
            known.setdefault((*first[: self.cycle], *last), "cycle")
        return known.get(axes, "")


def space_of(e: Equation, makers: Mapping[int, Equation]) -> Space:
    """The space that an equation would begin."""
    if e.op.name not in (*REDUCTIONS, "nll"):
        return _space_beside(tuple(e.out.spec.shape) or (1,), [_before_broadcast(a, makers) for a in e.inputs])
    shape = tuple(e.inputs[0].spec.shape) or (1,)
    axes = () if e.op.name == "nll" else normal_axes(e.params["axis"], len(e.inputs[0].spec.shape))
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    whole = kept == list(range(kept[0], kept[-1] + 1)) if kept else False
    if not whole or not axes or kept[-1] == len(shape) - 1:
        return Space(shape)
    return Space(shape, kept[-1] + 1 - len(shape), kept[0])


def _space_beside(shape: Shape, operands: Sequence[Shape]) -> Space:
    """The space of a full value and of the first operand that has some axes of it and none behind them."""
    for operand in operands:
        padded = (1,) * (len(shape) - len(operand)) + tuple(operand)
        wide = [axis for axis, n in enumerate(padded) if n != 1]
        if not wide or len(operand) > len(shape):
            continue
        start, stop = wide[0], wide[-1] + 1
        if stop < len(shape) and padded[start:stop] == shape[start:stop] and math.prod(shape[stop:]) > 1:
            return Space(shape, stop - len(shape), start if math.prod(shape[:start]) > 1 else 0)
    return Space(shape)


def _before_broadcast(a: Atom, makers: Mapping[int, Equation]) -> Shape:
    maker = makers.get(a.number) if isinstance(a, Var) else None
    return tuple((maker.inputs[0] if maker is not None and maker.op.name == "broadcast_to" else a).spec.shape)
