"""What is seldom given to a graph: the other order of bytes, numbers that no dtype holds, very long chains."""

import numpy as np
import pytest

import lab
from lab.errors import DTypeError
from lab.graph.compiled import Compiled
from lab.kernels import rowloop


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i8", ">i2"])
def test_inputs_constants_and_what_is_captured_may_have_the_other_order_of_bytes(dtype):
    xs = np.arange(1.0, 7.0).reshape(2, 3).astype(dtype)
    outside = lab.tensor(xs)

    def f(x):
        rows = lab.reshape(x, (3, 2))
        chosen = lab.cond(True, lambda y: lab.exp(y) + 1, lab.exp, x)
        return lab.tanh(x * 0.1) + xs + outside, rows * 2 + 1, x > 2, chosen

    jitted = lab.jit(f, executor="compiled")
    native = xs.astype(xs.dtype.newbyteorder("="))
    for argument in (native, np.asfortranarray(native), xs):
        for a, b in zip(jitted(argument), f(lab.tensor(xs)), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=3e-6)


def test_a_loop_that_ran_on_a_copy_of_a_transposed_array_reads_swapped_bytes_right():
    jitted = lab.jit(lambda x: lab.tanh(x) * 2.0 + x, executor="compiled")
    xs = np.random.default_rng(0).standard_normal((3, 4))
    for argument in (xs.T, xs[::2, ::-1], xs, xs.astype(">f8")):
        for _ in range(2):
            np.testing.assert_allclose(jitted(argument).numpy(), np.tanh(argument) * 2.0 + argument, rtol=1e-12)


@pytest.mark.parametrize("number", [2**70, -(2**63) - 1])
def test_a_whole_number_that_no_dtype_holds_is_refused_in_three_lines(number):
    for transform in (lab.jit, lab.make_graph):
        with pytest.raises(DTypeError, match=f"no dtype holds this whole number\ngiven: {number}\nhint:  "):
            transform(lambda x: x + 1)(number)


def test_a_chain_of_more_operations_than_python_nests_calls_is_one_loop(monkeypatch):
    monkeypatch.setattr(rowloop, "have_compiler", lambda: False)

    def f(x):
        for _ in range(600):
            x = lab.tanh(x) * 1.01
        return x

    compiled = Compiled(lab.make_graph(f)(np.ones(3)))
    assert len(compiled.code.loops) == 1
    np.testing.assert_allclose(compiled.arrays([np.ones(3)])[0], f(lab.tensor(np.ones(3))).numpy(), rtol=1e-12)
