"""The two narrow formats of floating-point numbers: what fits into their 16 bits.

float16 has ten bits of fraction and a small window of exponents; bfloat16 has the exponents of float32 and seven bits.
"""

from __future__ import annotations

from typing import NamedTuple

from lab.errors import ArgumentError
from lab.words import one_of, shown


class Format(NamedTuple):
    """A format's window.

    Attributes:
        dtype: of the arrays that hold its numbers. NumPy has no bfloat16 of its own: there they are float32 arrays
            whose entries are rounded to bfloat16's, so their values are right and their bytes are twice as many.
        fraction_bits: behind the leading one.
        smallest, smallest_normal, largest: the window; below `smallest_normal` digits are lost one by one, half of
            `smallest` and less is zero.

    Example:
        >>> format_of("float16")
        Format(name='float16', dtype='float16', fraction_bits=10, smallest=2^-24, smallest_normal=2^-14, largest=65504)
    """

    name: str
    dtype: str
    fraction_bits: int
    smallest: float
    smallest_normal: float
    largest: float

    def __repr__(self) -> str:
        low, normal = (f"2^{x.hex().partition('p')[2]}" for x in (self.smallest, self.smallest_normal))
        return (f"Format(name={self.name!r}, dtype={self.dtype!r}, fraction_bits={self.fraction_bits}, smallest={low}, "
                f"smallest_normal={normal}, largest={self.largest:.6g})")  # fmt: skip


FLOAT16 = Format("float16", "float16", 10, 2.0**-24, 2.0**-14, 65504.0)
BFLOAT16 = Format("bfloat16", "float32", 7, 2.0**-133, 2.0**-126, (2 - 2.0**-7) * 2.0**127)
FORMATS = {found.name: found for found in (FLOAT16, BFLOAT16)}


def format_of(name: object) -> Format:
    """The format of this name.

    Raises:
        ArgumentError: there is none.
    """
    if not (isinstance(name, str) and name in FORMATS):
        raise ArgumentError("a narrow format is float16 or bfloat16", given=shown(name), hint=one_of(name, FORMATS))
    return FORMATS[name]
