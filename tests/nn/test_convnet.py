"""The small convolutional network: what it is made of, and what it refuses."""

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError
from lab.nn import convnet


@pytest.mark.parametrize(("size", "channels"), [(28, (1, 8, 16)), (8, (3, 4)), (7, (1, 2, 2)), (9, (2, 3, 4, 5))])
def test_an_image_of_any_size_becomes_scores(size, channels):
    model = convnet(size, channels, 10, rng=0)
    images = np.random.default_rng(0).normal(size=(5, channels[0], size, size)).astype(np.float32)
    assert model(lab.tensor(images)).shape == (5, 10)
    assert sum(type(layer).__name__ == "Conv2d" for layer in model) == len(channels) - 1


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: convnet(28, (1,), 10), "before and behind each convolution"),
        (lambda: convnet(28, 8, 10), "before and behind each convolution"),
        (lambda: convnet(3, (1, 4, 4), 10), "nothing would be left of the image"),
        (lambda: convnet(0, (1, 4), 10), "size"),
        (lambda: convnet(8, (1, 4), 10, kernel=0), "kernel"),
    ],
)
def test_what_is_no_network_is_refused_in_three_lines(call, says):
    with pytest.raises(ArgumentError, match=says) as caught:
        call()
    assert [line.split(":")[0] for line in str(caught.value).splitlines()[1:]] == ["given", "hint"]
