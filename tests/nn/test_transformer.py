"""Parts of a transformer against their formulas in plain NumPy, their gradients against central differences."""

import numpy as np
import pytest

import lab
from lab.config import using
from lab.errors import ArgumentError, DTypeError, ShapeError
from lab.events import OpRecorded
from lab.nn import Embedding, LayerNorm, MultiHeadAttention, Transformer, TransformerBlock, cross_entropy


def drawn(*shape):
    return np.random.default_rng(1).normal(size=shape)


def normed(x, scale=1.0, shift=0.0):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + shift


def attended(module, x, n_heads, causal):
    """Head by head, row by row."""
    q, k, v = (x @ p.weight.numpy() + p.bias.numpy() for p in (module.query, module.key, module.value))
    d, mixed = x.shape[-1] // n_heads, np.zeros_like(x)
    for h in range(n_heads):
        part = slice(h * d, (h + 1) * d)
        for i in range(len(x)):
            seen = range(i + 1 if causal else len(x))
            scores = np.array([q[i, part] @ k[j, part] / np.sqrt(d) for j in seen])
            weights = np.exp(scores - scores.max())
            mixed[i, part] = sum(w * v[j, part] for w, j in zip(weights / weights.sum(), seen, strict=True))
    return mixed @ module.output.weight.numpy() + module.output.bias.numpy()


def test_layer_norm_is_its_formula():
    layer, x = LayerNorm(6), drawn(2, 3, 6)
    layer.scale.value[...], layer.shift.value[...] = drawn(6), 2.0
    assert np.allclose(layer(lab.tensor(x)).numpy(), normed(x, layer.scale.numpy(), 2.0), atol=1e-6)


def test_an_embedding_gives_rows_and_its_gradient_counts_them():
    layer, indices = Embedding(5, 3, rng=0), np.array([[1, 1], [4, 1]])
    out = layer(indices)
    assert np.array_equal(out.numpy(), layer.weight.numpy()[indices])
    out.sum().backward()
    assert layer.weight.grad.numpy()[:, 0].tolist() == [0, 3, 0, 0, 1]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("n_heads", [1, 2, 4])
def test_attention_is_its_formula_head_by_head(causal, n_heads):
    with using(dtype=np.dtype("float64")):
        module = MultiHeadAttention(8, n_heads, causal=causal, rng=0)
    x = drawn(5, 8)
    want = attended(module, x, n_heads, causal)
    assert np.allclose(module(lab.tensor(x)).numpy(), want)
    assert np.allclose(module(lab.tensor(np.stack([x, x]))).numpy(), [want, want])


def test_a_causal_block_does_not_see_what_comes_later():
    with using(dtype=np.dtype("float64")):
        block = TransformerBlock(8, 2, rng=0)
    x = drawn(1, 6, 8)
    other = x.copy()
    other[:, 4:] += 1.0
    before, after = block(lab.tensor(x)).numpy(), block(lab.tensor(other)).numpy()
    assert np.array_equal(before[:, :4], after[:, :4])
    assert not np.allclose(before[:, 4:], after[:, 4:])


def test_a_block_adds_attention_then_mlp_to_what_it_got():
    with using(dtype=np.dtype("float64")):
        block = TransformerBlock(8, 2, rng=0)
    x = drawn(5, 8)
    y = x + attended(block.attention, normed(x), 2, True)
    first, _, last = block.mlp
    hidden = np.maximum(normed(y) @ first.weight.numpy() + first.bias.numpy(), 0)
    want = y + hidden @ last.weight.numpy() + last.bias.numpy()
    assert np.allclose(block(lab.tensor(x)).numpy(), want)


def test_every_gradient_of_a_transformer_is_the_central_difference():
    with using(dtype=np.dtype("float64")):
        model = Transformer(7, 8, n_blocks=2, n_heads=2, n_places=6, rng=0)
    tokens, rng = np.random.default_rng(0).integers(0, 7, (3, 5)), np.random.default_rng(2)
    cross_entropy(model(tokens), tokens).backward()
    for name, p in model.named_parameters():
        direction, step = rng.normal(size=p.shape), 1e-6
        losses = []
        for sign in (1, -1):
            p.value[...] += sign * step * direction
            losses.append(cross_entropy(model(tokens), tokens).item())
            p.value[...] -= sign * step * direction
        slope = (losses[0] - losses[1]) / (2 * step)
        assert np.vdot(p.grad.numpy(), direction) == pytest.approx(slope, rel=1e-5, abs=1e-7), name


def test_a_transformer_learns_to_repeat():
    model, tokens = Transformer(5, 16, n_blocks=1, n_heads=2, n_places=8, rng=0), np.tile(np.arange(4), (2, 2))
    first = cross_entropy(model(tokens), tokens).item()
    for _ in range(30):
        model.zero_grad()
        loss = cross_entropy(model(tokens), tokens)
        loss.backward()
        for p in model.parameters():
            p.value[...] -= 0.3 * p.grad.numpy()
    assert loss.item() < first / 3


def test_a_recording_names_the_module_of_each_operation():
    model = Transformer(5, 8, n_blocks=2, n_heads=2, n_places=4, rng=0)
    with lab.record() as rec:
        model(np.zeros((1, 4), int))
    modules = dict.fromkeys(rec.columns(OpRecorded)["module"].tolist())
    assert {"token", "place", "blocks.0.attention.query", "blocks.1.mlp.2", "layer_norm", "head"} <= modules.keys()
    assert list(dict(model.named_parameters()))[2] == "blocks.0.layer_norm_1.scale"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: MultiHeadAttention(8, 3), ArgumentError, "multiple of its number of heads\ngiven: width 8, 3 heads"),
        (lambda: LayerNorm(0), ArgumentError, "n is a whole number of at least 1\ngiven: n=0"),
        (lambda: LayerNorm(4)(lab.tensor(np.zeros((2, 3)))), ShapeError, "given: shape (2, 3)\nhint:  its last axis"),
        (lambda: LayerNorm(4)(3.0), ArgumentError, "LayerNorm(4) cannot take this input\ngiven: 3.0"),
        (lambda: MultiHeadAttention(4, 2)(lab.tensor(np.zeros(4))), ShapeError, "an attention needs places to look at"),
        (lambda: Embedding(4, 2)(np.array([0.5])), DTypeError, "embedding needs integer indices\ngiven: float64"),
        (lambda: Embedding(4, 2)(np.array([4])), ShapeError, "no row for an index\ngiven: indices 4 to 4, 4 rows"),
    ],
)
def test_errors_say_what_was_wrong(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert message in str(caught.value)
