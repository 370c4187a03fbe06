"""Schedules: each micro-batch once each way, the text-book numbers, text there and back, deadlocks named."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import ScheduleError
from lab.parallel import SCHEDULES, Action, check_schedule, format_table, parse_table, table_of
from lab.parallel.paper.check_schedule import needs

SIZES = (st.integers(1, 8), st.integers(1, 12))


@given(st.sampled_from(sorted(SCHEDULES)), *SIZES)
def test_every_schedule_does_each_micro_batch_once_and_never_hangs(name, n_ranks, n_micro):
    report = check_schedule(name, n_ranks, n_micro)
    done = [slot.action for slot in report.slots]
    assert sorted(done) == sorted(Action(k, s, m) for k in "FB" for s in range(n_ranks) for m in range(n_micro))


@given(st.sampled_from(sorted(SCHEDULES)), *SIZES)
def test_no_action_starts_before_what_it_needs_or_while_its_rank_works(name, n_ranks, n_micro):
    report = check_schedule(name, n_ranks, n_micro, forward=1.5, backward=2.25)
    stop = {slot.action: slot.stop for slot in report.slots}
    for slot in report.slots:
        assert all(stop[need] <= slot.start for need in needs(slot.action, n_ranks))
    for rank in range(n_ranks):
        own = [slot for slot in report.slots if slot.rank == rank]
        assert [slot.action for slot in own] == list(report.order[rank])
        assert all(a.stop <= b.start for a, b in pairwise(own))


@pytest.mark.parametrize(("name", "peak"), [("naive", (1, 1, 1, 1)), ("gpipe", (8, 8, 8, 8)), ("1f1b", (4, 3, 2, 1))])
def test_the_text_book_numbers_of_live_activations(name, peak):
    assert check_schedule(name, 4, 8).peak_live == peak


@given(st.sampled_from(["gpipe", "1f1b"]), *SIZES)
def test_the_bubble_is_that_of_the_text_book(name, n_ranks, n_micro):
    report = check_schedule(name, n_ranks, n_micro)  # a forward takes 1, a backward 2
    assert report.makespan == 3 * (n_micro + n_ranks - 1)
    assert report.bubble == report.ideal_bubble == (n_ranks - 1) / (n_micro + n_ranks - 1)


@given(*SIZES)
def test_one_micro_batch_at_a_time_keeps_one_rank_busy(n_ranks, n_micro):
    report = check_schedule("naive", n_ranks, n_micro)
    assert report.makespan == 3 * n_micro * n_ranks
    assert report.bubble == (n_ranks - 1) / n_ranks


@given(*SIZES)
def test_1f1b_never_holds_more_than_its_distance_to_the_end(n_ranks, n_micro):
    peak = check_schedule("1f1b", n_ranks, n_micro).peak_live
    assert peak == tuple(min(n_ranks - rank, n_micro) for rank in range(n_ranks))


@pytest.mark.parametrize("name", ["naive", "gpipe"])
def test_a_rank_may_hold_several_stages(name):
    report = check_schedule(name, 2, 4, chunks_per_rank=3)
    assert len(report.slots) == 2 * 6 * 4
    assert parse_table(format_table(report.order)) == report.order
    if name == "gpipe":
        assert report.bubble == report.ideal_bubble == 1 / 13


def test_1f1b_refuses_several_stages_a_rank():
    with pytest.raises(ScheduleError, match="1f1b gives each rank one stage\ngiven: chunks_per_rank=2"):
        check_schedule("1f1b", 2, 4, chunks_per_rank=2)


def test_1f1b_written_out():
    assert format_table(table_of("1f1b", 4, 5)) == (
        "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4\n"
        "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4\n"
        "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4\n"
        "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4"
    )


ACTIONS = st.builds(Action, st.sampled_from("FB"), st.integers(0, 20), st.integers(0, 99))


@given(st.lists(st.lists(ACTIONS, max_size=8).map(tuple), min_size=1, max_size=6).map(tuple))
def test_text_and_table_are_the_same_thing(table):
    text = format_table(table)
    assert parse_table(text) == table
    assert format_table(parse_table(text)) == text


def test_a_table_may_be_indented_and_spaced():
    table = parse_table("""
        F0 F1  B0 B1

        F0 B0  F1 B1
    """)
    assert format_table(table) == "F0 F1 B0 B1\nF0 B0 F1 B1"
    assert check_schedule(table, 2, 2).peak_live == (2, 1)


@pytest.mark.parametrize("word", ["X0", "F", "0", "F-1", "f0", "F0,", "F1.5", "0F0B0", "٣F0"])
def test_a_word_that_is_no_action_is_named(word):
    with pytest.raises(ScheduleError) as caught:
        parse_table(f"F0 B0\nF0 {word}")
    assert caught.value.problem == f"rank 1: {word!r} is no action"
    assert caught.value.given == "in line 2"


WRONG = {
    "ranks that wait for each other": ("F0 B0 F1 B1\nF0 F1 B0 B1",
        """the schedule cannot make progress
