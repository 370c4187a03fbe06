import copy
import math

import numpy as np
import pytest

import lab
from lab.autograd import tensor
from lab.errors import ArgumentError, GradientError, ShapeError
from lab.events import GradientCleared, ValueWritten
from lab.nn import mlp, mse
from lab.optim import SGD, Adagrad, Adam, AdamW, Cosine, RMSprop

RULES = [SGD, Adam, AdamW, RMSprop, Adagrad]
X = np.random.default_rng(0).standard_normal((16, 3)).astype(np.float32)
Y = np.random.default_rng(1).standard_normal((16, 1)).astype(np.float32)


def leaf(value=1.0, dtype="float64", name=""):
    return tensor(np.array(value, dtype), requires_grad=True, name=name)


def steps(model, optimizer, n):
    for _ in range(n):
        optimizer.zero_grad()
        mse(model(tensor(X)), Y).backward()
        optimizer.step()


def bits(model):
    return {name: value.tobytes() for name, value in model.state_dict().items()}


def test_parameters_become_views_of_one_vector_and_keep_their_values():
    model = mlp(3, 4, 1, rng=0)
    before = bits(model)
    (group,) = Adam(model.parameters()).groups
    assert bits(model) == before
    assert all(p.value.base is group.values for p in model.parameters())
    assert group.values.shape == (model.n_parameters,)


def test_parameters_of_two_dtypes_make_two_vectors():
    a, b, c = leaf([1.0, 2.0]), leaf([3.0], "float32"), leaf(4.0)
    optimizer = SGD([a, b, c], learning_rate=1.0)
    for p in (a, b, c):
        (p * p).sum().backward()
    optimizer.step()
    assert [g.values.dtype.name for g in optimizer.groups] == ["float64", "float32"]
    assert [p.numpy().tolist() for p in (a, b, c)] == [[-1.0, -2.0], [-3.0], -4.0]
    assert [p.dtype.name for p in (a, b, c)] == ["float64", "float32", "float64"]


@pytest.mark.parametrize("rule", RULES)
def test_training_lowers_the_loss(rule):
    model = mlp(3, 8, 1, rng=0)
    before = mse(model(tensor(X)), Y).item()
    steps(model, rule(model.parameters(), learning_rate=0.05 if rule is Adagrad else 0.02), 50)
    assert mse(model(tensor(X)), Y).item() < 0.7 * before


@pytest.mark.parametrize("rule", RULES)
def test_a_state_goes_on_with_the_same_bits(rule):
    options = {"learning_rate": Cosine(0.01, 10), "clip_norm": 0.5}
    options |= {"momentum": 0.9} if rule in (SGD, RMSprop) else {}
    model = mlp(3, 4, 1, rng=0)
    optimizer = rule(model.parameters(), **options)
    steps(model, optimizer, 3)

    twin = mlp(3, 4, 1, rng=9)
    twin.load_state_dict(model.state_dict())
    other = rule(twin.parameters(), 0.5, clip_norm=9.0)
    other.load_state_dict(optimizer.state_dict())
    assert other.hyperparameters == optimizer.hyperparameters
    steps(model, optimizer, 3)
    steps(twin, other, 3)
    assert bits(twin) == bits(model)
    assert other.n_steps == 6


def test_a_snapshot_brings_parameters_and_state_back_but_not_the_learning_rate():
    model = mlp(3, 4, 1, rng=0)
    optimizer = Adam(model.parameters())
    steps(model, optimizer, 2)
    snapshot, after = optimizer.snapshot(), []
    for _ in range(2):
        steps(model, optimizer, 3)
        after.append(bits(model))
        optimizer.restore(snapshot)
    assert after[0] == after[1]
    optimizer.learning_rate = 0.5
    optimizer.restore(snapshot)
    assert (optimizer.learning_rate, optimizer.n_steps) == (0.5, 2)


def test_two_optimisers_may_share_a_parameter():
    shared, alone = leaf(8.0), leaf(8.0)
    first, second = SGD([shared], learning_rate=0.25), SGD([shared, alone], learning_rate=0.25)
    for optimizer in (first, second, first):
        for p in (shared, alone):
            p.zero_grad()
            (p * p).backward()
        optimizer.step()
    assert (shared.item(), alone.item()) == (1.0, 4.0)


def test_a_parameter_whose_array_was_replaced_is_taken_back():
    p = leaf([1.0, 1.0])
    optimizer = SGD([p], learning_rate=0.5)
    p.value = np.array([4.0, 6.0])
    (p * p).sum().backward()
    optimizer.step()
    assert p.numpy().tolist() == [0.0, 0.0]


