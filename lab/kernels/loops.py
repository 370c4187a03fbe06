"""A formula as a function of whole arrays, in one compiled loop: for what NumPy has not, or only in many steps.

Small or large, the same loop runs, so an entry's value does not depend on the array around it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lab.kernels.chain import Chain, Step
from lab.kernels.formula import Formula
from lab.kernels.fuse import Fused, fuse
from lab.kernels.kernel import have_numba
from lab.kernels.namespaces import numpy_namespace


def looped(text: str, arguments: tuple[str, ...], plain: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The formula as a function of arrays (float64, float32; float16 is computed in float32, integers in float64).

    Nothing is compiled before the first call; where numba is missing `plain` runs, by default the formula in NumPy.

    Example:
        >>> half = looped("x * 0.5", ("x",))
        >>> half(np.array([1.0, 3.0]))
        array([0.5, 1.5])
    """
    formula = Formula(text)
    fallback = plain or formula.compile(numpy_namespace(), arguments)
    loops: dict[str, Fused] = {}

    def loop_for(dtype: str) -> Fused:
        if dtype not in loops:
            inputs = tuple((name, dtype) for name in arguments)
            loops[dtype] = fuse(Chain(inputs, (Step("result", formula, arguments, arguments),), ("result",)))
        return loops[dtype]

    def call(*arrays: Any) -> Any:
        first = arrays[0]
        dtype, shape = np.asarray(first).dtype, np.shape(first)
        if len(arrays) > 1 and not all(np.shape(a) == shape and getattr(a, "dtype", None) is dtype for a in arrays):
            dtype = np.result_type(*arrays)
            arrays = tuple(np.broadcast_arrays(*arrays))
            shape = arrays[0].shape
        wide = _WIDE.get(dtype.char, "float64")
        flat = [_flat(a, wide) for a in arrays]
        if have_numba():
            out = np.empty(shape, wide)
            loop_for(wide).run(*flat, out.reshape(-1))
        else:
            out = np.asarray(fallback(*flat)).reshape(shape)
        return out.astype(np.float16) if dtype.char == "e" else out

    return call


_WIDE = {"f": "float32", "e": "float32"}


def _flat(a: Any, dtype: str) -> Any:
    """Flat, contiguous, writable as far as the compiled signature asks for it; a copy only where it has to be."""
    if type(a) is np.ndarray and a.dtype == dtype and a.dtype.isnative and a.flags.carray:
        return a.reshape(-1)
    return np.array(a, dtype).reshape(-1)
