"""Groups of ranks: a Comm of some, several at once, apart from each other and from the whole."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import ArgumentError, MeshError
from lab.events import ChunkMoved, CollectiveFinished, CollectiveStarted, record
from lab.parallel import run_ranks
from lab.parallel.transport.wire import COUNT_BITS


def test_rows_and_columns_of_a_grid_sum_by_themselves_and_at_once():
    def program(comm):
        row, column = comm.split(comm.rank // 3, "row"), comm.split(comm.rank % 3, "column")
        mine = np.array([10.0**comm.rank])
        sums = [part.all_reduce_(mine.copy())[0] for part in (row, column, comm)]
        return row.rank, column.rank, *sums

    got = run_ranks(program, world_size=6)
    for rank, (in_row, in_column, row, column, whole) in enumerate(got):
        first = rank // 3 * 3
        assert (in_row, in_column) == (rank % 3, rank // 3)
        assert row == sum(10.0**r for r in range(first, first + 3))
        assert column == 10.0 ** (rank % 3) + 10.0 ** (rank % 3 + 3)
        assert whole == 111111.0


@settings(deadline=None, max_examples=40)
@given(colours=st.lists(st.one_of(st.none(), st.integers(-3, 3)), min_size=1, max_size=6))
def test_split_puts_equal_colours_together_in_the_order_of_ranks(colours):
    def program(comm):
        part = comm.split(colours[comm.rank])
        return None if part is None else (part.ranks, part.rank, part.all_gather(np.array(comm.rank)).tolist())

    for rank, got in enumerate(run_ranks(program, world_size=len(colours))):
        if colours[rank] is None:
            assert got is None
        else:
            members = tuple(r for r, colour in enumerate(colours) if colour == colours[rank])
            assert got == (members, members.index(rank), list(members))


def test_groups_that_overlap_are_not_confused_whatever_each_does_first():
    def program(comm):
        low = comm.group([0, 1]) if comm.rank < 2 else None
        high = comm.group([1, 2]) if comm.rank else None
        total = 0
        for n in range(20):
            for part in (low, high):
                if part is not None:
                    total += int(part.all_reduce_(np.array([n + comm.rank]))[0])
            if n % 7 == 0:
                comm.barrier()
        return total

    pairs = {pair: sum(2 * n + sum(pair) for n in range(20)) for pair in ((0, 1), (1, 2))}
    assert run_ranks(program, world_size=3) == [pairs[0, 1], pairs[0, 1] + pairs[1, 2], pairs[1, 2]]


def test_a_group_of_a_group_has_numbers_of_the_launch():
    def program(comm):
        if comm.rank == 0:
            return None
        upper = comm.group([1, 2, 3])
        if upper.rank == 1:
            return None
        ends = upper.group([0, 2])
        return ends.ranks, ends.name, ends.rank, int(ends.all_reduce_(np.array([comm.rank]))[0])

    assert run_ranks(program, world_size=4) == [
        None, ((1, 3), "of ranks 1, 3", 0, 4), None, ((1, 3), "of ranks 1, 3", 1, 4),
    ]  # fmt: skip


def test_every_call_of_a_group_works_with_roots_and_peers_of_its_own_numbers():
    def program(comm):
        if comm.rank == 1:
            return None
        part = comm.group([0, 2, 3])
        if part.rank == 0:
            part.send(np.array([42]), 2)
        got = part.recv(np.zeros(1, int), 0)[0] if part.rank == 2 else 0
        part.barrier()
        mine = np.arange(3) + 10 * part.rank
        gathered = part.gather(mine, root=1)
        return (
            int(got), part.broadcast_(mine.copy(), root=2).tolist(), part.reduce_(mine.copy(), root=1).tolist(),
            part.reduce_scatter(mine).tolist(), part.all_to_all(mine).tolist(),
            part.scatter(gathered.reshape(-1) if gathered is not None else None, root=1).tolist(),
            part.start("all_reduce_", mine.copy()).wait().tolist(), part.agree(np.array([1])).tolist(),
        )  # fmt: skip

    zero, _, two, three = run_ranks(program, world_size=4)
    assert zero == (0, [20, 21, 22], [0, 1, 2], [30], [0, 10, 20], [0, 1, 2], [30, 33, 36], [3])
    assert two == (0, [20, 21, 22], [30, 33, 36], [33], [1, 11, 21], [10, 11, 12], [30, 33, 36], [3])
    assert three == (42, [20, 21, 22], [20, 21, 22], [36], [2, 12, 22], [20, 21, 22], [30, 33, 36], [3])


def test_events_tell_the_group_and_ranks_of_the_launch():
    def program(comm):
        part = comm.split(comm.rank % 2, name="parity")
        part.all_reduce_(np.ones(4))
        comm.all_reduce_(np.ones(4))

    with record() as seen:
        run_ranks(program, world_size=4)
    started = [e for e in seen if isinstance(e, CollectiveStarted)]
    ours = [e for e in started if e.group == "parity"]
    assert sorted(e.rank for e in ours) == [0, 1, 2, 3]
    assert {e.world_size for e in ours} == {2}
    assert len({e.collective for e in ours}) == 2  # the two groups are apart, and apart from all
    assert min(e.collective for e in ours) >= 1 << COUNT_BITS
    assert {e.collective for e in started if not e.group} == {1}  # 0 was the split
    moved = [e for e in seen if isinstance(e, ChunkMoved) and e.group]
    assert {(e.src, e.dst) for e in moved} == {(0, 2), (2, 0), (1, 3), (3, 1)}
    assert all(e.dst == e.rank for e in moved)
    assert sum(e.group == "parity" for e in seen if isinstance(e, CollectiveFinished)) == 4


@pytest.mark.parametrize(
    ("ranks", "told"),
    [
        ([1, 2], "rank 0 makes a group that it is not in\ngiven: ranks=[1, 2]\nhint:  only members call group"),
        ([0, 0, 1], "rank 0 is in the group twice\ngiven: ranks=[0, 0, 1]\nhint:  group([0, 1])"),
        ([1, 0], "the ranks of a group ascend\ngiven: ranks=[1, 0]\nhint:  group([0, 1]); the first is rank 0"),
        ([0, 3], "made of ranks that are there\ngiven: ranks=[0, 3], world_size=3\nhint:  ranks are 0 to"),
        ([], "made of ranks that are there\ngiven: ranks=[]"),
        (2, "a group is made of ranks\ngiven: ranks=2\nhint:  group([0, 2])"),
        ("01", "a group is made of ranks\ngiven: ranks='01'"),
        ([0, 1.5], "the rank is a whole number\ngiven: rank=1.5"),
    ],
)
def test_groups_that_cannot_be_are_refused_in_three_lines(ranks, told):
    def program(comm):
        if comm.rank == 0:
            with pytest.raises(ArgumentError, match=re.escape(told)):
                comm.group(ranks)

    run_ranks(program, world_size=3)


def test_the_whole_and_a_group_of_all_are_different_callers():
    def program(comm):
        everybody = comm.group(range(comm.world_size), "everybody")
        (comm if comm.rank else everybody).all_reduce_(np.ones(2))

    with pytest.raises(MeshError) as told:
        run_ranks(program, world_size=2, timeout=20.0)
    assert "all_reduce ring float64[2] in group everybody at test_groups.py" in told.value.given


def test_a_message_of_a_group_is_not_taken_for_one_of_the_whole():
    def program(comm):
        pair = comm.group([0, 1])
        if comm.rank == 0:
            pair.send(np.ones(1), 1)
        else:
            comm.recv(np.ones(1), 0)

    with pytest.raises(MeshError, match="make different calls") as told:
        run_ranks(program, world_size=2, timeout=20.0)
    assert "float64[1] in group of ranks 0, 1 at" in told.value.given


def test_a_member_that_ends_without_the_groups_call_is_named():
    def program(comm):
        pair = comm.group([0, 1])
        if comm.rank == 0:
            pair.barrier()

    with pytest.raises(MeshError) as told:
        run_ranks(program, world_size=2, timeout=20.0)
    assert "barrier in group of ranks 0, 1 at" in told.value.given


def test_the_same_members_twice_are_two_groups():
    def program(comm):
        one, two = comm.group([0, 1]), comm.group([0, 1])
        return one.name, two.name, [float(part.all_reduce_(np.ones(1))[0]) for part in (two, one)]

    assert run_ranks(program, world_size=2) == [("of ranks 0, 1", "of ranks 0, 1 (2)", [2.0, 2.0])] * 2


def test_a_late_word_of_an_old_call_is_no_error_however_many_calls_another_group_has_made():
    """Who only sends may be ahead of a peer by more collectives than it remembers."""

    def program(comm):
        whole, pair = comm.group([0, 1, 2]), comm.group([0, 2]) if comm.rank != 1 else None
        if pair is None:
            while not comm.mailbox.take(str):  # until the others are far ahead
                comm.mailbox.wait(1.0)
            return whole.broadcast_(np.zeros(1)).tolist()
        got = whole.broadcast_(np.full(1, 1.0 - comm.rank))
        for _ in range(300):
            pair.all_reduce_(np.ones(1))
        if comm.rank == 0:
            boxes[1].put("go")
        return got.tolist()

    from lab.parallel.ranks.mailbox import Mailbox

    boxes = [Mailbox() for _ in range(3)]
    assert run_ranks(program, world_size=3, mailboxes=boxes) == [[1.0]] * 3
