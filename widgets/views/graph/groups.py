"""Which operations belong together: passes, calls of modules within them, and what is repeated as "x N".

The tree only grows while operations come, so a live picture costs what is new. A group is a stretch of operations that
ran one after the other; so what is drawn in place of groups has no cycle, whatever is closed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Mapping
from itertools import islice

from widgets.tape.tape import Entry, newest_first
from widgets.views.graph.group import STRETCH, Group, shown, stem

LONGEST = 256
"""A repeated sequence has at most so many parts."""
LEAST = 8
"""A pass that is told from the next by its first operation only has at least so many; so has a repetition of ops."""

OFTEN = 8
"""When so many passes turned out to go on in the next, the whole recording is one."""
MANY = 60
"""A pass or module of more parts is shown in stretches."""


class Groups:
    """The tree of a Tape's entries; `grow` with a later Tape of the same recording adds what is new.

    Attributes:
        roots: the passes, oldest first.
        ops: nodes of operations in order; `order` is its inverse.
        leaves: nodes of tensors that the user made, in order.
        version: another number whenever something that was there has moved.

    Example:
        >>> entries = {n: Entry(n, "exp", "", (n - 1,), (), "float64", module=f"layers.{n}") for n in (1, 2, 3)}
        >>> groups = Groups()
        >>> groups.grow(entries)
        [1, 2, 3]
        >>> [item.name for item in groups.roots[0].items]
        ['layers × 3']
    """

    def __init__(self) -> None:
        self.version = 0
        self._refuted: set[int] = set()
        self._refuted_signs: set[Hashable] = set()
        self._clear()

    def _clear(self) -> None:
        self.roots: list[Group] = []
        self.ops: list[int] = []
        self.leaves: list[int] = []
        self.order: dict[int, int] = {}
        self.parent: dict[int, Group] = {}
        self.slot: dict[int, int] = {}
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

    # --- repetitions ---

    def _append(self, group: Group, item: int | Group, sig: Hashable) -> None:
        """Put an item at the end of a group: into the run that is there, if it goes on with that."""
        tail = group.items[-1] if group.items else None
        if isinstance(tail, Group) and tail.kind == "run":
            if self._continues(tail, item, sig):
                self._put_in_run(tail, item)
                return
            self._spill(group, tail)
        group.items.append(item)
        group._sigs.append(sig)
        self._set_parent(item, group)
        self._stretch(group)
        if sig is not None:
            self._look_back(group)

    def _continues(self, run: Group, item: int | Group, sig: Hashable) -> bool:
        wanted = run._sigs[_parts(run) % run.period]
        if isinstance(item, Group):  # what it will look like is not known yet: the name decides until it is
            return isinstance(wanted, tuple) and wanted[0] == "module" and wanted[1] in (stem(item.path), item.path)
        return sig == wanted

    def _put_in_run(self, run: Group, item: int | Group) -> None:
        k = item.first if isinstance(item, Group) else len(self.ops) - 1
        if run.period == 1:
            run.items.append(item)
            self._set_parent(item, run)
            return
        copy = run.items[-1]
        assert isinstance(copy, Group)
        if len(copy.items) == run.period:
            copy = Group("copy", f"{run.id}#{len(run.items)}", "", run, k, self.ops)
            run.items.append(copy)
        copy.items.append(item)
        self._set_parent(item, copy)

    def _spill(self, group: Group, run: Group) -> None:
        """The run is over: parts of a copy that was not finished stand for themselves."""
        copy = run.items[-1]
        if run.period > 1 and isinstance(copy, Group) and len(copy.items) < run.period:
            run.items.pop()
            run.last = copy.first - 1
            self._move_out(group, copy.items, run._sigs)

    def _move_out(self, group: Group, items: list[int | Group], sigs: list[Hashable]) -> None:
        for item, sig in zip(items, sigs, strict=False):
            group.items.append(item)
            group._sigs.append(sig)
            self._set_parent(item, group)
        group.stretches.clear()
        self._stretch(group)
        self._moved()

    def _settle(self, around: Group, group: Group) -> None:
        """A call is over: it is one more in its run, or leaves it; or a run begins with it."""
        up = group.parent
        assert up is not None
        run = up if up.kind == "run" else up.parent if up.kind == "copy" else None
        if run is None:
            around._sigs[-1] = group.sig
            self._look_back(around)
            return
        place = 0 if run.period == 1 else len(up.items) - 1
        if group.sig == run._sigs[place]:
            return
        if run.period == 1:
            run.items.pop()
            last = run.items[-1]
            run.last = last.last if isinstance(last, Group) else self.order[last]
            self._move_out(around, [group], [group.sig])
        else:
            run.items.pop()
            run.last = up.first - 1
            self._move_out(around, up.items, [*run._sigs[:place], group.sig])
        self._look_back(around)

    def _look_back(self, group: Group) -> None:
        """Whether the last parts of a group are the same sequence several times: then they become a run."""
        sigs, k = group._sigs, len(group._sigs) - 1
        sig = sigs[k]
        before = group._at.setdefault(sig, [])
        for j in reversed(before[-32:]):
            period = k - j
            if j < group._floor or period > LONGEST:
                break
            if j and sigs[k - 1] != sigs[j - 1] and period > 1:
                continue
            calls = any(isinstance(i, Group) for i in group.items[k - period + 1 :])
            times = 2 if calls else max(3, -(-LEAST // period))
            start = k + 1 - period * times
            if start >= group._floor and sigs[start + period :] == sigs[start : k + 1 - period]:
                self._make_run(group, start, period)
                return
        before.append(k)

    def _make_run(self, group: Group, start: int, period: int) -> None:
        items, sigs = group.items[start:], group._sigs[start : start + period]
        head = items[0]
        first = head.first if isinstance(head, Group) else self.order[head]
        run = Group("run", f"r{group.path}@{first}", group.path, group, first, self.ops)
        run.period, run._sigs = period, sigs
        del group.items[start:], group._sigs[start:]
        group.items.append(run)
        group._sigs.append(object())
        group._floor = len(group.items)
        group._at.clear()
        for item in items:
            k = item.first if isinstance(item, Group) else self.order[item]
            if period == 1:
                run.items.append(item)
                self._set_parent(item, run)
                continue
            copy = run.items[-1] if run.items else None
            if not isinstance(copy, Group) or len(copy.items) == period:
                copy = Group("copy", f"{run.id}#{len(run.items)}", "", run, k, self.ops)
                run.items.append(copy)
            copy.items.append(item)
            self._set_parent(item, copy)
            copy.last = item.last if isinstance(item, Group) else k
        run.last = len(self.ops) - 1 if not isinstance(items[-1], Group) else items[-1].last
        run.slot = len(group.items) - 1
        group.stretches.clear()
        self._stretch(group)
        self._moved()

    def _set_parent(self, item: int | Group, group: Group) -> None:
        if isinstance(item, Group):
            item.parent, item.slot = group, len(group.items) - 1
        else:
            self.parent[item], self.slot[item] = group, len(group.items) - 1

    def _stretch(self, group: Group) -> None:
        """See to it that a group with too many parts is shown in stretches."""
        n = len(group.items)
        if n <= MANY or group.kind not in ("pass", "module", "copy"):
            return
        if not group.stretches:
            self.version += 1
        while len(group.stretches) * STRETCH < n:
            k = len(group.stretches)
            head = group.items[k * STRETCH]
            first = head.first if isinstance(head, Group) else self.order[head]
            made = Group("stretch", f"s{group.id}@{first}", group.path, group, first, self.ops)
            made.slot = k
            if k:
                group.stretches[-1].last = first - 1
            made.last = group.last
            group.stretches.append(made)

    def _moved(self) -> None:
        self._homes.clear()
        self.version += 1

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


def _parts(run: Group) -> int:
    if run.period == 1:
        return len(run.items)
    copy = run.items[-1]
    assert isinstance(copy, Group)
    return len(copy.items)


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
