import numpy as np
import pytest

from lab import transforms, tree
from lab.autograd import tensor
from lab.errors import ArgumentError
from lab.nn import Linear, Module, Sequential, Tanh, cross_entropy, mlp

X = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
Y = np.arange(6) % 2


def model_and_loss():
    return mlp(3, 4, 2, activation=Tanh, rng=0), lambda model: cross_entropy(model(tensor(X)), Y)


def test_a_module_is_taken_apart_and_put_together_again():
    model, loss = model_and_loss()
    leaves, structure = tree.flatten(model)
    assert [id(leaf) for leaf in leaves] == [id(p) for p in model.parameters()]
    assert tree.paths(model) == [".0.weight", ".0.bias", ".2.weight", ".2.bias"]
    again = tree.unflatten(structure, leaves)
    assert again is not model
    assert loss(again).item() == loss(model).item()


def test_other_leaves_make_another_model_and_leave_the_first_alone():
    model, _ = model_and_loss()
    before = model.state_dict()
    zeros = tree.map_leaves(lambda p: tensor(np.zeros(p.shape, p.dtype)), model)
    assert not zeros(tensor(X)).numpy().any()
    assert all(np.array_equal(before[name], value) for name, value in model.state_dict().items())
    assert [leaf.shape for leaf in tree.flatten(zeros)[0]] == [p.shape for p in model.parameters()]


def test_models_made_alike_have_one_structure():
    alike, same, wider = mlp(3, 4, 2, rng=0), mlp(3, 4, 2, rng=1), mlp(3, 5, 2, rng=0)
    structures = [tree.flatten(m)[1] for m in (alike, same, wider)]
    assert structures[0] == structures[1] != structures[2]
    assert hash(structures[0]) == hash(structures[1])
    total = tree.map_leaves(lambda p, q: p.numpy() + q.numpy(), alike, same)
    assert np.array_equal(total[0].weight, alike[0].weight.numpy() + same[0].weight.numpy())
    with pytest.raises(ArgumentError, match="containers differ in structure"):
        tree.map_leaves(lambda p, q: p, alike, wider)


def test_a_shared_layer_stays_shared():
    class Tied(Module):
        def __init__(self):
            self.a = Linear(2, 2, rng=0)
            self.both = [self.a, (self.a, {"a": self.a})]

    tied = Tied()
    leaves, structure = tree.flatten(tied)
    again = tree.unflatten(structure, leaves)
    assert len(leaves) == 2
    assert again.a is again.both[0] is again.both[1][0] is again.both[1][1]["a"] is not tied.a


def test_the_gradient_of_a_model_is_a_model_of_gradients():
    model, loss = model_and_loss()
    loss(model).backward()
    found = transforms.grad(loss)(model)
    assert isinstance(found, Sequential)
    assert np.allclose(found[0].weight.numpy(), model[0].weight.grad.numpy())
    assert np.allclose(found[2].bias.numpy(), model[2].bias.grad.numpy())


def test_a_compiled_function_takes_a_model_and_sees_its_new_values():
    model, loss = model_and_loss()
    fast = transforms.jit(loss)
    assert fast(model).item() == pytest.approx(loss(model).item(), abs=1e-6)
    other = mlp(3, 4, 2, activation=Tanh, rng=5)
    assert fast(other).item() == pytest.approx(loss(other).item(), abs=1e-6)
