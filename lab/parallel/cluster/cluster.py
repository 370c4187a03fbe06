"""A cluster of worker processes, and `launch`: the same program on every rank, results by rank.

`Cluster()` starts workers on this machine; with a Client or an address it uses a cluster that is there already.
"""

from __future__ import annotations

import ast
import logging
import multiprocessing
import sys
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lab.checks import whole
from lab.errors import ArgumentError, MeshError
from lab.parallel.cluster import memory
from lab.parallel.cluster.closing import are_up, hushed, told
from lab.parallel.cluster.hands import Hands
from lab.parallel.cluster.interrupts import uninterrupted
from lab.parallel.cluster.launching import Launch, require_running
from lab.parallel.cluster.need import Need
from lab.parallel.transport.throttle import Throttle
from lab.words import shown

if TYPE_CHECKING:
    from distributed import Client

log = logging.getLogger("lab.parallel")


class Cluster:
    """Workers for ranks: started here, or somebody's.

    Args:
        n_workers: how many to start, 4 if not given; only without `client`.
        client: a `distributed.Client` or the address of a scheduler, as "tcp://127.0.0.1:8786".
        spares: how many more to start that stand by: each takes the place of a lost one at once, with all that it needs
            loaded. Without them the place is empty for the seconds in which a process starts.

    Attributes:
        client: the Client that it works through.
        n_started: workers that it started, without spares: the ranks of a launch that names no number; 0 on somebody
            else's.
        hands: kill, stop or slow its workers by hand; those that were started here alone.

    Raises:
        MeshError: the workers cannot be started, there is too little memory, or the scheduler cannot be reached.
    """

    def __init__(
        self, n_workers: int | None = None, client: Client | str | None = None, *, spares: int = 0
    ) -> None:
        self._owned: list[Any] = []
        self._launches: weakref.WeakSet[Launch] = weakref.WeakSet()
        self.hands = Hands(self.processes, self._run_on)
        self.n_started = 0
        spares = whole("spares", spares, least=0, hint="1 takes the place of a lost worker at once")
        if client is None:
            self.n_started = whole("n_workers", 4 if n_workers is None else n_workers, least=1, hint="4 is usual")
            self.client = self._start(self.n_started + spares, spares)
        elif n_workers is not None or spares:
            given = f"n_workers={n_workers}" if n_workers is not None else f"spares={spares}"
            raise ArgumentError("a cluster that is there has the workers that it has", given=given,
                                hint=f"give either {given.partition('=')[0]} or client")  # fmt: skip
        else:
            self.client = self._connect(client)

    def _start(self, n_workers: int, spares: int) -> Client:
        import dask
        import distributed  # noqa: F401 -- loaded before an interrupt would have to wait for it

        require_guard(sys._getframe(2))
        require_a_place_to_start()
        limit = memory.forewarn(n_workers, memory.room())
        # 15 s after a worker was lost, a LocalCluster gives it up if it is away at that moment, though its nanny may be
        # restarting it for the second time. A crash is part of our lessons: the nanny decides, however often.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"})
        return uninterrupted(lambda: self._started(n_workers, spares, limit), undo=self.close)

    def _started(self, n_workers: int, spares: int, limit: int | None) -> Client:
        from distributed import Client, LocalCluster

        from lab.parallel.cluster.dask_side.client import ClientSide

        try:
            local = LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=n_workers, threads_per_worker=1, processes=True, host="127.0.0.1",
                dashboard_address="127.0.0.1:0", worker_dashboard_address=None, memory_limit=limit or "auto",
            )  # fmt: skip
        except (RuntimeError, OSError) as error:
            reason = error.__cause__ or error
            raise MeshError("the workers cannot be started", given=f"{type(reason).__name__}: {reason}"[:200],
                            hint="what the first of them printed says why") from error  # fmt: skip
        self._owned.append(local)
        client = Client(local)  # type: ignore[no-untyped-call]
        self._owned.append(client)
        side = ClientSide(client)
        side.install()  # before the first launch: an interrupt at any time must not reach the workers
        side.spare(spares)
        return client

    def _connect(self, client: Client | str) -> Client:
        from distributed import Client

        if isinstance(client, Client):
            return client
        if not isinstance(client, str):
            raise ArgumentError("a cluster is used through a Client or an address", given=f"client={shown(client)}",
                                hint='for example client="tcp://127.0.0.1:8786"')  # fmt: skip
        try:
            made = Client(client, timeout=10)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            raise MeshError("the scheduler cannot be reached", given=f"{client}: {error}",
                            hint="the address is printed by `dask scheduler`") from error  # fmt: skip
        self._owned.append(made)
        return made

    def start(
        self, program: Callable[..., Any], *args: object, world_size: int | None = None, timeout: float = 60.0,
        time_limit: float | None = None, wait: float = 30.0, transport: str = "auto", throttle: Throttle | None = None,
        keeps: Sequence[str] = (), shelf: str = "", need: Need | None = None,
    ) -> Launch:  # fmt: skip
        """Begin a launch and return at once; `.result()` waits, `.stop()` ends it. Arguments as `launch`.

        Args:
            keeps: for who goes on after a loss: the worker of each rank as before, "" in the place of one that was
                lost. They are waited for, each with its number.
            shelf: what ranks keep under this name from launch to launch is dropped by `forget`, or with the client.
            need: memory that each rank will take: compared with what its worker may, and told if it was too much.
        """
        if world_size is None:  # never fewer in silence: a worker that was lost is waited for
            world_size = self.n_started or None
        launch = Launch(program, args, self.client, world_size=world_size, timeout=timeout, time_limit=time_limit,
                        wait=wait, transport=transport, n_started=self.n_started, throttle=throttle, keeps=keeps,
                        shelf=shelf, need=need)  # fmt: skip
        self._launches.add(launch)
        return launch

    def processes(self) -> dict[str, int]:
        """The process of each worker that was started here and is up, by its address."""
        return {n.worker_address: n.pid for n in self._nannies() if n.pid and n.worker_address}

    def _nannies(self) -> list[Any]:
        return [n for owned in list(self._owned) for n in getattr(owned, "workers", {}).values()]

    def _run_on(self, worker: str) -> str:
        """The run whose rank a worker holds, "" for none."""
        return next((at.of_run for at in self._launches if at.state == "running" and worker in at.workers), "")

    def forget(self, shelf: str) -> None:
        """Have the workers drop what ranks have put on a shelf; a cluster that has gone has dropped it."""
        from lab.parallel.cluster.dask_side.client import ClientSide

        try:
            ClientSide(self.client).forget(shelf)
        except OSError as error:
            log.info("nobody can be told to forget: %s", error)

    def launch(self, program: Callable[..., Any], *args: object, **options: Any) -> list[Any]:
        """Run `program(comm, *args)` on every rank and wait; arguments as `launch`."""
        __tracebackhide__ = True  # in a notebook: what counts is the learner's cell
        running = self.start(program, *args, **options)
        try:
            return running.result()
        except BaseException:
            running.stop()  # an interrupt may come before result() waits
            raise

    def close(self) -> None:
        """Stop what was started here, within some 5 seconds whatever it is at; somebody else's cluster stays."""
        self.hands.let_all_go_on()
        with hushed(), told(are_up(self._nannies())):
            while self._owned:
                self._owned.pop().close()

    def __enter__(self) -> Self:
        require_running(self.client)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Cluster {self.client.scheduler.address if self.client.scheduler else 'closed'}>"


