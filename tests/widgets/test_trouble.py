"""The first nan or infinity on a graph: told from when it happened, marked, and lit with what went in when asked."""

from __future__ import annotations

import numpy as np
import pytest

import lab
from widgets import GraphView, Player


@pytest.fixture(params=[60, 0], ids=["small", "by module"])
def view(request):
    x = lab.tensor([2.0, 1.0, 0.0], requires_grad=True, name="x")
    with lab.record(detail="value") as rec, np.errstate(all="ignore"):
        (lab.sqrt(x * x) - 1.0).sum().backward()
    return GraphView(rec, most=request.param)


WORDS = "First nan or infinity: 1 infinity of 3 entries in the backward rule of sqrt"


def test_the_caption_and_the_text_tell_it_from_when_it_happened(view):
    place = lab.first_nonfinite(view.recording).position
    assert WORDS not in view.picture_at(place).caption
    assert view.picture_at(place + 1).caption.startswith(WORDS)
    assert "with multiply from 0.0 to 4.0, incoming gradient 1.0" in view.picture_at(place + 1).caption
    assert WORDS in view.text_at(place + 1).splitlines()
    assert WORDS not in view.text_at(place)


def test_a_line_of_code_that_ends_with_a_comma_and_negative_numbers_read_well():
    x = lab.tensor([-1.0, 2.0], requires_grad=True, name="x")
    with lab.record(detail="value") as rec, np.errstate(all="ignore"):
        kept = [
            lab.log(x),
        ]  # fmt: skip
    assert len(kept) == 1
    caption = GraphView(rec).picture_at(len(rec)).caption
    assert "lab.log(x), with x from −1.0 to 2.0. " in caption


def test_it_is_lit_with_its_operand_when_asked_and_not_before_it_happened(view):
    assert not view.picture_at(len(view.recording)).lit
    view.light_nonfinite()
    last = view.picture_at(len(view.recording))
    labels = {n.id: n.label for n in last.nodes}
    if view.most:
        assert {labels[name] for name in last.lit if name in labels} == {"v₁ = x * x", "v₂ = sqrt(v₁)"}
        assert {e.source + ">" + e.target for e in last.edges if e.id in last.lit} == {
            f"{a}>{b}" for a in labels for b in labels if (labels[a], labels[b]) == ("v₁ = x * x", "v₂ = sqrt(v₁)")
        }  # fmt: skip
    assert last.lit
    assert not view.picture_at(lab.first_nonfinite(view.recording).position).lit
    view.light("", "")
    assert not view.picture_at(len(view.recording)).lit


def test_the_box_where_it_began_says_so_to_a_screen_reader():
    x = lab.tensor(-1.0, requires_grad=True, name="x")
    with lab.record(detail="value") as rec, np.errstate(all="ignore"):
        lab.log(x) * 2.0
    nodes = GraphView(rec).picture_at(len(rec)).nodes
    assert [n.label for n in nodes if "nan or infinity begins here" in n.aria] == ["v₁ = log(x)"]
    assert [n.label for n in nodes if n.state == "trouble"] == ["v₁ = log(x)", "v₂ = v₁ * 2"]


def test_the_button_is_there_where_there_is_trouble_and_lights_it(view):
    assert view.widget
    button = view._buttons["bad"]
    assert (button.description, button.layout.display, button.disabled) == ("First nan", None, False)
    button.click()
    assert view.picture_at(len(view.recording)).lit
    assert view.selected == str(view.state_at(len(view.recording)).bad_node)
    assert not view._buttons["clear"].disabled
    view._buttons["clear"].click()
    assert not view.picture_at(len(view.recording)).lit


def test_a_graph_without_trouble_has_no_button_and_no_words():
    x = lab.tensor(2.0, requires_grad=True, name="x")
    with lab.record(detail="value") as rec:
        (x * x).backward()
    view = GraphView(rec)
    assert view.widget
    assert view._buttons["bad"].layout.display == "none"
    view.light_nonfinite()
    assert not view.picture_at(len(rec)).lit


def test_a_player_has_a_mark_for_it(view):
    marks = view.landmarks(view.recording)
    names = [marks.name(k) for k in range(len(marks.positions))]
    assert names == ["backward walk 1", "first nan or infinity"]
    assert int(marks.positions[1]) == lab.first_nonfinite(view.recording).position + 1
    assert "first nan or infinity" in Player(view).marks.values()
