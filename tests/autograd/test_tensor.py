"""The Tensor as an object: how it looks, travels, compares and is made."""

import copy
import pickle

import cloudpickle
import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, DTypeError, LabError
from tests.numerics import close


def test_a_tensor_keeps_numpys_dtype_and_copies():
    assert lab.tensor([1, 2]).dtype == np.int64
    assert lab.tensor([1.0]).dtype == np.float64
    assert lab.tensor(True).dtype == np.bool_
    assert lab.tensor([1.0], dtype="float32").dtype == np.float32
    t = lab.tensor(lab.tensor([1.0], requires_grad=True))
    assert t.requires_grad is False


def test_shape_size_ndim_and_names():
    t = lab.tensor(np.zeros((2, 3)), requires_grad=True, name="w")
    assert (t.shape, t.size, t.ndim, len(t), t.name, t.is_leaf, t.requires_grad) == ((2, 3), 6, 2, 2, "w", True, True)
    assert (t * 1.0).name == ""
    assert (t * 1.0).is_leaf is False
    assert t.T.shape == (3, 2)


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (lab.tensor(1.5), "tensor(1.5)"),
        (lab.tensor([1, 2]), "tensor([1, 2])"),
        (lab.tensor([]), "tensor([])"),
        (lab.tensor([True]), "tensor([ True])"),
        (lab.tensor(np.float32([1.5])), "tensor([1.5], dtype=float32)"),
        (lab.tensor([1.0], requires_grad=True, name="w"), "tensor([1.], name='w', requires_grad=True)"),
        (lab.tensor([1.0], requires_grad=True) * 2.0, "tensor([2.], op=multiply)"),
    ],
)
def test_repr(tensor, text):
    assert repr(tensor) == text


@pytest.mark.parametrize("shape", [(1000, 1000), (10**6,), (100, 10, 10, 10), (2, 500_000), (500_000, 2), (1,) * 20,
                                   (0, 10**6), (3,) * 12], ids=str)  # fmt: skip
def test_the_repr_of_a_large_tensor_is_short(shape):
    text = repr(lab.tensor(np.zeros(shape)))
    assert len(text) < 1500
    assert text.count("\n") < 30


def test_the_repr_of_a_tracer_says_what_it_is():
    texts = []
    lab.vmap(lambda x: texts.append(repr(x)) or x)(np.zeros((3, 2)))
    lab.make_graph(lambda x: texts.append(repr(x)) or x)(np.zeros((3, 2)))
    lab.grad(lambda x: texts.append(repr(x)) or x)(1.0)
    assert texts == ["<value inside vmap: float64 (2,)>", "<value inside jit: float64 (3, 2)>",
                     "<value inside grad: float64 ()>"]  # fmt: skip


def test_mimebundles_have_plain_text_always_and_escaped_html():
    t = lab.tensor([[1.0, 2.0]], requires_grad=True, name="<script>alert(1)</script>")
    bundle = t._repr_mimebundle_()
    assert bundle["text/plain"] == repr(t)
    assert "<script>" not in bundle["text/html"]
    assert "&lt;script&gt;" in bundle["text/html"]
    assert "1 × 2" in bundle["text/html"] or "(1, 2)" in bundle["text/html"]
    assert set(t._repr_mimebundle_(include={"text/plain"})) == {"text/plain"}
    assert set(t._repr_mimebundle_(exclude={"text/html"})) == {"text/plain"}
    for shape in ((), (0,), (1000, 1000), (2, 3, 4)):
        bundle = lab.tensor(np.zeros(shape))._repr_mimebundle_()
        assert len(bundle["text/html"]) < 5000


@pytest.mark.parametrize("way", [
    lambda t: pickle.loads(pickle.dumps(t)),
    lambda t: cloudpickle.loads(cloudpickle.dumps(t)),
    copy.copy,
    copy.deepcopy,
], ids=["pickle", "cloudpickle", "copy", "deepcopy"])  # fmt: skip
def test_copies_and_pickles_carry_value_name_and_whether_it_is_a_leaf_but_no_history(way):
    x = lab.tensor([1.0, 2.0], requires_grad=True, name="x")
    made = way(x)
    close(made, [1.0, 2.0])
    assert (made.requires_grad, made.is_leaf, made.name, made.grad) == (True, True, "x", None)
    assert not np.shares_memory(made.value, x.value)
    (made * 2.0).sum().backward()
    assert x.grad is None
    y = way(x * 2.0)
    close(y, [2.0, 4.0])
    assert y.requires_grad is False


