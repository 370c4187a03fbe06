"""A graph of more boxes than one reads: shown by module, opened where one looks, with paths, pins and a search.

What is open, pinned, found or lit belongs to the view, not to the recording; the same recording can be looked at twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from widgets.pictures.scene import Scene, Token
from widgets.tape import wording
from widgets.tape.tape import Entry, Tape
from widgets.views.graph.board import Board
from widgets.views.graph.drawing import Drawing, boxes_of, newest_op
from widgets.views.graph.group import Group
from widgets.views.graph.groups import Groups
from widgets.views.graph.parts import TOKENS, legend_words
from widgets.views.graph.paths import Path, path_of
from widgets.views.graph.telling import sentence

OPENS = 60
"""Up to so many hits of a search are opened; more are lit where they are."""
SAID = ("edge done", "frame")
"""What no legend has to explain: an open group has its name, an arrow is as its box."""
LINES = 40
"""Lines of the picture in words."""


class Large:
    """The reader's side of a GraphView: groups, and what was opened, pinned, looked for and lit.

    Args:
        direction: "right" or "down".
    """

    def __init__(self, direction: str) -> None:
        self.direction = direction
        self.groups, self.names = Groups(), wording.Names()
        self.n_boxes = 0
        """Boxes if nothing were closed."""
        self.opened: dict[str, bool] = {}
        self.everything = False
        self.pinned: set[int] = set()
        self.path = Path("", "")
        self.found = ""
        self.hits: frozenset[int] = frozenset()
        self.chosen: int | None = None
        """Number of the pass that is shown; None: the newest."""
        self._for_hits: set[str] = set()
        self._hay: dict[int, str] = {}
        self._changed = False
        self._entries: Mapping[int, Entry] = {}
        self._board: Board | None = None
        self._drawing: Drawing | None = None
        self._lit: tuple[object, frozenset[str]] = None, frozenset()

    def grow(self, entries: Mapping[int, Entry]) -> None:
        """Take what came since."""
        self._entries = entries
        if self.groups.n_seen == len(entries):
            return
        for node in self.groups.grow(entries):
            entry = entries[node]
            if node not in self.names.full:
                self.names.add(node, entry)
                self.n_boxes += 1 + sum(p not in entries for p in entry.parents)

    # --- what the reader does ---

    def fold(self, box: str) -> None:
        """Open a closed group, close an open one."""
        if self._board is not None and isinstance(group := self._board.boxes.get(box), Group):
            self._for_hits.discard(box)
            is_open = self.opened.get(box, box in self._for_hits or self._board.is_open(group))
            self.opened[box] = not is_open
            self._changed = True

    def open_all(self, on: bool) -> None:
        """Open every group, also those that come; or close all."""
        self.everything, self.opened, self._changed = on, {}, True

    def pin(self, box: str) -> None:
        """Hold on to a node, or let it go."""
        if box.isdigit():
            self.pinned ^= {int(box)}
            self._changed = True

    def find(self, text: str, state: Tape) -> None:
        """Look for nodes by name, operation, module or shape; "" ends it."""
        self.found = " ".join(text.split())
        self.hits = frozenset(self._matching(self.found.lower().split(), state)) if self.found else frozenset()
        self._for_hits = set()
        if len(self.hits) <= OPENS and state.entries:
            root = self.root(state)
            for node in self.hits:
                group = self.groups.holder(node) if node in self.groups.parent else self.groups.home(node, root)
                self._for_hits |= {g.id for g in group.up()} if group is not None else set()
        self._changed = True

    def _matching(self, words: list[str], state: Tape) -> Iterable[int]:
        for node, entry in state.entries.items():
            if node not in self._hay:
                name, shape = self.names.full[node], wording.shape(entry.shape)
                plain = name.translate(wording.PLAIN)
                also = shape.replace("×", "x")
                self._hay[node] = f"{name} {plain} {entry.op} {entry.module} {shape} {also} {entry.shape}".lower()
            if all(word in self._hay[node] for word in words):
                yield node

    # --- the picture ---

    def root(self, state: Tape) -> Group:
        """The pass that is shown: the chosen one, or that of the newest operation."""
        if self.chosen is not None and 0 <= self.chosen < len(self.groups.roots):
            return self.groups.roots[self.chosen]
        newest = newest_op(state, self.groups.order)
        return self.groups.pass_of(self.groups.ops[newest]) if newest >= 0 else self.groups.roots[0]

    def called(self, state: Tape) -> str:
        """What the shown pass is called."""
        return f"pass {self.groups.roots.index(self.root(state)) + 1}"

    def begun(self, state: Tape) -> bool:
        """Whether anything of the shown pass is there: of one that the reader chose it may not be."""
        root = self.root(state)
        return root is self.groups.roots[0] or newest_op(state, self.groups.order) >= root.first

    def drawing(self, state: Tape, end: Tape) -> Drawing:
        """Boxes and edges of a state; `end` is the newest one, which decides where they stand."""
        self.grow(end.entries)
        root, board = self.root(state), self._board
        if board is not None and board.root is root:
            board.grow(end.entries)
        if board is None or board.root is not root or board.stale or self._changed:
            self._changed = False
            opened = {**self.opened, **dict.fromkeys(self._for_hits, True)}
            pinned = frozenset(self.pinned)
            board = self._board = Board(self.groups, root, end.entries, opened, pinned, self.direction, self.everything)
            self._drawing = Drawing(board, self.names)
        assert self._drawing is not None
        self._drawing.draw(state, _rounded(end.largest))
        return self._drawing

    def scene(self, state: Tape, end: Tape, selected: str, title: str) -> Scene:
        """The whole picture."""
        self.grow(end.entries)
        if not self.begun(state):
            return Scene(caption=self.caption(state), title=title, instead=f"{self.called(state)} has not begun here")
        drawing = self.drawing(state, end)
        edges = drawing.edges
        tokens = [Token(edges[k].id, duration=600.0, backward=edges[k].state == "backward")
                  for k in drawing.moving[:TOKENS]]  # fmt: skip
        there = {mark.removeprefix("edge ") for mark, n in drawing.counts.items() if n > 0 and mark not in SAID}
        pinned = frozenset(str(n) for n in self.pinned if str(n) in drawing.nodes)
        there |= {"pin"} if pinned else set()
        return Scene(
            tuple(drawing.nodes.values()), tuple(edges.values()), tuple(tokens), self.caption(state), title,
            legend_words(there), self.box_of(selected), "diverging", drawing.board.places.extent,
            lit=self.lit(state), pinned=pinned, found=self.found,
        )  # fmt: skip

    def box_of(self, selected: str) -> str:
        """The box that shows what was selected: itself, or the group that it is in."""
        if self._drawing is None or selected in self._drawing.nodes:
            return selected if self._drawing is not None else ""
        return self._drawing.board.seen.get(int(selected), "") if selected.isdigit() else ""

    def op_of(self, box: str) -> str:
        """The operation that a box shows, where a group is nothing else; else the box."""
        group = self.group(box)
        node = self.groups.only(group, self._board.root) if group is not None and self._board is not None else None
        return box if node is None else str(node)

    def inside(self, selected: str) -> list[int]:
        """The nodes that a box stands for."""
        if selected.isdigit():
            return [int(selected)]
        group = self._board.boxes.get(selected) if self._board is not None else None
        return self.groups.ops[group.first : group.last + 1] if isinstance(group, Group) else []

    def group(self, selected: str) -> Group | None:
        """The group of a box."""
        what = self._board.boxes.get(selected) if self._board is not None else None
        return what if isinstance(what, Group) else None

    # --- what stands out ---

    def lit(self, state: Tape) -> frozenset[str]:
        """Ids of the boxes and edges of the path or the hits."""
        if not self.found and not self.path.kind:
            return frozenset()
        assert self._board is not None
        key = self._board, len(self._board.links), state.mark, self.path, self.hits
        if self._lit[0] != key:
            nodes = self.hits if self.found else path_of(self.path, state, self.inside(self.path.box))
            ids = boxes_of(self._board, (n for n in nodes if n in state.entries))
            if not self.found:
                ids |= {f"{s}>{t}" for (s, t), link in self._board.links.items()
                        if any(n in nodes and state.entries[n].parents[i] in nodes
                               for n, i in link.pairs if n in state.entries)}  # fmt: skip
            self._lit = key, ids
        return self._lit[1]

    def boxes_of(self, nodes: Iterable[int]) -> frozenset[str]:
        """Ids of the boxes in which nodes are seen."""
        return boxes_of(self._board, nodes) if self._board is not None else frozenset()

    def lit_along(self, steps: Iterable[tuple[int, int]]) -> frozenset[str]:
        """Ids of the boxes and edges through which the operations with these operands, as (operation, number), run."""
        taken = set(steps)
        if self._board is None or not taken:
            return frozenset()
        entries = self._board.entries
        nodes = {node for n, i in taken if n in entries for node in (n, entries[n].parents[i])}
        ways = {f"{s}>{t}" for (s, t), link in self._board.links.items() if taken.intersection(link.pairs)}
        return frozenset(boxes_of(self._board, (n for n in nodes if n in entries)) | ways)

    # --- words ---

    def caption(self, state: Tape) -> str:
        """The point of the picture in a sentence or two."""
        root = self.root(state)
        if not self.begun(state):
            words = f"{self.called(state).capitalize()} has not begun at this moment: it is {self._which(root)}."
            return f"{words} Step on, or choose another."
        if self.found:
            return self.told_hits()
        n = min(root.last, newest_op(state, self.groups.order)) - root.first + 1
        words = f"{n:,} operation{'s' * (n != 1)}, by module: a box with a + is a group, open it to see what it holds."
        older = " ".join(filter(None, [self.told_passes(root), self.told_sums(), self.told_apart()]))
        s = "s" * (state.n_left_out != 1)
        left = f"{state.n_left_out:,} more operation{s} came after {len(state.entries):,} and are not kept."
        return " ".join(filter(None, [words, older, left * (state.n_left_out > 0)]))

    def told_hits(self) -> str:
        """How many match, and how many of them a closed group holds: there one sees the group."""
        ops = sum(node in self.groups.order for node in self.hits)
        what = "operations" if ops == len(self.hits) else "operations and tensors"
        n = len(self.groups.ops) if ops == len(self.hits) else self.groups.n_seen
        match = "matches" if len(self.hits) == 1 and n == 1 else "match"
        seen = self._board.seen if self._board is not None and self.n_boxes else {}
        shut = [box for node in self.hits if not self.op_of(box := seen.get(node, "0")).isdigit()]
        groups = f"{len(set(shut)):,} closed group{'s' * (len(set(shut)) > 1)}"
        some = f", {len(shut):,} of them" if len(shut) < len(self.hits) else ","
        where = f"{some} in {groups}" if shut else ""
        told = f"{len(self.hits):,} of {n:,} {what} {match} “{wording.clipped(self.found)}”{where}."
        others = sum(node not in seen for node in self.hits) if seen else 0
        return f"{told} {others:,} {'are' if others > 1 else 'is'} in passes that are not drawn." if others else told

    def told_passes(self, root: Group) -> str:
        """What is recorded and not drawn."""
        roots = self.groups.roots
        if len(roots) < 2:
            return ""
        others = len(roots) - 1
        ops = sum(r.n_ops for r in roots) - root.n_ops
        counted = f"{ops:,} operation{'s' * (ops != 1)}"
        rest = f"the other{'s' * (others > 1)} ({counted}) {'are' if others > 1 else 'is'} not drawn"
        return f"This is {self._which(root)}; {rest}."

    def told_sums(self) -> str:
        """That the gradients of leaves are of more than the pass whose values are drawn, where that is so."""
        if len(self.groups.roots) < 2:
            return ""
        n = max((self._entries[leaf].n_summed for leaf in self.groups.leaves), default=0)
        if n < 2:
            return ""
        return f"The gradients of tensors that you made are sums over {n} backward walks, not over this pass alone."

    def told_apart(self) -> str:
        """Which boxes stand beside the group that they are a part of."""
        apart = list(self._board.apart) if self._board is not None else []
        if not apart:
            return ""
        names = ", ".join(wording.clipped(self.names.short[n]) for n in apart[:3]) + "…" * (len(apart) > 3)
        one = len(apart) == 1
        return (
            f"{names} {'is' if one else 'are'} pinned: a part of the group beside {'it' if one else 'them'};"
            " the arrows “out” of the group and “back” into it are no cycle."
        )

    def _which(self, root: Group) -> str:
        """A pass among all of them, in words."""
        roots = self.groups.roots
        k = roots.index(root) + 1
        return f"{'the newest' if k == len(roots) else f'number {k}'} of {len(roots)} passes"

    def text(self, state: Tape, end: Tape) -> str:
        """The picture in words: what happened last, then its boxes, indented as the frames are."""
        self.grow(end.entries)
        told = [sentence(state, self.names.full), self.caption(state)]
        if not self.begun(state):
            return "\n".join(told)
        drawing = self.drawing(state, end)
        sheets, boxes = drawing.board.places, drawing.nodes.values()
        for node in boxes:
            if len(told) > LINES:
                break
            if node.kind != "constant":
                told.append("  " * sheets.boxes[node.id].sheet.level + (node.aria or node.label))
        more = len(boxes) - drawing.counts["constant"] - (len(told) - 2)
        if more:
            told.append(f"and {more:,} more boxes")
        return "\n".join(told)


def _rounded(largest: float) -> float:
    """Up to a power of two: while it grows, colours change seldom."""
    if not 0 < largest < float("inf"):
        return 0.0
    power = 1.0
    while power < largest:
        power *= 2
    while power / 2 >= largest:
        power /= 2
    return power
