"""cond, while_loop, scan, fori_loop: the same run as code, as a graph and compiled; and every derivative of each."""

import pickle
from typing import NamedTuple

import numpy as np
import pytest

import lab
from lab.errors import ConcretizationError
from lab.events import OpRecorded, RuleApplied
from lab.graph import parse, verify
from lab.graph.compiled import run_compiled
from lab.graph.execute import run_arrays
from lab.graph.passes import stages
from lab.graph.regions import REGIONS
from lab.graph.serial import load, save
from tests.numerics import array, close, numeric_grad

W = lab.tensor([[0.3, -0.2], [0.1, 0.4]])


def branchy(x):
    return lab.cond(x[0] > x[1], lambda x: (x * x).sum(), lambda x: lab.sin(x[0]) * x[1], x)


def branchy_plain(x):
    return (x * x).sum() if x[0] > x[1] else lab.sin(x[0]) * x[1]


def scanned(x):
    def turn(h, row):
        after = lab.tanh(W @ h + row * x[0])
        return after, after.sum() * x[1]

    h, ys = lab.scan(turn, x * 2.0, np.array([[1.0, 2.0], [-1.0, 0.5], [0.3, 0.1]]))
    return h.sum() + (ys * ys).sum()


def scanned_plain(x):
    h, total = x * 2.0, 0.0
    for row in np.array([[1.0, 2.0], [-1.0, 0.5], [0.3, 0.1]]):
        h = lab.tanh(W @ h + row * x[0])
        y = h.sum() * x[1]
        total = total + y * y
    return h.sum() + total


def backwards(x):
    h, ys = lab.scan(lambda c, row: (c * x[0] + row, c * row), 1.0, x * np.array([1.0, 2.0]), reverse=True)
    return h * ys[0] + ys[1]


def backwards_plain(x):
    xs, c, ys = x * np.array([1.0, 2.0]), 1.0, {}
    for i in (1, 0):
        c, ys[i] = c * x[0] + xs[i], c * xs[i]
    return c * ys[0] + ys[1]


def looped(x):
    turn = lambda s: {"y": s["y"] * x[0] + x[1], "n": s["n"] + 1}  # noqa: E731
    end = lab.while_loop(lambda s: s["y"] < 20.0, turn, {"y": x[1], "n": 0})
    return end["y"] * end["n"]


def looped_plain(x):
    y, n = x[1], 0
    while float(y.detach()) < 20.0:
        y, n = y * x[0] + x[1], n + 1
    return y * float(n)


def bounded(x):
    y, n = lab.while_loop(lambda s: s[0] < 20.0, lambda s: (s[0] * x[0] + x[1], s[1] + 1), (x[1], 0), max_steps=12)
    return y * n


def counted(x):
    return lab.fori_loop(1, 4, lambda i, y: y * x[0] + lab.sin(x[1]) * i, 1.0)


def counted_plain(x):
    y = 1.0
    for i in (1, 2, 3):
        y = y * x[0] + lab.sin(x[1]) * i
    return y


def nested(x):
    """A loop in a branch in a scan, and a scan in a while_loop."""

    def turn(c, row):
        grown = lambda c: lab.while_loop(lambda y: y < 3.0, lambda y: y * x[0] + 0.1, c)  # noqa: E731
        return lab.cond(row > 0.0, grown, lambda c: c * x[1], c), c

    c, ys = lab.scan(turn, x[1], np.array([1.0, -1.0, 2.0]))
    sums = lambda s: (s[0] + lab.scan(lambda t, row: (t + row * x[0], None), 0.0, ys)[0], s[1] + 1)  # noqa: E731
    return lab.while_loop(lambda s: s[1] < 2, sums, (c, 0))[0]


def nested_plain(x):
    c, ys = x[1], []
    for row in (1.0, -1.0, 2.0):
        ys.append(c)
        if row > 0.0:
            while float(c.detach()) < 3.0:
                c = c * x[0] + 0.1
        else:
            c = c * x[1]
    for _ in range(2):
        total = 0.0
        for y in ys:
            total = total + y * x[0]
        c = c + total
    return c


