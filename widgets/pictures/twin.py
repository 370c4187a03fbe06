"""A picture as SVG text: what GitHub, nbviewer, an exported page without JavaScript and a closed notebook show.

The card paints its own light background, so it reads on white and on dark pages, and carries title and description.
"""

from __future__ import annotations

from html import escape
from typing import Any, NamedTuple

from lab.errors import ViewError
from widgets.pictures.chart import Chart
from widgets.pictures.geometry import corner_radius, edge_shape, hatch, lanes, number
from widgets.pictures.measure import LINE_HEIGHTS, clip, text_width
from widgets.pictures.scene import SPANS, Edge, Node, Scene
from widgets.pictures.theme import INK, MADE, MARKS, THEMES, drawn_in, ink_on, tone_colour
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
    parts = [f' {name}="{_value(value)}"' for name, value in named]
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


class Drawing(NamedTuple):
    """A scene as SVG elements.

    Attributes:
        layers: what is drawn below, then above: lines, boxes, numbers on lines. Each element is complete.
        shift: by how much all of them are moved, as the value of `transform`.
    """

    layers: tuple[tuple[str, ...], ...]
    shift: str
    width: float
    height: float


def _scene(scene: Scene) -> str:
    drawn = drawing(scene)
    body = "".join("".join(layer) for layer in drawn.layers)
    return card(tag("g", body, transform=drawn.shift), drawn.width, drawn.height, scene)


def drawing(scene: Scene) -> Drawing:
    """The elements of a scene, each on its own."""
    from widgets.pictures.twin_marks import marked

    if not scene.nodes:
        width = 480.0 if scene.caption else 240.0  # room for the words that say why
        empty = label("nothing yet", width / 2, 44, 13, fill=INK["muted"], text_anchor="middle")
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
    lines = tuple(_line(edge, shape.line, shape.head) for edge, shape in shapes)
    boxes = tuple(_node(node, scene) for node in scene.nodes)
    numbers = tuple(_edge_label(edge, *shape.middle) for edge, shape in shapes if edge.label)
    below, above = marked(scene.marks)
    shift_x, shift_y = (width - (right - left)) / 2 - left, MARGIN - top
    shift = f"translate({number(shift_x)} {number(shift_y)})"
    layers = (lines, boxes, numbers)
    return Drawing((below, *layers, above) if scene.marks else layers, shift, width, height)


def _edge_colour(edge: Edge) -> str:
    own = {"forward": "forward", "backward": "backward", "store": "backward", "done": "done"}
    return INK[own.get(edge.state, "line")]


def _line(edge: Edge, line: str, head: str) -> str:
    colour, lively = _edge_colour(edge), edge.state in LIVELY_EDGES
    dash = {"backward": "8 5", "store": "4 4", "none": "0.5 5"}.get(edge.state)
    path = tag(
        "path",
        d=line,
        fill="none",
        stroke=colour,
        stroke_width=edge.width + 0.75 * lively,
        stroke_dasharray=dash,
        stroke_linecap="butt" if edge.state in ("backward", "store") else "round",
    )
    return path + ("" if edge.state == "none" else tag("path", d=head, fill=colour))


def _edge_label(edge: Edge, x: float, y: float) -> str:
    text = clip(edge.label, 180, 12)
    across = text_width(text, 12) + 10
    colour = _edge_colour(edge) if edge.state in LIVELY_EDGES else INK["muted"]
    ground = tag("rect", x=x - across / 2, y=y - 9, width=across, height=18, rx=6, fill=INK["surface"])
    return ground + label(text, x, y, 12, fill=colour, text_anchor="middle", dy="0.35em", font_weight=500)


def _outline(node: Node) -> dict[str, Any]:
    colour = {"new": "forward", "active": "forward", "done": "done", "trouble": "trouble"}.get(node.state, "line")
    width = {"active": 2.75, "trouble": 2.75, "done": 1.5}.get(node.state, 1.25)
    if node.kind in SPANS:
        colour = "text" if node.state == "active" else node.kind.removesuffix("_span")
        width = 2.5 if node.state == "active" else 1
    return {
        "stroke": INK[colour],
        "stroke_width": width,
        "stroke_dasharray": "5 4" if node.state == "waiting" else None,
    }


