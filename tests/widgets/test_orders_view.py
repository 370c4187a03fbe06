"""OrdersView: another order of additions gives other bits, and each bar is what was measured."""

from __future__ import annotations

import numpy as np

import lab
from lab.parallel import measure_orders
from tests.widgets.golden import recorded
from widgets import OrdersView
from widgets.fold import Stretch
from widgets.pictures.twin import svg_of


def measured(n_times=1):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=200).astype("float32") for _ in range(8)]
    with lab.record() as rec:
        for _ in range(n_times):
            found = measure_orders(arrays, ["naive", "ring", "pairwise"])
    return found, rec


def test_each_bar_is_what_was_measured():
    found, rec = measured()
    chart = OrdersView(rec).picture_at(len(rec))
    inexact, other = chart.figure.data
    assert list(inexact.x) == ["naive", "ring", "pairwise"]
    assert list(inexact.y) == [order.n_inexact for order in found]
    assert list(other.y) == [order.n_other for order in found]
    assert other.name == "unlike naive"
    assert "unlike naive" in svg_of(chart, "light")


def test_measuring_again_begins_anew():
    _, rec = measured(2)
    view = OrdersView(rec)
    assert len(view.state_at(len(rec))) == 3
    one = view.start()
    for k, event in enumerate(rec, 1):
        one = view.fold(one, event)
        assert view.fold_many(view.start(), Stretch(rec, 0, k)) == one


def test_the_words_say_the_last_order_first():
    found, rec = measured()
    said = OrdersView(rec).text_at(len(rec)).splitlines()
    assert said[0].startswith(f"pairwise: {found[2].n_inexact} of 200 entries inexact")
    assert said[-1].startswith("naive: ")
    assert "unlike" not in said[-1]


def test_a_recording_without_orders_says_how_to_get_one():
    assert "OrdersView shows sums in several orders" in OrdersView(recorded([])).text_at(0)