def never(x):
    """No turn at all, by each kind of loop."""
    y = lab.while_loop(lambda y: y > 100.0, lambda y: y * y, x[0])
    c, ys = lab.scan(lambda c, row: (c * row, c), x[1], np.zeros((0,)))
    return y * c + ys.sum() + lab.fori_loop(3, 3, lambda i, c: c * c, x[0])


def never_plain(x):
    return x[0] * x[1] + x[0]


PAIRS = {
    "cond": (branchy, branchy_plain),
    "scan": (scanned, scanned_plain),
    "reverse scan": (backwards, backwards_plain),
    "while_loop": (looped, looped_plain),
    "bounded while_loop": (bounded, looped_plain),
    "fori_loop": (counted, counted_plain),
    "nested": (nested, nested_plain),
    "no turns": (never, never_plain),
}
POINTS = (np.array([1.3, 0.9]), np.array([1.7, 2.1]))
V = np.array([0.4, -1.1])



def along(f):
    return lambda x: lab.jvp(f, (x,), (V,))[1]


def linearized(f):
    return lambda x: lab.linearize(f, x)[1](V)


WAYS = {
    "eager": (lambda f: f, lambda f: f),
    "jit": (lab.jit, lambda f: f),
    "grad": (lab.grad, lab.grad),
    "jit of grad": (lambda f: lab.jit(lab.grad(f)), lab.grad),
    "grad of jit": (lambda f: lab.grad(lab.jit(f)), lab.grad),
    "jit of jvp": (lambda f: lab.jit(along(f)), along),
    "jvp of jit": (lambda f: along(lab.jit(f)), along),
    "linearize": (linearized, along),
    "jit of linearize": (lambda f: lab.jit(linearized(f)), along),
    "hessian": (lab.hessian, lab.hessian),
    "jit of hessian": (lambda f: lab.jit(lab.hessian(f)), lab.hessian),
    "hessian of jit": (lambda f: lab.hessian(lab.jit(f)), lab.hessian),
    "jit of reverse over reverse": (lambda f: lab.jit(lab.jacrev(lab.grad(f))), lab.hessian),
    "jit of reverse over forward": (lambda f: lab.jit(lab.jacrev(lab.jacfwd(f))), lab.hessian),
    "jit of forward over forward": (lambda f: lab.jit(lab.jacfwd(lab.jacfwd(f))), lab.hessian),
    "jit of grad of checkpoint": (lambda f: lab.jit(lab.grad(lab.checkpoint(f))), lab.grad),
    "jit of jit of grad of jit": (lambda f: lab.jit(lab.jit(lab.grad(lab.jit(f)))), lab.grad),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_what_plain_code_gives(way, name):
    f, plain = PAIRS[name]
    transform, reference = WAYS[way]
    for x in POINTS:
        close(transform(f)(x), reference(plain)(lab.tensor(x)), rtol=1e-9)


@pytest.mark.parametrize("name", PAIRS)
def test_gradients_in_a_graph_are_those_of_differences(name):
    f, _ = PAIRS[name]
    for x in POINTS:
        close(lab.jit(lab.grad(f))(x), numeric_grad(f, x), rtol=1e-6, atol=1e-8)


MAPPED = {
    "vmap": lab.vmap,
    "jit of vmap": lambda f: lab.jit(lab.vmap(f)),
    "vmap of jit": lambda f: lab.vmap(lab.jit(f)),
}
OF_MEMBERS = {
    "value": lambda f: f,
    "grad": lab.grad,
    "jvp": lambda f: lambda x: lab.jvp(f, (x,), (V,))[1],
    "hessian": lab.hessian,
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("of", OF_MEMBERS)
@pytest.mark.parametrize("way", MAPPED)
def test_members_that_go_different_ways_get_what_each_gets_alone(way, of, name):
    f, plain = PAIRS[name]
    xs = np.array([[1.3, 0.9], [1.7, 2.1], [2.5, 0.2], [1.2, 25.0]])
    expected = np.stack([array(OF_MEMBERS[of](plain)(lab.tensor(x))) for x in xs])
    close(MAPPED[way](OF_MEMBERS[of](f))(xs), expected)


@pytest.mark.parametrize("name", PAIRS)
def test_a_sum_over_members_differentiates_in_a_graph(name):
    f, plain = PAIRS[name]
    xs = np.array([[1.3, 0.9], [1.7, 2.1], [2.5, 0.2]])
    expected = np.stack([array(lab.grad(plain)(lab.tensor(x))) for x in xs])
    close(lab.jit(lab.grad(lambda xs: lab.vmap(f)(xs).sum()))(xs), expected)
    close(lab.grad(lab.jit(lambda xs: lab.vmap(f)(xs).sum()))(xs), expected)


@pytest.mark.parametrize("name", PAIRS)
def test_the_text_of_every_graph_reads_back_and_is_legal(name):
    f, _ = PAIRS[name]
    x = POINTS[0]
    of_two = lambda x: lab.vmap(f)(lab.stack([x, 2.0 * x]))  # noqa: E731
    for g in (f, lab.grad(f), along(f), of_two, lab.hessian(f)):
        graph = lab.make_graph(g)(x)
        verify(graph)
        assert str(parse(str(graph))) == str(graph)


@pytest.mark.parametrize(("name", "region"), [("cond", "cond"), ("scan", "scan"), ("while_loop", "while_loop")])
def test_a_graph_holds_one_equation_for_it_and_its_gradient_another(name, region):
    f, _ = PAIRS[name]
    count = lambda graph: sum(e.op is REGIONS[region] for e in graph.equations)  # noqa: E731
    assert count(lab.make_graph(f)(POINTS[0])) == 1
    assert count(lab.make_graph(lab.grad(f))(POINTS[0])) == 2


@pytest.mark.parametrize("name", PAIRS)
def test_passes_and_compiled_code_leave_the_results_as_they_are(name):
    f, _ = PAIRS[name]
    of_members = lambda xs: lab.vmap(lab.grad(f))(xs)  # noqa: E731
    for g, x in ((f, POINTS[0]), (lab.grad(f), POINTS[0]), (of_members, np.stack(POINTS))):
        graph = lab.make_graph(g)(x)
        given = [x, *(c.numpy() for c in graph.captured)]
        (expected,) = run_arrays(graph, given)
        for stage in stages(graph):
            close(run_arrays(stage.graph, given)[0], expected)
        for _ in range(2):  # the second time in the same buffers
            close(run_compiled(graph, given)[0], expected)


@pytest.mark.parametrize("executor", ["interpreted", "compiled"])
def test_what_a_branch_or_a_loop_hands_through_shares_no_memory(executor):
    def f(x):
        same = lab.cond(x[0] > 0.0, lambda x: (x, x, x[:1]), lambda x: (-x, x, x[1:]), x)
        never = lab.while_loop(lambda x: x[0] < 0.0, lambda x: x * 2.0, x)
        last, rows = lab.scan(lambda c, _: (c, c), x, None, length=1)
        fixed = lab.cond(x[0] > 0.0, lambda: np.ones(2), lambda: np.zeros(2))
        return [*same, never, last, rows, fixed]

    x = np.array([1.0, 2.0])
    g = lab.jit(f, executor=executor)
    first, second = g(x), g(x)
    arrays = [x, *(t.value for t in (*first, *second))]
    for k, a in enumerate(arrays):
        assert not any(np.shares_memory(a, b) for b in arrays[k + 1 :])
    x[:] = -1.0
    close(first[0], [1.0, 2.0])


def test_what_is_captured_gets_its_gradient():
    w = lab.tensor(1.5, requires_grad=True)
    f = lab.jit(lambda x: lab.scan(lambda c, row: (c * w + row, None), x, np.array([1.0, 2.0]))[0])
    f(2.0).backward()
    close(w.grad, 2 * 2.0 * 1.5 + 1.0)
    w.zero_grad()
    lab.jit(lambda x: lab.cond(x > 0.0, lambda: x * w, lambda: w))(3.0).backward()
    close(w.grad, 3.0)
    w.zero_grad()
    lab.jit(lambda x: lab.while_loop(lambda y: y < 10.0, lambda y: y * w, x))(3.0).backward()
    close(w.grad, 3.0 * 3 * 1.5**2)
    with lab.no_grad():
        w.assign(2.0)
    close(f(2.0), 2.0 * 4.0 + 2.0 + 2.0)


class State(NamedTuple):
    h: object
    more: dict


def test_containers_go_in_and_come_out():
    def turn(state, x):
        after = State(state.h + x["a"] * x["b"][0], {"n": state.more["n"] + 1, "none": None})
        return after, {"y": (after.h, None), "z": [state.more["n"]]}

    xs = {"a": np.array([1.0, 2.0]), "b": [np.array([3.0, 4.0])]}
    for way in (lambda f: f, lab.jit):
        end, ys = way(lambda xs: lab.scan(turn, State(0.0, {"n": 0, "none": None}), xs))(xs)
        assert type(end) is State
        close(end.h, 11.0)
        assert end.more["n"].item() == 2
        assert end.more["n"].dtype == np.int64
        close(ys["y"][0], [3.0, 11.0])
        assert ys["y"][1] is None
        close(ys["z"][0], [0, 1])
        out = way(lambda x: lab.cond(x > 0.0, lambda s: s, lambda s: s, State(x, {"k": x * 2.0})))(3.0)
        assert type(out) is State
        close(out.more["k"], 6.0)


def test_a_carry_may_be_empty_and_a_turn_may_give_nothing():
    for way in (lambda f: f, lab.jit):
        assert lab.scan(lambda c, x: (c, None), (), None, length=3) == ((), None)
        carry, ys = way(lambda x: lab.scan(lambda c, row: (None, row * x), None, np.arange(3.0)))(2.0)
        assert carry is None
        close(ys, [0.0, 2.0, 4.0])
        close(way(lambda x: lab.scan(lambda c, _: (c * x, None), x, None, length=3)[0])(2.0), 16.0)
    close(lab.jit(lab.grad(lambda x: lab.scan(lambda c, row: ((), row * x), (), np.arange(3.0))[1].sum()))(2.0), 3.0)
    f = lambda x: lab.scan(lambda c, _: (c * x, c), x, None, length=0)  # noqa: E731
    close(lab.jit(f)(2.0)[1], np.zeros(0))
    close(lab.jit(lab.grad(lambda x: f(x)[0] + f(x)[1].sum()))(2.0), 1.0)


def test_numbers_become_arrays_of_the_dtype_that_a_turn_makes():
    x = np.array([1.5, 2.5], "float32")
    f = lambda x: lab.scan(lambda c, row: (c + row, c * 2), 0, x)  # noqa: E731
    g = lambda x: lab.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] + x[0]), (0, 0.0), max_steps=9)  # noqa: E731
    h = lambda x: lab.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] + x[0]), (0, 0.0))  # noqa: E731
    for way in (lambda f: f, lab.jit, lambda f: lab.jit(lab.jit(f))):
        total, ys = way(f)(x)
        assert total.dtype == np.float32
        close(total, np.float32(4.0))
        close(ys, np.array([0.0, 3.0]))
        for loop in (g, h):
            n, y = way(loop)(x)
            assert (n.dtype, y.dtype) == (np.int64, np.float32)
            close(y, np.float32(7.5))
    for loop in (g, h):
        assert lab.jit(lab.grad(lambda x: loop(x)[1]))(x).dtype == np.float32  # noqa: B023
        close(lab.jit(lab.grad(lambda x: loop(x)[1]))(x), np.array([5.0, 0.0]))  # noqa: B023
    half = lab.jit(lambda x, s: lab.cond(x[0] > 0, lambda x: x * s, lambda x: x, x))(x, 2.0)
    assert half.dtype == np.float32
    choice = lab.jit(lambda x: lab.cond(x[0] > 0, lambda: x[1], lambda: 1))(x)
    assert choice.dtype == np.float32
    scaled = lab.jit(lambda x, s: lab.scan(lambda c, row: (c * s, None), x, None, length=2)[0])(x, 2.0)
    assert scaled.dtype == np.float32
    close(scaled, x * 4)


