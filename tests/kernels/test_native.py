"""Loops made into machine code without numba: equal to numba's, and safe from what they were not made for."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.errors import ShapeError
from lab.kernels import Chain, Step, cache, have_numba, native, native_layout
from lab.kernels.arguments import Argument
from lab.kernels.formula import ARITY, FUNCTIONS, Formula
from lab.kernels.fuse import Fused, fuse
from lab.kernels.native_expressions import tree_of
from lab.kernels.native_lowering import Lowering
from lab.kernels.native_values import INT, Number
from lab.kernels.rowloop import RowLoop, row_loop
from lab.kernels.rowwise import Cast, Match, Pick, Program, Reduce

pytestmark = pytest.mark.skipif(native.machine() is None, reason="another Python or system: numba compiles all loops")

LEFT_TO_NUMBA = {"logaddexp", "sinc_slope"}
"""Functions that no machine code is written for here."""
VALUES = [0.0, -0.0, 0.3, -0.7, 1.0, 2.5, -31.0, 88.0, 1e-30, 3e38, -3e38, np.inf, -np.inf, np.nan]
ADD_ONE = "def fused(x, n):\n    for i in range(n):\n        x[i] = x[i] + f8(1.0)"
TAKES = (Argument("x", "float64", 1, True), Argument("n", "int64", 0, False))
ROOT = Path(__file__).parents[2]


def of_functions(name: str, dtype: str) -> Fused:
    words = ("x", "y", "z")[: ARITY.get(name, 1)]
    step = Step("out", Formula(f"{name}({', '.join(words)})"), words, words)
    return Fused(Chain(tuple((w, dtype) for w in words), (step,), ("out",)), f"test of {name} {dtype}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - LEFT_TO_NUMBA))
def test_every_function_of_formulas_is_in_machine_code_what_it_is_in_numpy(name: str, dtype: str) -> None:
    loop = of_functions(name, dtype)
    loop.compile()
    assert type(loop.run).__name__ == "builtin_function_or_method"
    grid = np.meshgrid(*[np.array(VALUES, dtype)] * len(loop.chain.inputs))
    arrays = [g.reshape(-1).copy() for g in grid]
    out, wanted = (np.empty(arrays[0].shape, loop.chain.output_dtypes[0]) for _ in range(2))
    loop.run(*arrays, out)
    loop.twin(*arrays, wanted)
    np.testing.assert_allclose(out, wanted, rtol=2e-6 if dtype == "float32" else 1e-14)


@pytest.mark.parametrize("name", sorted(LEFT_TO_NUMBA))
def test_what_is_not_known_is_left_to_numba_and_said_in_the_log(name: str, caplog: Any) -> None:
    with caplog.at_level(logging.INFO, "lab.kernels"):
        loop = of_functions(name, "float64")
        loop.compile()
    assert type(loop.run).__name__ == "CPUDispatcher"
    assert "is compiled by numba: a loop is not written as LLVM" in caplog.text


def softmax_with_labels(dtype: str) -> Program:
    lines = (
        Reduce("top", "max", "x", "columns"), Step("e", Formula("exp(x - top)"), ("x", "top"), ("x", "top")),
        Reduce("s", "sum", "e", "columns"), Step("p", Formula("e / s"), ("e", "s"), ("e", "s")),
        Match("is_it", "at"), Cast("hot", "is_it", dtype), Step("d", Formula("p - hot"), ("p", "hot"), ("p", "hot")),
        Pick("picked", "x", "at"), Reduce("down", "sum", "d", "rows"), Reduce("all", "sum", "d", "all"),
    )  # fmt: skip
    inputs = (("x", dtype, "full"), ("at", "int64", "column"))
    return Program(inputs, lines, ("d", "picked", "down", "all"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_program_over_rows_is_what_numba_makes_of_it(dtype: str) -> None:
    assert have_numba()
    loop = row_loop(softmax_with_labels(dtype))
    loop.compile()
    by_numba, _ = loop._by_numba()
    rng = np.random.default_rng(0)
    for n_rows, n_columns in ((1, 1), (3, 7), (70, 300)):
        x = rng.normal(size=(n_rows, n_columns)).astype(dtype)
        x[0, 0] = np.nan
        at = rng.integers(0, n_columns, n_rows)
        at[-1] = n_columns if n_rows == 3 else at[-1]  # a label outside is told by its row
        results = []
        for run in (loop.run, by_numba):
            outs = [np.empty((n_rows, n_columns), dtype), np.empty(n_rows, dtype), np.empty(n_columns, dtype)]
            outs.append(np.empty(1, dtype))
            told = run(x, at, *outs, *loop.scratch(n_columns), n_rows, n_columns)
            results.append([told, *outs])
        for mine, its in zip(*results, strict=True):
            np.testing.assert_allclose(mine, its, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-6)
        assert results[0][0] == (2 if n_rows == 3 else -1)


def add_one(name: str = "add_one") -> Any:
    made = native.compiled(name, ADD_ONE, {"f8": np.float64}, TAKES, apart=True)
    assert made is not None
    return made[0]


CLOSED = np.zeros(3)
CLOSED.flags.writeable = False
WRONG = {
    "another dtype": np.zeros(3, "float32"), "another order of bytes": np.zeros(3, ">f8"), "two axes": np.zeros((3, 1)),
    "gaps": np.zeros(6)[::2], "read-only": CLOSED, "no array": [0.0, 0.0, 0.0],
    "not aligned": np.zeros(25, "u1")[1:].view("f8"),
}  # fmt: skip


@pytest.mark.parametrize("x", WRONG.values(), ids=WRONG)
def test_an_array_of_another_kind_is_refused_and_not_touched(x: Any) -> None:
    with pytest.raises(TypeError, match="another dtype or order, or another number of arguments"):
        add_one()(x, 3)
    assert not np.any(x)


@pytest.mark.parametrize("arguments", [(), (np.zeros(3),), (np.zeros(3), 3, 3)])
def test_another_number_of_arguments_is_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="another number of arguments"):
        add_one()(*arguments)
    with pytest.raises(TypeError, match="integer"):
        add_one()(np.zeros(3), "three")
    with pytest.raises(OverflowError):
        add_one()(np.zeros(3), 2**70)


def test_a_subclass_of_arrays_is_an_array_and_minus_one_is_a_number() -> None:
    class Own(np.ndarray):
        pass

    x = np.zeros(2).view(Own)
    assert add_one()(x, 2) is None
    assert add_one()(x, -1) is None
    assert x.tolist() == [1.0, 1.0]


def test_calls_keep_no_references() -> None:
    run, x = add_one(), np.zeros(2)
    before = sys.getrefcount(x), sys.getrefcount(None)
    for _ in range(1000):
        run(x, 2)
    assert sys.getrefcount(x) == before[0]
    assert abs(sys.getrefcount(None) - before[1]) < 100


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAB_CACHE_DIR", str(tmp_path / "lab"))
    return cache.cache_folder()


DAMAGE = {
    "half of it": lambda raw: raw[: len(raw) // 2],
    "a bit": lambda raw: raw[:900] + bytes([raw[900] ^ 1]) + raw[901:],
    "whole, and cut before": lambda raw: whole(payload(raw)[:-8]),
    "whole, of another loop": lambda raw: whole(payload(raw).replace(b'"for": "', b'"for": "0')),
    "whole, and something else": lambda raw: whole(b"\x80\x04K\x01."),
}


def payload(raw: bytes) -> bytes:
    return raw[len(cache.MAGIC) + 32 :]


def whole(text: bytes) -> bytes:
    import hashlib

    return cache.MAGIC + hashlib.sha256(text).digest() + text


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_or_foreign_file_is_compiled_again_and_said(damage: Any, own_cache: Path, caplog: Any) -> None:
    made = native.compiled("damaged", ADD_ONE, {"f8": np.float64}, TAKES, apart=True)
    assert made is not None
    assert made[1] == "compiled"
    (file,) = own_cache.glob("damaged-*.obj")
    raw = file.read_bytes()
    file.write_bytes(damage(raw))
    here = native.machine()
    assert here is not None
    digest = file.stem.partition("-")[2]
    assert native._from_cache(file.name, digest) is None
    assert "compiling again" in caplog.text
    assert not file.exists()
    file.write_bytes(raw)
    assert native._from_cache(file.name, digest) == payload(raw).partition(b"\n")[2]


PROGRAM = """
import sys
import numpy as np
import lab
step = lab.jit(lab.value_and_grad(lambda w, x: lab.mean(lab.tanh(x @ w) ** 2)), executor="compiled")
value, slope = step(np.ones((3, 2), "float32"), np.ones((4, 3), "float32"))
from lab.kernels.rowloop import _loops
print(round(float(value), 4), *sorted({loop.loaded for loop in _loops.values()}), "numba" in sys.modules)
"""


def process(folder: Path, **environment: str) -> str:
    env = os.environ | {"LAB_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)} | environment
    return subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_a_compiled_graph_needs_no_numba_and_another_process_loads_its_code(tmp_path: Path) -> None:
    assert process(tmp_path / "lab").split() == ["0.9901", "compiled", "False"]
    assert process(tmp_path / "lab").split() == ["0.9901", "loaded", "False"]
    assert process(tmp_path / "lab", NUMBA_CPU_NAME="generic").split() == ["0.9901", "compiled", "False"]


def test_where_arrays_lie_otherwise_numba_compiles_every_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_layout, "HEAD", 32)  # as in a Python without a global lock
    assert not native_layout.fits_this_python()
    monkeypatch.setattr(native, "machine", lambda: None)
    loop = RowLoop(softmax_with_labels("float32"), "a key of its own")
    loop.compile()
    assert type(loop.run).__name__ == "CPUDispatcher"


SCOPE = {"np": np, "ShapeError": ShapeError}
UNKNOWN = {
    "while": "while n:\n        n = 0", "a method": "x.fill(0.0)",
    "another kind": "y = 1\n    for i in range(n):\n        y = 1.5",
    "a step back": "for i in range(n, 0, -1):\n        x[i] = 0.0", "a name": "x[0] = nobody",
    "an else of a loop": "for i in range(n):\n        x[0] = 1.0\n    else:\n        x[0] = 2.0",
    "another array later": "y = x\n    for i in range(n):\n        y[0] = 1.0\n        y = x[1:]",
    "another error": "if n:\n        raise ValueError('no')", "a text of numbers": "if n:\n        raise ShapeError(n)",
    "rows of a matrix": "y = np.zeros((2, 2), np.float64)\n    y[0:1] = 1.0",
    "after its loop": "for i in range(n):\n        x[i] = 0.0\n    x[i] = 1.0",
}  # fmt: skip


@pytest.mark.parametrize("body", UNKNOWN.values(), ids=UNKNOWN)
def test_python_that_is_not_known_is_refused_whole(body: str) -> None:
    assert native.compiled("unknown", f"def fused(x, n):\n    {body}", SCOPE, TAKES, apart=True) is None


def test_no_source_no_machine_code() -> None:
    scope: dict[str, Any] = {}
    exec("def hidden(x):\n    return x", scope)
    with pytest.raises(Exception, match="has no source"):
        tree_of(scope["hidden"])


def test_numbers_of_python_are_computed_while_the_loop_is_written() -> None:
    import ast

    (tree,) = ast.parse("def f(n):\n    return 2 * 3 + 7 // 2").body
    assert isinstance(tree, ast.FunctionDef)
    assert Lowering(None, tree, {}).write([Number("i8", INT(1))]) == 9


def test_equal_chains_share_one_function() -> None:
    chain = Chain((("x", "float64"),), (Step("y", Formula("x + x"), ("x",), ("x",)),), ("y",))
    assert fuse(chain) is fuse(chain)


TWO_AT_ONCE = """
import threading
import numpy as np
import lab

x = lab.tensor(np.ones((400, 256), np.float32))
meet = threading.Barrier(4)

def first():
    meet.wait()
    for _ in range(3):
        lab.relu(x)

threads = [threading.Thread(target=first) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("all ran")
"""


def test_threads_that_need_the_first_loop_of_a_process_at_once_do_not_crash_it() -> None:
    """Each made an engine of its own, and the one that nobody kept took its code with it, under way or not."""
    done = subprocess.run([sys.executable, "-c", TWO_AT_ONCE], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "all ran\n"), done.stderr
