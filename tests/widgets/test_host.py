import json
import re
import threading
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import ipywidgets.widgets.widget as registry
import numpy as np
import plotly.graph_objects as go
import pytest

from lab.errors import ViewError
from widgets.live.host import ChartHost, SceneHost
from widgets.live.library import PICTURES
from widgets.live.pacer import Pacer
from widgets.pictures.chart import Chart
from widgets.pictures.patch import apply
from widgets.pictures.scene import Edge, Node, Scene
from widgets.pictures.tree import tree_of

DECLARED = r"^(?:export )?(?:async )?(?:const|let|function|class) (\w+)"


class Page:
    """What the browser does with the messages of a host, in Python."""

    def __init__(self, host: Any) -> None:
        self.host, self.sent = host, 0
        self.reload()
        host.send = self.receive

    def reload(self) -> None:
        state = self.host.get_state()
        self.tree, self.seq = json.loads(state["picture"]), state["seq"]

    def receive(self, content: dict[str, Any], buffers: list[bytes]) -> None:
        self.sent += 1
        body = json.loads(buffers[0])
        if content["whole"]:
            self.tree = body
        else:
            assert content["seq"] == self.seq + 1
            self.tree = apply(self.tree, body)
        self.seq = content["seq"]

    def say(self, content: Any) -> None:
        self.host._received(self.host, content, [])


@pytest.fixture
def pacer() -> Pacer:
    return Pacer(lambda: 0.0, thread=False)


def scene(x: float, n: int = 2) -> Scene:
    nodes = tuple(Node(str(i), x + 90 * i, 0, 64, 36, f"n{i}") for i in range(n))
    return Scene(nodes, tuple(Edge(f"e{i}", str(i), str(i + 1)) for i in range(n - 1)), caption="Run: nodes.")


@pytest.fixture
def host(pacer: Pacer) -> Iterator[SceneHost]:
    made = SceneHost(scene(0), pacer=pacer)
    yield made
    made.close()


def wanted(picture: Scene | Chart, text: str = "") -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(json.dumps(tree_of(picture)))
    return {**tree, "text": text or picture.caption}


def test_the_first_picture_is_in_the_state_that_opens_the_widget(host):
    assert json.loads(host.get_state()["picture"]) == wanted(scene(0))


def test_a_shown_picture_arrives_as_a_patch(host, pacer):
    page = Page(host)
    host.show(scene(5, 3), "three nodes")
    pacer.pump()
    assert page.tree == wanted(scene(5, 3), "three nodes")
    assert page.seq == 1


def test_a_flood_is_one_message_and_the_last_picture_wins(host, pacer):
    page = Page(host)
    for i in range(1000):
        host.show(scene(float(i)))
    pacer.pump()
    assert page.sent == 1
    assert page.tree == wanted(scene(999.0))


def test_showing_the_same_again_sends_nothing(host, pacer):
    page = Page(host)
    host.show(scene(0))
    pacer.pump()
    assert page.sent == 0


def test_a_reloaded_page_gets_the_current_picture_and_goes_on_from_there(host, pacer):
    page = Page(host)
    host.show(scene(1))
    pacer.pump()
    page.tree, page.seq = None, -1
    page.reload()
    assert page.tree == wanted(scene(1))
    host.show(scene(2))
    pacer.pump()
    assert page.tree == wanted(scene(2))


def test_a_page_that_missed_a_message_gets_the_whole_picture(host, pacer):
    page = Page(host)
    host.send = lambda content, buffers: None
    host.show(scene(1))
    pacer.pump()
    host.send = page.receive
    page.say({"resync": page.seq})
    pacer.pump()
    assert page.tree == wanted(scene(1))
    assert page.seq == 2


def test_acknowledgements_bring_the_host_level_with_the_page(host, pacer):
    Page(host)
    host.show(scene(1))
    pacer.pump()
    assert host.ahead == 1
    host._received(host, {"ack": 1}, [])
    assert host.ahead == 0
    host._received(host, {"ack": 99}, [])
    assert host.ahead == 0


