"""The Python file of a graph: NumPy alone runs it, and gives what the graph gives."""

import ast
import dataclasses
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, UnsupportedError
from lab.graph import Graph
from lab.graph.ir import Equation, Literal, Var
from lab.graph.parsing import parse
from lab.graph.regions import FUSED
from lab.interop import export_numpy
from lab.interop.numpy_export import numpy_source
from lab.interop.plain.table import REFUSED
from lab.ops import PRIMITIVES
from lab.shapes import Spec
from tests.graph.test_text import LOOP
from tests.interop.exports import after_passes, draw, expected, models, ops_of, special, table, with_values

RUN = """
import importlib.util, sys
sys.modules["lab"] = sys.modules["numba"] = None
import numpy as np
folder, n = sys.argv[1], int(sys.argv[2])
for i in range(n):
    spec = importlib.util.spec_from_file_location(f"case{i}", f"{folder}/{i}.py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        with np.load(f"{folder}/in{i}.npz") as given:
            outs = module.run(*given.values())
    except Exception as why:
        why.add_note(f"case {i}")
        raise
    np.savez(f"{folder}/out{i}.npz", *(outs if isinstance(outs, tuple) else (outs,)))
"""


def outputs_alone(tmp_path, cases):
    """What the files of these graphs give in a process that has NumPy and not the lab."""
    for i, (_, graph, xs) in enumerate(cases):
        export_numpy(graph, tmp_path / f"{i}.py")
        np.savez(tmp_path / f"in{i}.npz", *xs[: len(graph.inputs) - len(graph.captured)])
    command = [sys.executable, "-I", "-c", RUN, str(tmp_path), str(len(cases))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    for i in range(len(cases)):
        with np.load(tmp_path / f"out{i}.npz") as there:
            yield list(there.values())


def assert_same(name, outs, wanted):
    assert len(outs) == len(wanted), name
    for a, b in zip(outs, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), name
        near = 1e-4 if b.dtype == np.float32 else 1e-11
        scale = np.max(np.abs(b), initial=0.0, where=np.isfinite(b)) if b.dtype.kind == "f" else 0.0
        np.testing.assert_allclose(a, b, near, near * scale, err_msg=name)


def run_source(text):
    """The `run` of a file's text."""
    scope = {"__name__": "exported"}
    exec(compile(text, "exported.py", "exec"), scope)
    return scope["run"]


def test_every_op_of_the_table_its_gradient_and_whole_models_run_with_numpy_alone(tmp_path):
    cases = [*table(REFUSED), *models(), *after_passes(), *special()]
    assert set(PRIMITIVES) - set(REFUSED) <= set().union(*(ops_of(graph) for _, graph, _ in cases))
    for (name, graph, xs), outs in zip(cases, outputs_alone(tmp_path, cases), strict=True):
        assert_same(name, outs, expected(graph, xs))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_by_name_with_its_reason(name):
    a, b = (Var(n, Spec((2,), np.dtype(float))) for n in range(2))
    op = PRIMITIVES[name]
    graph = Graph((a,), (Equation(op, (a,), (b,), dict(op.defaults)),), (b,))
    with pytest.raises(UnsupportedError) as caught:
        numpy_source(graph)
    assert str(caught.value).splitlines()[:2] == [f"{name} cannot be written in NumPy", f"given: {REFUSED[name]}"]
    assert len(str(caught.value).splitlines()) == 3


def test_an_op_of_ones_own_is_written_by_its_formula_and_refused_without_one():
    cube = lab.ops.elementwise("cube", "x", "x * x * x + pi", ["3 * x * x"], reference=lambda x: x**3, doc="Cube.")
    try:
        source = numpy_source(lab.make_graph(lambda x: cube(x) - 1.0)(2.0))
    finally:
        del PRIMITIVES["cube"]
    assert "b = a * a * a + np.pi" in source
    assert run_source(source)(2.0) == 7.0 + np.pi
    rounded = lab.custom_vjp(lambda x: lab.rint(x))
    rounded.defvjp(lambda x: (lab.rint(x), None), lambda kept, ct: (ct,))
    with pytest.raises(UnsupportedError, match="it has no formula"):
        numpy_source(lab.make_graph(rounded)(1.0))


def test_branches_and_loops_become_those_of_python():
    graph = parse(LOOP)
    source = numpy_source(graph)
    for words in ("while True:", "if not e:", "else:", "for m in range(3):"):
        assert words in source
    xs = [np.asarray(1.5), np.asarray(0)]
    for a, b in zip(run_source(source)(*xs), expected(graph, xs), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 3])
