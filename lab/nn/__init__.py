"""Networks: modules that hold parameters, layers, activations, losses."""

from lab.nn.activations import ReLU, Sigmoid, Softmax, Tanh
from lab.nn.init import INITS, kaiming, xavier
from lab.nn.linear import Linear
from lab.nn.losses import bce_with_logits, cross_entropy, huber, kl, l1, mse, nll
from lab.nn.module import Module, parameter
from lab.nn.sequential import Sequential, mlp
from lab.nn.structure import Skeleton
from lab.nn.transformer import Embedding, LayerNorm, MultiHeadAttention, Transformer, TransformerBlock

__all__ = [
    "INITS",
    "Embedding",
    "LayerNorm",
    "Linear",
    "Module",
    "MultiHeadAttention",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Skeleton",
    "Softmax",
    "Tanh",
    "Transformer",
    "TransformerBlock",
    "bce_with_logits",
    "cross_entropy",
    "huber",
    "kaiming",
    "kl",
    "l1",
    "mlp",
    "mse",
    "nll",
    "parameter",
    "xavier",
]
