"""Repetitions in a tree of groups that grows at its end: the same parts several times become a run, "x N".

A part is put at the end of a group and may turn out to be one more copy of what is there, or the end of a run; what has
too many parts is shown in stretches.
"""

from __future__ import annotations

from collections.abc import Hashable

from widgets.views.graph.group import STRETCH, Group, stem

LONGEST = 256
"""A repeated sequence has at most so many parts."""
LEAST = 8
"""A pass that is told from the next by its first operation only has at least so many; so has a repetition of ops."""
MANY = 60
"""A pass or module of more parts is shown in stretches."""


class Repeats:
    """The parts of groups, and where each of them is.

    Attributes:
        ops: nodes of operations in order; `order` is its inverse.
        parent, slot: the group that an operation is a part of, and its place among the items there.
        version: another number whenever something that was there has moved.
    """

    def __init__(self) -> None:
        self.version = 0
        self._clear()

    def _clear(self) -> None:
        self.ops: list[int] = []
        self.order: dict[int, int] = {}
        self.parent: dict[int, Group] = {}
        self.slot: dict[int, int] = {}

    def _moved(self) -> None:
        """Something that was there stands elsewhere now."""
        self.version += 1

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


def _parts(run: Group) -> int:
    if run.period == 1:
        return len(run.items)
    copy = run.items[-1]
    assert isinstance(copy, Group)
    return len(copy.items)
