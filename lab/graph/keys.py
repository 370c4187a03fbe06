"""Random keys of a graph: what traces a function draws none; each is an input, drawn anew whenever the graph runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lab.autograd.tensor import Tensor, wrap
from lab.errors import GraphError, UnsupportedError
from lab.events.cells import told_place
from lab.ops.random import DRAWING, Drawing, moves, new_key, random_key
from lab.shapes import Spec
from lab.words import counted

if TYPE_CHECKING:
    from lab.graph.ir import Graph


class Draw:
    """Among the captured values of a graph: not a key, but where the key of each run comes from.

    Attributes:
        rng: the generator; None for fresh entropy.
        origin: "file:line" of the code that draws.

    Example:
        >>> import lab
        >>> rng = np.random.default_rng(0)
        >>> graph = lab.make_graph(lambda x: lab.dropout(x, lab.random_key(rng)))(np.ones(3))
        >>> [str(v) for v in graph.inputs], graph.captured[0].rng is rng
        (['a', 'b'], True)
    """

    __slots__ = ("origin", "rng")
    spec: ClassVar[Spec] = Spec((2,), np.dtype(np.uint64))
    shape: ClassVar[tuple[int, ...]] = spec.shape
    dtype: ClassVar[np.dtype[Any]] = spec.dtype
    node: ClassVar[None] = None

    def __init__(self, rng: Any, origin: str) -> None:
        self.rng, self.origin = rng, origin

    def __repr__(self) -> str:
        return f"<a key of {_words(self.rng)} for each run, at {told_place(self.origin) or 'nowhere known'}>"

    def key(self) -> Tensor:
        """The key of one run; a value of the graph that is made, where one is made now."""
        key: Any = random_key(self.rng)
        return key if isinstance(key, Tensor) else wrap(key)


def drawn(values: Sequence[Any]) -> list[Any]:
    """The values with a new key for each Draw among them, in this order.

    Example:
        >>> [k.shape for k in drawn([Draw(None, ""), np.ones(3)])]
        [(2,), (3,)]
    """
    return [v.key() if type(v) is Draw else v for v in values]


def draws(graph: Graph) -> list[Draw]:
    """The draws of one run, in their order."""
    return [c for c in graph.captured if type(c) is Draw]


def require_no_draws(graph: Graph, verb: str) -> None:
    """Refuse a graph that is nothing without its generators.

    Args:
        verb: what is done to it, as "saved".

    Raises:
        GraphError: it draws keys.
    """
    if found := draws(graph):
        raise GraphError(
            f"a graph that draws random keys cannot be {verb}",
            given=f"{counted(len(found), 'key')}; the first is {found[0]!r}",
            hint="give the function a key as an argument, lab.dropout(x, key); or model.eval() before it is traced",
        )


def _words(rng: Any) -> str:
    return "fresh entropy" if rng is None else str(rng).partition(" at 0x")[0]


# --- where nothing can be drawn -----------------------------------------------------------------------------------


class Region:
    """In a branch or a turn: how often it runs is not known, and so not what its generators give after it.

    Args:
        runs: False for a loop without a turn, which is traced for its shapes alone.
    """

    known = False

    def __init__(self, *, runs: bool = True) -> None:
        self.runs = runs

    def take(self, rng: Any) -> Any:
        """The key of a seed.

        Raises:
            UnsupportedError: a generator, which would move on.
        """
        if not moves(rng) or not self.runs:
            return new_key(rng) if self.runs else np.zeros(2, np.uint64)
        raise UnsupportedError(
            "a branch or a turn of a loop in a graph cannot draw a random key",
            given=f"a key of {_words(rng)}",
            hint="draw it before, as an operand; for a scan keys among its xs: lab.stack([lab.random_key(rng), ...])",
        )


@contextmanager
def drawing(who: Drawing | None) -> Iterator[None]:
    """A block whose keys come from there."""
    token = DRAWING.set(who)
    try:
        yield
    finally:
        DRAWING.reset(token)
