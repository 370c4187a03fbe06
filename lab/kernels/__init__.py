"""Numba kernels, arrays in and arrays out: compiled when first called, cached on disk, each with a slow twin in NumPy.

Importing this package imports no numba; where numba is missing the twins run.
"""

from lab.kernels.arguments import FLOATS
from lab.kernels.cache import cache_folder
from lab.kernels.kernel import KERNELS, Kernel, have_numba, kernel
from lab.kernels.losses import softmax_cross_entropy, softmax_cross_entropy_gradient
from lab.kernels.optimizers import adam, sgd
from lab.kernels.warm import warm

__all__ = [
    "FLOATS",
    "KERNELS",
    "Kernel",
    "adam",
    "cache_folder",
    "have_numba",
    "kernel",
    "sgd",
    "softmax_cross_entropy",
    "softmax_cross_entropy_gradient",
    "warm",
]
