"""How much of a graph can run at once: every number is of a run that was made, and the picture is drawn of it."""

from itertools import pairwise

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, ConcretizationError
from lab.events import EquationRan, GraphRunBegun, GraphRunFinished, Recording, ScheduleBegun, ScheduleMeasured
from lab.experiments.schedule import account_of
from lab.graph.grouping import GRAIN_MS
from widgets import ScheduleView


def branches(x, y):
    return lab.sum(lab.tanh(x @ y) + lab.exp(-lab.square(y @ x)) @ y)


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    return lab.measure_schedule(branches, *rng.normal(size=(2, 120, 120)), threads=(1, 2), repeats=1)


def of(rec, kind):
    return [e for e in rec if isinstance(e, kind)]


def runs(rec):
    """The equations of each run."""
    every = iter(of(rec, EquationRan))
    return [[next(every) for _ in range(begun.n_equations)] for begun in of(rec, GraphRunBegun)]


def test_every_executor_has_a_row_and_a_run_that_is_told(found):
    ways = [("interpreted", 1), ("compiled", 1), ("parallel", 1), ("parallel", 2)]
    assert [(r.executor, r.n_threads) for r in found.rows] == ways
    assert [(e.executor, e.n_threads) for e in of(found.recording, GraphRunBegun)] == ways
    assert of(found.recording, ScheduleMeasured) == [ScheduleMeasured(*r) for r in found.rows]
    assert found.recording[0] == ScheduleBegun("branches", found.n_cores, 1)
    assert found.rows[0].speed_up == 1.0
    assert "cores" in repr(found)


def test_work_critical_path_and_utilisation_are_those_of_the_equations_that_ran(found):
    for row, ran, finished in zip(
        found.rows, runs(found.recording), of(found.recording, GraphRunFinished), strict=True
    ):
        took = {e.number: (e.stop_ns - e.start_ns) / 1e6 for e in ran}
        longest = {}
        for e in sorted(ran, key=lambda e: e.number):
            longest[e.number] = took[e.number] + max((longest[j] for j in e.needs), default=0.0)
        assert row.work_ms == pytest.approx(sum(took.values()))
        assert row.critical_ms == pytest.approx(max(longest.values()))
        assert row.bound == pytest.approx(row.work_ms / row.critical_ms)
        assert row.utilisation == pytest.approx(1e6 * row.work_ms / finished.elapsed_ns / row.n_threads)
        assert row.utilisation <= 1.0


def test_tasks_are_fewer_than_equations_where_these_are_small(found):
    by_way = {(r.executor, r.n_threads): r for r in found.rows}
    assert by_way["parallel", 2].n_tasks < by_way["interpreted", 1].n_tasks
    assert GRAIN_MS > 0


def test_an_account_of_nothing_is_nothing():
    assert account_of([]) == (0.0, (), 0.0, 1.0)


def test_a_bar_for_each_equation_stands_where_and_as_long_as_it_ran(found):
    view = ScheduleView(found)
    scene = view.picture_at(len(found.recording))
    ran = runs(found.recording)[-1]
    finished = of(found.recording, GraphRunFinished)[-1]
    bars = {node.id: node for node in scene.nodes}
    assert bars.keys() == {f"e{e.number}" for e in ran}
    first = view.picture_at(len(found.recording)).marks
    for e in ran:
        bar = bars[f"e{e.number}"]
        part = (bar.x - bar.width / 2 - 96.0) / 784.0
        assert part == pytest.approx(e.start_ns / finished.elapsed_ns, abs=1e-9)
        assert bar.width == pytest.approx(max(1.0, 784.0 * (e.stop_ns - e.start_ns) / finished.elapsed_ns))
    assert [m.text for m in first if m.id.startswith("lane")] == ["thread 0", "thread 1"]
    for lane in (0, 1):
        assert len({bars[f"e{e.number}"].y for e in ran if e.lane == lane}) <= 1


def test_the_critical_path_has_an_outline_and_arrows_and_a_bar_that_is_clicked_has_its_own(found):
    view, end = ScheduleView(found), len(found.recording)
    scene = view.picture_at(end)
    path = account_of(runs(found.recording)[-1]).path
    assert {n.id for n in scene.nodes if n.state == "active"} == {f"e{k}" for k in path}
    assert [(e.source, e.target) for e in scene.edges] == [(f"e{a}", f"e{b}") for a, b in pairwise(path)]
    assert ("forward_span:active", "on the critical path") in scene.legend
    ran = {e.number: e for e in runs(found.recording)[-1]}
    number = next(k for k, e in ran.items() if len(e.needs) == 2)
    view.select(f"e{number}")
    chosen = view.picture_at(end)
    assert chosen.selected == f"e{number}"
    into = [e for e in chosen.edges if e.target == f"e{number}"]
    assert {e.source for e in into} == {f"e{j}" for j in ran[number].needs}
    assert {e.state for e in into} == {"forward"}
    view.select("")
    assert view.picture_at(end) == scene


def test_a_run_that_is_chosen_is_played_alone_and_another_begins_anew(found):
    view = ScheduleView(found, run=1)
    rec = found.recording
    stops = view.stop_positions(rec)
    n = of(rec, GraphRunBegun)[0].n_equations
    assert len(stops) == n + 1
    sizes = [len(view.picture_at(int(p)).nodes) for p in stops]
    assert sizes == [*range(1, n + 1), n]
    assert "thread 0 finished" in view.sentence_at(int(stops[0])).lower()
    assert "Interpreted, 1 thread" in view.sentence_at(len(rec))
    assert len(ScheduleView(found).stop_positions(rec)) == sum(e.n_equations + 1 for e in of(rec, GraphRunBegun))


def test_the_words_hold_the_path_each_thread_and_what_was_measured(found):
    text = ScheduleView(found).text_at(len(found.recording))
    assert "critical path: " in text
    assert "thread 0: " in text
    assert "thread 1: " in text
    assert text.count("times as fast as interpreted") == 4


def test_a_recording_without_runs_says_how_to_get_one():
    assert "measure_schedule" in ScheduleView(Recording()).text_at(0)


def test_the_list_of_runs_and_the_clicked_bar_are_live(found):
    view = ScheduleView(found)
    view.widget  # noqa: B018 - made at the first look
    choice = view._choice
    assert [label for label, _ in choice.options] == [
        "latest", "1 interpreted, 1 thread", "2 compiled, 1 thread", "3 parallel, 1 thread", "4 parallel, 2 threads",
    ]  # fmt: skip
    choice.value = 1
    assert view.run == 1
    assert "Interpreted" in view.sentence_at(view.position)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: lab.measure_schedule("f"), ArgumentError),
        (lambda: lab.measure_schedule(lambda x: x, 1.0, repeats=0), ArgumentError),
        (lambda: lab.measure_schedule(lambda x: x, 1.0, threads=0), ArgumentError),
        (lambda: lab.measure_schedule(lambda x: x, 1.0, threads=(2, 0)), ArgumentError),
        (lambda: lab.measure_schedule(lambda x: x if x > 0 else -x, 1.0), ConcretizationError),
    ],
)
def test_bad_arguments_are_said_in_three_lines(call, error):
    with pytest.raises(error) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 3
