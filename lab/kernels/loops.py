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
from lab.kernels.kernel import have_numba
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

    __slots__ = ("_loops", "arguments", "formula", "plain")

    def __init__(self, text: str, arguments: tuple[str, ...], plain: Callable[..., Any] | None = None) -> None:
        self.formula, self.arguments = Formula(text), arguments
        self.plain = plain or self.formula.compile(numpy_namespace(), arguments)
        self._loops: dict[str, Fused] = {}
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
        if have_numba():
            out = np.empty(shape, wide)
            self._loop(wide).run(*flat, out.reshape(-1))
        else:
            out = np.asarray(self.plain(*flat)).reshape(shape)
        return out.astype(np.float16) if dtype.char == "e" else out


_WIDE = {"f": "float32", "e": "float32"}


def _flat(a: Any, dtype: str) -> Any:
    """Flat, contiguous and writable, as the compiled signature asks for; a copy only where it has to be."""
    if a.dtype == dtype and a.dtype.isnative and a.flags.carray:
        return a.reshape(-1)
    return np.array(a, dtype).reshape(-1)


def _one_by_one(function: Callable[[float], float]) -> Callable[[Any], Any]:
    return lambda x: np.fromiter(map(function, x.tolist()), x.dtype, x.size)


ERF = Looped("erf(x)", ("x",), _one_by_one(math.erf))
ERFC = Looped("erfc(x)", ("x",), _one_by_one(math.erfc))
