"""What somebody writes into a model here while ranks on a cluster train it, found by a checksum of what they have."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator

import numpy as np

from lab.errors import RunError
from lab.optim import Optimizer
from lab.optim.optimizer import Snapshot

PART_BYTES = 1 << 19
"""What one order carries of a state: all of it goes through the scheduler, which takes 1 MiB at once."""
LARGEST = 1 << 26
"""Bytes of a state that are still sent through the scheduler."""


class Edits:
    """The difference between an optimiser here and those of the ranks, which are held.

    Example:
        >>> from lab.autograd import tensor
        >>> from lab.optim import SGD
        >>> w = tensor([1.0], requires_grad=True)
        >>> edits = Edits(SGD([w], 0.1))
        >>> edits.found() is None
        True
        >>> w.value = np.array([2.0])
        >>> edits.found().values
        [array([2.])]
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self.are_known()

    def are_known(self) -> None:
        """The ranks have what is here now."""
        self._theirs = self._checksum()

    def found(self) -> Snapshot | None:
        """What the optimiser here holds, if it is not what the ranks have."""
        return self._optimizer.snapshot() if self._checksum() != self._theirs else None

    def _checksum(self) -> int:
        """Of what the optimiser here holds; with it, parameters that another one has moved are taken back."""
        for group in self._optimizer.groups:
            group.adopt()
        state = self._optimizer.snapshot()
        found = state.n_steps
        for values, slots in zip(state.values, state.slots, strict=True):
            for vector in (values, *slots.values()):
                found = zlib.crc32(vector.view(np.uint8), found)  # type: ignore[arg-type]  # an array is a buffer
        return found


def parts_of(edited: Snapshot) -> Iterator[bytes]:
    """It, in parts that can be sent.

    Raises:
        RunError: it is too much.
    """
    state = pickle.dumps(edited)
    if len(state) > LARGEST:
        raise RunError("parameters were changed while the run on workers was paused",
                       given=f"{len(state) / 2**20:.3g} MiB of parameters and state of the optimiser, "
                       f"of at most {LARGEST >> 20} that are sent to ranks under way",
                       hint="run.rewind() goes back; run.stop() keeps them, to be fitted anew")  # fmt: skip
    return (state[at : at + PART_BYTES] for at in range(0, len(state), PART_BYTES))
