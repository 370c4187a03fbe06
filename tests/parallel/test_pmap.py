"""pmap: what vmap gives, from threads and from workers; with gradients, containers and errors that name the rank."""

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, LabError, RankError, ShapeError, UnsupportedError
from lab.parallel import pmap
from tests.numerics import close

X = np.random.default_rng(0).normal(size=(4, 3))


def same(found, expected):
    """Bit for bit, in whatever container."""
    (a, kind), (b, expected_kind) = lab.tree.flatten(found), lab.tree.flatten(expected)
    assert kind == expected_kind
    for x, y in zip(a, b, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x.numpy(), y.numpy())


def normed(x):
    mean = lab.all_reduce(x, axis_name="ranks", op="mean")
    return (x - mean) / lab.all_reduce((x - mean) ** 2, axis_name="ranks")


def step(w, x):
    """A gradient step of one rank with its examples."""
    loss = lambda w: lab.add_rows(lab.add_rows((x * w - 1.0) ** 2))  # noqa: E731
    return w - 0.01 * lab.all_reduce(lab.grad(loss)(w), axis_name="ranks", op="mean")


def test_it_gives_what_vmap_gives_bit_for_bit():
    x = np.random.default_rng(1).normal(size=(5, 7)).astype(np.float32)
    same(pmap(normed)(x), lab.vmap(normed, axis_name="ranks")(x))
    many = np.random.default_rng(2).normal(size=(4, 6, 3))
    same(pmap(step, in_axes=(None, 0))(lab.tensor(X[0]), many),
         lab.vmap(step, (None, 0), axis_name="ranks")(lab.tensor(X[0]), many))  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 4])
def test_each_rank_takes_as_many_members(n):
    f = lambda x: lab.sin(x) * 2.0  # noqa: E731
    same(pmap(f, n)(X), lab.vmap(f)(X))
    same(pmap(f, n, in_axes=-1, out_axes=-1)(X.T), lab.vmap(f, -1, -1)(X.T))


def test_containers_shared_arguments_keywords_and_constants():
    f = lambda p, k, *, y: {"a": (p["w"] * k + y, p["b"]), "b": 3.0}  # noqa: E731
    given = {"w": X, "b": X[:, 0]}
    for n in (2, 4):
        same(pmap(f, n, in_axes=({"w": 0, "b": 0}, None), out_axes={"a": (1, 0), "b": 0})(given, 2.0, y=X),
             lab.vmap(f, ({"w": 0, "b": 0}, None), {"a": (1, 0), "b": 0})(given, 2.0, y=X))  # fmt: skip


def test_members_that_cannot_be_dealt_are_refused_with_arithmetic():
    said = r"4 members for 3 ranks: 4 = 3 \* 1 \+ 1\nhint:  pad the axis to 6, or take 2"
    with pytest.raises(ShapeError, match=said):
        pmap(lab.sin, 3)(X)
    with pytest.raises(ShapeError, match=r"4 members for 8 ranks: 4 = 8 \* 0 \+ 4"):
        pmap(lab.sin, 8)(X)


def test_a_gradient_goes_back_over_the_ranks():
    weight = np.random.default_rng(3).normal(size=X.shape)
    for f, n in ((normed, 4), (lambda x: lab.sin(x) * x, 2)):
        loss = lambda run, f=f: lambda x: (run(f)(x) * weight).sum()  # noqa: E731
        by_ranks = loss(lambda f, n=n: pmap(f, n))
        by_batch = loss(lambda f: lab.vmap(f, axis_name="ranks"))
        close(lab.grad(by_ranks)(X), lab.grad(by_batch)(X), rtol=1e-12, atol=1e-14)
        twice = lambda g: lab.grad(lambda x: (lab.grad(g)(x) ** 2).sum())(X)  # noqa: E731
        close(twice(by_ranks), twice(by_batch), rtol=1e-10, atol=1e-12)


