"""Hooks that send less: what arrives and what is left make the gradient, on every rank the same bits, and it learns."""

import math

import numpy as np
import pytest

import lab
from lab.data import Loader
from lab.errors import ArgumentError
from lab.events import GradientCompressed, record
from lab.nn import mlp
from lab.optim import SGD
from lab.parallel import DataParallel, run_ranks
from lab.parallel.compression import Cast, PowerSGD, Quantized, RandomK, TopK
from lab.parallel.ranks.mailbox import Mailbox
from lab.parallel.training.data_parallel import train_replica
from lab.parallel.training.layers import Chosen
from lab.parallel.training.packing import packed, unpacked
from lab.parallel.training.steering import Held, Order
from lab.precision import LossScale, Mixed
from lab.training.trainer import Training
from tests.parallel.trainings import network, parameters, some_digits

pytestmark = [pytest.mark.usefixtures("no_run_outlives_its_test")]
SHAPES = [(24, 16), (24,), (10, 24), (10,), (6, 2, 5)]
N = sum(math.prod(shape) for shape in SHAPES)
HOOKS = {
    "float16": Cast(error_feedback=True), "8 bits": Quantized(8, block=64), "1 bit": Quantized(1, block=64),
    "top 5 %": TopK(0.05), "random 5 %": RandomK(0.05), "rank 2": PowerSGD(2), "rank 1, cold": PowerSGD(1, False),
}  # fmt: skip
WORLDS = [1, 2, 3, 4]


def of_rank(rank, step, dtype="float32"):
    return np.random.default_rng([rank, step]).normal(size=N).astype(dtype)


def compresses(comm, hook, n_steps, dtype="float32"):
    """What it gets in each step, what is left in the end, and the bytes of a step."""
    memory, got = {}, []
    for step in range(n_steps):
        before, gradient = comm.links.n_sent, of_rank(comm.rank, step, dtype)
        hook(comm, gradient, memory, SHAPES)
        got.append(gradient)
    return got, memory.get("residual"), comm.links.n_sent - before


@pytest.mark.parametrize("world_size", WORLDS)
@pytest.mark.parametrize("name", HOOKS)
def test_every_rank_gets_the_same_bits(name, world_size):
    ranks = run_ranks(compresses, HOOKS[name], 3, world_size=world_size)
    for got, _, _ in ranks[1:]:
        for mine, first in zip(got, ranks[0][0], strict=True):
            np.testing.assert_array_equal(mine, first)


@pytest.mark.parametrize("world_size", WORLDS)
@pytest.mark.parametrize("name", [name for name in HOOKS if name != "float16"])
def test_what_arrived_over_the_steps_and_what_is_left_is_the_sum_of_all_gradients(name, world_size):
    ranks = run_ranks(compresses, HOOKS[name], 5, "float64", world_size=world_size)
    arrived = sum(ranks[0][0])
    left = sum(residual for _, residual, _ in ranks)
    whole = sum(of_rank(rank, step, "float64") for rank in range(world_size) for step in range(5))
    np.testing.assert_allclose(arrived + left, whole, rtol=0, atol=1e-5 if "bit" in name else 1e-11)


def test_sums_of_float16_are_rounded_on_the_way_which_nobody_keeps():
    [(got, left, _), (_, other, _)] = run_ranks(compresses, HOOKS["float16"], 5, world_size=2)
    whole = sum(of_rank(rank, step) for rank in range(2) for step in range(5))
    np.testing.assert_allclose(sum(got) + left + other, whole, rtol=0, atol=0.02)


@pytest.mark.parametrize("name", ["8 bits", "1 bit", "top 5 %", "random 5 %", "rank 2"])
def test_without_error_feedback_what_was_not_sent_is_gone(name):
    hook = HOOKS[name]
    fields = {key: value for key, value in vars(hook).items() if key != "error_feedback"}
    plain = type(hook)(**fields, error_feedback=False)
    [(got, left, _), _] = run_ranks(compresses, plain, 2, world_size=2)
    assert left is None
    again = run_ranks(compresses, plain, 2, world_size=2)[0][0]
    np.testing.assert_array_equal(got[1], again[1])


@pytest.mark.parametrize(
    ("name", "most"),
    [("float16", 0.51), ("8 bits", 0.27), ("1 bit", 0.05), ("top 5 %", 0.11), ("random 5 %", 0.06), ("rank 2", 0.45)],
)
def test_two_ranks_send_the_bytes_that_were_promised(name, most):
    plain = run_ranks(lambda comm: (comm.all_reduce_(of_rank(0, 0)), comm.links.n_sent)[1], world_size=2)[0]
    sent = run_ranks(compresses, HOOKS[name], 1, world_size=2)[0][2]
    assert 0 < sent <= most * plain


def test_powersgd_is_exact_for_matrices_of_its_rank_and_better_when_it_begins_where_it_ended():
    def errors(comm, hook):
        rng = np.random.default_rng(0)
        whole, memory, found = rng.normal(size=(30, 4)) @ rng.normal(size=(4, 20)) + rng.normal(size=(30, 20)), {}, []
        for _ in range(8):
            gradient = whole.ravel() / comm.world_size
            hook(comm, gradient, memory, [(30, 20)])
            found.append(float(np.linalg.norm(gradient.reshape(30, 20) - whole)))
        return found

    warm = run_ranks(errors, PowerSGD(4, error_feedback=False), world_size=2)[0]
    cold = run_ranks(errors, PowerSGD(4, warm_start=False, error_feedback=False), world_size=2)[0]
    assert warm[-1] < warm[0]
    assert warm[-1] < min(cold)


