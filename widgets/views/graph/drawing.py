"""The picture of a Board at one moment, brought up to date at the price of what changed since the last moment.

Boxes and edges that did not change are the same objects as before: so the tree that is sent, and its difference from
the last one, cost what changed, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from widgets.pictures import theme
from widgets.pictures.measure import clip, text_width
from widgets.pictures.scene import Edge, Node
from widgets.tape import wording
from widgets.tape.tape import FORGOTTEN, Entry, Tape, newest_first
from widgets.views.graph.board import Board, Key, Link
from widgets.views.graph.group import Group
from widgets.views.graph.parts import MOST_TONE, WHOLE, marks_of, on_edge
from widgets.views.graph.plan import lines_below
from widgets.views.graph.telling import gradient_words

LINE = 168.0
"""Pixels that a line of a box has."""


class Way(NamedTuple):
    """How far the gradients of a box, or of the edges behind an edge, are."""

    done: int = 0
    other: int = 0
    """Of a box: with nan or infinity; of an edge: along which no gradient was wanted."""


class Drawing:
    """Nodes and edges of a Board's Scene, for one Tape after the other.

    Attributes:
        nodes, edges: by id, in order.
        counts: how many there are of each kind and state.
    """

    def __init__(self, board: Board, called: wording.Names) -> None:
        self.board, self.called = board, called
        self.nodes: dict[str, Node] = {}
        self.edges: dict[Key, Edge] = {}
        self.counts: Counter[str] = Counter()
        self.moving: list[Key] = []
        self._state = Tape()
        self._newest = -1
        self._ways: dict[str, Way] = {}
        self._edge_ways: dict[Key, Way] = {}
        self._bends: dict[Key, tuple[tuple[float, float], ...]] = {}
        self._scale = 0.0
        self._labels: dict[str, str] = {}
        """What fits into a box, by the formula: to find it takes as long as all the rest of a box."""

    def draw(self, state: Tape, largest: float) -> None:
        """Bring nodes and edges to a state; `largest` of all gradients decides what a colour means."""
        scale = MOST_TONE / largest if largest else 0.0
        follows = state.since is self._state.mark and scale == self._scale and not self.board.places.shifted
        if state is self._state and scale == self._scale and not self.board.places.shifted:
            return
        if self.board.places.shifted:
            self.board.places.settle()
            follows = False
        if follows and len(state.touched) < 200:
            self._follow(state)
        else:
            self._anew(state, scale)

    # --- from one state to the next ---

    def _anew(self, state: Tape, scale: float) -> None:
        board, order = self.board, self.board.groups.order
        self._state, self._scale = state, scale
        self._newest = newest_op(state, order)
        self.nodes, self.edges, self.counts = {}, {}, Counter()
        self._ways, self._edge_ways, self._bends = {}, {}, {}
        for node in board.seen:
            entry = state.entries.get(node)
            if entry is not None and entry.op:
                self._count_op(entry, 1)
        for key, link in board.links.items():
            for node, i in link.pairs:
                self._count_edge(key, _along(state, node, i), 1)
        for box in board.boxes:
            self._put_node(box)
        for key in board.links:
            self._put_edge(key)
        self.moving = [key for key, e in self.edges.items() if e.state in ("forward", "backward")]

    def _follow(self, state: Tape) -> None:
        old, self._state, board = self._state, state, self.board
        boxes: dict[str, None] = {}
        keys: dict[Key, None] = dict.fromkeys(self.moving)
        ends = [n for n in (old.now.node, state.now.node) if n in board.seen]
        fresh = [n for n in state.touched if n not in old.entries]
        if fresh:
            self._newest = newest_op(state, board.groups.order)
        for node in sorted({*state.touched, *ends}):
            if node in board.seen:
                boxes.update(dict.fromkeys(reversed(board.around(node))))
                if state.entries[node].op:
                    for key in self._recount(node, old, state):
                        keys[key] = boxes[key[0]] = None  # something may be owed to that box now
        for box in boxes:
            self._put_node(box)
        for key in keys:
            self._put_edge(key)
        self.moving = [key for key in keys if key in self.edges and self.edges[key].state in ("forward", "backward")]

    def _recount(self, node: int, old: Tape, state: Tape) -> Iterator[Key]:
        """Count an operation as it is now instead of as it was; gives the edges into it."""
        seen, before, entry = self.board.seen, old.entries.get(node), state.entries[node]
        if before is not None and before is not entry:
            self._count_op(before, -1)
        if before is not entry:
            self._count_op(entry, 1)
        for i, p in enumerate(entry.parents):
            key = seen.get(p, f"c{node}.{i}"), seen[node]
            if key in self.board.links:
                if before is not None:
                    self._count_edge(key, _along(old, node, i), -1)
                self._count_edge(key, _along(state, node, i), 1)
                yield key

    def _count_op(self, entry: Entry, by: int) -> None:
        for box in self.board.counted(entry.node):
            way = self._ways.get(box, Way())
            self._ways[box] = Way(way.done + by * entry.has_gradient, way.other + by * _bad(entry))

    def _count_edge(self, key: Key, along: str, by: int) -> None:
        way = self._edge_ways.get(key, Way())
        self._edge_ways[key] = Way(way.done + by * (along == "done"), way.other + by * (along == "none"))

    # --- boxes ---

    def _put_node(self, box: str) -> None:
        what = self.board.boxes.get(box)
        made = None if what is None else self._node(box, what)
        old = self.nodes.get(box)
        if made is None or made == old:
            return
        for node, by in ((old, -1), (made, 1)):
            if node is not None:
                self.counts.update(dict.fromkeys(marks_of(node), by))
        self.nodes[box] = made

    def _node(self, box: str, what: int | tuple[int, int] | Group) -> Node | None:
        x, y, width, height = self.board.places.where(box)
        place = box, x, y, width, height
        if isinstance(what, Group):
            return self._group(place, what)
        if isinstance(what, tuple):
            node, i = what
            if node not in self._state.entries:
                return None
            text = wording.operands(self._state.entries[node], self.called.short)[i]
            return Node(*place, clip(text, 84.0, bold=True), kind="constant", aria=f"constant {text}")
        entry = self._state.entries.get(what)
        if entry is None:
            return None
        return self._entry(place, entry)

    def _entry(self, place: tuple[str, float, float, float, float], entry: Entry) -> Node:
        """The box of a leaf or an operation."""
        formula = wording.formula(entry, self.called.short)
        whole, label = wording.clipped(formula, WHOLE), self._labels.get(formula)
        if label is None:
            label = wording.fitted(entry, self.called.short, lambda text: text_width(text, bold=True) <= LINE)
            label = self._labels[formula] = clip(label, LINE, bold=True)
        value, gradient = lines_below(entry)
        kind = "leaf" if not entry.op else "op" if self.board.groups.users.get(entry.node) else "output"
        seen = entry.gradient
        tone = None
        if entry.has_gradient and seen is not None and seen.signed:
            tone = max(-MOST_TONE, min(MOST_TONE, seen.mean * self._scale))
        aria = f"{whole}, {value}, {gradient_words(entry)}"
        return Node(*place, label, value, gradient, kind, self._state_of(entry), tone, aria)

    def _state_of(self, entry: Entry) -> str:
        state = self._state
        if _bad(entry):
            return "trouble"
        if entry.node == state.now.node and state.now.kind != "finish":
            return "new" if state.now.kind == "op" else "active"
        if entry.has_gradient:
            return "done"
        users = reversed(state.users.get(entry.node, ())) if state.n_walks else ()
        return "waiting" if any(entry.node in state.targets.get(user, ()) for user in users) else "idle"

    def _group(self, place: tuple[str, float, float, float, float], group: Group) -> Node | None:
        last = min(group.last, self._newest)
        n = last - group.first + 1
        if n <= 0:
            return None
        state, entry = self._state, self._state.entries[self.board.groups.ops[last]]
        shut = place[0] not in self.board.places.boxes or self.board.places.boxes[place[0]].inner is None
        if shut and self.board.groups.only(group, self.board.root) is not None:
            return self._entry(place, entry)
        count = f"{n:,} operation{'s' * (n != 1)}"
        gradient = ""
        if entry.has_gradient:
            gradient = "grad done" if entry.gradient is None else f"grad norm {theme.short(entry.gradient.norm)}"
        told = gradient.replace("grad", "gradient", 1) or "no gradient yet"
        name = group.name_at(last)
        aria = f"{name}: {count}, gives {wording.shape(entry.shape)}, {told}"
        way = self._ways.get(place[0], Way())
        here = self.board.groups.order.get(state.now.node, -1)
        inside = group.first <= here <= group.last and state.now.kind != "finish"
        if not shut:
            return Node(*place, name, kind="frame", state="active" if inside else "idle", aria=aria, fold="open")
        status = (
            "trouble" if way.other else "active" if inside else "done" if way.done == n else
            "waiting" if way.done else "idle"
        )  # fmt: skip
        value = f"{n:,} op{'s' * (n != 1)}, {wording.shape(entry.shape)}"
        return Node(
            *place, _clipped(name), clip(value, LINE, 12.0), gradient, "group", status, None, aria,
            "closed",
        )  # fmt: skip

    # --- edges ---

    def _put_edge(self, key: Key) -> None:
        made, old = self._edge(key), self.edges.get(key)
        if made is None or made == old:
            return
        if old is not None:
            self.counts[f"edge {old.state}"] -= 1
        self.counts[f"edge {made.state}"] += 1
        self.edges[key] = made

    def _edge(self, key: Key) -> Edge | None:
        source, target = key
        if source not in self.nodes or target not in self.nodes:
            return None
        link, state = self.board.links[key], self._state
        if key not in self._bends:
            self._bends[key] = self.board.places.bends(link.route)
        n = len(link.pairs)
        if n > 1 and state.now.node >= 0 and self._newest < len(self.board.groups.ops) - 1:
            n = sum(node in state.entries for node, _ in link.pairs)
        label = f"×{n}" if n > 1 else ""
        status = self._status(key, link)
        if n == 1 and status in ("forward", "backward"):
            label = self._carried(link, status)
        label = ", ".join(filter(None, (label, self.board.crosses(key))))
        return Edge(f"{source}>{target}", source, target, self._bends[key], label, status, _width(n))

    def _carried(self, link: Link, status: str) -> str:
        node, i = link.pairs[0]
        if status == "backward":
            return on_edge(self._state.contributions.get((node, i)))
        source = self._state.entries.get(self._state.entries[node].parents[i])
        return on_edge(source.value) if source is not None else ""

    def _status(self, key: Key, link: Link) -> str:
        state, way = self._state, self._edge_ways.get(key, Way())
        now = state.now
        if now.kind in ("op", "rule") and self.board.seen.get(now.node) == key[1]:
            mine = [i for i, p in enumerate(state.entries[now.node].parents)
                    if self.board.seen.get(p, f"c{now.node}.{i}") == key[0]]  # fmt: skip
            if mine and now.kind == "op":
                return "forward"
            if any(_along(state, now.node, i) == "done" for i in mine):
                return "backward"
        return "done" if way.done else "none" if way.other else "idle"


def _clipped(name: str) -> str:
    """The name of a group, cut so that "× 24" at its end stays."""
    own, times, n = name.rpartition(" × ")
    room = LINE - 12 - text_width(times + n, bold=True)
    return clip(own, room, bold=True) + times + n if times else clip(name, LINE - 12, bold=True)


def _along(state: Tape, node: int, i: int) -> str:
    """Whether a gradient went along an edge: "done", "none" (not wanted), "" (not yet)."""
    targets = state.targets.get(node)
    if targets is None or i >= len(targets) or targets[i] == FORGOTTEN:
        return ""
    return "done" if targets[i] >= 0 else "none"


def _bad(entry: Entry) -> bool:
    return any(seen is not None and seen.n_nonfinite > 0 for seen in (entry.value, entry.gradient))


def newest_op(state: Tape, order: Mapping[int, int]) -> int:
    """The place in `order` of the newest operation of a state; -1 while there is none."""
    for node in newest_first(state.entries):
        if node in order:
            return order[node]
    return -1


def _width(n: int) -> float:
    """Of an edge that stands for n."""
    return 1.5 if n <= 1 else min(5.0, 1.5 + 0.5 * n.bit_length())


def boxes_of(board: Board, nodes: Iterable[int]) -> frozenset[str]:
    """The boxes in which nodes are seen."""
    return frozenset(board.seen[n] for n in nodes if n in board.seen)
