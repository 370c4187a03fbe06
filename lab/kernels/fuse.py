"""Fusion: a chain of elementwise steps becomes one compiled loop that reads and writes each array once.

`fuse(chain)` gives a Fused; nothing is compiled until it is called. Sums, products, quotients, roots and choices give
the same bits as NumPy, because the loop keeps them as written (no fused multiply-add across steps: a * b - c may be
all rounding error); exp, tanh and their kin are within a few units in the last place.
"""

from __future__ import annotations

import hashlib
import linecache
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.errors import DTypeError, ShapeError
from lab.kernels.arguments import Argument
from lab.kernels.chain import Chain, source_of
from lab.kernels.kernel import have_compiler, have_numba
from lab.kernels.namespaces import numpy_namespace, scalar_namespace

_lock = threading.RLock()
_fused: dict[str, Fused] = {}


def fuse(chain: Chain) -> Fused:
    """The fused form of a chain; equal chains share one.

    Example:
        >>> from lab.kernels.chain import Step
        >>> from lab.kernels.formula import Formula
        >>> double = Step("y", Formula("x + x"), ("x",), ("x",))
        >>> fuse(Chain((("x", "float64"),), (double,), ("y",)))(np.array([1.0, 2.0]))
        (array([2., 4.]),)
    """
    key = repr((chain.inputs, chain.layouts, chain.output_dtypes)) + source_of(chain)
    with _lock:
        return _fused.setdefault(key, Fused(chain, key))


class Fused:
    """One loop for a whole chain.

    Attributes:
        chain: what it computes.
        source: the Python source of the loop.
        run: `run(*inputs, *outputs)` over flat contiguous arrays of the chain's dtypes, without any check: what a
            compiled plan calls. Replaced by the compiled function once that is there: read the attribute again after
            `compile()`. An output may be one of the inputs itself, and may not overlap them otherwise.
    """

    __slots__ = ("_key", "chain", "run", "source")

    def __init__(self, chain: Chain, key: str) -> None:
        self.chain, self.source, self._key = chain, source_of(chain), key
        self.run: Callable[..., None] = self._first

    def compile(self) -> None:
        """Make `run` the compiled loop (or the NumPy twin where numba is missing)."""
        if not have_compiler():
            self.run = self.twin
            return
        from lab.kernels import native

        with _lock:
            if self.run != self._first:
                return  # another thread was faster: a loop that is loaded again unloads the one that runs
            name = f"k_{hashlib.sha256(self._key.encode()).hexdigest()[:16]}"
            scope = {"f4": np.float32, "f8": np.float64, "inf": np.inf, "nan": np.nan, **_functions()}
            dtypes = [dtype for _, dtype in self.chain.inputs] + list(self.chain.output_dtypes)
            first_output = len(self.chain.inputs)
            arguments = tuple(Argument(f"a{i}", d, 1, i >= first_output) for i, d in enumerate(dtypes))
            made = native.compiled(name, self.source, scope, arguments, apart=False)
            self.run = made[0] if made else self._by_numba(name, scope, arguments)

    def _by_numba(self, name: str, scope: dict[str, Any], arguments: tuple[Argument, ...]) -> Callable[..., None]:
        if not have_numba():
            return self.twin
        from lab.kernels import backend

        loop = load_source(name, self.source, scope).fused
        made: Callable[..., None] = backend.dispatcher(loop, name, self._key, frozenset())
        backend.compile_for(made, arguments, "float32")
        return made

    def _first(self, *arrays: NDArray[Any]) -> None:
        self.compile()
        self.run(*arrays)

    def twin(self, *arrays: NDArray[Any]) -> None:
        """The same as `run`, step by step in NumPy."""
        values: dict[str, Any] = {}
        outputs = arrays[len(self.chain.inputs) :]
        total = outputs[0].size
        for (name, _), layout, array in zip(self.chain.inputs, self.chain.layouts, arrays, strict=False):
            times = total // max(array.size, 1)
            values[name] = _SPREAD[layout](array, times)
        with np.errstate(all="ignore"):
            for step in self.chain.steps:
                formula = step.formula.compile(numpy_namespace(), step.parameters)
                values[step.name] = formula(*(values[a] if isinstance(a, str) else a for a in step.arguments))
        for name, out in zip(self.chain.outputs, outputs, strict=True):
            out[...] = values[name]

    def __call__(self, *arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """New arrays for the outputs, in the broadcast shape of the inputs.

        Raises:
            ShapeError: an input does not lie along the result as the chain says.
            DTypeError: an input has another dtype.
        """
        if len(arrays) != len(self.chain.inputs):
            raise ShapeError(
                "a chain was given another number of arrays", given=f"{len(arrays)}, wanted {len(self.chain.inputs)}"
            )
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        flat = []
        for (name, dtype), layout, array in zip(self.chain.inputs, self.chain.layouts, arrays, strict=True):
            if array.dtype != dtype:
                raise DTypeError(
                    "a chain was compiled for another dtype", given=f"{name} {array.dtype}, wanted {dtype}"
                )
            if not _lies(array.shape, shape, layout):
                raise ShapeError(f"{name} is no {layout} operand of the result", given=f"{array.shape} in {shape}")
            flat.append(np.require(array, np.dtype(dtype).newbyteorder("="), ["C", "A", "W"]).reshape(-1))
        outputs = [np.empty(shape, dtype) for dtype in self.chain.output_dtypes]
        self.run(*flat, *(out.reshape(-1) for out in outputs))
        return tuple(outputs)


def _lies(shape: tuple[int, ...], result: tuple[int, ...], layout: str) -> bool:
    ones = (1,) * (len(result) - len(shape))
    padded = ones + shape
    if layout == "full":
        return padded == result
    if layout == "single":
        return all(n == 1 for n in shape)
    # One split into rows and columns serves all operands of a loop: before the last axis.
    if layout == "row":
        return padded == (*(1 for _ in result[:-1]), *result[-1:])
    return padded == (*result[:-1], *(1 for _ in result[-1:]))


_SPREAD: dict[str, Callable[[NDArray[Any], int], NDArray[Any]]] = {
    "full": lambda array, times: array,
    "single": lambda array, times: array,
    "row": np.tile,
    "column": np.repeat,
}


def _functions() -> dict[str, Any]:
    return {("absolute" if name == "abs" else name): function for name, function in scalar_namespace().items()}


def load_source(name: str, source: str, scope: dict[str, Any]) -> ModuleType:
    """A module made from generated source, with its text known to tracebacks, debuggers and `inspect`.

    It lives in `sys.modules` before anything of it runs, because what numba keeps on disk looks its module up by name.
    """
    known = sys.modules.get(name)
    if known is not None:
        return known
    module = ModuleType(name, "Generated from the formulas of the op table.")
    module.__dict__.update(scope)
    file = f"<generated {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    sys.modules[name] = module
    exec(compile(source, file, "exec"), module.__dict__)  # noqa: S102 - written by chain.py from whitelisted formulas
    return module
