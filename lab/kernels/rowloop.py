"""The compiled loop of a program over rows, with its twin in NumPy."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.kernels import running
from lab.kernels.ahead import ask_for_row
from lab.kernels.arguments import Argument
from lab.kernels.fuse import load_source
from lab.kernels.kernel import HELPERS, have_compiler, have_numba
from lab.kernels.namespaces import numpy_namespace, scalar_namespace
from lab.kernels.rowsource import scratch_of, source_of
from lab.kernels.rowwise import Cast, Match, Pick, Program, Reduce
from lab.kernels.stretches import ENTRIES

_lock = threading.RLock()
_loops: dict[str, RowLoop] = {}


def row_loop(program: Program) -> RowLoop:
    """The loop of a program; equal programs share one.

    Example:
        >>> from lab.kernels.chain import Step
        >>> from lab.kernels.formula import Formula
        >>> softmax = Program((("x", "float64", "full"),), (
        ...     Reduce("m", "max", "x", "columns"), Step("e", Formula("exp(x - m)"), ("x", "m"), ("x", "m")),
        ...     Reduce("s", "sum", "e", "columns"), Step("y", Formula("e / s"), ("e", "s"), ("e", "s"))), ("y",))
        >>> out = np.empty((1, 2))
        >>> loop = row_loop(softmax)
        >>> loop.run(np.zeros((1, 2)), out, *loop.scratch(2), 1, 2)
        >>> out
        array([[0.5, 0.5]])
    """
    key = repr((program.inputs, program.output_dtypes)) + source_of(program)
    with _lock:
        return _loops.setdefault(key, RowLoop(program, key))


class RowLoop:
    """One loop for a whole program.

    Attributes:
        program: what it computes.
        source: the Python source of the loop.
        name: of its module and of its file in the cache.
        run: `run(*inputs, *outputs, *scratch, n_rows, n_columns)` without any check: full operands are contiguous
            arrays of two axes, the others of one, and no output overlaps anything. Replaced by the compiled function
            once that is there: read the attribute again after `compile()`.
        loaded: how the compiled function came: "compiled", "loaded" from the cache, "numpy", or "" before.
    """

    __slots__ = ("_key", "_of_cycle", "_of_stretch", "_scratch", "loaded", "name", "program", "run", "source")

    def __init__(self, program: Program, key: str) -> None:
        self.program, self.source, self._key, self.loaded = program, source_of(program), key, ""
        self._scratch, self._of_stretch, self._of_cycle = scratch_of(program)
        self.name = f"r_{hashlib.sha256(key.encode()).hexdigest()[:16]}"
        self.run: Callable[..., Any] = self._first

    def scratch(self, n_columns: int, n_cycle: int = 1) -> list[NDArray[Any]]:
        """The rows that one call needs for itself; two at the same time need two sets."""
        along = len(self._scratch) - self._of_cycle - self._of_stretch
        sizes = [min(n_columns, ENTRIES)] * self._of_stretch + [n_columns] * along + [n_cycle] * self._of_cycle
        return [np.empty(n, dtype) for n, dtype in zip(sizes, self._scratch, strict=True)]

    def compile(self) -> None:
        """Make `run` the compiled loop, or the NumPy twin where numba is missing."""
        with _lock:
            if self.loaded:
                return
            if not have_compiler():
                self.run, self.loaded = self.twin, "numpy"
                return
            from lab.kernels import native

            made = native.compiled(self.name, self.source, _scope(), self.arguments, apart=True)
            self.run, self.loaded = made or self._by_numba()

    def _by_numba(self) -> tuple[Callable[..., Any], str]:
        """The loop as numba compiles it: it knows more of Python, and takes longer."""
        if not have_numba():
            return self.twin, "numpy"
        from lab.kernels import backend

        backend.teach(HELPERS)
        loop = load_source(self.name, self.source, _scope()).fused
        made = backend.dispatcher(loop, self.name, self._key, frozenset(), apart=True)
        return made, backend.compile_for(made, self.arguments, "float32")

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """What the loop takes: operands, results, rows of its own, two numbers."""
        p = self.program
        arrays = [(d, 2 if layout == "full" else 1, False) for _, d, layout in p.inputs]
        pairs = zip(p.output_dtypes, map(p.layout, p.outputs), strict=True)
        arrays += [(d, 2 if layout == "full" else 1, True) for d, layout in pairs]
        arrays += [(dtype, 1, True) for dtype in self._scratch]
        numbers = [Argument(name, "int64", 0, False) for name in ("n_rows", "n_columns")]
        return (*(Argument(f"a{i}", *kind) for i, kind in enumerate(arrays)), *numbers)

    def _first(self, *arguments: Any) -> Any:
        self.compile()
        return self.run(*arguments)

    def twin(self, *arguments: Any) -> int:
        """The same as `run`, line by line in NumPy."""
        p, n_columns = self.program, arguments[-1]
        arrays = arguments[: len(p.inputs)]
        outputs = arguments[len(p.inputs) : len(p.inputs) + len(p.outputs)]
        given = zip(p.inputs, arrays, strict=True)
        values: dict[str, Any] = {name: _spread(x, layout, arguments[-2]) for (name, _, layout), x in given}
        with np.errstate(all="ignore"):
            for line in p.lines:
                if isinstance(line, Match):
                    values[line.name] = np.arange(n_columns) == values[line.of]
                elif isinstance(line, Pick):
                    at = np.clip(values[line.at], 0, n_columns - 1)
                    values[line.name] = np.take_along_axis(values[line.of], at, axis=1)
                elif isinstance(line, Cast):
                    values[line.name] = values[line.of].astype(line.dtype)
                elif isinstance(line, Reduce):
                    n_cycle = arguments[-3].size  # of the last row of its own, if there is a cycle
                    values[line.name] = _reduced(line, values[line.of], n_cycle)
                else:
                    formula = line.formula.compile(numpy_namespace(), line.parameters)
                    values[line.name] = formula(*(values[a] if isinstance(a, str) else a for a in line.arguments))
        for name, out in zip(p.outputs, outputs, strict=True):
            shape = out.shape if p.layout(name) == "cycle" else _shape(p.layout(name), arguments)
            out.reshape(-1)[...] = np.broadcast_to(values[name], shape).reshape(-1)
        labels = [x.of for x in p.lines if isinstance(x, Match)] + [x.at for x in p.lines if isinstance(x, Pick)]
        return max((_wrong(values[name], n_columns) for name in labels), default=-1)


def _spread(array: NDArray[Any], layout: str, n_rows: int) -> NDArray[Any]:
    if layout == "cycle":
        return np.tile(array, n_rows // array.size)[:, None]
    return array if layout == "full" else array[:, None] if layout == "column" else array[None, :]


def _wrong(labels: NDArray[Any], n_columns: int) -> int:
    """The last row whose label names no column, -1 if there is none."""
    return int(max(np.flatnonzero((labels < 0) | (labels >= n_columns)), default=-1))


def _reduced(line: Reduce, of: NDArray[Any], n_cycle: int) -> NDArray[Any]:
    if line.over == "cycle":
        turns = of.reshape(-1, n_cycle, of.shape[1])
        return np.asarray(turns.sum(axis=(0, 2), dtype=np.float64), of.dtype)
    axis: Any = {"columns": 1, "rows": 0, "all": (0, 1)}[line.over]
    if line.kind == "sum":
        return np.asarray(of.sum(axis=axis, keepdims=True, dtype=np.float64), of.dtype)
    compare = np.maximum if line.kind == "max" else np.minimum
    return np.asarray(compare.reduce(of, axis=axis, keepdims=True))


def _shape(layout: str, arguments: tuple[Any, ...]) -> tuple[int, int]:
    n_rows, n_columns = arguments[-2:]
    return {"full": (n_rows, n_columns), "row": (1, n_columns), "column": (n_rows, 1), "single": (1, 1)}[layout]


def _scope() -> dict[str, Any]:
    functions = {("absolute" if name == "abs" else name): function for name, function in scalar_namespace().items()}
    helpers = {f.__name__: f for f in (*running.INLINED, *running.CALLED, ask_for_row)}
    numbers = {"f4": np.float32, "f8": np.float64, "float32": np.float32, "float64": np.float64, "bool": np.bool_,
               "int32": np.int32, "uint64": np.uint64, "inf": np.inf, "nan": np.nan}  # fmt: skip
    return {**numbers, **helpers, **functions}
