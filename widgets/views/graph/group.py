"""A group: operations that ran one after the other, in a tree of passes, calls of modules, repetitions, stretches."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Hashable, Iterator
from itertools import groupby

STRETCH = 40
"""A group with too many parts is shown in stretches of so many."""


class Group:
    """Operations `first` to `last` (counted in the order in which they ran), as a tree.

    Attributes:
        kind: "pass", "module" (one call of it), "run" (the same thing several times), "copy" (one of those times) or
            "stretch" (some parts of a group that has too many).
        items: nodes of operations and groups, in order.
    """

    __slots__ = (
        "_at", "_floor", "_ops", "_sigs", "first", "id", "items", "kind", "last", "parent", "path", "period", "sig",
        "slot",        "stretches",
    )  # fmt: skip

    def __init__(self, kind: str, name: str, path: str, parent: Group | None, first: int, ops: list[int]) -> None:
        self.kind, self.id, self.path, self.parent = kind, name, path, parent
        self.items: list[int | Group] = []
        self._ops = ops
        self.first, self.last = first, first - 1
        self.period = 0
        """Of a run: parts of one copy."""
        self.sig: Hashable = None
        self.slot = 0
        """Its place among the items of its parent."""
        self.stretches: list[Group] = []
        self._sigs: list[Hashable] = []
        self._at: dict[Hashable, list[int]] = {}
        self._floor = 0

    @property
    def n_ops(self) -> int:
        """Operations in it."""
        return self.last - self.first + 1

    @property
    def nodes(self) -> list[int]:
        """The nodes of its operations."""
        return self._ops[self.first : self.last + 1]

    @property
    def whole_run(self) -> Group | None:
        """The run that is all there is in it: then the two are one on a picture."""
        only = self.items[0] if len(self.items) == 1 and self.kind in ("module", "copy") else None
        return only if isinstance(only, Group) and only.kind == "run" else None

    @property
    def shown_items(self) -> list[int | Group]:
        """What stands in its frame."""
        if self.kind == "stretch":
            assert self.parent is not None
            return self.parent.items[self.slot * STRETCH : (self.slot + 1) * STRETCH]
        return list(self.stretches) or (self.whole_run or self).items

    @property
    def shown_parent(self) -> Group | None:
        """The group in whose frame it stands."""
        return self.parent if self.kind == "stretch" else shown(self.parent, self.slot)

    @property
    def name(self) -> str:
        """What it is called in its frame: "attention", "blocks × 24", "2 layers × 12", "matmul, tanh × 5"."""
        return self.name_at(self.last)

    def name_at(self, newest: int) -> str:
        """The name when operation number `newest` was the newest."""
        run = self if self.kind == "run" else self.whole_run
        if self.kind == "stretch":
            return f"ops {self.first + 1:,} to {self.last + 1:,}"
        own = "pass" if self.kind == "pass" else f"copy {self._place}" if self.kind == "copy" else self._own_name
        if self.kind == "run":
            each = (str(sig[1]).rpartition("/")[2] or "layers" for sig in self._sigs)  # type: ignore[index]
            alike = [(word, len(list(same))) for word, same in groupby(each)]
            words = [f"{k} {word}" if k > 1 else word for word, k in alike]
            own = ", ".join(words[:3]) + "…" * (len(words) > 3)
        n = 1 if run is None else run.n_copies(newest)
        return own if n == 1 else f"{own} × {n}"

    @property
    def _own_name(self) -> str:
        """The last part of the path; one of a list is called by the list's name too, one without a name a layer."""
        *before, last = self.path.split("/")
        return (f"{before[-1]}.{last}" if before else f"layer {last}") if last.isdigit() else last

    @property
    def _place(self) -> int:
        assert self.parent is not None
        return self.parent.items.index(self) + 1

    def n_copies(self, newest: int) -> int:
        """Of a run: how often, up to an operation, with one that has begun."""
        if newest >= self.last:
            return len(self.items)
        if not isinstance(self.items[0], Group):
            return newest - self.first + 1
        return bisect_right(self.items, newest, key=lambda item: item.first)  # type: ignore[union-attr]

    def up(self) -> Iterator[Group]:
        """It and all around it that can be on a picture, innermost first."""
        at: Group | None = self
        while at is not None:
            yield at
            at = at.shown_parent

    def within(self) -> Iterator[Group]:
        """All groups in it, outermost first."""
        for item in self.shown_items:
            if isinstance(item, Group):
                yield item
                yield from item.within()


def shown(group: Group | None, slot: int) -> Group | None:
    """The group in whose frame item number `slot` of a group stands."""
    if group is None:
        return None
    if group.stretches:
        return group.stretches[slot // STRETCH]
    up = group.parent
    return up if up is not None and up.whole_run is group else group


def stem(path: str) -> str:
    """The path of what a numbered module is one of.

    Example:
        >>> stem("blocks/12"), stem("head")
        ('blocks', 'head')
    """
    return re.sub(r"/?\d+$", "", path)
