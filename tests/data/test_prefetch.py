"""Prefetch: the items of the loader in their order, made ahead in a thread that ends with the loop."""

import threading
import traceback
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lab
from lab.errors import ArgumentError
from lab.events import StageRan

DEPTHS = (0, 1, 2, 5)


def threads():
    return [t for t in threading.enumerate() if t.name == "lab.prefetch"]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    assert threads() == []
    yield
    assert threads() == []


@settings(max_examples=40, deadline=None)
@given(n=st.integers(0, 12), depth=st.integers(0, 5))
def test_every_item_comes_once_and_in_order_at_every_depth(n, depth):
    assert list(lab.data.Prefetch(range(n), depth=depth, work=lambda k: k * 10)) == [k * 10 for k in range(n)]


@pytest.mark.parametrize("depth", DEPTHS)
def test_epoch_after_epoch_is_what_the_loader_alone_gives(depth):
    train = lab.data.digits("train")
    alone, ahead = (lab.data.Loader(train, 400, rng=3) for _ in range(2))
    made = lab.data.Prefetch(ahead, depth=depth)
    assert len(made) == len(alone) == 4
    for _ in range(2):
        for a, b in zip(alone, made, strict=True):
            np.testing.assert_array_equal(a.inputs, b.inputs)
            np.testing.assert_array_equal(a.targets, b.targets)


@pytest.mark.parametrize("depth", DEPTHS)
def test_what_work_raises_reaches_the_loop_at_its_item_with_its_traceback(depth):
    def breaks_at_two(k):
        if k == 2:
            raise ZeroDivisionError("two")
        return k

    seen = []
    with pytest.raises(ZeroDivisionError, match="two") as caught:
        seen.extend(lab.data.Prefetch(range(9), depth=depth, work=breaks_at_two))
    assert "breaks_at_two" in "".join(traceback.format_tb(caught.value.__traceback__))


@pytest.mark.parametrize("depth", DEPTHS)
def test_items_before_the_error_come_all(depth):
    def loader():
        yield from range(3)
        raise OSError("the file is cut")

    seen = []

    def take():
        for k in lab.data.Prefetch(Again(loader), depth=depth):
            seen.append(k)  # noqa: PERF402 - one by one: the loop is what is looked at

    with pytest.raises(OSError, match="cut"):
        take()
    assert seen == [0, 1, 2]


class Again:
    """Begins a generator anew with each loop."""

    def __init__(self, make):
        self.make = make

    def __iter__(self):
        return self.make()


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_loop_that_is_left_early_ends_the_thread(depth):
    for k in lab.data.Prefetch(iter(range(10**9)), depth=depth):
        if k == 3:
            break
    assert threads() == []


def test_a_loop_that_raises_ends_the_thread():
    def loop():
        for _ in lab.data.Prefetch(range(100), depth=2):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        loop()
    assert threads() == []


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_no_more_than_depth_items_wait_and_one_is_being_made(depth):
    made, room = [], threading.Semaphore(0)

    def work(k):
        made.append(k)
        room.release()
        return k

    items = iter(lab.data.Prefetch(range(100), depth=depth, work=work))
    assert next(items) == 0
    for _ in range(depth + 2):  # the one that was taken, those that wait, and one that has no room yet
        assert room.acquire(timeout=20)
    assert len(made) == depth + 2
    items.close()


def test_an_item_that_the_loop_let_go_is_not_kept():
    class Item:
        pass

    items = iter(lab.data.Prefetch([0, 1], depth=0, work=lambda _: Item()))
    first = weakref.ref(next(items))
    next(items)
    assert first() is None


def test_work_sees_the_settings_of_the_loop():
    with lab.settings(dtype="float64"):
        made = list(lab.data.Prefetch(range(2), depth=1, work=lambda _: lab.nn.Linear(2, 2, rng=0).weight.dtype))
    assert [str(dtype) for dtype in made] == ["float64"] * 2


@pytest.mark.parametrize("depth", DEPTHS)
def test_each_stage_of_each_item_is_told_and_an_item_is_computed_with_after_it_was_made(depth):
    with lab.record(kinds=[StageRan]) as rec:
        for _ in lab.data.Prefetch(range(4), depth=depth, work=str):
            pass
    spans = {(e.stage, e.item): e for e in rec}
    assert len(spans) == len(rec) == 12
    for k in range(4):
        load, preprocess, compute = (spans[stage, k] for stage in ("load", "preprocess", "compute"))
        assert 0 <= load.start_ns <= load.stop_ns <= preprocess.start_ns <= preprocess.stop_ns <= compute.start_ns
        assert compute.start_ns <= compute.stop_ns
        assert (load.lane, preprocess.lane, compute.lane) == ((1, 1, 0) if depth else (0, 0, 0))


@pytest.mark.parametrize("call", [
    lambda: lab.data.Prefetch(range(3), depth=-1),
    lambda: lab.data.Prefetch(range(3), depth=1.5),
    lambda: lab.data.Prefetch(3),
    lambda: lab.data.Prefetch(range(3), work=3),
])  # fmt: skip
def test_bad_arguments_are_said_in_three_lines(call):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 3


def test_a_loader_without_a_length_says_so_and_is_gone_over_all_the_same():
    batches = lab.data.Prefetch(iter([1, 2]))
    with pytest.raises(TypeError, match=r"does not know how many items it has\ngiven: .*\nhint:  "):
        len(batches)
    assert list(batches) == [1, 2]
