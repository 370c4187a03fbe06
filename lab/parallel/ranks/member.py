"""What all calls of a rank have in common: who it is in which group, whose turn it is, and how a collective is run.

All Comms of one rank, of the whole launch and of its groups, go over the same connections; a Desk lets one call at a
time through, and keeps those that were started in their order.
"""

from __future__ import annotations

from collections import Counter
from threading import get_ident
from time import perf_counter_ns
from typing import Any, TypeVar

import numpy.typing as npt

from lab.errors import ArgumentError
from lab.events.bus import Row, bus
from lab.events.catalogue import ChunkMoved, CollectiveFinished, CollectiveStarted
from lab.events.event import ORIGIN, Array
from lab.parallel.paper.calling import name_of
from lab.parallel.paper.plans import Plan, chunks_of, plan_of, plan_steps
from lab.parallel.ranks.again import Again
from lab.parallel.ranks.execute import Hop, Waves, execute, waves_of
from lab.parallel.ranks.groups import Group, all_ranks
from lab.parallel.ranks.handles import Handle, Job, Lane
from lab.parallel.ranks.hearing import Told
from lab.parallel.ranks.hops import Hops
from lab.parallel.ranks.mailbox import Mailbox
from lab.parallel.ranks.operands import flat_of, kind_of_array, put_back, value_of, whole_number
from lab.parallel.ranks.pace import Pace
from lab.parallel.transport.sockets import Links
from lab.parallel.transport.wire import Call, place_of_caller
from lab.words import shown

CONTROL = 1024
"""Entries of what ranks `agree` on, at most."""
TAGS = 1 << 63
"""Tags are -TAGS to TAGS - 1: what a header has room for."""

AnyArray = TypeVar("AnyArray", bound=npt.NDArray[Any])
R = TypeVar("R")


class Desk:
    """What the Comms of one rank share.

    Attributes:
        call: that is inside, None when the rank computes.
        lane: calls that were started, None before the first.
        made: how often each group was made.
    """

    def __init__(self, links: Links) -> None:
        self.links = links
        self.call: Call | None = None
        self.lane: Lane | None = None
        self.made: Counter[tuple[str, tuple[int, ...]]] = Counter()
        self._in, self._out = links.gate.enter, links.gate.leave

    def await_turn(self) -> None:
        """Let those calls go first that were started before.

        Raises:
            MeshError, LostRankError: one of them failed, and nobody has been told yet.
        """
        if self.lane is not None and self.lane.thread != get_ident():
            self.lane.drain()

    def enter(self, call: Call) -> None:
        """The call goes in."""
        if not self._in(False):
            raise self.links.refusal(call, str(self.call or ""))
        self.call = call

    def leave(self) -> None:
        """It has ended well; after an error `call` stays: who asks shall learn where it happened."""
        self.call = None
        self._out()

    def start(self, job: Job[R]) -> Handle[R]:
        """Put it behind those that were started before."""
        if self.lane is None:
            self.lane = Lane(self.links.rank, self.links.alarm)
        return self.lane.start(job)

    def require_free(self, array: Array) -> None:
        """Refuse an array that a call under way writes to."""
        if self.lane is not None:
            self.lane.require_free(array)


