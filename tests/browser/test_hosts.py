"""Scenes and charts live in a real JupyterLab: what a learner sees, clicks and types."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.harness import LabPage
from tests.browser.shots import Shots
from tests.browser.waiting import still
from widgets.pictures.geometry import edge_shape, lanes
from widgets.pictures.scene import Edge, Node, Scene

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

Open = Callable[..., LabPage]

SETUP = """
import numpy as np, plotly.graph_objects as go, ipywidgets as ipw
from IPython.display import display
from widgets.pictures import theme
from widgets.pictures.chart import Chart
from widgets.live.host import ChartHost, SceneHost
from widgets.pictures.scene import Edge, Node, Scene, Token

def graph(step=0, label="x * y"):
    back = step > 0
    return Scene(
        (Node("x", 100, 40, 86, 68 if back else 52, "x", "3.0", "grad 5.0" if back else "", kind="leaf", state="done"),
         Node("y", 260, 40, 86, 52, "y", "4.0", kind="leaf"),
         Node("m", 180, 160, 100, 52, label, "12.0", state="active" if back else "done"),
         Node("z", 100, 280, 110, 68, "m + x", "15.0", "grad 1.0", kind="output", state="new"),
         Node("c", 330, 160, 72, 36, "2.0", kind="constant"),
         Node("g", 460, 60, 130, 52, "encoder", "12 operations x 3", kind="group", state="waiting"),
         Node("r", 460, 180, 90, 90, "rank 0", "(64, 128)", kind="rank", state="trouble"),
         Node("w1", 610, 50, 110, 52, "w1", "norm 0.2", tone=0.1),
         Node("w2", 610, 150, 110, 68, "w2", "norm 0.9", "grad 0.0", tone=0.95)),
        (Edge("xm", "x", "m", label="3.0", state="backward" if back else "forward"),
         Edge("ym", "y", "m", state="none"),
         Edge("mz", "m", "z", label="12.0", state="backward" if back else "forward"),
         Edge("xz", "x", "z", bends=((60, 160),), state="done"), Edge("gr", "g", "r"),
         Edge("a", "w1", "w2"), Edge("b", "w1", "w2", state="backward"), Edge("loop", "c", "c")),
        caption="Run: z = x * y + x. The gradient of z flows back along both edges into x.", title="the graph of z",
        legend=(("leaf", "a tensor you made"), ("op", "operation"), ("forward", ""), ("backward", ""), ("none", ""),
                ("done", ""), ("active", ""), ("waiting", ""), ("trouble", "")))

steps = np.arange(200.0)
def loss(n=200):
    traces = [go.Scatter(x=steps[:n], y=(np.exp(-steps / 50) + 0.03 * np.sin(steps))[:n], name="train"),
              go.Scatter(x=steps[:n], y=(np.exp(-steps / 60) + 0.1)[:n], name="validation", line={"dash": "dash"})]
    return Chart(go.Figure(traces, layout=theme.axes("step", "loss")), "Run: the loss falls.", "loss")
