"""Nodes of a scene as SVG elements: shape, texts, and the marks at their corners, as `frontend/nodes.js` draws them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from widgets.pictures.geometry import corner_radius, hatch, number
from widgets.pictures.measure import LINE_HEIGHTS, clip, text_width
from widgets.pictures.scene import SPANS, Node, Scene
from widgets.pictures.theme import INK, MARKS, ink_on, is_strong, tone_colour
from widgets.pictures.twin import dimmed, half_seen, label, tag, words

FOLD: Mapping[str, str] = {"closed": "M-3.5 0H3.5M0 -3.5V3.5", "open": "M-3.5 0H3.5"}


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


def node_element(node: Node, scene: Scene) -> str:
    """A node with its marks, at its place.

    Example:
        >>> node_element(Node("a", 40, 20, 64, 36, "x"), Scene()).startswith('<g transform="translate(40 20)"><title>x')
        True
    """
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
    lit = node.id in scene.lit
    if lit:
        look |= {"stroke": INK["text"], "stroke_width": 5 if is_strong() else 3}
    if node.kind == "frame":
        look |= {"fill": fill if toned else INK["group"], "fill_opacity": 0.35}
    parts = [
        tag("title", words(node.aria or ", ".join(filter(None, (node.label, node.sublabel, node.gradient))))) or ""
    ]
    if node.id == scene.selected:
        parts.append(box(5, fill="none", stroke=INK["accent"], stroke_width=2.25))
    if node.kind == "group":
        parts += [box(0, dx, **look) for dx in (8.0, 4.0)]
    parts.append(box(0, **look))
    ink = ink_on(fill) if toned and node.kind != "frame" else None
    if node.kind == "output":
        parts.append(box(-3.5, fill="none", stroke=ink or INK["line"], stroke_width=1))
    if node.kind == "backward_span":
        place = f"translate({number(-w / 2)} {number(-h / 2)})"
        lines = {"fill": "none", "stroke": INK["backward"], "opacity": half_seen(0.55), "transform": place}
        parts.append(tag("path", d=hatch(w, h), **lines))
    room = 1e4 if node.kind in SPANS else w * 0.78 if node.kind == "rank" else w - 2 * min(r, 12.0) + 2
    parts.append(_head(node) if node.kind == "frame" else _texts(node, ink, room))
    if node.state in MARKS and node.kind not in SPANS:
        parts.append(_badge(node))
    if node.fold:
        parts.append(_fold(node))
    if node.id in scene.pinned:
        parts.append(_pin(node))
    opacity = dimmed() if scene.lit and not lit else None
    return tag("g", "".join(parts), transform=f"translate({number(node.x)} {number(node.y)})", opacity=opacity)


def _head(node: Node) -> str:
    """The texts of a frame from its top left corner, one behind the other where there is room."""
    left, end = -node.width / 2 + (32 if node.fold else 12), node.width / 2 - 8
    x, y = left, -node.height / 2 + 15
    looks = (
        (node.label, 14.0, True, "text"),
        (node.sublabel, 12.0, False, "muted"),
        (node.gradient, 12.0, True, "backward"),
    )
    parts = []
    for text, size, bold, colour in looks:
        if not text:
            continue
        if x > left and text_width(text, size, bold=bold) > end - x:
            x, y = left, y + 17
        shown = clip(text, max(end - x, 0.0), size, bold=bold)
        look = {"fill": INK[colour], "dy": "0.35em", "font_weight": 600 if bold else None}
        parts.append(label(shown, x, y, size, **look))
        x += text_width(shown, size, bold=bold) + 10
    return "".join(parts)


def _fold(node: Node) -> str:
    """+ or -: whether it can be opened or closed, where somebody listens."""
    w, h = node.width, node.height
    x, y = (-w / 2 + 17, -h / 2 + 15) if node.kind == "frame" else (-w / 2 + 3, -h / 2 + 2)
    corner = tag(
        "rect", x=-7.5, y=-7.5, width=15, height=15, rx=3, fill=INK["surface"], stroke=INK["muted"], stroke_width=1.25
    )
    sign = tag("path", d=FOLD[node.fold], fill="none", stroke=INK["text"], stroke_width=1.75, stroke_linecap="round")
    return tag("g", corner + sign, transform=f"translate({number(x)} {number(y)})")


def _pin(node: Node) -> str:
    w, h = node.width, node.height
    x, y = (w * 0.36, h * 0.36) if node.kind == "rank" else (w / 2 - 3, h / 2 - 2)
    return tag("g", pin(), transform=f"translate({number(x)} {number(y)})")


def pin() -> str:
    """The mark of a pinned node, around (0, 0)."""
    disc = tag("circle", r=7.5, fill=INK["surface"], stroke=INK["accent"], stroke_width=1.25)
    return disc + tag("path", d=MARKS["pin"], fill=INK["accent"])


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
    return tag("g", badge(node.state), transform=f"translate({number(x)} {number(y)})")


def badge(state: str) -> str:
    """The mark of a state, around (0, 0)."""
    colour = INK[{"new": "forward", "active": "forward", "trouble": "trouble", "stopped": "muted"}.get(state, "done")]
    full = state in ("active", "trouble")
    disc = tag("circle", r=7.5, fill=colour if full else INK["surface"], stroke=colour, stroke_width=1.25)
    return disc + tag(
        "path",
        d=MARKS[state],
        fill=INK["surface"] if state == "active" else "none",
        stroke=INK["surface"] if full else colour,
        stroke_width=1.75,
        stroke_linecap="round",
        stroke_linejoin="round",
    )
