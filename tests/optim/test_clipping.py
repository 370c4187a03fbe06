"""Gradients kept within bounds, by hand between backward and step, and by an optimiser."""

import numpy as np
import pytest

from lab.autograd import tensor
from lab.errors import ArgumentError, GradientError
from lab.optim import SGD, clip_by_global_norm, clip_by_value

GRADIENTS = [np.array([[3.0, -4.0]]), np.array(12.0), np.array([0.0], np.float32)]  # together of norm 13


def parameters(gradients=GRADIENTS):
    made = [tensor(np.ones_like(g), requires_grad=True, name=f"p{i}") for i, g in enumerate(gradients)]
    for p, g in zip(made, gradients, strict=True):
        p.grad = g.copy()
    return made


def gradients(made):
    return [p.grad.numpy() for p in made]


@pytest.mark.parametrize("limit", [1, 6.5, 13.0, 1e9])
def test_gradients_are_scaled_together_to_the_limit_or_stay(limit):
    made = parameters()
    assert clip_by_global_norm(made, limit) == 13.0
    scale = min(1.0, limit / 13)
    for found, was in zip(gradients(made), GRADIENTS, strict=True):
        assert np.allclose(found, was * scale, rtol=1e-15)
        assert (found.dtype, found.shape) == (was.dtype, was.shape)


def test_clipping_by_value_cuts_each_entry():
    made = parameters()
    clip_by_value(made, 3.5)
    assert [g.tolist() for g in gradients(made)] == [[[3.0, -3.5]], 3.5, [0.0]]


def test_parameters_without_a_gradient_are_left_out_and_graphs_are_let_go():
    first, second = tensor(3.0, requires_grad=True), tensor(1.0, requires_grad=True)
    (first * first).backward(create_graph=True)
    assert clip_by_global_norm([first, second], 1.5) == 6.0
    assert (first.grad.item(), first.grad.requires_grad, second.grad) == (1.5, False, None)


@pytest.mark.parametrize("clip", [clip_by_global_norm, clip_by_value])
def test_what_cannot_be_clipped_is_refused_and_nothing_changes(clip):
    made = parameters([np.array([5.0]), np.array([1.0, np.nan, np.inf])])
    with pytest.raises(GradientError) as caught:
        clip(made, 1.0)
    assert str(caught.value) == (
        "a gradient cannot be clipped\ngiven: 2 of 3 entries of that of p1 are nan or inf\n"
        "hint:  forward and backward under `with lab.anomaly_mode():` tell where nan or inf begins"
    )
    assert made[0].grad.item() == 5.0
    with pytest.raises(GradientError, match=r"no parameter has a gradient\ngiven: none of 1 has one\nhint:  call loss"):
        clip([tensor(1.0, requires_grad=True)], 1.0)
    with pytest.raises(ArgumentError, match=r"this cannot be optimised\ngiven: number 0: ndarray\nhint:  give leaf"):
        clip([np.ones(2)], 1.0)
    for limit in (-1.0, np.nan):
        with pytest.raises(ArgumentError, match=r"a limit of gradients is out of range\ngiven: limit="):
            clip(made, limit)


def test_an_optimiser_clips_over_all_its_vectors_by_a_limit_that_can_be_set():
    made = parameters()
    optimizer = SGD(made, 1.0, clip_norm=1.3)
    optimizer.step()
    assert np.allclose([1 - p.numpy().reshape(-1)[0] for p in made], [0.3, 1.2, 0.0])
    optimizer.set("clip_norm", 100)
    optimizer.step()
    assert np.allclose([1 - p.numpy().reshape(-1)[0] for p in made], [3.3, 13.2, 0.0])
    assert repr(optimizer) == "SGD(learning_rate=1, momentum=0, weight_decay=0, clip_norm=100)"


def test_a_part_of_the_parameters_is_clipped_by_the_norm_of_the_whole():
    made = parameters()
    part = SGD(made, 1.0, clip_norm=1.3).part(made[:1])
    part.gather()
    part.apply(norm=13.0)
    assert np.allclose(made[0].numpy(), [[0.7, 1.4]])


def test_an_optimiser_refuses_to_clip_what_is_no_number_before_it_moves():
    made = parameters([np.array([1.0]), np.array([np.inf])])
    optimizer = SGD(made, 1.0, clip_norm=1.0)
    with pytest.raises(GradientError, match=r"the gradient cannot be clipped\ngiven: its norm is inf\nhint:  forward"):
        optimizer.step()
    assert (made[0].item(), optimizer.n_steps) == (1.0, 0)
    with pytest.raises(ArgumentError, match=r"clip_norm is out of range\ngiven: -1\nhint:  at least 0, finite"):
        SGD(made, clip_norm=-1)
    with pytest.raises(ArgumentError, match=r"SGD has no such hyperparameter\ngiven: 'clip_norm'"):
        SGD(made).set("clip_norm", 1.0)