given: rank 0 waits at 0B0 for 1B0, rank 1 waits at 1F1 for 0F1
hint:  one of the two ranks has to do another action first"""),
    "a backward before its forward": ("F0 F1 B0 B1\nB0 F0 F1 B1",
        """the schedule cannot make progress
given: rank 1 waits at 1B0 for 1F0, which comes later on the same rank
hint:  a backward was placed before the forward that it needs"""),
    "a circle further away": ("F0 F1 B0 B1\nF0 F1 B0 B1\nF0 B0 F1 B1\nF0 F1 B0 B1",
        """the schedule cannot make progress
given: rank 2 waits at 2B0 for 3B0, rank 3 waits at 3F1 for 2F1"""),
    "a micro-batch that never comes back": ("F0 F1 B0 B1\nF0 F1 B0",
        "rank 1: runs the backward of micro-batch 1 never, expected once\ngiven: 1F0 1F1 1B0"),
    "one that is done twice": ("F0 F1 F1 B0 B1\nF0 F1 B0 B1",
        "rank 0: runs the forward of micro-batch 1 twice, expected once"),
    "one that does not exist": ("F0 F1 F2 B0 B1\nF0 F1 B0 B1",
        """rank 0, action 2: forward of micro-batch 2 on stage 0, which does not exist
given: 2 micro-batches, 2 stages
hint:  both are counted from 0"""),
    "a stage of another rank": ("F0 F1 B0 B1\n0F0 F1 B0 B1",
        "rank 1, action 0: stage 0 lives on rank 0\ngiven: 0F0"),
    "a rank that rests": ("F0 F1 B0 B1\n-",
        "rank 1: runs the forward of micro-batch 0 never, expected once\ngiven: no action"),
    "a rank too few": ("F0 F1 B0 B1", "the schedule is for another number of ranks\ngiven: 1 line, 2 ranks"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_schedule_is_told_what_is_wrong_first(name):
    text, said = WRONG[name]
    table = parse_table(text)
    with pytest.raises(ScheduleError) as caught:
        check_schedule(table, 4 if len(table) == 4 else 2, 2)
    assert str(caught.value).startswith(said)
    assert str(caught.value).count("\n") == 2


def test_a_learners_function_is_checked_like_ours_and_need_not_know_of_several_stages_a_rank():
    def mine(rank, n_ranks, n_micro):
        yield from (Action("F", rank, m) for m in range(n_micro))
        yield from (Action("B", rank, m) for m in reversed(range(n_micro)))

    assert check_schedule(mine, 3, 4).peak_live == (4, 4, 4)


def endless(rank, n_ranks, n_micro, *, chunks_per_rank=1):
    while True:
        yield Action("F", rank, 0)


def test_functions_that_yield_no_actions_or_no_end_are_refused():
    with pytest.raises(ScheduleError, match="the schedule gave no actions\ngiven: None for rank 0"):
        check_schedule(lambda rank, n_ranks, n_micro, *, chunks_per_rank=1: None, 2, 2)
    with pytest.raises(ScheduleError, match="a schedule is made of actions\ngiven: rank 0 yields 'F0'"):
        check_schedule(lambda rank, n_ranks, n_micro, *, chunks_per_rank=1: ["F0"], 2, 2)
    with pytest.raises(ScheduleError, match="runs the forward of micro-batch 0 5 times, expected once"):
        check_schedule(endless, 2, 2)
    with pytest.raises(ScheduleError, match="there is no kind 'W'"):
        check_schedule([[Action("W", 0, 0)]], 1, 1)


@pytest.mark.parametrize("name", ["n_ranks", "n_micro", "chunks_per_rank"])
def test_a_pipeline_of_nothing_is_refused(name):
    sizes = {"n_ranks": 1, "n_micro": 1, "chunks_per_rank": 1, name: 0}
    with pytest.raises(ScheduleError, match=f"{name} is a whole number of at least 1\ngiven: {name}=0"):
        check_schedule("gpipe", **sizes)


def test_a_schedule_that_would_take_too_long_to_prove_is_refused_at_once():
    with pytest.raises(ScheduleError, match="so many actions takes too long to prove\ngiven: 320,000,000 actions: "):
        check_schedule("1f1b", 40_000, 4_000)
    with pytest.raises(ScheduleError, match="at most 100,000"):
        table_of("gpipe", 10**30, 1)


def test_an_unknown_schedule_is_answered_by_the_known_ones():
    with pytest.raises(ScheduleError, match="there is no such schedule\ngiven: 'zb'\nhint:  one of naive, gpipe, 1f1b"):
        check_schedule("zb", 2, 2)


def test_a_report_reads_as_text():
    assert str(check_schedule("gpipe", 2, 2)) == (
        "F0 F1 B0 B1\nF0 F1 B0 B1\nmakespan 9, bubble 33.3% (text book 33.3%), live activations 2, 2"
    )
