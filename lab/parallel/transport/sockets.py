"""The sockets of one rank: they send and receive in both directions at once, in the rank's own thread, by one `poll`.

Sending never waits for the receiver's program: what the kernel does not take is kept and sent in later waits, so no
order of calls can block two ranks on each other. Receiving reads only what the next call expects, so a peer that is
ahead is simply not read.
"""

from __future__ import annotations

import os
import select
import socket
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import Any, NamedTuple, NoReturn

import numpy as np

from lab.errors import LabError, LostRankError
from lab.events.event import Array
from lab.kernels.cores import n_cores
from lab.parallel.transport.agreement import Past, require_agreement, require_same_past, require_same_wait
from lab.parallel.transport.alarm import Alarm
from lab.parallel.transport.inbox import Inbox
from lab.parallel.transport.region import Region
from lab.parallel.transport.throttle import Brake, Throttle
from lab.parallel.transport.tunnel import Secured
from lab.parallel.transport.turnstile import Turnstile
from lab.parallel.transport.wire import COLLECTIVE, GOODBYE, HEADER, POINT, WAITING, Call, mark_of, pack, unpack

KEPT = 1 << 28
"""Bytes of `send`s that may wait in the queue to a peer; then `send` waits."""
PATIENCE = 0.5
"""Seconds to wait for the scheduler's word when a peer has hung up: it knows the first cause, we see only the last."""
GAP = 2.0
"""A pause between two looks that is longer was ours, not the peer's: a suspended machine is no time-out."""

NOTE = 0.25
"""Seconds after which a rank that waits in a collective tells all others in which one."""
WORD = 5.0
"""Seconds in which the scheduler finds out who is to blame for a wait that was too long."""
ENDING = "the end of the program"
"""The last call of a rank, in words."""

SPINS = 40
"""Looks at a socket before a rank goes to sleep, about 60 us: to be woken takes longer, and costs the sender too. Only
where every rank can have a core."""

Late = Callable[[Call, list[int]], object]
"""Told when a wait is over its time: the call, and the peers waited for. It has the alarm rung, soon."""


_OPEN: weakref.WeakSet[Links] = weakref.WeakSet()


def _hang_up_in_child() -> None:
    for links in list(_OPEN):
        links.close()


if hasattr(os, "register_at_fork"):  # a program that forks must not keep its rank's connections open twice
    os.register_at_fork(after_in_child=_hang_up_in_child)


def octets_of(array: Array) -> memoryview:
    """The bytes of an array (1-D, contiguous), shared."""
    return memoryview(array.view(np.uint8))  # type: ignore[arg-type]  # an array is a buffer


class Expected(NamedTuple):
    """A piece that must come from `peer` into `octets`, or be combined with `target`, whose bytes those are."""

    peer: int
    octets: memoryview
    target: Array | None = None
    last: tuple[Any, int] | None = None
    """The caller's name of what is complete with this piece."""
    step: int = -1
    """Of the plan, for messages."""
    combine: Any = np.add
    """What makes of what is here and what came what is here then."""