def test_integers_are_carried_without_a_gradient():
    def f(x):
        i, y = lab.scan(lambda c, row: ((c[0] + 1, c[1] * x + c[0]), row), (np.array(2), x), np.arange(3))[0]
        return y * i

    plain = lambda x: ((((x * x + 2.0) * x + 3.0) * x) + 4.0) * 5.0  # noqa: E731
    close(lab.jit(f)(1.5), plain(1.5))
    close(lab.jit(lab.grad(f))(1.5), lab.grad(plain)(1.5))
    close(lab.jit(lab.hessian(f))(1.5), lab.hessian(plain)(1.5))


def test_no_grad_around_and_inside_is_kept_in_a_graph():
    def around(x):
        with lab.no_grad():
            c = lab.scan(lambda c, row: (c * x, None), x, None, length=2)[0]
        return c * x

    def inside(x):
        def turn(c, _):
            with lab.no_grad():
                f = x * 1.0
            return c * f, None

        return lab.scan(turn, x, None, length=2)[0]

    for f, slope in ((around, 8.0), (inside, 4.0)):
        close(lab.grad(f)(2.0), slope)
        close(lab.jit(lab.grad(f))(2.0), slope)
        close(lab.grad(lab.jit(f))(2.0), slope)
    with lab.no_grad():
        close(lab.jit(lab.grad(lambda x: lab.scan(lambda c, row: (c * x, None), x, None, length=2)[0]))(2.0), 12.0)


