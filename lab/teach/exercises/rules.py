"""Exercise of lesson 02: a rule of one's own, for a function in which every result depends on every argument."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.teach.exercise import Case, Check, Exercise, Mutant


def _case(x: list[float], ct: list[float]) -> Case:
    e = np.exp(np.array(x) - max(x))
    return e / e.sum(), np.array(ct)


def _jacobian(p: Any) -> Any:
    return np.diag(p) - np.outer(p, p)


SOFTMAX_RULE = Exercise(
    name="softmax_rule",
    task="Given p = softmax(x) and the gradient ct of p, return the gradient of x.",
    stub='''\
def softmax_rule(p, ct):
    return ct * p * (1 - p)
''',
    arguments=("p", "ct"),
    results=("gradient of x",),
    answer=lambda p, ct: p * (ct - (ct * p).sum()),
    checks=(
        Check("only the first share counts", [_case([1.0, 2.0, 0.5], [1.0, 0.0, 0.0])]),
        Check("another one counts", [_case([1.0, 2.0, 0.5], [0.0, 0.0, 1.0]), _case([0.0, 3.0], [0.0, -2.0])]),
        Check("all count equally: the shares add up to 1, whatever x is", [_case([1.0, -1.0, 0.0, 2.0], [3.0] * 4)]),
        Check("any gradient", [_case([0.3, -0.7, 1.1, 0.0], [0.5, -1.0, 2.0, 0.25])]),
    ),
    mutants=(
        Mutant("each share is taken to depend on its own x alone", lambda p, ct: ct * p * (1 - p),
               "a larger x[1] also makes p[0] smaller: everything off the diagonal is missing"),
        Mutant("the sum is forgotten", lambda p, ct: ct * p,
               "that is the rule of exp. The denominator depends on x, too: something has to be taken away"),
        Mutant("the sum of ct is taken without its weights p", lambda p, ct: p * (ct - ct.sum()),
               "weigh each ct with its share p before they are added"),
        Mutant("the mean is taken for the sum", lambda p, ct: p * (ct - (ct * p).mean()),
               "the shares p are weights that add up to 1 already"),
        Mutant("the last factor p is left out", lambda p, ct: ct - (ct * p).sum(),
               "check a share near 0: can its x change anything?"),
        Mutant("the sign is turned", lambda p, ct: p * ((ct * p).sum() - ct),
               "if x[0] grows, does p[0] fall?"),
        Mutant("the incoming gradient ct is left out", lambda p, ct: p * (1 - p) + 0 * ct,
               "what comes in has to be passed on: where is ct?"),
        Mutant("the diagonal is forgotten", lambda p, ct: -p * (ct * p).sum(),
               "p[0] grows with its own x[0]: the part ct * p is missing"),
        Mutant("it is the sum alone", lambda p, ct: (ct * p).sum() + 0 * p,
               "each x gets a gradient of its own: ct minus that sum, times p"),
        Mutant("the whole Jacobian is returned", lambda p, ct: _jacobian(p),
               "a rule gives the product ct @ J, which has the shape of x"),
        Mutant("what is taken away is a column, not a number", lambda p, ct: p * (ct - ct * p.sum()),
               "p.sum() is 1: what has to be added up is ct * p"),
    ),
    hints=(
        "p = e / e.sum() with e = exp(x): a larger x[0] makes p[0] larger and all others smaller",
        "the Jacobian is diag(p) minus the table of p[i] * p[j]: multiply it with ct",
        "take the mean of ct, weighted by p, from ct; then multiply by p",
    ),
)  # fmt: skip