def _node(node: Node, scene: Scene) -> str:
    w, h = node.width, node.height
    r = min(corner_radius(node.kind, h), w / 2, h / 2)

    def box(grow: float, dx: float = 0.0, **look: object) -> str:
        rx, ry = (w / 2 + grow, h / 2 + grow) if node.kind == "rank" else (r + grow, None)
        return tag(
            "rect",
            x=-w / 2 - grow + dx,
            y=-h / 2 - grow - dx,
            width=w + 2 * grow,
            height=h + 2 * grow,
            rx=rx,
            ry=ry,
            **look,
        )

    toned = node.tone is not None and node.tone == node.tone
    calm = {"idle": "op", "stopped": "op", "trouble": "constant"}.get(node.state) if node.kind == "device" else None
    fill = tone_colour(node.tone or 0.0, scene.palette) if toned else INK.get(calm or node.kind, INK["op"])
    look = {"fill": "none" if node.kind in SPANS and node.state == "waiting" else fill, **_outline(node)}
    parts = [
        tag("title", words(node.aria or ", ".join(filter(None, (node.label, node.sublabel, node.gradient))))) or ""
    ]
    if node.id == scene.selected:
        parts.append(box(5, fill="none", stroke=INK["accent"], stroke_width=2.25))
    if node.kind == "group":
        parts += [box(0, dx, **look) for dx in (8.0, 4.0)]
    parts.append(box(0, **look))
    if node.kind == "output":
        parts.append(box(-3.5, fill="none", stroke=INK["line"], stroke_width=1))
    if node.kind == "backward_span":
        place = f"translate({number(-w / 2)} {number(-h / 2)})"
        parts.append(tag("path", d=hatch(w, h), fill="none", stroke=INK["backward"], opacity=0.55, transform=place))
    room = 1e4 if node.kind in SPANS else w * 0.78 if node.kind == "rank" else w - 2 * min(r, 12.0) + 2
    parts.append(_texts(node, ink_on(fill) if toned else None, room))
    if node.state in MARKS and node.kind not in SPANS:
        parts.append(_badge(node))
    return tag("g", "".join(parts), transform=f"translate({number(node.x)} {number(node.y)})")


def _texts(node: Node, ink: str | None, room: float) -> str:
    small, strong = node.kind in SPANS, "text" if node.kind == "device" else "backward"
    looks = ((11.0 if small else 14.0, True, "text"), (12.0, False, "muted"), (12.0, True, strong))
    halo = {"paint_order": "stroke", "stroke": INK[node.kind], "stroke_width": 3} if small else {}
    lines = [
        (text, *look, high)
        for text, look, high in zip((node.label, node.sublabel, node.gradient), looks, LINE_HEIGHTS, strict=True)
        if text
    ]
    y, parts = -sum(line[-1] for line in lines) / 2, []
    for text, size, bold, colour, high in lines:
        parts.append(
            label(
                clip(text, room, size, bold=bold),
                0,
                y + high / 2,
                size,
                fill=ink or INK[colour],
                text_anchor="middle",
                dy="0.35em",
                font_weight=600 if bold else None,
                **halo,
            )
        )
        y += high
    return "".join(parts)


def _badge(node: Node) -> str:
    w, h = node.width, node.height
    x, y = (w * 0.36, -h * 0.36) if node.kind == "rank" else (w / 2 - 3, -h / 2 + 2)
    colour = INK[
        {"new": "forward", "active": "forward", "trouble": "trouble", "stopped": "muted"}.get(node.state, "done")
    ]
    full = node.state in ("active", "trouble")
    disc = tag("circle", r=7.5, fill=colour if full else INK["surface"], stroke=colour, stroke_width=1.25)
    mark = tag(
        "path",
        d=MARKS[node.state],
        fill=INK["surface"] if node.state == "active" else "none",
        stroke=INK["surface"] if full else colour,
        stroke_width=1.75,
        stroke_linecap="round",
        stroke_linejoin="round",
    )
    return tag("g", disc + mark, transform=f"translate({number(x)} {number(y)})")
