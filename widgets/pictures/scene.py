"""A Scene is what `scene.js` draws: plain arrays of nodes, edges, labels and moving tokens, with a caption.

It is a value: views return a new one, the host sends the browser only what differs from the last.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

NODE_KINDS: tuple[str, ...] = (
    "leaf", "op", "constant", "output", "group", "frame", "rank", "device", "forward_span", "backward_span",
)  # fmt: skip
"""What a node is: decides its shape (leaf: rounded, op: pill, constant: plain box, group: stacked, frame: an open group
under edges and nodes around what it holds, its label in the top left corner, rank: disc, device: a large box
whose fill says too whether it is idle or in trouble, forward_span and backward_span: bars of a Gantt, the second
hatched, both with small text that is not cut)."""

SPANS = frozenset({"forward_span", "backward_span"})
"""Kinds of nodes that are bars on a time axis."""

NODE_STATES: tuple[str, ...] = ("idle", "new", "active", "done", "waiting", "trouble")
"""What happens to it now: decides outline and mark, never by colour alone."""

EDGE_STATES: tuple[str, ...] = ("idle", "forward", "backward", "store", "done", "none")
"""What runs along an edge now; "store": like "forward", but it takes the place of what is there (drawn dashed); "none":
no gradient was wanted there (drawn dotted)."""


class Node(NamedTuple):
    """One box. Coordinates and sizes are in pixels of the scene at zoom 1, centre of the box, y downwards."""

    id: str
    x: float
    y: float
    width: float
    height: float
    label: str
    """First line, e.g. "x * y"."""
    sublabel: str = ""
    """Second line, e.g. "6.0" or "(64, 128) float32"."""
    gradient: str = ""
    """Third line in the gradient colour, e.g. "grad 4.0"; "" is no gradient yet, and drawn apart from "grad 0"."""
    kind: str = "op"
    state: str = "idle"
    tone: float | None = None
    """Magnitude in 0..1 for the sequential palette, -1..1 for the diverging one; None: the neutral fill of its kind."""
    aria: str = ""
    """What a screen reader says; empty: label, sublabel and gradient."""
    fold: str = ""
    """"closed": it opens (its corner is clicked, or + pressed) and shows what it holds; "open": it can be closed again
    (-); "": neither. The page asks, `Host.on_fold` hears it."""


class Edge(NamedTuple):
    """One arrow from node `source` to node `target` (ids), with bends in between."""

    id: str
    source: str
    target: str
    bends: tuple[tuple[float, float], ...] = ()
    label: str = ""
    """Text on the edge: a value while going forward, a gradient while going back."""
    state: str = "idle"
    width: float = 1.5


MARKS_BELOW: tuple[str, ...] = ("grid", "ideal_forward", "ideal_backward", "level", "peak")
"""Kinds of marks that lie under edges and nodes: a thin line, the two bars of a plan, steps of a level, its highest."""

MARKS_ABOVE: tuple[str, ...] = ("track", "used", "full", "now", "heading", "text", "code", "warning")
"""Kinds of marks that lie over them: a bar's whole length, how much of it is used, the same when it is nearly all, the
line of the moment, and four kinds of words: lines of code are as wide as they have letters."""


class Mark(NamedTuple):
    """Something that is only looked at: a line, a bar, words. It cannot be chosen; what it says, some node says too."""

    id: str
    kind: str
    """One of MARKS_BELOW or MARKS_ABOVE."""
    x: float
    """Left edge; of words the place that `anchor` names."""
    y: float
    """Top edge; of words the middle of the line."""
    width: float = 0.0
    """0 is an upright line; of words the room that they have, 0 for any."""
    height: float = 0.0
    """0 is a level line."""
    text: str = ""
    anchor: str = "start"
    """Of words: "start", "middle" or "end"."""


class Token(NamedTuple):
    """Something that moves along an edge once: the browser interpolates. Times in ms from when the scene is shown."""

    edge: str
    delay: float = 0.0
    duration: float = 400.0
    backward: bool = False
    label: str = ""
    square: bool = False
    """Along an edge on which something is stored."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A whole picture.

    Attributes:
        nodes, edges, tokens: what is drawn; ids are unique, edges name existing nodes, tokens existing edges.
        caption: one sentence that says the point, and run or simulation.
        title: short name, for the page title and for screen readers.
        legend: (mark, meaning) pairs, mark one of the node or edge states or kinds.
        selected: id of the selected node, or "".
        palette: what `Node.tone` means: "sequential" (0..1, Cividis) or "diverging" (-1..1, blue to orange).
        extent: width and height from (0, 0) of what is shown in the end, so that a growing picture keeps its scale.
        marks: lines, bars and words around the nodes, within `extent`; ids are unique among them.
        lit: ids of nodes and edges that stand out while all others fade, as a value's path; empty: nothing fades.
        pinned: ids of nodes that the reader holds on to: they have a pin.
        found: words that were looked for, so that the nodes that are lit are those where the hits are; "" for none.
        provenance: where the numbers are from, in words, shown under the caption.
        made: "run", "live", "paced", "throttled" or "simulated": the mark before the provenance; "" for none.
        instead: a few words that stand where a picture without a node would be.
    """

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    tokens: tuple[Token, ...] = ()
    caption: str = ""
    title: str = ""
    legend: tuple[tuple[str, str], ...] = field(default=())
    selected: str = ""
    palette: str = "sequential"
    extent: tuple[float, float] = (0.0, 0.0)
    marks: tuple[Mark, ...] = ()
    lit: frozenset[str] = frozenset()
    pinned: frozenset[str] = frozenset()
    found: str = ""
    provenance: str = ""
    made: str = ""
    instead: str = "nothing yet"


def lit_up(scene: Scene, ids: Iterable[str]) -> Scene:
    """The scene with those of `ids` lit that are drawn; as it was if none is, or if something stands out already.

    Example:
        >>> scene = Scene((Node("a", 0, 0, 9, 9, "a"), Node("b", 9, 0, 9, 9, "b")))
        >>> sorted(lit_up(scene, ["b", "c"]).lit), lit_up(scene, ["c"]) is scene
        (['b'], True)
    """
    wanted = frozenset(ids)
    there = wanted & {*(node.id for node in scene.nodes), *(edge.id for edge in scene.edges)}
    return scene if scene.lit or not there else replace(scene, lit=there)