chosen, points = [], []
"""
SCENE = "host = SceneHost(graph()); host.on_select(chosen.append); host"
CHART = "chart = ChartHost(loss()); chart.on_point(lambda *point: points.append(point)); chart"


def wait_scene(lab: LabPage, n: int = 1) -> None:
    lab.page.wait_for_function("n => document.querySelectorAll('.lab-scene .lab-node[data-key]').length >= n", arg=n)


def wait_chart(lab: LabPage, n: int = 1) -> None:
    lab.page.wait_for_function("n => document.querySelectorAll('.lab-plot .main-svg .xtick').length >= n", arg=n)


def wait_label(lab: LabPage, key: str, text: str) -> None:
    lab.page.wait_for_function(
        "([key, text]) => document.querySelector(`.lab-node[data-key='#${key}'] .lab-label`)?.textContent === text",
        arg=[key, text],
    )


def test_scene_and_chart_are_drawn_light_and_dark_in_few_bytes_without_any_other_server(lab_page: Open, shots: Shots):
    lab = lab_page(SETUP, SCENE, CHART, fresh=True)
    wait_scene(lab, 9)
    wait_chart(lab)
    still(lab.page)
    assert lab.cell_errors() == []
    for theme in ("Light", "Dark"):
        lab.theme(f"JupyterLab {theme}")
        lab.page.wait_for_function(
            "mode => [...document.querySelectorAll('.lab-root')].every(e => e.dataset.labTheme === mode)",
            arg=theme.lower(),
        )
        ink = {"Light": "rgb(27, 36, 48)", "Dark": "rgb(233, 237, 241)"}[theme]
        lab.page.wait_for_function(
            "ink => [...document.querySelectorAll('.xtick text')].every(e => getComputedStyle(e).fill === ink)",
            arg=ink,
        )
        shots(lab.page.locator(".lab-scene").first, f"scene-{theme.lower()}")
        shots(lab.page.locator(".lab-chart").first, f"chart-{theme.lower()}")
    before = lab.received
    lab.kernel(
        "more = ipw.VBox([SceneHost(graph()) for _ in range(5)] + [ChartHost(loss()) for _ in range(5)])\ndisplay(more)"
    )
    assert lab.kernel("print(len(more.children))") == "10"
    assert before < 2_500_000, "plotly.js once, and little else"
    assert lab.received - before < 500_000, "ten more pictures bring no library with them"
    assert lab.foreign == []
    assert lab.errors == []


def test_a_node_is_chosen_by_mouse_and_by_keyboard_and_no_key_reaches_the_notebook(lab_page: Open, shots: Shots):
    lab = lab_page(SETUP, SCENE)
    wait_scene(lab, 9)
    still(lab.page)
    lab.page.locator('.lab-node[data-key="#m"]').click()
    lab.until("print(chosen)", "['m']")
    cells = lab.page.locator(".jp-Notebook .jp-Cell").count()
    for key in ("x", "b", "a", "d", "d", "0", "z", "Shift+m", "c", "v"):
        lab.page.keyboard.press(key)
    assert lab.page.locator(".jp-Notebook .jp-Cell").count() == cells
    lab.page.keyboard.press("ArrowDown")
    lab.page.keyboard.press("Enter")
    lab.until("print(chosen)", "['m', 'z']")
    expect(lab.page.locator('.lab-node[data-key="#z"]')).to_be_focused()
    expect(lab.page.locator('.lab-node[data-key="#z"]')).to_have_attribute("aria-selected", "true")
    still(lab.page)
    shots(lab.page.locator(".lab-scene").first, "scene-focus")
    lab.page.keyboard.press("Tab")
    expect(lab.page.get_by_role("button", name="zoom in")).to_be_focused()
    world = lab.page.locator(".lab-svg > g")
    before = world.get_attribute("transform") or ""
    lab.page.keyboard.press("Enter")
    expect(world).not_to_have_attribute("transform", before)
    lab.page.keyboard.press("Shift+Tab")
    expect(lab.page.locator('.lab-node[data-key="#z"]')).to_be_focused()
    assert lab.page.locator(".jp-Notebook .jp-Cell").count() == cells
    assert lab.errors == []


def test_pan_zoom_fit_and_tooltip(lab_page: Open, shots: Shots):
    lab = lab_page(SETUP, SCENE)
    wait_scene(lab, 9)
    still(lab.page)
    world = lab.page.locator(".lab-svg > g")
    at_first = world.get_attribute("transform") or ""
    lab.page.locator(".lab-stage").scroll_into_view_if_needed()
    box = lab.page.locator(".lab-stage").bounding_box()
    assert box is not None
    x, y = box["x"] + 12, box["y"] + box["height"] - 12
    lab.page.mouse.move(x, y)
    lab.page.mouse.down()
    lab.page.mouse.move(x + 60, y - 20, steps=4)
    lab.page.mouse.up()
    expect(world).not_to_have_attribute("transform", at_first)
    panned = world.get_attribute("transform") or ""
    lab.page.keyboard.down("Control")
    lab.page.mouse.wheel(0, -120)
    lab.page.keyboard.up("Control")
    expect(world).not_to_have_attribute("transform", panned)
    lab.page.locator("button[aria-label='fit to view']").click()
    expect(world).to_have_attribute("transform", at_first)
    still(lab.page)
    tip = lab.page.locator(".lab-tip")
    lab.page.locator('.lab-node[data-key="#z"]').hover()
    expect(tip, "all that it would say can be read").to_be_hidden()
    for _ in range(2):
        lab.page.locator("button[aria-label='zoom out']").click()
    for key, words in (("z", "m + x\n15.0\ngrad 1.0"), ("g", "encoder\n12 operations x 3"), ("y", "y\n4.0")):
        node = lab.page.locator(f'.lab-node[data-key="#{key}"]')
        node.hover()
        lab.page.wait_for_function("words => document.querySelector('.lab-tip').innerText === words", arg=words)
        still(lab.page)
        assert apart(tip, node.locator(".lab-box").last)
    shots(lab.page, "scene-tooltip")
    assert lab.errors == []


def test_nothing_ever_covers_a_node(lab_page: Open):
    lab = lab_page(SETUP, SCENE)
    wait_scene(lab, 9)
    still(lab.page)
    tools = lab.page.locator(".lab-tools")
    for node in lab.page.locator(".lab-node[data-key]").all():
        assert apart(tools, node)
    node = lab.page.locator('.lab-node[data-key="#z"]')
    node.click()
    expect(lab.page.locator(".lab-tip")).to_be_hidden()


def apart(a: Locator, b: Locator) -> bool:
    """Whether two things in the page do not overlap."""
    one, other = a.bounding_box(), b.bounding_box()
    assert one is not None
    assert other is not None
    beside = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
    return beside or one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]


def test_patches_arrive_a_flood_is_coalesced_and_the_cell_still_ends(lab_page: Open):
    lab = lab_page(
        SETUP,
        SCENE,
        CHART,
        "for i in range(12_000): host.show(graph(label=str(i)))\n"
        "for n in range(1, 201): chart.show(loss(n))\nprint('sent')",
    )
    wait_label(lab, "m", "11999")
    lab.page.wait_for_function("() => document.querySelector('.lab-plot')._fullData?.[0].x.length === 200")
    assert lab.cell_errors() == []
    lab.until("print(host.ahead, chart.ahead)", "0 0")
    sent = int(lab.kernel("print(host.get_state()['seq'] + chart.get_state()['seq'])"))
    assert 2 <= sent < 2_000
    xs, ys = lab.page.evaluate(
        """() => {
             const { x, y } = document.querySelector(".lab-plot")._fullData[0];
             return [Array.from(x), Array.from(y)];
           }"""
    )
    assert lab.kernel(f"f = loss().figure.data[0]; print(list(f.x) == {xs} and list(f.y) == {ys})") == "True"
    assert lab.errors == []


def test_a_lost_message_is_noticed_and_healed(lab_page: Open):
    lab = lab_page(SETUP, SCENE)
    wait_scene(lab, 9)
    lab.kernel(
        "host.send = lambda *a, **k: None\nhost.show(graph(label='lost'))\n"
        "import threading\nwith host._guard: host.send_now()\ndel host.send\nhost.show(graph(step=1, label='after'))"
    )
    wait_label(lab, "m", "after")
    expect(lab.page.locator('.lab-node[data-key="#x"] .lab-gradient')).to_have_text("grad 5.0")
    lab.kernel("host.show(graph(label='and on'))")
    wait_label(lab, "m", "and on")
    assert lab.errors == []


def test_a_picture_appears_while_its_cell_blocks(lab_page: Open):
    gate = (
        "import pathlib, time\ndisplay(SceneHost(graph())); display(ChartHost(loss()))\n"
        "while not pathlib.Path('gate-open').exists(): time.sleep(0.05)\npathlib.Path('gate-open').unlink()"
    )
    lab = lab_page(SETUP, gate, run=False)
    lab.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    wait_scene(lab, 9)
    wait_chart(lab)
    expect(lab.page.locator(".jp-InputPrompt").nth(1)).to_have_text("[*]:")
    (lab.server.root / "gate-open").touch()
    lab.rest()
    assert lab.errors == []


def test_a_point_is_chosen_by_click_and_by_keyboard(lab_page: Open):
    lab = lab_page(SETUP, CHART)
    wait_chart(lab)
    lab.page.locator(".lab-plot").scroll_into_view_if_needed()
    still(lab.page)  # drawn again with the margins that it needs, all is elsewhere
    x, y = lab.page.evaluate(
        """() => {
             const plot = document.querySelector(".lab-plot"), layout = plot._fullLayout, trace = plot._fullData[0];
             const box = plot.getBoundingClientRect();
             return [box.left + layout._size.l + layout.xaxis.d2p(trace.x[100]),
                     box.top + layout._size.t + layout.yaxis.d2p(trace.y[100])];
           }"""
    )
    lab.page.mouse.move(x - 30, y - 30)
    lab.page.mouse.move(x, y, steps=3)
    lab.page.wait_for_function("() => document.querySelector('.lab-plot')._hoverdata?.[0]?.pointNumber === 100")
    lab.page.mouse.click(x, y)
    lab.until("print(points)", "[(0, 100)]")
    lab.page.locator(".lab-plot").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "x", "Enter"):
        lab.page.keyboard.press(key)
    lab.until("print(points)", "[(0, 100), (1, 1)]")
    assert lab.page.locator("[data-title*='loud'], [data-title*='hare']").count() == 0, (
        "nothing offers to send data away"
    )
    assert lab.page.locator(".plotlyjsicon").count() == 0
    assert lab.errors == []


def test_a_reloaded_page_shows_the_current_picture_and_stays_live(lab_page: Open):
    lab = lab_page(SETUP, SCENE, CHART)
    wait_scene(lab, 9)
    lab.kernel("host.show(graph(label='before')); chart.show(loss(50))")
    wait_label(lab, "m", "before")
    lab.reload()
    wait_scene(lab, 9)
    wait_label(lab, "m", "before")
    lab.page.wait_for_function("() => document.querySelector('.lab-plot')?._fullData?.[0].x.length === 50")
    lab.kernel("host.show(graph(label='after')); chart.show(loss(60))")
    wait_label(lab, "m", "after")
    lab.page.wait_for_function("() => document.querySelector('.lab-plot')._fullData[0].x.length === 60")
    assert lab.errors == []


def test_fifty_hosts_come_and_go_and_leave_nothing(lab_page: Open):
    lab = lab_page(SETUP, SCENE, CHART)
    wait_chart(lab)
    still(lab.page)
    count = "import ipywidgets.widgets.widget as w; print(len(w._instances))"
    before = lab.kernel(count)
    models = "() => document.querySelectorAll('.lab-root, .lab-root *').length"
    elements = lab.page.evaluate(models)
    lab.page.evaluate("() => window.jupyterapp.commands.execute('notebook:insert-cell-below')")
    lab.page.evaluate(
        """code => {
             const cell = window.jupyterapp.shell.currentWidget.content.activeCell;
             cell.model.sharedModel.setSource(code);
             return window.jupyterapp.commands.execute("notebook:run-cell").then(() => null);
           }""",
        "hosts = [SceneHost(graph()) for _ in range(40)] + [ChartHost(loss()) for _ in range(10)]\n"
        "many = ipw.VBox(hosts)\ndel hosts\ndisplay(many)",
    )
    lab.page.wait_for_function("() => document.querySelectorAll('.lab-root').length === 52")
    lab.page.wait_for_function("() => document.querySelectorAll('.lab-plot .main-svg .xtick').length >= 11")
    lab.kernel("for host_ in many.children: host_.show(host_.accepts is Scene and graph(step=1) or loss(20))")
    lab.until("print(sum(h.ahead for h in many.children), min(h.get_state()['seq'] for h in many.children))", "0 1")
    lab.kernel("for host_ in many.children: host_.dispose()\nmany.layout.close(); many.close(); del host_")
    lab.page.wait_for_function("() => document.querySelectorAll('.lab-root').length === 2")
    assert lab.kernel(count) == before
    lab.page.wait_for_function(f"elements => ({models})() === elements", arg=elements)
    lab.kernel("host.show(graph(label='alive'))")
    wait_label(lab, "m", "alive")
    assert lab.errors == []


def test_two_views_of_one_host_are_equal_and_both_follow(lab_page: Open):
    lab = lab_page(SETUP, SCENE, "host")
    wait_scene(lab, 18)
    lab.kernel("host.show(graph(step=1, label='both'))")
    lab.page.wait_for_function(
        """() => [...document.querySelectorAll(".lab-node[data-key='#m'] .lab-label")]
                 .filter(e => e.textContent === "both").length === 2"""
    )
    assert lab.errors == []


def test_edges_run_in_the_browser_where_the_svg_twin_draws_them(lab_page: Open):
    code = "print(repr(graph(1)))"
    lab = lab_page(SETUP, "host = SceneHost(graph(1)); host")
    wait_scene(lab, 9)
    still(lab.page)
    scene = eval(lab.kernel(code), {"Scene": Scene, "Node": Node, "Edge": Edge})
    nodes, offsets = {node.id: node for node in scene.nodes}, lanes(scene.edges)
    for edge in scene.edges:
        shape = edge_shape(edge, nodes, offsets.get(edge.id, 0.0))
        drawn = lab.page.locator(f'.lab-edge[data-key="#{edge.id}"]')
        assert drawn.locator(".lab-line").get_attribute("d") == shape.line
        assert drawn.locator(".lab-head").get_attribute("d") == shape.head
