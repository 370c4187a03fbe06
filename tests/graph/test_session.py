"""Define, then run: what a block writes down, a Session computes; the results are those of eager code."""

import copy
import pickle

import numpy as np
import pytest

import lab
from lab.errors import (
    ArgumentError,
    ConcretizationError,
    DTypeError,
    GradientError,
    GraphError,
    LabError,
    ShapeError,
    TracerLeakError,
    UnsupportedError,
)
from lab.graph import Graph
from lab.graph.building import Building
from lab.graph.verify import verify

RNG = np.random.default_rng(0)
X, T = RNG.normal(size=(5, 3)).astype("float32"), RNG.normal(size=(5, 2)).astype("float32")
W, B = RNG.normal(size=(3, 2)).astype("float32"), np.zeros(2, "float32")


def regression():
    with lab.Graph() as g:
        x, t = lab.placeholder((5, 3), "float32", name="x"), lab.placeholder((5, 2), name="t")
        w, b = lab.variable(W, name="w"), lab.variable(B, name="b")
        loss = lab.mean((lab.tanh(x @ w) + b - t) ** 2)
        dw, db = lab.gradients(loss, [w, b])
        train = [lab.assign(w, w - 0.1 * dw), lab.assign(b, b - 0.1 * db)]
    return g, x, t, w, loss, train


def test_a_training_by_session_is_the_training_by_hand():
    g, x, t, w, loss, train = regression()

    def by_hand(w, b):
        return lab.mean((lab.tanh(lab.tensor(X) @ w) + b - T) ** 2)

    hand_w, hand_b = lab.tensor(W), lab.tensor(B)
    with lab.Session(g) as s:
        for _ in range(5):
            value, _ = s.run([loss, train], feed={x: X, t: T})
            wanted, (dw, db) = lab.value_and_grad(by_hand, (0, 1))(hand_w, hand_b)
            np.testing.assert_allclose(value.numpy(), wanted.numpy(), rtol=1e-6)
            hand_w, hand_b = hand_w - 0.1 * dw, hand_b - 0.1 * db
        np.testing.assert_allclose(s.run(w).numpy(), hand_w.numpy(), rtol=1e-6)
    assert value.dtype == np.float32


def test_assignments_come_after_all_that_is_fetched():
    with lab.Graph() as g:
        n = lab.variable(1.0, name="n")
        double, more = lab.assign(n, n * 2.0), n + 10.0
    s = lab.Session(g)
    assert s.run({"new": double, "more": more, "old": n}) == {"new": 2.0, "more": 11.0, "old": 1.0}
    assert s.run((n, more)) == (2.0, 12.0)


def test_two_sessions_have_variables_of_their_own():
    with lab.Graph() as g:
        n = lab.variable(0, name="n")
        count = lab.assign(n, n + 1)
    first, second = lab.Session(g), lab.Session(g)
    first.run(count)
    assert (first.run(n), second.run(n)) == (1, 0)


def test_nobody_outside_can_write_into_a_session():
    start = np.ones(3)
    with lab.Graph() as g:
        w = lab.variable(start, name="w")
        turned = lab.reshape(w, shape=(3,))
        renew = lab.assign(w, turned)
    s = lab.Session(g)
    start[:] = 7.0
    for fetch in (w, turned, renew):
        s.run(fetch).value[:] = 9.0
    assert s.run(w).numpy().tolist() == [1.0, 1.0, 1.0]


def test_a_run_computes_what_is_fetched_and_no_more():
    g, x, t, w, loss, train = regression()
    s = lab.Session(g)
    forward, whole = g.graph(loss), g.graph([loss, train])
    assert len(forward.equations) < len(whole.equations) < len(g.trace.equations) + 1
    assert s.run(w).shape == (3, 2)  # no placeholder is needed
    s.run(loss, feed={"x": X, "t": T})
    s.run(loss, feed={x: X, t: T})
    assert len(s.plans) == 2


