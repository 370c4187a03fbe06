"""Maximum and minimum instead of a sum, wherever a plan adds: the same bits as one ufunc after the other."""

import numpy as np
import pytest

from lab.parallel import COLLECTIVES, run_ranks
from lab.parallel.ranks.execute import COMBINES, execute, waves_of
from lab.parallel.transport.wire import Call

REDUCING = sorted(key for key in COLLECTIVES if key[0] == "all_reduce")


@pytest.mark.parametrize("size", [0, 3, 50, 5000, 300_000])
@pytest.mark.parametrize("combine", sorted(COMBINES))
@pytest.mark.parametrize("key", REDUCING, ids="-".join)
def test_what_a_plan_adds_is_combined_as_asked(key, combine, size):
    def program(comm):
        flat = np.random.default_rng(comm.rank).integers(-9, 9, size).astype(np.float32)
        execute(comm.links, Call(0, combine, ""), flat, waves_of(COLLECTIVES[key], comm.rank, 3, 3, 0), combine=combine)
        return flat

    parts = [np.random.default_rng(rank).integers(-9, 9, size).astype(np.float32) for rank in range(3)]
    want = COMBINES[combine].reduce(parts)
    for got in run_ranks(program, world_size=3):
        np.testing.assert_array_equal(got, want)


def test_the_plan_of_a_group_names_the_ranks_of_the_launch():
    waves = waves_of(COLLECTIVES["all_reduce", "ring"], 1, 3, 3, 0, (2, 5, 7))
    assert {hop.peer for wave in waves.waves for hop, _ in wave.sends} == {7}
    assert {hop.peer for wave in waves.waves for hop in wave.receives} == {2}
