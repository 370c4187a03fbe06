"""What the loss of a rank costs: from the kill until survivors know, until the next step is done, and each step before.

Run it alone: `python -m tests.benchmarks.bench_resume`. In the second half a spare stands by.
"""

import os
import signal
from statistics import median
from time import perf_counter_ns

import lab
from lab.events import RankFinished, RankStarted, StateKept, StepFinished, TrainingResumed
from lab.optim import Adam
from lab.parallel import Cluster, DataParallel
from tests.parallel.trainings import network, some_digits

WORLD, ROUNDS = 4, 3


def killed(cluster):
    """Milliseconds: until the last survivor knew, until the next step, and of keeping a state."""
    module = network()
    run = lab.fit(module, some_digits(640), batch_size=64, epochs=10_000, measure_every=0, paused=True,
                  optimizer=Adam(module.parameters()), on=DataParallel(cluster, WORLD, told="replicas"))  # fmt: skip
    run.step(50)
    run.wait_until("paused")
    pid = next(event.pid for event in run.recording if isinstance(event, RankStarted) and event.rank == 2)
    run.resume()
    while run.progress[0] < 200:
        run.wait_until("failed", timeout=0.05)
    at = perf_counter_ns()
    os.kill(pid, signal.SIGKILL)
    while not any(isinstance(event, TrainingResumed) for event in run.recording):
        run.wait_until("failed", timeout=0.05)
    run.stop()
    run.wait()
    resumed = next(event for event in run.recording if isinstance(event, TrainingResumed))
    knew = [e.time_ns for e in run.recording if isinstance(e, RankFinished) and at < e.time_ns < resumed.time_ns]
    # Rank 0 may have told of steps that it had to do once more: they are from before the survivors knew.
    steps = [e.time_ns for e in run.recording if isinstance(e, StepFinished) and e.time_ns > max(knew)]
    kept = [e.elapsed_ms for e in run.recording if isinstance(e, StateKept)]
    return (max(knew) - at) / 1e6, (min(steps) - at) / 1e6, median(kept)


def main():
    for spares, what in ((0, "replaced by the nanny"), (1, "replaced by a spare")):
        with Cluster(WORLD, spares=spares) as cluster:
            for _ in range(ROUNDS):
                cluster.client.wait_for_workers(WORLD + spares, timeout=60)
                knew, step, kept = killed(cluster)
                print(f"{what}: survivors knew after {knew:.0f} ms, next step done after {step:.0f} ms; "
                      f"keeping a state {kept:.3f} ms")  # fmt: skip


if __name__ == "__main__":
    main()
