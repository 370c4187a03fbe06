"""Every executor gives what the ops give and tells the same events; the parallel one bit for bit, in threads or not."""

import contextvars
import dataclasses
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lab
from lab.errors import ArgumentError
from lab.events import EquationRan, GraphRunBegun, GraphRunFinished
from lab.graph import scheduled
from lab.graph.execute import run_arrays
from lab.graph.executors import EXECUTORS, executor_of
from lab.graph.pool import MOST
from lab.graph.scheduled import Scheduled
from lab.ops.primitive import Op
from tests.graph.graphs import CASES, IDS, SPECIAL, executed, of_gradient, of_sample, programs
from tests.slices import sliced

KINDS = (GraphRunBegun, EquationRan, GraphRunFinished)


def same_bits(outs, others):
    """The sign of a nan is nothing that is computed: x * -1 and -x differ in it."""
    for a, b in zip(outs, others, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype.kind == "f":
            a, b = (np.where(np.isnan(x), x.dtype.type("nan"), x) for x in (a, b))
        assert a.tobytes() == b.tobytes()


@sliced("i", every=2, together=True, offset=1)
@pytest.mark.parametrize(("name", "i"), CASES, ids=IDS)
def test_every_op_and_its_gradient_in_threads_has_the_bits_that_it_has_one_by_one(name, i):
    for made in (of_sample(name, i), of_gradient(name, i)):
        if made:
            graph, xs = made
            same_bits(Scheduled(graph, n_threads=3, grain=0.0).arrays(xs), run_arrays(graph, xs))


@settings(max_examples=60, deadline=None)
@given(lines=programs(), seed=st.integers(0, 99), n_threads=st.integers(1, 4))
def test_random_programs_in_threads_have_the_bits_that_they_have_one_by_one(lines, seed, n_threads):
    rng = np.random.default_rng(seed)
    xs = [rng.choice([*SPECIAL, 1.5, -2.5], size=(3, 3)) for _ in range(2)]
    with np.errstate(all="ignore"):
        graph = lab.make_graph(lambda x, y: executed(lines, x, y))(*xs)
        ran = Scheduled(graph, n_threads=n_threads, grain=0.0)
        for _ in range(3):
            same_bits(ran.arrays(xs), run_arrays(graph, xs))


def wide(x, y):
    return lab.sum(lab.stack([lab.tanh(x @ y), lab.exp(-(y @ x)), x @ x.T, lab.sin(y) @ y]))


def large(n=160):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, n)), rng.normal(size=(n, n))


@pytest.fixture
def two_threads(monkeypatch):
    """As on two cores, wherever the tests run."""
    monkeypatch.setattr(scheduled, "n_cores", lambda: 2)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_every_front_end_takes_every_executor(executor, two_threads):
    x, y = large()
    wanted = float(wide(x, y))
    assert float(lab.jit(wide, executor=executor)(x, y)) == pytest.approx(wanted)

    @lab.script(executor=executor)
    def scripted(x, y):
        if lab.sum(x) > 1e9:
            return lab.sum(x)
        return wide(x, y)

    assert float(scripted(x, y)) == pytest.approx(wanted)
    with lab.Graph() as g:
        px, py = (lab.placeholder(x.shape, "float64", name=name) for name in "xy")
        out = wide(px, py)
    with lab.Session(g, executor=executor) as session:
        assert float(session.run(out, feed={px: x, py: y})) == pytest.approx(wanted)


def test_a_script_can_be_given_another_executor():
    @lab.script
    def f(x):
        return x + 1.0

    again = lab.script(f, executor="compiled")
    assert lab.script(f) is f
    assert again is not f
    assert float(again(1.0)) == 2.0


@pytest.mark.parametrize("call", [
    lambda: lab.jit(lab.exp, executor="quick"),
    lambda: lab.Session(lab.Graph(), executor="quick"),
    lambda: lab.script(lambda x: x, executor="quick"),
    lambda: lab.script(executor="quick"),
    lambda: executor_of(["compiled"]),
])  # fmt: skip
def test_an_executor_that_there_is_not_is_said_in_three_lines(call):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert str(caught.value).splitlines()[0] == "no executor has that name"
    assert str(caught.value).splitlines()[2] == "hint:  interpreted, compiled or parallel"


@pytest.mark.parametrize("executor", EXECUTORS)
def test_every_executor_tells_which_equation_ran_when_and_after_which(executor, two_threads):
    x, y = large()
    f = lab.jit(wide, executor=executor)
    f(x, y)
    with lab.record(kinds=KINDS) as rec:
        out = f(x, y)
    assert float(out) == pytest.approx(float(wide(x, y)))
    begun, *ran, finished = rec
    assert (begun.executor, finished.executor) == (executor, executor)
    assert begun.n_equations == len(ran) >= 5
    assert begun.n_threads == (2 if executor == "parallel" else 1)
    by_number = {e.number: e for e in ran}
    assert len(by_number) == len(ran)
    for e in ran:
        assert 0 <= e.start_ns <= e.stop_ns <= finished.elapsed_ns
        assert 0 <= e.lane < begun.n_threads
        assert " = " in e.text
        assert all(by_number[j].stop_ns <= e.start_ns for j in e.needs)
    assert [e.stop_ns for e in ran] == sorted(e.stop_ns for e in ran)
    assert finished.busy_ns == sum(e.stop_ns - e.start_ns for e in ran)
    for lane in {e.lane for e in ran}:
        mine = sorted((e.start_ns, e.stop_ns) for e in ran if e.lane == lane)
        assert all(a[1] <= b[0] for a, b in pairwise(mine))
    assert any("test_executors" in e.made_by for e in ran) == any(e.made_by for e in ran)


