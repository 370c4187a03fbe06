"""What a rank's program sees of the others: `comm`, with its rank, the world's size, and the calls that all make.

The same Comm serves ranks on workers and ranks that are threads of one process (`threads.py`), over the same sockets.
"""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from lab.errors import ArgumentError, DTypeError
from lab.events.bus import bus
from lab.events.catalogue import ChunkMoved, CollectiveFinished, CollectiveStarted
from lab.events.event import Array
from lab.parallel.paper.calling import name_of
from lab.parallel.paper.plans import Plan, plan_of, plan_steps
from lab.parallel.ranks.execute import Hop, Waves, execute, waves_of
from lab.parallel.ranks.hearing import Told
from lab.parallel.ranks.hops import Hops
from lab.parallel.ranks.mailbox import Mailbox
from lab.parallel.transport.sockets import Links
from lab.parallel.transport.wire import Call, place_of_caller
from lab.words import shown

VALUES = 4096
"""Entries of an array that an event carries, at most."""
CONTROL = 1024
"""Entries of what ranks `agree` on, at most."""

NUMERIC = "iufcb"
"""Kinds of dtypes that can be added."""
TAGS = 1 << 63
"""Tags are -TAGS to TAGS - 1: what a header has room for."""
ROOTED = {"broadcast", "reduce"}
"""Operations of which the root is a part, also when it is 0."""

AnyArray = TypeVar("AnyArray", bound=npt.NDArray[Any])


