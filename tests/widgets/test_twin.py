import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from lab.errors import ViewError
from widgets.pictures import theme
from widgets.pictures.chart import Chart
from widgets.pictures.geometry import edge_shape
from widgets.pictures.measure import clip, node_size, text_width
from widgets.pictures.scene import EDGE_STATES, NODE_KINDS, NODE_STATES, Edge, Mark, Node, Scene
from widgets.pictures.twin import svg_of

NASTY = [
    "</script><script>alert(1)</script>",
    "emoji 🧠👩‍👩‍👧",
    "עברית \u202eabc",
    "nul\0here",
    "x" * 10_000,
    "a\nb\tc",
    "<b>&amp;\"'",
    "__proto__",
    "100% {braces}",
    "\ud800 lone",
    "e\u0301\u200b",
    ".",
    "]]>",
]
NAMESPACE = "{http://www.w3.org/2000/svg}"


def parse(svg: str) -> ET.Element:
    return ET.fromstring(svg.encode("utf-8"))


@pytest.mark.parametrize("text", NASTY)
def test_a_scene_with_any_text_is_well_formed_and_holds_it_as_text(text):
    nodes = (Node(text, 0, 0, 90, 60, text, text, text, aria=text), Node("b", 200, 0, 90, 60, "b"))
    svg = svg_of(Scene(nodes, (Edge(text, text, "b", label=text),), caption=text, title=text))
    root = parse(svg)
    assert {element.tag.removeprefix(NAMESPACE) for element in root.iter()} <= {
        "svg", "title", "desc", "rect", "g", "path", "text", "circle",
    }  # fmt: skip
    assert len(svg) < 100_000


@pytest.mark.parametrize("text", NASTY)
def test_a_chart_with_any_text_is_well_formed(text):
    figure = go.Figure(go.Bar(x=[text, "b"], y=[1, 2], name=text), layout=theme.axes(text, text))
    assert parse(svg_of(Chart(figure, text, text))).tag == f"{NAMESPACE}svg"


def test_a_scene_names_itself_to_screen_readers():
    root = parse(svg_of(Scene((Node("a", 0, 0, 64, 36, "x"),), caption="Run: one node.", title="a graph")))
    assert root.get("role") == "img"
    assert root.get("aria-label") == "a graph"
    assert root.findtext(f"{NAMESPACE}title") == "a graph"
    assert root.findtext(f"{NAMESPACE}desc") == "Run: one node."


@pytest.mark.parametrize("kind", NODE_KINDS)
@pytest.mark.parametrize("state", NODE_STATES)
def test_every_kind_in_every_state_draws(kind, state):
    svg = svg_of(Scene((Node("a", 0, 0, 80, 60, "label", "sub", "grad 0.0", kind=kind, state=state),), selected="a"))
    assert [t.text for t in parse(svg).iter(f"{NAMESPACE}text")] == ["label", "sub", "grad 0.0"]


def test_states_differ_without_colour():
    def shapes(**changes: str) -> str:
        svg = svg_of(Scene((Node("a", 0, 0, 80, 60, "label", state=changes.get("node", "idle")),
                            Node("b", 0, 200, 80, 60, "label")),
                           (Edge("e", "a", "b", state=changes.get("edge", "forward")),)))  # fmt: skip
        for colour in theme.COLOURS["light"].values():
            svg = svg.replace(colour, "#")
        return svg

    assert len({shapes(node=state) for state in NODE_STATES}) == len(NODE_STATES)
    kept = [state for state in EDGE_STATES if state not in ("idle", "done")]
    assert len({shapes(edge=state) for state in kept}) == len(kept)


def test_no_gradient_yet_and_gradient_zero_differ():
    zero, none = (svg_of(Scene((Node("a", 0, 0, 80, 60, "x", "1.0", g),))) for g in ("grad 0.0", ""))
    assert "grad 0.0" in zero
    assert "grad" not in none


def test_a_wrong_scene_is_refused_here_too():
    with pytest.raises(ViewError):
        svg_of(Scene((), (Edge("e", "a", "b"),)))


def test_an_empty_scene_says_so():
    assert "nothing yet" in svg_of(Scene(title="empty"))
    assert "pass 3 has not begun" in svg_of(Scene(title="empty", instead="pass 3 has not begun"))