def test_a_function_with_a_rule_of_its_own_keeps_it_inside_a_loop():
    @lab.custom_vjp
    def f(x):
        return x * 2.0

    f.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (ct * 10.0,))
    g = lambda x: lab.scan(lambda c, _: (f(c), None), x, None, length=3)[0]  # noqa: E731
    close(lab.jit(lab.grad(g))(1.0), 1000.0)
    constant = lab.custom_vjp(lambda x: x * 2.0)
    constant.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (np.array(7.0),))
    g = lambda x: lab.cond(x > 0.0, constant, lambda x: x, x)  # noqa: E731
    close(lab.jit(lab.grad(g))(1.0), 7.0)


def test_collectives_inside_a_loop_meet_the_members():
    def f(x):
        return lab.scan(lambda c, _: (lab.all_reduce(c, axis_name="i") * 0.5, None), x, None, length=2)[0]

    x = np.array([1.0, 3.0, 4.0])
    expected = lab.vmap(f, axis_name="i")(x)
    close(expected, np.full(3, 8.0 * 1.5 * 0.5))
    close(lab.jit(lab.vmap(f, axis_name="i"))(x), expected)
    close(lab.vmap(lab.jit(f), axis_name="i")(x), expected)


def test_what_a_branch_does_with_values_from_outside_happens_only_where_it_is_taken():
    def f(x):
        return lab.cond(x > 0.0, lambda: lab.sqrt(x) * lab.log(x), lambda: x * 3.0)

    def g(x):  # no turn: the square root is never taken
        return lab.while_loop(lambda c: c[0] < 0, lambda c: (c[0] + 1, c[1] + lab.sqrt(x)), (0, x))[1]

    for x in (0.0, -1.0):
        close(lab.jit(lab.grad(f))(x), 3.0)
        close(lab.jit(lab.hessian(f))(x), 0.0)
        close(lab.jit(lambda x: lab.jvp(f, (x,), (1.0,))[1])(x), 3.0)
        close(lab.grad(lab.jit(f))(x), 3.0)
        close(lab.jit(lab.grad(g))(x), 1.0)
    (equation,) = (e for e in lab.make_graph(f)(1.0).equations if e.graphs)
    assert [e.op.name for e in equation.params["then"].equations] == ["sqrt", "log", "multiply"]
    assert len(lab.make_graph(f)(1.0).equations) == 2


