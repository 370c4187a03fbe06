"""Fast paths against their slow twins on random graphs, and the same graphs against HIPS autograd and differences."""

import threading

import autograd
import autograd.numpy as anp
import hypothesis.strategies as st
import numpy as np
from hypothesis import given

import lab
from lab.autograd import backward as walks
from lab.autograd.backward import Walk
from lab.autograd.tape import fold_eager
from lab.events import OpRecorded, RuleApplied
from tests.numerics import array, close


def wide(x):
    """x as a matrix, whatever it was broadcast from."""
    return lab.broadcast_to(x, (3, 2))


UNARY = {"tanh": lab.tanh, "exp": lambda x: lab.exp(x * 0.1), "sigmoid": lab.sigmoid, "neg": lambda x: -x,
         "relu": lab.relu, "sum": lambda x: lab.sum(x, axis=0, keepdims=True), "T": lambda x: (x * 1.0).T.T,
         "norm": lambda x: lab.layer_norm(wide(x), wide(x)[0], wide(x)[1], epsilon=0.1),
         "softmax": lab.softmax, "index": lambda x: lab.concatenate([x[::-1], x[:1]])[1:],
         "sqrt": lambda x: lab.where(x > 0, lab.sqrt(x), x)}  # fmt: skip
BINARY = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "sub": lambda a, b: a - b,
          "max": lab.maximum, "div": lambda a, b: a / (b * b + 1.0),
          "mm": lambda a, b: wide(a) @ wide(b).T @ wide(b)}  # fmt: skip
SHAPES = [(3, 2), (1, 2), (3, 1), (1, 1)]

steps = st.lists(
    st.one_of(st.tuples(st.sampled_from(sorted(UNARY)), st.integers(0, 50)),
              st.tuples(st.sampled_from(sorted(BINARY)), st.integers(0, 50), st.integers(0, 50))),
    min_size=1, max_size=12,
)  # fmt: skip


def build(program, leaves):
    """Run a random program; operands are numbered modulo what there is, so that values are shared."""
    values = list(leaves)
    for name, *which in program:
        operands = [values[i % len(values)] for i in which]
        made = UNARY[name](*operands) if name in UNARY else BINARY[name](*operands)
        values.append(lab.tanh(made))  # keeps numbers in a range where differences mean something
    total = lab.tensor(0.0)
    for i, v in enumerate(values):
        total = total + (v * (1.0 + 0.1 * i)).sum()
    return total


def leaves(seed=0):
    rng = np.random.default_rng(seed)
    return [lab.tensor(rng.normal(size=s), requires_grad=True) for s in SHAPES]


def gradients(xs):
    return [array(x.grad).copy() for x in xs]


def slow_backward(root):
    """The definition: every edge by its rule, folded to its operand, summed; no shortcut."""
    walk = Walk(root.node)
    grads = {root.node.id: np.ones(())}
    for node in walk.nodes:
        ct = grads.get(node.id)
        for i, (parent, c) in enumerate(zip(node.parents, walks.edges(node, ct, general=False), strict=True)):
            if parent is not None and c is not None:
                c = c if node.fit is None or node.fit[i] is None else fold_eager(c, node.fit[i])
                grads[parent.id] = grads.get(parent.id, 0.0) + c
    return grads


@given(steps)
def test_the_fast_pull_equals_the_edges_one_by_one(program):
    with np.errstate(all="ignore"):
        xs = leaves()
        slow = slow_backward(build(program, xs))
        fast = leaves()
        build(program, fast).backward()
    for x, y in zip(xs, fast, strict=True):
        expected = slow[x.node.id]
        if np.isfinite(expected).all():  # the definition has no guard for branches that were not taken
            close(array(y.grad), expected, rtol=1e-12)