def paths(svg: str) -> list[str]:
    return [element.get("d", "") for element in parse(svg).iter(f"{NAMESPACE}path")]


def test_a_line_breaks_where_a_value_is_not_a_number():
    figure = go.Figure(go.Scatter(y=[1.0, 2.0, math.nan, 3.0, math.inf, 4.0, 5.0], mode="lines"))
    assert max(path.count("M") for path in paths(svg_of(Chart(figure)))) == 3


def bars(svg: str, colour: str) -> list[ET.Element]:
    return [element for element in parse(svg).iter(f"{NAMESPACE}rect") if element.get("fill") == colour]


def test_bars_are_as_high_as_their_values_say():
    first = theme.COLORWAY["light"][0]
    heights = [float(b.get("height")) for b in bars(svg_of(Chart(go.Figure(go.Bar(x=["a", "b"], y=[1, 2])))), first)]
    assert heights[1] == pytest.approx(2 * heights[0], abs=0.2)


def test_flat_bars_with_a_base_lie_end_to_end():
    figure = go.Figure(go.Bar(y=["r", "r"], x=[2.0, 3.0], base=[0.0, 2.0], orientation="h"))
    first, second = bars(svg_of(Chart(figure)), theme.COLORWAY["light"][0])
    assert float(first.get("x")) + float(first.get("width")) == pytest.approx(float(second.get("x")), abs=0.2)


def test_the_bars_of_a_histogram_hold_every_value():
    figure = go.Figure(go.Histogram(x=np.repeat([1.0, 2.0, 3.0], [1, 2, 3]), nbinsx=3))
    heights = [float(b.get("height")) for b in bars(svg_of(Chart(figure)), theme.COLORWAY["light"][0])]
    assert [round(h / heights[0]) for h in heights] == [1, 2, 3]


def test_a_heat_map_draws_a_cell_a_value_and_nothing_for_nan():
    figure = go.Figure(go.Heatmap(z=[[1.0, 2.0], [math.nan, 4.0]]))
    fills = {element.get("fill") for element in parse(svg_of(Chart(figure))).iter(f"{NAMESPACE}rect")}
    assert len(fills - {theme.COLOURS["light"]["surface"]}) == 3


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "uint8"])
def test_packed_columns_of_every_dtype_are_drawn(dtype):
    figure = go.Figure(go.Scatter(x=np.arange(5, dtype=dtype), y=np.arange(5, dtype=dtype), mode="lines"))
    assert max(path.count("L") for path in paths(svg_of(Chart(figure)))) == 4


def test_a_logarithmic_axis_has_powers_of_ten():
    figure = go.Figure(go.Scatter(y=[1e-4, 1e-2, 1.0, 100.0]), layout=theme.axes("step", "loss", yaxis={"type": "log"}))
    texts = [t.text for t in parse(svg_of(Chart(figure))).iter(f"{NAMESPACE}text")]
    assert {"0.01", "1", "100"} <= set(texts)


@pytest.mark.parametrize(
    ("numbers", "wanted"), [([0.06, 0.9], {"0.1", "0.2", "0.5"}), ([2.0, 2.4], {"2", "2.2", "2.4"})]
)
def test_a_logarithmic_axis_of_less_than_a_power_of_ten_has_numbers_too(numbers, wanted):
    figure = go.Figure(go.Scatter(y=numbers), layout=theme.axes("step", "loss", yaxis={"type": "log"}))
    texts = [t.text for t in parse(svg_of(Chart(figure))).iter(f"{NAMESPACE}text")]
    assert wanted <= set(texts)


def test_ticks_stand_where_the_figure_asks_for_them():
    layout = theme.axes("layer", "mean", xaxis={"dtick": 3, "tick0": 1}, yaxis={"type": "category"})
    figure = go.Figure(go.Scatter(x=[1, 5, 9], y=["a", "b", "c"]), layout=layout)
    texts = [t.text for t in parse(svg_of(Chart(figure))).iter(f"{NAMESPACE}text")]
    assert {"1", "4", "7"} <= set(texts)
    assert not {"2", "2.5", "3", "5", "6"} & set(texts)


