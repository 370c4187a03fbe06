"""Where the two graphs of a pass stand: a row for each equation, in the order in which they run, side by side.

What reads what runs along the outer edges, what stands for what across the middle.
"""

from __future__ import annotations

from collections.abc import Iterator

from widgets.pictures.measure import clip
from widgets.pictures.scene import Edge, Mark, Node
from widgets.views.experiments.rewrite.step import Line, Lines, Step

WIDTH, MARGIN, COLUMN = 900.0, 62.0, 310.0
TOP, PITCH, TALL = 58.0, 29.0, 23.0
MOST = 60
"""Rows of a side; of a larger graph only what changed is shown."""
LANES, NEXT = 8, 1.5
"""Rows after which a way is as far out as any, and up to which it goes straight."""
OUT = 22.0
"""What stands for what leaves its column so far before it turns."""
LEFT_STATES = {"kept": "idle", "into": "waiting", "gone": "trouble", "moved": "active"}
RIGHT_STATES = {"kept": "idle", "new": "new", "changed": "done", "moved": "active"}
FATES = {
    "kept": "", "into": ", goes into another", "gone": ", left out", "moved": ", runs at another place",
    "new": ", made by the pass", "changed": ", stays, changed",
}  # fmt: skip


class Board:
    """The pieces of a picture of a step."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.left, self.right = step.near(MOST)
        self.y_left = {i: TOP + PITCH * (row + 0.5) for row, i in enumerate(self.left)}
        self.y_right = self._beside()
        rows = max(len(self.left), len(self.right))
        self.extent = WIDTH, TOP + PITCH * rows + 8

    def _beside(self) -> dict[int, float]:
        """Each row on the right as near to what it comes from as its order allows."""
        rows, places, last = max(len(self.left), len(self.right)), {}, TOP - PITCH / 2
        for row, j in enumerate(self.right):
            from_ = [self.y_left[i] for i, k, _ in self.step.links if k == j and i in self.y_left]
            wanted = sum(from_) / len(from_) if from_ else last + PITCH
            lowest = TOP + PITCH * (rows - (len(self.right) - row) + 0.5)
            last = places[j] = max(last + PITCH, min(wanted, lowest))
        return places

    def nodes(self) -> Iterator[Node]:
        """A box for each equation that is shown."""
        step = self.step
        for i in self.left:
            fate = step.left[i]
            yield _box(f"a{i}", MARGIN + COLUMN / 2, self.y_left[i], step.before, i, LEFT_STATES[fate], fate, "before")
        for j in self.right:
            fate = step.right[j]
            place = WIDTH - MARGIN - COLUMN / 2, self.y_right[j]
            yield _box(f"b{j}", *place, step.after, j, RIGHT_STATES[fate], fate, "after")

    def edges(self) -> Iterator[Edge]:
        """What reads what, on either side, and what stands for what."""
        yield from _arcs("a", self.step.before, self.y_left, MARGIN, -1.0)
        yield from _arcs("b", self.step.after, self.y_right, WIDTH - MARGIN, 1.0)
        for i, j, changed in self.step.links:
            if i in self.y_left and j in self.y_right:
                bends = (MARGIN + COLUMN + OUT, self.y_left[i]), (WIDTH - MARGIN - COLUMN - OUT, self.y_right[j])
                state, width = ("store", 1.5) if changed else ("idle", 1.0)
                yield Edge(f"p{i}-{j}", f"a{i}", f"b{j}", bends, state=state, width=width)

    def marks(self, titles: tuple[str, str]) -> Iterator[Mark]:
        """The words above the columns."""
        counts = [_shown(len(a), len(b)) for a, b in ((self.step.before, self.left), (self.step.after, self.right))]
        for k, x in enumerate((MARGIN, WIDTH - MARGIN - COLUMN)):
            yield Mark(f"title{k}", "heading", x, 16, COLUMN, 0, titles[k])
            yield Mark(f"count{k}", "text", x, 36, COLUMN, 0, counts[k])


def _shown(n: int, m: int) -> str:
    words = f"{n:,} equation{'s' * (n != 1)}"
    return words if n == m else f"{words}; {m} shown: near changes"


def _box(name: str, x: float, y: float, lines: Lines, k: int, state: str, fate: str, side: str) -> Node:
    line: Line = lines[k]
    fused = line.op.startswith("fused ")
    words = f"{side}, equation {k + 1} of {len(lines)}: {line.words}{f' ({line.op})' if fused else ''}{FATES[fate]}"
    aria = f"{words}; {line.origin.rpartition('/')[2]}" if line.origin else words
    label = clip(line.short, COLUMN - 34, 14, bold=True)
    kind = "leaf" if fused else "op"
    return Node(name, x, y, COLUMN, TALL, label, kind=kind, state=state, aria=aria)


def _arcs(side: str, lines: Lines, y: dict[int, float], edge: float, way: float) -> Iterator[Edge]:
    """Ways of values along one edge of a column, the longer ones farther out."""
    makers = {v: k for k, line in enumerate(lines) for v in line.outs}
    for k, below in y.items():
        for j in dict.fromkeys(makers[v] for v in lines[k].reads if v in makers):
            if j in y:
                rows = abs(below - y[j]) / PITCH
                out = edge + way * (10 + (MARGIN - 16) * min(1.0, rows / LANES))
                bends = ((out, y[j]), (out, below)) if rows > NEXT else ()
                yield Edge(f"{side}{j}-{k}", f"{side}{j}", f"{side}{k}", bends, width=1)
