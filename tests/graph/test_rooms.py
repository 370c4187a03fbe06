"""Memory for outputs is used again only when nobody can see what is in it."""

import weakref

import numpy as np
import pytest

import lab
from lab.graph.compiled import Compiled
from lab.graph.rooms import LARGE, Room
from lab.shapes import Spec


def address(a):
    return a.__array_interface__["data"][0]


def test_an_array_is_used_again_when_it_was_let_go():
    room = Room(Spec((8,), np.dtype(float)))
    first = room()
    at = address(first)
    assert address(room()) != at
    del first
    assert address(room()) == at


LOOKS = [
    lambda a: a[2:], lambda a: a.reshape(2, 4).T, memoryview, np.asarray, lambda a: a.view(np.int64),
    lambda a: np.broadcast_to(a, (3, 8)), np.nditer, lambda a: a.flat,
]  # fmt: skip


@pytest.mark.parametrize("look", LOOKS)
def test_whoever_can_see_it_keeps_it(look):
    room = Room(Spec((8,), np.dtype(float)))
    first = room()
    first[...] = 1.0
    held = look(first)
    del first
    for _ in range(3):
        room()[...] = 7.0
    assert 7.0 not in np.asarray(next(iter(held)) if isinstance(held, np.nditer) else held).view(np.float64)


def test_no_more_than_two_are_kept():
    room = Room(Spec((8,), np.dtype(float)))
    given = [room() for _ in range(5)]
    assert len({address(a) for a in given}) == 5
    third = weakref.ref(given[2])
    given.clear()
    assert third() is None


def test_results_of_a_compiled_function_stay_what_they_were():
    n = LARGE // 8
    compiled = Compiled(lab.make_graph(lambda x: (x * 2.0 + 1.0, x - 1.0))(np.ones(n)))
    for loop in compiled.code.loops.values():
        loop.run = loop.twin
        loop.loaded = "numpy"
    kept = [compiled.arrays([np.full(n, float(k))]) for k in range(5)]
    for k, (a, b) in enumerate(kept):
        assert np.all(a == 2.0 * k + 1.0)
        assert np.all(b == k - 1.0)
