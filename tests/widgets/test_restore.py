"""What a reloaded page is told of all widgets: little enough to arrive within the 4 seconds that it waits."""

from __future__ import annotations

import json
from typing import Any

import comm
import ipywidgets as ipw
import pytest
from ipywidgets.widgets.widget import _instances

from lab.errors import ViewError
from tests.widgets.golden import falling, training
from widgets import LossView
from widgets.board import Dashboard
from widgets.live import restore
from widgets.live.host import ChartHost, Host
from widgets.live.library import plotly_gz, plotly_library
from widgets.live.pacer import PACER
from widgets.pictures.patch import Json

MOST_BYTES_OF_A_DASHBOARD = 52_000
MOST_WIDGETS_OF_A_DASHBOARD = 64
"""With a style and a layout for each control."""


class Control:
    """A page's control comm."""

    def __init__(self) -> None:
        self.sent: list[tuple[dict[str, Any], list[Any]]] = []

    def on_msg(self, asked: Any) -> None:
        self.asked = asked

    def send(self, data: dict[str, Any], buffers: list[Any]) -> None:
        self.sent.append((data, buffers))


def restored(widget: Any) -> dict[str, Json]:
    state: dict[str, Json] = restore.states()[0]["states"][widget.model_id]["state"]
    return state


def sizes(known: set[str]) -> tuple[int, int]:
    """Number and bytes of the widgets that are new."""
    states = restore.states()[0]["states"]
    new = {key: state for key, state in states.items() if key not in known}
    return len(new), len(json.dumps(new))


def test_a_page_that_asks_for_all_widgets_gets_them_in_one_message():
    label = ipw.Label("here", layout=ipw.Layout(width="3px"))
    control = Control()
    restore.opened(control, {"metadata": {"version": "1.0.0"}})
    control.asked({"content": {"data": {"method": "request_states"}}})
    [(data, buffers)] = control.sent
    assert data["method"] == "update_states"
    assert len(buffers) == len(data["buffer_paths"])
    assert set(data["states"]) == {key for key, widget in _instances.items() if widget.comm is not None}
    told = data["states"][label.model_id]
    assert (told["model_name"], told["model_module"]) == ("LabelModel", "@jupyter-widgets/controls")
    assert told["state"]["value"] == "here"
    assert told["state"]["layout"] == f"IPY_MODEL_{label.layout.model_id}"
    assert data["states"][label.layout.model_id]["state"]["width"] == "3px"
    assert "height" not in data["states"][label.layout.model_id]["state"]
    label.close()


def test_a_page_of_another_protocol_is_refused():
    with pytest.raises(ViewError, match="another protocol"):
        restore.opened(Control(), {"metadata": {"version": "2.0.0"}})


def test_the_first_picture_lets_the_kernel_answer_so():
    view = LossView(training(falling(5)))
    assert view.widget is not None
    assert comm.get_comm_manager().targets[restore.TARGET] is restore.opened
    view.dispose()


def test_the_answer_does_not_grow_with_what_the_pictures_show():
    short, long = (LossView(training(falling(n))) for n in (5, 1500))
    a, b = (len(json.dumps(restored(view.host), default=str)) for view in (short, long))
    assert abs(a - b) < 50
    for view in (short, long):
        view.dispose()


def test_a_place_in_a_reloaded_page_that_asks_gets_the_whole_picture():
    view = LossView(training(falling(5)))
    host: ChartHost = view.host
    state, sent = restored(host), []
    assert (state["picture"], state["seq"]) == ("", host._number)
    assert state["library"] == host.library
    host.send = lambda content, buffers: sent.append((content, json.loads(buffers[0])))
    with PACER._turn:
        host._received(host, {"resync": state["seq"]}, [])
        host.send_now()
    [(content, tree)] = sent
    assert content["whole"]
    assert tree == json.loads(host.get_state()["picture"])
    view.dispose()


def test_plotly_stays_out_of_the_answer_until_a_chart_asks(monkeypatch):
    reference = plotly_library()
    library = _instances[reference.removeprefix("anywidget:")]
    assert "code" not in restored(library)
    assert restored(library)["version"] == library.version
    sent = []
    monkeypatch.setattr(library, "send_state", lambda key: sent.append(library.get_state(key)))
    library._received(library, {"wants": "code"}, [])
    [state] = sent
    assert bytes(state["code"]) == plotly_gz()


def test_a_dashboard_is_few_widgets_and_little_to_tell():
    import lab
    from lab.nn import mlp

    train, _ = lab.data.digits()
    run = lab.fit(mlp(64, 8, 10, rng=0), train, epochs=1)
    run.wait()
    first = Dashboard(run)  # libraries of the page come with the first and stay
    assert first.widget is not None
    known = set(_instances)
    second = Dashboard(run)
    assert second.widget is not None
    n_widgets, n_bytes = sizes(known)
    assert sum(isinstance(_instances[key], Host) for key in set(_instances) - known) == 2
    assert n_widgets <= MOST_WIDGETS_OF_A_DASHBOARD
    assert n_bytes <= MOST_BYTES_OF_A_DASHBOARD
    for made in (first, second):
        made.dispose()
