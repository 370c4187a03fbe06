"""Words that several views share: numbers with few digits, amounts of bytes, times, shares, why a rank was lost."""

from __future__ import annotations

import math

from widgets.pictures.theme import MINUS, short


def number(value: float, digits: int = 3) -> str:
    """With so many digits.

    Example:
        >>> number(-0.012345), number(14.0), number(1234.5), number(-0.012345, 2)
        ('−0.0123', '14.0', '1,234.5', '−0.012')
    """
    if not math.isfinite(value) or value == 0 or not 1e-3 <= abs(value) < 100:
        return short(value)
    text = f"{value:.{max(1, digits - 1 - math.floor(math.log10(abs(value))))}f}".rstrip("0")
    return (text + "0" if text.endswith(".") else text).replace("-", MINUS)


def n_bytes(count: float) -> str:
    """A number of bytes.

    Example:
        >>> n_bytes(96), n_bytes(2048), n_bytes(3 * 2**20 + 1)
        ('96 B', '2 KiB', '3 MiB')
    """
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.4g} B"


def milliseconds(time: float) -> str:
    """A time as one says it.

    Example:
        >>> milliseconds(12.34567), milliseconds(0.01234), milliseconds(2400.0)
        ('12.3 ms', '0.0123 ms', '2.4 s')
    """
    if abs(time) >= 1000:
        return f"{time / 1000:.3g} s"
    return f"{time:.3g} ms"


def share(part: float) -> str:
    """A share of the whole.

    Example:
        >>> share(3 / 11)
        '27.3 %'
    """
    return f"{100 * part:.1f} %"


def why_lost(rank: int, reason: str) -> str:
    """Why a rank was lost, to stand behind "rank 1 was lost", which a reason may say itself.

    Example:
        >>> why_lost(1, "rank 1 was lost: its worker left."), why_lost(1, "killed"), why_lost(1, "rank 1 was lost")
        ('its worker left', 'killed', '')
    """
    return reason.removeprefix(f"rank {rank} was lost").lstrip(": ").rstrip(".")
