"""Passes that are written in a cell: what is wrong with one is told in three lines, and its name stands in them."""

from dataclasses import replace

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, GraphError
from lab.graph.passes import PASSES, graph_pass

WRONG = {
    "nothing": lambda graph: None,
    "text": lambda graph: "x",
    "no equations": lambda graph: replace(graph, equations=()),
    "the other order": lambda graph: replace(graph, equations=graph.equations[::-1]),
    "no outputs": lambda graph: replace(graph, outputs=()),
    "a number among equations": lambda graph: replace(graph, equations=(*graph.equations, 3)),
}


@pytest.fixture(autouse=True)
def table():
    before = dict(PASSES)
    yield
    PASSES.clear()
    PASSES.update(before)


@pytest.mark.parametrize("what", WRONG)
def test_a_pass_that_makes_what_is_no_graph_is_named(what):
    graph_pass("dead code")(WRONG[what])
    with pytest.raises(GraphError, match="dead code") as caught:
        lab.measure_passes(lambda x: lab.exp(x) * 2.0 + lab.exp(x), np.ones(3), repeats=1)
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize("call", [lambda: graph_pass(3), lambda: graph_pass(len), lambda: graph_pass("x")(3)])
def test_what_is_no_pass_is_not_entered(call):
    before = dict(PASSES)
    with pytest.raises(ArgumentError, match=r"a pass (has a name|is a function)\ngiven: .*\nhint:  @graph_pass"):
        call()
    assert before == PASSES


@pytest.mark.parametrize("executor", ["interpreted", "compiled", "parallel"])
def test_a_key_that_is_an_argument_gives_what_it_gives_eager_and_another_gives_another(executor):
    def dropped(x, key):
        return lab.dropout(x, key, rate=0.5) * 2.0

    x, jitted = np.ones((20, 20)), lab.jit(dropped, executor=executor)
    keys = [lab.random_key(k) for k in range(3)]
    outs = [jitted(x, key).numpy() for key in keys]
    for key, out in zip(keys, outs, strict=True):
        np.testing.assert_array_equal(out, np.asarray(dropped(lab.tensor(x), key)))
    assert len({out.tobytes() for out in outs}) == 3
    assert len(jitted.cache) == 1
