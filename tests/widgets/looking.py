"""How tests of collectives look at a picture: what stands in the cells, what moves, at each stop."""

from __future__ import annotations

import lab
from lab.parallel import run_local


def stops(view):
    return [int(p) for p in view.stop_positions(view.recording)]


def scenes(view):
    return [view.picture_at(p) for p in stops(view)]


def node(scene, name):
    return {n.id: n for n in scene.nodes}[name]


def cells(scene):
    return {n.id: (n.label, n.sublabel) for n in scene.nodes if "." in n.id}


def moving(scene):
    return {e.id: (e.state, e.label) for e in scene.edges if e.state != "idle"}


def recorded(operation, algorithm, arrays):
    """A real run, on ranks that are threads."""
    with lab.record(detail="value") as rec:
        run_local(operation, algorithm, arrays)
    return rec
