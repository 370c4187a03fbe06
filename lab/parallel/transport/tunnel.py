"""TLS for a link, where the cluster uses it: a thread carries what a rank writes to a socket of its own process.

The loop of a rank sends several pieces in one call and reads no further than it has to; an SSL socket can do neither.
So the rank keeps a plain socket whose other end is in the same process, and the thread goes between that and the
connection. It costs two copies and a thread for each link, and is for links between hosts alone.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
import weakref
from contextlib import suppress
from typing import NamedTuple

from lab.errors import MeshError
from lab.parallel.transport.listen import tune

PIECE = 1 << 18
"""Bytes that are carried at once."""
PARTING = 5.0
"""Seconds that the last bytes may take when one side has hung up."""
_AGAIN = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

_OPEN: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def _close_in_child() -> None:
    for sock in list(_OPEN):
        sock.close()


if hasattr(os, "register_at_fork"):  # as the links of a rank: a child must not keep its connections open twice
    os.register_at_fork(after_in_child=_close_in_child)


class Contexts(NamedTuple):
    """How this process proves itself to others and has them prove themselves: as who calls, and as who is called."""

    calls: ssl.SSLContext
    answers: ssl.SSLContext


class Secured(socket.socket):
    """The end of a tunnel that a rank holds: what it writes goes over TLS."""


def secured(sock: socket.socket, peer: int, contexts: Contexts, *, answers: bool, timeout: float) -> Secured:
    """Go on over TLS on a connection that both sides hold, one as who `answers`; `sock` belongs to the tunnel then.

    Raises:
        MeshError: one side does not trust the certificate of the other, or nothing was said for `timeout` seconds.
    """
    sock.settimeout(timeout)
    try:
        tls = (contexts.answers if answers else contexts.calls).wrap_socket(sock, server_side=answers)
    except OSError as error:
        sock.close()
        given = f"{type(error).__name__}: {error}"
        raise MeshError(f"the connection to rank {peer} cannot be made secure", given=given,
                        hint="all workers need certificates of the cluster's one authority") from error  # fmt: skip
    tls.setblocking(False)
    near, far = socket.socketpair()
    for end in (near, far):
        end.setblocking(False)
        tune(end)
    _OPEN.update((tls, far))
    threading.Thread(target=_carry, args=(far, tls), name=f"lab-tls-{peer}", daemon=True).start()
    return Secured(fileno=near.detach())


def _carry(plain: socket.socket, tls: ssl.SSLSocket) -> None:
    """Until one side hangs up; what the other has sent before still arrives."""
    lanes = _Lane(plain, tls), _Lane(tls, plain)
    try:
        while not any(lane.ended for lane in lanes):
            moved = [lane.move() for lane in lanes]
            if not any(moved):
                _wait(lanes)
        for lane in lanes:
            lane.finish()
    except OSError:  # the other end of one of them is gone, and who holds the other will see that
        pass
    finally:
        plain.close()
        tls.close()


class _Lane:
    """One direction: bytes that were read and have not been written."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source, self.target = source, target
        self.held, self.ended = memoryview(b""), False
        self.wants_write = False
        """TLS has to write before it can read on, or the other way about: whoever waits waits for both."""

    def move(self) -> bool:
        """Write what is held, or read and write; whether anything moved."""
        moved = self.wants_write = False
        try:
            if not self.held:
                self.held = memoryview(self.source.recv(PIECE))
                self.ended, moved = not self.held, True
            if self.held:
                self.held, moved = self.held[self.target.send(self.held) :], True
        except _AGAIN as why:
            self.wants_write = isinstance(why, ssl.SSLWantWriteError)
        return moved

    def finish(self) -> None:
        if self.held:
            self.target.settimeout(PARTING)
            self.target.sendall(self.held)


def _wait(lanes: tuple[_Lane, _Lane]) -> None:
    poll, either = select.poll(), any(lane.wants_write for lane in lanes)
    for here, there in (lanes, lanes[::-1]):  # each socket is the source of one lane and the target of the other
        events = (0 if here.held else select.POLLIN) | (select.POLLOUT if there.held else 0)
        is_tls = isinstance(here.source, ssl.SSLSocket)
        poll.register(here.source, events | (select.POLLIN | select.POLLOUT if is_tls and either else 0))
    poll.poll()


def contexts_of(security: object) -> Contexts | None:
    """Those of a `distributed.Security`; None where it has no certificates."""
    with suppress(AttributeError):
        calls = security.get_connection_args("worker").get("ssl_context")  # type: ignore[attr-defined]
        answers = security.get_listen_args("worker").get("ssl_context")  # type: ignore[attr-defined]
        if calls is not None and answers is not None:
            return Contexts(calls, answers)
    return None
