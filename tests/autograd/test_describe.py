"""help(lab.tanh): made from the op's record, and its example runs."""

import doctest
import pickle
import subprocess
import sys

import pytest

import lab
from lab.autograd.describe import describe
from lab.ops import NAMES, PRIMITIVES, record


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"concatenate"}))  # which takes a list: autograd/joining.py
def test_the_docstring_of_every_op_of_the_lab_tells_its_rules_and_its_example_runs(name):
    op, function = record(name), getattr(lab, name)
    text = function.__doc__
    assert text == describe(op)
    if name in PRIMITIVES:
        assert op.formula in text
        assert all((op.rule_text(i) or "none") in text for i in range(len(op.arguments)))
    assert all(f"    {parameter}: " in text and "a parameter;" not in text for parameter in op.defaults)
    collective = name in PRIMITIVES and op.collective  # whose example would need an axis
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert bool(test.examples) == (name not in {"dropout", "random_uniform"} and not collective)
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test)
    assert runner.failures == 0


def test_an_op_says_where_it_belongs_and_travels():
    assert (lab.tanh.__module__, lab.tanh.__qualname__) == ("lab", "tanh")
    assert pickle.loads(pickle.dumps(lab.tanh)) is lab.tanh


def test_the_names_of_the_lab_are_those_for_its_users():
    private = [name for name in dir(lab) if name.startswith("_")]
    assert private == ["__doc__", "__version__"]
    assert {"tensor", "tanh", "record", "nn", "fit"} <= set(dir(lab))


def test_help_of_the_whole_lab_can_be_read_before_anything_has_run():
    code = """
import pydoc, lab
text = pydoc.plain(pydoc.render_doc(lab))
listed = [line.strip().partition("(")[0] for line in text.splitlines()]
assert not {"tanh", "grad", "vmap", "jit", "scan", "make_graph", "fit", "record"} - {*listed}, text[:2000]
assert "last_run" not in dir(lab)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
