"""A step as a Scene: what came in on the left, a product for each operand in the middle, the sums on the right."""

from __future__ import annotations

import math
from statistics import mean

from widgets.pictures.measure import text_width
from widgets.pictures.scene import Edge, Mark, Node, Scene, Token
from widgets.views.contributions.ledger import Product, Step, Sum

HIGH, ROW, GAP, TOP = 66.0, 96.0, 72.0, 78.0
CAPTION = (
    "A rule multiplies the gradient that came in by the local derivative and sends the product to an operand;"
    " what comes back to a value that was used several times is added up."
)
HEADINGS = "came in", "× local derivative", "gradient so far"


def scene_of(step: Step, title: str) -> Scene:
    """The picture of a step."""
    columns = _columns(step)
    widths = [max((w for *_, w in column), default=0.0) for column in columns]
    widths = [max(w, text_width(h, 13.0, bold=True)) for w, h in zip(widths, HEADINGS, strict=True)]
    if not step.products:
        widths[1:] = []
    lefts = [sum(widths[:k]) + GAP * k for k in range(len(widths))]
    rows = {p.operand: TOP + ROW * k for k, p in enumerate(step.products)}
    into = {s.target: [rows[p.operand] for p in step.products if p.target == s.target] for s in step.sums}
    middle = TOP + ROW * max(0, len(rows) - 1) / 2
    tops = _apart([mean(into[s.target]) for s in step.sums])
    nodes = [_incoming(step, lefts[0] + widths[0] / 2, middle, widths[0])]
    nodes += [_product(step, p, lefts[1] + widths[1] / 2, rows[p.operand], widths[1]) for p in step.products]
    nodes += [_sum(s, lefts[2] + widths[2] / 2, y, widths[2]) for s, y in zip(step.sums, tops, strict=True)]
    edges = []
    for p in step.products:
        name = f"{step.node}.{p.operand}"
        edges.append(Edge(f"{name}<", "in", name, state="done"))
        edges.append(Edge(f"{name}>", f"sum{p.target}", name, state="backward"))
    marks = [Mark("what", "heading", 0, 10, text=step.heading)]
    marks += [Mark(f"h{k}", "text", x, 32, text=h) for k, (x, h) in enumerate(zip(lefts, HEADINGS, strict=False))]
    more = f" {step.n_left_out:,} more operands are not drawn." if step.n_left_out else ""
    wide = max(lefts[-1] + widths[-1], text_width(step.heading, 13.0, bold=True))
    tokens = tuple(Token(e.id, duration=600.0, backward=True) for e in edges if e.state == "backward")
    extent = wide, max(node.y for node in nodes) + HIGH / 2 + 4
    words = CAPTION + more, title, _legend(step)
    return Scene(tuple(nodes), tuple(edges), tokens, *words, extent=extent, marks=tuple(marks))


def _columns(step: Step) -> list[list[tuple[str, float]]]:
    """The widest line of each box and its width, column by column."""
    came = [f"gradient of {step.name}", step.gradient]
    products = [line for p in step.products for line in (p.local, p.rule, p.product)]
    sums = [line for s in step.sums for line in (s.name, s.text, s.progress)]
    return [[(line, _width(line)) for line in lines] for lines in (came, products, sums)]


def _width(line: str) -> float:
    return max(96.0, 12.0 * math.ceil((text_width(line, 14.0, bold=True) + 28) / 12))


def _apart(wanted: list[float]) -> list[float]:
    """Where the sums stand: beside what is added to them, none over another."""
    tops: list[float] = []
    for y in wanted:
        tops.append(max(y, tops[-1] + ROW * 0.8) if tops else y)
    return tops


def _incoming(step: Step, x: float, y: float, width: float) -> Node:
    label, words = f"gradient of {step.name}", step.gradient or "not recorded"
    state = "active" if step.products else "new"
    aria = f"{step.heading}: {label} {words}"
    return Node("in", x, y, width, HIGH, label, words, kind="output", state=state, aria=aria)


def _product(step: Step, p: Product, x: float, y: float, width: float) -> Node:
    aria = f"{p.local}, rule {p.rule}: {p.product}" + (f"; the derivative itself: {p.why}" if p.why else "")
    name = f"{step.node}.{p.operand}"
    return Node(name, x, y, width, HIGH, p.local, p.rule, p.product, "op", "active", aria=aria)


def _sum(s: Sum, x: float, y: float, width: float) -> Node:
    state = "waiting" if s.n_open else "done"
    aria = f"gradient of {s.name}: {s.text}, {s.progress}"
    return Node(f"sum{s.target}", x, y, width, HIGH, s.name, s.text, s.progress, "leaf", state, aria=aria)


def _legend(step: Step) -> tuple[tuple[str, str], ...]:
    words = {"backward": "contribution", "waiting": "more to come", "done": "gradient complete"}
    there = {"backward"} if step.products else set()
    there |= {"waiting" if s.n_open else "done" for s in step.sums}
    return tuple((mark, text) for mark, text in words.items() if mark in there)
