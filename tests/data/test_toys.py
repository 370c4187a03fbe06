import numpy as np
import pytest

from lab.data import moons, spirals
from lab.errors import ArgumentError


@pytest.mark.parametrize("make", [moons, spirals])
def test_the_same_seed_gives_the_same_points(make):
    assert np.array_equal(make(50, rng=4).inputs, make(50, rng=4).inputs)
    assert not np.array_equal(make(50, rng=4).inputs, make(50, rng=5).inputs)
    assert make(50).inputs.dtype == np.float32


def test_moons_without_noise_lie_on_two_circles():
    data = moons(40, noise=0)
    centres = np.where(data.targets[:, None] == 0, [0.0, 0.0], [1.0, 0.5])
    assert np.allclose(np.linalg.norm(data.inputs - centres, axis=1), 1, atol=1e-6)


def test_spirals_have_equal_arms_that_are_turns_of_each_other():
    data = spirals(90, n_arms=3, noise=0)
    arms = [data.inputs[data.targets == k] for k in range(3)]
    third = 2 * np.pi / 3
    turn = np.array([[np.cos(third), np.sin(third)], [-np.sin(third), np.cos(third)]])
    assert [len(a) for a in arms] == [30, 30, 30]
    assert np.allclose(arms[0] @ turn, arms[1], atol=1e-6)
    assert np.allclose(arms[1] @ turn, arms[2], atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: moons(1), "toys need two classes and a point for each\ngiven: 1 points, 2 classes"),
        (lambda: spirals(10, n_arms=1), "10 points, 1 classes"),
        (lambda: moons(noise=-1.0), "noise is a standard deviation\ngiven: -1.0"),
        (lambda: moons(noise=float("nan")), "noise is a standard deviation\ngiven: nan"),
    ],
)
def test_arguments_are_checked(make, message):
    with pytest.raises(ArgumentError) as caught:
        make()
    assert message in str(caught.value)
