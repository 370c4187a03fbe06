"""A function run as it is, as a trace of its first input and as a script of its source: where do they differ?

A trace writes down what one run did. A branch on what it cannot see (a Python number, a shape, a closure) is burned in,
one on a traced value is refused; a script has both ways of it.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from lab import tree
from lab.errors import ArgumentError, LabError
from lab.events import Event, Recording, bus, record
from lab.events.catalogue import CaptureCompared, CapturesBegun, GraphCaptured
from lab.graph.execute import run
from lab.graph.ir import Graph
from lab.graph.make import trace
from lab.graph.script import Script, script
from lab.graph.scripting.source import is_own
from lab.transforms.arguments import function
from lab.words import said

KINDS: tuple[type[Event], ...] = (CapturesBegun, GraphCaptured, CaptureCompared)
MOST = 6
"""An array of so many numbers is written out."""


class Given(NamedTuple):
    """What one way gave for one input.

    Attributes:
        result: in words; of an error its problem.
        verdict: "equal", "wrong", "error", or "none" where there is no graph.
        lines: those that ran of the function as it is, in their order, the first line of its source being 1.
    """

    result: str
    verdict: str
    lines: tuple[int, ...] = ()


class Capture(NamedTuple):
    """A function as a graph.

    Attributes:
        graph: None where there is none.
        why: what the error said then.
        lines: of the source: those that ran while it was traced, in their order, or those that the equations of a
            script come from.
    """

    graph: Graph | None
    why: str
    lines: tuple[int, ...]


class Captures(NamedTuple):
    """What `compare_captures` found.

    Attributes:
        eager, traced, scripted: for each input what was given.
        trace, script: the graphs, for the kind of the first input.
        recording: for CaptureView.
    """

    eager: tuple[Given, ...]
    traced: tuple[Given, ...]
    scripted: tuple[Given, ...]
    trace: Capture
    script: Capture
    recording: Recording

    def __repr__(self) -> str:
        ways = {"trace": (self.trace, self.traced), "script": (self.script, self.scripted)}
        n = len(self.eager)
        words = (f"{way} equal for {sum(g.verdict == 'equal' for g in given)} of {n}" if made.graph is not None
                 else f"{way} refused" for way, (made, given) in ways.items())  # fmt: skip
        return f"<{', '.join(words)} inputs>" if self.script.graph is not None else f"<{', '.join(words)}>"


def compare_captures(f: Callable[..., Any], *inputs: Any) -> Captures:
    """Run a function for some inputs, and then a trace of the first of them and a script of its source.

    Args:
        f: a function of one's own, with a source.
        inputs: for each call its arguments, a tuple; what is no tuple is one argument. Best such as take different
            branches.

    Raises:
        ArgumentError: no input.

    Example:
        >>> import lab
        >>> def halved(x):
        ...     return x / 2.0 if x.shape[0] > 2 else x
        >>> three, two = lab.tensor([2.0, 4.0, 6.0]), lab.tensor([2.0, 4.0])
        >>> found = lab.compare_captures(halved, three, two)
        >>> [g.verdict for g in found.traced], [g.verdict for g in found.scripted]
        (['equal', 'wrong'], ['equal', 'equal'])
    """
    function(f, "compare_captures")
    if not inputs:
        raise ArgumentError("compare_captures needs inputs", given="none", hint="lab.compare_captures(f, 1.0, -1.0)")
    given = [x if isinstance(x, tuple) else (x,) for x in inputs]
    plain = f.script_of if isinstance(f, Script) else f
    code = plain.__code__ if is_own(plain) else None
    lines, first = _source(code)
    eager, outs = _eager(plain, code, given)
    made = _trace(plain, code, given[0])
    read, scripted = _script(f, given, code, len(lines))
    graph = made.graph
    traced = [None if graph is None else (lambda args=args: _replayed(graph, args)) for args in given]
    results = {
        "trace": tuple(map(_held, traced, outs)),
        "script": tuple(_held(None if scripted is None else (lambda args=args: scripted(*args)), out)  # type: ignore[misc]
                        for args, out in zip(given, outs, strict=True)),
    }  # fmt: skip
    name = getattr(plain, "__name__", type(plain).__name__)
    begun = CapturesBegun(name, first, lines, tuple(", ".join(map(words_of, args)) for args in given))
    rec = _told(begun, {"trace": made, "script": read}, {"eager": eager, **results})
    return Captures(eager, results["trace"], results["script"], made, read, rec)


def _told(begun: CapturesBegun, graphs: dict[str, Capture], results: dict[str, tuple[Given, ...]]) -> Recording:
    with record(kinds=KINDS) as rec:
        rec.meta["title"] = begun.function
        bus.emit(begun)
        for way, capture in graphs.items():
            ok = capture.graph is not None
            bus.emit(GraphCaptured(way, ok, str(capture.graph) if ok else capture.why, capture.lines))
        for number in range(len(begun.inputs)):
            for way, given in results.items():
                bus.emit(CaptureCompared(number, way, *given[number]))
    return rec


# --- the three ways -----------------------------------------------------------------------------------------------


def _eager(
    f: Callable[..., Any], code: CodeType | None, given: Sequence[tuple[Any, ...]]
) -> tuple[tuple[Given, ...], list[tuple[Any, ...]]]:
    """What the function gives as it is, in words, and as (value,); () for an error."""
    told, outs = list[Given](), list[tuple[Any, ...]]()
    for args in given:
        watch = _Lines(code)
        out, why = _tried(lambda args=args, watch=watch: watch.during(f, args))  # type: ignore[misc]
        outs.append(() if why else (out,))
        told.append(Given(why or words_of(out), "error" if why else "equal", tuple(watch.found)))
    return tuple(told), outs


def _trace(f: Callable[..., Any], code: CodeType | None, args: tuple[Any, ...]) -> Capture:
    watch = _Lines(code)
    made, why = _tried(lambda: trace(lambda *xs: watch.during(f, xs), args, {}, weak=False)[0])
    return Capture(made, why, tuple(watch.found))


def _script(
    f: Callable[..., Any], given: Sequence[tuple[Any, ...]], code: CodeType | None, n_lines: int
) -> tuple[Capture, Script | None]:
    scripted, why = _tried(lambda: script(f))
    if scripted is None:
        return Capture(None, why, ()), None
    graph, why = _tried(lambda: scripted.graph(*given[0]))
    lines = () if graph is None or code is None else _origins(graph, code, n_lines)
    return Capture(graph, why, lines), scripted if graph is not None else None


def _replayed(graph: Graph, args: tuple[Any, ...]) -> Any:
    return run(graph, [*tree.flatten((args, {}))[0], *graph.captured])


def _held(call: Callable[[], Any] | None, wanted: tuple[Any, ...]) -> Given:
    """What a way gives, held against what it should give: (value,), or () where that is an error."""
    if call is None:
        return Given("", "none")
    out, why = _tried(call)
    if why:
        return Given(why, "error")
    leaves, expected = tree.flatten(out)[0], tree.flatten(wanted)[0]
    same = bool(wanted) and len(leaves) == len(expected) and all(map(_equal, leaves, expected))
    return Given(words_of(out), "equal" if same else "wrong")


def _equal(a: Any, b: Any) -> bool:
    x, y = _array(a), _array(b)
    if x.shape != y.shape:
        return False
    if "f" not in (x.dtype.kind, y.dtype.kind):
        return bool(np.array_equal(x, y))
    small = min(z.dtype.itemsize for z in (x, y) if z.dtype.kind == "f") < np.dtype(float).itemsize
    return bool(np.allclose(x, y, rtol=1e-5 if small else 1e-9, equal_nan=True))


def _tried(call: Callable[[], Any]) -> tuple[Any, str]:
    """What it gives, or None and what its error says: errors are what is looked for here."""
    try:
        return call(), ""
    except LabError as why:
        return None, f"{why.problem}; {why.hint}" if why.hint else why.problem
    except Exception as why:  # noqa: BLE001 - of the function that is looked at, told as its result
        return None, f"{type(why).__name__}: {said(why)}"


# --- lines --------------------------------------------------------------------------------------------------------


class _Lines:
    """Which lines of one function run, from 1 on, in the order in which they run first: as a debugger knows them."""

    def __init__(self, code: CodeType | None) -> None:
        self.code, self.found = code, dict[int, None]()

    def during(self, f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Call f, and look at the lines."""
        before = sys.gettrace()
        sys.settrace(self._frame)
        try:
            return f(*args)
        finally:
            sys.settrace(before)

    def _frame(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._line if frame.f_code is self.code else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line" and self.code is not None:
            self.found[frame.f_lineno - self.code.co_firstlineno + 1] = None
        return self._line


def _source(code: CodeType | None) -> tuple[tuple[str, ...], int]:
    """The lines of a function without their indentation, and the number of the first; none where there is no source."""
    try:
        lines, first = inspect.getsourcelines(code)  # type: ignore[arg-type]
    except (OSError, TypeError):
        return (), 0
    return tuple(textwrap.dedent("".join(lines)).rstrip().splitlines()), first


def _origins(graph: Graph, code: CodeType, n_lines: int) -> tuple[int, ...]:
    """Lines of the function that equations come from, also inside branches and loops."""
    places = (e.origin.rpartition(":") for inner in graph.walk() for e in inner.equations if e.origin)
    numbers = {int(line) - code.co_firstlineno + 1 for file, _, line in places if file == code.co_filename}
    return tuple(sorted(n for n in numbers if 1 <= n <= n_lines))


# --- words --------------------------------------------------------------------------------------------------------


def words_of(value: Any) -> str:
    """A result or an argument on a line.

    Example:
        >>> words_of(2.0), words_of((np.ones(2), np.ones((3, 4)))), words_of(True)
        ('2.0', '[1., 1.], float64 (3, 4)', 'True')
    """
    leaves = tree.flatten(value)[0]
    return ", ".join(map(_leaf, leaves)) or "nothing"


def _leaf(x: Any) -> str:
    if isinstance(x, bool | int | str) or x is None:
        return repr(x)
    a = _array(x)
    if a.size > MOST or a.dtype.kind not in "fiub":
        return f"{a.dtype} {a.shape}"
    return np.array2string(a, precision=4, separator=", ").replace("\n", "") if a.shape else repr(round(a.item(), 6))


def _array(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x.numpy() if hasattr(x, "numpy") else x)