class Comm:
    """One rank's connection to all others of its launch, for one thread: a second call at once is refused.

    After a call that raised MeshError or LostRankError in the middle no call works any more: each raises MeshError
    with the first problem.

    Attributes:
        rank: 0 to world_size - 1.
        world_size: how many ranks there are.
        collective: how many collectives this rank has entered.
        mailbox: what whoever launched the program says to this rank (`Launch.say`).
        home: where this rank puts what it tells whoever launched it, while its program runs (`Launch.hear`).
        hops: holds this rank before each step of its collectives; None does not, and costs nothing.
    """

    def __init__(
        self, rank: int, world_size: int, links: Links, mailbox: Mailbox | None = None, home: Told | None = None
    ) -> None:
        self.rank, self.world_size, self.links = rank, world_size, links
        self.mailbox: Mailbox = mailbox or Mailbox()
        self.home: Told = home or Mailbox()
        self.collective = 0
        self.hops: Hops | None = None
        self._gate, self._in, self._out = links.gate, links.gate.enter, links.gate.leave
        self._call: Call | None = None

    @property
    def inside(self) -> str:
        """The call that this rank is in, "" when it computes."""
        return str(self._call or "")

    def __repr__(self) -> str:
        return f"Comm(rank={self.rank}, world_size={self.world_size})"

    def all_reduce_(self, array: AnyArray, algorithm: str | Plan = "ring") -> AnyArray:
        """Sum `array` over all ranks, in place; every rank gets the same bits, which depend on the algorithm.

        Shapes:
            array: any shape and numeric dtype, equal on all ranks; the result is `array` itself.
        Args:
            algorithm: with "all_reduce" a key of COLLECTIVES, or a plan of your own.
        Raises:
            MeshError: ranks make different calls.
            LostRankError: a rank died, or nothing moved for the time-out of the launch.
        Example:
            >>> from lab.parallel import run_local
            >>> [float(x.sum()) for x in run_local("all_reduce", "ring", [np.ones(4)] * 3)]
            [12.0, 12.0, 12.0]
        """
        self.run_(array, "all_reduce", algorithm)
        return array

    def broadcast_(self, array: AnyArray, root: int = 0, algorithm: str | Plan = "flat") -> AnyArray:
        """Make `array` what it is on rank `root`, in place.

        Shapes:
            array: any shape and any dtype without objects (also text, times and records), equal on all ranks; the
                result is `array` itself.
        Raises:
            ArgumentError: there is no such root.
            MeshError, LostRankError: as `all_reduce_`.
        Example:
            >>> from lab.parallel import run_local
            >>> [x.tolist() for x in run_local("broadcast", "flat", [np.full(2, rank) for rank in range(3)], root=1)]
            [[1, 1], [1, 1], [1, 1]]
        """
        self.run_(array, "broadcast", algorithm, root=root)
        return array

    def run_(self, array: Array, operation: str, algorithm: str | Plan, *, root: int = 0) -> None:
        """Run any plan of COLLECTIVES, or one of your own, on `array`, in place."""
        root = self._require_peer(root, "root")
        if not (isinstance(algorithm, str) or callable(algorithm)):
            raise ArgumentError("an algorithm is a name or a plan", given=f"algorithm={shown(algorithm)}",
                                hint='"ring" or "naive", or a generator function')  # fmt: skip
        plan = plan_of(operation, algorithm)
        name = algorithm if isinstance(algorithm, str) else name_of(plan)
        text = f"{operation} {name} {_kind(array)}" + (f" root {root}" if root or operation in ROOTED else "")
        waves = waves_of(plan, self.rank, self.world_size, self.world_size, root)
        flat = _flat(array, adds=operation != "broadcast" or waves.adds)
        if self.hops is not None:
            n_steps = plan_steps(plan, self.world_size, root)
            self.hops.collective(self.collective, operation, name, n_steps)
        self._collective(operation, name, text, flat, waves)
        _put_back(flat, array)

    def barrier(self) -> None:
        """Wait until every rank is here."""
        waves = waves_of(plan_of("all_reduce", "naive"), self.rank, self.world_size, self.world_size, 0)
        self._collective("barrier", "naive", "barrier", np.zeros(1, np.int8), waves)

    def agree(self, words: AnyArray) -> AnyArray:
        """Sum a few numbers over all ranks, in place, and record nothing: control, such as "has anybody a nan?".

        Shapes:
            words: any shape of at most 1,024 entries, equal on all ranks; the result is `words` itself, the same bits
                on every rank.
        Raises:
            ArgumentError: it is too large to be control.
            MeshError, LostRankError: as `all_reduce_`.
        Example:
            >>> from lab.parallel import run_ranks
            >>> run_ranks(lambda comm: comm.agree(np.array([comm.rank, 1])).tolist(), world_size=3)
            [[3, 3], [3, 3], [3, 3]]
        """
        kind = _kind(words)
        if words.size > CONTROL:
            raise ArgumentError("ranks agree on a few numbers", given=kind, hint="all_reduce_ sums arrays")
        flat = _flat(words, adds=True)
        waves = waves_of(plan_of("all_reduce", "naive"), self.rank, self.world_size, self.world_size, 0)
        call = self._enter(Call(self.collective, f"agreement {kind}", place_of_caller()))
        try:
            self.collective += 1
            execute(self.links, call, flat, waves)
            self.links.past.append(call)
        except BaseException as error:
            self._gate.fail(error)
            raise
        self._leave()
        _put_back(flat, words)
        return words

    def send(self, array: Array, peer: int, tag: int = 0) -> None:
        """Send a copy of `array` to `peer`, which receives it with the same tag, now or later; does not wait for it.

        A message that `peer` never receives is dropped at the end of its program, without an error.

        Shapes:
            array: any shape and any dtype without objects.
        Args:
            tag: -2**63 to 2**63 - 1; messages with equal tags arrive in the order in which they were sent.
        Raises:
            ArgumentError: the peer does not exist or is this rank; the tag is no whole number in its range.
        """
        peer = self._require_peer(peer, "peer", other=True)
        message, flat = _message(tag, array), _flat(array, writes=False)
        call = self._enter(message)
        try:
            self.links.send(call, peer, flat)
        except BaseException as error:
            self._gate.fail(error)
            raise
        self._leave()

    def recv(self, array: AnyArray, peer: int, tag: int = 0) -> AnyArray:
        """Receive into `array` what `peer` sent with this tag; messages with other tags wait for their `recv`.

        Shapes:
            array: shape and dtype as sent; the result is `array` itself.
        Raises:
            MeshError: what was sent has another shape or dtype, or the peer has ended.
            LostRankError: the peer died, or nothing came for the time-out of the launch.
        """
        peer = self._require_peer(peer, "peer", other=True)
        message, flat = _message(tag, array), _flat(array)
        call = self._enter(message)
        try:
            self.links.receive(call, peer, flat)
        except BaseException as error:
            self._gate.fail(error)
            raise
        self._leave()
        _put_back(flat, array)
        return array

    def _collective(self, operation: str, algorithm: str, text: str, flat: Array, waves: Waves) -> None:
        number = self.collective
        about = (number, operation, algorithm, flat.nbytes, self.world_size, self.world_size)

        def moved(hop: Hop, n_bytes: int) -> None:
            first, last = (len(flat) * chunk // self.world_size for chunk in (hop.start, hop.stop))
            bus.emit(
                ChunkMoved(number, hop.step, hop.peer, self.rank, hop.start, hop.stop, hop.reduce, n_bytes,
                           _copy(flat[first:last]))
            )  # fmt: skip

        call = self._enter(Call(number, text, place_of_caller()))
        try:
            self.collective += 1
            if heard := bool(bus.listeners):
                bus.emit(CollectiveStarted(*about, _copy(flat)))
            before = self.hops.before if self.hops is not None and operation != "barrier" else None
            execute(self.links, call, flat, waves, moved if heard else None, before)
            self.links.past.append(call)
        except BaseException as error:
            self._gate.fail(error)
            raise
        self._leave()
        if heard:
            bus.emit(CollectiveFinished(*about))

    def _enter(self, call: Call) -> Call:
        if not self._in(False):
            raise self.links.refusal(call, self.inside)
        self._call = call
        return call

    def _leave(self) -> None:
        self._call = None  # after an error it stays: who asks shall learn where it happened
        self._out()

    def _require_peer(self, peer: int, what: str, *, other: bool = False) -> int:
        peer = _whole(peer, what)
        if not 0 <= peer < self.world_size or (other and peer == self.rank):
            raise ArgumentError(
                f"rank {self.rank} has no such {what}",
                given=f"{what}={peer}, world_size={self.world_size}",
                hint="ranks are 0 to world_size - 1" + (", and none sends to itself" if other else ""),
            )
        return peer


def _copy(flat: Array) -> Array | None:
    """For an event: if a listener wants values, and there are few, and they are numbers."""
    return flat.copy() if bus.values and flat.size <= VALUES and flat.dtype.kind in NUMERIC else None


def _whole(value: object, what: str) -> int:
    """A whole number that an argument must be."""
    if type(value) is int:
        return value
    try:
        return operator.index(value)  # type: ignore[arg-type]  # whether it can is the question
    except TypeError:
        raise ArgumentError(f"the {what} is a whole number", given=f"{what}={shown(value)}", hint="an int") from None


def _message(tag: int, array: Array) -> Call:
    tag = _whole(tag, "tag")
    if not -TAGS <= tag < TAGS:
        raise ArgumentError("there is no such tag", given=f"tag={tag}", hint="tags are -2**63 to 2**63 - 1")
    return Call(tag, f"message with tag {tag}, {_kind(array)}", place_of_caller())


def _kind(array: Any) -> str:
    """In words: "float32[3, 4]"."""
    if type(array) is not np.ndarray and (
        not isinstance(array, np.ndarray) or isinstance(array, np.matrix | np.ma.MaskedArray)
    ):  # these two do not reshape as arrays do, and a mask would be lost
        hint = "np.asarray makes one" + (", without the mask" if isinstance(array, np.ma.MaskedArray) else "")
        raise ArgumentError("ranks exchange NumPy arrays", given=type(array).__name__, hint=hint)
    return _kind_of(array.dtype, array.shape)


@lru_cache(maxsize=1024)  # the name of a dtype is worth 4 us
def _kind_of(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    return f"{dtype}{list(shape)}"


def _flat(array: Array, *, writes: bool = True, adds: bool = False) -> Array:
    """`array` as 1-D contiguous memory, its own or a copy."""
    if array.dtype.hasobject or (adds and array.dtype.kind not in NUMERIC):
        hint = "convert it with astype to float32 or float64"
        raise DTypeError("ranks exchange numbers", given=f"dtype {array.dtype}", hint=hint)
    if writes and not array.flags.writeable:
        raise ArgumentError("the array cannot be written to", given="a read-only array", hint="give a copy of it")
    return (array if array.flags.c_contiguous else array.copy(order="C")).reshape(-1)


def _put_back(flat: Array, array: Array) -> None:
    """Write what `_flat` gave into `array`, if it was a copy."""
    if not array.flags.c_contiguous:
        array[...] = flat.reshape(array.shape)
