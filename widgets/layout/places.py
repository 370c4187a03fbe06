"""Places across the layers: each node as near to its neighbours as order and sizes allow, by least squares."""

from __future__ import annotations

from widgets.layout.layers import Layers

SWEEPS = 8
"""Passes over the layers; places have settled before that on graphs of 500 nodes."""
LOOSE, LIGHT = 0.02, 1e-5
"""Weights of a node with a single link, and of one that the caller calls light: they follow and do not pull."""


def heights(g: Layers, half: dict[int, float], gap: float, light: frozenset[int]) -> dict[int, float]:
    """Places across the layers: each node as near to the mean of its neighbours as order and sizes allow.

    Every layer is an isotonic regression (pool adjacent violators). Dummies weigh more, which keeps long edges
    straight; nodes with one link weigh little: they follow their neighbour and do not bend the main line.
    """
    y: dict[int, float] = {}
    for layer in g.layers:
        at = 0.0
        for k, i in enumerate(layer):
            at += (half[layer[k - 1]] + half[i] + gap) if k else 0.0
            y[i] = at
        middle = at / 2
        for i in layer:
            y[i] -= middle
    n = len(g.layers)
    mass = {i: LIGHT if i in light else 1.0 for i in y}
    for i in y:
        if i < g.n_nodes and i not in light and len(g.above.get(i, ())) + len(g.below.get(i, ())) == 1:
            mass[i] = LOOSE
    for sweep in range(SWEEPS):
        for k in range(n) if sweep % 2 == 0 else range(n - 1, -1, -1):
            layer = g.layers[k]
            sides = (g.above, g.below) if sweep >= SWEEPS // 2 else ((g.above,) if sweep % 2 == 0 else (g.below,))
            wanted = []
            for i in layer:
                near = [(y[j], mass[j]) for side in sides for j in side.get(i, ())]
                wanted.append(sum(at * w for at, w in near) / sum(w for _, w in near) if near else y[i])
            weight = [4.0 if i >= g.n_nodes else mass[i] for i in layer]
            y.update(zip(layer, spaced(wanted, weight, [half[i] for i in layer], gap), strict=True))
    return y


def spaced(wanted: list[float], weight: list[float], half: list[float], gap: float) -> list[float]:
    """The places nearest to `wanted` (weighted squares), in this order, with neighbours half + gap + half apart."""
    offset = [0.0] * len(wanted)
    for k in range(1, len(wanted)):
        offset[k] = offset[k - 1] + half[k - 1] + gap + half[k]
    blocks: list[list[float]] = []  # [mean, weight, how many]
    for target, w, shift in zip(wanted, weight, offset, strict=True):
        blocks.append([target - shift, w, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, heavy, many = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + mean * heavy) / (last[1] + heavy)
            last[1] += heavy
            last[2] += many
    flat = [mean for mean, _, many in blocks for _ in range(int(many))]
    return [base + shift for base, shift in zip(flat, offset, strict=True)]
