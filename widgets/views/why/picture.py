"""An explanation as a Scene: the paths from an entry to the result, an arrow as thick as what goes along it."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

from lab.autograd.explanation import Explanation, Path, Place
from widgets.asking.words import figures, place_words, rest_words, signed, sum_words
from widgets.layout.dag import layered
from widgets.pictures.measure import text_width
from widgets.pictures.scene import Edge, Node, Scene
from widgets.pictures.theme import short

MOST_STEPS = 16
"""A longer path is drawn with its middle left out."""
THIN, THICK = 1.5, 7.0
MOST_TONE = 0.75


class _Box(NamedTuple):
    label: str
    sublabel: str
    kind: str
    share: float
    aria: str


class _Arrow(NamedTuple):
    source: str
    target: str
    label: str
    share: float


def scene_of(explanation: Explanation, chosen: Path | None, title: str) -> Scene:
    """The paths, what is left, and what is no path, between the entry and the result."""
    boxes, arrows = _drawn(explanation)
    ids = list(boxes)
    number = {name: k for k, name in enumerate(ids)}
    sizes = [_size(boxes[name]) for name in ids]
    placed = layered(sizes, [(number[a.source], number[a.target]) for a in arrows.values()], layer_gap=96.0)
    largest = max((abs(a.share) for a in arrows.values()), default=0.0) or 1.0
    whole = max((abs(b.share) for b in boxes.values()), default=0.0) or 1.0
    nodes = [
        Node(
            name, *placed.centres[k], *sizes[k], box.label, box.sublabel, kind=box.kind, aria=box.aria,
            tone=MOST_TONE * box.share / whole if math.isfinite(box.share) and box.kind in ("leaf", "op") else None,
        )
        for k, (name, box) in enumerate(boxes.items())
    ]  # fmt: skip
    edges = [
        Edge(name, a.source, a.target, placed.bends[k], a.label, width=THIN + (THICK - THIN) * abs(a.share) / largest)
        for k, (name, a) in enumerate(arrows.items())
    ]
    caption = (
        f"{sum_words(explanation)}. On an arrow: the local derivative; its width: how much of the gradient goes that"
        " way. Orange: positive; blue: negative."
    )
    legend = tuple((kind, words) for kind, words in _WORDS.items() if any(node.kind == kind for node in nodes))
    return Scene(
        tuple(nodes), tuple(edges), (), caption, title, legend, palette="diverging",
        extent=(placed.width, placed.height), lit=_lit(chosen, _most_steps(explanation)) & {*boxes, *arrows},
    )  # fmt: skip


_WORDS = {"leaf": "the entry", "op": "entry of an operation", "output": "the result", "constant": "not drawn as paths"}


def _drawn(explanation: Explanation) -> tuple[dict[str, _Box], dict[str, _Arrow]]:
    write = figures(explanation)
    places, shares, arrows = dict[str, Place](), dict[str, float](), dict[str, _Arrow]()
    for path in explanation.paths:
        places |= {_key(place): place for place in path.places}
        hops = _hops(path, _most_steps(explanation))
        for name in (hops[0].source, *(hop.target for hop in hops)) if hops else (_key(path.places[0]),):
            shares[name] = shares.get(name, 0.0) + path.share
        for hop in hops:
            before = arrows[hop.id].share if hop.id in arrows else 0.0
            arrows[hop.id] = _Arrow(hop.source, hop.target, f"× {short(hop.factor)}", before + path.share)
    ends = {_key(path.places[-1]) for path in explanation.paths}
    start = f"{explanation.node}:{','.join(map(str, explanation.index))}"
    boxes = {start: _start(explanation)}
    for name, share in shares.items():
        if name != start:
            boxes[name] = _box(places.get(name), "output" if name in ends else "op", share, signed(share, write))
    parts = [(f"other{k}", o.place, o.share, o.why) for k, o in enumerate(explanation.others)]
    if explanation.n_open:
        parts.append(("rest", "other paths", explanation.rest, rest_words(explanation)))
    for name, label, share, why in parts:
        boxes[name] = _Box(label, signed(share, write), "constant", share, f"{label} {write(share)}: {why}")
        arrows[f"{name}<"] = _Arrow(start, name, "", share)
    return boxes, arrows


class _Hop(NamedTuple):
    """A step between two boxes."""

    source: str
    target: str
    factor: float
    operand: int = 0

    @property
    def id(self) -> str:
        return f"{self.target}<{self.source}.{self.operand}"


def _most_steps(explanation: Explanation) -> int:
    return max(4, min(MOST_STEPS, 400 // max(1, len(explanation.paths))))


def _hops(path: Path, most: int) -> list[_Hop]:
    """The steps of a path; of a long one the middle is one box."""
    names = [_key(place) for place in path.places]
    hops = [_Hop(*pair, f, i) for pair, f, i in zip(pairwise(names), path.factors, path.operands, strict=False)]
    if len(hops) <= most:
        return hops
    half = most // 2
    middle = hops[half:-half]
    first, last = middle[0].source, middle[-1].target
    through = f"{first}…{last}"
    slope = math.prod(hop.factor for hop in middle)
    return [*hops[:half], _Hop(first, through, slope), _Hop(through, last, 1.0), *hops[-half:]]


def _key(place: Place) -> str:
    return f"{place.node}:{','.join(map(str, place.entry))}"


def _start(explanation: Explanation) -> _Box:
    words = f"gradient {short(explanation.gradient)}"
    return _Box(explanation.entry, words, "leaf", explanation.gradient, f"{explanation.entry}: {words}")


def _box(place: Place | None, kind: str, share: float, words: str) -> _Box:
    if place is None:
        return _Box("…", "steps left out", "group", share, f"steps that are left out, of which {words} goes through")
    label = place_words(place)
    return _Box(label, words, kind, share, f"{label}: {words} of the gradient goes through it")


def _lit(path: Path | None, most: int) -> frozenset[str]:
    if path is None:
        return frozenset()
    hops = _hops(path, most)
    return frozenset([_key(path.places[0]), *(hop.target for hop in hops), *(hop.id for hop in hops)])


def _size(box: _Box) -> tuple[float, float]:
    widest = max(text_width(box.label, 14.0, bold=True), text_width(box.sublabel, 12.0))
    return max(72.0, 12.0 * math.ceil((widest + 28) / 12)), 50.0
