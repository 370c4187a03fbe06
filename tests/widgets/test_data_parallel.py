"""DataParallelView: the figure of each phase is what the replicas of a real training told."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import fields

import pytest

from lab.events import ChunkMoved, RankFinished, RankLost, RankStarted, ReplicaAdvanced, StepFinished
from tests.widgets.golden_ranks import as_rank, in_batches, told, trained
from widgets import DataParallelView, Player
from widgets.fold import Stretch
from widgets.pictures.tree import tree_of
from widgets.views.data_parallel.replicas import KEPT, PHASES, Replicas

WORLDS = [1, 2, 3, 4, 8]


@pytest.fixture(scope="module")
def of_four():
    return trained(4)


def stops(view):
    return [int(p) for p in view.stop_positions(view.recording)]


def sentences(view):
    return [view.sentence_at(p) for p in stops(view)]


def row(scene, name):
    """The boxes of a row by rank."""
    return {int(n.id.removeprefix(name)): n for n in scene.nodes if n.id.removeprefix(name).isdigit()}


def advanced(rank, step, phase, *, loss=1.0, total=2.0, checksum=0xABC, n=4):
    k = PHASES.index(phase)
    norm = (math.nan, 1.0 + rank, total, 9.0)[k]
    return rank, ReplicaAdvanced(
        step, phase, 10 * rank, 10 * rank + 10, 10 * n, loss if k else math.nan, norm, checksum if k == 3 else 0, 5.0
    )


def steps(first, last, ranks=range(4), **more):
    return [advanced(r, s, p, **more) for s in range(first, last + 1) for p in PHASES for r in ranks]


def started(n=4, generation=1):
    return [(rank, RankStarted(generation, n, f"tcp://{rank}", 1)) for rank in range(n)]


def plain(value):
    """A state as text: the order of what came does not count, and a nan is as good as another."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {plain(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, Replicas):
        return ", ".join(f"{f.name}={plain(getattr(value, f.name))}" for f in fields(value))
    return repr(sorted(value)) if isinstance(value, frozenset) else repr(value)


# --- a real training ---


@pytest.mark.parametrize("n", WORLDS)
def test_each_phase_of_each_step_is_a_stop_and_can_be_drawn(n):
    view = DataParallelView(trained(n))
    at = stops(view)
    assert len(at) == 5 * 4
    assert [line.split(":")[0] for line in sentences(view)] == [f"Step {s}" for s in range(1, 6) for _ in PHASES]
    assert all(tree_of(view.picture_at(p))["nodes"] for p in at)
    assert all(len(row(view.picture_at(p), "shard")) == n for p in at)


def test_the_phases_of_a_step_on_four_replicas(of_four):
    view = DataParallelView(of_four)
    shard, gradient, reduced, updated = (view.picture_at(p) for p in stops(view)[:4])
    assert [n.label for n in row(shard, "shard").values()] == ["0–2", "3–5", "6–7", "8–9"]
    assert [n.sublabel for n in row(shard, "shard").values()] == ["3 examples"] * 2 + ["2 examples"] * 2
    assert {n.state for n in row(shard, "shard").values()} == {"active"}
    assert {n.label for n in row(shard, "gradient").values()} == {""}
    of_step_1 = [e for e in of_four if isinstance(e, ReplicaAdvanced) and (e.phase, e.step) == ("gradient", 1)]
    told_losses = {e.rank: e.loss for e in of_step_1}
    for rank, box in row(gradient, "model").items():
        assert box.sublabel == f"loss {told_losses[rank]:.3g}"
    assert {n.label for n in row(gradient, "sum").values()} == {""}
    assert len({n.label for n in row(reduced, "sum").values()}) == 1
    assert {n.state for n in row(reduced, "sum").values()} == {"done"}
    assert [n.label for n in row(reduced, "reduce").values()] == ["6 hops"] * 4
    assert len({n.label for n in row(updated, "update").values()}) == 1
    assert {n.state for n in row(updated, "update").values()} == {"done"}
    assert {m.text for m in updated.marks} >= {"norm equal on all", "CRC equal on all"}


