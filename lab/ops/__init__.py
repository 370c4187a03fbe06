"""The op table: one record for each operation, by family.

An op or a function made of ops is an attribute of this room by its name in the table, `ops.tanh`, `ops.sum`.
"""

from typing import Any

from lab.ops import (
    activations,
    along,
    arithmetic,
    bilinear,
    comm,
    comparisons,
    contraction,
    convolution,
    convolutions,
    counts,
    determinants,
    exponentials,
    factors,
    index,
    joining,
    linalg,
    losses,
    moving,
    nn,
    normalizing,
    norms,
    pairing,
    picking,
    pooling,
    positions,
    products,
    random,
    ranking,
    reduce,
    repeating,
    rows,
    scans,
    sequences,
    shape,
    statistics,
    systems,
    triangles,
    trigonometry,
)
from lab.ops.composite import COMPOSITES, Composite, composite
from lab.ops.elementwise import elementwise
from lab.ops.primitive import PRIMITIVES, Op, Rule, primitive
from lab.ops.random import random_key
from lab.ops.sample import Sample

_FAMILIES = (
    activations, along, arithmetic, bilinear, comm, comparisons, contraction, convolution, convolutions, counts,
    determinants, exponentials, factors, index, joining, linalg, losses, moving, nn, normalizing, norms, pairing,
    picking, pooling, positions, products, random, ranking, reduce, repeating, rows, scans, sequences, shape,
    statistics, systems, triangles, trigonometry,
)  # fmt: skip
"""Each file enters its records by being imported."""

NAMES: tuple[str, ...] = tuple(sorted((*PRIMITIVES, *COMPOSITES)))
"""What the lab brings; whatever a user defines is in the tables, too, and not here."""

__all__ = [
    "COMPOSITES", "NAMES", "PRIMITIVES", "Composite", "Op", "Rule", "Sample", "composite", "elementwise", "primitive",
    "random_key",
]  # fmt: skip


def record(name: str) -> Op | Composite:
    """The record of an op or of a function made of ops.

    Raises:
        KeyError: no table has that name.

    Example:
        >>> record("tanh")
        <op tanh(x)>
    """
    return PRIMITIVES[name] if name in PRIMITIVES else COMPOSITES[name]


def records() -> tuple[Op | Composite, ...]:
    """All records of both tables.

    Example:
        >>> len(records()) == len(PRIMITIVES) + len(COMPOSITES)
        True
    """
    return (*PRIMITIVES.values(), *COMPOSITES.values())


def __getattr__(name: str) -> Any:
    if name in PRIMITIVES:
        return PRIMITIVES[name]
    if name in COMPOSITES:
        return COMPOSITES[name].apply
    raise AttributeError(f"module 'lab.ops' has no attribute {name!r}")
