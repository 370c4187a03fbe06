"""A layout that only grows: boxes in columns, open groups as frames around columns of their own; nothing placed moves.

Numbers in, coordinates out. The main line of every frame lies on the main line of what is around it, all else hangs
below; so whatever comes later finds room to the right or further down, and a live picture costs what is new.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Point = tuple[float, float]
Size = tuple[float, float]

GAP, LANE = 22.0, 14.0
"""Free space between neighbours in a column, and the room of an edge that passes under them."""
HEAD, PAD = 30.0, 16.0
"""Of a frame: room for its name, and around what it holds."""
TALL = 33.0
"""Half of the tallest box: what the main line has above it."""


class Box:
    """Something that was placed: where in which sheet. A frame has a sheet of its own, `inner`."""

    __slots__ = ("along", "bottom", "column", "inner", "line", "sheet", "shift", "top")

    def __init__(self, sheet: Sheet, column: int, line: float, along: float, across: float) -> None:
        self.sheet, self.column, self.line, self.along, self.shift = sheet, column, line, along, 0.0
        self.top = self.bottom = across / 2
        self.inner: Sheet | None = None


class Column:
    """One column of a sheet: left edge from the sheet's own, thickness, and how far down it is taken."""

    __slots__ = ("bottom", "left", "thick")

    def __init__(self, left: float, thick: float) -> None:
        self.left, self.thick, self.bottom = left, thick, float("-inf")


class Sheet:
    """Columns side by side: the whole picture, or what is in a frame."""

    __slots__ = ("bottom", "columns", "frame", "lanes", "left", "level", "y")

    def __init__(self, frame: Box | None, level: int) -> None:
        self.frame, self.level = frame, level
        self.columns: list[Column] = []
        self.bottom = 0.0
        self.left, self.y = 0.0, 0.0
        """Where column 0 and the main line are on the picture."""
        self.lanes: dict[str, tuple[float, int]] = {}
        """Of each source of edges that pass under columns: how low, and up to which column."""


Bend = tuple[Sheet, int, float, float, float]
"""A sheet, a column of it, a side (0 near, 1 far), how far from there, and the height on the picture."""


