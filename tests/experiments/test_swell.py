"""Expression swell: nested sines have counts that can be written down, and the tape has no more than what ran."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import lab
from lab.errors import ArgumentError, ConcretizationError, GradientError
from lab.events import OpRecorded, SwellMeasured


def test_nested_sines_have_the_counts_of_the_formula():
    for row in lab.measure_swell(lab.sin, 7).rows:
        d = row.depth  # d cosines, of which the k-th has k sines within, and d - 1 products
        assert row.n_ops == d + d * (d - 1) // 2 + d - 1
        assert row.n_ops_shared == d + (d - 1) + (d - 1)
        assert row.n_tape == d
        assert row.n_gradient == 3 * d  # sine, cosine and product of each


def test_the_expression_is_the_derivative():
    x = sympy.Symbol("x", real=True)
    (row,) = [r for r in lab.measure_swell(lambda x: x * lab.sin(x), 2).rows if r.depth == 2]
    inner = x * sympy.sin(x)
    expected = sympy.diff(inner * sympy.sin(inner), x)
    assert sympy.simplify(sympy.sympify(row.expression, {"x": x}) - expected) == 0
    assert row.n_ops == sympy.count_ops(sympy.sympify(row.expression, {"x": x}))


def test_the_tape_has_what_is_recorded_when_it_runs():
    def f(x):
        return 4.0 * x * (1.0 - x)

    found = lab.measure_swell(f, 3)
    x = lab.tensor(0.3, requires_grad=True)
    with lab.record(kinds=[OpRecorded]) as rec:
        f(f(f(x)))
    assert found.rows[-1].n_tape == len(rec) == 9
    growth = [b.n_ops / a.n_ops for a, b in zip(found.rows, found.rows[1:], strict=False)]
    assert min(growth) > 2


def test_it_stops_behind_an_expression_that_is_too_large():
    found = lab.measure_swell(lambda x: 4.0 * x * (1.0 - x), 9, most=50)
    assert [r.depth for r in found.rows] == [1, 2, 3]
    assert found.rows[-2].n_ops <= 50 < found.rows[-1].n_ops
    assert found.stopped
    assert not lab.measure_swell(lab.sin, 2, most=4).stopped


def test_each_depth_is_told():
    found = lab.measure_swell(lab.sin, 3)
    assert [e for e in found.recording if isinstance(e, SwellMeasured)] == [SwellMeasured(*r) for r in found.rows]


def test_beside_the_domain_is_counted_without_a_warning():
    assert lab.measure_swell(lab.log, 4).rows[-1].n_tape == 4


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: lab.measure_swell(lab.sin, 0), ArgumentError, "at least 1"),
    (lambda: lab.measure_swell(lab.sin, 2.5), ArgumentError, "at least 1"),
    (lambda: lab.measure_swell(lab.sin, 2, at=np.nan), ArgumentError, "a finite number"),
    (lambda: lab.measure_swell(lambda x: x * np.ones(2), 2), ArgumentError, "measure_swell needs a function that"),
    (lambda: lab.measure_swell("sin"), ArgumentError, "needs a function"),
    (lambda: lab.measure_swell(lambda x: x if x > 0 else -x), ConcretizationError, "value"),
    (lambda: lab.measure_swell(lambda x: 2.0), GradientError, "nothing on the tape"),
])  # fmt: skip
def test_what_cannot_be_counted_is_refused_in_three_lines(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 3
