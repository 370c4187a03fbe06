"""A case as a Scene: a row of cells for each operand, one for each axis of the result, which is the row at the foot.

Shapes are written right-aligned, as broadcasting reads them; what is stretched, or summed over, stands out.
"""

from __future__ import annotations

import math

from widgets.pictures.measure import text_width
from widgets.pictures.scene import Edge, Mark, Node, Scene, Token
from widgets.tape import wording
from widgets.tape.cells import Cell, row_of
from widgets.views.broadcast.axes import Case, Operand

HIGH, ROW, TOP, CELL, GAP = 66.0, 84.0, 84.0, 108.0, 56.0
FORWARD = (
    "Shapes are compared from the last axis on. An axis of length 1, or one that is missing, is stretched: each entry"
    " is used several times."
)
BACKWARD = (
    "What was used several times gets a sum: over each axis that was stretched the gradient is added up, and has the"
    " shape of its operand again."
)


def scene_of(case: Case, title: str) -> Scene:
    """The picture of a case."""
    names = [(o.name, _about(o.value, o.shape), _sent(o.sent)) for o in case.operands]
    result = (case.what, _about(case.value, case.shape), _sent(case.gradient))
    wide = max(_width(line) for lines in (*names, result) for line in lines)
    left = wide + GAP
    nodes: list[Node] = []
    edges: list[Edge] = []
    for k, (operand, lines) in enumerate(zip(case.operands, names, strict=True)):
        made, arrow = _row(case, operand, lines, wide, left, TOP + ROW * k)
        nodes += made
        edges.append(arrow)
    foot = TOP + ROW * len(case.operands) + 12
    nodes += _result(case, result, wide, left, foot)
    tokens = tuple(Token(e.id, duration=600.0, backward=case.backward) for e in edges if e.state != "idle")
    marks = [Mark("what", "heading", 0, 10, text=case.heading)]
    marks += [
        Mark(f"h{k}", "text", left + CELL * (k + 0.5), 34, text=f"axis {k}", anchor="middle")
        for k in range(len(case.shape))
    ]
    marks.append(Mark("line", "grid", 0, foot - ROW / 2 - 6, left + CELL * len(case.shape)))
    extent = max(left + CELL * len(case.shape), text_width(case.heading, 13.0, bold=True)), foot + HIGH / 2 + 4
    words = BACKWARD if case.backward else FORWARD
    return Scene(
        tuple(nodes), tuple(edges), tokens, words, title, _legend(case, edges), extent=extent, marks=tuple(marks)
    )


def _row(
    case: Case, operand: Operand, lines: tuple[str, str, str], wide: float, left: float, y: float
) -> tuple[list[Node], Edge]:
    """The box of an operand, its cells, and the arrow between."""
    name = f"o{operand.number}"
    account = operand.account(case.backward)
    kind = "leaf" if operand.wanted or not case.backward else "constant"
    made = [Node(name, wide / 2, y, wide, HIGH, *lines, kind, "done" if operand.sent else "idle", aria=account)]
    cells = []
    for k, axis in enumerate(operand.axes):
        label, word = axis.backward if case.backward and operand.wanted else axis.forward
        moves = axis.summed and (operand.wanted or not case.backward)
        state, aria = "active" if moves else "idle", f"{operand.name}, axis {k}: {label} {word}".rstrip()
        if axis.have is None and not axis.summed:  # of length 1 in the result, too
            label = "–"
        cells.append(Cell(label, word, aria, state))
    made += row_of(name, cells, left, y, CELL)
    status = ("backward" if operand.wanted else "none") if case.backward else "forward" if operand.summed else "idle"
    target = f"{name}.0" if operand.axes else "out"
    return made, Edge(f"{name}>", name, target, state=status)


def _result(case: Case, lines: tuple[str, str, str], wide: float, left: float, y: float) -> list[Node]:
    aria = ", ".join(filter(None, lines))
    box = Node("out", wide / 2, y, wide, HIGH, *lines, "op", "active" if case.backward else "new", aria=aria)
    cells = [Cell(str(n), aria=f"result, axis {k}: {n}") for k, n in enumerate(case.shape)]
    return [box, *row_of("out", cells, left, y, CELL)]


def _about(value: str, shape: tuple[int, ...]) -> str:
    """The shape, and the numbers where they are few."""
    words = wording.shape(shape)
    return words if not value or value.startswith(words) else f"{words}: {value}" if shape else value


def _sent(gradient: str) -> str:
    return f"grad {gradient}" if gradient else ""


def _width(line: str) -> float:
    return max(120.0, 12.0 * math.ceil((text_width(line, 14.0, bold=True) + 28) / 12))


def _legend(case: Case, edges: list[Edge]) -> tuple[tuple[str, str], ...]:
    words = {"active": "summed over" if case.backward else "stretched"}
    words |= {"backward": "contribution", "none": "no gradient wanted"}
    there = {e.state for e in edges} | {"active"}
    return tuple((mark, text) for mark, text in words.items() if mark in there)