def launch(
    program: Callable[..., Any], *args: object, client: Client | Cluster | str | None = None,
    world_size: int | None = None, timeout: float = 60.0, time_limit: float | None = None, wait: float = 30.0,
    transport: str = "auto", throttle: Throttle | None = None,
) -> list[Any]:  # fmt: skip
    """Run `program(comm, *args)` on every rank, one rank per worker, and return what it returned, by rank.

    Whoever listens here when the ranks get their workers (`lab.record`, `lab.listen`, a view) hears all ranks: with a
    delay of about 0.1 s while they run, complete when this returns, with what was too much counted as dropped. Events
    carry their rank and the run in which the launch was made; their times are in this process's clock (ClockAligned
    says how well). They come in the order of time over all ranks, unless a rank tells them more than 0.5 s late. Events
    of single operations come only to who names their kinds.

    Processes that a rank starts are killed when it ends (on Linux, on workers of one thread that have a nanny).

    Args:
        program: any function that can be sent to workers; what it returns comes back.
        client: a Client, a Cluster or a scheduler's address; without it, workers are started for this launch alone.
        world_size: number of ranks; without it, one on every worker that is there now. On a `Cluster(n)` that is n:
            one that was lost and is not back yet is waited for, as long as `wait`.
        timeout: seconds that a rank may wait in one call while nothing moves, and for which a worker may be silent (5
            at least).
        time_limit: seconds for the whole program; no limit if not given.
        wait: seconds to wait for workers that are busy with other runs or were lost; 0 is refused at once.
        throttle: makes the links between ranks slow, for pictures and measurements; told in the events.
        transport: "shared" memory, "unix" or "tcp" sockets, or "auto": the first of them that is possible. Between the
            workers of a cluster that uses TLS, "tcp" does too.

    Raises:
        RankError: the program raised on a rank; all others were ended.
        LostRankError: a rank died, keeps others waiting in a call of `comm`, or its worker does not answer; all others
            were ended, the cluster goes on. A rank that computes for long and lets nobody wait is let alone.
        MeshError: too few workers, other versions, ranks that make different calls or wait for each other.
        ArgumentError: the program cannot be sent.
        RunError: it took longer than `time_limit`.
    """
    options: dict[str, Any] = {
        "world_size": world_size, "timeout": timeout, "time_limit": time_limit, "wait": wait, "transport": transport,
        "throttle": throttle,
    }  # fmt: skip
    if isinstance(client, Cluster):
        return client.launch(program, *args, **options)
    if client is None and world_size is not None:
        whole("world_size", world_size, least=1, hint="one rank per worker; None starts 4")
    with Cluster(world_size if client is None else None, client) as cluster:
        return cluster.launch(program, *args, **options)


