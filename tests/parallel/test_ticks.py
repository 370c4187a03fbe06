"""A pipeline is held before each tick of its schedule: all ranks before the same one, whoever rests in it."""

import threading
from time import perf_counter

import numpy as np
import pytest

from lab.data import Batch
from lab.errors import MeshError
from lab.events import ActionFinished, ActivationMoved, record
from lab.nn import Tanh, cross_entropy, mlp
from lab.parallel import SCHEDULES, check_schedule, run_ranks, table_of
from lab.parallel.paper.check_schedule import needs
from lab.parallel.paper.ticks import ticks_of
from lab.parallel.pipeline.pacing import Paced, device_for
from lab.parallel.pipeline.pipeline_rank import PipelineRank
from lab.parallel.pipeline.stages import split
from lab.parallel.ranks.hops import Allowed
from lab.parallel.ranks.mailbox import Mailbox
from lab.parallel.ranks.ticks import AtTick, Ticks
from tests.parallel.pipelines import assert_spans_follow, spans
from tests.parallel.trainings import SOON

# --- on paper


@pytest.mark.parametrize("n_micro", [1, 2, 5, 8])
@pytest.mark.parametrize(("n_ranks", "chunks"), [(1, 1), (2, 1), (3, 1), (4, 1), (2, 2)])
@pytest.mark.parametrize("schedule", sorted(SCHEDULES))
def test_in_a_tick_every_rank_that_has_what_it_needs_does_one_action(schedule, n_ranks, chunks, n_micro):
    if schedule == "1f1b" and chunks > 1:
        schedule = "naive"
    table = table_of(schedule, n_ranks, n_micro, chunks_per_rank=chunks)
    done, left = set(), [list(row) for row in table]
    for tick in ticks_of(table, n_micro, chunks_per_rank=chunks):
        ready = [row[0] if row and done.issuperset(needs(row[0], n_ranks * chunks)) else None for row in left]
        assert list(tick) == ready
        assert any(ready)
        done |= {action for action in tick if action}
        left = [row[1:] if action else row for row, action in zip(left, tick, strict=True)]
    assert left == [[]] * n_ranks


@pytest.mark.parametrize("schedule", sorted(SCHEDULES))
def test_micro_batches_without_examples_have_no_ticks(schedule):
    assert ticks_of(table_of(schedule, 3, 8), 2) == ticks_of(table_of(schedule, 3, 2), 2)


def test_the_ticks_of_1f1b_are_those_of_the_text_book():
    for p, m in ((2, 4), (4, 8)):
        assert len(ticks_of(table_of("1f1b", p, m), m)) == 2 * (m + p - 1)


def test_who_is_next_and_who_rests_is_said():
    ticks = ticks_of(table_of("gpipe", 4, 1), 1)
    assert AtTick(1, 0, 8, ticks[0], 0.0).words == "held before tick 1 of 8: next F0 on rank 0; ranks 1, 2, 3 rest"
    two = ticks_of(table_of("1f1b", 2, 2), 2)
    assert AtTick(1, 1, 6, two[1], 1.0).words == "held before tick 2 of 6: next F1 on rank 0, F0 on rank 1"
    chunks = ticks_of(table_of("naive", 2, 1, chunks_per_rank=2), 1, chunks_per_rank=2)
    assert AtTick(1, 2, 8, chunks[2], 2.0).words == "held before tick 3 of 8: next 2F0 on rank 0; rank 1 rests"


# --- ranks that are threads