def test_scans_of_any_length_and_direction_are_written(length, reverse):
    f = lambda x: lab.scan(lambda c, row: (c * 0.5 + row, c - row), 1.0, x, reverse=reverse)  # noqa: E731
    graph, xs = with_values(f, np.arange(1.0, 1.0 + length))
    for a, b in zip(run_source(numpy_source(graph))(*xs), expected(graph, xs), strict=True):
        np.testing.assert_array_equal(a, b)


def test_numbers_of_python_stay_weak_and_a_jitted_function_is_exported_as_its_graph(tmp_path):
    f = lab.jit(lambda x, n: (x * n + 1.0, n * 2))
    with pytest.raises(ArgumentError, match="its only graph"):
        export_numpy(f, tmp_path / "f.py")
    f(draw(3), 2.0)
    run = run_source(export_numpy(f, tmp_path / "f.py").read_text())
    single, number = run(draw(3), 3.0)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, draw(3) * np.float32(3) + np.float32(1))
    assert (number.dtype, number.item()) == (np.float64, 6.0)
    f(draw(4), 2.0)
    with pytest.raises(ArgumentError, match="2 graphs"):
        export_numpy(f, tmp_path / "f.py")
    with pytest.raises(ArgumentError, match="what is exported is a Graph"):
        export_numpy(abs, tmp_path / "f.py")


def test_results_are_arrays_of_their_own():
    run = run_source(numpy_source(lab.make_graph(lambda x: (x, lab.transpose(x), np.ones(20)))(np.ones((2, 2)))))
    x = np.ones((2, 2))
    for out in run(x):
        out += 1.0
    np.testing.assert_array_equal(x, 1.0)
    np.testing.assert_array_equal(run(x)[2], 1.0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "uint64", "bool"])
@pytest.mark.parametrize("shape", [(), (3,), (5, 7), (0, 3)])
def test_constants_come_back_as_the_same_bits(dtype, shape):
    rng = np.random.default_rng(0)
    array = (rng.standard_normal(shape) * 100).astype(dtype)
    if array.dtype.kind == "f" and array.size > 2:
        array.reshape(-1)[:3] = np.nan, -np.inf, -0.0
    found = run_source(numpy_source(lab.make_graph(lambda: array)()))()
    assert found.dtype == array.dtype
    assert found.tobytes() == array.tobytes()


def test_a_file_says_what_it_takes_and_runs_files_of_arrays(tmp_path):
    graph = lab.make_graph(lambda x, y: lab.sum(x * y))(draw(2, 3), draw(3))
    path = export_numpy(graph, tmp_path / "model.py", names=["pixels", "weights"])
    np.save(tmp_path / "x.npy", draw(2, 3))
    np.save(tmp_path / "y.npy", draw(3))

    def said(*files):
        return subprocess.run([sys.executable, "-I", path, *files], capture_output=True, text=True, check=True).stdout

    assert "run(pixels, weights)" in said()
    assert "pixels:f32[2,3]" in said()
    wanted = float(np.sum(draw(2, 3) * draw(3)))
    assert float(said(tmp_path / "x.npy", tmp_path / "y.npy")) == pytest.approx(wanted, 1e-5)


def test_an_input_of_another_shape_is_refused_by_its_name():
    run = run_source(numpy_source(lab.make_graph(lambda x: x + 1.0)(np.ones(3)), ["pixels"]))
    with pytest.raises(ValueError, match=r"pixels has shape \(2,\), and run takes \(3,\)"):
        run(np.ones(2))


