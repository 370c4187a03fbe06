"""One rank, from its task's start to its outcome: take a seat, meet the others, run the program, leave together.

Nothing here knows Dask: a `Control` carries the few words that must go through the scheduler.
"""

from __future__ import annotations

import contextvars
import logging
import os
import socket
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from lab.config import STATE
from lab.errors import LostRankError, MeshError
from lab.events.bus import bus
from lab.events.catalogue import RankFinished, RankStarted, StrangerRefused
from lab.events.event import ORIGIN, Origin
from lab.kernels.cores import n_cores
from lab.kernels.mover import mover
from lab.parallel.cluster.children import Children
from lab.parallel.cluster.preparing import load, prepare
from lab.parallel.cluster.seats import Seat, Seats
from lab.parallel.news.relay import FOREVER_NS, Parcel, Relay, Watch, this_process
from lab.parallel.paper.calling import last_own
from lab.parallel.ranks.hearing import WayHome
from lab.parallel.ranks.runtime import Comm
from lab.parallel.transport.door import Doorkeeper
from lab.parallel.transport.handing import share
from lab.parallel.transport.listen import Listener
from lab.parallel.transport.region import Region
from lab.parallel.transport.sockets import Links
from lab.parallel.transport.throttle import Throttle
from lab.parallel.transport.tunnel import Contexts, secured
from lab.words import kind_of

LOG = logging.getLogger("lab.parallel")
MEETING = 30.0
"""Seconds that the ranks have to come together, program loading included."""
RESULT_LIMIT = 64 << 20
"""Bytes of one rank's result; more belongs in files, or stays on the workers."""


class Control(Protocol):
    """What a rank asks of its worker and of the scheduler."""

    seats: Seats
    address: str
    host: str
    alone: bool
    """Whether nothing but one rank at a time is at work in this process."""
    contexts: Contexts | None
    """For connections over TLS, where the cluster uses it."""

    def meet(self, run: str, rank: int, address: str, seat: Seat, timeout: float) -> dict[int, str]:
        """Say where this rank listens, and learn where all do."""

    def report(self, run: str, rank: int, kind: str, why: str, about: int) -> None:
        """This rank ends the run; does not wait."""

    def late(self, run: str, rank: int, call: str, peers: list[int]) -> None:
        """This rank waited too long: find out who is to blame, and end the run."""

    def post(self, run: str, rank: int, parcel: Parcel) -> bool:
        """Send a parcel of events home, and say whether there was room; waits for the answer."""

    def tell(self, run: str, rank: int, word: bytes) -> None:
        """Send a pickled word home, in order; does not wait."""

    def ended(self, run: str, rank: int) -> None:
        """This rank's thread is done; does not wait."""


@dataclass(frozen=True)
class Ticket:
    """What a rank is told at the start; the secret is not shown in any text."""

    run: str
    """The lease: unique for each launch."""
    origin: Origin
    """What its events carry: its rank, and the run that the launch is part of."""
    watch: Watch | None
    """What the launcher wants to hear."""
    generation: int
    rank: int
    world_size: int
    transport: str
    timeout: float
    throttle: Throttle | None
    payload: bytes = field(repr=False)
    """Pickled: program, args, State."""
    secret: bytes = field(repr=False)


@dataclass(frozen=True)
class Outcome:
    """How a rank ended: "finished" with its pickled value, "failed", or "stopped" because of others."""

    rank: int
    state: str
    value: bytes = b""
    error: bytes = b""
    """The exception, pickled; empty if it cannot travel."""
    summary: str = ""
    frames: tuple[tuple[str, int, str, str], ...] = ()
    """File, line number, function and text of each frame of the program; a notebook's text is known at home only."""
    place: tuple[str, int] | None = None
    """File and line number of the innermost frame in the user's own code."""
    n_parcels: int = 0
    """Parcels of events that are on their way home."""
    n_events: int = 0
    """Events that it has had, whether they found a way or not."""


def run_rank(ticket: Ticket, control: Control) -> Outcome:
    """Run one rank in this thread; never raises what the program raised."""
    seat = control.seats.take(ticket.run, ticket.rank)
    if seat is None:
        return Outcome(ticket.rank, "stopped", summary="the run was over before this rank began")
    children = seat.children = Children() if control.alone else None
    try:
        return contextvars.copy_context().run(_told, ticket, control, seat)
    finally:
        if children is not None:
            children.end()
        control.seats.leave(ticket.run)
        control.ended(ticket.run, ticket.rank)


def _told(ticket: Ticket, control: Control, seat: Seat) -> Outcome:
    """Run the rank, and have its events sent to the launcher if somebody listens there."""
    ORIGIN.set(ticket.origin)
    watch = ticket.watch
    if watch is None:
        return _run(ticket, control, seat)
    if watch.process == this_process():  # its events are on the launcher's bus already: nobody has to wait for it
        with suppress(OSError):
            control.post(ticket.run, ticket.rank, Parcel(FOREVER_NS, 0, 0, b""))
        return _run(ticket, control, seat)
    relay = Relay(watch, ticket.origin, lambda parcel: control.post(ticket.run, ticket.rank, parcel))
    relay.start()
    try:
        outcome = _run(ticket, control, seat)
    finally:
        relay.close()
    return replace(outcome, n_parcels=relay.n_parcels, n_events=relay.n_events)


