"""Kernels beside NumPy, in one interleaved run: prints microseconds and ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import lab.kernels as lk
from lab.kernels import Chain, Formula, Step, fuse, numpy_namespace


def interleaved(*functions: Callable[[], Any], repeats: int = 15, budget_s: float = 0.02) -> list[float]:
    """Median microseconds a call of each, measured in turns, so that a busy machine slows all alike."""
    counts = []
    for function in functions:
        function()
        start = time.perf_counter()
        function()
        counts.append(max(1, int(budget_s / max(time.perf_counter() - start, 1e-7))))
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for k, function in enumerate(functions):
            start = time.perf_counter()
            for _ in range(counts[k]):
                function()
            times[k].append((time.perf_counter() - start) / counts[k] * 1e6)
    return [statistics.median(t) for t in times]


def row(what: str, ours: float, numpys: float) -> None:
    print(f"{what:<58} {ours:>10.2f} us  NumPy {numpys:>10.2f} us  ratio {ours / numpys:5.2f}")


def overhead() -> None:
    x, out = np.ones(1), np.ones(1)
    add = fuse(Chain((("x", "float64"),), (Step("y", Formula("x + x"), ("x",), ("x",)),), ("y",)))
    add.compile()
    run = add.run
    row("one entry: fused loop of x + x against np.add", *interleaved(lambda: run(x, out), lambda: np.add(x, x, out)))
    p, g, velocity = np.ones(1), np.ones(1), np.ones(1)
    sgd, record = lk.sgd, lk.KERNELS["sgd"]
    arguments = (p, g, velocity, 1e-3, 0.9, 0.0, False)
    row("one entry: sgd, 7 arguments", *interleaved(lambda: sgd(*arguments), lambda: record.twin(*arguments)))


def against_twin(name: str, dtype: str, size: int) -> None:
    record = lk.KERNELS[name]
    ours, theirs = (record.sample(np.random.default_rng(0), dtype, size) for _ in "ab")
    call = getattr(lk, name)
    row(f"{name} {dtype} n = {size}", *interleaved(lambda: call(*ours), lambda: record.twin(*theirs)))


def chain(name: str, size: int, *formulas: str) -> None:
    steps, last = [], "x"
    for k, formula in enumerate(formulas):
        steps.append(Step(f"s{k}", Formula(formula), ("x",), (last,)))
        last = f"s{k}"
    fused = fuse(Chain((("x", "float32"),), tuple(steps), (last,)))
    fused.compile()
    x = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    out, run = np.empty_like(x), fused.run
    compiled = [Formula(f).compile(numpy_namespace(), ("x",)) for f in formulas]

    def plain() -> Any:
        value = x
        for formula in compiled:
            value = formula(value)
        return value

    row(f"{name} float32 n = {size}", *interleaved(lambda: run(x, out), plain))


def main() -> None:
    lk.warm()
    overhead()
    for dtype in lk.FLOATS:
        against_twin("adam", dtype, 26_000)
        against_twin("sgd", dtype, 26_001)
        for name in ("softmax_cross_entropy", "softmax_cross_entropy_gradient"):
            against_twin(name, dtype, 64)
            against_twin(name, dtype, 4096)
    for size in (640, 8192, 1_000_000):
        for function in ("exp", "tanh", "sigmoid", "log"):
            chain(function, size, f"{function}(abs(x))" if function == "log" else f"{function}(x)")
        chain("6 steps: x*0.5+1, tanh, x*x, exp(-x), sigmoid, x-0.5", size,
              "x * 0.5 + 1.0", "tanh(x)", "x * x", "exp(-x)", "sigmoid(x)", "x - 0.5")  # fmt: skip


if __name__ == "__main__":
    main()
