"""CaptureView: a function as it is, its trace and its script: lines that ran, graphs, and where results differ."""

from __future__ import annotations

from lab.events import CaptureCompared, CapturesBegun, Event, GraphCaptured
from lab.words import counted
from widgets.pictures.scene import Scene
from widgets.view import View
from widgets.views.capture.picture import HEADS, MOST_INPUTS, MOST_SOURCE, WORDS, Told, scene_of
from widgets.views.nothing import nothing_for

WRITE = "CaptureView(lab.compare_captures(f, 1.0, -1.0))"


class CaptureView(View[Told | None]):
    """What a trace and a script made of a function, as `lab.compare_captures` found it.

    Args:
        source: what that returned, or a Recording of it.

    Example:
        >>> import lab
        >>> def bounded(x):
        ...     return lab.cond(x > 1.0, lambda x: 1.0 + 0.0 * x, lambda x: x, x)
        >>> view = CaptureView(lab.compare_captures(bounded, 2.0, 0.5))
        >>> view.sentence_at(5)
        'Input 1, 2.0, by the trace of input 1: 1.0, equal.'
    """

    listens = (CapturesBegun, GraphCaptured, CaptureCompared)
    stops = (GraphCaptured, CaptureCompared)
    title = "Traced and scripted"
    opens_at_end = True

    def start(self) -> Told | None:
        return None

    def fold(self, state: Told | None, event: Event) -> Told | None:
        match event:
            case CapturesBegun():
                return Told(event, {}, {}, event)
            case GraphCaptured() if state is not None:
                return state._replace(graphs={**state.graphs, event.way: event}, last=event)
            case CaptureCompared() if state is not None:
                results = {**state.results, (event.number, event.way): event}
                return state._replace(results=results, last=event)
        return state

    def picture(self, state: Told | None) -> Scene:
        if state is None:
            return Scene(caption=self._why_empty(), title=self.title)
        return scene_of(state, self.title, _caption(state))

    def text(self, state: Told | None) -> str:
        if state is None:
            return self._why_empty()
        results = [_result(e, state) for e in state.results.values()]
        graphs = [_graph(e, state) for e in state.graphs.values()]
        ran = [_ran(e) for e in state.results.values() if e.way == "eager"]
        return "\n".join([_newest(state), *results, *ran, *graphs])

    def _why_empty(self) -> str:
        if self.recording.live or len(self.recording.positions(CapturesBegun)):
            return "Nothing was captured yet."
        return nothing_for("CaptureView", "a function beside its trace and its script", WRITE, self.recording)


def _newest(state: Told) -> str:
    """What came last."""
    match state.last:
        case CaptureCompared() as e:
            return _result(e, state)
        case GraphCaptured() as e:
            return _graph(e, state).splitlines()[0].replace(" a graph:", " a graph.")
    return "Nothing ran yet."


def _by(way: str) -> str:
    return HEADS[way] if way == "eager" else f"by the {HEADS[way]}"


def _result(e: CaptureCompared, state: Told) -> str:
    word = "" if e.way == "eager" and e.verdict == "equal" else f", {WORDS[e.verdict]}"
    burned = _burned(e, state) if (e.way, e.verdict) == ("trace", "wrong") else ""
    return f"Input {e.number + 1}, {state.begun.inputs[e.number]}, {_by(e.way)}: {e.result or 'nothing'}{word}{burned}."


def _burned(e: CaptureCompared, state: Told) -> str:
    """What a trace has that another input would do otherwise."""
    plain, saw = state.results.get((e.number, "eager")), state.graphs["trace"].lines
    ran = () if plain is None else plain.lines
    other = sorted({*ran} - {*saw}), sorted({*saw} - {*ran})
    words = [f"{_numbers(lines)} {what}" for lines, what in zip(other, ("not in the trace", "burned in"), strict=True)
             if lines]  # fmt: skip
    return f" ({', '.join(words) or 'the same lines, with numbers of input 1 burned in'})"


def _numbers(lines: list[int] | tuple[int, ...]) -> str:
    return f"line{'s' * (len(lines) != 1)} {', '.join(map(str, lines))}"


def _ran(e: CaptureCompared) -> str:
    """The lines that ran."""
    words = f"{_numbers(sorted(e.lines))} ran" if e.lines else "which lines ran is not known"
    return f"Input {e.number + 1}: {words}."


def _graph(e: GraphCaptured, state: Told) -> str:
    head = f"The {HEADS[e.way]}"
    if e.ok:
        return f"{head} is a graph:\n{e.text}"
    at = e.lines[-1] if e.lines else 0
    line = f" at line {at}, {state.begun.lines[at - 1].strip().rstrip(':')}" if 0 < at <= len(state.begun.lines) else ""
    return f"{head} is refused{line}: {e.text}."


def _caption(state: Told) -> str:
    n = len(state.begun.inputs)
    words = (
        f"{state.begun.function} for {counted(n, 'input')}: as it is, by a trace of the first, and by a script of its"
        " source. Marks before a line say for which inputs it ran, whether the trace saw it and whether the script has"
        " an equation of it."
    )
    for way in ("trace", "script"):
        of_way = [e for e in state.results.values() if e.way == way]
        if way in state.graphs and not state.graphs[way].ok:
            words += f" The {HEADS[way]} is refused."
        elif len(of_way) == n:
            equal = sum(e.verdict == "equal" for e in of_way)
            words += f" The {HEADS[way]} is equal for {equal} of {n}."
    left_out = n > MOST_INPUTS or len(state.begun.lines) > MOST_SOURCE
    return words + (" Not all inputs or lines are drawn." if left_out else "")