def test_a_branch_that_a_member_does_not_take_sends_it_nothing():
    def inside(f):
        return lambda x: lab.cond(x > 0.0, lambda: f(x), lambda: x * 3.0)

    roots = inside(lambda x: lab.scan(lambda c, _: (lab.sqrt(c), None), x, None, length=2)[0])
    xs = np.array([0.0, -1.0, 4.0])
    total = lambda f: lambda xs: lab.vmap(f)(xs).sum()  # noqa: E731
    for f, slope in ((inside(lab.sqrt), 0.25), (roots, 4.0**-0.75 / 4)):
        with np.errstate(all="ignore"):
            for way in (lab.vmap(lab.grad(f)), lab.jit(lab.vmap(lab.grad(f))), lab.vmap(lab.grad(lab.jit(f))),
                        lab.grad(total(f)), lab.jit(lab.grad(total(f))), lab.grad(lab.jit(total(f)))):  # fmt: skip
                close(way(xs), [3.0, 3.0, slope])


def test_the_numbers_of_members_that_are_done_do_no_harm():
    def f(x):  # a member that is done would go on to the root of a negative number
        turn = lambda c: lab.scan(lambda y, _: (lab.sqrt(y - 1.0), None), c, None, length=1)[0]  # noqa: E731
        return lab.while_loop(lambda c: c > 1.5, turn, x)

    xs = np.array([1.0, 4.0, 30.0])
    slopes = [array(lab.grad(f)(x)) for x in xs]
    total = lambda xs: lab.vmap(f)(xs).sum()  # noqa: E731
    with np.errstate(all="ignore"):
        for way in (lab.vmap(lab.grad(f)), lab.jit(lab.vmap(lab.grad(f))), lab.jit(lab.grad(total)),
                    lab.grad(lab.jit(total))):  # fmt: skip
            close(way(xs), slopes)


