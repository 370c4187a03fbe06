"""What the tape tells: the exact sequence of events, names, source lines and levels; silence when nobody listens."""

import sys

import numpy as np
import pytest

import lab
from lab.autograd import apply, backward, observe
from lab.events import (
    BackwardFinished,
    BackwardStarted,
    Detail,
    GradientCleared,
    GradientStored,
    LeafUsed,
    OpRecorded,
    RuleApplied,
    ValueSeen,
    ValueWritten,
    bus,
)


def line():
    """The line of the caller."""
    return sys._getframe(1).f_lineno


def kinds(rec):
    return [type(e).__name__ for e in rec]


def run_the_first_graph():
    x, y = lab.tensor(2.0, requires_grad=True), lab.tensor(3.0, requires_grad=True)
    z = x * y + x
    z.backward()
    return x, y, z


def test_the_sequence_of_z_equals_xy_plus_x_at_detail_shape():
    with lab.record(detail="shape") as rec:
        x, y, _ = run_the_first_graph()
    n_x, n_y = x.node.id, y.node.id
    product, total = (e.node for e in rec if isinstance(e, OpRecorded))
    assert n_x < n_y < product < total
    file = __file__
    at = run_the_first_graph.__code__.co_firstlineno + 2
    assert list(rec) == [
        LeafUsed(n_x, "x", (), "float64"),
        LeafUsed(n_y, "y", (), "float64"),
        OpRecorded(product, "multiply", (n_x, n_y), (), "float64", 0, ("", ""), "", file, at),
        OpRecorded(total, "add", (product, n_x), (), "float64", 0, ("", ""), "", file, at),
        BackwardStarted(total, 2, 0),
        RuleApplied(total, "add", (product, n_x), 0),
        RuleApplied(product, "multiply", (n_x, n_y), 0),
        GradientStored(n_y, accumulated=False),
        GradientStored(n_x, accumulated=False),
        BackwardFinished(total, 2, 0, ""),
    ]


@pytest.mark.parametrize("create_graph", [False, True])
def test_the_values_of_z_equals_xy_plus_x_at_detail_value(create_graph):
    x, y = lab.tensor(2.0, requires_grad=True), lab.tensor(3.0, requires_grad=True)
    with lab.record(detail="value") as forward:
        z = x * y + x
    product, total = (e.node for e in forward if isinstance(e, OpRecorded))
    names = {x.node.id: "x", y.node.id: "y", product: "xy", total: "z"}

    def seen(rec):
        return [(e.role, names[e.node], names.get(e.source, ""), e.argument, float(e.value))
                for e in rec if isinstance(e, ValueSeen)]  # fmt: skip

    assert kinds(forward) == ["LeafUsed", "ValueSeen", "LeafUsed", "ValueSeen", "OpRecorded", "ValueSeen", "OpRecorded",
                              "ValueSeen"]  # fmt: skip
    assert seen(forward) == [("value", "x", "", -1, 2.0), ("value", "y", "", -1, 3.0), ("value", "xy", "", -1, 6.0),
                             ("value", "z", "", -1, 8.0)]  # fmt: skip
    with lab.record(detail="value", kinds=[ValueSeen, RuleApplied, GradientStored]) as walk:
        z.backward(create_graph=create_graph)
    rows = [
        ("gradient", "z", "", -1, 1.0),
        ("contribution", "xy", "z", 0, 1.0),
        ("contribution", "x", "z", 1, 1.0),
        ("gradient", "xy", "", -1, 1.0),
        ("contribution", "x", "xy", 0, 3.0),
        ("contribution", "y", "xy", 1, 2.0),
        ("gradient", "y", "", -1, 2.0),
        ("gradient", "x", "", -1, 4.0),
    ]
    assert seen_of_walk(walk, names) == rows


def seen_of_walk(rec, names):
    return [(e.role, names[e.node], names.get(e.source, ""), e.argument, float(e.value))
            for e in rec if isinstance(e, ValueSeen) and e.node in names and e.role != "value"]  # fmt: skip