def test_arrows_run_where_something_moves(of_four):
    view = DataParallelView(of_four)
    lively = [
        {e.id.rstrip("0123").rstrip(">").rstrip("0123") for e in view.picture_at(p).edges if e.state == "forward"}
        for p in stops(view)[:4]
    ]
    assert lively == [{"shard>model"}, {"model>gradient"}, {"gradient>reduce", "reduce>sum", "ring"}, {"sum>update"}]


def test_an_empty_shard_has_no_loss_and_is_no_trouble(of_four):
    view = DataParallelView(of_four)
    last = view.picture_at(stops(view)[-1])
    assert [n.label for n in row(last, "shard").values()] == ["0", "1", "none", "none"]
    assert [n.sublabel for n in row(last, "model").values()][2:] == ["no loss", "no loss"]
    assert not [n for n in last.nodes if n.state == "trouble"]
    assert "rank 3: no examples, no loss, gradient of norm 0.0" in view.text_at(stops(view)[-1])


def test_the_words_say_what_each_replica_did(of_four):
    view = DataParallelView(of_four)
    first, gradient, total, update = sentences(view)[:4]
    assert first == "Step 1: all 4 replicas took their examples, 2 to 3 each."
    assert gradient.startswith("Step 1: all 4 replicas found a gradient of their own, losses ")
    assert total.startswith("Step 1: all 4 replicas have the same sum, norm ")
    assert update.startswith("Step 1: all 4 replicas made the same update, checksum ")
    line = view.text_at(stops(view)[3]).splitlines()[1]
    assert line.startswith("rank 0: examples 0 to 2, loss ")
    for word in ("6 hops received", "sum of norm", "shard", "gradient", "all-reduce", "update", " ms"):
        assert word in line


def test_one_replica_has_nobody_to_add_to():
    view = DataParallelView(trained(1))
    assert [line.partition(": ")[2].partition(",")[0] for line in sentences(view)[:4]] == [
        "the one replica took all 10 examples.", "the one replica found its gradient",
        "nothing to add: the gradient is the sum", "the one replica made its update",
    ]  # fmt: skip


def test_without_chunks_the_all_reduce_says_that_they_were_not_recorded():
    view = DataParallelView(told(steps(1, 1)))
    last = view.picture_at(stops(view)[-1])
    assert {n.sublabel for n in row(last, "reduce").values()} == {"not recorded"}
    assert "were not recorded" in last.caption


# --- in whatever order it was told ---


@pytest.mark.parametrize("seed", range(10))
def test_ranks_may_come_in_any_order(seed):
    events = steps(1, 3)
    rng, queues = random.Random(seed), [[e for e in events if e[0] == rank] for rank in range(4)]
    mixed = []
    while any(queues):
        mixed.append(rng.choice([queue for queue in queues if queue]).pop(0))
    assert sentences(DataParallelView(told(mixed))) == sentences(DataParallelView(told(events)))


def test_a_batch_of_a_rank_may_be_many_steps_ahead():
    events = steps(1, 20)
    wanted = DataParallelView(told(events))
    for order in itertools.islice(itertools.permutations(range(4)), 6):
        view = DataParallelView(told(in_batches(events, order)))
        assert sentences(view) == sentences(wanted)
        assert len(stops(view)) == 80


@pytest.mark.parametrize("cut", [0, 7, 40, 150])
def test_folding_many_equals_folding_one_by_one(of_four, cut):
    early = [(e.rank, e) for e in of_four if isinstance(e, (ReplicaAdvanced, ChunkMoved))]
    late = [*started(3, 7), *steps(5, 6, range(3)), *steps(4, 5, range(3))]
    rec = told([*early, (0, RankLost(1, 2, "w", "gone")), *late])
    view = DataParallelView(rec)
    one = view.start()
    for k, event in enumerate(rec, 1):
        one = view.fold(one, event)
        if k % 13 == 0 or k == len(rec):
            at = min(cut, k)
            many = view.fold_many(view.fold_many(view.start(), Stretch(rec, 0, at)), Stretch(rec, at, k))
            assert plain(many) == plain(one)


