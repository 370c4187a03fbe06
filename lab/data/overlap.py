"""What prefetch is worth: files are unpacked, images moved about, a network trained, with each depth anew."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from lab.checks import whole
from lab.data.digits import digits
from lab.data.loader import Loader
from lab.data.prefetch import Prefetch
from lab.errors import ArgumentError
from lab.events import Recording, StageRan, bus, record
from lab.events.catalogue import PrefetchBegun, PrefetchMeasured, PrefetchRunBegun
from lab.kernels.blas import one_blas_thread
from lab.kernels.cores import n_cores
from lab.ops import cross_entropy, relu
from lab.transforms import jit, value_and_grad
from lab.words import counted, shown

KINDS = (PrefetchBegun, PrefetchRunBegun, StageRan, PrefetchMeasured)
SIZES = (64, 256, 10)
"""Of the network's layers."""
REACH = 2
"""Pixels by which an image may be moved, up or down and to either side."""


class Row(NamedTuple):
    """What a depth came to; fields as of the event PrefetchMeasured."""

    depth: int
    elapsed_ms: float
    load_ms: float
    preprocess_ms: float
    compute_ms: float
    told_ms: float
    loss: float


class Overlap(NamedTuple):
    """What `measure_prefetch` found.

    Attributes:
        rows: one for each depth.
        n_cores: on which loop and thread could run.
        recording: of a loop of each, for PrefetchView.
    """

    rows: tuple[Row, ...]
    n_cores: int
    recording: Recording

    def __repr__(self) -> str:
        best = min(self.rows, key=lambda row: row.elapsed_ms)
        first = f"{self.rows[0].elapsed_ms:.3g} ms at depth {self.rows[0].depth}"
        return f"<depth {best.depth}: {best.elapsed_ms:.3g} ms, {first}, on {counted(self.n_cores, 'core')}>"


def measure_prefetch(
    depths: Sequence[int] = (0, 1, 2, 4), *, n_items: int = 16, batch_size: int = 512, repeats: int = 3
) -> Overlap:
    """Train on digits that are unpacked and moved about batch by batch, prefetched or not; PrefetchView draws it.

    Loading is `np.load` of a compressed file in memory; preprocessing moves each image by some pixels and adds noise,
    from a seed of its own; computing is a compiled step of training. BLAS has one thread meanwhile.

    Args:
        depths: of `lab.data.Prefetch`; 0 does all in the loop.
        n_items: batches in a loop.
        repeats: the median of so many loops is taken; one more, before them, is not counted.

    Raises:
        ArgumentError: a depth, or a number of something, that is none.

    Example:
        >>> import lab
        >>> found = lab.measure_prefetch((0, 2), n_items=3, batch_size=32, repeats=1)
        >>> [row.depth for row in found.rows], len({row.loss for row in found.rows})
        ([0, 2], 1)
    """
    counts = _depths(depths)
    n_items, repeats = whole("n_items", n_items, least=1), whole("repeats", repeats, least=1)
    files = _files(n_items, whole("batch_size", batch_size, least=1))
    step = jit(_descend, executor="compiled")
    with one_blas_thread():
        _loop(files, 0, step)  # compiles it
        silent = [median(_loop(files, depth, step)[0] for _ in range(repeats)) for depth in counts]
        with record(kinds=KINDS) as rec:
            rec.meta["title"] = "prefetch"
            bus.emit(PrefetchBegun(n_cores(), n_items, tuple(counts), repeats))
            rows = []
            for depth, elapsed_ms in zip(counts, silent, strict=True):
                rows.append(_one_told(files, depth, step, elapsed_ms))
                bus.emit(PrefetchMeasured(*rows[-1]))
    return Overlap(tuple(rows), n_cores(), rec)


def _depths(depths: object) -> list[int]:
    if not isinstance(depths, Sequence) or isinstance(depths, str) or not depths:
        hint = "for example depths=(0, 2)"
        raise ArgumentError("depths are some depths of a prefetch", given=f"depths={shown(depths)}", hint=hint)
    return [whole("depths", depth, least=0, hint="for example depths=(0, 2)") for depth in depths]


def _files(n_items: int, batch_size: int) -> list[tuple[int, bytes]]:
    """So many batches, each a compressed file, with its number."""
    loader = Loader(digits("train", rng=0), batch_size, rng=0, drop_last=True)
    files: list[tuple[int, bytes]] = []
    while len(files) < n_items:
        for batch in loader:
            file = io.BytesIO()
            np.savez_compressed(file, inputs=batch.inputs, targets=batch.targets)
            files.append((len(files), file.getvalue()))
    return files[:n_items]


def _loaded(file: tuple[int, bytes]) -> tuple[int, Any, Any]:
    number, data = file
    with np.load(io.BytesIO(data)) as arrays:
        return number, arrays["inputs"], arrays["targets"]


def _moved(item: tuple[int, Any, Any]) -> tuple[Any, Any]:
    """The images, each moved by some pixels, and with noise."""
    number, inputs, targets = item
    rng = np.random.default_rng(number)
    n = len(inputs)
    wide = np.pad(inputs.reshape(n, 8, 8), ((0, 0), (REACH, REACH), (REACH, REACH)))
    down, right = rng.integers(0, 2 * REACH + 1, (2, n, 1, 1))
    rows, columns = down + np.arange(8)[:, None], right + np.arange(8)
    moved = wide[np.arange(n)[:, None, None], rows, columns].reshape(n, 64)
    return moved + rng.normal(scale=0.05, size=moved.shape).astype(moved.dtype), targets


def _loss(ps: list[Any], x: Any, y: Any) -> Any:
    w1, b1, w2, b2 = ps
    return cross_entropy(relu(x @ w1 + b1) @ w2 + b2, y)


def _descend(ps: list[Any], x: Any, y: Any) -> tuple[Any, list[Any]]:
    loss, gradients = value_and_grad(_loss)(ps, x, y)
    return loss, [p - 0.1 * g for p, g in zip(ps, gradients, strict=True)]


def _parameters(dtype: Any) -> list[Any]:
    rng = np.random.default_rng(0)
    ps: list[Any] = []
    for n, m in pairwise(SIZES):
        ps += [(rng.normal(size=(n, m)) / np.sqrt(n)).astype(dtype), np.zeros(m, dtype)]
    return ps


class _Unpacked:
    """Goes over files and unpacks each."""

    def __init__(self, files: list[tuple[int, bytes]]) -> None:
        self.files = files

    def __iter__(self) -> Any:
        return map(_loaded, self.files)


def _loop(files: list[tuple[int, bytes]], depth: int, step: Callable[..., Any]) -> tuple[float, float]:
    """Milliseconds of one loop over all files, and the last loss."""
    ps, loss = _parameters(np.float32), np.nan
    start = perf_counter()
    for x, y in Prefetch(_Unpacked(files), depth, _moved):
        loss, ps = step(ps, x, y)
    return 1e3 * (perf_counter() - start), float(loss)


def _one_told(files: list[tuple[int, bytes]], depth: int, step: Callable[..., Any], elapsed_ms: float) -> Row:
    bus.emit(PrefetchRunBegun(depth))
    with record(kinds=(StageRan,)) as own:
        told_ms, loss = _loop(files, depth, step)
    took = dict.fromkeys(("load", "preprocess", "compute"), 0.0)
    for e in own:
        if isinstance(e, StageRan):
            took[e.stage] += (e.stop_ns - e.start_ns) / 1e6
    return Row(depth, elapsed_ms, took["load"], took["preprocess"], took["compute"], told_ms, loss)
