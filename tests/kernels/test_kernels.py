"""Templates over the registry: every kernel does what its twin does, in both dtypes, at every size, nan and inf too."""

from __future__ import annotations

import inspect
import threading
from typing import Any

import numpy as np
import pytest

import lab.kernels as lk
from lab.errors import DTypeError, KernelError, ShapeError
from lab.kernels.arguments import OutVector, Vector
from lab.kernels.loops import LOOPS

NAMES = sorted(lk.KERNELS)
SIZES = (0, 1, 2, 7, 8, 63, 64, 1000)


def call(name: str) -> Any:
    return getattr(lk, name)


def copied(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(v.copy() if isinstance(v, np.ndarray) else v for v in values)


def ulps_apart(found: np.ndarray, wanted: np.ndarray) -> float:
    """Largest difference in units in the last place of the largest finite number; nan and inf must stand alike."""
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~finite], wanted[~finite])
    if not finite.any():
        return 0.0
    unit = np.spacing(np.abs(wanted[finite]).max())
    return float(np.abs(found[finite].astype(np.float64) - wanted[finite]).max() / unit)


def assert_agree(record: lk.Kernel, found: tuple[Any, ...], wanted: tuple[Any, ...]) -> None:
    for argument, a, b in zip(record.arguments, found, wanted, strict=True):
        if argument.written:
            assert ulps_apart(a, b) <= record.ulps, argument.name
        elif argument.ndim:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", lk.FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_does_what_its_twin_does(name: str, dtype: str, size: int) -> None:
    record = lk.KERNELS[name]
    found = record.sample(np.random.default_rng(size), dtype, size)
    wanted = copied(found)
    assert call(name)(*found) == record.twin(*wanted)
    assert_agree(record, found, wanted)


def side_by_side(values: tuple[Any, ...], gap: int, order: tuple[int, ...]) -> tuple[Any, ...]:
    """Copies whose arrays lie in one buffer, in this order, with so many bytes between them."""
    arrays = [v for v in values if isinstance(v, np.ndarray)]
    room = np.zeros(sum(a.nbytes + gap + 64 for a in arrays), np.uint8)
    at, found = -room.ctypes.data % 64, list(values)
    for i in order:
        a = values[i]
        found[i] = room[at : at + a.nbytes].view(a.dtype).reshape(a.shape)
        found[i][...] = a
        at += (a.nbytes + gap + 15) // 16 * 16
    return tuple(found)


