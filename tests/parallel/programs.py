"""Rank programs of the tests: in a file of their own, so that workers import them by name."""

import contextlib
import ctypes
import inspect
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from lab.config import STATE
from lab.events import ORIGIN


def data(rank, shape, dtype):
    """A rank's part, the same wherever it is made: small whole numbers, whose sums are exact in any order."""
    return np.random.default_rng(rank).integers(-9, 9, shape).astype(dtype)


def reduces(comm, shape, dtype, algorithm):
    return comm.all_reduce_(data(comm.rank, shape, dtype), algorithm)


def where(comm):
    comm.barrier()
    return comm.rank, os.getpid()


def own_pid():
    return os.getpid()


def surroundings(comm):
    return STATE.get().dtype, ORIGIN.get().rank, ORIGIN.get().run


def raises(comm, rank, kind):
    comm.barrier()
    if comm.rank == rank:
        raise kind("bad luck")
    comm.barrier()


def exits(comm, rank):
    comm.barrier()
    if comm.rank == rank:
        os._exit(3)
    comm.barrier()


def returns_a_lock(comm):
    comm.barrier()
    return threading.Lock() if comm.rank == 1 else 0


def returns_much(comm, n_bytes):
    return bytes(n_bytes if comm.rank == 1 else 1)


def killed_at(comm, rank, phase, n_loops):
    """`rank` is killed in the middle of a call: before the exchange of that number, or when it says goodbye."""
    links = comm.links
    exchange, leave = links.exchange, links.leave
    n_exchanges = 0

    def counting(*args, **options):
        nonlocal n_exchanges
        n_exchanges += 1
        if comm.rank == rank and n_exchanges == phase:
            os.kill(os.getpid(), signal.SIGKILL)
        exchange(*args, **options)

    def leaving():
        if comm.rank == rank and phase == "leave":
            os.kill(os.getpid(), signal.SIGKILL)
        leave()

    links.exchange, links.leave = counting, leaving
    for _ in range(n_loops):
        comm.all_reduce_(np.ones(300_001, np.float32))
    return n_exchanges


class KillsOnLoading:
    """Kills the first process that unpickles it."""

    def __init__(self, marker):
        self.marker = marker

    def __setstate__(self, state):
        self.__dict__ |= state
        try:
            os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


def takes(comm, _):
    comm.barrier()


def stops(comm, rank):
    """`rank` stops itself, all of its threads, before it answers anybody."""
    comm.barrier()
    if comm.rank == rank:
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
    for _ in range(1000):
        comm.barrier()
    comm.all_reduce_(np.ones(3))


def loops_for_ever(comm, rank):
    while comm.rank == rank:
        pass
    comm.barrier()


def waits_for_ever(comm, marker):
    Path(f"{marker}-{comm.rank}").touch()
    comm.recv(np.empty(1), (comm.rank + 1) % comm.world_size)


def counts_in_c(comm, rank):
    """One rank is where no interrupt is heard, and lets no other thread of its process run."""
    if comm.rank == rank:
        sum(range(10**12))


def one_rank_calls_something_else(comm):
    if comm.rank == 1:
        comm.broadcast_(np.ones(4), root=0)  # on rank 1
    else:
        comm.all_reduce_(np.ones(4))  # on rank 0


def other_dtype(comm):
    comm.all_reduce_(np.ones(4, np.float32 if comm.rank else np.float64))  # on rank 0, on rank 1


def one_rank_misses_a_call(comm):
    comm.barrier()
    if comm.rank != 1:
        comm.barrier()


def resources(comm):
    """What this worker's process holds open."""
    comm.barrier()
    held = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            held.append(str(entry.readlink()).split(":", maxsplit=1)[0])
        except FileNotFoundError:  # the folder's own
            continue
    return {
        "eventfd": sum("anon_inode" in kind for kind in held),
        "sockets": held.count("socket"),
        "threads": sorted(thread.name for thread in threading.enumerate() if "lab" in thread.name.lower()),
    }


def forks(comm):
    """A child of a rank ends; the rank's connections live on."""
    comm.barrier()
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    comm.barrier()
    return comm.rank


def listens_until_told(comm):
    heard = []
    while True:
        assert comm.mailbox.wait(60.0)
        for message in comm.mailbox.take():
            if isinstance(message, dict):
                return heard
            heard.append(message)


def echoes(comm, folder):
    """Rank 1 makes a file for each word that it hears, until "end"."""
    n_heard = 0
    while comm.rank == 1:
        assert comm.mailbox.wait(60.0)
        for word in comm.mailbox.take():
            n_heard += 1
            if word == "end":
                return n_heard
            Path(folder, word).touch()
    return None


def _unreadable():
    raise ValueError("unreadable")


class CannotBeRead:
    def __reduce__(self):
        return _unreadable, ()


def reduces_beside(comm, n_times, mine, other):
    """Many times, and from when another launch has begun."""
    Path(mine).touch()
    while not Path(other).exists():
        pass
    for _ in range(n_times):
        comm.all_reduce_(np.ones(1000) * comm.rank)


def segfaults(comm, rank):
    comm.barrier()
    if comm.rank == rank:
        ctypes.string_at(0)
    comm.barrier()


