"""How much room text takes: an estimate on the wide side, because the browser's font is not known in Python.

Layouts size their nodes with `node_size`; the SVG twin clips with `clip`, as `scene.js` does with the real font.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

LINE_HEIGHTS = (18.0, 16.0, 16.0)
"""Label, sublabel, gradient; as in scene.js."""

MONO = (
    "'DejaVu Sans Mono', ui-monospace, 'Cascadia Mono', Menlo, Consolas, 'Liberation Mono', monospace, "
    "'DejaVu Sans', sans-serif"
)
"""Fonts of code. Those that the letters of all others fit into come first."""
CODE_LETTER = 7.25
"""Pixels of a letter of code, at 12 pixels: 0.6 of it in all fonts of MONO, and a little."""

_NARROW = frozenset("ijlItfr.,:;'|!()[]{} ")
_WIDE = frozenset("mwMW@%—…")


@lru_cache(8192)
def text_width(text: str, size: float = 14.0, *, bold: bool = False) -> float:
    """Pixels that one line of text takes.

    Example:
        >>> text_width("") == 0.0 < text_width("il") < text_width("mw")
        True
    """
    return sum(map(_em, text)) * size * (1.1 if bold else 1.0)


@lru_cache(8192)
def _em(c: str) -> float:
    if c in _NARROW:
        return 0.36
    if c in _WIDE:
        return 0.95
    if ord(c) < 0x300:
        return 0.68 if c.isupper() else 0.62
    if unicodedata.combining(c) or unicodedata.category(c) in ("Cf", "Mn"):
        return 0.0
    return 1.2 if unicodedata.east_asian_width(c) in "WF" or ord(c) > 0x1F000 else 0.68


def node_size(label: str, sublabel: str = "", gradient: str = "", kind: str = "op") -> tuple[float, float]:
    """Width and height of a node that shows these lines, 64 to 240 pixels wide; longer lines are clipped when drawn.

    Example:
        >>> node_size("x"), node_size("x", "3.0", "grad 5.0", "leaf")
        ((64.0, 36.0), (84.0, 68.0))
    """
    lines = [(label, 14.0, True), (sublabel, 12.0, False), (gradient, 12.0, True)]
    widest = max(text_width(" ".join(text.split()), size, bold=bold) for text, size, bold in lines)
    width = min(240.0, max(64.0, 4 * -(-(widest + 28) // 4)))
    height = sum(high for (text, _, _), high in zip(lines, LINE_HEIGHTS, strict=True) if text) + 18
    if kind == "rank":
        across = max(64.0, width * 1.08, height + 14)
        return across, across
    return width, max(36.0, height)


def clip(text: str, width: float, size: float = 14.0, *, bold: bool = False) -> str:
    """The text on one line as far as it fits into `width` pixels, with an ellipsis.

    Example:
        >>> clip("abcdefgh", 40.0)
        'abc…'
    """
    line = re.sub(r"\s+", " ", text[:1000])
    if len(text) <= 1000 and text_width(line, size, bold=bold) <= width:
        return line
    room = width - text_width("…", size, bold=bold)
    kept = 0
    for c in line:
        room -= text_width(c, size, bold=bold)
        if room < 0:
            break
        kept += 1
    return f"{line[:kept]}…"
