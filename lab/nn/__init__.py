"""Networks: modules that hold parameters, layers, activations, losses."""

from lab.nn.activations import ReLU, Sigmoid, Softmax, Tanh
from lab.nn.batchnorm import BatchNorm1d, BatchNorm2d
from lab.nn.convnet import convnet
from lab.nn.convolution import (
    AvgPool1d,
    AvgPool2d,
    Conv1d,
    Conv2d,
    ConvTranspose1d,
    ConvTranspose2d,
    Flatten,
    MaxPool1d,
    MaxPool2d,
)
from lab.nn.dropout import Dropout
from lab.nn.init import INITS, kaiming, xavier
from lab.nn.linear import Linear
from lab.nn.losses import bce_with_logits, cross_entropy, huber, kl, l1, mse, nll
from lab.nn.module import Module, buffer, parameter
from lab.nn.normalization import GroupNorm, LayerNorm, RMSNorm
from lab.nn.recurrent import GRUCell, LSTMCell, RNNCell
from lab.nn.sequential import Sequential, mlp
from lab.nn.structure import Skeleton
from lab.nn.transformer import Embedding, MultiHeadAttention, Transformer, TransformerBlock

__all__ = [
    "INITS",
    "AvgPool1d",
    "AvgPool2d",
    "Conv1d",
    "Conv2d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "Embedding",
    "Flatten",
    "LayerNorm",
    "Linear",
    "MaxPool1d",
    "MaxPool2d",
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
    "convnet",
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
    "BatchNorm1d",
    "BatchNorm2d",
    "Dropout",
    "GroupNorm",
    "RMSNorm",
    "GRUCell",
    "LSTMCell",
    "RNNCell",
    "buffer",
]
