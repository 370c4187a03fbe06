"""VmapView and what a vmap tells: the shapes of one member and of all, and what ran in their place, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import lab
from lab.events import OpBatched, compare
from tests.widgets.looking import scenes
from widgets import VmapView


def recorded(f, *args, in_axes=0, **options):
    with lab.record(**options) as rec:
        lab.vmap(f, in_axes=in_axes)(*args)
    return rec


def told(rec):
    return [(e.op or e.name, e.shape, e.axis, e.became) for e in rec if isinstance(e, OpBatched)]


W = lab.tensor(np.arange(12.0).reshape(3, 4))
XS = np.linspace(-1.0, 1.0, 20).reshape(4, 5)


def layer(x):
    h = lab.exp(W @ x)
    return h / h.sum()


def test_each_operation_is_told_with_the_shape_of_one_member_and_what_ran_in_its_place():
    assert told(recorded(layer, XS, in_axes=1)) == [
        ("W", (3, 4), -1, ()),
        ("x", (4,), 1, ()),
        ("matmul", (3,), 0, ("reshape 1×3×4", "reshape 5×4×1", "matmul 5×3×1", "reshape 5×3")),
        ("exp", (3,), 0, ("exp 5×3",)),
        ("sum", (), 0, ("sum(axis=(1,)) 5",)),
        ("divide", (3,), 0, ("reshape 5×1", "divide 5×3")),
    ]


def test_a_transposition_keeps_the_axis_of_the_members_in_front():
    rec = recorded(lambda a: a.T, np.ones((5, 2, 3)))
    assert told(rec)[1] == ("transpose", (3, 2), 0, ("transpose(axes=(0, 2, 1)) 5×3×2",))


def test_what_ran_is_what_gives_the_result_when_it_is_run_by_hand():
    out = lab.vmap(layer, in_axes=1)(XS)
    product = np.matmul(W.numpy().reshape(1, 3, 4), XS.T.reshape(5, 4, 1)).reshape(5, 3)
    h = np.exp(product)
    np.testing.assert_allclose(out.numpy(), h / h.sum(axis=1).reshape(5, 1), rtol=1e-14)


def test_a_collective_along_the_axis_gives_what_has_no_such_axis():
    with lab.record() as rec:
        lab.vmap(lambda x: x / lab.all_reduce(x, axis_name="i"), axis_name="i")(np.array([1.0, 3.0]))
    rows = {op: (axis, became) for op, _, axis, became in told(rec)}
    assert rows["all_reduce"] == (-1, ("add_rows scalar",))
    assert rows["divide"] == (0, ("divide 2",))


def test_inside_another_vmap_the_inner_is_drawn_and_the_outer_sees_what_the_inner_became():
    rec = recorded(lambda x: lab.vmap(lambda z: z * x)(x), np.ones((2, 3)))
    outer = [row for row in told(rec) if row[0] in ("reshape", "multiply")]
    assert outer[:2] == [
        ("reshape", (3, 1), 0, ("reshape 2×3×1",)), ("multiply", (3, 3), 0, ("reshape 2×1×3", "multiply 2×3×3")),
    ]  # fmt: skip
    (last,) = scenes(VmapView(rec))[-1:]
    assert [n.label for n in last.nodes if n.kind in ("op", "leaf")] == ["z", "x", "v₁ = z * x"]
    assert "newest of 2 vmaps" in last.caption


@pytest.mark.parametrize("f", [
    layer, lambda x: lab.grad(lambda v: lab.sum(lab.tanh(v) ** 2))(x), lambda x: lab.jvp(lab.sin, (x,), (x,))[1],
    lambda x: lab.sort(x)[1:], lambda x: lab.where(x > 0, x, 0.5) * 2, lambda x: lab.vmap(lambda z: z * x)(x),
])  # fmt: skip
def test_a_vmap_is_the_same_whether_somebody_listens_or_not(f):
    quiet = lab.vmap(f, in_axes=1)(XS)
    with lab.record():
        loud = lab.vmap(f, in_axes=1)(XS)
    assert quiet.dtype == loud.dtype
    assert quiet.numpy().tobytes() == loud.numpy().tobytes()


def test_gradients_through_a_vmap_are_the_same_whether_somebody_listens_or_not():
    def loss(w):
        return lab.vmap(lambda x: lab.sum(lab.tanh(w @ x)), in_axes=1)(XS).sum()

    quiet = lab.grad(loss)(W)
    with lab.record():
        loud = lab.grad(loss)(W)
    assert quiet.numpy().tobytes() == loud.numpy().tobytes()


def row(scene, name, side):
    return [(n.label, n.kind) for n in scene.nodes if n.id.startswith(f"{name}{side}.")]


def test_a_row_has_the_axes_of_one_member_and_in_front_of_them_that_of_all():
    rec = recorded(layer, XS, in_axes=1)
    (last,) = scenes(VmapView(rec))[-1:]
    names = {n.label: n.id for n in last.nodes if n.kind in ("op", "leaf")}
    assert list(names) == ["W", "x", "v₁ = W @ x", "v₂ = exp(v₁)", "v₃ = sum(v₂)", "v₄ = v₂ / v₃"]
    members, plain = ("5", "group"), "constant"
    assert row(last, names["W"], "all") == row(last, names["W"], "one") == [("3", plain), ("4", plain)]
    assert row(last, names["x"], "all") == [members, ("4", plain)]
    assert row(last, names["v₃ = sum(v₂)"], "one") == [("scalar", plain)]
    assert row(last, names["v₃ = sum(v₂)"], "all") == [members]
    beside = [m.text for m in last.marks if m.id.startswith("s")]
    assert beside[:2] == ["shared by all members", "axis 1 is mapped, brought to the front"]
    assert beside[-1] == "reshape 5×1, divide 5×3"


def test_nothing_jumps_and_only_the_newest_row_moves():
    drawn = scenes(VmapView(recorded(layer, XS, in_axes=1)))
    for scene in drawn:
        assert {n.id: n.x for n in scene.nodes}.items() <= {n.id: n.x for n in drawn[-1].nodes}.items()
        assert scene.extent == drawn[-1].extent
        assert [e.state for e in scene.edges][-1:] == ["forward"]


def test_a_long_function_is_drawn_as_far_as_there_is_room():
    def f(x):
        for _ in range(40):
            x = x * 0.5
        return x

    rec = recorded(f, np.ones(3))
    assert "17 more operations are not drawn" in VmapView(rec).picture_at(len(rec)).caption
    assert "17 more operations" in VmapView(rec).text_at(len(rec))


def test_two_runs_of_it_agree_and_another_axis_is_a_difference():
    square = np.ones((3, 3))
    first, second, third = (recorded(lab.exp, square, in_axes=axis) for axis in (0, 0, 1))
    assert compare(first, second).difference is None
    assert compare(first, third).difference is not None
