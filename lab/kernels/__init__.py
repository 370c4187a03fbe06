"""Numba kernels, arrays in and arrays out: compiled when first called, cached on disk, each with a slow twin in NumPy.

Importing this package imports no numba; where numba is missing the twins run.
"""

from lab.kernels.arguments import FLOAT_CHARS, FLOATS
from lab.kernels.cache import cache_folder
from lab.kernels.chain import Chain, Step
from lab.kernels.columns import col2im, im2col
from lab.kernels.formula import Formula
from lab.kernels.fuse import Fused, fuse
from lab.kernels.kernel import KERNELS, Kernel, have_compiler, have_numba, kernel
from lab.kernels.losses import softmax_cross_entropy, softmax_cross_entropy_gradient
from lab.kernels.namespaces import numpy_namespace, scalar_namespace
from lab.kernels.normalizing import layer_norm, layer_norm_gradients
from lab.kernels.optimizers import adagrad, adam, rmsprop, sgd
from lab.kernels.pooling import max_pool, max_pool_gradient, places_of_max
from lab.kernels.reductions import row_deviations, row_extremes_gradient, row_variances
from lab.kernels.rows import add_rows
from lab.kernels.softmax import softmax, softmax_gradient
from lab.kernels.warm import warm

__all__ = [
    "FLOATS",
    "FLOAT_CHARS",
    "KERNELS",
    "Chain",
    "Formula",
    "Fused",
    "Kernel",
    "Step",
    "adagrad",
    "adam",
    "add_rows",
    "cache_folder",
    "col2im",
    "fuse",
    "have_compiler",
    "have_numba",
    "im2col",
    "kernel",
    "layer_norm",
    "layer_norm_gradients",
    "max_pool",
    "max_pool_gradient",
    "numpy_namespace",
    "places_of_max",
    "rmsprop",
    "row_deviations",
    "row_extremes_gradient",
    "row_variances",
    "scalar_namespace",
    "sgd",
    "softmax",
    "softmax_cross_entropy",
    "softmax_cross_entropy_gradient",
    "softmax_gradient",
    "warm",
]