def test_a_formula_cannot_hold_a_branch_or_a_loop():
    for f in (branchy, scanned, looped):
        with pytest.raises(lab.LabError, match="cannot be written as an expression") as caught:
            lab.symbolic(lambda x, y, f=f: f(lab.stack([x, y])))
        assert len(str(caught.value).splitlines()) == 3


def test_the_complex_step_looks_into_branches_and_loops():
    def f(x, inner=lambda y: y * y):
        turn = lambda c: (c[0] + 1, lab.cond(x > 0.0, lambda y: inner(y) * x, lambda y: y, c[1]))  # noqa: E731
        y = lab.while_loop(lambda c: c[0] < 2, turn, (0, x))[1]
        return lab.scan(lambda c, row: (c * row + y, None), 1.0, np.array([1.0, 2.0]))[0]

    close(lab.numeric_gradient(f, 0.7, "complex"), lab.jit(lab.grad(f))(0.7), rtol=1e-13)
    with pytest.raises(lab.LabError, match="cannot run the function on complex"):
        lab.numeric_gradient(lambda x: f(x, abs), 0.7, "complex")


def test_what_is_traced_again_still_comes_from_the_line_of_its_turn():
    def turn(c, row):
        return lab.tanh(c) * row, None

    f = lambda x: lab.scan(turn, x, np.array([1.0, 2.0]))[0]  # noqa: E731
    line = f"{__file__}:{turn.__code__.co_firstlineno + 1}"
    x = 1.0
    for g in (f, lab.grad(f), lambda x: lab.jvp(f, (x,), (x,)), lab.jit(lab.hessian(f)),
              lambda x: lab.vmap(f)(x * np.ones(2))):  # fmt: skip
        inner = [e for graph in lab.make_graph(g)(x).walk() for e in graph.equations if e.op.name == "tanh"]
        assert {e.origin for e in inner} == {line}


