"""The short way of a jitted function: it must never take what the long way would trace anew, nor give anything else."""

from typing import NamedTuple

import numpy as np
import pytest

import lab
from lab import tree
from lab.autograd.tensor import wrap
from lab.transforms.guards import closer, opener


class Pair(NamedTuple):
    first: object
    second: object


def both(x, y):
    return {"sum": x["a"] + y, "parts": [x["a"] * 2.0, (x["b"], None)]}


GIVEN = [({"a": np.ones(2), "b": lab.tensor(3.0)}, 2.0)]
OTHERS = [
    ({"a": np.ones(3), "b": lab.tensor(3.0)}, 2.0),
    ({"a": np.ones(2, np.float32), "b": lab.tensor(3.0)}, 2.0),
    ({"a": np.ones(2), "b": lab.tensor(3.0)}, 2),
    ({"a": np.ones(2), "b": 3.0}, 2.0),
    ({"a": np.ones(2), "b": lab.tensor(3.0)}, np.float64(2.0)),
    ({"a": np.ones(2, ">f8"), "b": lab.tensor(3.0)}, 2.0),
]


@pytest.mark.parametrize("executor", ["interpreted", "compiled"])
def test_calls_of_one_kind_after_the_other_give_what_plain_code_gives(executor):
    f = lab.jit(both, executor=executor)
    for args in [*GIVEN, *OTHERS, *OTHERS, *GIVEN, *GIVEN]:
        got, wanted = (tree.flatten(g(*args)) for g in (f, both))
        assert got[1] == wanted[1]
        for a, b in zip(got[0], wanted[0], strict=True):
            assert np.array_equal(np.asarray(a), np.asarray(b))
            assert np.asarray(a).dtype == np.asarray(b).dtype
    assert len(f.cache) + f.hits == len([*GIVEN, *OTHERS, *OTHERS, *GIVEN, *GIVEN])


@pytest.mark.parametrize("args", OTHERS)
def test_the_short_way_refuses_what_is_of_another_kind(args):
    f = lab.jit(both)
    f(*GIVEN[0])
    (cached,) = f.cache.values()
    take = opener(next(iter(f.cache)).structure, next(iter(f.cache)).kinds)
    assert take(GIVEN[0], {}, False) is not None
    assert take(args, {}, False) is None
    for odd in ((), (1.0,), ({"a": 1.0, "c": 2.0}, 2.0), ([1.0, 2.0], 2.0), (None, 2.0), (*GIVEN[0], 1.0)):
        assert take(odd, {}, False) is None
    assert cached.again is not None


def test_a_tensor_that_is_recorded_goes_the_long_way_and_gets_its_gradient():
    f = lab.jit(lambda x: x * x)
    x = lab.tensor(3.0, requires_grad=True)
    assert f(lab.tensor(3.0)).item() == 9.0
    f(x).backward()
    assert x.grad.item() == 6.0
    with lab.no_grad():
        assert f(x).item() == 9.0
        assert f(x).node is None


def test_under_a_transform_it_is_differentiated_and_mapped():
    f = lab.jit(lambda x: x * x)
    f(lab.tensor(1.0))
    assert lab.grad(f)(3.0).item() == 6.0
    assert lab.vmap(f)(lab.tensor([1.0, 2.0])).numpy().tolist() == [1.0, 4.0]


def test_captured_tensors_are_read_at_each_call():
    w = lab.tensor(2.0, requires_grad=True)
    f = lab.jit(lambda x: x * w)
    with lab.no_grad():
        assert f(lab.tensor(3.0)).item() == 6.0
        w.value[...] = 5.0
        assert f(lab.tensor(3.0)).item() == 15.0
    f(lab.tensor(3.0)).backward()
    assert w.grad.item() == 3.0


def test_operations_are_told_to_whoever_listens():
    f, x = lab.jit(lambda x: lab.exp(x) * 2.0), lab.tensor(1.0, requires_grad=True)
    f(1.0)
    with lab.record() as rec:
        f(x)
    assert [event.op for event in rec if type(event).__name__ == "OpRecorded"] == ["exp", "multiply"]


def test_calls_are_told_to_whoever_listens_also_those_that_would_take_the_short_way():
    f = lab.jit(lambda x: lab.exp(x) * 2.0)
    f(1.0), f(1.0)
    with lab.record() as rec:
        f(1.0), f(1.0)
    assert [type(event).__name__ for event in rec].count("CacheHit") == 2


def test_what_is_given_back_is_nobody_elses():
    given = np.ones(3)
    f = lab.jit(lambda x: (x, x.reshape((3, 1))))
    for _ in range(3):
        same, seen = f(given)
        with pytest.raises(ValueError, match="read-only"):
            seen.numpy()[...] = 7.0
        assert not np.shares_memory(same.value, given)
        assert not seen.value.flags.writeable


def test_named_tuples_and_modules_go_the_long_way():
    f = lab.jit(lambda pair: Pair(pair.second, pair.first * 2.0))
    for _ in range(3):
        out = f(Pair(1.0, lab.tensor([2.0])))
        assert type(out) is Pair
        assert out.first.numpy().tolist() == [2.0]
        assert out.second.item() == 2.0
    assert f.hits == 2
    model = lab.nn.Linear(2, 1, rng=0)
    g = lab.jit(lambda m, x: m(x))
    first, second = g(model, np.ones((1, 2))), g(model, np.ones((1, 2)))
    assert first.numpy().tolist() == second.numpy().tolist()
    assert g.hits == 1


def test_another_convention_at_kinks_is_another_kind():
    slope = lab.jit(lab.grad(lambda x: lab.relu(x)))
    assert [slope(0.0).item(), slope(0.0).item()] == [0.0, 0.0]
    with lab.settings(kinks="half"):
        assert slope(0.0).item() == 0.5
    assert slope(0.0).item() == 0.0


def test_keywords_are_part_of_the_kind():
    f = lab.jit(lambda x, y=1.0: x - y)
    assert [f(3.0, y=2.0).item(), f(3.0).item(), f(y=2.0, x=3.0).item(), f(3.0, y=2.0).item()] == [1.0, 2.0, 1.0, 1.0]


@pytest.mark.parametrize("out", [None, [], (), {}, [1.0], (1.0,), {"b": (1.0, [2.0]), "a": None}, Pair(1.0, [2.0])])
def test_any_container_is_closed_as_the_tree_would(out):
    leaves, structure = tree.flatten(out)
    closed = closer(structure, [False] * len(leaves))([np.asarray(x) for x in leaves])
    assert tree.flatten(closed)[1] == structure
    assert [x.item() for x in tree.flatten(closed)[0]] == leaves


def test_a_call_that_fails_says_so_in_the_words_of_the_ops():
    f = lab.jit(lambda x, i: lab.embedding(x, i) if hasattr(lab, "embedding") else x[i])
    x = wrap(np.ones((2, 2)))
    f(x, np.array([0, 1]))
    with pytest.raises(lab.LabError):
        f(x, np.array([0, 9]))