def test_two_panels_keep_to_their_halves():
    layout = theme.axes(xaxis={"domain": [0, 0.45]}, xaxis2={"domain": [0.55, 1]}, yaxis2={"anchor": "x2"})
    traces = [go.Bar(x=["a"], y=[1]), go.Bar(x=["b"], y=[1], xaxis="x2", yaxis="y2")]
    svg = svg_of(Chart(go.Figure(traces, layout=layout)))
    left, right = (bars(svg, theme.COLORWAY["light"][i])[0] for i in (0, 1))
    assert float(left.get("x")) + float(left.get("width")) < 320 < float(right.get("x"))


def test_a_kind_that_is_not_drawn_is_named():
    assert "a trace of kind pie is only drawn live" in svg_of(Chart(go.Figure(go.Pie(values=[1, 2]))))


@pytest.mark.parametrize("figure", [go.Figure(), go.Figure(go.Scatter()), go.Figure(go.Histogram(x=[])),
                                    go.Figure(go.Heatmap(z=[])), go.Figure(go.Scatter(y=[3.0]))])  # fmt: skip
def test_charts_with_next_to_nothing_draw(figure):
    assert parse(svg_of(Chart(figure))).tag == f"{NAMESPACE}svg"


def test_nodes_are_as_wide_as_their_text_within_limits():
    assert node_size("a") == (64.0, 36.0)
    assert node_size("m" * 500)[0] == 240.0
    assert node_size("x", "y", "z")[1] > node_size("x", "y")[1] > node_size("x")[1]
    assert node_size("rank 0", kind="rank")[0] == node_size("rank 0", kind="rank")[1]


@pytest.mark.parametrize("text", NASTY)
def test_clipped_text_fits(text):
    assert text_width(clip(text, 80.0)) <= 80.0
    assert "\n" not in clip(text, 80.0)


def nodes_of(svg: str) -> list[ET.Element]:
    return [g for g in parse(svg).iter(f"{NAMESPACE}g") if g.find(f"{NAMESPACE}title") is not None]


FRAME = Node("f", 100, 60, 300, 140, "encoder", "12 operations", kind="frame", fold="open")
INSIDE = Node("a", 100, 70, 80, 40, "x * w")
FAR = Node("b", 400, 60, 80, 40, "z")
LINE = Edge("e", "a", "b", label="3.0")


def test_a_frame_lies_under_the_edges_and_outer_frames_under_inner_ones():
    inner = FRAME._replace(id="i", width=150, height=90, label="block")
    svg = svg_of(Scene((INSIDE, inner, FRAME, FAR), (LINE,)))
    nodes = {node.id: node for node in (INSIDE, FAR)}
    order = ["<title>encoder", "<title>block", edge_shape(LINE, nodes).line, "<title>x * w"]
    places = [svg.index(part) for part in order]
    assert places == sorted(places)
    first = nodes_of(svg)[0].findall(f".//{NAMESPACE}text")
    assert [text.text for text in first] == ["encoder", "12 operations"]
    assert all(text.get("text-anchor") is None for text in first)
    assert float(first[0].get("y")) == -55


@pytest.mark.parametrize("kind", ["group", "frame"])
def test_what_can_be_opened_and_what_can_be_closed_differ_in_shape(kind):
    svgs = [svg_of(Scene((FRAME._replace(kind=kind, fold=fold),))) for fold in ("closed", "open", "")]
    assert [svg.count("M-3.5 0H3.5") for svg in svgs] == [1, 1, 0]
    assert ["M0 -3.5V3.5" in svg for svg in svgs] == [True, False, False]


def test_what_stands_out_has_a_heavier_line_and_all_else_fades():
    scene = Scene((INSIDE, FAR, Node("c", 400, 160, 80, 40, "other")), (LINE, Edge("o", "a", "c", label="9.0")))
    lit = svg_of(Scene(scene.nodes, scene.edges, lit=frozenset({"a", "b", "e"})))
    widths = {g.findtext(f"{NAMESPACE}title"): g for g in nodes_of(lit)}
    assert [widths[name].get("opacity") for name in ("x * w", "z", "other")] == [None, None, "0.4"]
    assert [widths[name].find(f"{NAMESPACE}rect").get("stroke-width") for name in ("z", "other")] == ["3", "1.3"]
    numbers = {t.text: t.get("opacity") for t in parse(lit).iter(f"{NAMESPACE}text")}
    assert (numbers["3.0"], numbers["9.0"]) == (None, "0.4")
    assert "opacity" not in svg_of(scene)


