"""Seconds of the first call of a compiled graph, in a fresh process each time: with an empty cache and with a full one.

Run: python -m tests.benchmarks first_call. A step is forward, backward and the optimiser's rule of the digits network,
traced, planned and compiled by its first call; importing the lab and making the data come before. `import numba` is
timed beside it: what a step pays in addition where numba has to compile something.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from statistics import median
from time import perf_counter

KEYS = ("w2_tensor", "w3_sgd", "w3_adam", "w4", "w5_8", "w6")
N_TURNS = 5


def child(key: str) -> None:
    """Print the seconds of one first call."""
    from engines import Compiled
    from workloads import WORKLOADS

    step, _ = WORKLOADS[key].make(Compiled)
    start = perf_counter()
    step()
    print(perf_counter() - start)


def fresh(code: list[str], folder: str) -> float:
    """What a process of its own prints, with this folder for its cache."""
    env = os.environ | {"LAB_CACHE_DIR": folder}
    done = subprocess.run([sys.executable, *code], env=env, capture_output=True, text=True, check=True)
    return float(done.stdout)


def empty_and_full(key: str) -> tuple[list[float], list[float]]:
    """Seconds of first calls without anything in the cache, and with what that call left there."""
    empty, full = [], []
    for _ in range(N_TURNS):
        with tempfile.TemporaryDirectory() as folder:
            empty.append(fresh([__file__, "--child", key], folder))
            full.append(fresh([__file__, "--child", key], folder))
    return empty, full


def main() -> None:
    timed = "import numpy; from time import perf_counter as t; a = t(); import numba; print(t() - a)"
    print(f"import numba {median(fresh(['-c', timed], '') for _ in range(N_TURNS)):.2f} s")
    for key in [k for k in KEYS if not sys.argv[1:] or k in sys.argv[1:]]:
        empty, full = empty_and_full(key)
        print(f"{key}: first call {median(empty):.2f} s with an empty cache ({min(empty):.2f} to {max(empty):.2f}), "
              f"{median(full):.2f} s with a full one ({min(full):.2f} to {max(full):.2f})", flush=True)  # fmt: skip


if __name__ == "__main__":
    if "--child" in sys.argv:
        child(sys.argv[-1])
    else:
        main()
