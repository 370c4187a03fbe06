"""How ranks that train together are led: what rank 0 is told, all do, between the same two steps.

Orders come to the mailbox of rank 0. Once a step the ranks agree on a few numbers anyway (the loss, who has a nan); the
next order travels with them. While they are held they agree on nothing but orders, often enough that nobody's patience
ends; so every rank has done the same steps whenever one is held, changed, sent back or stopped.
"""

from __future__ import annotations

import math
import pickle
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from lab.errors import RunError
from lab.parallel.ranks.hops import Hops
from lab.parallel.ranks.runtime import Comm
from lab.training.job import BOUNDS

Numbers = npt.NDArray[np.float64]

KINDS = ("", "go", "hold", "set", "rewind", "stop", "part", "load", "bound", "within")
N_WORDS = 4
BEAT = 0.5
"""Seconds between two words of ranks that are held."""
TELLS = 0.1
"""Seconds between two words home of ranks that run ahead: each costs the machine a few milliseconds."""


class Order(NamedTuple):
    """What the launcher wants.

    Attributes:
        serial: grows from order to order; words home name the last that was carried out.
        kind: "go" for `value` steps (inf: until told otherwise), "hold", "set" hyperparameter `name` to `value`,
            "bound" loss or gradient (`name`) by `value`, "rewind", "stop", "part" of `value` bytes of a pickled state,
            "load" what the parts make together, "within" hold ranks within their steps too, `value` is the number of
            the hold, 0 for none.
        part: the bytes of a "part"; rank 0 hands them on.
    """

    serial: int
    kind: str
    value: float = 0.0
    name: str = ""
    part: bytes = b""


class At(NamedTuple):
    """Word home: so many steps are done, and the next is on its way."""

    serial: int
    step: int


class Held(NamedTuple):
    """Word home: no rank moves. `standing` is what all of them hold, None if it is as at the last such word."""

    serial: int
    step: int
    standing: Any
    trouble: RunError | None


class Grip(NamedTuple):
    """What of the launcher's orders is still to be done: with the state of a job all that its leading hangs on.

    Attributes:
        serial: of the last order that was carried out.
        n_granted: steps that may still be done.
        within: number of the hold within steps, 0 for none.
        trouble: why the last step was not done.
        is_stopping: whether nothing more shall be done.
    """

    serial: int = 0
    n_granted: float = 0.0
    within: int = 0
    trouble: RunError | None = None
    is_stopping: bool = False


FREE = Grip()
"""Nothing was ordered yet."""


class Steered(Protocol):
    """What every rank trains; the same calls on all ranks, between the same steps, so they may be collective.

    Attributes:
        step: steps done.
    """

    step: int

    @property
    def finished(self) -> bool:
        """Whether no step is left."""

    def advance(self) -> RunError | None:
        """One step. Calls `Steering.agree` once, on every rank. All ranks return an error, or none does."""

    def set(self, name: str, value: float) -> None:
        """Set a hyperparameter."""

    def bound(self, name: str, value: float) -> None:
        """Have `advance` return a BreakpointError, on all ranks, where the loss or the gradient is above."""

    def rewind(self) -> None:
        """Go back to the last state known to be sound."""

    def load(self, state: Any) -> None:
        """Take over what the launcher sent, the same on all ranks."""

    def standing(self) -> Any:
        """What goes home when the ranks are held and at the end; only that of rank 0 does. Arrays are copies."""


