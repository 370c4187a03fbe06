"""How ranks that train outlive the loss of one: each keeps its last two states, and the next launch begins with them.

The ranks agree on the newest state that all survivors have; one of them sends it to who is new. States are numbered by
launch, then by what was done in it, so that what is from an older launch is never taken for newer.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab.errors import ArgumentError, DataError, RunError
from lab.events import StateKept
from lab.events.bus import bus
from lab.events.event import EVENTS, values_of
from lab.events.gate import clock
from lab.parallel.ranks.runtime import Comm
from lab.parallel.ranks.shelves import NOBODY, SHELVES, Arrays, Kept
from lab.parallel.training.beginning import begin_alike
from lab.parallel.training.packing import unpacked
from lab.parallel.training.steering import Grip, Steering
from lab.parallel.training.tale import KINDS, Known, Noted, Tale
from lab.training.footing import Footing, arrays_of, footing_of, stand_on
from lab.training.snapshots import take_up
from lab.training.trainer import Training

log = logging.getLogger("lab.parallel")

WRITTEN = 256
"""Events of the tale that are written to disk with a state."""
_NOTED = {kind.__name__ for kind in KINDS}
STRIDE = 1 << 40
"""Numbers of states of one launch; a float64, in which they are agreed on, holds 8,192 times as many."""


class NothingKeptError(RunError):
    """No rank of a training that goes on has a state of it: all were lost."""


class Going(NamedTuple):
    """What the ranks of a launch are told of those before it.

    Attributes:
        key: of what is kept for the run; "" keeps nothing.
        attempt: launches before this one.
        known: what of the run's tale came home from them.
        base: where the launcher stands (`packed_base`), for when nobody knows better; b"" if that is the beginning.
        source: what kind of state `base` is, in a word.
        may_begin: whether ranks that know of no state begin at the beginning, or at `base`.
        grip: what of orders is still to be done at `base`.
    """

    key: str = ""
    attempt: int = 0
    known: Known = Known()
    base: bytes = b""
    source: str = "beginning"
    may_begin: bool = True
    grip: Grip = Grip()


FIRST = Going()
"""A first launch, of a run that ends with the loss of a rank."""


class Resumed(NamedTuple):
    """Word home, the first of each launch: where the ranks begin, after which order, and whose state that is."""

    serial: int
    step: int
    source: str
    is_held: bool


class About(NamedTuple):
    """What is kept beside the arrays."""

    footing: Footing
    grip: Grip
    noted: Any


def packed_base(training: Training, noted: Sequence[Noted] = ()) -> bytes:
    """Where a training stands, and what of its tale may not have come home, to be sent to ranks."""
    return pickle.dumps((footing_of(training), [np.array(array) for array in arrays_of(training)], list(noted)))


def disk_base(payload: bytes, key: str) -> tuple[bytes, Grip] | None:
    """Where ranks stood that wrote themselves to disk, to be sent to others; None if they did not.

    Args:
        payload: the training as it was sent.
        key: of what they kept: a snapshot of another run is none of theirs.
    """
    training = unpacked(payload)
    if training.snapshots is None or not Path(training.snapshots.path).exists():
        return None
    try:
        more = take_up(training, training.snapshots.path)
    except (ArgumentError, DataError) as error:  # somebody else's, which is soon written over
        log.info("the snapshot is not of this run: %s", error)
        return None
    if more.get("key") != key:
        return None
    left = more["grip"]
    grip = Grip(int(left["serial"]), float(left["n_granted"]), int(left["within"]), None, bool(left["is_stopping"]))
    noted = [(0, EVENTS[kind](*fields)) for kind, fields in more["noted"] if kind in _NOTED]
    return packed_base(training, noted), grip


def going_on(going: Going, training: Training, payload: bytes, serial: int, *, are_any_left: bool) -> Going:
    """From where to go on after a loss, if the ranks have been held before it.

    Args:
        going: what is told anyway.
        training: the one at home, which stands where the ranks were held last.
        payload: it as it was sent.
        serial: of the last order that it has carried out.
        are_any_left: whether there are ranks that may have kept a newer state.
    """
    if are_any_left:
        return going._replace(base=b"", may_begin=False)
    going = going._replace(base=packed_base(training), source="launcher", may_begin=True, grip=Grip(serial))
    found = disk_base(payload, going.key)
    if found is not None and found[1].serial >= serial:  # not from before the last pause
        going = going._replace(base=found[0], source="disk", grip=found[1])
    return going


class Keeper:
    """One rank's states.

    Args:
        more: arrays that are kept with them, alike on all ranks, and begin at 0 where no rank has any.

    Attributes:
        tale: what this rank has in common with all others to tell.
    """

    def __init__(
        self, comm: Comm, steering: Steering, training: Training, going: Going, more: Arrays = ()
    ) -> None:
        self._comm, self._steering, self._training, self._going = comm, steering, training, going
        self._more = more
        self._number, self._step = going.attempt * STRIDE, 0
        self.tale = Tale(going.known, speaks=comm.rank == 0)
        self.tale.number = self._number
        training.tell = self.tale.tell

    def begin(self, run: str) -> Grip:
        """Stand where the last launch stood, or begin; all ranks call it. What of orders is still to be done."""
        grip, source = self._go_on() if self._going.attempt else None, "ranks"
        if grip is None:
            grip, source = self._going.grip, self._begin(run)
        if self._comm.rank == 0:
            self._comm.home.put(Resumed(grip.serial, self._training.step, source, grip.n_granted <= 0))
        return grip

    def keep(self, grip: Grip) -> None:
        """Keep the state between two steps, or after an order."""
        if not self._going.key:
            self._write(grip)
            return
        start = clock()
        if self._training.step < self._step:
            self.tale.rewound(self._training.step)
        self._step = self._training.step
        about = About(footing_of(self._training), grip, self.tale.noted)
        shelf = SHELVES.of(self._going.key, self._comm.rank)
        n_bytes = shelf.put(self._number, about, [*arrays_of(self._training), *self._more])
        self._number += 1
        self.tale.number = self._number
        if bus.listeners and any(listener.wants(StateKept) for listener in bus.listeners):
            bus.emit(StateKept(self._training.step, n_bytes, 1000 * (clock() - start)))
        self._write(grip)

    def _write(self, grip: Grip) -> None:
        """To disk, on rank 0, if it is time; not what came with trouble, whose reason is no number."""
        snapshots = self._training.snapshots
        if snapshots is None or self._comm.rank or grip.trouble is not None or not snapshots.is_due(self._training):
            return
        left = grip._asdict() | {"n_granted": str(grip.n_granted), "trouble": None}
        noted = [(type(event).__name__, values_of(event)) for _, event in list(self.tale.noted)[-WRITTEN:]]
        snapshots.write_if_due(self._training, {"key": self._going.key, "grip": left, "noted": noted})

    def _begin(self, run: str) -> str:
        going = self._going
        if not going.may_begin:
            raise NothingKeptError("no rank has kept a state", given=f"launch {going.attempt + 1} of the run",
                              hint="the launcher begins again from the state that it has")  # fmt: skip
        if not going.base:
            begin_alike(self._comm, self._training)
            self._training.begin(run)
            return going.source
        footing, arrays, noted = pickle.loads(going.base)  # noqa: S301 -- the launcher's own
        stand_on(self._training, footing, arrays)
        self._step = footing.step
        if not going.known.began:
            self._training.begin(run)
        self.tale.tell_again(noted, 0)
        self.tale.number = self._number
        return going.source

    def _go_on(self) -> Grip | None:
        """Stand where the survivors stood; None without any."""
        comm, key = self._comm, self._going.key
        newest = np.zeros(comm.world_size)
        newest[comm.rank] = SHELVES.newest(key) - NOBODY
        comm.agree(newest)
        survivors = np.flatnonzero(newest)
        if not len(survivors):
            return None
        number, source = int(newest[survivors].min()) + NOBODY, int(survivors[0])
        kept = SHELVES.state(key, number) if newest[comm.rank] else None
        about, arrays = self._shared(kept, source, [peer for peer in range(comm.world_size) if not newest[peer]])
        n_own = len(arrays) - len(self._more)
        stand_on(self._training, about.footing, arrays[:n_own])
        for mine, other in zip(self._more, arrays[n_own:], strict=True):
            mine[...] = other
        self._step = about.footing.step
        self.tale.tell_again(about.noted, number)
        self.tale.number = self._number
        return about.grip

    def _shared(self, kept: Kept | None, source: int, lacking: list[int]) -> tuple[About, Arrays]:
        """A state, on all ranks, that those who lack it get from one who has it."""
        comm = self._comm
        words = b""
        if comm.rank == source and lacking and kept is not None:
            noted: list[Noted] = [noted for noted in list(kept.about.noted) if noted[0] <= kept.number]
            words = pickle.dumps((kept.about._replace(noted=noted), list(kept.arrays)))
        size = int(comm.agree(np.array([float(len(words))]))[0])
        if comm.rank in lacking:
            buffer = comm.recv(np.empty(size, np.uint8), source)
            sent: tuple[About, Arrays] = pickle.loads(buffer.tobytes())  # noqa: S301 -- another rank's of this run
            return sent
        assert kept is not None, "who lacks nothing has it"
        for peer in lacking if comm.rank == source else ():
            comm.send(np.frombuffer(words, np.uint8), peer)
        return kept.about, kept.arrays
