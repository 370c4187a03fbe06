"""Leases on paper: all workers at once, first come first served, nothing held by the dead."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.parallel.cluster.lease import ASKS, RETURNS, Leases
from lab.parallel.cluster.versions import differences, versions


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def leases():
    made = Leases(clock=Clock())
    for name in "abcd":
        made.ready(name)
    return made


def test_nobody_gets_a_part_of_what_it_wants(leases):
    assert leases.ask("one", 3).workers == ("a", "b", "c")
    assert leases.ask("two", 2).state == "queued"
    assert set(leases.holders.values()) == {"one"}


def test_who_asked_first_is_served_first_also_if_it_wants_more(leases):
    leases.ask("one", 3)
    assert leases.ask("two", 4).reason == "4 ranks wanted, 1 of 4 workers free, others held by one"
    behind = "1 rank wanted, 1 of 4 workers free, others held by one, 1 run before this one"
    assert leases.ask("three", 1).reason == behind
    for worker in "abc":
        leases.free("one", worker)
    assert leases.ask("three", 1).state == "queued"
    assert leases.ask("two", 4).state == "granted"


def test_who_does_not_ask_any_more_blocks_nobody(leases):
    leases.ask("one", 3)
    leases.ask("dead", 4)
    leases.clock.now += ASKS + 1
    assert leases.ask("three", 1).workers == ("d",)


def test_more_than_there_are_is_refused_and_none_too(leases):
    assert leases.ask("one", 5).reason == "5 ranks wanted, 4 workers"
    assert leases.ask("one", 0).state == "refused"
    assert Leases().ask("one", None).reason == "0 ranks wanted, 0 workers"
    assert leases.ask("one", None).workers == ("a", "b", "c", "d")


def test_a_lost_worker_that_somebody_restarts_is_waited_for_but_not_for_ever(leases):
    leases.left("a", returns=True)
    assert leases.ask("one", 4).reason == "4 ranks wanted, 3 of 4 workers free, 1 lost and not yet back"
    leases.arrived("e")
    assert leases.ask("one", 4).state == "queued"  # it is there and not ready
    leases.ready("e")
    assert leases.ask("one", 4).workers == ("b", "c", "d", "e")
    leases.left("b", returns=True)
    leases.clock.now += RETURNS + 1
    assert leases.ask("two", 4).reason == "4 ranks wanted, 3 workers"


def test_a_worker_that_was_sent_away_does_not_come_back(leases):
    leases.left("a", returns=False)
    assert leases.ask("one", 4).state == "refused"


def test_who_has_started_so_many_waits_for_all_of_them_however_they_were_lost(leases):
    leases.left("a", returns=False)
    queued = leases.ask("one", 4, n_started=4)
    assert queued.state == "queued"
    assert queued.reason == "4 ranks wanted, 3 of 4 workers free, 1 lost and not yet back"
    assert leases.ask("two", 5, n_started=4).reason == "5 ranks wanted, 4 workers"
    leases.ready("e")
    assert leases.ask("one", 4, n_started=4).workers == ("b", "c", "d", "e")


def test_a_worker_whose_rank_cannot_be_ended_is_named_and_nobody_waits_for_it(leases):
    leases.ask("one", 3)
    leases.stays("one", "b")
    stays = "worker b still runs a rank that was to end; it has no nanny: kill it or restart it"
    refused = leases.ask("two", 4)
    assert (refused.state, refused.n_now) == ("refused", 1)
    assert refused.reason == f"4 ranks wanted, 1 of 4 workers free, others held by one, {stays}"
    assert leases.ask("two", 3).state == "queued"  # two others will end
    leases.free("one", "b")  # it has ended after all
    assert leases.ask("two", 4).reason == "4 ranks wanted, 2 of 4 workers free, others held by one"
    leases.stays("one", "b")  # it does not hold it any more
    leases.stays("one", "c")
    leases.left("c", returns=False)
    assert not leases.stuck


def test_without_a_number_those_count_that_are_there_now(leases):
    leases.left("a", returns=True)
    assert leases.ask("one", None).workers == ("b", "c", "d")
    for worker in "bcd":
        leases.left(worker, returns=True)
    assert leases.ask("two", None).reason.endswith("0 of 4 workers free, 4 lost and not yet back")


def test_it_is_told_how_many_would_be_granted_now(leases):
    leases.ask("one", 1)
    assert leases.ask("two", 4).n_now == 3
    assert leases.ask("three", 5).n_now == 0  # after two


def test_who_holds_the_workers_is_named_once_each_and_only_while_it_does(leases):
    leases.ask("id-1", 2, name="run-5")
    leases.ask("id-2", 1, name="a launch")
    assert leases.ask("three", 4).reason.endswith("1 of 4 workers free, others held by run-5 and a launch")
    for worker in "ab":
        leases.free("id-1", worker)
    assert leases.ask("three", 4).reason.endswith("3 of 4 workers free, others held by a launch")


def test_without_a_number_a_worker_that_cannot_be_ended_is_not_counted(leases):
    leases.ask("stuck", 1)
    leases.stays("stuck", "a")
    assert leases.ask("next", None).workers == ("b", "c", "d")


def test_a_spare_serves_nobody_but_who_has_lost_a_worker(leases):
    leases.n_spares = 1
    assert leases.ask("one", None).workers == ("a", "b", "c")
    assert leases.ask("two", 1).reason == "1 rank wanted, 0 of 3 workers free, others held by one"
    refused = leases.ask("three", 4)
    assert (refused.state, refused.reason) == ("refused", "4 ranks wanted, 3 workers and 1 spare")
    assert leases.standing_by() == ["d"]
    leases.left("b", returns=True)
    assert leases.standing_by() == ["d"]
    leases.free("one", "a")
    leases.free("one", "c")
    assert leases.ask("one again", 3, keeps=["a", "", "c"]).workers == ("a", "d", "c")
    assert leases.standing_by() == []
    leases.ready("e")  # who comes back is the next spare
    assert leases.ask("two", 1).state == "queued"
    assert leases.standing_by() == ["e"]


def test_a_launch_that_comes_after_a_loss_gets_the_spare_at_once(leases):
    leases.n_spares = 1
    leases.left("a", returns=True)
    assert leases.ask("one", None, n_started=3).workers == ("b", "c", "d")
    leases.left("d", returns=True)
    again = leases.ask("one again", 3, keeps=["b", "c", ""])
    assert again.reason == "3 ranks wanted, 0 of 3 workers free, others held by one, 2 lost and not yet back"


def test_a_worker_whose_memory_is_nearly_full_is_not_given_away_and_named(leases):
    leases.paused = {"b"}
    queued = leases.ask("one", 4)
    assert (queued.state, queued.n_now) == ("queued", 3)
    assert queued.reason == "4 ranks wanted, 3 of 4 workers free, 1 paused: its memory is nearly full"
    leases.paused = set()
    assert leases.ask("one", 4).state == "granted"
    leases.paused = {"b"}  # who works goes on
    assert "paused" not in leases.ask("two", 1).reason


def test_only_the_holder_frees(leases):
    leases.ask("one", 1)
    leases.free("two", "a")
    assert leases.holders == {"a": "one"}


@given(st.lists(st.tuples(st.sampled_from(["ask", "end", "kill", "ready"]), st.integers(0, 4), st.integers(1, 4))))
def test_no_worker_ever_works_for_two(steps):
    leases, granted = Leases(clock=Clock()), {}
    for what, name, number in steps:
        if what == "ready":
            leases.ready(f"w{name}")
        elif what == "kill":
            leases.left(f"w{name}", returns=False)
            granted = {run: [w for w in workers if w != f"w{name}"] for run, workers in granted.items()}
        elif what == "end":
            for worker in granted.pop(name, []):
                leases.free(str(name), worker)
        elif name not in granted and (answer := leases.ask(str(name), number)).state == "granted":
            assert len(answer.workers) == number
            granted[name] = list(answer.workers)
        held = [worker for workers in granted.values() for worker in workers]
        assert sorted(held) == sorted(leases.holders)
        assert len(held) == len(set(held))


def test_versions_that_differ_are_on_one_line():
    ours = versions()
    assert differences(ours, {"tcp://a": ours}) == ""
    theirs = ours | {"numpy": "1.0", "numba": "none"}
    assert differences(ours, {"tcp://a": ours, "tcp://b": theirs}).split("; ") == [
        f"numpy {ours['numpy']} here, 1.0 on tcp://b",
        f"numba {ours['numba']} here, none on tcp://b",
    ]
    assert differences(ours, {"tcp://a": {}}).count("; ") == len(ours) - 1