@pytest.mark.parametrize("create_graph", [False, True])
def test_the_order_in_a_backward_walk_is_that_of_the_interface(create_graph):
    """Per node: its gradient, the rule applied, one contribution per target; per leaf: its gradient, then stored."""
    x, y = lab.tensor(2.0, requires_grad=True), lab.tensor(3.0, requires_grad=True)
    z = x * y + x
    with lab.record(detail="statistics", kinds=[BackwardStarted, ValueSeen, RuleApplied, GradientStored,
                                                 BackwardFinished]) as rec:  # fmt: skip
        z.backward(create_graph=create_graph)
    words = [e.role if isinstance(e, ValueSeen) else type(e).__name__ for e in rec]
    if create_graph:  # the walk is recorded itself: its own values come between
        ids = {x.node.id, y.node.id, z.node.id, z.node.parents[0].id}
        words = [w for w, e in zip(words, rec, strict=True)
                 if not isinstance(e, ValueSeen) or (e.node in ids and e.role != "value")]  # fmt: skip
    assert words == [
        "BackwardStarted",
        "gradient", "RuleApplied", "contribution", "contribution",
        "gradient", "RuleApplied", "contribution", "contribution",
        "gradient", "GradientStored", "gradient", "GradientStored",
        "BackwardFinished",
    ]  # fmt: skip


def test_statistics_are_over_finite_entries_and_copies_only_at_detail_value():
    x = lab.tensor([3.0, -4.0, np.inf, np.nan], requires_grad=True)
    with lab.record(detail="statistics") as rec:
        x * 1.0
    seen = next(e for e in rec if isinstance(e, ValueSeen))
    assert (seen.minimum, seen.maximum, seen.mean, seen.norm, seen.n_nonfinite, seen.value) == (-4, 3, -0.5, 5, 2, None)
    with lab.record(detail="value") as rec:
        x * 1.0
    seen = next(e for e in rec if isinstance(e, ValueSeen))
    assert np.array_equal(seen.value, x.numpy(), equal_nan=True)
    assert not np.shares_memory(seen.value, x.value)


def test_arrays_of_more_entries_than_the_limit_are_described_and_not_copied():
    x = lab.tensor(np.ones(observe.LARGEST_COPY + 1), requires_grad=True)
    with lab.record(detail="value") as rec:
        x * 1.0
    assert [e.value for e in rec if isinstance(e, ValueSeen)] == [None, None]


def test_the_norm_of_entries_whose_squares_overflow_is_told_without_a_warning():
    for n in (4, 100):
        found = observe.statistics(np.full(n, -1e200))
        assert found[3] == pytest.approx(1e200 * n**0.5)
        assert found[:2] == (-1e200, -1e200)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (3, 2)])
def test_statistics_of_every_dtype_and_shape(dtype, shape):
    x = lab.tensor(np.full(shape, 300.0, dtype), requires_grad=True)
    with lab.record(detail="statistics") as rec:
        (x + x).sum().backward()
    seen = [e for e in rec if isinstance(e, ValueSeen)]
    assert {e.n_nonfinite for e in seen} == {0}
    assert all(np.isfinite(e.norm) for e in seen)  # 300 squared overflows float16, its norm does not
    assert {e.norm for e in seen if 0 in e.shape} <= {0.0}


def test_names_of_leaves_come_from_the_user_or_from_the_variables_of_the_line():
    def model(weights, x):
        return weights["w"] * x + bias

    bias = lab.tensor(1.0, requires_grad=True)
    w = lab.tensor(2.0, requires_grad=True, name="layer.weight")
    with lab.record() as rec:
        model({"w": w}, lab.tensor(3.0, requires_grad=True))
    assert [e.name for e in rec if isinstance(e, LeafUsed)] == ["layer.weight", "x", "bias"]


def test_a_leaf_without_a_variable_has_no_name():
    with lab.record() as rec:
        lab.tensor(3.0, requires_grad=True) * 2.0
    assert [e.name for e in rec if isinstance(e, LeafUsed)] == [""]


def test_names_are_found_through_lambdas_and_comprehensions():
    weight = lab.tensor(2.0, requires_grad=True)
    f = lambda: weight * 3.0  # noqa: E731 - the subject
    with lab.record() as rec:
        f()
    assert [e.name for e in rec if isinstance(e, LeafUsed)] == ["weight"]
    with lab.record() as rec:
        [weight * float(i) for i in range(2)]
    assert [e.name for e in rec if isinstance(e, LeafUsed)] == ["weight"]


def test_a_leaf_announces_itself_once_per_recording():
    x = lab.tensor(2.0, requires_grad=True)
    for _ in range(2):
        with lab.record(kinds=[LeafUsed]) as rec:
            x * x + x
            x + 1.0
        assert len(rec) == 1