def test_selecting_calls_back_with_the_learners_id_and_only_for_nodes_there_are(host):
    chosen = []
    host.on_select(chosen.append)
    for content in ({"select": "#1"}, {"select": "#nobody"}, {"select": 3}, {"unknown": 1}, "noise", None):
        host._received(host, content, [])
    assert chosen == ["1"]


def test_a_host_refuses_a_picture_of_the_other_kind(host):
    with pytest.raises(ViewError, match="SceneHost draws a Scene"):
        host.show(Chart(go.Figure()))


def test_a_wrong_picture_is_refused_where_it_is_shown_and_the_old_one_stays(host, pacer):
    page = Page(host)
    with pytest.raises(ViewError, match="an edge names a node"):
        host.show(Scene((), (Edge("e", "a", "b"),)))
    pacer.pump()
    assert page.tree == wanted(scene(0))


def test_pictures_shown_from_many_threads_end_with_one_of_the_last(host, pacer):
    page = Page(host)

    def flood(base: int) -> None:
        for i in range(50):
            host.show(scene(float(base + i)))
            pacer.pump()

    threads = [threading.Thread(target=flood, args=(1000 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    host.send_now()
    assert page.tree["nodes"]["#0"]["x"] in {1000.0 * k + 49 for k in range(4)}
    assert page.seq == host.get_state()["seq"]


def test_points_of_a_chart_call_back_with_trace_and_point(pacer):
    host, points = ChartHost(Chart(go.Figure(go.Scatter(y=[1, 2]))), pacer=pacer), []
    host.on_point(lambda trace, point: points.append((trace, point)))
    for content in ({"point": [0, 1]}, {"point": [0]}, {"point": ["0", 1]}, {"point": None}):
        host._received(host, content, [])
    assert points == [(0, 1)]
    host.close()


def test_a_growing_chart_sends_little(pacer):
    def curve(n: int) -> Chart:
        return Chart(go.Figure(go.Scatter(x=np.arange(float(n)), y=np.sqrt(np.arange(float(n))))), "Run: a root.")

    host = ChartHost(curve(2000), pacer=pacer)
    page = Page(host)
    host.show(curve(2010))
    assert 0 < host.send_now() < 600
    assert page.tree == wanted(curve(2010))
    host.close()


def test_a_closed_host_leaves_no_widget_behind_and_takes_no_more_pictures(pacer):
    SceneHost(scene(0), pacer=pacer).close()  # the library of the kernel stays
    before = set(registry._instances)
    hosts = [SceneHost(scene(0), pacer=pacer) for _ in range(20)]
    for host in hosts:
        host.dispose()
    assert set(registry._instances) == before
    hosts[0].show(scene(1))
    assert pacer.pump() is None


def test_many_charts_share_one_library(pacer):
    hosts = [ChartHost(Chart(go.Figure()), pacer=pacer) for _ in range(3)]
    assert len({host.plotly for host in hosts}) == len({host.library for host in hosts}) == 1
    for host in hosts:
        assert len(json.dumps(host.get_state(), default=str)) < 20_000
        host.close()


@pytest.mark.parametrize("what", ["fold", "pin", "find"])
def test_a_page_is_told_what_somebody_listens_to_and_nothing_else(pacer, what):
    host, heard = SceneHost(scene(0), pacer=pacer), []
    assert host.get_state()["listens"] == []
    for _ in range(2):
        getattr(host, f"on_{what}")(heard.append)
    assert host.get_state()["listens"] == [what]
    key = next(iter(tree_of(scene(0))["nodes"]))
    host._received(host, {what: key}, [])
    assert heard == [key if what == "find" else key[1:]] * 2
    host.close()


def test_the_files_of_the_page_stand_in_one_scope_without_getting_into_each_others_way():
    folder = files("widgets") / "frontend"
    sources = {name: (folder / name).read_text(encoding="utf-8") for name in (*PICTURES, "patch.js", "player.js")}
    found = [name for text in sources.values() for name in re.findall(DECLARED, text, re.MULTILINE)]
    assert sorted(found) == sorted(set(found))
    for name, text in sources.items():  # an import over several lines would lose its first line only
        assert all(line.endswith('";') for line in text.splitlines() if line.startswith("import ")), name