def test_a_long_training_keeps_the_latest_steps_only():
    rec = told(steps(1, 300, range(2)))
    view = DataParallelView(rec)
    one = view.start()
    for event in rec:
        one = view.fold(one, event)
    assert len(one.steps) == KEPT
    assert plain(view.fold_many(view.start(), Stretch(rec, 0, len(rec)))) == plain(one)
    assert view.sentence_at(len(rec)).startswith("Step 300: both replicas made the same update")
    assert len(stops(view)) == 1200


def test_folding_never_changes_the_state_it_extends(of_four):
    view = DataParallelView(of_four)
    first, second = (list(itertools.accumulate(of_four, view.fold, initial=view.start())) for _ in range(2))
    assert [plain(state) for state in first] == [plain(state) for state in second]


# --- counting again ---


def test_a_run_that_is_set_back_counts_again():
    rec = told(steps(1, 3) + steps(2, 3))
    view = DataParallelView(rec)
    assert [line.split(":")[0] for line in sentences(view)[::4]] == ["Step 1", "Step 2", "Step 3", "Step 2", "Step 3"]


def test_another_launch_begins_anew_with_its_own_world():
    rec = told(started(4, 1) + steps(1, 2) + started(2, 2) + steps(1, 2, range(2), n=2))
    view = DataParallelView(rec)
    assert len(stops(view)) == 16
    assert len(row(view.picture_at(len(rec)), "shard")) == 2
    assert len(row(view.picture_at(stops(view)[7]), "shard")) == 4


# --- not all of it ---


def test_who_is_late_is_named_and_marked():
    ahead = [advanced(r, 2, p) for p in PHASES[:2] for r in (0, 1, 3)]
    rec = told([*started(), *steps(1, 1), *ahead, advanced(2, 2, "shard")])
    view = DataParallelView(rec)
    assert sentences(view)[-1] == "Step 2: 3 of 4 replicas found a gradient; rank 2 is not so far."
    last = view.picture_at(len(rec))
    assert (row(last, "gradient")[2].state, row(last, "gradient")[1].state) == ("waiting", "active")


def test_only_one_rank_so_far():
    rec = told([*started(), advanced(1, 1, "shard")])
    view = DataParallelView(rec)
    assert sentences(view) == ["Step 1: 1 of 4 replicas took their examples; ranks 0, 2 and 3 are not so far."]
    assert [n.label for n in row(view.picture_at(len(rec)), "shard").values()] == ["", "10–19", "", ""]


def test_a_lost_rank_is_drawn_as_gone_and_the_others_do_not_wait_for_it():
    rec = told([
        *started(), *steps(1, 1), *[advanced(r, 2, "shard") for r in range(4)],
        *[advanced(r, 2, "gradient") for r in (0, 1, 3)], (0, RankLost(1, 2, "tcp://2", "the worker left")),
        *[(r, RankFinished(1, "failed", 1.0, "LostRankError: rank 2 died")) for r in (0, 1, 3)],
    ])  # fmt: skip
    view = DataParallelView(rec)
    last = view.picture_at(len(rec))
    assert (row(last, "model")[2].state, row(last, "model")[2].sublabel) == ("trouble", "lost")
    assert 2 not in row(last, "gradient")
    assert 2 in row(last, "shard")
    assert sentences(view)[-1] == "Rank 2 was lost (the worker left), in step 2."
    assert not [n for n in last.nodes if n.state == "waiting"]


