"""DualView: value and tangent of each operation of a jvp, compared with the derivative that one works out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lab
from lab.events import TangentPushed, ValueSeen, compare
from widgets import DualView, GraphView
from widgets.pictures.theme import short


def recorded(f, primals, tangents, **options):
    with lab.record(**options) as rec:
        lab.jvp(f, primals, tangents)
    return rec


def boxes(view, k):
    scene = view.picture_at(int(view.stop_positions(view.recording)[k]))
    return [(n.label, n.sublabel, n.gradient) for n in scene.nodes]


def product(x, y):
    return x * y + lab.sin(x)


def test_each_box_has_the_value_and_the_directional_derivative_worked_out_by_hand():
    x, y, dx, dy = 2.0, 3.0, 1.0, -0.5
    view = DualView(recorded(product, (x, y), (dx, dy)))
    assert boxes(view, 1) == [("x", "2.0", "tangent 1.0"), ("y", "3.0", "tangent −0.5")]
    slope = dx * y + dy * x
    assert boxes(view, -1)[2:] == [
        ("v₁ = x * y", "6.0", "tangent 2.0"),
        ("v₂ = sin(x)", short(math.sin(x)), f"tangent {short(math.cos(x) * dx)}"),
        ("v₃ = v₁ + v₂", short(6 + math.sin(x)), f"tangent {short(slope + math.cos(x) * dx)}"),
    ]
    assert "v₁ = x * y = 6.0, tangent dx * y + dy * x = 2.0" in view.text_at(len(view.recording)).splitlines()


def test_what_goes_into_the_newest_box_is_the_pair_of_value_and_tangent_and_nothing_jumps():
    view = DualView(recorded(product, (2.0, 3.0), (1.0, -0.5)))
    scenes = [view.picture_at(int(p)) for p in view.stop_positions(view.recording)]
    moving = [[e.label for e in s.edges if e.state == "forward"] for s in scenes]
    assert moving[:3] == [[], [], ["(2.0, 1.0)", "(3.0, −0.5)"]]
    for scene in scenes:
        assert {n.id: (n.x, n.y) for n in scene.nodes}.items() <= {n.id: (n.x, n.y) for n in scenes[-1].nodes}.items()


def test_a_constant_carries_no_tangent_and_what_has_none_by_its_rule_is_one():
    view = DualView(recorded(lambda x: lab.floor(x) * x * 5.0, (2.5,), (1.0,)))
    assert boxes(view, -1) == [
        ("x", "2.5", "tangent 1.0"), ("v₁ = 2 * x", "5.0", "tangent 2.0"), ("2", "", ""),
        ("v₂ = v₁ * 5", "25.0", "tangent 10.0"), ("5", "", ""),
    ]  # fmt: skip


def test_of_several_jvps_the_newest_is_drawn_also_inside_another():
    with lab.record() as rec:
        lab.jvp(lab.exp, (0.0,), (1.0,))
        lab.jvp(lambda x: lab.jvp(lambda z: z * z, (x,), (1.0,))[1], (3.0,), (1.0,))
    view = DualView(rec)
    assert boxes(view, 1) == [("t₁", "0.0", "tangent 1.0"), ("v₁ = exp(t₁)", "1.0", "tangent 1.0")]
    assert boxes(view, -1) == [("z", "3.0", "tangent 1.0"), ("v₁ = z * z", "9.0", "tangent 6.0")]
    assert "newest of 3 jvps" in view.picture_at(len(rec)).caption


def test_one_that_goes_on_around_another_is_drawn_until_the_other_begins():
    with lab.record() as rec:
        lab.jvp(lambda x: lab.sin(x) * lab.jvp(lambda z: z * z, (x,), (1.0,))[1] + x, (3.0,), (1.0,))
    view = DualView(rec)
    labels = [[label for label, *_ in boxes(view, k)] for k in range(len(view.stop_positions(rec)))]
    assert labels[:3] == [["x"], ["x", "v₁ = sin(x)"], ["x", "v₁ = sin(x)", "v₂ = x * x"]]
    assert labels[-1] == ["z", "v₁ = z * z"]


def test_tangents_of_arrays_are_those_of_finite_differences():
    rng = np.random.default_rng(0)
    x, dx, w = rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
    rec = recorded(lambda x: lab.sum(lab.tanh(x @ w), axis=0), (x,), (dx,))
    seen = [e.value for e in rec if isinstance(e, ValueSeen) and e.role == "tangent"]
    eps = 1e-6
    ends = [np.tanh((x + sign * eps * dx) @ w) for sign in (1, -1)]
    np.testing.assert_allclose(seen[-2], (ends[0] - ends[1]) / (2 * eps), rtol=1e-7)
    np.testing.assert_allclose(seen[-1], ((ends[0] - ends[1]) / (2 * eps)).sum(0), rtol=1e-7)
    assert [e.op for e in rec if isinstance(e, TangentPushed)] == ["", "matmul", "tanh", "sum"]


def test_a_jvp_is_the_same_whether_somebody_listens_or_not():
    quiet = lab.jvp(product, (2.0, 3.0), (1.0, -0.5))
    with lab.record():
        loud = lab.jvp(product, (2.0, 3.0), (1.0, -0.5))
    assert [float(v) for v in quiet] == [float(v) for v in loud]


def test_without_values_shapes_and_operations_are_told():
    rec = recorded(lambda x: lab.exp(x), (np.zeros((2, 3)),), (np.ones((2, 3)),), detail="shape")
    assert boxes(DualView(rec), -1) == [("x", "2×3 float64", "tangent"), ("v₁ = exp(x)", "2×3 float64", "tangent")]


def test_two_runs_of_a_jvp_agree_and_a_difference_is_found():
    first, second, third = (recorded(product, (2.0, 3.0), (1.0, dy)) for dy in (0.5, 0.5, 0.25))
    assert compare(first, second).difference is None
    assert compare(first, third).difference is not None


def test_a_long_function_is_drawn_as_far_as_there_is_room():
    def f(x):
        for _ in range(80):
            x = x * 0.5
        return x

    rec = recorded(f, (1.0,), (1.0,))
    view = DualView(rec)
    assert "21 more operations are not drawn" in view.picture_at(len(rec)).caption
    assert "21 more operations" in view.text_at(len(rec))


@pytest.mark.parametrize(("kind", "words"), [(DualView, "shown by GraphView"), (GraphView, "shown by DualView")])
def test_who_takes_the_other_view_is_told(kind, words):
    x = lab.tensor(2.0, requires_grad=True)
    with lab.record() as tape:
        x * x
    rec = tape if kind is DualView else recorded(lambda x: x * x, (2.0,), (1.0,))
    assert words in kind(rec).text_at(len(rec))
