"""The gallery shows every view there is; that the page works is seen in tests/browser/test_gallery.py."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re

import pytest

from lab.events import Recording
from tests.widgets.golden import falling, product_plus_x, training
from widgets import views
from widgets.gallery.exhibits import EXHIBITS, gallery_page
from widgets.gallery.runs import Runs
from widgets.view import View


def all_views() -> set[type]:
    """Every class under widgets/views that is a View and can be made."""
    found = set()
    for module in pkgutil.walk_packages(views.__path__, "widgets.views."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            mine = issubclass(kind, View) and kind.__module__.startswith("widgets.views.")
            found |= {kind} if mine and not inspect.isabstract(kind) else set()
    return found


def test_every_view_hangs_in_the_gallery():
    assert {exhibit.view for exhibit in EXHIBITS} == all_views()


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.title)
def test_every_exhibit_names_a_run_and_says_what_to_look_for(exhibit):
    assert isinstance(inspect.getattr_static(Runs, exhibit.run), object)
    assert exhibit.about.endswith(".")
    assert [e.title for e in EXHIBITS].count(exhibit.title) == 1


class Prepared:
    """Runs that took place before."""

    def __init__(self):
        self.graph = self.network = product_plus_x()
        self.training = training(falling(30))
        self.nothing = Recording()


def test_a_page_has_a_player_for_each_exhibit_and_one_for_what_is_empty():
    chosen = [e for e in EXHIBITS if e.run in {"graph", "training"}]
    page = gallery_page(Prepared(), chosen)  # type: ignore[arg-type]
    titles = re.findall(r"<h2[^>]*>([^<]*)</h2>", page)
    assert titles == [*(e.title for e in chosen), "Nothing yet"]
    assert page.count('class="lab-player"') == len(chosen) + 1


def test_a_run_takes_place_once_and_says_so():
    said = []
    with Runs(said.append) as runs:
        assert runs.graph is runs.graph
        assert len(runs.network) > len(runs.graph) > 10
    assert said == ["Building a small graph and walking it back ...", "One step of a small network ..."]
