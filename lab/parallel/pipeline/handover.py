"""What goes between two stages of a pipeline: an activation or its gradient, with the time at which it was done.

A small message says shape and dtype before the array comes, since micro-batches may differ; between two stages of one
rank the array itself is handed over.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lab.events.bus import bus
from lab.events.catalogue import ActivationMoved
from lab.parallel.paper.schedules import Action
from lab.parallel.ranks.runtime import Comm

AXES = 64
"""NumPy's own limit."""

Parcel = tuple[npt.NDArray[Any] | None, int]
"""An array, None where there is no gradient to send, and when the sender was done with it, in nanoseconds."""


class Handover:
    """Sends and takes for one rank of a pipeline whose stage s lives on rank s % world_size.

    Example:
        >>> from lab.parallel import run_ranks
        >>> def program(comm):
        ...     pass_on = Handover(comm, n_stages=2)
        ...     if comm.rank == 0:
        ...         pass_on.give(np.eye(2), Action("F", 0, micro=3), end_ns=5)
        ...     else:
        ...         return pass_on.take(Action("F", 1, micro=3))
        >>> run_ranks(program, world_size=2)[1]
        (array([[1., 0.],
               [0., 1.]]), 5)
    """

    def __init__(self, comm: Comm, n_stages: int) -> None:
        self._comm, self._n_stages = comm, n_stages
        self._own: dict[Action, Parcel] = {}  # between two stages of this rank

    def give(self, array: npt.NDArray[Any] | None, done: Action, end_ns: int) -> None:
        """Send what the action made to the stage that needs it: the next after a forward, else the one before."""
        needed_by = done._replace(stage=done.stage + (1 if done.kind == "F" else -1))
        peer = needed_by.stage % self._comm.world_size
        if peer == self._comm.rank:
            self._own[needed_by] = array, end_ns
            return
        tag = self._tag(needed_by)
        self._comm.send(_head(array, end_ns), peer, tag)
        if array is not None:
            self._comm.send(array, peer, tag + 1)

    def take(self, needed_by: Action) -> Parcel:
        """What the action needs, when it has come."""
        kind, stage, micro = needed_by
        source = stage + (-1 if kind == "F" else 1)
        peer = source % self._comm.world_size
        if peer == self._comm.rank:
            array, end_ns = self._own.pop(needed_by)
        else:
            tag = self._tag(needed_by)
            array, end_ns = _place(self._comm.recv(np.empty(3 + AXES, np.int64), peer, tag))
            if array is not None:
                self._comm.recv(array, peer, tag + 1)
        if bus.listeners and array is not None:
            bus.emit(ActivationMoved(kind, source, stage, micro, array.nbytes))
        return array, end_ns

    def _tag(self, needed_by: Action) -> int:
        kind, stage, micro = needed_by
        return 2 * (2 * (micro * self._n_stages + stage) + (kind == "B"))


def _head(array: npt.NDArray[Any] | None, end_ns: int) -> npt.NDArray[np.int64]:
    """When it was done, number of axes (-1 for no array), dtype as its text, lengths of the axes."""
    head = np.zeros(3 + AXES, np.int64)
    head[:2] = end_ns, -1
    if array is not None:
        head[1 : 3 + array.ndim] = array.ndim, int.from_bytes(array.dtype.str.encode(), "little"), *array.shape
    return head


def _place(head: npt.NDArray[np.int64]) -> Parcel:
    """An empty array for what was announced."""
    end_ns, n_axes, dtype, *lengths = head.tolist()
    if n_axes < 0:
        return None, end_ns
    return np.empty(lengths[:n_axes], dtype.to_bytes(8, "little").rstrip(b"\0").decode()), end_ns
