"""The backward walk as users meet it: what it adds, keeps, refuses and leaves alone."""

import threading
import warnings

import numpy as np
import pytest

import lab
from lab.errors import GradientError
from tests.numerics import array, close


def leaf(value=2.0, name=""):
    return lab.tensor(value, requires_grad=True, name=name)


def test_a_small_graph_by_hand():
    x, y = leaf(2.0), leaf(3.0)
    z = x * y + x
    z.backward()
    assert (x.grad.item(), y.grad.item()) == (4.0, 2.0)


def test_a_leaf_is_its_own_graph():
    x = leaf(2.0)
    x.backward()
    close(x.grad, 1.0)
    x.backward(5.0)
    close(x.grad, 6.0)


def test_no_gradient_yet_is_not_zero():
    x, y = leaf(), leaf()
    assert x.grad is None
    (x * 0.0).backward()
    close(x.grad, 0.0)
    assert y.grad is None


def test_gradients_accumulate_until_they_are_cleared():
    x = leaf()
    for n in (1, 2, 3):
        (x * x).backward()
        close(x.grad, 4.0 * n)
    x.zero_grad()
    assert x.grad is None


def test_a_gradient_that_was_handed_out_does_not_change_later():
    x = leaf([1.0, 2.0])
    (x * 3.0).sum().backward()
    first = x.grad
    (x * 3.0).sum().backward()
    close(first, [3.0, 3.0])
    close(x.grad, [6.0, 6.0])


def test_the_same_tensor_used_twice_gets_both_contributions():
    x = leaf(3.0)
    (x * x + x - x / x).backward()
    close(x.grad, 7.0)


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_of_two_leaves_share_no_memory(create_graph):
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    ct = lab.tensor([1.0, 1.0])
    (x + y).backward(ct, create_graph=create_graph)
    held = [x.grad.value, y.grad.value, ct.value]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(held) for b in held[:i])


def test_a_gradient_shares_no_memory_with_values_or_with_the_given_cotangent():
    x = leaf([[1.0, 2.0]])
    ct = np.ones((2, 1))
    y = x.T
    y.backward(ct)
    ct[:] = 7.0
    close(x.grad, [[1.0, 1.0]])
    assert not np.shares_memory(x.grad.value, x.value)


def test_a_gradient_has_the_dtype_of_its_leaf_whatever_the_cotangents():
    x = leaf(np.float32([1.0, 2.0]))
    for ct in (np.ones(2), [1, 1], lab.tensor([1.0, 1.0]), np.ones(2, "float16"), lab.tensor([1, 1])):
        x.zero_grad()
        (x * 1.5).backward(ct)
        assert x.grad.dtype == np.float32
        close(x.grad, [1.5, 1.5])


def test_a_second_backward_is_refused_after_the_graph_was_freed():
    x = leaf()
    y = x * x
    y.backward()
    with pytest.raises(GradientError, match="freed by an earlier backward") as caught:
        y.backward()
    assert "multiply" in caught.value.given
    assert "retain_graph" in caught.value.hint
    close(x.grad, 4.0)


def test_a_graph_through_a_freed_part_is_refused_before_anything_changes():
    x, w = leaf(), leaf(5.0)
    y = x * x
    y.backward()
    with pytest.raises(GradientError, match="freed"):
        (y * w).backward()
    assert w.grad is None
    close(x.grad, 4.0)


def test_retain_graph_allows_another_walk_with_the_same_result():
    x = leaf()
    y = lab.exp(x) * x
    y.backward(retain_graph=True)
    first = x.grad.item()
    y.backward()
    close(x.grad, 2 * first)


def test_create_graph_differentiates_again_and_keeps_the_graph():
    x = leaf(2.0)
    y = x**3
    y.backward(create_graph=True)
    g = x.grad
    close(g, 12.0)
    x.zero_grad()
    g.backward(create_graph=True)
    close(x.grad, 12.0)
    h = x.grad
    x.zero_grad()
    h.backward()
    close(x.grad, 6.0)
    y.backward()
    close(x.grad, 6.0 + 12.0)


def test_create_graph_accumulates_into_a_plain_gradient():
    x = leaf(2.0)
    (x * x).backward()
    (x * x).backward(create_graph=True)
    close(x.grad, 8.0)
    x.grad.backward()


