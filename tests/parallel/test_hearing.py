"""Words of ranks come home while they run: all of them, in order, arrays too."""

import numpy as np
import pytest

from lab.parallel import run_ranks
from tests.parallel import programs

pytestmark = pytest.mark.slow
SOON = 100.0


def talks(comm, n):
    for i in range(n):
        comm.home.put((i, np.full(1000, i)))
    assert comm.mailbox.wait(SOON)


def test_every_word_of_every_rank_comes_once_and_in_order(cluster):
    running = cluster.start(talks, 300, world_size=2)
    heard = {0: [], 1: []}
    while sum(map(len, heard.values())) < 600:
        assert not running.wait(0)
        for rank, word in running.hear(SOON):
            heard[rank].append(word)
    for words in heard.values():
        assert [i for i, _ in words] == list(range(300))
        assert all((array == i).all() for i, array in words)
    assert running.hear(0.05) == []
    for rank in range(2):
        running.say("enough", rank)
    running.result()
    assert running.hear(SOON) == []


def test_who_listens_to_a_launch_that_ends_or_fails_is_not_kept_waiting(cluster):
    running = cluster.start(programs.raises, 1, ValueError)
    while not running.wait(0):
        assert running.hear(SOON) == []
    with pytest.raises(Exception, match="raised on rank 1"):
        running.result()


def test_ranks_that_are_threads_tell_it_to_a_mailbox():
    def program(comm):
        comm.home.put(comm.rank)
        return comm.home.take()

    assert run_ranks(program, world_size=2) == [[0], [1]]
