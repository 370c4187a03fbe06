"""Fewer bits an entry: half of them, eight, or its sign alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.checks import whole
from lab.errors import ArgumentError
from lab.parallel.compression.hook import Compressor, Shapes, Vector, sum_of_rows
from lab.parallel.ranks.runtime import Comm
from lab.words import shown


@dataclass(frozen=True)
class Cast(Compressor):
    """Sum in float16: half the bytes of float32. An entry beyond 65,504 becomes inf, which is told as any inf is.

    Without error feedback by default, as it is used: what rounding takes is small.

    Example:
        >>> from lab.parallel import run_ranks
        >>> def program(comm):
        ...     gradient = np.full(3, 0.1, np.float32)
        ...     Cast()(comm, gradient, {}, [(3,)])
        ...     return gradient.tolist()
        >>> run_ranks(program, world_size=2)[0]
        [0.199951171875, 0.199951171875, 0.199951171875]
    """

    error_feedback: bool = False

    def send(self, comm: Comm, gradient: Vector, memory: dict[str, Any], shapes: Shapes) -> Vector:
        with np.errstate(over="ignore"):
            half = gradient.astype(np.float16)
        mine = half.astype(gradient.dtype)
        comm.all_reduce_(half)
        gradient[...] = half
        return mine


@dataclass(frozen=True)
class Quantized(Compressor):
    """Entries as whole numbers of `bits` bits times a scale of each block: 8 bits a quarter, 1 bit a 32nd of float32.

    Each rank sends its numbers to all, which add them: (n - 1) times the compressed bytes, where a ring all-reduce
    sends 2 (n - 1) / n of the whole. With 8 bits the scale is the largest entry / 127; with one it is the mean size of
    the entries, which keep their signs alone (Seide and others 2014): without error feedback that leads astray.

    Args:
        bits: 8 or 1.
        block: entries that share a scale.

    Raises:
        ArgumentError: other bits, or no block.

    Example:
        >>> from lab.parallel import run_ranks
        >>> def program(comm):
        ...     gradient = np.array([1.0, -0.5, 0.25], np.float32)
        ...     Quantized(8)(comm, gradient, {}, [(3,)])
        ...     return [round(entry, 3) for entry in gradient.tolist()]
        >>> run_ranks(program, world_size=2)[1]
        [2.0, -1.008, 0.504]
    """

    bits: int = 8
    block: int = 4096

    def __init__(self, bits: int = 8, block: int = 4096, error_feedback: bool = True) -> None:
        if bits not in (1, 8):
            raise ArgumentError("a number has 8 bits or 1", given=f"bits={shown(bits)}", hint="Quantized(8)")
        block = whole("block", block, least=8, hint="4096 entries share a scale")
        for name, value in (("bits", bits), ("block", block), ("error_feedback", error_feedback)):
            object.__setattr__(self, name, value)

    def send(self, comm: Comm, gradient: Vector, memory: dict[str, Any], shapes: Shapes) -> Vector:
        numbers, scales = self._packed(gradient)
        all_numbers, all_scales = comm.all_gather(numbers), comm.all_gather(scales)
        parts = [self._unpacked(n, s, gradient) for n, s in zip(all_numbers, all_scales, strict=True)]
        sum_of_rows(np.stack(parts), gradient)
        mine: Vector = parts[comm.rank]
        return mine

    def _blocks(self, n: int) -> Vector:
        return np.arange(0, n, self.block)

    def _packed(self, gradient: Vector) -> tuple[Vector, Vector]:
        sizes, starts = np.abs(gradient), self._blocks(len(gradient))
        if self.bits == 1:
            lengths = np.diff([*starts, len(gradient)])
            return np.packbits(gradient >= 0), (np.add.reduceat(sizes, starts) / lengths).astype(np.float32)
        scales = (np.maximum.reduceat(sizes, starts) / 127).astype(np.float32)
        each = np.repeat(np.where(scales > 0, scales, 1), self.block)[: len(gradient)]
        return np.rint(gradient / each).clip(-127, 127).astype(np.int8), scales

    def _unpacked(self, numbers: Vector, scales: Vector, like: Vector) -> Vector:
        each = np.repeat(scales, self.block)[: len(like)]
        if self.bits == 1:
            numbers = np.unpackbits(numbers, count=len(like)).astype(np.int8) * 2 - 1
        found: Vector = (numbers * each).astype(like.dtype)
        return found
