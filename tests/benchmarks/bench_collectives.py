"""All-reduce of float32 from 4 KiB to 64 MiB on 2 and 4 Dask workers, and how fast a cluster starts and a launch fails.

Beside our shared memory and our sockets: gloo where torch is installed, MPI where mpi4py and mpiexec are, and a plain
copy of the buffer as the floor.
All contestants live at once, in processes of their own, and take turns block by block: a busy machine hits
all.
On virtual machines gloo's small sizes measure how an idle core wakes up; compare small sizes with MPI.
"""

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from lab import fit
from lab.data import Dataset, digits
from lab.errors import LostRankError
from lab.nn import mlp
from lab.parallel import DataParallel
from lab.parallel.cluster.cluster import Cluster

SIZES = [4 << 10 << 2 * i for i in range(8)]
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "11"))
WAYS = ("shared", "unix", "tcp")
BLOCK = 0.02
"""Seconds of a block at half a GB/s."""


def inner(n_bytes):
    return max(1, min(100, int(BLOCK / max(40e-6, n_bytes / 0.5e9))))


# --- in the processes of the contestants ------------------------------------------------------------------------------


def obey(place, rank, barrier, all_reduce):
    """Run one block for each line that comes, as long as lines come; between them the process sleeps."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(place)
        with sock.makefile("rw") as orders:
            print(rank, file=orders, flush=True)
            for line in orders:
                n_bytes = int(line)
                buffer = np.zeros(n_bytes // 4, np.float32)
                barrier()
                all_reduce(buffer)
                barrier()
                start = perf_counter()
                for _ in range(inner(n_bytes)):
                    all_reduce(buffer)
                print((perf_counter() - start) / inner(n_bytes), file=orders, flush=True)


def require_sum(rank, world_size, all_reduce):
    for size in (1, 1003, 1 << 20):
        base = (np.arange(size) % 251).astype(np.float32)
        buffer = base + np.float32(rank)
        all_reduce(buffer)
        assert np.array_equal(buffer, base * world_size + np.float32(world_size * (world_size - 1) // 2))


def ours(comm, place, algorithm):
    require_sum(comm.rank, comm.world_size, lambda x: comm.all_reduce_(x, algorithm))
    obey(place, comm.rank, comm.barrier, lambda x: comm.all_reduce_(x, algorithm))


def gloo(place, rank, world_size):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{place}.gloo", rank=rank, world_size=world_size)

    def all_reduce(x):
        dist.all_reduce(torch.from_numpy(x))

    require_sum(rank, world_size, all_reduce)
    obey(place, rank, dist.barrier, all_reduce)
    dist.destroy_process_group()


def mpi(place, _rank, _world_size):
    from mpi4py import MPI

    world = MPI.COMM_WORLD

    def all_reduce(x):
        world.Allreduce(MPI.IN_PLACE, x)

    require_sum(world.rank, world.size, all_reduce)
    obey(place, world.rank, world.Barrier, all_reduce)


def memcpy(place, rank, _world_size):
    target = np.empty(SIZES[-1] // 4, np.float32)
    obey(place, rank, lambda: None, lambda x: np.copyto(target[: len(x)], x))


ROLES = {"gloo": gloo, "mpi": mpi, "memcpy": memcpy}


# --- at home ----------------------------------------------------------------------------------------------------------


class Contestant:
    """Ranks that wait for orders, however they were started."""

    def __init__(self, name, world_size, folder, start, stack):
        self.name, place = name, f"{folder}/{name}-{world_size}".replace(" ", "-")
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(place)
            door.listen(world_size)
            door.settimeout(60)
            start(place)
            self.ranks = []
            for _ in range(world_size):
                sock, _ = door.accept()
                self.ranks.append(stack.enter_context(sock.makefile("rw")))
                sock.close()
        for rank in self.ranks:
            rank.readline()

    def block(self, n_bytes):
        """Seconds of one all-reduce, by the slowest rank."""
        for rank in self.ranks:
            print(n_bytes, file=rank, flush=True)
        return max(float(rank.readline()) for rank in self.ranks)


def as_processes(role, world_size, stack):
    def start(place):
        command = [sys.executable, __file__, role, place, str(world_size)]
        if role == "mpi":
            commands = [[mpiexec(), "-n", str(world_size), *command, "0"]]
        else:
            commands = [[*command, str(rank)] for rank in range(world_size)]
        for each in commands:
            stack.callback(subprocess.Popen(each).wait)  # they end when their orders do

    return start


def mpiexec():
    return shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")


def on_workers(transport, algorithm, world_size, stack):
    cluster = stack.enter_context(Cluster(world_size))

    def start(place):
        running = cluster.start(ours, place, algorithm, transport=transport)
        stack.callback(running.result)

    return start


def compare(world_size, folder):
    with contextlib.ExitStack() as started, contextlib.ExitStack() as conversation:
        starts = {"memcpy": as_processes("memcpy", world_size, started)}
        if importlib.util.find_spec("torch"):
            starts["gloo"] = as_processes("gloo", world_size, started)
        if importlib.util.find_spec("mpi4py") and mpiexec():
            starts["mpi"] = as_processes("mpi", world_size, started)
        for transport in WAYS:
            starts[transport] = on_workers(transport, "ring", world_size, started)
        contestants = [Contestant(name, world_size, folder, start, conversation) for name, start in starts.items()]
        times = {(c.name, n): [] for c in contestants for n in SIZES}
        for turn in range(ROUNDS + 1):
            for n in SIZES:
                for contestant in contestants:
                    seconds = contestant.block(n)
                    if turn:
                        times[contestant.name, n].append(seconds)
    return list(starts), times


def quietest(times, names, n):
    """The rounds, a quarter of all, in which all contestants together took least: the machine did little else."""
    order = sorted(range(ROUNDS), key=lambda turn: sum(times[name, n][turn] for name in names))
    return order[: max(1, ROUNDS // 4)]


def show(world_size, names, times):
    head = "".join(f"{f'{n >> 10} KiB' if n < 1 << 20 else f'{n >> 20} MiB':>12s}" for n in SIZES)
    quiet = {n: quietest(times, names, n) for n in SIZES}
    ways = {
        "median": statistics.median,
        "best": min,
        "median of the quietest quarter": None,
    }
    for words, middle in ways.items():
        best = {
            (name, n): middle(seconds) if middle else statistics.median(seconds[turn] for turn in quiet[n])
            for (name, n), seconds in times.items()
        }
        print(f"\n{world_size} ranks, {os.cpu_count()} cores, {words} of {ROUNDS} blocks, us\n  {'':14s}{head}")
        for name in names:
            print(f"  {name:14s}" + "".join(f"{best[name, n] * 1e6:12.1f}" for n in SIZES))
        for peer in [name for name in ("gloo", "mpi") if name in names]:
            for name in WAYS:
                ratios = "".join(f"{best[peer, n] / best[name, n]:12.2f}" for n in SIZES)
                print(f"  {f'{peer} / {name}':14s}{ratios}", flush=True)


def first_steps(n_workers=4, n_turns=3):
    """Seconds from `Cluster()` to the end of the first data-parallel training step of the digits network."""
    everything, sums, steps = digits("train"), [], []
    train = Dataset(everything.inputs[:64], everything.targets[:64])  # one batch: the training is one step
    for _ in range(n_turns):
        start = perf_counter()
        with Cluster(n_workers) as cluster:
            cluster.launch(lambda comm: comm.all_reduce_(np.ones(1 << 15, np.float32))[0])
            sums.append(perf_counter() - start)
        model = mlp(64, 128, 128, 10)
        start = perf_counter()
        with Cluster(n_workers) as cluster:
            result = fit(model, train, batch_size=64, epochs=1, on=DataParallel(cluster)).wait()
            steps.append(perf_counter() - start)
            assert result.n_steps == 1
    for words, times in (("all-reduce", sums), ("training step", steps)):
        print(f"from Cluster() to the first {words} done on {n_workers} workers: median "
              f"{statistics.median(times):.2f} s, best {min(times):.2f} s, aim 6")  # fmt: skip


def killed(comm):
    while True:
        comm.all_reduce_(np.ones(1 << 20, np.float32))
        if comm.rank == 1 and comm.collective == 5:
            os.kill(os.getpid(), signal.SIGKILL)


def launches(n_workers=4):
    with Cluster(n_workers) as cluster:
        cluster.launch(lambda comm: comm.rank)
        times = []
        for _ in range(10):
            start = perf_counter()
            cluster.launch(lambda comm: comm.rank)
            times.append(perf_counter() - start)
        print(f"an empty launch on {n_workers} workers: median {statistics.median(times) * 1e3:.0f} ms")
        start = perf_counter()
        try:
            cluster.launch(killed)
        except LostRankError as error:
            print(f"kill -9 of rank {error.rank}: told {perf_counter() - start:.2f} s after the launch began", end="")
        start = perf_counter()
        cluster.launch(lambda comm: comm.rank, world_size=n_workers)
        print(f", the next launch had ended {perf_counter() - start:.2f} s later")


def main():
    with tempfile.TemporaryDirectory() as folder:
        for world_size in (2, 4):
            names, times = compare(world_size, folder)
            show(world_size, names, times)
            if record := os.environ.get("BENCH_JSON"):
                rows = {f"{name} {n}": seconds for (name, n), seconds in times.items()}
                Path(f"{record}-{world_size}.json").write_text(json.dumps(rows))
    first_steps()
    launches()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        role, place, world_size, rank = sys.argv[1:]
        ROLES[role](place, int(rank), int(world_size))
    else:
        main()
