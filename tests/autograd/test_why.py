"""Why this gradient: shares that add up, for every op of the table, against all paths counted by hand, and refusals."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lab
from lab.errors import ArgumentError, GradientError, LabError, RecordingError
from lab.events import EVENTS, OperandKept, OpRecorded, ParametersKept, Recording, bus
from lab.ops import PRIMITIVES

EVERY = 100_000
"""So many paths that all are given."""

CASES = [
    pytest.param(op, sample, dtype, id=f"{op.name}-{i}-{dtype}")
    for op in PRIMITIVES.values()
    for i, sample in enumerate(op.samples)
    for dtype in ("float64", "float32")
    if any(op.rules) and any(k[0] == "f" for k in sample.kinds) and sample.differentiable != ()
]


def room(why, dtype):
    """What rounding may make of a sum of so many numbers."""
    sizes = [abs(p.share) for p in why.paths] + [abs(o.share) for o in why.others] + [abs(why.gradient), 1e-300]
    return 64 * float(np.finfo(dtype).eps) * math.fsum(sizes)


def assert_explained(why, dtype="float64"):
    """Everything is a path, each path multiplies to its share, and the shares add up to the run's number."""
    assert not why.others
    assert why.n_open == 0
    assert why.rest == 0
    for path in why.paths:
        assert math.isclose(math.prod(path.factors), path.share, rel_tol=1e-12)
        assert len(path.factors) == len(path.places) == len(path.operands) + 1
    assert abs(math.fsum(p.share for p in why.paths) - why.gradient) <= room(why, dtype)
    assert why.error <= room(why, dtype)


# --- every op of the table ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("op", "sample", "dtype"), CASES)
def test_the_shares_of_every_op_add_up_to_its_gradient(op, sample, dtype):
    drawn = sample.draw(seed=3, dtype=dtype)
    tracked = [a.dtype.kind == "f" and bool(a.size) for a in drawn]
    operands = [lab.tensor(a, requires_grad=True) if t else a for a, t in zip(drawn, tracked, strict=True)]
    with lab.record() as rec:
        out = op(*operands, **sample.params)
        seed = np.random.default_rng(1).normal(size=out.shape).astype(out.dtype)
        if out.size:
            out.backward(seed)
    for tensor, t in zip(operands, tracked, strict=True):
        if t and out.size and tensor.grad is not None:
            for index in np.ndindex(*tensor.shape):
                why = lab.why(tensor, index, recording=rec, n_paths=EVERY)
                assert why.gradient == float(tensor.grad.numpy()[index])
                assert_explained(why, dtype)


@pytest.mark.parametrize("op", [op for op in PRIMITIVES.values() if len(op.arguments) == 2 and any(op.rules)], ids=str)
def test_with_one_operand_constant_the_shares_add_up_too(op):
    sample = op.samples[1 if len(op.samples) > 1 else 0]
    for constant in (0, 1):
        operands = list(sample.draw(seed=5))
        if operands[1 - constant].dtype.kind != "f" or op.rule(1 - constant) is None:
            continue
        operands[1 - constant] = x = lab.tensor(operands[1 - constant], requires_grad=True)
        with lab.record() as rec:
            out = op(*operands, **sample.params)
            out.backward(np.ones(out.shape))
        assert_explained(lab.why(x, recording=rec, n_paths=EVERY))


def test_an_op_with_a_backward_rule_only_is_asked_entry_by_entry():
    @lab.ops.primitive()
    def mixed(x):
        "Sums of neighbours, squared."
        return (x[1:] + x[:-1]) ** 2

    @mixed.vjp(text="neighbours")
    def mixed_vjp(ct, _out, x):
        g = 2 * ct * (x[1:] + x[:-1])
        return np.concatenate([g, [0.0]]) + np.concatenate([[0.0], g])

    try:
        x = lab.tensor([1.0, 2.0, 4.0], requires_grad=True)
        with lab.record() as rec:
            mixed(x).sum().backward()
        why = lab.why(x, 1, recording=rec)
        assert [p.share for p in why.paths] == [12.0, 6.0]
        assert_explained(why)
    finally:
        del PRIMITIVES["mixed"]
    gone = lab.why(x, 1, recording=rec)
    assert [(o.share, o.why) for o in gone.others] == [(18.0, "this lab has no op of that name: mixed")]
    assert gone.error == 0