@pytest.mark.parametrize(
    ("run", "problem"),
    [
        (lambda: lab.tensor(1.0).backward(), "backward has nothing to walk"),
        (lambda: (leaf() > 1.0).backward(), "backward has nothing to walk"),
        (lambda: leaf([1.0, 2.0]).backward(), "needs a gradient for a tensor of several entries"),
        (lambda: (leaf([1.0, 2.0]) * 2.0).backward(np.ones(3)), "a gradient has the shape of its tensor"),
        (lambda: leaf([1.0, 2.0]).backward("ones"), "a gradient must be numbers"),
        (lambda: leaf().backward(object()), "a gradient must be numbers"),
        (lambda: leaf([1.0, 2.0]).backward([1.0, None]), "a gradient must be numbers"),
        (lambda: setattr(lab.tensor(1.0), "grad", 1.0), "only a leaf has a gradient to set"),
        (lambda: setattr(leaf(), "grad", [1.0, 2.0]), "a gradient has the shape of its tensor"),
        (lambda: setattr(leaf(), "grad", "no"), "a gradient must be numbers"),
        (lambda: lab.tensor(1.0).register_hook(print), "a hook needs a tensor that requires a gradient"),
        (lambda: leaf().register_hook("no function"), "a hook must be a function"),
        (lambda: lab.grad(lambda x: x.backward())(1.0), "backward has nothing to walk"),
    ],
)
def test_misuse_of_backward_is_explained(run, problem):
    with pytest.raises(GradientError, match=problem) as caught:
        run()
    assert caught.value.given


def test_a_gradient_can_be_set_and_is_copied():
    x, mine = leaf([1.0, 2.0]), np.ones(2)
    x.grad = mine
    mine[:] = 5.0
    close(x.grad, [1.0, 1.0])
    x.grad = None
    assert x.grad is None


# --- hooks ----------------------------------------------------------------------------------------------------------


def test_hooks_run_in_order_once_with_the_complete_gradient():
    x, seen = leaf(3.0), []
    y = x * 2.0
    y.register_hook(lambda g: seen.append(("y", float(g))))
    x.register_hook(lambda g: seen.append(("x first", float(g))))
    x.register_hook(lambda g: seen.append(("x second", float(g))))
    (y + y * y + x).backward()
    assert seen == [("y", 13.0), ("x first", 27.0), ("x second", 27.0)]


def test_a_hook_replaces_the_gradient_for_what_is_below():
    x = leaf(3.0)
    y = x * 2.0
    y.register_hook(lambda g: g * 10.0)
    x.register_hook(lambda g: g + 1.0)
    (y * 1.0).backward()
    close(x.grad, 21.0)


def test_a_removed_hook_is_silent_and_removing_twice_is_harmless():
    x, seen = leaf(), []
    remove = x.register_hook(seen.append)
    other = x.register_hook(seen.append)
    remove()
    remove()
    (x * 1.0).backward()
    assert len(seen) == 1
    other()
    (x * 1.0).backward()
    assert len(seen) == 1


def test_the_same_hook_registered_twice_is_removed_once():
    x, seen = leaf(), []
    remove = x.register_hook(seen.append)
    x.register_hook(seen.append)
    remove()
    (x * 1.0).backward()
    assert len(seen) == 1


def test_a_hook_of_the_wrong_shape_is_refused_and_nothing_is_stored():
    x, y = leaf([1.0, 2.0]), leaf()
    x.register_hook(lambda g: g[:1])
    with pytest.raises(GradientError, match="a hook must return a gradient of the same shape"):
        (x * y).sum().backward()
    assert x.grad is None
    assert y.grad is None


def test_a_hook_cannot_write_into_the_gradient():
    x = leaf([1.0, 2.0])

    def hook(g):
        g[:] = 0.0

    x.register_hook(hook)
    with pytest.raises(ValueError, match="read-only"):
        (x * 2.0).sum().backward()
    assert x.grad is None


@pytest.mark.parametrize(
    "value", [5, 5.0, np.float32(5), np.float64(5), lab.tensor(5.0)], ids=lambda x: type(x).__name__
)
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_hook_may_return_a_number_of_any_kind(value, create_graph):
    x = leaf(np.float32(1.0))
    x.register_hook(lambda g: value)
    (x * 2.0).backward(create_graph=create_graph)
    close(x.grad, 5.0)
    assert x.grad.dtype == np.float32


def test_a_hook_that_returns_no_gradient_is_refused():
    x = leaf()
    x.register_hook(lambda g: "nonsense")
    with pytest.raises(GradientError, match="a hook must return a gradient of the same shape"):
        (x * 2.0).backward()


def test_hooks_under_create_graph_are_differentiated():
    x = leaf(3.0)
    x.register_hook(lambda g: g * x)
    (x * x).backward(create_graph=True)  # g = 2 x, hooked: 2 x^2
    g = x.grad
    close(g, 18.0)
    gradients = lab.autograd.Tensor.backward
    x.node.hooks = None
    x.zero_grad()
    gradients(g)
    close(x.grad, 12.0)


