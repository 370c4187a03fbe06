"""What goes into a branch or a loop and what comes out: containers, conditions, carries that keep shape and dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab import tree
from lab.autograd.tensor import Tensor, wrap
from lab.errors import ArgumentError, DTypeError, ShapeError
from lab.graph.make import is_weak
from lab.ops import cast
from lab.ops.comparisons import not_equal
from lab.shapes import Spec
from lab.transforms.arguments import taken


def raw(x: Any, what: str) -> Any:
    """A leaf as a graph takes it: a Tensor; a Python number, which stays weak; a read-only array of anything else.

    Raises:
        UnsupportedError: no numbers.
    """
    return x if isinstance(x, Tensor) or is_weak(x) else taken(x, what).value


def tensors(leaves: Sequence[Any]) -> list[Any]:
    """The leaves as plain code gets them."""
    return [wrap(x) if isinstance(x, np.ndarray) else x for x in leaves]


def gives_way(x: Any) -> bool:
    """Whether the dtype of a leaf gives way to that of what it meets."""
    return is_weak(x) or bool(getattr(x, "weak", False))


def spec_of(x: Any) -> Spec:
    """Shape and dtype of a leaf."""
    value = x if isinstance(x, Tensor) else np.asarray(x)
    return Spec(tuple(value.shape), np.dtype(value.dtype))


def words(spec: Spec) -> str:
    """Shape and dtype in an error."""
    return f"{spec.dtype}{list(spec.shape)}"


def condition(x: Any, what: str) -> Any:
    """One truth, as a bool.

    Raises:
        ShapeError: several.
        UnsupportedError: no number.

    Example:
        >>> condition(2, "cond")
        array(True)
    """
    value = raw(x, what)
    value = np.asarray(value) if is_weak(value) else value
    if value.shape != ():
        raise ShapeError(
            f"{what} needs one condition",
            given=f"shape {value.shape}",
            hint="lab.all or lab.any make one of many; lab.where chooses entry by entry",
        )
    if value.dtype == np.bool_:
        return value
    return not_equal(value, 0) if isinstance(value, Tensor) else np.asarray(value != 0)


def leaves_like(out: Any, structure: tree.Structure, names: Sequence[str], what: str) -> list[Any]:
    """The leaves of a carry that a turn gave back.

    Raises:
        ArgumentError: in other containers than it took.
    """
    flat, found = tree.flatten(out)
    if found != structure:
        raise ArgumentError(
            f"{what}: a turn must give back the carry in the containers in which it took it",
            given=f"{tree.paths(out)} for {list(names)}"[:120],
            hint="return what init looks like: the same keys, lengths and kinds of containers",
        )
    return [raw(x, what) for x in flat]


def kept(before: Any, after: Any, name: str, what: str) -> Any:
    """A leaf of the carry after a turn, as that of before: a Python number takes the dtype, else they must agree.

    Raises:
        ShapeError, DTypeError: they do not.
    """
    if type(before) is Tensor and type(after) is Tensor:  # as in most turns, and in a tenth of the time
        a, b = before.value, after.value
        if a.shape == b.shape and a.dtype == b.dtype:
            return after
    was, is_ = spec_of(before), spec_of(after)
    where = f"{what}: a turn must keep the carry{f' at {name}' if name else ''}"
    if was.shape != is_.shape:
        raise ShapeError(
            f"{where} of one shape",
            given=f"{words(was)} before, {words(is_)} after",
            hint="give back the shape that came in, or start with the final one",
        )
    if gives_way(before) or was.dtype == is_.dtype:
        return after
    if gives_way(after) and np.result_type(was.dtype, 0.0 if is_.dtype.kind == "f" else 0) == was.dtype:
        return firm(after, was.dtype)
    raise DTypeError(
        f"{where} of one dtype",
        given=f"{words(was)} before, {words(is_)} after",
        hint=f"start with {is_.dtype}, or cast in the turn: x.astype({str(was.dtype)!r})",
    )


def firm(x: Any, dtype: Any) -> Any:
    """A leaf that does not give way any more."""
    return np.asarray(x, dtype) if is_weak(x) else cast(x, dtype=dtype)


def settled(turn: Callable[[list[Any]], list[Any]], carry: list[Any], names: Sequence[str], what: str) -> list[Any]:
    """The carry after a turn, checked against that before; numbers have become arrays."""
    after = [kept(b, a, name, what) for b, a, name in zip(carry, turn(carry), names, strict=True)]
    return [firm(a, spec_of(a).dtype) if gives_way(a) else a for a in after]


def n_rows(rows: Sequence[Any], names: Sequence[str], length: Any) -> int:
    """The number of turns of a scan.

    Raises:
        ShapeError: rows of different lengths, or a number without rows.
        ArgumentError: nothing that says how many.
    """
    for x, name in zip(rows, names, strict=True):
        if not x.shape:
            raise ShapeError(
                f"scan goes over rows, and xs{name} has none", given="shape ()", hint="init holds what is no sequence"
            )
    lengths = [int(x.shape[0]) for x in rows] + ([] if length is None else [int(length)])
    if not lengths or min(lengths) < 0:
        raise ArgumentError(
            "scan needs to know how many turns", given=f"no rows and length={length}", hint="xs, or length=10"
        )
    if len(set(lengths)) > 1:
        given = [f"xs{name}: {n}" for name, n in zip(names, lengths, strict=False)]
        given += [] if length is None else [f"length={length}"]
        raise ShapeError(
            "scan needs xs of one length", given=", ".join(given), hint="one row for each turn, along axis 0"
        )
    return lengths[0]
