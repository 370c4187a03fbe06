"""Ranks that are threads of this process: a program or a collective runs on them without a worker or a cluster.

They meet over the sockets that ranks on workers use, so what they do is what workers would do.
"""

from __future__ import annotations

import contextvars
import itertools
import socket
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from lab.checks import number, whole
from lab.errors import ArgumentError, LabError, MeshError, RankError
from lab.events.bus import bus
from lab.events.catalogue import RankFinished
from lab.events.event import ORIGIN, Array, Origin
from lab.kernels.mover import mover
from lab.parallel.paper.plans import Plan
from lab.parallel.ranks.mailbox import Mailbox
from lab.parallel.ranks.runtime import Comm
from lab.parallel.transport.alarm import Alarm
from lab.parallel.transport.region import Region, in_this_process
from lab.parallel.transport.sockets import Links
from lab.parallel.transport.throttle import Throttle, require_throttle
from lab.words import one_of, shown

TRANSPORTS = ("sockets", "shared")
MOST_THREADS = 256
"""Ranks that are threads of one process; each pair of them has two sockets, and most systems give fewer."""

R = TypeVar("R")


def run_ranks(
    program: Callable[..., R],
    *args: object,
    world_size: int,
    timeout: float = 60.0,
    mailboxes: Sequence[Mailbox] | None = None,
    throttle: Throttle | None = None,
    transport: str = "sockets",
) -> list[R]:
    """Run `program(comm, *args)` on `world_size` ranks that are threads of this process; their results by rank.

    Args:
        mailboxes: one for each rank, through which other threads talk to it while it runs (`comm.mailbox`).
        throttle: makes the links slow.
        transport: "sockets", or "shared" for collectives through memory, as ranks on the workers of one host do it.

    Raises:
        RankError: the program raised on a rank.
        ArgumentError: a program that is no function, no number of ranks or seconds, or mailboxes that are not one for
            each rank.
        MeshError: more ranks than this process has sockets for.

    Example:
        >>> run_ranks(lambda comm: float(comm.all_reduce_(np.ones(1) * comm.rank)[0]), world_size=4)
        [6.0, 6.0, 6.0, 6.0]
    """
    world_size = _refuse_what_cannot_run(program, world_size, timeout, mailboxes)
    throttle = require_throttle(throttle)
    regions: list[Region] | list[None] = _regions(world_size, transport)
    meshes = _socketpairs(world_size)
    alarm = Alarm()
    results: list[R | None] = [None] * world_size
    failures: list[tuple[int, BaseException]] = []

    def run(rank: int) -> None:
        ORIGIN.set(Origin(rank, ORIGIN.get().run))
        links = Links(rank, meshes[rank], alarm, generation=0, timeout=timeout, throttle=throttle, shared=regions[rank])
        started = time.perf_counter()
        comm = Comm(rank, world_size, links, mailboxes[rank] if mailboxes else None)
        try:
            results[rank] = program(comm, *args)
            comm.leave()
        except BaseException as error:  # noqa: BLE001 -- it is raised again below, in the caller's thread
            failures.append((rank, error))
            state = "stopped" if alarm.kind else "failed"  # what a rank raises after another did is a consequence
            alarm.ring("raised", f"rank {rank} raised {type(error).__name__}", rank=rank)
            if bus.listeners:
                _tell_failure(error, state, time.perf_counter() - started)
        finally:
            comm.close()
            links.close()

    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(run, rank), name=f"lab-rank-{rank}", daemon=True)
        for rank in range(world_size)
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException:
        alarm.ring("stopped", "the launch was stopped")
        for thread in threads:
            thread.join()
        raise
    finally:
        alarm.close()
    if failures:
        rank, error = failures[0]
        if isinstance(error, LabError):
            raise error
        raise RankError(
            f"rank {rank} raised {type(error).__name__}", given=error, rank=rank, hint="its traceback stands above"
        ) from error
    return cast("list[R]", results)