def test_a_graph_with_a_loop_can_be_pickled_and_saved(tmp_path):
    graph = lab.make_graph(lab.grad(nested))(POINTS[0])
    assert str(pickle.loads(pickle.dumps(graph))) == str(graph)
    save(graph, tmp_path / "nested.graph")
    again = load(tmp_path / "nested.graph").graph
    assert str(again) == str(graph)
    close(run_arrays(again, [POINTS[0]])[0], lab.grad(nested)(POINTS[0]))


def test_replaying_a_loop_tells_listeners_what_plain_code_tells_them():
    def f(x):
        return lab.scan(lambda c, row: (lab.sin(c) * row, None), x, np.array([1.0, 2.0]))[0]

    x = lab.tensor(0.5, requires_grad=True)
    heard = []
    for g in (f, lab.jit(f)):
        g(x)
        with lab.record(kinds=[OpRecorded, RuleApplied], sources=False) as rec:
            g(x).backward()
        heard.append([(type(e).__name__, e.op) for e in rec])
    assert heard[0] == heard[1]
    assert [op for kind, op in heard[0] if kind == "OpRecorded"] == ["sin", "multiply"] * 2


def test_a_traced_loop_is_one_operation_on_the_tape_that_is_traced():
    with lab.record(kinds=[OpRecorded], sources=False) as rec:
        lab.jit(lab.grad(scanned))(POINTS[0])
    ops = [e.op for e in rec]  # what is traced again for the rule of the loop tells nothing: it only writes a graph
    assert ops.count("scan") == 1
    assert ops.count("result") == 2
    assert "tanh" not in ops
    for way in (lab.hessian, lambda f: lambda x: lab.vmap(lab.grad(f))(lab.stack([x, x]))):
        with lab.record(sources=False) as rec:
            lab.jit(way(nested))(POINTS[0])
        told = {e.op for e in rec if hasattr(e, "op")}
        assert "results" not in told
        assert "cond" not in told  # it stands inside of the scan


def test_a_loop_runs_one_branch_only_and_as_many_turns_as_it_needs():
    ran = []
    take = lambda name: lambda x: ran.append(name) or x  # noqa: E731
    lab.cond(True, take("then"), take("otherwise"), 1.0)
    lab.cond(lab.tensor(0), take("then"), take("otherwise"), 1.0)
    assert ran == ["then", "otherwise"]
    assert lab.while_loop(lambda c: c < 4, lambda c: ran.append(c) or c + 1, 0).item() == 4
    assert len(ran) == 6
    assert lab.while_loop(lambda c: True, lambda c: c + 1, 0, max_steps=7).item() == 7
    assert lab.jit(lambda x: lab.while_loop(lambda c: True, lambda c: c + 1, x, max_steps=7))(1).item() == 8
    assert lab.jit(lambda x: lab.while_loop(lambda c: True, lambda c: c + 1, x, max_steps=0))(1).item() == 1


def test_loops_over_numbers_that_are_known_stay_plain_code_outside_of_graphs():
    def f(x):
        def turn(c, row):
            return (c * x if float(row) > 1.0 else c + x), None  # an if on a number: no graph could hold it

        return lab.scan(turn, x, np.array([1.0, 2.0]))[0]

    close(f(3.0), 18.0)
    close(lab.grad(f)(3.0), 12.0)
    close(lab.linearize(f, 3.0)[1](1.0), 12.0)
    with pytest.raises(ConcretizationError) as caught:
        lab.jit(f)(3.0)
    for word in ("lab.cond", "lab.while_loop", "lab.scan", "lab.script"):
        assert word in caught.value.hint


