"""GraphView of a loop that trains: the box of a leaf shows what the tensor holds now; cleared gradients are gone."""

from __future__ import annotations

from lab.events import GradientCleared, ValueSeen, ValueWritten
from tests.widgets.golden import leaf, op, product_plus_x, recorded, stored, two_steps_of_descent, written
from widgets.views.graph.inspector import inspected
from widgets.views.graph.parts import MOST_TONE
from widgets.views.graph.view import GraphView


def descent():
    rec = recorded(two_steps_of_descent())
    return rec, GraphView(rec), [int(p) for p in GraphView(rec).stop_positions(rec)]


def box(scene, name):
    return next(n for n in scene.nodes if n.id == name)


def edge(scene, name):
    return next(e for e in scene.edges if e.id == name)


def test_writing_a_leaf_and_forgetting_its_gradient_are_stops_with_true_sentences():
    _, view, stops = descent()
    assert [view.sentence_at(p) for p in stops] == [
        "v₁ = x * x = 4.0 was computed.",
        "Backward starts at v₁: its gradient is 1.0.",
        "v₁ = x * x sends 2.0 to x, 2.0 to x.",
        "x: gradient 4.0.",
        "x was written in place: it is 1.6 now.",
        "x: its gradient was cleared; no gradient yet.",
        "v₂ = x * x = 2.56 was computed.",
        "Backward starts at v₂: its gradient is 1.0.",
        "v₂ = x * x sends 1.6 to x, 1.6 to x.",
        "x: gradient 3.2.",
        "x was written in place: it is 1.28 now.",
        "x: its gradient was cleared; no gradient yet.",
    ]


def test_the_box_of_a_leaf_shows_its_new_value_and_no_gradient_after_it_was_cleared():
    _, view, stops = descent()
    after = view.picture_at(stops[6])
    assert (box(after, "1").sublabel, box(after, "1").gradient) == ("1.6", "")
    assert view.text_at(stops[6]).splitlines()[1] == "x = 1.6, no gradient yet"
    assert box(view.picture_at(stops[9]), "1").gradient == "grad +3.2"


def test_what_was_computed_from_an_older_value_says_so():
    rec, view, stops = descent()
    assert "v₁ = x * x = 4.0 (from x as it was then), gradient 1.0" in view.text_at(stops[6])
    assert "v₂ = x * x = 2.56, no gradient yet" in view.text_at(stops[6])
    html = inspected(view.state_at(len(rec)), "2", rec)
    assert "2.0 * 2.0 = 4.0" in html
    assert "1.0 * 2.0 = 2.0" in inspected(view.state_at(stops[4]), "2", rec)


def test_the_arrows_that_leave_a_leaf_add_up_to_its_gradient_in_the_second_walk_too():
    rec, view, stops = descent()
    scene = view.picture_at(stops[9])
    assert "a gradient is the sum of what came back" in scene.caption
    assert [edge(scene, e).label for e in ("2.0", "2.1", "3.0", "3.1")] == ["", "", "1.6", "1.6"]
    assert edge(scene, "2.0").state == "idle"
    assert "cleared since" in inspected(view.state_at(stops[9]), "2", rec)
    assert "1.6 from v₂ + 1.6 from v₂" in inspected(view.state_at(stops[9]), "1", rec)


def test_captions_say_what_writing_and_clearing_mean():
    _, view, stops = descent()
    assert "what was computed from it before keeps its number" in view.picture_at(stops[4]).caption
    assert "the next walk stores a new one" in view.picture_at(stops[5]).caption


def test_an_operation_after_a_walk_is_told_as_one():
    _, view, stops = descent()
    assert "each box is an operation that ran" in view.picture_at(stops[6]).caption


def test_a_second_walk_over_the_same_graph_says_that_it_adds():
    view = GraphView(product_plus_x(2))
    assert "added to what was stored" in view.picture_at(len(view.recording)).caption
    assert "added to what was stored" not in GraphView(product_plus_x()).picture_at(len(product_plus_x())).caption


def test_a_colour_means_the_same_after_gradients_were_cleared():
    _, view, stops = descent()
    assert box(view.picture_at(stops[3]), "1").tone == MOST_TONE
    assert box(view.picture_at(stops[9]), "1").tone == MOST_TONE * 0.8


def test_where_only_shapes_are_recorded_the_old_value_does_not_stay():
    events = [*leaf(1, "x", 2.0), *op(2, "exp", (1,), 7.4), ValueWritten(1)]
    rec = recorded(events)
    assert box(GraphView(rec).picture_at(len(rec)), "1").sublabel == "scalar float64"
    assert "x was written in place." in GraphView(rec).text_at(len(rec))
    bare = recorded([e for e in two_steps_of_descent() if not isinstance(e, ValueSeen)])
    assert "x, no gradient yet" in GraphView(bare).text_at(len(bare))


def test_what_happens_to_a_leaf_before_its_first_use_is_no_stop():
    rec = recorded(
        [*written(1, 3.0), GradientCleared(9), *leaf(1, "x", 3.0), *op(2, "exp", (1,), 20.0), *written(1, 1.0)]
    )
    view = GraphView(rec)
    assert [view.sentence_at(int(p)) for p in view.stop_positions(rec)] == [
        "v₁ = exp(x) = 20.0 was computed.",
        "x was written in place: it is 1.0 now.",
    ]


def test_folding_many_equals_folding_one_by_one_over_writes_and_clears():
    rec, view, _ = descent()
    one = view.start()
    for k, event in enumerate(rec, 1):
        one = view.fold(one, event)
        assert view.state_at(k) == one


def test_a_box_has_room_for_the_gradient_it_had_before_it_was_cleared():
    _, view, stops = descent()
    assert len({box(view.picture_at(p), "1")[1:5] for p in stops}) == 1
    events = [*leaf(1, "x", 2.0), *op(2, "exp", (1,), 7.4), *stored(1, -1234.5), GradientCleared(1)]
    assert box(GraphView(recorded(events)).picture_at(len(events)), "1").width >= 120
