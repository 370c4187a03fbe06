"""Captures as a Scene: source lines with what ran, what each way gave for each input, and both graphs as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lab.events import CaptureCompared, CapturesBegun, GraphCaptured
from widgets.pictures.measure import CODE_LETTER, text_width
from widgets.pictures.scene import Mark, Node, Scene
from widgets.tape.wording import clipped

LINE, COLUMN, TOP = 22.0, 48.0, 62.0
ROW, HIGH, WIDE, GAP = 62.0, 44.0, 158.0, 14.0
MOST_SOURCE, MOST_GRAPH, MOST_INPUTS = 30, 28, 6
"""Lines of the source, lines of a graph and inputs that are drawn."""
CODE = 52
"""Letters of a line that are drawn."""
WAYS = ("eager", "trace", "script")
HEADS = {"eager": "as it is", "trace": "trace of input 1", "script": "script"}
WORDS = {"equal": "equal", "wrong": "another value", "error": "an error", "none": "no graph"}
LEGEND = (("done", "equal"), ("trouble", "wrong, or an error"), ("waiting", "no graph"))
STATES = {"equal": "done", "wrong": "trouble", "error": "trouble", "none": "waiting"}


class Told(NamedTuple):
    """What was told so far.

    Attributes:
        begun: the question.
        graphs: by way.
        results: by (input, way).
        last: what came last.
    """

    begun: CapturesBegun
    graphs: dict[str, GraphCaptured]
    results: dict[tuple[int, str], CaptureCompared]
    last: object

    @property
    def inputs(self) -> range:
        """The inputs that are drawn."""
        return range(min(MOST_INPUTS, len(self.begun.inputs)))


def scene_of(told: Told, title: str, caption: str) -> Scene:
    """The picture of a moment."""
    nodes, marks = list[Node](), list[Mark]()
    bottom = _source(told, nodes, marks)
    bottom = _table(told, nodes, marks, bottom + 34)
    right = max([4 * (WIDE + GAP), *(m.x + _width(m) for m in marks)])
    bottom = max(bottom, _graphs(told, marks, right + 36))
    states = {node.state for node in nodes}
    legend = tuple(pair for pair in LEGEND if pair[0] in states)
    width = max([right, *(m.x + _width(m) + 8 for m in marks)])
    return Scene(tuple(nodes), (), (), caption, title, legend, marks=tuple(marks), extent=(width, bottom + 8))


def _width(mark: Mark) -> float:
    return CODE_LETTER * len(mark.text) if mark.kind == "code" else text_width(mark.text, 14.0)


def _source(told: Told, nodes: list[Node], marks: list[Mark]) -> float:
    """The source; before each line a box for each run that came by. Returns where it ends."""
    lines, columns = told.begun.lines[:MOST_SOURCE], _columns(told)
    marks.append(Mark("name", "heading", 0, 12, text=f"{told.begun.function}: which lines ran"))
    left = COLUMN * len(columns) + 16
    for k, (head, _) in enumerate(columns):
        marks.append(Mark(f"h{k}", "text", COLUMN * (k + 0.5), 40, text=head, anchor="middle"))
    for n, line in enumerate(lines, 1):
        y = TOP + LINE * (n - 0.5)
        bare = line.lstrip()
        if bare:
            indent = CODE_LETTER * (len(line) - len(bare))
            marks.append(Mark(f"s{n}", "code", left + indent, y, text=clipped(bare, CODE)))
        for k, (head, ran) in enumerate(columns):
            if n in ran:
                aria = f"line {n}, {bare}: {'in the graph of the' if head == 'script' else 'ran for'} {head}"
                nodes.append(Node(f"l{n}.{k}", COLUMN * (k + 0.5), y, 26, LINE - 5, head[-1:] if head[-1:].isdigit()
                                  else head[:1], state="idle", aria=aria))  # fmt: skip
    return TOP + LINE * max(1, len(lines))


def _columns(told: Told) -> list[tuple[str, frozenset[int]]]:
    """What is marked before the lines: each input, what the trace saw, what the script has."""
    found = [(f"in {i + 1}", _lines(told.results.get((i, "eager")))) for i in told.inputs]
    return [*found, *((way, _lines(told.graphs.get(way))) for way in WAYS[1:])]


def _lines(event: CaptureCompared | GraphCaptured | None) -> frozenset[int]:
    return frozenset() if event is None else frozenset(event.lines)


def _table(told: Told, nodes: list[Node], marks: list[Mark], top: float) -> float:
    """A row for each input: what it is, and what each way gave."""
    for k, head in enumerate(("input", *HEADS.values())):
        marks.append(Mark(f"t{k}", "text", (WIDE + GAP) * k, top, text=head))
    for i in told.inputs:
        y = top + 14 + ROW * i + HIGH / 2
        words = f"{i + 1}: {told.begun.inputs[i]}"
        nodes.append(Node(f"i{i}", WIDE / 2, y, WIDE, HIGH, clipped(words, 19), kind="leaf", aria=f"input {words}"))
        for k, way in enumerate(WAYS, 1):
            event = told.results.get((i, way))
            if event is not None:
                nodes.append(_result(event, (WIDE + GAP) * k + WIDE / 2, y))
    return top + 14 + ROW * len(told.inputs)


def _result(event: CaptureCompared, x: float, y: float) -> Node:
    plain = event.way == "eager"
    word = "" if plain and event.verdict == "equal" else WORDS[event.verdict]
    aria = f"input {event.number + 1}, {HEADS[event.way]}: {event.result} {word}".strip()
    state = "idle" if plain and not word else STATES[event.verdict]
    return Node(f"{event.way}{event.number}", x, y, WIDE, HIGH, clipped(event.result or "nothing ran", 19), word,
                state=state, aria=aria)  # fmt: skip


def _graphs(told: Told, marks: list[Mark], left: float) -> float:
    """Both graphs, or why there is none, one below the other. Returns where they end."""
    y = 12.0
    for way in WAYS[1:]:
        event = told.graphs.get(way)
        if event is None:
            continue
        head = f"{HEADS[way]}, as a graph" if event.ok else f"{HEADS[way]}: refused"
        marks.append(Mark(f"g{way}", "heading", left, y, text=head))
        y += 6
        for n, line in enumerate(_cut(event)):
            bare, y = line.lstrip(), y + LINE
            kind = "code" if event.ok else "text"
            marks.append(Mark(f"{way}{n}", kind, left + CODE_LETTER * (len(line) - len(bare)), y, text=bare))
        y += 40
    return y - 30


def _cut(event: GraphCaptured) -> Sequence[str]:
    lines = [clipped(line, CODE) for line in (event.text.splitlines() if event.ok else _folded(event.text))]
    more = len(lines) - MOST_GRAPH
    return lines if more <= 0 else [*lines[:MOST_GRAPH], f"… {more} more lines"]


def _folded(words: str) -> Iterable[str]:
    """A sentence in lines."""
    line = ""
    for word in words.split():
        if line and len(line) + len(word) >= CODE:
            yield line
            line = ""
        line = f"{line} {word}".lstrip()
    yield line
