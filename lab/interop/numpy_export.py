"""A graph as one file of Python that needs NumPy alone: to read, to keep, to run where the lab is not."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from lab.files import path_of, replacing, telling
from lab.graph.ir import Graph, Var
from lab.graph.printing import var_text
from lab.interop.plain.text import checked_names, dtype_text
from lab.interop.plain.writing import HELPERS, TAKEN, Lines, array_lines
from lab.interop.sources import NO_PLACE, captured_values, graph_of

GIVEN = '''
def given(x, name, dtype, shape):
    """An input as an array of the dtype and the shape that the graph was made for."""
    x = np.asarray(x)
    if x.shape != shape:
        raise ValueError(f"{name} has shape {x.shape}, and run takes {shape}")
    return x.astype(dtype, copy=False)
'''
STORED = '''
def stored(dtype, shape, text):
    """An array from the bytes of its entries."""
    return np.frombuffer(base64.b64decode(text), dtype).reshape(shape).astype(dtype[1:])
'''
MAIN = '''
def main(paths):
    """Say what run takes; with a .npy file for each input run it."""
    if not paths:
        print(__doc__)
        return
    outs = run(*(np.load(path, allow_pickle=False) for path in paths))
    for out in outs if isinstance(outs, tuple) else (outs,):
        print(out)


if __name__ == "__main__":
    main(sys.argv[1:])
'''


def export_numpy(graph: Any, path: str | PathLike[str], *, names: Sequence[str] = ()) -> Path:
    """Write a graph as one Python file that needs NumPy alone, with its constants inside; returns its path.

    The file has one function, `run(*inputs)`, of one line for each equation; captured values are its constants. Run as
    a program it says what it takes.

    Args:
        graph: a Graph, or a jitted function that was called for one kind of arguments.
        path: where; the file is written whole or not at all.
        names: of the inputs.

    Raises:
        UnsupportedError: an op that cannot be written, by name; a dtype that NumPy does not have.
        ArgumentError: names that are no words of Python, or no one graph.
        FileError: the file cannot be written.

    Example:
        >>> import lab, numpy as np, tempfile
        >>> graph = lab.make_graph(lambda x: lab.tanh(x) * 2.0)(np.ones(3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     text = export_numpy(graph, f"{folder}/model.py").read_text()
        >>> print(text[text.index("def run") : text.index("def given")].strip())  # doctest: +ELLIPSIS
        def run(a):
            a = given(a, "a", np.float64, (3,))
            b = np.tanh(a)...
            c = b * 2.0...
            return np.array(c)
    """
    path = path_of(path, hint='export_numpy(graph, "model.py")')
    text = numpy_source(graph_of(graph), names)
    with telling("the file of NumPy cannot be written", path, NO_PLACE), replacing(path) as file:
        file.write(text.encode())
    return path


def numpy_source(graph: Graph, names: Sequence[str] = ()) -> str:
    """The text of the file.

    Example:
        >>> import lab
        >>> source = numpy_source(lab.make_graph(lambda x: x + 1.0)(1.0))
        >>> "import lab" in source, "b = a + 1.0" in source
        (False, True)
    """
    n = len(graph.inputs) - len(graph.captured)
    inputs = graph.inputs[:n]
    own = checked_names(names, TAKEN, n) if names else ()
    lines = Lines(frozenset(own))
    words = own or tuple(lines.fresh() for _ in inputs)
    kept = [lines.keep(value, "W") for value in captured_values(graph)]
    outs = lines.write(graph, [*words, *kept])
    body, tail = [*_run(inputs, words, lines, outs)], [*_tail(lines)]
    return "\n".join([*_head(inputs, words, graph), *_imports("\n".join([*body, *tail])), *body, *tail])


def _head(inputs: Sequence[Var], words: Sequence[str], graph: Graph) -> Iterator[str]:
    yield '"""A graph of autodiff-lab as plain NumPy (2.0 or newer): run(' + ", ".join(words) + ").\n"
    yield "Takes"
    yield from (f"    {word}{var_text(v)[len(str(v)) :]}" for word, v in zip(words, inputs, strict=True))
    yield "and gives"
    yield from (f"    {a.spec.dtype.name}{list(a.spec.shape)}" for a in graph.outputs)
    yield '"""\n'


def _imports(text: str) -> Iterator[str]:
    yield from (f"import {name}" for name in ("base64", "math", "sys") if f"{name}." in text)
    yield from ("from typing import Any",) * (" Any" in text)
    yield "\nimport numpy as np\n\n"


def _run(inputs: Sequence[Var], words: Sequence[str], lines: Lines, outs: Sequence[str]) -> Iterator[str]:
    yield '@np.errstate(all="ignore")'
    yield f"def run({', '.join(words)}):"
    for word, v in zip(words, inputs, strict=True):
        if not v.weak:
            yield f'    {word} = given({word}, "{word}", {dtype_text(v.spec.dtype)}, {v.spec.shape})'
        else:
            yield f"    {word} = {'float' if v.spec.dtype.kind == 'f' else 'int'}({word})"
    yield from lines.lines
    copies = [f"np.array({out})" for out in outs]
    yield f"    return {copies[0] if len(copies) == 1 else '(' + ', '.join(copies) + ')'}\n"


def _tail(lines: Lines) -> Iterator[str]:
    yield GIVEN
    yield from (f"\n{inspect.getsource(HELPERS[name])}" for name in HELPERS if name in lines.helpers)
    if lines.constants:
        yield STORED + "\n"
        yield from array_lines(lines.constants)
        yield ""
    yield MAIN
