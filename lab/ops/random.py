"""Random numbers as ops: a counter-based key is an operand, so eager code, vmap, jit and ranks draw the same numbers.

Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3" (Philox), as in `numpy.random.Philox`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, Protocol, Self, TypeAlias

import numpy as np

from lab.errors import ArgumentError, DTypeError, ShapeError
from lab.ops.comparisons import greater_equal, where
from lab.ops.composite import composite
from lab.ops.picking import operand
from lab.ops.primitive import primitive
from lab.ops.sample import Sample
from lab.shapes import Spec

Key: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]


class Drawing(Protocol):
    """Who says what a key is that the code of a block draws."""

    @property
    def known(self) -> bool:
        """Whether its keys are numbers, and not values of a graph."""

    def take(self, rng: Any) -> Any:
        """The next key that is drawn from `rng`."""


DRAWING: ContextVar[Drawing | None] = ContextVar("lab_drawing", default=None)
"""The innermost of those blocks; without one a key is drawn at once."""


class Drawn:
    """The keys that `random_key` made in a block, so that the block can run again with the same ones.

    Example:
        >>> keys = Drawn()
        >>> with keys: first = random_key()
        >>> with keys: again = random_key()
        >>> bool((first == again).all())
        True
    """

    def __init__(self) -> None:
        self._keys: list[Any] = []
        self._n_taken = 0
        self._outer: Drawing | None = None
        self._tokens: list[Any] = []

    def __enter__(self) -> Self:
        self._n_taken, self._outer = 0, DRAWING.get()
        self._tokens.append(DRAWING.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        DRAWING.reset(self._tokens.pop())
        self._outer = None

    @property
    def known(self) -> bool:
        return self._outer is None or self._outer.known

    def take(self, rng: Any) -> Any:
        """The key that was drawn at this place the last time, else a new one."""
        if self._n_taken == len(self._keys):
            self._keys.append(new_key(rng) if self._outer is None else self._outer.take(rng))
        self._n_taken += 1
        key = self._keys[self._n_taken - 1]
        return key.copy() if type(key) is np.ndarray else key


def repeating(f: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which draws at every call the keys of its first: for differences of its values.

    Example:
        >>> f = repeating(random_key)
        >>> bool((f() == f()).all())
        True
    """
    keys = Drawn()

    @wraps(f, updated=())
    def again(*args: Any, **kwargs: Any) -> Any:
        with keys:
            return f(*args, **kwargs)

    return again


def random_key(rng: int | np.random.Generator | None = None) -> Key:
    """A key, two 64-bit numbers, for the random ops.

    What `lab.jit` made of a function draws as the function does: anew at each call, from the same generators in the
    same order. Its graph takes the keys as inputs. In a branch or a turn of a loop that stands in a graph only a seed
    makes a key; there a key is an operand, or for a scan a row of `lab.stack([...])`.

    Args:
        rng: a seed, a Generator (which moves on), or None for fresh entropy.

    Raises:
        ArgumentError: another rng.
        UnsupportedError: a branch or a loop of a graph draws from a generator.

    Example:
        >>> bool((random_key(0) == random_key(0)).all())
        True
    """
    drawing = DRAWING.get()
    return new_key(rng) if drawing is None else drawing.take(rng)


def keys_known() -> bool:
    """Whether a key that is drawn now is a number."""
    drawing = DRAWING.get()
    return drawing is None or drawing.known


def moves(rng: Any) -> bool:
    """Whether the next key is another one: a generator moves on, a seed does not.

    Example:
        >>> moves(np.random.default_rng(0)), moves(None), moves(0)
        (True, True, False)
    """
    return rng is None or isinstance(rng, np.random.Generator | np.random.BitGenerator | np.random.RandomState)


def new_key(rng: int | np.random.Generator | None) -> Key:
    """A key, drawn at once."""
    try:
        return np.random.default_rng(rng).integers(0, 2**63, 2).astype(np.uint64)
    except (TypeError, ValueError) as why:
        raise ArgumentError("random_key needs a seed, a Generator or None", given=repr(rng), hint=str(why)) from None


def _check(key: Any, op: str = "random_uniform") -> None:
    if key.shape != (2,) or key.dtype != np.uint64:
        raise ShapeError(f"{op} needs a key", given=f"{key.dtype} {key.shape}", hint="lab.random_key(0)")


@primitive(
    samples=[
        Sample(((),), {"shape": (3,)}, kinds=("k",)),
        Sample(((),), {"shape": (2, 2), "dtype": "float32"}, kinds=("k",)),
    ],
    error_samples=[(((3,),), {}, "random_uniform needs a key")],
    reference=lambda key, shape, dtype="float64": np.random.Generator(np.random.Philox(key=key)).random(shape, dtype),
)
def random_uniform(key: Any, *, shape: Any = (), dtype: Any = "float64") -> Any:
    """Numbers drawn uniformly from [0, 1), decided by the key alone."""
    key = np.asarray(key)
    _check(key)
    if np.dtype(dtype).kind != "f":
        raise DTypeError(
            "random_uniform draws floats",
            given=str(np.dtype(dtype)),
            hint='dtype="float32" or "float64"; for integers lab.floor(n * u)',
        )
    drawn = np.float64 if np.dtype(dtype) == np.float64 else np.float32
    return np.asarray(np.random.Generator(np.random.Philox(key=key)).random(_shape(shape), drawn)).astype(
        dtype, copy=False
    )


def _shape(shape: Any) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, tuple | list) else (shape,)


@random_uniform.shaped
def _random_shape(key: Spec, *, shape: Any, dtype: Any) -> Spec:
    _check(key)
    return Spec(_shape(shape), np.dtype(dtype))


@composite(
    samples=[Sample(((3, 4), ()), kinds=("f", "k")), Sample(((5,), ()), {"rate": 0.2}, kinds=("f", "k"))],
    error_samples=[(((3,), (2,)), {"rate": 1.5}, "dropout needs a rate from 0 to 1")],
    reference=lambda x, key, rate=0.5: x / (1 - rate)
    * (np.random.Generator(np.random.Philox(key=key)).random(x.shape, np.float32) >= rate),
)
def dropout(x: Any, key: Any, rate: float = 0.5) -> Any:
    """Each entry 0 with probability `rate`, else divided by 1 - rate (Srivastava et al. 2014); the key decides."""
    if not 0 <= rate <= 1:
        raise ArgumentError("dropout needs a rate from 0 to 1", given=f"rate={rate!r}", hint="the share that becomes 0")
    x, key = operand(x), operand(key)
    _check(key, "dropout")
    if np.dtype(x.dtype).kind != "f":
        raise DTypeError("dropout takes floats", given=str(x.dtype), hint="x.astype(float)")
    kept = greater_equal(random_uniform(key, shape=tuple(x.shape), dtype="float32"), np.float32(rate))
    return where(kept, x * np.asarray(1.0 / (1.0 - rate) if rate < 1 else 1.0, x.dtype), np.zeros((), x.dtype))
