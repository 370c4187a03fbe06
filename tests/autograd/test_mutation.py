"""In-place writes are noticed wherever they would make a gradient wrong, and only there."""

import gc

import numpy as np
import pytest

import lab
from lab.autograd import mutation
from lab.errors import DTypeError, GradientError, ShapeError, UnsupportedError
from tests.numerics import close

CHANGED = "an array that backward needs was changed in place"


def leaf(value):
    return lab.tensor(value, requires_grad=True)


WRITES = {
    "assign": lambda t: t.assign([5.0, 5.0]),
    "setitem": lambda t: t.__setitem__(0, 5.0),
    "slice": lambda t: t.__setitem__(slice(None), 5.0),
    "iadd": lambda t: t.__iadd__(1.0),
    "imul": lambda t: t.__imul__(np.ones(2)),
    "isub of a tensor": lambda t: t.__isub__(lab.tensor([1.0, 1.0])),
    "detached": lambda t: t.detach().assign([5.0, 5.0]),
    "optimiser": lambda t: (t.value.__iadd__(1.0), mutation.mark(t.value)),
    "part": lambda t: mutation.mark(t.value[1:]),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_write_to_what_a_rule_reads_is_refused_at_backward(write, create_graph):
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    with lab.no_grad():
        write(x)
    with pytest.raises(GradientError, match=CHANGED) as caught:
        y.backward(create_graph=create_graph)
    assert "of multiply" in caught.value.given
    assert x.grad is None


def test_a_write_to_an_untracked_operand_is_noticed_too():
    x, c = leaf([1.0, 2.0]), lab.tensor([3.0, 4.0])
    y = (x * c).sum()
    c[0] = 9.0
    with pytest.raises(GradientError, match=CHANGED):
        y.backward()


def test_a_write_to_an_output_that_is_read_is_noticed():
    x = leaf([1.0, 2.0])
    y = lab.exp(x)
    z = y.sum()
    y.detach()[0] = 0.0
    with pytest.raises(GradientError, match=CHANGED):
        z.backward()


def test_what_no_rule_reads_may_be_written():
    x = leaf([1.0, 2.0])
    y = (x + 1.0).sum() + (x * 3.0).sum()
    with lab.no_grad():
        x.assign([7.0, 7.0])
    y.backward()
    close(x.grad, [4.0, 4.0])


def test_writes_before_the_forward_and_after_the_backward_are_free():
    x = leaf([1.0, 2.0])
    with lab.no_grad():
        x += 1.0
    (x * x).sum().backward()
    with lab.no_grad():
        x -= 0.5 * x.grad
    close(x, [0.0, 0.0])
    x.zero_grad()
    (x * x).sum().backward()
    close(x.grad, [0.0, 0.0])


def test_a_write_through_a_view_is_noticed_and_one_beside_it_is_not():
    flat = lab.tensor(np.arange(4.0))
    left, right = flat[:2], flat[2:]
    x = leaf([1.0, 1.0])
    y, z = (x * left).sum(), (x * right).sum()
    right[0] = 9.0
    y.backward()
    with pytest.raises(GradientError, match=CHANGED):
        z.backward()


def test_parameters_that_are_views_of_one_flat_vector_do_not_collide():
    flat = np.zeros(4)
    a, b = lab.autograd.wrap(flat[:2], lab.autograd.Leaf()), lab.autograd.wrap(flat[2:], lab.autograd.Leaf())
    y = (a * a).sum()
    with lab.no_grad():
        b += 1.0
    y.backward()
    close(a.grad, [0.0, 0.0])


def test_a_strided_view_is_noticed():
    x, c = leaf([1.0, 2.0]), lab.tensor(np.ones((2, 2)))
    y = (x * c[:, 1]).sum()
    c[1] = 5.0
    with pytest.raises(GradientError, match=CHANGED):
        y.backward()


def test_a_freed_array_leaves_the_table_and_its_address_is_no_false_alarm():
    before = len(mutation._writes)
    for _ in range(50):
        t = lab.tensor(np.ones(1000))
        t[0] = 2.0
        x = leaf(np.ones(1000))
        y = (x * t).sum()
        del t
        y.backward()
    gc.collect()
    assert len(mutation._writes) <= before + 1


def test_tapes_above_the_plain_level_notice_too():
    c = lab.tensor([3.0, 4.0])

    def f(x):
        y = (x * c).sum()
        c[0] = 9.0
        return y

    with pytest.raises(GradientError, match=CHANGED):
        lab.grad(f)(np.ones(2))


def test_a_captured_tensor_that_changes_is_read_anew_by_jit():
    c = lab.tensor([3.0, 4.0])
    f = lab.jit(lambda x: (x * c).sum())
    close(f(np.ones(2)), 7.0)
    c[0] = 9.0
    close(f(np.ones(2)), 13.0)


@pytest.mark.parametrize(
    ("write", "kind", "problem"),
    [
        (lambda: leaf([1.0]).assign([2.0]), GradientError, "an in-place write would leave its history wrong"),
        (lambda: leaf([1.0]).__setitem__(0, 2.0), GradientError, "an in-place write would leave its history wrong"),
        (lambda: (leaf([1.0]) * 2.0).assign([2.0]), GradientError, "an in-place write would leave its history wrong"),
        (lambda: leaf([1.0]).__iadd__(2.0), GradientError, "an in-place write would leave its history wrong"),
        (lambda: lab.tensor([1.0]).assign([2.0, 3.0]), ShapeError, "values do not fit where they are written"),
        (lambda: lab.tensor([1.0]).__setitem__(3, 2.0), ShapeError, "values do not fit where they are written"),
        (lambda: lab.tensor([1.0]).__setitem__(0, "a"), ShapeError, "values do not fit where they are written"),
        (lambda: lab.tensor([1.0]).__iadd__(np.ones(3)), ShapeError, "values do not fit where they are written"),
        (lambda: lab.grad(lambda x: x.assign(1.0))(2.0), UnsupportedError, "in-place writes are not possible inside"),
        (
            lambda: lab.jit(lambda x: x.__setitem__(0, 1.0))(np.array([2.0])),
            UnsupportedError,
            "in-place writes are not possible",
        ),
        (lambda: lab.tensor([1.0]).assign(leaf([2.0])), GradientError, "a tensor that requires a gradient"),
        (lambda: lab.tensor([1.0]).__setitem__(0, leaf(2.0)), GradientError, "a tensor that requires a gradient"),
    ],
)
def test_writes_that_cannot_be_are_explained(write, kind, problem):
    with pytest.raises(kind, match=problem) as caught:
        write()
    assert caught.value.hint


def test_in_place_arithmetic_of_tracked_values_rebinds_and_stays_right():
    x = leaf([1.0, 2.0])
    y = x * 1.0
    held = y
    y += x
    y *= 2.0
    y -= 1.0
    y /= 4.0
    close(held, [1.0, 2.0])
    y.sum().backward()
    close(x.grad, [1.0, 1.0])

    def f(x):
        total = x * 0.0
        total += x * x
        return total.sum()

    close(lab.grad(f)(np.array([1.0, 2.0])), [2.0, 4.0])
    close(lab.jit(f)(np.array([1.0, 2.0])), 5.0)
    close(lab.vmap(f)(np.array([[1.0, 2.0]])), [5.0])


def test_in_place_arithmetic_inside_a_transform_rebinds_also_under_no_grad():
    c = lab.tensor([1.0, 1.0])

    def f(x):
        with lab.no_grad():
            total = x * 1.0
            total += c
            kept = c
            kept += x
        return (total * kept * x).sum()

    x = np.array([1.0, 2.0])
    close(lab.grad(f)(x), (x + 1) ** 2)
    close(c, [1.0, 1.0])


def test_in_place_arithmetic_of_an_untracked_tensor_writes():
    t = lab.tensor([1.0, 2.0])
    held = t
    t += np.array([1.0, 1.0])
    t *= 2
    assert t is held
    close(held, [4.0, 6.0])


def test_a_read_only_broadcast_is_copied_before_the_write():
    t = lab.broadcast_to(lab.tensor(1.0), (3,))
    t[0] = 5.0
    close(t, [5.0, 1.0, 1.0])


def test_tensors_made_from_arrays_are_copies_and_numpy_gives_a_read_only_view():
    mine = np.ones(2)
    t = lab.tensor(mine)
    mine[:] = 5.0
    close(t, [1.0, 1.0])
    with pytest.raises(ValueError, match="read-only"):
        t.numpy()[0] = 3.0
    view = t.numpy()
    t[0] = 7.0
    close(view, [7.0, 1.0])


def test_an_array_operand_that_the_user_changes_is_a_known_limit():
    """A bare NumPy array has no clock: the lab's own operations never write to one, and `lab.tensor(array)` copies."""
    x, c = leaf([1.0, 2.0]), np.array([3.0, 4.0])
    y = (x * lab.tensor(c)).sum()
    c[:] = 0.0
    y.backward()
    close(x.grad, [3.0, 4.0])


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda a, m: a.__iadd__(0.5), "float64 values do not fit into int64\ngiven: 0.5"),
        (lambda a, m: a.__setitem__(0, 0.5), "float64 values do not fit into int64\ngiven: 0.5"),
        (lambda a, m: a.assign(np.ones(2)), r"float64 values do not fit into int64\ngiven: array\("),
        (lambda a, m: a.assign([0.5, 1]), "float64 values do not fit into int64"),
        (lambda a, m: a.__itruediv__(2), "the result does not fit into int64"),
        (lambda a, m: m.__setitem__(0, 2), "int64 values do not fit into bool"),
    ],
)
def test_what_would_be_cut_off_by_a_write_is_refused(write, message):
    numbers, mask = lab.tensor([1, 2]), lab.tensor([True, False])
    with pytest.raises(DTypeError, match=message):
        write(numbers, mask)
    assert (numbers.numpy().tolist(), mask.numpy().tolist()) == ([1, 2], [True, False])


def test_narrower_numbers_of_the_same_kind_are_written_as_numpy_does():
    bytes_, halves = lab.tensor(np.zeros(2, np.uint8)), lab.tensor(np.zeros(2, np.float16))
    bytes_[0] = 3
    bytes_ += 1
    bytes_.assign(bytes_.numpy().astype(np.int64))
    halves += 0.5
    halves[0] = np.float64(2.0)
    halves[1] = True
    assert (bytes_.numpy().tolist(), halves.numpy().tolist()) == ([4, 1], [2.0, 1.0])


@pytest.mark.parametrize("transform", [lab.vmap, lab.jit, lab.grad])
def test_a_value_of_a_transform_is_not_written_into_an_array_that_outlives_it(transform):
    kept = lab.tensor([1.0, 2.0])

    def f(x):
        kept[0] = x
        return kept.sum()

    with pytest.raises(UnsupportedError, match=r"is not written into an array that outlives it[\s\S]*lab.stack"):
        transform(f)(np.ones(3) if transform is lab.vmap else 1.0)
