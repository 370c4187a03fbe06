"""Why this gradient: shares that add up, for every op of the table, against all paths counted by hand, and refusals."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lab
from lab.errors import ArgumentError, GradientError, LabError, RecordingError
from lab.events import EVENTS, OperandKept, OpRecorded, ParametersKept, Recording, bus
from lab.ops import PRIMITIVES
from tests.slices import sliced

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


def assert_explained(why, dtype="float64", rounding=0.0):
    """Everything is a path, each path multiplies to its share, and the shares add up to the run's number.

    Args:
        rounding: room for what a rule rounded inside, where that is more than its result shows.
    """
    assert not why.others
    assert why.n_open == 0
    assert why.rest == 0
    for path in why.paths:
        assert math.isclose(math.prod(path.factors), path.share, rel_tol=1e-12)
        assert len(path.factors) == len(path.places) == len(path.operands) + 1
    assert abs(math.fsum(p.share for p in why.paths) - why.gradient) <= room(why, dtype) + rounding
    assert why.error <= room(why, dtype) + rounding


# --- every op of the table ---------------------------------------------------------------------------------------


@sliced("dtype")
@pytest.mark.parametrize(("op", "sample", "dtype"), CASES)
def test_the_shares_of_every_op_add_up_to_its_gradient(op, sample, dtype):
    drawn = sample.draw(seed=3, dtype=dtype)
    tracked = [a.dtype.kind == "f" and bool(a.size) for a in drawn]
    operands = [lab.tensor(a, requires_grad=True) if t else a for a, t in zip(drawn, tracked, strict=True)]
    with lab.record() as rec:
        out = op(*operands, **sample.params)
        seed = np.random.default_rng(1).normal(size=out.shape).astype(out.dtype)
        if out.size and any(tracked):  # a product over an empty axis is all zeros
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


def terms(step, values):
    """How large the summands of each entry of these Jacobians are: rounding is of their size, not of what they leave.

    1 - tanh(x)**2 has no digit left where tanh is nearly 1, and a softmax that is nearly sure likewise.
    """
    if step == "tanh":
        return [np.diag(1 + np.tanh(values[0]) ** 2)]
    if step == "softmax":
        e = np.exp(values[0] - values[0].max())
        s = e / e.sum()
        return [np.diag(s) + np.outer(s, s)]
    return [np.abs(d) for d in jacobians(step, values)]


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
@example([("add", 0, 0), ("add", 1, 1), ("tanh", 2, 0)], "float32", 0, 438)  # 1 - tanh**2 of a tanh that is nearly 1
@example([("matmul", 0, 0), ("getitem", 1, 0), ("softmax", 2, 0)], "float32", 0, 438)  # a softmax that is nearly sure
@example([("matmul", 0, 0), ("matmul", 1, 0), ("softmax", 2, 0), ("relu", 3, 0)], "float64", 2, 438)
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
        """Of every path from entry j of tensor k to the last: its share, and the size of what was rounded."""
        if k == len(tensors) - 1:
            yield [1.0, -2.0, 0.5][j], [1.0, 2.0, 0.5][j]
        for n, (step, picked) in enumerate(made, start=1):
            for operand, source in enumerate(picked):
                if source == k:
                    given = [values[p] for p in picked]
                    column, sizes = (f(step, given)[operand][:, j] for f in (jacobians, terms))
                    yield from ((column[to] * rest, sizes[to] * size)
                                for to in range(3) if column[to] for rest, size in shares(n, to))  # fmt: skip

    told = list(shares(0, entry))
    expected = sorted(s for s, _ in told if s)
    if x.grad is None or not expected:
        return
    exact = dtype == "float64"
    why = lab.why(x, entry, recording=rec, n_paths=EVERY, budget=EVERY)
    # What flows into a gradient that is zero as a whole is not followed: its parts cancel, and the books still balance.
    found = sorted(p.share for p in why.paths)
    rounding = (1e-13 if exact else 1e-5) * sum(size for _, size in told)
    assert_explained(why, dtype, rounding)
    assert math.isclose(math.fsum(expected), why.gradient, abs_tol=rounding)
    close = {"rtol": 1e-9 if exact else 1e-3, "atol": rounding}
    if len(found) == len(expected):
        np.testing.assert_allclose(found, expected, **close)
    few = lab.why(x, entry, recording=rec, n_paths=2)
    assert few.error <= room(few, dtype) + rounding
    assert len(few.paths) == min(2, len(found))
    if few.certain and all(s > 0 for s in expected):  # nothing cancels: then the largest are the largest
        np.testing.assert_allclose([p.share for p in few.paths], expected[::-1][:2], **close)


# --- what real runs do -------------------------------------------------------------------------------------------


def leaf(values, name="x", dtype="float64"):
    return lab.tensor(np.asarray(values, dtype), requires_grad=True, name=name)


def test_two_walks_are_explained_together_and_said_to_be_two():
    x = leaf(3.0)
    with lab.record() as rec:
        (x * x).backward()
        lab.sin(x).backward()
    why = lab.why(x, recording=rec)
    assert [(round(p.share, 9), p.walk) for p in why.paths] == [(3, 0), (3, 0), (round(math.cos(3), 9), 1)]
    assert why.gradient == float(x.grad)
    assert why.notes == ("the sum of 2 walks: gradients add up until they are cleared",)
    assert lab.why(x, recording=rec, at=list(map(type, rec)).index(EVENTS["BackwardFinished"])).gradient == 6


def test_the_same_graph_walked_twice_counts_twice():
    x = leaf([1.0, 2.0])
    with lab.record() as rec:
        loss = (x * x).sum()
        loss.backward(retain_graph=True)
        loss.backward(np.array(0.5))
    why = lab.why(x, 1, recording=rec)
    assert sorted(p.share for p in why.paths) == [1.0, 1.0, 2.0, 2.0]
    assert [p.factors[-1] for p in why.paths if p.walk == 1] == [0.5, 0.5]
    assert_explained(why)


def test_what_was_stored_before_the_recording_is_said_and_is_not_in_the_sum():
    x = leaf(2.0)
    (x * 10.0).backward()
    with lab.record() as rec:
        (x * 3.0).backward()
    why = lab.why(x, recording=rec)
    assert why.gradient == 3
    assert [note.partition(" before")[0] for note in why.notes] == ["in .grad it was added to what was stored"]


def test_a_gradient_set_by_hand_is_a_part_that_no_walk_computed():
    x = leaf(2.0)
    with lab.record() as rec:
        x.grad = lab.tensor(7.0)
        (x * 3.0).backward()
    why = lab.why(x, recording=rec)
    assert [(o.place, o.share) for o in why.others] == [("set by hand", 7.0)]
    assert (why.gradient, why.total) == (10, 10)


def test_a_hook_that_changed_a_gradient_is_a_part_of_its_own():
    x = leaf([1.0, 2.0])
    with lab.record() as rec:
        y = x * 3.0
        y.register_hook(lambda g: g * 10)
        (y * y).sum().backward()
    why = lab.why(x, 0, recording=rec)
    assert [p.share for p in why.paths] == [9.0, 9.0]
    assert [(o.place, o.share, o.why) for o in why.others] == [("hook", 162.0, "a hook changed what had come back")]
    assert why.gradient == 180
    assert "hook 162" in why.sum()


def test_a_hook_on_the_tensor_itself_and_one_that_stops_all():
    x, y = leaf(2.0), leaf(3.0, "y")
    with lab.record() as rec:
        x.register_hook(lambda g: g + 1)
        product = x * y
        product.register_hook(lambda g: g * 0)
        (product + x).backward()
    why = lab.why(x, recording=rec)
    assert ([p.share for p in why.paths], [o.share for o in why.others], why.gradient) == ([1.0], [1.0], 2.0)
    assert lab.why(y, recording=rec).paths == ()
    assert lab.why(y, recording=rec).sum() == "0 = 0"


def test_ties_and_kinks_are_those_of_the_run():
    x = leaf([0.0, 1.0])
    with lab.settings(kinks="half"), lab.record() as rec:
        (lab.relu(x).sum() + lab.maximum(x, np.array([0.0, 5.0])).sum() * 4.0 + x.max() * 0.0).backward()
    assert sorted(p.share for p in lab.why(x, 0, recording=rec).paths) == [0.5, 2.0]


def test_a_branch_that_was_not_taken_contributes_nothing_even_where_its_slope_is_infinite():
    x = leaf([0.0, 4.0])
    with lab.record() as rec:
        lab.where(x > 0, lab.sqrt(x), x * 5.0).sum().backward()
    for i, share in enumerate((5.0, 0.25)):
        why = lab.why(x, i, recording=rec)
        assert [p.share for p in why.paths] == [share]
        assert_explained(why)


def test_casts_masks_and_repeated_entries():
    x = leaf([1.0, -2.0, 3.0], dtype="float32")
    key = lab.random_key(0)
    with lab.record() as rec:
        kept = lab.random_uniform(key, shape=(3,)) > 0.1  # a dropout mask is a constant of the graph
        y = lab.where(kept, x.astype("float64") * 2.0, 0.0)
        y[[0, 0, 2]].sum().backward()
    why = lab.why(x, 0, recording=rec)
    assert [p.share for p in why.paths] == ([2.0, 2.0] if kept[0] else [])
    assert_explained(why, "float32")


def test_a_weight_that_is_written_between_steps_is_explained_with_what_it_was():
    w = leaf([2.0, 5.0], "w")
    optimizer = lab.optim.SGD([w], learning_rate=0.1)
    with lab.record() as rec:
        for _ in range(3):
            optimizer.zero_grad()
            before = w.numpy().copy()
            (w * w).sum().backward()
            optimizer.step()
    why = lab.why(w, 1, recording=rec)
    assert [p.share for p in why.paths] == [before[1]] * 2
    assert [p.walk for p in why.paths] == [2, 2]
    assert_explained(why)


def test_second_derivatives_have_paths_through_the_backward_ops():
    x = leaf(2.0)
    with lab.record() as rec:
        (x * x * x).backward(create_graph=True)
        first = x.grad
        x.zero_grad()
        first.backward()
    why = lab.why(x, recording=rec, n_paths=EVERY)
    assert why.gradient == 12
    assert_explained(why)


def test_the_gradient_of_a_function_is_explained_by_the_number_of_its_leaf():
    with lab.record() as rec:
        lab.grad(lambda x: (lab.sin(x) * x).sum())(np.array([1.0, 2.0]))
    node = rec.columns(EVENTS["LeafUsed"])["node"][0]
    why = lab.why(int(node), 1, recording=rec)
    assert math.isclose(why.gradient, math.sin(2) + 2 * math.cos(2))
    assert_explained(why)


def test_inside_vmap_it_says_so_and_gives_no_number():
    with lab.record() as rec:
        lab.vmap(lab.grad(lambda x: (lab.sin(x) * x).sum()))(np.array([[1.0, 2.0], [3.0, 4.0]]))
    node = int(rec.columns(EVENTS["LeafUsed"])["node"][0])
    with pytest.raises(RecordingError, match="does not hold this gradient") as caught:
        lab.why(node, 1, recording=rec)
    assert "vmap" in caught.value.given


def test_a_path_may_be_a_thousand_operations_long():
    x = leaf(1.0)
    with lab.record() as rec:
        y = x
        for _ in range(1000):
            y = y * 1.001
        y.backward()
    (path,) = lab.why(x, recording=rec).paths
    assert len(path.factors) == 1001
    assert math.isclose(path.share, 1.001**1000)


def test_a_deep_wide_graph_has_paths_within_the_budget_and_the_rest_adds_up():
    rng = np.random.default_rng(0)
    x = leaf(rng.normal(size=16))
    with lab.record() as rec:
        y = x
        for _ in range(12):
            y = lab.tanh(y @ (rng.normal(size=(16, 16)) / 4))
        y.sum().backward()
    why = lab.why(x, 3, recording=rec, budget=500)
    assert len(why.paths) == 5
    assert not why.certain
    assert why.n_open > 100
    assert why.error <= room(why, "float64")


def test_paths_name_their_source_lines_and_modules():
    x = leaf([1.0, 2.0])
    with lab.record() as rec:
        (x * 2.0).sum().backward()
    places = lab.why(x, 0, recording=rec).paths[0].places
    assert [(p.op, p.entry, p.file == __file__) for p in places] == [
        ("", (0,), False), ("multiply", (0,), True), ("sum", (), True),
    ]  # fmt: skip


# --- what a recording does not hold ------------------------------------------------------------------------------


def test_what_is_too_large_to_be_kept_is_a_part_with_its_reason_and_the_sum_is_right():
    x = leaf(1.5)
    with lab.record() as rec:
        wide = x * np.ones(5000)
        (wide.sum() + x * 2.0).backward()
    why = lab.why(x, recording=rec)
    assert [p.share for p in why.paths] == [2.0]
    (other,) = why.others
    assert (other.place, other.share) == ("through multiply", 5000.0)
    assert "5,000 entries" in other.why
    assert why.total == why.gradient == 5002


def test_a_gradient_that_is_too_large_to_be_kept_is_refused():
    x = leaf(np.ones(5000))
    with lab.record() as rec:
        x.sum().backward()
    with pytest.raises(RecordingError, match="does not hold this gradient") as caught:
        lab.why(x, 0, recording=rec)
    assert "5,000 entries" in caught.value.given


def old(rec):
    """The recording as a lab of before would have made it: without constants and parameters."""
    made = Recording(detail="value")
    bus.attach(made)
    for event in rec:
        if not isinstance(event, OperandKept | ParametersKept):
            bus.emit(event)
    made.close()
    return made


def test_an_older_recording_says_what_it_does_not_hold():
    x, y = leaf([1.0, 2.0]), leaf(3.0, "y")
    with lab.record() as rec:
        (lab.relu(x * 2.0) * y).sum().backward()
    why = lab.why("x", 0, recording=old(rec))
    assert why.paths == ()
    assert why.gradient == why.total == 6
    (other,) = why.others
    assert (other.place, other.share) == ("through multiply", 6.0)
    assert other.why == "the constant y is not in this recording: the recording is of an older lab"
    (other,) = lab.why("y", recording=old(rec)).others
    assert other.place == "through sum"
    assert other.why == "its parameters are not in this recording, which is of an older lab"


def test_a_file_explains_what_the_run_explained(tmp_path):
    w = leaf(np.arange(6.0).reshape(2, 3), "w")
    with lab.record() as rec:
        lab.cross_entropy(lab.tanh(np.ones((4, 2)) @ w)[:, [2, 0]], np.array([0, 1, 1, 0])).backward()
    rec.save(tmp_path / "run.lab")
    loaded = Recording.load(tmp_path / "run.lab")
    assert lab.why("w", (1, 2), recording=loaded) == lab.why(w, (1, 2), recording=rec)
    with pytest.raises(ArgumentError, match="a tensor of this session is not in a recording from a file"):
        lab.why(w, recording=loaded)


@pytest.mark.parametrize("text", ['{"axis":0', "[]", '{"axis":{"code":"exit()"},"keepdims":false}', "{}", "nan",
                                  '{"axis":7,"keepdims":false}', '{"axis":null,"keepdims":true}', "[" * 50_000,
                                  '{"axis":null,"keepdims":{"array":0}}', '{"axis":{"other":"Key"},"keepdims":false}',
                                  '{"axis":{"float":"x"},"keepdims":{"dtype":"O"}}'])  # fmt: skip
def test_parameters_that_a_stranger_wrote_are_refused_and_never_run(text):
    x = leaf([1.0, 2.0])
    with lab.record() as rec:
        x.sum().backward()
    forged = Recording(detail="value")
    bus.attach(forged)
    for event in rec:
        bus.emit(ParametersKept(event.node, text) if isinstance(event, ParametersKept) else event)
    forged.close()
    why = lab.why("x", 0, recording=forged)
    assert why.paths == ()
    assert [(o.place, o.share) for o in why.others] == [("through sum", 1.0)]


def test_a_value_that_was_changed_unseen_is_found_and_not_computed_with():
    x, y = leaf([2.0, 3.0]), leaf([5.0, 7.0], "y")
    with lab.record() as rec:
        _ = x * 1.0
        x.value[...] = 10.0  # around every check
        (x * y).sum().backward()
    (other,) = lab.why(y, 0, recording=rec).others
    assert other.share == 10
    assert "sends 2 where the run sent 10" in other.why


def test_without_values_kept_it_says_which():
    x = leaf(np.ones(100))
    with lab.record(value_bytes=4000) as rec:
        ((x * 2.0) * np.ones(100)).sum().backward()
    with pytest.raises(RecordingError, match="does not hold this gradient") as caught:
        lab.why(x, 0, recording=rec)
    assert "found no room" in caught.value.given


# --- questions that have no answer -------------------------------------------------------------------------------


def run():
    x = leaf([1.0, 2.0])
    with lab.record() as rec:
        (x * x).sum().backward()
    return x, rec


def asked(error, problem, *args, **kwargs):
    with pytest.raises(LabError) as caught:
        lab.why(*args, **kwargs)
    assert type(caught.value) is error
    assert caught.value.problem == problem
    assert caught.value.given
    assert caught.value.hint
    return caught.value


def test_a_recording_without_values_is_refused():
    x = leaf(1.0)
    for detail in ("shape", "statistics"):
        with lab.record(detail=detail) as rec:
            (x * x).backward()
        assert "record(detail=" in asked(RecordingError, "the recording holds no values", x, recording=rec).hint
    asked(ArgumentError, "why needs the recording of the run", x, recording=None)


@pytest.mark.parametrize("index", [2, -3, (0, 0), (), 0.5, "a", True])
def test_an_entry_that_is_not_there_is_refused(index):
    x, rec = run()
    asked(ArgumentError, "the gradient has no such entry", x, index, recording=rec)


def test_entries_count_from_the_end_too_and_the_largest_is_the_default():
    x, rec = run()
    assert lab.why(x, -2, recording=rec).index == (0,)
    assert lab.why(x, recording=rec).index == (1,)


def test_tensors_that_are_not_there_are_refused():
    _, rec = run()
    asked(GradientError, "this tensor has no gradient", lab.tensor(1.0), recording=rec)
    asked(ArgumentError, "this tensor took no part in the recording", leaf(1.0), recording=rec)
    assert asked(ArgumentError, "the recording has no tensor of that name", "w", recording=rec).hint == "names in it: x"
    asked(ArgumentError, "the recording has no such node", 10**12, recording=rec)
    asked(ArgumentError, "the recording has no such node", None, recording=rec)


def test_two_tensors_of_one_name_are_told_by_their_numbers():
    x, other = leaf(1.0), leaf(2.0)
    with lab.record() as rec:
        (x * other).backward()
    hint = asked(ArgumentError, "the recording has several tensors of that name", "x", recording=rec).hint
    assert hint == f"numbers of their nodes: {[x.node.id, other.node.id]}"
    assert lab.why(other.node.id, recording=rec).gradient == 1


def test_no_gradient_yet_and_none_any_more_are_told_apart():
    x = leaf(1.0)
    with lab.record() as rec:
        y = x * x
    asked(GradientError, "it has no gradient in this recording yet", x, recording=rec)
    asked(GradientError, "it has no gradient in this recording yet", y, recording=rec)
    with lab.record() as rec:
        (x * x).backward()
        x.zero_grad()
    hint = asked(GradientError, "its gradient was cleared since", x, recording=rec).hint
    assert lab.why(x, recording=rec, at=int(hint.partition("at=")[2])).gradient == 2


def test_a_gradient_that_is_not_finite_is_refused():
    x = leaf([0.0, 1.0])
    with lab.record() as rec:
        lab.sqrt(x).sum().backward()
    asked(GradientError, "a gradient that is not finite is not a sum of shares", x, 0, recording=rec)
    assert lab.why(x, 1, recording=rec).paths[0].share == 0.5


def test_of_several_ranks_one_must_be_chosen():
    _, rec = run()
    both = Recording(detail="value")
    bus.attach(both)
    for rank in (0, 3):
        token = lab.events.ORIGIN.set(lab.events.Origin(rank, ""))
        for event in rec:
            bus.emit(event)
        lab.events.ORIGIN.reset(token)
    both.close()
    refused = asked(ArgumentError, "the recording has operations of several ranks", "x", recording=both)
    assert refused.given == "ranks 0, 3"
    assert lab.why("x", 0, recording=both, rank=3) == lab.why("x", 0, recording=rec)


def test_intermediate_results_and_the_result_itself_can_be_asked():
    x = leaf([1.0, 2.0])
    with lab.record() as rec:
        y = x * 3.0
        loss = (y * y).sum()
        loss.backward()
    assert lab.why(y, 1, recording=rec).gradient == 12
    (path,) = lab.why(loss, recording=rec).paths
    assert (path.share, path.factors, len(path.places)) == (1.0, (1.0,), 1)


def test_nothing_is_kept_for_rules_unless_values_are_asked_for():
    x = leaf([1.0, 2.0])
    for detail in ("shape", "statistics"):
        with lab.record(detail=detail) as rec:
            lab.relu(x * np.ones(2))[0].backward()
        assert not {OperandKept, ParametersKept} & set(rec.kinds)


def test_only_what_a_rule_reads_is_kept():
    x = leaf([1.0, 2.0])
    with lab.record() as rec:
        (x + np.ones(2)).sum(axis=0).backward()
    ops = {e.node: e.op for e in rec if isinstance(e, OpRecorded)}
    assert [ops[e.node] for e in rec if isinstance(e, OperandKept)] == []
    assert [(ops[e.node], e.parameters) for e in rec if isinstance(e, ParametersKept)] == [
        ("sum", '{"axis":0,"keepdims":false}')
    ]


def test_every_kind_of_parameter_comes_back():
    params = {
        "a": (1, [2, None], slice(1, None, -1), ...), "b": float("inf"), "c": np.int64(3), "d": "name", "e": True,
        "f": np.dtype("float32"), "g": np.arange(3), "h": np.float32, "i": 0.1,
    }  # fmt: skip
    text, arrays = lab.autograd.parameters.packed(params)
    back = lab.autograd.parameters.unpacked(text, arrays.__getitem__)
    for name, value in params.items():
        if name == "g":
            assert back["g"] is value
        else:
            assert back[name] == value
            assert type(back[name]) is type({"c": 3, "h": np.dtype("float32")}.get(name, value))
