"""A picture as a JSON tree: what `scene.js` and `chart.js` read, checked and free of what JSON cannot say.

Node and edge ids are keys with "#" in front, so that no learner's name ("12", "__proto__") has a meaning in JavaScript.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lab.errors import ViewError
from widgets.pictures.chart import Chart
from widgets.pictures.patch import BLOCK, FORBIDDEN, Grown, Json
from widgets.pictures.scene import Edge, Mark, Node, Scene

Picture = Scene | Chart

MOST_CHARACTERS = 20_000
"""Longer texts are cut, with a note: no label needs more, and a 100 MB name must not reach the browser."""


_BAD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Control characters, halves of surrogate pairs, and the two that XML forbids."""


def text_of(text: str) -> str:
    """Text that JSON, HTML and SVG can all hold: no control characters, no lone surrogates, at most MOST_CHARACTERS.

    Example:
        >>> text_of("a" + chr(0) + "b")
        'a\N{REPLACEMENT CHARACTER}b'
    """
    if len(text) > MOST_CHARACTERS:
        text = f"{text[:MOST_CHARACTERS]}… ({len(text)} characters)"
    if text.isprintable():
        return text
    return _BAD.sub("\N{REPLACEMENT CHARACTER}", text)


def tree_of(picture: Picture, before: tuple[Picture, dict[str, Json]] | None = None) -> dict[str, Json]:
    """The picture as a tree of plain JSON values.

    Args:
        before: an earlier picture with its tree: nodes and edges that are the same objects share their part of it.

    Raises:
        ViewError: ids that are not unique, an edge or token that names something that is not there.

    Example:
        >>> tree_of(Scene((Node("a", 0, 0, 40, 20, "x"),)))["nodes"]["#a"]
        {'x': 0.0, 'y': 0.0, 'w': 40.0, 'h': 20.0, 'label': 'x', 'kind': 'op'}
    """
    if not isinstance(picture, Scene):
        return _chart(picture)
    old, tree = before if before is not None else (None, {})
    return _scene(picture, old if isinstance(old, Scene) else Scene(), tree)


def _scene(scene: Scene, old: Scene, tree: dict[str, Json]) -> dict[str, Json]:
    nodes, kept = _parts(old.nodes, scene.nodes, tree.get("nodes", {}), _node)
    edges, fresh = _parts(old.edges, scene.edges, tree.get("edges", {}), _edge)
    _check_unique(scene.nodes, nodes, "node")
    _check_unique(scene.edges, edges, "edge")
    marks = {f"#{mark.id}": _mark(mark) for mark in scene.marks}
    _check_unique(scene.marks, marks, "mark")
    for edge in scene.edges if kept is None or fresh is None else fresh:  # the nodes that were there still are
        for end in (edge.source, edge.target):
            if f"#{end}" not in nodes:
                raise ViewError(
                    "an edge names a node that the scene does not have", given=f"edge {edge.id!r}, node {end!r}"
                )
    for token in scene.tokens:
        if f"#{token.edge}" not in edges:
            raise ViewError("a token names an edge that the scene does not have", given=repr(token.edge))
    return {
        "type": "scene",
        "title": text_of(scene.title),
        "caption": text_of(scene.caption),
        "palette": scene.palette,
        **({"extent": [_pixel(v) for v in scene.extent]} if any(scene.extent) else {}),
        "selected": f"#{scene.selected}" if scene.selected else "",
        "legend": [[mark, text_of(words)] for mark, words in scene.legend],
        "nodes": nodes,
        "edges": edges,
        **({"marks": marks} if marks else {}),
        **({"lit": sorted(f"#{name}" for name in scene.lit)} if scene.lit else {}),
        **({"pinned": sorted(f"#{name}" for name in scene.pinned)} if scene.pinned else {}),
        **_present(provenance=scene.provenance, made=scene.made, instead="" if nodes else scene.instead),
        **_present(found=text_of(scene.found)),
        "tokens": [
            {
                "edge": f"#{t.edge}",
                "delay": t.delay,
                "duration": t.duration,
                "backward": t.backward,
                "label": text_of(t.label),
                **({"square": True} if t.square else {}),
            }
            for t in scene.tokens
        ],
    }


