"""The door between two ranks: a mutual handshake by HMAC in messages of fixed size, and the keeper who holds it.

The one who listens sends a nonce; who comes answers with a nonce, its rank and a proof over both; the listener proves
itself in turn. Nothing is allocated for a stranger, none may stay longer than `PATIENCE`, and the door is closed for
good as soon as all peers are in.
"""

from __future__ import annotations

import hmac
import secrets
import select
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic

from lab.errors import LostRankError, MeshError
from lab.parallel.transport.alarm import Alarm
from lab.parallel.transport.listen import Listener, reach, tune

NONCE, PROOF = 32, 32
WHO = struct.Struct("<ii")  # who comes, whom it wants
ANSWER = NONCE + WHO.size + PROOF
PATIENCE = 2.0
"""Seconds that a stranger may take to prove itself."""
WORD = 0.5
"""Seconds to wait for the scheduler's word on why a peer did not behave."""
MOST = 256
"""Visitors that may stand in the door at once; the oldest leaves when another comes."""


def proof(secret: bytes, role: bytes, nonces: bytes, who: bytes, generation: int) -> bytes:
    """What only a holder of the run's secret can say; nonces of both sides, so that nothing can be replayed.

    Example:
        >>> ours = proof(b"s" * 32, b"c", b"n" * 64, WHO.pack(0, 1), 7)
        >>> len(ours), ours == proof(b"s" * 32, b"c", b"n" * 64, WHO.pack(0, 1), 8)
        (32, False)
    """
    return hmac.digest(secret, b"|".join((b"lab door 1", role, nonces, who, b"%d" % generation)), "sha256")


@dataclass
class _Visitor:
    """A connection that has not proved itself; `due` is how many bytes it still owes us."""

    sock: socket.socket
    until: float
    nonce: bytes
    due: int
    peer: int = -1  # -1: came to us, and we do not know who it is
    since: float = 0.0
    got: bytes = b""
    answered: bool = False