ERRORS = {
    "a carry of another dtype": (
        lambda x: lab.scan(lambda c, _: ({"a": c["a"] + 0.5}, None), {"a": np.array(1)}, None, length=2),
        r"scan: a turn must keep the carry at \['a'\] of one dtype",
    ),
    "a carry of another shape": (
        lambda x: lab.while_loop(lambda c: c[1] < 3, lambda c: (lab.stack([x, x]), c[1] + 1), (x, 0)),
        r"while_loop: a turn must keep the carry at \[0\] of one shape",
    ),
    "a bounded carry of another dtype": (
        lambda x: lab.while_loop(lambda c: c < 3, lambda c: c + 0.5, np.array(1), max_steps=3),
        "while_loop: a turn must keep the carry of one dtype",
    ),
    "a carry in other containers": (
        lambda x: lab.scan(lambda c, _: ([c], None), x, None, length=2),
        "scan: a turn must give back the carry in the containers",
    ),
    "no pair": (lambda x: lab.scan(lambda c, _: c, x, None, length=2), "scan: a turn must return a pair"),
    "no length": (lambda x: lab.scan(lambda c, _: (c, None), x, None), "scan needs to know how many turns"),
    "a negative length": (
        lambda x: lab.scan(lambda c, _: (c, None), x, None, length=-1),
        "length is a number of turns",
    ),
    "lengths that differ": (
        lambda x: lab.scan(lambda c, _: (c, None), x, {"a": np.ones(2), "b": np.ones(3)}),
        "scan needs xs of one length",
    ),
    "another length than said": (
        lambda x: lab.scan(lambda c, _: (c, None), x, np.ones(2), length=3),
        "scan needs xs of one length",
    ),
    "no rows": (lambda x: lab.scan(lambda c, _: (c, None), x, 1.0), "scan goes over rows, and xs has none"),
    "several conditions": (
        lambda x: lab.cond(lab.stack([x, x]) > 0.0, lambda: x, lambda: x),
        "cond needs one condition",
    ),
    "several tests": (
        lambda x: lab.while_loop(lambda c: c > 0.0, lambda c: c, lab.stack([x, x])),
        "while_loop needs one condition",
    ),
    "no function": (lambda x: lab.cond(x > 0.0, 1.0, 2.0), "cond needs a function"),
    "no number": (lambda x: lab.scan(lambda c, _: (c, "text"), x, None, length=1), "scan takes numbers only"),
    "steps that are no number": (
        lambda x: lab.while_loop(lambda c: c > 0.0, lambda c: c, x, max_steps=1.5),
        "max_steps is a number of turns",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("way", [lambda f: f, lab.jit, lambda f: lambda x: lab.jvp(f, (x,), (x,))])
def test_misuse_is_explained_in_three_lines(way, name):
    call, problem = ERRORS[name]
    with pytest.raises(lab.LabError, match=problem) as caught:
        way(call)(1.0)
    assert caught.value.given
    assert caught.value.hint
    assert len(str(caught.value).splitlines()) == 3


BRANCHES = {
    "containers": (lambda x: (x,), "cond: both branches must give results in the same containers"),
    "shapes": (lambda x: lab.stack([x, x]), "cond: both branches must give the same shapes"),
    "dtypes": (lambda x: x.astype("float32"), "cond: both branches must give the same dtypes"),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_that_do_not_fit_each_other_are_refused_in_a_graph(name):
    other, problem = BRANCHES[name]
    for way in (lab.jit, lambda f: lambda x: lab.vmap(f)(lab.stack([x, -x]))):
        with pytest.raises(lab.LabError, match=problem) as caught:
            way(lambda x: lab.cond(x > 0.0, lambda x: x, other, x))(lab.tensor(1.0))
        assert len(str(caught.value).splitlines()) == 3


def test_a_value_that_outlives_a_loop_is_refused():
    held = []
    lab.jit(lambda x: lab.scan(lambda c, _: (held.append(c) or c, None), x, None, length=2)[0])(1.0)
    with pytest.raises(lab.LabError, match="used after its end"):
        held[0] * 2.0


def test_a_loop_from_or_to_a_fraction_is_refused_in_three_lines():
    with pytest.raises(lab.LabError, match=r"fori_loop counts by whole numbers\ngiven: 0 to 2.5\nhint:  "):
        lab.fori_loop(0, 2.5, lambda i, x: x, 1.0)
