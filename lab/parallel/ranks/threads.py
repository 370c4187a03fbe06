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

from lab.errors import ArgumentError, LabError, RankError
from lab.events.bus import bus
from lab.events.catalogue import RankFinished
from lab.events.event import ORIGIN, Array, Origin
from lab.parallel.paper.plans import Plan
from lab.parallel.ranks.mailbox import Mailbox
from lab.parallel.ranks.runtime import Comm
from lab.parallel.transport.alarm import Alarm
from lab.parallel.transport.sockets import Links

R = TypeVar("R")


def run_ranks(
    program: Callable[..., R],
    *args: object,
    world_size: int,
    timeout: float = 60.0,
    mailboxes: Sequence[Mailbox] | None = None,
) -> list[R]:
    """Run `program(comm, *args)` on `world_size` ranks that are threads of this process; their results by rank.

    Args:
        mailboxes: one for each rank, through which other threads talk to it while it runs (`comm.mailbox`).

    Raises:
        RankError: the program raised on a rank.
        ArgumentError: mailboxes were given, and not one for each rank.

    Example:
        >>> run_ranks(lambda comm: float(comm.all_reduce_(np.ones(1) * comm.rank)[0]), world_size=4)
        [6.0, 6.0, 6.0, 6.0]
    """
    if mailboxes is not None and len(mailboxes) != world_size:
        raise ArgumentError("each rank has one mailbox", given=f"{len(mailboxes)} for {world_size} ranks",
                            hint="[Mailbox() for _ in range(world_size)]")  # fmt: skip
    alarm = Alarm()
    results: list[R | None] = [None] * world_size
    failures: list[tuple[int, BaseException]] = []
    meshes = _socketpairs(world_size)

    def run(rank: int) -> None:
        ORIGIN.set(Origin(rank, ORIGIN.get().run))
        links, started = Links(rank, meshes[rank], alarm, generation=0, timeout=timeout), time.perf_counter()
        try:
            results[rank] = program(Comm(rank, world_size, links, mailboxes[rank] if mailboxes else None), *args)
            links.leave()
        except BaseException as error:  # noqa: BLE001 -- it is raised again below, in the caller's thread
            failures.append((rank, error))
            state = "stopped" if alarm.kind else "failed"  # what a rank raises after another did is a consequence
            alarm.ring("raised", f"rank {rank} raised {type(error).__name__}", rank=rank)
            if bus.listeners:
                _tell_failure(error, state, time.perf_counter() - started)
        finally:
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


def _tell_failure(error: BaseException, state: str, seconds: float) -> None:
    summary = "".join(traceback.format_exception_only(error)).strip()
    bus.emit(RankFinished(0, state, seconds * 1e3, summary))


def run_local(
    operation: str, algorithm: str | Plan, arrays: Sequence[Array], *, root: int = 0
) -> list[npt.NDArray[Any]]:
    """Run a collective on copies of `arrays`, one per rank, in threads of this process: the oracle for workers.

    Example:
        >>> [x.tolist() for x in run_local("all_reduce", "naive", [np.array([1, 2]), np.array([10, 20])])]
        [[11, 22], [11, 22]]
    """
    copies = [np.array(array) for array in arrays]
    run_ranks(lambda comm: comm.run_(copies[comm.rank], operation, algorithm, root=root), world_size=len(copies))
    return copies


def _socketpairs(world_size: int) -> list[dict[int, socket.socket]]:
    """A full mesh of connected, non-blocking sockets in this process."""
    meshes: list[dict[int, socket.socket]] = [{} for _ in range(world_size)]
    for a, b in itertools.combinations(range(world_size), 2):
        meshes[a][b], meshes[b][a] = socket.socketpair()
        meshes[a][b].setblocking(False)
        meshes[b][a].setblocking(False)
    return meshes
