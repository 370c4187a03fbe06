"""The order of equations: never a higher peak than given, often the lowest there is, and the same bits."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings

import lab
from lab.graph.compiled import Compiled
from lab.graph.execute import run_arrays
from lab.graph.passes import ORDER, PASSES, stages
from lab.graph.passes.alive import Uses, alive, peak
from lab.graph.passes.memory import footprint
from lab.graph.passes.ordering import WAYS, needs, ordering
from tests.graph.graphs import executed, programs


def alive_slowly(graph, order):
    """The same by its definition: for each moment, every value that was made and is still to be read or given out."""
    uses, found = Uses(graph), []
    for place, k in enumerate(order):
        made = {n for j in order[: place + 1] for n in uses.made[j]}
        later = {n for j in order[place:] for n in uses.reads[j]} | uses.kept
        after = {n for j in order[place + 1 :] for n in uses.reads[j]} | uses.kept
        now = sum(uses.n_bytes[n] for n in made if n in later or n in uses.made[k])
        if isinstance(graph.equations[k].op.forward, np.ufunc) and not uses.kept.issuperset(uses.made[k]):
            before = {n for n in made if n in later and n not in uses.made[k]}
            kept = {n for n in made if n in after or n in uses.made[k]}
            now = max(sum(uses.n_bytes[n] for n in before), sum(uses.n_bytes[n] for n in kept))
        found.append(now)
    return found


def orders(graph):
    """Every order in which a small graph can run."""
    above = needs(graph)
    for order in permutations(range(len(above))):
        where = {k: i for i, k in enumerate(order)}
        if all(where[j] < where[k] for k, before in enumerate(above) for j in before):
            yield order


def wide(n):
    """Products that are all there before the first of them is summed."""

    def f(x):
        return tuple(lab.sum(y) for y in [lab.matmul(x, x) for _ in range(n)])

    return lab.make_graph(f)(np.ones((4, 4)))


@settings(max_examples=60, deadline=None)
@given(lines=programs())
def test_what_is_alive_is_what_its_definition_says(lines):
    graph = lab.make_graph(lambda x, y: executed(lines, x, y))(np.ones((3, 3)), np.ones((3, 3)))
    order = range(len(graph.equations))
    assert alive(graph) == alive_slowly(graph, list(order))
    for way in WAYS:
        found = way(Uses(graph), needs(graph))
        assert sorted(found) == list(order)
        assert Uses(graph).over(found) == alive_slowly(graph, found)


@settings(max_examples=60, deadline=None)
@given(lines=programs().filter(lambda lines: len(lines) <= 6))
def test_no_order_is_below_the_best_of_all_and_none_above_the_one_given(lines):
    graph = lab.make_graph(lambda x, y: executed(lines, x, y))(np.ones((3, 3)), np.ones((3, 3)))
    if len(graph.equations) <= 7:
        lowest = min(max(Uses(graph).over(order)) for order in orders(graph))
        assert lowest <= peak(ordering(graph)) <= peak(graph)
        assert footprint(ordering(graph)) <= footprint(graph)


@pytest.mark.parametrize("n", [2, 3])
def test_branches_are_finished_one_after_the_other_which_is_the_lowest_of_all_orders(n):
    graph = wide(n)
    lowest = min(max(Uses(graph).over(order)) for order in orders(graph))
    assert peak(ordering(graph)) == lowest < peak(graph)


def test_a_peak_does_not_grow_with_the_number_of_branches():
    assert peak(wide(40)) == 40 * 128 + 8
    assert peak(ordering(wide(40))) == 128 + 40 * 8
    assert [e.op.name for e in ordering(wide(40)).equations] == ["matmul", "sum"] * 40


def test_an_order_that_is_best_is_left_as_it_is():
    graph = lab.make_graph(lambda x: lab.exp(x @ x) @ x)(np.ones((4, 4)))
    assert [e.out for e in ordering(graph).equations] == [e.out for e in graph.equations]


def test_views_keep_what_they_look_at_and_outputs_stay_to_the_end():
    graph = lab.make_graph(lambda x: (lab.transpose(x @ x) @ x, lab.exp(x)))(np.ones((4, 4)))
    assert alive(graph) == [128, 128, 256, 256]
    assert alive(lab.make_graph(lambda x: x)(np.ones(4))) == []


def test_what_meets_other_ranks_keeps_its_order():
    text = """graph(a:f64[4,4]) { let
        b:f64[4,4] = matmul(a, a)
        c:f64[4,4] = matmul(a, a)
        d:f64[4,4] = all_reduce(a, axis_name='ranks', op='sum')
        e:f64[4,4] = all_reduce(c, axis_name='ranks', op='sum')
        f:f64[] = sum(b, axis=None, keepdims=False)
        g:f64[4,4] = all_reduce(b, axis_name='ranks', op='sum')
        h:f64[4,4] = add(d, e)
        i:f64[4,4] = add(h, g)
      in (f, i) }"""
    graph = lab.graph.parse(text)
    for way in WAYS:
        order = way(Uses(graph), needs(graph))
        assert [k for k in order if graph.equations[k].meets] == [2, 3, 5]


def test_the_gradients_of_a_deep_network_are_used_as_they_come():
    """Plain steps: each new weight is made when its gradient is there, not after all gradients are."""

    def step(x, *ws):
        def loss(*ws):
            y = x
            for w in ws:
                y = lab.tanh(y @ w)
            return lab.sum(y)

        gradients = lab.grad(loss, tuple(range(len(ws))))(*ws)
        return [lab.sum(lab.square(g)) for g in gradients]

    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(16, 16)) / 4 for _ in range(9)]
    graph = lab.make_graph(step)(*arrays)
    without = stages(graph, [name for name in ORDER if name not in ("ordering", "memory planning")])[-1].graph
    after = PASSES["ordering"](without)
    assert peak(after) < peak(without)
    assert footprint(after) <= footprint(without)
    for a, b in zip(run_arrays(without, arrays), run_arrays(after, arrays), strict=True):
        assert a.tobytes() == b.tobytes()
    for a, b in zip(Compiled(graph).arrays(arrays), run_arrays(graph, arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
