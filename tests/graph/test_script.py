"""`lab.script`: what a function gives as Python, its graph gives; what it cannot say is refused with its line."""

import linecache

import numpy as np
import pytest

import lab
from lab import tree
from lab.autograd.tensor import Tensor
from lab.graph import parse, verify
from lab.graph.compiled import run_compiled
from lab.graph.execute import run_arrays
from lab.graph.printing import text_of
from lab.graph.values import Constants
from lab.ops import Composite, records
from tests.graph import scripts
from tests.slices import sliced

ROWS = [pytest.param(f, args, id=f"{f.__name__}-{i}") for f, *rows in scripts.CASES for i, args in enumerate(rows)]


def assert_same(found, wanted):
    """The same containers of the same numbers, and tensors of the same dtype; a number may have been given one."""
    found, structure = tree.flatten(found)
    wanted, expected = tree.flatten(wanted)
    assert structure == expected
    for a, b in zip(found, wanted, strict=True):
        assert isinstance(a, Tensor)
        value = b.numpy() if isinstance(b, Tensor) else np.asarray(b)
        assert a.dtype == value.dtype or (type(b) in (int, float) and a.dtype.kind == "f")
        np.testing.assert_allclose(a.numpy(), value, rtol=1e-6 if a.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize(("f", "args"), ROWS)
def test_a_script_gives_what_the_function_gives(f, args):
    script = lab.script(f)
    assert_same(script(*args), f(*args))
    assert_same(script(*args), f(*args))


@pytest.mark.parametrize(("f", "args"), ROWS)
def test_the_graph_of_a_script_is_legal_and_reads_back(f, args):
    graph = lab.script(f).graph(*args)
    verify(graph)
    constants = Constants()
    text = text_of(graph, constants=constants)
    assert text_of(parse(text, constants.arrays)) == text_of(graph)


COMPILED = [scripts.nested_returns, scripts.newton, scripts.if_in_a_loop, scripts.rows_of_a_tensor, scripts.masks,
            scripts.carried_container, scripts.gradient_inside, scripts.parameters]  # fmt: skip


@pytest.mark.parametrize("f", COMPILED)
def test_the_graph_of_a_script_compiled_gives_the_same(f):
    row = next(rows[0] for known, *rows in scripts.CASES if known is f)
    graph = lab.script(f).graph(*row)
    arrays = [x.numpy() if isinstance(x, Tensor) else x for x in (*row, *graph.captured)]
    for found, wanted in zip(run_compiled(graph, arrays), run_arrays(graph, arrays), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


# --- every op -----------------------------------------------------------------------------------------------------

def source_of_call(record, sample):
    """The source of a function of the operands that calls `lab.NAME` with the parameters of a sample."""
    operands = [f"x{k}" for k in range(len(sample.shapes))]
    params = {k: v for k, v in sample.params.items() if k != getattr(record, "leading", "")}
    given = [f"{k}=PARAMS[{k!r}]" for k in params]
    if record.name == "concatenate" or (isinstance(record, Composite) and record.sequence):
        words = [f"[{', '.join(operands)}]", *given]
    elif isinstance(record, Composite) and record.leading:
        words = [f"PARAMS[{record.leading!r}]", *operands, *given]
    else:
        words = [*operands, *given]
    return f"def f({', '.join(operands)}):\n    return lab.{record.name}({', '.join(words)})\n"


def source_of_branch(record, sample):
    """The same call in both ways of an if, and in a turn of a loop."""
    head, call = source_of_call(record, sample).replace("def f(", "def f(test, ").splitlines()
    value = call.removeprefix("    return ")
    lines = ["out = None", "if test > 0.0:", f"    out = {value}", "else:", f"    out = {value}", "for _ in range(2):",
             f"    again = {value}", "return out, again"]  # fmt: skip
    return "\n    ".join([head, *lines]) + "\n"


def defined(text, name, **names):
    """A function from its source, in a way that `inspect` finds it."""
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    scope = {"lab": lab, **names}
    exec(compile(text, name, "exec"), scope)
    return scope["f"]


OPS = [
    pytest.param(record, sample, id=f"{record.name}-{i}")
    for record in records()
    for i, sample in enumerate(record.samples)
    if not getattr(record, "collective", False)
]


@sliced("sample", every=2, together=True)
@pytest.mark.parametrize(("record", "sample"), OPS)
def test_every_op_of_the_table_goes_through_a_script(record, sample):
    f = defined(source_of_call(record, sample), f"<op {record.name} {id(sample)}>", PARAMS=dict(sample.params))
    xs = [lab.tensor(x) for x in sample.draw()]
    script = lab.script(f)
    assert_same(script(*xs), f(*xs))
    verify(script.graph(*xs))


@sliced("sample", every=2, together=True, offset=1)
@pytest.mark.parametrize(("record", "sample"), OPS)
def test_every_op_of_the_table_stands_in_branches_and_loops(record, sample):
    f = defined(source_of_branch(record, sample), f"<branch {record.name} {id(sample)}>", PARAMS=dict(sample.params))
    xs = [lab.tensor(x) for x in sample.draw()]
    script = lab.script(f)
    assert_same(script(1.0, *xs), f(1.0, *xs))
    graph = script.graph(1.0, *xs)
    verify(graph)
    assert {e.op.name for e in graph.equations} == {"greater", "cond", "scan"}


# --- what it is beside its values ---------------------------------------------------------------------------------


def ops_in(graph):
    """The names of all ops in a graph and the graphs inside it."""
    return [e.op.name for inner in graph.walk() for e in inner.equations]


def test_branches_and_loops_are_regions_and_not_unrolled():
    assert ops_in(lab.script(scripts.one_if).graph(scripts.X))[-1] == "negative"
    for f, args, word in [
        (scripts.one_if, [scripts.X], "cond"),
        (scripts.early_return, [1.0], "cond"),
        (scripts.collatz, [6], "while_loop"),
        (scripts.for_of_argument, [scripts.X, 3], "while_loop"),
        (scripts.set_in_the_loop, [scripts.X], "scan"),
        (scripts.rows_of_a_tensor, [np.ones((3, 2))], "scan"),
    ]:
        graph = lab.script(f).graph(*args)
        assert word in [e.op.name for e in graph.equations]
    assert ops_in(lab.script(scripts.total_takes_the_dtype).graph(scripts.F32)).count("add") == 1


def test_plain_conditions_are_taken_at_once():
    graph = lab.script(scripts.plain_if).graph(scripts.X)
    assert ops_in(graph) == ["multiply"]
    with pytest.raises(ValueError, match="double"):
        lab.script(scripts.plain_if)(1.0, False)


def test_an_operation_of_a_branch_stays_in_it():
    def f(x, n):
        if n > 0:
            return lab.log(x)
        return x

    names = [e.op.name for e in lab.script(f).graph(2.0, 1).equations]
    assert names == ["greater", "cond"]


def test_one_graph_serves_every_value_of_a_kind():
    script = lab.script(scripts.while_of_data)
    for x in (3.0, 9.0, 0.5):
        assert_same(script(x), scripts.while_of_data(x))
    assert len(script.cache) == 1
    script(lab.tensor(3.0))
    script(lab.tensor(np.float32(3.0)))
    assert len(script.cache) == 3


def test_flags_texts_and_none_are_constants_of_the_graph():
    def f(x, how="double", extra=None, minus=False):
        y = x * 2.0 if how == "double" else x
        y = -y if minus else y
        return y if extra is None else y + extra

    script = lab.script(f)
    assert script(1.0) == 2.0
    assert script(1.0, "as it is", minus=True) == -1.0
    assert script(1.0, extra=5.0) == 7.0
    assert len(script.cache) == 3


def test_tensors_from_outside_are_read_at_every_call_wherever_they_stand():
    w = lab.tensor(2.0)
    inside = {"w": [w]}

    def f(x):
        if x > 0.0:
            return lab.exp(w) * x
        for _ in range(3):
            x = x + inside["w"][0]
        return x

    script = lab.script(f)
    assert len(script.graph(1.0).captured) == 1
    for value in (2.0, 3.0):
        w.assign(value)
        assert_same([script(1.0), script(-1.0)], [f(1.0), f(-1.0)])


def test_constants_from_outside_are_frozen():
    scale = [2.0]

    def f(x):
        return x * scale[0]

    script = lab.script(f)
    assert script(1.0) == 2.0
    scale[0] = 3.0
    assert script(1.0) == 2.0
    assert script(lab.tensor(1.0)) == 3.0


def test_an_equation_knows_its_line_of_the_source():
    graph = lab.script(scripts.one_if).graph(scripts.X)
    first = scripts.one_if.__code__.co_firstlineno
    places = [e.origin for inner in graph.walk() for e in inner.equations]
    assert [int(place.rsplit(":", 1)[1]) - first for place in places] == [1, 1, 1, 2, 4]
    assert all(place.startswith(scripts.__file__) for place in places)


def test_an_error_while_it_runs_names_the_line_of_the_source():
    def f(x, i):
        if i > 0:
            return x[i]
        return x[0]

    script = lab.script(f)
    assert script(scripts.X, 1) == -2.0
    with pytest.raises(lab.errors.ShapeError) as caught:
        script(scripts.X, 7)
    assert f"{__file__}:{f.__code__.co_firstlineno + 2}" in caught.value.__notes__[0]


def test_a_script_shows_its_source_and_its_name():
    script = lab.script(scripts.chained)
    assert script.code.splitlines()[0] == "def chained(x):"
    assert repr(script) == "<script chained>"
    assert lab.script(script) is script
    assert repr(scripts.other_script) == "<script other_script>"


def test_results_are_nobodys_memory():
    def f(x, n):
        if n > 0:
            x = x * 1.0
        return x, scripts.X

    x = lab.tensor([1.0, 2.0])
    same, constant = lab.script(f)(x, 0)
    same.value[:] = 9.0
    constant.value[:] = 9.0
    assert x.numpy().tolist() == [1.0, 2.0]
    assert scripts.X.tolist() == [1.0, -2.0]


@pytest.mark.parametrize("x", [-1.0, 1.5, 3.0])
def test_the_gradient_of_a_script_is_that_of_the_function(x):
    script = lab.script(scripts.early_return)
    assert_same(lab.grad(script)(x), lab.grad(scripts.early_return)(x))
    assert_same(lab.grad(lab.grad(script))(x), lab.grad(lab.grad(scripts.early_return))(x))


def test_the_gradient_goes_through_loops_and_to_tensors_from_outside():
    w = lab.tensor(0.5, requires_grad=True)

    def f(x):
        while x < 10.0:
            x = x * (1.0 + w)
        return x

    lab.script(f)(2.0).backward()
    found = w.grad.item()
    w.zero_grad()
    f(2.0).backward()
    assert found == pytest.approx(w.grad.item(), rel=1e-12)
    assert_same(lab.grad(lab.script(scripts.newton))(2.0), lab.grad(scripts.newton)(2.0))


def test_a_script_may_be_traced_and_stand_in_a_block():
    script = lab.script(scripts.while_of_data)
    assert_same(lab.jit(lambda x: script(x * 2.0))(8.0), scripts.while_of_data(16.0))
    with lab.Graph() as g:
        x = lab.placeholder((), "float64", name="x")
        y = script(x)
    assert_same(lab.Session(g).run(y, feed={x: 9.0}), scripts.while_of_data(9.0))


SMOOTH = [
    pytest.param(f, args, id=f"{f.__name__}-{i}")
    for f, *rows in scripts.CASES
    for i, args in enumerate(rows)
    if isinstance(args[0], Tensor) and args[0].dtype.kind == "f" and f is not scripts.guarded_index
    and not any(isinstance(a, bool) for a in args)
    and np.asarray(tree.flatten(f(*args))[0][0]).dtype.kind == "f"
]  # fmt: skip


def first(f):
    """The sum of the first result of a function."""
    return lambda *args: lab.sum(tree.flatten(f(*args))[0][0])


@pytest.mark.parametrize(("f", "args"), SMOOTH)
def test_gradients_go_through_the_regions_of_a_script(f, args):
    wanted = lab.grad(first(f))(*args)
    assert_same(lab.grad(first(lab.script(f)))(*args), wanted)
    assert_same(lab.jit(lab.grad(first(lab.script(f))))(*args), wanted)


@pytest.mark.parametrize("f", [scripts.early_return, scripts.while_of_data, scripts.while_in_a_loop, scripts.one_if])
def test_a_script_is_mapped_over_values_that_go_different_ways(f):
    members = [lab.tensor(x) for x in (0.5, 3.0, 17.0)]
    found = lab.vmap(lab.jit(lab.grad(first(lab.script(f)))))(lab.stack(members))
    assert_same(found, lab.stack([lab.grad(first(f))(x) for x in members]))


def test_branches_by_name_stand_in_a_script_and_in_a_block():
    def f(x):
        y = lab.cond(x > 0.0, lab.sin, lab.cos, x)
        return lab.while_loop(is_below_ten, doubled, y)

    for x in (1.0, -1.0):
        assert_same(lab.script(f)(x), f(lab.tensor(x)))
    with lab.Graph() as g:
        x = lab.placeholder((), "float64", name="x")
        y = f(x)
        slope = lab.gradients(y, x)
    s = lab.Session(g)
    for at in (1.0, -1.0):
        assert_same(s.run([y, slope], feed={x: at}), list(lab.value_and_grad(f)(at)))


def is_below_ten(x):
    return x < 10.0


def doubled(x):
    return x * 2.0


def test_a_number_of_an_enclosing_trace_is_one_in_the_script():
    script = lab.script(scripts.whole_numbers)
    x = lab.tensor(scripts.F32)
    assert_same(lab.jit(script)(x, 5), scripts.whole_numbers(x, 5))


def test_an_own_function_inside_a_transform_is_read_too():
    def piece(x):
        if x.ndim == 0:
            return lab.sin(x)
        return x

    def f(x):
        return lab.grad(piece)(x) + lab.vmap(piece)(lab.stack([x, x]))[1]

    assert_same(lab.script(f)(0.3), f(lab.tensor(0.3)))


def test_a_script_without_tensors_among_its_arguments_runs():
    def f():
        total = 0
        for i in range(4):
            total = total + i
        return total

    assert lab.script(f)() == 6


def test_a_method_may_be_a_script():
    class Scaled:
        def __init__(self):
            self.w = lab.tensor(2.0)

        @lab.script
        def run(self, x):
            if x > 0.0:
                return self.w * x
            return x

    scaled = Scaled()
    assert (scaled.run(3.0), scaled.run(-3.0)) == (6.0, -3.0)
    scaled.w.assign(5.0)
    assert scaled.run(3.0) == 15.0


def test_keywords_and_containers_are_arguments():
    def f(params, *xs, scale=1.0):
        y = params["w"] * xs[0]
        if y > 0.0:
            y = y + xs[1]
        return {"y": y * scale}

    w = {"w": lab.tensor(2.0)}
    assert_same(lab.script(f)(w, 1.0, 3.0, scale=0.5), f(w, 1.0, 3.0, scale=0.5))


def test_the_dtype_of_a_tensor_survives_numbers_that_a_branch_chose():
    def f(x, n):
        k = 1 if n > 2 else 0.5
        return x * k + (n if n > 0 else -n)

    x = lab.tensor(scripts.F32)
    assert lab.script(f)(x, 3).dtype == np.float32
    assert_same(lab.script(f)(x, 1), f(x, 1))


def test_a_traced_cast_to_a_type_of_numpy_is_written_by_its_name():
    graph = lab.make_graph(lambda x: x.astype(np.float32))(1.0)
    assert str(parse(str(graph))) == str(graph)


def test_what_a_script_makes_of_parameters_alone_is_made_anew_in_every_call():
    w = lab.tensor([[1.0, 2.0]], requires_grad=True)
    f = lab.script(_by_transposed)
    _by_transposed.__globals__["WEIGHT"] = w
    x = np.array([[1.0, 1.0]])
    assert f(x).item() == 3.0
    with lab.no_grad():
        w += 2.0
    assert f(x).item() == 7.0


WEIGHT = None


def _by_transposed(x):
    return lab.sum(x @ WEIGHT.T)
