"""What is known of one node, as a small HTML page beside the scene: pure text from a Tape, everything escaped."""

from __future__ import annotations

from collections import Counter
from html import escape
from pathlib import PurePath

import numpy as np

from lab.events.cells import cell_of
from widgets.fold import Events
from widgets.pictures import theme
from widgets.tape import wording
from widgets.tape.tape import FORGOTTEN, Entry, Seen, Tape
from widgets.views.graph.group import Group

ARRIVALS = 12
"""Contributions to a gradient that are listed."""
GRID = 8
"""Matrices up to GRID x GRID are shown entry by entry."""
HOW = "Click a box, or move to it with the arrow keys and press Enter, to see its value, its rule and its line of code."
CONSTANT = "A constant: it is not tracked, so no gradient is computed for it."


def inspected(
    tape: Tape, selected: str, recording: Events, called: dict[int, str] | None = None, group: Group | None = None
) -> str:
    """HTML for the node of the scene called `selected`; "" tells how to choose one.

    Args:
        called: the names of the nodes, if they are known already.
        group: what is selected, if it is a group.

    Example:
        >>> "A constant: it is not tracked" in inspected(Tape(), "c2.0", range(0))
        True
    """
    page = "<div style='line-height:1.5;overflow-wrap:anywhere'>{}</div>".format  # a line of code may have no space
    entry = tape.entries.get(int(selected)) if selected.isdigit() else None
    if group is not None:
        return page(_group(tape, group))
    if entry is None:
        return page(CONSTANT if selected.startswith("c") else HOW)
    called = called or wording.names(tape.entries)
    head = wording.formula(entry, called)
    parts = [f"<h4 style='margin:0 0 4px'>{escape(wording.clipped(head, 60))}</h4>", *_operation(entry)]
    parts.append(_row("value", _array(entry.value) or escape(f"{wording.shape(entry.shape)} {entry.dtype}")))
    parts.append(_row("gradient", _gradient(entry)))
    parts.extend(_arrivals(tape, entry, called))
    parts.extend(_rules(tape, entry, called))
    parts.append(_origin(entry, recording))
    return page("".join(parts))


def _row(name: str, html: str) -> str:
    return f"<div style='margin:4px 0'><b>{escape(name)}</b> {html}</div>" if html else ""


def _code(text: str) -> str:
    return f"<code style='white-space:pre-wrap'>{escape(text)}</code>"


def _operation(entry: Entry) -> list[str]:
    if not entry.op:
        return ["<div>A tensor that you made: the tape starts here, and its gradient is kept.</div>"]
    known = wording.record(entry.op)
    doc = known.doc.strip().splitlines()[0] if known is not None and known.doc.strip() else ""
    formula = (getattr(known, "formula", "") or "") if known is not None else ""
    numbers = wording.formula_with_numbers(entry)
    shown = " ".join(filter(None, (_code(formula) if formula else "", f"= {_code(numbers)}" if numbers else "")))
    return [f"<div>{_code(entry.op)} {escape(doc)}</div>", _row("formula", shown)]


def _gradient(entry: Entry) -> str:
    if not entry.has_gradient:
        return "<i>none yet</i>"
    text = _array(entry.gradient) or "computed"
    if entry.came is not None:
        text += " <i>after a hook: it is not the sum of what came back</i>"
    if not entry.accumulated:
        return text
    before, _, total = wording.sum_of_walks(entry)
    earlier = f"the {escape(before)} stored before: {escape(total)}" if total else "what was stored before"
    summed = f": {wording.summed(entry)}" if entry.n_summed > 1 else ""
    return f"{text}, <i>added to {earlier}{summed}</i>"