class Steering:
    """One rank's hands on the wheel; all ranks of a training make one, with the same names.

    Args:
        names: of the hyperparameters that can be set.
        hold: called with the number of a hold that begins with the next step, 0 for none; None holds the rank before
            each step of its collectives.

    Example:
        >>> from lab.parallel import run_ranks
        >>> from lab.training import Countdown
        >>> class Counting(Countdown):
        ...     def standing(self): return self.n
        >>> def program(comm):
        ...     comm.mailbox.put(Order(1, "set", 2.0, "by"))
        ...     comm.mailbox.put(Order(2, "go", math.inf))
        ...     counting = Counting(7)
        ...     return Steering(comm, ["by"]).lead(counting), counting.step
        >>> run_ranks(program, world_size=2)
        [(0, 4), (0, 4)]
    """

    def __init__(self, comm: Comm, names: Sequence[str], hold: Callable[[int], object] | None = None) -> None:
        self.comm, self.names = comm, list(names)
        self._within = hold or self._before_hops
        self._orders: deque[Order] = deque()
        self._order = Order(0, "")  # what the last agreement brought, until it is carried out
        self._serial, self._n_granted, self._stopping = 0, 0.0, False
        self._has_agreed, self._told = False, 0.0
        self._part, self._parts = b"", bytearray()  # the last one, which only rank 0 got, and all that all have
        self._beat = min(BEAT, comm.links.timeout / 4)
        self._hold_within = 0
        self._keep: Callable[[Grip], object] = lambda grip: None

    def agree(self, numbers: Numbers) -> Numbers:
        """The sums of `numbers` over all ranks, and with them the next order: once in every step.

        Shapes:
            numbers: (n,), the same n on all ranks; result: the same.
        """
        if self.comm.rank == 0:
            self._orders.extend(self.comm.mailbox.take(Order))
        words = np.zeros(N_WORDS + len(numbers))
        words[N_WORDS:] = numbers
        if self._orders:
            order = self._orders.popleft()
            self._part = order.part
            number = self._names(order.kind).index(order.name) if order.name else 0
            words[:N_WORDS] = (order.serial, KINDS.index(order.kind), order.value, number)
        self.comm.agree(words)
        serial, number, value, name = words[:N_WORDS].tolist()
        kind = KINDS[int(number)]
        names = self._names(kind)
        self._order = Order(int(serial), kind, value, names[int(name)] if names else "")
        self._has_agreed = True
        return words[N_WORDS:]

    def lead(self, job: Steered, grip: Grip = FREE, keep: Callable[[Grip], object] | None = None) -> Any:
        """Carry out `job` as the launcher says, from a held beginning to its end; what it stands at then.

        Args:
            grip: where another launch left it.
            keep: called whenever the job or what is still to be done has changed, between two steps, with the latter.
        """
        self._serial, self._n_granted, _, trouble, self._stopping = grip
        self._keep = keep or self._keep
        if grip.within:
            self._hold_steps(grip.within)
        self._keep(grip)
        while not job.finished and not self._stopping:
            if self._n_granted <= 0:
                self._hold(job, trouble)
                continue
            self._has_agreed = False
            trouble = job.advance()
            if not self._has_agreed:
                self.agree(np.zeros(0))
            self._n_granted = 0.0 if trouble else self._n_granted - 1
            self._carry_out(job)
            self._keep(self._grip(trouble))
            self._progress(job)
        return job.standing()

    def _hold(self, job: Steered, trouble: RunError | None) -> None:
        self._tell(Held(self._serial, job.step, job.standing(), trouble))
        while self._n_granted <= 0 and not self._stopping:
            if self.comm.rank == 0 and not self._orders:
                self.comm.mailbox.wait(self._beat, Order)
            self.agree(np.zeros(0))
            kind = self._carry_out(job)
            if kind and kind != "part":  # of a state that comes in parts all are sent again, or none
                trouble = None if kind in {"go", "rewind", "load"} else trouble
                self._keep(self._grip(trouble))
            if kind in {"hold", "set", "rewind", "bound", "within"}:
                moved = kind == "rewind"
                self._tell(Held(self._serial, job.step, job.standing() if moved else None, None))

    def _carry_out(self, job: Steered) -> str:
        order, self._order = self._order, Order(0, "")
        if order.kind in {"go", "hold"}:
            self._n_granted = order.value
        elif order.kind == "set":
            job.set(order.name, order.value)
        elif order.kind == "bound":
            job.bound(order.name, order.value)
        elif order.kind == "within":
            self._hold_steps(int(order.value))
        elif order.kind == "rewind":
            job.rewind()
            self._n_granted = 0.0
        elif order.kind == "part":
            self._parts += self._handed_on(int(order.value))
        elif order.kind == "load":
            job.load(pickle.loads(self._parts))  # noqa: S301 -- the launcher's own
            self._parts.clear()
        elif order.kind == "stop":
            self._stopping = True
        self._serial = order.serial or self._serial
        return order.kind

    def _grip(self, trouble: RunError | None) -> Grip:
        return Grip(self._serial, self._n_granted, self._hold_within, trouble, self._stopping)

    def _hold_steps(self, hold: int) -> None:
        self._hold_within = hold
        self._within(hold)

    def _handed_on(self, n_bytes: int) -> bytes:
        """What rank 0 got, on all ranks."""
        part = np.frombuffer(self._part, np.uint8) if self.comm.rank == 0 else np.empty(n_bytes, np.uint8)
        if self.comm.rank:
            self.comm.recv(part, 0)
        for peer in range(1, self.comm.world_size) if self.comm.rank == 0 else ():
            self.comm.send(part, peer)
        return part.tobytes()

    def _progress(self, job: Steered) -> None:
        if self.comm.rank == 0 and self._n_granted == math.inf and monotonic() - self._told > TELLS:
            self._tell(At(self._serial, job.step))

    def _tell(self, word: At | Held) -> None:
        if self.comm.rank == 0:
            self._told = monotonic()
            self.comm.home.put(word)

    def _before_hops(self, hold: int) -> None:
        comm = self.comm
        home = comm.home if comm.rank == 0 else None
        comm.hops = Hops(hold, comm.mailbox, comm.links.alarm, home) if hold else None

    def _names(self, kind: str) -> Sequence[str]:
        return BOUNDS if kind == "bound" else self.names
