"""TimesView and RootLinkView: lines as measured and as simulated, an upright where they cross, and what is said."""

from __future__ import annotations

from lab.events import (
    CrossingFound,
    LinkFitted,
    RootLinkBegun,
    RootLinkMeasured,
    TimeMeasured,
    TimesBegun,
    TimeSimulated,
)
from tests.widgets.golden import recorded
from widgets import RootLinkView, TimesView

SIZES = (1024, 65536)
LINK = "Simulated links have a latency of 20 µs and 1,500.0 MB/s"


def times(told=False, fitted="ring"):
    events = [TimesBegun("all_reduce", 4, "workers", 2, 3, told)]
    events += [TimeMeasured(name, n, n / 1000 + k) for n in SIZES for k, name in enumerate(("ring", "tree"))]
    events += [LinkFitted(2e-5, 1.5e9, fitted)]
    events += [TimeSimulated(name, n, n / 900 + k) for n in SIZES for k, name in enumerate(("ring", "tree"))]
    events += [CrossingFound("measured", "tree", "ring", 2048.0), CrossingFound("simulated", "tree", "ring", 4096.0)]
    return recorded(events)


def test_each_algorithm_has_a_line_as_measured_and_a_dashed_one_as_simulated():
    rec = times()
    lines = TimesView(rec).picture_at(len(rec)).figure.data
    assert [(t.name, list(t.x), list(t.y)) for t in lines[:4]] == [
        ("ring", [1024, 65536], [1.024, 65.536]), ("ring, simulated", [1024, 65536], [1024 / 900, 65536 / 900]),
        ("tree", [1024, 65536], [2.024, 66.536]), ("tree, simulated", [1024, 65536], [1024 / 900 + 1, 65536 / 900 + 1]),
    ]  # fmt: skip
    assert [t.line.dash for t in lines[:4]] == [None, "dash", None, "dash"]
    assert [(list(t.x), t.line.dash) for t in lines[4:]] == [([2048.0] * 2, "solid"), ([4096.0] * 2, "dot")]


def test_the_caption_says_what_was_measured_and_what_simulated():
    rec = times()
    caption = TimesView(rec).picture_at(len(rec)).caption
    assert "all_reduce on 4 ranks, worker processes on 2 cores: solid lines are measured, medians of 3." in caption
    assert "Dashed: simulation" in caption
    assert "a latency of 20 µs and 1,500.0 MB/s, fitted to ring" in caption
    assert "measured: from 2 KiB on ring beats tree; simulated: from 4 KiB on ring beats tree" in caption
    assert "makes all slower" not in caption
    rec = times(told=True, fitted="")
    caption = TimesView(rec).picture_at(len(rec)).caption
    assert "as given" in caption
    assert "makes all slower" in caption


def test_the_words_begin_with_what_came_last():
    rec = times()
    view = TimesView(rec)
    stops = [int(p) for p in view.stop_positions(rec)]
    assert [view.sentence_at(p) for p in stops] == [
        "ring, 1 KiB: 1.02 ms, measured.", "tree, 1 KiB: 2.02 ms, measured.", "ring, 64 KiB: 65.5 ms, measured.",
        "tree, 64 KiB: 66.5 ms, measured.",
        f"{LINK}, fitted to ring with the smallest and the largest buffer.",
        "Measured: from 2 KiB on ring beats tree.", "Simulated: from 4 KiB on ring beats tree.",
    ]  # fmt: skip


def test_the_link_of_the_root_has_a_line_for_each_plan_in_buffers():
    events = [RootLinkBegun(100)]
    events += [RootLinkMeasured("broadcast", "flat", n, 100 * (n - 1), 0) for n in (2, 4)]
    events += [RootLinkMeasured("all_reduce", "naive", n, 100 * (n - 1), 100 * (n - 1)) for n in (2, 4)]
    rec = recorded(events)
    view = RootLinkView(rec)
    assert [(t.name, list(t.x), list(t.y), t.line.dash) for t in view.picture_at(len(rec)).figure.data] == [
        ("broadcast, flat", [2, 4], [1.0, 3.0], "solid"), ("all_reduce, naive", [2, 4], [2.0, 6.0], "dash"),
    ]  # fmt: skip
    assert view.sentence_at(len(rec)) == (
        "all_reduce by naive, 4 ranks: 6 buffers on the link of rank 0 (sent 300 B, received 300 B)."
    )
