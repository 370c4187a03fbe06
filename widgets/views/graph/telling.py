"""What a Tape says in sentences: its caption, what happened last, every value and gradient in words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from widgets.pictures import theme
from widgets.tape import wording
from widgets.tape.tape import Entry, Tape


def caption(state: Tape, toned: bool = False) -> str:
    """The point of the picture, in one sentence; `toned`: some boxes have a colour."""
    n_ops = sum(bool(e.op) for e in state.entries.values())
    if state.n_left_out:
        return (
            f"The first {n_ops:,} of {n_ops + state.n_left_out:,} operations; the rest is counted, not"
            " drawn. Record a smaller piece to see all of it."
        )
    if state.now.kind in {"", "op"}:
        point = "each box is an operation that ran, each arrow carries a value to where it was used."
    elif state.now.kind == "cleared":
        point = 'a cleared gradient is back to "no gradient yet"; the next walk stores a new one.'
    elif state.now.kind == "written":
        point = "a tensor of yours got new numbers; what was computed from it before keeps its number."
    elif state.now.error:
        point = f"backward stopped before any tensor of yours got a gradient: {state.now.error}."
    elif state.now.kind in {"finish", "stored"}:
        point = f"a gradient is the sum of what came back along all arrows that leave a box{_and_more(state)}."
    else:
        point = "the gradient runs back along the arrows; each rule turns what it got into what it sends on."
    if any(e.within >= 0 for e in state.entries.values()):
        point += " What a backward walk computed is a graph as well: the next walk goes over it."
    signs = " Orange: a positive gradient; blue: a negative one." if toned else ""
    return f"{n_ops} operation{'s' * (n_ops != 1)}: {point}{signs}"


def _and_more(state: Tape) -> str:
    """What else is in the gradients that this picture shows."""
    added = any(e.accumulated for e in state.entries.values())
    hooked = any(e.came is not None for e in state.entries.values())
    return ", changed by a hook where it says so" * hooked + ", added to what was stored" * added


def why_empty(state: Tape, *, ended: bool, trained: bool) -> str:
    """Why a picture has no boxes.

    Args:
        ended: nothing more will come.
        trained: steps of a training were recorded.
    """
    if state.n_walks:
        return "A backward walk ran, but not what it walks over: its forward ran before the recording began."
    if trained:
        return (
            "These are the steps of a training, without the graph of each: LossView shows them."
            " One that is stepped by operation has its graph in run.graph: GraphView(run.graph)."
        )
    if not ended:
        return "Nothing was recorded yet: each operation that runs adds a box."
    return (
        "Nothing was recorded: no operation ran in the block, or no tensor in it requires a gradient"
        " (requires_grad=True). A jvp keeps no tape; a training has a recording of its own, run.recording."
    )


def account(state: Tape) -> str:
    """The whole state in words: what happened last, then a line for each node."""
    called = wording.names(state.entries)
    told = [sentence(state, called)]
    for entry in state.entries.values():
        what = wording.formula(entry, called)
        value = wording.short(entry.value)
        written = " and ".join(_written_since(entry, state, called))
        earlier = f" (from {written} as it was then)" if written else ""
        run = f" (in the backward of {called.get(entry.within, 'an earlier result')})" if entry.within >= 0 else ""
        told.append(f"{what}{f' = {value}' if value else ''}{earlier}{run}, {gradient_words(entry)}")
    if state.n_left_out:
        told.append(f"{state.n_left_out:,} more operations are not drawn")
    return "\n".join(told)


def _written_since(entry: Entry, state: Tape, called: Mapping[int, str]) -> list[str]:
    """Operands that were written after this operation read them."""
    now = {p: state.entries[p].value for p in entry.parents if p in state.entries}
    pairs = zip(entry.parents, entry.operands, strict=False)
    return list(dict.fromkeys(called[p] for p, then in pairs if then is not None and now.get(p) is not then))


def sentence(state: Tape, called: Mapping[int, str]) -> str:
    """What happened last, in one sentence for the label of the player and for screen readers."""
    entry = state.entries.get(state.now.node)
    if not state.now.kind or entry is None:
        return "Backward ended." if state.now.kind == "finish" else "Nothing happened yet."
    name = called[entry.node]
    if state.now.kind == "op":
        value = wording.short(entry.value)
        return f"{name} = {wording.expression(entry, called)}{f' = {value}' if value else ''} was computed."
    if state.now.kind == "start":
        return f"Backward starts at {name}: its gradient is {wording.short(entry.gradient) or 'given'}."
    if state.now.kind == "written":
        value = wording.short(entry.value)
        return f"{name} was written in place{f': it is {value} now' if value else ''}."
    if state.now.kind == "cleared":
        return f"{name}: its gradient was cleared; no gradient yet."
    if state.now.kind == "stored":
        return f"{name}: {gradient_words(entry)}."
    if state.now.kind == "finish":
        if state.now.error:
            return f"Backward from {name} stopped, no gradient was stored: {state.now.error}."
        return f"Backward from {name} finished."
    sent = []
    for i, target in enumerate(state.targets.get(entry.node, ())):
        if target >= 0:
            what = wording.short(state.contributions.get((entry.node, i)))
            sent.append(f"{what or 'its part'} to {called.get(target, 'a node that is not drawn')}")
    return f"{name} = {wording.expression(entry, called)} sends {', '.join(sent) or 'nothing'}."


def gradient_line(entry: Entry) -> str:
    """The gradient as the third line of a box; "" while there is none."""
    if not entry.has_gradient:
        return ""
    before, new, total = wording.sum_of_walks(entry)
    if total:
        return f"grad {before} + {new} = {total}"
    if entry.n_summed > 1 and entry.stored is not None:
        return f"grad sum: norm {theme.short(float(np.linalg.norm(entry.stored)))}"
    text = wording.short(entry.gradient).removeprefix(f"{wording.shape(entry.shape)} ") or "done"
    if entry.gradient is not None and entry.gradient.size == 1 and entry.gradient.minimum > 0:
        text = f"+{text}"  # the sign says what the colour says
    return f"grad {'added: ' if entry.accumulated else ''}{text}{' after a hook' * (entry.came is not None)}"


def gradient_words(entry: Entry) -> str:
    """The gradient in words."""
    if not entry.has_gradient:
        return "no gradient yet"
    before, new, total = wording.sum_of_walks(entry)
    if total:
        hooked = " after a hook" * (entry.came is not None)
        return f"gradient {new}{hooked}, added to the {before} stored before: {total}{_sum(entry)}"
    hook = "" if entry.came is None else f" after a hook ({wording.short(entry.came)} came back)"
    words = f"gradient {wording.short(entry.gradient) or 'computed'}{hook}"
    return f"{words}, added to what was stored before{_sum(entry)}" if entry.accumulated else words


def _sum(entry: Entry) -> str:
    return f" ({words})" if (words := wording.summed(entry)) else ""
