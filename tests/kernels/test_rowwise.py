"""Programs over rows: the compiled loop gives what NumPy gives line by line, and what no loop can hold is refused."""

from itertools import pairwise

import numpy as np
import pytest

from lab.errors import KernelError
from lab.kernels.chain import Step
from lab.kernels.formula import Formula
from lab.kernels.rowloop import row_loop
from lab.kernels.rowsource import source_of
from lab.kernels.rowwise import Cast, Match, Pick, Program, Reduce
from lab.kernels.stretches import ENTRIES, MOST


def step(name, text, *names):
    return Step(name, Formula(text), names, names)


FULL, ROW, COLUMN, SINGLE = "full", "row", "column", "single"
SOFTMAX = (
    Reduce("m", "max", "x", "columns"), step("e", "exp(x - m)", "x", "m"), Reduce("s", "sum", "e", "columns"),
    step("y", "e / s", "e", "s"),
)  # fmt: skip
PROGRAMS = {
    "softmax, with the smallest": Program(
        (("x", "float32", FULL),), (*SOFTMAX, Reduce("low", "min", "x", "columns")), ("y", "s", "low")
    ),
    "a loss with its gradient": Program(
        (("x", "float32", FULL), ("l", "int64", COLUMN), ("n", "float32", SINGLE)),
        (*SOFTMAX, Match("hit", "l"), Cast("hot", "hit", "float32"), step("d", "(y - hot) * n", "y", "hot", "n"),
         Pick("chosen", "y", "l"), step("loss", "-log(chosen)", "chosen"),
         Reduce("total", "sum", "loss", "all"), step("mean", "total * n", "total", "n"),
         Reduce("b", "sum", "d", "rows")),
        ("d", "total", "mean", "b"),
    ),
    "sums in three directions": Program(
        (("x", "float64", FULL), ("w", "float64", ROW), ("c", "float64", COLUMN)),
        (step("y", "x * w + c", "x", "w", "c"), Reduce("r", "sum", "y", "rows"), Reduce("t", "sum", "y", "all"),
         Reduce("k", "sum", "y", "columns"), Reduce("kk", "sum", "k", "all"), step("z", "k / 2.0", "k")),
        ("y", "r", "t", "k", "kk", "z"),
    ),
    "constants that keep their dtype": Program(
        (("x", "bool", FULL),),
        (Step("y", Formula("a * b"), ("a", "b"), ("x", np.float32(2.5))), Cast("z", "y", "float64"),
         Cast("t", "z", "bool")),
        ("y", "z", "t"),
    ),
    "functions of functions, read again when the row has been summed": Program(
        (("x", "float32", FULL), ("w", "float32", ROW), ("l", "int64", COLUMN)),
        (step("t", "tanh(x * w)", "x", "w"), step("u", "t + t", "t"), step("e", "exp(-(u * t))", "u", "t"),
         step("g", "sigmoid(e + x)", "e", "x"), step("k", "2.0 * e", "e"), Reduce("s", "sum", "g", "columns"),
         step("y", "u * g + s", "u", "g", "s"), step("z", "k - y * t", "k", "y", "t"), Pick("chosen", "e", "l"),
         step("v", "exp(tanh(z)) * chosen", "z", "chosen"), Reduce("b", "sum", "g", "rows"),
         Reduce("a", "sum", "z", "all")),
        ("t", "z", "s", "chosen", "v", "b", "a"),
    ),
}  # fmt: skip


def arrays_of(program, n_rows, n_columns, seed=0):
    rng = np.random.default_rng(seed)
    shapes = {FULL: (n_rows, n_columns), ROW: (n_columns,), COLUMN: (n_rows,), SINGLE: (1,)}
    inputs = []
    for _, dtype, layout in program.inputs:
        if dtype == "int64":
            inputs.append(rng.integers(0, n_columns, shapes[layout]))
        elif dtype == "bool":
            inputs.append(rng.random(shapes[layout]) < 0.5)
        else:
            inputs.append(rng.normal(size=shapes[layout]).astype(dtype))
    return inputs, [
        np.full(shapes[program.layout(name)], 7, dtype)
        for name, dtype in zip(program.outputs, program.output_dtypes, strict=True)
    ]


@pytest.mark.parametrize("what", PROGRAMS)
def test_the_compiled_loop_gives_what_numpy_gives_line_by_line(what):
    program = PROGRAMS[what]
    loop = row_loop(program)
    for shape in ((1, 1), (5, 3), (70, 300), (3, 5000)):
        inputs, outs = arrays_of(program, *shape)
        twins = [out.copy() for out in outs]
        wrong = loop.run(*inputs, *outs, *loop.scratch(shape[1]), *shape)
        assert wrong in (None, -1)
        loop.twin(*inputs, *twins, *loop.scratch(shape[1]), *shape)
        for out, twin in zip(outs, twins, strict=True):
            np.testing.assert_allclose(out, twin, rtol=2e-4, atol=1e-4 if out.dtype == np.float32 else 1e-10)


