import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lab.training.measure import BINS, measured

ANY = arrays(np.float64, st.integers(1, 50), elements=st.floats(allow_subnormal=True))


@given(ANY)
def test_every_finite_entry_is_in_a_bin_and_every_other_is_counted(array):
    event = measured(1, "w", "value", array)
    finite = array[np.isfinite(array)]
    assert event.n_entries == array.size
    assert event.n_nonfinite == array.size - finite.size
    assert sum(event.counts) == finite.size
    if finite.size:
        assert (event.minimum, event.maximum) == (finite.min(), finite.max())
        assert len(event.edges) == BINS + 1 == len(event.counts) + 1
        assert np.all(np.diff(event.edges) >= 0)
        assert event.edges[0] <= finite.min() <= finite.max() <= event.edges[-1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_histogram_is_numpys(dtype):
    array = np.random.default_rng(0).standard_normal((40, 30)).astype(dtype)
    event = measured(1, "w", "value", array)
    counts, edges = np.histogram(array.astype(np.float64), bins=BINS)
    assert np.allclose(event.edges, edges)
    assert np.abs(np.array(event.counts) - counts).sum() <= 2  # an entry on an edge may fall to either side
    assert event.norm == pytest.approx(np.linalg.norm(array.astype(np.float64)))


def test_without_finite_entries_there_is_no_histogram():
    event = measured(1, "w", "gradient", np.array([np.nan, np.inf], np.float32))
    assert (event.edges, event.counts, event.n_nonfinite) == ((), (), 2)
    assert np.isnan([event.norm, event.minimum, event.maximum]).all()


def test_a_constant_has_one_bin_around_it():
    event = measured(1, "w", "value", np.zeros(5))
    assert (event.edges[0], event.edges[-1], max(event.counts)) == (-0.5, 0.5, 5)