def test_what_is_cut_is_a_legal_graph_value_that_prints():
    g, _, _, _, loss, train = regression()
    for graph in (g.graph(loss), g.graph(train), g.graph()):
        verify(graph)
        assert isinstance(graph, lab.Graph)
        assert copy.copy(graph) == graph
    assert "tanh" in str(g.graph(loss))
    assert repr(g).startswith("placeholder x = a, placeholder t = b, variable w = c, variable b = d\ngraph(")
    assert "Graph in building" in g._repr_mimebundle_()["text/html"]


def test_graph_values_are_pickled_as_before():
    graph = lab.make_graph(lab.tanh)(1.0)
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert isinstance(lab.Graph(), Building)
    assert not isinstance(lab.Graph(), Graph)


def test_the_gradients_do_not_write_the_forward_again():
    with lab.Graph() as g:
        x = lab.placeholder((), "float64", name="x")
        y = lab.exp(lab.sin(x))
        slope = lab.gradients(y, x)
    names = [e.op.name for e in g.graph([y, slope]).equations]
    assert names.count("sin") == names.count("exp") == 1


def test_gradients_by_values_in_between_are_those_of_the_chain():
    with lab.Graph() as g:
        x = lab.placeholder((2,), "float64", name="x")
        h = x * x
        y = lab.sum(h * h + x)
        by = lab.gradients(y, {"x": x, "h": h, "again": [x, h], "y": y})
    found = lab.Session(g).run(by, feed={x: [1.0, 2.0]})
    assert found["x"].numpy().tolist() == [5.0, 33.0]
    assert found["h"].numpy().tolist() == [2.0, 8.0]
    assert found["again"][0].numpy().tolist() == [5.0, 33.0]
    assert found["y"] == 1.0


def test_gradients_of_gradients_and_of_what_does_not_depend():
    with lab.Graph() as g:
        x, z = lab.placeholder((), "float64", name="x"), lab.placeholder(3, "float32", name="z")
        first = lab.gradients(x**3, x)
        second, none = lab.gradients(first, [x, z])
    second, none = lab.Session(g).run([second, none], feed={x: 2.0})
    assert second == 12.0
    assert (none.dtype, none.numpy().tolist()) == (np.float32, [0.0, 0.0, 0.0])


def test_transforms_work_inside_a_block():
    with lab.Graph() as g:
        x = lab.placeholder(3, "float64", name="x")
        rows = lab.vmap(lab.grad(lab.sin))(x)
    np.testing.assert_allclose(lab.Session(g).run(rows, feed={x: [0.0, 1.0, 2.0]}).numpy(), np.cos([0.0, 1.0, 2.0]))


def test_a_rule_of_its_own_is_followed_by_gradients():
    @lab.custom_vjp
    def twice(x):
        return x * 2.0

    twice.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (ct * 100.0,))
    with lab.Graph() as g:
        x = lab.placeholder((), "float64", name="x")
        slope = lab.gradients(twice(x), x)
    assert lab.Session(g).run(slope, feed={x: 1.0}) == 100.0


def test_tensors_from_outside_are_read_at_every_run():
    scale = lab.tensor(2.0)
    with lab.Graph() as g:
        x = lab.placeholder((), "float64", name="x")
        y = x * scale
    s = lab.Session(g)
    assert s.run(y, feed={x: 3.0}) == 6.0
    scale.assign(5.0)
    assert s.run(y, feed={x: 3.0}) == 15.0


def test_a_result_leads_back_to_a_tensor_from_outside():
    scale = lab.tensor(2.0, requires_grad=True)
    with lab.Graph() as g:
        x = lab.placeholder((), "float64", name="x")
        y = lab.sin(x) * scale
    with lab.record() as recording:
        lab.Session(g).run(y, feed={x: np.pi / 2}).backward()
    assert scale.grad == 1.0
    assert "multiply" in str(list(recording))


def refused(kind, *words):
    def check(caught):
        text = str(caught.value)
        assert len(text.splitlines()) == 3
        assert all(word in text for word in words), text

    return kind, check


