"""What a script cannot say: each is refused with the line where it stands, as it was written, and a hint."""

import linecache
from itertools import count

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, ConcretizationError, LabError, ScriptError, ShapeError

NUMBERS = count()

HELPERS = """
def bad_helper(x):
    return sum(y for y in x)

def again(x):
    return again(x)

class Box:
    size = 1
"""


def defined(body, head="def f(x):"):
    """The function of a body, its number of lines above it, and the line that is marked by `# <-`."""
    text = f"{HELPERS}\n{head}\n" + "\n".join(f"    {line}" for line in body.strip().splitlines()) + "\n"
    name = f"<refused {next(NUMBERS)}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    scope = {"lab": lab, "np": np, "other": lab.tensor([1.0, 2.0]), "box": type("Box", (), {})(), "items": []}
    exec(compile(text, name, "exec"), scope)
    marked = [(k, line) for k, line in enumerate(text.splitlines(), 1) if "# <-" in line]
    ((number, line),) = marked or [(text.splitlines().index(head) + 1, head)]
    return scope["f"], f"{name}:{number}", line.strip()


# Read before anything runs.
UNREADABLE = {
    "try": "try:  # <-\n    return x\nexcept ValueError:\n    return x",
    "with": "with lab.no_grad():  # <-\n    return x",
    "match": "match x:  # <-\n    case _:\n        return x",
    "comprehension": "return [y for y in x]  # <-",
    "generator": "return sum(y for y in x)  # <-",
    "yield": "y = x\nyield y  # <-",
    "break": "while x > 0.0:\n    break  # <-\nreturn x",
    "continue": "for i in range(3):\n    continue  # <-\nreturn x",
    "lambda": "return lab.grad(lambda y: y)(x)  # <-",
    "a function inside": "def g(y):  # <-\n    return y\nreturn g(x)",
    "a class": "class A:  # <-\n    pass\nreturn x",
    "global": "global z  # <-\nz = x\nreturn x",
    "del": "y = x\ndel y  # <-\nreturn x",
    "an import": "import math  # <-\nreturn x",
    "starred": "return lab.stack(*[x])  # <-",
    "cannot read **": "return lab.sum(x, **{'axis': 0})  # <-",
    "an assignment inside": "return (y := x)  # <-",
    "a loop with else": "while x > 0.0:  # <-\n    x = x - 1.0\nelse:\n    x = x\nreturn x",
    "write to an attribute": "box.y = x  # <-\nreturn x",
    "write to an entry": "x[0] = 1.0  # <-\nreturn x",
    "as in print": "print(x)  # <-\nreturn x",
    "as in items.append": "items.append(x)  # <-\nreturn x",
    "a value that nobody uses": "x + 1.0  # <-\nreturn x",
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_what_cannot_be_read_is_refused_where_it_stands(what):
    f, where, line = defined(UNREADABLE[what])
    with pytest.raises(ScriptError) as caught:
        lab.script(f)
    check(caught.value, what, where, line)


def check(why, what, where, line):
    problem, given, hint = str(why).splitlines()
    assert what.split(":")[0] in problem
    assert problem.endswith(where)
    assert given == f"given: {line}"
    assert hint.startswith("hint:  ")


# Found while it is read for arguments.
ONE, TWO = lab.tensor(1.0), lab.tensor([1.0, 2.0])
UNWRITABLE = {
    "recursion": (ONE, "y = again(x)\nreturn y", "return again(x)"),
    "a generator": (TWO, "return bad_helper(x)", "return sum(y for y in x)"),
    "y is set in one way of the if": (ONE, "if x > 0.0:\n    y = x\nreturn y  # <-"),
    "not the same kind of value in both ways": (
        TWO, "if x[0] > 0.0:\n    y = x\nelse:\n    y = lab.sum(x)\nz = 1.0\nreturn y * z  # <-"),
    "float64 () and float32 ()": (
        ONE, "if x > 0.0:\n    y = x\nelse:\n    y = x.astype('float32')\nreturn y  # <-"),
    "must return the same kind": (TWO, "if x[0] > 0.0:  # <-\n    return x\nreturn lab.sum(x)"),
    "float64 () and None": (ONE, "if x > 0.0:  # <-\n    return x"),
    "float64 () and tuple": (ONE, "if x > 0.0:  # <-\n    return x\nreturn x, x"),
    "y is set in the loop": (ONE, "while x > 0.0:\n    y = x\n    x = x - 1.0\nreturn y  # <-"),
    "y is not the same kind of value in every turn": (
        TWO, "y = 0.0\nwhile x[0] > 0.0:\n    y = y + x  # <-\n    x = x - 1.0\nreturn x"),
    "str before it": (
        ONE, "y = 'a'\nwhile x > 0.0:\n    y = 'b'\n    x = x - 1.0\nreturn x if y == 'a' else -x  # <-"),
    "cannot be left by return": (ONE, "while x > 0.0:\n    return x  # <-\nreturn -x"),
    "by return, at": (ONE, "for i in range(x.astype(int)):\n    return x  # <-\nreturn x"),
    "both sides of x if": (TWO, "return x if x[0] > 0.0 else x[0]  # <-"),
    "both sides of x[0] and": (TWO, "y = x[0] and x  # <-\nreturn y"),
    "turns are decided before the graph runs": (ONE, "while True:  # <-\n    x = x + 1.0\nreturn x"),
    "range needs whole numbers": (ONE, "for i in range(x):  # <-\n    x = x + 1.0\nreturn x"),
    "the step of a range": (ONE, "for i in range(0, 9, x.astype(int)):  # <-\n    x = x + 1.0\nreturn x"),
    "y has no value yet": (ONE, "z = y + x  # <-\ny = z\nreturn y"),
    "nowhere is not known": (ONE, "return nowhere(x)  # <-"),
    "cannot assert": (ONE, "assert x > 0.0  # <-\nreturn x"),
    "assert stands where only the run": (ONE, "if x > 0.0:\n    assert x.ndim == 9  # <-\nreturn x"),
    "raise stands where only the run": (ONE, "if x > 0.0:\n    raise ValueError  # <-\nreturn x"),
    "float() needs numbers": (ONE, "return float(x)  # <-"),
    "max() needs numbers": (ONE, "return max(x, 0.0)  # <-"),
    "a script cannot call print": (ONE, "y = print(x)  # <-\nreturn x"),
    "cannot change a container": (ONE, "y = items.append(x)  # <-\nreturn x"),
    "in needs values that are known": (ONE, "return 1.0 if x in [1.0, 2.0] else x  # <-"),
    "3 values for 2 names": (ONE, "a, b = x, x, x  # <-\nreturn a"),
    "gives nothing back": (ONE, "y = x"),
    "cannot read {x}": (ONE, "return {x}  # <-"),
}  # fmt: skip


@pytest.mark.parametrize("what", UNWRITABLE)
def test_what_has_no_graph_is_refused_where_it_stands(what):
    argument, body, *inside = UNWRITABLE[what]
    f, where, line = defined(body)
    with pytest.raises(ScriptError) as caught:
        lab.script(f)(argument)
    if inside:
        number = HELPERS.splitlines().index(f"    {inside[0]}") + 1
        where, line = f"{where.rsplit(':', 1)[0]}:{number}", inside[0]
    check(caught.value, what, where, line)


def test_a_number_that_must_be_fixed_is_asked_for_by_its_line():
    f, where, line = defined("y = x + np.zeros(n)  # <-\nreturn y", "def f(x, n):")
    with pytest.raises(ConcretizationError) as caught:
        lab.script(f)(TWO, 0)
    check(caught.value, "a number is needed", where, line)


def test_an_error_of_an_op_tells_the_line_in_a_note():
    f, where, line = defined("y = x\nif x[0] > 0.0:\n    y = y + lab.sum(other) * np.ones(3)  # <-\nreturn y")
    with pytest.raises(ShapeError) as caught:
        lab.script(f)(TWO)
    assert caught.value.__notes__ == [f"script: {line}, at {where}"]


def test_the_truth_of_several_entries_is_refused_as_in_python():
    f, where, line = defined("if x > 0.0:  # <-\n    return x\nreturn -x")
    with pytest.raises(ShapeError, match="ambiguous") as caught:
        lab.script(f)(TWO)
    assert line.removesuffix(":") in str(caught.value)
    assert caught.value.__notes__ == [f"script: {line}, at {where}"]


def test_errors_of_plain_python_come_at_once():
    f, _, _ = defined("if x.ndim != 1:\n    raise ValueError(f'{x.ndim} axes')\nreturn x")
    assert lab.script(f)(TWO).shape == (2,)
    with pytest.raises(ValueError, match="0 axes"):
        lab.script(f)(ONE)
    g, _, _ = defined("assert x.shape == (2,), 'two'\nreturn x")
    with pytest.raises(AssertionError, match="two"):
        lab.script(g)(ONE)


def test_a_function_without_a_source_is_refused():
    scope = {}
    exec("def f(x):\n    return x", scope)
    with pytest.raises(ScriptError, match="the source of a function"):
        lab.script(scope["f"])
    with pytest.raises(ScriptError, match="a lambda"):
        lab.script(lambda x: x)
    changed, where, _ = defined("return x")
    name = where.rsplit(":", 1)[0]
    linecache.cache[name] = 1, None, ["\n"] * 7 + ["def g(x):\n", "    return x\n"] * 5, name
    with pytest.raises(ScriptError, match="the source of a function"):
        lab.script(changed)
    for what in (3.0, np.sin, lab.grad):
        with pytest.raises(ScriptError) as caught:
            lab.script(what)(1.0)
        assert len(str(caught.value).splitlines()) == 3


def test_an_argument_that_is_neither_number_nor_constant_is_refused():
    f, _, _ = defined("return x", "def f(x, of):")
    with pytest.raises(ArgumentError, match="cannot take this argument"):
        lab.script(f)(1.0, {1, 2})


def test_a_caught_refusal_leaves_nothing_open():
    f, _, _ = defined("if x > 0.0:\n    y = x\nreturn y")
    script = lab.script(f)
    for _ in range(2):
        with pytest.raises(LabError):
            script(1.0)
    with pytest.raises(ScriptError):
        lab.script(defined("return again(x)")[0])(1.0)
    assert lab.tensor(1.0) + 1.0 == 2.0