# --- atomic ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [ValueError("mine"), KeyboardInterrupt()])
@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_are_unchanged_when_a_hook_fails_or_the_user_interrupts(failure, create_graph):
    x, y = leaf(2.0), leaf(3.0)
    (x * y).backward()

    def hook(g):
        raise failure

    z = x * y
    z.register_hook(hook)
    with pytest.raises(type(failure)):
        (z * x + y).backward(create_graph=create_graph)
    close(x.grad, 3.0)
    close(y.grad, 2.0)
    (x * y).backward()
    close(x.grad, 6.0)


def test_after_an_interrupted_walk_the_graph_is_whole_or_marked_as_freed():
    x = leaf(2.0)
    y = lab.exp(x) * x
    z = y * y

    def hook(g):
        raise KeyboardInterrupt

    remove = x.register_hook(hook)
    with pytest.raises(KeyboardInterrupt):
        z.backward()
    remove()
    assert x.grad is None
    with pytest.raises(GradientError, match="freed"):
        z.backward()
    assert x.grad is None


# --- modes ----------------------------------------------------------------------------------------------------------


def test_no_grad_records_nothing_and_nests():
    x = leaf()
    with lab.no_grad():
        assert (x * 2.0).requires_grad is False
        with lab.no_grad():
            assert (x * 2.0).requires_grad is False
        assert (x * 2.0).requires_grad is False
        assert lab.grad(lambda x: x * x)(3.0).item() == 6.0
    assert (x * 2.0).requires_grad


def test_no_grad_ends_when_its_block_fails():
    x = leaf()
    with pytest.raises(ZeroDivisionError), lab.no_grad():
        raise ZeroDivisionError
    assert (x * 2.0).requires_grad


def test_detach_and_stop_gradient_let_nothing_through():
    x = leaf(3.0)
    (x * x.detach() + lab.stop_gradient(x) * 2.0 * x).backward()
    close(x.grad, 3.0 + 6.0)
    assert x.detach().requires_grad is False
    assert np.shares_memory(x.detach().value, x.value)
    close(lab.grad(lambda x: x * x.detach())(3.0), 3.0)
    close(lab.jvp(lambda x: x * x.detach(), (3.0,), (1.0,))[1], 3.0)


def test_integers_and_booleans_are_not_tracked():
    x = leaf(2.0)
    for t in (x > 1.0, lab.floor(x).astype(int), lab.one_hot(lab.tensor([1]), n=2)):
        assert t.requires_grad is False


def test_a_cast_to_integers_lets_no_gradient_through():
    x = leaf(2.5)
    (x.astype(int).astype(float) * x).backward()
    close(x.grad, 2.0)
    close(lab.grad(lambda x: x.astype("int64") * x)(2.5), 2.0)


def test_anomaly_mode_names_the_op_the_argument_and_the_line():
    with lab.anomaly_mode():
        x = leaf(0.0)
        y = lab.sqrt(x)  # the line that the message names
        problem = "the rule of sqrt for x made a gradient that is not finite"
        with np.errstate(all="ignore"), pytest.raises(GradientError, match=problem) as caught:
            (y * 2.0).backward()
    line = test_anomaly_mode_names_the_op_the_argument_and_the_line.__code__.co_firstlineno + 3
    assert caught.value.given.startswith(f"recorded at {__file__}, line {line};")
    assert "ct * 0.5 / out" in caught.value.hint
    assert x.grad is None


def test_anomaly_mode_works_under_grad_too():
    def f(x):
        return lab.sqrt(x * 1.0)

    with lab.anomaly_mode(), np.errstate(all="ignore"), pytest.raises(GradientError, match="the rule of sqrt for x"):
        lab.grad(f)(0.0)


def test_anomaly_mode_is_silent_when_all_is_finite_and_when_nan_came_in():
    with lab.anomaly_mode(), warnings.catch_warnings():
        x = leaf(2.0)
        (lab.sqrt(x) * 2.0).backward()
        lab.sqrt(x).backward(np.nan)
    assert np.isnan(array(x.grad))


@pytest.mark.parametrize("create_graph", [False, True])
def test_what_another_thread_adds_to_a_leaf_meanwhile_is_not_lost(monkeypatch, create_graph):
    from lab.autograd import backward

    x = lab.tensor(1.0, requires_grad=True)
    x.grad = 100.0
    add, others = backward._total, []

    def overtaken(before, g):
        if not others:
            others.append(threading.Thread(target=(x * 10.0).backward))
            others[0].start()
            others[0].join()
        return add(before, g)

    monkeypatch.setattr(backward, "_total", overtaken)
    (x * 1.0).backward(create_graph=create_graph)
    assert x.grad.item() == 111.0


def test_many_threads_add_to_one_leaf():
    x = lab.tensor(np.zeros(3), requires_grad=True)
    start = threading.Barrier(4)

    def work():
        start.wait()
        for _ in range(200):
            (x * 1.0).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert x.grad.numpy().tolist() == [800.0] * 3
