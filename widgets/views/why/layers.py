"""A gradient that is spread over very many paths, as a Scene: one column for each layer that all of them go through.

What goes through the entries of a column adds up to the gradient, in every column.
"""

from __future__ import annotations

from itertools import pairwise

from lab.autograd.explanation import Explanation
from lab.autograd.spread import Layer
from widgets.asking.words import figures, place_words, signed, spread_words
from widgets.pictures.measure import clip, text_width
from widgets.pictures.scene import Edge, Node, Scene
from widgets.pictures.theme import short

MOST = 16
"""Of more layers the middle is left out."""
BOX = 108.0, 46.0
END, WIDEST = (132.0, 50.0), 240.0
GAP, PAD, HEAD, BETWEEN = 8.0, 10.0, 30.0, 44.0
MOST_TONE = 0.75
WAY = 4.0
"""Width of the arrows: the whole gradient goes along each of them."""


def layers_of(explanation: Explanation, title: str) -> Scene:
    """The entry, the layers that all of its paths go through, and the result."""
    layers, left_out = list(explanation.layers), len(explanation.layers) - MOST
    if left_out > 0:
        layers[MOST // 2 : -(MOST // 2)] = []
    most = max(len(layer.shares) + bool(layer.n_rest) for layer in layers)
    height = HEAD + most * (BOX[1] + GAP) + PAD
    middle = height / 2
    whole = max(abs(share) for layer in layers for share in (layer.rest, *(s for _, s in layer.shares)))
    words = f"gradient {short(explanation.gradient)}"
    x = max(END[0], min(WIDEST, text_width(explanation.entry, bold=True) + 24))
    label, aria = clip(explanation.entry, x - 16, bold=True), f"{explanation.entry}: {words}"
    nodes = [Node("entry", x / 2, middle, x, END[1], label, words, kind="leaf", aria=aria)]
    for k, layer in enumerate(layers):
        if left_out > 0 and k == MOST // 2:
            text, x = f"{left_out} layers", x + BETWEEN
            nodes.append(Node("left", x + 48, middle, 96.0, BOX[1], "…", text, "", "group", aria=f"{text} left out"))
            x += 96
        x += BETWEEN
        nodes += _column(layer, f"layer{k}", x, height, whole, explanation)
        x += BOX[0] + 2 * PAD
    end, x = place_words(explanation.paths[0].places[-1]) if explanation.paths else "result", x + BETWEEN
    label = clip(end, END[0] - 16, bold=True)
    nodes.append(Node("result", x + END[0] / 2, middle, *END, label, kind="output", aria=f"the result, {end}"))
    stations = [node.id for node in nodes if "." not in node.id]
    edges = [Edge(f"{a}>{b}", a, b, width=WAY) for a, b in pairwise(stations)]
    caption = (
        f"{spread_words(explanation)} Each frame is a layer that all of them go through, and its entries add up to"
        f" {figures(explanation)(explanation.total)}. Orange: positive; blue: negative."
    )
    legend = (("leaf", "the entry"), ("op", "entries of a layer"), ("constant", "all others"), ("output", "the result"))
    extent = x + END[0], height
    return Scene(tuple(nodes), tuple(edges), (), caption, title, legend, palette="diverging", extent=extent)


def _column(layer: Layer, name: str, x: float, height: float, whole: float, explanation: Explanation) -> list[Node]:
    """The frame of a layer and its boxes, the largest share first; `x` is its left edge."""
    write, width = figures(explanation), BOX[0] + 2 * PAD
    rows = [(layer.entry(k), share, "op") for k, share in layer.shares]
    rows += [(f"{layer.n_rest} others", layer.rest, "constant")] if layer.n_rest else []
    own = HEAD + len(rows) * (BOX[1] + GAP) + PAD - GAP
    top = (height - own) / 2
    label = clip(layer.name, width - 16, bold=True)
    aria = f"{layer.name}: together {write(layer.total)}"
    made = [Node(name, x + width / 2, height / 2, width, own, label, kind="frame", aria=aria)]
    for i, (entry, share, kind) in enumerate(rows):
        y = top + HEAD + i * (BOX[1] + GAP) + BOX[1] / 2
        tone = MOST_TONE * share / whole if whole and kind == "op" else None
        said = f"{layer.name}{entry if kind == 'op' else ', ' + entry}: {signed(share, write)} goes through it"
        box = Node(f"{name}.{i}", x + width / 2, y, *BOX, entry, signed(share, write), kind=kind, tone=tone, aria=said)
        made.append(box)
    return made