def _run(ticket: Ticket, control: Control, seat: Seat) -> Outcome:
    outcome, started = Outcome(ticket.rank, "stopped"), time.perf_counter()
    with ExitStack() as stack:
        try:
            program, args, state = load(ticket.payload)
            STATE.set(state)
            prepare(program)
            comm = _connect(ticket, control, seat, stack)
            stack.callback(comm.close)
            seat.comm = comm
            if bus.listeners:
                bus.emit(RankStarted(ticket.generation, ticket.world_size, control.address, os.getpid(), n_cores()))
            value = _result(_call(program, comm, args, seat), ticket.rank)
            comm.leave()
            outcome = Outcome(ticket.rank, "finished", value)
        except BaseException as error:  # noqa: BLE001 -- it is raised again where the launch was called
            outcome = _failed(ticket, control, seat, error)
        finally:
            if bus.listeners:
                elapsed_ms = (time.perf_counter() - started) * 1e3
                bus.emit(RankFinished(ticket.generation, outcome.state, elapsed_ms, outcome.summary))
    return outcome


def _result(value: object, rank: int) -> bytes:
    """What a program returned, as it is sent home."""
    import cloudpickle

    try:
        pickled = bytes(cloudpickle.dumps(value))
    except Exception as error:
        raise MeshError(
            f"the result of rank {rank} cannot be sent home",
            given=f"{kind_of(value)}: {type(error).__name__}: {error}",
            hint="return arrays, numbers, text and containers of them",
        ) from error
    if len(pickled) > RESULT_LIMIT:
        raise MeshError(f"the result of rank {rank} is too large to be sent home",
                        given=f"{len(pickled) / 2**20:.0f} MiB of at most {RESULT_LIMIT >> 20}",
                        hint="return less, from one rank only, or write it to a file")  # fmt: skip
    return pickled


def _connect(ticket: Ticket, control: Control, seat: Seat, stack: ExitStack) -> Comm:
    sockets: dict[int, socket.socket] = {}
    if may_share := ticket.transport in {"auto", "shared"} and ticket.world_size > 1 and ticket.throttle is None:
        mover()  # all ranks load it at once, before they wait for each other
    with Listener("tcp" if ticket.transport == "tcp" else "unix", control.host) as door:
        addresses = control.meet(ticket.run, ticket.rank, door.address, seat, MEETING)
        keeper = Doorkeeper(ticket.rank, ticket.world_size, ticket.secret, ticket.generation, _refused)
        sockets = keeper.gather(door, addresses, seat.alarm, MEETING)
    if ticket.transport == "tcp" and control.contexts is not None:
        sockets = _secured(sockets, control.contexts, ticket.rank)
    links = Links(ticket.rank, sockets, seat.alarm, generation=ticket.generation, timeout=ticket.timeout,
                  throttle=ticket.throttle,
                  on_late=lambda call, peers: control.late(ticket.run, ticket.rank, str(call), peers))  # fmt: skip
    stack.callback(links.close)
    if may_share:
        links.shared = _shared(ticket, sockets, seat)
    home = WayHome(lambda word: control.tell(ticket.run, ticket.rank, word))
    return Comm(ticket.rank, ticket.world_size, links, seat.mailbox, home)


def _secured(sockets: dict[int, socket.socket], contexts: Contexts, rank: int) -> dict[int, socket.socket]:
    """The same connections over TLS; ranks below called us. By rank: so no two wait for each other."""
    made: dict[int, socket.socket] = {}
    try:
        for peer in sorted(sockets):
            made[peer] = secured(sockets[peer], peer, contexts, answers=peer < rank, timeout=MEETING)
    except BaseException:
        for sock in (*sockets.values(), *made.values()):
            sock.close()
        raise
    return made


def _shared(ticket: Ticket, sockets: dict[int, socket.socket], seat: Seat) -> Region | None:
    """The memory that the ranks of this launch share; None where they cannot, and need not."""
    region, why = share(ticket.rank, sockets, seat.alarm, MEETING)
    if region is None and ticket.transport == "shared":
        raise MeshError("the ranks of this launch cannot share memory", given=why,
                        hint='transport="auto" takes sockets then')  # fmt: skip
    if region is None and ticket.rank == 0:
        LOG.warning("ranks meet over sockets, which are slower than shared memory: %s", why)
    return region


def _refused(reason: str) -> None:
    if bus.listeners:
        bus.emit(StrangerRefused(reason))


def _call(program: Callable[..., Any], comm: Comm, args: tuple[Any, ...], seat: Seat) -> Any:
    """Run the program so that it can be interrupted while it runs, and not a moment longer."""
    seat.program_begins(threading.get_ident())
    try:
        return program(comm, *args)
    finally:
        seat.program_ends()


def _failed(ticket: Ticket, control: Control, seat: Seat, error: BaseException) -> Outcome:
    import cloudpickle

    here = str(Path(__file__).parents[1])
    frames = tuple(
        (frame.filename, frame.lineno or 0, frame.name, frame.line or "")
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(here)  # the program's frames alone
    )
    summary = "".join(traceback.format_exception_only(error)).strip()
    if seat.alarm.kind:  # the run had ended; what this rank raised is a consequence
        return Outcome(ticket.rank, "stopped", summary=summary)
    if isinstance(error, LostRankError):
        control.report(ticket.run, ticket.rank, "lost", error.problem, error.rank)
    else:
        why = f"rank {ticket.rank} raised {type(error).__name__}"
        control.report(ticket.run, ticket.rank, "raised", why, ticket.rank)
    try:
        travels = cloudpickle.dumps(error)
        _ = cloudpickle.loads(travels)
    except Exception:  # noqa: BLE001 -- an exception that cannot be pickled travels as its text
        travels = b""
    return Outcome(ticket.rank, "failed", error=travels, summary=summary, frames=frames,
                   place=last_own((file, line) for file, line, _, _ in frames))  # fmt: skip