@given(steps)
def test_every_way_to_a_gradient_gives_the_same(program):
    with np.errstate(all="ignore"):
        ways = []
        for mode in ("plain", "create_graph", "hooks", "listener", "values", "anomaly"):
            xs = leaves()
            root = build(program, xs)
            if mode == "hooks":
                xs[0].register_hook(lambda g: None)
            if mode in {"listener", "values"}:
                with lab.record(detail="value" if mode == "values" else "shape", sources=False) as rec:
                    root.backward()
                assert sum(isinstance(e, RuleApplied) for e in rec) == len(
                    {e.node for e in rec if isinstance(e, RuleApplied)}
                )
            else:
                root.backward(create_graph=mode == "create_graph")
            ways.append(gradients(xs))
        plain = [array(x) for x in leaves()]
        f = lambda *xs: build(program, xs)  # noqa: E731
        ways.append([array(g) for g in lab.grad(f, argnums=(0, 1, 2, 3))(*plain)])
        ways.append([array(g) for g in lab.jit(lab.grad(f, argnums=(0, 1, 2, 3)))(*plain)])
        ways.append([array(g) for g in lab.grad(lab.jit(f), argnums=(0, 1, 2, 3))(*plain)])
        batched = lab.vmap(lab.grad(f, argnums=(0, 1, 2, 3)))(*(np.stack([x, x]) for x in plain))
        ways.append([array(g)[1] for g in batched])
    for way in ways[1:]:
        for a, b in zip(ways[0], way, strict=True):
            close(a, b, rtol=1e-9, atol=1e-11)


@given(steps)
def test_what_listeners_hear_does_not_depend_on_the_fast_path(program):
    with np.errstate(all="ignore"):
        heard = []
        for sources in (False, True):
            with lab.record(detail="shape", sources=sources, kinds=[OpRecorded, RuleApplied]) as rec:
                build(program, leaves()).backward()
            first = min(e.node for e in rec)
            heard.append([
                (type(e).__name__, e.node - first, e.op,
                 tuple(p if p < 0 else p - first for p in getattr(e, "parents", None) or e.targets))
                for e in rec
            ])  # fmt: skip
    assert heard[0] == heard[1]


def test_a_network_agrees_with_a_second_opinion():
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(8, 5)), rng.integers(0, 3, 8)
    params = {"w1": rng.normal(size=(5, 7)), "b1": rng.normal(size=7), "w2": rng.normal(size=(7, 3))}

    def ours(p):
        hidden = lab.tanh(lab.matmul(x, p["w1"]) + p["b1"])
        return lab.cross_entropy(hidden @ p["w2"], labels) + 0.01 * lab.sum(p["w1"] ** 2) / lab.mean(lab.exp(p["b1"]))

    def theirs(p):
        logits = anp.tanh(anp.dot(x, p["w1"]) + p["b1"]) @ p["w2"]
        shifted = logits - anp.max(logits, axis=1, keepdims=True)
        rows = shifted - anp.log(anp.sum(anp.exp(shifted), axis=1, keepdims=True))
        return (-anp.mean(rows[anp.arange(8), labels])
                + 0.01 * anp.sum(p["w1"] ** 2) / anp.mean(anp.exp(p["b1"])))  # fmt: skip

    found, expected = lab.grad(ours)(params), autograd.grad(theirs)(params)
    for name in params:
        close(found[name], expected[name], rtol=1e-10)
    flat = lambda f, w: f({**params, "w2": w})  # noqa: E731
    v = rng.normal(size=(7, 3))
    ours_hv = lab.jvp(lab.grad(lambda w: flat(ours, w)), (params["w2"],), (v,))[1]
    theirs_hv = autograd.hessian_vector_product(lambda w: flat(theirs, w))(params["w2"], v)
    close(ours_hv, theirs_hv, rtol=1e-9)


def test_hessians_in_four_threads_are_those_of_one():
    def f(x):
        return lab.sum(lab.exp(lab.sin(x)) * x) + lab.where(x > 0, lab.sqrt(x), 0.0).sum()

    def hessian(x):
        return lab.vmap(lambda v: lab.jvp(lab.grad(f), (x,), (v,))[1])(np.eye(x.size))

    rng = np.random.default_rng(0)
    points = [np.abs(rng.normal(size=4)) + 0.1 for _ in range(4)]
    expected = [array(hessian(p)) for p in points]
    found = [[] for _ in points]
    barrier = threading.Barrier(4)

    def work(i):
        barrier.wait()
        for _ in range(15):
            found[i].append(array(hessian(points[i])))
            x = lab.tensor(points[i], requires_grad=True)
            with lab.no_grad():
                assert not f(x).requires_grad
            f(x).backward()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for results, one in zip(found, expected, strict=True):
        assert len(results) == 15
        for r in results:
            close(r, one, rtol=0, atol=0)


def test_one_jitted_function_used_by_four_threads_at_once():
    f = lab.jit(lab.grad(lambda x: lab.sum(lab.tanh(x) * x)))
    expected = array(lab.grad(lambda x: lab.sum(lab.tanh(x) * x))(np.ones(5)))
    failures = []

    def work():
        failures.extend(i for i in range(50) if not np.array_equal(array(f(np.ones(5))), expected))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