class Links:
    """The connections of a rank to its peers, and what waits to go out.

    Attributes:
        n_sent: bytes of arrays given to be sent, to compare with a formula.
        gate: who calls goes through it; only `leave` does so itself.
        past: the last collectives, to compare with a piece of them that comes when this rank has no more use for it.
        leaves: whether the program has ended.
        alarm: rings when the group has ended.
        brake: holds back what goes out; None does not.
        shared: memory through which collectives go; None where they go over the sockets, as all else does.
    """

    def __init__(
        self,
        rank: int,
        sockets: dict[int, socket.socket],
        alarm: Alarm,
        *,
        generation: int,
        timeout: float,
        on_late: Late | None = None,
        throttle: Throttle | None = None,
        shared: Region | None = None,
    ) -> None:
        self.rank, self.generation, self.timeout, self.n_sent = rank, generation, timeout, 0
        self._sockets, self.alarm, self._on_late, self.shared = sockets, alarm, on_late, shared
        self.gate = Turnstile(rank)
        self.brake = Brake(throttle, rank, alarm) if throttle is not None else None
        self.past = Past()
        self.leaves = False
        self._awaited: tuple[Iterable[int], Iterable[int]] = (), ()
        self._peer_of = {sock.fileno(): peer for peer, sock in sockets.items()}
        self._inbox = {peer: Inbox(peer, generation) for peer in sockets}
        self._outbox: dict[int, deque[memoryview]] = {peer: deque() for peer in sockets}
        self._unsent: set[int] = set()
        self._poll = select.poll()
        self._poll.register(alarm.fd, select.POLLIN)
        self._watched: dict[int, int] = {}
        self._head: tuple[int, Call, int, bytes] = (0, Call(0, "", ""), 0, b"")
        self._spins = SPINS if len(sockets) < n_cores() else 0
        _OPEN.add(self)

    def exchange(
        self,
        call: Call,
        sends: Iterable[tuple[int, memoryview]],
        expected: Sequence[Expected],
        done: Callable[[Expected], object] | None = None,
        *,
        flushes: bool = True,
    ) -> None:
        """One step of a collective: send pieces and take pieces, whichever can move, until all have.

        Without `flushes` what has not gone when all has come stays queued, and must not be changed before an exchange
        with it has ended.

        Raises:
            MeshError: a peer is in another call, has ended, or the group has.
            LostRankError: a peer died, or nothing moved for `timeout` seconds.
        """
        self.alarm.check()
        for peer, octets in sends:
            if not self._post(peer, COLLECTIVE, call, octets):
                self._unsent.add(peer)
        flush: set[int] = set()
        if flushes and self._unsent:
            flush = {peer for peer in self._unsent if self._outbox[peer]}
            self._unsent.clear()
        if len(expected) == 1 and not any(self._outbox.values()) and self._take_whole(call, expected[0]):
            if done is not None:
                done(expected[0])
            return
        receives: dict[int, deque[Expected]] = {}
        for item in expected:
            if item.peer in receives:
                receives[item.peer].append(item)
            else:
                receives[item.peer] = deque((item,))
        self._turn(COLLECTIVE, call, receives, flush, done)

    def send(self, call: Call, peer: int, data: Array) -> None:
        """Send `data` (1-D); it may be changed as soon as this returns."""
        self.alarm.check()
        if self.brake is not None:
            self.brake.hold(((peer, data.nbytes),))
        if self._post(peer, POINT, call, octets_of(data)):
            return
        box = self._outbox[peer]
        if sum(map(len, box)) > KEPT:
            self._turn(POINT, call, {}, {peer}, None)
        else:  # only what this send left there: what was there before is a copy already
            box[-1] = memoryview(bytes(box[-1]))

    def receive(self, call: Call, peer: int, target: Array) -> None:
        """Take the message of `peer` with the tag `call.number` into `target`, whatever came before it."""
        self.alarm.check()
        if (kept := self._inbox[peer].unstash(call.number)) is not None:
            header, body = kept
            require_agreement(self.rank, POINT, call, peer, header, target.nbytes)
            target[:] = np.frombuffer(body, target.dtype)
            return
        self._turn(POINT, call, {peer: deque((Expected(peer, octets_of(target)),))}, set(), None)

    def leave(self) -> None:
        """Say goodbye to all and wait until all have: nobody hangs up on a peer that still wants something.

        Raises:
            MeshError: an earlier call failed, or another thread is still in one.
        """
        call, nothing = Call(0, ENDING, ""), memoryview(b"")
        if not self.gate.enter(False):
            raise self.refusal(call, "a call of another thread")
        self.leaves = True
        self.alarm.check()
        flush = {peer for peer in self._sockets if not self._post(peer, GOODBYE, call, nothing)}
        self._turn(GOODBYE, call, {peer: deque((Expected(peer, nothing),)) for peer in self._sockets}, flush, None)
        if self.shared is not None:  # what a peer put there before it said goodbye can be seen now
            for peer in self._sockets:
                if left := self.shared.next_header(peer):
                    self.refuse_cell(GOODBYE, call, peer, left, 0)

    def refusal(self, call: Call, inside: str) -> LabError:
        """Why `gate` does not let `call` in: the group has ended, a call failed, or this rank is still in one."""
        return self.alarm.error() if self.alarm.kind else self.gate.refusal(inside or ENDING, str(call))

    def waits_for(self) -> list[int]:
        """The peers without which the call that is inside does not go on; asked from any thread."""
        receives, flush = self._awaited
        return sorted({*receives, *flush})

    def close(self) -> None:
        """Hang up, and let go of the memory that is shared."""
        for sock in self._sockets.values():
            sock.close()
        if self.shared is not None:
            self.shared.close()

    # --- while a collective goes through shared memory --------------------------------------------------------------

    def refuse_cell(self, kind: int, call: Call, peer: int, header: bytes, n_bytes: int, step: int = -1) -> NoReturn:
        """Say what is wrong with a cell that is not what this rank waits for."""
        found = unpack(header, self.generation, peer=peer)
        require_same_past(self.rank, self.past, peer, found)
        require_agreement(self.rank, kind, call, peer, found, n_bytes, step)
        raise AssertionError(found)  # it was compared before

    def stop_waiting(self) -> None:
        """What was waited for has come."""
        self._awaited = (), ()

    @property
    def transport(self) -> str:
        """How collectives go: "shared", "unix", "tcp" or "tls"; "" where there is nobody else."""
        if self.shared is not None or not self._sockets:
            return "shared" if self._sockets else ""
        if any(isinstance(sock, Secured) for sock in self._sockets.values()):
            return "tls"
        return "unix" if all(sock.family == socket.AF_UNIX for sock in self._sockets.values()) else "tcp"

    @property
    def owes(self) -> bool:
        """Whether something waits to go out over the sockets."""
        return any(self._outbox.values())

    def glance(self, call: Call, is_stuck: Callable[[int], bool]) -> None:
        """Send what waits to go out, and read what peers say who are not in this collective, or not as we are.

        Args:
            is_stuck: whether nothing comes from a peer, or goes to it, if it does nothing any more.

        Raises:
            MeshError, LostRankError: as `exchange`.
        """
        self.alarm.check()
        for peer in self._sockets:
            try:
                if self._outbox[peer]:
                    self._push(peer, call)
                while self._hear(peer, call, is_stuck):
                    pass
            except (BlockingIOError, InterruptedError):
                continue
            except (OSError, EOFError):
                self._hung_up(peer, call)

    def _hear(self, peer: int, call: Call, is_stuck: Callable[[int], bool]) -> bool:
        """Read one message or a part of it; False if the next one is for a later call."""
        inbox, sock = self._inbox[peer], self._sockets[peer]
        if (header := inbox.peek(sock)) is None:
            if inbox.read_body(sock):
                inbox.finish()
            return True
        if header.kind == WAITING:
            require_same_wait(self.rank, COLLECTIVE, call, self.past, peer, header)
            inbox.read_header(sock, b"no header begins so", 0)
            inbox.drop()
            return True
        if header.kind == POINT:
            if inbox.has_room(header.n_bytes):
                inbox.read_header(sock, b"no header begins so", 0)
                inbox.stash()
                return True
        elif header.kind == GOODBYE:
            if is_stuck(peer):
                require_agreement(self.rank, COLLECTIVE, call, peer, header, 0)
        else:
            require_same_past(self.rank, self.past, peer, header)
            if header.number == call.number and header.mark != mark_of(call):
                require_agreement(self.rank, COLLECTIVE, call, peer, header, 0)
        return False

    # --- the loop ---------------------------------------------------------------------------------------------------

    def _header(self, kind: int, call: Call, n_bytes: int) -> bytes:
        """As `pack`; what a rank sends and what it waits for are mostly the same, and so is the next piece."""
        last = self._head
        if last[1] is not call or last[2] != n_bytes or last[0] != kind:
            self._head = last = (kind, call, n_bytes, pack(kind, self.generation, call, n_bytes))
        return last[3]

    def _post(self, peer: int, kind: int, call: Call, octets: memoryview) -> bool:
        """Give a piece to the kernel, or to the outbox what it does not take; whether it took all."""
        header, n_bytes = self._header(kind, call, len(octets)), len(octets)
        self.n_sent += n_bytes
        box = self._outbox[peer]
        if not box:
            try:
                n_taken = self._sockets[peer].sendmsg((header, octets))
            except (BlockingIOError, InterruptedError):
                n_taken = 0
            except OSError:
                self._hung_up(peer, call)
            if n_taken == HEADER + n_bytes:
                return True
            if n_taken >= HEADER:
                box.append(octets[n_taken - HEADER :])
                return False
            header = header[n_taken:]
        box.append(memoryview(header))
        if n_bytes:
            box.append(octets)
        return False

    def _take_whole(self, call: Call, item: Expected) -> bool:
        """The short way for a short piece that comes in one read, as most do; all else is left to the loop."""
        peer, octets, target, _, _, combine = item
        header, sock, take = self._header(COLLECTIVE, call, len(octets)), self._sockets[peer], self._inbox[peer].take
        try:
            for _ in range(self._spins + 1):
                try:
                    return take(sock, header, octets, target, combine)
                except (BlockingIOError, InterruptedError):
                    self.alarm.check()
        except (OSError, EOFError):
            self._hung_up(peer, call)
        return False

    def _turn(
        self,
        kind: int,
        call: Call,
        receives: dict[int, deque[Expected]],
        flush: set[int],
        done: Callable[[Expected], object] | None,
    ) -> None:
        """Move what can move until `receives` have come and what goes to the peers in `flush` is gone."""
        ready: Iterable[int] = self._sockets
        patience, spins = Patience(self, kind, call), self._spins
        while True:
            moved = False
            for peer in ready:
                if self._outbox[peer]:
                    moved |= self._push(peer, call)
                    if not self._outbox[peer]:
                        flush.discard(peer)
                if wanted := receives.get(peer):
                    moved |= self._pull(peer, kind, call, wanted, done)
                    if not wanted:
                        del receives[peer]
            if not receives and not flush:
                return
            self.alarm.check()
            if moved:  # what moved may move again, and asking costs less than a poll
                patience.renew()
                spins = self._spins
                continue
            if spins:
                spins -= 1
                continue
            ready = self._wait(receives, patience.spend(receives, flush))
            self._awaited = (), ()

    def _note(self, call: Call) -> None:
        """Tell in which collective this rank waits: where all wait and nobody sends, no header would tell."""
        for peer, box in self._outbox.items():
            if not box:  # a peer that reads nothing need not be told again and again
                self._post(peer, WAITING, call, memoryview(b""))

    def _wait(self, receives: dict[int, deque[Expected]], seconds: float) -> list[int]:
        """The peers whose sockets can move now."""
        for fd, peer in self._peer_of.items():
            events = (select.POLLIN if peer in receives else 0) | (select.POLLOUT if self._outbox[peer] else 0)
            if events != self._watched.get(fd, 0):
                if events:
                    self._poll.register(fd, events)
                else:
                    self._poll.unregister(fd)
                self._watched[fd] = events
        found = [fd for fd, _ in self._poll.poll(seconds * 1000)]
        if self.alarm.fd in found:
            self.alarm.check()
        return [self._peer_of[fd] for fd in found if fd in self._peer_of]

    def _push(self, peer: int, call: Call) -> bool:
        """Give the kernel what it takes; whether it took anything."""
        box = self._outbox[peer]
        try:
            n_taken = self._sockets[peer].sendmsg([*box] if len(box) < 8 else [box[0], box[1]])
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            self._hung_up(peer, call)
        while n_taken:
            if n_taken >= len(box[0]):
                n_taken -= len(box.popleft())
            else:
                box[0] = box[0][n_taken:]
                break
        return True

    def _pull(
        self, peer: int, kind: int, call: Call, wanted: deque[Expected], done: Callable[[Expected], object] | None
    ) -> bool:
        """Read what is there, up to the end of the piece that is wanted; whether anything was."""
        inbox, sock = self._inbox[peer], self._sockets[peer]
        moved = False
        try:
            while wanted:
                item = wanted[0]
                if not inbox.inside:
                    n_bytes = len(item.octets)
                    if not inbox.read_header(sock, self._header(kind, call, n_bytes), n_bytes):
                        return moved
                    self._place(inbox, kind, call, item)
                    if not inbox.inside:
                        continue
                moved = True
                if not inbox.read_body(sock):
                    return True  # one read, then a look at what wants to go out
                if inbox.finish():
                    wanted.popleft()
                    if done is not None:
                        done(item)
                elif kind == POINT and (kept := inbox.unstash(call.number)) is not None:  # a glance had begun with it
                    require_agreement(self.rank, POINT, call, peer, kept[0], len(item.octets))
                    item.octets[:] = kept[1]
                    wanted.popleft()
        except (BlockingIOError, InterruptedError):
            return moved
        except (OSError, EOFError):
            self._hung_up(peer, call)
        return moved

    def _place(self, inbox: Inbox, kind: int, call: Call, item: Expected) -> None:
        """A header is here: decide where its body goes, or say why it is wrong."""
        header = inbox.header
        if header is None:  # what was foreseen, to the last byte
            inbox.into(item.octets, item.target, item.combine)
        elif header.kind == WAITING:
            require_same_wait(self.rank, kind, call, self.past, inbox.peer, header)
            inbox.drop()
            if kind == POINT and self.shared is not None and (cell := self.shared.next_header(inbox.peer)):
                waits_in = unpack(cell, self.generation, peer=inbox.peer).number
                if waits_in == header.number:  # an older note may be followed by the message
                    self.refuse_cell(POINT, call, inbox.peer, cell, 0)  # over sockets it would have come first
        elif header.kind == POINT and not (kind == POINT and header.tag == call.number):
            inbox.stash()  # its recv comes later, or never when the program ends
        else:
            if header.kind == COLLECTIVE:
                require_same_past(self.rank, self.past, inbox.peer, header)
            require_agreement(self.rank, kind, call, inbox.peer, header, len(item.octets), item.step)
            inbox.into(item.octets, item.target, item.combine)

    # --- when it does not go on -------------------------------------------------------------------------------------

    def _late(self, call: Call, peers: list[int]) -> NoReturn:
        if self._on_late is not None:
            self._on_late(call, peers)
            if self.alarm.wait(WORD):
                self.alarm.check()
        raise LostRankError(
            f"rank {self.rank} waited more than {self.timeout:g} s for ranks {peers}",
            rank=min(peers, default=-1),
            given=f"in {call}",
            hint="a rank may be stopped, in an endless loop, or may not make this call",
        )

    def _hung_up(self, peer: int, call: Call) -> NoReturn:
        """A connection broke. The scheduler knows who was first; only without its word we name the one we see."""
        if self.alarm.wait(PATIENCE):
            self.alarm.check()
        raise LostRankError(
            f"rank {peer} hung up", rank=peer, given=f"rank {self.rank} was in {call}", hint="its worker may have died"
        )


class Patience:
    """How long a rank has waited in a call, and what it does about it: tell the others in which, and give up.

    A pause between two looks counts for GAP at most.
    """

    def __init__(self, links: Links, kind: int, call: Call) -> None:
        self._links, self._kind, self._call = links, kind, call
        self._idle, self._last, self._untold = 0.0, -1.0, kind == COLLECTIVE

    def renew(self) -> None:
        """Something moved."""
        self._idle, self._last = 0.0, -1.0

    def spend(self, receives: Iterable[int], flush: Iterable[int]) -> float:
        """Nothing moved since the last look; the seconds after which another one is due.

        Raises:
            LostRankError: it has been too long.
        """
        links, now = self._links, monotonic()
        self._idle, self._last = self._idle + (min(now - self._last, GAP) if self._last >= 0 else 0.0), now
        if self._untold and self._idle >= NOTE:
            self._untold = False
            links._note(self._call)
        links._awaited = receives, flush
        if self._idle > links.timeout and self._kind != GOODBYE:  # a peer may compute for long before its program ends
            links._late(self._call, links.waits_for())
        return min(NOTE if self._untold else 1.0, max(links.timeout - self._idle, 0.0) + 0.001)
