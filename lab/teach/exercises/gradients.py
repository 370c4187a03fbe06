"""Exercises of lesson 00: the rule of a product, and the loop of training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lab.teach.exercise import Check, Exercise, Mutant

_RNG = np.random.default_rng(0)

MULTIPLY_RULE = Exercise(
    name="multiply_rule",
    task="Given the gradient ct of a product x * y, return the gradients of x and of y.",
    stub='''\
def multiply_rule(ct, x, y):
    return ct, ct
''',
    arguments=("ct", "x", "y"),
    results=("gradient of x", "gradient of y"),
    answer=lambda ct, x, y: (ct * y, ct * x),
    checks=(
        Check("the numbers of the picture", [(1.0, 2.0, 3.0)]),
        Check("a gradient ct other than 1", [(5.0, 2.0, 3.0), (-0.5, 4.0, 0.25)]),
        Check("factors that are zero or negative", [(2.0, 0.0, 3.0), (2.0, -1.5, 0.0)]),
        Check("whole arrays, entry by entry", [tuple(_RNG.normal(size=(3, 2, 3)))]),
    ),
    mutants=(
        Mutant("the two results are swapped", lambda ct, x, y: (ct * x, ct * y),
               "by how much does x * y grow when only x grows by 1?"),
        Mutant("the incoming gradient ct is left out", lambda ct, x, y: (y + 0 * ct, x + 0 * ct),
               "what comes in from further up has to be passed on: where is ct?"),
        Mutant("the rule is that of addition", lambda ct, x, y: (ct, ct),
               "a sum passes ct on unchanged. In a product x counts y times: look at the edge labels above"),
        Mutant("ct is added where it has to be multiplied", lambda ct, x, y: (ct + y, ct + x),
               "along one path slopes multiply; they add up only where paths meet"),
        Mutant("both gradients are the product itself", lambda ct, x, y: (ct * x * y, ct * x * y),
               "x * y is the value. The gradient says how fast it changes"),
        Mutant("only one gradient is returned", lambda ct, x, y: ct * y,
               "a product has two factors, and each of them gets a gradient"),
        Mutant("the sign is turned", lambda ct, x, y: (-ct * y, -ct * x),
               "if x grows and y is positive, does the product fall?"),
        Mutant("it divides where it has to multiply", lambda ct, x, y: (ct / y, ct / x),
               "for x * y = 2 * 3: how much does the product grow when 2 becomes 3?"),
    ),
    hints=(
        "hold y fast and move only x: how much does the product move?",
        "x * y moves y times as fast as x does; and what comes in is multiplied by that",
        "look at the label of the edge from x * y to x in the picture: it is the first result",
    ),
)  # fmt: skip


def train_on_a_bowl(
    loop: Callable[..., object], start: tuple[float, ...], learning_rate: float, n_steps: int
) -> object:
    """Let a training loop descend the bowl sum(w * w) from `start`; where it arrives."""
    from lab.autograd import Tensor, tensor
    from lab.optim import SGD

    w = tensor(np.array(start), requires_grad=True)

    def loss() -> Tensor:
        return (w * w).sum()

    loop(loss, SGD([w], learning_rate=learning_rate), n_steps)
    return w.numpy().copy()


def _steps(order: str, n_rounds: Callable[[int], int] = lambda n: n) -> Callable[..., None]:
    """A training loop that does in each round what the letters say: z zero_grad, b backward, s step."""

    def loop(loss: Any, optimizer: Any, n_steps: int) -> None:
        act = {"z": optimizer.zero_grad, "b": lambda: loss().backward(), "s": optimizer.step}
        for _ in range(n_rounds(n_steps)):
            for letter in order:
                act[letter]()

    return loop


def _one_graph(loss: Any, optimizer: Any, n_steps: int) -> None:
    value = loss()
    for _ in range(n_steps):
        optimizer.zero_grad()
        value.backward()
        optimizer.step()


TRAINING_LOOP = Exercise(
    name="training_loop",
    task="Train for n_steps steps: loss() computes the loss, optimizer has zero_grad() and step().",
    stub='''\
def training_loop(loss, optimizer, n_steps):
    for _ in range(n_steps):
        loss().backward()
        optimizer.step()
''',
    arguments=("start", "learning_rate", "n_steps"),
    results=("vector of weights at the end",),
    answer=_steps("zbs"),
    call=train_on_a_bowl,
    checks=(
        Check("one step", [((3.0, -2.0), 0.1, 1)]),
        Check("several steps", [((3.0, -2.0), 0.1, 2), ((3.0, -2.0), 0.1, 5)]),
        Check("no step at all", [((1.0, 1.0), 0.1, 0)]),
        Check("another learning rate", [((0.5, 4.0), 0.3, 4)]),
    ),
    mutants=(
        Mutant("the gradients of earlier steps are never cleared (zero_grad is missing, or outside the loop)",
               _steps("bs"), "backward adds to .grad: what is in it when the second step begins?"),
        Mutant("the weights never move (there is no step)", _steps("bz"), "what changes the weights?"),
        Mutant("step finds no gradient (nothing fills .grad before it, or zero_grad has just cleared it)", _steps("zs"),
               "step walks along what is in .grad at that moment: is anything there?"),
        Mutant("there is one step too few", _steps("zbs", lambda n: max(n - 1, 0)), "count the rounds for n_steps = 1"),
        Mutant("there is one step too many", _steps("zbs", lambda n: n + 1), "count the rounds for n_steps = 1"),
        Mutant("it stops after the first step", _steps("zbs", lambda n: min(n, 1)),
               "does something leave the loop in its first round?"),
        Mutant("it makes exactly one step, whatever n_steps says", _steps("zbs", lambda n: 1), "where is the loop?"),
        Mutant("every gradient counts twice (backward, or step, runs twice in a round)", _steps("zbbs"),
               "how often is each of the three called in one round?"),
        Mutant("one graph is used for all steps (loss() is called before the loop)", _one_graph,
               "the weights change in every step: the loss has to be computed anew from them"),
    ),
    hints=(
        "three things happen in each step: clear, backward, step. In which order?",
        "call loss() in every round: it builds a new graph from the weights as they are now",
        "before backward runs, .grad has to be empty",
    ),
)  # fmt: skip
