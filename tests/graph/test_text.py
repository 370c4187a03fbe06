"""The text of a graph is the graph: what is printed reads back, and what cannot be read is said by line."""

import numpy as np
import pytest

import lab
from lab.errors import GraphError
from lab.graph.execute import run_arrays
from lab.graph.ir import Graph, Var
from lab.graph.parsing import number_of, parse
from lab.graph.printing import text_of
from lab.graph.regions import COND, SCAN, WHILE
from lab.graph.values import Constants
from lab.graph.verify import verify
from lab.shapes import Spec
from tests.graph.graphs import CASES, IDS, of_gradient, of_sample
from tests.slices import sliced


def read_back(graph: Graph) -> Graph:
    constants = Constants()
    return parse(text_of(graph, origins=True, constants=constants), constants.arrays)


@sliced("i", every=2)
@pytest.mark.parametrize(("name", "i"), CASES, ids=IDS)
def test_the_graph_of_every_op_and_of_its_gradient_reads_back(name, i):
    for made in (of_sample(name, i), of_gradient(name, i)):
        if made:
            graph, xs = made
            verify(graph)
            again = read_back(graph)
            assert again == Graph(graph.inputs, graph.equations, graph.outputs)
            assert [e.origin for e in again.equations] == [e.origin for e in graph.equations]
            for a, b in zip(run_arrays(graph, xs), run_arrays(again, xs), strict=True):
                np.testing.assert_array_equal(a, b)


def test_names_of_variables_and_their_numbers_are_the_same_thing():
    words = [str(Var(n, Spec((), np.dtype(float)))) for n in range(20_000)]
    assert len(set(words)) == len(words)
    assert [number_of(w) for w in words] == list(range(20_000))
    assert words[247] == "in_"  # "in" would end the graph


@pytest.mark.parametrize(
    "value",
    [0.1, -0.0, 1e-300, float("inf"), -float("inf"), 5, -3, True, np.float32(0.1), np.array([np.nan, np.inf, -0.0]),
     np.zeros((0, 3)), np.array([True, False]), np.array(7, np.uint8), np.arange(100.0)],
)  # fmt: skip
def test_numbers_and_arrays_come_back_as_the_same_bits(value):
    graph = lab.make_graph(lambda x: lab.where(x > 0.0, value, x))(np.float64(1.0))
    assert read_back(graph) == graph


LOOP = """
graph(a:f64[] b:i64[]) { let
    c:f64[] d:i64[] = while_loop(a, b, n_fixed=0) {
        test = graph(a:f64[] b:i64[]) { let
            c:bool[] = less(b, 3)
          in (c) }
        body = graph(a:f64[] b:i64[]) { let
            c:f64[] = multiply(a, 2.0)
            d:i64[] = add(b, 1)
          in (c, d) }
    }
    e:bool[] = greater(c, 10.0)
    f:f64[] = cond(e, c) {
        then = graph(a:f64[]) { let
            b:f64[] = negative(a)
          in (b) }
        otherwise = graph(a:f64[]) { let
          in (a) }
    }
    g:f64[] h:f64[3] = scan(f, f64[3]{1.0, 2.0, 3.0}, n_fixed=0, n_carry=1, length=3, reverse=False) {
        body = graph(a:f64[] b:f64[]) { let
            c:f64[] = add(a, b)
          in (c, c) }
    }
  in (g, h, f, d) }
""".strip()


def test_branches_and_loops_are_graphs_inside_a_graph():
    graph = parse(LOOP)
    assert str(graph) == LOOP
    assert [e.op for e in graph.equations if e.op.several] == [WHILE, COND, SCAN]
    outs = run_arrays(graph, [np.asarray(1.0), np.asarray(0)])
    assert [x.tolist() for x in outs] == [14.0, [9.0, 11.0, 14.0], 8.0, 3]
    outs = run_arrays(graph, [np.asarray(2.0), np.asarray(0)])
    assert [x.tolist() for x in outs] == [-10.0, [-15.0, -13.0, -10.0], -16.0, 3]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("graph(a:f64[]) { let\n b:f64[] = tan(a)\n in (b)", 3, "is expected"),
        ("graph(a:f64[]) { let\n b:f64[] = eval(a)\n in (b) }", 2, "no op is called eval"),
        ("graph(a:f64[]) { let\n b:f64[] = tan(z)\n in (b) }", 2, "defined variable"),
        ("graph(a:f64[]) { let\n a:f64[] = tan(a)\n in (a) }", 2, "defined twice"),
        ("graph(a:f99[]) { let in (a) }", 1, "no dtype"),
        ("graph(a:f64[999999,999999]) { let in (a) }", 1, "entries"),
        ("graph(a:f64[]) { let\n b:f64[] = tan(`id`)\n in (b) }", 2, "begins with"),
        ("graph() { let\n b:f64[3] = tan(f64[3]{1.0, 2.0})\n in (b) }", 2, "has 3 entries"),
        ("graph() { let\n b:f64[9] = tan(const0:f64[9])\n in (b) }", 2, "not among the 0 constants"),
        ("graph(a:f64[]) { let in (a) } more", 1, "the end of the text"),
        ("graph(a:f64[2]) { let\n b:f64[2] = getitem(a, index=" + 99 * "(" + "\n in (b) }", 2, "deeper"),
        ("", 1, "graph is expected"),
        ("graph(a:f64[]) { let\n b:f64[] = tan(x=1, a)\n in (b) }", 2, "operands stand before"),
        ("graph(a:i8[]) { let\n b:i8[] = add(a, i8[]{300})\n in (b) }", 2, "out of bounds"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(text, line, words):
    with pytest.raises(GraphError, match=words) as caught:
        parse(text)
    assert f"line {line} of the text" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 3


def test_only_a_text_is_read():
    with pytest.raises(GraphError, match="given: int"):
        parse(3)
