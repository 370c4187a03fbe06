import numpy as np
import pytest

from lab.config import settings
from lab.data import digits, digits28
from lab.data.digits import FILE, _read
from lab.errors import ArgumentError, DataError


def test_the_split_parts_the_examples_and_is_the_same_every_time():
    train, test = digits()
    everything = digits("all")
    rows = np.concatenate([train.inputs, test.inputs])
    assert (len(train), len(test), len(everything)) == (1437, 360, 1797)
    assert sorted(map(bytes, rows)) == sorted(map(bytes, everything.inputs))
    assert np.array_equal(digits("test").inputs, test.inputs)
    assert np.array_equal(digits("train").targets, train.targets)


def test_pixels_are_sixteenths_between_paper_and_ink():
    inputs = digits("all").inputs
    assert inputs.dtype == np.float32
    assert np.array_equal(np.unique(inputs * 16), np.arange(17))


def test_every_class_has_about_a_tenth_of_both_parts():
    for part in digits():
        shares = np.bincount(part.targets, minlength=10) / len(part)
        assert shares.min() > 0.06
        assert shares.max() < 0.14


def test_images_and_flat_rows_are_the_same_pixels():
    assert np.array_equal(digits("test", flat=False).inputs.reshape(360, 64), digits("test").inputs)


def test_a_zero_looks_like_a_ring():
    zeros = digits("all", flat=False)
    mean = zeros.inputs[zeros.targets == 0].mean(axis=0)
    assert mean[3:5, 3:5].max() < 0.2
    assert mean[3:5, 2].min() > 0.5


def test_digits_follow_the_dtype_of_the_lab():
    with settings(dtype="float64"):
        assert digits("test").inputs.dtype == np.float64


def test_another_split_by_seed_and_size():
    train, test = digits(n_test=100, rng=1)
    assert (len(train), len(test)) == (1697, 100)
    assert not np.array_equal(digits(n_test=100, rng=2)[1].inputs, test.inputs)


def test_an_unknown_split_is_refused():
    with pytest.raises(ArgumentError, match="no such split of the digits\ngiven: 'dev'\nhint:  'train', 'test'"):
        digits("dev")


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "digits.npz"
    good = FILE.read_bytes()
    path.write_bytes(good[:100] + bytes([good[100] ^ 1]) + good[101:])
    with pytest.raises(DataError, match=r"the digits are damaged\ngiven: digits.npz, 45394 bytes"):
        _read(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"the digits cannot be read\ngiven: digits.npz: No such file"):
        _read(tmp_path / "digits.npz")


def test_larger_images_are_what_linear_interpolation_by_numpy_makes():
    small, large = digits("test", flat=False), digits28("test")
    assert large.inputs.shape == (360, 1, 28, 28)
    assert large.inputs.dtype == np.float32
    assert np.array_equal(large.targets, small.targets)
    places, centres = (np.arange(28) + 0.5) * 8 / 28 - 0.5, np.arange(8)
    for image, found in zip(small.inputs[:5], large.inputs[:5, 0], strict=True):
        taller = np.array([np.interp(places, centres, column) for column in image.T]).T
        wider = np.array([np.interp(places, centres, row) for row in taller])
        np.testing.assert_allclose(found, wider, rtol=0, atol=1e-6)


def test_larger_digits_have_the_splits_of_the_small_ones():
    train, test = digits28(n_test=100, rng=1)
    assert (len(train), len(test)) == (1697, 100)
    assert np.array_equal(test.targets, digits("test", n_test=100, rng=1).targets)
    with settings(dtype="float64"):
        assert digits28("all").inputs.dtype == np.float64
