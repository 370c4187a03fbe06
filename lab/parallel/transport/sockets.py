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
from lab.parallel.transport.agreement import require_agreement, require_same_past, require_same_wait
from lab.parallel.transport.alarm import Alarm
from lab.parallel.transport.inbox import Inbox
from lab.parallel.transport.turnstile import Turnstile
from lab.parallel.transport.wire import COLLECTIVE, GOODBYE, HEADER, POINT, WAITING, Call, pack

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
PAST = 256
"""Collectives that a rank remembers: who only sends may be ahead of its peers by many."""
ENDING = "the end of the program"
"""The last call of a rank, in words."""

SPINS = 40
"""Looks at a socket before a rank goes to sleep, about 60 us: to be woken takes longer, and costs the sender too. Only
where every rank can have a core."""

Late = Callable[[Call, list[int]], object]
"""Told when a wait is over its time: the call, and the peers waited for. It has the alarm rung, soon."""


def n_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
    """A piece that must come from `peer` into `octets`, or be added to `target`, whose bytes those are."""

    peer: int
    octets: memoryview
    target: Array | None = None
    last: tuple[Any, int] | None = None
    """The caller's name of what is complete with this piece."""
    step: int = -1
    """Of the plan, for messages."""


class Links:
    """The connections of a rank to its peers, and what waits to go out.

    Attributes:
        n_sent: bytes of arrays given to be sent, to compare with a formula.
        gate: who calls goes through it; only `leave` does so itself.
        past: the last collectives, to compare with a piece of them that comes when this rank has no more use for it.
        leaves: whether the program has ended.
        alarm: rings when the group has ended.
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
    ) -> None:
        self.rank, self.generation, self.timeout, self.n_sent = rank, generation, timeout, 0
        self._sockets, self.alarm, self._on_late = sockets, alarm, on_late
        self.gate = Turnstile(rank)
        self.past: deque[Call] = deque(maxlen=PAST)
        self.leaves = False
        self._awaited: tuple[Iterable[int], Iterable[int]] = (), ()
        self._peer_of = {sock.fileno(): peer for peer, sock in sockets.items()}
        self._inbox = {peer: Inbox(peer, generation) for peer in sockets}
        self._outbox: dict[int, deque[memoryview]] = {peer: deque() for peer in sockets}
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
    ) -> None:
        """One step of a collective: send pieces and take pieces, whichever can move, until all have.

        Raises:
            MeshError: a peer is in another call, has ended, or the group has.
            LostRankError: a peer died, or nothing moved for `timeout` seconds.
        """
        self.alarm.check()
        flush = set()
        for peer, octets in sends:
            if not self._post(peer, COLLECTIVE, call, octets):
                flush.add(peer)
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

    def refusal(self, call: Call, inside: str) -> LabError:
        """Why `gate` does not let `call` in: the group has ended, a call failed, or this rank is still in one."""
        return self.alarm.error() if self.alarm.kind else self.gate.refusal(inside or ENDING, str(call))

    def waits_for(self) -> list[int]:
        """The peers without which the call that is inside does not go on; asked from any thread."""
        receives, flush = self._awaited
        return sorted({*receives, *flush})

    def close(self) -> None:
        """Hang up."""
        for sock in self._sockets.values():
            sock.close()

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
        peer, octets, target = item[:3]
        header, sock, take = self._header(COLLECTIVE, call, len(octets)), self._sockets[peer], self._inbox[peer].take
        try:
            for _ in range(self._spins + 1):
                try:
                    return take(sock, header, octets, target)
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
        idle, last, spins = 0.0, -1.0, self._spins
        untold = kind == COLLECTIVE
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
                idle, last, spins = 0.0, -1.0, self._spins
                continue
            if spins:
                spins -= 1
                continue
            now = monotonic()
            idle, last = idle + (min(now - last, GAP) if last >= 0 else 0.0), now
            if untold and idle >= NOTE:
                untold = False
                self._note(call)
            self._awaited = receives, flush
            if idle > self.timeout and kind != GOODBYE:  # a peer may compute for long before its program ends
                self._late(call, self.waits_for())
            ready = self._wait(receives, min(NOTE if untold else 1.0, max(self.timeout - idle, 0.0) + 0.001))
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
        except (BlockingIOError, InterruptedError):
            return moved
        except (OSError, EOFError):
            self._hung_up(peer, call)
        return moved

    def _place(self, inbox: Inbox, kind: int, call: Call, item: Expected) -> None:
        """A header is here: decide where its body goes, or say why it is wrong."""
        header = inbox.header
        if header is None:  # what was foreseen, to the last byte
            inbox.into(item.octets, item.target)
        elif header.kind == WAITING:
            require_same_wait(self.rank, kind, call, self.past, inbox.peer, header)
            inbox.drop()
        elif header.kind == POINT and not (kind == POINT and header.tag == call.number):
            inbox.stash()  # its recv comes later, or never when the program ends
        else:
            if header.kind == COLLECTIVE:
                require_same_past(self.rank, self.past, inbox.peer, header)
            require_agreement(self.rank, kind, call, inbox.peer, header, len(item.octets), item.step)
            inbox.into(item.octets, item.target)

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
