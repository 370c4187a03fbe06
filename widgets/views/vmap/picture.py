"""A vmap as a Scene: a row for each value, with its axes for one member, for all members, and what ran in its place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from lab.words import counted
from widgets.pictures.measure import text_width
from widgets.pictures.scene import Edge, Mark, Node, Scene, Token
from widgets.tape import wording
from widgets.tape.cells import Cell, row_of
from widgets.views.vmap.members import Members, Row

ROW, HIGH, TOP, CELL, GAP = 54.0, 40.0, 76.0, 64.0, 40.0
CAPTION = (
    "The function is written for one member. vmap runs each operation once for all: the axis of the members stands"
    " in front, and what must be inserted for that is written beside."
)


class Plan(NamedTuple):
    """What does not change while one vmap is played: names, and where the columns begin."""

    called: Mapping[int, str]
    one: float
    all: float
    story: float
    extent: tuple[float, float]


def planned(end: Members) -> Plan:
    """Where the rows of a whole vmap stand."""
    called, rows = end.called, end.rows.values()
    widest = max(text_width(_label(end, row, called), 14.0, bold=True) for row in rows)
    n_axes = max(1, *(len(row.entry.shape) for row in rows))
    one = max(96.0, 12.0 * math.ceil((widest + 28) / 12)) + GAP
    every = one + CELL * n_axes + GAP
    story = every + CELL * max(len(row.shape_of_all(end.size)) for row in rows) + GAP / 2
    wide = max(text_width(row.story, 13.0) for row in rows)
    return Plan(called, one, every, story, (story + wide + 8, TOP + ROW * (len(rows) - 0.5) + 6))


def scene_of(state: Members, plan: Plan, title: str) -> Scene:
    """The picture of a moment."""
    nodes: list[Node] = []
    edges: list[Edge] = []
    heads = (plan.one, "one member"), (plan.all, "all at once"), (plan.story, "ran in its place")
    marks = [Mark("what", "heading", 0, 10, text=f"vmap of {counted(state.size, 'member')}")]
    marks += [Mark(f"h{k}", "text", x, 38, text=text) for k, (x, text) in enumerate(heads)]
    for k, row in enumerate(state.rows.values()):
        y, name = TOP + ROW * k, str(row.entry.node)
        nodes += _row(state, row, plan, y)
        new = row.entry.node == state.newest
        edges.append(Edge(f"{name}>", f"{name}one.{_last(row)}", f"{name}all.0", state="forward" if new else "idle"))
        marks.append(Mark(f"s{name}", "text", plan.story, y, text=row.story))
    tokens = tuple(Token(e.id, duration=600.0) for e in edges if e.state == "forward")
    kinds = {node.kind for node in nodes if ".0" in node.id}
    legend = (("group", "axis of the members"),) if "group" in kinds else ()
    return Scene(
        tuple(nodes), tuple(edges), tokens, _caption(state), title, legend, extent=plan.extent, marks=tuple(marks)
    )


def _label(state: Members, row: Row, called: Mapping[int, str]) -> str:
    return wording.clipped(state.label(row, called))


def _row(state: Members, row: Row, plan: Plan, y: float) -> list[Node]:
    """The box of a value, its axes for one member, and those for all."""
    name, label = str(row.entry.node), _label(state, row, plan.called)
    kind, status = "op" if row.entry.op else "leaf", "new" if row.entry.node == state.newest else "idle"
    one, every = wording.shape(row.entry.shape), wording.shape(row.shape_of_all(state.size))
    aria = f"{label}: one member {one}, all {every}; {row.story}"
    right = plan.one - GAP
    cells = [Cell(str(n), aria=f"{label}, one member, axis {k}: {n}") for k, n in enumerate(row.entry.shape)]
    cells = cells or [Cell("scalar", aria=f"{label}, one member: scalar")]
    members = [Cell(str(state.size), aria=f"{label}, axis of the members: {state.size}", kind="group")]
    own = [c._replace(aria=c.aria.replace("one member", "all")) for c in cells if row.axis < 0 or row.entry.shape]
    return [
        Node(name, right / 2, y, right, HIGH, label, kind=kind, state=status, aria=aria),
        *row_of(f"{name}one", cells, plan.one, y, CELL, HIGH - 4),
        *row_of(f"{name}all", [*(members if row.axis >= 0 else []), *own], plan.all, y, CELL, HIGH - 4),
    ]


def _last(row: Row) -> int:
    return max(0, len(row.entry.shape) - 1)


def _caption(state: Members) -> str:
    several = f" This is the newest of {state.n_vmaps} vmaps." if state.n_vmaps > 1 else ""
    more = f" {state.n_left_out:,} more operations are not drawn." if state.n_left_out else ""
    return f"{CAPTION}{several}{more}"
