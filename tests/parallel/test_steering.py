"""Ranks that are led do the same between the same two steps, whatever order comes when."""

import math
import threading

import pytest

from lab.errors import RunError
from lab.parallel import run_ranks
from lab.parallel.ranks.mailbox import Mailbox
from lab.parallel.training.steering import At, Held, Order, Steering
from lab.training import Countdown

SOON = 100.0


class Counting(Countdown):
    """Counts down on every rank, and keeps what it was told."""

    def __init__(self, comm, n=10**9, **options):
        super().__init__(n, **options)
        self.comm, self.told = comm, []

    def set(self, name, value):
        self.told.append((self.step, value))
        self.hyperparameters[name] = value

    def rewind(self):
        self.told.append((self.step, "rewind"))
        super().rewind()

    def standing(self):
        return self.n


def led(orders, *, world_size=3, timeout=60.0, **options):
    """Start ranks under way in a thread; their mailbox, their words, and what each leaves."""
    boxes, words, left = [Mailbox() for _ in range(world_size)], [], []

    def program(comm):
        job = Counting(comm, **options)
        if comm.rank == 0:
            words.append(comm.home)
            ready.set()
        return Steering(comm, ["by"]).lead(job), job.step, job.told

    def run():
        left.extend(run_ranks(program, world_size=world_size, timeout=timeout, mailboxes=boxes))

    ready = threading.Event()
    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(SOON)
    for order in orders:
        boxes[0].put(order)
    return boxes[0], words[0], thread, left


def heard(words, enough):
    """Words until one is enough; the last of them."""
    while True:
        assert words.wait(SOON)
        for word in words.take():
            if enough(word):
                return word


def held_after(words, serial):
    return heard(words, lambda word: isinstance(word, Held) and word.serial >= serial)


def test_ranks_begin_held_and_do_the_steps_that_are_granted():
    box, words, thread, left = led([])
    assert held_after(words, 0) == Held(0, 0, 10**9, None)
    box.put(Order(1, "go", 3))
    assert held_after(words, 1) == Held(1, 3, 10**9 - 3, None)
    box.put(Order(2, "set", 5.0, "by"))
    assert held_after(words, 2) == Held(2, 3, None, None)  # it stands where it stood
    box.put(Order(3, "go", 1))
    assert held_after(words, 3).standing == 10**9 - 8
    box.put(Order(4, "rewind"))
    assert held_after(words, 4) == Held(4, 0, 10**9, None)
    box.put(Order(5, "stop"))
    thread.join(SOON)
    assert left == [(10**9, 0, [(3, 5.0), (4, "rewind")])] * 3
    assert words.take() == []


def test_orders_reach_all_ranks_between_the_same_steps_while_they_run():
    box, words, thread, left = led([Order(1, "go", math.inf)])
    at = heard(words, lambda word: isinstance(word, At))
    box.put(Order(2, "set", 2.0, "by"))
    box.put(Order(3, "set", 3.0, "by"))
    box.put(Order(4, "hold"))
    held = held_after(words, 4)
    assert held.step > at.step > 0
    box.put(Order(5, "stop"))
    thread.join(SOON)
    assert left[0] == left[1] == left[2]
    n, n_steps, told = left[0]
    assert (n, n_steps) == (held.standing, held.step)
    assert [value for _, value in told] == [2.0, 3.0]
    assert told[0][0] < told[1][0]  # one order a step


def test_a_stop_ends_ranks_that_run_after_their_step():
    box, words, thread, left = led([Order(1, "go", math.inf)])
    heard(words, lambda word: isinstance(word, At))
    box.put(Order(2, "stop"))
    thread.join(SOON)
    assert len(set(map(str, left))) == 1


def test_a_rewind_holds_ranks_that_run():
    box, words, thread, _ = led([Order(1, "go", math.inf)])
    heard(words, lambda word: isinstance(word, At))
    box.put(Order(2, "rewind"))
    assert held_after(words, 2)[1:] == (0, 10**9, None)
    box.put(Order(3, "stop"))
    thread.join(SOON)


def test_trouble_holds_all_and_is_told_once_with_the_state():
    box, words, thread, left = led([Order(1, "go", math.inf)], n=5, troubled_at=3)
    word = heard(words, lambda word: isinstance(word, Held) and word.trouble is not None)
    assert isinstance(word.trouble, RunError)
    assert (word.step, word.standing, word.trouble.problem) == (2, 3, "the countdown stalled at 3")
    box.put(Order(2, "rewind"))
    assert held_after(words, 2).trouble is None
    box.put(Order(3, "go", math.inf))
    thread.join(SOON)
    assert left == [(0, 5, [(2, "rewind")])] * 3


def test_held_ranks_outlast_their_patience():
    box, words, thread, _ = led([], timeout=1.5)
    held_after(words, 0)
    thread.join(4.0)
    assert thread.is_alive()
    box.put(Order(1, "go", 2))
    assert held_after(words, 1).step == 2
    box.put(Order(2, "stop"))
    thread.join(SOON)
    assert not thread.is_alive()


@pytest.mark.parametrize("world_size", [1, 4])
def test_what_ranks_agree_on_is_summed_whether_an_order_comes_with_it_or_not(world_size):
    import numpy as np

    def program(comm):
        steering = Steering(comm, [])
        if comm.rank == 0:
            comm.mailbox.put(Order(1, "hold"))
        return [steering.agree(np.array([comm.rank, 0.5])).tolist() for _ in range(2)]

    total = [world_size * (world_size - 1) / 2, world_size / 2]
    assert run_ranks(program, world_size=world_size) == [[total, total]] * world_size