def test_the_text_imports_the_standard_library_and_numpy_and_runs_no_text():
    for _, graph, _ in models():
        tree = ast.parse(numpy_source(graph))
        imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        imported |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        assert imported <= {"base64", "math", "sys", "typing", "numpy"}
        assert not {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} & {"eval", "exec", "compile", "__import__"}
        assert "pickle=True" not in ast.unparse(tree)


HOSTILE = 'x.py:1\nimport os; BAD = 1\r\n"""\\\x0c\u2028\u202ebad = 1 # \x00\ud800'


def test_hostile_origins_and_kinds_stay_remarks():
    graph = lab.make_graph(lambda x: lab.tanh(x) * 2.0)(1.0)
    renamed = tuple(dataclasses.replace(e, origin=HOSTILE) for e in graph.equations)
    hostile = dataclasses.replace(graph, equations=renamed)
    a, b = Var(0, graph.inputs[0].spec), Var(1, graph.inputs[0].spec)
    whole = Graph((a,), (Equation(FUSED, (a,), (b,), {"body": hostile, "kind": HOSTILE}, HOSTILE),), (b,))
    source = numpy_source(whole)
    plain = numpy_source(Graph((a,), (Equation(FUSED, (a,), (b,), {"body": graph, "kind": "k"}),), (b,)))
    assert ast.dump(ast.parse(source)) == ast.dump(ast.parse(plain))
    assert source.encode()  # and it can be written


@pytest.mark.parametrize(
    "name",
    ["a b", "a; import os", "a\n", "", "class", "np", "\uff4e\uff50", "given", "W0", "C12", "run", "float", "__name__",
     "sigmoid", "e\u2028"],
)
def test_names_that_are_no_words_or_that_the_file_uses_are_refused(name):
    graph = lab.make_graph(lambda x: x + np.arange(20.0))(np.ones(20))
    with pytest.raises(ArgumentError, match="the names of 1 inputs cannot be these") as caught:
        numpy_source(graph, [name])
    assert len(str(caught.value).splitlines()) == 3


def test_names_of_variables_make_way_for_those_of_inputs():
    graph = lab.make_graph(lambda x, y: lab.exp(x) - y)(1.0, 2.0)
    run = run_source(numpy_source(graph, ["c", "a"]))
    assert run(0.0, 3.0) == -2.0
    for names in (["x"], ["x", "x"], ["x", "y", "z"]):
        with pytest.raises(ArgumentError, match="names of 2 inputs"):
            numpy_source(graph, names)


def test_text_among_parameters_stays_text():
    a, b = Var(0, Spec((2, 2), np.dtype(float))), Var(1, Spec((2, 2), np.dtype(float)))
    op = PRIMITIVES["contract"]
    params = {"subscripts": "ab->ba"}
    source = numpy_source(Graph((a,), (Equation(op, (a,), (b,), params),), (b,)))
    assert "np.einsum('ab->ba', a, optimize=True)" in source


def test_a_constant_that_numpy_does_not_know_is_refused():
    value = np.ones(3, ml_dtypes.bfloat16)
    a, b = Var(0, Spec((3,), value.dtype)), Var(1, Spec((6,), value.dtype))
    both = Equation(PRIMITIVES["concatenate"], (a, Literal(value)), (b,), {"axis": 0})
    with pytest.raises(UnsupportedError, match="does not know"):
        numpy_source(Graph((a,), (both,), (b,)))


def test_a_file_that_cannot_be_written_leaves_what_was_there(tmp_path):
    path = export_numpy(lab.make_graph(lambda x: x + 1.0)(1.0), tmp_path / "kept.py")
    before = path.read_bytes()
    a, b = (Var(n, Spec((2,), np.dtype(float))) for n in range(2))
    refused = Graph((a,), (Equation(PRIMITIVES["all_reduce"], (a,), (b,), {"axis_name": "i", "op": "sum"}),), (b,))
    with pytest.raises(UnsupportedError):
        export_numpy(refused, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["kept.py"]
