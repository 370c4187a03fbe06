import numpy as np
import pytest

import lab
from lab.autograd import tensor
from lab.errors import ArgumentError, ShapeError
from lab.nn import (
    AvgPool1d,
    AvgPool2d,
    Conv1d,
    Conv2d,
    ConvTranspose1d,
    ConvTranspose2d,
    Flatten,
    Linear,
    MaxPool1d,
    MaxPool2d,
    ReLU,
    Sequential,
)

IMAGES = np.random.default_rng(0).normal(size=(2, 4, 6, 5)).astype(np.float32)


def convnet():
    rng = np.random.default_rng(0)
    conv = Conv2d(1, 4, 3, padding="same", rng=rng)
    return Sequential(conv, ReLU(), MaxPool2d(2), Flatten(), Linear(64, 10, rng=rng))


@pytest.mark.parametrize(
    ("layer", "function"),
    [
        (Conv2d(4, 6, (3, 2), stride=2, padding=1, groups=2, rng=0), lab.conv2d),
        (ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2, rng=0), lab.conv_transpose2d),
    ],
)
def test_a_layer_is_its_function_with_its_settings(layer, function):
    assert layer.weight.shape == ((6, 2, 3, 2) if function is lab.conv2d else (4, 3, 3, 3))
    found = layer(tensor(IMAGES))
    assert np.array_equal(found.numpy(), function(tensor(IMAGES), layer.weight, layer.bias, **layer._options()).numpy())
    assert found.dtype == np.float32


def test_layers_of_signals_are_those_of_images_of_one_row():
    flat, wide = Conv1d(4, 3, 2, rng=0), Conv2d(4, 3, (1, 2), rng=0)
    assert np.allclose(flat(IMAGES[:, :, 0]).numpy(), wide(IMAGES[:, :, :1]).numpy()[:, :, 0])
    up, wide_up = ConvTranspose1d(4, 3, 2, stride=2, rng=0), ConvTranspose2d(4, 3, (1, 2), stride=(1, 2), rng=0)
    assert np.allclose(up(IMAGES[:, :, 0]).numpy(), wide_up(IMAGES[:, :, :1]).numpy()[:, :, 0])


@pytest.mark.parametrize(
    ("pool", "function"),
    [(MaxPool2d(3, stride=1, padding=1), lab.max_pool2d), (AvgPool2d(3, stride=1, padding=1), lab.avg_pool2d)],
)
def test_a_pooling_layer_is_its_function(pool, function):
    assert np.array_equal(pool(tensor(IMAGES)).numpy(), function(tensor(IMAGES), 3, 1, 1).numpy())


@pytest.mark.parametrize("pool", [MaxPool1d(2), AvgPool1d(2)])
def test_a_pooling_of_signals_halves_them(pool):
    assert pool(tensor(IMAGES[:, :, 0])).shape == (2, 4, 2)


@pytest.mark.parametrize(("init", "bound"), [("kaiming", np.sqrt(6 / 72)), ("xavier", np.sqrt(6 / (72 + 576)))])
def test_starting_weights_fill_the_range_of_what_a_pixel_sees(init, bound):
    for layer in (Conv2d(8, 64, 3, init=init, rng=0), ConvTranspose2d(8, 64, 3, init=init, rng=0)):
        weight = layer.weight.numpy()
        assert 0.98 * bound < abs(weight).max() <= bound * (1 + 1e-6)


def test_a_convnet_keeps_the_size_of_a_signal_through_ten_layers():
    rng, x = np.random.default_rng(0), np.random.default_rng(1).normal(size=(4, 16, 12, 12))
    for _ in range(10):
        x = lab.relu(Conv2d(16, 16, 3, padding="same", rng=rng)(x)).numpy()
    assert 0.2 < np.sqrt((x**2).mean()) < 2


def test_a_graph_of_a_convnet_reads_as_it_was_written():
    text = str(lab.make_graph(convnet())(np.zeros((2, 1, 8, 8), np.float32)))
    assert "conv(a, b, stride=1, padding='same', dilation=1, groups=1)" in text
    assert "f32[2,4,4,4] = max_pool(g, kernel=2, stride=None, padding=0)" in text


def test_a_convnet_is_trained_and_its_state_kept():
    images = np.random.default_rng(0).normal(size=(64, 1, 8, 8)).astype(np.float32)
    labels = (images[:, 0, :4].sum(axis=(1, 2)) > 0).astype(int)
    model, other = convnet(), convnet()
    run = lab.fit(model, (images, labels), epochs=20, batch_size=32, optimizer=lab.optim.Adam(model.parameters(), 0.01))
    assert run.wait().loss < 0.3
    other.load_state_dict(model.state_dict())
    assert np.array_equal(other(images).numpy(), model(images).numpy())


def test_layers_say_what_they_are():
    assert [repr(layer) for layer in convnet()] == [
        "Conv2d(1, 4, 3, padding='same')", "ReLU()", "MaxPool2d(2)", "Flatten()", "Linear(64, 10)",
    ]  # fmt: skip
    assert repr(ConvTranspose1d(2, 2, 3, stride=2, output_padding=1, bias=False)) == (
        "ConvTranspose1d(2, 2, 3, stride=2, output_padding=1, bias=False)"
    )
    assert repr(AvgPool2d(3, stride=1, padding=1)) == "AvgPool2d(3, stride=1, padding=1)"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Conv2d(0, 1, 3), ArgumentError, "n_in is a whole number of at least 1\ngiven: n_in=0"),
        (lambda: Conv2d(1, 1, 0), ArgumentError, "Conv2d needs kernel as a whole number of at least 1\ngiven: kernel"),
        (lambda: Conv1d(1, 1, 3, stride=-1), ArgumentError, "Conv1d needs stride as a whole number of at least 1"),
        (lambda: Conv2d(1, 1, 3, padding="all"), ArgumentError, "Conv2d does not know this padding"),
        (lambda: Conv2d(4, 3, 3, groups=2), ArgumentError, "the groups of Conv2d divide its channels\ngiven: 4 to 3"),
        (lambda: MaxPool1d(2.5), ArgumentError, "MaxPool1d needs kernel as a whole number of at least 1"),
        (
            lambda: convnet()(tensor(IMAGES)),
            ShapeError,
            ("layer '0' Conv2d(1, 4, 3, padding='same') cannot take this input\ngiven: shape (2, 4, 6, 5)\n"
            "hint:  (batch, 1 channel, height, width)"),
        ),
        (lambda: Conv1d(2, 1, 3)("abc"), ArgumentError, "cannot take this input\ngiven: 'abc'\nhint:  give it"),
        (lambda: Flatten()(tensor(1.0)), ShapeError, "Flatten keeps the first axis\ngiven: shape ()"),
        (lambda: Flatten()(3), ArgumentError, "Flatten takes a tensor or an array\ngiven: 3"),
    ],
)
def test_errors_name_the_layer_and_what_it_wants(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert message in str(caught.value)
