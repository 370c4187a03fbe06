"""Kernels made into machine code without numba: what they say of Python, equal to numba's, and to Python itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.errors import ShapeError
from lab.kernels import FLOATS, KERNELS, have_numba, native
from lab.kernels.arguments import Argument

pytestmark = pytest.mark.skipif(native.machine() is None, reason="another Python or system: numba compiles all loops")

ROOT = Path(__file__).parents[2]
SCOPE = {"np": np, "ShapeError": ShapeError}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_a_kernel_is_machine_code_that_does_what_numba_makes_of_it(name: str, dtype: str) -> None:
    assert have_numba()
    record = KERNELS[name]
    record.compile(dtype)
    made = record._by_numba(dtype)
    assert made is not None
    assert type(record.runs[dtype]).__name__ == "builtin_function_or_method"
    for size in (1, 7, 130):
        mine, its = ([np.array(v) if isinstance(v, np.ndarray) else v for v in drawn]
                     for drawn in [record.sample(np.random.default_rng(size), dtype, size)] * 2)  # fmt: skip
        assert record.runs[dtype](*mine) == made[0](*its)
        for a, b in zip(mine, its, strict=True):
            np.testing.assert_allclose(a, b, rtol=3e-5 if dtype == "float32" else 1e-12, atol=1e-6)


TAKES = (
    Argument("x", "float64", 2, True), Argument("places", "int64", 1, True), Argument("n", "int64", 0, False),
    Argument("factor", "float64", 0, False), Argument("which", "bool", 0, False),
)  # fmt: skip
BODIES = {
    "an else and an elif": """
    if n > 3:
        x[0, 0] = 1.0
    elif which:
        x[0, 0] = factor
    else:
        x[:] = 3
    return n""",
    "a return in a loop": """
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > factor:
                return i * 10 + j
            x[i, j] = -1.0
    return -1""",
    "division and remainder of negative numbers": """
    for i in range(-7, 8):
        places[0] += (i // n) * 3 + i % n
        places[1] += (i // -n) * 5 + i % -n
    return places[0]""",
    "arrays of its own, again and again": """
    total = 0.0
    for i in range(n):
        own, more = np.zeros(i, np.float64), np.empty((2, i), np.float64)
        own[:] = factor
        more[:] = i
        for j in range(own.size):
            total += own[j] + more[1, j]
    x[0, 0] = total
    return n""",
    "parts of rows": """
    row = x[1]
    for start in range(0, row.size, n):
        part = row[start : min(start + n, row.size)]
        for j in range(part.size):
            part[j] += start
    for j in range(row[1:].size):
        row[1:][j] -= row[:2][1]
    x[0, 1:] = factor
    return row.size""",
    "shapes": """
    flat = x.reshape(-1)
    if x.shape != (2, n) or not which:
        return flat.size
    return 1 if x.shape == (n, n) else 0""",
    "steps that only the call knows": """
    for i in range(0, places.size, n):
        places[i] = i
    for k in range(np.uint64(1), np.uint64(places.size), np.uint64(n)):
        places[k] = 7
    return 0""",
    "an entry that is read only if it is there": """
    places[0] = places[n] if n < places.size else -5
    return places[0]""",
}


@pytest.mark.parametrize("n", [1, 2, 3, 40])
@pytest.mark.parametrize("which", [True, False])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_machine_code_does_what_python_does(body: str, which: bool, n: int) -> None:
    source = f"def fused(x, places, n, factor, which):{body}"
    made = native.compiled("as_in_python", source, SCOPE, TAKES, apart=True)
    assert made is not None
    scope = dict(SCOPE)
    exec(source, scope)
    results = []
    for run in (made[0], scope["fused"]):
        x, places = np.arange(6.0).reshape(2, 3) - 2, np.arange(5)
        results.append((run(x, places, n, 1.5, which), x, places))
    for mine, wanted in zip(*results, strict=True):
        np.testing.assert_array_equal(mine, wanted)


RAISES = """def fused(x, places, n, factor, which):
    own = np.zeros(n, np.float64)
    if which:
        raise ShapeError("it needs another shape")
    for i in range(n):
        if places[i] < 0:
            raise ShapeError("it needs places inside")
        own[n - 1 - i] = i * factor
    x[0, 0] = own[n // 2]
    return own.size"""


def test_an_error_of_a_loop_is_raised_as_python_raises_it() -> None:
    made = native.compiled("raises", RAISES, SCOPE, TAKES, apart=True)
    assert made is not None
    x, places = np.zeros((1, 1)), np.array([0, 1, -1])
    assert made[0](x, places, 2, 1.0, False) == 2
    with pytest.raises(ShapeError, match=r"^it needs another shape$"):
        made[0](x, places, 2, 1.0, True)
    with pytest.raises(ShapeError, match=r"^it needs places inside$"):
        made[0](x, places, 3, 1.0, False)
    with pytest.raises(MemoryError, match="no memory"):
        made[0](x, places, 2**50, 1.0, False)


NUMBERS: dict[str, tuple[Any, ...]] = {
    "a text for a float": (2, "1.0", False), "a float for an integer": (2.0, 1.0, False),
    "nothing for a float": (2, None, False), "an array for a truth": (2, 1.0, np.zeros(2)),
}  # fmt: skip


@pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
def test_a_number_of_another_kind_is_refused(numbers: tuple[Any, ...]) -> None:
    made = native.compiled("raises", RAISES, SCOPE, TAKES, apart=True)
    assert made is not None
    with pytest.raises((TypeError, ValueError)):
        made[0](np.zeros((1, 1)), np.zeros(3, np.int64), *numbers)
    assert made[0](np.zeros((1, 1)), np.zeros(3, np.int64), np.int64(2), -1, 0) == 2


PROGRAM = """
import sys
import numpy as np
import lab
rng = np.random.default_rng(0)
x, w = lab.tensor(rng.normal(size=(2, 1, 6, 6)), requires_grad=True), lab.tensor(rng.normal(size=(3, 1, 3, 3)))
h = lab.max_pool2d(lab.relu(lab.conv2d(x, w)), 2).reshape(2, -1)
h = lab.layer_norm(h, np.ones(h.shape[1]), np.zeros(h.shape[1]))
loss = lab.cross_entropy(h, np.array([1, 0])) + lab.softmax(h).var(axis=1).sum()
loss.backward()
print(bool(np.isfinite(x.grad.numpy()).all()), "numba" in sys.modules)
"""


@pytest.mark.slow
def test_what_runs_op_by_op_needs_no_numba_either(tmp_path: Path) -> None:
    env = os.environ | {"LAB_CACHE_DIR": str(tmp_path / "lab"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


AT_THE_END = """
import numpy as np
import lab
step = lab.jit(lab.value_and_grad(lambda w, x: lab.mean(lab.tanh(x @ w) ** 2)), executor="compiled")
print(float(step(np.zeros((3, 2), "float32"), np.ones((4, 3), "float32"))[0]))
"""


def test_a_process_ends_well_whatever_stands_in_memory_that_was_freed() -> None:
    """Python frees compiled functions after the modules, and looks at once more where their flags were."""
    env = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "255"}
    done = subprocess.run([sys.executable, "-c", AT_THE_END], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "0.0\n"), done.stderr
