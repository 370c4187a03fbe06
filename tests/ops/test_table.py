"""Every op of the table against its reference, differences and its other rules. The registry is the table."""

import itertools

import numpy as np
import pytest

import lab
from lab.autograd.batch import loop_and_stack
from lab.errors import LabError
from lab.graph.execute import run
from lab.ops import COMPOSITES, PRIMITIVES, Op
from lab.shapes import Spec
from tests.numerics import array, close, slope
from tests.ops.table import OF_RULES, RECORDS, SAMPLED, SMOOTH, Case, dot, smooth_operands
from tests.slices import sliced

NOT_DIFFERENTIABLE = {
    "all", "any", "argmax", "argmax_pool", "argmin", "argsort", "ceil", "count_nonzero", "det_sign", "equal", "floor",
    "greater",
    "greater_equal", "isfinite", "isinf", "isnan", "less", "less_equal", "logical_and", "logical_not", "logical_or",
    "logical_xor", "member_index", "not_equal", "one_hot", "random_uniform", "rint", "sign", "stop_gradient", "trunc",
    "wrap_index",
}  # fmt: skip
COLLECTIVES = {op.name for op in PRIMITIVES.values() if op.collective}
"""Their samples need an axis: tests/transforms/test_collectives.py."""
STAIRCASES = {"round_to"}
"""Their rules go straight through, which no difference quotient of theirs does: tests/precision."""
LOOP_AND_STACK = {"random_uniform"}
"""Ops that vmap runs once for each member; a new one must be a decision."""

each_sample = pytest.mark.parametrize(("op", "sample"), SAMPLED)
each_smooth_sample = pytest.mark.parametrize(("op", "sample"), SMOOTH)
each_smooth_sample_of_a_rule = pytest.mark.parametrize(("op", "sample"), OF_RULES)


# --- the registry is complete ---------------------------------------------------------------------------------------


def test_the_table_has_at_least_35_ops():
    assert len(PRIMITIVES) >= 35


@pytest.mark.parametrize("op", PRIMITIVES.values(), ids=str)
def test_every_op_has_a_full_record(op):
    assert PRIMITIVES[op.name] is op
    assert op.doc
    if op.name not in COLLECTIVES:
        assert op.samples
        assert op.reference is not None
    assert any(op.rules) != (op.name in NOT_DIFFERENTIABLE)
    assert all(rule is None or rule.text for rule in op.rules)


def test_rules_say_which_argument_they_are_for():
    for op in PRIMITIVES.values():
        assert all(rule is None or rule.argument == i for i, rule in enumerate(op.rules))


def test_only_listed_ops_use_the_batching_rule_of_last_resort():
    assert {op.name for op in PRIMITIVES.values() if op.batch is None} == LOOP_AND_STACK


def test_every_differentiable_op_has_a_forward_mode():
    for op in PRIMITIVES.values():
        assert not any(op.rules) or op.elementwise or op.linear or op.tangent is not None, op


# --- values ---------------------------------------------------------------------------------------------------------


@sliced("dtype")
@each_sample
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_value_matches_reference(op, sample, dtype):
    xs = sample.draw(seed=1, dtype=dtype)
    found = op(*map(lab.tensor, xs), **sample.params)
    expected = np.asarray(op.reference(*xs, **sample.params))
    close(found, expected, rtol=1e-12 if dtype == "float64" else 2e-5, atol=1e-12 if dtype == "float64" else 2e-6)
    if all(x.dtype.kind == "f" for x in xs) and "dtype" not in sample.params and found.dtype.kind == "f":
        assert found.dtype == dtype


@each_sample
def test_arrays_in_give_an_array_out_and_tensors_a_tensor(op, sample):
    xs = sample.draw(seed=1)
    bare, wrapped = op(*xs, **sample.params), op(*map(lab.tensor, xs), **sample.params)
    assert not isinstance(bare, lab.Tensor)
    assert type(wrapped) is lab.Tensor
    assert type(wrapped.value) is np.ndarray
    close(bare, wrapped, rtol=0, atol=0)


@each_sample
def test_memory_layout_does_not_matter(op, sample):
    xs = sample.draw(seed=2)
    spread = [np.repeat(x[..., None], 2, axis=-1)[..., 0] for x in xs]
    close(op(*spread, **sample.params), op(*xs, **sample.params), rtol=1e-14)


@each_sample
def test_an_op_never_writes_to_its_operands(op, sample):
    xs = sample.draw(seed=2)
    for x in xs:
        x.flags.writeable = False
    op(*xs, **sample.params)


