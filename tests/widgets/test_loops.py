"""What pictures make of a recording in which graphs with branches and loops were made and run."""

import numpy as np
import pytest

import lab
from tests.transforms.test_control import PAIRS, POINTS
from tests.widgets.test_rough_edges import VIEWS, made
from widgets import GraphView

X = np.stack(POINTS)
RUNS = {
    "run": lambda f: lab.jit(f)(lab.tensor(POINTS[0], requires_grad=True)).backward(),
    "traced gradient": lambda f: lab.jit(lab.grad(f))(POINTS[0]),
    "traced hessian": lambda f: lab.jit(lab.hessian(f))(POINTS[0]),
    "traced for members": lambda f: lab.jit(lab.vmap(lab.grad(f)))(X),
    "tangents": lambda f: lab.jvp(lab.jit(f), (POINTS[0],), (POINTS[1],)),
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", ["cond", "scan", "while_loop"])
def test_every_view_folds_a_recording_with_branches_and_loops(name, run):
    with lab.record() as rec:
        RUNS[run](PAIRS[name][0])
    for view in VIEWS:
        shown = made(VIEWS[view], rec)
        assert shown.picture_at(len(rec)) is not None
        assert shown.text_at(len(rec)) is not None


def test_a_loop_that_a_graph_ran_is_drawn_turn_by_turn_as_plain_code_is():
    def f(x):
        return lab.scan(lambda c, row: (lab.sin(c) * row, None), x, np.array([1.0, 2.0]))[0]

    x = lab.tensor(0.5, requires_grad=True, name="x")
    texts = []
    for g in (f, lab.jit(f)):
        x.zero_grad()
        with lab.record() as rec:
            g(x).backward()
        texts.append(GraphView(rec).text_at(len(rec)))
    assert texts[0] == texts[1]
    assert texts[0].count("sin(") == 2


def test_a_traced_loop_is_a_box_with_an_arrow_to_each_result():
    def f(x):
        carry, ys = lab.scan(lambda c, row: (c * x, c), x, np.array([1.0, 2.0]))
        return carry + ys.sum()

    with lab.record() as rec:
        lab.jit(lab.grad(f))(POINTS[0][0])
    text = GraphView(rec).text_at(len(rec))
    assert "= scan(" in text
    assert text.count("= result(") == 2