@dataclass
class Doorkeeper:
    """Lets the peers of one generation in, and connects to those that are ours to call: ranks above us.

    Attributes:
        strangers: how many were sent away.
    """

    rank: int
    world_size: int
    secret: bytes = field(repr=False)
    generation: int
    on_stranger: Callable[[str], object] = lambda reason: None
    """Told why somebody was sent away."""
    strangers: int = 0

    def gather(
        self, door: Listener, addresses: Mapping[int, str], alarm: Alarm, timeout: float
    ) -> dict[int, socket.socket]:
        """A socket to every peer, by rank; the door is closed afterwards, whatever happens.

        Raises:
            LostRankError: a peer did not come within `timeout` seconds.
            MeshError: a peer's address is answered by somebody else; or the alarm's reason.
        """
        self._inside: dict[int, socket.socket] = {}
        self._standing: dict[int, _Visitor] = {}
        self._poll = select.poll()
        self._poll.register(door.socket, select.POLLIN)
        self._poll.register(alarm.fd, select.POLLIN)
        self._calls = [peer for peer in addresses if peer > self.rank]
        until = monotonic() + timeout
        try:
            while len(self._inside) < self.world_size - 1:
                alarm.check()
                self._require_time(until)
                self._calls = [peer for peer in self._calls if not self._call(peer, addresses[peer])]
                for fd, _ in self._poll.poll(20 if self._calls else 200):
                    if fd == door.socket.fileno():
                        self._welcome(door.socket)
                    elif fd in self._standing:
                        self._listen_to(self._standing[fd])
                for visitor in [v for v in self._standing.values() if v.peer < 0 and v.until < monotonic()]:
                    self._send_away(visitor, f"proved nothing for {PATIENCE:g} s")
        except BaseException:
            for sock in self._inside.values():
                sock.close()
            if alarm.wait(WORD):  # the scheduler knows the first cause
                alarm.check()
            raise
        finally:
            for visitor in self._standing.values():
                visitor.sock.close()
            door.close()
        return self._inside

    def _require_time(self, until: float) -> None:
        if monotonic() > until:
            missing = sorted(set(range(self.world_size)) - {self.rank} - set(self._inside))
            raise LostRankError(
                f"rank {self.rank} could not connect to its peers in time",
                rank=missing[0],
                given=f"missing: ranks {missing}",
                hint="a worker may be stopped or very busy",
            )

    def _call(self, peer: int, address: str) -> bool:
        try:
            sock = reach(address)
        except BlockingIOError:
            return False
        except OSError as error:
            raise LostRankError(
                f"rank {peer} does not listen",
                rank=peer,
                given=f"{address}: {error}",
                hint="its worker may have died; launch again",
            ) from error
        self._stand(_Visitor(sock, float("inf"), secrets.token_bytes(NONCE), NONCE, peer, monotonic()))
        return True

    def _welcome(self, listening: socket.socket) -> None:
        try:
            sock, _ = listening.accept()
        except OSError:  # it left again
            return
        sock.setblocking(False)
        tune(sock)
        visitor = _Visitor(sock, monotonic() + PATIENCE, secrets.token_bytes(NONCE), ANSWER)
        strangers = [v for v in self._standing.values() if v.peer < 0]
        if len(strangers) >= MOST:
            self._send_away(strangers[0], "stood in the door with too many others")
        self._stand(visitor)
        self._say(visitor, visitor.nonce)

    def _stand(self, visitor: _Visitor) -> None:
        self._standing[visitor.sock.fileno()] = visitor
        self._poll.register(visitor.sock, select.POLLIN)

    def _say(self, visitor: _Visitor, words: bytes) -> None:
        """Tens of bytes into an empty socket: they fit, or the other is no peer of ours."""
        try:
            fits = visitor.sock.send(words) == len(words)
        except OSError:
            fits = False
        if not fits:
            self._parted(visitor, "does not listen")

    def _listen_to(self, visitor: _Visitor) -> None:
        try:
            words = visitor.sock.recv(visitor.due)
        except BlockingIOError:
            return
        except OSError:
            words = b""
        if not words:
            self._parted(visitor, "left without a proof")
            return
        visitor.got, visitor.due = visitor.got + words, visitor.due - len(words)
        if visitor.due == 0:
            if visitor.peer < 0:
                self._judge_caller(visitor)
            elif not visitor.answered:
                self._answer(visitor)
            else:
                self._judge_called(visitor)

    def _answer(self, visitor: _Visitor) -> None:
        """We called; their nonce is here. Prove ourselves, and wait for their proof."""
        who = WHO.pack(self.rank, visitor.peer)
        nonces = visitor.got + visitor.nonce
        visitor.answered, visitor.got, visitor.due = True, nonces, PROOF
        self._say(visitor, visitor.nonce + who + proof(self.secret, b"c", nonces, who, self.generation))

    def _judge_called(self, visitor: _Visitor) -> None:
        nonces, theirs = visitor.got[: 2 * NONCE], visitor.got[2 * NONCE :]
        who = WHO.pack(self.rank, visitor.peer)
        if not hmac.compare_digest(theirs, proof(self.secret, b"s", nonces, who, self.generation)):
            self._send_away(visitor, "gave a wrong proof")
        self._let_in(visitor, visitor.peer)

    def _judge_caller(self, visitor: _Visitor) -> None:
        theirs, who, proved = visitor.got[:NONCE], visitor.got[NONCE:-PROOF], visitor.got[-PROOF:]
        nonces = visitor.nonce + theirs
        peer, wanted = WHO.unpack(who)
        known = hmac.compare_digest(proved, proof(self.secret, b"c", nonces, who, self.generation))
        if not known or wanted != self.rank or not 0 <= peer < self.rank or peer in self._inside:
            self._send_away(visitor, "is no rank that is expected" if known else "gave a wrong proof")
            return
        self._say(visitor, proof(self.secret, b"s", nonces, who, self.generation))
        if visitor.sock.fileno() in self._standing:
            self._let_in(visitor, peer)

    def _let_in(self, visitor: _Visitor, peer: int) -> None:
        self._forget(visitor)
        self._inside[peer] = visitor.sock

    def _parted(self, visitor: _Visitor, reason: str) -> None:
        """They hung up: as strangers do, or as a peer does to whom we were one, since we were stopped too long."""
        if visitor.peer < 0 or monotonic() - visitor.since < PATIENCE:
            self._send_away(visitor, reason)
            return
        self._forget(visitor)
        visitor.sock.close()
        self._calls.append(visitor.peer)

    def _send_away(self, visitor: _Visitor, reason: str) -> None:
        self._forget(visitor)
        visitor.sock.close()
        if visitor.peer >= 0:  # whom we called ourselves must be a member
            raise MeshError(
                f"rank {visitor.peer} did not prove that it belongs to this run",
                given=f"rank {self.rank} called it",
                hint="an older run may still hold its address; launch again",
            )
        self.strangers += 1
        self.on_stranger(reason)

    def _forget(self, visitor: _Visitor) -> None:
        self._poll.unregister(visitor.sock)
        del self._standing[visitor.sock.fileno()]
