"""How what a rank holds is written: numbers, whose parts they are the sum of, and bytes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

import numpy as np

from lab.events.event import Array
from lab.parallel.paper.plans import chunks
from widgets.pictures.measure import text_width
from widgets.pictures.theme import MINUS, short
from widgets.views.collective.state import Counts, Piece
from widgets.views.words import number

FEW = 4
"""So many numbers are written out, if there is room; of more the mean."""


class Form(NamedTuple):
    """How all cells of a picture write their numbers, so that equal numbers look alike."""

    how: str
    """"each" of them, their "mean", or the mean with a "power" of ten where that is shorter."""
    digits: int


FORMS = (Form("each", 4), Form("mean", 4), Form("power", 3), Form("power", 2), Form("power", 1))
"""The first that has room in all cells is taken."""


Number = complex | float  # they are told apart, and written differently


def parts(counts: Counts) -> str:
    """Whose parts are in a sum: rank numbers joined by +, as often as they are in it; long runs are drawn together.

    Example:
        >>> parts((1, 0, 1, 1)), parts((1, 1, 1, 1)), parts((2, 1, 0)), parts((1, 1, 1, 1, 1, 0, 1, 0)), parts((0, 0))
        ('0+2+3', 'all 4', '0+0+1', '0–4+6', 'nothing')
    """
    n = len(counts)
    if n > 2 and counts == (1,) * n:
        return f"all {n}"
    if max(counts, default=0) > 1:
        ranks = [rank for rank, count in enumerate(counts) for _ in range(min(count, 3))]
        return "+".join(map(str, ranks[:5])) + ("+…" if len(ranks) > 5 else "")
    present = [rank for rank, count in enumerate(counts) if count]
    runs = [[r for _, r in group] for _, group in groupby(enumerate(present), key=lambda pair: pair[1] - pair[0])]
    words = [f"{run[0]}–{run[-1]}" if len(run) > 2 and n > 4 else "+".join(map(str, run)) for run in runs]
    return "+".join(words) or "nothing"


def parts_aloud(counts: Counts) -> str:
    """The same for a screen reader.

    Example:
        >>> parts_aloud((1, 0, 1)), parts_aloud((0, 1, 0)), parts_aloud((2, 0)), parts_aloud((1, 1))
        ('parts of ranks 0 and 2', 'part of rank 1', 'part of rank 0 twice', 'parts of all 2 ranks')
    """
    n = len(counts)
    if n > 1 and counts == (1,) * n:
        return f"parts of all {n} ranks"
    present = [f"{rank}{_times(count)}" for rank, count in enumerate(counts) if count]
    if len(present) < 2:
        return f"part of rank {present[0]}" if present else "no rank's part"
    return f"parts of ranks {', '.join(present[:-1])} and {present[-1]}"


def _times(count: int) -> str:
    return {1: "", 2: " twice"}.get(count, f" {count} times")


def written(value: Array | None, room: float, size: float = 14.0) -> str:
    """The numbers of a chunk if there are few and they fit into `room` pixels, else their mean; "" if not recorded.

    Example:
        >>> [written(value, 90) for value in (np.array([1.0, 2.5]), np.arange(100.0), np.array([]), None)]
        ['1.0 2.5', 'µ 49.5', 'empty', '']
        >>> written(np.array([1e4]), 50), written(np.array([-1.23e17]), 70), written(np.full(4, 1j), 60)
        ('1e4', '−1.2e17', 'µ 1j')
    """
    if value is None:
        return ""
    if value.size == 0:
        return "empty"
    texts = [" ".join(_each(value, digits)) for digits in (4, 3) if value.size <= FEW]
    mean, sign = _mean(value), "µ " if value.size > 1 else ""
    if value.size > 1 or value.dtype.kind in "fc":
        texts += [f"{sign}{_text(mean, digits)}" for digits in (3, 2, 1)]
    texts += [f"{sign}{power(mean, digits)}" for digits in (3, 2, 1)]
    return next((text for text in texts if text_width(text, size, bold=True) <= room), texts[-1])


def form_for(values: Iterable[Array], room: float) -> tuple[Form, float]:
    """The form in which all these numbers fit into `room` pixels, and the pixels that the longest of them takes.

    Example:
        >>> form_for([np.array([1.0, 1.0]), np.array([10.0, 10.0])], 100)[0]
        Form(how='each', digits=4)
        >>> form_for([np.array([1.0, 1.0]), np.full(2, 1234.5)], 80)[0]
        Form(how='mean', digits=4)
    """
    known = list(values)
    few = all(value.size <= FEW for value in known)
    need = 0.0
    for form in FORMS[0 if few else 1 :]:
        need = max((text_width(in_form(value, form), 14.0, bold=True) for value in known), default=0.0)
        if need <= room:
            break
    return form, need


def in_form(value: Array | None, form: Form) -> str:
    """The numbers of a chunk in the form of its picture; "" if not recorded.

    Example:
        >>> [in_form(np.full(2, x), Form("mean", 4)) for x in (1000.0, 1111.0, 10.0)]
        ['µ 1,000.0', 'µ 1,111.0', 'µ 10.0']
    """
    if value is None:
        return ""
    if value.size == 0:
        return "empty"
    if form.how == "each" and value.size <= FEW:
        return " ".join(_each(value))
    mean = _mean(value)
    if form.how == "power":
        text = power(mean, form.digits)
    else:
        text = short(mean) if isinstance(mean, float) else _text(mean, form.digits)
    return f"{'µ ' * (value.size > 1)}{text}"


def _each(value: Array, digits: int = 4) -> list[str]:
    if value.dtype.kind == "c":
        return [_text(complex(v), min(digits, 3)) for v in value.tolist()]
    if value.dtype.kind in "iub":
        return [short(int(v)) for v in value.tolist()]
    return [number(v, digits) if digits < 4 else short(v) for v in value.astype(np.float64).tolist()]


def _mean(value: Array) -> Number:
    with np.errstate(all="ignore"):
        if value.dtype.kind == "c":
            return complex(value.astype(np.complex128).mean())
        return float(value.astype(np.float64).mean())


def _text(value: Number, digits: int) -> str:
    """A number, complex ones as Python writes them."""
    return _joined(value, f".{digits}g") if isinstance(value, complex) else number(value, digits)


def power(value: Number, digits: int) -> str:
    """With a power of ten where that is shorter: what has no room would be cut, and be another number.

    Example:
        >>> power(1e4, 3), power(-1.234e17, 2), power(12.0, 3), power(1e5 + 2e5j, 2)
        ('1e4', '−1.2e17', '12', '1e5+2e5j')
    """
    if isinstance(value, complex):
        return _joined(value, f".{digits}g")
    whole, short_one = _tidy(f"{value:.{digits}g}"), _tidy(f"{value:.{digits - 1}e}")
    mantissa, e, exponent = short_one.partition("e")
    short_one = f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}{e}{exponent}"
    return min(whole, short_one, key=len)


def _joined(value: complex, digits: str) -> str:
    real, imaginary = (_tidy(format(part, digits)) for part in (value.real, value.imag))
    if value.imag == 0:
        return real
    if value.real == 0:
        return f"{imaginary}j"
    return f"{real}{'' if imaginary.startswith(MINUS) else '+'}{imaginary}j"


def _tidy(text: str) -> str:
    """A number as Python formats it, its power without what says nothing."""
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}{e}{int(exponent) if e else ''}".replace("-", MINUS)


def aloud(value: Array | None) -> str:
    """The numbers in words: all of a few, else mean and Euclidean norm.

    Example:
        >>> aloud(np.array([3.0, 4.0])), aloud(np.full(100, 2.0)), aloud(None)
        ('3.0 4.0', '100 numbers of mean 2.0 and norm 20.0', 'numbers not recorded')
    """
    if value is None:
        return "numbers not recorded"
    if value.size <= FEW:
        return " ".join(_each(value)) or "no numbers"
    with np.errstate(all="ignore"):
        norm = float(np.linalg.norm(value.astype(complex if value.dtype.kind == "c" else np.float64)))
    return f"{value.size:,} numbers of mean {_aloud_mean(value)} and norm {short(norm)}"


def _aloud_mean(value: Array) -> str:
    mean = _mean(value)
    return _text(mean, 4) if isinstance(mean, complex) else short(mean)


def finite(value: Array | None) -> bool:
    """Whether no entry is nan or infinite."""
    return value is None or value.dtype.kind not in "fc" or bool(np.isfinite(value).all())


def named(piece: Piece) -> str:
    """A piece in words: "chunk 2", "the whole buffer"."""
    return "the buffer" if piece.name == "x" else chunks(piece.start, piece.stop)