def _arrivals(tape: Tape, entry: Entry, called: dict[int, str]) -> list[str]:
    """The contributions that came back to this node, whose sum is its gradient."""
    came = [
        f"{escape(wording.short(tape.contributions[source, i]))} from {escape(called[source])}"
        for source in reversed(tape.users.get(entry.node, ()))  # as a walk comes by
        for i, parent in enumerate(tape.entries[source].parents)
        if parent == entry.node
        and (source, i) in tape.contributions
        and tape.entries[source].walk == entry.walk  # of an earlier walk: not part of this sum
    ]
    more = f" and {len(came) - ARRIVALS:,} more" if len(came) > ARRIVALS else ""
    return [_row("came back", " + ".join(came[:ARRIVALS]) + more)] if came else []


def _group(tape: Tape, group: Group) -> str:
    """What a group holds, and what comes out of it."""
    ops = [tape.entries[n] for n in group.nodes if n in tape.entries]
    head = f"<h4 style='margin:0 0 4px'>{escape(wording.clipped(group.name, 60))}</h4>"
    if not ops:
        return head
    counts = Counter(e.op for e in ops).most_common()
    kinds = ", ".join(f"{op} × {n}" if n > 1 else op for op, n in counts[:8]) + "…" * (len(counts) > 8)
    last = ops[-1]
    parts = [head, f"<div>{len(ops):,} operations: {escape(kinds)}</div>"]
    parts.append(_row("gives", _array(last.value) or escape(f"{wording.shape(last.shape)} {last.dtype}")))
    parts.append(_row("gradient", _gradient(last)))
    parts.append(_row("module", escape(group.path.replace("/", "."))) if group.path else "")
    return "".join(parts)


def _rules(tape: Tape, entry: Entry, called: dict[int, str]) -> list[str]:
    """What this node's rules send to each of its operands."""
    made = []
    targets = tape.targets.get(entry.node, ())
    for i, operand in enumerate(wording.operands(entry, called)):
        rule, numbers = wording.rule_with_numbers(tape, entry, i)
        if i < len(targets) and targets[i] == FORGOTTEN:
            made.append(_row(f"to {operand}", (_code(rule) if rule else "") + " <i>(cleared since)</i>"))
            continue
        if entry.parents[i] < 0 or (i < len(targets) and targets[i] < 0):
            made.append(_row(f"to {operand}", "<i>nothing: no gradient wanted</i>"))
            continue
        seen = tape.contributions.get((entry.node, i))
        sent = _array(seen)
        if seen is not None and seen.shape != entry.shape and getattr(wording.record(entry.op), "elementwise", False):
            sent = f"<i>summed over the axes that were broadcast</i> {sent}"
        result = f" = {_code(numbers)}" if numbers else f": {sent}" if sent else " <i>(not run yet)</i>"
        made.append(_row(f"to {operand}", (_code(rule) if rule else "") + result))
    return made


def _array(seen: Seen | None) -> str:
    """Small arrays as a grid, larger ones as statistics."""
    if seen is None:
        return ""
    if seen.size == 1:
        return escape(wording.scalar(seen))
    bad = f"; <b>{seen.n_nonfinite} not finite</b>" if seen.n_nonfinite else ""
    if seen.value is not None and len(seen.shape) in (1, 2) and max(seen.shape) <= GRID:
        rows = np.atleast_2d(seen.value)
        cell = "<td style='padding:0 6px;text-align:right'>{}</td>".format
        body = "".join(f"<tr>{''.join(cell(escape(theme.short(v.item()))) for v in row)}</tr>" for row in rows)
        return f"{wording.shape(seen.shape)}{bad}<table style='font-variant-numeric:tabular-nums'>{body}</table>"
    low, high, mean, norm = map(theme.short, (seen.minimum, seen.maximum, seen.mean, seen.norm))
    return escape(f"{wording.shape(seen.shape)}, {low} to {high}, mean {mean}, norm {norm}") + bad


def _origin(entry: Entry, recording: Events) -> str:
    place = _row("module", escape(entry.module)) if entry.module else ""
    if not entry.file:
        return place
    source = getattr(recording, "source", None)
    line = source(entry.file, entry.line).strip() if source is not None else ""
    where = cell_of(entry.file) or PurePath(entry.file.replace("\\", "/")).name
    return place + _row("line", f"{escape(where)}, line {entry.line} {_code(line) if line else ''}")
