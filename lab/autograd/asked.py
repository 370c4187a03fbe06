"""What `why` is asked about: which tensor of which recording, and which entry of its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.autograd.recorded import Events, Operation, Recorded
from lab.autograd.tensor import Tensor
from lab.errors import ArgumentError, GradientError, RecordingError
from lab.events import OpRecorded, ValueSeen

Index = tuple[int, ...]


def opened(recording: Any, at: int | None, rank: int | None) -> Recorded:
    """What was recorded until `at`, of one rank.

    Raises:
        ArgumentError: no recording, or several ranks and none named.
        RecordingError: values were not recorded.

    Example:
        >>> import lab
        >>> x = lab.tensor(3.0, requires_grad=True, name="x")
        >>> with lab.record() as rec:
        ...     (x * x).backward()
        >>> called(found_in("x", opened(rec, None, None)))
        'x'
    """
    events = getattr(recording, "recording", recording)
    if not all(hasattr(events, name) for name in ("columns", "__len__")):
        raise ArgumentError(
            "why needs the recording of the run",
            given=repr(recording)[:60],
            hint="with lab.record() as rec: ...; then lab.why(x, recording=rec)",
        )
    recorded = Recorded(events, at, rank)
    if rank is None and len(recorded.ranks) > 1:
        raise ArgumentError(
            "the recording has operations of several ranks",
            given=f"ranks {', '.join(map(str, recorded.ranks))}",
            hint=f"say whose: rank={recorded.ranks[0]}",
        )
    if not recorded.kind(ValueSeen)["value"].known().any():
        raise RecordingError(
            "the recording holds no values",
            given=f"{len(recorded.kind(OpRecorded).position):,} operations, recorded with less detail",
            hint='with lab.record(detail="value") as rec: forward and backward',
        )
    return recorded


def found_in(tensor: Any, recorded: Recorded) -> Operation:
    """The operation or leaf that a tensor, a name or the number of a node means.

    Raises:
        ArgumentError: nothing of that name or number took part, or several did.
        GradientError: the tensor is not tracked.
    """
    if isinstance(tensor, Tensor):
        return _of_tensor(tensor, recorded)
    if isinstance(tensor, str):
        nodes = recorded.named(tensor)
        if len(nodes) != 1:
            known = ", ".join(recorded.names()[:8])
            raise ArgumentError(
                f"the recording has {'no' if not nodes else 'several'} tensor{'s' * bool(nodes)} of that name",
                given=repr(tensor),
                hint=f"numbers of their nodes: {nodes}" if nodes else f"names in it: {known or 'none'}",
            )
        tensor = nodes[0]
    operation = recorded.operation(tensor) if isinstance(tensor, int) else None
    if operation is None:
        raise ArgumentError(
            "the recording has no such node",
            given=repr(tensor)[:60],
            hint="a tensor that took part, its name, or its number in OpRecorded or LeafUsed",
        )
    return operation


def _of_tensor(tensor: Tensor, recorded: Recorded) -> Operation:
    operation = recorded.operation(number_of(tensor, recorded.events))
    if operation is None:
        raise ArgumentError(
            "this tensor took no part in the recording",
            given=repr(tensor)[:60],
            hint="its forward and its backward must be inside `with lab.record()`",
        )
    return operation


def number_of(tensor: Tensor, recording: Events) -> int:
    """The number of a tensor's node, by which a recording of this session knows it.

    Raises:
        GradientError: it is not tracked.
        ArgumentError: the recording is from a file, where the number means another node.

    Example:
        >>> import lab
        >>> x = lab.tensor(1.0, requires_grad=True)
        >>> number_of(x, lab.Recording()) == x.node.id
        True
    """
    if tensor.node is None:
        raise GradientError(
            "this tensor has no gradient",
            given=repr(tensor)[:60],
            hint="it is not tracked: make it with requires_grad=True",
        )
    if getattr(recording, "from_file", False):
        raise ArgumentError(
            "a tensor of this session is not in a recording from a file",
            given=repr(tensor)[:60],
            hint='give its name, as lab.why("w", ...), or the number of its node',
        )
    return tensor.node.id


def entry_of(index: Any, gradient: Any, operation: Operation) -> Index:
    """The index as a tuple from 0 on; of None, that of the entry that is farthest from zero.

    Raises:
        ArgumentError: the gradient has no such entry.
        GradientError: it has none at all.
    """
    shape = operation.shape
    if index is None:
        flat = np.abs(gradient).reshape(-1)
        if not len(flat):
            raise GradientError(
                "a gradient without entries has no paths", given=f"shape {shape}", hint="another tensor"
            )
        return tuple(int(i) for i in np.unravel_index(int(np.argmax(flat)), shape))
    parts = index if isinstance(index, tuple | list) else (index,)
    whole = all(isinstance(i, int | np.integer) and not isinstance(i, bool) for i in parts)
    if not whole or len(parts) != len(shape) or not all(-n <= i < n for i, n in zip(parts, shape, strict=True)):
        raise ArgumentError(
            "the gradient has no such entry",
            given=f"index {index!r} of shape {shape}",
            hint="one whole number for each axis" if shape else "a single number: leave the index out",
        )
    return tuple(int(i) % n for i, n in zip(parts, shape, strict=True))


def called(operation: Operation) -> str:
    """What an operation or leaf is called in words."""
    return operation.name or (f"{operation.op} (node {operation.node})" if operation.op else f"leaf {operation.node}")


def no_gradient(recorded: Recorded, operation: Operation) -> GradientError:
    """The error that tells why there is none: cleared since, or not computed."""
    cleared = recorded.cleared(operation.node)
    if cleared >= 0:
        return GradientError(
            "its gradient was cleared since", given=called(operation), hint=f"ask as of before: at={cleared}"
        )
    return GradientError(
        "it has no gradient in this recording yet",
        given=called(operation),
        hint="call backward() on a result that depends on it, inside the recording",
    )