def require_guard(frame: Any) -> None:
    """Refuse to start processes from an unguarded line of a script: each would run the script again.

    Raises:
        MeshError: the call stands at the top level of `__main__`, outside of `if __name__ == "__main__":`.
    """
    while frame is not None and not (
        frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") in {"__main__", "__mp_main__"}
    ):
        frame = frame.f_back
    file = frame.f_globals.get("__file__") if frame is not None else None
    if not file or not Path(file).is_file():  # a notebook, a prompt, `python -c`: nothing is run again
        return
    for statement in ast.parse(Path(file).read_bytes()).body:
        if statement.lineno <= frame.f_lineno <= (statement.end_lineno or 0):
            if isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test):
                return
            raise MeshError("a script must not start workers when it is imported",
                            given=f"{file}:{frame.f_lineno}: {ast.unparse(statement)[:60]}",
                            hint='put it under `if __name__ == "__main__":`')  # fmt: skip


def require_a_place_to_start() -> None:
    """Refuse to start processes where each of them would fail, with a page of its own about it.

    Raises:
        MeshError: in a rank, without a working directory, or in a program that is no file that could be loaded again.
    """
    if multiprocessing.current_process().daemon:
        raise MeshError("a worker cannot start workers", given="a Cluster or a launch inside of a rank",
                        hint="start it in the program that launches, not on its ranks")  # fmt: skip
    try:
        here = Path.cwd()
    except FileNotFoundError as error:
        raise MeshError("workers cannot be started in a directory that is gone", given=error,
                        hint="change to another directory, as by os.chdir") from error  # fmt: skip
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if file is not None and getattr(main, "__spec__", None) is None and not (here / file).exists():
        raise MeshError("workers cannot load this program again", given=file,
                        hint="save it in a file: what comes from standard input can be read once")  # fmt: skip