def test_a_program_that_fails_is_named():
    rec = told([*started(), *steps(1, 1), (1, RankFinished(1, "failed", 1.0, "ValueError: no"))])
    view = DataParallelView(rec)
    assert view.sentence_at(len(rec)) == "Rank 1 failed in step 1: ValueError: no."
    assert row(view.picture_at(len(rec)), "model")[1].sublabel == "failed"


@pytest.mark.parametrize(
    ("phase", "changed", "sentence", "name"),
    [
        ("reduced", {"total": 2.5}, "the all-reduce left different sums: rank 2 has another", "sum"),
        ("updated", {"checksum": 7}, "the replicas are not alike any more: rank 2 holds other parameters", "update"),
    ],
)
def test_replicas_that_part_are_marked(phase, changed, sentence, name):
    before = PHASES[: PHASES.index(phase)]
    events = [advanced(r, 1, p) for p in before for r in range(4)]
    rec = told(events + [advanced(r, 1, phase, **(changed if r == 2 else {})) for r in range(4)])
    view = DataParallelView(rec)
    last = view.picture_at(len(rec))
    assert sentences(view)[-1] == f"Step 1: {sentence}."
    assert {r: n.state == "trouble" for r, n in row(last, name).items()} == {0: False, 1: False, 2: True, 3: False}
    assert "they differ" in {m.text for m in last.marks if m.kind == "warning"}
    assert "here they do not" in last.caption


def test_a_loss_that_is_not_finite_is_trouble():
    rec = told([advanced(r, 1, p, loss=math.inf if r else 1.0) for p in PHASES[:2] for r in range(2)])
    last = DataParallelView(rec).picture_at(len(rec))
    assert [n.state for n in row(last, "model").values()] == ["active", "trouble"]


@pytest.mark.parametrize(
    ("rec", "why"),
    [
        (told([]), "then DataParallelView(run)."),
        (told(started()), "then DataParallelView(run). What was recorded is shown by ClusterView."),
        (told([*started(), (0, StepFinished(1, 0, 1.0, 4, 1.0))]), 'DataParallel(..., told="steps") keeps none.'),
    ],
)
def test_an_empty_picture_says_why(rec, why):
    view = DataParallelView(rec)
    assert view.picture_at(len(rec)).nodes == ()
    assert view.text_at(len(rec)).endswith(why)
    assert why in Player(view).text


def test_more_replicas_than_fit_are_counted():
    rec = told(steps(1, 1, range(20), n=20))
    scene = DataParallelView(rec).picture_at(len(rec))
    assert len(row(scene, "shard")) == 16
    assert "4 more replicas are not drawn" in scene.caption


def test_while_it_trains_the_picture_follows():
    import lab
    from lab.events import bus

    with lab.record() as rec:
        view = DataParallelView(rec)
        assert view.text_at(0) == "No replica yet: each will show the examples that it takes."
        for rank, event in steps(1, 2):
            with as_rank(rank):
                bus.emit(event)
            assert view.sentence_at(len(rec)).startswith("Step ")
    assert view.sentence_at(len(rec)).startswith("Step 2: all 4 replicas made the same update")


@pytest.mark.parametrize("n", [2, 8])
def test_no_box_changes_its_place_while_it_plays(n):
    view = DataParallelView(trained(n))
    places = [{m.id: m[1:5] for m in view.picture_at(p).nodes} for p in stops(view)]
    assert all(place == places[0] for place in places)


def test_ranks_that_were_ended_by_the_failure_of_another_say_so():
    ended = [(0, RankFinished(1, "stopped", 1.0, "MeshError: rank 1 raised"))]
    rec = told([*started(), *steps(1, 1), (1, RankFinished(1, "failed", 1.0, "ValueError: no")), *ended])
    view = DataParallelView(rec)
    assert view.stop_positions(rec)[-1] == len(rec)
    assert view.sentence_at(len(rec)) == "Rank 1 failed in step 1: ValueError: no. Rank 0 was ended with it."
    models = row(view.picture_at(len(rec)), "model")
    assert [models[0].sublabel, models[1].sublabel] == ["was ended", "failed"]