def feeds(feed, fetch="loss"):
    def act():
        g, *rest = regression()
        s = lab.Session(g)
        named = dict(zip(("x", "t", "w", "loss", "train"), rest, strict=True))
        s.run(named[fetch], feed={named.get(k, k): v for k, v in feed.items()})

    return act


def in_block(act):
    def run():
        with lab.Graph():
            act(lab.placeholder((2,), "float64", name="x"), lab.variable([1.0, 2.0], name="w"))

    return run


def after_block(act):
    def run():
        with lab.Graph() as g:
            x = lab.placeholder((), "float64", name="x")
        act(g, x)

    return run


def closed():
    g, *_, w, _, _ = regression()
    with lab.Session(g) as s:
        s.run(w)
    s.run(w)


REFUSED = {
    "a feed of another shape": (feeds({"x": X[:2], "t": T}), *refused(ShapeError, "fed to x", "(2, 3) for (5, 3)")),
    "a feed of another dtype": (
        feeds({"x": X.astype(float), "t": T}), *refused(DTypeError, "fed to x", "float64 for float32")),
    "floats for integers": (
        after_block(lambda g, x: lab.Session(g).run(x, feed={x: 1j})), *refused(UnsupportedError, "feed")),
    "a missing feed": (feeds({"x": X}), *refused(ArgumentError, "not fed", "nothing for t")),
    "an unknown feed": (feeds({"q": X}), *refused(ArgumentError, "only placeholders", "'q'", "x, t")),
    "a fed variable": (feeds({"w": W}), *refused(ArgumentError, "only placeholders", "x, t")),
    "a fetch that is no value": (
        after_block(lambda g, x: lab.Session(g).run(3.0)), *refused(ArgumentError, "can be fetched", "3.0")),
    "a fetch of another graph": (
        after_block(lambda g, x: lab.Session(regression()[0]).run(x)), *refused(ArgumentError, "can be fetched")),
    "a truth": (in_block(lambda x, w: bool(x[0] > 0)), *refused(ConcretizationError, "Session", "test_session.py")),
    "a float": (in_block(lambda x, w: float(x[0])), *refused(ConcretizationError, "no number before it is run")),
    "a number printed": (in_block(lambda x, w: f"{x[0]:.2f}"), *refused(ConcretizationError, "Session")),
    "an array": (in_block(lambda x, w: x.numpy()), *refused(ConcretizationError, "Session")),
    "a use after the block": (after_block(lambda g, x: x + 1.0), *refused(TracerLeakError, "block", "in add")),
    "a float after the block": (after_block(lambda g, x: float(x)), *refused(ConcretizationError, "Session")),
    "a placeholder after the block": (
        after_block(lambda g, x: lab.placeholder(3)), *refused(GraphError, "lab.placeholder belongs", "lab.Graph()")),
    "a gradient after the block": (
        after_block(lambda g, x: lab.gradients(x, x)), *refused(GraphError, "no open graph")),
    "a second block": (after_block(lambda g, x: g.__enter__()), *refused(GraphError, "a second block")),
    "a block inside": (in_block(lambda x, w: lab.Graph().__enter__()), *refused(GraphError, "a block inside another")),
    "an unknown length": (
        in_block(lambda x, w: lab.placeholder((None, 3), name="y")), *refused(ShapeError, "(None, 3)", "batch size")),
    "no shape": (in_block(lambda x, w: lab.placeholder(None)), *refused(ShapeError, "None")),
    "a length that is none": (in_block(lambda x, w: lab.placeholder((2.5,))), *refused(ShapeError, "length")),
    "a dtype that is none": (in_block(lambda x, w: lab.placeholder(2, "cat")), *refused(DTypeError, "'cat'")),
    "a name twice": (in_block(lambda x, w: lab.placeholder(2, name="w")), *refused(ArgumentError, "'w' twice")),
    "a variable of text": (in_block(lambda x, w: lab.variable("a")), *refused(UnsupportedError, "lab.variable")),
    "an assignment to a placeholder": (in_block(lambda x, w: lab.assign(x, x)), *refused(ArgumentError, "variable")),
    "an assignment of another shape": (
        in_block(lambda x, w: lab.assign(w, lab.sum(w))), *refused(ShapeError, "w keeps", "() for float64 (2,)")),
    "an assignment of another dtype": (
        in_block(lambda x, w: lab.assign(w, w.astype("float32"))), *refused(DTypeError, "w keeps", "float32 (2,)")),
    "gradients of several entries": (in_block(lambda x, w: lab.gradients(x, x)), *refused(GradientError, "lab.sum")),
    "gradients by a number": (
        in_block(lambda x, w: lab.gradients(x[0], 3.0)), *refused(ArgumentError, "of the open graph")),
    "gradients of an integer": (in_block(lambda x, w: lab.gradients(x[0] > 0, x)), *refused(GradientError, "bool")),
    "a session of a value": (
        lambda: lab.Session(lab.make_graph(lab.sin)(1.0)), *refused(ArgumentError, "Graph", "lab.Session(g)")),
    "a closed session": (closed, *refused(GraphError, "closed")),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused_in_three_lines(what):
    act, kind, check = REFUSED[what]
    with pytest.raises(LabError) as caught:
        act()
    assert caught.type is kind, caught.value
    check(caught)


def test_a_variable_is_assigned_once_in_a_run():
    with lab.Graph() as g:
        w = lab.variable(1.0, name="w")
        up, down = lab.assign(w, w + 1.0), lab.assign(w, 0)
    s = lab.Session(g)
    with pytest.raises(ArgumentError, match="assigns to a variable once"):
        s.run([up, down])
    assert s.run(down) == 0.0


def test_a_run_that_fails_leaves_the_variables():
    with lab.Graph() as g:
        x, w = lab.placeholder((2,), "int64", name="x"), lab.variable(1.0, name="w")
        up, bad = lab.assign(w, w + 1.0), lab.tensor([1.0, 2.0])[x]
    s = lab.Session(g)
    with pytest.raises(ShapeError):
        s.run([up, bad], feed={x: [0, 9]})
    assert s.run(w) == 1.0


def test_an_error_inside_a_block_closes_it():
    with pytest.raises(ZeroDivisionError), lab.Graph():
        raise ZeroDivisionError
    with lab.Graph() as g:
        y = lab.variable(2.0) * lab.placeholder((), "float64")
    assert list(g.placeholders) == ["placeholder0"]
    assert lab.Session(g).run(y, feed={"placeholder0": 4.0}) == 8.0


def test_a_printed_value_says_that_it_is_symbolic():
    with lab.Graph():
        assert repr(lab.placeholder((2,))) == "<value inside lab.Graph: float32 (2,)>"


IN_A_CELL = """
with lab.Graph() as g:
    scores, label = lab.placeholder(3, name="scores"), lab.placeholder((), "int64", name="label")
    loss = lab.cross_entropy(scores, label)
"""


def test_what_goes_wrong_in_a_run_names_the_cell_that_wrote_it_down_and_its_line():
    scope = {"lab": lab}
    exec(compile(IN_A_CELL, "/tmp/ipykernel_71/332220231.py", "exec"), scope)
    with pytest.raises(ShapeError, match="outside the classes") as why:
        lab.Session(scope["g"]).run(scope["loss"], feed={"scores": np.zeros(3, "float32"), "label": 3})
    assert [note.rpartition(", made by ")[2] for note in why.value.__notes__] == ["cell, line 4"]


@pytest.mark.parametrize("trace", ["with lab.Graph():\n    bool(lab.variable(1.0))", "lab.jit(lambda x: bool(x))(1.0)"])
def test_a_number_that_a_graph_has_not_is_missed_in_its_cell_and_line(trace):
    with pytest.raises(ConcretizationError, match=r", at cell, line \d"):
        exec(compile(trace, "/tmp/ipykernel_71/332220231.py", "exec"), {"lab": lab})
