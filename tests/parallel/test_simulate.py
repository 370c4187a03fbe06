"""Simulated times: closed forms of text-books, two ways to the same times, networks, cores, crossings."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import ArgumentError, PlanError
from lab.parallel import COLLECTIVES, LINKS, Link, Network, Recv, Send, chunks_of, crossing, hierarchical, predict
from lab.parallel.paper.messages import ALIKE, _turned, messages_of
from lab.parallel.paper.passing import Events, in_waves
from lab.parallel.paper.simulate import Timeline
from tests.parallel.cuts import cuts

A, B = 1e-5, 1e-9
LINK = Link(A, 1 / B)
N = 64 * 3 * 5 * 7 * 256


def levels(n):
    return (n - 1).bit_length()


CLOSED = {
    ("all_reduce", "ring"): lambda n: 2 * (n - 1) * (A + B * N / n),
    ("all_reduce", "tree"): lambda n: 2 * levels(n) * (A + B * N),
    ("all_reduce", "doubling"): lambda n: levels(n) * (A + B * N),
    ("all_reduce", "halving"): lambda n: 2 * levels(n) * A + 2 * (n - 1) / n * B * N,
    ("all_reduce", "direct"): lambda n: 2 * (n - 1) * (A + B * N / n),
    ("all_reduce", "naive"): lambda n: 2 * (n - 1) * (A + B * N),
    ("broadcast", "flat"): lambda n: (n - 1) * (A + B * N),
    ("broadcast", "tree"): lambda n: levels(n) * (A + B * N),
    ("broadcast", "pipelined"): lambda n: (5 * n - 2) * (A + B * N / (4 * n)),
    ("reduce_scatter", "halving"): lambda n: levels(n) * A + (n - 1) / n * B * N,
    ("barrier", "dissemination"): lambda n: levels(n) * (A + B * N),
    ("all_to_all", "direct"): lambda n: (n - 1) * (A + B * N / n),
}


@pytest.mark.parametrize("key", CLOSED, ids="-".join)
def test_the_simulation_takes_the_time_of_the_closed_form(key):
    for n in (2, 4, 8, 16, 64):
        assert predict(key, n, N, LINK).total_s == pytest.approx(CLOSED[key](n))


@pytest.mark.parametrize("n", [3, 5, 6, 7, 60])
@pytest.mark.parametrize("key", [("all_reduce", "ring"), ("all_reduce", "tree"), ("broadcast", "flat")], ids="-".join)
def test_the_closed_form_holds_for_worlds_that_are_no_power_of_two(key, n):
    assert predict(key, n, N, LINK).total_s == pytest.approx(CLOSED[key](n))


def test_two_trees_take_log_n_steps_and_the_bytes_of_a_ring():
    n, depth, pieces = 64, 6, 24
    time = predict(("all_reduce", "double_tree"), n, 64 * N, LINK).total_s
    assert 2 * B * 64 * N < time < 1.1 * 2 * B * 64 * N * (pieces + 2 * depth) / pieces
    assert predict(("all_reduce", "double_tree"), 4 * n, 0, LINK).total_s < 2 * (4 * n - 1) * A / 2


@pytest.mark.parametrize("n", [3, 4, 6, 8, 64])
def test_a_gathering_that_doubles_pays_a_second_latency_where_blocks_go_around_the_end(n):
    time, least = predict(("all_gather", "bruck"), n, N, LINK).total_s, (n - 1) / n * B * N
    assert levels(n) * A + least < time + 1e-12
    assert time < 2 * levels(n) * A + least + 1e-12


def test_groups_with_slow_links_between_them_are_faster_than_a_ring_over_all():
    near, far = Link(1e-6, 100e9), Link(20e-6, 1e9)
    racks = Network(lambda src, dst: near if src // 8 == dst // 8 else far)
    grouped, ring = (predict(plan, 32, 1 << 20, racks) for plan in (hierarchical(8), ("all_reduce", "ring")))
    assert grouped.total_s < ring.total_s / 2
    across = [n_bytes for (src, dst), n_bytes in grouped.bytes_by_link.items() if src // 8 != dst // 8]
    assert max(across) < max(ring.bytes_by_link.values()) / 7


def both_ways(key, n, seed=0):
    """The same plan by columns and by events, with messages of random lengths if there is a seed."""
    plan = COLLECTIVES[key]
    messages = messages_of(plan, n, chunks_of(plan, n))
    rng = np.random.default_rng(seed)
    moving = rng.integers(1, 9 if seed else 2, len(messages)).astype(float)  # whole numbers: both are exact
    adding = np.where(messages.reduces, 1.0, 0.0)
    return in_waves(messages, n, moving, adding), Events(messages, n, moving, adding, n).run()


@pytest.mark.parametrize("key", COLLECTIVES, ids="-".join)
def test_columns_and_events_give_the_same_times(key):
    for n in (1, 2, 3, 4, 7, 8):
        fast, slow = both_ways(key, n)
        assert slow is not None
        if fast is not None:
            np.testing.assert_array_equal(fast, slow)
    assert fast is not None or key in {("all_reduce", "double_tree"), ("all_gather", "bruck"), ("reduce", "tree"),
                                       ("gather", "tree")}  # fmt: skip


@given(st.sampled_from(sorted(COLLECTIVES)), st.integers(2, 8), st.integers(1, 1000))
def test_columns_and_events_give_the_same_times_on_links_of_any_speed(key, n, seed):
    fast, slow = both_ways(key, n, seed)
    if fast is not None:
        np.testing.assert_array_equal(fast, slow)


@given(st.sampled_from(sorted(COLLECTIVES)), st.integers(1, 8), st.integers(0, 5000))
def test_nobody_sends_or_receives_two_messages_at_once_and_a_step_waits_for_the_one_before(key, n, n_bytes):
    (n_chunks,) = cuts(key[0], n, [chunks_of(COLLECTIVES[key], n)])
    time = predict(key, n, n_bytes, Network(LINK, reduce_bytes_per_s=2e9), n_chunks=n_chunks)
    for side in ("src", "dst"):
        for rank in range(n):
            own = [event for event in time.events if getattr(event, side) == rank]
            assert all(a.stop_s <= b.start_s + 1e-12 for a, b in pairwise(own))
    assert time.total_s == max((event.done_s for event in time.events), default=0.0) == max(time.finish_s)
    for event in time.events:
        assert event.stop_s - event.start_s == pytest.approx(LINK.seconds(event.n_bytes))
        assert event.done_s >= event.stop_s + event.reduces * event.n_bytes / 2e9 - 1e-12
        earlier = [e.done_s for e in time.events if e.dst == event.src and e.step < event.step]
        assert event.start_s >= max(earlier, default=0.0) - 1e-12


@pytest.mark.parametrize("plan", ALIKE, ids=lambda plan: plan.__name__)
def test_what_one_rank_says_of_a_plan_whose_ranks_are_alike_is_true_of_all(plan):
    for n in (1, 2, 3, 5, 8, 16, 33, 64):
        for n_chunks in (n, 3 * n):
            turned = _turned(plan, n, n_chunks)
            read = np.concatenate([table(plan, rank, n, n_chunks) for rank in range(n)])
            np.testing.assert_array_equal(turned, read)


def table(plan, rank, n, n_chunks):
    from lab.parallel.paper.messages import _rows

    return np.array(list(_rows(plan, rank, n, n_chunks)), np.int32).reshape(-1, 8)


def test_ranks_that_share_cores_add_one_after_the_other():
    n_bytes, speed = 1000, 1e9
    everywhere = Network(Link(0, math.inf), reduce_bytes_per_s=speed)
    assert predict(("all_reduce", "doubling"), 8, n_bytes, everywhere).total_s == pytest.approx(3 * n_bytes / speed)
    two = Network(Link(0, math.inf), n_cores=2, reduce_bytes_per_s=speed)
    assert predict(("all_reduce", "doubling"), 8, n_bytes, two).total_s == pytest.approx(3 * 4 * n_bytes / speed)
    free = Network(Link(1e-6, math.inf), n_cores=1)
    assert predict(("all_reduce", "doubling"), 8, n_bytes, free).total_s == pytest.approx(3e-6)


def test_a_root_that_adds_is_busy_while_the_next_buffer_comes():
    network = Network(Link(0, 1e9), reduce_bytes_per_s=1e9)
    time = predict(("reduce", "flat"), 4, 1000, network)
    assert time.total_s == pytest.approx(4e-6)  # three arrive one after the other, and the last one is added
    assert [event.start_s for event in time.events] == pytest.approx([0, 1e-6, 2e-6])


@pytest.mark.parametrize("n", [8, 16, 64])
def test_ring_and_tree_cross_where_their_formulas_do(n):
    formula = A * (n - 1 - levels(n)) / (B * (levels(n) - (n - 1) / n))
    found = crossing(("all_reduce", "tree"), ("all_reduce", "ring"), n, LINK)
    assert found == pytest.approx(formula, rel=2 * n / formula)  # chunks are whole bytes
    below, above = (predict(("all_reduce", a), n, int(found * 0.9), LINK).total_s for a in ("tree", "ring"))
    assert below < above
    below, above = (predict(("all_reduce", a), n, int(found * 1.1), LINK).total_s for a in ("tree", "ring"))
    assert below > above


def test_plans_of_which_one_is_always_faster_do_not_cross():
    assert crossing(("all_reduce", "halving"), ("all_reduce", "naive"), 8, LINK) is None
    assert crossing(("all_reduce", "ring"), ("all_reduce", "ring"), 8, LINK) is None


def test_bytes_by_link_are_those_of_the_checker():
    from lab.parallel import check_plan

    time = predict(("all_reduce", "ring"), 4, 40, LINK)
    assert time.bytes_by_link == check_plan("all_reduce", "ring", 4).bytes_by_link(40, 1)


def test_a_world_of_one_takes_no_time():
    time = predict(("all_reduce", "ring"), 1, 1000, LINK)
    assert (time.total_s, time.events, time.bytes_by_link, time.finish_s) == (0.0, (), {}, (0.0,))


@pytest.mark.parametrize("algorithm", ["ring", "tree", "halving", "doubling", "hierarchical"])
def test_a_thousand_ranks_are_simulated(algorithm):
    time = predict(("all_reduce", algorithm), 1024, 1 << 20, "nvlink")
    assert len(time.finish_s) == 1024
    assert 0 < time.total_s < 1


def test_a_simulation_says_that_it_is_one():
    assert repr(predict(("all_reduce", "ring"), 4, 4000, LINK)).startswith("simulation of all_reduce ring on 4 ranks")
    assert isinstance(predict(("all_reduce", "ring"), 4, 4000, LINK), Timeline)


@pytest.mark.parametrize("name", LINKS)
def test_every_preset_has_a_source_and_makes_a_network(name):
    assert LINKS[name].source
    assert Network(name).between(0, 1) is LINKS[name]


def mine(rank, world_size, n_chunks):
    """Rank 0 and rank 1 meet in steps of different numbers."""
    if rank == 0:
        yield ()
        yield (Send(1, 0, 1),)
    if rank == 1:
        yield (Recv(0, 0, 1, reduce=False),)


def test_a_plan_of_ones_own_is_simulated_even_if_its_steps_do_not_pair_up():
    assert predict(mine, 2, 2000, LINK).total_s == pytest.approx(A + B * 1000)
    assert repr(predict(mine, 2, 2000, LINK)).startswith("simulation of mine on 2 ranks")


def hangs(rank, world_size, n_chunks):
    yield (Recv(1 - rank, 0, 1, reduce=True),)
    yield (Send(1 - rank, 0, 1),)


def loses(rank, world_size, n_chunks):
    yield (Send(1 - rank, 0, 1),)


@pytest.mark.parametrize(("wrong", "error", "said"), [
    (lambda: predict(hangs, 2, 8, LINK), PlanError, "rank 0, step 0: waits for chunk 0 from rank 1, which waits"),
    (lambda: predict(loses, 2, 8, LINK), PlanError, "rank 0, step 0: sent chunk 0 to rank 1, which never takes it"),
    (lambda: predict(("all_reduce", "rign"), 2, 8, LINK), PlanError, "there is no plan 'rign'"),
    (lambda: predict(("all_reduce",), 2, 8, LINK), PlanError, "a plan is named by its operation and its algorithm"),
    (lambda: predict("ring", 2, 8, LINK), PlanError, "there is no plan 'ring' for ''"),
    (lambda: predict(("all_reduce", "ring"), 1025, 8, LINK), PlanError, "a world of so many ranks takes too long"),
    (lambda: predict(("all_reduce", "ring"), 2, 2.5, LINK), ArgumentError, "n_bytes is a whole number"),
    (lambda: predict(("all_reduce", "ring"), 2, 8, "token ring"), ArgumentError, "a network has links"),
    (lambda: predict(("all_reduce", "ring"), 3, 8, {(0, 1): LINK}), ArgumentError, "there is no link from rank 1 to"),
    (lambda: Link(-1, 1), ArgumentError, "a latency is 0 seconds or more"),
    (lambda: Link(math.nan, 1), ArgumentError, "a latency is 0 seconds or more"),
    (lambda: Link("a", 1), ArgumentError, "latency_s is a number"),
    (lambda: Link(0, 0), ArgumentError, "a link moves bytes"),
    (lambda: Network(LINK, n_cores=0), ArgumentError, "n_cores is a whole number of at least 1"),
    (lambda: Network(LINK, reduce_bytes_per_s=0), ArgumentError, "a core adds some bytes in a second"),
])  # fmt: skip
def test_what_cannot_be_simulated_is_told_in_three_lines(wrong, error, said):
    with pytest.raises(error) as caught:
        wrong()
    assert caught.value.problem.startswith(said)
    assert str(caught.value).count("\n") == 2
