"""Interleaved timing: the contestants take turns in one process, so that drift of the machine hits all alike."""

import statistics
from collections.abc import Callable
from time import perf_counter


def take_turns(
    contestants: dict[str, Callable[[], object]], *, n_turns: int = 15, seconds: float = 0.05
) -> dict[str, list[float]]:
    """Seconds per call of each contestant, one median-ready list of turns for each."""
    repeats = {}
    for name, call in contestants.items():
        call()
        start = perf_counter()
        call()
        repeats[name] = max(1, int(seconds / max(perf_counter() - start, 1e-7)))
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(n_turns):
        for name, call in contestants.items():
            start = perf_counter()
            for _ in range(repeats[name]):
                call()
            times[name].append((perf_counter() - start) / repeats[name])
    return times


def show(title: str, times: dict[str, list[float]], *, base: str, per: int = 1, aim: str = "") -> None:
    """Print median and minimum in microseconds per unit, and the median of the turns' ratios to the base."""
    print(f"\n{title}")
    for name, turns in times.items():
        ratio = (
            statistics.median(t / b for t, b in zip(turns, times[base], strict=True)) if base in times else float("nan")
        )
        note = f"   aim {aim}" if aim and name != base else ""
        median, least = statistics.median(turns) / per * 1e6, min(turns) / per * 1e6
        print(f"  {name:28s} median {median:10.2f} us   min {least:10.2f} us   x {base} {ratio:6.3f}{note}")
