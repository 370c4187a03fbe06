"""checkpoint: forget what a function saved for backward, and run it again when backward comes by.

The tape stays as it is, node by node; only what the nodes saved is dropped, and made again by the first that asks. So
it works on every tape, in every nesting, for whatever the function closes over, and a picture shows the graph in full.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lab import tree
from lab.autograd import mutation
from lab.autograd.interpreter import Tracer
from lab.autograd.observe import array_of
from lab.autograd.tape import Leaf, Node, next_id
from lab.autograd.tensor import Tensor
from lab.errors import GradientError
from lab.ops.random import Drawn
from lab.transforms.again import Moment
from lab.transforms.arguments import function


def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which keeps only its arguments for backward and runs a second time when backward needs more.

    Memory falls from everything that f computed to its arguments, time rises by one forward (Chen et al. 2016,
    "Training deep nets with sublinear memory cost"). A chain of n steps in pieces of sqrt(n) keeps about 2 sqrt(n)
    values; pieces may be checkpointed inside pieces. Values and gradients stay the same bits.

    f may be a module, may close over parameters and may draw keys by `lab.random_key`: the second run gets the same.
    It must give the same result twice otherwise; buffers that it writes are written twice. A function that is traced
    (`jit(checkpoint(f))`) writes its ops into the graph as they are, and what replays that graph saves them all.

    Raises:
        GradientError: in backward, if the second run gave something else than the first.

    Example:
        >>> import lab
        >>> x = lab.tensor(1.0, requires_grad=True)
        >>> lab.checkpoint(lambda x: lab.sin(lab.sin(x)))(x).backward(); x.grad
        tensor(0.360039)
    """
    function(f, "checkpoint")

    @functools.wraps(f)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        keys, start = Drawn(), next_id()
        with keys:
            out = f(*args, **kwargs)
        outs = tree.flatten(out)[0]
        by_tape = _recorded_since(start, outs)
        if not by_tape:
            return out
        moment = Moment()

        def again() -> list[Any]:
            with moment.again(), keys:
                return tree.flatten(f(*args, **kwargs))[0]

        name, given = getattr(f, "__name__", type(f).__name__), tree.flatten((args, kwargs))[0]
        for level, nodes in by_tape.items():
            region = Region(name, again, given, outs, nodes, level)
            for i, node in enumerate(nodes):
                if node.saved is not None:
                    node.saved = Dropped(region, i)
        return out

    return checkpointed


class Region:
    """The nodes that one call recorded on one tape: what they saved is gone, and made again when it is asked for.

    Args:
        name: of the function, for errors.
        again: runs it once more and returns the leaves of its result.
        given: the leaves of its arguments.
        outs: the leaves of its first result.
        nodes: in the order of recording; not kept.
        level: of their tape.

    Attributes:
        held: the arrays that went in, as far as they are no leaves' own.
    """

    def __init__(
        self,
        name: str,
        again: Callable[[], list[Any]],
        given: Sequence[Any],
        outs: Sequence[Any],
        nodes: Sequence[Node],
        level: int,
    ) -> None:
        self._name, self._again, self._level = name, again, level
        self._arrays = _arrays(given)
        self.held = _arrays([x for x in given if not (type(x) is Tensor and type(x.node) is Leaf)])
        self._ops = [node.op.name for node in nodes]
        self._samples = [_sample(out) for out in outs]
        self._end = next_id()
        self._values: dict[int, Any] = {}

    def take(self, i: int) -> Any:
        """What node i had saved; it is handed out once for each run, so that memory falls as backward proceeds."""
        if i not in self._values:
            self._values = self._recomputed()
        return self._values.pop(i)

    def _recomputed(self) -> dict[int, Any]:
        if any(mutation.changed_after(array, self._end) for array in self._arrays):
            raise _changed(self._name, "one of its arguments was changed in place after the forward")
        start = next_id()
        outs = self._again()
        nodes = _recorded_since(start, outs).get(self._level, [])
        if [node.op.name for node in nodes] != self._ops:
            raise _changed(self._name, f"{len(self._ops)} operations the first time, {len(nodes)} or others now")
        if not all(map(_alike, self._samples, map(_sample, outs))):
            raise _changed(self._name, "other numbers than the first time")
        return {i: node.saved for i, node in enumerate(nodes)}


class Dropped:
    """In the place of what a node saved: iterating over it computes it."""

    __slots__ = ("_i", "region")

    def __init__(self, region: Region, i: int) -> None:
        self.region, self._i = region, i

    def __iter__(self) -> Iterator[Any]:
        return iter(self.region.take(self._i))


def _recorded_since(start: int, outs: Sequence[Any]) -> dict[int, list[Node]]:
    """By level of the tape the nodes younger than `start` that lie between there and `outs`, in order."""
    found: dict[int, dict[int, Node]] = {}
    values = [x for x in outs if isinstance(x, Tensor)]
    while values:
        x = values.pop()
        level, node = (x.interp.level, x.extra) if isinstance(x, Tracer) else (0, x.node)
        values += [below for below in (x.value, node) if isinstance(below, Tensor)]  # of a jvp the tangent, too
        nodes = [node]
        while nodes:
            node = nodes.pop()
            if isinstance(node, Node) and node.id > start and node.id not in found.setdefault(level, {}):
                found[level][node.id] = node
                nodes += [p for p in node.parents if p is not None]
    return {level: [nodes[i] for i in sorted(nodes)] for level, nodes in found.items() if nodes}


def _arrays(values: Sequence[Any]) -> list[Any]:
    return [array for array in map(array_of, values) if array is not None]


SAMPLE = 256
"""So many entries of each result are kept, to see that the second run gives what the first gave."""


def _sample(out: Any) -> Any:
    array = array_of(out)
    if array is None:  # a traced value has no numbers
        return None
    flat = array.reshape(-1)
    return flat[np.linspace(0, flat.size - 1, min(SAMPLE, flat.size), dtype=int)]


def _alike(first: Any, second: Any) -> bool:
    """Equal but for the rounding that a library may choose anew at another address in memory."""
    if first is None or second is None or first.dtype.kind != "f":
        return first is second or bool(np.array_equal(first, second))
    scale = np.max(np.abs(first), initial=0.0, where=np.isfinite(first))
    return first.shape == second.shape and bool(
        np.allclose(first, second, rtol=0.0, atol=64 * np.finfo(first.dtype).eps * scale, equal_nan=True)
    )


def _changed(name: str, given: str) -> GradientError:
    return GradientError(
        f"checkpoint ran {name} again for backward, and it did something else",
        given=given,
        hint="what it reads must not change before backward, and random numbers need a key from lab.random_key",
    )
