"""What the engine is measured by: twenty workloads from one small operation to a block of a transformer.

Each is written once and takes the engine that shall do it. Data and first weights come from fixed seeds, so that all
engines begin with the same numbers, and `check` gives what must then agree: the first and the sixth loss of a training,
or a value and the sum of the sizes of each gradient's entries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle, pairwise
from typing import Any, NamedTuple

import numpy as np

from lab.data import digits

F = np.float32
Step = Callable[[], Any]
Made = tuple[Step, Callable[[], list[float]]]


class Workload(NamedTuple):
    """One row of the table.

    Attributes:
        about: in words.
        make: what gives the step to be timed, and the check, for an engine.
        aim: the largest ratio of times to the base that the project wants.
        units: operations in a step, where a time is told for each.
        base: the peer.
    """

    about: str
    make: Callable[[Any], Made]
    aim: float
    units: int = 1
    base: str = "torch"


def differentiated(e: Any, f: Callable[..., Any], leaves: Sequence[Any]) -> Made:
    """Value and gradients of a function."""
    if e.compiles:
        return e.differentiated(f, leaves)  # type: ignore[no-any-return]

    def step() -> Any:
        e.forget(leaves)
        value = f(*leaves)
        value.backward()
        return value

    def check() -> list[float]:
        value = step()
        return [float(value.item()), *(float(np.abs(e.gradient(x)).sum(dtype=np.float64)) for x in leaves)]

    return step, check


def trained(
    e: Any, loss_of: Callable[..., Any], parameters: Sequence[Any], batches: Sequence[tuple[Any, ...]], optimizer: Any
) -> Made:
    """Steps of a training, over the batches again and again."""
    turn = cycle(batches)
    if e.compiles:
        return e.trained(loss_of, parameters, turn, optimizer)  # type: ignore[no-any-return]

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of(parameters, *next(turn))
        loss.backward()
        optimizer.step()
        return loss

    def check() -> list[float]:
        losses = [step() for _ in range(6)]
        return [float(x.data if e.name == "micrograd" else x.item()) for x in (losses[0], losses[5])]

    return step, check


# --- many small operations ---------------------------------------------------------------------------------------


def chain(n_ops: int, n_entries: int, *, backward: bool = True) -> Callable[[Any], Made]:
    """y <- y a + b, again and again."""

    def make(e: Any) -> Made:
        x, a, b = leaves = [e.leaf(np.full(n_entries, value, F)) for value in (0.5, 0.999, 0.001)]

        def f(*_: Any) -> Any:
            y = x
            for _ in range(n_ops // 2):
                y = y * a
                y = y + b
            return y

        if backward:
            return differentiated(e, lambda *_: f().sum(), leaves)
        return f, lambda: [float(f().sum().item())]

    return make


def wide(e: Any) -> Made:
    """Fifty thousand products of one leaf, summed in pairs."""
    x, factors = e.leaf(np.full(1, 0.7, F)), (np.linspace(-1, 1, 50_000) + 0.25 / 50_000).tolist()

    def f(x: Any) -> Any:
        terms = [x * c for c in factors]
        while len(terms) > 1:
            pairs = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)]
            terms = pairs + terms[len(terms) - len(terms) % 2 :]
        return terms[0].sum()

    return differentiated(e, f, [x])


# --- networks ----------------------------------------------------------------------------------------------------


def two_moons() -> tuple[Any, Any]:
    """A hundred points in the plane, and -1 or 1 for each."""
    rng, t = np.random.default_rng(0), np.linspace(0, np.pi, 50)
    upper, lower = np.stack([np.cos(t), np.sin(t)], 1), np.stack([1 - np.cos(t), 0.5 - np.sin(t)], 1)
    points = np.concatenate([upper, lower]) + 0.1 * rng.normal(size=(100, 2))
    return points.astype(F), np.repeat([-1.0, 1.0], 50).astype(F)


def weights(sizes: Sequence[int], seed: int) -> list[Any]:
    """Weight and bias of each layer in turn."""
    rng, made = np.random.default_rng(seed), []
    for n_in, n_out in pairwise(sizes):
        made += [(rng.normal(size=(n_in, n_out)) * np.sqrt(2.0 / n_in)).astype(F), np.zeros(n_out, F)]
    return made


def network(e: Any, parameters: Sequence[Any], x: Any) -> Any:
    """Layers with relu between them."""
    for i in range(0, len(parameters), 2):
        x = x @ parameters[i] + parameters[i + 1]
        x = e.relu(x) if i + 2 < len(parameters) else x
    return x


def moons_by_tensors(e: Any) -> Made:
    """2-16-16-1 with hinge loss."""
    parameters = [e.leaf(w) for w in weights([2, 16, 16, 1], seed=2)]
    x, y = map(e.constant, two_moons())

    def loss(parameters: Any) -> Any:
        return e.relu(1 - y * network(e, parameters, x)[:, 0]).mean()

    return trained(e, loss, parameters, [()], e.sgd(parameters, 0.05))


def moons_by_scalars(e: Any) -> Made:
    """The same, every scalar a node of its own: 61,000 of them in a step."""
    flat = weights([2, 16, 16, 1], seed=2)
    layers = [([[e.leaf(w) for w in row] for row in weight.T.tolist()], [e.leaf(b) for b in bias.tolist()])
              for weight, bias in zip(flat[::2], flat[1::2], strict=True)]  # fmt: skip
    leaves = [leaf for rows, bias in layers for row in [*rows, bias] for leaf in row]
    points, signs = (a.tolist() for a in two_moons())

    def loss(_parameters: Any) -> Any:
        total: Any = 0.0
        for x, sign in zip(points, signs, strict=True):
            hidden: list[Any] = x
            for rows, bias in layers:
                sums = list(bias)
                for j, row in enumerate(rows):
                    for w, value in zip(row, hidden, strict=True):
                        sums[j] = sums[j] + w * value
                hidden = sums if rows is layers[-1][0] else [e.relu(s) for s in sums]
            total = e.relu(hidden[0] * -sign + 1.0) + total
        return total * (1.0 / len(points))

    return trained(e, loss, leaves, [()], e.sgd(leaves, 0.05))


def with_few_collections(make: Callable[[Any], Made]) -> Callable[[Any], Made]:
    """The same while Python looks for cycles less often, where the engine has a switch for that."""

    def made(e: Any) -> Made:
        step, check = make(e)

        def rarely() -> Any:
            with e.few_collections():
                return step()

        return rarely, check

    return made


def digit_batches(size: int) -> list[tuple[Any, Any]]:
    """The real digits in a fixed order, pixels from 0 to 1, in whole batches."""
    parts = digits()
    x = np.concatenate([part.inputs for part in parts]).reshape(-1, 64).astype(F)
    y = np.concatenate([part.targets for part in parts]).astype(np.int64)
    order = np.random.default_rng(0).permutation(len(y))
    return [(x[chosen], y[chosen]) for chosen in np.split(order[: len(y) // size * size], len(y) // size)]


def on_engine(e: Any, batches: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return [(e.constant(x), e.labels(y)) for x, y in batches]


def digits_network(optimizer: str) -> Callable[[Any], Made]:
    """64-128-128-10, batches of 64."""

    def make(e: Any) -> Made:
        parameters = [e.leaf(w) for w in weights([64, 128, 128, 10], seed=1)]
        rule = e.adam(parameters) if optimizer == "adam" else e.sgd(parameters, 0.05)
        batches = on_engine(e, digit_batches(64))
        return trained(e, lambda ps, x, y: e.cross_entropy(network(e, ps, x), y), parameters, batches, rule)

    return make


def convolutions(side: int) -> Callable[[Any], Made]:
    """Two convolutions 1-8-16, a pooling, a linear layer; batches of 32."""

    def make(e: Any) -> Made:
        rng, n = np.random.default_rng(3), 16 * (side // 2) ** 2
        first = (rng.normal(size=(8, 1, 3, 3)) * np.sqrt(2 / 9)).astype(F)
        second = (rng.normal(size=(16, 8, 3, 3)) * np.sqrt(2 / 72)).astype(F)
        last = (rng.normal(size=(n, 10)) * np.sqrt(1 / n)).astype(F)
        arrays = [first, np.zeros(8, F), second, np.zeros(16, F), last, np.zeros(10, F)]
        if side == 8:
            images = [(x.reshape(-1, 1, 8, 8), y) for x, y in digit_batches(32)]
        else:
            rng = np.random.default_rng(5)
            images = [(rng.normal(size=(32, 1, side, side)).astype(F), rng.integers(0, 10, size=32).astype(np.int64))
                      for _ in range(8)]  # fmt: skip
        parameters = [e.leaf(a) for a in arrays]

        def loss(parameters: Any, x: Any, y: Any) -> Any:
            k1, b1, k2, b2, w, b = parameters
            h = e.relu(e.conv2d(e.relu(e.conv2d(x, k1, b1)), k2, b2))
            return e.cross_entropy(e.max_pool2d(h).reshape(32, n) @ w + b, y)

        return trained(e, loss, parameters, on_engine(e, images), e.sgd(parameters, 0.02))

    return make


def transformer_block(e: Any) -> Made:
    """Width 64, 4 heads, 32 places, batches of 8."""
    rng = np.random.default_rng(7)
    x, target = (e.constant(rng.normal(size=(8, 32, 64)).astype(F)) for _ in range(2))
    rng = np.random.default_rng(8)

    def matrix(n: int, m: int) -> Any:
        return e.leaf((rng.normal(size=(n, m)) / np.sqrt(n)).astype(F))

    def same(value: float, n: int) -> Any:
        return e.leaf(np.full(n, value, F))

    wqkv, wo, w1, w2 = matrix(64, 192), matrix(64, 64), matrix(64, 256), matrix(256, 64)
    g1, g2, s1, s2, bo, c2 = *(same(1, 64) for _ in range(2)), *(same(0, 64) for _ in range(4))
    bqkv, c1 = same(0, 192), same(0, 256)

    def loss(parameters: Any) -> Any:
        g1, s1, wqkv, bqkv, wo, bo, g2, s2, w1, c1, w2, c2 = parameters
        parts = (e.layer_norm(x, g1, s1) @ wqkv + bqkv).reshape(8, 32, 3, 4, 16)
        parts = e.permute(parts, (2, 0, 3, 1, 4))
        seen = e.attention(parts[0], parts[1], parts[2])
        h = x + e.permute(seen, (0, 2, 1, 3)).reshape(8, 32, 64) @ wo + bo
        h = h + e.gelu(e.layer_norm(h, g2, s2) @ w1 + c1) @ w2 + c2
        return ((h - target) ** 2).mean()

    parameters = [g1, s1, wqkv, bqkv, wo, bo, g2, s2, w1, c1, w2, c2]
    return trained(e, loss, parameters, [()], e.sgd(parameters, 0.05))


# --- large arrays ------------------------------------------------------------------------------------------------


def elementwise(n: int) -> Callable[[Any], Made]:
    """Fourteen operations on n numbers."""

    def make(e: Any) -> Made:
        def f(x: Any) -> Any:
            y = e.tanh(x * 1.3 + 0.1)
            z = e.exp(-(y * y))
            s = e.sigmoid(z + x)
            return (e.sqrt(s * s + 1.0) * y - z).sum()

        return differentiated(e, f, [e.leaf(np.random.default_rng(11).normal(size=n).astype(F))])

    return make


def on_rows(f: Callable[..., Any], *, affine: bool = False) -> Callable[[Any], Made]:
    """A function of 4,096 rows of 1,024 numbers, labels and weights of them, and a scale and a shift."""

    def make(e: Any) -> Made:
        rng = np.random.default_rng(9)
        x, y = rng.normal(size=(4096, 1024)).astype(F), rng.integers(0, 1024, size=4096).astype(np.int64)
        u = rng.normal(size=(4096, 1024)).astype(F)
        scale = (1 + 0.1 * rng.normal(size=1024)).astype(F)
        shift = (0.1 * rng.normal(size=1024)).astype(F)
        leaves = [e.leaf(a) for a in ((x, scale, shift) if affine else (x,))]
        given = e.constant(u) if affine else e.labels(y)
        return differentiated(e, lambda *xs: f(e, *xs, given), leaves)

    return make


def reductions(e: Any, x: Any, _labels: Any) -> Any:
    """By both axes, of four kinds."""
    return (x.sum(0) ** 2).mean() + x.mean(1).sum() + e.variance(x, 1).sum() + e.largest(x, 1).sum()


def weighted_layer_norm(e: Any, x: Any, scale: Any, shift: Any, weights: Any) -> Any:
    """A weighted sum of it, so that no gradient vanishes."""
    return (e.layer_norm(x, scale, shift) * weights).sum()


WORKLOADS = {
    "w1_f_1": Workload("chain on 1 entry, forward", chain(1000, 1, backward=False), 0.70, 1000),
    "w1_fb_1": Workload("chain on 1 entry, forward and backward", chain(1000, 1), 0.60, 1000),
    "w1_f_32": Workload("chain on 32 entries, forward", chain(1000, 32, backward=False), 0.70, 1000),
    "w1_fb_32": Workload("chain on 32 entries, forward and backward", chain(1000, 32), 0.60, 1000),
    "w2_scalar": Workload("2-16-16-1, every scalar a node", moons_by_scalars, 0.25, base="micrograd"),
    "w2_scalar_gc": Workload(
        "the same under lab.gc_threshold()", with_few_collections(moons_by_scalars), 0.15, base="micrograd"
    ),
    "w2_tensor": Workload("2-16-16-1 on tensors", moons_by_tensors, 0.5),
    "w3_sgd": Workload("digits network, SGD", digits_network("sgd"), 0.70),
    "w3_adam": Workload("digits network, Adam", digits_network("adam"), 0.70),
    "w4": Workload("14 elementwise operations on 1e6", elementwise(10**6), 0.9),
    "w4_small": Workload("14 elementwise operations on 1e4", elementwise(10**4), 0.9),
    "w5_8": Workload("convolutions, images of 8 x 8", convolutions(8), 0.7),
    "w5_28": Workload("convolutions, images of 28 x 28", convolutions(28), 1.0),
    "w6": Workload("block of a transformer", transformer_block, 1.0),
    "w7_deep_10k": Workload("chain of 10,000", chain(10_000, 1), 0.8, 10_000),
    "w7_deep_100k": Workload("chain of 100,000", chain(100_000, 1), 0.8, 100_000),
    "w7_wide_100k": Workload("tree of 100,000", wide, 0.8, 100_000),
    "w8_softmax_ce": Workload("softmax and cross-entropy", on_rows(lambda e, x, y: e.cross_entropy(x, y)), 0.5),
    "w8_layernorm": Workload("layer norm", on_rows(weighted_layer_norm, affine=True), 0.5),
    "w8_reduce": Workload("sum, mean, variance, maximum", on_rows(reductions), 0.5),
}  # fmt: skip