# --- in a training


def training(module=None, n_epochs=6, rate=0.1, data=None, precision=None):
    module = module or network()
    loader = Loader(data or some_digits(512), 64, rng=0)
    return Training(module, loader, None, lab.cross_entropy, SGD(module.parameters(), rate), n_epochs=n_epochs,
                    measure_every=0, precision=precision)  # fmt: skip


def trains(comm, payload, hook):
    comm.mailbox, said = Mailbox(), []
    comm.mailbox.put(Order(1, "go", math.inf))

    class Home:
        def put(self, word):
            if isinstance(word, Held) and word.trouble is not None:
                said.append((word.step, str(word.trouble)))
                comm.mailbox.put(Order(2, "stop"))

    comm.home = Home()
    with record(kinds=[GradientCompressed]) as rec:
        standing = train_replica(comm, payload, "run", "ring", choice=Chosen(comm_hook=hook))
    copy = unpacked(payload)
    copy.stand(standing)
    return parameters(copy.model), standing.last_loss, [e for e in rec if e.rank == comm.rank], said, standing.step


def losses(hook, **options):
    ranks = run_ranks(trains, packed(training(**options)), hook, world_size=2)
    for found, *_ in ranks[1:]:
        np.testing.assert_array_equal(found, ranks[0][0])
    return ranks[0]


def plainly(comm, gradient, memory, shapes):
    comm.all_reduce_(gradient)


def mine(comm, gradient, memory, shapes):
    """A learner's top-k, with error feedback, in ten lines."""
    gradient += memory.get("left", 0)
    k = len(gradient) // 20
    places = np.argsort(-np.abs(gradient))[:k]
    values = gradient[places]
    memory["left"] = gradient.copy()
    memory["left"][places] = 0
    gradient[:] = 0
    for its_places, its_values in zip(comm.all_gather(places), comm.all_gather(values), strict=True):
        gradient[its_places] += its_values


def test_a_hook_that_sums_is_a_training_without_one():
    np.testing.assert_array_equal(losses(plainly)[0], losses(None)[0])


@pytest.mark.parametrize("name", ["float16", "8 bits", "1 bit", "top 5 %", "rank 2"])
def test_with_error_feedback_the_loss_comes_near_the_one_of_whole_gradients(name):
    plain, found = losses(None), losses(HOOKS[name])
    assert found[1] < plain[1] + 0.25
    assert len(found[2]) == found[4] == 48
    assert all(0 < e.n_bytes_sent < e.n_bytes for e in found[2])


def test_a_top_k_of_ones_own_learns_as_ours_does():
    assert losses(mine)[1] < losses(None)[1] + 0.25


def test_the_classic_mistake_to_forget_what_was_not_sent_is_seen_in_the_loss():
    kept, gone = losses(TopK(0.01)), losses(TopK(0.01, error_feedback=False))
    assert kept[1] < gone[1] - 0.1


def test_a_gradient_of_one_rank_that_is_no_number_is_found_by_all_whatever_the_hook():
    data = some_digits(64)
    data.inputs.flags.writeable = True
    data.inputs[40] *= 3000
    ranks = run_ranks(
        trains, packed(training(data=data, n_epochs=3, precision=Mixed("float16", LossScale(2.0**14)))), TopK(0.05),
        world_size=2,
    )  # fmt: skip
    for found, _, _, said, step in ranks:
        np.testing.assert_array_equal(found, ranks[0][0])
        assert np.isfinite(found).all()
        assert (said, step) == ([], 3)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Quantized(4), "a number has 8 bits or 1"),
        (lambda: Quantized(8, block=0), "block"),
        (lambda: TopK(0), "the share of entries"),
        (lambda: TopK(True), "the share of entries"),
        (lambda: RandomK(1.5), "the share of entries"),
        (lambda: RandomK(0.5, seed=-1), "seed"),
        (lambda: PowerSGD(0), "rank"),
        (lambda: DataParallel(comm_hook=3), "comm_hook= is called to sum gradients"),
        (lambda: DataParallel(comm_hook=TopK), "comm_hook= is called to sum gradients"),
        (lambda: DataParallel(comm_hook=TopK(), bucket_bytes=100), "sums gradients in its own way"),
        (lambda: DataParallel(comm_hook=TopK(), deterministic="any world"), "sums gradients in its own way"),
        (lambda: DataParallel(comm_hook=TopK(), sync="micro-batch"), "sums gradients in its own way"),
    ],
)
def test_what_cannot_be_is_refused_in_three_lines(call, says):
    with pytest.raises(ArgumentError, match=says) as caught:
        call()
    assert [line.split(":")[0] for line in str(caught.value).splitlines()[1:]] == ["given", "hint"]


@pytest.mark.slow
def test_worker_processes_take_a_hook_by_value_and_count_what_they_sent():
    train = some_digits(512)
    model = mlp(64, 32, 10, rng=0)
    run = lab.fit(model, train, epochs=2, batch_size=64, on=DataParallel(world_size=2, comm_hook=TopK(0.05)))
    run.wait()
    told = [e for e in run.recording if isinstance(e, GradientCompressed)]
    assert len(told) == 2 * 16
    assert {e.n_bytes for e in told} == {4 * 2410}
    assert all(e.n_bytes_sent == 8 * round(0.05 * 2410) for e in told)
    assert all(e.residual_norm > 0 for e in told)
