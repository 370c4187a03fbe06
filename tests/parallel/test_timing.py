"""Times of collectives by size and bytes on the root's link: what is measured, what is simulated, and what is told."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, PlanError
from lab.events import LinkFitted, RootLinkMeasured, TimeMeasured, TimesBegun, TimeSimulated
from lab.parallel import check_plan, chunks_of, plan_of
from lab.parallel.paper.cost import Link, Network
from lab.parallel.paper.simulate import crossing, predict
from lab.parallel.timing import ROOTED, Timed, _crossings, _fitted

SIZES = [64, 1024, 16384]


def test_every_algorithm_is_measured_and_simulated_with_every_size_and_told():
    found = lab.measure_collectives(algorithms=["naive", "ring"], sizes=SIZES, world_size=3, repeats=2)
    rec = found.recording
    assert rec[0].operation == "all_reduce"
    assert isinstance(rec[0], TimesBegun)
    assert (rec[0].world_size, rec[0].where, rec[0].repeats) == (3, "threads", 2)
    wanted = [(name, n) for n in SIZES for name in ("naive", "ring")]
    for kind, field in ((TimeMeasured, "measured_ms"), (TimeSimulated, "simulated_ms")):
        told = [e for e in rec if isinstance(e, kind)]
        assert [(e.algorithm, e.n_bytes) for e in told] == wanted
        assert [e.elapsed_ms for e in told] == [getattr(row, field) for row in found.rows]
    assert all(row.measured_ms > 0 for row in found.rows)
    [link] = [e for e in rec if isinstance(e, LinkFitted)]
    assert (link.latency_s, link.bytes_per_s, link.fitted_to) == (
        found.link.latency_s, found.link.bytes_per_s, "naive",
    )  # fmt: skip


@pytest.mark.parametrize("plan", ["ring", "naive", "tree"])
@pytest.mark.parametrize("n", [2, 4, 5])
def test_a_link_is_found_again_from_what_it_would_take(plan, n):
    link, key = Link(3e-5, 2e8), ("all_reduce", plan)
    took = {size: 1e3 * predict(key, n, size, Network(link)).total_s for size in (4096, 4**6 * 60)}
    found = _fitted(key, n, took)
    assert (found.latency_s, found.bytes_per_s) == pytest.approx((link.latency_s, link.bytes_per_s), rel=0.02)


def test_a_link_that_noise_turned_around_has_no_negative_latency():
    assert _fitted(("all_reduce", "ring"), 4, {1024: 2.0, 4096: 1.0}).latency_s >= 0
    assert _fitted(("all_reduce", "ring"), 4, {1024: 0.001, 4096: 100.0}).latency_s == 0


def test_lines_cross_where_the_simulation_says_and_the_slower_one_is_the_slower_one_beyond():
    link, names = Link(1e-4, 1e8), ["ring", "tree"]
    at = crossing(("all_reduce", "ring"), ("all_reduce", "tree"), 8, Network(link))
    rows = []
    for size in (at // 16, at // 4, 4 * at, 16 * at):
        for name in names:
            ms = 1e3 * predict(("all_reduce", name), 8, size, Network(link)).total_s
            rows.append(Timed(name, size, ms, ms))
    found = _crossings("all_reduce", names, 8, rows, link)
    assert found["simulated", "tree", "ring"] == at
    assert found["measured", "tree", "ring"] == pytest.approx(at, rel=0.5)


def test_a_link_that_is_given_is_taken():
    link = Link(1e-3, math.inf)
    found = lab.measure_collectives(sizes=SIZES[:2], world_size=2, repeats=1, link=link)
    assert found.link is link
    assert {round(row.simulated_ms, 9) for row in found.rows} == {2.0}


@pytest.mark.parametrize(
    ("options", "error", "problem"),
    [
        ({"sizes": [1024]}, ArgumentError, "two numbers of bytes or more"),
        ({"sizes": [1024, 64]}, ArgumentError, "ascending"),
        ({"algorithms": []}, ArgumentError, "algorithms are some names"),
        ({"algorithms": ["rings"]}, PlanError, "there is no plan 'rings'"),
        ({"world_size": 1}, ArgumentError, "world_size"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_three_lines(options, error, problem):
    with pytest.raises(error, match=problem) as caught:
        lab.measure_collectives(**{"sizes": SIZES, **options})
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize(("operation", "algorithm"), ROOTED)
def test_the_root_sends_and_receives_what_the_plan_on_paper_has(operation, algorithm):
    found = lab.measure_root_link([2, 4, 7], plans=[(operation, algorithm)])
    for row in found.rows:
        report = check_plan(operation, algorithm, row.world_size)
        n_chunks = chunks_of(plan_of(operation, algorithm), row.world_size)
        assert row.sent_bytes / found.n_bytes == pytest.approx(report.chunks_sent[0] / n_chunks, rel=0.01)
    assert [RootLinkMeasured(*row) for row in found.rows] == [
        e for e in found.recording if isinstance(e, RootLinkMeasured)
    ]


def test_nothing_to_count_is_refused():
    with pytest.raises(ArgumentError, match="nothing to measure"):
        lab.measure_root_link(np.array([], int))