def _parts(
    old: Sequence[Any], new: Sequence[Any], tree: dict[str, Json], make: Callable[[Any], dict[str, Json]]
) -> tuple[dict[str, Json], list[Any] | None]:
    """The parts by key, and those that are not as they were; None where it was not the same list that went on."""
    if not old or len(new) < len(old) or len(tree) != len(old):
        return _all_parts(new, make), None
    made, fresh = Grown(tree), []
    for k in range(0, len(old), BLOCK):
        if old[k : k + BLOCK] == new[k : k + BLOCK]:  # at once where they are the same objects
            continue
        for before, part in zip(old[k : k + BLOCK], new[k : k + BLOCK], strict=False):
            if before is not part:
                if before.id != part.id:
                    return _all_parts(new, make), None
                fresh.append(part)
    fresh.extend(new[len(old) :])
    for part in fresh:
        made[f"#{part.id}"] = make(part)
        made.changed.append(f"#{part.id}")
    return made, fresh


def _all_parts(parts: Sequence[Any], make: Callable[[Any], dict[str, Json]]) -> dict[str, Json]:
    return Grown({f"#{part.id}": make(part) for part in parts})


def _check_unique(
    items: Sequence[Node] | Sequence[Edge] | Sequence[Mark], found: Mapping[str, object], what: str
) -> None:
    if len(found) != len(items):
        ids = [item.id for item in items]
        twice = next(name for name in ids if ids.count(name) > 1)
        raise ViewError(
            f"two {what}s of a scene have the same id", given=repr(twice), hint="ids are unique within a scene"
        )


def _node(node: Node) -> dict[str, Json]:
    box = {"x": _pixel(node.x), "y": _pixel(node.y), "w": _pixel(node.width), "h": _pixel(node.height)}
    texts = _present(label=node.label, sublabel=node.sublabel, gradient=node.gradient, aria=node.aria)
    tone: dict[str, Json] = {} if node.tone is None or math.isnan(node.tone) else {"tone": round(float(node.tone), 3)}
    state = {} if node.state == "idle" else {"state": node.state}
    fold = {"fold": node.fold} if node.fold else {}
    return {**box, **texts, "kind": node.kind, **state, **tone, **fold}


def _mark(mark: Mark) -> dict[str, Json]:
    box = {"x": _pixel(mark.x), "y": _pixel(mark.y), "w": _pixel(mark.width), "h": _pixel(mark.height)}
    anchor = {} if mark.anchor == "start" else {"anchor": mark.anchor}
    return {"kind": mark.kind, **box, **_present(text=mark.text), **anchor}


def _edge(edge: Edge) -> dict[str, Json]:
    bends = {"bends": [[_pixel(x), _pixel(y)] for x, y in edge.bends]} if edge.bends else {}
    state = {} if edge.state == "idle" else {"state": edge.state}
    width = {} if edge.width == 1.5 else {"width": round(float(edge.width), 2)}
    return {"s": f"#{edge.source}", "t": f"#{edge.target}", **bends, **_present(label=edge.label), **state, **width}


def _present(**texts: str) -> dict[str, str]:
    return {name: text_of(text) for name, text in texts.items() if text}


def _pixel(value: float) -> float:
    return round(float(value), 1) if math.isfinite(value) else 0.0


def _chart(chart: Chart) -> dict[str, Json]:
    figure = chart.figure.to_dict()
    layout = {key: value for key, value in figure["layout"].items() if key != "template"}
    return {
        "type": "chart",
        "title": text_of(chart.title),
        "caption": text_of(chart.caption),
        "data": plain(figure["data"]),
        "layout": plain(layout),
        **_present(provenance=chart.provenance, made=chart.made),
    }


def plain(value: Any) -> Json:
    """Any value of a figure as strict JSON: tuples and arrays become lists, nan and infinities null (drawn as gaps).

    Example:
        >>> plain({"y": (1.0, float("nan"))})
        {'y': [1.0, None]}
    """
    if isinstance(value, str):
        return text_of(value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return (
            _packed(value)
            if "bdata" in value
            else {str(k): plain(v) for k, v in value.items() if str(k) not in FORBIDDEN}
        )
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    return str(value)


def _packed(array: Mapping[str, Json]) -> dict[str, Json]:
    """Plotly's packed array as it is: its base64 text may be longer than any label."""
    return {key: array[key] for key in ("dtype", "bdata", "shape") if key in array}
