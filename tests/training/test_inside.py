"""Into the steps of a run: real trainings, held by operation, by backward node and at breakpoints."""

import threading
from time import perf_counter

import numpy as np
import pytest

from lab import nn
from lab.data import digits
from lab.errors import ArgumentError, RunError
from lab.events import BackwardStarted, GradientStored, OpRecorded, RuleApplied, StepFinished, bus
from lab.nn import mlp
from lab.training import fit

SOON = 100.0


@pytest.fixture
def runs():
    started = []
    yield started
    for run in started:
        run.stop()
        assert run.join(SOON)
        assert run.name not in bus.gates


def start(runs, *, dtype="float32", **options):
    train, _ = digits(dtype=dtype) if dtype != "float32" else digits()
    options = {"epochs": 1, "paused": True} | options
    run = fit(mlp(64, 8, 10, rng=0), train, **options)
    runs.append(run)
    return held(run)


def held(run):
    assert run.wait_until("paused", timeout=SOON), run
    return run


def n_ops(run):
    return len(run.graph.positions(OpRecorded))


def test_operations_are_stepped_one_by_one_and_the_graph_has_just_those(runs):
    run = start(runs)
    assert run.graph is None
    for n in range(1, 4):
        run.step(of="op")
        held(run)
        assert n_ops(run) == n
        assert run.progress[0] == 0
        last = run.graph[int(run.graph.positions(OpRecorded)[-1])]
        assert run.reason == f"held after {last.op} of module {last.module}"
    run.step(2, of="op")
    assert n_ops(held(run)) == 5


@pytest.mark.parametrize("clicks", [1, 2, 3])
def test_a_step_asked_for_again_while_workers_are_awaited_is_not_taken_back(runs, monkeypatch, clicks):
    there = threading.Event()
    run = start(runs)
    monkeypatch.setattr(run._job, "ready", lambda: there.wait(0.01))
    for _ in range(clicks):
        run.step(of="op")
    assert not run.is_pausing
    there.set()
    assert held(run).reason.startswith("held after ")
    assert run.progress[0] == 0


def test_a_forward_passes_by_when_backward_nodes_are_stepped(runs):
    run = start(runs)
    run.step(of="node")
    held(run)
    assert len(run.graph.positions(BackwardStarted)) == 1
    assert len(run.graph.positions(RuleApplied)) == 1
    run.step(2, of="node")
    held(run)
    assert len(run.graph.positions(RuleApplied)) == 3
    assert "backward rule" in run.reason


def test_a_step_ends_after_its_last_operation_and_the_next_one_has_a_graph_of_its_own(runs):
    run = start(runs)
    run.step(10_000, of="op")
    held(run)
    assert (run.progress[0], run.reason) == (1, "")
    whole = run.graph
    assert len(whole.positions(GradientStored)) == 4
    run.step(of="op")
    held(run)
    assert run.graph is not whole
    assert n_ops(run) == 1
    assert (whole.live, run.graph.live) == (False, True)


def test_a_training_step_from_the_middle_brings_the_one_begun_to_its_end(runs):
    run = start(runs)
    run.step(3, of="op")
    held(run)
    run.step()
    assert held(run).progress[0] == 1
    run.step(of="op")
    held(run)
    run.step(3)
    assert held(run).progress[0] == 4


