"""The pieces of a graph's picture at one moment, made from a Tape: boxes, arrows, tokens, words for their marks."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from widgets.pictures.scene import Edge, Node, Token
from widgets.tape import wording
from widgets.tape.tape import FORGOTTEN, Entry, Seen, Tape
from widgets.views.graph.plan import Plan, signed
from widgets.views.graph.telling import gradient_words

WHOLE = 200
"""Letters of a formula in a tooltip and for a screen reader; a box has room for fewer."""
TOKENS = 60
"""At most so many tokens move at once."""
MOST_TONE = 0.75
"""The ends of the palette are so dark that every large gradient would look alike."""


def tones_of(state: Tape, largest: float) -> dict[int, float]:
    """Signed magnitude in -MOST_TONE..MOST_TONE of each gradient with a sign, against the largest of the recording."""
    scale = MOST_TONE / largest if largest else 0.0
    return {n: max(-MOST_TONE, min(MOST_TONE, v * scale)) for n, v in signed(state).items()}


def node_of(entry: Entry, state: Tape, plan: Plan, tones: Mapping[int, float], owed: Collection[int]) -> Node:
    """The box of a leaf or an operation; `owed`: the nodes to which something has come back."""
    label, value, gradient = plan.lines(entry)
    kind = "leaf" if not entry.op else "output" if entry.node in plan.outputs else "op"
    x, y, width, height = plan.nodes.get(str(entry.node), (0.0, 0.0, 96.0, 66.0))
    formula = wording.clipped(wording.formula(entry, plan.called), WHOLE)
    begins = ", nan or infinity begins here" * (entry.node == state.bad_node)
    aria = f"{formula}, {value}, {gradient_words(entry)}{begins}"
    return Node(
        str(entry.node), x, y, width, height, label, value, gradient, kind, _node_state(entry, state, owed),
        tones.get(entry.node), aria,
    )  # fmt: skip


def _node_state(entry: Entry, state: Tape, owed: Collection[int]) -> str:
    for seen in (entry.value, entry.gradient):
        if seen is not None and seen.n_nonfinite:
            return "trouble"
    if entry.node == state.now.node and state.now.kind != "finish":
        return "new" if state.now.kind == "op" else "active"
    if entry.has_gradient:
        return "done"
    return "waiting" if state.n_walks and entry.node in owed else "idle"


def frames_of(state: Tape, plan: Plan) -> list[Node]:
    """A frame around what each backward walk computed, from its first operation on."""
    begun = {entry.within for entry in state.entries.values()} & plan.frames.keys()
    names = {root: f"backward of {plan.called.get(root, 'an earlier result')}" for root in begun}
    return [
        Node(f"b{root}", *plan.frames[root], names[root], kind="frame", aria=f"{names[root]}: what its rules computed")
        for root in sorted(begun)
    ]


def constants_of(entry: Entry, plan: Plan) -> list[Node]:
    """The operands that are not tracked, or come from another band, as small boxes with their text."""
    made = []
    for i, (parent, text) in enumerate(zip(entry.parents, wording.operands(entry, plan.called), strict=True)):
        name = f"c{entry.node}.{i}"
        if name in plan.nodes:
            kind, word = ("leaf", "again:") if parent in plan.called else ("constant", "constant")
            made.append(Node(name, *plan.nodes[name], wording.clipped(text), kind=kind, aria=f"{word} {text}"))
    return made


def edges_of(entry: Entry, state: Tape, plan: Plan) -> list[Edge]:
    """The arrows into the box of an operation, with what runs along them now."""
    made = []
    targets = state.targets.get(entry.node)
    for i, parent in enumerate(entry.parents):
        name = f"{entry.node}.{i}"
        if name not in plan.bends:
            continue
        source = f"c{name}" if f"c{name}" in plan.nodes else str(parent)
        here = state.now.node == entry.node
        label, status = "", "idle"
        if here and state.now.kind == "op":
            status, label = "forward", _carried(state.entries.get(parent))
        elif targets is not None and i < len(targets) and targets[i] != FORGOTTEN:
            went = targets[i] >= 0
            status = "none" if not went else "backward" if here and state.now.kind == "rule" else "done"
            label = on_edge(state.contributions.get((entry.node, i))) if went else ""
        made.append(Edge(name, source, str(entry.node), plan.bends[name], label, status))
    return made


def _carried(source: Entry | None) -> str:
    return on_edge(source.value) if source is not None else ""


def on_edge(seen: Seen | None) -> str:
    """Short enough for an arrow: a number, or the shape that went along."""
    return "" if seen is None else wording.scalar(seen) or wording.shape(seen.shape)


def tokens_of(edges: list[Edge]) -> tuple[Token, ...]:
    """The number stands on the edge itself, so that it is still there when the token has passed."""
    moving = [e for e in edges if e.state in ("forward", "backward")][:TOKENS]
    return tuple(Token(e.id, duration=600.0, backward=e.state == "backward") for e in moving)


def legend_of(nodes: list[Node], edges: list[Edge], pinned: Collection[str] = ()) -> tuple[tuple[str, str], ...]:
    """Words for the marks that are on the picture, and for no others."""
    marks = {mark for node in nodes for mark in marks_of(node)}
    return legend_words(marks | {e.state for e in edges} - {"done", "idle"} | ({"pin"} if pinned else set()))


def marks_of(node: Node) -> tuple[str, ...]:
    """What a legend has to explain of a node; a "plain" one has the fill of its kind."""
    return node.kind, node.state, f"plain {node.kind}" * (node.tone is None)


def legend_words(there: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Words for kinds and states, of those that there are; a kind that has the fill of gradients only is "toned"."""
    words = {
        "group": "group", "leaf": "tensor you made", "op": "operation", "output": "result", "constant": "not tracked",
        "frame": "the graph of a gradient", "new": "just computed", "active": "here now", "done": "gradient complete",
        "waiting": "gradient arriving", "trouble": "nan or infinity", "pin": "pinned",
        "forward": "value", "backward": "gradient", "none": "no gradient wanted",
    }  # fmt: skip
    kinds = {"leaf", "op", "output"}
    toned = {mark: f"toned {mark}" for mark in kinds if f"plain {mark}" not in there}
    return tuple((toned.get(mark, mark), text) for mark, text in words.items() if mark in there)