def leaves(comm, rank):
    comm.barrier()
    if comm.rank == rank:
        sys.exit("enough")
    comm.barrier()


def falls(comm, rank):
    comm.barrier()
    if comm.rank == rank:
        _deeper(0)
    comm.barrier()


def _deeper(n):
    return _deeper(n + 1) + 1


def adds_for_ever(comm, n_elements=1 << 18):
    while True:
        comm.all_reduce_(np.zeros(n_elements, np.float32))


def computes_for_ever(comm):
    comm.barrier()
    while True:
        pass


def adds_again_and_again(comm, n_loops):
    """The sum over all loops, exact."""
    total = 0
    for loop in range(n_loops):
        total += int(comm.all_reduce_(np.full(1003, comm.rank + loop, np.int64)).sum())
    return total


def other_shape(comm):
    comm.all_reduce_(np.ones((2, 3) if comm.rank == 1 else (3, 2)))  # on rank 0, on rank 1


def other_order(comm):
    if comm.rank == 1:
        comm.barrier()  # on rank 1
        comm.all_reduce_(np.ones(4))
    else:
        comm.all_reduce_(np.ones(4))  # on rank 0
        comm.barrier()


def lines_of(program, *words):
    """The lines of a program's source that contain each of the words, as it stands in this file."""
    text, first = inspect.getsourcelines(program)
    return [first + next(i for i, line in enumerate(text) if word in line) for word in words]


def open_files(_):
    """How many files the process has open that are not sockets of Dask's own connections, and its threads."""
    n_open, memfds = 0, 0
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            link = str(entry.readlink())
            n_open += not link.startswith(("socket:", "/proc"))
            memfds += "memfd" in link
    return n_open, memfds, threading.active_count()


def spawns(comm):
    """How many sockets a fresh Python that a rank starts has inherited."""
    comm.barrier()
    count = """
import os
links = [os.readlink(f"/proc/self/fd/{n}") for n in range(3, 100) if os.path.islink(f"/proc/self/fd/{n}")]
print(sum("socket" in link for link in links))
"""
    told = subprocess.run([sys.executable, "-c", count], capture_output=True, text=True, check=True).stdout
    comm.barrier()
    return int(told)


def reduces_for(comm, n_loops, seed):
    """The bits after many sums of random numbers."""
    array = np.random.default_rng(seed + comm.rank).normal(size=1003)
    for _ in range(n_loops):
        comm.all_reduce_(array)
        array /= comm.world_size
    return array


def plays(comm, roles):
    """Each rank plays its role, on a line of its own."""
    comm.barrier()
    match roles[comm.rank].split():
        case ["ends"]:
            pass
        case ["loops"]:
            while True:
                threading.Event().wait(0.02)
        case ["stops"]:
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # and not a thread beside, a moment later
        case ["holds"]:  # the interpreter, for ever
            ctypes.PyDLL(None).sleep(1000)
        case ["sums"]:
            comm.all_reduce_(np.ones(3))
        case ["root", root]:
            comm.broadcast_(np.ones(3), root=int(root))
        case ["from", peer]:
            comm.recv(np.ones(3), int(peer))
        case ["computes", seconds]:
            until = time.monotonic() + float(seconds)
            while time.monotonic() < until:
                pass
    return comm.rank


def has_children(comm, folder, how):
    """Starts a process that starts another; both would live for long. Then it returns, raises, or waits for them."""
    code = "import os, subprocess, sys, time; print(os.getpid(), flush=True); time.sleep(600)"
    both = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {code!r}]); {code}"
    child = subprocess.Popen([sys.executable, "-c", both], stdout=subprocess.PIPE, text=True)
    pids = [int(child.stdout.readline()) for _ in range(2)]
    assert set(pids) <= {int(entry.name) for entry in Path("/proc").glob("[0-9]*")}
    Path(folder, str(comm.rank)).write_text(" ".join(map(str, pids)))
    comm.barrier()
    if how == "raises":
        raise ValueError(how)
    if how == "waits":
        child.wait()


def makes_every_call(comm):
    """One of each collective, of a group, and one that was started; what each gave."""
    mine = np.random.default_rng(comm.rank).normal(size=(8, 3)).astype(np.float32)
    handle = comm.start("all_reduce_", mine.copy(), op="mean")
    pair = comm.split(comm.rank % 2)
    made = [
        comm.reduce_(mine.copy(), root=2, op="max"), comm.reduce_scatter(mine[:7]), comm.all_gather(mine),
        comm.scatter(mine if comm.rank == 1 else None, root=1), comm.all_to_all(mine), pair.all_reduce_(mine.copy()),
        handle.wait(),
    ]  # fmt: skip
    gathered = comm.gather(mine, root=3)
    comm.barrier()
    return [*made, mine if gathered is None else gathered]


def starts_calls(comm, n):
    handles = [comm.start("all_reduce_", np.full(5000, float(comm.rank + i))) for i in range(n)]
    return [float(handle.wait()[0]) for handle in handles]


def forgets_a_call(comm):
    comm.start("all_reduce_", np.ones(5))


def dies_in_a_started_call(comm, rank):
    comm.barrier()
    handle = comm.start("all_reduce_", np.ones(5)) if comm.rank != rank else None
    if handle is None:
        os.kill(os.getpid(), signal.SIGKILL)
    handle.wait()