def test_a_copied_model_is_trained_by_an_optimiser_of_its_own():
    model = mlp(3, 4, 1, rng=0)
    Adam(model.parameters())
    twin = copy.deepcopy(model)
    before = bits(model)
    steps(twin, Adam(twin.parameters()), 1)
    assert bits(model) == before != bits(twin)


def test_model_and_optimiser_copied_together_go_on_as_the_originals():
    model = mlp(3, 4, 1, rng=0)
    optimizer = Adam(model.parameters())
    steps(model, optimizer, 2)
    twin, its_optimizer = copy.deepcopy((model, optimizer))
    steps(twin, its_optimizer, 3)
    after = bits(twin)
    assert after != bits(model)
    steps(model, optimizer, 3)
    assert after == bits(twin) == bits(model)


def test_gradients_add_up_until_they_are_forgotten():
    p = leaf(1.0)
    optimizer = SGD([p], learning_rate=1.0)
    for _ in range(3):
        (p * 2.0).backward()
    assert p.grad.item() == 6.0
    optimizer.zero_grad()
    assert p.grad is None


def test_a_gradient_that_carries_a_graph_is_one_too():
    p = leaf(3.0)
    optimizer = SGD([p], learning_rate=0.5)
    (p * p).backward(create_graph=True)
    optimizer.step()
    assert p.item() == 0.0


def test_a_graph_that_needs_the_values_before_the_step_refuses_to_go_on():
    p = leaf(3.0)
    optimizer = SGD([p])
    loss = p * p
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(GradientError):
        loss.backward()


def test_without_any_gradient_the_hint_is_backward():
    with pytest.raises(GradientError) as caught:
        Adam([leaf()]).step()
    wanted = "no parameter has a gradient\ngiven: none of 1 has one\nhint:  call loss.backward() before step()"
    assert str(caught.value) == wanted


def test_a_parameter_that_took_no_part_is_named_and_nothing_moves():
    used, unused = leaf(1.0, name="used"), leaf(1.0, name="unused")
    optimizer = SGD([used, unused])
    (used * used).backward()
    with pytest.raises(GradientError) as caught:
        optimizer.step()
    assert str(caught.value) == (
        "1 of 2 parameters have no gradient\ngiven: unused\n"
        "hint:  they took no part in the loss: leave them out of the optimiser, or use them"
    )
    assert (used.item(), optimizer.n_steps) == (1.0, 0)


def test_the_learning_rate_can_be_read_and_set():
    p = leaf(1.0)
    optimizer = SGD([p], learning_rate=0.5)
    optimizer.learning_rate = 0.25
    (p * p).backward()
    optimizer.step()
    assert (optimizer.learning_rate, optimizer.hyperparameters["learning_rate"], p.item()) == (0.25, 0.25, 0.5)


TWICE = leaf(name="w")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Adam([]), "an optimiser needs parameters\ngiven: none\nhint:  Adam(model.parameters())"),
        (lambda: Adam([TWICE, TWICE]), "a parameter is given twice\ngiven: w\nhint:  each would move twice"),
        (lambda: Adam([tensor(1.0)]), "this cannot be optimised\ngiven: number 0: Tensor\nhint:  give leaf tensors"),
        (lambda: Adam([TWICE * 2.0]), "this cannot be optimised"),
        (lambda: Adam([np.zeros(2)]), "this cannot be optimised\ngiven: number 0: ndarray"),
        (lambda: SGD([TWICE], -1.0), "learning_rate is out of range\ngiven: -1.0\nhint:  at least 0, finite"),
        (lambda: SGD([TWICE], math.nan), "learning_rate is out of range\ngiven: nan"),
        (lambda: SGD([TWICE], math.inf), "learning_rate is out of range\ngiven: inf"),
        (lambda: SGD([TWICE], momentum=1.0), "momentum is out of range\ngiven: 1.0\nhint:  at least 0, below 1"),
        (lambda: Adam([TWICE], beta2=1.0), "beta2 is out of range"),
        (lambda: SGD([TWICE], "a"), "learning_rate is a number\ngiven: learning_rate='a'\nhint:  at least 0, finite"),
        (lambda: SGD([TWICE]).set("momentum", None), "momentum is a number\ngiven: momentum=None"),
        (lambda: setattr(SGD([TWICE]), "learning_rate", "0.1"), "is a number\ngiven: learning_rate='0.1'"),
        (
            lambda: SGD([TWICE]).set("beta1", 0.5),
            "SGD has no such hyperparameter\ngiven: 'beta1'\nhint:  one of learning_rate, momentum, weight_decay",
        ),
        (
            lambda: SGD([TWICE]).load_state_dict(Adam([TWICE]).state_dict()),
            "the state is of another optimiser\ngiven: Adam for SGD",
        ),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ArgumentError) as caught:
        make()
    assert message in str(caught.value)


