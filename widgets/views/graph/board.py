"""What stands on the picture of a large graph: which groups are open, the boxes that are seen, the edges between them.

An edge between boxes stands for all edges between what is in them, so that none is lost; it grows with the recording,
and is laid out anew only when something is opened or closed, or turns out to belong elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from widgets.layout.growing import Bend, Box, Growing
from widgets.tape.tape import Entry
from widgets.views.graph.group import Group
from widgets.views.graph.groups import Groups

BOX = 192.0, 66.0
"""Every box is of one size, so that no text that comes later moves anything."""
SMALL = 96.0, 28.0
"""Of a constant."""

Key = tuple[str, str]
"""An edge: the boxes at its ends."""


class Link:
    """An edge between boxes: how many edges it stands for, as (operation, operand) pairs, and its way."""

    __slots__ = ("pairs", "route")

    def __init__(self) -> None:
        self.pairs: list[tuple[int, int]] = []
        self.route: tuple[Bend, ...] = ()


class Board:
    """The boxes of one pass.

    Args:
        groups, root: the tree and the pass of it that is shown.
        entries: by node.
        opened: groups that a reader opened (True) or closed (False), by id.
        pinned: nodes that are drawn wherever they are.
        direction: "right" or "down".
        everything: what the reader did not close is open.

    Attributes:
        boxes: what each box is, by id, as placed: a node, a group, or (operation, operand) for a constant.
        seen: the box in which a node is seen.
        links: the edges.
        apart: pinned nodes that stand beside the closed group that they are a part of, and the box of that group.
        stale: something that was placed has to stand elsewhere: make a new Board.
    """

    def __init__(
        self, groups: Groups, root: Group, entries: Mapping[int, Entry], opened: Mapping[str, bool],
        pinned: frozenset[int], direction: str, everything: bool = False,
    ) -> None:  # fmt: skip
        self.groups, self.root, self.entries, self.pinned = groups, root, entries, pinned
        self.opened, self.everything = opened, everything
        self.version = groups.version
        self.boxes: dict[str, int | tuple[int, int] | Group] = {}
        self.seen: dict[int, str] = {}
        self.links: dict[Key, Link] = {}
        self.apart: dict[int, str] = {}
        self.stale = False
        self._closed: dict[str, str | None] = {root.id: None}
        self._lonely: list[Group] = []
        self._last: dict[str | None, str] = {}
        depth = 1 + max((len(list(g.up())) - 2 for g in _open_groups(root, self.is_open)), default=-1)
        down = direction == "down"
        self.places = Growing(depth, direction, gap=44.0 if down else 60.0, thick=BOX[down])
        self._n = root.first
        while self._n <= root.last:
            self._take(groups.ops[self._n])
            self._n += 1
        self.places.settle()
        self.stale = False

    # --- what is open ---

    def is_open(self, group: Group) -> bool:
        """Whether what is in a group is drawn: as the reader says, else a module that is all there is."""
        if group.n_ops == 1 and not self.pinned.isdisjoint(group.nodes):
            return True  # beside a box that shows this operation it would be there twice
        said = self.opened.get(group.id)
        if said is not None or self.everything:
            return said is not False
        up = group.shown_parent
        alone = up is not None and up.kind != "run" and len(up.shown_items) == 1 and group.kind == "module"
        return alone and group.whole_run is None

    def closed(self, group: Group) -> str | None:
        """The box in which all of a group is seen; None for an open one."""
        if group.id not in self._closed:
            up = group.shown_parent
            around = self.closed(up) if up is not None else None
            shut = None if self.is_open(group) else group.id
            if shut is None and around is None and group.id not in self.opened and not self.everything:
                self._lonely.append(group)
            self._closed[group.id] = around or shut
        return self._closed[group.id]

    # --- growing ---

    def grow(self, entries: Mapping[int, Entry]) -> None:
        """Place what came since; afterwards `stale` says whether that was possible."""
        self.entries = entries
        if self.version != self.groups.version or any(not self.is_open(g) for g in self._lonely):
            self.stale = True
            return
        while self._n <= self.root.last and not self.stale:
            self._take(self.groups.ops[self._n])
            self._n += 1

    def _take(self, node: int) -> None:
        holder = self.groups.holder(node)
        shut = self.closed(holder)
        entry = self.entries[node]
        if shut is not None:
            group = next(g for g in holder.up() if g.id == shut)
            self._see_group(group)
        self.seen[node] = box = str(node) if shut is None or node in self.pinned else shut
        if box not in self.boxes:
            self._see_node(node, holder, shut, entry)
        self._hang(self._leaves(entry.parents), box)
        for i, p in enumerate(entry.parents):
            source = self.seen.get(p) or (f"c{node}.{i}" if f"c{node}.{i}" in self.boxes else "")
            if source and source != box:
                self._link(source, box, node, i)

    def _see_group(self, group: Group) -> None:
        """Place a closed group, with the frames around it."""
        if group.id in self.boxes:
            return
        frame = self._frame(group.shown_parent)
        leaves = self._leaves(self._operands(group))
        after, least = self._behind(group.first, self._operands(group), frame, leaves, group)
        column, _ = self.places.wanted(after, least)
        self._hang([p for p in leaves if self._stands(p) == frame], "", frame, column - 1)
        self.boxes[group.id] = group
        self.places.add(group.id, frame, BOX, after, least=least)
        self._last[frame] = group.id
        self._hang(leaves, group.id)

    def _frame(self, group: Group | None) -> str | None:
        """The id of an open group's frame, placed if it was not; None for the whole picture."""
        if group is None or group is self.root:
            return None
        if group.id not in self.boxes:
            frame = self._frame(group.shown_parent)
            leaves = [p for p in self._leaves(self._operands(group)) if self._stands(p) == frame]
            after, least = self._behind(group.first, self._operands(group), frame, leaves, group)
            column, _ = self.places.wanted(after, least)
            self._hang(leaves, "", frame, column - 1)
            self.boxes[group.id] = group
            self.places.add_frame(group.id, frame, after, least=least)
            self._last[frame] = group.id
            level = self.places.sheet(group.id).level
            self.stale = self.stale or level > self.places.depth
        return group.id

    def _see_node(self, node: int, holder: Group, shut: str | None, entry: Entry) -> None:
        constants = [i for i, p in enumerate(entry.parents) if p not in self.entries]
        if shut is not None:  # pinned: beside its group
            frame = self._frame(next(g for g in holder.up() if g.id == shut).shown_parent)
            self.boxes[str(node)] = node
            self.apart[node] = shut
            self.places.add(str(node), frame, BOX, (), at=self.places.boxes[shut].column)
            self._hang_constants(node, constants, frame, self.places.boxes[shut].column)
            return
        frame = self._frame(holder)
        leaves = self._leaves(entry.parents)
        after, least = self._behind(self.groups.order[node], entry.parents, frame, leaves, None, bool(constants))
        column, _ = self.places.wanted(after, least)
        own = [p for p in leaves if self._stands(p) == frame]
        self._hang(own, "", frame, column - 1)  # before it, so that it finds their column as thick as it will be
        self._hang_constants(node, constants, frame, column - 1)
        self.boxes[str(node)] = node
        self.places.add(str(node), frame, BOX, after, least=least)
        self._last[frame] = str(node)
        self._hang(leaves, str(node))

    def _operands(self, group: Group) -> Iterable[int]:
        for k in range(group.first, group.last + 1):
            yield from self.entries[self.groups.ops[k]].parents

    def _behind(
        self, first: int, operands: Iterable[int], frame: str | None, leaves: list[int], group: Group | None,
        constants: bool = False,
    ) -> tuple[list[Box], int]:  # fmt: skip
        """The boxes of a frame from which something comes, and the first column that is possible."""
        order, seen = self.groups.order, self.seen
        names = dict.fromkeys(seen[p] for p in operands if p in seen and order.get(p, first) < first)
        boxes = [b for name in names if (b := self.places.within(name, frame)) is not None]
        least = int(constants or any(self._stands(p) == frame for p in leaves))
        if not boxes and not names and frame in self._last:  # nothing leads to it: near to what came last
            least = max(
                least, self.places.boxes[self._last[frame]].column + (group is not None and group.kind == "copy")
            )
        return boxes, least

    # --- leaves ---

    def _leaves(self, operands: Iterable[int]) -> list[int]:
        """The leaves among operands that have no box yet, and see where they are seen."""
        fresh = []
        for p in dict.fromkeys(operands):
            if p in self.groups.order or p not in self.entries or str(p) in self.boxes:
                continue
            home = self.groups.home(p, self.root)
            if home is None:
                continue
            shut = self.closed(self._shown(home))
            self.seen[p] = str(p) if shut is None or p in self.pinned else shut
            if self.seen[p] == str(p):
                fresh.append(p)
        return fresh

    def _shown(self, home: Group) -> Group:
        up = home.parent
        return up if up is not None and up.whole_run is home else home

    def _stands(self, leaf: int) -> str | None:
        """The frame in which a leaf stands."""
        home = self.groups.home(leaf, self.root)
        assert home is not None
        home = self._shown(home)
        shut = self.closed(home)
        if shut is not None:  # pinned: beside its group
            up = next(g for g in home.up() if g.id == shut).shown_parent
            assert up is not None
            home = up
        return None if home is self.root else home.id

    def _hang(self, leaves: Iterable[int], user: str, frame: str | None = None, column: int = 0) -> None:
        """Place leaves before the box that uses them first."""
        for p in leaves:
            if str(p) in self.boxes:
                continue
            if user:
                frame = self._stands(p)
                box = self.places.within(user, frame)
                column = 0 if box is None else max(0, box.column - 1)
            self.boxes[str(p)] = p
            self.places.add(str(p), frame, BOX, (), at=column)

    def _hang_constants(self, node: int, which: list[int], frame: str | None, column: int) -> None:
        for i in which:
            self.boxes[f"c{node}.{i}"] = node, i
            self.places.add(f"c{node}.{i}", frame, SMALL, (), at=column)

    # --- edges ---

    def _link(self, source: str, target: str, node: int, i: int) -> None:
        link = self.links.get((source, target))
        if link is None:
            link = self.links[source, target] = Link()
            known = self.pinned and (source.isdigit() or target.isdigit())
            if not known and not source.startswith("c") and not self.places.forward(source, target):
                self.stale = self.stale or not source.isdigit() or int(source) in self.groups.order
            beside = self.crosses((source, target))
            link.route = (self.places.beside if beside else self.places.route)(source, target)
        link.pairs.append((node, i))

    def crosses(self, key: Key) -> str:
        """Of an edge between a group and a pinned part of it: which way it leads, for it is no cycle; else ""."""
        for group, part, word in ((*key, "out"), (*key[::-1], "back")):
            if part.isdigit() and self.apart.get(int(part)) == group:
                return word
        return ""

    def counted(self, node: int) -> tuple[str, ...]:
        """The boxes that tell how far an operation is: where it is seen, and the group that it stands beside."""
        return tuple(filter(None, (self.seen[node], self.apart.get(node))))

    def around(self, node: int) -> list[str]:
        """The ids of the boxes that show something of a node: its own or its group's, and the frames around."""
        box = self.seen.get(node)
        if box is None:
            return []
        group = self.groups.parent.get(node) or self.groups.home(node, self.root)
        holder = self.groups.holder(node) if node in self.groups.parent else group
        frames = [g.id for g in holder.up() if g.id in self.boxes] if holder is not None else []
        return list(dict.fromkeys([box, *frames]))

    def newest(self, boxes: int) -> list[str]:
        """The ids of the boxes from number `boxes` on."""
        return list(islice(self.boxes, boxes, None))


def _open_groups(group: Group, is_open: Callable[[Group], bool]) -> Iterable[Group]:
    for item in group.shown_items:
        if isinstance(item, Group) and is_open(item):
            yield item
            yield from _open_groups(item, is_open)
