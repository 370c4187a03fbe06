"""A function of the user's in a thread of its own, held between its operations."""

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError
from lab.events import GradientStored, OpRecorded, RuleApplied, bus
from lab.nn import mlp
from lab.training import step_through

SOON = 100.0


def held(run):
    assert run.wait_until("paused", timeout=SOON), run
    return run


def test_nothing_is_done_before_it_is_asked_for():
    called = []
    run = held(step_through(lambda: called.append(1)))
    assert called == []
    run.resume()
    assert run.wait(SOON).state == "finished"
    assert called == [1]


def test_arguments_go_in_and_the_value_comes_out():
    run = step_through(lambda a, *, b: a + b, lab.tensor([1.0, 2.0], requires_grad=True), b=3.0)
    run.resume()
    np.testing.assert_array_equal(run.wait(SOON).value.numpy(), [4.0, 5.0])


def test_each_operation_and_node_is_met_in_its_order():
    x = lab.tensor(2.0, requires_grad=True, name="x")
    run = held(step_through(lambda: lab.exp(x * x).backward()))
    met = []
    for of in ("op", "op", "node", "node"):
        run.step(of=of)
        met.append(held(run).reason)
    assert met == [
        "held after multiply", "held after exp",
        "held after the backward rule of exp", "held after the backward rule of multiply",
    ]  # fmt: skip
    assert x.grad is None  # the walk stores at its end, all or nothing
    run.resume()
    run.wait(SOON)
    assert x.grad == pytest.approx(4 * np.exp(4.0), rel=1e-6)
    assert len(run.graph.positions(GradientStored)) == 1


def test_second_derivatives_are_stepped_like_any_other_operations():
    x = lab.tensor(2.0, requires_grad=True)
    run = held(step_through(lambda: lab.grad(lab.grad(lambda v: v * v * v))(x)))
    run.step(3, of="node")
    held(run)
    assert len(run.graph.positions(RuleApplied)) == 3
    run.resume()
    assert float(run.wait(SOON).value.numpy()) == 12.0


def test_a_breakpoint_can_name_the_number_of_a_node():
    x = lab.tensor(2.0, requires_grad=True)
    run = held(step_through(lambda: ((x * x) * x).backward()))
    run.step(of="op")
    held(run)
    first = run.graph[int(run.graph.positions(OpRecorded)[0])].node
    run.break_on(at=first, backward=True)
    run.resume()
    assert f"'{first}'" in held(run).reason
    run.stop()
    run.wait(SOON)


MODEL = mlp(2, 3, 1, rng=0)


def _through_a_helper(x):
    return MODEL(x)


def test_the_modules_that_a_function_reaches_are_places_and_a_misspelt_operation_is_none():
    run = held(step_through(lambda: _through_a_helper(lab.tensor([1.0, 2.0]))))
    run.break_on(at="2")
    with pytest.raises(ArgumentError, match="did you mean 'matmul'"):
        run.break_on(at="matmull")
    assert run.break_on(at="of_a_model_that_is_made_later")
    run.resume()
    assert held(run).reason == "forward through '2': held after matmul of module 2"
    run.stop()
    run.wait(SOON)


def test_a_stop_abandons_even_what_would_never_end():
    x = lab.tensor(1.0, requires_grad=True)

    def endless():
        y = x
        while True:
            y = y + 1.0

    run = held(step_through(endless))
    run.step(of="op")
    held(run)
    run.stop()
    result = run.wait(SOON)
    assert (result.state, result.n_steps, result.value) == ("stopped", 0, None)
    assert run.name not in bus.gates


def test_an_abandoned_backward_leaves_no_half_of_a_gradient():
    x = lab.tensor([1.0, 2.0], requires_grad=True)
    run = held(step_through(lambda: (lab.exp(x) * x).sum().backward()))
    run.step(2, of="node")
    held(run)
    run.stop()
    run.wait(SOON)
    assert x.grad is None


def test_what_the_function_raises_is_raised_for_who_waits():
    run = step_through(lambda: 1 / 0)
    run.resume()
    with pytest.raises(ZeroDivisionError):
        run.wait(SOON)
    assert run.state == "failed"


def test_what_is_no_function_is_refused():
    with pytest.raises(ArgumentError, match="step_through needs a function"):
        step_through(3)
