"""Where a player of a tape stops: after an event with what was seen of it, so that no number is missing."""

from __future__ import annotations

import numpy as np

from lab.events import (
    BackwardStarted,
    Event,
    GradientCleared,
    LeafUsed,
    OpRecorded,
    RuleApplied,
    ValueSeen,
    ValueWritten,
)
from widgets.fold import Events, Positions, merged


def settled(events: Events, kinds: tuple[type[Event], ...]) -> Positions:
    """For each event of these kinds the position after it and after the ValueSeen that belong to it, ascending."""
    n = len(events)
    trails = np.zeros(n + 1, dtype=bool)  # a ValueSeen that belongs to the event before it
    seen, where = events.columns(ValueSeen, 0, n), events.positions(ValueSeen)
    where = where[: len(seen["node"])]
    role, node = np.asarray(seen["role"]), np.asarray(seen["node"])
    trails[where[role == "contribution"]] = True
    belongs = (OpRecorded, "node", "value"), (ValueWritten, "node", "value"), (BackwardStarted, "root", "gradient")
    for kind, field, wanted in belongs:
        own = np.full(n + 1, -1, dtype=np.int64)
        columns = events.columns(kind, 0, n)
        own[events.positions(kind)[: len(columns[field])] + 1] = columns[field]
        mine = (own[where] == node) & (role == wanted)
        trails[where[mine]] = True
    end = np.where(trails, n + 1, np.arange(n + 1))
    end = np.minimum.accumulate(end[::-1])[::-1]  # the first position from here on that does not trail
    every = merged(*(_of_known(events, kind) for kind in kinds))
    stops: Positions = end[every[every < n] + 1]
    return stops


def after_rules(events: Events) -> Positions:
    """For each RuleApplied the position after it and after all that it sent, ascending."""
    n = len(events)
    seen, where = events.columns(ValueSeen, 0, n), events.positions(ValueSeen)
    sent = where[: len(seen["node"])][np.asarray(seen["role"]) == "contribution"]
    ran = events.positions(RuleApplied)
    ran = ran[ran < n]
    following = np.append(ran[1:], n)[: len(ran)]
    last = np.append(-1, sent)[np.searchsorted(sent, following)]  # operations may lie between, under create_graph
    stops: Positions = np.maximum(ran, last) + 1
    return stops


def before_newer(events: Events, kind: type[Event], level: int) -> int:
    """The position before the first event of a kind that is of a younger transform; the end if there is none."""
    n = len(events)
    rows = events.columns(kind, 0, n)
    newer = np.asarray(rows["position"])[np.asarray(rows["level"]) > level]
    return int(newer[0]) if len(newer) else n


def _of_known(events: Events, kind: type[Event]) -> Positions:
    """Where the events of a kind stand, without what happened to leaves before their first use: they have no box."""
    where = events.positions(kind)
    if kind not in (ValueWritten, GradientCleared) or not len(where):
        return where
    used = dict(zip(events.columns(LeafUsed)["node"].tolist(), events.positions(LeafUsed).tolist(), strict=False))
    nodes = events.columns(kind)["node"].tolist()
    known = [p for p, node in zip(where.tolist(), nodes, strict=False) if used.get(node, p) < p]
    return np.asarray(known, dtype=np.int64)
