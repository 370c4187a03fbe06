"""Random numbers as ops: a counter-based key is an operand, so eager code, vmap, jit and ranks draw the same numbers.

Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3" (Philox), as in `numpy.random.Philox`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.ops.primitive import primitive
from lab.ops.sample import Sample
from lab.shapes import Spec


def random_key(rng: int | np.random.Generator | None = None) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """A key, two 64-bit numbers, for the random ops.

    Args:
        rng: a seed, a Generator (which moves on), or None for fresh entropy.

    Example:
        >>> bool((random_key(0) == random_key(0)).all())
        True
    """
    return np.random.default_rng(rng).integers(0, 2**63, 2).astype(np.uint64)


@primitive(
    samples=[
        Sample(((),), {"shape": (3,)}, kinds=("k",)),
        Sample(((),), {"shape": (2, 2), "dtype": "float32"}, kinds=("k",)),
    ],
    reference=lambda key, shape, dtype="float64": np.random.Generator(np.random.Philox(key=key)).random(shape, dtype),
)
def random_uniform(key: Any, *, shape: Any = (), dtype: Any = "float64") -> Any:
    """Numbers drawn uniformly from [0, 1), decided by the key alone."""
    return np.asarray(
        np.random.Generator(np.random.Philox(key=np.asarray(key))).random(tuple(shape), np.dtype(dtype).type)
    )


@random_uniform.shaped
def _random_shape(_key: Spec, *, shape: Any, dtype: Any) -> Spec:
    return Spec(tuple(shape), np.dtype(dtype))