def test_constants_are_told_by_value_or_by_shape():
    x = lab.tensor([1.0, 2.0], requires_grad=True)
    with lab.record(kinds=[OpRecorded]) as rec:
        x * 2.0
        3 + x
        x * np.ones(2)
        x / lab.tensor(4.0)
    assert [e.constants for e in rec] == [("", "2"), ("3", ""), ("", "(2) float64"), ("", "4")]


def test_source_lines_are_those_of_the_user_in_nested_calls():
    def inner(x):
        return x * x, line()

    def outer(x):
        y, at = inner(x)
        return y + 1.0, (at, line())

    x = lab.tensor(2.0, requires_grad=True)
    with lab.record(kinds=[OpRecorded]) as rec:
        y, lines = outer(x)
        z, at = lab.softmax(lab.stack([y, y])), line()
        np.exp(z)
        z.sum()
    assert {e.file for e in rec} == {__file__}
    assert [e.line for e in rec][:2] == list(lines)
    assert [e.line - at for e in rec][2:] == [0, 0, 0, 0, 1, 2]


def test_source_lines_without_sources_are_empty():
    x = lab.tensor(2.0, requires_grad=True)
    with lab.record(sources=False) as rec:
        x * x
    assert [(e.file, e.line, e.constants) for e in rec if isinstance(e, OpRecorded)] == [("", 0, ())]


def test_the_lines_of_a_walk_that_is_recorded_itself_are_where_backward_was_called():
    x = lab.tensor(2.0, requires_grad=True)
    y = x**3 * lab.exp(x)
    with lab.record(kinds=[OpRecorded]) as rec:
        y.backward(create_graph=True)
        at = line() - 1
    assert len(rec) > 3
    assert {(e.file, e.line) for e in rec} == {(__file__, at)}


def test_levels_of_nested_transforms_differ_and_the_plain_level_is_zero():
    x = lab.tensor(2.0, requires_grad=True)
    with lab.record(kinds=[OpRecorded, BackwardStarted, BackwardFinished]) as rec:
        x * x
        lab.grad(lambda a: lab.grad(lambda b: a * b * b)(a))(2.0)
    levels = {e.level for e in rec}
    assert 0 in levels
    assert len(levels) == 3
    walks = [(type(e).__name__, e.level) for e in rec if not isinstance(e, OpRecorded)]
    inner, outer = max(levels), sorted(levels)[1]
    assert walks == [("BackwardStarted", inner), ("BackwardFinished", inner), ("BackwardStarted", outer),
                     ("BackwardFinished", outer)]  # fmt: skip


def test_transforms_with_detail_value_describe_what_they_can():
    with lab.record(detail="value") as rec:
        lab.vmap(lab.grad(lambda x: lab.exp(x) * x))(np.ones(3))
        lab.jit(lab.grad(lambda x: lab.exp(x) * x))(1.0)
        lab.jvp(lab.grad(lambda x: lab.exp(x) * x), (1.0,), (1.0,))
    assert len(rec) > 20


