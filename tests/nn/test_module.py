import copy
import pickle

import numpy as np
import pytest

from lab.autograd import no_grad, tensor
from lab.config import settings
from lab.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from lab.events import LeafUsed, OpRecorded, record
from lab.nn import Linear, Module, ReLU, Sequential, Softmax, Tanh, mlp, parameter


class Block(Module):
    def __init__(self, rng):
        self.first = Linear(3, 4, rng=rng)
        self.many = [Linear(4, 4, rng=rng), {"deep": Linear(4, 4, rng=rng)}]
        self.scale = parameter(2.0)
        self.constant = tensor([1.0, 2.0])
        self.tied = self.first
        self.text = "not a part"

    def forward(self, x):
        return self.many[1]["deep"](self.many[0](self.first(x))) * self.scale


def names(module):
    return [name for name, _ in module.named_parameters()]


def test_parameters_are_found_in_order_of_definition_each_once_with_paths():
    expected = ["first.weight", "first.bias", "many.0.weight", "many.0.bias"]
    expected += ["many.1.deep.weight", "many.1.deep.bias", "scale"]
    block = Block(0)
    assert names(block) == expected
    assert [p.name for p in block.parameters()] == expected
    assert block.n_parameters == 3 * 4 + 4 + 2 * (16 + 4) + 1


def test_names_grow_with_each_module_around():
    inner = Linear(2, 2)
    assert [inner.weight.name, inner.path] == ["weight", ""]
    model = Sequential(ReLU(), Sequential(inner))
    assert [inner.weight.name, inner.path] == ["1.0.weight", "1.0"]
    assert [path for path, _ in model.named_modules()] == ["", "0", "1", "1.0"]


def test_a_layer_put_into_a_list_later_is_named_on_request():
    model = Sequential(ReLU())
    model.layers.append(Linear(1, 1))
    model.name_parts()
    assert model[1].weight.name == "1.weight"


def test_forward_runs_the_layers_in_order():
    model = mlp(2, 3, 1, rng=0)
    x = np.array([[1.0, -2.0]], np.float32)
    first, _, second = model
    hidden = np.maximum(x @ first.weight.numpy() + first.bias.numpy(), 0)
    expected = hidden @ second.weight.numpy() + second.bias.numpy()
    assert np.allclose(model(tensor(x)).numpy(), expected, atol=1e-6)


def test_a_module_without_forward_says_so():
    class Empty(Module):
        pass

    with pytest.raises(UnsupportedError) as caught:
        Empty()(1)
    assert str(caught.value) == "Empty has no forward\ngiven: Empty(...) was called\nhint:  define forward(self, x)"


def test_train_and_eval_reach_every_module():
    model = Sequential(Linear(1, 1), Sequential(ReLU()))
    assert model.eval() is model
    assert [m.training for _, m in model.named_modules()] == [False] * 4
    assert [m.training for _, m in model.train().named_modules()] == [True] * 4


def test_parameters_take_the_dtype_of_the_lab():
    assert Linear(1, 1).weight.dtype == np.float32
    with settings(dtype="float64"):
        assert Linear(1, 1).weight.dtype == np.float64


def test_the_same_seed_gives_the_same_model_and_layers_of_one_generator_differ():
    a, b = mlp(4, 4, 4, rng=7), mlp(4, 4, 4, rng=7)
    assert all(np.array_equal(p.numpy(), q.numpy()) for p, q in zip(a.parameters(), b.parameters(), strict=True))
    assert not np.array_equal(a[0].weight.numpy(), a[2].weight.numpy())


def test_zero_grad_forgets_gradients():
    layer = Linear(2, 1, rng=0)
    layer(tensor(np.ones((1, 2), np.float32))).sum().backward()
    assert layer.weight.grad is not None
    layer.zero_grad()
    assert [layer.weight.grad, layer.bias.grad] == [None, None]


def test_a_state_goes_from_one_model_to_another():
    a, b = Block(0), Block(1)
    b.load_state_dict(a.state_dict())
    assert all(np.array_equal(p.numpy(), q.numpy()) for p, q in zip(a.parameters(), b.parameters(), strict=True))


def test_a_state_is_a_copy_and_loading_writes_in_place():
    layer = Linear(1, 1, rng=0)
    array, state = layer.weight.value, layer.state_dict()
    state["weight"][...] = 5
    assert layer.weight.item() != 5
    layer.load_state_dict(state)
    assert layer.weight.value is array
    assert layer.weight.item() == 5


