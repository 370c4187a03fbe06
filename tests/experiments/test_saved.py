"""What a graph keeps for backward: what the rules read, each array once, and as many bytes as a run really holds."""

from __future__ import annotations

import numpy as np
import pytest

import lab
from lab.errors import GradientError

N = 50_000
ARRAY = 8 * N


def leaf(low=0.1):
    return lab.tensor(np.linspace(low, 1.0, N), requires_grad=True)


def kept(result):
    return {row.op: row.names for row in lab.saved_values(result).rows}


def test_an_operation_keeps_what_its_rules_read():
    x, y = leaf(), leaf()
    assert kept(lab.exp(lab.sin(x) * y) + y) == {"sin": ("x",), "multiply": ("x", "y"), "exp": ("out",), "add": ()}
    assert kept(lab.relu(x).sum()) == {"relu": ("x",), "sum": ()}
    assert kept(2.0 * x) == {"multiply": ("x",)}  # the rule of x alone is wanted, and reads the 2
    assert kept(lab.concatenate([x, y])) == {"concatenate": ()}
    assert kept(lab.matmul(lab.reshape(x, (100, 500)), np.ones((500, 3)))) == {"reshape": (), "matmul": ("b",)}


def test_an_array_counts_once_and_those_of_leaves_not_at_all():
    x, y = leaf(), leaf()
    assert lab.saved_values(x * y).n_bytes == 0
    assert lab.saved_values(lab.sin(lab.exp(x))).n_arrays == 1  # exp keeps what comes out, and sin the same array
    half = lab.sin(x)[: N // 2]
    assert lab.saved_values(half * half).n_bytes == ARRAY  # a view holds all of the array that it looks into


@pytest.mark.parametrize("op", [lab.sin, lambda x: lab.exp(-x), lab.tanh, lab.sqrt, lambda x: x + 1.0, lambda x: x * x])
def test_it_is_what_a_run_holds_after_its_forward(op):
    def loss():
        return op(op(op(op(x)))).sum()

    x = leaf()
    held = lab.measure_memory(run=loss).ways["run"].kept
    assert lab.saved_values(loss()).n_bytes == pytest.approx(held, abs=0.05 * ARRAY)


def test_indices_that_are_arrays_are_kept_too():
    (row,) = lab.saved_values(leaf()[np.arange(100)]).rows
    assert (row.op, row.names, row.n_bytes) == ("getitem", ("index",), 800)


def test_backward_frees_and_a_checkpoint_makes_again():
    x = leaf()
    piece = lab.checkpoint(lambda x: lab.sin(lab.sin(x)))
    assert lab.saved_values(piece(x)).n_bytes == 0  # what went in is a leaf's
    loss = piece(lab.sin(x)).sum()
    found = [(row.state, row.n_bytes) for row in lab.saved_values(loss).rows]
    assert found == [("kept", 0), ("replayed", ARRAY), ("replayed", 0), ("kept", 0)]
    loss.backward(retain_graph=True)
    assert lab.saved_values(loss).n_bytes == ARRAY
    loss.backward()
    assert {row.state for row in lab.saved_values(loss).rows} == {"freed"}
    assert lab.saved_values(loss).n_bytes == 0


def test_a_rule_of_the_users_own_is_looked_into():
    @lab.custom_vjp
    def cube(x):
        return x**3

    x = leaf()
    cube.defvjp(lambda x: (x**3, {"square": x * x, "n": 3}), lambda kept, ct: (3.0 * kept["square"] * ct,))
    found = lab.saved_values(cube(x))
    assert (found.n_arrays, found.n_bytes) == (1, ARRAY)


def test_its_text_is_a_table_that_ends():
    x = leaf()
    assert str(lab.saved_values(lab.sin(lab.sin(x)))).splitlines() == [
        "sin           x             held already",
        "sin           x             400,000 bytes",
        "1 array, 400,000 bytes",
    ]
    for _ in range(100):
        x = x + 1.0
    assert str(lab.saved_values(x)).splitlines()[-2:] == ["... and 76 more", "0 arrays, 0 bytes"]


@pytest.mark.parametrize("value", [lab.tensor(1.0), 3.0, None])
def test_what_has_no_graph_is_refused_in_three_lines(value):
    with pytest.raises(GradientError, match="and this has none") as caught:
        lab.saved_values(value)
    assert len(str(caught.value).splitlines()) == 3
