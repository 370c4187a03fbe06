"""A formula as a function of whole arrays, in one compiled loop: for what NumPy has not, or only in many steps.

Small or large, the same loop runs, so an entry's value does not depend on the array around it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lab.kernels.chain import Chain, Step
from lab.kernels.formula import Formula
from lab.kernels.fuse import Fused, fuse
from lab.kernels.kernel import have_compiler
from lab.kernels.namespaces import numpy_namespace

LOOPS: dict[str, Looped] = {}
"""Every one by the text of its formula: what `warm` compiles, besides the kernels."""


class Looped:
    """The formula as a function of arrays: float64 and float32; float16 is computed in float32, integers in float64.

    Nothing is compiled before the first call.

    Args:
        text: the formula.
        arguments: its names, in the order of the arrays.
        plain: what runs where numba is missing, on flat arrays; by default the formula in NumPy.

    Example:
        >>> half = Looped("x * 0.5", ("x",))
        >>> half(np.array([1.0, 3.0]))
        array([0.5, 1.5])
        >>> del LOOPS["x * 0.5"]
    """

    __slots__ = ("_loops", "_ready", "arguments", "formula", "plain")

    def __init__(self, text: str, arguments: tuple[str, ...], plain: Callable[..., Any] | None = None) -> None:
        self.formula, self.arguments = Formula(text), arguments
        self.plain = plain or self.formula.compile(numpy_namespace(), arguments)
        self._loops: dict[str, Fused] = {}
        self._ready: dict[np.dtype[Any], Callable[..., None]] = {}
        LOOPS[text] = self

    def compile(self, dtype: str) -> None:
        """Compile the loop, or load it from the cache."""
        self._loop(dtype).compile()

    def _loop(self, dtype: str) -> Fused:
        if dtype not in self._loops:
            inputs = tuple((name, dtype) for name in self.arguments)
            step = Step("result", self.formula, self.arguments, self.arguments)
            self._loops[dtype] = fuse(Chain(inputs, (step,), ("result",)))
        return self._loops[dtype]

    def __call__(self, *arrays: Any) -> Any:
        first = arrays[0]
        run = self._ready.get(first.dtype) if type(first) is np.ndarray else None
        if run is not None and _are_alike(arrays, first.dtype, first.shape):
            out = np.empty_like(first)
            if first.ndim == 1:
                run(*arrays, out)
            else:
                run(*(a.reshape(-1) for a in arrays), out.reshape(-1))
            return out
        return self._general(*arrays)

    def _general(self, *arrays: Any) -> Any:
        """Whatever comes: brought into form, computed in one of two dtypes."""
        arrays = tuple(map(np.asarray, arrays))
        dtype, shape = arrays[0].dtype, arrays[0].shape
        for a in arrays[1:]:
            if a.shape != shape or a.dtype is not dtype:
                dtype = np.result_type(*arrays)
                arrays = tuple(np.broadcast_arrays(*arrays))
                shape = arrays[0].shape
                break
        wide = _WIDE.get(dtype.char, "float64")
        flat = [_flat(a, wide) for a in arrays]
        if have_compiler():
            out = np.empty(shape, wide)
            loop = self._loop(wide)
            loop.run(*flat, out.reshape(-1))
            self._ready[np.dtype(wide)] = loop.run
        else:
            out = np.asarray(self.plain(*flat)).reshape(shape)
        return out.astype(np.float16) if dtype.char == "e" else out


def looped_of(text: str, arguments: tuple[str, ...]) -> Looped:
    """The loop of a formula, made once.

    Example:
        >>> looped_of("sigmoid(x)", ("x",)) is LOOPS["sigmoid(x)"]
        True
    """
    return LOOPS.get(text) or Looped(text, arguments)


def _are_alike(arrays: tuple[Any, ...], dtype: Any, shape: tuple[int, ...]) -> bool:
    """Whether they can go into a loop as they are: asked one by one, since this is the way of small arrays, too."""
    for a in arrays:
        if type(a) is not np.ndarray or a.dtype is not dtype or a.shape != shape or not a.flags.carray:
            return False
    return True


_WIDE = {"f": "float32", "e": "float32"}


def _flat(a: Any, dtype: str) -> Any:
    """Flat, contiguous and writable, as the compiled signature asks for; a copy only where it has to be."""
    if a.dtype == dtype and a.dtype.isnative and a.flags.carray:
        return a.reshape(-1)
    return np.array(a, dtype).reshape(-1)


def _one_by_one(function: Callable[[float], float]) -> Callable[[Any], Any]:
    return lambda x: np.fromiter(map(function, x.tolist()), x.dtype, x.size)


def _sigmoid(x: Any) -> Any:
    z = np.exp(-np.abs(x))
    return np.where(x < 0, z, z.dtype.type(1)) / (1 + z)


SIGMOID = Looped("sigmoid(x)", ("x",), _sigmoid)
ERF = Looped("erf(x)", ("x",), _one_by_one(math.erf))
ERFC = Looped("erfc(x)", ("x",), _one_by_one(math.erfc))
