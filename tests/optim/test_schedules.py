"""Schedules against their papers' formulas and torch's documented values; an optimiser that follows one."""

import math
import pickle

import numpy as np
import pytest

from lab.autograd import tensor
from lab.errors import ArgumentError
from lab.optim import SGD, Adam, Constant, Cosine, Exponential, OneCycle, StepDecay, Warmup


def one_cycle_by_torch(step, n_steps, peak, rise):
    """torch.optim.lr_scheduler.OneCycleLR with its defaults: two phases, annealed by cosine."""
    first, last = float(rise * n_steps) - 1, n_steps - 1
    initial, least = peak / 25, peak / 25 / 1e4

    def annealed(start, end, share):
        return end + (start - end) / 2 * (math.cos(math.pi * share) + 1)

    return annealed(initial, peak, step / first) if step <= first else annealed(
        peak, least, (step - first) / (last - first)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("schedule", "formula"),
    [
        (Constant(0.3), lambda t: 0.3),
        (StepDecay(0.8, every=7, factor=0.5), lambda t: 0.8 / 2 ** (t // 7)),
        (Exponential(0.8, factor=0.9), lambda t: 0.8 * math.exp(t * math.log(0.9))),
        (Cosine(0.8, 30, end=0.2), lambda t: 0.2 + 0.6 * math.cos(math.pi * t / 60) ** 2 if t < 30 else 0.2),
        (Warmup(4, then=Exponential(0.8, 0.9)), lambda t: 0.16 * (t + 1) if t < 4 else 0.8 * 0.9 ** (t - 4)),
        (OneCycle(0.8, 40, rise=0.3), lambda t: one_cycle_by_torch(t, 40, 0.8, 0.3)),
    ],
)
def test_a_schedule_is_its_formula_and_a_pure_function_of_the_step(schedule, formula):
    wanted = [formula(t) for t in range(40)]
    assert np.allclose(schedule.rates(40), wanted, rtol=1e-12, atol=0)
    assert [schedule(t) for t in reversed(range(40))][::-1] == schedule.rates(40).tolist()
    assert pickle.loads(pickle.dumps(schedule)) == schedule


def test_behind_its_end_a_schedule_stays_where_it_is():
    assert Cosine(1.0, 10, end=0.1)(10_000) == 0.1
    assert OneCycle(1.0, 10)(10_000) == OneCycle(1.0, 10)(9) == pytest.approx(4e-6)
    assert [OneCycle(1.0, 1)(t) for t in (0, 1)] == pytest.approx([4e-6, 4e-6])


def moved(optimizer, p, n):
    """How far each of `n` steps moves a parameter whose gradient is 1."""
    found = []
    for _ in range(n):
        before = p.item()
        p.grad = np.asarray(1.0)
        optimizer.step()
        found.append(before - p.item())
    return found


def test_each_step_goes_by_the_rate_of_the_steps_done_before():
    p, schedule = tensor(np.zeros(()), requires_grad=True), Cosine(1.0, 5)
    optimizer = SGD([p], schedule)
    assert moved(optimizer, p, 3) == pytest.approx(schedule.rates(3).tolist())
    assert optimizer.hyperparameters["learning_rate"] == optimizer.learning_rate == schedule(3)
    assert repr(optimizer).startswith("SGD(learning_rate=Cosine(rate=1.0, n_steps=5, end=0.0), momentum=0,")


def test_going_back_to_a_snapshot_goes_back_to_its_rate():
    p = tensor(np.zeros(()), requires_grad=True)
    optimizer = SGD([p], Exponential(1.0, 0.5))
    moved(optimizer, p, 2)
    kept = optimizer.snapshot()
    first = moved(optimizer, p, 2)
    optimizer.restore(kept)
    assert moved(optimizer, p, 2) == first == [0.25, 0.125]


def test_a_rate_set_by_hand_takes_over_and_so_does_another_schedule():
    p = tensor(np.zeros(()), requires_grad=True)
    optimizer = SGD([p], Exponential(1.0, 0.5))
    optimizer.set("learning_rate", 0.5)
    assert moved(optimizer, p, 2) == [0.5, 0.5]
    optimizer.learning_rate = lambda step: 2.0 * step
    assert moved(optimizer, p, 2) == [4.0, 6.0]


def test_a_function_that_gives_no_rate_is_refused_and_nothing_moves():
    p = tensor(np.zeros(()), requires_grad=True)
    optimizer = SGD([p], lambda step: 1.0 - step)
    moved(optimizer, p, 2)
    with pytest.raises(ArgumentError, match=r"learning_rate is out of range\ngiven: -1\.0\nhint:  at least 0, finite"):
        optimizer.step()
    assert (p.item(), optimizer.n_steps) == (-1.0, 2)
    with pytest.raises(ArgumentError, match=r"learning_rate is a number\ngiven: learning_rate=None"):
        Adam([p], lambda step: None)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cosine(-0.1, 10), "rate is out of range\ngiven: rate=-0.1\nhint:  Cosine takes finite numbers"),
        (lambda: Constant(math.nan), "rate is out of range\ngiven: rate=nan"),
        (lambda: Exponential("a"), "rate is a number\ngiven: rate='a'"),
        (lambda: Cosine(0.1, 0), "n_steps is a whole number of at least 1\ngiven: n_steps=0"),
        (lambda: StepDecay(0.1, every=2.5), "every is a whole number of at least 1\ngiven: every=2.5"),
        (lambda: Warmup(3, then=math.inf), "then is out of range\ngiven: then=inf"),
        (lambda: OneCycle(0.1, 10, rise=1.0), "one cycle goes up in a share of its steps\ngiven: rise=1.0\nhint:  "),
    ],
)
def test_what_is_no_schedule_is_refused(make, message):
    with pytest.raises(ArgumentError) as caught:
        make()
    assert message in str(caught.value)
