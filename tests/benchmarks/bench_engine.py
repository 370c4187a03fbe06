"""Cost of one small operation beside torch, of listeners beside none, of `import lab` beside `import numpy`.

Run: python -m tests.benchmarks engine
"""

import subprocess
import sys
from time import perf_counter
from typing import Any

import numpy as np
from turns import show, take_turns

import lab
from lab.events import Batch, Detail, Recording, bus

N_OPS = 1000


def chain(leaf: Any, zero: Any, n_entries: int) -> tuple[Any, Any]:
    """(forward, forward and backward) of a chain of products and sums on leaves."""
    leaves = [leaf(np.full(n_entries, v, np.float32)) for v in (0.5, 0.999, 0.001)]

    def forward() -> Any:
        y, a, b = leaves
        for _ in range(N_OPS // 2):
            y = y * a
            y = y + b
        return y

    def both() -> None:
        for x in leaves:
            zero(x)
        forward().sum().backward()

    return forward, both


class Silent:
    """A listener that does nothing."""

    def __init__(self, *, detail: Detail = Detail.SHAPE, sources: bool = False) -> None:
        self.detail, self.sources = detail, sources

    def wants(self, kind: type) -> bool:
        return True

    def receive(self, batch: Batch) -> None:
        pass

    def lost(self, n_events: int) -> None:
        pass

    def detached(self, why: BaseException) -> None:
        raise why


def heard(call: Any, make: Any) -> Any:
    """The call with a listener attached."""

    def with_listener() -> None:
        listener = make()
        bus.attach(listener)
        call()
        bus.detach(listener)

    return with_listener


def main() -> None:
    def lab_leaf(a: Any) -> Any:
        return lab.tensor(a, requires_grad=True)

    engines = {"lab": (lab_leaf, lambda x: x.zero_grad())}
    try:
        import torch

        torch.set_num_threads(1)
        engines["torch"] = (lambda a: torch.from_numpy(a.copy()).requires_grad_(), lambda x: setattr(x, "grad", None))
    except ImportError:
        print("torch is not installed: the lab's times stand alone")
    base = "torch" if "torch" in engines else "lab"
    for n in (1, 32):
        made = {name: chain(*engine, n) for name, engine in engines.items()}
        for part, word, aim in ((0, "forward, recording the tape", "<= 0.70"), (1, "forward + backward", "<= 0.60")):
            times = take_turns({name: parts[part] for name, parts in made.items()})
            show(f"one operation on {n} entries, {word}", times, base=base, per=N_OPS, aim=aim)

    _, both = chain(*engines["lab"], 1)
    times = take_turns(
        {
            "nobody listens": both,
            "silent listener": heard(both, Silent),
            "silent, source lines": heard(both, lambda: Silent(sources=True)),
            "Recording, shapes": heard(both, lambda: Recording(detail="shape", sources=False)),
            "Recording, sources": heard(both, lambda: Recording(detail="shape", sources=True)),
            "Recording, values": heard(both, lambda: Recording(detail="value", sources=True)),
        },
        n_turns=25,
        seconds=0.02,
    )
    show("listeners, forward + backward", times, base="nobody listens", per=N_OPS, aim="<= 1.35 for the silent one")

    n_deep = 100_000
    x = lab.tensor(1.0, requires_grad=True)
    start = perf_counter()
    y = x
    for _ in range(n_deep):
        y = y * 1.0
    y.backward()
    print(f"\nchain of {n_deep} operations, forward + backward: {(perf_counter() - start) / n_deep * 1e6:.2f} us each")

    command = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    took = {}
    for module in ("numpy", "lab"):
        runs = [
            float(
                subprocess.run(
                    [sys.executable, "-c", command.format(module)], capture_output=True, text=True, check=True
                ).stdout
            )
            for _ in range(7)
        ]
        took[module] = sorted(runs)[3]
    ratio = took["lab"] / took["numpy"]
    print(f"\nimport lab {took['lab'] * 1e3:.0f} ms, import numpy {took['numpy'] * 1e3:.0f} ms: {ratio:.2f}, aim <= 6")
    full = "import time; t = time.perf_counter(); import lab; lab.tensor(1.0); print(time.perf_counter() - t)"
    first = subprocess.run([sys.executable, "-c", full], capture_output=True, text=True, check=True).stdout
    print(f"import lab and the first tensor {float(first) * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