def test_what_an_executor_told_comes_back_from_a_file(tmp_path):
    f = lab.jit(lambda x: lab.exp(x) + x)
    f(1.0)
    with lab.record(kinds=KINDS) as rec:
        f(1.0)
    rec.save(tmp_path / "run.rec")
    assert list(lab.Recording.load(tmp_path / "run.rec")) == list(rec)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_with_single_operations_recorded_these_tell_and_without_listeners_nobody(executor, two_threads):
    x, y = large()
    f = lab.jit(wide, executor=executor)
    with lab.record() as rec:
        f(x, y)
    assert not [e for e in rec if isinstance(e, KINDS)]
    with lab.record(kinds=[lab.events.StepFinished]) as rec:
        f(x, y)
    assert not len(rec)


def unary(forward):
    """A graph of two branches, each with an op of a test."""
    graph = lab.make_graph(lambda x: lab.exp(x) + lab.tanh(x))(np.ones(3))
    probe = Op("probe", ("x",), forward, doc="What a test does there.", listed=False)
    first, second, last = graph.equations
    return dataclasses.replace(
        graph, equations=(dataclasses.replace(first, op=probe), dataclasses.replace(second, op=probe), last)
    )


def on_two(graph):
    made = Scheduled(graph, n_threads=2, grain=0.0)
    made.__dict__["optimized"] = graph  # an op of a test, which is no pass's business
    return made


def test_two_equations_that_do_not_wait_for_each_other_run_at_once():
    both = threading.Barrier(2)

    def forward(x):
        both.wait(timeout=20)
        return x * 2.0

    assert on_two(unary(forward)).arrays([np.ones(3)])[0].tolist() == [4.0] * 3


SETTING: contextvars.ContextVar[str] = contextvars.ContextVar("setting", default="outside")


def test_threads_see_the_context_of_the_caller():
    seen, both = [], threading.Barrier(2)

    def forward(x):
        both.wait(timeout=20)
        seen.append((SETTING.get(), np.geterr()["over"]))
        return x

    token = SETTING.set("inside")
    try:
        with np.errstate(over="raise"):
            on_two(unary(forward)).arrays([np.ones(3)])
    finally:
        SETTING.reset(token)
    assert seen == [("inside", "raise")] * 2


@pytest.mark.parametrize("where", ["caller", "helper"])
def test_what_an_equation_raises_reaches_the_caller_and_the_pool_goes_on(where):
    both, main = threading.Barrier(2), threading.current_thread()

    def forward(x):
        both.wait(timeout=20)
        if (threading.current_thread() is main) == (where == "caller"):
            raise ZeroDivisionError(where)
        return x

    made = on_two(unary(forward))
    with pytest.raises(ZeroDivisionError, match=where):
        made.arrays([np.ones(3)])
    again = on_two(unary(lambda x: x + 1.0))
    assert again.arrays([np.zeros(3)])[0].tolist() == [2.0] * 3


def test_an_interrupt_leaves_no_thread_at_work():
    inside, both, main = [], threading.Barrier(2), threading.current_thread()

    def forward(x):
        inside.append(1)
        both.wait(timeout=20)
        if threading.current_thread() is main:
            inside.pop()
            raise KeyboardInterrupt
        total = sum(range(200_000))  # still at work when the caller is interrupted
        inside.pop()
        return x + 0.0 * total

    with pytest.raises(KeyboardInterrupt):
        on_two(unary(forward)).arrays([np.ones(3)])
    assert inside == []


def test_an_error_names_the_equation_and_its_line_as_the_others_do(two_threads):
    x = np.zeros((160, 160))

    def f(x, i):
        return lab.sum((x @ x)[i]) + lab.sum(x @ x.T)

    notes = {}
    for executor in EXECUTORS:
        jitted = lab.jit(f, executor=executor)
        jitted(x, np.array([1, 2]))
        with pytest.raises(Exception) as caught:  # noqa: PT011 - that it is the same of all is what is asked
            jitted(x, np.array([1, 2000]))
        notes[executor] = (type(caught.value), str(caught.value), caught.value.__notes__)
    assert len({str(found) for found in notes.values()}) == 1
    assert "graph: " in str(notes["parallel"])


def test_results_share_memory_with_nothing(two_threads):
    x = np.ones((160, 160))
    outs = Scheduled(lab.make_graph(lambda x: (x * 1.0, x.T, x @ x, x @ x, 2.0 + 0.0 * x))(x)).arrays([x])
    for k, out in enumerate(outs):
        out += float(k)
    assert x.max() == x.min() == 1.0
    assert [float(out[0, 0]) for out in outs] == [1.0, 2.0, 162.0, 163.0, 6.0]


def test_threads_are_kept_and_many_runs_at_once_do_not_wait_for_each_other_for_ever(two_threads):
    x, y = large(80)
    ran = Scheduled(lab.make_graph(wide)(x, y), n_threads=2, grain=0.0)
    wanted, found = ran.arrays([x, y]), []

    def many():
        found.extend(ran.arrays([x, y])[0] == wanted[0] for _ in range(20))

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert all(found)
    for _ in range(2 * MOST):
        ran.arrays([x, y])
    assert sum(thread.name.startswith("lab.graph") for thread in threading.enumerate()) <= MOST
