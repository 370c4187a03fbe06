"""Our ranks for a comparison of collectives: takes a JSON config, prints a line `RESULT {"allreduce:bytes": [...]}`.

The config has world, sizes, scale and cores; TRANSPORT and ALGORITHM of the environment say what is measured. A time is
that of a block of calls between two barriers on the slowest rank, divided by their number; sums are checked before.
"""

import json
import os
import sys
from time import perf_counter

import numpy as np

from lab.parallel.cluster.cluster import Cluster


def blocks_of(n_bytes, seconds):
    """Calls in a block, and blocks: together about so many seconds at half a GB/s."""
    one = max(40e-6, n_bytes / 0.5e9)
    inner = max(1, min(50, int(0.05 / one)))
    return inner, int(max(7, min(31, seconds / (one * inner))))


def measured(comm, sizes, seconds, algorithm):
    world, found = comm.world_size, {}
    for n_bytes in sizes:
        n = max(world, n_bytes // 4 // world * world)
        base = (np.arange(n) % 251).astype(np.float32)
        x = base + np.float32(comm.rank)
        comm.all_reduce_(x, algorithm)
        assert np.array_equal(x, base * world + np.float32(world * (world - 1) // 2))
        x[:] = 0
        inner, n_blocks = blocks_of(n_bytes, seconds)
        times = []
        for _ in range(n_blocks):
            comm.barrier()
            start = perf_counter()
            for _ in range(inner):
                comm.all_reduce_(x, algorithm)
            times.append((perf_counter() - start) / inner)
        found[f"allreduce:{n_bytes}"] = times
    return found


def main():
    config = json.loads(sys.argv[1])
    os.sched_setaffinity(0, set(config["cores"]))
    transport, algorithm = os.environ.get("TRANSPORT", "shared"), os.environ.get("ALGORITHM", "ring")
    with Cluster(config["world"]) as cluster:
        ranks = cluster.launch(measured, config["sizes"], config["scale"], algorithm, transport=transport)
    slowest = {key: [max(each) for each in zip(*(rank[key] for rank in ranks), strict=True)] for key in ranks[0]}
    print("RESULT " + json.dumps(slowest))


if __name__ == "__main__":
    main()
