"""Exercises of lesson 06: an evaluation that lets go of its graphs, and how many arrays a chain in pieces holds.

A graph is alive as long as an array is that only its operations keep: that is looked at here, not asked of the learner.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lab.autograd import no_grad, tensor
from lab.teach.exercise import Case, Check, Exercise, Mutant, Wrong
from lab.teach.plain import Plain, first_difference

# --- letting go ------------------------------------------------------------------------------------------------------


class Evaluated(NamedTuple):
    """What an evaluation did."""

    mean: Any
    alive: int
    """Graphs that were alive at the same time, at most."""
    left: int
    """Those that the result keeps alive."""
    gradient: int
    """1 if a gradient was left behind."""


ENOUGH = 2
"""Graphs at once: a name may still hold the last one while the next is built."""


def of_batches(mean_loss: Callable[..., Any], *batches: float) -> Plain:
    """What an evaluation over some batches does, as an `Evaluated`.

    Example:
        >>> of_batches(lambda loss_of, batches: loss_of(batches[0]).item(), 0.0, 1.0)
        (0.0, 1, 0, 0)
    """
    x = tensor(np.ones(1000), requires_grad=True)
    middles: list[weakref.ref[Any]] = []
    most = 0

    def n_alive() -> int:
        return sum(middle() is not None for middle in middles)

    def loss_of(batch: float) -> Any:
        nonlocal most
        middle = (x * batch).sin()
        middles.append(weakref.ref(middle.value))
        most = max(most, n_alive())
        return middle.sin().mean()

    mean = mean_loss(loss_of, list(batches))
    return tuple(Evaluated(mean, max(most, n_alive()), n_alive(), int(x.grad is not None)))


def _lets_go(case: Case, value: Plain) -> Wrong | None:
    """The mean is right, and graphs do not pile up."""
    if not isinstance(value, tuple):
        return None
    found, expected = Evaluated(*value), float(np.mean(np.sin(np.sin(case))))
    if found.mean is None:
        return Wrong("It returned nothing.", _shown(case), "the mean", "give it back by `return`")
    difference = first_difference(found.mean, expected, ("mean",), 1e-6)
    if difference:
        return Wrong(f"{_shown(case)}: {difference[0]} is wrong.", difference[1], difference[2])
    if found.alive > ENOUGH:
        return Wrong(f"{_shown(case)}: graphs pile up.", f"{found.alive} are alive at once", "one after the other")
    if found.gradient:
        return Wrong(f"{_shown(case)}: the leaf has a gradient now.", "x.grad is set", "x.grad as it was: None")
    return None


def _shown(case: Case) -> str:
    return f"Over {len(case)} batch{'es' * (len(case) > 1)}"


def _tensor_total(loss_of: Any, batches: Sequence[Any]) -> Any:
    total = 0.0
    for batch in batches:
        total = total + loss_of(batch)
    return total / len(batches)


def _walked(loss_of: Any, batches: Sequence[Any]) -> float:
    total = 0.0
    for batch in batches:
        loss = loss_of(batch)
        loss.backward()
        total += loss.item()
    return total / len(batches)


def _each_divided(loss_of: Any, batches: Sequence[Any]) -> float:
    total = 0.0
    for batch in batches:
        total = (total + loss_of(batch).item()) / len(batches)
    return total


def _inside(loss_of: Any, batches: Sequence[Any]) -> list[float]:
    with no_grad():
        return [loss_of(batch).item() for batch in batches]


MEAN_LOSS = Exercise(
    name="mean_loss",
    task="Return the mean of loss_of(batch) over the batches, and let go of each graph before the next.",
    stub='''\
def mean_loss(loss_of, batches):
    total = 0.0
    for batch in batches:
        total = total + loss_of(batch)
    return total / len(batches)
''',
    arguments=("batches",),
    results=("mean",),
    answer=lambda loss_of, batches: float(np.mean(_inside(loss_of, batches))),
    call=of_batches,
    checks=(
        Check("the mean over five batches, graphs one after the other", [(0.5, 1.0, -0.25, 2.0, 1.5)], _lets_go),
        Check("over more, and over one", [(*np.linspace(0.1, 1.2, 12).tolist(),), (0.75,)], _lets_go),
    ),
    mutants=(
        Mutant("the total is a tensor, with every graph behind it", _tensor_total,
               "add numbers, not tensors: .item() gives the number alone"),
        Mutant("all graphs are let go only at the end", lambda loss_of, batches: _tensor_total(loss_of, batches).item(),
               "at the end it is too late: take the number of each loss as soon as it is there"),
        Mutant("backward is called, which leaves a gradient", _walked,
               "backward frees what was saved, but adds to gradients that the next step of a training would use"),
        Mutant("the sum is not divided", lambda loss_of, batches: sum(_inside(loss_of, batches)),
               "a mean is the sum over the number of batches"),
        Mutant("only the last batch counts", lambda loss_of, batches: _inside(loss_of, batches)[-1],
               "`total = ...` forgets what was there: add to it"),
        Mutant("only the last batch is added, and then divided", lambda loss_of, batches: _inside(
               loss_of, batches)[-1] / len(batches), "`total = ...` forgets what was there: add to it"),
        Mutant("the first batch is left out", lambda loss_of, batches: sum(
               _inside(loss_of, batches[1:])) / len(batches), "begin with 0.0 and add every batch"),
        Mutant("the total is divided in every round", _each_divided, "divide once, behind the loop"),
        Mutant("it gives all the losses", _inside, "their sum over their number"),
    ),
    hints=(
        "who holds the graph of the first batch when the last one runs?",
        "loss_of(batch).item() is a number, and holds nothing",
    ),
    show=_shown,
)  # fmt: skip

# --- how many arrays are held ----------------------------------------------------------------------------------------

MOST_HELD = Exercise(
    name="most_held",
    task="Return how many arrays a chain of n operations in k checkpointed pieces holds at most, x among them.",
    stub='''\
def most_held(n, k):
    return 1 + n
''',
    arguments=("n", "k"),
    results=("number of arrays",),
    answer=lambda n, k: k + n // k,
    checks=(
        Check("16 operations in 4 pieces", [(16, 4)]),
        Check("fewer pieces, and more", [(12, 3), (60, 4), (60, 15), (100, 10)]),
        Check("one piece for all, and one for each: nothing is gained", [(12, 1), (12, 12)]),
    ),
    mutants=(
        Mutant("nothing is forgotten, as in a plain chain", lambda n, k: 1 + n,
               "a piece keeps what goes in; what it computed is there only while it runs"),
        Mutant("x is left out", lambda n, k: k - 1 + n // k,
               "x goes into the first piece, so it is one of the inputs that are kept"),
        Mutant("the inputs of the pieces are left out", lambda n, k: n // k,
               "each piece keeps what goes into it, and there are k pieces"),
        Mutant("only one input is kept", lambda n, k: 1 + n // k,
               "all pieces wait for backward at the same time, each with its input"),
        Mutant("the piece that runs is left out", lambda n, k: k,
               "backward runs one piece again: what does that one hold meanwhile?"),
        Mutant("the input of the piece that runs is counted twice", lambda n, k: k + n // k + 1,
               "its input is among the k that are kept"),
        Mutant("all pieces are run again at once", lambda n, k: k + n,
               "backward goes piece by piece, and forgets one before it runs the next"),
        Mutant("the larger of both is taken", lambda n, k: max(k, n // k),
               "inputs and the piece that runs are there at the same time: add them"),
        Mutant("inputs and pieces are multiplied", lambda n, k: k * (n // k),
               "that is all n of them again: only one piece runs at a time"),
        Mutant("it is the least over all k", lambda n, k: 2 * n**0.5,
               "k is given, and may be a bad one"),
        Mutant("inputs are taken away", lambda n, k: n - k,
               "count what is there: the inputs, and what one piece computes"),
    ),
    hints=(
        "just before backward: which arrays are there? Then backward runs the last piece again: which come?",
        "k inputs wait, and the piece that runs has n / k results",
        "k + n // k",
    ),
)  # fmt: skip
