"""MemoryView: a line for each way, points on what ran again, an upright where backward begins."""

from __future__ import annotations

from lab.events import MemoryBegun, MemorySampled, PeakFound
from tests.widgets.golden import recorded
from widgets import MemoryView

M = 2**20


def experiment():
    def run(way, phases):
        return [MemorySampled(way, k, phase, "sin", n * M) for k, (phase, n) in enumerate(phases, 1)]

    return recorded([
        MemoryBegun(("plain", "in_pieces")),
        *run("plain", [("forward", 1), ("forward", 2), ("backward", 2), ("backward", 1)]),
        PeakFound("plain", 3 * M, 2, 0),
        *run("in_pieces", [("forward", 1), ("backward", 1), ("replay", 2), ("backward", 1)]),
        PeakFound("in_pieces", 2 * M, 2, 1),
    ])  # fmt: skip


def traces(rec, position):
    return {t.name: t for t in MemoryView(rec).picture_at(position).figure.data}


def test_each_way_is_a_line_in_a_unit_that_reads_well():
    rec = experiment()
    drawn = traces(rec, len(rec))
    assert list(drawn["plain"].y) == [1, 2, 2, 1]
    assert list(drawn["in pieces"].y) == [1, 1, 2, 1]
    assert MemoryView(rec).picture_at(len(rec)).figure.layout.yaxis.title.text == "MiB"


def test_what_ran_again_has_points_in_the_colour_of_its_line():
    rec = experiment()
    drawn = traces(rec, len(rec))
    assert (list(drawn["replayed"].x), list(drawn["replayed"].y)) == ([3], [2])
    assert drawn["replayed"].meta == drawn["in pieces"].meta != drawn["plain"].meta


def test_an_upright_stands_where_backward_begins():
    rec = experiment()
    drawn = traces(rec, len(rec))
    assert list(drawn["backward of plain begins"].x) == [3, 3]
    assert list(drawn["backward of in_pieces begins"].x) == [2, 2]
    assert "backward of plain begins" not in traces(rec, 3)


def test_the_words_say_what_is_held_now_and_then_the_peaks():
    rec = experiment()
    view = MemoryView(rec)
    assert view.text_at(3) == "plain, forward of sin: 2 MiB are held."
    assert view.text_at(len(rec)).splitlines() == [
        "in pieces: at most 2 MiB, 2 operations ran, 1 of them again for backward.",
        "plain: at most 3 MiB, 2 operations ran.",
    ]
