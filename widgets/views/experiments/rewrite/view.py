"""RewriteView: pass by pass, the graph before and after, with what was folded, merged, fused and left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from lab.events import GraphMade, PassesBegun, PassFinished
from lab.words import counted
from widgets.pictures.scene import Scene
from widgets.pictures.theme import short
from widgets.views.experiments.experiment import Rows, RowsView, of
from widgets.views.experiments.passes import did, pass_line
from widgets.views.experiments.rewrite.board import Board
from widgets.views.experiments.rewrite.step import Step, lines_of

LEGEND = (
    ("waiting", "goes into another"), ("trouble", "left out"), ("new", "made by the pass"), ("done", "stays, changed"),
    ("active", "runs at another place"), ("store", "stands for"),
)  # fmt: skip
MOST_LINES = 120
"""Lines of a difference in the text."""


class RewriteView(RowsView):
    """What each pass of the compiler did to a graph: before and after, equation by equation.

    Args:
        source: what `lab.measure_passes` returned, or a Recording of it.

    Example:
        >>> import lab, numpy as np
        >>> found = lab.measure_passes(lambda x: lab.exp(x) * lab.exp(x), np.ones(3), repeats=1)
        >>> view = RewriteView(found)
        >>> stop = view.stop_positions(found.recording)[6]
        >>> view.text_at(int(stop)).splitlines()[1:3]
        ['  b:f64[3] = exp(a)', '- c:f64[3] = exp(a)']
    """

    listens = (PassesBegun, GraphMade, PassFinished)
    stops = (PassFinished,)
    title = "Before and after a pass"
    shows = "what the passes of the compiler did to a graph"
    write = "RewriteView(lab.measure_passes(f, x))"

    def picture(self, state: Rows) -> Scene:
        graphs = of(state, GraphMade)
        if not graphs:
            return Scene(caption=_no_graphs(state) or self._why_empty(), title=self.title)
        last, before = graphs[-1], graphs[-2] if len(graphs) > 1 else graphs[-1]
        step = Step(lines_of(before), lines_of(last))
        board = Board(step)
        nodes, edges = tuple(board.nodes()), tuple(board.edges())
        shown = {node.state for node in nodes} | {edge.state for edge in edges}
        titles = _titles(before, last)
        return Scene(
            nodes, edges, caption=_caption(state, step), title=self.title, extent=board.extent,
            legend=tuple(pair for pair in LEGEND if pair[0] in shown), marks=tuple(board.marks(titles)),
        )  # fmt: skip

    def told(self, rows: Rows) -> str:
        graphs, done = of(rows, GraphMade), of(rows, PassFinished)
        if not graphs:
            return _no_graphs(rows) or "No pass has finished yet."
        before = graphs[-2] if len(graphs) > 1 else graphs[-1]
        changes = list(_difference(before.words, graphs[-1].words))
        cut = [f"... {len(changes) - MOST_LINES} more lines"] if len(changes) > MOST_LINES else []
        first = pass_line(done[-1]) if done else f"{graphs[-1].name}: made."
        return "\n".join([first, *changes[:MOST_LINES], *cut])


def _difference(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Lines that stay, go and come."""
    for what, i, i_end, j, j_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what == "equal":
            yield from (f"  {line}" for line in before[i:i_end])
        else:
            yield from (f"- {line}" for line in before[i:i_end])
            yield from (f"+ {line}" for line in after[j:j_end])


def _no_graphs(rows: Rows) -> str:
    """Why a recording of passes has no graphs, if that is so."""
    if of(rows, PassFinished):
        return "This recording has counts of its passes but not their graphs: lab.measure_passes records both by now."
    return ""


def _titles(before: GraphMade, after: GraphMade) -> tuple[str, str]:
    if before is after:
        return before.name, before.name
    return f"{before.number} {before.name}", f"{after.number} {after.name}"


def _stayed(step: Step) -> str:
    """What a pass did that made, merged and left out nothing; "" of any other."""
    if {"into", "gone"} & {*step.left} or "new" in step.right:
        return ""
    moved, changed = (step.right.count(fate) for fate in ("moved", "changed"))
    parts = [f"{counted(moved, 'equation')} moved"] if moved else []
    return ", ".join([*parts, f"{counted(changed, 'equation')} changed in place"] if changed else parts)


def _caption(rows: Rows, step: Step) -> str:
    done = of(rows, PassFinished)
    if not done:
        return "No pass has finished yet."
    now, then = done[-1], done[-2] if len(done) > 1 else done[-1]
    words = f"{now.name[:1].upper()}{now.name[1:]}: {_stayed(step) or did(now)}."
    pairs = (
        ("equations", then.n_equations, now.n_equations), ("kernels", then.n_kernels, now.n_kernels),
        ("kB read and written", then.n_bytes / 1e3, now.n_bytes / 1e3), ("µs a run, measured", then.run_us, now.run_us),
    )  # fmt: skip
    counts = "; ".join(f"{name} {short(a)} → {short(b)}" for name, a, b in pairs)
    return f"{words} Before → after: {counts}. An equation is a row, in the order in which they run."
