"""Local SGD on ranks: every=1 is data-parallel training, more steps between meetings send less, and nobody waits."""

import math

import numpy as np
import pytest

import lab
from lab.data import Dataset, Loader, digits
from lab.errors import ArgumentError, GradientError
from lab.events import ChunkMoved, CollectiveStarted, Evaluated, ReplicaMet, StepFinished, record
from lab.nn import BatchNorm1d, Dropout, Linear, Sequential, mlp
from lab.optim import SGD, Adam
from lab.parallel import LocalSGD, Outer, run_ranks
from lab.parallel.local.local_sgd import AVERAGED, LOCAL, train_locally
from lab.parallel.local.meetings import Rhythm, rhythm_of
from lab.parallel.local.outer import MEAN
from lab.parallel.ranks.mailbox import Mailbox
from lab.parallel.training.data_parallel import train_replica
from lab.parallel.training.packing import packed, unpacked
from lab.parallel.training.steering import Held, Order
from lab.training import evaluate
from lab.training.trainer import Training
from tests.parallel.trainings import network, parameters, some_digits

RULES = {
    "sgd": lambda p: SGD(p, 0.1),
    "momentum": lambda p: SGD(p, 0.05, momentum=0.9, weight_decay=1e-2),
    "nesterov": lambda p: SGD(p, 0.05, momentum=0.9, nesterov=True),
    "adam": lambda p: Adam(p, 2e-3),
    "clipped": lambda p: SGD(p, 0.1, clip_norm=0.1),
}


def job(rule="sgd", *, n=100, batch_size=50, epochs=3, model=None, loss=lab.cross_entropy, validation=None, **more):
    module = model or network("float64")
    data = some_digits(n, "float64") if isinstance(n, int) else n
    return Training(module, Loader(data, batch_size, rng=0), validation, loss, RULES[rule](module.parameters()),
                    n_epochs=epochs, measure_every=0, **more)  # fmt: skip


class Script:
    """In the place of a launcher: whenever the ranks are held, they are told what comes next."""

    def __init__(self, mailbox, orders):
        self.words, self._mailbox = [], mailbox
        self._orders = iter([Order(serial, *order) for serial, order in enumerate(orders or [("go", math.inf)], 1)])

    def put(self, word):
        if isinstance(word, Held):
            self.words.append(word)
            self._mailbox.put(next(self._orders))


def ordered(comm, orders):
    comm.mailbox = Mailbox()
    comm.home = Script(comm.mailbox, orders)


def goes(comm, payload, rhythm, outer=MEAN, state=LOCAL, orders=()):
    """Train to the end; this rank's parameters, what it told, and the bytes that came in collectives."""
    ordered(comm, orders)
    found = []
    with record(kinds=[StepFinished, Evaluated, ReplicaMet, CollectiveStarted, ChunkMoved]) as rec:
        standing = train_locally(comm, payload, "run", rhythm, outer, state)
    if standing is not None:
        copy = unpacked(payload)
        copy.stand(standing)
        found = parameters(copy.model)
    mine = [event for event in rec if event.rank == comm.rank]
    return found, mine, comm.home.words


def trained(training, rhythm, *more, world_size=4, **how):
    """Rank 0's parameters, what each rank told, and rank 0's words home."""
    ranks = run_ranks(goes, packed(training), rhythm, *more, world_size=world_size, **how)
    return ranks[0][0], [events for _, events, _ in ranks], ranks[0][2]


def in_step(comm, payload):
    ordered(comm, ())
    standing = train_replica(comm, payload, "run", "ring")
    copy = unpacked(payload)
    copy.stand(standing)
    return parameters(copy.model)


def summed(training, world_size=4):
    """What data-parallel training comes to."""
    return run_ranks(in_step, packed(training), world_size=world_size)[0]


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


def losses(events):
    return [(event.step, event.loss) for event in of(StepFinished, events)]


