"""Ranks that are forked processes with one region, without a cluster: one of them dies or raises in mid collective.

`one_round(seed)` says how long the survivors took to end, and what they raised; it looks at what is left behind.
"""

import itertools
import os
import random
import signal
import socket
import struct
import sys
import time
from pathlib import Path

import numpy as np

from lab.errors import LabError
from lab.kernels.mover import mover
from lab.parallel.ranks.runtime import Comm
from lab.parallel.transport.alarm import Alarm
from lab.parallel.transport.handing import share
from lab.parallel.transport.sockets import Links

LONGEST = 60.0
"""Seconds after which a survivor that has not ended hangs."""
WORD = struct.Struct("<id40s")


def one_round(seed):
    """The survivors' words: (rank, seconds from the death, exception)."""
    luck = random.Random(seed)
    world = luck.choice([2, 3, 4, 5])
    kind = luck.choice(["kill", "raise", "stop"])
    victim, when, delay = luck.randrange(world), luck.randrange(1, 12), luck.random() * 0.004
    algorithm, size = luck.choice(["ring", "naive"]), luck.choice([1, 1000, 300_000, 3_000_000])
    meshes = [{} for _ in range(world)]
    for a, b in itertools.combinations(range(world), 2):
        meshes[a][b], meshes[b][a] = socket.socketpair()
        meshes[a][b].setblocking(False)
        meshes[b][a].setblocking(False)
    news, out = os.pipe()
    pids = []
    for rank in range(world):
        if (pid := os.fork()) == 0:
            os.close(news)
            for sock in itertools.chain.from_iterable(m.values() for r, m in enumerate(meshes) if r != rank):
                sock.close()
            death = (when, delay, kind) if rank == victim else (0, 0.0, "")
            _rank(rank, meshes[rank], death, algorithm, size, out)
        pids.append(pid)
    os.close(out)
    for sock in itertools.chain.from_iterable(mesh.values() for mesh in meshes):
        sock.close()
    words = _words(news, pids, world - 1, pids[victim] if kind == "stop" else 0)
    return (world, kind, victim, algorithm, size), words


def _words(news, pids, n_wanted, stopped):
    words, until = [], time.monotonic() + LONGEST
    os.set_blocking(news, False)
    while len(words) < n_wanted and time.monotonic() < until:
        try:
            data = os.read(news, WORD.size)
        except BlockingIOError:
            time.sleep(0.002)
            continue
        if not data:
            break
        words.append(WORD.unpack(data))
    for pid in pids:
        if len(words) < n_wanted or pid == stopped:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    os.close(news)
    return [(rank, at, name.rstrip(b"\0").decode()) for rank, at, name in words]


def _rank(rank, sockets, death, algorithm, size, out):
    when, delay, kind = death
    alarm, name = Alarm(), "nothing"
    links = Links(rank, sockets, alarm, generation=1, timeout=3.0)
    last = time.monotonic()
    try:
        links.shared, why = share(rank, sockets, alarm, 20.0)
        assert links.shared is not None, why
        comm, x = Comm(rank, len(sockets) + 1, links), np.ones(size, np.float32)
        if when:
            signal.signal(signal.SIGALRM, lambda *_: _die(kind))
        for call in itertools.count():
            if when and call == when:
                signal.setitimer(signal.ITIMER_REAL, max(delay, 1e-5))  # somewhere in what follows
            last = time.monotonic()
            comm.all_reduce_(x, algorithm)
            x[:] = call
    except LabError as error:
        name = type(error).__name__
    except ZeroDivisionError:
        os._exit(0)
    finally:
        links.close()
    left = [line for line in Path("/proc/self/maps").read_text().splitlines() if "lab-ranks" in line]
    os.write(out, WORD.pack(rank, time.monotonic() - last, (name if not left else "a map is left").encode()))
    os._exit(0)


def _die(kind):
    if kind == "raise":
        raise ZeroDivisionError
    os.kill(os.getpid(), signal.SIGKILL if kind == "kill" else signal.SIGSTOP)


def main():
    first, n_rounds = int(sys.argv[1]), int(sys.argv[2])
    mover()
    slowest = {"kill": 0.0, "raise": 0.0, "stop": 0.0}
    for seed in range(first, first + n_rounds):
        about, words = one_round(seed)
        if len(words) != about[0] - 1 or any(name not in {"LostRankError", "MeshError"} for _, _, name in words):
            print(f"round {seed} {about}: {words}")
            sys.exit(1)
        slowest[about[1]] = max(slowest[about[1]], *(seconds for _, seconds, _ in words))
    print(f"{n_rounds} rounds from {first}: slowest survivor {slowest}")


if __name__ == "__main__":
    main()
