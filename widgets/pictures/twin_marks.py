"""Marks of a scene as SVG elements: the lines, bars and words around its nodes, as `frontend/marks.js` draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from widgets.pictures.geometry import hatch, number
from widgets.pictures.measure import MONO, clip
from widgets.pictures.scene import MARKS_BELOW, Mark
from widgets.pictures.theme import INK
from widgets.pictures.twin import half_seen, label, tag

_WORDS: Mapping[str, tuple[float, bool, str]] = {
    "heading": (13.0, True, "text"), "text": (12.0, False, "muted"),
    "code": (12.0, False, "text"), "warning": (12.0, True, "trouble"),
}  # fmt: skip
"""Size, weight and colour."""

_SHAPES: Mapping[str, dict[str, object]] = {
    "grid": {"fill": "none", "stroke": "grid"},
    "ideal_forward": {"fill": "forward_span", "fill_opacity": 0.45, "stroke": "forward"},
    "ideal_backward": {"fill": "backward_span", "fill_opacity": 0.45, "stroke": "backward"},
    "level": {"fill": "line", "fill_opacity": 0.35},
    "peak": {"fill": "line", "fill_opacity": 0.75, "stroke": "done"},
    "track": {"fill": "surface", "stroke": "line", "rx": 3},
    "used": {"fill": "accent", "rx": 3},
    "full": {"fill": "trouble", "fill_opacity": 0.35, "stroke": "trouble", "rx": 3},
    "now": {"fill": "none", "stroke": "text", "stroke_width": 1.5, "stroke_dasharray": "3 3"},
}
"""Fill and stroke by the name of their colour."""
_HATCHED = {"ideal_backward": ("backward", 0.55), "full": ("trouble", 1)}


def marked(marks: Sequence[Mark]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The elements that lie under the nodes and those that lie over them.

    Example:
        >>> marked([Mark("a", "grid", 0, 0, 0, 9), Mark("b", "text", 0, 0, text="x < y")])[0]
        ('<path d="M0 0v9" fill="none" stroke="#E3E7EB"/>',)
    """
    drawn = [(mark.kind in MARKS_BELOW, _words(mark) if mark.kind in _WORDS else _shape(mark)) for mark in marks]
    return tuple(e for below, e in drawn if below), tuple(e for below, e in drawn if not below)


def _words(mark: Mark) -> str:
    size, bold, colour = _WORDS[mark.kind]
    text = clip(mark.text, mark.width, size, bold=bold) if mark.width else mark.text
    anchor = None if mark.anchor == "start" else mark.anchor
    family = MONO if mark.kind == "code" else None
    return label(text, mark.x, mark.y, size, fill=INK[colour], font_weight=600 if bold else None, text_anchor=anchor,
                 font_family=family, dy="0.35em")  # fmt: skip


def _shape(mark: Mark) -> str:
    named, x, y = _SHAPES[mark.kind], number(mark.x), number(mark.y)
    look = {key: INK.get(value, value) if isinstance(value, str) else value for key, value in named.items()}
    if not (mark.width and mark.height):
        way = f"h{number(mark.width)}" if mark.width else f"v{number(mark.height)}"
        return tag("path", d=f"M{x} {y}{way}", **look)
    box = tag("rect", x=float(mark.x), y=float(mark.y), width=float(mark.width), height=float(mark.height), **look)
    if mark.kind not in _HATCHED:
        return box
    colour, opacity = _HATCHED[mark.kind]
    lines = tag("path", d=hatch(mark.width, mark.height, 5.0), fill="none", stroke=INK[colour],
                opacity=half_seen(opacity), transform=f"translate({x} {y})")  # fmt: skip
    return tag("g", box + lines)