def _regions(world_size: int, transport: object) -> list[Region] | list[None]:
    if not (isinstance(transport, str) and transport in TRANSPORTS):
        raise ArgumentError("threads have no such transport", given=f"transport={shown(transport)}",
                            hint=one_of(transport, TRANSPORTS))  # fmt: skip
    if transport == "sockets":
        return [None] * world_size
    if mover() is None:
        raise MeshError("ranks share no memory without numba, or beside Linux", given="transport='shared'",
                        hint='transport="sockets"')  # fmt: skip
    return in_this_process(world_size)


def _tell_failure(error: BaseException, state: str, seconds: float) -> None:
    summary = "".join(traceback.format_exception_only(error)).strip()
    bus.emit(RankFinished(0, state, seconds * 1e3, summary))


def run_local(
    operation: str, algorithm: str | Plan, arrays: Sequence[Array], *, root: int = 0, transport: str = "sockets"
) -> list[npt.NDArray[Any]]:
    """Run a collective on copies of `arrays`, one per rank, in threads of this process: the oracle for workers.

    Raises:
        MeshError: no arrays, or ranks that do not fit together.
        PlanError: no such plan, or one that cannot run.

    Example:
        >>> [x.tolist() for x in run_local("all_reduce", "naive", [np.array([1, 2]), np.array([10, 20])])]
        [[11, 22], [11, 22]]
    """
    _require_several(arrays)
    copies = [_copied(array, rank) for rank, array in enumerate(arrays)]
    run_ranks(lambda comm: comm.run_(copies[comm.rank], operation, algorithm, root=root), world_size=len(copies),
              transport=transport)  # fmt: skip
    return copies


def _refuse_what_cannot_run(program: object, world_size: object, timeout: object, mailboxes: object) -> int:
    """The number of ranks, if all is as `run_ranks` wants it."""
    if not callable(program):
        raise ArgumentError("a program is a function", given=f"program={shown(program)}",
                            hint="def program(comm): return comm.rank")  # fmt: skip
    n_ranks = whole("world_size", world_size, least=1, hint="for example world_size=4")
    if n_ranks > MOST_THREADS:
        raise _too_many(n_ranks, f"at most {MOST_THREADS} ranks are threads of one process")
    if not (seconds := number("timeout", timeout, hint="in seconds, 60 is usual")) > 0:
        raise ArgumentError("a time-out is a positive number of seconds", given=f"timeout={seconds}",
                            hint="60 is usual")  # fmt: skip
    found = len(mailboxes) if isinstance(mailboxes, list | tuple) else shown(mailboxes)
    if mailboxes is not None and not (isinstance(mailboxes, list | tuple) and found == n_ranks):
        raise ArgumentError("each rank has one mailbox", given=f"{found} for {n_ranks} ranks",
                            hint="[Mailbox() for _ in range(world_size)]")  # fmt: skip
    return n_ranks


def _require_several(arrays: object) -> None:
    if not (isinstance(arrays, list | tuple) or (isinstance(arrays, np.ndarray) and arrays.ndim)) or not len(arrays):
        raise MeshError("each rank brings an array of its own", given=f"arrays={shown(arrays)}",
                        hint="a list with one array for each rank: [np.ones(4)] * 3")  # fmt: skip


def _copied(array: object, rank: int) -> npt.NDArray[Any]:
    try:
        return np.array(array)
    except (TypeError, ValueError) as error:
        raise MeshError("all ranks must bring NumPy arrays", given=f"rank {rank}: {shown(array)}",
                        hint="np.asarray makes one") from error  # fmt: skip


def _socketpairs(world_size: int) -> list[dict[int, socket.socket]]:
    """A full mesh of connected, non-blocking sockets in this process."""
    meshes: list[dict[int, socket.socket]] = [{} for _ in range(world_size)]
    try:
        for a, b in itertools.combinations(range(world_size), 2):
            meshes[a][b], meshes[b][a] = socket.socketpair()
            meshes[a][b].setblocking(False)
            meshes[b][a].setblocking(False)
    except OSError as error:
        for end in itertools.chain.from_iterable(mesh.values() for mesh in meshes):
            end.close()
        raise _too_many(world_size, f"{error.strerror or error}") from error
    return meshes


def _too_many(world_size: int, why: str) -> MeshError:
    return MeshError("so many ranks cannot meet in one process", given=f"world_size={shown(world_size)}: {why}",
                     hint="16 can; or lab.parallel.launch, where each rank has a process")  # fmt: skip