def test_a_copy_inside_a_transform_keeps_its_gradient():
    close(lab.grad(lambda x: copy.deepcopy(x) * x)(2.0), 4.0)


def test_deepcopy_keeps_shared_tensors_shared():
    x = lab.tensor([1.0], requires_grad=True)
    a, b = copy.deepcopy([x, x])
    assert a is b


def test_ops_and_graphs_pickle():
    op = lab.PRIMITIVES["tanh"]
    assert pickle.loads(pickle.dumps(op)) is op
    graph = lab.make_graph(lambda x: lab.tanh(x) * lab.tensor(2.0))(1.0)
    made = pickle.loads(pickle.dumps(graph))
    assert str(made) == str(graph)
    assert cloudpickle.loads(cloudpickle.dumps(graph)).equations[0].op is op


def test_item_and_python_numbers():
    t = lab.tensor([[2.5]])
    assert (t.item(), float(t), int(t), bool(t), list(range(int(lab.tensor(3))))) == (2.5, 2.5, 2, True, [0, 1, 2])
    assert f"{lab.tensor(2.5):.2f}" == "2.50"
    assert [10, 20, 30][lab.tensor(1)] == 20
    assert round(float(lab.tensor(2.567)), 1) == 2.6
    with pytest.raises(ArgumentError, match="single entry"):
        lab.tensor([1.0, 2.0]).item()
    with pytest.raises(ArgumentError, match="a format for one number needs a single entry"):
        f"{lab.tensor([1.0, 2.0]):.2f}"
    assert f"{lab.tensor([1.0, 2.0])}" == "tensor([1., 2.])"


def test_identity_hash_and_membership():
    a, b = lab.tensor([1.0]), lab.tensor([1.0])
    assert len({a, b, a}) == 2
    assert {a: 1}[a] == 1
    assert a in [b, a]


def test_iteration_gives_rows_that_differentiate():
    x = lab.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    first, second = x
    (first * 10.0 + second).sum().backward()
    close(x.grad, [[10.0, 10.0], [1.0, 1.0]])
    assert sum(row.sum().item() for row in x) == 10.0
    assert max(lab.tensor([1.0, 3.0])).item() == 3.0


INDICES = [
    0, -1, slice(None), slice(None, None, -1), slice(2, 0, -1), slice(None, None, 2), ..., None, (0, 1), (..., 0),
    (None, 1), (slice(None), None, 2), ([0, 0, 2],), [0, 2], np.array([True, False, True]),
    np.array([[True, False, True, False]] * 3), (slice(None), np.array([0, 0, 3])),
    (np.array([0, 2]), np.array([1, 1])), (np.array([[0], [2]]), np.array([[1, 3]])), (0, [1, 1]), ([], slice(None)),
    np.zeros(3, bool), np.int64(1), (slice(None, None, -2), slice(3, None, -1)), (np.array([0, 2]), None, slice(1)),
    (None, slice(None), np.array([1, 1])),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=lambda i: str(i).replace("\n", ""))
def test_every_kind_of_index_reads_as_numpy_and_sends_its_gradient_back(index):
    x = np.arange(12.0).reshape(3, 4)
    expected = x[index]
    weights = np.random.default_rng(0).normal(size=expected.shape)
    gradient = np.zeros_like(x)
    np.add.at(gradient, index, weights)

    leaf = lab.tensor(x, requires_grad=True)
    close(leaf[index], expected)
    leaf[index].backward(weights)
    close(leaf.grad, gradient)
    f = lambda x: (x[index] * weights).sum()  # noqa: E731 - the subject
    close(lab.grad(f)(x), gradient)
    close(lab.jit(lab.grad(f))(x), gradient)
    close(lab.vmap(lab.grad(f))(np.stack([x, 2 * x])), np.stack([gradient, gradient]))
    close(lab.vmap(lambda x: x[index])(np.stack([x, 2 * x])), np.stack([expected, 2 * expected]))
    close(lab.grad(lambda xs: lab.vmap(f)(xs).sum())(np.stack([x, x])), np.stack([gradient, gradient]))
    close(lab.jvp(lambda x: x[index], (x,), (x,))[1], expected)