def test_nothing_is_emitted_and_no_frame_is_walked_when_nobody_listens(monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("somebody was told something")

    for module in (observe, backward, apply):
        for name in ("observe_op", "observe_unary", "observe_binary", "observe_rule", "emit_value", "user_frame"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, forbidden)
    monkeypatch.setattr(type(bus), "emit_row", forbidden)
    assert not bus.operations
    run_the_first_graph()
    lab.grad(lambda x: lab.exp(x) * x)(1.0)
    lab.jit(lambda x: x * x)(2.0)


def test_a_listener_of_training_only_costs_the_tape_nothing():
    from lab.events import StepFinished

    with lab.record(kinds=[StepFinished], detail=Detail.VALUE):
        assert not bus.operations


def test_a_walk_in_which_something_raises_ends_with_that_and_stores_nothing():
    x = lab.tensor(2.0, requires_grad=True)
    y = x * 3.0

    def hook(g):
        raise ValueError("mine")

    y.register_hook(hook)
    with (
        lab.record(kinds=[BackwardStarted, BackwardFinished, GradientStored]) as rec,
        pytest.raises(ValueError, match="mine"),
    ):
        y.backward()
    assert kinds(rec) == ["BackwardStarted", "BackwardFinished"]
    assert rec[1] == BackwardFinished(y.node.id, 1, 0, "ValueError: mine")


def test_a_walk_of_a_transform_in_which_a_rule_raises_ends_too():
    def refuse(x, ct):
        raise ValueError("mine")

    wrong = lab.custom_vjp(lab.sin).defvjp(lambda x: (lab.sin(x), x), refuse)
    with lab.record(kinds=[BackwardStarted, BackwardFinished]) as rec, pytest.raises(ValueError, match="mine"):
        lab.grad(lab.grad(lambda x: wrong(x) * x))(1.0)
    assert kinds(rec).count("BackwardStarted") == kinds(rec).count("BackwardFinished") > 0
    assert "ValueError: mine" in {e.error for e in rec if isinstance(e, BackwardFinished)}


def test_a_leaf_that_is_its_own_root_tells_its_story():
    x = lab.tensor(2.0, requires_grad=True)
    with lab.record() as rec:
        x.backward()
    assert kinds(rec)[-2:] == ["GradientStored", "BackwardFinished"]


def test_a_training_loop_by_hand_tells_each_write_and_each_forgotten_gradient():
    x = lab.tensor(2.0, requires_grad=True)
    with lab.record(detail="value", kinds=[ValueSeen, GradientStored, GradientCleared, ValueWritten]) as rec:
        for _ in range(2):
            (x * x).backward()
            with lab.no_grad():
                x -= 0.25 * x.grad
            x.zero_grad()
    mine = [
        (e.role, float(e.value)) if isinstance(e, ValueSeen) else type(e).__name__ for e in rec if e.node == x.node.id
    ]
    once = ["contribution", "contribution", "gradient"]
    assert [w if isinstance(w, str) else w[0] for w in mine] == [
        "value", *once, "GradientStored", "ValueWritten", "value", "GradientCleared",
        *once, "GradientStored", "ValueWritten", "value", "GradientCleared",
    ]  # fmt: skip
    assert [w[1] for w in mine if w[0] == "value"] == [2.0, 1.0, 0.5]


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.assign([5.0, 6.0]),
        lambda x: x.__setitem__(slice(None), [5.0, 6.0]),
        lambda x: x.__iadd__([4.0, 4.0]),
    ],
)
def test_every_way_to_write_into_a_leaf_is_told_with_its_new_value(write):
    x = lab.tensor([1.0, 2.0], requires_grad=True)
    with lab.record() as rec, lab.no_grad():
        write(x)
    assert rec[0] == ValueWritten(x.node.id)
    assert rec[1].value.tolist() == [5.0, 6.0]
    with lab.record() as rec, lab.no_grad():
        write(lab.tensor([1.0, 2.0]))
    assert not list(rec)  # no leaf


def test_a_gradient_set_by_hand_is_told_and_one_that_is_not_there_is_not_forgotten():
    x = lab.tensor(2.0, requires_grad=True)
    with lab.record() as rec:
        x.zero_grad()
        x.grad = 3.0
        x.grad = None
    assert kinds(rec) == ["ValueSeen", "GradientStored", "GradientCleared"]
    assert (rec[0].role, float(rec[0].value), rec[1].accumulated) == ("gradient", 3.0, False)


def test_parameters_are_told_where_they_are_not_the_defaults():
    x = lab.tensor(np.ones((3, 4)), requires_grad=True)
    with lab.record(kinds=[OpRecorded]) as rec:
        x.sum()
        x.sum(axis=0)
        x.max(axis=1, keepdims=True)
        x[0]
        x[1:, ..., ::2]
        x[np.array([0, 1]), None]
        x[[0, 2]]
        x.reshape(2, -1)
        x.transpose()
        x.transpose(1, 0)
        lab.relu(x)
        lab.softmax(x)
        x.astype("float32")
        x * x
        x[list(range(100)) * 0 + [0] * 50]
    assert [e.params for e in rec][:-1] == [
        "", "axis=0", "axis=1, keepdims=True", "[0]", "[1:, ..., ::2]", "[int64 (2), None]", "[[0, 2]]",
        "shape=(2, -1)", "", "axes=(1, 0)", "", "", "", "",
    ]  # fmt: skip
    assert len(rec[-1].params) <= 42


def test_parameters_of_a_transform_are_told_and_none_without_sources():
    with lab.record(kinds=[OpRecorded]) as rec:
        lab.grad(lambda x: (x.sum(axis=0) * x[0]).sum())(np.ones((2, 2)))
    assert [e.params for e in rec if e.op in {"sum", "getitem"}][:2] == ["axis=0", "[0]"]
    with lab.record(kinds=[OpRecorded], sources=False, detail="value") as rec:
        lab.tensor(np.ones(2), requires_grad=True).sum(axis=0)
    assert [e.params for e in rec] == [""]