# --- rules ----------------------------------------------------------------------------------------------------------


@each_smooth_sample
def test_backward_equals_a_central_difference(op, sample):
    case = Case(op, sample)
    ct, directions = case.cotangent(), case.directions()
    leaves = [lab.tensor(x, requires_grad=True) for x in case.xs]
    case.f(*leaves).backward(ct)
    expected = np.sum(ct * slope(case.f, case.xs, directions))
    close(dot([array(leaf.grad) for leaf in leaves], directions), expected, rtol=1e-7, atol=1e-9)


@sliced("dtype")
@each_smooth_sample
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_gradients_have_shape_and_dtype_of_their_operands(op, sample, dtype):
    case = Case(op, sample, dtype=dtype)
    leaves = [lab.tensor(x, requires_grad=True) for x in case.xs]
    case.f(*leaves).backward(case.cotangent())
    for leaf in leaves:
        assert (leaf.grad.shape, leaf.grad.dtype) == (leaf.shape, np.dtype(dtype))


@each_smooth_sample
def test_functional_vjp_equals_backward(op, sample):
    case = Case(op, sample)
    ct = case.cotangent()
    leaves = [lab.tensor(x, requires_grad=True) for x in case.xs]
    case.f(*leaves).backward(ct)
    _, back = lab.vjp(case.f, *case.xs)
    for leaf, found in zip(leaves, back(ct), strict=True):
        close(found, leaf.grad, rtol=1e-12)


@each_smooth_sample
def test_vjp_and_jvp_are_transposes(op, sample):
    case = Case(op, sample)
    ct, directions = case.cotangent(), case.directions()
    _, back = lab.vjp(case.f, *case.xs)
    _, tangent = lab.jvp(case.f, case.xs, directions)
    assert tangent.dtype == case.out.dtype
    close(np.sum(ct * array(tangent)), dot(map(array, back(ct)), directions), rtol=1e-11, atol=1e-12)


@each_smooth_sample
def test_second_order_equals_differences_of_the_vjp(op, sample):
    case = Case(op, sample)
    ct, u, v = case.cotangent(), case.directions(), case.directions()

    def first(*xs):
        found = lab.vjp(case.f, *xs)[1](ct)
        return sum((lab.sum(g * d) for g, d in zip(found, u, strict=True)), start=lab.tensor(0.0))

    expected = slope(first, case.xs, v)
    reverse = lab.grad(first, argnums=tuple(range(len(case.xs))))(*case.xs)
    close(dot(map(array, reverse), v), expected, rtol=1e-6, atol=1e-8)
    close(lab.jvp(first, case.xs, v)[1], expected, rtol=1e-6, atol=1e-8)


@each_smooth_sample
def test_create_graph_gives_the_same_second_order(op, sample):
    case = Case(op, sample)
    ct, u = case.cotangent(), case.directions()
    leaves = [lab.tensor(x, requires_grad=True) for x in case.xs]
    case.f(*leaves).backward(ct, create_graph=True)
    total = sum((lab.sum(leaf.grad * d) for leaf, d in zip(leaves, u, strict=True)), start=lab.tensor(0.0))
    for leaf in leaves:
        leaf.zero_grad()
    expected = lab.grad(
        lambda *xs: sum((lab.sum(g * d) for g, d in zip(lab.vjp(case.f, *xs)[1](ct), u, strict=True)),
                        start=lab.tensor(0.0)),
        argnums=tuple(range(len(leaves))),
    )(*case.xs)  # fmt: skip
    if total.requires_grad:
        total.backward()
    for leaf, g in zip(leaves, expected, strict=True):
        close(np.zeros(leaf.shape) if leaf.grad is None else leaf.grad, g, rtol=1e-10)


@each_smooth_sample_of_a_rule
def test_a_rule_returns_no_saved_array_and_reads_only_what_it_says(op, sample):
    case = Case(op, sample)
    ct, args, params = case.cotangent(), case.all, case.given()
    for i in case.chosen:
        rule = op.rule(i)
        extra = {"argument": i} if op.variadic else {}
        whole = rule.eager(ct, case.out, *args, **extra, **params)
        assert not any(np.shares_memory(whole, saved) for saved in (case.out, *args) if np.size(saved))
        words = rule.reads * len(args) if op.variadic else rule.reads
        less = [x if w == "value" else Spec(x.shape, x.dtype) if w == "like" else None
                for x, w in zip(args, words, strict=False)]  # fmt: skip
        close(rule.eager(ct, case.out if rule.reads_out else None, *less, **extra, **params), whole, rtol=0, atol=0)


