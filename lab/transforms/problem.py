"""A function as check_grads sees it: arrays in, one flat array out, a name for every entry.

Its differences are taken here, too, and with them how sure they are: beside a kink or a jump they are not.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab import tree
from lab.autograd.tensor import Tensor, wrap
from lab.errors import ArgumentError
from lab.transforms.arguments import returned, taken
from lab.transforms.gradients import jvp, vjp
from lab.transforms.jacobians import jacfwd, jacrev
from lab.transforms.packing import pack
from lab.transforms.report import Array

TOLERANCE = {8: 1e-6, 4: 1e-3, 2: 3e-2}
"""By bytes of the dtype that a function is given."""
SHORT = 1e-3
"""So much shorter is the second step, which tells a kink at the point from one beside it."""


class Problem:
    """A function of float arrays that returns one flat array, with names for all entries."""

    def __init__(self, flat: Callable[..., Any], xs: list[Array], names: list[str], out_names: list[str]) -> None:
        self.flat, self.xs, self.names, self.out_names = flat, xs, names, out_names

    @classmethod
    def of(cls, f: Callable[..., Any], args: Sequence[Any]) -> Problem:
        """That of a function and its arguments.

        Raises:
            ArgumentError: none of them is a float.
        """
        leaves, structure = tree.flatten(tuple(args))
        values: list[Any] = [taken(x, "check_grads") if not isinstance(x, int | str) else x for x in leaves]
        places = [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.dtype.kind == "f"]
        if not places:
            raise ArgumentError(
                "check_grads has nothing to differentiate by",
                given=f"{len(leaves)} arguments, none a float",
                hint="write 2.0 instead of 2",
            )
        paths = [f"{name}{path}" for name, a in zip(_words(f, len(args)), args, strict=True) for path in tree.paths(a)]
        names: list[str] = []

        def flat(*floats: Any) -> Any:
            full = list(values)
            for i, x in zip(places, floats, strict=True):
                full[i] = x
            out = f(*tree.unflatten(structure, full))
            outs = [returned(o, "check_grads") for o in tree.flatten(out)[0]]
            kept = [(o, p) for o, p in zip(outs, tree.paths(out), strict=True) if o.dtype.kind == "f"]
            names[:] = [f"result{p}{_at(o.shape, k)}" for o, p in kept for k in range(o.size)]
            packed = pack([o for o, _ in kept])
            return packed.reshape((-1,))

        xs = [np.array(values[i].numpy()) for i in places]
        entries = [f"{paths[i]}{_at(x.shape, k)}" for i, x in zip(places, xs, strict=True) for k in range(x.size)]
        with np.errstate(all="ignore"):
            flat(*map(wrap, xs))
        if not names or not entries:
            raise ArgumentError(
                "check_grads has nothing to compare",
                given=f"{len(entries)} entries of arguments, {len(names)} floats in the result",
                hint="arguments with entries, and a function that returns floats",
            )
        return cls(flat, xs, entries, names)

    @property
    def tolerance(self) -> float:
        """What an entry may be off, relative to the larger of itself and a tenth of the largest."""
        return TOLERANCE.get(min(x.dtype.itemsize for x in self.xs), 1e-6)

    def derived(self, mode: str, rng: np.random.Generator) -> Problem:
        """Its derivative in a mode along a fixed random direction, as a function that can be checked in turn."""
        if mode == "fwd":
            directions = [np.asarray(rng.normal(size=x.shape)) for x in self.xs]
            return Problem(lambda *xs: jvp(self.flat, xs, directions)[1], self.xs, self.names, self.out_names)
        ct = rng.normal(size=len(self.out_names))

        def pulled(*xs: Any) -> Any:
            return pack([c.reshape((-1,)) for c in vjp(self.flat, *xs)[1](ct)])

        return Problem(pulled, self.xs, self.names, [f"gradient by {name}" for name in self.names])

    def jacobian(self, mode: str) -> Array:
        """(outputs, inputs), by a mode of automatic differentiation in the dtype that was given."""
        take = jacfwd if mode == "fwd" else jacrev
        with np.errstate(all="ignore"):  # at an edge of a domain
            blocks = take(self.flat, argnums=tuple(range(len(self.xs))))(*map(wrap, self.xs))
        return np.concatenate([np.asarray(b.numpy(), np.float64).reshape(len(self.out_names), -1) for b in blocks], 1)


def _words(f: Callable[..., Any], n: int) -> list[str]:
    """Names of the positional parameters."""
    try:
        names = [p.name for p in inspect.signature(f).parameters.values() if p.kind <= p.POSITIONAL_OR_KEYWORD]
    except (TypeError, ValueError):
        names = []
    return [*names, *(f"argument {i}" for i in range(len(names), n))][:n]


def _at(shape: tuple[int, ...], k: int) -> str:
    return f"[{', '.join(str(int(i)) for i in np.unravel_index(k, shape))}]" if shape else ""


def differences(problem: Problem) -> tuple[Array, Array, Callable[[int, int], tuple[float, ...]]]:
    """(Jacobian, its own uncertainty, function (output, input) -> what a short step says).

    Central differences with two steps, extrapolated; nan in the uncertainty asks for the short step, because the slopes
    from the two sides do not approach each other.
    """
    wide = [x.astype(np.float64) for x in problem.xs]
    flat = np.concatenate([x.reshape(-1) for x in wide])

    def at(vector: Array) -> Array:
        parts, start = [], 0
        for x in wide:
            parts.append(wrap(vector[start : start + x.size].reshape(x.shape)))
            start += x.size
        with np.errstate(all="ignore"):
            out = problem.flat(*parts)
        dtypes.add(np.finfo(out.dtype).eps)
        return np.asarray(out.numpy(), np.float64)

    dtypes: set[Any] = set()
    here = at(flat)
    eps = float(max(dtypes))
    scale = float(np.max(np.abs(here), initial=0.0, where=np.isfinite(here)))

    def slopes(i: int, step: float) -> tuple[Array, Array]:
        moved = flat.copy()
        moved[i] = above = flat[i] + step
        up = at(moved)
        moved[i] = below = flat[i] - step
        with np.errstate(invalid="ignore"):
            return (here - at(moved)) / (flat[i] - below), (up - here) / (above - flat[i])

    expected, slack, steep = (np.empty((here.size, flat.size)) for _ in range(3))
    for i in range(flat.size):
        step = eps ** (1 / 5) * max(1.0, abs(flat[i]))
        floor = 50.0 * eps * scale / step
        with np.errstate(invalid="ignore"):
            left, right = slopes(i, step)
            near_left, near_right = slopes(i, step / 2.0)
            far, near = (left + right) / 2.0, (near_left + near_right) / 2.0
            expected[:, i], slack[:, i] = (4.0 * near - far) / 3.0, np.abs(near - far) + floor
            steep[:, i] = np.maximum(np.abs(near_left), np.abs(near_right))
            gap, near_gap = np.abs(right - left), np.abs(near_right - near_left)
            torn = (near_gap > 0.7 * gap) & (near_gap > 1e-3 * (np.abs(near_left) + np.abs(near_right)) + 10.0 * floor)
            torn |= np.abs(near) > 1.5 * np.abs(far) + 10.0 * floor  # a jump: half the step, twice the slope
        slack[torn | ~np.isfinite(near_gap), i] = np.nan

    short: dict[int, tuple[Array, Array]] = {}

    def sides(j: int, i: int) -> tuple[float, ...]:
        """(Left slope, right slope, their noise, the steeper of the two by the long step)."""
        step = SHORT * eps ** (1 / 5) * max(1.0, abs(flat[i]))
        if i not in short:
            short[i] = slopes(i, step)
        left, right = short[i]
        return float(left[j]), float(right[j]), 50.0 * eps * scale / step, float(steep[j, i])

    return expected, slack, sides
