"""A jitted function has a graph for each mode of the modules in it: train() and eval() hold from the next call on."""

import numpy as np
import pytest

import lab
from lab.autograd.training_mode import MODES
from lab.nn import BatchNorm1d, Dropout, Linear, Module, Sequential

X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def noisy():
    return Sequential(Linear(3, 3, rng=0), Dropout(0.5, rng=1))


@pytest.mark.parametrize("executor", ["interpreted", "compiled", "parallel"])
def test_a_call_after_eval_drops_nothing_and_one_after_train_drops_again(executor):
    model, same = noisy(), noisy()
    f = lab.jit(lambda x: model(x), executor=executor)
    with lab.no_grad():
        for mode in (True, True, False, False, True, False):
            model.train(mode), same.train(mode)
            np.testing.assert_allclose(f(X).numpy(), same(X).numpy(), rtol=1e-6)
    assert len(f.cache) == len(f.misses) == 2
    assert f.hits == 4
    assert f.misses[1].reason == "1 module went from train() to eval() or back"


def test_the_modes_that_a_jitted_function_read_count_for_one_that_calls_it():
    model = noisy()
    inner = lab.jit(lambda x: model(x))
    outer = lab.jit(lambda x: inner(x) + 1.0)
    with lab.no_grad():
        inner(X), outer(X), outer(X)
        model.eval()
        np.testing.assert_allclose(outer(X).numpy(), model(X).numpy() + 1, rtol=1e-6)


def test_a_graph_that_asked_for_no_mode_serves_on_when_another_one_did():
    model = noisy()
    f = lab.jit(lambda x: model(x) if x.ndim == 2 else x * 2.0)
    with lab.no_grad():
        f(X[0]), f(X), f(X[0])
    assert (len(f.misses), f.hits) == (2, 1)


def test_batch_norm_in_use_is_found_after_training():
    model = BatchNorm1d(3)
    model(X)
    f = lab.jit(lambda x: model(x))
    with pytest.raises(lab.errors.UnsupportedError):
        f(X)
    model.eval()
    np.testing.assert_allclose(f(X).numpy(), model(X).numpy(), rtol=1e-6)


def test_a_module_of_ones_own_that_looks_at_its_mode_has_both_graphs():
    class Doubling(Module):
        def forward(self, x):
            return x * 2.0 if self.training else x

    model = Doubling()
    f = lab.jit(model)
    assert f(1.0).item() == 2
    model.eval()
    assert f(1.0).item() == 1


def test_a_module_that_the_function_makes_itself_is_not_waited_for():
    f = lab.jit(lambda x: Dropout(0.5, rng=np.random.default_rng(0)).eval()(x))
    assert [f(1.0).item() for _ in range(3)] == [1, 1, 1]
    assert len(f.misses) == 1


def test_nobody_is_told_of_modes_after_a_trace_that_failed():
    def fails(x):
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        lab.jit(fails)(1.0)
    assert MODES.get() is None