@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 3, 5), (2, 1, 7), (1, 3, 1), (3, 2, 5000)])
def test_operands_and_sums_of_a_cycle_come_again_after_each_turn(shape):
    turns, n_cycle, n_columns = shape
    program = Program(
        (("x", "float32", FULL), ("b", "float32", "cycle")),
        (step("y", "x * b", "x", "b"), Reduce("s", "sum", "y", "cycle"), Reduce("t", "sum", "y", "all")),
        ("y", "s", "t"),
    )
    rng = np.random.default_rng(0)
    x, b = rng.normal(size=shape).astype(np.float32), rng.normal(size=n_cycle).astype(np.float32)
    loop = row_loop(program)
    for run in (loop.run, loop.twin):
        y, s, t = np.empty((turns * n_cycle, n_columns), np.float32), np.empty(n_cycle, np.float32), np.empty(1, "f")
        run(x.reshape(y.shape), b, y, s, t, *loop.scratch(n_columns, n_cycle), *y.shape)
        wanted = x * b[:, None]
        np.testing.assert_array_equal(y.reshape(shape), wanted)
        np.testing.assert_allclose(s, wanted.sum(axis=(0, 2)), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(t[0], wanted.sum(), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_nan_of_either_sign_is_the_largest_and_the_smallest(sign):
    program = PROGRAMS["softmax, with the smallest"]
    loop = row_loop(program)
    x = np.arange(40.0, dtype=np.float32).reshape(4, 10)
    x[0, 3], x[1, 2], x[2, 5] = np.copysign(np.float32(np.nan), np.float32(sign)), np.inf, -np.inf
    outs = [np.empty((4, 10), np.float32), np.empty(4, np.float32), np.empty(4, np.float32)]
    loop.run(x, *outs, *loop.scratch(10), 4, 10)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(outs[2], np.min(x, axis=1))
    assert np.isnan(outs[0][0]).all()
    np.testing.assert_allclose(outs[0][3].sum(), 1.0, rtol=1e-6)


def test_a_label_outside_the_columns_is_told_by_its_row():
    program = PROGRAMS["a loss with its gradient"]
    loop = row_loop(program)
    inputs, outs = arrays_of(program, 5, 3)
    for label, row in ((3, 4), (-1, 2)):
        labels = np.zeros(5, np.int64)
        labels[row] = label
        for run in (loop.run, loop.twin):
            assert run(inputs[0], labels, inputs[2], *outs, *loop.scratch(3), 5, 3) == row


def test_equal_programs_share_one_loop_and_what_is_cheap_is_not_kept():
    program = PROGRAMS["softmax, with the smallest"]
    assert row_loop(program) is row_loop(Program(program.inputs, program.lines, program.outputs))
    assert "kept_e" in source_of(program)  # exp is dear, and wanted again when the sum is there
    loss = source_of(PROGRAMS["a loss with its gradient"])
    assert "kept_e" in loss
    assert "kept_hot" not in loss
    assert "kept_" not in source_of(Program(program.inputs, SOFTMAX[:3], ("s",)))


@pytest.mark.parametrize(
    ("inputs", "lines", "outputs", "words"),
    [
        ((("x", "int32", FULL),), (step("y", "x + x", "x"),), ("y",), "layout|intermediate|hold"),
        ((("x", "float32", "diagonal"),), (step("y", "x + x", "x"),), ("y",), "layout"),
        ((("x", "int64", FULL),), (step("y", "x + x", "x"),), ("y",), "layout"),
        ((("x", "float32", FULL),), (step("y", "x + z", "x", "z"),), ("y",), "not there"),
        ((("x", "float32", FULL),), (step("x", "x + x", "x"),), ("x",), "different identifiers"),
        ((("x", "float32", FULL),), (step("y", "x + x", "x"),), ("x",), "names of its lines"),
        ((("x", "float32", FULL),), (Reduce("s", "max", "x", "all"),), ("s",), "compared along rows"),
        ((("x", "bool", FULL),), (Reduce("s", "sum", "x", "all"),), ("s",), "floats"),
        ((("c", "float32", COLUMN),), (Reduce("s", "sum", "c", "cycle"),), ("s",), "lies entry by entry"),
        ((("x", "float32", FULL),), (Reduce("s", "sum", "x", "all"), step("y", "x / s", "x", "s")), ("y",), "all rows"),
        ((("x", "float32", ROW),), (step("y", "x + x", "x"),), ("y",), "no output"),
        ((("x", "float32", FULL),), (Cast("y", "x", "int8"),), ("y",), "cast"),
    ],
)
def test_what_no_loop_can_hold_is_refused(inputs, lines, outputs, words):
    with pytest.raises(KernelError, match=words):
        Program(inputs, lines, outputs)


def chained(n):
    """A function of a function, n deep."""
    names = ["x", *(f"y{i}" for i in range(n))]
    lines = tuple(step(y, f"tanh({x}) + {x}", x) for x, y in pairwise(names))
    return Program((("x", "float32", FULL),), lines, (names[-1],))


def test_where_one_long_function_waits_for_another_the_pass_is_cut_into_stretches():
    assert "held_" not in source_of(chained(1))
    source = source_of(chained(2))
    assert source.count("for column in") == 2
    assert f"range(0, n_columns, {ENTRIES})" in source
    loop = row_loop(chained(2))
    assert [row.size for row in loop.scratch(10)] == [10]
    assert [row.size for row in loop.scratch(10**6)] == [ENTRIES]


def test_a_chain_of_any_depth_has_few_stretches():
    program = chained(40)
    assert source_of(program).count("for column in") <= MOST
    x = np.linspace(-1, 1, 600, dtype=np.float32)[None]
    y, twin = np.empty((2, 1, 600), np.float32)
    loop = row_loop(program)
    loop.run(x, y, *loop.scratch(600), 1, 600)
    loop.twin(x, twin, *loop.scratch(600), 1, 600)
    np.testing.assert_allclose(y, twin, rtol=1e-5)
