"""A step of data-parallel training on two workers beside the same step alone: two digits networks, small and larger.

With it, buckets of several sizes, and the virtual shards of any world.

Blocks of steps take turns on the same worker, so that a busy machine slows all; ratios are medians over the turns.
The worker's own seconds (thread time) leave out what it waits for, and are worth more than the clock on shared cores.
"""

import statistics
import time

import numpy as np

import lab
from lab.data import Loader, digits
from lab.events import bus
from lab.events.recording import Recording
from lab.kernels.blas import one_blas_thread
from lab.nn import mlp
from lab.optim import Adam
from lab.parallel import Cluster
from lab.parallel.training.any_world import VirtualRank
from lab.parallel.training.buckets import BucketRank
from lab.parallel.training.data_parallel import TOLD, Rank
from lab.parallel.training.layers import NOTHING, Layers
from lab.parallel.training.packing import packed, unpacked
from lab.parallel.training.steering import Steering
from lab.training.trainer import Training

N_TURNS, N_STEPS = 24, 20
CLOCKS = {"by the clock": time.perf_counter, "of the worker's own": time.thread_time}


def turns(comm, payload):
    """Microseconds of each contestant in each turn, by clock; rank 0's are shown."""
    alone, spread = unpacked(payload), unpacked(payload)
    spread.replica = Rank(comm, Steering(comm, list(spread.hyperparameters)))
    others = {}
    for name, kind, more in (("on 2 ranks, by halving", Rank, {}),
                             ("by halving, one bucket", BucketRank, {"bucket_bytes": 1 << 30}),
                             ("by halving, 64 KiB buckets", BucketRank, {"bucket_bytes": 1 << 16}),
                             ("by halving, 8 KiB buckets", BucketRank, {"bucket_bytes": 1 << 13}),
                             ("any world, 2 shards", VirtualRank, {"n_shards": 2}),
                             ("any world, 8 shards", VirtualRank, {"n_shards": 8})):  # fmt: skip
        one = others[name] = unpacked(payload)
        layers, groups = Layers(comm, one.model, NOTHING), one.optimizer.groups
        one.replica = kind(comm, Steering(comm, list(one.hyperparameters)), "halving", layers=layers, groups=groups,
                           **more)  # fmt: skip
    gradient, words = np.zeros_like(spread.optimizer.groups[0].gradients), np.zeros(7)
    found = {clock: {} for clock in CLOCKS}

    def block(name, call):
        starts = {clock: now() for clock, now in CLOCKS.items()}
        for _ in range(N_STEPS):
            call()
        for clock, now in CLOCKS.items():
            found[clock].setdefault(name, []).append((now() - starts[clock]) / N_STEPS * 1e6)

    with one_blas_thread():
        for _ in range(N_TURNS):
            comm.barrier()
            if comm.rank == 0:  # the other core rests, as it does for a training in one process
                block("alone", alone.advance)
            comm.barrier()
            block("all-reduce and agreement", lambda: (comm.all_reduce_(gradient), comm.agree(words)))
            comm.barrier()
            block("on 2 ranks", spread.advance)
            rec = Recording(kinds=TOLD["chunks"], sources=False)
            bus.attach(rec)
            block("on 2 ranks, all told", spread.advance)
            bus.detach(rec)
            for name, one in others.items():
                comm.barrier()
                block(name, one.advance)
    return found


def main(*widths, batch_size=64):
    train, _ = digits()
    model = mlp(64, *widths, 10, rng=0)
    training = Training(model, Loader(train, batch_size, rng=0), None, lab.cross_entropy, Adam(model.parameters()),
                        n_epochs=10**6, measure_every=0)  # fmt: skip
    with Cluster(2) as cluster:
        found = cluster.launch(turns, packed(training), world_size=2)[0]
    for clock, times in found.items():
        print(f"\na step of 64-{'-'.join(map(str, widths))}-10, batch {batch_size}, microseconds {clock}")
        for name, each in times.items():
            ratio = statistics.median(a / b for a, b in zip(each[3:], times["alone"][3:], strict=True))
            median, least = statistics.median(each[3:]), min(each)
            print(f"  {name:28s} median {median:8.0f}   min {least:8.0f}   x alone {ratio:5.2f}")


if __name__ == "__main__":
    main(128, 128)
    main(512, 512, 512, batch_size=256)
