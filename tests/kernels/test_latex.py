"""Formulas as LaTeX: precedence kept, every function known, and the op table has no formula without it."""

from __future__ import annotations

import pytest

from lab.kernels.formula import ARITY, FUNCTIONS, Formula
from lab.ops import PRIMITIVES

CASES = {
    "x * y": r"x \, y",
    "x * 2": r"x \cdot 2",
    "2 * x": r"2 \, x",
    "x / y": r"\frac{x}{y}",
    "x ** y": r"x^{y}",
    "(x + y) ** 2": r"\left(x + y\right)^{2}",
    "exp(x) ** 2": r"\left(e^{x}\right)^{2}",
    "-x": "-x",
    "-(x + y)": r"-\left(x + y\right)",
    "-ct * sin(x)": r"\left(-\mathrm{ct}\right) \, \sin\left(x\right)",
    "x - (y - z)": r"x - \left(y - z\right)",
    "x - y - z": "x - y - z",
    "x - -y": r"x - \left(-y\right)",
    "(x > 0) * y": r"\left(x > 0\right) \, y",
    "x <= y": r"x \le y",
    "log1p(x + y)": r"\ln\left(1 + \left(x + y\right)\right)",
    "maximum(x, 0.5)": r"\max\left(x, 0.5\right)",
    "where(x > 0, ct, 0.0)": r"\begin{cases} \mathrm{ct} & \text{if } x > 0 \\ 0 & \text{else} \end{cases}",
    "beta * ct_out": r"\beta \, \mathrm{ct\_out}",
    "-ct / (x * ln2)": r"\frac{-\mathrm{ct}}{x \, \ln 2}",
    "exp(-x * x) / sqrtpi": r"\frac{e^{\left(-x\right) \, x}}{\sqrt{\pi}}",
    "sinc_slope(x, 1)": r"\operatorname{sinc}^{(1)}\left(x\right)",
    "xlogy(x, y) * 2": r"x \, \ln\left(y\right) \cdot 2",
    "where(logical_and(x == 0, y == 0), 0, 1)": (
        r"\begin{cases} 0 & \text{if } \left(x = 0\right) \land \left(y = 0\right) \\ 1 & \text{else} \end{cases}"
    ),
    "1e-08 + 0.1": r"1 \cdot 10^{-8} + 0.1",
}


@pytest.mark.parametrize("text", CASES)
def test_a_formula_reads_as_in_a_textbook(text: str) -> None:
    assert Formula(text).latex == CASES[text]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_its_latex_with_balanced_braces(name: str) -> None:
    n = ARITY.get(name, 1)
    text = Formula(f"{name}({', '.join('xyz'[:n])})").latex
    assert all(letter in text for letter in "xyz"[:n])
    assert text.count("{") == text.count("}")


def test_every_formula_of_the_op_table_has_its_latex() -> None:
    texts = [op.formula for op in PRIMITIVES.values() if op.formula and set(op.arguments) <= Formula(op.formula).names]
    assert len(texts) > 20
    assert all(Formula(text).latex for text in texts)