class Growing:
    """Where the boxes and edges of a picture are.

    Args:
        depth: the deepest frame's level, 0 when there is none: the main line leaves room for so many names above it.
        direction: "right" or "down".
        gap: free space between columns.
        thick: what a column has at least, so that a box that comes late moves nothing.

    Example:
        >>> places = Growing(0)
        >>> places.add("a", None, (40, 20), ())
        >>> places.add("b", None, (40, 20), [places.boxes["a"]])
        >>> places.where("b")
        (132.0, 45.0, 40, 20.0)
    """

    def __init__(self, depth: int, direction: str = "right", gap: float = 60.0, thick: float = 0.0) -> None:
        self.depth, self.down, self.gap, self._thick = depth, direction == "down", gap, thick
        self.boxes: dict[str, Box] = {}
        self.root = Sheet(None, 0)
        self._before, self._behind = (HEAD, PAD) if self.down else (PAD, PAD)
        self._above, self._below = (PAD, PAD) if self.down else (HEAD, PAD)
        self.root.left, self.root.y = 12.0, 12.0 + TALL + self._above * depth
        if self.down:
            self.root.left, self.root.y = 12.0, 100.0 + self._above * depth
        self.shifted = False
        """Something that was there has moved along: ask all places again."""
        self._half = 88.0 if self.down else TALL

    # --- placing ---

    def sheet(self, frame: str | None) -> Sheet:
        """The sheet in a frame, or the whole."""
        inner = self.root if frame is None else self.boxes[frame].inner
        assert inner is not None
        return inner

    def add(
        self, name: str, frame: str | None, size: Size, after: Sequence[Box], *, least: int = 0, at: int = -1
    ) -> None:
        """Place a box behind the boxes `after` of the same frame, at the earliest in column `least`.

        Args:
            at: the column that it hangs in, at its far edge, whatever it comes after.
        """
        sheet = self.sheet(frame)
        column, line = self.wanted(after, least) if at < 0 else (at, float("-inf"))
        along, across = self._turned(size)
        box = self.boxes[name] = self._put(sheet, column, line, along, across / 2, across / 2)
        if at >= 0:
            box.shift = sheet.columns[at].thick - along

    def add_frame(self, name: str, frame: str | None, after: Sequence[Box], *, least: int = 0) -> None:
        """Place an empty frame; what is added to it makes it grow."""
        sheet = self.sheet(frame)
        column, line = self.wanted(after, least)
        level = sheet.level + 1
        top = self._half + self._above * (self.depth - level + 1)
        box = self._put(sheet, column, line, 0.0, top, self._below)
        self.boxes[name] = box
        box.inner = Sheet(box, level)
        box.inner.left = sheet.left + sheet.columns[column].left + self._before
        box.inner.y = sheet.y + box.line

    def within(self, name: str, frame: str | None) -> Box | None:
        """The box of this frame in which a box stands, or that it is; None where it stands elsewhere."""
        sheet, box = self.sheet(frame), self.boxes.get(name)
        while box is not None and box.sheet is not sheet:
            box = box.sheet.frame
        return box

    def forward(self, source: str, target: str) -> bool:
        """Whether an edge between two boxes, or the frames around them, runs on."""
        a, b = self._apart(source, target)
        return a[-1].column < b[-1].column

    def _apart(self, source: str, target: str) -> tuple[list[Box], list[Box]]:
        """Both with the frames around them up to where they part, innermost first."""
        a, b = list(_frames(self.boxes[source])), list(_frames(self.boxes[target]))
        while len(a) > 1 and len(b) > 1 and a[-1] is b[-1]:
            a.pop()
            b.pop()
        return a, b

    def _turned(self, size: Size) -> Size:
        return (size[1], size[0]) if self.down else size

    def wanted(self, after: Sequence[Box], least: int) -> tuple[int, float]:
        """The column and the line of what comes behind some boxes."""
        nearest = max(after, key=lambda b: b.column, default=None)
        if nearest is None:
            return least, 0.0
        return max(least, nearest.column + 1), nearest.line

    def _put(self, sheet: Sheet, k: int, line: float, along: float, top: float, bottom: float) -> Box:
        while len(sheet.columns) <= k:
            last = sheet.columns[-1] if sheet.columns else None
            sheet.columns.append(Column(last.left + last.thick + self.gap if last else 0.0, self._thick))
        column = sheet.columns[k]
        line = max(line, column.bottom + GAP + top) if column.bottom > float("-inf") else max(line, 0.0)
        box = Box(sheet, k, line, along, 0.0)
        box.top, box.bottom = top, bottom
        self._grow(sheet, k, along, line + bottom)
        return box

    def _grow(self, sheet: Sheet, k: int, along: float, bottom: float) -> None:
        """A column takes more room: so do the frames around it."""
        column = sheet.columns[k]
        if along > column.thick:
            for other in sheet.columns[k + 1 :]:
                other.left += along - column.thick
                self.shifted = True
            column.thick = along
        column.bottom = max(column.bottom, bottom)
        sheet.bottom = max(sheet.bottom, bottom)
        frame = sheet.frame
        if frame is not None:
            last = sheet.columns[-1]
            frame.along = self._before + last.left + last.thick + self._behind
            frame.bottom = max(frame.bottom, sheet.bottom + self._below)
            self._grow(frame.sheet, frame.column, frame.along, frame.line + frame.bottom)

    def settle(self) -> None:
        """After a shift: say anew where the sheets are. Boxes placed first stand outside of those placed in them."""
        self.shifted = False
        for box in self.boxes.values():
            if box.inner is not None:
                box.inner.left = box.sheet.left + box.sheet.columns[box.column].left + self._before
                box.inner.y = box.sheet.y + box.line

    # --- edges ---

    def route(self, source: str, target: str) -> tuple[Bend, ...]:
        """The bends of an edge.

        It leaves the frames around its source under their boxes, passes under what is between the outermost two, and
        gets to its target under what is before it in its frames.
        """
        a, b = self.boxes[source], self.boxes[target]
        out, into = self._apart(source, target)
        bends: list[Bend] = []
        y = a.sheet.y + a.line
        for box in out[:-1]:
            last = len(box.sheet.columns) - 1
            if box.column < last:
                y = box.sheet.y + box.sheet.bottom + 8.0
                bends += [self._down(box, y), (box.sheet, last, 1.0, 10.0, y)]
        bends += self._between(source, out[-1], into[-1], y, b.sheet.y + b.line)
        for box in reversed(into[:-1]):
            if box.column > 0:
                y = self._lane(source, box.sheet, -1, box.column)
                bends += [(box.sheet, 0, 0.0, -8.0, y), self._up(box, y)]
        return tuple(bends)

    def beside(self, source: str, target: str) -> tuple[Bend, ...]:
        """The bends of an edge between a box and one that hangs below it in its column, past what hangs between.

        It runs down on the near side and up on the far one, so that there and back are two ways.
        """
        a, b = self.boxes[source], self.boxes[target]
        down = a.line < b.line
        upper, lower = (a, b) if down else (b, a)
        heights = [upper.sheet.y + upper.line + upper.bottom + GAP / 2, lower.sheet.y + lower.line]
        side, off = (0.0, -self.gap / 2) if down else (1.0, self.gap / 2)
        return tuple((a.sheet, a.column, side, off, y) for y in (heights if down else reversed(heights)))

    def _down(self, box: Box, y: float) -> Bend:
        """Where an edge that leaves a box has come down to y: below the box, if nothing hangs there, else behind it."""
        free = box.inner is None and box.line + box.bottom >= box.sheet.columns[box.column].bottom
        return box.sheet, box.column, *((0.0, box.shift + 0.7 * box.along) if free else (1.0, self.gap / 2)), y

    def _up(self, box: Box, y: float) -> Bend:
        free = box.inner is None and box.line + box.bottom >= box.sheet.columns[box.column].bottom
        return box.sheet, box.column, *((0.0, box.shift + 0.3 * box.along) if free else (0.0, -self.gap / 2)), y

    def _between(self, source: str, a: Box, b: Box, leaves: float, enters: float) -> list[Bend]:
        sheet = a.sheet
        if b.column <= a.column:
            return []
        if b.column == a.column + 1:
            if leaves == enters:
                return []
            first, last = sheet.columns[a.column], sheet.columns[b.column]
            out: Bend = sheet, a.column, 1.0, 8.0, leaves
            into: Bend = sheet, b.column, 0.0, -8.0, enters
            return [out] * (a.along < first.thick) + [into] * (b.along < last.thick)
        y = self._lane(source, sheet, a.column, b.column)
        return [self._down(a, y), self._up(b, y)]

    def _lane(self, source: str, sheet: Sheet, start: int, stop: int) -> float:
        """How low an edge must run that passes under the columns between two; edges of one source run together."""
        low, upto = sheet.lanes.get(source, (float("-inf"), start))
        lowest = max((c.bottom for c in sheet.columns[upto + 1 : stop]), default=float("-inf"))
        if lowest + LANE > low:
            low = max((c.bottom for c in sheet.columns[start + 1 : stop]), default=0.0)
            low = max(low, 0.0) + LANE
            upto = start
        for k in range(upto + 1, stop):
            self._grow(sheet, k, 0.0, low)
        sheet.lanes[source] = low, max(upto, stop - 1)
        return sheet.y + low

    # --- where it is ---

    def where(self, name: str) -> tuple[float, float, float, float]:
        """Centre, width and height of a box on the picture."""
        box = self.boxes[name]
        x = box.sheet.left + box.sheet.columns[box.column].left + box.shift + box.along / 2
        top, bottom = box.sheet.y + box.line - box.top, box.sheet.y + box.line + box.bottom
        y = (top + bottom) / 2
        return (y, x, bottom - top, box.along) if self.down else (x, y, box.along, bottom - top)

    def bends(self, route: Sequence[Bend]) -> tuple[Point, ...]:
        """The points of a route."""
        made: list[Point] = []
        for sheet, k, side, off, y in route:
            column = sheet.columns[k]
            x = sheet.left + column.left + side * column.thick + off
            if made and made[-1][1] == y:
                made += _eased(made[-1][0], x, y)
            made.append((x, y))
        return tuple((y, x) for x, y in made) if self.down else tuple(made)

    @property
    def extent(self) -> Size:
        """Width and height of the whole."""
        if not self.root.columns:
            return 0.0, 0.0
        last = self.root.columns[-1]
        along, across = self.root.left + last.left + last.thick + 12.0, self.root.y + self.root.bottom + 12.0
        return (across, along) if self.down else (along, across)


def _eased(start: float, end: float, y: float) -> list[Point]:
    """Points between two of one height, close at both ends: a smooth line through them does not swing out there."""
    near, steps = 20.0, []
    while near < abs(end - start) / 2:
        steps.append(near)
        near *= 3
    way = 1.0 if end > start else -1.0
    return [(start + way * s, y) for s in steps] + [(end - way * s, y) for s in reversed(steps)]


def _frames(box: Box) -> Iterator[Box]:
    """A box and the frames around it, innermost first."""
    at: Box | None = box
    while at is not None:
        yield at
        at = at.sheet.frame
