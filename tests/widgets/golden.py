"""Small recordings for the tests of views: written by hand, event by event, in the order that the engine promises."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from lab.events import (
    BackwardFinished,
    BackwardStarted,
    Bus,
    Evaluated,
    Event,
    GradientCleared,
    GradientStored,
    LeafUsed,
    OpRecorded,
    ParameterMeasured,
    Recording,
    RuleApplied,
    RunFinished,
    RunStarted,
    StepFinished,
    ValueSeen,
    ValueWritten,
)


def recorded(events: Iterable[Event], **options: object) -> Recording:
    """A Recording of these events, over a bus of its own."""
    bus, rec = Bus(), Recording(run="*", **options)  # type: ignore[arg-type]
    bus.attach(rec)
    for event in events:
        bus.emit(event)
    bus.detach(rec)
    return rec


def seen(node: int, role: str, value: object, source: int = -1, argument: int = -1) -> ValueSeen:
    a = np.asarray(value, np.float64)
    finite = a[np.isfinite(a)]
    low, high, mean = (finite.min(), finite.max(), finite.mean()) if finite.size else (math.nan,) * 3
    return ValueSeen(
        node, role, source, argument, a.shape, float(low), float(high), float(mean), float(np.sqrt((finite**2).sum())),
        int(a.size - finite.size), a,
    )  # fmt: skip


def leaf(node: int, name: str, value: object) -> list[Event]:
    a = np.asarray(value, np.float64)
    return [LeafUsed(node, name, a.shape, "float64"), seen(node, "value", a)]


def op(node: int, name: str, parents: tuple[int, ...], value: object, constants: tuple[str, ...] = ()) -> list[Event]:
    a = np.asarray(value, np.float64)
    texts = constants or ("",) * len(parents)
    return [OpRecorded(node, name, parents, a.shape, "float64", 0, texts, "", "cell.py", node), seen(node, "value", a)]


def rule(node: int, name: str, gradient: object, sent: dict[int, tuple[int, object]], n: int) -> list[Event]:
    targets = tuple(sent[i][0] if i in sent else -1 for i in range(n))
    contributions = [seen(t, "contribution", v, node, i) for i, (t, v) in sent.items()]
    return [seen(node, "gradient", gradient), RuleApplied(node, name, targets, 0), *contributions]


def stored(node: int, gradient: object, accumulated: bool = False) -> list[Event]:
    return [seen(node, "gradient", gradient), GradientStored(node, accumulated)]


def written(node: int, value: object) -> list[Event]:
    return [ValueWritten(node), seen(node, "value", value)]


def two_steps_of_descent() -> list[Event]:
    """x = 2, then twice: loss = x * x, backward, x -= 0.1 * grad, zero_grad."""
    events, x = leaf(1, "x", 2.0), 2.0
    for k in (2, 3):
        events += [*op(k, "multiply", (1, 1), x * x), BackwardStarted(k, 1, 0)]
        events += rule(k, "multiply", 1.0, {0: (1, x), 1: (1, x)}, 2)
        events += [*stored(1, 2 * x), BackwardFinished(k, 1, 0, "")]
        x -= 0.2 * x
        events += [*written(1, x), GradientCleared(1)]
    return events


FORWARD: list[Event] = [
    *leaf(1, "x", 2.0), *leaf(2, "y", 3.0), *op(3, "multiply", (1, 2), 6.0), *op(4, "add", (3, 1), 8.0),
]  # fmt: skip
"""z = x * y + x at x = 2, y = 3."""


def walk(accumulated: bool = False) -> list[Event]:
    return [
        BackwardStarted(4, 2, 0), *rule(4, "add", 1.0, {0: (3, 1.0), 1: (1, 1.0)}, 2),
        *rule(3, "multiply", 1.0, {0: (1, 3.0), 1: (2, 2.0)}, 2),
        *stored(2, 2.0, accumulated), *stored(1, 4.0, accumulated),
        BackwardFinished(4, 2, 0, ""),
    ]  # fmt: skip


def product_plus_x(n_walks: int = 1) -> Recording:
    events = list(FORWARD)
    for k in range(n_walks):
        events += walk(accumulated=k > 0)
    return recorded(events)


def training(losses: Iterable[float], every: int = 10) -> Recording:
    """A run with these losses; tested every so many steps, gradients of two parameters measured then."""
    losses = list(losses)
    events: list[Event] = [RunStarted("golden", len(losses), 2, 10, "Linear", "SGD")]
    for step, loss in enumerate(losses, 1):
        events.append(StepFinished(step, 0, loss, 64, 1.0))
        if step % every == 0:
            for k, name in enumerate(("0.weight", "0.bias")):
                norm = float(loss) / (k + 1)
                bad = 0 if math.isfinite(norm) else 3
                edges, counts = ((-1.0, 0.0, 1.0), (step, 2)) if not bad else ((), ())
                events.append(ParameterMeasured(step, name, "gradient", 100, norm, -1.0, 1.0, bad, edges, counts))
                events.append(ParameterMeasured(step, name, "value", 100, 2.0, -1.0, 1.0, 0, (-1.0, 1.0), (100,)))
            events.append(Evaluated(step, 0, "test", loss * 1.1, 0.5, 100))
    events.append(RunFinished("golden", "finished", len(losses), 99.0, ""))
    return recorded(events)


def falling(n: int) -> list[float]:
    return [2.0 * math.exp(-k / 40) + 0.1 * math.sin(k) ** 2 for k in range(n)]
