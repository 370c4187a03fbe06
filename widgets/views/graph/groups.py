"""Which operations belong together: passes, calls of modules within them, and what is repeated as "x N".

The tree only grows while operations come, so a live picture costs what is new. A group is a stretch of operations that
ran one after the other; so what is drawn in place of groups has no cycle, whatever is closed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Mapping
from itertools import islice

from widgets.tape.tape import Entry, newest_first
from widgets.views.graph.group import Group, shown, stem
from widgets.views.graph.repeats import LEAST, Repeats

OFTEN = 8
"""When so many passes turned out to go on in the next, the whole recording is one."""


class Groups(Repeats):
    """The tree of a Tape's entries; `grow` with a later Tape of the same recording adds what is new.

    Attributes:
        roots: the passes, oldest first.
        leaves: nodes of tensors that the user made, in order.

    Example:
        >>> entries = {n: Entry(n, "exp", "", (n - 1,), (), "float64", module=f"layers.{n}") for n in (1, 2, 3)}
        >>> groups = Groups()
        >>> groups.grow(entries)
        [1, 2, 3]
        >>> [item.name for item in groups.roots[0].items]
        ['layers × 3']
    """

    def __init__(self) -> None:
        self._refuted: set[int] = set()
        self._refuted_signs: set[Hashable] = set()
        super().__init__()

    def _clear(self) -> None:
        super()._clear()
        self.roots: list[Group] = []
        self.leaves: list[int] = []
        self.users: dict[int, list[int]] = {}
        self.n_seen = 0
        self._entries: Mapping[int, Entry] = {}
        self._stack: list[Group] = []
        self._cuts: list[tuple[int, bool]] = []
        self._homes: dict[tuple[int, int], Group] = {}
        self._sigs: dict[Hashable, Hashable] = {}

    def grow(self, entries: Mapping[int, Entry]) -> list[int]:
        """Take what is new; returns the new nodes, in order."""
        fresh = _newest(entries, len(entries) - self.n_seen)
        while not all(self._take(node, entries) for node in fresh):  # what seemed a new pass was none: all anew
            self._clear()
            self.version += 1
            fresh = list(entries)
        return fresh

    def _take(self, node: int, entries: Mapping[int, Entry]) -> bool:
        self._entries, entry, k = entries, entries[node], len(self.ops)
        if not entry.op:
            self.n_seen += 1
            self.leaves.append(node)
            return True
        if not self._root_for(k, entry):
            return False
        self.n_seen += 1
        self.ops.append(node)
        self.order[node] = k
        for p in dict.fromkeys(entry.parents):
            self.users.setdefault(p, []).append(node)
        sig = ("op", entry.op, entry.shape, entry.params, len(entry.parents))
        module = entry.module or "backward" * (entry.within >= 0)  # what a walk computed stands together
        self._append(self._open(module, k), node, self._sigs.setdefault(sig, sig))
        here: Group | None = self.parent[node]
        while here is not None:
            here.last = k
            if here.stretches:
                here.stretches[-1].last = k
            here = here.parent
        self._share(entry.parents, node)
        return True

    def _share(self, parents: tuple[int, ...], node: int) -> None:
        """A leaf that one more group uses stands outside both."""
        for p in parents:
            key = self.roots[-1].first, p
            if key in self._homes:
                home = _shared(self._homes[key], self.parent[node])
                self.version += home is not self._homes[key]
                self._homes[key] = home

    # --- passes ---

    def _root_for(self, k: int, entry: Entry) -> bool:
        """See to it that the newest root is that of operation k; False: an earlier pass went on, so all is wrong."""
        inner = [self.order[p] for p in entry.parents if p in self.order]
        while inner and self._cuts and self._cuts[-1][0] > min(inner):
            at, begun = self._cuts.pop()
            if begun:
                first = self._entries[self.ops[at]]
                self._refuted.add(at)
                if first.walks == self._entries[self.ops[at - 1]].walks:
                    self._refuted_signs.add(_sign(first))
                return False
        if not inner:
            sure = k not in self._refuted and len(self._refuted) < OFTEN
            begins = not self.roots or (sure and self._begins(k, entry))
            if begins:
                self._close(0)
                self.roots.append(Group("pass", f"p{k}", "", None, k, self.ops))
                self._stack = [self.roots[-1]]
            self._cuts.append((k, begins and k > 0))
        return True

    def _begins(self, k: int, entry: Entry) -> bool:
        """Whether another pass begins: after a backward walk, or as the last pass began."""
        if entry.walks > self._entries[self.ops[-1]].walks:
            return True
        first = self._entries[self.ops[self.roots[-1].first]]
        sign = _sign(entry)
        return sign == _sign(first) and k - self._cuts[-1][0] >= LEAST and sign not in self._refuted_signs

    # --- modules ---

    def _open(self, module: str, k: int) -> Group:
        """The group of the module's call that is running."""
        names = _segments(module)
        depth = 1
        while depth < len(self._stack) and depth <= len(names) and self._stack[depth].path == "/".join(names[:depth]):
            depth += 1
        self._close(depth)
        for d in range(depth, len(names) + 1):
            path = "/".join(names[:d])
            around = self._stack[-1]
            group = Group("module", f"m{path}@{k}", path, around, k, self.ops)
            self._append(around, group, None)
            self._stack.append(group)
        return self._stack[-1]

    def _close(self, depth: int) -> None:
        """The calls from this depth on are over: what they look like is known, so repetitions are."""
        while len(self._stack) > max(depth, 1):
            group = self._stack.pop()
            group.sig = self._looks(group)
            around = self._stack[-1]
            self._settle(around, group)
        if depth == 0:
            self._stack = []

    def _looks(self, group: Group) -> Hashable:
        """Equal for two calls that did the same: operations, shapes and how they use one another."""
        seen = []
        for k in range(group.first, group.last + 1):
            e = self._entries[self.ops[k]]
            inner = tuple(k - self.order[p] if self.order.get(p, -1) >= group.first else "" for p in e.parents)
            seen.append((e.op, e.shape, e.params, inner))
        return "module", stem(group.path) if group.path[-1:].isdigit() else group.path, hash(tuple(seen))

    def _moved(self) -> None:
        super()._moved()
        self._homes.clear()

    # --- questions ---

    def home(self, leaf: int, root: Group) -> Group | None:
        """The smallest group of a pass in which all its operations are that use a leaf; None where none does."""
        key = root.first, leaf
        if key not in self._homes:
            users = self.users.get(leaf, ())
            low = bisect_left(users, root.first, key=self.order.__getitem__)
            high = bisect_right(users, root.last, key=self.order.__getitem__)
            if low == high:
                return None
            home = self.parent[users[low]]
            for user in users[low + 1 : high]:
                home = _shared(home, self.parent[user])
            self._homes[key] = home
        return self._homes[key]

    def only(self, group: Group, root: Group) -> int | None:
        """The operation that is all there is in a group of a pass; None for more, or a tensor that only it uses."""
        if group.n_ops != 1:
            return None
        node = self.ops[group.first]
        leaves = (p for p in self._entries[node].parents if p in self._entries and p not in self.order)
        return None if any(self.home(p, root) is self.parent[node] for p in leaves) else node

    def holder(self, node: int) -> Group:
        """The group in whose frame an operation stands."""
        holder = shown(self.parent[node], self.slot[node])
        assert holder is not None
        return holder

    def pass_of(self, node: int) -> Group:
        """The pass in which an operation ran."""
        group = self.parent[node]
        while group.parent is not None:
            group = group.parent
        return group


def _newest(entries: Mapping[int, Entry], n: int) -> list[int]:
    """The last n keys."""
    return list(islice(newest_first(entries), n))[::-1]


def _sign(entry: Entry) -> Hashable:
    return entry.op, entry.module, entry.params



def _shared(a: Group, b: Group) -> Group:
    """The innermost group of a pass that holds both."""
    if a is b:
        return a
    around = set()
    at: Group | None = a
    while at is not None:
        around.add(id(at))
        at = at.parent
    at = b
    while at.parent is not None and id(at) not in around:
        at = at.parent
    return at


def _segments(module: str) -> list[str]:
    """The parts of a module's path.

    Example:
        >>> _segments("blocks.0.attention")
        ['blocks', '0', 'attention']
    """
    return module.split(".") if module else []
