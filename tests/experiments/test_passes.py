"""Pass by pass: every number that is shown is that of a graph that was made and run."""

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, ConcretizationError
from lab.events import PassesBegun, PassFinished
from lab.experiments.passes import changes
from lab.graph.parsing import parse
from lab.graph.passes import ORDER
from widgets import PassesView


def loss(x, w):
    y = lab.tanh(x @ w)
    return lab.sum(y * y) * 1.0 + lab.sum(lab.tanh(x @ w))


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    return lab.measure_passes(loss, rng.normal(size=(6, 4)), rng.normal(size=(4, 3)), repeats=1)


def test_every_pass_has_a_row_and_the_compiled_function_the_last(found):
    assert [r.name for r in found.rows] == ["as traced", *ORDER, "compiled"]
    assert [e for e in found.recording if isinstance(e, PassFinished)] == [PassFinished(*r) for r in found.rows]
    assert found.recording[0] == PassesBegun("loss", tuple(r.name for r in found.rows), 1, False)
    assert all(r.run_us > 0 for r in found.rows)
    assert "kernels" in repr(found)


def test_counts_are_those_of_the_graphs(found):
    for row in found.rows[:-1]:
        graph = parse(row.text)
        assert row.n_kernels == len(graph.equations)
        assert row.n_equations >= row.n_kernels
    first, last = found.rows[0], found.rows[-1]
    assert (first.n_kernels, last.n_kernels) == (9, 2)  # two products, two tanh, a square, two sums, times 1, plus
    x, w, y = 6 * 4 * 8, 4 * 3 * 8, 6 * 3 * 8
    assert last.n_bytes == (x + w + y) + (y + 8)  # the product, then one loop that reads it and gives a number
    assert "def step(a, b):" in last.text
    by_name = {r.name: r for r in found.rows}
    assert by_name["common subexpressions"].n_merged == 2
    assert by_name["fusion"].n_made == 1


def test_what_a_pass_did_is_counted_from_the_graphs():
    before = parse("graph(a:f64[]) { let b:f64[] = exp(a) c:f64[] = tanh(a) d:f64[] = exp(a) e:f64[] = add(b, d) "
                   "in (e) }")  # fmt: skip
    after = lab.graph.passes.optimized(before, ["common subexpressions", "dead code"])
    shared = lab.graph.passes.optimized(before, ["common subexpressions"])
    assert changes(before, shared) == (0, 1, 0)
    assert changes(shared, after) == (0, 0, 1)


def test_the_view_tells_what_was_measured(found):
    view = PassesView(found)
    end = len(found.recording)
    figure = view.picture_at(end).figure
    assert [list(line.y) for line in figure.data] == [
        [r.n_kernels for r in found.rows],
        [r.n_bytes / 1e3 for r in found.rows],
        [r.run_us for r in found.rows],
    ]
    assert "compiled: loops over kept buffers; 2 kernels" in view.sentence_at(end)
    assert "def step(a, b):" in view.text_at(end)
    assert "nothing to do" in view.text_at(5)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: lab.measure_passes("f"), ArgumentError),
        (lambda: lab.measure_passes(lambda x: x, 1.0, repeats=0), ArgumentError),
        (lambda: lab.measure_passes(lambda x: x if x > 0 else -x, 1.0), ConcretizationError),
    ],
)
def test_bad_arguments_are_said_in_three_lines(call, error):
    with pytest.raises(error) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 3
