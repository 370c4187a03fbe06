"""Windows of 2 x 2 that tile an image go a way of their own, which does what the general one does."""

from __future__ import annotations

import numpy as np
import pytest

import lab.kernels as lk


@pytest.mark.parametrize(("n", "oh", "ow"), [(1, 1, 1), (3, 4, 4), (2, 3, 7), (5, 1, 600), (2, 2, 1500), (0, 2, 2)])
@pytest.mark.parametrize("dtype", lk.FLOATS)
def test_tiles_go_the_way_of_the_twin_with_ties_nan_and_inf(dtype: str, n: int, oh: int, ow: int) -> None:
    rng = np.random.default_rng(oh * ow)
    values = np.array([0, -0.0, 0, 1, 2, np.nan, np.inf, -np.inf], dtype)
    x, ct = rng.choice(values, (n, 4 * oh * ow)), rng.standard_normal((n, oh * ow)).astype(dtype)
    found, wanted = np.full_like(x, 7), np.full_like(x, 7)
    geometry = (2 * oh, 2 * ow, 2, 2, 2, 2, 1, 1, 0, 0, oh, ow)
    lk.max_pool_gradient(x, ct, found, *geometry)
    lk.KERNELS["max_pool_gradient"].twin(x, ct, wanted, *geometry)
    np.testing.assert_array_equal(found, wanted)
    largest, right = np.full_like(ct, 7), np.full_like(ct, 7)
    lk.max_pool(x, largest, *geometry)
    lk.KERNELS["max_pool"].twin(x, right, *geometry)
    np.testing.assert_array_equal(largest, right)


@pytest.mark.parametrize("dtype", lk.FLOATS)
def test_what_came_back_is_kept_as_it_is_when_it_is_no_number(dtype: str) -> None:
    ct = np.array([[np.nan, np.inf]], dtype)
    out = np.zeros((1, 8), dtype)
    lk.max_pool_gradient(np.arange(8, dtype=dtype)[None], ct, out, 2, 4, 2, 2, 2, 2, 1, 1, 0, 0, 1, 2)
    np.testing.assert_array_equal(out, [[0, 0, 0, 0, 0, np.nan, 0, np.inf]])
