"""All-reduce of float32 from 4 KiB to 64 MiB on 2 and 4 workers, and how fast a launch starts and fails.

Beside our sockets: gloo where torch is installed, MPI where mpi4py and mpiexec are. Ratios are of medians of one run.
"""

import importlib.util
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from lab.errors import LostRankError
from lab.parallel.cluster import Cluster

SIZES = [4 << 10, 256 << 10, 4 << 20, 64 << 20]


def repeats(n_bytes):
    return 200 if n_bytes <= 256 << 10 else 30 if n_bytes <= 4 << 20 else 8


def timed(barrier, call, n_bytes):
    """Median seconds of a call; the buffer starts at zero so that sums stay what they are."""
    buffer = np.zeros(n_bytes // 4, np.float32)
    for _ in range(3):
        call(buffer)
    times = []
    for _ in range(repeats(n_bytes)):
        barrier()
        start = perf_counter()
        call(buffer)
        times.append(perf_counter() - start)
    return statistics.median(times)


def ours(comm, algorithm):
    return {n: timed(comm.barrier, lambda x: comm.all_reduce_(x, algorithm), n) for n in SIZES}


def gloo(comm, meeting):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=comm.rank, world_size=comm.world_size)
    try:
        return {n: timed(dist.barrier, lambda x: dist.all_reduce(torch.from_numpy(x)), n) for n in SIZES}
    finally:
        dist.destroy_process_group()


def mpi():
    """Runs under mpiexec; prints rank 0's times."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    times = {n: timed(world.Barrier, lambda x: world.Allreduce(MPI.IN_PLACE, x), n) for n in SIZES}
    if world.rank == 0:
        print(json.dumps(times))


def under_mpi(world_size):
    command = ["mpiexec", "-n", str(world_size), sys.executable, __file__, "mpi"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {int(n): seconds for n, seconds in json.loads(done.stdout).items()}


def memcpy(_):
    times = {}
    for n in SIZES:
        target = np.empty(n // 4, np.float32)
        times[n] = timed(lambda: None, lambda x, target=target: np.copyto(target, x), n)
    return times


def killed(comm):
    while True:
        comm.all_reduce_(np.ones(1 << 20, np.float32))
        if comm.rank == 1 and comm.collective == 5:
            os.kill(os.getpid(), signal.SIGKILL)


def row(name, times, base):
    cells = [f"{times[n] * 1e6:11.1f} us" + (f" x{base[n] / times[n]:5.2f}" if base else "") for n in SIZES]
    print(f"  {name:12s}" + "".join(f"{cell:>22s}" for cell in cells), flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for world_size in (2, 4):
            start = perf_counter()
            with Cluster(world_size) as cluster:
                started = perf_counter()
                cluster.launch(memcpy, world_size=1)
                print(f"\n{world_size} workers: {started - start:.1f} s to start, on {os.cpu_count()} cores")
                print(f"  {'':12s}" + "".join(f"{n >> 10:>18d} KiB" for n in SIZES))
                row("memcpy", cluster.launch(memcpy, world_size=1)[0], None)
                base = None
                if importlib.util.find_spec("torch"):
                    base = cluster.launch(gloo, str(Path(folder) / f"meeting-{world_size}"))[0]
                    row("gloo", base, base)
                if importlib.util.find_spec("mpi4py") and shutil.which("mpiexec"):
                    row("mpi", under_mpi(world_size), base)
                for transport in ("unix", "tcp"):
                    for algorithm in ("ring", "naive"):
                        times = cluster.launch(ours, algorithm, transport=transport)[0]
                        row(f"{transport} {algorithm}", times, base)
                launches = []
                for _ in range(10):
                    start = perf_counter()
                    cluster.launch(lambda comm: comm.rank)
                    launches.append(perf_counter() - start)
                print(f"  an empty launch: median {statistics.median(launches) * 1e3:.0f} ms")
                start = perf_counter()
                try:
                    cluster.launch(killed)
                except LostRankError as error:
                    seconds = perf_counter() - start
                    print(f"  kill -9 of rank {error.rank}: told {seconds:.2f} s after the launch began", end="")
                start = perf_counter()
                cluster.launch(lambda comm: comm.rank)
                print(f", the next launch had ended {perf_counter() - start:.2f} s later")


if __name__ == "__main__":
    if sys.argv[1:] == ["mpi"]:
        mpi()
    else:
        main()