@pytest.mark.parametrize("size", [1, 3, 17])
@pytest.mark.parametrize("dtype", lk.FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_no_bit_hangs_on_where_the_arrays_lie(name: str, dtype: str, size: int) -> None:
    record = lk.KERNELS[name]
    values = record.sample(np.random.default_rng(size), dtype, size)
    places = [i for i, v in enumerate(values) if isinstance(v, np.ndarray)]
    seen = set()
    for gap in (0, 16, 64, 128, 256, 512):
        for order in (tuple(places), tuple(reversed(places))):
            found = side_by_side(values, gap, order)
            call(name)(*found)
            seen.add(b"".join(found[i].tobytes() for i in places))
    assert len(seen) == 1


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42])
@pytest.mark.parametrize("dtype", lk.FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_nan_inf_zeros_and_denormals_pass_through_as_in_numpy(name: str, dtype: str, special: float) -> None:
    record = lk.KERNELS[name]
    for position, argument in enumerate(record.arguments):
        if argument.dtype != "T":
            continue
        found = record.sample(np.random.default_rng(3), dtype, 33)
        found[position].reshape(-1)[::5] = special
        wanted = copied(found)
        with np.errstate(all="ignore"):
            call(name)(*found)
            record.twin(*wanted)
        assert_agree(record, found, wanted)


@pytest.mark.parametrize("name", NAMES)
def test_the_loop_runs_in_plain_python_as_well(name: str) -> None:
    record = lk.KERNELS[name]
    found = record.sample(np.random.default_rng(1), "float64", 5)
    wanted = copied(found)
    record.body(*found)
    record.twin(*wanted)
    assert_agree(record, found, wanted)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_kernel_only_reads_may_be_read_only(name: str) -> None:
    record = lk.KERNELS[name]
    given = record.sample(np.random.default_rng(1), "float32", 9)
    record.compile("float32")
    for argument, value in zip(record.arguments, given, strict=True):
        if argument.ndim:
            value.flags.writeable = argument.written
    record.runs["float32"](*given)  # nothing is copied, and no TypeError first, which takes a millisecond


@pytest.mark.parametrize("name", NAMES)
def test_inputs_with_gaps_are_copied_even_read_only_ones(name: str) -> None:
    record = lk.KERNELS[name]
    wanted = record.sample(np.random.default_rng(1), "float32", 9)
    found = []
    for argument, value in zip(record.arguments, copied(wanted), strict=True):
        if argument.ndim and not argument.written:
            view = np.zeros((*value.shape[:-1], value.shape[-1] * 2), value.dtype)[..., ::2]
            view[:] = value
            view.flags.writeable = False
            found.append(view)
        else:
            found.append(value)
    call(name)(*found)
    record.twin(*wanted)
    assert_agree(record, tuple(found), wanted)


@pytest.mark.parametrize("name", NAMES)
def test_a_written_array_with_gaps_is_refused_and_nothing_is_written(name: str) -> None:
    record = lk.KERNELS[name]
    values = list(record.sample(np.random.default_rng(1), "float32", 9))
    position = next(i for i, argument in enumerate(record.arguments) if argument.written)
    shape = values[position].shape
    values[position] = np.zeros((*shape[:-1], shape[-1] * 2), np.float32)[..., ::2]
    before = copied(tuple(values))
    with pytest.raises(KernelError, match="must be one writable contiguous block of float32"):
        call(name)(*values)
    for found, wanted in zip(values, before, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", NAMES)
def test_arrays_of_different_lengths_are_refused_before_anything_is_read(name: str) -> None:
    record = lk.KERNELS[name]
    for position, argument in enumerate(record.arguments):
        values = list(record.sample(np.random.default_rng(1), "float64", 9))  # odd: with momentum
        if not argument.ndim:
            continue
        values[position] = values[position][:-2].copy()
        with pytest.raises(ShapeError, match=f"{name} needs"):
            call(name)(*values)


@pytest.mark.parametrize("name", NAMES)
def test_mixed_and_half_precision_are_refused_by_name(name: str) -> None:
    record = lk.KERNELS[name]
    values = list(record.sample(np.random.default_rng(1), "float32", 4))
    halves = [v.astype(np.float16) if a.dtype == "T" else v for a, v in zip(record.arguments, values, strict=True)]
    with pytest.raises(DTypeError, match="float16"):
        call(name)(*halves)
    last = max(i for i, a in enumerate(record.arguments) if a.dtype == "T")
    values[last] = values[last].astype(np.float64)
    with pytest.raises(DTypeError, match=f"takes arrays of one dtype.*\n.*{record.arguments[last].name} float64"):
        call(name)(*values)


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_has_a_docstring_with_an_example_and_its_twin_the_same_arguments(name: str) -> None:
    record = lk.KERNELS[name]
    assert ">>>" in (call(name).__doc__ or "")
    assert list(inspect.signature(record.body).parameters) == list(inspect.signature(record.twin).parameters)
    assert call(name).__wrapped__ is record.body
    assert True not in record.fastmath
    assert not {"nnan", "ninf", "fast"} & record.fastmath


def test_a_label_outside_the_classes_is_named_and_nothing_out_of_bounds_is_read() -> None:
    for label in (-1, 10, 2**40):
        values = list(lk.KERNELS["softmax_cross_entropy"].sample(np.random.default_rng(0), "float32", 6))
        values[1][4] = label
        assert lk.softmax_cross_entropy(*values) == 4


def test_labels_of_any_integer_type_do_and_floats_are_refused() -> None:
    values = list(lk.KERNELS["softmax_cross_entropy"].sample(np.random.default_rng(0), "float32", 6))
    lk.softmax_cross_entropy(*values)
    wanted = values[2].copy()
    values[1] = values[1].astype(np.uint8)
    assert lk.softmax_cross_entropy(*values) == -1
    np.testing.assert_array_equal(values[2], wanted)
    values[1] = values[1].astype(np.float64)
    with pytest.raises(DTypeError, match="wants integers for labels"):
        lk.softmax_cross_entropy(*values)


@pytest.mark.parametrize("dtype", lk.FLOATS)
@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4])
def test_softmax_cross_entropy_keeps_its_digits_for_large_logits(dtype: str, shift: float) -> None:
    rng = np.random.default_rng(0)
    logits = (rng.integers(-40, 40, (50, 17)) / 4 + shift).astype(dtype)  # exact in float32, shifted or not
    labels = rng.integers(0, 17, 50)
    losses = np.zeros(50, dtype)
    lk.softmax_cross_entropy(logits, labels, losses)
    exact = (logits - np.float64(shift)).astype(np.longdouble)
    p = np.exp(exact) / np.exp(exact).sum(axis=1, keepdims=True)
    tolerance = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(losses, -np.log(p[np.arange(50), labels]), rtol=tolerance, atol=tolerance)
    out, ct = np.zeros_like(logits), np.full(50, 0.02, dtype)
    lk.softmax_cross_entropy_gradient(logits, labels, ct, out)
    p[np.arange(50), labels] -= 1
    np.testing.assert_allclose(out, p * ct[:, None], rtol=tolerance, atol=tolerance * 0.02)