def test_a_pin_is_on_what_is_pinned_and_on_nothing_else():
    svg = svg_of(Scene((INSIDE, FAR), pinned=frozenset({"b"})))
    assert [g.find(f"{NAMESPACE}g") is not None for g in nodes_of(svg)] == [False, True]


@pytest.mark.parametrize("mode", theme.THEMES)
def test_in_high_contrast_nothing_is_half_seen_through(mode):
    nodes = tuple(Node(name, x, 0, 60, 40, name, kind="backward_span") for name, x in (("a", 0), ("b", 200)))
    edges = (Edge("ab", "a", "b", label="3.0"),)
    marks = (Mark("i", "ideal_backward", 0, 60, 40, 9),)
    svg = svg_of(Scene(nodes, edges, marks=marks, lit=frozenset({"a"})), mode)
    strong = mode.startswith("contrast")
    assert ('" opacity="' not in svg) is strong
    assert ('stroke-width="5"' in svg) is strong


def test_a_line_of_many_points_is_drawn_to_its_end():
    y = np.random.default_rng(0).random(3000)
    svg = svg_of(Chart(go.Figure(go.Scatter(x=np.arange(3000), y=y, mode="lines"))))
    path = max(re.findall(' d="([^"]*)"', svg), key=len)
    assert len(path) > 20_000
    assert path.count("L") == 2999
    assert "…" not in path


def test_the_legend_has_every_line_in_as_many_rows_as_it_takes():
    names = [f"{k}.{what}" for k in range(6) for what in ("weight", "bias")]
    few, many = (
        svg_of(Chart(go.Figure([go.Scatter(x=[1, 2], y=[1, 2], name=name) for name in some])))
        for some in (names[:2], names)
    )
    assert all(f">{name}<" in many for name in names)
    tall = [float(re.search('viewBox="0 0 640 ([0-9.]+)"', svg)[1]) for svg in (few, many)]
    assert tall[1] == tall[0] + 18


def test_what_lies_beyond_an_axis_is_not_drawn_over_what_stands_around_it():
    figure = go.Figure(go.Scatter(x=[1, 2, 3], y=[1.0, 1e30, 1.0]))
    figure.update_yaxes(type="log", range=[-1, 2])
    inner = ET.fromstring(svg_of(Chart(figure))).find("{*}svg")
    assert inner.get("overflow") == "hidden"
    top, height = float(inner.get("y")), float(inner.get("height"))
    assert 0 < top < top + height < 320
    figure.update_yaxes(range=[-1, 31])
    assert ET.fromstring(svg_of(Chart(figure))).find("{*}svg") is None


def test_the_legend_of_a_still_scene_has_its_marks_in_rows_below_it():
    marks = (("op", ""), ("toned output", "result"), ("done", "gradient complete"), ("pin", "pinned"), ("backward", ""),
             ("backward_span:active", "the bar that finished last"), ("rank", "a rank"))  # fmt: skip
    bare = Scene((Node("a", 0, 0, 64, 36, "x"),))
    plain, svg = svg_of(bare), svg_of(replace(bare, legend=marks))
    assert all(f">{words or theme.KIND_WORDS[mark]}<" in svg for mark, words in marks)
    assert f'd="{theme.MARKS["done"]}"' in svg
    assert f'd="{theme.MARKS["pin"]}"' in svg
    tall = [float(re.search('viewBox="0 0 [0-9.]+ ([0-9.]+)"', text)[1]) for text in (plain, svg)]
    rows = len({t.get("y") for t in parse(svg).iter(f"{NAMESPACE}text") if t.text in dict(marks).values()})
    assert rows >= 3
    assert tall[1] > tall[0] + 22 * rows


@pytest.mark.parametrize("kind", ["linear", "log"])
def test_ticks_have_the_texts_that_the_figure_gives_them_and_those_beyond_the_axis_are_left_out(kind):
    ticks = {"type": kind, "tickvals": [1, 10, 10_000], "ticktext": ["one", "ten", "many"]}
    figure = go.Figure(go.Scatter(x=[1, 10], y=[0.0, 1.0]), layout={"xaxis": ticks})
    still = svg_of(Chart(figure, "", "chart"))
    assert ">one<" in still
    assert ">ten<" in still
    assert ">many<" not in still