def test_loading_is_noticed_by_a_graph_that_needs_the_old_values():
    layer = Linear(1, 1, rng=0)
    x = tensor(np.ones((1, 1), np.float32), requires_grad=True)
    y = layer(x).sum()
    layer.load_state_dict(layer.state_dict())
    with pytest.raises(Exception, match="changed"):
        y.backward()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            lambda state: state.pop("bias"),
            ArgumentError,
            "the state lacks parameters of the model\ngiven: bias\nhint:  the state is of another model, or paths",
        ),
        (
            lambda state: state.update({f"extra{i}": 0 for i in range(6)}),
            ArgumentError,
            "names that the model does not\ngiven: extra0, extra1, extra2, extra3 and 2 more\nhint:  the model",
        ),
        (
            lambda state: state.update(bias=np.zeros(3)),
            ShapeError,
            "bias has another shape in the state\ngiven: (3,) for (1,)",
        ),
        (
            lambda state: state.update(bias=np.array(["a"])),
            DTypeError,
            "bias holds no real numbers in the state\ngiven: <U1\nhint:  values are what model.state_dict() gave",
        ),
        (
            lambda state: state.update(bias=np.array([1j])),
            DTypeError,
            "bias holds no real numbers in the state\ngiven: complex128",
        ),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(change, error, message):
    layer = Linear(2, 1, rng=0)
    before, state = layer.state_dict(), {name: value + 1 for name, value in layer.state_dict().items()}
    change(state)
    with pytest.raises(error) as caught:
        layer.load_state_dict(state)
    assert message in str(caught.value)
    assert all(np.array_equal(before[name], value) for name, value in layer.state_dict().items())


def test_a_state_is_a_mapping():
    with pytest.raises(ArgumentError, match=r"a state is a mapping of names to arrays\ngiven: a list\nhint:  what"):
        Linear(2, 1).load_state_dict([1.0])


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_models_of_their_own(copier):
    model = mlp(2, 2, 1, rng=0)
    twin = copier(model)
    assert names(twin) == names(model) == [p.name for p in twin.parameters()]
    twin[0].weight.value[...] = 0
    assert np.any(model[0].weight.numpy())


def test_a_model_prints_as_a_tree():
    text = "Sequential(\n  0: Linear(2, 3, bias=False)\n  1: Sequential(\n    0: Tanh()\n    1: Softmax(axis=0)\n  )\n)"
    assert repr(Sequential(Linear(2, 3, bias=False), Sequential(Tanh(), Softmax(axis=0)))) == text


def test_operations_know_their_module_while_sources_are_recorded():
    model = Sequential(Linear(2, 2, rng=0), Sequential(Linear(2, 1, rng=0)))
    with record(sources=True) as rec:
        model(tensor(np.ones((1, 2), np.float32)))
    assert rec.columns(OpRecorded)["module"].tolist() == ["0", "0", "1.0", "1.0"]
    assert rec.columns(LeafUsed)["name"].tolist() == ["0.weight", "0.bias", "1.0.weight", "1.0.bias"]


def test_without_gradients_nothing_is_recorded():
    with no_grad():
        assert not Linear(1, 1)(tensor(np.ones((1, 1), np.float32))).requires_grad


class Box(Module):
    def __init__(self):
        self.weight = parameter([1.0])


def test_a_module_that_would_hold_itself_is_refused_and_stays_as_it_was():
    outer, inner = Box(), Box()
    outer.inner = inner
    with pytest.raises(ArgumentError) as caught:
        inner.back = [outer]
    assert caught.value.problem == "a module cannot hold itself"
    assert caught.value.given == "back.0.inner is a Box that it lies in"
    with pytest.raises(ArgumentError, match="a module cannot hold itself"):
        outer.inner = outer
    assert outer.inner is inner
    assert not hasattr(inner, "back")
    assert [name for name, _ in outer.named_parameters()] == ["weight", "inner.weight"]


def test_a_module_held_twice_is_no_circle():
    outer, shared = Box(), Box()
    outer.one, outer.two = shared, [shared]
    assert [name for name, _ in outer.named_parameters()] == ["weight", "one.weight"]