class Member:
    """One rank among those of a launch or of a group, with what it says to single ones of them.

    Attributes:
        rank: 0 to world_size - 1.
        world_size: how many ranks there are.
        ranks: their numbers in the launch.
        name: of the group, "" for all.
        collective: how many collectives this rank has entered, with these ranks.
        mailbox: what whoever launched the program says to this rank (`Launch.say`).
        home: where this rank puts what it tells whoever launched it, while its program runs (`Launch.hear`).
        hops: holds this rank before each step of its collectives; None does not, and costs nothing. Those of groups
            are not held.
        pace: which collectives are told where they come fast; None tells all of them.
    """

    def __init__(
        self, rank: int, world_size: int, links: Links, mailbox: Mailbox | None = None, home: Told | None = None,
        *, group: Group | None = None, desk: Desk | None = None,
    ) -> None:  # fmt: skip
        self.rank, self.world_size, self.links = rank, world_size, links
        self.mailbox: Mailbox = mailbox or Mailbox()
        self.home: Told = home or Mailbox()
        self._group, self._desk = group or all_ranks(world_size), desk or Desk(links)
        self.ranks, self.name, self._of = self._group.ranks, self._group.name, self._group.words
        self.collective = 0
        self.hops: Hops | None = None
        self.pace: Pace | None = Pace()
        self._members = self.ranks if self.name else ()
        self._met: dict[tuple[Plan, int], Waves] = {}
        self._again = Again(self)

    @property
    def inside(self) -> str:
        """The call that this rank is in, "" when it computes."""
        return str(self._desk.call or "")

    def agree(self, words: AnyArray) -> AnyArray:
        """Sum a few numbers over all ranks, in place, and record nothing: control, such as "has anybody a nan?".

        Shapes:
            words: any shape of at most 1,024 entries, equal on all ranks; the result is `words` itself, the same bits
                on every rank.
        Raises:
            ArgumentError: it is too large to be control.
            MeshError, LostRankError: as `all_reduce_`.
        Example:
            >>> import numpy as np
            >>> from lab.parallel import run_ranks
            >>> run_ranks(lambda comm: comm.agree(np.array([comm.rank, 1])).tolist(), world_size=3)
            [[3, 3], [3, 3], [3, 3]]
        """
        kind = kind_of_array(words)
        if words.size > CONTROL:
            raise ArgumentError("ranks agree on a few numbers", given=kind, hint="all_reduce_ sums arrays")
        self._desk.require_free(words)
        flat = flat_of(words, adds=True)
        self._silently(f"agreement {kind}", place_of_caller(), flat, "all_reduce", "naive")
        put_back(flat, words)
        return words

    def send(self, array: Array, peer: int, tag: int = 0) -> None:
        """Send a copy of `array` to `peer`, which receives it with the same tag, now or later; does not wait for it.

        A message that `peer` never receives is dropped at the end of its program, without an error.

        Shapes:
            array: any shape and any dtype without objects.
        Args:
            tag: -2**63 to 2**63 - 1; messages with equal tags arrive in the order in which they were sent. Members of a
                group receive with the Comm of the group what was sent with it.
        Raises:
            ArgumentError: the peer does not exist or is this rank; the tag is no whole number in its range.
        """
        peer = self.ranks[self._require_peer(peer, "peer", other=True)]
        call, flat = self._message(tag, array), flat_of(array, writes=False)
        self._desk.enter(call)
        try:
            self.links.send(call, peer, flat)
        except BaseException as error:
            self.links.gate.fail(error)
            raise
        self._desk.leave()

    def recv(self, array: AnyArray, peer: int, tag: int = 0) -> AnyArray:
        """Receive into `array` what `peer` sent with this tag; messages with other tags wait for their `recv`.

        Shapes:
            array: shape and dtype as sent; the result is `array` itself.
        Raises:
            MeshError: what was sent has another shape or dtype, or the peer has ended.
            LostRankError: the peer died, or nothing came for the time-out of the launch.
        """
        peer = self.ranks[self._require_peer(peer, "peer", other=True)]
        call, flat = self._message(tag, array), flat_of(array)
        self._desk.enter(call)
        try:
            self.links.receive(call, peer, flat)
        except BaseException as error:
            self.links.gate.fail(error)
            raise
        self._desk.leave()
        put_back(flat, array)
        return array

    def leave(self) -> None:
        """The program has ended: all that was started has been waited for, and all ranks say goodbye to each other.

        Raises:
            MeshError: something was started and not waited for; an earlier call failed.
        """
        if self._desk.lane is not None:
            self._desk.lane.finish()
        self.links.leave()

    def close(self) -> None:
        """End what is under way, however the program ended."""
        if self._desk.lane is not None:
            self._desk.lane.close()

    # --- how a collective is run --------------------------------------------------------------------------------------

    def _plan(self, operation: str, algorithm: str | Plan) -> tuple[Plan, str]:
        """The plan and its name."""
        if not (isinstance(algorithm, str) or callable(algorithm)):
            raise ArgumentError("an algorithm is a name or a plan", given=f"algorithm={shown(algorithm)}",
                                hint='"ring" or "naive", or a generator function')  # fmt: skip
        plan = plan_of(operation, algorithm)
        return plan, algorithm if isinstance(algorithm, str) else name_of(plan)

    def _waves(self, plan: Plan, root: int = 0) -> Waves:
        if (known := self._met.get((plan, root))) is None:
            n = self.world_size
            known = waves_of(plan, self.rank, n, chunks_of(plan, n), root, self._members)
            self._met[plan, root] = known
        return known

    def _collective(
        self, operation: str, algorithm: str, text: str, place: str, flat: Array, plan: Plan, *, root: int = 0,
        combine: str = "sum", held: bool = True,
    ) -> None:  # fmt: skip
        """Run a plan on `flat`, recorded, and `held` before each step if there is something that holds."""
        self._desk.await_turn()
        waves, links = self._waves(plan, root), self.links
        number, me, n_chunks = self._group.first + self.collective, self.ranks[self.rank], waves.n_chunks
        about = (number, operation, algorithm, flat.nbytes, n_chunks, self.world_size)

        def moved(hop: Hop, n_bytes: int) -> None:
            first, last = (len(flat) * chunk // n_chunks for chunk in (hop.start, hop.stop))
            bus.emit(
                ChunkMoved(number, hop.step, hop.peer, me, hop.start, hop.stop, hop.reduce, n_bytes,
                           value_of(flat[first:last]), group=self.name)
            )  # fmt: skip

        def later(time_ns: int, hop: Hop, n_bytes: int) -> None:
            bus.append(Row(ChunkMoved, time_ns, ORIGIN.get(), (number, hop.step, hop.peer, me, hop.start, hop.stop,
                                                               hop.reduce, n_bytes, None, self.name)))  # fmt: skip

        before = None
        call = Call(number, text + self._of, place)
        self._desk.enter(call)
        try:
            heard = self.is_told(waves.n_events)
            self.collective += 1
            if self.hops is not None and held:
                self.hops.collective(number, operation, algorithm, plan_steps(plan, self.world_size, root))
                before = self.hops.before
            if heard:
                slowed = str(links.brake.throttle) if links.brake is not None else ""
                bus.emit(CollectiveStarted(*about, value_of(flat), group=self.name, throttle=slowed,
                                           transport=links.transport))  # fmt: skip
            is_late = heard and before is None and not (bus.prompt or bus.values)
            bus.late_ns = perf_counter_ns() if is_late else 0
            execute(links, call, flat, waves, moved if heard else None, before, combine, later if is_late else None)
            links.past.append(call)
        except BaseException as error:
            links.gate.fail(error)
            raise
        finally:
            bus.late_ns = 0
        self._desk.leave()
        if heard:
            bus.emit(CollectiveFinished(*about, group=self.name))

    def is_told(self, n_events: int) -> bool:
        """Whether the next collective shall be told, which would be so many events; if not, they are counted."""
        if not bus.listeners:
            return False
        if self.pace is None or bus.prompt or self.pace.tells(self.collective, n_events, values=bus.values):
            return True
        bus.lose(n_events)
        return False

    def _silently(self, text: str, place: str, flat: Array, operation: str, algorithm: str, root: int = 0) -> None:
        """Run a plan on a little `flat` and record nothing."""
        self._desk.await_turn()
        call = Call(self._group.first + self.collective, text + self._of, place)
        waves = self._waves(plan_of(operation, algorithm), root)
        self._desk.enter(call)
        try:
            self.collective += 1
            execute(self.links, call, flat, waves)
            self.links.past.append(call)
        except BaseException as error:
            self.links.gate.fail(error)
            raise
        self._desk.leave()

    def _require_peer(self, peer: int, what: str, *, other: bool = False) -> int:
        peer = whole_number(peer, what)
        if not 0 <= peer < self.world_size or (other and peer == self.rank):
            raise ArgumentError(
                f"rank {self.rank} has no such {what}",
                given=f"{what}={peer}, world_size={self.world_size}{self._of}",
                hint="ranks are 0 to world_size - 1" + (", and none sends to itself" if other else ""),
            )
        return peer

    def _message(self, tag: int, array: Array) -> Call:
        tag = whole_number(tag, "tag")
        if not -TAGS <= tag < TAGS:
            raise ArgumentError("there is no such tag", given=f"tag={tag}", hint="tags are -2**63 to 2**63 - 1")
        text = f"message with tag {tag}, {kind_of_array(array)}{self._of}"
        self._desk.require_free(array)
        self._desk.await_turn()
        return Call(tag, text, place_of_caller())