@each_smooth_sample_of_a_rule
def test_a_node_saves_only_what_its_rules_read(op, sample):
    case = Case(op, sample)
    leaves = [lab.tensor(x, requires_grad=True) for x in case.xs]
    node = case.f(*leaves).node
    rules = [op.rule(i) for i in case.chosen]
    for j, saved in enumerate(node.saved[1:]):
        words = {rule.reads[0 if op.variadic else j] for rule in rules}
        kept = "value" if "value" in words else "like" if "like" in words else ""
        assert {"value": isinstance(saved, np.ndarray), "like": isinstance(saved, Spec), "": saved is None}[kept]
    assert (node.saved[0] is not None) == any(rule.reads_out for rule in rules)


# --- batching -------------------------------------------------------------------------------------------------------


@each_sample
def test_batching_rule_equals_a_loop_for_every_pattern_of_mapped_operands(op, sample):
    draws = [sample.draw(seed) for seed in range(3)]
    n = len(draws[0])
    for pattern in itertools.product((True, False), repeat=n):
        if not any(pattern):
            continue
        xs = [np.stack([d[i] for d in draws]) if m else draws[0][i] for i, m in enumerate(pattern)]
        found = lab.vmap(lambda *args: op(*args, **sample.params), in_axes=[0 if m else None for m in pattern])(*xs)
        expected = [
            op(*(x[k] if m else x for x, m in zip(xs, pattern, strict=True)), **sample.params) for k in range(3)
        ]
        close(found, np.stack(expected), rtol=1e-12)
        assert found.dtype == np.asarray(expected[0]).dtype


@pytest.mark.parametrize(("op", "sample"), [case for case in SAMPLED if isinstance(case.values[0], Op)])
def test_the_rule_of_last_resort_agrees_with_the_batching_rule(op, sample):
    xs = [np.stack(pair) for pair in zip(sample.draw(0), sample.draw(1), strict=True)]
    params = Case(op, sample).given()
    mapped = (True,) * len(xs)
    found = loop_and_stack(op, 2, mapped, tuple(map(lab.tensor, xs)), params)
    close(found, lab.vmap(lambda *args: op(*args, **sample.params))(*xs), rtol=1e-12)


# --- tracing --------------------------------------------------------------------------------------------------------


@sliced("dtype")
@each_sample
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_traced_equals_eager_and_the_shape_rule_tells_the_truth(op, sample, dtype):
    xs = sample.draw(seed=3, dtype=dtype)
    graph = lab.make_graph(lambda *args: op(*args, **sample.params))(*xs)
    eager = op(*map(lab.tensor, xs), **sample.params)
    (found,) = run(graph, [lab.tensor(x) for x in xs])
    assert graph.equations[-1].out.spec == (eager.shape, eager.dtype)
    assert len(graph.equations) == 1 or op.name in COMPOSITES
    close(found, eager, rtol=0, atol=0)


# --- errors ---------------------------------------------------------------------------------------------------------

FAULTY = [
    pytest.param(op, *row, id=f"{op.name}-{i}") for op in RECORDS for i, row in enumerate(op.error_samples)
]


@pytest.mark.parametrize(("op", "shapes", "params", "message"), FAULTY)
def test_error_samples_are_refused_by_message(op, shapes, params, message):
    xs = [np.ones(shape) for shape in shapes]
    for call in (
        lambda: op(*xs, **params),
        lambda: op(*map(lab.tensor, xs), **params),
        lambda: op(*(lab.tensor(x, requires_grad=True) for x in xs), **params),
        lambda: lab.make_graph(lambda *args: op(*args, **params))(*xs),
        lambda: lab.vmap(lambda *args: op(*args, **params))(*(np.stack([x, x]) for x in xs)),
    ):
        with pytest.raises(LabError) as caught:
            call()
        assert caught.value.problem.startswith(message)
        assert caught.value.given


def test_the_samples_cover_what_is_differentiated():
    covered = {case.values[0].name for case in OF_RULES}
    assert covered == {op.name for op in PRIMITIVES.values() if any(op.rules)} - COLLECTIVES - STAIRCASES
    assert all(smooth_operands(*case.values) for case in SMOOTH)
    assert {case.values[0].name for case in SAMPLED} >= COMPOSITES.keys()
