"""What a transformer is made of: embedding, attention, the block of attention and a perceptron, and a small decoder.

Every part is a module made of ordinary ops, so a recording shows it as "blocks.0.attention.query" and derives its
gradients as those of anything else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lab import ops
from lab.checks import generator, whole
from lab.errors import ArgumentError, ShapeError
from lab.nn.inputs import refuse_last_axis
from lab.nn.linear import Linear
from lab.nn.module import Module, parameter
from lab.nn.normalization import LayerNorm
from lab.nn.sequential import mlp
from lab.ops.picking import operand

Seed = int | np.random.Generator | None


class Embedding(Module):
    """A row of numbers for each of `n` things: integers (...) -> (..., width).

    Raises:
        DTypeError: called with what are no integers.
        ShapeError: called with a number below 0, or above n - 1.

    Example:
        >>> Embedding(100, 16, rng=0)(np.array([[1, 2, 3]])).shape
        (1, 3, 16)
    """

    def __init__(self, n: int, width: int, *, rng: Seed = None) -> None:
        hint = "Embedding(256, 64) has 64 numbers for each of 256 bytes"
        self.n, self.width = whole("n", n, least=1, hint=hint), whole("width", width, least=1, hint=hint)
        self.weight = parameter(generator(rng).normal(0.0, 0.02, (self.n, self.width)))

    def forward(self, indices: Any) -> Any:
        """Integers from 0 to n - 1 of any shape -> the same shape with `width` behind."""
        return ops.embedding(self.weight, indices)

    def describe(self) -> str:
        return f"{self.n}, {self.width}"


class MultiHeadAttention(Module):
    """Each place looks at the others: softmax(query key' / sqrt(d)) value, in several heads (arXiv:1706.03762, 3.2).

    Shapes:
        x: (..., places, width) -> the same; a head has width / n_heads numbers.

    Args:
        causal: a place sees itself and what is before it only.

    Raises:
        ArgumentError: the width is no multiple of the number of heads.

    Example:
        >>> from lab.autograd import tensor
        >>> MultiHeadAttention(8, 2, rng=0)(tensor(np.ones((3, 5, 8)))).shape
        (3, 5, 8)
    """

    def __init__(self, width: int, n_heads: int = 4, *, causal: bool = True, rng: Seed = None) -> None:
        hint = "MultiHeadAttention(64, 4) has 4 heads of 16 numbers"
        self.width, self.causal = whole("width", width, least=1, hint=hint), causal
        self.n_heads = whole("n_heads", n_heads, least=1, hint=hint)
        if self.width % self.n_heads:
            problem = "the width of an attention is a multiple of its number of heads"
            raise ArgumentError(problem, given=f"width {width}, {n_heads} heads", hint=hint)
        rng = generator(rng)
        self.query, self.key, self.value, self.output = (
            Linear(self.width, self.width, init="xavier", rng=rng) for _ in range(4)
        )

    def forward(self, x: Any) -> Any:
        """(..., places, width) -> (..., places, width)."""
        refuse_last_axis(self, x, self.width)
        if x.ndim < 2:
            raise ShapeError("an attention needs places to look at", given=str(x.shape), hint="(..., places, width)")
        query, key, value = (self._heads(part(x)) for part in (self.query, self.key, self.value))
        mixed = ops.swapaxes(ops.scaled_dot_product_attention(query, key, value, causal=self.causal), -2, -3)
        return self.output(ops.reshape(mixed, x.shape))

    def _heads(self, x: Any) -> Any:
        """(..., places, width) -> (..., heads, places, width / heads)."""
        return ops.swapaxes(ops.reshape(x, (*x.shape[:-1], self.n_heads, self.width // self.n_heads)), -2, -3)

    def describe(self) -> str:
        return f"{self.width}, {self.n_heads}"


class TransformerBlock(Module):
    """`x + attention(norm(x))`, then `x + mlp(norm(x))`: the block with its norms first (arXiv:2002.04745).

    Shapes:
        x: (..., places, width) -> the same.

    Example:
        >>> TransformerBlock(16, 4, rng=0).n_parameters
        3280
    """

    def __init__(self, width: int, n_heads: int = 4, *, causal: bool = True, rng: Seed = None) -> None:
        rng = generator(rng)
        self.layer_norm_1 = LayerNorm(width)
        self.attention = MultiHeadAttention(width, n_heads, causal=causal, rng=rng)
        self.layer_norm_2 = LayerNorm(width)
        self.mlp = mlp(width, 4 * width, width, rng=rng)

    def forward(self, x: Any) -> Any:
        """(..., places, width) -> (..., places, width)."""
        x = x + self.attention(self.layer_norm_1(x))
        return x + self.mlp(self.layer_norm_2(x))


class Transformer(Module):
    """A small decoder: embeddings of tokens and places, blocks one after another, a norm, scores of the next token.

    Shapes:
        tokens: integers (..., places) -> (..., places, n_tokens); at most `n_places` of them.

    Example:
        >>> model = Transformer(27, 16, n_blocks=2, n_heads=2, n_places=8, rng=0)
        >>> model(np.zeros((4, 8), int)).shape
        (4, 8, 27)
    """

    def __init__(
        self,
        n_tokens: int,
        width: int = 64,
        *,
        n_blocks: int = 4,
        n_heads: int = 4,
        n_places: int = 64,
        rng: Seed = None,
    ) -> None:
        rng = generator(rng)
        self.token, self.place = Embedding(n_tokens, width, rng=rng), Embedding(n_places, width, rng=rng)
        self.blocks = [TransformerBlock(width, n_heads, rng=rng) for _ in range(n_blocks)]
        self.layer_norm, self.head = LayerNorm(width), Linear(width, n_tokens, init="xavier", rng=rng)

    def forward(self, tokens: Any) -> Any:
        """Integers (..., places) -> scores (..., places, n_tokens)."""
        tokens = operand(tokens)
        x = self.token(tokens) + self.place(np.arange(tokens.shape[-1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.layer_norm(x))
