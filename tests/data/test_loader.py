import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.data import Dataset, Loader
from lab.errors import ArgumentError, DataError

COUNTS = st.integers(1, 60)
SIZES = {"n": COUNTS, "size": COUNTS, "seed": st.integers(0, 2**63), "number": st.integers(0, 1000)}


def numbered(n):
    return Dataset(np.arange(n)[:, None] * 10, np.arange(n))


def targets(batches):
    return [b.targets.tolist() for b in batches]


@given(**SIZES)
def test_an_epoch_visits_every_example_once(n, size, seed, number):
    loader = Loader(numbered(n), size, rng=seed)
    batches = list(loader.epoch(number))
    assert sorted(i for batch in targets(batches) for i in batch) == list(range(n))
    assert len(batches) == len(loader)
    assert all(len(b.targets) == size for b in batches[:-1])
    assert all(np.array_equal(b.inputs[:, 0], 10 * b.targets) for b in batches)


@given(**SIZES, skip=st.integers(0, 5))
def test_any_epoch_can_be_made_again_and_entered_in_the_middle(n, size, seed, number, skip):
    walked, fresh = Loader(numbered(n), size, rng=seed), Loader(numbered(n), size, rng=seed)
    for _ in range(2):
        list(walked)
    assert targets(walked.epoch(number)) == targets(fresh.epoch(number))
    assert targets(fresh.epoch(number, first_batch=skip)) == targets(fresh.epoch(number))[skip:]


@given(**SIZES)
def test_without_the_last_batch_all_are_full(n, size, seed, number):
    if size > n:
        with pytest.raises(ArgumentError, match="no batch is left\ngiven: batch_size="):
            Loader(numbered(n), size, rng=seed, drop_last=True)
        return
    loader = Loader(numbered(n), size, rng=seed, drop_last=True)
    assert [len(b) for b in targets(loader.epoch(number))] == [size] * (n // size) == [size] * len(loader)


def test_each_pass_is_the_next_epoch():
    loader, other = Loader(numbered(30), 7, rng=3), Loader(numbered(30), 7, rng=3)
    first, second = targets(loader), targets(loader)
    assert first != second
    assert [first, second] == [targets(other.epoch(0)), targets(other.epoch(1))]
    other.next_epoch = 1
    assert targets(other) == second


def test_a_generator_gives_the_seed_and_another_seed_another_order():
    a, b = (Loader(numbered(30), 30, rng=np.random.default_rng(5)) for _ in range(2))
    assert targets(a) == targets(b) != targets(Loader(numbered(30), 30, rng=6))


def test_without_a_seed_two_loaders_differ():
    assert Loader(numbered(3), 1).seed != Loader(numbered(3), 1).seed


def test_without_shuffling_the_order_is_that_of_the_data():
    assert targets(Loader(numbered(5), 2, shuffle=False)) == [[0, 1], [2, 3], [4]]


def test_a_pair_of_arrays_is_a_data_set():
    assert targets(Loader(([[0.0], [1.0]], [5, 6]), 2, shuffle=False)) == [[5, 6]]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Loader(numbered(3), 0), ArgumentError, "batch_size is a whole number of at least 1\ngiven:"),
        (lambda: Loader(numbered(3), 1, rng=-1), ArgumentError, "rng is a seed of 0 or more, a Generator, or None\n"),
        (lambda: Loader(numbered(3), 2.5), ArgumentError, "at least 1\ngiven: batch_size=2.5\nhint:  64 is"),
        (lambda: Loader(numbered(3), 1, rng="a"), ArgumentError, "given: rng='a'\nhint:  for example rng=0"),
        (lambda: numbered(3).split(1, rng=0.5), ArgumentError, "given: rng=0.5"),
        (lambda: Loader(([[1.0], [2.0, 3.0]], [0, 1]), 1), DataError,
         "the inputs are not a rectangle\ngiven: [[1.0], [2.0, 3.0]]\nhint:  each row needs the same number"),
        (lambda: Loader(([[1.0], [2.0]], ["cat", "dog"]), 1), DataError,
         "the targets are not numbers\ngiven: <U3 ['cat', 'dog']\nhint:  turn words into integers first"),
        (lambda: Loader(([[None], [2.0]], [0, 1]), 1), DataError, "the inputs are not numbers\ngiven: object"),
        (lambda: Loader([1, 2, 3], 1), DataError, "not a data set\ngiven: list\nhint:  give a Dataset or a pair"),
        (lambda: Dataset(np.zeros((2, 1)), np.zeros(3)), DataError, "one target for each input\ngiven: inputs (2, 1)"),
        (lambda: Dataset(np.zeros((0, 1)), np.zeros(0)), DataError, "at least one example"),
        (lambda: numbered(3).split(3), ArgumentError, "leaves examples on both sides\ngiven: 3 of 3 examples"),
    ],
)
def test_errors_say_what_was_given(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert message in str(caught.value)


def test_a_loader_describes_itself():
    assert repr(Loader(numbered(10), 4, rng=2)) == (
        "Loader: 3 batches of 4 from Dataset '': 10 examples, inputs (1,) int64, targets () int64, shuffled, seed 2"
    )
