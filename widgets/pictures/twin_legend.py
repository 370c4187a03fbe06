"""The legend below a still scene: its marks, each drawn as in the picture, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from widgets.pictures.geometry import EdgeShape, number
from widgets.pictures.measure import text_width
from widgets.pictures.scene import SPANS, Edge, Node, Scene
from widgets.pictures.theme import INK, KIND_WORDS, MARKS
from widgets.pictures.twin import LIVELY_EDGES, MARGIN, label, line_element, tag
from widgets.pictures.twin_nodes import badge, node_element, pin

ROW, SIZE, SIGN = 22.0, 12.0, 30.0
RADII: Mapping[str, float] = {"op": 6.0, "rank": 7.0, "constant": 1.0}
"""Of the corners of small boxes, which in the measures of large ones would all be round."""


def legend_below(legend: Sequence[tuple[str, str]], width: float, height: float) -> tuple[str, float]:
    """The legend in rows under a drawing of this size, and the height of both.

    Example:
        >>> drawn, height = legend_below([("done", "finished"), ("op", "")], 240, 100)
        >>> "finished" in drawn, "operation" in drawn, height
        (True, True, 126.0)
    """
    if not legend:
        return "", height
    x, y, parts = MARGIN, height + ROW / 2, []
    for mark, said in legend:
        text = said or KIND_WORDS.get(mark, mark)
        wide = SIGN + 6 + text_width(text, SIZE) + 18
        if x > MARGIN and x + wide > width:
            x, y = MARGIN, y + ROW
        parts.append(tag("g", sign(mark), transform=f"translate({number(x + SIGN / 2)} {number(y)})"))
        parts.append(label(text, x + SIGN + 6, y, SIZE, fill=INK["muted"], dy="0.35em"))
        x += wide
    return "".join(parts), y + ROW / 2 + 4


def sign(mark: str) -> str:
    """The mark of a legend around (0, 0): an edge, a badge, or a small box.

    "kind:state" is a bar in a state, "toned kind" a box whose fill says a gradient, not the kind: it has none.
    """
    if mark in (*LIVELY_EDGES, "none"):
        back = mark == "backward"
        line, head = ("M13 0H-6", "M-13 0L-5 -4V4Z") if back else ("M-13 0H6", "M13 0L5 -4V4Z")
        return line_element(Edge("", "", "", state=mark), EdgeShape(line, head, (0.0, 0.0)), ())
    if mark in MARKS:
        return pin() if mark == "pin" else badge(mark)
    kind, _, state = mark.removeprefix("toned ").partition(":")
    if kind in SPANS:
        return node_element(Node("sign", 0, 0, 24, 14, "", kind=kind, state=state or "idle"), Scene())
    wide = 14.0 if kind == "rank" else 24.0
    fill = "none" if mark.startswith("toned ") else INK.get(kind, INK["op"])
    inner = tag("rect", x=-9.5, y=-4.5, width=19.0, height=9.0, rx=1.5, fill="none", stroke=INK["line"])
    look = {"rx": RADII.get(kind, 3.0), "fill": fill, "stroke": INK["line"]}
    outer = tag("rect", x=-wide / 2, y=-7.0, width=wide, height=14.0, **look)
    return outer + inner * (kind == "output")
