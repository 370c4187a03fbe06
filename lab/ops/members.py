"""Who meets along a named axis: what collectives as ops know of it, whatever the axis is made of.

Inside `vmap(axis_name=...)` the members are the entries of the batch axis. In a rank's program they are the ranks,
where `lab.parallel` has bound the name (`lab.parallel.axis`, `lab.pmap`); the ops know those as `Members` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Protocol

from lab.config import STATE
from lab.errors import TransformError
from lab.words import shown

Pairs = tuple[tuple[int, int], ...]
"""(from, to) of what moves; each member gives at most once and gets at most once."""


class Members(Protocol):
    """Those who meet along an axis, as one of them sees the others.

    All of them make the same calls in the same order; arrays in, a new array out. What is cut or joined is so along the
    first axis, in the order of members.
    """

    @property
    def index(self) -> int:
        """The number of this member, from 0."""

    def all_reduce(self, x: Any, op: str) -> Any:
        """The "sum", "mean", "max" or "min" over all members: the same bits for each."""

    def all_gather(self, x: Any) -> Any:
        """The arrays of all members, stacked."""

    def reduce_scatter(self, x: Any, op: str) -> Any:
        """This member's block of what `all_reduce` would give."""

    def broadcast(self, x: Any, root: int) -> Any:
        """What member `root` has."""

    def all_to_all(self, x: Any) -> Any:
        """From each member the block that is meant for this one, joined."""

    def permute(self, x: Any, pairs: Pairs) -> Any:
        """What the member has that gives to this one; zeros where none does."""


MEMBERS: ContextVar[Mapping[str, Members]] = ContextVar("members", default={})  # noqa: B039 -- never written to
"""Who meets along an axis, by its name, where that is no batch axis."""


def axis_size(axis_name: str) -> int:
    """How many members meet along an axis: a number of Python, known before anything runs.

    Raises:
        TransformError: no enclosing vmap has this axis, and no rank has bound it.

    Example:
        >>> import lab
        >>> lab.vmap(lambda x: x * lab.axis_size("i"), axis_name="i")(lab.tensor([1.0, 3.0]))
        tensor([2., 6.])
    """
    for name, size in reversed(STATE.get().axes):
        if name == axis_name:
            return size
    raise alone("axis_size", axis_name)


def met(word: str, axis_name: str) -> Members:
    """The members of an axis that is no batch axis.

    Raises:
        TransformError: there are none.
    """
    if (members := MEMBERS.get().get(axis_name)) is not None:
        return members
    raise alone(word, axis_name)


def alone(word: str, axis_name: object) -> TransformError:
    """The error for a collective that nobody else takes part in."""
    return TransformError(
        f"{word} needs the other members of an axis",
        given=f"axis_name {shown(axis_name)}, which no enclosing vmap has, and no rank has bound",
        hint='call the function under lab.vmap(f, axis_name="...") or lab.pmap, or in lab.parallel.axis(comm, "...")',
    )
