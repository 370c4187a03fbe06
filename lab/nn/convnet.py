"""A small convolutional network: convolution, ReLU and pooling in turn, and a linear layer on what is left."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from lab.checks import generator, whole
from lab.errors import ArgumentError
from lab.nn.activations import ReLU
from lab.nn.convolution import Conv2d, Flatten, MaxPool2d
from lab.nn.linear import Linear
from lab.nn.module import Module
from lab.nn.sequential import Sequential
from lab.words import shown

HINT = "convnet(28, (1, 8, 16), 10) takes images of 28 x 28 pixels with 1 channel, and makes 8 and 16 of it"


def convnet(
    size: int, channels: Sequence[int], n_classes: int, *, kernel: int = 3,
    rng: int | np.random.Generator | None = None,
) -> Sequential:  # fmt: skip
    """A network for square images: for each pair of `channels` a convolution, ReLU and pooling, which halves sides.

    Shapes:
        x: (batch, channels[0], size, size) -> scores (batch, n_classes).

    Args:
        size: pixels along a side; the pooled images round down.
        channels: of the image, then behind each convolution.
        kernel: pixels along a side of what slides.

    Raises:
        ArgumentError: no convolution, more halvings than the image has pixels for, or what is no whole number.

    Example:
        >>> model = convnet(28, (1, 8, 16), 10, rng=0)
        >>> [str(layer) for layer in model][-2:], model.n_parameters
        (['Flatten()', 'Linear(784, 10)'], 9098)
    """
    size, kernel = whole("size", size, least=1, hint=HINT), whole("kernel", kernel, least=1, hint="kernel=3")
    if not isinstance(channels, list | tuple) or len(channels) < 2:
        raise ArgumentError("a convnet has channels before and behind each convolution",
                            given=f"channels={shown(channels)}", hint=HINT)  # fmt: skip
    side = size >> (len(channels) - 1)
    if not side:
        raise ArgumentError("nothing would be left of the image: each pooling halves its sides",
                            given=f"{size} x {size} pixels, halved {len(channels) - 1} times",
                            hint="fewer channels, or larger images")  # fmt: skip
    rng, layers = generator(rng), list[Module]()
    for n_in, n_out in pairwise(channels):
        layers += [Conv2d(n_in, n_out, kernel, padding="same", rng=rng), ReLU(), MaxPool2d(2)]
    return Sequential(*layers, Flatten(), Linear(channels[-1] * side * side, n_classes, rng=rng))
