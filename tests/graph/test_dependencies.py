"""What waits for what in a graph, the longest chain, schedules on paper, and equations put together into tasks."""

import dataclasses
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lab
from lab.graph import Var, parse
from lab.graph.dependencies import costs_of, critical_path, needs_of, on_paper, priorities
from lab.graph.grouping import grouped
from lab.graph.passes import optimized
from tests.graph.graphs import executed, programs

LOOKS = ("transpose", "reshape")
"""Ops that give a view of their operand."""


@st.composite
def waiting(draw, most=9):
    """Some equations, each of which waits for some before it, and their costs."""
    n = draw(st.integers(1, most))
    needs = tuple(tuple(sorted(draw(st.sets(st.integers(0, k - 1), max_size=3)))) if k else () for k in range(n))
    costs = tuple(draw(st.lists(st.sampled_from([0.01, 0.04, 0.1, 1.0, 2.5]), min_size=n, max_size=n)))
    return needs, costs


def chains(needs):
    """Every way back from every equation, one by one."""

    @cache
    def back(k):
        return [[k], *([*way, k] for j in needs[k] for way in back(j))]

    return [way for k in range(len(needs)) for way in back(k)]


@given(made=waiting())
def test_the_critical_path_is_the_longest_of_all_chains(made):
    needs, costs = made
    longest = max(sum(costs[k] for k in way) for way in chains(needs))
    path = critical_path(needs, costs)
    assert list(path) in chains(needs)
    assert sum(costs[k] for k in path) == pytest.approx(longest)
    assert max(priorities(needs, costs)) == pytest.approx(longest)


@given(made=waiting(most=20), n_lanes=st.integers(1, 4))
def test_a_schedule_on_paper_respects_every_edge_and_wastes_no_lane(made, n_lanes):
    needs, costs = made
    slots = {slot.number: slot for slot in on_paper(needs, costs, n_lanes)}
    assert sorted(slots) == list(range(len(needs)))
    assert all(slots[j].stop <= slots[k].start for k, waits in enumerate(needs) for j in waits)
    for lane in range(n_lanes):
        mine = sorted((s.start, s.stop) for s in slots.values() if s.lane == lane)
        assert all(a[1] <= b[0] for a, b in pairwise(mine))
    makespan = max(s.stop for s in slots.values())
    work, path = sum(costs), max(priorities(needs, costs))
    assert max(work / n_lanes, path) - 1e-9 <= makespan <= work / n_lanes + path + 1e-9  # Graham's bound
    if n_lanes == 1:
        assert makespan == pytest.approx(work)


@given(made=waiting(most=24), grain=st.sampled_from([0.0, 0.1, 5.0]))
def test_tasks_hold_every_equation_once_and_wait_for_what_their_equations_wait_for(made, grain):
    needs, costs = made
    tasks = grouped(needs, costs, grain)
    assert sorted(k for task in tasks.members for k in task) == list(range(len(needs)))
    home = {k: i for i, task in enumerate(tasks.members) for k in task}
    for i, task in enumerate(tasks.members):
        assert list(task) == sorted(task)
        assert set(tasks.needs[i]) == {home[j] for k in task for j in needs[k]} - {i}
        assert all(j < i for j in tasks.needs[i])
        assert tasks.costs[i] == pytest.approx(sum(costs[k] for k in task))


def test_small_equations_go_together_and_large_ones_stay_apart():
    n = 8
    needs = ((), *(((0,),) * n), tuple(range(1, n + 1)))
    large, small = grouped(needs, (0.01, *(5.0,) * n, 0.01)), grouped(needs, (0.01, *(0.001,) * n, 0.01))
    assert len(large.members) == n + 2  # nobody waits longer than he must for what comes first
    assert len(small.members) == 1


def test_many_small_equations_become_tasks_that_are_worth_it_and_not_one():
    needs = ((),) * 1000
    tasks = grouped(needs, (0.02,) * 1000)
    assert all(0.05 < cost < 0.1 for cost in tasks.costs)


def test_who_writes_into_a_buffer_waits_for_all_that_read_what_was_there():
    graph = parse(
        "graph(a:f64[2,2]) { let b:f64[2,2]@0 = matmul(a, a) c:f64[2,2] = transpose(b, axes=(1, 0)) "
        "d:f64[2,2]@1 = matmul(c, a) e:f64[2,2]@0 = matmul(a, d) f:f64[2,2] = matmul(e, e) in (f) }"
    )
    assert needs_of(graph) == ((), (0,), (1,), (2,), (3,))
    graph = dataclasses.replace(
        graph, equations=(*graph.equations[:3], dataclasses.replace(graph.equations[3], inputs=(graph.inputs[0],) * 2),
                          graph.equations[4])
    )  # fmt: skip
    assert needs_of(graph) == ((), (0,), (1,), (), (3,))
    assert needs_of(graph, in_buffers=True) == ((), (0,), (1,), (0, 1, 2), (3,))


@settings(max_examples=30, deadline=None)
@given(lines=programs(), draw=st.data())
def test_a_planned_graph_run_in_any_order_that_its_needs_allow_overwrites_nothing_that_is_still_read(lines, draw):
    xs = [np.ones((3, 3)), np.ones((3, 3))]
    graph = optimized(lab.make_graph(lambda x, y: executed(lines, x, y))(*xs))
    needs = needs_of(graph, in_buffers=True)
    order: list[int] = []
    while len(order) < len(needs):
        ready = [k for k, waits in enumerate(needs) if k not in order and set(waits) <= set(order)]
        order.append(draw.draw(st.sampled_from(ready)))
    holds: dict[int, int] = {}  # in the order drawn, who wrote what each buffer holds
    written = {
        v: (b, k)
        for k, e in enumerate(graph.equations)
        if e.op.name not in LOOKS
        for v, b in zip(e.outs, e.buffer, strict=False)
        if b >= 0
    }
    for k in order:
        e = graph.equations[k]
        for a in e.inputs:
            if a in written:
                buffer, writer = written[a]
                assert holds[buffer] == writer
        holds.update(
            {buffer: k for buffer, writer in map(written.get, e.outs, [(-1, -1)] * len(e.outs)) if writer == k}
        )


def test_collectives_keep_their_order():
    graph = lab.make_graph(lambda x: x + 1.0)(np.ones(2))
    collective = next(op for op in lab.PRIMITIVES.values() if op.collective)
    meet = dataclasses.replace(graph.equations[0], op=collective, inputs=graph.inputs, params={})
    outs = [Var(10 + i, graph.inputs[0].spec) for i in range(3)]
    graph = dataclasses.replace(
        graph, equations=tuple(dataclasses.replace(meet, outs=(v,)) for v in outs), outputs=tuple(outs)
    )
    assert needs_of(graph) == ((), (0,), (1,))


def test_a_product_costs_more_than_a_sum_of_the_same_size_and_what_is_measured_counts():
    graph = lab.make_graph(lambda x: ((x @ x), x + x, lab.transpose(x)))(np.ones((300, 300)))
    product, plus, look = costs_of(graph)
    assert product > 2 * plus > 20 * look
    assert costs_of(graph, {1: 7.0}) == (product, 7.0, look)