def test_looking_into_steps_changes_no_bit_of_what_is_learned(runs):
    looked_into, plain = start(runs), start(runs)
    for of in ("op", "node", "op", "node", "step", "node"):
        looked_into.step(of=of)
        held(looked_into)
    for run in (looked_into, plain):
        run.resume()
        run.wait(SOON)
    for a, b in zip(looked_into.parameters, plain.parameters, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("verb", ["resume", "stop", "rewind"])
def test_a_run_that_is_held_in_the_middle_of_a_step_does_what_it_is_asked(runs, verb):
    run = start(runs)
    run.step(2, of="op")
    held(run)
    getattr(run, verb)()
    if verb == "rewind":
        assert held(run).progress[0] == 0
    else:
        assert run.wait(SOON).state == {"resume": "finished", "stop": "stopped"}[verb]


def test_after_going_on_nothing_is_gated_or_recorded_any_more(runs):
    run = start(runs, epochs=3)
    run.step(of="op")
    held(run)
    run.resume()
    run.wait(SOON)
    assert not run.graph.live
    assert run.name not in bus.gates
    assert len(run.graph.positions(BackwardStarted)) == 1


def test_other_threads_pass_while_a_run_is_held(runs):
    run, other = start(runs), start(runs)
    run.step(of="op")
    held(run)
    other.resume()
    assert other.wait(SOON).state == "finished"
    assert run.state == "paused"


def test_time_in_which_a_run_was_held_is_no_time_of_its_steps(runs):
    run = start(runs)
    begin = perf_counter()
    run.step(of="op")
    since = perf_counter() if held(run) else 0.0
    with run._changed:
        run._changed.wait(0.3)
    was_held = perf_counter() - since
    run.step()
    held(run)
    step = next(e for e in run.recording if isinstance(e, StepFinished))
    assert step.elapsed_ms / 1000 <= perf_counter() - begin - was_held


# --- breakpoints


def test_a_breakpoint_at_an_operation_holds_there_in_every_step(runs):
    run = start(runs)
    assert run.break_on(at="relu") == "forward through 'relu'"
    run.resume()
    for step in range(2):
        assert held(run).progress[0] == step
        assert run.reason.startswith("forward through 'relu': held after relu of")
        run.resume()
    held(run)
    run.clear_breakpoint("forward through 'relu'")
    run.resume()
    assert run.wait(SOON).state == "finished"


def test_a_breakpoint_in_the_backward_of_a_module_holds_at_its_last_operation_first(runs):
    run = start(runs)
    run.break_on(at="2", backward=True)
    run.resume()
    held(run)
    last = run.graph[int(run.graph.positions(RuleApplied)[-1])]
    recorded = {e.node: e.module for e in run.graph if isinstance(e, OpRecorded)}
    assert recorded[last.node] == "2"


def test_a_breakpoint_at_a_module_holds_at_what_is_within_it(runs):
    run = fit(nn.Sequential(mlp(64, 8, 10, rng=0)), digits()[0], epochs=1, paused=True)
    runs.append(run)
    run.break_on(at="0")
    run.resume()
    assert held(run).reason == "forward through '0': held after matmul of module 0.0"


class _Spoilt(nn.Module):
    """Its logarithm meets a zero."""

    def __init__(self):
        self.inner = mlp(64, 8, 10, rng=0)

    def forward(self, x):
        import lab

        y = self.inner(x)
        return y + lab.log(y * 0.0)


def test_the_first_nan_is_held_at_the_operation_that_made_it(runs):
    run = fit(_Spoilt(), digits()[0], epochs=1, paused=True)
    runs.append(run)
    held(run)
    assert run.break_on(nonfinite=True) == "nan or inf"
    run.resume()
    held(run)
    assert run.progress[0] == 0
    assert run.reason.startswith("nan or inf: held after log")


@pytest.mark.parametrize("name", ["loss", "gradient"])
def test_a_bound_holds_before_the_update_and_lets_the_same_step_pass_after(runs, name):
    run, plain = start(runs), start(runs)
    bound = f"{name} above 0"
    assert run.break_on(**{f"{name}_above": 0}) == bound
    before = [p.numpy().copy() for p in run.parameters]
    run.resume()
    held(run)
    assert (run.progress[0], run.trouble) == (0, None)
    assert " of step 1 is above 0, before its update: " in run.reason
    for p, old in zip(run.parameters, before, strict=True):
        np.testing.assert_array_equal(p.numpy(), old)
    run.resume()
    held(run)
    assert run.progress[0] == 1
    run.clear_breakpoint(bound)
    run.resume(), plain.resume()
    run.wait(SOON), plain.wait(SOON)
    for a, b in zip(run.parameters, plain.parameters, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_bound_that_is_not_passed_holds_nothing(runs):
    run = start(runs)
    run.break_on(loss_above=1e9), run.break_on(gradient_above=1e9)
    assert run.breakpoints == ("loss above 1e+09", "gradient above 1e+09")
    run.resume()
    assert run.wait(SOON).state == "finished"


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({}, "a breakpoint is on one thing"),
        ({"loss_above": 1, "nonfinite": True}, "a breakpoint is on one thing"),
        ({"loss_above": "much"}, "loss_above is a number"),
        ({"gradient_above": float("nan")}, "a bound is a finite number"),
        ({"loss_above": 1, "backward": True}, "a breakpoint is on one thing"),
        ({"at": "matmull"}, "given: at='matmull'\\nhint:  did you mean 'matmul'"),
        ({"at": "rleu", "backward": True}, "did you mean 'relu'"),
        ({"at": "QQQ"}, r"no operation and no module\n.*\nhint:  an operation as matmul, a module \(0, 1, 2\)"),
        ({"at": -1}, "no operation and no module"),
        ({"at": "stack"}, "made of other operations"),
    ],
)
def test_a_breakpoint_that_says_nothing_or_too_much_is_refused(runs, asked, problem):
    run = start(runs)
    with pytest.raises(ArgumentError, match=problem):
        run.break_on(**asked)
    assert run.breakpoints == ()


