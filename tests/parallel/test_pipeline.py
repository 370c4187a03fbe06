"""Pipelines that run: the same numbers as one process, the live activations that the checker promised, real spans."""

import weakref

import numpy as np
import pytest

from lab.autograd import tensor
from lab.config import settings
from lab.data import Batch, Loader, as_dataset
from lab.errors import ArgumentError
from lab.events import ActionFinished, ActionStarted, ActivationMoved, Evaluated, record
from lab.nn import Linear, Module, ReLU, Sequential, Tanh, cross_entropy, mlp
from lab.optim import Adam
from lab.parallel import SCHEDULES, Action, Pipeline, check_schedule, parse_table, run_ranks
from lab.parallel.pipeline.joining import Joining
from lab.parallel.pipeline.pacing import Paced, device_for
from lab.parallel.pipeline.pipeline_rank import PipelineRank
from lab.parallel.pipeline.stages import micro_batches, split
from lab.training.evaluate import loss_of
from lab.training.trainer import Training
from tests.parallel.pipelines import assert_spans_follow, spans, train_in_threads


def network(n_stages=4, dtype="float32"):
    with settings(dtype=dtype):
        return mlp(*[6] * n_stages, 3, activation=Tanh, rng=0)


def batch_of(n, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    return Batch(rng.normal(size=(n, 6)).astype(dtype), rng.integers(0, 3, n))


def program(comm, stages, table, n_micro, batches, paced=None):
    rank = PipelineRank(comm, stages, cross_entropy, table, n_micro, device_for(comm, paced))
    losses = [rank.step(batch) for batch in batches]
    assert rank.n_live == 0
    return losses


def run_steps(model, n_stages, order, n_micro, batches, *, n_ranks=None, paced=None):
    """Losses of the batches; the gradients of all of them are added up in the model."""
    n_ranks = n_ranks or n_stages
    table = check_schedule(order, n_ranks, n_micro, chunks_per_rank=n_stages // n_ranks).order
    found = run_ranks(program, split(model, n_stages), table, n_micro, batches, paced, world_size=n_ranks)
    return [sum(losses) for losses in zip(*found, strict=True)]


def one_process(model, batch, n_micro, order=None):
    """Micro-batches through the whole model, one after another; the loss is added up in the same order."""
    losses = {}
    for m in order or range(n_micro):
        rows = micro_batches(len(batch.inputs), n_micro)[m]
        if share := (rows.stop - rows.start) / len(batch.inputs):
            _, loss = loss_of(model, cross_entropy, Batch(*(a[rows] for a in batch)))
            losses[m] = share * loss.item()
            loss.backward(share)
    return sum(losses[m] for m in sorted(losses))


def gradients(model):
    return [p.grad.numpy() for p in model.parameters()]


def peak_live(rec):
    rows = rec.columns(ActionFinished)
    return tuple(int(rows["n_live"][rows["rank"] == rank].max()) for rank in sorted(set(rows["rank"])))


# --- the numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", sorted(SCHEDULES))
@pytest.mark.parametrize(("n_stages", "n_micro", "n_examples"), [(4, 8, 32), (4, 5, 23), (2, 3, 10), (3, 1, 7)])
def test_gradients_and_loss_are_those_of_one_process_bit_for_bit(order, n_stages, n_micro, n_examples):
    piped, alone = network(), network()
    batches = [batch_of(n_examples, seed=seed) for seed in range(2)]
    losses = run_steps(piped, n_stages, order, n_micro, batches)
    assert losses == [one_process(alone, batch, n_micro) for batch in batches]
    assert [g.tobytes() for g in gradients(piped)] == [g.tobytes() for g in gradients(alone)]


@pytest.mark.parametrize("order", sorted(SCHEDULES))
def test_in_float64_they_are_those_of_the_whole_batch(order):
    piped, alone, batch = network(dtype="float64"), network(dtype="float64"), batch_of(23, np.float64)
    [loss] = run_steps(piped, 4, order, 5, [batch])
    _, whole = loss_of(alone, cross_entropy, batch)
    whole.backward()
    assert loss == pytest.approx(whole.item(), rel=1e-12, abs=0)
    for mine, theirs in zip(gradients(piped), gradients(alone), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-14)


def test_gradients_are_added_in_the_order_of_the_schedule():
    def backwards(rank, n_ranks, n_micro, *, chunks_per_rank=1):
        yield from (Action("F", rank, m) for m in range(n_micro))
        yield from (Action("B", rank, m) for m in reversed(range(n_micro)))

    piped, alone, other, batch = network(), network(), network(), batch_of(24)
    run_steps(piped, 4, backwards, 8, [batch])
    one_process(alone, batch, 8, order=range(7, -1, -1))
    one_process(other, batch, 8)
    bits = [[g.tobytes() for g in gradients(model)] for model in (piped, alone, other)]
    assert bits[0] == bits[1] != bits[2]


def test_a_table_of_ones_own_runs():
    piped, alone, batch = network(), network(), batch_of(9)
    [loss] = run_steps(piped, 2, parse_table("F0 F1 B1 B0 F2 B2\nF0 F1 B1 B0 F2 B2"), 3, [batch])
    assert loss == one_process(alone, batch, 3, order=[1, 0, 2])
    assert [g.tobytes() for g in gradients(piped)] == [g.tobytes() for g in gradients(alone)]


@pytest.mark.parametrize("order", ["naive", "gpipe"])
@pytest.mark.parametrize(("n_stages", "n_ranks"), [(4, 2), (3, 1), (1, 1)])
def test_a_rank_may_hold_several_stages_or_all(order, n_stages, n_ranks):
    piped, alone, batch = network(), network(), batch_of(11)
    [loss] = run_steps(piped, n_stages, order, 4, [batch], n_ranks=n_ranks)
    assert loss == one_process(alone, batch, 4)
    assert [g.tobytes() for g in gradients(piped)] == [g.tobytes() for g in gradients(alone)]


def test_micro_batches_without_examples_are_left_out_everywhere():
    piped, alone, batch = network(), network(), batch_of(3)
    with record(kinds=[ActionStarted]) as rec:
        [loss] = run_steps(piped, 4, "1f1b", 8, [batch])
    assert loss == one_process(alone, batch, 8)
    assert [g.tobytes() for g in gradients(piped)] == [g.tobytes() for g in gradients(alone)]
    assert len(rec) == 4 * 2 * 3


def test_stages_without_parameters_and_first_layers_that_learn_nothing_run():
    layers = [Tanh(), Linear(6, 5, rng=0), ReLU(), Linear(5, 3, rng=1)]
    model, batch = Sequential(*layers), batch_of(8)
    stages = split(model, 4)
    assert [len(stage.parameters()) for stage in stages] == [0, 2, 0, 2]
    [loss] = run_steps(model, 4, "1f1b", 4, [batch])
    piped = gradients(model)
    model.zero_grad()
    assert loss == one_process(model, batch, 4)
    assert [g.tobytes() for g in piped] == [g.tobytes() for g in gradients(model)]


def test_whole_numbers_between_stages_have_no_gradient():
    class Signs(Module):
        def forward(self, x):
            return (x > 0).astype("int64")

    class Look(Module):
        def __init__(self):
            self.table = Linear(6, 3, rng=0)

        def forward(self, x):
            return self.table(x.astype("float32"))

    model, batch = Sequential(Signs(), Look()), batch_of(6)
    [loss] = run_steps(model, 2, "gpipe", 2, [batch])
    piped = gradients(model)
    model.zero_grad()
    assert loss == one_process(model, batch, 2)
    assert [g.tobytes() for g in piped] == [g.tobytes() for g in gradients(model)]


def test_activations_of_any_shape_pass_and_may_differ_between_micro_batches():
    class Padded(Module):
        def forward(self, x):
            return (x * 2.0).reshape(x.shape[0], 1, 3, 2)[:, :, :, : 1 + x.shape[0] % 2]

    class Flat(Module):
        def forward(self, x):
            return x.sum(axis=(1, 3))

    model, batch = Sequential(Linear(6, 6, rng=0), Padded(), Flat()), batch_of(7)
    with record(kinds=[ActivationMoved]) as rec:
        [loss] = run_steps(model, 3, "1f1b", 2, [batch])
    assert loss == one_process(model, batch, 2) != 0
    moved = {(e.kind, e.src_stage, e.dst_stage, e.micro, e.n_bytes) for e in rec}
    assert moved == {
        ("F", 0, 1, 0, 4 * 6 * 4), ("F", 0, 1, 1, 3 * 6 * 4), ("F", 1, 2, 0, 4 * 3 * 4), ("F", 1, 2, 1, 3 * 6 * 4),
        ("B", 1, 0, 0, 4 * 6 * 4), ("B", 1, 0, 1, 3 * 6 * 4), ("B", 2, 1, 0, 4 * 3 * 4), ("B", 2, 1, 1, 3 * 6 * 4),
    }  # fmt: skip


# --- what happened, by the recording -----------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "peak"), [("naive", (1,) * 4), ("gpipe", (8,) * 4), ("1f1b", (4, 3, 2, 1))])
def test_live_activations_are_those_that_the_checker_promises(order, peak):
    with record() as rec:
        run_steps(network(), 4, order, 8, [batch_of(20)])
    assert peak_live(rec) == peak == check_schedule(order, 4, 8).peak_live
    rows = rec.columns(ActionFinished)
    assert [int(rows["n_live"][rows["rank"] == rank][-1]) for rank in range(4)] == [0] * 4


@pytest.mark.parametrize(("order", "peak"), [("naive", (1,) * 4), ("gpipe", (8,) * 4), ("1f1b", (4, 3, 2, 1))])
def test_so_many_activations_are_really_in_memory_and_no_more(order, peak):
    class Counting(Module):
        """Passes on, and knows how many of the arrays that it made are still there."""

        def __init__(self):
            self.alive, self.most = set(), 0

        def forward(self, x):
            made = x * 1.0
            number = len(self.alive) and max(self.alive) + 1
            self.alive.add(number)
            self.most = max(self.most, len(self.alive))
            weakref.finalize(made.value, self.alive.remove, number)
            return made

    counters = [Counting() for _ in range(4)]
    layers = [Sequential(counter, Linear(6, 6, rng=i)) for i, counter in enumerate(counters)]  # the product keeps it
    run_steps(Sequential(*layers), 4, order, 8, [batch_of(20)])
    assert tuple(counter.most for counter in counters) == peak
    assert [len(counter.alive) for counter in counters] == [0] * 4


@pytest.mark.parametrize("order", sorted(SCHEDULES))
def test_measured_spans_follow_the_schedule(order):
    with record() as rec:
        run_steps(network(), 4, order, 5, [batch_of(20)])
    found = spans(rec)
    assert len(found) == 2 * 4 * 5
    assert all(start <= end for start, end in found.values())
    assert_spans_follow(found, check_schedule(order, 4, 5), 4)
    assert not rec.columns(ActionFinished)["paced"].any()


@pytest.mark.parametrize("order", ["gpipe", "1f1b"])
def test_paced_spans_last_their_time_and_follow_the_schedule(order):
    with record() as rec:
        run_steps(network(), 4, order, 4, [batch_of(20)], paced=Paced(2, 4))
    found = spans(rec)
    assert_spans_follow(found, check_schedule(order, 4, 4), 4)
    assert all(end - start >= (2 if a.kind == "F" else 4) * 1_000_000 for a, (start, end) in found.items())
    assert rec.columns(ActionFinished)["paced"].all()
    assert rec.columns(ActionStarted)["paced"].all()


def test_each_action_starts_after_what_it_needs_has_come_and_is_told_once():
    with record() as rec:
        run_steps(network(), 3, "1f1b", 4, [batch_of(8)])
    seen = {"came": set(), "started": set(), "finished": set()}
    for e in rec:
        if isinstance(e, ActivationMoved):
            assert e.rank == e.dst_stage
            seen["came"].add((e.kind, e.dst_stage, e.micro))
        elif isinstance(e, ActionStarted | ActionFinished):
            one = (e.kind, e.stage, e.micro)
            assert e.rank == e.stage
            first = e.stage == (0 if e.kind == "F" else 2)
            assert first == (one not in seen["came"])
            into = seen["started" if isinstance(e, ActionStarted) else "finished"]
            assert one not in into
            into.add(one)
    assert seen["started"] == seen["finished"]
    assert len(seen["started"]) == 2 * 3 * 4


def test_a_whole_training_runs_in_threads_and_one_recording_holds_all_ranks():
    def training():
        model, data = network(), batch_of(20)
        loader, adam = Loader(data, 8, rng=0), Adam(model.parameters(), 0.01)
        return Training(model, loader, as_dataset(data), cross_entropy, adam, n_epochs=2, measure_every=0)

    piped, alone = training(), training()
    with record() as rec:
        train_in_threads(Pipeline(n_stages=4, n_micro=4), piped)
    assert (piped.step, piped.epoch) == (6, 2)
    assert [e.step for e in rec if isinstance(e, Evaluated)] == [0, 3, 6]
    assert peak_live(rec) == (4, 3, 2, 1)
    alone.begin("")
    while not alone.finished:
        alone.advance()
    assert piped.accuracy == alone.accuracy
    for mine, theirs in zip(piped.parameters, alone.parameters, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-7)
    piped.rewind()
    alone.rewind()
    assert piped.step == alone.step == 6


def test_a_state_on_several_ranks_is_put_together_in_the_layout_of_the_whole():
    def parameters():
        kinds = ["float64", "float32", "float32", "float64", "float32"]
        return [tensor(np.arange(i + 1).astype(kind), requires_grad=True) for i, kind in enumerate(kinds)]

    def learn(optimizer):
        for p in optimizer.parameters:
            p.grad = np.cos(p.numpy())
        optimizer.step()
        return optimizer.snapshot()

    def program(comm):
        mine = parameters()
        whole = Adam(mine, 0.1)
        owned = [[mine[4], mine[1]], [], [mine[2], mine[3], mine[0]]]
        return Joining(comm, whole, owned).gather(learn(whole.part(owned[comm.rank])))

    found, *others = run_ranks(program, world_size=3)
    expected = learn(Adam(parameters(), 0.1))
    assert others == [None, None]
    assert found.n_steps == expected.n_steps == 1
    assert [a.tobytes() for a in found.values] == [a.tobytes() for a in expected.values]
    assert [{n: a.tobytes() for n, a in each.items()} for each in found.slots] == [
        {n: a.tobytes() for n, a in each.items()} for each in expected.slots
    ]


# --- what goes wrong ---------------------------------------------------------------------------------------------


def test_a_stage_that_hands_on_no_tensor_is_told_where():
    class Pair(Module):
        def forward(self, x):
            return x, x

    with pytest.raises(ArgumentError, match=r"hands on one tensor\ngiven: a tuple from layer 1\nhint"):
        run_steps(Sequential(Linear(6, 6, rng=0), Pair(), Tanh()), 2, "1f1b", 2, [batch_of(4)])
