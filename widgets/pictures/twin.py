"""A picture as SVG text: what GitHub, nbviewer, an exported page without JavaScript and a closed notebook show.

The card paints its own light background, so it reads on white and on dark pages, and carries title and description.
"""

from __future__ import annotations

from collections.abc import Collection
from html import escape
from typing import NamedTuple

from lab.errors import ViewError
from widgets.pictures.chart import Chart
from widgets.pictures.geometry import EdgeShape, Point, edge_shape, lanes, number
from widgets.pictures.measure import clip, text_width
from widgets.pictures.scene import Edge, Scene
from widgets.pictures.theme import INK, MADE, THEMES, drawn_in, is_strong
from widgets.pictures.tree import Picture, text_of, tree_of

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
MARGIN = 24.0
LIVELY_EDGES = ("forward", "backward", "store")
READABLE = 2400.0
"""Pixels; a wider drawing is not shrunk to the page, which scrolls instead: its texts would be too small to read."""


def svg_of(picture: Picture, theme: str = "light") -> str:
    """The picture as one `<svg>` element.

    Args:
        theme: one of `theme.THEMES`; the background is part of it.

    Raises:
        ViewError: a scene that contradicts itself, or no such theme.

    Example:
        >>> from widgets.pictures.scene import Node
        >>> svg_of(Scene((Node("a", 0, 0, 64, 36, "x < y"),), title="t")).count("x &lt; y")
        2
    """
    if theme not in THEMES:
        raise ViewError("there is no such theme", given=repr(theme), hint=f"one of {', '.join(THEMES)}")
    with drawn_in(theme):
        if isinstance(picture, Chart):
            from widgets.pictures.twin_chart import svg_of_chart

            return svg_of_chart(picture)
        tree_of(picture)  # says what is wrong with it
        return _scene(picture)


def tag(name: str, text: str = "", /, **attributes: object) -> str:
    """One element; attribute names with `_` for `-`, `class_` for `class`; None leaves an attribute out.

    Example:
        >>> tag("rect", x=1.0, stroke_width=2)
        '<rect x="1" stroke-width="2"/>'
    """
    named = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None)
    # A path is no text: cut like one, a long line would end early and say nothing of it.
    parts = [f' {name}="{value if name == "d" else _value(value)}"' for name, value in named]
    return f"<{name}{''.join(parts)}>{text}</{name}>" if text else f"<{name}{''.join(parts)}/>"


def _value(value: object) -> str:
    return number(value) if isinstance(value, float) else escape(text_of(str(value)))


def words(text: str) -> str:
    """Text for the inside of an element: escaped, without what XML forbids."""
    return escape(text_of(text), quote=False)


def label(text: str, x: float, y: float, size: float = 12, **attributes: object) -> str:
    """One line of text around or from (x, y)."""
    return tag("text", words(text), x=x, y=y, font_size=size, **{"fill": INK["text"], **attributes})


def card(body: str, width: float, height: float, picture: Picture) -> str:
    """The drawing on its background, with title, description and the caption below."""
    caption, full = caption_below(picture, width, height)
    return framed(body + caption, width, full, picture)


def caption_below(picture: Picture, width: float, height: float) -> tuple[str, float]:
    """The caption under a drawing of this size, below it where the numbers are from, and the height of all."""
    lines = _wrapped(picture.caption, width - 2 * MARGIN, 13.0)
    texts = [label(line, MARGIN, height + 14 + 19 * i, 13, fill=INK["muted"]) for i, line in enumerate(lines)]
    height += len(lines) * 19 + 10 if lines else 0
    mark = MADE.get(picture.made)
    begin = MARGIN + 16 if mark else MARGIN
    sources = _wrapped(picture.provenance, width - MARGIN - begin, 12.0)
    if mark and sources:
        texts.append(tag("path", d=mark, transform=f"translate({number(MARGIN + 5)} {number(height + 6)})", fill="none",
                         stroke=INK["text"], stroke_width=1.25, stroke_linejoin="round"))  # fmt: skip
    texts += [label(line, begin, height + 10 + 17 * i, 12, fill=INK["muted"]) for i, line in enumerate(sources)]
    return "".join(texts), height + (len(sources) * 17 + 8 if sources else 0)


def framed(body: str, width: float, height: float, picture: Picture) -> str:
    """An `<svg>` of this size with a background of its own and the picture's title and description."""
    title = picture.title or picture.caption or "picture"
    head = tag("title", words(title)) + (tag("desc", words(picture.caption)) if picture.caption else "")
    ground = tag("rect", width=width, height=height, rx=6, fill=INK["surface"])
    return tag(
        "svg",
        head + ground + body,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=text_of(title)[:300],
        font_family=FONT,
        style=f"max-width:{'none' if width > READABLE else '100%'};height:auto",
    )


def _wrapped(text: str, width: float, size: float) -> list[str]:
    lines = [""]
    for word in text_of(text)[:600].split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return [clip(line, width, size) for line in lines if line]