class HeldRanks:
    """A pipeline of threads that is held; `n_allowed` ticks in all may begin."""

    def __init__(self, order, n_stages, n_micro, *, n_ranks=0, n_steps=1, n_examples=0, timeout=60.0, paced=None):
        self.n_ranks = n_ranks = n_ranks or n_stages
        self.table = check_schedule(order, n_ranks, n_micro, chunks_per_rank=n_stages // n_ranks).order
        self.model = mlp(*[6] * n_stages, 3, activation=Tanh, rng=0)
        self.boxes, self.homes, self.losses = [Mailbox() for _ in range(n_ranks)], {}, []
        rng, n = np.random.default_rng(0), n_examples or 4 * n_micro
        batch = Batch(rng.normal(size=(n, 6)).astype(np.float32), rng.integers(0, 3, n))
        begun, stages = threading.Barrier(n_ranks + 1), split(self.model, n_stages)

        def program(comm, hold):
            rank = PipelineRank(comm, stages, cross_entropy, self.table, n_micro, device_for(comm, paced))
            rank.ticks = Ticks(hold, comm) if hold else None
            self.homes[comm.rank] = comm.home
            begun.wait(SOON)
            return [rank.step(batch) for _ in range(n_steps)]

        def run(hold=1):
            self.losses = run_ranks(program, hold, world_size=n_ranks, mailboxes=self.boxes, timeout=timeout)

        self.thread = threading.Thread(target=run)
        self.thread.start()
        begun.wait(SOON)

    def allow(self, n, hold=1):
        self.boxes[0].put(Allowed(hold, n))

    def held(self):
        """Where they wait; no other rank than 0 says so."""
        assert self.homes[0].wait(SOON, AtTick)
        [word] = self.homes[0].take(AtTick)
        assert not any(home.take() for rank, home in self.homes.items() if rank)
        return word

    def end(self):
        self.thread.join(SOON)
        assert not self.thread.is_alive()
        return self.losses


CASES = [
    ("gpipe", 1, 2, 1), ("1f1b", 2, 3, 2), ("gpipe", 2, 3, 2), ("1f1b", 4, 2, 4), ("naive", 3, 2, 3),
    ("gpipe", 4, 2, 2),
]  # fmt: skip


@pytest.mark.parametrize(("order", "n_stages", "n_micro", "n_ranks"), CASES)
def test_after_each_tick_just_its_actions_are_done_and_their_messages_have_come(order, n_stages, n_micro, n_ranks):
    with record(kinds=[ActionFinished, ActivationMoved]) as rec:
        ranks = HeldRanks(order, n_stages, n_micro, n_ranks=n_ranks)
        ticks = ticks_of(ranks.table, n_micro, chunks_per_rank=n_stages // n_ranks)
        for n, tick in enumerate(ticks):
            word = ranks.held()
            assert (word.tick, word.n_ticks, word.next, word.n_allowed) == (n, len(ticks), tick, n)
            assert set(spans(rec)) == {action for done in ticks[:n] for action in done if action}
            wanted = {a for a in tick if a and a.stage != (0 if a.kind == "F" else n_stages - 1)}
            came = {(e.kind, e.dst_stage, e.micro) for e in rec if isinstance(e, ActivationMoved)}
            assert wanted <= came
            ranks.allow(n + 1)
        ranks.end()
    assert_spans_follow(spans(rec), check_schedule(ranks.table, n_ranks, n_micro, chunks_per_rank=n_stages // n_ranks),
                        n_stages)  # fmt: skip


@pytest.mark.parametrize("order", ["1f1b", "gpipe"])
def test_a_held_pipeline_has_the_bits_of_one_that_is_not(order):
    ranks = HeldRanks(order, 2, 3, n_steps=2)
    for n in range(2 * len(ticks_of(ranks.table, 3))):
        ranks.held()
        ranks.allow(n + 1)
    plain = HeldRanks(order, 2, 3, n_steps=2)
    plain.allow(np.inf)
    assert ranks.end() == plain.end()
    for a, b in zip(ranks.model.parameters(), plain.model.parameters(), strict=True):
        np.testing.assert_array_equal(a.grad.numpy(), b.grad.numpy())


def test_ticks_are_counted_over_steps_and_micro_batches_without_examples_are_none():
    ranks = HeldRanks("1f1b", 2, 8, n_steps=2, n_examples=2)
    assert ranks.held().n_ticks == 6
    ranks.allow(8)
    word = ranks.held()
    assert (word.tick, word.n_allowed) == (2, 8.0)
    ranks.allow(np.inf)
    ranks.end()


def test_several_ticks_at_once_and_then_all_others_need_no_further_agreement():
    ranks = HeldRanks("gpipe", 3, 4)
    ranks.held()
    ranks.allow(5)
    assert ranks.held().tick == 5
    ranks.allow(np.inf)
    ranks.end()
    assert ranks.homes[0].take() == []


def test_a_word_of_an_older_hold_allows_nothing():
    ranks = HeldRanks("gpipe", 2, 1)
    ranks.held()
    ranks.allow(np.inf, hold=0)
    ranks.allow(1)
    assert ranks.held().tick == 1
    ranks.allow(np.inf)
    ranks.end()


def test_held_ranks_outlast_their_patience():
    ranks = HeldRanks("1f1b", 3, 2, timeout=0.4)
    ranks.held()
    ranks.thread.join(1.5)
    assert ranks.thread.is_alive()
    ranks.allow(np.inf)
    assert len(ranks.end()) == 3


@pytest.mark.parametrize("paced", [None, Paced(2, 3)])
def test_time_in_which_ranks_are_held_is_not_in_their_spans(paced):
    begin, held = perf_counter(), 0.0
    with record(kinds=[ActionFinished]) as rec:
        ranks = HeldRanks("1f1b", 2, 2, paced=paced)
        for n in range(1, 7):
            ranks.held()
            since = perf_counter()
            ranks.thread.join(0.1)
            held += perf_counter() - since
            ranks.allow(n)
        ranks.end()
    times = [time for span in spans(rec).values() for time in span]
    assert (max(times) - min(times)) / 1e9 <= perf_counter() - begin - held
    assert_spans_follow(spans(rec), check_schedule("1f1b", 2, 2), 2)


def test_ranks_on_machines_with_clocks_of_their_own_each_count_from_their_own_begin():
    def program(comm):
        ticks = Ticks(1, comm)
        ticks._machine += comm.rank
        begin = perf_counter()
        ticks.begin([(None, None)] * 3)
        comm.mailbox.put(Allowed(1, 3))
        ticks.reach(3)
        return begin <= ticks.clock() / 1e9 <= perf_counter()

    assert run_ranks(program, world_size=2) == [True, True]


def test_a_group_that_ends_while_it_is_held_ends_all():
    def program(comm):
        ticks = Ticks(1, comm)
        ticks.begin([(None, None)])
        if comm.rank:
            comm.links.alarm.ring("stopped", "somebody pressed Stop")
        ticks.reach(1)

    with pytest.raises(MeshError):
        run_ranks(program, world_size=2, timeout=5.0)
