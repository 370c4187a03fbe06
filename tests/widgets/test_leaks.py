"""A hundred views come and go: no widget, tick, thread, or recording is left in the kernel."""

from __future__ import annotations

import gc
import json
import threading
import weakref

import pytest
from ipywidgets.widgets.widget import _instances

import lab
from lab.events import bus
from tests.widgets.golden import falling, product_plus_x, training
from tests.widgets.golden_cluster import launch_of
from tests.widgets.golden_pipeline import pipeline
from tests.widgets.golden_ranks import collective, ranks_of, told, trained
from tests.widgets.test_view import judged, layered, mapped, pushed, stretched, tried, visited
from widgets import (
    BroadcastView,
    ClusterView,
    CollectiveView,
    ContributionView,
    DataParallelView,
    DifferenceView,
    DualView,
    ErrorView,
    GradientView,
    GraphView,
    LayersView,
    LossView,
    PipelineView,
    Player,
    RingView,
    RuleView,
    SideBySide,
    VisitsView,
    VmapView,
    WhyView,
)
from widgets.live.library import Library, PlotlyLibrary
from widgets.live.pacer import PACER

MAKES = {
    "GraphView": lambda: GraphView(product_plus_x()),
    "LossView": lambda: LossView(training(falling(20))),
    "GradientView": lambda: GradientView(training(falling(20))),
    "CollectiveView": lambda: CollectiveView(told(collective("all_reduce", "naive", ranks_of(3))), layout="matrix"),
    "RingView": lambda: RingView(told(collective("all_reduce", "ring", ranks_of(3)))),
    "PipelineView": lambda: PipelineView(pipeline("gpipe", 2, 2, n_steps=1)),
    "ClusterView": lambda: ClusterView(launch_of(2)),
    "DataParallelView": lambda: DataParallelView(trained(2)),
    "ContributionView": lambda: ContributionView(product_plus_x()),
    "DualView": lambda: DualView(pushed()),
    "BroadcastView": lambda: BroadcastView(stretched()),
    "VmapView": lambda: VmapView(mapped()),
    "LayersView": lambda: LayersView(layered()),
    "VisitsView": lambda: VisitsView(visited()),
    "ErrorView": lambda: ErrorView(tried()),
    "RuleView": lambda: RuleView(judged()),
    "WhyView": lambda: WhyView(product_plus_x(), "x"),
    "DifferenceView": lambda: DifferenceView(product_plus_x(), product_plus_x()),
    "Player": lambda: Player(GraphView(product_plus_x())),
    "a player of two": lambda: both(training(falling(10))),
    "SideBySide": lambda: SideBySide(product_plus_x(), product_plus_x(), view=GraphView),
}


def both(rec):
    return Player(LossView(rec), GradientView(rec))


def ticks():
    return sum(tick.ref() is not None for tick in PACER._ticks)


def threads():
    return sorted(t.name for t in threading.enumerate() if t.name.startswith("lab-") and t.name != "lab-pacer")


def opened(make):
    """Made, put into a page, moved, and closed again."""
    thing = make()
    assert thing.widget is not None
    for view in getattr(thing, "views", [thing]):
        view.show(max(1, len(view.recording) // 2))
    if hasattr(thing, "transport"):
        thing.step()
        thing.play()
    recording = weakref.ref(thing.recording)
    thing.dispose()
    return recording


def players_end():
    """Wait for the threads of players: each ends by itself when its player is closed, a moment later."""
    for thread in [t for t in threading.enumerate() if t.name == "lab-player"]:
        thread.join(60)


@pytest.mark.parametrize("name", MAKES)
def test_views_that_were_closed_leave_nothing(name):
    opened(MAKES[name])  # libraries of the page come with the first and stay
    players_end()
    gc.collect()
    widgets, before, running = len(_instances), ticks(), threads()
    recordings = [opened(MAKES[name]) for _ in range(9)]
    players_end()
    gc.collect()
    assert len(_instances) == widgets
    assert ticks() == before
    assert threads() == running
    assert [ref for ref in recordings if ref() is not None] == []


def test_a_view_that_nobody_has_any_more_goes_with_its_recording_though_it_was_followed():
    rec = lab.Recording()
    bus.attach(rec)
    view = GraphView(rec)
    assert view.widget is not None
    assert ticks() >= 1
    view.dispose()
    gone = weakref.ref(view), weakref.ref(rec)
    rec.close()
    del view, rec
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_players_of_one_view_do_not_pile_up(tmp_path):
    view = GraphView(product_plus_x())
    for _ in range(5):
        view.export(tmp_path / "a.html")
        Player(view)
    gc.collect()
    assert len(view.players) == 0


def test_a_hundred_pictures_written_to_files_leave_nothing(tmp_path):
    gc.collect()
    widgets = len(_instances)
    gone = []
    for k in range(100):
        view = GraphView(product_plus_x())
        view.export(tmp_path / ("a.svg" if k % 10 else "a.html"))
        gone.append(weakref.ref(view.recording))
    del view
    gc.collect()
    assert len(_instances) == widgets
    assert [ref for ref in gone if ref() is not None] == []


SHOWN = [LossView, GradientView, GraphView, ClusterView, DataParallelView, PipelineView, RingView]


@pytest.mark.parametrize("kind", SHOWN, ids=lambda kind: kind.__name__)
def test_a_view_in_no_variable_follows_its_recording_to_the_end_and_is_no_longer_kept_then(kind):
    rec = lab.Recording()
    bus.attach(rec)
    before = set(_instances)
    shown = kind(rec)
    assert shown.widget is not None
    host, view = shown.host, weakref.ref(shown)
    del shown
    gc.collect()
    assert view() is not None
    assert "live" in provenance(host)
    (lab.tensor(2.0, requires_grad=True) * 3.0).backward()
    bus.detach(rec)
    rec.close()
    if view() is not None:  # the tick that sees the end; the pacer's own thread may have been faster
        view()._tick()
    assert "live" not in provenance(host)
    assert host.keeps is None  # what else has the view are the controls around its picture
    close_all_but(before)


def test_a_view_in_no_variable_goes_with_its_picture_though_its_recording_is_live():
    rec = lab.Recording()
    bus.attach(rec)
    before = set(_instances)
    view = weakref.ref(shown := GraphView(rec))
    assert shown.widget is not None
    del shown
    close_all_but(before)
    with PACER._turn:
        gc.collect()
    assert view() is None
    bus.detach(rec)


def provenance(host):
    return json.dumps(host._wanted).lower()


def close_all_but(known):
    for key, widget in list(_instances.items()):
        if key not in known and not isinstance(widget, (Library, PlotlyLibrary)):
            widget.close()