# --- scenes ---


def half_seen(opacity: float) -> float | None:
    """The opacity of what is half seen through; in high contrast nothing is."""
    return None if is_strong() else opacity


def dimmed() -> float | None:
    """The opacity of what does not stand out while something does."""
    return half_seen(0.4)


class Drawing(NamedTuple):
    """A scene as SVG elements.

    Attributes:
        layers: what is drawn below, then above: frames and lines, boxes, numbers on lines. Each element is complete.
        shift: by how much all of them are moved, as the value of `transform`.
    """

    layers: tuple[tuple[str, ...], ...]
    shift: str
    width: float
    height: float


def _scene(scene: Scene) -> str:
    from widgets.pictures.twin_legend import legend_below

    drawn = drawing(scene)
    body = tag("g", "".join("".join(layer) for layer in drawn.layers), transform=drawn.shift)
    legend, height = legend_below(scene.legend if scene.nodes else (), drawn.width, drawn.height)
    return card(body + legend, drawn.width, height, scene)


def drawing(scene: Scene) -> Drawing:
    """The elements of a scene, each on its own."""
    from widgets.pictures.twin_marks import marked
    from widgets.pictures.twin_nodes import node_element

    if not scene.nodes:
        width = 480.0 if scene.caption else 240.0  # room for the words that say why
        empty = label(scene.instead, width / 2, 44, 13, fill=INK["muted"], text_anchor="middle")
        return Drawing(((empty,),), "translate(0 0)", width, 72)
    nodes = {node.id: node for node in scene.nodes}
    offsets = lanes(scene.edges)
    places = [p for edge in scene.edges for p in edge.bends] + ([(0.0, 0.0), scene.extent] if any(scene.extent) else [])
    left = min(*(n.x - n.width / 2 for n in scene.nodes), *(x for x, _ in places), 1e9)
    right = max(*(n.x + n.width / 2 for n in scene.nodes), *(x for x, _ in places), -1e9)
    top = min(*(n.y - n.height / 2 for n in scene.nodes), *(y for _, y in places), 1e9)
    bottom = max(*(n.y + n.height / 2 for n in scene.nodes), *(y for _, y in places), -1e9)
    width, height = max(240.0, right - left + 2 * MARGIN + 12), bottom - top + 2 * MARGIN
    shapes = [(edge, edge_shape(edge, nodes, offsets.get(edge.id, 0.0))) for edge in scene.edges]
    lines = tuple(line_element(edge, shape, scene.lit) for edge, shape in shapes)
    frames = sorted((n for n in scene.nodes if n.kind == "frame"), key=lambda n: -n.width * n.height)
    behind = tuple(node_element(node, scene) for node in frames)
    boxes = tuple(node_element(node, scene) for node in scene.nodes if node.kind != "frame")
    faded = {edge.id for edge in scene.edges if scene.lit and edge.id not in scene.lit}
    numbers = tuple(_edge_label(edge, shape.middle, edge.id in faded) for edge, shape in shapes if edge.label)
    below, above = marked(scene.marks)
    shift_x, shift_y = (width - (right - left)) / 2 - left, MARGIN - top
    shift = f"translate({number(shift_x)} {number(shift_y)})"
    layers = (behind + lines, boxes, numbers)
    return Drawing((below, *layers, above) if scene.marks else layers, shift, width, height)


def _edge_colour(edge: Edge) -> str:
    own = {"forward": "forward", "backward": "backward", "store": "backward", "done": "done"}
    return INK[own.get(edge.state, "line")]


def line_element(edge: Edge, shape: EdgeShape, lit: Collection[str]) -> str:
    """An edge with its head, faded where others stand out."""
    colour, lively = _edge_colour(edge), edge.state in LIVELY_EDGES
    dash = {"backward": "8 5", "store": "4 4", "none": "0.5 5"}.get(edge.state)
    path = tag(
        "path",
        d=shape.line,
        fill="none",
        stroke=colour,
        stroke_width=edge.width + (2.0 if edge.id in lit else 0.75 * lively),
        stroke_dasharray=dash,
        stroke_linecap="butt" if edge.state in ("backward", "store") else "round",
    )
    drawn = path + ("" if edge.state == "none" else tag("path", d=shape.head, fill=colour))
    opacity = dimmed() if lit and edge.id not in lit else None
    return drawn if opacity is None else tag("g", drawn, opacity=opacity)


def _edge_label(edge: Edge, middle: Point, faded: bool) -> str:
    (x, y), text = middle, clip(edge.label, 180, 12)
    across = text_width(text, 12) + 10
    colour = _edge_colour(edge) if edge.state in LIVELY_EDGES else INK["muted"]
    ground = tag("rect", x=x - across / 2, y=y - 9, width=across, height=18, rx=6, fill=INK["surface"])
    look = {"text_anchor": "middle", "dy": "0.35em", "font_weight": 500, "opacity": dimmed() if faded else None}
    return ground + label(text, x, y, 12, fill=colour, **look)
