"""Gradients that are made smaller before they travel: `DataParallel(comm_hook=TopK(0.01))`."""

from lab.parallel.compression.hook import CommHook, Compressor
from lab.parallel.compression.low_rank import PowerSGD
from lab.parallel.compression.narrow import Cast, Quantized
from lab.parallel.compression.sparse import RandomK, TopK

__all__ = ["Cast", "CommHook", "Compressor", "PowerSGD", "Quantized", "RandomK", "TopK"]
