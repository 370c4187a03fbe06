"""BroadcastView: what is stretched is what NumPy repeats, and what comes back is the sum over it, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import lab
from lab.events import compare
from lab.events.table import Columns
from tests.widgets.looking import scenes
from widgets import BroadcastView
from widgets.pictures.theme import short


def leaf(value, name):
    return lab.tensor(value, requires_grad=True, name=name)


def walked(f, *leaves, **options):
    with lab.record(**options) as rec:
        f(*leaves).sum().backward()
    return rec


X, B = np.arange(8.0).reshape(4, 2), np.array([1.0, 3.0])


def row(scene, name):
    """Words of the cells of a row; those that stand out in capitals."""
    cells = [n for n in scene.nodes if n.id.startswith(f"{name}.")]
    return [f"{c.label} {c.sublabel}".strip().upper() if c.state == "active" else c.label for c in cells]


def box(scene, name):
    (node,) = [n for n in scene.nodes if n.id == name]
    return node.label, node.sublabel, node.gradient


def test_forward_the_missing_axis_is_stretched_and_backward_it_is_summed_over():
    rec = walked(lambda x, b: x * b, leaf(X, "x"), leaf(B, "b"))
    forward, backward = scenes(BroadcastView(rec))
    assert (row(forward, "o0"), row(forward, "o1")) == (["4", "2"], ["– → 4 NEW AXIS", "2"])
    assert (row(backward, "o0"), row(backward, "o1")) == (["4", "2"], ["4 → – SUMMED", "2"])
    by_hand = X.sum(axis=0)  # the gradient of the product is ones; the rule multiplies by x, and four rows share b
    assert box(backward, "o1") == ("b", "2: [1.0, 3.0]", f"grad [{short(by_hand[0])}, {short(by_hand[1])}]")
    assert box(backward, "out")[2] == f"grad 4×2 norm {short(np.sqrt(8))}"
    assert [e.state for e in forward.edges] == ["idle", "forward"]
    assert [e.state for e in backward.edges] == ["backward", "backward"]


@pytest.mark.parametrize(("shape", "out"), [((1, 3), (4, 3)), ((4, 1), (4, 3)), ((), (4, 3)), ((1, 1), (2, 4, 3))])
def test_cells_that_stand_out_are_the_axes_along_which_numpy_repeats(shape, out):
    rec = walked(lambda a, b: a + b, leaf(np.ones(shape), "a"), leaf(np.ones(out), "b"))
    forward, backward = scenes(BroadcastView(rec))
    repeated = [step == 0 for step in np.broadcast_to(np.ones(shape), out).strides]
    for scene in (forward, backward):
        assert [n.state == "active" for n in scene.nodes if n.id.startswith("o0.")] == repeated
    n_uses = int(np.prod(out) // np.prod(shape, dtype=int))
    assert box(backward, "o0")[2] == f"grad {short(float(n_uses))}" or shape in ((1, 3), (4, 1))
    assert f"each entry used {n_uses} times" in BroadcastView(rec).text_at(len(rec))


def test_data_takes_part_and_gets_no_gradient_and_a_mere_number_is_no_case():
    rec = walked(lambda x: 2.0 * x * np.ones((3, 4, 1)), leaf(X, "x"))
    forward, backward = scenes(BroadcastView(rec))
    assert row(forward, "o1") == ["3", "4", "1 → 2 STRETCHED"]
    assert [e.state for e in backward.edges] == ["backward", "none"]
    assert row(backward, "o1") == ["3", "4", "1 → 2"]
    assert box(backward, "o1")[2] == ""
    assert "No gradient is wanted." in BroadcastView(rec).text_at(len(rec)).splitlines()[2]


def test_three_operands_that_differ_are_three_rows():
    rec = walked(lambda a, b: lab.where(np.array([[True], [False]]), a, b), leaf(np.ones(3), "a"), leaf(2.0, "b"))
    forward, backward = scenes(BroadcastView(rec))
    assert [row(forward, f"o{i}") for i in range(3)] == [
        ["2", "1 → 3 STRETCHED"], ["– → 2 NEW AXIS", "3"], ["– → 2 NEW AXIS", "– → 3 NEW AXIS"],
    ]  # fmt: skip
    assert [box(backward, f"o{i}")[2] for i in range(3)] == ["", "grad [1.0, 1.0, 1.0]", "grad 3.0"]


def test_an_explicit_broadcast_is_a_case_too():
    rec = walked(lambda b: lab.broadcast_to(b, (5, 2)), leaf(B, "b"))
    forward, backward = scenes(BroadcastView(rec))
    assert row(forward, "o0") == ["– → 5 NEW AXIS", "2"]
    assert box(backward, "o0")[2] == "grad [5.0, 5.0]"


def test_where_nothing_broadcasts_it_says_so():
    rec = walked(lambda x: lab.tanh(x) * x, leaf(X, "x"))
    view = BroadcastView(rec)
    assert "No operation broadcasts here" in view.picture_at(len(rec)).caption
    assert len(view.stop_positions(rec))


def test_a_long_recording_is_searched_column_by_column_and_not_once_for_each_operation(monkeypatch):
    reads = []
    read = Columns.__getitem__
    monkeypatch.setattr(Columns, "__getitem__", lambda columns, name: (reads.append(name), read(columns, name))[1])

    def asked(n):
        w = leaf(np.ones(2), "w")
        with lab.record() as rec:
            for _ in range(n):
                w + w
        view = BroadcastView(rec)
        reads.clear()
        view.stop_positions(rec)
        return len(reads)

    assert asked(40) == asked(4)


def test_without_values_axes_are_told_and_numbers_are_not():
    _, backward = scenes(BroadcastView(walked(lambda x, b: x * b, leaf(X, "x"), leaf(B, "b"), detail="shape")))
    assert row(backward, "o1") == ["4 → – SUMMED", "2"]
    assert box(backward, "o1") == ("b", "2", "")


def test_two_runs_of_it_agree():
    first, second = (walked(lambda x, b: x * b, leaf(X, "x"), leaf(B, "b")) for _ in range(2))
    assert compare(first, second).difference is None