def test_a_tensor_is_an_index():
    x = lab.tensor([10.0, 20.0, 30.0], requires_grad=True)
    close(x[lab.tensor([2, 0])], [30.0, 10.0])
    close(x[x > 15.0], [20.0, 30.0])
    close(x[lab.tensor(1)], 20.0)
    x[lab.tensor([2, 2])].sum().backward()
    close(x.grad, [0.0, 0.0, 2.0])


def test_methods_are_the_ops():
    x = lab.tensor([[1.0, 4.0], [9.0, 16.0]])
    close(x.sqrt(), [[1.0, 2.0], [3.0, 4.0]])
    close(x.sum(0), [10.0, 20.0])
    close(x.mean(axis=1, keepdims=True), [[2.5], [12.5]])
    close(x.max(), 16.0)
    close(x.min(axis=-1), [1.0, 9.0])
    close(x.reshape(4), [1.0, 4.0, 9.0, 16.0])
    close(x.reshape((1, -1)).transpose(1, 0).transpose(), [[1.0, 4.0, 9.0, 16.0]])
    close(+x, x)
    close(abs(-x), x)
    assert x.astype("float32").dtype == np.float32
    assert callable(lab.ops.exp)
    assert "Exponential" in lab.exp.__doc__


X = lab.tensor(2.0, requires_grad=True)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: X // 2, r"// of tensors is not among the operations\ngiven: Tensor, int\nhint:  lab.floor\(x / y\)"),
        (lambda: 2 // X, r"// of tensors"),
        (lambda: X % 2, r"% of tensors is not among the operations\ngiven: Tensor, int\nhint:  x - y \* lab.floor"),
        (lambda: 2 % X, r"% of tensors"),
        (lambda: divmod(X, 2), r"divmod of tensors"),
        (lambda: round(X, 1), r"a tensor is not rounded\ngiven: Tensor, int\nhint:  round\(x.item\(\), 2\)"),
        (lambda: lab.Tensor(), r"tensors are made by a function\ngiven: nothing\nhint:  lab.tensor"),
        (lambda: lab.Tensor([1.0]), r"tensors are made by a function\ngiven: list"),
        (lambda: lab.tensor([1.0], dtype="foo"), r"this is no dtype\ngiven: 'foo'\nhint:  a dtype of numbers"),
        (lambda: lab.tensor([X, 2]), r"a list of tensors is joined, not copied\ngiven: \[ten.*\nhint:  lab.stack"),
        (lambda: lab.tensor([[X, 2], [3, 4]]), r"a list of tensors is joined, not copied"),
        (lambda: np.nanmax(X), r"np.nanmax does not work on a tensor\ngiven: Tensor\nhint:  use np.nanmax\(x.numpy"),
        (lambda: lab.vmap(lambda i: np.ones(3)[i])(np.array([0, 1])),
         r"a value inside vmap is not made an array[\s\S]*lab.take\(a, index, axis=0\)"),
        (lambda: lab.one_hot([0, 5], 3), r"one_hot met a label outside the classes\ngiven: labels 0 to 5, n=3"),
        (lambda: lab.cross_entropy(np.zeros((1, 2)), [5]), r"a label outside the classes[\s\S]*hint:  labels count"),
    ],
)  # fmt: skip
def test_what_is_not_possible_says_what_is(use, message):
    with pytest.raises(LabError, match=message):
        use()


@pytest.mark.parametrize("logits", [np.array([1.0, 2.0]), lab.tensor([1.0, 2.0], requires_grad=True)])
def test_the_number_0_is_a_label(logits):
    assert float(lab.cross_entropy(logits, 0)) == pytest.approx(np.log(1 + np.e))
    with pytest.raises(DTypeError, match="cross_entropy needs integer labels"):
        lab.cross_entropy(logits, 0.0)


def test_a_list_of_numbers_that_fails_in_a_differentiated_function_is_explained():
    with pytest.raises(TypeError) as caught:
        lab.grad(lambda v: v * v)([1.0, 2.0])
    assert "lab.tensor([...]) makes one tensor of it" in caught.value.__notes__[0]