def test_a_state_of_other_parameters_is_refused_and_changes_nothing():
    optimizer = Adam([leaf([1.0, 2.0])])
    with pytest.raises(ShapeError, match=r"the state is of other parameters\ngiven: m \[\(3,\)\]"):
        optimizer.load_state_dict(Adam([leaf([1.0, 2.0, 3.0])], 0.5).state_dict())
    assert optimizer.learning_rate == 1e-3


def test_an_optimiser_prints_its_hyperparameters():
    text = "SGD(learning_rate=0.5, momentum=0.9, weight_decay=0, nesterov=True)"
    assert repr(SGD([leaf()], 0.5, momentum=0.9, nesterov=True)) == text
    assert (
        repr(AdamW([leaf()])) == "AdamW(learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, weight_decay=0.01)"
    )


@pytest.mark.parametrize("rule", RULES)
def test_a_step_tells_each_parameter_once_and_so_does_what_puts_values_back(rule):
    a, b = leaf([1.0, 2.0]), leaf(3.0, "float32")
    optimizer = rule([a, b], 0.5)
    (a.sum() * b).backward()
    kept = optimizer.snapshot()
    with lab.record(detail="value") as rec:
        optimizer.step()
        optimizer.zero_grad()
        optimizer.zero_grad()
        optimizer.restore(kept)
    written = [
        *(("ValueWritten", a), ("ValueSeen", a), ("ValueWritten", b), ("ValueSeen", b)),
        *(("GradientCleared", a), ("GradientCleared", b)),
        *(("ValueWritten", a), ("ValueSeen", a), ("ValueWritten", b), ("ValueSeen", b)),
    ]
    assert [(type(e).__name__, e.node) for e in rec] == [(word, p.node.id) for word, p in written]
    assert [rec[i].value.tolist() for i in (7, 9)] == [[1.0, 2.0], 3.0]
    assert rec[1].value.tolist() != [1.0, 2.0]


def test_a_model_tells_that_its_gradients_are_forgotten_and_its_state_was_loaded():
    model = mlp(2, 1)
    model(tensor(np.ones((1, 2), np.float32))).sum().backward()
    with lab.record(detail="shape") as rec:
        model.zero_grad()
        model.load_state_dict(model.state_dict())
    ids = [p.node.id for p in model.parameters()]
    assert [(type(e), e.node) for e in rec] == [*((GradientCleared, i) for i in ids), *((ValueWritten, i) for i in ids)]


# --- a part of it -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [
    lambda p: SGD(p, 0.1, momentum=0.9, nesterov=True),
    lambda p: Adam(p, Cosine(0.1, 5)),
    lambda p: RMSprop(p, 0.1, momentum=0.5),
    Adagrad,
])  # fmt: skip
def test_parts_of_an_optimiser_go_on_as_the_whole_would(kind):
    def parameters():
        rng = np.random.default_rng(0)
        shapes = {"float32": [(3, 2), (4,)], "float64": [(2,), ()]}
        return [tensor(rng.normal(size=s).astype(t), requires_grad=True) for t, sizes in shapes.items() for s in sizes]

    def train(params, optimizers):
        for p in params:
            p.grad = np.cos(p.numpy())
        for each in optimizers:
            each.step()

    whole, cut = parameters(), parameters()
    one, other = kind(whole), kind(cut)
    train(whole, [one])
    train(cut, [other])
    parts = [other.part([cut[2], cut[0]]), other.part(iter(cut[1::2]))]
    for _ in range(3):
        train(whole, [one])
        train(cut, parts)
    assert [p.value.tobytes() for p in whole] == [p.value.tobytes() for p in cut]
    parts[0].learning_rate = 0.5
    assert parts[1].learning_rate == one.learning_rate != parts[0].learning_rate
    assert (parts[1].n_steps, other.n_steps) == (4, 1)


def test_a_part_is_made_of_parameters_of_the_whole():
    mine, foreign = tensor([1.0], requires_grad=True), tensor([1.0], requires_grad=True, name="theirs")
    with pytest.raises(ArgumentError, match=r"the optimiser does not have these parameters\ngiven: theirs\nhint"):
        SGD([mine]).part([mine, foreign])


def test_a_part_of_nothing_steps_and_does_nothing():
    mine = tensor([1.0], requires_grad=True)
    part = Adam([mine]).part([])
    part.step()
    assert (part.parameters, part.snapshot().values, part.n_steps, mine.item()) == ([], [], 1, 1.0)