def test_a_long_float32_row_is_summed_without_drift() -> None:
    logits, losses, label = np.zeros((1, 3_000_000), np.float32), np.zeros(1, np.float32), np.zeros(1, np.int64)
    lk.softmax_cross_entropy(logits, label, losses)
    np.testing.assert_allclose(losses, np.log(3e6), rtol=1e-7)
    out = np.zeros_like(logits)
    lk.softmax_cross_entropy_gradient(logits, label, np.ones(1, np.float32), out)
    np.testing.assert_allclose(out[0, 1:], np.float32(1 / 3e6), rtol=1e-7)


@pytest.mark.parametrize("n_classes", [1, 15, 16, 17, 33, 1000])
def test_the_largest_logit_is_found_wherever_it_stands_and_nan_makes_a_row_nan(n_classes: int) -> None:
    logits = np.zeros((n_classes, n_classes), np.float32)
    np.fill_diagonal(logits, 200.0)  # exp of it alone would overflow
    losses = np.ones(n_classes, np.float32)
    assert lk.softmax_cross_entropy(logits, np.arange(n_classes), losses) == -1
    np.testing.assert_allclose(losses, 0, atol=1e-6)
    np.fill_diagonal(logits, np.nan)
    out = np.zeros_like(logits)
    lk.softmax_cross_entropy(logits, np.arange(n_classes), losses)
    lk.softmax_cross_entropy_gradient(logits, np.arange(n_classes), np.ones_like(losses), out)
    assert np.isnan(losses).all()
    assert np.isnan(out).all()


@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_an_update_in_slices_has_the_bits_of_an_update_at_once(name: str) -> None:
    whole = lk.KERNELS[name].sample(np.random.default_rng(0), "float32", 1001)
    parts = copied(whole)
    call(name)(*whole)
    for start, stop in ((0, 1), (1, 334), (334, 335), (335, 1001)):
        call(name)(*(v[start:stop] if isinstance(v, np.ndarray) else v for v in parts))
    for found, wanted in zip(parts, whole, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_two_kernels_of_one_name_are_refused() -> None:
    with pytest.raises(KernelError, match=r"two kernels have one name\ngiven: adam"):

        @lk.kernel(twin=lambda p: None, sample=lambda rng, dtype, size: ())
        def adam(p: OutVector) -> None:
            p[0] = 0


def test_the_first_call_may_come_from_many_threads_at_once() -> None:
    def twice_twin(x: np.ndarray, out: np.ndarray) -> None:
        out[:] = 2 * x

    @lk.kernel(twin=twice_twin, sample=lambda rng, dtype, size: ())
    def twice(x: Vector, out: OutVector) -> None:
        for i in range(x.size):
            out[i] = 2 * x[i]

    outs = [np.zeros(100, lk.FLOATS[i % 2]) for i in range(8)]
    start = threading.Barrier(8)

    def work(out: np.ndarray) -> None:
        start.wait()
        twice(np.ones_like(out), out)

    try:
        threads = [threading.Thread(target=work, args=(out,)) for out in outs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all((out == 2).all() for out in outs)
        assert set(lk.KERNELS["twice"].compiled) == set(lk.FLOATS)
    finally:
        del lk.KERNELS["twice"]


def test_warm_leaves_every_kernel_ready_and_reports_each() -> None:
    seen: list[tuple[int, int, str]] = []
    lk.warm(lambda *what: seen.append(what))
    names = [*NAMES, *LOOPS]
    assert [done for done, _, _ in seen] == list(range(len(names) * 2 + 1))
    assert {name for _, _, name in seen[:-1]} == {f"{name} {dtype}" for name in names for dtype in lk.FLOATS}
    assert all(set(lk.KERNELS[name].compiled) == set(lk.FLOATS) for name in NAMES)


def test_other_dtypes_than_float32_and_float64_are_not_compiled() -> None:
    with pytest.raises(KernelError, match="compiled for float32 and float64"):
        lk.KERNELS["sgd"].compile("float16")
