"""The state of a model that lies on several ranks, each with some of its parameters, brought together on rank 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lab.autograd import Tensor
from lab.optim.optimizer import Optimizer, Slots, Snapshot, Vector
from lab.parallel.ranks.runtime import Comm

TAG = 1 << 62
"""Beyond those of activations, and of other programs."""


class Joining:
    """Knows where each rank's parameters lie in the vectors of the whole optimiser.

    Args:
        whole: an optimiser of all parameters; only how it is laid out counts.
        owned: the parameters of each rank; together all of `whole`, none twice.

    Example:
        >>> from lab.nn import mlp
        >>> from lab.optim import SGD
        >>> from lab.parallel import run_ranks
        >>> def program(comm):
        ...     model = mlp(1, 1, 1, rng=0)
        ...     whole, (a, b, c, d) = SGD(model.parameters()), model.parameters()
        ...     owned = [[d, a], [b, c]]
        ...     part = whole.part(owned[comm.rank])
        ...     part.groups[0].values[...] = [1.0, 2.0] if comm.rank else [3.0, 0.0]
        ...     return Joining(comm, whole, owned).gather(part.snapshot())
        >>> run_ranks(program, world_size=2)[0].values
        [array([0., 1., 2., 3.], dtype=float32)]
    """

    def __init__(self, comm: Comm, whole: Optimizer, owned: Sequence[Sequence[Tensor]]) -> None:
        self._comm, self._slots = comm, whole.slot_names
        self._like = [np.empty(0, group.values.dtype) for group in whole.groups]
        self._lengths = [len(group.values) for group in whole.groups]
        at = [{id(p): s for p, s in zip(g.parameters, g.slices, strict=True)} for g in whole.groups]
        self._places = [[[found[id(p)] for p in mine if id(p) in found] for found in at] for mine in owned]

    def gather(self, own: Snapshot) -> Snapshot | None:
        """The snapshot of the whole on rank 0, None elsewhere; all ranks call it with their own."""
        mine = {values.dtype: self._table(values, slots) for values, slots in zip(own.values, own.slots, strict=True)}
        tables = [mine.get(like.dtype) for like in self._like]
        if self._comm.rank:
            for table in tables:
                if table is not None:
                    self._comm.send(table, 0, TAG)
            return None
        joined = [np.empty((1 + len(self._slots), n), a.dtype) for n, a in zip(self._lengths, self._like, strict=True)]
        for rank, groups in enumerate(self._places):
            for table, into, places in zip(tables, joined, groups, strict=True):
                if places:
                    n_own = sum(place.stop - place.start for place in places)
                    came = self._comm.recv(np.empty((len(into), n_own), into.dtype), rank, TAG) if rank else table
                    assert came is not None
                    _scatter(came, into, places)
        values, slots = [t[0] for t in joined], [dict(zip(self._slots, t[1:], strict=True)) for t in joined]
        return Snapshot(own.n_steps, values, slots)

    def share(self, whole: Snapshot, own: Snapshot) -> Snapshot:
        """This rank's part of a snapshot of the whole, laid out as its own is; the way back of `gather`."""
        found = {}
        for places, values, slots in zip(self._places[self._comm.rank], whole.values, whole.slots, strict=True):
            if places:
                mine = {name: _taken(slot, places) for name, slot in slots.items()}
                found[values.dtype] = _taken(values, places), mine
        parts = [found[values.dtype] for values in own.values]
        return Snapshot(whole.n_steps, [values for values, _ in parts], [slots for _, slots in parts])

    def _table(self, values: Vector, slots: Slots) -> Vector:
        """Values and state, one row each."""
        return np.stack([values, *(slots[name] for name in self._slots)])


def _taken(vector: Vector, places: Sequence[slice]) -> Vector:
    return np.concatenate([vector[place] for place in places])


def _scatter(table: Vector, into: Vector, places: Sequence[slice]) -> None:
    start = 0
    for place in places:
        stop = start + place.stop - place.start
        into[:, place] = table[:, start:stop]
        start = stop
