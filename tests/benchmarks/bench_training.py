"""One training step of the digits network, 64-128-128-10, batch 64, Adam, one thread; beside torch where that is.

Run: python tests/benchmarks/bench_training.py. Both take turns in one process, so that a busy machine slows both; the
figures are medians of the turns, and the ratio is the median of the turns' ratios.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is loaded

import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[2]))

from lab import ops
from lab.autograd import wrap
from lab.data import Loader, digits
from lab.nn import Module, mlp
from lab.optim import Adam
from lab.training import fit

N_TURNS, N_STEPS = 30, 100
SIZES = (64, 128, 128, 10)
Step = Callable[[], object]


def lab_step() -> Step:
    model, batches, i = mlp(*SIZES, rng=0), list(Loader(digits("train"), 64, rng=0, drop_last=True)), 0
    optimizer = Adam(model.parameters())

    def step() -> float:
        nonlocal i
        i = (i + 1) % len(batches)
        optimizer.zero_grad()
        loss = ops.cross_entropy(model(wrap(batches[i].inputs)), batches[i].targets)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def torch_step() -> Step | None:
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    torch.manual_seed(0)
    linear, relu = torch.nn.Linear, torch.nn.ReLU
    model = torch.nn.Sequential(linear(64, 128), relu(), linear(128, 128), relu(), linear(128, 10))
    batches = [tuple(map(torch.from_numpy, b)) for b in Loader(digits("train"), 64, rng=0, drop_last=True)]
    optimizer, i = torch.optim.Adam(model.parameters()), 0

    def step() -> float:
        nonlocal i
        i = (i + 1) % len(batches)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batches[i][0]), batches[i][1])
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def us_per_call(step: Step, n: int = N_STEPS) -> float:
    start = perf_counter()
    for _ in range(n):
        step()
    return (perf_counter() - start) / n * 1e6


def side_by_side() -> None:
    steps = {"lab": lab_step(), "torch": torch_step()}
    found: dict[str, list[float]] = {name: [] for name, step in steps.items() if step}
    for step in filter(None, steps.values()):
        us_per_call(step)  # compiles, warms up
    for _ in range(N_TURNS):
        for name, times in found.items():
            times.append(us_per_call(steps[name]))  # type: ignore[arg-type]
    for name, times in found.items():
        print(f"{name:6} step {statistics.median(times):6.0f} us   (fastest turn {min(times):.0f})")
    if len(found) == 2:
        ratio = statistics.median(a / b for a, b in zip(found["lab"], found["torch"], strict=True))
        print(f"ratio {ratio:.2f}   (aim: at most 0.80)")
    else:
        print("torch is not installed: nothing to compare with")


def whole_run() -> None:
    train, test = digits()
    for watched in (False, True):
        run = fit(mlp(*SIZES, rng=0), train, validation=test, epochs=20, measure_every=10 if watched else 0)
        result = run.wait()
        per_step = 1000 * result.elapsed_ms / result.n_steps
        words = "measured every 10 steps" if watched else "not measured"
        print(f"fit, 20 epochs, {words}: {per_step:.0f} us a step, accuracy {result.accuracy:.3f}")


def module_call() -> None:
    class Nothing(Module):
        def forward(self, x: object) -> object:
            return x

    nothing = Nothing()
    ways = (lambda: nothing(1)), (lambda: nothing.forward(1))
    call, forward = (min(us_per_call(way, 20_000) for _ in range(5)) for way in ways)
    print(f"a module's call costs {1000 * (call - forward):.0f} ns more than its forward")


if __name__ == "__main__":
    side_by_side()
    whole_run()
    module_call()