def test_what_cannot_be_stepped_or_cleared_is_refused_with_what_can(runs):
    run = start(runs)
    with pytest.raises(ArgumentError, match="cannot be stepped by this"):
        run.step(of="layer")
    with pytest.raises(ArgumentError, match="no such breakpoint"):
        run.clear_breakpoint("loss")
    run.stop()
    run.wait(SOON)
    with pytest.raises(RunError, match="cannot step"):
        run.step(of="op")
    with pytest.raises(RunError, match="will meet no breakpoint"):
        run.break_on(loss_above=1)


def test_what_no_step_of_this_run_has_is_refused(runs):
    with pytest.raises(RunError, match="cannot be stepped by step of a collective"):
        start(runs).step(of="hop")


@pytest.mark.parametrize("bound", [float("inf"), float("-inf"), 1e400, float("nan")])
def test_a_bound_that_is_not_finite_is_refused_and_takes_nothing_away(runs, bound):
    run = start(runs)
    run.break_on(loss_above=2.5)
    with pytest.raises(ArgumentError, match="a bound is a finite number"):
        run.break_on(loss_above=bound)
    assert run.breakpoints == ("loss above 2.5",)


def test_a_place_that_the_steps_of_this_model_do_not_come_to_is_told_after_a_whole_step(runs):
    run = start(runs)
    run.break_on(at="tanh"), run.break_on(at="2"), run.break_on(at="relu", backward=True)
    run.clear_breakpoint("forward through '2'")
    assert run.unmet_breakpoints == (), "no step was looked into yet"
    run.resume()
    held(run)
    assert run.unmet_breakpoints == (), "the step is not whole"
    run.step()
    held(run)
    assert run.unmet_breakpoints == ("forward through 'tanh'",)
    run.clear_breakpoint("forward through 'tanh'")
    assert run.unmet_breakpoints == ()


def test_a_misspelt_operation_is_not_taken_for_one_that_this_model_does_not_have(runs):
    run = start(runs)
    run.step(of="op"), held(run), run.step(), held(run)
    with pytest.raises(ArgumentError, match=r"hint:  an operation as matmul, a module \(0, 1, 2\)"):
        run.break_on(at="tanhh")
    with pytest.raises(ArgumentError, match="did you mean 'relu'"):
        run.break_on(at="rleu")
    with pytest.raises(ArgumentError, match="did you mean '0'"):
        run.break_on(at="0.weight")