def test_what_all_ranks_share_gets_the_sum_of_their_cotangents_on_the_plain_tape_too():
    w = lab.tensor([1.0, 2.0, 3.0], requires_grad=True)
    pmap(lambda w, x: w * x, in_axes=(None, 0))(w, X).sum().backward()
    close(w.grad, X.sum(0))


def test_a_gradient_that_would_be_lost_is_refused():
    w = lab.tensor(2.0, requires_grad=True)
    with pytest.raises(RankError, match="would lose its gradient"):
        pmap(lambda x: x * w)(X)
    with lab.no_grad():
        close(pmap(lambda x: x * w)(X), X * 2.0)
    for call in (lab.jit(pmap(lab.sin)), lab.vmap(pmap(lab.sin))):
        with pytest.raises(UnsupportedError, match="pmap runs at once"):
            call(X)
    with pytest.raises(LabError, match="pmap has a rule for reverse mode only"):
        lab.jvp(pmap(lab.sin), (X,), (X,))


def test_collectives_want_a_rank_for_each_member():
    with pytest.raises(RankError, match="has a rank of its own; given: 4 members on 2 ranks"):
        pmap(normed, 2)(X)
    close(pmap(lambda x: x * lab.axis_size("ranks"), 2)(X), X * 4)


def test_an_error_names_the_rank():
    def f(x):
        if int(np.asarray(lab.axis_index("ranks"))) == 2:
            return lab.matmul(x, np.ones((5, 5)))
        return lab.all_reduce(x, axis_name="ranks")

    with pytest.raises(RankError, match="f raised ShapeError on rank 2 of 4") as caught:
        pmap(f)(X)
    assert caught.value.rank == 2
    g = lambda x: x[: 1 + (int(np.asarray(lab.axis_index("ranks"))) == 3)]  # noqa: E731
    with pytest.raises(ShapeError, match=r"rank 3 returned something else .*\ngiven: float64\[1\]; float64\[2\]"):
        pmap(g)(X)


@pytest.mark.parametrize("on", ["here", 0, -1, True, 2.0, object()])
def test_where_it_runs_is_looked_at_in_the_line_of_the_call(on):
    if on == "here":
        on = []
    with pytest.raises(LabError) as caught:
        pmap(lab.sin, on)
    assert caught.value.hint
    with pytest.raises(ArgumentError, match="pmap needs a function"):
        pmap(3)


def test_on_workers_it_gives_the_same_bits(cluster):
    run = lambda f, **axes: pmap(f, cluster, **axes)  # noqa: E731
    same(run(normed)(X), lab.vmap(normed, axis_name="ranks")(X))
    many = np.random.default_rng(2).normal(size=(4, 6, 3))
    same(run(step, in_axes=(None, 0))(lab.tensor(X[0]), many),
         lab.vmap(step, (None, 0), axis_name="ranks")(lab.tensor(X[0]), many))  # fmt: skip
    same(run(lab.sin)(np.ones((8, 2))), lab.vmap(lab.sin)(np.ones((8, 2))))
    weight = np.random.default_rng(3).normal(size=X.shape)
    grads = [lab.grad(lambda x, r=r: (r(normed)(x) * weight).sum())(X) for r in (run, pmap)]
    same(*grads)


def test_on_workers_an_error_names_the_rank(cluster):
    def f(x):
        return lab.matmul(x, np.ones((5, 5)))

    with pytest.raises(RankError, match=r"the program raised on rank \d of 4"):
        pmap(f, cluster)(X)


@pytest.mark.parametrize("on", [lambda cluster: cluster.client, lambda cluster: cluster.client.scheduler.address],
                         ids=["client", "address"])  # fmt: skip
def test_a_client_or_the_address_of_a_scheduler_serves_as_a_cluster_does(cluster, on):
    same(pmap(normed, on(cluster))(X), lab.vmap(normed, axis_name="ranks")(X))
    assert cluster.client.status == "running"
    assert cluster.launch(lambda comm: comm.rank, world_size=2) == [0, 1]
