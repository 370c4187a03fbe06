"""The table of ratios: every workload on the lab and on its peers, each in a process of its own, in turns, one thread.

Run: python -m tests.benchmarks autodiff; with the environment of that command also this file with beginnings of names,
bench_autodiff.py w1 w3, and with --compiled for steps that `lab.jit` makes one function of, beside torch, torch.compile
and jax.jit; what compiling takes is not in the times. One process for all will not do: an engine there changes the
other's memory and caches, and torch took a quarter less time for a step when the lab stood beside it. As an adapter
(`build`) this file also serves a harness of another's.
"""

import multiprocessing
import os
import statistics
import sys
from multiprocessing.connection import Connection
from time import perf_counter
from typing import Any

from engines import PEERS, Compiled, Lab
from workloads import WORKLOADS, Made

COMPILED = {
    "w2_tensor": (0.06, 0.5), "w3_sgd": (0.25, 0.9), "w3_adam": (0.25, 0.9), "w4": (0.15,), "w4_small": (0.20,),
    "w5_8": (0.4, 0.8), "w5_28": (0.65, 0.8), "w6": (0.4, 0.75), "w8_softmax_ce": (0.25, 1.0),
    "w8_layernorm": (0.25, 1.0), "w8_reduce": (0.25, 1.0),
}  # fmt: skip
"""Workloads whose whole step is compiled, with the ratios to torch and to jax.jit that the project wants."""
OF_TORCH_COMPILE = {"w4": 0.55}
N_TURNS, SECONDS = 11, 0.06
TOLERANCE = 2e-3
"""By which engines may differ, relative: float32, and thousands of terms summed in other orders."""


def build(case: str, _options: dict[str, Any]) -> Made:
    """(step, check) of a workload on the lab."""
    return WORKLOADS[case].make(Lab)


def serve(name: str, key: str, to: Connection) -> None:
    """One engine's process: the check first, None where it is not installed, then seconds for numbers of steps."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # all on the same core
    engine = {"lab": Lab, "compiled": Compiled}[name] if name in ("lab", "compiled") else PEERS[name]()
    if engine is None:
        to.send(None)
        return
    step, check = WORKLOADS[key].make(engine)
    to.send(check())
    while n := to.recv():
        start = perf_counter()
        for _ in range(n):
            step()
        to.send((perf_counter() - start) / n)


class Contestant:
    """An engine in a process of its own, with one workload."""

    def __init__(self, name: str, key: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._to, its = context.Pipe()
        self._process = context.Process(target=serve, args=(name, key, its))
        self._process.start()
        self.check: list[float] | None = self._to.recv()
        self.turns: list[float] = []
        if self.check is not None:
            self._ask(1)
            self._repeats = max(1, int(SECONDS / self._ask(1)))

    def _ask(self, n: int) -> float:
        self._to.send(n)
        return float(self._to.recv())

    def turn(self) -> None:
        self.turns.append(self._ask(self._repeats))

    def close(self) -> None:
        if self.check is not None:
            self._to.send(0)
        self._process.join()


def agree(mine: list[float], theirs: list[float]) -> bool:
    return all(abs(a - b) <= TOLERANCE * max(1e-3, abs(b)) for a, b in zip(mine, theirs, strict=True))


def compare(key: str, name: str, aims: dict[str, float]) -> str:
    """The rows of one workload, a peer in each."""
    workload = WORKLOADS[key]
    lab, *peers = everyone = [Contestant(engine, key) for engine in (name, *aims)]
    assert lab.check is not None
    there = [c for c in everyone if c.check is not None]
    for _ in range(3 if statistics.mean(c._ask(1) for c in there) > 1 else N_TURNS):
        for contestant in there:
            contestant.turn()
    for contestant in everyone:
        contestant.close()
    mine = f"{key:14}{workload.about:40}{statistics.median(lab.turns) / workload.units * 1e6:>12.2f}"
    pairs = zip(peers, aims.items(), strict=True)
    return "\n".join(mine + _beside(lab, peer, *named, workload.units) for peer, named in pairs)


def _beside(lab: Contestant, peer: Contestant, name: str, aim: float, units: int) -> str:
    """The rest of a row."""
    if peer.check is None:
        return f"   {name} is not installed"
    assert lab.check is not None
    ratio = statistics.median(a / b for a, b in zip(lab.turns, peer.turns, strict=True))
    words = "yes" if agree(lab.check, peer.check) else f"NO: {lab.check} {peer.check}"
    theirs = statistics.median(peer.turns) / units * 1e6
    return f"{theirs:>12.2f}{ratio:>8.3f}{aim:>6.2f}  {name:14}{words}"


def aims_of(key: str, *, compiled: bool) -> dict[str, float]:
    """The peers of a workload, each with the ratio of times that the project wants; 1 where it wants none."""
    workload = WORKLOADS[key]
    if not compiled:
        return {workload.base: workload.aim}
    of_torch, of_jax = (*COMPILED[key], 1.0)[:2]
    return {workload.base: of_torch, "torch.compile": OF_TORCH_COMPILE.get(key, 1.0), "jax.jit": of_jax}


def main() -> None:
    compiled = "--compiled" in sys.argv
    wanted = tuple(a for a in sys.argv[1:] if a != "--compiled") or ("",)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; medians of turns, us an operation or a step")
    print(f"{'workload':54}{'lab':>12}{'peer':>12}{'ratio':>8}{'aim':>6}  {'peer':14}agree")
    for key in COMPILED if compiled else WORKLOADS:
        if key.startswith(wanted):
            print(compare(key, "compiled" if compiled else "lab", aims_of(key, compiled=compiled)), flush=True)
    print(f"load average {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