# --- every = 1 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [100, 103], ids=["even", "a last batch of 3 for 4 ranks"])
def test_an_average_after_each_step_is_a_step_by_the_mean_gradient(n):
    found, told, _ = trained(job(n=n), Rhythm(1))
    assert np.abs(found - summed(job(n=n))).max() <= 1e-12
    assert len(losses(told[0])) == 3 * -(-n // 50)


@pytest.mark.parametrize(("rule", "state", "n", "is_equal"), [
    ("momentum", LOCAL, 100, True), ("nesterov", LOCAL, 100, True),  # 13, 13, 12 and 12 of 50 in each batch
    ("momentum", LOCAL, 103, False), ("momentum", AVERAGED, 103, True), ("nesterov", AVERAGED, 103, True),
    ("adam", AVERAGED, 100, False), ("clipped", AVERAGED, 100, False),
])  # fmt: skip
def test_with_what_rules_that_holds_is_as_the_documentation_says(rule, state, n, is_equal):
    def made():
        return job(rule, n=n)

    apart = np.abs(trained(made(), Rhythm(1), MEAN, state)[0] - summed(made())).max()
    assert (apart <= 1e-12) == is_equal, apart


def test_one_rank_alone_trains_as_without_ranks():
    training = job("adam")
    found, _, _ = trained(job("adam"), Rhythm(4), world_size=1)
    training.begin("alone")
    while not training.finished:
        assert training.advance() is None
    assert np.abs(found - parameters(training.model)).max() <= 1e-12


# --- every = more ---------------------------------------------------------------------------------------------------


def by_hand(training, rhythm, world_size, outer=None):
    """Rank after rank in one process, from the definition: their steps, then the mean, or a step of `outer` to it."""
    [group], velocity = training.optimizer.groups, np.zeros(training.optimizer.groups[0].values.size)
    replicas = [unpacked(packed(training)) for _ in range(world_size)]
    batches = [batch for epoch in range(training.n_epochs) for batch in training.loader.epoch(epoch)]
    began, values = group.values.copy(), [group.values.copy() for _ in range(world_size)]
    for step, batch in enumerate(batches, 1):
        for rank, (replica, own) in enumerate(zip(replicas, values, strict=True)):
            x, y = (np.array_split(rows, world_size)[rank] for rows in batch)
            [mine] = replica.optimizer.groups
            mine.values[...] = own
            replica.optimizer.zero_grad()
            lab.cross_entropy(replica.model(lab.tensor(x)), y).backward()
            replica.optimizer.step()
            own[...] = mine.values
        if step % rhythm.every == 0:
            for ranks in rhythm.groups:
                mean = np.mean([values[rank] for rank in ranks], axis=0)
                for rank in ranks:
                    values[rank] = mean.copy()
        if step % (rhythm.every * rhythm.outer_every) == 0 or step == len(batches):
            mean = np.mean(values, axis=0)
            if outer is not None:
                velocity = outer.momentum * velocity + (began - mean)
                ahead = (began - mean) + outer.momentum * velocity if outer.nesterov else velocity
                mean = began - outer.learning_rate * ahead
            began, values = mean.copy(), [mean.copy() for _ in range(world_size)]
    return values[0]


@pytest.mark.parametrize("outer", [None, Outer(), Outer(0.5, 0.8, nesterov=False), Outer(0.3, 0.0)], ids=str)
@pytest.mark.parametrize("rule", ["sgd", "momentum", "adam"])
def test_it_is_what_the_definition_says(rule, outer):
    made = {"n": 120, "batch_size": 20, "epochs": 2}  # 12 steps: two rounds of 5, one of 2
    found, _, _ = trained(job(rule, **made), Rhythm(5), outer or MEAN)
    assert np.abs(found - by_hand(job(rule, **made), Rhythm(5), 4, outer)).max() <= 1e-12


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_groups_average_among_themselves_and_seldom_with_all(rule):
    made, rhythm = {"n": 120, "batch_size": 20, "epochs": 3}, rhythm_of(2, (2, 2), 3)  # 18 steps
    found, told, _ = trained(job(rule, **made), rhythm)
    assert np.abs(found - by_hand(job(rule, **made), rhythm, 4)).max() <= 1e-12
    met = [(event.step, event.n_steps, event.group) for event in of(ReplicaMet, told[3])]
    group = "of ranks 2, 3"
    assert met == [(2, 2, group), (4, 2, group), (6, 6, ""), (8, 2, group), (10, 2, group), (12, 6, ""),
                   (14, 2, group), (16, 2, group), (18, 6, "")]  # fmt: skip


def test_losses_are_told_at_the_end_of_a_round_step_by_step_and_are_those_of_all_ranks():
    training = job(n=100, batch_size=50, epochs=4)
    _, told, _ = trained(training, Rhythm(3))
    steps = of(StepFinished, told[0])
    assert [event.step for event in steps] == list(range(1, 9))
    assert [event.epoch for event in steps] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert all(of(StepFinished, events) == [] for events in told[1:])
    batch = next(job().loader.epoch(0))
    whole = lab.cross_entropy(training.model(lab.tensor(batch.inputs)), batch.targets).item()
    assert steps[0].loss == pytest.approx(whole, abs=1e-12)
    meetings = [i for i, event in enumerate(told[0]) if isinstance(event, ReplicaMet)]
    assert [told[0][i].step for i in meetings] == [3, 6, 8]
    assert [len(of(StepFinished, told[0][:i])) for i in meetings] == [0, 3, 6]


def test_what_is_evaluated_is_what_all_ranks_have_at_the_end_of_a_round():
    test = some_digits(40, "float64")
    found, told, _ = trained(job(n=100, epochs=4, validation=test), Rhythm(3))  # epochs end after 2, 4, 6 and 8 steps
    seen = of(Evaluated, told[0])
    assert [event.step for event in seen] == [0, 3, 6, 8]
    model = network("float64")
    at = 0
    state = {}
    for name, value in model.state_dict().items():
        state[name] = found[at : at + value.size].reshape(value.shape)
        at += value.size
    model.load_state_dict(state)
    assert seen[-1].loss == pytest.approx(evaluate(model, test).loss, abs=1e-12)


def bytes_of_sums(events):
    """What came to a rank while parameters were averaged; the broadcast of the beginning is no sum."""
    sums = {event.collective for event in of(CollectiveStarted, events) if event.operation == "all_reduce"}
    return sum(event.n_bytes for event in of(ChunkMoved, events) if event.collective in sums)


@pytest.mark.parametrize("state", [LOCAL, AVERAGED])
def test_bytes_fall_as_the_number_of_meetings(state):
    came = {}
    for every in (1, 4, 16):
        _, told, _ = trained(job("momentum", n=160, batch_size=40, epochs=4), Rhythm(every), MEAN, state)
        came[every] = [bytes_of_sums(events) for events in told]
    one = network("float64")
    n_bytes = parameters(one).nbytes * (2 if state == AVERAGED else 1)
    assert sum(came[16]) == 4 * 2 * 3 / 4 * n_bytes  # a ring: 2 (n - 1) / n of the buffer on each of n ranks
    assert sum(came[1]) == 4 * sum(came[4]) == 16 * sum(came[16])


def test_the_distance_from_the_mean_is_told_and_grows_with_the_steps_alone():
    far = []
    for every in (1, 4):
        _, told, _ = trained(job(n=160, batch_size=40, epochs=2), Rhythm(every))
        far.append(np.mean([event.distance for events in told for event in of(ReplicaMet, events)]))
    assert 0 < far[0] < far[1]


# --- trouble --------------------------------------------------------------------------------------------------------


class Poisoned:
    """A loss that is no number where an example says so, as a broken file would make it."""

    def __init__(self, row):
        self.row = row

    def __call__(self, prediction, targets):
        loss = lab.cross_entropy(prediction, np.where(targets < 0, 0, targets))
        return loss * (math.nan if (targets < 0).any() else 1.0)


def poisoned(n, position, batch_size):
    """Digits of which the example that stands at this position of the first epoch is broken."""
    data = some_digits(n, "float64")
    targets = data.targets.copy()
    targets[Loader(data, batch_size, rng=0).order(0)[position]] = -1
    return Dataset(data.inputs, targets)


@pytest.mark.parametrize("rhythm", [Rhythm(4), Rhythm(2, (2, 2), 2)], ids=["all meet", "groups"])
def test_a_rank_that_meets_a_nan_ends_its_round_early_and_all_are_back_where_it_began(rhythm):
    # The third batch of 40 is broken in its example 25, which rank 2 has; the round of steps 1 to 4 is not done.
    training = job(n=poisoned(160, 2 * 40 + 25, 40), batch_size=40, epochs=1, loss=Poisoned(0))
    found, told, words = trained(training, rhythm, MEAN, LOCAL, [("go", 3.0), ("stop",)])
    [held] = [word for word in words if word.trouble is not None]
    assert "at step 3 on rank 2" in held.trouble.problem
    assert held.step == 0
    np.testing.assert_array_equal(found, parameters(network("float64")))
    assert losses(told[0]) == []


def test_a_bound_that_a_rank_passes_holds_before_the_round_and_lets_it_pass_when_it_is_done_again():
    orders = [("bound", 1e-3, "loss"), ("go", 1.0), ("go", 1.0), ("stop",)]
    _, told, words = trained(job(epochs=4), Rhythm(4), MEAN, LOCAL, orders)
    troubled = [word for word in words if word.trouble is not None]
    assert [word.step for word in troubled] == [0]
    assert "the loss of step 1 is above 0.001" in str(troubled[0].trouble)
    assert [step for step, _ in losses(told[0])] == [1, 2, 3, 4]


def test_orders_take_effect_at_the_end_of_a_round():
    orders = [("go", 1.0), ("set", 0.0, "learning_rate"), ("go", 1.0), ("stop",)]
    _, told, words = trained(job(epochs=6), Rhythm(4), MEAN, LOCAL, orders)
    assert [word.step for word in words] == [0, 4, 4, 8]
    assert all(event.distance == 0 for event in of(ReplicaMet, told[0]) if event.step == 8)


def test_after_a_rewind_the_same_rounds_come_to_the_same_bits():
    made = {"n": 160, "batch_size": 40, "epochs": 4}  # an epoch ends within the round of steps 10 to 12, none after it
    orders = [("go", 5.0), ("rewind",), ("go", math.inf)]
    again, told, words = trained(job("momentum", **made), Rhythm(3), MEAN, LOCAL, orders)
    whole, undisturbed, _ = trained(job("momentum", **made), Rhythm(3))
    assert [word.step for word in words] == [0, 15, 12]
    np.testing.assert_array_equal(again, whole)
    assert losses(told[0])[12:15] == losses(told[0])[15:18] == losses(undisturbed[0])[12:15]


def test_a_parameter_that_no_rank_uses_is_refused_as_without_ranks():
    class Lazy(lab.nn.Module):
        def __init__(self):
            self.used, self.idle = Linear(64, 10, rng=0), Linear(64, 10, rng=1)

        def __call__(self, x):
            return self.used(x)

    with lab.settings(dtype="float64"):
        model = Lazy()
    with pytest.raises(GradientError, match="2 of 4 parameters have no gradient"):
        trained(job(model=model), Rhythm(2))


# --- layers, precision ----------------------------------------------------------------------------------------------


def test_random_layers_draw_on_each_rank_and_running_statistics_become_their_mean():
    with lab.settings(dtype="float64"):
        model = Sequential(Linear(64, 16, rng=0), BatchNorm1d(16), Dropout(0.5, rng=1), Linear(16, 10, rng=2))
    found, _, _ = trained(job(model=model, n=160, batch_size=40), Rhythm(4))
    again, _, _ = trained(job(model=model, n=160, batch_size=40), Rhythm(4))
    np.testing.assert_array_equal(found, again)
    assert np.isfinite(found).all()


def test_in_mixed_precision_ranks_agree_on_the_lowest_scale():
    from lab.precision.scaling import LossScale, Mixed

    module = network()
    training = Training(module, Loader(some_digits(160), 40, rng=0), None, lab.cross_entropy,
                        SGD(module.parameters(), 0.1), n_epochs=3, measure_every=0,
                        precision=Mixed("float16", LossScale(2.0**24)))  # fmt: skip
    found, told, _ = trained(training, Rhythm(2))
    assert np.isfinite(found).all()
    seen = losses(told[0])
    assert seen[-1][1] < seen[0][1]


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("more", "words"), [
    ({"every": 0}, "every is a whole number of at least 1"), ({"outer": 0.7}, "outer= is an Outer"),
    ({"groups": (2,)}, "groups are the sizes"), ({"groups": (2, 2), "world_size": 3}, "every rank is in one group"),
    ({"groups": (2, 2), "on_loss": "shrink"}, "groups do not shrink"), ({"state": "lost"}, "no such way for state="),
    ({"told": "all"}, "ranks tell steps"), ({"outer_every": 1.5}, "outer_every is a whole number"),
])  # fmt: skip
def test_what_is_no_option_is_refused_where_it_is_written(more, words):
    with pytest.raises(ArgumentError, match=words):
        LocalSGD(**more)


@pytest.mark.parametrize("more", [{"learning_rate": 0}, {"momentum": 1.0}, {"nesterov": 1}])
def test_an_outer_step_that_is_none_is_refused(more):
    with pytest.raises(ArgumentError):
        Outer(**more)


# --- it learns ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize(("every", "outer"), [(1, None), (4, None), (16, None), (16, Outer())], ids=str)
def test_digits_are_learned_to_ninety_percent(every, outer, world_size):
    train, test = digits()
    module = mlp(64, 32, 10, rng=0)
    training = Training(module, Loader(train, 64, rng=0), test, lab.cross_entropy, SGD(module.parameters(), 0.2),
                        n_epochs=8, measure_every=0)  # fmt: skip
    _, told, _ = trained(training, Rhythm(every), outer or MEAN, world_size=world_size)
    assert of(Evaluated, told[0])[-1].accuracy >= 0.9