# --- against all paths, counted by brute force -------------------------------------------------------------------

STEPS = ("multiply", "add", "tanh", "matmul", "softmax", "mean", "getitem", "where", "relu", "spread")
FACTOR = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5], [-2.0, 1.0, 0.75]])


def jacobians(step, values):
    """d(out)/d(operand) of each operand, written down by hand; all values have three entries."""
    x = values[0]
    eye = np.eye(3)
    e = np.exp(x - x.max())
    s = e / e.sum()
    return {
        "multiply": lambda: [np.diag(values[-1]), np.diag(x)],
        "add": lambda: [eye, eye],
        "tanh": lambda: [np.diag(1 - np.tanh(x) ** 2)],
        "matmul": lambda: [FACTOR.T],
        "softmax": lambda: [np.diag(s) - np.outer(s, s)],
        "mean": lambda: [np.full((3, 3), 1 / 3)],
        "getitem": lambda: [eye[[2, 0, 0]]],
        "where": lambda: [np.diag([1.0, 0.0, 1.0]), np.diag([0.0, 1.0, 0.0])],
        "relu": lambda: [np.diag((x > 0) * 1.0)],
        "spread": lambda: [np.outer(np.ones(3), eye[1])],
    }[step]()


def applied(step, operands):
    x, y = operands[0], operands[-1]
    return {
        "multiply": lambda: x * y,
        "add": lambda: x + y,
        "tanh": lambda: lab.tanh(x),
        "matmul": lambda: x @ FACTOR.astype(x.dtype),
        "softmax": lambda: lab.softmax(x),
        "mean": lambda: lab.broadcast_to(lab.mean(x, keepdims=True), shape=(3,)),
        "getitem": lambda: x[[2, 0, 0]],
        "where": lambda: lab.where(np.array([True, False, True]), x, y),
        "relu": lambda: lab.relu(x),
        "spread": lambda: x[1] * np.ones(3, x.dtype),
    }[step]()


programs = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=5)


@given(programs, st.sampled_from(["float64", "float32"]), st.integers(0, 2), st.integers(0, 1000))
def test_the_paths_are_those_that_brute_force_finds(program, dtype, entry, seed):
    start = np.random.default_rng(seed).normal(size=3).astype(dtype)
    x = lab.tensor(start, requires_grad=True, name="x")
    tensors, made = [x], []
    with lab.record() as rec:
        for step, i, j in program:
            picked = [i % len(tensors), j % len(tensors)][: 2 if step in ("multiply", "add", "where") else 1]
            made.append((step, picked))
            tensors.append(applied(step, [tensors[k] for k in picked]))
        tensors[-1].backward(np.array([1.0, -2.0, 0.5], dtype))
    values = [t.numpy().astype(np.float64) for t in tensors]

    def shares(k, j):
        """Of every path from entry j of tensor k to the last."""
        if k == len(tensors) - 1:
            yield [1.0, -2.0, 0.5][j]
        for n, (step, picked) in enumerate(made, start=1):
            for operand, source in enumerate(picked):
                if source == k:
                    column = jacobians(step, [values[p] for p in picked])[operand][:, j]
                    yield from (d * rest for to, d in enumerate(column) if d for rest in shares(n, to))

    expected = sorted(s for s in shares(0, entry) if s)
    if x.grad is None or not expected:
        return
    exact = dtype == "float64"
    why = lab.why(x, entry, recording=rec, n_paths=EVERY, budget=EVERY)
    # What flows into a gradient that is zero as a whole is not followed: its parts cancel, and the books still balance.
    found = sorted(p.share for p in why.paths)
    assert_explained(why, dtype)
    size = sum(map(abs, expected))
    assert math.isclose(math.fsum(expected), why.gradient, abs_tol=(1e-13 if exact else 1e-5) * size)
    if len(found) == len(expected):
        np.testing.assert_allclose(found, expected, rtol=1e-9 if exact else 1e-3, atol=(1e-13 if exact else 1e-6) * size)
    few = lab.why(x, entry, recording=rec, n_paths=2)
    assert few.error <= room(few, dtype) + (1e-13 if exact else 1e-5) * size
    assert len(few.paths) == min(2, len(found))
    if few.certain and all(s > 0 for s in expected):  # nothing cancels: then the largest are the largest
        np.testing.assert_allclose([p.share for p in few.paths], expected[::-1][:2], rtol=1e-9 if exact else 1e-3)
