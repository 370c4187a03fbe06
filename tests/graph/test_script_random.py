"""Programs put together at random: where Python gives numbers, the script of the same source gives the same ones.

A script may refuse a program, since Python lets a name hold a number in one way and an array in another; most it reads.
"""

import random

import numpy as np
import pytest

import lab
from lab import tree
from lab.errors import LabError, ScriptError
from tests.graph.test_script import defined

HELPER = "def helper(p, q):\n    if p > q:\n        return p - q\n    return q + p * 0.5\n\n"
ARGUMENTS = [
    (1.5, -0.5, 3, np.array([1.0, -1.0])),
    (np.float64(0.3), np.float64(2.0), 2, np.array([0.5, 2.0])),
    (np.float32(-1.0), 0.25, np.int64(4), np.array([1, 2], "float32")),
]


class Program:
    """The source of a random function of three numbers and a vector."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.n_loops = 0

    def number(self, depth=0):
        kind = self.draw.random()
        if depth > 2 or kind < 0.4:
            return self.draw.choice(["a", "b", "c", "v", "i", "n", "1.5", "2", "0.5", "-1"])
        one, other = self.number(depth + 1), self.number(depth + 1)
        if kind < 0.8:
            return f"({one} {self.draw.choice('+-*')} {other})"
        return self.draw.choice([
            f"lab.tanh({one})", f"abs({one})", f"({one} / 4)", f"helper({one}, {other})", f"lab.sum(w * {one})",
            f"w[{self.draw.choice([0, 1, -1])}]", f"({one} if {self.test(depth + 1)} else {other})",
        ])  # fmt: skip

    def whole(self):
        return f"(i {self.draw.choice(['+', '-', '*', '%', '//'])} {self.draw.choice([2, 3])})"

    def test(self, depth=0):
        one, other = self.number(depth + 1), self.number(depth + 1)
        kind = self.draw.random()
        if depth > 2 or kind < 0.6:
            return f"{one} {self.draw.choice(['<', '>', '<=', '>=', '==', '!='])} {other}"
        if kind < 0.8:
            return f"({self.test(depth + 1)} {self.draw.choice(['and', 'or'])} {self.test(depth + 1)})"
        return self.draw.choice([f"not {self.test(depth + 1)}", f"{self.whole()} == 0", f"{one} < {other} < 2.5"])

    def block(self, depth, most=2):
        lines = [line for _ in range(self.draw.randint(1, most)) for line in self.statement(depth)]
        return ["    " + line for line in lines]

    def statement(self, depth):
        kind = self.draw.random()
        if depth > 2 or kind < 0.45:
            name = self.draw.choice("abcv")
            return [self.draw.choice([
                f"{name} = {self.number()}", f"{name} = {name} {self.draw.choice('+-*')} {self.number()}",
                f"a, b = {self.number()}, {self.number()}", f"i = {self.whole()}", f"w = lab.tanh(w + {self.number()})",
                f"v = (a, b)[{self.draw.choice('01')}]",
            ])]  # fmt: skip
        if kind < 0.7:
            lines = [f"if {self.test()}:", *self.block(depth + 1)]
            if self.draw.random() < 0.3 and not self.n_loops:
                lines.append("    return a, b, c")
            return [*lines, "else:", *self.block(depth + 1)] if self.draw.random() < 0.5 else lines
        self.n_loops += 1
        if kind < 0.85:
            turns = self.draw.choice(["3", "n", "1, n", "n, 0, -1", "i"])
            return [f"for i in range({turns}):", *self.block(depth + 1)]
        count = f"t{self.n_loops}"
        head = f"while {count} < {self.draw.choice(['n', '3'])} and {self.test()}:"
        return [f"{count} = 0", head, *self.block(depth + 1), f"    {count} += 1"]

    def text(self):
        body = ["    c = a * b", "    v = 1", "    i = 0", *self.block(0, 6), "    return a, b, c"]
        return HELPER + "def f(a, b, n, w):\n" + "\n".join(body) + "\n"


def arguments(row):
    return [x if isinstance(x, int | float) and not isinstance(x, np.generic) else lab.tensor(x) for x in row]


def expected(f, row):
    """What Python gives; None where it fails, or where rounding decides."""
    try:
        out = f(*arguments(row))
    except LabError:
        return None
    values = [np.asarray(x.numpy() if isinstance(x, lab.Tensor) else x, float) for x in tree.flatten(out)[0]]
    return values if all(np.all(np.abs(v) < 1e9) for v in values) else None


def compared(seed):
    """How many rows of arguments gave the same, and how many were refused."""
    f = defined(Program(seed).text(), f"<random {seed}>")
    script, same, refused = lab.script(f), 0, 0
    for row in ARGUMENTS:
        with np.errstate(all="ignore"):
            wanted = expected(f, row)
            if wanted is None:
                continue
            try:
                found = script(*arguments(row))
            except ScriptError:
                refused += 1
                continue
        lab.graph.verify(script.graph(*arguments(row)))
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-4, atol=1e-5, err_msg=Program(seed).text())
        same += 1
    return same, refused


@pytest.mark.parametrize("seeds", [range(k, k + 10) for k in range(0, 60, 10)], ids=lambda seeds: str(seeds.start))
def test_a_random_program_gives_what_python_gives(seeds):
    same, refused = map(sum, zip(*map(compared, seeds), strict=True))
    assert same >= 3 * refused
    assert same >= 10
