"""A jvp as a Scene: a box for each value with its tangent, the pair of both on the arrows into the newest one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from widgets.pictures.scene import Edge, Node, Scene, Token
from widgets.tape import wording
from widgets.tape.boxes import Places, standing
from widgets.tape.tape import Entry
from widgets.views.dual.duals import Duals

PAIRS = 140.0
"""Room between layers, for a pair of numbers on an arrow."""
LEGEND = {"leaf": "input", "op": "operation", "output": "result", "constant": "carries no tangent"}


class Plan(NamedTuple):
    """What does not change while one jvp is played: names, places, and which results nobody used."""

    called: Mapping[int, str]
    places: Places
    outputs: frozenset[int]


def scene_of(state: Duals, plan: Plan, title: str) -> Scene:
    """The picture of a moment."""
    entries = state.entries.values()
    nodes = [node for e in entries for node in _nodes(e, state, plan)]
    edges = [edge for e in entries for edge in _edges(e, state, plan)]
    tokens = tuple(Token(e.id, duration=600.0) for e in edges if e.state == "forward")
    kinds = {node.kind for node in nodes}
    legend = tuple((kind, words) for kind, words in LEGEND.items() if kind in kinds)
    return Scene(tuple(nodes), tuple(edges), tokens, _caption(state), title, legend, extent=plan.places.extent)


def planned(end: Duals, direction: str) -> Plan:
    """Where the boxes of a whole jvp stand."""
    called = wording.names(end.entries)
    used = {p for entry in end.entries.values() for p in entry.parents}
    outputs = frozenset(n for n, e in end.entries.items() if e.op and n not in used)
    places = standing(end.entries, called, lambda entry: end.lines(entry, called), direction, PAIRS)
    return Plan(called, places, outputs)


def _nodes(entry: Entry, state: Duals, plan: Plan) -> list[Node]:
    """The box of a value, and those of its constants."""
    lines = state.lines(entry, plan.called)
    kind = "leaf" if not entry.op else "output" if entry.node in plan.outputs else "op"
    name, status = str(entry.node), "new" if entry.node == state.newest else "idle"
    where = plan.places.nodes
    made = [Node(name, *where[name], *lines, kind, status, aria=", ".join(lines))] if name in where else []
    for i, text in enumerate(wording.operands(entry, plan.called)):
        name = f"c{entry.node}.{i}"
        if name in where:
            words = wording.clipped(text)
            made.append(Node(name, *where[name], words, kind="constant", aria=f"{words}, carries no tangent"))
    return made


def _edges(entry: Entry, state: Duals, plan: Plan) -> list[Edge]:
    """The arrows into a box; into the newest the operand and its tangent go, as a pair."""
    made = []
    for i, parent in enumerate(entry.parents):
        name, operand = f"{entry.node}.{i}", state.entries.get(parent)
        if name in plan.places.bends:
            here, bends = entry.node == state.newest, plan.places.bends[name]
            label = _pair(operand) if here and operand is not None else ""
            source = str(parent) if operand is not None else f"c{entry.node}.{i}"
            made.append(Edge(name, source, str(entry.node), bends, label, "forward" if here else "idle"))
    return made


def _pair(operand: Entry) -> str:
    pair = wording.scalar(operand.value), wording.scalar(operand.gradient)
    return f"({', '.join(pair)})" if all(pair) else wording.shape(operand.shape)


def _caption(state: Duals) -> str:
    several = f" This is the newest of {state.n_jvps} jvps." if state.n_jvps > 1 else ""
    more = f" {state.n_left_out:,} more operations are not drawn." if state.n_left_out else ""
    return (
        "Forward mode: an operation computes its value and, by its rule, the tangent beside it, in one pass."
        f" On an arrow the pair (value, tangent).{several}{more}"
    )
